"""TensorFlow executor: clusters and lost orders, read from dumps that are written by hand.

A dump here is the graph as LitmusFuzz built it, with some edges left out, or with nodes moved into
a cluster. `test_tensorflow_clusters` reads the dumps of TensorFlow itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Noise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest

SB = "X=1; r0=Y || Y=1; r1=X"
TESTS = {
    "SB": litmus(SB),
    "chain": litmus("X=1; Y=1; Z=1"),
    "loop": litmus("loop 2 { r0=Y; X=r0; Y=2 } || Y=1"),
    "branch": litmus("r0=Z; if r0==0 { r1=Y; X=r1; Y=2 } || Y=1; Z=1"),
    "section": litmus("lock M; X=1; Y=1; unlock M || lock M; r0=Y; r1=X; unlock M"),
    "queue": litmus("X=1; Q!1; Z=1 || r0=Q?; Y=1; r1=X", queues={"Q": 1}),
    "runs": litmus(f"{SB} || Z=1; X=2", client="a:main; b:main"),
}


class Dumped:
    """A test as TensorFlow is given it, and the dump of a graph that it may run."""

    def __init__(self, test: LitmusTest, copies: int = 1) -> None:
        from litmusfuzz.fuzz.executors.tensorflow import lowering

        self.test, self.copies = test, copies
        self.template = lowering.lower(test)
        noise = Noise(copies=copies, shuffle=False, padding=0)
        rng = np.random.default_rng(0)
        self.built = lowering.build(self.template, noise, rng, share_handles=True)
        self.graph: Any = type(self.built.graph_def)()
        self.graph.CopyFrom(self.built.graph_def)

    @property
    def ops(self) -> list[str]:
        """Nodes of the first copy that use a variable or a queue."""
        names = {node.name for node in self.test.nodes if node.resources and not node.members}
        return [n.name for n in self.graph.node if n.name[:3] == "c0/" and n.name[3:] in names]

    def read(self, folder: Path) -> list[ChosenClusters]:
        """The clusterings of all copies, as they are read from the dump."""
        from litmusfuzz.fuzz.executors.tensorflow import clusters
        from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings

        (folder / "encapsulate_subgraphs_after_1.pb").write_bytes(self.graph.SerializeToString())
        names = {node.name for node in self.test.nodes}
        return clusters.read(self.template, self.built, folder, self.copies, names, Settings())

    def orders(self) -> set[tuple[str, str]]:
        """Ordered pairs of ops of the first copy, found by walking from each."""
        above = {
            node.name: {edge.lstrip("^").partition(":")[0] for edge in node.input}
            for node in self.graph.node
        }
        loops = {n.name for n in self.graph.node if n.op == "NextIteration"}

        def walk(name: str) -> Iterator[str]:
            left, seen = [name], set()
            while left:
                for each in above[left.pop()] - seen - loops:
                    seen.add(each)
                    left.append(each)
            yield from seen

        return {(a[3:], b[3:]) for b in self.ops for a in walk(b) if a in self.ops}

    def cluster(self, *members: str) -> None:
        """Put nodes of the first copy into one cluster, as TensorFlow does."""
        inside = {f"c0/{name}" for name in members}
        function = self.graph.library.function.add()
        function.signature.name = "cluster_0"
        call = self.graph.node.add(name="cluster_0", op="cluster_0")
        for node in [each for each in self.graph.node if each.name in inside]:
            kept = [e for e in node.input if e.lstrip("^") in inside]
            call.input.extend(f"^{e.lstrip('^')}" for e in node.input if e not in kept)
            function.node_def.add(name=node.name, op=node.op, input=kept)
            self.graph.node.remove(node)
        for node in self.graph.node:
            for place, edge in enumerate(node.input):
                if edge.lstrip("^") in inside:
                    node.input[place] = "^cluster_0" if edge[0] == "^" else "cluster_0"


@pytest.mark.parametrize("name", list(TESTS))
def test_an_order_that_is_gone_is_reported_and_no_other(name: str, tmp_path: Path) -> None:
    """For each edge: without it, what is lost is what only it has ordered."""
    dumped = Dumped(TESTS[name])
    given = dumped.orders()
    assert dumped.read(tmp_path) == [ChosenClusters(())]
    lost_ones = 0
    for node in dumped.graph.node:
        edges = list(node.input)
        for edge in [each for each in edges if each[0] == "^"]:
            node.input.remove(edge)
            (found,) = dumped.read(tmp_path)
            names = {each.name for each in TESTS[name].nodes if each.resources}
            between = {pair for pair in found.lost if names >= set(pair)}
            expected = given - dumped.orders()
            sections = {each.name for each in TESTS[name].nodes if each.members}
            assert {p for p in between if not sections & set(p)} == expected, edge
            lost_ones += bool(expected)
            del node.input[:]
            node.input.extend(edges)
    assert lost_ones > 0


@pytest.mark.parametrize(
    "text",
    [
        "loop 2 { r0=Y; X=r0; Y=2 } || Y=1",
        "r0=Z; if r0==0 { r1=Y; X=r1; Y=2 } else { X=3; Z=r0 }; Y=4 || Y=1; Z=1",
        "loop 2 { r0=X; if r0==0 { X=1; Y=1 }; Z=1 }; X=5",
    ],
)
def test_bodies_that_are_functions_have_the_same_order(text: str) -> None:
    """As v1 loops and conditionals of the same test."""
    from litmusfuzz.fuzz.executors.tensorflow import clusters, lowering

    dumped = Dumped(litmus(text))
    expected = dumped.orders()
    noise, rng = Noise(copies=1, shuffle=False, padding=0), np.random.default_rng(0)
    built = lowering.build(dumped.template, noise, rng, share_handles=True, front_end="functional")
    assert {"While", "If"}.intersection(node.op for node in built.graph_def.node)
    dumped.graph.Clear()
    for name, op, sources in clusters.Flattening(built.graph_def).nodes():
        dumped.graph.node.add(name=name.replace(":", "/output/"), op=op).input.extend(
            each.replace(":", "/output/") for each in sources
        )
    assert len(dumped.ops) > 3
    assert dumped.orders() == expected


def test_members_of_a_cluster_are_ordered_by_it(tmp_path: Path) -> None:
    """By XLA's translation: by edges, else by name."""
    dumped = Dumped(litmus("X=1; r0=Y"))
    dumped.cluster("w0", "r0")
    assert dumped.read(tmp_path) == [ChosenClusters((("w0", "r0"),))]
    (function,) = dumped.graph.library.function
    (read,) = (node for node in function.node_def if node.name == "c0/r0")
    read.input.remove("^c0/w0")
    (found,) = dumped.read(tmp_path)
    assert found.lost == (("w0", "r0"),)


def test_two_reads_of_a_cluster_need_no_order(tmp_path: Path) -> None:
    """They read one snapshot."""
    dumped = Dumped(litmus("r1=X; r0=Y"))
    dumped.cluster("r1", "r0")
    (function,) = dumped.graph.library.function
    (read,) = (node for node in function.node_def if node.name == "c0/r0")
    read.input.remove("^c0/r1")
    assert [each.lost for each in dumped.read(tmp_path)] == [()]


def test_a_cluster_of_several_copies_counts_for_each_unless_the_test_may_block(
    tmp_path: Path,
) -> None:
    for name, problem in (("chain", False), ("queue", True)):
        dumped = Dumped(TESTS[name], copies=2)
        dumped.cluster("c1_0", "w0")
        (function,) = dumped.graph.library.function
        for node in [n for n in dumped.graph.node if n.name in ("c1/w0", "c1/c1_0")]:
            kept = [e for e in node.input if e in ("c1/w0", "c1/c1_0")]
            function.node_def.add(name=node.name, op=node.op, input=kept)
            dumped.graph.node.remove(node)
        for node in dumped.graph.node:
            for place, edge in enumerate(node.input):
                if edge.lstrip("^") in ("c1/w0", "c1/c1_0"):
                    node.input[place] = "^cluster_0" if edge[0] == "^" else "cluster_0"
        for found in dumped.read(tmp_path):
            assert bool(found.problem) is problem
            assert problem or found.clusters == (("c1_0", "w0"),)


def test_a_graph_that_was_not_dumped_and_a_write_that_is_gone_are_named(tmp_path: Path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import clusters

    dumped = Dumped(TESTS["SB"])
    for node in [each for each in dumped.graph.node if each.name == "c0/w0"]:
        dumped.graph.node.remove(node)
    assert dumped.read(tmp_path) == [ChosenClusters((), (), clusters.NO_OP)]
    dumped.graph.Clear()
    assert dumped.read(tmp_path) == [ChosenClusters((), (), clusters.NO_GRAPH)]


@pytest.mark.parametrize("live", [True, False])
def test_what_comes_before_a_loop_without_ops_is_not_ordered(*, live: bool, tmp_path: Path) -> None:
    """An optimizer that proves that an op never runs may drop it, and then what led to it."""
    dumped = Dumped(litmus("r0=X; loop 2 { Y=1 }"))
    names = {node.op: f"c0/{node.name}" for node in dumped.test.nodes}
    read, write = names["ReadVariableOp"], names["AssignVariableOp"]
    edges = {node.name: list(node.input) for node in dumped.graph.node}
    for node in list(dumped.graph.node):
        kept = []
        for edge in node.input:
            if edge.lstrip("^") == write and not live:
                kept += [f"^{each.lstrip('^').partition(':')[0]}" for each in edges[write]]
            elif edge != f"^{read}":
                kept.append(edge)
        del node.input[:]
        node.input.extend(sorted(set(kept), key=lambda each: each[0] == "^"))
        if node.name == write and not live:
            dumped.graph.node.remove(node)
    (found,) = dumped.read(tmp_path)
    assert not found.problem
    assert bool(found.lost) is live
    assert not live or (read[3:], write[3:]) in found.lost
