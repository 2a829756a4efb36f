"""Total orders played one event at a time: a given one, or one drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus.outcome import Outcome, Status
from oracles.reference import _Walk

if TYPE_CHECKING:
    import random

    from corpus.graph import LitmusTest
    from oracles.allowed import Witness
    from oracles.model import Model


def outcome_of(test: LitmusTest, model: Model, order: Witness) -> Outcome:
    """What a total order shows, by the reference's memory.

    Parameters
    ----------
    order : Witness
        Of `test` under `model`, however strict the executor: events are found
        by what they are called. `model` has the axiom first in, first out.
    """
    walk = _Walk(test, model, {})
    number = {str(event): i for i, event in enumerate(walk.events)}
    assert len(number) == len(walk.events), "two events of one name"
    for event in order:
        if not _play(walk, number[str(event)], 0):
            return Outcome.of(test, {}, Status.FAILED)
    return walk.outcome()


def random_order(test: LitmusTest, model: Model, rng: random.Random) -> tuple[Outcome, Witness]:
    """A total order of the loosest executor, and its outcome.

    Each event is drawn from those enabled, all alike.
    """
    walk = _Walk(test, model, {})
    while enabled := walk.enabled():
        if not _play(walk, *rng.choice(enabled)):
            return Outcome.of(test, {}, Status.FAILED), tuple(walk.prefix)
    return walk.outcome(), tuple(walk.prefix)


def _play(walk: _Walk, index: int, element: int) -> bool:
    """Execute one event; False if its op fails, which ends the order.

    `element` is the place in the queue that a dequeue takes from: 0 in models
    in which the first in is the first out.
    """
    event = walk.events[index]
    walk.prefix.append(event)
    walk.done.add(index)
    if walk.fails(event):
        return False
    walk.step(index, element)
    return True
