"""Ctrl-C and missing frameworks, tested in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from litmusfuzz.corpus.textfile import load

if TYPE_CHECKING:
    from pathlib import Path

# A shell's background jobs ignore Ctrl-C, and hand that down to us. Not `preexec_fn`, which
# forks this process: JAX, if another test has imported it here, warns of each fork.
HEEDS_CTRL_C = (
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
    " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_run_with_all_that_was_found(tmp_path: Path, sent: signal.Signals) -> None:
    arguments = ["run", "--executors", "mutant/stale-reads", "--time", "10m", "--seed", "1"]
    process = subprocess.Popen(
        [*HEEDS_CTRL_C, "-P", "-m", "litmusfuzz", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("finding:"):
            break
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) == 4  # two fork servers, each with a worker
    process.send_signal(sent)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "(interrupted)" in rest
    assert "Traceback" not in errors
    kept = list((tmp_path / "findings" / "run-1" / "findings").glob("*.yaml"))
    assert kept
    assert all(load(path).finding is not None for path in kept)
    psutil.wait_procs(workers, 10)  # a worker that ends after its server is an orphan first
    assert not any(worker.is_running() for worker in workers)


def test_a_missing_framework_is_said_in_one_line(tmp_path: Path) -> None:
    """A `tensorflow` that cannot be imported stands before the installed one."""
    shadow = tmp_path / "tensorflow"
    shadow.mkdir()
    (shadow / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'tensorflow'\", name='tensorflow')\n"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", "run", "--time", "60s", "--executors", "tf"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("litmusfuzz: tf: tensorflow is not installed")


def test_ctrl_c_while_the_command_line_is_imported_prints_no_traceback() -> None:
    """The signal is sent from within an import, so that it always comes there."""
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'litmusfuzz.fuzz.cli.minimize':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        # A shell's background jobs ignore Ctrl-C, and hand that down to us.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from litmusfuzz.__main__ import run_command\n"
        "sys.argv = ['litmusfuzz', '--version']\n"
        "run_command()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "litmusfuzz: interrupted\n")
