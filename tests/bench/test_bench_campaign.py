"""Benchmark of campaigns: its rounds, figures and naive loop. No test checks a time."""

from __future__ import annotations

import os
import sys
import time
from statistics import StatisticsError
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from helpers import nightly

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.bench import all_configurations, campaign, own_time
from litmusfuzz.fuzz.bench.core_speed import (
    TENSORFLOW_LOSS,
    CoreSpeed,
    tensorflow_idle_time_ratio,
)
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.generators import generate

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_campaign_and_naive_loops_run_the_same_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "WORKERS", 1)
    scope = campaign.Scope("a title", "plain", ("dag",), 0.001, naive=True)
    for seconds in (4.0, 32.0, 256.0):  # on a machine with other work, as long as it takes
        monkeypatch.setattr(campaign, "CAMPAIGN_S", seconds)
        made = campaign.one_round(scope, 1)
        if made.runs > 0:
            break
    assert made.runs > 0
    assert made.naive is not None
    assert min(made.naive.rate, made.naive.cpu_s, made.cpu_s, made.own_s, made.workers_s) > 0
    assert 0 < made.working_s <= campaign.WORKERS * made.elapsed_s
    half = CoreSpeed([(made.ended - 1, 2.0), *[(made.ended + 1, 1.0)] * 99])
    runs, relative, by_processor, working, asked, own = campaign.figures_of(scope, [made], half)
    assert runs.met
    assert made.rate < (runs.value or 0) <= made.rate / (1 - TENSORFLOW_LOSS / 2)
    assert runs.note == f"{made.rate:,.1f} measured, at 50% of the cores' full speed"
    assert relative.value == pytest.approx(made.rate / made.naive.rate)
    assert by_processor.value == pytest.approx(made.naive.cpu_s / made.cpu_s)
    assert 0 < (working.value or 0) <= 1
    share = sum(made.parts[part] for part in campaign.ASKED)
    assert asked.value == pytest.approx(share * (own.value or 0))
    assert (own.value or 0) > 0
    assert sum(made.parts.values()) == pytest.approx(1)
    # Half of some hundred samples; that none of fifty is has a chance of 2**-50.
    assert made.parts["generating"] > 0


def test_time_belongs_to_the_outermost_part_of_a_campaign() -> None:
    """Generators ask oracles, for example: functions in these files call each other."""
    for files, part in (
        (("generators/dag.py", "finding/judge.py"), "generating"),
        (("campaign/engine.py", "finding/judge.py", "oracles/explorer.py"), "judging"),
        (("campaign/engine.py", "store/store.py"), "storing"),
        (("campaign/engine.py", "campaign/variation.py"), "generating"),
        (("campaign/engine.py",), "the rest"),
    ):
        assert own_time.PARTS.count(part) == 1
        look: Callable[[], object] = sys._getframe
        for file in reversed(files):
            scope: dict[str, Callable[[], object]] = {"look": look}
            code = compile("def call(): return look()", f"/fuzz/{file}", "exec")
            exec(code, scope)  # noqa: S102 - the file of a function is chosen
            look = scope["call"]
        frame = look()
        assert isinstance(frame, FrameType)
        assert own_time.part_of(frame) == part


@pytest.mark.parametrize("family", campaign.NOT_BLOCKING)
def test_no_graph_of_these_families_blocks(family: str) -> None:
    for index in range(20):
        test = generate(family, campaign.SEED, index)
        assert not {*test.queues, *test.mutexes}


def test_a_naive_loop_refuses_a_test_that_may_block() -> None:
    # TensorFlow takes seconds to import, in each process that collects tests.
    from litmusfuzz.fuzz.executors.tensorflow.baselines import run_naively

    noise = Noise(copies=1, steps=2)
    run_naively(litmus("X=1; r0=Y || Y=1; r1=X"), configuration("tf"), noise, 0)
    with pytest.raises(Refused, match="block"):
        run_naively(generate("queues", 1, 0), configuration("tf"), noise, 0)


def test_the_time_of_a_generator_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "GENERATED", 12)
    made = campaign.generator_time("dag")
    assert made.number == 12
    assert len(made.batches) == 2
    assert min(min(batch) for batch in made.batches) > 0


def test_full_speed_is_that_of_the_fast_samples_and_not_of_the_fastest_one() -> None:
    """Two that may be errors of the clock do not count, nor does the spread of fast ones."""
    fast, slow, errors = [(1.0, 0.48), (1.0, 0.5), (1.0, 0.52)] * 7, [(2.0, 1.0)] * 77, (0.0, 0.1)
    speed = CoreSpeed([*fast, *slow, errors, errors])
    assert speed.full_s() == 0.5
    assert speed.share(2.0, 3.0) == 0.5
    assert speed.share(1.0, 1.0) == pytest.approx(1.0, abs=0.002)
    assert speed.share(1.0, 2.0) == pytest.approx((21 + 77 / 2) / 98, abs=0.002)
    with pytest.raises(StatisticsError):
        speed.share(4.0, 5.0)


def test_without_samples_the_speed_of_the_cores_is_unknown() -> None:
    with pytest.raises(StatisticsError, match="no samples"):
        CoreSpeed().full_s()
    with pytest.raises(StatisticsError, match="no samples"):
        CoreSpeed().share(1.0, 2.0)


def test_a_benchmark_fails_if_the_speed_of_the_cores_is_unknown() -> None:
    speed = CoreSpeed().__enter__()
    assert speed._child is not None
    speed._child.kill()
    speed._child.wait()
    assert speed._output is not None
    speed._output.write(b"12.5 ")  # a line that was cut off
    with pytest.raises(RuntimeError, match="exit code -9"):
        speed.__exit__(None, None, None)


def test_only_work_is_faster_on_idle_cores() -> None:
    assert tensorflow_idle_time_ratio(1.0, 0.9) == 1.0
    assert tensorflow_idle_time_ratio(0.5, 0.0) == 1.0
    assert tensorflow_idle_time_ratio(0.5, 0.6) == pytest.approx(1 - 0.6 * TENSORFLOW_LOSS / 2)
    assert tensorflow_idle_time_ratio(0.5, 1.1) == tensorflow_idle_time_ratio(0.5, 1.0)


def test_times_of_a_generator_are_corrected_batch_by_batch() -> None:
    speed = CoreSpeed([(0.0, 0.001)] * 3)
    times = [campaign.GeneratorTime(20, [(0.06, 0.002), (0.03, 0.001), (0.03, 0.0009)])]
    figure = campaign.generator_figure("dag", times, speed)
    assert figure.value == pytest.approx(4.5)
    assert figure.note == "6.00 measured"


def test_the_cores_are_sampled_until_the_benchmark_ends() -> None:
    asked = 2 * len(os.sched_getaffinity(0))
    with CoreSpeed() as speed:
        child, output = speed._child, speed._output
        assert child is not None
        assert output is not None
        deadline = time.monotonic() + 60
        while os.pread(output.fileno(), 1 << 20, 0).count(b"\n") < asked:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert child.returncode == 0
    assert speed.full_s() > 0
    assert len(speed.samples) >= asked
    times = [at for at, _ in speed.samples]
    assert times == sorted(times)
    assert min(taken for _, taken in speed.samples) > 0


@nightly
def test_one_campaign_on_all_configurations_is_measured() -> None:
    """A real one, too short for most of them."""
    made = all_configurations.report(lambda _: None, seconds=2.0, known=None)
    figures = {each.name: each for each in made.figures}
    runs, fewest = figures["graph runs"], figures["graph runs of the rarest preset"]
    assert runs.value
    assert runs.least == pytest.approx(2 * 5000 / 600)
    assert fewest.value == 0
    pairs = figures["pairs of settings reached"]
    assert 0 < (pairs.value or 0) < 1
    assert pairs.least is None
    assert 0 < (figures["workers run new graphs"].value or 0) <= 1
    assert figures["time for what is known"].value == 0


def test_numbers_of_graph_runs_are_those_of_idle_cores() -> None:
    presets = [config.name for config in executor_class("tf").configurations()]
    found = {
        "by_config": [
            {"executor": "tf", "name": f"tf/{name}", "graphs": 40, "seconds": 1, "minimizing_s": 0}
            for name in presets
        ],
        "settings": [{"not_reached": [], "possible": 9, "rarest": None, "rarest_graphs": 1}],
        "spent_s": 600,
        "known_share": 0.01,
        **dict.fromkeys(("generating_s", "judging_s", "validating_s"), 1),
    }
    runs, fewest, *_ = all_configurations.figures_of(found, 600, 0.5)
    assert runs.value == 80 * len(presets)
    assert runs.note.startswith(f"{40 * len(presets):,} counted")
    assert fewest.value == 80
    assert fewest.note.startswith("40 counted: tf/")
    assert fewest.met


def test_a_campaign_that_cannot_run_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="ended with 2"):
        all_configurations.report(lambda _: None, seconds=2.0, known="missing.yaml")
