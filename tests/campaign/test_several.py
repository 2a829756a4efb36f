"""Campaigns on several executors: the same graphs, each judged by the model that it guarantees."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from campaign.doubles import installed
from helpers import BY_FEATURE

from litmusfuzz.corpus.textfile import load, loads
from litmusfuzz.fuzz.campaign.dispatcher import MAX_WAITING
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.translation import Soundness, validate

if TYPE_CHECKING:
    from litmusfuzz.reports.records import RunRecord

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def doubles(tmp_path_factory):
    """Doubles are executors, here and in the workers."""
    folder = installed(tmp_path_factory.mktemp("doubles"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(TESTS)]))
        yield


def campaign(out: Path, *executors: tuple[str, str], **changes) -> RunRecord:
    chosen = tuple((name, configuration(name, config)) for name, config in executors)
    asked = {"seed": 1, "tests": 40, "count": 64, "model": None, "families": BY_FEATURE} | changes
    settings = Settings(out=out, executors=chosen, time_s=600, **asked)
    return Campaign(settings, lambda record: None).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> RunRecord:
    """One that runs few graphs, and one in two configurations; more than a queue holds."""
    three = (("mutant/stale-reads", "plain"), ("native", "inline"), ("native", "controlled_split"))
    return campaign(tmp_path_factory.mktemp("several"), *three, tests=MAX_WAITING + 28)


def test_every_graph_is_run_or_refused_by_each(ended: RunRecord) -> None:
    assert (ended.problem, ended.exit_code()) == ("", 1)
    assert ended.graphs == ended.canary_runs == MAX_WAITING + 28
    stale, inline, split, _ = ended.executors
    for each in (stale, inline, split):
        assert each.tests + each.refused_graphs == ended.graphs
        assert each.not_run == 0
    assert stale.families == {"dag": stale.tests}
    assert set(stale.refused) >= {"queues", "loops", "conditionals"}
    generated = {name: each.graphs for name, each in ended.families.items()}
    assert inline.families == split.families == generated
    assert ended.compared == inline.tests


def test_each_executor_is_judged_by_the_model_it_guarantees(ended: RunRecord) -> None:
    assert [each.model for each in ended.executors[:3]] == ["executor", "executor", "rfc"]
    assert {f.entry.finding.executor for f in ended.findings if f.entry.finding} == {
        "mutant/stale-reads"
    }
    stale, inline, split = ended.differential.values()
    assert (inline.forbidden, split.forbidden) == (0, 0)
    assert stale.forbidden > 0
    assert inline.graphs == split.graphs > stale.graphs
    assert inline.missed > 0


def test_the_histograms_of_each_graph_are_kept_and_the_graph_with_them(ended: RunRecord) -> None:
    lines = Path(ended.kept_in).read_text().splitlines()
    assert len(lines) == ended.kept == ended.compared
    few = 0
    for line in lines:
        data = json.loads(line)
        assert loads(data["test"]).test == generate(data["family"], 1, data["index"])
        few += "mutant/stale-reads/plain" in data["executors"]
        for title in data["executors"]:
            assert sum(row["counts"][title] for row in data["outcomes"]) >= 64
        for row in data["outcomes"]:
            assert set(row["verdicts"]) == set(data["executors"].values())
    assert few == ended.executors[0].tests


def test_the_same_seed_draws_the_same_graphs_for_others(ended: RunRecord, tmp_path: Path) -> None:
    """What they show of them is then the same as well: both are repeatable."""
    again = campaign(tmp_path, ("native", "inline"), ("native", "controlled_split"), tests=16)
    lines = {}
    for record in (ended, again):
        for line in Path(record.kept_in).read_text().splitlines():
            data = json.loads(line)
            counts = [(row["outcome"], row["counts"]["native/inline"]) for row in data["outcomes"]]
            lines.setdefault((data["family"], data["index"]), []).append(
                (data["test"], sorted((str(o), n) for o, n in counts if n))
            )
    both = [found for found in lines.values() if len(found) == 2]
    assert len(both) > 8
    assert all(first == second for first, second in both)


def test_findings_of_two_executors_on_one_graph_are_both_stored(tmp_path: Path) -> None:
    both = (("mutant/stale-reads", "plain"), ("mutant/dropped-control-edge", "controlled"))
    record = campaign(tmp_path, *both, families=("dag",), tests=12)
    unreduced = [load(path).finding for path in (tmp_path / "unreduced").iterdir()]
    pairs = [(found.index, found.executor) for found in unreduced if found]
    assert len(pairs) == len(set(pairs))
    indices = [index for index, _ in pairs]
    assert record.forbidden_graphs == len(set(indices)) < len(indices)


def test_counters_are_summed_over_processes(tmp_path: Path) -> None:
    """Two workers: each counts its own tests from 0."""
    record = campaign(tmp_path, ("double/counting", "inline"), workers=2, tests=12)
    (state, _) = record.executors
    assert state.tests == 12
    assert state.counters == {"compiled": 12, "found": 36, "seconds": 6.0}
    assert record.as_json()["executors"][0]["counters"] == state.counters


def test_clusters_that_an_executor_chooses_are_validated(tmp_path: Path) -> None:
    record = campaign(tmp_path, ("double/clusterer", "inline"), tests=28, count=1)
    (state, _) = record.executors
    assert set(state.clusterings) == {"sound"}
    assert 0 < state.racing < state.clusterings["sound"] < 28
    assert (record.unsound, record.exit_code()) == ([], 0)
    assert record.validating_s > 0


def test_an_unsound_clustering_is_a_finding_although_no_run_shows_it(tmp_path: Path) -> None:
    """The double runs the graph without its clusters."""
    double = ("double/unsafe-clusterer", "inline")
    record = campaign(tmp_path, double, families=("dag",), seed=5, tests=8, count=1)
    (state, _) = record.executors
    assert record.exit_code() == 1
    assert not record.findings
    assert state.clusterings["unsound"] >= len(record.unsound) > 0
    for found in record.unsound:
        entry = load(found.path)
        assert entry.test == found.test
        assert entry.finding is None
        translation = validate(entry.test)
        assert (translation.verdict, translation.added) == (Soundness.UNSOUND, found.added)
        assert len(entry.test.effects) <= 5


def test_clusters_that_tests_came_with_are_counted(tmp_path: Path) -> None:
    """One in a hundred is unsound; no executor is blamed for that."""
    record = campaign(
        tmp_path,
        ("double/takes-clusters", "inline"),
        families=("clusters",),
        seed=91,
        tests=12,
        count=1,
    )
    (state, _) = record.executors
    assert set(record.clusterings) == {"sound", "unsound"}
    assert 8 < record.clusterings.total() <= 12  # few have lost theirs
    assert not state.clusterings
    assert not record.unsound
