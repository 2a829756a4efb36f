"""`litmusfuzz show`: the graph of a test as text, DOT, or a TensorFlow script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.cli.common import (
    explore_or_fail,
    fail,
    json_option,
    load_tests,
    model_of,
    print_json,
    refuse_allowed,
    tests_argument,
)

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Entry


@click.command(epilog="Example: litmusfuzz show SB --format dot | dot -Tsvg > SB.svg")
@tests_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "dot", "script"]),
    default="text",
    help="A drawing as text or in Graphviz's language, or a Python script that needs "
    "TensorFlow only.",
)
@json_option
def show(files: tuple[str, ...], form: str, as_json: bool) -> None:
    """Print the graph of each TEST.

    With --format script, print a script that runs the test on TensorFlow without
    LitmusFuzz, for a bug report.
    """
    entries = load_tests(files)
    if as_json:
        data = [_as_json(file, entry, form) for file, entry in entries]
        print_json(data[0] if len(data) == 1 else data)
        return
    texts = [_formatted(file, entry, form) for file, entry in entries]
    click.echo("\n\n".join(text.rstrip("\n") for text in texts))


def _formatted(file: str, entry: Entry, form: str) -> str:
    from litmusfuzz.reports import drawing

    if form == "script":
        return _script(file, entry)
    return drawing.dot(entry.test) if form == "dot" else drawing.text(entry.test)


def _as_json(file: str, entry: Entry, form: str) -> dict[str, Any]:
    """The file's content, and its drawings or its script."""
    import yaml

    forms = ("script",) if form == "script" else ("text", "dot")
    return {
        "file": yaml.load(dumps(entry), Loader=yaml.CSafeLoader),
        **{each: _formatted(file, entry, each) for each in forms},
    }


def _script(file: str, entry: Entry) -> str:
    from litmusfuzz.fuzz.campaign.scripts import script_of
    from litmusfuzz.oracles.reason import explain
    from litmusfuzz.reports.script import NoScript

    found = entry.finding
    refuse_allowed(file, entry)
    _refuse_other_sets(file, entry)
    reason = ""
    if found is not None and not found.forbidden[0][0].torn:
        reason = str(explain(entry.test, model_of(found.model), found.forbidden[0][0]) or "")
    try:
        return script_of(entry, reason)
    except NoScript as error:
        fail(f"{file}: {error}")


def _refuse_other_sets(file: str, entry: Entry) -> None:
    """Refuse an allowed set that is not the oracle's: a script calls all else forbidden."""
    from litmusfuzz.corpus.textfile import Digest

    for name, there in entry.allowed.items():
        _, found = explore_or_fail(file, entry.test, model_of(name), None)
        outcomes = frozenset(found.witnesses)
        same = there.matches(outcomes) if isinstance(there, Digest) else there == outcomes
        if found.complete and not same:
            fail(
                f"{file}: allowed.{name}: is not what the oracle finds; `litmusfuzz promote` shows"
                " the difference"
            )
