"""`litmusfuzz show`: a test, drawn."""

from __future__ import annotations

import click

from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.cli.common import file_argument, json_option, load_or_fail, print_json


@click.command()
@file_argument
@click.option("--dot", is_flag=True, help="Print the graph in Graphviz's language only.")
@json_option
def show(file: str, dot: bool, as_json: bool) -> None:
    """Draw the graph in FILE, as text and as DOT."""
    from litmusfuzz.reports import drawing

    entry = load_or_fail(file)
    if as_json:
        import yaml

        text = dumps(entry)
        print_json(
            {
                "file": yaml.load(text, Loader=yaml.CSafeLoader),
                "text": drawing.text(entry.test),
                "dot": drawing.dot(entry.test),
            }
        )
        return
    if not dot:
        click.echo(drawing.text(entry.test))
        click.echo()
    click.echo(drawing.dot(entry.test))
