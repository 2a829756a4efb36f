"""Benchmark of clusters: its tests and report. No test checks a time."""

from __future__ import annotations

import random

import pytest

from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.fuzz.bench import clusters
from litmusfuzz.oracles.translation import Soundness, validate


@pytest.mark.parametrize("seed", range(10))
def test_programs_have_twelve_ops(seed: int) -> None:
    test = clusters.racing(random.Random(seed))
    assert sum(1 for node in all_nodes(test.graph.nodes) if node.resources) == clusters.OPS


def test_permitted_clusters_are_sound_and_the_mutant_makes_unsound_ones() -> None:
    for seed in range(5):
        ours, theirs = clusters.ours(random.Random(seed)), clusters.unsound(random.Random(seed))
        assert ours.clusters
        assert validate(ours).verdict is Soundness.SOUND
        assert validate(theirs).verdict is Soundness.UNSOUND


def test_unknown_verdicts_are_left_out_of_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "TESTS", 2)
    monkeypatch.setattr(clusters, "BUDGET", clusters.Budget(states=1))
    figure = clusters.validation("v", clusters.ours, 1.0)
    assert (figure.asked, figure.unknown, figure.value) == (2, 2, None)
    assert not figure.met
