"""An engine with its threads, for as long as a prepared test is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.engines import python, runtimes
from litmusfuzz.fuzz.engines.settings import EngineSettings, MissingEngine, Sort
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.protocol import Unavailable

if TYPE_CHECKING:
    from types import ModuleType

    from litmusfuzz.fuzz.engines.python import Submits


class RunningEngine:
    """Starts the engine's threads; `close` ends them.

    Parameters
    ----------
    settings : EngineSettings
    module : module
        The core that is to use it.

    Raises
    ------
    Unavailable
        In one line: what is missing, or wrong with a library or object of a user's.
    """

    def __init__(self, settings: EngineSettings, module: ModuleType = _executor) -> None:
        self._submits: Submits | None = None
        self._core: _executor.Engine | None
        try:
            if settings.sort is Sort.PYTHON:
                self._submits = python.load(settings.engine, settings.threads)
                self._core = module.PythonEngine(self._submits.submit, settings.threads)
                return
            name = settings.engine
            if settings.sort is Sort.LIBRARY:
                runtimes.preload(settings.engine)
                name = str(settings.library)
            self._core = module.engine(name, settings.threads)
        except MissingEngine as error:
            raise Unavailable(str(error)) from None
        except (ValueError, OSError, RuntimeError) as error:  # of a library, or of its engine
            raise Unavailable(
                f"engine {settings.engine!r}: {' '.join(str(error).split())}"
            ) from None

    @property
    def core(self) -> _executor.Engine:
        """The engine itself, until it is closed."""
        assert self._core is not None
        return self._core

    def close(self) -> None:
        """End its threads. Nothing may be running."""
        self._core = None
        if self._submits is not None:
            python.end(self._submits)
