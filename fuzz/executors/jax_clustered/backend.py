"""Backend of the C++ core that computes with JAX: the Python functions that the core calls.

References
----------
`PythonBackend` in ``fuzz/native/bindings`` calls them; ``fuzz/native/core/backend.h``
defines each function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jax
import numpy as np

from litmusfuzz.corpus.model import Queue, Variable, all_nodes
from litmusfuzz.corpus.ops import ConstAttrs, TensorType
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_clustered.arrays import (
    constant,
    element,
    stacked,
    to_numpy,
    truth,
)
from litmusfuzz.fuzz.executors.jax_refs.configured import jax_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.executors.jax_clustered.functions import Call, Compiler
    from litmusfuzz.fuzz.executors.native.lowering import Node, Program, Resource

_Call = tuple["Callable[..., Any]", tuple[jax.Array, ...], tuple[int, ...]]
"""A function, its bound arguments, and the positions of variables that it writes on some
paths only."""
_COMPUTED: Final = ("pure", "read", "split update")
_NOTHING_TO_DO: Final = ("NoOp", "Identity", "ReadVariableOp")


class Computing:
    """The compiled functions of one lowered test, and helpers that all tests share.

    Parameters
    ----------
    program : Program
        Its constants and initial contents become JAX arrays, and each node gets the
        number of its call.
    compiler : Compiler
    lowering : str
        What clusters are compiled from (`Compiler.cluster_call`).
    """

    def __init__(self, program: Program, compiler: Compiler, lowering: str = "ssa") -> None:
        self.devices = jax_devices(program.device_names)
        self.calls: list[_Call] = []
        self._compiler = compiler
        self._lowering = lowering
        self._test = program.test
        self._lanes = program.lanes
        graphs = program.test.graphs
        self._nodes = {node.name: node for g in graphs for node in all_nodes(g.nodes)}
        self._clusters = {cluster.name: cluster for cluster in program.test.clusters}
        for body in program.bodies:
            for node in body.nodes:
                self._fill(node)
        self.program = replace(program, resources=[self._filled(r) for r in program.resources])

    def _fill(self, node: Node) -> None:
        """Set the constant of a node, or the number of its call."""
        device = self.devices[node.device]
        if node.kind == "cluster":
            cluster = self._clusters[node.name]
            function, call = self._compiler.cluster_call(
                self._test, cluster, self._lanes, device, lowering=self._lowering
            )
            flagged = (i for i, final in enumerate(function.finals) if final.written)
            self._add(node, call, tuple(flagged))
        elif node.op == "Const":
            attrs = self._nodes[node.name].attrs
            assert isinstance(attrs, ConstAttrs)
            given = TensorType(attrs.dtype, attrs.shape)
            ints = self._test.constant(self._nodes[node.name])
            node.constant = constant(self._test, ints, given, self._lanes, device)
        elif node.kind in _COMPUTED and node.op not in _NOTHING_TO_DO:
            self._add(
                node,
                self._compiler.op_call(self._test, self._nodes[node.name], self._lanes, device),
            )

    def _add(self, node: Node, call: Call, flagged: tuple[int, ...] = ()) -> None:
        node.call = len(self.calls)
        self.calls.append((call.function, call.bound, flagged))

    def _filled(self, resource: Resource) -> Resource:
        """The resource with JAX arrays as its initial contents."""
        if resource.sort == "mutex":
            return resource
        device = self.devices[resource.device]
        listed: list[Variable | Queue] = [*self._test.variables, *self._test.queues]
        (found,) = (each for each in listed if each.name == resource.name)
        contents: Sequence[tuple[int, ...]]
        if isinstance(found, Variable):
            contents = [self._test.initial(found)]
        else:
            contents = self._test.initial_elements(found)
        arrays = [constant(self._test, c, found.type, self._lanes, device) for c in contents]
        return replace(resource, initial=arrays)

    element = staticmethod(element)
    stacked = staticmethod(lambda elements: stacked(*elements))
    truth = staticmethod(truth)

    @staticmethod
    def read(value: jax.Array) -> bytes:
        """Elements of an array, as bytes."""
        return to_numpy(value).tobytes()

    def number(self, value: int, device: int) -> jax.Array:
        """Result of a QueueSize."""
        made: jax.Array = jax.device_put(np.int32(value), self.devices[device])
        return made

    def moved(self, value: jax.Array, device: int) -> jax.Array:
        """Result of a Recv."""
        made: jax.Array = jax.device_put(value, self.devices[device])
        return made
