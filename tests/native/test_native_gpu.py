"""Tests with a host and a GPU show exactly the allowed outcomes.

Each test runs on an emulated GPU, and on a real one; the skip of the latter says what is
missing.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, share_of
from native.generated import generate_test
from native.helpers_native import CONFIGS, CONTROLLED, all_outcomes
from native.neuron import neuron as neuron_on
from native.neuron import training
from native.test_native_engines import compiled

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.fuzz.executors.native import _executor, gpus
from litmusfuzz.fuzz.executors.native.executor import (
    WITH_GPU,
    NativeExecutor,
    PreparedTest,
    controlled_config,
    on_devices,
)
from litmusfuzz.fuzz.executors.native.gpus import Gpus
from litmusfuzz.fuzz.executors.protocol import Noise, Refused, Unavailable
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.events import strictnesses
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config

ROOT = Path(__file__).parents[2]
LIMIT = 20_000
"""Executions for each test and strictness, as in test_native_exhaustive.py."""
MP = litmus("X=1; Y=2 || r0=Y; r1=X")


@pytest.fixture(params=["emulated", "real"])
def kind(request) -> str:
    """Return the kind of GPU by the setting's name."""
    if request.param == "real":
        lacking = Gpus().lacks("gpu:0")
        if lacking:
            pytest.skip(lacking)
    return str(request.param)


def controlled(kind: str, devices: Sequence[str]) -> Config:
    """Return a controlled configuration."""
    config = controlled_config("", "random", split_updates=True)
    return on_devices(config, "it", devices=devices, gpus=kind)


def threaded(kind: str) -> Config:
    """Return a configuration with an engine for each device."""
    return CONFIGS["gpu" if kind == "real" else "emulated_gpu"]


@pytest.mark.parametrize("devices", [WITH_GPU, ("gpu:0",), ("gpu:0", "gpu:1")], ids=" ".join)
def test_all_executions_show_exactly_the_allowed_set(kind: str, devices) -> None:
    """The whole corpus on host and GPU; half of it on a GPU only, the other half on two.

    Where the GPU is emulated, ``make test`` takes a third of each.
    """
    for device in devices:
        if lacking := Gpus(kind == "emulated").lacks(device):
            pytest.skip(lacking)
    files = {WITH_GPU: LITMUS, ("gpu:0",): LITMUS[::2], ("gpu:0", "gpu:1"): LITMUS[1::2]}
    for path in files[devices] if kind == "real" else share_of(files[devices], 3):
        test = corpus_entry(path).test
        if test.clusters:
            continue
        found = all_outcomes(test, RFC, LIMIT, controlled(kind, devices))
        assert found is not None, f"{path.stem}: more than {LIMIT} executions"
        assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses), path.stem


@pytest.mark.parametrize(
    ("part", "noise"),
    [(0, Noise()), (1, Noise(transfer_delay_us_max=100)), (2, Noise(lanes=64))],
)
def test_every_outcome_of_real_threads_is_allowed(kind: str, part: int, noise: Noise) -> None:
    """A third of the corpus with each noise; a third of that in ``make test``."""
    for path in share_of(LITMUS[part::3], 3):
        test = corpus_entry(path).test
        if test.clusters:
            continue
        prepared = PreparedTest(test, threaded(kind))
        seen = prepared.run(64, noise, seed=3)
        prepared.close()
        assert sum(seen.values()) == 64
        judge = Explorer(test, RFC)
        for outcome in seen:
            verdict = judge.judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (path.stem, str(outcome))


def test_generated_tests(kind: str) -> None:
    """Exhaustive execution gives the allowed set; threads stay inside it."""
    compared = 0
    for seed in range(60):
        test = generate_test(seed, effects=5)
        if test is None or len(list(islice(strictnesses(test, RFC), 33))) > 32:
            continue
        found = all_outcomes(test, RFC, 2_000, controlled(kind, WITH_GPU))
        if found is not None:
            assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses), seed
            compared += 1
        prepared = PreparedTest(test, threaded(kind))
        seen = prepared.run(64, Noise(transfer_delay_us_max=60), seed)
        prepared.close()
        judge = Explorer(test, RFC)
        for outcome in seen:
            verdict = judge.judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (seed, str(outcome))
    assert compared >= 30


@pytest.mark.parametrize("workers", [None, WITH_GPU])
def test_the_neuron_trains_to_the_same_weights(kind: str, workers) -> None:
    (expected,) = explorer.allowed_outcomes(neuron_on(None), RFC).witnesses
    prepared = PreparedTest(neuron_on(workers), threaded(kind))
    for delay_us in (0, 300):
        seen = prepared.run(64, Noise(copies=8, transfer_delay_us_max=delay_us), seed=1)
        assert seen == {expected: 64}
    prepared.close()
    assert expected.status is Status.COMPLETED
    assert (expected.plain["w"], expected.plain["b"]) == training()[1]


def test_executions_are_recorded_and_replayed(kind: str) -> None:
    prepared = PreparedTest(MP, controlled(kind, WITH_GPU))
    for seed in range(20):
        outcome, choices = prepared.record(seed)
        assert {prepared.replay(choices) for _ in range(20)} == {outcome}


def test_a_test_on_a_gpu_keeps_the_guarantee_of_its_configuration(kind: str) -> None:
    """Under `executor` an update is indivisible: both increments count."""
    test = litmus("X+=1 || X+=1 || r0=X")
    (x,) = test.variables
    test = replace(test, variables=(replace(x, device="gpu:0"),))
    config = CONTROLLED[EXECUTOR]
    config = replace(config, settings=(*config.settings, ("gpus", kind)))
    found = all_outcomes(test, EXECUTOR, LIMIT, config)
    assert found is not None
    assert found[0] == set(explorer.allowed_outcomes(test, EXECUTOR).witnesses)
    assert {outcome.plain["X"] for outcome in found[0]} == {2}


def test_the_kernels_of_a_real_gpu_are_those_of_the_host(tmp_path: Path) -> None:
    """Compares bit by bit; ``make sanitize`` does the same for the emulated GPU."""
    lacking = Gpus().lacks("gpu:0")
    if lacking:
        pytest.skip(lacking)
    core = ROOT / "fuzz/native/core"
    sources = [each for each in core.rglob("*.cpp") if "mutants" not in each.parts]
    program = compiled(
        tmp_path / "gpu",
        f"-I{core}",
        f"-I{ROOT / 'tests/native'}",
        ROOT / "tests/native/gpu_under_sanitizers.cpp",
        *sources,
        "-ldl",
    )
    done = subprocess.run([program, Gpus.library()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


# --- what is missing is said -------------------------------------------------------


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What is asked of GPUs is not remembered, neither before nor after."""
    gpus._missing.cache_clear()
    yield
    gpus._missing.cache_clear()


def on_gpu(number: int) -> LitmusTest:
    variables = tuple(replace(each, device=f"gpu:{number}") for each in MP.variables)
    return replace(MP, variables=variables)


@pytest.mark.usefixtures("forgetful")
def test_a_build_without_a_toolkit_says_so(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    message = r"^device gpu:0 \(no CUDA toolkit when this was built\)$"
    with pytest.raises(Refused, match=message):
        PreparedTest(on_gpu(0), CONFIGS["plain"])
    with pytest.raises(Unavailable, match=message):
        NativeExecutor().check(CONFIGS["gpu"])
    NativeExecutor().check(CONFIGS["emulated_gpu"])


def test_a_machine_without_such_a_gpu_says_so() -> None:
    if Gpus.library() is None:
        pytest.skip("no CUDA toolkit when this was built")
    with pytest.raises(Refused, match=r"^device gpu:999 \(no GPU: .+\)$") as refusal:
        PreparedTest(on_gpu(999), CONFIGS["plain"])
    assert "\n" not in str(refusal.value)


def test_two_processes_have_no_gpu(native) -> None:
    with pytest.raises(Refused, match=r"^device gpu:0 \(not in two processes\)$"):
        native.prepare(on_gpu(0), CONFIGS["two_processes"])


def test_a_plug_in_of_another_interface_is_refused(tmp_path: Path) -> None:
    code = tmp_path / "old.cpp"
    code.write_text('extern "C" unsigned litmusfuzz_gpu_interface() { return 99; }\n')
    old = compiled(tmp_path / "old.so", "-shared", "-fPIC", code)
    code.write_text("int nothing;\n")
    other = compiled(tmp_path / "other.so", "-shared", "-fPIC", code)
    for library, message in (
        (old, r"old\.so was built with GPU interface 99; this is 1$"),
        (other, r"other\.so has no litmusfuzz_gpu_interface$"),
        (tmp_path / "none.so", r"none\.so: cannot open"),
    ):
        with pytest.raises(RuntimeError, match=message):
            _executor.cuda_gpu(str(library), 0)
