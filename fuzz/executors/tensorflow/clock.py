"""Stopwatch of a worker process: seconds by activity, such as building or running graphs."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """Elapsed seconds of each named activity in this process, summed.

    For one thread. Parts do not nest: the time of an inner one would count twice.

    Attributes
    ----------
    seconds : dict of str to float
        By name of the activity: a counter of the executor, ``building_s`` for example, which a
        worker's reply reports (`Executor.counters`).
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Context manager that adds the time of its body to the activity `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start
