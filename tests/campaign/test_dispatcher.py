"""Who gets which graphs: no executor runs here."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.campaign import dispatcher
from litmusfuzz.fuzz.campaign.dispatcher import (
    MAX_WAITING,
    MOST_FAMILIES,
    PATIENCE_S,
    Dispatcher,
    System,
)
from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.campaign.sampler import ConfigurationSampler, SampledConfiguration
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.protocol import Config
from litmusfuzz.fuzz.generators import FAMILIES, WEIGHTS, families_for, generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import ACD, EXECUTOR, RFC, Model
from litmusfuzz.reports.records import ExecutorState, RunRecord

if TYPE_CHECKING:
    import pytest

    from litmusfuzz.reports.differential import DifferentialComparison

ALL = FEATURES - {"clusters", "transfers"}


def system(name: str, features: frozenset[str], model: Model = RFC) -> System:
    # What runs no feature at all: one family is enough here. A mutation has what its parent
    # has, and so may be refused: which are depends on the corpus.
    drawn = tuple(f for f in families_for(features) if WEIGHTS[f] and f != "mutations")
    families = drawn if features else ("dag",)
    return System(name, rota(name, model), families, features)


def rota(name: str, model: Model) -> ConfigurationSampler:
    state = ExecutorState(name, "plain", model.name, model.name)
    config = Config("plain", model.name)
    return ConfigurationSampler([SampledConfiguration(config, model, state)], 60.0, counted=False)


def canary() -> System:
    return System("mutant/canary", rota("mutant/canary", RFC), (), FEATURES)


def state(system: System) -> ExecutorState:
    return system.rota.current.state


class Table:
    """A dealer and all that belongs to it."""

    def __init__(self, *systems: System, tests: int | None = None, seed: int = 1) -> None:
        self.record = RunRecord(seed, "out")
        self.record.executors += [state(system) for system in systems]
        self.compared: list[DifferentialComparison] = []
        alike = dict.fromkeys(FAMILIES, 1.0)
        settings = Settings(seed, Path("out"), (), tests=tests, weights=alike)
        self.dealer = Dispatcher(settings, systems, self.record, self.compared.append)

    def take(self, system: System, count: int) -> list[dispatcher.Generated]:
        """The next graphs of one executor; the others take theirs at once."""
        taken = []
        while len(taken) < count:
            drawn = system.take()
            if drawn is not None:
                taken.append(drawn)
                continue
            for other in self.dealer.systems:
                while other is not system and other.take():
                    pass
            assert self.dealer.deal()
        return taken


def test_a_graph_goes_to_all_that_run_it_and_the_others_refuse_it_by_feature() -> None:
    few, many, watched = system("few", frozenset()), system("many", ALL), canary()
    table = Table(few, many, watched)
    while len(many.waiting) < MAX_WAITING:
        assert table.dealer.deal()
    assert list(many.waiting) == list(watched.waiting)
    assert list(few.waiting) == [d for d in many.waiting if not d.test.features]
    assert state(few).refused_graphs == len(many.waiting) - len(few.waiting) > 0
    lacking = [feature for d in many.waiting for feature in d.test.features]
    assert state(few).refused == {name: lacking.count(name) for name in lacking}
    assert not state(many).refused
    assert table.record.graphs == MAX_WAITING
    assert sum(each.graphs for each in table.record.families.values()) == MAX_WAITING


def test_what_a_model_says_nothing_about_is_refused_and_goes_to_others() -> None:
    """No program has clusters, which `acd` is about."""
    program, looser = system("program", FEATURES, ACD), system("looser", FEATURES)
    program.families = looser.families = ("clusters", "dag")
    table = Table(program, looser)
    while len(looser.waiting) < MAX_WAITING:
        assert table.dealer.deal()
    clustered = [d for d in looser.waiting if d.test.clusters]
    assert [*program.waiting] == [d for d in looser.waiting if not d.test.clusters]
    assert state(program).refused == {"program order": len(clustered)}
    assert len(clustered) == MAX_WAITING // 2
    # It has had its turn: the graphs that it runs are not put off.
    assert program.rota.current.waiting == len(program.waiting)


def test_each_executor_chooses_in_its_turn() -> None:
    """So one that runs a single family has half of the graphs, and more where both choose it."""
    few, many = system("few", frozenset()), system("many", ALL)
    table = Table(few, many)
    count = 2 * len(many.families)
    families = [d.family for d in table.take(many, 2 * count)]
    assert families[::2] == ["dag"] * count
    assert families[1::2] == [*many.families] * 2


def test_what_is_drawn_depends_on_the_seed_and_not_on_who_is_there() -> None:
    few_graphs = 9  # then the other comes to its next family without features
    few, many = system("few", frozenset()), system("many", ALL)
    alone = Table(one := system("few", frozenset())).take(one, few_graphs)
    beside = Table(few, many).take(few, few_graphs)
    assert [(d.index, d.test) for d in alone] == [(d.index, d.test) for d in beside]
    assert [(d.family, d.index) for d in alone] == [
        ("dag", n * MOST_FAMILIES) for n in range(few_graphs)
    ]
    assert all(d.test == generate(d.family, 1, d.index) for d in beside)
    other = Table(one := system("few", frozenset()), seed=2).take(one, few_graphs)
    assert not {d.test for d in other} & {d.test for d in alone}
    several = Table(one := system("many", ALL)).take(one, 40)
    indices = {drawn.index for drawn in several}
    assert len(indices) == 40


def test_families_are_drawn_by_weight_and_by_what_they_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A graph costs a second here. In a campaign of so many graphs only weights count."""
    now = itertools.count(0.0, 1.0)
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: next(now)))
    for tests in (None, 10_000):
        one = system("one", ALL)
        table = Table(one, tests=tests)
        count = 3 * len(one.families)
        assert [d.family for d in table.take(one, count)] == [*one.families] * 3
        table.dealer.weights.found("runs")
        drawn = Counter(d.family for d in table.take(one, count))
        assert (drawn["runs"] > 3) == (tests is None)
        assert min(drawn[family] for family in one.families) >= 1
        seconds = {f: table.record.families[f].seconds for f in one.families}
        assert all(each >= 4 for each in seconds.values())


def test_the_faster_wait_for_the_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes: the slower has taken one just now."""
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: 0.0))
    fast, slow = system("fast", frozenset()), system("slow", frozenset())
    table = Table(fast, slow)
    for _ in range(MAX_WAITING):
        assert table.dealer.deal()
        assert fast.take()
    assert slow.full
    assert not table.dealer.deal()
    slow.take()
    assert table.dealer.deal()


def test_nobody_waits_for_one_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it misses is counted."""
    now = itertools.count(0.0, PATIENCE_S / 1000)
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: next(now)))
    fast, still = system("fast", frozenset()), system("still", frozenset())
    table = Table(fast, still)
    waited = 0
    while table.record.graphs < MAX_WAITING + 10:
        waited += not table.dealer.deal()
        while fast.take():
            state(fast).tests += 1
    assert waited > 0
    assert len(still.waiting) == MAX_WAITING
    table.dealer.finish()
    assert (state(fast).not_run, state(still).not_run) == (0, MAX_WAITING + 10)


def test_a_campaign_of_so_many_graphs_always_waits() -> None:
    """For years, here: what is drawn must not depend on who is fast."""
    fast, still = system("fast", frozenset()), system("still", frozenset())
    table = Table(fast, still, tests=MAX_WAITING + 1)
    while table.dealer.deal():
        fast.take()
    assert still.took == 0.0
    assert table.record.graphs == MAX_WAITING
    assert not table.dealer.drawn_out
    still.take()
    assert table.dealer.deal()
    assert table.dealer.drawn_out
    assert not table.dealer.deal()
    assert not table.dealer.empty


def test_one_oracle_for_each_model_whoever_is_judged_by_it() -> None:
    first, second = system("first", ALL), system("second", ALL)
    strict = system("strict", ALL, EXECUTOR)
    (drawn,) = Table(first, second, strict).take(first, 1)
    assert set(drawn.oracles) == {"rfc", "executor"}
    (alone,) = Table(first, second).take(first, 1)
    assert set(alone.oracles) == {"rfc"}


def test_what_several_showed_is_compared_when_all_have_run_it_or_the_time_is_up() -> None:
    first, second, third = (system(name, frozenset()) for name in ("first", "second", "third"))
    table = Table(first, second, third)
    drawn, rest = table.take(first, 2)
    outcome = next(iter(Explorer(drawn.test, RFC).allowed_outcomes().witnesses))
    judgement = judge(drawn.oracles["rfc"], {outcome: 3})
    table.dealer.done(drawn, second, judgement)
    table.dealer.done(drawn, first, judgement)
    assert not table.compared
    table.dealer.done(drawn, third, None)  # it crashed
    (sides,) = table.compared
    assert [side.title for side in sides.sides] == ["first/plain", "second/plain"]
    assert sides.verdicts == {"rfc": {outcome: "allowed"}}
    assert (sides.index, sides.family) == (drawn.index, "dag")
    table.dealer.done(rest, first, None)
    table.dealer.finish()
    assert len(table.compared) == 1
