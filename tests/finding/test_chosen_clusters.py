"""Clusters that an executor chose: as clusters of the test, and judged, with every feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.campaign import cluster_validation
from litmusfuzz.fuzz.campaign.cluster_validation import NOT_VALIDATED, judge_clusters
from litmusfuzz.fuzz.executors.protocol import ChosenClusters
from litmusfuzz.fuzz.finding.chosen_clusters import (
    NO_CLUSTER,
    SEVERAL_BODIES,
    NotDescribed,
    with_chosen,
)
from litmusfuzz.oracles.axiomatic import Axiomatic
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Budget, Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def chosen(*clusters: tuple[str, ...], lost: tuple[tuple[str, str], ...] = ()) -> ChosenClusters:
    return ChosenClusters(clusters, lost)


def in_notation(text: str, **resources: Any) -> tuple[LitmusTest, ChosenClusters]:
    """A test, and the clusters that its notation marks."""
    test = litmus(text, **resources)
    clusters = ChosenClusters(tuple(each.members for each in test.clusters))
    return replace(test, clusters=()), clusters


def with_writes(test: LitmusTest, *variables: str) -> tuple[LitmusTest, ChosenClusters]:
    """One cluster of the writes of some variables, and of the constants that they write."""
    writes = [n for n in test.effects if n.resources[0] in variables and n.inputs]
    constants = {node.name for node in test.nodes if node.op == "Const"}
    inputs = dict.fromkeys(name for node in writes for name in node.inputs if name in constants)
    return test, chosen((*inputs, *(node.name for node in writes)))


def finding(name: str) -> LitmusTest:
    path = LITMUS[0].parents[1] / "findings" / f"{name}.yaml"
    return replace(corpus_entry(path).test, clusters=())


MOST_ORDERS = 2_000
SB, OTHER = "cluster { X=1; r0=Y }", "Y=1; r1=X"
"""The chains of SB; together in one cluster, the read may come before the write."""
CASES = {
    "a write, then a read": in_notation(f"{SB} || {OTHER}"),
    "two of them": in_notation("cluster { X=1; r0=Y } || cluster { Y=1; r1=X }"),
    "an update, then a read": in_notation("cluster { X+=1; r0=Y } || Y=1; r1=X"),
    "inside a section": in_notation(f"lock M; {SB}; unlock M || {OTHER}"),
    "in one of two sections": in_notation(f"lock M; {SB}; unlock M || lock N; {OTHER}; unlock N"),
    "in a loop": in_notation(f"loop 2 {{ {SB}; Z+=r0 }} || {OTHER}"),
    "in a branch": in_notation(f"r2=Z; if r2==0 {{ {SB}; Z=r0 }} || {OTHER}"),
    "in a branch of a loop": in_notation(
        f"loop 1 {{ r2=Z; if r2==0 {{ {SB}; Z=r0 }} }} || {OTHER}"
    ),
    "before an enqueue": in_notation(f"{SB}; Q!1 || {OTHER}", queues={"Q": 1}),
    "after a dequeue": in_notation(f"r2=Q?; {SB} || Q!1; {OTHER}", queues={"Q": 1}),
    "in one of two graphs": in_notation(f"{SB} ||| {OTHER}"),
    "in one of two runs of a graph": in_notation(f"{SB} || {OTHER}", client="a:main; b:main"),
    # The first write waits for an element that nobody puts, although nothing orders it so.
    "what blocks and what does not": with_writes(
        litmus("X=1 || r0=Q?; Y=2", queues={"Q": 1}), "X", "Y"
    ),
    "members of two sections on one mutex": (
        finding("cluster-spans-two-sections"),
        chosen(("c0", "r0", "w0", "w1")),
    ),
    "writes of two sections": with_writes(
        litmus(
            "lock M; X=1; unlock M || lock N; Y=2; unlock N"
            " || lock N; r0=Z; lock M; Z=3; unlock M; unlock N"
        ),
        "X",
        "Y",
    ),
}


@for_each("name", list(CASES))
def test_hand_made_unsound_clusters_are_refused(name: str) -> None:
    """With a witness: an outcome that only the clusters allow, and an order that gives it."""
    found = judge_clusters(*CASES[name], DEFAULT_BUDGET)
    assert found.verdict == "unsound"
    assert found.added is not None
    added, order = found.reason
    assert added == f"the clusters add {found.added}"
    assert order.startswith("in the order ")
    plain = replace(found.test, clusters=())
    assert Explorer(found.test, RFC).judge(found.added) is Verdict.ALLOWED
    assert Explorer(plain, RFC).judge(found.added) is Verdict.FORBIDDEN
    with_clusters, without = (
        allowed_outcomes(each, RFC, MOST_ORDERS) for each in (found.test, plain)
    )
    if with_clusters.complete and without.complete:
        assert found.added in set(with_clusters.witnesses) - set(without.witnesses)


@for_each("name", list(CASES))
def test_each_member_alone_is_sound(name: str) -> None:
    """So that it is the clusters that are refused, and not the test."""
    test, clusters = CASES[name]
    alone = chosen(*((member,) for each in clusters.clusters for member in each))
    assert judge_clusters(test, alone, DEFAULT_BUDGET).verdict == "sound"


@pytest.mark.parametrize("name", [name for name in CASES if "two sections" in name])
def test_the_oracles_agree_on_clusters_across_sections(name: str) -> None:
    found = judge_clusters(*CASES[name], DEFAULT_BUDGET).test
    expected = allowed_outcomes(found, RFC)
    explored = Explorer(found, RFC).allowed_outcomes()
    assert explored.complete
    assert set(explored.witnesses) == set(expected.witnesses)
    axiomatic = Axiomatic(found, RFC)
    plain = allowed_outcomes(replace(found, clusters=()), RFC)
    for outcome in {**expected.witnesses, **plain.witnesses}:
        assert axiomatic.judge(outcome) is expected.judge(outcome)


def test_a_lost_order_is_unsound_whatever_the_clusters_are() -> None:
    test = litmus("X=1; Y=1 || r0=Y; r1=X")
    found = judge_clusters(test, chosen(("c1_0", "w0"), lost=(("w0", "w1"),)), DEFAULT_BUDGET)
    assert (found.verdict, found.added) == ("unsound", None)
    assert found.reason == ("the clustered graph no longer has w0 before w1",)
    assert found.lost
    # Even where the semantics says nothing of the clusters.
    odd = chosen(("w0", "r0"), ("w1", "r1"), lost=(("w0", "w1"),))
    assert judge_clusters(test, odd, DEFAULT_BUDGET).verdict == "unsound"


@pytest.mark.parametrize(("taken", "verdict"), [(0, "sound"), (1, "unsound")])
def test_what_a_branch_uses_that_is_not_taken_is_no_lost_order(taken: int, verdict: str) -> None:
    """A campaign called that unsound: Grappler drops a branch whose predicate is a constant."""
    test = loads(CONSTANT_BRANCH.replace("PREDICATE", str(taken)), "branch").test
    found = judge_clusters(test, chosen(lost=(("q0", "w0"),)), DEFAULT_BUDGET)
    assert (found.verdict, bool(found.lost)) == (verdict, taken == 1)


@pytest.mark.parametrize(
    ("text", "given", "verdict"),
    [
        ("r0=Z; if r0==1 { r1=X; r2=Y; W=r2 } || Z=2", {}, "sound"),
        ("r0=Z; if r0==1 { r1=X; r2=Y; W=r2 } || Z=1", {}, "unsound"),
        ("r0=Q?; if r0==1 { X=1; Y=1 }", {"queues": {"Q": 1}}, "unknown"),
        ("r0=Q?; X=1; Y=1", {"queues": {"Q": 1}}, "unknown"),
        ("call { X=1; Y=1 }", {}, "unsound"),
        ("loop 2 { X=1; Y=1 }", {}, "unsound"),
        ("X=1; Y=1", {"client": "a:main; b:main"}, "unsound"),
    ],
)
def test_a_lost_order_in_a_body_or_in_several_runs_counts_where_both_nodes_are_reached(
    text: str, given: dict[str, Any], verdict: str
) -> None:
    """A campaign called clusters unsound for two reads in a branch that is never taken."""
    test = litmus(text, **given)
    first, second = (n.name for name in "XY" for n in test.nodes if n.resources == (name,))
    pair = (first, second)
    found = judge_clusters(test, chosen(lost=(pair,)), DEFAULT_BUDGET)
    assert found.verdict == verdict
    assert found.lost == ((pair,) if verdict == "unsound" else ())
    assert found.undecided == ((pair,) if verdict == "unknown" else ())


def test_the_pairs_that_may_be_lost_share_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    states = []

    def asked(test: LitmusTest, earlier: str, later: str, budget: Budget) -> bool:
        states.append(budget.states)
        return True

    monkeypatch.setattr(cluster_validation, "is_ordered", asked)
    test = litmus("X=1; Y=1 || r0=Y; r1=X")
    pairs = (("w0", "w1"), ("r0", "r1"))
    assert judge_clusters(test, chosen(lost=pairs), Budget(states=1000)).lost == pairs
    assert states == [500, 500]


CONSTANT_BRANCH = """
litmusfuzz: 2
name: constant-branch
variables: {X: {dtype: int32, shape: [], init: 0}}
queues: {Q: {dtype: int32, shape: [], capacity: 1, init: []}}
graphs:
  main:
    c0: {op: Const, dtype: bool, shape: [], value: PREDICATE}
    q0: {op: QueueDequeueV2, resources: [Q]}
    branch0:
      op: If
      inputs: [c0]
      captures: {a0: q0}
      results: [y0]
      then: {results: [a0]}
      else: {nodes: {c1: {op: Const, dtype: int32, shape: [], value: 1}}, results: [c1]}
    w0: {op: AssignVariableOp, resources: [X], inputs: [branch0.y0]}
"""


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
