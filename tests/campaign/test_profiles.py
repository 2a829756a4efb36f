"""Campaigns that go through several configurations of one executor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from campaign.doubles import installed

from corpus.textfile import load
from fuzz.campaign.loop import Campaign
from fuzz.campaign.settings import Settings
from fuzz.executors.table import executor_class
from reports.summary import summary

if TYPE_CHECKING:
    from reports.records import ExecutorState, RunRecord

TESTS = Path(__file__).parents[1]
NAME = "double/profiled"


@pytest.fixture(scope="module", autouse=True)
def doubles(tmp_path_factory):
    folder = installed(tmp_path_factory.mktemp("doubles"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(TESTS)]))
        yield


def campaign(out: Path, **changes) -> RunRecord:
    configs = executor_class(NAME).configurations()
    asked = {"seed": 2, "tests": 98, "count": 64, "model": None, "families": ("dag",)} | changes
    settings = Settings(out=out, executors=((NAME, *configs),), time_s=600, **asked)
    return Campaign(settings, lambda record: None).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> RunRecord:
    return campaign(tmp_path_factory.mktemp("profiles"))


def states(record: RunRecord) -> dict[str, ExecutorState]:
    return {each.config: each for each in record.executors if each.spread}


def test_each_graph_runs_in_one_of_them(ended: RunRecord) -> None:
    assert (ended.problem, ended.exit_code()) == ("", 1)
    assert sum(each.graphs for each in states(ended).values()) == ended.graphs == 98
    for each in states(ended).values():
        assert each.tests + each.refused_graphs == each.graphs
        assert each.verdicts.total() == each.outcomes - each.minimizing_outcomes
    ran = {name: each.tests for name, each in states(ended).items() if each.tests}
    assert set(ran) == {"sound", "stale", "split", "weak", "stale_too"}
    assert max(ran.values()) <= 2 * min(ran.values())


def test_what_cannot_run_is_told_and_the_others_go_on(ended: RunRecord) -> None:
    told = {name: each.unavailable for name, each in states(ended).items() if each.unavailable}
    assert told["missing"] == "no such device"
    assert told["dies"].startswith("does not start: ")
    assert set(told) == {"missing", "dies"}
    text = summary(ended)
    assert text.count("cannot run here: no such device") == 1
    assert states(ended)["dies"].crashed == 1
    assert not ended.deaths


def test_each_is_judged_by_what_it_promises(ended: RunRecord) -> None:
    by = {name: each.model for name, each in states(ended).items()}
    assert (by["split"], by["weak"]) == ("executor", "rfc")
    assert not states(ended)["sound"].forbidden_graphs
    assert not states(ended)["weak"].forbidden_graphs


def test_a_finding_is_reported_once_with_all_that_showed_it(ended: RunRecord) -> None:
    """In another environment as well, where it is run before it is counted."""
    both = [f for f in ended.findings if {"stale", "stale_too"} <= set(f.configs)]
    assert both
    tests = [reported.entry.test for reported in ended.findings]
    assert len(tests) == len(set(tests))
    assert sum(f.configs.total() for f in ended.findings) == ended.forbidden_graphs
    for reported in ended.findings:
        assert reported.configs.total() == reported.more + 1
        assert load(reported.path) == reported.entry
        assert reported.entry.finding.confirmed


def test_what_breaks_the_stricter_model_only_is_reported_as_that(tmp_path: Path) -> None:
    """Updates in two parts, which `rfc` allows, by who promises `executor`."""
    (config,) = (c for c in executor_class(NAME).configurations() if c.name == "split")
    settings = Settings(1, tmp_path, ((NAME, config),), 600, 20, ("dag",), count=64, model=None)
    record = Campaign(settings, lambda record: None).run()
    assert record.findings
    assert {reported.allowed_by for reported in record.findings} == {("rfc",)}
    assert "only      executor forbids it; rfc allows it" in summary(record)


def test_the_seed_repeats_who_runs_what(tmp_path: Path, ended: RunRecord) -> None:
    again = campaign(tmp_path, workers=2)
    assert {n: e.families for n, e in states(again).items()} == {
        n: e.families for n, e in states(ended).items()
    }


def test_the_record_is_kept(ended: RunRecord) -> None:
    kept = json.loads((Path(ended.out) / f"record-{ended.seed}.json").read_text())
    assert kept == json.loads(json.dumps(ended.as_json()))
    reached = kept["executors"][1]["reached"]
    assert reached["graphs"] > 0
    assert 0 < reached["median"] <= 1
    assert reached["families"]["dag"] == {k: reached[k] for k in ("graphs", "median")}


def test_the_summary_has_a_line_for_each(ended: RunRecord) -> None:
    lines = summary(ended).splitlines()
    start = lines.index("  each graph in one configuration:")
    header = lines[start + 1]
    assert header.split()[:4] == ["by", "graphs", "seconds", "outcomes"]
    titles = [line.split()[0] for line in lines[start + 2 : start + 7]]
    names = ("sound", "stale", "split", "weak", "stale_too")
    assert titles == [f"{NAME}/{name}" for name in names]
