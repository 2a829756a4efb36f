"""`litmusfuzz replay`: tests and findings run again, observed against allowed."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.commands.replay import ReplayOptions
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.explorer import Explorer
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.replays import RefusedReplay, ReplayReport, Replays

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    EXECUTORS,
    FORBIDDEN,
    MAX_NUMBER,
    MAX_SEED,
    MODEL,
    UNKNOWN,
    Duration,
    budget_option,
    complain,
    configuration_option,
    engine_option,
    explorer_of,
    fail,
    json_option,
    load_tests,
    log_option,
    model_of,
    print_json,
    print_text,
    python_option,
    python_or_fail,
    refuse_outside,
    tests_argument,
    threads_option,
    trust_option,
)
from litmusfuzz.fuzz.cli.executors import executors_of
from litmusfuzz.reports.tables import counted, each_once

INTERRUPTED: Final = "interrupted"
"""Reason why an executor did not run."""


@click.command(epilog="Example: litmusfuzz replay SB --executors tf,native --count 10000")
@tests_argument
@click.option(
    "--executors",
    type=EXECUTORS,
    default=None,
    help="Executors or mutants, separated by commas; NAME or NAME:CONFIGURATION, as "
    "mutant/stale-reads (see `litmusfuzz list mutants`). Without this option the finding's, or tf.",
)
@configuration_option
@engine_option
@threads_option
@python_option
@trust_option
@click.option("--time", "time_s", type=Duration(), default="50s", help="Limit for each test.")
@click.option(
    "--count",
    type=click.IntRange(1, MAX_NUMBER),
    default=None,
    help="Executions of each test, at least: an executor may run many at once.",
)
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=None, help="The finding's if not given."
)
@click.option(
    "--schedule/--no-schedule",
    "schedule",
    default=None,
    help="Follow only the finding's recorded execution, or never follow it; without this option "
    "replay follows it first, then runs.",
)
@log_option
@click.option(
    "--model",
    "model_name",
    type=MODEL,
    default=None,
    help="Memory model; without this option the finding's where it was found, elsewhere the one "
    "that each configuration guarantees.",
)
@budget_option
@json_option
def replay(
    files: tuple[str, ...],
    executors: str | None,
    config_name: str | None,
    engine: str | None,
    threads: int | None,
    python: str | None,
    trust: bool,
    time_s: float,
    count: int | None,
    seed: int | None,
    schedule: bool | None,
    log_file: str | None,
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Run tests or findings, and compare observed with allowed outcomes.

    A finding runs as it was found, in a new process: its recorded execution, if it has
    one, then others until its forbidden outcome shows or the time is up. Code outside
    LitmusFuzz that its file names runs only if you name it too, or with --trust. Several
    executors do the same number of executions each, and their outcomes are compared.
    Several tests: one line each. `herd compare` and mcompare7 read the log that --log
    writes. Exits 1 if a forbidden outcome was seen, else 3 if that is undecided, as where one
    of the executors did not run.
    """
    from litmusfuzz.fuzz.commands.replay import DEFAULT_COUNT, ReplayOptions

    python = python_or_fail(python)
    entries = load_tests(files)  # all mistakes before any work
    chosen: list[list[tuple[str, Config]]] = []
    for file, entry in entries:
        named = found_on(entry, executors, config_name)
        if not (trust or config_name):
            check_trusted(file, entry, named, engine)
        chosen.append(executors_of(*named, engine, threads))
    several = len(chosen[0]) > 1
    if log_file is not None:
        if several:
            fail("--log: holds the outcomes of one executor")
        unique_names(((file, entry.test) for file, entry in entries), "--log")
        begin_log(log_file)
    if several and count is None and not schedule:
        count = DEFAULT_COUNT
    options = ReplayOptions(time_s, count, seed, schedule, keeps_partial=True)
    workers: dict[str, Worker] = {}
    done: list[Replays] = []
    refused: list[RefusedReplay] = []
    judged_by: list[str] = []
    asked = model_of(model_name) if model_name else None
    try:
        for (file, entry), on in zip(entries, chosen, strict=True):
            one = _Replaying(file, entry, options, budget, workers, python)
            for name, config in on:
                try:
                    one.run(name, config, asked)
                except KeyboardInterrupt:  # before it ran: what others have shown is kept
                    one.cut_short(name, config)
                if one.interrupted:
                    break
            if one.interrupted and not one.reports:
                raise KeyboardInterrupt
            if not one.reports and len(files) > 1:  # of one test it is a mistake of the command
                refused.append(one.refusal())
                if not as_json:
                    print_text(refused[-1].line())
                continue
            done.append(one.replays())
            if log_file is not None:
                write_log(entry.test, done[-1].reports[0].histogram, log_file)
            if not as_json:
                if len(files) > 1 and done[-1].judged_by != judged_by:
                    judged_by = done[-1].judged_by  # said again only where it is another
                    print_text("\n".join(judged_by))
                print_text(done[-1].text() if len(files) == 1 else done[-1].lines())
            if one.interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        whole = sum(not each.interrupted for each in done) + len(refused)
        complain(f"interrupted after {whole} of {counted(len(files), 'test')}")
    finally:
        for worker in workers.values():
            worker.close()
    if as_json:
        data = [*(each.as_json() for each in done), *(each.as_json() for each in refused)]
        begun = {each["file"] for each in data}
        data += ({"file": file, "interrupted": True} for file in files if file not in begun)
        print_json(data[0] if len(files) == 1 else data)
    codes = {each.exit_code for each in done}
    if len(done) < len(files):  # interrupted, or refused
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def found_on(entry: Entry, executors: str | None, config: str | None) -> tuple[str, str | None]:
    """The named executors and configuration; without them those of the finding."""
    found = entry.finding
    named = (found.executor if found else "tf") if executors is None else executors
    return named, config or (found.configuration if found and found.executor == named else None)


def check_trusted(file: str, entry: Entry, on: tuple[str, str | None], engine: str | None) -> None:
    """Refuse a configuration that the file alone names, and that loads code from outside.

    Parameters
    ----------
    file : str
    entry : Entry
    on : tuple of (str, str or None)
        The executor, and the file's configuration if it is to run.
    engine : str or None
        The engine of the command line, which runs in place of the file's.
    """
    from litmusfuzz.fuzz.executors.table import is_ours
    from litmusfuzz.fuzz.executors.trust import named_engine, outside_code

    named, config = on
    if entry.finding is None or config is None or (engine is not None and is_ours(named)):
        return
    if wants := outside_code(named, config):
        theirs = named_engine(config) if is_ours(named) else ""
        refuse_outside(file, wants, *([f"--engine {shlex.quote(theirs)}"] if theirs else []))


class _Replaying:
    """The replay of one test on one executor after another."""

    def __init__(
        self,
        file: str,
        entry: Entry,
        options: ReplayOptions,
        budget: int | None,
        workers: dict[str, Worker],
        python: str | None,
    ) -> None:
        self.file = file
        self.entry = entry
        self.options = options
        self.budget = budget
        self.workers = workers
        self.python = python
        self.reports: list[ReplayReport] = []
        self.interrupted = False
        self.not_run: dict[str, str] = {}
        self.explored: dict[str, tuple[Explorer, AllowedSet]] = {}

    def run(self, name: str, config: Config, asked: Model | None) -> None:
        """Run the test on one executor, which may refuse it.

        It is judged by the model that is `asked`, if there is one.
        """
        from litmusfuzz.fuzz.commands.explanation import broken_rules
        from litmusfuzz.fuzz.commands.replay import replay_entry
        from litmusfuzz.fuzz.executors.worker import Worker
        from litmusfuzz.fuzz.finding.judging_model import judging_model
        from litmusfuzz.oracles.errors import NoAllowedSet
        from litmusfuzz.reports.replays import ReplayReport, worst

        found = self.entry.finding
        judging = judging_model(name, config, asked=asked, finding=found)
        model = judging.model
        if model.name not in self.explored:
            try:
                explorer = explorer_of(self.entry.test, model, self.budget)
                self.explored[model.name] = explorer, explorer.allowed_outcomes()
            except NoAllowedSet as error:
                self.not_run[f"{name}/{config.name}"] = str(error)
                return
        explorer, allowed = self.explored[model.name]
        worker = self.workers.setdefault(name, Worker(name, python=self.python))
        if self.python and not worker.starts and (missing := _missing(worker, config)):
            self.not_run[f"{name}/{config.name}"] = missing
            return
        # Another executor's record is followed only when that is asked for.
        same = found is not None and (name, config.name) == (found.executor, found.configuration)
        options = (
            self.options if same else replace(self.options, schedule=bool(self.options.schedule))
        )
        result = replay_entry(self.entry, explorer, worker, config, options)
        self.interrupted = result.interrupted
        if result.problem:
            self.not_run[f"{name}/{config.name}"] = result.problem
            return
        assert result.judgement is not None
        histogram = result.judgement.histogram
        verdicts = {o: str(explorer.judge(o)) for o in histogram}
        rules: tuple[str, ...] | None = None
        weaker: tuple[str, ...] = ()
        if (wrong := worst(histogram, verdicts)) is not None and not wrong.torn:
            try:
                rules, weaker = broken_rules(self.entry.test, model, wrong)
            except KeyboardInterrupt:  # what it has shown is kept, without the reason
                self.interrupted = True
        report = ReplayReport(
            entry=self.entry,
            file=self.file,
            executor=name,
            config=config.name,
            model=model.name,
            judged_by=str(judging),
            histogram=histogram,
            verdicts=verdicts,
            allowed=tuple(allowed.witnesses),
            complete=allowed.complete,
            died=tuple(result.died),
            tracebacks=tuple(result.tracebacks),
            rules=rules,
            allowed_by=weaker,
            more="a larger --count" + " or --threads" * bool(dict(config.settings).get("engine")),
            seconds=result.seconds,
            schedule=result.schedule,
            drivers=result.drivers,
            interrupted=self.interrupted,
        )
        self.reports.append(report)

    def cut_short(self, name: str, config: Config) -> None:
        """An interruption has kept an executor from running."""
        self.interrupted = True
        self.not_run[f"{name}/{config.name}"] = INTERRUPTED

    def refusal(self) -> RefusedReplay:
        """The reasons why the test ran on no executor."""
        from litmusfuzz.reports.replays import RefusedReplay

        return RefusedReplay(self.entry.test.name, self.file, self.not_run)

    def replays(self) -> Replays:
        """The reports of all executors."""
        from litmusfuzz.reports.differential import DifferentialComparison
        from litmusfuzz.reports.replays import Replays

        if not self.reports:
            fail(f"{self.file}: {'; '.join(each_once([*self.not_run.values()]))}")
        reports = tuple(self.reports)
        shown = {outcome for report in reports for outcome in report.histogram}
        allowed = {outcome for report in reports for outcome in report.allowed}
        verdicts = {
            model: {outcome: str(explorer.judge(outcome)) for outcome in shown | allowed}
            for model, (explorer, _) in self.explored.items()
            if any(report.model == model for report in reports)
        }
        unseen = tuple(allowed - shown)
        comparison = DifferentialComparison(self.entry.test, reports, verdicts, unseen=unseen)
        cut_short = INTERRUPTED in self.not_run.values()
        return Replays(reports, self.not_run, comparison, cut_short)


def _missing(worker: Worker, config: Config) -> str:
    """Reason why an executor cannot run in another environment; "" if it can."""
    from litmusfuzz.fuzz.executors.worker import Died

    reply = worker.ask(messages.Request(config=config.name), timeout_s=60)
    if isinstance(reply, Died):
        return f"{worker.executor} does not start: {reply.message}"
    return f"{worker.executor}: {reply.unavailable}" if reply.unavailable else ""


def begin_log(path: str) -> None:
    """Empty a log; now, so that a place where nothing can be written is known before the work.

    A file that is no log is kept: a test or a finding, named by mistake or by a stranger's command.
    """
    if Path(path).is_file():
        with open(path, encoding="utf-8", errors="replace") as file:
            begin = file.read(1 << 16)
        if begin.strip() and not re.search(r"(?m)^Test ", begin):
            fail(f"--log: {path}: exists already, and is no log: move it away first")
    Path(path).write_text("", encoding="utf-8")


def write_log(test: LitmusTest, histogram: Mapping[Outcome, int], path: str) -> None:
    """Append the histogram of one test to a log, as litmus7 does."""
    from litmusfuzz.corpus.herd import condition_of, log

    with open(path, "a", encoding="utf-8") as file:
        file.write(log(test, histogram, condition_of(test), histogram=True))


def unique_names(tests: Iterable[tuple[str, LitmusTest]], what: str) -> None:
    """Refuse two files with tests of the same name."""
    files: dict[str, str] = {}
    for file, test in tests:
        if test.name in files:
            fail(f"{what}: {files[test.name]} and {file} both have the name {test.name}")
        files[test.name] = file
