"""Lifetime of an engine's threads while a prepared test is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.engines import python, runtimes
from litmusfuzz.fuzz.engines.settings import EngineSettings, MissingEngine, Sort
from litmusfuzz.fuzz.executors.native import _executor
from litmusfuzz.fuzz.executors.protocol import Unavailable

if TYPE_CHECKING:
    from types import ModuleType

    from litmusfuzz.fuzz.engines.python import PythonEngine


class RunningEngine:
    """An engine with running threads; `close` ends them.

    Parameters
    ----------
    settings : EngineSettings
    module : module
        The extension module that uses the engine.

    Raises
    ------
    Unavailable
        With one line: the missing runtime, or the defect of a user's library or object.
    """

    def __init__(self, settings: EngineSettings, module: ModuleType = _executor) -> None:
        self._engine: PythonEngine | None = None
        self._core: _executor.Engine | None
        try:
            if settings.sort is Sort.PYTHON:
                self._engine = python.load(settings.engine, settings.threads)
                self._core = module.PythonEngine(self._engine.submit, settings.threads)
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
        """The engine; only before `close`."""
        assert self._core is not None
        return self._core

    def close(self) -> None:
        """End the engine's threads. Nothing may be running."""
        self._core = None
        if self._engine is not None:
            python.end(self._engine)
