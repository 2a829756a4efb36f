"""The dispatcher: distribution of generated tests to executors. No executor runs here."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.campaign_executor import (
    DAMAGING_EVERY,
    MAX_WAITING,
    MOST_FAMILIES,
    CampaignExecutor,
    GeneratedTest,
)
from litmusfuzz.fuzz.campaign.cluster_validation import Validator
from litmusfuzz.fuzz.campaign.dispatcher import (
    CANARY_EVERY,
    MAX_CONFIGURATIONS,
    MAX_SHARED,
    Dispatcher,
)
from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.campaign.tuning import PATIENCE_S
from litmusfuzz.fuzz.executors.protocol import Config
from litmusfuzz.fuzz.finding import judge as campaign_judge
from litmusfuzz.fuzz.finding.canonical import digest
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.generators import FAMILIES, families_for, generate
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC, Model
from litmusfuzz.reports.events import (
    CampaignStarted,
    Compared,
    Configured,
    Event,
    Generated,
    NotRun,
)
from litmusfuzz.reports.fold import Fold

if TYPE_CHECKING:
    import pytest

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.reports.report import Report, Share

ALL = FEATURES - {"clusters", "transfers"}


def executor(name: str, features: frozenset[str], model: Model = RFC) -> CampaignExecutor:
    # What runs no feature at all: one family is enough here. A mutation has what its parent
    # has, and so may be refused: which are depends on the corpus.
    support = Support(features=features)
    families = (f for f in families_for(support) if FAMILIES[f].weight and f != "mutations")
    chosen = tuple(families) if features else ("dag",)
    return CampaignExecutor(name, sampler(name, model), chosen, support)


def sampler(name: str, model: Model) -> ConfigurationSampler:
    config = Config("plain", model.name)
    sampled = SampledConfiguration(Target(name, config, model, name))
    return ConfigurationSampler([sampled], 60.0, counted=False)


def canary() -> CampaignExecutor:
    return CampaignExecutor("mutant/canary", sampler("mutant/canary", RFC), (), EVERYTHING)


class Table:
    """A dispatcher with its executors, and the report of its events."""

    def __init__(
        self, *executors: CampaignExecutor, tests: int | None = None, seed: int = 1
    ) -> None:
        self.events: list[Event] = []
        self.fold = Fold()
        configurations = tuple(
            Configured(each.name, "plain", model, model, each.name)
            for each in executors
            for model in (each.sampler.current.model.name,)
        )
        started = CampaignStarted(
            command="", seed=seed, asked_s=60.0, configurations=configurations
        )
        self.fold.apply(0, started)
        alike = dict.fromkeys(FAMILIES, 1.0)
        settings = Settings(seed, Path("out"), (), tests=tests, weights=alike)
        validator = Validator(settings, self.log)
        self.dispatcher = Dispatcher(settings, executors, validator, self.log)

    def log(self, event: Event) -> None:
        """Takes an event."""
        self.events.append(event)
        self.fold.apply(1, event)

    @property
    def report(self) -> Report:
        """The report so far."""
        return self.fold.report("out")

    def share(self, executor: CampaignExecutor) -> Share:
        """The report's line for an executor."""
        (share,) = (each for each in self.report.by_config if each.executor == executor.name)
        return share

    @property
    def compared(self) -> list[Compared]:
        """The comparisons so far."""
        return [each for each in self.events if isinstance(each, Compared)]

    def take(self, executor: CampaignExecutor, count: int) -> list[GeneratedTest]:
        """The next graphs of one executor; the others take theirs at once."""
        taken = []
        while len(taken) < count:
            generated = executor.take()
            if generated is not None:
                taken.append(generated)
                continue
            for other in self.dispatcher.executors:
                while other is not executor and other.take():
                    pass
            assert self.dispatcher.dispatch_next()
        return taken


def test_a_graph_goes_to_all_that_run_it_and_the_others_refuse_it_by_feature() -> None:
    few, many, watched = executor("few", frozenset()), executor("many", ALL), canary()
    table = Table(few, many, watched)
    while len(many.waiting) < MAX_WAITING:
        assert table.dispatcher.dispatch_next()
    families = defaultdict(list)
    for each in many.waiting:
        families[each.family].append(each)
    chosen = {each for tests in families.values() for each in tests[::CANARY_EVERY]}
    assert list(watched.waiting) == [each for each in many.waiting if each in chosen]
    assert list(few.waiting) == [d for d in many.waiting if not d.test.features]
    assert table.share(few).refused == len(many.waiting) - len(few.waiting) > 0
    lacking = [feature for d in many.waiting for feature in d.test.features]
    assert table.share(few).refused_for == {name: lacking.count(name) for name in lacking}
    assert not table.share(many).refused_for
    assert table.report.generated == MAX_WAITING
    assert sum(each.graphs for each in table.report.families.values()) == MAX_WAITING


def test_one_oracle_is_built_for_a_test_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It judges outcomes, and counts those that are allowed."""
    built: list[tuple[LitmusTest, str]] = []

    class Counted(Explorer):
        def __init__(self, test: LitmusTest, model: Model, budget: Budget) -> None:
            built.append((test, model.name))
            super().__init__(test, model, budget)

    monkeypatch.setattr(campaign_judge, "Explorer", Counted)
    one, alike, other = (
        executor(name, ALL, model) for name, model in (("1", RFC), ("2", RFC), ("3", EXECUTOR))
    )
    table = Table(one, alike, other)
    while len(one.waiting) < MAX_WAITING:
        assert table.dispatcher.dispatch_next()
    assert built == [(d.test, name) for d in one.waiting for name in ("rfc", "executor")]
    assert any(d.allowed for d in one.waiting)


def test_a_test_outside_a_model_is_refused_and_goes_to_other_executors() -> None:
    """A test with clusters has no meaning under `acd`, the model of programs."""
    program, looser = executor("program", FEATURES, ACD), executor("looser", FEATURES)
    program.families = looser.families = ("clusters", "dag")
    table = Table(program, looser)
    while len(looser.waiting) < MAX_WAITING:
        assert table.dispatcher.dispatch_next()
    clustered = [d for d in looser.waiting if d.test.clusters]
    assert [*program.waiting] == [d for d in looser.waiting if not d.test.clusters]
    assert table.share(program).refused_for == {"program order": len(clustered)}
    assert table.share(program).refused == len(clustered)
    assert len(clustered) == MAX_WAITING // 2
    # It has had its shard: the graphs that it runs are not put off.
    assert program.sampler.current.waiting == len(program.waiting)
    # Nor do the others count as runs: it would run fewer than other configurations.
    assert program.sampler.current.runs == 0
    assert program.sampler.current.refused == len(clustered)


def test_executors_choose_tests_alternately() -> None:
    """An executor of one family gets half of the graphs, and those that the other one chooses."""
    few, many = executor("few", frozenset()), executor("many", ALL)
    table = Table(few, many)
    count = 2 * len(many.families)
    families = [d.family for d in table.take(many, 2 * count)]
    assert families[::2] == ["dag"] * count
    assert families[1::2] == [*many.families] * 2


def test_a_narrow_executor_has_its_share_of_graphs_within_its_support() -> None:
    """Each of its own choices gives it a graph; the other executor takes that graph as well."""
    narrow, many = executor("narrow", frozenset()), executor("many", ALL)
    narrow.support = Support.scalars(("Const", "ReadVariableOp", "AssignVariableOp"))
    table = Table(narrow, many)
    seen = table.take(many, 40)
    taken = [each for each in seen if narrow in each.sampled]
    assert len(taken) >= 20
    assert {each.index for each in seen[::2]} <= {each.index for each in taken}
    assert not any(narrow.support.lacking(each.test) for each in taken)


def test_few_tests_may_damage_memory_and_the_others_are_as_before() -> None:
    """`sparse` is half made of such tests; which number may have the op depends on the number."""
    risky, other = executor("risky", frozenset()), executor("other", frozenset())
    risky.families = other.families = ("sparse",)
    risky.damaging_ops = frozenset({"ResourceStridedSliceAssign"})

    def damages(test: LitmusTest) -> bool:
        return any(node.op in risky.damaging_ops for node in test.effects)

    alone = Table(risky).take(risky, 4 * DAMAGING_EVERY)
    found = {each.index for each in alone if damages(each.test)}
    may = {n * DAMAGING_EVERY * MOST_FAMILIES for n in range(4)}
    first = tuple(FAMILIES).index("sparse")
    assert found
    assert found <= {index + first for index in may}
    for each in alone:
        usual = generate("sparse", 1, each.index, risky.support)
        assert (each.test == usual) == (each.index in found or not damages(usual))
    # What the other one chooses beyond that, it runs alone.
    taken = Table(risky, other).take(other, 2 * DAMAGING_EVERY)
    beyond = [each for each in taken if risky not in each.sampled]
    assert beyond
    assert all(damages(each.test) for each in beyond)


def test_generated_tests_depend_on_the_seed_and_not_on_the_executors() -> None:
    few_graphs = 9  # then the other comes to its next family without features
    few, many = executor("few", frozenset()), executor("many", ALL)
    alone = Table(one := executor("few", frozenset())).take(one, few_graphs)
    beside = Table(few, many).take(few, few_graphs)
    assert [(d.index, d.test) for d in alone] == [(d.index, d.test) for d in beside]
    assert [(d.family, d.index) for d in alone] == [
        ("dag", n * MOST_FAMILIES) for n in range(few_graphs)
    ]
    assert all(d.test == generate(d.family, 1, d.index) for d in beside)
    other = Table(one := executor("few", frozenset()), seed=2).take(one, few_graphs)
    assert not {d.test for d in other} & {d.test for d in alone}
    several = Table(one := executor("many", ALL)).take(one, 40)
    indices = {generated.index for generated in several}
    assert len(indices) == 40


def test_families_are_chosen_by_weight_and_by_their_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A graph costs a second here. In a campaign of so many graphs only weights count."""
    now = itertools.count(0.0, 1.0)
    monkeypatch.setattr(clock, "now", lambda: next(now))
    for tests in (None, 10_000):
        one = executor("one", ALL)
        table = Table(one, tests=tests)
        count = 3 * len(one.families)
        assert [d.family for d in table.take(one, count)] == [*one.families] * 3
        table.dispatcher.weights.add_find("runs")
        generated = Counter(d.family for d in table.take(one, count))
        assert (generated["runs"] > 3) == (tests is None)
        assert min(generated[family] for family in one.families) >= 1
        seconds = {f: table.report.families[f].seconds for f in one.families}
        assert all(each >= 4 for each in seconds.values())


def test_faster_executors_wait_for_slower_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so that the slow executor is not taken for a stuck one."""
    monkeypatch.setattr(clock, "now", lambda: 0.0)
    fast, slow = executor("fast", frozenset()), executor("slow", frozenset())
    table = Table(fast, slow)
    for _ in range(MAX_WAITING):
        assert table.dispatcher.dispatch_next()
        assert fast.take()
    assert slow.full
    assert not table.dispatcher.dispatch_next()
    slow.take()
    assert table.dispatcher.dispatch_next()


def test_a_test_of_a_family_is_generated_for_an_executor_that_takes_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even if its backlog is full, but not while that of another one is."""
    monkeypatch.setattr(clock, "now", lambda: 0.0)
    asking, other = executor("asking", ALL), executor("other", ALL)
    table = Table(asking, other)
    while table.dispatcher.dispatch_next():
        other.take()
    assert asking.full
    assert table.dispatcher.dispatch("queues", asking)
    taken = asking.waiting[-1]
    assert taken.test.queues
    assert asking.take(lambda each: each is taken) is taken
    assert asking.full
    assert [*other.waiting] == [taken]
    assert asking.take(lambda _: False) is None
    for _ in range(MAX_WAITING - 1):
        assert table.dispatcher.dispatch("queues", asking)
        asking.take(lambda each: bool(each.test.queues))
    assert other.full
    assert not table.dispatcher.dispatch("queues", asking)


def test_a_stuck_executor_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graphs that it does not run are counted."""
    now = itertools.count(0.0, PATIENCE_S / 1000)
    monkeypatch.setattr(clock, "now", lambda: next(now))
    fast, still = executor("fast", frozenset()), executor("still", frozenset())
    table = Table(fast, still)
    waited = 0
    taken = []
    while table.report.generated < MAX_WAITING + 10:
        waited += not table.dispatcher.dispatch_next()
        while generated := fast.take():
            taken.append(generated)
    assert waited > 0
    assert len(still.waiting) == MAX_WAITING
    for generated in taken:
        table.dispatcher.done(generated, fast, None)
    table.dispatcher.comparisons.finish()
    assert (table.share(fast).not_run, table.share(still).not_run) == (0, MAX_WAITING + 10)
    # Those in its queue, each by its index; the others never got there.
    not_run = [each for each in table.events if isinstance(each, NotRun)]
    assert [each.index for each in not_run] == [each.index for each in still.waiting]


def test_a_campaign_limited_by_tests_always_waits() -> None:
    """The generated tests must not depend on the speed of executors, even after a long time."""
    fast, still = executor("fast", frozenset()), executor("still", frozenset())
    table = Table(fast, still, tests=MAX_WAITING + 1)
    while table.dispatcher.dispatch_next():
        fast.take()
    assert still.last_taken_at == 0.0
    assert table.report.generated == MAX_WAITING
    assert not table.dispatcher.all_generated
    still.take()
    assert table.dispatcher.dispatch_next()
    assert table.dispatcher.all_generated
    assert not table.dispatcher.dispatch_next()
    assert not table.dispatcher.all_dispatched


def test_one_oracle_for_each_model_whoever_is_judged_by_it() -> None:
    first, second = executor("first", ALL), executor("second", ALL)
    strict = executor("strict", ALL, EXECUTOR)
    (generated,) = Table(first, second, strict).take(first, 1)
    assert set(generated.oracles) == {"rfc", "executor"}
    (alone,) = Table(first, second).take(first, 1)
    assert set(alone.oracles) == {"rfc"}


def test_histograms_are_compared_when_all_executors_have_run_the_test_or_time_is_up() -> None:
    first, second, third = (executor(name, frozenset()) for name in ("first", "second", "third"))
    table = Table(first, second, third)
    generated, rest = table.take(first, 2)
    outcome = next(iter(Explorer(generated.test, RFC).allowed_outcomes().witnesses))
    judgement = judge(generated.oracles["rfc"], {outcome: 3})
    table.dispatcher.done(generated, second, judgement)
    table.dispatcher.done(generated, first, judgement)
    assert not table.compared
    table.dispatcher.done(generated, third, None)  # it crashed
    (compared,) = table.compared
    assert list(compared.totals) == ["first/plain", "second/plain"]
    assert [each.model for each in compared.totals.values()] == ["rfc", "rfc"]
    (row,) = compared.outcomes
    assert row["outcome"] == outcome.plain
    assert row["verdicts"] == {"rfc": "allowed"}
    assert row["counts"] == {"first/plain": 3, "second/plain": 3}
    assert (compared.index, compared.family) == (generated.index, "dag")
    table.dispatcher.done(rest, first, None)
    table.dispatcher.comparisons.finish()
    assert len(table.compared) == 1


# --- one test in several configurations ----------------------------------------------------


def in_configurations(names: str, *, counted: bool = False) -> CampaignExecutor:
    """An executor with a configuration of each name, all of one environment."""
    chosen = [SampledConfiguration(Target("one", Config(n, "rfc"), RFC, "one")) for n in names]
    several = ConfigurationSampler(chosen, 60.0, counted=counted)
    families = ("dag", "cycles")
    return CampaignExecutor("one", several, families, Support(features=frozenset()))


def run_all(table: Dispatcher, one: CampaignExecutor, number: int) -> dict[int, list[str]]:
    """Run so many tests, each in the same time; the configurations of each, by its index."""
    found: dict[int, list[str]] = {}
    texts: dict[int, set[str]] = {}
    for _ in range(number):
        assert table.dispatch_next()
        generated = one.take()
        assert generated is not None
        place = found.setdefault(generated.index, [])
        assert generated.repetition == len(place)
        place.append(generated.sampled[one].config.name)
        texts.setdefault(generated.index, set()).add(digest(generated.test))
        assert generated.oracles
        one.sampler.add_run(generated.sampled[one], 1.0)
        table.done(generated, one, None)
    assert all(len(each) == 1 for each in texts.values())
    return found


def a_dispatcher(one: CampaignExecutor, tests: int | None = None) -> tuple[Dispatcher, list[Event]]:
    events: list[Event] = []
    settings = Settings(1, Path("out"), (), tests=tests, weights=dict.fromkeys(FAMILIES, 1.0))
    made = Dispatcher(settings, [one], Validator(settings, events.append), events.append)
    return made, events


def test_a_test_runs_in_several_configurations_and_in_none_twice() -> None:
    one = in_configurations("abcdefghijklm")
    table, events = a_dispatcher(one)
    found = run_all(table, one, 200)
    assert not table.comparisons.unfinished
    assert all(len(set(names)) == len(names) for names in found.values())
    assert max(map(len, found.values())) == MAX_CONFIGURATIONS
    assert len(found) <= 200 / MAX_CONFIGURATIONS + 2 * MAX_SHARED
    made = [each.index for each in events if isinstance(each, Generated)]
    assert sorted(made) == sorted(found)  # each is generated once
    assert len(made) == len(set(made))


def test_one_configuration_has_another_test_each_time() -> None:
    one = in_configurations("a")
    found = run_all(a_dispatcher(one)[0], one, 50)
    assert len(found) == 50


def test_a_campaign_of_so_many_tests_runs_each_once() -> None:
    one = in_configurations("abc", counted=True)
    found = run_all(a_dispatcher(one, tests=50)[0], one, 50)
    assert len(found) == 50


def test_what_two_executors_ran_is_compared_once() -> None:
    one, other = in_configurations("abcd"), in_configurations("wxyz")
    events: list[Event] = []
    settings = Settings(1, Path("out"), (), weights=dict.fromkeys(FAMILIES, 1.0))
    table = Dispatcher(settings, [one, other], Validator(settings, events.append), events.append)
    for _ in range(60):
        table.dispatch_next()
        for each in (one, other):
            while (generated := each.take()) is not None:
                oracle = generated.oracles["rfc"]
                outcome = next(iter(Explorer(generated.test, RFC).allowed_outcomes().witnesses))
                seen = judge(oracle, {outcome: 16})
                each.sampler.add_run(generated.sampled[each], 1.0)
                table.done(generated, each, seen)
    compared = [each.index for each in events if isinstance(each, Compared)]
    assert len(compared) > 5
    assert len(compared) == len(set(compared))
