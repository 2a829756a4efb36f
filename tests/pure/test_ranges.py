"""Operands that are computed and still fit: the op then fails in no order."""

from __future__ import annotations

from itertools import product

import pytest

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.pure.ranges import range_of
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import RFC

SUMS = """
litmusfuzz: 2
name: sums
variables: {{A: {{dtype: int32, init: 1}}}}
graphs:
  main:
    r: {{op: ReadVariableOp, resources: [A]}}
    modulus: {{op: Const, dtype: int32, value: {modulus}}}
    more: {{op: Const, dtype: int32, value: {more}}}
    rest: {{op: FloorMod, inputs: [r, modulus]}}
    axis: {{op: {op}, inputs: [rest, more]}}
    matrix: {{op: Const, dtype: int32, shape: [2, 2], value: [[1, 2], [3, 4]]}}
    sums: {{op: Cumsum, inputs: [matrix, axis]}}
    loop:
      op: Call
      captures: {{m: matrix, a: axis}}
      results: [y]
      body:
        nodes:
          inside: {{op: Cumsum, inputs: [m, a]}}
        results: [inside]
observe: [sums, loop.y]
"""


@pytest.mark.parametrize(
    ("op", "modulus", "more", "fails"),
    [
        ("AddV2", 2, 0, False),
        ("AddV2", 2, -2, False),
        ("AddV2", 2, 1, True),
        ("Sub", 2, 2, False),
        ("Sub", 3, 3, True),
        ("AddV2", -2, 0, False),
        ("AddV2", -4, 0, True),
        ("Minimum", 9, 1, False),
        ("Maximum", 2, 2, True),
        ("Mul", 2, 1, True),  # no bound follows from it here
    ],
)
def test_an_axis_that_is_computed_may_be_one_in_every_order(
    op: str, modulus: int, more: int, *, fails: bool
) -> None:
    """Inside a call, whose argument it is, as outside."""
    test = loads(SUMS.format(op=op, modulus=modulus, more=more)).test
    assert {"sums", "inside"} & test.failing == ({"sums", "inside"} if fails else set())


REMAINDERS = [(a, b, a - b * (a // b)) for a, b in product(range(-9, 10), (-4, -1, 1, 5))]


@pytest.mark.parametrize(("op", "of"), [("AddV2", int.__add__), ("Sub", int.__sub__)])
def test_bounds_hold_and_are_met(op: str, of: object) -> None:
    assert callable(of)
    values = [of(a, b) for a, b in product(range(-2, 4), range(1, 8))]
    assert range_of(op, [(-2, 3), (1, 7)]) == (min(values), max(values))


@pytest.mark.parametrize("divisor", [-4, -1, 1, 5])
def test_remainders_lie_in_their_range(divisor: int) -> None:
    values = [rest for _, by, rest in REMAINDERS if by == divisor]
    assert range_of("FloorMod", [None, (divisor, divisor)]) == (min(values), max(values))


def test_without_a_bound_on_what_matters_there_is_none() -> None:
    assert range_of("FloorMod", [(0, 1), (-1, 1)]) is None
    assert range_of("AddV2", [(0, 1), None]) is None
    assert range_of("Pack", [(0, 1), None]) is None
    assert range_of("Pack", [(0, 1), (4, 5)]) == (0, 5)
    assert range_of("Relu", [(0, 1)]) is None


@pytest.mark.parametrize("family", ["pure", "computed", "lookups", "constants"])
def test_an_op_that_does_not_may_fail_never_does(family: str) -> None:
    for index in range(60):
        test = generate(family, 17, index)
        failed = any(
            outcome.status is Status.FAILED for outcome in allowed_outcomes(test, RFC).witnesses
        )
        assert test.failing or not failed, index
