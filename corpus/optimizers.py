"""Steps of Keras's optimizers, as ops of a litmus test: what ``optimizer.apply`` does to variables.

A step is the body of a call that captures the gradient. Its nodes are the accesses and the
arithmetic of ``update_step``, in the order in which Keras has them, and with the edges that
automatic control dependencies add: a write of a variable follows what read it before, and a read
what wrote it. So a test means the same for every oracle and executor, while the front end `keras`
executes ``optimizer.apply`` itself (`litmusfuzz.fuzz.executors.tensorflow.keras_steps`).

All of it is exact on small integers: learning rates, clip values and gradients are integers, and
momenta 0 or 1. Adagrad, RMSprop, Adam and their kin divide or take roots, and have no step here;
nor has gradient accumulation, whose conditional reads the iterations to choose a branch.

References
----------
Keras 3, ``keras/src/optimizers/sgd.py`` and ``lion.py`` (``update_step``), ``base_optimizer.py``
(``apply``, ``_backend_apply_gradients``, ``_clip_gradients``,
``_update_model_variables_moving_average``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Body, CallAttrs, Node
from litmusfuzz.corpus.ops import FLOATS, ConstAttrs, Kind, PureAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest

GRADIENT: Final = "gradient"
"""What a step calls the value that it captures."""
ITERATIONS: Final = "int64"
"""dtype of the counter of steps, under TensorFlow."""
_KINDS: Final = ("SGD", "Lion")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an optimizer, and the variables of a test that it works on.

    Parameters
    ----------
    kind : str
        ``SGD`` or ``Lion``.
    variable : str
        What is trained.
    learning_rate : int
        If `rate` names no variable.
    momentum : int
        0 or 1: of SGD its momentum, of Lion ``beta_2``. Lion's ``beta_1`` is 1.
    nesterov : bool
        Of SGD with a momentum.
    clip : int
        ``clipvalue``; 0 for none.
    average_momentum : int
        ``ema_momentum``, 0 or 1, if `average` names a variable.
    slot : str
        The variable of the momentum; "" for SGD without one.
    rate, iterations, average : str
        The variables of the learning rate, a scalar float, of the counter of steps, and of the
        moving average; "" if the test shows none. Keras has the first two all the same.
    """

    kind: str
    variable: str
    learning_rate: int = 1
    momentum: int = 0
    nesterov: bool = False
    clip: int = 0
    average_momentum: int = 0
    slot: str = ""
    rate: str = ""
    iterations: str = ""
    average: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the test that are the optimizer's own."""
        return tuple(filter(None, (self.slot, self.rate, self.iterations, self.average)))


class _Writer:
    """The nodes of a step; a node's name begins with `prefix`."""

    def __init__(self, prefix: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.prefix, self.dtype, self.shape = prefix, dtype, shape
        self.nodes: list[Node] = []
        self._reads: dict[str, list[str]] = {}  # by variable, since its last write
        self._wrote: dict[str, str] = {}

    def _add(self, node: Node) -> str:
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(replace(node, name=name))
        return name

    def pure(self, op: str, *inputs: str, attrs: PureAttrs | None = None) -> str:
        """A pure op."""
        return self._add(Node("", op, inputs, attrs=attrs))

    def number(self, value: int, dtype: str = "") -> str:
        """A scalar constant."""
        return self._add(Node("", "Const", attrs=ConstAttrs(dtype or self.dtype, (), value)))

    def read(self, variable: str) -> str:
        """A read, after what wrote the variable before."""
        after = (self._wrote[variable],) if variable in self._wrote else ()
        name = self._add(Node("", "ReadVariableOp", (), (variable,), after))
        self._reads.setdefault(variable, []).append(name)
        return name

    def write(self, op: str, variable: str, value: str) -> None:
        """A write or update, after what read or wrote the variable before."""
        before = [*self._reads.pop(variable, ())]
        before += [self._wrote[variable]] if variable in self._wrote else []
        after = tuple(each for each in before if each != value)
        self._wrote[variable] = self._add(Node("", op, (value,), (variable,), after))


def body(step: Step, prefix: str, dtype: str, shape: tuple[int, ...]) -> Body:
    """The body of a step: it captures `GRADIENT`, which has the variable's type; no result."""
    make = _Writer(prefix, dtype, shape)
    gradient = GRADIENT
    if step.clip:
        gradient = make.pure("Maximum", gradient, make.number(-step.clip))
        gradient = make.pure("Minimum", gradient, make.number(step.clip))
    rate = make.read(step.rate) if step.rate else make.number(step.learning_rate)
    momentum = make.number(step.momentum) if step.slot else ""
    if step.kind == "Lion":
        one, zero = make.number(1), make.number(0)
        old = make.pure("Mul", make.read(step.slot), one)
        sign = make.pure("Sign", make.pure("AddV2", old, make.pure("Mul", gradient, zero)))
        make.write("AssignSubVariableOp", step.variable, make.pure("Mul", rate, sign))
        kept = make.pure("Mul", make.read(step.slot), momentum)
        new = make.pure("Mul", gradient, make.number(1 - step.momentum))
        make.write("AssignVariableOp", step.slot, make.pure("AddV2", kept, new))
    elif step.slot:

        def moved() -> str:
            kept = make.pure("Mul", make.read(step.slot), momentum)
            return make.pure("Sub", kept, make.pure("Mul", gradient, rate))

        make.write("AssignVariableOp", step.slot, moved())
        value = moved() if step.nesterov else make.read(step.slot)
        make.write("AssignAddVariableOp", step.variable, value)
    else:
        make.write("AssignSubVariableOp", step.variable, make.pure("Mul", gradient, rate))
    if step.average:
        later = make.pure("NotEqual", make.read(step.iterations), make.number(0, ITERATIONS))
        later = make.pure("Cast", later, attrs=PureAttrs((("DstT", dtype),)))
        kept = make.pure("Mul", later, make.number(step.average_momentum))
        new = make.pure("Sub", make.number(1), kept)
        old = make.pure("Mul", kept, make.read(step.average))
        seen = make.pure("Mul", new, make.read(step.variable))
        make.write("AssignVariableOp", step.average, make.pure("AddV2", old, seen))
    if step.iterations:  # a variable of Keras has no update of its own: read, add, assign
        count = make.pure("AddV2", make.read(step.iterations), make.number(1, ITERATIONS))
        make.write("AssignVariableOp", step.iterations, count)
    return Body(tuple(make.nodes), ())


def call(step: Step, name: str, gradient: str, dtype: str, shape: tuple[int, ...]) -> Node:
    """A node of a test that is a step with that gradient; names inside begin with `name`."""
    made = body(step, f"{name}_", dtype, shape)
    inside = f"{name}_{GRADIENT}"
    nodes = tuple(
        replace(n, inputs=tuple(inside if each == GRADIENT else each for each in n.inputs))
        for n in made.nodes
    )
    return Node(
        name, "Call", attrs=CallAttrs(((inside, gradient),), replace(made, nodes=nodes), ())
    )


def recognized(test: LitmusTest, node: Node) -> Step | None:
    """The step that a call is, whatever its names, constants' shapes and control edges are.

    Control edges have to be such as automatic control dependencies make: between ops on one
    variable.
    """
    attrs = node.attrs
    if not isinstance(attrs, CallAttrs) or len(attrs.captures) != 1 or attrs.results:
        return None
    if not _as_dependencies(attrs.body):
        return None
    wanted = _form(attrs.body, attrs.captures[0][0])
    written = [each for each in attrs.body.nodes if each.definition.kind in _WRITES]
    if not written:
        return None
    for step in _candidates(test, attrs.body):
        variable = next(v for v in test.variables if v.name == step.variable)
        if _form(body(step, "", variable.dtype, variable.shape), GRADIENT) == wanted:
            return step
    return None


_WRITES: Final = frozenset({Kind.WRITE, Kind.UPDATE})


def _as_dependencies(given: Body) -> bool:
    """Whether each control edge is one that automatic control dependencies make, or implies.

    These lead to a write from what came before it on the same variable, and from a write to what
    comes after it. A body may lack some of them: then Keras is stricter than the test.
    """
    earlier: dict[str, Node] = {}
    for node in given.nodes:
        for name in node.after:
            before = earlier.get(name)
            if before is None or before.resources != node.resources:
                return False
            if not {node.definition.kind, before.definition.kind} & _WRITES:
                return False
        earlier[node.name] = node
    return True


def _candidates(test: LitmusTest, given: Body) -> Iterator[Step]:
    """The steps that a body may be, by the variables and constants in it."""
    kinds = {v.name: v for v in test.variables}
    uses: dict[str, list[str]] = {}
    for node in given.nodes:
        for name in node.resources:
            uses.setdefault(name, []).append(node.op)
    updates = ("AssignAddVariableOp", "AssignSubVariableOp")
    trained, slots, rates, counters = [], [], [""], [""]
    for name, ops in uses.items():
        if name not in kinds or kinds[name].init is None:
            return
        if kinds[name].dtype == ITERATIONS:
            counters = [name]
        elif any(op in updates for op in ops):
            trained.append(name)
        elif "AssignVariableOp" in ops:
            slots.append(name)
        else:
            rates = [name]
    if len(trained) != 1 or kinds[trained[0]].dtype not in FLOATS:
        return
    values = {
        n.attrs.value
        for n in given.nodes
        if isinstance(n.attrs, ConstAttrs) and isinstance(n.attrs.value, int)
    }
    numbers = sorted(each for each in values if each >= 0)
    owners = [(s, a) for s in ("", *slots) for a in ("", *slots) if s != a or not s]
    owners = [(s, a) for s, a in owners if {s, a} - {""} == set(slots)]
    for kind, (slot, average), rate, count in product(_KINDS, owners, rates, counters):
        if (kind == "Lion" and not slot) or (average and not count):
            continue
        for momentum, nesterov, clip, lr, ema in product(
            (0, 1) if slot else (0,),
            (False, True) if slot and kind == "SGD" else (False,),
            (0, *(each for each in numbers if each)),
            (1,) if rate else numbers,
            (0, 1) if average else (0,),
        ):
            if kind == "SGD" and slot and not momentum:
                continue  # then Keras has no variable for it
            yield Step(
                kind, trained[0], lr, momentum, nesterov, clip, ema, slot, rate, count, average
            )


def _form(given: Body, gradient: str) -> tuple[object, ...]:
    """What a body does, without names: its writes in order, each with what it computes.

    A read is known by its variable, by how many writes of that come before it, and by what takes
    its value: two reads are not one that is taken twice, which cannot see two values.
    """
    forms: dict[str, object] = {gradient: GRADIENT}
    wrote: dict[str, int] = {}
    found: list[object] = []
    read: dict[str, tuple[object, list[str]]] = {}
    for node in given.nodes:
        inputs = tuple(forms.get(name) for name in node.inputs)
        for position, name in enumerate(node.inputs):
            if name in read:
                read[name][1].append(repr((node.op, position, inputs)))
        if isinstance(node.attrs, ConstAttrs):
            forms[node.name] = ("Const", node.attrs.dtype, node.attrs.value)
            continue
        if node.resources:
            place = (node.op, node.resources, wrote.get(node.resources[0], 0))
            if node.definition.kind in _WRITES:
                wrote[node.resources[0]] = wrote.get(node.resources[0], 0) + 1
                found.append((place, inputs))
            else:
                read[node.name] = (place, [])
            forms[node.name] = place
            continue
        forms[node.name] = (node.op, node.attrs, inputs)
    reads = (repr((place, sorted(taken))) for place, taken in read.values())
    return (tuple(sorted(map(repr, found))), tuple(sorted(reads)))


def gradient_of(node: Node) -> str:
    """The value outside that a step captures as its gradient."""
    assert isinstance(node.attrs, CallAttrs)
    return node.attrs.captures[0][1]


def steps_of(test: LitmusTest) -> Mapping[str, Step]:
    """The steps of a test, by the names of their calls."""
    found = {node.name: recognized(test, node) for node in test.nodes}
    return {name: step for name, step in found.items() if step is not None}
