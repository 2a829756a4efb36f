"""A time limit for executions that may wait forever, and what their errors mean."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.programs.tensorflow.gates import NoEndError, NotShown

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S: Final = 30.0
"""Seconds after which an execution counts as endless, unless this process still computes."""
WINDOW_S: Final = 3.0
"""Seconds over which that is measured."""
BUSY_SHARE: Final = 0.01
"""Share of one core that a process uses at least while it computes, whatever runs beside it."""
MAX_S: Final = 300.0
"""Seconds after which an execution counts as endless though the process computes."""


def within_time(act: Callable[[], Any], stop: Callable[[], None]) -> Any:
    """The result of `act`, which a thread of its own executes; `stop` ends it after `TIMEOUT_S`.

    While the process computes it gets more time, up to `MAX_S`: what waits for an access that
    cannot come uses no processor, and beside other work everything takes longer.

    Raises
    ------
    NotShown
        If it raised an error of TensorFlow.
    NoEndError
        If it was stopped.
    """
    results: list[Any] = []
    problems: list[Exception] = []

    def run() -> None:
        try:
            results.append(act())
        except Exception as error:  # noqa: BLE001 - raised again by the caller's thread
            problems.append(error)

    thread = threading.Thread(target=run, daemon=True)
    start = time.monotonic()
    thread.start()
    thread.join(TIMEOUT_S)
    while thread.is_alive() and time.monotonic() - start < MAX_S:
        used_s = time.process_time()
        thread.join(WINDOW_S)
        if time.process_time() - used_s < BUSY_SHARE * WINDOW_S:
            break
    if thread.is_alive():
        elapsed_s = time.monotonic() - start
        stop()
        thread.join(TIMEOUT_S)
        raise NoEndError(f"TensorFlow did not come to an end within {elapsed_s:.0f} s")
    for problem in problems:
        raise failure(problem)
    return results[0]


def failure(problem: Exception) -> Exception:
    """`NotShown` for an error of TensorFlow; another exception itself."""
    import tensorflow as tf

    if not isinstance(problem, (tf.errors.OpError, ValueError, TypeError)):
        return problem
    message = problem.message if isinstance(problem, tf.errors.OpError) else problem
    text = (str(message).splitlines() or [""])[0]
    return NotShown(f"TensorFlow fails: {type(problem).__name__}: {text:.200}")
