"""A test in two processes: this one has the first, third, ... of its devices."""

from __future__ import annotations

import queue
import random
import secrets
import subprocess
import sys
import threading
import weakref
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Client
from typing import TYPE_CHECKING, Any, Final

import msgspec

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.executors.native.outcomes import Rows
from litmusfuzz.fuzz.executors.native.peer import Half, Load, lowered
from litmusfuzz.fuzz.executors.native.transport import (
    HOST,
    KEY_BYTES,
    Carrier,
    Messages,
    Tag,
    arrive,
)
from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.native._executor import Station
    from litmusfuzz.fuzz.executors.protocol import Config, Histogram, Noise

TWO_DEVICES: Final = ("cpu:0", "cpu:1")

_Shown = tuple[tuple[int, ...], tuple[bool, ...]]
"""What a copy showed in one process, and which runs have ended there."""


class LostPeer(RuntimeError):
    """The other process is gone; names it, and says how it ended."""


class Peer:
    """The second process, for one test after another: to start it takes a second."""

    def __init__(self) -> None:
        key = secrets.token_bytes(KEY_BYTES)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "litmusfuzz.fuzz.executors.native.peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._close = weakref.finalize(self, _end, self._process)
        self._gone = False
        self.devices = ""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(key)
            self._process.stdin.flush()
            port = self._process.stdout.readline()
            if not port:
                raise EOFError
            self._messages = Messages(Client((HOST, int(port)), authkey=key))
        except (EOFError, OSError):
            raise self.lost() from None
        self._station: Station | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def load(self, load: Load, devices: str) -> None:
        """Make it ready for a test, in place of the one before.

        `devices` names those that it has.

        Raises
        ------
        Refused
        """
        self.devices = devices
        refusal = self._ask(Tag.LOAD, msgspec.msgpack.encode(load)).decode()
        if refusal:
            raise Refused(refusal)

    def connect(self, station: Station) -> Carrier:
        """Carry what goes from a station of ours to the other one, and back."""
        self._station = station
        if self._gone:  # who finds that out closes the station that it knows
            station.close()
        return Carrier(station, self._messages)

    def disconnect(self, station: Station) -> None:
        """Forget a station that is closed."""
        if self._station is station:
            self._station = None

    def serves(self, station: Station) -> bool:
        """Whether the test that it has is that station's."""
        return self._station is station

    def rows(self) -> list[_Shown]:
        """What each copy showed there."""
        return msgspec.msgpack.decode(self._ask(Tag.ROWS), type=list[_Shown])

    def lost(self) -> LostPeer:
        """The error that says that it is gone."""
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
            self._answers.put(None)  # for whoever asks next
            raise self.lost()
        return answer

    def _receive(self) -> None:
        while (message := self._messages.receive()) is not None:
            tag, data = message
            if tag in (Tag.LOAD, Tag.ROWS):
                self._answers.put(data)
                continue
            station = self._station
            if station is not None:
                arrive(station, tag, data)
            del station  # not kept while we wait
        self._gone = True
        self._answers.put(None)
        station = self._station
        if station is not None:
            station.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(BrokenPipeError):  # of a key that was never read
            stream.close()


def devices_for(config: Config) -> tuple[str, ...]:
    """Those that a configuration puts things on that have none."""
    named = dict(config.settings).get("devices", TWO_DEVICES[0])
    return tuple(str(named).split())


class PairedTest:
    """A test that is loaded in two processes.

    Parameters
    ----------
    test : LitmusTest
    config : Config
        With two processes.
    peer : Peer
        It has one test at a time.

    Raises
    ------
    Refused
        For a test with clusters, or a loop, conditional or section that would
        be in both processes.
    """

    def __init__(self, test: LitmusTest, config: Config, peer: Peer) -> None:
        settings: dict[str, Any] = dict(config.settings)
        self._test = test
        self._peer = peer
        self._load = Load(
            dumps(Entry(test)),
            list(devices_for(config)),
            settings["engine"],
            settings["threads"],
            copies=1,
        )
        programs = [lowered(self._load, part) for part in (0, 1)]  # or it is refused here
        self._devices = ", ".join(programs[1].device_names)
        self._names = [program.names_here for program in programs]
        self._rows = [Rows(test, program.observed_here) for program in programs]
        self._half: Half | None = None
        self._carrier: Carrier | None = None

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Execute the test `count` times, rounded up to a step of `noise.copies`.

        Of the noise, `copies` and `transfer_delay_us_max` say something here.

        Raises
        ------
        LostPeer
            If the other process ends, or closes the connection.
        """
        if (
            self._half is None
            or self._load.copies != noise.copies
            or not self._peer.serves(self._half.station)
        ):
            self._start(noise.copies)
        assert self._half is not None
        station = self._half.station
        rng = random.Random(seed)
        shown: Counter[tuple[_Shown, _Shown]] = Counter()
        try:
            for _ in range(0, count, noise.copies):
                station.begin(rng.getrandbits(64), noise.transfer_delay_us_max)
                if not station.wait():
                    raise self._peer.lost()
                here = ((tuple(row), tuple(over)) for row, over in station.rows())
                shown.update(zip(here, self._peer.rows(), strict=True))
        except BaseException:
            self._peer.close()  # it may be in the middle of something
            raise
        found: Counter[Outcome] = Counter()
        for both, times in shown.items():
            found[self._outcome(both)] += times
        return dict(sorted(found.items(), key=lambda each: (-each[1], str(each[0]))))

    def close(self) -> None:
        """End our threads; the other process is kept."""
        if self._carrier is not None and self._half is not None:
            self._carrier.close()
            self._peer.disconnect(self._half.station)
        self._half = self._carrier = None

    def _start(self, copies: int) -> None:
        self.close()
        self._load = msgspec.structs.replace(self._load, copies=copies)
        self._peer.load(self._load, self._devices)
        self._half = Half(self._load, 0)
        self._carrier = self._peer.connect(self._half.station)

    def _outcome(self, both: tuple[_Shown, _Shown]) -> Outcome:
        """What two processes know of one copy: a run has ended when it has in both."""
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
