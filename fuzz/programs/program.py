"""A program as data: operations, functions, and the runs that a client may start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Output = tuple[str, int]
"""The name of an operation or of an argument, and the number of one of its outputs."""


class ProgramError(ValueError):
    """A program that cannot be read or checked; the message is one line."""


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Operation:
    """A node of a graph or function.

    Parameters
    ----------
    name, op : str
        `op` is TensorFlow's name of the op.
    inputs : tuple of Output
    after : tuple of str
        Operations with a control edge to this one.
    bodies : tuple of str
        Functions that it calls: the branches of a conditional, a loop's condition and body.
    shared_name : str
        Of a resource; its name if "".
    stateful : bool or None
        As TensorFlow's registry says; None if the op is not in it.
    constant : bytes
        Digest of the value of a Const.
    frame : str
        Of an Enter: the frame's name.
    is_constant : bool
        Of an Enter: whether all iterations see the value.
    parallel_iterations : int
    compiled : bool
        True if XLA compiles the function that it calls.
    dtype, shape
        Of a variable's handle; "" and None where they are not known.
    """

    name: str
    op: str
    inputs: tuple[Output, ...] = ()
    after: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    shared_name: str = ""
    stateful: bool | None = False
    constant: bytes = b""
    frame: str = ""
    is_constant: bool = False
    parallel_iterations: int = 10
    compiled: bool = False
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A graph with arguments and results; the main graph of a file has neither.

    Parameters
    ----------
    automatic : bool
        True if `tf.function` traced it, which adds automatic control dependencies.
    compiled : bool
        True if XLA compiles it.
    """

    name: str
    operations: tuple[Operation, ...]
    arguments: tuple[str, ...] = ()
    results: tuple[Output, ...] = ()
    automatic: bool = False
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that outlives a run.

    Parameters
    ----------
    kind : str
        "variable", "table", "iterator", "random state", "mutex", "queue" or "other".
    local : bool
        True if each run makes its own.
    """

    name: str
    kind: str = "variable"
    local: bool = False
    dtype: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that a client may start.

    Parameters
    ----------
    name : str
    function : str
        The function, or "" for the main graph.
    fetches : tuple of str
        Operations of the main graph that the client fetches; of a function all results.
    resources : mapping
        For each argument of the function that is a handle: the resource.
    """

    name: str
    function: str = ""
    fetches: tuple[str, ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """Operations, functions, and the client's runs.

    Parameters
    ----------
    sources : mapping
        Where the user wrote an operation, by (function, operation); "" is the main graph.
    concurrent : tuple of (str, str)
        Runs that may be concurrent, by default.
    notes : tuple of str
        For the user: that a module was imported, and the like.
    """

    name: str
    graph: Function
    functions: Mapping[str, Function]
    entries: tuple[Entry, ...]
    sources: Mapping[tuple[str, str], Location] = field(default_factory=dict)
    concurrent: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
