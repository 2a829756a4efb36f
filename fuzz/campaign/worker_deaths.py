"""Worker deaths (crashes and timeouts), grouped: deaths that look alike are one finding.

A crash is not minimized, because each attempt costs a process. The op that damaged the memory may
be any op of the test, so that no two deaths look the same. A group has one class of configurations,
one message, and one op in common: the op that most of the unexplained deaths have, again and again
until every death is explained. Reads are in every test and explain nothing, unless there is nothing
else.

Who belongs to a group thus depends on the other deaths, and groups are for people only. A death is
*known* by itself, by its message and all kernels of its test: the same in every campaign.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.canonical import VERSION
from litmusfuzz.fuzz.executors.process_log import OMITTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from litmusfuzz.reports.events import FindingKind, WorkerDied


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
    def keys(self) -> tuple[str, ...]:
        """Keys of its deaths, each once; that of the first death comes first."""
        return tuple(dict.fromkeys(map(key_of_death, self.deaths)))


def key_of_death(death: WorkerDied) -> str:
    """Key of a death: the same in every campaign, whatever else happens there."""
    message = _message_pattern(death.message)
    text = "\0".join((death.kind, death.executor_class, message, *sorted(_ops(death))))
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def group_deaths(
    deaths: Iterable[WorkerDied], known: Callable[[WorkerDied], str]
) -> list[DeathGroup]:
    """Group all deaths by their looks, in the order in which they came.

    Deaths that are `known`, for one reason, are apart from new ones.
    """
    groups: dict[tuple[FindingKind, str, str, str, str], list[WorkerDied]] = defaultdict(list)
    for each in deaths:
        message = _message_pattern(each.message)
        groups[each.kind, each.executor, each.executor_class, message, known(each)].append(each)
    found = []
    for look, group in groups.items():
        left: Sequence[WorkerDied] = group
        while left:
            ops = Counter(op for each in left for op in _ops(each))
            op = min(ops, key=lambda op: (-ops[op], op))
            found.append(DeathGroup(*look, op, tuple(each for each in left if op in _ops(each))))
            left = [each for each in left if op not in _ops(each)]
    return found


def _ops(death: WorkerDied) -> frozenset[str]:
    ops = frozenset(death.ops)
    return ops - {"read"} or ops or frozenset({"no ops"})


def _message_pattern(message: str) -> str:
    """A worker's last message without the numbers that differ each time."""
    how, colon, said = message.partition(":")
    pattern = how + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", said)
    return OMITTED.join(line[:120] for line in pattern.split(OMITTED))
