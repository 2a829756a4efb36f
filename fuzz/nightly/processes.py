"""Ends processes of workers that a campaign leaves behind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection


def end_processes(others: Collection[psutil.Process]) -> None:
    """Kill all processes that this one started, and their descendants, but not these others."""
    killed = []
    started = [child for child in psutil.Process().children() if child not in others]
    for each in (*started, *(below for child in started for below in _descendants(child))):
        with contextlib.suppress(psutil.NoSuchProcess):
            # It ends with this process, and prints an error if it is killed.
            if "resource_tracker" not in " ".join(each.cmdline()):
                each.kill()
                killed.append(each)
    psutil.wait_procs(killed, timeout=10)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
