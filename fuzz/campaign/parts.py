"""The parts of a campaign that its lanes are made of (`fuzz.campaign.lanes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.candidate import State
from litmusfuzz.fuzz.campaign.candidate_backlog import CandidateBacklog
from litmusfuzz.fuzz.campaign.cluster_explanation import ClusterExplanation
from litmusfuzz.fuzz.campaign.cluster_validation import Validator
from litmusfuzz.fuzz.campaign.course import Course
from litmusfuzz.fuzz.campaign.crash_files import CrashBacklog, CrashFiles
from litmusfuzz.fuzz.campaign.dispatcher import Dispatcher
from litmusfuzz.fuzz.campaign.event_log import EventLog
from litmusfuzz.fuzz.campaign.explainer import Explainer
from litmusfuzz.fuzz.campaign.finding_scripts import Scripts
from litmusfuzz.fuzz.campaign.findings import Findings
from litmusfuzz.fuzz.campaign.minimizer import Minimizer
from litmusfuzz.fuzz.campaign.packs import PackRunner
from litmusfuzz.fuzz.campaign.recorder import Recorder
from litmusfuzz.fuzz.campaign.reductions import Reductions
from litmusfuzz.fuzz.campaign.scheduler import Scheduler
from litmusfuzz.fuzz.campaign.shares import Shares
from litmusfuzz.fuzz.campaign.targets import Targets
from litmusfuzz.fuzz.campaign.unsound_clusters import UnsoundClusters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.fuzz.campaign.earlier import Earlier
    from litmusfuzz.fuzz.campaign.settings import Settings
    from litmusfuzz.fuzz.campaign.slots import Slot
    from litmusfuzz.reports.events import Event


class Parts:
    """Makes the parts of a campaign from its settings, and connects them.

    Parameters
    ----------
    settings : Settings
    write : callable
        Receives the events, in their order, one or more at a time.
    earlier : Earlier
        What earlier shards have left.
    slots : sequence of Slot
        The workers; may be filled later.
    """

    def __init__(
        self,
        settings: Settings,
        write: Callable[[Sequence[Event]], None],
        earlier: Earlier,
        slots: Sequence[Slot],
    ) -> None:
        self.log = log = EventLog(write)
        self.course = course = Course(settings, log)
        targets = Targets(settings, log)
        executors = targets.executors()
        self.validator = Validator(settings, log)
        self.dispatcher = Dispatcher(settings, executors, self.validator, log, earlier.tests)
        self.shares = Shares(course, self.dispatcher, slots)
        unsound = UnsoundClusters(self.validator, self.shares.ledger)
        self.findings = Findings(settings, log, self.dispatcher, earlier.known)
        self.explainer = Explainer(settings, self.findings, executors, log)
        self.minimizer = Minimizer(settings)
        self.candidates = CandidateBacklog(self.findings, self.explainer)
        self.candidates.waiting += targets.candidates(executors, earlier.pending, State.SEEN)
        self.candidates.waiting += targets.candidates(executors, earlier.suspects, State.SUSPECT)
        self.candidates.unconfirmed += targets.candidates(
            executors, earlier.unconfirmed, State.UNCONFIRMED
        )
        self.recorder = Recorder(course, self.dispatcher, self.candidates, unsound)
        self.scripts = Scripts(course, self.findings)
        self.packs = PackRunner(course, log, self.recorder)
        self.reductions = Reductions(
            course,
            self.shares.ledger,
            self.candidates,
            self.minimizer,
            ClusterExplanation(unsound),
            self.scripts.add,
        )
        crash_files = CrashFiles(settings, log)
        self.crashes = CrashBacklog(crash_files, self.candidates, earlier.deaths, earlier.reduced)
        self.scheduler = Scheduler(self.shares.ledger)

    def finish(self) -> None:
        """Note what is left when the workers have ended."""
        self.scripts.write_unrun()
        for each in self.candidates.look_alikes.take_all():
            self.candidates.count_as_known_if_shown_here(*each)
        self.recorder.finish_all()
        with self.log.together():
            self.dispatcher.comparisons.finish()
