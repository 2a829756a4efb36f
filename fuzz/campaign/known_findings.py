"""The known-findings file: findings that a nightly run may show and still be clean.

The file is reviewed like code and read strictly. An entry matches a finding by its key
(`litmusfuzz.fuzz.campaign.canonical`) or by its *cause*: the symptom and the kernels of the test.
See docs/decisions/0012-known-findings.md for why keys alone are not enough, and what a cause may
not hide.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import msgspec

from litmusfuzz.corpus.document import Document, FileError, read_text
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.textfile import is_cause_name
from litmusfuzz.fuzz.campaign.canonical import VERSION

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.document import Path_
    from litmusfuzz.corpus.model import LitmusTest

FORMAT_VERSION: Final = 2
SYMPTOMS: Final = (
    *("torn", "wrong", "blocked", "failed"),
    *("unsound", "crashed", "timed out", "out of memory"),
)
"""Symptoms: of a forbidden outcome its `causes.symptom`, of other findings their kind."""
KERNELS: Final = frozenset(op.kernel_class for op in OPS.values() if op.has_effect)
HEADER: Final = f"""\
# Known findings: a nightly run that shows no other finding is clean.
# Reviewed like code; docs/decisions/0012-known-findings.md says what an entry may hide.
litmusfuzz_known: {FORMAT_VERSION}
findings:
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A defect, recognized by its symptoms and by the kernels in the test.

    Parameters
    ----------
    symptoms : tuple of str
        Some of `SYMPTOMS`; the finding has one of them.
    kernels : tuple of str
        Faulty kernels (`OpDef.kernel_class`): the finding's test has at least one of them.
    beside : tuple of str, optional
        Further kernels that the test may have. None allows any, for findings that are never
        minimized, such as crashes.
    classes : tuple of str
        Executor classes (`canonical.executor_class`) that have the defect.
    """

    symptoms: tuple[str, ...]
    kernels: tuple[str, ...]
    beside: tuple[str, ...] | None
    classes: tuple[str, ...]

    def explains(self, test: LitmusTest, symptom: str, executor_class: str) -> bool:
        """True if a finding has this cause."""
        if symptom not in self.symptoms or executor_class not in self.classes:
            return False
        found = {node.definition.kernel_class for node in test.effects}
        if self.beside is not None and not found <= {*self.kernels, *self.beside}:
            return False
        return not found.isdisjoint(self.kernels)

    def may_explain(self, test: LitmusTest, symptom: str, executor_class: str) -> bool:
        """True if a reduced form of the test may have this cause; further kernels do not matter."""
        return replace(self, beside=None).explains(test, symptom, executor_class)


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """An entry of the file: the key or cause of known findings, and the reason to accept them.

    Parameters
    ----------
    why : str
        A reason, a link, or both.
    key : str
        The key of one finding; "" in an entry with a `cause`.
    since, expires : date, optional
        First and last day. After its last day an entry matches no finding.
    name : str
        Name of the cause, in the form of `textfile.Finding.cause`; any text with a key.
    """

    why: str
    key: str = ""
    cause: Cause | None = None
    since: date | None = None
    expires: date | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """Name in lists: the key, or the symptoms and kernels of the cause."""
        if self.cause is None:
            return self.key
        return f"{' or '.join(self.cause.symptoms)}: {' or '.join(self.cause.kernels)}"

    def expired(self, today: date) -> bool:
        """True after the last day of the entry."""
        return self.expires is not None and today > self.expires


@dataclass(frozen=True, slots=True)
class KnownFindings:
    """The entries of a file."""

    entries: tuple[KnownFinding, ...] = ()

    def match(
        self, key: str, test: LitmusTest, symptom: str, executor_class: str, today: date
    ) -> KnownFinding | None:
        """The entry that matches a finding by key, else by cause; None if the finding is new."""
        valid = [each for each in self.entries if not each.expired(today)]
        for each in valid:
            if each.key and each.key == key:
                return each
        for each in valid:
            if each.cause is not None and each.cause.explains(test, symptom, executor_class):
                return each
        return None

    def may_explain(self, test: LitmusTest, symptom: str, executor_class: str, today: date) -> bool:
        """True if an unreduced finding may turn out to be known by its cause."""
        causes = (each.cause for each in self.entries if not each.expired(today))
        return any(cause and cause.may_explain(test, symptom, executor_class) for cause in causes)

    def stale(self, seen: Iterable[KnownFinding]) -> tuple[KnownFinding, ...]:
        """Entries that are not in `seen`, in the order of the file."""
        shown = set(seen)
        return tuple(each for each in self.entries if each not in shown)


def is_key(text: str) -> bool:
    """True if the text has the form of a key (`canonical.key`)."""
    return re.fullmatch(rf"{VERSION}-[0-9a-f]{{16}}", text) is not None


# --- reading ---------------------------------------------------------------------------


class _Top(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    litmusfuzz_known: int
    findings: list[dict[str, Any]] | None = None


class _Cause(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    symptoms: list[str]
    kernels: list[str]
    beside: list[str] | None = None
    classes: list[str]


class _Finding(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    key: str = ""
    cause: dict[str, Any] | None = None
    why: str = ""
    link: str = ""
    since: str = ""
    expires: str = ""
    name: str = ""


def load(path: str | os.PathLike[str]) -> KnownFindings:
    """The entries in a file.

    Raises
    ------
    FileError
        For the first mistake in the file, in one line.
    """
    return loads(read_text(path), str(path))


def loads(text: str, source: str = "<text>") -> KnownFindings:
    """The entries in a text; `source` is its name in error messages."""
    return _Reader(text, source).known()


_VERSION_1: Final = (
    "is version 1 of the format, this program reads version 2: give each entry that has a"
    " cause a name (lower-case words joined by hyphens), and set the version to 2"
)


class _Reader(Document):
    """Reads and checks a known-findings file."""

    def known(self) -> KnownFindings:
        top: _Top = self.convert(self.data, _Top, ())
        if (version := top.litmusfuzz_known) != FORMAT_VERSION:
            text = f"unknown version {version}; this program reads version {FORMAT_VERSION}"
            raise self.error(("litmusfuzz_known",), _VERSION_1 if version == 1 else text)
        entries: list[KnownFinding] = []
        places: dict[tuple[str, Cause | None], int] = {}
        for place, data in enumerate(top.findings or ()):
            path: Path_ = ("findings", place)
            entry = self.finding(data, path)
            first = places.setdefault((entry.key, entry.cause), place)
            if first != place:
                where = self.line(("findings", first))
                field = "cause" if entry.cause else "key"
                raise self.error((*path, field), f"stands twice, first in line {where}")
            entries.append(entry)
        return KnownFindings(tuple(entries))

    def finding(self, data: Any, path: Path_) -> KnownFinding:
        raw: _Finding = self.convert(data, _Finding, path)
        if bool(raw.key) == bool(raw.cause):
            raise self.error(path, "an entry has a key or a cause, and not both")
        if raw.key and not is_key(raw.key):
            message = f"a key is {VERSION}- and 16 hex digits, got {raw.key[:80]!r}"
            raise self.error((*path, "key"), message)
        why = "; ".join(" ".join(each.split()) for each in (raw.why, raw.link) if each.strip())
        if not why:
            raise self.error((*path, "why"), "an entry says why, or has a link")
        if raw.cause is not None and not is_cause_name(raw.name):
            text = f"a cause's name is lower-case words joined by hyphens, got {raw.name[:80]!r}"
            raise self.error((*path, "name"), text)
        cause = None if raw.cause is None else self.cause(raw.cause, (*path, "cause"))
        since = self.day(raw.since, (*path, "since"))
        expires = self.day(raw.expires, (*path, "expires"))
        if since and expires and expires < since:
            raise self.error((*path, "expires"), f"{expires} is before {since}")
        return KnownFinding(why, raw.key, cause, since, expires, raw.name)

    def cause(self, data: Any, path: Path_) -> Cause:
        raw: _Cause = self.convert(data, _Cause, path)
        for field, names, there in (
            ("symptoms", raw.symptoms, SYMPTOMS),
            ("kernels", raw.kernels, KERNELS),
            ("beside", raw.beside or [], KERNELS),
        ):
            for place, name in enumerate(names):
                if name not in there:
                    message = f"no {name[:80]!r}; there are {', '.join(sorted(there))}"
                    raise self.error((*path, field, place), message)
        for field in ("symptoms", "kernels", "classes"):
            if not getattr(raw, field):
                raise self.error((*path, field), "names at least one")
        for place, name in enumerate(raw.classes):
            if not re.fullmatch(r"[^\s/]\S*/[^\s/]+", name):
                message = f"a class is EXECUTOR/KIND, as tf/xla; got {name[:80]!r}"
                raise self.error((*path, "classes", place), message)
        beside = None if raw.beside is None else tuple(raw.beside)
        return Cause(tuple(raw.symptoms), tuple(raw.kernels), beside, tuple(raw.classes))

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


def added(text: str, new: Sequence[KnownFinding], source: str = "<text>") -> str:
    """A file's text with entries appended; the existing text is kept byte for byte.

    Raises
    ------
    FileError
        If the text or a new entry is not valid, if an entry is known already, or if the list of
        findings is in brackets or not at the end of the text, so that nothing can be appended.
    """
    before = loads(text, source).entries if text else ()
    for entry in new:
        if any(entry.key == other.key for other in before):
            raise FileError(source, 0, (entry.key,), "is known already")
    entries = "".join(map(_written, new))
    loads(HEADER + entries, "what is to be added")
    begun = (text or HEADER).rstrip("\n") + "\n"
    if text and not re.search(r"^[\"']?findings[\"']?[ \t]*:", text, re.MULTILINE):
        begun += "findings:\n"
    try:
        if loads(more := begun + entries).entries == (*before, *new):
            return more
    except FileError:
        pass
    raise FileError(source, 0, ("findings",), "must be last, a list in lines indented by two")


def _written(entry: KnownFinding) -> str:
    """An entry with a key as YAML lines."""
    lines = f"  - key: {entry.key}\n"
    for field, text in (("name", entry.name), ("why", entry.why)):
        if text:
            lines += f"    {field}: {json.dumps(text, ensure_ascii=False)}\n"
    for field, day in (("since", entry.since), ("expires", entry.expires)):
        if day:
            lines += f"    {field}: {day.isoformat()}\n"
    return lines
