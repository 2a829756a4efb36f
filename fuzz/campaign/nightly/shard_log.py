"""What a shard has done so far: a folder, and in it a line for each thing that happened.

Files come first, by rename, then the line that names them, in one write: a line that is
there is whole, or the last one and without its end; what it names is there too. So
whatever is killed, the test in flight is lost and nothing else.
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
from litmusfuzz.reports.nightly_report import Sort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.reason import Reason
    from litmusfuzz.reports.nightly_report import Kill
    from litmusfuzz.reports.records import ReportedFinding

LINES: Final = "journal.jsonl"
STOP: Final = "stop"
_LOCK: Final = "lock"
_PARENT: Final = re.compile(r"mutation of (\S+):")
_MEMORY: Final = re.compile(r"MemoryError|bad_alloc|RESOURCE_EXHAUSTED|[Oo]ut of memory")


def digest(test: LitmusTest) -> str:
    """Of a test's bytes: what tells whether it was made again."""
    return hashlib.sha256(dumps(Entry(test)).encode()).hexdigest()


class ShardLog(EventLog):
    """Writes what happens in one shard.

    Parameters
    ----------
    folder : Path
        The shard's own; made here, and locked as long as this process lives.
    executor : str
    known : sequence of str
        Keys of findings known before, which are their paths as well.
    """

    def __init__(self, folder: Path, executor: str, known: Sequence[str]) -> None:
        self.folder = folder
        self.executor = executor
        self.keys = {each: each for each in known}
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Unbuffered: a line is one write.
        self._file = (folder / LINES).open("ab", buffering=0)

    @property
    def told_to_stop(self) -> bool:
        """Whether the writer wants the shard to end."""
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
        """Who does it, and on what."""
        self._write("start", host=os.uname().nodename, pid=os.getpid(), versions=versions)

    def unavailable(self, config: str, why: str) -> None:
        """A configuration that cannot run here."""
        self._write("unavailable", config=config, why=why)

    def tested(self, tested: ExecutedTest) -> None:
        """All that it takes to make the test again, and how it went."""
        judged = tested.judged
        parent = _PARENT.match(tested.test.description)
        self._write(
            "test",
            index=tested.index,
            family=tested.family,
            parent=parent[1] if parent else "",
            config=tested.config,
            model=tested.model,
            noise=noise_text(tested.noise),
            run_seed=tested.run_seed,
            count=tested.count,
            sha256=digest(tested.test),
            verdicts={str(v): n for v, n in judged.verdicts.items()} if judged else {},
            reached=len(judged.allowed) if judged and tested.allowed else None,
            allowed=tested.allowed,
            seconds=round(tested.seconds, 4),
            end=tested.end,
            unreduced=self._relative(tested.unreduced) if tested.unreduced else None,
            key=self.keys[tested.known.path] if tested.known else None,
        )

    def again(self, index: int, config: str, known: ReportedFinding) -> None:
        """One graph more that shows it."""
        self._write("again", index=index, config=config, key=self.keys[known.path])

    def found(
        self,
        index: int,
        found: ReportedFinding,
        histogram: Mapping[Outcome, tuple[int, str]],
        reason: Reason | None,
    ) -> None:
        """A finding, with what its reports will need."""
        finding = found.entry.finding
        assert finding is not None
        name = key(
            found.entry.test,
            sort=Sort.FORBIDDEN,
            rules=reason.broken if reason else (),
            executor_class=self._class(finding.configuration),
            model=GUARANTEES[finding.model],
        )
        self.keys[found.path] = name
        self._write(
            "found",
            index=index,
            key=name,
            file=found.path.removeprefix(f"{self.folder}/"),
            executor_class=self._class(finding.configuration),
            config=finding.configuration,
            model=finding.model,
            cause=found.cause,
            reason=reason.steps if reason else (),
            is_cycle=bool(reason and reason.cycle),
            edges=[(each.source, each.target) for each in reason.edges] if reason else (),
            arcs=getattr(reason, "arcs", ()),
            rules=reason.broken if reason else (),
            histogram=[(o.plain, count, verdict) for o, (count, verdict) in histogram.items()],
        )

    def scripted(self, found: ReportedFinding) -> None:
        """Its file says how the script went."""
        file = found.path.removeprefix(f"{self.folder}/")
        self._write("script", key=self.keys[found.path], file=file)

    def unconfirmed(self, index: int, path: Path) -> None:
        """No finding, but kept."""
        self._write("unconfirmed", index=index, file=self._relative(path))

    def died(self, entry: Entry, path: Path, message: str, *, config: str, timed_out: bool) -> None:
        """What the worker ran."""
        sort = Sort.OUT_OF_MEMORY if _MEMORY.search(message) else Sort.CRASHED
        self._write(
            "death",
            sort=Sort.TIMED_OUT if timed_out else sort,
            config=config,
            executor_class=self._class(config),
            message=message,
            file=self._relative(path),
            ops=sorted({node.definition.kernel_class for node in entry.test.effects}),
        )

    def unsound(self, test: LitmusTest, path: Path, config: str, added: Outcome) -> None:
        """Clusters chosen wrongly."""
        made = self._class(config)
        self._write(
            "unsound",
            key=key(test, sort=Sort.UNSOUND, rules=(), executor_class=made),
            file=self._relative(path),
            executor_class=made,
            config=config,
            added=str(added),
        )

    def canary(self, *, reported: bool) -> None:
        """Counted."""
        self._write("canary", reported=reported)

    def killed(self, kill: Kill) -> None:
        """What became of a mutant in the self-test."""
        self._write("kill", **asdict(kill))

    def finished(self, seconds: float, problem: str = "", restarts: int = 0) -> None:
        """The shard came to its end."""
        self._write("end", seconds=round(seconds, 3), problem=problem, restarts=restarts)


def held(folder: Path) -> bool:
    """Whether the process that writes a spool on this machine still lives."""
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
