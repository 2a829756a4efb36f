"""Campaigns on several configurations of one executor."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from campaign.doubles import installed

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.campaign.loop import Campaign
from litmusfuzz.fuzz.campaign.minimizer import CONFIRM_S, PROBE_STEP, STEP_S, Best
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.records import ExecutorState, RunRecord

TESTS = Path(__file__).parents[1]
NAME = "double/profiled"


@pytest.fixture(scope="module", autouse=True)
def doubles(tmp_path_factory):
    folder = installed(tmp_path_factory.mktemp("doubles"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(TESTS)]))
        yield


def campaign(out: Path, **changes) -> RunRecord:
    configs = executor_class(NAME).configurations()
    asked = {"seed": 2, "tests": 98, "count": 64, "model": None, "families": ("dag",)} | changes
    settings = Settings(out=out, executors=((NAME, *configs),), time_s=600, **asked)
    return Campaign(settings, lambda record: None).run()


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> RunRecord:
    return campaign(tmp_path_factory.mktemp("configurations"))


def states(record: RunRecord) -> dict[str, ExecutorState]:
    return {each.configuration: each for each in record.executors if each.spread}


def test_each_graph_runs_in_one_of_them(ended: RunRecord) -> None:
    assert (ended.problem, ended.exit_code()) == ("", 1)
    assert sum(each.graphs for each in states(ended).values()) == ended.graphs == 98
    for each in states(ended).values():
        assert each.tests + each.refused_graphs == each.graphs
        assert each.verdicts.total() == each.outcomes - each.minimizing_outcomes
    ran = {name: each.tests for name, each in states(ended).items() if each.tests}
    assert set(ran) == {"sound", "stale", "split", "weak", "stale_too"}
    assert max(ran.values()) <= 2 * min(ran.values())


def test_an_unavailable_configuration_is_reported_and_the_others_run(ended: RunRecord) -> None:
    reported = {name: each.unavailable for name, each in states(ended).items() if each.unavailable}
    assert reported["missing"] == "no such device"
    assert reported["dies"].startswith("does not start: ")
    assert set(reported) == {"missing", "dies"}
    text = summary(ended)
    assert text.count("cannot run here: no such device") == 1
    assert states(ended)["dies"].crashed == 1
    assert not ended.deaths


def test_each_configuration_is_judged_by_its_guaranteed_model(ended: RunRecord) -> None:
    by = {name: each.model for name, each in states(ended).items()}
    assert (by["split"], by["weak"]) == ("executor", "rfc")
    assert not states(ended)["sound"].forbidden_graphs
    assert not states(ended)["weak"].forbidden_graphs


def test_a_finding_is_reported_once_with_all_its_configurations(ended: RunRecord) -> None:
    """A configuration in another environment counts only after it has run the finding's test."""
    both = [f for f in ended.findings if {"stale", "stale_too"} <= set(f.configs)]
    assert both
    tests = [reported.entry.test for reported in ended.findings]
    assert len(tests) == len(set(tests))
    assert sum(f.configs.total() for f in ended.findings) == ended.forbidden_graphs
    for reported in ended.findings:
        assert reported.configs.total() == reported.more + 1
        assert load(reported.path) == reported.entry
        assert reported.entry.finding.confirmed


def test_what_only_the_stricter_model_forbids_is_reported_under_it(
    tmp_path: Path,
) -> None:
    """Updates in two parts, which `rfc` allows, on an executor that guarantees `executor`."""
    (config,) = (c for c in executor_class(NAME).configurations() if c.name == "split")
    settings = Settings(1, tmp_path, ((NAME, config),), 600, 20, ("dag",), count=64, model=None)
    record = Campaign(settings, lambda record: None).run()
    assert record.findings
    assert {reported.allowed_by for reported in record.findings} == {("rfc",)}
    assert "only      executor forbids it; rfc allows it" in summary(record)


def test_the_seed_repeats_who_runs_what(tmp_path: Path, ended: RunRecord) -> None:
    again = campaign(tmp_path, workers=2)
    assert {n: e.families for n, e in states(again).items()} == {
        n: e.families for n, e in states(ended).items()
    }


def test_the_record_is_kept(ended: RunRecord) -> None:
    kept = json.loads((Path(ended.out) / f"record-{ended.seed}.json").read_text())
    assert kept == json.loads(json.dumps(ended.as_json()))
    reached = kept["executors"][1]["reached"]
    assert reached["graphs"] > 0
    assert 0 < reached["median"] <= 1
    dag = reached["families"]["dag"]
    assert (dag["graphs"], dag["median"]) == (reached["graphs"], reached["median"])
    assert sum(dag["shares"].values()) == reached["graphs"]


def test_the_summary_has_a_line_for_each(ended: RunRecord) -> None:
    lines = summary(ended).splitlines()
    start = lines.index("  each graph in one configuration:")
    header = lines[start + 1]
    assert header.split()[:4] == ["by", "graphs", "seconds", "outcomes"]
    titles = [line.split()[0] for line in lines[start + 2 : start + 7]]
    names = ("sound", "stale", "split", "weak", "stale_too")
    assert titles == [f"{NAME}/{name}" for name in names]


# --- what is minimized where, and until when ---------------------------------------------


def alone(out: Path, configs: tuple[str, ...], **changes) -> Campaign:
    """A campaign on some configurations that generates no test."""
    known = {config.name: config for config in executor_class(NAME).configurations()}
    chosen = tuple(known[name] for name in configs)
    asked = {"tests": 0, "count": 64, "model": None, "families": ("dag",), "time_s": 600} | changes
    settings = Settings(2, out, ((NAME, *chosen),), **asked)
    return Campaign(settings, lambda record: None)


@pytest.fixture(scope="module")
def unreduced(ended: RunRecord) -> Entry:
    """An unreduced finding of the configuration `stale_too`."""
    entries = map(load, sorted(Path(ended.out, "unreduced").iterdir()))
    found = (
        e for e in entries if e.finding.configuration == "stale_too" and len(e.test.effects) > 3
    )
    return next(found)


def with_times(made: Campaign, **seconds: float) -> Campaign:
    """Record one graph for each configuration, with the given seconds."""
    for state in made.record.executors:
        if state.configuration in seconds:
            state.tests, state.fuzzing_s = 1, seconds[state.configuration]
    return made


@pytest.mark.parametrize("slow", [False, True])
def test_a_slow_finding_is_minimized_in_a_faster_configuration_and_confirmed_in_its_own(
    tmp_path: Path, unreduced: Entry, *, slow: bool
) -> None:
    made = alone(tmp_path, ("stale", "stale_too"))
    with_times(made, stale=0.1, stale_too=1.0 if slow else 0.2).add_unreduced(unreduced)
    record = made.run()
    fast, home = (states(record)[name] for name in ("stale", "stale_too"))
    (found,) = record.findings
    assert (found.entry.finding.configuration, set(found.configs)) == ("stale_too", {"stale_too"})
    assert found.entry.finding.minimized
    assert found.entry.finding.confirmed
    assert len(found.entry.test.effects) < len(unreduced.test.effects)
    assert (fast.outcomes > home.outcomes) is slow
    assert home.outcomes > 0
    assert "minimizing" not in (fast.state, home.state)


def test_costs_of_an_earlier_campaign_choose_the_faster_configuration(
    tmp_path: Path, unreduced: Entry
) -> None:
    made = alone(tmp_path, ("stale", "stale_too"))
    made.set_earlier_costs({(NAME, "stale"): 0.1, (NAME, "stale_too"): 1.0})
    made.add_unreduced(unreduced)
    record = made.run()
    fast, home = (states(record)[name] for name in ("stale", "stale_too"))
    assert fast.outcomes > home.outcomes > 0
    assert len(record.findings) == 1


def test_a_slow_finding_is_minimized_in_a_fast_configuration_that_runs_no_generated_test(
    tmp_path: Path, unreduced: Entry
) -> None:
    made = alone(tmp_path, ("stale_too",), fast={NAME: configuration(NAME, "stale")})
    made.set_earlier_costs({(NAME, "stale"): 0.1, (NAME, "stale_too"): 1.0})
    made.add_unreduced(unreduced)
    record = made.run()
    fast, home = (states(record)[name] for name in ("stale", "stale_too"))
    assert fast.outcomes > home.outcomes > 0
    (found,) = record.findings
    assert found.entry.finding.configuration == "stale_too"
    assert found.entry.finding.minimized
    drawing = alone(tmp_path / "drawing", ("stale_too",), fast=made.settings.fast, tests=3).run()
    assert states(drawing)["stale_too"].tests == 3
    assert states(drawing)["stale"].tests == 0


def test_a_finding_of_one_configuration_is_minimized_there(
    tmp_path: Path, unreduced: Entry
) -> None:
    made = alone(tmp_path, ("sound", "stale_too"))
    with_times(made, sound=0.1, stale_too=1.0).add_unreduced(unreduced)
    record = made.run()
    (found,) = record.findings
    assert found.entry.finding.minimized
    assert states(record)["stale_too"].outcomes > states(record)["sound"].outcomes > 0


def test_a_finding_is_finished_though_the_time_is_up(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the extra time for minimizing, the reduction is completed."""
    monkeypatch.setattr(Settings, "extra_minimizing_s", 60.0)
    made = alone(tmp_path / "all", ("stale_too",), time_s=1e-9, tests=None)
    made.add_unreduced(unreduced)
    record = made.run()
    assert (record.executors[0].tests, len(record.unreduced), record.interrupted) == (0, 0, False)
    assert [f.entry.finding.minimized for f in record.findings] == [True]
    assert record.elapsed_s < 60.0

    monkeypatch.setattr(Settings, "extra_minimizing_s", 0.0)
    made = alone(tmp_path / "none", ("stale_too",), time_s=1e-9, tests=None)
    made.add_unreduced(unreduced)
    assert len(made.run().unreduced) == 1


class Clock:
    """Replaces `time` in `fuzz.campaign.minimizer`: `pace` executions take a second."""

    def __init__(self, pace: float) -> None:
        self.pace = pace
        self.now = 0.0
        self.jobs = 0

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def spend(self, task, *shown: Outcome) -> object:
        """What a task returns, if each of its jobs shows these."""
        try:
            job = next(task)
            while True:
                self.now += job.count / self.pace
                self.jobs += 1
                job = task.send(dict.fromkeys(shown, job.count // len(shown)))
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("pace", [20.0, 1e6])
def test_a_slow_minimization_is_stopped_in_time(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch, pace: float
) -> None:
    made = alone(tmp_path, ("stale_too",), reduction_s=200.0)
    made.add_unreduced(unreduced)
    (taken,) = made.unreduced
    clock = Clock(pace)
    monkeypatch.setattr("litmusfuzz.fuzz.campaign.minimizer.time", clock)
    allowed = min(allowed_outcomes(unreduced.test, EXECUTOR).witnesses, key=str)
    best = Best(unreduced.test, taken.judgement, rate=1e-4)
    rng = random.Random(1)
    assert clock.spend(made.minimizer.probe(unreduced.test, best, taken, rng), allowed) is None
    probed = clock.now
    assert clock.spend(made.minimizer.confirm(taken, best, rng), allowed) is None
    confirmed = clock.now - probed
    if pace > 1e3:  # nothing is cut short: all that is asked for is run
        assert probed >= 2 * best.count / pace
        assert CONFIRM_S < confirmed < 10 * CONFIRM_S
    else:
        assert probed < 50.0 + PROBE_STEP / pace + STEP_S
        assert confirmed < 50.0 + 2 * STEP_S


def test_a_smaller_test_that_only_blocks_is_given_up_at_once(
    tmp_path: Path, unreduced: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each blocked run costs a session. A test that blocks only sometimes is kept."""
    made = alone(tmp_path, ("stale_too",))
    made.add_unreduced(unreduced)
    (taken,) = made.unreduced
    best = Best(unreduced.test, taken.judgement, rate=1e-4)
    allowed = min(allowed_outcomes(unreduced.test, EXECUTOR).witnesses, key=str)
    blocked = Outcome.of(unreduced.test, {}, Status.BLOCKED)
    jobs = []
    for shown in ((blocked,), (blocked, allowed)):
        clock = Clock(1e6)
        monkeypatch.setattr("litmusfuzz.fuzz.campaign.minimizer.time", clock)
        probe = made.minimizer.probe(unreduced.test, best, taken, random.Random(1))
        assert clock.spend(probe, *shown) is None
        jobs.append(clock.jobs)
    assert jobs[0] == 1 < jobs[1]
