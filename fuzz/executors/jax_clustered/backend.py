"""Backend of the C++ core that computes with JAX: the Python functions that the core calls.

References
----------
``fuzz/native/bindings/python_backend.h``: `PythonBackend`, which calls the functions and the
helpers, and says what they take and return.
``fuzz/native/core/backend.h``: what the core asks of any backend.
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

_CoreCall = tuple["Callable[..., Any]", tuple[jax.Array, ...], tuple[int, ...]]
"""A function, its bound arguments, and the flagged ones of the variables that it may write.

The flagged are those that it writes on some paths only, by their places among its results. The
function returns for each whether it wrote it.
"""
_COMPUTED_KINDS: Final = ("pure", "read", "split update")
"""Kinds of nodes that may compute; there are no other updates, as tests are lowered for JAX with
``split_updates=True``."""
_NOTHING_TO_COMPUTE: Final = ("NoOp", "Identity", "ReadVariableOp")
"""Ops of these kinds that the core itself executes."""


class JaxBackend:
    """The compiled functions of one lowered test, and helpers that do not depend on the test.

    Parameters
    ----------
    program : Program
        Its nodes are changed: a cluster, and an op that computes, gets the number of its call,
        and a constant gets its value as a JAX array.
    compiler : Compiler
    lowering : str
        What clusters are compiled from (`Compiler.cluster_call`).

    Attributes
    ----------
    calls : list
        What the core calls, by `Node.call`.
    program : Program
        The program, with JAX arrays as the initial contents of its resources.
    """

    def __init__(self, program: Program, compiler: Compiler, lowering: str = "ssa") -> None:
        self.devices = jax_devices(program.device_names)
        self.calls: list[_CoreCall] = []
        self._compiler = compiler
        self._lowering = lowering
        self._test = program.test
        self._lanes = program.lanes
        graphs = program.test.graphs
        self._nodes = {node.name: node for g in graphs for node in all_nodes(g.nodes)}
        self._clusters = {cluster.name: cluster for cluster in program.test.clusters}
        for body in program.bodies:
            for node in body.nodes:
                self._set_call_or_constant(node)
        resources = [self._with_initial_arrays(each) for each in program.resources]
        self.program = replace(program, resources=resources)

    def _set_call_or_constant(self, node: Node) -> None:
        """Set the value of a Const, and the number of its call for a node that computes."""
        device = self.devices[node.device]
        if node.kind == "cluster":
            cluster = self._clusters[node.name]
            function, call = self._compiler.cluster_call(
                self._test, cluster, self._lanes, device, lowering=self._lowering
            )
            # `written` is the flag that says so; None if every path writes the variable.
            flagged = (i for i, final in enumerate(function.finals) if final.written)
            self._add_call(node, call, tuple(flagged))
        elif node.op == "Const":
            attrs = self._nodes[node.name].attrs
            assert isinstance(attrs, ConstAttrs)
            of_type = TensorType(attrs.dtype, attrs.shape)
            ints = self._test.constant(self._nodes[node.name])
            node.constant = constant(self._test, ints, of_type, self._lanes, device)
        elif node.kind in _COMPUTED_KINDS and node.op not in _NOTHING_TO_COMPUTE:
            self._add_call(
                node,
                self._compiler.op_call(self._test, self._nodes[node.name], self._lanes, device),
            )

    def _add_call(self, node: Node, call: Call, flagged: tuple[int, ...] = ()) -> None:
        node.call = len(self.calls)
        self.calls.append((call.function, call.bound, flagged))

    def _with_initial_arrays(self, resource: Resource) -> Resource:
        """The resource with JAX arrays as its initial contents; a mutex has none."""
        if resource.sort == "mutex":
            return resource
        device = self.devices[resource.device]
        listed: list[Variable | Queue] = [*self._test.variables, *self._test.queues]
        (declared,) = (each for each in listed if each.name == resource.name)
        contents: Sequence[tuple[int, ...]]
        if isinstance(declared, Variable):
            contents = [self._test.initial(declared)]
        else:
            contents = self._test.initial_elements(declared)
        arrays = [constant(self._test, c, declared.type, self._lanes, device) for c in contents]
        return replace(resource, initial=arrays)

    element = staticmethod(element)
    stacked = staticmethod(lambda elements: stacked(*elements))
    truth = staticmethod(truth)

    @staticmethod
    def read(value: jax.Array) -> bytes:
        """Elements of an array as bytes, for the outcome."""
        return to_numpy(value).tobytes()

    def number(self, value: int, device: int) -> jax.Array:
        """Result of a QueueSize on a device, by the number of that."""
        array: jax.Array = jax.device_put(np.int32(value), self.devices[device])
        return array

    def moved(self, value: jax.Array, device: int) -> jax.Array:
        """Result of a Recv, on the receiving device, by the number of that."""
        array: jax.Array = jax.device_put(value, self.devices[device])
        return array
