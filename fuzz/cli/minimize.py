"""`litmusfuzz minimize`: the smallest test that still shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from litmusfuzz.fuzz.cli.common import (
    FORBIDDEN,
    UNKNOWN,
    Duration,
    engine_option,
    fail,
    file_argument,
    json_option,
    load_or_fail,
    model_of,
    model_option,
    print_json,
    threads_option,
)
from litmusfuzz.fuzz.cli.replay import found_on
from litmusfuzz.fuzz.cli.run import executors_of

if TYPE_CHECKING:
    from litmusfuzz.reports.records import RunRecord


@click.command()
@file_argument
@click.option(
    *("--executor", "executor"), default=None, help="Another than the finding's: NAME, NAME:CONFIG."
)
@engine_option
@threads_option
@click.option(
    "--time", "time_s", type=Duration(), default="60s", help="When to stop at the latest."
)
@click.option("--out", type=click.Path(), default=None, help="Folder for the finding; else here.")
@model_option
@json_option
def minimize(
    file: str,
    executor: str | None,
    engine: str | None,
    threads: int | None,
    time_s: float,
    out: str | None,
    model_name: str | None,
    as_json: bool,
) -> None:
    """Make a test that shows a forbidden outcome as small as it gets.

    FILE is a raw finding of a campaign, or any test. It is run until it shows something,
    reduced while it still does, and seen again in a fresh process; the finding is
    written to --out. Exits 1 if there is one, 3 if it did not show.

    Or FILE is a campaign's record (record-SEED.json): then all that the campaign had no time
    for is minimized as it would have been, in its folder, and the record is brought up to date.
    """
    if Path(file).name == "night.json":
        fail(f"{file}: is no record of a campaign; `nightly --resume` goes on with a night")
    if file.endswith(".json"):
        _finish(
            Path(file), time_s, as_json=as_json, others=(executor, engine, threads, out, model_name)
        )
    from litmusfuzz.fuzz.campaign.minimize_file import minimize
    from litmusfuzz.reports.records import finding_json
    from litmusfuzz.reports.text import finding

    entry = load_or_fail(file)
    chosen = executors_of(*found_on(entry, executor, None), engine, threads)
    if len(chosen) > 1:
        fail("--executor: one")
    ((name, config),) = chosen
    there = entry.finding.model if entry.finding and executor is None else "rfc"
    folder = Path(out or ".")
    folder.mkdir(parents=True, exist_ok=True)

    def told(record: RunRecord) -> None:
        if sys.stderr.isatty():
            executions = sum(state.outcomes for state in record.executors)
            click.echo(f"\r\x1b[Kminimizing: {executions} executions ...", err=True, nl=False)

    model = model_of(model_name or there)
    done = minimize(entry, name, config, model, folder, time_s=time_s, show=told)
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    if as_json:
        print_json({"finding": done.found and finding_json(done.found), "problem": done.problem})
    else:
        click.echo(finding(done.found) if done.found else f"{file}: {done.problem}")
    sys.exit(FORBIDDEN if done.found else UNKNOWN)


def _finish(path: Path, time_s: float, others: tuple[object, ...], *, as_json: bool) -> NoReturn:
    """What a campaign left."""
    import signal

    from litmusfuzz.corpus.textfile import FileError
    from litmusfuzz.fuzz.campaign.deferred import NoRecord, finish
    from litmusfuzz.reports.records import finding_json
    from litmusfuzz.reports.terminal import LiveView
    from litmusfuzz.reports.text import counted, finding

    if any(each is not None for each in others):
        fail(f"{path}: is a record, which says how each was run: --time and --json only")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with LiveView(sys.stderr if as_json else sys.stdout, time_s) as view:
            done = finish(path, time_s=time_s, show=view)
    except (NoRecord, FileError) as error:
        fail(str(error))
    if as_json:
        found = [finding_json(each) for each in done.findings]
        numbers = {name: getattr(done, name) for name in ("taken", "left", "unconfirmed")}
        print_json({"findings": found, **numbers, "problem": done.problem})
    else:
        told = f"{counted(done.taken, 'graph')} taken up: {counted(len(done.findings), 'finding')}"
        told += f", {done.unconfirmed} not seen again, {done.left} left" if done.taken else ""
        parts = [*map(finding, done.findings), told if done.taken else f"{path}: nothing is left"]
        click.echo("\n\n".join(parts))
    if done.problem:
        fail(done.problem)
    sys.exit(FORBIDDEN if done.findings or done.left else UNKNOWN if done.unconfirmed else 0)
