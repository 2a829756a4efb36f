"""The engines as such, by a C++ program that knows no graph; and one that a user brings."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from corpus.builder import litmus
from corpus.outcome import Verdict
from fuzz.executors.native.executor import PreparedTest, engine_config
from fuzz.executors.protocol import Noise
from oracles.explorer import Explorer
from oracles.model import EXECUTOR

ROOT = Path(__file__).parents[2]
CORE = ROOT / "fuzz/native/core"
INCLUDE = f"-I{ROOT / 'fuzz/native/include'}"


def compiled(output: Path, *arguments: str | Path) -> Path:
    """Built by the compiler that built us."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", INCLUDE]
    subprocess.run([*compiler, *flags, *arguments, "-o", output], check=True, timeout=200)
    return output


# One test, so that one worker builds the programs once.
def test_every_engine_does_what_an_engine_must(tmp_path: Path) -> None:
    sources = [ROOT / "tests/native/engine_conformance.cpp", *(CORE / "engines").glob("*.cpp")]
    program = compiled(tmp_path / "engine_conformance", f"-I{CORE}", *sources, "-ldl")
    example = ROOT / "tests/native/example_engine.cpp"
    theirs = compiled(tmp_path / "newest.so", "-shared", "-fPIC", example)
    for engine, threads in (
        ("inline", 1),
        *((engine, threads) for engine in ("pool", "fifo", "stealing", "gang") for threads in (1, 2, 4)),
        (str(theirs), 1),
    ):
        done = subprocess.run(
            [program, engine, str(threads)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (engine, threads, done.stderr)
        assert done.stdout == "ok\n"
    run_a_test_on(theirs)


def run_a_test_on(engine: Path) -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    config = engine_config("newest", str(engine), 1, split_updates=False)
    seen = PreparedTest(test, config).run(1000, Noise(), 0)
    assert sum(seen.values()) == 1024
    judge = Explorer(test, EXECUTOR)
    assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)


def test_what_is_no_engine_of_this_interface_is_refused_in_one_line(tmp_path: Path) -> None:
    code = tmp_path / "old.cpp"
    code.write_text('extern "C" unsigned litmusfuzz_engine_interface() { return 99; }\n')
    old = compiled(tmp_path / "old.so", "-shared", "-fPIC", code)
    code.write_text("int nothing;\n")
    other = compiled(tmp_path / "other.so", "-shared", "-fPIC", code)
    for engine, message in (
        (str(old), r"old\.so was built with engine interface 99; this is 2$"),
        (str(other), r"other\.so is no engine: it has no litmusfuzz_engine_interface$"),
        (str(tmp_path / "none.so"), "none.so: cannot open"),
        ("nobody", "no engine 'nobody'; there are inline, pool"),
    ):
        config = engine_config("theirs", engine, 1, split_updates=False)
        with pytest.raises(ValueError, match=message):
            PreparedTest(litmus("X=1"), config).run(1, Noise(), 0)
