"""Generates the tests of a campaign and gives each to every executor that supports it.

Each executor has a backlog of tests that wait for it. While one is full, no test is generated: fast
executors wait for slow ones, so that all run the same tests and their outcomes can be compared.
They do not wait for an executor that takes nothing for `PATIENCE_S`; the tests that it misses are
counted. See ``docs/decisions/0008-same-graphs.md``.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.campaign_executor import MAX_WAITING, MOST_FAMILIES, GeneratedTest
from litmusfuzz.fuzz.campaign.comparisons import Comparisons
from litmusfuzz.fuzz.campaign.family_weights import FamilyWeights
from litmusfuzz.fuzz.campaign.tuning import PATIENCE_S
from litmusfuzz.fuzz.finding.judge import CachingOracle, explorer_or_none, number_allowed
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, generate
from litmusfuzz.oracles.model import FRONT_ENDS
from litmusfuzz.reports.events import Generated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.campaign.cluster_validation import Validator
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.reports.events import Event

CANARY_EVERY: Final = 64
"""Of a family's tests, the canary runs one in so many, the first included: if it ran all, it would
take a tenth of the time of a campaign on one configuration."""
MAX_CONFIGURATIONS: Final = 8
"""Configurations of one executor in which a test runs, in a campaign limited by time."""
MAX_SHARED: Final = 4
"""Tests of a family that further configurations may still take."""


class _Shared:
    """A test that further configurations of an executor may take."""

    def __init__(self, generated: GeneratedTest, taken: SampledConfiguration) -> None:
        self.generated = generated
        self.taken = [taken]

    def takes(self, sampled: SampledConfiguration) -> bool:
        """True if a configuration may run it, and has not."""
        return len(self.taken) < MAX_CONFIGURATIONS and sampled not in self.taken


class Dispatcher:
    """Generates tests and puts each into the backlog of every executor that supports it.

    The executors choose a family alternately, each among the families that it supports
    (`fuzz.campaign.family_weights`), and the test is generated within its support, so that an
    executor that supports few tests gets its share. The generated test then goes to all executors
    that support it. A test depends on the seed, its family, and its number in that family; on the
    support only where the usual test lies beyond it; never on the speed of executors.

    In a campaign limited by time, a test is given to further configurations of an executor, up to
    `MAX_CONFIGURATIONS`, before another one of its family is generated.

    Parameters
    ----------
    settings : Settings
    executors : iterable of CampaignExecutor
        All, the canary included.
    validator : Validator
        Judges clusters.
    log : callable
        Receives an event for each generated test, and for each comparison of executors.
    earlier : mapping of int to set of str
        By index, the tests that earlier processes of the same campaign have generated, each with
        the titles of the configurations that have yet to run it. It is for a campaign limited by
        a number of tests, which so continues as if it had never been interrupted.
    """

    def __init__(
        self,
        settings: Settings,
        executors: Iterable[CampaignExecutor],
        validator: Validator,
        log: Callable[[Event], None],
        earlier: Mapping[int, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self.settings = settings
        self.earlier = earlier
        self.executors = tuple(executors)
        self.fuzzed = [executor for executor in self.executors if executor.families]
        self.validator = validator
        self.log = log
        names = {name for executor in self.fuzzed for name in executor.families}
        weights = {name: settings.weight(name) for name in names}
        self.weights = FamilyWeights(weights, learning=not settings.counted)
        self.dispatched = 0
        self.numbers: Counter[str] = Counter()
        """Tests generated so far, by family."""
        self.comparisons = Comparisons(log)
        self._shared: defaultdict[tuple[CampaignExecutor, str], deque[_Shared]] = defaultdict(
            lambda: deque(maxlen=MAX_SHARED)
        )
        """By executor and family, the latest tests that further configurations may take."""

    def versions(self, executor: str) -> Mapping[str, str]:
        """Versions of an executor's frameworks, once a worker has started."""
        return next((each.versions for each in self.executors if each.name == executor), {})

    @property
    def all_generated(self) -> bool:
        """True once the requested number of tests has been generated."""
        tests = self.settings.options.tests
        return tests is not None and self.numbers.total() >= tests

    @property
    def all_dispatched(self) -> bool:
        """True once all requested tests are generated and no executor's backlog holds one."""
        return self.all_generated and not any(executor.waiting for executor in self.executors)

    @property
    def may_generate(self) -> bool:
        """True if another test may be generated now."""
        return not (self.all_generated or any(self._blocks(each) for each in self.executors))

    @property
    def running_low(self) -> bool:
        """True if an executor's backlog is nearly empty."""
        (_, noise), workers = self.settings.first_executions, self.settings.workers
        return any(
            len(each.waiting) <= min(each.next_pack_size(noise) * workers, MAX_WAITING - 1)
            for each in self.fuzzed
        )

    def dispatch_next(self) -> bool:
        """Generate the next test for all; False if no test may be generated now."""
        if not self.may_generate:
            return False
        place = self.dispatched % len(self.fuzzed)
        self.dispatched += 1
        chooser = self.fuzzed[place]
        self._dispatch(self.weights.choose(place, self._families(chooser)), chooser)
        return True

    def dispatch(self, family: str, executor: CampaignExecutor) -> bool:
        """Generate a test of a family for all; False if no test may be generated now.

        The family is one of the executor's, and a lane takes the test at once. So this executor's
        own backlog may be full; while another one is, nothing is generated, by any lane.
        """
        others = (each for each in self.executors if each is not executor)
        if self.all_generated or any(self._blocks(each) for each in others):
            return False
        self._dispatch(family, executor, at_once=True)
        return True

    def _dispatch(self, family: str, chooser: CampaignExecutor, *, at_once: bool = False) -> None:
        start = clock.now()
        if not self._give_again(family, chooser):
            self._generate(family, chooser, at_once=at_once)
        self.weights.add_time(family, clock.now() - start)

    def _families(self, executor: CampaignExecutor) -> tuple[str, ...]:
        """The families from which an executor chooses the next test.

        In a campaign limited by time, those of which its next configuration takes some tests: what
        has been refused by then depends on the speed of executors.
        """
        if self.settings.counted or not executor.sampler.several:
            return executor.families
        sampler = executor.sampler
        return sampler.refusals.next_choice(sampler.settle().config, executor.families)

    def _blocks(self, executor: CampaignExecutor) -> bool:
        """True if no test may be generated because this executor's backlog is full."""
        patient = self.settings.counted
        return executor.full and (patient or clock.now() - executor.last_taken_at < PATIENCE_S)

    def _give_again(self, family: str, executor: CampaignExecutor) -> bool:
        """Give a test of a family to the executor's next configuration, if another has run it."""
        sampled = executor.sampler.settle()
        for shared in self._shared[executor, family]:
            if not shared.takes(sampled):
                continue
            shared.taken.append(sampled)
            generated = shared.generated
            missing = sampled.model.name not in generated.oracles
            oracles, allowed = _oracles(
                self.settings, generated.test, generated.index, [sampled] * missing
            )
            generated.oracles.update(oracles)
            generated.allowed.update(allowed)
            if sampled.model.name in generated.oracles:
                shared.generated = again = generated.again(executor, executor.sampler.next())
                if executor.clusterer is not None and not again.test.clusters:
                    self.validator.judge_chosen(
                        again.index, again.test, executor.clusterer, sampled.target
                    )
                self.comparisons.unfinished.add(again)
                executor.waiting.append(again)
                return True
        return False

    def _generate(self, family: str, chooser: CampaignExecutor, *, at_once: bool) -> None:
        """Generate a test within an executor's support, and give it to all that support it.

        If the executor takes it at once, its backlog may be full.
        """
        start = clock.now()
        number = self.settings.first_index + self.numbers[family]
        # Indices are unique, and equal in all campaigns with this seed. A new family is the last
        # in the table, and so changes no index of the others.
        index = number * MOST_FAMILIES + tuple(FAMILIES).index(family)
        watched = self.numbers[family] % CANARY_EVERY == 0
        self.numbers[family] += 1
        left = self.earlier.get(index)
        if left is not None and not left and not any(e.sampler.several for e in self.fuzzed):
            return  # it is known which configuration is next
        try:
            support, seeds = chooser.support_of(index), self.settings.seeds
            test = generate(family, self.settings.options.seed, index, support, seeds)
        except NotGenerated:
            return  # for this index only; the next one has other random choices
        running: dict[CampaignExecutor, SampledConfiguration] = {}
        lacking: dict[str, tuple[str, ...]] = {}
        busy = []
        for executor in self.fuzzed:
            if lacks := executor.support_of(index).lacking(test):
                lacking[executor.sampler.current.title] = tuple(lacks)
            elif executor.full and not (at_once and executor is chooser):
                busy.append(executor.sampler.current.title)
            else:
                sampled = executor.sampler.next()
                if left is None or sampled.title in left:
                    running[executor] = sampled
                else:
                    executor.sampler.add_run(sampled, 0.0)
        generated_at = clock.now()
        oracles, allowed = _oracles(self.settings, test, index, running.values())
        for executor, sampled in tuple(running.items()):
            if sampled.model.name not in oracles:
                lacking[sampled.title] = ("program order",)
                executor.sampler.add_run(sampled, 0.0, family, refused=True)
                del running[executor]
        judged_at = clock.now()
        if left is None:
            given = self.validator.given(test) if test.clusters and running else None
            self.log(
                Generated(
                    index=index,
                    family=family,
                    executor=chooser.name,
                    ops=Counter(node.op for node in test.effects),
                    lacking=lacking,
                    not_run=tuple(busy),
                    given=tuple(sampled.title for sampled in running.values()),
                    clusters=str(given.verdict) if given else "",
                    racing=bool(given and given.racing),
                    generating_s=round(generated_at - start, 6),
                    judging_s=round(judged_at - generated_at, 6),
                    validating_s=round(clock.now() - judged_at, 6),
                )
            )
            for executor, sampled in running.items():
                if executor.clusterer is not None and not test.clusters:
                    self.validator.judge_chosen(index, test, executor.clusterer, sampled.target)
        if not running:
            return
        new_pairs = self.weights.new_pairs(test)
        generated = GeneratedTest(
            index, family, test, oracles, allowed, running, set(running), new_pairs
        )
        self.comparisons.unfinished.add(generated)
        for executor in running:
            executor.waiting.append(generated)
        for executor in self.executors if watched else ():
            if not (executor.families or executor.full):  # the canary
                executor.waiting.append(generated)
        if not self.settings.counted:
            for executor, sampled in running.items():
                if executor.sampler.several:
                    self._shared[executor, family].append(_Shared(generated, sampled))

    def done(
        self, generated: GeneratedTest, executor: CampaignExecutor, judgement: Judgement | None
    ) -> None:
        """Note that an executor has run a test or failed to; after the last one, compare."""
        self.comparisons.done(generated, executor, judgement)
        if judgement is not None:
            self.weights.add_new_pairs(generated.family, generated.new_pairs)


def _oracles(
    settings: Settings,
    test: LitmusTest,
    index: int,
    configurations: Iterable[SampledConfiguration],
) -> tuple[dict[str, Oracle], dict[str, int]]:
    """One oracle for each model that judges the test, and the numbers of allowed outcomes.

    A model with program order may say nothing about a test; then it has no oracle.
    """
    oracles: dict[str, Oracle] = {}
    allowed: dict[str, int] = {}
    for model in {each.model.name: each.model for each in configurations}.values():
        oracle = explorer_or_none(test, model, settings.budget)
        if oracle is None:
            message = f"seed {settings.options.seed}, test {index}: a value of 2**24"
            silent = FRONT_ENDS & model.axioms or "gradients" in test.features
            assert silent, message
            continue
        oracles[model.name] = CachingOracle(oracle)
        number = number_allowed(oracle)
        if number is not None:
            allowed[model.name] = number
    return oracles, allowed
