"""Names and settings of engines, as in the option ``--engine`` and in records."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

MAX_THREADS: Final = 256
DEFAULT_THREADS: Final = 2

ONE_THREAD: Final = ("inline", "controlled")
BUILT_IN: Final = ("pool", "fifo", "stealing", "gang", *ONE_THREAD)

SCHEDULERS: Final = ("random", "pct", "pos", "urw", "surw", "uniform")
"""Of the controlled engine (``docs/engines.md``)."""
MAX_DEPTH: Final = 64

# Requirements of the machine that builds them.
OVER_RUNTIMES: Final = MappingProxyType(
    {
        "tbb": "oneTBB (tbb-devel, from PyPI, on Linux for x86-64)",
        "openmp": "OpenMP (libgomp, with g++)",
    }
)


class UnknownEngine(ValueError):
    """Unknown engine name or invalid settings; the message lists the known names."""


class MissingEngine(ValueError):
    """A known engine that is not installed; the message says what is missing."""


class Sort(Enum):
    """Kind of an engine's name."""

    BUILT_IN = "built in"
    LIBRARY = "a shared library"
    PYTHON = "module:object"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """An engine of the native executor, with its settings.

    Parameters
    ----------
    engine : str
        One of `BUILT_IN` or `OVER_RUNTIMES`, the path of a shared library, or
        ``module:object`` (see `fuzz.engines.python`).
    threads : int
        The engine's hard limit on threads, 1 to 256.
    split : bool
        Split dense updates into reads and writes.
    scheduler : str
        For the controlled engine, one of `SCHEDULERS`; "" for its default.
    depth : int
        For ``pct``, 1 to 64; else 0.

    Raises
    ------
    UnknownEngine
        With one line.

    References
    ----------
    ENGINES, Objective: engines that users plug in; a number of threads given at start.
    """

    engine: str
    threads: int
    split: bool = False
    scheduler: str = ""
    depth: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MAX_THREADS:
            raise UnknownEngine(f"an engine has 1 to {MAX_THREADS} threads, not {self.threads}")
        if self.engine in ONE_THREAD and self.threads != 1:
            raise UnknownEngine(f"engine {self.engine!r} has one thread, not {self.threads}")
        if any(character in ";," or not character.isprintable() for character in self.engine):
            raise UnknownEngine(f"an engine's name has no ';' and no ',': {self.engine!r}")
        if self.scheduler and self.engine != "controlled":
            raise UnknownEngine(f"engine {self.engine!r} has no schedulers; controlled has")
        if self.scheduler not in ("", *SCHEDULERS):
            known = ", ".join(SCHEDULERS)
            raise UnknownEngine(f"no scheduler {self.scheduler!r}; there are {known}")
        least, most = (1, MAX_DEPTH) if self.scheduler == "pct" else (0, 0)
        if not least <= self.depth <= most:
            raise UnknownEngine(f"depth is of scheduler pct, 1 to {MAX_DEPTH}, not {self.depth}")
        theirs = self.sort is Sort.LIBRARY and self.engine not in OVER_RUNTIMES
        if theirs and not Path(self.engine).is_file():
            raise UnknownEngine(f"no engine {self.engine!r}: there is no such file")

    @property
    def sort(self) -> Sort:
        """Kind of the engine's name."""
        # Of the runtimes' engines the library is ours, but a library.
        return Sort.LIBRARY if self.engine in OVER_RUNTIMES else self.sort_of(self.engine)

    @staticmethod
    def sort_of(engine: str) -> Sort:
        """Kind of an engine's name; one of ours over a runtime is built in.

        Raises
        ------
        UnknownEngine
            If it is none.
        """
        if engine in BUILT_IN or engine in OVER_RUNTIMES:
            return Sort.BUILT_IN
        if os.sep in engine or engine.endswith(".so"):
            return Sort.LIBRARY
        module, colon, attribute = engine.partition(":")
        if colon and all(part.isidentifier() for part in f"{module}.{attribute}".split(".")):
            return Sort.PYTHON
        known = ", ".join([*BUILT_IN, *OVER_RUNTIMES])
        raise UnknownEngine(
            f"no engine {engine!r}; there are {known}, paths of shared libraries, "
            "and module:object in Python"
        )

    @property
    def library(self) -> Path:
        """The shared library.

        Raises
        ------
        MissingEngine
            If it is an engine of ours that was not built.
        """
        assert self.sort is Sort.LIBRARY
        if self.engine not in OVER_RUNTIMES:
            return Path(self.engine).absolute()  # with a slash: no search along the library path
        found = importlib.util.find_spec(f"litmusfuzz.fuzz.engines._{self.engine}")
        if found is None or found.origin is None:
            raise MissingEngine(
                f"engine {self.engine!r} was not built here: "
                f"there was no {OVER_RUNTIMES[self.engine]}"
            )
        return Path(found.origin)

    @property
    def name(self) -> str:
        """All settings in one name; `from_name` parses it."""
        parts = [f"engine={self.engine}", f"threads={self.threads}"]
        parts += [f"scheduler={self.scheduler}"] if self.scheduler else []
        parts += [f"depth={self.depth}"] if self.depth else []
        return ";".join([*parts, *(["split"] if self.split else [])])

    @classmethod
    def chosen(
        cls,
        engine: str,
        threads: int | None,
        *,
        split: bool,
        scheduler: str = "",
        depth: int = 0,
    ) -> EngineSettings:
        """Return the settings of a user's options.

        A library's path becomes absolute, so that records identify it. Without `threads`,
        an engine has two threads, or one if it has no more.
        """
        if threads is None:
            threads = 1 if engine in ONE_THREAD else DEFAULT_THREADS
        made = cls(engine, threads, split, scheduler, depth)
        if made.sort is Sort.LIBRARY and engine not in OVER_RUNTIMES:
            return cls(str(made.library), threads, split)
        return made

    @classmethod
    def from_name(cls, name: str) -> EngineSettings:
        """``engine=tbb;threads=4;split``, ``engine=controlled;scheduler=pct;depth=5``.

        Defaults are one thread and no split.

        Raises
        ------
        UnknownEngine
            With one line.
        """
        fields = [part.partition("=") for part in name.split(";")]
        keys = [key for key, _, _ in fields]
        values = {key: value for key, _, value in fields}
        odd = len(keys) > len(values) or values.get("split") or not values.get("engine")
        if odd or not set(keys) <= {"engine", "threads", "scheduler", "depth", "split"}:
            raise UnknownEngine(
                f"{name!r} is not engine=NAME;threads=N;split,"
                " nor engine=controlled;scheduler=NAME;depth=N;split"
            )
        numbers = {"threads": "1", "depth": "0"}
        for key in numbers:
            numbers[key] = number = values.get(key, numbers[key])
            if not (number.isascii() and number.isdigit() and len(number) < 10):
                raise UnknownEngine(f"{key}={number} is no number")
        return cls(
            values["engine"],
            int(numbers["threads"]),
            "split" in values,
            values.get("scheduler", ""),
            int(numbers["depth"]),
        )
