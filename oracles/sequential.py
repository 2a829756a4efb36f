"""The sequential interpreter: runs a test as a program of one thread.

Runs come in the order of the file, and so do the nodes of each graph and body, each wholly
done before the next. That is the model `sequential`, under which a test has a single outcome. The
interpreter needs no unfolding and no search; tests compare it with the oracles that do.

References
----------
semantics.md, section 3, model `program`, of one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs, Kind
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.oracles.arithmetic import evaluated, gathered, written
from litmusfuzz.oracles.errors import OpFails

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.oracles.arithmetic import Ints


class NotSequential(ValueError):
    """The test has a feature that no program of one thread has; the message names it."""


EXPRESSIBLE = frozenset(
    {
        *("several runs", "conditionals", "loops", "calls", "handles"),
        *("fetches", "placeholders", "uninitialized variables"),
    }
)
"""Features of the tests that a program of one thread can express."""


def outcome(test: LitmusTest) -> Outcome:
    """The outcome of a test under the model `sequential`.

    Raises
    ------
    NotSequential
        If it has queues, critical sections, clusters or transfers.
    ValueTooLarge
        If a value reaches 2**24.
    """
    if beyond := test.features - EXPRESSIBLE:
        raise NotSequential(", ".join(sorted(beyond)))
    machine = _Machine(test)
    shown: dict[str, Ints] = {}
    try:
        for run in test.runs:
            graph = test.graph_of(run)
            fed = {n.name: test.fed(run, n) for n in graph.nodes if n.definition.fed}
            values = machine.nodes(graph.nodes, fed)
            prefix = "" if len(test.runs) == 1 else f"{run.name}."
            shown |= {f"{prefix}{name}": value for name, value in values.items()}
    except OpFails:
        return Outcome.of(test, {}, Status.FAILED)
    return Outcome.of(test, shown | machine.contents)


@dataclass
class _Machine:
    """The contents of all variables, and the execution of nodes over them."""

    test: LitmusTest
    contents: dict[str, Ints] = field(init=False)

    def __post_init__(self) -> None:
        self.contents = {v.name: self.test.initial(v) for v in self.test.variables}

    def nodes(self, nodes: Sequence[Node], scope: Mapping[str, Ints]) -> dict[str, Ints]:
        """Execute nodes in their order; all values."""
        values = dict(scope)
        for node in nodes:
            values |= self.node(node, values)
        return values

    def node(self, node: Node, values: Mapping[str, Ints]) -> dict[str, Ints]:
        """Execute one node; its values."""
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            taken = attrs.then if values[node.inputs[0]][0] else attrs.orelse
            scope = self.captured(attrs.captures, values)
            return self.results(node, self.body(taken, scope))
        if isinstance(attrs, CallAttrs):
            scope = self.captured(attrs.captures, values)
            return self.results(node, self.body(attrs.body, scope))
        if isinstance(attrs, LoopAttrs):
            return self.loop(node, attrs, values)
        if isinstance(attrs, HandleAttrs):
            return {node.name: self.handle_of(attrs.variable)}
        if isinstance(attrs, ConstAttrs):
            return {node.name: self.test.constant(node)}
        if node.definition.fed:
            return {node.name: values[node.name]}
        if node.definition.pure:
            if not node.inputs:
                return {}
            given = [values[name] for name in node.inputs]
            kind = self.test.types[node.name]
            if node.op == "Identity" and kind is not None and kind.is_handle:
                return {node.name: given[0]}
            return {node.name: evaluated(self.test, node, given)}
        return self.on_variables(node, values)

    def on_variables(self, node: Node, values: Mapping[str, Ints]) -> dict[str, Ints]:
        """Execute an op that reads, writes or updates variables."""
        names = node.resources
        if node.handle:
            names = (self.test.variables[values[node.handle][0]].name,)
        seen = [self.contents[name] for name in names]
        kind = node.definition.kind
        if kind is Kind.STATE:
            return {node.name: (int(seen[0] != ()),)}
        if kind is not Kind.WRITE and () in seen:
            raise OpFails(f"{node.name} ({node.op}): a variable has no value")
        size = self.test.size_of(self.test.type_of(names[0]).shape[1:]) if self.test.whole else 1
        if kind is Kind.READ:
            return {node.name: gathered(node, seen[0], size)}
        given = [values[name] for name in node.inputs]
        stored = written(node, seen, given, size)
        self.contents |= zip(names, stored, strict=True)
        return {}

    def handle_of(self, variable: str) -> Ints:
        """A handle as a value: the place of its variable."""
        return (next(i for i, v in enumerate(self.test.variables) if v.name == variable),)

    def captured(
        self, captures: Sequence[tuple[str, str]], values: Mapping[str, Ints]
    ) -> dict[str, Ints]:
        """The values that come into a body, by their names inside."""
        return {inner: values[outer] for inner, outer in captures}

    def body(self, body: Body, scope: Mapping[str, Ints]) -> list[Ints]:
        """Execute a body; its results."""
        values = self.nodes(body.nodes, scope)
        return [values[name] for name in body.results]

    def loop(self, node: Node, attrs: LoopAttrs, values: Mapping[str, Ints]) -> dict[str, Ints]:
        """Execute a loop; the carried values at its end."""
        captured = self.captured(attrs.captures, values)
        carried = [values[name] for name in node.inputs]
        while True:
            scope = captured | dict(zip(attrs.carried, carried, strict=True))
            (more,) = self.body(attrs.condition, scope)
            if not more[0]:
                return self.results(node, carried)
            carried = self.body(attrs.body, scope)

    def results(self, node: Node, returned: Sequence[Ints]) -> dict[str, Ints]:
        """The results of a node with bodies, by their names outside."""
        return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}
