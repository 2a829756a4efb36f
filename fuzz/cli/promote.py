"""`litmusfuzz promote`: a finding added to the corpus, or allowed sets computed anew."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from litmusfuzz import corpus
from litmusfuzz.corpus.textfile import Digest, dumps
from litmusfuzz.fuzz.cli.common import (
    budget_option,
    complain,
    explore_or_fail,
    fail,
    json_option,
    load_or_fail,
    print_json,
    resolve_test,
    test_argument,
)

if TYPE_CHECKING:
    from litmusfuzz.corpus.outcome import Outcome


@click.command(epilog="Example: litmusfuzz promote findings/run-1/findings/NAME.yaml --write")
@test_argument
@click.option(
    "--write", is_flag=True, help="Write the file; without this option only the diff is printed."
)
@click.option("--out", "folder", type=click.Path(), default=None, help="Folder for the file.")
@budget_option
@json_option
def promote(file: str, write: bool, folder: str | None, budget: int | None, as_json: bool) -> None:
    """Add a finding to the corpus, or compute allowed sets anew.

    Prints the change as a diff, for a person to read; --write makes it.
    """
    from litmusfuzz.corpus.textfile import save
    from litmusfuzz.oracles.model import MODELS

    entry = load_or_fail(file)
    target = Path(resolve_test(file))
    if entry.finding is not None:
        if not (entry.finding.minimized and entry.finding.confirmed):
            complain(
                f"{file}: not minimized to the end, or not confirmed in a fresh process: think "
                "twice"
            )
        home = Path(folder) if folder else Path(corpus.__file__).parent / "findings"
        target = home / f"{entry.test.name}.yaml"
    elif folder:
        target = Path(folder) / f"{entry.test.name}.yaml"
    sets: dict[str, frozenset[Outcome] | Digest] = {}
    for model in MODELS.values():
        _, allowed = explore_or_fail(file, entry.test, model, budget)
        if not allowed.complete:
            fail(f"{file}: over budget under {model.name}; see --budget")
        outcomes = frozenset(allowed.witnesses)
        # `executor` is a subset of `rfc`; where equal it is not repeated.
        if outcomes != sets.get("rfc"):
            sets[model.name] = outcomes
    new = dumps(replace(entry, allowed=sets))
    old = target.read_text(encoding="utf-8", errors="replace") if target.exists() else ""
    diff = list(
        difflib.unified_diff(
            old.splitlines(),
            new.splitlines(),
            f"{target} (now)",
            f"{target} (promoted)",
            "",
            "",
            3,
            "",
        )
    )
    if write and diff:
        save(replace(entry, allowed=sets), target)
    if as_json:
        print_json({"file": str(target), "diff": diff, "written": write and bool(diff)})
        return
    for line in diff:
        click.echo(line)
    if not diff:
        click.echo(f"{target}: nothing to change")
    elif not write:
        click.echo(f"\n{target} is not written; --write does")
