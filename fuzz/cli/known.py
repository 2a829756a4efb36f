"""`litmusfuzz known`: the file of known findings, which no campaign reports as new."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import click
import msgspec

from litmusfuzz.corpus.document import FileError, read_text
from litmusfuzz.corpus.textfile import write_text
from litmusfuzz.fuzz.cli.campaigns import known_named
from litmusfuzz.fuzz.cli.common import (
    fail,
    file_argument,
    json_option,
    load_or_fail,
    print_json,
    refuse_allowed,
)
from litmusfuzz.fuzz.cli.experiments import compare
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.tables import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.textfile import Entry, Finding
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding

T = TypeVar("T")

MAX_FINDINGS: Final = 100_000
"""Of a report."""
MAX_LIST_BYTES: Final = 4 << 20
"""Of a list of a finding of a report."""


class Day(click.ParamType[date]):
    """A date, as 2026-11-22."""

    name = "date"

    def convert(
        self, value: str | date, param: click.Parameter | None, ctx: click.Context | None
    ) -> date:
        """From text; click reports the message."""
        try:
            return value if isinstance(value, date) else date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no date; write {date(2026, 11, 22)}", param, ctx)


@click.group(epilog="Example: litmusfuzz known list")
def known() -> None:
    """Print known findings, and add to a file of them; compare two findings."""


known.add_command(compare)


@known.command("list", epilog="Example: litmusfuzz known list known.yaml")
@click.argument("files", metavar="[FILE]", nargs=-1, type=click.Path())
@json_option
def list_(files: tuple[str, ...], as_json: bool) -> None:
    """Print the known findings that come with LitmusFuzz, and those of FILE.

    It is what a campaign knows with `--known FILE`: by what it recognizes each finding, of all
    versions. `litmusfuzz list findings` says what those of the versions that are installed do
    to a user, and what helps. `known list none FILE` prints FILE alone. A mistake in it is
    reported in one line.
    """
    from litmusfuzz.fuzz.finding.causes import symptoms_of
    from litmusfuzz.fuzz.finding.known_file import shipped

    try:
        entries = known_named(files, "FILE").load(None).entries
    except ValueError as error:
        fail(str(error))
    ours = set(shipped().entries)
    today = date.today()
    if as_json:
        print_json(
            [
                {
                    "title": each.title,
                    "name": each.name,
                    "shipped": each in ours,
                    "versions": {name: [first, last] for name, first, last in each.versions.ranges},
                    "why": each.why,
                    "key": each.key,
                    "finding": each.cause.file if each.cause else "",
                    "needs": _needs(each),
                    "pattern": asdict(each.pattern) if each.pattern else None,
                    "since": str(each.since or ""),
                    "expires": str(each.expires or ""),
                    "expired": each.expired(today),
                }
                for each in entries
            ]
        )
        return
    for each in entries:
        classes = ""
        if each.pattern is not None:
            beside = each.pattern.beside
            others = "any ops" if beside is None else " or ".join(beside) or "no other op"
            classes = f" beside {others} ({', '.join(each.pattern.classes)})"
            if each.pattern.message:
                classes += f", message {each.pattern.message!r}"
        if each.cause is not None:
            found = each.cause.finding
            shown = " or ".join(symptoms_of(found))
            where = f"{found.executor}/{found.configuration}"
            classes = f", {shown} in {where}, {_needs(each)}".rstrip(", ")
        until = f", {'expired' if each.expired(today) else 'until'} {each.expires}"
        days = f" [since {each.since or 'ever'}{until if each.expires else ''}]"
        if each.versions.ranges:
            classes += f", in {each.versions}"
        name = f"{each.name}: " if each.name and not each.cause else ""
        click.echo(f"{name}{each.title}{classes}{days}\n    {each.why}")


def _needs(entry: KnownFinding) -> str:
    """The settings that a cause needs, in words."""
    from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words

    case = entry.cause.case if entry.cause else None
    return needs_in_words(case.executor, case.config) if case else ""


@known.command(epilog="Example: litmusfuzz known add known.yaml nightly --why=LINK")
@file_argument
@click.argument("findings", metavar="FINDING...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--why", required=True, help="Reason why the findings are not reported as new, or a link."
)
@click.option(
    "--since", type=Day(), default=None, help="Day since which they are known; today if not given."
)
@click.option(
    "--expires", type=Day(), default=None, help="Day after which they count as new again."
)
@json_option
def add(
    file: str,
    findings: tuple[str, ...],
    why: str,
    since: date | None,
    expires: date | None,
    as_json: bool,
) -> None:
    """Append each FINDING to a known-findings FILE.

    FINDING is the file of a finding, a folder of such files, or a campaign's folder or its
    report.json: every finding that it reported as new, crashes included. What is known
    already is not added: by FILE, or by what LitmusFuzz comes with.
    """
    from litmusfuzz.fuzz.finding.known_file import added
    from litmusfuzz.fuzz.finding.known_file import loads as loads_known
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding

    folder = Path(file).parent
    try:
        text = read_text(file) if Path(file).exists() else ""
        keys = {entry.key for entry in loads_known(text, file, folder).entries} if text else set()
    except FileError as error:
        fail(str(error))
    if Path(file).is_symlink() and not text:
        fail(f"{file}: is a link to no known-findings file")
    reason = " ".join(why.split())
    if not reason:
        fail("--why: is empty")
    if not reason.isprintable():
        fail("--why: has control characters")
    if expires and expires < (since or date.today()):
        fail(f"--expires: {expires} is before {since or 'today'}")
    new: list[KnownFinding] = []
    already: list[str] = []
    shipped_as: dict[str, str] = {}
    for path, key, name, found in _named(findings):
        if key in keys:
            already.append(path)
            continue
        if found is not None and (known_as := _shipped_as(key, found)):
            shipped_as[path] = known_as
            continue
        keys.add(key)
        day = since or date.today()
        new.append(KnownFinding(reason, key, since=day, expires=expires, name=name))
    try:
        made = added(text, new, file, folder)
    except FileError as error:
        fail(str(error))
    if new:
        write_text(made, Path(file).resolve())  # a link stays one
    if as_json:
        rows = [{"key": each.key, "name": each.name} for each in new]
        both = {"known_already": [*already, *shipped_as], "shipped_as": shipped_as}
        print_json({"file": file, "added": rows, **both})
        return
    for each in new:
        click.echo(f"{each.key}  {each.name}")
    for path, title in shipped_as.items():
        click.echo(f"{one_line(path)}: known already as {title}, which comes with LitmusFuzz")
    known_before = len(already) + len(shipped_as)
    click.echo(f"{one_line(file)}: {len(new)} added, {known_before} known already")


def _shipped_as(key: str, found: Finding) -> str:
    """Title of the known finding that LitmusFuzz comes with, and that has this key; or "".

    It holds for the versions in which the finding was seen.
    """
    from litmusfuzz.fuzz.finding.known_file import shipped

    known = shipped(frozenset((found.executor,))).of(found.versions)
    today = date.today()
    same = (each for each in known.entries if each.key == key and not each.expired(today))
    return next((each.title for each in same), "")


def _named(paths: Sequence[str]) -> Iterator[tuple[str, str, str, Finding | None]]:
    """File, key and name of each finding, and how it showed its forbidden outcome if it has one."""
    from litmusfuzz.fuzz.finding.canonical import key_of
    from litmusfuzz.fuzz.store.folder import DATABASE
    from litmusfuzz.reports.outputs import JSON

    for path in paths:
        if path.endswith(".json"):
            yield from _reported_as_new(path)
        elif (Path(path) / DATABASE).is_file() or (Path(path) / JSON).is_file():
            yield from _reported_as_new(str(Path(path) / JSON))
        else:
            for file, entry in _entries([path]):
                assert entry.finding is not None
                refuse_allowed(file, entry)
                if not entry.finding.minimized:
                    fail(f"{file}: is not minimized, so that its key recurs in no other run")
                yield file, key_of(entry), entry.test.name, entry.finding


class _Reported(msgspec.Struct):
    """A finding in a JSON report, as far as it is read here."""

    key: str
    kind: FindingKind
    file: str
    entry: str
    known: str
    cause: str = ""
    config_class: str = ""
    reason: msgspec.Raw = msgspec.Raw(b"[]")
    also_on: msgspec.Raw = msgspec.Raw(b"[]")


class _Report(msgspec.Struct):
    """A JSON report. What is not read takes no memory."""

    findings: Annotated[list[_Reported], msgspec.Meta(max_length=MAX_FINDINGS)]


def _reported_as_new(path: str) -> Iterator[tuple[str, str, str, Finding | None]]:
    """Findings that a campaign reported as new, from its JSON report."""
    from litmusfuzz.fuzz.finding.known_file import is_key
    from litmusfuzz.reports.outputs import MAX_JSON_BYTES

    try:
        report = msgspec.json.decode(read_text(path, MAX_JSON_BYTES), type=_Report)
        for each in report.findings:
            if each.known:
                continue
            if not is_key(each.key):
                raise ValueError(f"{each.key!r:.80} is no key")
            entry = loads(each.entry, path)
            refuse_allowed(f"{path}: {entry.test.name}", entry)
            name, *keys = _name_and_keys(each, entry)
            if keys[0] != each.key:
                raise ValueError(f"{name} has not the key {each.key!r:.80}")
            for key in keys:
                yield str(Path(path).parent / each.file), key, name, entry.finding
    except FileError as error:
        fail(str(error))
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        fail(f"{path}: is not the report.json of a campaign: {error}")


def _name_and_keys(reported: _Reported, entry: Entry) -> tuple[str, ...]:
    """What a finding of a report is called, and its keys, that of its test first.

    All of it is made anew from the test, the message and the ops: an entry hides whatever has its
    key, and its name says what that is.
    """
    from litmusfuzz.fuzz.campaign.cluster_validation import CAUSE
    from litmusfuzz.fuzz.finding.canonical import key, key_of
    from litmusfuzz.fuzz.finding.worker_deaths import death_cause, key_from_parts, telling_ops

    kind, of, test = reported.kind, reported.config_class, entry.test
    reason, also_on = (
        _listed(reported.reason, list[str]),
        _listed(reported.also_on, list[list[str]]),
    )
    if also_on and kind in (FindingKind.FORBIDDEN, FindingKind.UNSOUND):
        raise ValueError(f"{reported.cause!r:.80} is no crash, so it has no ops of others")
    if kind is FindingKind.FORBIDDEN:
        return test.name, key_of(entry) if entry.finding else ""
    if kind is FindingKind.UNSOUND:
        return CAUSE, key(test, kind=kind, rules=(), executor_class=of)
    # Of a crash the test has only a number for a name.
    message = next(iter(reason), "")
    tests = [{node.definition.kernel_class for node in test.effects}, *also_on]
    common = frozenset.intersection(*map(telling_ops, tests))
    names = (death_cause(message, op) for op in sorted(common))
    if reported.cause not in names:
        raise ValueError(f"{reported.cause!r:.80} is not what its tests have in common")
    return reported.cause, *(key_from_parts(kind, of, message, ops) for ops in tests)


def _listed(raw: msgspec.Raw, type_: type[T]) -> T:
    """A list of a report, which takes up to thirty times the memory of its text."""
    if len(raw) > MAX_LIST_BYTES:
        raise ValueError(f"has a list of more than {MAX_LIST_BYTES} bytes")
    return msgspec.json.decode(raw, type=type_)


def _entries(paths: Sequence[str]) -> Iterator[tuple[str, Entry]]:
    """The findings in files and folders; other files of a folder are left out."""
    for path in paths:
        folder = Path(path)
        files = [path]
        if folder.is_dir():
            files = sorted(str(each) for each in folder.glob("*.yaml") if each.is_file())
        found = [(each, load_or_fail(each)) for each in files]
        kept = [(each, entry) for each, entry in found if entry.finding is not None]
        if not kept:
            fail(f"{path}: has no finding")
        yield from kept
