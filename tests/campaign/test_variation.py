"""Names, order and lanes as noise: what a campaign changes of a test before it is run."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from campaign.test_loop import STALE, campaign
from campaign.test_reducer import run_reduction
from helpers import check_as_if_made_anew

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import levels
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.shapes import MAX_ELEMENTS, copies_of, elements
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, load
from litmusfuzz.fuzz.campaign.variation import (
    LANES_SHARE,
    MAX_LANES,
    MAX_LARGE_ELEMENTS,
    MIN_LANES,
    MIN_LARGE_EXECUTIONS,
    NAMES_SHARE,
    ORDER_SHARE,
    Variation,
    varied,
    with_lanes,
)
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.canonical import digest, form, reordered
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.finding.renaming import permuted
from litmusfuzz.fuzz.finding.resource_passes import LANES, width
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES, RFC, Axiom
from litmusfuzz.reports.events import Executed, FindingAdded

if TYPE_CHECKING:
    from pathlib import Path

    from campaign.campaigns import Run

    from litmusfuzz.corpus.model import Level, LitmusTest, Node

WIDE = litmus("X=1; Y=2 || r0=Y; r1=X", shape=(2, 16))
SCALAR = litmus("X=1; Y=2 || r0=Y; r1=X")
READS = litmus("r0=X || r1=X", shape=(2, 16))
IN_ORDER = next(model for model in GUARANTEES.values() if Axiom.PROGRAM_ORDER in model.axioms)


# --- the choice ------------------------------------------------------------------------


def test_the_stated_shares_of_seeds_vary_names_order_and_lanes() -> None:
    """The seeds are fixed, so that chance cannot fail it."""
    seeds = range(1 << 14)
    chosen = [Variation.choose(WIDE, seed, EVERYTHING) for seed in seeds]
    for share, count in (
        (NAMES_SHARE, sum(each.names for each in chosen)),
        (ORDER_SHARE, sum(each.order for each in chosen)),
        (LANES_SHARE, sum(each.lanes > 0 for each in chosen)),
    ):
        assert 0.7 * share < count / len(seeds) < 1.3 * share
    lanes = Counter(each.lanes for each in chosen if each.lanes)
    assert max(lanes) == MAX_LANES // 2  # two rows: a tensor has 2**20 elements at most
    assert min(lanes) >= MIN_LANES
    assert chosen == [Variation.choose(WIDE, seed, EVERYTHING) for seed in seeds]


@pytest.mark.parametrize("test", [SCALAR, READS], ids=["scalars", "no write"])
def test_lanes_stay_where_nothing_copies_a_tensor(test: LitmusTest) -> None:
    assert not any(Variation.choose(test, seed, EVERYTHING).lanes for seed in range(1 << 14))


def test_a_large_test_fits_the_limits_and_the_executor() -> None:
    many = litmus("X=1; Y=2; Z=3 || r0=Y; r1=X; r2=Z || X+=1; Y+=1; Z+=1", shape=(3, 16))
    for support in (EVERYTHING, Support(elements_max=6 * MIN_LANES)):
        made = [
            varied(many, each, 1, RFC)
            for each in (Variation.choose(many, seed, support) for seed in range(1 << 13))
            if each.lanes
        ]
        assert made
        for each in made:
            assert not support.lacking(each.test)
            assert elements(each.test) <= MAX_LARGE_ELEMENTS
            assert MIN_LARGE_EXECUTIONS <= each.count(3072) < 3072
    assert not any(
        Variation.choose(many, seed, Support(rank_max=1)).lanes for seed in range(1 << 13)
    )


def test_copies_of_large_tests_are_few() -> None:
    assert with_lanes(WIDE, MAX_LANES) is None
    large = with_lanes(WIDE, MAX_LANES // 2)
    assert large is not None
    assert copies_of(WIDE, 32) == 32
    assert copies_of(large, 32) == MAX_ELEMENTS // elements(large) < 32


@pytest.mark.parametrize("text", ["", "names", "order", "names,order,lanes=524288"])
def test_the_notation_of_events(text: str) -> None:
    assert str(Variation.parse(text)) == text


@pytest.mark.parametrize("text", ["name", "lanes", "lanes=7", "lanes=x", f"lanes={2 * MAX_LANES}"])
def test_a_variation_that_is_not_one(text: str) -> None:
    with pytest.raises(ValueError, match="lanes"):
        Variation.parse(text)


# --- the test that is run --------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_varied_test_is_the_same_test(family: str) -> None:
    """The same allowed outcomes under its own keys, and the same canonical form."""
    models = (RFC, IN_ORDER)
    compared = renamed = moved = 0
    for index in range(8):
        test = generate(family, 3, index)
        model = RFC if test.clusters else models[index % 2]  # no program has clusters
        for lanes in {0, MIN_LANES if with_lanes(test, MIN_LANES) else 0}:
            made = varied(test, Variation(names=True, order=True, lanes=lanes), index, model)
            plain = varied(test, Variation(lanes=lanes), index, model).test
            assert form(made.test, model) == form(plain, model)
            renamed += tuple(made.keys) != tuple(made.keys.values())
            named = varied(test, Variation(names=True, lanes=lanes), index, model).test
            moved += made.test.nodes != named.nodes
            one, other = (Explorer(each, model).allowed_outcomes() for each in (test, made.test))
            if one.complete and other.complete:
                compared += 1
                shown = made.as_generated(dict.fromkeys(other.witnesses, 1))
                assert set(shown) == set(one.witnesses)
    assert compared
    assert renamed
    assert moved


@pytest.mark.parametrize("family", FAMILIES)
def test_a_varied_test_is_as_if_made_of_its_parts(family: str) -> None:
    """Nothing of it is checked again, and whatever is derived must be what a check would derive."""
    for index in range(12):
        test = generate(family, 5, index)
        check_as_if_made_anew(permuted(test, index))
        for model in GUARANTEES.values():
            for names in (False, True):
                check_as_if_made_anew(
                    varied(test, Variation(names=names, order=True), index, model).test
                )


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_model_takes_from_the_order_of_the_file_stays(family: str) -> None:
    moved = 0
    for index in range(6):
        test = generate(family, 7, index)
        clustered = {name for cluster in test.clusters for name in cluster.members}
        for model in GUARANTEES.values():
            again = reordered(test, model, index)
            moved += again != test
            found = {level.path: level.nodes for level in all_levels(again)}
            for level in all_levels(test):
                places = {node.name: place for place, node in enumerate(found[level.path])}
                assert places.keys() == {node.name for node in level.nodes}
                chained = model.axioms & {Axiom.SEQUENCE, Axiom.ONE_CLUSTER}
                if chained or (Axiom.IN_TURN in model.axioms and not level.around):
                    assert list(places) == [node.name for node in level.nodes]
                for later in found[level.path]:
                    above = {name for name in later.sources if name in places}
                    assert all(places[name] < places[later.name] for name in above)
                if Axiom.PROGRAM_ORDER in model.axioms or clustered.intersection(level.around):
                    for one, other in combinations(level.nodes, 2):
                        assert not conflict(one, other) or places[one.name] < places[other.name]
    assert moved


def all_levels(test: LitmusTest) -> list[Level]:
    return [level for graph in test.graphs for level in levels(graph)]


def conflict(one: Node, other: Node) -> bool:
    """True if both work on a resource themselves, not by a handle, and one of them changes it."""
    kinds = {each.definition.kind for each in (one, other)}
    if one.handle or other.handle or Kind.SECTION in kinds:
        return False
    shared = set(one.resources) & set(other.resources)
    return bool(shared) and not all(kind.only_reads for kind in kinds)


def test_every_order_comes() -> None:
    test = litmus("r0=X; X+=1 || r1=X || r2=X")
    orders = {tuple(n.name for n in reordered(test, RFC, seed).nodes) for seed in range(1500)}
    # Five nodes, the constant and r0 before the update: 5!/3. The seeds are fixed.
    assert len(orders) == 40


def test_program_order_stays_where_the_file_has_it() -> None:
    test = replace(litmus("X=1 || X=2 || r0=X"), name="t")
    before = [node.name for node in test.effects]
    for seed in range(50):
        assert [node.name for node in reordered(test, IN_ORDER, seed).effects] == before
    assert any(
        [node.name for node in reordered(test, RFC, seed).effects] != before for seed in range(50)
    )


def test_a_judgement_is_of_the_test_as_it_was_run() -> None:
    made = varied(WIDE, Variation(names=True, order=True), 3, RFC)
    assert tuple(made.keys) == WIDE.names != made.test.names
    shown = dict.fromkeys(Explorer(made.test, RFC).allowed_outcomes().witnesses, 2)
    judgement = judge(Explorer(WIDE, RFC), made.as_generated(shown))
    assert judgement.verdicts == {Verdict.ALLOWED: 2 * len(shown)}
    again = made.as_run(judgement)
    assert again.histogram == shown
    for outcome in shown:
        assert again.oracle.judge(outcome) is Verdict.ALLOWED
        stale = replace(outcome, values=tuple((key, (7, 7)) for key, _ in outcome.values))
        assert again.oracle.judge(stale) is Verdict.FORBIDDEN


def test_a_file_of_a_large_test_lists_no_values() -> None:
    """Equal rows are one number in the file, and other rows one number each."""
    for text in ("X=1; Y=2 || r0=Y; r1=X", "X=1 || X+=2 || r0=X"):
        large = with_lanes(litmus(text, shape=(4, 16)), MAX_LANES // 4)
        assert large is not None
        assert len(dumps(Entry(large))) < 1500
    rows = replace(WIDE, variables=tuple(replace(v, init=(5, 6)) for v in WIDE.variables))
    large = with_lanes(rows, MAX_LANES // 2)
    assert large is not None
    assert "init: [5, 6]" in dumps(Entry(large))


# --- reduction -------------------------------------------------------------------------


@pytest.mark.parametrize("least", [1, LANES, LANES + 1, 1 << 15, (1 << 18) + 1, MAX_LANES])
def test_lanes_are_reduced_to_those_that_it_needs(least: int) -> None:
    """By halving: few tests of many lanes are run."""
    large = litmus("X=1 || r0=X", shape=(1, MAX_LANES))
    small, asked = run_reduction(
        large, lambda test: width(test) >= least and len(test.effects) == 2
    )
    wanted = 1 if least == 1 else LANES
    while wanted < least:
        wanted *= 2
    assert width(small) == wanted
    assert width(asked[0]) == LANES
    assert {width(test) for test in asked if width(test) > LANES} <= {1 << n for n in range(21)}
    assert least > LANES or not any(width(test) > LANES for test in asked)


# --- campaigns -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return campaign(tmp_path_factory.mktemp("campaign"), tests=64).run()


def test_events_say_what_was_run_byte_for_byte(ended: Run) -> None:
    executed = ended.of(Executed)
    assert {"", "names", "order", "names,order"} <= {each.variation for each in executed}
    for each in executed:
        test = generate(each.family, ended.settings.options.seed, each.index)
        variation = Variation.parse(each.variation)
        made = varied(test, variation, each.run_seed, GUARANTEES[each.model])
        assert digest(made.test) == each.sha256
        assert (each.sha256 == digest(test)) >= (not each.variation)
        if each.unreduced:
            assert replace(load(ended.path(each.unreduced)).test, name=test.name) == made.test
    shown = {each.index for each in executed if each.unreduced and each.variation}
    assert shown & {each.index for each in ended.of(FindingAdded)}


def test_a_campaign_may_leave_tests_as_they_are(tmp_path: Path) -> None:
    run = campaign(tmp_path, tests=8, as_generated=True).run()
    for each in run.of(Executed):
        assert not each.variation
        assert each.sha256 == digest(generate(each.family, run.settings.options.seed, each.index))


def test_a_sound_executor_shows_nothing_forbidden(tmp_path: Path) -> None:
    native = (("native", configuration("native", "controlled")),)
    run = campaign(tmp_path, "native", executors=native, tests=150, families=()).run()
    assert {"", "names", "order"} <= {each.variation for each in run.of(Executed)}
    assert not run.report.forbidden_graphs


def test_executors_are_compared_under_the_keys_of_the_generated_test(tmp_path: Path) -> None:
    executors = ((STALE, configuration(STALE)), ("native", configuration("native", "controlled")))
    run = campaign(tmp_path, executors=executors, tests=20).run()
    assert run.report.compared
    totals = run.report.differential
    assert sum(each.missed for each in totals.values()) < sum(
        each.outcomes for each in totals.values()
    )
