"""An upper bound on every value that any total order of a test can make.

semantics.md, section 1, wants each below 2**24. The oracle checks that
exactly, for the orders that it looks at; this bound holds for all of them,
costs little, and is what generators go by. It may be far too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import Kind, RowsAttrs
from litmusfuzz.oracles.events import (
    Access,
    Gathered,
    Held,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Stack,
    Stored,
    unfold,
)
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.oracles.events import Unfolding


_STORING: Final = (Access.WRITE, Access.WRITE_BACK, Access.ENQUEUE)


def largest_magnitude(test: LitmusTest) -> int:
    """A bound on the magnitude of every value, intermediate ones included.

    Notes
    -----
    Contents of a resource come from a chain of events that store, each of
    which happens once at most. So after as many rounds as there are such
    events, each of which lets every one of them act on the largest contents of
    the round before, nothing larger can be reached. Loops are unrolled, and
    both branches of a conditional taken.
    """
    unfolding = unfold(test, RFC)
    memory = {v.name: max(map(abs, test.initial(v))) for v in test.variables}
    for queue in test.queues:
        elements = test.initial_elements(queue)
        memory[queue.name] = max((abs(v) for each in elements for v in each), default=0)
    storing = [e for e in unfolding.events if e.access in _STORING]
    largest = max(memory.values(), default=0)
    for _ in range(len(storing) + 1):
        values = _values(test, unfolding, memory)
        largest = max(largest, *values, 0)
        stored = dict(memory)
        for event in storing:
            operands = [values[token] for token in event.operands]
            for place, name in enumerate(event.variables):
                if event.access is Access.WRITE_BACK:
                    value = operands[2 * place]
                else:
                    value = _left(event.node, [memory[v] for v in event.node.resources], operands)
                stored[name] = max(stored[name], value)
        if stored == memory:
            break
        memory = stored
        largest = max(largest, *memory.values())
    return largest


def _values(test: LitmusTest, unfolding: Unfolding, memory: dict[str, int]) -> list[int]:
    """A bound for each token, by what the resources hold at most."""
    values: list[int] = []
    for token in unfolding.tokens:
        value = 0
        if isinstance(token, (Result, Stack)):
            done = token.event if isinstance(token, Result) else token.events[0]
            event = unfolding.events[done]
            if event.access is Access.SIZE:
                value = next(q.capacity for q in test.queues if q.name == event.variables[0])
            elif event.access in (Access.READ, Access.DEQUEUE):
                value = memory[event.variables[0]]
        elif isinstance(token, Pick):
            value = max(values[token.then], values[token.other])
        elif isinstance(token, (Held, Gathered)):
            value = values[token.token]
        elif isinstance(token, Known):
            value = max(map(abs, token.value))
        elif isinstance(token, Seen):
            value = memory[unfolding.events[token.event].variables[token.place]]
        elif isinstance(token, Stored):
            seen = [values[part] for part in token.seen]
            value = _left(token.node, seen, [values[part] for part in token.operands])
        elif isinstance(token, Pure) and token.node.definition.has_value:
            value = _pure(test, token.node, [values[part] for part in token.inputs])
        values.append(value)
    return values


def _pure(test: LitmusTest, node: Node, inputs: list[int]) -> int:
    if node.definition.constant:
        return max(map(abs, test.constant(node)))
    if node.op in ("AddV2", "Sub"):
        return sum(inputs)
    if node.op == "Mul":
        return inputs[0] * inputs[1]
    if node.op == "MatMul":
        kind = test.types[node.inputs[0]]
        assert kind is not None
        return inputs[0] * inputs[1] * kind.shape[1]
    if node.definition.compares:
        return 1
    return max(inputs)


def _left(node: Node, seen: list[int], inputs: list[int]) -> int:
    """What an op leaves in a resource at most; of several, in either.

    `seen` is what they held, if it looks.
    """
    if node.definition.kind in (Kind.WRITE, Kind.QUEUE):
        return inputs[0]
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
