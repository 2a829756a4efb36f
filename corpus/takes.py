"""What a test says of its takes of gradients: how many they require, and what frees what.

References
----------
semantics.md, section 2, "Accumulators"; docs/tensorflow-findings.md, "A cancelled take waits for
itself".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import LoopAttrs, all_nodes, bodies
from litmusfuzz.corpus.ops import ConstAttrs, CountAttrs

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def required(test: LitmusTest) -> dict[str, list[int | None]]:
    """What each instance of a take requires, by accumulator; None if it is computed, or fails."""
    constants = {n.name: n.attrs.value for n in test.nodes if isinstance(n.attrs, ConstAttrs)}
    loops = [node for node in test.nodes if isinstance(node.attrs, LoopAttrs)]
    again = {n.name for loop in loops for _, body in bodies(loop) for n in all_nodes(body.nodes)}
    found: dict[str, list[int | None]] = {}
    for run in test.runs:
        (graph,) = (each for each in test.graphs if each.name == run.graph)
        for node in all_nodes(graph.nodes):
            if node.definition.takes_sum:
                number = constants.get(node.inputs[0])
                wanted = number if isinstance(number, int) and number > 0 else None
                found.setdefault(node.resources[0], []).extend(
                    [wanted] * (1 + (node.name in again))
                )
    return found


def uneven(test: LitmusTest) -> dict[str, tuple[int, int]]:
    """The accumulators whose takes require different numbers of gradients; the least and most."""
    found = {}
    for name, wanted in required(test).items():
        numbers = [each for each in wanted if isinstance(each, int)]
        if len(set(numbers)) > 1:
            found[name] = min(numbers), max(numbers)
    return found


def steady(test: LitmusTest) -> bool:
    """True if no op fails, and none goes on because another one is cancelled."""
    many = any(n.definition.closes or n.definition.several for n in test.nodes)
    many |= any(isinstance(n.attrs, CountAttrs) for n in test.nodes)
    empty = any(variable.init is None for variable in test.variables)
    return not (many or empty or test.mutexes or test.failing)
