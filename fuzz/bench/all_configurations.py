"""Benchmark of one campaign over all configurations of TensorFlow, presets and generated ones.

It is `litmusfuzz run` as a user starts it, findings minimized, with the file of known findings; the
figures are those of its report, and numbers of graph runs are those of idle cores (`core_speed`).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.bench.campaign import WORKERS
from litmusfuzz.fuzz.bench.core_speed import CoreSpeed, tensorflow_idle_time_ratio
from litmusfuzz.fuzz.campaign.tuning import KNOWN_SHARE
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SEED: Final = 1
RUNS_S: Final = 5000 / 600
"""Graph runs in a second, at least."""
PRESET_RUNS_S: Final = 60 / 600
"""Of each preset."""
ALL_PAIRS_S: Final = 3600.0
"""Length of a campaign that runs every pair of settings."""


def report(progress: Callable[[str], None], seconds: float, known: Sequence[str]) -> BenchReport:
    """Run the campaign.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    seconds : float
        Length of the campaign.
    known : sequence of str
        Values of ``--known``.

    Raises
    ------
    RuntimeError
        If the campaign could not run.
    """
    progress(f"all configurations of tf, {seconds:.0f} s")
    started, processors_s = time.monotonic(), _processors_s()
    with tempfile.TemporaryDirectory() as folder, CoreSpeed() as speed:
        command = [sys.executable, "-P", "-m", "litmusfuzz", "run", "--executors", "tf:*"]
        command += ["--time", f"{seconds}s", "--workers", str(WORKERS), "--seed", str(SEED)]
        command += ["--out", os.path.join(folder, "run"), "--json"]
        command += [part for each in known for part in ("--known", each)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        ended, processors_s = time.monotonic(), _processors_s() - processors_s
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"the campaign ended with {done.returncode}: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    share = speed.share(started, ended)
    busy = processors_s / ((ended - started) * len(os.sched_getaffinity(0)))
    load = f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
    about = (
        f"One campaign of {seconds:.0f} s on all configurations of TensorFlow, {WORKERS} workers, "
        f"seed {SEED}, findings minimized, --known {' '.join(known) or 'not given'}; {load}.",
        f"The cores had {share:.0%} of their full speed, and worked in {min(1.0, busy):.0%} of the "
        "time. Numbers of graph runs are those of cores that nobody else uses, computed from these "
        "and from what was counted (in the note).",
    )
    part = tensorflow_idle_time_ratio(share, busy)
    return BenchReport(tuple(figures_of(found, seconds, part)), about)


def _processors_s() -> float:
    """Processor time of all processes that have ended and were children of this one, or theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def figures_of(found: Mapping[str, Any], seconds: float, part: float) -> list[Figure]:
    """The figures of a campaign's report.

    Parameters
    ----------
    found : mapping
        What ``run --json`` prints.
    seconds : float
        Length of the campaign.
    part : float
        Its time on idle cores, divided by its length
        (`core_speed.tensorflow_idle_time_ratio`).
    """
    shares = [each for each in found["by_config"] if each["executor"] == "tf"]
    runs = sum(each["graphs"] for each in shares)
    presets = {f"tf/{config.name}" for config in executor_class("tf").configurations()}
    (rarest, fewest), *_ = sorted(
        ((each["name"], each["graphs"]) for each in shares if each["name"] in presets),
        key=lambda each: each[1],
    )
    (settings,) = found["settings"]
    missing = len(settings["not_reached"])
    reached = settings["possible"] - missing
    pair = " with ".join(settings["rarest"] or ("none",))
    running_s = sum(each["seconds"] for each in shares)
    minimizing_s = sum(each["minimizing_s"] for each in shares)
    spent_s = WORKERS * found["spent_s"]
    return [
        Figure(
            "graph runs",
            runs / part,
            "",
            least=RUNS_S * seconds,
            note=f"{runs:,} counted, {runs / seconds:.1f} a second",
        ),
        Figure(
            "graph runs of the rarest preset",
            fewest / part,
            "",
            least=PRESET_RUNS_S * seconds,
            note=f"{fewest:,} counted: {rarest}",
        ),
        Figure(
            "pairs of settings reached",
            reached / settings["possible"],
            "%",
            least=1.0 if seconds >= ALL_PAIRS_S else None,
            note=f"{reached:,} of {settings['possible']:,}; the rarest in "
            f"{settings['rarest_graphs']} graph runs: {pair}",
        ),
        Figure("workers run new graphs", running_s / spent_s, "%", least=0.75),
        Figure("workers minimize findings", minimizing_s / spent_s, "%"),
        Figure("time for what is known", found["known_share"], "%", most=2 * KNOWN_SHARE),
        Figure(
            "generating, judging, validating",
            (found["generating_s"] + found["judging_s"] + found["validating_s"]) / spent_s,
            "%",
            most=0.2,
        ),
    ]
