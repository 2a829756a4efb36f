"""What drives all reductions: it tries each candidate, and uses no answer that comes too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.finding.driver import Driven, drive_now

if TYPE_CHECKING:
    from collections.abc import Generator


def halving(number: int) -> Generator[int, bool, int]:
    """The smallest form of a number: its half, and the half of that, while they are accepted."""
    while number > 0 and (yield number // 2):
        number //= 2
    return number


def test_a_reduction_ends_with_its_result() -> None:
    tried: list[int] = []

    def is_large(candidate: int) -> bool:
        tried.append(candidate)
        return candidate >= 5

    assert drive_now(halving(40), is_large, lambda: True) == Driven(complete=True, result=5)
    assert tried == [20, 10, 5, 2]
    assert drive_now(halving(0), is_large, lambda: False) == Driven(complete=True, result=0)


def test_an_answer_after_the_time_is_not_used() -> None:
    tried: list[int] = []

    def is_large(candidate: int) -> bool:
        tried.append(candidate)
        return True

    driven = drive_now(halving(40), is_large, lambda: len(tried) < 2)
    assert driven == Driven(complete=False, result=None)
    assert tried == [20, 10]
