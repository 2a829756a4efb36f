"""Tests with pure ops of all kinds on TensorFlow: every outcome is allowed."""

from __future__ import annotations

import pytest
import tensorflow as tf
from helpers import LITMUS, corpus_entry
from tensorflow.core.framework import node_def_pb2, types_pb2

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.commands.replay import event_keys
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.functions import type_of
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC, unsplit


@pytest.mark.parametrize("name", ["plain", "grappler_aggressive", "autocluster"])
def test_outcomes_are_allowed(name: str) -> None:
    config = configuration("tf", name)
    for index in range(4):
        test = generate("pure", 21, index)
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            judged = judge(Explorer(test, RFC), prepared.run(40, Noise(copies=8), index))
        finally:
            prepared.close()
        assert judged.forbidden_count == 0, (name, index)


def test_a_division_by_zero_fails() -> None:
    """X is 0 in every order."""
    test = loads(
        """
litmusfuzz: 2
name: by-zero
variables: {X: {dtype: int32}}
graphs:
  main:
    eight: {op: Const, dtype: int32, value: 8}
    r: {op: ReadVariableOp, resources: [X]}
    d: {op: FloorDiv, inputs: [eight, r]}
observe: [d]
"""
    ).test
    prepared = TensorFlowExecutor().prepare(test, configuration("tf", "plain"))
    try:
        histogram = prepared.run(2, Noise(copies=1), 1)
    finally:
        prepared.close()
    (outcome,) = histogram
    assert outcome.status is Status.FAILED
    assert set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses) == {outcome}


@pytest.mark.parametrize("name", ["plain", "single_threaded", "functional", "eager_threads"])
def test_an_op_that_fails_in_a_test_of_several_runs_is_an_outcome(name: str) -> None:
    """The index is out of range once run `a` has ended, and never before."""
    test = litmus("X[0]=7 ||| r0=X[0]; r1=X[r0]", shape=(3,), client="a:g0; b:g1 after a")
    prepared = TensorFlowExecutor().prepare(test, configuration("tf", name))
    try:
        seen = prepared.run(4, Noise(copies=2), 1)
    finally:
        prepared.close()
    assert {outcome.status for outcome in seen} == {Status.FAILED}
    (outcome,) = Explorer(test, EXECUTOR).allowed_outcomes().witnesses
    assert outcome.status is Status.FAILED


INDEXED = [path for path in LITMUS if path.stem.startswith("indexed-") and "slice" not in path.stem]

# TensorFlow updates row by row, so that these may end as no order allows: the causes
# scatter-beside-scatter and cluster-update-beside-scatter of docs/tensorflow-findings.md.
RACING_UPDATES = {"indexed-divide", "indexed-scatter-splits"}


def in_a_row(test: LitmusTest) -> LitmusTest:
    """The same with its two updates one after the other."""
    first, second = (node.name for node in test.graph.nodes if node.resources)
    nodes = (
        replace(node, after=(*node.after, first)) if node.name == second else node
        for node in test.graph.nodes
    )
    return replace(test, graphs=(Graph(test.graph.name, tuple(nodes)),))


@pytest.mark.parametrize("name", ["function", "eager_threads", "single_threaded", "autocluster"])
def test_computed_indices_in_every_front_end(name: str) -> None:
    """Those without loops and handles, which some of them refuse. Slices damage memory."""
    config = configuration("tf", name)
    for path in INDEXED:
        test = corpus_entry(path).test
        if test.features != {"computed indices"}:
            continue
        if test.name in RACING_UPDATES:
            test = in_a_row(test)
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            judged = judge(Explorer(test, RFC), prepared.run(24, Noise(copies=4), 3))
        finally:
            prepared.close()
        assert judged.forbidden_count == 0, (name, test.name)


def test_all_outcomes_of_computed_indices_can_be_forced() -> None:
    """All but those in which an update is split, or an op fails."""
    config = configuration("tf", "plain")
    reached = 0
    for path in INDEXED:
        test = corpus_entry(path).test
        found = Explorer(test, unsplit(EXECUTOR)).allowed_outcomes().witnesses
        prepared = TensorFlowExecutor().prepare(test, config)
        try:
            for outcome, witness in found.items():
                if outcome.status is Status.FAILED:
                    continue
                assert prepared.force(tuple(event_keys(witness)), 60) == outcome
                reached += 1
        finally:
            prepared.close()
    assert reached == 17


@pytest.mark.parametrize(
    "name", ["plain", "grappler_aggressive", "function", "functional", "eager_threads"]
)
def test_ops_with_several_results_in_every_front_end(name: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "several-results")).test
    prepared = TensorFlowExecutor().prepare(test, configuration("tf", name))
    try:
        judged = judge(Explorer(test, RFC), prepared.run(40, Noise(copies=4), 3))
    finally:
        prepared.close()
    assert judged.verdicts.keys() == {Verdict.ALLOWED}


def test_the_dtype_of_each_output_is_known() -> None:
    """A function for XLA takes the results of any op as arguments."""

    def node(op: str, **types: int) -> node_def_pb2.NodeDef:
        made = node_def_pb2.NodeDef(op=op)
        for name, value in types.items():
            made.attr[name].type = value
        return made

    floats, bools = types_pb2.DT_FLOAT, types_pb2.DT_BOOL
    assert type_of(node("Cast", SrcT=bools, DstT=floats)) is tf.float32
    assert type_of(node("IsNan", T=floats)) is tf.bool
    assert type_of(node("Shape", T=floats)) is tf.int32  # the default of its attribute
    assert type_of(node("Unique", T=floats), 0) is tf.float32
    assert type_of(node("Unique", T=floats, out_idx=types_pb2.DT_INT64), 1) is tf.int64
    assert type_of(node("Split", T=floats), 2) is tf.float32
    assert type_of(node("VarHandleOp", dtype=floats)) is tf.resource


def test_fused_pad_conv_still_convolves_the_first_image_again() -> None:
    """Why a test has one image: docs/tensorflow-findings.md. One alone is right."""
    images = tf.reshape(tf.range(18.0), [2, 3, 3, 1])
    window, paddings = tf.ones([2, 2, 1, 1]), [[0, 0], [1, 0], [0, 0], [0, 0]]
    right = tf.nn.conv2d(tf.pad(images, paddings, "REFLECT"), window, 1, "VALID").numpy()

    def fused(batch):
        return tf.raw_ops.FusedPadConv2D(
            input=batch,
            paddings=paddings,
            filter=window,
            mode="REFLECT",
            strides=[1, 1, 1, 1],
            padding="VALID",
        ).numpy()

    assert (fused(images[1:]) == right[1:]).all()
    assert (fused(images) == right[[0, 0]]).all()
    assert (right[0] != right[1]).any()
