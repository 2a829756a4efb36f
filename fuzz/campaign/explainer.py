"""Experiments of a campaign: which known cause explains a finding, and which causes still show.

`fuzz.finding.experiments` has the rule. Here its trials run on a worker slot of the campaign, in
whichever configuration a cause needs, and what they showed is logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.schedule import switches
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.trial_runner import (
    TIME_IS_UP,
    OnSlot,
    TrialBudget,
    carry_out,
    tally_of,
)
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S
from litmusfuzz.fuzz.finding.causes import symptom
from litmusfuzz.fuzz.finding.configuration_reducer import beyond_plain
from litmusfuzz.fuzz.finding.experiments import (
    BEHIND,
    Comparison,
    Verdict,
    check_look_alike,
    compare,
    control_trial,
    executions_needed,
    result_of,
)
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.trials import Case, Experiment, Reason
from litmusfuzz.reports.events import CauseChecked, CauseCompared

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.best import Best
    from litmusfuzz.fuzz.campaign.campaign_executor import CampaignExecutor
    from litmusfuzz.fuzz.campaign.candidate import Candidate
    from litmusfuzz.fuzz.campaign.findings import Findings
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Config, Noise
    from litmusfuzz.fuzz.finding.judge import Judgement
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
    from litmusfuzz.reports.events import Event


OTHER_LOAD: Final = 64
"""Factor by which a known cause may show more rarely here than where its rate was measured: racing
ops seldom meet on busy cores."""
MIN_UNSEEN: Final = 1 << 16
"""Executions, at least, after which a known cause that was not seen no longer shows."""
CHECK_RUNS: Final = 16
"""Its executions, in units of those that a test of the campaign has."""
CHECK_COUNT: Final = 3072
"""That unit in a campaign without `Settings.count`."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Result of the experiments on a minimized finding.

    `by` is the cause that explains it. `behind` is its test without what a cause needs, with the
    judgement of that test, if it shows something even then.
    """

    by: MinimizedFinding | None = None
    behind: tuple[LitmusTest, Judgement] | None = None


class Explainer:
    """Runs the experiments of one campaign.

    Parameters
    ----------
    settings : Settings
    findings : Findings
    executors : sequence of CampaignExecutor
    log : callable
        Receives the events.
    """

    def __init__(
        self,
        settings: Settings,
        findings: Findings,
        executors: Sequence[CampaignExecutor],
        log: Callable[[Event], None],
    ) -> None:
        self.settings = settings
        self.findings = findings
        self.executors = executors
        self.log = log

    @property
    def _count(self) -> int:
        """Executions of a check."""
        return self.settings.options.count or CHECK_COUNT

    def _budget(self, *, thorough: bool) -> TrialBudget:
        """Limits of one trial."""
        oracle = self.settings.budget
        if thorough:
            return TrialBudget.within(self.settings.max_reduction_s, oracle)
        return TrialBudget(ATTEMPT_S, CHECK_RUNS * self._count, oracle)

    # --- tests that are not minimized --------------------------------------------------

    async def known_here(
        self, slot: Slot, candidate: Candidate, rng: random.Random, *, every: bool = False
    ) -> MinimizedFinding | None:
        """A cause that a candidate contains, and that its configuration shows as well.

        The cause's own test is run here: similarity is no proof. Causes that need settings which
        this configuration lacks are left out. The first one that shows ends it, or `every` one is
        run: a test may have several.
        """
        name = candidate.target.config.name
        first = None
        for known, case in self._may_explain(candidate):
            if name not in known.configurations and name not in known.hidden_in:
                here = replace(case, config=candidate.target.config)
                shown = await self._shows(slot, known, here, rng)
                (known.configurations if shown.shows else known.hidden_in).add(name)
            if name in known.configurations:
                first = first or known
                if not every:
                    break
        return first

    def _may_explain(self, candidate: Candidate) -> Iterator[tuple[MinimizedFinding, Case]]:
        """Causes whose ops a test contains, and whose settings its configuration has."""
        target = candidate.target
        here = beyond_plain(target.executor, target.config)
        for known in self.findings.contained(candidate):
            case = case_of(self.executors[candidate.executor], known, target.config)
            # One that has shown here needs less than its file says.
            shown = target.config.name in known.configurations
            if case is not None and (shown or case.needs <= here):
                yield known, case

    def likely(self, candidate: Candidate) -> MinimizedFinding | None:
        """What a test looks like: best a cause that its configuration has shown; None if new.

        Experiments have not shown that its configuration lacks the cause.
        """
        name = candidate.target.config.name
        causes = [each for each, _ in self._may_explain(candidate) if name not in each.hidden_in]
        return min(causes, key=lambda each: name not in each.configurations, default=None)

    async def _shows(
        self, slot: Slot, known: MinimizedFinding, case: Case, rng: random.Random
    ) -> Experiment:
        """Run the test of a known cause until it shows, or would have shown."""
        found = known.finding
        needed = OTHER_LOAD * executions_needed(found.count, found.executions)
        needed = max(MIN_UNSEEN, needed)
        trial = replace(control_trial(case, case.symptoms), enough=1, needed=needed)
        budget = TrialBudget(ATTEMPT_S, oracle=self.settings.budget)
        return result_of(trial, await tally_of(trial, OnSlot(slot, rng), budget))

    async def behind(
        self,
        slot: Slot,
        candidate: Candidate,
        known: MinimizedFinding,
        rng: random.Random,
    ) -> Candidate | None:
        """What shows beside known causes: the look-alike, or a test in it; None if nothing does."""
        compared, shown = await self._look_behind(slot, candidate, known, rng)
        if compared.verdict is not Verdict.NEW:
            return None
        if shown is None:
            return candidate
        test, judgement = shown
        # It may look like another known cause, which is still in it.
        return candidate.behind(test, judgement)

    async def decide(self, slot: Slot, candidate: Candidate, rng: random.Random) -> Explained:
        """Whether all that a test shows under control is known causes: decided by searches."""
        known = await self.known_here(slot, candidate, rng, every=True)
        slot.switch_to(candidate.target)
        if known is None:
            return Explained()
        compared, behind = await self._look_behind(slot, candidate, known, rng)
        return Explained(known if compared.verdict is Verdict.EXPLAINED else None, behind)

    async def _look_behind(
        self,
        slot: Slot,
        candidate: Candidate,
        known: MinimizedFinding,
        rng: random.Random,
    ) -> tuple[Comparison, tuple[LitmusTest, Judgement] | None]:
        """Compare a test with known causes; also what shows without what these need, if it does."""
        start = clock.now()
        name, case = candidate.target.config.name, _case_as_seen(candidate)
        causes = [
            there for each, there in self._may_explain(candidate) if name in each.configurations
        ]
        run = OnSlot(slot, rng)
        control = _control(case, candidate.judgement)
        checking = check_look_alike(case, causes, control, self._count)
        try:
            end = start + ATTEMPT_S
            compared = await carry_out(checking, run, self._budget(thorough=False), end)
        finally:
            slot.switch_to(candidate.target)
        self._log(candidate, "", known, compared, clock.now() - start)
        if compared.why != BEHIND:
            return compared, None
        test = compared.experiments[-1].test
        return compared, (test, run.judged(case, test, self.settings.budget))

    # --- minimized findings ------------------------------------------------------------

    async def explain(
        self, slot: Slot, candidate: Candidate, best: Best, rng: random.Random
    ) -> tuple[Explained, list[tuple[MinimizedFinding, Comparison]]]:
        """Compare a minimized finding with all causes, those that it contains first.

        What has not begun after the time of a reduction is undecided.

        Returns
        -------
        Explained
        list of (MinimizedFinding, Comparison)
            The comparisons, to be logged with the finding's key once it is stored.
        """
        case = _case(best.test, best.judgement, best.target, best.noise)
        case = replace(case, as_it_stands=bool(best.needs_names) or best.needs_order)
        causes = self.findings.of(candidate.target.executor)
        likely = [each for each in causes if contains(each.entry.test, best.test, strict=True)]
        run = OnSlot(slot, rng)
        control = _control(case, best.judgement)
        budget = self._budget(thorough=True)
        end = clock.now() + self.settings.max_reduction_s
        done: list[tuple[MinimizedFinding, Comparison]] = []
        behind: tuple[LitmusTest, Judgement] | None = None
        try:
            if likely:
                trial = control_trial(case)
                control = result_of(trial, await tally_of(trial, run, budget))
            for known in sorted(causes, key=lambda each: each not in likely):
                there = case_of(slot.executor, known, best.target.config)
                if there is None:
                    continue
                searched = best.target.explorable and known in likely
                if searched and not (await self._shows(slot, known, there, rng)).shows:
                    continue  # it is another level at which it shows
                compared = await carry_out(compare(case, there, control), run, budget, end)
                done.append((known, compared))
                if compared.verdict is Verdict.EXPLAINED:
                    return Explained(known), done
                if compared.why == BEHIND and there.needs <= case.needs:
                    test = compared.experiments[-1].test
                    behind = test, run.judged(case, test, self.settings.budget)
        finally:
            slot.switch_to(best.target)
        return Explained(behind=behind), done

    def log_comparisons(
        self,
        candidate: Candidate,
        key: str,
        comparisons: list[tuple[MinimizedFinding, Comparison]],
    ) -> None:
        """Log the comparisons of a finding under its key; "" if a cause explains it."""
        for known, compared in comparisons:
            self._log(candidate, key, known, compared)

    def _log(
        self,
        candidate: Candidate,
        key: str,
        known: MinimizedFinding,
        compared: Comparison,
        seconds: float = 0.0,
    ) -> None:
        self.log(
            CauseCompared(
                **candidate.event_fields,
                finding=key,
                cause=known.key,
                verdict=str(compared.verdict),
                why=compared.why,
                experiments=tuple(each.as_json() for each in compared.experiments),
                seconds=round(seconds, 3),
            )
        )

    # --- causes ------------------------------------------------------------------------

    async def still_shows(self, slot: Slot, known: MinimizedFinding, rng: random.Random) -> None:
        """Run a known cause in its own settings, and log whether it shows."""
        case = case_of(slot.executor, known)
        if case is None:
            return
        start = clock.now()
        shown = await self._shows(slot, known, case, rng)
        shows, executions = shown.shows, shown.executions
        if not shown.seen and shown.problem in ("", TIME_IS_UP):
            known.unseen = executions = known.unseen + executions
            shows = False if executions >= (shown.needed or 0) else None
            known.unchecked = shows is None
        self.log(
            CauseChecked(
                cause=known.key,
                executor=slot.executor.name,
                configuration=case.config.name,
                executions=executions,
                seen=shown.seen,
                shows=shows,
                seconds=round(clock.now() - start, 3),
            )
        )
        if shows is not None:
            (known.configurations if shows else known.hidden_in).add(case.config.name)


def case_of(
    executor: CampaignExecutor, known: MinimizedFinding, beside: Config | None = None
) -> Case | None:
    """The case of a known cause, to be compared with what another configuration shows.

    None if its configuration is not here.
    """
    found = known.finding
    named = (each.config for each in executor.sampler.configurations)
    config = next((each for each in named if each.name == found.configuration), None)
    case = (
        Case.if_here(known.entry.test, found)
        if config is None
        else Case.in_configuration(known.entry.test, found, config)
    )
    return case.beside(beside) if case is not None and beside is not None else case


def _case(test: LitmusTest, judgement: Judgement, target: Target, noise: Noise) -> Case:
    shown = tuple(dict.fromkeys(symptom(outcome) for outcome, _ in judgement.forbidden))
    return Case(test, target.executor, target.config, target.model, noise, shown)


def _case_as_seen(candidate: Candidate) -> Case:
    """A test that is not minimized; if it has a schedule, with a bound for searches."""
    judgement = candidate.judgement
    case = _case(candidate.test, judgement, candidate.target, candidate.noise)
    if (schedule := judgement.schedule) is None:
        return case
    return replace(case, preemptions=max(1, len(switches(schedule.events))))


def _control(case: Case, judgement: Judgement) -> Experiment:
    """An execution of a test that was no trial, as the control of a comparison."""
    name, hits = case.config.name, judgement.forbidden_count
    done = judgement.executions
    return Experiment(Reason.CONTROL, case.test, name, case.symptoms, None, done, hits)
