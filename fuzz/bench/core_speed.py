"""Measures, beside a benchmark, at which share of their full speed the cores run.

A core of a virtual machine is often one of two threads of a physical core, the other of which
belongs to somebody else: while that one works, this one has half of its speed, and no counter of
the operating system shows it. A fixed loop does. Its processor time does not depend on what else
this machine does: the loop needs hardly any memory, and time in which it waits does not count.

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

_EVERY_S: Final = 0.25
"""Between two samples, which take turns on the cores; they cost 1 % of one core."""
_STEPS: Final = 20_000
"""Of the loop: a millisecond or two."""
_FULL: Final = 20
"""The full speed is that of the quickest one in so many samples."""


def loop_s() -> float:
    """Processor time of the fixed loop."""
    start, total = time.thread_time(), 0
    for number in range(_STEPS):
        total += number * number
    return time.thread_time() - start


@dataclass(slots=True)
class CoreSpeed:
    """Context manager: samples the speed of all cores that this process may use.

    What it answers is relative to the fastest samples so far, and so final when it has ended.

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
        command = [sys.executable, "-P", "-m", "litmusfuzz.fuzz.bench.core_speed"]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._output, process_group=0
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and read the samples."""
        assert self._child is not None
        assert self._output is not None
        self._child.communicate()
        with self._output as output:
            output.seek(0)
            for line in output:
                at, taken = line.split()
                self.samples.append((float(at), float(taken)))

    @property
    def full_s(self) -> float:
        """Processor time of the loop on a core that nobody else uses.

        Raises
        ------
        ValueError
            If there are no samples.
        """
        taken = [each for _, each in self.samples]
        return statistics.quantiles(taken, n=_FULL)[0] if len(taken) > 1 else min(taken)

    def share(self, start: float, end: float) -> float:
        """Mean share of its full speed that a core had from one monotonic time to another, 0 to 1.

        1 if there are no samples of that time, or none are slower than the full speed.
        """
        within = [taken for at, taken in self.samples if start <= at <= end]
        return statistics.fmean(self.share_of(each) for each in within) if within else 1.0

    def share_of(self, taken_s: float) -> float:
        """Share of the full speed at which the loop took so long."""
        return min(1.0, self.full_s / taken_s)


def main() -> None:
    """Print samples, a line each, until the standard input ends."""
    for core in itertools.cycle(sorted(os.sched_getaffinity(0))):
        os.sched_setaffinity(0, {core})
        loop_s()  # the next one finds its code and data in the core's cache
        sys.stdout.write(f"{time.monotonic()} {loop_s()}\n")
        sys.stdout.flush()
        if select.select([sys.stdin], [], [], _EVERY_S)[0]:
            break


if __name__ == "__main__":
    main()
