"""The clusterer: joined nodes, the rule that refuses each pair, SSA order, regions."""

from __future__ import annotations

import random

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster, LitmusTest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.passes.clustering import (
    Clustering,
    Refusal,
    RegionRefused,
    Rule,
    cluster,
    refusals,
    ssa_order,
    violations,
)
from litmusfuzz.oracles.translation import Soundness, validate

PAIRS = [path for path in LITMUS if path.stem.startswith("pair-")]


def members(test: LitmusTest) -> list[set[str]]:
    """Of each cluster, without constants (equal ones are one node)."""
    return [{name for name in c.members if name[0] != "c"} for c in test.clusters]


def written(text: str) -> LitmusTest:
    """A test in the file's format, less its first lines."""
    variables = "".join(f"  {n}: {{dtype: int32, shape: [], init: 0}}\n" for n in "XYZ")
    return loads(f"litmusfuzz: 2\nname: t\nvariables:\n{variables}{text}").test


def test_chains_are_joined_along_edges_and_not_to_each_other() -> None:
    assert members(cluster(litmus("X=1; Y=2 || r0=Y; r1=X"))) == [{"w0", "w1"}, {"r0", "r1"}]


def test_the_problem_of_blog_is_refused() -> None:
    test = litmus("X=6; r0=Y || Y=8; X=7")
    assert members(cluster(test)) == [{"w0"}, {"w1", "w2"}]
    assert refusals(test) == [Refusal("w0", "r0", Rule.UNSAFE_PAIR)]
    assert str(refusals(test)[0]) == "w0 and r0: unsafe pair"


def test_sizes() -> None:
    test = litmus("X=1; Y=1; Z=1; X=2; Y=2")
    assert max(len(c.members) for c in cluster(test, Clustering(most=3)).clusters) == 3
    assert len(cluster(test).clusters) == 1
    assert cluster(test, Clustering(least=8)).clusters == ()
    assert len(cluster(test, Clustering(least=7)).clusters) == 1
    assert Rule.SIZE in {each.rule for each in refusals(test, Clustering(most=3))}


def test_a_cluster_of_one_node_contains_a_compilable_node() -> None:
    test = litmus("X=1; Q!1 || r0=Y", queues={"Q": 1})
    found = {each.members for each in cluster(test, Clustering(least=1, most=1)).clusters}
    # The constant waits for nothing, the enqueue for capacity: w1 is in no cluster.
    assert found == {("c1_0",), ("w0",), ("r0",)}


def test_the_same_graph_gives_the_same_clusters() -> None:
    test = litmus("r0=X; Y=r0; Z=1 || r1=Z; X=2; Y+=1")
    assert cluster(test) == cluster(test)
    generated = {cluster(test, Clustering(most=3), random.Random(seed)) for seed in range(20)}
    assert len(generated) > 1
    again = {cluster(test, Clustering(most=3), random.Random(seed)) for seed in range(20)}
    assert generated == again


def test_names_of_clusters_are_unique() -> None:
    test = litmus("c0=X; Y=1")
    assert [each.name for each in cluster(test).clusters] == ["c1"]


def test_a_path_through_an_op_that_cannot_be_compiled_is_a_cycle() -> None:
    """A path leads from the write through the QueueSize, which must not be in a cluster."""
    test = litmus("X=1; r0=size Q; Y=1", queues={"Q": 1})
    (node,) = (n for n in test.graph.nodes if n.name == "w1")
    both = replace(node, after=(*node.after, "w0"))
    nodes = tuple(both if n is node else n for n in test.graph.nodes)
    test = replace(test, graphs=(replace(test.graph, nodes=nodes),))
    assert refusals(test) == [Refusal("w0", "w1", Rule.CYCLE)]
    assert members(cluster(test)) == [{"w0"}]  # with its constant


def test_a_cycle_through_another_cluster_is_seen() -> None:
    """Both joined: each would wait for the other. Without either, no path is there."""
    test = written("""
graphs:
  main:
    a: {op: ReadVariableOp, resources: [X]}
    b: {op: ReadVariableOp, resources: [Y]}
    c: {op: AssignVariableOp, resources: [X], inputs: [b], after: [b]}
    d: {op: AssignVariableOp, resources: [Y], inputs: [a], after: [a]}
clusters:
  k0: [a, c]
""")
    plain = replace(test, clusters=())
    with pytest.raises(RegionRefused, match=r"region b, d: b and d: cycle"):
        cluster(plain, Clustering(regions=(("a", "c"), ("b", "d"))))
    found = cluster(plain, Clustering(regions=(("a", "c"),))).clusters
    assert [each.members for each in found] == [("a", "c")]


@pytest.mark.parametrize(
    "name", ["fetches-transitive", "uninitialized-ordered", "uninitialized-stays"]
)
def test_where_a_run_fetches_or_a_variable_has_no_value_nothing_is_clustered(name: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    assert cluster(test, Clustering(least=1)) == test
    node = next(node.name for node in test.graphs[0].nodes if node.op == "AssignVariableOp")
    with pytest.raises(RegionRefused, match=f"region {node}: {node}: not compilable"):
        cluster(test, Clustering(regions=((node,),)))


def test_an_op_that_may_fail_is_in_no_cluster() -> None:
    test = written("""
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X]}
    s: {op: ReadVariableOp, resources: [Y]}
    d: {op: FloorDiv, inputs: [r, s]}
    n: {op: Neg, inputs: [r]}
    w: {op: AssignVariableOp, resources: [Z], inputs: [n]}
""")
    assert test.failing == {"d"}
    assert members(cluster(test)) == [{"r", "n", "w"}]


def test_a_cluster_has_one_device() -> None:
    test = litmus("X=1; Y=1; Z=1")
    here = {"X": "cpu:0", "Y": "cpu:0", "Z": "cpu:1"}
    test = replace(test, variables=tuple(replace(v, device=here[v.name]) for v in test.variables))
    assert members(cluster(test)) == [{"w0", "w1"}]
    assert {(r.first, r.second, r.rule) for r in refusals(test)} == {
        ("w0", "w2", Rule.DEVICE),
        ("w1", "w2", Rule.DEVICE),
    }


def test_a_section_is_a_boundary_and_clusters_lie_inside() -> None:
    test = litmus("X=1; lock M; Y=1; Z=1; unlock M; X=2")
    assert members(cluster(test)) == [{"w0"}, {"w1", "w2"}]
    # Of the first and the last the section itself lies between.
    rules = {(each.first, each.second): each.rule for each in refusals(test)}
    assert rules[("w0", "w1")] is Rule.SECTION
    assert rules[("w0", "w3")] is Rule.DIFFERENT_WAITS
    assert ("w1", "w2") not in rules


def test_bodies_are_levels_of_their_own() -> None:
    test = litmus("loop 2 { X=1; Y=1 }; Z=1")
    found = [set(each.members) for each in cluster(test).clusters]
    assert any({"w0", "w1"} <= each and "w2" not in each for each in found)
    rules = {frozenset((each.first, each.second)): each.rule for each in refusals(test)}
    assert rules[frozenset(("w0", "w2"))] is Rule.FRAME
    assert frozenset(("w0", "w1")) not in rules


def test_a_loop_without_resource_ops_is_a_member_whole() -> None:
    test = litmus("r0=X; loop 2 { r0=r0+1 }; Y=1")
    (loop,) = (n for n in test.graph.nodes if n.op == "While")
    assert any({"r0", loop.name, "w0"} <= set(c.members) for c in cluster(test).clusters)


def test_ssa_order_puts_reads_first() -> None:
    """B reads what A writes, and nothing orders them: then it sees the snapshot, as C does."""
    test = written("""
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    a: {op: AssignVariableOp, resources: [X], inputs: [one]}
    b: {op: ReadVariableOp, resources: [X]}
    c: {op: ReadVariableOp, resources: [Y], after: [b]}
    up: {op: AssignVariableOp, resources: [Y], inputs: [one]}
    look: {op: ReadVariableOp, resources: [X], after: [up]}
observe: [b, c, look]
""")
    assert ssa_order(test.graph.nodes, ["c", "a", "b"]) == ("b", "c", "a")
    late = replace(test, clusters=(Cluster("k", ("a", "b", "c")),))
    assert validate(late).verdict is Soundness.UNSOUND
    assert violations(late) == [
        Refusal("a", "b", Rule.READS_FIRST),
        Refusal("a", "c", Rule.READS_FIRST),
    ]
    early = replace(test, clusters=(Cluster("k", ("b", "c", "a")),))
    assert validate(early).verdict is Soundness.SOUND
    assert violations(early) == []


@pytest.mark.parametrize(
    ("region", "rule"),
    [
        (("w0", "r0"), Rule.UNSAFE_PAIR),
        (("w0", "w2"), Rule.CYCLE),
        (("w0", "r1"), Rule.NOT_COMPILABLE),
        (("w0", "r2"), Rule.FRAME),
        (("w1", "w2", "w3"), Rule.SIZE),
    ],
)
def test_a_region_is_refused_by_the_rule(region: tuple[str, ...], rule: Rule) -> None:
    test = litmus("X=1; r0=Y; Y=1; X=2; Y=3 || r1=Q? ||| r2=X", queues={"Q": 1})
    with pytest.raises(RegionRefused) as caught:
        cluster(test, Clustering(regions=(region,), most=2))
    assert caught.value.refusal.rule is rule


def test_a_region_is_one_cluster_with_nothing_added() -> None:
    test = litmus("X=1; Y=1; Z=1 || r0=X; r1=Y")
    found = cluster(test, Clustering(regions=(("w0", "r0"),))).clusters
    assert ("r0", "w0") in {each.members for each in found}
    alone = cluster(test, Clustering(regions=(("w1",),))).clusters
    assert any(each.members == ("w1",) for each in alone)
    with pytest.raises(ValueError, match="no node 'nobody'"):
        cluster(test, Clustering(regions=(("nobody",),)))


@pytest.mark.parametrize("regions", [((),), (("a", "b"), ("b",)), (("a", "a"),)])
def test_regions_are_disjoint_and_hold_something(regions: tuple[tuple[str, ...], ...]) -> None:
    with pytest.raises(ValueError, match="regions: "):
        Clustering(regions=regions)


# --- blocking ops -------------------------------------------------------------------------

LEAVES_EARLY = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    loop:
      op: While
      inputs: [zero, zero]
      carried: [i, v]
      condition:
        nodes:
          limit: {op: Const, dtype: int32, shape: [], value: 1}
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          step: {op: Const, dtype: int32, shape: [], value: 1}
          next: {op: AddV2, inputs: [i, step]}
          got: {op: QueueDequeueV2, resources: [Q]}
        results: [next, got]
    seen: {op: AssignVariableOp, resources: [Z], inputs: [one], after: [loop.i]}
    early: {op: AssignVariableOp, resources: [X], inputs: [one], after: [loop.i]}
    late: {op: AssignVariableOp, resources: [Y], inputs: [loop.v], after: [early]}
"""
"""Nothing feeds the queue: the counter leaves the loop, what is taken does not."""

CARRIED = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    loop:
      op: While
      inputs: [zero, zero]
      carried: [i, v]
      condition:
        nodes:
          limit: {op: Const, dtype: int32, shape: [], value: 2}
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          step: {op: Const, dtype: int32, shape: [], value: 1}
          product: {op: AddV2, inputs: [i, step]}
          got: {op: QueueDequeueV2, resources: [Q]}
          seen: {op: AssignVariableOp, resources: [Z], inputs: [product]}
          early: {op: AssignVariableOp, resources: [X], inputs: [product]}
          next: {op: AddV2, inputs: [i, step], after: [early]}
          late: {op: AssignVariableOp, resources: [Y], inputs: [v], after: [early]}
        results: [next, got]
"""
"""The second iteration begins without what the first did not get."""

TAKEN = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    flag: {op: Const, dtype: bool, shape: [], value: 1}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    got: {op: QueueDequeueV2, resources: [Q]}
    pick:
      op: If
      inputs: [flag]
      captures: {here: one, never: got}
      results: [o]
      then:
        nodes:
          seen: {op: AssignVariableOp, resources: [Z], inputs: [here]}
          early: {op: AssignVariableOp, resources: [X], inputs: [here]}
          late: {op: AssignVariableOp, resources: [Y], inputs: [never], after: [early]}
        results: [here]
      else:
        nodes: {}
        results: [here]
"""
"""Of what the branch takes from outside, one never comes."""

RELEASED = """
mutexes:
  M: {}
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    quick: {op: AssignVariableOp, resources: [Z], inputs: [one]}
    got: {op: QueueDequeueV2, resources: [Q]}
    sec: {op: CriticalSection, resources: [M], members: [quick, got]}
    early: {op: AssignVariableOp, resources: [X], inputs: [one], after: [quick]}
    late: {op: AssignVariableOp, resources: [Y], inputs: [one], after: [early, sec]}
"""
"""A member of the section is done, the section as a whole is not."""

PURE = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    early: {op: Const, dtype: int32, shape: [], value: 1}
    got: {op: QueueDequeueV2, resources: [Q]}
    late: {op: AddV2, inputs: [early, got]}
    w: {op: AssignVariableOp, resources: [X], inputs: [early]}
"""
"""A pure member waits as well, and what needs its value waits with it."""


@pytest.mark.parametrize("text", [LEAVES_EARLY, CARRIED, TAKEN, RELEASED, PURE])
def test_nodes_with_different_blocking_inputs_are_kept_apart(text: str) -> None:
    """In one cluster the blocked node would block the other: unsound, hence refused."""
    test = written(text)
    assert validate(replace(test, clusters=(Cluster("k", ("early", "late")),))).verdict is (
        Soundness.UNSOUND
    )
    with pytest.raises(RegionRefused) as caught:
        cluster(test, Clustering(regions=(("early", "late"),)))
    assert caught.value.refusal.rule is Rule.DIFFERENT_WAITS


PURE_LOOP = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    got: {op: QueueDequeueV2, resources: [Q]}
    early:
      op: While
      inputs: [zero, got]
      carried: [i, v]
      condition:
        nodes:
          limit: {op: Const, dtype: int32, shape: [], value: 1}
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          step: {op: Const, dtype: int32, shape: [], value: 1}
          next: {op: AddV2, inputs: [i, step]}
        results: [next, v]
    seen: {op: AssignVariableOp, resources: [Z], inputs: [one], after: [early.i]}
    late: {op: AssignVariableOp, resources: [X], inputs: [one], after: [early]}
"""
"""The counter could leave the loop, were it not in a cluster with what waits for all of it."""

PURE_BRANCH = """
queues:
  Q: {dtype: int32, shape: [], capacity: 1}
graphs:
  main:
    flag: {op: Const, dtype: bool, shape: [], value: 1}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    got: {op: QueueDequeueV2, resources: [Q]}
    early:
      op: If
      inputs: [flag]
      captures: {a: one, b: got}
      results: [i, v]
      then:
        nodes: {}
        results: [a, b]
      else:
        nodes: {}
        results: [a, b]
    seen: {op: AssignVariableOp, resources: [Z], inputs: [one], after: [early.i]}
    late: {op: AssignVariableOp, resources: [X], inputs: [one], after: [early]}
"""


@pytest.mark.parametrize("text", [PURE_LOOP, PURE_BRANCH])
def test_a_pure_loop_may_be_made_to_wait(text: str) -> None:
    """An executor may be stricter with it all the time (semantics.md, 3): nothing is added."""
    test = written(text)
    found = cluster(test, Clustering(regions=(("early", "late"),)))
    assert validate(found).verdict is Soundness.SOUND


def test_nodes_with_equal_blocking_inputs_may_share_a_cluster() -> None:
    test = litmus("r0=Q?; X=r0; Y=r0", queues={"Q": 1})
    assert {"w0", "w1"} in members(cluster(test))
    assert validate(cluster(test)).verdict is Soundness.SOUND


def test_without_blocking_ops_all_nodes_have_equal_waits() -> None:
    test = litmus("r0=X; loop 2 { r0=r0+1 }; Y=r0 || X=1")
    assert not any(each.rule is Rule.DIFFERENT_WAITS for each in refusals(test))


# --- the twelve refused pairs --------------------------------------------------------------


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_each_refused_pair_adds_an_outcome(path) -> None:
    """For each kind of refused pair, clustering adds an outcome."""
    test = corpus_entry(path).test
    found = validate(test)
    assert found.verdict is Soundness.UNSOUND
    assert found.added in corpus_entry(path).allowed["rfc"]
    plain = replace(test, clusters=())
    # On the way there is one more pair, with an op on a third variable.
    wanted = [Refusal("a", "b", Rule.UNSAFE_PAIR)]
    if path.stem.endswith("third"):
        wanted.append(Refusal("mid", "b", Rule.UNSAFE_PAIR))
    assert refusals(plain) == wanted
    assert violations(test) == wanted
    assert validate(cluster(plain)).verdict is Soundness.SOUND


def test_there_are_twelve_pairs() -> None:
    kinds = ("write-read", "write-update", "update-read", "update-update")
    ways = ("direct", "pure", "third")
    assert {path.stem for path in PAIRS} == {f"pair-{k}-{w}" for k in kinds for w in ways}


@pytest.mark.parametrize("path", [p for p in PAIRS if "third" in p.stem], ids=lambda p: p.stem)
def test_the_first_and_the_last_node_make_the_cluster_unsound(path) -> None:
    """Each of them with the op between is unsafe by the rules at most, but not in this company."""
    test = corpus_entry(path).test
    for parts in (("a", "mid"), ("mid", "b")):
        smaller = replace(test, clusters=(Cluster("k0", parts),))
        assert validate(smaller).verdict is Soundness.SOUND
