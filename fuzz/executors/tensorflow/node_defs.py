"""Single TensorFlow nodes: an op of the test as a ``NodeDef``, and what writes them down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tensorflow.core.framework import node_def_pb2

from litmusfuzz.corpus.model import Mutex, Variable
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, CountAttrs, MomentumAttrs, RowsAttrs, SliceAttrs
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    from tensorflow.core.framework import graph_pb2

    from litmusfuzz.corpus.model import LitmusTest, Node, Queue, Resource
    from litmusfuzz.corpus.ops import Nested

# The numbers of TensorFlow's enum DataType.
DATA_TYPES: Final = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, BOOL: 10}

# How TensorFlow calls the attribute that holds an op's dtype; None if it has
# none. Also the ops that are one node: TensorFlow 2.21 has CPU kernels for each
# of them in every dtype that `corpus.ops` permits, as the tests check one by one.
_TYPE_ATTR: Final[dict[str, str | None]] = {
    "NoOp": None,
    **dict.fromkeys(("Identity", "Neg", "Relu", "AddV2", "Sub", "Mul", "Maximum", "Minimum"), "T"),
    **dict.fromkeys(("Less", "Equal", "Select", "ReluGrad", "MatMul"), "T"),
    **dict.fromkeys(("Const", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"), "dtype"),
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
}
_HELPERS: Final = {
    "VarHandleOp": "dtype",
    "FIFOQueueV2": "component_types",
    **dict.fromkeys(("Pack", "ConcatV2", "Digamma", "Slice", "Reshape"), "T"),
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
    """A node of the test, and the constants among its helpers."""

    node: Node
    proto: node_def_pb2.NodeDef
    constants: tuple[node_def_pb2.NodeDef, ...]


class Emitter:
    """Appends nodes to a GraphDef."""

    def __init__(self, graph_def: graph_pb2.GraphDef) -> None:
        self._nodes = graph_def.node

    def node(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        inputs: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Emit a node; its name. `device` is as tests have it, "" for any."""
        node = self._nodes.add()
        node.MergeFrom(template)
        node.name = name
        node.input.extend(inputs)
        if device:
            node.device = f"/device:{device.upper()}"
        return name

    def helper(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        inputs: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Emit a node that XLA may not take into a cluster: it is none of the test's."""
        self.node(name, template, inputs, device)
        self._nodes[-1].attr["_XlaCompile"].b = False
        return name

    def handle(
        self,
        name: str,
        template: node_def_pb2.NodeDef,
        resource: str,
        gate: Iterable[str] = (),
        device: str = "",
    ) -> str:
        """Emit a handle; all handles of one `resource` stand for the same."""
        self.helper(name, template, gate, device)
        self._nodes[-1].attr["shared_name"].s = resource.encode()
        return name


def line(test: LitmusTest, node: Node) -> Line:
    """Lower one node; data inputs of an effect: its handles, `constants`, its operands.

    Raises
    ------
    Refused
        Naming the op.
    """
    op = {"Send": "Identity", "Recv": "Identity"}.get(node.op, node.op)
    if op not in _TYPE_ATTR:
        raise Refused(f"op {node.op} (node {node.name})")
    dtype = ""
    if node.resources:
        resources: tuple[Variable | Queue, ...] = (*test.variables, *test.queues)
        dtype = next(each.dtype for each in resources if each.name == node.resources[0])
    elif node.inputs:
        kind = test.types[node.inputs[-1]]  # the last: a Select's first is its condition
        assert kind is not None
        dtype = kind.dtype
    result = typed(op, dtype) if dtype else proto(op)
    constants: tuple[node_def_pb2.NodeDef, ...] = ()
    attrs = node.attrs
    if isinstance(attrs, ConstAttrs):
        result = const(literal(attrs.value, attrs.shape, attrs.dtype, whole=test.whole))
    elif isinstance(attrs, RowsAttrs):
        indices = np.array(attrs.indices, np.int32)
        constants = (const(indices[:, None] if "Nd" in op else indices),)
        result.attr["Tindices"].type = DATA_TYPES["int32"]
    elif isinstance(attrs, SliceAttrs):
        # One entry, for the rows; TensorFlow takes the other axes whole.
        constants = tuple(
            const(np.array([v], np.int32)) for v in (attrs.begin, attrs.end, attrs.strides)
        )
        result.attr["Index"].type = DATA_TYPES["int32"]
        if attrs.strides != 1:
            # TensorFlow would cluster it, and fail: "Strides != 1 or -1 are not yet implemented".
            result.attr["_XlaCompile"].b = False
    elif isinstance(attrs, MomentumAttrs):
        result.attr["use_nesterov"].b = attrs.use_nesterov
    elif isinstance(attrs, CountAttrs):
        constants = (const(np.array(attrs.count, np.int32)),)
    return Line(node, result, constants)


def literal(value: Nested, shape: tuple[int, ...], dtype: str, *, whole: bool) -> npt.NDArray[Any]:
    """A literal as an array: one for each row is spread over the row's lanes.

    Returns
    -------
    numpy.ndarray
        Of that shape; an int gives a view whose elements share memory.
    """
    array = np.array(value, dtype)
    if array.ndim and not whole:
        array = array.reshape(-1, *(1,) * (len(shape) - 1))
    return np.broadcast_to(array, shape)


def proto(op: str) -> node_def_pb2.NodeDef:
    """A node without attributes."""
    return node_def_pb2.NodeDef(op=op)


def typed(op: str, dtype: str) -> node_def_pb2.NodeDef:
    """A node that works on values of one dtype."""
    result = proto(op)
    name = _HELPERS.get(op) or _TYPE_ATTR[op]
    if name in _LISTS:
        result.attr[name].list.type.append(DATA_TYPES[dtype])
    elif name:
        result.attr[name].type = DATA_TYPES[dtype]
    return result


def handle(resource: Resource) -> node_def_pb2.NodeDef:
    """What gives a resource to an op; the name that it is shared by is missing."""
    if isinstance(resource, Mutex):
        return proto("MutexV2")
    if isinstance(resource, Variable):
        result = typed("VarHandleOp", resource.dtype)
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
    """A constant."""
    dtype = array.dtype.name
    result = typed("Const", dtype)
    tensor = result.attr["value"].tensor
    tensor.dtype = DATA_TYPES[dtype]
    tensor.tensor_shape.SetInParent()
    for extent in array.shape:
        tensor.tensor_shape.dim.add().size = extent
    flat = array.ravel()
    # One element stands for all: TensorFlow repeats the last. It keeps large
    # lanes out of the message, which is copied for each copy of the test.
    content = flat[:1] if (flat == flat[:1]).all() else flat
    if content.size == 1:
        getattr(tensor, _VALUE_FIELD[dtype]).append(content[0].item())
    else:
        tensor.tensor_content = content.tobytes()
    return result
