"""Copies of events are refused: of each kind, wherever the copy stands."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, get_args

import pytest
from helpers_events import PLAIN, STARTED, RandomCampaign, died, executed, started
from msgspec.structs import replace

from litmusfuzz.reports import events as e
from litmusfuzz.reports.once import HappensOnce, Once

if TYPE_CHECKING:
    from helpers_events import Stream

    from litmusfuzz.reports.events import AnyEvent

WHERE: dict[str, Any] = {"index": 5, "executor": "native", "configuration": "plain"}
OF_ONE_TEST: tuple[AnyEvent, ...] = (
    e.Generated(index=5, family="dag", executor="native", ops={}),
    executed(5, 1.0),
    e.Compared(index=5, family="dag", totals={}),
    e.ClustersChosen(**WHERE, verdicts={"sound": 1}),
)
HAPPEN_ONCE: tuple[tuple[int, AnyEvent], ...] = (
    (0, started(PLAIN)),
    (0, e.CampaignEnded(spent_s=5.0)),
    (1, e.ShardPlanned(configurations={})),
    (1, e.ShardStarted(host="h", pid=1, versions={})),
    (1, e.ShardEnded(seconds=1.0)),
    (1, died(5.0)),
    (1, e.MutantRun(kill=e.Kill("mutant/a", "native", None, 9))),
    *((1, each) for each in OF_ONE_TEST),
)


def noted(stream: Stream) -> Once:
    once = Once()
    for shard, event in stream:
        once.add(shard, event)
    return once


def test_a_copy_of_any_event_is_refused_behind_it_and_at_the_end() -> None:
    """The originals, of every kind, are not."""
    stream = RandomCampaign(2).run(4000)
    assert {type(event) for _, event in stream} == set(get_args(e.AnyEvent))
    once = Once()
    for shard, event in stream:
        once.add(shard, event)
        with pytest.raises(HappensOnce):
            once.add(shard, event)
    for shard, event in stream:
        with pytest.raises(HappensOnce):
            once.add(shard, event)


@pytest.mark.parametrize("place", range(len(HAPPEN_ONCE)))
def test_what_happens_once_does_not_happen_again_at_another_time(place: int) -> None:
    shard, event = HAPPEN_ONCE[place]
    once = noted([(shard, event)])
    with pytest.raises(HappensOnce):
        once.add(shard, replace(event, at=STARTED + 99))


@pytest.mark.parametrize("event", OF_ONE_TEST, ids=lambda event: type(event).__name__)
def test_nor_in_another_shard_but_for_another_test(event: AnyEvent) -> None:
    """Tests lie close together or far apart."""
    indices = [n + far for n, far in product((0, 1, 31, 1023, 1024, 1025), (0, 1 << 31, 1 << 62))]
    once = noted([(1, replace(event, index=index)) for index in indices])
    for index in indices:
        with pytest.raises(HappensOnce, match=f"test {index}"):
            once.add(2, replace(event, index=index))
    once.add(2, event)


def test_each_configuration_runs_a_test_once() -> None:
    once = noted([(1, executed(5, 1.0))])
    once.add(1, executed(5, 1.0, configuration="split"))
    once.add(1, executed(5, 1.0, executor="jax"))
    once.add(1, e.NotRun(**{**WHERE, "index": 6}))
    once.add(2, e.NotRun(**{**WHERE, "index": 6}))
    once.add(3, executed(6, 1.0))
    for index in (5, 6):
        with pytest.raises(HappensOnce, match=f"native/plain has run test {index}"):
            once.add(3, e.NotRun(**{**WHERE, "index": index}))


def test_a_campaign_ends_again_after_it_is_resumed() -> None:
    ended = e.CampaignEnded(spent_s=5.0)
    once = noted([(0, ended), (0, e.CampaignResumed(asked_s=9.0))])
    with pytest.raises(HappensOnce, match="copy"):
        once.add(0, ended)
    once.add(0, e.CampaignEnded(spent_s=9.0))


def test_a_process_writes_no_two_events_at_one_time() -> None:
    times = [e.now() for _ in range(10_000)]
    assert all(first < second for first, second in pairwise(times))
    for time in times[::1000]:
        assert e.decode(e.encode(e.Problem(at=time, message="m"))).at == time


def test_a_mutant_has_one_result() -> None:
    """Whatever the second one says, and in whatever shard."""
    missed = e.Kill("mutant/a", "native", None, 9)
    other = e.Kill("mutant/b", "native", None, 9)
    once = noted([(1, e.MutantRun(kill=missed)), (1, e.MutantRun(kill=other))])
    for shard in (1, 2):
        with pytest.raises(HappensOnce, match="mutant/a has run already"):
            once.add(shard, e.MutantRun(kill=e.Kill("mutant/a", "native", 0.1, 9)))
