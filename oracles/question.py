"""What the axiomatic oracle is asked, and what it may use for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome, Value


@dataclass(frozen=True, slots=True)
class Budget:
    """What a question may use before its answer is "unknown".

    Parameters
    ----------
    events : int
        Of the test; more are not looked at.
    clauses : int
        Roughly, for reads and queues, whose number grows with the cube of the
        events on one resource; more are not written down.
    tries : int
        Alternatives that the pass without a solver tries; past them z3 is asked.
    steps : int
        z3's own count (its ``rlimit``): no clock, so that an answer repeats.
    saturate, solve : bool
        Whether to try the pass without a solver, and z3: for tests, which hold
        one against the other.
    """

    events: int = 1_000
    clauses: int = 100_000
    tries: int = 500
    steps: int = 5_000_000
    saturate: bool = True
    solve: bool = True


DEFAULT_BUDGET: Final = Budget()
"""Some seconds of work."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which outcomes are asked for: all that fit.

    Parameters
    ----------
    values : mapping of str to Value
        By name; a name that is missing may be anything.
    status : Status
    absent : frozenset of str
        Names that have no value: of what is observed, where its run did not end.
    """

    values: Mapping[str, Value]
    status: Status = Status.COMPLETED
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(cls, test: LitmusTest, outcome: Outcome) -> Question:
        """Exactly that outcome; a value None is one not seen, and may be anything.

        Raises
        ------
        ValueError
            If it is an outcome of another test.
        """
        given = dict(outcome.values)
        complete = outcome.status is Status.COMPLETED
        if not given.keys() <= set(test.names) or (complete and len(given) < len(test.names)):
            raise ValueError("another test's outcome")
        values = {name: value for name, value in given.items() if value is not None}
        # Of a failed order nothing is shown, whether a run had ended or not.
        failed = outcome.status is Status.FAILED
        absent = frozenset() if failed else frozenset(test.names) - given.keys()
        return cls(values, outcome.status, absent)
