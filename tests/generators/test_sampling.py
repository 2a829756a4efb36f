"""Samples of pure ops: what a caller may ask for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.ops import OPS
from litmusfuzz.fuzz.generators.sampling import PURE_OPS, sample

if TYPE_CHECKING:
    from litmusfuzz.corpus.pure.definition import PureOp


def row(name: str) -> PureOp:
    found = OPS[name].meaning
    assert found is not None
    return found


def test_without_a_wanted_type_there_is_always_a_sample() -> None:
    """Its operands come in the order of the signature."""
    rng = random.Random(0)
    for op in PURE_OPS:
        sampled = sample(rng, op)
        assert sampled is not None
        places = [op.operands.index(operand.role) for operand in sampled.operands]
        assert places == sorted(places)
        assert set(places) == set(range(len(op.operands)))


def test_a_wanted_type_is_that_of_the_first_operand_with_replaceable_values() -> None:
    rng, ignoring, fitting = random.Random(0), set(), set()
    for op in PURE_OPS:
        for _ in range(8):
            sampled = sample(rng, op, "float32", (2, 3))
            if sampled is None:
                continue
            fitting.add(op.name)
            first = next((o.type.stacked for o in sampled.operands if o.replaceable), None)
            if first is not None:
                assert first.dtype == "float32"
                if first.shape != (2, 3):
                    ignoring.add(op.name)
    assert ignoring <= {"DynamicStitch", "ParallelDynamicStitch", "StridedSliceGrad"}
    assert len(fitting) > len(PURE_OPS) // 2


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("BitwiseAnd", "float32", None),
        ("MatrixDiagPart", None, (3,)),
        ("Fill", None, (2,)),
        ("SparseToDense", None, (2,)),
    ],
)
def test_there_is_no_sample_of_a_type_that_an_op_does_not_take(
    name: str, dtype: str | None, shape: tuple[int, ...] | None
) -> None:
    rng = random.Random(0)
    assert all(sample(rng, row(name), dtype, shape) is None for _ in range(20))
