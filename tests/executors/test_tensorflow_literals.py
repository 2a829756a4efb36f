"""Literals of test files as arrays."""

from __future__ import annotations

import pytest

from litmusfuzz.fuzz.executors.tensorflow.node_defs import literal


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ([1, 2], (2, 1), [[1], [2]]),  # found by a campaign: rows of one element are bare numbers
        ([[0, 1], [1, 0], 2], (3, 2), [[0, 1], [1, 0], [2, 2]]),  # by another one
        ([[1, 2]], (1, 2), [[1, 2]]),
        ([[1, 2], [3, 4]], (2, 2), [[1, 2], [3, 4]]),
        (7, (2, 1), [[7], [7]]),
    ],
)
def test_a_whole_literal_has_its_elements_in_their_places(
    value: object, shape: tuple[int, ...], expected: object
) -> None:
    assert literal(value, shape, "float64", whole=True).tolist() == expected  # type: ignore[arg-type]


def test_a_number_fills_the_lanes_of_its_row() -> None:
    assert literal([1, 2], (2, 3), "int32", whole=False).tolist() == [[1, 1, 1], [2, 2, 2]]
