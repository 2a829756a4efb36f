"""Contraction: cycles as a search of paths finds them, and large tests in little time."""

from __future__ import annotations

import random
import time
from itertools import combinations
from typing import TYPE_CHECKING, Final

import pytest

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.passes.clustering import choose_clusters, violations
from litmusfuzz.fuzz.passes.contraction import Contraction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.corpus.model import LitmusTest

Edges = set[tuple[int, int]]
NODES: Final = 2000
MAX_S: Final = 2.0
"""Of the processor's time, for each large test; a search for each edge took 7 to 20 s."""


# --- cycles ----------------------------------------------------------------------------


def returns(edges: Edges, groups: dict[int, set[int]], joined: set[int]) -> bool:
    """True if a path leaves a set of nodes and returns; each group counts as one node."""
    seen: set[int] = set()
    front = {b for a, b in edges if a in joined} - joined
    while front:
        seen |= {node for each in front for node in groups[each]}
        after = {b for a, b in edges if a in seen}
        if after & joined:
            return True
        front = after - seen
    return False


@pytest.mark.parametrize("seed", range(60))
def test_cycles_are_those_that_a_search_finds(seed: int) -> None:
    """In any order of joins along edges, with a set of any groups joined now and then."""
    rng = random.Random(seed)
    count = rng.randrange(2, 24)
    density = rng.choice((0.05, 0.15, 0.4))
    edges = {each for each in combinations(range(count), 2) if rng.random() < density}
    following = [sum(1 << b for a, b in edges if a == i) for i in range(count)]
    contraction = Contraction(following)
    groups = {i: {i} for i in range(count)}

    def join(roots: list[int]) -> None:
        joined = set().union(*(groups[root] for root in roots))
        assert contraction.join(roots) == roots[-1]
        groups.update(dict.fromkeys(joined, joined))

    for _ in range(3 * count):
        assert {contraction.root(i) in groups[i] for i in range(count)} == {True}
        roots = sorted({contraction.root(i) for i in range(count)})
        if rng.random() < 0.2:
            chosen = rng.sample(roots, min(len(roots), rng.randrange(1, 4)))
            expected = returns(edges, groups, set().union(*(groups[each] for each in chosen)))
            assert contraction.is_cyclic(chosen) == expected
            if not expected:
                join(chosen)
            continue
        outer = [(a, b) for a, b in edges if groups[a] is not groups[b]]
        if not outer:
            break
        a, b = rng.choice(outer)
        expected = returns(edges, groups, groups[a] | groups[b])
        first, second = contraction.root(a), contraction.root(b)
        assert contraction.has_other_path(first, second) == expected
        assert contraction.is_cyclic((first, second)) == expected
        if not expected:
            join([first, second])


# --- large tests -----------------------------------------------------------------------


def a_test(nodes: Iterator[str]) -> LitmusTest:
    variables = "".join(f"  {name}: {{dtype: int32, shape: []}}\n" for name in "XY")
    lines = "".join(f"    {node}\n" for node in nodes)
    head = "litmusfuzz: 2\nname: large\nvariables:\n"
    constant = "    c: {op: Const, dtype: int32, value: 1}\n"
    return loads(f"{head}{variables}graphs:\n  main:\n{constant}{lines}").test


def node(number: int, after: set[int], *, writes: bool = False) -> str:
    op = "AssignVariableOp, inputs: [c]" if writes else "ReadVariableOp"
    before = ", ".join(f"n{each}" for each in sorted(after))
    return f"n{number}: {{op: {op}, resources: [{'XY'[number % 2]}], after: [{before}]}}"


def chain() -> Iterator[str]:
    return (node(i, {i - 1} if i else set()) for i in range(NODES))


def from_one_to_one() -> Iterator[str]:
    yield node(0, set())
    yield from (node(i, {0}) for i in range(1, NODES - 1))
    yield node(NODES - 1, set(range(1, NODES - 1)))


def from_many_to_many() -> Iterator[str]:
    half, far = NODES // 2, 20
    yield from (node(i, set()) for i in range(half))
    yield from (
        node(i, {(i + k * k * 7) % half for k in range(far)}, writes=i % 3 == 0)
        for i in range(half, NODES)
    )


def writes_and_reads() -> Iterator[str]:
    """A chain in which each cluster has a write and the read before it."""
    return (node(i, {i - 1} if i else set(), writes=i % 2 == 1) for i in range(NODES))


def grid() -> Iterator[str]:
    width = 40
    for i in range(NODES):
        left = {i - 1} if i % width else set()
        yield node(i, left | ({i - width} if i >= width else set()), writes=i % 7 == 0)


def near_edges() -> Iterator[str]:
    rng = random.Random(1)
    for i in range(NODES):
        after = {rng.randrange(max(0, i - 40), i) for _ in range(rng.randrange(4)) if i}
        yield node(i, after, writes=rng.random() < 0.3)


def far_edges() -> Iterator[str]:
    rng = random.Random(2)
    for i in range(NODES):
        after = {rng.randrange(i) for _ in range(rng.randrange(4)) if i}
        yield node(i, after, writes=rng.random() < 0.3)


SHAPES = (
    *(chain, from_one_to_one, from_many_to_many, writes_and_reads),
    *(grid, near_edges, far_edges),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_large_test_is_clustered_in_time(shape: Callable[[], Iterator[str]]) -> None:
    test, spent = a_test(shape()), []
    while len(spent) < 2 and min(spent, default=MAX_S) >= MAX_S:  # the less of two counts
        start = time.process_time()
        clusters = choose_clusters(test)
        assert clusters
        assert not violations(replace(test, clusters=clusters))
        spent.append(time.process_time() - start)
    assert min(spent) < MAX_S, f"{min(spent):.2f} s"
