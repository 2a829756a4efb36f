"""Family `handles`: several handles of one variable, passed through all that passes a value on.

A test is generated without handles first. Then some of its ops get a handle: one of their own
variable, or one that a conditional chooses, or a loop exchanges. Identities, captures, calls and
carried values pass handles on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import Body, BranchAttrs, CallAttrs, LoopAttrs, NestAttrs, Node
from litmusfuzz.corpus.ops import BOOL, ConstAttrs, HandleAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators.structured import (
    StatementWeights,
    StructuredContext,
    StructuredGenerator,
    one_graph,
    resources,
    small,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.context import Context
    from litmusfuzz.fuzz.generators.unbuilt import UnbuiltTest
    from litmusfuzz.fuzz.support import Support

_PLANS = (
    *(("plain", "plain", "plain"),) * 3,
    *(("call", "plain"), ("call", "plain"), ("branch", "plain"), ("loop",), ("loop", "plain")),
)


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`."""
    return small(rng, support, _attempt, rng.randint(5, 9))


def _attempt(rng: random.Random, support: Support, events: int, *, arithmetic: bool) -> UnbuiltTest:
    context = resources(rng, support, arithmetic=arithmetic)
    weights = StatementWeights(call=1, branch=1, loop=1, plain=6)
    generator = StructuredGenerator(StructuredContext(context, weights, events))
    plan = [*rng.choice(_PLANS), *["plain"] * rng.randint(0, 2)]
    generator.generate(plan, rng.choice((2, 2, 3)))
    made = one_graph("handles", generator)
    (graph,) = made.graphs
    nodes = _Handles(context).level(graph.nodes, {}, whole=True)
    return replace(made, graphs=(replace(graph, nodes=nodes),), ends=())


Known = dict[str, frozenset[str]]
"""The variables that each handle in scope may stand for."""


@dataclass(slots=True)
class _Handles:
    """Gives handles to the ops of a test."""

    context: Context
    made: list[Node] = field(default_factory=list)
    """Nodes of the present graph or body."""

    def level(
        self, nodes: Sequence[Node], scope: Mapping[str, frozenset[str]], *, whole: bool = False
    ) -> tuple[Node, ...]:
        """The nodes of a graph or body, with handles."""
        around, self.made = self.made, []
        known: Known = dict(scope)
        rng = self.context.rng
        flags: list[str] = []
        for variable in self.context.variables:
            for _ in range(rng.choice((0, 1, 1, 2)) if whole or rng.random() < 0.2 else 0):
                self.add("h", "VarHandleOp", attrs=HandleAttrs(variable.name), known=known)
        if whole and len(self.context.variables) > 1 and rng.random() < 0.8:
            self.choice(known)
        for node in nodes:
            if rng.random() < 0.12:
                self.passed_on(known)
            if flags and len(set(known.values())) > 1 and rng.random() < 0.35:
                self.chosen(rng.choice(flags), known, known)
            self.made.append(self.node(node, known))
            if self.is_flag(node):
                flags.append(node.name)
        if whole and not any(node.handle for node in self.made):
            self.made.append(self.read(known))
        nodes, self.made = self.made, around
        return tuple(nodes)

    def add(
        self,
        prefix: str,
        op: str,
        inputs: tuple[str, ...] = (),
        *,
        after: tuple[str, ...] = (),
        attrs: HandleAttrs | BranchAttrs | ConstAttrs | None = None,
        known: Known | None = None,
    ) -> str:
        """Append a node; a handle becomes known."""
        name = self.context.fresh(prefix)
        self.made.append(Node(name, op, inputs, after=after, attrs=attrs))
        if known is not None:
            stands = frozenset((attrs.variable,)) if isinstance(attrs, HandleAttrs) else None
            known[name] = stands or known[inputs[0]]
        return name

    def read(self, known: Known) -> Node:
        """A read through a handle, for a test that has no other use of one."""
        variable = self.context.variables[0].name
        handle = self.add("h", "VarHandleOp", attrs=HandleAttrs(variable), known=known)
        name = self.context.fresh("r")
        return Node(name, "ReadVariableOp", resources=(variable,), handle=handle)

    def passed_on(self, known: Known) -> None:
        """Append an Identity of a handle, which may wait for an op."""
        if not known:
            return
        rng = self.context.rng
        ops = [n.name for n in self.made if n.definition.on_variables]
        after = (rng.choice(ops),) if ops and rng.random() < 0.5 else ()
        self.add("h", "Identity", (rng.choice(list(known)),), after=after, known=known)

    def choice(self, known: Known) -> None:
        """Append a choice between two variables: by what is read of one, or by a constant."""
        rng = self.context.rng
        both = rng.sample(self.context.variables, 2)
        handles = {
            self.add("h", "VarHandleOp", attrs=HandleAttrs(variable.name), known=known): None
            for variable in both
        }
        if both[0].shape:
            flag = self.add("c", "Const", attrs=ConstAttrs(BOOL, (), rng.randint(0, 1)))
        else:
            level = ConstAttrs(self.context.dtype, (), rng.choice((0, 1, 5)))
            constant = self.add("c", "Const", attrs=level)
            read = self.context.fresh("r")
            self.made.append(Node(read, "ReadVariableOp", resources=(both[0].name,)))
            flag = self.add("t", "Equal" if rng.random() < 0.5 else "Less", (read, constant))
        self.chosen(flag, {name: known[name] for name in handles}, known)

    def is_flag(self, node: Node) -> bool:
        """True for a comparison of scalars, or a constant, that may be a predicate."""
        if isinstance(node.attrs, ConstAttrs):
            return node.attrs.dtype == BOOL and not node.attrs.shape
        scalar = all(not variable.shape for variable in self.context.variables)
        return node.op in ("Less", "Equal") and scalar

    def chosen(self, flag: str, among: Known, known: Known) -> None:
        """Append a conditional that returns one of two handles."""
        one, other = self.context.rng.sample(list(among), 2)
        inner = self.context.fresh("a"), self.context.fresh("a")
        result = self.context.fresh("o")
        captures = ((inner[0], one), (inner[1], other))
        attrs = BranchAttrs(captures, Body((), inner[:1]), Body((), inner[1:]), (result,))
        name = self.add("cond", "If", (flag,), attrs=attrs)
        known[f"{name}.{result}"] = known[one] | known[other]

    def node(self, node: Node, known: Known) -> Node:
        """A node with a handle, or with handles in its bodies; its results become known."""
        rng = self.context.rng
        attrs = node.attrs
        if node.definition.on_variables and len(node.definition.roles) == 1:
            fitting = [name for name, stands in known.items() if stands == set(node.resources)]
            several = [name for name, stands in known.items() if len(stands) > 1]
            if several and rng.random() < 0.4:
                return self.through(node, rng.choice(several), known)
            if fitting and rng.random() < 0.6:
                return self.through(node, rng.choice(fitting), known)
            return node
        if not isinstance(attrs, NestAttrs):
            return node
        taken = rng.sample(list(known), min(len(known), rng.choice((0, 1, 1, 2))))
        several = [name for name, stands in known.items() if len(stands) > 1]
        if several and taken and rng.random() < 0.5:
            taken[0] = rng.choice(several)
        captures = tuple((self.context.fresh("a"), name) for name in taken)
        inside = {inner: known[outer] for inner, outer in captures}
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, known, captures, inside)
        attrs = replace(attrs, captures=(*attrs.captures, *captures))
        if isinstance(attrs, BranchAttrs):
            then, orelse = (self.level(each.nodes, inside) for each in (attrs.then, attrs.orelse))
            return replace(
                node,
                attrs=replace(
                    attrs,
                    then=replace(attrs.then, nodes=then),
                    orelse=replace(attrs.orelse, nodes=orelse),
                ),
            )
        assert isinstance(attrs, CallAttrs)
        body = replace(attrs.body, nodes=self.level(attrs.body.nodes, inside))
        if captures and rng.random() < 0.5:
            result = self.context.fresh("o")
            body = replace(body, results=(*body.results, captures[0][0]))
            attrs = replace(attrs, results=(*attrs.results, result))
            known[f"{node.name}.{result}"] = known[captures[0][1]]
        return replace(node, attrs=replace(attrs, body=body))

    def through(self, node: Node, handle: str, known: Known) -> Node:
        """The op on what a handle stands for."""
        stands = tuple(v.name for v in self.context.variables if v.name in known[handle])
        return replace(node, resources=stands, handle=handle)

    def loop(
        self,
        node: Node,
        attrs: LoopAttrs,
        known: Known,
        captures: tuple[tuple[str, str], ...],
        inside: Known,
    ) -> Node:
        """A loop that captures handles, or carries and perhaps exchanges them."""
        rng = self.context.rng
        condition = replace(attrs.condition, nodes=self.level(attrs.condition.nodes, {}))
        if rng.random() < 0.5 or not captures:
            nodes = self.level(attrs.body.nodes, inside)
            body = replace(attrs.body, nodes=nodes)
            captures = (*attrs.captures, *captures)
            changed = replace(attrs, captures=captures, condition=condition, body=body)
            return replace(node, attrs=changed)
        carried = tuple(inner for inner, _ in captures)
        following = carried[::-1] if rng.random() < 0.6 else carried
        if following != carried:
            inside = dict.fromkeys(carried, frozenset[str]().union(*inside.values()))
        body = Body(self.level(attrs.body.nodes, inside), (*attrs.body.results, *following))
        known |= {f"{node.name}.{inner}": inside[inner] for inner in carried}
        return replace(
            node,
            inputs=(*node.inputs, *(outer for _, outer in captures)),
            attrs=replace(
                attrs, carried=(*attrs.carried, *carried), condition=condition, body=body
            ),
        )
