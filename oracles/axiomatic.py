"""The third oracle: an outcome's verdict as a constraint problem.

What the other two walk through, this one states: which events are done, where
each stands in the total order, which write each read saw, which enqueue each
dequeue took; and that all of it fits. An answer is a total order, or the proof
that there is none.

Two ways lead to it. Where every read that matters has one possible source
(written values differ, as generators see to), orders are all that is left, and
`litmusfuzz.oracles.saturation` decides. Else the question goes to z3, as text, under a
budget of z3's own steps: the same question has the same answer on every
machine, and what is over budget is `unknown`.

With the other oracles it shares what may happen (`litmusfuzz.oracles.events`), nothing
else. Since it can answer *why not* (`litmusfuzz.oracles.reason`), questions may also add
orders of their own, and name some values only.

References
----------
semantics.md, sections 2 to 4. Alglave, Maranget, Tautschnig, "Herding Cats",
TOPLAS 2014 (reads-from, write order, from-read). Gibbons and Korach, "Testing
Shared Memories", SIAM J. Comput. 1997. De Moura, Bjorner, "Z3", TACAS 2008.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.oracles.constraints import Case
from litmusfuzz.oracles.events import strictnesses, unfold
from litmusfuzz.oracles.question import DEFAULT_BUDGET, Budget, Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.model import Model

__all__ = ["DEFAULT_BUDGET", "Axiomatic", "Budget", "Case", "Question", "judge"]


def judge(
    test: LitmusTest, model: Model, outcome: Outcome, budget: Budget = DEFAULT_BUDGET
) -> Verdict:
    """The verdict on one outcome; see `Axiomatic.judge`."""
    return Axiomatic(test, model, budget).judge(outcome)


class Axiomatic:
    """A test under a model, ready for questions.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    budget : Budget
        For each question, under each choice of strictness.
    """

    def __init__(self, test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> None:
        self.test = test
        self.model = model
        self.budget = budget
        self._loosest = unfold(test, model)
        self._can_block = bool({"queues", "critical sections"} & test.features)

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome.

        References
        ----------
        semantics.md, sections 1 (`torn` is in no allowed set) and 4.
        """
        if outcome.torn:
            return Verdict.FORBIDDEN
        question = Question.of(self.test, outcome)
        verdict = self.possible(question)
        if verdict is Verdict.ALLOWED and outcome.status is Status.FAILED:
            return Verdict.UNSPECIFIED
        return verdict

    def possible(self, question: Question) -> Verdict:
        """Whether some total order yields what is asked for."""
        verdict = Verdict.FORBIDDEN
        for case in self.cases(question):
            answer = case.solve()
            if answer is None:
                verdict = Verdict.UNKNOWN
            elif answer.order is not None:
                return Verdict.ALLOWED
        return verdict

    def witness(self, outcome: Outcome) -> Witness | None:
        """A total order that yields the outcome; None if none was found."""
        for case in self.cases(Question.of(self.test, outcome)):
            answer = case.solve()
            if answer is not None and answer.order is not None:
                return tuple(case.events[i] for i in answer.order)
        return None

    def cases(self, question: Question) -> Iterator[Case]:
        """The question under each choice of strictness that it may depend on."""
        status = question.status
        if status is Status.COMPLETED:
            yield Case(self.test, self._loosest, question, self.budget)
        elif not self._can_block or (status is Status.FAILED and question.values):
            return
        elif status is Status.FAILED:
            yield Case(self.test, self._loosest, question, self.budget)
        else:
            for strictness in strictnesses(self.test, self.model):
                unfolding = unfold(self.test, self.model, strictness)
                yield Case(self.test, unfolding, question, self.budget)
