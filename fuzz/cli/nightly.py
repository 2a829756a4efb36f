"""`litmusfuzz nightly`: campaigns that run unattended; `status` and `reproduce`: of campaigns."""

from __future__ import annotations

import sqlite3
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.fuzz.cli.campaigns import (
    begin,
    check_resume,
    check_trusted,
    command_line,
    finish,
    given,
    known_of,
    known_option,
    new_store,
    open_store,
    reopened,
    resume_option,
    started_in,
)
from litmusfuzz.fuzz.cli.common import (
    MAX_NUMBER,
    MAX_SEED,
    complain,
    fail,
    json_option,
    print_json,
    python_option,
    trust_option,
)
from litmusfuzz.fuzz.cli.options import NIGHTLY, asked, options_of

if TYPE_CHECKING:
    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.reports.events import CampaignResumed, CampaignStarted

SELFTEST_S = 600.0
SILENT_S = 180.0
"""A campaign that still runs updates its file `stats` more often."""
LONG_S = 3600.0
"""Shortest nightly run that runs the mutants by default."""


@click.command(epilog="Example: litmusfuzz nightly --time 8h --known known.yaml --out nightly")
@options_of(NIGHTLY)
@python_option
@trust_option
@click.option(
    "--out", type=click.Path(), default="nightly", help="New folder for the reports and findings."
)
@resume_option
@known_option
@click.option(
    "--keep",
    type=click.IntRange(0, MAX_NUMBER),
    default=30,
    help="Nightly runs beside this one, and itself, that stay; older ones are pruned. 0: all stay.",
)
@click.option(
    "--dask",
    default=None,
    help="Address of a Dask scheduler whose workers are used: tcp://host:8786.",
)
@json_option
def nightly(
    *,
    trust: bool,
    out: str,
    resume: str | None,
    known_given: KnownOption,
    keep: int,
    dask: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Fuzz all executors unattended, and write reports.

    Every executor's configurations get a share of the time. SIGTERM and Ctrl-C end the run
    with all reports, a second one at once; --resume continues it: for the time left, or for
    --time more. Exits 1 if there is a finding that --known does not name, crashes included; 2
    if the canary or a mutant went unreported; 3 if there is none, but it was interrupted, or a
    configuration did not run --min-graphs graphs.
    """
    from litmusfuzz.fuzz.nightly import pools
    from litmusfuzz.fuzz.nightly.many import Nightly
    from litmusfuzz.fuzz.store.folder import StoreError
    from litmusfuzz.reports.events import CampaignResumed
    from litmusfuzz.reports.terminal import LiveView

    command, time_s, workers = command_line(), options["asked_s"], options["workers"]
    first: CampaignStarted | CampaignResumed
    if resume is not None:
        check_resume(resume, ("asked_s", "workers", "keep", "dask", "python", "trust"))
        started, so_far = started_in(resume, unattended=True)
        if not trust:
            check_trusted(resume, started, options["python"], None)
        known = known_of(resume, started, known_given)
        workers = workers if given("workers") else started.workers
        asked_s = round(so_far.spent_s + time_s, 3) if given("asked_s") else so_far.asked_s
        first = CampaignResumed(asked_s=asked_s, workers=workers)
    else:
        selftest_s = options["selftest_s"] or 0.0
        if selftest_s > time_s:
            fail("--selftest: longer than --time")
        first, known = asked(
            options,
            known_given,
            command=command,
            unattended=True,
            selftest_s=selftest_s or (SELFTEST_S if time_s >= LONG_S else 0.0),
        )
    try:
        # Without workers there is no run, and nothing to resume.
        with (
            pools.open(workers, dask) as pool,
            new_store(out) if resume is None else reopened(resume, started) as store,
            LiveView(sys.stderr if as_json else sys.stdout, as_json=as_json) as view,
        ):
            begin(store, first)
            report = Nightly(
                store, known, view, pool, local=dask is None, keep=keep, say=view.say
            ).run()
    except pools.PoolError as error:
        fail(f"--dask: {error}")
    except StoreError as error:  # the log of a shard of another version
        fail(str(error))
    finish(report, as_json=as_json)


@click.command(epilog="Example: litmusfuzz status nightly")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path())
@json_option
def status(folders: tuple[str, ...], as_json: bool) -> None:
    """Print the state of campaigns, of `run` and `nightly`.

    The state of the campaign in each FOLDER comes from its file `stats`. One that claims to
    run but has not updated the file for three minutes is silent: it was killed, or the
    files of its machine arrive late. Exits 2 if a folder has no such file; the others are
    listed.
    """
    from litmusfuzz.corpus.document import FileError, read_text
    from litmusfuzz.fuzz.store.folder import has_writer
    from litmusfuzz.reports.stats import number, read, together

    runs = {}
    problems = []
    for folder in folders:
        path = Path(folder) / "stats"
        try:
            found = read(read_text(path))
        except FileError as error:
            problems.append(str(error))
            continue
        if "state" not in found:
            problems.append(f"{path}: is not the stats file of a campaign")
            continue
        # Either way: a clock that was set back would keep a killed campaign alive.
        quiet = abs(time.time() - number(found, "last_update")) > SILENT_S
        if found["state"] == "runs" and quiet and not has_writer(Path(folder)):
            found["state"] = "silent"
        runs[folder] = found
    if as_json:
        print_json(runs)
    elif runs:
        click.echo(together(runs))
    for each in problems:
        complain(each)
    sys.exit(2 if problems else 0)


@click.command(epilog="Example: litmusfuzz reproduce nightly --tests 100")
@click.argument("folder", type=click.Path())
@click.option(
    "--tests",
    type=click.IntRange(1, MAX_NUMBER),
    default=1000,
    help="Limit on the tests that are generated again.",
)
@click.option("--workers", type=click.IntRange(1, 256), default=2, help="Processes.")
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=0, help="Seed of the choice of tests."
)
@json_option
def reproduce(folder: str, tests: int, workers: int, seed: int, as_json: bool) -> None:
    """Generate the tests of a campaign again, and compare.

    Takes the run or nightly run in FOLDER, and compares its tests byte for byte. Exits 2 if a
    test differs.
    """
    from litmusfuzz.fuzz.commands.reproduce import reproduced
    from litmusfuzz.fuzz.nightly import pools
    from litmusfuzz.fuzz.store.folder import StoreError

    try:
        with open_store(Path(folder), write=False) as store, pools.open(workers) as pool:
            different, made = reproduced(store, tests, seed, pool)
            interruption = store.fold.report(folder).interruption
    except StoreError as error:
        fail(str(error))
    except sqlite3.Error as error:
        fail(f"{folder}: {error}")
    except BrokenExecutor:
        fail("a process that generated tests was lost; nothing is compared")
    if not made:
        fail(f"{folder}: holds no tests")
    if as_json:
        data = {"tests": made, "equal": made - len(different), "different": different}
        print_json(data | {"interruption": interruption})
    else:
        click.echo(f"{made - len(different)} of {made} tests are the same, byte for byte")
        for each in different:
            click.echo(f"  differs: {each}")
        if interruption:
            click.echo(f"the campaign was {interruption}")
    if different:
        fail(f"{folder}: {len(different)} of {made} tests differ")
