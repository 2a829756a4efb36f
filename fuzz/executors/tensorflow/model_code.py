"""Adds neural-network code to a test's graph, because grappler's patterns match such code.

In this module "model" means a neural network, not a memory model. The code consists of
layers, losses, reductions and embedding lookups. Its inputs are values of the test's
nodes, and constants. Its result is assigned to a new variable, like a metric, since
grappler would otherwise remove the code. Nothing reads that variable. Only the end of
the run waits for the assignment, so that no node of the test waits for this code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from tensorflow.core.framework import graph_pb2

from litmusfuzz.corpus.ops import BOOL
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.tensorflow.functions import prefixes_of
from litmusfuzz.fuzz.executors.tensorflow.node_defs import DATA_TYPES, Emitter, const, proto, typed

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.ops import TensorType
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built

_WIDEST: Final = 64
"""Largest input of a layer, in elements; a larger value is replaced by its mean."""

_FLOAT: Final = "float32"
_UNITS: Final = 4


def surrounded(built: Built, test: LitmusTest, rng: np.random.Generator) -> Built:
    """The graph with model code after about half of the numbers that it computes."""
    graph_def = graph_pb2.GraphDef()
    graph_def.CopyFrom(built.graph_def)
    prefixes = prefixes_of(graph_def)
    targets = {node.name: node for node in graph_def.node}
    emit = Emitter(graph_def)
    for unit in built.units:
        for node in unit.graph.nodes:
            kind = test.types[node.name]
            if kind is None or not kind.is_tensor or kind.dynamic or kind.dtype == BOOL:
                continue
            if node.definition.constant:
                continue
            for prefix in prefixes[node.name]:
                # Where each run has its own nodes, skip the nodes of other runs.
                mine = "/run." not in prefix or prefix.endswith(f"/run.{unit.runs[0]}/")
                if mine and rng.random() < 0.5:
                    code = _Code(emit, f"{prefix}{node.name}/model", rng)
                    end = code.kept(code.of(f"{prefix}{node.name}", kind))
                    targets[unit.target].input.append(f"^{end}")
    return replace(built, graph_def=graph_def)


class _Code:
    """Emits model code whose node names begin with one prefix."""

    def __init__(self, emit: Emitter, name: str, rng: np.random.Generator) -> None:
        self.emit = emit
        self.name = name
        self.rng = rng

    def of(self, value: str, kind: TensorType) -> str:
        """The loss, a scalar, of model code that `value` is fed to."""
        size = math.prod(kind.shape)
        if kind.dtype != _FLOAT:
            cast = proto("Cast")
            cast.attr["SrcT"].type = DATA_TYPES[kind.dtype]
            cast.attr["DstT"].type = DATA_TYPES[_FLOAT]
            value = self.emit.node(f"{self.name}/cast", cast, [value])
        value = self.op("flat", "Reshape", value, self.const("shape", np.array([1, size])))
        if size > _WIDEST:
            value, size = self.reduced("narrow", "Mean", value, [1], keep=True), 1
        if self.rng.random() < 0.5:
            table = self.const("table", np.ones((8, size), _FLOAT))
            indices = self.const("indices", self.rng.integers(0, 8, 3))
            found = proto("GatherV2")
            for attr, dtype in (("Tparams", _FLOAT), ("Tindices", "int32"), ("Taxis", "int32")):
                found.attr[attr].type = DATA_TYPES[dtype]
            axis = self.const("axis", np.array(0))
            looked = self.emit.node(f"{self.name}/lookup", found, [table, indices, axis])
            value = self.op("embedded", "AddV2", looked, value)
        else:
            value = self.op("scaled", "Mul", value, self.const("one", np.ones((), _FLOAT)))
        for layer in range(int(self.rng.integers(1, 3))):
            weights = self.const(f"weights{layer}", np.ones((size, _UNITS), _FLOAT))
            product = self.op(f"product{layer}", "MatMul", value, weights)
            bias = self.const(f"bias{layer}", np.ones(_UNITS, _FLOAT))
            value = self.op(f"biased{layer}", "BiasAdd", product, bias)
            value, size = self.op(f"relu{layer}", "Relu", value), _UNITS
        label = np.eye(1, _UNITS, dtype=_FLOAT)
        if self.rng.random() < 0.5:
            labels = self.op("labels", "AddV2", self.const("label", label), value)
            loss = self.op("loss", "SoftmaxCrossEntropyWithLogits", value, labels)
            return self.reduced("mean", "Mean", loss, [0])
        loss = self.op("loss", "SquaredDifference", value, self.const("label", label))
        return self.reduced("sum", "Sum", loss, [0, 1])

    def kept(self, loss: str) -> str:
        """Assign the loss to a new variable; the name of the assignment."""
        template = proto("VarHandleOp")
        template.attr["dtype"].type = DATA_TYPES[_FLOAT]
        template.attr["shape"].shape.SetInParent()
        name = f"{self.name}/metric"
        handle = self.emit.handle(name, template, name)
        return self.emit.node(
            f"{self.name}/kept", typed("AssignVariableOp", _FLOAT), [handle, loss]
        )

    def op(self, name: str, op: str, *inputs: str) -> str:
        template = proto(op)
        template.attr["T"].type = DATA_TYPES[_FLOAT]
        return self.emit.node(f"{self.name}/{name}", template, inputs)

    def const(self, name: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        if value.dtype.kind == "i":
            value = value.astype(np.int32)
        return self.emit.node(f"{self.name}/{name}", const(value))

    def reduced(
        self, name: str, op: str, value: str, axes: list[int], *, keep: bool = False
    ) -> str:
        template = proto(op)
        template.attr["T"].type = DATA_TYPES[_FLOAT]
        template.attr["keep_dims"].b = keep
        axes_of = self.const(f"{name}/axes", np.array(axes))
        return self.emit.node(f"{self.name}/{name}", template, [value, axes_of])
