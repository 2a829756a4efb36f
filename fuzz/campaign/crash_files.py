"""What has ended a process: its files, each test as it was run, and what waits to be reduced.

Each file is written before the event that names it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, save, write_text
from litmusfuzz.fuzz.campaign.crash_reducer import UnreducedCrash, crash_entry
from litmusfuzz.fuzz.executors.process_log import legible
from litmusfuzz.fuzz.finding.worker_deaths import exception_of
from litmusfuzz.reports.events import FindingKind, WorkerDied
from litmusfuzz.reports.headline import in_a_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.candidate_backlog import CandidateBacklog
    from litmusfuzz.fuzz.campaign.crash_reducer import SmallestCrash
    from litmusfuzz.fuzz.campaign.job import Job
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.executors.worker import Died
    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.reports.events import Event

_MEMORY: Final = re.compile(r"MemoryError|bad_alloc|RESOURCE_EXHAUSTED|[Oo]ut of memory")


class CrashFiles:
    """Stores the deaths of workers, and what they are reduced to.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives the events.
    """

    def __init__(self, settings: Settings, log: Callable[[Event], None]) -> None:
        self.settings = settings
        self.log = log
        self.deaths = 0

    def path(self, file: str) -> Path:
        """Path of a file that an event names."""
        return self.settings.out / file

    def _save(self, entry: Entry, folder: str) -> str:
        """Write an entry's file; its path relative to the campaign's folder."""
        file = f"{folder}/{entry.test.name}{self.settings.suffix}.yaml"
        save(entry, self.settings.out / file)
        return file

    def store_death(
        self, slot: Slot, job: Job, died: Died, suspects: Sequence[Candidate]
    ) -> WorkerDied:
        """Store the test on which a worker crashed or hung, and beside it its log."""
        assert job.test is not None
        self.deaths += 1
        seed, target = self.settings.options.seed, slot.target
        ended = FindingKind.OUT_OF_MEMORY if _MEMORY.search(died.message) else FindingKind.CRASHED
        kind = FindingKind.TIMED_OUT if died.timed_out else ended
        name = f"{in_a_name(kind)}-{seed}-{self.deaths}"
        doing = "minimizing" if slot.minimizing else "fuzzing"
        description = (
            f"{target.title}: {died.message}\n"
            f"seed {seed}, while {doing}, "
            f"after {slot.jobs_run - 1} other jobs in the same process\n"
            + ", ".join(f"{k} {v}" for k, v in slot.executor.versions_of(slot.config.name).items())
        )
        entry = Entry(job.test.titled(name, description))
        file = self._save(entry, "timed-out" if died.timed_out else "crashed")
        log = str(PurePath(file).with_suffix(".txt")) if died.log.strip() else ""
        if log:
            write_text(legible(died.log), self.path(log))
        event = WorkerDied(
            kind=kind,
            executor=target.executor,
            configuration=target.config.name,
            executor_class=target.finding_class,
            message=died.message,
            file=file,
            log=log,
            traceback=died.traceback,
            entry=dumps(entry),
            ops=tuple(sorted({node.definition.kernel_class for node in job.test.effects})),
            minimizing=slot.minimizing,
            suspects=tuple((each.index, each.target.config.name) for each in suspects),
        )
        self.log(event)
        return event

    def store_crash(
        self, unreduced: UnreducedCrash, smallest: SmallestCrash, died: Died
    ) -> tuple[Entry, str]:
        """Store a reduced test that ends its process; its entry and its file."""
        entry = crash_entry(unreduced.target.executor, smallest.crash, died.message)
        name, number = entry.test.name, 1
        while self.path(f"crashed/{entry.test.name}{self.settings.suffix}.yaml").exists():
            number += 1  # in another configuration it ends otherwise
            entry = replace(entry, test=entry.test.titled(f"{name}-{number}"))
        return entry, self._save(entry, "crashed")


class CrashBacklog:
    """The first crash of each exception, until it is reduced.

    Parameters
    ----------
    files : CrashFiles
    candidates : CandidateBacklog
        What a process had shown before it died is in doubt.
    known : KnownFindings
        A crash that one of these patterns explains is not reduced.
    reduced : collection of (str, str)
        Executors and exceptions that earlier shards have reduced.

    Attributes
    ----------
    waiting : list of UnreducedCrash
    exceptions : set of (str, str)
        Executors and exceptions, each of which is reduced once.
    """

    def __init__(
        self,
        files: CrashFiles,
        candidates: CandidateBacklog,
        known: KnownFindings,
        reduced: Collection[tuple[str, str]],
    ) -> None:
        self.files = files
        self.candidates = candidates
        self.known = known
        self.exceptions = set(reduced)
        self.waiting: list[UnreducedCrash] = []

    def note_death(self, slot: Slot, job: Job, died: Died) -> None:
        """Store the test on which a worker died; what its process had shown is run again."""
        exception = "" if died.timed_out else exception_of(died.message)
        if exception and exception == slot.reducing:
            return  # a smaller test does what it should
        suspects = [] if died.timed_out else [each for each in slot.shown if not each.settled]
        event = self.files.store_death(slot, job, died, suspects)
        self.candidates.doubt(suspects)
        kind = slot.target.executor, exception
        if not exception or kind in self.exceptions or self._is_known(slot, job, event):
            return
        self.exceptions.add(kind)
        number, target = slot.executor.number, slot.target
        self.waiting.append(UnreducedCrash(number, target, job, event, exception))

    def _is_known(self, slot: Slot, job: Job, died: WorkerDied) -> bool:
        assert job.test is not None
        entries, today = self.known.of(slot.executor.versions), datetime.now(UTC).date()
        of = slot.target.finding_class
        return entries.match("", job.test, died.kind, of, today, died.message) is not None
