"""Worker deaths (crashes and timeouts), grouped: deaths that look alike are one finding.

A campaign minimizes exceptions alone (`raised`): chance decides whether and where damaged memory
ends a process (`litmusfuzz minimize` reduces what ends each). The op that damaged the memory may be
any op of the test, so that no two deaths look the same. A group has one class of configurations,
one message, and one op in common: the op that most of the unexplained deaths have, again and again
until every death is explained. Reads are in every test and explain nothing, unless there is nothing
else.

Who belongs to a group thus depends on the other deaths, and groups are for people only. A death is
*known* by itself, by its message and all kernels of its test: the same in every campaign.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.process_log import OMITTED
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.finding.canonical import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from litmusfuzz.reports.events import FindingKind, WorkerDied


_FAILED: Final = f"{SystemFailed.__module__}.{SystemFailed.__qualname__}: "


@dataclass(frozen=True, slots=True)
class DeathGroup:
    """Worker deaths that look alike; the first of them stands for all."""

    kind: FindingKind
    executor: str
    executor_class: str
    message: str
    known: str
    op: str
    deaths: tuple[WorkerDied, ...]

    @property
    def ops(self) -> dict[str, tuple[str, ...]]:
        """For each key of its deaths, that of the first death first, the ops it is made of."""
        return {key_of_death(each): tuple(sorted(_ops(each))) for each in self.deaths}

    @property
    def cause(self) -> str:
        """What its deaths have in common."""
        return death_cause(self.deaths[0].message, self.op)


def key_of_death(death: WorkerDied) -> str:
    """Key of a death: the same in every campaign, whatever else happens there."""
    return death_key(death.kind, death.executor_class, death.message, death.ops)


def death_key(kind: str, executor_class: str, message: str, ops: Iterable[str]) -> str:
    """Key of a death of a kind with a message, on a test with those kernel classes."""
    text = "\0".join((kind, executor_class, message_pattern(message), *sorted(telling_ops(ops))))
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def death_cause(message: str, op: str) -> str:
    """What deaths with a message, whose tests have an op in common, are called in reports."""
    return f"{message} + {op}"


def telling_ops(ops: Iterable[str]) -> frozenset[str]:
    """Kernel classes that may explain a death, of those of its test."""
    there = frozenset(ops)
    return there - {"read"} or there or frozenset({"no ops"})


def group_deaths(
    deaths: Iterable[WorkerDied], known: Callable[[WorkerDied], str]
) -> list[DeathGroup]:
    """Group all deaths by their looks, in the order in which they came.

    Deaths that are `known`, for one reason, are apart from new ones.
    """
    groups: dict[tuple[FindingKind, str, str, str, str], list[WorkerDied]] = defaultdict(list)
    for each in deaths:
        message = message_pattern(each.message)
        groups[each.kind, each.executor, each.executor_class, message, known(each)].append(each)
    return [
        DeathGroup(*look, op, explained)
        for look, group in groups.items()
        for op, explained in _explained(group)
    ]


def _explained(deaths: Sequence[WorkerDied]) -> Iterator[tuple[str, tuple[WorkerDied, ...]]]:
    """The op that most deaths have, with these deaths, again and again until none is left.

    In time that grows with the number of ops of all deaths: each may have an op of its own.
    """
    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(deaths):
        for op in _ops(each):
            having[op].append(place)
    numbers = {op: len(places) for op, places in having.items()}
    left = set(range(len(deaths)))
    # With the number of deaths that an op had when it was put in: at most fewer are left.
    queue = [(-number, op) for op, number in numbers.items()]
    heapify(queue)
    while left:
        number, op = heappop(queue)
        if -number > numbers[op]:
            heappush(queue, (-numbers[op], op))
            continue
        places = [place for place in having[op] if place in left]
        left.difference_update(places)
        for place in places:
            for other in _ops(deaths[place]):
                numbers[other] -= 1
        yield op, tuple(deaths[place] for place in places)


def _ops(death: WorkerDied) -> frozenset[str]:
    return telling_ops(death.ops)


def raised(message: str) -> str:
    """Type and place of the exception with which a traced system ended a worker; "" if it did not.

    What raises it once does so each time, on any machine.
    """
    _, failed, said = message.partition(_FAILED)
    return said if failed else ""


def message_pattern(message: str) -> str:
    """A worker's last message without the numbers that differ each time."""
    how, colon, said = message.partition(":")
    if raised(message):
        how = "exit 1"  # a process that lingers has no exit code yet
    pattern = how + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", said)
    return OMITTED.join(line[:120] for line in pattern.split(OMITTED))
