"""Shares of the families: weights, finds, the least share, and new pairs of ops."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz import generators
from litmusfuzz.fuzz.campaign.family_weights import NEW_PAIR, FamilyWeights
from litmusfuzz.fuzz.campaign.tuning import HALF_LIFE_S, WEIGHT_SHARE
from litmusfuzz.fuzz.finding.relations import Pair, pairs

FAMILIES = ("a", "b", "c", "d")


def weights(**base: float) -> FamilyWeights:
    return FamilyWeights(dict.fromkeys(FAMILIES, 1.0) | base, learning=True)


def chosen(each: FamilyWeights, count: int) -> Counter[str]:
    return Counter(each.choose(0, FAMILIES) for _ in range(count))


def test_weights_are_kept_to_the_graph() -> None:
    each = weights(a=3, c=0.5)
    assert chosen(each, 11) == {"a": 6, "b": 2, "c": 1, "d": 2}
    assert chosen(each, 55) == {"a": 30, "b": 10, "c": 5, "d": 10}


def test_equal_families_alternate() -> None:
    each = FamilyWeights(dict.fromkeys("abcdefg", 1.0), learning=False)
    assert [each.choose(0, "abcdefg") for _ in range(7000)] == [*"abcdefg"] * 1000


def test_each_who_chooses_has_shares_of_its_own() -> None:
    each = weights()
    for _ in range(8):
        each.choose(0, ("a", "b"))
        each.choose(1, FAMILIES)
    assert [each.choose(1, FAMILIES) for _ in range(4)] == [*FAMILIES]
    assert [each.choose(0, ("a", "b")) for _ in range(2)] == ["a", "b"]


def test_a_family_with_findings_gains_share_and_none_falls_below_its_least_share() -> None:
    each = weights(b=2)
    for family in FAMILIES:
        each.add_time(family, 30.0)
    before = each.shares(FAMILIES)
    assert before == {"a": 0.2, "b": 0.4, "c": 0.2, "d": 0.2}
    for _ in range(100):
        each.add_find("d")
    after = each.shares(FAMILIES)
    assert sum(after.values()) == pytest.approx(1)
    assert after["d"] > 0.55
    assert all(after[family] >= WEIGHT_SHARE * before[family] for family in FAMILIES)
    counts = chosen(each, 1000)
    assert all(abs(counts[f] - 1000 * after[f]) <= 2 for f in FAMILIES)


def test_an_exhausted_family_loses_share() -> None:
    each = weights()
    for family in FAMILIES:
        each.add_time(family, 30.0)
    each.add_find("a")
    first = each.shares(FAMILIES)["a"]
    for _ in range(100):
        each.add_time("a", HALF_LIFE_S / 10)
    assert each.yields["a"].finds < 0.001
    assert each.shares(FAMILIES)["a"] < 0.25 < first
    assert each.shares(FAMILIES)["a"] >= 0.25 * WEIGHT_SHARE


def test_before_the_first_finding_time_changes_nothing() -> None:
    """The generated tests then depend on the seed alone."""
    each = weights()
    each.add_time("a", 100.0)
    each.add_new_pairs("b", each.new_pairs(litmus("X=1 || r0=X")))
    assert set(each.shares(FAMILIES).values()) == {0.25}
    each.add_find("c")
    shares = each.shares(FAMILIES)
    assert shares["a"] < shares["b"] < shares["c"]
    fixed = FamilyWeights(dict.fromkeys(FAMILIES, 1.0), learning=False)
    fixed.add_find("c")
    assert set(fixed.shares(FAMILIES).values()) == {0.25}


def test_new_pairs_of_ops_count_once_whoever_has_them() -> None:
    each = weights()
    each.add_new_pairs("a", each.new_pairs(litmus("X=1 || r0=X")))
    assert each.yields["a"].finds == NEW_PAIR
    each.add_new_pairs("b", each.new_pairs(litmus("r5=X || X=7")))
    assert each.yields["b"].finds == 0
    each.add_new_pairs("b", each.new_pairs(litmus("X=1; r0=X; Y=1 || Y+=1")))
    assert each.yields["b"].finds == pytest.approx(2 * NEW_PAIR)


def test_pairs_are_of_one_resource_with_their_order() -> None:
    assign, read = "AssignVariableOp", "ReadVariableOp"
    assert pairs(litmus("X=1; Y=2 || r0=Y; r1=X")) == {(assign, read, "unordered")}
    assert pairs(litmus("X=1; r0=X || Y=2")) == {(assign, read, "ordered")}
    assert pairs(litmus("X=1 || X=2")) == {(assign, assign, "unordered")}
    assert pairs(litmus("X=1 || Y=2")) == set()


def test_new_pairs_are_those_that_no_test_before_had() -> None:
    """Also where no relation is looked up, as both are known."""
    each = weights()
    known: set[Pair] = set()
    numbered = ((family, index) for index in range(12) for family in generators.FAMILIES)
    generated = (generators.generate(family, 11, index) for family, index in numbered)
    nested = litmus("lock M; Y=1; lock M; X=1; unlock M; unlock M")
    for test in (*generated, *(corpus_entry(path).test for path in LITMUS), nested):
        new = pairs(test) - known
        assert pairs(test, known) == new
        assert each.new_pairs(test) == len(new)
        known |= new
    assert each.pairs == known
    assert {how for _, _, how in known} == {"ordered", "unordered"}
