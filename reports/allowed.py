"""Report of `litmusfuzz oracle`: allowed sets by memory model, or one outcome judged."""

from __future__ import annotations

import heapq
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.textfile import outcome_order
from litmusfuzz.reports.tables import counted, outcome_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.condition import Condition
    from litmusfuzz.corpus.model import LitmusTest


@dataclass(frozen=True, slots=True)
class ModelSet:
    """The outcomes that one model allows; not all of them unless `complete`.

    `states` says how many the search looked at.
    """

    model: str
    outcomes: frozenset[Outcome]
    complete: bool
    states: int

    def mark(self, outcome: Outcome) -> str:
        """The verdict on an outcome: "yes", "no", or "?" if the search was cut short."""
        if outcome in self.outcomes:
            return "yes"
        return "no" if self.complete else "?"


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """The condition of a test, answered for each model.

    `answers` has a word for each model (`ANSWERS`, or "unknown"); `deciding` an order of an outcome
    that decides it, under the strictest models that have one: a witness of an ``exists``, or a
    counterexample of a ``forall`` or ``~exists``. `reasons` says why the loosest models that have
    none forbid the values that it names.
    """

    condition: Condition
    answers: Mapping[str, str]
    deciding: tuple[Witnessed, ...]
    reasons: tuple[Refuted, ...] = ()

    @property
    def met(self) -> bool | None:
        """The answer over all the models together; None if that is unknown.

        An ``exists`` is met if one of them allows such an outcome; a ``forall`` or ``~exists`` if
        none allows another one.
        """
        wanted = self.condition.quantifier == "exists"
        if ANSWERS[self.condition.quantifier][0] in self.answers.values():
            return wanted
        return None if "unknown" in self.answers.values() else not wanted

    def lines(self) -> list[str]:
        """The answers, then the orders, then the reasons."""
        by_answer: dict[str, list[str]] = {}
        for model, answer in self.answers.items():
            by_answer.setdefault(answer, []).append(model)
        answers = ", ".join(f"{a} under {' and '.join(m)}" for a, m in by_answer.items())
        lines = [f"{self.condition}: {answers}"]
        kind = "witness" if self.condition.quantifier == "exists" else "counterexample"
        for each in self.deciding:
            looser = [m for m in self.answers if self.answers[m] == self.answers[each.model]]
            also = [m for m in looser if m != each.model]
            hence = f", and hence under {' and '.join(also)}" if also else ""
            lines += ["", f"{kind}, a total order under {each.model}{hence}:"]
            lines += numbered(each.events)
            lines.append(f"which yields  {ended_as(each.outcome)}")
        for why in self.reasons:
            without = [m for m in self.answers if self.answers[m] == self.answers[why.model]]
            also = [m for m in without if m != why.model]
            hence = f", and hence under {' and '.join(also)}" if also else ""
            lines += ["", *why.lines(f"reason under {why.model}{hence}")]
        return lines

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `lines` has."""
        return {
            "condition": str(self.condition),
            "answers": dict(self.answers),
            "met": self.met,
            "deciding": [each.as_json() for each in self.deciding],
            "reasons": [asdict(why) for why in self.reasons],
        }


ANSWERS: Final[Mapping[str, tuple[str, str]]] = {
    "exists": ("yes", "never"),
    "~exists": ("does not hold", "holds"),
    "forall": ("does not hold", "holds"),
}
"""By quantifier: the answer if some outcome decides the condition, and if none does."""


@dataclass(frozen=True)
class SetsReport:
    """The allowed sets of a test, the loosest model first.

    `limit` says how many outcomes are listed; None for all. They are always counted.
    """

    test: LitmusTest
    sets: tuple[ModelSet, ...]
    condition: ConditionReport | None = None
    limit: int | None = None

    @property
    def complete(self) -> bool:
        """True if no search was cut short."""
        return all(each.complete for each in self.sets)

    @cached_property
    def _all(self) -> frozenset[Outcome]:
        return frozenset[Outcome]().union(*(each.outcomes for each in self.sets))

    @property
    def total(self) -> int:
        """Number of outcomes that some model allows, as far as they were found."""
        return len(self._all)

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """Outcomes that some model allows, in the order of files: the first, up to the limit."""
        if self.limit is None or self.total <= self.limit:
            return sorted(self._all, key=outcome_order)
        return heapq.nsmallest(self.limit, self._all, key=outcome_order)

    def text(self) -> str:
        """A table with a column for each model, then each model's counts."""
        several = len(self.sets) > 1
        rows = [
            (outcome, [each.mark(outcome) for each in self.sets] if several else [])
            for outcome in self.outcomes
        ]
        titles = [each.model for each in self.sets] if several else []
        shown = outcome_table(self.test.names, titles, rows)
        lines = [shown]
        if len(self.outcomes) < self.total:
            lines.append(
                f"... the first {len(self.outcomes):,} of {self.total:,} outcomes;"
                " --limit all lists them"
            )
        lines += ["", *(self._counts(each) for each in self.sets)]
        if self.condition is not None:
            lines += ["", *self.condition.lines()]
        return "\n".join(lines)

    def _counts(self, each: ModelSet) -> str:
        line = f"{counted(len(each.outcomes), 'outcome')} allowed under {each.model}"
        line += f" ({counted(each.states, 'search state')})"
        if not each.complete:
            return line + ", and perhaps more: over budget"
        looser = self.sets[0]
        missing = len(looser.outcomes - each.outcomes)
        if missing:
            needs = "needs" if missing == 1 else "need"
            line += f"; {missing} more {needs} {looser.model}"
        elif each is not looser and looser.complete:
            line += f"; the same as under {looser.model}"
        return line

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        rows = []
        for outcome in self.outcomes:
            marks = {each.model: each.mark(outcome) for each in self.sets}
            row: dict[str, Any] = {
                "outcome": outcome.plain,
                "models": [model for model, mark in marks.items() if mark == "yes"],
            }
            if "?" in marks.values():
                row["unknown"] = [model for model, mark in marks.items() if mark == "?"]
            rows.append(row)
        asked = {} if self.condition is None else {"condition": self.condition.as_json()}
        return {
            "test": self.test.name,
            "complete": self.complete,
            "total": self.total,
            "truncated": len(self.outcomes) < self.total,
            "models": {
                each.model: {
                    "outcomes": len(each.outcomes),
                    "complete": each.complete,
                    "states": each.states,
                }
                for each in self.sets
            },
            "allowed": rows,
        } | asked


@dataclass(frozen=True, slots=True)
class Witnessed:
    """An order that yields the outcome asked for: one event a line.

    `outcome` is all that it shows.
    """

    model: str
    outcome: Outcome
    events: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data with all of it."""
        return {
            "model": self.model,
            "outcome": self.outcome.plain,
            "events": list(self.events),
        }


@dataclass(frozen=True, slots=True)
class Refuted:
    """Reason why a model forbids an outcome, in steps, which form a cycle if `cycle`.

    `edges` and `rules`, by name, are what the reason stands on; no steps if none
    was found.
    """

    model: str
    steps: tuple[str, ...] = ()
    cycle: bool = False
    edges: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    def lines(self, title: str) -> list[str]:
        """The title with the rules, then one step a line."""
        rules = f" ({', '.join(self.rules)})" if self.rules else ""
        lines = [f"{title}{rules}:", *(f"  {step}" for step in self.steps)]
        if self.cycle:
            lines.append("which is a cycle: no total order has all of it")
        elif not self.steps:
            lines.append("  no total order yields it: the search came to its end")
        return lines


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """One outcome judged under several models; `wanted` is what was asked for."""

    test: LitmusTest
    wanted: Mapping[str, Any]
    verdicts: Mapping[str, str]
    witnesses: tuple[Witnessed, ...] = ()
    reasons: tuple[Refuted, ...] = ()

    def text(self) -> str:
        """The verdicts, then a witness one event a line, then a reason."""
        by_verdict: dict[str, list[str]] = {}
        for model, verdict in self.verdicts.items():
            by_verdict.setdefault(verdict, []).append(model)
        verdicts = ", ".join(
            f"{verdict} under {' and '.join(models)}" for verdict, models in by_verdict.items()
        )
        lines = [f"{shown(self.wanted)}: {verdicts}"]
        for each in self.witnesses:
            looser = [m for m in by_verdict.get("allowed", ()) if m != each.model]
            also = f", and hence under {' and '.join(looser)}" if looser else ""
            lines += ["", f"witness, a total order under {each.model}{also}:"]
            lines += numbered(each.events)
            lines.append(f"which yields  {ended_as(each.outcome)}")
        for why in self.reasons:
            stricter = [m for m in by_verdict.get("forbidden", ()) if m != why.model]
            also = f", and hence under {' and '.join(stricter)}" if stricter else ""
            lines += ["", *why.lines(f"reason under {why.model}{also}")]
        if "unknown" in by_verdict:
            lines += ["", "unknown: the search ran out of its budget; see --budget"]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        return {
            "test": self.test.name,
            "wanted": dict(self.wanted),
            "verdicts": dict(self.verdicts),
            "witnesses": [each.as_json() for each in self.witnesses],
            "reasons": [asdict(why) for why in self.reasons],
        }


def shown(plain: Mapping[str, Any]) -> str:
    """Values by name, as they are typed on the command line."""
    return " ".join(f"{name}={str(value).replace(' ', '')}" for name, value in plain.items())


def numbered(events: Sequence[str]) -> list[str]:
    """A total order, one event a line."""
    width = len(str(len(events)))
    return [f"  {i:{width}}  {event}" for i, event in enumerate(events, 1)]


def ended_as(outcome: Outcome) -> str:
    """An outcome's values; of one that did not complete also how it ended, in words."""
    if outcome.status is Status.COMPLETED:
        return str(outcome)
    values = shown({n: v for n, v in outcome.plain.items() if n in dict(outcome.values)})
    return f"{outcome.status}, {values}" if values else str(outcome.status)
