"""Whether nothing happens in this process any more: a deadlock told without a clock.

Two looks at all other threads, one after the other: if each is asleep in both, and
none was switched to in between, then none ran between the end of the first look and
the beginning of the second. A thread that has been woken counts as runnable at once,
whether or not it has a core. What could still wake one is a timer, or another
process: TensorFlow's executor has neither in a session of this process.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

_TASKS: Final = Path("/proc/self/task")
_NEEDED: Final = ("State", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


def thread_states() -> dict[int, tuple[str, ...]] | None:
    """How often each other thread has been switched; None if one is not asleep.

    Raises
    ------
    Unavailable
        Where the system does not tell.
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
            return None  # it has just ended
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        state, *switches = (lines[name].strip() for name in _NEEDED)
        if not state.startswith("S"):
            return None
        seen[thread] = tuple(switches)
    return seen


def is_quiescent() -> bool:
    """Whether no other thread runs, nor ran between two looks."""
    first = thread_states()
    return first is not None and first == thread_states()
