"""`litmusfuzz selftest`: every mutant killed, by the same tests for all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    MUTANTS,
    UNKNOWN,
    USAGE,
    Duration,
    complain,
    fail,
    json_option,
    print_json,
)
from litmusfuzz.reports.times import seconds

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.kills import Selftest


@click.command(epilog="Example: litmusfuzz selftest mutant/stale-reads")
@click.argument("names", nargs=-1, type=MUTANTS, metavar="[MUTANT]...")
@click.option("--time", "time_s", type=Duration(), default="5m", help="Limit on the whole test.")
@click.option("--workers", type=click.IntRange(1, 256), default=2, help="Processes that run tests.")
@click.option(
    "--seed", type=click.IntRange(0, (1 << 31) - 1), default=0, help="Seed of the random graphs."
)
@click.option(
    "--control",
    is_flag=True,
    help="Run the control of each mutant, which lacks the defect: none may be reported.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the finding of each mutant that is killed; `replay FILE` shows it again.",
)
@json_option
def selftest(
    names: tuple[str, ...],
    time_s: float,
    workers: int,
    seed: int,
    control: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Kill every mutant of all executors with the same tests.

    Runs tests of the corpus, then random graphs, in the same order for all, until each
    mutant has shown a forbidden outcome twice while its control shows none. Prints which
    test killed each mutant, and after what time. Exits 0 if all were killed, 3 if it was
    interrupted, else 2; with --control 0 if none was. Mutants of a device that is not here are
    left out. To see a kill again: --out FOLDER, then `litmusfuzz replay FOLDER/NAME.yaml`.
    """
    from litmusfuzz.corpus.textfile import save
    from litmusfuzz.fuzz.campaign.mutant_candidates import controls, mutants
    from litmusfuzz.fuzz.campaign.selftest import selftest
    from litmusfuzz.fuzz.executors.table import CONTROL, MUTANT
    from litmusfuzz.reports.kills import kill_table, score_line

    prefix, known = (CONTROL, controls()) if control else (MUTANT, mutants())
    chosen = tuple(dict.fromkeys(f"{prefix}{name.removeprefix(MUTANT)}" for name in names))
    for name in chosen:
        if name not in known:
            there = ", ".join(each.removeprefix(prefix) for each in known)
            fail(f"no mutant {name.removeprefix(prefix)!r}; there are {there}")

    def show(found: Selftest) -> None:
        if sys.stderr.isatty():
            line = f"\r\x1b[K{found.killed} of {len(found.kills)} after {found.seconds:.0f} s ..."
            click.echo(line, err=True, nl=False)

    files: dict[str, str] = {}

    def keep(name: str, entry: Entry) -> None:
        if out is not None:
            kept = out / f"{name.rpartition('/')[2]}.yaml"
            save(entry, kept)
            files[name] = str(kept)

    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"{out}: {error.strerror}")
    found = selftest(
        chosen or known, time_s=time_s, workers=workers, seed=seed, show=show, keep=keep
    )
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", err=True, nl=False)
    if as_json:
        print_json(found.as_json() | {"files": files})
    else:
        click.echo(kill_table(found))
        for each in files.values():
            click.echo(f"to see it again: litmusfuzz replay {each}")
        click.echo(score_line(found, control=control))
    good = not found.killed if control else bool(found.kills) and found.killed == len(found.kills)
    if found.interrupted and not (control and found.killed):
        complain(f"interrupted after {seconds(found.seconds)} of {seconds(found.asked_s)} s")
        sys.exit(UNKNOWN)
    sys.exit(CLEAN if good else USAGE)
