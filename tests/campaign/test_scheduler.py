"""Who does what next: lanes in their order, questions without effects, and shares of the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from campaign.counted import LOOK_S, counted_clock
from campaign.golden import event_log

from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.scheduler import Lane, Scheduler, Work
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.campaign.shares import Account, Ledger
from litmusfuzz.fuzz.executors.table import configuration

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.slots import Slot

SLOT = cast("Slot", SimpleNamespace())


class Counting(Lane):
    """So many pieces of work, of which each is noted as it is done."""

    def __init__(self, name: str, left: int, done: list[str]) -> None:
        self.name = name
        self.left = left
        self.done = done

    def update(self, slot: Slot) -> None:
        """Nothing of it changes by itself."""

    def peek(self, slot: Slot) -> Work | None:
        """One of them."""
        return Work(self.name, self.left) if self.left else None

    def start(self, slot: Slot, work: Work) -> Coroutine[Any, Any, None]:
        """Do it."""
        self.left -= 1
        return self._do()

    async def _do(self) -> None:
        self.done.append(self.name)

    def holds(self, *, overtime: bool) -> bool:
        """True until all are done; in overtime none is."""
        return self.left > 0 and not overtime


def test_the_first_lane_that_has_work_gets_a_worker() -> None:
    done: list[str] = []
    scheduler = Scheduler()
    scheduler.lanes = (Counting("a", 0, done), Counting("b", 2, done), Counting("c", 1, done))
    assert scheduler.holds(overtime=False)
    assert not scheduler.holds(overtime=True)
    while (work := scheduler.next(SLOT)) is not None:
        asyncio.run(work)
    assert done == ["b", "b", "c"]
    assert not scheduler.holds(overtime=False)


def test_a_question_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign in which each is asked three times has the same events."""
    executor = "mutant/stale-reads", "plain"
    once = event_log(*executor, 30, 7, tmp_path / "once")
    following = Scheduler.following
    asked = 0

    def repeatedly(scheduler: Scheduler, slot: Slot) -> Work | None:
        nonlocal asked
        asked += 1
        first, second, third = (following(scheduler, slot) for _ in range(3))
        assert first == second == third
        return third

    monkeypatch.setattr(Scheduler, "following", repeatedly)
    assert event_log(*executor, 30, 7, tmp_path / "thrice") == once
    assert asked > 30


def test_what_a_worker_may_take_is_spent_until_it_ends_and_then_what_it_took() -> None:
    ledger = Ledger()
    with counted_clock():
        with ledger.charged(Account.REDUCING, 0, 6.0) as charge:
            assert ledger.of(Account.REDUCING, 0) == 6.0
            assert ledger.of(Account.REDUCING, 1) == 0.0
            assert charge.elapsed_s == pytest.approx(LOOK_S)
            charge.account = Account.KNOWN
        assert ledger.of(Account.REDUCING, 0) == 0.0
        assert ledger.of(Account.KNOWN, 0) == pytest.approx(2 * LOOK_S)


def test_what_is_cancelled_is_spent() -> None:
    ledger = Ledger()

    def cut() -> None:
        with ledger.charged(Account.KNOWN, 0, 6.0):
            raise asyncio.CancelledError

    with counted_clock():
        with pytest.raises(asyncio.CancelledError):
            cut()
        assert ledger.of(Account.KNOWN, 0) == pytest.approx(LOOK_S)


def test_each_lane_of_a_campaign_has_a_name_of_its_own(tmp_path: Path) -> None:
    native = "native", configuration("native", "controlled")
    settings = Settings(seed=1, out=tmp_path, executors=(native,))
    lanes = Engine(settings, lambda _: None).scheduler.lanes
    assert len({lane.name for lane in lanes}) == len(lanes)
