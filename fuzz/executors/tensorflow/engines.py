"""Engines that run the closures of TensorFlow's sessions, in place of its own thread pools.

An engine is any of `fuzz.engines`: ours, one over oneTBB or OpenMP, a user's library, a Python
object. The library inside TensorFlow (`control_library`) registers an executor type for it. Each
`Session.run` of a session with that type is a run of the engine, and the thread that called it
works on it, too.

What an engine guarantees is checked from outside, by a driver in C++ (``fuzz/native/control/
engine_driver.h``): how many threads run closures at the same time, and that a thread which waits
for one run works on no other.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.tensorflow import control_library

if TYPE_CHECKING:
    from litmusfuzz.fuzz.engines.settings import EngineSettings
    from litmusfuzz.fuzz.executors.tensorflow._control import EngineDriver

_LOCK: Final = threading.Lock()
_TYPES: Final[list[str]] = []
"""Executor types that no engine has at the moment: TensorFlow keeps them for ever."""
_NUMBERS: Final = count()


class BrokenEngine(RuntimeError):
    """An engine has broken what it guarantees, or has thrown an exception; one line."""


class DrivenEngine:
    """An engine with running threads, and the executor type of its sessions.

    Parameters
    ----------
    settings : EngineSettings
    intra_op_threads : int
        Threads that do parts of one op at the same time, at most. They count under the engine's
        limit.

    Raises
    ------
    Unavailable
        With one line: what the engine needs, or why the library inside TensorFlow cannot be made.

    Attributes
    ----------
    executor_type : str
        For ``ConfigProto.experimental.executor_type``.
    """

    def __init__(self, settings: EngineSettings, intra_op_threads: int = 1) -> None:
        # Not at the top: they may be compiled for another Python than a worker's.
        from litmusfuzz.fuzz.executors.native.running_engine import RunningEngine
        from litmusfuzz.fuzz.executors.tensorflow._control import EngineDriver

        self._name = settings.engine
        self._library = control_library.load()
        self._engine = RunningEngine(settings)
        self._driver: EngineDriver | None = EngineDriver(
            self._engine.core.address, settings.threads, intra_op_threads
        )
        with _LOCK:
            self.executor_type = _TYPES.pop() if _TYPES else f"LITMUSFUZZ_ENGINE_{next(_NUMBERS)}"
        if not self._library.litmusfuzz_drive(self.executor_type.encode(), self._driver.hooks):
            raise RuntimeError("the library in TensorFlow is of another version")

    @property
    def driver(self) -> EngineDriver:
        """What drives it, with figures; only before `close`."""
        assert self._driver is not None
        return self._driver

    def check(self) -> None:
        """Check that the engine has kept what it guarantees so far.

        Raises
        ------
        BrokenEngine
        """
        if fault := self.driver.fault:
            raise BrokenEngine(f"engine {self._name!r} {' '.join(fault.split())}")

    def close(self) -> None:
        """End the engine's threads. No session may have its executor type."""
        self._library.litmusfuzz_drive(self.executor_type.encode(), None)
        with _LOCK:
            _TYPES.append(self.executor_type)
        self._driver = None
        self._engine.close()
