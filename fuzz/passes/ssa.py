"""SSA conversion: rewrites a cluster as a pure function of the contents in its snapshot.

Every name is assigned once (static single assignment). The contents of a variable ``v``
are ``v_ssa_0`` in the snapshot, and ``v_ssa_1`` and so on after each write. If some path
does not write ``v``, the flags ``v_written_0`` and so on record whether it was written.
Conditionals and loops pass both on as additional values.

The result is not a litmus test: an executor compiles it, and
`litmusfuzz.fuzz.passes.listing` prints it.

References
----------
semantics.md, section 5; BLOG, "XLA Clusters and Resource Variables (sort of)".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    FreshNames,
    LoopAttrs,
    Node,
    all_nodes,
    bodies,
    captures_of,
)
from litmusfuzz.corpus.ops import ConstAttrs, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import Body, Cluster, LitmusTest

NO: Final = "0"
YES: Final = "1"
"""Names of the scalar bools false and true; no node has such a name."""


@dataclass(frozen=True, slots=True)
class Block:
    """A sequence of statements, which may also use earlier values of enclosing blocks."""

    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """``results = node(operands)``.

    The operands of a read or an update begin with the contents of its variables. The
    results of a write or an update are the new contents, in the order of the node's
    resources.

    The operand of a conditional is its predicate. Its two blocks, one for each branch,
    have no parameters; their results are the results of the statement.

    The operands of a loop are its initial carried values, then the variables' contents
    that the loop changes (its state). Both blocks have these as parameters. The
    condition returns the predicate and its state; the body returns the next carried
    values and state; the statement returns the carried values and the state at the
    iteration whose predicate is false.
    """

    node: Node
    results: tuple[str, ...]
    operands: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Final contents of a variable that the cluster may write, and the flag "written".

    `written` is None if every path writes the variable, conditions of loops excepted.
    """

    variable: str
    value: str
    written: str | None


@dataclass(frozen=True, slots=True)
class Function:
    """A cluster as a pure function.

    Parameters
    ----------
    name : str
        Name of the cluster.
    initial : tuple of str
        The variables of the snapshot: those that a member reads or updates on some path.
    arguments : tuple of str
        Values from outside that the members use.
    outputs : tuple of str
        Values of members that other nodes use, or that are observed.
    finals : tuple of WriteBack
        The variables of the write-back.
    block : Block
        Its parameters are the values of `initial`, then `arguments`. Its results are
        `outputs`, then the values of `finals`, then their flags that are not None.
    """

    name: str
    initial: tuple[str, ...]
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    finals: tuple[WriteBack, ...]
    block: Block


def convert(test: LitmusTest, cluster: Cluster) -> Function:
    """Convert `cluster`, a cluster of `test`, to a pure function."""
    everything = {n.name: n for n in test.nodes}
    members = [everything[name] for name in cluster.members]
    inside = {node.name: node for node in all_nodes(members)}
    effects = [node for node in inside.values() if node.resources]
    reads = [v for n in effects if n.definition.kind is not Kind.WRITE for v in n.resources]
    writes = [v for n in effects if n.definition.kind is not Kind.READ for v in n.resources]
    sources = [s for n in members for s in (*n.inputs, *(o for _, o in captures_of(n)))]
    arguments = dict.fromkeys(s for s in sources if s.partition(".")[0] not in cluster.members)

    conversion = _Conversion(test)
    initial = {v: conversion.assign((v, _VALUE)) for v in dict.fromkeys(reads)}
    values = {name: name for name in arguments}
    statements = conversion.block(members, values)
    state = conversion.state
    finals = tuple(
        WriteBack(v, state[v, _VALUE], None if state[v, _FLAG] == YES else state[v, _FLAG])
        for v in dict.fromkeys(writes)
        if (v, _FLAG) in state
    )
    wanted = _wanted(test, [n for n in everything.values() if n.name not in inside])
    outputs = tuple(name for name in values if name in wanted and name not in arguments)
    return Function(
        cluster.name,
        tuple(initial),
        tuple(arguments),
        outputs,
        finals,
        Block(
            (*initial.values(), *arguments),
            statements,
            (
                *(values[name] for name in outputs),
                *(final.value for final in finals),
                *(final.written for final in finals if final.written),
            ),
        ),
    )


def single(test: LitmusTest, node: Node) -> Block:
    """Convert one op without bodies to a function of its variables' contents and its inputs.

    The results of a write or an update are the new contents.
    """
    conversion = _Conversion(test)
    kind = node.definition.kind
    reads = () if kind is Kind.WRITE else node.resources
    contents = [conversion.assign((v, _VALUE)) for v in reads]
    # A node may use one value twice; each operand needs a name of its own.
    inputs = tuple(f"{position}" for position, _ in enumerate(node.inputs, start=2))
    statement = Statement(node, (node.name,), (*contents, *inputs))
    if kind.writes:
        results = tuple(conversion.assign((v, _VALUE)) for v in node.resources)
        statement = Statement(node, results, (*contents, *inputs))
    return Block(statement.operands, (statement,), statement.results)


def _wanted(test: LitmusTest, others: Iterable[Node]) -> set[str]:
    """Values that are observed, that these nodes use, or that their bodies return."""
    observed = test.nodes_by_key()
    wanted = {observed[key] for key in test.observe}
    for node in others:
        wanted.update(node.inputs, (outer for _, outer in captures_of(node)))
        for _, body in bodies(node):
            wanted.update(body.results)
    return wanted


_VALUE: Final = "ssa"
_FLAG: Final = "written"
_Cell = tuple[str, str]
"""A variable, and either `_VALUE` (its contents) or `_FLAG` (written or not)."""


class _Conversion:
    """State of the conversion: the statements so far, and the variables after them.

    `state` maps each variable to the SSA name of its contents, from its first read or
    write on, and to that of its flag "written", from its first write on.
    """

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.state: dict[_Cell, str] = {}
        self.statements: list[Statement] = []
        self.names = FreshNames(test.types)

    def assign(self, cell: _Cell) -> str:
        """A new SSA name for the cell, valid from here on."""
        self.state[cell] = self.names.numbered(f"{cell[0]}_{cell[1]}_")
        return self.state[cell]

    def current(self, cell: _Cell) -> str:
        """The SSA name of the cell; a zero constant if nothing has read or written it."""
        if cell in self.state or cell[1] == _FLAG:
            return self.state.get(cell, NO)
        name = self.assign(cell)
        (variable,) = (v for v in self.test.variables if v.name == cell[0])
        nothing = ConstAttrs(variable.dtype, variable.shape, 0)
        self.statements.append(Statement(Node(name, "Const", attrs=nothing), (name,)))
        return name

    def block(self, nodes: Iterable[Node], values: dict[str, str]) -> tuple[Statement, ...]:
        """The statements of the nodes; adds the SSA names of their values to `values`."""
        around, self.statements = self.statements, []
        self.nodes(nodes, values)
        statements, self.statements = self.statements, around
        return tuple(statements)

    def nodes(self, nodes: Iterable[Node], values: dict[str, str]) -> None:
        for node in nodes:
            if isinstance(node.attrs, BranchAttrs):
                self.branch(node, node.attrs, values)
            elif isinstance(node.attrs, LoopAttrs):
                self.loop(node, node.attrs, values)
            elif isinstance(node.attrs, CallAttrs):
                self.call(node, node.attrs, values)
            else:
                self.op(node, values)

    def op(self, node: Node, values: dict[str, str]) -> None:
        kind = node.definition.kind
        inputs = tuple(values[name] for name in node.inputs)
        if not kind.writes:
            contents = tuple(self.state[v, _VALUE] for v in node.resources)
            if self.test.types[node.name] is not None:
                values[node.name] = node.name
                self.statements.append(Statement(node, (node.name,), contents + inputs))
            return
        seen = () if kind is Kind.WRITE else node.resources
        operands = (*(self.state[v, _VALUE] for v in seen), *inputs)
        results = tuple(self.assign((v, _VALUE)) for v in node.resources)
        self.state |= {(v, _FLAG): YES for v in node.resources}
        self.statements.append(Statement(node, results, operands))

    def branch(self, node: Node, attrs: BranchAttrs, values: dict[str, str]) -> None:
        before = self.state
        made: list[tuple[tuple[Statement, ...], list[str]]] = []
        left: list[dict[_Cell, str]] = []
        for body in (attrs.then, attrs.orelse):
            self.state = dict(before)
            made.append(self.body(body, {inner: values[outer] for inner, outer in attrs.captures}))
            left.append(self.state)
        then, orelse = left
        changed = [cell for cell in then | orelse if then.get(cell) != orelse.get(cell)]
        self.state = {cell: name for cell, name in then.items() if cell not in changed}
        blocks = tuple(
            Block((), statements, (*results, *(state.get(c) or self.current(c) for c in changed)))
            for (statements, results), state in zip(made, left, strict=True)
        )
        names = self.results(node, attrs.results, values)
        results = (*names, *map(self.assign, changed))
        self.statements.append(Statement(node, results, (values[node.inputs[0]],), blocks))

    def call(self, node: Node, attrs: CallAttrs, values: dict[str, str]) -> None:
        inside = {inner: values[outer] for inner, outer in attrs.captures}
        self.nodes(attrs.body.nodes, inside)
        for name, value in zip(attrs.results, attrs.body.results, strict=True):
            values[f"{node.name}.{name}"] = inside[value]

    def loop(self, node: Node, attrs: LoopAttrs, values: dict[str, str]) -> None:
        captures = {inner: values[outer] for inner, outer in attrs.captures}
        inputs = [values[name] for name in node.inputs]
        if not self.test.bounds[node.name]:
            # The body never runs; the condition runs once.
            self.nodes(
                attrs.condition.nodes, captures | dict(zip(attrs.carried, inputs, strict=True))
            )
            values |= {f"{node.name}.{c}": v for c, v in zip(attrs.carried, inputs, strict=True)}
            return
        cells = [
            (variable, what)
            for variable in dict.fromkeys(self.written_in([node]))
            for what in (_VALUE, _FLAG)
            if self.state.get((variable, what)) != YES
        ]
        first = (*inputs, *map(self.current, cells))
        scope = captures | {name: name for name in attrs.carried}
        blocks = []
        for body in (attrs.condition, attrs.body):
            parameters = (*attrs.carried, *map(self.assign, cells))
            statements, ends = self.body(body, scope)
            state = [self.state[cell] for cell in cells]
            blocks.append(Block(parameters, statements, (*ends, *state)))
        names = self.results(node, attrs.carried, values)
        results = (*names, *map(self.assign, cells))
        self.statements.append(Statement(node, results, first, tuple(blocks)))

    def body(self, body: Body, scope: Mapping[str, str]) -> tuple[tuple[Statement, ...], list[str]]:
        """The statements of a body, and the SSA names of its results."""
        inside = dict(scope)
        statements = self.block(body.nodes, inside)
        return statements, [inside[name] for name in body.results]

    def results(self, node: Node, names: Sequence[str], values: dict[str, str]) -> list[str]:
        """The SSA names of a node's results, which are added to `values`."""
        full = [f"{node.name}.{name}" for name in names]
        values |= dict(zip(full, full, strict=True))
        return full

    def written_in(self, nodes: Iterable[Node]) -> Iterator[str]:
        """Variables that the nodes write on some path."""
        for node in nodes:
            if node.definition.kind.writes:
                yield from node.resources
            for where, body in bodies(node):
                if where != "body" or self.test.bounds[node.name]:
                    yield from self.written_in(body.nodes)
