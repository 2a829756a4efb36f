"""`litmusfuzz bench`: speed and reach of LitmusFuzz itself, as ratios."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.reports.bench import BenchReport

from litmusfuzz.fuzz.cli.campaigns import given, known_findings, known_option
from litmusfuzz.fuzz.cli.common import (
    MAX_NUMBER,
    Duration,
    fail,
    json_option,
    print_report,
    progress_line,
)


@click.group(epilog="Example: litmusfuzz bench oracle --no-compare")
def bench() -> None:
    """Measure LitmusFuzz itself, as ratios to something slower."""


@bench.command("oracle", epilog="Example: litmusfuzz bench oracle --no-compare")
@click.option("--compare/--no-compare", default=True, help="Also run the reference oracle.")
@json_option
def bench_oracle(compare: bool, as_json: bool) -> None:
    """Measure how fast the explorer finds sets and verdicts, and how the time grows.

    Takes about two minutes, half of it the reference oracle.
    """
    from litmusfuzz.fuzz.bench.oracle import report

    _show_bench(partial(report, compare=compare), as_json)


@bench.command("native", epilog="Example: litmusfuzz bench native --json")
@click.option("--compare/--no-compare", default=True, help="Also run TensorFlow.")
@json_option
def bench_native(compare: bool, as_json: bool) -> None:
    """Measure the native executor, by engine and scheduler, against TensorFlow's.

    Takes half a minute on free cores.
    """
    from litmusfuzz.fuzz.bench.native import report

    _show_bench(partial(report, compare=compare), as_json)


@bench.command("clusters", epilog="Example: litmusfuzz bench clusters")
@json_option
def bench_clusters(as_json: bool) -> None:
    """Measure how fast clusters are chosen, validated and executed.

    Takes some seconds.
    """
    from litmusfuzz.fuzz.bench.clusters import report

    _show_bench(report, as_json)


@bench.command("jax", epilog="Example: litmusfuzz bench jax --json")
@json_option
def bench_jax(as_json: bool) -> None:
    """Measure how many programs over JAX's references run in a second.

    Takes about half a minute.
    """
    from litmusfuzz.fuzz.bench.references import report

    _show_bench(report, as_json)


@bench.command("tensorflow", epilog="Example: litmusfuzz bench tensorflow")
@json_option
def bench_tensorflow(as_json: bool) -> None:
    """Measure how fast campaigns on TensorFlow are, and how much they reach.

    Takes about two minutes.
    """
    from litmusfuzz.fuzz.bench.tensorflow import report

    _show_bench(report, as_json)


@bench.command(
    "campaign",
    epilog="Example: litmusfuzz bench campaign --all-configurations 10m --known known.yaml",
)
@click.option(
    "--all-configurations",
    "seconds",
    type=Duration(),
    default=None,
    help="Measure instead one campaign of that length on all configurations.",
)
@known_option
@json_option
def bench_campaign(seconds: float | None, known_given: KnownOption, as_json: bool) -> None:
    """Measure graph runs in a second, and where the time of a campaign goes.

    Takes about four minutes on two free cores, or as long as --all-configurations says.
    """
    from litmusfuzz.fuzz.bench import all_configurations
    from litmusfuzz.fuzz.bench.campaign import report

    if seconds is None:
        if given("known_given"):
            fail("--known: only with --all-configurations")
        _show_bench(report, as_json)
        return
    known_findings(known_given, {"tf"})  # a mistake in it is reported at once
    report = partial(all_configurations.report, seconds=seconds, known=known_given.values)
    _show_bench(report, as_json)


@bench.command("control", epilog="Example: litmusfuzz bench control")
@json_option
def bench_control(as_json: bool) -> None:
    """Measure schedules of TensorFlow's ops a second, against executions without control.

    Takes about half a minute.
    """
    from litmusfuzz.fuzz.bench.control import report

    _show_bench(report, as_json)


@bench.command("engines", epilog="Example: litmusfuzz bench engines --json")
@json_option
def bench_engines(as_json: bool) -> None:
    """Measure TensorFlow's ops a second on each engine, against TensorFlow's own pool.

    Takes about half a minute.
    """
    from litmusfuzz.fuzz.bench.engines import report

    _show_bench(report, as_json)


@bench.command("depth", epilog="Example: litmusfuzz bench depth --graphs 100 --seeds 3")
@click.option("--graphs", type=click.IntRange(1, MAX_NUMBER), default=500, show_default=True)
@click.option("--seeds", type=click.IntRange(1, MAX_NUMBER), default=5, show_default=True)
@json_option
def bench_depth(graphs: int, seeds: int, as_json: bool) -> None:
    """Measure how much campaigns reach by few executions first, against many of each graph.

    Takes an hour; with 100 graphs and one seed, three minutes.
    """
    from litmusfuzz.fuzz.bench.depth import report

    _show_bench(partial(report, number=graphs, seeds=seeds), as_json)


@bench.command("check", epilog="Example: litmusfuzz bench check --json")
@json_option
def bench_check(as_json: bool) -> None:
    """Measure how long `check` takes by the size of a program, and the memory.

    Takes about a minute.
    """
    from litmusfuzz.fuzz.bench.program_check import report

    _show_bench(report, as_json)


@bench.command("workers", epilog="Example: litmusfuzz bench workers --json")
@json_option
def bench_workers(as_json: bool) -> None:
    """Measure how long a new worker takes to answer, forked and spawned.

    Takes about a minute.
    """
    from litmusfuzz.fuzz.bench.workers import report

    _show_bench(report, as_json)


def _show_bench(report: Callable[[Callable[[str], None]], BenchReport], as_json: bool) -> None:
    with progress_line() as progress:
        measured = report(progress)
    print_report(measured, as_json=as_json)
