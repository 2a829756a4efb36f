"""`litmusfuzz minimize`: the smallest test that still shows a forbidden outcome."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from litmusfuzz.fuzz.cli.common import (
    EXECUTORS,
    FORBIDDEN,
    UNKNOWN,
    Duration,
    configuration_option,
    engine_option,
    fail,
    json_option,
    load_or_fail,
    model_of,
    model_option,
    print_json,
    print_text,
    test_argument,
    threads_option,
)
from litmusfuzz.fuzz.cli.replay import found_on
from litmusfuzz.fuzz.cli.run import executors_of

if TYPE_CHECKING:
    from litmusfuzz.reports.records import RunRecord


@click.command(epilog="Example: litmusfuzz minimize findings/unreduced/NAME.yaml --time 5m")
@test_argument
@click.option(
    "--executors",
    type=EXECUTORS,
    default=None,
    help="One executor, NAME or NAME:CONFIGURATION; without this option the finding's, or tf.",
)
@configuration_option
@engine_option
@threads_option
@click.option(
    "--time", "time_s", type=Duration(), default="60s", help="Limit on the whole reduction."
)
@click.option(
    "--out",
    type=click.Path(),
    default=None,
    help="Folder for the finding; without it the working folder.",
)
@model_option
@json_option
def minimize(
    file: str,
    executors: str | None,
    config_name: str | None,
    engine: str | None,
    threads: int | None,
    time_s: float,
    out: str | None,
    model_name: str | None,
    as_json: bool,
) -> None:
    """Reduce a test that shows a forbidden outcome to a smallest one.

    TEST is an unreduced finding of a campaign, or any test. It runs until it shows a
    forbidden outcome, is reduced while it still does, and is confirmed in a fresh
    process; the finding is written to --out. Exits 1 if there is one, 3 if no forbidden
    outcome showed.

    TEST may also be the record of a campaign (record-SEED.json): the findings that the
    campaign had no time for are then reduced in its folder, and the record is updated.
    """
    if Path(file).name == "nightly.json":
        fail(f"{file}: is not the record of a campaign; `nightly --resume` continues a nightly run")
    if file.endswith(".json"):
        _finish(
            Path(file),
            time_s,
            as_json=as_json,
            others=(executors, config_name, engine, threads, out, model_name),
        )
    from litmusfuzz.fuzz.campaign.minimize_file import minimize
    from litmusfuzz.reports.records import finding_json
    from litmusfuzz.reports.text import finding

    entry = load_or_fail(file)
    chosen = executors_of(*found_on(entry, executors, config_name), engine, threads)
    if len(chosen) > 1:
        fail("--executors: minimize takes one")
    ((name, config),) = chosen
    there = entry.finding.model if entry.finding and executors is None else "rfc"
    folder = Path(out or ".")
    folder.mkdir(parents=True, exist_ok=True)

    def show(record: RunRecord) -> None:
        if sys.stderr.isatty():
            executions = sum(state.outcomes for state in record.executors)
            click.echo(f"\r\x1b[Kminimizing: {executions} executions ...", err=True, nl=False)

    model = model_of(model_name or there)
    done = minimize(entry, name, config, model, folder, time_s=time_s, show=show)
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    if as_json:
        print_json({"finding": done.found and finding_json(done.found), "problem": done.problem})
    else:
        print_text(finding(done.found) if done.found else f"{file}: {done.problem}")
    sys.exit(FORBIDDEN if done.found else UNKNOWN)


def _finish(path: Path, time_s: float, others: tuple[object, ...], *, as_json: bool) -> NoReturn:
    """Reduce the findings that a campaign had no time for, and exit."""
    import signal

    from litmusfuzz.corpus.textfile import FileError
    from litmusfuzz.fuzz.campaign.deferred import NotARecord, minimize_deferred
    from litmusfuzz.reports.records import finding_json
    from litmusfuzz.reports.tables import counted
    from litmusfuzz.reports.terminal import LiveView
    from litmusfuzz.reports.text import finding

    if any(each is not None for each in others):
        fail(f"{path}: is a record: only --time and --json apply")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with LiveView(sys.stderr if as_json else sys.stdout, time_s) as view:
            done = minimize_deferred(path, time_s=time_s, show=view)
    except (NotARecord, FileError) as error:
        fail(str(error))
    if as_json:
        found = [finding_json(each) for each in done.findings]
        numbers = {name: getattr(done, name) for name in ("attempted", "remaining", "unconfirmed")}
        print_json({"findings": found, **numbers, "problem": done.problem})
    else:
        total = (
            f"{counted(done.attempted, 'graph')} reduced: {counted(len(done.findings), 'finding')}"
        )
        total += f", {done.unconfirmed} unconfirmed, {done.remaining} remaining"
        parts = [
            *map(finding, done.findings),
            total if done.attempted else f"{path}: nothing is left",
        ]
        print_text("\n\n".join(parts))
    if done.problem:
        fail(done.problem)
    sys.exit(FORBIDDEN if done.findings or done.remaining else UNKNOWN if done.unconfirmed else 0)
