"""The open tests of a campaign: their files, and which known findings may explain them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.finding.canonical import executor_class
from litmusfuzz.fuzz.finding.causes import explains, may_show, symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.reports.open_tests import Pending

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.finding.known_findings import Cause, KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.open_tests import UncheckedTest, UnconfirmedTest
    from litmusfuzz.reports.report import Report, ReportedFinding


class OpenTests:
    """Reads the files of open tests, each once as long as it does not change.

    Parameters
    ----------
    store : Store
    known : KnownFindings
    today : date
        Entries of the known-findings file expire.

    Attributes
    ----------
    entry_of : dict of str to Entry
        By file, what those have that were read.
    unreadable : dict of str to str
        Maps a missing or damaged file to the error.
    """

    def __init__(self, store: Store, known: KnownFindings, today: date) -> None:
        self.store = store
        self.known = known
        self.today = today
        self.entry_of: dict[str, Entry] = {}
        self.unreadable: dict[str, str] = {}
        self._entries: dict[tuple[Path, int], Entry] = {}
        self._may_be_known: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
        """Maps the file of an open test to the keys of the known findings it was compared with, and
        the names of those that may explain it; it is not compared again once there are some."""

    def all_that_may_be_known(
        self, report: Report, findings: Sequence[ReportedFinding]
    ) -> dict[str, tuple[str, ...]]:
        """By the file of an open test, the known findings that may explain all that it shows.

        The tests are compared with the causes in the known-findings file, and with those findings
        of this campaign that are themselves known, whose ops and their relations the test contains.
        What experiments found behind a cause is not explained by it.
        """
        self.unreadable.clear()
        behind = self.store.fold.behind
        known = [each for each in findings if each.known and each.entry.finding is not None]
        keys = frozenset(each.key for each in known)
        made = {}
        left: tuple[Pending | UnconfirmedTest, ...] = (*report.pending, *report.unconfirmed)
        for line in left:
            compared, names = self._may_be_known.get(line.file, (None, ()))
            # One that was known is new once a version shows it that no entry is about.
            again = compared is None or not compared <= keys or (not names and compared != keys)
            if again or line.file not in self.entry_of:
                entry = self.read(line, must_exist=isinstance(line, Pending))
                if entry is None or (found := entry.finding) is None:
                    continue
                names = self._may_explain(entry.test, found, known)
                self._may_be_known[line.file] = keys, names
            if names and (line.index, line.executor, line.configuration) not in behind:
                made[line.file] = names
        return made

    def _may_explain(
        self, test: LitmusTest, found: Finding, known: Sequence[ReportedFinding]
    ) -> tuple[str, ...]:
        """Names of known findings that may explain an open test; none if a symptom has none."""
        made = executor_class(found.executor, dict(found.settings), found.model)
        here = self.known.of(found.versions)
        names: dict[str, None] = {}
        for each in symptoms_of(found):
            mine = [
                entry.name
                for entry in here.causes(self.today)
                if entry.cause and _may_be(entry.cause, test, each, found)
            ]
            mine += [
                other.entry.test.name
                for other in known
                if made == other.config_class
                and other.entry.finding is not None
                and each in symptoms_of(other.entry.finding)
                and explains(other.entry.test, test, exact=False)
            ]
            if not mine:
                return ()
            names |= dict.fromkeys(mine)
        return tuple(names)

    def read(
        self, line: Pending | UnconfirmedTest | UncheckedTest, *, must_exist: bool
    ) -> Entry | None:
        """Load an open test's file. Returns None if it cannot be read.

        The report names the error if the file `must_exist`: it is what a campaign goes on with.
        """
        path = self.store.folder / line.file
        wrong = ""
        self.entry_of.pop(line.file, None)
        try:
            stamp = path, path.stat().st_mtime_ns
            if stamp not in self._entries:
                self._entries[stamp] = load(path)
            wrong = wrong_entry(self._entries[stamp], line)
        except FileError as error:
            wrong = str(error)
        except OSError as error:
            wrong = f"{path}: {error.strerror}"
        else:
            wrong = wrong and f"{path}: {wrong}"
        if wrong:
            if must_exist:
                self.unreadable[line.file] = wrong
            return None
        self.entry_of[line.file] = self._entries[stamp]
        return self._entries[stamp]


def _may_be(cause: Cause, test: LitmusTest, shown: str, found: Finding) -> bool:
    """True if a known cause may explain a symptom of a test that is not minimized."""
    case = cause.case
    if case is None or case.executor != found.executor:
        return False
    if not may_show(case.symptoms, (shown,)):
        return False
    try:
        there = configuration(found.executor, found.configuration)
    except UnknownExecutor:
        return False
    return case.needs <= beyond_plain(found.executor, there) and contains(
        case.test, test, strict=False
    )


def wrong_entry(entry: Entry, line: Pending | UnconfirmedTest | UncheckedTest) -> str:
    """Why a file is not the one of an open test; "" if it is."""
    found = entry.finding
    title = f"{line.executor}/{line.configuration}"
    if found is None:
        return "has no finding"
    there = f"{found.executor}/{found.configuration}"
    return "" if there == title else f"is a finding of {there}, not of {title}"
