"""What an executor counts, summed up over the processes of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

SLOW: Final = "slow jobs"
"""Counter of an executor's jobs that had no answer in `JOB_TIMEOUT_S`, and do not hang."""
OTHER_COUNTERS: Final = "other counters"
"""All counters of an executor together that have a name after the first `messages.MAX_NAMED`: a
report has a figure for each name, and an executor may make one for each test."""


class Counters:
    """The counters of one worker. A process says what it has counted since it began."""

    def __init__(self) -> None:
        self._new: dict[str, float] = {}
        self._of_process: Mapping[str, float] = {}
        self._names: set[str] = set()

    def begin_process(self) -> None:
        """The next counters are those of another process."""
        self._of_process = {}

    def note(self, counters: Mapping[str, float]) -> None:
        """Take the counters of a reply."""
        for name, number in counters.items():
            if len(self._names) < messages.MAX_NAMED:
                self._names.add(name)
            named = name if name in self._names else OTHER_COUNTERS
            self._add(named, number - self._of_process.get(name, 0))
        self._of_process = counters

    def note_slow(self) -> None:
        """Count a job that was slow."""
        self._add(SLOW, 1)

    def _add(self, name: str, number: float) -> None:
        self._new[name] = self._new.get(name, 0) + number

    def take(self) -> dict[str, float]:
        """What was counted since the last call."""
        counters, self._new = self._new, {}
        return {name: number for name, number in counters.items() if number}
