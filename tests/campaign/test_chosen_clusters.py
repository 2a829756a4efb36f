"""Clusters that an executor chose: as clusters of the test, and judged, with every feature."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers import corpus_entry, for_each, is_small

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import LitmusTest
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign.chosen_clusters import (
    NO_CLUSTER,
    SEVERAL_BODIES,
    NotDescribed,
    with_chosen,
)
from litmusfuzz.fuzz.campaign.cluster_validation import NOT_VALIDATED, judge_clusters
from litmusfuzz.fuzz.executors.protocol import ChosenClusters
from litmusfuzz.oracles.axiomatic import AxiomaticOracle
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

SPANS_TWO_SECTIONS = "cluster-spans-two-sections"


def chosen(*clusters: tuple[str, ...], lost: tuple[tuple[str, str], ...] = ()) -> ChosenClusters:
    return ChosenClusters(clusters, lost)


def in_notation(text: str, **resources: object) -> tuple[LitmusTest, ChosenClusters]:
    """A test, and the clusters that its notation marks."""
    test = litmus(text, **resources)
    clusters = ChosenClusters(tuple(each.members for each in test.clusters))
    return replace(test, clusters=()), clusters


def finding(name: str) -> LitmusTest:
    folder = next(iter(corpus.__path__))
    return corpus_entry_of(f"{folder}/findings/{name}.yaml")


def corpus_entry_of(path: str) -> LitmusTest:
    from pathlib import Path

    return corpus_entry(Path(path)).test


OTHER = "Y=1; r1=X"
"""The other chain of SB: beside a cluster that writes X, then reads Y."""
SB = "cluster { X=1; r0=Y }"
UNSOUND = {
    "a write, then a read": in_notation(f"{SB} || {OTHER}"),
    "two of them": in_notation("cluster { X=1; r0=Y } || cluster { Y=1; r1=X }"),
    "an update, then a read": in_notation("cluster { X+=1; r0=Y } || Y=1; r1=X"),
    "inside a section": in_notation(f"lock M; {SB}; unlock M || {OTHER}"),
    "in one of two sections": in_notation(f"lock M; {SB}; unlock M || lock N; {OTHER}; unlock N"),
    "in a loop": in_notation(f"loop 2 {{ {SB} }} || {OTHER}"),
    "in a branch": in_notation(f"r2=Z; if r2==0 {{ {SB} }} || {OTHER}"),
    "in a branch of a loop": in_notation(f"loop 1 {{ r2=Z; if r2==0 {{ {SB} }} }} || {OTHER}"),
    "before an enqueue": in_notation(f"{SB}; Q!1 || {OTHER}", queues={"Q": 1}),
    "after a dequeue": in_notation(f"r2=Q?; {SB} || Q!1; {OTHER}", queues={"Q": 1}),
    "in one of two graphs": in_notation(f"{SB} ||| {OTHER}"),
    "in one of two runs of a graph": in_notation(SB + " || Y=1; r1=X", client="a:g0; b:g0"),
    # A write before a dequeue that nothing feeds never happens if it waits with what follows.
    "what blocks and what does not": (
        litmus("X=1 || r0=Q?; Y=r0", queues={"Q": 1}),
        chosen(("c0", "w0", "w1")),
    ),
    "both sides of a message": (
        litmus("Q!1; r0=P? || r1=Q?; X=r1; P!1", queues={"P": 1, "Q": 1}),
        chosen(),
    ),
    "members of two sections on one mutex": (finding(SPANS_TWO_SECTIONS), chosen()),
    "members of two sections": (
        litmus(
            "lock M; X=1; unlock M || lock N; Y=1; unlock N || lock N; lock M; Z=1; unlock M; unlock N"
        ),
        chosen(),
    ),
}


def _with_all_writes(test: LitmusTest, *writes: str) -> ChosenClusters:
    """One cluster of some writes and of the constants that they write."""
    nodes = {node.name: node for graph in test.graphs for node in graph.nodes}
    constants = dict.fromkeys(s for name in writes for s in nodes[name].inputs)
    return chosen((*constants, *writes))


def _cases() -> dict[str, tuple[LitmusTest, ChosenClusters]]:
    cases = dict(UNSOUND)
    del cases["both sides of a message"]
    test, _ = cases["members of two sections on one mutex"]
    cases["members of two sections on one mutex"] = test, chosen(("c0", "r0", "w0", "w1"))
    test, _ = cases["members of two sections"]
    first, second = (n.name for n in test.effects if n.resources[0] in ("X", "Y"))
    cases["members of two sections"] = test, _with_all_writes(test, first, second)
    test, _ = cases["what blocks and what does not"]
    names = {n.resources[0]: n.name for n in test.effects if n.op == "AssignVariableOp"}
    inputs = next(n.inputs for n in test.nodes if n.name == names["X"])
    cases["what blocks and what does not"] = test, chosen((*inputs, names["X"], names["Y"]))
    return cases


CASES = _cases()


@for_each("name", list(CASES))
def test_hand_made_unsound_clusters_are_refused(name: str) -> None:
    """With a witness: an outcome that only the clusters allow, and the order that gives it."""
    test, clusters = CASES[name]
    found = judge_clusters(test, clusters, DEFAULT_BUDGET)
    assert found.verdict == "unsound", found
    assert found.added is not None
    added, order = found.reason
    assert added == f"the clusters add {found.added}"
    assert order.startswith("in the order ")
    original, clustered = (
        set(allowed_outcomes(each, RFC).witnesses)
        for each in (replace(found.test, clusters=()), found.test)
        if is_small(found.test)
    ) or (set(), {found.added})
    assert found.added in clustered - original


@for_each("name", list(CASES))
def test_each_member_alone_is_sound(name: str) -> None:
    """So that it is the clusters that are refused, and not the test."""
    test, clusters = CASES[name]
    alone = chosen(*((member,) for each in clusters.clusters for member in each))
    assert judge_clusters(test, alone, DEFAULT_BUDGET).verdict == "sound"


@pytest.mark.parametrize("name", [n for n in CASES if "two sections" in n])
def test_the_oracles_agree_on_clusters_across_sections(name: str) -> None:
    found = judge_clusters(*CASES[name], DEFAULT_BUDGET).test
    expected = set(allowed_outcomes(found, RFC).witnesses)
    explored = Explorer(found, RFC).allowed_outcomes()
    assert explored.complete
    assert set(explored.witnesses) == expected
    axiomatic = AxiomaticOracle(found, RFC).allowed_outcomes()
    assert not axiomatic.complete or set(axiomatic.witnesses) == expected


def test_a_lost_order_is_unsound_whatever_the_clusters_are() -> None:
    test = litmus("X=1; Y=1 || r0=Y; r1=X")
    found = judge_clusters(test, chosen(("c0", "w0"), lost=(("w0", "w1"),)), DEFAULT_BUDGET)
    assert (found.verdict, found.added) == ("unsound", None)
    assert found.reason == ("the clustered graph no longer has w0 before w1",)
    assert found.lost
    # Even where the semantics says nothing of the clusters.
    odd = chosen(("w0", "r0"), ("w1", "r1"), lost=(("w0", "w1"),))
    assert judge_clusters(test, odd, DEFAULT_BUDGET).verdict == "unsound"


def test_what_the_semantics_does_not_describe_is_not_validated_with_a_reason() -> None:
    """The reason has no names, so that it can be counted; the message has them."""
    loop = litmus("loop 1 { X=1 } || Y=1")
    inside, outside = (n.name for n in loop.nodes if n.op == "AssignVariableOp")
    with pytest.raises(NotDescribed, match=f"^{SEVERAL_BODIES}: {inside}, {outside}$"):
        with_chosen(loop, chosen((inside, outside)))
    found = judge_clusters(loop, chosen((inside, outside)), DEFAULT_BUDGET)
    assert found.verdict == f"{NOT_VALIDATED}: {SEVERAL_BODIES}"
    crossed = litmus("r0=X; Y=r0 || r1=Y; X=r1")
    cycle = chosen(("r0", "w1"), ("r1", "w0"))
    names = {node.name for node in crossed.nodes}
    assert names >= {"r0", "r1", "w0", "w1"}
    with pytest.raises(NotDescribed, match=f"^{NO_CLUSTER}: .*cycle"):
        with_chosen(crossed, cycle)
    unread = ChosenClusters((), (), "the graph is not known")
    assert judge_clusters(crossed, unread, DEFAULT_BUDGET).verdict == (
        f"{NOT_VALIDATED}: the graph is not known"
    )


CONSTANT = """\
litmusfuzz: 2
name: one-constant
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X]}
    one: {op: Const, dtype: int32, shape: [], value: 1, after: [r]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [one]}
    w1: {op: AssignVariableOp, resources: [Y], inputs: [one]}
"""


def test_a_constant_is_cloned_where_its_cluster_would_wait_for_itself() -> None:
    """TensorFlow clones constants: `one` waits for r, in whose cluster a clone of it is."""
    test = loads(CONSTANT).test
    clustered = with_chosen(test, chosen(("r", "w0"), ("w1",)))
    assert [each.members for each in clustered.clusters] == [("r", "one_2", "w0"), ("one_3", "w1")]
    for plain in (test, replace(clustered, clusters=())):
        assert {str(o) for o in allowed_outcomes(plain, RFC).witnesses} == {"X=1 Y=1"}
    assert judge_clusters(test, chosen(("r", "w0"), ("w1",)), DEFAULT_BUDGET).verdict == "sound"


TRANSFER = """\
litmusfuzz: 2
name: transfer
variables:
  X: {dtype: int32, shape: [], init: 0, device: 'cpu:0'}
  Y: {dtype: int32, shape: [], init: 0, device: 'cpu:1'}
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X], device: 'cpu:0'}
    s: {op: Send, inputs: [r], device: 'cpu:0'}
    v: {op: Recv, inputs: [s], device: 'cpu:1'}
    w: {op: AssignVariableOp, resources: [Y], inputs: [v], device: 'cpu:1'}
"""


def test_a_transfer_that_was_compiled_is_transparent() -> None:
    test = loads(TRANSFER).test
    found = judge_clusters(test, chosen(("r", "s"), ("v", "w")), DEFAULT_BUDGET)
    assert found.verdict == "sound"
    assert [node.op for node in found.test.nodes] == [
        *("ReadVariableOp", "Identity", "Identity", "AssignVariableOp")
    ]
