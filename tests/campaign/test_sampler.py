"""The configuration sampler: the order of configurations. No executor runs here."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from litmusfuzz.fuzz.campaign.sampler import (
    MIN_REFUSED,
    TRIED_EVERY,
    TRIES,
    ConfigurationSampler,
    Refusals,
    SampledConfiguration,
)
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.campaign.tuning import MAX_COST_S, MAX_SLICE, MIN_SLICE, RUN_S
from litmusfuzz.fuzz.executors.protocol import Config
from litmusfuzz.oracles.model import EXECUTOR


def sampled(name: str, environment: str = "") -> SampledConfiguration:
    config = Config(name, "executor", environment=(("E", environment),))
    return SampledConfiguration(Target("tf", config, EXECUTOR, "tf"))


def play(sampler: ConfigurationSampler, seconds: dict[str, float], until_s: float) -> list[str]:
    """Run one graph after another; return the names of the configurations in that order."""
    order, now = [], 0.0
    while now < until_s:
        chosen = sampler.next()
        order.append(chosen.config.name)
        sampler.add_run(chosen, seconds[order[-1]])
        now += seconds[order[-1]]
    return order


def changes(order: list[str], environment: dict[str, str]) -> int:
    return sum(environment[a] != environment[b] for a, b in itertools.pairwise(order))


def test_the_slow_have_as_many_graphs_as_the_fast() -> None:
    configurations = [sampled("a", "1"), sampled("b", "1"), sampled("c", "2"), sampled("d", "3")]
    seconds = {"a": 0.1, "b": 0.4, "c": 0.2, "d": 2.0}
    order = play(ConfigurationSampler(configurations, 3600, counted=False), seconds, 3600)
    graphs = Counter(order)
    each = 3600 / sum(seconds.values())
    for name, cost in seconds.items():
        assert graphs[name] == pytest.approx(each, abs=MAX_SLICE / cost)
    # Another environment is another process: not more often than after a shard.
    assert changes(order, {"a": "1", "b": "1", "c": "2", "d": "3"}) <= 3600 / MAX_SLICE


def test_all_have_their_turn_in_a_short_campaign() -> None:
    configurations = [sampled(name, name) for name in "abcdef"]
    order = play(
        ConfigurationSampler(configurations, 60, counted=False), dict.fromkeys("abcdef", 0.1), 60
    )
    assert set(order) == set("abcdef")
    assert changes(order, {name: name for name in "abcdef"}) <= 60 / MIN_SLICE


def test_graphs_that_wait_count() -> None:
    sampler = ConfigurationSampler([sampled("a"), sampled("b")], 3600, counted=False)
    assert [sampler.next().config.name for _ in range(6)] == list("ababab")


def test_a_configuration_whose_tests_hang_gets_little_more_time() -> None:
    hangs, runs = sampled("hangs"), sampled("runs")
    play(
        ConfigurationSampler([hangs, runs], 7200, counted=False),
        {"hangs": 60.0, "runs": MAX_COST_S},
        7200,
    )
    assert hangs.spent == pytest.approx(3600, abs=60 + MAX_SLICE)


def test_a_configuration_whose_tests_take_no_time_gets_no_more_of_them() -> None:
    fast, runs = sampled("fast"), sampled("runs")
    sampler = ConfigurationSampler([fast, runs], 60, counted=False)
    graphs = Counter(play(sampler, {"fast": 1e-9, "runs": RUN_S}, 60))
    assert abs(graphs["fast"] - graphs["runs"]) <= 1


def test_a_configuration_that_refuses_all_is_given_a_few_tests_for_each_that_others_run() -> None:
    refuses, runs = sampled("refuses"), sampled("runs")
    sampler = ConfigurationSampler([refuses, runs], 60, counted=False)
    graphs = Counter[str]()
    for _ in range(1000):
        chosen = sampler.next()
        graphs[chosen.config.name] += 1
        sampler.add_run(chosen, RUN_S, "dag", refused=chosen is refuses)
    assert abs(graphs["refuses"] - TRIES * graphs["runs"]) <= MAX_SLICE / RUN_S


def test_counted_it_depends_on_nothing_else() -> None:
    """The order is the same for all durations, and for late reports of them."""
    orders = []
    for seconds, late in ((0.001, 0), (7.0, 5)):
        sampler = ConfigurationSampler(
            [sampled("a", "1"), sampled("b", "1"), sampled("c", "2")], 60, counted=True
        )
        order, waiting = [], []
        for _ in range(60):
            waiting.append(sampler.next())
            order.append(waiting[-1].config.name)
            if len(waiting) > late:
                sampler.add_run(waiting.pop(0), seconds)
        orders.append(order)
    assert orders[0] == orders[1]
    assert Counter(orders[0])["a"] == pytest.approx(20, abs=5)


def test_other_configurations_continue_without_an_unavailable_one() -> None:
    a, b, c = sampled("a", "1"), sampled("b", "2"), sampled("c", "2")
    sampler = ConfigurationSampler([a, b, c], 60, counted=False)
    assert sampler.next() is a
    a.unavailable = "no such device"
    assert {sampler.next() for _ in range(8)} == {b, c} == set(sampler.running)
    # Who runs what must not depend on when that was known.
    counted = ConfigurationSampler([a, b, c], 60, counted=True)
    assert {counted.next() for _ in range(60)} == {a, b, c}


def test_they_have_the_same_time_however_many_share_an_environment() -> None:
    """As on TensorFlow: 29 presets in one environment, 17 in others."""
    alike = [sampled(f"a{number}", "one") for number in range(29)]
    others = [sampled(f"b{number}", f"{number}") for number in range(17)]
    seconds = {each.config.name: 0.1 for each in (*alike, *others)}
    play(ConfigurationSampler([*alike, *others], 600, counted=False), seconds, 600)
    spent = [each.spent for each in (*alike, *others)]
    assert min(spent) > 0.4 * 600 / 46
    assert max(spent) < 1.6 * 600 / 46


def test_a_generated_configuration_may_be_a_listed_one() -> None:
    """It is then that one, with its time and the tests that it has run, and not one beside it."""
    a, b = sampled("a"), sampled("b")
    names = (f"{name}{number}" for number in itertools.count() for name in "xy")
    others = itertools.chain.from_iterable((name, "b") for name in names)
    sampler = ConfigurationSampler(
        [a, b], 60, counted=False, generate=lambda: sampled(next(others))
    )
    seen = []
    for _ in range(600):
        seen.append(sampler.next())
        sampler.add_run(seen[-1], 0.1)
    by_name = {each.config.name: each for each in seen}
    assert len(by_name) > 3
    assert all(by_name[each.config.name] is each for each in seen)
    assert by_name["b"] is b


# --- families that a configuration refuses -------------------------------------------------


def of(**settings: str) -> Config:
    name = ";".join(f"{key}={value}" for key, value in settings.items())
    return Config(name, "executor", settings=tuple(settings.items()))


def given(refusals: Refusals, config: Config, takes: frozenset[str], number: int) -> list[str]:
    """Give a configuration so many tests, of families at random; the families of these."""
    found: list[str] = []
    rng = random.Random(1)
    for _ in range(number):
        found.append(rng.choice(refusals.next_choice(config, FAMILIES)))
        refusals.note(config, found[-1], refused=found[-1] not in takes)
    return found


FAMILIES = tuple("abcdefgh")


def test_a_family_that_is_refused_is_tried_now_and_then() -> None:
    found = given(Refusals(), of(front_end="keras"), frozenset("c"), 1000)
    others = [each for each in found if each != "c"]
    most = MIN_REFUSED * (len(FAMILIES) - 1) + 1000 // TRIED_EVERY
    assert len(others) <= most
    assert set(found[500:]) == {*FAMILIES}  # one that is taken by then is found


def test_what_one_configuration_refuses_counts_for_its_settings_only() -> None:
    refusals = Refusals()
    given(refusals, of(front_end="graph", threads="2"), frozenset(FAMILIES), 100)
    given(refusals, of(front_end="keras", threads="2"), frozenset("c"), 100)
    assert refusals.next_choice(of(front_end="graph", threads="2"), FAMILIES) == FAMILIES
    # Settings that nobody has been given together: one test of each family is enough.
    other = of(front_end="keras", threads="8")
    assert refusals.next_choice(other, FAMILIES) == FAMILIES
    for family in FAMILIES:
        refusals.note(other, family, refused=family != "c")
    assert refusals.next_choice(other, FAMILIES) == ("c",)


def test_a_setting_beside_the_one_that_refuses_is_cleared() -> None:
    refusals = Refusals()
    given(refusals, of(front_end="keras", threads="8"), frozenset(), 100)
    given(refusals, of(front_end="graph", threads="8"), frozenset(FAMILIES), 400)
    assert refusals.next_choice(of(front_end="graph", threads="8"), FAMILIES) == FAMILIES
    assert refusals.next_choice(of(front_end="graph", threads="1"), FAMILIES) == FAMILIES


def test_one_that_takes_few_runs_as_many() -> None:
    """What is refused costs time, and is no run."""
    few, many = sampled("few"), sampled("many")
    sampler = ConfigurationSampler([few, many], 600, counted=False)
    number = 0
    while few.spent + many.spent < 600:
        chosen = sampler.next()
        number += chosen is few
        refused = chosen is few and number % 10 != 0
        sampler.add_run(chosen, 0.05, "dag", refused=refused)
    assert few.runs == pytest.approx(many.runs, rel=0.1)
    assert few.refused == pytest.approx(9 * few.runs, rel=0.1)
