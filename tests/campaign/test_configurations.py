"""Campaigns on several configurations of one executor."""

from __future__ import annotations

import asyncio
import html
import random
import statistics
from collections import Counter
from copy import copy
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from campaign.campaigns import Run
from helpers_settings import settings_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, load, loads
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.best import Best
from litmusfuzz.fuzz.campaign.lanes.reduce import Reduce
from litmusfuzz.fuzz.campaign.probing import PROBE_STEP
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S, MAX_REDUCTION_S
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.finding.canonical import ordered
from litmusfuzz.fuzz.finding.causes import symptom
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer, allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR, SEQUENTIAL
from litmusfuzz.reports.events import (
    ConfigurationUnavailable,
    Executed,
    NotRun,
    ReductionEnded,
    WorkerDied,
)
from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.outputs import as_json
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.campaign.job import Job, Result
    from litmusfuzz.fuzz.campaign.target import Target

NAME = "double/profiled"


pytestmark = pytest.mark.usefixtures("doubles")


def campaign(out: Path, **changes) -> Run:
    configs = executor_class(NAME).configurations()
    asked = {"seed": 2, "tests": 98, "count": 64, "families": ("dag",)} | changes
    return Run(settings_of(out=out, executors=((NAME, *configs),), time_s=600, **asked)).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> Run:
    return campaign(tmp_path_factory.mktemp("configurations"))


def test_each_graph_runs_in_one_of_them(ended: Run) -> None:
    report = ended.report
    assert (report.complaint, report.exit_code()) == ("", 1)
    given = [
        (each.index, each.configuration)
        for each in ended.events
        if isinstance(each, Executed | NotRun)
    ]
    assert len(given) == len({index for index, _ in given}) == report.generated == 98
    for name, share in ended.lines.items():
        ran = [each for each in ended.of(Executed) if each.configuration == name]
        assert share.graphs == len(ran)
        assert share.graphs + share.refused + share.not_run == sum(n == name for _, n in given)
        assert sum(sum(each.verdicts.values()) for each in ran) == share.outcomes
        minimized = [each for each in ended.of(ReductionEnded) if each.configuration == name]
        assert sum(each.executions for each in minimized) == share.minimizing_outcomes
    ran = {name: each.graphs for name, each in ended.lines.items() if each.graphs}
    assert set(ran) == {"sound", "stale", "split", "weak", "stale_too"}
    assert max(ran.values()) <= 2 * min(ran.values())


def test_an_unavailable_configuration_is_reported_and_the_others_run(ended: Run) -> None:
    report = ended.report
    reported = {title.rpartition("/")[2]: why for title, why in report.unavailable.items()}
    assert reported["missing"] == "no such device"
    assert reported["dies"].startswith("does not start: ")
    assert set(reported) == {"missing", "dies"}
    assert [each.configuration for each in ended.of(ConfigurationUnavailable)] == [
        "missing",
        "dies",
    ]  # each once
    assert summary(report).count("no such device") == 1
    for name in reported:
        share = ended.lines[name]
        assert (share.graphs, share.refused) == (0, 0)
        assert share.not_run == sum(each.configuration == name for each in ended.of(NotRun)) > 0
    assert not ended.of(WorkerDied)


def test_how_much_of_what_was_asked_for_ran(ended: Run) -> None:
    """One cannot run here, the worker of another dies; nothing new is not clean then."""
    report = ended.report
    (ran,) = report.ran
    assert (ran.executor, ran.configurations, ran.reached) == (NAME, 7, 5)
    assert ran.unavailable == {"missing": "no such device"}
    assert list(ran.not_reached) == ["dies"]
    assert ran.not_reached["dies"].startswith("does not start: exit 3")
    assert (ran.generated, ran.graphs) == (98, len(ended.of(Executed)))
    known = replace(report, findings=tuple(replace(f, known="a mutant") for f in report.findings))
    verdict = "nothing new, but 1 of 7 configurations was not reached"
    assert (known.verdict, known.exit_code()) == (verdict, 3)
    assert replace(known, unattended=True).exit_code() == 3
    assert replace(known, min_graphs=0).exit_code() == 0
    many = replace(known, min_graphs=100)
    assert many.verdict == "nothing new, but 6 of 7 configurations ran fewer than 100 graphs"
    for each in (summary(known), html.unescape(page(known)), html.unescape(markdown(known))):
        flat = " ".join(each.replace("\\", "").split())
        assert verdict in flat
        assert f"{NAME}: 1 of 7 not reached (does not start: exit 3" in flat.replace(
            f"<dt>{NAME}</dt><dd>", f"{NAME}: "
        )
    assert summary(known).splitlines()[-1] == verdict
    suite = ElementTree.fromstring(junit(known)).find("testsuite[@name='configurations']")  # noqa: S314
    assert suite is not None
    said = {
        case.attrib["name"]: (each.tag, each.attrib["message"]) for case in suite for each in case
    }
    assert set(said) == {f"{NAME}/missing", f"{NAME}/dies"}
    assert said[f"{NAME}/missing"] == ("skipped", "no such device")
    kind, why = said[f"{NAME}/dies"]
    assert kind == "error"  # not finished is not clean: exit 3
    assert why.startswith("not reached: does not start: exit 3")
    (invocation,) = (run["invocations"][0] for run in sarif(known)["runs"])
    notices = [(n["level"], n["message"]["text"]) for n in invocation["toolExecutionNotifications"]]
    assert ("note", f"{NAME}/missing did not run: no such device") in notices
    assert [level for level, _ in notices] == ["warning", "note"]
    data = as_json(known)
    assert (data["configurations"], data["not_reached"], data["exit_code"]) == (7, 1, 3)
    assert data["ran"][0]["unavailable"] == ran.unavailable


def test_each_configuration_is_judged_by_its_guaranteed_model(ended: Run) -> None:
    by = {name: each.model for name, each in ended.lines.items()}
    assert (by["split"], by["weak"]) == ("executor", "rfc")
    assert {(each.configuration, each.model) for each in ended.of(Executed)} <= set(by.items())
    assert not ended.lines["sound"].forbidden_graphs
    assert not ended.lines["weak"].forbidden_graphs


def test_a_finding_is_reported_once_with_all_its_configurations(ended: Run) -> None:
    """A configuration in another environment counts only after it has run the finding's test."""
    report = ended.report
    both = [f for f in report.findings if {"stale", "stale_too"} <= set(f.configs)]
    assert both
    tests = [reported.entry.test for reported in report.findings]
    assert len(tests) == len(set(tests))
    assert sum(sum(f.configs.values()) for f in report.findings) == report.forbidden_graphs
    for reported in report.findings:
        assert sum(reported.configs.values()) == reported.count
        assert load(ended.path(reported.file)) == reported.entry
        assert reported.entry.finding is not None
        assert reported.entry.finding.confirmed


def test_what_only_the_stricter_model_forbids_is_reported_under_it(
    tmp_path: Path,
) -> None:
    """Updates in two parts, which `rfc` allows, on an executor that guarantees `executor`."""
    (config,) = (c for c in executor_class(NAME).configurations() if c.name == "split")
    settings = settings_of(
        1, tmp_path, ((NAME, config),), time_s=600, tests=20, families=("dag",), count=64
    )
    report = Run(settings).run().report
    assert report.findings
    assert {reported.allowed_by for reported in report.findings} == {("rfc",)}
    assert "only the model executor forbids it: rfc allows it" in summary(report)


def test_the_seed_repeats_who_runs_what(tmp_path: Path, ended: Run) -> None:
    again = campaign(tmp_path, workers=2)
    assert again.repeatable == ended.repeatable
    ran = [each for each in again.repeatable if b'"Executed"' in each]
    assert len(ran) == sum(each.graphs for each in ended.lines.values())


def test_outcomes_reached_are_counted(ended: Run) -> None:
    """The median over tests whose allowed outcomes are known and several."""
    for name, share in ended.lines.items():
        reached = [
            each.reached / each.allowed
            for each in ended.of(Executed)
            if each.configuration == name and each.reached is not None and each.allowed
        ]
        assert share.reached_graphs == len(reached)
        if reached:
            assert share.reached == pytest.approx(statistics.median(reached), abs=0.006)
            assert 0 < share.reached <= 1
    assert ended.lines["sound"].reached_graphs > 0


def test_the_summary_has_a_line_for_each(ended: Run) -> None:
    text = summary(ended.report)
    for name in ("sound", "stale", "split", "weak", "stale_too"):
        (line,) = (
            each.split() for each in text.splitlines() if each.strip().startswith(f"{NAME}/{name} ")
        )
        assert str(ended.lines[name].graphs) in line


# --- what is minimized where, and until when ---------------------------------------------


def alone(out: Path, configs: tuple[str, ...], *pending: Entry, **changes) -> Run:
    """A campaign on some configurations that generates no test."""
    known = {config.name: config for config in executor_class(NAME).configurations()}
    chosen = tuple(known[name] for name in configs)
    asked = {"tests": 0, "count": 64, "families": ("dag",), "time_s": 600} | changes
    settings = settings_of(2, out, ((NAME, *chosen),), **asked)
    return Run(settings, pending)


@pytest.fixture(scope="module")
def unreduced(ended: Run) -> Entry:
    """An unreduced finding of the configuration `stale_too`."""
    entries = map(load, sorted(ended.path("unreduced").iterdir()))
    found = (
        e for e in entries if e.finding.configuration == "stale_too" and len(e.test.effects) > 3
    )
    return next(found)


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Executions by configuration, while findings are minimized."""
    counts: Counter[str] = Counter()
    honest = Slot.run

    async def counting(self: Slot, job: Job) -> Result:
        before = self.executions
        result = await honest(self, job)
        counts[self.config.name] += (self.executions - before) * self.minimizing
        return result

    monkeypatch.setattr(Slot, "run", counting)
    return counts


def test_without_a_space_a_finding_is_tried_in_the_first_configuration_and_stays_in_its_own(
    tmp_path: Path, unreduced: Entry, spent: Counter[str]
) -> None:
    """The first one, `missing`, cannot run here."""
    ended = alone(tmp_path, ("stale", "stale_too"), unreduced).run()
    (found,) = ended.report.findings
    assert found.entry.finding is not None
    assert (found.entry.finding.configuration, set(found.configs)) == ("stale_too", {"stale_too"})
    assert found.entry.finding.first_seen_in is None
    assert found.entry.finding.minimized
    assert found.entry.finding.confirmed
    assert len(found.entry.test.effects) < len(unreduced.test.effects)
    assert found.needs == "in configuration stale_too"
    assert set(spent) == {"stale_too"}
    (reduction,) = ended.of(ReductionEnded)
    assert (reduction.configuration, reduction.executions) == ("stale_too", spent.total())
    assert not ended.report.minimizing


def test_a_finding_of_one_configuration_is_minimized_there(
    tmp_path: Path, unreduced: Entry, spent: Counter[str]
) -> None:
    (found,) = alone(tmp_path, ("sound", "stale_too"), unreduced).run().report.findings
    assert found.entry.finding is not None
    assert found.entry.finding.minimized
    assert set(spent) == {"stale_too"}


def test_a_finding_is_finished_though_the_time_is_up(tmp_path: Path, unreduced: Entry) -> None:
    """In the extra time for minimizing, the reduction is completed."""
    asked = {"time_s": 1e-9, "tests": None}
    ended = alone(tmp_path / "all", ("stale_too",), unreduced, **asked, extra_minimizing_s=60.0)
    ended.run()
    assert (ended.tests(NAME), ended.report.pending) == ([], ())
    assert [f.entry.finding.minimized for f in ended.report.findings if f.entry.finding] == [True]
    (reduction,) = ended.of(ReductionEnded)
    assert reduction.seconds < 60.0

    ended = alone(tmp_path / "none", ("stale_too",), unreduced, **asked).run()
    (pending,) = ended.report.pending
    assert (pending.index, pending.executor, pending.configuration) == (
        unreduced.finding.index,
        NAME,
        "stale_too",
    )
    assert not ended.report.findings


@pytest.mark.parametrize(("workers", "at_once"), [(1, 1), (2, 1), (3, 1), (4, 2)])
def test_half_of_the_workers_run_new_tests_while_others_minimize(
    tmp_path: Path, unreduced: Entry, workers: int, at_once: int
) -> None:
    """Its state is that of a campaign in the middle of its time, then after it."""
    asked = {"time_s": 600.0, "tests": None, "workers": workers, "minimizing_share": 1.0}
    made = alone(tmp_path, ("stale_too",), unreduced, **asked).campaign
    slots = [slot for slot in made.slots if not slot.canary]
    assert len(slots) == workers
    parts = made.parts
    lane = Reduce(parts)
    (taken,) = parts.candidates.waiting
    for left_s, limit in ((300.0, at_once), (-1.0, workers)):
        made.course.started = clock.now() - 600.0 + left_s
        for number, slot in enumerate(slots):
            parts.candidates.waiting = [taken]
            work = lane.peek(slot)
            assert (work is not None and work.about is taken) == (number < limit)
            slot.minimizing = True
        for slot in slots:
            slot.minimizing = False


class Clock:
    """The clock of campaigns, and a slot that turns it: `pace` executions take a second.

    It is in `target`.

    Each job shows the same outcomes.
    """

    def __init__(self, pace: float, target: Target, *shown: Outcome) -> None:
        self.pace = pace
        self.target = target
        self.shown = shown
        self.now = 0.0
        self.jobs = 0
        self.executions = 0

    def time(self) -> float:
        """The time."""
        return self.now

    async def run(self, job: Job) -> Result:
        """Outcomes of a job."""
        self.now += job.count / self.pace
        self.jobs += 1
        return dict.fromkeys(self.shown, job.count // max(1, len(self.shown)))


@pytest.mark.parametrize(
    ("symptoms", "counts"),
    [
        (("wrong",), (8,)),
        (("wrong", "torn"), (8, 3)),
        (("wrong", "torn"), (3, 8)),
        (("torn", "wrong"), (8, 3)),
    ],
)
def test_a_finding_with_a_wrong_value_explains_tests_that_show_it_torn(
    tmp_path: Path, unreduced: Entry, symptoms: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    """If it shows that too: which of the two it is minimized for is a matter of chance."""
    run = alone(tmp_path, ("stale_too",), unreduced)
    findings = run.campaign.parts.findings
    (taken,) = run.campaign.parts.candidates.waiting
    key = unreduced.test.names[0]
    wrong = taken.judgement.forbidden[0][0]
    torn = replace(wrong, values=tuple((k, TORN if k == key else v) for k, v in wrong.values))
    oracle = taken.judgement.oracle
    outcomes = [{"wrong": wrong, "torn": torn}[each] for each in symptoms]
    best = Best(unreduced.test, judge(oracle, {outcomes[0]: 1}), taken.target)
    shown = dict(zip(outcomes, counts, strict=True))
    best.measured(best.with_same_cause(judge(oracle, shown)), sum(counts))
    found = findings.store(taken, best, minimized=True, confirmed=True)
    assert found is not None
    assert found.finding.forbidden == tuple(shown.items())
    assert found.symptoms == symptoms
    assert loads(dumps(found.entry)) == found.entry
    for outcome in (wrong, torn):
        other = copy(taken)
        other.judgement, other.contains = judge(oracle, {outcome: 1}), {}
        explained = symptom(outcome) in symptoms
        assert [*findings.contained(other)] == ([found] if explained else [])


@pytest.mark.parametrize("pace", [20.0, 1e6])
def test_a_slow_minimization_is_stopped_in_time(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch, pace: float
) -> None:
    made = alone(tmp_path, ("stale_too",), unreduced, reduction_s=200.0).campaign
    (taken,) = made.parts.candidates.waiting
    allowed = min(allowed_outcomes(unreduced.test, EXECUTOR).witnesses, key=str)
    clock = Clock(pace, taken.target, allowed)
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.clock.now", clock.time)
    best = Best(unreduced.test, taken.judgement, taken.target)
    best.rate = 0.5  # it does not show in every run, so that one run decides nothing
    rng = random.Random(1)
    probe = made.parts.minimizer.prober.probe(clock, unreduced.test, best, rng)
    assert asyncio.run(probe) is None
    probed = clock.now
    assert asyncio.run(made.parts.minimizer.prober.confirm(clock, best, rng)) is None
    confirmed = clock.now - probed
    if pace > 1e3:  # nothing is cut short: all that is asked for is run
        assert probed >= 2 * best.count / pace
        assert ATTEMPT_S < confirmed < 10 * ATTEMPT_S
    else:
        assert probed < 50.0 + PROBE_STEP / pace + MAX_REDUCTION_S
        assert confirmed < 50.0 + 2 * MAX_REDUCTION_S


@pytest.mark.parametrize(
    ("pace", "every", "finished", "needs_order"),
    [(1e6, 1500, True, False), (1e6, 0, True, True), (20.0, 0, False, False)],
)
def test_an_order_is_needed_only_if_experiments_say_so(
    tmp_path: Path,
    unreduced: Entry,
    monkeypatch: pytest.MonkeyPatch,
    *,
    pace: float,
    every: int,
    finished: bool,
    needs_order: bool,
) -> None:
    """As it was run it shows in every 20th execution, in another order in every `every`th."""
    made = alone(tmp_path, ("stale_too",), unreduced, reduction_s=200.0).campaign
    (taken,) = made.parts.candidates.waiting
    test = replace(litmus("X=1 || r0=X; X+=2"), observe=())
    assert ordered(test, EXECUTOR) != test
    allowed, forbidden = (Outcome.of(test, {"X": (value,)}) for value in (1, 9))

    class Rare(Clock):
        async def run(self, job: Job) -> Result:
            """Outcomes of a job."""
            await super().run(job)
            order = [node.op for node in job.test.graph.nodes]
            often = 20 if order == [node.op for node in test.graph.nodes] else every
            shown = job.count // often if often else 0
            return {allowed: job.count - shown} | ({forbidden: shown} if shown else {})

    clock = Rare(pace, taken.target)
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.clock.now", clock.time)
    judgement = judge(Explorer(test, EXECUTOR), {allowed: 95, forbidden: 5})
    best = Best(test, judgement, taken.target)
    rng = random.Random(1)
    assert asyncio.run(made.parts.minimizer.normalize(clock, best, rng)) is finished
    assert (best.needs_order, best.needs_names) == (needs_order, ())
    assert ordered(best.test, EXECUTOR) != best.test  # the more frequent form is kept
    assert clock.now < 100.0 + 2 * MAX_REDUCTION_S


def test_a_smaller_test_that_only_blocks_is_given_up_at_once(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each blocked run costs a session. A test that blocks only sometimes is kept."""
    made = alone(tmp_path, ("stale_too",), unreduced).campaign
    (taken,) = made.parts.candidates.waiting
    best = Best(unreduced.test, taken.judgement, taken.target)
    best.rate = 0.5
    allowed = min(allowed_outcomes(unreduced.test, EXECUTOR).witnesses, key=str)
    blocked = Outcome.of(unreduced.test, {}, Status.BLOCKED)
    jobs = []
    for shown in ((blocked,), (blocked, allowed)):
        clock = Clock(1e6, taken.target, *shown)
        monkeypatch.setattr("litmusfuzz.fuzz.campaign.clock.now", clock.time)
        probe = made.parts.minimizer.prober.probe(clock, unreduced.test, best, random.Random(1))
        assert asyncio.run(probe) is None
        jobs.append(clock.jobs)
    assert jobs[0] == 1 < jobs[1]


def test_two_executions_decide_where_a_test_has_a_single_outcome(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor of one thread executes a test twice, however often it is asked to."""
    made = alone(tmp_path, ("stale_too",), unreduced).campaign
    (taken,) = made.parts.candidates.waiting
    test = litmus("X=1; r0=X")
    allowed, forbidden = (Outcome.of(test, {"r0": (n,), "X": (1,)}) for n in (1, 0))

    class Twice(Clock):
        async def run(self, job: Job) -> Result:
            """Outcomes of a job."""
            await super().run(job)
            return dict.fromkeys(self.shown, 2)

    judgement = judge(Explorer(test, SEQUENTIAL), {forbidden: 2})
    best = Best(test, judgement, taken.target)
    for shown, jobs in ((allowed, 2), (forbidden, 2)):
        clock = Twice(1e6, replace(taken.target, model=SEQUENTIAL), shown)
        monkeypatch.setattr("litmusfuzz.fuzz.campaign.clock.now", clock.time)
        probe = asyncio.run(made.parts.minimizer.prober.probe(clock, test, best, random.Random(1)))
        assert clock.jobs == jobs
        assert (probe is None) is (shown == allowed)
