"""`litmusfuzz oracle`: the outcomes that each memory model allows for a test."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, cast

import click

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import STATUS_KEY, TORN, Outcome, Status, Verdict
from litmusfuzz.corpus.textfile import value_from_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Plain, Value
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.allowed import (
        ConditionReport,
        Refuted,
        SetsReport,
        VerdictReport,
        Witnessed,
    )

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    FORBIDDEN,
    UNKNOWN,
    budget_option,
    explore_or_fail,
    explorer_for,
    fail,
    is_notation,
    json_option,
    load_tests,
    model_of,
    one_model_option,
    print_json,
    print_text,
    slow_progress,
    tests_argument,
)
from litmusfuzz.reports.tables import one_line


class Limit(click.ParamType[int | None]):
    """A number of rows; None for ``all``."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """From text; click reports the message."""
        if value is None or value == "all":
            return None
        if not re.fullmatch(r"[1-9][0-9]{0,11}", str(value), re.ASCII):
            self.fail(f"{value!r} is no number of outcomes; write 200, or all", param, ctx)
        return int(value)


@click.command(epilog="Example: litmusfuzz oracle SB --outcome r0=0,r1=0")
@tests_argument
@click.option(
    "--outcome",
    "wanted",
    default=None,
    help="Judge this outcome only: r0=2,r1=0 or X=[1,2] or Q=[[1,2],[3,4]] or _status=blocked; "
    r"/\ in place of a comma is the same.",
)
@one_model_option
@click.option(
    "--limit",
    type=Limit(),
    default="200",
    help="List so many outcomes, the first; all of them with: all. They are always counted.",
)
@budget_option
@json_option
def oracle(
    files: tuple[str, ...],
    wanted: str | None,
    model_name: str | None,
    limit: int | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Print the outcomes that each memory model allows for each TEST.

    Answers the condition of a test that has one, with a witness, or the reason why there is
    none: 'X=1 || r0=X exists (r0=0)'.
    Exits 1 if it is not met: if no model allows what exists asks for, or one allows an
    outcome that a forall or ~exists excludes.

    With --outcome, judge that outcome, and print a witness or the reason; a name that
    it leaves out may have any value. Exits 1 if every model forbids it.
    """
    models = _models(model_name)
    # All mistakes before any work.
    tests = [(file, entry.test) for file, entry in load_tests(files)]
    answers = [
        _sets(file, test, models, budget, limit)
        if wanted is None
        else _judged(file, test, wanted, models, budget)
        for file, test in tests
    ]
    if as_json:
        data = [report.as_json() for report, _ in answers]
        print_json(data[0] if len(data) == 1 else data)
    else:
        several = len(answers) > 1
        texts = (
            f"{_title(file, test)}\n{report.text()}" if several else report.text()
            for (file, test), (report, _) in zip(tests, answers, strict=True)
        )
        print_text("\n\n".join(texts))
    codes = {code for _, code in answers}
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def _title(file: str, test: LitmusTest) -> str:
    """The name of one test of several; of one in notation also its text."""
    return f"{test.name}: {one_line(file)}" if is_notation(file) else test.name


def _sets(
    file: str,
    test: LitmusTest,
    models: tuple[Model, ...],
    budget: int | None,
    limit: int | None,
) -> tuple[SetsReport, int]:
    """The allowed set under each model, and the exit code."""
    from litmusfuzz.reports.allowed import ModelSet, SetsReport

    found: dict[Model, tuple[Explorer, AllowedSet]] = {}
    sets = []
    with slow_progress() as progress:
        for model in models:

            def so_far(states: int, model: Model = model) -> None:
                progress(f"{test.name}: {states:,} states under {model.name}")

            found[model] = explore_or_fail(file, test, model, budget, so_far)
            allowed = found[model][1]
            progress(f"{test.name}: {len(allowed.witnesses):,} outcomes under {model.name}")
            sets.append(
                ModelSet(model.name, frozenset(allowed.witnesses), allowed.complete, allowed.states)
            )
        progress(f"{test.name}: answering its condition")
        asked = None if test.condition is None else _answered(test, found)
        report = SetsReport(test, tuple(sets), asked, limit)
        progress(f"{test.name}: sorting {report.total:,} outcomes")
        assert report.outcomes or not report.total  # sorted now
    if asked is not None:
        return report, UNKNOWN if asked.met is None else CLEAN if asked.met else FORBIDDEN
    return report, CLEAN if report.complete else UNKNOWN


def _answered(
    test: LitmusTest, found: Mapping[Model, tuple[Explorer, AllowedSet]]
) -> ConditionReport:
    """The answer to the condition of a test under each model."""
    from litmusfuzz.corpus.textfile import outcome_order
    from litmusfuzz.reports.allowed import ANSWERS, ConditionReport, Witnessed

    condition = test.condition
    assert condition is not None
    decided, not_decided = ANSWERS[condition.quantifier]
    answers = {}
    deciding: dict[Model, Witnessed] = {}
    for model, (_, allowed) in found.items():
        matching = filter(condition.decides, allowed.witnesses)
        outcome = min(matching, key=outcome_order, default=None)
        if outcome is None:
            answers[model.name] = not_decided if allowed.complete else "unknown"
            continue
        answers[model.name] = decided
        events = tuple(map(str, allowed.witnesses[outcome]))
        deciding[model] = Witnessed(model.name, outcome, events)
    strictest = [m for m in deciding if not any(m.axioms < o.axioms for o in deciding)]
    without = [model for model in found if answers[model.name] == not_decided]
    loosest = [m for m in without if not any(o.axioms < m.axioms for o in without)]
    return ConditionReport(
        condition,
        answers,
        tuple(deciding[model] for model in strictest),
        tuple(why for model in loosest for why in _why_none(test, model)),
    )


def _why_none(test: LitmusTest, model: Model) -> Iterator[Refuted]:
    r"""Why the model forbids what the test's condition asks for or excludes.

    That is found for values that all hold together, as ``r0=0 /\ r1=0`` has them.
    """
    condition = test.condition
    given = None if condition is None or condition.quantifier == "forall" else condition.values
    if given is None:
        return
    ended = given.pop(STATUS_KEY, None)
    status = None if ended is None else Status(str(ended))
    values = {name: value_from_plain(test, name, plain) for name, plain in given.items()}
    if not (values and status is Status.FAILED):
        yield refuted(test, model, values, status)


def _models(name: str | None) -> tuple[Model, ...]:
    """That model, or all of semantics.md, the loosest first."""
    from litmusfuzz.oracles.model import MODELS

    return tuple(MODELS.values()) if name is None else (model_of(name),)


_VALUE = re.compile(
    r"\s*(?P<name>[\w.]+)\s*=\s*"
    # One way to match each text: `json.loads` finds the mistakes inside of brackets.
    r"(?P<value>-?\d{1,18}|[a-z]+|\[[-\d,\s]*\]|\[\s*(?:\[[-\d,\s]*\][\s,]*)*\])"
    r"\s*(?:,\s*|/\\\s*|&&\s*|\s|$)",
    re.ASCII,
)


def parse_outcome(test: LitmusTest, text: str) -> tuple[dict[str, Value], Status | None]:
    r"""``r0=2,X=[1,2],_status=blocked`` as values by name, and how it ended if that is said.

    Blanks, or ``/\`` as in a condition, may stand in place of the commas, and parentheses around
    all of it.
    """
    whole = text.strip()
    text = whole[1:-1] if whole[:1] == "(" and whole[-1:] == ")" else text
    values: dict[str, Value] = {}
    status: Status | None = None
    position = 0
    while position < len(text):
        match = _VALUE.match(text, position)
        if not match:
            fail(f"--outcome: cannot read '{text[position:]:.80}'; write r0=2,r1=0 or X=[1,2]")
        name, raw = match["name"], match["value"]
        position = match.end()
        if name in values or (name == STATUS_KEY and status):
            fail(f"--outcome: {name!r} stands twice")
        if name == STATUS_KEY:
            if raw not in list(Status):
                fail(f"--outcome: {name} is completed, blocked or failed, not {raw}")
            status = Status(raw)
            continue
        if name not in test.names:
            fail(f"--outcome: {name!r} is not one of {', '.join([*test.names, STATUS_KEY])}")
        try:
            plain: Plain = raw if raw[0].isalpha() else json.loads(raw)
            values[name] = value_from_plain(test, name, plain)
        except ValueError as error:  # MalformedTest is one
            if isinstance(error, MalformedTest):
                fail(f"--outcome: {error}")
            fail(f"--outcome: cannot read {raw!r:.80}; write r0=2,r1=0 or X=[1,2]")
    if not values and status is None:
        fail("--outcome: names no value")
    if values and status is Status.FAILED:
        fail("--outcome: a failed outcome has no values")
    return values, status


def _judged(
    file: str, test: LitmusTest, text: str, models: tuple[Model, ...], budget: int | None
) -> tuple[VerdictReport, int]:
    """The verdict of each model on one outcome, and the exit code."""
    from litmusfuzz.oracles.errors import NoAllowedSet
    from litmusfuzz.reports.allowed import VerdictReport

    values, status = parse_outcome(test, text)
    verdicts: dict[Model, Verdict] = {}
    witnesses: dict[Model, Witnessed] = {}
    try:
        for model in models:
            explorer = explorer_for(file, test, model, budget)
            verdicts[model], found = membership(explorer, values, status)
            if found is not None:
                witnesses[model] = _witnessed(explorer, found)
    except NoAllowedSet as error:
        fail(f"{file}: {error}")
    forbidding = [model for model, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN]
    # A stricter model's order is one of a looser, whose reason holds there as well.
    strictest = [m for m in witnesses if not any(m.axioms < o.axioms for o in witnesses)]
    loosest = [m for m in forbidding if not any(o.axioms < m.axioms for o in forbidding)]
    report = VerdictReport(
        test,
        ({} if status is None else {STATUS_KEY: str(status)}) | plain_values(test, values),
        {model.name: str(verdict) for model, verdict in verdicts.items()},
        tuple(witnesses[model] for model in strictest),
        tuple(refuted(test, model, values, status) for model in loosest),
    )
    found_verdicts = set(verdicts.values())
    if found_verdicts & {Verdict.ALLOWED, Verdict.UNSPECIFIED}:
        return report, CLEAN
    return report, UNKNOWN if Verdict.UNKNOWN in found_verdicts else FORBIDDEN


def plain_values(test: LitmusTest, values: Mapping[str, Value]) -> dict[str, Plain]:
    """Values as JSON has them, in the test's order."""
    return Outcome(tuple((name, values[name]) for name in test.names if name in values)).plain


def membership(
    explorer: Explorer, values: Mapping[str, Value], status: Status | None
) -> tuple[Verdict, Outcome | None]:
    """The verdict on every outcome with those values, and what to ask a witness for.

    What is not named may be anything, and (`status`) how it ended as well.
    """
    if TORN in values.values():
        return Verdict.FORBIDDEN, None
    test = explorer.test
    statuses = [Status.COMPLETED] if status is None else [status]
    if status is None and test.blocks:
        statuses.append(Status.BLOCKED)
    verdict = Verdict.FORBIDDEN
    for each in statuses:
        # For the core None is a value that was not seen, and matches any.
        pairs = () if each is Status.FAILED else ((n, values.get(n)) for n in test.names)
        asked = Outcome(cast("tuple[tuple[str, Value], ...]", tuple(pairs)), each)
        found = explorer.judge(asked)
        if found in (Verdict.ALLOWED, Verdict.UNSPECIFIED):
            return found, asked
        if found is Verdict.UNKNOWN:
            verdict = found
    return verdict, None


def _witnessed(explorer: Explorer, asked: Outcome) -> Witnessed:
    from litmusfuzz.oracles.reference import outcome_of
    from litmusfuzz.reports.allowed import Witnessed

    order = explorer.witness(asked)
    assert order is not None, "allowed, but by no order"
    outcome = outcome_of(explorer.test, explorer.model, order)
    return Witnessed(explorer.model.name, outcome, tuple(map(str, order)))


def refuted(
    test: LitmusTest,
    model: Model,
    wanted: Mapping[str, Value] | Outcome,
    status: Status | None = None,
) -> Refuted:
    """Why the model forbids all with those values, as it is reported."""
    from litmusfuzz.oracles.reason import explain
    from litmusfuzz.reports.allowed import Refuted

    reason = explain(test, model, wanted, status=status)
    if reason is None:
        return Refuted(model.name)
    return Refuted(
        model.name,
        reason.steps,
        bool(reason.cycle),
        tuple(map(str, reason.edges)),
        reason.broken,
    )
