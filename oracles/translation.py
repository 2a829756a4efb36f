"""Translation validation: is a clustering sound? Decided without running anything.

It is sound when every outcome that the clustered graph allows is one that the
graph without its clusters allows, both under `rfc`. Whoever chose the clusters,
and their SSA orders, is judged alike.

References
----------
semantics.md, section 5. Pnueli, Siegel, Singerman, "Translation Validation",
TACAS 1998: each translation is judged, not the translator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from corpus.outcome import Verdict
from oracles.explorer import DEFAULT_BUDGET, Explorer
from oracles.model import RFC

if TYPE_CHECKING:
    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome
    from oracles.allowed import Witness
    from oracles.explorer import Budget


class Soundness(StrEnum):
    """What is said of a clustering."""

    SOUND = "sound"
    UNSOUND = "unsound"
    UNKNOWN = "unknown"
    """The oracle ran out of its budget."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What validation found.

    Parameters
    ----------
    verdict : Soundness
    outcomes : int
        Allowed with clusters, as many as were looked at.
    added : Outcome or None
        Allowed with clusters, and not without; of an unsound clustering.
    witness : Witness
        A total order of the clustered graph that yields it.
    """

    verdict: Soundness
    outcomes: int
    added: Outcome | None = None
    witness: Witness = ()


def validate(test: LitmusTest, budget: Budget = DEFAULT_BUDGET) -> Translation:
    """Judge a test's clusters against the test without them.

    Parameters
    ----------
    budget : Budget
        For the set of the clustered graph, and for each question about one of
        its outcomes.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in an order looked at.
    """
    clustered = Explorer(test, RFC, budget)
    original = Explorer(replace(test, clusters=()), RFC, budget)
    allowed = clustered.allowed_outcomes()
    verdict = Soundness.SOUND if allowed.complete else Soundness.UNKNOWN
    for outcome in allowed.witnesses:
        answer = original.judge(outcome)
        if answer is Verdict.FORBIDDEN:
            witness = clustered.witness(outcome)
            assert witness is not None, outcome
            return Translation(Soundness.UNSOUND, len(allowed.witnesses), outcome, witness)
        if answer is Verdict.UNKNOWN:
            verdict = Soundness.UNKNOWN
    return Translation(verdict, len(allowed.witnesses))
