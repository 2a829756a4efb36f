"""`litmusfuzz known compare`: whether two findings are one cause, decided by experiments."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    UNKNOWN,
    Duration,
    fail,
    json_option,
    load_or_fail,
    print_json,
    print_text,
    python_option,
    python_or_fail,
    trust_option,
)
from litmusfuzz.fuzz.cli.replay import check_trusted
from litmusfuzz.reports.tables import one_line

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.experiments import Case, Comparison, Experiment


@click.command(epilog="Example: litmusfuzz known compare scatter-beside-read.yaml new.yaml")
@click.argument("left", metavar="A", type=click.Path())
@click.argument("right", metavar="B", type=click.Path())
@click.option("--time", "time_s", type=Duration(), default="20s", help="Limit for each experiment.")
@python_option
@trust_option
@json_option
def compare(
    left: str, right: str, time_s: float, python: str | None, trust: bool, as_json: bool
) -> None:
    """Decide by experiments whether two minimized findings are one cause.

    Runs the test of each finding where the other shows, and without what makes the other
    show: with an order between the ops that race there. A and B are one cause if each
    explains the other, and set apart if an experiment says so. Exits 3 if that stays
    undecided.
    """
    from litmusfuzz.fuzz.campaign.experiments import (
        TrialBudget,
        carry_out,
        control_trial,
        on_worker,
        result_of,
        tally_of,
    )
    from litmusfuzz.fuzz.campaign.experiments import compare as comparing
    from litmusfuzz.fuzz.executors.worker import Worker

    one, other = _case(left, trust=trust), _case(right, trust=trust)
    if one.executor != other.executor:
        fail(f"{left} is a finding of {one.executor}, {right} of {other.executor}")
    budget = TrialBudget(time_s)

    async def both() -> tuple[Comparison, Comparison]:
        with closing(Worker(one.executor, python=python_or_fail(python))) as worker:
            run = on_worker(worker, random.Random(0))
            controls = []
            for case in (one, other):
                trial = control_trial(case)
                controls.append(result_of(trial, await tally_of(trial, run, budget)))
            return (
                await carry_out(comparing(one, other, controls[0]), run, budget),
                await carry_out(comparing(other, one, controls[1]), run, budget),
            )

    try:
        found = asyncio.run(both())
    except KeyboardInterrupt:
        fail("interrupted")
    verdict = _together(*found)
    if as_json:
        rows = [
            {
                "finding": finding,
                "cause": cause,
                "verdict": str(each.verdict),
                "why": each.why,
                "experiments": [experiment.as_json() for experiment in each.experiments],
            }
            for (finding, cause), each in zip(((left, right), (right, left)), found, strict=True)
        ]
        print_json({"verdict": verdict, "comparisons": rows})
    else:
        tests = {one.test: left, other.test: right}
        for (finding, cause), each in zip(((left, right), (right, left)), found, strict=True):
            why = f": {each.why}" if each.why else ""
            print_text(one_line(f"{finding}, by {cause}: {each.verdict}{why}"))
            for experiment in each.experiments:
                print_text(one_line(f"  {_line(experiment, tests)}"))
        print_text(verdict)
    sys.exit(UNKNOWN if verdict == "undecided" else CLEAN)


def _case(file: str, *, trust: bool) -> Case:
    """The case of a finding's file."""
    from litmusfuzz.fuzz.campaign.experiments import Case
    from litmusfuzz.fuzz.executors.table import UnknownExecutor

    entry = load_or_fail(file)
    found = entry.finding
    if found is None:
        fail(f"{file}: has no finding")
    if not trust:
        check_trusted(file, entry, (found.executor, found.configuration), None)
    try:
        return Case.of(entry.test, found)
    except UnknownExecutor as error:
        fail(f"{file}: {error}")


def _together(one: Comparison, other: Comparison) -> str:
    """The verdict on two findings, from those on each as a finding of the other's cause."""
    from litmusfuzz.fuzz.campaign.experiments import Verdict

    verdicts = {one.verdict, other.verdict}
    if Verdict.NEW in verdicts:
        return "two causes"
    return "undecided" if Verdict.UNDECIDED in verdicts else "one cause"


def _line(experiment: Experiment, tests: dict[LitmusTest, str]) -> str:
    """An experiment in a line."""
    test = tests.get(experiment.test, "its test, edited")
    needed = "" if experiment.needed is None else f" (none of {experiment.needed:,} would decide)"
    problem = f"; {experiment.problem}" if experiment.problem else ""
    return (
        f"{experiment.reason}: {test} in {experiment.configuration}: "
        f"{' or '.join(experiment.symptoms)} in {experiment.seen:,} of "
        f"{experiment.executions:,} executions{needed}{problem}"
    )
