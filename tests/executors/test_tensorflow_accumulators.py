"""TensorFlow executor: accumulators, their reset, and what is seen of them in the end."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.commands.force_all import Limits, cover
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram

FLOATS: dict[str, Any] = {"dtype": "float32", "accumulators": "A"}
PATHS = [path for path in LITMUS if corpus_entry(path).test.accumulators]
NOISE = Noise(copies=4, steps=4, padding=64)


def execute(test: LitmusTest, config: str = "plain", count: int = 32) -> Histogram:
    with closing(TensorFlowExecutor().prepare(test, configuration("tf", config))) as prepared:
        return prepared.run(count, NOISE, 1)


CONFIGURATIONS = ("plain", "grappler_aggressive", "functional", "critical_section")


@for_each("path", PATHS, every=3)
def test_every_outcome_is_one_that_the_model_allows(path: Path) -> None:
    test = corpus_entry(path).test
    for config in CONFIGURATIONS:
        oracle = Explorer(test, GUARANTEES[configuration("tf", config).guarantees])
        seen = execute(test, config, 16)
        allowed = {Verdict.ALLOWED, Verdict.UNSPECIFIED}
        assert judge(oracle, seen).verdicts.keys() <= allowed, (config, seen)


@for_each("path", PATHS, every=3)
def test_every_allowed_outcome_can_be_forced(path: Path) -> None:
    with closing(Worker("tf")) as worker:
        found = cover(corpus_entry(path).test, worker, configuration("tf"), Limits(timeout_s=60))
    assert found.complete
    assert not found.left_out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # A gradient stays, and the step is 5: neither is there in the next step.
        ("step A 5; A<<1 at 5", "A.sum=1 A.count=1"),
        ("A<<1; r0=A>>1; A<<2 at 1", "r0=1 A.sum=2 A.count=1"),
        # A take that waits for ever is gone in the next step.
        ("A<<1; A<<2; r0=A>>3", "_status=blocked A.sum=3 A.count=2"),
        ("r0=A>>1", "_status=blocked A.sum=0 A.count=0"),
        # Blocked elsewhere; nothing waits at A.
        ("A<<1; r0=A>>1; A<<4 at 1; r1=B>>1", "_status=blocked A.sum=4 A.count=1"),
    ],
)
def test_each_execution_starts_anew_and_shows_what_is_left(text: str, shown: str) -> None:
    test = litmus(text, dtype="float32", accumulators="AB" if "B" in text else "A")
    seen = {str(outcome).replace(" B.sum=0 B.count=0", "") for outcome in execute(test)}
    assert seen == {shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # The head waits for 3 of 2 gradients; a take of 1 is behind it.
        ("A<<1; A<<2; r0=A>>3 ||| r1=A>>1", "_status=blocked A.sum=3 A.count=2"),
        # Nothing is in A's line when the run is cancelled: its takes have ended.
        ("A<<1; r0=A>>1; A<<2 at 1; r1=A>>1; A<<4 at 2; r2=B>>1", "_status=blocked A.sum=4"),
    ],
)
def test_a_take_behind_a_cancelled_one_ends_nothing(text: str, shown: str) -> None:
    """TensorFlow would wait for itself (docs/tensorflow-findings.md); each session ends."""
    test = litmus(text, dtype="float32", accumulators="AB" if "B" in text else "A")
    assert any(str(outcome).startswith(shown) for outcome in execute(test))


@pytest.mark.parametrize(
    ("text", "config", "why"),
    [
        ("A<<1 || r0=A>>0 || r1=A>>1", "plain", "several takes of A"),
        ("A<<1 || r0=A>>1 || r1=A>>2; lock M; X=1; unlock M", "plain", "takes of A of"),
        ("A<<1", "function", "accumulators"),
        ("A<<1", "eager_threads", "accumulators"),
        ("A<<1", "single_threaded", "accumulators"),
        ("A<<1", "function_compiled", "accumulators"),
        ("A<<1", "run_handler_pool", "accumulators"),
    ],
)
def test_what_cannot_run_is_refused(text: str, config: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        TensorFlowExecutor().prepare(litmus(text, **FLOATS), configuration("tf", config))
