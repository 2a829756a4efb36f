"""Reducing the configuration of a finding: the settings that it needs, and no others."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from campaign.doubles import (
    CrashesInLongRuns,
    EitherSetting,
    RarelyPlain,
    Spaced,
    Tearing,
    WeakerGuarantee,
)
from helpers_settings import settings_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.textfile import Entry, Finding, dumps, load
from litmusfuzz.fuzz.campaign.probing import Prober
from litmusfuzz.fuzz.commands.replay import ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, listed, points
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.space import SPACE, configuration_at, point_of
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.canonical import form, key_of
from litmusfuzz.fuzz.finding.configuration_reducer import (
    PutBack,
    needed_settings,
    needs_in_words,
    simpler_configurations,
)
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC
from litmusfuzz.reports.html import page
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.configuration_space import Point
    from litmusfuzz.fuzz.executors.protocol import Executor
    from litmusfuzz.reports.report import ReportedFinding

pytestmark = pytest.mark.usefixtures("doubles")


# --- the candidates ------------------------------------------------------------------------


def reduced(point: Point, *needed: Point, put_back: PutBack | None = None) -> tuple[Point, int]:
    """The configuration in which a finding ends that shows with any of these settings.

    Also the number of candidates.
    """
    asked = simpler_configurations("tf", configuration_at(point), put_back or PutBack())
    last, number = point, 0
    config = next(asked, None)
    while config is not None:
        number += 1
        found = point_of(config)
        assert found is not None
        shows = any(each.items() <= found.items() for each in needed)
        last = found if shows else last
        try:
            config = asked.send(shows)
        except StopIteration:
            break
    return last, number


def test_exactly_the_needed_pair_remains() -> None:
    """Of every configuration of a hundred and more that has both settings."""
    pair: Point = {"loop_optimizer": True, "inter_op_threads": 1}
    both = [each for each in islice(points(SPACE, "1"), 150) if pair.items() <= each.items()]
    assert len(both) > 2
    for point in both:
        found, number = reduced(point, pair)
        assert SPACE.differing(found) == pair
        assert number < 3 * len(SPACE.values)


def test_the_plain_configuration_comes_first() -> None:
    for point in islice(points(SPACE, "2"), 20):
        plainest = SPACE.plain | {"control": point["control"]}
        assert reduced(point, {}) == (plainest, int(point != plainest))
    assert reduced(SPACE.plain, {}) == (SPACE.plain, 0)


def test_control_is_kept_with_the_schedule_that_it_gives() -> None:
    found, tried = reduced(SPACE.parsed("rewrites=all;control=locks"), {})
    assert SPACE.name(found) == "control=locks"
    assert tried == 1
    assert reduced(found, {}) == (found, 0)
    needed: Point = {"loop_optimizer": True}
    found, _ = reduced(SPACE.parsed("loop_optimizer=true;control=ops;devices=2"), needed)
    assert SPACE.name(found) == "loop_optimizer=true;control=ops"


def test_settings_that_belong_together_are_put_back_together() -> None:
    point = SPACE.parsed("compiled=clusters;min_cluster_size=4;lazy=true;pool=second")
    assert SPACE.differing(reduced(point, {"pool": "second"})[0]) == {"pool": "second"}
    found, _ = reduced(point, {"min_cluster_size": 4})
    assert SPACE.name(found) == "compiled=clusters;min_cluster_size=4"


def test_of_all_optimizers_the_needed_one_remains() -> None:
    for name in ("loop", "memory", "elimination"):
        needed: Point = {f"{name}_optimizer": True}
        everything = [*({"rewrites": each} for each in ("all", "aggressive")), needed]
        found, _ = reduced(SPACE.parsed("rewrites=aggressive;pool=second"), *everything)
        beside = {"arithmetic_optimizer": True} if name == "elimination" else {}
        assert SPACE.differing(found) == needed | beside
    # Two that must act together: nothing simpler than all of them is tried.
    found, _ = reduced(SPACE.parsed("rewrites=aggressive;pool=second"), {"rewrites": "all"})
    assert SPACE.name(found) == "rewrites=all"


def test_what_most_often_was_not_needed_is_tried_first() -> None:
    put_back = PutBack()
    for _ in range(5):
        put_back.add("model_code", shows=True)
        put_back.add("pool", shows=False)
    assert put_back.ordered(["pool", "devices", "model_code"]) == ["model_code", "devices", "pool"]
    # The order changes the number of candidates, not the result.
    point = SPACE.parsed("model_code=true;pool=second;devices=2")
    assert reduced(point, {"pool": "second"}, put_back=put_back)[0] == SPACE.parsed("pool=second")


def test_without_a_space_the_first_configuration_is_tried() -> None:
    pct, plain = configuration("native", "pct"), configuration("native")
    assert list(simpler_configurations("native", pct, PutBack())) == [plain]
    assert not list(simpler_configurations("native", plain, PutBack()))


def test_the_needed_settings_of_a_file() -> None:
    config = configuration("tf", "loop_optimizer=true;inter_op_threads=1")
    needed = {"inter_op_threads": 1, "rewrites": "loop_optimization=ON"}
    assert needed_settings("tf", dict(config.settings)) == needed
    assert needed_settings("tf", needed) == needed  # of a file from before other settings
    assert not needed_settings("tf", dict(configuration("tf").settings))
    assert not needed_settings("native", dict(configuration("native", "pct").settings))
    assert not needed_settings("a-strangers", {"engine": "own"})
    assert needs_in_words("tf", config) == "only with the loop optimizer, in one thread"
    seen = needs_in_words("tf", config, reduced=False)
    assert seen == "seen with the loop optimizer, in one thread"
    assert needs_in_words("tf", configuration("tf")) == "in plain TensorFlow"
    assert needs_in_words("native", configuration("native", "pct")) == "in configuration pct"
    assert needs_in_words("mutant/stale-reads", configuration("mutant/stale-reads")) == ""


# --- campaigns -----------------------------------------------------------------------------


def campaign(out: Path, executor: type[Spaced], *configs, **changes) -> Run:
    asked = {"seed": 3, "tests": 20, "count": 32, "families": ("dag",)} | changes
    chosen = configs or (listed(executor.name, PRODUCT),)
    settings = settings_of(
        out=out, executors=((executor.name, *chosen),), time_s=600, as_generated=True, **asked
    )
    return Run(settings).run()


def minimal(found: ReportedFinding) -> Point:
    """The settings of a finding that are not plain."""
    assert found.entry.finding is not None
    return Spaced.space.differing(dict(found.entry.finding.settings))


@pytest.fixture(scope="module")
def ended(tmp_path_factory, doubles) -> Run:
    """Several configurations show the defect; generated ones run besides."""
    names = [f"cache=large;threads=1;{each}" for each in ("process=two", "traced=true")]
    configs = [*(configuration(Spaced.name, each) for each in names), listed(Spaced.name, PRODUCT)]
    return campaign(tmp_path_factory.mktemp("reduced"), Spaced, *configs)


def test_each_finding_ends_with_the_pair_of_settings_that_it_needs(ended: Run) -> None:
    report = ended.report
    assert report.findings
    for found in report.findings:
        assert minimal(found) == Spaced.shows
        assert found.entry.finding is not None
        assert found.entry.finding.configuration == "cache=large;threads=1"
        assert found.entry.finding.minimized
        assert found.entry.finding.confirmed
        assert load(ended.path(found.file)) == found.entry
        assert found.key == key_of(found.entry)
        assert set(found.configs) <= {
            each.configuration for each in ended.tests(Spaced.name)
        }  # those that showed it
    first = [each.entry.finding.first_seen_in for each in report.findings if each.entry.finding]
    assert any(each is not None and "threads=1" in each for each in first)


def test_a_finding_is_reported_once_whatever_else_was_set(ended: Run) -> None:
    report = ended.report
    tests = [each.entry.test for each in report.findings]
    assert len(tests) == len(set(tests))
    several = [each for each in report.findings if len(each.configs) > 1]
    assert several
    shown = {each.configuration for each in ended.tests(Spaced.name) if each.unreduced}
    assert len(shown) > 1
    assert not report.pending


def test_the_first_line_says_what_a_finding_needs(ended: Run) -> None:
    report = ended.report
    words = "only with a large cache, in one thread"
    for found in report.findings:
        assert found.needs == words
        assert found.headline.endswith(f", {words}")
    assert summary(report).splitlines()[0].endswith(f", {words}")
    assert f", {words}</h3>" in page(report)


def test_the_same_test_with_other_settings_is_another_finding(tmp_path: Path) -> None:
    configs = [configuration(EitherSetting.name, n) for n in ("large", "traced=true")]
    report = campaign(tmp_path, EitherSetting, *configs, tests=40).report
    by_test: dict[str, list[ReportedFinding]] = {}
    for found in report.findings:
        by_test.setdefault(key_of_test(found), []).append(found)
    both = [each for each in by_test.values() if len(each) > 1]
    assert both
    for one, other in both:
        needs = [minimal(each) for each in (one, other)]
        assert {"cache": "large"} in needs
        assert {"traced": True} in needs
        assert one.key != other.key
        assert one.file != other.file


def key_of_test(found: ReportedFinding) -> str:
    """Of the test alone, whatever it is called."""
    return dumps(Entry(form(found.entry.test, EXECUTOR)))


def test_a_setting_that_only_makes_it_frequent_is_not_needed(tmp_path: Path) -> None:
    """Plain shows it in one of 1,024 executions: too rarely to reduce the test there."""
    config = configuration(RarelyPlain.name, "cache=large;traced=true")
    run = campaign(tmp_path, RarelyPlain, config, tests=10)
    assert run.report.findings
    for found in run.report.findings:
        assert minimal(found) == {}
        assert found.needs == "in a plain process"
        assert found.entry.finding is not None
        assert found.entry.finding.first_seen_in == config.name


def left_by_another_shard(
    out: Path, executor: type[Executor], test: LitmusTest, outcome: Outcome
) -> Run:
    """A campaign that only minimizes a finding, which showed in half of its executions."""
    plain = configuration(executor.name)
    found = Finding(
        executor=executor.name,
        configuration=plain.name,
        model="executor",
        forbidden=((outcome, 512),),
        executions=1024,
        noise=asdict(Noise()),
        settings=dict(plain.settings),
        versions={},
        seed=3,
        index=0,
        family="dag",
        minimized=False,
        confirmed=False,
    )
    chosen = ((executor.name, plain),)
    settings = settings_of(seed=3, out=out, executors=chosen, tests=0)
    return Run(settings, pending=[Entry(test, {}, found)]).run()


def test_a_torn_finding_keeps_the_kernels_that_write(tmp_path: Path) -> None:
    """Another kernel in their place has a tear of its own, or none."""
    test = litmus("X[0]+=1 || X[0]+=2", shape=(2, 16))
    outcome = Outcome.of(test, {"X": TORN})
    run = left_by_another_shard(tmp_path, Tearing, test, outcome)
    (reported,) = run.report.findings
    assert reported.entry.finding is not None
    assert reported.entry.finding.minimized
    effects = reported.entry.test.effects
    assert len(effects) < len(test.effects)
    assert {n.definition.kernel_class for n in effects} == {"ResourceScatter"}


def test_a_finding_that_shows_more_rarely_now_than_when_it_was_seen_is_still_reduced(
    tmp_path: Path,
) -> None:
    """It showed in half of the executions; on a machine that is busy by now, in one of 64.

    Experiments for a half have 256 executions, of which 16 would have to show it.
    """
    test = litmus("X=1; r0=X || Y=1; r1=Y || Z=1 || r2=Z")
    outcome = Outcome.of(
        test, {"r0": (0,), "r1": (0,), "r2": (0,), "X": (1,), "Y": (1,), "Z": (1,)}
    )
    run = left_by_another_shard(tmp_path, RarelyPlain, test, outcome)
    (reported,) = run.report.findings
    assert reported.entry.finding is not None
    assert reported.entry.finding.minimized
    assert len(reported.entry.test.effects) == 2


def test_what_crashes_in_long_runs_is_confirmed_in_short_ones(tmp_path: Path) -> None:
    """It was seen in a run of 1,024 executions, of which nothing would be left now."""
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    outcome = Outcome.of(test, {"r0": (0,), "r1": (0,), "X": (1,), "Y": (1,)})
    run = left_by_another_shard(tmp_path, CrashesInLongRuns, test, outcome)
    (reported,) = run.report.findings
    assert reported.entry.finding is not None
    assert reported.entry.finding.confirmed
    assert reported.entry.finding.executions <= 100
    assert not run.report.unconfirmed
    # And replayed in short ones.
    worker = Worker(CrashesInLongRuns.name)
    oracle, config = Explorer(reported.entry.test, RFC), configuration(CrashesInLongRuns.name)
    result = replay_entry(reported.entry, oracle, worker, config, ReplayOptions(60))
    assert result.judgement is not None
    assert result.judgement.forbidden_count > 0
    assert len(result.died) == 3  # runs of 4,096, 1,024 and 256 executions
    result = replay_entry(reported.entry, oracle, worker, config, ReplayOptions(60, 200))
    worker.close()
    assert result.judgement is not None
    assert result.judgement.executions == 200
    assert len(result.died) == 1


def test_what_no_fresh_process_shows_in_a_simpler_configuration_stays_in_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Prober.confirm

    async def confirm(self, slot, best, rng):
        if best.target.config.name == "plain":
            return None
        return await honest(self, slot, best, rng)

    monkeypatch.setattr(Prober, "confirm", confirm)
    config = configuration(RarelyPlain.name, "cache=large;traced=true")
    run = campaign(tmp_path, RarelyPlain, config, tests=10)
    assert run.report.findings
    for found in run.report.findings:
        # Before the test was reduced, the setting without effect was put back.
        assert minimal(found) == {"cache": "large"}
        assert found.entry.finding is not None
        assert found.entry.finding.confirmed
        assert not found.entry.finding.minimized


def test_what_a_simpler_configuration_does_not_forbid_does_not_show_there(tmp_path: Path) -> None:
    """The plain one shows the same outcomes, and guarantees less."""
    config = configuration(WeakerGuarantee.name, "cache=large;process=two;traced=true")
    run = campaign(tmp_path, WeakerGuarantee, config, tests=10, count=64)
    assert run.report.findings
    for found in run.report.findings:
        assert minimal(found) == {"cache": "large"}
        assert (found.model, found.allowed_by) == ("executor", ("rfc",))
