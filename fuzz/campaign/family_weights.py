"""Chooses the family of the next generated test, by weight and by recent finds.

Every family has a weight, by default or from the command line. Half of the tests
(`tuning.WEIGHT_SHARE`) are distributed by weight alone. The other half are distributed in
proportion to weight times yield, where the yield of a family is

    (finds + 1) / (seconds + `PRIOR_S`),

the posterior mean of a Poisson rate whose prior is one find in `PRIOR_S`. So a family that has run
for a short time has a high yield, and is tried. Finds and seconds both decay (`HALF_LIFE_S`), so
that the share of an exhausted family falls, but never below half of its share by weight.

A new likely cause of findings counts as one find. A pair of ops on one resource, with its order,
that no earlier test had counts as `NEW_PAIR` finds. So families without findings are ranked by the
new pairs that they reach.

Until the first finding, and in a campaign limited by a number of tests, weights alone decide, and
the tests depend on the seed only. Afterwards they also depend on time. Each test can be reproduced
from its family and number in either case.

References
----------
Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 1933: choose
each option with the probability that it is the best. Garivier and Moulines, "On Upper-Confidence
Bound Policies for Switching Bandit Problems", ALT 2011: discounted observations. Boehme et al.,
"Boosting Fuzzer Efficiency", ESEC/FSE 2020: discovery of new behaviour as the reward.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign.tuning import HALF_LIFE_S, PRIOR_S, WEIGHT_SHARE
from litmusfuzz.fuzz.finding.relations import Pair, pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest

NEW_PAIR: Final = 0.01


@dataclass(slots=True)
class _Yield:
    """Decaying counts of a family's finds and of the seconds spent on it."""

    finds: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Expected finds per second."""
        return (self.finds + 1) / (self.seconds + PRIOR_S)


class FamilyWeights:
    """Chooses the family of each test.

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
        """Count a finding of the family that likely has a new cause."""
        self.yields[family].finds += 1
        self.found_something = True

    def new_pairs(self, test: LitmusTest) -> int:
        """Number of pairs of ops in a test that no test before it had; they count as had now."""
        new = pairs(test, self.pairs)
        self.pairs |= new
        return len(new)

    def add_new_pairs(self, family: str, number: int) -> None:
        """Count the new pairs in a test of the family that has run."""
        if self.learning:
            self.yields[family].finds += NEW_PAIR * number

    def shares(self, families: Sequence[str]) -> dict[str, float]:
        """The share of the tests that each of these families has; they add up to 1."""
        shares = _parts({family: self.base[family] for family in families})
        if not (self.learning and self.found_something):
            return shares
        finds = _parts({family: shares[family] * self.yields[family].rate for family in families})
        return {f: WEIGHT_SHARE * shares[f] + (1 - WEIGHT_SHARE) * finds[f] for f in families}

    def choose(self, who: int, families: Sequence[str]) -> str:
        """The family of the next test that executor number `who` chooses.

        A family gains credit by its share of every choice, and pays 1 when it is chosen; the
        family with the most credit is chosen. So shares are kept to within one test, without
        randomness.
        """
        for family, share in self.shares(families).items():
            self.credit[who, family] += share
        # Ties go to the first family; rounding hides differences in the order of summation.
        chosen = max(families, key=lambda family: round(self.credit[who, family], 9))
        self.credit[who, chosen] -= 1
        return chosen


def _parts(weights: dict[str, float]) -> dict[str, float]:
    """The weights, normalized to the sum 1."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
