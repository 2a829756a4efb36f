"""`litmusfuzz page`: campaigns' records as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from litmusfuzz.fuzz.cli.common import fail, json_option, print_json


def _as_it_lies(path: Path) -> dict[str, Any]:
    """A record, its files named where they are now: a folder may have been moved since."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise TypeError("a table is expected")
    out, here = record["out"], str(path.parent)
    for each in (*record["findings"], *record["unsound"]):
        each["file"] = str(path.parent / Path(each["file"]).relative_to(out))
    record["command"] = record["command"].replace(out, here)
    return record


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path())
@click.option("--title", default="What campaigns found", help="Of the page.")
@json_option
def page(folders: tuple[str, ...], title: str, as_json: bool) -> None:
    """Print a page of what the campaigns in FOLDERS found and cost, as Markdown.

    FOLDERS are what `run --out` names; each may hold the records of several campaigns,
    also of one that still runs.
    """
    from litmusfuzz.reports.page import Collected
    from litmusfuzz.reports.page import page as page_of

    def script_of(path: str) -> str:
        script = Path(path).with_suffix(".py")
        return str(script) if script.exists() else ""

    collected = Collected()
    for folder in folders:
        records = sorted(Path(folder).glob("record-*.json"))
        if not records:
            fail(f"{folder}: holds no record of a campaign (record-SEED.json)")
        for path in records:
            try:
                collected.add(_as_it_lies(path), script_of)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                fail(f"{path}: no record of a campaign of this version: {error}")
    if as_json:
        print_json(collected.as_json())
    else:
        click.echo(page_of(collected, title), nl=False)
