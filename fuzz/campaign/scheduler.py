"""Decides what each worker does next, the first lane that has work for it, and charges its time.

A *lane* is a policy: it knows one kind of work, whether there is time for it, and how it is done.
The lanes and their order are in `fuzz.campaign.lanes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

    from litmusfuzz.fuzz.campaign.shares import Ledger
    from litmusfuzz.fuzz.campaign.slots import Slot


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that a lane has for a worker.

    Parameters
    ----------
    lane : str
        Name of the lane.
    about : object
        As the lane itself has it: a candidate, a crash, a test.
    cost_s : float
        Seconds that it is expected to take; 0 if the lane does not reckon with them.
    """

    lane: str
    about: Any
    cost_s: float = 0.0


class Lane(Protocol):
    """One kind of work, and the policy that says when a worker does it."""

    name: str

    @property
    def account(self) -> str:
        """The account that its time is charged to: its own, unless it shares one."""
        return self.name

    def update(self, slot: Slot) -> None:
        """Bring what waits up to date, before `peek` is asked for this worker.

        By default nothing of it changes by itself.
        """
        return

    def peek(self, slot: Slot) -> Work | None:
        """The work that it has for a worker; None if there is none, or no time for it.

        A question: it changes nothing.
        """

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None] | None:
        """Take work that `peek` has named; what the worker is to await.

        None if there was none after all: no test could be generated, say. The lanes after this one
        are then asked.
        """

    def holds(self, *, overtime: bool) -> bool:
        """True if the campaign is not to end before this lane has done its work.

        Parameters
        ----------
        overtime : bool
            True once the time for new tests is over.
        """
        return False


class Scheduler:
    """Asks the lanes, in their order.

    Parameters
    ----------
    ledger : Ledger

    Attributes
    ----------
    lanes : sequence of Lane
        The first one that has work for a worker gets it.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lanes: Sequence[Lane] = ()

    def _offers(self, slot: Slot) -> Iterator[tuple[Lane, Work]]:
        """The lanes that have work for a worker, in their order, and that work."""
        for lane in self.lanes:
            lane.update(slot)
        for lane in self.lanes:
            if (work := lane.peek(slot)) is not None:
                yield lane, work

    def following(self, slot: Slot) -> Work | None:
        """The work that a worker would do next; None if there is none."""
        return next((work for _, work in self._offers(slot)), None)

    def next(self, slot: Slot) -> Coroutine[Any, Any, None] | None:
        """Start the next work of a worker, which is to be awaited; None if there is none."""
        for lane, work in self._offers(slot):
            with self.ledger.charged(lane.account, slot):
                started = lane.start(slot, work)
            if started is not None:
                return self._charged(lane.account, slot, work.cost_s, started)
        return None

    async def _charged(
        self, account: str, slot: Slot, cost_s: float, started: Coroutine[Any, Any, None]
    ) -> None:
        with self.ledger.charged(account, slot, cost_s):
            await started

    def holds(self, *, overtime: bool) -> bool:
        """True if a lane has something left that the campaign is to do before it ends."""
        return any(lane.holds(overtime=overtime) for lane in self.lanes)
