"""Generates tests of a campaign again, in other processes, and compares them with its events.

A test is varied as its event says, so that the bytes that were run are compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.campaign_executor import support_of
from litmusfuzz.fuzz.campaign.variation import Variation, varied
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.finding.canonical import digest
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.generators.seeds import Seeds
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.reports.events import Executed, Generated

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.fuzz.support import Support

CHUNK = 16
"""Tests that a process generates at a time."""


def reproduced(store: Store, tests: int, seed: int, pool: Executor) -> tuple[list[str], int]:
    """Generate tests of a campaign again, and compare their digests.

    Parameters
    ----------
    store : Store
    tests : int
        At most so many.
    seed : int
        Chooses the tests.
    pool : Executor

    Returns
    -------
    list of str
        Tests that differ, by family and number.
    int
        Number of tests generated.

    Raises
    ------
    StoreError
        If the events name an executor, a family, a model or a variation that is not here, or a
        seed is no litmus test.
    """
    started = store.started
    executed = [event for _, event in store.events_of(Executed)]
    if started is None or not executed:
        return [], 0
    chosen = random.Random(seed).sample(executed, min(tests, len(executed)))
    # A test is generated within the support of one of the executors that run it.
    of = {event.index: event.executor for _, event in store.events_of(Generated)}
    asked = []
    try:
        seeds = Seeds.of(started.seeds)
    except ValueError as error:
        raise StoreError(f"{store.path}: {error}") from None
    for each in chosen:
        try:
            made = executor_class(of[each.index])
        except (KeyError, ValueError) as error:
            why = "it was never generated" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{store.path}: test {each.index}: {why}") from None
        damaging: frozenset[str] = getattr(made, "damaging_ops", frozenset())
        deadly = frozenset(started.deadly_ops)
        support = support_of(made.support, damaging, each.index, deadly)
        if each.family not in FAMILIES:
            raise StoreError(f"{store.path}: test {each.index}: no family {each.family!r}")
        if each.model not in GUARANTEES:
            raise StoreError(f"{store.path}: test {each.index}: no model {each.model!r}")
        try:
            variation = Variation.parse(each.variation)
        except ValueError as error:
            raise StoreError(f"{store.path}: test {each.index}: {error}") from None
        generated = (each.family, started.seed, each.index, support, seeds)
        asked.append(Asked(generated, variation, each.run_seed, each.model))
    parts = [asked[n : n + CHUNK] for n in range(0, len(asked), CHUNK)]
    found = [each for part in pool.map(digests, parts) for each in part]
    different = [
        f"{each.family} {each.index}"
        for each, sha256 in zip(chosen, found, strict=True)
        if each.sha256 != sha256
    ]
    return different, len(found)


@dataclass(frozen=True, slots=True)
class Asked:
    """A test to make again.

    `generated` has its family, the campaign's seed, its number, the support, and the seeds;
    `variation`, `run_seed` and `model` are those of its run.

    None of it is trusted: the variation may be one that the test cannot have.
    """

    generated: tuple[str, int, int, Support, Seeds | None]
    variation: Variation
    run_seed: int
    model: str


def digests(tests: list[Asked]) -> list[str]:
    """Digests of tests as they were run; "" for one that cannot be varied as its event says."""
    return [_digest(each) for each in tests]


def _digest(asked: Asked) -> str:
    test = generate(*asked.generated)
    try:
        made = varied(test, asked.variation, asked.run_seed, GUARANTEES[asked.model])
    except ValueError:
        return ""
    return digest(made.test)
