"""TensorFlow executor: initialization, race and final reads in one call."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tensorflow.core.protobuf import config_pb2

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor, lowering, session
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, Settings
from litmusfuzz.fuzz.generators import families_for, generate

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

PLAIN = Settings.of(configuration("tf"))
SUPPORT = TensorFlowExecutor.support
SB = "X=1; r0=Y || Y=1; r1=X"


def built(test: LitmusTest, noise: Noise, seed: int) -> Any:
    template = lowering.lower(test)
    return lowering.build(template, noise, np.random.default_rng(seed), joined=True)


def ancestors(graph_def: Any, name: str) -> set[str]:
    """All nodes with a path to `name`; loops have cycles."""
    sources = {n.name: [i.lstrip("^").split(":")[0] for i in n.input] for n in graph_def.node}
    found: set[str] = set()
    left = [name]
    while left:
        new = set(sources[left.pop()]) - found
        found |= new
        left += new
    return found


@pytest.mark.parametrize("family", families_for(SUPPORT))
def test_no_access_runs_beside_the_initialization_or_the_final_reads(family: str) -> None:
    joined = 0
    for index in range(8):
        test = generate(family, 1, index, SUPPORT)
        if not session.may_join(lowering.lower(test), PLAIN):
            assert test.queues or test.mutexes or len(test.runs) > 1
            continue
        joined += 1
        graph_def = built(test, Noise(copies=2), index).graph_def
        handles = {node.name for node in graph_def.node if node.op == "VarHandleOp"}
        variables = {f"c{copy}/{each.name}" for copy in range(2) for each in test.variables}
        sets = {f"{name}/set" for name in variables}
        gets = {f"{name}/get" for name in variables}
        accesses = {n.name for n in graph_def.node if handles & set(n.input)} - sets - gets
        assert len(accesses) == 2 * sum(1 for n in test.nodes if n.resources)
        assert sets <= ancestors(graph_def, "init")
        for name in accesses:
            assert "init" in ancestors(graph_def, name)
        before = ancestors(graph_def, "race")
        assert accesses <= before
        assert {f"c{copy}/{n.name}" for copy in range(2) for n in test.graph.nodes} <= {
            name.partition(".")[0] for name in before
        }
        for name in gets:
            assert "race" in ancestors(graph_def, name)
    assert joined or family in ("sections", "queues", "runs", "mixed", "training")


def test_one_call_is_for_graphs_that_nothing_rewrites() -> None:
    template = lowering.lower(litmus(SB))
    joined = {c.name for c in CONFIGURATIONS if session.may_join(template, Settings.of(c))}
    for config in CONFIGURATIONS:
        settings = Settings.of(config)
        rewritten = settings.rewrites or settings.compiled or settings.front_end != "graph"
        assert (config.name in joined) == (not rewritten and not settings.workers)
    assert {"plain", "single_threaded", "caller_thread", "model_code"} <= joined


@pytest.mark.parametrize("name", ["plain", "second_pool", "single_threaded", "run_handler_pool"])
def test_tensorflow_runs_the_joined_graph_as_it_was_built(name: str) -> None:
    test, noise = litmus("X=1; r0=Y; X+=r0 || Y=1; r1=X || r2=X; r3=Y"), Noise(3, padding=64)
    settings, graph = Settings.of(configuration("tf", name)), built(test, noise, 3)
    with closing(session.LiveSession(lowering.lower(test), graph, settings, 3)) as live:
        fetched = [shown.tensor for shown in (*graph.units[0].observed, *graph.final)]
        options = config_pb2.RunOptions(output_partition_graphs=True)
        metadata = config_pb2.RunMetadata()
        session.callable_of(live.session, fetched, options=options)(run_metadata=metadata)
    (partition,) = metadata.partition_graphs
    ran = {n.name: n for n in partition.node if n.op != "_Retval"}
    asked = {n.name: n for n in graph.graph_def.node}
    assert ran.keys() == asked.keys()
    for each, node in ran.items():
        assert node.op == asked[each].op
        assert set(node.input) >= set(asked[each].input)


@pytest.mark.parametrize("config", ["plain", "single_threaded", "caller_thread", "second_pool"])
def test_each_step_starts_from_the_initial_contents(config: str) -> None:
    """Sequential increments: one outcome, which a value left from a step before would change."""
    test = litmus("X=5; X+=1; r0=X; X+=r0; r1=X; Y+=1; r2=Y")
    with closing(TensorFlowExecutor().prepare(test, configuration("tf", config))) as prepared:
        (outcome,) = prepared.run(48, Noise(copies=2, steps=16), 1)
    values = {name: value for name, (value,) in dict(outcome.values).items()}
    assert values == {"r0": 6, "r1": 12, "r2": 1, "X": 12, "Y": 1}


def test_racing_ops_show_several_outcomes_in_one_call() -> None:
    """In 30 of 80 builds (13 with three calls), all 16 executions showed the same outcome."""
    # All 60 builds show one and the same outcome with less than 2**-60.
    with closing(TensorFlowExecutor().prepare(litmus(SB), configuration("tf"))) as prepared:
        seen = set().union(*(prepared.run(16, Noise(1, 16), seed) for seed in range(60)))
    assert len(seen) > 1
