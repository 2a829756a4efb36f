"""Runs campaigns in this process: their events, and the report that these fold into."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from campaign.counted import counted_clock
from msgspec.structs import asdict
from msgspec.structs import replace as with_changes

from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.campaign.configured import configured, spaces
from litmusfuzz.fuzz.campaign.earlier import Earlier
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.lanes import LANES
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT
from litmusfuzz.reports.events import (
    CampaignEnded,
    CampaignStarted,
    Continued,
    Event,
    Executed,
    FindingKind,
    Generated,
    ShardPlanned,
    WorkerDied,
    decode,
    encode,
)
from litmusfuzz.reports.fold import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.campaign.parts import Parts
    from litmusfuzz.fuzz.campaign.scheduler import Lane
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
    from litmusfuzz.reports.events import Executions
    from litmusfuzz.reports.report import Report, Share

Kind = TypeVar("Kind", bound=Event)
EARLIER, SHARD = 1, 2
TIMES = ("at", "seconds", "judging_s", "generating_s", "validating_s", "counters")
"""Fields of events that are not the same in two runs."""


@dataclass
class Run:
    """A campaign as one shard, and its events so far.

    Each event is encoded and decoded as a store does, and folded at once.
    """

    settings: Settings
    pending: Sequence[Entry] = ()
    suspects: Sequence[Entry] = ()
    known: Sequence[MinimizedFinding] = ()
    unconfirmed: Sequence[Entry] = ()
    lanes: Sequence[Callable[[Parts], Lane]] = LANES
    events: list[Event] = field(default_factory=list)
    campaign_ended: bool = False

    def __post_init__(self) -> None:
        self.fold = Fold()
        self.begun = False
        earlier = Earlier(self.known, self.pending, self.suspects, self.unconfirmed)
        self.campaign = Engine(self.settings, self.write, earlier, self.lanes)
        self.fold.apply(0, self._started())
        self.begun = True
        for event in self.events:
            self.fold.apply(SHARD, event)
        files = []
        for entry in (*self.pending, *self.suspects, *self.unconfirmed):
            executed = _executed(entry)
            self.fold.apply(EARLIER, executed)
            if entry not in self.unconfirmed:
                files.append(executed.unreduced or "")
        for entry in self.suspects:
            self.fold.apply(EARLIER, _died(entry))
        self.fold.apply(SHARD, ShardPlanned(configurations={}, minimizes=tuple(files)))

    def _started(self) -> CampaignStarted:
        settings = self.settings
        configurations = [
            configured(executor.name, each.config, settings.model)
            for executor in self.campaign.dispatcher.fuzzed
            for each in executor.sampler.configurations
        ]
        configurations += [
            configured(executor, config, settings.model)
            for executor, *configs in settings.executors
            for config in configs
            if config.name == PRODUCT
        ]
        return CampaignStarted(
            command="litmusfuzz run",
            **asdict(settings.options),
            configurations=tuple(configurations),
            spaces=spaces(configurations),
        )

    def write(self, events: Sequence[Event]) -> None:
        """Takes events."""
        for event in events:
            self.log(event)

    def log(self, event: Event) -> None:
        """Takes an event; a file that it names exists, and nothing comes after the end."""
        assert not self.ended, event
        for name in ("file", "unreduced"):
            file = getattr(event, name, None)
            assert file is None or self.path(file).is_file(), event
        self.events.append(event)
        if self.begun:
            self.fold.apply(SHARD, decode(encode(event)))

    @property
    def ended(self) -> bool:
        """True once the shard has ended."""
        return bool(self.events) and type(self.events[-1]).__name__ == "ShardEnded"

    def run(self, *, one_at_a_time: bool = False) -> Run:
        """Run it to its end, on a clock that its executions turn."""
        with counted_clock(one_at_a_time=one_at_a_time):
            asyncio.run(self.campaign.run())
        assert self.ended
        assert all(slot.worker.pid is None for slot in self.campaign.slots)
        return self

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of one kind."""
        return [each for each in self.events if isinstance(each, kind)]

    def seconds_of(self, wanted: Callable[[Executions], bool]) -> float:
        """What executions have taken, on the clock of the campaign, without judging them."""
        executions = (*self.of(Executed), *self.of(Continued))
        return sum(each.seconds for each in executions if wanted(each))

    def path(self, file: str) -> Path:
        """Path of a file that an event names."""
        return self.settings.out / file

    @property
    def report(self) -> Report:
        """The report at the end."""
        if not self.campaign_ended:
            self.fold.apply(0, CampaignEnded(spent_s=1.0))
            self.campaign_ended = True
        return self.fold.report(str(self.settings.out))

    @property
    def lines(self) -> dict[str, Share]:
        """The lines of the report by name of a configuration; of one executor only."""
        return {each.name.rpartition("/")[2]: each for each in self.report.by_config}

    def tests(self, executor: str) -> list[Executed]:
        """Tests that an executor ran, and did not refuse."""
        return [
            each
            for each in self.of(Executed)
            if each.executor == executor and not each.end.startswith("refused")
        ]

    @property
    def repeatable(self) -> list[bytes]:
        """The tests and their verdicts, without times, in the order of tests and executors."""
        chosen = [
            each for each in self.events if isinstance(each, Generated | Executed | Continued)
        ]
        return sorted(encode(without_times(each)) for each in chosen)


def without_times(event: Event) -> Event:
    names = {name for name in TIMES if name in type(event).__struct_fields__}
    nothing = {name: {} if name == "counters" else 0.0 for name in names}
    return with_changes(event, **nothing)


def _executed(entry: Entry) -> Executed:
    """The event of the earlier shard that has executed a pending test."""
    found = entry.finding
    assert found is not None
    return Executed(
        index=found.index,
        family=found.family,
        executor=found.executor,
        configuration=found.configuration,
        model=found.model,
        run_seed=found.run_seed or 0,
        count=found.executions,
        sha256="",
        verdicts={"forbidden": found.count, "allowed": found.executions - found.count},
        unreduced=f"unreduced/{entry.test.name}.yaml",
    )


def _died(entry: Entry) -> WorkerDied:
    """The crash of the process that has executed a suspect."""
    found = entry.finding
    assert found is not None
    return WorkerDied(
        kind=FindingKind.CRASHED,
        executor=found.executor,
        configuration=found.configuration,
        executor_class=found.executor,
        message="signal 6",
        file=f"crashed/{entry.test.name}.yaml",
        entry=dumps(entry),
        ops=(),
        suspects=((found.index, found.configuration),),
    )
