"""Ctrl-C and missing frameworks, tested in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers import PATIENCE_S

from litmusfuzz.corpus.textfile import load

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

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
    rest, errors = process.communicate()
    assert process.returncode == 1
    assert re.search(r"\(interrupted after \d+ of 600 s\)", rest)
    assert "Traceback" not in errors
    kept = list((tmp_path / "findings" / "run-1" / "findings").glob("*.yaml"))
    assert kept
    assert all(load(path).finding is not None for path in kept)
    psutil.wait_procs(workers, PATIENCE_S)  # a worker that ends after its server is an orphan first
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
        check=False,
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("litmusfuzz: tf: tensorflow is not installed")


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_a_signal_while_the_command_line_is_imported_prints_no_traceback(sent: str) -> None:
    """The signal is sent from within an import, so that it always comes there."""
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'litmusfuzz.fuzz.cli.minimize':\n"
        f"            os.kill(os.getpid(), signal.{sent})\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        # A shell's background jobs ignore Ctrl-C, and hand that down to us.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from litmusfuzz.__main__ import run_command\n"
        "sys.argv = ['litmusfuzz', '--version']\n"
        "run_command()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "litmusfuzz: interrupted\n")


TAKES_TERMINAL = (
    sys.executable,
    "-c",
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " signal.signal(signal.SIGHUP, signal.SIG_DFL);"  # under nohup, the tests ignore it
    " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
)


def test_a_closed_terminal_ends_the_run_with_its_report(tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and nothing can be written to the terminal any more."""
    ours, theirs = os.openpty()
    arguments = ("run", "--executors", "native", "--time", "10m", "--out", "c")
    process = subprocess.Popen(
        [*TAKES_TERMINAL, "-P", "-m", "litmusfuzz", *arguments],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    while not re.search(rb"[1-9]\d* graphs ", os.read(ours, 1 << 16)):
        pass
    os.close(ours)
    assert process.wait() == 3
    assert json.loads((tmp_path / "c/report.json").read_text())["interrupted"]


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "2>&-", ">&-"])
def test_closed_standard_streams_are_those_of_nobody(tmp_path: Path, closed: str) -> None:
    """Otherwise a file that is opened next has their numbers, and what is printed goes into it."""
    asked = ("oracle", "SB", "--outcome", "r0=0,r1=0")
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-P", "-m", "litmusfuzz", *asked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_reports_agree_where_one_cannot_be_written(
    tmp_path: Path, litmusfuzz_here: Command
) -> None:
    """The exit code of the command is that of each report that is there."""
    (tmp_path / "c/report.html").mkdir(parents=True)
    done = litmusfuzz_here("run", "--executors", "native", "--tests", "1", "--out", "c")
    assert done.returncode == 2
    assert done.stderr == "litmusfuzz: c/report.html: Is a directory\n"
    report = json.loads((tmp_path / "c/report.json").read_text())
    assert (report["exit_code"], report["problem"]) == (2, "c/report.html: Is a directory")
    assert "exit_code        : 2\n" in (tmp_path / "c/stats").read_text()
    assert 'errors="1"' in (tmp_path / "c/junit.xml").read_text()
    assert "broken" in (tmp_path / "c/summary.md").read_text()
