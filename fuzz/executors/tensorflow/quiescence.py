"""Detects that no other thread of this process can go on: a deadlock, without a timeout.

It reads the state of all other threads twice from ``/proc/self/task``. If every thread
is asleep both times, and none was scheduled in between, then none ran between the end
of the first read and the start of the second. Linux counts a woken thread as runnable
at once, even before it gets a core. Only a timer or another process could still wake a
thread. In a session of this process TensorFlow waits for no other process. Its mutexes
have timers: a thread that finds one contended may sleep for up to a millisecond, and for
a few where the lock is a spin lock. `stays_quiescent` outlasts these.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

_TASKS: Final = Path("/proc/self/task")
_NEEDED: Final = ("State", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
_TIMERS_S: Final = 0.01
"""Seconds, longer than any timer of TensorFlow's mutexes."""


def sleeping_threads() -> dict[int, tuple[str, ...]] | None:
    """Context-switch counts of each other thread; None if some thread is not asleep.

    Raises
    ------
    Unavailable
        On a system without ``/proc/self/task``.
    """
    mine = threading.get_native_id()
    seen: dict[int, tuple[str, ...]] = {}
    try:
        threads = os.listdir(_TASKS)
    except FileNotFoundError:
        raise Unavailable("tests that may block need /proc/self/task (Linux)") from None
    for thread in map(int, threads):
        if thread == mine:
            continue
        try:
            text = (_TASKS / str(thread) / "status").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None  # the thread has just ended
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        state, *switches = (lines[name].strip() for name in _NEEDED)
        if not state.startswith("S"):
            return None
        seen[thread] = tuple(switches)
    return seen


def is_quiescent() -> bool:
    """True if no other thread runs, or ran between two reads of the thread states."""
    first = sleeping_threads()
    return first is not None and first == sleeping_threads()


def stays_quiescent() -> bool:
    """True if no other thread runs, nor is woken by the timer of a contended mutex."""
    first = sleeping_threads()
    if first is None or first != sleeping_threads():
        return False
    time.sleep(_TIMERS_S)
    return first == sleeping_threads()
