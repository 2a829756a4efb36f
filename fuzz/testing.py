"""For tests of your own: random graphs, and a judge of what an executor of yours shows.

>>> from hypothesis import given
>>> from litmusfuzz.fuzz.testing import check, resource_graphs
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
from litmusfuzz.fuzz.campaign.explanation import Explanation, told
from litmusfuzz.fuzz.campaign.judge import NO_JUDGE, explorer_or_none, judge
from litmusfuzz.fuzz.executors.protocol import Config, Executor, Histogram, Noise, Refused
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.judge import Judgement
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
    """An executor showed what the memory model forbids.

    Its text has the outcome, the nearest allowed one, the reason, and the graph as a file.
    """

    def __init__(self, test: LitmusTest, judgement: Judgement, model: Model, on: str) -> None:
        super().__init__(test, judgement, model, on)
        self.test = test
        self.judgement = judgement
        self.model = model
        self.on = on

    @cached_property
    def told(self) -> Explanation:
        """The outcome, the nearest allowed one, and the reason.

        A reason takes a second, and Hypothesis only shows the last of its examples.
        """
        return told(self.test, self.judgement, self.model, self.on)

    def __str__(self) -> str:
        ops = " + ".join(node.op for node in self.test.effects)
        head = f"{self.test.name}: {ops}"
        return "\n".join([head, *self.told.lines, "", dumps(Entry(self.test)).rstrip()])


class Undecided(Exception):
    """The oracle ran out of its budget: whether the outcome is allowed is not known."""


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
    """Run a graph on an executor, in this process, and judge all that it shows.

    Parameters
    ----------
    test : LitmusTest
    executor : Executor or its class
        With the members of `fuzz.executors.protocol.Executor`.
    config : Config, optional
        Its first if not given.
    model : Model, optional
        `RFC` or `EXECUTOR`; what the configuration promises if not given.
    count : int
        Executions, at least.
    seed : int
        All randomness of the executor comes from it.
    noise : Noise, optional
    budget : Budget
        Of the oracle, for each question.

    Returns
    -------
    Histogram
        What it showed, all of it allowed.

    Raises
    ------
    ForbiddenOutcome
        An `AssertionError`.
    Refused, Undecided
        Inside a test of Hypothesis the graph is rejected instead, and counted among
        its statistics: a test that rejects nearly all graphs fails.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    made = executor() if isinstance(executor, type) else executor
    chosen = config or made.configurations()[0]
    judged_by = model or GUARANTEES[chosen.guarantees]
    try:
        oracle = explorer_or_none(test, judged_by, budget)
        if oracle is None:
            raise Undecided(f"{NO_JUDGE}, or the budget is too small")
        with closing(made.prepare(test, chosen)) as prepared:
            judgement = judge(oracle, prepared.run(count, noise or Noise(), seed))
        if judgement.forbidden:
            raise ForbiddenOutcome(test, judgement, judged_by, f"{made.name}/{chosen.name}")
        if unknown := judgement.verdicts.get(Verdict.UNKNOWN, 0):
            raise Undecided(f"{unknown} of {judgement.executions} executions: over the budget")
    except (Refused, Undecided) as error:
        if currently_in_test_context():
            event(f"{type(error).__name__}: {error}")
            reject()
        raise
    return judgement.histogram
