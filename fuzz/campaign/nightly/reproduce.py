"""Reproduces tests from the records of a nightly run, in other processes, and compares them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.nightly.shard_log import digest
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.generators import generate

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from litmusfuzz.fuzz.campaign.nightly.store import Store
    from litmusfuzz.fuzz.support import Support

CHUNK = 16
"""Tests that a process generates at a time."""


def reproduced(store: Store, tests: int, seed: int, pool: Executor) -> tuple[list[str], int]:
    """Generate tests of a nightly run again, and compare their digests.

    Parameters
    ----------
    store : Store
    tests : int
        At most so many.
    seed : int
        Chooses the records.
    pool : Executor

    Returns
    -------
    list of str
        Tests that differ, by family and number.
    int
        Number of tests generated.
    """
    of = store.meta["seed"]
    places = store.rows("SELECT shard, line FROM tests ORDER BY shard, line")
    chosen = random.Random(seed).sample(places, min(tests, len(places)))
    records = [
        store.rows("SELECT * FROM tests WHERE shard = ? AND line = ?", *place)[0]
        for place in chosen
    ]
    # A shard generates tests within the support of its executor.
    shards = store.rows("SELECT number, executor FROM shards")
    executors: dict[int, str] = {row["number"]: row["executor"] for row in shards}
    supports = {name: executor_class(name).support for name in {*executors.values()}}
    asked = [
        (row["family"], of, row["number"], supports[executors[row["shard"]]]) for row in records
    ]
    parts = [asked[n : n + CHUNK] for n in range(0, len(asked), CHUNK)]
    made = [each for part in pool.map(digests, parts) for each in part]
    different = [
        f"{row['family']} {row['number']}"
        for row, sha256 in zip(records, made, strict=True)
        if row["sha256"] != sha256
    ]
    return different, len(made)


def digests(tests: list[tuple[str, int, int, Support]]) -> list[str]:
    """Digests of tests, each from its family, seed, number and support."""
    return [digest(generate(*each)) for each in tests]
