"""Messages between the program and its workers: length-prefixed JSON records.

A test is the text of its file, an outcome lists of ints: a worker may run in another
environment, with other versions of all packages.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

import msgspec

from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.fuzz.executors.protocol import Choice, EventKey  # noqa: TC001 - of a schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value

NO_SCHEDULES: Final = "schedules"
"""Name by which an executor refuses tasks of `Schedulable` and `Forceable`."""
NO_CLUSTERS: Final = "clusters of its own"
"""Name by which an executor that is not `Clustered` refuses the task."""
MAX_MESSAGE: Final = 64 << 20
_LENGTH: Final = struct.Struct(">I")


class Row(msgspec.Struct, frozen=True):
    """An outcome and its count: values by name, None for torn, and the status."""

    values: dict[str, list[int | list[int]] | None]
    count: int
    status: str = Status.COMPLETED


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """First message to a forked worker: what a spawned one is given with its program.

    Parameters
    ----------
    executor : str
    memory_bytes : int
        Limit on the private memory of the process.
    folder : str
        Working directory; "" to keep the fork server's.
    variables : bytes
        All environment variables, as ``NAME=VALUE`` with a zero byte after each: they need
        not be text.
    """

    executor: str
    memory_bytes: int
    folder: str
    variables: bytes

    @classmethod
    def of(cls, executor: str, memory_bytes: int, variables: Mapping[str, str]) -> Start:
        """The start of a worker in the present working directory."""
        try:
            folder = os.fsencode(Path.cwd()).decode()
        except (FileNotFoundError, UnicodeDecodeError):
            folder = ""
        listed = b"".join(os.fsencode(f"{n}={v}") + b"\0" for n, v in variables.items())
        return cls(executor=executor, memory_bytes=memory_bytes, folder=folder, variables=listed)

    def environment(self) -> dict[str, str]:
        """The environment variables, by name."""
        pairs = (os.fsdecode(each).partition("=") for each in self.variables.split(b"\0")[:-1])
        return {name: value for name, _, value in pairs}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A task for a worker; without a test, a request for versions.

    Parameters
    ----------
    test : str
        Text of the test's file; "" to ask for the versions, and whether `config` can run.
    task : str
        *run*; for a `Schedulable` test also *record* (execute up to `count` times, until an
        outcome is in `wanted`) and *replay* (repeat `choices`); for a `Forceable` test
        *force* (follow `order`); for a `Clustered` test *clusters*.
    executor : str
        Another executor of the same environment; "" for the worker's own.
    noise : dict
        Fields of `Noise`.
    timeout_s : float
        Limit for *record* and *force*.
    """

    test: str = ""
    task: Literal["run", "record", "replay", "force", "clusters"] = "run"
    executor: str = ""
    config: str = ""
    count: int = 0
    noise: dict[str, int | bool] = {}
    seed: int = 0
    wanted: list[Row] = []
    choices: list[Choice] = []
    order: list[EventKey] = []
    timeout_s: float = 0.0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request: outcomes, or one line that says why there are none.

    Parameters
    ----------
    choices : list of Choice
        Of the recorded execution, whose outcome is in `rows`.
    clusters : dict of str to list of str
        Members of each cluster, in SSA order.
    diverged : str
        Why a replay or a total order could not be followed.
    seconds : float
        Time that the worker spent on the request, building included.
    counters : dict of str to float
        Counters of the executor since the worker started.
    """

    rows: list[Row] = []
    choices: list[Choice] = []
    clusters: dict[str, list[str]] = {}
    diverged: str = ""
    refused: str = ""
    unavailable: str = ""
    versions: dict[str, str] = {}
    seconds: float = 0.0
    counters: dict[str, float] = {}


def histogram(test: LitmusTest, reply: Reply) -> dict[Outcome, int]:
    """Histogram of a reply: its rows as outcomes of `test`."""
    found: dict[Outcome, int] = {}
    for row in reply.rows:
        values = {name: TORN if v is None else _frozen(v) for name, v in row.values.items()}
        outcome = Outcome.of(test, values, Status(row.status))
        found[outcome] = found.get(outcome, 0) + row.count
    return found


def _frozen(parts: list[int | list[int]]) -> Value:
    ints = [part for part in parts if isinstance(part, int)]
    if len(ints) == len(parts) and parts:
        return tuple(ints)
    return tuple(tuple(part) for part in parts if isinstance(part, list))


def rows(histogram: Mapping[Outcome, int]) -> list[Row]:
    """Rows of a histogram; the inverse of `histogram`."""
    return [
        Row(
            {
                name: None
                if value is TORN
                else [list(part) if isinstance(part, tuple) else part for part in value]
                for name, value in outcome.values
            },
            count,
            str(outcome.status),
        )
        for outcome, count in histogram.items()
    ]


def encoded(message: msgspec.Struct) -> bytes:
    """The bytes of one message."""
    data = msgspec.json.encode(message)
    return _LENGTH.pack(len(data)) + data


def write(stream: IO[bytes], message: msgspec.Struct) -> None:
    """Write one message to a stream."""
    stream.write(encoded(message))
    stream.flush()


def read_exactly(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, fewer only if the stream ends."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_start(stream: IO[bytes]) -> Start | None:
    """Read the start of a forked worker; None at the end of the stream."""
    body = _read(stream)
    return None if body is None else msgspec.json.decode(body, type=Start)


def read_request(stream: IO[bytes]) -> Request | None:
    """Read the next request; None at the end of the stream."""
    body = _read(stream)
    return None if body is None else msgspec.json.decode(body, type=Request)


def _read(stream: IO[bytes]) -> bytes | None:
    """The body of the next message; None if the stream ends before it is complete."""
    header = read_exactly(stream, _LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    body = read_exactly(stream, length)
    return body if len(body) == length else None


def complete_reply(received: bytearray) -> Reply | None:
    """The reply that was received; None if it is not complete yet."""
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if len(received) < _LENGTH.size + length:
        return None
    return msgspec.json.decode(memoryview(received)[_LENGTH.size :], type=Reply)
