"""`litmusfuzz bench`: speed and reach of LitmusFuzz itself, as ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from litmusfuzz.reports.bench import BenchReport
    from litmusfuzz.reports.clusters import ClustersReport
    from litmusfuzz.reports.speed import SpeedReport
    from litmusfuzz.reports.targets import TargetsReport

from litmusfuzz.fuzz.cli.common import json_option, print_json, progress_line


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

    with progress_line() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("native", epilog="Example: litmusfuzz bench native --json")
@click.option("--compare/--no-compare", default=True, help="Also run TensorFlow.")
@json_option
def bench_native(compare: bool, as_json: bool) -> None:
    """Measure the native executor, by engine and scheduler, against TensorFlow's.

    Takes half a minute on free cores.
    """
    from litmusfuzz.fuzz.bench.native import report

    with progress_line() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("clusters", epilog="Example: litmusfuzz bench clusters")
@json_option
def bench_clusters(as_json: bool) -> None:
    """Measure how fast clusters are chosen, validated and executed.

    Takes some seconds.
    """
    from litmusfuzz.fuzz.bench.clusters import report

    with progress_line() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


@bench.command("tensorflow", epilog="Example: litmusfuzz bench tensorflow")
@json_option
def bench_tensorflow(as_json: bool) -> None:
    """Measure how fast campaigns on TensorFlow are, and how much they reach.

    Takes about two minutes.
    """
    from litmusfuzz.fuzz.bench.tensorflow import report

    with progress_line() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


@bench.command("workers", epilog="Example: litmusfuzz bench workers --json")
@json_option
def bench_workers(as_json: bool) -> None:
    """Measure how long a new worker takes to answer, forked and spawned.

    Takes about a minute.
    """
    from litmusfuzz.fuzz.bench.workers import report

    with progress_line() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


def _show_bench(
    measured: BenchReport | ClustersReport | TargetsReport | SpeedReport, as_json: bool
) -> None:
    if as_json:
        print_json(measured.as_json())
    else:
        click.echo(measured.text())
