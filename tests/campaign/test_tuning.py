"""Which noise wins: no executor runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.tuning import (
    BETWEEN,
    CANDIDATES,
    ROUND,
    Shown,
    Tuning,
    described,
    rare_reached,
)
from litmusfuzz.fuzz.executors.protocol import Noise, noise_named
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from pathlib import Path

COMMON, RARE, RARER = (Outcome((("X", (value,)),)) for value in range(3))
A, B, C, D = (Noise(copies=copies) for copies in (1, 2, 3, 4))


def test_rare_is_what_all_settings_together_show_seldom() -> None:
    """What one shows often is rare for none, although the others hardly reach it."""
    shown = [
        Shown(A, {COMMON: 900, RARE: 100}, 1.0),
        Shown(B, {COMMON: 999, RARER: 1}, 1.0),
        Shown(C, {COMMON: 1000}, 1.0),
    ]
    assert rare_reached(shown) == [0, 1, 0]


def contest(tuning: Tuning, reached: dict[Noise, int], seconds: dict[Noise, float]) -> int:
    """Play until one is left; how many runs that took."""
    runs = 0
    while len(asked := tuning.next()) > 1:
        tuning.learn(
            [
                Shown(
                    noise,
                    {COMMON: 10_000} | {Outcome((("Y", (i,)),)): 1 for i in range(reached[noise])},
                    seconds[noise],
                )
                for noise in asked
            ]
        )
        runs += len(asked)
    return runs


def test_the_most_in_a_second_wins() -> None:
    tuning = Tuning((A, B, C, D))
    reached = {A: 4, B: 5, C: 3, D: 1}
    runs = contest(tuning, reached, {A: 1.0, B: 1.0, C: 0.1, D: 1.0})
    assert tuning.next() == (C,)
    assert runs == 2 * ROUND * 4


def test_there_is_another_contest_later() -> None:
    """The machine may have other things to do by then."""
    tuning = Tuning((A, B, C, D))
    even = dict.fromkeys((A, B, C, D), 1.0)
    contest(tuning, {A: 9, B: 1, C: 1, D: 1}, even)
    for _ in range(BETWEEN):
        assert tuning.next() == (A,)
        tuning.learn([Shown(A, {COMMON: 1}, 1.0)])
    assert tuning.next() == (A, B, C, D)
    contest(tuning, {A: 1, B: 1, C: 1, D: 9}, even)
    assert tuning.next() == (D,)


def test_fixed_noise_stays() -> None:
    tuning = Tuning((A,))
    for _ in range(2 * BETWEEN):
        assert tuning.next() == (A,)
        tuning.learn([Shown(A, {COMMON: 1}, 1.0)])


def test_what_was_used_can_be_typed() -> None:
    for noise in CANDIDATES[1:]:
        assert noise_named(described(noise), Noise()) == noise
    assert described(CANDIDATES[0]) == "default"


def test_a_campaign_moves_to_one(tmp_path: Path) -> None:
    """Each graph of a contest counts once, with all that was seen of it."""
    config = configuration("native", "controlled")
    noises = (A, B)
    settings = Settings(
        1, tmp_path, (("native", config),), 600, ROUND + 6, ("dag",), count=64, noises=noises
    )
    record = Campaign(settings, lambda record: None).run()
    state = record.executors[0]
    assert state.tests == record.graphs == ROUND + 6
    assert sorted(state.noise.values()) == [ROUND, ROUND + 6]
    assert state.outcomes == 64 * state.noise.total()
    assert state.verdicts.total() == state.outcomes
    assert "  noise, by graphs: " in summary(record)
