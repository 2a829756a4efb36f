"""Generates the tests of a campaign and gives each to every executor that supports it.

Each executor has a queue of tests that wait for it. While one queue is full, no test is generated:
fast executors wait for slow ones, so that all run the same tests and their outcomes can be
compared. They do not wait for an executor that takes nothing for `PATIENCE_S`; the tests that it
misses are counted. See ``docs/decisions/0008-same-graphs.md``.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.family_weights import FamilyWeights
from litmusfuzz.fuzz.finding.judge import CachingOracle, explorer_or_none, number_allowed
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, generate
from litmusfuzz.oracles.model import FRONT_ENDS
from litmusfuzz.reports.differential import DifferentialComparison, ExecutorResult
from litmusfuzz.reports.events import Compared, Generated, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.cluster_validation import Validator
    from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.executors.protocol import Clusters, Config, Noise, Packing
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
    from litmusfuzz.fuzz.support import Support
    from litmusfuzz.reports.events import Event

MAX_WAITING: Final = 16
"""Tests in an executor's queue: some seconds of work, so that a restart or a short minimization in
one executor does not stop the others."""
MOST_FAMILIES: Final = 32
DAMAGING_EVERY: Final = 128
"""Of a family's tests, one in so many may have ops that damage the memory of their process. One
graph in fourteen would have such an op, and end its process. Another one costs fifteen other
graphs: it is forked, and TensorFlow looks up its kernels for each op anew."""
DEADLY_EVERY: Final = 50
"""Of a family's tests, one in so many may have ops that are known to end their process."""
CANARY_EVERY: Final = 64
"""Of a family's tests, the canary runs one in so many, the first included: if it ran all, it would
take a tenth of the time of a campaign on one configuration."""
PATIENCE_S: Final = 5.0
"""Seconds that the others wait for an executor that takes nothing from a full queue because it
minimizes or hangs. A campaign limited by a number of tests waits without limit."""
MAX_CONFIGURATIONS: Final = 8
"""Configurations of one executor in which a test runs, in a campaign limited by time."""
MAX_SHARED: Final = 4
"""Tests of a family that further configurations may still take."""
MAX_COMPARED_BYTES: Final = 1 << 25
"""Bytes of outcomes that a campaign keeps of its comparisons: some ten thousand tests."""


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
    new_pairs : int
        Number of its pairs of ops on one resource that no test before it had.
    sampled : dict of CampaignExecutor to SampledConfiguration
        The configuration in which each executor runs the test.
    pending : set of CampaignExecutor
        Executors that have not run the test yet.
    judgements : dict of CampaignExecutor to Judgement
        Of the executors that have run it.
    repetition : int
        Configurations of the same executor that were given the test before.
    """

    index: int
    family: str
    test: LitmusTest
    oracles: dict[str, Oracle]
    allowed: dict[str, int]
    sampled: dict[CampaignExecutor, SampledConfiguration]
    pending: set[CampaignExecutor]
    new_pairs: int = 0
    judgements: dict[CampaignExecutor, Judgement] = field(default_factory=dict)
    repetition: int = 0

    def again(self, executor: CampaignExecutor, sampled: SampledConfiguration) -> GeneratedTest:
        """The same test, to be run in a further configuration of an executor."""
        return replace(
            self,
            sampled={executor: sampled},
            pending={executor},
            new_pairs=0,  # they count once
            judgements={},
            repetition=self.repetition + 1,
        )


class _Shared:
    """A test that further configurations of an executor may take."""

    def __init__(self, generated: GeneratedTest, taken: SampledConfiguration) -> None:
        self.generated = generated
        self.taken = [taken]

    def takes(self, sampled: SampledConfiguration) -> bool:
        """True if a configuration may run it, and has not."""
        return len(self.taken) < MAX_CONFIGURATIONS and sampled not in self.taken


def _no_other_configuration(config: Config) -> SampledConfiguration:
    raise AssertionError(f"no finding is tried in {config.name}")


@dataclass(slots=True, eq=False)
class CampaignExecutor:
    """An executor of a campaign, its configurations, and the tests that wait for it.

    Attributes
    ----------
    name : str
    sampler : ConfigurationSampler
        Picks the configuration in which a test runs.
    families : tuple of str
        Families that are generated for it. The canary has none: it runs some tests of the others.
    support : Support
        What it takes.
    clusterer : type of Clusters, optional
        The executor's class, if it chooses clusters itself.
    sample : callable
        Makes a configuration in which a finding of another one is tried.
    damaging_ops : frozenset of str
        Ops whose kernels may damage the memory of their process.
    packing : type of Packing, optional
        The executor's class, if it runs packs of tests.
    deadly_ops : frozenset of str
        Ops that are known to end their process.
    minimizing_s : float
        Seconds spent on minimizing.
    trying_again_s : float
        Seconds spent on what a fresh process had not shown.
    known_s : float
        Of these and others, seconds spent on what turned out to be known.
    versions : mapping of str to str
        Versions of its frameworks, once a worker has started.
    drivers : dict of str to mapping of str to str
        By configuration: the devices on which its last test ran, with their drivers.
    waiting : deque of GeneratedTest
    """

    name: str
    sampler: ConfigurationSampler
    families: tuple[str, ...]
    support: Support
    clusterer: type[Clusters] | None = None
    damaging_ops: frozenset[str] = frozenset()
    deadly_ops: frozenset[str] = frozenset()
    sample: Callable[[Config], SampledConfiguration] = field(default=_no_other_configuration)
    packing: type[Packing] | None = None
    minimizing_s: float = 0.0
    trying_again_s: float = 0.0
    known_s: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    drivers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    waiting: deque[GeneratedTest] = field(default_factory=deque)
    last_taken_at: float = 0.0
    """Time of the last `take`, on the clock of campaigns."""

    def versions_of(self, configuration: str) -> dict[str, str]:
        """Versions of its frameworks, and devices and drivers of a configuration."""
        return {**self.versions, **self.drivers.get(configuration, {})}

    def devices(self) -> dict[str, str]:
        """Devices of all configurations, with their drivers; parts of one device are several."""
        found: dict[str, set[str]] = {}
        for drivers in self.drivers.values():
            for device, driver in drivers.items():
                found.setdefault(device, set()).add(driver)
        return {device: "; ".join(sorted(each)) for device, each in sorted(found.items())}

    def take(self) -> GeneratedTest | None:
        """Remove and return the next waiting test; None if none waits."""
        if not self.waiting:
            return None
        self.last_taken_at = clock.now()
        return self.waiting.popleft()

    def take_pack(self, first: GeneratedTest, noise: Noise) -> list[GeneratedTest]:
        """Remove waiting tests that may run in a pack with one that was taken.

        Returns
        -------
        list of GeneratedTest
            All tests of the pack; the one that was taken alone if it may not run in a pack.
        """
        config, pack = first.sampled[self].config, [first]
        most = self.pack_size(config, noise)
        if most == 1 or not self._may_pack(first, config):
            return pack
        for each in list(self.waiting):
            if len(pack) == most:
                break
            if each.sampled[self] is first.sampled[self] and self._may_pack(each, config):
                self.waiting.remove(each)
                pack.append(each)
        return pack

    def pack_size(self, config: Config, noise: Noise) -> int:
        """Tests of a pack, at most."""
        return 1 if self.packing is None else self.packing.pack_size(config, noise)

    def _may_pack(self, generated: GeneratedTest, config: Config) -> bool:
        return self.packing is not None and self.packing.may_pack(generated.test, config)

    def support_of(self, index: int) -> Support:
        """The tests that it takes of those with this number in the campaign."""
        return support_of(self.support, self.damaging_ops, index, self.deadly_ops)

    @property
    def full(self) -> bool:
        """True if no more tests may wait for this executor."""
        return len(self.waiting) >= MAX_WAITING


@dataclass(slots=True, eq=False)
class UnreducedFinding:
    """A test with a forbidden outcome, as it was executed.

    It is `suspect` if its process crashed later: then it counts only after a fresh process has
    shown it. It is `settled` once a fresh process has shown it, or has not; `attempts` counts the
    latter. It is reduced `in_full` even if it looks like a known cause. It is `known` once it looks
    like one, or counts as a sighting; `found` is the new finding that it shows, and `clusters` the
    key of unsound clusters if it turns out to be these.
    """

    generated: GeneratedTest
    executor: CampaignExecutor
    judgement: Judgement
    noise: Noise
    seed: int
    suspect: bool = False
    settled: bool = False
    attempts: int = 0
    in_full: bool = False
    known: MinimizedFinding | None = None
    found: MinimizedFinding | None = None
    clusters: str = ""
    contains: dict[str, bool] = field(default_factory=dict)
    """By key of a known cause, whether its ops are in the test."""

    @property
    def sampled(self) -> SampledConfiguration:
        """The configuration that showed it."""
        return self.generated.sampled[self.executor]

    @property
    def event_fields(self) -> dict[str, Any]:
        """Fields of every event about it: its test, executor and configuration."""
        return {
            "index": self.generated.index,
            "executor": self.executor.name,
            "configuration": self.sampled.config.name,
        }


def support_of(
    support: Support,
    damaging_ops: frozenset[str],
    index: int,
    deadly_ops: frozenset[str] = frozenset(),
) -> Support:
    """An executor's support for test number `index`: most tests have no damaging or deadly op."""
    number, family = divmod(index, MOST_FAMILIES)
    rare = damaging_ops - deadly_ops if number % DAMAGING_EVERY else frozenset()
    if (number + family) % DEADLY_EVERY:  # the first test of each family would be many
        rare |= deadly_ops
    return _without(support, rare) if rare else support


@cache
def _without(support: Support, ops: frozenset[str]) -> Support:
    """The support less these ops; a campaign has few such sets, and asks for each test."""
    return replace(support, ops=support.ops - ops)


class Dispatcher:
    """Generates tests and puts each into the queue of every executor that supports it.

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
        self.weights = FamilyWeights(
            {name: settings.weight(name) for name in names}, learning=settings.tests is None
        )
        self.dispatched = 0
        self.numbers: Counter[str] = Counter()
        """Tests generated so far, by family."""
        self.compared_bytes = 0
        self.unfinished: set[GeneratedTest] = set()
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
        return self.settings.tests is not None and self.numbers.total() >= self.settings.tests

    @property
    def all_dispatched(self) -> bool:
        """True once all requested tests are generated and no executor's queue holds one."""
        return self.all_generated and not any(executor.waiting for executor in self.executors)

    @property
    def running_low(self) -> bool:
        """True if an executor's queue is nearly empty."""
        _, noise = self.settings.first_executions
        for each in self.fuzzed:
            packed = each.pack_size(each.sampler.current.config, noise)
            if len(each.waiting) <= min(packed * self.settings.workers, MAX_WAITING - 1):
                return True
        return False

    def fill_pack(self, executor: CampaignExecutor) -> None:
        """Generate tests until a pack waits for an executor, or at least one test.

        A pack of few tests costs nearly as much as one of many.
        """
        _, noise = self.settings.first_executions
        while True:
            packed = executor.pack_size(executor.sampler.current.config, noise)
            if len(executor.waiting) >= packed or not self.dispatch_next():
                return

    def dispatch_next(self) -> bool:
        """Generate the next test and queue it; False if no test may be generated now."""
        if self.all_generated or any(self._blocks(executor) for executor in self.executors):
            return False
        place = self.dispatched % len(self.fuzzed)
        self.dispatched += 1
        chooser = self.fuzzed[place]
        family = self.weights.choose(place, self._families(chooser))
        start = clock.now()
        if not self._share(family, chooser):
            self._generate(family, chooser)
        self.weights.add_time(family, clock.now() - start)
        return True

    def _families(self, executor: CampaignExecutor) -> tuple[str, ...]:
        """The families from which an executor chooses the next test.

        In a campaign limited by time, those of which its next configuration takes some tests: what
        has been refused by then depends on the speed of executors.
        """
        if self.settings.tests is not None or not executor.sampler.several:
            return executor.families
        sampler = executor.sampler
        return sampler.refusals.worthwhile(sampler.peek().config, executor.families)

    def _blocks(self, executor: CampaignExecutor) -> bool:
        """True if no test may be generated because this executor's queue is full."""
        patient = self.settings.tests is not None
        return executor.full and (patient or clock.now() - executor.last_taken_at < PATIENCE_S)

    def _share(self, family: str, executor: CampaignExecutor) -> bool:
        """Queue a test of a family for the executor's next configuration, if another has run it."""
        sampled = executor.sampler.peek()
        for shared in self._shared[executor, family]:
            if not shared.takes(sampled):
                continue
            shared.taken.append(sampled)
            generated = shared.generated
            missing = sampled.model.name not in generated.oracles
            oracles, allowed = self._oracles(generated.test, generated.index, [sampled] * missing)
            generated.oracles.update(oracles)
            generated.allowed.update(allowed)
            if sampled.model.name in generated.oracles:
                shared.generated = again = generated.again(executor, executor.sampler.next())
                if executor.clusterer is not None and not again.test.clusters:
                    self.validator.judge_chosen(
                        again.index, again.test, executor.clusterer, sampled
                    )
                self.unfinished.add(again)
                executor.waiting.append(again)
                return True
        return False

    def _generate(self, family: str, chooser: CampaignExecutor) -> None:
        """Generate a test within an executor's support, and queue it for all that support it."""
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
            test = generate(family, self.settings.seed, index, support, seeds)
        except NotGenerated:
            return  # for this index only; the next one has other random choices
        running: dict[CampaignExecutor, SampledConfiguration] = {}
        lacking: dict[str, tuple[str, ...]] = {}
        busy = []
        for executor in self.fuzzed:
            if lacks := executor.support_of(index).lacking(test):
                lacking[executor.sampler.current.title] = tuple(lacks)
            elif executor.full:
                busy.append(executor.sampler.current.title)
            else:
                sampled = executor.sampler.next()
                if left is None or sampled.title in left:
                    running[executor] = sampled
                else:
                    executor.sampler.add_run(sampled, 0.0)
        generated_at = clock.now()
        oracles, allowed = self._oracles(test, index, running.values())
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
                    self.validator.judge_chosen(index, test, executor.clusterer, sampled)
        if not running:
            return
        new_pairs = self.weights.new_pairs(test)
        generated = GeneratedTest(
            index, family, test, oracles, allowed, running, set(running), new_pairs
        )
        self.unfinished.add(generated)
        for executor in running:
            executor.waiting.append(generated)
        for executor in self.executors if watched else ():
            if not (executor.families or executor.full):  # the canary
                executor.waiting.append(generated)
        if self.settings.tests is None:
            for executor, sampled in running.items():
                if executor.sampler.several:
                    self._shared[executor, family].append(_Shared(generated, sampled))

    def _oracles(
        self, test: LitmusTest, index: int, configurations: Iterable[SampledConfiguration]
    ) -> tuple[dict[str, Oracle], dict[str, int]]:
        """One oracle for each model that judges the test, and the numbers of allowed outcomes.

        A model with program order may say nothing about a test; then it has no oracle.
        """
        oracles: dict[str, Oracle] = {}
        allowed: dict[str, int] = {}
        for model in {each.model.name: each.model for each in configurations}.values():
            oracle = explorer_or_none(test, model, self.settings.budget)
            if oracle is None:
                message = f"seed {self.settings.seed}, test {index}: a value of 2**24"
                silent = FRONT_ENDS & model.axioms or "gradients" in test.features
                assert silent, message
                continue
            oracles[model.name] = CachingOracle(oracle)
            number = number_allowed(oracle)
            if number is not None:
                allowed[model.name] = number
        return oracles, allowed

    def done(
        self, generated: GeneratedTest, executor: CampaignExecutor, judgement: Judgement | None
    ) -> None:
        """Note that an executor has run a test or failed to; after the last one, compare."""
        generated.pending.remove(executor)
        if judgement is not None:
            generated.judgements[executor] = judgement
            self.weights.add_new_pairs(generated.family, generated.new_pairs)
        if not generated.pending:
            self._finish(generated)

    def finish(self) -> None:
        """Note what was not run, and compare the outcomes of tests that some executors ran."""
        for generated in sorted(self.unfinished, key=lambda each: each.index):
            for executor, sampled in generated.sampled.items():
                if executor in generated.pending:
                    self.not_run(generated, sampled)
            self._finish(generated)

    def not_run(self, generated: GeneratedTest, sampled: SampledConfiguration) -> None:
        """Note that a configuration did not run a test."""
        name = sampled.config.name
        self.log(NotRun(index=generated.index, executor=sampled.executor, configuration=name))

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
        comparison = DifferentialComparison(generated.test, shown, verdicts)
        kept = comparison.as_json()["outcomes"]
        self.compared_bytes += len(str(kept))
        self.log(
            Compared(
                index=generated.index,
                family=generated.family,
                totals=comparison.totals(),
                outcomes=tuple(kept) if self.compared_bytes <= MAX_COMPARED_BYTES else (),
            )
        )
