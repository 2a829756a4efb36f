"""Settings of a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.tuning import MAX_REDUCTION_S, MINIMIZING_SHARE, ROUNDS_SHARE
from litmusfuzz.fuzz.executors.memory import SHARE
from litmusfuzz.fuzz.executors.protocol import Config, Noise, noise_named
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.worker import DEFAULT_MEMORY_BYTES
from litmusfuzz.fuzz.generators import FAMILIES, families_for
from litmusfuzz.fuzz.generators.seeds import Seeds
from litmusfuzz.oracles.explorer import Budget
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.events import Options

SHALLOW_COUNT: Final = 16
"""First executions of a test (`fuzz.campaign.depth`).

`litmusfuzz bench depth` (plain, 500 graphs, five seeds): 1.12 times as many outcomes as with 3,072
executions of each test, findings 2.01 times as soon; with 64 of those that cannot block it was 1.06
and 1.45, at another load. Generating, building and judging a graph in a pack takes 6 ms, an
execution 0.1 ms, or 15 ms if it blocks. On slow cores 64 halve the number of graphs.
"""
CAMPAIGN_BUDGET: Final = Budget(states=100_000, memory_bytes=1 << 28)
"""Of the oracle, for each question: a tenth of a second. A verdict takes some microseconds."""


@cache
def shallow(noise: Noise) -> tuple[int, Noise]:
    """Number of the first executions of a test, and their noise: one copy, built once."""
    return SHALLOW_COUNT, replace(noise, copies=1, steps=SHALLOW_COUNT)


def extra_minimizing_s(time_s: float) -> float:
    """Seconds, at most, that `run` adds at its end to minimize what it has found.

    A fifth of a short campaign's time; a worker that has nothing to minimize does nothing then.
    """
    return min(0.2 * time_s, 30.0 + 0.05 * time_s)


@dataclass(frozen=True)
class Settings:
    """Settings of a campaign in one process: its options, and what is this shard's own.

    Attributes
    ----------
    options : Options
    out : Path
        Folder for the files of findings; events name them relative to it.
    executors : tuple of (str, *Config)
        Each executor with its configurations; a test runs in one of them
        (`fuzz.campaign.sampler`). The canary is added.
    time_s : float
    budget : Budget
        Of the oracle.
    memory_bytes : int
        Limit for a worker.
    machine_share : float
        Part of the machine's memory that all workers together may use.
    first_index : int
        Number of each family's first test.
    suffix : str
        Ends the names of all files, so that several shards write into one folder.
    rounds_share : float
        Share of the time, at most, for further executions of tests that have earned them.
    minimizing_share : float
        Share of the time for minimizing findings; the rest is for new tests.
    extra_minimizing_s : float
        Seconds, at most, for minimizing findings after the time for new tests is over.
    keeps_partial : bool
        True if a finding is stored as small as it is when the time is over; else it stays in
        ``unreduced/`` for whoever resumes the campaign.
    reduction_s : float, optional
        Limit for one finding; if None, see `max_reduction_s`.
    """

    options: Options
    out: Path
    executors: tuple[tuple[str, *tuple[Config, ...]], ...] = ()
    time_s: float = 60.0
    budget: Budget = CAMPAIGN_BUDGET
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    machine_share: float = SHARE
    first_index: int = 0
    suffix: str = ""
    rounds_share: float = ROUNDS_SHARE
    minimizing_share: float = MINIMIZING_SHARE
    extra_minimizing_s: float = 0.0
    keeps_partial: bool = False
    reduction_s: float | None = None

    def check(self) -> None:
        """Check what the options name.

        Raises
        ------
        ValueError
            Naming what is unknown here, or a seed that is no litmus test.
        """
        for family in self.options.families:
            if family not in FAMILIES:
                raise ValueError(f"no family {family!r}")
        for op in self.options.deadly_ops:
            if op not in OPS:
                raise ValueError(f"no op {op!r}")
        if self.options.judge_by not in ("", *GUARANTEES):
            raise ValueError(f"no memory model {self.options.judge_by!r}")
        _ = self.noise, self.seeds

    @cached_property
    def model(self) -> Model | None:
        """Judges the outcomes; if None, the model that each configuration guarantees."""
        name = self.options.judge_by
        return GUARANTEES[name] if name else None

    @cached_property
    def noise(self) -> Noise:
        """Of executions."""
        text = self.options.noise
        return Noise() if text == "default" else noise_named(text, Noise())

    @cached_property
    def seeds(self) -> Seeds | None:
        """Tests that the family `mutations` makes others of."""
        return Seeds.of(self.options.seeds)

    @property
    def workers(self) -> int:
        """Processes for each executor; in an unattended campaign each has a shard of its own."""
        return 1 if self.options.unattended else self.options.workers

    @property
    def counted(self) -> bool:
        """True if a number of tests limits the campaign, and not time alone."""
        return self.options.tests is not None

    @property
    def first_executions(self) -> tuple[int, Noise]:
        """Number and noise of the first executions of a test."""
        count = self.options.count
        return shallow(self.noise) if count is None else (count, self.noise)

    @property
    def max_reduction_s(self) -> float:
        """Seconds, at most, in which the test of one finding is made smaller.

        If not set, a part of the campaign's time, but at least 20 s. Few findings need a fifth of
        that. The others compile each smaller test, or show rarely. All other steps of making a
        finding have limits that are parts of this; together they take no more than four times as
        long.
        """
        return self.reduction_s or max(MAX_REDUCTION_S, self.time_s / 24)

    def weight(self, family: str) -> float:
        """How often a family is generated before anything is found."""
        return self.options.families.get(family, FAMILIES[family].weight)

    def families_for_executor(self, executor: str) -> tuple[str, ...]:
        """Families that are generated for an executor."""
        taken = families_for(executor_class(executor).support)
        wanted = self.options.families or (name for name in taken if FAMILIES[name].weight)
        return tuple(name for name in wanted if name in taken)
