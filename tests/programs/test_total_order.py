"""The search for a total order that edges and critical sections permit."""

from __future__ import annotations

from itertools import permutations

import pytest

from litmusfuzz.fuzz.programs.total_order import TooManySteps, total_order

Locks = dict[str, tuple[str, set[str]]]
SECTIONS: dict[str, set[str]] = {"L": set(), "a": {"L"}, "M": set(), "b": {"M"}, "c": set()}
"""Two locks, an access in the section of each, and an access outside."""


def permitted(order: tuple[str, ...], waits: dict[str, set[str]], locks: Locks) -> bool:
    """True if an order keeps all edges, and no lock comes inside of a section on its mutex."""
    place = {name: number for number, name in enumerate(order)}
    edges = all(place[one] < place[two] for two, earlier in waits.items() for one in earlier)
    return edges and not any(
        place[lock] < place[other] < max((place[end] for end in ends), default=-1)
        for lock, (mutex, ends) in locks.items()
        for other in locks
        if other != lock and locks[other][0] == mutex
    )


@pytest.mark.parametrize("others_first", [False, True])
@pytest.mark.parametrize("mutexes", ["mm", "mn"])
@pytest.mark.parametrize("waited", ["L", "M", "a", "b"])
def test_an_order_is_there_exactly_if_one_is_permitted(
    waited: str, mutexes: str, *, others_first: bool
) -> None:
    """`c` comes before the end of both sections, and after a lock or an access."""
    waits = SECTIONS | {"c": {waited}}
    locks: Locks = {"L": (mutexes[0], {"a", "c"}), "M": (mutexes[1], {"b", "c"})}
    orders = [order for order in permutations(waits) if permitted(order, waits, locks)]
    for wanted in permutations(waits, 2):
        having = [order for order in orders if order.index(wanted[0]) < order.index(wanted[1])]
        order = total_order(waits, locks, wanted, others_first=others_first)
        assert (tuple(order) in having) if order else not having


def test_a_program_of_thousands_of_sections_has_an_order() -> None:
    """More than Python's limit of calls inside each other."""
    waits: dict[int, set[int]] = {n: {n - 1} if n else set() for n in range(3_000)}
    locks = {n: ("m", {n + 1}) for n in range(0, 3_000, 2)}
    assert total_order(waits, locks, [0, 2_999]) == list(waits)
    assert total_order(waits, locks, [2_999, 0]) is None


def test_a_search_that_is_too_long_is_given_up() -> None:
    """Twenty locks can be taken in any order, and two accesses wait for each other."""
    waits: dict[int, set[int]] = {n: set() for n in range(20)} | {20: {21}, 21: {20}}
    locks = {n: (f"m{n}", {20}) for n in range(20)}
    with pytest.raises(TooManySteps):
        total_order(waits, locks, [0])
