"""Mutations of the corpus: every edit does what its description says, and names the parent."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph
from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import edits, generate, mutations

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

TESTS = {
    "straight": litmus("X=1; Y=2 || r0=Y; r1=X", shape=(2, 4)),
    "nested": litmus("lock M; r0=X; X=r0+1; unlock M || loop[2] 3 free { X=5; r1=X }"),
    "queues": litmus("Q!1; Q!2 || r0=Q?; r1=size Q || X=1", queues={"Q": 1}),
    "runs": litmus("X=1; r0=Y ||| Y=1; r1=X", client="a:g0; b:g1; c:g0 after a"),
}


def edited(edit, test: LitmusTest, count: int = 60) -> list[tuple[str, LitmusTest]]:
    """What an edit makes of a test, as far as that is one."""
    made = []
    for number in range(count):
        done = edit(random.Random(number), test)
        if done is None:
            continue
        try:
            made.append((done[0], done[1].build()))
        except MalformedTest:
            continue
    return made


@pytest.mark.parametrize("edit", dict.fromkeys(edits.EDITS), ids=lambda edit: edit.__name__)
def test_each_edit_changes_some_test_and_says_how(edit) -> None:
    made = [each for test in TESTS.values() for each in edited(edit, test)]
    assert any(test not in TESTS.values() for _, test in made)
    assert all(said.isprintable() and len(said) < 100 for said, _ in made)


@pytest.mark.parametrize("edit", dict.fromkeys(edits.EDITS), ids=lambda edit: edit.__name__)
def test_an_edit_leaves_graphs_without_nodes_alone(edit) -> None:
    """Also where the first of several graphs has none."""
    nothing = replace(litmus("X=1"), graphs=(Graph("main", ()),), observe=())
    empty_first = litmus("X=1 ||| Y=2; r1=Y ||| X=2; r0=X")
    empty_first = replace(empty_first, graphs=(Graph("g0", ()), *empty_first.graphs[1:]))
    for index in range(40):
        done = edit(random.Random(index), nothing)
        assert done is None or not done[1].build().nodes_by_key()
        done = edit(random.Random(index), empty_first)
        assert done is None or not done[1].graphs[0].nodes


def test_edges_are_dropped_added_and_turned() -> None:
    mp = TESTS["straight"]
    after = {n.name: (n.after, n.inputs) for n in mp.graph.nodes}
    for _, test in edited(edits.drop_edge, mp):
        assert sum(len(n.after) for n in test.graph.nodes) == 1
    for _, test in edited(edits.add_edge, mp):
        assert sum(len(n.after) for n in test.graph.nodes) == 3
    for _, test in edited(edits.redirect_edge, mp):
        changed = [n for n in test.graph.nodes if (n.after, n.inputs) != after[n.name]]
        assert len(changed) == 1


def test_a_chain_is_duplicated_or_moved_whole() -> None:
    mp = TESTS["straight"]
    for _, test in edited(edits.duplicate_chain, mp):
        assert len(test.effects) == 6
        kinds = Counter(n.op for n in test.effects)
        assert sorted(kinds.values()) == [2, 4]
        assert set(mp.observe) <= set(test.observe)
    moved = [test for _, test in edited(edits.move_chain, mp)]
    assert moved
    for test in moved:
        assert [len(graph.effects) for graph in test.graphs] == [2, 2]
        assert sorted(n.op for n in test.effects) == sorted(n.op for n in mp.effects)
        assert len(test.observe) == len(mp.observe)


def test_lanes_and_dtypes_change_everywhere() -> None:
    shapes = {test.variables[0].shape for _, test in edited(edits.other_lanes, TESTS["straight"])}
    assert shapes == {(2,), (2, 16), (2, 256), (2, 1024)}
    for _, test in edited(edits.other_dtype, TESTS["straight"]):
        (dtype,) = {variable.dtype for variable in test.variables}
        assert dtype != "int32"
    shapes = {
        test.variables[0].shape for _, test in edited(edits.other_lanes, litmus("X=1 || r0=X"))
    }
    assert shapes == {(1,), (1, 16), (1, 256), (1, 1024)}


def test_a_client_is_turned_round_or_made() -> None:
    clients = {test.client for _, test in edited(edits.other_client, TESTS["runs"])}
    assert len(clients) >= 5
    (again, beside) = sorted(
        {
            run.after
            for _, t in edited(edits.other_client, TESTS["straight"])
            for run in t.client[1:]
        }
    )
    assert (again, beside) == ((), ("main",))


def test_the_description_names_the_parent_and_the_test_differs() -> None:
    parents = set()
    for index in range(200):
        test = generate("mutations", 9, index)
        said = re.fullmatch(r"mutation of (\S+): (.+)", test.description)
        assert said, test.description
        assert replace(test, description="") != replace(mutations.parent(said[1]), description="")
        assert 1 <= len(said[2].split("; ")) <= 4
        parents.add(said[1])
    assert len(parents) > 100


def test_the_corpus_is_found_where_it_is_installed() -> None:
    """And each test of it has a descendant."""
    assert len(mutations.names()) >= 470
    assert mutations.names() == tuple(sorted(mutations.names()))
    assert {"SB", "MP", "rfc-update"} <= set(mutations.names())
