"""Tests that showed a forbidden outcome, and the findings that they show.

Such a test, on one executor in one configuration, has one state: pending, explained by a finding,
or unconfirmed. A worker that crashes throws doubt on what its process showed before: such a
*suspect* shows no finding until a fresh process shows it again. It showed a forbidden outcome all
the same, and counts as a test that did. All figures here are sums over the present states.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.struct import replace
from litmusfuzz.reports.open_tests import Pending, UncheckedTest, UnconfirmedTest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from litmusfuzz.reports.events import (
        Executions,
        FindingAdded,
        Run,
        SeenAgain,
        Unconfirmed,
    )


@dataclass(slots=True)
class Sightings:
    """The tests that show one finding: each with its configuration, a time, and its shards."""

    tests: dict[Hashable, tuple[str, float, frozenset[int]]] = field(default_factory=dict)
    configurations: Counter[str] = field(default_factory=Counter)
    shards: Counter[int] = field(default_factory=Counter)
    """Those in which the tests showed it."""
    _bounds: tuple[float, float] | None = None

    def add(self, test: Hashable, configuration: str, at: float, shards: frozenset[int]) -> None:
        """Add a test."""
        self.tests[test] = configuration, at, shards
        self.configurations[configuration] += 1
        self.shards.update(shards)
        if self._bounds is not None:
            first, last = self._bounds
            self._bounds = min(first, at), max(last, at)

    def remove(self, test: Hashable) -> None:
        """Remove a test."""
        configuration, _, shards = self.tests.pop(test)
        self.configurations[configuration] -= 1
        self.configurations += Counter()  # without zeros
        self.shards -= Counter(shards)
        self._bounds = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last time; there is at least one test."""
        if self._bounds is None:
            times = [at for _, at, _ in self.tests.values()]
            self._bounds = min(times), max(times)
        return self._bounds


@dataclass(frozen=True, slots=True)
class _Shown:
    """State of a test; `key` is the finding that it shows, "" if none is known.

    `line` also has how often it showed a forbidden outcome.
    """

    line: Pending
    family: str
    key: str = ""
    at: float = 0.0
    confirmed: bool = False
    """True if a fresh process showed it again."""
    attempts: int = 0
    """Fresh processes that did not."""
    tried: int = 0
    """Executions by these."""
    file: str = ""
    """Of the test as it was run, once a fresh process did not show it."""
    shards: frozenset[int] = frozenset()
    """Those in which it was executed, and in which it was found to show the finding."""
    unsettled: frozenset[str] = frozenset()
    """Keys of known causes: experiments could not decide whether they explain all of it."""

    @property
    def unconfirmed(self) -> bool:
        return bool(self.attempts) and not self.confirmed

    @property
    def is_believed(self) -> bool:
        return not self.line.suspect

    @property
    def is_pending(self) -> bool:
        return not self.unconfirmed and (self.line.suspect or not self.key)

    @property
    def is_sighting(self) -> bool:
        return bool(self.key) and self.is_believed and not self.unconfirmed


class ForbiddenTests:
    """All tests of a campaign that showed a forbidden outcome.

    Attributes
    ----------
    pending : dict of Run to Pending
        Suspects included.
    sightings : dict of str to Sightings
        By key of the finding.
    unconfirmed : dict of Run to UnconfirmedTest
        Tests that no fresh process has shown again.
    unchecked : dict of Run to UncheckedTest
        Tests that show a known cause, and perhaps something else: no experiment has decided that.
    by_configuration, by_family : Counter
        All tests by executor and configuration, and by executor and family.
    graphs : Counter of int
        By index, the executors on which the test showed a forbidden outcome; none is zero.
    graphs_of_family : Counter of str
        Of these tests, by family.
    """

    def __init__(self) -> None:
        self._tests: dict[Run, _Shown] = {}
        self._of_file: dict[str, Run] = {}
        self._minimized_in: dict[int, list[Run]] = {}
        self.pending: dict[Run, Pending] = {}
        self.sightings: dict[str, Sightings] = {}
        self.unconfirmed: dict[Run, UnconfirmedTest] = {}
        self.unchecked: dict[Run, UncheckedTest] = {}
        self.by_configuration: Counter[tuple[str, str]] = Counter()
        self.by_family: Counter[tuple[str, str]] = Counter()
        self.graphs: Counter[int] = Counter()
        self.graphs_of_family: Counter[str] = Counter()

    # --- events ------------------------------------------------------------------------

    def executed(self, shard: int, event: Executions) -> None:
        """A test showed a forbidden outcome; its event may name a known finding."""
        file = event.unreduced or ""
        line = Pending(
            *(event.index, event.executor, event.configuration, file, shard),
            seen=event.verdicts["forbidden"],
            executions=sum(event.verdicts.values()),
            model=event.model,
        )
        self._of_file[file] = event.run
        shown = _Shown(line, event.family, event.key or "", event.at, shards=frozenset((shard,)))
        self._set(event.run, shown)

    def seen_again(self, shard: int, event: SeenAgain) -> None:
        """A test shows a known finding; of several, the first counts."""
        if event.index is None:
            self.seen_without_execution(shard, event)
            return
        test = event.index, event.executor, event.configuration
        if not self._tests[test].key:
            shards = self._tests[test].shards | {shard}
            self._change(test, key=event.key, at=event.at, shards=shards)

    def finding_added(self, shard: int, event: FindingAdded) -> None:
        """A test shows a new finding, in a fresh process; of several, the last counts."""
        test = event.run
        line = replace(self._tests[test].line, suspect=False)
        shards = self._tests[test].shards | {shard}
        self._change(test, line=line, key=event.key, at=event.at, confirmed=True, shards=shards)

    def seen_without_execution(self, shard: int, event: SeenAgain | FindingAdded) -> None:
        """Clusters show a finding; each event counts."""
        sightings = self.sightings.setdefault(event.key, Sightings())
        sightings.add(object(), event.configuration, event.at, frozenset((shard,)))

    def doubt(self, test: Run) -> None:
        """The process that ran it has crashed."""
        shown = self._tests[test]
        if not shown.confirmed:
            self._change(test, line=replace(shown.line, suspect=True))

    def confirm(self, test: Run) -> None:
        """A fresh process shows it again, whatever others did."""
        self._change(test, line=replace(self._tests[test].line, suspect=False), confirmed=True)

    def refute(self, event: Unconfirmed) -> None:
        """A fresh process does not show it again; another one may."""
        old = self._tests[event.run]
        tried = old.tried + event.executions
        self._change(event.run, attempts=old.attempts + 1, tried=tried, file=event.file)

    def explain(self, test: Run) -> None:
        """Experiments have shown that a known cause explains all of it."""
        if test in self._tests:
            self._change(test, unsettled=frozenset())

    def leave_undecided(self, test: Run, cause: str) -> None:
        """No experiment could decide whether a known cause explains all of it."""
        if test in self._tests:
            self._change(test, unsettled=self._tests[test].unsettled | {cause})

    def minimize(self, shard: int, files: Iterable[str]) -> None:
        """A shard starts that minimizes the pending tests in these files."""
        for file in files:
            test = self._of_file[file]
            line = self._tests[test].line
            self._minimized_in.setdefault(shard, []).append(test)
            self._change(test, line=replace(line, attempts=line.attempts + 1, minimizing_in=shard))

    def end_shard(self, shard: int) -> None:
        """A shard has ended and minimizes nothing any more."""
        for test in self._minimized_in.pop(shard, ()):
            line = self._tests[test].line
            if line.minimizing_in == shard:
                self._change(test, line=replace(line, minimizing_in=None))

    # --- figures -----------------------------------------------------------------------

    def _change(self, test: Run, **changes: Any) -> None:
        self._set(test, replace(self._tests[test], **changes))

    def _set(self, test: Run, shown: _Shown) -> None:
        """Give a test a new state, in place of the one that it had, if any."""
        old = self._tests.get(test)
        if old is not None:
            self._count(old, -1)
            if old.is_sighting:
                self.sightings[old.key].remove(test)
        self._tests[test] = shown
        self._count(shown, 1)
        if shown.is_sighting:
            sightings = self.sightings.setdefault(shown.key, Sightings())
            sightings.add(test, shown.line.configuration, shown.at, shown.shards)
        if shown.is_pending:
            self.pending[test] = shown.line
        else:
            self.pending.pop(test, None)
        if shown.unconfirmed:
            line = shown.line
            numbers = line.seen, line.executions, shown.attempts, shown.tried
            self.unconfirmed[test] = UnconfirmedTest(*test, shown.file, *numbers, line.model)
        else:
            self.unconfirmed.pop(test, None)
        if shown.is_sighting and shown.unsettled:
            line, causes = shown.line, tuple(sorted(shown.unsettled))
            often = line.seen, line.executions
            self.unchecked[test] = UncheckedTest(*test, line.file, *often, line.model, causes)
        else:
            self.unchecked.pop(test, None)

    def _count(self, shown: _Shown, number: int) -> None:
        """Add 1 or -1 to all figures in which a test with this state counts."""
        line = shown.line
        self.by_configuration[line.executor, line.configuration] += number
        self.by_family[line.executor, shown.family] += number
        counted = line.index in self.graphs
        self.graphs[line.index] += number
        if not self.graphs[line.index]:
            del self.graphs[line.index]
        self.graphs_of_family[shown.family] += (line.index in self.graphs) - counted
