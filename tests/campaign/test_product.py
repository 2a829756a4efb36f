"""Configurations that a campaign generates in the space of its executor."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.doubles import Spaced
from helpers_settings import settings_of
from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.sampler import (
    MAX_UNAVAILABLE,
    ConfigurationSampler,
    SampledConfiguration,
)
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.campaign.tuning import GENERATED_SHARE, MAX_SLICE, MIN_SLICE
from litmusfuzz.fuzz.executors.configuration_generator import (
    PRODUCT,
    ConfigurationGenerator,
    has_product,
    listed,
    points,
)
from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Exclusion
from litmusfuzz.fuzz.executors.protocol import Config
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS
from litmusfuzz.fuzz.executors.tensorflow.space import SPACE, point_of
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.events import ConfigurationGenerated, Executed
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from pathlib import Path

NAME = "double/spaced"

pytestmark = pytest.mark.usefixtures("doubles")

PRESETS = [point for each in CONFIGURATIONS if (point := point_of(each)) is not None]


def missing_after(number: int, seed: str, before=()) -> int:
    left = set(SPACE.pairs)
    for point in (*before, *islice(points(SPACE, seed, before), number)):
        left -= set(SPACE.pairs_of(point))
    return len(left)


def test_few_configurations_of_tensorflow_cover_all_pairs() -> None:
    """Beside the presets some eighty; an hour has more than two hundred slices for them."""
    assert missing_after(100, "1") == 0  # of 2,487 pairs
    assert 0 < missing_after(20, "2", PRESETS) < missing_after(20, "2")
    assert missing_after(80, "3", PRESETS) == 0


def test_each_next_configuration_covers_something_new_until_all_is_covered() -> None:
    left = set(SPACE.pairs)
    for point in points(SPACE, "1"):
        new = left & set(SPACE.pairs_of(point))
        assert new
        left -= new
        if not left:
            break


def test_after_one_round_comes_another_with_other_configurations() -> None:
    many = list(islice(points(Spaced.space, "1"), 200))
    runs = Counter(pair for point in many for pair in Spaced.space.pairs_of(point))
    assert set(runs) == set(Spaced.space.pairs)
    assert min(runs.values()) >= 5
    assert len({Spaced.space.name(point) for point in many}) > 40


def test_the_sequence_depends_on_the_seed_alone() -> None:
    def names(seed: int, skipped: int = 0, presets: tuple[str, ...] = ()) -> list[str]:
        generated = listed("tf", PRODUCT, skipped, presets)
        generator = ConfigurationGenerator("tf", seed, generated)
        return [generator.next().name for _ in range(12)]

    assert names(1) == names(1)
    assert names(1) != names(2)
    assert names(1, skipped=5)[:7] == names(1)[5:]
    assert names(1, presets=("plain", "grappler")) != names(1)


def test_a_product_is_of_an_executor_whose_default_is_the_plain_point() -> None:
    assert has_product("tf")
    assert has_product(NAME)
    assert has_product("mutant/tf-torn-write")
    for name in ("native", "jax", "mutant/tf-unchecked-clusters", "nobody"):
        assert not has_product(name)
    with pytest.raises(UnknownExecutor, match="native has no configuration space"):
        listed("native", PRODUCT)
    with pytest.raises(UnknownExecutor, match="no executor 'nobody'"):
        listed("nobody", PRODUCT)
    assert listed("native", "pct") == configuration("native", "pct")


# --- the sampler ---------------------------------------------------------------------------


def sampled(name: str, environment: str = "") -> SampledConfiguration:
    config = Config(name, "executor", environment=(("E", environment),))
    return SampledConfiguration(Target("tf", config, EXECUTOR, "tf"))


def sampler(*names: str, counted: bool = False, length: float = 3600.0) -> ConfigurationSampler:
    numbers = iter(range(1 << 20))
    return ConfigurationSampler(
        [sampled(name, name) for name in names],
        length,
        counted=counted,
        generate=lambda: sampled(f"={next(numbers)}"),
    )


def test_generated_configurations_get_their_share_after_all_presets() -> None:
    taken = sampler("a", "b", "c")
    order = []
    for _ in range(36_000):
        chosen = taken.next()
        order.append(chosen.config.name)
        taken.add_run(chosen, 0.1)
    first = next(number for number, name in enumerate(order) if "=" in name)
    assert set(order[:first]) == {"a", "b", "c"}
    assert first == pytest.approx(3 * MAX_SLICE / 0.1, abs=3)
    generated = sum("=" in name for name in order)
    assert generated == pytest.approx(36_000 * GENERATED_SHARE, rel=0.05)
    # Each has one slice.
    parts = [b for a, b in pairwise(["", *order]) if a != b and "=" in b]
    assert len(parts) == len(set(parts)) == len(taken.generated)
    assert len(parts) == pytest.approx(generated * 0.1 / MIN_SLICE, rel=0.05)


def test_in_a_short_campaign_presets_come_first() -> None:
    taken = sampler(*"abcdefghijklmnopqrst", length=60)
    for _ in range(600):
        taken.add_run(taken.next(), 0.1)
    assert not taken.generated


def test_without_presets_all_are_generated() -> None:
    taken = sampler()
    first = taken.current
    chosen = [taken.next() for _ in range(3)]
    assert set(chosen) == {first}
    assert taken.several
    for each in chosen:
        taken.add_run(each, MIN_SLICE)
    assert taken.next() is not first


def test_a_generated_configuration_that_cannot_run_here_is_followed_by_another() -> None:
    taken = sampler()
    for number in range(MAX_UNAVAILABLE):
        assert not taken.exhausted
        assert len(taken.generated) == number + 1
        taken.current.unavailable = "no such device"
        if number + 1 < MAX_UNAVAILABLE:
            taken.add_run(taken.next(), 0.0)
    assert taken.exhausted


def test_counted_the_order_depends_on_no_duration() -> None:
    orders = []
    for seconds, late in ((0.001, 0), (7.0, 4)):
        taken, waiting, order = sampler("a", "b", counted=True, length=20), [], []
        for _ in range(80):
            waiting.append(taken.next())
            order.append(waiting[-1].config.name)
            if len(waiting) > late:
                taken.add_run(waiting.pop(0), seconds)
        orders.append(order)
    assert orders[0] == orders[1]
    assert len({name for name in orders[0] if "=" in name}) > 3


# --- a campaign ----------------------------------------------------------------------------


def campaign(out: Path, *configs: Config, **changes) -> Run:
    asked = {"seed": 3, "tests": 70, "count": 8, "families": ("dag",)} | changes
    settings = settings_of(
        out=out, executors=((NAME, *configs),), time_s=600, as_generated=True, **asked
    )
    return Run(settings).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory, doubles) -> Run:
    presets = [each.name for each in Spaced.configurations()]
    configs = [configuration(NAME, each) for each in presets]
    out = tmp_path_factory.mktemp("product")
    return campaign(out, *configs, listed(NAME, PRODUCT, 0, presets))


def test_a_campaign_runs_presets_and_generated_configurations(ended: Run) -> None:
    ran = Counter(each.configuration for each in ended.of(Executed) if each.executor == NAME)
    made = [each.configuration for each in ended.of(ConfigurationGenerated)]
    assert {each.name for each in made} == {n for n in ran if n not in ("plain", "large", "two")}
    assert ran.total() == 70
    assert ran["plain"] == pytest.approx(ran["large"], abs=10)
    for each in made:
        assert each.point == Spaced.space.parsed(each.name)
        assert configuration(NAME, each.name).name == each.name
    # All that was generated is one line of the report.
    assert set(ended.lines) == {"plain", "large", "two", PRODUCT}
    assert ended.lines[PRODUCT].graphs == sum(ran[each.name] for each in made)
    assert ended.report.graphs == 70


def test_the_report_has_the_pairs_that_were_reached(ended: Run) -> None:
    (coverage,) = ended.report.settings
    runs: Counter[tuple] = Counter()
    values: Counter[str] = Counter()
    points_of = {each.name: dict(each.settings) for each in Spaced.configurations()}
    for each in ended.of(ConfigurationGenerated):
        points_of[each.configuration.name] = dict(each.configuration.point)
    for each in ended.tests(NAME):
        point = points_of[each.configuration]
        runs.update(Spaced.space.pairs_of(point))
        values.update(Spaced.space.name(point).split(";"))
    possible = Spaced.space.pairs
    assert (coverage.executor, coverage.possible) == (NAME, len(possible))
    assert coverage.reached == len(runs) > 30
    assert len(coverage.not_reached) == len(possible) - len(runs)
    assert coverage.rarest is not None
    assert coverage.rarest_graphs == min(runs.values())
    by_value = {f"{each.setting}={each.value}": each.graphs for each in coverage.values}
    assert by_value["cache=large"] == values["cache=large"] > 0
    assert by_value["traced=true"] == values["traced=true"] > 0
    assert by_value["threads=4"] + by_value["threads=1"] + by_value["threads=16"] == 70
    text = " ".join(summary(ended.report).split())
    assert f"{coverage.reached} of {coverage.possible} reached; the rarest of them" in text
    assert f"cache=large {values['cache=large']}" in text


def test_pairs_that_were_not_reached_are_named(tmp_path: Path) -> None:
    run = campaign(tmp_path, listed(NAME, PRODUCT), tests=6)
    (coverage,) = run.report.settings
    assert 0 < coverage.reached < coverage.possible
    text = " ".join(summary(run.report).split())
    assert f"pairs not reached: {' with '.join(coverage.not_reached[0])}, " in text
    ops = coverage.ops
    assert 0 < ops.reached <= ops.possible
    assert f"resource ops: {ops.reached} of {ops.possible} reached" in text
    pairs, values = coverage.op_pairs, coverage.op_values
    assert f"pairs of ops in one graph: {pairs.reached:,} of {pairs.possible:,} reached" in text
    assert f"pairs of an op and a value: {values.reached:,} of {values.possible:,} reached" in text
    assert f"and {len(coverage.not_reached) - 8} more" in text
    # In a configuration that is excluded nothing can run.
    assert ("process=three", "traced=true") not in coverage.not_reached


def test_the_seed_repeats_the_generated_configurations(tmp_path: Path, ended: Run) -> None:
    options = structs.replace(ended.settings.options, workers=2)
    again = Run(replace(ended.settings, options=options, out=tmp_path)).run()
    assert again.repeatable == ended.repeatable


def test_what_cannot_be_completed_is_impossible() -> None:
    """A value that needs another excludes what that one excludes."""
    space = ConfigurationSpace(
        {"a": (0, 1), "b": (0, 1), "c": (0, 1)},
        (Exclusion(("a", (1,)), ("b", (0,)), "needs b"), Exclusion(("b", (1,)), ("c", (1,)), "x")),
    )
    a, c = ("a", 1), ("c", 1)
    assert (a, c) in space.impossible
    assert set(space.impossible) == {(a, c), (a, ("b", 0)), (("b", 1), c)}
    assert all((a, c) not in space.pairs_of(point) for point in islice(points(space, "1"), 50))
