"""LitmusFuzz: litmus tests for the concurrency semantics of dataflow graphs.

The names in ``__all__`` are the public API (``docs/api.md``); everything else in this
package is private and may change. Each name is imported when it is first used, so that
``import litmusfuzz`` loads no framework, no NumPy and no Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from litmusfuzz.corpus.builder import litmus
    from litmusfuzz.corpus.model import LitmusTest, MalformedTest
    from litmusfuzz.corpus.outcome import Outcome, Verdict
    from litmusfuzz.corpus.textfile import Entry, FileError, dumps, save
    from litmusfuzz.fuzz.executors.entries import load, loads
    from litmusfuzz.fuzz.executors.protocol import (
        Config,
        Executor,
        ForkAfter,
        Histogram,
        Noise,
        Prepared,
        Refused,
        Unavailable,
    )
    from litmusfuzz.fuzz.executors.single_execution import PreparedFunction
    from litmusfuzz.fuzz.executors.tensorflow.own_session import Exploration, Seen, explore
    from litmusfuzz.fuzz.support import Support
    from litmusfuzz.fuzz.testing import (
        ForbiddenOutcome,
        NotControlled,
        Undecided,
        check,
        resource_graphs,
    )
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.explorer import Budget, Explorer, allowed_outcomes
    from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC, Model

    __version__: str

__all__ = [
    "ACD",
    "EXECUTOR",
    "RFC",
    "AllowedSet",
    "Budget",
    "Config",
    "Entry",
    "Executor",
    "Exploration",
    "Explorer",
    "FileError",
    "ForbiddenOutcome",
    "ForkAfter",
    "Histogram",
    "LitmusTest",
    "MalformedTest",
    "Model",
    "Noise",
    "NotControlled",
    "Outcome",
    "Prepared",
    "PreparedFunction",
    "Refused",
    "Seen",
    "Support",
    "Unavailable",
    "Undecided",
    "Verdict",
    "__version__",
    "allowed_outcomes",
    "check",
    "dumps",
    "explore",
    "litmus",
    "load",
    "loads",
    "resource_graphs",
    "save",
]

_MODULES: Final = {
    "corpus.builder": ("litmus",),
    "corpus.model": ("LitmusTest", "MalformedTest"),
    "corpus.outcome": ("Outcome", "Verdict"),
    "corpus.textfile": ("Entry", "FileError", "dumps", "load", "loads", "save"),
    "oracles.allowed": ("AllowedSet",),
    "oracles.explorer": ("Budget", "Explorer", "allowed_outcomes"),
    "oracles.model": ("ACD", "EXECUTOR", "RFC", "Model"),
    "fuzz.support": ("Support",),
    "fuzz.executors.protocol": (
        *("Config", "Executor", "ForkAfter", "Histogram", "Noise", "Prepared", "Refused"),
        "Unavailable",
    ),
    "fuzz.executors.single_execution": ("PreparedFunction",),
    "fuzz.executors.tensorflow.own_session": ("Exploration", "Seen", "explore"),
    "fuzz.testing": (
        *("ForbiddenOutcome", "NotControlled", "Undecided", "check", "resource_graphs"),
    ),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name == "__version__":
        value: object = import_module("importlib.metadata").version("litmusfuzz")
    elif name in _MODULE_OF:
        value = getattr(import_module(f"litmusfuzz.{_MODULE_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'litmusfuzz' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
