"""Generates the tests of a campaign and gives each to every executor that supports it.

Each executor has a queue of tests that wait for it. While one queue is full, no test is generated:
fast executors wait for slow ones, so that all run the same tests and their outcomes can be
compared. They do not wait for an executor that takes nothing for `PATIENCE_S`; the tests that it
misses are counted. See ``docs/decisions/0008-same-graphs.md``.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.cluster_validation import Validator
from litmusfuzz.fuzz.campaign.event_log import EventLog
from litmusfuzz.fuzz.campaign.family_weights import FamilyWeights
from litmusfuzz.fuzz.campaign.judge import CachingOracle, explorer_or_none, number_allowed
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, generate
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
    from litmusfuzz.fuzz.support import Support
    from litmusfuzz.reports.records import RunRecord

MAX_WAITING: Final = 16
"""Tests in an executor's queue: some seconds of work, so that a restart or a short minimization in
one executor does not stop the others."""
MOST_FAMILIES: Final = 32
PATIENCE_S: Final = 5.0
"""Seconds that the others wait for an executor that takes nothing from a full queue because it
minimizes or hangs. A campaign limited by a number of tests waits without limit."""


@dataclass(slots=True, eq=False)
class GeneratedTest:
    """A generated test, its oracles, and the verdicts on it so far.

    Attributes
    ----------
    index : int
        Number of the test in the campaign's seed.
    oracles : dict of str to Oracle
        By name of the memory model.
    allowed : dict of str to int
        Number of allowed outcomes by model, where it is more than one, small, and known.
    sampled : dict of CampaignExecutor to SampledConfiguration
        The configuration in which each executor runs the test.
    pending : set of CampaignExecutor
        Executors that have not run the test yet.
    judgements : dict of CampaignExecutor to Judgement
        Of the executors that have run it.
    verdicts : set of Verdict
        All verdicts on its outcomes so far.
    """

    index: int
    family: str
    test: LitmusTest
    oracles: dict[str, Oracle]
    allowed: dict[str, int]
    sampled: dict[CampaignExecutor, SampledConfiguration]
    pending: set[CampaignExecutor]
    judgements: dict[CampaignExecutor, Judgement] = field(default_factory=dict)
    verdicts: set[Verdict] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class CampaignExecutor:
    """An executor of a campaign, its configurations, and the tests that wait for it.

    Attributes
    ----------
    name : str
    sampler : ConfigurationSampler
        Picks the configuration in which a test runs.
    families : tuple of str
        Families that are generated for it. The canary has none: it runs what the others run.
    features : frozenset of str
        Features of tests that it supports.
    clusterer : type of Clusters, optional
        The executor's class, if it chooses clusters itself.
    fast : SampledConfiguration, optional
        A configuration in which findings are minimized but no test is fuzzed.
    minimizing_s : float
        Seconds spent on minimizing.
    waiting : deque of GeneratedTest
    """

    name: str
    sampler: ConfigurationSampler
    families: tuple[str, ...]
    support: Support
    clusterer: type[Clusters] | None = None
    fast: SampledConfiguration | None = None
    minimizing_s: float = 0.0
    waiting: deque[GeneratedTest] = field(default_factory=deque)
    last_taken_at: float = 0.0
    """Time of the last `take`, on the monotonic clock."""

    def take(self) -> GeneratedTest | None:
        """Remove and return the next waiting test; None if none waits."""
        if not self.waiting:
            return None
        self.last_taken_at = time.monotonic()
        return self.waiting.popleft()

    @property
    def full(self) -> bool:
        """True if no more tests may wait for this executor."""
        return len(self.waiting) >= MAX_WAITING


class Dispatcher:
    """Generates tests and puts each into the queue of every executor that supports it.

    The executors choose a family alternately, each among the families that it supports
    (`fuzz.campaign.family_weights`), and the test is generated within its support, so that an
    executor that supports few tests gets its share. The generated test then goes to all executors
    that support it. A test depends on the seed, its family, and its number in that family; on the
    support only where the usual test lies beyond it; never on the speed of executors.

    Parameters
    ----------
    settings : Settings
    executors : iterable of CampaignExecutor
        All, the canary included.
    record : RunRecord
        Counts what is generated and refused.
    compared : callable
        Called with the comparison of each test that several executors ran.
    log : EventLog, optional
        Receives unsound clusters.
    """

    def __init__(
        self,
        settings: Settings,
        executors: Iterable[CampaignExecutor],
        record: RunRecord,
        compared: Callable[[DifferentialComparison], None],
        log: EventLog | None = None,
    ) -> None:
        self.settings = settings
        self.executors = tuple(executors)
        self.fuzzed = [executor for executor in self.executors if executor.families]
        self.record = record
        self.compared = compared
        self.validator = Validator(settings, record, log or EventLog())
        names = {name for executor in self.fuzzed for name in executor.families}
        self.weights = FamilyWeights(
            {name: settings.weight(name) for name in names}, learning=settings.tests is None
        )
        self.dispatched = 0
        self.unfinished: set[GeneratedTest] = set()

    @property
    def all_generated(self) -> bool:
        """True once the requested number of tests has been generated."""
        return self.settings.tests is not None and self.record.graphs >= self.settings.tests

    @property
    def all_dispatched(self) -> bool:
        """True once all requested tests are generated and no executor's queue holds one."""
        return self.all_generated and not any(executor.waiting for executor in self.executors)

    @property
    def running_low(self) -> bool:
        """True if an executor's queue is nearly empty."""
        return any(len(each.waiting) <= self.settings.workers for each in self.fuzzed)

    def dispatch_next(self) -> bool:
        """Generate the next test and queue it; False if no test may be generated now."""
        if self.all_generated or any(self._blocks(executor) for executor in self.executors):
            return False
        place = self.dispatched % len(self.fuzzed)
        self.dispatched += 1
        chooser = self.fuzzed[place]
        family = self.weights.choose(place, chooser.families)
        start = time.monotonic()
        self._generate(family, chooser.support)
        self.add_time(family, time.monotonic() - start)
        return True

    def add_time(self, family: str, seconds: float) -> None:
        """Add seconds spent on generating, running or judging tests of a family."""
        self.record.families[family].seconds += seconds
        self.weights.add_time(family, seconds)

    def _blocks(self, executor: CampaignExecutor) -> bool:
        """True if no test may be generated because this executor's queue is full."""
        patient = self.settings.tests is not None
        return executor.full and (patient or time.monotonic() - executor.last_taken_at < PATIENCE_S)

    def _generate(self, family: str, support: Support) -> None:
        """Generate a test within a support and queue it for every executor that supports it."""
        record = self.record
        start = time.monotonic()
        number = self.settings.first_index + record.families[family].graphs
        # Indices are unique, and equal in all campaigns with this seed. A new family is the last
        # in the table, and so changes no index of the others.
        index = number * MOST_FAMILIES + tuple(FAMILIES).index(family)
        record.graphs += 1
        record.families[family].graphs += 1
        try:
            test = generate(family, self.settings.seed, index, support)
        except NotGenerated:
            return  # for this index only; the next one has other random choices
        record.ops.update(n.op for n in test.effects)
        running = {}
        for executor in self.fuzzed:
            lacking = executor.support.lacking(test)
            accepts = not (lacking or executor.full)
            sampled = executor.sampler.next() if accepts else executor.sampler.current
            sampled.state.graphs += 1
            if lacking:
                sampled.state.refuse(lacking)
            elif accepts:
                running[executor] = sampled
        record.generating_s += time.monotonic() - start
        oracles, allowed = self._oracles(test, index, running.values())
        for executor, sampled in tuple(running.items()):
            if sampled.model.name not in oracles:
                sampled.state.refuse({"program order"})
                executor.sampler.add_run(sampled, 0.0)
                del running[executor]
        if not running:
            return
        if test.clusters:
            self.validator.count_given(test)
        else:
            for executor, sampled in running.items():
                if executor.clusterer is not None:
                    self.validator.count_chosen(
                        test, executor.clusterer, sampled.state, sampled.config
                    )
        generated = GeneratedTest(index, family, test, oracles, allowed, running, set(running))
        self.unfinished.add(generated)
        for executor in (*running, *(s for s in self.executors if not (s.families or s.full))):
            executor.waiting.append(generated)

    def _oracles(
        self, test: LitmusTest, index: int, configurations: Iterable[SampledConfiguration]
    ) -> tuple[dict[str, Oracle], dict[str, int]]:
        """One oracle for each model that judges the test, and the numbers of allowed outcomes.

        A model with program order may say nothing about a test; then it has no oracle.
        """
        start = time.monotonic()
        oracles: dict[str, Oracle] = {}
        allowed: dict[str, int] = {}
        for model in {each.model.name: each.model for each in configurations}.values():
            oracle = explorer_or_none(test, model, self.settings.budget)
            if oracle is None:
                message = f"seed {self.settings.seed}, test {index}: a value of 2**24"
                assert Axiom.PROGRAM_ORDER in model.axioms, message
                continue
            oracles[model.name] = CachingOracle(oracle)
            number = number_allowed(test, model)
            if number is not None:
                allowed[model.name] = number
        self.record.judging_s += time.monotonic() - start
        return oracles, allowed

    def done(
        self, generated: GeneratedTest, executor: CampaignExecutor, judgement: Judgement | None
    ) -> None:
        """Note that an executor has run a test or failed to; after the last one, compare."""
        generated.pending.remove(executor)
        if judgement is not None:
            generated.judgements[executor] = judgement
            self.weights.add_test(generated.family, generated.test)
        if not generated.pending:
            self._finish(generated)

    def finish(self) -> None:
        """Count what was not run, and compare the outcomes of tests that some executors ran."""
        for state in self.record.executors:
            state.not_run = state.graphs - state.tests - state.refused_graphs
        for generated in sorted(self.unfinished, key=lambda each: each.index):
            self._finish(generated)

    def _finish(self, generated: GeneratedTest) -> None:
        self.unfinished.remove(generated)
        if len(generated.judgements) < 2:
            return
        shown = tuple(
            ExecutorResult(
                s.name, sampled.config.name, sampled.model.name, generated.judgements[s].histogram
            )
            for s, sampled in generated.sampled.items()
            if s in generated.judgements
        )
        outcomes = {outcome for result in shown for outcome in result.histogram}
        verdicts = {
            result.model: {o: str(generated.oracles[result.model].judge(o)) for o in outcomes}
            for result in shown
        }
        self.compared(
            DifferentialComparison(
                generated.test, shown, verdicts, generated.index, generated.family
            )
        )
