"""Reverse-mode differentiation: ops that compute gradients, and steps that apply them.

The pass walks backwards from a value to the reads of variables that it is computed
from, by the chain rule, and adds a node for each product and sum on the way. A training
step changes each variable by its gradient, and in a loop has a control edge from the
change to the next iteration's reads.

Derivatives are TensorFlow's: what `tf.gradients` gives of the same ops, ties included
(`Maximum` prefers its first operand, `Minimum` as well). The op set has no sum and no
transpose:

- The gradient of a scalar that is broadcast is a sum, and is refused. Whoever broadcasts
  by a product with a matrix of ones gets a gradient.
- A matrix is transposed by products with matrices of one 1 (`_Tape.transposed`). If
  MatMul had attributes for that, graphs would be shorter, at the price of a change in the
  format, in three oracles and in every executor's kernel, for an op without events.

References
----------
DEVICES, "Automatic differentiation".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LoopAttrs,
    Node,
    captures_of,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    OPS,
    ConstAttrs,
    Kind,
    Nested,
    TensorType,
    expand,
    result_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest

    Fresh = Callable[[str], str]
    Types = Mapping[str, TensorType | None]

RULES: Final = (
    "AssignSubVariableOp",
    "AssignAddVariableOp",
    "ResourceApplyGradientDescent",
    "AssignVariableOp",
)
"""Ops by which a step may change a variable."""
_FLAT: Final = ("Less", "Equal")
"""Ops through which no gradient passes."""


class NotDifferentiable(ValueError):
    """A value whose gradient the op set cannot express; the message says which."""


@dataclass(frozen=True, slots=True)
class Step:
    """How a gradient changes its variable: by which op, times which rate.

    `op` is one of `RULES`. AssignVariableOp stores what was read less the step, as a
    user writes it who knows no other op. The rows that a gather read are changed by
    a scatter that adds or subtracts, whichever of the others is told.
    """

    op: str = "AssignSubVariableOp"
    rate: int = 1

    def __post_init__(self) -> None:
        if self.op not in RULES:
            raise ValueError(f"a step is by one of {', '.join(RULES)}; got {self.op!r}")


def gradients(
    nodes: Sequence[Node], types: Types, target: str, wrt: Iterable[str], fresh: Fresh
) -> tuple[list[Node], dict[str, str]]:
    """Nodes that compute the gradients of a value by others.

    Parameters
    ----------
    nodes : sequence of Node
        Of one graph or body.
    types : mapping of str to TensorType
        Of all values in reach.
    target : str
        The value to differentiate; of several elements, their sum.
    wrt : iterable of str
        Values to differentiate by, mostly reads.
    fresh : callable
        From the beginning of a name to one that is not taken (`FreshNames.like`).

    Returns
    -------
    list of Node
        To be appended to `nodes`.
    dict of str to str
        Of each of `wrt` that a path leads from to `target`, its gradient, which is of
        its type. There is none where each path ends in a condition or in the features
        of a ReluGrad: then it is zero everywhere.

    Raises
    ------
    NotDifferentiable
        If a path leads through a loop, a conditional, a transfer, or a scalar that is
        broadcast.
    """
    tape = _Tape(nodes, types, fresh)
    found = tape.gradients(target, set(wrt))
    return tape.added, found


def stepped(
    nodes: Sequence[Node], types: Types, loss: str, step: Step, fresh: Fresh
) -> tuple[list[Node], list[str]]:
    """Nodes of a training step: gradients of `loss`, and what changes the variables.

    Every variable that a path leads from to `loss` is changed: once for its reads, by
    their gradients' sum, and once for each gather.

    Returns
    -------
    list of Node
        To be appended to `nodes`.
    list of str
        Those of them that change a variable.

    Raises
    ------
    NotDifferentiable
        As `gradients` does.
    """
    tape = _Tape(nodes, types, fresh)
    reads = [node for node in nodes if node.definition.kind is Kind.READ]
    found = tape.gradients(loss, {read.name for read in reads})
    by_update: dict[str, list[Node]] = {}  # a variable, or a gather: the reads
    for read in reads:
        if read.name in found:
            key = read.resources[0] if read.op == "ReadVariableOp" else read.name
            by_update.setdefault(key, []).append(read)
    updates = []
    for same in by_update.values():
        gradient = tape.total(same[0].name, [found[read.name] for read in same])
        updates.append(tape.update(same[0], gradient, step))
    return tape.added, updates


def trained(
    test: LitmusTest, loss: str, step: Step | None = None, *, ordered: bool = True
) -> LitmusTest:
    """The test with a training step beside a loss, in the graph or body where that is.

    Parameters
    ----------
    test : LitmusTest
    loss : str
        A node: what the variables that it is computed from are to make smaller.
    step : Step, optional
        How they are changed; by default as `Step()` says.
    ordered : bool
        In a loop, whether the changes have a control edge to the next iteration's
        reads of what is changed, through a carried value. If not, iterations race.

    Raises
    ------
    NotDifferentiable
        As `gradients` does, or if there is no such node.
    """
    step = step or Step()
    resources = (each.name for each in (*test.resources, *test.clusters))
    fresh = FreshNames((*test.types, *resources)).like
    seen = False

    def with_step(nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], list[str]]:
        """The nodes of a graph or body with the step in it, and the step's changes."""
        nonlocal seen
        if any(node.name == loss for node in nodes):
            seen = True
            added, updates = stepped(nodes, test.types, loss, step, fresh)
            return (*nodes, *added), updates
        return tuple(each for node in nodes for each in inside(node)), []

    def inside(node: Node) -> tuple[Node, ...]:
        """A node with the step in one of its bodies, after what it needs for that."""
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            then, _ = with_step(attrs.then.nodes)
            orelse, _ = with_step(attrs.orelse.nodes)
            then_, orelse_ = replace(attrs.then, nodes=then), replace(attrs.orelse, nodes=orelse)
            return (replace(node, attrs=replace(attrs, then=then_, orelse=orelse_)),)
        if isinstance(attrs, LoopAttrs):
            condition, _ = with_step(attrs.condition.nodes)
            body, updates = with_step(attrs.body.nodes)
            attrs = replace(
                attrs,
                condition=replace(attrs.condition, nodes=condition),
                body=replace(attrs.body, nodes=body),
            )
            if updates and ordered:
                return _in_turn(node, attrs, updates, fresh)
            return (replace(node, attrs=attrs),)
        return (node,)

    graphs = tuple(Graph(graph.name, with_step(graph.nodes)[0]) for graph in test.graphs)
    if not seen:
        raise NotDifferentiable(f"no node {loss!r}")
    return replace(test, graphs=graphs)


def _in_turn(
    node: Node, attrs: LoopAttrs, updates: Sequence[str], fresh: Fresh
) -> tuple[Node, ...]:
    """The loop, in which an iteration's reads of what the updates change follow the last's."""
    start, token, passed = fresh("start"), fresh("token"), fresh("passed")
    changed = {n.resources for n in attrs.body.nodes if n.name in updates}
    inner = [
        replace(each, after=(*each.after, token))
        if each.definition.kind is Kind.READ and each.resources in changed
        else each
        for each in attrs.body.nodes
    ]
    inner.append(Node(passed, "Identity", (token,), after=tuple(updates)))
    loop = replace(
        attrs,
        carried=(*attrs.carried, token),
        body=Body(tuple(inner), (*attrs.body.results, passed)),
    )
    first = Node(start, "Const", attrs=ConstAttrs("int32", (), 0), device=node.device)
    return first, replace(node, inputs=(*node.inputs, start), attrs=loop)


class _Tape:
    """The nodes of one graph or body, and those that are added to them.

    Attributes
    ----------
    added : list of Node
    types : dict of str to TensorType
        Of the former and the latter.
    """

    def __init__(self, nodes: Sequence[Node], types: Types, fresh: Fresh) -> None:
        self.nodes = nodes
        self.types: dict[str, TensorType] = {n: kind for n, kind in types.items() if kind}
        self.fresh = fresh
        self.added: list[Node] = []
        self.constants = {n.name: n.attrs for n in nodes if isinstance(n.attrs, ConstAttrs)}

    def gradients(self, target: str, wrt: set[str]) -> dict[str, str]:
        """Add what computes them; of each of `wrt`, its gradient."""
        kind = self.types.get(target)
        if kind is None or kind.dtype == BOOL:
            raise NotDifferentiable(f"{target} is no number")
        flows = set(wrt)  # what a path leads to from `wrt`
        makers: dict[str, Node] = {}
        for node in self.nodes:
            values = (node.name, *_results(node))
            makers.update(dict.fromkeys(values, node))
            if node.op not in _FLAT and flows.intersection(_given(node)):
                flows.update(values)
        if target not in flows:
            return {}
        parts = {target: [self.constant(f"d_{target}", kind, 1)]}
        found: dict[str, str] = {}
        for value in (*reversed(makers), *sorted(wrt - makers.keys())):
            if value not in parts:
                continue
            gradient = self.total(value, parts[value])
            if value in wrt:
                found[value] = gradient
            if value in makers and flows.intersection(_given(makers[value])):
                for operand, part in self.through(makers[value], gradient, flows):
                    parts.setdefault(operand, []).append(part)
        return found

    def through(self, node: Node, gradient: str, flows: set[str]) -> Iterable[tuple[str, str]]:
        """What a node passes on of its gradient, to each operand that wants it."""
        if node.definition.kind is not Kind.PURE:
            raise NotDifferentiable(f"{node.name} ({node.op}): no gradient passes through it")
        for place, operand in enumerate(node.inputs):
            part = self.part(node, place, gradient) if operand in flows else None
            if part is None:
                continue
            if self.types[part] != self.types[operand]:
                message = "the gradient of a scalar that is broadcast is a sum, which no op makes"
                raise NotDifferentiable(f"{node.name} ({node.op}), {operand}: {message}")
            yield operand, part

    def part(self, node: Node, place: int, gradient: str) -> str | None:
        """The gradient by one operand, of one term of the chain rule; None if it is zero."""
        operand = node.inputs[place]
        wanted = f"d_{operand}"

        def chosen(second: str) -> str:
            """The gradient where this operand is taken; operand 1 is where `second` is true."""
            zero = self.constant("zero", self.types[gradient], 0)
            choices = (gradient, zero) if place == 1 else (zero, gradient)
            return self.pure(wanted, "Select", second, *choices)

        match node.op:
            case "Identity" | "AddV2":
                return gradient
            case "Sub" if place == 0:
                return gradient
            case "Neg" | "Sub":
                return self.pure(wanted, "Neg", gradient)
            case "Mul":
                return self.pure(wanted, "Mul", gradient, node.inputs[1 - place])
            case "Maximum":
                return chosen(self.pure("less", "Less", *node.inputs))
            case "Minimum":
                return chosen(self.pure("less", "Less", *reversed(node.inputs)))
            case "Select":
                return chosen(node.inputs[0])
            case "Relu":
                return self.pure(wanted, "ReluGrad", gradient, operand)
            case "ReluGrad":
                features = node.inputs[1]
                return self.pure(wanted, "ReluGrad", gradient, features) if place == 0 else None
            case "MatMul":
                other = self.transposed(node.inputs[1 - place])
                factors = (gradient, other) if place == 0 else (other, gradient)
                return self.pure(wanted, "MatMul", *factors)
        raise AssertionError(node.op)

    def transposed(self, matrix: str) -> str:
        """The transpose: the sum over i, j of E M E, where E has one 1, in row j, column i.

        Each term is the element i, j of M, in row j, column i; all else in it is 0.
        """
        kind = self.types[matrix]
        rows, columns = kind.shape
        turned = replace(kind, shape=(columns, rows))
        if matrix in self.constants:
            flat = expand(self.constants[matrix].value, kind.shape, whole=True)
            literal = tuple(flat[column::columns] for column in range(columns))
            return self.constant(f"{matrix}_t", turned, literal)
        if kind.size == 1:
            return matrix
        terms = []
        for row, column in product(range(rows), range(columns)):
            one = tuple(
                tuple(int((j, i) == (column, row)) for i in range(rows)) for j in range(columns)
            )
            unit = self.constant("unit", turned, one)
            left = self.pure(f"{matrix}_t", "MatMul", unit, matrix)
            terms.append(self.pure(f"{matrix}_t", "MatMul", left, unit))
        total = terms[0]
        for term in terms[1:]:
            total = self.pure(f"{matrix}_t", "AddV2", total, term)
        return total

    def update(self, read: Node, gradient: str, step: Step) -> str:
        """Change what was read by its gradient, as the step says; the node's name."""
        kind = self.types[read.name]
        scalar = TensorType(kind.dtype, ())
        op, wanted = step.op, f"u_{read.resources[0]}"
        if op == "ResourceApplyGradientDescent" and read.attrs is None:
            rate = self.constant("rate", scalar, step.rate)
            return self.add(Node(self.fresh(wanted), op, (rate, gradient), read.resources))
        value = gradient
        if step.rate != 1:
            value = self.pure("step", "Mul", value, self.constant("rate", scalar, step.rate))
        if op == "AssignAddVariableOp":
            value = self.pure("step", "Neg", value)
        if read.attrs is not None:
            how = "Add" if op == "AssignAddVariableOp" else "Sub"
            op = read.op.replace("Gather", "Scatter") + how
        elif op == "AssignVariableOp":
            value = self.pure("next", "Sub", read.name, value)
        return self.add(Node(self.fresh(wanted), op, (value,), read.resources, attrs=read.attrs))

    def total(self, value: str, parts: Sequence[str]) -> str:
        """The sum of the parts of a value's gradient."""
        total = parts[0]
        for part in parts[1:]:
            total = self.pure(f"d_{value}", "AddV2", total, part)
        return total

    def constant(self, wanted: str, kind: TensorType, value: Nested) -> str:
        """A Const node; its name."""
        attrs = ConstAttrs(kind.dtype, kind.shape, value)
        return self.add(Node(self.fresh(wanted), "Const", attrs=attrs), kind)

    def pure(self, wanted: str, op: str, *inputs: str) -> str:
        """A node without effect; its name."""
        kinds = tuple(self.types[name] for name in inputs)
        kind = result_type(OPS[op], None, kinds, (), whole=True)
        return self.add(Node(self.fresh(wanted), op, inputs), kind)

    def add(self, node: Node, kind: TensorType | None = None) -> str:
        self.added.append(node)
        if kind is not None:
            self.types[node.name] = kind
        return node.name


def _results(node: Node) -> tuple[str, ...]:
    """Values of a loop or conditional, as they are named outside."""
    names: tuple[str, ...] = ()
    if isinstance(node.attrs, BranchAttrs):
        names = node.attrs.results
    elif isinstance(node.attrs, LoopAttrs):
        names = node.attrs.carried
    return tuple(f"{node.name}.{name}" for name in names)


def _given(node: Node) -> tuple[str, ...]:
    """Values that a node computes with."""
    return (*node.inputs, *(outer for _, outer in captures_of(node)))
