"""Samples how fast the cores are during a benchmark, and computes its result for idle cores.

A core of a virtual machine is often one of two threads of a physical core, and the other thread may
belong to another virtual machine. While the other thread works, ours is slower, and no counter of
the operating system shows it. The processor time of a fixed loop does. On 2026-11-27, on two cores
of a virtual machine, the loop took as long while our other core was busy as while it was idle
(medians of 1.91 and 1.92 ms), and 1.76 times as long while another machine slowed the core.

The same measurement ran TensorFlow between two loops, on one core, again and again. With
auto-clustering or without, TensorFlow took 1.42 times as long as on an idle core, less than the
loop, because it waits more for memory. In speed, the loop lost ``1 - 1 / 1.76 = 0.43`` and
TensorFlow ``1 - 1 / 1.42 = 0.30``: two thirds of the loop's loss (`TENSORFLOW_LOSS`).

The benchmarks `campaign` and `all_configurations` use it. The samples come from a child process,
``python -P -m litmusfuzz.fuzz.bench.core_speed``, which prints them until its input ends.
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

TENSORFLOW_LOSS: Final = 2 / 3
"""TensorFlow's loss of speed on a core that is shared, as a part of the loop's loss."""
_EVERY_S: Final = 0.5
"""Time between two samples, which are of two cores. A sample is two loops of 1.9 ms, so that
sampling takes 0.8 % of one core."""
_STEPS: Final = 20_000
"""Iterations of the loop, which take a millisecond or two."""
_FASTEST: Final = 0.05
"""Part of the samples that are faster than the reference for full speed: some are clock errors."""
_SPREAD: Final = 1.15
"""A core has its full speed if the loop takes at most so many times as long as in the reference."""


def loop_s() -> float:
    """Processor time of the fixed loop."""
    start, total = time.thread_time(), 0
    for number in range(_STEPS):
        total += number * number
    return time.thread_time() - start


def warm_loop_s() -> float:
    """Processor time of the loop when its code is in the core's cache."""
    loop_s()  # loads the code
    return loop_s()


@dataclass(slots=True)
class CoreSpeed:
    """Context manager that samples the speed of all cores that this process may use.

    Call its methods only after the ``with`` block: the samples are read at its end.

    Parameters
    ----------
    samples : list of (float, float)
        Monotonic time of a sample, and processor time of the loop; in seconds. Only tests pass it.
    """

    samples: list[tuple[float, float]] = field(default_factory=list)
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)
    _output: IO[bytes] | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> Self:
        """Start the child process that samples."""
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
        """End the child process, and read the samples.

        After an error in the ``with`` block, a child process that failed has no samples.

        Raises
        ------
        RuntimeError
            If the child process ended before the block did, and the block raised no error.
        """
        assert self._child is not None
        assert self._output is not None
        self._child.communicate()  # closes its input, which ends it
        with self._output as output:
            if self._child.returncode == 0:  # else the last line may be incomplete
                output.seek(0)
                for line in output:
                    at, taken = line.split()
                    self.samples.append((float(at), float(taken)))
            elif error is None:
                message = f"the speed of the cores is unknown: exit code {self._child.returncode}"
                raise RuntimeError(message)

    def full_s(self) -> float:
        """Processor time of the loop on a core that no other machine uses.

        Raises
        ------
        statistics.StatisticsError
            If there are no samples.
        """
        if not self.samples:
            raise statistics.StatisticsError("no samples of the cores' speed")
        taken = sorted(loop for _, loop in self.samples)
        reference = taken[int(_FASTEST * len(taken))]
        return statistics.median(loop for loop in taken if loop <= _SPREAD * reference)

    def share(self, start: float, end: float) -> float:
        """Mean speed of the cores between two monotonic times, as a share of full speed, at most 1.

        Raises
        ------
        statistics.StatisticsError
            If there are no samples between those times.
        """
        full_s = self.full_s()
        within = (full_s / taken for at, taken in self.samples if start <= at <= end)
        return min(1.0, statistics.fmean(within))


def tensorflow_idle_time_ratio(share: float, busy: float) -> float:
    """Time that TensorFlow's work would have taken on idle cores, divided by the time it took.

    Parameters
    ----------
    share : float
        Speed that the cores had, as a share of their full speed, 0 to 1 (`CoreSpeed.share`).
    busy : float
        Processor time of the work, divided by the time that all cores had; more than 1, which
        clocks may yield, counts as 1. The rest of the time is waiting.

    Notes
    -----
    On idle cores, the busy part of the time shrinks by the part of its speed that TensorFlow lost,
    ``TENSORFLOW_LOSS * (1 - share)``; the waiting takes as long as it did.
    """
    return 1 - min(1.0, busy) * TENSORFLOW_LOSS * (1 - share)


def main() -> None:
    """Print samples until the standard input ends: a time and the loop's time on each line."""
    for core in itertools.cycle(sorted(os.sched_getaffinity(0))):
        os.sched_setaffinity(0, {core})
        sys.stdout.write(f"{time.monotonic()} {warm_loop_s()}\n")
        sys.stdout.flush()
        if select.select([sys.stdin], [], [], _EVERY_S)[0]:
            break


if __name__ == "__main__":
    main()
