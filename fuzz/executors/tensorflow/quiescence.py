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
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

_TASKS: Final = "/proc/self/task"
_STATUS_BYTES: Final = 1 << 14
_TIMERS_S: Final = 0.01
"""Seconds, longer than any timer of TensorFlow's mutexes."""


def sleeping_threads() -> dict[str, bytes] | None:
    """Context-switch counts of each other thread; None if some thread is not asleep.

    Raises
    ------
    Unavailable
        On a system without ``/proc/self/task``.
    """
    mine = str(threading.get_native_id())
    seen: dict[str, bytes] = {}
    try:
        threads = os.listdir(_TASKS)
    except FileNotFoundError:
        raise Unavailable("tests that may block need /proc/self/task (Linux)") from None
    for thread in threads:
        if thread == mine:
            continue
        try:
            file = os.open(f"{_TASKS}/{thread}/status", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            return None  # the thread has just ended
        try:
            text = os.read(file, _STATUS_BYTES)
        except ProcessLookupError:
            return None
        finally:
            os.close(file)
        if not text.partition(b"\nState:\t")[2].startswith(b"S"):
            return None
        seen[thread] = text[text.index(b"\nvoluntary_ctxt_switches:") :]  # and nonvoluntary ones
    return seen


def other_threads_s() -> float:
    """Seconds of processor time of all other threads of this process so far."""
    return time.process_time() - time.thread_time()


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
