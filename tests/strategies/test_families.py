"""Generators: repeatable, well-formed, alike in kinds, and never too large."""

from __future__ import annotations

from collections import Counter
from statistics import median

import pytest
from hypothesis import HealthCheck, find, given, settings

from corpus.ops import EFFECT_OPS, MAX_MAGNITUDE, ConstAttrs
from corpus.textfile import Entry, dumps
from fuzz.strategies import FAMILIES, draw
from fuzz.strategies.dag import MAX_ORDERS
from fuzz.strategies.graphs import resource_graphs
from fuzz.strategies.magnitude import largest_magnitude
from oracles.events import count_orders, unfold
from oracles.explorer import allowed_outcomes
from oracles.model import RFC


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_and_index_give_the_same_test(family: str) -> None:
    texts = [dumps(Entry(draw(family, 7, i))) for i in range(50)]
    assert texts == [dumps(Entry(draw(family, 7, i))) for i in reversed(range(50))][::-1]
    assert len(set(texts)) == 50
    assert texts != [dumps(Entry(draw(family, 8, i))) for i in range(50)]


@pytest.mark.parametrize("seed", range(5))
def test_every_resource_op_is_drawn_and_none_too_often(seed: int) -> None:
    """None more than three times as often as the median kind.

    300 graphs is what a minute draws at least.
    """
    drawn = Counter(n.op for i in range(300) for n in draw("dag", seed, i).graph.effects)
    assert set(drawn) == set(EFFECT_OPS)
    assert max(drawn.values()) <= 3 * median(drawn.values())


def test_drawn_tests_stay_small_enough_to_judge_and_to_represent() -> None:
    for index in range(200):
        test = draw("dag", 3, index)
        assert count_orders(unfold(test, RFC), 1 << 20) < MAX_ORDERS
        assert len(test.graph.effects) <= 8
        allowed = allowed_outcomes(test, RFC)  # would raise on a value of 2**24
        assert allowed.complete
        bound = largest_magnitude(test)
        assert bound < MAX_MAGNITUDE
        for outcome in allowed.witnesses:
            for _, value in outcome.values:
                assert max(map(abs, value)) <= bound


def test_drawn_tests_race_and_show_it() -> None:
    """Most graphs have company on some variable, and more than one outcome."""
    several = sum(len(allowed_outcomes(draw("dag", 4, i), RFC).witnesses) > 1 for i in range(200))
    assert several >= 100


def test_written_constants_are_unique_where_they_can_be() -> None:
    for index in range(100):
        test = draw("dag", 5, index)
        roles = {
            name: role
            for n in test.graph.effects
            for role, name in zip(n.definition.operands, n.inputs, strict=True)
            if n.op != "ResourceScatterMul"
        }
        written = [
            n.attrs.value
            for n in test.graph.nodes
            if isinstance(n.attrs, ConstAttrs)
            and roles.get(n.name) in ("value", "updates", "delta", "grad")
        ]
        assert len(set(written)) == len(written)


@given(resource_graphs())
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_the_hypothesis_strategy_draws_from_the_same_family(test) -> None:
    assert test.name == "dag"
    assert 1 <= len(test.graph.effects) <= 8


def test_hypothesis_shrinks_a_deterministic_property() -> None:
    """A user's failing property comes out small."""

    def has_scatter(test) -> bool:
        return any(n.op.startswith("ResourceScatter") for n in test.graph.effects)

    small = find(
        resource_graphs(),
        has_scatter,
        settings=settings(
            derandomize=True,
            database=None,
            max_examples=300,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert len(small.graph.effects) <= 3
