"""What is asked of executors: a job, a task, and the slot of a worker that does them.

What is to be done with an executor is written as a *task*: a generator that yields jobs and is
sent their results, so that fuzzing and minimizing read as straight code while all workers stay
busy.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import Entry, Schedule, dumps
from litmusfuzz.fuzz.campaign.scripts import ScriptRun
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.worker import Died, Worker

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.dispatcher import CampaignExecutor
    from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
    from litmusfuzz.fuzz.executors.protocol import Choice, Config
    from litmusfuzz.reports.records import ExecutorState

RECORD_S: Final = 2.0
"""How long an execution that shows a finding is looked for, to be recorded."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request to an executor: run `test` at least `count` times.

    Without a test it asks whether the configuration can run here.

    `fresh` asks for a process that has run nothing before: a system under test
    may have damaged its own memory on an earlier test, and what it shows then
    is no finding on this one. With `wanted` an execution with one of these
    outcomes is recorded instead; with `choices` one is replayed.
    """

    test: LitmusTest | None
    count: int = 0
    noise: Noise = field(default=Noise())
    seed: int = 0
    fresh: bool = False
    wanted: tuple[Outcome, ...] = ()
    choices: tuple[Choice, ...] | None = None

    def request(self, config: Config) -> messages.Request:
        """As the worker takes it."""
        if self.test is None:
            return messages.Request(config=config.name)
        return messages.Request(
            test=dumps(Entry(self.test)),
            task="record" if self.wanted else "run" if self.choices is None else "replay",
            config=config.name,
            count=self.count,
            noise=asdict(self.noise),
            seed=self.seed,
            wanted=messages.rows(dict.fromkeys(self.wanted, 1)),
            choices=list(self.choices or ()),
            timeout_s=RECORD_S,
        )


Result = dict["Outcome", int] | Schedule | Died | messages.Reply
"""A histogram, or what was recorded; or why there is neither: the worker died,
refused, or found nothing to record."""
Task = Generator[Job | ScriptRun, Result, None]
"""Of a script there is no result: whoever started it asks it."""


@dataclass(slots=True)
class Slot:
    """A worker, and the task that it is busy with.

    `ran` counts the jobs of its present process, `counted` is what that has counted
    of itself, `checked` are the configurations that it is known to run.
    """

    worker: Worker
    executor: CampaignExecutor
    sampled: SampledConfiguration
    ran: int = 0
    counted: Mapping[str, float] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    seconds: float = 0.0
    """That the worker spent on its last job."""
    task: Task | None = None
    job: Job | None = None
    script: ScriptRun | None = None
    since: float = 0.0

    @property
    def state(self) -> ExecutorState:
        """What is reported of it."""
        return self.sampled.state

    @property
    def config(self) -> Config:
        """Its configuration."""
        return self.sampled.config

    @property
    def awaited(self) -> Worker | ScriptRun:
        """What its task waits for."""
        return self.script or self.worker

    def count(self, counters: Mapping[str, float]) -> None:
        """Take over what its process has counted since the last time."""
        new = {name: number - self.counted.get(name, 0) for name, number in counters.items()}
        self.state.count(new)
        self.counted = counters

    def move(self, sampled: SampledConfiguration) -> None:
        """Go on in another sampled."""
        if sampled.config.environment != self.config.environment:
            self.restarted()  # as the worker does, when it is asked
        self.sampled = sampled

    def restarted(self) -> None:
        """Begin with another process."""
        self.ran = 0
        self.counted = {}
        self.checked = set()
