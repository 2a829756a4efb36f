"""The reducer: valid candidates that keep the property, and small results."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from helpers import differentiated
from helpers_settings import settings_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    FEATURES,
    LitmusTest,
    all_nodes,
    bodies,
    captures_of,
    predecessors,
)
from litmusfuzz.corpus.ops import SectionAttrs
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.campaign.best import MAX_STEP, Best
from litmusfuzz.fuzz.campaign.probing import Prober
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.executors.protocol import Config, Noise
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.finding.reducer import candidates, reduce, widened
from litmusfuzz.fuzz.finding.reduction_passes import PASSES
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.fuzz.finding.resource_passes import LANES
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.fuzz.campaign.job import Job, Result
    from litmusfuzz.fuzz.campaign.slots import Slot

PLAIN = Target("native", Config("plain", "rfc"), RFC, "native/rfc")


def run_reduction(test: LitmusTest, holds) -> tuple[LitmusTest, list[LitmusTest]]:
    """Reduce under a deterministic property; the end, and all candidates."""
    reduction = reduce(test)
    asked = []
    answer = None
    try:
        while True:
            candidate = reduction.send(answer)
            asked.append(candidate)
            answer = holds(candidate)
    except StopIteration as stop:
        return stop.value, asked


def racing_scatters(test: LitmusTest) -> bool:
    """Two scatters, or a scatter and a read, unordered on one variable."""
    above = {n.name: names for n, names in predecessors(test.graph)}
    effects = test.graph.effects
    for i, a in enumerate(effects):
        for b in effects[i + 1 :]:
            if a.resources[0] != b.resources[0] or a.name in above[b.name]:
                continue
            scatters = [n for n in (a, b) if n.op.startswith("ResourceScatter")]
            reads = [n for n in (a, b) if not n.definition.kind.writes]
            if len(scatters) == 2 or (scatters and reads):
                return True
    return False


def racing_tests() -> list[LitmusTest]:
    found = [generate("dag", 11, i) for i in range(120)]
    return [test for test in found if racing_scatters(test)][:25]


@pytest.mark.parametrize("test", racing_tests(), ids=lambda t: f"{len(t.graph.nodes)}-nodes")
def test_a_race_is_reduced_to_its_two_ops(test: LitmusTest) -> None:
    small, asked = run_reduction(test, racing_scatters)
    assert racing_scatters(small)
    assert len(small.graph.effects) == 2
    assert all(not n.after for n in small.graph.effects)
    assert len(small.variables) == 1
    assert small.variables[0].shape in ((), (1,))
    assert small.variables[0].init == 0
    assert len(asked) == len(set(asked))
    for candidate in asked:  # every candidate is a test that a worker could be sent
        assert loads(dumps(Entry(candidate))).test == candidate


def test_the_reducer_keeps_what_the_property_needs() -> None:
    """A property on the number of effects is kept exactly."""
    test = next(t for t in (generate("dag", 2, i) for i in range(100)) if len(t.graph.effects) >= 5)
    small, _ = run_reduction(test, lambda t: len(t.graph.effects) >= 3)
    assert len(small.graph.effects) == 3


def test_a_property_that_never_holds_again_returns_the_test_itself() -> None:
    test = generate("dag", 1, 1)
    small, asked = run_reduction(test, lambda _: False)
    assert small == test
    assert test not in asked


def test_dropping_a_node_keeps_the_order_around_it() -> None:
    """a -> b -> c less b is a -> c: one candidate drops only the middle."""
    test = litmus("X=1; Y=1; Z=1")
    wanted = litmus("X=1; Z=1")
    _, asked = run_reduction(test, lambda _: False)
    shapes = [
        {
            (
                n.resources[0],
                tuple(next(m for m in t.graph.nodes if m.name == a).resources[0] for a in n.after),
            )
            for n in t.graph.effects
        }
        for t in asked
    ]
    assert {("X", ()), ("Z", ("X",))} in shapes
    assert wanted.graph.effects  # the notation agrees that both are effects


def test_normalized_names_follow_the_nodes_kinds() -> None:
    test = generate("dag", 1, 3)
    again = normalized(test, "x")
    assert [n.op for n in again.graph.nodes] == [n.op for n in test.graph.nodes]
    assert all(n.name[0] == "r" for n in again.graph.nodes if n.op.startswith("Read"))
    assert normalized(again, "x") == again


# --- the whole format ------------------------------------------------------------------


def generated() -> list[LitmusTest]:
    tests = [generate(family, 5, index) for family in FAMILIES for index in range(4)]
    # No family places anything, or makes large tensors.
    placed = (replace(v, device="cpu:1") for v in tests[0].variables)
    large = litmus("X=1 || X+=2 || r0=X", shape=(2, 1 << 14))
    gradients = differentiated(litmus("r0=X; X=r0*2", dtype="float32"))
    return [*tests, replace(tests[0], variables=tuple(placed)), large, gradients]


@pytest.fixture(scope="module")
def tests() -> list[LitmusTest]:
    return generated()


def test_a_rewriter_of_a_test_builds_that_test_again(tests) -> None:
    for test in tests:
        assert test.features <= FEATURES
        again = Rewriter.of(test).build()
        # A client that says nothing is left out.
        assert again == test or (test.client and not again.client)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda each: each.__name__)
def test_a_pass_makes_tests_on_every_family_that_it_concerns(tests, pass_) -> None:
    """Each is well-formed when read back, and the pass makes most of what it tries."""
    tried = made = 0
    for test in tests:
        tried += sum(1 for _ in pass_(test))
        for candidate in candidates(pass_, test):
            made += 1
            assert loads(dumps(Entry(candidate))).test == candidate
    assert made
    assert made >= 0.6 * tried


def test_normalized_tests_are_themselves_and_keep_their_outcomes_order(tests) -> None:
    for test in tests:
        again = normalized(test, "x")
        assert loads(dumps(Entry(again))).test == again
        assert normalized(again, "x") == again
        assert [n.op for n in again.effects] == [n.op for n in test.effects]
        assert len(again.names) == len(test.names)
        assert [again.type_of(n) for n in again.names] == [test.type_of(n) for n in test.names]


def test_wider_lanes_are_those_of_everything_that_meets() -> None:
    test = next(t for t in generated() if any(v.shape for v in t.variables) and not t.whole)
    (wider,) = widened(test)
    assert all(v.shape[1:] == (LANES,) for v in wider.variables if v.shape)
    assert not [*widened(wider)]


@pytest.mark.parametrize(("least", "width"), [(0, 0), (2, LANES), (40, LANES)])
def test_lanes_end_at_none_or_at_the_one_width(least: int, width: int) -> None:
    """Whatever width a test was generated with, and whatever width would do."""

    def lanes(test: LitmusTest) -> list[int]:
        return [v.shape[1] if len(v.shape) > 1 else 0 for v in test.variables if v.shape]

    def racing(test: LitmusTest) -> bool:
        return racing_scatters(test) and min(lanes(test), default=0) >= least

    wide = [test for test in racing_tests() if max(lanes(test), default=0) > 1]
    widths = set()
    for test in wide:
        widths |= set(lanes(test))
        small, _ = run_reduction(test, racing)
        if racing(test):
            assert set(lanes(small)) <= {width}
    assert len(widths - {0, 1, LANES}) >= 2


def written_inside(op: str, test: LitmusTest) -> bool:
    """Whether a body of such a node holds a write."""
    return any(
        node.definition.kind.writes
        for outer in test.effects
        if outer.op == op
        for _, body in bodies(outer)
        for node in all_nodes(body.nodes)
    )


def held_together(test: LitmusTest) -> bool:
    """Whether a section has two members that touch a resource."""
    effects = {node.name for node in test.effects}
    return any(
        len(effects & set(node.attrs.members)) >= 2
        for node in test.effects
        if isinstance(node.attrs, SectionAttrs)
    )


def test_a_loop_goes_though_what_races_inside_would_be_ordered_in_its_place() -> None:
    """A read waits for a loop, and not for the write in it: they race all the same.

    Without that edge it would come long before the loop has begun, so that nothing shows.
    """
    test = litmus("loop 2 {X[0]-=1}; r0=X", shape=(1,))
    assert "While" in {node.op for node in test.effects}

    def races(test: LitmusTest) -> bool:
        ops = {node.op for node in test.effects}
        if "While" in ops:
            waits = any(node.after for node in test.effects if node.op == "ReadVariableOp")
            return waits and "ResourceScatterSub" in ops
        return racing_scatters(test)

    small, _ = run_reduction(test, races)
    assert sorted(node.op for node in small.effects) == ["ReadVariableOp", "ResourceScatterSub"]


KEPT = {
    "loops": (lambda t: written_inside("While", t), ["AssignVariableOp", "While"]),
    "conditionals": (lambda t: written_inside("If", t), ["AssignVariableOp", "If"]),
    "sections": (held_together, None),
    "queues": (
        lambda t: {"QueueEnqueue", "QueueDequeue"} <= {n.op[:12] for n in t.effects},
        ["QueueDequeueV2", "QueueEnqueueV2"],
    ),
    "runs": (
        lambda t: any(run.after for run in t.runs) and len(t.effects) > 1,
        None,
    ),
}
"""By family: what is kept, and the ops that are left where that says which."""


@pytest.mark.parametrize("family", KEPT)
def test_of_a_feature_that_is_kept_only_that_is_left(family: str) -> None:
    holds, ops = KEPT[family]
    found = [t for t in (generate(family, 9, index) for index in range(20)) if holds(t)]
    assert len(found) >= 5
    for test in found[:8]:
        small, asked = run_reduction(test, holds)
        assert holds(small)
        assert len(asked) < 500
        # Two effects, and one node more that joins them.
        assert len(small.effects) <= 3
        if ops:
            assert sorted(n.op for n in small.effects) == ops
        assert not small.observe
        assert sum(len(graph.nodes) for graph in small.graphs) <= 6


def test_a_loop_is_reduced_to_one_iteration_and_one_carried_value() -> None:
    test = next(
        t
        for t in (generate("loops", 9, index) for index in range(40))
        if max(t.bounds.values()) > 1 and any(len(n.inputs) > 1 for n in t.effects)
    )
    small, _ = run_reduction(test, lambda t: "loops" in t.features)
    (loop,) = small.effects
    assert small.bounds[loop.name] == 1
    assert len(loop.inputs) == 1


def test_a_queue_that_has_to_be_full_is_reduced_to_one_place() -> None:
    def full(test: LitmusTest) -> bool:
        return any(len(queue.init) == queue.capacity for queue in test.queues)

    test = next(t for t in (generate("queues", 3, i) for i in range(200)) if full(t))
    small, _ = run_reduction(test, full)
    (queue,) = small.queues
    assert (queue.capacity, queue.init) == (1, (1,))


def test_a_step_of_an_executor_that_takes_no_time_has_a_bound() -> None:
    test = litmus("X=1; r0=X")
    stale = {Outcome.of(test, {"r0": (0,), "X": (1,)}): 4}
    best = Best(test, judge(Explorer(test, RFC), stale), PLAIN)
    step = best.step(1024)
    for _ in range(600):  # as `confirm` does while nothing shows
        best.ran(step, 0.0)
        step = best.step(4 * step)
    assert step == MAX_STEP


def test_a_probe_of_few_executions_has_few_copies() -> None:
    """But as many as the finding itself has, if these are fewer; and all where it blocks."""
    test = litmus("X=1; r0=X")
    stale = Outcome.of(test, {"r0": (0,), "X": (1,)})
    blocked = Outcome.of(test, {}, Status.BLOCKED)

    def copies(outcome: Outcome, noise: Noise, rate: float) -> int:
        judgement = replace(judge(Explorer(test, RFC), {stale: 400}), forbidden=((outcome, 1),))
        best = Best(test, judgement, PLAIN, noise, rate=rate)
        return best.probe_noise.copies

    # Of 256, 256, 480 and 1,200 executions.
    assert [copies(stale, Noise(), rate) for rate in (0.5, 0.1, 0.05, 0.02)] == [8, 8, 15, 32]
    assert copies(stale, Noise(copies=2), 0.5) == 2
    assert copies(blocked, Noise(), 0.5) == 32


@pytest.mark.parametrize(("rate", "runs"), [(0.95, 1), (0.5, 2)])
def test_a_candidate_that_has_lost_a_certain_finding_is_run_once(rate: float, runs: int) -> None:
    """Two runs of three that do not show a finding reject a candidate otherwise."""
    test = litmus("X=1; r0=X")
    fresh, stale = (Outcome.of(test, {"r0": (read,), "X": (1,)}) for read in (1, 0))
    best = Best(test, judge(Explorer(test, RFC), {stale: 400}), PLAIN)
    best.rate = rate
    jobs: list[Job] = []

    async def run(job: Job) -> Result:
        jobs.append(job)
        return {fresh: job.count}

    slot = cast("Slot", SimpleNamespace(run=run, target=PLAIN))
    prober = Prober(settings_of(seed=1, out=Path(), executors=()))
    shown = asyncio.run(prober.probe(slot, test, best, random.Random(1)))
    assert shown is None
    assert len(jobs) == runs


UNUSED_CAPTURES = """
litmusfuzz: 2
name: unused
variables: {X: {dtype: int32, shape: [], init: 0}}
graphs:
  main:
    r0: {op: ReadVariableOp, resources: [X]}
    r1: {op: ReadVariableOp, resources: [X]}
    call0:
      op: Call
      captures: {a0: r0, a1: r1}
      results: [y0]
      body:
        nodes:
          c0: {op: Const, dtype: int32, shape: [], value: 1}
          w0: {op: AssignVariableOp, resources: [X], inputs: [c0]}
        results: [c0]
observe: [r0, call0.y0]
"""


UNUSED_NODES = """
litmusfuzz: 2
name: unused
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    c0: {op: Const, dtype: int32, shape: [], value: 3}
    c1: {op: Const, dtype: int32, shape: [], value: 2}
    r0: {op: ReadVariableOp, resources: [X]}
    t0: {op: Neg, inputs: [r0]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [c0], after: [c1]}
    w1: {op: AssignAddVariableOp, resources: [Y], inputs: [c0]}
"""


def test_unused_nodes_stay_if_they_are_needed() -> None:
    """As cluster members, or for an order in which they come first, say."""
    test = loads(UNUSED_NODES).test

    def has(op: str, test: LitmusTest) -> bool:
        return any(node.op == op for node in test.nodes)

    small, asked = run_reduction(test, lambda t: has("Neg", t) and has("AssignVariableOp", t))
    assert sorted(node.op for node in small.nodes) == ["AssignVariableOp", "Const", "Const", "Neg"]
    assert [each.name for each in small.variables] == ["X"]
    assert len(asked) == len(set(asked))
    small, _ = run_reduction(test, lambda t: any(node.after for node in t.nodes))
    assert [node.op for node in small.nodes if node.after] == ["AssignVariableOp"]
    small, _ = run_reduction(test, lambda t: has("AssignVariableOp", t))
    assert len(small.nodes) == 2


def test_a_variable_gets_a_value_unless_it_has_to_lack_one() -> None:
    """It gets 1 if the finding does not show with 0: a product would not, say."""
    without = UNUSED_NODES.replace("init: 0", "initialized: false")
    test = loads(without).test

    def shows(*allowed: int | None):
        return lambda t: all(v.init in allowed for v in t.variables) and len(t.variables) == 2

    for allowed, value in ((None, 0, 1), 0), ((None, 1), 1), ((None,), None):
        small, _ = run_reduction(test, shows(*allowed))
        assert [each.init for each in small.variables] == [value, value]


def test_unused_nodes_that_stay_by_chance_are_removed_later() -> None:
    """A race may be missed once."""
    answers = iter([False])
    small, asked = run_reduction(
        loads(UNUSED_NODES).test,
        lambda t: next(answers, True) and any(node.op == "AssignVariableOp" for node in t.nodes),
    )
    assert [node.op for node in small.nodes] == ["Const", "AssignVariableOp"]
    assert len(asked) == len(set(asked))


def test_a_constant_that_a_body_returns_is_used() -> None:
    """The reducer put a new constant in its place, again and again."""
    test = loads(UNUSED_CAPTURES).test
    small, asked = run_reduction(test, lambda t: "call0.y0" in t.types)
    assert "call0.y0" in small.types
    assert len(asked) < 30


def test_what_a_call_is_given_and_does_not_use_stays_if_it_is_needed() -> None:
    """The call waits for it: function inlining has lost that order."""
    test = loads(UNUSED_CAPTURES).test

    def given(test: LitmusTest) -> list[str]:
        reads = {node.name for node in test.nodes if node.op == "ReadVariableOp"}
        return [outer for n in test.nodes for _, outer in captures_of(n) if outer in reads]

    def calls_write(test: LitmusTest) -> bool:
        calls = [node for node in test.nodes if node.op == "Call"]
        return any(n.definition.kind.writes for call in calls for n in all_nodes([call]))

    small, asked = run_reduction(test, lambda t: calls_write(t) and len(given(t)) > 0)
    assert len(given(small)) == 1
    assert "call0.y0" not in small.types  # an unused result is removed without it
    assert len(asked) == len(set(asked))
    smaller, _ = run_reduction(test, calls_write)
    assert not given(smaller)  # and is gone if it is not
