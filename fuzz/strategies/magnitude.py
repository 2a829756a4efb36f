"""An upper bound on every value that any total order of a test can make.

semantics.md, section 1, wants each below 2**24. The oracle checks that
exactly, for the orders that it looks at; this bound holds for all of them,
costs microseconds, and is what generators go by. It may be far too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus.ops import Kind, RowsAttrs

if TYPE_CHECKING:
    from corpus.graph import LitmusTest, Node


def largest_magnitude(test: LitmusTest) -> int:
    """A bound on the magnitude of every value, intermediate ones included.

    Notes
    -----
    A value in memory comes from a chain of op instances, each of which runs
    once. So after as many rounds as there are effects, each of which lets
    every node act on the largest values so far, nothing larger can be reached.
    """
    memory = {v.name: max(map(abs, test.initial(v))) for v in test.variables}
    tensors: dict[str, int] = {}
    largest = max(memory.values())
    effects = sum(n.definition.has_effect for n in test.graph.nodes)
    for _ in range(effects + 1):
        for node in test.graph.nodes:
            if node.op == "NoOp":
                continue
            inputs = [tensors[name] for name in node.inputs]
            if node.definition.kind is Kind.PURE:
                value = tensors[node.name] = _pure(test, node, inputs)
            elif node.definition.kind is Kind.READ:
                value = tensors[node.name] = memory[node.resources[0]]
            else:
                value = _effect(node, [memory[name] for name in node.resources], inputs)
                for name in node.resources:
                    memory[name] = max(memory[name], value)
            largest = max(largest, value)
    return largest


def _pure(test: LitmusTest, node: Node, inputs: list[int]) -> int:
    if node.op == "Const":
        return max(map(abs, test.constant(node)))
    if node.op in ("AddV2", "Sub"):
        return sum(inputs)
    if node.op == "Mul":
        return inputs[0] * inputs[1]
    if node.op == "MatMul":
        return inputs[0] * inputs[1] * test.type_of(node.inputs[0]).shape[1]
    if node.op in ("Less", "Equal"):
        return 1
    return max(inputs)


def _effect(node: Node, seen: list[int], inputs: list[int]) -> int:
    repeats = 1
    if isinstance(node.attrs, RowsAttrs):
        repeats = max(node.attrs.indices.count(i) for i in node.attrs.indices)
    if node.op == "ResourceScatterMul":
        return int(seen[0] * max(1, inputs[0]) ** repeats)
    if node.op == "ResourceApplyGradientDescent":
        return seen[0] + inputs[0] * inputs[1]
    if node.op.endswith("Momentum"):
        lr, grad, momentum = inputs
        accum = seen[1] * momentum + max(1, lr) * grad
        return seen[0] + lr * grad + max(1, lr) * accum * max(1, momentum)
    return seen[0] + repeats * inputs[0]  # adds, subtracts, or takes one of the two
