"""`litmusfuzz cmin`: a smallest set of tests that shows all that whole folders show."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    fail,
    json_option,
    load_or_fail,
    print_report,
    progress_line,
    tests_below,
)


@click.command(epilog="Example: litmusfuzz cmin findings/run-1/findings --out kept")
@click.argument("folders", nargs=-1, required=True, type=click.Path(), metavar="FOLDER...")
@click.option(
    "--out", required=True, type=click.Path(), help="Folder that the kept tests are copied to."
)
@click.option(
    "--kills/--no-kills", default=True, help="Whether the mutants of executor native run."
)
@json_option
def cmin(folders: tuple[str, ...], out: str, kills: bool, as_json: bool) -> None:
    """Copy the fewest tests that together show all that the folders show.

    Copies tests of each FOLDER to --out. Counted are ops and features, orders that
    allowed outcomes distinguish, killed mutants, and likely causes of findings. Prints
    what each kept test adds, and whether no smaller set is possible.
    """
    from litmusfuzz.fuzz.commands.corpus_minimization import kills as killed
    from litmusfuzz.fuzz.commands.corpus_minimization import minimum, shown

    target = Path(out)
    files: dict[str, Path] = {}
    for folder in folders:
        if not Path(folder).is_dir():
            fail(f"{folder}: is not a folder")
        for file in sorted(tests_below(Path(folder))):
            if file.name in files:
                fail(
                    f"{files[file.name]} and {file} have one name, and --out holds one: rename one"
                )
            files[file.name] = file
    if not files:
        fail(f"{', '.join(folders)}: has no test (*.yaml)")
    if target.is_dir() and any(target.iterdir()):
        fail(f"--out: {out} is not empty")
    entries = {name: load_or_fail(str(file)) for name, file in files.items()}
    sets = {}
    with progress_line() as progress:
        for name, entry in entries.items():
            progress(name)
            sets[name] = shown(entry)
        if kills:
            found = killed(list(entries.values()), progress)
            for name, more in zip(entries, found, strict=True):
                sets[name] |= more
        progress("the smallest set")
        cover = minimum(sets)
    target.mkdir(parents=True, exist_ok=True)
    for name in cover.kept:
        shutil.copyfile(files[name], target / name)
    print_report(cover, as_json=as_json)
    sys.exit(CLEAN)
