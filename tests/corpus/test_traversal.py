"""Traversals of a test's nodes (fold and map), and fresh names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import FreshNames, levels, map_nodes, renamed

if TYPE_CHECKING:
    from collections.abc import Callable

NESTED = "r0 = X; if r0 == 1 { loop 2 { r1 = Y; X += 1 } } else { X = 3 }"


def test_levels_lead_from_a_graph_to_its_bodies_outer_ones_first() -> None:
    graph = litmus(NESTED).graph
    found = list(levels(graph))
    (branch,) = (node.name for node in graph.nodes if node.op == "If")
    then = found[1]
    (loop,) = (node.name for node in then.nodes if node.op == "While")
    assert [level.around for level in found] == [
        (),
        (branch,),
        (branch, loop),
        (branch, loop),
        (branch,),
    ]
    assert found[2].path == (
        *("graphs", "main", branch, "then", "nodes"),
        *(loop, "condition", "nodes"),
    )
    assert sorted(node.name for level in found for node in level.nodes) == sorted(
        node.name for node in litmus(NESTED).nodes
    )


def test_map_nodes_changes_every_node_once_the_inner_ones_first() -> None:
    test = litmus(NESTED)
    seen = []
    same = map_nodes(test.graphs, lambda node: seen.append(node.name) or node)
    assert same == test.graphs
    assert sorted(seen) == sorted(node.name for node in test.nodes)
    (branch,) = (node.name for node in test.graph.nodes if node.op == "If")
    inside = next(node.name for node in test.nodes if node.op == "AssignAddVariableOp")
    assert seen.index(inside) < seen.index(branch)


def test_renamed_changes_definitions_and_references_alike() -> None:
    test = litmus(NESTED)
    names = {name: f"n{number}" for number, name in enumerate(test.types) if "." not in name}
    nodes = [renamed(node, names | {"X": "Z"}) for node in test.graph.nodes]
    back = {new: old for old, new in names.items()} | {"Z": "X"}
    assert nodes[0].name != test.graph.nodes[0].name
    assert tuple(renamed(node, back) for node in nodes) == test.graph.nodes


def test_fresh_names_are_like_the_one_wanted() -> None:
    names = FreshNames(["w", "w_2"])
    assert [names.like("r"), names.like("r"), names.like("w")] == ["r", "r_2", "w_3"]
    long = "x" * 64
    assert [names.like(long), names.like(long)] == [long, f"{'x' * 56}_2"]


def test_fresh_numbers_are_counted_for_each_prefix_or_for_all() -> None:
    names = FreshNames(["c1", "t3"])
    assert [names.numbered(prefix) for prefix in ("c", "c", "t", "c")] == ["c0", "c2", "t0", "c3"]
    names.take("c4")
    assert names.numbered("c") == "c5"
    assert [names.counted(prefix) for prefix in ("a", "c", "t", "a")] == ["a1", "c6", "t7", "a8"]


@pytest.mark.parametrize("make", [FreshNames.like, FreshNames.numbered, FreshNames.counted])
def test_no_fresh_name_is_given_twice(make: Callable[[FreshNames, str], str]) -> None:
    names = FreshNames()
    assert len({make(names, prefix) for prefix in ("a", "a1", "a", "a_2", "a", "a1")}) == 6
