"""Several devices in one process, and in two."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from itertools import islice

import psutil
import pytest
from helpers import UNCLUSTERED, corpus_entry, for_each
from native.generated import generate_test
from native.helpers_native import CONFIGS, all_outcomes, is_supported

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import LitmusTest, Run
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.native.executor import (
    NativeExecutor,
    PreparedTest,
    engine_config,
    on_devices,
)
from litmusfuzz.fuzz.executors.native.two_processes import LostPeer
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.passes.placement import CannotPlace, place
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.events import strictnesses
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS, RFC

TWO = ("cpu:0", "cpu:1")
CHOICES = 32
"""Largest number of choices of strictness; nested bodies have thousands."""
LIMIT = 20_000
"""Limit of executions for each test, model and strictness, as in test_native_exhaustive.py."""


def on_two(test: LitmusTest) -> LitmusTest:
    """Return the test with its resources on two devices, and no other placement."""
    placed = place(test, TWO)
    return replace(test, variables=placed.variables, mutexes=placed.mutexes, queues=placed.queues)


def is_placeable(path) -> bool:
    """False for handles that are chosen at run time: their variables have one device."""
    test = corpus_entry(path).test
    try:
        return is_supported(path) and bool(on_two(test))
    except CannotPlace:
        assert "handles" in test.features
        return False


@for_each("path", UNCLUSTERED, every=5, where=is_placeable)
def test_all_executions_on_two_devices_show_exactly_the_allowed_set(path) -> None:
    """Holds with given and with computed placement, in both models."""
    test = corpus_entry(path).test
    for model in MODELS.values():
        for placed in (on_two(test), place(test, TWO)):
            found = all_outcomes(placed, model, LIMIT)
            assert found is not None, f"more than {LIMIT} executions"
            allowed = explorer.allowed_outcomes(placed, model)
            assert allowed.complete
            assert found[0] == set(allowed.witnesses)


@for_each("path", UNCLUSTERED, every=5, where=is_supported)
@pytest.mark.parametrize(
    ("config", "delay_us"), [("two_devices", 0), ("two_devices", 100), ("two_processes", 0)]
)
def test_every_outcome_is_allowed(native, path, config: str, delay_us: int) -> None:
    test = corpus_entry(path).test
    refusal = ""
    try:
        prepared = native.prepare(test, CONFIGS[config])
    except Refused as refused:
        refusal = str(refused)
    if refusal == "handles on several devices":
        assert "handles" in test.features
    elif refusal:
        assert config == "two_processes"
        assert "in two processes" in refusal
        assert {"calls", "loops", "conditionals", "critical sections"} & test.features
    else:
        seen = prepared.run(64, Noise(transfer_delay_us_max=delay_us), seed=3)
        prepared.close()
        assert sum(seen.values()) == 64
        judge = Explorer(test, RFC)
        for outcome in seen:
            verdict = judge.judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), str(outcome)


@pytest.mark.parametrize("chunk", range(2))
def test_generated_tests_on_two_devices(native, chunk: int) -> None:
    """Exhaustive execution gives the allowed set; threads stay inside it."""
    compared = executed = 0
    for seed in range(50 * chunk, 50 * chunk + 50):
        test = generate_test(seed, effects=5)
        if test is None:
            continue
        for model in MODELS.values():
            placed = on_two(test)
            if len(list(islice(strictnesses(placed, model), CHOICES + 1))) > CHOICES:
                continue
            found = all_outcomes(placed, model, 2_000)
            if found is not None:
                assert found[0] == set(explorer.allowed_outcomes(placed, model).witnesses), seed
                compared += 1
        judge = Explorer(test, RFC)
        for config in ("two_devices", "two_processes"):
            try:
                prepared = native.prepare(test, CONFIGS[config])
            except Refused:
                continue
            seen = prepared.run(64, Noise(transfer_delay_us_max=60), seed)
            prepared.close()
            executed += 1
            for outcome in seen:
                verdict = judge.judge(outcome)
                assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (seed, str(outcome))
    assert compared >= 50
    assert executed >= 50


IRIW = litmus("X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X")


@pytest.mark.parametrize("engine", ["inline", "fifo", "pool"])
def test_each_device_may_have_any_engine(engine: str) -> None:
    config = on_devices(engine_config("", engine, 1, split_updates=True), "mine")
    prepared = PreparedTest(IRIW, config)
    judge = Explorer(IRIW, RFC)
    for delay_us in (0, 50):
        seen = prepared.run(320, Noise(transfer_delay_us_max=delay_us), seed=0)
        assert sum(seen.values()) == 320
        assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)
    prepared.close()


def test_two_processes_know_exactly_when_all_is_blocked(native) -> None:
    """An unmatched dequeue concurrent with transfers blocks; a matched one does not."""
    for program, status in (
        ("r0=X; Y=r0; r1=Y; X=r1+1; r2=Q? || X=3", Status.BLOCKED),
        ("r0=X; Y=r0; r1=Y; X=r1+1; r2=Q? || X=3; Q!1", Status.COMPLETED),
    ):
        test = litmus(program, queues={"Q": 1})
        prepared = native.prepare(test, CONFIGS["two_processes"])
        for delay_us in (0, 500):
            seen = prepared.run(96, Noise(transfer_delay_us_max=delay_us), seed=1)
            assert {outcome.status for outcome in seen} == {status}
            judge = Explorer(test, RFC)
            assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)
        prepared.close()


def test_a_run_waits_for_those_before_it_in_both_processes(native) -> None:
    """RFC, rule 3: Y is the value of X that the last run read, though its process may be slow.

    Without the wait the four transfers to it would overtake each other, and of
    960 executions not one may show that.
    """
    test = litmus("r0=X; X=r0+1; Y=r0")
    names = ("a", "b", "c", "d")
    client = tuple(Run(name, "main", names[:k][-1:]) for k, name in enumerate(names))
    test = replace(test, client=client, observe=())
    prepared = native.prepare(test, CONFIGS["two_processes"])
    seen = prepared.run(960, Noise(transfer_delay_us_max=500), seed=1)
    prepared.close()
    assert set(seen) == set(explorer.allowed_outcomes(test, RFC).witnesses)
    assert [outcome.plain for outcome in seen] == [{"X": 4, "Y": 3}]


def test_resources_shared_by_two_processes_are_refused_by_name(native) -> None:
    section = litmus("lock M; X=1; Y=2; unlock M || r0=X")
    with pytest.raises(Refused, match="a critical section in two processes"):
        native.prepare(section, CONFIGS["two_processes"])


def test_tests_share_the_second_process_one_after_another(native) -> None:
    chain = litmus("X=3; r0=X; Y=r0; r1=Y; X=r1")
    prepared = [native.prepare(test, CONFIGS["two_processes"]) for test in (chain, IRIW)]
    for _ in range(2):
        (outcome,) = prepared[0].run(32, Noise(), 0)
        assert outcome.plain == {"r0": 3, "r1": 3, "X": 3, "Y": 3}
        assert all("r3" in seen.plain for seen in prepared[1].run(32, Noise(), 0))
    for each in prepared:
        each.close()


# Long enough that the run is not over before the signal.
FOREVER = 1 << 40


@pytest.mark.parametrize("after_s", [0.0, 0.3])
def test_a_lost_peer_ends_the_run_with_an_error_that_names_it(after_s: float) -> None:
    executor = NativeExecutor()
    prepared = executor.prepare(IRIW, CONFIGS["two_processes"])
    prepared.run(32, Noise(), 0)
    peer = executor.peer
    assert peer is not None

    def kill() -> None:
        time.sleep(after_s)  # into the run; it ends whenever the signal comes
        os.kill(peer.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    message = rf"lost the process with cpu:1 \(pid {peer.pid}\): killed by signal 9"
    with pytest.raises(LostPeer, match=message):
        prepared.run(FOREVER, Noise(), 0)
    killer.join()
    with pytest.raises(LostPeer, match=message):
        prepared.run(32, Noise(), 0)
    prepared.close()
    again = executor.prepare(IRIW, CONFIGS["two_processes"])
    assert sum(again.run(32, Noise(), 0).values()) == 32
    again.close()
    executor.close()


def test_a_second_process_that_never_starts_is_said_to_be_lost(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LostPeer, match=r"lost the process \(pid \d+\): exit 1"):
        NativeExecutor().prepare(IRIW, CONFIGS["two_processes"])


def test_the_second_process_is_in_no_network() -> None:
    """What nobody outside can connect to needs no key."""
    executor = NativeExecutor()
    prepared = executor.prepare(IRIW, CONFIGS["two_processes"])
    prepared.run(32, Noise(), 0)
    peer = executor.peer
    assert peer is not None
    assert not psutil.Process(peer.pid).net_connections("inet")
    prepared.close()
    executor.close()


def test_the_second_process_ends_with_the_first() -> None:
    """A killed executor process leaves no second process behind."""
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from native.test_native_devices import *\n"
        "executor = NativeExecutor()\n"
        "prepared = executor.prepare(IRIW, CONFIGS['two_processes'])\n"
        "prepared.run(32, Noise(), 0)\n"
        "print(executor.peer.pid, flush=True)\n"
        "prepared.run(FOREVER, Noise(), 0)\n"
    )
    first = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    second = int(first.stdout.readline())
    pidfd = os.pidfd_open(second)
    first.kill()
    first.wait()
    first.stdout.close()
    ready, _, _ = select.select([pidfd], [], [], 60)
    os.close(pidfd)
    assert ready, "the second process goes on"
