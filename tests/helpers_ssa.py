"""A cluster's members executed one after another, and its SSA form evaluated.

The first knows nothing of SSA conversion: variables are cells of a dictionary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs, captures_of
from litmusfuzz.corpus.ops import ConstAttrs, Kind
from litmusfuzz.fuzz.passes.ssa import NO, YES
from litmusfuzz.oracles.arithmetic import evaluated, gathered, written

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node
    from litmusfuzz.fuzz.passes.ssa import Block, Function

Ints = tuple[int, ...]


class PreparedFunction:
    """What a cluster leaves: values of nodes, contents of variables, which were written."""

    def __init__(
        self, test: LitmusTest, memory: Mapping[str, Ints], values: Mapping[str, Ints]
    ) -> None:
        self.test = test
        self.memory = dict(memory)
        self.values = dict(values)
        self.written: set[str] = set()

    def cluster(self, cluster: Cluster) -> PreparedFunction:
        """After its members."""
        everything = {n.name: n for n in self.test.nodes}
        self.run(everything[name] for name in cluster.members)
        return self

    def run(self, nodes: Iterable[Node]) -> None:
        """One after another."""
        for node in nodes:
            self.values |= {i: self.values[o] for i, o in captures_of(node)}
            inputs = [self.values[name] for name in node.inputs]
            if isinstance(node.attrs, BranchAttrs):
                body = node.attrs.then if inputs[0][0] else node.attrs.orelse
                self.run(body.nodes)
                names = zip(node.attrs.results, body.results, strict=True)
                self.values |= {f"{node.name}.{n}": self.values[inner] for n, inner in names}
            elif isinstance(node.attrs, LoopAttrs):
                self.loop(node, node.attrs, inputs)
            elif node.definition.kind.writes:
                seen = [self.memory[v] for v in node.resources]
                left = written(node, seen, inputs, row_size(self.test, node))
                self.memory |= zip(node.resources, left, strict=True)
                self.written |= set(node.resources)
            elif node.op != "NoOp":
                self.values[node.name] = compute(self.test, node, self.memory, inputs)

    def loop(self, node: Node, attrs: LoopAttrs, carried: list[Ints]) -> None:
        """Until its condition is false."""
        while True:
            self.values |= zip(attrs.carried, carried, strict=True)
            self.run(attrs.condition.nodes)
            if not self.values[attrs.condition.results[0]][0]:
                break
            self.run(attrs.body.nodes)
            carried = [self.values[name] for name in attrs.body.results]
        names = (f"{node.name}.{name}" for name in attrs.carried)
        self.values |= zip(names, carried, strict=True)


def row_size(test: LitmusTest, node: Node) -> int:
    """Ints in a row of its variable."""
    shape = test.type_of(node.resources[0]).shape
    return test.size_of(shape) // shape[0] if shape else 1


def compute(test: LitmusTest, node: Node, memory: Mapping[str, Ints], inputs: list[Ints]) -> Ints:
    """What a pure op or a read returns."""
    if isinstance(node.attrs, ConstAttrs):
        return test.constant(node)
    if node.definition.kind is Kind.READ:
        return gathered(node, memory[node.resources[0]], row_size(test, node))
    return evaluated(test, node, inputs)


def evaluate(test: LitmusTest, block: Block, values: Mapping[str, Ints]) -> list[Ints]:
    """A block's results; `values` are its parameters, and what stands before it."""
    here = {NO: (0,), YES: (1,)} | dict(values)
    for statement in block.statements:
        node = statement.node
        operands = [here[name] for name in statement.operands]
        kind = node.definition.kind
        if isinstance(node.attrs, LoopAttrs):
            condition, body = statement.blocks
            count = len(node.attrs.carried)
            while True:
                inside = here | dict(zip(condition.parameters, operands, strict=True))
                (going,), *state = evaluate(test, condition, inside)
                operands = [*operands[:count], *state]
                if not going:
                    break
                inside = here | dict(zip(body.parameters, operands, strict=True))
                operands = evaluate(test, body, inside)
            results = operands
        elif statement.blocks:
            results = evaluate(test, statement.blocks[not operands[0][0]], here)
        elif kind.writes:
            seen = 0 if kind is Kind.WRITE else len(node.resources)
            size = row_size(test, node)
            results = written(node, operands[:seen], operands[seen:], size)
        elif kind is Kind.READ:
            results = [gathered(node, operands[0], row_size(test, node))]
        else:
            results = [compute(test, node, {}, operands)]
        here |= zip(statement.results, results, strict=True)
    return [here[name] for name in block.results]


def results_of(function: Function, played: PreparedFunction) -> list[Ints]:
    """What the function is to return; a variable that was not written may be anything: ()."""
    finals = function.finals
    return [
        *(played.values[name] for name in function.outputs),
        *(played.memory[f.variable] if f.variable in played.written else () for f in finals),
        *((int(f.variable in played.written),) for f in finals if f.written),
    ]


def random_state(
    rng: random.Random, test: LitmusTest, function: Function
) -> tuple[dict[str, Ints], dict[str, Ints]]:
    """Contents of all variables, and the function's arguments.

    Constants keep their value: loops are bounded by them.
    """

    def value(name: str) -> Ints:
        given = test.type_of(name)
        low, high = (0, 1) if given.dtype == "bool" else (-3, 3)
        return tuple(rng.randint(low, high) for _ in range(test.size_of(given.shape)))

    known: dict[str, Ints] = {}
    for node in test.nodes:
        if isinstance(node.attrs, ConstAttrs):
            known[node.name] = test.constant(node)
        known |= {i: known[o] for i, o in captures_of(node) if o in known}
    memory = {variable.name: value(variable.name) for variable in test.variables}
    return memory, {name: known.get(name) or value(name) for name in function.arguments}
