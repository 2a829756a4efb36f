"""Races planted in programs that are as users write them: all are reported, no repaired one is."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.checking import check, concurrent_runs
from litmusfuzz.fuzz.programs.tensorflow.modules import read_modules
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from litmusfuzz.fuzz.programs.checking import CheckedAnomaly

FOLDER = Path(__file__).parent / "planted"
STEP = {"step": ["step"]}

GRAPHS = {
    "two_assigns": ("step", {("order only", "x")}),
    "loss": ("step loss", {("stale read", "weight")}),
    "average": ("step", {("stale read", "weight")}),
    "early_read": ("step", {("stale read", "weight")}),
    "metric": ("step mean", {("torn snapshot", "count total")}),
    "swap": ("step", {("stale read", "a b")}),
    "schedule": ("step", {("stale read", "number")}),
    "summary": ("step norm", {("stale read", "weight")}),
    "statistics": ("step normalized", {("stale read", "mean")}),
    "zero": ("step", {("stale read", "gradient")}),
    "target": ("step", {("stale read", "online")}),
    "reference": ("step twice", {("stale read", "weight")}),
    "doubled": ("step", {("lost update", "x")}),
    "crossed": ("both", {("torn snapshot", "a b")}),
    "branch": ("step seen", {("stale read", "x")}),
    "functional_branch": ("step seen", {("stale read", "x")}),
    "hoisted": ("step seen", {("stale read", "x")}),
    "iterations": ("step", {("lost update", "x")}),
    "functional_loop": ("step seen", {("stale read", "x")}),
    "calls": ("step", {("lost update", "x")}),
    "handles": ("step seen", {("stale read", "x")}),
    "negation": ("step", {("order only", "total")}),
    "functional_negation": ("step", {("order only", "total")}),
}
"""By name: what is fetched, and the anomalies of the racy graph, each with its variables."""

FUNCTIONS = {
    "step": ("step_racy", "step_racy", {("stale read", "weight")}),
    "count": ("count_racy", "count_racy", {("lost update", "counter")}),
    "mean": ("record_racy", "mean_racy", {("torn snapshot", "seen total")}),
    "reset": (
        "record_racy",
        "reset_racy",
        {("order only", "seen total")},
    ),
    "follow": ("descend_racy", "follow_racy", {("stale read", "online")}),
    "predict": ("fit_racy", "predict_racy", {("torn snapshot", "bias kernel")}),
    "one section": (
        "fit_repaired",
        "predict_without_section",
        {("torn snapshot", "bias kernel")},
    ),
    "two sections": (
        "fit_repaired",
        "predict_in_two_sections",
        {("torn snapshot", "bias kernel")},
    ),
    "accumulation": ("accumulate_racy", "apply_racy", {("stale read", "gradients")}),
    "rate": ("tune_racy", "lower_racy", {("stale read", "rate")}),
    "best": ("best_racy", "best_racy", {("lost update", "best")}),
    "words": ("learn_racy", "look_up_racy", {("stale read", "table")}),
    "embedding": ("embed_racy", "embed_racy", {("lost update", "embedding")}),
    "compiled": ("compiled_racy", "compiled_racy", {("lost update", "compiled")}),
    "loop": ("many_steps_racy", "snapshot_racy", {("torn snapshot", "first second")}),
    "nested": ("nested_racy", "double", {("lost update", "shared")}),
}
REPAIRED = (
    ("step_repaired", "step_repaired"),
    ("count_repaired", "count_repaired"),
    ("record_repaired", "mean_repaired"),
    ("record_repaired", "reset_repaired"),
    ("descend_repaired",),
    ("fit_repaired", "predict_repaired"),
    ("accumulate_repaired", "apply_repaired"),
    ("tune_repaired", "lower_racy"),
    ("best_repaired", "best_repaired"),
    ("look_up_repaired",),
    ("embed_repaired", "embed_repaired"),
    ("compiled_repaired", "compiled_repaired"),
    ("many_steps_repaired", "snapshot_repaired"),
    ("nested_repaired", "double"),
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(FOLDER)


def assert_permitted(found: CheckedAnomaly) -> None:
    """Edges permit both orders of an anomaly."""
    for order in found.anomaly.orders:
        for early, late in combinations([found.anomaly.sites[place] for place in order], 2):
            side = found.scenario.sides[early.side]
            assert early.side != late.side or not side.order.ordered(late.number, early.number)


def anomalies_of(targets: list[str], runs: dict[str, list[str]]) -> set[tuple[str, str]]:
    """Kind and variables of each anomaly; one target given twice runs beside itself."""
    program = read_modules(list(dict.fromkeys(targets)), [], runs).program
    names = {each.name: each for each in program.entries}
    own = [] if runs else [",".join(target.partition(":")[2] for target in targets)]
    pairs = concurrent_runs(program, own if len(targets) > 1 else [], names)
    report, found = check(program, pairs)
    for each in report.anomalies:
        assert all(access.file.endswith(".py") for access in each.accesses), each
    for one in found:
        assert_permitted(one)
    return {(each.kind, " ".join(each.variables)) for each in report.anomalies}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_race_of_a_graph_is_reported_and_its_repair_is_not(name: str) -> None:
    fetches, expected = GRAPHS[name]
    runs = {"step": fetches.split()}
    assert anomalies_of([f"sessions:{name}_racy"], runs) == expected
    assert anomalies_of([f"sessions:{name}_repaired"], runs) == set()


def test_two_runs_of_a_graph() -> None:
    runs = {"train": ["train"], "copy": ["copy"]}
    for name, variables in (("two_runs", "bias kernel"), ("normalized", "kernel mean")):
        expected = {("torn snapshot", variables)}
        assert anomalies_of([f"sessions:{name}_racy"], runs) == expected
        assert anomalies_of([f"sessions:{name}_repaired"], runs) == set()


def test_branches_of_one_predicate_never_meet() -> None:
    assert anomalies_of(["sessions:both_branches_repaired"], STEP) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_race_of_two_functions_is_reported(name: str) -> None:
    first, second, expected = FUNCTIONS[name]
    assert anomalies_of([f"side_by_side:{first}", f"side_by_side:{second}"], {}) == expected


@pytest.mark.parametrize("names", REPAIRED, ids=" ".join)
def test_no_race_of_repaired_functions_is_reported(names: tuple[str, ...]) -> None:
    assert anomalies_of([f"side_by_side:{name}" for name in names], {}) == set()


def test_the_programs_were_imported_from_the_tests() -> None:
    read_modules(["sessions:loss_racy"], [], STEP)
    assert Path(str(sys.modules["sessions"].__file__)).parent == FOLDER


def test_updates_that_commute_can_be_lost_in_a_cluster() -> None:
    """By the allowed sets: one of two `assign_add` is lost only where a cluster holds the other."""
    live = read_modules(["side_by_side:count_repaired"], [], {})
    report, found = check(live.program, [("count_repaired", "count_repaired")])
    assert not found
    (each,) = report.clustered
    assert (each.variable, each.runs, each.pairs) == ("counter", ("count_repaired",) * 2, 1)
    assert "with XLA's auto-clustering: lost update of counter" in report.text()
    test = litmus("X+=1 ||| X+=2")
    (update,) = test.graphs[0].effects
    constant = test.graphs[0].nodes[0].name
    clustered = replace(test, clusters=(Cluster("c", (constant, update.name)),))
    sums = [
        {dict(each.values)["X"] for each in allowed_outcomes(one, EXECUTOR).witnesses}
        for one in (test, clustered)
    ]
    assert sums == [{(3,)}, {(1,), (3,)}]
