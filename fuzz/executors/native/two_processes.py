"""Execution of one test in two processes, each of which has every second device."""

from __future__ import annotations

import queue
import random
import socket
import subprocess
import sys
import threading
import weakref
from collections import Counter
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.executors.native.outcomes import Rows
from litmusfuzz.fuzz.executors.native.peer import LoadRequest, Partition, lowered
from litmusfuzz.fuzz.executors.native.transport import Messages, Sender, Tag, deliver
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native._executor import PartitionRunner
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise

TWO_DEVICES: Final = ("cpu:0", "cpu:1")

_Shown = tuple[tuple[int, ...], tuple[bool, ...]]
"""Outcome row of a copy in one process, and for each run whether it has ended there."""


class LostPeer(RuntimeError):
    """The second process ended; the message names it and says how it ended."""


class Peer:
    """The second process. It takes a second to start, so it serves many tests."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "litmusfuzz.fuzz.executors.native.peer"),
                    str(theirs.fileno()),
                ],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        self._messages = Messages(Connection(ours.detach()))
        self._close = weakref.finalize(self, _end, self._process)
        self._gone = False
        self.devices = ""
        if self._messages.receive() is None:
            raise self.lost()
        self._runner: PartitionRunner | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def load(self, request: LoadRequest, devices: str) -> None:
        """Load a test in place of the last one.

        `devices` names the devices of the second process, for error messages.

        Raises
        ------
        Refused
        """
        self.devices = devices
        refusal = self._ask(Tag.LOAD, msgspec.msgpack.encode(request)).decode()
        if refusal:
            raise Refused(refusal)

    def connect(self, runner: PartitionRunner) -> Sender:
        """Connect a partition runner of this process with the other process."""
        self._runner = runner
        if self._gone:  # the receiving thread can no longer close this runner
            runner.close()
        return Sender(runner, self._messages)

    def disconnect(self, runner: PartitionRunner) -> None:
        """Forget a closed runner."""
        if self._runner is runner:
            self._runner = None

    def serves(self, runner: PartitionRunner) -> bool:
        """Return True if the process has that runner's test loaded."""
        return self._runner is runner

    def rows(self) -> list[_Shown]:
        """Return the outcome of each copy in the second process."""
        return msgspec.msgpack.decode(self._ask(Tag.ROWS), type=list[_Shown])

    def lost(self) -> LostPeer:
        """Return the error that says how the process ended."""
        try:
            code = self._process.wait(timeout=5)
            how = f"killed by signal {-code}" if code < 0 else f"exit {code}"
        except subprocess.TimeoutExpired:
            how = "it closed the connection"
        self.close()
        where = f" with {self.devices}" if self.devices else ""
        return LostPeer(f"lost the process{where} (pid {self.pid}): {how}")

    def close(self) -> None:
        """End the process."""
        self._close()

    def _ask(self, tag: Tag, data: bytes = b"") -> bytes:
        self._messages.send(tag, data)
        answer = self._answers.get()
        if answer is None:
            self._answers.put(None)  # for the next caller
            raise self.lost()
        return answer

    def _receive(self) -> None:
        while (message := self._messages.receive()) is not None:
            tag, data = message
            if tag in (Tag.LOAD, Tag.ROWS):
                self._answers.put(data)
                continue
            runner = self._runner
            if runner is not None:
                deliver(runner, tag, data)
            del runner  # no reference while the thread waits
        self._gone = True
        self._answers.put(None)
        runner = self._runner
        if runner is not None:
            runner.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def devices_for(config: Config) -> tuple[str, ...]:
    """Return the devices of a configuration, for resources and nodes without one."""
    named = dict(config.settings).get("devices", TWO_DEVICES[0])
    return tuple(str(named).split())


class TwoProcessTest:
    """A test loaded in two processes.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        A configuration with two processes.
    peer : Peer
        The second process, which has one test at a time.

    Raises
    ------
    Refused
        If the test has clusters, or a loop, conditional or section that needs both
        processes.
    """

    def __init__(self, test: LitmusTest, config: Config, peer: Peer) -> None:
        settings: dict[str, Any] = dict(config.settings)
        self._test = test
        self._peer = peer
        self._load = LoadRequest(
            dumps(Entry(test)),
            list(devices_for(config)),
            settings["engine"],
            settings["threads"],
            copies=1,
        )
        programs = [lowered(self._load, part) for part in (0, 1)]  # may raise Refused
        self._devices = ", ".join(programs[1].device_names)
        self._names = [program.names_here for program in programs]
        self._rows = [Rows(test, program.observed_here) for program in programs]
        self._partition: Partition | None = None
        self._sender: Sender | None = None

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, only `copies` and `transfer_delay_us_max` have an effect.

        Raises
        ------
        LostPeer
            If the other process ends, or closes the connection.
        """
        if (
            self._partition is None
            or self._load.copies != noise.copies
            or not self._peer.serves(self._partition.runner)
        ):
            self._start(noise.copies)
        assert self._partition is not None
        runner = self._partition.runner
        rng = random.Random(seed)
        shown: Counter[tuple[_Shown, _Shown]] = Counter()
        try:
            for _ in range(0, count, noise.copies):
                runner.begin(rng.getrandbits(64), noise.transfer_delay_us_max)
                if not runner.wait():
                    raise self._peer.lost()
                here = ((tuple(row), tuple(over)) for row, over in runner.rows())
                shown.update(zip(here, self._peer.rows(), strict=True))
        except BaseException:
            self._peer.close()  # the second process may be in the middle of an execution
            raise
        found: Counter[Outcome] = Counter()
        for both, times in shown.items():
            found[self._outcome(both)] += times
        return dict(sorted(found.items(), key=lambda each: (-each[1], str(each[0]))))

    def close(self) -> None:
        """End the threads of this process; the second process stays."""
        if self._sender is not None and self._partition is not None:
            self._sender.close()
            self._peer.disconnect(self._partition.runner)
        self._partition = self._sender = None

    def _start(self, copies: int) -> None:
        self.close()
        self._load = msgspec.structs.replace(self._load, copies=copies)
        self._peer.load(self._load, self._devices)
        self._partition = Partition(self._load, 0)
        self._sender = self._peer.connect(self._partition.runner)

    def _outcome(self, both: tuple[_Shown, _Shown]) -> Outcome:
        """Merge the outcomes of one copy in both processes; a run must end in both."""
        runs = self._test.runs
        ended = {
            run.name for run, *over in zip(runs, both[0][1], both[1][1], strict=True) if all(over)
        }
        statuses: set[Status] = set()
        values: dict[str, Any] = {}
        for (row, _), rows, names in zip(both, self._rows, self._names, strict=True):
            status, seen = rows.read(row)
            statuses.add(status)
            values |= {name: value for name, value in seen.items() if name in names}
        if Status.FAILED in statuses:
            return Outcome.of(self._test, {}, Status.FAILED)
        for name in self._test.observe:
            run = name.partition(".")[0] if len(runs) > 1 else runs[0].name
            if run not in ended:
                values.pop(name, None)
        blocked = Status.BLOCKED in statuses
        return Outcome.of(self._test, values, Status.BLOCKED if blocked else Status.COMPLETED)
