"""The findings of a campaign: unreduced, minimized, unconfirmed and known; each is a file.

Each method that stores something writes the file first, then the event that names it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, dumps, save
from litmusfuzz.fuzz.campaign.best import Best
from litmusfuzz.fuzz.campaign.candidate import State
from litmusfuzz.fuzz.finding.canonical import form, key
from litmusfuzz.fuzz.finding.causes import likely_cause, may_show, symptom
from litmusfuzz.fuzz.finding.configuration_reducer import needed_settings, needs_in_words
from litmusfuzz.fuzz.finding.finding_names import finding_name
from litmusfuzz.fuzz.finding.judge import judge, listed
from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.resource_passes import LANES, width
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.oracles.reason import explain
from litmusfuzz.reports.events import (
    FindingAdded,
    FindingKind,
    SeenAgain,
    Unconfirmed,
)
from litmusfuzz.reports.tables import in_short

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.dispatcher import Dispatcher
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.oracles.model import Model
    from litmusfuzz.reports.events import Event

MOST_LISTED: Final = 8
"""Forbidden outcomes of each kind in a finding's file."""


class Findings:
    """The findings of one campaign, and the known findings of others.

    Parameters
    ----------
    settings : Settings
    log : callable
        Receives the events.
    dispatcher : Dispatcher
        Receives which families still find something new.
    known : sequence of MinimizedFinding
    """

    def __init__(
        self,
        settings: Settings,
        log: Callable[[Event], None],
        dispatcher: Dispatcher,
        known: Sequence[MinimizedFinding],
    ) -> None:
        self.settings = settings
        self.log = log
        self.dispatcher = dispatcher
        self.known = list(known)
        self.causes: set[str] = set()

    def of(self, executor: str) -> list[MinimizedFinding]:
        """The minimized findings of an executor, and known causes that hold for its versions."""
        return [each for each in self._all_of(executor) if each.finding.minimized]

    def _all_of(self, executor: str) -> list[MinimizedFinding]:
        tested = self.dispatcher.versions(executor)
        return [
            each
            for each in self.known
            if each.finding.executor == executor and each.versions.include(tested)
        ]

    def contained(self, candidate: Candidate) -> Iterator[MinimizedFinding]:
        """Minimized findings of the same executor whose ops this test contains.

        All symptoms of the test are theirs; a torn value may show as a wrong one.
        """
        shown = {symptom(outcome) for outcome, _ in candidate.judgement.forbidden}
        test = candidate.test
        for known in self.of(candidate.target.executor):
            if not may_show(known.symptoms, shown):
                continue
            if known.finding.needs_names or known.finding.needs_order:
                continue  # the same ops under other names are another cause
            if width(known.entry.test) > max(LANES, width(test)):
                continue  # it needs more lanes
            if known.key not in candidate.contains:  # asked again for each test that is run
                found = contains(known.entry.test, test, strict=False)
                candidate.contains[known.key] = found
            if candidate.contains[known.key]:
                yield known

    def add_sighting(self, candidate: Candidate, known: MinimizedFinding) -> None:
        """Note that a test shows a known finding."""
        known.configurations.add(candidate.target.config.name)
        candidate.to(State.KNOWN, known.key)
        self.log(SeenAgain(**candidate.event_fields, key=known.key))

    def _entry(
        self,
        candidate: Candidate,
        best: Best,
        name: str,
        *,
        minimized: bool,
        confirmed: bool,
    ) -> Entry:
        judgement = best.judgement
        model, config = best.target.model, best.target.config
        first_seen_in = candidate.first_target.config.name
        finding = Finding(
            executor=candidate.target.executor,
            configuration=config.name,
            model=model.name,
            forbidden=_forbidden(best),
            executions=judgement.executions,
            noise=asdict(best.noise),
            settings=dict(config.settings),
            versions=self.dispatcher.executors[candidate.executor].versions_of(config.name),
            seed=self.settings.options.seed,
            index=candidate.index,
            family=candidate.family,
            minimized=minimized,
            confirmed=confirmed,
            run_seed=best.run_seed,
            schedule=best.schedule,
            needs_names=best.needs_names,
            needs_order=best.needs_order,
            first_seen_in=None if first_seen_in == config.name else first_seen_in,
        )
        test = best.test.titled(name)
        return Entry(test, listed(test, model, self.settings.budget), finding)

    def _numbered(self, what: str, candidate: Candidate) -> str:
        """A file name for one test in one configuration of an executor."""
        name = f"{what}-{self.settings.options.seed}-{candidate.index}"
        fuzzed = [each.number for each in self.dispatcher.fuzzed]
        if len(fuzzed) > 1:
            name = f"{name}-{1 + fuzzed.index(candidate.executor)}"
        return f"{name}-again{candidate.repetition}" if candidate.repetition else name

    def _save(self, entry: Entry, folder: str) -> str:
        """Write an entry's file; its path relative to the campaign's folder."""
        file = f"{folder}/{entry.test.name}{self.settings.suffix}.yaml"
        save(entry, self.settings.out / file)
        return file

    def store_unreduced(self, candidate: Candidate) -> str:
        """Store a test with a forbidden outcome as it was executed; return its file."""
        return self._save(self._as_executed(candidate, "unreduced"), "unreduced")

    def _as_executed(self, candidate: Candidate, what: str) -> Entry:
        """The entry of a test as it was executed."""
        name = self._numbered(what, candidate)
        best = Best.of(candidate)
        best.run_seed = candidate.seed
        best.judgement = candidate.judgement  # whatever its cause
        return self._entry(candidate, best, name, minimized=False, confirmed=False)

    def store_unconfirmed(self, candidate: Candidate, executions: int) -> None:
        """Store, apart, a test as it was executed; a fresh process did not show it again."""
        file = self._save(self._as_executed(candidate, "unconfirmed"), "unconfirmed")
        self.log(Unconfirmed(**candidate.event_fields, file=file, executions=executions))

    def store(
        self,
        candidate: Candidate,
        best: Best,
        *,
        minimized: bool,
        confirmed: bool,
    ) -> MinimizedFinding | None:
        """Store a finding and report it; None if it is known already."""
        target, executor = best.target, candidate.target.executor
        model = target.model
        seen = best.judgement.forbidden[0][0]
        name = finding_name(best.test, seen)
        entry = self._entry(candidate, best, name, minimized=minimized, confirmed=confirmed)
        shape = _form(entry, model)
        needed = needed_settings(executor, dict(target.config.settings))
        for known in self._all_of(executor):
            if (
                needed_settings(executor, known.finding.settings) == needed
                and _form(known.entry, model) == shape
            ):
                self.add_sighting(candidate, known)
                return None
        if any(known.entry.test.name == name for known in self.known):  # of another executor
            name += f"-{len(self.known)}"
            entry = replace(entry, test=entry.test.titled(name))
        file = self._save(entry, "findings")
        why = explain(entry.test, model, seen)
        cause = likely_cause(entry.test, seen, names=best.needs_names, order=best.needs_order)
        if cause not in self.causes:
            self.causes.add(cause)
            self.dispatcher.weights.add_find(candidate.family)
        rules = why.broken if why else ()
        found = key(
            entry.test,
            kind=FindingKind.FORBIDDEN,
            rules=rules,
            executor_class=target.finding_class,
            model=model,
            names=best.needs_names,
            order=best.needs_order,
            settings=needed,
        )
        histogram = best.judgement.histogram.items()
        self.log(
            FindingAdded(
                **candidate.event_fields,
                key=found,
                file=file,
                entry=dumps(entry),
                executor_class=target.finding_class,
                model=model.name,
                needs=needs_in_words(executor, target.config, reduced=minimized),
                cause=cause,
                reason=tuple(why.steps) if why else (),
                is_cycle=bool(why and why.cycle),
                arcs=tuple(why.arcs) if why else (),
                edges=tuple((each.source, each.target) for each in why.edges) if why else (),
                rules=tuple(rules),
                histogram=tuple(
                    (o.plain, count, str(best.judgement.oracle.judge(o))) for o, count in histogram
                ),
                allowed_by=models_that_allow(
                    entry.test, dict(best.judgement.forbidden), self.settings.budget
                ),
            )
        )
        shown_by = {target.config.name, candidate.first_target.config.name}
        minimal = MinimizedFinding(entry, found, shown_by, file, in_short(why.steps if why else ()))
        self.known.append(minimal)
        return minimal

    def path(self, file: str) -> Path:
        """Path of a file that an event names."""
        return self.settings.out / file


def models_that_allow(
    test: LitmusTest, outcomes: Collection[Outcome], budget: Budget
) -> tuple[str, ...]:
    """Names of the models that allow all of these outcomes of a test."""
    found = []
    for name, model in MODELS.items():
        try:
            explorer = Explorer(test, model, budget)
        except NoAllowedSet:
            continue  # the model does not apply: about gradients, only one says something
        if set(judge(explorer, dict.fromkeys(outcomes, 1)).verdicts) == {Verdict.ALLOWED}:
            found.append(name)
    return tuple(found)


def _forbidden(best: Best) -> tuple[tuple[Outcome, int], ...]:
    """The forbidden outcomes of a finding's file; first those that it is minimized for.

    A test that is minimized for a wrong value may show torn ones as well. No candidate was accepted
    for these alone, but what the smallest test shows, its cause explains.
    """
    own = best.judgement.forbidden
    beside: tuple[tuple[Outcome, int], ...] = ()
    if best.symptom == "wrong":
        shown = judge(best.judgement.oracle, best.judgement.histogram).forbidden
        beside = tuple(each for each in shown if each[0].torn and each not in own)
    return own[:MOST_LISTED] + beside[:MOST_LISTED]


def _form(entry: Entry, model: Model) -> LitmusTest:
    """The canonical form of a finding's test, with what it needs."""
    found = entry.finding
    assert found is not None
    return form(entry.test, model, found.needs_names, order=found.needs_order)
