"""Graph rewrite that moves the clusters of a built graph into functions that XLA compiles.

Each cluster of the test is a function with ``jit_compile``, traced in SSA order and compiled by XLA
as a whole. The values that a cluster computes depend only on the order of its ops on each variable,
which tracing adds (automatic control dependencies), so that the function computes exactly what the
semantics says of the cluster.

The call replaces the nodes: edges into any of them lead to the call, and edges out of any
of them leave from the call, as for a cluster. The rewrite needs shared handles, which means
one VarHandleOp for each variable and copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import handle_data_util

from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorflow.core.framework import function_pb2

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built


@dataclass(frozen=True, slots=True)
class _OutlinedPart:
    """Nodes that one call replaces.

    Parameters
    ----------
    call, function : str
        Names. Calls of the same function differ in the `prefix` of their nodes' names.
    prefix : str
    nodes : tuple of str
        In the order of tracing.
    """

    call: str
    function: str
    prefix: str
    nodes: tuple[str, ...]


def as_compiled(built: Built, test: LitmusTest) -> Built:
    """Replace each cluster of each copy by a call of a function that XLA compiles.

    Parameters
    ----------
    built : Built
        Built with shared handles.
    test : LitmusTest
        The test with clusters, none of them inside a body.
    """
    constants: dict[str, list[str]] = {}
    for node in built.graph_def.node:
        owner, _, name = node.name.rpartition("/")
        if name.startswith("constant"):
            constants.setdefault(owner, []).append(node.name)
    parts = []
    prefixes = prefixes_of(built.graph_def)
    for cluster in test.clusters:
        for prefix in prefixes[cluster.members[0]]:
            members = [f"{prefix}{name}" for name in cluster.members]
            nodes = tuple(name for each in members for name in (*constants.get(each, ()), each))
            name = f"{cluster.name}_function"
            parts.append(_OutlinedPart(f"{prefix}{cluster.name}", name, prefix, nodes))
    return replace(built, graph_def=_outlined(built.graph_def, parts))


def prefixes_of(graph_def: graph_pb2.GraphDef) -> dict[str, list[str]]:
    """Map each node name of the test to its name prefixes (copy and run) in the GraphDef."""
    found: dict[str, list[str]] = {}
    for node in graph_def.node:
        if match := re.fullmatch(r"(c\d+/(?:run\.\w+/)?)(\w+)", node.name):
            found.setdefault(match[2], []).append(match[1])
    return found


def _outlined(graph_def: graph_pb2.GraphDef, parts: Sequence[_OutlinedPart]) -> graph_pb2.GraphDef:
    """The graph in which a call replaces the nodes of each part."""
    part_of = {name: part for part in parts for name in part.nodes}
    nodes = {node.name: node for node in _with_handle_inputs_moved(graph_def, part_of)}
    # By function, over all copies: model code uses other values in each.
    used_outside: dict[str, set[str]] = {part.function: set() for part in parts}
    for node in nodes.values():
        for source in node.input:
            if source in part_of and part_of.get(node.name) is not part_of[source]:
                part = part_of[source]
                used_outside[part.function].add(source.removeprefix(part.prefix))
    output_of = {
        f"{part.prefix}{name}": f"{part.call}:{index}"
        for part in parts
        for index, name in enumerate(sorted(used_outside[part.function]))
    }
    found = graph_pb2.GraphDef(versions=graph_def.versions, library=graph_def.library)
    functions: dict[str, function_pb2.FunctionDef] = {}

    def rewired(inputs: Iterable[str]) -> list[str]:
        data = [output_of.get(source, source) for source in inputs if source[0] != "^"]
        control = [source for source in inputs if source[0] == "^"]
        after = (f"^{part_of[s[1:]].call}" if s[1:] in part_of else s for s in control)
        return data + list(dict.fromkeys(after))

    for node in nodes.values():
        if node.name not in part_of:
            new = found.node.add()
            new.CopyFrom(node)
            new.ClearField("input")
            new.input.extend(rewired(node.input))
    for part in parts:
        inside = [nodes[name] for name in part.nodes]
        mine = set(part.nodes)
        sources = dict.fromkeys(s for n in inside for s in n.input)
        given = [s for s in sources if s.lstrip("^").partition(":")[0] not in mine]
        data = [source for source in given if source[0] != "^"]
        if part.function not in functions:
            bare = [_without_prefix(part.prefix, node) for node in inside]
            names = [source.removeprefix(part.prefix) for source in data]
            results = sorted(used_outside[part.function])
            functions[part.function] = _traced(
                dict(zip(names, (nodes[s.partition(":")[0]] for s in data), strict=True)),
                bare,
                results,
            )
        call = found.node.add()
        call.CopyFrom(_call(functions[part.function]))
        call.name = part.call
        # All are on one device.
        call.device = next((node.device for node in inside if node.device), "")
        call.input.extend(rewired(given))
    found.library.function.extend(functions.values())
    return found


def _with_handle_inputs_moved(
    graph_def: graph_pb2.GraphDef, part_of: Mapping[str, _OutlinedPart]
) -> Iterable[node_def_pb2.NodeDef]:
    """Yield the nodes, changed so that a call waits for exactly what its nodes waited for.

    A handle becomes an argument of the call, so its control inputs move to the ops that use
    it. A padding op (the `.../padding` op that noise adds beside a node) no longer waits for
    nodes of the part it belongs to.
    """
    handle_control_inputs = {
        node.name: [source for source in node.input if source[0] == "^"]
        for node in graph_def.node
        if node.op == "VarHandleOp"
    }
    arguments = {
        s
        for node in graph_def.node
        if node.name in part_of
        for s in node.input
        if s in handle_control_inputs
    }
    for old in graph_def.node:
        node = node_def_pb2.NodeDef()
        node.CopyFrom(old)
        if node.name in arguments:
            node.ClearField("input")
        elif node.name in part_of:
            for source in old.input:
                node.input.extend(handle_control_inputs.get(source, ()))
        elif (part := part_of.get(node.name.removesuffix("/padding"))) is not None:
            node.ClearField("input")
            node.input.extend(s for s in old.input if part_of.get(s.lstrip("^")) is not part)
        yield node


def _without_prefix(prefix: str, node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    bare = node_def_pb2.NodeDef()
    bare.CopyFrom(node)
    bare.name = node.name.removeprefix(prefix)
    bare.ClearField("input")
    for source in node.input:
        control = "^" if source[0] == "^" else ""
        bare.input.append(control + source.lstrip("^").removeprefix(prefix))
    return bare


def type_of(node: node_def_pb2.NodeDef, number: int = 0) -> tf.DType:
    """Dtype of an output of a node; all outputs of an op whose number varies have one dtype."""
    definition = op_def_registry.get(node.op)
    output = definition.output_arg[min(number, len(definition.output_arg) - 1)]
    if output.type:
        return tf.as_dtype(output.type)
    name = output.type_attr or output.type_list_attr
    given = {each.name: each.default_value for each in definition.attr}[name]
    if name in node.attr:  # `node.attr[...]` would add a missing attribute
        given = node.attr[name]
    return tf.as_dtype(given.type if output.type_attr else given.list.type[number])


def _traced(
    arguments: Mapping[str, node_def_pb2.NodeDef],
    nodes: Sequence[node_def_pb2.NodeDef],
    results: Sequence[str],
) -> function_pb2.FunctionDef:
    """The FunctionDef that `tf.function` makes when it traces these nodes in this order."""

    def program(*given: tf.Tensor) -> list[tf.Tensor]:
        graph: Any = tf.compat.v1.get_default_graph()
        tensors = dict(zip(arguments, given, strict=True))
        for name, node in arguments.items():
            if node.op == "VarHandleOp":  # shape inference needs the dtype and shape
                shape = tf.TensorShape(node.attr["shape"].shape)
                dtype = tf.as_dtype(node.attr["dtype"].type)
                known = handle_data_util.create_handle_data(shape, dtype)
                handle_data_util.set_handle_data(tensors[name], known)
        ops: dict[str, tf.Operation] = {}
        for node in nodes:
            data = [tensors[source] for source in node.input if source[0] != "^"]
            after = [ops[s[1:]] for s in node.input if s[0] == "^" and s[1:] in ops]
            with tf.control_dependencies(after), tf.device(None):
                op = graph._create_op_internal(
                    node.op, data, name=f"{node.name}/", attrs=dict(node.attr)
                )
            ops[node.name] = op
            for number, output in enumerate(op.outputs):
                tensors[f"{node.name}:{number}" if number else node.name] = output
        return [tensors[name] for name in results]

    function = tf.function(program, autograph=False, jit_compile=True)
    given = [
        tf.TensorSpec([] if kind == tf.resource else None, kind)
        for name, node in arguments.items()
        for kind in [type_of(node, int(name.partition(":")[2] or 0))]
    ]
    return function.get_concrete_function(*given).function_def


def _call(function: function_pb2.FunctionDef) -> node_def_pb2.NodeDef:
    call = node_def_pb2.NodeDef(op="StatefulPartitionedCall")
    call.attr["f"].func.name = function.signature.name
    call.attr["Tin"].list.type.extend(each.type for each in function.signature.input_arg)
    call.attr["Tout"].list.type.extend(each.type for each in function.signature.output_arg)
    call.attr["_XlaMustCompile"].b = True
    return call
