"""What the core asks for where JAX computes: `PythonBackend` in ``fuzz/native/bindings``.

References
----------
``fuzz/native/core/backend.h`` says what each of them does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import jax
import numpy as np

from litmusfuzz.corpus.model import Queue, Variable, all_nodes
from litmusfuzz.corpus.ops import ConstAttrs, TensorType
from litmusfuzz.fuzz.executors.jax_clustered.arrays import (
    constant,
    element,
    stacked,
    to_numpy,
    truth,
)
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.executors.jax_clustered.functions import Call, Compiler
    from litmusfuzz.fuzz.executors.native.lowering import Node, Program, Resource

_Call = tuple["Callable[..., Any]", tuple[jax.Array, ...], tuple[int, ...]]
"""A function, what is bound to it, and of what it may write the places that it
writes on some paths only."""
_COMPUTED: Final = ("pure", "read", "split update")
_NOTHING_TO_DO: Final = ("NoOp", "Identity", "ReadVariableOp")


def jax_devices(names: Sequence[str]) -> list[jax.Device]:
    """JAX's devices, by the names that tests have for them.

    Raises
    ------
    Refused
        Naming the one that is not there, and saying what is missing.
    """
    found = []
    for name in names:
        platform, _, number = name.partition(":")
        try:
            there = jax.devices(platform)
        except RuntimeError:
            raise Refused(f"device {name} (JAX sees no {platform.upper()})") from None
        if int(number) >= len(there):
            raise Refused(f"device {name} (JAX has {len(there)} of them)")
        found.append(there[int(number)])
    return found


class Computing:
    """The functions of one lowered test, and those that need none of its own.

    Parameters
    ----------
    program : Program
        Its constants and initial contents become arrays, and its nodes get the
        numbers of their calls.
    compiler : Compiler
    """

    def __init__(self, program: Program, compiler: Compiler) -> None:
        self.devices = jax_devices(program.device_names)
        self.calls: list[_Call] = []
        self._compiler = compiler
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
        """Give it its constant, or the number of its call."""
        device = self.devices[node.device]
        if node.kind == "cluster":
            cluster = self._clusters[node.name]
            function, call = self._compiler.cluster_call(self._test, cluster, self._lanes, device)
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
        """With arrays as its initial contents."""
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
        """Its elements."""
        return to_numpy(value).tobytes()

    def number(self, value: int, device: int) -> jax.Array:
        """What a Size returns."""
        made: jax.Array = jax.device_put(np.int32(value), self.devices[device])
        return made

    def moved(self, value: jax.Array, device: int) -> jax.Array:
        """What a Recv returns."""
        made: jax.Array = jax.device_put(value, self.devices[device])
        return made
