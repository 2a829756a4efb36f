"""Benchmark of the oracle: its tests, counts and report. No test checks a time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import partial

import pytest

from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.bench import oracle
from litmusfuzz.fuzz.bench.programs import (
    chains,
    changed,
    computed,
    executed,
    hidden,
    looped,
    simulated,
)
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.bench import BenchReport, Curve, Figure, bar, shown


@pytest.mark.parametrize("seed", range(20))
def test_simulated_outcomes_are_allowed(seed: int) -> None:
    """Loops too: the sets are the explorer's, which is tested against the reference."""
    rng = random.Random(seed)
    for test in (
        chains(rng, (3, 3), "XY", 0),
        looped(rng, (2, 2), 3, 2, "XY"),
        hidden(looped(rng, (2, 2), 3, 2, "XY"), rng, 1 / 3),
    ):
        allowed = Explorer(test, RFC).allowed_outcomes()
        for _ in range(20):
            assert simulated(test, rng) in allowed.witnesses


def test_random_orders_show_more_than_one_outcome() -> None:
    test = looped(random.Random(1), (2, 3), 3, 2, "XY")
    rng = random.Random(2)
    assert len({simulated(test, rng) for _ in range(100)}) > 10


def test_the_large_program_has_256_ops_and_a_loop_of_8() -> None:
    test = looped(random.Random(3), *oracle.LARGE)
    ops = [n for n in all_nodes(test.graph.nodes) if n.resources]
    assert len(ops) == 256
    assert test.bounds["loop"] == 8
    assert len(unfold(test, RFC).events) == 248 + 8 * 8


def test_a_third_is_hidden_and_the_order_kept() -> None:
    test = chains(random.Random(1), (8, 8), "XY", 0)
    rest = hidden(test, random.Random(2), 1 / 3).observe
    assert len(rest) == round(len(test.observe) * 2 / 3)
    assert [name for name in test.observe if name in rest] == list(rest)


def test_computed_operands_and_the_outcome_of_an_order() -> None:
    rng = random.Random(4)
    test = computed(rng, 100, 12)
    nodes = test.graph.nodes
    assert 100 <= sum(not node.definition.constant for node in nodes) < 130
    assert sum(bool(node.resources) for node in nodes) == 12
    orders = {executed(test, random.Random(seed)) for seed in range(8)}
    assert len(orders) > 1
    judge = Explorer(test, RFC)
    assert {judge.judge(each) for each in orders} == {Verdict.ALLOWED}


def test_a_change_keeps_the_names() -> None:
    rng = random.Random(1)
    test = chains(rng, (3, 3), "XY", 0)
    seen = simulated(test, rng)
    found = {changed(test, seen, rng) for _ in range(20)}
    assert len(found - {seen}) > 1
    assert all([n for n, _ in each.values] == list(test.names) for each in found)


def test_unknown_is_counted_and_left_out_of_the_times() -> None:
    """Values that stand often, and one state: some are cut off, some need no search."""
    budget = Budget(states=1)
    make = partial(chains, shape=(6, 6), names="XY", values=2)
    of_a_run, altered = oracle.membership("m", make, tests=6, budget=budget)
    assert of_a_run.asked == 6
    assert of_a_run.unknown > 0
    assert of_a_run.cut_off_s is not None
    assert altered.asked > 0
    assert f"{of_a_run.unknown} of 6 unknown after" in of_a_run.cells()["note"]


def test_times_that_were_cut_off_are_in_no_median() -> None:
    partly, none = oracle.timed("t", [1, 3], [7, 9], 2.0), oracle.timed("t", [], [7], 8.0)
    assert (partly.value, partly.worst, partly.cut_off_s, partly.met) == (2, 3, 8, True)
    assert (partly.asked, partly.unknown) == (4, 2)
    assert (none.value, none.worst, none.met) == (None, None, False)


def test_an_oracle_that_is_wrong_stops_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Explorer, "judge", lambda *_: Verdict.FORBIDDEN)
    with pytest.raises(AssertionError, match="wrong on"):
        oracle.answers(chains(random.Random(1), (2, 2), "X", 0), random.Random(1), Budget())


def test_a_missed_limit_is_reported() -> None:
    figure = oracle.whole_set("s", chains(random.Random(1), (2, 2), "X", 0), 1e-12)
    assert (figure.asked, figure.unknown, figure.met) == (1, 0, False)
    assert figure.cells()["state"] == "MISSED"


def test_memory_above_the_cap_is_a_missed_limit() -> None:
    assert oracle.peak_memory([1 << 20, 64 << 20]).met
    above = oracle.peak_memory([(64 << 20) + 1])
    assert (above.met, above.cells()["measured"], above.cells()["limit"]) == (
        *(False, "64 MiB", "<= 64 MiB"),
    )
    unmeasured = oracle.peak_memory([])
    assert not unmeasured.limited
    assert "cap 64 MiB" in unmeasured.note


def test_the_large_part_runs_in_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz.fuzz.bench.large", "3"],
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert result["answers"][0][:1] == ["of a run"]
    assert result["answers"][0][1] in ("allowed", "unknown")
    assert result["peak_bytes"] is None or result["peak_bytes"] > 0


# --- what is shown ---------------------------------------------------------------------

QUICK = Figure("quick", 1e-5, "s", most=1e-3, worst=2e-5, asked=5)
PARTLY = Figure("partly", 1e-3, "s", most=1e-4, asked=4, unknown=1, cut_off_s=0.25)
NONE = Figure("none", None, "s", asked=8, unknown=8, cut_off_s=0.5)


def report() -> BenchReport:
    curve = Curve("membership", "events", ((8, QUICK), (16, PARTLY), (1024, NONE)))
    return BenchReport((QUICK, PARTLY, NONE), ("Budget.",), (curve,))


def test_a_figure_that_leaves_out_unknown_says_so() -> None:
    lines = report().text().splitlines()
    assert lines[0].split() == [
        *("figure", "measured", "limit", "state", "worst", "unknown", "note"),
    ]
    assert lines[1].split() == [
        *("quick", "0.01", "ms", "<=", "1", "ms", "met", "0.02", "ms", "0.0%"),
    ]
    assert lines[2].split()[6] == "MISSED"
    assert lines[2].endswith("  25.0%  1 of 4 unknown after 250 ms, not in the times")
    assert lines[3].endswith("  100.0%  8 of 8 unknown after 500 ms, not in the times")
    assert lines[-3:] == ["Budget.", "", "1 of 2 limits met"]


def test_a_curve_has_a_bar_for_each_point_that_was_answered() -> None:
    bare = [replace(each, name="", most=None) for each in (QUICK, PARTLY, NONE)]
    curve = Curve("membership", "events", tuple(zip((8, 16, 1024), bare, strict=True)))
    assert curve.text().splitlines() == [
        "membership",
        "events  bar                                       measured    worst  unknown  note",
        "     8  █████                                      0.01 ms  0.02 ms     0.0%",
        "    16  ████████████████████████████████████████      1 ms        -    25.0%"
        "  1 of 4 unknown after 250 ms, not in the times",
        " 1,024                                                   -        -   100.0%"
        "  8 of 8 unknown after 500 ms, not in the times",
        "bars are logarithmic: tenfold is 18 wide",
    ]


def test_json_has_everything() -> None:
    data = json.loads(json.dumps(report().as_json()))
    assert [figure["unknown"] for figure in data["figures"]] == [0, 1, 8]
    assert [figure["met"] for figure in data["figures"]] == [True, False, True]
    size, figure = data["curves"][0]["points"][2]
    assert (size, figure["value"], figure["asked"]) == (1024, None, 8)
    assert data["about"] == ["Budget."]


def test_bars_and_quantities() -> None:
    assert [bar(n) for n in (0, 0.125, 0.5, 1, 2.25)] == ["", "▏", "▌", "█", "██▎"]
    times = [shown(s, "s") for s in (None, 4.7e-6, 1.234e-3, 0.0561, 1.5)]
    assert times == ["-", "0.0047 ms", "1.23 ms", "56.1 ms", "1,500 ms"]
    others = [shown(0.7, "%"), shown(12.34, "times"), shown(1234567.8, "copies/s"), shown(64)]
    assert others == ["70.0%", "12.3 times", "1,234,568 copies/s", "64"]
