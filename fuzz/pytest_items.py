"""Items of the pytest plugin: one for each litmus test and executor."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import pytest

from litmusfuzz.corpus.builder import litmus as test_of
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.corpus.words import NotationError
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, carry_out, on_worker
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S
from litmusfuzz.fuzz.cli.campaigns import known_named
from litmusfuzz.fuzz.cli.common import MODEL, NOTATION, Duration, harmless
from litmusfuzz.fuzz.commands.explanation import explain_violation
from litmusfuzz.fuzz.commands.replay import (
    DEFAULT_COUNT,
    ReplayOptions,
    ReplayResult,
    replay_entry,
)
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.canonical import executor_class, key
from litmusfuzz.fuzz.finding.causes import may_show, symptom, symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain
from litmusfuzz.fuzz.finding.experiments import Verdict as Explanation
from litmusfuzz.fuzz.finding.experiments import check_look_alike
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, explorer_or_none
from litmusfuzz.fuzz.finding.judging_model import UnknownGuarantee, guaranteed, judging_model
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.trials import Case, Experiment, Reason
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.tables import each_once, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding, KnownFindings
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.oracles.model import Model

NOTE: Final = "litmus"
"""Property of a test report that holds a note on a test that passed."""
EXECUTOR: Final = "litmus-executor"
"""Property of a test report that holds the executor and its configuration."""
JUDGED: Final = "litmus-model"
"""Property that names the memory model that judges a test, and says why it is that one."""
RAN: Final = "litmus-executions"
"""Property of the report of a test that ran: the number of executions."""


class Failed(Exception):
    """A failed test; its text is all that pytest shows."""


@dataclass(frozen=True, slots=True)
class Litmus:
    """The options, and the executors' processes, which all items share.

    Each worker of pytest-xdist has its own.
    """

    executors: tuple[tuple[str, Config], ...]
    patterns: tuple[str, ...]
    model: Model | None
    options: ReplayOptions
    budget: Budget
    known: KnownFindings
    notations: tuple[tuple[str, Entry], ...] = ()
    """Tests in the short notation, each with its text."""
    workers: dict[str, Worker] = field(default_factory=dict)
    known_of: dict[str, KnownFindings] = field(default_factory=dict)
    """By executor, those of `known` that hold for what its worker has imported."""

    @classmethod
    def from_options(
        cls,
        named: str,
        patterns: list[str],
        *,
        model: str | None,
        count: int,
        time: str,
        budget: int | None,
        known: Sequence[str],
        notations: Sequence[str],
        typed: frozenset[str] | None,
    ) -> Litmus:
        """The options of the command line or of a project's settings.

        Code outside LitmusFuzz runs only if the executor with its configuration is one of `typed`,
        which the user has named; None in a worker of pytest-xdist, whose controller has looked.

        Raises
        ------
        pytest.UsageError
            In one line.
        """
        executors: list[tuple[str, Config]] = []
        for part in named.split(","):
            name, _, config = part.strip().partition(":")
            try:
                executors.append((name, configuration(name, config or None)))
                guaranteed(*executors[-1])
            except (UnknownExecutor, UnknownGuarantee) as error:
                raise pytest.UsageError(harmless(f"--litmus-executors: {error}")) from None
            trusted = typed is None or part.strip() in typed
            wants = "" if trusted else outside_code(name, config)
            if wants:
                raise pytest.UsageError(
                    f"litmus_executors: the project's settings want to run {wants}; if you trust "
                    f"them, add --litmus-executors {shlex.quote(named)}"
                )
            if executors[-1] in executors[:-1]:
                raise pytest.UsageError(f"--litmus-executors: {part.strip()} stands twice")
        for option, number in (("count", count), ("budget", budget)):
            if number is not None and number < 1:
                raise pytest.UsageError(f"--litmus-{option}: at least 1, got {number}")
        try:
            judged_by = GUARANTEES[MODEL.convert(model, None, None)] if model is not None else None
        except click.BadParameter as error:
            raise pytest.UsageError(harmless(f"--litmus-model: {error.message}")) from None
        try:
            time_s = Duration().convert(time, None, None)
        except click.BadParameter as error:
            raise pytest.UsageError(f"--litmus-time: {error.message}") from None
        try:
            chosen = known_named(known, "--litmus-known")
            findings = chosen.load({name for name, _ in executors})
        except ValueError as error:
            about = "" if str(error).startswith("--") else "--litmus-known: "
            raise pytest.UsageError(harmless(f"{about}{error}")) from None
        options = ReplayOptions(time_s, count, seed=0, schedule=False)
        states = DEFAULT_BUDGET if budget is None else replace(DEFAULT_BUDGET, states=budget)
        written = tuple((text, _written(text)) for text in notations)
        return cls(tuple(executors), tuple(patterns), judged_by, options, states, findings, written)

    def wants(self, path: Path) -> bool:
        """True if a litmus file at this path is to be collected."""
        return not self.patterns or any(path.match(pattern) for pattern in self.patterns)

    def worker(self, name: str) -> Worker:
        """The executor's process."""
        return self.workers.setdefault(name, Worker(name))

    def known_on(self, executor: str, config: Config) -> KnownFindings:
        """The known findings that hold for the versions that an executor's process has."""
        if executor not in self.known_of:
            request = messages.Request(config=config.name)
            reply = asyncio.run(self.worker(executor).run(request, JOB_TIMEOUT_S))
            tested = {} if isinstance(reply, Died) else reply.versions
            self.known_of[executor] = self.known.of(tested)
        return self.known_of[executor]

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()


class LitmusFile(pytest.File):
    """A litmus file."""

    litmus: Litmus

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, litmus: Litmus) -> LitmusFile:
        """Make a file node below `parent`."""
        made: LitmusFile = cls.from_parent(parent, path=path)
        made.litmus = litmus
        return made

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each executor, in the order of the options."""
        try:
            entry = load(self.path)
        except FileError as error:
            raise self.CollectError(harmless(str(error))) from None
        yield from _items(self, entry, self.litmus)


def _items(parent: pytest.Collector, entry: Entry, litmus: Litmus) -> Iterator[LitmusItem]:
    """An item for each executor, in the order of the options."""
    for name, config in litmus.executors:
        item: LitmusItem = LitmusItem.from_parent(parent, name=f"{name}/{config.name}")
        item.set_up(entry, name, config, litmus)
        yield item


def _written(text: str) -> Entry:
    """The test in a short notation.

    Raises
    ------
    pytest.UsageError
        With the place of the mistake, and a caret under it.
    """
    try:
        return Entry(test_of(text, name=NOTATION, description=text))
    except NotationError as error:
        picture = "\n".join(f"  {harmless(line)}" for line in error.picture)
        raise pytest.UsageError(f"{harmless(f'{NOTATION}, {error}')}\n{picture}") from None
    except MalformedTest as error:
        raise pytest.UsageError(harmless(f"{NOTATION}: {error}")) from None


class LitmusNotation(pytest.Collector):
    """A test in the short notation."""

    entry: Entry
    litmus: Litmus
    text: str

    @classmethod
    def of(
        cls, parent: pytest.Collector, text: str, entry: Entry, litmus: Litmus
    ) -> LitmusNotation:
        """Make a node for a text below `parent`."""
        shown = one_line(text)
        made: LitmusNotation = cls.from_parent(parent, name=shown, nodeid=shown)
        made.entry, made.litmus, made.text = entry, litmus, text
        return made

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each executor, in the order of the options."""
        yield from _items(self, self.entry, self.litmus)


class LitmusItem(pytest.Item):
    """A litmus test on an executor; fails if an outcome is forbidden."""

    def set_up(self, entry: Entry, executor: str, config: Config, litmus: Litmus) -> None:
        """Set the test, its executor and its configuration."""
        self.test = entry.test
        self.executor = executor
        self.executor_config = config
        self.litmus = litmus
        self.user_properties.append((EXECUTOR, self.name))
        found = entry.finding
        self.finding = found if found and found.executor == executor else None
        self.judging = judging_model(
            executor, config, asked=litmus.model, asked_by="--litmus-model", finding=found
        )
        self.model = self.judging.model
        self.user_properties.append((JUDGED, str(self.judging)))

    def runtest(self) -> None:
        """Run the test; a finding of this executor is expected to fail."""
        try:
            unfold(self.test, self.model)
        except NoAllowedSet as why:  # no program order, or too large
            pytest.skip(f"not judged: {why}")
        oracle = explorer_or_none(self.test, self.model, self.litmus.budget)
        if oracle is None:
            raise Failed(f"{self.model.name}: {NO_JUDGE}")
        if self.finding is None:
            self.run_test(oracle)
        else:
            self.run_finding(oracle, self.finding)

    def run_test(self, oracle: Oracle) -> None:
        """Run the test, and again in a fresh process if an outcome is forbidden.

        The executor may have damaged its own memory on an earlier test; its outcomes are then no
        finding on this test.
        """
        judgement = self.run(oracle, Entry(self.test), self.litmus.options)
        if judgement.forbidden:
            self.litmus.worker(self.executor).close()
            again = self.run(oracle, Entry(self.test), self.litmus.options)
            shown = again if again.forbidden else judgement
            entries = [self.entry(symptom(outcome), shown) for outcome, _ in shown.forbidden]
            known = self.explained(shown) if None in entries else entries[0]
            if again.forbidden:
                if known is not None:
                    self.known(again, known.why)
                raise Failed(self.failure_text(again))
            outcome, times = judgement.forbidden[0]
            unconfirmed = (
                f"{outcome} is forbidden, and was seen {times} times in "
                f"{judgement.executions}, but not by a fresh process in {again.executions}"
            )
            if known is None:
                pytest.skip(f"unconfirmed: {unconfirmed}")
            self.note(f"known: {unconfirmed}: {known.why}")
        self.skip_if_undecided(judgement)

    def entry(
        self, what: str, judgement: Judgement | None = None, message: str = ""
    ) -> KnownFinding | None:
        """The entry of the known-findings file that explains a symptom, if any."""
        settings = dict(self.executor_config.settings)
        kind = executor_class(self.executor, settings, self.executor_config.guarantees)
        shown = ""
        entries = self.litmus.known_on(self.executor, self.executor_config)
        if judgement is not None and entries.entries:
            reason = explain(self.test, self.model, judgement.forbidden[0][0])
            rules = reason.broken if reason else ()
            shown = key(
                self.test, kind="forbidden", rules=rules, executor_class=kind, model=self.model
            )
        today = datetime.now(UTC).date()
        return entries.match(shown, self.test, what, kind, today, message)

    def explained(self, judgement: Judgement) -> KnownFinding | None:
        """The known cause that explains what the test shows, if experiments say so.

        The test contains the cause's ops, and shows nothing without what the cause needs.
        """
        config = self.executor_config
        symptoms = tuple(dict.fromkeys(symptom(outcome) for outcome, _ in judgement.forbidden))
        needs = beyond_plain(self.executor, config)
        causes = []
        here = self.litmus.known_on(self.executor, config)
        for each in here.causes(datetime.now(UTC).date()):
            case = each.cause.case if each.cause else None
            if case is None or case.executor != self.executor or not case.needs <= needs:
                continue
            if may_show(case.symptoms, symptoms) and contains(case.test, self.test, strict=False):
                causes.append((each, case))
        if not causes:
            return None
        shown = Case(self.test, self.executor, config, self.model, Noise(), symptoms)
        control = Experiment(
            *(Reason.CONTROL, self.test, config.name, symptoms, None),
            *(judgement.executions, judgement.forbidden_count),
        )
        options = self.litmus.options
        checking = check_look_alike(
            shown, [case for _, case in causes], control, options.count or DEFAULT_COUNT
        )
        run = on_worker(self.litmus.worker(self.executor), random.Random(0))
        budget = TrialBudget(options.time_s, oracle=self.litmus.budget)
        compared = asyncio.run(carry_out(checking, run, budget))
        return causes[0][0] if compared.verdict is Explanation.EXPLAINED else None

    def run_finding(self, oracle: Oracle, found: Finding) -> None:
        """Run a finding of this executor until it shows, or the time is over."""
        options = ReplayOptions(self.litmus.options.time_s)
        judgement = self.run(oracle, Entry(self.test, finding=found), options)
        shown = [symptom(outcome) for outcome, _ in judgement.forbidden]
        if not may_show(symptoms_of(found), shown):
            raise Failed(self.failure_text(judgement))
        if judgement.forbidden:
            self.known(judgement, "the file is a finding")
        self.skip_if_undecided(judgement)
        self.note(f"the finding did not show in {judgement.executions} executions")

    def run(self, oracle: Oracle, entry: Entry, options: ReplayOptions) -> Judgement:
        """The judgement of a run; skips or fails if there is none."""
        worker = self.litmus.worker(self.executor)
        result = replay_entry(entry, oracle, worker, self.executor_config, options)
        if result.refused:
            pytest.skip(harmless(f"{self.executor} refuses: {result.refused}"))
        if result.problem:
            raise Failed(result.problem)
        assert result.judgement is not None
        self.check_alive(result, result.judgement)
        self.user_properties.append((RAN, result.judgement.executions))
        return result.judgement

    def check_alive(self, result: ReplayResult, judgement: Judgement) -> None:
        """Fail if the process died before it showed any outcome."""
        died = "; ".join(each_once(result.died))
        if judgement.executions:
            if died:
                self.note(f"the process died, and another went on: {died}")
            return
        if entry := self.entry("timed out" if result.hangs else "crashed", message=died):
            pytest.xfail(harmless(f"known: {died}: {entry.why}"))
        raise Failed("\n".join([f"{self.name}: {died}", *result.tracebacks, self.replay]))

    def skip_if_undecided(self, judgement: Judgement) -> None:
        """Skip if the oracle could not decide an outcome."""
        if unknown := judgement.verdicts.get(Verdict.UNKNOWN, 0):
            total = judgement.executions
            pytest.skip(f"unknown: {unknown} of {total} executions are over the oracle's budget")

    def known(self, judgement: Judgement, why: str) -> NoReturn:
        """Report a known finding as an expected failure."""
        outcome, times = judgement.forbidden[0]
        times_in = f"{times} times in {judgement.executions}"
        pytest.xfail(harmless(f"known: {outcome}, {times_in}: {why}"))
        raise Failed(self.failure_text(judgement))  # with --runxfail

    def note(self, text: str) -> None:
        """Note something about a test that passes."""
        self.user_properties.append((NOTE, harmless(text)))

    @property
    def replay(self) -> str:
        """The command that runs the test again."""
        of = self.parent
        written = of.text if isinstance(of, LitmusNotation) else os.path.relpath(self.path)
        file = shlex.quote(written)
        config = shlex.quote(f"{self.executor}:{self.executor_config.name}")
        command = f"litmusfuzz replay {file} --executors {config} --model {self.model.name}"
        return f"  replay    {command}"

    def failure_text(self, judgement: Judgement) -> str:
        """A failure in words; the command that does it again last."""
        ops = " + ".join(node.op for node in self.test.named_nodes)
        lines = explain_violation(self.test, judgement, self.judging, self.name).lines
        return "\n".join([f"{self.test.name}: {ops}", *lines, self.replay])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of a failure instead of a traceback, where there is one."""
        if isinstance(excinfo.value, Failed):
            return harmless(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Location that pytest prints above a failure."""
        of = self.parent
        return (
            self.path,
            None,
            f"{of.name if isinstance(of, LitmusNotation) else self.path.name}::{self.name}",
        )
