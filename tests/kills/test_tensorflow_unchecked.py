"""Real TensorFlow without its safety checks, and with them: BLOG's problem, and ours.

What is static is decided from TensorFlow's dump, without an execution that counts.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.commands.cluster_sources import EXECUTOR_SOURCES
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from pathlib import Path


def file(stem: str) -> Path:
    return next(path for path in LITMUS if path.stem == stem)


BLOG, S, FORWARDED = file("blog-problem"), file("S"), file("forwarded-read")


def validated(source: str, *files: Path) -> list[dict]:
    command = ["validate", "--clusters", source, "--json", *map(str, files)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.output)


def forbidden(worker: Worker, path: Path, sessions: int) -> list[dict]:
    """Outcomes that are not allowed, of 512 executions in each of some sessions."""
    test = corpus_entry(path).test
    allowed = set(allowed_outcomes(test, RFC).witnesses)
    seen = set()
    for seed in range(sessions):
        request = messages.Request(
            test=plain_of(test),
            config="autocluster",
            count=512,
            noise=asdict(Noise(copies=8, steps=64)),
            seed=seed,
        )
        reply = worker.ask(request, 120)
        assert isinstance(reply, messages.Reply), reply
        seen |= set(messages.histogram(test, reply))
        if seen - allowed:
            break
    return [outcome.plain for outcome in seen - allowed]


def test_without_its_checks_validation_finds_the_outcome_of_blog() -> None:
    """And of nothing on S, where the pairs that it joins are a read, then a write."""
    blog, s = validated("tf-unchecked", BLOG, S)
    assert blog["verdict"] == "unsound"
    assert blog["clusters"]["c0"] == ["six", "StoreX6", "r0"]
    assert blog["added"] == {"r0": 0, "v0": 6, "v1": 8}
    assert blog["broken"] == ["StoreX6 and r0: unsafe pair"]
    assert s["verdict"] == "sound"
    assert s["broken"] == []


def test_with_its_checks_validation_finds_only_the_outcome_of_the_known_defect() -> None:
    """A defect of TensorFlow 2.21: docs/tensorflow-findings.md."""
    blog, forwarded = validated("tf", BLOG, FORWARDED)
    assert blog["verdict"] == "sound"
    assert blog["clusters"] == {
        "c0": ["six", "StoreX6"],
        "c1": ["eight", "seven", "StoreY", "StoreX7"],
        "c2": ["r0"],
    }
    assert forwarded["verdict"] == "unsound"
    assert forwarded["added"] == {"b": 1, "c": 0, "f": 0, "x": 1, "y": 1, "z": 1}
    assert forwarded["broken"] == ["a and b: reads first", "a and c: reads first"]
    assert forwarded["pairwise_permits"]


@pytest.mark.parametrize(
    ("source", "kills", "survives"), [("tf-unchecked", BLOG, S), ("tf", FORWARDED, BLOG)]
)
def test_execution_agrees_with_validation(source: str, kills: Path, survives: Path) -> None:
    """BLOG's outcome showed in 59 of 60 sessions of 512 executions, ours in all of 60.

    With one session in ten that shows nothing, all twelve do with probability 1e-12.
    """
    executor, _ = EXECUTOR_SOURCES[source]
    with closing(Worker(executor)) as worker:
        (shown,) = forbidden(worker, kills, sessions=12)
        assert shown in (
            {"r0": 0, "v0": 6, "v1": 8},
            {"b": 1, "c": 0, "f": 0, "x": 1, "y": 1, "z": 1},
        )
        assert not forbidden(worker, survives, sessions=4)
