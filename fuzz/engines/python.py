"""Engines in Python: anything with the `submit` of `concurrent.futures`.

Each closure is handed to `submit`, and taken by one of the executor's threads or
by the thread that waits, whichever comes first. Closures run without the GIL,
but each is handed over with it.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, runtime_checkable

from litmusfuzz.fuzz.engines.settings import MissingEngine


@runtime_checkable
class Submits(Protocol):
    """What an engine in Python must have.

    References
    ----------
    PEP 3148, "Executor".
    """

    def submit(self, function: Any, /) -> object:
        """Call `function`, without arguments, once and later, on some thread.

        What is returned is not looked at.
        """


def load(name: str, threads: int) -> Submits:
    """The engine of that name.

    Parameters
    ----------
    name : str
        ``module:object``. The object has `submit`, or is called, as the classes of
        `concurrent.futures` are, with ``max_workers=threads``.
    threads : int

    Raises
    ------
    MissingEngine
        In one line, if there is none.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
        if isinstance(found, type) or not isinstance(found, Submits):
            found = found(max_workers=threads)
    except Exception as error:  # noqa: BLE001 - all of this is the user's code
        raise MissingEngine(f"engine {name!r}: {type(error).__name__}: {error}") from None
    if not isinstance(found, Submits):
        raise MissingEngine(f"engine {name!r} has no method 'submit'")
    return found


def end(engine: Submits) -> None:
    """End the threads of an engine that `load` made."""
    shutdown = getattr(engine, "shutdown", None)
    if shutdown is not None:
        shutdown()
