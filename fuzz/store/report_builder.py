"""Builds the report of a campaign: the fold of its events, and what takes more than these.

That is the known findings, worker deaths as findings, the files of pending tests, and earlier
campaigns in the folders beside this one.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.causes import symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import needs_in_words
from litmusfuzz.fuzz.store.history import History
from litmusfuzz.fuzz.store.open_tests import OpenTests
from litmusfuzz.fuzz.store.reported_deaths import ReportedDeaths
from litmusfuzz.reports.open_tests import MOST_IN_FULL
from litmusfuzz.reports.report import Known, ReportedFinding
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding, KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import WorkerDied
    from litmusfuzz.reports.fold import Tested
    from litmusfuzz.reports.open_tests import UncheckedTest
    from litmusfuzz.reports.report import Report

MAX_UNREADABLE: Final = 3
"""Files that cannot be read and are named; others are counted."""


class ReportBuilder:
    """Builds the report repeatedly. Data that does not change is read only once.

    Parameters
    ----------
    store : Store
    known : KnownFindings
    history : History, optional
        The campaigns before it, if another builder has read them.
    """

    def __init__(self, store: Store, known: KnownFindings, history: History | None = None) -> None:
        self.store = store
        self.known = known
        self._cause_names = {each.key: each.name for each in known.entries if each.cause}
        self._explains: dict[str, tuple[KnownFinding, ...]] = {}
        """By key, the entries that explain a finding of the report; none if it is new."""
        self._matched: dict[tuple[str, Tested], tuple[KnownFinding, ...]] = {}
        """The same by key and the versions in which it showed."""
        self._today = date.min
        self._open = OpenTests(store, known, self._today)
        self.history = history or History(store.folder, store.fold.report(str(store.folder)))
        self._deaths = ReportedDeaths(store, self.history, self._why_death)

    def build(self) -> Report:
        """The report as of now.

        Raises
        ------
        StoreError
            If an event holds a test that cannot be read.
        """
        self._explains.clear()
        report = self.store.fold.report(str(self.store.folder))
        if self._today != (today := datetime.now(UTC).date()):
            # Entries of the known-findings file expire.
            self._today = today
            self._matched.clear()
            self._open = OpenTests(self.store, self.known, today)
        found = [self._completed(each) for each in report.findings]
        may_be_known = self._open.all_that_may_be_known(report, found)
        deaths = tuple(self._deaths.findings(report.python))
        left = Counter(cause for causes in may_be_known.values() for cause in set(causes))
        by_entry: dict[KnownFinding, list[ReportedFinding]] = {}
        for each in (*found, *deaths):
            for entry in self._explains.get(each.key, ()):
                by_entry.setdefault(entry, []).append(each)
        seen = {entry for entries in self._explains.values() for entry in entries}
        known = tuple(
            self._known_entry(entry, by_entry.get(entry, []), left[entry.name], seen=entry in seen)
            for entry in self.known.entries
            if self._holds(entry, report.versions)
        )
        problems = [report.problem] if report.problem else []
        report = replace(
            report,
            findings=(*found, *deaths),
            known=known,
            may_be_known=may_be_known,
            unchecked=tuple(map(self._named_unchecked, report.unchecked)),
            earlier=self.history.earlier,
            damaged=self.history.damaged,
            problem="; ".join([*problems, *self._unreadable(report)]),
        )
        shown = [each.file for each in report.open_tests[:MOST_IN_FULL]]
        return replace(report, entries={f: e for f in shown if (e := self._open.entry_of.get(f))})

    def _named_unchecked(self, test: UncheckedTest) -> UncheckedTest:
        """An unchecked test, with the names of its causes; its file is loaded."""
        self._open.read(test, must_exist=False)
        names = tuple(self._cause_names.get(key, key) for key in test.causes)
        return replace(test, causes=names)

    def _unreadable(self, report: Report) -> Iterator[str]:
        """The first errors of files that cannot be read, and the number of the others."""
        paths = [self.store.folder / each.file for each in report.findings]
        listed = [f"{path}: No such file or directory" for path in paths if not path.is_file()]
        listed += self._open.unreadable.values()
        yield from listed[:MAX_UNREADABLE]
        if len(listed) > MAX_UNREADABLE:
            yield f"and {counted(len(listed) - MAX_UNREADABLE, 'more file')} that cannot be read"

    def _holds(self, entry: KnownFinding, executors: Iterable[str]) -> bool:
        """True if an entry holds for versions of an executor of this campaign."""
        return not entry.versions.ranges or any(
            entry.versions.include(dict(tested))
            for each in entry.executors or executors
            for tested in self.store.fold.tested_anywhere(each)
        )

    def _known_entry(
        self,
        entry: KnownFinding,
        shown: Sequence[ReportedFinding],
        may_explain: int,
        *,
        seen: bool,
    ) -> Known:
        """An entry of the known-findings file, as reports list it, with what it explains.

        It is a cause that `may_explain` so many open tests.
        """
        over = f" (expired {entry.expires})" if entry.expired(self._today) else ""
        cause = entry.cause
        if cause is None:
            title = entry.name if entry.pattern else entry.title
            return Known(
                title + over,
                entry.why,
                seen,
                graphs=sum(each.in_this_run for each in shown),
                file=shown[0].file if shown else "",
            )
        case = cause.case
        needs = "" if case is None else needs_in_words(case.executor, case.config)
        known = self.store.fold.known_cause(
            Known(cause.key, entry.why, seen, entry.name, needs, file=cause.path)
        )
        return replace(known, key=entry.title + over, may_explain=may_explain)

    # --- findings ----------------------------------------------------------------------

    def _completed(self, found: ReportedFinding) -> ReportedFinding:
        """A finding with the counts of earlier campaigns, and why it is known."""
        finding = found.entry.finding
        symptoms = symptoms_of(finding) if finding else (str(found.kind),)
        count, first = self.history.sightings(found.key)
        tested = self.store.fold.tested_with(found)
        return replace(
            found,
            count=found.count + count,
            first_seen=found.first_seen if first is None else first,
            known=self._why_known(
                found.key, lambda: found.entry.test, symptoms, found.config_class, tested
            ),
            undecided=tuple(self._cause_names.get(key, key) for key in found.undecided),
        )

    def _why_death(self, key: str, death: WorkerDied, tested: Tested) -> str:
        """Return why a worker death is known; "" if it is new."""
        kind, where = (str(death.kind),), death.executor_class
        return self._why_known(
            key, lambda: self._deaths.entry(death).test, kind, where, tested, death.message
        )

    def _why_known(
        self,
        key: str,
        test: Callable[[], LitmusTest],
        symptoms: tuple[str, ...],
        executor_class: str,
        tested: Tested,
        message: str = "",
    ) -> str:
        """Return why a finding is known; "" if it is new. Its test is read once.

        It is known if every symptom that it showed is known, in all versions that showed it.
        """
        if (key, tested) not in self._matched:
            found = [
                here.match(key, test(), each, executor_class, self._today, message)
                for here in (self.known.of(dict(versions)) for versions in sorted(tested))
                for each in symptoms
            ]
            entries = tuple(dict.fromkeys(entry for entry in found if entry is not None))
            self._matched[key, tested] = () if None in found else entries
        entries = self._explains[key] = self._matched[key, tested]
        return entries[0].why if entries else ""

    @property
    def kept(self) -> set[str]:
        """Files of worker deaths that reports name."""
        return self._deaths.kept
