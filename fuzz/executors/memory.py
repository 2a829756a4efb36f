"""Memory of all workers together, which must not exceed what the machine has.

Each worker has a limit of its own, which the sum of several workers may exceed by far. The kernel
would then kill any process of the machine; `enforce` kills the largest worker before, and its
request says so.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.process_tree import children, mark_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litmusfuzz.fuzz.executors.worker import Worker

SHARE: Final = 0.8
"""Part of the memory that workers may use by default; the rest is for all other processes."""
COLLECTED_EVERY: Final = 20_000
"""New objects, about, between two runs of Python's collector of cycles, in campaigns and workers.

Nearly all of what they make is freed by reference counts. With the default of 700 the collector
took a 25th of the processor time of both.
"""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_GIB: Final = 1 << 30


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that this process and its children can have: the machine's, or a cgroup's limit.

    Parameters
    ----------
    root : Path
        Where ``proc`` and ``sys`` are.
    """
    total = (root / "proc/meminfo").read_text(encoding="ascii").partition("MemTotal:")[2]
    found = [int(total.split()[0]) << 10]
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            mounted, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            mounted, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container, the path may be that on the host; the limit is then in the mount itself.
        group = mounted / path.lstrip("/")
        for folder in (group, *group.parents):
            limit = folder / name
            if limit.is_file():
                text = limit.read_text(encoding="ascii").strip()
                found += [int(text)] if text.isdigit() else []
            if folder == mounted:
                break
    return min(found)


def private_bytes(pid: int) -> int:
    """Memory of a process that it shares with no other; 0 if there is no such process.

    A forked worker shares most of its memory with its fork server.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = (line.split() for line in text.splitlines()[1:])
    return sum(int(kib) << 10 for name, kib, *_ in lines if name.startswith("Private_"))


def _anonymous_bytes(pid: int) -> int:
    """An upper bound of `private_bytes`, up to files that it alone maps; quicker to read."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


def with_descendants(pid: int) -> list[int]:
    """A process and all processes below it."""
    found = [pid]
    for each in found:  # grows
        found += children(each)
    return found


def of_worker(pid: int) -> list[int]:
    """A worker, all processes below it, and its daemons, which its fork server has adopted."""
    found = with_descendants(pid)
    try:
        # After the name, which may hold anything: the state, and the parent.
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return found
    for each in children(int(stat.rpartition(")")[2].split()[1])):
        with suppress(ProcessLookupError):
            ours = os.getsid(each) == pid or mark_of(each).endswith(f"/{pid}")
            found += with_descendants(each) if ours and each != pid else []
    return found


@dataclass(frozen=True, slots=True)
class Excess:
    """Workers that together use more than they may.

    Parameters
    ----------
    pid : int
        Of the worker that uses most, with its descendants and daemons.
    largest_bytes : int
        What that worker uses.
    total_bytes, limit_bytes : int
        What all workers use, and may use.
    """

    pid: int
    largest_bytes: int
    total_bytes: int
    limit_bytes: int

    @property
    def message(self) -> str:
        """Why the worker is killed, in one line."""
        return (
            f"out of memory: all workers together use {self.total_bytes / _GIB:.1f} GiB of "
            f"{self.limit_bytes / _GIB:.1f} GiB, and this one most, "
            f"{self.largest_bytes / _GIB:.1f} GiB"
        )


def _default_limit() -> int:
    return int(SHARE * available_bytes())


@dataclass(frozen=True, slots=True)
class MemoryCap:
    """A limit on the private memory of several workers together, with all that they start.

    Parameters
    ----------
    limit_bytes : int
        Default: `SHARE` of what the machine, or this cgroup, has.
    """

    limit_bytes: int = field(default_factory=_default_limit)

    def excess(self, pids: Iterable[int]) -> Excess | None:
        """The excess of these processes; None if they are within the limit."""
        groups = {pid: of_worker(pid) for pid in pids}
        quick = sum(_anonymous_bytes(each) for group in groups.values() for each in group)
        if quick <= self.limit_bytes:
            return None
        used = {pid: sum(map(private_bytes, group)) for pid, group in groups.items()}
        total = sum(used.values())
        if total <= self.limit_bytes:
            return None
        largest = max(used, key=lambda pid: used[pid])
        return Excess(largest, used[largest], total, self.limit_bytes)

    def enforce(self, workers: Iterable[Worker]) -> None:
        """Kill the largest worker if all together exceed the limit; its request returns `Died`."""
        running = {pid: worker for worker in workers if (pid := worker.pid) is not None}
        excess = self.excess(running)
        if excess is not None:
            running[excess.pid].kill(excess.message)


async def watch(
    workers: Callable[[], Iterable[Worker]], cap: MemoryCap, interval_s: float = 1.0
) -> None:
    """Enforce the limit again and again, until cancelled.

    Parameters
    ----------
    workers : callable
        The workers of the moment.
    cap : MemoryCap
    interval_s : float
        Seconds between two looks.
    """
    while True:
        await asyncio.sleep(interval_s)
        cap.enforce(workers())
