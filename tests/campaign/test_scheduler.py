"""Who does what next: lanes in their order, questions without effects, and shares of the time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from campaign.campaigns import Run
from campaign.counted import LOOK_S, counted_clock
from helpers_settings import settings_of

from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.campaign.scheduler import Lane, Scheduler, Work
from litmusfuzz.fuzz.campaign.shares import KNOWN, REDUCE, Ledger
from litmusfuzz.fuzz.executors.table import configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.slots import Slot


def slot_of(executor: int) -> Slot:
    """As much of a worker as the scheduler and the ledger need."""

    class Worker:
        def __init__(self) -> None:
            self.executor = SimpleNamespace(number=executor)

    return cast("Slot", Worker())


SLOT = slot_of(0)


class Counting(Lane):
    """So many pieces of work, of which each is noted as it is done."""

    def __init__(self, name: str, left: int, done: list[str]) -> None:
        self.name = name
        self.left = left
        self.done = done

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
    scheduler = Scheduler(Ledger())
    scheduler.lanes = (Counting("a", 0, done), Counting("b", 2, done), Counting("c", 1, done))
    assert scheduler.holds(overtime=False)
    assert not scheduler.holds(overtime=True)
    while (work := scheduler.next(SLOT)) is not None:
        asyncio.run(work)
    assert done == ["b", "b", "c"]
    assert not scheduler.holds(overtime=False)


class Empty(Counting):
    """It seems to have work, and when that is to start there is none."""

    def start(self, slot: Slot, work: Work) -> None:
        """Start nothing."""


def test_a_lane_without_work_after_all_does_not_starve_those_after_it() -> None:
    done: list[str] = []
    scheduler = Scheduler(Ledger())
    scheduler.lanes = (Empty("a", 1, done), Counting("b", 1, done), Empty("c", 1, done))
    while (work := scheduler.next(SLOT)) is not None:
        asyncio.run(work)
    assert done == ["b"]


def state_of(scheduler: Scheduler) -> object:
    """What waits in a campaign, and what was spent."""
    lanes: dict[str, Any] = {lane.name: lane for lane in scheduler.lanes}
    queue, ledger = lanes["reduce"].candidates, lanes["reduce"].shares.ledger
    look_alikes, dispatcher = queue.look_alikes, lanes["first"].dispatcher
    return (
        [(each, each.past) for each in (*queue.waiting, *queue.unconfirmed)],
        (len(queue.waiting), dict(queue.in_work), [*lanes["crashes"].crashes.waiting]),
        ([*look_alikes.waiting], dict(look_alikes.checked), dict(look_alikes.in_full_at)),
        [each.unchecked for each in queue.findings.known],
        [[*each._waiting] for each in lanes["rounds"].unfinished.values()],
        (dispatcher.dispatched, dict(dispatcher.numbers)),
        [[*each.waiting] for each in dispatcher.executors],
        (dict(ledger._spent), dict(ledger._reserved)),
    )


def ask_twice(scheduler: Scheduler) -> set[str]:
    """Have each question asked twice, at one time; the lanes that have had work, so far."""
    had_work = set[str]()

    def asked_twice(lane: Lane) -> Callable[[Slot], Work | None]:
        peek = lane.peek

        def asked(slot: Slot) -> Work | None:
            at = clock.now()
            before = state_of(scheduler)
            with pytest.MonkeyPatch.context() as stopped:
                stopped.setattr(clock, "now", lambda: at)
                first, second = peek(slot), peek(slot)
            assert first == second
            assert state_of(scheduler) == before
            had_work.update([lane.name] * (first is not None))
            return second

        return asked

    for lane in scheduler.lanes:
        lane.peek = asked_twice(lane)  # type: ignore[method-assign]
    return had_work


@pytest.mark.parametrize("limit", [{"tests": 100, "time_s": 3_600}, {"time_s": 3.0}], ids=str)
def test_a_question_changes_nothing(tmp_path: Path, limit: dict[str, Any]) -> None:
    """Each lane has the same answer when it is asked again, with shares of the time and without."""
    stale = "mutant/stale-reads", configuration("mutant/stale-reads", "plain")
    run = Run(settings_of(seed=7, out=tmp_path, executors=(stale,), workers=1, **limit))
    had_work = ask_twice(run.campaign.scheduler)
    run.run(one_at_a_time=True)
    assert had_work >= {"first", "rounds", "reduce", "canary"}


def test_the_time_of_a_lane_is_charged_to_its_account() -> None:
    """To its own one, or to that of another lane, which shares its time."""
    scheduler = Scheduler(Ledger())

    class Sharing(Counting):
        account = "own"

    scheduler.lanes = (Counting("own", 2, []), Sharing("other", 1, []))
    with counted_clock():
        while (work := scheduler.next(SLOT)) is not None:
            asyncio.run(work)
    assert scheduler.ledger.of("own", 0) == pytest.approx(3 * 2 * LOOK_S)
    assert scheduler.ledger.of("other", 0) == scheduler.ledger.of("own", 1) == 0.0


def test_what_a_worker_may_take_is_spent_until_it_ends_and_then_what_it_took() -> None:
    ledger = Ledger()
    with counted_clock():
        with ledger.charged(REDUCE, SLOT, 6.0) as charge:
            assert ledger.of(REDUCE, 0) == 6.0
            assert ledger.of(REDUCE, 1) == 0.0
            assert charge.elapsed_s == pytest.approx(LOOK_S)
            charge.account = KNOWN
        assert ledger.of(REDUCE, 0) == 0.0
        assert ledger.of(KNOWN, 0) == pytest.approx(2 * LOOK_S)


def test_a_second_is_charged_once() -> None:
    """To the innermost account, for each worker; what another one does meanwhile counts as well."""
    ledger = Ledger()
    with counted_clock():
        with ledger.charged("outer", SLOT), ledger.charged("beside", slot_of(0)):
            for _ in range(2):
                with ledger.charged(REDUCE, SLOT):
                    clock.now()
        assert ledger.of(REDUCE, 0) == pytest.approx(4 * LOOK_S)
        assert ledger.of("beside", 0) == pytest.approx(7 * LOOK_S)
        assert ledger.of("outer", 0) == pytest.approx(9 * LOOK_S - 4 * LOOK_S)


def test_what_is_cancelled_is_spent() -> None:
    ledger = Ledger()

    def cut() -> None:
        with ledger.charged(KNOWN, SLOT, 6.0):
            raise asyncio.CancelledError

    with counted_clock():
        with pytest.raises(asyncio.CancelledError):
            cut()
        assert ledger.of(KNOWN, 0) == pytest.approx(LOOK_S)


def test_each_lane_of_a_campaign_has_a_name_of_its_own(tmp_path: Path) -> None:
    native = "native", configuration("native", "controlled")
    settings = settings_of(seed=1, out=tmp_path, executors=(native,))
    lanes = Engine(settings, lambda _: None).scheduler.lanes
    assert len({lane.name for lane in lanes}) == len(lanes)
