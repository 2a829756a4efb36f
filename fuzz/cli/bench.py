"""`litmusfuzz bench`: how fast, as ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from litmusfuzz.reports.bench import BenchReport
    from litmusfuzz.reports.clusters import ClustersReport
    from litmusfuzz.reports.speed import SpeedReport
    from litmusfuzz.reports.targets import TargetsReport

from litmusfuzz.fuzz.cli.common import json_option, parts_told, print_json


@click.group()
def bench() -> None:
    """Measure ourselves, with ratios to something slower."""


@bench.command("oracle")
@click.option("--compare/--no-compare", default=True, help="Run the reference beside it.")
@json_option
def bench_oracle(compare: bool, as_json: bool) -> None:
    """How fast the explorer finds sets and verdicts, and how that grows.

    Takes about two minutes, half of it the reference.
    """
    from litmusfuzz.fuzz.bench.oracle import report

    with parts_told() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("native")
@click.option("--compare/--no-compare", default=True, help="Run TensorFlow beside it.")
@json_option
def bench_native(compare: bool, as_json: bool) -> None:
    """How fast the native executor is, by engine and scheduler, beside TensorFlow's.

    Takes half a minute on free cores.
    """
    from litmusfuzz.fuzz.bench.native import report

    with parts_told() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("clusters")
@json_option
def bench_clusters(as_json: bool) -> None:
    """How fast clusters are chosen, validated and executed.

    Takes some seconds.
    """
    from litmusfuzz.fuzz.bench.clusters import report

    with parts_told() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


@bench.command("tensorflow")
@json_option
def bench_tensorflow(as_json: bool) -> None:
    """How fast campaigns on TensorFlow are, and how much they reach.

    Takes about two minutes.
    """
    from litmusfuzz.fuzz.bench.tensorflow import report

    with parts_told() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


def _show_bench(
    measured: BenchReport | ClustersReport | TargetsReport | SpeedReport, as_json: bool
) -> None:
    if as_json:
        print_json(measured.as_json())
    else:
        click.echo(measured.text())
