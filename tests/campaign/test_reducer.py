"""The reducer: every candidate valid, the property kept, the end small."""

from __future__ import annotations

import pytest

from corpus.graph import LitmusTest, predecessors
from corpus.textfile import Entry, dumps, loads
from fuzz.campaign.reducer import normalized, reduce
from fuzz.strategies import draw


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
    found = [draw("dag", 11, i) for i in range(120)]
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


def test_what_must_stay_stays() -> None:
    """A property on the number of effects is kept exactly."""
    test = next(t for t in (draw("dag", 2, i) for i in range(100)) if len(t.graph.effects) >= 5)
    small, _ = run_reduction(test, lambda t: len(t.graph.effects) >= 3)
    assert len(small.graph.effects) == 3


def test_a_property_that_never_holds_again_returns_the_test_itself() -> None:
    test = draw("dag", 1, 1)
    small, asked = run_reduction(test, lambda _: False)
    assert small == test
    assert test not in asked


def test_dropping_a_node_keeps_the_order_around_it() -> None:
    """a -> b -> c less b is a -> c: one candidate drops only the middle."""
    from corpus.builder import litmus

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
    test = draw("dag", 1, 3)
    again = normalized(test, "x")
    assert [n.op for n in again.graph.nodes] == [n.op for n in test.graph.nodes]
    assert all(n.name[0] == "r" for n in again.graph.nodes if n.op.startswith("Read"))
    assert normalized(again, "x") == again
