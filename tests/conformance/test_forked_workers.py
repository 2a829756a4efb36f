"""Forked and spawned workers give the same results: a fork changes no outcome."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import msgspec
import pytest
from helpers import LITMUS

from litmusfuzz.corpus.textfile import load, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import CANARY, configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.model import GUARANTEES, RFC
from litmusfuzz.oracles.reference import allowed_outcomes

TESTS = [load(path).test for path in LITMUS if path.stem in ("SB", "MP", "LB", "lost-update")]
SEEDS = (1, 2, 3)


def request(test, config: str, count: int, seed: int, executor: str = "") -> messages.Request:
    return messages.Request(
        test=plain_of(test),
        executor=executor,
        config=config,
        count=count,
        noise=asdict(Noise(copies=8, steps=16)),
        seed=seed,
    )


def answer(worker: Worker, asked: messages.Request) -> messages.Reply:
    reply = worker.ask(asked, 120)
    assert isinstance(reply, messages.Reply), reply
    assert reply.rows
    return reply


def started(worker: Worker, *, spawn: bool) -> None:
    assert worker.start_method == ("spawned: as requested" if spawn else "forked")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("native", "controlled"),
        ("native", "pct_split"),
        ("mutant/store-buffers", "controlled"),
        ("jax", "controlled"),
        ("mutant/canary", "plain"),
        ("mutant/stale-reads", "plain"),
    ],
)
def test_deterministic_executors_give_equal_bytes(name: str, config: str) -> None:
    found = []
    for spawn in (False, True):
        with closing(Worker(name, spawn=spawn)) as worker:
            replies = [
                answer(worker, request(t, config, 50, seed)) for t in TESTS for seed in SEEDS
            ]
            started(worker, spawn=spawn)
        found.append([msgspec.json.encode(reply.rows) for reply in replies])
    forked, spawned = found
    assert len(forked) == len(TESTS) * len(SEEDS) == 12
    assert forked == spawned


@pytest.mark.parametrize("spawn", [False, True])
@pytest.mark.parametrize(
    ("name", "configs"),
    [("native", ("plain", "two_processes")), ("jax", ("plain", "two_devices")), ("tf", ("plain",))],
)
def test_all_outcomes_are_allowed_and_those_of_the_canary_are_not(
    name: str, configs: tuple[str, ...], *, spawn: bool
) -> None:
    """The canary runs in the same process."""
    with closing(Worker(name, spawn=spawn)) as worker:
        for config in configs:
            model = GUARANTEES[configuration(name, config).guarantees]
            for test in TESTS:
                seen = messages.histogram(test, answer(worker, request(test, config, 64, 1)))
                assert sum(seen.values()) >= 64
                assert not judge(allowed_outcomes(test, model), seen).forbidden
        started(worker, spawn=spawn)
        seen = messages.histogram(
            TESTS[0], answer(worker, request(TESTS[0], "plain", 64, 1, CANARY))
        )
        assert judge(allowed_outcomes(TESTS[0], RFC), seen).forbidden_count == 64
