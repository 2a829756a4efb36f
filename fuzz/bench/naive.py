"""Runs graphs in a naive loop, in a process of its own: the baseline of the benchmark `campaign`.

Run as ``python -m litmusfuzz.fuzz.bench.naive``. It reads a `Task` in JSON, as one line, and
generates the graphs. Then it prints ``ready``, and waits for an empty line, so that several such
processes start their loops together. After its loop it prints a `Lap` in JSON.
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
    """A graph as a campaign has run it: fields of its event (`Executed`).

    Parameters
    ----------
    family : str
    index : int
        Number of the test in the campaign.
    variation : str
        `Variation` as text.
    run_seed : int
        Seed of the variation.
    count : int
        Executions in one session.
    """

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
    """Seconds of one loop over a task's graphs, elapsed and of processors, without generation."""

    elapsed_s: float
    cpu_s: float


def run_lap(task: Task, replies: IO[bytes], requests: IO[bytes]) -> Lap:
    """Run the graphs of a task, each in a session of its own, once `requests` has a line.

    The line ``ready`` in `replies` says that it waits for that.
    """
    from litmusfuzz.fuzz.executors.tensorflow.baselines import run_naively

    executor = executor_class("tf")
    damaging: frozenset[str] = getattr(executor, "damaging_ops", frozenset())
    config = configuration("tf", task.config)
    model = guaranteed("tf", config)
    tests: list[tuple[LitmusTest, Noise]] = []
    for graph in task.graphs:
        # As `campaign` makes its tests: from the same seeds with another support, or in another
        # order of the steps, it would be another test.
        support = support_of(executor.support, damaging, graph.index)
        test = generate(graph.family, task.seed, graph.index, support)
        variation = Variation.parse(graph.variation)
        test = varied(test, variation, graph.run_seed, model).test
        tests.append((test, Noise(copies=1, steps=graph.count)))
    # The first session of a process costs more; a worker's was before the campaign, too.
    run_naively(tests[0][0], config, Noise(copies=1, steps=1), 0)
    replies.write(b"ready\n")
    replies.flush()
    requests.readline()
    elapsed_s, cpu_s = time.perf_counter(), time.process_time()
    for number, (test, noise) in enumerate(tests):
        run_naively(test, config, noise, number)
    return Lap(elapsed_s=time.perf_counter() - elapsed_s, cpu_s=time.process_time() - cpu_s)


def main() -> None:
    """Read one task, run it, and print its lap."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    lap = run_lap(task, sys.stdout.buffer, sys.stdin.buffer)
    sys.stdout.buffer.write(msgspec.json.encode(lap) + b"\n")


if __name__ == "__main__":
    main()
