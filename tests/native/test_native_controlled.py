"""Records, replays and forced orders of the controlled engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from helpers import UNCLUSTERED, corpus_entry, for_each
from native.helpers_native import as_strict_as_allowed, is_supported, keys, prepared

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC


def forced(test, model, order):
    """Return the outcome under the loosest strictness that permits the order."""
    for each in as_strict_as_allowed(test, model):
        try:
            return each.force(keys(order))
        except Diverged as error:
            reason = error
    raise reason


@for_each("path", UNCLUSTERED, every=3, where=is_supported)
def test_a_witness_can_be_forced_and_gives_its_outcome(path) -> None:
    test = corpus_entry(path).test
    for model in MODELS.values():
        witnesses = explorer.allowed_outcomes(test, model).witnesses
        for outcome, order in witnesses.items():
            assert forced(test, model, order) == outcome


def test_an_order_that_is_not_allowed_diverges_where_it_breaks_a_rule() -> None:
    test = litmus("X=1; r0=X")
    ((order, *_),) = [explorer.allowed_outcomes(test, EXECUTOR).witnesses.values()]
    late, early = keys(order)
    executor = prepared(test, EXECUTOR)
    with pytest.raises(Diverged, match="after 0 of 2 events"):
        executor.force([early, late])
    with pytest.raises(Diverged, match="after 1 of 1 events: more can come"):
        executor.force([late])


def test_an_order_that_takes_too_long_is_an_error_that_names_the_time() -> None:
    """The limit of a nanosecond passes before the first event."""
    test = litmus("X=1; r0=X")
    ((order, *_),) = [explorer.allowed_outcomes(test, EXECUTOR).witnesses.values()]
    executor = prepared(test, EXECUTOR)
    with pytest.raises(TimeoutError, match="after 0 of 2 events 1e-09 s were over"):
        executor.force(keys(order), timeout_s=1e-9)
    assert executor.force(keys(order), timeout_s=60.0).plain == {"r0": 1, "X": 1}


BUSY = "Q!1; lock M; X+=1; unlock M; r0=Q? || r2=X; lock M; X+=2; unlock M; Q!2; r1=Q?"


def test_a_record_is_replayed_to_the_same_outcome_a_thousand_times() -> None:
    test = litmus(BUSY, queues={"Q": 1})
    executor = prepared(test, RFC)
    seen = set()
    for seed in range(20):
        outcome, choices = executor.record(seed)
        assert executor.record(seed) == (outcome, choices)
        seen.add(outcome)
        for _ in range(50):
            assert executor.replay(choices) == outcome
    assert len(seen) > 1


def test_a_record_is_replayed_in_a_new_process() -> None:
    code = (
        "import json, sys; sys.path.insert(0, 'tests')\n"
        "from litmusfuzz.corpus.builder import litmus; from litmusfuzz.oracles.model import RFC\n"
        "from native.helpers_native import prepared\n"
        f"executor = prepared(litmus({BUSY!r}, queues={{'Q': 1}}), RFC)\n"
        "for choices in json.load(sys.stdin):\n"
        "    print(executor.replay([tuple(each) for each in choices]))\n"
    )
    executor = prepared(litmus(BUSY, queues={"Q": 1}), RFC)
    records = [executor.record(seed) for seed in range(50)]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([choices for _, choices in records]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(outcome) for outcome, _ in records]


def test_a_replay_that_meets_other_events_stops_and_says_so() -> None:
    executor = prepared(litmus("X=1; r0=Y || Y=1; r1=X"), EXECUTOR)
    _, choices = executor.record(1)
    with pytest.raises(Diverged, match="after 0 of 4 choices"):
        prepared(litmus("r0=Y; X=1 || Y=1; r1=X"), RFC).replay(
            [(index, count, digest ^ 1) for index, count, digest in choices]
        )
    with pytest.raises(Diverged, match="after 2 of 2 choices"):
        executor.replay(choices[:2])
    with pytest.raises(Diverged, match="after 4 of 5 choices"):
        executor.replay([*choices, choices[-1]])


@pytest.mark.parametrize("seed", range(3))
def test_a_random_walk_shows_all_outcomes_of_iriw(seed: int) -> None:
    """Each of the 15 outcomes has an order of six events, of which at most four are enabled.

    200,000 walks miss one with 15 * (1 - 1/4**6)**200000 < 1e-19.
    """
    test = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")
    seen = prepared(test, EXECUTOR).run(200_000, Noise(), seed)
    assert sum(seen.values()) == 200_000
    assert set(seen) == set(explorer.allowed_outcomes(test, EXECUTOR).witnesses)


def test_blocked_and_failed_outcomes_are_reported() -> None:
    stuck = prepared(litmus("X=3; r0=Q?", queues={"Q": 1}), EXECUTOR).run(10, Noise(), 0)
    assert [str(outcome) for outcome in stuck] == ["_status=blocked X=3 Q=[]"]
    (outcome,) = stuck
    assert outcome.status is Status.BLOCKED
