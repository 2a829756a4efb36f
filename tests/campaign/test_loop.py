"""Campaigns on deterministic mutants: findings are minimized, stored and replayed."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

import pytest
from campaign.campaigns import Run
from helpers import BY_FEATURE
from helpers_settings import settings_of

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, load
from litmusfuzz.fuzz.campaign.dispatcher import CANARY_EVERY
from litmusfuzz.fuzz.campaign.lanes import canary
from litmusfuzz.fuzz.commands.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors.protocol import Noise, noise_named, noise_text
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC
from litmusfuzz.oracles.reference import allowed_outcomes
from litmusfuzz.reports.events import (
    CanaryRun,
    Executed,
    FindingAdded,
    FindingKind,
    ReductionEnded,
    ReductionStarted,
    ShardEnded,
    ShardStarted,
    WorkerDied,
)

STALE = "mutant/stale-reads"


def campaign(tmp_path: Path, executor: str = STALE, **changes) -> Run:
    return Run(
        settings_of(
            seed=1,
            time_s=600,
            **{
                "out": tmp_path / "out",
                "executors": ((executor, configuration(executor)),),
                "tests": 60,
                "families": ("dag",),
                "count": 64,
                **changes,
            },
        )
    )


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> Run:
    return campaign(tmp_path_factory.mktemp("campaign")).run()


def test_the_mutant_is_found_and_minimized_to_a_write_and_a_read(ended: Run) -> None:
    report = ended.report
    assert report.exit_code() == 1
    assert report.generated == 60
    assert report.findings
    for reported in report.findings:
        assert reported.entry.finding is not None
        assert reported.entry.finding.minimized
        assert len(reported.entry.test.graph.effects) <= 3
    smallest = min(report.findings, key=lambda f: len(f.entry.test.graph.effects))
    write, read = smallest.entry.test.graph.effects
    assert write.definition.kind.writes
    assert read.after == (write.name,)


def test_a_refused_last_test_does_not_end_the_campaign(tmp_path: Path) -> None:
    """Findings are still minimized when no test is left to run, and each is one finding.

    The native executor supports more than the mutant, which so refuses some tests. The last
    test is generated while all others are done in about one of three runs; ten runs miss that
    once in sixty times.
    """
    refused = 0
    executors = ((STALE, configuration(STALE)), ("native", configuration("native", "controlled")))
    for number in range(10):
        every = {"families": (), "tests": 40, "out": tmp_path / str(number)}
        report = campaign(tmp_path, executors=executors, **every).run().report
        assert not report.pending
        assert report.findings
        tests = {dumps(Entry(replace(f.entry.test, name="x"))) for f in report.findings}
        assert len(tests) == len(report.findings)
        refused += report.by_config[0].refused
    assert refused > 0


def test_files_say_what_the_events_say(ended: Run) -> None:
    report, out = ended.report, ended.settings.out
    assert sorted(p.name for p in (out / "findings").glob("*.yaml")) == sorted(
        Path(each.file).name for each in report.findings
    )
    for reported in report.findings:
        assert load(out / reported.file) == reported.entry
    shown = [each for each in ended.of(Executed) if "forbidden" in each.verdicts]
    assert len(list((out / "unreduced").iterdir())) == report.forbidden_graphs == len(shown) > 0
    assert {out / (each.unreduced or "") for each in shown} == {*(out / "unreduced").iterdir()}
    assert not report.pending
    assert sum(each.count for each in report.findings) == report.forbidden_graphs


def test_events_come_in_the_order_of_what_they_say(ended: Run) -> None:
    """Each reduction has a start and an end, and a finding is added in between."""
    assert isinstance(ended.events[-1], ShardEnded)
    assert ended.events[-1].seconds > 0
    assert not ended.events[-1].problem
    (started,) = ended.of(ShardStarted)
    assert set(started.versions) == {STALE, "mutant/canary"}
    assert {"python"} <= set(started.versions[STALE])
    running = None
    for event in ended.events:
        if isinstance(event, ReductionStarted):
            assert running is None  # there is one worker
            running = event.index
        elif isinstance(event, FindingAdded):
            assert event.index == running
        elif isinstance(event, ReductionEnded):
            assert event.index == running
            running = None
    assert running is None


def test_stored_outcomes_are_forbidden_and_stored_allowed_sets_are_exact(ended: Run) -> None:
    for reported in ended.report.findings:
        entry = reported.entry
        assert entry.finding is not None
        allowed = allowed_outcomes(entry.test, EXECUTOR)  # what the mutant guarantees
        assert entry.allowed == {"executor": frozenset(allowed.witnesses)}
        judged = judge(allowed, dict(entry.finding.forbidden))
        assert judged.forbidden_count == entry.finding.count > 0


def test_a_finding_replays(ended: Run) -> None:
    entry = load(ended.path(ended.report.findings[0].file))
    worker = Worker(STALE)
    allowed = allowed_outcomes(entry.test, RFC)
    config = configuration(STALE)
    result = replay_entry(entry, allowed, worker, config, ReplayOptions(60))
    worker.close()
    assert result.judgement is not None
    assert result.judgement.forbidden_count > 0


def test_a_finding_is_minimized_on_the_executor_that_showed_it(tmp_path: Path) -> None:
    """And each executor runs tests that it can run."""
    both = ((STALE, configuration(STALE)), ("native", configuration("native", "controlled")))
    ended = campaign(tmp_path, executors=both, tests=80, families=BY_FEATURE).run()
    report = ended.report
    stale, native = report.by_config
    assert {f.entry.finding.executor for f in report.findings if f.entry.finding} == {STALE}
    assert len(report.unconfirmed) == len(report.pending) == 0
    assert stale.minimizing_outcomes > native.minimizing_outcomes == 0
    assert {each.family for each in ended.tests(STALE)} == {"dag"}
    assert stale.refused == 80 - stale.graphs > 0
    assert not native.refused
    assert native.graphs == 80
    assert report.outcomes == stale.outcomes + native.outcomes


def test_the_canary_is_reported_whenever_it_runs(ended: Run) -> None:
    runs, reported = ended.report.canary
    assert runs == reported == math.ceil(60 / CANARY_EVERY)
    assert all(each.reported for each in ended.of(CanaryRun))


def test_the_same_seed_finds_the_same(tmp_path: Path, ended: Run) -> None:
    again = campaign(tmp_path).run()
    assert again.repeatable == ended.repeatable
    assert again.report.ops == ended.report.ops
    assert again.report.verdicts == ended.report.verdicts
    found, found_again = ({f.entry.test for f in each.report.findings} for each in (ended, again))
    assert found == found_again


def test_a_sound_canary_breaks_the_campaign(tmp_path: Path, monkeypatch) -> None:
    """A judge that lets the canary pass is worse than none: exit 2."""
    honest = canary.judge

    def blind(allowed, histogram):
        judged = honest(allowed, histogram)
        return replace(judged, forbidden=())

    monkeypatch.setattr(canary, "judge", blind)
    report = campaign(tmp_path, tests=3).run().report
    assert report.exit_code() == 2
    assert report.canary == (1, 0)
    assert "canary" in report.complaint


def test_over_budget_is_unknown_and_exits_3(tmp_path: Path) -> None:
    """One state is looked at; what it does not decide may still be allowed."""
    report = campaign(tmp_path, tests=12, budget=Budget(states=1)).run().report
    assert report.unknown_graphs > 0
    assert report.verdicts["unknown"] > 0
    assert set(report.verdicts) <= {"allowed", "unknown", "forbidden"}


def test_a_worker_that_dies_costs_one_test(tmp_path: Path, monkeypatch) -> None:
    """Killed in the middle: counted, kept in a file, and the campaign goes on."""
    killed, ran, honest = [], 0, Worker.run

    async def murderous(self, request, timeout_s, test):
        nonlocal ran
        ran += self.executor == STALE and request.task == "run" and bool(request.test)
        if ran == 3 and not killed:
            killed.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        return await honest(self, request, timeout_s, test)

    monkeypatch.setattr(Worker, "run", murderous)
    ended = campaign(tmp_path, tests=10).run()
    report = ended.report
    (stale,) = report.by_config
    assert (stale.crashed, stale.graphs, stale.not_run) == (1, 10, 0)
    (died,) = ended.of(WorkerDied)
    assert (died.kind, died.executor, died.minimizing) == (FindingKind.CRASHED, STALE, False)
    assert report.workers[0].crashed == 1
    (kept,) = (tmp_path / "out" / "crashed").iterdir()
    assert kept == ended.path(died.file)
    assert "signal 9" in load(kept).test.description
    assert load(kept).test.effects


@pytest.mark.parametrize("name", GUARANTEES)
def test_each_file_that_a_campaign_leaves_can_be_read(tmp_path: Path, name: str) -> None:
    """Whatever model judges: also those that only an executor guarantees."""
    run = campaign(tmp_path, judge_by=name, tests=20).run()
    assert not run.report.problem
    assert run.report.findings
    models = set()
    for path in (tmp_path / "out").glob("*/*.yaml"):
        entry = load(path)
        assert entry.finding is not None
        models |= {entry.finding.model, *entry.allowed}
    assert models == {name}


def test_noise_text_is_what_the_option_takes() -> None:
    noise = Noise(copies=8, pinned=True, shuffle=False)
    assert noise_text(noise) == "copies=8,shuffle=false,pinned=true"
    assert noise_named(noise_text(noise), Noise()) == noise
    assert noise_text(Noise()) == "default"


def test_two_workers_do_not_minimize_what_may_have_one_cause_at_the_same_time(
    tmp_path: Path,
) -> None:
    """All findings of the mutant have one symptom, and no sparse kernel: one after another."""
    run = campaign(tmp_path, workers=2, families=("cycles",), tests=40).run()
    open_now = reductions = 0
    for each in run.events:
        if isinstance(each, ReductionStarted):
            open_now, reductions = open_now + 1, reductions + 1
            assert open_now == 1
        open_now -= isinstance(each, ReductionEnded)
    assert reductions > 0
    assert run.report.findings
    assert not run.report.pending
