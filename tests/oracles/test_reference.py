"""The reference oracle against sets that were written by hand."""

from __future__ import annotations

import pytest
from helpers import LITMUS, allowed_values, corpus_entry, for_each, is_small
from helpers_orders import count_orders, events_before
from hypothesis import given, settings

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles.arithmetic import ValueTooLarge
from litmusfuzz.oracles.events import Access, unfold
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC, Axiom, Model
from litmusfuzz.oracles.reference import allowed_outcomes

TOO_MANY_ORDERS = {"keras-average"}
"""Tests with over ten million total orders: the other oracles compare their sets."""


@for_each("path", LITMUS, every=3)
def test_every_corpus_test_has_exactly_its_allowed_set(path) -> None:
    """One outcome more or less in any shape fails here.

    The sets in the files come from the literature and from an enumeration that
    shares no code with ours.
    """
    entry = corpus_entry(path)
    for name, model in MODELS.items():
        expected = entry.allowed.get(name, entry.allowed["rfc"])
        if path.stem in TOO_MANY_ORDERS:
            found = allowed_outcomes(entry.test, model, 10_000)
            assert not found.complete
            assert set(found.witnesses) <= expected
            continue
        found = allowed_outcomes(entry.test, model)
        assert found.complete
        if isinstance(expected, Digest):
            assert expected.matches(found.witnesses)
        else:
            assert set(found.witnesses) == expected


def test_the_corpus_has_the_documented_shapes() -> None:
    names = {path.stem for path in LITMUS}
    seeds = {"rfc-simplest", "rfc-update", "rfc-load-store"}
    seeds |= {"blog-worked-example", "blog-problem", "devices-neuron-step"}
    classic = {"SB", "MP", "LB", "R", "S", "2+2W", "IRIW", "WRC", "RWC", "ISA2", "3.SB"}
    classic |= {f"Z6.{i}" for i in range(6)} | {"CoRR", "CoWW", "CoRW1", "CoRW2", "CoWR"}
    assert seeds | classic <= names


def test_rfc_if_r0_is_2_then_r1_is_1() -> None:
    """RFC, "Simplest Non-Trivial Example"."""
    test = litmus("X=1; Y=2 || r0=Y; r1=X")
    assert allowed_values(test, RFC, "r0", "r1") == {(0, 0), (0, 1), (2, 1)}


def test_rfc_two_increments_leave_1_or_2_and_always_2_under_executor() -> None:
    """RFC, "Resource Update Operations"."""
    test = litmus("X+=1 || X+=1")
    assert allowed_values(test, RFC) == {(1,), (2,)}
    assert allowed_values(test, EXECUTOR) == {(2,)}


def test_rfc_if_x_is_1_then_r0_is_5() -> None:
    """RFC, "Load/Store Reordering"."""
    test = litmus("X=1; r0=Y || Y=5; X=2")
    assert allowed_values(test, RFC, "X", "r0") == {(1, 5), (2, 0), (2, 5)}


def test_blog_if_v0_is_6_then_r0_is_8() -> None:
    """BLOG, "The Problem"."""
    entry = corpus_entry(next(path for path in LITMUS if path.stem == "blog-problem"))
    assert allowed_values(entry.test, RFC, "v0", "r0") == {(6, 8), (7, 0), (7, 8)}


def test_iriw_allows_fifteen_of_sixteen() -> None:
    test = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")
    seen = allowed_values(test, RFC, "r0", "r1", "r2", "r3")
    everything = {(a, b, c, d) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)}
    assert everything - seen == {(1, 0, 1, 0)}
    assert allowed_outcomes(test, RFC).orders == 180


def test_a_sparse_update_is_split_even_under_executor() -> None:
    """semantics.md, 3: only dense updates are indivisible there."""
    test = litmus("X[0]+=1 || X[0]+=1", shape=(1,))
    assert allowed_values(test, EXECUTOR) == {(1,), (2,)}


def test_an_update_of_rows_writes_the_whole_tensor() -> None:
    """semantics.md, 3: "what its R saw, changed": an unnamed row can come back."""
    test = litmus("X[0]+=1 || X=5", shape=(2,))
    values = allowed_values(test, RFC)
    assert values == {((1, 0),), ((6, 5),), ((5, 5),)}


def test_momentum_reads_both_then_writes_both_in_any_order() -> None:
    """semantics.md, 2: R(v1) R(v2) then W(v1) W(v2), in any order within each group."""
    entry = corpus_entry(next(path for path in LITMUS if path.stem == "momentum-against-momentum"))
    node = entry.test.graph.effects[0]
    order = unfold(entry.test, RFC)
    mine = [i for i, e in enumerate(order.events) if e.node == node]
    kinds = [order.events[i].access for i in mine]
    assert kinds == [Access.READ, Access.READ, Access.WRITE, Access.WRITE]
    read_a, read_b, write_a, write_b = mine
    before = events_before(order)
    assert not before[read_b] & {read_a}
    assert not before[write_b] & {write_a}
    assert {read_a, read_b} <= before[write_a] & before[write_b]
    (whole,) = [e for e in unfold(entry.test, EXECUTOR).events if e.node == node]
    assert whole.access is Access.UPDATE
    assert whole.variables == node.resources


@pytest.mark.parametrize(
    ("axiom", "text", "wanted"),
    [
        # SB's (0, 0): only the order from store to load forbids it.
        (Axiom.DEPENDENCIES, "X=1; r0=Y || Y=1; r1=X", {"r0": 0, "r1": 0}),
        # An increment alone: only "reads before it writes" forbids that it is lost.
        (Axiom.DENSE_UPDATES_INDIVISIBLE, "X+=1 || X+=1", {"X": 1}),
    ],
)
def test_each_axiom_alone_forbids_something(axiom: Axiom, text: str, wanted) -> None:
    test = litmus(text)

    def allows(model: Model) -> bool:
        return any(
            all(o.plain[name] == value for name, value in wanted.items())
            for o in allowed_outcomes(test, model).witnesses
        )

    assert not allows(EXECUTOR)
    assert allows(replace(EXECUTOR, axioms=EXECUTOR.axioms - {axiom}))


@given(resource_graphs().filter(is_small))
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_every_witness_is_a_legal_order_that_yields_its_outcome(test) -> None:
    """And `executor` allows nothing that `rfc` does not (semantics.md, 3)."""
    loose = allowed_outcomes(test, RFC)
    strict = allowed_outcomes(test, EXECUTOR)
    assert set(strict.witnesses) <= set(loose.witnesses)
    order = unfold(test, RFC)
    assert loose.orders == count_orders(order, 1 << 30)
    for witness in loose.witnesses.values():
        positions = {order.events.index(event): i for i, event in enumerate(witness)}
        assert sorted(positions) == list(range(len(order.events)))
        for event, above in enumerate(events_before(order)):
            assert all(positions[other] < positions[event] for other in above)


@given(resource_graphs().filter(is_small))
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_an_implied_edge_changes_nothing(test) -> None:
    """An edge from an effect to one that already waits for it."""
    from litmusfuzz.corpus.model import Graph, predecessors

    before = {node.name: above for node, above in predecessors(test.graph)}
    effects = {n.name for n in test.graph.effects}
    nodes = tuple(
        replace(n, after=tuple(sorted({*n.after, *(before[n.name] & effects)})))
        for n in test.graph.nodes
    )
    same = replace(test, graphs=(Graph(test.graph.name, nodes),))
    assert set(allowed_outcomes(same, RFC).witnesses) == set(allowed_outcomes(test, RFC).witnesses)


def test_over_budget_an_unseen_outcome_is_unknown_and_a_torn_one_still_forbidden() -> None:
    test = litmus("X=1 || X=2 || r0=X; r1=X")
    allowed = allowed_outcomes(test, RFC, budget_orders=1)
    assert not allowed.complete
    assert allowed.orders == 1
    (seen,) = allowed.witnesses
    assert allowed.judge(seen) is Verdict.ALLOWED
    other = Outcome.of(test, {"r0": (2,), "r1": (1,), "X": (1,)})
    assert allowed.judge(other) is Verdict.UNKNOWN
    torn = Outcome.of(test, {"r0": TORN, "r1": (1,), "X": (2,)})
    assert allowed.judge(torn) is Verdict.FORBIDDEN
    assert allowed_outcomes(test, RFC).judge(other) is Verdict.ALLOWED


def test_the_budget_is_exact() -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X")  # six total orders
    assert allowed_outcomes(test, RFC, budget_orders=6).complete
    assert not allowed_outcomes(test, RFC, budget_orders=5).complete


def test_a_value_of_2_to_24_is_refused_wherever_it_appears() -> None:
    test = litmus("X=16777215; X+=1")
    with pytest.raises(ValueTooLarge, match=r"w1 .*16777216"):
        allowed_outcomes(test, RFC)
    assert allowed_values(litmus("X=16777214; X+=1"), RFC) == {(16777215,)}


def test_a_long_chain_needs_no_deep_recursion() -> None:
    """2,000 ops one after another: a valid test, and one total order."""
    text = "; ".join(f"X={i % 7}" for i in range(1000))
    pure = "r0=X" + "".join(f"; r{i}=r{i - 1}+0" for i in range(1, 900))
    assert allowed_outcomes(litmus(text), RFC).orders == 1
    assert allowed_outcomes(litmus(pure), RFC).orders == 1
