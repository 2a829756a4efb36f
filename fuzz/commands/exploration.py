"""Executes every schedule of a test on an executor under control.

Schedules with few preemptions come first (`litmusfuzz.fuzz.campaign.preemption_bounds`). So the
schedule of an outcome is one with the fewest.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import Entry, Finding, Schedule, plain_of
from litmusfuzz.fuzz.campaign.preemption_bounds import PORTION, bounds
from litmusfuzz.fuzz.campaign.tuning import HANG_TIMEOUT_S
from litmusfuzz.fuzz.commands.force_all import SPLIT
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise, Refused, Unavailable
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.finding_names import finding_name
from litmusfuzz.fuzz.finding.judge import listed
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import unsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.fuzz.executors.protocol import Config, Explored, Search
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.oracles.model import Model


ENOUGH: Final = "nothing more was wanted"
"""Why a search has stopped that has shown what it was for."""


@dataclass(frozen=True, slots=True)
class Found:
    """One schedule with an outcome: the first of the first search that has reached it."""

    events: tuple[Decision, ...]
    preemptions: int | None


@dataclass(slots=True)
class Exploration:
    """Result of the searches of one test.

    Parameters
    ----------
    problem : str
        Why the test was not run; "" if it was.
    found : dict of Outcome to Found
        By all searches.
    last : Explored or None
    bound : int or None
        Of the last search.
    within : int or None
        The largest bound within which all schedules were executed; None if there is none.
    stopped : str
        Why the last search has not executed all schedules within its bound; "" if it has.
    """

    problem: str = ""
    found: dict[Outcome, Found] = field(default_factory=dict)
    last: Explored | None = None
    bound: int | None = None
    within: int | None = None
    stopped: str = ""
    interrupted: bool = False
    seconds: float = 0.0


class WorkerDied(Exception):
    """The process of a search has ended, or was killed; the message is the cause."""

    def __init__(self, died: Died) -> None:
        super().__init__(died.message)
        self.died = died


class SearchOnWorker:
    """A search in a worker's process (`protocol.Search`)."""

    def __init__(
        self, test: LitmusTest, worker: Worker, config: Config, preemptions: int | None
    ) -> None:
        self._test, self._worker, self._config = test, worker, config
        self._preemptions = preemptions
        self._done = 0

    def go_on(self, executions: int) -> Explored:
        """Begin so many more executions, at most.

        Raises
        ------
        Refused, Unavailable
            If the worker does not execute the test in this configuration.
        Diverged
            If other events are enabled than after the same choices before.
        WorkerDied
        """
        request = request_of(self._test, self._config, self._preemptions, self._done, executions)
        reply = self._worker.ask(request, HANG_TIMEOUT_S, self._test)
        if isinstance(reply, Died):
            raise WorkerDied(reply)
        if reply.refused:
            raise Refused(reply.refused)
        if reply.unavailable:
            raise Unavailable(reply.unavailable)
        if reply.diverged:
            raise Diverged(reply.diverged)
        found = messages.explored(self._test, reply)
        self._done = found.executions
        return found


def explore(
    test: LitmusTest,
    worker: Worker,
    config: Config,
    limit: int,
    preemptions: int | None = None,
    progress: Callable[[str], None] = lambda part: None,
) -> Exploration:
    """Execute all schedules, or until Ctrl-C, or so many executions of a search.

    Parameters
    ----------
    limit : int
        Of the executions of each search.
    preemptions : int, optional
        The largest bound; without it the last search has none.
    progress : callable
        Receives a text that says how far it is.
    """
    start = time.monotonic()
    result = Exploration()
    try:
        search_all(
            result,
            lambda bound: SearchOnWorker(test, worker, config, bound),
            bounds(worker.executor, config, preemptions),
            limit,
            progress=progress,
        )
    except (Refused, Unavailable) as why:
        result.problem = f"{worker.executor}: {why}"
    except WorkerDied as death:
        result.stopped = f"the worker died: {death}"
    except KeyboardInterrupt:
        worker.close()  # it may still search
        result.interrupted, result.stopped = True, "interrupted"
    result.seconds = time.monotonic() - start
    return result


def search_all(
    result: Exploration,
    begin: Callable[[int | None], Search],
    within: Iterable[int | None],
    limit: int,
    *,
    enough: Callable[[Exploration], bool] = lambda result: False,
    progress: Callable[[str], None] = lambda part: None,
) -> None:
    """Carry out one search after another; what they have found until now is in the result.

    Parameters
    ----------
    result : Exploration
    begin : callable
        Returns a search with a bound on preemptions.
    within : iterable of int or None
        The bounds.
    limit : int
        Of the executions of each search.
    enough : callable
        True once nothing more is wanted. It is asked after each `PORTION` executions.
    progress : callable
        Receives a text that says how far it is.

    Raises
    ------
    Refused, Unavailable, WorkerDied
        As the searches do.
    """
    for bound in within:
        if bound is not None and result.last is not None and result.last.whole:
            continue  # no schedule has more; the last search only counts without repetition
        result.bound = bound
        _search(result, begin(bound), limit, enough, progress)
        if result.stopped:
            break
        if bound is not None:
            result.within = bound
        if enough(result):
            break


def _search(
    result: Exploration,
    search: Search,
    limit: int,
    enough: Callable[[Exploration], bool],
    progress: Callable[[str], None],
) -> None:
    """One search, with the bound of the result."""
    done = 0
    within = "" if result.bound is None else f", preemptions <= {result.bound}"
    while True:
        progress(f"{done:,} executions{within}")
        count = min(PORTION, limit - done)
        try:
            result.last = found = search.go_on(count)
        except Diverged as why:
            result.stopped = str(why)
            return
        for outcome, events in found.schedules.items():
            result.found.setdefault(outcome, Found(events, result.bound))
        # A search without an execution that could be read has an end as well.
        over = found.complete or found.executions < done + count
        if over or found.executions >= limit:
            if not found.complete:
                result.stopped = "an outcome could not be read" if over else f"cut off ({limit:,})"
            return
        if enough(result):
            result.stopped = ENOUGH
            return
        done = found.executions


def request_of(
    test: LitmusTest, config: Config, bound: int | None, done: int, count: int
) -> messages.Request:
    """The message to a worker: go on with a search."""
    return messages.Request(
        test=plain_of(test),
        task="explore",
        config=config.name,
        count=count,
        preemptions=bound,
        done=done,
    )


def why_unreached(
    test: LitmusTest, model: Model, outcomes: Iterable[Outcome]
) -> dict[Outcome, str]:
    """Allowed outcomes, each with the reason why no executor may show it, if there is one."""
    wanted = list(outcomes)
    whole = Explorer(test, unsplit(model), loosest=True)
    return {each: "" if whole.judge(each) is Verdict.ALLOWED else SPLIT for each in wanted}


def finding_entry(
    test: LitmusTest,
    worker: Worker,
    config: Config,
    model: Model,
    outcome: Outcome,
    explored: Exploration,
) -> Entry:
    """The file of a forbidden outcome: the test as it is, and the outcome's schedule."""
    reply = worker.ask(messages.Request(config=config.name), HANG_TIMEOUT_S)
    versions = reply.versions if isinstance(reply, messages.Reply) else {}
    counts = explored.last.histogram if explored.last else {}
    finding = Finding(
        executor=worker.executor,
        configuration=config.name,
        model=model.name,
        forbidden=((outcome, max(1, counts.get(outcome, 0))),),
        executions=max(1, sum(counts.values())),
        noise=asdict(Noise()),
        settings=dict(config.settings),
        versions=versions,
        seed=0,
        index=0,
        family="file",
        minimized=False,
        confirmed=False,
        schedule=Schedule(outcome, events=explored.found[outcome].events),
    )
    return Entry(
        test.titled(finding_name(test, outcome)), listed(test, model, DEFAULT_BUDGET), finding
    )
