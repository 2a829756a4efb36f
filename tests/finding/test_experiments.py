"""Experiments that tell causes apart: odds, shapes, and the rule on mutants with two defects."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from helpers import allowed_values

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.campaign.trial_runner import DIED, TrialBudget, carry_out, on_worker, tally_of
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.causes import explains
from litmusfuzz.fuzz.finding.experiments import (
    CONTROL_RUNS,
    MISS_ODDS,
    Comparison,
    Verdict,
    check_look_alike,
    compare,
    control_trial,
    executions_needed,
    lower_bound,
    result_of,
)
from litmusfuzz.fuzz.finding.race_shapes import contains, without_causes, without_races
from litmusfuzz.fuzz.finding.resource_passes import width
from litmusfuzz.fuzz.finding.trials import Case, Reason, Tally, Trial
from litmusfuzz.oracles.model import EXECUTOR, SEQUENTIAL

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

BUDGET = TrialBudget(seconds=600, executions=4096)
"""Its seconds are never reached: the mutants need milliseconds."""


# --- odds ------------------------------------------------------------------------------


def test_a_bound_shows_so_many_hits_at_that_risk_and_no_more() -> None:
    # One hit or more at mean m has probability 1 - exp(-m).
    assert lower_bound(1, 0.0005) == pytest.approx(-math.log(1 - 0.0005), rel=1e-6)
    # Garwood's table: 95 % two-sided limits for 10 observed are 4.795 to 18.39.
    assert lower_bound(10, 0.025) == pytest.approx(4.795, abs=0.001)
    assert lower_bound(0, 0.5) == 0.0


def test_fewer_hits_ask_for_more_executions() -> None:
    assert math.isinf(executions_needed(0, 1000))
    needed = [executions_needed(hits, 1000 * hits) for hits in (1, 3, 24, 200)]
    assert needed == sorted(needed, reverse=True)
    # Never less than at the rate that was seen, and little more than that with many hits.
    at_the_rate = math.log(MISS_ODDS) * 1000
    assert at_the_rate < needed[-1] < 2 * at_the_rate


def test_the_odds_hold_for_a_rate_that_was_estimated() -> None:
    """At any true rate, the estimate and the miss together have less than one chance in 1,000."""
    for rate in (0.002, 0.02):
        for executions in (500, 3000):
            miss = 0.0
            mean = rate * executions
            term = math.exp(-mean)
            for hits in range(120):
                needed = executions_needed(hits, executions)
                miss += term * (0.0 if math.isinf(needed) else math.exp(-rate * needed))
                term *= mean / (hits + 1)
            assert miss < 1 / MISS_ODDS


# --- shapes ----------------------------------------------------------------------------

BESIDE = litmus("X[0]=1 || r0=X", shape=(1, 2))
AFTER = litmus("X[0]=1; r0=X", shape=(1, 2))


def test_strictly_ordered_ops_match_ordered_ones_only() -> None:
    assert contains(AFTER, BESIDE, strict=False)
    assert not contains(AFTER, BESIDE, strict=True)
    assert not contains(BESIDE, AFTER, strict=False)


def test_an_op_that_races_with_itself_counts_for_two() -> None:
    two = litmus("X[0]=1 || X[0]=2", shape=(1, 2))
    assert contains(
        two, litmus("X[0]=1 ||| Y=1", client="a:g0; b:g0; c:g1", shape=(1, 2)), strict=False
    )
    assert not contains(two, litmus("X[0]=1", shape=(1, 2)), strict=False)
    once = litmus("X[0]=1 ||| Y=1", client="a:g0; b:g0 after a; c:g1", shape=(1, 2))
    assert not contains(two, once, strict=False)


@pytest.mark.parametrize(
    ("notation", "client", "cause", "allowed_before", "allowed_after"),
    [
        ("X=1 || r0=X", "", "X=1 || r0=X", {(0,), (1,)}, {(1,)}),
        ("r0=X || X=1", "", "X=1 || r0=X", {(0,), (1,)}, {(0,)}),
        # Another pair of ops races on, and other variables stay as they are.
        ("X=1 || r0=X || X+=1", "", "X=1 || r0=X", {(0,), (1,), (2,)}, {(1,), (2,)}),
        ("X=1; Y=1 || r0=Y", "", "X=1 || X=2", {(0,), (1,)}, {(0,), (1,)}),
        ("X=1 ||| r0=X", "", "X=1 || r0=X", {(0,), (1,)}, {(1,)}),
        ("X+=1; r0=X ||| Y=1", "a:g0; b:g0; c:g1", "X+=1 || r0=X", {(1,), (2,)}, {(1,)}),
        ("loop 2 {X=1} || r0=X", "", "X=1 || r0=X", {(0,), (1,)}, {(1,)}),
    ],
)
def test_the_races_of_a_cause_are_ordered_and_nothing_else(
    notation: str, client: str, cause: str, allowed_before: set, allowed_after: set
) -> None:
    test = litmus(notation, client=client) if client else litmus(notation)
    made = without_races(test, litmus(cause))
    assert made is not None
    key = next(name for name in test.observe if name.endswith("r0"))
    assert allowed_values(test, EXECUTOR, key) == allowed_before
    assert allowed_values(made, EXECUTOR, key) == allowed_after
    assert (made == test) is (allowed_before == allowed_after)
    assert without_races(made, litmus(cause)) == made


# The conditional's result needs no update, so that the read may come before that.
OUTLIVED = """
litmusfuzz: 2
name: outlived
variables:
  X: {dtype: int32, shape: [1, 2], init: 0}
graphs:
  main:
    p: {op: Const, dtype: bool, shape: [], value: 1}
    branch0:
      op: If
      inputs: [p]
      results: [y0]
      then:
        nodes:
          c0: {op: Const, dtype: int32, shape: [1, 2], value: 1}
          w0: {op: ResourceScatterUpdate, resources: [X], inputs: [c0], indices: [0]}
          c1: {op: Const, dtype: int32, shape: [], value: 1}
        results: [c1]
      else:
        nodes:
          c2: {op: Const, dtype: int32, shape: [], value: 2}
        results: [c2]
    r0: {op: ReadVariableOp, resources: [X]AFTER}
observe: [r0]
"""


def test_an_edge_out_of_a_conditional_orders_only_what_its_results_need() -> None:
    after = loads(OUTLIVED.replace("AFTER", ", after: [branch0]"), "after").test
    assert allowed_values(after, EXECUTOR, "r0") == {(0,), (1,)}
    assert contains(BESIDE, after, strict=True)
    beside = loads(OUTLIVED.replace("AFTER", ""), "beside").test
    made = without_races(beside, BESIDE)
    assert made is not None
    assert allowed_values(made, EXECUTOR, "r0") == {(0,)}
    assert without_races(after, BESIDE) is None
    needed = OUTLIVED.replace("AFTER", ", after: [branch0]")
    needed = needed.replace("c1: {op: Const,", "c1: {op: Const, after: [w0],")
    assert not contains(BESIDE, loads(needed, "needed").test, strict=True)


def test_iterations_that_race_run_one_at_a_time() -> None:
    test = litmus("loop[2] 3 free {X+=1; r0=X}")
    made = without_races(test, litmus("X+=1 || r0=X"))
    assert made is not None
    assert "parallel_iterations=1" in repr(made)
    assert made != test


# Nothing races: one of its pure ops is wrong.
PURE = """
litmusfuzz: 2
name: pure
variables:
  X: {dtype: int32, shape: [], init: 5}
graphs:
  main:
    r0: {op: ReadVariableOp, resources: [X]}
    t0: {op: Neg, inputs: [r0]}
    t1: {op: LAST, inputs: [t0]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [WRITTEN]}
observe: [r0]
"""


APART = """
litmusfuzz: 2
name: apart
variables:
  X: {dtype: int32, shape: [], init: 5}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [], value: 3}
    e: EFFECT
    t: {op: Relu, inputs: [c]}
observe: [t]
"""
WRITE = "{op: AssignVariableOp, resources: [X], inputs: [c]}"
READ = "{op: ReadVariableOp, resources: [X]}"


def pure(last: str, written: str = "t1") -> LitmusTest:
    return loads(PURE.replace("LAST", last).replace("WRITTEN", written), last).test


def test_without_races_a_test_contains_only_what_has_the_same_pure_ops() -> None:
    relu, square = pure("Relu"), pure("Square")
    assert contains(relu, relu, strict=True)
    assert not contains(relu, square, strict=False)
    # What the wrong op takes may come from any other.
    assert contains(relu, loads(dumps(Entry(relu)).replace("Neg", "Square")).test, strict=True)
    assert explains(relu, pure("Relu", "t0"), exact=False)
    assert not explains(relu, square, exact=False)
    # Where ops race, it is no matter what they compute.
    assert contains(litmus("r0=X; Y=r0+1 || X=1"), litmus("r0=X; Y=r0-1 || X=1"), strict=False)


def test_an_effect_beside_a_wrong_pure_op_may_be_any() -> None:
    """A test has an effect in any case."""
    write, read = (loads(APART.replace("EFFECT", each)).test for each in (WRITE, READ))
    assert contains(write, read, strict=True)
    assert contains(read, write, strict=True)
    assert contains(write, pure("Relu"), strict=False)
    assert not contains(write, pure("Square"), strict=False)
    # One that it follows has to do with it.
    after = loads(APART.replace("EFFECT", READ).replace("Relu,", "Relu, after: [e],")).test
    assert not contains(after, write, strict=True)
    assert contains(after, after, strict=True)


def test_the_last_pure_op_of_a_cause_without_races_is_taken_out() -> None:
    test = pure("Relu")
    made = without_causes(test, test)
    assert made is not None
    assert [node.op for node in made.nodes if node.definition.computes] == ["Neg"]
    assert allowed_values(test, EXECUTOR, "X") == {(0,)}
    assert allowed_values(made, EXECUTOR, "X") == {(2,)}
    # The write follows the read by the op alone: so does the constant in its place.
    assert allowed_values(made, EXECUTOR, "r0") == {(5,)}
    # So it is with two in a row.
    made = without_causes(pure("Neg"), pure("Neg"))
    assert made is not None
    assert not [node.op for node in made.nodes if node.definition.computes]
    assert allowed_values(made, EXECUTOR, "r0") == {(5,)}
    # Each constant has another value, and a name that is free.
    assert sorted(node.attrs.value for node in made.nodes if node.op == "Const") == [2, 3]
    named = loads(PURE.replace("LAST", "Relu").replace("WRITTEN", "t1").replace("t0", "t1k0")).test
    assert without_causes(named, test) is not None
    # Others stay, and so does a test that has no op of that kernel.
    assert without_causes(pure("Square"), test) == pure("Square")
    assert without_causes(test, litmus("X=1 || r0=X")) == test


def test_an_op_whose_result_has_no_fixed_shape_is_not_taken_out() -> None:
    test = pure("Where", "t0")
    assert without_causes(test, test) is None


# --- the rule, on tallies that are made up ---------------------------------------------


def case(notation: str, *, symptoms: tuple[str, ...] = ("torn",), early: bool = False) -> Case:
    config = configuration("mutant/early-scatter", "early" if early else "plain")
    test = litmus(notation, shape=(1, 2))
    return Case(test, "mutant/early-scatter", config, EXECUTOR, Noise(), symptoms)


def decided(finding: Case, cause: Case, **seen: int) -> tuple[Comparison, list[Reason]]:
    """The comparison, if experiments of each kind show the symptom so often; -1: the time is up."""
    comparing = compare(finding, cause)
    trial, asked = next(comparing), []
    while True:
        asked.append(trial.reason)
        hits = seen[trial.reason]
        tally = Tally(10, 0, "the time was up")
        if hits >= 0:
            tally = Tally(10_000, hits, showing=hits, length=64)
        try:
            trial = comparing.send(tally)
        except StopIteration as stop:
            return stop.value, asked


def test_the_same_shape_in_the_same_settings_is_explained_once_the_order_removes_it() -> None:
    one = case("X[0]=1 || r0=X")
    found, asked = decided(one, one, control=24, trigger=0)
    assert found.verdict is Verdict.EXPLAINED
    assert asked == [Reason.CONTROL, Reason.TRIGGER]
    found, _ = decided(one, one, control=24, trigger=1)
    assert found.verdict is Verdict.NEW


def test_where_program_order_decides_nothing_is_ordered() -> None:
    """No ops race there, though those of a loop with a wide window have no order in the graph."""
    loop = case("loop 2 {X=1; r0=X}")
    assert decided(loop, loop, control=24, trigger=1)[0].verdict is Verdict.NEW
    sequential = replace(loop, model=SEQUENTIAL)
    found, asked = decided(sequential, sequential, control=24)
    assert (found.verdict, asked) == (Verdict.EXPLAINED, [Reason.CONTROL])
    control = result_of(control_trial(sequential), Tally(2, 2))
    with pytest.raises(StopIteration) as stop:
        next(check_look_alike(sequential, [sequential], control, 2))
    assert stop.value.value.verdict is Verdict.EXPLAINED


def test_a_wrong_pure_op_explains_neither_a_race_nor_another_pure_op() -> None:
    one = replace(case("X=1", symptoms=("wrong",)), test=pure("Relu"))
    found, asked = decided(one, one, control=24, trigger=0)
    assert (found.verdict, asked) == (Verdict.EXPLAINED, [Reason.CONTROL, Reason.TRIGGER])
    found, _ = decided(one, one, control=24, trigger=24)
    assert found.verdict is Verdict.NEW  # without that op it shows as well
    found, asked = decided(replace(one, test=pure("Square")), one, control=24)
    assert (found.verdict, asked) == (Verdict.NEW, [Reason.CONTROL])
    # Every test with this write would be explained if races were no matter.
    write, race = (case(each, symptoms=("wrong",)) for each in ("X=1", "X=1 || r0=X"))
    found, asked = decided(race, write, control=24)
    assert (found.verdict, asked) == (Verdict.NEW, [Reason.CONTROL])
    assert decided(write, write, control=24)[0].verdict is Verdict.EXPLAINED
    found, asked = decided(replace(write, test=pure("Relu")), write, control=24)
    assert (found.verdict, asked) == (Verdict.NEW, [Reason.CONTROL])


def test_what_shows_only_with_a_setting_is_not_the_cause_that_needs_none() -> None:
    here, plain = case("X[0]=1 || r0=X", early=True), case("X[0]=1 || r0=X")
    found, asked = decided(here, plain, control=24, trigger=0, settings=0)
    assert (found.verdict, asked[-1]) == (Verdict.NEW, Reason.SETTINGS)
    found, _ = decided(here, plain, control=24, trigger=0, settings=1)
    assert found.verdict is Verdict.EXPLAINED
    # The other way round the cause must not need its setting either.
    for shows, verdict in ((0, Verdict.NEW), (1, Verdict.EXPLAINED)):
        found, asked = decided(plain, here, control=24, trigger=0, settings=1, test=shows)
        assert (found.verdict, asked[-1]) == (verdict, Reason.TEST)


def test_what_needs_another_setting_than_the_cause_is_another_cause() -> None:
    """Also if it shows with either: settings that can be put back were put back."""

    def needs(setting: str, value: object) -> Case:
        found = configuration("tf", f"{setting}={value}")
        return replace(case("X[0]=1 || r0=X"), executor="tf", config=found)

    one, other = needs("inter_op_threads", 1), needs("loop_optimizer", "true")
    found, asked = decided(one, other, control=24)
    assert (found.verdict, asked) == (Verdict.NEW, [Reason.CONTROL])
    both = replace(one, config=configuration("tf", "loop_optimizer=true;inter_op_threads=1"))
    found, _ = decided(one, both, control=24, trigger=0, settings=1, test=1)
    assert found.verdict is Verdict.EXPLAINED


def test_what_shows_only_in_large_tensors_is_another_cause() -> None:
    small = case("X[0]=1 || r0=X")
    large = replace(small, test=litmus("X[0]=1 || r0=X", shape=(1, 1 << 18)))
    assert decided(large, small, control=24)[0].verdict is Verdict.NEW
    assert decided(small, large, control=24)[0].verdict is Verdict.NEW
    assert decided(large, large, control=24, trigger=0)[0].verdict is Verdict.EXPLAINED


def test_a_look_alike_must_show_with_no_more_settings_than_the_cause() -> None:
    here, plain = case("X[0]=1 || r0=X", early=True), case("X[0]=1 || r0=X")
    control = result_of(control_trial(here), Tally(3072, 300))

    def checked(*tallies: Tally) -> Comparison:
        checking = check_look_alike(here, [plain], control, 64)
        next(checking)
        *earlier, last = tallies
        for each in earlier:
            checking.send(each)
        with pytest.raises(StopIteration) as stop:
            checking.send(last)
        return stop.value.value

    assert checked(Tally(5000, 0)).verdict is Verdict.NEW
    assert checked(Tally(64, 3), Tally(5000, 0)).verdict is Verdict.EXPLAINED
    assert checked(Tally(64, 3), Tally(64, 1)).verdict is Verdict.NEW
    assert checked(Tally(20, 0), Tally(5000, 0)).verdict is Verdict.UNDECIDED
    assert checked(Tally(20, 0), Tally(5000, 1)).verdict is Verdict.NEW


def test_another_symptom_is_explained_only_if_the_causes_test_shows_it() -> None:
    torn, wrong = case("X[0]=1 || r0=X"), case("X[0]=1 || r0=X", symptoms=("wrong",))
    for shows, verdict in ((0, Verdict.NEW), (1, Verdict.EXPLAINED)):
        found, _ = decided(wrong, torn, control=24, trigger=0, test=shows)
        assert found.verdict is verdict


def test_a_torn_value_is_asked_of_a_cause_with_one_lane_in_more_lanes() -> None:
    """One lane shows no torn value: its test could never explain one."""
    one_lane = replace(
        case("X[0]=1 || r0=X", symptoms=("wrong",)), test=litmus("X[0]=1 || r0=X", shape=(1,))
    )
    comparing = compare(case("X[0]=1 || r0=X"), one_lane)
    next(comparing)
    comparing.send(Tally(10_000, 24, showing=24, length=64))
    widened = comparing.send(Tally(10_000, 0))
    assert (widened.case.symptoms, widened.symptoms) == (("torn",), ("wrong",))
    trial = comparing.send(Tally(10_000, 0))
    assert (trial.reason, trial.symptoms) == (Reason.TEST, ("torn",))
    assert width(trial.test) > width(one_lane.test) == 1


WHOLE = """
litmusfuzz: 2
name: whole
variables:
  X: {dtype: int32, shape: [1, 2], init: 0}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [1, 2], value: [[1, 2]]}
    w0: {op: ResourceScatterUpdate, resources: [X], inputs: [c], indices: [0]}
    r0: {op: ReadVariableOp, resources: [X]}
    axis: {op: Const, dtype: int32, shape: [], value: 1}
    sum: {op: Cumsum, inputs: [r0, axis]}
observe: [r0]
"""


def test_a_value_whose_lanes_differ_may_be_torn() -> None:
    """It never shows as torn: no experiment tells whether it is."""
    torn = case("X[0]=1 || r0=X")
    whole = replace(case("X[0]=1 || r0=X", symptoms=("wrong",)), test=loads(WHOLE).test)
    assert whole.test.whole
    for finding, cause in ((whole, torn), (torn, whole)):
        found, asked = decided(finding, cause, control=24, trigger=0)
        assert found.verdict is Verdict.UNDECIDED
        assert found.why == "whether a value is torn: in one of the two, lanes differ"
        assert asked == [Reason.CONTROL, Reason.TRIGGER]
        # All other experiments decide as ever.
        assert decided(finding, cause, control=24, trigger=1)[0].verdict is Verdict.NEW
        early = replace(cause, config=configuration("mutant/early-scatter", "early"))
        for shows, verdict in ((0, Verdict.NEW), (1, Verdict.UNDECIDED)):
            found, _ = decided(finding, early, control=24, trigger=0, settings=1, test=shows)
            assert found.verdict is verdict
    # Of two such tests each shows the other's symptom, if it has it.
    same = decided(whole, whole, control=24, trigger=0)[0]
    assert same.verdict is Verdict.EXPLAINED


def test_what_cannot_be_decided_is_undecided_unless_another_experiment_decides() -> None:
    here, plain = case("X[0]=1 || r0=X", early=True), case("X[0]=1 || r0=X")
    assert decided(here, plain, control=0)[0].verdict is Verdict.UNDECIDED
    # One hit in 10,000 executions: none in 10,000 more says little.
    assert decided(here, plain, control=1, trigger=0, settings=1)[0].verdict is Verdict.UNDECIDED
    found, _ = decided(here, plain, control=24, trigger=-1, settings=0)
    assert found.verdict is Verdict.NEW


# --- the rule, on mutants --------------------------------------------------------------


def on_mutant(finding: Case, cause: Case) -> Comparison:
    async def run() -> Comparison:
        with closing(Worker(finding.executor)) as worker:
            runs = on_worker(worker, random.Random(1))
            return await carry_out(compare(finding, cause), runs, BUDGET)

    return asyncio.run(run())


def test_a_tear_after_the_update_is_not_the_tear_beside_it() -> None:
    """The mutant's two defects, of which one needs a setting; its seeds are fixed."""
    beside, after = case("X[0]=1 || r0=X"), case("X[0]=1; r0=X", early=True)
    assert on_mutant(case("X[0]+=1 || r0=X[0]"), beside).verdict is Verdict.EXPLAINED
    found = on_mutant(after, beside)
    assert (found.verdict, len(found.experiments)) == (Verdict.NEW, 1)
    assert found.experiments[0].showing >= CONTROL_RUNS
    # In one test, with both: an order takes the known one away, and the other stays.
    for both in (case("X[0]=1; r0=X || r1=X", early=True), case("X[0]=1 || r0=X", early=True)):
        found = on_mutant(both, beside)
        assert found.verdict is Verdict.NEW
        assert [each.reason for each in found.experiments] == [Reason.CONTROL, Reason.TRIGGER]


# --- trials ----------------------------------------------------------------------------


def test_a_trial_ends_with_its_answer_and_spreads_over_builds() -> None:
    counts = []

    async def none(trial: Trial, count: int, enough):
        counts.append(count)
        return {Outcome.of(trial.test, {"r0": (0,), "X": (1,)}): count}

    trial = control_trial(case("X[0]=1 || r0=X"))
    tally = asyncio.run(tally_of(trial, none, TrialBudget(20, executions=2000)))
    assert tally.seen == 0
    assert tally.executions == sum(counts) >= 2000
    assert len(counts) >= 4

    async def torn(trial: Trial, count: int, enough):
        return {Outcome.of(trial.test, {"r0": TORN, "X": (1,)}): count}

    tally = asyncio.run(tally_of(trial, torn, BUDGET))
    assert tally.seen == tally.executions <= 2000


def test_a_process_that_keeps_dying_and_a_refusal_end_a_trial() -> None:
    async def dies(trial: Trial, count: int, enough):
        return DIED

    async def refuses(trial: Trial, count: int, enough):
        return "loops"

    trial = control_trial(case("X[0]=1 || r0=X"))
    assert asyncio.run(tally_of(trial, dies, BUDGET)) == Tally(0, 0, DIED)
    assert asyncio.run(tally_of(trial, refuses, BUDGET)) == Tally(0, 0, "loops")


@pytest.mark.parametrize(
    ("lanes", "first", "second"), [(2, 256, 3072), (1 << 17, 64, 128)], ids=["usual", "large"]
)
def test_the_first_run_of_a_trial_is_short(lanes: int, first: int, second: int) -> None:
    """Thousands of executions may take more than the limit of a job; the pace says how many do."""
    counts = []

    async def none(trial: Trial, count: int, enough):
        counts.append(count)
        return {Outcome.of(trial.test, {"r0": (0,), "X": (1,)}): count}

    test = litmus("X[0]=1 || r0=X", shape=(2, lanes))
    trial = Trial(Reason.TRIGGER, test, case("X[0]=1 || r0=X"), ("torn",), 1, 1e5)
    asyncio.run(tally_of(trial, none, TrialBudget(20, executions=50_000)))
    assert counts[:2] == [first, second]
    assert sum(counts) >= 50_000


def test_a_worker_without_an_answer_has_not_ended_by_itself() -> None:
    """It is not asked again: each time takes a minute."""

    class Late:
        executor = "mutant/stale-reads"

        async def run(self, request, timeout_s: float, test):
            return Died(f"no answer in {timeout_s:g} s", "", timed_out=True)

    one = case("X[0]=1 || r0=X")
    tally = asyncio.run(tally_of(control_trial(one), on_worker(Late(), random.Random(1)), BUDGET))
    assert tally == Tally(0, 0, "no answer in 60 s")


def test_executions_of_one_run_are_not_independent() -> None:
    """Every fourth run shows a tear, in half of its executions: a miss must still be rare."""
    lengths, number = [], 0

    async def bursts(trial: Trial, count: int, enough):
        nonlocal number
        number += 1
        lengths.append(count)
        torn = count // 2 if number % 4 == 0 else 0
        shown = Outcome.of(trial.test, {"r0": TORN, "X": (1,)})
        return {shown: torn, Outcome.of(trial.test, {"r0": (1,), "X": (1,)}): count - torn}

    one = case("X[0]=1 || r0=X")
    control = asyncio.run(tally_of(control_trial(one), bursts, TrialBudget(seconds=600)))
    # Longer runs until one shows it, then runs of that length.
    assert lengths[:4] == [64, 128, 256, 512]
    assert set(lengths[4:]) == {control.length} == {512}
    assert control.showing == CONTROL_RUNS
    assert control.seen == CONTROL_RUNS * 256
    # If every fourth run shows it, none of so many runs does so less than once in 1,000 times.
    comparing = compare(one, one)
    next(comparing)
    trial = comparing.send(control)
    assert (trial.reason, trial.length) == (Reason.TRIGGER, 512)
    assert (1 - 1 / 4) ** (trial.needed / trial.length) < 1 / MISS_ODDS
    # If its executions were independent, four runs, of which none may show it, were enough.
    assert executions_needed(control.seen, control.executions) < 4 * 512


def test_the_test_of_a_cause_is_run_as_often_as_its_own_rate_asks_for() -> None:
    frequent, rare = case("X[0]=1 || r0=X"), case("X[0]=1 || r0=X", early=True)
    comparing = compare(frequent, rare)
    next(comparing)
    trial = comparing.send(Tally(1000, 500, showing=10, length=64))
    assert trial.reason is Reason.TRIGGER
    trial = comparing.send(Tally(10_000, 0))
    assert trial.reason is Reason.SETTINGS
    trial = comparing.send(Tally(64, 1, showing=1, length=64))
    assert (trial.reason, trial.test, trial.case.config) == (
        Reason.CONTROL,
        rare.test,
        rare.config,
    )
    trial = comparing.send(Tally(1_000_000, 10, showing=10, length=3072))
    assert (trial.reason, trial.length) == (Reason.TEST, 3072)
    assert trial.needed > 1_000_000
