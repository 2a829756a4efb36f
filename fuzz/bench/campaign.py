"""Benchmark of campaigns: graph runs in a second, where the time goes, and a naive loop.

A *graph run* is one graph in one configuration, executed at least 16 times and judged. Each scope
is a short campaign without reductions, whose events are stored as those of `litmusfuzz run`. Right
after it, naive loops run the same graphs as often, in as many processes, and judge nothing: their
rate is the baseline, so that other load on the machine affects both alike.

Limits on rates and times hold on idle cores. So the figures are what the campaigns and generators
would have needed on those (`core_speed`); what was measured is in the note.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import psutil

from litmusfuzz.fuzz.bench.core_speed import CoreSpeed, tensorflow_idle_time_ratio, warm_loop_s
from litmusfuzz.fuzz.bench.naive import Lap, NaiveGraph, Task
from litmusfuzz.fuzz.bench.own_time import PARTS, Sampler
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.settings import SHALLOW_COUNT, Settings
from litmusfuzz.fuzz.executors.memory import COLLECTED_EVERY
from litmusfuzz.fuzz.executors.protocol import Noise, noise_text
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.finding.canonical import executor_class as executor_class_of
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, families_for, generate
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.bench import BenchReport, Figure
from litmusfuzz.reports.events import (
    CampaignStarted,
    Configured,
    Executed,
    Generated,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.reports.events import Event

NOISE: Final = Noise(copies=1, steps=SHALLOW_COUNT)
"""Of naive loops; a campaign executes as often."""
WORKERS: Final = 2
SEED: Final = 1
ROUNDS: Final = 5
"""An odd number. Who else uses the physical cores is a matter of chance: in single rounds of 30 s,
the rate relative to naive loops was 0.93 to 1.20."""
CAMPAIGN_S: Final = 18.0
"""Of each round. In 15 s a campaign has the same rate as in 30."""
ASKED: Final = ("generating", "judging", "storing")
"""Parts of the campaign's own process whose time has a limit."""
NOT_BLOCKING: Final = ("dag", "conditionals", "loops", "clusterable", "sparse")
"""Families without queues and critical sections."""
GENERATED: Final = 200
"""Graphs of each family whose generator is measured alone."""
BATCH: Final = 10
"""Graphs between two looks at the speed of the core."""
NOTED_EVERY_S: Final = 0.25
"""Between two looks at the processor time of the workers."""
MAX_NAIVE: Final = 1500
"""Graphs of one round that the naive loops run, at most: some fifteen seconds, as long as the
campaign, so that a moment in which the machine is fast or slow does not decide."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A configuration and families, with the least number of graph runs in a second.

    `naive` says that naive loops run the same graphs: no graph may block. With clusters the time is
    XLA's, so that the campaign, which also judges, cannot be as fast as they are.
    """

    title: str
    config: str
    families: tuple[str, ...]
    least: float
    naive: bool = False


SCOPES: Final = (
    Scope("plain, families that do not block", "plain", NOT_BLOCKING, 100.0, naive=True),
    Scope("plain, all families", "plain", (), 30.0),
    Scope("autocluster, dag", "autocluster", ("dag",), 10.0, naive=True),
    Scope("autocluster, all families", "autocluster", (), 6.0),
)


@dataclass(frozen=True, slots=True)
class Naive:
    """Naive loops: graph runs in a second, and processor time of one."""

    rate: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """What one campaign did.

    Parameters
    ----------
    runs : int
        Graph runs.
    ended, elapsed_s : float
        Monotonic time of its end, and the time from the start of its workers.
    working_s : float
        Seconds of its workers in building and running graphs.
    own_s : float
        Processor time of its own process.
    parts : mapping of str to float
        Of that, the share of each of its `PARTS`, 0 to 1.
    workers_s : float
        Processor time of its workers, those that crashed excepted.
    naive : Naive or None
        The naive loops on the same graphs.
    """

    runs: int
    ended: float
    elapsed_s: float
    working_s: float
    own_s: float
    parts: Mapping[str, float]
    workers_s: float
    naive: Naive | None = None

    @property
    def rate(self) -> float:
        """Graph runs in a second."""
        return self.runs / self.elapsed_s

    def share(self, speed: CoreSpeed) -> float:
        """Share of their full speed that the cores had."""
        return speed.share(self.ended - self.elapsed_s, self.ended)

    def idle_rate(self, speed: CoreSpeed) -> float:
        """Graph runs in a second on idle cores."""
        busy = self.runs * self.cpu_s / (self.elapsed_s * len(os.sched_getaffinity(0)))
        return self.rate / tensorflow_idle_time_ratio(self.share(speed), busy)

    @property
    def cpu_s(self) -> float:
        """Processor time of a graph run, of all processes."""
        return (self.own_s + self.workers_s) / self.runs


def one_round(scope: Scope, seed: int) -> Round:
    """A campaign, and the naive loops after it."""
    chosen = configuration("tf", scope.config)
    model = chosen.guarantees
    of = executor_class_of("tf", dict(chosen.settings), model)
    described = Configured("tf", chosen.name, model, model, of)
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as name, Store(Path(name), write=True) as store:
        options = CampaignStarted(
            command="bench",
            seed=seed,
            asked_s=CAMPAIGN_S,
            workers=WORKERS,
            families=dict.fromkeys(scope.families, 1.0),
            configurations=(described,),
            noise=noise_text(NOISE),
        )
        store.append(0, options)
        store.append(1, ShardPlanned(configurations={"tf": (scope.config,)}, workers=WORKERS))

        own_s = noted_at = 0.0
        processors_s: dict[int, float] = {}
        processes: dict[int, psutil.Process] = {}

        def write(added: Sequence[Event]) -> None:
            nonlocal own_s, noted_at
            if any(isinstance(event, ShardStarted) for event in added):
                own_s = time.process_time()
            # Asking the system takes longer than storing an event.
            elif isinstance(added[-1], ShardEnded) or time.monotonic() - noted_at > NOTED_EVERY_S:
                noted_at = time.monotonic()
                for slot in campaign.slots:
                    _note_processor_time(slot, processes, processors_s)
            store.append(1, *added)
            events.extend(added)

        settings = Settings(
            options,
            Path(name),
            (("tf", chosen),),
            CAMPAIGN_S,
            rounds_share=0.0,
            minimizing_share=0.0,
        )
        campaign = Engine(settings, write)
        with Sampler() as sampler:
            asyncio.run(campaign.run())
        ended = time.monotonic()
        own_s = time.process_time() - own_s
    executed = [e for e in events if isinstance(e, Executed) and e.executor == "tf"]
    generated = [e for e in events if isinstance(e, Generated)]
    judged = [e for e in executed if e.end == "judged"]
    counters: Counter[str] = Counter()
    for each in executed:
        counters.update(each.counters)
    naive = None
    if scope.naive:
        # In one process for all, a graph that damages memory would end the others.
        damaging: frozenset[str] = getattr(executor_class("tf"), "damaging_ops", frozenset())
        ops = {each.index: set(each.ops) for each in generated}
        safe = [e for e in judged if not damaging & ops[e.index]]
        graphs = [
            NaiveGraph(
                family=each.family,
                index=each.index,
                variation=each.variation,
                run_seed=each.run_seed,
                count=each.count,
            )
            for each in safe[:: -(-len(safe) // MAX_NAIVE) or 1]
        ]
        naive = run_naive(scope.config, seed, graphs) if graphs else None
    return Round(
        len(judged),
        ended,
        _elapsed_s(events),
        counters["building_s"] + counters["running_s"],
        own_s,
        {part: sampler.share(part) for part in PARTS},
        sum(processors_s.values()),
        naive,
    )


def _note_processor_time(
    slot: Slot, processes: dict[int, psutil.Process], processors_s: dict[int, float]
) -> None:
    """Note the processor time so far of a worker's process, by its ID."""
    pid = slot.worker.pid
    if pid is not None and not slot.canary:
        with suppress(psutil.NoSuchProcess):
            process = processes.get(pid) or processes.setdefault(pid, psutil.Process(pid))
            times = process.cpu_times()
            processors_s[pid] = times.user + times.system


def _elapsed_s(events: Sequence[Event]) -> float:
    """Seconds from the start of the workers to the end."""
    (started,) = (each for each in events if isinstance(each, ShardStarted))
    return events[-1].at - started.at


def run_naive(config: str, seed: int, graphs: Sequence[NaiveGraph]) -> Naive:
    """Run graphs in naive loops, in as many processes as a campaign has workers."""
    variables = os.environ | dict(configuration("tf", config).environment)
    with ExitStack() as stack:
        loops = []
        for number in range(WORKERS):
            part = list(graphs[number::WORKERS])
            task = Task(config=config, seed=seed, graphs=part)
            loop = subprocess.Popen(
                [sys.executable, "-P", "-m", "litmusfuzz.fuzz.bench.naive"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=variables,
            )
            stack.enter_context(loop)
            stack.callback(loop.kill)
            assert loop.stdin is not None
            assert loop.stdout is not None
            loop.stdin.write(msgspec.json.encode(task) + b"\n")
            loop.stdin.flush()
            loops.append((loop.stdin, loop.stdout))
        for _, replies in loops:
            assert replies.readline() == b"ready\n", "a naive loop has ended early"
        for requests, _ in loops:
            requests.write(b"\n")
            requests.flush()
        laps = [msgspec.json.decode(replies.readline(), type=Lap) for _, replies in loops]
    return Naive(
        len(graphs) / max(each.elapsed_s for each in laps),
        sum(each.cpu_s for each in laps) / len(graphs),
    )


def figures_of(scope: Scope, rounds: Sequence[Round], speed: CoreSpeed) -> list[Figure]:
    """Medians over the rounds of one scope."""

    def middle(value: Callable[[Round], float]) -> float:
        return statistics.median(map(value, rounds))

    def per_run_ms(value: Callable[[Round], float]) -> float:
        return 1000 * sum(map(value, rounds)) / max(1, sum(each.runs for each in rounds))

    def spent_s(each: Round, *parts: str) -> float:
        return each.own_s * sum(each.parts[part] for part in parts)

    def part_ms(part: str) -> float:
        return per_run_ms(lambda each: spent_s(each, part))

    whole = f"of {WORKERS} workers"
    shown = sorted(rounds, key=lambda each: each.idle_rate(speed))[len(rounds) // 2]
    figures = [
        Figure(
            f"{scope.title}: graph runs",
            shown.idle_rate(speed),
            "in a second",
            least=scope.least,
            note=f"{shown.rate:,.1f} measured, at {shown.share(speed):.0%} of the cores' full "
            "speed",
        )
    ]
    beside = [(each, each.naive) for each in rounds if each.naive]
    if beside:
        rate = statistics.median(naive.rate for _, naive in beside)
        cpu_ms = 1000 * statistics.median(naive.cpu_s for _, naive in beside)
        figures += [
            Figure(
                f"{scope.title}: relative to a naive loop",
                statistics.median(each.rate / naive.rate for each, naive in beside),
                "times",
                least=None if scope.config == "autocluster" else 1.0,
                note=f"that runs {rate:,.1f} in a second",
            ),
            Figure(
                f"{scope.title}: the same by processor time",
                statistics.median(naive.cpu_s / each.cpu_s for each, naive in beside),
                "times",
                note=f"{1000 * middle(lambda each: each.cpu_s):.1f} ms a graph run, of all "
                f"processes, against {cpu_ms:.1f}",
            ),
        ]
    figures += [
        Figure(
            f"{scope.title}: workers build and run graphs",
            middle(lambda each: each.working_s / (WORKERS * each.elapsed_s)),
            "%",
            least=0.75,
            note=f"{per_run_ms(lambda each: each.working_s):.1f} ms a graph run, {whole}",
        ),
        Figure(
            f"{scope.title}: generating, judging, storing",
            middle(lambda each: spent_s(each, *ASKED) / (WORKERS * each.elapsed_s)),
            "%",
            most=0.2,
            note="ms a graph run: " + ", ".join(f"{part} {part_ms(part):.2f}" for part in PARTS),
        ),
        Figure(
            f"{scope.title}: the process of the campaign, all in all",
            middle(lambda each: each.own_s / (WORKERS * each.elapsed_s)),
            "%",
            note=f"{per_run_ms(lambda each: each.own_s):.2f} ms a graph run",
        ),
    ]
    return figures


@dataclass(frozen=True, slots=True)
class GeneratorTime:
    """Processor time of generating some graphs of a family.

    Parameters
    ----------
    number : int
        Graphs that were made.
    batches : list of (float, float)
        Processor time of `BATCH` indices, and of the loop of `core_speed`, as the mean of one
        before and one after them; seconds.
    """

    number: int
    batches: list[tuple[float, float]]

    @property
    def measured_s(self) -> float:
        """Mean time of a graph."""
        return sum(taken for taken, _ in self.batches) / max(1, self.number)

    def corrected_s(self, speed: CoreSpeed) -> float:
        """The same on a core that nobody else uses, which suffers as much as the loop does."""
        full_s = speed.full_s()
        whole = sum(taken * min(1.0, full_s / loop) for taken, loop in self.batches)
        return whole / max(1, self.number)


def generator_time(family: str) -> GeneratorTime:
    """Generate `GENERATED` graphs of a family, as in the process of a campaign."""
    support = executor_class("tf").support
    generate(family, SEED, GENERATED, support)  # what the first one of a process costs
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECTED_EVERY)
    number, batches, before = 0, [], warm_loop_s()
    for first in range(0, GENERATED, BATCH):
        start = time.process_time()
        for index in range(first, min(first + BATCH, GENERATED)):
            with suppress(NotGenerated):
                generate(family, SEED, index, support)
                number += 1
        taken, after = time.process_time() - start, warm_loop_s()
        batches.append((taken, (before + after) / 2))
        before = after
    gc.set_threshold(*thresholds)
    return GeneratorTime(number, batches)


def generator_figure(family: str, times: Sequence[GeneratorTime], speed: CoreSpeed) -> Figure:
    """The median of some times of one generator."""
    measured = statistics.median(each.measured_s for each in times)
    return Figure(
        f"generating a graph of {family}",
        1000 * statistics.median(each.corrected_s(speed) for each in times),
        "ms",
        most=3.0,
        note=f"{1000 * measured:.2f} measured",
    )


def report(progress: Callable[[str], None]) -> BenchReport:
    """Run the whole benchmark.

    Parameters
    ----------
    progress : callable
        Receives the name of each part before it begins.
    """
    seeds = random.Random(SEED)
    families = families_for(executor_class("tf").support)
    generating = {name: list[GeneratorTime]() for name in families if FAMILIES[name].weight}
    rounds: dict[Scope, list[Round]] = {}
    with CoreSpeed() as speed:
        for scope in SCOPES:
            rounds[scope] = []
            for number in range(ROUNDS):
                progress(f"{scope.title}, {number + 1} of {ROUNDS}")
                rounds[scope].append(one_round(scope, seeds.getrandbits(31)))
            # A machine may be slow for minutes: so the generators run after each scope.
            progress("generators")
            for name, times in generating.items():
                times.append(generator_time(name))
    figures = [each for scope in SCOPES for each in figures_of(scope, rounds[scope], speed)]
    figures += [generator_figure(name, times, speed) for name, times in generating.items()]
    load = f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores"
    about = (
        f"Medians of {ROUNDS} campaigns of {CAMPAIGN_S:g} s, {WORKERS} workers each, noise "
        f"{noise_text(NOISE)}; nothing is minimized; {load}. Of generators: the median of "
        f"{len(SCOPES)} times, one after the campaigns of each kind.",
        "Graph runs in a second and times of generators are those of cores that nobody else uses, "
        "computed from what was measured (in the note) and the speed that the cores had: a fixed "
        f"loop takes {1000 * speed.full_s():.2f} ms at full speed, and took "
        f"{1000 * statistics.median(taken for _, taken in speed.samples):.2f} in the median of "
        f"{len(speed.samples):,} times beside the campaigns. All other figures are as measured.",
        "Shares are of the time of all workers. Naive loops: the same graphs, as they were run, in "
        "as many processes; each is built, executed as often by three callables, and its session "
        "closed, with the threads of TensorFlow's default, which spin. They omit graphs with ops "
        "that damage the memory of their process.",
    )
    return BenchReport(tuple(figures), about)
