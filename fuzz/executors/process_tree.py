"""Processes that end with others, and when a process may fork at all.

No process is signalled by an ID that may belong to another by then: it is a child that this process
has not reaped, or it is held by a descriptor before it is recognized.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MARK: Final = "LITMUSFUZZ_WORKER"
"""Environment variable of fork servers, of their workers, and of all that these start.

Its value is the mark of the server; for a worker, and what it starts, a slash and the worker's
process ID follow."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ROUNDS: Final = 20
"""Looks at all processes, at most, until no marked one is left."""


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


def die_with_parent(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of a run; by a thread."""

    def watch() -> None:
        with contextlib.suppress(OSError):  # it has ended, or the system has no such descriptors
            descriptor = os.pidfd_open(parent)
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            while os.getppid() == parent:
                ended.poll()
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> list[int]:
    """Process IDs of the children of a process, those that have ended and wait to be reaped too."""
    tasks = Path(f"/proc/{pid}/task")
    found: list[int] = []
    # It may end at any time. `Path.glob` would raise then, unless it had ended before.
    try:
        names = os.listdir(tasks)
    except (FileNotFoundError, ProcessLookupError):
        return found
    for name in names:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (tasks / name / "children").read_text(encoding="ascii").split())
    return found


def processes() -> list[int]:
    """Process IDs of all processes of this machine, or of this container."""
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def mark_of(pid: int) -> str:
    """The value of `MARK` in a process's environment; "" without, or if it has ended."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = f"{MARK}=".encode()
    marks = [each.removeprefix(prefix) for each in variables if each.startswith(prefix)]
    return marks[0].decode(errors="replace") if marks else ""


def kill_if(pid: int, ours: Callable[[], bool]) -> bool:
    """Kill a process if it is ours; true if it was sent the signal.

    Parameters
    ----------
    pid : int
        Process ID, which may belong to any process by now, or to none.
    ours : callable
        Looks at the process that has this ID now. If that is another than the one that is
        killed, then the latter has ended.
    """
    with contextlib.suppress(OSError, OverflowError, ValueError):
        descriptor = os.pidfd_open(pid)
        try:
            if ours():
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False


def kill_marked(mark: str) -> None:
    """Kill all that a fork server with this mark has left, after it has ended.

    Its workers have ended with it, but the processes that these had started belong to nobody.
    """

    def marked(pid: int) -> bool:
        return mark_of(pid).partition("/")[0] == mark

    for _ in range(_ROUNDS):
        found = [pid for pid in processes() if marked(pid)]
        for pid in found:
            kill_if(pid, partial(marked, pid))
        if not found:
            return


def thread_names() -> list[str]:
    """Names of the threads of this process, as the kernel knows them.

    A process may fork if it has one: a fork copies only the thread that forks, and locks that
    others hold stay locked.
    """
    tasks = Path("/proc/self/task").iterdir()
    texts = ((task / "comm").read_text(encoding="utf-8", errors="replace") for task in tasks)
    return sorted(text.strip() for text in texts)
