"""An allowed set, and the one place that turns it into a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Outcome, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.oracles.events import Event

Witness = tuple["Event", ...]
"""A total order of all events of a test."""


class NoAllowedSet(ValueError):
    """A model says nothing about a test: no outcome is allowed or forbidden."""


class NoProgramOrder(NoAllowedSet):
    """The test is of no program, as the model ``acd`` wants: it has clusters, or a cycle.

    A critical section that waits for something may have members that stand before that
    in the file, and touch the same resource.
    """


class ValueTooLarge(NoAllowedSet):
    """Some total order makes a value of 2**24 or more: the test is ill-formed."""


@dataclass(frozen=True, slots=True)
class AllowedSet:
    """Outcomes that some total order yields, each with such an order.

    Parameters
    ----------
    model : str
        Under which model.
    witnesses : mapping of Outcome to Witness
    orders : int
        Total orders looked at, by an oracle that looks at each; else 0.
    complete : bool
        Whether all were looked at. If not, an outcome that is missing is
        `unknown`, never `forbidden`.
    states : int
        States looked at, by an oracle that merges orders which meet in one.
    """

    model: str
    witnesses: Mapping[Outcome, Witness]
    orders: int
    complete: bool
    states: int = 0

    @property
    def looked_at(self) -> str:
        """How much was looked at, in words."""
        return f"{self.states} states" if self.states else f"{self.orders} total orders"

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome of the same test.

        References
        ----------
        semantics.md, sections 1 (`torn` is in no allowed set) and 4.
        """
        if outcome in self.witnesses:
            failed = outcome.status is Status.FAILED
            return Verdict.UNSPECIFIED if failed else Verdict.ALLOWED
        if self.complete or outcome.torn:
            return Verdict.FORBIDDEN
        return Verdict.UNKNOWN
