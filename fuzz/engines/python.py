"""Engines in Python: any object with the `submit` of `concurrent.futures`.

For each closure that becomes ready, the executor `native` calls `submit` once. The submitted
function runs the oldest closure that is still waiting, or nothing if there is none left. It
runs on a thread of the engine, unless the thread that waits for the test to finish runs the
closure first. Closures run without the GIL; `submit` itself is called with it.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, runtime_checkable

from litmusfuzz.fuzz.engines.settings import MissingEngine


@runtime_checkable
class PythonEngine(Protocol):
    """Interface of an engine in Python.

    References
    ----------
    PEP 3148, "Executor".
    """

    def submit(self, function: Any, /) -> object:
        """Schedule `function`, which takes no arguments, to be called once on some thread.

        The executor ignores the result.
        """


def load(name: str, threads: int) -> PythonEngine:
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
        If the module or object cannot be imported or created; the message is one line.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
        if isinstance(found, type) or not isinstance(found, PythonEngine):
            found = found(max_workers=threads)
    except Exception as error:  # noqa: BLE001 - all of this is the user's code
        raise MissingEngine(f"engine {name!r}: {type(error).__name__}: {error}") from None
    if not isinstance(found, PythonEngine):
        raise MissingEngine(f"engine {name!r} has no method 'submit'")
    return found


def end(engine: PythonEngine) -> None:
    """Call the engine's `shutdown` if it has one, even if `load` found an existing object."""
    shutdown = getattr(engine, "shutdown", None)
    if shutdown is not None:
        shutdown()
