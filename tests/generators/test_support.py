"""Support: what a test has beyond it, and generators that stay within it."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, families_for, generate
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.fuzz.support import EVERYTHING, Support

FEW = frozenset({"Const", "ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp"})
SUPPORTS = {
    "scalars": Support.scalars(),
    "four ops on scalars": Support.scalars(FEW),
    "integers": Support(dtypes=frozenset({"int32", "int64"})),
    "float64": Support(dtypes=frozenset({"float64"})),
    "vectors": Support(rank_max=1),
    "at most 16 elements": Support(elements_max=16),
    "no arithmetic": Support(ops=frozenset(OPS) - {"AddV2", "Sub", "Mul", "MatMul", "Neg"}),
    "no matrices": Support(ops=frozenset(OPS) - {"MatMul"}),
    "no queues of several": Support(
        ops=frozenset(OPS) - {"QueueEnqueueManyV2", "QueueDequeueManyV2", "QueueSizeV2"}
    ),
    "no loops": Support(features=FEATURES - {"loops"}),
    "no conditionals": Support(features=FEATURES - {"conditionals", "clusters"}),
    "no critical sections": Support(features=FEATURES - {"critical sections"}),
    "one run": Support(features=FEATURES - {"several runs"}),
}
UNCLUSTERED = Support(features=FEATURES - {"clusters"}, elements_max=1000)
UNCLUSTERED_FAMILIES = tuple(each for each in FAMILIES if each not in ("clusters", "lookups"))
"""A lookup has values of any number of elements."""


@pytest.mark.parametrize("name", SUPPORTS)
def test_every_test_lies_within_the_support(name: str) -> None:
    support = SUPPORTS[name]
    for family in families_for(support):
        tests = [generate(family, 5, index, support) for index in range(8)]
        assert [support.lacking(test) for test in tests] == [()] * 8, family
        assert all(test.effects for test in tests), family
        assert len(set(tests)) >= 7, family
        assert tests[6:] == [generate(family, 5, index, support) for index in range(6, 8)], family


def test_families_fit_what_they_are_about() -> None:
    assert families_for(EVERYTHING) == tuple(FAMILIES)
    assert families_for(UNCLUSTERED) == UNCLUSTERED_FAMILIES
    assert families_for(SUPPORTS["four ops on scalars"]) == (
        *("dag", "clusterable", "cycles", "mutations", "dense"),
    )
    assert "sparse" not in families_for(SUPPORTS["scalars"])
    assert "mixed" not in families_for(SUPPORTS["no loops"])
    assert families_for(Support(ops=frozenset({"Const", "NoOp"}))) == ()


@pytest.mark.parametrize("family", UNCLUSTERED_FAMILIES)
def test_the_usual_test_is_generated_wherever_it_lies_within(family: str) -> None:
    """So different executors see the same graphs, and TensorFlow those of every version."""
    usual = [generate(family, 2, index) for index in range(60)]
    within = [index for index, test in enumerate(usual) if not UNCLUSTERED.lacking(test)]
    assert len(within) >= 20
    assert [generate(family, 2, i, UNCLUSTERED) for i in within] == [usual[i] for i in within]


def test_what_cannot_be_generated_is_said_in_one_line() -> None:
    with pytest.raises(NotGenerated, match=r"^family loops: the support lacks loops$"):
        generate("loops", 1, 0, Support(features=frozenset()))
    with pytest.raises(ValueError, match=r"^family loops generates no test .*: it lacks loops$"):
        resource_graphs("loops", Support(features=frozenset()))
    with pytest.raises(ValueError, match="no family 'dog'; there are dag, sections,"):
        resource_graphs("dog")


def test_what_is_lacking_is_named() -> None:
    test = litmus("X=1; r0=Y || lock M; Y=2; unlock M")
    rows = litmus("X=1; r0=X", shape=(2, 3), dtype="float32")
    assert EVERYTHING.lacking(test) == ()
    assert Support.scalars().lacking(test) == ("critical sections",)
    assert Support(ops=FEW).lacking(test) == ("CriticalSection",)
    assert Support(dtypes=frozenset({"int64"})).lacking(rows) == ("float32",)
    assert Support.scalars().lacking(rows) == ("rank 2",)
    assert Support(rank_max=1, elements_max=5).lacking(rows) == ("rank 2", "6 elements")
    assert Support(rank_max=2, elements_max=6).lacking(rows) == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ops": {"Foo"}}, "Support.ops: there is no 'Foo'"),
        ({"dtypes": {"bfloat16"}}, "Support.dtypes: there is no 'bfloat16'"),
        ({"features": {"gates"}}, "Support.features: there is no 'gates'"),
        ({"dtypes": ()}, "Support.dtypes: names no dtype"),
        ({"rank_max": -1}, "Support.rank_max must be 0 at least"),
        ({"elements_max": 0}, "Support.elements_max must be 1 at least"),
    ],
)
def test_a_support_that_names_what_there_is_not_is_refused(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Support(**wrong)
