"""`litmusfuzz selftest`: whether mutants are reported."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reports.kills import Row

from fuzz.commands.common import fail, json_option, print_json


@click.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, help="Of which the median counts.")
@click.option("--tests", type=click.IntRange(1, 10_000), default=60, help="Graphs for each seed.")
@json_option
def selftest(names: tuple[str, ...], seeds: int, tests: int, as_json: bool) -> None:
    """Kill every mutant by the generator's random graphs.

    Prints after how many runs each strategy kills each mutant (`-` for never);
    the executor that they were made from stands first, and must survive. Takes
    some minutes. Exits 0 only if all mutants are killed, else 1.
    """
    from fuzz.campaign.selftest import HUNTS, SOUND, hunts, mutants
    from reports.kills import kill_table, score

    known = mutants()
    chosen = tuple(f"mutant/{name.removeprefix('mutant/')}" for name in names)
    for name in chosen:
        if name not in known:
            known_names = ", ".join(each.removeprefix("mutant/") for each in known)
            fail(f"no mutant {name.removeprefix('mutant/')!r}; there are {known_names}")

    def told(executor: str, strategy: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{executor}: {strategy} ...", err=True, nl=False)

    rows: list[Row] = []
    wanted = (SOUND, *(chosen or known))
    try:
        for row in hunts(wanted, seeds, tests, told):
            rows.append(row)
    finally:  # of what was interrupted there is what there is
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
        complete = len(rows) == len(wanted) and all(row.killed == row.mutant for row in rows)
        if as_json:
            print_json({"rows": [asdict(row) for row in rows], "complete": complete})
        else:
            click.echo(kill_table(rows, list(HUNTS)))
            click.echo(score(rows))
    sys.exit(0 if complete else 1)
