"""Clusters that TensorFlow chose for XLA, read from TensorFlow's debug dumps.

With ``--tf_xla_clustering_debug`` TensorFlow writes each graph after it has marked
nodes for compilation (``mark_for_compilation*.pbtxt``). Nodes of one cluster have the
same value of the attribute ``_XlaCluster``: these are the members. Their SSA order is
the order in which XLA's compiler translates the cluster's own graph, which it writes
before it compiles (``xla_compile_graph_CLUSTER_*.pbtxt``, at log level 2).

Helper nodes, such as arguments and index constants, are dropped: they touch no
resource. TensorFlow may clone a constant (``NODE/clone_N``) so that each consumer has
its own. Such a constant is a member only if all its consumers are in the cluster:
other consumers do not wait for the cluster.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2

from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow.lowering import RACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node

_PREFIX: Final = "c0/"
"""Prefix of the node names in the only copy."""


@contextmanager
def dumping() -> Iterator[Path]:
    """Context manager: a temporary folder into which TensorFlow dumps graphs.

    Without such a folder TensorFlow only logs a line for each dump.
    """
    with tempfile.TemporaryDirectory(prefix="litmusfuzz-") as folder:
        os.environ["TF_DUMP_GRAPH_PREFIX"] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ["TF_DUMP_GRAPH_PREFIX"]


def read(test: LitmusTest, folder: Path) -> dict[str, list[str]]:
    """Members of each cluster, in SSA order: the order in which XLA translates them.

    Parameters
    ----------
    test : LitmusTest
    folder : Path
        Contains the dumps of one session over one copy of the test, run once.

    Raises
    ------
    Refused
        If a resource op was not compiled with the cluster that it was marked for.
    """
    nodes = {node.name: node for node in test.graph.nodes}
    marked = {proto.name.removeprefix(_PREFIX): proto for proto in _marked(folder).node}
    home = {name: proto.attr["_XlaCluster"].s.decode() for name, proto in marked.items()}
    cloned = {name.partition("/clone_")[0] for name in marked if "/clone_" in name}
    members: dict[str, list[str]] = {}
    for name in nodes:
        consumers = [name]
        if name in cloned:
            consumers = [n.name for n in nodes.values() if name in (*n.inputs, *n.after)]
        homes = {home.get(each, "") for each in consumers}
        if len(homes) == 1 and "" not in homes:
            members.setdefault(homes.pop(), []).append(name)
    found: dict[str, list[str]] = {}
    for cluster, names in members.items():
        order = _translated(folder, cluster)
        rank = {name.removeprefix(_PREFIX): index for index, name in enumerate(order)}
        for name in names:
            if name not in rank and nodes[name].definition.has_effect:
                raise Refused(f"node {name}: marked for {cluster}, but not compiled with it")
        found[cluster] = _in_order([nodes[name] for name in names], rank)
    return found


def translation_order(graph: graph_pb2.GraphDef) -> list[str]:
    """Nodes of a cluster's graph in the order in which XLA's compiler translates them.

    It is the reverse post-order of a depth-first search from the source node; the
    successors of a node are visited by name, last to first (``GraphCompiler::Compile``:
    "XLA requires determinism, generate a stable ordering from DFS"). This function is
    our own implementation; `tests/executors/test_tensorflow_clusters.py` compares it
    with the values that TensorFlow's clusters compute.
    """
    source = ""
    followers: dict[str, set[str]] = {}
    for node in graph.node:
        inputs = {edge.lstrip("^").partition(":")[0] for edge in node.input}
        for each in inputs or {source}:
            followers.setdefault(each, set()).add(node.name)
    left: list[str] = []
    seen: set[str] = set()
    stack = [(source, False)]
    while stack:
        name, leave = stack.pop()
        if leave:
            left.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack += ((follower, False) for follower in sorted(followers.get(name, ())))
    return left[-2::-1]  # without the source


def _marked(folder: Path) -> graph_pb2.GraphDef:
    """The dump of the race's graph, with nodes marked for compilation."""
    for path in sorted(folder.glob("mark_for_compilation*.pbtxt")):
        graph = _parse(path)
        if any(node.name == RACE for node in graph.node):
            return graph
    raise AssertionError(f"TensorFlow dumped no graph with {RACE!r}; is TF_XLA_FLAGS set?")


def _translated(folder: Path, cluster: str) -> list[str]:
    (path,) = folder.glob(f"xla_compile_graph_{cluster}_*_XlaCompiledKernel*.pbtxt")
    return translation_order(_parse(path))


def _parse(path: Path) -> graph_pb2.GraphDef:
    return text_format.Parse(path.read_text(encoding="utf-8"), graph_pb2.GraphDef())


def _in_order(members: list[Node], rank: Mapping[str, int]) -> list[str]:
    """A topological order of the members; the lower rank goes first among ready nodes.

    A member without a rank was folded into a constant, and goes as early as possible.
    """
    names = {node.name for node in members}
    waits = {node.name: names.intersection((*node.inputs, *node.after)) for node in members}
    ready = [(rank.get(name, -1), name) for name, above in waits.items() if not above]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, done = heapq.heappop(ready)
        order.append(done)
        for name, above in waits.items():
            if done in above:
                above.remove(done)
                if not above:
                    heapq.heappush(ready, (rank.get(name, -1), name))
    return order
