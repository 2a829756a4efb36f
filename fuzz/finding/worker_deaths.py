"""Worker deaths (crashes and timeouts) as findings: their keys, and their groups.

Chance decides whether and where damaged memory ends a process, and the op that damaged it may be
any op of the test. So campaigns minimize only deaths by an exception (`exception_of`), though
`litmusfuzz minimize` reduces the test of any. Reports show the others in groups (`group_deaths`).

An *op* is a kernel class here (`WorkerDied.ops`): ops that share a kernel are one. The *telling
ops* of a death are those of its test that may explain it: all but reads, which are in every test,
unless there is no other op.

The deaths of a *group* have the same

- kind: crash or timeout;
- executor, and class of configurations;
- message, but for its numbers (`message_pattern`);
- reason why they are known, if they are;
- telling op, one at least. Of the deaths that are the same so far and have no group yet, the op
  that most of them have makes the next group, until each death has one.

A death is *known* by its *key*, which depends on the death alone: on its kind, its class of
configurations, its message pattern and its telling ops. So the key is the same in every campaign,
while groups depend on the other deaths.

`store.reported_deaths` asks for keys and groups; `cli.known` checks them in entries for the
known-findings file; `campaign.crash_files`, `campaign.lanes.crashes` and
`commands.minimize_crash` ask `exception_of`.
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
_MAX_LINE: Final = 120
"""Characters of each line in a pattern. Keys depend on it, and stand in files."""


@dataclass(frozen=True, slots=True)
class DeathGroup:
    """Worker deaths that look alike; the first of them stands for all.

    Parameters
    ----------
    kind : FindingKind
    executor : str
    executor_class : str
    pattern : str
        The `message_pattern` that all deaths have.
    known : str
        Why all deaths are known, or "" if none is.
    op : str
        The telling op that all deaths have in common.
    deaths : tuple of WorkerDied
        In the order in which they came.
    """

    kind: FindingKind
    executor: str
    executor_class: str
    pattern: str
    known: str
    op: str
    deaths: tuple[WorkerDied, ...]

    @property
    def ops(self) -> dict[str, tuple[str, ...]]:
        """The telling ops of each death, by its key; the first death's key comes first."""
        return {key_of_death(death): tuple(sorted(_ops(death))) for death in self.deaths}

    @property
    def cause(self) -> str:
        """What the deaths have in common, as reports say it."""
        return death_cause(self.deaths[0].message, self.op)


def key_of_death(death: WorkerDied) -> str:
    """Key of a death, from its event."""
    return key_from_parts(death.kind, death.executor_class, death.message, death.ops)


def key_from_parts(kind: str, executor_class: str, message: str, ops: Iterable[str]) -> str:
    """Key of a death of a kind with a message, on a test with these ops, as a report has them."""
    text = "\0".join((kind, executor_class, message_pattern(message), *sorted(telling_ops(ops))))
    # The version of all keys of findings: those of deaths stand in the same files.
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def death_cause(message: str, op: str) -> str:
    """The cause, in reports, of deaths with a message whose tests have an op in common."""
    return f"{message} + {op}"


def telling_ops(ops: Iterable[str]) -> frozenset[str]:
    """The ops of a test that may explain a death on it, as above; "no ops" if it has none."""
    every = frozenset(ops)
    return every - {"read"} or every or frozenset({"no ops"})


def group_deaths(
    deaths: Iterable[WorkerDied], known: Callable[[WorkerDied], str]
) -> list[DeathGroup]:
    """Group all deaths by what they look like.

    Groups that differ in more than the op are in the order of their first deaths; those that differ
    in the op alone are in the order of their sizes, the largest first.

    Parameters
    ----------
    deaths : iterable of WorkerDied
    known : callable
        Why a death is known, or "": deaths that are known for one reason are apart from others.
    """
    alike: dict[tuple[FindingKind, str, str, str, str], list[WorkerDied]] = defaultdict(list)
    for death in deaths:
        pattern = message_pattern(death.message)
        look = (death.kind, death.executor, death.executor_class, pattern, known(death))
        alike[look].append(death)
    return [
        DeathGroup(*look, op=op, deaths=having_op)
        for look, members in alike.items()
        for op, having_op in _by_common_op(members)
    ]


def _by_common_op(deaths: Sequence[WorkerDied]) -> Iterator[tuple[str, tuple[WorkerDied, ...]]]:
    """The op that most deaths have, with these deaths, again and again until none is left.

    Takes time in proportion to the ops of all deaths, but for a logarithm: each death may have an
    op of its own.
    """
    indices: defaultdict[str, list[int]] = defaultdict(list)  # of the deaths that have an op
    for index, death in enumerate(deaths):
        for op in _ops(death):
            indices[op].append(index)
    count_left = {op: len(having) for op, having in indices.items()}
    left = set(range(len(deaths)))
    # By the negated count: most deaths first. A count in the heap may be stale, never too low.
    heap = [(-count, op) for op, count in count_left.items()]
    heapify(heap)
    while left:
        negated, op = heappop(heap)
        if -negated > count_left[op]:
            heappush(heap, (-count_left[op], op))
            continue
        chosen = [index for index in indices[op] if index in left]
        left.difference_update(chosen)
        for index in chosen:
            for other in _ops(deaths[index]):
                count_left[other] -= 1
        yield op, tuple(deaths[index] for index in chosen)


def _ops(death: WorkerDied) -> frozenset[str]:
    return telling_ops(death.ops)


def exception_of(message: str) -> str:
    """Type and place of the exception with which a traced system ended a worker; "" if it did not.

    A traced system, such as JAX, makes a function of Python code by executing it once with
    stand-ins: what raises an exception once does so each time, on any machine.
    """
    _, failed, exception = message.partition(_FAILED)
    return exception if failed else ""


def message_pattern(message: str) -> str:
    """A worker's last message, ``signal 11: Check failed: 3 != 4``, without changing numbers.

    The numbers after the colon differ each time: ``signal 11: Check failed: N != N``.
    """
    ending, colon, text = message.partition(":")
    if exception_of(message):
        # A process that lingers has no exit code yet, and may be killed as a timeout, so that the
        # ending would differ between runs.
        ending = "exit 1"
    pattern = ending + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", text)
    return OMITTED.join(line[:_MAX_LINE] for line in pattern.split(OMITTED))
