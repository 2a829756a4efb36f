"""Front ends of Python: functions, functions that XLA compiles, `tf.while_loop` and `tf.cond`.

`eager_threads` has a file of its own.
"""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers import ALIASES, LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import loads, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor, lowering
from litmusfuzz.fuzz.executors.tensorflow.eager_parts import MixedProgram
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

BY_NAME = {path.stem: path for path in LITMUS}
NOISE = Noise(copies=4, steps=2, padding=64)
TESTS = (
    *("SB", "runs-diamond", "rule-results-1", "rule-results-2", "rule-iterations-1"),
    *("h-branch-in-a-loop", "h-loop-in-a-branch", "h-nested-frames", "h-leaves-early"),
    *("call-nested", "call-around-a-loop", "call-in-a-loop", "rule-calls-1"),
    *("handle-chosen-by-a-race", "handle-into-a-call", "placeholders-rows"),
    *("state-beside-a-write", "uninitialized-always-fails"),
)
FRONT_ENDS = ("function", "function_kernels", "python_v1", "python_v2", "eager_functions")


def named(stem: str) -> LitmusTest:
    return corpus_entry(BY_NAME[stem]).test


@pytest.mark.parametrize("config", FRONT_ENDS)
def test_a_front_end_keeps_its_guarantee(config: str) -> None:
    chosen = configuration("tf", config)
    for stem in TESTS:
        test = named(stem)
        seen = TensorFlowExecutor().prepare(test, chosen).run(16, NOISE, 1)
        assert sum(seen.values()) >= 16
        judged = judge(Explorer(test, GUARANTEES[chosen.guarantees]), seen)
        assert judged.verdicts.keys() <= {Verdict.ALLOWED, Verdict.UNSPECIFIED}, (stem, seen)


COMPILED = {
    "function_compiled": ("SB", "sb-two-graphs", "h-loop-in-a-branch", "call-around-a-loop"),
    "eager_compiled": ("SB", "sb-two-graphs", "rule-results-2", "call-nested"),
    "function_autocluster": ("rule-results-1", "call-in-a-loop", "uninitialized-always-fails"),
    "autocluster": (
        *("call-control-edges", "handle-into-a-call", "handle-two-of-one-variable"),
        *("fetches-call-whole", "placeholders-predicate", "state-beside-a-write"),
        "uninitialized-always-fails",
    ),
}


def test_what_xla_compiles_keeps_its_guarantee() -> None:
    with closing(Worker("tf")) as worker:
        for config, stems in COMPILED.items():
            chosen = configuration("tf", config)
            for stem in stems:
                test = named(stem)
                request = messages.Request(
                    test=plain_of(test), config=config, count=8, noise=asdict(NOISE), seed=1
                )
                reply = worker.ask(request, 120)
                assert isinstance(reply, messages.Reply), reply
                assert not reply.refused, (config, stem)
                seen = messages.histogram(test, reply)
                judged = judge(Explorer(test, GUARANTEES[chosen.guarantees]), seen)
                allowed = {Verdict.ALLOWED, Verdict.UNSPECIFIED}
                assert judged.verdicts.keys() <= allowed, (config, stem, seen)


def built(stem: str, front_end: str, *, compiled: bool = False) -> lowering.Built:
    template = lowering.lower(named(stem))
    rng = np.random.default_rng(0)
    return lowering.build(template, NOISE, rng, front_end=front_end, compiled=compiled)


@pytest.mark.parametrize(
    ("front_end", "there", "gone"),
    [
        ("function", "While", "Enter"),
        ("function_kernels", "While", "Enter"),
        ("python_v1", "Enter", "While"),
        ("python_v2", "While", "Enter"),
    ],
)
def test_control_flow_is_of_the_generation_that_was_asked_for(
    front_end: str, there: str, gone: str
) -> None:
    graph = built("h-loop-in-a-branch", front_end).graph_def
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    ops = {node.op.removeprefix("Stateless") for node in nodes}
    assert there in ops
    assert gone not in ops
    lowered = {n.attr["_lower_using_switch_merge"].b for n in nodes if n.op.endswith("While")}
    assert lowered <= {front_end != "function_kernels"}


def test_a_function_is_compiled_as_a_whole() -> None:
    graph = built("h-loop-in-a-branch", "function", compiled=True).graph_def
    calls = [node for node in graph.node if node.op == "StatefulPartitionedCall"]
    assert len(calls) == NOISE.copies
    assert all(node.attr["_XlaMustCompile"].b for node in calls)
    effects = {node.op for node in named("h-loop-in-a-branch").effects}
    assert not effects & {node.op for node in graph.node if node.name.startswith("c0/.")}


MUST_BE_CONSTANT = """
litmusfuzz: 2
name: computed-shape
variables:
  S: {dtype: int32, shape: [1], init: 3}
graphs:
  main:
    n: {op: ReadVariableOp, resources: [S]}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    f: {op: Fill, inputs: [n, one]}
    axis: {op: Const, dtype: int32, shape: [1], value: 0}
    total: {op: Sum, inputs: [f, axis], keep_dims: false}
observe: [total]
allowed:
  rfc:
  - {total: 3, S: 3}
"""


@pytest.mark.parametrize("config", ["function_compiled", "eager_compiled"])
def test_what_must_be_a_compile_time_constant_is_refused(config: str) -> None:
    test = loads(MUST_BE_CONSTANT).test
    with pytest.raises(Refused, match="XLA does not compile"):
        TensorFlowExecutor().prepare(test, configuration("tf", config)).run(1, NOISE, 1)
    plain = configuration("tf", "function")
    (outcome,) = TensorFlowExecutor().prepare(test, plain).run(4, NOISE, 1)
    assert outcome.plain == {"total": 3, "S": 3}


def test_a_program_mixes_ops_and_functions_and_traces_some_twice() -> None:
    """Of a test with a further handle; misses any of these with probability below 1e-6."""
    test = named("handle-into-a-call")
    program = MixedProgram(test, 1)
    parts = []
    for _ in range(60):
        program._parts = {}
        program._resets = 0
        program.reset()
        parts += [part for run in test.runs for part in program._parts[run.name]]
    program.close()
    assert any(part.function is None for part in parts)
    assert {len(part.retracing_arguments) for part in parts if part.function is not None} == {1, 2}
    handles = {name for part in parts for name in part.handles}
    assert any(name.endswith("/argument") for name in handles)
    assert any(not part.handles for part in parts if part.function is not None)


def test_a_handle_and_its_identities_are_one_argument_of_a_function() -> None:
    """Of two, automatic control dependencies do not know that they are one handle.

    Sixty programs divide the six nodes into parts as they may be with odds of less than 1e-6 that
    no handle goes into another function; the read overtook the write in one program of five.
    """
    test = loads(ALIASES).test
    program = MixedProgram(test, 1)
    handed = 0
    with closing(program):
        for _ in range(60):
            program._parts = {}
            program._resets = 0
            program.reset()
            values = program.execute_run(test.runs[0])
            assert int(values["r0"]) == 1
            inputs = [part.inputs for part in program._parts["main"] if part.function is not None]
            assert {"h1", "h2"}.isdisjoint(itertools.chain.from_iterable(inputs))
            handed += any("h0" in names for names in inputs)
    assert handed


@pytest.mark.parametrize("config", FRONT_ENDS)
@pytest.mark.parametrize(
    ("test", "feature"),
    [
        (litmus("Q!1; r0=Q?", queues={"Q": 1}), "queues"),
        (litmus("lock M; X=1; unlock M"), "critical sections"),
    ],
)
def test_what_may_block_is_refused(test: LitmusTest, feature: str, config: str) -> None:
    with pytest.raises(Refused, match=rf"^{feature} in configuration {config}$"):
        TensorFlowExecutor().prepare(test, configuration("tf", config))
