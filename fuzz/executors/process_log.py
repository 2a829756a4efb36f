"""The end of a process, explained by its exit status and the last lines of its log."""

from __future__ import annotations

import os
import re
from typing import IO, Final

KEPT_BYTES: Final = 8000
"""Maximum number of bytes kept of an ended process's log."""


def last_lines(log: IO[bytes]) -> str:
    """The last complete lines of a log, or the end of the last line if it exceeds `KEPT_BYTES`."""
    start = max(0, log.seek(0, os.SEEK_END) - KEPT_BYTES)
    log.seek(start)
    kept = log.read()
    _, _, whole = kept.partition(b"\n")
    return (whole if start and whole.strip() else kept).decode(errors="replace")


def cause_of_death(code: int, log: str) -> str:
    """How the process ended, with the last line of its log that may explain it.

    Skips log lines of a framework (``I0000 00:00:...``, ``2026-11-21 10:00:00.1: W ...``) and the
    second line of TensorFlow's message about the processor: they explain nothing.
    """
    how = f"signal {-code}" if code < 0 else f"exit {code}"
    log = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log)  # colours
    log = "".join(c if c.isprintable() or c in "\r\n" else " " for c in log)
    logged = re.compile(
        r"[IWEF]\d{4} |\d{4}-\d\d-\d\d |WARNING: |To enable the following instructions: "
    )
    said = [line.strip() for line in log.splitlines() if line.strip() and not logged.match(line)]
    return f"{how}: {said[-1][:300]}" if said else how
