"""`litmusfuzz cover`: every allowed outcome, forced."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.coverage import Limits
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.reports.cover import CoverReport

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    FORBIDDEN,
    UNKNOWN,
    Duration,
    json_option,
    load_or_fail,
    parts_told,
    print_json,
)
from litmusfuzz.fuzz.cli.run import executors_of


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--executors", default="tf", help="Names, with commas; NAME or NAME:CONFIG.")
@click.option("--events", type=click.IntRange(min=1), default=40, help="Of a test, at most.")
@click.option("--outcomes", type=click.IntRange(min=1), default=10_000, help="The same.")
@click.option("--time", "time_s", type=Duration(), default="60s", help="For each order, at most.")
@json_option
def cover(
    files: tuple[str, ...],
    executors: str,
    events: int,
    outcomes: int,
    time_s: float,
    as_json: bool,
) -> None:
    """Make an executor show each allowed outcome of FILES that needs no split update.

    Forces the oracle's witness of each, and counts what is reached. Outcomes for which
    an executor would have to do apart what it does as one are listed apart. Exits 1 if
    an order was followed and another outcome seen, 3 if one was not followed or a test
    is left out.
    """
    from litmusfuzz.fuzz.campaign.coverage import Limits
    from litmusfuzz.fuzz.executors.table import configuration
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.reports.cover import cover_text

    entries = [(file, load_or_fail(file).test) for file in files]  # all mistakes before any work
    # Unless another is asked for, a configuration that does one event at a time anyway.
    chosen = [
        (name, config if f"{name}:" in executors else configuration(name, None, "executor"))
        for name, config in executors_of(executors, None, None, None)
    ]
    limits = Limits(events, outcomes, time_s)
    reports: list[CoverReport] = []
    try:
        for name, config in chosen:
            with closing(Worker(name)) as worker, parts_told() as progress:
                for file, test in entries:
                    reports.append(_covered(file, test, worker, config, limits, progress))
    except KeyboardInterrupt:
        click.echo("litmusfuzz: interrupted", err=True)
    if as_json:
        print_json([report.as_json() for report in reports])
    else:
        click.echo(reports[0].text() if len(reports) == 1 else cover_text(reports))
    codes = {report.exit_code for report in reports}
    if len(reports) < len(files) * len(chosen):
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def _covered(
    file: str,
    test: LitmusTest,
    worker: Worker,
    config: Config,
    limits: Limits,
    progress: Callable[[str], None],
) -> CoverReport:
    """One test on one executor, with the clusters that this runs it with."""
    from litmusfuzz.fuzz.campaign.coverage import cover as force_all
    from litmusfuzz.fuzz.executors.protocol import Clusters
    from litmusfuzz.fuzz.executors.table import executor_class
    from litmusfuzz.reports.cover import CoverReport

    made = executor_class(worker.executor)
    if issubclass(made, Clusters):
        test = made.clustered(test, config)
    told = f"{worker.executor}/{config.name}: {test.name}"
    found = force_all(test, worker, config, limits, lambda part: progress(f"{told}, {part}"))
    return CoverReport(
        test=test,
        file=file,
        executor=worker.executor,
        config=config.name,
        left_out=found.left_out,
        reached=tuple(found.reached),
        wrong=tuple((o, tuple(map(str, order)), seen) for o, order, seen in found.wrong),
        not_followed=tuple(found.not_followed),
        apart=found.apart,
        seconds=found.seconds,
    )
