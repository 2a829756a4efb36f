"""A candidate for a finding: a test with a forbidden outcome, and how far it is understood.

A candidate is plain data, and always in one `State`. `NEXT` has all transitions that are possible;
only `Candidate.to` makes one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.campaign.target import Target
    from litmusfuzz.fuzz.executors.protocol import Noise
    from litmusfuzz.fuzz.finding.judge import Judgement


class State(Enum):
    """How far a candidate is understood."""

    SEEN = "seen"
    """An execution of this campaign, or of an earlier shard, has shown it."""
    SUSPECT = "suspect"
    """The process that showed it has crashed later: a fresh one has to show it first."""
    LOOKS_KNOWN = "looks known"
    """It contains a known cause, and waits until somebody looks whether there is more."""
    IN_FULL = "in full"
    """It is reduced although it looks known."""
    CONFIRMED = "confirmed"
    """A fresh process has shown it as it was run."""
    UNCONFIRMED = "unconfirmed"
    """A fresh process has not; another one may."""
    KNOWN = "known"
    """It counts as a sighting of a known cause."""
    CLUSTERS = "clusters"
    """Unsound clusters allow what it shows."""
    NEW = "new"
    """It is stored as a new finding."""


NEXT: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        State.SEEN: frozenset(
            {
                State.SUSPECT,
                State.LOOKS_KNOWN,
                State.CONFIRMED,
                State.UNCONFIRMED,
                State.CLUSTERS,
            }
        ),
        State.SUSPECT: frozenset({State.CONFIRMED, State.UNCONFIRMED}),
        # A check may show that its configuration lacks the cause: then it is as good as new.
        State.LOOKS_KNOWN: frozenset({State.SEEN, State.SUSPECT, State.IN_FULL, State.KNOWN}),
        State.IN_FULL: frozenset({State.SUSPECT, State.CONFIRMED, State.UNCONFIRMED}),
        State.CONFIRMED: frozenset({State.LOOKS_KNOWN, State.KNOWN, State.CLUSTERS, State.NEW}),
        State.UNCONFIRMED: frozenset({State.CONFIRMED, State.UNCONFIRMED}),
        # Both rest on what a process showed that may crash later, unless a fresh one has shown it.
        State.KNOWN: frozenset({State.SUSPECT}),
        State.CLUSTERS: frozenset({State.SUSPECT}),
        State.NEW: frozenset(),
    }
)
"""The states that may follow each state."""
EXPLAINED: Final = frozenset({State.LOOKS_KNOWN, State.KNOWN, State.CLUSTERS, State.NEW})
"""States in which a candidate belongs to a finding or known cause."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A test with a forbidden outcome, as it was executed.

    Parameters
    ----------
    index : int
        Number of the test in the campaign's seed.
    family : str
    test : LitmusTest
        As it was run.
    executor : int
        Number of the campaign's executor: there may be several of one name.
    target : Target
        What showed it.
    judgement : Judgement
    noise : Noise
    seed : int
        Of the run.
    repetition : int
        Configurations of the same executor that were given the test before.
    past : tuple of State
        The states that it has been in, the present one last.
    by : str
        Key of the finding or known cause that it belongs to, in a state of `EXPLAINED`; "" if that
        is not known yet.
    contains : dict of str to bool
        By key of a known cause, whether its ops are in the test.
    seen_in : Target, optional
        Where the campaign saw it, if it was taken under control since.
    beyond_control : bool
        True if searches have not shown it, or its schedule was not repeated.
    """

    index: int
    family: str
    test: LitmusTest
    executor: int
    target: Target
    judgement: Judgement
    noise: Noise
    seed: int
    repetition: int = 0
    past: tuple[State, ...] = (State.SEEN,)
    by: str = ""
    contains: dict[str, bool] = field(default_factory=dict)
    seen_in: Target | None = None
    beyond_control: bool = False

    @property
    def state(self) -> State:
        """Its present state."""
        return self.past[-1]

    def to(self, state: State, by: str = "") -> None:
        """Go to another state.

        Parameters
        ----------
        state : State
        by : str
            Key of the finding or known cause that it belongs to then.
        """
        assert state in NEXT[self.state], f"from {self.state} to {state}"
        assert not (state is State.SUSPECT and self.settled), "a fresh process has been asked"
        self.past = (*self.past, state)
        self.by = by

    def behind(self, test: LitmusTest, judgement: Judgement) -> Candidate:
        """A candidate of a test in this one, which shows something by itself."""
        return replace(self, test=test, judgement=judgement, past=(State.SEEN,), by="", contains={})

    @property
    def suspect(self) -> bool:
        """True if its process has crashed, and no fresh one has been asked yet."""
        return self.state is State.SUSPECT

    @property
    def settled(self) -> bool:
        """True once a fresh process has shown it as it was run, or has not."""
        return State.CONFIRMED in self.past or State.UNCONFIRMED in self.past

    @property
    def attempts(self) -> int:
        """Number of fresh processes that have not shown it."""
        return self.past.count(State.UNCONFIRMED)

    @property
    def in_full(self) -> bool:
        """True if it is reduced whatever it looks like."""
        return State.IN_FULL in self.past

    @property
    def known(self) -> bool:
        """True if it looks like a known cause, or counts as a sighting of one."""
        return self.state in (State.LOOKS_KNOWN, State.KNOWN)

    @property
    def first_target(self) -> Target:
        """Where the campaign saw it, under control or not."""
        return self.seen_in or self.target

    @property
    def event_fields(self) -> dict[str, Any]:
        """Fields of every event about it: its test, executor and configuration."""
        return {
            "index": self.index,
            "executor": self.target.executor,
            "configuration": self.first_target.config.name,
        }
