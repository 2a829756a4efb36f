"""Soundness of the clusterer on a few random graphs of every family; see `soundness`."""

from __future__ import annotations

import random

import pytest
import soundness
from soundness import Tally, ask, without

from litmusfuzz.fuzz.generators import FAMILIES
from litmusfuzz.fuzz.passes.clustering import Rule
from litmusfuzz.oracles.translation import Soundness

SEED = 5
TESTS = 30
"""Of each family."""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_analysis_agrees_and_permitted_clusters_are_sound(family: str) -> None:
    tally = Tally()
    for index in range(TESTS):
        ask(family, SEED, index, tally)
    assert tally.problems == []
    clusterable = TESTS - tally.without
    assert tally.clusterings[Soundness.SOUND] >= clusterable // 2
    # Of so few, one large test has more than its share: it is clustered in several ways.
    assert tally.clusterings[Soundness.UNKNOWN] <= max(6, soundness.UNKNOWN_MAX * tally.judged)
    assert any(members >= 2 for members in tally.members) or not clusterable


@pytest.mark.parametrize("rule", [Rule.UNSAFE_PAIR, Rule.DIFFERENT_WAITS])
def test_random_graphs_show_that_a_rule_is_needed(rule: Rule) -> None:
    """The fixed seed was chosen such that the graphs show it."""
    found = without(rule, ("sections",), 1, 150)
    assert found.clusterings[Soundness.UNSOUND] > 0


def test_the_command_line_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert soundness.main(["--tests", "8", "--seed", str(random.Random(1).randrange(9))]) == 0
    assert "8 tests" in capsys.readouterr().out
