"""Which values of settings, which ops, and which pairs of them, a campaign has run graphs with.

A graph counts for a configuration once its outcomes were judged. What a configuration refused, or
did not finish, reaches no pair.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING

from litmusfuzz.reports.report import Reached, SettingCoverage, ValueTotals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.reports.events import Space

Value = tuple[str, "Setting"]
Pair = tuple[Value, Value]


class ReachedSettings:
    """Graphs of one executor by value of its settings, and by pair of values.

    Parameters
    ----------
    executor : str
    space : Space
    """

    def __init__(self, executor: str, space: Space) -> None:
        self.executor = executor
        self._values = [(s, value) for s, values in space.values.items() for value in values]
        self._paired = {value for value in self._values if value[0] not in space.seldom}
        impossible = {((s, v), (other, w)) for s, v, other, w in space.impossible}
        self._possible = [pair for pair in _pairs(space) if pair not in impossible]
        self._points: dict[str, Mapping[str, Setting]] = {}
        self._new_graphs = Counter[str]()
        """By configuration: graphs that the pairs do not have yet. A graph has hundreds of pairs,
        so that they are counted for many graphs at once."""
        self._pairs = Counter[Pair]()
        self._graphs = Counter[Value]()
        self._us = Counter[Value]()
        self._takes = frozenset(space.ops)
        self._ops: set[str] = set()
        self._op_pairs: set[tuple[str, str]] = set()
        self._ops_in: dict[str, set[str]] = {}
        """By configuration: ops of graphs that were judged."""

    def add_configuration(self, name: str, point: Mapping[str, Setting]) -> None:
        """Add a configuration; without a point it reaches nothing."""
        if point:
            self._points[name] = point

    def executed(self, name: str, us: int, ops: Mapping[str, int], *, judged: bool) -> None:
        """Add a test with these ops that ran in a configuration for that long."""
        for value in self._points.get(name, {}).items():
            self._graphs[value] += judged
            self._us[value] += us
        self._new_graphs[name] += judged
        if judged:
            of = sorted(self._takes.intersection(ops))
            self._ops.update(of)
            self._op_pairs.update(combinations(of, 2))
            self._op_pairs.update((op, op) for op in of if ops[op] > 1)
            self._ops_in.setdefault(name, set()).update(of)

    def coverage(self) -> SettingCoverage:
        """What was reached so far."""
        for name, graphs in self._new_graphs.items():
            for pair in combinations(self._points.get(name, {}).items(), 2):
                self._pairs[pair] += graphs
        self._new_graphs.clear()
        missing = [pair for pair in self._possible if not self._pairs[pair]]
        reached = [pair for pair in self._possible if self._pairs[pair]]
        rarest = min(reached, key=lambda pair: self._pairs[pair], default=None)
        op_values = {
            (op, value)
            for name, ops in self._ops_in.items()
            for op, value in product(ops, self._paired & self._points.get(name, {}).items())
        }
        takes = len(self._takes)
        return SettingCoverage(
            executor=self.executor,
            possible=len(self._possible),
            not_reached=tuple(_text(pair) for pair in missing),
            rarest=None if rarest is None else _text(rarest),
            rarest_graphs=0 if rarest is None else self._pairs[rarest],
            values=tuple(
                ValueTotals(
                    *(setting, _value_text(value), self._graphs[setting, value]),
                    round(self._us[setting, value] / 1e6, 3),
                )
                for setting, value in self._values
            ),
            ops=Reached(len(self._ops), takes),
            op_pairs=Reached(len(self._op_pairs), takes * (takes + 1) // 2),
            op_values=Reached(len(op_values), takes * len(self._paired)),
        )


def _pairs(space: Space) -> Iterator[Pair]:
    paired = [each for each in space.values.items() if each[0] not in space.seldom]
    for (first, these), (second, those) in combinations(paired, 2):
        yield from product(((first, each) for each in these), ((second, each) for each in those))


def _text(pair: Pair) -> tuple[str, str]:
    (first, one), (second, other) = pair
    return f"{first}={_value_text(one)}", f"{second}={_value_text(other)}"


def _value_text(value: Setting) -> str:
    """A value as names of configurations have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
