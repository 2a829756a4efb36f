"""A test under other names or in another order equals one made of the same parts."""

from __future__ import annotations

import random

import pytest
from helpers import LITMUS, check_as_if_made_anew, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    FEATURES,
    Accumulator,
    Cluster,
    Graph,
    LitmusTest,
    MalformedTest,
    Naming,
    Node,
    Reordering,
    Run,
    topological_order,
)
from litmusfuzz.corpus.struct import replace


def permuted_among(rng: random.Random, names: list[str]) -> dict[str, str]:
    return dict(zip(names, rng.sample(names, len(names)), strict=True))


def test_each_litmus_test_can_be_renamed_and_reordered() -> None:
    seen: set[str] = set()
    tests = [corpus_entry(path).test for path in LITMUS]
    floats = litmus("X=1; r0=Y || Y+=1; r1=X", dtype="float32")
    variables = tuple(replace(each, gradient=True) for each in floats.variables)
    tests.append(replace(floats, variables=variables))
    for number, test in enumerate(tests):
        seen |= test.features
        rng = random.Random(number)
        inner = [name for node in test.nodes for name in (node.name, *node.arguments)]
        naming = Naming(
            nodes=permuted_among(rng, inner),
            results={name: f"out{place}" for place, name in enumerate(test.types) if "." in name},
            resources=permuted_among(rng, [each.name for each in test.resources]),
            graphs=permuted_among(rng, [graph.name for graph in test.graphs]),
            runs={run.name: f"run{place}" for place, run in enumerate(test.runs)},
            clusters=permuted_among(rng, [each.name for each in test.clusters]),
        )
        again = test.renamed(naming)
        check_as_if_made_anew(again)
        assert [node.op for node in again.nodes] == [node.op for node in test.nodes]
        mixed = again.reordered(Reordering({name: rng.random() for name in again.types}))
        check_as_if_made_anew(mixed)
        assert sorted(node.name for node in mixed.nodes) == sorted(n.name for n in again.nodes)
        assert mixed.names == again.names
    assert seen == FEATURES


def test_names_back_and_forth_are_the_same_test() -> None:
    test = litmus("r0 = X; if r0 == 1 { loop 2 { r1 = Y; X += 1 } } else { X = 3 } || Y = 2")
    inner = [name for node in test.nodes for name in (node.name, *node.arguments)]
    there = {name: f"n{place}" for place, name in enumerate(inner)}
    again = test.renamed(Naming(nodes=there, resources={"X": "Y", "Y": "X"}))
    assert {node.name for node in again.nodes}.isdisjoint(node.name for node in test.nodes)
    back = {new: old for old, new in there.items()}
    assert again.renamed(Naming(nodes=back, resources={"X": "Y", "Y": "X"})) == test


SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
ONE, OTHER, *_ = [node.name for node in SB.nodes]
TWO_RUNS = LitmusTest(
    "two",
    (),
    (
        Graph("g", (Node("n", "ResourceAccumulatorNumAccumulated", resources=("A",)),)),
        Graph("h", ()),
    ),
    ("A.n",),
    client=(Run("A", "g"), Run("B", "h")),
    accumulators=(Accumulator("B", "float32", ()), Accumulator("A", "float32", ())),
)
CLUSTERED = replace(SB, clusters=(Cluster("k", (ONE,)),))


@pytest.mark.parametrize(
    ("test", "naming", "message"),
    [
        (SB, Naming(nodes={ONE: OTHER}), "would both be"),
        (SB, Naming(nodes={ONE: "X"}), "would both be"),
        (SB, Naming(resources={"X": "Y"}), "would both be"),
        (SB, Naming(nodes={ONE: "9"}), "a name is a letter"),
        (SB, Naming(nodes={ONE: f"{OTHER}.y"}), "a name is a letter"),
        (SB, Naming(resources={"X": "a b"}), "a name is a letter"),
        (SB, Naming(graphs={SB.graph.name: ""}), "a name is a letter"),
        (TWO_RUNS, Naming(graphs={"g": "h"}), "would both be"),
        (TWO_RUNS, Naming(runs={"A": "B"}), "would both be"),
        (TWO_RUNS, Naming(nodes={"n": "count"}), "is a node and an accumulator's"),
        (CLUSTERED, Naming(clusters={"k": OTHER}), "would both be"),
        (CLUSTERED, Naming(clusters={"k": "k.k"}), "a name is a letter"),
        (CLUSTERED, Naming(nodes={OTHER: "k"}), "would both be"),
    ],
)
def test_names_that_no_test_may_have(test: LitmusTest, naming: Naming, message: str) -> None:
    with pytest.raises(MalformedTest, match=message):
        test.renamed(naming)


def test_results_of_a_body_have_names_of_their_own() -> None:
    tests = (corpus_entry(path).test for path in LITMUS)
    test, node = next(
        (test, node)
        for test in tests
        for node in test.nodes
        if len(node.results) > 1 and node.op != "While"
    )
    one, other, *_ = (f"{node.name}.{result}" for result in node.results)
    again = test.renamed(Naming(results={one: "out"}))
    assert again.types[f"{node.name}.out"] == test.types[one]
    assert again.types[other] == test.types[other]
    with pytest.raises(MalformedTest, match="a name is a letter"):
        test.renamed(Naming(results={one: "a.b"}))
    with pytest.raises(MalformedTest, match="would both be"):
        test.renamed(Naming(results={one: "out", other: "out"}))


def test_an_order_that_would_be_a_cycle() -> None:
    rank = dict.fromkeys(SB.types, 0.0)
    below = {node.name: [SB.graph.nodes[-1].name] for node in SB.graph.nodes}
    with pytest.raises(ValueError, match="a cycle among"):
        SB.reordered(Reordering(rank, below))
    with pytest.raises(ValueError, match=r"a cycle among a, b$"):
        topological_order({"a": ["b"], "b": ["a"], "c": []}, {"a": 0, "b": 1, "c": 2})


def test_nodes_stand_below_the_nodes_that_must_be_above() -> None:
    test = litmus("X=1 || Y=2 || r0=X")
    names = [node.name for node in test.graph.nodes]
    for seed in range(40):
        rng = random.Random(seed)
        rank = {name: rng.random() for name in test.types}
        below = {name: names[:place] for place, name in enumerate(names)}
        assert test.reordered(Reordering(rank, below)) == test


def test_a_test_may_have_another_title() -> None:
    assert SB.titled("other", "what it is") == replace(SB, name="other", description="what it is")
    assert SB.titled(description="new").name == SB.name
    check_as_if_made_anew(SB.titled("other"))
    for name, description in (("a b", ""), ("ok", "\x07")):
        with pytest.raises(MalformedTest, match=r"not a test's name|control characters"):
            SB.titled(name, description)
