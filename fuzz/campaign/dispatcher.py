"""The graphs of a campaign: each drawn once, and dealt to every executor that runs it.

Each executor has a queue of graphs that wait for it. When one is full, nothing is
drawn until its executor takes one: the faster wait for the slower, so that what they
show can be set side by side. They do not wait for one that stands still
(`PATIENCE_S`); what it misses is told. See ``docs/decisions/0008-same-graphs.md``.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.cluster_validation import Validator
from litmusfuzz.fuzz.campaign.event_log import EventLog
from litmusfuzz.fuzz.campaign.family_weights import Weights
from litmusfuzz.fuzz.campaign.judge import Remembering, explorer_or_none, number_allowed
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.reports.differential import DifferentialComparison, ExecutorResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Verdict
    from litmusfuzz.fuzz.campaign.judge import Judgement, Oracle
    from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Clusters
    from litmusfuzz.reports.records import RunRecord

MAX_WAITING: Final = 16
"""Graphs in an executor's queue: some seconds of work, so that a restart or a short
minimization of one does not stop the others."""
MOST_FAMILIES: Final = 32
PATIENCE_S: Final = 5.0
"""How long the others wait for an executor that takes nothing from a full queue: it
minimizes, or hangs. A campaign of so many tests waits until it goes on."""


@dataclass(slots=True, eq=False)
class Generated:
    """A graph of the campaign, its judges by model, and what was judged so far.

    `profiles` are those that run it, of each executor one; `left` the executors that
    have still to run it, `shown` the verdicts on what it showed. `allowed` is the
    number of its allowed outcomes by model, where they are several, few, and known.
    """

    index: int
    family: str
    test: LitmusTest
    oracles: dict[str, Oracle]
    allowed: dict[str, int]
    profiles: dict[System, SampledConfiguration]
    left: set[System]
    judged: dict[System, Judgement] = field(default_factory=dict)
    shown: set[Verdict] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class System:
    """An executor in one configuration or several, and the graphs that wait for it.

    `families` is what it chooses from when it is its turn; the canary has none,
    and is given what the others run. `quick` is where findings are made small, if they show
    there, and nothing is drawn.
    """

    name: str
    rota: ConfigurationSampler
    families: tuple[str, ...]
    features: frozenset[str]
    clusterer: type[Clusters] | None = None
    quick: SampledConfiguration | None = None
    minimizing_s: float = 0.0
    waiting: deque[Generated] = field(default_factory=deque)
    took: float = 0.0
    """When it last took a graph."""

    def take(self) -> Generated | None:
        """Its next graph, if one waits."""
        if not self.waiting:
            return None
        self.took = time.monotonic()
        return self.waiting.popleft()

    @property
    def full(self) -> bool:
        """Whether no more graphs may wait for it."""
        return len(self.waiting) >= MAX_WAITING


class Dispatcher:
    """Draws graphs and hands them out.

    The executors choose in turn, each from the families that it runs
    (`fuzz.campaign.family_weights`), so that
    one that runs few has its share; what is chosen all get that can run it.
    Which graph is drawn depends on the seed, the family, and its number in that
    family: not on who is there, nor on who is fast.

    Parameters
    ----------
    settings : Settings
    systems : iterable of System
        All, the canary included.
    record : RunRecord
        What is drawn is counted there.
    compared : callable
        Called with what several executors showed on a graph.
    journal : EventLog, optional
        Explanation of clusters that are unsound.
    """

    def __init__(
        self,
        settings: Settings,
        systems: Iterable[System],
        record: RunRecord,
        compared: Callable[[DifferentialComparison], None],
        journal: EventLog | None = None,
    ) -> None:
        self.settings = settings
        self.systems = tuple(systems)
        self.choosers = [system for system in self.systems if system.families]
        self.record = record
        self.compared = compared
        self.validator = Validator(settings, record, journal or EventLog())
        names = {name for system in self.choosers for name in system.families}
        self.weights = Weights(
            {name: settings.weight(name) for name in names}, learning=settings.tests is None
        )
        self.turn = 0
        self.unfinished: set[Generated] = set()

    @property
    def drawn_out(self) -> bool:
        """Whether as many graphs as were asked for are drawn."""
        return self.settings.tests is not None and self.record.graphs >= self.settings.tests

    @property
    def empty(self) -> bool:
        """Whether they are given out, too."""
        return self.drawn_out and not any(system.waiting for system in self.systems)

    @property
    def low(self) -> bool:
        """Whether an executor has hardly any graphs left."""
        return any(len(each.waiting) <= self.settings.workers for each in self.choosers)

    def deal(self) -> bool:
        """Draw the next graph; False if none may be drawn now."""
        if self.drawn_out or any(self._held_by(system) for system in self.systems):
            return False
        place = self.turn % len(self.choosers)
        self.turn += 1
        family = self.weights.choose(place, self.choosers[place].families)
        start = time.monotonic()
        self._give(family)
        self.spent(family, time.monotonic() - start)
        return True

    def spent(self, family: str, seconds: float) -> None:
        """So long it took to draw, run or judge one of its graphs."""
        self.record.families[family].seconds += seconds
        self.weights.spent(family, seconds)

    def _held_by(self, system: System) -> bool:
        """Whether the others wait for that executor."""
        patient = self.settings.tests is not None
        return system.full and (patient or time.monotonic() - system.took < PATIENCE_S)

    def _give(self, family: str) -> None:
        """Draw one of that family, and let each that can run it have it."""
        record = self.record
        start = time.monotonic()
        number = self.settings.first + record.families[family].graphs
        # One index each, the same in all campaigns with that seed; a new family, which
        # comes last, changes none of the others'.
        index = number * MOST_FAMILIES + tuple(FAMILIES).index(family)
        test = generate(family, self.settings.seed, index)
        record.graphs += 1
        record.families[family].graphs += 1
        record.drawn.update(n.op for n in test.effects)
        takers = {}
        for system in self.choosers:
            lacking = test.features - system.features
            takes = not (lacking or system.full)
            profile = system.rota.next() if takes else system.rota.current
            profile.state.graphs += 1
            if lacking:
                profile.state.refuse(lacking)
            elif takes:
                takers[system] = profile
        record.drawing_s += time.monotonic() - start
        oracles, allowed = self._oracles(test, index, takers.values())
        for system, profile in tuple(takers.items()):
            if profile.model.name not in oracles:
                profile.state.refuse({"program order"})
                system.rota.ran(profile, 0.0)
                del takers[system]
        if not takers:
            return
        if test.clusters:
            self.validator.given(test)
        else:
            for system, profile in takers.items():
                if system.clusterer is not None:
                    self.validator.chosen(test, system.clusterer, profile.state, profile.config)
        drawn = Generated(index, family, test, oracles, allowed, takers, set(takers))
        self.unfinished.add(drawn)
        for system in (*takers, *(s for s in self.systems if not (s.families or s.full))):
            system.waiting.append(drawn)

    def _oracles(
        self, test: LitmusTest, index: int, profiles: Iterable[SampledConfiguration]
    ) -> tuple[dict[str, Oracle], dict[str, int]]:
        """For each model, whoever is judged by it: a judge, and the number allowed.

        A model that has program order may say nothing about a test.
        """
        start = time.monotonic()
        oracles: dict[str, Oracle] = {}
        allowed: dict[str, int] = {}
        for model in {each.model.name: each.model for each in profiles}.values():
            oracle = explorer_or_none(test, model, self.settings.budget)
            if oracle is None:
                told = f"seed {self.settings.seed}, test {index}: a value of 2**24"
                assert Axiom.PROGRAM_ORDER in model.axioms, told
                continue
            oracles[model.name] = Remembering(oracle)
            number = number_allowed(test, model)
            if number is not None:
                allowed[model.name] = number
        self.record.judging_s += time.monotonic() - start
        return oracles, allowed

    def done(self, drawn: Generated, system: System, judgement: Judgement | None) -> None:
        """An executor has run a graph, or could not; the last one ends it."""
        drawn.left.remove(system)
        if judgement is not None:
            drawn.judged[system] = judgement
            self.weights.reached(drawn.family, drawn.test)
        if not drawn.left:
            self._finish(drawn)

    def finish(self) -> None:
        """No more will be run: tell what was not, and compare what several have."""
        for state in self.record.executors:
            state.not_run = state.graphs - state.tests - state.refused_graphs
        for drawn in sorted(self.unfinished, key=lambda each: each.index):
            self._finish(drawn)

    def _finish(self, drawn: Generated) -> None:
        self.unfinished.remove(drawn)
        if len(drawn.judged) < 2:
            return
        shown = tuple(
            ExecutorResult(
                s.name, profile.config.name, profile.model.name, drawn.judged[s].histogram
            )
            for s, profile in drawn.profiles.items()
            if s in drawn.judged
        )
        outcomes = {outcome for side in shown for outcome in side.histogram}
        verdicts = {
            side.model: {o: str(drawn.oracles[side.model].judge(o)) for o in outcomes}
            for side in shown
        }
        self.compared(
            DifferentialComparison(drawn.test, shown, verdicts, drawn.index, drawn.family)
        )
