"""`litmusfuzz known`: the file of known findings, which a night is judged by."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from corpus.document import FileError, read_text
from corpus.textfile import loads
from fuzz.commands.common import fail, file_argument, json_option, load_or_fail, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpus.textfile import Entry


class Day(click.ParamType[date]):
    """A date, as 2026-11-22."""

    name = "date"

    def convert(
        self, value: str | date, param: click.Parameter | None, ctx: click.Context | None
    ) -> date:
        """From text; click reports the message."""
        try:
            return value if isinstance(value, date) else date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no date; write {date(2026, 11, 22)}", param, ctx)


@click.group()
def known() -> None:
    """Keep the file of findings that are known."""


@known.command("list")
@file_argument
@json_option
def list_(file: str, as_json: bool) -> None:
    """Print the entries of a known-findings file, or its first mistake."""
    from fuzz.campaign.known import load

    try:
        entries = load(file).entries
    except FileError as error:
        fail(str(error))
    today = date.today()
    if as_json:
        print_json(
            [
                {
                    "title": each.title,
                    "name": each.name,
                    "why": each.why,
                    "classes": list(each.cause.classes) if each.cause else [],
                    "since": str(each.since or ""),
                    "expires": str(each.expires or ""),
                    "expired": each.expired(today),
                }
                for each in entries
            ]
        )
        return
    for each in entries:
        classes = f" ({', '.join(each.cause.classes)})" if each.cause else ""
        until = f", {'expired' if each.expired(today) else 'until'} {each.expires}"
        days = f" [since {each.since or 'ever'}{until if each.expires else ''}]"
        click.echo(f"{each.title}{classes}{days}\n    {each.why}")


@known.command()
@file_argument
@click.argument("findings", nargs=-1, required=True, type=click.Path())
@click.option("--why", required=True, help="Why they are no news: a reason, or a link.")
@click.option("--since", type=Day(), default=None, help="Known since that day; today if not given.")
@click.option("--expires", type=Day(), default=None, help="News again after that day.")
@json_option
def add(
    file: str,
    findings: tuple[str, ...],
    why: str,
    since: date | None,
    expires: date | None,
    as_json: bool,
) -> None:
    """Add findings to a known-findings FILE, at its end.

    FINDINGS are their files, folders with such, or the night.json of a night: all that it
    reported, crashes as well. What stands in FILE is kept as it is.
    """
    from fuzz.campaign.known import KnownFinding, added
    from fuzz.campaign.known import loads as loads_known

    try:
        text = read_text(file) if Path(file).exists() else ""
        keys = {entry.key for entry in loads_known(text, file).entries} if text else set()
    except FileError as error:
        fail(str(error))
    reason = " ".join(why.split())
    if not reason:
        fail("--why: says nothing")
    new: list[KnownFinding] = []
    already: list[str] = []
    for path, key, name in _named(findings):
        if key in keys:
            already.append(path)
            continue
        keys.add(key)
        day = since or date.today()
        new.append(KnownFinding(reason, key, None, day, expires, name))
    try:
        made = added(text, new, file)
    except FileError as error:
        fail(str(error))
    if new:
        temporary = Path(f"{file}.part")
        temporary.write_text(made, encoding="utf-8")
        temporary.replace(file)
    if as_json:
        rows = [{"key": each.key, "name": each.name} for each in new]
        print_json({"file": file, "added": rows, "known_already": already})
        return
    for each in new:
        click.echo(f"{each.key}  {each.name}")
    click.echo(f"{file}: {len(new)} added, {len(already)} known already")


def _named(paths: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """File, key and name of each finding."""
    from fuzz.campaign.canonical import key_of

    for path in paths:
        if path.endswith(".json"):
            yield from _of_a_night(path)
        else:
            for file, entry in _entries([path]):
                yield file, key_of(entry), entry.test.name


def _of_a_night(path: str) -> Iterator[tuple[str, str, str]]:
    """What a night has reported, but for what it knew already."""
    try:
        findings = json.loads(read_text(path))["findings"]
        for each in findings:
            if not each["known"]:
                test = loads(each["entry"], path).test
                # Of a crash the test has only a number for a name.
                name = test.name if each["sort"] == "forbidden" else each["cause"]
                yield str(Path(path).parent / each["file"]), each["key"], name
    except FileError as error:
        fail(str(error))
    except (ValueError, KeyError, TypeError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else str(error)
        fail(f"{path}: is no night.json: {told}")


def _entries(paths: Sequence[str]) -> Iterator[tuple[str, Entry]]:
    """The findings in files and folders; of a folder what else lies there is left out."""
    for path in paths:
        folder = Path(path)
        files = sorted(map(str, folder.glob("*.yaml"))) if folder.is_dir() else [path]
        found = [(each, load_or_fail(each)) for each in files]
        taken = [(each, entry) for each, entry in found if entry.finding is not None]
        if not taken:
            fail(f"{path}: no finding in it")
        yield from taken
