"""The arrays that a program over references takes, and what its outcome is made of.

Constants and indices are arguments, not parts of the program: tests of one structure are compiled
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from litmusfuzz.corpus.ops import ConstAttrs, RowsAttrs, SliceAttrs, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest, Node, Run

    Array = npt.NDArray[np.generic]


def array_of(ints: Iterable[int], given: TensorType) -> Array:
    """A model value as an array of that type, each int repeated in all lanes."""
    lane = np.array(tuple(ints), given.dtype)
    return np.repeat(lane, given.size // lane.size).reshape(given.shape)


def contents_of(test: LitmusTest) -> dict[str, Array]:
    """The initial contents of each variable that has a value."""
    return {v.name: array_of(test.initial(v), v.type) for v in test.variables if v.init is not None}


def rows_of(node: Node) -> tuple[int, ...] | None:
    """The rows that a sparse op reads or updates; None for another op."""
    if isinstance(node.attrs, RowsAttrs):
        return node.attrs.indices
    return tuple(node.attrs.rows) if isinstance(node.attrs, SliceAttrs) else None


def slice_of(numbers: Sequence[int]) -> slice | None:
    """The rows as a slice, if they are one."""
    first, *others = numbers
    step = others[0] - first if others else 1
    if step < 1 or list(numbers) != list(range(first, numbers[-1] + 1, step)):
        return None
    return slice(first, numbers[-1] + 1, step if step > 1 else None)


def distinct(numbers: Sequence[int], *, one_by_one: bool) -> Iterator[range]:
    """Consecutive parts of the rows, in each of which no row repeats."""
    start = 0
    for place, row in enumerate(numbers):
        if place > start and (one_by_one or row in numbers[start:place]):
            yield range(start, place)
            start = place
    yield range(start, len(numbers))


def constants_of(test: LitmusTest) -> dict[str, Array]:
    """By node: the value of a constant, or the rows of a sparse op, shape ``(n,)``, int32."""
    found: dict[str, Array] = {}
    for node in test.nodes:
        if isinstance(node.attrs, ConstAttrs):
            given = TensorType(node.attrs.dtype, node.attrs.shape)
            found[node.name] = array_of(test.constant(node), given)
        elif (rows := rows_of(node)) is not None:
            found[node.name] = np.array(rows, np.int32)
    return found


def fed_to(test: LitmusTest, run: Run) -> dict[str, Array]:
    """The value of each placeholder that a run executes."""
    return {
        node.name: array_of(test.fed(run, node), test.type_of(node.name))
        for node in test.graph_of(run).nodes
        if node.definition.fed
    }


def key_of(test: LitmusTest, run: Run, name: str) -> str:
    """The key of an observed value of a run, in an outcome."""
    return name if len(test.runs) == 1 else f"{run.name}.{name}"


def observed_of(test: LitmusTest, run: Run) -> tuple[str, ...]:
    """Names of the observed values of a run."""
    prefix = key_of(test, run, "")
    if not prefix:
        return test.observe
    return tuple(key.removeprefix(prefix) for key in test.observe if key.startswith(prefix))
