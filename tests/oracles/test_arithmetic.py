"""What each op computes, against values worked out by hand."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.model import Node
from litmusfuzz.corpus.ops import MomentumAttrs, RowsAttrs, SliceAttrs
from litmusfuzz.oracles.arithmetic import ValueTooLarge, gathered, pure, written


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Identity", [(3, -4)], (3, -4)),
        ("Neg", [(3, -4)], (-3, 4)),
        ("Relu", [(3, -4, 0)], (3, 0, 0)),
        ("AddV2", [(1, 2), (10,)], (11, 12)),
        ("Sub", [(10,), (1, 2)], (9, 8)),
        ("Mul", [(3, -2), (5, 7)], (15, -14)),
        ("Maximum", [(3, -2), (1, 7)], (3, 7)),
        ("Minimum", [(3, -2), (1, 7)], (1, -2)),
        ("Less", [(3, -2, 1), (1, 7, 1)], (0, 1, 0)),
        ("Equal", [(3, 7), (1, 7)], (0, 1)),
        ("Select", [(1, 0), (5, 6), (7, 8)], (5, 8)),
        ("Select", [(0,), (5, 6), (7, 8)], (7, 8)),
        # TensorFlow's ReluGrad passes the gradient where the feature is > 0.
        ("ReluGrad", [(5, 6, 7), (1, 0, -1)], (5, 0, 0)),
    ],
)
def test_pure(op: str, inputs: list[tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert pure(Node("n", op), inputs, [()] * len(inputs)) == expected


def test_matmul_is_row_major() -> None:
    a, b = (1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)
    product = pure(Node("n", "MatMul"), [a, b], [(2, 3), (3, 2)])
    assert product == (58, 64, 139, 154)


@pytest.mark.parametrize(
    ("op", "indices", "updates", "expected"),
    [
        ("ResourceScatterUpdate", (2, 0), (7, 8), (8, 20, 7)),
        ("ResourceScatterAdd", (0, 0), (1, 2), (13, 20, 30)),
        ("ResourceScatterSub", (2,), (1,), (10, 20, 29)),
        ("ResourceScatterMul", (0, 0), (2, 3), (60, 20, 30)),
        ("ResourceScatterMin", (0, 1), (5, 50), (5, 20, 30)),
        ("ResourceScatterMax", (0, 1), (5, 50), (10, 50, 30)),
        ("ResourceScatterAdd", (0, 2), (1,), (11, 20, 31)),  # a scalar update
        ("ResourceScatterNdUpdate", (1,), (7,), (10, 7, 30)),
        ("ResourceScatterNdAdd", (1, 1), (7, 8), (10, 35, 30)),
        ("ResourceScatterNdSub", (1, 2), (7, 8), (10, 13, 22)),
    ],
)
def test_scatter(op: str, indices, updates, expected) -> None:
    node = Node("n", op, resources=("X",), attrs=RowsAttrs(indices))
    assert written(node, [(10, 20, 30)], [updates], 1) == [expected]


def test_strided_slice_assign() -> None:
    node = Node("n", "ResourceStridedSliceAssign", resources=("X",), attrs=SliceAttrs(0, 4, 2))
    assert written(node, [(1, 2, 3, 4)], [(8, 9)], 1) == [(8, 2, 9, 4)]


def test_gather_takes_rows_in_order_and_again() -> None:
    node = Node("n", "ResourceGather", resources=("X",), attrs=RowsAttrs((2, 0, 2)))
    assert gathered(node, (1, 2, 3), 1) == (3, 1, 3)
    assert gathered(node, (1, 2, 3, 4, 5, 6), 2) == (5, 6, 1, 2, 5, 6)


@pytest.mark.parametrize(
    ("op", "nesterov", "expected"),
    [
        # var 10, accum 3, lr 2, grad 5, momentum 4
        ("ResourceApplyMomentum", False, [(10 - 2 * 17,), (3 * 4 + 5,)]),
        ("ResourceApplyMomentum", True, [(10 - (5 * 2 + 17 * 4 * 2),), (17,)]),
        ("ResourceApplyKerasMomentum", False, [(10 + 2,), (3 * 4 - 2 * 5,)]),
        ("ResourceApplyKerasMomentum", True, [(10 + 2 * 4 - 2 * 5,), (2,)]),
    ],
)
def test_momentum(op: str, nesterov: bool, expected) -> None:  # noqa: FBT001
    node = Node("n", op, resources=("X", "A"), attrs=MomentumAttrs(nesterov))
    assert written(node, [(10,), (3,)], [(2,), (5,), (4,)], 1) == expected


def test_gradient_descent_and_dense_updates() -> None:
    assert written(
        Node("n", "ResourceApplyGradientDescent", resources=("X",)), [(10,)], [(2,), (3,)], 1
    ) == [(4,)]
    add = Node("n", "AssignAddVariableOp", resources=("X",))
    sub = Node("n", "AssignSubVariableOp", resources=("X",))
    assert written(add, [(10, 1)], [(3, 4)], 1) == [(13, 5)]
    assert written(sub, [(10, 1)], [(3, 4)], 1) == [(7, -3)]
    assert written(Node("n", "AssignVariableOp", resources=("X",)), [], [(3, 4)], 1) == [(3, 4)]


def test_intermediate_results_are_bounded_too() -> None:
    """lr * grad leaves float32's exact range although the sum would not."""
    node = Node("n", "ResourceApplyGradientDescent", resources=("X",))
    with pytest.raises(ValueTooLarge):
        written(node, [(1 << 23,)], [(1 << 12,), (1 << 12,)], 1)
    products = Node("n", "MatMul")
    with pytest.raises(ValueTooLarge):  # 2**23 + 2**23 - 2**24: a partial sum may be 2**24
        pure(
            products,
            [(1 << 12, 1 << 12, 1 << 12), (1 << 11, 1 << 11, -(1 << 12))],
            [(1, 3), (3, 1)],
        )
