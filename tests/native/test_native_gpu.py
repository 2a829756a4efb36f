"""Tests with a host and a GPU or OpenCL device show exactly the allowed outcomes.

Each test runs on an emulated GPU, on a real one, and on an OpenCL device with each way of using
queues; a skip says what is missing.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, compiled, corpus_entry, nightly, share_of
from native.generated import generate_test
from native.helpers_native import CONFIGS, CONTROLLED, all_outcomes
from native.neuron import neuron as neuron_on
from native.neuron import training

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.native import _executor, accelerators
from litmusfuzz.fuzz.executors.native.accelerators import (
    GATED,
    IN_ORDER,
    Accelerators,
    OpenCl,
    library,
)
from litmusfuzz.fuzz.executors.native.executor import (
    NativeExecutor,
    PreparedTest,
    controlled_config,
    on_devices,
)
from litmusfuzz.fuzz.executors.native.lowering import NOT_ON_DEVICES
from litmusfuzz.fuzz.executors.protocol import Noise, Refused, Unavailable
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, generate
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.events import strictnesses
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config

ROOT = Path(__file__).parents[2]
PLACES = ["host and device", "device", "two devices"]
LIMIT = 20_000
"""Executions for each test and strictness, as in test_native_exhaustive.py."""
MP = litmus("X=1; Y=2 || r0=Y; r1=X")


@dataclass(frozen=True)
class Kind:
    """A kind of device, and the configuration whose engines have threads."""

    device: str
    threaded: str
    gpus: str = ""
    opencl: OpenCl = IN_ORDER

    @property
    def with_host(self) -> tuple[str, str]:
        """The host and a device."""
        return ("cpu:0", f"{self.device}:0")

    def lacks(self, device: str) -> str:
        """Why a device is missing."""
        return Accelerators(self.gpus == "emulated", self.opencl).lacks(device)

    def controlled(self, devices: Sequence[str]) -> Config:
        """Return a controlled configuration."""
        config = controlled_config("", "random", split_updates=True)
        return on_devices(config, "it", devices=devices, gpus=self.gpus, opencl=self.opencl)


KINDS = {
    "emulated": Kind("gpu", "emulated_gpu", "emulated"),
    "real": Kind("gpu", "gpu", "real"),
    "opencl": Kind("opencl", "cpu_and_opencl"),
    "opencl out of order": Kind(
        "opencl", "opencl_out_of_order", opencl=OpenCl(queues=2, out_of_order=True)
    ),
    "opencl gated": Kind("opencl", "opencl_gated", opencl=GATED),
}


@pytest.fixture(params=KINDS)
def kind(request) -> Kind:
    """Return the kind of device, if this machine has one."""
    found = KINDS[request.param]
    if lacking := found.lacks(f"{found.device}:0"):
        pytest.skip(lacking)
    return found


def put(kind: Kind, where: str) -> Config:
    """Return a controlled configuration with the devices of one of `PLACES`."""
    if where == "two devices":
        kind = replace(kind, opencl=replace(kind.opencl, sub_devices=2))
    ours = {
        "host and device": kind.with_host,
        "device": kind.with_host[1:],
        "two devices": (f"{kind.device}:0", f"{kind.device}:1"),
    }[where]
    for device in ours:
        if lacking := kind.lacks(device):
            pytest.skip(lacking)
    return kind.controlled(ours)


def taken(files: Sequence[Path], config: Config) -> Iterator[tuple[str, LitmusTest]]:
    """Tests of the corpus, by name, without those that a configuration refuses, as it should."""
    for path in files:
        test = corpus_entry(path).test
        try:
            PreparedTest(test, config).close()
        except Refused as refusal:
            placed = str(refusal) in ("handles on several devices", *NOT_ON_DEVICES)
            assert placed or NativeExecutor.support.lacking(test), path.stem
        else:
            yield path.stem, test


@pytest.mark.parametrize("where", PLACES)
def test_all_executions_show_exactly_the_allowed_set(kind: Kind, where: str) -> None:
    """The whole corpus on host and device; half of it on a device only, the other half on two.

    Where the GPU is emulated, ``make test`` takes a third of each; with OpenCL, a ninth.
    """
    config = put(kind, where)
    files = {"host and device": LITMUS, "device": LITMUS[::2], "two devices": LITMUS[1::2]}[where]
    every = {"emulated": 3, "real": 1, "": 9}[kind.gpus]
    for name, test in taken(share_of(files, every), config):
        found = all_outcomes(test, RFC, LIMIT, config)
        assert found is not None, f"{name}: more than {LIMIT} executions"
        assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses), name


@pytest.mark.parametrize("where", PLACES)
def test_handles_and_variables_without_a_value(kind: Kind, where: str) -> None:
    """All tests of the corpus that have them.

    Handles are in the memory of the host; whether a variable has a value is one of the device.
    """
    config = put(kind, where)
    files = [
        path
        for path in LITMUS
        if {"handles", "uninitialized variables"} & corpus_entry(path).test.features
    ]
    compared = 0
    for name, test in taken(files, config):
        found = all_outcomes(test, RFC, LIMIT, config)
        assert found is not None, name
        assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses), name
        compared += 1
    assert compared > 9


CHOSEN = """\
litmusfuzz: 2
name: update-through-a-chosen-handle
variables:
  X: {dtype: int32, shape: [], init: 1}
  Y: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    x: {op: VarHandleOp, variable: X}
    y: {op: VarHandleOp, variable: Y}
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    ten: {op: Const, dtype: int32, shape: [], value: 10}
    r0: {op: ReadVariableOp, resources: [Y]}
    w: {op: AssignVariableOp, resources: [Y], inputs: [ten]}
    is_zero: {op: Equal, inputs: [r0, zero]}
    chosen:
      op: If
      inputs: [is_zero]
      captures: {a: x, b: y}
      results: [handle]
      then: {results: [a]}
      else: {results: [b]}
    u: {op: AssignAddVariableOp, resources: [X, Y], handle: chosen.handle, inputs: [ten]}
observe: [r0]
"""


def test_an_update_through_a_handle_changes_the_chosen_variable_only(kind: Kind) -> None:
    """Of the variables that its handle may stand for, it has the contents of one."""
    test = loads(CHOSEN).test
    config = put(kind, "device")
    found = all_outcomes(test, RFC, LIMIT, config)
    assert found is not None
    assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses)
    assert {(o.plain["X"], o.plain["Y"]) for o in found[0]} == {(11, 10), (1, 20)}


def test_tests_of_every_family(kind: Kind) -> None:
    """On the host, an emulated GPU and two devices; threads show nothing else.

    One test of each family; in ``make nightly`` forty.
    """
    other = kind.device if kind.device == "opencl" else "gpu"
    kind = replace(kind, opencl=replace(kind.opencl, sub_devices=2))
    places = ["cpu:0", "gpu:0", f"{other}:0", f"{other}:1"]
    places = list(dict.fromkeys(places))
    gpus = "real" if kind.gpus == "real" else "emulated"
    for device in places:
        if lacking := Accelerators(gpus == "emulated", kind.opencl).lacks(device):
            pytest.skip(lacking)
    walk = controlled_config("", "random", split_updates=True)
    walk = on_devices(walk, "it", devices=places, gpus=gpus, opencl=kind.opencl)
    threads = on_devices(CONFIGS["split"], "it", devices=places, gpus=gpus, opencl=kind.opencl)
    ran: Counter[str] = Counter()
    for family, index in product(FAMILIES, share_of(range(40), 40)):
        try:
            test = generate(family, 1, index, NativeExecutor.support)
            prepared = PreparedTest(test, threads)
        except NotGenerated:
            continue
        except Refused as refusal:
            assert str(refusal) in ("handles on several devices", *NOT_ON_DEVICES)  # noqa: PT017
            continue
        seen = set(prepared.run(32, Noise(copies=4), seed=index))
        prepared.close()
        allowed = explorer.allowed_outcomes(test, RFC)
        assert allowed.complete
        judge = Explorer(test, RFC)
        verdicts = {judge.judge(each) for each in seen}
        assert verdicts <= {Verdict.ALLOWED, Verdict.UNSPECIFIED}, (family, index)
        if len(list(islice(strictnesses(test, RFC), 9))) < 9:
            found = all_outcomes(test, RFC, 1_000, walk)
            assert found is None or found[0] == set(allowed.witnesses), (family, index)
            ran["exhaustively"] += found is not None
        ran["threads"] += 1
    assert ran["threads"] > 10
    assert ran["exhaustively"] > 8


@pytest.mark.parametrize(
    ("part", "noise"),
    [(0, Noise()), (1, Noise(transfer_delay_us_max=100)), (2, Noise(lanes=64))],
)
def test_every_outcome_of_real_threads_is_allowed(kind: Kind, part: int, noise: Noise) -> None:
    """A third of the corpus with each noise; a third or ninth of that in ``make test``."""
    config = CONFIGS[kind.threaded]
    for name, test in taken(share_of(LITMUS[part::3], 3 if kind.gpus else 9), config):
        prepared = PreparedTest(test, config)
        seen = prepared.run(64, noise, seed=3)
        prepared.close()
        assert sum(seen.values()) == 64
        judge = Explorer(test, RFC)
        for outcome in seen:
            verdict = judge.judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (name, str(outcome))


def test_generated_tests(kind: Kind) -> None:
    """Exhaustive execution gives the allowed set; threads stay inside it.

    A thousand tests, of 1,500 seeds; ``make test`` takes a share.
    """
    compared = 0
    seeds = share_of(range(1500), 24 if kind.gpus else 100)
    for seed in seeds:
        test = generate_test(seed, effects=5)
        if test is None or len(list(islice(strictnesses(test, RFC), 33))) > 32:
            continue
        found = all_outcomes(test, RFC, 2_000, kind.controlled(kind.with_host))
        if found is not None:
            assert found[0] == set(explorer.allowed_outcomes(test, RFC).witnesses), seed
            compared += 1
        prepared = PreparedTest(test, CONFIGS[kind.threaded])
        seen = prepared.run(64, Noise(transfer_delay_us_max=60), seed)
        prepared.close()
        judge = Explorer(test, RFC)
        for outcome in seen:
            verdict = judge.judge(outcome)
            assert verdict in (Verdict.ALLOWED, Verdict.UNSPECIFIED), (seed, str(outcome))
    assert compared >= (1000 if len(seeds) == 1500 else len(seeds) // 3)


@pytest.mark.parametrize("placed", [False, True])
def test_the_neuron_trains_to_the_same_weights(kind: Kind, *, placed: bool) -> None:
    """On the host and the device, as the test or the placement says, and on the device alone."""
    (expected,) = explorer.allowed_outcomes(neuron_on(None), RFC).witnesses
    prepared = PreparedTest(neuron_on(kind.with_host if placed else None), CONFIGS[kind.threaded])
    for delay_us in (0, 300):
        seen = prepared.run(64, Noise(copies=8, transfer_delay_us_max=delay_us), seed=1)
        assert seen == {expected: 64}
    prepared.close()
    if not placed:
        alone = on_devices(
            CONFIGS["split"], "it", devices=kind.with_host[1:], gpus=kind.gpus, opencl=kind.opencl
        )
        prepared = PreparedTest(neuron_on(None), alone)
        assert prepared.run(64, Noise(copies=8), seed=1) == {expected: 64}
        prepared.close()
    assert expected.status is Status.COMPLETED
    assert (expected.plain["w"], expected.plain["b"]) == training()[1]


def test_executions_are_recorded_and_replayed(kind: Kind) -> None:
    prepared = PreparedTest(MP, kind.controlled(kind.with_host))
    for seed in range(20):
        outcome, choices = prepared.record(seed)
        assert {prepared.replay(choices) for _ in range(20)} == {outcome}


def test_a_test_on_a_device_keeps_the_guarantee_of_its_configuration(kind: Kind) -> None:
    """Under `executor` an update is indivisible: both increments count."""
    test = litmus("X+=1 || X+=1 || r0=X")
    (x,) = test.variables
    test = replace(test, variables=(replace(x, device=kind.with_host[1]),))
    config = CONTROLLED[EXECUTOR]
    more = [("gpus", kind.gpus)] if kind.gpus else kind.opencl.settings
    config = replace(config, settings=(*config.settings, *more))
    found = all_outcomes(test, EXECUTOR, LIMIT, config)
    assert found is not None
    assert found[0] == set(explorer.allowed_outcomes(test, EXECUTOR).witnesses)
    assert {outcome.plain["X"] for outcome in found[0]} == {2}


@pytest.mark.parametrize("kind", ["real", "opencl"], indirect=True)
def test_the_kernels_of_a_device_are_those_of_the_host(kind: Kind) -> None:
    """Bit by bit, for all ops, operand types and widths; the last in several groups of threads.

    ``make sanitize`` does the same for the emulated GPU.
    """
    accelerator = Accelerators(kind.gpus == "emulated", kind.opencl)
    (gpu,) = accelerator.backends(kind.with_host[1:])
    assert gpu is not None
    assert gpu.kernel_differences((1, 6, 300)) == []


@nightly
@pytest.mark.parametrize("plug_in", ["cuda", "opencl"])
def test_a_real_device_passes_the_tests_of_the_emulated_one(tmp_path: Path, plug_in: str) -> None:
    """Half a minute of compiling."""
    lacking = Accelerators().lacks("gpu:0" if plug_in == "cuda" else "opencl:0")
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
    done = subprocess.run([program, library(plug_in)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


# --- what is missing is said -------------------------------------------------------


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What is asked of GPUs is not remembered, neither before nor after."""
    accelerators._missing_gpu.cache_clear()
    yield
    accelerators._missing_gpu.cache_clear()


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
    if library("cuda") is None:
        pytest.skip("no CUDA toolkit when this was built")
    with pytest.raises(Refused, match=r"^device gpu:999 \(no device: .+\)$") as refusal:
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
    for plug_in, message in (
        (old, r"old\.so was built with GPU interface 99; this is 2$"),
        (other, r"other\.so has no litmusfuzz_gpu_interface$"),
        (tmp_path / "none.so", r"none\.so: cannot open"),
    ):
        with pytest.raises(RuntimeError, match=message):
            _executor.plugin_gpu(str(plug_in))
