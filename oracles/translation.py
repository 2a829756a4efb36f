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
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status, Verdict, distance, nearest
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.explorer import Budget


class Soundness(StrEnum):
    """What is said of a clustering."""

    SOUND = "sound"
    UNSOUND = "unsound"
    UNKNOWN = "unknown"
    """The oracle ran out of its budget."""


MOST_ADDED: Final = 16
"""Outcomes that clustering adds, of which the most telling is shown; more are not looked for."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What validation found.

    Parameters
    ----------
    verdict : Soundness
    outcomes : int
        Allowed with clusters, as many as were found.
    added : Outcome or None
        Of an unsound clustering: allowed with clusters, forbidden without.
    witness : tuple of Event
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
    kept: list[Outcome] = []
    added: list[Outcome] = []
    for outcome in allowed.witnesses:
        answer = original.judge(outcome)
        if answer is Verdict.FORBIDDEN:
            added.append(outcome)
            if len(added) == MOST_ADDED:
                break
        elif answer is Verdict.UNKNOWN:
            verdict = Soundness.UNKNOWN
        else:
            kept.append(outcome)
    if not added:
        return Translation(verdict, len(allowed.witnesses))
    shown = most_telling(added, kept)
    witness = clustered.witness(shown)
    assert witness is not None, shown
    return Translation(Soundness.UNSOUND, len(allowed.witnesses), shown, witness)


def most_telling(added: Sequence[Outcome], kept: Sequence[Outcome]) -> Outcome:
    """One that completes if there is one, and that differs least from one that may be."""

    def strangeness(outcome: Outcome) -> tuple[bool, int, str]:
        closest = nearest(outcome, kept)
        blocked = outcome.status is not Status.COMPLETED
        return blocked, 0 if closest is None else distance(outcome, closest), str(outcome)

    return min(added, key=strangeness)
