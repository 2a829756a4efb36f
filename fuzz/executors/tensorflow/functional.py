"""Loops and conditionals as TensorFlow 2 has them: While and If, their bodies functions.

TensorFlow makes frames of them again, and writes the bodies in (*lowers* them); or
their kernels call the functions, which is stricter: one iteration at a time, begun
when all its values are there, and no result before all instances are done.

A body's arguments all come after its pivot. Its resources are opened inside, by name.
It passes on a token as `emission` does; a condition cannot, since its only result is
the predicate. Where nothing that waits for the predicate waits for all of a condition,
the predicate itself does; semantics.md allows that together with waiting for all
values at the start of an iteration, and so that is done as well.

No function has control outputs, which `tf.function` gives to all of its own: TensorFlow
would let the next iteration wait for them, and the token does what they are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import op_def_registry

from litmusfuzz.corpus.ops import BOOL
from litmusfuzz.fuzz.executors.tensorflow.emission import Copy, Level
from litmusfuzz.fuzz.executors.tensorflow.node_defs import DATA_TYPES, Emitter, const, proto

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorflow.core.framework import function_pb2, node_def_pb2

    from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, Node


class FunctionalCopy(Copy):
    """Emits a copy of a graph, its bodies as functions.

    Parameters
    ----------
    library : FunctionDefLibrary
        Of the graph that it emits into.
    lowered : bool
        Whether TensorFlow is to lower While and If.
    """

    def __init__(
        self, *args: Any, library: function_pb2.FunctionDefLibrary, lowered: bool, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.library = library
        self.lowered = lowered

    def _loop(self, level: Level, node: Node, attrs: LoopAttrs) -> None:
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        outer = [*node.inputs, *(outside for _, outside in attrs.takes)]
        inner = [*attrs.carried, *(inside for inside, _ in attrs.takes)]
        types = [self._type(source).dtype for source in outer]
        names = {inside: f"arg{position}" for position, inside in enumerate(inner)}
        token = f"arg{len(inner)}"

        (result,) = attrs.condition.results
        condition = Level({n.name: n for n in attrs.condition.nodes}, "^arg0", names)
        tails = [e for e in self._ends(condition) if e != f"^{self._value(condition, result)}"]

        def pivot(inside: str) -> str:
            """What an iteration waits for: if need be, all values."""
            if not tails:
                return "^arg0"
            all_values = [f"^arg{position}" for position in range(len(inner))]
            return f"^{self.emit.helper(f'{name}/{inside}/start', proto('NoOp'), all_values)}"

        def decide() -> list[str]:
            condition.pivot = pivot("condition")
            self._level(condition)
            return [self._predicate(f"{name}/condition", condition, result, tails)]

        def iterate() -> list[str]:
            body = Level({n.name: n for n in attrs.body.nodes}, pivot("body"), names)
            after = self._copied(f"{name}/token/next", BOOL, token, self._level(body))
            carried = [self._value(body, each) for each in attrs.body.results]
            return [*carried, *(names[inside] for inside, _ in attrs.takes), after]

        first = self.emit.helper(f"{name}/token", const(np.array(0, bool)), [level.pivot])
        values = [
            self._copied(
                f"{name}/{position}/first",
                types[position],
                self._value(level, source),
                waits if position == 0 else [level.pivot],
            )
            for position, source in enumerate(outer)
        ]
        types.append(BOOL)
        made = proto("While")
        made.attr["T"].list.type.extend(DATA_TYPES[dtype] for dtype in types)
        made.attr["cond"].func.name = self._function(f"{name}/condition", types, [BOOL], decide)
        made.attr["body"].func.name = self._function(f"{name}/body", types, types, iterate)
        made.attr["parallel_iterations"].i = attrs.parallel_iterations
        self._call(name, made, [*values, first])
        self._leave(name, attrs.carried, types)
        self._copied(f"{name}/ended", BOOL, f"{name}:{len(inner)}", [])

    def _branch(self, level: Level, node: Node, attrs: BranchAttrs) -> None:
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        predicate = self._predicate(f"{name}/predicate", level, node.inputs[0], waits)
        token = self.emit.helper(f"{name}/token", const(np.array(0, bool)), [level.pivot])
        types = [BOOL, *(self._type(outside).dtype for _, outside in attrs.takes)]
        values = [token, *(self._value(level, outside) for _, outside in attrs.takes)]
        results = [self._type(f"{node.name}.{result}").dtype for result in attrs.results]
        names = {inside: f"arg{i}" for i, (inside, _) in enumerate(attrs.takes, 1)}
        made = proto("If")
        for branch, field, inner in (
            ("then", "then_branch", attrs.then),
            ("else", "else_branch", attrs.orelse),
        ):
            inside = Level({n.name: n for n in inner.nodes}, "^arg0", names)

            def run(
                inside: Level = inside, branch: str = branch, shown: Sequence[str] = inner.results
            ) -> list[str]:
                after = self._copied(f"{name}/{branch}/ended", BOOL, "arg0", self._level(inside))
                return [*(self._value(inside, each) for each in shown), after]

            function = self._function(f"{name}/{branch}", types, [*results, BOOL], run)
            made.attr[field].func.name = function
        made.attr["Tcond"].type = DATA_TYPES[BOOL]
        made.attr["Tin"].list.type.extend(DATA_TYPES[dtype] for dtype in types)
        made.attr["Tout"].list.type.extend(DATA_TYPES[dtype] for dtype in (*results, BOOL))
        self._call(name, made, [predicate, *values])
        self._leave(name, attrs.results, results)
        self._copied(f"{name}/ended", BOOL, f"{name}:{len(results)}", [])

    def _call(self, name: str, made: node_def_pb2.NodeDef, values: Sequence[str]) -> None:
        made.attr["_lower_using_switch_merge"].b = self.lowered
        self.emit.helper(name, made, values)

    def _leave(self, name: str, results: Sequence[str], types: Sequence[str]) -> None:
        for position, (result, dtype) in enumerate(zip(results, types, strict=False)):
            self._copied(f"{name}.{result}", dtype, f"{name}:{position}", [])

    def _function(
        self,
        name: str,
        given: Sequence[str],
        returned: Sequence[str],
        inside: Callable[[], list[str]],
    ) -> str:
        """A function of what `inside` emits, which says what it returns.

        Its arguments are called ``arg0``, ``arg1`` and so on.
        """
        scratch = graph_pb2.GraphDef()
        around, self.emit = self.emit, Emitter(scratch)
        results = inside()
        self.emit = around
        function = self.library.function.add()
        signature = function.signature
        signature.name = name
        signature.is_stateful = True
        for position, dtype in enumerate(given):
            signature.input_arg.add(name=f"arg{position}", type=DATA_TYPES[dtype])
        ops = {node.name: node.op for node in scratch.node}
        for node in scratch.node:
            node.input[:] = [_inside(source, ops) for source in node.input]
            function.node_def.add().CopyFrom(node)
        for position, (result, dtype) in enumerate(zip(results, returned, strict=True)):
            signature.output_arg.add(name=f"out{position}", type=DATA_TYPES[dtype])
            function.ret[f"out{position}"] = _inside(result, ops)
        return name


def _inside(source: str, ops: Mapping[str, str]) -> str:
    """How a function's nodes name what they take: ``node:output:number``."""
    name, _, number = source.partition(":")
    if name not in ops:  # a control input, or an argument
        return source
    (output,) = op_def_registry.get(ops[name]).output_arg
    return f"{name}:{output.name}:{number or 0}"
