"""For tests of your own executor: random litmus tests, and a check of its outcomes.

>>> from hypothesis import given
>>> from litmusfuzz import check, resource_graphs
>>> @given(resource_graphs())
... def test_my_executor_keeps_the_semantics(graph):
...     check(graph, MyExecutor())
"""

from __future__ import annotations

from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from hypothesis import currently_in_test_context, event, reject

from litmusfuzz.corpus.outcome import Outcome, Verdict
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.commands.explanation import Explanation, explain_violation
from litmusfuzz.fuzz.executors.protocol import Config, Executor, Histogram, Noise, Refused
from litmusfuzz.fuzz.finding.judge import NO_JUDGE, explorer_or_none, judge
from litmusfuzz.fuzz.finding.judging_model import judging_model
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.finding.judge import Judgement
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
    "Outcome",
    "Refused",
    "Undecided",
    "check",
    "resource_graphs",
]


class ForbiddenOutcome(AssertionError):
    """An executor showed an outcome that the memory model forbids.

    The text has the model that judged it, the outcome, the nearest allowed outcome, the reason, and
    the test as a file.
    """

    def __init__(
        self, test: LitmusTest, judgement: Judgement, judging: JudgingModel, on: str
    ) -> None:
        super().__init__(test, judgement, judging, on)
        self.test = test
        self.judgement = judgement
        self.judging = judging
        self.on = on

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
        head = f"{self.test.name}: {ops}"
        return "\n".join([head, *self.explanation.lines, "", dumps(Entry(self.test)).rstrip()])


class Undecided(Exception):
    """The oracle exceeded its budget: it is unknown whether the outcome is allowed."""


def check(
    test: LitmusTest,
    executor: Executor | type[Executor],
    *,
    config: Config | None = None,
    model: Model | None = None,
    count: int = 100,
    seed: int = 0,
    noise: Noise | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> Histogram:
    """Run a test on an executor, in this process, and judge its outcomes.

    Parameters
    ----------
    test : LitmusTest
    executor : Executor or its class
        With the members of `fuzz.executors.protocol.Executor`.
    config : Config, optional
        If not given, the executor's first.
    model : Model, optional
        Judges the outcomes; if not given, the one that the configuration guarantees.
    count : int
        Executions, at least.
    seed : int
        Determines all randomness of the executor.
    noise : Noise, optional
    budget : Budget
        Of the oracle, for each question.

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
    made = executor() if isinstance(executor, type) else executor
    chosen = config or made.configurations()[0]
    judging = judging_model(made.name, chosen, asked=model, asked_by="the argument `model`")
    try:
        oracle = explorer_or_none(test, judging.model, budget)
        if oracle is None:
            raise Undecided(f"{NO_JUDGE}, or the budget is too small")
        with closing(made.prepare(test, chosen)) as prepared:
            judgement = judge(oracle, prepared.run(count, noise or Noise(), seed))
        if judgement.forbidden:
            raise ForbiddenOutcome(test, judgement, judging, f"{made.name}/{chosen.name}")
        if unknown := judgement.verdicts.get(Verdict.UNKNOWN, 0):
            raise Undecided(f"{unknown} of {judgement.executions} executions: over the budget")
    except (Refused, Undecided) as error:
        if currently_in_test_context():
            event(f"{type(error).__name__}: {error}")
            reject()
        raise
    return judgement.histogram
