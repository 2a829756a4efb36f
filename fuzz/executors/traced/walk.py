"""Executes the nodes of a test in program order over a traced system.

Each node becomes code of the system's own when the walk reaches it: an op on a variable becomes a
read or write of a reference, a conditional the system's conditional. Under a trace, what the walk
does is what the system compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs, all_nodes, handles_of
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs, Kind
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.traced.pure_uses import PureUses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.fuzz.executors.traced.pure_uses import PureUse

FEATURES: Final = frozenset(
    {
        *("several runs", "conditionals", "loops", "calls", "handles"),
        *("fetches", "placeholders", "gradients", "computed indices"),
    }
)
"""Features of the tests that are programs over references. A reference always has a value."""

Value = Any
Reference = Any
Values = dict[str, Value]
"""Values by their names. A handle is None: which variable it stands for is known beforehand."""
References = Mapping[str, Reference]
"""References by the names of their variables."""


class Aliases(dict[str, Reference]):
    """References that a body has in two ways; a look-up takes one way and the other in turn.

    Parameters
    ----------
    one, other : References
    """

    def __init__(self, one: References, other: References) -> None:
        super().__init__(one)
        self._next, self._following = one, other

    def __getitem__(self, name: str) -> Reference:
        self._next, self._following = self._following, self._next
        return self._following[name]


@dataclass(frozen=True)
class BodyCode:
    """A body as code: a function of values and references.

    Parameters
    ----------
    run : callable
        Takes the values that come into the body, in order, and its references; returns its
        results as a tuple.
    references : mapping of str to reference
        References that it uses, of those around it.
    writes : bool
        True if it may change one.
    """

    run: Callable[[Sequence[Value], Mapping[str, Reference]], tuple[Value, ...]]
    references: References
    writes: bool


@dataclass(frozen=True)
class LoopCode:
    """A loop as code.

    Parameters
    ----------
    condition, body : BodyCode
        Both take the carried values, then the captured ones.
    bound : int
        Iterations, at most.
    always : bool
        True if it always has as many iterations, and its condition touches no reference.
    """

    condition: BodyCode
    body: BodyCode
    bound: int
    always: bool


class System(Protocol):
    """What a traced system offers to a walk."""

    def pure(self, use: PureUse, operands: Sequence[Value]) -> Value:
        """The result of a pure node with operands."""

    def read(self, node: Node, reference: Reference, rows: Value | None) -> Value:
        """Read a reference: whole, or rows of it.

        Parameters
        ----------
        rows : value
            Of an op whose rows are in the file, shape ``(n,)``; of one whose indices are an
            operand, this (`indices.check_indices` says which).
        """

    def write(self, node: Node, reference: Reference, value: Value) -> None:
        """Write the whole of a reference."""

    def update(
        self,
        node: Node,
        references: Sequence[Reference],
        operands: Sequence[Value],
        rows: Value | None,
    ) -> None:
        """Change references: read them and write what they then hold."""

    def branch(
        self, predicate: Value, then: BodyCode, orelse: BodyCode, captured: Sequence[Value]
    ) -> tuple[Value, ...]:
        """Execute one of two bodies, by lane 0 of a predicate."""

    def loop(
        self, code: LoopCode, carried: Sequence[Value], captured: Sequence[Value]
    ) -> tuple[Value, ...]:
        """Execute a loop; the carried values at its end."""

    def call(self, node: Node, code: BodyCode, given: Sequence[Value]) -> tuple[Value, ...]:
        """Call a function."""


class Walk:
    """A walk over nodes of one test.

    Parameters
    ----------
    test : LitmusTest
    system : System
    constants : mapping of str to value
        As `inputs.constants_of` has them, as values of the system.
    """

    def __init__(self, test: LitmusTest, system: System, constants: Mapping[str, Value]) -> None:
        self.test = test
        self.system = system
        self.constants = constants
        self._uses = PureUses(test)
        self._handles = handles_of(test.graphs)
        for name, variables in self._handles.items():
            if len(variables) > 1:
                raise Refused(f"handle {name}, which may stand for several variables")

    def nodes(self, nodes: Iterable[Node], values: Values, references: References) -> Values:
        """Execute nodes one after another; `values` with theirs."""
        for node in nodes:
            values |= self.node(node, values, references)
        return values

    def node(self, node: Node, values: Values, references: References) -> Values:
        """Execute one node; its values."""
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            captured = [values[outer] for _, outer in attrs.captures]
            names = [inner for inner, _ in attrs.captures]
            then, orelse = (
                self.code(body, names, references) for body in (attrs.then, attrs.orelse)
            )
            predicate = values[node.inputs[0]]
            return _results(node, self.system.branch(predicate, then, orelse, captured))
        if isinstance(attrs, CallAttrs):
            given = [values[outer] for _, outer in attrs.captures]
            names = [inner for inner, _ in attrs.captures]
            code = self.code(attrs.body, names, references)
            return _results(node, self.system.call(node, code, given))
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, values, references)
        if isinstance(attrs, HandleAttrs):
            return {node.name: None}
        if isinstance(attrs, ConstAttrs):
            return {node.name: self.constants[node.name]}
        if node.definition.fed:
            return {node.name: values[node.name]}
        given = [values[name] for name in node.inputs]
        kind = self.test.types.get(node.name)
        if kind is not None and kind.is_handle:
            return {node.name: None}
        if node.definition.pure:
            return {node.name: self.system.pure(self._uses.of(node), given)} if given else {}
        return self._on_variables(node, given, references)

    def _on_variables(self, node: Node, given: Sequence[Value], references: References) -> Values:
        on = [references[name] for name in self.variables(node)]
        rows = self.constants.get(node.name)
        if node.definition.computed:
            rows, *given = given
        kind = node.definition.kind
        if kind is Kind.READ:
            return {node.name: self.system.read(node, on[0], rows)}
        if kind is Kind.WRITE:
            self.system.write(node, on[0], given[0])
        else:
            assert kind is Kind.UPDATE, node.op
            self.system.update(node, on, given, rows)
        return {}

    def loop(self, node: Node, attrs: LoopAttrs, values: Values, references: References) -> Values:
        """Execute a loop; its results."""
        captured = [values[outer] for _, outer in attrs.captures]
        carried = [values[name] for name in node.inputs]
        names = [*attrs.carried, *(inner for inner, _ in attrs.captures)]
        condition, body = (
            self.code(each, names, references) for each in (attrs.condition, attrs.body)
        )
        tests = {n.name: n for n in attrs.condition.nodes}
        last = tests.get(attrs.condition.results[0])
        always = last is not None and last.op == "Less" and not condition.references
        code = LoopCode(condition, body, self.test.bounds[node.name], always)
        return _results(node, self.system.loop(code, carried, captured))

    def code(self, body: Body, names: Sequence[str], references: References) -> BodyCode:
        """A body as code; `names` are those of the values that come into it."""
        inside = [node for node in all_nodes(body.nodes) if node.definition.on_variables]
        used = {name for node in inside for name in self.variables(node)}
        around = {name: reference for name, reference in references.items() if name in used}

        def run(values: Sequence[Value], own: Mapping[str, Reference]) -> tuple[Value, ...]:
            made = self.nodes(body.nodes, dict(zip(names, values, strict=True)), own)
            return tuple(made[name] for name in body.results)

        writes = any(node.definition.kind.writes for node in inside)
        return BodyCode(run, around, writes=writes)

    def variables(self, node: Node) -> tuple[str, ...]:
        """The variables that an op works on, each through its handle if it has one."""
        return tuple(self._handles[node.handle]) if node.handle else node.resources


def _results(node: Node, returned: Sequence[Value]) -> Values:
    return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}
