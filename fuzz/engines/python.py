"""Engines in Python: any object with the `submit` of `concurrent.futures`.

The executor passes each closure to `submit`. One of the engine's threads or the waiting
thread runs it, whichever comes first. Closures run without the GIL, but each call of
`submit` holds it.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, runtime_checkable

from litmusfuzz.fuzz.engines.settings import MissingEngine


@runtime_checkable
class Submits(Protocol):
    """Interface of an engine in Python.

    References
    ----------
    PEP 3148, "Executor".
    """

    def submit(self, function: Any, /) -> object:
        """Call `function`, without arguments, once and later, on some thread.

        The executor ignores the result.
        """


def load(name: str, threads: int) -> Submits:
    """Import the engine of that name.

    Parameters
    ----------
    name : str
        ``module:object``. The object has `submit`, or is a factory like the classes of
        `concurrent.futures`, called with ``max_workers=threads``.
    threads : int

    Raises
    ------
    MissingEngine
        With one line, if there is no such engine.
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
