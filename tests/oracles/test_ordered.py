"""Whether a test orders two nodes in all executions that reach both."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Variable, levels
from litmusfuzz.corpus.model.order import path_between
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import calls, conditionals, dag, fetches, loops, runs
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.ordered import is_ordered
from litmusfuzz.oracles.reference import orders_of

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def on(test: LitmusTest, resource: str) -> str:
    """The op on a resource."""
    return next(node.name for node in test.nodes if node.resources == (resource,))


@pytest.mark.parametrize("seed", range(12))
def test_without_bodies_and_locks_a_path_alone_orders(seed: int) -> None:
    test = dag.generate(random.Random(seed), Support(features=frozenset()))
    names = [node.name for node in test.graph.nodes if node.resources]
    for earlier in names:
        for later in names:
            if earlier != later:
                ordered = bool(path_between(test.graph, later, earlier))
                assert is_ordered(test, earlier, later) is ordered, (earlier, later)


def test_a_lock_orders_nothing_and_a_message_does() -> None:
    section = litmus("lock M; X=1; unlock M || lock M; Y=1; unlock M")
    message = litmus("X=1; Q!1 || r0=Q?; Y=1", queues={"Q": 1})
    for test, ordered in ((section, False), (message, True)):
        assert is_ordered(test, on(test, "X"), on(test, "Y")) is ordered
        assert is_ordered(test, on(test, "Y"), on(test, "X")) is False


def test_executions_that_fail_decide_nothing() -> None:
    """The write of Y comes after that of X in each that does not fail."""
    unset = Variable("Z", "int32", (), None)
    test = litmus("X=1; Y=1 || Z=1 || r0=Z")
    variables = tuple(unset if each.name == "Z" else each for each in test.variables)
    test = replace(test, variables=variables)
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is True
    assert is_ordered(test, on(test, "Y"), on(test, "X")) is False


TWICE = {"client": "a:main; b:main"}
CHAIN = "r1=X; r2=Y; W=r2"
BODIES: dict[str, tuple[str, dict[str, Any], bool | None]] = {
    "a branch that is taken": (f"r0=Z; if r0==0 {{ {CHAIN} }}", {}, True),
    "a branch that is taken at times": (f"r0=Z; if r0==1 {{ {CHAIN} }} || Z=1", {}, True),
    "a branch that is never taken": (f"r0=Z; if r0==1 {{ {CHAIN} }} || Z=2", {}, False),
    "a branch behind what blocks": (f"r0=Q?; if r0==1 {{ {CHAIN} }}", {"queues": {"Q": 1}}, None),
    "a call": (f"call {{ {CHAIN} }}", {}, True),
    "iterations in no order": ("loop 3 free { X=1; Y=1 }", {}, True),
    "nested loops": ("loop 2 free { loop 2 free { X=1; Y=1 } }", {}, True),
    "two bodies of one loop": ("loop 2 free { X=1; r0=Z; if r0==0 { Y=1 } }", {}, True),
    "a branch of one iteration": ("loop 2 { X=1; Z+=1; r0=Z; if r0==1 { Y=1 } }", {}, True),
    "branches of different iterations": (
        "loop 2 { Z+=1; r0=Z; if r0==1 { X=1 }; if r0==2 { Y=1 } }",
        {},
        False,
    ),
    "before a loop": ("X=1; loop 2 { Y=1 }", {}, True),
    "after a loop": ("loop 2 { X=1 }; Y=1", {}, True),
    "concurrent runs": ("X=1; Y=1", TWICE, True),
    "concurrent runs of a loop": ("loop 2 free { X=1; Y=1 }", TWICE, True),
    "runs one after the other": ("X=1 || Y=1", {"client": "a:main; b:main after a"}, False),
    "a run that never starts": (
        "r0=Q? ||| X=1; Y=1",
        {"client": "a:g0; b:g1 after a", "queues": {"Q": 1}},
        None,
    ),
    "a run that fetches": ("X=1; r0=Y; Z=1", {"client": "a:main fetch r0"}, True),
}


@pytest.mark.parametrize("name", list(BODIES))
def test_in_bodies_and_several_runs_instances_are_compared(name: str) -> None:
    text, given, ordered = BODIES[name]
    test = litmus(text, **given)
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is ordered
    if ordered is not None:
        assert is_ordered(test, on(test, "Y"), on(test, "X")) is False


def test_past_the_budget_nothing_is_known() -> None:
    test = litmus("loop 2 free { X=1; Y=1 }", **TWICE)
    assert is_ordered(test, on(test, "X"), on(test, "Y"), Budget(states=10)) is None


MOST_ORDERS = 1_000


@pytest.mark.parametrize("family", [calls, conditionals, fetches, loops, runs])
def test_it_agrees_with_all_orders_of_the_reference(family: Any) -> None:
    compared = 0
    for seed in range(20):
        test = replace(family.generate(random.Random(seed), EVERYTHING), clusters=())
        if test.blocks or "uninitialized variables" in test.features:
            continue
        for pair, ordered in in_all_orders(test).items():
            # None where the counters of nested loops have several dtypes.
            assert is_ordered(test, *pair) in (ordered, None), (seed, pair)
            compared += ordered
    assert compared > 5


def in_all_orders(test: LitmusTest) -> dict[tuple[str, str], bool]:
    """The pairs of nodes of each graph, and whether some run orders them; none if too large."""
    inside = {
        node.name: {name for name in level.around if name in test.bounds}
        for graph in test.graphs
        for level in levels(graph)
        for node in level.nodes
    }
    nodes = [
        [node.name for level in levels(graph) for node in level.nodes if node.resources]
        for graph in test.graphs
    ]
    pairs = [(a, b) for names in nodes for a in names for b in names if a != b]
    there: set[tuple[str, tuple[str, str]]] = set()
    free: set[tuple[str, tuple[str, str]]] = set()
    found = list(islice(orders_of(test, RFC), MOST_ORDERS + 1))
    if len(found) > MOST_ORDERS or any(o.status is not Status.COMPLETED for o, _ in found):
        return {}
    for _, order in found:
        spans: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
        for place, event in enumerate(order):
            of_node = spans.setdefault(event.node.name, {})
            start, _ = of_node.get((event.run, event.frame), (place, place))
            of_node[event.run, event.frame] = start, place
        for pair in pairs:
            both = inside[pair[0]] & inside[pair[1]]
            for (run, frame), (start, _) in spans.get(pair[0], {}).items():
                for (other, its), (_, end) in spans.get(pair[1], {}).items():
                    if run == other and iterations(frame, both) == iterations(its, both):
                        there.add((run, pair))
                        if end < start:
                            free.add((run, pair))
    ordered = {pair for _, pair in there - free}
    return {pair: pair in ordered for pair in pairs}


def iterations(frame: str, loops: set[str]) -> list[str]:
    """The iterations of these loops in a frame."""
    return [each for each in frame.split("/") if each.partition("[")[0] in loops]
