"""The states of a candidate: any way through `NEXT` keeps what its properties say."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from litmusfuzz.fuzz.campaign.candidate import EXPLAINED, NEXT, Candidate, State

SETTLED = frozenset({State.CONFIRMED, State.UNCONFIRMED})


def candidate(*past: State) -> Candidate:
    """A candidate with this past."""
    nothing = cast("Any", None)
    return Candidate(1, "sparse", nothing, 0, nothing, nothing, nothing, 1, past=past)


class Candidates(RuleBasedStateMachine):
    """A candidate beside a model of it: the flags of which its state takes the place."""

    def __init__(self) -> None:
        super().__init__()
        self.candidate = candidate(State.SEEN)
        self.settled = self.in_full = False
        self.attempts = 0
        self.by = ""

    def possible(self) -> list[State]:
        """States that may follow."""
        found = NEXT[self.candidate.state]
        return sorted(found - ({State.SUSPECT} if self.settled else set()), key=str)

    @precondition(lambda self: self.possible())
    @rule(data=st.data(), key=st.sampled_from(["a", "b"]))
    def go(self, data: st.DataObject, key: str) -> None:
        """A transition that is possible."""
        state = data.draw(st.sampled_from(self.possible()))
        self.by = key if state in EXPLAINED else ""
        self.candidate.to(state, self.by)
        self.settled |= state in SETTLED
        self.in_full |= state is State.IN_FULL
        self.attempts += state is State.UNCONFIRMED

    @rule(state=st.sampled_from(State))
    def refuse(self, state: State) -> None:
        """A transition that is not possible changes nothing."""
        if state not in self.possible():
            before = self.candidate.past
            with pytest.raises(AssertionError):
                self.candidate.to(state)
            assert self.candidate.past == before

    @invariant()
    def is_as_its_past(self) -> None:
        """What the flags were."""
        mine = self.candidate
        assert (mine.settled, mine.in_full) == (self.settled, self.in_full)
        assert (mine.attempts, mine.by) == (self.attempts, self.by)
        assert mine.suspect == (mine.state is State.SUSPECT)
        assert not (mine.suspect and mine.settled), "a crash says nothing about a fresh process"

    @invariant()
    def is_new_or_to_be_reduced_only_once_it_is_confirmed(self) -> None:
        """Nothing is reported that a fresh process has not shown."""
        if self.candidate.state is State.NEW:
            assert State.CONFIRMED in self.candidate.past


TestCandidates = Candidates.TestCase
TestCandidates.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)


def test_every_state_can_be_reached_and_left_but_for_new() -> None:
    assert NEXT.keys() == set(State)
    assert frozenset().union(*NEXT.values()) == set(State)
    assert [state for state, following in NEXT.items() if not following] == [State.NEW]


def test_what_a_crash_throws_doubt_on_needs_a_fresh_process() -> None:
    """So does what counted as a sighting, or as unsound clusters, without one."""
    assert NEXT[State.SUSPECT] == SETTLED
    for state in (State.SEEN, State.LOOKS_KNOWN, State.IN_FULL, State.KNOWN, State.CLUSTERS):
        assert State.SUSPECT in NEXT[state]
    with pytest.raises(AssertionError, match="fresh process"):
        candidate(State.SEEN, State.CONFIRMED, State.KNOWN).to(State.SUSPECT)


def test_an_attempt_is_counted_for_each_process_that_does_not_show_it() -> None:
    """One of an earlier shard counts as well."""
    mine = candidate(State.UNCONFIRMED)
    assert mine.attempts == 1
    mine.to(State.UNCONFIRMED)
    mine.to(State.CONFIRMED)
    assert (mine.attempts, mine.settled, mine.known) == (2, True, False)
    mine.to(State.LOOKS_KNOWN, "key")
    assert (mine.known, mine.by) == (True, "key")
