"""The set of allowed outcomes of a litmus test, and the verdict that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Outcome, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.oracles.events import Event

Witness = tuple["Event", ...]
"""A total order of all events of a test."""


@dataclass(frozen=True, slots=True)
class AllowedSet:
    """Outcomes that some total order yields, each with one such order.

    Parameters
    ----------
    model : str
        Name of the memory model.
    witnesses : mapping of Outcome to Witness
    orders : int
        Total orders visited, by an oracle that enumerates them; else 0.
    complete : bool
        True if the oracle visited all total orders. Otherwise the verdict on a
        missing outcome is `unknown`, never `forbidden`.
    states : int
        States visited, by an oracle that merges orders that reach one state; else 0.
    """

    model: str
    witnesses: Mapping[Outcome, Witness]
    orders: int
    complete: bool
    states: int = 0

    @property
    def looked_at(self) -> str:
        """Size of the search, in words."""
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
