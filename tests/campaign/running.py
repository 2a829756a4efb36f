"""Campaigns in processes of their own: a test watches one, and ends it when it has done enough."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
from helpers import PATIENCE_S

from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UNBORN = re.compile(
    r'^Traceback \(most recent call last\):\n  File "<string>", line 1, in <module>\n'
    r"(?:  .*spawn\.py.*\n(?: {4}.*\n)+)+EOFError: Ran out of input\n",
    re.MULTILINE,
)
"""What Python says in a new process whose parent was killed before it could send what to run.
Nothing of ours runs in it yet that could keep it quiet."""


class Running:
    """A campaign in a process of its own, which runs in `cwd`."""

    def __init__(
        self, folder: Path, command: str, *arguments: str, cwd: Path | None = None
    ) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "litmusfuzz", command, *arguments],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: set[psutil.Process] = set()

    def wait(self, until: Callable[[Store], Any]) -> Any:
        """Until the store says so; what it says."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.process.communicate()
            self.look()
            try:
                with Store(self.folder, write=False) as store:
                    found = until(store)
            except (StoreError, sqlite3.OperationalError):
                found = None  # another process is creating it
            if found:
                return found
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(self.process.communicate())

    def look(self) -> None:
        """Remember all processes that belong to it."""
        self.seen |= {psutil.Process(self.process.pid)}
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))

    def end(self, *sent: signal.Signals) -> tuple[int, str, str]:
        """Send that; no process is left when it has ended."""
        self.look()
        for each in sent:
            self.process.send_signal(each)
        out, err = self.process.communicate()
        _, alive = psutil.wait_procs(self.seen, timeout=PATIENCE_S)
        assert not alive
        if signal.SIGKILL in sent:
            err = UNBORN.sub("", err)
        assert "Traceback" not in err
        return self.process.returncode, out, err
