"""Processes that are none of a campaign's are never signalled, whatever a record says."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from campaign.shards import begun
from helpers import PATIENCE_S

from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.nightly import many, pools
from litmusfuzz.fuzz.nightly.many import Nightly
from litmusfuzz.fuzz.store.shard_log import ShardLog, is_writing, kill_writer
from litmusfuzz.reports.events import ShardStarted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER = """
import sys
from pathlib import Path
from litmusfuzz.fuzz.store.shard_log import ShardLog
with ShardLog(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""
READER = """
import sys
with open(sys.argv[1], "rb"):
    print("ready", flush=True)
    sys.stdin.read()
"""
REPLACED = """
import subprocess, sys
import psutil
from litmusfuzz.fuzz.nightly.processes import end_processes

program = [sys.executable, "-c", "import subprocess, sys; c = subprocess.Popen(['sleep', '1000']);"
           "print(c.pid, flush=True); c.wait()"]
before = subprocess.Popen(program, stdout=subprocess.PIPE)
below_before = psutil.Process(int(before.stdout.readline()))
others = psutil.Process().children()
started = subprocess.Popen(program, stdout=subprocess.PIPE)
below_started = psutil.Process(int(started.stdout.readline()))
try:
    end_processes(others)
    assert started.poll() is not None
    assert not below_started.is_running() or below_started.status() == "zombie"
    assert before.poll() is None
    assert below_before.status() == "sleeping"
finally:
    for each in (below_before, before, below_started, started):
        try:
            each.kill()
        except psutil.NoSuchProcess:
            pass
"""


@contextmanager
def program(code: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process in this process's group, which runs until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_writer_of_a_shard_log_is_known_by_its_lock(tmp_path: Path) -> None:
    assert not kill_writer(tmp_path)
    with program(WRITER, tmp_path) as writer, program(READER, tmp_path / "lock") as reader:
        assert is_writing(tmp_path)
        assert kill_writer(tmp_path)
        assert writer.wait() == -9
        assert not is_writing(tmp_path)
        assert not kill_writer(tmp_path)
        assert reader.poll() is None


@pytest.mark.parametrize("record", ["bystander", 0, -1, 1, "own", 1 << 40])
def test_a_resumed_run_ends_the_writer_and_nobody_that_a_record_names(
    record: str | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process ID 0 would stand for its own process group, -1 for all processes."""
    monkeypatch.setattr(many, "ORPHAN_GRACE_S", 0.05)

    def kill(folder: Path) -> bool:
        monkeypatch.setattr(many, "ORPHAN_GRACE_S", PATIENCE_S)  # until it has ended
        return kill_writer(folder)

    monkeypatch.setattr(many, "kill_writer", kill)
    with begun(tmp_path) as store, program(READER, os.devnull) as bystander:
        folder = store.log_folder(1)
        pids = {"bystander": bystander.pid, "own": os.getpid()}
        pid = record if isinstance(record, int) else pids[record]
        store.append(1, ShardStarted(host=os.uname().nodename, pid=pid, versions={}))
        with program(WRITER, folder) as writer, pools.open(1) as pool:
            nightly = Nightly(store, KnownFindings(), lambda _: None, pool, local=True)
            nightly._recover()
            assert writer.wait() == -9
        assert bystander.poll() is None


def test_a_writer_that_cannot_be_killed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on another machine, for example: here, this process itself."""
    monkeypatch.setattr(many, "ORPHAN_GRACE_S", 0.05)
    with begun(tmp_path) as store, pools.open(1) as pool:
        nightly = Nightly(store, KnownFindings(), lambda _: None, pool, local=True)
        with ShardLog(store.log_folder(1)), pytest.raises(TimeoutError) as error:
            nightly._await(1)
    assert error.value.strerror == (
        "a process that cannot be found here still writes shard 1; end it, and resume"
    )


def test_children_of_a_replaced_program_are_not_killed() -> None:
    """``sleep 1000 & exec litmusfuzz nightly`` leaves a child that is not the campaign's."""
    done = subprocess.run(
        [sys.executable, "-c", REPLACED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
