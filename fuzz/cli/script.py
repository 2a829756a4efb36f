"""`litmusfuzz script`: a finding on TensorFlow, without us."""

from __future__ import annotations

from pathlib import Path

import click

from litmusfuzz.fuzz.cli.common import (
    fail,
    file_argument,
    json_option,
    load_or_fail,
    model_of,
    print_json,
)


@click.command()
@file_argument
@click.option("--out", "-o", type=click.Path(), default=None, help="Write it there instead.")
@json_option
def script(file: str, out: str | None, as_json: bool) -> None:
    """Print the finding in FILE as a Python script that needs TensorFlow only."""
    from litmusfuzz.fuzz.campaign.scripts import script_of
    from litmusfuzz.oracles.reason import explain
    from litmusfuzz.reports.script import NoScript

    entry = load_or_fail(file)
    found = entry.finding
    try:
        reason = ""
        if found is not None and not found.forbidden[0][0].torn:
            reason = str(explain(entry.test, model_of(found.model), found.forbidden[0][0]) or "")
        text = script_of(entry, reason)
    except NoScript as error:
        fail(f"{file}: {error}")
    if out is not None:
        try:
            Path(out).write_text(text, encoding="utf-8")
        except OSError as error:
            fail(f"{out}: {error.strerror}")
    if as_json:
        print_json({"file": out, "script": text})
    else:
        click.echo(out if out is not None else text, nl=out is not None)
