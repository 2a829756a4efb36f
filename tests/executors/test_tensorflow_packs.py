"""TensorFlow executor: packs of several tests in one session."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor, lowering
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, Settings
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.mutants.tensorflow import DroppedControlEdge

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

SHALLOW = Noise(copies=1, steps=16)
PLAIN = configuration("tf")


def packable(family: str, count: int) -> list[LitmusTest]:
    made = (generate(family, 1, index, TensorFlowExecutor.support) for index in range(16 * count))
    return list(islice((t for t in made if TensorFlowExecutor.may_pack(t, PLAIN)), count))


def without_prefix(graph_def: Any, prefix: str) -> dict[str, object]:
    """The nodes of one test: op, inputs and attributes, without the prefix and compilers' words."""
    found = {}
    for node in graph_def.node:
        if node.name.startswith(prefix):
            node.name = node.name.removeprefix(prefix)
            inputs = [each.replace(prefix, "", 1) for each in node.input]
            del node.input[:]
            node.input.extend(inputs)
            for name in ("shared_name", "frame_name"):
                if node.attr[name].s:
                    node.attr[name].s = node.attr[name].s.removeprefix(prefix.encode())
                else:
                    del node.attr[name]
            for name in ("_XlaCompile", "_XlaAlreadyClustered", "_tpu_none"):
                if name in node.attr:
                    del node.attr[name]
            found[node.name] = node.SerializeToString(deterministic=True)
    return found


@pytest.mark.parametrize("family", ["dag", "loops", "conditionals", "sparse", "cycles"])
def test_a_test_of_a_pack_has_the_graph_that_it_has_alone(family: str) -> None:
    tests, noise = packable(family, 3), Noise(copies=2)
    templates = [lowering.lower(test) for test in tests]
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    graph_def = lowering.pack(templates, noise, rngs)[0].graph_def
    marked = {node.name for node in graph_def.node if "_XlaAlreadyClustered" in node.attr}
    needed = ("init", "race", "final0")
    assert {f"t{number}/{name}" for number in range(3) for name in needed} < marked
    names = {node.name for node in graph_def.node}
    for number, template in enumerate(templates):
        own = lowering.build(template, noise, np.random.default_rng(number)).graph_def
        prefix = f"t{number}/"
        assert all(
            each.lstrip("^").startswith(prefix)
            for node in graph_def.node
            if node.name.startswith(prefix)
            for each in node.input
        )
        found = without_prefix(graph_def, prefix)
        assert found == without_prefix(own, "")
        names -= {f"{prefix}{name}" for name in found}
    assert not names


@pytest.mark.parametrize("name", ["plain", "single_threaded", "caller_thread", "second_pool"])
def test_each_test_of_a_pack_shows_its_own_values_at_each_step(name: str) -> None:
    """Without races each has one outcome; all use the same names, and end as they do alone."""
    config, executor = configuration("tf", name), TensorFlowExecutor()
    tests = [litmus(f"X={number}; X+=1; r0=X; Y+=r0; r1=Y") for number in range(8)]
    found = executor.prepare_pack(tests, config).run(16, SHALLOW, range(8))
    for number, (test, histogram) in enumerate(zip(tests, found, strict=True)):
        ((outcome, count),) = histogram.items()
        values = {name: value for name, (value,) in dict(outcome.values).items()}
        last = number + 1
        assert values == {"r0": last, "r1": last, "X": last, "Y": last}
        with closing(executor.prepare(test, config)) as prepared:
            assert dict(prepared.run(16, SHALLOW, number)) == {outcome: count} == {outcome: 16}


def test_a_pack_is_executed_as_often_as_was_asked_for() -> None:
    tests = [litmus("X=1; r0=X"), litmus("Y=1; r0=Y")]
    prepared = TensorFlowExecutor().prepare_pack(tests, PLAIN)
    found = prepared.run(20, Noise(copies=4, steps=2), [1, 2])  # of sessions of 8 executions
    assert [sum(each.values()) for each in found] == [20, 20]


def test_racing_tests_show_several_outcomes_in_a_pack() -> None:
    """In 40 of 80 tests or more, 16 executions show several, if the machine is not full."""
    # On a full one the tests of a pack depend on each other. All 800 sets have one outcome with
    # less than 2**-100 if each pack is one trial; the first with several ends the search.
    tests = [litmus("X=1; r0=Y || Y=1; r1=X")] * 8
    executor = TensorFlowExecutor()
    seeds = (range(8 * number, 8 * number + 8) for number in range(100))
    found = (executor.prepare_pack(tests, PLAIN).run(16, SHALLOW, each) for each in seeds)
    assert any(len(histogram) > 1 for pack in found for histogram in pack)


def test_packs_are_for_small_tests_whose_graph_nothing_rewrites() -> None:
    for config in CONFIGURATIONS:
        settings = Settings.of(config)
        rewritten = settings.rewrites or settings.compiled or settings.model_code
        other = settings.workers or settings.front_end != "graph" or settings.devices > 1
        size = TensorFlowExecutor.pack_size(config, SHALLOW)
        other = other or settings.control  # one execution at a time
        assert (size == 1) == bool(rewritten or other), config.name
        assert TensorFlowExecutor.pack_size(config, Noise()) == 1
    assert TensorFlowExecutor.pack_size(PLAIN, SHALLOW) == 16
    assert TensorFlowExecutor.pack_size(PLAIN, Noise(copies=2)) == 8
    assert DroppedControlEdge.pack_size(PLAIN, SHALLOW) == 1  # a pack would not be changed


DAMAGING = next(
    test
    for test in (generate("sparse", 1, index) for index in range(64))
    if any(node.op in TensorFlowExecutor.damaging_ops for node in test.effects)
)


FAILING = [
    test
    for test in (corpus_entry(path).test for path in LITMUS)
    if test.failing and not test.features - {"loops", "conditionals"}
]
"""Tests of packable features: an index into a list, say, is outside of it."""


def test_there_are_tests_that_only_may_fail() -> None:
    assert {test.name for test in FAILING} == {"list-in-a-loop", "list-index-outside"}


@pytest.mark.parametrize(
    "test",
    [*(generate(family, 1, 0) for family in ("queues", "sections", "runs")), DAMAGING, *FAILING],
    ids=lambda test: test.name,
)
def test_what_may_block_fail_damage_memory_or_has_several_runs_is_in_no_pack(
    test: LitmusTest,
) -> None:
    assert not TensorFlowExecutor.may_pack(test, PLAIN)
    with pytest.raises(Refused, match="pack"):
        TensorFlowExecutor().prepare_pack([test], PLAIN)
