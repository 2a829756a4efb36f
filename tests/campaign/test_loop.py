"""Campaigns on deterministic mutants: findings are minimized, stored and replayed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import BY_FEATURE

from litmusfuzz.corpus.textfile import Entry, dumps, load
from litmusfuzz.fuzz.campaign import loop
from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.protocol import Noise, noise_named, noise_text
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes
from litmusfuzz.reports.terminal import status_line

if TYPE_CHECKING:
    from litmusfuzz.reports.records import RunRecord

STALE = "mutant/stale-reads"


def campaign(tmp_path: Path, executor: str = STALE, **changes) -> Campaign:
    settings = Settings(
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
    return Campaign(settings, lambda record: None)


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> RunRecord:
    return campaign(tmp_path_factory.mktemp("campaign")).run()


def test_the_mutant_is_found_and_minimized_to_a_write_and_a_read(ended: RunRecord) -> None:
    assert ended.exit_code() == 1
    assert ended.graphs == 60
    assert ended.findings
    for reported in ended.findings:
        assert reported.entry.finding is not None
        assert reported.entry.finding.minimized
        assert len(reported.entry.test.graph.effects) <= 3
    smallest = min(ended.findings, key=lambda f: len(f.entry.test.graph.effects))
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
        record = campaign(tmp_path, executors=executors, **every).run()
        assert not record.unreduced
        assert record.findings
        tests = {dumps(Entry(replace(f.entry.test, name="x"))) for f in record.findings}
        assert len(tests) == len(record.findings)
        refused += record.executors[0].refused_graphs
    assert refused > 0


def test_files_say_what_the_record_says(ended: RunRecord) -> None:
    folder = Path(ended.out)
    assert sorted(map(str, folder.glob("*.yaml"))) == sorted(f.path for f in ended.findings)
    for reported in ended.findings:
        assert load(reported.path) == reported.entry
    assert len(list((folder / "unreduced").iterdir())) == ended.forbidden_graphs
    assert not ended.unreduced
    explained = sum(1 + f.more for f in ended.findings)
    assert explained == ended.forbidden_graphs


def test_stored_outcomes_are_forbidden_and_stored_allowed_sets_are_exact(
    ended: RunRecord,
) -> None:
    for reported in ended.findings:
        entry = reported.entry
        assert entry.finding is not None
        allowed = allowed_outcomes(entry.test, RFC)
        assert entry.allowed == {"rfc": frozenset(allowed.witnesses)}
        judged = judge(allowed, dict(entry.finding.forbidden))
        assert judged.forbidden_count == entry.finding.count > 0


def test_a_finding_replays(ended: RunRecord) -> None:
    entry = load(ended.findings[0].path)
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
    record = campaign(tmp_path, executors=both, tests=80, families=BY_FEATURE).run()
    stale, native, _ = record.executors
    assert {f.entry.finding.executor for f in record.findings} == {STALE}
    assert record.unconfirmed == len(record.unreduced) == 0
    assert stale.minimizing_outcomes > native.minimizing_outcomes == 0
    assert set(stale.families) == {"dag"}
    assert stale.refused_graphs == 80 - stale.tests > 0
    assert not native.refused
    outcomes = stale.outcomes + native.outcomes
    assert f"  {outcomes} outcomes (" in status_line(record)  # a mutant's count like any other's
    assert native.tests == 80


def test_the_canary_is_reported_on_every_graph(ended: RunRecord) -> None:
    assert ended.canary_runs == ended.canary_reported > 0


def test_the_same_seed_finds_the_same(tmp_path: Path, ended: RunRecord) -> None:
    again = campaign(tmp_path).run()
    assert again.ops == ended.ops
    assert again.verdicts == ended.verdicts
    assert {f.entry.test for f in again.findings} == {f.entry.test for f in ended.findings}


def test_a_sound_canary_breaks_the_campaign(tmp_path: Path, monkeypatch) -> None:
    """A judge that lets the canary pass is worse than none: exit 2."""
    from dataclasses import replace

    honest = loop.judge

    def blind(allowed, histogram):
        judged = honest(allowed, histogram)
        return replace(judged, forbidden=())

    monkeypatch.setattr(loop, "judge", blind)
    record = campaign(tmp_path, tests=3).run()
    assert record.exit_code() == 2
    assert "canary" in record.problem


def test_over_budget_is_unknown_and_exits_3(tmp_path: Path) -> None:
    """One state is looked at; what it does not decide may still be allowed."""
    record = campaign(tmp_path, tests=12, budget=Budget(states=1)).run()
    assert record.unknown_graphs > 0
    assert record.verdicts["unknown"] > 0
    assert set(record.verdicts) <= {"allowed", "unknown", "forbidden"}


def test_a_worker_that_dies_costs_one_test(tmp_path: Path, monkeypatch) -> None:
    """Killed in the middle: counted, kept in a file, and the campaign goes on."""
    import os
    import signal

    running = campaign(tmp_path, tests=10)
    send = loop.Campaign._send
    victims = iter([3])
    target = next(victims)
    sent = 0

    def murderous(self, slot, job) -> None:
        nonlocal sent
        if slot.state.name == STALE:
            sent += 1
            if sent == target:
                os.kill(slot.worker.pid, signal.SIGKILL)
        send(self, slot, job)

    monkeypatch.setattr(loop.Campaign, "_send", murderous)
    record = running.run()
    (state,) = [e for e in record.executors if e.name == STALE]
    assert state.crashed == 1
    assert state.restarts == 1
    assert state.tests == 10
    (kept,) = (tmp_path / "out" / "crashed").iterdir()
    assert "signal 9" in load(kept).test.description


def test_noise_text_is_what_the_option_takes() -> None:
    noise = Noise(copies=8, pinned=True, shuffle=False)
    assert noise_text(noise) == "copies=8,shuffle=false,pinned=true"
    assert noise_named(noise_text(noise), Noise()) == noise
    assert noise_text(Noise()) == "default"
