"""A clock that jumps a day, either way, changes no count, trend or share of time."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from campaign.shards import STALE

from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports import events as e
from litmusfuzz.reports.fold import Fold
from litmusfuzz.reports.html.charts import over_time
from litmusfuzz.reports.stats import plain

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.report import Report

DAY_S = 86_400.0
JUMPING = f"""
import itertools, sys, time
real, jumps = time.time, itertools.cycle((0, {DAY_S}, -{DAY_S}))
time.time = lambda: real() + next(jumps)
from litmusfuzz.fuzz.cli.main import main
main(sys.argv[1:], prog_name="litmusfuzz")
"""


def run(start: tuple[str, ...], *more: str) -> float:
    """Run a campaign; the seconds that it took."""
    began = time.monotonic()
    command = [sys.executable, "-P", *start, "run", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr  # it finds the mutant
    return time.monotonic() - began


def reported(folder: Path) -> Report:
    with Store(folder, write=False) as store:
        return store.fold.report(str(folder))


def test_a_clock_that_jumps_changes_no_figure(tmp_path: Path) -> None:
    given = ("--executors", STALE, "--families", "dag", "--count", "64", "--seed", "7")
    given = (*given, "--time", "10m")
    folder, other = str(tmp_path / "jumping"), str(tmp_path / "steady")
    took_s = run(("-c", JUMPING), *given, "--out", folder, "--tests", "4")
    took_s += run(("-c", JUMPING), "--resume", folder, "--tests", "2")
    run(("-m", "litmusfuzz"), *given, "--out", other, "--tests", "6")
    jumping, steady = reported(tmp_path / "jumping"), reported(tmp_path / "steady")
    assert jumping.generated == steady.generated == 6
    assert jumping.verdicts == steady.verdicts
    assert jumping.forbidden_graphs == steady.forbidden_graphs > 0
    assert len(jumping.shards) == 2
    assert 0 < jumping.spent_s < took_s
    assert all(0 < each.seconds < took_s for each in jumping.shards)
    assert sum(each.busy_s for each in jumping.workers) < took_s
    spent = [each.spent_s for each in jumping.moments]
    assert spent == sorted(spent)
    assert spent[-1] < took_s


def folded(*jumps_s: float) -> Report:
    """A campaign of two processes and three shards; the clock jumps before each moment."""
    fold, clock = Fold(), 1e9
    configured = e.Configured("native", "stealing", "rfc", "rfc", "native/stealing")
    fold.apply(
        0, e.CampaignStarted(at=clock, command="", seed=0, asked_s=90, configurations=(configured,))
    )
    for number, jump_s in enumerate(jumps_s, 1):
        clock += jump_s
        started = e.ShardStarted(at=clock, host="h", pid=number, versions={})
        fold.apply(number, e.ShardPlanned(at=clock - jump_s, configurations={}))
        fold.apply(number, started)
        ran = e.Executed(
            index=number,
            executor="native",
            configuration="stealing",
            family="dag",
            model="rfc",
            run_seed=1,
            count=64,
            sha256="",
            at=clock + 5,
        )
        fold.apply(number, ran)
        fold.apply(number, e.ShardEnded(at=clock + 6 + jump_s, lost=number == 1))
        fold.apply(0, e.Progress(at=clock + 7, spent_s=10.0 * number, disk_bytes=number))
    return fold.report("f")


def test_a_report_has_no_duration_from_clocks_of_two_processes() -> None:
    steady = folded(10, 10, 10)
    for jumps_s in ((DAY_S, DAY_S, DAY_S), (-DAY_S, DAY_S, -DAY_S), (10, -DAY_S, 10)):
        report = folded(*jumps_s)
        assert [each.seconds for each in report.shards] == [5.0, 5.0, 5.0]
        assert [each.seconds for each in report.shards] == [s.seconds for s in steady.shards]
        assert over_time(report.moments) == over_time(steady.moments)
        assert plain(report)["graphs_per_s_now"] == plain(steady)["graphs_per_s_now"] == "0.10"
        assert plain(report)["run_time"] == "30"
