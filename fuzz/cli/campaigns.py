"""What `litmusfuzz run` and `litmusfuzz nightly` share: folders, resumption, known findings."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import click

from litmusfuzz.fuzz.cli.common import (
    complain,
    fail,
    load_or_fail,
    print_json,
    print_text,
    python_or_fail,
    refuse_outside,
    tests_below,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.finding.known_findings import KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.events import CampaignStarted, Configured, Event
    from litmusfuzz.reports.report import Report

MAX_WORKERS = 16
"""Processes of a campaign that is continued, or two for each processor: more of them only if the
command line names the number."""
MAX_SEEDS = 4_000
MAX_SEED_BYTES = 16 << 20
"""Of all seeds as text: they stand in the campaign's first event."""


class KnownOption(NamedTuple):
    """What `--known` says: whether those that are shipped are known, and the user's own file."""

    shipped: bool
    file: str | None

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the option that say this."""
        return (*(() if self.shipped else (NO_KNOWN,)), *((self.file,) if self.file else ()))

    def load(self, executors: Collection[str] | None) -> KnownFindings:
        """The known findings; of those that are shipped only those of these executors, if given.

        Raises
        ------
        FileError
            For the first mistake in the file.
        """
        from litmusfuzz.fuzz.finding.known_file import load, shipped
        from litmusfuzz.fuzz.finding.known_findings import NOTHING

        of = None if executors is None else frozenset(executors)
        known = shipped(of) if self.shipped else NOTHING
        return known if self.file is None else known.and_of(load(self.file))


NO_KNOWN: Final = "none"
"""Given to `--known`: nothing that is shipped is known."""


def known_named(values: Sequence[str], option: str = "--known") -> KnownOption:
    """From the values of the option.

    Raises
    ------
    ValueError
        If they name more than one file.
    """
    named = [each for each in values if each != NO_KNOWN]
    if len(named) > 1:
        raise ValueError(f"{option}: one file at most, got {', '.join(named)}")
    return KnownOption(NO_KNOWN not in values, named[0] if named else None)


def _known_given(_: click.Context, param: click.Parameter, values: Sequence[str]) -> KnownOption:
    try:
        return known_named(values, param.opts[0])
    except ValueError as error:
        fail(str(error))


known_option = click.option(
    "--known",
    "known_given",
    type=click.Path(),
    multiple=True,
    callback=_known_given,
    metavar="FILE",
    help="File of known findings, besides those that come with LitmusFuzz (`known list`); `none` "
    "leaves these out.",
)
resume_option = click.option(
    "--resume", type=click.Path(), default=None, help="Folder of a campaign to continue."
)


def given(name: str) -> bool:
    """True if an option was on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def check_resume(resume: str, allowed: Collection[str]) -> None:
    """Refuse options that a campaign that continues has already."""
    for option in click.get_current_context().command.params:
        name = option.name or ""
        if name not in {"resume", "known_given", "as_json", *allowed} and given(name):
            fail(f"--resume {resume}: continues with its own options, without {option.opts[0]}")


def command_line() -> str:
    """The command line, for the first event of a campaign: it, and the folder here, are UTF-8."""
    for text in (*sys.argv[1:], os.getcwd()):
        try:
            text.encode()
        except UnicodeEncodeError:
            fail(f"{text}: is not UTF-8, in which campaigns are recorded")
    return shlex.join(["litmusfuzz", *sys.argv[1:]])


def known_findings(named: KnownOption, executors: Collection[str]) -> KnownFindings:
    """The known findings of a campaign on these executors."""
    from litmusfuzz.corpus.textfile import FileError

    try:
        return named.load(executors)
    except FileError as error:
        fail(str(error))


def known_of(resume: str, started: CampaignStarted, named: KnownOption) -> KnownFindings:
    """The known findings of a campaign that continues: its own, or those that are named now."""
    from litmusfuzz.corpus.textfile import FileError

    executors = {each.executor for each in started.configurations}
    if given("known_given"):
        return known_findings(named, executors)
    try:
        return KnownOption(started.shipped_known, started.known).load(executors)
    except FileError as error:
        fail(f"--resume: {resume}: its known findings: {error}; --known names another file")


def deadly_ops(known: KnownFindings, python: str | None) -> tuple[str, ...]:
    """Ops that are known to end their process, in the versions that are installed."""
    from litmusfuzz.fuzz.executors.installed import installed

    today = date.today()
    if not known.patterns(today).entries:
        return ()
    return tuple(sorted(known.of(installed(python)).deadly_ops(today)))


def open_store(folder: Path, *, write: bool) -> Store:
    """The store in a folder."""
    from litmusfuzz.fuzz.store.folder import StoreError
    from litmusfuzz.fuzz.store.store import Store

    try:
        return Store(folder, write=write)
    except StoreError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or folder}: {error.strerror}")


def new_store(out: str) -> Store:
    """The store of a new campaign, in a folder that has none."""
    if not out:
        fail("--out: names no folder")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        fail(f"--out: {out}: {error.strerror}")
    store = open_store(folder, write=True)
    if store.started is not None:
        store.close()
        fail(f"--out: {folder}: holds a campaign; --resume {folder} continues it")
    if any((folder / "shards").glob("*")):  # where shards write their logs, which are deleted
        store.close()
        fail(f"--out: {folder / 'shards'}: holds files that are of no campaign")
    return store


def seeds_from(
    paths: Sequence[str], executors: Collection[str], families: Mapping[str, float]
) -> dict[str, str]:
    """The tests of files and folders, as texts by name.

    Parameters
    ----------
    paths : sequence of str
    executors : collection of str
    families : mapping of str to float
        Those that were chosen, with weights; empty for all.
    """
    from litmusfuzz.corpus.textfile import Entry, dumps
    from litmusfuzz.fuzz.executors.table import executor_class
    from litmusfuzz.fuzz.generators.seeds import Seeds

    found: dict[str, str] = {}
    size = 0
    for given_path in paths:
        path = Path(given_path)
        files = sorted(tests_below(path)) if path.is_dir() else [path]
        if not files:
            fail(f"--seeds: {given_path}: has no test (*.yaml)")
        for file in files:
            name = "/".join((*file.relative_to(path).parts[:-1], file.stem))
            name = name if path.is_dir() else file.stem
            if name in found:
                fail(f"--seeds: two files are named {name}")
            found[name] = dumps(Entry(load_or_fail(str(file)).test))
            size += len(found[name])
            if len(found) > MAX_SEEDS or size > MAX_SEED_BYTES:
                fail(f"--seeds: more than {MAX_SEEDS} tests, or than {MAX_SEED_BYTES >> 20} MiB")
    if not found:
        return found
    if families and "mutations" not in families:
        fail("--seeds: only the family mutations uses them, and --families does not name it")
    seeds = Seeds.of(found)
    assert seeds is not None
    if not any(seeds.supported(executor_class(each).support) for each in executors):
        fail("--seeds: none of these tests is within the support of an executor")
    return found


def new_folder(parent: Path, name: str) -> Path:
    """A folder of that name, or with a number after it if it exists."""
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        except OSError as error:
            fail(f"{folder}: {error.strerror}")
        else:
            return folder


def begin(store: Store, event: Event) -> None:
    """Store the event with which a campaign starts or continues."""
    from msgspec.structs import replace

    from litmusfuzz.fuzz.store.history import next_number
    from litmusfuzz.reports.events import CampaignStarted

    if isinstance(event, CampaignStarted):
        event = replace(event, number=next_number(store.folder))
    try:
        store.append(0, event)
    except (OSError, sqlite3.Error) as error:
        store.close()
        fail(f"{store.path}: {error}")


def started_in(resume: str, *, unattended: bool) -> tuple[CampaignStarted, Report]:
    """Settings and state of a campaign to resume."""
    with open_store(Path(resume), write=False) as store:
        started = store.started
        if started is None:
            fail(f"--resume: {resume}: holds no campaign")
        if started.unattended is not unattended:
            command = "nightly" if started.unattended else "run"
            fail(f"--resume: {resume}: `litmusfuzz {command} --resume` continues it")
        most = max(MAX_WORKERS, 2 * (os.cpu_count() or 1))
        if started.workers > most and not (given("workers") or given("dask")):
            many = f"wants to start {started.workers} processes"
            fail(f"--resume: {resume}: {many}; if you want that, add --workers {started.workers}")
        return started, store.fold.report(resume)


def reopened(resume: str, started: CampaignStarted) -> Store:
    """The store of a campaign to continue, with the settings that were checked, and no others."""
    store = open_store(Path(resume), write=True)
    if store.started != started:
        store.close()
        fail(f"--resume: {resume}: was replaced by another campaign just now")
    return store


def check_trusted(
    resume: str, started: CampaignStarted, python: str | None, engine: str | None
) -> None:
    """Refuse a campaign that runs code from outside LitmusFuzz which only its folder names.

    Parameters
    ----------
    resume : str
        The folder.
    started : CampaignStarted
    python, engine : str or None
        The interpreter and the engine of the command line.
    """
    from litmusfuzz.fuzz.executors.trust import named_engine, outside_code

    if started.python is not None and python is None:
        wants = f"the interpreter {started.python}"
        refuse_outside(resume, wants, f"--python {shlex.quote(started.python)}")
    if python is not None and python_or_fail(python) != started.python:
        ran = f"the interpreter {started.python}" if started.python else "this interpreter"
        fail(f"--python: {resume}: continues with {ran}, not with {python}")
    named = set() if engine is None else {engine, str(Path(engine).absolute())}
    for each in started.configurations:
        wants = outside_code(each.executor, each.name)
        theirs = named_engine(each.name)
        if wants and theirs not in named:
            options = () if started.unattended else (f"--engine {shlex.quote(theirs)}",)
            refuse_outside(resume, wants, *options)


def configured(
    executors: Sequence[tuple[str, *tuple[Config, ...]]], model: Model | None
) -> tuple[Configured, ...]:
    """The configurations of executors, as a campaign's first event has them.

    Parameters
    ----------
    executors : sequence of (str, *Config)
    model : Model or None
        Judges all outcomes; None for the model that each configuration guarantees.
    """
    from litmusfuzz.fuzz.campaign.configured import configured as configured_one

    return tuple(
        configured_one(name, config, model, group)
        for group, (name, *configs) in enumerate(executors)
        for config in configs
    )


def finish(report: Report, *, as_json: bool) -> NoReturn:
    """Print the result of a campaign, and exit."""
    from litmusfuzz.reports.outputs import as_json as report_json
    from litmusfuzz.reports.summary import summary

    if as_json:
        print_json(report_json(report))
    else:
        print_text(summary(report))
    for each in filter(None, (report.complaint, *report.damaged)):
        complain(" ".join(each.split()))
    sys.exit(report.exit_code())
