"""Names and lanes as noise: what a campaign changes of a test before an executor sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.test_loop import STALE, campaign
from campaign.test_reducer import run_reduction

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.shapes import MAX_ELEMENTS, copies_of, elements
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.canonical import digest
from litmusfuzz.fuzz.campaign.causes import likely_cause
from litmusfuzz.fuzz.campaign.reduction_passes import LANES, width
from litmusfuzz.fuzz.campaign.renaming import permuted
from litmusfuzz.fuzz.campaign.variation import (
    LEAST_LANES,
    MOST_ELEMENTS,
    MOST_LANES,
    RENAMED_SHARE,
    WIDE_SHARE,
    varied,
    with_lanes,
)
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.events import Executed, FindingAdded

if TYPE_CHECKING:
    from pathlib import Path

    from campaign.campaigns import Run

WIDE = litmus("X=1; Y=2 || r0=Y; r1=X", shape=(2, 16))
SCALAR = litmus("X=1; Y=2 || r0=Y; r1=X")


def test_half_of_the_seeds_permute_names_and_few_widen() -> None:
    """The seeds are fixed, so that chance cannot fail it."""
    made = [varied(WIDE, Noise(), 3072, seed, EVERYTHING) for seed in range(3200)]
    renamed = sum(each.told.rename for each in made)
    large = [each for each in made if width(each.test) > LANES]
    assert 0.9 * RENAMED_SHARE < renamed / len(made) < 1.1 * RENAMED_SHARE
    assert WIDE_SHARE / 2 < len(large) / len(made) < 2 * WIDE_SHARE
    assert {width(each.test) for each in large} > {LEAST_LANES, MOST_LANES // 2}
    for each in made:
        assert each.noise == Noise()
        assert each.told.lanes == (width(each.test) if each in large else 1)
        assert (each.count < 3072) == (elements(each.test) > 1 << 15)
        assert each.count >= 16


def test_a_run_is_varied_by_its_seed_alone() -> None:
    for seed in range(200):
        one, other = (varied(WIDE, Noise(), 64, seed, EVERYTHING) for _ in range(2))
        assert one == other
        if one.told.rename and one.told.lanes == 1:
            assert one.test == permuted(WIDE, seed)


def test_noise_of_the_campaign_permutes_names_always() -> None:
    assert all(
        varied(WIDE, Noise(rename=True), 64, seed, EVERYTHING).told.rename for seed in range(64)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_large_test_is_the_same_test(family: str) -> None:
    made = 0
    for index in range(12):
        test = generate(family, 3, index)
        wide = with_lanes(test, MOST_LANES, EVERYTHING)
        if wide is None:
            continue
        made += 1
        assert elements(wide) <= MOST_ELEMENTS
        assert LEAST_LANES <= width(wide) <= MOST_LANES
        assert 2 * elements(wide) > MOST_ELEMENTS or width(wide) == MOST_LANES
        assert wide.names == test.names
        one, other = (Explorer(each, RFC).allowed_outcomes() for each in (test, wide))
        assert not (one.complete and other.complete) or set(one.witnesses) == set(other.witnesses)
    queues = family in ("queues", "mixed")
    assert made or queues or all(_without_rows(family, index) for index in range(12))


def _without_rows(family: str, index: int) -> bool:
    test = generate(family, 3, index)
    return test.whole or bool(test.queues) or not any(v.shape for v in test.variables)


def test_lanes_that_an_executor_does_not_take_are_not_added() -> None:
    assert with_lanes(WIDE, MOST_LANES, Support(rank_max=1)) is None
    assert with_lanes(WIDE, MOST_LANES, Support(elements_max=4 * LEAST_LANES)) is not None
    assert with_lanes(SCALAR, MOST_LANES, EVERYTHING) is None


def test_copies_of_large_tests_are_few() -> None:
    large = with_lanes(WIDE, MOST_LANES // 2, EVERYTHING)
    assert large is not None
    assert copies_of(WIDE, 32) == 32
    assert copies_of(large, 32) == MAX_ELEMENTS // elements(large) < 32


@pytest.mark.parametrize("least", [1, LANES, LANES + 1, 1 << 15, (1 << 18) + 1, MOST_LANES])
def test_lanes_are_reduced_to_those_that_it_needs(least: int) -> None:
    """By halving: few tests of many lanes are run."""
    large = litmus("X=1 || r0=X", shape=(2, MOST_LANES))
    small, asked = run_reduction(large, lambda test: width(test) >= least and _reads(test))
    wanted = 1 if least == 1 else LANES
    while wanted < least:
        wanted *= 2
    assert width(small) == wanted
    assert {width(test) for test in asked[:5]} <= {1 << n for n in range(12, 21)}
    assert sum(width(test) > LANES for test in asked) <= 12 or least > LANES
    assert ("large tensors" in likely_cause(small, next(iter(_outcomes(small))))) == (least > LANES)


def _reads(test) -> bool:
    return len(test.effects) == 2


def _outcomes(test):
    return Explorer(test, RFC).allowed_outcomes().witnesses


# --- campaigns -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return campaign(tmp_path_factory.mktemp("campaign"), tests=64).run()


def test_what_was_run_is_in_the_files(ended: Run) -> None:
    """The event has the seed, and the digest of the test as it was generated."""
    renamed = [each for each in ended.of(Executed) if "rename=true" in each.noise]
    assert len(ended.of(Executed)) / 4 < len(renamed) < 3 * len(ended.of(Executed)) / 4
    shown = [each for each in renamed if each.unreduced and "lanes" not in each.noise]
    assert shown
    changed = 0
    for each in shown:
        test = generate(each.family, ended.settings.seed, each.index)
        assert digest(test) == each.sha256
        entry = load(ended.path(each.unreduced or ""))
        again = permuted(test, each.run_seed)
        assert entry.test.graphs == again.graphs
        assert entry.finding is not None
        assert not entry.finding.noise["rename"]
        changed += again.graphs != test.graphs
    assert changed
    assert {each.index for each in ended.of(FindingAdded)} & {each.index for each in shown}


def test_a_sound_executor_shows_nothing_forbidden(tmp_path: Path) -> None:
    native = (("native", configuration("native", "controlled")),)
    run = campaign(tmp_path, "native", executors=native, tests=150, families=()).run()
    noise = {each.noise for each in run.of(Executed)}
    assert {"default", "rename=true"} <= noise
    assert any("lanes=" in each for each in noise)
    assert not run.report.forbidden_graphs


def test_executors_are_compared_under_the_names_of_the_generated_test(tmp_path: Path) -> None:
    executors = ((STALE, configuration(STALE)), ("native", configuration("native", "controlled")))
    run = campaign(tmp_path, executors=executors, tests=20).run()
    assert run.report.compared
    totals = run.report.differential
    assert sum(each.missed for each in totals.values()) < sum(
        each.outcomes for each in totals.values()
    )
