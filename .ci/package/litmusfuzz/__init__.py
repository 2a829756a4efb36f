"""LitmusFuzz: litmus tests for the concurrency semantics of dataflow graphs."""

from importlib.metadata import version

__version__ = version("litmusfuzz")
