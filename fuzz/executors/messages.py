"""What goes between the program and a worker: plain records, length-prefixed.

The test travels as the bytes of the corpus format, outcomes as lists of ints,
all of it as JSON: a worker may live in another environment, with another
version of everything.
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING, Final, Literal

import msgspec

from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.fuzz.executors.protocol import Choice, EventKey  # noqa: TC001 - of a schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value

NO_SCHEDULES: Final = "schedules"
"""What an executor that is not `Schedulable`, nor `Forceable`, refuses."""
NO_CLUSTERS: Final = "clusters of its own"
"""What one that is not `Clustered` refuses."""
MAX_MESSAGE: Final = 64 << 20
_LENGTH: Final = struct.Struct(">I")


class Row(msgspec.Struct, frozen=True):
    """One outcome: its values by name, None for torn, and how it ended."""

    values: dict[str, list[int | list[int]] | None]
    count: int
    status: str = Status.COMPLETED


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Run a test; or, without a test, tell the versions, if `config` can run there.

    `noise` holds the fields of `Noise`. What else may be asked (`task`) is for a
    `Schedulable` test: *record* executions, at most `count` of them, until one
    shows an outcome of `wanted`; *replay* `choices`. Of a `Forceable` one: *force*
    `order`. `timeout_s` ends a record or an order. Of a `Clustered` one: its *clusters*.
    `executor` asks for another than the worker's own, of the same environment.
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
    """What came of a request: rows, or one line saying why there are none.

    `choices` are those of a recorded execution, the one in `rows`; `diverged`
    says why a replay or an order could not be followed. `clusters` are the
    members of each cluster, in SSA order.
    `seconds` is the time that the worker spent on it, building included;
    `counters` what the executor has counted since the worker started.
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
    """The reply's rows as outcomes of `test`."""
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
    """Outcomes as rows; the inverse of `histogram`."""
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


def write(stream: IO[bytes], message: msgspec.Struct) -> None:
    """Send one message."""
    data = msgspec.json.encode(message)
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:  # an unbuffered pipe takes what fits
        rest = rest[stream.write(rest) :]
    stream.flush()


def read_exactly(stream: IO[bytes], size: int) -> bytes:
    """`size` bytes, or fewer if the stream ends."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_request(stream: IO[bytes]) -> Request | None:
    """The next request, None at the end of the stream."""
    header = read_exactly(stream, _LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    return msgspec.json.decode(read_exactly(stream, length), type=Request)


def read_reply(stream: IO[bytes]) -> Reply | None:
    """The next reply, None if the worker ended before it was complete."""
    header = read_exactly(stream, _LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    body = read_exactly(stream, length)
    return msgspec.json.decode(body, type=Reply) if len(body) == length else None
