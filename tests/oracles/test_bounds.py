"""Orders and races, counted by hand on shapes that have names."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.oracles import reference
from litmusfuzz.oracles.bounds import count_all, count_races, largest_magnitude
from litmusfuzz.oracles.events import Strictness, unfold
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC, Model
from litmusfuzz.oracles.paths import LongPaths

SECTIONS = "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M"
CROSSED = (
    "lock M; r0=X; lock N; X=1; unlock N; unlock M || lock N; r1=X; lock M; X=2; unlock M; unlock N"
)


@pytest.mark.parametrize(
    ("text", "orders", "races"),
    [
        ("X=1; Y=2 || r0=Y; r1=X", 6, 2),  # MP: two from four; each read and its write
        ("X=1; r0=Y || Y=1; r1=X", 6, 2),  # SB
        ("X=1; r0=X", 1, 0),
        ("r0=X || r1=X", 2, 0),  # two reads do not race
        ("X+=1 || X+=1", 6, 3),  # R W against R W: all pairs but R with R
    ],
)
def test_orders_and_races_of_named_shapes(text: str, orders: int, races: int) -> None:
    test = litmus(text)
    assert count_all(test, 1000) == orders
    assert count_races(LongPaths(test).path(), races + 1) == races


def test_one_section_excludes_another() -> None:
    assert count_all(litmus(SECTIONS), 1000) == 2


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        (CROSSED, {}),
        ("Q!1; Q!2; X=5 || r0=X; r1=Q?", {"Q": 1}),
        ("X=1; Q!1 || Q!2 || r0=Q?; r1=Q?", {"Q": 2}),
        ("Q!1,2,3 || r0=Q?2 || r1=Q?", {"Q": 2}),
        ("r0=Q? || X=1", {"Q": 1}),
        (f"loop 2 free {{ {SECTIONS.split(' || ', maxsplit=1)[0]} }} || X=1", {}),
    ],
)
def test_what_may_block_is_counted_as_the_reference_looks_at_it(
    text: str, queues: dict[str, int]
) -> None:
    """Over every choice of strictness."""
    test = litmus(text, queues=queues)
    assert count_all(test, 100_000) == reference.allowed_outcomes(test, RFC).orders


def test_a_count_stops_at_its_limit() -> None:
    test = litmus(" || ".join(f"X={i}" for i in range(12)))
    assert count_all(test, 1000) == 1000


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        (" || ".join(f"X={i}; Y={i}" for i in range(3)), 90),  # the lower bound is the number
        ("X=1; Y=1 || X=2; Y=2; X=3", 10),
        ("Y=1 || X=1; loop 3 { X+=1 }; Y=2", 810),
    ],
)
def test_a_count_is_exact_up_to_its_limit(text: str, orders: int) -> None:
    """A lower bound ends most counts early: it must not be above the number of orders."""
    for limit in (1, orders - 1, orders, orders + 1, 10 * orders):
        assert count_all(litmus(text), limit) == min(orders, limit)


@pytest.mark.parametrize("model", [RFC, EXECUTOR, ACD], ids=lambda model: model.name)
@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("X+=5 || X+=7", 21),  # each storing event acts on the largest contents: 7 + 7 + 7
        ("X=5; r0=X; Y=r0+7 || X+=9", 36),
        ("X=100 || r0=X", 100),
    ],
)
def test_a_bound_takes_the_unfolding_of_any_model(text: str, largest: int, model: Model) -> None:
    """An update is one event under some models, and two under others."""
    test = litmus(text)
    bound = largest_magnitude(test, Explorer(test, model).unfolding)
    assert bound == largest_magnitude(test) == largest


def test_a_bound_need_not_be_exact_beyond_its_limit() -> None:
    test = litmus("X=3; r0=X; X=r0*9 || r1=X; X=r1*7")
    exact = largest_magnitude(test)
    assert exact == largest_magnitude(test, limit=exact + 1)
    for limit in (1, 20, exact):
        assert limit <= largest_magnitude(test, limit=limit) <= exact
    assert largest_magnitude(test, limit=20) < exact


def test_the_bound_holds_where_every_update_is_read_and_written_apart() -> None:
    """It is computed on the events of `executor`: `rfc` has more orders, and the same values."""
    texts = (
        "X=9 || X+=7 || X+=5",
        "X=3; r0=X; Y=r0 || r1=Y; X+=r1 || r2=X; Y+=r2",
        "X=2; r0=X; X+=r0 || r1=X; X+=r1",
    )
    for text in texts:
        test = litmus(text)
        bound = largest_magnitude(test, unfold(test, EXECUTOR))
        shown = {
            abs(value)
            for outcome in reference.allowed_outcomes(test, RFC).witnesses
            for _, row in outcome.values
            for value in (row if isinstance(row, tuple) else (row,))
        }
        assert max(shown) <= bound, text


def test_an_unfolding_is_remembered_for_its_own_test_and_model_only() -> None:
    test, equal = litmus("X=1 || X+=2"), litmus("X=1 || X+=2")
    first = unfold(test, RFC)
    assert unfold(test, RFC) is first
    assert unfold(equal, RFC) is not first
    assert unfold(test, EXECUTOR).axioms != first.axioms
    assert unfold(test, RFC, {"": Strictness()}) is not first
