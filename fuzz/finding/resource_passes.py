"""Passes that make resources fewer and tensors smaller."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import (
    BOOL,
    Attrs,
    ConstAttrs,
    CountAttrs,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.shapes import Shapes, contents, fewer_rows_touched, refitted, with_dtype
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.reduction_parts import Counters, groups, nodes_of, spliced, valued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest, Node


def merge_resources(test: LitmusTest) -> Iterator[Rewriter]:
    """Merge two variables of one type, two mutexes, two queues or two accumulators of one type."""
    pairs = [
        *((a.name, b.name) for a, b in combinations(test.variables, 2) if a.type == b.type),
        *((a.name, b.name) for a, b in combinations(test.mutexes, 2)),
        *((a.name, b.name) for a, b in combinations(test.queues, 2) if a.type == b.type),
        *((a.name, b.name) for a, b in combinations(test.accumulators, 2) if a.type == b.type),
    ]
    for kept, gone in pairs:
        yield Rewriter.of(test).each_node(partial(_on, kept, gone))


def _on(kept: str, gone: str, node: Node) -> Node:
    """The node with resource `gone` replaced by `kept`."""
    resources = tuple(kept if name == gone else name for name in node.resources)
    return replace(node, resources=resources)


def smaller_queues(test: LitmusTest) -> Iterator[Rewriter]:
    """Shrink queues: fewer initial elements, a lower capacity, fewer elements of a many-op."""
    rewriter = Rewriter.of(test)
    for place, queue in enumerate(rewriter.queues):
        rest = [spliced(queue.init, i) for i in range(len(queue.init))]
        smaller = [replace(queue, init=init) for init in ((), *rest)] if queue.init else []
        for capacity in dict.fromkeys((max(1, len(queue.init)), queue.capacity - 1)):
            if len(queue.init) <= capacity < queue.capacity and capacity:
                smaller.append(replace(queue, capacity=capacity))
        for each in smaller:
            yield replace(rewriter, queues=spliced(rewriter.queues, place, each))
    for node in nodes_of(test):
        if isinstance(node.attrs, CountAttrs) and node.attrs.count > 1:
            yield fewer_rows_touched(test, node, CountAttrs(node.attrs.count - 1))


def drop_devices(test: LitmusTest) -> Iterator[Rewriter]:
    """Move variables to the default device: all, then groups, then single ones."""
    rewriter = Rewriter.of(test)
    placed = [v.name for v in rewriter.variables if v.device]
    for gone in (frozenset(placed), *groups(placed)) if placed else ():
        variables = (replace(v, device="") if v.name in gone else v for v in rewriter.variables)
        yield replace(rewriter, variables=tuple(variables))


def fewer_rows(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce the rows that an op touches, then those of all tensors, then those of constants."""
    if test.whole:
        return
    for node in nodes_of(test):
        for attrs in _smaller_attrs(node.attrs):
            yield fewer_rows_touched(test, node, attrs)
    rows = max((t.shape[0] for t in contents(test).values() if t.shape), default=0)
    if rows > 1:
        yield refitted(test, lambda t: (min(t.shape[0], rows - 1), *t.shape[1:]) if t.shape else ())
    elif rows == 1:
        yield refitted(test, lambda t: t.shape[1:])
    shapes = Shapes(test)
    for node in nodes_of(test):
        alone = not any(shapes.together(node.name, name) for name in contents(test))
        if isinstance(node.attrs, ConstAttrs) and node.attrs.shape and alone:
            # Elements of an EnqueueMany, or values that no op combines with a resource.
            count, *rest = node.attrs.shape
            yield shapes.resized({node.name: (count - 1, *rest) if count > 1 else tuple(rest)})


def _smaller_attrs(attrs: object) -> Iterator[Attrs]:
    if isinstance(attrs, RowsAttrs):
        for position in range(len(attrs.indices)):
            if len(attrs.indices) > 1:
                yield RowsAttrs(spliced(attrs.indices, position))
        if attrs.indices != tuple(range(len(attrs.indices))):
            yield RowsAttrs(tuple(range(len(attrs.indices))))
    if isinstance(attrs, SliceAttrs):
        if len(attrs.rows) > 1:
            yield SliceAttrs(attrs.begin, attrs.begin + 1, 1)
        if attrs.begin:
            yield SliceAttrs(0, attrs.end - attrs.begin, attrs.strides)
        if attrs.strides > 1:
            yield SliceAttrs(attrs.begin, attrs.end, 1)
    if isinstance(attrs, MomentumAttrs) and attrs.use_nesterov:
        yield MomentumAttrs(use_nesterov=False)


LANES: Final = 4096
"""The width of a row in every reduced test with more than one lane.

TensorFlow tears values much more often at this width than at 32 lanes. One width for all tests
also makes two reductions of one defect end in the same test; the least width that still shows a
finding depends on chance.
"""


def narrower(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce more lanes than `LANES` to `LANES`, or else to the least power of two that shows.

    Halves the distance to the present number of lanes as long as a candidate does not show.
    """
    lanes = 0 if test.whole else width(test)
    low, high = LANES.bit_length() - 1, (lanes - 1).bit_length()
    while low < high and lanes > LANES:
        yield refitted(test, partial(_with_lanes, (1 << low,)))
        low = max(low + 1, (low + high) // 2)


def give_values(test: LitmusTest) -> Iterator[Rewriter]:
    """Give variables without a value 0, else 1: all of them, then groups, then single ones.

    With 0, a product would not show; with 1, an assignment of 1.
    """
    rewriter = Rewriter.of(test)
    without = [v.name for v in rewriter.variables if v.init is None]
    for names in (frozenset(without), *groups(without)) if without else ():
        for value in (0, 1):
            given = (replace(v, init=value) if v.name in names else v for v in rewriter.variables)
            yield replace(rewriter, variables=tuple(given))


def fewer_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """Reduce the lanes to one, or else set them to `LANES`."""
    if test.whole or not any(len(t.shape) > 1 for t in contents(test).values()):
        return
    yield refitted(test, partial(_with_lanes, ()))
    if width(test) != LANES:
        yield refitted(test, partial(_with_lanes, (LANES,)))


def _with_lanes(lanes: tuple[int, ...], kind: TensorType) -> tuple[int, ...]:
    return (kind.shape[0], *lanes) if len(kind.shape) > 1 else kind.shape


def wider_lanes(test: LitmusTest) -> Iterator[Rewriter]:
    """Widen rows to `LANES` lanes if they have fewer; the opposite of a reduction."""
    if not test.whole and 0 < width(test) < LANES:
        yield refitted(test, lambda t: (t.shape[0], LANES) if t.shape else ())


def width(test: LitmusTest) -> int:
    """Lanes of the widest variable; 0 if all are scalars."""
    return max((v.type.size // v.shape[0] for v in test.variables if v.shape), default=0)


def simpler_dtype(test: LitmusTest) -> Iterator[Rewriter]:
    """Give all tensors one dtype: int32, or else float32."""
    dtypes = dict.fromkeys(t.dtype for t in contents(test).values())
    for new in ("int32", "float32"):
        if new in dtypes:
            return
        for old in dtypes:
            yield with_dtype(test, old, new)


def smaller_values(test: LitmusTest) -> Iterator[Rewriter]:
    """Minimize all values at once; then one by one, and distinct where they must be."""
    rewriter = Rewriter.of(test)
    counters = Counters(test).names
    numbers = [
        node
        for node in rewriter.nodes
        if isinstance(node.attrs, ConstAttrs)
        and node.attrs.dtype != BOOL
        and node.name not in counters
    ]
    names = {node.name for node in numbers}
    yield replace(
        rewriter.each_node(lambda node: valued(node, 1) if node.name in names else node),
        variables=tuple(replace(v, init=v.init and 0) for v in rewriter.variables),
        queues=tuple(replace(q, init=(1,) * len(q.init)) for q in rewriter.queues),
    )
    for place, variable in enumerate(rewriter.variables):
        if variable.init not in (None, 0):
            small_variable = replace(variable, init=0)
            yield replace(rewriter, variables=spliced(rewriter.variables, place, small_variable))
    for place, queue in enumerate(rewriter.queues):
        small = tuple(range(1, len(queue.init) + 1))
        if queue.init != small:
            small_queue = replace(queue, init=small)
            yield replace(rewriter, queues=spliced(rewriter.queues, place, small_queue))
    for number, node in enumerate(numbers, start=1):
        assert isinstance(node.attrs, ConstAttrs)
        for value in (1, number):
            if isinstance(node.attrs.value, int) and abs(node.attrs.value) <= value:
                break
            yield rewriter.with_node(valued(node, value))
