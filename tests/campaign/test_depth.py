"""Shallow first, then deep: which graph runs go on, for how long, and what that shows."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from campaign.campaigns import Run
from helpers_settings import settings_of

from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import depth
from litmusfuzz.fuzz.campaign.depth import (
    BLOCKED_ROUND_COUNT,
    FIRST_COPIES,
    IDLE_ROUNDS,
    MAX_COPIES,
    MAX_ROUNDS,
    ROUND_STEPS,
    GraphRun,
    Round,
    UnfinishedRun,
    WaitingRuns,
)
from litmusfuzz.fuzz.campaign.settings import SHALLOW_COUNT
from litmusfuzz.fuzz.executors.protocol import Noise, noise_from, noise_named
from litmusfuzz.fuzz.executors.table import CANARY, configuration
from litmusfuzz.reports.events import Continued, Executed, FindingAdded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OUTCOMES = [Outcome((("X", ((number,),)),)) for number in range(8)]
RARE_ONLY = "double/deep-stale"


class Allowing:
    """An oracle that allows the first outcomes."""

    def __init__(self, number: int) -> None:
        self.allowed = set(OUTCOMES[:number])

    def judge(self, outcome: Outcome) -> Verdict:
        """As an oracle does."""
        return Verdict.ALLOWED if outcome in self.allowed else Verdict.FORBIDDEN


def a_run(allowed: int | None, shown: Mapping[int, int], *, new: bool = False) -> GraphRun:
    """A run after its shallow executions."""
    run = GraphRun(Allowing(8), allowed, new)
    run.add({OUTCOMES[n]: count for n, count in shown.items()}, 0.01)
    return run


# --- the rule ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "shown", "new", "earned"),
    [
        (4, {0: 10, 1: 6}, False, True),  # two are unseen
        (2, {0: 10, 1: 6}, False, False),  # all are seen
        (2, {0: 10, 1: 6}, True, True),  # a new pair of ops
        (None, {0: 16}, False, False),  # nothing says that there are more
        (None, {0: 15, 1: 1}, False, True),  # one is rare
        (None, {0: 14, 1: 2}, False, False),
        (None, {0: 16}, True, True),
    ],
)
def test_what_earns_a_round(
    *, allowed: int | None, shown: Mapping[int, int], new: bool, earned: bool
) -> None:
    assert a_run(allowed, shown, new=new).earns_round is earned


def test_rounds_without_a_new_outcome_end_a_run() -> None:
    run = a_run(8, {0: 16})
    for number in range(1, 4):  # each of which shows another one
        run.add({OUTCOMES[0]: 500, OUTCOMES[number]: 12}, 0.1)
        assert run.earns_round
    for _ in range(IDLE_ROUNDS):
        assert run.earns_round
        run.add({OUTCOMES[0]: 512}, 0.1)
    assert not run.earns_round
    assert (run.reached, run.unseen, run.rounds) == (4, 4, 3 + IDLE_ROUNDS)


def test_a_run_has_a_last_round() -> None:
    run = a_run(None, {0: 15, 1: 1})
    for _ in range(MAX_ROUNDS):
        assert run.earns_round
        run.idle_rounds = 0
        run.add({OUTCOMES[0]: 512}, 0.1)
    assert not run.earns_round


def test_a_test_that_blocks_has_short_rounds() -> None:
    run = a_run(4, {0: 15})
    assert run.next_round(Noise()).executions == FIRST_COPIES * ROUND_STEPS
    run.add({Outcome(OUTCOMES[1].values, Status.BLOCKED): 1}, 0.01)
    assert run.next_round(Noise()) == (BLOCKED_ROUND_COUNT, Noise())


def test_each_round_has_twice_the_copies_of_the_one_before() -> None:
    rounds = [Round.of(number, Noise(), blocks=False) for number in range(1, MAX_ROUNDS + 1)]
    copies = [each.noise.copies for each in rounds]
    assert copies[:3] == [FIRST_COPIES, 2 * FIRST_COPIES, 4 * FIRST_COPIES]
    assert copies[-1] == MAX_COPIES
    assert all(each.executions == each.noise.copies * ROUND_STEPS for each in rounds)
    assert {replace(each.noise, copies=1) for each in rounds} == {Noise(copies=1, steps=64)}
    assert Round.of(9, Noise(copies=1), blocks=False).noise.copies == 1  # as the user asked


def test_what_is_forbidden_does_not_count_as_reached() -> None:
    run = GraphRun(Allowing(2), 2, has_new_pair=False)
    judgement = run.add({OUTCOMES[0]: 3, OUTCOMES[5]: 13}, 0.01)
    assert (run.reached, run.unseen, judgement.forbidden_count) == (1, 1, 13)


# --- which is next -----------------------------------------------------------------------


def waiting_run(run: GraphRun, title: str = "tf/plain", environment: object = ()) -> UnfinishedRun:
    config = SimpleNamespace(environment=environment)
    sampled = SimpleNamespace(title=title, config=config)
    return UnfinishedRun(cast("Any", None), cast("Any", sampled), cast("Any", None), run)


def taken(waiting: WaitingRuns) -> UnfinishedRun | None:
    """The run that is next, which then waits no longer."""
    chosen = waiting.next((), 1e9)
    if chosen is not None:
        waiting.remove(chosen)
    return chosen


def test_the_run_of_which_most_is_expected_in_a_second_is_next() -> None:
    few, many, slow = a_run(3, {0: 16}), a_run(8, {0: 16}), a_run(8, {0: 16})
    slow.seconds = 10.0
    waiting = WaitingRuns()
    runs = [waiting_run(each) for each in (few, many, slow)]
    for each in runs:
        assert waiting.add(each) == []
    order = [taken(waiting) for _ in runs]
    assert [runs.index(each) for each in order if each] == [1, 0, 2]
    assert not waiting
    assert waiting.next((), 1e9) is None


def test_another_environment_costs_a_process() -> None:
    waiting = WaitingRuns()
    here, there = (waiting_run(a_run(4, {0: 16}), environment=each) for each in ("one", "two"))
    waiting.add(there)
    waiting.add(here)
    assert waiting.next("one", 1e9) is here
    waiting.remove(here)
    assert waiting.next("one", 0.1) is None  # too little for another process
    assert waiting.next("two", 0.1) is there


def test_what_rounds_have_found_decides_between_first_and_later_ones() -> None:
    waiting = WaitingRuns()
    first, later = a_run(4, {0: 16}), a_run(4, {0: 16})
    later.add({OUTCOMES[0]: 512}, 0.01)
    one, other = waiting_run(first), waiting_run(later)
    first.seconds = later.seconds = 0.01
    for _ in range(40):  # first rounds show nothing, second ones all
        waiting.add_time("tf/plain", 0.01)
        waiting.add_round(1, 0, 3)
        waiting.add_round(2, 3, 3)
    waiting.add(one)
    waiting.add(other)
    assert waiting.next((), 1e9) is other


def test_of_too_many_runs_the_least_promising_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(depth, "MAX_WAITING_RUNS", 4)
    waiting = WaitingRuns()
    runs = [waiting_run(a_run(allowed, {0: 16})) for allowed in (8, 2, 6, 3, 7)]
    given_up = [waiting.add(each) for each in runs]
    assert given_up == [[], [], [], [], [runs[1]]]
    assert waiting.add(waiting_run(a_run(1, {0: 8, 1: 8}))) != []
    assert set(map(id, waiting.clear())) == {id(runs[place]) for place in (0, 2, 3, 4)}


# --- in a campaign -----------------------------------------------------------------------


def campaign(out: Path, executor: str, config: str, **changes: Any) -> Run:
    usual: dict[str, Any] = {
        "seed": 3,
        "time_s": 600,
        "tests": 40,
        "families": ("dag", "conditionals"),
    }
    executors = ((executor, configuration(executor, config)),)
    return Run(settings_of(out=out, executors=executors, **usual | changes)).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return campaign(tmp_path_factory.mktemp("depth"), "native", "controlled")


def test_every_run_is_shallow_first(ended: Run) -> None:
    executed = ended.tests("native")
    assert len(executed) > 30
    for each in executed:
        assert each.count == SHALLOW_COUNT == sum(each.verdicts.values())
        noise = noise_named(each.noise, Noise())
        assert (noise.copies, noise.steps) == (1, SHALLOW_COUNT)


def test_rounds_are_those_that_were_earned(ended: Run) -> None:
    """Computed from the events alone, apart from new pairs of ops, which they do not have."""
    rounds: dict[int, list[Continued]] = defaultdict(list)
    for each in ended.of(Continued):
        rounds[each.index].append(each)
    assert sum(map(len, rounds.values())) > 20
    for first in ended.of(Executed):
        if first.executor != "native" or first.end != "judged":
            continue
        line = rounds[first.index]
        assert [each.round for each in line] == list(range(1, len(line) + 1))
        assert len(line) <= MAX_ROUNDS
        for each in line:
            assert (each.count, noise_named(each.noise, Noise())) == Round.of(
                each.round, Noise(), blocks=False
            )
            assert sum(each.verdicts.values()) >= each.count
        if first.allowed is None:
            continue
        reached = [first.reached, *(each.reached for each in line)]
        assert [each.reached_before for each in line] == reached[:-1]
        found = [b > a for a, b in pairwise(reached) if a is not None]
        left = (reached[-1] or 0) < first.allowed
        idle = len(found) >= IDLE_ROUNDS and not any(found[-IDLE_ROUNDS:])
        # It has ended because all is seen, nothing new came, or the rounds were over.
        assert not left or idle or len(line) == MAX_ROUNDS
        for number in range(1, len(line)):  # it went on only where it was earned
            assert (reached[number] or 0) < first.allowed
            assert number < IDLE_ROUNDS or any(found[number - IDLE_ROUNDS : number])


def test_the_report_counts_rounds_apart(ended: Run) -> None:
    share = ended.lines["controlled"]
    assert share.graphs == len(ended.tests("native"))
    assert share.rounds == len(ended.of(Continued))
    assert share.outcomes == sum(
        sum(each.verdicts.values()) for each in (*ended.tests("native"), *ended.of(Continued))
    )


def test_what_only_many_executions_show_is_found_and_confirmed(
    tmp_path: Path, doubles: None
) -> None:
    run = campaign(tmp_path, RARE_ONLY, "plain", families=("dag",), tests=30)
    shown = [each for each in run.of(Continued) if each.verdicts.get("forbidden")]
    assert shown
    assert not any(each.verdicts.get("forbidden") for each in run.of(Executed))
    assert not {each.index for each in shown} & {
        each.index for each in run.of(Continued) if each.round > 1
    }  # a forbidden outcome ends a run
    findings = run.of(FindingAdded)
    assert findings
    assert {each.index for each in findings} <= {each.index for each in shown}
    assert all(each.noise["copies"] > 1 for each in _findings(run))


def test_what_many_copies_show_once_it_is_small_is_reduced_with_many(
    tmp_path: Path, doubles: None
) -> None:
    run = campaign(tmp_path, "double/alone-stale", "plain", families=("dag",), tests=20)
    as_run = {each.index: each.noise for each in run.of(Executed) if each.executor != CANARY}
    found = run.of(FindingAdded)
    assert found
    assert all(as_run[each.index].startswith("copies=1,") for each in found)
    assert all(noise_from(each.noise) == run.settings.noise for each in _findings(run))


def _findings(run: Run) -> list[Any]:
    from litmusfuzz.corpus.textfile import load

    return [load(run.path(each.file)).finding for each in run.of(FindingAdded)]
