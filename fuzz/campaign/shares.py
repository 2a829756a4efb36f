"""What the seconds of the workers are spent on, the shares of their time, and what is left of each.

The scheduler charges all that a lane does to the lane's account. Nothing else charges anything,
except what turns out to belong to another account while it is done.
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S, KNOWN_SHARE, TRIAL_SHARE, TRYING_AGAIN_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.fuzz.campaign.course import Course
    from litmusfuzz.fuzz.campaign.dispatcher import Dispatcher
    from litmusfuzz.fuzz.campaign.slots import Slot


REDUCE: Final = "reduce"
"""Account of findings, crashes and unsound clusters that are reduced."""
RETRY: Final = "retry"
"""Account of what a fresh process had not shown."""
KNOWN: Final = "known"
"""Account of what is known, or has turned out to be."""
ROUNDS: Final = "rounds"
"""Account of further executions of tests."""


@dataclass(slots=True)
class Charge:
    """Seconds that a worker is spending; the account may change until they are spent."""

    account: str
    started: float
    inside_s: float = 0.0
    """Seconds of charges inside it, which it is less."""

    @property
    def elapsed_s(self) -> float:
        """Seconds so far."""
        return clock.now() - self.started


class Ledger:
    """Seconds that each executor's workers have spent on each account, or are expected to.

    A lane has an account by its name (`fuzz.campaign.scheduler.Lane.account`).
    """

    def __init__(self) -> None:
        self._spent: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._reserved: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._open: dict[Slot, Charge] = {}
        """By worker, the innermost charge that has not ended."""

    def of(self, account: str, executor: int) -> float:
        """Seconds spent and reserved."""
        key = account, executor
        return self._spent.get(key, 0.0) + self._reserved.get(key, 0.0)

    def add(self, account: str, executor: int, seconds: float) -> None:
        """Note that these were spent."""
        self._spent[account, executor] += seconds

    @contextmanager
    def charged(self, account: str, slot: Slot, cost_s: float = 0.0) -> Iterator[Charge]:
        """Charge the time of the block, even of a cancelled one; until it ends, an estimate.

        Meanwhile another worker may ask what is left. What a block inside it charges is charged
        there only.
        """
        charge, around = Charge(account, clock.now()), self._open.get(slot)
        key = account, slot.executor.number
        self._reserved[key] += cost_s
        self._open[slot] = charge
        try:
            yield charge
        finally:
            elapsed_s = charge.elapsed_s
            self._reserved[key] -= cost_s
            self.add(charge.account, slot.executor.number, elapsed_s - charge.inside_s)
            if around is None:
                del self._open[slot]
            else:
                self._open[slot] = around
                around.inside_s += elapsed_s


class Shares:
    """Says what there is time for.

    A campaign of so many tests has no shares: it runs each test that is wanted, and reduces once
    all are generated, so that it can be repeated.

    Parameters
    ----------
    course : Course
    dispatcher : Dispatcher
    slots : sequence of Slot
        All of the campaign.
    """

    def __init__(self, course: Course, dispatcher: Dispatcher, slots: Sequence[Slot]) -> None:
        self.course = course
        self.settings = course.settings
        self.dispatcher = dispatcher
        self.slots = slots
        self.ledger = Ledger()

    def left_s(self, account: str, share: float, slot: Slot) -> float:
        """What is left of a share of the time so far, in seconds; less than 0 if it is exceeded."""
        granted = share * self.course.elapsed_s * self.settings.workers
        return granted - self.ledger.of(account, slot.executor.number)

    def reducing_is_used_up(self, slot: Slot) -> bool:
        """True if nothing may be reduced for lack of time, however little it takes."""
        if self.settings.counted or self.course.time_left_s <= 0:
            return False
        return self.left_s(REDUCE, self.settings.minimizing_share, slot) <= 0

    def may_reduce(self, slot: Slot, cost_s: float) -> bool:
        """True if a worker may begin to reduce something that takes so long.

        It may exceed its share, by all but the part that its first trial takes.
        """
        executor, time_left_s = slot.executor, self.course.time_left_s
        others = [other for other in self.slots if other.executor is executor and other is not slot]
        fuzzing = executor.waiting or any(each.busy and not each.minimizing for each in others)
        busy = sum(each.minimizing for each in others)
        if time_left_s <= 0 or (self.dispatcher.all_generated and not fuzzing):
            return True  # nothing else is left to do
        if self.settings.counted and time_left_s > self.settings.time_s / 2:
            return False  # a campaign of so many tests generates all first, to be repeatable
        if busy and 2 * (busy + 1) > self.settings.workers:
            return False  # a finding can take minutes: half of the workers run new tests meanwhile
        # A share of the time, so that a rare finding early on does not use all of it.
        left_s = self.left_s(REDUCE, self.settings.minimizing_share, slot)
        return TRIAL_SHARE * cost_s <= left_s

    @property
    def in_overtime(self) -> bool:
        """True once the time for new tests is over, and there is time for what was found."""
        return self.course.time_left_s <= 0 and not self.course.overtime_is_over

    def may_retry(self, slot: Slot) -> bool:
        """True if a fresh process may be asked again, in a campaign that is limited by time."""
        return self.left_s(RETRY, TRYING_AGAIN_SHARE, slot) >= ATTEMPT_S

    def left_for_known_s(self, slot: Slot) -> float:
        """Seconds that a worker may use for what is known."""
        if slot.canary:
            return 0.0
        if self.dispatcher.all_generated and not slot.executor.waiting:
            return math.inf
        if self.course.time_left_s <= 0:
            return 0.0
        return self.share_for_known_s(slot)

    def share_for_known_s(self, slot: Slot) -> float:
        """What is left of the share of time for what is known, in seconds."""
        return self.left_s(KNOWN, KNOWN_SHARE, slot)

    def left_for_rounds_s(self, slot: Slot) -> float:
        """Seconds that a worker may use for further executions."""
        if self.settings.counted:
            return self.course.time_left_s
        return self.left_s(ROUNDS, self.settings.rounds_share, slot)
