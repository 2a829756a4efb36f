"""For tests of your own executor: random litmus tests, and a check of its outcomes.

>>> from hypothesis import given
>>> from litmusfuzz import check, resource_graphs
>>> @given(resource_graphs())
... def test_my_executor_keeps_the_semantics(graph):
...     check(graph, MyExecutor())
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from hypothesis import currently_in_test_context, event, reject

from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.commands.explanation import Explanation, explain_violation
from litmusfuzz.fuzz.commands.judged_schedules import (
    SCHEDULES,
    Control,
    NotUnderControl,
    judged,
    no_schedules,
)
from litmusfuzz.fuzz.commands.runners import Here, OnWorker
from litmusfuzz.fuzz.executors.protocol import (
    LEVELS,
    Config,
    Executor,
    Explores,
    Histogram,
    Noise,
    Refused,
    Unavailable,
)
from litmusfuzz.fuzz.executors.table import names
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, CachingOracle, explorer_or_none, judge
from litmusfuzz.fuzz.finding.judging_model import judging_model
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.commands.judged_schedules import JudgedSchedules
    from litmusfuzz.fuzz.commands.runners import Runner
    from litmusfuzz.fuzz.finding.judge import Judgement, Oracle
    from litmusfuzz.fuzz.finding.judging_model import JudgingModel
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.oracles.model import Model

__all__ = [
    "EXECUTOR",
    "RFC",
    "Config",
    "Executor",
    "ForbiddenOutcome",
    "Histogram",
    "Noise",
    "NotControlled",
    "Outcome",
    "Refused",
    "Undecided",
    "check",
    "resource_graphs",
]


class NotControlled(UserWarning):
    """A test ran without control, because control does not reach it; says why."""


class ForbiddenOutcome(AssertionError):
    """An executor showed an outcome that the memory model forbids.

    The text has the model that judged it, the outcome, the nearest allowed outcome, the reason,
    under control the schedule, and the test as a file.
    """

    def __init__(
        self,
        test: LitmusTest,
        judgement: Judgement,
        judging: JudgingModel,
        on: str,
        schedules: JudgedSchedules | None = None,
        uncontrolled: str = "",
    ) -> None:
        super().__init__(test, judgement, judging, on, schedules, uncontrolled)
        self.test = test
        self.judgement = judgement
        self.judging = judging
        self.on = on
        self.schedules = schedules
        self.uncontrolled = uncontrolled

    @property
    def model(self) -> Model:
        """The memory model that forbids the outcome."""
        return self.judging.model

    @cached_property
    def explanation(self) -> Explanation:
        """The outcome, the nearest allowed outcome, and the reason.

        Computed when first used: it takes a second, and Hypothesis only shows its last example.
        """
        return explain_violation(self.test, self.judgement, self.judging, self.on)

    def __str__(self) -> str:
        ops = " + ".join(node.op for node in self.test.named_nodes)
        lines = [f"{self.test.name}: {ops}", *self.explanation.lines]
        if self.uncontrolled:
            lines.append(f"  control   does not reach it: {self.uncontrolled}")
        if self.schedules is not None:
            lines += self.schedules.lines(self.test)
            if self.schedules.executor in names() and self.model.name in GUARANTEES:
                command = self.schedules.command("FILE", self.model)
                lines.append(f"  replay    {command}   where FILE holds:")
        return "\n".join([*lines, "", dumps(Entry(self.test)).rstrip()])


class Undecided(Exception):
    """It is unknown whether all outcomes are allowed: a budget was exceeded.

    That of the oracle, or of the search of all schedules.
    """


def check(
    test: LitmusTest,
    executor: Executor | type[Executor] | str,
    *,
    config: Config | None = None,
    model: Model | None = None,
    count: int = 100,
    seed: int = 0,
    noise: Noise | None = None,
    budget: Budget = DEFAULT_BUDGET,
    control: str = LEVELS[0],
    schedules: int = SCHEDULES,
    preemptions: int | None = None,
) -> Histogram:
    """Run a test on an executor, and judge its outcomes.

    TensorFlow's schedules are executed under control, where that is possible: all of them, so that
    the result is the same each time. Where it is not possible, the test is executed as it is, and a
    warning says so (`NotControlled`).

    Parameters
    ----------
    test : LitmusTest
    executor : Executor or its class, or str
        With the members of `fuzz.executors.protocol.Executor`; it runs in this process. Or the name
        of one, as ``tf`` or ``tf:grappler``: it runs in a process of its own.
    config : Config, optional
        If not given, the executor's first. If given, or named, without control, the test is
        executed without control as well.
    model : Model, optional
        Judges the outcomes; if not given, the one that the configuration guarantees.
    count : int
        Executions without control, at least.
    seed : int
        Determines all randomness of the executor.
    noise : Noise, optional
    budget : Budget
        Of the oracle, for each question.
    control : str
        Level of control: ``ops``, ``locks``, ``pages`` or ``touches``; ``off`` for none.
    schedules : int
        Executions of each search of schedules, at most.
    preemptions : int, optional
        Only schedules with so few switches away from an op that could go on; None for all.

    Returns
    -------
    Histogram
        The outcomes, all of them allowed.

    Raises
    ------
    ForbiddenOutcome
        An `AssertionError`.
    UnknownGuarantee
        A `ValueError`: the configuration guarantees what is no memory model.
    Refused, Undecided
        Inside a test of Hypothesis the example is rejected instead, and counted in its statistics:
        a test that rejects nearly all examples fails.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    runner = _runner(executor, config)
    name = runner.executor.name
    judging = judging_model(name, runner.config, asked=model, asked_by="the argument `model`")
    settings = Control(control, schedules, preemptions)
    on = f"{name}/{runner.config.name}"
    found: Counter[Outcome] = Counter()
    uncontrolled = ""
    try:
        explorer = explorer_or_none(test, judging.model, budget)
        if explorer is None:
            raise Undecided(f"{NO_JUDGE}, or the budget is too small")
        oracle = CachingOracle(explorer)
        searched = None
        try:
            searched = settings.of(runner.executor, runner.config)
            if searched is not None:
                found.update(_searched(test, oracle, runner, searched, settings, judging))
        except NotUnderControl as why:
            searched, uncontrolled = None, str(why)
        if searched is None or (runner.named and searched != runner.config):
            judgement = judge(oracle, runner.run(test, count, noise or Noise(), seed))
            if uncontrolled:
                text = f"{on}: executed without control: {uncontrolled}"
                warnings.warn(text, NotControlled, stacklevel=2)
            if judgement.forbidden:
                raise ForbiddenOutcome(test, judgement, judging, on, uncontrolled=uncontrolled)
            _refuse_unknown(judgement)
            found.update(judgement.histogram)
    except (Refused, Undecided) as error:
        if currently_in_test_context():
            event(f"{type(error).__name__}: {error}")
            reject()
        raise
    return found


def _runner(executor: Executor | type[Executor] | str, config: Config | None) -> Runner:
    if isinstance(executor, str):
        return OnWorker(executor, config)
    return Here(executor() if isinstance(executor, type) else executor, config)


def _searched(
    test: LitmusTest,
    oracle: Oracle,
    runner: Runner,
    config: Config,
    control: Control,
    judging: JudgingModel,
) -> Histogram:
    """The outcomes of all schedules of a test.

    Raises
    ------
    NotUnderControl
        With the reason.
    ForbiddenOutcome, Undecided
    """
    __tracebackhide__ = True
    made = runner.executor
    assert isinstance(made, Explores)  # it has made the configuration
    try:
        with runner.searching(test, config) as begin:
            found = judged(oracle, begin, made, config, control)
    except Unavailable as missing:
        raise NotUnderControl(str(missing)) from None
    except Refused as refusal:
        raise NotUnderControl(no_schedules(refusal)) from None
    if not found.judgement.executions:
        raise NotUnderControl(found.explored.stopped)
    if found.judgement.forbidden:
        raise ForbiddenOutcome(test, found.judgement, judging, found.on, found)
    _refuse_unknown(found.judgement)
    if found.undecided:
        raise Undecided(found.extent)
    return found.judgement.histogram


def _refuse_unknown(judgement: Judgement) -> None:
    if unknown := judgement.verdicts.get(Verdict.UNKNOWN, 0):
        raise Undecided(f"{unknown} of {judgement.executions} executions: over the budget")
