"""Ops with several results: whatever nodes are its results, TensorFlow has one op."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers import LITMUS
from tensorflow.python.eager import execute

from litmusfuzz.corpus.model import first_results
from litmusfuzz.corpus.textfile import load, loads
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import lowering
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

LOOKUP = next(path for path in LITMUS if path.stem == "lookup-of-distinct-rows")
GRAPHS = ("graph", "functional", "functional_kernels", "python_v1", "python_v2", "function")
COPIES = 3
NESTED = """
litmusfuzz: 2
name: nested
variables: {X: {dtype: int32, shape: [2], init: [3, 4]}}
mutexes: {M: {}}
graphs:
  main:
    r: {op: ReadVariableOp, resources: [X]}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    values: {op: TopKV2, inputs: [r, one], result: values, index_type: int32}
    again: {op: TopKV2, inputs: [r, one], result: values, index_type: int32}
    places: {op: TopKV2, inputs: [r, one], result: indices, index_type: int32}
    late: {op: TopKV2, inputs: [r, one], result: indices, index_type: int32, after: [values]}
    held: {op: TopKV2, inputs: [r, one], result: indices, index_type: int32}
    s: {op: CriticalSection, resources: [M], members: [held]}
    c:
      op: Call
      captures: {a: r, k: one}
      results: [y, z]
      body:
        nodes:
          best: {op: TopKV2, inputs: [a, k], result: values, index_type: int32}
          place: {op: TopKV2, inputs: [a, k], result: indices, index_type: int32}
        results: [best, place]
observe: [values, again, places, late, held, c.y, c.z]
"""


@cache
def lookup() -> LitmusTest:
    return load(LOOKUP).test


def built(test: LitmusTest, front_end: str) -> Any:
    noise = Noise(copies=COPIES, shuffle=True, padding=64)
    return lowering.build(
        lowering.lower(test), noise, np.random.default_rng(1), front_end=front_end
    ).graph_def


def ops_of(graph_def: Any) -> Counter[str]:
    """How often a graph has each op, in its functions as well."""
    inside = (node for function in graph_def.library.function for node in function.node_def)
    return Counter(node.op for node in (*graph_def.node, *inside))


def test_results_of_one_op_wait_for_the_same_nodes_in_the_same_sections() -> None:
    """The same result twice is two ops, of which the first one has the other results."""
    assert first_results(loads(NESTED).test.graphs) == {
        "values": "values",
        "again": "again",
        "places": "values",
        "late": "late",
        "held": "held",
        "best": "best",
        "place": "best",
    }


@pytest.mark.parametrize("front_end", GRAPHS)
def test_a_graph_has_one_op_for_two_results(front_end: str) -> None:
    """Of each copy, or of each function or graph that copies share."""
    ops = ops_of(built(lookup(), front_end))
    assert 0 < ops["Unique"] == ops["SparseSegmentSum"] <= COPIES


@pytest.mark.parametrize("front_end", ["graph", "functional"])
def test_other_nodes_take_the_output_itself(front_end: str) -> None:
    """That is what Grappler's patterns look for."""
    inputs = {node.name: list(node.input) for node in built(lookup(), front_end).node}
    assert inputs["c0/sums"][1] == "c0/rows/all:1"
    assert inputs["c0/found"][1] == "c0/rows/all"


@pytest.mark.parametrize("front_end", GRAPHS[:2])
def test_bodies_and_sections_have_ops_of_their_own(front_end: str) -> None:
    """Of the seven nodes outside and inside the call, five ops."""
    assert ops_of(built(loads(NESTED).test, front_end))["TopKV2"] == 5 * COPIES


@pytest.mark.parametrize("name", ["eager_threads", "eager_functions"])
def test_a_thread_executes_one_op_for_two_results(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Op by op; a part of a run that is a function has ops of its own."""
    executed: Counter[str] = Counter()

    def counting(op: str, *given: Any, **named: Any) -> Any:
        executed[op] += 1
        return original(op, *given, **named)

    original = execute.execute
    monkeypatch.setattr(execute, "execute", counting)
    config = configuration("tf", name)
    prepared = TensorFlowExecutor().prepare(lookup(), config)
    histogram = prepared.run(64, Noise(), 1)
    prepared.close()
    assert sum(histogram.values()) == 64
    assert judge(Explorer(lookup(), GUARANTEES[config.guarantees]), histogram).forbidden_count == 0
    if name == "eager_threads":
        assert executed["Unique"] == executed["SparseSegmentSum"] == 64


@pytest.mark.parametrize(
    "name",
    [
        *("plain", "grappler", "autocluster", "functional", "functional_kernels", "function"),
        *("python_v1", "python_v2", "critical_section", "model_code_grappler", "jit_compile"),
    ],
)
def test_two_results_belong_together_in_every_configuration(name: str) -> None:
    for test in (lookup(), loads(NESTED).test):
        config = configuration("tf", name)
        if test.features & Settings.of(config).refuses:
            continue
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            histogram = prepared.run(96, Noise(copies=8), 3)
        finally:
            prepared.close()
        judged = judge(Explorer(test, GUARANTEES[config.guarantees]), histogram)
        assert judged.forbidden_count == 0, (test.name, judged.forbidden)


@pytest.mark.parametrize("name", ["plain", "autocluster", "function", "eager_functions"])
def test_generated_lookups_show_what_is_allowed(name: str) -> None:
    """Without Grappler, which loses edges: the cause lookup-loses-its-edges."""
    config = configuration("tf", name)
    for index in range(6):
        test = generate("lookups", 11, index)
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            histogram = prepared.run(48, Noise(copies=8), index)
        finally:
            prepared.close()
        judged = judge(Explorer(test, GUARANTEES[config.guarantees]), histogram)
        assert judged.forbidden_count == 0, (index, judged.forbidden)


def test_the_family_shows_the_edges_that_grappler_loses() -> None:
    """One of the first tests that it generates does, without chance: each copy is rewritten."""
    config = configuration("tf", "grappler_arithmetic")
    shown = 0
    for index in range(12):
        test = generate("lookups", 5, index)
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            histogram = prepared.run(64, Noise(copies=8, padding=0, shuffle=False), index)
        finally:
            prepared.close()
        shown += bool(judge(Explorer(test, RFC), histogram).forbidden_count)
    assert shown
