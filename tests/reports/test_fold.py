"""The report as a fold over events: by hand, each figure a second way, and laws."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields
from itertools import product
from typing import TYPE_CHECKING, TypeVar, get_args

import msgspec
import pytest
from helpers import for_each
from helpers_events import (
    CANARY,
    PLAIN,
    STARTED,
    RandomCampaign,
    added,
    died,
    executed,
    shown,
    started,
)
from helpers_figures import Figures

from litmusfuzz.corpus.textfile import Script
from litmusfuzz.reports import events as e
from litmusfuzz.reports.events import AnyEvent, decode, encode
from litmusfuzz.reports.fold import Fold
from litmusfuzz.reports.open_tests import UnconfirmedTest
from litmusfuzz.reports.report import (
    FamilyTotals,
    Moment,
    Report,
    Share,
)

if TYPE_CHECKING:
    from helpers_events import Stream

T = TypeVar("T")
Run = tuple[int, str, str]


def folded(stream: Stream) -> Fold:
    fold = Fold()
    for shard, event in stream:
        fold.apply(shard, event)
    return fold


# --- every figure a second way ---------------------------------------------------------

SEEDS = (1, 2, 7)
CAMPAIGNS = {seed: RandomCampaign(seed).run(2200) for seed in SEEDS}


@pytest.fixture(scope="module", params=SEEDS)
def compared(request: pytest.FixtureRequest) -> tuple[Report, Figures]:
    stream = CAMPAIGNS[request.param]
    return folded(stream).report("folder"), Figures(stream, "folder")


@for_each("field", [field.name for field in fields(Report)], groups=1)
def test_every_figure_a_second_way(compared: tuple[Report, Figures], field: str) -> None:
    report, second = compared
    assert getattr(report, field) == second.of(field)


def test_the_campaigns_have_every_event_and_every_state() -> None:
    """Or the test above would show little."""
    stream = [each for stream in CAMPAIGNS.values() for each in stream]
    assert {type(event) for _, event in stream} == set(get_args(AnyEvent))
    runs = [x for each in CAMPAIGNS.values() for x in Figures(each, "").runs.values()]
    states = Counter((x.key is not None, x.suspect, x.unconfirmed) for x in runs)
    every = set(product((True, False), repeat=3))
    assert set(states) == every - {(True, False, True)}  # explained, and nothing doubted it
    reports = [folded(stream).report("folder") for stream in CAMPAIGNS.values()]
    assert {each.state for report in reports for each in report.shards} == {
        "running",
        "done",
        "lost",
    }
    assert max(line.attempts for report in reports for line in report.pending) > 1
    assert any(line.minimizing_in for report in reports for line in report.pending)
    assert any(len(each.configs) > 1 for report in reports for each in report.findings)


# --- by hand ---------------------------------------------------------------------------


def report_of(*stream: AnyEvent) -> Report:
    """Of one shard in one process; events of the campaign as a whole are recognized."""
    whole = (e.CampaignStarted, e.CampaignResumed, e.Progress, e.Problem, e.CampaignEnded)
    planned = e.ShardPlanned(at=STARTED, configurations={"native": ("plain",)})
    rest = [(0 if isinstance(event, whole) else 1, event) for event in stream]
    return folded([(0, started(PLAIN)), (1, planned), *rest]).report("f")


def sightings(report: Report) -> dict[str, int]:
    return {each.key: each.in_this_run for each in report.findings}


def test_each_event_has_a_handler_and_an_empty_campaign_a_report() -> None:
    report = Fold().report("f")
    assert (report.graphs, report.outcomes, report.findings) == (0, 0, ())


def test_a_small_campaign() -> None:
    """A test refused, one crashed, one clean, one not run, and two of one finding."""
    found = shown(4, 4.0, allowed=4, reached=1, seconds=2.0, judging_s=0.5)
    where = {"executor": "native", "configuration": "plain"}
    report = report_of(
        e.Generated(
            index=1,
            family="dag",
            executor="native",
            ops={"Assign": 2},
            lacking={"native/plain": ("a", "b")},
        ),
        e.Generated(
            index=2,
            family="dag",
            executor="native",
            ops={"Assign": 1, "Read": 1},
            generating_s=1.0,
        ),
        executed(2, 1.0, end="refused: c", verdicts={}),
        executed(3, 2.0, end="crashed", verdicts={}),
        died(2.0),
        executed(9, 3.0, allowed=4, reached=3, verdicts={"allowed": 60, "unknown": 4}),
        e.NotRun(index=10, **where),
        found,
        e.ReductionStarted(index=4, **where),
        added(found, "v3-1", "findings/a.yaml", at=STARTED + 6.5),
        e.ScriptRun(key="v3-1", file="findings/a.yaml", shows_it=True),
        e.ReductionEnded(index=4, **where, executions=900, seconds=3.0, counters={"found": 2}),
        shown(5, 7.25, key="v3-1", counters={"found": 1}),
        e.CanaryRun(reported=True),
        e.Progress(at=STARTED + 8, spent_s=8.0, disk_bytes=5),
        e.ShardEnded(at=STARTED + 9, seconds=8.5, drivers={"native": {"opencl:0": "A"}}),
        e.CampaignEnded(at=STARTED + 10, spent_s=9.5),
    )
    (share,) = report.by_config
    assert share == Share(
        name="native/plain",
        graphs=4,
        outcomes=64 * 3,
        seconds=2.0,
        findings=1,
        forbidden_graphs=2,
        reached=0.5,
        refused=2,
        crashed=1,
        timed_out=0,
        unknown={"over the oracle's budget": 1},
        refused_for={"a": 1, "b": 1, "c": 1},
        reached_graphs=2,
        executor="native",
        model="rfc",
        guarantees="rfc",
        not_run=1,
        minimizing_outcomes=900,
        minimizing_s=3.0,
        counters={"found": 3},
    )
    (finding,) = report.findings
    assert (finding.count, finding.first_seen, finding.last_seen) == (2, STARTED + 6, STARTED + 7)
    assert (finding.script, finding.script_shows_it) == ("findings/a.py", True)
    assert finding.entry.finding is not None
    assert finding.entry.finding.script is Script.SHOWS_IT
    assert finding.forbidden[0].plain == {"r0": 0, "r1": 0, "X": 1, "Y": 1}
    assert report.families == {"dag": FamilyTotals(2, 3.5, 2, 1, 1)}
    assert report.moments == (Moment(int(STARTED) + 8, 4, 192, 1, 5, 8),)
    assert (report.verdict, report.exit_code()) == ("1 new finding", 1)
    assert (report.ended, report.spent_s, report.pending) == (STARTED + 10, 9.5, ())
    assert report.versions["native"]["opencl:0"] == "A"


def test_each_generated_test_is_run_or_not_run_whatever_is_killed_when() -> None:
    """A shard is killed with two tests to run; the campaign is resumed, and runs one of them."""
    where = {"executor": "native", "configuration": "plain"}
    usual = {"family": "dag", "executor": "native", "ops": {}, "given": ("native/plain",)}
    stream: list[tuple[int, AnyEvent]] = [
        (0, started(PLAIN)),
        (1, e.ShardPlanned(configurations={})),
        *((1, e.Generated(index=index, **usual)) for index in range(3)),
        (1, executed(0, 1.0)),
        (1, e.NotRun(index=1, **where)),
        (1, e.ShardEnded(lost=True)),
    ]
    fold = folded(stream)
    (share,) = fold.report("").by_config
    assert (share.graphs, share.not_run) == (1, 2)
    assert fold.not_run == {(1, "native", "plain"), (2, "native", "plain")}
    stream += [(2, executed(1, 2.0)), (2, e.NotRun(index=2, **where)), (2, e.ShardEnded())]
    fold = folded(stream)
    (share,) = fold.report("").by_config
    assert (share.graphs, share.not_run) == (2, 1)
    assert fold.not_run == {(2, "native", "plain")}


def test_a_title_is_never_cut_at_a_slash() -> None:
    """Executors and configurations have slashes and commas in their names."""
    odd = e.Configured("mutant/stale-reads", "a/b,engine=pool", "rfc", "rfc", "x/y")
    other = e.Configured("mutant", "stale-reads/plain", "rfc", "rfc", "x/y")
    lacking = {odd.title: ("queues",)}
    generated = e.Generated(
        index=1,
        family="dag",
        executor="mutant",
        ops={},
        lacking=lacking,
        not_run=(other.title,),
    )
    report = folded([(0, started(odd, other)), (1, generated)]).report("f")
    assert [(x.name, x.refused, x.not_run) for x in report.by_config] == [
        ("mutant/stale-reads/a/b,engine=pool", 1, 0),
        ("mutant/stale-reads/plain", 0, 1),
    ]
    assert [(x.executor, x.name) for x in report.by_family] == [
        ("mutant/stale-reads", "mutant/stale-reads/dag")
    ]


def test_a_suspect_is_not_believed_until_it_is_confirmed() -> None:
    """Five tests in one process that crashes: one minimized before, four not."""
    tests = [shown(n, n, key="v3-1" if n in (2, 3) else None) for n in range(1, 6)]
    before = [*tests, added(tests[0], "v3-1", "findings/a.yaml", at=STARTED + 9)]
    of = {"executor": "native", "configuration": "plain"}
    assert sightings(report_of(*before)) == {"v3-1": 3}
    doubted = [*before, died(10, 1, 2, 3, 4, 5)]
    report = report_of(*doubted)
    assert sightings(report) == {"v3-1": 1}
    assert [(each.index, each.suspect) for each in report.pending] == [
        (n, True) for n in (2, 3, 4, 5)
    ]
    # What they showed was seen all the same.
    assert report.forbidden_graphs == report.by_config[0].forbidden_graphs == 5
    assert report.by_family[0].forbidden_graphs == report.families["dag"].forbidden_graphs == 5
    assert report.verdicts["forbidden"] == 20
    settled = [
        *doubted,
        e.Confirmed(index=2, **of),
        e.Unconfirmed(index=3, **of, file="unconfirmed/3.yaml"),
        added(tests[3], "v3-2", "findings/b.yaml", at=STARTED + 12),
        e.Confirmed(index=5, **of),
        died(13, 2, file="crashed/2.yaml"),  # is confirmed: another process showed it
    ]
    report = report_of(*settled)
    assert sightings(report) == {"v3-1": 2, "v3-2": 1}
    assert [(each.index, each.suspect) for each in report.pending] == [(5, False)]
    assert report.unconfirmed == (
        UnconfirmedTest(3, "native", "plain", "unconfirmed/3.yaml", 4, 64, 1, 0, "rfc"),
    )
    assert report.forbidden_graphs == 5


def test_each_test_counts_once_and_an_unconfirmed_one_not_at_all() -> None:
    tests = [shown(n, n) for n in (1, 2)]
    of = {"index": 2, "executor": "native", "configuration": "plain"}
    again, once_more = (e.SeenAgain(**of, at=STARTED + at, key="v3-1") for at in (3, 4))
    stream = [*tests, added(tests[0], "v3-1", "findings/a.yaml", at=STARTED), again, once_more]
    other = msgspec.structs.replace(again, key="v3-2")
    assert sightings(report_of(*stream, other)) == {"v3-1": 2}
    refuted = e.Unconfirmed(index=2, executor="native", configuration="plain", file="u.yaml")
    third = msgspec.structs.replace(again, at=STARTED + 5)
    assert sightings(report_of(*stream, refuted, third)) == {"v3-1": 1}


def test_the_first_finding_of_a_key_is_reported_with_its_own_script() -> None:
    tests = [shown(n, n) for n in (1, 2)]
    report = report_of(
        *tests,
        added(tests[1], "v3-1", "findings/first.yaml", at=STARTED + 3),
        added(tests[0], "v3-1", "findings/second.yaml", at=STARTED + 4, cause="other"),
        e.ScriptRun(key="v3-1", file="findings/second.yaml", shows_it=True),
    )
    (finding,) = report.findings
    assert (finding.file, finding.script, finding.count) == ("findings/first.yaml", "", 2)


def test_a_shard_that_minimizes_counts_as_an_attempt_until_it_ends() -> None:
    first = [(0, started(PLAIN)), (1, e.ShardPlanned(at=STARTED, configurations={}))]
    stream: Stream = [*first, (1, shown(1, 1.0)), (1, e.ShardEnded(lost=True, at=STARTED + 99))]
    for number in (2, 3):
        files = ("unreduced/1.yaml",)
        planned = e.ShardPlanned(at=STARTED + number, configurations={}, minimizes=files)
        stream.append((number, planned))
        (line,) = folded(stream).report("f").pending
        assert (line.attempts, line.minimizing_in, line.shard) == (number - 1, number, 1)
        stream.append((number, e.ShardEnded(at=STARTED + 9, seconds=2.0)))
        (line,) = folded(stream).report("f").pending
        assert (line.attempts, line.minimizing_in) == (number - 1, None)
    lines = folded(stream).report("f").shards
    assert [(x.state, x.seconds) for x in lines] == [("lost", 0.0), ("done", 2.0), ("done", 2.0)]


def test_of_the_moments_of_a_second_the_last_counts() -> None:
    progress = [
        e.Progress(at=STARTED + at, spent_s=at, disk_bytes=int(8 * at)) for at in (1, 1.5, 2)
    ]
    report = report_of(*progress)
    assert [(each.at - STARTED, each.disk_bytes) for each in report.moments] == [(1, 12), (2, 16)]


def test_a_resumed_campaign_goes_on() -> None:
    stream = [
        e.Problem(message="the disk is full"),
        e.CampaignEnded(at=STARTED + 5, spent_s=5.0, interrupted=True),
    ]
    ended = report_of(*stream)
    assert (ended.problem, ended.ended, ended.interrupted) == (
        "the disk is full",
        STARTED + 5,
        True,
    )
    resumed = report_of(*stream, e.CampaignResumed(asked_s=90.0, tests=0))
    assert (resumed.problem, resumed.ended, resumed.interrupted) == ("", None, False)
    assert (resumed.asked_s, resumed.tests, resumed.spent_s) == (90.0, 0, 5.0)


def test_an_unfinished_selftest_is_a_problem_of_a_campaign_that_ended_by_itself() -> None:
    for interrupted in (True, False):
        stream: Stream = [
            (0, started(PLAIN, selftest_s=60.0)),
            (0, e.CampaignEnded(at=STARTED + 5, spent_s=5.0, interrupted=interrupted)),
        ]
        assert ("self-test" in folded(stream).report("f").complaint) is not interrupted


def test_the_canary_is_no_configuration() -> None:
    report = report_of(executed(1, 1.0, executor=CANARY), e.CanaryRun(reported=False))
    assert (report.graphs, report.outcomes, report.canary) == (0, 0, (1, 0))
    assert [each.name for each in report.by_config] == ["native/plain"]


# --- laws ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_may_be_cut_anywhere_and_a_report_changes_nothing(seed: int) -> None:
    stream = CAMPAIGNS[seed]
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(len(stream)), 20))
    fold, taken = Fold(), {}
    for place, (shard, event) in enumerate(stream):
        fold.apply(shard, decode(encode(event)))
        if place in cuts:
            taken[place] = fold.report("folder")
    assert fold.report("folder") == folded(stream).report("folder")
    for place, report in taken.items():
        assert report == folded(stream[: place + 1]).report("folder")


@pytest.mark.parametrize("seed", SEEDS)
def test_shards_that_know_nothing_of_each_other_may_come_in_any_order(seed: int) -> None:
    campaign = RandomCampaign(seed, apart=True).run(1500)
    of = {shard: [event for n, event in campaign if n == shard] for shard, _ in campaign}
    rng = random.Random(seed)
    left = {shard: list(events) for shard, events in of.items() if shard}
    mixed: Stream = [(0, of[0][0])]
    while left:
        shard = rng.choice(sorted(left))
        mixed.append((shard, left[shard].pop(0)))
        if not left[shard]:
            del left[shard]
    mixed += [(0, event) for event in of[0][1:]]
    assert mixed != campaign
    assert folded(mixed).report("folder") == folded(campaign).report("folder")


@pytest.mark.parametrize(("forbidden", "code"), [(0, 2), (3, 1)])
def test_without_a_run_of_the_canary_only_what_was_reported_counts(
    forbidden: int, code: int
) -> None:
    """A campaign that was killed before the canary ran, and that is only completed since."""
    on = {"executor": "native", "configuration": "controlled"}
    verdicts = {"allowed": 61} | ({"forbidden": forbidden} if forbidden else {})
    shown = e.Executed(
        at=STARTED + 2,
        index=1,
        family="dag",
        model="rfc",
        run_seed=1,
        count=64,
        sha256="",
        verdicts=verdicts,
        unreduced="unreduced/1.yaml" if forbidden else None,
        **on,
    )
    configured = e.Configured("native", "controlled", "rfc", "rfc", "native/rfc")
    fold = Fold()
    fold.apply(
        0,
        e.CampaignStarted(
            at=STARTED, command="", seed=1, asked_s=60.0, configurations=(configured,)
        ),
    )
    fold.apply(1, e.ShardPlanned(at=STARTED + 1, configurations={"native": ("controlled",)}))
    fold.apply(1, shown)
    fold.apply(1, e.ShardEnded(at=STARTED + 3, lost=True))
    fold.apply(0, e.CampaignEnded(at=STARTED + 4, spent_s=60.0))
    report = fold.report("f")
    assert report.canary == (0, 0)
    assert report.exit_code() == code
    assert ("proves nothing" in report.verdict) is (not forbidden)
