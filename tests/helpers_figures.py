"""Every figure of a report, computed a second way: from the list of events, all at once.

The classes have a method for each field of a report and of what it consists of; a field without
one is an error. They keep no counts, and share no code with `litmusfuzz.reports.fold`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import fields
from functools import cache, cached_property
from itertools import combinations
from pathlib import PurePosixPath
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from helpers_events import CANARY

from litmusfuzz.corpus.outcome import nearest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest, Entry, Script, loads, outcome_from_plain
from litmusfuzz.reports import events as e
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.open_tests import Pending, UncheckedTest, UnconfirmedTest
from litmusfuzz.reports.report import (
    FamilyTotals,
    Moment,
    Pruned,
    Reached,
    ReportedFinding,
    SettingCoverage,
    ShardLine,
    Share,
    ValueTotals,
    WorkerHealth,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from helpers_events import Stream

T = TypeVar("T")
Run = tuple[int, str, str]


@cache
def read(text: str) -> Entry:
    """A file of an event."""
    return loads(text)


def total(numbers: Iterable[float], digits: int = 3) -> float:
    """The sum of durations, to the microsecond."""
    return round(sum(round(1e6 * n) for n in numbers) / 1e6, digits)


def made(of: type[T], second: object, *omitted: str) -> T:
    """A dataclass whose every field is computed by the method of its name."""
    return of(**{f.name: getattr(second, f.name)() for f in fields(of) if f.name not in omitted})


class _Events:
    """All events, and those of a kind with shard and place."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.by_kind: dict[type, list[Any]] = {}
        for place, (shard, event) in enumerate(stream):
            self.by_kind.setdefault(type(event), []).append((place, shard, event))
        self.about: dict[Run, list[tuple[int, Any]]] = {}
        for place, (_, event) in enumerate(stream):
            if getattr(event, "index", None) is not None and hasattr(event, "configuration"):
                self.about.setdefault(run(event), []).append((place, event))
        self.runs = {run(x): _OfRun(self, x) for x in self.judged if is_forbidden(x)}
        self.configured = self.of(e.CampaignStarted)[0].configurations
        self.generated = [x.configuration for x in self.of(e.ConfigurationGenerated)]
        self.shares = {(x.executor, x.name): (x.executor, "product") for x in self.generated}
        self.shares |= {(x.executor, x.name): (x.executor, x.name) for x in self.configured}
        """The line of the report that has a configuration; generated ones share one."""

    def at(self, kind: type[T]) -> list[tuple[int, int, T]]:
        """Place, shard, and event."""
        return self.by_kind.get(kind, [])

    def of(self, kind: type[T]) -> list[T]:
        return [event for _, _, event in self.at(kind)]

    @cached_property
    def executed(self) -> list[e.Executed]:
        return [x for x in self.of(e.Executed) if x.executor != CANARY]

    @cached_property
    def judged(self) -> list[e.Executed | e.Continued]:
        """First executions and further rounds."""
        return [*self.executed, *self.of(e.Continued)]

    @property
    def ran(self) -> list[e.Executed]:
        return [x for x in self.executed if not x.end.startswith("refused")]

    @cached_property
    def keys(self) -> list[str]:
        """Of the findings that something shows, by the first time."""
        found = {x.key for x in self.of(e.FindingAdded)}
        first = {k: min(at for at, _ in seen) for k in found if (seen := self.sightings(k))}
        return sorted(first, key=lambda key: (first[key], key))

    def sightings(self, key: str) -> list[tuple[float, str]]:
        """Time and configuration of each."""
        unsound = [x for x in self.of(e.FindingAdded) if x.kind is FindingKind.UNSOUND]
        without = [x for x in self.of(e.SeenAgain) if x.index is None]
        return [
            *((x.seen_at, x.line.configuration) for x in self.runs.values() if x.shows == key),
            *((x.at, x.configuration) for x in (*unsound, *without) if x.key == key),
        ]

    def family_of(self, key: str) -> str | None:
        finding = read(self.first(key).entry).finding
        return None if finding is None else finding.family

    def first(self, key: str) -> e.FindingAdded:
        return next(x for x in self.of(e.FindingAdded) if x.key == key)


def run(event: Any) -> Run:
    """What an event is about: a test in a configuration of an executor."""
    return event.index, event.executor, event.configuration


def is_forbidden(event: e.Executed | e.Continued) -> bool:
    """True if the test showed a forbidden outcome."""
    return event.verdicts.get("forbidden", 0) > 0


class _OfRun:
    """A test that showed a forbidden outcome: what the events about it amount to."""

    def __init__(self, campaign: _Events, line: e.Executed | e.Continued) -> None:
        self.line = line

        def places(kind: type, *wanted: FindingKind) -> list[tuple[int, Any]]:
            return [
                (place, x)
                for place, x in campaign.about[run(line)]
                if isinstance(x, kind) and (not wanted or x.kind in wanted)
            ]

        found = places(e.FindingAdded, FindingKind.FORBIDDEN)
        self.refuted = refuted = [x for _, x in places(e.Unconfirmed)]
        doubted = [
            place
            for place, _, x in campaign.at(e.WorkerDied)
            if (line.index, line.configuration) in x.suspects and x.executor == line.executor
        ]
        again = [x for _, x in places(e.SeenAgain)]
        confirmed = found or places(e.Confirmed)
        self.unconfirmed = bool(refuted) and not confirmed
        self.suspect = bool(doubted) and not confirmed
        named = [x for _, x in found[-1:]] or [x for x in (line, *again) if x.key is not None]
        self.key = named[0].key if named else None
        self.seen_at = named[0].at if named else 0.0
        self.often = line.verdicts["forbidden"], sum(line.verdicts.values())
        (last,) = [place for place, x in campaign.about[run(line)] if x is line]
        compared = [(place, x) for place, x in places(e.CauseCompared) if not x.finding]
        explained = [place for place, x in compared if x.verdict == "explained"]
        since = max([last, *explained])
        self.left_undecided = tuple(
            sorted(
                {
                    x.cause
                    for place, x in compared
                    if x.verdict == "undecided" and x.seconds and place > since
                }
            )
        )

    @property
    def shows(self) -> str | None:
        return None if self.unconfirmed or self.suspect else self.key

    @property
    def pending(self) -> bool:
        return not self.unconfirmed and self.shows is None


class _OfShare:
    """Of a configuration, or of a family on an executor."""

    def __init__(self, campaign: _Events, executor: str, part: str, *, is_family: bool) -> None:
        self.all, self.of, self.part, self.is_family = campaign, executor, part, is_family
        mine = [x for x in campaign.executed if self._mine(x)]
        self.ran = [x for x in mine if not x.end.startswith("refused")]
        self.given = mine
        self.further = [x for x in campaign.of(e.Continued) if self._mine(x)]
        refusals = [x.end.removeprefix("refused: ") for x in mine if x.end.startswith("refused")]
        self.refusals: list[tuple[str, ...]] = [(each,) for each in refusals]
        for x in campaign.of(e.Generated):
            for each, (of, name) in campaign.shares.items():
                title = "/".join(each)
                here = of, x.family if is_family else name
                if title in x.lacking and here == (executor, part):
                    self.refusals.append(x.lacking[title])
        close = [] if is_family else campaign.of(e.ReductionEnded)
        self.reductions = [x for x in close if self._mine(x)]
        chosen = [] if is_family else campaign.of(e.ClustersChosen)
        self.chosen = [x for x in chosen if self._mine(x)]
        self.configured = [
            x
            for x in campaign.configured
            if not is_family and (x.executor, x.name) == (executor, part)
        ]

    def _mine(self, x: Any) -> bool:
        if self.is_family:
            return (x.executor, x.family) == (self.of, self.part)
        return self.all.shares.get((x.executor, x.configuration)) == (self.of, self.part)

    def _titles(self) -> set[str]:
        here = self.of, self.part
        return {"/".join(each) for each, share in self.all.shares.items() if share == here}

    def name(self) -> str:
        return f"{self.of}/{self.part}"

    def executor(self) -> str:
        return self.of

    def model(self) -> str:
        return self.configured[0].model if self.configured else ""

    def guarantees(self) -> str:
        return self.configured[0].guarantees if self.configured else ""

    def graphs(self) -> int:
        return len(self.ran)

    def rounds(self) -> int:
        return len(self.further)

    def searches(self) -> list[e.Searched]:
        return [x.searched for x in self.ran if x.searched is not None]

    def searched(self) -> int:
        return len([x for x in self.searches() if x.whole])

    def cut_off(self) -> int:
        return len(self.searches()) - self.searched()

    def schedules(self) -> int:
        return sum(x.schedules for x in self.searches())

    def sampled(self) -> int:
        return sum(x.sampled for x in self.searches())

    def first(self) -> dict[str, int]:
        return dict(sum((Counter(x.first) for x in self.searches()), Counter()))

    def outcomes(self) -> int:
        return sum(sum(x.verdicts.values()) for x in (*self.ran, *self.further))

    def seconds(self) -> float:
        return total(x.seconds for x in (*self.given, *self.further))

    def findings(self) -> int:
        if self.is_family:
            return sum(
                (self.all.first(key).executor, self.all.family_of(key)) == (self.of, self.part)
                for key in self.all.keys
            )
        return sum(
            self.all.first(key).executor == self.of
            and (self.of, self.part)
            in {self.all.shares[self.of, name] for _, name in self.all.sightings(key)}
            for key in self.all.keys
        )

    def forbidden_graphs(self) -> int:
        return sum(self._mine(x.line) for x in self.all.runs.values())

    def _reached(self) -> list[int]:
        # The last of each test.
        last = {run(x): x for x in (*self.ran, *self.further) if x.reached is not None}
        return [min(100, round(100 * x.reached / x.allowed)) for x in last.values() if x.allowed]

    def reached(self) -> float | None:
        return median(self._reached()) / 100 if self._reached() else None

    def reached_graphs(self) -> int:
        return len(self._reached())

    def refused(self) -> int:
        return len(self.refusals)

    def refused_for(self) -> Mapping[str, int]:
        return Counter(feature for each in self.refusals for feature in each)

    def not_run(self) -> int:
        if self.is_family:
            return 0
        busy = sum(len(self._titles() & {*x.not_run}) for x in self.all.of(e.Generated))
        # Given to it by a shard that has ended, or said not to be run; and run by none.
        ended = {shard for _, shard, _ in self.all.at(e.ShardEnded)}
        given = {
            (x.index, title)
            for _, shard, x in self.all.at(e.Generated)
            for title in self._titles() & {*x.given}
            if shard in ended
        }
        ran = [x for x in self.all.executed if self._mine(x)]
        said, had = (
            {(x.index, f"{x.executor}/{x.configuration}") for x in of}
            for of in ((x for x in self.all.of(e.NotRun) if self._mine(x)), ran)
        )
        return busy + len((given | said) - had)

    def crashed(self) -> int:
        return sum(x.end == "crashed" for x in self.ran)

    def timed_out(self) -> int:
        return sum(x.end == "timed out" for x in self.ran)

    def unknown(self) -> Mapping[str, int]:
        number = len({run(x) for x in (*self.ran, *self.further) if "unknown" in x.verdicts})
        return {"over the oracle's budget": number} if number else {}

    def minimizing_outcomes(self) -> int:
        return sum(x.executions for x in self.reductions)

    def minimizing_s(self) -> float:
        return total(x.seconds for x in self.reductions)

    def clusterings(self) -> Mapping[str, int]:
        return sum((Counter(x.verdicts) for x in self.chosen), Counter())

    def racing(self) -> int:
        return sum(x.racing for x in self.chosen)

    def counters(self) -> Mapping[str, float]:
        counted = [] if self.is_family else [*self.given, *self.further, *self.reductions]
        names = {name for x in counted for name in x.counters}
        return {n: total((x.counters.get(n, 0) for x in counted), digits=6) for n in names}


def _durations(x: e.Generated) -> tuple[float, ...]:
    return x.generating_s, x.judging_s, x.validating_s


class _OfFamily:
    """Of a family over all executors."""

    def __init__(self, campaign: _Events, family: str) -> None:
        self.all, self.family = campaign, family
        self.generated = [x for x in campaign.of(e.Generated) if x.family == family]
        self.executed = [x for x in campaign.judged if x.family == family]

    def graphs(self) -> int:
        return len(self.generated)

    def seconds(self) -> float:
        generating = [n for x in self.generated for n in _durations(x)]
        return total(generating + [n for x in self.executed for n in (x.seconds, x.judging_s)])

    def forbidden_graphs(self) -> int:
        runs = list(self.all.runs.values())
        return len({x.line.index for x in runs if x.line.family == self.family})

    def unknown_graphs(self) -> int:
        return len({x.index for x in self.executed if "unknown" in x.verdicts})

    def findings(self) -> int:
        return sum(self.all.family_of(key) == self.family for key in self.all.keys)


class _OfFinding:
    """Of a finding."""

    def __init__(self, campaign: _Events, key: str, folder: str) -> None:
        self.all, self.event, self.folder = campaign, campaign.first(key), folder
        self.seen = campaign.sightings(key)
        self.scripts = [
            x for x in campaign.of(e.ScriptRun) if (x.key, x.file) == (key, self.event.file)
        ]
        for name in ("key", "kind", "file", "executor", "model", "cause", "reason", "is_cycle"):
            setattr(self, name, lambda name=name: getattr(self.event, name))
        for name in ("arcs", "edges", "rules", "allowed_by", "needs"):
            setattr(self, name, lambda name=name: getattr(self.event, name))

    def entry(self) -> Any:
        entry = read(self.event.entry)
        if entry.finding is not None and self.scripts:
            script = Script.SHOWS_IT if self.scripts[-1].shows_it else Script.UNCONFIRMED
            return replace(entry, finding=replace(entry.finding, script=script))
        return entry

    def traceback(self) -> str:
        return ""  # no worker ended

    def log(self) -> str:
        return ""

    def config_class(self) -> str:
        return self.event.executor_class

    def count(self) -> int:
        return len(self.seen)

    def in_this_run(self) -> int:
        return len(self.seen)

    def first_seen(self) -> int:
        return int(min(at for at, _ in self.seen))

    def last_seen(self) -> int:
        return int(max(at for at, _ in self.seen))

    def configs(self) -> Mapping[str, int]:
        return Counter(name for _, name in self.seen)

    def histogram(self) -> Any:
        test = read(self.event.entry).test
        return {outcome_from_plain(test, o): (n, v) for o, n, v in self.event.histogram}

    def allowed(self) -> Any:
        listed = read(self.event.entry).allowed.get(self.event.model, frozenset())
        return () if isinstance(listed, Digest) else tuple(sorted(listed, key=str))

    def nearest(self) -> Any:
        if self.event.kind is FindingKind.UNSOUND:
            return None
        forbidden = [o for o, (_, verdict) in self.histogram().items() if verdict == "forbidden"]
        return nearest(forbidden[0], self.allowed())

    def replay(self) -> str:
        if self.event.kind is FindingKind.UNSOUND:
            return f"litmusfuzz validate {self.folder}/{self.event.file}"
        python = self.all.of(e.CampaignStarted)[0].python
        there = f" --python {python}" if python else ""
        found = read(self.event.entry).finding
        assert found is not None
        if "=" in found.configuration:  # it may name an engine from outside
            there += f" --executors {shlex.quote(f'{found.executor}:{found.configuration}')}"
        return f"litmusfuzz replay {self.folder}/{self.event.file}{there}"

    def script(self) -> str:
        return str(PurePosixPath(self.event.file).with_suffix(".py")) if self.scripts else ""

    def script_shows_it(self) -> bool:
        return bool(self.scripts) and self.scripts[-1].shows_it

    def known(self) -> str:
        return ""  # `ReportBuilder`

    def seconds(self) -> float:
        spent = [x.seconds for x in self.all.of(e.ReductionEnded) if x.key == self.event.key]
        experiments = (*self.all.of(e.CauseCompared), *self.all.of(e.CauseChecked))
        return total(spent + [x.seconds for x in experiments if x.cause == self.event.key])

    def undecided(self) -> tuple[str, ...]:
        of = [x for x in self.all.of(e.CauseCompared) if x.finding == self.event.key]
        return tuple(sorted({x.cause for x in of if x.verdict == "undecided"}))

    def also_on(self) -> tuple[tuple[str, ...], ...]:
        return ()


class _OfShard:
    """Of a shard."""

    def __init__(self, campaign: _Events, shard: int) -> None:
        self.shard = shard
        self.events = [event for number, event in campaign.stream if number == shard]
        self.ended = [x for x in self.events if isinstance(x, e.ShardEnded)]
        self.processes = [x for x in self.events if isinstance(x, e.ShardStarted)]

    def number(self) -> int:
        return self.shard

    def configurations(self) -> Any:
        (planned,) = [x for x in self.events if isinstance(x, e.ShardPlanned)]
        return planned.configurations

    def state(self) -> str:
        return next(("lost" if x.lost else "done" for x in self.ended), "running")

    def own(self) -> list[float]:
        """Times of the events of its process."""
        others = (e.ShardPlanned, e.ShardEnded)
        return [x.at for x in self.events if not isinstance(x, others)]

    def began(self) -> float | None:
        return self.own()[0] if self.own() else None

    def seconds(self) -> float:
        if self.state() == "done":
            return round(self.ended[0].seconds, 3)
        own = self.own()
        return round(own[-1] - own[0], 3) if own else 0.0

    def graphs(self) -> int:
        ran = [x for x in self.events if isinstance(x, e.Executed) and x.executor != CANARY]
        return sum(not x.end.startswith("refused") for x in ran)

    def host(self) -> str:
        return self.processes[0].host if self.processes else ""

    def pid(self) -> int:
        return self.processes[0].pid if self.processes else 0

    def crashed(self) -> int:
        died = [x for x in self.events if isinstance(x, e.WorkerDied)]
        return len(died) - self.timed_out()

    def generated(self) -> int:
        return sum(isinstance(x, e.ConfigurationGenerated) for x in self.events)

    def timed_out(self) -> int:
        died = [x for x in self.events if isinstance(x, e.WorkerDied)]
        return sum(x.kind is FindingKind.TIMED_OUT for x in died)

    def problem(self) -> str:
        return self.ended[0].problem if self.ended else ""


class _OfReport:
    """Each field of a campaign's report, by the method of its name."""

    def __init__(self, stream: Stream, folder: str) -> None:
        self.stream = stream
        self.path = folder
        self.all = _Events(stream)
        self.started_event = self.all.of(e.CampaignStarted)[0]
        self.resumed = self.all.of(e.CampaignResumed)
        self.last = [x for _, x in stream if isinstance(x, (e.CampaignResumed, e.CampaignEnded))][
            -1:
        ]
        for name in ("command", "seed", "unattended", "noise", "python"):
            setattr(self, name, lambda name=name: getattr(self.started_event, name))

    def _ended(self) -> e.CampaignEnded | None:
        return next((x for x in self.last if isinstance(x, e.CampaignEnded)), None)

    def folder(self) -> str:
        return self.path

    def started(self) -> int:
        return int(self.started_event.at)

    def ended(self) -> int | None:
        end = self._ended()
        return None if end is None else int(end.at)

    def tests_done(self) -> int:
        # Given to a configuration by a shard that has ended, or said not to be run; and not run.
        ended = {shard for _, shard, _ in self.all.at(e.ShardEnded)}
        given = {
            (x.index, title)
            for _, shard, x in self.all.at(e.Generated)
            for title in x.given
            if shard in ended
        }
        said = {(x.index, f"{x.executor}/{x.configuration}") for x in self.all.of(e.NotRun)}
        ran = {(x.index, f"{x.executor}/{x.configuration}") for x in self.all.executed}
        left = {index for index, _ in (given | said) - ran}
        return self.generated() - len(left)

    def interrupted(self) -> bool:
        end = self._ended()
        return end is not None and end.interrupted

    def spent_s(self) -> float:
        kinds = (e.Progress, e.CampaignEnded)
        return ([0.0] + [x.spent_s for _, x in self.stream if isinstance(x, kinds)])[-1]

    def asked_s(self) -> float:
        return [self.started_event.asked_s, *(x.asked_s for x in self.resumed)][-1]

    def tests(self) -> int | None:
        return [self.started_event.tests, *(x.tests for x in self.resumed)][-1]

    def damaged(self) -> tuple[str, ...]:
        return ()

    def min_graphs(self) -> int:
        return self.started_event.min_graphs

    def problem(self) -> str:
        resumed = max([place for place, _, _ in self.all.at(e.CampaignResumed)], default=-1)
        found = [x.message for place, _, x in self.all.at(e.Problem) if place > resumed]
        if (end := self._ended()) and not end.interrupted and not self.kills():
            found.append("the self-test did not finish")
        return "; ".join(dict.fromkeys(found))

    def findings(self) -> Any:
        return tuple(
            made(ReportedFinding, _OfFinding(self.all, key, self.path)) for key in self.all.keys
        )

    def known(self) -> Any:
        return ()  # `ReportBuilder`

    def earlier(self) -> Any:
        return ()  # `ReportBuilder`

    def campaign(self) -> str:
        return f"{self.started_event.seed}-{self.started_event.at:.6f}"

    def number(self) -> int:
        return self.started_event.number

    def pruned(self) -> Pruned:
        return Pruned((), 0, {})  # `prune`

    def by_config(self) -> Any:
        return tuple(
            made(Share, _OfShare(self.all, each.executor, each.name, is_family=False))
            for each in self.all.configured
        )

    def by_family(self) -> Any:
        names = {(x.executor, x.family) for x in self.all.executed}
        for x in self.all.of(e.Generated):
            names |= {(c.executor, x.family) for c in self.all.configured if c.title in x.lacking}
        return tuple(made(Share, _OfShare(self.all, *n, is_family=True)) for n in sorted(names))

    def moments(self) -> Any:
        """From the beginning up to each."""
        lines: dict[int, Moment] = {}
        for place, _, x in self.all.at(e.Progress):
            before = _Events(self.stream[:place])
            outcomes = sum(sum(each.verdicts.values()) for each in before.judged)
            numbers = (len(before.ran), outcomes, len(before.keys), x.disk_bytes)
            lines[int(x.spent_s)] = Moment(int(x.at), *numbers, int(x.spent_s))
        return tuple(lines.values())

    def shards(self) -> Any:
        numbers = sorted({shard for shard, _ in self.stream} - {0})
        return tuple(made(ShardLine, _OfShard(self.all, number)) for number in numbers)

    def workers(self) -> Any:
        found = []
        shards = self.shards()
        died = self.all.at(e.WorkerDied)
        for host, pid in dict.fromkeys((x.host, x.pid) for x in shards if x.host):
            mine = [x for x in shards if (x.host, x.pid) == (host, pid)]
            numbers = {x.number for x in mine}
            kinds = [x.kind for _, shard, x in died if shard in numbers]
            hung = kinds.count(FindingKind.TIMED_OUT)
            found.append(
                WorkerHealth(
                    f"process {pid}",
                    host,
                    shards=len(mine),
                    lost=sum(x.state == "lost" for x in mine),
                    busy_s=pytest.approx(sum(x.seconds for x in mine), abs=0.06),
                    crashed=len(kinds) - hung,
                    timed_out=hung,
                )
            )
        return tuple(found)

    def kills(self) -> Any:
        last = {x.kill.mutant: x.kill for x in self.all.of(e.MutantRun)}
        return tuple(kill for _, kill in sorted(last.items()))

    def canary(self) -> tuple[int, int]:
        runs = [x.reported for x in self.all.of(e.CanaryRun)]
        return len(runs), runs.count(True)

    def unconfirmed(self) -> Any:
        return tuple(
            UnconfirmedTest(
                *of,
                x.refuted[-1].file,
                *x.often,
                len(x.refuted),
                sum(each.executions for each in x.refuted),
                x.line.model,
            )
            for of, x in sorted(self.all.runs.items())
            if x.unconfirmed
        )

    def pending(self) -> Any:
        ended = {shard for _, shard, _ in self.all.at(e.ShardEnded)}
        found = []
        for of, x in sorted(self.all.runs.items()):
            if x.pending:
                file = x.line.unreduced
                tried = [n for _, n, p in self.all.at(e.ShardPlanned) if file in p.minimizes]
                now = tried[-1] if tried and tried[-1] not in ended else None
                lines = (*self.all.at(e.Executed), *self.all.at(e.Continued))
                (shard,) = {n for _, n, each in lines if each is x.line}
                state = len(tried), now, x.suspect
                found.append(Pending(*of, str(file), shard, *state, *x.often, x.line.model))
        return tuple(found)

    def unchecked(self) -> Any:
        found = []
        for of, x in sorted(self.all.runs.items()):
            causes = x.left_undecided
            if x.shows is not None and causes:
                file = str(x.line.unreduced)
                found.append(UncheckedTest(*of, file, *x.often, x.line.model, causes))
        return tuple(found)

    def may_be_known(self) -> Any:
        return {}

    def entries(self) -> Any:
        return {}

    def versions(self) -> Any:
        began = sorted((shard, x.versions) for _, shard, x in self.all.at(e.ShardStarted))
        executors = {executor for _, versions in began for executor in versions}

        def reported(executor: str, name: str) -> str:
            each = [v[executor][name] for _, v in began if name in v.get(executor, {})]
            return ", ".join(dict.fromkeys(each))

        return {
            executor: {n: reported(executor, n) for _, v in began for n in v.get(executor, {})}
            for executor in executors
        }

    def unavailable(self) -> Any:
        of = self.all.of(e.ConfigurationUnavailable)
        return {f"{x.executor}/{x.configuration}": x.why for x in of}

    def generated(self) -> int:
        return len(self.all.of(e.Generated))

    def families(self) -> Any:
        names = {x.family for x in (*self.all.of(e.Generated), *self.all.executed)}
        return {name: made(FamilyTotals, _OfFamily(self.all, name)) for name in names}

    def ops(self) -> Any:
        names = {name for x in self.all.of(e.Generated) for name in x.ops}
        return {n: sum(x.ops.get(n, 0) for x in self.all.of(e.Generated)) for n in names}

    def verdicts(self) -> Any:
        names = {name for x in self.all.judged for name in x.verdicts}
        return {n: sum(x.verdicts.get(n, 0) for x in self.all.judged) for n in names}

    def forbidden_graphs(self) -> int:
        return len({x.line.index for x in self.all.runs.values()})

    def unknown_graphs(self) -> int:
        return len({x.index for x in self.all.judged if "unknown" in x.verdicts})

    def clusterings(self) -> Any:
        return Counter(x.clusters for x in self.all.of(e.Generated) if x.clusters)

    def racing(self) -> int:
        return sum(x.racing for x in self.all.of(e.Generated))

    def compared(self) -> int:
        return len(self.all.of(e.Compared))

    def settings(self) -> Any:
        return tuple(self._coverage(*each) for each in self.started_event.spaces.items())

    def _coverage(self, executor: str, space: e.Space) -> SettingCoverage:
        """By trying each pair, and each value, on each configuration that ran."""
        every = [x for x in (*self.all.generated, *self.all.configured) if x.executor == executor]
        point = {x.name: x.point for x in every if x.point}
        ran = [x for x in self.all.executed if x.executor == executor and x.configuration in point]
        judged = Counter(x.configuration for x in ran if x.end == "judged")

        def graphs(*values: tuple[str, Any]) -> int:
            return sum(n for name, n in judged.items() if {*values} <= {*point[name].items()})

        def text(value: tuple[str, Any]) -> str:
            return f"{value[0]}={value[1]}" if value[0] != "split" else f"split={value[1]}".lower()

        values = [(s, v) for s, of in space.values.items() for v in of]
        never = {((s, v), (t, w)) for s, v, t, w in space.impossible}
        every_pair = [
            ((s, v), (t, w))
            for s, t in combinations((s for s in space.values if s not in space.seldom), 2)
            for v in space.values[s]
            for w in space.values[t]
        ]
        pairs = [pair for pair in every_pair if pair not in never]
        numbers = {pair: n for pair in pairs if (n := graphs(*pair))}
        rarest = min(numbers, key=lambda pair: numbers[pair], default=None)
        return SettingCoverage(
            executor,
            possible=len(pairs),
            not_reached=tuple((text(a), text(b)) for a, b in pairs if (a, b) not in numbers),
            rarest=(text(rarest[0]), text(rarest[1])) if rarest else None,
            rarest_graphs=numbers[rarest] if rarest else 0,
            values=tuple(
                ValueTotals(
                    s,
                    text((s, v)).partition("=")[2],
                    graphs((s, v)),
                    total(x.seconds for x in ran if point[x.configuration][s] == v),
                )
                for s, v in values
            ),
            **self._op_coverage(space, [x for x in ran if x.end == "judged"], point),
        )

    def _op_coverage(self, space: e.Space, judged: list[Any], point: Any) -> dict[str, Reached]:
        """By trying each op, and each two, on each graph that was judged."""
        ops_of = {x.index: x.ops for x in self.all.of(e.Generated)}
        graphs = [(ops_of.get(x.index, {}), {*point[x.configuration].items()}) for x in judged]
        ops = space.ops
        pairs = [(a, b) for i, a in enumerate(ops) for b in ops[i:]]

        def has(of: Any, a: str, b: str) -> bool:
            return of.get(a, 0) > (a == b) and b in of

        often = {s: of for s, of in space.values.items() if s not in space.seldom}
        values = [(s, v) for s, of in often.items() for v in of]
        op_values = [(op, value) for op in ops for value in values]
        return {
            "ops": Reached(sum(any(a in of for of, _ in graphs) for a in ops), len(ops)),
            "op_pairs": Reached(
                sum(any(has(of, a, b) for of, _ in graphs) for a, b in pairs), len(pairs)
            ),
            "op_values": Reached(
                sum(any(a in of and v in its for of, its in graphs) for a, v in op_values),
                len(op_values),
            ),
        }

    def differential(self) -> Any:
        found = {}
        for each in self.all.configured:
            of = [x.totals[each.title] for x in self.all.of(e.Compared) if each.title in x.totals]
            names = [f.name for f in fields(e.ExecutorTotals) if f.name not in ("model", "graphs")]
            sums = {name: sum(getattr(x, name) for x in of) for name in names}
            if of:
                found[each.title] = e.ExecutorTotals(model=each.model, graphs=len(of), **sums)
        return found

    def generating_s(self) -> float:
        return total(x.generating_s for x in self.all.of(e.Generated))

    def judging_s(self) -> float:
        return total(x.judging_s for x in (*self.all.of(e.Generated), *self.all.judged))

    def validating_s(self) -> float:
        given = [x.validating_s for x in self.all.of(e.Generated)]
        return total(given + [x.seconds for x in self.all.of(e.ClustersChosen)])

    def known_s(self) -> float:
        known = [x for x in self.all.of(e.ReductionEnded) if x.known]
        experiments = (*self.all.of(e.CauseCompared), *self.all.of(e.CauseChecked))
        return total(x.seconds for x in (*known, *experiments))

    def known_share(self) -> Any:
        seconds = 0.0
        of = {x.number: x.seconds for x in self.shards()}
        for _, shard, planned in self.all.at(e.ShardPlanned):
            seconds += of[shard] * planned.workers * len(planned.configurations)
        share = self.known_s() / seconds if seconds else 0.0
        return pytest.approx(share, abs=0.01 * max(share, 1e-9))

    def minimizing(self) -> tuple[str, ...]:
        """Reductions that no later event of the shard ends."""
        found = []
        for place, shard, x in self.all.at(e.ReductionStarted):
            later = [event for n, event in self.stream[place:] if n == shard]
            over = any(
                isinstance(each, e.ShardEnded)
                or (isinstance(each, e.ReductionEnded) and run(each) == run(x))
                for each in later
            )
            if not over:
                found.append((shard, run(x)))
        return tuple(f"graph {i} of {executor}/{name}" for _, (i, executor, name) in sorted(found))


class Figures:
    """The fields of a campaign's report, from its events; `runs` has its forbidden tests."""

    def __init__(self, stream: Stream, folder: str) -> None:
        self._report = _OfReport(stream, folder)
        self.runs = self._report.all.runs

    def of(self, field: str) -> Any:
        """One field."""
        return getattr(self._report, field)()
