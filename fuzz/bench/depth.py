"""Benchmark of `fuzz.campaign.depth`: distinct outcomes, and findings, in the same time.

A stated set of graphs is executed in two ways on TensorFlow: each 3,072 times, and by the rule of
campaigns, shallow first. The two take turns, a block of graphs at a time, and the rule gets as many
seconds for a block as the other took, so that other load on the machine affects both alike. The
seeds are those of the noise; the graphs are the same. Each finding of ``corpus/findings`` is also
executed in both ways, until it shows something forbidden.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.fuzz.campaign.campaign_executor import MOST_FAMILIES
from litmusfuzz.fuzz.campaign.depth import (
    GraphRun,
    Round,
    UnfinishedRun,
    WaitingRuns,
)
from litmusfuzz.fuzz.campaign.family_weights import FamilyWeights
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.sampler import SampledConfiguration
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET, shallow
from litmusfuzz.fuzz.campaign.target import Target
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.judge import CachingOracle, explorer_or_none, number_allowed
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, families_for, generate
from litmusfuzz.oracles.model import MODELS, RFC
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.judge import Oracle

GRAPHS: Final = 500
SEEDS: Final = 5
COUNT: Final = 3072
BLOCK: Final = 25
"""Graphs of one turn."""
GRAPHS_SEED: Final = 1
FINDING_S: Final = 10.0
"""For a finding that does not show, in each way."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph of the set, its oracle, and what is known of it before it runs."""

    test: LitmusTest
    oracle: Oracle
    allowed: int | None
    has_new_pair: bool


def graphs(number: int) -> list[Graph]:
    """The stated set: the first tests of all families with a weight, in turn.

    Those with ops that may damage memory are left out: a crash would cost one way more than the
    other.
    """
    made = executor_class("tf")
    damaging: frozenset[str] = getattr(made, "damaging_ops", frozenset())
    families = [name for name in families_for(made.support) if FAMILIES[name].weight]
    weights = FamilyWeights(dict.fromkeys(families, 1.0), learning=False)
    found: list[Graph] = []
    turn = 0
    while len(found) < number:
        family = families[turn % len(families)]
        index = turn // len(families) * MOST_FAMILIES + tuple(FAMILIES).index(family)
        turn += 1
        try:
            test = generate(family, GRAPHS_SEED, index, made.support)
        except NotGenerated:
            continue
        oracle = explorer_or_none(test, RFC, CAMPAIGN_BUDGET)
        if oracle is not None and not any(node.op in damaging for node in test.effects):
            allowed = number_allowed(oracle)
            found.append(Graph(test, CachingOracle(oracle), allowed, weights.new_pairs(test) > 0))
    return found


class Runner:
    """Runs jobs in one configuration of TensorFlow, in a worker."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.worker = Worker("tf")

    async def run(self, job: Job) -> tuple[Mapping[Outcome, int], float]:
        """The outcomes, none if the worker died or refused the test; and the seconds."""
        assert job.test is not None
        start = time.perf_counter()
        reply = await self.worker.run(job.request(self.config), JOB_TIMEOUT_S, job.test)
        seconds = time.perf_counter() - start
        if isinstance(reply, Died) or not reply.rows:
            return {}, seconds
        return messages.histogram(job.test, reply), seconds


@dataclass(frozen=True, slots=True)
class Reached:
    """Distinct allowed outcomes that each way reached, and the seconds of both."""

    fixed: int
    by_rule: int
    seconds: float


async def reach(runner: Runner, chosen: Sequence[Graph], seed: int) -> Reached:
    """Execute the graphs in both ways, in turns."""
    waiting = WaitingRuns()
    fixed = by_rule = 0
    total_s = 0.0
    sampled = SampledConfiguration(Target("tf", runner.config, RFC, ""))
    runs: list[GraphRun] = []
    tests: dict[int, tuple[LitmusTest, int]] = {}
    for first in range(0, len(chosen), BLOCK):
        budget_s = 0.0
        for number, graph in enumerate(chosen[first : first + BLOCK], first):
            seen, seconds = await runner.run(Job(graph.test, COUNT, Noise(), seed + number))
            budget_s += seconds
            run = GraphRun(graph.oracle, graph.allowed, has_new_pair=False)
            run.add(seen, seconds)
            fixed += run.reached
        total_s += budget_s
        for number, graph in enumerate(chosen[first : first + BLOCK], first):
            job = Job(graph.test, *shallow(Noise()), seed + number)
            seen, seconds = await runner.run(job)
            budget_s -= seconds
            run = GraphRun(graph.oracle, graph.allowed, graph.has_new_pair)
            run.add(seen, seconds)
            runs.append(run)
            tests[id(run)] = graph.test, number
            if run.earns_round:
                waiting.add(UnfinishedRun(None, sampled, None, run))  # type: ignore[arg-type]
        while budget_s > 0 and (unfinished := waiting.next((), budget_s)) is not None:
            waiting.remove(unfinished)
            run = unfinished.run
            test, number = tests[id(run)]
            before, unseen, rounds = run.reached, run.unseen, run.rounds
            job = Job(test, *run.next_round(Noise()), seed + len(chosen) * rounds + number)
            seen, seconds = await runner.run(job)
            budget_s -= seconds
            run.add(seen, seconds)
            waiting.add_time(sampled.title, seconds)
            waiting.add_round(rounds + 1, run.reached - before, unseen)
            if seen and run.earns_round:
                waiting.add(unfinished)
    by_rule = sum(run.reached for run in runs)
    return Reached(fixed, by_rule, total_s)


async def first_shown(runner: Runner, graph: Graph, seed: int, *, by_rule: bool) -> float | None:
    """Seconds until a graph shows something forbidden; None if it does not in time."""
    spent_s, number = 0.0, 0
    run = GraphRun(graph.oracle, None, has_new_pair=False)
    while spent_s < FINDING_S:
        further = Round(COUNT, Noise())
        if by_rule and number == 0:
            further = Round(*shallow(Noise()))
        elif by_rule:
            further = run.next_round(Noise())
        seen, seconds = await runner.run(Job(graph.test, *further, seed + number))
        spent_s, number = spent_s + seconds, number + 1
        if seen and run.add(seen, seconds).forbidden:
            return spent_s
    return None


async def findings(seeds: int, progress: Callable[[str], None]) -> list[Figure]:
    """For each finding that shows in both ways, the seconds until it does: the ratio of medians."""
    figures = []
    for path in sorted(Path(FOLDERS[1]).glob("*.yaml")):
        entry = load(path)
        found = entry.finding
        if found is None or found.executor != "tf" or not found.forbidden:
            continue
        try:
            config = configuration("tf", found.configuration)
        except UnknownExecutor:
            continue
        oracle = explorer_or_none(entry.test, MODELS[found.model], CAMPAIGN_BUDGET)
        if oracle is None:
            continue
        progress(f"finding {path.stem}")
        graph = Graph(entry.test, CachingOracle(oracle), None, has_new_pair=False)
        runner = Runner(config)
        took: dict[bool, list[float | None]] = defaultdict(list)
        try:
            for seed in range(seeds):
                for by_rule in (False, True):
                    shown = await first_shown(runner, graph, 1000 * seed, by_rule=by_rule)
                    took[by_rule].append(shown)
        finally:
            runner.worker.close()
        middle = {
            by_rule: statistics.median([FINDING_S if each is None else each for each in all_of])
            for by_rule, all_of in took.items()
        }
        shows = {by_rule: sum(each is not None for each in took[by_rule]) for by_rule in took}
        figures.append(
            Figure(
                f"finding {path.stem}: 3,072 executions at a time, relative to the rule",
                middle[False] / middle[True] if all(shows.values()) else None,
                "times",
                note=f"{1000 * middle[False]:.0f} and {1000 * middle[True]:.0f} ms, shown in "
                f"{shows[False]} and {shows[True]} of {seeds}",
            )
        )
    return figures


def report(
    progress: Callable[[str], None], number: int = GRAPHS, seeds: int = SEEDS
) -> BenchReport:
    """Run the benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    number : int
        Graphs of the set.
    seeds : int
    """
    progress(f"generating {number} graphs")
    chosen = graphs(number)

    async def run() -> tuple[list[Reached], list[Figure]]:
        reached = []
        for seed in range(seeds):
            progress(f"seed {seed + 1} of {seeds}")
            runner = Runner(configuration("tf"))
            try:
                reached.append(await reach(runner, chosen, 1_000_000 * seed))
            finally:
                runner.worker.close()
        return reached, await findings(seeds, progress)

    reached, of_findings = asyncio.run(run())
    figures = [
        Figure(
            f"distinct allowed outcomes of {number} graphs, relative to 3,072 executions of each",
            statistics.median(each.by_rule / each.fixed for each in reached),
            "times",
            least=1.0,
            note="; ".join(f"{each.by_rule:,} and {each.fixed:,}" for each in reached)
            + f", in {statistics.median(each.seconds for each in reached):.0f} s each",
        ),
        *of_findings,
    ]
    ratios = [each.value for each in of_findings if each.value is not None]
    if ratios:
        figures.append(
            Figure("all findings: median of these", statistics.median(ratios), "times", least=1.0)
        )
    about = (
        f"Medians of {seeds} seeds, TensorFlow's plain configuration; {number} graphs of all "
        "families in turn, without ops that may damage memory.",
    )
    return BenchReport(tuple(figures), about)
