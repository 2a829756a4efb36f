"""`litmusfuzz known compare`: which findings are one cause, decided by experiments."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    UNKNOWN,
    Duration,
    complain,
    fail,
    json_option,
    load_or_fail,
    print_json,
    print_text,
    progress_line,
    python_option,
    python_or_fail,
    trust_option,
)
from litmusfuzz.fuzz.cli.replay import check_trusted
from litmusfuzz.reports.tables import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget
    from litmusfuzz.fuzz.finding.experiments import Comparison
    from litmusfuzz.fuzz.finding.trials import Case, Experiment


@click.command(epilog="Example: litmusfuzz known compare corpus/findings/cluster-*.yaml")
@click.argument("files", metavar="A B ...", nargs=-1, required=True, type=click.Path())
@click.option("--time", "time_s", type=Duration(), default="20s", help="Limit for each experiment.")
@python_option
@trust_option
@json_option
def compare(
    files: tuple[str, ...], time_s: float, python: str | None, trust: bool, as_json: bool
) -> None:
    """Decide by experiments whether minimized findings are one cause.

    For each two of them: runs the test of each finding where the other shows, and without
    what makes the other show: with an order between the ops that race there, or a constant
    in place of a pure op. They are one cause if each explains the other, and set apart if an
    experiment says so. Exits 3 if that stays undecided for two of them.
    """
    from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget

    if len(files) < 2:
        fail("known compare: name at least two findings")
    cases = {file: _case(file, trust=trust) for file in files}
    if len(cases) < len(files):
        fail("known compare: a file is named twice")
    first = files[0]
    for file, case in cases.items():
        if case.executor != cases[first].executor:
            executor = cases[first].executor
            fail(f"{first} is a finding of {executor}, {file} of {case.executor}")
    pairs: list[_Pair] = []

    def report(pair: _Pair) -> None:
        pairs.append(pair)
        if not as_json:
            for line in pair.lines():
                print_text(one_line(line))

    try:
        with progress_line() as progress:
            budget, environment = TrialBudget(time_s), python_or_fail(python)
            asyncio.run(_compare_all(cases, budget, environment, progress, report))
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        print_json([pair.as_json() for pair in pairs])
    if interrupted:
        asked = len(files) * (len(files) - 1) // 2
        complain(f"interrupted after {len(pairs)} of {counted(asked, 'pair')}")
        sys.exit(UNKNOWN)
    sys.exit(UNKNOWN if any(pair.verdict == "undecided" for pair in pairs) else CLEAN)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two findings, each compared with the other as its cause."""

    cases: Mapping[str, Case]  # by file
    comparisons: tuple[Comparison, Comparison]

    @property
    def verdict(self) -> str:
        """Whether they are one cause."""
        from litmusfuzz.fuzz.finding.experiments import Verdict

        verdicts = {each.verdict for each in self.comparisons}
        if Verdict.NEW in verdicts:
            return "two causes"
        return "undecided" if Verdict.UNDECIDED in verdicts else "one cause"

    def _each(self) -> Iterator[tuple[str, str, Comparison]]:
        """The finding, the cause, and the comparison."""
        one, other = self.cases
        yield one, other, self.comparisons[0]
        yield other, one, self.comparisons[1]

    def lines(self) -> Iterator[str]:
        """What a person reads."""
        yield f"{' and '.join(self.cases)}: {self.verdict}"
        tests = {case.test: file for file, case in self.cases.items()}
        for finding, cause, each in self._each():
            why = f": {each.why}" if each.why else ""
            yield f"  {finding}, by {cause}: {each.verdict}{why}"
            for experiment in each.experiments:
                yield f"    {_line(experiment, tests)}"

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        rows = [
            {
                "finding": finding,
                "cause": cause,
                "verdict": str(each.verdict),
                "why": each.why,
                "experiments": [experiment.as_json() for experiment in each.experiments],
            }
            for finding, cause, each in self._each()
        ]
        return {"verdict": self.verdict, "comparisons": rows}


async def _compare_all(
    cases: Mapping[str, Case],
    budget: TrialBudget,
    python: str | None,
    progress: Callable[[str], None],
    report: Callable[[_Pair], None],
) -> None:
    """Compare each two findings; how often each shows is measured once."""
    from litmusfuzz.fuzz.campaign.trial_runner import carry_out, on_worker, tally_of
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.fuzz.finding.experiments import compare, control_trial, result_of

    executor = next(iter(cases.values())).executor
    controls = {}
    with closing(Worker(executor, python=python)) as worker:
        run = on_worker(worker, random.Random(0))
        for file, case in cases.items():
            progress(file)
            trial = control_trial(case)
            controls[file] = result_of(trial, await tally_of(trial, run, budget))
        for one, other in combinations(cases, 2):
            progress(f"{one} and {other}")
            found = [
                await carry_out(compare(cases[a], cases[b], controls[a]), run, budget)
                for a, b in ((one, other), (other, one))
            ]
            pair = {file: cases[file] for file in (one, other)}
            report(_Pair(pair, (found[0], found[1])))


def _case(file: str, *, trust: bool) -> Case:
    """The case of a finding's file."""
    from litmusfuzz.fuzz.executors.table import UnknownExecutor
    from litmusfuzz.fuzz.finding.trials import Case

    entry = load_or_fail(file)
    found = entry.finding
    if found is None or not found.forbidden:
        fail(f"{file}: has no finding with a forbidden outcome")
    if not trust:
        check_trusted(file, entry, (found.executor, found.configuration), None)
    try:
        return Case.of(entry.test, found)
    except UnknownExecutor as error:
        fail(f"{file}: {error}")


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
