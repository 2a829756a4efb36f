"""SSA conversion: BLOG's listings, and the same as executing the members in order."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from helpers import LITMUS, corpus_entry, for_each
from helpers_ssa import PreparedFunction, evaluate, random_state, results_of

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster, Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.passes.listing import listing, serialized
from litmusfuzz.fuzz.passes.ssa import Function, WriteBack, convert
from litmusfuzz.oracles.errors import ValueTooLarge
from litmusfuzz.oracles.events import Access, unfold
from litmusfuzz.oracles.model import RFC

CLUSTERED = [test for path in LITMUS if (test := corpus_entry(path).test).clusters]


def only(test: LitmusTest) -> Function:
    """The function of the only cluster."""
    (cluster,) = test.clusters
    return convert(test, cluster)


def pure_part(function: Function) -> list[str]:
    """The middle part of its listing, without comments."""
    part = listing(function).split("// Pure computation:\n")[1].split("\n\n")[0]
    return [line.split("  //")[0].rstrip() for line in part.splitlines()]


# --- BLOG --------------------------------------------------------------------------------


@pytest.fixture
def blog() -> LitmusTest:
    """BLOG's worked example, all of it as one cluster, serialized as there."""
    test = corpus_entry(Path(corpus.__file__).parent / "litmus" / "blog-worked-example.yaml").test
    members = ("R0", "answer", "W0", "R1", "one", "Add", "W1", "W2")
    return replace(test, clusters=(Cluster("k", members),))


def test_blog_worked_example_in_serialized_order(blog: LitmusTest) -> None:
    assert (
        serialized(blog, blog.clusters[0])
        == """\
v0 = Var('v0')
v1 = Var('v1')
R0 = Read(v0)
Assign(v0, 42)
R1 = Read(v0)
Add = R1 + 1
Assign(v0, Add)
Assign(v1, R0)
"""
    )


def test_blog_worked_example_in_ssa_form(blog: LitmusTest) -> None:
    assert (
        listing(only(blog))
        == """\
// Initial reads:
v0 = Var('v0')
v1 = Var('v1')
v0_ssa_0 = Read(v0)

// Pure computation:
R0 = v0_ssa_0   // Was: R0 = Read(v0)
v0_ssa_1 = 42   // Was: Assign(v0, 42)
R1 = v0_ssa_1   // Was: R1 = Read(v0)
Add = R1 + 1    // Was: Add = R1 + 1
v0_ssa_2 = Add  // Was: Assign(v0, Add)
v1_ssa_0 = R0   // Was: Assign(v1, R0)

// Final writes:
Assign(v0, v0_ssa_2)
Assign(v1, v1_ssa_0)
"""
    )


def test_the_problem_of_blog_reads_the_contents_before_its_write() -> None:
    """BLOG, "The Problem": X=6 and a read of Y in one cluster."""
    function = only(litmus("cluster { X=6; r0=Y } || Y=8; X=7"))
    assert function.initial == ("Y",)
    assert function.outputs == ("r0",)
    assert function.finals == (WriteBack("X", "X_ssa_0", None),)
    assert pure_part(function) == ["X_ssa_0 = c6_0", "r0 = Y_ssa_0"]


# --- shapes ------------------------------------------------------------------------------


def test_a_write_in_one_branch_gets_a_flag() -> None:
    function = only(litmus("r0=X; cluster { if r0==1 { Y=2; Z=5 } else { Z=6 } }"))
    assert function.initial == ()
    assert function.finals == (
        WriteBack("Y", "Y_ssa_2", "Y_written_0"),
        WriteBack("Z", "Z_ssa_2", None),
    )
    assert pure_part(function) == [
        "t0 = r0 == c1_0",
        "if0.done, Y_ssa_2, Y_written_0, Z_ssa_2 = If(t0):",
        "  then:",
        "    Y_ssa_0 = 2",
        "    Z_ssa_0 = 5",
        "    if0_done0 = 0",
        "    return if0_done0, Y_ssa_0, 1, Z_ssa_0",
        "  else:",
        "    Z_ssa_1 = 6",
        "    if0_done1 = 0",
        "    return if0_done1, 0, 0, Z_ssa_1",
    ]


def test_a_write_before_a_branch_needs_no_flag() -> None:
    function = only(litmus("r0=X; cluster { Y=1; if r0==1 { Y+=2 } else { } }"))
    assert function.finals == (WriteBack("Y", "Y_ssa_3", None),)


def test_a_loop_carries_the_contents_that_its_body_writes() -> None:
    function = only(litmus("cluster { loop 3 { X+=1 }; r1=X }"))
    assert function.initial == ("X",)
    assert pure_part(function) == [
        "loop0.loop0_i0, X_ssa_4, X_written_2 = While(c0_0, X_ssa_0, 0):",
        "  while (loop0_i0, X_ssa_1, X_written_0):",
        "    t0 = loop0_i0 < c3_0",
        "    return t0, X_ssa_1, X_written_0",
        "  do (loop0_i0, X_ssa_2, X_written_1):",
        "    X_ssa_3 = X_ssa_2 + 1",
        "    loop0_next0 = loop0_i0 + 1",
        "    return loop0_next0, X_ssa_3, 1",
        "r1 = X_ssa_4",
    ]
    assert function.finals == (WriteBack("X", "X_ssa_4", "X_written_2"),)


def test_a_loop_without_iterations_writes_nothing_and_reads_for_its_condition() -> None:
    function = only(litmus("cluster { loop 0 { X+=1; Y=2 }; Z=1 }"))
    assert function.initial == ("X",)
    assert [each.variable for each in function.finals] == ["Z"]


def test_an_inner_loop_without_iterations_writes_nothing() -> None:
    function = only(litmus("cluster { loop 2 { loop 0 { X+=1 }; Y=1 } }"))
    assert function.initial == ("X",)
    assert [each.variable for each in function.finals] == ["Y"]


def test_outputs_are_used_elsewhere_or_observed() -> None:
    test = litmus("cluster { r0=X; r1=r0+1; r2=r1+2 } || Y=1")
    assert only(test).outputs == ("r0", "r1", "r2")
    assert only(replace(test, observe=("r2",))).outputs == ("r2",)
    use = Node("use", "AssignVariableOp", ("r1",), ("Y",))
    used = replace(test, observe=(), graphs=(Graph("main", (*test.graph.nodes, use)),))
    assert only(used).outputs == ("r1",)


def test_an_update_of_two_variables_has_two_results() -> None:
    test = next(t for t in generated() if has_op(t, "ResourceApplyKerasMomentum"))
    found = [
        statement
        for cluster in test.clusters
        for statement in convert(test, cluster).block.statements
        if statement.node.op == "ResourceApplyKerasMomentum"
    ]
    for statement in found:
        assert len(statement.operands) == 5
        assert len(statement.results) == 2


def test_names_of_the_test_that_look_like_ssa_names_are_kept() -> None:
    read = Node("x_ssa_0", "ReadVariableOp", resources=("x",))
    test = LitmusTest(
        "name",
        (Variable("x", "int32", ()),),
        (Graph("main", (read,)),),
        observe=("x_ssa_0",),
        clusters=(Cluster("k", ("x_ssa_0",)),),
    )
    function = only(test)
    assert function.block.parameters == ("x_ssa_1",)
    assert function.outputs == ("x_ssa_0",)


# --- random clusters ---------------------------------------------------------------------


@cache
def generated() -> tuple[LitmusTest, ...]:
    return tuple(generate("clusters", 5, index) for index in range(600))


def has_op(test: LitmusTest, op: str) -> bool:
    members = {name for cluster in test.clusters for name in cluster.members}
    return any(n.op == op for g in test.graphs for n in g.nodes if n.name in members)


def check_as_executed(rng: random.Random, test: LitmusTest) -> tuple[int, int]:
    """How many clusters were compared, and how many left a variable alone."""
    compared = unwritten = 0
    for cluster in test.clusters:
        function = convert(test, cluster)
        memory, arguments = random_state(rng, test, function)
        try:
            played = PreparedFunction(test, memory, arguments).cluster(cluster)
        except ValueTooLarge:
            continue
        given = [memory[name] for name in function.initial]
        names = zip(function.block.parameters, (*given, *arguments.values()), strict=True)
        wanted = results_of(function, played)
        got = evaluate(test, function.block, dict(names))
        unwritten += () in wanted
        assert [g if w else () for g, w in zip(got, wanted, strict=True)] == wanted, cluster
        assert played.written <= {each.variable for each in function.finals}
        compared += 1
    return compared, unwritten


def test_random_clusters_equal_their_members_in_order() -> None:
    rng = random.Random(1)
    counts = [check_as_executed(rng, test) for test in generated()]
    assert sum(compared for compared, _ in counts) > 500
    assert sum(unwritten for _, unwritten in counts) > 20


@for_each("test", CLUSTERED)
def test_clusters_of_the_corpus_equal_their_members_in_order(test: LitmusTest) -> None:
    rng = random.Random(2)
    for _ in range(20):
        check_as_executed(rng, test)


def test_reads_and_writes_are_those_of_the_oracle() -> None:
    """The oracle's snapshots and write-backs, which are made without this module."""
    seen = 0
    for test in (*CLUSTERED, *generated()[:200]):
        events = unfold(test, RFC).events
        functions = {cluster.name: convert(test, cluster) for cluster in test.clusters}
        for event in events:
            function = functions.get(event.node.name)
            if event.access is Access.SNAPSHOT:
                assert function is not None
                assert event.variables == function.initial
            elif event.access is Access.WRITE_BACK:
                assert function is not None
                assert event.variables == tuple(each.variable for each in function.finals)
                seen += 1
    assert seen > 150
