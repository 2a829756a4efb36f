"""Workers that ended on a test, told apart: one finding for all that look alike.

A crash is not minimized (each try costs a framework's start), and what damaged the memory
may have been any op of the graph, so that no two look the same. Alike are those of one
class of configurations, that ended with the same words, and have an op in common: of what
is not yet explained the op that most of them have, again and again until all are. Reads
are in every graph and explain nothing, unless there is nothing else.

So who is alike depends on who else is there, and is for people. What is *known* is each death on
its own, by its words and all kernels of its test: in every night the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.canonical import VERSION

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Alike:
    """Deaths that look like one; the first of them stands for all."""

    sort: str
    executor_class: str
    words: str
    known: str
    op: str
    deaths: tuple[sqlite3.Row, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of its deaths, each once; that of the first comes first."""
        return tuple(dict.fromkeys(map(key_of_death, self.deaths)))


def key_of_death(death: sqlite3.Row) -> str:
    """What it is known by: the same in every night, whatever else that shows."""
    words = _words(death["message"])
    text = "\0".join((death["sort"], death["class"], words, *sorted(_ops(death))))
    return f"{VERSION}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def alike(deaths: Iterable[sqlite3.Row], known: Callable[[sqlite3.Row], str]) -> list[Alike]:
    """All of them, by what they look like; in the order in which they came.

    What is `known`, for a reason, stays apart from what is new.
    """
    groups: dict[tuple[str, str, str, str], list[sqlite3.Row]] = defaultdict(list)
    for each in deaths:
        words = _words(each["message"])
        groups[each["sort"], each["class"], words, known(each)].append(each)
    found = []
    for kind, group in groups.items():
        left: Sequence[sqlite3.Row] = group
        while left:
            ops = Counter(op for each in left for op in _ops(each))
            op = min(ops, key=lambda op: (-ops[op], op))
            found.append(Alike(*kind, op, tuple(each for each in left if op in _ops(each))))
            left = [each for each in left if op not in _ops(each)]
    return found


def _ops(death: sqlite3.Row) -> frozenset[str]:
    ops = frozenset(json.loads(death["ops"]))
    return ops - {"read"} or ops or frozenset({"no ops"})


def _words(message: str) -> str:
    """What a worker's last words say, without the numbers that differ each time."""
    how, colon, said = message.partition(":")
    return (how + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", said))[:120]
