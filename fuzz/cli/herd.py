"""`litmusfuzz herd`: exchange of tests and logs with herd7 and litmus7."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from litmusfuzz.corpus.textfile import Entry, FileError, dumps, read_text, write_text
from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    HERD_SUFFIX,
    UNKNOWN,
    USAGE,
    NamedChoice,
    budget_option,
    complain,
    explore_or_fail,
    fail,
    herd_or_fail,
    json_option,
    load_tests,
    model_of,
    model_option,
    print_json,
    tests_argument,
)
from litmusfuzz.fuzz.cli.replay import unique_names
from litmusfuzz.reports.tables import one_line


@click.group(epilog="Example: litmusfuzz herd export SB MP --out tests")
def herd() -> None:
    """Exchange tests and logs with herd7 and litmus7.

    Tests are in herd's C: one atomic access a statement, no branches, no pointer
    values. Every access counts as sequentially consistent, whatever order it names: an import
    says which orders it strengthened.
    """


files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path()
)
out_option = click.option(
    "--out",
    "folder",
    type=click.Path(),
    default=None,
    help="Folder to write to; without it the result is printed.",
)


@herd.command("import", epilog="Example: litmusfuzz herd import MP.litmus --out tests")
@files_argument
@out_option
@json_option
def herd_import(files: tuple[str, ...], folder: str | None, as_json: bool) -> None:
    """Convert each .litmus FILE of herd's to a test of ours, NAME.yaml.

    Where the test means something else than the file, for example because a weak memory order
    was strengthened, it says so, and the test's description does.
    """
    imported = [(file, herd_or_fail(file)) for file in files]  # all mistakes before any work
    tests = [(file, each.test) for file, each in imported]
    unique_names(tests, "import")
    if folder is None and len(tests) > 1 and not as_json:
        fail("several files: --out names the folder to write to")
    rows = []
    for file, each in imported:
        test, text = each.test, dumps(Entry(each.test))
        to = _place(folder, f"{test.name}.yaml", text, as_json=as_json)
        row = {"file": file, "test": test.name, "to": to, "text": text}
        rows.append(row | {"changes": list(each.changes)})
    if as_json:
        print_json(rows)
    elif folder is not None:
        click.echo(f"{_count(len(rows), 'test')} written to {one_line(folder)}")


@herd.command("export", epilog="Example: litmusfuzz herd export SB MP --out tests")
@tests_argument
@out_option
@click.option(
    "--model",
    "model_name",
    type=NamedChoice(["rfc", "executor"], "models"),
    default="rfc",
    help="Memory model whose allowed set herd finds; under rfc an update is a load and a store.",
)
@json_option
def herd_export(files: tuple[str, ...], folder: str | None, model_name: str, as_json: bool) -> None:
    """Convert each TEST to herd's format, NAME.litmus.

    A test that does not fit is refused with the reason, the others are written;
    exits 2 if any was refused. The allowed sets agree under herd's sc.cat.
    """
    from litmusfuzz.corpus.herd import DoesNotFit
    from litmusfuzz.corpus.herd import dumps as herd_text

    # All mistakes before any work.
    tests = [(file, entry.test) for file, entry in load_tests(files)]
    unique_names(tests, "export")
    rows: list[dict[str, Any]] = []
    for file, test in tests:
        row: dict[str, Any] = {"file": file, "test": test.name, "to": None, "refused": None}
        try:
            row["text"] = herd_text(test, model_name)
        except DoesNotFit as error:
            row["refused"] = str(error)
            complain(f"{file}: does not fit herd's C: {error}")
        rows.append(row)
    fitting = [row for row in rows if row["refused"] is None]
    if folder is None and len(fitting) > 1 and not as_json:
        fail("several files: --out names the folder to write to")
    for row in fitting:
        row["to"] = _place(folder, f"{row['test']}.litmus", row["text"], as_json=as_json)
    refused = len(rows) - len(fitting)
    if as_json:
        print_json(rows)
    elif folder is not None:
        more = f", {refused} refused" if refused else ""
        click.echo(f"{_count(len(fitting), 'test')} written to {one_line(folder)}{more}")
    sys.exit(USAGE if refused else CLEAN)


@herd.command("log", epilog="Example: litmusfuzz herd log SB MP > ours.log")
@tests_argument
@model_option
@budget_option
@json_option
def herd_log(
    files: tuple[str, ...], model_name: str | None, budget: int | None, as_json: bool
) -> None:
    """Print the allowed set of each TEST, ours or herd's, as a log of herd's.

    A log of a test of herd's has the locations that the test lists, as herd's has. A set
    over budget is left out with a message: exit 3.
    """
    from litmusfuzz.corpus.herd import condition_of, log, parse

    # All mistakes before any work.
    tests = [(file, entry.test) for file, entry in load_tests(files)]
    listed = {f: parse(read_text(f), f).locations for f in files if f.endswith(HERD_SUFFIX)}
    unique_names(tests, "log")
    model = model_of(model_name or "rfc")
    rows = []
    for file, test in tests:
        _, allowed = explore_or_fail(file, test, model, budget)
        text = None
        if allowed.complete:
            sets = dict.fromkeys(allowed.witnesses, 1)
            text = log(test, sets, condition_of(test), locations=listed.get(file, ()))
        else:
            click.echo(
                f"litmusfuzz: {file}: over budget under {model.name}; see --budget", err=True
            )
        rows.append({"file": file, "test": test.name, "model": model.name, "log": text})
        if text and not as_json:
            click.echo(text, nl=False)
    if as_json:
        print_json(rows)
    sys.exit(UNKNOWN if any(row["log"] is None for row in rows) else CLEAN)


def _place(folder: str | None, name: str, text: str, *, as_json: bool) -> str | None:
    """Write to the folder, or print; return the path that was written.

    Another file of that name is not overwritten: somebody may have worked on it.
    """
    if folder is None:
        if not as_json:
            click.echo(text, nl=False)
        return None
    target = Path(folder) / name
    if os.path.lexists(target) and not _holds(target, text):
        fail(f"{target}: exists already, and differs: move it away first")
    write_text(text, target)
    return str(target)


def _holds(path: Path, text: str) -> bool:
    """True if a file, which may be a link or a pipe as well, has this text."""
    try:
        return read_text(path) == text
    except FileError:
        return False


def _count(number: int, noun: str) -> str:
    from litmusfuzz.reports.tables import counted

    return counted(number, noun)
