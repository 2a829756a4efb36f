"""Translation validation: decide whether a clustering is sound, without running it.

A clustering is sound if the graph without clusters allows every outcome that the
clustered graph allows, both under `rfc`. The check is the same for the clusters of
our own passes and for the clusters that TensorFlow chose.

References
----------
semantics.md, section 5. Pnueli, Siegel, Singerman, "Translation Validation",
TACAS 1998: each translation is judged, not the translator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status, Verdict, distance, nearest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.explorer import Budget


class Soundness(StrEnum):
    """Verdict on a clustering."""

    SOUND = "sound"
    UNSOUND = "unsound"
    UNKNOWN = "unknown"
    """The oracle exceeded its budget, or cannot say whether a lost path is an order of the test."""


MOST_ADDED: Final = 16
"""Added outcomes to collect; `clearest` picks the one to show."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Result of translation validation.

    Parameters
    ----------
    verdict : Soundness
    outcomes : int
        Number of outcomes found that are allowed with clusters.
    added : Outcome or None
        For an unsound clustering: an outcome allowed with clusters, forbidden without.
    witness : tuple of Event
        A total order of the clustered graph that yields it.
    """

    verdict: Soundness
    outcomes: int
    added: Outcome | None = None
    witness: Witness = ()


def validate(
    test: LitmusTest, budget: Budget = DEFAULT_BUDGET, original: LitmusTest | None = None
) -> Translation:
    """Compare a test with the same test without clusters.

    Parameters
    ----------
    budget : Budget
        Limit for the allowed set of the clustered graph, and for each verdict on one
        of its outcomes.
    original : LitmusTest, optional
        What the clustered graph is compared with, if that is not `test` without clusters.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in a visited order.
    """
    clustered = Explorer(test, RFC, budget)
    plain = Explorer(original or replace(test, clusters=()), RFC, budget)
    allowed = clustered.allowed_outcomes()
    verdict = Soundness.SOUND if allowed.complete else Soundness.UNKNOWN
    kept: list[Outcome] = []
    added: list[Outcome] = []
    for outcome in allowed.witnesses:
        answer = plain.judge(outcome)
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
    shown = clearest(added, kept)
    witness = clustered.witness(shown)
    assert witness is not None, shown
    return Translation(Soundness.UNSOUND, len(allowed.witnesses), shown, witness)


def clearest(added: Sequence[Outcome], kept: Sequence[Outcome]) -> Outcome:
    """Return the added outcome that differs least from an allowed one, completed ones first."""

    def strangeness(outcome: Outcome) -> tuple[bool, int, str]:
        closest = nearest(outcome, kept)
        blocked = outcome.status is not Status.COMPLETED
        return blocked, 0 if closest is None else distance(outcome, closest), str(outcome)

    return min(added, key=strangeness)
