"""Noise that adapts: settings compete on the campaign's own graphs.

What makes racing ops meet depends on the machine, and on what else it does. So a
profile begins with a *contest*: its first graphs run under every candidate, and by
rounds the worse half is dropped, until one is left (successive halving). That one is
used for `BETWEEN` graphs, then there is another contest. Nothing is run for the sake
of tuning alone: all that a contest shows is judged like the rest.

A candidate's score is the number of *allowed but rare* outcomes that it reaches in
a second, building included. Rare is what less than one in a hundred executions of
the graph shows, over all candidates together: what one of them alone shows easily
is not rare, so that none makes its own score.

References
----------
GPUHarbor (Levine et al., ISSTA 2023) tunes test environments by their mutants' death
rate; we have exact allowed sets, and take their rare outcomes instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.protocol import Noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.outcome import Outcome

CANDIDATES: Final = (
    Noise(),
    Noise(padding=0),
    Noise(padding=128),
    Noise(padding=16_384),
    Noise(copies=8),
    Noise(copies=8, padding=128),
    Noise(copies=96, steps=32),
    Noise(steps=16),
    Noise(shuffle=False),
)
"""The first is the fixed default; the others differ from it in what may matter."""
RARE: Final = 0.01
ROUND: Final = 6
"""Graphs in the first round; each later one, with half of the candidates, has twice as
many, so that all rounds take about the same time."""
BETWEEN: Final = 400


@dataclass(frozen=True, slots=True)
class Shown:
    """What one setting showed of a graph, of that what is allowed, and how long it took."""

    noise: Noise
    allowed: Mapping[Outcome, int]
    seconds: float


def rare_reached(shown: Sequence[Shown]) -> list[int]:
    """How many rare outcomes of one graph each setting reached."""
    together: Counter[Outcome] = Counter()
    for each in shown:
        together.update(each.allowed)
    most = RARE * together.total()
    rare = {outcome for outcome, count in together.items() if count < most}
    return [len(rare & each.allowed.keys()) for each in shown]


@dataclass(slots=True)
class _Score:
    rare: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.rare / max(self.seconds, 1e-9)


@dataclass(slots=True)
class Tuning:
    """Which noise the next graphs of a profile run under.

    Parameters
    ----------
    candidates : tuple of Noise
        One alone is fixed noise.
    """

    candidates: tuple[Noise, ...]
    left: list[Noise] = field(default_factory=list)
    scores: dict[Noise, _Score] = field(default_factory=dict)
    graphs: int = 0
    """Of this round, or since the last contest."""

    def next(self) -> tuple[Noise, ...]:
        """The settings that the next graph runs under, one after the other."""
        if not self.left or (len(self.left) == 1 < len(self.candidates) and self.graphs >= BETWEEN):
            self.left = list(self.candidates)
            self._round()
        return tuple(self.left)

    def learn(self, shown: Sequence[Shown]) -> None:
        """Take over what a graph showed under all that `next` named."""
        self.graphs += 1
        if len(shown) < 2 or [each.noise for each in shown] != self.left:
            return  # begun before the last round ended
        for each, reached in zip(shown, rare_reached(shown), strict=True):
            score = self.scores[each.noise]
            score.rare += reached
            score.seconds += each.seconds
        if self.graphs >= ROUND * len(self.candidates) / len(self.left):
            ranked = sorted(self.left, key=lambda noise: self.scores[noise].rate, reverse=True)
            self.left = ranked[: len(ranked) // 2]
            self._round()

    def _round(self) -> None:
        self.graphs = 0
        self.scores = {noise: _Score() for noise in self.left}


def described(noise: Noise) -> str:
    """As it is written after ``--noise``: what differs from the default."""
    default = asdict(Noise())
    parts = [
        f"{name}={str(value).lower()}"
        for name, value in asdict(noise).items()
        if value != default[name]
    ]
    return ",".join(parts) or "default"
