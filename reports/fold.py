"""The report of a campaign as a fold over its events: pure, without files and without a clock.

`Fold.apply` takes one event; `Fold.report` is the report as of then. Counts are kept as events
come, so that a report of a long campaign takes milliseconds.

A test counts for a configuration once an event says what became of it there: `Executed`, `NotRun`,
its entry in `Generated`, or the end of its shard, whose process may have been killed. So when no
shard runs, the tests generated for a configuration are those that it ran, those that it refused,
and those not run, and nothing else. Copies of events are refused (`litmusfuzz.reports.once`).
Events of different shards may come in any order, except that which of two findings of one key is
kept, and the present time, depend on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from copy import copy
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace as with_changes

from litmusfuzz.corpus.outcome import nearest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest, Script, loads, outcome_from_plain
from litmusfuzz.reports import events
from litmusfuzz.reports.commands import replay_command
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.forbidden import ForbiddenTests
from litmusfuzz.reports.once import Once
from litmusfuzz.reports.report import (
    FamilyTotals,
    Known,
    Moment,
    Report,
    ReportedFinding,
    ShardLine,
    Share,
    WorkerHealth,
)
from litmusfuzz.reports.setting_coverage import ReachedSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.events import AnyEvent, ExecutorTotals, Kill, Run
    from litmusfuzz.reports.forbidden import Sightings

    LoadEntry = Callable[[str, str], Entry]

CANARY: Final = "mutant/canary"
PRODUCT: Final = "product"
"""Name under which the configurations that a campaign generates are reported, all together."""
REFUSED: Final = "refused: "
EXPLAINED: Final = "explained"
NEW: Final = "new"
UNDECIDED: Final = "undecided"
VERDICTS: Final = (EXPLAINED, NEW, UNDECIDED)
"""Of `fuzz.finding.experiments.Verdict`."""
_MOST_REMEMBERED: Final = 1 << 16
OVER_BUDGET: Final = "over the oracle's budget"
_SAME: Final = (
    *("model", "guarantees", "graphs", "rounds", "outcomes", "crashed", "timed_out", "refused"),
    *("refused_for", "not_run", "minimizing_outcomes", "clusterings", "racing"),
    *("searched", "cut_off", "schedules", "sampled", "first"),
)
"""Fields of totals that a `Share` has as they are."""
Name = tuple[str, str]
"""An executor, and a configuration or a family."""
Tested = frozenset[tuple[tuple[str, str], ...]]
"""Versions of packages, each a set of them that were installed together."""


@dataclass(slots=True)
class _Totals:
    """Totals of a configuration, or of a family on an executor; see `Share`."""

    model: str = ""
    guarantees: str = ""
    graphs: int = 0
    rounds: int = 0
    outcomes: int = 0
    us: int = 0
    crashed: int = 0
    timed_out: int = 0
    unknown: int = 0
    refused: int = 0
    refused_for: Counter[str] = field(default_factory=Counter)
    not_run: int = 0
    reached: Counter[int] = field(default_factory=Counter)
    """Graphs by percent of their allowed outcomes that were seen."""
    minimizing_outcomes: int = 0
    minimizing_us: int = 0
    clusterings: Counter[str] = field(default_factory=Counter)
    racing: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    """In millionths."""
    searched: int = 0
    cut_off: int = 0
    schedules: int = 0
    sampled: int = 0
    first: Counter[str] = field(default_factory=Counter)

    def refuse(self, features: Iterable[str]) -> None:
        """Count a test that it cannot run for lack of these features."""
        self.refused += 1
        self.refused_for.update(features)

    def execute(self, event: events.Executed) -> None:
        """Count a test that was given to it."""
        self.us += _millionths(event.seconds)
        if event.end.startswith(REFUSED):
            self.refuse((event.end.removeprefix(REFUSED),))
            return
        self.graphs += 1
        self.outcomes += sum(event.verdicts.values())
        self.unknown += event.verdicts.get("unknown", 0) > 0
        self.crashed += event.end == "crashed"
        self.timed_out += event.end == "timed out"
        if event.reached is not None and event.allowed is not None and event.allowed > 1:
            self.reached[_percent(event.reached, event.allowed)] += 1
        if (search := event.searched) is not None:
            self.searched += search.whole
            self.cut_off += not search.whole
            self.schedules += search.schedules
            self.sampled += search.sampled
            self.first.update(search.first)

    def go_on(self, event: events.Continued, *, newly_unknown: bool) -> None:
        """Count further executions of a test that it has run."""
        self.rounds += 1
        self.us += _millionths(event.seconds)
        self.outcomes += sum(event.verdicts.values())
        self.unknown += newly_unknown
        if event.allowed is not None and event.allowed > 1:
            for reached, change in ((event.reached_before, -1), (event.reached, 1)):
                if reached is not None:
                    self.reached[_percent(reached, event.allowed)] += change

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to its executor's counters."""
        for counter, number in counters.items():
            self.counters[counter] += _millionths(number)

    def share(self, name: Name, *, findings: int, forbidden: int) -> Share:
        """The totals so far."""
        same = {name: copy(getattr(self, name)) for name in _SAME}
        return Share(
            name="/".join(name),
            executor=name[0],
            findings=findings,
            forbidden_graphs=forbidden,
            seconds=_seconds(self.us),
            minimizing_s=_seconds(self.minimizing_us),
            reached=_median(self.reached),
            reached_graphs=self.reached.total(),
            unknown={OVER_BUDGET: self.unknown} if self.unknown else {},
            counters={counter: number / 1e6 for counter, number in self.counters.items()},
            **same,
        )


def reported(
    event: events.FindingAdded,
    folder: str = "",
    python: str | None = None,
    *,
    script_shows_it: bool | None = None,
    load_entry: LoadEntry = loads,
) -> ReportedFinding:
    """A finding that one test showed.

    Parameters
    ----------
    event : FindingAdded
    folder : str
        The event's file is relative to it.
    python : str or None
        Interpreter of another environment, which ran the test.
    script_shows_it : bool or None
        None without a script.
    load_entry : callable
        Loads the event's entry, from its text and its name.
    """
    entry = load_entry(event.entry, event.file)
    listed = entry.allowed.get(event.model, frozenset())
    allowed = () if isinstance(listed, Digest) else tuple(sorted(listed, key=str))
    histogram: dict[Outcome, tuple[int, str]] = {
        outcome_from_plain(entry.test, plain): (count, verdict)
        for plain, count, verdict in event.histogram
    }
    made = ReportedFinding(
        key=event.key,
        kind=event.kind,
        entry=entry,
        file=event.file,
        executor=event.executor,
        config_class=event.executor_class,
        model=event.model,
        cause=event.cause,
        reason=event.reason,
        is_cycle=event.is_cycle,
        edges=event.edges,
        rules=event.rules,
        count=1,
        in_this_run=1,
        first_seen=int(event.at),
        last_seen=int(event.at),
        configs={event.configuration: 1},
        histogram=histogram,
        allowed=allowed,
        nearest=nearest(entry.finding.forbidden[0][0], allowed) if entry.finding else None,
        replay=replay_command(event.kind, event.file, folder, python, _named(entry)),
        arcs=event.arcs,
        allowed_by=event.allowed_by,
        needs=event.needs,
    )
    return made if script_shows_it is None else with_script(made, shows_it=script_shows_it)


def with_script(found: ReportedFinding, *, shows_it: bool) -> ReportedFinding:
    """The finding after its standalone script, a file beside its own, was run."""
    entry = found.entry
    if entry.finding is not None:
        script = Script.SHOWS_IT if shows_it else Script.UNCONFIRMED
        entry = replace(entry, finding=replace(entry.finding, script=script))
    file = str(PurePosixPath(found.file).with_suffix(".py"))
    return replace(found, entry=entry, script=file, script_shows_it=shows_it)


def _named(entry: Entry) -> str:
    """The configuration of a finding if its name lists settings, which may name other code.

    A command runs that only if it names it too.
    """
    found = entry.finding
    settings = found is not None and "=" in found.configuration
    return f"{found.executor}:{found.configuration}" if found and settings else ""


class Fold:
    """The state of a campaign after some of its events.

    Parameters
    ----------
    load_entry : callable
        Loads the entry of a finding, from its text and its file's name.

    Attributes
    ----------
    options : CampaignStarted
        With the changes of a resumption.
    deaths : list of (int, WorkerDied)
    reduced_crashes : dict of str to CrashReduced
        By the file of the test as it was run.
        With their shards, in the order in which they came.
    not_run : set of Run
        Generated tests that no shard runs any more.
    """

    def __init__(self, load_entry: LoadEntry = loads) -> None:
        self._load_entry = load_entry
        self._once = Once()
        self.options = events.CampaignStarted(
            at=0.0, command="", seed=0, asked_s=0.0, configurations=()
        )
        self.deaths: list[tuple[int, events.WorkerDied]] = []
        self.reduced_crashes: dict[str, events.CrashReduced] = {}
        self._ended: float | None = None
        self._interrupted = False
        self._spent_s = 0.0
        self._problems: dict[str, None] = {}
        self._moments: list[Moment] = []
        self._shards: dict[int, ShardLine] = {}
        self._versions: dict[int, dict[str, dict[str, str]]] = {}
        """By shard and executor: the shards of a campaign that is resumed may have other ones."""
        self._tested: dict[tuple[int, str], tuple[tuple[str, str], ...]] = {}
        """The same, as `tested` has them."""
        self._unavailable: dict[str, str] = {}
        self._configurations: dict[Name, _Totals] = {}
        self._product: set[Name] = set()
        """Generated configurations; their totals are those of `PRODUCT`."""
        self._settings_of: dict[str, ReachedSettings] = {}
        """By executor, for those with a configuration space."""
        self._ops_of: dict[int, Mapping[str, int]] = {}
        """Ops of the last `_MOST_REMEMBERED` tests, by index: they run soon after, or never."""
        self._titles: dict[str, Name] = {}
        """Names that titles stand for: both parts may contain slashes."""
        self._on_executors: defaultdict[Name, _Totals] = defaultdict(_Totals)
        """By executor and family."""
        self._families: defaultdict[str, _Totals] = defaultdict(_Totals)
        self._generated = self._graphs = self._outcomes = 0
        self._ops = Counter[str]()
        self._verdicts = Counter[str]()
        self._unknown: set[int] = set()
        self._unknown_runs: set[Run] = set()
        self._clusterings = Counter[str]()
        self._racing = 0
        self._compared = 0
        self._differential: dict[str, ExecutorTotals] = {}
        self._generating_us = self._judging_us = self._validating_us = 0
        self._findings: dict[str, ReportedFinding] = {}
        """By key, as the first test showed each, with a file relative to the folder."""
        self._forbidden = ForbiddenTests()
        self._cause_us = Counter[str]()
        """By key of a finding or known cause, the time that was spent on it."""
        self._known_us = 0
        self._workers_of = Counter[int]()
        """By shard."""
        self._shown: dict[str, events.CauseChecked] = {}
        """By key of a known cause, the last time that it was run."""
        self._look_alikes = Counter[tuple[str, str]]()
        """By key of a known cause and verdict, tests that look like it and were checked."""
        self.behind: set[Run] = set()
        """Tests that look like a known cause, and show something else beside it."""
        self._undecided: defaultdict[str, set[str]] = defaultdict(set)
        """By key of a finding, keys of causes that may explain it."""
        self._minimizing: defaultdict[int, dict[Run, str]] = defaultdict(dict)
        """By shard."""
        self._to_run: dict[int, set[Run]] = {}
        """Tests that each running shard has generated and that an executor has yet to run."""
        self.not_run: set[Run] = set()
        self._canary = [0, 0]
        self._kills: dict[str, Kill] = {}

    def apply(self, shard: int, event: AnyEvent) -> None:
        """Take the next event of a shard; 0 is the campaign.

        Raises
        ------
        LookupError, ValueError, TypeError, ArithmeticError
            If it cannot follow the events so far; the fold is of no use then.
        """
        self._once.add(shard, event)
        if shard:
            line = self._shards.get(shard)
            if line is None:
                line = self._shards[shard] = ShardLine(shard)
            # Times of one process: others may have another clock.
            if not isinstance(event, (events.ShardPlanned, events.ShardEnded)):
                line.began = event.at if line.began is None else line.began
                line.seconds = max(line.seconds, event.at - line.began)
        _APPLY[type(event)](self, shard, event)

    def seconds_of(self, shard: int) -> float:
        """Time from the first to the last event of a shard's process."""
        return self._shards[shard].seconds

    # --- the campaign and its shards ---------------------------------------------------

    def _campaign_started(self, _: int, event: events.CampaignStarted) -> None:
        self.options = event
        for executor, space in event.spaces.items():
            self._settings_of[executor] = ReachedSettings(executor, space)
        for each in event.configurations:
            totals = self._totals(each.executor, each.name)
            totals.model, totals.guarantees = each.model, each.guarantees
            self._add_point(each)

    def _configuration_generated(self, shard: int, event: events.ConfigurationGenerated) -> None:
        made = event.configuration
        name = made.executor, made.name
        self._shards[shard].generated += 1
        if name not in self._configurations:
            self._product.add(name)
            self._titles[made.title] = made.executor, PRODUCT
            self._add_point(made)

    def _add_point(self, configured: events.Configured) -> None:
        if (settings := self._settings_of.get(configured.executor)) is not None:
            settings.add_configuration(configured.name, configured.point)

    def _campaign_resumed(self, _: int, event: events.CampaignResumed) -> None:
        self.options = with_changes(
            self.options, asked_s=event.asked_s, tests=event.tests, workers=event.workers
        )
        self._ended, self._interrupted = None, False
        self._problems.clear()

    def _progress(self, _: int, event: events.Progress) -> None:
        self._spent_s = event.spent_s
        spent_s = int(event.spent_s)
        if self._moments and self._moments[-1].spent_s == spent_s:
            self._moments.pop()
        findings = sum(bool(self._sightings(key).tests) for key in self._findings)
        counts = self._graphs, self._outcomes, findings
        moment = Moment(int(event.at), *counts, event.disk_bytes, spent_s)
        self._moments.append(moment)

    def _problem(self, _: int, event: events.Problem) -> None:
        self._problems[event.message] = None

    def _campaign_ended(self, _: int, event: events.CampaignEnded) -> None:
        self._ended, self._interrupted = event.at, event.interrupted
        self._spent_s = event.spent_s

    def _shard_planned(self, shard: int, event: events.ShardPlanned) -> None:
        self._shards[shard].configurations = event.configurations
        self._workers_of[shard] = event.workers * len(event.configurations)
        self._forbidden.minimize(shard, event.minimizes)

    def _shard_started(self, shard: int, event: events.ShardStarted) -> None:
        line = self._shards[shard]
        line.host, line.pid = event.host, event.pid
        self._add_versions(shard, event.versions)

    def _add_versions(self, shard: int, found: Mapping[str, Mapping[str, str]]) -> None:
        for executor, versions in found.items():
            of = self._versions.setdefault(shard, {}).setdefault(executor, {})
            of.update(versions)
            self._tested[shard, executor] = tuple(sorted(of.items()))

    def tested(self, executor: str, shards: Iterable[int]) -> Tested:
        """The versions that an executor had in these shards.

        They are those of no package for a shard that has not reported any.
        """
        return frozenset(self._tested.get((each, executor), ()) for each in shards)

    def tested_anywhere(self, executor: str) -> Tested:
        """The versions that an executor had in the shards that ran it."""
        shards = (number for number, found in self._versions.items() if executor in found)
        return self.tested(executor, shards)

    def tested_with(self, found: ReportedFinding) -> Tested:
        """The versions in which a finding showed."""
        return self.tested(found.executor, self._sightings(found.key).shards)

    def _all_versions(self) -> dict[str, dict[str, str]]:
        """By executor and package, all versions, in the order of shards."""
        listed: dict[str, dict[str, dict[str, None]]] = {}
        for _, found in sorted(self._versions.items()):
            for executor, versions in found.items():
                packages = listed.setdefault(executor, {})
                for name, version in versions.items():
                    packages.setdefault(name, {})[version] = None
        return {
            executor: {name: ", ".join(versions) for name, versions in packages.items()}
            for executor, packages in listed.items()
        }

    def _shard_ended(self, shard: int, event: events.ShardEnded) -> None:
        line = self._shards[shard]
        line.state = "lost" if event.lost else "done"
        line.problem = event.problem
        line.seconds = event.seconds or line.seconds
        self._add_versions(shard, event.drivers)
        for run in self._to_run.pop(shard, ()):
            self._add_not_run(run)
        self._forbidden.end_shard(shard)
        self._minimizing.pop(shard, None)

    def _unavailable_here(self, _: int, event: events.ConfigurationUnavailable) -> None:
        self._unavailable[f"{event.executor}/{event.configuration}"] = event.why

    # --- tests -------------------------------------------------------------------------

    def _totals(self, executor: str, configuration: str) -> _Totals:
        """Totals of a configuration. Those of the canary are not reported."""
        name = self._reported_as(executor, configuration)
        totals = self._configurations.get(name)
        if totals is None:
            totals = _Totals()
            if executor != CANARY:
                self._configurations[name] = totals
                self._titles["/".join(name)] = name
        return totals

    def _test_generated(self, shard: int, event: events.Generated) -> None:
        self._generated += 1
        family = self._families[event.family]
        family.graphs += 1
        generating_us, judging_us = _millionths(event.generating_s), _millionths(event.judging_s)
        validating_us = _millionths(event.validating_s)
        family.us += generating_us + judging_us + validating_us
        self._generating_us += generating_us
        self._judging_us += judging_us
        self._validating_us += validating_us
        self._ops.update(event.ops)
        if self._settings_of:
            self._ops_of[event.index] = event.ops
            if len(self._ops_of) > _MOST_REMEMBERED:
                del self._ops_of[next(iter(self._ops_of))]
        if event.clusters:
            self._clusterings[event.clusters] += 1
        self._racing += event.racing
        for title, features in event.lacking.items():
            name = self._titles[title]
            self._configurations[name].refuse(features)
            self._on_executors[name[0], event.family].refuse(features)
        for title in event.not_run:
            self._configurations[self._titles[title]].not_run += 1
        given = ((event.index, *self._titles[title]) for title in event.given)
        self._to_run.setdefault(shard, set()).update(given)

    def _executed(self, shard: int, event: events.Executed) -> None:
        if event.executor == CANARY:
            return
        totals = self._totals(event.executor, event.configuration)
        run = event.run
        self._to_run.get(shard, set()).discard(run)
        if run in self.not_run:  # in an earlier process
            self.not_run.remove(run)
            totals.not_run -= 1
        totals.execute(event)
        if (settings := self._settings_of.get(event.executor)) is not None:
            us = _millionths(event.seconds)
            ops = self._ops_of.get(event.index, {})
            settings.executed(event.configuration, us, ops, judged=event.end == "judged")
        totals.count(event.counters)
        self._on_executors[event.executor, event.family].execute(event)
        ran = not event.end.startswith(REFUSED)
        self._shards[shard].graphs += ran
        self._graphs += ran
        self._judged(shard, event)

    def _continued(self, shard: int, event: events.Continued) -> None:
        totals = self._totals(event.executor, event.configuration)
        newly_unknown = bool(event.verdicts.get("unknown")) and event.run not in self._unknown_runs
        totals.go_on(event, newly_unknown=newly_unknown)
        totals.count(event.counters)
        on_executor = self._on_executors[event.executor, event.family]
        on_executor.go_on(event, newly_unknown=newly_unknown)
        self._judged(shard, event)

    def _judged(self, shard: int, event: events.Executed | events.Continued) -> None:
        """Count the executions of a test, and what they have shown."""
        family = self._families[event.family]
        judging_us = _millionths(event.judging_s)
        family.us += _millionths(event.seconds) + judging_us
        self._judging_us += judging_us
        self._verdicts.update(event.verdicts)
        self._outcomes += sum(event.verdicts.values())
        if event.verdicts.get("unknown"):
            self._unknown_runs.add(event.run)
            if event.index not in self._unknown:
                self._unknown.add(event.index)
                family.unknown += 1
        if event.verdicts.get("forbidden"):
            self._forbidden.executed(shard, event)

    def _test_not_run(self, shard: int, event: events.NotRun) -> None:
        self._to_run.get(shard, set()).discard(event.run)
        self._add_not_run(event.run)

    def _add_not_run(self, run: Run) -> None:
        _, executor, configuration = run
        if run not in self.not_run:
            self.not_run.add(run)
            self._totals(executor, configuration).not_run += 1

    def _test_compared(self, _: int, event: events.Compared) -> None:
        self._compared += 1
        for title, totals in event.totals.items():
            name = self._titles.get(title)
            new = totals
            if name is not None and name[1] == PRODUCT:  # each may have another model
                title, new = "/".join(name), replace(totals, model="")
            old = self._differential.get(title)
            self._differential[title] = new if old is None else old + new

    def _clusters_chosen(self, _: int, event: events.ClustersChosen) -> None:
        totals = self._totals(event.executor, event.configuration)
        totals.clusterings.update(event.verdicts)
        totals.racing += event.racing
        self._validating_us += _millionths(event.seconds)

    # --- findings ----------------------------------------------------------------------

    def _seen_again(self, shard: int, event: events.SeenAgain) -> None:
        self._forbidden.seen_again(shard, event)

    def _reduction_started(self, shard: int, event: events.ReductionStarted) -> None:
        title = f"{event.executor}/{event.configuration}"
        self._minimizing[shard][event.run] = f"graph {event.index} of {title}"

    def _reduction_ended(self, shard: int, event: events.ReductionEnded) -> None:
        self._minimizing[shard].pop(event.run, None)
        totals = self._totals(event.executor, event.configuration)
        totals.minimizing_outcomes += event.executions
        totals.minimizing_us += _millionths(event.seconds)
        totals.count(event.counters)
        self._spend(event.key, event.seconds, known=event.known)

    def _spend(self, key: str, seconds: float, *, known: bool) -> None:
        """Count time that was spent on a finding or known cause."""
        us = _millionths(seconds)
        self._cause_us[key] += us
        self._known_us += us if known else 0

    def _cause_compared(self, _: int, event: events.CauseCompared) -> None:
        self._spend(event.cause, event.seconds, known=True)
        if event.finding:
            if event.verdict == UNDECIDED:
                self._undecided[event.finding].add(event.cause)
        elif event.verdict == EXPLAINED:
            self._forbidden.explain(event.run)
        if not event.finding and event.seconds:
            self._look_alikes[event.cause, event.verdict] += 1
            if event.verdict == UNDECIDED:
                self._forbidden.leave_undecided(event.run, event.cause)
            if event.verdict == NEW:
                self.behind.add(event.run)

    def _cause_checked(self, _: int, event: events.CauseChecked) -> None:
        self._shown[event.cause] = event
        self._spend(event.cause, event.seconds, known=True)

    def known_cause(self, known: Known) -> Known:
        """An entry of the known-findings file, with what the campaign has seen of its cause."""
        sightings = self._forbidden.sightings.get(known.key)
        shown = self._shown.get(known.key)
        graphs = len(sightings.tests) if sightings else 0
        return replace(
            known,
            seen=bool(known.seen or graphs or (shown and shown.shows)),
            graphs=graphs,
            configurations=dict(sightings.configurations) if sightings else {},
            checked=sum(self._look_alikes[known.key, verdict] for verdict in VERDICTS),
            undecided=self._look_alikes[known.key, UNDECIDED],
            seconds=_seconds(self._cause_us[known.key]),
            shows=shown.shows if shown else None,
            executions=shown.executions if shown else 0,
        )

    def _finding_added(self, shard: int, event: events.FindingAdded) -> None:
        if event.key not in self._findings:
            # Read now: a damaged event is an error at once.
            self._findings[event.key] = reported(event, load_entry=self._load_entry)
        if event.kind is FindingKind.UNSOUND:
            self._forbidden.seen_without_execution(shard, event)
        else:
            self._forbidden.finding_added(shard, event)

    def _script_run(self, _: int, event: events.ScriptRun) -> None:
        found = self._findings[event.key]
        if found.file == event.file:
            self._findings[event.key] = with_script(found, shows_it=event.shows_it)

    def _confirmed(self, _: int, event: events.Confirmed) -> None:
        self._forbidden.confirm(event.run)

    def _unconfirmed(self, _: int, event: events.Unconfirmed) -> None:
        self._forbidden.refute(event)

    def _worker_died(self, shard: int, event: events.WorkerDied) -> None:
        self.deaths.append((shard, event))
        timed_out = event.kind is FindingKind.TIMED_OUT
        self._shards[shard].timed_out += timed_out
        self._shards[shard].crashed += not timed_out
        for index, configuration in event.suspects:
            self._forbidden.doubt((index, event.executor, configuration))

    def _crash_reduced(self, _: int, event: events.CrashReduced) -> None:
        self.reduced_crashes[event.died_on] = event

    # --- checks of LitmusFuzz itself ---------------------------------------------------

    def _canary_run(self, _: int, event: events.CanaryRun) -> None:
        self._canary[0] += 1
        self._canary[1] += event.reported

    def _mutant_run(self, _: int, event: events.MutantRun) -> None:
        self._kills[event.kill.mutant] = event.kill

    # --- the report --------------------------------------------------------------------

    def report(self, folder: str) -> Report:
        """The report as of now; without what takes the known findings and other campaigns."""
        options, findings = self.options, tuple(self._reported(folder))
        return Report(
            folder=folder,
            command=options.command,
            seed=options.seed,
            started=int(options.at),
            campaign=f"{options.seed}-{options.at:.6f}",
            number=options.number,
            ended=None if self._ended is None else int(self._ended),
            spent_s=self._spent_s,
            asked_s=options.asked_s,
            findings=findings,
            known=(),
            by_config=tuple(self._by_configuration(findings)),
            by_family=tuple(self._by_family(findings)),
            moments=tuple(self._moments),
            workers=tuple(self._workers()),
            kills=tuple(kill for _, kill in sorted(self._kills.items())),
            canary=(self._canary[0], self._canary[1]),
            unconfirmed=tuple(line for _, line in sorted(self._forbidden.unconfirmed.items())),
            pending=tuple(line for _, line in sorted(self._forbidden.pending.items())),
            unchecked=tuple(line for _, line in sorted(self._forbidden.unchecked.items())),
            versions=self._all_versions(),
            unavailable=dict(self._unavailable),
            problem="; ".join(self._all_problems()),
            interrupted=self._interrupted,
            tests_done=self._generated - len({index for index, *_ in self.not_run}),
            unattended=options.unattended,
            tests=options.tests,
            min_graphs=options.min_graphs,
            noise=options.noise,
            python=options.python,
            generated=self._generated,
            families=self._family_totals(findings),
            ops=dict(self._ops),
            verdicts=dict(self._verdicts),
            forbidden_graphs=len(self._forbidden.graphs),
            unknown_graphs=len(self._unknown),
            clusterings=dict(self._clusterings),
            racing=self._racing,
            compared=self._compared,
            differential=dict(self._differential),
            generating_s=_seconds(self._generating_us),
            judging_s=_seconds(self._judging_us),
            validating_s=_seconds(self._validating_us),
            settings=tuple(each.coverage() for each in self._settings_of.values()),
            known_s=_seconds(self._known_us),
            known_share=_seconds(self._known_us) / max(self._workers_s, 1e-9),
            minimizing=tuple(
                text
                for _, minimized in sorted(self._minimizing.items())
                for _, text in sorted(minimized.items())
            ),
            shards=tuple(
                replace(each, seconds=round(each.seconds, 3))
                for _, each in sorted(self._shards.items())
            ),
        )

    @property
    def _workers_s(self) -> float:
        """Seconds that all workers had, together."""
        return sum(self._workers_of[number] * each.seconds for number, each in self._shards.items())

    def _all_problems(self) -> Iterable[str]:
        yield from self._problems
        over = self._ended is not None and not self._interrupted
        if over and self.options.selftest_s and not self._kills:
            yield "the self-test did not finish"

    def _sightings(self, key: str) -> Sightings:
        return self._forbidden.sightings[key]

    def _reported(self, folder: str) -> Iterable[ReportedFinding]:
        """Findings that a believed test shows, the first seen first."""
        seen = {key: self._sightings(key) for key in self._findings}
        for _, key in sorted((each.bounds[0], key) for key, each in seen.items() if each.tests):
            found, (first, last) = self._findings[key], seen[key].bounds
            yield replace(
                found,
                replay=replay_command(
                    *(found.kind, found.file, folder),
                    *(self.options.python, _named(found.entry)),
                ),
                count=len(seen[key].tests),
                in_this_run=len(seen[key].tests),
                first_seen=int(first),
                last_seen=int(last),
                configs=dict(seen[key].configurations),
                seconds=_seconds(self._cause_us[key]),
                undecided=tuple(sorted(self._undecided.get(key, ()))),
            )

    def _by_configuration(self, findings: Iterable[ReportedFinding]) -> Iterable[Share]:
        found = Counter(
            name
            for each in findings
            for name in {self._reported_as(each.executor, config) for config in each.configs}
        )
        forbidden = Counter[Name]()
        for of, graphs in self._forbidden.by_configuration.items():
            forbidden[self._reported_as(*of)] += graphs
        for name, totals in self._configurations.items():
            yield totals.share(name, findings=found[name], forbidden=forbidden[name])

    def _reported_as(self, executor: str, configuration: str) -> Name:
        name = executor, configuration
        return (executor, PRODUCT) if name in self._product else name

    def _by_family(self, findings: Iterable[ReportedFinding]) -> Iterable[Share]:
        found = Counter(
            (each.executor, each.entry.finding.family) for each in findings if each.entry.finding
        )
        for name, totals in sorted(self._on_executors.items()):
            forbidden = self._forbidden.by_family[name]
            yield totals.share(name, findings=found[name], forbidden=forbidden)

    def _family_totals(self, findings: Iterable[ReportedFinding]) -> dict[str, FamilyTotals]:
        found = Counter(each.entry.finding.family for each in findings if each.entry.finding)
        forbidden = self._forbidden.graphs_of_family
        return {
            name: FamilyTotals(
                *(each.graphs, _seconds(each.us)),
                *(forbidden[name], found[name], each.unknown),
            )
            for name, each in sorted(self._families.items())
        }

    def _workers(self) -> Iterable[WorkerHealth]:
        processes: dict[tuple[str, int], list[ShardLine]] = {}
        for _, each in sorted(self._shards.items()):
            if each.host:
                processes.setdefault((each.host, each.pid), []).append(each)
        for (host, pid), shards in processes.items():
            yield WorkerHealth(
                name=f"process {pid}",
                host=host,
                shards=len(shards),
                lost=sum(each.state == "lost" for each in shards),
                busy_s=round(sum(each.seconds for each in shards), 1),
                crashed=sum(each.crashed for each in shards),
                timed_out=sum(each.timed_out for each in shards),
            )


def _millionths(number: float) -> int:
    """An integer, so that sums are exact and do not depend on the order of events."""
    return round(1e6 * number)


def _percent(reached: int, allowed: int) -> int:
    # A blocked outcome that was seen in part may count for a complete one.
    return min(100, round(100 * reached / allowed))


def _seconds(us: int) -> float:
    return round(us / 1e6, 3)


def _median(percents: Counter[int]) -> float | None:
    """The median as a share, with the mean of the two middle ones; None without values."""
    if not percents:
        return None
    values = sorted(percents)
    ends = list(accumulate(percents[value] for value in values))
    lower = values[bisect_right(ends, (ends[-1] - 1) // 2)]
    upper = values[bisect_right(ends, ends[-1] // 2)]
    return (lower + upper) / 200


_APPLY: Final[Mapping[type, Callable[[Fold, int, Any], None]]] = {
    events.CampaignStarted: Fold._campaign_started,
    events.CampaignResumed: Fold._campaign_resumed,
    events.Progress: Fold._progress,
    events.Problem: Fold._problem,
    events.CampaignEnded: Fold._campaign_ended,
    events.ShardPlanned: Fold._shard_planned,
    events.ShardStarted: Fold._shard_started,
    events.ShardEnded: Fold._shard_ended,
    events.ConfigurationGenerated: Fold._configuration_generated,
    events.ConfigurationUnavailable: Fold._unavailable_here,
    events.Generated: Fold._test_generated,
    events.Executed: Fold._executed,
    events.Continued: Fold._continued,
    events.NotRun: Fold._test_not_run,
    events.Compared: Fold._test_compared,
    events.ClustersChosen: Fold._clusters_chosen,
    events.SeenAgain: Fold._seen_again,
    events.ReductionStarted: Fold._reduction_started,
    events.ReductionEnded: Fold._reduction_ended,
    events.FindingAdded: Fold._finding_added,
    events.CauseCompared: Fold._cause_compared,
    events.CauseChecked: Fold._cause_checked,
    events.ScriptRun: Fold._script_run,
    events.Confirmed: Fold._confirmed,
    events.Unconfirmed: Fold._unconfirmed,
    events.WorkerDied: Fold._worker_died,
    events.CrashReduced: Fold._crash_reduced,
    events.CanaryRun: Fold._canary_run,
    events.MutantRun: Fold._mutant_run,
}
