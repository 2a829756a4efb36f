"""Reduces a test that ends its process in one way: its configuration, and the test.

Like the reducer of tests, `smaller_crashes` yields candidates, and receives whether each ends its
process in that way. `litmusfuzz minimize` runs each in a fresh process. Those of an exception
(`fuzz.finding.worker_deaths.exception_of`) run one after another in a process that survives it,
there and in a campaign; a fresh process then has to end on the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from litmusfuzz.corpus.textfile import Entry
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.finding.configuration_reducer import simpler_configurations
from litmusfuzz.fuzz.finding.finding_names import name_for
from litmusfuzz.fuzz.finding.reducer import reduce
from litmusfuzz.fuzz.finding.renaming import normalized

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.job import Job
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.configuration_reducer import PutBack
    from litmusfuzz.reports.events import WorkerDied

T = TypeVar("T")


class Crash(NamedTuple):
    """A test, and a configuration of its executor in which it ends its process."""

    test: LitmusTest
    config: Config


@dataclass(frozen=True, slots=True)
class UnreducedCrash:
    """A test that a campaign's executor ended its process on by an exception, as it was executed.

    Parameters
    ----------
    executor : int
        Number of the campaign's executor.
    target : Target
    job : Job
    died : WorkerDied
    raised : str
        Type and place of the exception.
    """

    executor: int
    target: Target
    job: Job
    died: WorkerDied
    raised: str


@dataclass(slots=True)
class SmallestCrash:
    """The smallest form so far of a test that ends its process.

    Whether each setting was put back is `settings_tried`, and whether all was tried `complete`:
    the time may be up before. It is seen in the first execution of a run with the seed `place`,
    or in a later one, if that is None.
    """

    crash: Crash
    settings_tried: bool = False
    complete: bool = False
    place: int | None = None


def smaller_crashes(
    executor: str, smallest: SmallestCrash, put_back: PutBack, settings_end: float = inf
) -> Generator[Crash, bool, None]:
    """Candidates for the smallest form: first of the settings, then of the test, then of both.

    Each candidate that is accepted becomes the smallest form.

    Parameters
    ----------
    executor : str
    smallest : SmallestCrash
        Is changed.
    put_back : PutBack
    settings_end : float
        Time, on the clock of campaigns, after which no setting of the whole test is put back.
    """

    def configurations(end: float) -> Generator[Crash, bool, bool]:
        test, config = smallest.crash
        made = simpler_configurations(executor, config, put_back)
        return (yield from _tried(made, lambda each: Crash(test, each), smallest, end))

    smallest.settings_tried = yield from configurations(settings_end)
    test, config = smallest.crash
    yield from _tried(reduce(test), lambda each: Crash(each, config), smallest)
    smallest.settings_tried = yield from configurations(inf)  # a small test may need fewer
    test, config = smallest.crash
    renamed = Crash(normalized(test, "crashed"), config)
    if (yield renamed):
        smallest.crash = renamed
    smallest.complete = True


def _tried(
    candidates: Generator[T, bool, Any],
    crash_of: Callable[[T], Crash],
    smallest: SmallestCrash,
    end: float = inf,
) -> Generator[Crash, bool, bool]:
    """Yield candidates until there is none, or the time is up; False then."""
    try:
        candidate = next(candidates)
        while clock.now() < end:
            made = crash_of(candidate)
            if accepted := (yield made):
                smallest.crash = made
            candidate = candidates.send(accepted)
    except StopIteration:
        return True
    return False


def crash_entry(executor: str, crash: Crash, message: str) -> Entry:
    """The file of a reduced test that ends its process; its test has a name of its own."""
    test, config = crash
    about = f"{executor}/{config.name}: {message}"
    return Entry(test.titled(name_for("crashed", test), about))
