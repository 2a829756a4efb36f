"""The known-findings file: reads it strictly, as it is reviewed like code, and appends to it.

LitmusFuzz ships such a file (`shipped`), which every campaign takes by default.
"""

from __future__ import annotations

import json
import re
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from litmusfuzz.corpus.document import Document, FileError, read_text
from litmusfuzz.corpus.textfile import is_cause_name
from litmusfuzz.fuzz.executors.entries import load as load_entry
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.finding.canonical import VERSION
from litmusfuzz.fuzz.finding.defect import Raw, checked
from litmusfuzz.fuzz.finding.known_findings import (
    DEADLY,
    KERNELS,
    SYMPTOMS,
    Cause,
    KnownFinding,
    KnownFindings,
    Pattern,
)
from litmusfuzz.fuzz.finding.trials import Case
from litmusfuzz.fuzz.finding.versions import Versions, versions_between

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from litmusfuzz.corpus.document import Path_

FORMAT_VERSION: Final = 3
HEADER: Final = f"""\
# Known findings: a campaign that shows no other finding is clean.
# Reviewed like code; docs/decisions/0012-known-findings.md says what an entry may hide.
litmusfuzz_known: {FORMAT_VERSION}
findings:
"""


def is_key(text: str) -> bool:
    """True if the text has the form of a key (`canonical.key`)."""
    return re.fullmatch(rf"{VERSION}-[0-9a-f]{{16}}", text) is not None


class _Top(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    litmusfuzz_known: int
    findings: list[dict[str, Any]] | None = None


class _Pattern(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    symptoms: list[str]
    kernels: list[str]
    classes: list[str]
    beside: list[str] | None = None
    message: str = ""


class _Finding(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    key: str = ""
    finding: str = ""
    pattern: dict[str, Any] | None = None
    why: str = ""
    link: str = ""
    since: str = ""
    expires: str = ""
    name: str = ""
    versions: dict[str, Any] | None = None
    defect: dict[str, Any] | None = None


def shipped_file() -> Path:
    """The file of known findings that comes with LitmusFuzz."""
    return Path(str(files("litmusfuzz.corpus"))) / "known.yaml"


@cache
def shipped(executors: frozenset[str] | None = None) -> KnownFindings:
    """The known findings that come with LitmusFuzz.

    Parameters
    ----------
    executors : frozenset of str, optional
        Those whose findings the entries may match: the files of others are not read, as all of them
        take half a second.
    """
    path = shipped_file()
    known = _Reader(read_text(path), str(path)).known(path.parent, executors)
    return known if executors is None else known.about(executors)


def load(path: str | os.PathLike[str]) -> KnownFindings:
    """The entries in a file.

    Raises
    ------
    FileError
        For the first mistake in the file, in one line.
    """
    return loads(read_text(path), str(path), Path(path).parent)


def loads(text: str, source: str = "<text>", folder: Path = Path()) -> KnownFindings:
    """The entries in a text; `source` is its name in error messages.

    The files of causes are relative to `folder`.
    """
    return _Reader(text, source).known(folder)


def _of_others(data: Any, folder: Path, executors: Collection[str]) -> bool:
    """True if an entry of our own file names the finding of another executor, by its bytes."""
    file = data.get("finding") if isinstance(data, dict) else None
    if not isinstance(file, str):
        return False
    text = read_text(folder / file)
    return not any(f"\n  executor: {each}\n" in text for each in executors)


_OLD: Final = (
    "is version {} of the format, this program reads version 3: name the file of a minimized"
    " finding (`finding:`) in place of each `cause`, or turn it into a `pattern` of crashes"
)


class _Reader(Document):
    """Reads and checks a known-findings file."""

    def known(self, folder: Path, executors: Collection[str] | None = None) -> KnownFindings:
        """All entries; without causes of other executors if some are given."""
        top: _Top = self.convert(self.data, _Top, ())
        if (version := top.litmusfuzz_known) != FORMAT_VERSION:
            text = f"unknown version {version}; this program reads version {FORMAT_VERSION}"
            old = _OLD.format(version) if version in (1, 2) else text
            raise self.error(("litmusfuzz_known",), old)
        entries: list[KnownFinding] = []
        places: dict[tuple[str, str, Pattern | None, str], int] = {}
        for place, data in enumerate(top.findings or ()):
            path: Path_ = ("findings", place)
            if executors is not None and _of_others(data, folder, executors):
                continue
            entry = self.finding(data, path, folder)
            file = entry.cause.file if entry.cause else ""
            only = "" if entry.given_key or file or entry.pattern else entry.name
            first = places.setdefault((entry.given_key, file, entry.pattern, only), place)
            if first != place:
                where = self.line(("findings", first))
                form = "pattern" if entry.pattern else "finding" if entry.cause else "key"
                form = "name" if only else form
                raise self.error((*path, form), f"stands twice, first in line {where}")
            entries.append(entry)
        return KnownFindings(tuple(entries))

    def finding(self, data: Any, path: Path_, folder: Path) -> KnownFinding:
        raw: _Finding = self.convert(data, _Finding, path)
        forms = sum(map(bool, (raw.key, raw.finding, raw.pattern)))
        if forms > 1 or not (forms or raw.defect):
            raise self.error(path, "an entry has one of key, finding and pattern")
        if raw.key and not is_key(raw.key):
            message = f"a key is {VERSION}- and 16 hex digits, got {raw.key[:80]!r}"
            raise self.error((*path, "key"), message)
        why = "; ".join(" ".join(each.split()) for each in (raw.why, raw.link) if each.strip())
        if not why:
            raise self.error((*path, "why"), "an entry says why, or has a link")
        if not raw.name.isprintable():
            raise self.error((*path, "name"), f"must be one line, got {raw.name[:80]!r}")
        if not raw.key and not is_cause_name(raw.name):
            text = f"a cause's name is lower-case words joined by hyphens, got {raw.name[:80]!r}"
            raise self.error((*path, "name"), text)
        cause = self.cause(raw.finding, (*path, "finding"), folder) if raw.finding else None
        pattern = None if raw.pattern is None else self.pattern(raw.pattern, (*path, "pattern"))
        since = self.day(raw.since, (*path, "since"))
        expires = self.day(raw.expires, (*path, "expires"))
        if since and expires and expires < since:
            raise self.error((*path, "expires"), f"{expires} is before {since}")
        versions = self.versions(raw.versions or {}, (*path, "versions"))
        defect = None
        if raw.defect is not None:
            about: Raw = self.convert(raw.defect, Raw, (*path, "defect"))
            try:
                defect = checked(about, folder, raw.finding)
            except ValueError as error:
                field_, _, message = str(error).partition(": ")
                raise self.error((*path, "defect", field_), message) from None
        return KnownFinding(
            why, raw.key, cause, pattern, since, expires, raw.name, versions, defect
        )

    def versions(self, data: dict[str, Any], path: Path_) -> Versions:
        ranges = []
        for name, value in data.items():
            text = self.convert(value, str, (*path, name))
            try:
                ranges.append(versions_between(name, text))
            except ValueError as error:
                raise self.error((*path, name), str(error)) from None
        return Versions(tuple(ranges))

    def cause(self, file: str, path: Path_, folder: Path) -> Cause:
        try:
            entry = load_entry(folder / file)
        except FileError as error:
            raise self.error(path, str(error)) from None
        found = entry.finding
        if found is None:
            raise self.error(path, f"{file} has no finding; what is not minimized has a pattern")
        if not found.minimized:
            raise self.error(path, f"{file} is not minimized, and explains nothing else")
        if wants := outside_code(found.executor, found.configuration):
            raise self.error(path, f"{file} wants to run {wants}")
        return Cause(file, entry, Case.if_here(entry.test, found), str(folder / file))

    def pattern(self, data: Any, path: Path_) -> Pattern:
        raw: _Pattern = self.convert(data, _Pattern, path)
        for name_of, names, there in (
            ("symptoms", raw.symptoms, SYMPTOMS),
            ("kernels", raw.kernels, KERNELS),
            ("beside", raw.beside or [], KERNELS),
        ):
            for place, name in enumerate(names):
                if name not in there:
                    message = f"no {name[:80]!r}; there are {', '.join(sorted(there))}"
                    raise self.error((*path, name_of, place), message)
        for name_of in ("symptoms", "kernels", "classes"):
            if not getattr(raw, name_of):
                raise self.error((*path, name_of), "names at least one")
        for place, name in enumerate(raw.classes):
            if not re.fullmatch(r"[^\s/]\S*/[^\s/]+", name):
                message = f"a class is EXECUTOR/KIND, as tf/xla; got {name[:80]!r}"
                raise self.error((*path, "classes", place), message)
        if raw.message and not set(raw.symptoms) <= set(DEADLY):
            raise self.error((*path, "message"), f"only {', '.join(DEADLY)} have one")
        if not raw.message.isprintable():
            raise self.error((*path, "message"), f"must be one line, got {raw.message[:80]!r}")
        beside = None if raw.beside is None else tuple(raw.beside)
        first = tuple(raw.symptoms), tuple(raw.kernels), tuple(raw.classes)
        return Pattern(*first, beside, raw.message)

    def day(self, text: str, path: Path_) -> date | None:
        if not text:
            return None
        try:
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
                raise ValueError
            return date.fromisoformat(text)
        except ValueError:
            raise self.error(path, f"a date is YEAR-MONTH-DAY, got {text[:80]!r}") from None


# --- adding ----------------------------------------------------------------------------


def added(
    text: str, new: Sequence[KnownFinding], source: str = "<text>", folder: Path = Path()
) -> str:
    """A file's text with entries appended; the existing text is kept byte for byte.

    Raises
    ------
    FileError
        If the text or a new entry is not valid, if an entry is known already, or if the list of
        findings is in brackets or not at the end of the text, so that nothing can be appended.
    """
    before = loads(text, source, folder).entries if text else ()
    for entry in new:
        if any(entry.key == other.key for other in before):
            raise FileError(source, 0, (entry.key,), "is known already")
    entries = "".join(map(_written, new))
    loads(HEADER + entries, "what is to be added")
    begun = (text or HEADER).rstrip("\n") + "\n"
    if text and not re.search(r"^[\"']?findings[\"']?[ \t]*:", text, re.MULTILINE):
        begun += "findings:\n"
    try:
        if loads(more := begun + entries, source, folder).entries == (*before, *new):
            return more
    except FileError:
        pass
    raise FileError(source, 0, ("findings",), "must be last, a list in lines indented by two")


def _written(entry: KnownFinding) -> str:
    """An entry with a key as YAML lines."""
    lines = f"  - key: {entry.key}\n"
    for name_of, text in (("name", entry.name), ("why", entry.why)):
        if text:
            lines += f"    {name_of}: {json.dumps(text, ensure_ascii=False)}\n"
    for name_of, day in (("since", entry.since), ("expires", entry.expires)):
        if day:
            lines += f"    {name_of}: {day.isoformat()}\n"
    return lines
