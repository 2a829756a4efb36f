"""Jobs, tasks and worker slots of a campaign.

A *task* is a generator that yields jobs for one executor and receives their results, so that
fuzzing and minimizing read as straight code while all workers stay busy.
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
"""Seconds to look for an execution that shows a finding, in order to record it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request to an executor: run `test` at least `count` times.

    Without a test, the job asks whether the configuration can run here.

    With `fresh`, the job runs in a new process: an executor may have damaged its own memory on an
    earlier test, and then its outcomes are no finding on this test. With `wanted`, an execution
    with one of these outcomes is recorded instead; with `choices`, a recorded execution is
    replayed.
    """

    test: LitmusTest | None
    count: int = 0
    noise: Noise = field(default=Noise())
    seed: int = 0
    fresh: bool = False
    wanted: tuple[Outcome, ...] = ()
    choices: tuple[Choice, ...] | None = None

    def request(self, config: Config) -> messages.Request:
        """The message to the worker."""
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
"""A histogram, or a recorded execution; or why there is neither: the worker died, refused the
test, or found no execution to record."""
Task = Generator[Job | ScriptRun, Result, None]
"""A script run has no result: whoever started it asks the script."""


@dataclass(slots=True)
class Slot:
    """A worker process, and the task that it works on.

    Attributes
    ----------
    jobs_run : int
        Jobs of the present process.
    counters_seen : mapping of str to float
        The executor's counters at the last answer of the present process.
    checked : set of str
        Configurations that the worker is known to run.
    """

    worker: Worker
    executor: CampaignExecutor
    sampled: SampledConfiguration
    jobs_run: int = 0
    counters_seen: Mapping[str, float] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    seconds: float = 0.0
    """Seconds that the worker spent on its last job."""
    task: Task | None = None
    job: Job | None = None
    script: ScriptRun | None = None
    job_started: float = 0.0

    @property
    def state(self) -> ExecutorState:
        """The record's line for its configuration."""
        return self.sampled.state

    @property
    def config(self) -> Config:
        """Its present configuration."""
        return self.sampled.config

    @property
    def awaited(self) -> Worker | ScriptRun:
        """The process that its task waits for."""
        return self.script or self.worker

    def count(self, counters: Mapping[str, float]) -> None:
        """Add what its process has counted since the last answer."""
        new = {name: number - self.counters_seen.get(name, 0) for name, number in counters.items()}
        self.state.count(new)
        self.counters_seen = counters

    def switch_to(self, sampled: SampledConfiguration) -> None:
        """Continue in another configuration."""
        if sampled.config.environment != self.config.environment:
            self.note_restart()  # as the worker does, when it is asked
        self.sampled = sampled

    def note_restart(self) -> None:
        """Note that the worker has a new process."""
        self.jobs_run = 0
        self.counters_seen = {}
        self.checked = set()
