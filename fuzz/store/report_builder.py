"""Builds the report of a campaign: the fold of its events, and what takes more than these.

That is the known findings, worker deaths as findings, the files of pending tests, and earlier
campaigns in the folders beside this one.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from datetime import UTC, date, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.fuzz.executors.entries import load, loads
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.finding.canonical import executor_class
from litmusfuzz.fuzz.finding.causes import explains, may_show, symptoms_of
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain, needs_in_words
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.worker_deaths import DeathGroup, group_deaths, key_of_death
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.history import History
from litmusfuzz.reports.commands import replay_command
from litmusfuzz.reports.open_tests import MOST_IN_FULL, Pending
from litmusfuzz.reports.report import Known, ReportedFinding
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.finding.known_findings import Cause, KnownFinding, KnownFindings
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CrashReduced, WorkerDied
    from litmusfuzz.reports.fold import Tested
    from litmusfuzz.reports.open_tests import UncheckedTest, UnconfirmedTest
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
        self._entries: dict[tuple[Path, int], Entry] = {}
        self._entry_of: dict[str, Entry] = {}
        """By file, what those of open tests have that were read."""
        self._died_on: dict[str, Entry] = {}
        self._may_be_known: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
        """Maps the file of an open test to the keys of the known findings it was compared with, and
        the names of those that may explain it; it is not compared again once there are some."""
        self._unreadable: dict[str, str] = {}
        """Maps a missing or damaged file to the error."""
        self.history = history or History(store.folder, store.fold.report(str(store.folder)))

    def build(self) -> Report:
        """The report as of now.

        Raises
        ------
        StoreError
            If an event holds a test that cannot be read.
        """
        self._unreadable.clear()
        self._explains.clear()
        report = self.store.fold.report(str(self.store.folder))
        if self._today != (today := datetime.now(UTC).date()):
            # Entries of the known-findings file expire.
            self._today = today
            self._matched.clear()
            self._may_be_known.clear()
        found = [self._completed(each) for each in report.findings]
        may_be_known = self._all_that_may_be_known(report, found)
        deaths = tuple(self._deaths(report.python))
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
            problem="; ".join([*problems, *self._unreadable_listed()]),
        )
        shown = [each.file for each in report.open_tests[:MOST_IN_FULL]]
        return replace(report, entries={f: e for f in shown if (e := self._entry_of.get(f))})

    def _named_unchecked(self, test: UncheckedTest) -> UncheckedTest:
        """An unchecked test, with the names of its causes; its file is loaded."""
        self._open_entry(test, must_exist=False)
        names = tuple(self._cause_names.get(key, key) for key in test.causes)
        return replace(test, causes=names)

    def _unreadable_listed(self) -> Iterator[str]:
        """The first errors of files that cannot be read, and the number of the others."""
        listed = list(self._unreadable.values())
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
        if not (path := self.store.folder / found.file).is_file():
            self._unreadable[found.file] = f"{path}: No such file or directory"
        finding = found.entry.finding
        symptoms = symptoms_of(finding) if finding else (str(found.kind),)
        count, first = self.history.sightings(found.key)
        tested = self.store.fold.tested_with(found)
        return replace(
            found,
            count=found.count + count,
            first_seen=found.first_seen if first is None else first,
            known=self._why_known(
                found.key, found.entry.test, symptoms, found.config_class, tested
            ),
            undecided=tuple(self._cause_names.get(key, key) for key in found.undecided),
        )

    def _why_known(
        self,
        key: str,
        test: LitmusTest,
        symptoms: tuple[str, ...],
        executor_class: str,
        tested: Tested,
        message: str = "",
    ) -> str:
        """Return why a finding is known; "" if it is new.

        It is known if every symptom that it showed is known, in all versions that showed it.
        """
        if (key, tested) not in self._matched:
            found = [
                here.match(key, test, each, executor_class, self._today, message)
                for here in (self.known.of(dict(versions)) for versions in sorted(tested))
                for each in symptoms
            ]
            entries = tuple(dict.fromkeys(entry for entry in found if entry is not None))
            self._matched[key, tested] = () if None in found else entries
        return self._known_as(key, tested)

    def _known_as(self, key: str, tested: Tested) -> str:
        """The same of one that was matched before."""
        entries = self._explains[key] = self._matched[key, tested]
        return entries[0].why if entries else ""

    # --- open tests --------------------------------------------------------------------

    def _all_that_may_be_known(
        self, report: Report, findings: Sequence[ReportedFinding]
    ) -> dict[str, tuple[str, ...]]:
        """By the file of an open test, the known findings that may explain all that it shows.

        The tests are compared with the causes in the known-findings file, and with those findings
        of this campaign that are themselves known, whose ops and their relations the test contains.
        What experiments found behind a cause is not explained by it.
        """
        behind = self.store.fold.behind
        known = [each for each in findings if each.known and each.entry.finding is not None]
        keys = frozenset(each.key for each in known)
        made = {}
        left: tuple[Pending | UnconfirmedTest, ...] = (*report.pending, *report.unconfirmed)
        for line in left:
            compared, names = self._may_be_known.get(line.file, (None, ()))
            # One that was known is new once a version shows it that no entry is about.
            again = compared is None or not compared <= keys or (not names and compared != keys)
            if again or line.file not in self._entry_of:
                entry = self._open_entry(line, must_exist=isinstance(line, Pending))
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
                for entry in here.causes(self._today)
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

    def _open_entry(
        self, line: Pending | UnconfirmedTest | UncheckedTest, *, must_exist: bool
    ) -> Entry | None:
        """Load an open test's file. Returns None if it cannot be read.

        The report names the error if the file `must_exist`: it is what a campaign goes on with.
        """
        path = self.store.folder / line.file
        wrong = ""
        self._entry_of.pop(line.file, None)
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
                self._unreadable[line.file] = wrong
            return None
        self._entry_of[line.file] = self._entries[stamp]
        return self._entries[stamp]

    # --- worker deaths -----------------------------------------------------------------

    def _reduced_crash(self, group: DeathGroup) -> CrashReduced | None:
        """The crash of a group that was reduced; None if none was."""
        reduced = self.store.fold.reduced_crashes
        return next((reduced[each.file] for each in group.deaths if each.file in reduced), None)

    def _death_entry(self, death: WorkerDied | CrashReduced) -> Entry:
        """The test that a worker died on, named like its file: shards number their deaths."""
        if death.file not in self._died_on:
            try:
                entry = loads(death.entry, death.file)
            except FileError as error:
                raise StoreError(f"{self.store.path}: {error}") from error
            named = entry.test.titled(Path(death.file).stem)
            self._died_on[death.file] = replace(entry, test=named)
        return self._died_on[death.file]

    def _death_groups(self) -> list[DeathGroup]:
        """All deaths, in groups; those with one key are known for one reason, or new."""
        # By shard, those of a shard in the order of its log: clocks may differ.
        ordered = sorted(self.store.fold.deaths, key=lambda each: each[0])
        deaths: defaultdict[str, list[WorkerDied]] = defaultdict(list)
        shards: defaultdict[str, set[int]] = defaultdict(set)
        for number, death in ordered:
            key = key_of_death(death)
            deaths[key].append(death)
            shards[key].add(number)
        why: dict[int, str] = {}
        for key, alike in deaths.items():
            tested = self.store.fold.tested(alike[0].executor, shards[key])
            known = self._why_death(key, alike[0], tested)
            why |= {id(each): known for each in alike}
        return group_deaths([death for _, death in ordered], lambda each: why[id(each)])

    def _why_death(self, key: str, death: WorkerDied, tested: Tested) -> str:
        """Return why a worker death is known, or ""."""
        if (key, tested) in self._matched:  # its test need not be read
            return self._known_as(key, tested)
        test, kind = self._death_entry(death).test, (str(death.kind),)
        return self._why_known(key, test, kind, death.executor_class, tested, death.message)

    def _deaths(self, python: str | None) -> Iterator[ReportedFinding]:
        """Worker deaths, as findings."""
        for each in self._death_groups():
            first, last = each.deaths[0], each.deaths[-1]
            what = f"{counted(len(each.deaths), 'test')} with {each.op}" if each.op else "a test"
            ops = each.ops
            key, *others = ops
            count, before = self.history.sightings(*ops)
            reduced = self._reduced_crash(each)
            shown = reduced or first
            command = replay_command(each.kind, shown.file, str(self.store.folder), python)
            on = shlex.quote(f"{each.executor}:{shown.configuration}")
            script = reduced is not None and reduced.script_shows_it is not None
            yield ReportedFinding(
                key=key,
                kind=each.kind,
                entry=self._death_entry(shown),
                file=shown.file,
                script=str(PurePath(shown.file).with_suffix(".py")) if script else "",
                script_shows_it=bool(reduced and reduced.script_shows_it),
                needs=reduced.needs if reduced else "",
                executor=each.executor,
                config_class=each.executor_class,
                model="",
                cause=each.cause,
                reason=(first.message, f"in {what}", *_how_far(reduced)),
                is_cycle=False,
                edges=(),
                rules=(),
                count=len(each.deaths) + count,
                in_this_run=len(each.deaths),
                first_seen=int(first.at) if before is None else before,
                last_seen=int(last.at),
                configs=dict(Counter(death.configuration for death in each.deaths)),
                histogram={},
                allowed=(),
                nearest=None,
                replay=f"{command} --executors {on}",
                known=each.known,
                also_on=tuple(ops[other] for other in others),
                traceback=first.traceback,
                log=first.log,
            )

    @property
    def kept(self) -> set[str]:
        """For each key of a worker death, the file of its first death, which reports name."""
        first: dict[str, str] = {}
        for each in self._death_groups():
            for death in each.deaths:
                first.setdefault(key_of_death(death), death.file)
        reduced = {each.file for each in self.store.fold.reduced_crashes.values()}
        return {*first.values(), *reduced}


def _how_far(reduced: CrashReduced | None) -> tuple[str, ...]:
    """How far a crash was reduced, in words."""
    if reduced is None:
        return ()
    return ("reduced in full" if reduced.complete else "reduced in part: the time was up",)


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
