"""The findings of a campaign: unreduced, minimized, unconfirmed and known; each is a file."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import Entry, Finding, save
from litmusfuzz.fuzz.campaign.canonical import form
from litmusfuzz.fuzz.campaign.causes import explains, finding_name, likely_cause
from litmusfuzz.fuzz.campaign.judge import judge, listed
from litmusfuzz.fuzz.campaign.minimizer import Best
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.records import ReportedFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.dispatcher import Dispatcher
    from litmusfuzz.fuzz.campaign.event_log import EventLog
    from litmusfuzz.fuzz.campaign.judge import Judgement
    from litmusfuzz.fuzz.campaign.minimizer import UnreducedFinding
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.reports.records import RunRecord


class Findings:
    """The findings of one campaign, and the known findings of others.

    Parameters
    ----------
    settings : Settings
    record : RunRecord
        Receives the findings.
    log : EventLog
    dispatcher : Dispatcher
        Receives which families still find something new.
    known : sequence of ReportedFinding
    """

    def __init__(
        self,
        settings: Settings,
        record: RunRecord,
        log: EventLog,
        dispatcher: Dispatcher,
        known: Sequence[ReportedFinding],
    ) -> None:
        self.settings = settings
        self.record = record
        self.log = log
        self.dispatcher = dispatcher
        self.known = tuple(known)

    def explained_by(self, unreduced: UnreducedFinding, *, exact: bool) -> ReportedFinding | None:
        """A minimized finding, shown in the same configuration, whose shape this test contains."""
        return next(self.contained(unreduced, exact=exact, other_configurations=False), None)

    def across_configurations(self, unreduced: UnreducedFinding) -> bool:
        """True if a finding may also belong to other configurations of its executor."""
        return unreduced.executor.sampler.several or self.settings.defers_minimization

    def contained(
        self, unreduced: UnreducedFinding, *, exact: bool, other_configurations: bool
    ) -> Iterator[ReportedFinding]:
        """Minimized findings of the same executor whose shapes this test contains.

        With `other_configurations`, those that this configuration has not shown yet; else the
        others.
        """
        for known in (*self.known, *self.record.findings):
            finding = known.entry.finding
            assert finding is not None
            if finding.executor != unreduced.executor.name or not finding.minimized:
                continue
            if (unreduced.sampled.config.name in known.configs) is other_configurations:
                continue
            if explains(known.entry.test, unreduced.generated.test, exact=exact):
                yield known

    def add_sighting(self, unreduced: UnreducedFinding, known: ReportedFinding) -> None:
        """Count a test that shows a known finding."""
        config = unreduced.sampled.config.name
        known.again(config)
        self.log.seen_again(unreduced.generated.index, config, known)

    def _entry(
        self,
        unreduced: UnreducedFinding,
        best: Best,
        name: str,
        *,
        minimized: bool,
        confirmed: bool,
    ) -> Entry:
        judgement = best.judgement
        model = unreduced.sampled.model
        finding = Finding(
            executor=unreduced.executor.name,
            configuration=unreduced.sampled.config.name,
            model=model.name,
            forbidden=judgement.forbidden[:8],
            executions=judgement.executions,
            noise=asdict(unreduced.noise),
            settings=dict(unreduced.sampled.config.settings),
            versions=self.record.versions[unreduced.executor.name],
            seed=self.settings.seed,
            index=unreduced.generated.index,
            family=unreduced.generated.family,
            minimized=minimized,
            confirmed=confirmed,
            run_seed=best.run_seed,
            schedule=best.schedule,
        )
        test = replace(best.test, name=name)
        return Entry(test, listed(test, model, self.settings.budget), finding)

    def _numbered(self, what: str, unreduced: UnreducedFinding) -> str:
        """A file name for one test on one executor."""
        name = f"{what}-{self.settings.seed}-{unreduced.generated.index}"
        fuzzed = self.dispatcher.fuzzed
        return name if len(fuzzed) == 1 else f"{name}-{1 + fuzzed.index(unreduced.executor)}"

    def unreduced_name(self, unreduced: UnreducedFinding) -> str:
        """Name of the test's file in ``unreduced/``."""
        return self._numbered("unreduced", unreduced)

    def store_unreduced(self, unreduced: UnreducedFinding) -> Path:
        """Store a test with a forbidden outcome as it was executed."""
        name = self.unreduced_name(unreduced)
        best = Best(unreduced.generated.test, unreduced.judgement, run_seed=unreduced.seed)
        best.judgement = unreduced.judgement  # whatever its cause
        entry = self._entry(unreduced, best, name, minimized=False, confirmed=False)
        path = self.settings.out / "unreduced" / f"{name}.yaml"
        save(entry, path)
        return path

    def store_unconfirmed(self, unreduced: UnreducedFinding, best: Best) -> None:
        """Store, apart, a minimized test that a fresh process does not show; it is not reported."""
        self.record.unconfirmed += 1
        name = self._numbered("unconfirmed", unreduced)
        entry = self._entry(unreduced, best, name, minimized=False, confirmed=False)
        path = self.settings.out / "unconfirmed" / f"{name}.yaml"
        save(entry, path)
        self.log.unconfirmed(unreduced.generated.index, path)

    def store(
        self, unreduced: UnreducedFinding, best: Best, *, minimized: bool, confirmed: bool
    ) -> ReportedFinding | None:
        """Store a finding and report it; None if it is known already."""
        best.normalize(unreduced.sampled.model, self.settings.budget)
        seen = best.judgement.forbidden[0][0]
        name = finding_name(best.test, seen)
        entry = self._entry(unreduced, best, name, minimized=minimized, confirmed=confirmed)
        cause = likely_cause(entry.test, seen)
        reported = ReportedFinding(entry, "", cause, python=self.settings.python)
        across, model = self.across_configurations(unreduced), unreduced.sampled.model
        shape, by = form(entry.test, model), _shown_by(reported, across=across)
        for known in (*self.known, *self.record.findings):
            if _shown_by(known, across=across) == by and form(known.entry.test, model) == shape:
                self.add_sighting(unreduced, known)
                return None
        path = self.settings.out / f"{name}.yaml"
        if any(known.path == str(path) for known in (*self.known, *self.record.findings)):
            # Of another executor.
            name += f"-{len(self.record.findings)}"
            path = self.settings.out / f"{name}.yaml"
            reported.entry = replace(entry, test=replace(entry.test, name=name))
        save(reported.entry, path)
        reported.path = str(path)
        why = explain(entry.test, unreduced.sampled.model, seen)
        reported.reason = str(why or "")
        reported.allowed_by = self._allowed_by(entry.test, best.judgement)
        if all(known.cause != reported.cause for known in self.record.findings):
            self.dispatcher.weights.add_find(unreduced.generated.family)
        self.record.families[unreduced.generated.family].findings += 1
        self.record.findings.append(reported)
        verdicts = {
            outcome: (count, str(best.judgement.oracle.judge(outcome)))
            for outcome, count in best.judgement.histogram.items()
        }
        self.log.finding_added(unreduced.generated.index, reported, verdicts, why)
        return reported

    def _allowed_by(self, test: LitmusTest, judgement: Judgement) -> tuple[str, ...]:
        """Models, weaker than the one that judges, that allow all the forbidden outcomes."""
        forbidden = dict(judgement.forbidden)
        return tuple(
            name
            for name, model in MODELS.items()
            if set(judge(Explorer(test, model, self.settings.budget), forbidden).verdicts)
            == {Verdict.ALLOWED}
        )


def _shown_by(reported: ReportedFinding, *, across: bool) -> tuple[str, ...]:
    """The executor, and its configuration where findings are distinguished by configuration."""
    finding = reported.entry.finding
    assert finding is not None
    return (finding.executor,) if across else (finding.executor, finding.configuration)
