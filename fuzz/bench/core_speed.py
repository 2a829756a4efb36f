"""Measures, beside a benchmark, how fast the cores are, and what it would measure on idle ones.

A core of a virtual machine is often one of two threads of a physical core, the other of which
belongs to somebody else: while that one works, this one is slower, and no counter of the operating
system shows it. A fixed loop does, by its processor time. Here the loop takes as long beside a busy
core of this machine as beside an idle one (medians of 1.91 and 1.92 ms), and 1.76 times as long
beside somebody else.

How much another program suffers was measured in the same minutes, on one core, again and again with
the same work, between two loops. Generators take 1.65 times as long. TensorFlow, plain or compiling
clusters, which waits more for memory, takes 1.42 times as long: it loses two thirds of what the
loop loses (`TENSORFLOW`).

Run as ``python -P -m litmusfuzz.fuzz.bench.core_speed``, it prints samples until its input ends.
"""

from __future__ import annotations

import itertools
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

TENSORFLOW: Final = 2 / 3
"""The part of the loop's loss of speed that TensorFlow has as well."""
_EVERY_S: Final = 0.5
"""Between two samples, each on the next core; they cost 0.5 % of one core."""
_STEPS: Final = 20_000
"""Of the loop: a millisecond or two."""
_FASTEST: Final = 0.05
_SPREAD: Final = 1.15
"""A core has its full speed where the loop takes at most so many times as long as in the fastest
twentieth of the samples."""


def loop_s() -> float:
    """Processor time of the fixed loop."""
    start, total = time.thread_time(), 0
    for number in range(_STEPS):
        total += number * number
    return time.thread_time() - start


def warm_loop_s() -> float:
    """The same with its code in the core's cache."""
    loop_s()
    return loop_s()


@dataclass(slots=True)
class CoreSpeed:
    """Context manager: samples the speed of all cores that this process may use.

    It answers once it has ended.

    Attributes
    ----------
    samples : list of (float, float)
        Monotonic time, and processor time of the loop; seconds.
    """

    samples: list[tuple[float, float]] = field(default_factory=list)
    _child: subprocess.Popen[bytes] | None = None
    _output: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._output = tempfile.TemporaryFile()
        # In a group of its own it does not get the Ctrl-C that ends the benchmark.
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "litmusfuzz.fuzz.bench.core_speed"],
            stdin=subprocess.PIPE,
            stdout=self._output,
            process_group=0,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and read the samples.

        Raises
        ------
        RuntimeError
            If the cores could not be sampled to the end.
        """
        assert self._child is not None
        assert self._output is not None
        self._child.communicate()
        with self._output as output:
            output.seek(0)
            for line in output:
                at, taken = line.split()
                self.samples.append((float(at), float(taken)))
        if self._child.returncode and error is None:
            message = f"the speed of the cores is unknown: exit code {self._child.returncode}"
            raise RuntimeError(message)

    def full_s(self) -> float:
        """Processor time of the loop on a core that nobody else uses."""
        taken = sorted(each for _, each in self.samples)
        limit = _SPREAD * taken[int(_FASTEST * len(taken))]
        return statistics.median(each for each in taken if each <= limit)

    def share(self, start: float, end: float) -> float:
        """Mean share of its full speed that a core had between two monotonic times, at most 1.

        Raises
        ------
        statistics.StatisticsError
            If there are no samples of that time.
        """
        full_s = self.full_s()
        within = (full_s / taken for at, taken in self.samples if start <= at <= end)
        return min(1.0, statistics.fmean(within))


def idle_part(share: float, busy: float) -> float:
    """How long TensorFlow's work would take on idle cores, relative to what it took.

    Parameters
    ----------
    share : float
        Of their full speed that the cores had, 0 to 1 (`CoreSpeed.share`).
    busy : float
        Of the time of all cores in which they worked, 0 to 1; waiting takes as long on any core.
    """
    return 1 - min(1.0, busy) * TENSORFLOW * (1 - share)


def main() -> None:
    """Print samples, a line each, until the standard input ends."""
    for core in itertools.cycle(sorted(os.sched_getaffinity(0))):
        os.sched_setaffinity(0, {core})
        sys.stdout.write(f"{time.monotonic()} {warm_loop_s()}\n")
        sys.stdout.flush()
        if select.select([sys.stdin], [], [], _EVERY_S)[0]:
            break


if __name__ == "__main__":
    main()
