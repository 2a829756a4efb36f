"""Runs graphs in a naive loop, in a process of its own: the baseline of the benchmark `campaign`.

Run as ``python -m litmusfuzz.fuzz.bench.naive``. Its input are two lines: a `Task` in JSON, and,
once it has answered that it is ready, an empty one to start. Then it prints a `Lap`.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from litmusfuzz.fuzz.campaign.campaign_executor import support_of
from litmusfuzz.fuzz.campaign.variation import Variation, varied
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.finding.judging_model import guaranteed
from litmusfuzz.fuzz.generators import generate

if TYPE_CHECKING:
    from typing import IO

    from litmusfuzz.corpus.model import LitmusTest


class NaiveGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph as a campaign has run it: fields of its event (`Executed`)."""

    family: str
    index: int
    variation: str
    run_seed: int
    count: int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The graphs to run.

    Parameters
    ----------
    config : str
        Configuration of the executor `tf`.
    seed : int
        Of the campaign that has run the graphs.
    graphs : list of NaiveGraph
    """

    config: str
    seed: int
    graphs: list[NaiveGraph]


class Lap(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that the graphs took, elapsed and of processors; generating them does not count."""

    elapsed_s: float
    cpu_s: float


def lap(task: Task, ready: IO[bytes], start: IO[bytes]) -> Lap:
    """Run the graphs of a task, each in a session of its own."""
    from litmusfuzz.fuzz.executors.tensorflow.baselines import run_naively

    made = executor_class("tf")
    damaging: frozenset[str] = getattr(made, "damaging_ops", frozenset())
    config = configuration("tf", task.config)
    model = guaranteed("tf", config)
    tests: list[tuple[LitmusTest, Noise]] = []
    for graph in task.graphs:
        support = support_of(made.support, damaging, graph.index)
        test = generate(graph.family, task.seed, graph.index, support)
        how = Variation.parse(graph.variation)
        test = varied(test, how, graph.run_seed, model).test
        tests.append((test, Noise(copies=1, steps=graph.count)))
    run_naively(tests[0][0], config, Noise(copies=1, steps=1), 0)  # what a first session costs
    ready.write(b"ready\n")
    ready.flush()
    start.readline()
    elapsed_s, cpu_s = time.perf_counter(), time.process_time()
    for number, (test, noise) in enumerate(tests):
        run_naively(test, config, noise, number)
    return Lap(elapsed_s=time.perf_counter() - elapsed_s, cpu_s=time.process_time() - cpu_s)


def main() -> None:
    """Run one task."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    found = lap(task, sys.stdout.buffer, sys.stdin.buffer)
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()
