"""Critical cycles: the oracles agree with the generator, and all classic shapes appear."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.fuzz.generators import critical, cycles, generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.generators.cycles import Plan
    from litmusfuzz.oracles.model import Model

CLASSIC = {
    "SB": "Wx Ry | Wy Rx",
    "MP": "Wx Wy | Ry Rx",
    "LB": "Rx Wy | Ry Wx",
    "R": "Wx Wy | Wy Rx",
    "S": "Wx Wy | Ry Wx",
    "2+2W": "Wx Wy | Wy Wx",
    "IRIW": "Wx | Wy | Rx Ry | Ry Rx",
    "WRC": "Wx | Rx Wy | Ry Rx",
    "RWC": "Wx | Rx Ry | Wy Rx",
    "WWC": "Wx | Rx Wy | Ry Wx",
    "WRW+WR": "Wx | Rx Wy | Wy Rx",
    "WRR+2W": "Wx | Rx Ry | Wy Wx",
    "WRW+2W": "Wx | Rx Wy | Wy Wx",
    "IRWIW": "Wx | Wy | Rx Ry | Ry Wx",
    "IRRWIW": "Wx | Wy | Rx Wy | Ry Wx",
    "W+RWC": "Wx Wy | Ry Rz | Wz Rx",
    "ISA2": "Wx Wy | Ry Wz | Rz Rx",
    "3.SB": "Wx Ry | Wy Rz | Wz Rx",
    "3.LB": "Rx Wy | Ry Wz | Rz Wx",
    "3.2W": "Wx Wy | Wy Wz | Wz Wx",
    "Z6.0": "Wx Wy | Ry Wz | Wz Rx",
    "Z6.1": "Wx Wy | Wy Wz | Rz Wx",
    "Z6.2": "Wx Wy | Ry Wz | Rz Wx",
    "Z6.3": "Wx Wy | Wy Wz | Rz Rx",
    "Z6.4": "Wx Wy | Wy Rz | Wz Rx",
    "Z6.5": "Wx Wy | Wy Wz | Wz Rx",
    "CoRR": "Wx | Rx Rx",
    "CoWW": "Wx Wx",
    "CoWR": "Wx Rx",
    "CoRW1": "Rx Wx",
    "CoRW2": "Wx | Rx Wx",
}


def canonical(chains: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Form of a shape that is equal for all orders of chains and names of variables."""
    names = sorted({access[1] for chain in chains for access in chain})
    found = []
    for order in permutations("abcd"[: len(names)]):
        new = dict(zip(names, order, strict=True))
        found.append(tuple(sorted(tuple(a[0] + new[a[1]] for a in chain) for chain in chains)))
    return min(found)


def asked_of(plan: Plan, model: Model) -> Verdict:
    """Verdict on the outcome that a test asks for."""
    test, asked = cycles.test_of(plan)
    values = {
        name: (value,) * test.size_of(test.type_of(name).shape) for name, value in asked.items()
    }
    return Explorer(test, model).judge(Outcome.of(test, values))


@pytest.mark.parametrize("model", [RFC, EXECUTOR], ids=["rfc", "executor"])
def test_the_outcome_asked_for_is_forbidden_and_allowed_without_any_one_edge(model: Model) -> None:
    """A cycle is critical, however it is written."""
    for number in range(300):
        plan = cycles.random_plan(random.Random(f"cycle {number}"))
        assert plan.complete
        assert asked_of(plan, model) is Verdict.FORBIDDEN, plan
        for chain, order in enumerate(plan.orders):
            if order:
                assert asked_of(plan.without(chain), model) is Verdict.ALLOWED, (plan, chain)


def test_every_classic_shape_is_generated() -> None:
    """In 3,000 cycles of a fixed seed."""
    rng = random.Random(1)
    generated = {
        canonical([tuple(map(str, chain)) for chain in critical.random_cycle(rng).chains])
        for _ in range(3000)
    }
    for name, shape in CLASSIC.items():
        assert canonical([chain.split() for chain in shape.split("|")]) in generated, name
    assert len(generated) > 60


def test_cycles_are_written_in_every_way() -> None:
    plans = [cycles.random_plan(random.Random(f"way {number}")) for number in range(400)]
    assert set(Counter(order for plan in plans for order in plan.orders)) == {
        *("", "edge", "noop", "identity", "relu", "less", "difference", "branch", "runs"),
        *("section first", "section second"),
    }
    assert {where for plan in plans for where in plan.around} == {"", "loop", "section"}
    assert {len(plan.cycle.chains) for plan in plans} == {1, 2, 3, 4}
    assert {plan.cycle.variables for plan in plans} == {1, 2, 3, 4}


def test_some_tests_leave_out_an_edge_and_their_description_says_so() -> None:
    descriptions = [generate("cycles", 3, index).description for index in range(100)]
    assert (
        5 <= sum(each.endswith("allowed, as one edge is left out") for each in descriptions) <= 40
    )
    assert sum(each.endswith(": forbidden") for each in descriptions) >= 60


def test_shapes_without_a_minimal_cycle_are_not_critical() -> None:
    """MP with its reads the other way round; SB with an edge that it does not need."""
    w, r = (critical.Point(kind, 0) for kind in "WR")
    v, q = (critical.Point(kind, 1) for kind in "WR")
    assert critical.STORE_BUFFERING.critical
    assert str(critical.STORE_BUFFERING) == "PodWR Fre PodWR Fre"
    assert critical.Cycle(((w, v), (q, r)), (None, None, 1, None)).critical
    assert not critical.Cycle(((w, v), (r, q)), (None, None, None, 1)).critical
    assert not critical.Cycle(((w, r), (v, q)), (None, None, None, None)).critical
