"""Builds the nightly report (`litmusfuzz.reports.nightly_report`) from the store."""

from __future__ import annotations

import json
import shlex
import sqlite3
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.outcome import nearest
from litmusfuzz.corpus.textfile import Digest, Entry, FileError, Script, load, outcome_from_plain
from litmusfuzz.fuzz.campaign.canonical import executor_class
from litmusfuzz.fuzz.campaign.causes import explains, symptom
from litmusfuzz.fuzz.campaign.nightly.store import DATABASE, Store, StoreError
from litmusfuzz.fuzz.campaign.nightly.worker_deaths import DeathGroup, group_deaths, key_of_death
from litmusfuzz.reports.nightly_report import (
    Earlier,
    FindingKind,
    Kill,
    Known,
    Moment,
    NightlyFinding,
    NightlyReport,
    Share,
    WorkerHealth,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Finding
    from litmusfuzz.fuzz.campaign.known_findings import KnownFinding, KnownFindings


class ReportBuilder:
    """Builds the report repeatedly. Data that does not change is read only once.

    Parameters
    ----------
    store : Store
    known : KnownFindings
    """

    def __init__(self, store: Store, known: KnownFindings) -> None:
        self.store = store
        self.known = known
        self.deaths_known: dict[str, str] = {}
        self.seen: set[KnownFinding] = set()
        """Known findings that the nightly run has shown."""
        self.python: str | None = store.meta.get("python")
        self.entries: dict[tuple[str, int], Entry] = {}
        self.may_be_known: dict[str, int] = {}
        """Maps the file of an unreduced finding to the number of known findings it was compared
        with (`sys.maxsize`: may be explained by one)."""
        self.unreadable: dict[str, str] = {}
        """Maps a missing or damaged file to the error."""
        self.earlier = tuple(_earlier(store.folder))

    def build(self) -> NightlyReport:
        """The report as of now."""
        store, meta = self.store, self.store.meta
        self.unreadable.clear()
        findings = (*self._findings(), *self._deaths())
        undecided = self._undecided(findings)
        runs, reported = store.rows(
            "SELECT coalesce(sum(canary_runs), 0), coalesce(sum(canary_reported), 0) FROM shards"
        )[0]
        states = Counter[str]()
        for state, count in store.rows(
            "SELECT state, count(*) FROM unreduced_findings GROUP BY state"
        ):
            states[state] = count
        versions: dict[str, dict[str, str]] = {}
        for (text,) in store.rows("SELECT DISTINCT versions FROM shards"):
            versions |= json.loads(text)
        return NightlyReport(
            folder=str(store.folder),
            command=meta["command"],
            seed=meta["seed"],
            started=meta["started"],
            ended=meta.get("ended"),
            spent_s=meta["spent_s"],
            asked_s=meta["asked_s"],
            findings=findings,
            known=tuple(self._known_entry(entry) for entry in self.known.entries),
            by_config=tuple(self._shares("config", findings)),
            by_family=tuple(self._shares("family", findings)),
            moments=tuple(Moment(*row) for row in store.rows("SELECT * FROM progress ORDER BY at")),
            workers=tuple(self._workers()),
            kills=tuple(
                Kill(
                    r["mutant"],
                    r["executor"],
                    r["seconds"],
                    r["graphs"],
                    r["family"],
                    r["setup"],
                )
                for r in store.rows("SELECT * FROM kills ORDER BY mutant")
            ),
            canary=(runs, reported),
            unconfirmed=states["unconfirmed"],
            not_minimized=states["pending"],
            undecided=undecided,
            versions=versions,
            earlier=tuple(line for line, _ in self.earlier),
            unavailable={
                f"{executor}/{config}": why
                for executor, config, why in store.rows("SELECT * FROM unavailable")
            },
            problem="; ".join(self._problems(meta)),
            interrupted=meta.get("interrupted", False),
        )

    def _problems(self, meta: Mapping[str, Any]) -> Iterator[str]:
        """Problems of the nightly run, other than those of the canary and the mutants."""
        if meta.get("problem"):
            yield meta["problem"]
        yield from self.unreadable.values()
        over = meta.get("ended") is not None and not meta.get("interrupted")
        if over and meta.get("selftest_s") and not self.store.rows("SELECT 1 FROM kills LIMIT 1"):
            yield "the self-test did not finish"

    def _known_entry(self, entry: KnownFinding) -> Known:
        """An entry of the known-findings file, as reports list it."""
        over = f" (expired {entry.expires})" if entry.expired(datetime.now(UTC).date()) else ""
        return Known(entry.title + over, entry.why, entry in self.seen)

    # --- findings ----------------------------------------------------------------------

    def _entry(self, file: str) -> Entry | None:
        """Load a file. Returns None, and records the error for the report, if it cannot be read."""
        path = self.store.folder / file
        try:
            stamp = (file, path.stat().st_mtime_ns)
            if stamp not in self.entries:
                self.entries[stamp] = load(path)
        except FileError as error:
            self.unreadable[file] = str(error)
            return None
        except OSError as error:
            self.unreadable[file] = f"{path}: {error.strerror}"
            return None
        self.unreadable.pop(file, None)
        return self.entries[stamp]

    def _earlier_counts(self, *keys: str) -> Mapping[str, int]:
        """Number of sightings in earlier nightly runs, and the time of the first."""
        lines = [seen[key] for _, seen in self.earlier for key in keys if key in seen]
        return {
            "count": sum(each["count"] for each in lines),
            **({"first": min(each["first"] for each in lines)} if lines else {}),
        }

    def _findings(self) -> Iterator[NightlyFinding]:
        """Findings with a forbidden outcome, and unsound clusters."""
        for row in self.store.rows(
            """SELECT findings.*, count(*) AS count, min(at) AS first, max(at) AS last
            FROM findings JOIN sightings USING (key) GROUP BY key ORDER BY first, key"""
        ):
            entry, details = self._entry(row["file"]), json.loads(row["details"])
            if entry is None:
                continue
            before = self._earlier_counts(row["key"])
            histogram: dict[Outcome, tuple[int, str]] = {
                outcome_from_plain(entry.test, plain): (count, verdict)
                for plain, count, verdict in details.get("histogram", ())
            }
            listed = entry.allowed.get(row["model"], frozenset())
            allowed = () if isinstance(listed, Digest) else tuple(sorted(listed, key=str))
            finding = entry.finding
            script = Path(row["file"]).with_suffix(".py")
            configs = self.store.rows("SELECT config FROM sightings WHERE key = ?", row["key"])
            added = (f"the clusters add {details['added']}",) if "added" in details else ()
            yield NightlyFinding(
                key=row["key"],
                kind=FindingKind(row["kind"]),
                entry=entry,
                file=row["file"],
                executor=row["executor"],
                config_class=row["class"],
                model=row["model"],
                cause=details.get("cause", "unsound clusters"),
                reason=tuple(details.get("reason", added)),
                is_cycle=details.get("is_cycle", False),
                edges=tuple((a, b) for a, b in details.get("edges", ())),
                rules=tuple(details.get("rules", ())),
                count=row["count"] + before["count"],
                in_this_run=row["count"],
                first_seen=before.get("first", row["first"]),
                last_seen=row["last"],
                configs=Counter(config for (config,) in configs),
                histogram=histogram,
                allowed=allowed,
                nearest=nearest(finding.forbidden[0][0], allowed) if finding else None,
                replay=self._command(row["kind"], row["file"]),
                script=str(script) if (self.store.folder / script).is_file() else "",
                script_shows_it=bool(finding and finding.script is Script.SHOWS_IT),
                known=self._why_known(
                    row["key"],
                    entry.test,
                    _symptoms(finding) if finding else (row["kind"],),
                    row["class"],
                ),
            )

    def _why_known(
        self, key: str, test: LitmusTest, symptoms: tuple[str, ...], executor_class: str
    ) -> str:
        """Return why a finding is known, if every symptom it showed is known; "" if it is new."""
        today = datetime.now(UTC).date()
        found = [self.known.match(key, test, each, executor_class, today) for each in symptoms]
        entries = [entry for entry in found if entry is not None]
        if len(entries) < len(found):
            return ""
        self.seen.update(entries)
        return entries[0].why

    def _undecided(self, findings: Sequence[NightlyFinding]) -> int:
        """Number of unreduced findings that no known finding may explain.

        They are compared with the causes in the known-findings file, and with those findings of
        this run that are themselves known, whose ops and their relations the unreduced test
        contains.
        """
        today = datetime.now(UTC).date()
        known = [each for each in findings if each.known and each.entry.finding is not None]
        undecided = 0
        for row in self.store.rows(
            """SELECT u.file, shard, shards.state FROM unreduced_findings AS u
            JOIN shards ON shards.number = u.shard WHERE u.state = 'pending'"""
        ):
            file = row["file"]
            if self.may_be_known.get(file, -1) < len(known):
                # The file of a running shard is still in its log folder.
                log_folder = self.store.log_folder(row["shard"]).relative_to(self.store.folder)
                entry = self._entry(str(log_folder / file) if row["state"] == "running" else file)
                if entry is None or (found := entry.finding) is None:
                    undecided += 1
                    continue
                made = executor_class(found.executor, dict(found.settings), found.model)
                may_be = all(
                    self.known.may_explain(entry.test, each, made, today)
                    or any(
                        made == other.config_class
                        and each in _symptoms(other.entry.finding)
                        and explains(other.entry.test, entry.test, exact=False)
                        for other in known
                    )
                    for each in _symptoms(found)
                )
                self.may_be_known[file] = sys.maxsize if may_be else len(known)
            undecided += self.may_be_known[file] < sys.maxsize
        return undecided

    def _why_death(self, death: sqlite3.Row) -> str:
        """Return why a worker death is known, or "".

        All deaths with one key have the same reason.
        """
        key = key_of_death(death)
        if key not in self.deaths_known:
            file = death["file"]
            there = (
                self.store.folder / file
            ).is_file()  # not if the folder exceeded its size limit
            if not there or (entry := self._entry(file)) is None:
                return ""
            self.deaths_known[key] = self._why_known(
                key, entry.test, (death["kind"],), death["class"]
            )
        return self.deaths_known[key]

    def _death_groups(self) -> list[DeathGroup]:
        rows = self.store.rows("SELECT * FROM worker_deaths ORDER BY at, shard, line")
        return group_deaths(rows, self._why_death)

    def _command(self, kind: str, file: str) -> str:
        what = "validate" if kind == FindingKind.UNSOUND else "replay"
        python = self.python if what == "replay" else None
        there = ["--python", python] if python else []
        return shlex.join(["litmusfuzz", what, str(self.store.folder / file), *there])

    def _deaths(self) -> Iterator[NightlyFinding]:
        """Worker deaths, as findings."""
        for each in self._death_groups():
            first, last = each.deaths[0], each.deaths[-1]
            executor = each.executor_class.rpartition("/")[0]
            before = self._earlier_counts(*each.keys)
            what = f"{len(each.deaths)} tests with {each.op}" if each.op else "a test"
            config, entry = first["config"], self._entry(first["file"])
            if entry is None:
                continue
            # Each shard numbers its deaths from 1.
            named = replace(entry.test, name=Path(first["file"]).stem)
            key, *also = each.keys
            yield NightlyFinding(
                key=key,
                kind=FindingKind(each.kind),
                entry=replace(entry, test=named),
                file=first["file"],
                executor=executor,
                config_class=each.executor_class,
                model="",
                cause=f"{each.message} + {each.op}",
                reason=(first["message"], f"in {what}"),
                is_cycle=False,
                edges=(),
                rules=(),
                count=len(each.deaths) + before["count"],
                in_this_run=len(each.deaths),
                first_seen=before.get("first", first["at"]),
                last_seen=last["at"],
                configs=Counter(death["config"] for death in each.deaths),
                histogram={},
                allowed=(),
                nearest=None,
                replay=f"{self._command('', first['file'])} --executors {executor}:{config}",
                known=each.known,
                also=tuple(also),
            )

    @property
    def kept(self) -> set[str]:
        """For each key of a worker death, the file of its first death.

        Reports name it, and it decides whether the death is known.
        """
        first: dict[str, str] = {}
        for each in self._death_groups():
            for death in each.deaths:
                first.setdefault(key_of_death(death), death["file"])
        return set(first.values())

    # --- coverage and health -----------------------------------------------------------

    def _shares(self, by: str, findings: Iterable[NightlyFinding]) -> Iterator[Share]:
        """Totals by configuration, or by family on an executor."""
        found = Counter[str]()
        for each in findings:
            if by == "config":
                found.update(f"{each.executor}/{config}" for config in each.configs)
            elif each.entry.finding is not None:
                found[f"{each.executor}/{each.entry.finding.family}"] += 1
        reached = defaultdict[str, list[float]](list)
        for executor, name, share in self.store.rows(
            f"""SELECT executor, {by}, reached FROM tests JOIN shards ON shards.number = shard
            WHERE reached IS NOT NULL"""  # noqa: S608 - one of two words
        ):
            reached[f"{executor}/{name}"].append(share)
        refused = defaultdict[str, Counter[str]](Counter)
        for executor, name, why, count in self.store.rows(
            f"""SELECT executor, {by}, ended, count(*) FROM tests
            JOIN shards ON shards.number = shard WHERE ended LIKE 'refused: %' GROUP BY 1, 2, 3"""  # noqa: S608
        ):
            refused[f"{executor}/{name}"][why.removeprefix("refused: ")] += count
        for executor, name, *numbers in self.store.rows(
            f"""SELECT executor, {by}, count(*), sum(allowed + forbidden + unknown),
              sum(tests.seconds), sum(forbidden > 0), sum(unknown > 0), sum(ended = 'crashed'),
              sum(ended = 'timed out')
            FROM tests JOIN shards ON shards.number = shard GROUP BY 1, 2"""  # noqa: S608
        ):
            graphs, outcomes, seconds, forbidden, unknown, crashed, timed_out = numbers
            title = f"{executor}/{name}"
            yield Share(
                name=title,
                graphs=graphs,
                outcomes=outcomes,
                seconds=round(seconds, 3),
                findings=found[title],
                forbidden_graphs=forbidden,
                reached=round(statistics.median(reached[title]), 4) if reached[title] else None,
                refused=refused[title].total(),
                crashed=crashed,
                timed_out=timed_out,
                unknown={"over the oracle's budget": unknown} if unknown else {},
            )

    def _workers(self) -> Iterator[WorkerHealth]:
        for row in self.store.rows(
            """SELECT host, pid, count(*) AS shards, sum(state = 'lost') AS lost,
              sum(seconds) AS busy,
              (SELECT count(*) FROM worker_deaths JOIN shards AS s ON s.number = shard
                WHERE s.host = shards.host AND s.pid = shards.pid
                AND kind != 'timed out') AS crashed,
              (SELECT count(*) FROM worker_deaths JOIN shards AS s ON s.number = shard
                WHERE s.host = shards.host AND s.pid = shards.pid
                AND kind = 'timed out') AS hung
            FROM shards WHERE host != '' GROUP BY host, pid ORDER BY min(number)"""
        ):
            yield WorkerHealth(
                f"process {row['pid']}",
                row["host"],
                row["shards"],
                row["lost"],
                round(row["busy"], 1),
                row["crashed"],
                row["hung"],
            )


def summary(report: NightlyReport) -> dict[str, Any]:
    """Facts that later nightly runs read."""
    last = report.moments[-1] if report.moments else None
    return {
        "started": report.started,
        "graphs": last.graphs if last else 0,
        "outcomes": last.outcomes if last else 0,
        "findings": len(report.findings),
        "new": len(report.new),
        "mutation_score": report.mutation_score,
        "seen": {
            f.key: {"count": f.in_this_run, "first": f.first_seen, "last": f.last_seen}
            for f in report.findings
        },
    }


def _symptoms(finding: Finding | None) -> tuple[str, ...]:
    """Symptoms of all forbidden outcomes, each once."""
    if finding is None:
        return ()
    return tuple(dict.fromkeys(symptom(outcome) for outcome, _ in finding.forbidden))


def _earlier(folder: Path) -> Iterator[tuple[Earlier, dict[str, dict[str, int]]]]:
    """Ended nightly runs in the folders beside this one, and the findings of each."""
    runs: list[tuple[Earlier, dict[str, dict[str, int]]]] = []
    for path in sorted(folder.resolve().parent.glob(f"*/{DATABASE}")):
        if path.parent == folder.resolve():
            continue
        try:
            store = Store(path.parent, write=False)
        except StoreError:
            continue
        try:
            summary = store.meta.get("summary")
            if summary is not None:
                seen = summary.pop("seen")
                counts = {
                    key: {n: each[n] for n in ("count", "first")} for key, each in seen.items()
                }
                runs.append((Earlier(**summary), counts))
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError):
            continue  # of another version, or damaged
        finally:
            store.close()
    yield from sorted(runs, key=lambda each: each[0].started)
