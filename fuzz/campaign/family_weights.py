"""How often each family is generated: by its weight, and by what it still finds.

Every family has a weight (`litmusfuzz.fuzz.generators.FAMILIES`, or as asked for). Half of the
draws go by weight alone. The other half go where most is found in a second: to each
family in proportion to its weight times its yield, which is

    (found + 1) / (seconds + `PRIOR_S`),

the mean that a Poisson rate has when so much was found in that time and one find in
`PRIOR_S` was expected beforehand. Who has had little time is thus thought well of, and
gets some. What was found long ago counts less and less (`HALF_LIFE_S`), as does the
time that it took: a family that is exhausted falls back, and none below its half.

A new likely cause of findings counts as one find. Two ops on one resource, in an order
or in none, that no graph had before count as `NEW_PAIR`, so that among families that
find nothing those are generated that still reach something new.

Until the first finding, and throughout a campaign of so many graphs, weights alone
decide: what is generated then depends on nothing but the seed. After that it depends on how
long things took as well; each graph can still be made again from its family and number.

References
----------
Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika
1933: to try each in proportion to how good it seems. Garivier and Moulines, "On
Upper-Confidence Bound Policies for Switching Bandit Problems", ALT 2011: to forget.
Boehme et al., "Boosting Fuzzer Efficiency", ESEC/FSE 2020: what is new as the measure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.relations import NodeRelations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest

FLOOR: Final = 0.5
"""The part of the draws that goes by weight alone; so each family has that part of its
weight's share at least."""
PRIOR_S: Final = 10.0
HALF_LIFE_S: Final = 120.0
"""Spent on the family itself."""
NEW_PAIR: Final = 0.01

Pair = tuple[str, str, str]
"""Two ops on one resource, and how they stand to each other."""


@dataclass(slots=True)
class _Past:
    """What a family has found, and how long that took; both fade."""

    found: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """What it is expected to find in a second."""
        return (self.found + 1) / (self.seconds + PRIOR_S)


class Weights:
    """Chooses families.

    Parameters
    ----------
    base : mapping of str to float
        The weight of each family, above 0.
    learning : bool
        Whether what is found may change how often a family is generated.
    """

    def __init__(self, base: Mapping[str, float], *, learning: bool) -> None:
        self.base = base
        self.learning = learning
        self.past: dict[str, _Past] = defaultdict(_Past)
        self.found_something = False
        self.pairs: set[Pair] = set()
        self.credit: dict[tuple[int, str], float] = defaultdict(float)

    def spent(self, family: str, seconds: float) -> None:
        """So long it took to draw, run or judge one of its graphs."""
        past = self.past[family]
        fades = 0.5 ** (seconds / HALF_LIFE_S)
        past.found *= fades
        past.seconds = past.seconds * fades + seconds

    def found(self, family: str) -> None:
        """One of its graphs has shown what is likely a new defect."""
        self.past[family].found += 1
        self.found_something = True

    def reached(self, family: str, test: LitmusTest) -> None:
        """One of its graphs was run."""
        if self.learning:
            new = pairs(test) - self.pairs
            self.pairs |= new
            self.past[family].found += NEW_PAIR * len(new)

    def shares(self, families: Sequence[str]) -> dict[str, float]:
        """The part of the draws that each of these has; together 1."""
        shares = _parts({family: self.base[family] for family in families})
        if not (self.learning and self.found_something):
            return shares
        finds = _parts({family: shares[family] * self.past[family].rate for family in families})
        return {f: FLOOR * shares[f] + (1 - FLOOR) * finds[f] for f in families}

    def choose(self, who: int, families: Sequence[str]) -> str:
        """The family of the next graph that `who` may choose.

        Each has credit for its share of every choice, and pays for being chosen;
        who has most is next. So shares are kept to within a graph, without chance.
        """
        for family, share in self.shares(families).items():
            self.credit[who, family] += share
        # Of equals the first; sums of the same parts in another order may differ a little.
        chosen = max(families, key=lambda family: round(self.credit[who, family], 9))
        self.credit[who, chosen] -= 1
        return chosen


def _parts(weights: dict[str, float]) -> dict[str, float]:
    """Each one's part of the whole."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def pairs(test: LitmusTest) -> set[Pair]:
    """The pairs of ops that work on one resource, as far as names and order go."""
    relations = NodeRelations(test)
    found = set()
    for a, b in combinations([node for node in test.effects if node.resources], 2):
        if set(a.resources) & set(b.resources):
            one, other = sorted((a, b), key=lambda node: node.op)
            found.add((one.op, other.op, relations.relation(one, other)))
    return found
