"""`litmusfuzz force`: allowed outcomes, each by a total order that an executor has to follow."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import click

from litmusfuzz.corpus.outcome import STATUS_KEY, Outcome, Status, Value, Verdict
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.commands.force_all import Limits
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.fuzz.finding.judging_model import JudgingModel
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.cover import CoverReport
    from litmusfuzz.reports.explored import ExploredReport

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    EXECUTORS,
    FORBIDDEN,
    MAX_NUMBER,
    MODEL,
    UNKNOWN,
    Duration,
    budget_option,
    complain,
    configuration_option,
    explorer_for,
    fail,
    json_option,
    load_tests,
    log_option,
    model_of,
    print_json,
    print_report,
    print_text,
    progress_line,
    python_option,
    python_or_fail,
    slow_progress,
    tests_argument,
)
from litmusfuzz.fuzz.cli.executors import executors_of
from litmusfuzz.fuzz.cli.oracle import membership, parse_outcome, plain_values
from litmusfuzz.fuzz.cli.replay import begin_log, write_log
from litmusfuzz.reports.tables import counted, the_model

MAX_NEAR: Final = 3
"""Allowed outcomes that the message for a forbidden one has, at most."""
LIMIT: Final = 100_000
"""Executions of a search, at most."""
MAX_PREEMPTIONS: Final = 1_000
_Report = TypeVar("_Report", "CoverReport", "ExploredReport")
NO_ENGINE: Final = (None, None)
"""Neither an engine nor threads: `force` has no such options."""


@click.command(epilog='Example: litmusfuzz force SB --executors tf --outcome "r0=0 r1=1"')
@tests_argument
@click.option(
    "--outcome",
    "wanted",
    default=None,
    help="Force only this allowed outcome, of one test on one executor: r0=2,r1=0 or X=[1,2] "
    "or _status=blocked.",
)
@click.option(
    "--executors",
    type=EXECUTORS,
    default="native",
    help="Executors that can be forced, separated by commas; NAME or NAME:CONFIGURATION.",
)
@configuration_option
@click.option("--time", "time_s", type=Duration(), default="60s", help="Limit for each order.")
@click.option(
    "--events",
    type=click.IntRange(1, MAX_NUMBER),
    default=40,
    help="Limit on the events of a test.",
)
@click.option(
    "--outcomes",
    type=click.IntRange(1, MAX_NUMBER),
    default=10_000,
    help="Limit on the allowed outcomes of a test.",
)
@log_option
@click.option(
    "--model",
    "model_name",
    type=MODEL,
    default=None,
    help="Memory model that allows the --outcome; without this option the one that the "
    "configuration guarantees.",
)
@click.option(
    "--preemptions",
    type=click.IntRange(0, MAX_PREEMPTIONS),
    default=None,
    help="Under control: only schedules with so few switches away from an op that could go on.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_NUMBER),
    default=None,
    help=f"Under control: executions of each search, at most; without this option {LIMIT:,}.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=None,
    help="Under control: folder for forbidden outcomes, a file each, to be replayed.",
)
@budget_option
@python_option
@json_option
def force(
    files: tuple[str, ...],
    wanted: str | None,
    executors: str,
    config_name: str | None,
    time_s: float,
    events: int,
    outcomes: int,
    log_file: str | None,
    model_name: str | None,
    preemptions: int | None,
    limit: int | None,
    out: str | None,
    budget: int | None,
    python: str | None,
    as_json: bool,
) -> None:
    """Make executors show the allowed outcomes of each TEST.

    For every allowed outcome an executor follows a total order: the witness that
    `oracle --outcome` prints. Outcomes that need an update split in two cannot be
    forced from outside; the report lists them separately. Exits 1 if an executor followed
    an order and showed another outcome, 3 if it did not follow one or a test was
    left out.

    An executor under control (tf:controlled, tf:controlled_locks, tf:controlled_pages,
    tf:controlled_touches) executes every schedule instead: those with 0, 1 and 2
    preemptions first, then all. Each forbidden outcome is shown with its schedule. Exits 1
    if there is one, 3 if the search was cut off.
    """
    from litmusfuzz.fuzz.campaign.preemption_bounds import switches_inside
    from litmusfuzz.fuzz.commands.force_all import Limits
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.fuzz.finding.judging_model import judging_model

    entries = [
        (file, entry.test) for file, entry in load_tests(files)
    ]  # all mistakes before any work
    named = executors_of(executors, config_name, *NO_ENGINE)
    python = python_or_fail(python)
    explores = [switches_inside(*each) is not None for each in named]
    if any(explores):
        if not all(explores):
            fail("--executors: those under control execute schedules: not beside others")
        if wanted is not None or log_file is not None:
            fail(f"{'--log' if wanted is None else '--outcome'}: not under control")
        asked = model_of(model_name) if model_name else None
        searching = _Searching(limit or LIMIT, preemptions, asked, budget, out)
        _explore_all(entries, named, searching, python, as_json=as_json)
    for name, value in (("--preemptions", preemptions), ("--limit", limit), ("--out", out)):
        if value is not None:
            fail(f"{name}: needs an executor under control, such as tf:controlled")
    if wanted is None:
        for name, value in (("--log", log_file), ("--model", model_name), ("--budget", budget)):
            if value is not None:
                fail(f"{name}: needs --outcome")
        chosen = configured(executors, config_name, "executor")
        _force_all(entries, chosen, Limits(events, outcomes, time_s), python, as_json=as_json)
    chosen = configured(executors, config_name, model_name or "executor")
    if len(entries) > 1 or len(chosen) > 1:
        fail("--outcome: is of one test, on one executor")
    (file, test), (name, config) = entries[0], chosen[0]
    judging = judging_model(name, config, asked=model_of(model_name) if model_name else None)
    run = _clustered(name, config, test)
    order, outcome = _order(file, (test, run), f"{name}/{config.name}", wanted, judging, budget)
    if log_file is not None:
        begin_log(log_file)
    with closing(Worker(name, python=python)) as worker:
        _force_one(
            file, run, (worker, config), (judging, order, outcome), time_s, log_file, as_json
        )


def configured(executors: str, config_name: str | None, model: str) -> list[tuple[str, Config]]:
    """The executors; where no configuration is named, one that guarantees just the model."""
    from litmusfuzz.fuzz.executors.table import configuration

    found = executors_of(executors, config_name, *NO_ENGINE)
    with_one = [config_name or part.strip().partition(":")[2] for part in executors.split(",")]
    return [
        (name, config if named else configuration(name, None, model))
        for (name, config), named in zip(found, with_one, strict=True)
    ]


def _clustered(executor: str, config: Config, test: LitmusTest) -> LitmusTest:
    """The test with the clusters that the executor runs it with: its events are theirs."""
    from litmusfuzz.fuzz.executors.protocol import Clusters
    from litmusfuzz.fuzz.executors.table import executor_class

    made = executor_class(executor)
    return made.clustered(test, config) if issubclass(made, Clusters) else test


def _force_one(
    file: str,
    test: LitmusTest,
    on: tuple[Worker, Config],
    wanted: tuple[JudgingModel, Witness, Outcome],
    time_s: float,
    log_file: str | None,
    as_json: bool,
) -> NoReturn:
    """Force one order, print the outcome, and exit."""
    from litmusfuzz.fuzz.commands import replay
    from litmusfuzz.reports.allowed import Witnessed
    from litmusfuzz.reports.forced import ForcedReport

    (worker, config), (judging, order, outcome) = on, wanted
    forced = replay.force(test, worker, config, order, time_s)
    if forced.problem:
        fail(f"{file}: {forced.problem}")
    witness = Witnessed(judging.model.name, outcome, tuple(map(str, order)))
    report = ForcedReport(
        test, worker.executor, config.name, str(judging), witness, forced.outcome, forced.diverged
    )
    if log_file is not None and report.seen is not None:
        write_log(test, {report.seen: 1}, log_file)
    print_report(report, as_json=as_json)
    sys.exit(report.exit_code)


def _order(
    file: str,
    tests: tuple[LitmusTest, LitmusTest],
    on: str,
    wanted: str,
    judging: JudgingModel,
    budget: int | None,
) -> tuple[Witness, Outcome]:
    """A total order with that outcome, and all of the outcome.

    Parameters
    ----------
    file : str
    tests : tuple of (LitmusTest, LitmusTest)
        The test, which has to allow the outcome, and the test as the executor runs it, which the
        order is of.
    on : str
        Title of the executor in its configuration.
    wanted : str
        The outcome, or a part of it.
    judging : JudgingModel
    budget : int or None
    """
    from litmusfuzz.oracles.errors import NoAllowedSet
    from litmusfuzz.oracles.reference import outcome_of
    from litmusfuzz.reports.allowed import shown

    test, run = tests
    values, status = parse_outcome(test, wanted)
    model = judging.model
    given = ({} if status is None else {STATUS_KEY: str(status)}) | plain_values(test, values)
    which = f"{file}: {shown(given)}"
    forbidden = f"forbidden under {the_model(model.name)}, {judging.why}: there is no order"
    hint = "--model names another model"
    for each in dict.fromkeys(tests):
        explorer = explorer_for(file, each, model, budget)
        try:
            verdict, asked = membership(explorer, values, status)
        except NoAllowedSet as error:
            fail(f"{file}: {error}")
        if verdict is Verdict.UNKNOWN:
            fail(f"{which}: over budget under {model.name}; see --budget")
        if asked is None:
            near = _nearest(explorer, values, status)
            fail(f"{which}: {forbidden}; {near}; {hint}")
        forbidden = (
            f"allowed under {the_model(model.name)}, but by no order of the clusters of {on}"
        )
        hint = "other configurations have others"
    assert asked is not None, "there are tests, the last of which is `run`"
    order = explorer.witness(asked)
    assert order is not None, "allowed, but by no order"
    return order, outcome_of(run, model, order)


def _nearest(explorer: Explorer, values: Mapping[str, Value], status: Status | None) -> str:
    """The allowed outcomes that differ least from what was asked for, in words."""
    allowed = explorer.allowed_outcomes().witnesses

    def apart(outcome: Outcome) -> int:
        has = dict(outcome.values)
        ends_otherwise = status is not None and outcome.status is not status
        return ends_otherwise + sum(has.get(name) != value for name, value in values.items())

    least = min(map(apart, allowed))
    near = sorted(str(outcome) for outcome in allowed if apart(outcome) == least)
    more = f" and {len(near) - MAX_NEAR} more" if len(near) > MAX_NEAR else ""
    return f"nearest {'is' if len(near) == 1 else 'are'} {', '.join(near[:MAX_NEAR])}{more}"


def _force_all(
    entries: Sequence[tuple[str, LitmusTest]],
    chosen: Sequence[tuple[str, Config]],
    limits: Limits,
    python: str | None,
    *,
    as_json: bool,
) -> NoReturn:
    """Force every allowed outcome of each test on each executor, print a report, and exit."""
    from litmusfuzz.reports.cover import cover_text

    reports = _reports(entries, chosen, python, progress_line, partial(_forced, limits=limits))
    _end(reports, len(entries) * len(chosen), cover_text, as_json=as_json)


def _reports(
    entries: Sequence[tuple[str, LitmusTest]],
    chosen: Sequence[tuple[str, Config]],
    python: str | None,
    show: Callable[[], AbstractContextManager[Callable[[str], None]]],
    report: Callable[..., _Report],
) -> list[_Report]:
    """A report of each test on each executor, or until Ctrl-C."""
    from litmusfuzz.fuzz.executors.worker import Worker

    reports: list[_Report] = []
    try:
        for name, config in chosen:
            with closing(Worker(name, python=python)) as worker, show() as progress:
                for file, test in entries:
                    reports.append(report(file, test, worker, config, progress=progress))
                    if reports[-1].interrupted:
                        raise KeyboardInterrupt
    except KeyboardInterrupt:
        asked = counted(len(entries) * len(chosen), "test")
        done = sum(not each.interrupted for each in reports)
        complain(f"interrupted after {done} of {asked}")
    return reports


def _end(
    reports: Sequence[_Report],
    asked: int,
    several: Callable[[Sequence[_Report]], str],
    *,
    as_json: bool,
) -> NoReturn:
    """Print the reports, and exit by the worst of them; 3 if one that was asked for is missing."""
    if as_json:
        print_json([report.as_json() for report in reports])
    elif reports:
        print_text(reports[0].text() if len(reports) == 1 else several(reports))
    codes = {report.exit_code for report in reports}
    if len(reports) < asked:
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def _forced(
    file: str,
    test: LitmusTest,
    worker: Worker,
    config: Config,
    limits: Limits,
    progress: Callable[[str], None],
) -> CoverReport:
    """All outcomes of one test on one executor, with the clusters that it runs the test with."""
    from litmusfuzz.fuzz.commands.force_all import cover as force_all
    from litmusfuzz.fuzz.finding.judging_model import judging_model
    from litmusfuzz.reports.cover import CoverReport

    test = _clustered(worker.executor, config, test)
    part = f"{worker.executor}/{config.name}: {test.name}"
    found = force_all(test, worker, config, limits, lambda order: progress(f"{part}, {order}"))
    return CoverReport(
        test=test,
        file=file,
        executor=worker.executor,
        config=config.name,
        judged_by=str(judging_model(worker.executor, config)),
        left_out=found.left_out,
        reached=tuple(found.reached),
        wrong=tuple((o, tuple(map(str, order)), seen) for o, order, seen in found.wrong),
        not_followed=tuple(found.not_followed),
        apart=found.apart,
        seconds=found.seconds,
        interrupted=found.interrupted,
    )


@dataclass(frozen=True, slots=True)
class _Searching:
    """Options of a search of all schedules."""

    limit: int
    preemptions: int | None
    asked: Model | None
    budget: int | None
    out: str | None


def _explore_all(
    entries: Sequence[tuple[str, LitmusTest]],
    chosen: Sequence[tuple[str, Config]],
    searching: _Searching,
    python: str | None,
    *,
    as_json: bool,
) -> NoReturn:
    """Execute every schedule of each test on each executor, print a report, and exit."""
    from litmusfuzz.reports.explored import explored_text

    if searching.out is not None:
        try:
            Path(searching.out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"--out {searching.out}: {error.strerror}")
    asked = len(entries) * len(chosen)
    explored = partial(_explored, searching=searching)
    reports = _reports(entries, chosen, python, slow_progress, explored)
    if asked == 1 and reports and reports[0].left_out:
        fail(f"{reports[0].file}: {reports[0].left_out}")  # a mistake of the command
    _end(reports, asked, explored_text, as_json=as_json)


def _explored(
    file: str,
    test: LitmusTest,
    worker: Worker,
    config: Config,
    searching: _Searching,
    progress: Callable[[str], None],
) -> ExploredReport:
    """All schedules of one test on one executor, judged."""
    from litmusfuzz.fuzz.commands.exploration import explore, finding_entry, why_unreached
    from litmusfuzz.fuzz.finding.judging_model import judging_model
    from litmusfuzz.reports.explored import ExploredReport, Reached

    judging = judging_model(worker.executor, config, asked=searching.asked)
    explorer = explorer_for(file, test, judging.model, searching.budget)
    report = partial(
        ExploredReport, test, file, worker.executor, config.name, judged_by=str(judging)
    )
    part = f"{worker.executor}/{config.name}: {test.name}"
    found = explore(
        test,
        worker,
        config,
        searching.limit,
        searching.preemptions,
        lambda done: progress(f"{part}, {done}"),
    )
    if found.problem:
        return report(left_out=found.problem)
    counts = found.last.histogram if found.last else {}
    ordered = sorted(found.found, key=lambda outcome: -counts.get(outcome, 0))
    reached = {
        outcome: Reached(
            counts.get(outcome, 0),
            found.found[outcome].preemptions,
            found.found[outcome].events,
            str(explorer.judge(outcome)),
        )
        for outcome in ordered
    }
    allowed = explorer.allowed_outcomes()
    missing = [outcome for outcome in allowed.witnesses if outcome not in reached]
    files = {}
    for outcome, each in reached.items():
        if searching.out is not None and each.verdict == "forbidden":
            entry = finding_entry(test, worker, config, judging.model, outcome, found)
            files[outcome] = _saved(entry, Path(searching.out))
    return report(
        reached=reached,
        unreached=why_unreached(test, judging.model, missing),
        all_allowed=allowed.complete,
        bound=found.bound,
        schedules=sum(counts.values()),
        executions=found.last.executions if found.last else 0,
        complete=not found.stopped,
        whole=bool(found.last and found.last.whole),
        within=found.within,
        stopped=found.stopped,
        files=files,
        seconds=found.seconds,
        interrupted=found.interrupted,
    )


def _saved(entry: Entry, out: Path) -> str:
    """Write a finding's file, under a name that no other has."""
    from litmusfuzz.corpus.textfile import save

    name, number = entry.test.name, 1
    while (path := out / f"{name}.yaml").exists():
        number += 1
        name = f"{entry.test.name}-{number}"
    save(replace(entry, test=entry.test.titled(name)), path)
    return str(path)
