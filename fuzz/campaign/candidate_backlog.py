"""The candidates of a campaign that wait: to be reduced, to be checked, or to be tried again.

A candidate is in one of the places of `CandidateBacklog`, or in none: then it is settled, or its
file in the campaign's folder ``unreduced/`` is all that is left of it. `recorder` adds candidates
to `waiting`. The lanes `reduce`, `retry` and `known` take them from `waiting`, `unconfirmed` and
`look_alikes`, and have them in `in_work` until they are settled, wait again or are given up.
"""

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
    """Unsettled candidates of all executors, by what they wait for.

    Parameters
    ----------
    findings : Findings
    explainer : Explainer

    Attributes
    ----------
    waiting : list of Candidate
        To be reduced.
    unconfirmed : list of Candidate
        To be tried again: a fresh process has not shown them, and another one may.
    look_alikes : LookAlikes
        To be checked, because they look like a known cause.
    in_work : dict of Slot to Candidate
        By worker, the one that it reduces or checks at present.
    """

    def __init__(self, findings: Findings, explainer: Explainer) -> None:
        self.findings = findings
        self.explainer = explainer
        self.waiting: list[Candidate] = []
        self.unconfirmed: list[Candidate] = []
        self.look_alikes = LookAlikes()
        self.in_work: dict[Slot, Candidate] = {}

    def likely_known(self, candidate: Candidate) -> MinimizedFinding | None:
        """The known cause that a candidate looks like; None if it is to be reduced in full.

        Under control nothing waits because of its looks: searches decide (`Explainer.decide`).
        """
        if candidate.in_full or candidate.target.explorable:
            return None
        return self.explainer.likely(candidate)

    def set_look_alikes_aside(self) -> None:
        """Move candidates that look like a known cause to those that wait for a check.

        A suspect stays: a fresh process has to show it first.
        """
        waiting = []
        for each in self.waiting:
            known = self.likely_known(each)
            if known is None or each.suspect:
                waiting.append(each)
            else:
                self.set_aside(each, known)
        self.waiting = waiting

    def set_aside(self, candidate: Candidate, known: MinimizedFinding) -> None:
        """Let a candidate that looks like a known cause wait for a check."""
        candidate.to(State.LOOKS_KNOWN, known.key)
        displaced = self.look_alikes.add(candidate, known)
        if displaced is not None:
            self.count_as_known_if_shown_here(*displaced)

    def count_as_known_if_shown_here(self, candidate: Candidate, known: MinimizedFinding) -> None:
        """Count an unchecked look-alike as a sighting of a cause that its configuration has shown.

        If the configuration has not, the candidate's file stays in ``unreduced/``, and its test is
        reduced when the campaign is resumed.
        """
        if candidate.target.config.name in known.configurations:
            self.findings.add_sighting(candidate, known)

    def doubt(self, suspects: Sequence[Candidate]) -> None:
        """Let candidates wait for a fresh process to show them, because theirs has crashed.

        One that is in work does not wait besides: a worker has it, and settles it or lets it wait.
        """
        for each in suspects:
            each.to(State.SUSPECT)
        self.look_alikes.drop(suspects)
        waiting = {*self.waiting, *self.in_work.values()}
        self.waiting += [each for each in suspects if each not in waiting]

    def reducible_by(self, slot: Slot) -> list[Candidate]:
        """Those that a worker may reduce: of its executor, with no cause that may be in work."""
        number = slot.executor.number
        return [
            each
            for each in self.waiting
            if each.executor == number and not self._may_share_cause_in_work(each)
        ]

    def _may_share_cause_in_work(self, candidate: Candidate) -> bool:
        """True if another worker reduces or checks one that may well have the same cause."""
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
