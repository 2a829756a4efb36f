"""Under control a test is searched: once, and to the end, or as far as a counted budget goes."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers_settings import settings_of

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.schedule import Decision, switches
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Schedule, load, loads
from litmusfuzz.fuzz.campaign import graph_searcher, probing, trial_searches
from litmusfuzz.fuzz.campaign.graph_searcher import SAMPLE, SAMPLE_BUDGET, Portfolio
from litmusfuzz.fuzz.campaign.schedule_search import (
    FIRST_PORTION,
    STILL,
    SearchResult,
    carried_over,
    search,
)
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, tally_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.experiments import result_of
from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
from litmusfuzz.fuzz.finding.trials import Case, Reason, Trial
from litmusfuzz.fuzz.mutants.tensorflow import StoreBuffers
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.events import (
    CauseCompared,
    Confirmed,
    Continued,
    FindingAdded,
    ReductionStarted,
    SeenAgain,
    Unconfirmed,
)
from litmusfuzz.reports.seen import SeenTest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.job import Job, Result

TWICE = load(Path(corpus.__file__).parent / "findings" / "first-assignment-writes-twice.yaml")
SB = litmus("X=1; r0=Y || Y=1; r1=X")


def outcome(r0: int, r1: int) -> Outcome:
    """An outcome of SB."""
    return Outcome.of(SB, {"r0": (r0,), "r1": (r1,), "X": (1,), "Y": (1,)})


EVENTS = {o: (Decision("", f"r{o.values[0][1][0]}"),) for o in (outcome(0, 1), outcome(1, 1))}


class Searched:
    """Answers jobs as a worker does whose test has so many schedules within each bound."""

    def __init__(self, sizes: dict[int | None, int]) -> None:
        self.sizes = sizes
        self.asked: list[tuple[int | None, int, int]] = []

    async def __call__(self, job: Job) -> Result:
        """As many more schedules as the job asks for, at most."""
        assert job.search is not None
        bound, done = job.search
        self.asked.append((bound, done, job.count))
        size = self.sizes[bound]
        executions = min(size, done + job.count)
        whole = size == self.sizes[None]
        histogram = {outcome(0, 1): executions}
        if bound != 0:
            histogram = {outcome(0, 1): executions - 1, outcome(1, 1): 1}
        schedules = {each: EVENTS[each] for each in histogram}
        complete = executions == size
        return Explored(histogram, schedules, executions, complete, complete and whole)


def searched(of: Searched, *bounds: int | None, budget: int = 1024) -> SearchResult:
    """The result of a search."""
    found = asyncio.run(search(of, SB, bounds, budget))
    assert isinstance(found, SearchResult)
    return found


def test_few_preemptions_come_first_and_all_schedules_are_enough() -> None:
    of = Searched({0: 6, 1: 300, 2: 300, None: 300})
    found = searched(of, 0, 1, 2, None)
    assert found.whole
    assert found.executions == 306
    assert found.event.extent == "all 300 schedules"
    assert found.event.first == {"search, 0 preemptions": 1, "search, 1 preemption": 1}
    assert of.asked == [(0, 0, 32), (1, 0, 32), (1, 32, 64), (1, 96, 128), (1, 224, 256)]


def test_a_budget_is_that_of_all_searches_together() -> None:
    of = Searched({0: 6, 1: 300, 2: 900, None: 5000})
    found = searched(of, 0, 1, 2, None, budget=400)
    assert not found.whole
    assert found.executions == 400
    assert of.asked[-1] == (2, 32, 62)
    assert found.event.extent == "300 schedules of more, and 0 samples"


def test_a_search_ends_once_it_has_shown_enough() -> None:
    of = Searched({None: 5000})
    found = asyncio.run(search(of, SB, (None,), 4096, lambda shown: len(shown.histogram) > 1))
    assert isinstance(found, SearchResult)
    assert found.executions == FIRST_PORTION
    assert found.schedule_of([outcome(1, 1)]) == Schedule(
        outcome(1, 1), events=EVENTS[outcome(1, 1)]
    )


@pytest.mark.parametrize(
    ("preemptions", "sizes", "decided"),
    [
        (None, {0: 6, 1: 300, 2: 900, None: 50_000}, ""),
        (None, {0: 6, 1: 300, 2: 900, None: 900}, "all schedules"),
        (1, {0: 6, 1: 300, 2: 50_000, None: 90_000}, "all schedules within 1 preemption"),
        (1, {0: 6, 1: 300, 2: 900, None: 900}, "all schedules"),
        (2, {0: 6, 1: 300, 2: 50_000, None: 90_000}, ""),
        (1, {0: 6, 1: 50_000, 2: 90_000, None: 90_000}, ""),
    ],
)
def test_a_search_that_its_budget_has_ended_decides_nothing(
    preemptions: int | None, sizes: dict[int | None, int], decided: str
) -> None:
    """Unless a bound on preemptions suffices, and all schedules within it were executed."""
    config = configuration("tf", "controlled_locks")
    one = Case(SB, "tf", config, EXECUTOR, STILL, ("wrong",), preemptions=preemptions)

    async def run(trial: Trial, _: int, enough: Callable[[SearchResult], bool]) -> SearchResult:
        found = await trial_searches.searched(Searched(sizes), trial.case, trial.test, enough)
        assert isinstance(found, SearchResult)
        return found

    trial = Trial(Reason.TRIGGER, SB, one, ("wrong",), 1, 1.0)
    experiment = result_of(trial, asyncio.run(tally_of(trial, run, TrialBudget(3_600))))
    assert experiment.searched == decided
    assert experiment.shows is (False if decided else None)


def test_a_schedule_that_cannot_be_repeated_is_no_result() -> None:
    async def diverges(job: Job) -> Result:
        return messages.Reply(diverged="in execution 7: other events")

    result = asyncio.run(search(diverges, SB, (None,)))
    assert isinstance(result, messages.Reply)
    assert result.refused == "schedules that repeat (in execution 7: other events)"


def test_the_share_of_a_scheduler_follows_what_it_has_found() -> None:
    """Each is tried; then those that have found something come more often."""
    portfolio = Portfolio()
    asked: Counter[str] = Counter()

    async def sample(job: Job) -> Result:
        asked[job.scheduler] += job.count
        shown = outcome(asked["pos"], 1) if job.scheduler == "pos" else outcome(0, 1)
        schedules = {shown: EVENTS[outcome(0, 1)]}
        return Explored({shown: job.count}, schedules, job.count, complete=False, whole=False)

    for seed in range(8):
        found = searched(Searched({None: 5000}), None, budget=1)
        asyncio.run(portfolio.sample(sample, SB, ("random", "pos", "pct"), found, seed))
        assert found.sampled == SAMPLE_BUDGET
        assert not found.whole
    assert asked.total() == 8 * SAMPLE_BUDGET
    assert set(asked) == {"random", "pos", "pct"}
    assert asked["pos"] > asked["random"] >= SAMPLE
    assert portfolio.found["pos"] > portfolio.found["random"]


def test_a_schedule_is_carried_over_by_the_names_of_its_decisions() -> None:
    smaller = litmus("X=1 || r1=X")
    events = (
        Decision("", "w0", point="lock of Y"),
        Decision("", "r1"),
        Decision("", "r1", point="read of page 0 of X"),
        Decision("", "gone"),
    )
    carried = carried_over(Schedule(outcome(0, 1), events=events), smaller)
    assert carried == Schedule(outcome(0, 1), events=events[1:3])
    assert carried_over(Schedule(outcome(0, 1), events=events[3:]), smaller) is None


# --- campaigns ---------------------------------------------------------------------------


def campaign(out: Path, executor: str, config: str, tests: int = 12, **more: object) -> Run:
    """A campaign of so many tests in one configuration of TensorFlow."""
    settings = settings_of(
        seed=5,
        out=out,
        executors=((executor, configuration(executor, config)),),
        time_s=3_600,
        tests=tests,
        families=("cycles",),
        workers=1,
        **more,
    )
    return Run(settings).run(one_at_a_time=True)


def test_a_graph_with_few_schedules_is_searched_once_and_completely(tmp_path: Path) -> None:
    run = campaign(tmp_path, "tf", "controlled")
    ran = run.tests("tf")
    assert len(ran) > 6
    assert not run.of(Continued)
    for each in ran:
        assert each.searched is not None
        assert each.searched.whole
        assert each.searched.sampled == 0
        assert sum(each.verdicts.values()) == each.searched.schedules
        assert each.searched.first == {"search": each.reached or each.searched.first["search"]}
    share = run.lines["controlled"]
    assert (share.searched, share.cut_off, share.sampled) == (len(ran), 0, 0)
    assert share.schedules == sum(each.searched.schedules for each in ran)


def test_what_exceeds_the_budget_is_sampled_and_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(graph_searcher, "SEARCH_BUDGET", 2)
    run = campaign(tmp_path, "tf", "controlled")
    cut = [each for each in run.tests("tf") if each.searched and not each.searched.whole]
    assert cut
    assert not run.of(Continued)
    for each in cut:
        assert each.searched.sampled == SAMPLE_BUDGET
        assert each.searched.executions == 2
        assert "of more" in each.searched.extent
        text = SeenTest(each, str(tmp_path), None, None, "").text()
        assert each.searched.extent in text
    assert run.lines["controlled"].cut_off == len(cut)
    assert run.lines["controlled"].sampled == SAMPLE_BUDGET * len(cut)


def test_a_mutant_is_killed_by_the_search_and_confirmed_by_one_replay(tmp_path: Path) -> None:
    run = campaign(tmp_path, StoreBuffers.name, "controlled", tests=24)
    assert not run.of(Unconfirmed)
    reduced = run.of(ReductionStarted)
    assert reduced
    assert len(run.of(Confirmed)) == len(reduced)
    for each in run.of(FindingAdded):
        found = loads(each.entry).finding
        assert found.minimized
        assert found.confirmed
        assert found.schedule.outcome == found.forbidden[0][0]
        assert found.schedule.events
    assert run.of(FindingAdded)


def left(
    out: Path, entry: Entry, seen_in: str, known: Sequence[MinimizedFinding] = (), **more: object
) -> Run:
    """A campaign without tests that takes up what another one has seen in a configuration."""
    assert TWICE.finding is not None
    config = configuration("tf", seen_in)
    found = replace(
        entry.finding or TWICE.finding,
        configuration=seen_in,
        settings=dict(config.settings),
        minimized=False,
        confirmed=False,
    )
    settings = settings_of(
        out=out, executors=(("tf", config),), tests=0, workers=1, **{"time_s": 3_600, **more}
    )
    pending = [replace(entry, finding=found)]
    return Run(settings, pending=pending, known=known).run(one_at_a_time=True)


@pytest.mark.parametrize(
    "seen_in", ["controlled_locks", "controlled_pages", "plain", "inter_op_16"]
)
def test_a_finding_ends_at_the_coarsest_level_with_the_fewest_preemptions(
    tmp_path: Path, seen_in: str
) -> None:
    """Seen with whatever schedule, or by chance."""
    run = left(tmp_path, TWICE, seen_in)
    (added,) = run.of(FindingAdded)
    made = loads(added.entry).finding
    assert made.configuration == "controlled_locks"
    assert made.first_seen_in == (None if seen_in == made.configuration else seen_in)
    assert added.configuration == seen_in
    assert added.needs == "in plain TensorFlow, shown under control, lock by lock"
    assert made.minimized
    assert len(switches(made.schedule.events)) == 1
    assert (made.count, made.executions) == (4, 19)


BESIDE = """
variables:
  X: {dtype: float64, shape: [], initialized: false}
  Y: {dtype: float64, shape: []}
graphs:
  main:
    c0: {op: Const, dtype: float64, shape: [], value: 1}
    w0: {op: AssignAddVariableOp, resources: [X], inputs: [c0]}
    c1: {op: Const, dtype: float64, shape: [], value: 1}
    w1: {op: AssignVariableOp, resources: [X], inputs: [c1]}
    r0: {op: ReadVariableOp, resources: [Y]}
    w2: {op: AssignVariableOp, resources: [Y], inputs: [c1]}
"""
"""The finding beside a race that has nothing to do with it."""


@pytest.mark.parametrize("seen_in", ["controlled_locks", "plain"])
def test_what_a_known_cause_explains_is_decided_by_searches(tmp_path: Path, seen_in: str) -> None:
    """Without what the cause needs, none of the schedules shows anything: nothing is reduced."""
    assert TWICE.finding is not None
    test = loads(f"litmusfuzz: 2\nname: beside{BESIDE}").test
    values = {"X": (1,), "Y": (1,), "r0": (0,)}
    found = replace(TWICE.finding, forbidden=((Outcome.of(test, values), 1),))
    known = MinimizedFinding(TWICE, key_of(TWICE), cause="first-assignment-writes-twice")
    run = left(tmp_path, Entry(test, {}, found), seen_in, known=[known])
    (again,) = run.of(SeenAgain)
    assert again.key == known.key
    assert not run.of(FindingAdded)
    # Without control it waits as a look-alike, and is checked: nothing of it is reduced.
    assert bool(run.of(ReductionStarted)) is (seen_in != "plain")
    (compared,) = run.of(CauseCompared)
    assert compared.verdict == "explained"
    (trial,) = [each for each in compared.experiments if each["reason"] == "trigger"]
    assert trial["searched"] == "all schedules"
    assert trial["seen"] == 0


def test_what_no_schedule_shows_is_executed_again_as_it_was_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is thrown away because control does not reach it: executions decide, as before."""
    monkeypatch.setattr(probing, "ATTEMPT_S", 0.1)
    assert TWICE.finding is not None
    never = Outcome.of(SB, {"r0": (0,), "r1": (0,), "X": (1,), "Y": (1,)})
    entry = Entry(SB, {}, replace(TWICE.finding, forbidden=((never, 1),), executions=16))
    run = left(tmp_path, entry, "plain", time_s=2, reduction_s=0.5)
    assert run.of(Unconfirmed)
    assert not run.of(FindingAdded)
