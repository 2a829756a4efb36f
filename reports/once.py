"""Events that happen once: a second one is a copy, and would count twice.

Whoever edits a campaign's store, or its shard logs, may copy events of every kind.
`litmusfuzz.reports.fold` refuses the copies, as it refuses all that cannot happen.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports import events

if TYPE_CHECKING:
    from collections.abc import Hashable

    from litmusfuzz.reports.events import AnyEvent

_IN_A_SHARD: Final = {
    events.ShardPlanned: "is planned",
    events.ShardStarted: "starts",
    events.ShardEnded: "ends",
}
_BITS: Final = 10


class HappensOnce(ValueError):
    """A second event of what happens once."""


class Once:
    """The events of a campaign so far, as far as needed to tell the copies of any of them.

    - A campaign starts once, and ends once before it is resumed.
    - A shard is planned, starts and ends once.
    - A test is generated once and compared once. A configuration runs it once, executes each
      further round of it once, chooses its clusters once, and does not fail to run it after that.
    - A worker's death has a file of its own, and is reduced once. A mutant runs once.
    - All other events of a shard differ: each has its time, and a process writes no two events at
      one time (`litmusfuzz.reports.events.now`).
    """

    def __init__(self) -> None:
        self._started = self._ended = False
        self._tests: defaultdict[Hashable, _Indices] = defaultdict(_Indices)
        """Tests by type of event and configuration. They are the most: some bytes for each."""
        self._canary_at: dict[int, float] = {}
        """Time of the last canary of each shard. They run in the order of their tests."""
        self._others: set[Hashable] = set()

    def add(self, shard: int, event: AnyEvent) -> None:
        """Note an event of a shard; 0 is the campaign.

        Raises
        ------
        HappensOnce
            If it is a second one of those that happen once; nothing is noted then.
        """
        match event:
            case events.Executed() | events.ClustersChosen():
                kind = type(event), event.executor, event.configuration
                if not self._tests[kind].add(event.index):
                    what = "has run" if kind[0] is events.Executed else "has clusters for"
                    raise HappensOnce(f"{kind[1]}/{kind[2]} {what} test {event.index} already")
            case events.Continued():
                title = f"{event.executor}/{event.configuration}"
                if not self._tests[type(event), title, event.round].add(event.index):
                    raise HappensOnce(f"{title} has round {event.round} of test {event.index}")
            case events.Generated() | events.Compared():
                if not self._tests[type(event)].add(event.index):
                    what = "generated" if isinstance(event, events.Generated) else "compared"
                    raise HappensOnce(f"test {event.index} is {what} already")
            case events.CanaryRun():
                if event.at <= self._canary_at.get(shard, float("-inf")):
                    raise HappensOnce("the canary has run since")
                self._canary_at[shard] = event.at
            case events.CampaignStarted():
                if self._started:
                    raise HappensOnce("a campaign starts once")
                self._started = True
            case events.ShardPlanned() | events.ShardStarted() | events.ShardEnded():
                what = _IN_A_SHARD[type(event)]
                self._add_other((type(event), shard), f"a shard {what} once")
            case events.WorkerDied():
                self._add_other((type(event), event.file), f"{event.file} is of an earlier death")
            case events.CrashReduced():
                self._add_other((type(event), event.died_on), f"{event.died_on} is reduced already")
            case events.MutantRun():
                mutant = event.kill.mutant
                self._add_other((type(event), mutant), f"{mutant} has run already")
            case _:
                self._check_state(event)
                # A digest, because a finding is long.
                self._add_other((shard, sha256(events.encode(event)).digest()), "it is a copy")
                if isinstance(event, events.CampaignEnded | events.CampaignResumed):
                    self._ended = isinstance(event, events.CampaignEnded)

    def _check_state(self, event: AnyEvent) -> None:
        """Raise if an event says that what has happened does not, or happens again."""
        if isinstance(event, events.CampaignEnded) and self._ended:
            raise HappensOnce("the campaign has ended already")
        if isinstance(event, events.NotRun):
            kind = events.Executed, event.executor, event.configuration
            if event.index in self._tests[kind]:
                raise HappensOnce(f"{kind[1]}/{kind[2]} has run test {event.index}")

    def _add_other(self, what: Hashable, message: str) -> None:
        if what in self._others:
            raise HappensOnce(message)
        self._others.add(what)


class _Indices:
    """A set of indices of tests: those of a shard are dense, so each is one bit of a word."""

    def __init__(self) -> None:
        self._words: defaultdict[int, int] = defaultdict(int)

    def __contains__(self, index: int) -> bool:
        return bool(self._words.get(index >> _BITS, 0) >> (index % (1 << _BITS)) & 1)

    def add(self, index: int) -> bool:
        """Add an index; False if it is there already."""
        if index in self:
            return False
        self._words[index >> _BITS] |= 1 << (index % (1 << _BITS))
        return True
