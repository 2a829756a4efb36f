"""Chooses the family of the next test, by its weight and by what it still finds.

Every family has a weight, by default or from the command line. Half of the tests are distributed
by weight alone. The other half go to the families that find most in a second: in proportion to
weight times yield, which is

    (finds + 1) / (seconds + `PRIOR_S`),

the mean of a Poisson rate after so many finds in that time, where one find in `PRIOR_S` was
expected beforehand. A family that has had little time thus has a high yield, and gets some time.
Finds and time both fade (`HALF_LIFE_S`), so that an exhausted family falls back, though never
below half of its share.

A new likely cause of findings is one find. A pair of ops on one resource, ordered or not, that no
test had before counts as `NEW_PAIR`, so that among families without findings those are preferred
that still reach something new.

Until the first finding, and in a campaign limited by a number of tests, weights alone decide: the
tests then depend on the seed only. Afterwards they depend on time as well; each test can still be
reproduced from its family and number.

References
----------
Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 1933: try
each in proportion to how good it seems. Garivier and Moulines, "On Upper-Confidence Bound Policies
for Switching Bandit Problems", ALT 2011: forget. Boehme et al., "Boosting Fuzzer Efficiency",
ESEC/FSE 2020: novelty as the measure.
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

MIN_SHARE: Final = 0.5
"""Share of the tests that is distributed by weight alone; a family never gets less than this part
of its weight's share."""
PRIOR_S: Final = 10.0
HALF_LIFE_S: Final = 120.0
"""Seconds spent on the family itself."""
NEW_PAIR: Final = 0.01

Pair = tuple[str, str, str]
"""Two ops on one resource, and their relation."""


@dataclass(slots=True)
class _Yield:
    """Finds of a family and the time they took; both fade."""

    finds: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Expected finds in a second."""
        return (self.finds + 1) / (self.seconds + PRIOR_S)


class FamilyWeights:
    """Chooses families.

    Parameters
    ----------
    base : mapping of str to float
        The weight of each family, above 0.
    learning : bool
        False if finds must not change the shares.
    """

    def __init__(self, base: Mapping[str, float], *, learning: bool) -> None:
        self.base = base
        self.learning = learning
        self.yields: dict[str, _Yield] = defaultdict(_Yield)
        self.found_something = False
        self.pairs: set[Pair] = set()
        self.credit: dict[tuple[int, str], float] = defaultdict(float)

    def add_time(self, family: str, seconds: float) -> None:
        """Add the seconds that a test of the family took."""
        yields = self.yields[family]
        fades = 0.5 ** (seconds / HALF_LIFE_S)
        yields.finds *= fades
        yields.seconds = yields.seconds * fades + seconds

    def add_find(self, family: str) -> None:
        """Note a finding of the family that is likely a new cause."""
        self.yields[family].finds += 1
        self.found_something = True

    def add_test(self, family: str, test: LitmusTest) -> None:
        """Note that a test of the family was run."""
        if self.learning:
            new = pairs(test) - self.pairs
            self.pairs |= new
            self.yields[family].finds += NEW_PAIR * len(new)

    def shares(self, families: Sequence[str]) -> dict[str, float]:
        """The share of the tests that each of these families has; they add up to 1."""
        shares = _parts({family: self.base[family] for family in families})
        if not (self.learning and self.found_something):
            return shares
        finds = _parts({family: shares[family] * self.yields[family].rate for family in families})
        return {f: MIN_SHARE * shares[f] + (1 - MIN_SHARE) * finds[f] for f in families}

    def choose(self, who: int, families: Sequence[str]) -> str:
        """The family of the next test that executor number `who` chooses.

        A family gains credit by its share of every choice, and pays 1 when it is chosen; the
        family with the most credit is chosen. So shares are kept to within one test, without
        randomness.
        """
        for family, share in self.shares(families).items():
            self.credit[who, family] += share
        # Of equals the first; sums of the same parts in another order may differ a little.
        chosen = max(families, key=lambda family: round(self.credit[who, family], 9))
        self.credit[who, chosen] -= 1
        return chosen


def _parts(weights: dict[str, float]) -> dict[str, float]:
    """Each weight's part of their sum."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def pairs(test: LitmusTest) -> set[Pair]:
    """The pairs of ops on one resource, with their relation."""
    relations = NodeRelations(test)
    found = set()
    for a, b in combinations([node for node in test.effects if node.resources], 2):
        if set(a.resources) & set(b.resources):
            one, other = sorted((a, b), key=lambda node: node.op)
            found.add((one.op, other.op, relations.relation(one, other)))
    return found
