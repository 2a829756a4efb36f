"""Questions for the axiomatic oracle, and the budget for their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import TORN, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome, Value


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for one question; past any of them the answer is "unknown".

    Parameters
    ----------
    events : int
        Largest number of events in the test.
    clauses : int
        Largest approximate number of clauses for reads and queues. That number grows
        with the cube of the events on one resource.
    tries : int
        Alternatives that saturation tries before the question goes to z3.
    steps : int
        Limit on z3's own step count (``rlimit``). It is not a time limit, so that
        answers are reproducible.
    cases : int
        Largest number of cases: choices of how strict loops and conditionals are.
    lemmas : int
        Largest number of solutions in which a pure op has another result than its own.
    histories : int
        Largest number of histories of the writes of one variable (`litmusfuzz.oracles.histories`).
    asked : int
        Largest number of events in all questions of one reason together.
    saturate, solve : bool
        Use saturation, use z3. Tests compare one with the other.
    """

    events: int = 1_000
    clauses: int = 100_000
    tries: int = 500
    steps: int = 5_000_000
    cases: int = 1_000
    lemmas: int = 100
    histories: int = 50_000
    asked: int = 50_000
    saturate: bool = True
    solve: bool = True


DEFAULT_BUDGET: Final = Budget()
"""A few seconds of work."""


@dataclass(frozen=True, slots=True)
class Question:
    """A pattern of outcomes: some total order yields an outcome that fits it, or none does.

    Parameters
    ----------
    values : mapping of str to Value
        Values by name. A name that is missing may have any value.
    status : Status
    absent : frozenset of str
        Names that have no value, because their run did not end.
    """

    values: Mapping[str, Value]
    status: Status = Status.COMPLETED
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(cls, test: LitmusTest, outcome: Outcome) -> Question:
        """Return the question for exactly one outcome; a value of None may be anything.

        Raises
        ------
        ValueError
            If the outcome belongs to another test.
        """
        given = dict(outcome.values)
        complete = outcome.status is Status.COMPLETED
        if not given.keys() <= set(test.names) or (complete and len(given) < len(test.names)):
            raise ValueError("another test's outcome")
        values = {name: value for name, value in given.items() if value is not None}
        # A failed order shows no values, whether or not a run had ended.
        failed = outcome.status is Status.FAILED
        absent = frozenset() if failed else frozenset(test.names) - given.keys()
        return cls(values, outcome.status, absent)


_INTS: Final = frozenset({int, bool})


class Sizes:
    """Number of ints in each value of a test's outcomes.

    A value with another number is in no allowed set. The oracles look before they compute with
    it: ops take operands of the types that the test gives them.

    Parameters
    ----------
    test : LitmusTest
    """

    def __init__(self, test: LitmusTest) -> None:
        self._sizes = {name: test.size_of(kind.shape) for name, kind in test.shown.items()}
        self.ints = sum(self._sizes.values())
        """Ints in an outcome, about: queues count as one element each."""
        self._queues = frozenset(queue.name for queue in test.queues)
        # Its contents are () until it is written.
        self._empty = frozenset(each.name for each in test.variables if each.init is None)

    def fit(self, outcome: Outcome) -> bool:
        """True if each value has its number of ints; for a queue, each element."""
        for name, value in outcome.values:
            if value is None or value is TORN or name not in self._sizes:
                continue
            if not self._fits(name, value):
                return False
        return True

    def _fits(self, name: str, value: tuple[object, ...]) -> bool:
        size = self._sizes[name]
        if name in self._queues:
            return all(isinstance(each, tuple) and _ints(each, size) for each in value)
        return _ints(value, size) or (not value and name in self._empty)


def _ints(value: tuple[object, ...], size: int) -> bool:
    return len(value) == size and _INTS.issuperset(map(type, value))
