"""Replay of total orders: a witness of the explorer yields its outcome."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS, Model
from litmusfuzz.oracles.reference import _Walk, outcome_of

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.allowed import Witness


def random_order(test: LitmusTest, model: Model, rng: random.Random) -> tuple[Outcome, Witness]:
    """Return a random total order of the loosest executor, and its outcome."""
    walk = _Walk(test, model, {})
    while enabled := walk.enabled():
        index, element = rng.choice(enabled)
        walk.prefix.append(walk.events[index])
        walk.done.add(index)
        if walk.fails(walk.events[index]):
            return Outcome.of(test, {}, Status.FAILED), tuple(walk.prefix)
        walk.step(index, element)
        if walk.failing(needed=True):
            return Outcome.of(test, {}, Status.FAILED), tuple(walk.prefix)
    return walk.outcome(), tuple(walk.prefix)


@for_each("path", LITMUS)
def test_a_witness_shows_its_outcome_and_a_random_order_an_allowed_one(path: Path) -> None:
    """The reference executes the orders, blocked and failed ones included."""
    test = corpus_entry(path).test
    for model in MODELS.values():
        allowed = Explorer(test, model).allowed_outcomes()
        for outcome in list(allowed.witnesses)[:8]:
            assert outcome_of(test, model, allowed.witnesses[outcome]) == outcome
        for seed in range(2):
            outcome, order = random_order(test, model, random.Random(seed))
            assert outcome in allowed.witnesses
            assert outcome_of(test, model, order) == outcome
