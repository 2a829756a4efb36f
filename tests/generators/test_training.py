"""Family `training`: properties of its plans, and races between its steps."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from native.helpers_native import all_outcomes

from litmusfuzz.corpus.model import LitmusTest, LoopAttrs, Node
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.passes.autodiff import RULES
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import MODELS, RFC

MANY = 200


@cache
def generated() -> tuple[LitmusTest, ...]:
    return tuple(generate("training", 11, index) for index in range(MANY))


def plan(test: LitmusTest) -> str:
    if "loops" in test.features:
        return "loop"
    return "synchronous" if test.queues else "asynchronous"


def of(name: str) -> list[LitmusTest]:
    return [test for test in generated() if plan(test) == name]


def nodes(test: LitmusTest) -> list[Node]:
    return list(test.nodes)


def count(test: LitmusTest, op: str, resource: str) -> int:
    return sum(node.op == op and node.resources == (resource,) for node in nodes(test))


def statuses(test: LitmusTest) -> set[Status]:
    return {outcome.status for outcome in allowed_outcomes(test, RFC).witnesses}


def test_every_plan_occurs_in_one_graph_and_in_several() -> None:
    assert len(of("loop")) >= MANY / 10
    for name in ("asynchronous", "synchronous"):
        several = sum("several runs" in test.features for test in of(name))
        assert MANY / 10 <= several <= len(of(name)) - MANY / 20


def test_every_rule_changes_weights_and_every_model_occurs() -> None:
    ops = {node.op for test in generated() for node in nodes(test)}
    assert ops >= {*RULES, "ResourceGather", "ResourceScatterAdd", "ResourceScatterSub"}
    assert ops >= {"MatMul", "Relu", "ReluGrad", "Maximum", "Minimum", "Select"}
    assert {len(test.variables) for test in generated()} == {1, 2}


def test_some_loops_are_sequential_and_some_race() -> None:
    ordered = [
        any(name.startswith("token") for name in node.attrs.carried)
        for test in of("loop")
        for node in nodes(test)
        if isinstance(node.attrs, LoopAttrs)
    ]
    assert 0.3 <= sum(ordered) / len(ordered) <= 0.8


def test_some_workers_step_in_a_critical_section() -> None:
    locked = sum(bool(test.mutexes) for test in of("asynchronous"))
    assert 0.1 <= locked / len(of("asynchronous")) <= 0.4


def test_a_chief_wants_all_gradients_or_has_backup_workers() -> None:
    """In one round, or in two with or without tokens."""
    rounds = Counter[str]()
    for test in of("synchronous"):
        puts = count(test, "QueueEnqueueV2", "Q")
        takes = count(test, "QueueDequeueV2", "Q")
        chief = [n for n in nodes(test) if n.definition.kind.writes]
        rounds["backup"] += puts > takes
        rounds["every"] += puts == takes
        rounds["tokens"] += any(queue.name == "T" for queue in test.queues)
        rounds["two"] += len(chief) > len(test.variables)
    assert min(rounds.values()) >= MANY / 20


def test_a_dead_worker_keeps_the_chief_waiting_or_does_not() -> None:
    """A dead worker has read the weights but not put its gradient."""
    blocked = survived = 0
    for test in of("synchronous"):
        workers = [g for g in test.graphs if g.name[0] == "g"]
        effects = [Counter(n.op for n in graph.effects) for graph in workers]
        if any(each["ReadVariableOp"] > each["QueueEnqueueV2"] for each in effects):
            blocked += Status.BLOCKED in statuses(test)
            survived += statuses(test) == {Status.COMPLETED}
    assert min(blocked, survived) >= 2
    dying = [t for t in of("asynchronous") if any(g.name.endswith("dies") for g in t.graphs)]
    assert len(dying) >= MANY / 20


def test_asynchronous_plans_never_block() -> None:
    for test in (*of("asynchronous"), *of("loop")):
        assert statuses(test) == {Status.COMPLETED}


def test_racing_steps_race() -> None:
    """Two workers without a lock mostly have more outcomes than orders of whole steps.

    Except where a gradient is zero, or equal values are stored.
    """
    racing = [t for t in of("asynchronous") if not t.mutexes]
    several = [len(allowed_outcomes(t, RFC).witnesses) >= 2 for t in racing]
    assert sum(several) >= 0.75 * len(several)
    more = [len(allowed_outcomes(t, RFC).witnesses) > 2 for t in racing]
    assert sum(more) >= 0.6 * len(more)


def test_every_test_is_small_enough_for_a_campaign() -> None:
    for test in generated():
        for model in MODELS.values():
            assert allowed_outcomes(test, model, CAMPAIGN_BUDGET).complete


@pytest.mark.parametrize("chunk", range(4))
def test_all_executions_on_native_show_exactly_the_allowed_set(chunk: int) -> None:
    """Under both models, by enumeration of all executions."""
    compared = 0
    for test in generated()[15 * chunk : 15 * chunk + 15]:
        for model in MODELS.values():
            found = all_outcomes(test, model, 3_000)
            if found is not None:
                assert found[0] == set(allowed_outcomes(test, model).witnesses)
                compared += 1
    assert compared >= 24


def test_every_weight_is_read_before_it_is_changed() -> None:
    """A gradient depends on the weight that it changes."""
    for test in of("asynchronous"):
        for graph in test.graphs:
            seen: set[tuple[str, ...]] = set()
            for node in graph.nodes:
                if node.definition.kind is Kind.READ:
                    seen.add(node.resources)
                elif node.name.startswith("u_"):
                    assert node.resources in seen
