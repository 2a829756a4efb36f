"""The sequential interpreter: runs a test as a program of one thread, with dual integers.

Runs come in the order of the file, and so do the nodes of each graph and body, each wholly
done before the next. That is the model `sequential`, under which a test has a single outcome if
its client orders all runs; otherwise this is one of its outcomes. The interpreter needs no
unfolding and no search; tests compare it with the oracles that do.

Gradients are pushed through the same execution: each integer carries its derivatives, one for each
element of the initial contents that the test differentiates by.

References
----------
semantics.md, section 3, model `sequential`. Griewank and Walther, "Evaluating
Derivatives", SIAM 2008, chapter 3: forward mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs
from litmusfuzz.corpus.ops import (
    FLOATS,
    MAX_MAGNITUDE,
    ConstAttrs,
    HandleAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.arithmetic import evaluated, gathered, written
from litmusfuzz.oracles.errors import NoGradient, NoProgramOrder, OpFails, ValueTooLarge
from litmusfuzz.oracles.model import Axiom

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Run
    from litmusfuzz.oracles.arithmetic import Ints
    from litmusfuzz.oracles.model import Model

EXPRESSIBLE: Final = frozenset(
    {
        *("several runs", "conditionals", "loops", "calls", "handles", "critical sections"),
        *("fetches", "placeholders", "uninitialized variables", "gradients", "computed indices"),
    }
)
"""Features of the tests that a program of one thread can express."""


class NotSequential(NoProgramOrder):
    """The test has a feature that no program of one thread has; the message names it."""


class _Blocks(Exception):
    """A section waits for a mutex that its own run holds."""


def outcome(test: LitmusTest) -> Outcome:
    """The outcome of a test under the model `sequential`, of a thread that executes all runs.

    Raises
    ------
    NotSequential
        If it has queues, accumulators, clusters or transfers.
    ValueTooLarge
        If a value or a gradient reaches 2**24.
    NoGradient
        If a gradient is not defined.
    """
    _check(test)
    machine = _Machine(test)
    try:
        shown = machine.execute()
    except OpFails:
        return Outcome.of(test, {}, Status.FAILED)
    if machine.blocked:
        return Outcome.of(test, shown, Status.BLOCKED)
    return Outcome.of(test, shown | gradients(test))


def gradients(test: LitmusTest) -> dict[str, Ints]:
    """The gradients of an outcome of the test, by key; see `LitmusTest.weights`.

    Raises
    ------
    NotSequential, ValueTooLarge, NoGradient
        See `outcome`.
    """
    if "gradients" not in test.features:
        return {}
    _check(test)
    if not _in_one_line(test.runs):
        raise NotSequential("gradients of runs that the client does not order")
    machine = _DualMachine(test)
    shown = machine.execute()
    if machine.blocked:  # no outcome has a gradient
        return {}
    totals, bounds = [0] * machine.directions, [0] * machine.directions
    for key, weights in test.weights.items():
        for dual, weight in zip(shown[key], weights, strict=True):
            for place, tangent in enumerate(dual.tangent):
                totals[place] += weight * tangent
            for place, bound in enumerate(dual.bound):
                bounds[place] += weight * bound
    if max(bounds) >= MAX_MAGNITUDE:
        raise ValueTooLarge(f"a gradient adds up {max(bounds)}; magnitudes must stay below 2**24")
    found: dict[str, Ints] = {}
    for variable in test.variables:
        if variable.gradient:
            size = test.size_of(variable.shape)
            start = machine.place[variable.name]
            found[variable.gradient_key] = tuple(totals[start : start + size])
    return found


def gradients_apart(test: LitmusTest, model: Model) -> tuple[LitmusTest, dict[str, Ints]]:
    """The test without its gradients, and these, by key.

    Raises
    ------
    NoProgramOrder
        If it has gradients and the model is not `sequential`.
    NotSequential, ValueTooLarge, NoGradient
        See `outcome`.
    """
    if "gradients" not in test.features:
        return test, {}
    if Axiom.SEQUENCE not in model.axioms:
        text = "gradients are those of a program of one thread"
        raise NoProgramOrder(f"{text}, model sequential (model {model.name})")
    plain = tuple(replace(each, gradient=False) for each in test.variables)
    return replace(test, variables=plain), gradients(test)


def differentiated(outcome: Outcome, gradients: Mapping[str, Ints]) -> Outcome:
    """An outcome of a test without gradients, as one of the test with them."""
    if outcome.status is not Status.COMPLETED:
        return outcome
    return Outcome((*outcome.values, *gradients.items()))


def with_those_gradients(outcome: Outcome, gradients: Mapping[str, Ints]) -> Outcome | None:
    """An outcome without its gradients; None if they are not these."""
    if not gradients or outcome.status is not Status.COMPLETED:
        return outcome
    values = dict(outcome.values)
    if any(values.pop(key) != gradient for key, gradient in gradients.items()):
        return None
    return Outcome(tuple(values.items()))


def _check(test: LitmusTest) -> None:
    if beyond := test.features - EXPRESSIBLE:
        raise NotSequential(", ".join(sorted(beyond)))


def _in_one_line(runs: Sequence[Run]) -> bool:
    """True if the client orders all runs."""
    above: dict[str, set[str]] = {}
    for run in runs:
        above[run.name] = {*run.after}.union(*(above[name] for name in run.after))
        if len(above[run.name]) < len(above) - 1:
            return False
    return True


Value = TypeVar("Value", bound=tuple[Any, ...])
"""A model value: of ints, or of dual numbers."""


@dataclass
class _Interpreter(Generic[Value]):
    """The contents of all variables, and the execution of nodes over them."""

    test: LitmusTest

    def __post_init__(self) -> None:
        self.contents: dict[str, Value] = {}
        self.locked: set[str] = set()
        self.blocked: set[str] = set()
        """Runs that wait for a mutex for ever, or for such a run."""

    # --- what depends on the numbers -----------------------------------------------------

    def lifted(self, ints: Ints) -> Value:
        """A constant."""
        raise NotImplementedError

    def truth(self, value: Value) -> bool:
        """A predicate: lane 0, row 0."""
        raise NotImplementedError

    def pure(self, node: Node, given: Sequence[Value]) -> Value:
        """The result of a pure op with operands."""
        raise NotImplementedError

    def stored(
        self, node: Node, seen: Sequence[Value], given: Sequence[Value], size: int
    ) -> Sequence[Value]:
        """What a write or an update stores in its variables."""
        raise NotImplementedError

    def at_places(
        self, node: Node, seen: Value, given: Sequence[Value], shape: tuple[int, ...]
    ) -> Value:
        """What an op whose indices are operands reads, or stores in its variable of that shape."""
        raise NotImplementedError

    # --- execution --------------------------------------------------------------------------

    def execute(self) -> dict[str, Value]:
        """Execute all runs; values by the keys of an outcome, and others."""
        test = self.test
        shown: dict[str, Value] = {}
        for run in test.runs:
            graph = test.graph_of(run)
            fed = {n.name: self.lifted(test.fed(run, n)) for n in graph.nodes if n.definition.fed}
            if self.blocked.intersection(run.after):
                self.blocked.add(run.name)
                continue
            try:
                values = self.nodes(graph.nodes, fed)
            except _Blocks:
                self.blocked.add(run.name)
                continue
            prefix = "" if len(test.runs) == 1 else f"{run.name}."
            shown |= {f"{prefix}{name}": value for name, value in values.items()}
        return shown | self.contents

    def nodes(self, nodes: Sequence[Node], scope: Mapping[str, Value]) -> dict[str, Value]:
        """Execute nodes in their order; all values.

        A section's lock is taken just before its first member, and given back after its last.
        """
        values = dict(scope)
        names = [node.name for node in nodes]
        sections = [
            (section, [name for name in names if name in section.members])
            for section in nodes
            if section.definition.kind is Kind.SECTION
        ]
        sections.sort(key=lambda each: len(each[0].members), reverse=True)  # the outer ones first
        for node in nodes:
            if node.definition.kind is Kind.SECTION:
                continue
            for section, members in sections:
                if members[0] == node.name:
                    (mutex,) = section.resources
                    if mutex in self.locked:
                        raise _Blocks
                    self.locked.add(mutex)
            values |= self.node(node, values)
            for section, members in sections:
                if members[-1] == node.name:
                    self.locked.difference_update(section.resources)
        return values

    def node(self, node: Node, values: Mapping[str, Value]) -> dict[str, Value]:
        """Execute one node; its values."""
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            taken = attrs.then if self.truth(values[node.inputs[0]]) else attrs.orelse
            return self.results(node, self.body(taken, self.captured(attrs.captures, values)))
        if isinstance(attrs, CallAttrs):
            return self.results(node, self.body(attrs.body, self.captured(attrs.captures, values)))
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, values)
        if isinstance(attrs, HandleAttrs):
            names = [each.name for each in self.test.variables]
            return {node.name: self.lifted((names.index(attrs.variable),))}
        if isinstance(attrs, ConstAttrs):
            return {node.name: self.lifted(self.test.constant(node))}
        if node.definition.fed:
            return {node.name: values[node.name]}
        if node.definition.pure:
            given = [values[name] for name in node.inputs]
            if node.op == "Identity":  # of a handle as well
                return {node.name: given[0]}
            return {node.name: self.pure(node, given)} if given else {}
        return self.on_variables(node, values)

    def on_variables(self, node: Node, values: Mapping[str, Value]) -> dict[str, Value]:
        """Execute an op that reads, writes or updates variables."""
        names = node.resources
        if node.handle:
            names = (self.chosen(values[node.handle]),)
        seen = [self.contents[name] for name in names]
        kind = node.definition.kind
        if kind is Kind.STATE:
            return {node.name: self.lifted((int(seen[0] != ()),))}
        if kind is not Kind.WRITE and () in seen:
            raise OpFails(f"{node.name} ({node.op}): a variable has no value")
        size = self.test.size_of(self.test.type_of(names[0]).shape[1:]) if self.test.whole else 1
        given = [values[name] for name in node.inputs]
        if node.definition.computed:
            shape = self.test.type_of(names[0]).shape
            made = self.at_places(node, seen[0], given, shape)
            if kind is Kind.READ:
                return {node.name: made}
            self.contents[names[0]] = made
            return {}
        if kind is Kind.READ:
            read: Any = gathered(node, seen[0], size)
            return {node.name: read}
        self.contents |= zip(names, self.stored(node, seen, given, size), strict=True)
        return {}

    def chosen(self, handle: Value) -> str:
        """The variable that a handle stands for."""
        raise NotImplementedError

    def captured(
        self, captures: Sequence[tuple[str, str]], values: Mapping[str, Value]
    ) -> dict[str, Value]:
        """The values that come into a body, by their names inside."""
        return {inner: values[outer] for inner, outer in captures}

    def body(self, body: Body, scope: Mapping[str, Value]) -> list[Value]:
        """Execute a body; its results."""
        values = self.nodes(body.nodes, scope)
        return [values[name] for name in body.results]

    def loop(self, node: Node, attrs: LoopAttrs, values: Mapping[str, Value]) -> dict[str, Value]:
        """Execute a loop; the carried values at its end."""
        captured = self.captured(attrs.captures, values)
        carried = [values[name] for name in node.inputs]
        while True:
            scope = captured | dict(zip(attrs.carried, carried, strict=True))
            (more,) = self.body(attrs.condition, scope)
            if not self.truth(more):
                return self.results(node, carried)
            carried = self.body(attrs.body, scope)

    def results(self, node: Node, returned: Sequence[Value]) -> dict[str, Value]:
        """The results of a node with bodies, by their names outside."""
        return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}


class _Machine(_Interpreter["Ints"]):
    """The interpreter over integers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.contents = {v.name: self.test.initial(v) for v in self.test.variables}

    def lifted(self, ints: Ints) -> Ints:
        return ints

    def truth(self, value: Ints) -> bool:
        return bool(value[0])

    def chosen(self, handle: Ints) -> str:
        return self.test.variables[handle[0]].name

    def pure(self, node: Node, given: Sequence[Ints]) -> Ints:
        return evaluated(self.test, node, given)

    def stored(
        self, node: Node, seen: Sequence[Ints], given: Sequence[Ints], size: int
    ) -> list[Ints]:
        return written(node, seen, given, size)

    def at_places(
        self, node: Node, seen: Ints, given: Sequence[Ints], shape: tuple[int, ...]
    ) -> Ints:
        return evaluated(self.test, node, (seen, *given))


# --- dual integers -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Dual:
    """An integer with its derivatives.

    Parameters
    ----------
    value : int
    tangent : tuple of int
        Its derivative in each direction; () for zeros.
    bound : tuple of int
        The sum of the magnitudes of all terms of the derivative, which an executor may add up in
        any order, from either end.
    """

    value: int
    tangent: Ints = ()
    bound: Ints = ()

    def __add__(self, other: _Dual) -> _Dual:
        return self._sum(other, 1, 1, self.value + other.value)

    def __sub__(self, other: _Dual) -> _Dual:
        return self._sum(other, 1, -1, self.value - other.value)

    def __mul__(self, other: _Dual) -> _Dual:
        return self._sum(other, other.value, self.value, self.value * other.value)

    def __neg__(self) -> _Dual:
        return _ZERO - self

    def _sum(self, other: _Dual, mine: int, others: int, value: int) -> _Dual:
        """A value whose derivative is that of both, each times a factor."""
        one, two = (self, mine), (other, others)
        pairs = [(dual, factor) for dual, factor in (one, two) if dual.tangent]
        if not pairs:
            return _Dual(value)
        tangents = zip(*([f * t for t in d.tangent] for d, f in pairs), strict=True)
        bounds = zip(*([abs(f) * t for t in d.bound] for d, f in pairs), strict=True)
        return _Dual(value, tuple(map(sum, tangents)), tuple(map(sum, bounds)))

    def chosen_from(self, other: _Dual, *, least: bool) -> _Dual:
        """The smaller or larger of two; of equals, if their derivatives are equal.

        Raises
        ------
        NoGradient
            At a tie: what the derivative is there, no documentation says.
        """
        if self.value != other.value:
            return self if (self.value < other.value) is least else other
        if any(self.tangent) or any(other.tangent):
            raise NoGradient("a maximum or minimum of equal values has no gradient")
        return self


_ZERO: Final = _Dual(0)
Duals = tuple[_Dual, ...]


def _tangent(place: int, dual: _Dual) -> int:
    return dual.tangent[place] if dual.tangent else 0


def _bound(place: int, dual: _Dual) -> int:
    return dual.bound[place] if dual.bound else 0


LINEAR: Final = frozenset(
    {
        *("Reshape", "BroadcastTo", "ExpandDims", "Squeeze", "Transpose", "ConjugateTranspose"),
        *("Tile", "Fill", "Pack", "ConcatV2", "Concat", "Pad", "PadV2", "MirrorPad"),
        *("Slice", "StridedSlice", "StridedSliceGrad", "TensorStridedSliceUpdate"),
        *("Split", "SplitV", "Unpack", "Reverse", "ReverseV2", "Roll", "Snapshot", "SelectV2"),
        *("Gather", "GatherV2", "GatherNd", "ScatterNd", "TensorScatterAdd", "OneHot"),
        *("Add", "AddN", "Sum", "Cumsum", "BiasAdd", "BiasAddV1", "BiasAddGrad"),
        *("SegmentSum", "UnsortedSegmentSum", "SpaceToDepth", "DepthToSpace"),
        *("Diag", "DiagPart", "MatrixBandPart"),
        *(f"Matrix{n}{v}" for n in ("Diag", "DiagPart", "SetDiag") for v in ("", "V2", "V3")),
    }
)
"""Pure ops of which each element of a result is a sum of elements of operands that are floats."""
_BINARY: dict[str, Callable[[_Dual, _Dual], _Dual]] = {
    "AddV2": _Dual.__add__,
    "Sub": _Dual.__sub__,
    "Mul": _Dual.__mul__,
    "Maximum": lambda a, b: a.chosen_from(b, least=False),
    "Minimum": lambda a, b: a.chosen_from(b, least=True),
    "Less": lambda a, b: _Dual(int(a.value < b.value)),
    "Equal": lambda a, b: _Dual(int(a.value == b.value)),
    "ReluGrad": lambda gradient, feature: gradient if feature.value > 0 else _ZERO,
}
_SCATTER: dict[str, Callable[[_Dual, _Dual], _Dual]] = {
    "Update": lambda _, new: new,
    "Add": _Dual.__add__,
    "Sub": _Dual.__sub__,
    "Mul": _Dual.__mul__,
    "Min": _BINARY["Minimum"],
    "Max": _BINARY["Maximum"],
}


def _each(operation: Callable[[_Dual, _Dual], _Dual], x: Duals, y: Duals) -> Duals:
    """The operation element by element; a value of one element goes with each."""
    size = max(len(x), len(y))
    x, y = (each * (size // len(each)) for each in (x, y))
    return tuple(map(operation, x, y))


class _DualMachine(_Interpreter["Duals"]):
    """The interpreter over dual integers.

    Attributes
    ----------
    directions : int
        Elements that the test differentiates by.
    place : dict of str to int
        By variable with a gradient: the direction of its first element.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.directions = 0
        self.place: dict[str, int] = {}
        for variable in self.test.variables:
            if variable.gradient:
                self.place[variable.name] = self.directions
                self.directions += self.test.size_of(variable.shape)
        for variable in self.test.variables:
            values = self.lifted(self.test.initial(variable))
            start = self.place.get(variable.name)
            if start is not None:
                values = tuple(
                    _Dual(each.value, (row := self._unit(start + n)), row)
                    for n, each in enumerate(values)
                )
            self.contents[variable.name] = values

    def _unit(self, place: int) -> Ints:
        return tuple(int(n == place) for n in range(self.directions))

    def lifted(self, ints: Ints) -> Duals:
        return tuple(map(_Dual, ints))

    def truth(self, value: Duals) -> bool:
        return bool(value[0].value)

    def chosen(self, handle: Duals) -> str:
        return self.test.variables[handle[0].value].name

    def pure(self, node: Node, given: Sequence[Duals]) -> Duals:
        if node.op in _BINARY:
            return _each(_BINARY[node.op], *given)
        if node.op == "Neg":
            return tuple(-each for each in given[0])
        if node.op == "Relu":
            return tuple(each.chosen_from(_ZERO, least=False) for each in given[0])
        if node.op == "Select":
            condition, then, other = given
            condition *= len(then) // len(condition)
            chosen = zip(condition, then, other, strict=True)
            return tuple(t if c.value else e for c, t, e in chosen)
        if node.op == "MatMul":
            return self._matmul(node, *given)
        if node.op in LINEAR and not any(self.test.type_of(n).dynamic for n in node.inputs):
            return self._linear(node, given)
        if any(any(dual.tangent) for value in given for dual in value):
            raise NoGradient(f"{node.name} ({node.op}) has no rule for its gradient")
        return self.lifted(
            evaluated(self.test, node, [tuple(d.value for d in each) for each in given])
        )

    def _linear(self, node: Node, given: Sequence[Duals]) -> Duals:
        """An op that only moves and adds up elements of floats is its own derivative."""
        floats = [self.test.type_of(name).dtype in FLOATS for name in node.inputs]

        def of(part: Callable[[_Dual], int]) -> Ints:
            return evaluated(
                self.test,
                node,
                [
                    tuple(part(dual) if own else dual.value for dual in value)
                    for value, own in zip(given, floats, strict=True)
                ],
            )

        values = of(lambda dual: dual.value)
        if not any(dual.tangent for value in given for dual in value):
            return self.lifted(values)
        tangents, bounds = (
            zip(*(of(partial(each, place)) for place in range(self.directions)), strict=True)
            for each in (_tangent, _bound)
        )
        return tuple(map(_Dual, values, tangents, bounds))

    def _matmul(self, node: Node, a: Duals, b: Duals) -> Duals:
        (n, k), (_, m) = (self.test.type_of(name).shape for name in node.inputs)
        return tuple(
            sum((a[i * k + x] * b[x * m + j] for x in range(k)), start=_ZERO)
            for i in range(n)
            for j in range(m)
        )

    def stored(
        self, node: Node, seen: Sequence[Duals], given: Sequence[Duals], size: int
    ) -> list[Duals]:
        if node.op == "AssignVariableOp":
            return [given[0]]
        if isinstance(node.attrs, (RowsAttrs, SliceAttrs)):
            return [self._scattered(node, seen[0], given[0], size)]
        if isinstance(node.attrs, MomentumAttrs):
            return self._momentum(node, *seen, *given)
        step = given[0]
        if node.op == "AssignAddVariableOp":
            return [_each(_Dual.__add__, seen[0], step)]
        if node.op == "ResourceApplyGradientDescent":
            step = _each(_Dual.__mul__, given[0], given[1])
        return [_each(_Dual.__sub__, seen[0], step)]

    def at_places(
        self, node: Node, seen: Duals, given: Sequence[Duals], shape: tuple[int, ...]
    ) -> Duals:
        """As the op of the same name whose rows are in the file; cells are rows of one element."""
        how = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
        known = node.definition.kind is Kind.READ or how in _SCATTER
        depth = self.test.type_of(node.inputs[0]).shape[-1] if node.definition.nd else 1
        if not known or not depth:
            raise NoGradient(f"{node.name} ({node.op}) has no rule for its gradient")
        numbers = [each.value for each in given[0]]
        rows = [0] * (len(numbers) // depth)
        for axis, size in enumerate(shape[:depth]):
            along = numbers[axis::depth]
            if any(not 0 <= number < size for number in along):
                raise OpFails(f"{node.name} ({node.op}): an index leaves its range")
            rows = [row * size + number for row, number in zip(rows, along, strict=True)]
        fixed = replace(node, inputs=node.inputs[1:], attrs=RowsAttrs(tuple(rows)))
        size = self.test.size_of(shape[depth:]) if self.test.whole else 1
        if node.definition.kind is Kind.READ:
            read: Any = gathered(fixed, seen, size)  # type: ignore[arg-type]
            return cast("Duals", read)
        return self._scattered(fixed, seen, given[1], size)

    def _scattered(self, node: Node, seen: Duals, updates: Duals, size: int) -> Duals:
        contents = list(seen)
        if isinstance(node.attrs, SliceAttrs):
            rows: Sequence[int] = node.attrs.rows
            combine = _SCATTER["Update"]
        else:
            assert isinstance(node.attrs, RowsAttrs)
            rows = node.attrs.indices
            combine = _SCATTER[node.op.removeprefix("ResourceScatter").removeprefix("Nd")]
        if len(updates) == 1:
            updates *= len(rows) * size
        for position, row in enumerate(rows):
            for element in range(size):
                place = row * size + element
                contents[place] = combine(contents[place], updates[position * size + element])
        return tuple(contents)

    def _momentum(
        self, node: Node, var: Duals, accum: Duals, lr: Duals, grad: Duals, momentum: Duals
    ) -> list[Duals]:
        assert isinstance(node.attrs, MomentumAttrs)
        add, sub, mul = _Dual.__add__, _Dual.__sub__, _Dual.__mul__
        nesterov, step = node.attrs.use_nesterov, _each(mul, lr, grad)
        if node.op == "ResourceApplyKerasMomentum":
            accum = _each(sub, _each(mul, accum, momentum), step)
            ahead = _each(sub, _each(mul, accum, momentum), step)
            return [_each(add, var, ahead if nesterov else accum), accum]
        accum = _each(add, _each(mul, accum, momentum), grad)
        if not nesterov:
            return [_each(sub, var, _each(mul, accum, lr)), accum]
        ahead = _each(add, step, _each(mul, _each(mul, accum, momentum), lr))
        return [_each(sub, var, ahead), accum]
