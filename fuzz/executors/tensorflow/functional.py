"""Front end that writes loops and conditionals as TensorFlow 2 does: While and If nodes.

The bodies are functions. TensorFlow either *lowers* the nodes, which inlines the bodies
and restores v1 control flow, or executes them by their kernels. The kernels are
stricter: they run one iteration at a time, start it when all its values are ready, and
return no result before all instances are done.

All arguments of a body come after its pivot. A body opens its resources inside, by name.
It passes on a token as `emission` does. A condition cannot pass on a token, since its
only result is the predicate. If some node of a condition precedes no result, the
predicate waits for that node. semantics.md allows this if an iteration also waits for
all its values at the start, so `FunctionalCopy` adds that wait too.

The functions have no control outputs, unlike those that `tf.function` makes: TensorFlow
would make the next iteration wait for the control outputs. The token replaces them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from litmusfuzz.corpus.ops import BOOL
from litmusfuzz.fuzz.executors.tensorflow.emission import Copy, Level
from litmusfuzz.fuzz.executors.tensorflow.node_defs import DATA_TYPES, const, proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorflow.core.framework import node_def_pb2

    from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, Node


class FunctionalCopy(Copy):
    """Emits one copy of a graph, with bodies as functions.

    If `Copy.lowered`, TensorFlow lowers While and If; else their kernels run.
    """

    def _loop(self, level: Level, node: Node, attrs: LoopAttrs) -> None:
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        outer = [*node.inputs, *(outside for _, outside in attrs.captures)]
        inner = [*attrs.carried, *(inside for inside, _ in attrs.captures)]
        types = [self._type(source).dtype for source in outer]
        names = {inside: f"arg{position}" for position, inside in enumerate(inner)}
        token = f"arg{len(inner)}"

        (result,) = attrs.condition.results
        condition = Level({n.name: n for n in attrs.condition.nodes}, "^arg0", names)
        tails = [e for e in self._ends(condition) if e != f"^{self._value(condition, result)}"]

        def pivot(inside: str) -> str:
            """Control input that precedes an iteration; it waits for all values if `tails`."""
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
            return [*carried, *(names[inside] for inside, _ in attrs.captures), after]

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
        self._leave(node, attrs.carried, types)
        self._copied(f"{name}/ended", BOOL, f"{name}:{len(inner)}", [])

    def _branch(self, level: Level, node: Node, attrs: BranchAttrs) -> None:
        name = self._name(node)
        waits = [*self._waits(level, node), level.pivot]
        predicate = self._predicate(f"{name}/predicate", level, node.inputs[0], waits)
        token = self.emit.helper(f"{name}/token", const(np.array(0, bool)), [level.pivot])
        types = [BOOL, *(self._type(outside).dtype for _, outside in attrs.captures)]
        values = [token, *(self._value(level, outside) for _, outside in attrs.captures)]
        results = [self._type(f"{node.name}.{result}").dtype for result in attrs.results]
        names = {inside: f"arg{i}" for i, (inside, _) in enumerate(attrs.captures, 1)}
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
        self._leave(node, attrs.results, results)
        self._copied(f"{name}/ended", BOOL, f"{name}:{len(results)}", [])

    def _call(self, name: str, made: node_def_pb2.NodeDef, values: Sequence[str]) -> None:
        made.attr["_lower_using_switch_merge"].b = self.lowered
        self.emit.helper(name, made, values)
