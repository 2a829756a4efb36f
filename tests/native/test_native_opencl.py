"""OpenCL devices: choice, leaks and faults. ``test_native_gpu.py`` has what they compute."""

from __future__ import annotations

import gc
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers import nightly
from native.helpers_native import CONFIGS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.executors.native import accelerators
from litmusfuzz.fuzz.executors.native.accelerators import (
    IN_ORDER,
    Accelerators,
    OpenCl,
    opencl_devices,
)
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.mutants import _mutants
from litmusfuzz.fuzz.mutants.native import PreparedMutant

if TYPE_CHECKING:
    from collections.abc import Iterator

SB = litmus("X=1; r0=Y || Y=1; r1=X || X+=1; r2=X")
WAYS = ("opencl", "opencl_out_of_order", "opencl_gated")


@pytest.fixture
def opencl() -> None:
    """Skips where there is no OpenCL device."""
    if why := Accelerators().lacks("opencl:0"):
        pytest.skip(why)


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("config", WAYS)
def test_a_thousand_executions_leak_nothing(config: str) -> None:
    """Buffers and events are as many as before, and the process's memory is about the same.

    An event in pocl has more than 500 bytes, and an execution some twenty commands.
    """
    gc.collect()
    prepared = PreparedTest(SB, CONFIGS[config])
    (gpu,) = prepared._backends[1]
    process = psutil.Process()
    prepared.run(200, Noise(copies=1), 0)
    buffers, _ = gpu.usage()
    memory = process.memory_info().rss
    prepared.run(1000, Noise(copies=1), 1)
    grown = process.memory_info().rss - memory
    after, events = gpu.usage()
    assert after == buffers
    assert events <= 40 * buffers  # each remembers the last that read or wrote it
    assert grown < 4 << 20
    prepared.close()


@pytest.mark.usefixtures("opencl")
def test_a_device_that_is_closed_holds_nothing() -> None:
    gc.collect()
    watching = OpenCl().open(_mutants, 0)
    before = watching.usage()
    for seed in range(10):
        prepared = PreparedMutant(SB, CONFIGS["opencl_gated"], "")
        prepared.run(8, Noise(copies=4, lanes=16), seed)
        prepared.close()
        del prepared
    gc.collect()
    assert watching.usage() == before


@nightly
@pytest.mark.usefixtures("opencl")
def test_threads_read_one_value_at_once() -> None:
    """By maps and by copies, from queues that are out of order.

    Two maps of a value may have one address, and pocl's unmap of it ended the wrong one: a process
    that had two open at once crashed in one of 12,000 executions. A miss has
    (1 - 1/12,000)**200,000 < 1e-7.
    """
    test = litmus("r0=X; Y=r0 || r1=X; Z=r1 || X=1")
    homes = {"X": "opencl:0", "Y": "cpu:0", "Z": "cpu:0"}
    test = replace(
        test, variables=tuple(replace(each, device=homes[each.name]) for each in test.variables)
    )
    job = Job(test, 200_000, Noise(copies=64))
    worker = Worker("native")
    reply = worker.ask(job.request(CONFIGS["opencl_out_of_order"]), 200.0, test)
    worker.close()
    assert not isinstance(reply, Died), reply.message
    assert sum(row.count for row in reply.rows) >= 200_000


@pytest.mark.usefixtures("opencl")
def test_a_reply_has_the_drivers_of_the_devices_that_the_test_ran_on() -> None:
    """Those of the configuration, and those that the test names."""
    (first, *_), (part, *_) = opencl_devices(), opencl_devices(sub_devices=2)
    assert ", driver " in first
    placed = replace(SB, variables=tuple(replace(each, device="opencl:0") for each in SB.variables))
    worker = Worker("native")
    for test, config, expected in (
        (SB, "opencl_gated", {"opencl:0": first}),
        (SB, "two_opencl", {"opencl:0": part}),
        (placed, "split", {"opencl:0": first}),
        (SB, "emulated_gpu", {}),
        (SB, "split", {}),
    ):
        reply = worker.ask(Job(test, 1, Noise()).request(CONFIGS[config]), 60.0, test)
        assert not isinstance(reply, Died)
        assert {k: v for k, v in reply.drivers.items() if k != "opencl:1"} == expected, config
    worker.close()


# --- faults ------------------------------------------------------------------------


@pytest.mark.usefixtures("opencl")
def test_a_test_that_needs_too_much_memory_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next test runs in another process.

    In the same one, one in ten ended in pocl ("cannot allocate memory for thread-local data"),
    crashed or never returned: of what the test has used, not all is given back.
    """
    # The stacks of pocl's threads are in these 400 MiB too: as many here as on two cores. With
    # nothing in its cache, pocl needs 255 MiB to compile.
    monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", "2")
    config = CONFIGS["opencl_gated"]
    large = Job(SB, 1024, Noise(copies=1024, lanes=1 << 16)).request(config)
    small = Job(SB, 4, Noise(copies=4)).request(config)
    worker = Worker("native", memory_bytes=400 << 20)
    first, second, third = (worker.ask(each, 60.0, SB) for each in (small, large, small))
    worker.close()
    for reply in (first, third):
        assert not isinstance(reply, Died)
        assert sum(row.count for row in reply.rows) == 4
    assert not isinstance(second, Died)
    assert second.refused.startswith("so much memory (")
    assert worker.starts == 2


@pytest.mark.usefixtures("opencl")
def test_a_lost_device_loses_one_test() -> None:
    """A command fails in the driver, and all that wait for it; the next device works."""
    config = CONFIGS["opencl_gated"]
    lost = PreparedMutant(SB, config, "lost device")
    with pytest.raises(RuntimeError, match=r"^OpenCL: a command failed: CL_\w+$"):
        lost.run(1000, Noise(copies=4), 1)
    lost.close()
    del lost
    prepared = PreparedTest(SB, config)
    assert sum(prepared.run(8, Noise(copies=4), 1).values()) == 8
    prepared.close()


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What is asked of devices is not remembered, neither before nor after."""
    accelerators._missing_opencl.cache_clear()
    yield
    accelerators._missing_opencl.cache_clear()


def lacking(**settings) -> str:
    return Accelerators(opencl=OpenCl(**settings), module=_mutants).lacks("opencl:0")


@pytest.mark.usefixtures("opencl")
def test_kernels_that_do_not_compile_are_one_line() -> None:
    why = lacking(defect="broken source")
    assert why.startswith("no device: OpenCL: the kernels do not compile: ")
    assert "error" in why
    assert "\n" not in why


@pytest.mark.usefixtures("opencl")
def test_a_device_with_other_kernels_is_not_used() -> None:
    """Fused, a product is not rounded before it is added."""
    why = lacking(defect="contraction")
    fuses = platform.machine() != "x86_64" or " fma " in Path("/proc/cpuinfo").read_text()
    if not why and not fuses:
        pytest.skip("this CPU cannot fuse")
    assert why.startswith("its kernels differ from the host's: ApplyMomentum of float32["), why
    assert lacking() == ""


@pytest.mark.usefixtures("forgetful")
def test_a_build_without_opencl_says_so(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    missing = r"^device opencl:0 \(no OpenCL headers when this was built\)$"
    with pytest.raises(Unavailable, match=missing):
        NativeExecutor().check(CONFIGS["opencl"])


# --- choice ------------------------------------------------------------------------


@pytest.mark.usefixtures("opencl")
def test_devices_are_numbered_through_the_platforms() -> None:
    every = opencl_devices()
    assert every
    assert [*opencl_devices("0"), *opencl_devices("1")] == every[: len(every)]
    assert opencl_devices("no such platform") == []
    assert lacking(platform="no such platform") == "no device: number 0 of 0"
    number = len(every)
    assert Accelerators().lacks(f"opencl:{number}") == f"no device: number {number} of {number}"


@pytest.mark.usefixtures("opencl")
def test_the_parts_of_a_device_are_devices() -> None:
    whole, parts = opencl_devices(), opencl_devices(sub_devices=2)
    if len(parts) == len(whole):
        pytest.skip("no OpenCL device here can be partitioned in two")
    assert any(", part 2 of 2" in each for each in parts)
    two = OpenCl(sub_devices=2)
    assert [Accelerators(opencl=two).lacks(f"opencl:{n}") for n in (0, 1)] == ["", ""]


def test_settings_are_those_that_differ() -> None:
    assert dict(CONFIGS["opencl_gated"].settings).keys() >= {"opencl_queues", "opencl_gated"}
    for name, config in CONFIGS.items():
        read = OpenCl.of(config)
        expected = [each for each in config.settings if each[0].startswith("opencl_")]
        assert read.settings == expected, name
        assert name in ("opencl_out_of_order", "opencl_gated", "two_opencl") or read == IN_ORDER
