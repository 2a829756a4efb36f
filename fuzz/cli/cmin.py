"""`litmusfuzz cmin`: as few tests as show all that a folder's show."""

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
    parts_told,
    print_json,
)


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(), metavar="FOLDER...")
@click.option("--out", required=True, type=click.Path(), help="Folder for those that are kept.")
@click.option("--kills/--no-kills", default=True, help="Whether mutants of `native` are run.")
@json_option
def cmin(folders: tuple[str, ...], out: str, kills: bool, as_json: bool) -> None:
    """Keep as few tests of FOLDERS as show what they all show, and copy them to --out.

    Of ops and features, of orders that allowed outcomes tell apart, of mutants that are
    killed, of causes of findings. Prints what each is kept for, and whether fewer would do.
    """
    from litmusfuzz.fuzz.campaign.corpus_minimization import kills as killed
    from litmusfuzz.fuzz.campaign.corpus_minimization import minimum, shown
    from litmusfuzz.reports.cmin import cover_json, cover_text

    target = Path(out)
    files: dict[str, Path] = {}
    for folder in folders:
        if not Path(folder).is_dir():
            fail(f"{folder}: no folder")
        for file in sorted(Path(folder).rglob("*.yaml")):
            if file.name in files:
                fail(f"{files[file.name]} and {file} have one name, which --out has no room for")
            files[file.name] = file
    if not files:
        fail(f"{', '.join(folders)}: no test in it (*.yaml)")
    if target.is_dir() and any(target.iterdir()):
        fail(f"--out: {out} is not empty")
    entries = {name: load_or_fail(str(file)) for name, file in files.items()}
    sets = {}
    with parts_told() as progress:
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
    if as_json:
        print_json(cover_json(cover, len(files)))
    else:
        click.echo(cover_text(cover, len(files)))
    sys.exit(CLEAN)
