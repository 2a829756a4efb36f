"""Benchmark of workers: its figures. No test checks a time."""

from __future__ import annotations

import pytest

from litmusfuzz.fuzz.bench import workers


@pytest.mark.parametrize("measure", [workers.first_reply_s, workers.after_crash_s])
def test_forked_and_spawned_workers_are_timed(monkeypatch: pytest.MonkeyPatch, measure) -> None:
    monkeypatch.setattr(workers, "REPEATS", 2)
    monkeypatch.setattr(workers, "SPAWNS", 1)
    figure = workers.figure("a name", measure, "native", 1e6)
    assert figure.name == "native: a name"
    assert figure.met
    assert figure.value > 0
    assert "spawned" in figure.note
