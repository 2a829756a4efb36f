"""Forked processes that end with their parent, and when a process may fork at all."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent process ends.

    Only for a child of the parent's main thread: the end of the thread counts.

    Parameters
    ----------
    parent : int
        Process ID, which the parent found out before it forked.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def thread_names() -> list[str]:
    """Names of the threads of this process, as the kernel knows them.

    A process may fork if it has one: a fork copies only the thread that forks, and locks that
    others hold stay locked.
    """
    tasks = Path("/proc/self/task").iterdir()
    texts = ((task / "comm").read_text(encoding="utf-8", errors="replace") for task in tasks)
    return sorted(text.strip() for text in texts)
