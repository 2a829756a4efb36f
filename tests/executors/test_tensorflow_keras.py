"""Keras's optimizers as training steps: what is recognized, and that Keras itself takes them."""

from __future__ import annotations

from itertools import pairwise

import keras
import pytest
import tensorflow as tf
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import CallAttrs, Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.optimizers import ITERATIONS, Step, call, recognized, steps_of
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.keras_steps import optimizer_of
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

STEPS = (
    Step("SGD", "X", 2),
    Step("SGD", "X", 2, clip=1, iterations="I"),
    Step("SGD", "X", rate="L", iterations="I"),
    Step("SGD", "X", 3, 1, slot="M"),
    Step("SGD", "X", 2, 1, nesterov=True, slot="M", rate="", iterations="I"),
    Step("SGD", "X", 2, iterations="I", average="A", average_momentum=0),
    Step("SGD", "X", 2, 1, slot="M", iterations="I", average="A", average_momentum=1),
    Step("Lion", "X", 2, 0, slot="M"),
    Step("Lion", "X", 2, 1, slot="M", rate="L", clip=2),
)
STEPS = tuple(replace(step, learning_rate=1) if step.rate else step for step in STEPS)
CORPUS = [
    path.stem for path in LITMUS if path.stem.startswith("keras-") and "against" not in path.stem
]


def training(
    step: Step, *gradients: int, shape: tuple[int, ...] = (), dtype: str = "float32"
) -> LitmusTest:
    """Steps one after the other, each after the one before."""
    variables = [Variable("X", dtype, shape, 3)]
    variables += [Variable(n, dtype, shape, 2) for n in (step.slot, step.average) if n]
    variables += [Variable(step.rate, dtype, (), 2)] if step.rate else []
    variables += [Variable(step.iterations, ITERATIONS, (), 0)] if step.iterations else []
    nodes: list[Node] = []
    for place, gradient in enumerate(gradients):
        constant = ConstAttrs(dtype, shape, gradient)
        nodes.append(Node(f"g{place}", "Const", attrs=constant))
        made = call(step, f"s{place}", f"g{place}", dtype, shape)
        nodes.append(replace(made, after=(f"s{place - 1}",) if place else ()))
    return LitmusTest("training", tuple(variables), (Graph("main", tuple(nodes)),))


@pytest.mark.parametrize("config", ["keras", "keras_compiled"])
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_what_keras_computes_is_what_the_step_says(step: Step, config: str) -> None:
    """Three steps in a row have one outcome, which no part of Keras had a hand in."""
    for shape, dtype in (((), "float32"), ((2,), "float64")):
        test = training(step, 1, -4, 2, shape=shape, dtype=dtype)
        assert set(steps_of(test).values()) == {step}
        seen = TensorFlowExecutor().prepare(test, configuration("tf", config)).run(4, Noise(), 1)
        assert set(seen) == {sequential.outcome(test)}


def test_a_step_has_the_ops_of_keras_and_its_edges() -> None:
    """In the graph that Keras makes: the same accesses, in the same order where there is one.

    What Keras reads and assigns cannot be taken for an update, which would be one operation.
    """
    for step in STEPS:
        test = training(step, 1)
        ((_, node),) = [(n.name, n) for n in test.nodes if n.op == "Call"]
        assert isinstance(node.attrs, CallAttrs)
        ours = [(n.name, n.op, n.resources, n.after) for n in node.attrs.body.nodes if n.resources]
        optimizer = optimizer_of(step)
        trained = keras.Variable(3.0)
        optimizer.build([trained])

        apply = tf.function(lambda gradient: optimizer.apply([gradient], [trained]))  # noqa: B023
        graph = apply.get_concrete_function(tf.constant(1.0)).graph
        names = {id(trained.value.handle): step.variable}
        roles = [(step.rate, optimizer._learning_rate), (step.iterations, optimizer._iterations)]
        if step.slot:
            slots = "_momentums" if step.kind == "Lion" else "momentums"
            roles.append((step.slot, getattr(optimizer, slots)[0]))
        if step.average:
            roles.append((step.average, optimizer._model_variables_moving_average[0]))
        names |= {id(variable.value.handle): name for name, variable in roles}
        inner = {id(inside): names[id(outer)] for outer, inside in graph.captures}
        theirs = [
            (op.name, op.type, (name,), tuple(each.name for each in op.control_inputs))
            for op in graph.get_operations()
            if op.inputs and (name := inner.get(id(op.inputs[0])))
        ]
        assert _accesses(ours) == _accesses(theirs), step


def _accesses(ops: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]) -> list[object]:
    """The accesses of each variable in their order, each with those that come before it."""
    place: dict[str, tuple[str, int]] = {}
    found = []
    for name, op, (variable,), after in ops:
        place[name] = (variable, sum(each == variable for each, _ in place.values()))
        found.append((*place[name], op, sorted(place[each] for each in after if each in place)))
    return sorted(found)


@pytest.mark.parametrize("config", ["keras", "keras_compiled"])
@pytest.mark.parametrize("stem", CORPUS)
def test_steps_beside_steps_and_evaluation_keep_the_guarantee(stem: str, config: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
    made = configuration("tf", config)
    seen = TensorFlowExecutor().prepare(test, made).run(48, Noise(), 1)
    oracle = Explorer(test, GUARANTEES[made.guarantees])
    assert judge(oracle, seen).verdicts.keys() == {Verdict.ALLOWED}, seen


def test_keras_itself_takes_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer that adds the gradient, where it has to subtract it, is found."""

    def update_step(self, gradient, variable, learning_rate):
        self.assign_add(variable, gradient * learning_rate)

    monkeypatch.setattr(keras.optimizers.SGD, "update_step", update_step)
    test = training(Step("SGD", "X", 2), 1)
    seen = TensorFlowExecutor().prepare(test, configuration("tf", "keras")).run(2, Noise(), 1)
    assert [dict(outcome.values)["X"] for outcome in seen] == [(5,)]
    oracle = Explorer(test, GUARANTEES["acd"])
    assert judge(oracle, seen).verdicts.keys() == {Verdict.FORBIDDEN}


def test_what_is_no_step_is_not_taken_for_one() -> None:
    """Each with one thing changed; control edges between ops on one variable may be left out."""
    good = training(Step("SGD", "X", 3, 1, slot="M"), 1)
    ((_, node),) = [(n.name, n) for n in good.graph.nodes if n.op == "Call"]
    assert isinstance(node.attrs, CallAttrs)
    nodes = node.attrs.body.nodes

    def changed(*inner: Node) -> LitmusTest:
        body = replace(node.attrs.body, nodes=inner)
        made = replace(node, attrs=replace(node.attrs, body=body))
        others = [each for each in good.graph.nodes if each.name != node.name]
        return replace(good, graphs=(Graph("main", (*others, made)),))

    assert steps_of(changed(*nodes))
    bare = (replace(n, after=()) if n.op == "AssignVariableOp" else n for n in nodes)
    assert steps_of(changed(*bare))
    half = (replace(n, attrs=ConstAttrs("float32", (), 2)) if n.attrs else n for n in nodes)
    assert not steps_of(changed(*half))  # a momentum of 2
    for old, new in (("Sub", "AddV2"), ("AssignAddVariableOp", "AssignSubVariableOp")):
        assert not steps_of(changed(*(replace(n, op=new) if n.op == old else n for n in nodes)))
    edges = list(nodes)
    edges[-1] = replace(edges[-1], after=(edges[0].name,))
    assert not steps_of(changed(*edges))  # Keras has no such edge


def test_two_reads_are_not_one() -> None:
    """Of Lion, which reads its momentum twice, in no order."""
    step = Step("Lion", "X", 2, 1, slot="M")
    test = training(step, 1)
    ((_, node),) = [(n.name, n) for n in test.graph.nodes if n.op == "Call"]
    assert isinstance(node.attrs, CallAttrs)
    nodes = node.attrs.body.nodes
    first, second = (n.name for n in nodes if n.op == "ReadVariableOp")
    one = (replace(n, inputs=tuple(first if i == second else i for i in n.inputs)) for n in nodes)
    ordered = (replace(n, after=(first,)) if n.name == second else n for n in nodes)
    for changed, found in ((nodes, step), (one, None), (ordered, None)):
        body = replace(node.attrs.body, nodes=tuple(changed))
        made = replace(node, attrs=replace(node.attrs, body=body))
        assert recognized(test, made) == found


def test_what_has_no_step_or_two_owners_of_a_slot_is_refused() -> None:
    keras_config = configuration("tf", "keras")
    with pytest.raises(Refused, match=r"^no step of a Keras optimizer$"):
        TensorFlowExecutor().prepare(litmus("X=1; r0=X", dtype="float32"), keras_config)
    test = training(Step("SGD", "X", 3, 1, slot="M"), 1)
    other = call(Step("SGD", "X", 2, 1, slot="M"), "other", "g0", "float32", ())
    graph = Graph("main", (*test.graph.nodes, other))
    with pytest.raises(Refused, match=r"^two roles of M in steps of Keras optimizers$"):
        TensorFlowExecutor().prepare(replace(test, graphs=(graph,)), keras_config)


def test_the_family_makes_steps_that_race() -> None:
    """Each test has steps, all recognized; among 60 there is each kind of optimizer."""
    tests = [generate("keras", 3, index) for index in range(60)]
    found = [steps_of(test) for test in tests]
    for test, steps in zip(tests, found, strict=True):
        assert len(steps) == sum(node.op == "Call" for node in test.nodes) > 0
    steps = {step for each in found for step in each.values()}
    assert {step.kind for step in steps} == {"SGD", "Lion"}
    for name in ("momentum", "nesterov", "clip", "rate", "iterations", "average"):
        assert {bool(getattr(step, name)) for step in steps} == {False, True}, name
    assert any(a.name != b.name for test in tests for a, b in pairwise(test.graphs))
