"""Families: repeatable, well-formed, balanced tests that are never too large."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest
from helpers import share_of
from helpers_orders import count_orders
from helpers_settings import settings_of
from hypothesis import HealthCheck, find, given, settings

from litmusfuzz.corpus.model import FEATURES, bodies
from litmusfuzz.corpus.ops import EFFECT_OPS, MAX_MAGNITUDE, OPS, ConstAttrs, Kind
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.generators import FAMILIES, dag, families_for, generate
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles import reference, sequential
from litmusfuzz.oracles.bounds import coarse_bound, count_all, largest_magnitude
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.oracles.allowed import AllowedSet

MANY = 100
STRUCTURED = tuple(n for n in FAMILIES if n not in ("dag", "clusterable", "sparse", "dense"))
NESTS = ("If", "While", "Call")
FEATURE = {
    "sections": "critical sections",
    "queues": "queues",
    "conditionals": "conditionals",
    "loops": "loops",
    "runs": "several runs",
    "clusters": "clusters",
}


@cache
def generated(family: str) -> tuple[LitmusTest, ...]:
    return tuple(generate(family, 3, index) for index in range(MANY))


@cache
def allowed(family: str) -> tuple[AllowedSet, ...]:
    """Allowed sets of the generated tests; a value of 2**24 would raise."""
    return tuple(allowed_outcomes(test, RFC) for test in generated(family))


@cache
def reference_sets(family: str) -> tuple[AllowedSet, ...]:
    """The reference's sets of the first 32."""
    return tuple(reference.allowed_outcomes(test, RFC) for test in generated(family)[:32])


def nodes(test: LitmusTest) -> list[Node]:
    return list(test.nodes)


# --- all families ------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_and_index_give_the_same_test(family: str) -> None:
    texts = [dumps(Entry(test)) for test in generated(family)[:30]]
    assert texts == [dumps(Entry(generate(family, 3, i))) for i in reversed(range(30))][::-1]
    assert len(set(texts)) == 30
    assert texts[:5] != [dumps(Entry(generate(family, 8, i))) for i in range(5)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_test_is_named_after_its_family_and_survives_its_file(family: str) -> None:
    for test in generated(family):
        assert test.name == family
        text = dumps(Entry(test))
        entry = loads(text)
        assert entry.test == test
        assert dumps(entry) == text


def bound_of(test: LitmusTest) -> int:
    """A bound on the magnitudes of all values."""
    if test.name != "programs":
        coarse = coarse_bound(test)
        return largest_magnitude(test) if coarse is None else min(largest_magnitude(test), coarse)
    sequential.outcome(test)  # the single one, in which no value is too large
    return MAX_MAGNITUDE - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_no_value_grows_beyond_its_bound(family: str) -> None:
    for test, found in zip(generated(family), allowed(family), strict=True):
        bound = bound_of(test)
        assert bound < MAX_MAGNITUDE
        assert found.complete
        for outcome in found.witnesses:
            for _, value in outcome.values:
                for part in value:
                    whole = part if isinstance(part, tuple) else (part,)
                    assert max(map(abs, whole), default=0) <= bound


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"programs"}))
def test_most_tests_race_and_show_it(family: str) -> None:
    """They have more than one outcome."""
    several = sum(len(found.witnesses) > 1 for found in allowed(family))
    assert several >= (50 if family in ("dag", "dense") else 60)


@pytest.mark.parametrize("seed", range(5))
def test_dag_generates_every_op_on_variables_and_none_too_often(seed: int) -> None:
    """No op more than three times as often as the median op."""
    counts = Counter(n.op for i in range(300) for n in generate("dag", seed, i).graph.effects)
    assert set(counts) == set(EFFECT_OPS)
    assert max(counts.values()) <= 3 * median(counts.values())


@pytest.mark.parametrize("family", sorted({*STRUCTURED} - {"accumulators"}))
def test_reads_writes_and_updates_are_balanced(family: str) -> None:
    ops = [node for test in generated(family) for node in nodes(test) if node.op in EFFECT_OPS]
    shares = Counter(node.definition.kind for node in ops)
    for kind in (Kind.READ, Kind.WRITE, Kind.UPDATE):
        assert 0.12 <= shares[kind] / len(ops) <= 0.7


def test_structured_tests_contain_every_op() -> None:
    """Ops that need rows or floats fit fewer tests."""
    counts = Counter(
        node.op for family in STRUCTURED for test in generated(family) for node in nodes(test)
    )
    effects = {op: counts[op] for op in EFFECT_OPS}
    assert min(effects.values()) >= median(effects.values()) / 4
    queue_ops = {op: counts[op] for op in OPS if OPS[op].kind is Kind.QUEUE}
    assert min(queue_ops.values()) >= 3


@pytest.mark.parametrize("family", FAMILIES)
def test_all_dtypes_and_ranks_are_generated(family: str) -> None:
    kinds = {(v.dtype, v.shape) for test in generated(family) for v in test.variables}
    # Gradients are floats, and what counts steps is int64.
    ints = {"int64"} if family in ("accumulators", "keras") else {"int32", "int64"}
    assert {dtype for dtype, _ in kinds} == ints | {"float32", "float64"}
    # Sparse ops need rows.
    rows = family in ("sparse", "computed", "lookups")
    assert {len(shape) for _, shape in kinds} == {0, 1, 2} - ({0} if rows else set())


@pytest.mark.parametrize("family", FAMILIES)
def test_hypothesis_generates_tests_of_the_family(family: str) -> None:
    @given(resource_graphs(family))
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def check(test: LitmusTest) -> None:
        assert test.name == family
        assert bound_of(test) < MAX_MAGNITUDE

    check()


# --- those with structure ----------------------------------------------------------------


@pytest.mark.parametrize("family", share_of(STRUCTURED, 2))
def test_the_reference_oracle_decides_every_test(family: str) -> None:
    """Over all choices of strictness, mostly after few orders."""
    found = reference_sets(family)
    assert all(each.complete for each in found)
    orders = sorted(each.orders for each in found)
    assert orders[16] <= 300
    # A round of synchronous training has 8,190 orders.
    assert orders[29] <= (10_000 if family == "accumulators" else 5_000)


@pytest.mark.parametrize("family", ["sections", "queues", "runs"])
def test_orders_are_counted_exactly_without_control_flow(family: str) -> None:
    for test, found in zip(generated(family), reference_sets(family), strict=False):
        if not any(node.op == "QueueCloseV2" for node in nodes(test)):
            assert count_all(test, 10_000) == found.orders


@pytest.mark.parametrize("family", FEATURE)
def test_a_family_has_its_feature(family: str) -> None:
    with_it = sum(FEATURE[family] in test.features for test in generated(family))
    assert with_it >= 0.97 * MANY


def test_mixed_has_two_features_or_more() -> None:
    several = sum(len(test.features) >= 2 for test in generated("mixed"))
    assert several >= 0.85 * MANY
    assert {f for test in generated("mixed") for f in test.features} >= {
        *("critical sections", "queues", "conditionals", "loops", "several runs")
    }


@pytest.mark.parametrize("family", ["sections", "queues"])
def test_some_can_block_and_some_cannot(family: str) -> None:
    statuses = [{outcome.status for outcome in found.witnesses} for found in allowed(family)]
    blocked = sum(Status.BLOCKED in each for each in statuses)
    assert 0.2 * MANY <= blocked <= 0.8 * MANY
    # A test that always blocks shows little.
    assert sum(each == {Status.BLOCKED} for each in statuses) <= 0.4 * MANY


def test_an_op_seldom_fails() -> None:
    """Only after a queue was closed, or where a variable has no value at first.

    Nothing is specified then. In three families it is the point that a read may find no value, an
    index no row, or that a number of gradients is not positive.
    """
    for family in STRUCTURED:
        if family in ("uninitialized", "computed", "accumulators"):
            continue
        failing = 0
        for test, found in zip(generated(family), allowed(family), strict=True):
            if Status.FAILED in {outcome.status for outcome in found.witnesses}:
                failing += 1
                closes = any(node.op == "QueueCloseV2" for node in nodes(test))
                assert closes or {"uninitialized variables", "accumulators"} & test.features
        assert failing <= 6


@pytest.mark.parametrize(("family", "seed", "index"), [("computed", 99, 8011), ("pure", 99, 3898)])
def test_rare_choices_make_a_test_as_well(family: str, seed: int, index: int) -> None:
    """One in ten thousand: no op with indices at all; a sum over more elements than its bound."""
    test = generate(family, seed, index)
    assert test.effects
    assert family != "computed" or "computed indices" in test.features


# --- sparse ------------------------------------------------------------------------------


def test_sparse_uses_a_variable_densely_and_sparsely() -> None:
    """With two variables, the ops may access different ones."""
    both = 0
    for test in generated("sparse"):
        sparse = {n.resources[0] for n in test.effects if n.definition.sparse and n.inputs}
        both += any(not n.definition.sparse and sparse & {*n.resources} for n in test.effects)
    assert both >= 0.8 * MANY
    counts = Counter(n.op for test in generated("sparse") for n in test.effects)
    assert set(counts) == set(EFFECT_OPS)


# --- dag ---------------------------------------------------------------------------------


def test_dags_have_a_bounded_number_of_orders_and_ops() -> None:
    for test in generated("dag"):
        assert count_orders(unfold(test, RFC), 1 << 20) < dag.MAX_ORDERS
        assert len(test.graph.effects) <= 8


@pytest.mark.parametrize("family", ["dag", "clusterable", "sparse"])
def test_no_test_has_more_orders_than_its_chains_allow(family: str) -> None:
    """Most tests are known by their chains to be small enough."""
    tight = 0
    for test in generated(family)[:40]:
        most = dag.most_orders(test.graph.nodes)
        orders = count_all(test, 2 * dag.MAX_ORDERS)
        assert orders <= most
        tight += orders == most
    assert tight > 2


def test_written_constants_are_unique_where_they_can_be() -> None:
    for index in range(100):
        test = generate("dag", 5, index)
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


def test_hypothesis_shrinks_a_deterministic_property() -> None:
    """A failing property shrinks to a small test."""

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


def test_dense_has_ops_on_whole_variables_only() -> None:
    for test in generated("dense"):
        assert 1 < len(test.effects) <= 6
        assert not any(node.definition.sparse for node in test.effects)
        assert not test.features


def test_a_program_has_the_outcome_of_program_order_alone() -> None:
    """Its edges order all effects, under the loosest model as well."""
    for test, found in zip(generated("programs"), allowed("programs"), strict=True):
        assert set(found.witnesses) == {sequential.outcome(test)}


def test_programs_nest_everything_and_are_for_executors_of_programs() -> None:
    inner = Counter(
        (node.op, each.op)
        for test in generated("programs")
        for node in test.nodes
        for _, body in bodies(node)
        for each in body.nodes
    )
    assert {pair for pair in inner if inner[pair] > 2} >= set(product(NESTS, repeat=2))
    support = JaxRefsExecutor.support
    assert "programs" in families_for(support)
    assert "programs" not in families_for(replace(support, features=FEATURES - {"gradients"}))
    with_gradients = sum(
        "gradients" in generate("programs", 3, index, support).features for index in range(40)
    )
    assert with_gradients >= 3


def test_campaigns_generate_dense_only_if_it_is_named() -> None:
    alone = ("mutant/stale-reads", configuration("mutant/stale-reads"))
    assert "dense" not in settings_of(1, Path(), (alone,)).families_for_executor(alone[0])
    asked = settings_of(1, Path(), (alone,), families=("dense", "loops"))
    assert asked.families_for_executor(alone[0]) == ("dense",)
