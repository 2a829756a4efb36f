"""A litmus test as a TensorFlow ``GraphDef``: renamed copies, each with its own noise.

The nodes and edges of the test become nodes and edges of TensorFlow, one for
one. Around them stand *helpers*: handles and index constants, which TensorFlow
needs, and padding. None may order two nodes that the test leaves unordered.
One rule sees to that:

    A helper leads to its own node and to nothing else, and what leads to it
    is its copy's start, other helpers of that node, or predecessors of that
    node in the test.

Every path between two nodes of one copy that goes through a helper is thus a
path of the test already. A copy's *start* precedes its helpers, as the source
of a run precedes all its instances, and comes after the copy before it: copies
run one after the other, and no edge leads back.

What makes outcomes differ
--------------------------
All of this was measured, and the order of magnitude is in the choice:

- *Copies in a row, not side by side.* A thread of TensorFlow's pool takes the
  newest of its own closures and steals the oldest of others, so that with many
  copies at once each thread works on a copy of its own, and ops of one copy
  seldom meet. With one copy at a time all threads fight over its ops: two
  scatters then tear 50 times as often, and IRIW shows its fifteen outcomes in
  the first thousands of copies.
- *A handle for each op, early or late.* TensorFlow counts handles as expensive:
  each goes to the pool as a closure of its own, and its op runs on the thread
  that finishes last. A handle that waits for nothing but the start (early) may
  come long after its op's predecessors, which leaves room for others in
  between; one that waits for them (late) runs the op at once. A handle shared
  by several ops would run them one after the other. Where XLA makes clusters
  they share one all the same: it takes no variable twice.
- *Padding in some copies only.* Padding spreads ops out, which gives rare
  orders; without it they collide, which gives torn values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

from corpus.ops import BOOL, ConstAttrs, MomentumAttrs, RowsAttrs, SliceAttrs, TensorType
from fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from corpus.graph import LitmusTest, Node, Variable
    from corpus.ops import Nested
    from fuzz.executors.protocol import Noise

# The numbers of TensorFlow's enum DataType.
DATA_TYPES: Final = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, BOOL: 10}

INIT: Final = "init"
RACE: Final = "race"

# How TensorFlow calls the attribute that holds an op's dtype; None if it has
# none. Also the ops that we lower: TensorFlow 2.21 has CPU kernels for each of
# them in every dtype that `corpus.ops` permits, as the tests check one by one.
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
}
_HELPERS: Final = {"VarHandleOp": "dtype", "Pack": "T", "Digamma": "T"}

_VALUE_FIELD: Final = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int64": "int64_val",
    BOOL: "bool_val",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor that a run fetches: values of one type, stacked along axis 0.

    `names` are in stacking order, each with all copies: row ``i * copies + c``
    is ``names[i]`` of copy c.
    """

    tensor: str
    type: TensorType
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A GraphDef, and what to fetch from it.

    Three runs make a step: target `INIT`; target `RACE` with `observed`;
    `final`.
    """

    graph_def: graph_pb2.GraphDef
    observed: tuple[Shown, ...]
    final: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A node of the test, and the constants among its helpers."""

    node: Node
    proto: node_def_pb2.NodeDef
    sources: tuple[str, ...]
    constants: tuple[node_def_pb2.NodeDef, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A test, lowered except for names, order and noise."""

    test: LitmusTest
    lines: tuple[_Line, ...]
    handles: Mapping[str, node_def_pb2.NodeDef]
    sinks: tuple[str, ...]
    observed: tuple[tuple[TensorType, tuple[str, ...]], ...]
    variables: tuple[tuple[TensorType, tuple[str, ...]], ...]


def lower(test: LitmusTest) -> Template:
    """Lower what all copies of a test have in common.

    Raises
    ------
    Refused
        Naming the op or the device that is not supported.
    """
    for feature in sorted(test.features):
        raise Refused(feature)
    nodes = test.graph.nodes
    for node in nodes:
        if node.op not in _TYPE_ATTR:
            raise Refused(f"op {node.op} (node {node.name})")
    for variable in test.variables:
        if variable.device not in ("", "cpu:0"):
            raise Refused(f"device {variable.device} (variable {variable.name}); only cpu:0")
    followed = {source for node in nodes for source in (*node.inputs, *node.after)}
    return Template(
        test,
        tuple(_line(test, node) for node in nodes),
        {v.name: _handle_proto(v) for v in test.variables},
        tuple(node.name for node in nodes if node.name not in followed),
        _by_type(test, test.observe),
        _by_type(test, (v.name for v in test.variables)),
    )


def build(
    template: Template, noise: Noise, rng: np.random.Generator, *, share_handles: bool = False
) -> Built:
    """One graph of `noise.copies` copies, with order and padding drawn from `rng`.

    Parameters
    ----------
    share_handles : bool
        Whether the ops of one copy on one variable have one handle: XLA refuses
        a cluster that gets two ("Duplicate variable passed to XLA cluster").
    """
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    emit = _Emitter(graph_def)
    test = template.test
    for variable in test.variables:
        value = literal(variable.init, variable.shape, variable.dtype, whole=test.whole)
        emit.helper(f"init/{variable.name}", _const(value))
    copies = [f"c{copy}" for copy in range(noise.copies)]
    for before, copy in zip(["", *copies], copies, strict=False):
        _build_variables(emit, template, copy, rng)
        _build_copy(emit, template, copy, before, noise, rng, share_handles=share_handles)
    # All nodes run: what has no successor is asked for, the rest it needs.
    sinks = (f"^{c}/{s}" for c in copies for s in template.sinks)
    emit.helper(RACE, _proto("NoOp"), sinks)
    sets = (f"^{c}/{v.name}/set" for c in copies for v in test.variables)
    emit.helper(INIT, _proto("NoOp"), sets)
    return Built(
        graph_def,
        _show(emit, "observed", template.observed, copies, ""),
        _show(emit, "final", template.variables, copies, "/get"),
    )


def side_by_side(template: Template, copies: int) -> graph_pb2.GraphDef:
    """Copies of a test and nothing else, to measure TensorFlow by; `build` is for testing.

    Copies do not wait for each other, each variable has one handle, and nothing is
    fetched. Target `INIT` sets the variables, `RACE` executes all copies.
    """
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    emit = _Emitter(graph_def)
    test = template.test
    names = [f"c{copy}" for copy in range(copies)]
    for copy in names:
        for variable in test.variables:
            name = f"{copy}/{variable.name}"
            handle = emit.handle(f"{name}/handle", template.handles[variable.name], name)
            content = literal(variable.init, variable.shape, variable.dtype, whole=test.whole)
            value = emit.node(f"{name}/init", _const(content))
            emit.node(f"{name}/set", _typed("AssignVariableOp", variable.dtype), (handle, value))
        for line in template.lines:
            name = f"{copy}/{line.node.name}"
            inputs = [f"{copy}/{resource}/handle" for resource in line.node.resources]
            for position, constant in enumerate(line.constants):
                inputs.append(emit.node(f"{name}/constant{position}", constant))
            inputs += (f"{copy}/{source}" for source in line.node.inputs)
            inputs += (f"^{copy}/{source}" for source in line.node.after)
            emit.node(name, line.proto, inputs)
    emit.node(RACE, _proto("NoOp"), (f"^{c}/{s}" for c in names for s in template.sinks))
    emit.node(INIT, _proto("NoOp"), (f"^{c}/{v.name}/set" for c in names for v in test.variables))
    return graph_def


class _Emitter:
    """Appends nodes to a GraphDef."""

    def __init__(self, graph_def: graph_pb2.GraphDef) -> None:
        self._nodes = graph_def.node

    def node(self, name: str, proto: node_def_pb2.NodeDef, inputs: Iterable[str] = ()) -> str:
        node = self._nodes.add()
        node.MergeFrom(proto)
        node.name = name
        node.input.extend(inputs)
        return name

    def helper(self, name: str, proto: node_def_pb2.NodeDef, inputs: Iterable[str] = ()) -> str:
        """Emit a node that XLA may not take into a cluster: it is none of the test's."""
        self.node(name, proto, inputs)
        self._nodes[-1].attr["_XlaCompile"].b = False
        return name

    def handle(
        self, name: str, proto: node_def_pb2.NodeDef, variable: str, gate: Iterable[str] = ()
    ) -> str:
        """Emit a handle; all handles of one `variable` stand for one resource."""
        self.helper(name, proto, gate)
        self._nodes[-1].attr["shared_name"].s = variable.encode()
        return name


def _build_variables(
    emit: _Emitter, template: Template, copy: str, rng: np.random.Generator
) -> None:
    """What sets the variables of a copy before its race, and gets them after it."""
    for variable in template.test.variables:
        name = f"{copy}/{variable.name}"
        handle = emit.handle(f"{name}/handle", template.handles[variable.name], name)
        value = f"init/{variable.name}"
        if rng.random() < 0.5:
            # An assignment takes over its value's buffer. A constant keeps its
            # own reference, so that the first update must copy; a computed
            # value is given away whole, so that it may work in place.
            value = emit.helper(f"{name}/owned", _typed("Maximum", variable.dtype), (value, value))
        emit.helper(f"{name}/set", _typed("AssignVariableOp", variable.dtype), (handle, value))
        emit.helper(f"{name}/get", _typed("ReadVariableOp", variable.dtype), (handle,))


def _build_copy(
    emit: _Emitter,
    template: Template,
    copy: str,
    before: str,
    noise: Noise,
    rng: np.random.Generator,
    *,
    share_handles: bool,
) -> None:
    """One copy's nodes; it starts when the copy `before` ("" for none) is done."""
    ended = [f"^{before}/{sink}" for sink in template.sinks] if before else []
    start = f"^{emit.helper(f'{copy}/start', _proto('NoOp'), ended)}"
    padding = noise.padding if rng.random() < 0.5 else 0
    lines = template.lines
    shared: dict[str, str] = {}
    if share_handles:
        for variable, proto in template.handles.items():
            name = f"{copy}/{variable}"
            shared[variable] = emit.handle(f"{name}/shared", proto, name, [start])
    for index in rng.permutation(len(lines)) if noise.shuffle else range(len(lines)):
        line = lines[index]
        node = line.node
        inputs = [f"{copy}/{source}" for source in node.inputs]
        waits = [f"^{copy}/{source}" for source in node.after]
        if node.definition.has_effect:
            gate = [start]
            if rng.random() < 0.5:  # late
                gate += (f"^{copy}/{source}" for source in line.sources)
            if padding and rng.random() < 0.5:
                gate = [f"^{_build_padding(emit, f'{copy}/{node.name}', padding, gate, rng)}"]
                waits += gate if shared else []
            if shared:
                handles = [shared[variable] for variable in node.resources]
            else:
                handles = _build_handles(emit, template, copy, node, gate)
            # Constants wait for nothing: they are there when the copy starts.
            constants = [
                emit.node(f"{copy}/{node.name}/constant{position}", constant)
                for position, constant in enumerate(line.constants)
            ]
            inputs = handles + constants + inputs
        emit.node(f"{copy}/{node.name}", line.proto, inputs + waits)


def _build_handles(
    emit: _Emitter, template: Template, copy: str, node: Node, gate: list[str]
) -> list[str]:
    """An op's own handles, in a line behind `gate`."""
    handles: list[str] = []
    for role, variable in zip(node.definition.roles, node.resources, strict=True):
        name = f"{copy}/{node.name}/{role}"
        handles.append(emit.handle(name, template.handles[variable], f"{copy}/{variable}", gate))
        gate = [f"^{name}"]
    return handles


def _build_padding(
    emit: _Emitter, name: str, padding: int, gate: list[str], rng: np.random.Generator
) -> str:
    """Pure work of random length, short ones as likely as long ones (log-uniform).

    Digamma costs about 10 ns an element, so that a short constant goes far.
    """
    constant = _typed("Const", "float32")
    tensor = constant.attr["value"].tensor
    tensor.dtype = DATA_TYPES["float32"]
    tensor.tensor_shape.dim.add().size = int(padding ** rng.random())
    tensor.float_val.append(1.5)
    work = emit.helper(f"{name}/work", constant)
    return emit.helper(f"{name}/padding", _typed("Digamma", "float32"), [work, *gate])


def _line(test: LitmusTest, node: Node) -> _Line:
    """Lower one node; data inputs of an effect: its handles, `constants`, its operands."""
    if node.definition.has_effect:
        dtype = next(v.dtype for v in test.variables if v.name == node.resources[0])
    elif node.inputs:
        kind = test.types[node.inputs[-1]]  # the last: a Select's first is its condition
        assert kind is not None
        dtype = kind.dtype
    else:
        dtype = ""
    proto = _typed(node.op, dtype) if dtype else _proto(node.op)
    constants: tuple[node_def_pb2.NodeDef, ...] = ()
    attrs = node.attrs
    if isinstance(attrs, ConstAttrs):
        proto = _const(literal(attrs.value, attrs.shape, attrs.dtype, whole=test.whole))
    elif isinstance(attrs, RowsAttrs):
        indices = np.array(attrs.indices, np.int32)
        constants = (_const(indices[:, None] if "Nd" in node.op else indices),)
        proto.attr["Tindices"].type = DATA_TYPES["int32"]
    elif isinstance(attrs, SliceAttrs):
        # One entry, for the rows; TensorFlow takes the other axes whole.
        constants = tuple(
            _const(np.array([v], np.int32)) for v in (attrs.begin, attrs.end, attrs.strides)
        )
        proto.attr["Index"].type = DATA_TYPES["int32"]
        if attrs.strides != 1:
            # TensorFlow would cluster it, and fail: "Strides != 1 or -1 are not yet implemented".
            proto.attr["_XlaCompile"].b = False
    elif isinstance(attrs, MomentumAttrs):
        proto.attr["use_nesterov"].b = attrs.use_nesterov
    return _Line(node, proto, tuple(dict.fromkeys((*node.inputs, *node.after))), constants)


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


def _by_type(
    test: LitmusTest, names: Iterable[str]
) -> tuple[tuple[TensorType, tuple[str, ...]], ...]:
    groups: dict[TensorType, list[str]] = {}
    for name in names:
        groups.setdefault(test.type_of(name), []).append(name)
    return tuple((kind, tuple(group)) for kind, group in groups.items())


def _show(
    emit: _Emitter,
    prefix: str,
    groups: Sequence[tuple[TensorType, tuple[str, ...]]],
    copies: Sequence[str],
    suffix: str,
) -> tuple[Shown, ...]:
    shown = []
    for position, (kind, names) in enumerate(groups):
        proto = _typed("Pack", kind.dtype)
        proto.attr["N"].i = len(names) * len(copies)
        inputs = (f"{copy}/{name}{suffix}" for name in names for copy in copies)
        tensor = emit.helper(f"{prefix}{position}", proto, inputs)
        shown.append(Shown(f"{tensor}:0", kind, names))
    return tuple(shown)


def _proto(op: str) -> node_def_pb2.NodeDef:
    return node_def_pb2.NodeDef(op=op)


def _typed(op: str, dtype: str) -> node_def_pb2.NodeDef:
    proto = _proto(op)
    name = _HELPERS.get(op) or _TYPE_ATTR[op]
    if name:
        proto.attr[name].type = DATA_TYPES[dtype]
    return proto


def _handle_proto(variable: Variable) -> node_def_pb2.NodeDef:
    proto = _typed("VarHandleOp", variable.dtype)
    shape = proto.attr["shape"].shape
    shape.SetInParent()  # present though empty, for a scalar
    for extent in variable.shape:
        shape.dim.add().size = extent
    return proto


def _const(array: npt.NDArray[Any]) -> node_def_pb2.NodeDef:
    dtype = array.dtype.name
    proto = _typed("Const", dtype)
    tensor = proto.attr["value"].tensor
    tensor.dtype = DATA_TYPES[dtype]
    tensor.tensor_shape.SetInParent()
    for extent in array.shape:
        tensor.tensor_shape.dim.add().size = extent
    flat = array.ravel()
    # One element stands for all: TensorFlow repeats the last. It keeps large
    # lanes out of the message, which is copied for each copy of the test.
    content = flat[:1] if (flat == flat[0]).all() else flat
    if content.size == 1:
        getattr(tensor, _VALUE_FIELD[dtype]).append(content[0].item())
    else:
        tensor.tensor_content = content.tobytes()
    return proto
