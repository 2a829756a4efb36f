"""Items of the pytest plugin: one for each litmus test and executor."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import pytest

from litmusfuzz.corpus.builder import litmus as test_of
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.corpus.words import NotationError
from litmusfuzz.fuzz.campaign.preemption_bounds import switches_inside
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, carry_out, on_worker
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S
from litmusfuzz.fuzz.cli.campaigns import known_named
from litmusfuzz.fuzz.cli.common import MODEL, NOTATION, Duration, harmless
from litmusfuzz.fuzz.commands.explanation import explain_violation
from litmusfuzz.fuzz.commands.exploration import SearchOnWorker, WorkerDied
from litmusfuzz.fuzz.commands.judged_schedules import (
    OFF,
    Control,
    NotUnderControl,
    force_command,
    judged,
    no_schedules,
)
from litmusfuzz.fuzz.commands.replay import (
    DEFAULT_COUNT,
    ReplayOptions,
    ReplayResult,
    replay_entry,
)
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.executors.protocol import (
    LEVELS,
    Explores,
    Noise,
    Refused,
    Unavailable,
)
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding import canonical
from litmusfuzz.fuzz.finding.causes import may_show, symptom, symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain, needed_settings
from litmusfuzz.fuzz.finding.experiments import Verdict as Explanation
from litmusfuzz.fuzz.finding.experiments import check_look_alike
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, CachingOracle, explorer_or_none
from litmusfuzz.fuzz.finding.judging_model import UnknownGuarantee, guaranteed, judging_model
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.trials import Case, Experiment, Reason
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.tables import counted, each_once, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.commands.judged_schedules import JudgedSchedules
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
SCHEDULES: Final = "litmus-schedules"
"""Property of the report of a test that ran under control: its schedules, and whether all."""
UNCONTROLLED: Final = "litmus-uncontrolled"
"""Property of the report of a test that ran without control: why control does not reach it."""
RAN: Final = "litmus-executions"
"""Property of the report of a test that ran: the number of executions."""


class Failed(Exception):
    """A failed test; its text is all that pytest shows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Executions of a test, in a configuration; under control, its schedules."""

    config: Config
    judgement: Judgement
    schedules: JudgedSchedules | None = None


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
    control: Control
    named: frozenset[tuple[str, Config]] = frozenset()
    """Those of `executors` whose configuration is named: it is executed as it is, too."""
    notations: tuple[tuple[str, Entry], ...] = ()
    """Tests in the short notation, each with its text."""
    workers: dict[tuple[str, bool], Worker] = field(default_factory=dict)
    """By executor, and whether they run it under control."""
    unavailable: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why a configuration, by executor and name, cannot run under control here."""
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
        control: Mapping[str, str | int | None],
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
        explicit: set[tuple[str, Config]] = set()
        for part in named.split(","):
            name, _, config = part.strip().partition(":")
            try:
                executors.append((name, configuration(name, config or None)))
                guaranteed(*executors[-1])
            except (UnknownExecutor, UnknownGuarantee) as error:
                raise pytest.UsageError(harmless(f"--litmus-executors: {error}")) from None
            if config:
                explicit.add(executors[-1])
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
        return cls(
            executors=tuple(executors),
            patterns=tuple(patterns),
            model=judged_by,
            options=options,
            budget=states,
            known=findings,
            control=_control(control),
            named=frozenset(explicit),
            notations=tuple((text, _written(text)) for text in notations),
        )

    def wants(self, path: Path) -> bool:
        """True if a litmus file at this path is to be collected."""
        return not self.patterns or any(path.match(pattern) for pattern in self.patterns)

    def worker(self, name: str, config: Config) -> Worker:
        """The executor's process; under control it has another one, as it has other variables."""
        controlled = switches_inside(name, config) is not None
        return self.workers.setdefault((name, controlled), Worker(name))

    def known_on(self, executor: str, config: Config) -> KnownFindings:
        """The known findings that hold for the versions that an executor's process has."""
        if executor not in self.known_of:
            request = messages.Request(config=config.name)
            reply = asyncio.run(self.worker(executor, config).run(request, JOB_TIMEOUT_S))
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


def _control(given: Mapping[str, str | int | None]) -> Control:
    """How tests are executed under control, as options or a project's settings say.

    Raises
    ------
    pytest.UsageError
    """
    level, *numbers = given.items()
    fields: dict[str, Any] = {} if level[1] is None else {"level": level[1]}
    for name, value in numbers:
        try:
            fields |= {} if value is None else {name: int(value)}
        except ValueError:
            raise pytest.UsageError(f"litmus_{name}: no number: {value!r:.80}") from None
    try:
        return Control(**fields)
    except ValueError as error:
        raise pytest.UsageError(harmless(f"--litmus-{error}")) from None


def grouped(noted: Sequence[tuple[str, str]]) -> list[str]:
    """Reasons why tests ran without control, each once, with the tests."""
    tests: dict[str, list[str]] = {}
    for test, why in noted:
        tests.setdefault(why, []).append(test)
    return [
        f"{why}: {ids[0]}" + (f" and {counted(len(ids) - 1, 'more test')}" if ids[1:] else "")
        for why, ids in tests.items()
    ]


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
        self.why_uncontrolled = ""
        """Why the test ran without control, though it was to run under control."""
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
        explorer = explorer_or_none(self.test, self.model, self.litmus.budget)
        if explorer is None:
            raise Failed(f"{self.model.name}: {NO_JUDGE}")
        oracle = CachingOracle(explorer)
        if self.finding is None:
            self.run_test(oracle)
        else:
            self.run_finding(oracle, self.finding)

    def run_test(self, oracle: Oracle) -> None:
        """Run the test under control, and without where it is asked for, or control cannot be."""
        undecided, searched = "", None
        control = self.control()
        try:
            searched = control.of(executor_class(self.executor), self.executor_config)
            if searched is not None:
                undecided = self.confirm(partial(self.search, oracle, searched, control))
        except NotUnderControl as why:
            searched = None
            self.note_uncontrolled(str(why))
        as_named = (self.executor, self.executor_config) in self.litmus.named
        if searched is None or (as_named and searched != self.executor_config):
            as_it_is = partial(self.run, oracle, Entry(self.test), self.litmus.options)
            undecided = self.confirm(as_it_is) or undecided
        if undecided:
            pytest.skip(f"unknown: {undecided}")

    def confirm(self, run: Callable[[], Shown]) -> str:
        """Run the test, and again in a fresh process if an outcome is forbidden.

        The executor may have damaged its own memory on an earlier test; its outcomes are then no
        finding on this test. Returns why the result is undecided; "" if it is not.
        """
        shown = run()
        if forbidden := shown.judgement.forbidden:
            self.litmus.worker(self.executor, shown.config).close()
            again = run()
            last = again if again.judgement.forbidden else shown
            entries = [self.entry(symptom(o), last) for o, _ in last.judgement.forbidden]
            known = self.explained(last) if None in entries else entries[0]
            if again.judgement.forbidden:
                if known is not None:
                    self.known(again, known.why)
                raise Failed(self.failure_text(again))
            outcome, times = forbidden[0]
            unconfirmed = (
                f"{outcome} is forbidden, and was seen {times} times in "
                f"{shown.judgement.executions}, but not by a fresh process in "
                f"{again.judgement.executions}"
            )
            if known is None:
                pytest.skip(f"unconfirmed: {unconfirmed}")
            self.note(f"known: {unconfirmed}: {known.why}")
        return self.undecided(shown)

    # --- under control --------------------------------------------------------------------

    def control(self) -> Control:
        """How the test is executed under control: as its marker says, and else the options."""
        marker = self.get_closest_marker("litmus_control")
        if marker is None:
            return self.litmus.control
        level = dict(zip(("level",), marker.args, strict=False))
        try:
            return replace(self.litmus.control, **level, **marker.kwargs)
        except (TypeError, ValueError) as error:
            raise Failed(f"{self.nodeid}: marker litmus_control: {error}") from None

    def search(self, oracle: Oracle, config: Config, control: Control) -> Shown:
        """Execute the schedules of the test.

        Raises
        ------
        NotUnderControl
            With the reason.
        """
        here = self.executor, config.name
        if why := self.litmus.unavailable.get(here):
            raise NotUnderControl(why)
        worker = self.litmus.worker(self.executor, config)

        def begin(bound: int | None) -> SearchOnWorker:
            return SearchOnWorker(self.test, worker, config, bound)

        made = executor_class(self.executor)
        assert isinstance(made, Explores)  # it has made the configuration
        try:
            try:
                found = judged(oracle, begin, made, config, control)
            except WorkerDied:  # an earlier test may have damaged it: once more, in a fresh one
                found = judged(oracle, begin, made, config, control)
        except Unavailable as missing:
            self.litmus.unavailable[here] = str(missing)
            raise NotUnderControl(str(missing)) from None
        except Refused as refusal:
            raise NotUnderControl(no_schedules(refusal)) from None
        except WorkerDied as death:
            self.crashed(str(death), death.died, config)
        if not found.judgement.executions:
            raise NotUnderControl(found.explored.stopped)
        self.user_properties.append((RAN, found.judgement.executions))
        self.user_properties.append((SCHEDULES, harmless(found.extent)))
        return Shown(config, found.judgement, found)

    def note_uncontrolled(self, why: str) -> None:
        """Note why the test runs without control."""
        self.why_uncontrolled = harmless(f"{self.name}: {why}")
        self.user_properties.append((UNCONTROLLED, self.why_uncontrolled))

    def crashed(self, why: str, died: Died, config: Config) -> NoReturn:
        """Report that the process ends under control."""
        if entry := self.entry("timed out" if died.timed_out else "crashed", message=why):
            pytest.xfail(harmless(f"known: {why}: {entry.why}"))
        again = force_command(self.written, self.executor, config, self.model)
        head = f"{self.executor}/{config.name}: {why}"
        raise Failed("\n".join([head, *filter(None, [died.traceback]), f"  replay    {again}"]))

    # --- what is known ----------------------------------------------------------------------

    def entry(
        self, what: str, shown: Shown | None = None, message: str = ""
    ) -> KnownFinding | None:
        """The entry of the known-findings file that explains a symptom, if any."""
        config = self.executor_config if shown is None else shown.config
        settings = dict(config.settings)
        kind = canonical.executor_class(self.executor, settings, config.guarantees)
        entries = self.litmus.known_on(self.executor, config)
        keys = [""]
        if shown is not None and entries.entries:
            reason = explain(self.test, self.model, shown.judgement.forbidden[0][0])
            rules = reason.broken if reason else ()
            # Under control, a finding of any thread's chance shows, whatever it needs.
            needs = [{}, needed_settings(self.executor, settings)] if shown.schedules else [{}]
            keys = [
                canonical.key(
                    self.test,
                    kind="forbidden",
                    rules=rules,
                    executor_class=kind,
                    model=self.model,
                    settings=each,
                )
                for each in needs
            ]
        today = datetime.now(UTC).date()
        matching = (entries.match(each, self.test, what, kind, today, message) for each in keys)
        return next(filter(None, matching), None)

    def explained(self, shown: Shown) -> KnownFinding | None:
        """The known cause that explains what the test shows, if experiments say so.

        The test contains the cause's ops, and shows nothing without what the cause needs.
        """
        config, judgement = shown.config, shown.judgement
        symptoms = tuple(dict.fromkeys(symptom(outcome) for outcome, _ in judgement.forbidden))
        needs = beyond_plain(self.executor, config)
        causes = []
        here = self.litmus.known_on(self.executor, config)
        for each in here.causes(datetime.now(UTC).date()):
            case = each.cause.case if each.cause else None
            if case is None or case.executor != self.executor:
                continue
            case = case.beside(config)
            if case is None or not case.needs <= needs:
                continue
            if may_show(case.symptoms, symptoms) and contains(case.test, self.test, strict=False):
                causes.append((each, case))
        if not causes:
            return None
        found = Case(self.test, self.executor, config, self.model, Noise(), symptoms)
        control = Experiment(
            *(Reason.CONTROL, self.test, config.name, symptoms, None),
            *(judgement.executions, judgement.forbidden_count),
        )
        options = self.litmus.options
        checking = check_look_alike(
            found, [case for _, case in causes], control, options.count or DEFAULT_COUNT
        )
        run = on_worker(self.litmus.worker(self.executor, config), random.Random(0))
        budget = TrialBudget(options.time_s, oracle=self.litmus.budget)
        compared = asyncio.run(carry_out(checking, run, budget))
        return causes[0][0] if compared.verdict is Explanation.EXPLAINED else None

    def run_finding(self, oracle: Oracle, found: Finding) -> None:
        """Run a finding of this executor until it shows.

        First its schedules, at no coarser level than it was found at; then, unless they decide,
        executions until the time is over.
        """
        control = self.control()
        level = str(found.settings.get("control", ""))
        if level in LEVELS and control.level != OFF:
            control = replace(control, level=max(level, control.level, key=LEVELS.index))
        config = self.executor_config
        try:
            if (searched := control.of(executor_class(self.executor), config)) is not None:
                shown = self.search(oracle, searched, control)
                self.report_finding(found, shown)
                if level in LEVELS:
                    config = searched
                    if shown.schedules and not self.undecided(shown):
                        of = shown.schedules.extent
                        self.note(f"the finding did not show in {of}")
                        return
        except NotUnderControl as why:
            self.note_uncontrolled(str(why))
        options = ReplayOptions(self.litmus.options.time_s)
        shown = self.run(oracle, Entry(self.test, finding=found), options, config)
        self.report_finding(found, shown)
        if undecided := self.undecided(shown):
            pytest.skip(f"unknown: {undecided}")
        self.note(f"the finding did not show in {shown.judgement.executions} executions")

    def report_finding(self, found: Finding, shown: Shown) -> None:
        """Report what a finding shows, if anything: expected, or something else."""
        forbidden = shown.judgement.forbidden
        if not may_show(symptoms_of(found), [symptom(outcome) for outcome, _ in forbidden]):
            raise Failed(self.failure_text(shown))
        if forbidden:
            self.known(shown, "the file is a finding")

    def run(
        self, oracle: Oracle, entry: Entry, options: ReplayOptions, config: Config | None = None
    ) -> Shown:
        """The executions of a run; skips or fails if there are none."""
        config = config or self.executor_config
        worker = self.litmus.worker(self.executor, config)
        result = replay_entry(entry, oracle, worker, config, options)
        if result.refused:
            pytest.skip(harmless(f"{self.executor} refuses: {result.refused}"))
        if result.problem:
            raise Failed(result.problem)
        assert result.judgement is not None
        self.check_alive(result, result.judgement)
        self.user_properties.append((RAN, result.judgement.executions))
        return Shown(config, result.judgement)

    def check_alive(self, result: ReplayResult, judgement: Judgement) -> None:
        """Fail if the process died before it showed any outcome."""
        died = "; ".join(each_once(result.died))
        if judgement.executions:
            if died:
                self.note(f"the process died, and another went on: {died}")
            return
        if entry := self.entry("timed out" if result.hangs else "crashed", message=died):
            pytest.xfail(harmless(f"known: {died}: {entry.why}"))
        again = self.replay(self.executor_config)
        raise Failed("\n".join([f"{self.name}: {died}", *result.tracebacks, again]))

    def undecided(self, shown: Shown) -> str:
        """Why it is unknown whether all outcomes are allowed; "" if it is not.

        The oracle could not decide one of those that were seen, or not all schedules were executed.
        """
        judgement = shown.judgement
        if unknown := judgement.verdicts.get(Verdict.UNKNOWN, 0):
            return f"{unknown} of {judgement.executions} executions are over the oracle's budget"
        return shown.schedules.extent if shown.schedules and shown.schedules.undecided else ""

    def known(self, shown: Shown, why: str) -> NoReturn:
        """Report a known finding as an expected failure."""
        outcome, times = shown.judgement.forbidden[0]
        times_in = f"{times} times in {shown.judgement.executions}"
        pytest.xfail(harmless(f"known: {outcome}, {times_in}: {why}"))
        raise Failed(self.failure_text(shown))  # with --runxfail

    def note(self, text: str) -> None:
        """Note something about a test that passes."""
        self.user_properties.append((NOTE, harmless(text)))

    @property
    def written(self) -> str:
        """The file of the test, or its text in the short notation."""
        of = self.parent
        return of.text if isinstance(of, LitmusNotation) else os.path.relpath(self.path)

    def replay(self, config: Config) -> str:
        """The command that runs the test again."""
        on = shlex.quote(f"{self.executor}:{config.name}")
        file = shlex.quote(self.written)
        command = f"litmusfuzz replay {file} --executors {on} --model {self.model.name}"
        return f"  replay    {command}"

    def failure_text(self, shown: Shown) -> str:
        """A failure in words; the command that does it again last."""
        ops = " + ".join(node.op for node in self.test.named_nodes)
        on = f"{self.executor}/{shown.config.name}"
        lines = [f"{self.test.name}: {ops}"]
        lines += explain_violation(self.test, shown.judgement, self.judging, on).lines
        if self.why_uncontrolled:
            lines.append(f"  control   does not reach it: {self.why_uncontrolled}")
        if shown.schedules is None:
            return "\n".join([*lines, self.replay(shown.config)])
        lines += shown.schedules.lines(self.test)
        again = shown.schedules.command(self.written, self.model)
        return "\n".join([*lines, f"  replay    {again}"])

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
