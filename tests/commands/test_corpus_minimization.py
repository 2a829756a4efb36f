"""Corpus minimization: smallest covers, compared with all subsets of small examples."""

from __future__ import annotations

import random
import time
from itertools import combinations

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, load
from litmusfuzz.fuzz.commands.corpus_minimization import minimum, shown
from litmusfuzz.fuzz.finding.relations import NodeRelations
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS


def fewest(sets: dict[str, frozenset[str]]) -> int:
    """By looking at all subsets."""
    everything = frozenset().union(*sets.values())
    for number in range(len(sets) + 1):
        for some in combinations(sets.values(), number):
            if frozenset().union(*some) == everything:
                return number
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_it_is_a_cover_and_none_is_smaller(seed: int) -> None:
    rng = random.Random(seed)
    things = [f"t{number}" for number in range(rng.randint(1, 12))]
    sets = {
        f"s{number}": frozenset(rng.sample(things, rng.randint(1, min(4, len(things)))))
        for number in range(rng.randint(1, 10))
    }
    cover = minimum(sets)
    kept = [sets[name] for name in cover.kept]
    assert frozenset().union(*kept) == frozenset().union(*sets.values())
    assert cover.proved
    assert len(cover.kept) == fewest(sets)
    assert all(cover.kept.values())  # each is there for something
    assert cover == minimum(dict(reversed(sets.items())))


def test_a_greedy_cover_is_improved() -> None:
    """Most first is `big`, after which both others are still needed."""
    sets = {
        "big": frozenset("abcd"),
        "left": frozenset("abe"),
        "right": frozenset("cdf"),
    }
    cover = minimum(sets)
    assert list(cover.kept) == ["left", "right"]
    assert cover.proved


@pytest.mark.parametrize("path", LITMUS[::6], ids=lambda path: path.stem)
def test_orders_are_those_of_all_two_events(path) -> None:
    entry = load(path)
    relations = NodeRelations(entry.test)
    nodes = {node.name: node for node in entry.test.nodes}
    found = set()
    for model in MODELS.values():
        for witness in Explorer(entry.test, model).allowed_outcomes().witnesses.values():
            events = [event for event in witness if event.node.name in relations.paths]
            for one, other in combinations(events, 2):
                # An event of an op with computed indices has another node of the same name.
                first, second = nodes[one.node.name], nodes[other.node.name]
                shared = first is not second and set(one.variables) & set(other.variables)
                if shared and relations.relation(first, second) == "unordered":
                    found.add(f"{first.op} before {second.op}")
    assert {each for each in shown(entry) if " before " in each} == found


def test_a_test_with_many_outcomes_and_ops_takes_seconds() -> None:
    """To compare each two events of each outcome takes minutes."""
    writes = " || ".join(f"X={n}; r{n}=X" for n in range(1, 6))
    reads = "; ".join(f"q{n}=Y" for n in range(300))
    test = litmus(f"{writes} || {reads}")
    start = time.process_time()
    assert "AssignVariableOp before AssignVariableOp" in shown(Entry(test))
    assert time.process_time() - start < 10
