"""`litmusfuzz promote`: a finding added to the corpus, or allowed sets computed anew."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest, FileError, dumps, read_text
from litmusfuzz.fuzz.cli.common import (
    budget_option,
    complain,
    explore_or_fail,
    fail,
    json_option,
    load_or_fail,
    print_json,
    refuse_allowed,
    resolve_test,
    test_argument,
)
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.reports.tables import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.outcome import Outcome

MAX_PAIRS: Final = 4_000_000
"""Of lines that a diff compares, at most: a second."""


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
    from litmusfuzz.corpus.library import FOLDERS, paths
    from litmusfuzz.corpus.textfile import save
    from litmusfuzz.oracles.model import MODELS

    entry = load_or_fail(file)
    target = Path(resolve_test(file))
    refuse_allowed(file, entry, budget)
    if entry.finding is not None:
        if not (entry.finding.minimized and entry.finding.confirmed):
            complain(
                f"{file}: not minimized to the end, or not confirmed in a fresh process: think "
                "twice"
            )
        ours = target.parent if target in paths().values() else FOLDERS[1]
        home = Path(folder) if folder else ours
        target = home / f"{entry.test.name}.yaml"
        other = paths().get(entry.test.name)
        if not folder and other not in (None, target):
            fail(f"{file}: {other} has that name: two tests of the corpus would")
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
    shown = one_line(str(target))
    diff = list(difference(_old(target), new, shown))
    if write and diff:
        save(replace(entry, allowed=sets), target)
    if as_json:
        print_json({"file": str(target), "diff": diff, "written": write and bool(diff)})
        return
    for line in diff:
        click.echo(line)
    if not diff:
        click.echo(f"{shown}: nothing to change")
    elif not write:
        click.echo(f"\n{shown} is not written; --write does")


def _old(target: Path) -> str:
    """The text of the test that is there already; "" if there is none.

    What is no test, a link to a private file for example, is neither shown nor replaced.
    """
    if not os.path.lexists(target):
        return ""
    try:
        text = read_text(target)
        loads(text)
    except FileError:
        fail(f"{target}: exists already, and is no test: move it away first")
    return text


def difference(old: str, new: str, name: str) -> Iterator[str]:
    """A diff in lines, found in bounded time: `difflib` takes quadratic time.

    Of two long texts all lines from the first to the last that differ are one change.
    """
    ours, theirs = old.splitlines(), new.splitlines()
    names = (f"{name} (now)", f"{name} (promoted)")
    if len(ours) * len(theirs) <= MAX_PAIRS:
        yield from difflib.unified_diff(ours, theirs, *names, "", "", 3, "")
        return
    if ours == theirs:
        return
    pairs = zip(ours, theirs, strict=False)
    first = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
    last = 0  # from the end
    while last < min(len(ours), len(theirs)) - first and ours[-1 - last] == theirs[-1 - last]:
        last += 1
    gone, come = ours[first : len(ours) - last], theirs[first : len(theirs) - last]
    yield from (f"--- {names[0]}", f"+++ {names[1]}")
    yield f"@@ -{first + 1},{len(gone)} +{first + 1},{len(come)} @@"
    yield from (f"-{line}" for line in gone)
    yield from (f"+{line}" for line in come)
