"""Checks of a worker's reply against its request, as strict as those of a file from a stranger.

A worker runs a framework that may have damaged its memory, or an executor that somebody else has
written. A reply that passes is complete, and is about the test that was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from litmusfuzz.corpus.model import CONTROL, MAX_CAPACITY, LitmusTest
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.schedule import node_of
from litmusfuzz.corpus.textfile import read_plain
from litmusfuzz.fuzz.executors.messages import BadReply
from litmusfuzz.fuzz.executors.protocol import noise_from

if TYPE_CHECKING:
    from collections.abc import Set

    from litmusfuzz.fuzz.executors.messages import Clustering, Exploration, Reply, Request, Row

_REASONS: Final = ("refused", "unavailable", "diverged", "failed")
MAX_CHOICES: Final = 1_000_000_000
"""Events among which a choice is made, fewer than; as in a file."""
_SHOWN: Final = 80
"""Characters, at most, of a wrong name in a message."""


def check(request: Request, test: LitmusTest | tuple[LitmusTest, ...] | None, reply: Reply) -> None:
    """Check that a reply answers this request.

    Parameters
    ----------
    request : Request
    test : LitmusTest, tuple of LitmusTest, or None
        The test of the request, or the tests of a pack; None to read them from the request.
    reply : Reply

    Raises
    ------
    BadReply
        Naming what is wrong first.
    """
    if reply.number != request.number:
        raise BadReply(f"it has number {reply.number}, and the request {request.number}")
    if reply.seconds < 0:
        raise BadReply(f"its time is negative: {reply.seconds} s")
    if reply.failed and not request.survives:
        raise BadReply("it has failed, which nobody asked for")
    given = [name for name in _REASONS if getattr(reply, name)]
    fields = ("rows", "packed", "choices", "explored", "clusterings")
    results = [name for name in fields if getattr(reply, name)]
    expected = _expected(request) if not given else ()
    for name in (*given[1:], *(each for each in results if each not in expected)):
        first = f" beside {given[0]}" if given else ""
        raise BadReply(f"it has {name}{first}, which nobody asked for")
    if request.pack and not given:
        tests = test if isinstance(test, tuple) else [read_plain(e.test) for e in request.pack]
        if len(reply.packed) != len(tests):
            raise BadReply(f"it has {len(reply.packed):,} tests, of {len(tests)} asked")
        for packed, rows in zip(tests, reply.packed, strict=True):
            _check_rows(request, packed, structs.replace(reply, rows=rows))
    elif request.test and not given:
        assert test is None or isinstance(test, LitmusTest)
        test = test or read_plain(request.test)
        if request.task == "clusters":
            if len(reply.clusterings) != 1:
                raise BadReply(f"it has {len(reply.clusterings):,} clusterings, and not one")
        else:
            _check_rows(request, test, reply)
        for each in reply.clusterings:
            _check_clustering(test, each)


def _expected(request: Request) -> tuple[str, ...]:
    """Fields of a reply with results."""
    if request.pack:
        return ("packed",)
    if not request.test:
        return ()
    expected: dict[str, tuple[str, ...]] = {
        "clusters": ("clusterings",),
        "explore": ("rows", "explored", "clusterings"),
        "sample": ("rows", "explored", "clusterings"),
        "record": ("rows", "choices"),
        "run": ("rows", "clusterings"),
    }
    return expected.get(request.task, ("rows",))


def _check_rows(request: Request, test: LitmusTest, reply: Reply) -> None:
    sizes = {name: test.size_of(test.type_of(name).shape) for name in test.names}
    queues = {queue.name for queue in test.queues}
    resources = sizes.keys() - set(test.observe)
    valueless = {each.name for each in test.variables if each.init is None}
    for row in reply.rows:
        _check_names(row, sizes.keys(), resources)
        for name, value in row.values.items():
            if value == [] and name in valueless:
                continue
            elements = value if name in queues else [value]
            if elements and len(elements) > MAX_CAPACITY:
                raise BadReply(f"queue {name!r} has {len(elements):,} elements")
            for element in [] if value is None else elements or []:
                _check_size(name, element, sizes[name])
    for index, of, digest in reply.choices:
        if not (index < of < MAX_CHOICES and digest < 1 << 64):
            raise BadReply("a choice is out of range")
    total = sum(row.count for row in reply.rows)
    if reply.explored is not None:
        _check_exploration(request, test, reply, reply.explored)
    if request.task == "run":
        # A step more than asked for, at most; where executions are costly, fewer.
        most = max(request.count, 1) + noise_from(request.noise).copies - 1
        if not 1 <= total <= most:
            raise BadReply(f"its outcomes count {total:,} executions, of {request.count:,} asked")
    elif request.task in ("explore", "sample"):
        if reply.explored is None:
            raise BadReply("it has no search")
    elif request.task == "record" and not (reply.rows or reply.choices):
        pass  # no execution was wanted
    elif total != 1:
        raise BadReply(f"its outcomes count {total:,} executions, of one")
    elif request.task == "record" and not any(
        (row.values, row.status) == (each.values, each.status)
        for row in reply.rows
        for each in request.wanted
    ):
        raise BadReply("its outcome is none of those that were wanted")


def _check_exploration(
    request: Request, test: LitmusTest, reply: Reply, found: Exploration
) -> None:
    """Check that a search has a schedule for each outcome, and has gone on as far as asked."""
    outcomes = {(str(row.status), str(sorted(row.values.items()))) for row in reply.rows}
    if not len(found.schedules) == len(outcomes) == len(reply.rows):
        raise BadReply(f"it has {len(found.schedules):,} schedules of {len(outcomes):,} outcomes")
    if not request.done <= found.executions <= request.done + request.count:
        asked = f"of {request.count:,} asked"
        raise BadReply(f"its search has {found.executions:,} executions, {asked}")
    if sum(row.count for row in reply.rows) > found.executions:
        raise BadReply("its outcomes count more executions than its search")
    for each in (event for schedule in found.schedules for event in schedule):
        if not node_of(test, each):
            raise BadReply(f"the test has no node {each.node[:_SHOWN]!r}")
        text = f"{each.run}{each.instance}{each.point}"
        if CONTROL.search(text) or not 0 <= each.again < MAX_CHOICES:
            raise BadReply("an event of a schedule has another form")


def _check_names(row: Row, names: Set[str], resources: Set[str]) -> None:
    """Check which names an outcome has; which it may lack depends on how it ended."""
    wrong = sorted(row.values.keys() - names)
    if wrong:
        raise BadReply(f"the test has no {wrong[0][:_SHOWN]!r}")
    required = {Status.COMPLETED: names, Status.BLOCKED: resources, Status.FAILED: frozenset()}
    missing = sorted(required[row.status] - row.values.keys())
    if missing:
        raise BadReply(f"it has no value for {missing[0]!r} in a {row.status} outcome")
    if row.status is Status.FAILED and row.values:
        raise BadReply("a failed outcome has no values")


def _check_size(name: str, element: object, size: int) -> None:
    """Check one value, or one element of a queue."""
    if not isinstance(element, list) or not all(isinstance(each, int) for each in element):
        raise BadReply(f"the value of {name!r} has another form")
    if len(element) != size:
        raise BadReply(f"the value of {name!r} has {len(element)} numbers, not {size}")


def _check_clustering(test: LitmusTest, clustering: Clustering) -> None:
    members = [member for cluster in clustering.clusters for member in cluster]
    lost = [name for pair in clustering.lost for name in pair]
    wrong = sorted({*members, *lost} - {node.name for node in test.nodes})
    if wrong:
        raise BadReply(f"the test has no node {wrong[0][:_SHOWN]!r}")
    if len(set(members)) < len(members):
        raise BadReply("a node is in two clusters")
    if not all(clustering.clusters):
        raise BadReply("a cluster is empty")
    if clustering.problem and (members or lost):
        raise BadReply("it has clusters, and says that it does not know them")
