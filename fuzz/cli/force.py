"""`litmusfuzz force`: one total order, exactly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from litmusfuzz.corpus.outcome import STATUS_KEY, Outcome, Verdict

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.model import Model

from litmusfuzz.fuzz.cli.common import (
    Duration,
    budget_option,
    explorer_for,
    fail,
    file_argument,
    json_option,
    load_or_fail,
    model_of,
    model_option,
    print_json,
)
from litmusfuzz.fuzz.cli.oracle import membership, parse_outcome, plain_values
from litmusfuzz.fuzz.cli.replay import write_log


@click.command()
@file_argument
@click.option(
    "--outcome",
    "wanted",
    required=True,
    help="An allowed one, as of `oracle`: r0=2,r1=0 or X=[1,2] or _status=blocked.",
)
@click.option("--executor", "executor_name", default="native", help="One that can be forced.")
@click.option(
    "--config", "config_name", default=None, help="Else one that promises just the model."
)
@click.option("--time", "time_s", type=Duration(), default="60s", help="At most.")
@click.option(
    "--log", "log_file", type=click.Path(), default=None, help="Write what was observed there too."
)
@model_option
@budget_option
@json_option
def force(
    file: str,
    wanted: str,
    executor_name: str,
    config_name: str | None,
    time_s: float,
    log_file: str | None,
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Make an executor follow one total order of FILE, and print what that yields.

    The order is the oracle's witness of --outcome, as `oracle --explain` prints
    it. Exits 1 if it yields another outcome, 3 if the executor cannot follow it.
    """
    from litmusfuzz.fuzz.campaign import replay as campaign
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
    from litmusfuzz.fuzz.executors.worker import Worker
    from litmusfuzz.reports.allowed import Witnessed
    from litmusfuzz.reports.forced import ForcedReport

    test = load_or_fail(file).test
    model = model_of(model_name or "rfc")
    try:
        config = configuration(executor_name, config_name, model.name)
    except UnknownExecutor as error:
        fail(str(error))
    order, outcome = _order(file, test, wanted, model, budget)
    if log_file is not None:
        # Now, so that a place where nothing can be written is known before the work.
        Path(log_file).write_text("", encoding="utf-8")
    worker = Worker(executor_name)
    try:
        forced = campaign.force(test, worker, config, order, time_s)
    finally:
        worker.close()
    if forced.problem:
        fail(f"{file}: {forced.problem}")
    witness = Witnessed(model.name, outcome, tuple(map(str, order)))
    report = ForcedReport(
        test, executor_name, config.name, witness, forced.outcome, forced.diverged
    )
    if log_file is not None and report.seen is not None:
        write_log(test, {report.seen: 1}, log_file)
    if as_json:
        print_json(report.as_json())
    else:
        click.echo(report.text())
    sys.exit(report.exit_code)


def _order(
    file: str, test: LitmusTest, wanted: str, model: Model, budget: int | None
) -> tuple[Witness, Outcome]:
    """A total order with that outcome, and all of the outcome."""
    from litmusfuzz.oracles.allowed import NoAllowedSet
    from litmusfuzz.oracles.reference import outcome_of
    from litmusfuzz.reports.allowed import shown

    values, status = parse_outcome(test, wanted)
    explorer = explorer_for(file, test, model, budget)
    try:
        verdict, asked = membership(explorer, values, status)
    except NoAllowedSet as error:
        fail(f"{file}: {error}")
    told = shown(({} if status is None else {STATUS_KEY: str(status)}) | plain_values(test, values))
    if verdict is Verdict.UNKNOWN:
        fail(f"{file}: {told}: over budget under {model.name}; see --budget")
    if asked is None:
        fail(f"{file}: {told}: forbidden under {model.name}, there is no order")
    order = explorer.witness(asked)
    assert order is not None, "allowed, but by no order"
    return order, outcome_of(test, model, order)
