"""Stores made by hand: some with a forbidden outcome that was seen and has no finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers_events import PLAIN, STARTED, added, died, executed, finding_text, shown, started

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.finding.known_findings import Cause, KnownFinding, KnownFindings
from litmusfuzz.fuzz.finding.trials import Case
from litmusfuzz.fuzz.finding.worker_deaths import key_of_death
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignEnded,
    CanaryRun,
    CauseChecked,
    CauseCompared,
    Confirmed,
    SeenAgain,
    ShardEnded,
    ShardPlanned,
    Unconfirmed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.events import Event
    from litmusfuzz.reports.report import Report

FILE = "unreduced/5.yaml"
AGAIN = "unconfirmed/5.yaml"
OF = {"executor": "native", "configuration": "plain"}
SEEN = shown(5, 1.0, model="rfc")
ENDED = CampaignEnded(at=STARTED + 60, spent_s=60.0)
REFUTED = Unconfirmed(index=5, **OF, file=AGAIN, executions=4_096)
CRASH = died(2.0, 5)
CLEAN = executed(4, 0.5)


def cause(shape: str) -> KnownFinding:
    """A known cause: the same ops as all tests here if the shape is MP."""
    entry = loads(finding_text(shape, "native", "plain", "dag", 5, "cause.yaml"))
    assert entry.finding is not None
    known = Cause("cause.yaml", entry, Case.of(entry.test, entry.finding))
    return KnownFinding("because", cause=known, name="tears")


TEARS = cause("MP")
CRASH_IS_KNOWN = KnownFinding("the heap", key_of_death(CRASH))


@dataclass(frozen=True)
class Made:
    """A store: the events of its shard after the first test, and what a report must say of it.

    `exits` are the exit codes of `run` and of a nightly run. `state` and `file` are those of the
    test that is left; `denials` are those that are true (`litmusfuzz.reports.denials`).
    """

    events: tuple[Event, ...]
    exits: tuple[int, int]
    state: str = ""
    file: str = FILE
    known: tuple[KnownFinding, ...] = ()
    end: CampaignEnded | None = ENDED
    denials: frozenset[str] = frozenset()

    def report(self, folder: Path, *, unattended: bool = False) -> Report:
        """Of the store, whose files are written as well."""
        with Store(folder, write=True) as store:
            store.append(0, started(PLAIN, unattended=unattended))
            planned = {"native": ("plain",)}
            minimizes = [e for e in self.events if isinstance(e, ShardPlanned)]
            store.append(1, ShardPlanned(at=STARTED, configurations=planned))
            store.append(1, CanaryRun(at=STARTED + 0.25, reported=True))
            for event in self.events:
                for file in {getattr(event, "unreduced", None), getattr(event, "file", None)}:
                    if file:
                        path = folder / file
                        path.parent.mkdir(exist_ok=True)
                        text = finding_text("MP", "native", "plain", "dag", 5, file)
                        path.write_text(text)
                store.append(2 if event in minimizes else 1, event)
            if self.end is not None:
                store.append(1, ShardEnded(at=STARTED + 59, seconds=59.0))
                store.append(0, self.end)
            return ReportBuilder(store, KnownFindings(self.known)).build()


NEW = added(SEEN, "v3-1", "findings/torn.yaml", at=STARTED + 2, executor_class="native/rfc")
EXPLAINED = SeenAgain(index=5, **OF, at=STARTED + 2, key=TEARS.key)
GONE = CauseChecked(
    **{"at": STARTED + 3, "cause": TEARS.key, **OF},
    executions=900,
    seen=0,
    shows=False,
    seconds=1.0,
)
UNSETTLED = CauseCompared(
    **{"at": STARTED + 3, "index": 5, **OF},
    cause=TEARS.key,
    verdict="undecided",
    seconds=0.5,
)
STORES = {
    "not minimized": Made((CLEAN, SEEN), (1, 1), "not minimized"),
    "interrupted": Made(
        (CLEAN, SEEN),
        (1, 1),
        "interrupted",
        end=CampaignEnded(at=STARTED + 3, spent_s=3.0, interrupted=True),
    ),
    "killed": Made((CLEAN, SEEN), (1, 1), "not minimized", end=None),
    "being minimized": Made(
        (
            CLEAN,
            SEEN,
            ShardPlanned(at=STARTED + 2, configurations={"native": ("plain",)}, minimizes=(FILE,)),
        ),
        (1, 1),
        "being minimized",
        end=None,
    ),
    "not confirmed": Made((CLEAN, SEEN, REFUTED), (3, 3), "not confirmed", AGAIN),
    "confirmed in the end": Made(
        (CLEAN, SEEN, REFUTED, Confirmed(at=STARTED + 4, index=5, **OF)), (1, 1), "not minimized"
    ),
    "suspect": Made((CLEAN, SEEN, CRASH), (3, 3), "suspect", known=(CRASH_IS_KNOWN,)),
    "suspect and interrupted": Made(
        (CLEAN, SEEN, CRASH),
        (3, 3),
        "suspect",
        known=(CRASH_IS_KNOWN,),
        end=CampaignEnded(at=STARTED + 3, spent_s=3.0, interrupted=True),
    ),
    "undecided": Made((CLEAN, SEEN), (3, 0), "undecided", known=(TEARS,)),
    "undecided and not confirmed": Made(
        (CLEAN, SEEN, REFUTED), (3, 0), "undecided", AGAIN, known=(TEARS,)
    ),
    "undecided by experiments": Made(
        (CLEAN, SEEN, EXPLAINED, UNSETTLED), (3, 0), "undecided", known=(TEARS,)
    ),
    "undecided, and the cause is not seen by itself": Made(
        (CLEAN, SEEN, GONE), (3, 0), "undecided", known=(TEARS,)
    ),
    "of another cause": Made(
        (CLEAN, SEEN),
        (1, 1),
        "not minimized",
        known=(replace(cause("SB"), name="other"),),
        denials=frozenset({"not seen"}),
    ),
}
"""With a test that showed a forbidden outcome and has no finding."""
OTHERS = {
    "clean": Made((CLEAN,), (0, 0), denials=frozenset({"nothing new", "all allowed"})),
    "clean so far": Made(
        (CLEAN,), (0, 0), end=None, denials=frozenset({"nothing new", "all allowed"})
    ),
    "interrupted": Made(
        (CLEAN,),
        (3, 3),
        end=CampaignEnded(at=STARTED + 3, spent_s=3.0, interrupted=True),
        denials=frozenset({"nothing new", "all allowed"}),
    ),
    "over the budget": Made(
        (executed(4, 0.5, verdicts={"allowed": 60, "unknown": 4}),),
        (3, 0),
        denials=frozenset({"nothing new", "all decided allowed"}),
    ),
    "nothing ran": Made(
        (), (3, 3), denials=frozenset({"nothing new", "nothing ran", "nothing observed"})
    ),
    "nothing judged": Made(
        (executed(4, 0.5, verdicts={}, end="timed out"),),
        (3, 3),
        denials=frozenset({"nothing new", "nothing judged", "nothing observed"}),
    ),
    "a new finding": Made((CLEAN, SEEN, NEW), (1, 1)),
    "a known finding": Made(
        (CLEAN, SEEN, NEW),
        (0, 0),
        known=(KnownFinding("because", "v3-1"),),
        denials=frozenset({"nothing new"}),
    ),
    "a known cause": Made(
        (CLEAN, SEEN, EXPLAINED),
        (0, 0),
        known=(TEARS,),
        denials=frozenset({"nothing new", "all known"}),
    ),
    "a known cause that is gone": Made(
        (CLEAN, GONE),
        (0, 0),
        known=(TEARS,),
        denials=frozenset({"nothing new", "all allowed", "not seen", "gone"}),
    ),
    "a known finding that is not seen": Made(
        (CLEAN,),
        (0, 0),
        known=(KnownFinding("because", "v3-2"),),
        denials=frozenset({"nothing new", "all allowed", "not seen"}),
    ),
}
"""Without one."""
