"""Streams of events: a few findings, and long pseudo-random campaigns that are legal."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, dumps, outcome_from_plain
from litmusfuzz.reports.events import (
    CampaignEnded,
    CampaignResumed,
    CampaignStarted,
    CanaryRun,
    CauseChecked,
    CauseCompared,
    ClustersChosen,
    Compared,
    ConfigurationGenerated,
    ConfigurationUnavailable,
    Configured,
    Confirmed,
    Continued,
    CrashReduced,
    Executed,
    Executions,
    ExecutorTotals,
    FindingAdded,
    FindingKind,
    Generated,
    Kill,
    MutantRun,
    NotRun,
    Problem,
    Progress,
    ReductionEnded,
    ReductionStarted,
    ScriptRun,
    Searched,
    SeenAgain,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
    Space,
    Unconfirmed,
    WorkerDied,
)

if TYPE_CHECKING:
    from litmusfuzz.reports.events import AnyEvent

Stream = list[tuple[int, "AnyEvent"]]
STARTED = 1_800_000_000.0
FORBIDDEN = {"MP": {"r0": 1, "r1": 0, "X": 1, "Y": 1}, "SB": {"r0": 0, "r1": 0, "X": 1, "Y": 1}}
"""Classic shapes, each with its forbidden outcome."""
CANARY = "mutant/canary"
STALE = "mutant/stale-reads"
SPACE = Space(
    {"engine": ("pool", "own"), "threads": (4, 1, 2), "split": (False, True)},
    impossible=(("engine", "own", "threads", 1),),
    ops=("AssignAddVariableOp", "AssignVariableOp", "QueueEnqueueV2", "ReadVariableOp"),
    seldom=("split",),
)


def point(engine: str, threads: int, split: int) -> dict[str, Any]:
    """Of native's space."""
    return {"engine": engine, "threads": threads, "split": bool(split)}


CONFIGURED = (
    Configured("native", "plain", "rfc", "rfc", "native/plain", 0, point("pool", 4, 0)),
    Configured(
        *("native", "engine=pool,threads=2", "rfc", "program-order", "native/plain"),
        *(0, point("pool", 2, 0)),
    ),
    Configured("native", "split/fast", "relaxed", "relaxed", "native/split", 0),
    Configured("native", "product", "", "", "native/product"),
    Configured(STALE, "plain", "rfc", "rfc", f"{STALE}/plain"),
    Configured("tf", "plain", "rfc", "rfc", "tf/executor"),
    Configured("tf", "xla", "rfc", "rfc", "tf/xla"),
)
FAMILIES = ("dag", "loops", "queues", "clusterable")
KERNELS = ("AssignVariableOp", "ResourceScatterUpdate", "read")


@cache
def _litmus(name: str) -> Entry:
    return corpus_entry(next(path for path in LITMUS if path.stem == name))


@cache
def finding_text(
    name: str, executor: str, configuration: str, family: str, index: int, file: str
) -> str:
    """A file of a finding on a classic shape."""
    entry = _litmus(name)
    outcome = outcome_from_plain(entry.test, FORBIDDEN[name])
    finding = Finding(
        *(executor, configuration, "rfc", ((outcome, 3),), 64, {"delay_us_max": 20}),
        *({}, {"native": "1"}, 7, index, family),
        minimized=True,
        confirmed=True,
    )
    test = replace(entry.test, name=file.rpartition("/")[2].removesuffix(".yaml"))
    return dumps(replace(entry, test=test, finding=finding))


def litmus_text() -> str:
    """A file of a test without a finding."""
    return dumps(Entry(_litmus("MP").test))


def added(event: Executions, key: str, file: str, *, at: float, **changes: Any) -> FindingAdded:
    """A finding that a test showed."""
    name = sorted(FORBIDDEN)[sum(key.encode()) % 2]
    of = (event.executor, event.configuration, event.family, event.index)
    outcome = FORBIDDEN[name]
    allowed = sorted(_litmus(name).allowed["rfc"], key=str)
    return FindingAdded(
        **{
            "at": at,
            "index": event.index,
            "key": key,
            "file": file,
            "entry": finding_text(name, *of, file),
            "executor": event.executor,
            "configuration": event.configuration,
            "executor_class": f"{event.executor}/kind",
            "model": "rfc",
            "cause": "wrong + AssignVariableOp",
            "reason": ("a before b", "b before a"),
            "is_cycle": True,
            "arcs": (("w0", "r0"), ("r0", "w0")),
            "edges": (("w0", "w1"),),
            "rules": ("atomic",),
            "histogram": ((allowed[0].plain, 60, "allowed"), (outcome, 4, "forbidden")),
            "allowed_by": ("relaxed",),
            **changes,
        }
    )


PLAIN = Configured("native", "plain", "rfc", "rfc", "native/rfc")


def started(*configurations: Configured, **changes: Any) -> CampaignStarted:
    """The first event of a campaign."""
    usual = {"command": "run", "seed": 7, "asked_s": 60.0, "configurations": configurations}
    return CampaignStarted(**{"at": STARTED, **usual, **changes})


def executed(index: int, at: float, **changes: Any) -> Executed:
    """A test that showed allowed outcomes only."""
    usual: dict[str, Any] = {
        "family": "dag",
        "executor": "native",
        "configuration": "plain",
        "model": "rfc",
        "run_seed": 1,
        "count": 64,
        "sha256": "",
        "verdicts": {"allowed": 64},
    }
    return Executed(at=STARTED + at, index=index, **usual | changes)


def shown(index: int, at: float, **changes: Any) -> Executed:
    """A test that showed a forbidden outcome."""
    verdicts = {"allowed": 60, "forbidden": 4}
    return executed(index, at, verdicts=verdicts, unreduced=f"unreduced/{index}.yaml", **changes)


def died(at: float, *suspects: int, **changes: Any) -> WorkerDied:
    """A worker crashed, in whose process these tests showed a forbidden outcome before."""
    usual: dict[str, Any] = {
        "kind": FindingKind.CRASHED,
        "executor": "native",
        "configuration": "plain",
        "executor_class": "native/rfc",
        "message": "signal 11",
        "file": "crashed/1.yaml",
        "entry": litmus_text(),
        "ops": ("read",),
        "suspects": tuple((index, "plain") for index in suspects),
    }
    return WorkerDied(at=STARTED + at, **usual | changes)


def _searched(index: int) -> Searched:
    """A search of the schedules of a test, whole or cut off."""
    whole = bool(index % 2)
    first = {"search": 2} if whole else {"search, 0 preemptions": 1, "pos": index + 1}
    return Searched(10 + index, 20 + index, whole, 0 if whole else 64, first)


@dataclass
class _Shard:
    number: int
    executor: str
    queue: list[tuple[Generated, Configured]] = field(default_factory=list)
    generated: list[Configured] = field(default_factory=list)
    shown: list[Executions] = field(default_factory=list)
    """Tests of its present process that showed a forbidden outcome."""
    given: list[Executions] = field(default_factory=list)
    """Tests that it minimizes."""
    going_on: list[tuple[Executions, Configured]] = field(default_factory=list)
    """The last event of each test that has shown nothing forbidden."""
    reducing: Executions | None = None


class RandomCampaign:
    """A pseudo-random campaign; `stream` has its events.

    Parameters
    ----------
    seed : int
    apart : bool
        True if nothing in one shard depends on another one, so that their events may come in any
        order: no finding of two shards has the same key, and no shard minimizes what another left.
    """

    def __init__(self, seed: int, *, apart: bool = False) -> None:
        self.rng = random.Random(seed)
        self.apart = apart
        self.stream: Stream = []
        self.at = STARTED
        self.index = 0
        self.shards: list[_Shard] = []
        self.planned = 0
        self.shard_of: dict[int, int] = {}
        """By identity of an event, which stays in the stream."""
        self.left: dict[tuple[int, str, str], Executions] = {}
        """Pending tests, of all shards."""
        self.suspects: dict[tuple[int, str, str], Executions] = {}
        self.settled: set[tuple[int, str, str]] = set()
        self.keys: dict[str, list[str]] = {}
        """Keys of findings by executor; of shard and executor if `apart`."""
        self.happened: set[tuple[str, int]] = set()
        """Titles of configurations that have chosen clusters for a test; "compared"."""
        self.spent = 0.0
        self._mutants = 0
        self._log(
            0,
            CampaignStarted(
                at=self.at,
                command="litmusfuzz nightly",
                seed=seed,
                number=seed + 3,
                asked_s=600.0,
                tests=None,
                configurations=CONFIGURED,
                spaces={"native": SPACE},
                noise="light",
                python="/usr/bin/python3",
                unattended=bool(seed % 2),
                selftest_s=30.0,
            ),
        )

    def _log(self, shard: int, event: AnyEvent) -> None:
        self.stream.append((shard, event))

    def _tick(self) -> float:
        """A later time; all durations are multiples of 1/1024, so that sums are exact."""
        self.at += self.rng.randrange(1, 2048) / 1024
        return self.at

    def _seconds(self) -> float:
        return self.rng.randrange(4096) / 1024

    def run(self, steps: int) -> Stream:
        """So many steps, with two resumptions."""
        for step in range(steps):
            if len(self.shards) < 3 and self.rng.random() < 0.2:
                self._plan()
            if self.shards:
                self._act(self.rng.choice(self.shards))
            if self.rng.random() < 0.02 and not self.apart:
                self.spent += self._seconds()
                size = self.rng.randrange(1 << 20)
                self._log(0, Progress(at=self._tick(), spent_s=self.spent, disk_bytes=size))
            if step in (steps // 3, 2 * steps // 3):
                self._resume()
        return self.stream

    # --- shards ------------------------------------------------------------------------

    def _plan(self) -> None:
        """Plan and start a shard; sometimes its process starts without success."""
        self.planned += 1
        executor = self.rng.choice(sorted({each.executor for each in CONFIGURED}))
        shard = _Shard(self.planned, executor)
        busy = {id(each) for other in self.shards for each in other.given}
        if not self.apart:
            left = [e for e in self.left.values() if e.executor == executor and id(e) not in busy]
            running = {other.number for other in self.shards}
            shard.given = [e for e in left if self.shard_of[id(e)] not in running][:3]
        names = tuple(each.name for each in CONFIGURED if each.executor == executor)
        files = tuple(str(each.unreduced) for each in shard.given)
        at = self._tick()
        self._log(
            shard.number,
            ShardPlanned(
                at=at,
                configurations={executor: names},
                minimizes=files,
                workers=1 + shard.number % 2,
            ),
        )
        self.shards.append(shard)
        if self.rng.random() < 0.9:
            host, pid = self.rng.choice((("one", 11), ("one", 12), ("two", 11)))
            version = str(1 + shard.number % 2)  # of one that was resumed with another one
            versions = {executor: {"numpy": "2", executor: version}, CANARY: {}}
            started = ShardStarted(at=self._tick(), host=host, pid=pid, versions=versions)
            self._log(shard.number, started)

    def _end(self, shard: _Shard, *, lost: bool) -> None:
        """A shard ends, or its process is lost with all that was in progress."""
        if not lost:
            self._end_reduction(shard)
            for generated, each in shard.queue:
                self._log(
                    shard.number,
                    NotRun(
                        at=self._tick(),
                        index=generated.index,
                        executor=each.executor,
                        configuration=each.name,
                    ),
                )
        seconds = 0.0 if lost else self._seconds() + 1
        problem = self.rng.choice(("", "", "the disk is full"))
        self._log(
            shard.number, ShardEnded(at=self._tick(), seconds=seconds, lost=lost, problem=problem)
        )
        self.shards.remove(shard)

    def _resume(self) -> None:
        """The campaign ends, or its process is killed, and is resumed."""
        if self.rng.random() < 0.5:
            for shard in tuple(self.shards):
                self._end(shard, lost=False)
            self._log(0, Problem(at=self._tick(), message="the canary was not reported"))
            self._log(0, CampaignEnded(at=self._tick(), spent_s=self.spent, interrupted=True))
        self.at += 3600
        self._log(0, CampaignResumed(at=self._tick(), asked_s=900.0, tests=5000, workers=3))
        for shard in tuple(self.shards):
            self._end(shard, lost=True)

    # --- what a shard does --------------------------------------------------------------

    def _act(self, shard: _Shard) -> None:
        """One action."""
        actions = [
            *[self._generate] * 4,
            *[self._execute] * 8,
            *[self._continue] * 2,
            *[self._reduce] * 4,
            *[self._settle] * 2,
            *[self._check] * 2,
            self._choose_clusters,
            self._compare,
        ]
        self.rng.choice(actions)(shard)
        if self.rng.random() < 0.01:
            self._end(shard, lost=self.rng.random() < 0.3)

    def _generate(self, shard: _Shard) -> None:
        lacking, busy = {}, []
        queue = []
        self.index += 1
        if shard.executor == "native" and self.rng.random() < 0.1:
            shard.generated.append(self._configuration(shard))
        generated = {each.name: each for each in shard.generated}.values()
        for each in (*CONFIGURED, *generated):
            if each.executor == shard.executor and each.name not in ("split/fast", "product"):
                kind = self.rng.random()
                if kind < 0.1:
                    lacking[each.title] = tuple(self.rng.sample(("queues", "loops"), 2))
                elif kind < 0.2:
                    busy.append(each.title)
                elif kind < 0.8:
                    queue.append(each)
        event = Generated(
            at=self._tick(),
            index=self.index,
            family=self.rng.choice(FAMILIES),
            executor=shard.executor,
            ops={
                "ReadVariableOp": self.rng.randrange(1, 4),
                "AssignVariableOp": 2,
                **({"AssignAddVariableOp": 1} if self.index % 3 == 0 else {}),
            },
            lacking=lacking,
            not_run=tuple(busy),
            clusters=self.rng.choice(("", "", "sound", "unsound")),
            racing=self.rng.random() < 0.2,
            generating_s=self._seconds(),
            judging_s=self._seconds(),
            validating_s=self._seconds(),
        )
        self._log(shard.number, event)
        shard.queue += [(event, each) for each in queue]

    def _configuration(self, shard: _Shard) -> Configured:
        """Generate a configuration; other shards may generate the same."""
        engine, threads = self.rng.choice((("pool", 4), ("pool", 1), ("own", 4)))
        made = Configured(
            *("native", f"engine={engine};threads={threads};split", "rfc", "rfc", "native/rfc"),
            *(0, point(engine, threads, 1)),
        )
        self._log(shard.number, ConfigurationGenerated(at=self._tick(), configuration=made))
        return made

    def _execute(self, shard: _Shard) -> None:
        if not shard.queue:
            return
        generated, of = shard.queue.pop(0)
        end = self.rng.choice((*["judged"] * 12, "refused: queues", "crashed", "timed out"))
        verdicts, unreduced, key = {}, None, None
        reached = allowed = None
        if end == "judged":
            verdicts = {"allowed": self.rng.randrange(1, 65)}
            if self.rng.random() < 0.2:
                verdicts["unknown"] = self.rng.randrange(1, 9)
            if self.rng.random() < 0.5:
                verdicts["forbidden"] = self.rng.randrange(1, 9)
                unreduced = f"unreduced/{generated.index}-{of.name.replace('/', '-')}.yaml"
                keys = self._known(shard)
                key = self.rng.choice(keys) if keys and self.rng.random() < 0.4 else None
            if self.rng.random() < 0.6:
                allowed = self.rng.randrange(2, 9)
                reached = self.rng.randrange(allowed + 2)
        event = Executed(
            at=self._tick(),
            index=generated.index,
            family=generated.family,
            executor=of.executor,
            configuration=of.name,
            model=of.model,
            run_seed=5,
            count=64,
            sha256="0" * 64,
            verdicts=verdicts,
            reached=reached,
            allowed=allowed,
            searched=None if generated.index % 3 else _searched(generated.index),
            **self._ended(end, unreduced, key),
        )
        self._log(shard.number, event)
        self._note(shard, event, of)
        if end in ("crashed", "timed out"):
            self._die(shard, of, minimizing=False, timed_out=end == "timed out")

    def _ended(self, end: str, unreduced: str | None, key: str | None) -> dict[str, Any]:
        """The last fields of executions."""
        return {
            "seconds": self._seconds(),
            "judging_s": self._seconds(),
            "end": end,
            "unreduced": unreduced,
            "key": key,
            "counters": {"compiled": 1, "seconds": self._seconds()},
        }

    def _note(self, shard: _Shard, event: Executions, of: Configured) -> None:
        """What becomes of a test that has been executed."""
        if event.unreduced is not None:
            shard.shown.append(event)
            self.shard_of[id(event)] = shard.number
            if event.key is None:
                self.left[_run(event)] = event
        elif event.end == "judged":
            shard.going_on.append((event, of))

    def _continue(self, shard: _Shard) -> None:
        """Another round of a test."""
        if not shard.going_on:
            return
        last, of = shard.going_on.pop(self.rng.randrange(len(shard.going_on)))
        end = self.rng.choice((*["judged"] * 6, "crashed", "refused: memory"))
        verdicts, unreduced, key = {}, None, None
        reached = last.reached
        if end == "judged":
            verdicts = {"allowed": self.rng.randrange(1, 513)}
            if self.rng.random() < 0.2:
                verdicts["unknown"] = self.rng.randrange(1, 9)
            if self.rng.random() < 0.3:
                verdicts["forbidden"] = self.rng.randrange(1, 9)
                name = last.configuration.replace("/", "-")
                unreduced = f"unreduced/{last.index}-{name}.yaml"
                keys = self._known(shard)
                key = self.rng.choice(keys) if keys and self.rng.random() < 0.4 else None
            if reached is not None:
                reached += self.rng.randrange(2)
        event = Continued(
            at=self._tick(),
            index=last.index,
            family=last.family,
            executor=last.executor,
            configuration=last.configuration,
            model=last.model,
            round=last.round + 1 if isinstance(last, Continued) else 1,
            run_seed=6,
            count=512,
            verdicts=verdicts,
            reached_before=last.reached,
            reached=reached,
            allowed=last.allowed,
            **self._ended(end, unreduced, key),
        )
        self._log(shard.number, event)
        self._note(shard, event, of)
        if end == "crashed":
            self._die(shard, of, minimizing=False, timed_out=False)

    def _die(self, shard: _Shard, of: Configured, *, minimizing: bool, timed_out: bool) -> None:
        """A worker dies; what its process had shown becomes suspect, unless it is settled."""
        shown = [] if timed_out else [e for e in shard.shown if _run(e) not in self.settled]
        kind = self.rng.choice((FindingKind.CRASHED, FindingKind.OUT_OF_MEMORY))
        at = self._tick()
        self._log(
            shard.number,
            WorkerDied(
                at=at,
                kind=FindingKind.TIMED_OUT if timed_out else kind,
                executor=of.executor,
                configuration=of.name,
                executor_class=of.executor_class,
                message=f"signal 11: at 0x{self.rng.randrange(1 << 20):x}",
                file=f"crashed/{shard.number}-{at}.yaml",
                entry=litmus_text(),
                ops=tuple(self.rng.sample(KERNELS, 2)),
                minimizing=minimizing,
                suspects=tuple((each.index, each.configuration) for each in shown),
            ),
        )
        if not timed_out and round(1e3 * at) % 2:
            self._log(
                shard.number,
                CrashReduced(
                    at=self._tick(),
                    died_on=f"crashed/{shard.number}-{at}.yaml",
                    raised="KeyError at system/core.py:read",
                    file=f"crashed/{shard.number}-{at}-reduced.yaml",
                    entry=litmus_text(),
                    executor=of.executor,
                    configuration=of.name,
                    needs="",
                    complete=True,
                    script_shows_it=None,
                ),
            )
        shard.shown.clear()
        for each in shown:
            self.suspects[_run(each)] = self.left[_run(each)] = each

    def _known(self, shard: _Shard) -> list[str]:
        """Keys of findings that a test of this shard may show."""
        name = f"{shard.number}/" if self.apart else ""
        return self.keys.setdefault(f"{name}{shard.executor}", [])

    # --- findings ----------------------------------------------------------------------

    def _reduce(self, shard: _Shard) -> None:
        """Start a reduction, or continue one."""
        if shard.reducing is None:
            mine = [e for e in (*shard.shown, *shard.given) if _run(e) in self.left]
            if mine:
                chosen = self.rng.choice(mine)
                shard.reducing = chosen
                where = (chosen.index, chosen.executor, chosen.configuration)
                index, executor, name = where
                at = self._tick()
                started = ReductionStarted(
                    at=at, index=index, executor=executor, configuration=name
                )
                self._log(shard.number, started)
            return
        event = shard.reducing
        key, is_known = "", False
        result = self.rng.random()
        if _run(event) not in self.left:
            pass  # resolved meanwhile
        elif result < 0.1:
            of = next(e for e in CONFIGURED if e.executor == event.executor)
            self._die(shard, of, minimizing=True, timed_out=False)
            return
        elif _run(event) in self.suspects:
            self._settle_one(shard, event)
        elif result < 0.5:
            key = self._find(shard, event)
        elif result < 0.7 and self._known(shard):
            key, is_known = self.rng.choice(self._known(shard)), True
            self._compare_causes(shard, event, key)
            self._log(
                shard.number,
                SeenAgain(
                    at=self._tick(),
                    index=event.index,
                    executor=event.executor,
                    configuration=event.configuration,
                    key=key,
                ),
            )
            del self.left[_run(event)]
        elif result < 0.8:
            self._refute(shard, event)
        self._end_reduction(shard, key, is_known=is_known)

    def _compare_causes(self, shard: _Shard, event: Executed, key: str, finding: str = "") -> None:
        self._log(
            shard.number,
            CauseCompared(
                at=self._tick(),
                index=event.index,
                executor=event.executor,
                configuration=event.configuration,
                finding=finding,
                cause=key,
                verdict=self.rng.choice(("explained", "new", "undecided")),
                seconds=0.0 if finding else self._seconds(),
            ),
        )

    def _end_reduction(self, shard: _Shard, key: str = "", *, is_known: bool = False) -> None:
        if (event := shard.reducing) is not None:
            self._log(
                shard.number,
                ReductionEnded(
                    at=self._tick(),
                    index=event.index,
                    executor=event.executor,
                    configuration=event.configuration,
                    key=key,
                    known=is_known,
                    executions=self.rng.randrange(1000),
                    seconds=self._seconds(),
                    counters={"seconds": self._seconds()},
                ),
            )
            shard.reducing = None

    def _find(self, shard: _Shard, event: Executions) -> str:
        """A finding: new, or found by two shards at the same time; perhaps with a script."""
        keys = self._known(shard)
        if keys and self.rng.random() < 0.3:
            key = self.rng.choice(keys)
        else:
            key = f"{event.executor}-{shard.number if self.apart else ''}-{len(keys)}"
            keys.append(key)
        file = f"findings/{key.replace('/', '-')}-{event.index}.yaml"
        self._log(shard.number, added(event, key, file, at=self._tick()))
        for other in keys[-2:]:
            self._compare_causes(shard, event, other, key)
        self.left.pop(_run(event))
        self.suspects.pop(_run(event), None)
        self.settled.add(_run(event))
        if self.rng.random() < 0.5:
            shows_it = self.rng.random() < 0.5
            self._log(
                shard.number, ScriptRun(at=self._tick(), key=key, file=file, shows_it=shows_it)
            )
        return key

    def _refute(self, shard: _Shard, event: Executions) -> None:
        for _ in range(self.rng.choice((1, 1, 2))):
            self._log(
                shard.number,
                Unconfirmed(
                    at=self._tick(),
                    index=event.index,
                    executor=event.executor,
                    configuration=event.configuration,
                    file=f"unconfirmed/{event.index}.yaml",
                    executions=self.rng.randrange(1000),
                ),
            )
        if self.rng.random() < 0.3:  # another process shows it
            self._find(shard, event)
            return
        self.left.pop(_run(event))
        self.suspects.pop(_run(event), None)
        self.settled.add(_run(event))

    def _settle(self, shard: _Shard) -> None:
        """Run a suspect again."""
        mine = [
            e
            for e in self.suspects.values()
            if self.shard_of[id(e)] == shard.number or any(e is other for other in shard.given)
        ]
        if mine:
            self._settle_one(shard, self.rng.choice(mine))

    def _settle_one(self, shard: _Shard, event: Executions) -> None:
        kind = self.rng.random()
        if kind < 0.3:
            self._find(shard, event)
        elif kind < 0.6:
            self._refute(shard, event)
        else:
            self._log(
                shard.number,
                Confirmed(
                    at=self._tick(),
                    index=event.index,
                    executor=event.executor,
                    configuration=event.configuration,
                ),
            )
            del self.suspects[_run(event)]
            self.settled.add(_run(event))
            if event.key is not None:
                del self.left[_run(event)]

    # --- the rest ----------------------------------------------------------------------

    def _choose_clusters(self, shard: _Shard) -> None:
        of = self.rng.choice([e for e in CONFIGURED if e.executor == shard.executor])
        index = self._first_time(of.title)
        if index is None:
            return
        verdict = self.rng.choice(("sound", "unsound", "unknown"))
        self._log(
            shard.number,
            ClustersChosen(
                at=self._tick(),
                index=index,
                executor=of.executor,
                configuration=of.name,
                verdicts={verdict: 1 + self.index % 3, "unknown": 1},
                racing=int(self.rng.random() < 0.5),
                seconds=self._seconds(),
            ),
        )
        key = f"unsound-{of.executor}" + (f"-{shard.number}" if self.apart else "")
        if verdict == "unsound" and self.rng.random() < 0.5:
            again = SeenAgain(
                at=self._tick(), index=None, executor=of.executor, configuration=of.name, key=key
            )
            new = FindingAdded(
                at=self.at,
                index=index,
                key=key,
                file=f"findings/{key.replace('/', '-')}.yaml",
                entry=litmus_text(),
                kind=FindingKind.UNSOUND,
                executor=of.executor,
                configuration=of.name,
                executor_class=of.executor_class,
                cause="unsound clusters",
                reason=("the clusters add r0=1",),
            )
            is_new = not any(isinstance(e, FindingAdded) and e.key == key for _, e in self.stream)
            self._log(shard.number, new if is_new else again)

    def _compare(self, shard: _Shard) -> None:
        index = self._first_time("compared")
        if index is None:
            return
        totals = {
            each.title: ExecutorTotals(each.model, *(self.rng.randrange(64) for _ in range(5)))
            for each in self.rng.sample(CONFIGURED, 2)
        }
        self._log(
            shard.number,
            Compared(at=self._tick(), index=index, family="dag", totals=totals),
        )

    def _first_time(self, what: str) -> int | None:
        """A generated test to which this has not happened; None if it has to the one chosen."""
        index = self.rng.randrange(self.index + 1)
        is_first = (what, index) not in self.happened
        self.happened.add((what, index))
        return index if is_first else None

    def _check(self, shard: _Shard) -> None:
        kind = self.rng.random()
        of = self.rng.choice([e for e in CONFIGURED if e.executor == shard.executor])
        if kind < 0.1 and self._known(shard):
            self._log(
                shard.number,
                CauseChecked(
                    at=self._tick(),
                    cause=self.rng.choice(self._known(shard)),
                    executor=of.executor,
                    configuration=of.name,
                    executions=64,
                    seen=0,
                    shows=self.rng.choice((None, False)),
                    seconds=self._seconds(),
                ),
            )
        elif kind < 0.7:
            canary = CanaryRun(at=self._tick(), reported=self.rng.random() < 0.9)
            self._log(shard.number, canary)
        elif kind < 0.9:
            self._mutants += 1  # a mutant runs once
            name = f"{self.rng.randrange(4)}-{self._mutants}"
            mutant = f"mutant/{name}-{shard.number if self.apart else ''}"
            seconds = self.rng.choice((None, self._seconds()))
            self._log(
                shard.number,
                MutantRun(
                    at=self._tick(),
                    kill=Kill(
                        mutant=mutant,
                        executor="native",
                        seconds=seconds,
                        graphs=self.rng.randrange(99),
                        family="dag" if seconds is not None else "",
                        setup="controlled",
                    ),
                ),
            )
        else:
            self._log(
                shard.number,
                ConfigurationUnavailable(
                    at=self._tick(), executor=of.executor, configuration=of.name, why="no device"
                ),
            )


def _run(event: Executions) -> tuple[int, str, str]:
    return event.index, event.executor, event.configuration
