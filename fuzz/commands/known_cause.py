"""Which known finding explains a test that was minimized by itself, for `litmusfuzz minimize`.

The rule is that of a campaign: an entry of the known-findings file explains a finding by its key
or by a pattern (`KnownFindings.match`), or its cause does if experiments show that
(`fuzz.finding.experiments`). It holds for the versions that showed the finding.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget, carry_out, on_worker, tally_of
from litmusfuzz.fuzz.executors.entries import loads
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding import canonical
from litmusfuzz.fuzz.finding.causes import symptoms_of
from litmusfuzz.fuzz.finding.experiments import Verdict, compare, control_trial, result_of
from litmusfuzz.fuzz.finding.race_shapes import contains
from litmusfuzz.fuzz.finding.trials import Case
from litmusfuzz.reports.events import FindingKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.commands.minimize_crash import MinimizedCrash
    from litmusfuzz.fuzz.finding.known_findings import KnownFinding, KnownFindings
    from litmusfuzz.reports.events import FindingAdded


@dataclass(frozen=True, slots=True)
class KnownCause:
    """What the known findings say of one that was minimized.

    Parameters
    ----------
    by : KnownFinding or None
        The entry that explains it.
    undecided : tuple of str
        Names of causes that may explain it, if none does: no experiment has decided that.
    """

    by: KnownFinding | None = None
    undecided: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """What a person reads; nothing of a new finding."""
        if self.by is not None:
            yield f"  known     {self.by.title}: {self.by.why}"
        elif self.undecided:
            yield f"  known     undecided whether it is {' or '.join(self.undecided)}"

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `lines` has."""
        by = self.by
        return {
            "known": by and {"title": by.title, "why": by.why},
            "known_undecided": list(self.undecided),
        }


def known_cause(found: FindingAdded, known: KnownFindings, *, time_s: float) -> KnownCause:
    """Which known finding explains a minimized one.

    Parameters
    ----------
    found : FindingAdded
    known : KnownFindings
    time_s : float
        Experiments that have not begun by then are undecided.
    """
    entry = loads(found.entry, found.file)
    assert entry.finding is not None, "only what shows a forbidden outcome is minimized"
    here, today = known.of(entry.finding.versions), date.today()
    matched = [
        here.match(found.key, entry.test, symptom, found.executor_class, today)
        for symptom in symptoms_of(entry.finding)
    ]
    if None not in matched:
        return KnownCause(matched[0])
    causes = [e for e in here.causes(today) if e.executors == {found.executor}]
    return asyncio.run(_by_experiments(entry, causes, time_s)) if causes else KnownCause()


async def _by_experiments(entry: Entry, causes: list[KnownFinding], time_s: float) -> KnownCause:
    """The cause that explains a finding, those that its test contains first."""
    assert entry.finding is not None
    case, end = Case.of(entry.test, entry.finding), clock.now() + time_s
    cases = [
        (each, there)
        for each in causes
        if each.cause and each.cause.case and (there := each.cause.case.beside(case.config))
    ]
    cases.sort(key=lambda one: not contains(one[1].test, case.test, strict=True))
    budget = TrialBudget.within(time_s)
    undecided: list[str] = []
    with closing(Worker(case.executor)) as worker:
        run = on_worker(worker, random.Random(0))
        trial = control_trial(case)
        control = result_of(trial, await tally_of(trial, run, budget, end))
        for each, there in cases:
            compared = await carry_out(compare(case, there, control), run, budget, end)
            if compared.verdict is Verdict.EXPLAINED:
                return KnownCause(each)
            if compared.verdict is Verdict.UNDECIDED:
                undecided.append(each.name)
    return KnownCause(undecided=tuple(undecided))


def known_crash(crash: MinimizedCrash, known: KnownFindings) -> KnownCause:
    """Which known finding explains the minimized end of a process."""
    config = crash.config
    of = canonical.executor_class(crash.executor, dict(config.settings), config.guarantees)
    here = known.of(executor_class(crash.executor).versions())
    kind = str(FindingKind.CRASHED)
    return KnownCause(here.match("", crash.test, kind, of, date.today(), crash.message))
