"""The axiomatic oracle: an outcome's verdict as a constraint problem.

The other two oracles search total orders. This one states constraints: which
events are done, each event's position in the total order, the write that each
read saw, and the enqueue that each dequeue took. The answer is a total order,
or a proof that none exists.

The oracle decides the constraints in one of two ways. Where every relevant read
has one possible source (generators make written values differ), only the order is
open, and `litmusfuzz.oracles.saturation` decides it. Otherwise z3 decides, under a
budget of z3's own steps: the same question has the same answer on every machine,
and a question that exceeds the budget is `unknown`.

This oracle shares only the unfolding (`litmusfuzz.oracles.events`) with the other
oracles. It also serves `litmusfuzz.oracles.reason`, so a question may add ordering
constraints and may leave some values open.

References
----------
semantics.md, sections 2 to 4. Alglave, Maranget, Tautschnig, "Herding Cats",
TOPLAS 2014 (reads-from, write order, from-read). Gibbons and Korach, "Testing
Shared Memories", SIAM J. Comput. 1997. De Moura, Bjorner, "Z3", TACAS 2008.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.constraints import Case
from litmusfuzz.oracles.errors import TestTooLarge
from litmusfuzz.oracles.events import strictnesses, unfold
from litmusfuzz.oracles.question import DEFAULT_BUDGET, Budget, Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.events import Unfolding
    from litmusfuzz.oracles.model import Model

__all__ = ["DEFAULT_BUDGET", "Axiomatic", "Budget", "Case", "Question", "judge"]


def judge(
    test: LitmusTest, model: Model, outcome: Outcome, budget: Budget = DEFAULT_BUDGET
) -> Verdict:
    """Return the verdict on one outcome; see `Axiomatic.judge`."""
    return Axiomatic(test, model, budget).judge(outcome)


class Axiomatic:
    """The axiomatic oracle of one test under one model.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    budget : Budget
        Limit for each case (a question under one choice of how strict each loop and
        conditional is).
    """

    def __init__(self, test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> None:
        test, self.gradients = sequential.gradients_apart(test, model)
        self.test = test
        self.model = model
        self.budget = budget
        try:
            self._loosest: Unfolding | None = unfold(test, model)
        except TestTooLarge:
            self._loosest = None
        self._can_block = test.blocks
        self._empty = "uninitialized variables" in test.features

    @property
    def size(self) -> int:
        """Number of events, at least 1."""
        return 1 + len(self._loosest.events if self._loosest else ())

    def judge(self, outcome: Outcome) -> Verdict:
        """Return the verdict on one outcome.

        References
        ----------
        semantics.md, sections 1 (`torn` is in no allowed set) and 4.
        """
        if outcome.torn:
            return Verdict.FORBIDDEN
        plain = sequential.with_those_gradients(outcome, self.gradients)
        if plain is None:
            return Verdict.FORBIDDEN
        question = Question.of(self.test, plain)
        verdict = self.possible(question)
        if verdict is Verdict.ALLOWED and outcome.status is Status.FAILED:
            return Verdict.UNSPECIFIED
        return verdict

    def possible(self, question: Question) -> Verdict:
        """Return the verdict on a question.

        It is `ALLOWED` if some total order yields an outcome that fits the question, `FORBIDDEN`
        if none does, `UNKNOWN` if the budget ran out.
        """
        verdict = Verdict.FORBIDDEN if self._loosest else Verdict.UNKNOWN
        for number, case in enumerate(self.cases(question)):
            answer = case.solve() if number < self.budget.cases else None
            if answer is None:
                verdict = Verdict.UNKNOWN
                if number >= self.budget.cases:
                    break
            elif answer.order is not None:
                return Verdict.ALLOWED
        return verdict

    def witness(self, outcome: Outcome) -> Witness | None:
        """Return a total order that yields the outcome, or None if none was found."""
        cases = self.cases(Question.of(self.test, outcome))
        for case in islice(cases, self.budget.cases):
            answer = case.solve()
            if answer is not None and answer.order is not None:
                return tuple(case.events[i] for i in answer.order)
        return None

    def cases(self, question: Question) -> Iterator[Case]:
        """Yield the question under each choice of strictness that can affect it."""
        status = question.status
        if self._loosest is None:
            return
        if status is Status.COMPLETED:
            yield Case(self.test, self._loosest, question, self.budget)
        elif status is Status.FAILED:
            fails = self._can_block or self._empty or self._loosest.checks
            if fails and not question.values:
                yield Case(self.test, self._loosest, question, self.budget)
        elif not self._can_block:
            return
        else:
            for strictness in strictnesses(self.test, self.model):
                unfolding = unfold(self.test, self.model, strictness)
                yield Case(self.test, unfolding, question, self.budget)
