"""`litmusfuzz nightly`, `status` and `reproduce`: campaigns that run unattended."""

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
    EXECUTORS,
    FAMILIES,
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
"""A nightly run that still runs updates its file `stats` more often."""
LONG_S = 3600.0
"""Shortest nightly run that runs the mutants by default."""


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


@click.command(epilog="Example: litmusfuzz nightly --time 8h --known known.yaml --out nightly")
@click.option("--time", "time_s", type=Duration(), default="2h", help="Time to fuzz for.")
@click.option(
    "--workers",
    type=click.IntRange(1, 4096),
    default=2,
    help="Processes; with --dask, threads of the cluster.",
)
@click.option(
    "--out", type=click.Path(), default="nightly", help="New folder for the reports and findings."
)
@click.option(
    "--resume", type=click.Path(), default=None, help="Folder of a nightly run to continue."
)
@click.option(
    "--known", "known_file", type=click.Path(), default=None, help="File of known findings."
)
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="Random if not given.")
@click.option(
    "--executors",
    default=ALL,
    type=EXECUTORS,
    help="As for run; those that cannot run here are left out.",
)
@click.option("--families", type=FAMILIES, default=None, help="As for run.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions per graph.")
@click.option(
    "--shard-time",
    "shard_s",
    type=Duration(),
    default=None,
    help="Length of a shard; 60s or less if not given.",
)
@python_option
@click.option(
    "--selftest",
    "selftest_s",
    type=Duration(),
    default=None,
    help="Limit on the self-test with mutants; 10m if --time is 1h or more, else no self-test.",
)
@click.option("--disk", type=Size(), default="2GB", help="Limit on the size of the folder.")
@click.option(
    "--dask",
    default=None,
    help="Address of a Dask scheduler whose workers are used: tcp://host:8786.",
)
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
    shard_s: float | None,
    python: str | None,
    selftest_s: float | None,
    disk: int,
    dask: str | None,
    as_json: bool,
) -> None:
    """Fuzz all executors unattended, and write reports.

    Every executor's configurations get a share of the time. SIGTERM and Ctrl-C end the run
    with all reports, a second one at once; --resume continues it for the time left. Exits 1
    if there is a finding that --known does not name, 2 if the canary or a mutant went
    unreported.
    """
    from random import SystemRandom

    from litmusfuzz.fuzz.campaign import pools
    from litmusfuzz.fuzz.campaign.nightly.coordinator import Nightly, new_run_facts
    from litmusfuzz.fuzz.campaign.nightly.store import Store, StoreError

    known = _known(known_file)
    if resume is None and selftest_s and selftest_s > time_s:
        fail("--selftest: longer than --time")
    if resume is None:
        chosen = systems_of(executors, None, None)
        facts = new_run_facts(
            command=shlex.join(["litmusfuzz", *sys.argv[1:]]),
            seed=SystemRandom().randrange(1 << 31) if seed is None else seed,
            asked_s=time_s,
            workers=workers,
            executors=[(name, *(each.name for each in configs)) for name, *configs in chosen],
            families=families_of(families, [name for name, *_ in chosen]),
            count=count,
            shard_s=shard_s,
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
                fail(f"--resume: {folder}: holds no nightly run")
            workers = facts.get("workers", store.meta["workers"])
    terminal = sys.stderr.isatty()

    def show(report: NightlyReport) -> None:
        if terminal:
            click.echo(f"\r\x1b[K{_line(report)}", err=True, nl=False)

    try:
        # Without workers there is no run, and nothing to resume.
        with pools.open(workers, dask) as pool, opened(write=True) as store:
            if resume is None and store.meta:
                fail(f"--out: {folder}: holds a nightly run; --resume {folder} continues it")
            store.set_meta(**facts)
            report = Nightly(store, known, pool, show, local=dask is None).run()
    except pools.PoolError as error:
        fail(f"--dask: {error}")
    except StoreError as error:  # the log of a shard of another version
        fail(str(error))
    except sqlite3.Error as error:
        there = f"; --resume {folder} continues" if "full" in str(error) else ""
        fail(f"{folder}: {error}{there}")
    if terminal:
        click.echo("", err=True)
    if as_json:
        click.echo((folder / "nightly.json").read_text(encoding="utf-8"))
    else:
        click.echo((folder / "summary.md").read_text(encoding="utf-8"))
    sys.exit(report.exit_code())


def _given(name: str) -> bool:
    """Return True if an option was on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _only_with(resume: str) -> None:
    """Refuse options that a nightly run that continues has already."""
    for name in (
        "time_s",
        "out",
        "seed",
        "executors",
        "families",
        "count",
        "shard_s",
        "python",
        "selftest_s",
        "disk",
    ):
        if _given(name):
            option = {"shard_s": "shard-time"}.get(name) or name.split("_")[0]
            fail(f"--resume {resume}: continues with its own options, without --{option}")


def _known(file: str | None) -> KnownFindings:
    from litmusfuzz.corpus.textfile import FileError
    from litmusfuzz.fuzz.campaign.known_findings import KnownFindings, load

    if file is None:
        return KnownFindings()
    try:
        return load(file)
    except FileError as error:
        fail(str(error))


def _line(report: NightlyReport) -> str:
    """The state of a nightly run, on a terminal."""
    return (
        f"{report.spent_s:.0f} of {report.asked_s:.0f} s  {report.graphs} graphs"
        f"  {report.outcomes} outcomes  {len(report.findings)} findings, {len(report.new)} new"
    )


@click.command(epilog="Example: litmusfuzz status nightly")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path())
@json_option
def status(folders: tuple[str, ...], as_json: bool) -> None:
    """Print the state of nightly runs.

    The state of the run in each FOLDER comes from its file `stats`. A run that claims to
    run but has not updated the file for three minutes is silent: it was killed, or the
    files of its machine arrive late.
    """
    from litmusfuzz.fuzz.campaign.nightly.store import has_writer
    from litmusfuzz.reports.stats import number, read, together

    runs = {}
    for folder in folders:
        path = Path(folder) / "stats"
        try:
            runs[folder] = read(path.read_text(encoding="utf-8"))
            if "state" not in runs[folder]:
                fail(f"{path}: is not the stats file of a nightly run")
            quiet = time.time() - number(runs[folder], "last_update") > SILENT_S
            if runs[folder]["state"] == "runs" and quiet and not has_writer(Path(folder)):
                runs[folder]["state"] = "silent"
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}")
    if as_json:
        print_json(runs)
    else:
        click.echo(together(runs))


@click.command(epilog="Example: litmusfuzz reproduce nightly --tests 100")
@click.argument("folder", type=click.Path())
@click.option(
    "--tests",
    type=click.IntRange(min=1),
    default=1000,
    help="Limit on the tests that are generated again.",
)
@click.option("--workers", type=click.IntRange(1, 256), default=2, help="Processes.")
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=0, help="Seed of the choice of tests."
)
@json_option
def reproduce(folder: str, tests: int, workers: int, seed: int, as_json: bool) -> None:
    """Generate the tests of a nightly run again, and compare.

    Takes the run in FOLDER, and compares its tests byte for byte. Exits 2 if a test differs.
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
        fail(f"{folder}: holds no tests: {error} is missing")
    except sqlite3.Error as error:
        fail(f"{folder}: {error}")
    except BrokenExecutor:
        fail("a process that generated tests was lost; nothing is compared")
    if as_json:
        print_json({"tests": made, "equal": made - len(different), "different": different})
    else:
        click.echo(f"{made - len(different)} of {made} tests are the same, byte for byte")
        for each in different:
            click.echo(f"  differs: {each}")
    sys.exit(2 if different or not made else 0)
