"""Translation validation of every clustered test of a campaign.

Clusters that a test was generated with are judged only to be counted: the oracle judges their
outcomes as those of clusters. Clusters that an executor chose must add no outcome to the test
without clusters; if they may, that is a finding even before a run.

An executor chooses clusters in one of two ways. Where its class says which (`Clusters`), they are
judged when the test is generated. Where the framework chooses, its worker reads them from the graph
that it runs, and they are judged after the run (`fuzz.campaign.unsound_clusters`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, save
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.tuning import PATIENCE_S
from litmusfuzz.fuzz.finding.canonical import key
from litmusfuzz.fuzz.finding.chosen_clusters import NotDescribed, executed, with_chosen
from litmusfuzz.fuzz.finding.driver import drive_now
from litmusfuzz.fuzz.finding.finding_names import name_for
from litmusfuzz.fuzz.finding.reducer import reduce
from litmusfuzz.fuzz.finding.relations import races
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.ordered import is_ordered
from litmusfuzz.oracles.translation import Soundness, Translation
from litmusfuzz.oracles.translation import validate as validated
from litmusfuzz.reports.events import ClustersChosen, FindingAdded, FindingKind, SeenAgain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Clusters, Config
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.reports.events import Event

MAX_REDUCED: Final = 8
"""Unsound clusterings that are reduced; further ones are only counted."""
MAX_CACHED: Final = 4096
"""Verdicts on clusterings that are kept, to judge each clustering of a test once."""
NOT_VALIDATED: Final = "not validated"
"""Begins the verdict on clusters of which the semantics says nothing, or that are not known."""

CAUSE: Final = "unsound clusters"
"""What reports call it."""


def validate(test: LitmusTest, budget: Budget) -> Translation:
    """Judge a test's clusters; unknown where an order makes a value too large."""
    try:
        return validated(test, budget)
    except NoAllowedSet:
        return Translation(Soundness.UNKNOWN, 0)


@dataclass(frozen=True, slots=True)
class ChosenVerdict:
    """Verdict on clusters that an executor chose.

    Parameters
    ----------
    verdict : str
        A `Soundness`, or `NOT_VALIDATED` and the reason.
    test : LitmusTest
        With the clusters, if the semantics describes them.
    lost : tuple of (str, str)
        Orders of the test that the clustered graph does not have: these make it unsound at once.
    undecided : tuple of (str, str)
        Pairs of nodes of which it has lost a path, where the oracle does not know whether the test
        orders them: these alone are no finding.
    translation : Translation or None
        What translation validation found, if the semantics describes the clusters.
    problem : str
        Why it does not, with names.
    """

    verdict: str
    test: LitmusTest
    lost: tuple[tuple[str, str], ...] = ()
    translation: Translation | None = None
    problem: str = ""
    undecided: tuple[tuple[str, str], ...] = ()

    @property
    def added(self) -> Outcome | None:
        """An outcome that the clusters add."""
        return self.translation.added if self.translation else None

    @property
    def reason(self) -> tuple[str, ...]:
        """Why the clusters are unsound: sentences."""
        lost = tuple(f"the clustered graph no longer has {a} before {b}" for a, b in self.lost)
        if self.translation is None or self.translation.added is None:
            return lost
        order = "; ".join(map(str, self.translation.witness))
        return (*lost, f"the clusters add {self.translation.added}", f"in the order {order}")


def judge_clusters(test: LitmusTest, chosen: ChosenClusters, budget: Budget) -> ChosenVerdict:
    """Judge the clusters that an executor chose for a test.

    The edges that a front end adds restrict the clustered test alone: clusters are unsound only if
    they add an outcome that the test forbids without those edges. The pairs that may be lost share
    the budget.

    Raises
    ------
    NoAllowedSet
        If an order makes a value too large.
    """
    plain = replace(test, clusters=())
    share = replace(budget, states=budget.states // max(1, len(chosen.lost)))
    ordered = {pair: is_ordered(plain, *pair, share) for pair in chosen.lost}
    lost = tuple(pair for pair, answer in ordered.items() if answer)
    undecided = tuple(pair for pair, answer in ordered.items() if answer is None)
    verdict: str
    try:
        clustered = with_chosen(test, chosen)
    except NotDescribed as error:
        verdict = Soundness.UNSOUND if lost else f"{NOT_VALIDATED}: {error.reason}"
        return ChosenVerdict(verdict, plain, lost, problem=str(error), undecided=undecided)
    found = validated(clustered, budget, executed(test) if chosen.in_functions else None)
    verdict = Soundness.UNSOUND if lost else found.verdict
    if undecided and verdict == Soundness.SOUND:
        verdict = Soundness.UNKNOWN
    return ChosenVerdict(verdict, clustered, lost, found, undecided=undecided)


@dataclass(frozen=True, slots=True)
class Clustering:
    """Verdict on a test's clusters; `racing` if one of several resource ops races."""

    verdict: Soundness
    racing: bool


class Validator:
    """Judges clusters as tests are generated, and stores unsound ones.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives the events.
    """

    def __init__(self, settings: Settings, log: Callable[[Event], None]) -> None:
        self.settings = settings
        self.log = log
        self.reduced = 0
        self.names: dict[str, str] = {}
        """Names of its findings by key."""
        self._verdicts: dict[tuple[LitmusTest, ChosenClusters], ChosenVerdict] = {}

    def given(self, test: LitmusTest) -> Clustering:
        """The verdict on clusters that a test was generated with."""
        return Clustering(validate(test, self.settings.budget).verdict, races(test))

    def judge(self, test: LitmusTest, chosen: ChosenClusters) -> ChosenVerdict:
        """The verdict on clusters that an executor chose.

        Tests with other names are other tests: to compute a canonical form takes as long as to
        validate, and an executor may treat them differently.
        """
        found = self._verdicts.get((test, chosen))
        if found is None:
            if len(self._verdicts) >= MAX_CACHED:
                self._verdicts.clear()
            try:
                found = judge_clusters(test, chosen, self.settings.budget)
            except NoAllowedSet:
                found = ChosenVerdict(Soundness.UNKNOWN, test)
            self._verdicts[test, chosen] = found
        return found

    def problem(self, test: LitmusTest, chosen: ChosenClusters) -> str:
        """Why the semantics does not describe clusters that an executor chose; "" if it does."""
        return self.judge(test, chosen).problem

    def judge_read(
        self,
        index: int,
        test: LitmusTest,
        clusterings: Iterable[ChosenClusters],
        target: Target,
    ) -> list[ChosenVerdict]:
        """Judge the clusterings of the graphs that an executor ran; the unsound ones.

        Each clustering with a cluster in it is counted.
        """
        start = clock.now()
        there = [each for each in clusterings if each.clusters or each.lost or each.problem]
        found = [self.judge(test, each) for each in there]
        if found:
            verdicts = Counter(str(each.verdict) for each in found)
            racing = sum(races(each.test) for each in found)
            self._log_chosen(index, target, verdicts, racing, start)
        return self.unsound(test, there)

    def _log_chosen(
        self, index: int, target: Target, verdicts: Counter[str], racing: int, start: float
    ) -> None:
        """Log verdicts on clusters that an executor chose."""
        self.log(
            ClustersChosen(
                index=index,
                executor=target.executor,
                configuration=target.config.name,
                verdicts=verdicts,
                racing=racing,
                seconds=round(clock.now() - start, 6),
            )
        )

    def unsound(
        self, test: LitmusTest, clusterings: Iterable[ChosenClusters]
    ) -> list[ChosenVerdict]:
        """The unsound ones of these clusterings, which are not counted."""
        judged = (self.judge(test, each) for each in clusterings)
        return [each for each in judged if each.verdict == Soundness.UNSOUND]

    def judge_chosen(
        self, index: int, test: LitmusTest, made: type[Clusters], target: Target
    ) -> None:
        """Judge the clusters that an executor chooses for a test without clusters."""
        start = clock.now()
        clustered = made.clustered(test, target.config)
        if not clustered.clusters:
            return
        verdict = validate(clustered, self.settings.budget).verdict
        if verdict is Soundness.UNSOUND and self.reduced < MAX_REDUCED:
            self.reduced += 1
            self._found(index, test, made, target)
        self._log_chosen(index, target, Counter([str(verdict)]), int(races(clustered)), start)

    def _found(self, index: int, test: LitmusTest, made: type[Clusters], target: Target) -> None:
        """Reduce and store a test that is clustered unsoundly."""
        smallest = normalized(self._reduced(test, made, target.config), "unsound")
        added = validate(smallest, self.settings.budget).added
        assert added is not None
        found = self.key(smallest, target)
        if self.seen_again(found, target):
            return
        self.names[found] = self.new_name(smallest)
        about = f"{target.title} chose these clusters; they add {added}"
        self.store(index, found, smallest, target, about, (f"the clusters add {added}",))

    def key(self, test: LitmusTest, target: Target) -> str:
        """The key of a test with unsound clusters, as a finding."""
        of = target.finding_class
        return key(test, kind=FindingKind.UNSOUND, rules=(), executor_class=of)

    def seen_again(self, found: str, target: Target) -> bool:
        """True if there is a finding with this key; notes that it was seen again."""
        if found not in self.names:
            return False
        executor, config = target.executor, target.config.name
        self.log(SeenAgain(index=None, executor=executor, configuration=config, key=found))
        return True

    def new_name(self, test: LitmusTest) -> str:
        """A name for a finding."""
        name = name_for("unsound", test)
        if name in self.names.values():  # of another executor
            name += f"-{len(self.names)}"
        return name

    def store(
        self,
        index: int,
        found: str,
        test: LitmusTest,
        target: Target,
        about: str,
        reason: tuple[str, ...],
        histogram: tuple[tuple[Any, int, str], ...] = (),
    ) -> None:
        """Store a finding and report it, under the name that its key has."""
        name = self.names[found]
        entry = Entry(test.titled(name, about))
        file = f"findings/{name}{self.settings.suffix}.yaml"
        save(entry, self.settings.out / file)
        self.log(
            FindingAdded(
                index=index,
                key=found,
                file=file,
                entry=dumps(entry),
                kind=FindingKind.UNSOUND,
                executor=target.executor,
                configuration=target.config.name,
                executor_class=target.finding_class,
                cause=CAUSE,
                reason=reason,
                histogram=histogram,
            )
        )

    def _reduced(self, test: LitmusTest, made: type[Clusters], config: Config) -> LitmusTest:
        """The smallest test found that the executor clusters unsoundly, with those clusters."""
        end = clock.now() + PATIENCE_S
        smallest = made.clustered(test, config)

        def is_unsound(candidate: LitmusTest) -> bool:
            nonlocal smallest
            clustered = made.clustered(candidate, config)
            unsound = validate(clustered, self.settings.budget).verdict is Soundness.UNSOUND
            if unsound:
                smallest = clustered
            return unsound

        drive_now(reduce(test), is_unsound, lambda: clock.now() < end)
        return smallest
