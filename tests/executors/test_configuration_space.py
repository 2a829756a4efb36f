"""The configuration space of TensorFlow: presets, names, exclusions, and words."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.configuration_generator import points
from litmusfuzz.fuzz.executors.entries import wrong_setting
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    CONFIGURATIONS,
    OPTIMIZERS,
    PROCESS,
    Settings,
)
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.space import SPACE, configuration_at, point_of

if TYPE_CHECKING:
    from conftest import Command

    from litmusfuzz.fuzz.executors.protocol import Config


@cache
def generated() -> list[Config]:
    return [configuration_at(point) for point in islice(points(SPACE, "1"), 150)]


def test_every_preset_is_a_point_and_keeps_its_name() -> None:
    for config in CONFIGURATIONS:
        point = point_of(config)
        assert point is not None
        assert not SPACE.problem(point)
        assert configuration_at(point) is config
        if config.name != "plain":
            assert configuration("tf", SPACE.name(point)) is config
    assert point_of(CONFIGURATIONS[0]) == SPACE.plain


def test_names_of_generated_configurations_are_parsed_back() -> None:
    for config in generated():
        assert configuration("tf", config.name) == config
        assert "," not in config.name  # separates executors on the command line
    # In any order, with plain values too.
    same = configuration("tf", "pool=second;loop_optimizer=true;model_code=false")
    assert same == configuration("tf", "loop_optimizer=true;pool=second")
    assert same.name == "loop_optimizer=true;pool=second"


def test_settings_determine_guarantee_and_environment() -> None:
    for config in (*CONFIGURATIONS, *generated()):
        settings = Settings.of(config)
        environment = dict(config.environment)
        assert wrong_setting("tf", dict(config.settings)) is None
        front_end = {"eager": "program", "eager_functions": "acd", "keras": "acd"}
        front_end |= {"function": "acd", "function_kernels": "acd"}
        compiled = {"clusters": "rfc", "region": "rfc", "whole": "one_cluster"}
        guarantees = front_end.get(settings.front_end, "executor")
        assert config.guarantees == compiled.get(settings.compiled, guarantees)
        assert ("TF_XLA_FLAGS" in environment) == (settings.compiled == "clusters")
        assert environment.get(PROCESS, "") == settings.of_the_process
        flags = environment.get("TF_XLA_FLAGS", "")
        assert ("async_compilation=true" in flags) == settings.in_background
        least = f"--tf_xla_min_cluster_size={settings.min_cluster_size}"
        assert not flags or [f for f in flags.split() if "min_cluster" in f][-1] == least


def test_a_generated_configuration_has_the_settings_of_its_point() -> None:
    config = configuration("tf", "loop_optimizer=true;memory_optimizer=true;intra_op_threads=8")
    assert Settings.of(config) == Settings(
        rewrites="loop_optimization=ON,memory_optimization=HEURISTICS", intra_op_threads=8
    )
    for each in generated():
        point = point_of(each)
        assert point is not None
        assert configuration_at(point) == each


def test_a_seldom_setting_that_is_kept_at_its_plain_value_stays_plain() -> None:
    """As in a self-test, which needs a process for each other value."""
    assert SPACE.seldom
    kept = {setting: (SPACE.plain[setting],) for setting in SPACE.seldom}
    space = replace(SPACE, values={**SPACE.values, **kept})
    for point in islice(points(space, "1"), 20):  # a draw of another value: 1 - 0.81**160
        assert all(point[setting] == space.plain[setting] for setting in kept)


def test_settings_that_no_point_has_are_outside_of_the_space() -> None:
    plain = CONFIGURATIONS[0]
    for name, value in (
        *(("inter_op_threads", 3), ("rewrites", "loop_optimization=AGGRESSIVE")),
        *(("min_cluster_size", 2), ("workers", 2)),
    ):
        odd = replace(plain, settings=tuple((dict(plain.settings) | {name: value}).items()))
        assert point_of(odd) is None
    assert point_of(replace(plain, environment=())) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("loop=true", "no setting 'loop'; there are rewrites, "),
        ("pool", "no configuration 'pool'"),
        ("pool=;", "pool is one of own, per_session, second, global, run_handler, caller, not ''"),
        ("inter_op_threads=3", "inter_op_threads is one of 4, 1, 2, 8, 16, not '3'"),
        ("model_code=True", "model_code is one of false, true, not 'True'"),
        ("pool=own;pool=own", "pool is named twice"),
        ("pool=caller;inter_op_threads=1", "pool=caller: no pool runs the ops"),
        ("min_cluster_size=2", "min_cluster_size=2: only auto-clustering has it"),
        ("rewrite_iterations=1", "rewrite_iterations=1: it is varied only where all optimizers"),
        ("rewrites=all;rewrite_iterations=4", "rewrite_iterations is one of 2, 1, 3, not '4'"),
        ("rewrites=all;loop_optimizer=true", "excludes loop_optimizer=true: all optimizers"),
        ("=" * 9000, "no setting ''"),
        ("x" * 9000 + "=1", "..."),
    ],
)
def test_a_name_that_is_no_configuration_is_refused_in_one_line(name: str, why: str) -> None:
    with pytest.raises(UnknownExecutor) as error:
        configuration("tf", name)
    assert why in str(error.value)
    assert "\n" not in str(error.value)
    if "=" in name:
        assert len(str(error.value)) < 600


def test_each_exclusion_is_named_once_and_excludes_something() -> None:
    seen = set()
    for each in SPACE.exclusions:
        assert each.why
        assert each.first[1]
        assert each.second[1]
        for one in each.first[1]:
            for other in each.second[1]:
                pair = frozenset({(each.first[0], one), (each.second[0], other)})
                assert pair not in seen
                seen.add(pair)
        assert set(each.first[1]) <= set(SPACE.values[each.first[0]])
        assert set(each.second[1]) <= set(SPACE.values[each.second[0]])


def test_the_number_of_pairs() -> None:
    """As docs/tensorflow.md states it."""
    assert (len(SPACE.pairs), len(SPACE.impossible)) == (2487, 308)


def test_each_value_that_is_not_plain_has_words() -> None:
    for setting, values in SPACE.values.items():
        for value in values[1:]:
            assert (setting, value) in SPACE.words
    point = {**SPACE.plain, "loop_optimizer": True, "inter_op_threads": 1}
    assert SPACE.in_words(point) == "only with the loop optimizer, in one thread"
    assert SPACE.in_words(SPACE.plain) == "in plain TensorFlow"


def test_putting_a_setting_back_takes_along_what_needs_it() -> None:
    point = SPACE.parsed("compiled=clusters;min_cluster_size=2;lazy=true;in_background=true")
    assert SPACE.without(point, "compiled") == SPACE.plain
    assert SPACE.name(SPACE.without(point, "lazy")) == "compiled=clusters;min_cluster_size=2"
    both = SPACE.parsed("arithmetic_optimizer=true;elimination_optimizer=true")
    assert SPACE.without(both, "arithmetic_optimizer") == SPACE.plain
    for config in generated():
        point = point_of(config) or {}
        for setting in SPACE.differing(point):
            for simpler in SPACE.simpler(point, setting):
                assert not SPACE.problem(simpler)
                assert simpler[setting] == SPACE.plain[setting] or setting == "rewrites"


def test_all_optimizers_may_come_down_to_one() -> None:
    names = [SPACE.name(each) for each in SPACE.simpler(SPACE.parsed("rewrites=all"), "rewrites")]
    assert names[0] == ""
    assert "loop_optimizer=true" in names
    assert "arithmetic_optimizer=true;elimination_optimizer=true" in names
    assert len(names) == 1 + len(OPTIMIZERS)


def test_iterations_of_grappler_go_back_to_tensorflows_default() -> None:
    """First, then, if they are not needed; without optimizers none are left."""
    point = SPACE.parsed("rewrites=all;rewrite_iterations=1;pool=second")
    assert SPACE.differing(point) == {"rewrites": "all", "rewrite_iterations": 1, "pool": "second"}
    (simpler,) = SPACE.simpler(point, "rewrite_iterations")
    assert SPACE.name(simpler) == "rewrites=all;pool=second"
    assert SPACE.name(SPACE.without(point, "rewrites")) == "pool=second"
    assert SPACE.in_words(point).startswith("only with all optimizers, with one iteration of Grapp")
    swept = {Settings.of(each).rewrite_iterations for each in generated()}
    assert swept == {1, 2, 3}


def test_the_executor_declares_it() -> None:
    assert TensorFlowExecutor.space is SPACE
    assert next(iter(SPACE.plain)) == "rewrites"


def test_the_command_line_takes_generated_names(litmusfuzz_here: Command) -> None:
    done = litmusfuzz_here("run", "--executors", "tf:pool=caller;inter_op_threads=1")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no pool runs the ops" in done.stderr
    done = litmusfuzz_here("run", "--executors", "native:product")
    assert (done.returncode, done.stderr) == (
        2,
        "litmusfuzz: --executors: native has no configuration space"
        " to generate configurations in\n",
    )
