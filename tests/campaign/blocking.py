"""A mutant that stops in a chosen phase of a campaign, so that a test can kill a process there.

Its module also holds up the process that writes the reports, which imports it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import psutil
from helpers import PATIENCE_S

from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter
from litmusfuzz.fuzz.mutants.stale_reads import StaleReads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise, Prepared

FOLDER = "BLOCKING_FOLDER"
"""Environment variable with the folder of a `Barrier`; a mark of all processes of a campaign."""
COUNT = 8
"""Executions of each generated test. Those of smaller tests are more."""


class Barrier:
    """Where the double stops, and where it has stopped; in a folder that processes share.

    It stops once at each test, and never where `phase` is "".
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    @property
    def phase(self) -> str:
        """One of start, run, reduction and confirmation."""
        try:
            return (self.folder / "phase").read_text()
        except FileNotFoundError:
            return ""

    @phase.setter
    def phase(self, phase: str) -> None:
        new = self.folder / "phase.new"
        new.write_text(phase)
        new.replace(self.folder / "phase")

    def reach(self, phase: str, what: str) -> None:
        """In the worker: stop for ever, if it is the phase and this test has not stopped before."""
        if not phase or phase != self.phase:
            return
        mark = self.folder / f"{phase}-{sha256(what.encode()).hexdigest()}.mark"
        new = mark.with_suffix(f".{os.getpid()}")
        new.write_text(f"{os.getpid()}")
        try:
            os.link(new, mark)
        except FileExistsError:
            return
        while True:
            signal.pause()

    @property
    def holds_report(self) -> bool:
        """True while no report may be completed."""
        return (self.folder / "hold").exists()

    @holds_report.setter
    def holds_report(self, holds: bool) -> None:
        hold = self.folder / "hold"
        (self.folder / "held").unlink(missing_ok=True)
        if holds:
            hold.touch()
        else:
            hold.unlink()

    def wait_for_report(self, running: psutil.Popen) -> None:
        """In the test: wait until a report is held up."""
        end = time.monotonic() + PATIENCE_S
        while not (self.folder / "held").exists():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)

    def hold_report(self, event: str, arguments: tuple[object, ...]) -> None:
        """In the process that writes reports: stop before the third file, as long as asked to."""
        if event == "open" and ".junit.xml." in str(arguments[0]) and self.holds_report:
            (self.folder / "held").touch()
            while self.holds_report:
                time.sleep(0.01)

    def wait(self, seen: set[Path], running: psutil.Popen) -> psutil.Process:
        """In the test: wait until a worker has stopped; add its mark to `seen`."""
        end = time.monotonic() + PATIENCE_S
        while not (new := set(self.folder.glob("*.mark")) - seen):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end, self.phase
            time.sleep(0.01)
        (mark,) = new
        seen.add(mark)
        return psutil.Process(int(mark.read_text()))


def barrier() -> Barrier:
    """That of this process."""
    return Barrier(Path(os.environ[FOLDER]))


if FOLDER in os.environ:
    sys.addaudithook(barrier().hold_report)


@dataclass
class _Prepared:
    test: LitmusTest
    stale: Prepared
    fresh: Prepared

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        shown = self.stale.run(count, noise, seed)
        if count == COUNT:
            # The loss of a test that shows something may lose a finding.
            phase = "run" if shown == self.fresh.run(count, noise, seed) else ""
        elif self.test.name != "finding":
            phase = "reduction"
        else:
            phase = "" if Blocking.has_run else "confirmation"
        Blocking.has_run = True
        barrier().reach(phase, dumps(Entry(self.test)))
        return shown

    def close(self) -> None:
        pass


class Blocking(StaleReads):
    """Reads are stale; it stops where the barrier says."""

    name: ClassVar[str] = "double/blocking"
    fork_after: ClassVar[ForkAfter] = ForkAfter(("campaign.blocking",))
    has_run: ClassVar[bool] = False
    """True once this process has run a test."""

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Asked for when a worker starts."""
        barrier().reach("start", "")
        return StaleReads.versions()

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """As the mutant and its control."""
        stale = super().prepare(test, config)
        return _Prepared(test, stale, self.control()().prepare(test, config))
