"""`litmusfuzz nightly`, `status` and `redraw`: campaigns that run unattended."""

from __future__ import annotations

import re
import shlex
import sqlite3
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.fuzz.cli.common import (
    MAX_SEED,
    Duration,
    fail,
    json_option,
    print_json,
    python_option,
    python_or_fail,
)
from litmusfuzz.fuzz.cli.run import families_of, systems_of

if TYPE_CHECKING:
    from litmusfuzz.fuzz.campaign.known_findings import KnownFindings
    from litmusfuzz.reports.nightly_report import NightlyReport

ALL = "tf:*,jax:*,native:*"
SELFTEST_S = 600.0
SILENT_S = 180.0
"""A night that runs says so more often."""
LONG_S = 3600.0
"""A night in which that is not too much."""


class Size(click.ParamType[int]):
    """Bytes, from ``500MB`` or ``2GB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """From text; click reports the message."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(kB|MB|GB|TB)", str(value))
        if not match:
            self.fail(f"{value!r} is no size; write 500MB or 2GB", param, ctx)
        powers = {"kB": 3, "MB": 6, "GB": 9, "TB": 12}
        return int(float(match[1]) * 10 ** powers[match[2]])


@click.command()
@click.option("--time", "time_s", type=Duration(), default="2h", help="How long.")
@click.option(
    "--workers", type=click.IntRange(1, 4096), default=2, help="Processes, or of a cluster threads."
)
@click.option("--out", type=click.Path(), default="night", help="The night's folder, a new one.")
@click.option("--resume", type=click.Path(), default=None, help="Go on with a night in its folder.")
@click.option("--known", "known_file", type=click.Path(), default=None, help="Known findings.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="Random if not given.")
@click.option("--executors", default=ALL, help="As for run; what cannot run here is left out.")
@click.option("--families", default=None, help="As for run.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions per graph.")
@click.option("--turn", "turn_s", type=Duration(), default=None, help="At a time; 60s or less.")
@python_option
@click.option(
    "--selftest",
    "selftest_s",
    type=Duration(),
    default=None,
    help="At most, for the mutants; ten minutes in a night of an hour or more, else none.",
)
@click.option("--disk", type=Size(), default="2GB", help="How much the folder may take.")
@click.option("--dask", default=None, help="Workers of a Dask scheduler: tcp://host:8786.")
@json_option
def nightly(
    time_s: float,
    workers: int,
    out: str,
    resume: str | None,
    known_file: str | None,
    seed: int | None,
    executors: str,
    families: str | None,
    count: int | None,
    turn_s: float | None,
    python: str | None,
    selftest_s: float | None,
    disk: int,
    dask: str | None,
    as_json: bool,
) -> None:
    """Fuzz all executors until the time is up; write reports.

    Each executor's configurations have their share of the time. SIGTERM and Ctrl-C end it
    with all that was found, a second one at once; --resume goes on with what time is left.
    Exits 1 if there is a finding that --known does not name, 2 if the canary or a mutant
    went unreported.
    """
    from random import SystemRandom

    from litmusfuzz.fuzz.campaign import pools
    from litmusfuzz.fuzz.campaign.nightly.coordinator import Nightly, asked
    from litmusfuzz.fuzz.campaign.nightly.store import Store, StoreError

    known = _known(known_file)
    if resume is None and selftest_s and selftest_s > time_s:
        fail("--selftest: longer than --time")
    if resume is None:
        chosen = systems_of(executors, None, None)
        facts = asked(
            command=shlex.join(["litmusfuzz", *sys.argv[1:]]),
            seed=SystemRandom().randrange(1 << 31) if seed is None else seed,
            asked_s=time_s,
            workers=workers,
            systems=[(name, *(each.name for each in configs)) for name, *configs in chosen],
            families=families_of(families, [name for name, *_ in chosen]),
            count=count,
            turn_s=turn_s,
            python=python_or_fail(python),
            selftest_s=selftest_s or (SELFTEST_S if time_s >= LONG_S else 0.0),
            disk_bytes=disk,
        )
    else:
        _only_with(resume)
        facts = {"workers": workers} if _given("workers") else {}
    folder = Path(resume or out)

    def opened(*, write: bool) -> Store:
        try:
            return Store(folder, write=write)
        except StoreError as error:
            fail(str(error))
        except OSError as error:
            fail(f"--out: {folder}: {error.strerror}")

    if resume is not None:
        with opened(write=False) as store:
            if not store.meta:
                fail(f"--resume: {folder}: holds no night")
            workers = facts.get("workers", store.meta["workers"])
    terminal = sys.stderr.isatty()

    def show(night: NightlyReport) -> None:
        if terminal:
            click.echo(f"\r\x1b[K{_line(night)}", err=True, nl=False)

    try:
        # Without workers there is no night, and nothing to resume.
        with pools.open(workers, dask) as pool, opened(write=True) as store:
            if resume is None and store.meta:
                fail(f"--out: {folder}: holds a night; --resume {folder} goes on with it")
            store.note(**facts)
            night = Nightly(store, known, pool, show, local=dask is None).run()
    except pools.PoolError as error:
        fail(f"--dask: {error}")
    except sqlite3.Error as error:
        there = f"; --resume {folder} goes on" if "full" in str(error) else ""
        fail(f"{folder}: {error}{there}")
    if terminal:
        click.echo("", err=True)
    if as_json:
        click.echo((folder / "night.json").read_text(encoding="utf-8"))
    else:
        click.echo((folder / "summary.md").read_text(encoding="utf-8"))
    sys.exit(night.exit_code())


def _given(name: str) -> bool:
    """Whether an option was on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _only_with(resume: str) -> None:
    """A night goes on as it was asked for."""
    for name in (
        "time_s",
        "out",
        "seed",
        "executors",
        "families",
        "count",
        "turn_s",
        "python",
        "selftest_s",
        "disk",
    ):
        if _given(name):
            fail(f"--resume {resume}: goes on as it was asked for, without --{name.split('_')[0]}")


def _known(file: str | None) -> KnownFindings:
    from litmusfuzz.corpus.textfile import FileError
    from litmusfuzz.fuzz.campaign.known_findings import KnownFindings, load

    if file is None:
        return KnownFindings()
    try:
        return load(file)
    except FileError as error:
        fail(str(error))


def _line(night: NightlyReport) -> str:
    """How it stands, on a terminal."""
    return (
        f"{night.spent_s:.0f} of {night.asked_s:.0f} s  {night.graphs} graphs"
        f"  {night.outcomes} outcomes  {len(night.findings)} findings, {len(night.new)} new"
    )


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path())
@json_option
def status(folders: tuple[str, ...], as_json: bool) -> None:
    """How nights stand, of one machine or several: from their files `stats`.

    One that says that it runs, but for three minutes has said nothing, is silent: whoever wrote
    it was killed, or is a machine whose files come late.
    """
    from litmusfuzz.fuzz.campaign.nightly.store import is_written
    from litmusfuzz.reports.stats import number, read, together

    nights = {}
    for folder in folders:
        path = Path(folder) / "stats"
        try:
            nights[folder] = read(path.read_text(encoding="utf-8"))
            if "state" not in nights[folder]:
                fail(f"{path}: is no stats file of a night")
            quiet = time.time() - number(nights[folder], "last_update") > SILENT_S
            if nights[folder]["state"] == "runs" and quiet and not is_written(Path(folder)):
                nights[folder]["state"] = "silent"
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{path}: {getattr(error, 'strerror', None) or 'is no text'}")
    if as_json:
        print_json(nights)
    else:
        click.echo(together(nights))


@click.command()
@click.argument("folder", type=click.Path())
@click.option("--tests", type=click.IntRange(min=1), default=1000, help="How many, at most.")
@click.option("--workers", type=click.IntRange(1, 256), default=2, help="Processes.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=0, help="Draws the records.")
@json_option
def reproduce(folder: str, tests: int, workers: int, seed: int, as_json: bool) -> None:
    """Make tests of a night again from their records, and compare them byte for byte.

    Exits 2 if one differs.
    """
    from litmusfuzz.fuzz.campaign import pools
    from litmusfuzz.fuzz.campaign.nightly.reproduce import reproduced
    from litmusfuzz.fuzz.campaign.nightly.store import Store, StoreError

    try:
        store = Store(Path(folder), write=False)
    except StoreError as error:
        fail(str(error))
    try:
        with store, pools.open(workers) as pool:
            different, made = reproduced(store, tests, seed, pool)
    except KeyError as error:
        fail(f"{folder}: holds no tests: {error} is not noted")
    except sqlite3.Error as error:
        fail(f"{folder}: {error}")
    except BrokenExecutor:
        fail("a process that made tests was lost; nothing is compared")
    if as_json:
        print_json({"tests": made, "equal": made - len(different), "different": different})
    else:
        click.echo(f"{made - len(different)} of {made} tests made again, byte for byte")
        for each in different:
            click.echo(f"  differs: {each}")
    sys.exit(2 if different or not made else 0)
