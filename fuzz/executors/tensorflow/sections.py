"""Front end that writes critical sections with the real `tf.CriticalSection`.

`CriticalSection.execute` acquires the lock when all inputs of the section's ops are
ready, and returns their results when the lock is free again. This adds edges: from each
predecessor of a member to the acquire, and from the release to each successor of a
member. Added edges only remove total orders, so that executions that complete still
keep the guarantee. Blocked executions may not: in a test with queues, a section is
refused if an added edge could make an execution block.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from litmusfuzz.corpus.model import all_nodes, bodies, head, predecessors
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow.functions import prefixes_of, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tensorflow.core.framework import node_def_pb2

    from litmusfuzz.corpus.model import Graph, LitmusTest, Node
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built

_HELPERS: Final = (
    *("work", "padding", "var", "accum", "queue", "accumulator", "all"),
    *("constant0", "constant1", "constant2"),
)
"""Suffixes of the helpers that `emission` writes before an op, in its order."""


def check(test: LitmusTest) -> None:
    """Refuse a test with sections that `tf.CriticalSection` cannot express.

    Raises
    ------
    Refused
        The message names a node of the section.
    """
    for graph in test.graphs:
        _check_places(graph)
        home = {name: node.name for node in graph.nodes for name in node.members}
        before: dict[str, set[str]] = {}
        for node in graph.nodes:
            whole = home.get(node.name, node.name)
            sources = {home.get(source, source) for source in _sources(node)}
            before.setdefault(whole, set()).update(sources - {whole})
        try:
            TopologicalSorter(before).prepare()
        except CycleError:
            raise Refused("an op between the members of a section, or of two") from None
        if test.queues or test.accumulators:
            _check_edges(graph, home)


def as_written(built: Built, test: LitmusTest) -> Built:
    """Replace each section of each copy by one that `tf.CriticalSection` makes.

    Parameters
    ----------
    built : Built
    test : LitmusTest
        A test that `check` accepts.
    """
    nodes = {node.name: node for node in built.graph_def.node}
    found = graph_pb2.GraphDef(versions=built.graph_def.versions)
    prefixes = prefixes_of(built.graph_def)
    replaced: set[str] = set()
    made: list[tuple[list[node_def_pb2.NodeDef], set[str]]] = []
    moved: dict[str, str] = {}
    for graph in test.graphs:
        order = {node.name: node for node in graph.nodes}
        for section in graph.nodes:
            members = [each for name, each in order.items() if name in section.members]
            for prefix in prefixes[section.name] if members else ():
                new, inside, outputs = _executed(nodes, prefix, section, members)
                made.append((new, inside))
                replaced |= inside
                moved |= outputs
    made.append(([node for name, node in nodes.items() if name not in replaced], set()))
    for new, inside in made:
        for node in new:
            copied = found.node.add()
            copied.CopyFrom(node)
            copied.input[:] = [
                source if source.lstrip("^") in inside else _moved(source, moved)
                for source in node.input
            ]
    return replace(built, graph_def=found)


def _executed(
    nodes: Mapping[str, node_def_pb2.NodeDef],
    prefix: str,
    section: Node,
    members: Iterable[Node],
) -> tuple[list[node_def_pb2.NodeDef], set[str], dict[str, str]]:
    """New nodes of one section, the nodes they replace, and the new names of the results."""
    name = f"{prefix}{section.name}"
    handle, lock = nodes[f"{name}/mutex"], nodes[f"{name}/lock"]
    inside: dict[str, node_def_pb2.NodeDef] = {}
    for member in members:
        helpers = (f"{prefix}{member.name}/{helper}" for helper in _HELPERS)
        for each in (*helpers, f"{prefix}{member.name}"):
            if each in nodes:
                inside[each] = nodes[each]
    replaced = {*inside, name, handle.name, lock.name}
    given = dict.fromkeys(
        source
        for node in (*inside.values(), lock)
        for source in node.input
        if source.lstrip("^").partition(":")[0] not in replaced
    )
    graph: Any = tf.Graph()
    ops: dict[str, tf.Operation] = {}
    with graph.as_default():
        for source in sorted(given, key=lambda each: each[0] == "^"):  # data first
            if source[0] != "^":
                argument = tf.compat.v1.placeholder(type_of(nodes[source]), name=f"{source}/")
                ops[source] = argument.op
            elif source[1:] not in ops:
                ops[source[1:]] = tf.raw_ops.NoOp(name=f"{source[1:]}/")
        outside = set(ops)

        def body() -> list[Any]:
            for node in inside.values():
                data = [_output(ops, source) for source in node.input if source[0] != "^"]
                after = [ops[s[1:]] for s in node.input if s[0] == "^" and s[1:] in ops]
                with tf.control_dependencies(after), tf.device(node.device or None):
                    ops[node.name] = graph._create_op_internal(
                        node.op, data, name=f"{node.name}/", attrs=dict(node.attr)
                    )
            shown = (ops[f"{prefix}{member.name}"] for member in members)
            return [op.outputs[0] if op.outputs else op for op in shown]

        waits = [ops[source[1:]] for source in lock.input if source[0] == "^"]
        shared = handle.attr["shared_name"].s.decode()
        with tf.name_scope(f"{name}/"), tf.device(handle.device or None):
            made = tf.CriticalSection(name="mutex", shared_name=shared)
            with tf.control_dependencies(waits):
                outputs = made.execute(body, name="execute")
        with tf.control_dependencies(outputs):
            tf.raw_ops.NoOp(name=f"{name}/")
    new = [node for node in graph.as_graph_def().node if node.name not in outside]
    names = (f"{prefix}{member.name}" for member in members)
    given_out = (getattr(output, "op", output).name for output in outputs)
    return new, replaced, dict(zip(names, given_out, strict=True))


def _output(ops: Mapping[str, tf.Operation], source: str) -> tf.Tensor:
    """The output of an op that an input names, as ``op:number``."""
    name, _, number = source.partition(":")
    return ops[name].outputs[int(number or 0)]


def _moved(source: str, moved: Mapping[str, str]) -> str:
    control = "^" if source[0] == "^" else ""
    return control + moved.get(source.lstrip("^"), source.lstrip("^"))


def _sources(node: Node) -> set[str]:
    """Nodes of the same graph that have edges to a node."""
    return set(map(head, (*node.inputs, *node.after)))


def _check_places(graph: Graph) -> None:
    """Refuse nested sections, and sections that are inside a body or contain one."""
    taken: set[str] = set()
    for node in graph.nodes:
        if any(each.members for _, body in bodies(node) for each in all_nodes(body.nodes)):
            raise Refused(f"a section inside a body ({node.name})")
        mine = set(node.members)
        if taken & mine:
            raise Refused(f"nested sections ({node.name})")
        taken |= mine
    for node in graph.nodes:
        if node.name in taken and bodies(node):
            raise Refused(f"a loop or conditional in a section ({node.name})")


def _check_edges(graph: Graph, home: Mapping[str, str]) -> None:
    """Refuse edges of members that would delay the acquire, or follow the release."""
    above = {node.name: names for node, names in predecessors(graph)}
    effects = {node.name for node in graph.effects}
    for node in graph.nodes:
        for source in _sources(node):
            here, there = home.get(node.name), home.get(source)
            if here == there:
                continue
            late = effects & {source, *above[source]}
            if here and late - above[here]:
                edge = "an edge into a member of a section, in a test with queues"
                raise Refused(f"{edge} ({node.name})")
            if there:
                edge = "an edge out of a member of a section, in a test with queues"
                raise Refused(f"{edge} ({source})")
