"""The engines as such, by a C++ program that knows no graph; see engine_conformance.cpp."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "fuzz/native/core"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """Built from the engines' sources alone; the compiler that built us is there."""
    built = tmp_path_factory.mktemp("engines") / "engine_conformance"
    sources = [ROOT / "tests/native/engine_conformance.cpp", *(CORE / "engines").glob("*.cpp")]
    includes = [f"-I{folder}" for folder in (CORE, ROOT / "fuzz/native/include")]
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run([*compiler, *flags, *includes, *sources, "-o", built], check=True, timeout=200)
    return built


# One test, so that one worker builds the program once.
def test_every_engine_does_what_an_engine_must(program: Path) -> None:
    for engine, threads in (
        ("inline", 1),
        *((engine, threads) for engine in ("pool", "fifo") for threads in (1, 2, 4)),
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
