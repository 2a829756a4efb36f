"""Report of a campaign: plain data, a fold over its events (`litmusfuzz.reports.fold`).

All outputs (terminal, summary, HTML, JUnit, Markdown, SARIF, JSON, `stats`) are made from one
`Report`. Times are whole seconds since 1970, UTC; durations are seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from litmusfuzz.reports import denials, times
from litmusfuzz.reports.events import DOES_NOT_START, FindingKind
from litmusfuzz.reports.headline import headline, symptom_of
from litmusfuzz.reports.open_tests import OpenState, OpenTest, open_tests
from litmusfuzz.reports.schedule import schedule_of
from litmusfuzz.reports.tables import counted, one_line, the_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.events import ExecutorTotals, Kill
    from litmusfuzz.reports.open_tests import Pending, UncheckedTest, UnconfirmedTest
    from litmusfuzz.reports.schedule import ScheduleTable


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """One finding, with all graphs that showed it.

    Parameters
    ----------
    key : str
        `fuzz.finding.canonical.key`: the same in every run for the same finding.
    kind : FindingKind
    entry : Entry
        The minimized test, its allowed sets, and the finding itself. For a worker that
        ended, the test that it ran, without a finding.
    file : str
        Relative to the run's folder.
    executor, config_class, model : str
    cause : str
        Findings with the same cause are likely one defect (`fuzz.finding.causes`).
    reason : tuple of str
        Sentences that say why the most frequent outcome is forbidden, or how the worker
        ended. Empty if the reason was not found in time.
    is_cycle : bool
        True if `reason` is a cycle.
    arcs : tuple of (str, str)
        For each sentence of a cycle the earlier node and the later one
        (`oracles.reason.Reason.arcs`).
    edges : tuple of (str, str)
        Control or data edges that the reason uses, as names of nodes.
    rules : tuple of str
        Names of the broken axioms.
    count : int
        Graphs that showed it, over all runs.
    in_this_run : int
        Those of them in this run.
    first_seen, last_seen : int
    configs : mapping of str to int
        By configuration, graphs of this run.
    histogram : mapping of Outcome to (int, str)
        Executions of the minimized test by outcome, with the verdict.
    allowed : tuple of Outcome
        The allowed outcomes; empty if they are too many.
    nearest : Outcome or None
        The allowed outcome that differs in fewest values from the observed one.
    replay : str
        The command that shows it again.
    script : str
        Standalone script that shows it, relative; "" if there is none.
    script_shows_it : bool
    known : str
        The reason or link in the known-findings file; "" if it is new.
    seconds : float
        Time spent on it.
    undecided : tuple of str
        Causes that may explain it: no experiment has decided that.
    also_on : tuple of tuple of str
        The ops of other tests on which a worker crashed alike. The key of a crash depends on
        the ops of its test, so each of these crashes has a key of its own.
    allowed_by : tuple of str
        Models, weaker than the one that judges, that allow all of it.
    needs : str
        The settings that it needs, in words; "" if its executor has none.
    traceback : str
        Of the exception that ended the worker; "" if none did.
    log : str
        File with all that the worker's process has written, relative; "" if there is none.
    """

    key: str
    kind: FindingKind
    entry: Entry
    file: str
    executor: str
    config_class: str
    model: str
    cause: str
    reason: tuple[str, ...]
    is_cycle: bool
    edges: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]
    count: int
    in_this_run: int
    first_seen: int
    last_seen: int
    configs: Mapping[str, int]
    histogram: Mapping[Outcome, tuple[int, str]]
    allowed: tuple[Outcome, ...]
    nearest: Outcome | None
    replay: str
    script: str = ""
    script_shows_it: bool = False
    known: str = ""
    also_on: tuple[tuple[str, ...], ...] = ()
    arcs: tuple[tuple[str, str], ...] = ()
    allowed_by: tuple[str, ...] = ()
    needs: str = ""
    traceback: str = ""
    log: str = ""
    seconds: float = 0.0
    undecided: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """One line, the same in every output: symptom, ops, and the settings that it needs."""
        switch = self.schedule.need if self.schedule is not None else ""
        needs = "; ".join(filter(None, (self.needs, switch)))
        return headline(symptom_of(self.entry, self.kind), self.entry.test, needs)

    @property
    def schedule(self) -> ScheduleTable | None:
        """The schedule that shows it; None if its file has none by names."""
        return schedule_of(self.entry)

    @property
    def where(self) -> str:
        """The executor, and the class of its configurations."""
        if self.config_class.startswith(f"{self.executor}/"):
            return self.config_class
        return f"{self.executor}/{self.config_class}"

    @property
    def shown_on(self) -> str:
        """The configuration that most graphs showed it in; without one, as of `where`."""
        names = sorted(self.configs, key=lambda name: (-self.configs[name], name))
        return f"{self.executor}/{names[0]}" if names else self.where

    @property
    def observed(self) -> Mapping[Outcome, tuple[int, str]]:
        """The histogram; without one, the forbidden outcomes in the finding's file."""
        if self.histogram or self.entry.finding is None:
            return self.histogram
        return {o: (count, "forbidden") for o, count in self.entry.finding.forbidden}

    @property
    def no_histogram(self) -> str:
        """Why no outcome was observed; "" if some were."""
        return denials.no_outcome(self)

    @property
    def forbidden(self) -> tuple[Outcome, ...]:
        """The forbidden outcomes seen: as in its file, which is named after the first, then others.

        Of those that the file does not list, the most frequent is first.
        """
        shown = {o for o, (_, verdict) in self.observed.items() if verdict == "forbidden"}
        in_file = self.entry.finding.forbidden if self.entry.finding is not None else ()
        first = [o for o, _ in in_file if o in shown]
        others = shown.difference(first)
        return (*first, *sorted(others, key=lambda o: (-self.observed[o][0], str(o))))

    @property
    def executions(self) -> int:
        """Number of executions of the minimized test."""
        if not self.histogram and self.entry.finding is not None:
            return self.entry.finding.executions
        return sum(count for count, _ in self.histogram.values())

    @property
    def seen(self) -> str:
        """The first forbidden outcome, in a line."""
        if not self.forbidden:
            return self.no_histogram
        outcome = self.forbidden[0]
        return f"{outcome}, {self.observed[outcome][0]:,} times in {self.executions:,} executions"

    @property
    def evidence(self) -> Mapping[str, str]:
        """What was seen, the nearest allowed outcome, the reason, and the broken axioms."""
        facts = {
            "seen": self.seen,
            f"nearest allowed under {self.model}": str(self.nearest or ""),
            "because": "; ".join(self.reason),
            "broken": ", ".join(self.rules),
        }
        return {what: text for what, text in facts.items() if text}


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of the known-findings file.

    Parameters
    ----------
    key, why : str
        Name in lists, and the reason to accept it.
    seen : bool
        True if this run saw the finding.
    file : str
        Of a cause its own, else that of the first finding that it explains; "" for none.
    graphs : int
        Graphs of this run that show it; of a cause those that look like it, on one executor in one
        configuration each.
    name : str
        Of a cause; "" for an entry that is none. The rest is about causes.
    needs : str
        The settings that it needs, in words.
    configurations : mapping of str to int
        Of these graphs.
    checked, undecided : int
        Graphs of which experiments showed whether something else hides in them, and those for which
        they could not decide.
    seconds : float
        Time spent on it.
    shows : bool or None
        Whether its own test still shows it; None if that is undecided, or it did not run.
    executions : int
        Of its own test.
    may_explain : int
        Graphs without a finding that it may explain.
    """

    key: str
    why: str
    seen: bool
    name: str = ""
    needs: str = ""
    graphs: int = 0
    configurations: Mapping[str, int] = field(default_factory=dict)
    checked: int = 0
    undecided: int = 0
    seconds: float = 0.0
    shows: bool | None = None
    executions: int = 0
    file: str = ""
    may_explain: int = 0

    @property
    def label(self) -> str:
        """Name in what is printed."""
        return self.name or self.key

    @property
    def sightings(self) -> str:
        """Where this run saw it, in words: how many graphs, and its file."""
        of = counted(self.graphs, "graph") if self.graphs else "its own test"
        return f"{of}; {self.file}" if self.file else of

    @property
    def is_unseen(self) -> bool:
        """True if no graph showed it, and none that is left may be one that did."""
        return not self.seen and not self.may_explain

    @property
    def gone(self) -> bool:
        """True if it no longer shows: so many executions would have shown it, and no graph did."""
        return self.shows is False and self.is_unseen

    @property
    def state(self) -> str:
        """Whether the cause still shows."""
        return denials.state_of(self)


@dataclass(frozen=True, slots=True)
class Share:
    """Costs and results of one configuration, or of one family on one executor.

    Of the tests that were generated for it, it ran `graphs`; the others it refused or could not
    run in time (`not_run`). It executed some of them more often, in `rounds`
    (`fuzz.campaign.depth`). `outcomes` were judged, `minimizing_outcomes` more were seen while
    findings were minimized. `reached` is the share of allowed outcomes seen on the median graph
    of the `reached_graphs` whose allowed outcomes are known and several; None without such graphs.
    `unknown` counts undecided graphs by reason; `refused_for` counts the features for which
    graphs were refused, of which a graph may have several. `clusterings` counts the verdicts of
    translation validation on clusters that it chose, `racing` the graphs among these with a racing
    cluster of several resource ops. `counters` are its executor's
    (`fuzz.executors.protocol.Counts`). Under control, `searched` graphs were executed in all their
    schedules and `cut_off` in some: in so many `schedules` together, and in executions that were
    `sampled`. `first` counts outcomes by the search or scheduler that has shown them first. A
    family on an executor has no `model`, `guarantees`,
    clusterings, counters, and no graphs that were not run.
    """

    name: str
    graphs: int
    outcomes: int
    seconds: float
    findings: int
    forbidden_graphs: int
    reached: float | None
    refused: int = 0
    crashed: int = 0
    timed_out: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    refused_for: Mapping[str, int] = field(default_factory=dict)
    reached_graphs: int = 0
    executor: str = ""
    model: str = ""
    guarantees: str = ""
    not_run: int = 0
    rounds: int = 0
    minimizing_outcomes: int = 0
    minimizing_s: float = 0.0
    clusterings: Mapping[str, int] = field(default_factory=dict)
    racing: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    searched: int = 0
    cut_off: int = 0
    schedules: int = 0
    sampled: int = 0
    first: Mapping[str, int] = field(default_factory=dict)

    @property
    def configuration(self) -> str:
        """The name without that of the executor."""
        return self.name.removeprefix(f"{self.executor}/")

    @property
    def died(self) -> int:
        """Graphs that ended their worker, so that no outcome was seen."""
        return self.crashed + self.timed_out

    @property
    def generated(self) -> int:
        """Graphs that were generated for it."""
        return self.graphs + self.refused + self.not_run


@dataclass(frozen=True, slots=True)
class Ran:
    """How much ran of what was asked of one executor.

    Of `configurations`, those in `not_reached` ran fewer graphs to their end than the campaign
    asks for, and those in `unavailable` cannot run here; both with the reason. Of the `generated`
    graphs the executor ran `graphs`, and saw `outcomes`.
    """

    executor: str
    configurations: int
    not_reached: Mapping[str, str]
    unavailable: Mapping[str, str]
    generated: int
    graphs: int
    outcomes: int

    @property
    def reached(self) -> int:
        """Number of configurations that ran enough."""
        return self.configurations - len(self.not_reached) - len(self.unavailable)


@dataclass(frozen=True, slots=True)
class ValueTotals:
    """Graphs that ran in configurations with one value of a setting, and the time they took."""

    setting: str
    value: str
    graphs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Reached:
    """How many of so many possible ones a graph ran with."""

    reached: int
    possible: int


@dataclass(frozen=True, slots=True)
class SettingCoverage:
    """Values of an executor's settings, and pairs of them, that the campaign ran graphs in.

    `possible` counts the pairs that a configuration can have. `rarest` is the reached pair with
    the fewest graphs, `rarest_graphs`; None if none was reached. Pairs are texts,
    ``setting=value``. `ops` counts the resource ops that the executor takes, `op_pairs` the pairs
    of these that one graph had, an op twice included, and `op_values` the pairs of an op and a
    value of a setting.
    """

    executor: str
    possible: int
    not_reached: tuple[tuple[str, str], ...]
    rarest: tuple[str, str] | None
    rarest_graphs: int
    values: tuple[ValueTotals, ...]
    ops: Reached = Reached(0, 0)
    op_pairs: Reached = Reached(0, 0)
    op_values: Reached = Reached(0, 0)

    @property
    def reached(self) -> int:
        """Number of pairs that a graph ran in."""
        return self.possible - len(self.not_reached)


@dataclass(frozen=True, slots=True)
class FamilyTotals:
    """Costs and results of a family over all executors.

    `graphs` counts the generated ones, `seconds` the time to generate, run and judge them,
    without minimizing. `forbidden_graphs` showed a forbidden outcome, `unknown_graphs` went
    over the oracle's budget. `findings` counts those that were kept.
    """

    graphs: int
    seconds: float
    forbidden_graphs: int
    findings: int
    unknown_graphs: int


@dataclass(slots=True)
class ShardLine:
    """One shard: what it runs, and how it ended.

    `state` is "running", "done" or "lost". `graphs` counts the tests that it ran. `seconds` are
    those from the first to the last event of its process. `crashed` and `timed_out` count its
    workers' deaths, `generated` the configurations that it generated.
    """

    number: int
    began: float | None = None
    configurations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state: str = "running"
    seconds: float = 0.0
    graphs: int = 0
    host: str = ""
    pid: int = 0
    problem: str = ""
    crashed: int = 0
    timed_out: int = 0
    generated: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """Totals at one moment of a run, for throughput over time.

    `spent_s` is how long it had run by then, over all its processes; `at` is the time of day.
    """

    at: int
    graphs: int
    outcomes: int
    findings: int
    disk_bytes: int
    spent_s: int


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A shard process of a run: completed and lost shards, crashes and timeouts."""

    name: str
    host: str
    shards: int
    lost: int
    busy_s: float
    crashed: int
    timed_out: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run, for trends and sightings; its folder may be gone.

    `campaign` identifies it, `name` is that of its folder, and `number` is its place in the order
    of runs. `seen` has, by the key of each finding, the graphs of that run that showed it, and
    when it was first seen.
    """

    started: int
    graphs: int
    outcomes: int
    findings: int
    new: int
    mutation_score: float | None
    mutants: int = 0
    """Of which the score is the share."""
    campaign: str = ""
    name: str = ""
    number: int = 0
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Old nightly runs that this one has removed.

    `folders` names those that it emptied, of `freed_bytes` in all; `left` has the folders that it
    should have emptied and did not, with the reason.
    """

    folders: tuple[str, ...]
    freed_bytes: int
    left: Mapping[str, str]

    @property
    def lines(self) -> tuple[str, ...]:
        """What was removed, and what was not, each in a line; nothing if there is nothing."""
        gone, left = len(self.folders), len(self.left)
        said = []
        if gone:
            named = f"{', '.join(self.folders[:3])}{', ...' if gone > 3 else ''}"
            freed = f"{self.freed_bytes / 1e6:,.1f} MB freed"
            said.append(f"{gone} pruned ({named}), {freed}")
        if left:
            (name, why), *_ = self.left.items()
            more = f"; and {left - 1} more" if left > 1 else ""
            said.append(f"{left} not pruned: {name}: {why}{more}")
        return tuple(said)


@dataclass(frozen=True, slots=True)
class Report:
    """A campaign; while it is in progress, so far."""

    folder: str
    command: str
    seed: int
    started: int
    ended: int | None
    spent_s: float
    """Time that it ran, without the pause before a resumption."""
    asked_s: float
    findings: tuple[ReportedFinding, ...]
    known: tuple[Known, ...]
    by_config: tuple[Share, ...]
    """Named ``executor/configuration``, in the order of the campaign's settings."""
    by_family: tuple[Share, ...]
    """Named ``executor/family``."""
    moments: tuple[Moment, ...]
    workers: tuple[WorkerHealth, ...]
    kills: tuple[Kill, ...]
    canary: tuple[int, int]
    """Runs of the canary, and those that were reported."""
    unconfirmed: tuple[UnconfirmedTest, ...]
    """Tests with a forbidden outcome that no fresh process has shown again."""
    pending: tuple[Pending, ...]
    """Tests with a forbidden outcome that are not minimized."""
    versions: Mapping[str, Mapping[str, str]]
    earlier: tuple[Earlier, ...] = ()
    damaged: tuple[str, ...] = ()
    """Reports beside this one that cannot be read, so that trends and counts lack them."""
    campaign: str = ""
    """Identifies it among all campaigns, whatever its folder is called."""
    number: int = 0
    pruned: Pruned = Pruned((), 0, {})
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Configurations that cannot run here, with the reason."""
    problem: str = ""
    interrupted: bool = False
    tests_done: int = 0
    """Generated graphs that no configuration has yet to run."""
    unchecked: tuple[UncheckedTest, ...] = ()
    """Tests with a forbidden outcome that a known cause explains, perhaps not all of it."""
    may_be_known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the file of a test that is pending or unconfirmed, names of the known causes that may
    explain it."""
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """What the files of `MOST_IN_FULL` open tests have."""
    unattended: bool = False
    tests: int | None = None
    min_graphs: int = 1
    """Graphs that each configuration has to run; if one that can run here runs fewer, the campaign
    is not clean."""
    noise: str = "default"
    python: str | None = None
    generated: int = 0
    families: Mapping[str, FamilyTotals] = field(default_factory=dict)
    ops: Mapping[str, int] = field(default_factory=dict)
    """Generated resource ops by kind."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Executions by verdict."""
    forbidden_graphs: int = 0
    """Graphs that showed a forbidden outcome, on any executor."""
    unknown_graphs: int = 0
    clusterings: Mapping[str, int] = field(default_factory=dict)
    """Verdicts on the clusters that tests were generated with."""
    racing: int = 0
    compared: int = 0
    """Graphs that several executors ran."""
    differential: Mapping[str, ExecutorTotals] = field(default_factory=dict)
    """By the title of a configuration."""
    generating_s: float = 0.0
    judging_s: float = 0.0
    validating_s: float = 0.0
    known_s: float = 0.0
    """Time of workers spent on what was known."""
    known_share: float = 0.0
    """Share of all workers' time."""
    minimizing: tuple[str, ...] = ()
    """Findings that are being minimized: ``graph INDEX of EXECUTOR/CONFIGURATION``."""
    shards: tuple[ShardLine, ...] = ()
    settings: tuple[SettingCoverage, ...] = ()
    """Of executors with a configuration space that ran in several configurations."""

    @property
    def new(self) -> tuple[ReportedFinding, ...]:
        """Findings that no entry of the known-findings file names."""
        return tuple(each for each in self.findings if not each.known)

    @property
    def shown(self) -> tuple[Known, ...]:
        """Entries of the known-findings file that this campaign saw."""
        return tuple(each for each in self.known if each.seen)

    @property
    def stale(self) -> tuple[Known, ...]:
        """Entries of the known-findings file that this campaign did not see."""
        return tuple(each for each in self.known if each.is_unseen)

    @property
    def open_tests(self) -> tuple[OpenTest, ...]:
        """Tests that showed a forbidden outcome and have no finding, the weightiest first."""
        return open_tests(self)

    @property
    def undecided(self) -> int:
        """Number of open tests that were not minimized, and that nothing known may explain."""
        return sum(each.exit_code == 1 for each in self.open_tests)

    @property
    def gone(self) -> tuple[Known, ...]:
        """Known causes that no longer show."""
        return tuple(each for each in self.known if each.gone)

    @property
    def until(self) -> int:
        """End of the campaign; while it is in progress, its last known moment."""
        return self.ended or (self.moments[-1].at if self.moments else self.started)

    @property
    def graphs(self) -> int:
        """Runs of a graph on an executor."""
        return sum(each.graphs for each in self.by_config)

    @property
    def outcomes(self) -> int:
        """Executions that were judged."""
        return sum(self.verdicts.values())

    @property
    def judged_by(self) -> str:
        """The memory models that judge the outcomes, and why these; "" if nothing is to run."""
        shares = [each for each in self.by_config if each.guarantees]
        if not shares:
            return ""
        asked = [each for each in shares if each.model != each.guarantees]
        if asked:
            line = f"judged by {the_model(asked[0].model)}, as --model asks"
            if len(shares) == 1:
                return f"{line}; {asked[0].name} guarantees {asked[0].guarantees}"
            return f"{line}; {len(asked)} of {len(shares)} configurations guarantee another model"
        if len(shares) == 1:
            return f"judged by {the_model(shares[0].model)}, which {shares[0].name} guarantees"
        models = Counter(each.model for each in shares)
        if len(models) == 1:
            model = the_model(shares[0].model)
            return f"judged by {model}, which all {len(shares)} configurations guarantee"
        listed = ", ".join(f"{name} of {number}" for name, number in models.most_common())
        return f"judged by the model that each configuration guarantees: {listed}"

    @property
    def verdict(self) -> str:
        """The result in a line."""
        interrupted = f"; {self.interruption}" if self.interrupted else ""
        if self.complaint:
            return f"broken: {one_line(self.complaint)}{interrupted}"
        gone = f"; {denials.GONE.of(self)}" if self.gone else ""
        if self.interrupted and self.exit_code() == 3:
            return f"{self.interruption}: {self._result}{self._known_shown}{gone}"
        return f"{self._verdict}{gone}{interrupted}"

    @property
    def interruption(self) -> str:
        """How far the campaign came, if it was interrupted; "" if it was not."""
        if not self.interrupted:
            return ""
        if self.tests is not None:
            return f"interrupted after {self.tests_done:,} of {counted(self.tests, 'test')}"
        asked = times.seconds(self.asked_s)
        if self.spent_s >= self.asked_s:
            return f"interrupted after {asked} s, before all findings were completed"
        return f"interrupted after {times.seconds(self.spent_s)} of {asked} s"

    @property
    def _verdict(self) -> str:
        """What was seen, or that nothing was; and what that is worth."""
        verdict, code = self._result, self.exit_code()
        if code == 2:
            return f"{verdict}, but a report beside this one is damaged"
        if self.ended is None or code != 3 or not self.outcomes:
            return f"{verdict}{self._known_shown if code != 1 else ''}"
        if self.not_reached:
            configurations = counted(len(self.by_config), "configuration")
            if self.min_graphs > 1:
                less = f"ran fewer than {self.min_graphs} graphs"
            else:
                less = "was not reached" if self.not_reached == 1 else "were not reached"
            verdict += f", but {self.not_reached} of {configurations} {less}"
        elif not self.open_tests:
            verdict += ", but not everything was decided"
        return verdict + self._known_shown

    @property
    def _known_shown(self) -> str:
        """How many known causes showed, as the end of a verdict; "" if none did."""
        return f"; {counted(len(self.shown), 'known cause')} showed" if self.shown else ""

    @property
    def _result(self) -> str:
        """What was seen, or that nothing was."""
        if seen := " and ".join(self._seen):
            return f"{seen}{'' if self.ended else ' so far'}"
        if not self.outcomes and self.ended is not None:
            return denials.NOTHING_RAN.of(self) or denials.NOTHING_JUDGED.of(self)
        return denials.NOTHING_NEW.of(self)

    @property
    def _seen(self) -> Iterator[str]:
        """What showed a forbidden outcome and is not known: what weighs most."""
        if self.new:
            yield counted(len(self.new), "new finding")
        if self.undecided:
            yield f"{counted(self.undecided, 'graph')} not minimized that may be new"
        if self.new or self.undecided:
            return  # a heading has what weighs most
        states = Counter(each.state for each in self.open_tests)
        if number := states[OpenState.NOT_CONFIRMED] + states[OpenState.SUSPECT]:
            yield f"{counted(number, 'graph')} with a forbidden outcome that is not confirmed"
        if number := states[OpenState.UNDECIDED]:
            yield f"{counted(number, 'graph')} that known causes may explain"

    # --- how much ran ------------------------------------------------------------------

    @property
    def ran(self) -> tuple[Ran, ...]:
        """How much ran of what was asked for, by executor."""
        parts: dict[str, list[Share]] = {}
        for each in self.by_config:
            parts.setdefault(each.executor, []).append(each)
        return tuple(self._ran(executor, shares) for executor, shares in parts.items())

    def _ran(self, executor: str, shares: list[Share]) -> Ran:
        not_reached: dict[str, str] = {}
        unavailable: dict[str, str] = {}
        for each in shares:
            ended = each.graphs - each.died
            why = self.unavailable.get(each.name, "")
            # A worker that dies at its start says nothing about this machine.
            if why and not why.startswith(DOES_NOT_START) and ended < max(1, self.min_graphs):
                unavailable[each.configuration] = why
            elif ended < self.min_graphs:
                not_reached[each.configuration] = why or self._why_not_reached(each)
        return Ran(
            executor,
            len(shares),
            not_reached,
            unavailable,
            generated=sum(each.generated for each in shares),
            graphs=sum(each.graphs for each in shares),
            outcomes=sum(each.outcomes for each in shares),
        )

    def _why_not_reached(self, share: Share) -> str:
        """Why a configuration ran too few graphs to their end."""
        if share.died:
            return f"{share.died} of {counted(share.graphs, 'graph')} crashed or timed out"
        if share.refused and share.refused == share.generated:
            return f"refused {share.refused} of {counted(share.generated, 'graph')}"
        if self.interrupted:
            return "the campaign was interrupted"
        if self.tests is not None and self.generated >= self.tests:
            return f"no more than {counted(self.tests, 'graph')} asked for"
        return "the time was up"

    @property
    def not_reached(self) -> int:
        """Number of configurations that can run here and ran too few graphs."""
        return sum(len(each.not_reached) for each in self.ran)

    @property
    def canary_failed(self) -> bool:
        """True if a run of the canary was not reported, or it did not run at all.

        It shows that a forbidden outcome would be reported. Without a run of it, one that was
        reported shows that as well: of a campaign that was killed right then, for example.
        """
        runs, reported = self.canary
        over = self.ended is not None and not self.interrupted and self.tests != 0
        unproven = not runs and not self.forbidden_graphs
        return reported < runs or (over and unproven and not self.problem)

    @property
    def complaint(self) -> str:
        """Reason not to trust the campaign; "" if there is none."""
        runs, reported = self.canary
        unreported = [each.mutant for each in self.kills if each.seconds is None]
        reasons = [self.problem] if self.problem else []
        if self.canary_failed:
            reasons.append(
                f"the canary was reported in {reported} of {counted(runs, 'run')}:"
                " this campaign proves nothing"
            )
        if unreported:
            reasons.append(f"not reported: {', '.join(unreported)}")
        return "; ".join(reasons)

    @property
    def left_open(self) -> tuple[str, ...]:
        """What was not decided, and is no open test."""
        unknown = f"{counted(self.unknown_graphs, 'graph')} over the oracle's budget"
        return (unknown,) if self.unknown_graphs else ()

    @property
    def mutation_score(self) -> float | None:
        """Share of mutants that were reported; None without a self-test."""
        if not self.kills:
            return None
        return sum(each.seconds is not None for each in self.kills) / len(self.kills)

    def exit_code(self) -> int:
        """0 nothing new, 1 a new finding, 2 broken or damaged, 3 too little ran, or was decided.

        What an open test counts is in `litmusfuzz.reports.open_tests.EXIT_CODES`. Too little ran
        if the campaign was interrupted, a configuration was not reached, or nothing was judged. An
        unattended campaign always has some graphs over the oracle's budget; they do not count.
        """
        if self.complaint:
            return 2
        left = {each.exit_code for each in self.open_tests}
        if self.new or 1 in left:
            return 1
        if self.damaged:
            return 2
        if self.interrupted or self.not_reached or not self.outcomes or 3 in left:
            return 3
        return 3 if self.unknown_graphs and not self.unattended else 0
