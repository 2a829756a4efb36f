"""Campaigns with a known cause: it is not reduced again, and nothing hides behind it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers_settings import settings_of
from msgspec import structs

from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, loads
from litmusfuzz.fuzz.campaign import clock, explainer
from litmusfuzz.fuzz.campaign.campaign_executor import (
    DEADLY_EVERY,
    MOST_FAMILIES,
    support_of,
)
from litmusfuzz.fuzz.campaign.candidate import Candidate, State
from litmusfuzz.fuzz.campaign.lanes import known as known_lane
from litmusfuzz.fuzz.campaign.scheduler import Work
from litmusfuzz.fuzz.campaign.shares import KNOWN, Ledger
from litmusfuzz.fuzz.campaign.slots import Slot
from litmusfuzz.fuzz.campaign.tuning import ATTEMPT_S, KNOWN_SHARE
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.judge import Judgement
from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding
from litmusfuzz.fuzz.finding.race_shapes import Races
from litmusfuzz.fuzz.support import Support
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.events import (
    CauseChecked,
    CauseCompared,
    FindingAdded,
    Generated,
    ReductionEnded,
    SeenAgain,
)
from litmusfuzz.reports.report import Known

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.fuzz.campaign.settings import Settings

COUNT = 64
TEARS = {
    "ResourceScatterUpdate": "indices: [0]",
    "ResourceScatterNdUpdate": "indices: [0]",
    "ResourceStridedSliceAssign": "begin: 0, end: 1, strides: 1",
}
"""Ops that tear beside a read, with their attributes."""


def tear(executor: str, op: str) -> MinimizedFinding:
    """A tear beside a read, as the known-findings file names it: without any setting."""
    test = loads(
        f"""
litmusfuzz: 2
name: tear
variables: {{X: {{dtype: int32, shape: [1, 2], init: 0}}}}
graphs:
  main:
    c0: {{op: Const, dtype: int32, shape: [1, 2], value: 1}}
    r0: {{op: ReadVariableOp, resources: [X]}}
    w0: {{op: {op}, resources: [X], inputs: [c0], {TEARS[op]}}}
observe: [r0]
"""
    ).test
    found = Finding(
        executor=executor,
        configuration="plain",
        model="executor",
        forbidden=((Outcome.of(test, {"r0": TORN, "X": (1,)}), 100),),
        executions=1000,
        noise={},
        settings={"early": False},
        versions={},
        seed=0,
        index=0,
        family="sparse",
        minimized=True,
        confirmed=True,
    )
    entry = Entry(test, {}, found)
    return MinimizedFinding(entry, key_of(entry), cause=f"tear-{op}", unchecked=True)


def settings(
    folder: Path,
    executor: str,
    *,
    tests: int | None,
    seed: int,
    configs: tuple[str, ...] = ("plain",),
) -> Settings:
    made = {each.name: each for each in executor_class(executor).configurations()}
    return settings_of(
        seed=seed,
        time_s=600,
        out=folder / "out",
        executors=((executor, *(made[name] for name in configs)),),
        tests=tests,
        families=("sparse",),
        count=COUNT,
    )


HIDDEN = {
    "mutant/early-scatter": ("plain", "early"),
    "mutant/forgotten-scatter": ("plain",),
}
"""Mutants with a defect behind the tear, and their configurations; it shows in the last."""


@pytest.fixture(scope="module", params=HIDDEN)
def hidden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Seeds are fixed, and the mutants take no time: the campaign is the same each time."""
    folder = tmp_path_factory.mktemp("hidden")
    executor = request.param
    known = [tear(executor, op) for op in TEARS]
    chosen = settings(folder, executor, tests=14, seed=4, configs=HIDDEN[executor])
    return Run(chosen, known=known).run()


def executor_of(run: Run) -> str:
    return run.settings.executors[0][0]


def test_a_defect_behind_a_known_tear_is_a_cause_of_its_own(hidden: Run) -> None:
    """A read after a sparse update is wrong: the ops of the tear, which has them in a race."""
    after = [
        each
        for each in hidden.report.findings
        if len(each.entry.test.effects) == 2
        and {"read"} < {node.definition.kernel_class for node in each.entry.test.effects}
        and not list(Races(each.entry.test).pairs())
    ]
    assert after
    for each in after:
        assert set(each.configs) == {HIDDEN[executor_of(hidden)][-1]}
        apart = [one for one in hidden.of(CauseCompared) if one.finding == each.key]
        assert {one.cause for one in apart} >= {known.key for known in hidden.known}
        assert {one.verdict for one in apart} == {"new"}
        assert all(one.experiments for one in apart)


def test_it_is_found_behind_a_test_that_shows_the_tear(hidden: Run) -> None:
    """With an order between the ops that race in the tear, the test shows something else."""
    keys = {each.key for each in hidden.known}
    checks = [each for each in hidden.of(CauseCompared) if not each.finding and each.seconds]
    assert {each.verdict for each in checks if each.cause in keys} >= {"explained", "new"}


def test_what_is_known_is_not_reduced_again_and_earns_no_credit(hidden: Run) -> None:
    known = {each.key for each in hidden.known}
    sightings = {each.index for each in hidden.of(SeenAgain) if each.key in known}
    reduced = {each.index for each in hidden.of(ReductionEnded) if each.known}
    assert len(sightings) > len(reduced)
    new = hidden.of(FindingAdded)
    assert known.isdisjoint(each.key for each in new)
    finds = hidden.campaign.dispatcher.weights.yields["sparse"].finds  # earlier ones fade
    assert 0 < finds <= len({each.cause for each in new})


def test_each_cause_is_seen_to_show_still_and_has_its_time(hidden: Run) -> None:
    checked = {each.cause: each.shows for each in hidden.of(CauseChecked)}
    assert checked == dict.fromkeys((each.key for each in hidden.known), True)
    seconds = [each.seconds for each in hidden.of(CauseChecked)]
    seconds += [each.seconds for each in hidden.of(CauseCompared)]
    seconds += [each.seconds for each in hidden.of(ReductionEnded) if each.known]
    assert hidden.report.known_s == pytest.approx(sum(seconds), abs=0.01)
    causes = [hidden.fold.known_cause(Known(e.key, "why", seen=False)) for e in hidden.known]
    assert all(each.state == "still shows" for each in causes)
    assert sum(each.checked for each in causes) > 0
    found = hidden.report.findings
    spent = sum(each.seconds for each in (*causes, *found))
    assert spent <= sum(seconds) + sum(each.seconds for each in hidden.of(ReductionEnded)) + 0.01
    assert all(each.seconds > 0 for each in (*causes, *found))


def test_a_cause_that_no_longer_shows_is_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explainer, "MIN_UNSEEN", 256)
    monkeypatch.setattr(explainer, "OTHER_LOAD", 1)
    executor = "control/torn-scatter"
    known = [tear(executor, op) for op in TEARS]
    sound = Run(settings(tmp_path, executor, tests=3, seed=1), known=known).run()
    checked = sound.of(CauseChecked)
    assert len(checked) == len(TEARS)
    assert [each.shows for each in checked] == [False] * len(TEARS)
    assert all(each.executions > 0 == each.seen for each in checked)
    gone = [sound.fold.known_cause(Known(e.key, "w", seen=False)) for e in sound.known]
    assert all(each.gone for each in gone)


def test_a_campaign_of_so_many_tests_asks_for_some_seconds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With none, of no known cause that its tests do not show."""
    monkeypatch.setattr(Ledger, "of", lambda *_: ATTEMPT_S)
    executor = "control/torn-scatter"
    known = [tear(executor, op) for op in TEARS]
    run = Run(settings(tmp_path, executor, tests=3, seed=1), known=known).run()
    assert not run.of(CauseChecked)
    causes = [run.fold.known_cause(Known(e.key, "w", seen=False)) for e in run.known]
    assert {each.state for each in causes} == {"not run by itself"}


def test_what_is_known_has_its_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task about it begins if it ends within the share, and counts as soon as it begins."""
    campaign = Run(settings(tmp_path, "mutant/torn-scatter", seed=1, tests=None)).campaign
    parts, ledger = campaign.parts, campaign.parts.shares.ledger
    parts.findings.known = [tear("mutant/torn-scatter", op) for op in TEARS]
    lane = known_lane.Known(parts)
    parts.scheduler.lanes = (lane,)
    slot = campaign.slots[0]
    elapsed = 400.0
    campaign.course.started = clock.now() - elapsed
    share = KNOWN_SHARE * elapsed * campaign.settings.workers

    def begins(spent_s: float) -> bool:
        before = ledger.of(KNOWN, slot.executor.number)
        ledger.add(KNOWN, slot.executor.number, spent_s - before)
        return lane.peek(slot) is not None

    assert begins(share - 1.1 * ATTEMPT_S)
    assert not begins(share - 0.9 * ATTEMPT_S)
    assert begins(2.0)
    during = []

    async def still_shows(*_: object) -> None:
        during.append(ledger.of(KNOWN, slot.executor.number))
        now[0] += 1.5

    now = [clock.now()]
    monkeypatch.setattr(parts.explainer, "still_shows", still_shows)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: now[0])
        work = parts.scheduler.next(slot)
        assert work is not None
        asyncio.run(work)
    assert during == [2.0 + ATTEMPT_S]
    assert ledger.of(KNOWN, slot.executor.number) == 3.5
    campaign.course.started = clock.now() - campaign.settings.time_s  # the time is up
    assert not begins(0.0)


def test_a_cause_that_has_shown_without_its_settings_is_looked_for_there(tmp_path: Path) -> None:
    """A file may have more settings than its finding needs."""
    name = "mutant/early-scatter"
    campaign = Run(settings(tmp_path, name, tests=1, seed=1)).campaign
    known = tear(name, "ResourceScatterUpdate")
    recorded = replace(known.finding, configuration="early", settings={"early": True})
    known.entry = replace(known.entry, finding=recorded)
    campaign.parts.findings.known = [known]
    (executor,) = campaign.dispatcher.fuzzed
    test, target = known.entry.test, executor.sampler.configurations[0].target
    judgement = Judgement(Explorer(test, EXECUTOR), {}, {}, recorded.forbidden)
    candidate = Candidate(1, "sparse", test, 0, target, judgement, Noise(), 1)
    assert campaign.parts.explainer.likely(candidate) is None
    known.configurations.add("plain")
    assert campaign.parts.explainer.likely(candidate) is known


def test_a_look_alike_whose_process_crashes_during_its_check_waits_for_a_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing would ever ask whether a fresh process shows it."""
    campaign = Run(settings(tmp_path, "mutant/torn-scatter", tests=1, seed=1)).campaign
    parts, slot = campaign.parts, campaign.slots[0]
    known = tear("mutant/torn-scatter", "ResourceScatterUpdate")
    test, target = known.entry.test, slot.target
    judgement = Judgement(Explorer(test, EXECUTOR), {}, {}, known.finding.forbidden)
    candidate = Candidate(1, "sparse", test, 0, target, judgement, Noise(), 1)
    parts.candidates.set_aside(candidate, known)

    async def available(_: Slot) -> str:
        return ""

    async def is_known(*_: object) -> MinimizedFinding:
        return known

    async def crashes(*_: object) -> None:
        parts.candidates.doubt([candidate])

    monkeypatch.setattr(Slot, "why_unavailable", available)
    monkeypatch.setattr(parts.explainer, "known_here", is_known)
    monkeypatch.setattr(parts.explainer, "behind", crashes)
    chosen = parts.candidates.look_alikes.peek(slot.executor)
    assert chosen is not None
    lane = known_lane.Known(parts)
    asyncio.run(lane.start(slot, Work(lane.name, known_lane.Check(chosen, in_full=False), 6.0)))
    assert candidate.suspect
    assert parts.candidates.waiting == [candidate]


@pytest.mark.parametrize(("run_s", "in_full"), [(0.01, True), (2.0, False)])
def test_a_look_alike_is_reduced_in_full_where_its_configuration_leaves_time(
    run_s: float, *, in_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of its kind is, if 10 s are left and a run there takes so long."""
    name = "mutant/early-scatter"
    campaign = Run(settings(tmp_path, name, tests=None, seed=1)).campaign
    known = tear(name, "ResourceScatterUpdate")
    (executor,) = campaign.dispatcher.fuzzed
    test, sampled = known.entry.test, executor.sampler.configurations[0]
    sampled.runs, sampled.spent = 10, 10 * run_s
    judgement = Judgement(Explorer(test, EXECUTOR), {}, {}, known.finding.forbidden)
    for _ in range(2):
        candidate = Candidate(1, "sparse", test, 0, sampled.target, judgement, Noise(), 1)
        candidate.to(State.LOOKS_KNOWN, known.key)
        campaign.parts.candidates.look_alikes.add(candidate, known)
    parts, slot = campaign.parts, campaign.slots[0]
    monkeypatch.setattr(parts.shares, "left_for_known_s", lambda _: 10.0)
    lane = known_lane.Known(parts)
    taken = []
    for _ in range(2):
        work = lane.peek(slot)
        assert work is not None
        lane.start(slot, work).close()
        taken.append(work.about.in_full)
    assert taken == [False, in_full]


def test_an_op_that_ends_its_process_is_in_few_tests(tmp_path: Path) -> None:
    op = "ResourceStridedSliceAssign"

    def share(tests: int, *rare: str) -> float:
        chosen = settings(tmp_path, "control/torn-scatter", seed=3, tests=tests)
        options = structs.replace(chosen.options, deadly_ops=rare, count=1)
        made = Run(replace(chosen, options=options)).run().of(Generated)
        assert len(made) > 0.9 * tests
        return sum(op in each.ops for each in made) / len(made)

    assert share(20) > 0.1
    assert 0 < share(100, op) <= 0.02


def test_one_index_in_fifty_may_have_an_op_that_ends_its_process() -> None:
    support = Support(ops=frozenset({"AssignVariableOp", "ResourceScatterUpdate"}))
    rare = frozenset({"ResourceScatterUpdate"})
    for family in range(MOST_FAMILIES):
        of_family = [n * MOST_FAMILIES + family for n in range(10 * DEADLY_EVERY)]
        usual = sum(support_of(support, frozenset(), index, rare) == support for index in of_family)
        assert usual == 10
