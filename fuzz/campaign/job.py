"""A job: one request of a campaign to an executor, and what comes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Schedule, plain_of
from litmusfuzz.fuzz.campaign.settings import shallow
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Explored, Noise
from litmusfuzz.fuzz.executors.worker import Died

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Tests

NO_TIME: Final = "time"
"""Refusal of a job that is slow. Reports list it with the features that a configuration lacks."""
RUNNING_S: Final = "running_s"
"""Counter of an executor's seconds without building; not every executor has it."""


class SearchStep(NamedTuple):
    """A step of a search of all schedules: its bound on preemptions, and executions so far."""

    preemptions: int | None
    done: int


@dataclass(frozen=True, slots=True)
class Job:
    """One request to an executor: run `test` at least `count` times.

    Without a test, the job asks whether the configuration can run here.

    With `fresh`, the job runs in a new process: an executor may have damaged its own memory on an
    earlier test, and then its outcomes are no finding on this test. With `wanted`, an execution
    with one of these outcomes is recorded instead; with `recorded`, a recorded execution is
    repeated; with `search`, a search of all schedules goes on; with `scheduler`, that chooses the
    schedules. With `executor`, another executor of
    the same environment runs it instead of the worker's own. With `survives`, an exception of a
    traced system does not end the process.
    """

    test: LitmusTest | None
    count: int = 0
    noise: Noise = field(default=Noise())
    seed: int = 0
    fresh: bool = False
    wanted: tuple[Outcome, ...] = ()
    recorded: Schedule | None = None
    search: SearchStep | None = None
    scheduler: str = ""
    executor: str = ""
    survives: bool = False

    @property
    def explores(self) -> bool:
        """True if the result is an `Explored`."""
        return self.search is not None or bool(self.scheduler)

    @property
    def few(self) -> Job:
        """As many executions as a campaign begins with, in one copy.

        The job itself if it is so, or if it records or replays an execution.
        """
        if self.wanted or self.recorded or self.explores:
            return self
        count, noise = shallow(self.noise)
        return replace(self, count=min(count, max(self.count, 1)), noise=noise)

    def expected_s(self, few: Job, reply: messages.Reply) -> float:
        """Seconds that the job takes, estimated from the reply to a few of its executions.

        The worker must be new. Building, which may include compiling, takes longer with more
        copies; only running takes longer with more executions.
        """
        running_s = min(reply.seconds, reply.counters.get(RUNNING_S, reply.seconds))
        copies = max(1.0, self.noise.copies / few.noise.copies)
        return (reply.seconds - running_s) * copies + running_s * self.count / few.count

    def request(self, config: Config) -> messages.Request:
        """The message to the worker."""
        if self.test is None:
            return messages.Request(config=config.name)
        return messages.Request(
            test=plain_of(self.test),
            task=self._task,
            executor=self.executor,
            config=config.name,
            count=self.count,
            noise=asdict(self.noise),
            seed=self.seed,
            wanted=messages.rows(dict.fromkeys(self.wanted, 1)),
            choices=list(self.recorded.choices) if self.recorded else [],
            schedule=list(self.recorded.events) if self.recorded else [],
            preemptions=self.search.preemptions if self.search else None,
            done=self.search.done if self.search else 0,
            scheduler=self.scheduler,
            timeout_s=ATTEMPT_S,
            survives=self.survives,
        )

    @property
    def _task(self) -> messages.Task:
        if self.wanted:
            return "record"
        if self.scheduler:
            return "sample"
        if self.search:
            return "explore"
        if self.recorded:
            return "follow" if self.recorded.events else "replay"
        return "run"


Result = dict["Outcome", int] | Schedule | Explored | Died | messages.Reply
"""A histogram, a recorded execution, or what a search has found so far; or why there is none of
these: the worker died, refused the test, or found no execution to record."""


def is_slow(result: Result) -> bool:
    """True if a job was refused for lack of time."""
    return isinstance(result, messages.Reply) and result.refused.startswith(f"{NO_TIME} (")


def request_of(jobs: Sequence[Job], config: Config) -> messages.Request:
    """The message to the worker for a job, or a pack that differ in their tests and seeds only."""
    request = jobs[0].request(config)
    if len(jobs) == 1:
        return request
    pack = [messages.Packed(plain_of(job.test), job.seed) for job in jobs if job.test is not None]
    return structs.replace(request, test={}, seed=0, pack=pack)


def tests_of(jobs: Sequence[Job]) -> Tests:
    """The test of a job, or the tests of a pack, as a worker takes them."""
    if len(jobs) == 1:
        return jobs[0].test
    return tuple(job.test for job in jobs if job.test is not None)


class SentAhead(NamedTuple):
    """A job or a pack that was sent before the one before it had ended, and when."""

    jobs: Sequence[Job]
    request: messages.Request
    at: float

    def holds(self, jobs: Sequence[Job]) -> bool:
        """True if it is these jobs, the same objects."""
        return [id(each) for each in self.jobs] == [id(each) for each in jobs]
