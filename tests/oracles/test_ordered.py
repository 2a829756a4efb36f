"""Whether a test orders two nodes in all executions that reach both."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Variable, all_nodes, levels
from litmusfuzz.corpus.model.order import path_between
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.generators import (
    calls,
    conditionals,
    dag,
    fetches,
    loops,
    queues,
    runs,
    uninitialized,
)
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Budget, allowed_outcomes
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.ordered import is_ordered
from litmusfuzz.oracles.reference import orders_of

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Run


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


def unset(test: LitmusTest, name: str) -> LitmusTest:
    """The test where a variable has no value at first."""
    without = Variable(name, "int32", (), None)
    variables = tuple(without if each.name == name else each for each in test.variables)
    return replace(test, variables=variables)


def test_an_execution_that_fails_leaves_it_open_unless_another_decides() -> None:
    """It shows no values; another one may show the other order."""
    test = unset(litmus("X=1; Y=1 || Z=1 || r0=Z"), "Z")
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is None
    assert is_ordered(test, on(test, "Y"), on(test, "X")) is False


def test_an_order_is_open_where_the_other_order_fails() -> None:
    """Nothing orders the read after the write, but it fails before it."""
    for text in ("X=1 || r0=X", "call { X=1 } || r0=X"):
        test = litmus(text)
        write, read = (n.name for n in test.nodes if n.resources == ("X",))
        assert is_ordered(test, write, read) is False
        assert is_ordered(unset(test, "X"), write, read) is None


NESTED = dumps(Entry(litmus("loop 2 free { loop 2 free { X=1; Y=1 } }")))
INNER_START = "c0_1: {op: Const, dtype: int32, shape: [], value: %d}"
INNER_LIMIT = "c2_1: {op: Const, dtype: int32, shape: [], value: %d}"
OUTER_START = "c0_0: {op: Const, dtype: int32, shape: [], value: %d}"
OUTER_LIMIT = "c2_0: {op: Const, dtype: int32, shape: [], value: %d}"


@pytest.mark.parametrize(
    ("outer", "inner", "step", "ordered"),
    [
        ((0, 2), (0, 2), 1, True),
        ((-3, -1), (0, 2), 1, True),
        ((300, 302), (0, 200), 100, True),
        ((0, 2), (0, 512), 256, None),  # iteration (0, 256) has the number of (1, 0)
        ((0, 2), (-255, 2), 256, None),
        ((0, 2), (254, 256), 1, None),
        ((40_000, 40_002), (0, 2), 1, None),  # a number of an iteration reaches 2**24
    ],
)
def test_numbers_of_iterations_are_distinct_or_it_is_not_asked(
    outer: tuple[int, int], inner: tuple[int, int], step: int, *, ordered: bool | None
) -> None:
    text = NESTED
    for line, old, new in (
        (OUTER_START, 0, outer[0]),
        (OUTER_LIMIT, 2, outer[1]),
        (INNER_START, 0, inner[0]),
        (INNER_LIMIT, 2, inner[1]),
    ):
        assert line % old in text
        text = text.replace(line % old, line % new)
    # The inner loop has a step of its own, which it captures.
    limit = INNER_LIMIT % inner[1]
    constant = f"s1: {{op: Const, dtype: int32, shape: [], value: {step}}}"
    indent = text[: text.index(limit)].rsplit("\n", 1)[1]
    for old_text, new_text in (
        (limit, f"{limit}\n{indent}{constant}"),
        ("captures: {limit_1: c2_1", "captures: {limit_1: c2_1, s_1: s1"),
        ("inputs: [loop1_i0, c1_0]", "inputs: [loop1_i0, s_1]"),
    ):
        assert old_text in text
        text = text.replace(old_text, new_text)
    test = loads(text).test
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is ordered


def test_a_counter_that_is_too_large_to_number_iterations_leaves_it_open() -> None:
    """The test itself is well-formed."""
    text = dumps(Entry(litmus("loop 2 free { X=1; Y=1 }")))
    for line, old, new in ((OUTER_START, 0, 10_000_000), (OUTER_LIMIT, 2, 10_000_002)):
        assert line % old in text
        text = text.replace(line % old, line % new)
    test = loads(text).test
    assert allowed_outcomes(test, RFC).complete
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is None


BLOCKS: dict[str, bool | None] = {
    "r0=Q?; X=1; Y=1": None,
    "r0=Q?; call { X=1; Y=1 }": None,
    "call { r0=Q?; X=1; Y=1 }": None,
    "X=1; r0=Q?; Y=1": None,
    "call { X=1; r0=Q?; Y=1 }": None,
    "X=1; Y=1 || r0=Q?": True,
    "call { X=1; Y=1 } || r0=Q?": True,
    "Y=1; r0=Q? || X=1": False,
}


@pytest.mark.parametrize("text", list(BLOCKS))
def test_nodes_that_a_block_keeps_from_being_done_leave_it_open(text: str) -> None:
    """In bodies and outside."""
    test = litmus(text, queues={"Q": 1})
    assert is_ordered(test, on(test, "X"), on(test, "Y")) is BLOCKS[text]


@pytest.mark.parametrize("text", ["r0=Q?; Y=1", "call { r0=Q?; Y=1 }", "Q!1; Q!2; Y=1"])
def test_what_waits_for_an_op_that_blocks_is_ordered_after_it(text: str) -> None:
    test = litmus(text, queues={"Q": 1})
    for node in test.nodes:
        if node.resources == ("Q",):
            assert is_ordered(test, node.name, on(test, "Y")) is True


def test_what_lies_inside_a_node_is_ordered_after_it() -> None:
    test = litmus("lock M; call { X=1 }; unlock M || r0=Y")
    section, call = (
        next(n.name for n in test.nodes if n.op == op) for op in ("CriticalSection", "Call")
    )
    for around in (section, call):
        assert is_ordered(test, around, on(test, "X")) is True


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


FAMILIES = (calls, conditionals, fetches, loops, runs, queues, uninitialized)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_agrees_with_all_orders_of_the_reference(family: Any) -> None:
    answered: Counter[bool] = Counter()
    for seed in range(20):
        test = replace(family.generate(random.Random(seed), EVERYTHING), clusters=())
        for pair, ordered in in_all_orders(test).items():
            if ordered is not None:
                assert is_ordered(test, *pair) is ordered, (seed, pair)
                answered[ordered] += 1
    assert min(answered[True], answered[False]) > 5


def test_it_agrees_with_all_orders_where_some_block() -> None:
    answered: Counter[bool] = Counter()
    for text in (
        *BLOCKS,
        "X=1; Q!1; Y=1 || r0=Q?; Z=1 || r1=Q?; W=1",
        "X=1; r0=Q?; Y=1 || r1=Q?; Z=1 || Q!1",
        "loop 2 { X=1; r0=Q?; Y=1 } || Q!1",
        "call { r0=Q?; X=1; Y=1 } || r1=Q?; Z=1 || Q!1",
    ):
        test = litmus(text, queues={"Q": 1})
        for pair, ordered in in_all_orders(test).items():
            if ordered is not None:
                assert is_ordered(test, *pair) is ordered, (text, pair)
                answered[ordered] += 1
    assert min(answered[True], answered[False]) > 10


def test_it_agrees_with_all_orders_where_some_fail() -> None:
    answered: Counter[bool] = Counter()
    for text in ("X=1; Y=1 || Z=1 || r0=Z", "X=1; Z=1 || r0=Z; Y=1", "call { X=1; r0=Z } || Z=1"):
        test = unset(litmus(text), "Z")
        for pair, ordered in in_all_orders(test).items():
            assert is_ordered(test, *pair) is ordered, (text, pair)
            answered[ordered is False] += 1
    assert min(answered[True], answered[False]) > 3


def in_all_orders(test: LitmusTest) -> dict[tuple[str, str], bool | None]:
    """The pairs of nodes of each graph, and whether some run orders them; none if too large.

    None if that is open: an order fails, or blocks before it has done the earlier one.
    """
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
    only_later: set[tuple[str, tuple[str, str]]] = set()
    found = list(islice(orders_of(test, RFC), MOST_ORDERS + 1))
    if len(found) > MOST_ORDERS:
        return {}
    statuses = {outcome.status for outcome, _ in found}
    most: Counter[str] = Counter()  # events of an instance that is done, by node
    for _, order in found:
        for (name, *_), count in Counter((e.node.name, e.run, e.frame) for e in order).items():
            most[name] = max(most[name], count)
    for outcome, order in found:
        if outcome.status is Status.FAILED:
            continue
        spans: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
        events = Counter((event.node.name, event.run, event.frame) for event in order)
        for place, event in enumerate(order):
            of_node = spans.setdefault(event.node.name, {})
            start, _ = of_node.get((event.run, event.frame), (place, place))
            of_node[event.run, event.frame] = start, place
        for pair in pairs:
            both = inside[pair[0]] & inside[pair[1]]
            for (run, frame), (start, _) in spans.get(pair[0], {}).items():
                for (other, its), (_, end) in spans.get(pair[1], {}).items():
                    done = events[pair[1], other, its] == most[pair[1]]
                    same = run == other and iterations(frame, both) == iterations(its, both)
                    if done and same:
                        there.add((run, pair))
                        if end < start:
                            free.add((run, pair))
            if outcome.status is Status.BLOCKED:
                begun = {run for run, _ in spans.get(pair[0], {})}
                only_later |= {(r, pair) for r, _ in spans.get(pair[1], {}) if r not in begun}

    named = {event.run for _, order in found for event in order}

    def in_run(run: str, pair: tuple[str, str]) -> bool | None:
        if (run, pair) in free:
            return False
        if (run, pair) in only_later or Status.FAILED in statuses:
            return None
        return True if (run, pair) in there else None if Status.BLOCKED in statuses else False

    answers: dict[tuple[str, str], bool | None] = {}
    for pair in pairs:
        # Events name their run where there are several.
        names = [
            run.name if run.name in named else "" for run in test.runs if does(test, run, pair)
        ]
        of_runs = {in_run(name, pair) for name in names}
        answers[pair] = True if True in of_runs else None if None in of_runs else False
    return answers


def does(test: LitmusTest, run: Run, pair: tuple[str, str]) -> bool:
    """True if the graph of a run has both nodes."""
    return {node.name for node in all_nodes(test.graph_of(run).nodes)}.issuperset(pair)


def iterations(frame: str, loops: set[str]) -> list[str]:
    """The iterations of these loops in a frame."""
    return [each for each in frame.split("/") if each.partition("[")[0] in loops]
