"""Reverse-mode automatic differentiation: adds gradients and training steps to a test.

The pass goes backwards from a value to the reads of variables that the value depends on,
by the chain rule, and adds a node for each product and sum. A training step updates each
variable by its gradient. In a loop, a control edge leads from the update to the next
iteration's reads.

The derivatives are those of `tf.gradients`, ties included (`Maximum` and `Minimum`
prefer their first operand). The op set has no sum and no transpose:

- The gradient of a broadcast scalar is a sum, and is refused. A product with a matrix of
  ones broadcasts too, and has a gradient.
- A matrix is transposed by products with matrices that contain a single 1
  (`_Tape.transposed`). Attributes of MatMul would make shorter graphs, but would change
  the file format, three oracles and the kernels of all executors.

References
----------
DEVICES, "Automatic differentiation".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
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
from litmusfuzz.corpus.struct import replace

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
"""Ops with which a training step may update a variable."""
_FLAT: Final = ("Less", "Equal")
"""Ops whose derivative is zero everywhere."""


class NotDifferentiable(ValueError):
    """The op set cannot express a gradient; the message names the value."""


@dataclass(frozen=True, slots=True)
class Step:
    """Update rule of a training step: the op, and the learning rate.

    `op` is one of `RULES`. With AssignVariableOp the step stores the value read minus the
    gradient times the rate. Rows read by a gather are updated by a scatter:
    AssignAddVariableOp selects one that adds, the other ops one that subtracts.
    """

    op: str = "AssignSubVariableOp"
    rate: int = 1

    def __post_init__(self) -> None:
        if self.op not in RULES:
            raise ValueError(f"op must be one of {', '.join(RULES)}; got {self.op!r}")


def gradients(
    nodes: Sequence[Node], types: Types, target: str, wrt: Iterable[str], fresh: Fresh
) -> tuple[list[Node], dict[str, str]]:
    """Nodes that compute the gradients of one value with respect to others.

    Parameters
    ----------
    nodes : sequence of Node
        All nodes of one graph or body.
    types : mapping of str to TensorType
        Types of all values that the nodes use.
    target : str
        The value to differentiate; if it has several elements, their sum.
    wrt : iterable of str
        Values to differentiate by, mostly reads.
    fresh : callable
        From a wanted name to one that is not taken (`FreshNames.like`).

    Returns
    -------
    list of Node
        To be appended to `nodes`.
    dict of str to str
        For each value of `wrt` with a path to `target`, its gradient, of the same type.
        A value has no entry if its gradient is zero everywhere, because each path ends
        in a condition or in the features of a ReluGrad.

    Raises
    ------
    NotDifferentiable
        If a path leads through a loop, a conditional, a transfer or a broadcast scalar.
    """
    tape = _Tape(nodes, types, fresh)
    found = tape.gradients(target, set(wrt))
    return tape.added, found


def training_step(
    nodes: Sequence[Node], types: Types, loss: str, step: Step, fresh: Fresh
) -> tuple[list[Node], list[str]]:
    """Nodes of a training step: the gradients of `loss`, and updates of the variables.

    Every variable with a path to `loss` is updated: once for its reads, by the sum of
    their gradients, and once for each gather.

    Returns
    -------
    list of Node
        To be appended to `nodes`.
    list of str
        The added nodes that update a variable.

    Raises
    ------
    NotDifferentiable
        As `gradients` does.
    """
    tape = _Tape(nodes, types, fresh)
    reads = [node for node in nodes if node.definition.kind is Kind.READ]
    found = tape.gradients(loss, {read.name for read in reads})
    by_update: dict[str, list[Node]] = {}  # variable or gather: its reads
    for read in reads:
        if read.name in found:
            key = read.resources[0] if read.definition.whole_read else read.name
            by_update.setdefault(key, []).append(read)
    updates = []
    for same in by_update.values():
        gradient = tape.total(same[0].name, [found[read.name] for read in same])
        updates.append(tape.update(same[0], gradient, step))
    return tape.added, updates


def with_training_step(
    test: LitmusTest, loss: str, step: Step | None = None, *, ordered: bool = True
) -> LitmusTest:
    """The test with a training step, in the graph or body that computes the loss.

    Parameters
    ----------
    test : LitmusTest
    loss : str
        The node whose value the training step decreases.
    step : Step, optional
        The update rule; `Step()` by default.
    ordered : bool
        In a loop: true if the updates have a control edge, through a carried value, to
        the next iteration's reads of the same variables. If false, iterations race.

    Raises
    ------
    NotDifferentiable
        As `gradients` does, or if no node has the name `loss`.
    """
    resources = (each.name for each in (*test.resources, *test.clusters))
    taken = (*test.types, *resources)
    graphs = training_graphs(test.graphs, test.types, taken, loss, step, ordered=ordered)
    return replace(test, graphs=graphs)


def training_graphs(
    graphs: tuple[Graph, ...],
    types: Types,
    taken: Iterable[str],
    loss: str,
    step: Step | None = None,
    *,
    ordered: bool = True,
) -> tuple[Graph, ...]:
    """The graphs of `with_training_step`, for a test that is not validated.

    Parameters
    ----------
    types : mapping of str to TensorType
        Types of all values in the graph or body that computes the loss.
    taken : iterable of str
        Names of all nodes, values and resources.
    """
    step = step or Step()
    fresh = FreshNames(taken).like
    seen = False

    def with_step(nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], list[str]]:
        """The nodes of a graph or body with the training step, and the step's updates."""
        nonlocal seen
        if any(node.name == loss for node in nodes):
            seen = True
            added, updates = training_step(nodes, types, loss, step, fresh)
            return (*nodes, *added), updates
        return tuple(each for node in nodes for each in inside(node)), []

    def inside(node: Node) -> tuple[Node, ...]:
        """A node with the training step in its bodies, after the constants that it needs."""
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
                return _ordered_iterations(node, attrs, updates, fresh)
            return (replace(node, attrs=attrs),)
        if isinstance(attrs, CallAttrs):
            inside, _ = with_step(attrs.body.nodes)
            attrs = replace(attrs, body=replace(attrs.body, nodes=inside))
            return (replace(node, attrs=attrs),)
        return (node,)

    made = tuple(Graph(graph.name, with_step(graph.nodes)[0]) for graph in graphs)
    if not seen:
        raise NotDifferentiable(f"no node {loss!r}")
    return made


def _ordered_iterations(
    node: Node, attrs: LoopAttrs, updates: Sequence[str], fresh: Fresh
) -> tuple[Node, ...]:
    """The loop in which reads of updated variables follow the previous iteration's updates."""
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
    """The nodes of one graph or body, and the nodes added to them.

    Attributes
    ----------
    added : list of Node
    types : dict of str to TensorType
        Types of all values, those of added nodes included.
    """

    def __init__(self, nodes: Sequence[Node], types: Types, fresh: Fresh) -> None:
        self.nodes = nodes
        self.types: dict[str, TensorType] = {n: kind for n, kind in types.items() if kind}
        self.fresh = fresh
        self.added: list[Node] = []

    def gradients(self, target: str, wrt: set[str]) -> dict[str, str]:
        """Add the nodes that compute the gradients; the gradient of each value in `wrt`."""
        kind = self.types.get(target)
        if kind is None or kind.dtype == BOOL:
            raise NotDifferentiable(f"{target} is no number")
        flows = set(wrt)  # values with a path from `wrt`
        makers: dict[str, Node | None] = {}  # of these values: the node if the path is through it
        for node in self.nodes:
            if node.op not in _FLAT and _uses(node, flows):
                for value in node.keys:
                    flows.add(value)
                    makers[value] = node
            else:
                makers.update((value, None) for value in node.keys if value in wrt)
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
            maker = makers.get(value)
            if maker is not None:
                for operand, part in self.through(maker, gradient, flows):
                    parts.setdefault(operand, []).append(part)
        return found

    def through(self, node: Node, gradient: str, flows: set[str]) -> Iterable[tuple[str, str]]:
        """Each operand in `flows`, with the node's contribution to its gradient."""
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
        """One term of the chain rule: the gradient of one operand; None if it is zero."""
        operand = node.inputs[place]
        wanted = f"d_{operand}"

        def chosen(second: str) -> str:
            """The gradient where this operand is selected: `second` selects operand 1."""
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
        """The transpose: the sum over i, j of E M E, where E has a single 1 in row j, column i.

        Each term has the element i, j of M in row j, column i, and 0 elsewhere.
        """
        kind = self.types[matrix]
        rows, columns = kind.shape
        transposed = replace(kind, shape=(columns, rows))
        constants = {n.name: n.attrs for n in self.nodes if isinstance(n.attrs, ConstAttrs)}
        if matrix in constants:
            flat = expand(constants[matrix].value, kind.shape, whole=True)
            literal = tuple(flat[column::columns] for column in range(columns))
            return self.constant(f"{matrix}_t", transposed, literal)
        if kind.size == 1:
            return matrix
        terms = []
        for row, column in product(range(rows), range(columns)):
            one = tuple(
                tuple(int((j, i) == (column, row)) for i in range(rows)) for j in range(columns)
            )
            unit = self.constant("unit", transposed, one)
            left = self.pure(f"{matrix}_t", "MatMul", unit, matrix)
            terms.append(self.pure(f"{matrix}_t", "MatMul", left, unit))
        total = terms[0]
        for term in terms[1:]:
            total = self.pure(f"{matrix}_t", "AddV2", total, term)
        return total

    def update(self, read: Node, gradient: str, step: Step) -> str:
        """Add the update of the variable that was read; the node's name."""
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
        """Add the sum of the parts of a value's gradient; its name."""
        total = parts[0]
        for part in parts[1:]:
            total = self.pure(f"d_{value}", "AddV2", total, part)
        return total

    def constant(self, wanted: str, kind: TensorType, value: Nested) -> str:
        """Add a Const node; its name."""
        attrs = ConstAttrs(kind.dtype, kind.shape, value)
        return self.add(Node(self.fresh(wanted), "Const", attrs=attrs), kind)

    def pure(self, wanted: str, op: str, *inputs: str) -> str:
        """Add a pure node; its name."""
        kinds = tuple(self.types[name] for name in inputs)
        kind = result_type(OPS[op], None, kinds, (), whole=True)
        return self.add(Node(self.fresh(wanted), op, inputs), kind)

    def add(self, node: Node, kind: TensorType | None = None) -> str:
        self.added.append(node)
        if kind is not None:
            self.types[node.name] = kind
        return node.name


def _uses(node: Node, values: set[str]) -> bool:
    """True if a node uses one of the values, captures included."""
    return not values.isdisjoint(node.inputs) or any(o in values for _, o in captures_of(node))
