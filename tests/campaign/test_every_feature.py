"""Defects in each feature are found, judged, minimized, confirmed, stored and replayed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from campaign.campaigns import Run
from helpers import BY_FEATURE, share_of
from helpers_settings import settings_of

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.dispatcher import CANARY_EVERY
from litmusfuzz.fuzz.commands.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.reports.events import WorkerDied
from litmusfuzz.reports.summary import summary

DEFECTS = {
    "mutant/two-holders": ("critical sections", 5),
    "mutant/over-capacity": ("queues", 2),
    "mutant/last-in-first-out": ("queues", 2),
    "mutant/one-run-waited-for": ("several runs", 2),
    "mutant/early-body": ("loops", 2),
    "mutant/no-window": ("loops", 3),
    "double/other-branch": ("conditionals", 2),
}
"""By executor: what a minimized finding still has, and how many effects the smallest has."""


@pytest.mark.parametrize("name", share_of([*DEFECTS], 2))
def test_a_defect_in_a_feature_is_found_and_what_is_stored_replays(
    doubles, name: str, tmp_path: Path
) -> None:
    """On the controlled engine, where all follows from the seed."""
    config = configuration(name, "controlled")
    settings = settings_of(
        seed=2,
        out=tmp_path,
        executors=((name, config),),
        time_s=600,
        tests=84,
        families=BY_FEATURE,
        count=256,
    )
    ended = Run(settings).run()
    report = ended.report
    assert (report.complaint, report.exit_code()) == ("", 1)
    assert not report.unconfirmed
    assert not report.pending
    assert not ended.of(WorkerDied)
    feature, effects = DEFECTS[name]
    assert min(len(f.entry.test.effects) for f in report.findings) <= effects
    for reported in report.findings:
        entry = load(ended.path(reported.file))
        assert entry == reported.entry
        found = entry.finding
        assert found is not None
        assert found.minimized
        assert found.confirmed
        assert found.model == config.guarantees
        assert feature in entry.test.features
        oracle = Explorer(entry.test, MODELS[found.model])
        assert all(oracle.judge(seen) is Verdict.FORBIDDEN for seen, _ in found.forbidden)
        assert found.schedule is not None
        assert oracle.judge(found.schedule.outcome) is Verdict.FORBIDDEN
    check_replays(entry, oracle, name, config)


def check_replays(entry, oracle, name, config) -> None:
    """By its schedule, and by runs: from the same seed the same histogram."""
    found = entry.finding
    worker = Worker(name)
    result = replay_entry(entry, oracle, worker, config, ReplayOptions(60))
    assert result.schedule == "replayed by its schedule: same outcome"
    assert result.judgement is not None
    assert dict(result.judgement.histogram) == {found.schedule.outcome: 1}
    result = replay_entry(entry, oracle, worker, config, ReplayOptions(60, 5, schedule=True))
    assert result.schedule == "replayed by its schedule: same outcome"
    assert result.judgement is not None
    assert result.judgement.executions == 1
    result = replay_entry(entry, oracle, worker, config, ReplayOptions(60, schedule=False))
    assert result.judgement is not None
    assert result.judgement.forbidden_count > 0
    worker.close()
    # The executor without the defect: it diverges, or another outcome shows.
    sound = Worker("native")
    config = configuration("native", "controlled")
    result = replay_entry(entry, oracle, sound, config, ReplayOptions(60, schedule=True))
    sound.close()
    assert "cannot be followed" in result.schedule or "another outcome" in result.schedule
    assert result.judgement is not None
    assert not result.judgement.forbidden


def test_the_command_line_replays_by_the_schedule_and_says_so(
    doubles, litmusfuzz_here, tmp_path: Path
) -> None:
    """And where another executor cannot follow it, runs, and says that."""
    name = "mutant/two-holders:controlled"
    common = ("--seed", "1", "--tests", "12", "--count", "256", "--time", "10m")
    result = litmusfuzz_here(
        "run", "--executors", name, "--families", "sections", *common, "--json"
    )
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    first = next(each for each in report["findings"] if "schedule:" in each["entry"])
    file = f"{report['folder']}/{first['file']}"
    replayed = litmusfuzz_here("replay", file)
    assert (replayed.returncode, replayed.stderr) == (1, "")
    assert "1 execution on mutant/two-holders/controlled" in replayed.stdout
    assert "\nreplayed by its schedule: same outcome\n" in replayed.stdout
    assert "FORBIDDEN" in replayed.stdout
    data = json.loads(litmusfuzz_here("replay", file, "--json").stdout)
    assert data["schedule"] == "replayed by its schedule: same outcome"
    runs = litmusfuzz_here("replay", file, "--no-schedule")
    assert runs.returncode == 1
    assert "schedule" not in runs.stdout
    # A finding keeps its schedule when it is taken into the corpus.
    assert litmusfuzz_here("promote", file, "--out", "kept", "--write").returncode == 0
    kept = str(tmp_path / "kept" / Path(file).name)
    assert "same outcome" in litmusfuzz_here("replay", kept).stdout
    # As if the executor had changed since: it runs instead, and finds it.
    text = Path(kept).read_text()
    number, rest = text.split("choices: [", 1)[1].split(":", 1)
    Path(kept).write_text(text.replace(f"[{number}:{rest[:16]}", f"[{number}:{'0' * 16}", 1))
    changed = litmusfuzz_here("replay", kept)
    assert changed.returncode == 1
    assert "cannot be followed any more: after 0 of" in changed.stdout
    only = litmusfuzz_here("replay", kept, "--schedule")
    assert only.returncode == 3
    assert "the finding did not show again" in only.stdout


def test_refusals_are_counted_by_feature(doubles, tmp_path: Path) -> None:
    """Of the family `runs` a quarter has a queue, or sections."""
    name = "double/runs-only"
    settings = settings_of(
        seed=1,
        out=tmp_path,
        executors=((name, configuration(name)),),
        tests=40,
        families=("dag", "runs"),
        count=8,
    )
    ended = Run(settings).run()
    report = ended.report
    (share,) = report.by_config
    assert {name: each.graphs for name, each in report.families.items()} == {"dag": 20, "runs": 20}
    assert share.graphs == 40 - share.refused == len(ended.tests(name))
    assert set(share.refused_for) == {"queues", "critical sections"}
    assert 0 < share.refused < 20
    assert sum(share.refused_for.values()) == share.refused  # the first feature that it lacks
    count = share.refused_for["queues"]
    assert f"queues {count}" in summary(report)
    # Of each family it takes the first, and every so many after that.
    assert report.canary[0] == 2 * math.ceil(20 / CANARY_EVERY)
