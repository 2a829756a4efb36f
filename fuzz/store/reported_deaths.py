"""The worker deaths of a campaign, as findings of its report."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.finding.worker_deaths import DeathGroup, group_deaths, key_of_death
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.reports.commands import replay_command
from litmusfuzz.reports.report import ReportedFinding
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.fuzz.store.history import History
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CrashReduced, WorkerDied
    from litmusfuzz.reports.fold import Tested


class ReportedDeaths:
    """Worker deaths in groups, each of which is a finding.

    Parameters
    ----------
    store : Store
    history : History
    why_known : callable
        Why a death is known in these versions, "" if it is new; receives its key as well.
    """

    def __init__(
        self,
        store: Store,
        history: History,
        why_known: Callable[[str, WorkerDied, Tested], str],
    ) -> None:
        self.store = store
        self.history = history
        self.why_known = why_known
        self._died_on: dict[str, Entry] = {}

    def entry(self, death: WorkerDied | CrashReduced) -> Entry:
        """The test that a worker died on, named like its file: shards number their deaths."""
        if death.file not in self._died_on:
            try:
                entry = loads(death.entry, death.file)
            except FileError as error:
                raise StoreError(f"{self.store.path}: {error}") from error
            named = entry.test.titled(Path(death.file).stem)
            self._died_on[death.file] = replace(entry, test=named)
        return self._died_on[death.file]

    def _groups(self) -> list[DeathGroup]:
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
            known = self.why_known(key, alike[0], tested)
            why |= {id(each): known for each in alike}
        return group_deaths([death for _, death in ordered], lambda each: why[id(each)])

    def findings(self, python: str | None) -> Iterator[ReportedFinding]:
        """All of them; `python` is the interpreter that replays them."""
        found = self.store.fold.reduced_crashes
        for each in self._groups():
            first, last = each.deaths[0], each.deaths[-1]
            what = f"{counted(len(each.deaths), 'test')} with {each.op}" if each.op else "a test"
            ops = each.ops
            key, *others = ops
            count, before = self.history.sightings(*ops)
            reduced = next((found[d.file] for d in each.deaths if d.file in found), None)
            shown = reduced or first
            command = replay_command(each.kind, shown.file, str(self.store.folder), python)
            on = shlex.quote(f"{each.executor}:{shown.configuration}")
            script = reduced is not None and reduced.script_shows_it is not None
            yield ReportedFinding(
                key=key,
                kind=each.kind,
                entry=self.entry(shown),
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
        for each in self._groups():
            for death in each.deaths:
                first.setdefault(key_of_death(death), death.file)
        reduced = {each.file for each in self.store.fold.reduced_crashes.values()}
        return {*first.values(), *reduced}


def _how_far(reduced: CrashReduced | None) -> tuple[str, ...]:
    """How far a crash was reduced, in words."""
    if reduced is None:
        return ()
    return ("reduced in full" if reduced.complete else "reduced in part: the time was up",)
