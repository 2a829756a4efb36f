"""Translates single ops of a test to TensorFlow ``NodeDef``s, and appends them to a GraphDef."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry

from litmusfuzz.corpus.model import Accumulator, Mutex, Variable
from litmusfuzz.corpus.ops import (
    ABSTRACT_OPS,
    BOOL,
    DTYPES,
    ConstAttrs,
    CountAttrs,
    MomentumAttrs,
    PlaceholderAttrs,
    PureAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
    expand,
)
from litmusfuzz.corpus.pure.resources import VARIABLE
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt
    from tensorflow.core.framework import graph_pb2

    from litmusfuzz.corpus.model import LitmusTest, Node, Queue, Resource
    from litmusfuzz.corpus.ops import Nested
    from litmusfuzz.corpus.pure.definition import AttrValue

# The numbers of TensorFlow's enum DataType.
DATA_TYPES: Final = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "int64": 9,
    BOOL: 10,
    **{TensorType(dtype, ()).handle.dtype: 20 for dtype in DTYPES},
    **{TensorType(dtype, ()).listed.dtype: 21 for dtype in (BOOL, *DTYPES)},
}

# The attribute that holds an op's dtype; None for an op without one. The table lists all
# ops of a test that become one node. TensorFlow 2.21 has CPU kernels for each of them in
# every dtype that `corpus.ops` permits; the tests check each pair.
_TYPE_ATTR: Final[dict[str, str | None]] = {
    **dict.fromkeys(("NoOp", "VarIsInitializedOp")),
    **dict.fromkeys(("Identity", "Neg", "Relu", "AddV2", "Sub", "Mul", "Maximum", "Minimum"), "T"),
    **dict.fromkeys(("Less", "Equal", "Select", "ReluGrad", "MatMul"), "T"),
    **dict.fromkeys(
        ("Placeholder", "Const", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"), "dtype"
    ),
    **dict.fromkeys((f"Assign{n}VariableOp" for n in ("", "Add", "Sub")), "dtype"),
    **dict.fromkeys(
        (f"ResourceScatter{n}" for n in ("Update", "Add", "Sub", "Mul", "Min", "Max")), "dtype"
    ),
    **dict.fromkeys((f"ResourceScatterNd{n}" for n in ("Update", "Add", "Sub")), "T"),
    "ResourceStridedSliceAssign": "T",
    **dict.fromkeys(
        (f"ResourceApply{n}" for n in ("GradientDescent", "Momentum", "KerasMomentum")), "T"
    ),
    **dict.fromkeys(("QueueEnqueueV2", "QueueEnqueueManyV2"), "Tcomponents"),
    **dict.fromkeys(("QueueDequeueV2", "QueueDequeueManyV2"), "component_types"),
    **dict.fromkeys(("QueueSizeV2", "QueueCloseV2")),
    **dict.fromkeys((f"ResourceAccumulator{n}Gradient" for n in ("Apply", "Take")), "dtype"),
    **dict.fromkeys(f"ResourceAccumulator{n}" for n in ("NumAccumulated", "SetGlobalStep")),
}
_HELPERS: Final = {
    "VarHandleOp": "dtype",
    "FIFOQueueV2": "component_types",
    "ResourceConditionalAccumulator": "dtype",
    **dict.fromkeys(("Pack", "ConcatV2", "Digamma", "Slice", "Reshape", "CheckNumerics"), "T"),
    **dict.fromkeys(("Enter", "Exit", "NextIteration", "Merge", "Switch"), "T"),
}
_LISTS: Final = ("component_types", "Tcomponents")

_VALUE_FIELD: Final = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int64": "int64_val",
    BOOL: "bool_val",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A node of the test as a NodeDef without inputs, and its constant helpers.

    Of an op with several outputs, `output` is the number of the one that is the node's value,
    `outputs` how many there are, and `alias` an Identity of the value's dtype. The op's NodeDef is
    the same for all nodes that are its results (`first_results`).
    """

    node: Node
    proto: node_def_pb2.NodeDef
    constants: tuple[node_def_pb2.NodeDef, ...]
    output: int = 0
    outputs: int = 0
    alias: node_def_pb2.NodeDef | None = None


class Emitter:
    """Appends nodes to a GraphDef.

    Parameters
    ----------
    graph_def : GraphDef
    clustered : bool
        False if XLA certainly clusters nothing of the graph.
    """

    def __init__(self, graph_def: graph_pb2.GraphDef, *, clustered: bool = True) -> None:
        self._nodes = graph_def.node
        self._clustered = clustered

    def node(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        inputs: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Append a node and return its name. `device` is spelled as in tests; "" for any."""
        node = self._nodes.add()
        node.MergeFrom(template)
        node.name = name
        node.input.extend(inputs)
        if device:
            node.device = f"/device:{device.upper()}"
        return name

    @property
    def last(self) -> node_def_pb2.NodeDef:
        """The node that was appended last."""
        return self._nodes[-1]

    def line(self, name: str, line: Line, inputs: Iterable[str] = (), device: str = "") -> str:
        """Append a lowered node; its name stands for the output that is its value."""
        if line.alias is None:
            return self.node(name, line.proto, inputs, device)
        self.node(whole(name), line.proto, inputs, device)
        return self.alias(name, line, name, device)

    def alias(self, name: str, line: Line, first: str, device: str = "") -> str:
        """Append the name of an output of an op that is lowered with the node `first`."""
        assert line.alias is not None
        return self.node(name, line.alias, (output_of(first, line),), device)

    def helper(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        inputs: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Append a helper, which XLA must not put into a cluster."""
        self.node(name, template, inputs, device)
        if self._clustered:
            self.last.attr["_XlaCompile"].b = False
        return name

    def keep_last(self) -> None:
        """Keep Grappler from replacing the last helper by a constant, which XLA may cluster.

        Constant folding leaves out a node with an attribute of TPUs, that is with "_tpu_" in its
        name (`HasTPUAttributes` in TensorFlow's constant_folding.cc).
        """
        if self._clustered:
            self.last.attr["_tpu_none"].b = True

    def handle(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        resource: str,
        gate: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Append a handle; all handles with the same `resource` share that resource."""
        self.helper(name, template, gate, device)
        self.last.attr["shared_name"].s = resource.encode()
        return name


def whole(name: str) -> str:
    """Name of the op with several outputs of which a node is the first result."""
    return f"{name}/all"


def output_of(first: str, line: Line) -> str:
    """The output that is the value of a node; the op is lowered with the node `first`."""
    return f"{whole(first)}:{line.output}" if line.output else whole(first)


def line(test: LitmusTest, node: Node) -> Line:
    """Lower one node.

    The data inputs of an op on a resource are its handles, `Line.constants`, then its
    operands.

    Raises
    ------
    Refused
        If the op is not supported; the message names it.
    """
    op = {"Send": "Identity", "Recv": "Identity"}.get(node.op, node.op)
    row = node.definition.meaning
    if row is not None and op not in ABSTRACT_OPS:
        if not (row.results or row.count):
            return Line(node, pure(test, node), ())
        assert isinstance(node.attrs, PureAttrs)
        alias = typed("Identity", test.type_of(node.name).dtype)
        return Line(node, pure(test, node), (), *row.outputs(node.attrs, len(node.inputs)), alias)
    if op not in _TYPE_ATTR:
        raise Refused(f"op {node.op} (node {node.name})")
    dtype = ""
    if node.resources:
        resources: list[Variable | Queue | Accumulator] = [*test.variables, *test.queues]
        resources += test.accumulators
        dtype = next(each.dtype for each in resources if each.name == node.resources[0])
    elif node.inputs:
        kind = test.types[node.inputs[-1]]  # not the first, the condition of a Select
        assert kind is not None
        dtype = kind.dtype
    result = typed(op, dtype) if dtype else proto(op)
    constants: tuple[node_def_pb2.NodeDef, ...] = ()
    attrs = node.attrs
    if isinstance(attrs, ConstAttrs):
        result = const(literal(attrs.value, attrs.shape, attrs.dtype, whole=test.whole))
    elif isinstance(attrs, PlaceholderAttrs):
        result = typed(op, attrs.dtype)
        shape = result.attr["shape"].shape
        shape.SetInParent()
        for extent in attrs.shape:
            shape.dim.add().size = extent
    elif isinstance(attrs, RowsAttrs):
        indices = np.array(attrs.indices, np.int32)
        constants = (const(indices[:, None] if node.definition.nd else indices),)
        result.attr["Tindices"].type = DATA_TYPES["int32"]
    elif isinstance(attrs, SliceAttrs):
        # The slice selects rows; TensorFlow takes the other axes whole.
        constants = tuple(
            const(np.array([v], np.int32)) for v in (attrs.begin, attrs.end, attrs.strides)
        )
        result.attr["Index"].type = DATA_TYPES["int32"]
        if attrs.strides != 1:
            # XLA fails on it in a cluster: "Strides != 1 or -1 are not yet implemented".
            result.attr["_XlaCompile"].b = False
    elif isinstance(attrs, MomentumAttrs):
        result.attr["use_nesterov"].b = attrs.use_nesterov
    elif isinstance(attrs, CountAttrs):
        constants = (const(np.array(attrs.count, np.int32)),)
    return Line(node, result, constants)


def pure(test: LitmusTest, node: Node) -> node_def_pb2.NodeDef:
    """Lower an op that the op table defines; TensorFlow's registry says how to write it."""
    row = node.definition.meaning
    assert row is not None
    names = node.inputs
    if node.definition.computed:
        names = (node.resources[0], *names)
    roles = row.roles(len(names))
    assert roles is not None
    dtypes = {role: test.type_of(name).dtype for role, name in zip(roles, names, strict=True)}
    result = registered(node.op, dtypes, roles, node.attrs)
    if not row.compiles or node.name in test.failing:  # XLA does not report that it fails
        result.attr["_XlaCompile"].b = False
    return result


_ELEMENT: Final = "element_dtype"


def registered(
    op: str, dtypes: Mapping[str, str], roles: Sequence[str], attrs: object
) -> node_def_pb2.NodeDef:
    """A NodeDef of an op in TensorFlow's registry, without inputs.

    Parameters
    ----------
    op : str
    dtypes : mapping of str to str
        Of each operand, by its name in the registry; of a variable by `VARIABLE`.
    roles : sequence of str
        The operand that each input is.
    attrs : PureAttrs or None
    """
    definition = op_def_registry.get(op)
    result = proto(op)
    for operand in definition.input_arg:
        if operand.type_attr:
            result.attr[operand.type_attr].type = DATA_TYPES[dtypes[operand.name]]
        if operand.number_attr:
            result.attr[operand.number_attr].i = roles.count(operand.name)
    if VARIABLE in dtypes:
        own = next(each.name for each in definition.attr if each.name in ("dtype", "T"))
        result.attr[own].type = DATA_TYPES[dtypes[VARIABLE]]
    values = dict(attrs.values) if isinstance(attrs, PureAttrs) else {}
    lists = [kind for name in dtypes.values() if (kind := TensorType(name, ())).is_list]
    for declared in definition.attr:
        if declared.name == _ELEMENT and lists:
            result.attr[_ELEMENT].type = DATA_TYPES[lists[0].stacked.dtype]
        elif declared.name in values:
            _set(result.attr[declared.name], declared.type, values[declared.name])
        elif declared.name not in result.attr:
            result.attr[declared.name].CopyFrom(declared.default_value)
    return result


def _set(attr: Any, kind: str, value: AttrValue) -> None:
    """Write the value of an attribute of the kind that the registry names."""
    if kind == "shape":
        attr.shape.SetInParent()
        for extent in value if isinstance(value, tuple) else ():
            attr.shape.dim.add().size = extent
    elif kind in ("list(int)", "list(float)"):
        attr.list.SetInParent()
        held = attr.list.i if kind == "list(int)" else attr.list.f
        held.extend(value if isinstance(value, tuple) else ())
    elif kind == "type":
        attr.type = DATA_TYPES[str(value)]
    elif kind == "string":
        attr.s = str(value).encode()
    else:
        setattr(attr, {"int": "i", "bool": "b", "float": "f"}[kind], value)


def literal(value: Nested, shape: tuple[int, ...], dtype: str, *, whole: bool) -> npt.NDArray[Any]:
    """A literal as an array of the given shape; a row's number fills all lanes of the row.

    Returns
    -------
    numpy.ndarray
        May be a broadcast view, whose elements share memory.
    """
    if whole and not isinstance(value, int):
        # Some rows may be bare numbers: [[1, 2], 3] is [[1, 2], [3, 3]].
        return np.array(expand(value, shape, whole=True), dtype).reshape(shape)
    array = np.array(value, dtype)
    if array.ndim:
        array = array.reshape(-1, *(1,) * (len(shape) - 1))
    return np.broadcast_to(array, shape)


def proto(op: str) -> node_def_pb2.NodeDef:
    """A NodeDef without attributes."""
    return node_def_pb2.NodeDef(op=op)


def typed(op: str, dtype: str) -> node_def_pb2.NodeDef:
    """A NodeDef whose dtype attribute is set."""
    result = proto(op)
    name = _HELPERS.get(op) or _TYPE_ATTR[op]
    if name in _LISTS:
        result.attr[name].list.type.append(DATA_TYPES[dtype])
    elif name:
        result.attr[name].type = DATA_TYPES[dtype]
    return result


def handle(resource: Resource) -> node_def_pb2.NodeDef:
    """A NodeDef that provides a resource's handle; the caller sets its shared name."""
    if isinstance(resource, Mutex):
        return proto("MutexV2")
    if isinstance(resource, Variable):
        result = typed("VarHandleOp", resource.dtype)
        shape = result.attr["shape"].shape
    elif isinstance(resource, Accumulator):
        result = typed("ResourceConditionalAccumulator", resource.dtype)
        result.attr["reduction_type"].s = b"SUM"
        shape = result.attr["shape"].shape
    else:
        result = typed("FIFOQueueV2", resource.dtype)
        shape = result.attr["shapes"].list.shape.add()
        result.attr["capacity"].i = resource.capacity
    shape.SetInParent()  # present though empty, for a scalar
    for extent in resource.shape:
        shape.dim.add().size = extent
    return result


def const(array: npt.NDArray[Any]) -> node_def_pb2.NodeDef:
    """A Const NodeDef."""
    dtype = array.dtype.name
    result = typed("Const", dtype)
    tensor = result.attr["value"].tensor
    tensor.dtype = DATA_TYPES[dtype]
    tensor.tensor_shape.SetInParent()
    for extent in array.shape:
        tensor.tensor_shape.dim.add().size = extent
    flat = array.ravel()
    # TensorFlow repeats the last element of a short list. One element keeps the message,
    # which exists once for each copy of the test, small.
    content = flat[:1] if (flat == flat[:1]).all() else flat
    if content.size == 1:
        getattr(tensor, _VALUE_FIELD[dtype]).append(content[0].item())
    else:
        tensor.tensor_content = content.tobytes()
    return result
