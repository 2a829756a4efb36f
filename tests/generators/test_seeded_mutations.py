"""Mutations of seeds: skeletons of programs, and any other tests that a campaign is given."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Run, Variable
from litmusfuzz.corpus.ops import PureAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError, dumps
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators.dag import MAX_ORDERS
from litmusfuzz.fuzz.generators.seeds import Seeds, window
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.bounds import count_all, has_small_values

TF = executor_class("tf").support


def wide(variables: int) -> LitmusTest:
    """Two training steps of a model with that many weights: all are read, then all are written."""
    names = [f"v{n}" for n in range(variables)]

    def step(side: int) -> Graph:
        reads = [Node(f"r{side}_{n}", "ReadVariableOp", (), (n,)) for n in names]
        nodes = [*reads]
        for label, name in enumerate(names):
            attrs = PureAttrs((("label", label), ("salt", 0)))
            inputs = tuple(node.name for node in reads)
            nodes.append(Node(f"t{side}_{name}", "Opaque", inputs, attrs=attrs))
            write = "AssignVariableOp"
            nodes.append(
                Node(f"w{side}_{name}", write, (f"t{side}_{name}",), (name,), (f"r{side}_{name}",))
            )
        return Graph(f"g{side}", tuple(nodes))

    return LitmusTest(
        "wide",
        tuple(Variable(name, "int32", (), 7 + n) for n, name in enumerate(names)),
        (step(0), step(1)),
        tuple(f"run{side}.r{side}_{name}" for side in (0, 1) for name in names),
        client=(Run("run0", "g0"), Run("run1", "g1")),
    )


def seeds(**tests: LitmusTest) -> Seeds:
    """Seeds by name."""
    made = Seeds.of({name: dumps(Entry(test)) for name, test in tests.items()})
    assert made is not None
    return made


SEEDS = seeds(wide=wide(6), MP=litmus("X=1; Y=2 || r0=Y; r1=X"))


def test_every_second_test_is_of_a_seed_and_small_and_supported() -> None:
    parents: Counter[str] = Counter()
    for index in range(80):
        test = generate("mutations", 3, index, TF, SEEDS)
        parent = test.description.split()[2].removesuffix(":")
        parents[parent if parent.startswith("seeds/") else "corpus"] += 1
        assert not TF.lacking(test), test.description
        if parent.startswith("seeds/"):
            assert "Opaque" not in {node.op for node in test.nodes}
            assert count_all(test, MAX_ORDERS) < MAX_ORDERS
            assert has_small_values(test)
    # 40 of 80 expected, and 20 of each seed; beyond this with a probability below 1e-6.
    assert 17 < parents["corpus"] < 63
    assert parents["seeds/wide"] > 2
    assert parents["seeds/MP"] > 2


def test_other_families_and_campaigns_without_seeds_are_as_before() -> None:
    for family in ("dag", "cycles"):
        assert generate(family, 3, 5, TF, SEEDS) == generate(family, 3, 5, TF)
    assert FAMILIES["mutations"].test("3/mutations/5", TF) == generate("mutations", 3, 5, TF)
    assert Seeds.of({}) is None


def test_the_same_seeds_give_the_same_test_whatever_was_generated_before() -> None:
    first = [generate("mutations", 4, index, TF, SEEDS) for index in range(12)]
    again = Seeds(SEEDS.texts)
    generate("mutations", 5, 0, EVERYTHING, again)
    assert [generate("mutations", 4, index, TF, again) for index in range(12)] == first
    # Another process makes them from their texts.
    assert pickle.loads(pickle.dumps(SEEDS)).tests == SEEDS.tests  # noqa: S301 - our own


def test_a_window_has_few_accesses_keeps_their_order_and_races() -> None:
    """And both steps, mostly: a part of one alone is the test of one thread."""
    parent, both = wide(12), 0
    for number in range(60):
        size = 3 + number % 10
        test = window(random.Random(number), parent, size)
        assert 2 <= len(test.effects) <= size
        both += all(graph.nodes for graph in test.graphs) and len(test.graphs) == 2
        for graph in test.graphs:
            order = [node.name for node in graph.nodes if node.resources]
            assert order == [n.name for n in parent.nodes if n.name in order]
        reads = {node.name for node in test.nodes if node.op == "ReadVariableOp"}
        assert all({*node.inputs} <= reads for node in test.nodes if node.op == "Opaque")
    assert both > 45
    small = litmus("X=1; r0=Y")
    assert window(random.Random(0), small, 3) is small


def test_dtypes_that_an_executor_lacks_are_replaced() -> None:
    floats = replace(TF, dtypes=frozenset({"float32"}))
    made = [generate("mutations", 6, index, floats, SEEDS) for index in range(40)]
    seeded = [test for test in made if "seeds/" in test.description]
    assert len(seeded) > 5
    for test in seeded:
        assert {variable.dtype for variable in test.variables} == {"float32"}


def test_an_executor_that_lacks_a_seed_does_without_it() -> None:
    scalars = Support.scalars({"ReadVariableOp", "AssignVariableOp", "Const"})
    given = seeds(wide=wide(3), MP=litmus("X=1; Y=2 || r0=Y; r1=X"))
    assert {*given.supported(scalars)} == {"MP"}


def test_what_is_no_litmus_test_is_no_seed() -> None:
    with pytest.raises(FileError, match=r"^broken:"):
        Seeds.of({"broken": "name: 3"})
