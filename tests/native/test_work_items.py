"""Litmus tests whose chains are work-items of an OpenCL device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, compiled, corpus_entry, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.commands import doctor
from litmusfuzz.fuzz.executors.native.accelerators import Accelerators, library
from litmusfuzz.fuzz.executors.native.driver_process import devices_apart
from litmusfuzz.fuzz.executors.native.work_items import ORDERS, WorkItems, race, work_items
from litmusfuzz.fuzz.executors.protocol import Histogram, Refused, Unavailable
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPES = {
    "SB": "X=1; r0=Y || Y=1; r1=X",
    "MP": "X=1; Y=2 || r0=Y; r1=X",
    "LB": "r0=X; Y=1 || r1=Y; X=1",
    "R": "X=1; Y=1 || Y=2; r0=X",
    "S": "X=2; Y=1 || r0=Y; X=1",
    "2+2W": "X=1; Y=2 || Y=1; X=2",
    "IRIW": "X=1 || Y=1 || r0=X; r1=Y || r2=Y; r3=X",
    "increments": "X+=1; r0=X || X+=2; r1=X",
    "WRC": "X=1 || r0=X; Y=1 || r1=Y; r2=X",
}


@pytest.fixture
def opencl() -> None:
    """Skips where there is no OpenCL device."""
    if why := Accelerators().lacks("opencl:0"):
        pytest.skip(why)


def raced(made: WorkItems, count: int) -> Histogram:
    """What so many executions in this process show."""
    return made.histogram(race(**made.request(count, seed=1)))


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize(("shape", "kernels"), [(s, 1 + n % 2) for n, s in enumerate(SHAPES)])
def test_what_opencl_guarantees(shape: str, kernels: int) -> None:
    test = litmus(SHAPES[shape])
    allowed = set(explorer.allowed_outcomes(test, EXECUTOR).witnesses)
    for order in ("seq_cst", "fences", "relaxed"):
        made = work_items(test, order, kernels)
        assert made.guaranteed == (
            order == "seq_cst" or (order == "fences" and shape not in ("IRIW", "WRC"))
        )
        seen = raced(made, 3000)
        assert sum(seen.values()) >= 3000
        if made.guaranteed:
            assert set(seen) <= allowed, order
        for outcome in seen:  # never a value that nobody wrote, nor a lost increment
            if shape == "increments":
                assert outcome in allowed


@pytest.mark.usefixtures("opencl")
@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_alone_has_one_outcome(order: str) -> None:
    """With any order, and all ops: a work-item sees what it wrote."""
    test = litmus("X=7; X+=2; r0=X; X-=4; Y=r0-3; r1=Y; Z=r1+r0; r2=Z; r3=X")
    (expected,) = explorer.allowed_outcomes(test, EXECUTOR).witnesses
    assert set(raced(work_items(test, order, 1), 100)) == {expected}


@pytest.mark.usefixtures("opencl")
def test_tests_of_the_corpus() -> None:
    """Those that are chains of scalars, with `seq_cst`; ``make test`` takes a share."""
    ran = 0
    for path in share_of(LITMUS, 24):
        test = corpus_entry(path).test
        try:
            made = work_items(test, "seq_cst", 1)
        except Refused:
            continue
        judge = Explorer(test, EXECUTOR)
        for outcome in raced(made, 256):
            assert judge.judge(outcome) is Verdict.ALLOWED, (path.stem, str(outcome))
        ran += 1
    assert ran


@pytest.mark.parametrize(
    ("program", "given", "why"),
    [
        ("Q!1; r0=Q?", {"queues": {"Q": 1}}, "queues, mutexes or clusters"),
        ("X=1 || r0=X", {"shape": (2,)}, r"variable X of int32\[2\]; only int32 scalars"),
        ("X=1 || r0=X", {"dtype": "float32"}, r"variable X of float32\[\]; only int32 scalars"),
        ("loop 2 { X+=1 }", {}, r"op \w+"),
        ("X=1 ||| r0=X", {"client": "a:g0; b:g1"}, "anything but one run of one whole graph"),
    ],
)
def test_what_work_items_cannot_do_is_refused(program: str, given, why: str) -> None:
    with pytest.raises(Refused, match=f"^{why}$"):
        work_items(litmus(program, **given), "seq_cst", 1)


def test_a_variable_without_a_value_is_refused() -> None:
    test = corpus_entry(next(p for p in LITMUS if p.stem == "uninitialized-ordered")).test
    with pytest.raises(Refused, match=r"^variable \w+ without an initial value$"):
        work_items(test, "seq_cst", 1)


def test_two_kernels_need_two_chains() -> None:
    with pytest.raises(Refused, match=r"^two kernels for one chain$"):
        work_items(litmus("X=1; r0=X"), "seq_cst", 2)


def test_fences_stand_between_accesses_only() -> None:
    source = work_items(litmus("X=1; r0=Y; r1=X || Y=1"), "fences", 1).source
    assert source.count("atomic_work_item_fence") == 2
    assert "memory_order_relaxed" in source
    assert "memory_order_seq_cst, DEVICE" not in source


@pytest.mark.usefixtures("opencl")
def test_the_command_counts_and_judges(litmusfuzz_here) -> None:
    done = litmusfuzz_here("device", "SB", "--executions", "5000", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["guaranteed"]
    assert report["beyond"] == 0
    assert sum(row["count"] for row in report["outcomes"]) >= 5000
    done = litmusfuzz_here("device", "SB", "--order", "relaxed", "--executions", "5000")
    assert done.returncode == 0, done.stderr
    assert "not sequentially consistent (not judged: OpenCL guarantees less here)" in done.stdout


@pytest.fixture
def broken_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replaces the OpenCL drivers of this machine by one that runs such C when it is loaded."""
    if library("opencl") is None:
        pytest.skip("no OpenCL headers when this was built")

    def install(body: str) -> None:
        code = tmp_path / "driver.cpp"
        code.write_text(
            "#include <cstdlib>\n#include <unistd.h>\n"
            f"__attribute__((constructor)) static void load() {{ {body} }}\n"
        )
        driver = compiled(tmp_path / "libdriver.so", "-shared", "-fPIC", code)
        (tmp_path / "vendors").mkdir(exist_ok=True)
        (tmp_path / "vendors" / "only.icd").write_text(f"{driver}\n")
        monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "vendors"))

    return install


def test_a_driver_that_crashes_ends_the_command_with_one_line(
    broken_driver: Callable[[str], None], litmusfuzz_here
) -> None:
    broken_driver("abort();")
    done = litmusfuzz_here("device", "SB")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("device opencl:0 (its driver ended the process: signal 6)")
    checks = {check.what: check for check in doctor._opencl()}
    assert not checks["OpenCL"].good
    assert "signal 6" in checks["OpenCL"].says


def test_a_driver_that_hangs_is_given_up(broken_driver: Callable[[str], None]) -> None:
    broken_driver("for (;;) pause();")
    with pytest.raises(Unavailable, match=r"^its driver has not answered for 0\.5 s$"):
        devices_apart(silence_s=0.5)


def test_the_command_refuses_in_one_line(litmusfuzz_here) -> None:
    done = litmusfuzz_here("device", "backpressure-blocked")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "work-items do not take queues" in done.stderr
