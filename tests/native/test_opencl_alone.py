"""The tests of OpenCL devices, in processes that do not load TensorFlow.

OpenCL is not used beside TensorFlow (`fuzz.executors.native.accelerators`), which other tests load:
in their processes, the tests that are run here are skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = (
    "native/test_native_gpu.py",
    "native/test_native_opencl.py",
    "native/test_work_items.py",
    "kills/test_opencl_mutants.py",
)
NIGHTLY = "runs in `make nightly`"
HAS_OPENCL = (
    "from litmusfuzz.fuzz.executors.native.accelerators import Accelerators\n"
    "print(Accelerators().lacks('opencl:0'))\n"
)


@pytest.fixture(scope="module", autouse=True)
def opencl() -> None:
    """Skips where there is no OpenCL device."""
    asked = subprocess.run(
        [sys.executable, "-c", HAS_OPENCL], check=True, capture_output=True, text=True
    )
    if why := asked.stdout.strip():
        pytest.skip(why)


@pytest.mark.parametrize("file", FILES)
def test_all_pass_and_none_is_skipped_here(file: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qrs",
        "-p",
        "no:xdist",
        "-k",
        "opencl or work_items",
        file,
    ]
    # The options of whoever runs this test may change the summary that is read below.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    lines = done.stdout.strip().splitlines()
    assert re.match(r"[1-9]\d* passed", lines[-1]), lines[-1]
    skipped = [line for line in lines if line.startswith("SKIPPED")]
    assert all(line.endswith(NIGHTLY) for line in skipped), skipped


def test_opencl_is_refused_beside_tensorflow() -> None:
    """Where it crashed the process."""
    code = f"import tensorflow\n{HAS_OPENCL}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "OpenCL is not used in a process that has loaded TensorFlow"
