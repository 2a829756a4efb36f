"""The candidates of a campaign that wait: to be reduced, to be checked, or to be tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.look_alikes import LookAlikes
from litmusfuzz.fuzz.finding.causes import may_share_cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.fuzz.campaign.explainer import Explainer
    from litmusfuzz.fuzz.campaign.findings import Findings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding


class CandidateBacklog:
    """Candidates of all executors, by what they wait for.

    Parameters
    ----------
    findings : Findings
    explainer : Explainer

    Attributes
    ----------
    waiting : list of Candidate
        To be reduced.
    unconfirmed : list of Candidate
        What a fresh process has not shown; another one may.
    look_alikes : LookAlikes
        To be checked.
    in_work : dict of Slot to Candidate
        Those that are reduced or checked at present.
    """

    def __init__(self, findings: Findings, explainer: Explainer) -> None:
        self.findings = findings
        self.explainer = explainer
        self.waiting: list[Candidate] = []
        self.unconfirmed: list[Candidate] = []
        self.look_alikes = LookAlikes()
        self.in_work: dict[Slot, Candidate] = {}

    def looks_like(self, candidate: Candidate) -> MinimizedFinding | None:
        """What a candidate looks like, unless it is to be reduced in full."""
        return None if candidate.in_full else self.explainer.likely(candidate)

    def set_look_alikes_aside(self) -> None:
        """Let those wait for a check that look like a known cause; no suspect does."""
        waiting = []
        for each in self.waiting:
            known = self.looks_like(each)
            if known is None or each.suspect:
                waiting.append(each)
            else:
                self.set_aside(each, known)
        self.waiting = waiting

    def set_aside(self, candidate: Candidate, known: MinimizedFinding) -> None:
        """Let a candidate wait for a check that looks like a known cause."""
        candidate.to(State.LOOKS_KNOWN, known.key)
        displaced = self.look_alikes.add(candidate, known)
        if displaced is not None:
            self.count_unchecked(*displaced)

    def count_unchecked(self, candidate: Candidate, known: MinimizedFinding) -> None:
        """Take a look-alike for what it looks like, if its configuration has shown that.

        Else it stays in ``unreduced/``.
        """
        if candidate.target.config.name in known.configurations:
            self.findings.add_sighting(candidate, known)

    def doubt(self, suspects: Sequence[Candidate]) -> None:
        """Let candidates wait for a fresh process, because theirs has crashed."""
        for each in suspects:
            each.to(State.SUSPECT)
        self.look_alikes.drop(suspects)
        waiting = {*self.waiting, *self.in_work.values()}
        self.waiting += [each for each in suspects if each not in waiting]

    def of(self, slot: Slot) -> list[Candidate]:
        """Those that a worker may reduce: of its executor, and not likely to be in work."""
        number = slot.executor.number
        return [
            each
            for each in self.waiting
            if each.executor == number and not self._may_be_in_work(each)
        ]

    def _may_be_in_work(self, candidate: Candidate) -> bool:
        """True if another worker reduces what may well have the same cause."""
        return any(
            other.executor == candidate.executor
            and may_share_cause(
                other.test,
                (outcome for outcome, _ in other.judgement.forbidden),
                candidate.test,
                (outcome for outcome, _ in candidate.judgement.forbidden),
            )
            for other in self.in_work.values()
        )
