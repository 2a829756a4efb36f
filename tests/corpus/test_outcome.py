"""Outcomes: equality, plain forms, digests, and the nearest allowed outcome."""

from __future__ import annotations

import random

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import (
    TORN,
    Outcome,
    Value,
    Verdict,
    digest,
    distance,
    nearest,
    plain_value,
)

SB = litmus("X=1; r0=Y || Y=1; r1=X")


def sb(r0: int, r1: int, x: int = 1, y: int = 1) -> Outcome:
    return Outcome.of(SB, {"Y": (y,), "r1": (r1,), "X": (x,), "r0": (r0,)})


def pair(r0: Value, x: Value) -> Outcome:
    return Outcome((("r0", r0), ("X", x)))


def test_an_outcome_is_in_the_order_of_the_tests_names() -> None:
    assert sb(0, 1).values == (("r0", (0,)), ("r1", (1,)), ("X", (1,)), ("Y", (1,)))
    assert sb(0, 1) == sb(0, 1)
    assert hash(sb(0, 1)) == hash(sb(0, 1))
    assert sb(0, 1) != sb(1, 0)


def test_an_outcome_has_every_name() -> None:
    with pytest.raises(ValueError, match="without a value of 'r1'"):
        Outcome.of(SB, {"r0": (0,), "X": (1,), "Y": (1,)})


@pytest.mark.parametrize(
    ("value", "plain"),
    [((3,), 3), ((-3, 4), [-3, 4]), (TORN, "torn"), ((0, 0, 0), [0, 0, 0])],
)
def test_the_plain_form_of_a_value(value: Value, plain: object) -> None:
    assert plain_value(value) == plain
    assert type(plain_value(value)) is type(plain)


def test_the_plain_form_of_an_outcome() -> None:
    outcome = pair(TORN, (1, -2))
    assert outcome.plain == {"r0": "torn", "X": [1, -2]}
    assert list(outcome.plain) == ["r0", "X"]
    assert str(outcome) == "r0=torn X=[1,-2]"
    assert str(sb(0, 1)) == "r0=0 r1=1 X=1 Y=1"


def test_an_outcome_is_torn_if_one_value_is() -> None:
    """semantics.md, 1: a value whose lanes differ is torn."""
    assert pair((0,), TORN).torn
    assert pair(TORN, (0,)).torn
    assert not pair((0,), (0,)).torn
    assert repr(TORN) == "torn"


def test_a_digest_is_of_the_set_and_not_of_its_order() -> None:
    outcomes = [sb(a, b, x, y) for a in (0, 1) for b in (0, 1) for x in (0, 1) for y in (0, 1)]
    rng = random.Random(4)
    digests = set()
    for _ in range(20):
        rng.shuffle(outcomes)
        digests |= {digest(outcomes), digest(iter(outcomes)), digest(frozenset(outcomes))}
    assert len(digests) == 1


def test_a_digest_is_the_same_for_ever() -> None:
    """Files keep it: to change how it is made is to change the format.

    The second was made with `sha256sum`, of the two lines and no newline behind.
    """
    assert digest([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest([sb(1, 0), sb(0, 1)]) == EXPECTED


EXPECTED = "4cc7e0e8151110b4d56749ab970078a9fd2a9af3c70f35a1ce2cae7ecd37d589"


def test_a_digest_differs_when_one_outcome_does() -> None:
    full = [sb(a, b) for a in (0, 1) for b in (0, 1)]
    others = [
        *(full[:i] + full[i + 1 :] for i in range(4)),
        *([*full[:i], pair(TORN, (1,)), *full[i + 1 :]] for i in range(4)),
        [*full, sb(2, 0)],
        [*full[:3], sb(1, 2)],
        [pair((1, 2), (3,))],
        [pair((1,), (2, 3))],
        [pair((12,), (3,))],
        [pair((-12,), (3,))],
        [],
    ]
    assert len({digest(each) for each in [full, *others]}) == len(others) + 1


def test_distance_is_the_number_of_names_that_differ() -> None:
    assert distance(sb(0, 0), sb(0, 0)) == 0
    assert distance(sb(0, 0), sb(0, 5)) == 1
    assert distance(sb(0, 0, 1, 1), sb(1, 1, 0, 0)) == 4
    assert distance(pair(TORN, (1, 2)), pair((0, 0), (1, 3))) == 2


def test_the_nearest_allowed_outcome_differs_least() -> None:
    far, near = sb(1, 1, 2, 1), sb(0, 1)
    assert nearest(sb(0, 0), [far, near]) == near
    assert nearest(sb(0, 0), [near, far]) == near
    assert nearest(sb(0, 0), []) is None


def test_of_several_nearest_the_least_is_taken_whatever_the_order() -> None:
    """Else a report would differ from one run to the next."""
    allowed = [sb(0, 1), sb(1, 0), sb(1, 1)]
    for seed in range(20):
        random.Random(seed).shuffle(allowed)
        assert nearest(sb(0, 0), allowed) == sb(0, 1)
        assert nearest(sb(0, 0), frozenset(allowed)) == sb(0, 1)


def test_verdicts_are_words() -> None:
    assert [str(each) for each in Verdict] == [
        *("allowed", "forbidden", "unknown", "unspecified"),
        *("crashed", "timed out"),
    ]
