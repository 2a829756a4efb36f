"""Samples ops with indices: gather and scatter, permutations, and binary search.

Among them are the ops on a variable whose rows are operands. Their first operand stands for the
variable.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import FLOATS
from litmusfuzz.fuzz.generators.sampling.draw import DIVIDENDS, FACTORS, Draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.fuzz.generators.sampling.draw import Sampler, Shape


# --- one index for each part -------------------------------------------------------------


def _gather(draw: Draw) -> None:
    shape = draw.data("params", draw.first_shape(1))
    draw.positions("indices", draw.any_shape(0, 2, 3), shape[0])


def _gather_v2(draw: Draw) -> None:
    """Sample GatherV2, which has an axis, and maybe batch dimensions before it."""
    shape = draw.data("params", draw.first_shape(1))
    rank = len(shape)
    batch_dims = draw.number(0, rank - 1) if draw.flip(0.3) else 0
    axis = draw.number(batch_dims, rank - 1)
    indices = (*shape[:batch_dims], *draw.any_shape(0, 2, 3))
    draw.attrs["batch_dims"] = batch_dims
    if batch_dims and batch_dims < len(indices) and draw.flip(0.3):
        draw.attrs["batch_dims"] = batch_dims - len(indices)  # counts from the end
    draw.positions("indices", indices, shape[axis])
    draw.control("axis", axis - rank if draw.flip(0.3) else axis)


def _resource_gather(draw: Draw) -> None:
    shape = draw.data("resource", draw.first_shape(1))
    draw.positions("indices", draw.any_shape(0, 2, 3), shape[0])


def _resource_scatter(draw: Draw) -> None:
    """Sample ResourceScatterAdd or its like; Update takes no row twice: which wins is not said."""
    shape = draw.data("resource", draw.first_shape(1))
    indices = draw.any_shape(0, 2, 3)
    if draw.op.name == "ResourceScatterUpdate" and math.prod(indices) > 1:
        indices = (draw.number(1, shape[0]),)
        draw.control("indices", draw.rng.sample(range(shape[0]), indices[0]))
    else:
        draw.positions("indices", indices, shape[0])
    draw.data("updates", _updates(draw, indices, shape))


def _resource_scatter_mul(draw: Draw) -> None:
    shape = draw.fixed("resource", draw.first_shape(1), FACTORS)
    indices = draw.any_shape(0, 2, 3)
    draw.positions("indices", indices, shape[0])
    draw.fixed("updates", _updates(draw, indices, shape), FACTORS)


def _resource_scatter_div(draw: Draw) -> None:
    """Sample ResourceScatterDiv; a float is divided by 1 or -1: its quotient is an integer."""
    shape = draw.data("resource", draw.first_shape(1), DIVIDENDS)
    is_float = draw.operands[0].type.dtype in FLOATS
    indices = draw.any_shape(0, 2, 3)
    draw.positions("indices", indices, shape[0])
    updates = _updates(draw, indices, shape)
    divisors = (-1, 1) if is_float else (-4, -3, -2, -1, 1, 2, 3)
    draw.control("updates", [draw.rng.choice(divisors) for _ in range(math.prod(updates))], updates)


def _updates(draw: Draw, indices: Shape, shape: Shape) -> Shape:
    """Shape of the updates of a variable's rows: one for all, or one for each element."""
    return () if draw.flip(0.3) else (*indices, *shape[1:])


# --- several indices for each part -------------------------------------------------------


def _coordinates(draw: Draw, shape: Shape, *, distinct: bool = False) -> Shape:
    """Add indices into the first dimensions of a value.

    Returns
    -------
    tuple of int
        Shape of what is gathered there, or scattered.
    """
    depth = draw.number(1, len(shape))
    count = draw.number(1, 3)
    places = list(product(*map(range, shape[:depth])))
    if distinct:
        count = min(count, len(places))
        chosen = draw.rng.sample(places, count)
    else:
        chosen = [draw.rng.choice(places) for _ in range(count)]
    # Computed indices may be equal, and have one limit for all dimensions.
    may_be_computed = len(set(shape[:depth])) == 1 and not distinct
    flat = [index for place in chosen for index in place]
    draw.control("indices", flat, (count, depth), shape[0] if may_be_computed else 0)
    return (count, *shape[depth:])


def _gather_nd(draw: Draw) -> None:
    """Sample GatherNd or ResourceGatherNd."""
    shape = draw.data(draw.op.operands[0], draw.first_shape(1))
    _coordinates(draw, shape)


def _scatter_nd(draw: Draw) -> None:
    """Sample ScatterNd, which scatters into zeros of a shape."""
    shape = draw.any_shape(1, 3, 4)
    draw.require_any_shape()
    draw.data("updates", _coordinates(draw, shape))
    draw.control("shape", shape)


def _scatter_nd_update(draw: Draw) -> None:
    """Sample an op that scatters into its first operand; Update takes no place twice."""
    shape = draw.data(draw.op.operands[0], draw.first_shape(1))
    distinct = draw.op.name.endswith("Update")
    draw.data("updates", _coordinates(draw, shape, distinct=distinct))


# --- permutations and search -------------------------------------------------------------


def _invert_permutation(draw: Draw) -> None:
    count = draw.number(1, 6)
    draw.control("x", draw.rng.sample(range(count), count))


def _unravel_index(draw: Draw) -> None:
    shape = draw.any_shape(1, 3, 4)
    draw.positions("indices", (draw.number(1, 4),) if draw.flip() else (), math.prod(shape))
    draw.control("dims", shape)


def _dynamic_stitch(draw: Draw) -> None:
    """Sample DynamicStitch, where a place may come twice, or ParallelDynamicStitch."""
    rest = draw.any_shape(0, 2, 3)
    shapes = [draw.any_shape(0, 1, 3) for _ in range(draw.number(1, 3))]
    total = sum(map(math.prod, shapes))
    places = draw.rng.sample(range(total), total)
    if draw.op.name == "DynamicStitch" and total > 1 and draw.flip(0.3):
        places = [min(place, total - 2) for place in places]
    start = 0
    for shape in shapes:
        end = start + math.prod(shape)
        draw.control("indices", places[start:end], shape)
        start = end
    for shape in shapes:
        draw.data("data", (*shape, *rest))


def _bound(draw: Draw) -> None:
    """Sample LowerBound or UpperBound: values are looked for in sorted rows, row by row."""
    draw.choose_index_dtype("out_type")
    rows, count = draw.number(1, 3), draw.number(1, 4)
    shape = (rows, draw.number(1, 3)) if draw.wanted_shape is None else draw.first_shape(2, 2)
    in_order = [v for _row in range(shape[0]) for v in sorted(draw.numbers(count, -5, 5))]
    draw.want_dtype_of("sorted_inputs")
    draw.control("sorted_inputs", in_order, (shape[0], count))
    draw.data("values", shape)


SAMPLERS: Final[Mapping[str, Sampler]] = {
    "Gather": _gather,
    "GatherV2": _gather_v2,
    "ResourceGather": _resource_gather,
    **{f"ResourceScatter{n}": _resource_scatter for n in ("Update", "Add", "Sub", "Min", "Max")},
    "ResourceScatterMul": _resource_scatter_mul,
    "ResourceScatterDiv": _resource_scatter_div,
    **dict.fromkeys(("GatherNd", "ResourceGatherNd"), _gather_nd),
    "ScatterNd": _scatter_nd,
    "ScatterNdNonAliasingAdd": _scatter_nd_update,
    **{f"TensorScatter{n}": _scatter_nd_update for n in ("Update", "Add", "Sub", "Max", "Min")},
    **{f"ResourceScatterNd{n}": _scatter_nd_update for n in ("Update", "Add", "Sub")},
    "InvertPermutation": _invert_permutation,
    "UnravelIndex": _unravel_index,
    **dict.fromkeys(("DynamicStitch", "ParallelDynamicStitch"), _dynamic_stitch),
    **dict.fromkeys(("LowerBound", "UpperBound"), _bound),
}
