"""Messages between the program and its workers: length-prefixed JSON records.

A test is the fields of its file, an outcome lists of ints: a worker may run in another
environment, with other versions of all packages.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.corpus.schedule import Decision  # noqa: TC001 - records have it
from litmusfuzz.fuzz.executors.protocol import Choice, ChosenClusters, EventKey, Explored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value

NO_SCHEDULES: Final = "schedules"
"""Name by which an executor refuses tasks of `Schedulable` and `Forceable`."""
NO_PACKS: Final = "packs"
"""Name by which an executor that is not `Packing` refuses a pack."""
NO_CLUSTERS: Final = "clusters of its own"
"""Name by which an executor that is not `Clustered` refuses the task."""
MAX_REPLY_BYTES: Final = 16 << 20
"""Length of a reply, at most. It takes about twenty times as much memory when it is decoded."""
MAX_TEXT: Final = 1 << 16
"""Length of a name or a line in a reply, at most."""
MAX_CLUSTERINGS: Final = 4096
"""Clusterings in a reply, at most: one for each copy of a test (`Noise.copies`)."""
MAX_NAMED: Final = 100
"""Versions and counters in a reply, at most: each event of a campaign may hold them."""
MAX_NAME: Final = 256
"""Length of such a name, and of a version, at most."""
_LENGTH: Final = struct.Struct(">I")

# What a reply may hold. JSON has numbers that no field of a record or a file can take.
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Natural = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
_LINE: Final = r"\A[^\x00-\x1f\x7f]*\Z"
Text = Annotated[str, Meta(max_length=MAX_TEXT, pattern=_LINE)]
Name = Annotated[str, Meta(max_length=MAX_NAME, pattern=_LINE)]
Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
Task = Literal["run", "record", "replay", "force", "explore", "sample", "follow", "clusters"]


class BadReply(ValueError):
    """A worker's reply is not what was asked for; the message says why, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message[:1_000])  # it may repeat what a worker sent


class Row(msgspec.Struct, frozen=True):
    """An outcome and its count: values by name, None for torn, and the status."""

    values: dict[Text, list[Int64 | list[Int64]] | None]
    count: Count
    status: Status = Status.COMPLETED


class Clustering(msgspec.Struct, frozen=True):
    """The fields of `ChosenClusters`."""

    clusters: list[list[Text]] = []
    lost: list[tuple[Text, Text]] = []
    problem: Text = ""
    in_functions: bool = False


class Exploration(msgspec.Struct, frozen=True):
    """The fields of `Explored`; `schedules` has one for each row of the reply, in their order."""

    schedules: list[list[Decision]]
    executions: Natural
    complete: bool
    whole: bool


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """First message to a new worker, which a fork server has forked.

    Parameters
    ----------
    executor : str
    python : str
        Interpreter to start in place of the forked process; "" for none.
    memory_bytes : int
        Limit on the private memory of the process.
    folder : str
        Working directory; "" to keep the fork server's.
    variables : bytes
        All environment variables, as ``NAME=VALUE`` with a zero byte after each: they need
        not be text.
    """

    executor: str
    python: str
    memory_bytes: int
    folder: str
    variables: bytes

    @classmethod
    def of(
        cls, executor: str, memory_bytes: int, variables: Mapping[str, str], python: str = ""
    ) -> Start:
        """The start of a worker in the present working directory."""
        try:
            folder = os.fsencode(Path.cwd()).decode()
        except (FileNotFoundError, UnicodeDecodeError):
            folder = ""
        listed = b"".join(os.fsencode(f"{n}={v}") + b"\0" for n, v in variables.items())
        return cls(
            executor=executor,
            python=python,
            memory_bytes=memory_bytes,
            folder=folder,
            variables=listed,
        )

    def environment(self) -> dict[str, str]:
        """The environment variables, by name."""
        pairs = (os.fsdecode(each).partition("=") for each in self.variables.split(b"\0")[:-1])
        return {name: value for name, _, value in pairs}


class Packed(msgspec.Struct, frozen=True):
    """A test of a pack, as in `Request`, and the seed of its noise."""

    test: dict[str, Any]
    seed: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A task for a worker; without a test, a request for versions.

    Parameters
    ----------
    test : dict
        The fields of the test's file; empty to ask for the versions, and whether `config` can run.
    task : str
        *run*; for a `Schedulable` test also *record* (execute up to `count` times, until an outcome
        is in `wanted`) and *replay* (repeat `choices`); for a `Forceable` one *force* (follow
        `order`); for an `Explorable` one *explore* (begin up to `count` executions of the search
        with that bound, of which there were `done`), *sample* (`count` executions that `scheduler`
        chooses) and *follow* (`schedule`); for a `Clustered` one *clusters*.
    executor : str
        Another executor of the same environment; "" for the worker's own.
    noise : dict
        Fields of `Noise`.
    timeout_s : float
        Limit for *record* and *force*.
    preemptions : int, optional
        Bound of *explore*; None for none.
    pack : list of Packed
        In place of `test` and `seed`, for an executor that is `Packing`: tests to run together.
    survives : bool
        An exception of a traced system (`traced.failures.SystemFailed`) is what the reply says, and
        does not end the worker.
    number : int
        Of the request; its reply has the same. `Worker` sets it.
    """

    number: int = 0
    test: dict[str, Any] = {}
    task: Task = "run"
    executor: str = ""
    config: str = ""
    count: int = 0
    noise: dict[str, int | bool] = {}
    seed: int = 0
    pack: list[Packed] = []
    wanted: list[Row] = []
    choices: list[Choice] = []
    order: list[EventKey] = []
    preemptions: int | None = None
    done: int = 0
    scheduler: str = ""
    schedule: list[Decision] = []
    timeout_s: float = 0.0
    survives: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a request: outcomes, or one line that says why there are none.

    Parameters
    ----------
    number : int
        Of the request.
    packed : list of list of Row
        For each test of a pack, its outcomes.
    choices : list of Choice
        Of the recorded execution, whose outcome is in `rows`.
    explored : Exploration, optional
        Of a search or a sample; its outcomes are in `rows`.
    clusterings : list of Clustering
        The clusters that the executor's own clusterer chose; of a run, those that it executed.
    diverged : str
        Why a replay or a total order could not be followed.
    failed : str
        Type and place of an exception of a traced system, for a request that survives it.
    last : bool
        The process must answer no other request (`TooLarge`).
    drivers : dict of str to str
        Devices on which the test ran, with their drivers (`Drives`).
    seconds : float
        Time that the worker spent on the request, building included.
    counters : dict of str to float
        Counters of the executor since the worker started.
    """

    number: int = 0
    rows: list[Row] = []
    packed: list[list[Row]] = []
    choices: list[tuple[Natural, Natural, Natural]] = []
    explored: Exploration | None = None
    clusterings: Annotated[list[Clustering], Meta(max_length=MAX_CLUSTERINGS)] = []
    diverged: Text = ""
    failed: Text = ""
    refused: Text = ""
    unavailable: Text = ""
    last: bool = False
    versions: Annotated[dict[Name, Name], Meta(max_length=MAX_NAMED)] = {}
    drivers: Annotated[dict[Name, Name], Meta(max_length=MAX_NAMED)] = {}
    seconds: Number = 0.0
    counters: Annotated[dict[Name, Number], Meta(max_length=MAX_NAMED)] = {}


def histogram(test: LitmusTest, reply: Reply) -> dict[Outcome, int]:
    """Histogram of a reply: its rows as outcomes of `test`."""
    found: dict[Outcome, int] = {}
    for row in reply.rows:
        values = {name: TORN if v is None else _frozen(v) for name, v in row.values.items()}
        outcome = Outcome.of(test, values, row.status)
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
            outcome.status,
        )
        for outcome, count in histogram.items()
    ]


def clusterings(chosen: Iterable[ChosenClusters]) -> list[Clustering]:
    """Clusterings as a reply has them; the inverse of `chosen_clusters`."""
    return [
        Clustering(
            [list(each) for each in one.clusters], list(one.lost), one.problem, one.in_functions
        )
        for one in chosen
    ]


def exploration(found: Explored) -> Exploration:
    """What a reply has of a search, beside the rows of its histogram."""
    schedules = [list(found.schedules[outcome]) for outcome in found.histogram]
    return Exploration(schedules, found.executions, found.complete, found.whole)


def explored(test: LitmusTest, reply: Reply) -> Explored:
    """The search of a reply; the inverse of `exploration`."""
    assert reply.explored is not None
    found = histogram(test, reply)
    schedules = map(tuple, reply.explored.schedules)
    return Explored(
        found,
        dict(zip(found, schedules, strict=True)),
        reply.explored.executions,
        reply.explored.complete,
        reply.explored.whole,
    )


def chosen_clusters(reply: Reply) -> tuple[ChosenClusters, ...]:
    """Clusterings of a reply."""
    return tuple(
        ChosenClusters(
            tuple(map(tuple, each.clusters)), tuple(each.lost), each.problem, each.in_functions
        )
        for each in reply.clusterings
    )


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


def take_reply(received: bytearray, *, another: bool = False) -> Reply | None:
    """Remove the reply that was received; None if it is not complete yet.

    Parameters
    ----------
    received : bytearray
    another : bool
        True if the next reply may follow it.

    Raises
    ------
    BadReply
        If no reply begins like that, or more was received than is due.
    """
    if len(received) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(received)
    if length > MAX_REPLY_BYTES:
        raise BadReply(f"its length is {length:,} bytes, of at most {MAX_REPLY_BYTES:,}")
    end = _LENGTH.size + length
    if len(received) < end:
        return None
    if len(received) > end and not another:
        raise BadReply("more bytes follow it")
    body = bytes(received[_LENGTH.size : end])
    del received[:end]
    try:
        return msgspec.json.decode(body, type=Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReply(str(error)) from None
