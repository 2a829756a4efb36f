"""An executor that does what a stranger's may: to its channel, its log, and by its children."""

from __future__ import annotations

import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter
from litmusfuzz.fuzz.mutants.canary import Canary
from litmusfuzz.fuzz.mutants.stale_reads import StaleReads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Prepared

SLEEP = ("sleep", "1000")
HALF_S = 0.05
"""Seconds between two bytes of a slow reply."""
LOGGED_BYTES = 20 << 20
GARBAGE = b"\xff\xd8 what a library prints"
SEVENTH = 7


def descriptors() -> list[int]:
    """Those of this process, without standard input, output and error."""
    return [int(each) for each in os.listdir("/proc/self/fd") if int(each) > 2]


def write(data: bytes) -> None:
    """Write to the channel of replies, which is the only pipe that is not a standard stream."""
    for descriptor in descriptors():
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, data)
        except OSError:  # the listing's own
            continue


def child(*, session: bool, run: bool) -> int:
    """A process that nobody waits for: in a session of its own, running another program."""
    pid = os.fork()
    if not pid:
        if session:
            os.setsid()
        if run:
            os.execvp(SLEEP[0], SLEEP)  # noqa: S606
        while True:
            signal.pause()
    return pid


def grandchild() -> int:
    """A daemon: its parent has ended, and its session is its own."""
    command = 'setsid sleep 1000 >&2 & echo "$!"'
    shell = ["/bin/sh", "-c", command]
    return int(subprocess.run(shell, stdout=subprocess.PIPE, check=True).stdout)


class Hostile(Canary):
    """A canary; the name of a configuration says what else it does."""

    name: ClassVar[str] = "double/hostile"
    fork_after: ClassVar[ForkAfter] = ForkAfter(("executors.hostile",))
    children: ClassVar[list[int]] = []

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One for each thing to do, when it is asked whether it can run."""
        names = ("plain", "garbage", "huge", "half", "slow", "flood", "twice", "family")
        names += ("daemon", "crash", "hang", "logs", "logs_and_crash")
        return tuple(Config(name, "executor") for name in names)

    def check(self, config: Config) -> None:
        """Do it."""
        getattr(self, config.name)()

    @classmethod
    def configured(cls, name: str) -> Config:
        """There are no others."""
        raise ValueError(name)

    def plain(self) -> None:
        """Nothing more."""

    def garbage(self) -> None:
        """Bytes that begin no message."""
        write(GARBAGE)

    def huge(self) -> None:
        """A message that is not allowed to be so long."""
        write(struct.pack(">I", 1 << 30))

    def half(self) -> None:
        """The beginning of a message."""
        write(struct.pack(">I", 1000) + b"{")
        os._exit(0)

    def slow(self) -> None:
        """A message that comes byte by byte, and never ends."""
        write(struct.pack(">I", 1 << 20))
        while True:
            write(b" ")
            time.sleep(HALF_S)

    def flood(self) -> None:
        """More bytes than anybody reads."""
        write(struct.pack(">I", 1 << 20))
        while True:
            write(b" " * (1 << 16))

    def twice(self) -> None:
        """A reply, which the real one follows."""
        write(struct.pack(">I", 2) + b"{}")

    def crash(self) -> None:
        """As a framework does."""
        os.kill(os.getpid(), signal.SIGSEGV)

    def hang(self) -> None:
        """As a framework does."""
        signal.pause()

    def daemon(self) -> None:
        """Start a daemon."""
        self.children.append(grandchild())

    def logs(self) -> None:
        """Much, line by line."""
        line = b"0123456789" * 99 + b"abcdefghi\n"
        os.write(2, b"the first line\n")
        for _ in range(LOGGED_BYTES // len(line)):
            os.write(2, line)
        os.write(2, b"the last line\n")

    def logs_and_crash(self) -> None:
        """A framework that tells all before it ends."""
        self.logs()
        self.crash()

    def family(self) -> None:
        """Start children."""
        made = [child(session=s, run=r) for s in (False, True) for r in (False, True)]
        self.children.extend((*made, grandchild()))

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """With its children."""
        return {"python": sys.version.split()[0], "children": " ".join(map(str, cls.children))}


class Garbled(StaleReads):
    """Sound; on every seventh test of a process, garbage stands in place of a result."""

    name: ClassVar[str] = "double/garbled"
    stale: ClassVar[bool] = False
    prepared: ClassVar[int] = 0

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Write garbage."""
        Garbled.prepared += 1
        if Garbled.prepared % SEVENTH == 0:
            write(GARBAGE)
        return super().prepare(test, config)


class Countless(StaleReads):
    """Sound; has ten counters more each time that it is asked, and one of them all."""

    name: ClassVar[str] = "double/countless"
    stale: ClassVar[bool] = False

    def __init__(self) -> None:
        self.asked = 0

    def counters(self) -> Mapping[str, float]:
        """Those of this time."""
        self.asked += 1
        new = {f"{self.asked}-{each}": 1.0 for each in range(10)}
        return {"in all": 10.0 * self.asked} | new


class HostileServer(Hostile):
    """Its module writes into what the fork server says of its workers."""

    name: ClassVar[str] = "double/hostile-server"
    fork_after: ClassVar[ForkAfter] = ForkAfter(("executors.hostile", "executors.hostile_fork"))


def write_to_sockets() -> None:
    """In a process that is about to fork."""
    for descriptor in descriptors():
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as each:
                    each.send(b"pid \x1b[31mnone\nexit many\n")
        except OSError:
            continue
