"""Campaigns on several executors: the same graphs, each judged by the model that it guarantees."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers import BY_FEATURE
from helpers_settings import settings_of

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign import unsound_clusters
from litmusfuzz.fuzz.campaign.campaign_executor import MAX_WAITING
from litmusfuzz.fuzz.campaign.dispatcher import CANARY_EVERY
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.oracles.translation import Soundness, validate
from litmusfuzz.reports.events import (
    ClustersChosen,
    Compared,
    Confirmed,
    Executed,
    FindingAdded,
    FindingKind,
    Generated,
    ReductionEnded,
    ReductionStarted,
    SeenAgain,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("doubles")


def campaign(out: Path, *executors: tuple[str, str], **changes) -> Run:
    chosen = tuple((name, configuration(name, config)) for name, config in executors)
    asked = {"seed": 1, "tests": 40, "count": 64, "families": BY_FEATURE} | changes
    return Run(settings_of(out=out, executors=chosen, time_s=600, **asked)).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> Run:
    """One that runs few graphs, and one in two configurations; more than a queue holds."""
    three = (("mutant/stale-reads", "plain"), ("native", "inline"), ("native", "controlled_split"))
    return campaign(tmp_path_factory.mktemp("several"), *three, tests=MAX_WAITING + 28)


def test_every_graph_is_run_or_refused_by_each(ended: Run) -> None:
    report = ended.report
    assert (report.complaint, report.exit_code()) == ("", 1)
    assert report.generated == MAX_WAITING + 28
    families = Counter(each.family for each in ended.of(Generated))
    assert report.canary[0] == sum(-(-tests // CANARY_EVERY) for tests in families.values())
    stale, inline, split = report.by_config
    for each in (stale, inline, split):
        assert each.graphs + each.refused == report.generated
        assert each.not_run == 0
    assert {each.family for each in ended.tests("mutant/stale-reads")} == {"dag"}
    assert set(stale.refused_for) >= {"queues", "loops", "conditionals"}
    generated = Counter(each.family for each in ended.of(Generated))
    assert {name: each.graphs for name, each in report.families.items()} == generated
    for config in ("inline", "controlled_split"):
        ran = [each for each in ended.tests("native") if each.configuration == config]
        assert Counter(each.family for each in ran) == generated
    assert report.compared == inline.graphs


def test_each_executor_is_judged_by_the_model_it_guarantees(ended: Run) -> None:
    report = ended.report
    assert [each.model for each in report.by_config] == ["executor", "executor", "rfc"]
    assert {f.entry.finding.executor for f in report.findings if f.entry.finding} == {
        "mutant/stale-reads"
    }
    stale, inline, split = report.differential.values()
    assert (inline.forbidden, split.forbidden) == (0, 0)
    assert stale.forbidden > 0
    assert inline.graphs == split.graphs > stale.graphs
    assert inline.missed > 0


def test_the_histograms_of_each_graph_are_kept(ended: Run) -> None:
    compared = ended.of(Compared)
    assert len(compared) == ended.report.compared
    executed = {
        (each.index, f"{each.executor}/{each.configuration}"): each for each in ended.of(Executed)
    }
    few = 0
    for each in compared:
        few += "mutant/stale-reads/plain" in each.totals
        for title, totals in each.totals.items():
            ran = executed[each.index, title]
            counts = [row["counts"][title] for row in each.outcomes]
            assert sum(counts) == totals.executions == sum(ran.verdicts.values()) >= 64
            assert sum(count > 0 for count in counts) == totals.outcomes
        for row in each.outcomes:
            assert set(row["verdicts"]) == {totals.model for totals in each.totals.values()}
    assert few == ended.report.by_config[0].graphs


def shown_by_inline(ended: Run) -> dict[tuple[str, int], tuple[str, list[tuple[str, int]]]]:
    """By family and index, the test's digest and what one configuration showed."""
    digests = {each.index: each.sha256 for each in ended.of(Executed)}
    shown = {}
    for each in ended.of(Compared):
        counts = [(str(row["outcome"]), row["counts"]["native/inline"]) for row in each.outcomes]
        found = sorted((outcome, n) for outcome, n in counts if n)
        shown[each.family, each.index] = digests[each.index], found
    return shown


def test_the_same_seed_draws_the_same_graphs_for_others(ended: Run, tmp_path: Path) -> None:
    """What they show of them is then the same as well: both are repeatable."""
    again = campaign(tmp_path, ("native", "inline"), ("native", "controlled_split"), tests=16)
    first, second = shown_by_inline(ended), shown_by_inline(again)
    both = first.keys() & second.keys()
    assert len(both) > 8
    assert all(first[name] == second[name] for name in both)


def test_findings_of_two_executors_on_one_graph_are_both_stored(tmp_path: Path) -> None:
    both = (("mutant/stale-reads", "plain"), ("mutant/dropped-control-edge", "controlled"))
    ended = campaign(tmp_path, *both, families=("dag",), tests=24)
    unreduced = [load(path).finding for path in (tmp_path / "unreduced").iterdir()]
    pairs = [(found.index, found.executor) for found in unreduced if found]
    assert len(pairs) == len(set(pairs))
    indices = [index for index, _ in pairs]
    assert ended.report.forbidden_graphs == len(set(indices)) < len(indices)


def test_counters_are_summed_over_processes(tmp_path: Path) -> None:
    """Two workers: each counts its own tests from 0."""
    ended = campaign(tmp_path, ("double/counting", "inline"), workers=2, tests=12)
    share = ended.lines["inline"]
    assert share.graphs == 12
    assert share.counters == {"compiled": 12, "found": 36, "seconds": 6.0}


def test_clusters_that_an_executor_chooses_are_validated(tmp_path: Path) -> None:
    ended = campaign(tmp_path, ("double/clusterer", "inline"), tests=28, count=1)
    report, share = ended.report, ended.lines["inline"]
    assert set(share.clusterings) == {"sound"}
    assert 0 < share.racing < share.clusterings["sound"] < 28
    assert len(ended.of(ClustersChosen)) == share.clusterings["sound"]
    assert (report.findings, report.exit_code()) == ((), 0)
    assert report.validating_s > 0


def test_an_unsound_clustering_is_a_finding_although_no_run_shows_it(tmp_path: Path) -> None:
    """The double runs the graph without its clusters."""
    double = ("double/unsafe-clusterer", "inline")
    ended = campaign(tmp_path, double, families=("dag",), seed=5, tests=8, count=1)
    report = ended.report
    assert report.exit_code() == 1
    assert {each.kind for each in report.findings} == {FindingKind.UNSOUND}
    assert not report.forbidden_graphs
    share = ended.lines["inline"]
    assert share.clusterings["unsound"] >= sum(each.count for each in report.findings) > 0
    for found in report.findings:
        entry = load(ended.path(found.file))
        assert entry == found.entry
        assert entry.finding is None
        translation = validate(entry.test)
        assert translation.verdict is Soundness.UNSOUND
        assert found.reason == (f"the clusters add {translation.added}",)
        assert len(entry.test.effects) <= 5


def test_unsound_clusters_that_a_run_reports_are_reduced_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsound_clusters, "MAX_REDUCTION_S", 600.0)
    double = ("double/unsafe-compiler", "inline")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=8, count=64)
    share = ended.lines["inline"]
    assert share.clusterings["unsound"] >= 2
    assert set(share.clusterings) == {"sound", "unsound"}
    found = [each for each in ended.report.findings if each.kind is FindingKind.UNSOUND]
    assert found
    for each in found:
        entry = load(ended.path(each.file))
        translation = validate(entry.test)
        assert translation.verdict is Soundness.UNSOUND
        added, order, shown = each.reason
        assert added == f"the clusters add {translation.added}"
        assert order == f"in the order {'; '.join(map(str, translation.witness))}"
        assert re.match(r"shown in [1-9]\d* of [\d,]+ executions: ", shown)
        assert len(entry.test.effects) <= 5
    # The others have the same ops in the same relation. Where the first one of a finding was also
    # shown by its run, both count: the clusters, and what the run showed.
    added = {(each.index, each.key) for each in ended.of(FindingAdded)}
    both = added & {(each.index, each.key) for each in ended.of(SeenAgain)}
    assert sum(each.count for each in found) == share.clusterings["unsound"] + len(both)
    # All that the runs showed is what their clusters allow: nothing else is minimized.
    assert ended.report.forbidden_graphs > 1
    assert {each.kind for each in ended.report.findings} == {FindingKind.UNSOUND}
    assert not ended.of(ReductionStarted)
    assert not ended.report.pending


def test_clusters_of_a_minimized_test_explain_it_if_those_of_its_run_are_not_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tests with an initial value other than 0 the double says nothing; minimized, all are 0."""
    monkeypatch.setattr(unsound_clusters, "MAX_REDUCTION_S", 600.0)
    double = ("double/unread-compiler", "split")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=16, count=64)
    assert ended.lines["split"].clusterings["not validated: variables with a value"] >= 1
    reduced = ended.of(ReductionEnded)
    assert reduced
    assert {each.key for each in reduced} <= {each.key for each in ended.report.findings}
    shown = {(each.index, each.configuration) for each in ended.of(SeenAgain)}
    assert {(each.index, "split") for each in reduced} <= shown
    assert {each.kind for each in ended.report.findings} == {FindingKind.UNSOUND}
    assert not ended.report.pending


def test_clusters_explain_nothing_that_a_graph_without_them_shows_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsound_clusters, "MAX_REDUCTION_S", 600.0)
    double = ("double/any-order", "split")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=16, count=64)
    reduced = ended.of(ReductionEnded)
    assert reduced
    wrong = {each.key for each in ended.report.findings if each.kind is FindingKind.FORBIDDEN}
    assert {each.key for each in reduced} <= wrong


def test_clusters_still_explain_what_a_fresh_process_has_to_show_again(tmp_path: Path) -> None:
    """The process that had shown it has crashed since."""
    double = ("double/crashing-compiler", "split")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=16, count=64)
    again = {each.index for each in ended.of(Confirmed)}
    assert again
    assert again <= {each.index for each in ended.of(SeenAgain)}
    assert {each.kind for each in ended.report.findings} == {FindingKind.UNSOUND}
    assert not ended.report.pending


def test_what_shows_without_clusters_is_no_unsound_clustering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reduced to a configuration without clusters, in which clusters explain nothing."""
    monkeypatch.setattr(unsound_clusters, "MAX_REDUCTION_S", 600.0)
    double = ("double/wrong-anyway", "split")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=16, count=64)
    wrong = {each.key for each in ended.report.findings if each.kind is FindingKind.FORBIDDEN}
    reduced = ended.of(ReductionEnded)
    assert reduced
    assert {each.key for each in reduced} <= wrong
    assert {each.configuration for each in ended.of(FindingAdded) if each.key in wrong} == {"split"}


def test_clusters_explain_only_outcomes_that_they_allow(tmp_path: Path) -> None:
    """The double's outcomes are torn, which no clusters allow."""
    double = ("double/torn-compiler", "inline")
    ended = campaign(tmp_path, double, families=("cycles",), seed=5, tests=8, count=64)
    assert ended.lines["inline"].clusterings["unsound"] >= 1
    assert ended.of(ReductionStarted)
    assert {each.kind for each in ended.report.findings} >= {FindingKind.FORBIDDEN}


def test_clusters_that_tests_came_with_are_counted(tmp_path: Path) -> None:
    """One in a hundred is unsound; no executor is blamed for that."""
    ended = campaign(
        tmp_path,
        ("double/takes-clusters", "inline"),
        families=("clusters",),
        seed=91,
        tests=12,
        count=1,
    )
    report = ended.report
    assert set(report.clusterings) == {"sound", "unsound"}
    assert 8 < sum(report.clusterings.values()) <= 12  # few have lost theirs
    assert not ended.lines["inline"].clusterings
    assert not [each for each in ended.of(FindingAdded) if each.kind is FindingKind.UNSOUND]
