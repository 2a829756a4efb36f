"""The standard error of a process, and its end explained by that and by its exit status."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD_BYTES: Final = 2000
KEPT_BYTES: Final = 8000
"""Number of bytes kept of the beginning and of the end of a process's log, at most."""
_CHUNK: Final = 1 << 16
_CHUNKS: Final = 16
"""Chunks read at a time, so that a process that never stops writing delays nothing else."""
_LEFT_OUT: Final = "bytes of the log are left out"
MAX_TRACEBACK: Final = 40
"""Lines of a traceback that are shown."""
_CHAINED: Final = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
MAX_LINE: Final = 300
"""Characters kept of each line of a message."""
OMITTED: Final = " ... "
"""Stands between the first and the last line of a message."""
_LOGGED: Final = re.compile(
    r"[IWE]\d{4} |\d{4}-\d\d-\d\d \S+ [IWE] |WARNING: |To enable the following instructions: "
    rf"|\[[\d,]+ {_LEFT_OUT}\]"
)
_FATAL: Final = re.compile(r"(F\d{4} \S+ +\d+|\d{4}-\d\d-\d\d \S+ F) ")
_STACK: Final = re.compile(r"@ +0x|\*\*\* .*stack trace")
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)\b")


class ProcessLog:
    """The log of one process, from a pipe: nothing is written to a disk, and most is forgotten.

    A process that writes much waits until `drain` has read it.

    Parameters
    ----------
    reads : int
        Descriptor of the pipe's end, which belongs to this object.

    Attributes
    ----------
    dropped : int
        Bytes that were read and not kept.
    ended : bool
        True once nothing more can come.
    """

    def __init__(self, reads: int) -> None:
        os.set_blocking(reads, False)
        self._reads = reads
        self._head = b""
        self._tail = bytearray()
        self.dropped = 0
        self.ended = False

    def fileno(self) -> int:
        """Descriptor that becomes readable when there is more."""
        return self._reads

    def drain(self) -> None:
        """Read what the process has written, without waiting for more."""
        for _ in range(_CHUNKS):
            if self.ended:
                return
            try:
                part = os.read(self._reads, _CHUNK)
            except BlockingIOError:
                return
            self.ended = not part
            free = HEAD_BYTES - len(self._head)
            self._head += part[:free]
            self._tail += part[free:] if free < len(part) else b""
            excess = max(0, len(self._tail) - KEPT_BYTES)
            self.dropped += excess
            del self._tail[:excess]

    def text(self) -> str:
        """What is kept: whole lines, but for the last, and how much is left out between them."""
        if not self.dropped:
            return (self._head + self._tail).decode(errors="replace")
        head, _, cut = self._head.rpartition(b"\n")
        partial, _, tail = bytes(self._tail).partition(b"\n")
        if not tail.strip():  # a single long line
            partial, tail = b"", bytes(self._tail)
        dropped = self.dropped + len(cut) + len(partial)
        parts = (head.decode(errors="replace"), f"[{dropped:,} {_LEFT_OUT}]")
        return "\n".join((*filter(None, parts), tail.decode(errors="replace")))

    def close(self) -> None:
        """Read no more."""
        if self._reads >= 0:
            os.close(self._reads)
        self._reads = -1
        self.ended = True


def printable(text: str, most: int = 300) -> str:
    """The beginning of a text in one line, which a terminal and a litmus file can take."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)  # colours
    return "".join(c if c.isprintable() else " " for c in text).strip()[:most]


def legible(text: str) -> str:
    """A text of several lines which a terminal, a log of a CI system and a page can take."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)  # colours
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def in_a_line(text: str) -> str:
    """A message in one line: one of several lines as its first and its last."""
    lines = [line.strip()[:MAX_LINE] for line in text.splitlines() if re.search(r"\w", line)]
    return OMITTED.join(lines if len(lines) < 2 else (lines[0], lines[-1]))


def cause_of_death(code: int, log: str) -> str:
    """How the process ended, with what its log says last that may explain it.

    That is the last line; of an exception, or after a fatal error of a framework, also the first.
    Skips what explains nothing: other log lines of a framework (``I0000 00:00:...``, ``2026-11-21
    10:00:00.1: W ...``), the second line of TensorFlow's message about the processor, addresses.
    """
    how = f"signal {-code}" if code < 0 else f"exit {code}"
    log = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log)  # colours
    log = "".join(c if c.isprintable() or c in "\r\n" else " " for c in log)
    said = [line for line in log.splitlines() if not _LOGGED.match(line)]
    said = [line for line in said if re.search(r"\w", line) and not _STACK.match(line.strip())]
    begin = _fatal(said) if code < 0 else _raised(said)
    last_words = in_a_line("\n".join(_FATAL.sub("", line) for line in said[begin:]))
    return f"{how}: {last_words}" if last_words else how


def traceback_of(log: str) -> str:
    """The last traceback of Python in a log, with those of its causes; "" if it does not end so."""
    lines = log.splitlines()
    begun = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if not begun:
        return ""
    first = begun.pop()
    while begun and any(line in _CHAINED for line in lines[begun[-1] : first]):
        first = begun.pop()
    shown = lines[first:]
    if len(shown) > MAX_TRACEBACK:
        left_out = f"  [{len(shown) - MAX_TRACEBACK} lines are left out]"
        shown = [shown[0], left_out, *shown[1 - MAX_TRACEBACK :]]
    return legible("\n".join(line[: 2 * MAX_LINE] for line in shown)).rstrip()


def _fatal(said: Sequence[str]) -> int:
    """Index of a fatal error, after which a process aborts; -1 if there is none."""
    fatal = [number for number, line in enumerate(said) if _FATAL.match(line)]
    return fatal[-1] if fatal else -1


def _raised(said: Sequence[str]) -> int:
    """Index of the first line of the exception with which Python ends; -1 if there is none."""
    begun = [number for number, line in enumerate(said) if line.startswith(_TRACEBACK)]
    if begun:
        frames = range(begun[-1] + 1, len(said))
        return next((number for number in frames if not said[number].startswith(" ")), -1)
    # The log may be cut inside of a traceback.
    raised = [number for number, line in enumerate(said) if _RAISED.match(line)]
    return raised[-1] if raised else -1
