"""Explanation of a forbidden outcome: a minimal set of edges and rules, and a cycle.

A *reason* is a minimal set of control edges, orders of runs, and rules of the model
that together forbid the outcome: without any one of them the outcome is allowed.
The search removes many parts at once, then fewer, then single parts, and asks the
axiomatic oracle each time. Where the observed values imply an order of events, the
reason also gives the contradiction as a cycle, as herd and Elle do.

References
----------
Alglave, Maranget, Tautschnig, "Herding Cats", TOPLAS 2014, section 4.8 (cycles
as explanations); Kingsbury, Alvaro, "Elle", VLDB 2020, section 4; Zeller,
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002
(minimal sets by leaving out halves).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from litmusfuzz.corpus.outcome import STATUS_KEY, TORN, Outcome, Status, Verdict, plain_value
from litmusfuzz.corpus.struct import replace
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.axiomatic import Axiomatic, Budget, Question
from litmusfuzz.oracles.cycle import find_cycle, still_possible
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.oracles.relaxed import BY_EDGE, Edge, edges_of, relaxed, with_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Value
    from litmusfuzz.oracles.cycle import Step
    from litmusfuzz.oracles.model import Model

Part = TypeVar("Part", "Edge | Axiom", str)
DEFAULT_BUDGET: Final = Budget(steps=1_000_000)
"""Budget of each question. A reason takes dozens of questions, each well below a second."""
MOST_PARTS: Final = 2_000
"""Edges and rules of a test; one with more has no reason."""
__all__ = ["Edge", "Reason", "explain"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Explanation of a forbidden outcome.

    Parameters
    ----------
    edges : tuple of Edge
    rules : tuple of str
        Names of axioms (`oracles.model.Axiom`) other than dependencies and runs.
    cycle : tuple of str
        One sentence for each step of the cycle; empty where no single cycle
        explains the outcome.
    goes_on : tuple of str
        For a blocked outcome, the events that could still happen.
    values : tuple of str
        Where no edge or rule forbids the outcome: a minimal set of values that no
        order yields, ``r0=7``.
    arcs : tuple of (str, str)
        For each step of the cycle, the earlier node and the later node.
    """

    edges: tuple[Edge, ...]
    rules: tuple[str, ...]
    cycle: tuple[str, ...] = ()
    goes_on: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    arcs: tuple[tuple[str, str], ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of all rules that together forbid the outcome."""
        by_edge = {Axiom.RUNS if edge.runs else Axiom.DEPENDENCIES for edge in self.edges}
        return (*sorted(map(str, by_edge)), *self.rules)

    @property
    def steps(self) -> tuple[str, ...]:
        """The reason in sentences: the cycle if there is one, else the edges and rules."""
        if self.cycle:
            return self.cycle
        parts = (*map(str, self.edges), *(f"rule: {rule}" for rule in self.rules), *self.goes_on)
        return parts or (f"no order at all yields {' with '.join(self.values) or 'these values'}",)

    def __str__(self) -> str:
        return "; ".join(self.steps)


def explain(
    test: LitmusTest,
    model: Model,
    wanted: Mapping[str, Value] | Outcome,
    budget: Budget = DEFAULT_BUDGET,
    *,
    status: Status | None = None,
) -> Reason | None:
    """Explain why `model` forbids an outcome, or every outcome with certain values.

    Parameters
    ----------
    wanted : mapping or Outcome
        Values by name, where a name that is missing may have any value; or exactly
        one outcome.
    status : Status, optional
        With values: how the order ends. Completed or blocked if not given.

    Returns
    -------
    Reason or None
        None if such an outcome is allowed, or a question exceeded its budget.
    """
    given = dict(wanted.values) if isinstance(wanted, Outcome) else wanted
    if TORN in given.values():
        return Reason((), ("reads and writes of a whole variable are atomic",))
    if "gradients" in test.features:
        test, gradients = sequential.gradients_apart(test, model)
        common = [key for key in gradients if key in given]
        wrong = tuple(f"{key}={given[key]}" for key in common if given[key] != gradients[key])
        if wrong:
            return Reason((), (), values=wrong)
        if isinstance(wanted, Outcome):
            wanted = sequential.with_those_gradients(wanted, gradients) or wanted
        else:
            wanted = {name: each for name, each in wanted.items() if name not in gradients}
    if isinstance(wanted, Outcome):
        questions = [Question.of(test, wanted)]
    elif status is not None:
        questions = [Question(wanted, status)]
    else:
        questions = [Question(wanted), Question(wanted, Status.BLOCKED)]

    asking = _Asking(questions, budget.asked)

    def forbids(kept: Sequence[Edge | Axiom]) -> bool:
        edges, rules = _sorted_out(kept)
        return asking.none_possible(
            Axiomatic(relaxed(test, edges), with_rules(model, rules), budget)
        )

    parts: list[Edge | Axiom] = [*edges_of(test), *sorted(model.axioms - BY_EDGE, key=str)]
    if len(parts) > MOST_PARTS:
        return None
    try:
        if not forbids(parts):
            return None
        edges, rules = _sorted_out(_fewest(parts, forbids))
        values: tuple[str, ...] = ()
        if not edges and not rules:
            values = _fewest_values(
                Axiomatic(relaxed(test, ()), with_rules(model, ()), budget), asking
            )
    except _OverBudget:
        return None
    cycle: tuple[Step, ...] = ()
    goes_on: tuple[str, ...] = ()
    if questions[0].status is Status.COMPLETED:
        cycle = find_cycle(test, model, edges, rules, questions[0], budget)
    elif questions[0].status is Status.BLOCKED:
        goes_on = still_possible(test, model, questions[0], budget)
    words = tuple(why for why, _, _ in cycle)
    arcs = tuple((first, second) for _, first, second in cycle)
    return Reason(tuple(edges), tuple(map(str, rules)), words, goes_on, values, arcs)


class _OverBudget(Exception):
    pass


@dataclass(slots=True)
class _Asking:
    """The questions of a reason, and how many more events they may have in all."""

    questions: Sequence[Question]
    left: int

    def none_possible(self, oracle: Axiomatic, questions: Sequence[Question] | None = None) -> bool:
        """Return True if no order answers any question."""
        questions = self.questions if questions is None else questions
        self.left -= oracle.size * len(questions)
        verdicts = [oracle.possible(each) for each in questions] if self.left >= 0 else []
        if not verdicts or Verdict.UNKNOWN in verdicts:
            raise _OverBudget
        return Verdict.ALLOWED not in verdicts


def _fewest_values(oracle: Axiomatic, asking: _Asking) -> tuple[str, ...]:
    """Return a minimal set of values that no order yields together."""
    questions = asking.questions
    given = questions[0].values

    def forbids(names: Sequence[str]) -> bool:
        values = {name: given[name] for name in names}
        return asking.none_possible(oracle, [replace(each, values=values) for each in questions])

    names = list(given)
    if not forbids(names):
        return ()
    plain = {name: str(plain_value(given[name])).replace(" ", "") for name in names}
    found = [f"{name}={plain[name]}" for name in _fewest(names, forbids)]
    if len(questions) == 1 and questions[0].status is not Status.COMPLETED:
        found.insert(0, f"{STATUS_KEY}={questions[0].status}")
    return tuple(found)


def _sorted_out(parts: Sequence[Edge | Axiom]) -> tuple[list[Edge], list[Axiom]]:
    """Return the edges, edges of graphs first, and the rules, each sorted for display."""
    edges = [part for part in parts if isinstance(part, Edge)]
    rules = [part for part in parts if isinstance(part, Axiom)]
    return sorted(edges, key=lambda e: (e.runs, e.target, e.source)), rules


def _fewest(parts: list[Part], forbids: Callable[[Sequence[Part]], bool]) -> list[Part]:
    """Return a minimal list of parts that forbid.

    Delta debugging: the search removes halves, then halves of halves. Blocked
    outcomes are not monotone (with fewer edges, more events can happen), so a part
    that was needed among many may become unnecessary. The last pass therefore
    repeats until it removes nothing.
    """
    kept = list(parts)
    chunks = [kept]
    while chunks:
        chunk = chunks.pop()
        fewer = [part for part in kept if part not in chunk]
        if chunk and forbids(fewer):
            kept = fewer
        elif len(chunk) > 1:
            half = len(chunk) // 2
            chunks += [chunk[half:], chunk[:half]]
    for part in list(kept):
        fewer = [other for other in kept if other != part]
        if forbids(fewer):
            return _fewest(fewer, forbids)
    return kept
