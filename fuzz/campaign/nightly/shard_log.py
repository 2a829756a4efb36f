"""The shard log: events of one shard as lines of a file, readable while the shard runs.

A file that an event names is renamed into place before the event's line is written, and a line is
one write. So every complete line is valid and its file exists; at most the last line is
incomplete. Whatever process is killed, only the test in progress is lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any, Final, Self

from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.campaign.canonical import executor_class, key
from litmusfuzz.fuzz.campaign.event_log import EventLog, ExecutedTest
from litmusfuzz.fuzz.executors.protocol import noise_text
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.nightly_report import FindingKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.reason import Reason
    from litmusfuzz.reports.nightly_report import Kill
    from litmusfuzz.reports.records import ReportedFinding

VERSION: Final = 2
"""Version of the event log, in its first event."""
EVENTS: Final = "events.jsonl"
STOP: Final = "stop"
_LOCK: Final = "lock"
_PARENT: Final = re.compile(r"mutation of (\S+):")
_MEMORY: Final = re.compile(r"MemoryError|bad_alloc|RESOURCE_EXHAUSTED|[Oo]ut of memory")


def digest(test: LitmusTest) -> str:
    """SHA-256 of a test's bytes: equal if the test is reproduced."""
    return hashlib.sha256(dumps(Entry(test)).encode()).hexdigest()


class ShardLog(EventLog):
    """Writes the events of one shard.

    Parameters
    ----------
    folder : Path
        The shard's own folder; it is made here, and locked while this process lives.
    executor : str
    known : sequence of str
        Keys of earlier findings, which are their paths as well.
    """

    def __init__(self, folder: Path, executor: str, known: Sequence[str]) -> None:
        self.folder = folder
        self.executor = executor
        self.keys = {each: each for each in known}
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Unbuffered, so that a line is one write.
        self._file = (folder / EVENTS).open("ab", buffering=0)

    @property
    def stop_requested(self) -> bool:
        """True if the coordinator wants the shard to end."""
        return (self.folder / STOP).exists()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.close()

    def _write(self, kind: str, **fields: Any) -> None:
        line = {"kind": kind, "at": int(time.time()), **fields}
        data = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        while data:  # a full disk raises, a signal may cut it short
            data = data[self._file.write(data) :]

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self.folder))

    def _class(self, config: str) -> str:
        made = configuration(self.executor, config)
        return executor_class(self.executor, dict(made.settings), GUARANTEES[made.guarantees].name)

    # --- what happens ------------------------------------------------------------------

    def started(self, versions: Mapping[str, Mapping[str, str]]) -> None:
        """Log the process and the versions of the executor."""
        self._write(
            "start", version=VERSION, host=os.uname().nodename, pid=os.getpid(), versions=versions
        )

    def unavailable(self, config: str, why: str) -> None:
        """Log a configuration that cannot run here."""
        self._write("unavailable", config=config, why=why)

    def test_executed(self, executed: ExecutedTest) -> None:
        """Log all that it takes to reproduce the test, and its verdicts."""
        judged = executed.judged
        parent = _PARENT.match(executed.test.description)
        self._write(
            "test",
            index=executed.index,
            family=executed.family,
            parent=parent[1] if parent else "",
            config=executed.config,
            model=executed.model,
            noise=noise_text(executed.noise),
            run_seed=executed.run_seed,
            count=executed.count,
            sha256=digest(executed.test),
            verdicts={str(v): n for v, n in judged.verdicts.items()} if judged else {},
            reached=len(judged.allowed) if judged and executed.allowed else None,
            allowed=executed.allowed,
            seconds=round(executed.seconds, 4),
            end=executed.end,
            unreduced=self._relative(executed.unreduced) if executed.unreduced else None,
            key=self.keys[executed.known.path] if executed.known else None,
        )

    def seen_again(self, index: int, config: str, known: ReportedFinding) -> None:
        """Log one more test that shows a known finding."""
        self._write("seen_again", index=index, config=config, key=self.keys[known.path])

    def finding_added(
        self,
        index: int,
        reported: ReportedFinding,
        histogram: Mapping[Outcome, tuple[int, str]],
        reason: Reason | None,
    ) -> None:
        """Log a finding with all that the report needs."""
        finding = reported.entry.finding
        assert finding is not None
        name = key(
            reported.entry.test,
            kind=FindingKind.FORBIDDEN,
            rules=reason.broken if reason else (),
            executor_class=self._class(finding.configuration),
            model=GUARANTEES[finding.model],
        )
        self.keys[reported.path] = name
        self._write(
            "finding",
            index=index,
            key=name,
            file=reported.path.removeprefix(f"{self.folder}/"),
            executor_class=self._class(finding.configuration),
            config=finding.configuration,
            model=finding.model,
            cause=reported.cause,
            reason=reason.steps if reason else (),
            is_cycle=bool(reason and reason.cycle),
            edges=[(each.source, each.target) for each in reason.edges] if reason else (),
            arcs=getattr(reason, "arcs", ()),
            rules=reason.broken if reason else (),
            histogram=[(o.plain, count, verdict) for o, (count, verdict) in histogram.items()],
        )

    def script_run(self, reported: ReportedFinding) -> None:
        """Log that a finding's script was run; the finding's file has the result."""
        file = reported.path.removeprefix(f"{self.folder}/")
        self._write("script", key=self.keys[reported.path], file=file)

    def unconfirmed(self, index: int, path: Path) -> None:
        """Log a minimized finding that a fresh process does not show."""
        self._write("unconfirmed", index=index, file=self._relative(path))

    def worker_died(
        self, entry: Entry, path: Path, message: str, *, config: str, timed_out: bool
    ) -> None:
        """Log a worker death, with the kernels of the test that was running."""
        ended = FindingKind.OUT_OF_MEMORY if _MEMORY.search(message) else FindingKind.CRASHED
        self._write(
            "worker_death",
            finding_kind=FindingKind.TIMED_OUT if timed_out else ended,
            config=config,
            executor_class=self._class(config),
            message=message,
            file=self._relative(path),
            ops=sorted({node.definition.kernel_class for node in entry.test.effects}),
        )

    def unsound_clusters(self, test: LitmusTest, path: Path, config: str, added: Outcome) -> None:
        """Log clusters, chosen by an executor, that are unsound."""
        made = self._class(config)
        self._write(
            "unsound",
            key=key(test, kind=FindingKind.UNSOUND, rules=(), executor_class=made),
            file=self._relative(path),
            executor_class=made,
            config=config,
            added=str(added),
        )

    def canary_run(self, *, reported: bool) -> None:
        """Log a run of the canary."""
        self._write("canary", reported=reported)

    def mutant_done(self, kill: Kill) -> None:
        """Log the result for one mutant of the self-test."""
        self._write("kill", **asdict(kill))

    def finished(self, seconds: float, problem: str = "", restarts: int = 0) -> None:
        """Log the end of the shard."""
        self._write("end", seconds=round(seconds, 3), problem=problem, restarts=restarts)


def is_writing(folder: Path) -> bool:
    """True if the process that writes a shard log on this machine is still alive."""
    try:
        lock: IO[bytes] = (folder / _LOCK).open("rb")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
