"""Automatic differentiation: gradients equal TensorFlow's and JAX's bit for bit; training."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
    Variable,
)
from litmusfuzz.corpus.ops import (
    BOOL,
    FLOATS,
    OPS,
    ConstAttrs,
    MalformedTest,
    RowsAttrs,
    TensorType,
)
from litmusfuzz.corpus.ops import result_type as type_of_result
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.passes.autodiff import (
    RULES,
    NotDifferentiable,
    Step,
    gradients,
    with_training_step,
)
from litmusfuzz.oracles.explorer import allowed_outcomes
from litmusfuzz.oracles.model import EXECUTOR, RFC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Array = np.ndarray[Any, Any]

jax.config.update("jax_enable_x64", val=True)  # float64 is what it says

ELEMENTWISE = {
    **dict.fromkeys(("Identity", "Neg", "Relu"), 1),
    **dict.fromkeys(("AddV2", "Sub", "Mul", "Maximum", "Minimum", "ReluGrad", "Select"), 2),
}
DIFFERENTIABLE = {*ELEMENTWISE, "MatMul"}
GRAPHS = 48


def generated(seed: int) -> tuple[LitmusTest, str]:
    """A random straight graph over up to three variables, and its last value."""
    rng = random.Random(f"autodiff/{seed}")
    dtype = rng.choice(FLOATS)
    matrices = rng.random() < 0.4
    shapes = ((1, 2), (2, 2), (2, 1)) if matrices else (rng.choice(((), (3,), (2, 4))),)
    kinds: dict[str, TensorType] = {}
    nodes: list[Node] = []
    flows: set[str] = set()  # what a read leads to

    def literal(shape: tuple[int, ...]) -> Any:
        if not shape:
            return rng.choice((-2, -1, 0, 1, 2, 3))
        return tuple(literal(shape[1:] if matrices else ()) for _ in range(shape[0]))

    def add(op: str, *inputs: str, attrs: Any = None, resources: tuple[str, ...] = ()) -> str:
        name = f"n{len(nodes)}"
        nodes.append(Node(name, op, inputs, resources, attrs=attrs))
        if resources or flows.intersection(inputs):
            flows.add(name)
        if not resources:
            operands = tuple(kinds[each] for each in inputs)
            kind = type_of_result(OPS[op], attrs, operands, (), whole=matrices)
            assert kind
            kinds[name] = kind
        return name

    variables = []
    for name in "XYZ"[: rng.randint(1, 3)]:
        shape = rng.choice(shapes)
        variables.append(Variable(name, dtype, shape, literal(shape)))
        kinds[add("ReadVariableOp", resources=(name,))] = variables[-1].type
    if matrices:
        # One at least, else there would be lanes.
        known = kinds["n0"]
        add("Const", attrs=ConstAttrs(dtype, (known.shape[1], 2), literal((known.shape[1], 2))))
        add("MatMul", "n0", nodes[-1].name)
    while len(nodes) < 12 or kinds[nodes[-1].name].dtype == BOOL:
        numbers = [name for name, kind in kinds.items() if kind.dtype != BOOL]
        flowing = [name for name in numbers if name in flows]
        first = rng.choice(flowing[-3:] if rng.random() < 0.7 else flowing)
        kind = kinds[first]
        alike = [name for name in numbers if kinds[name] == kind]
        op = rng.choice((*ELEMENTWISE, *("MatMul",) * 3 * matrices))
        if op == "MatMul":
            right = [name for name in numbers if kinds[name].shape[:1] == kind.shape[1:]]
            right = [name for name in right if kinds[name].shape]
            if right and kind.shape:
                add(op, first, rng.choice(right))
            continue
        second = rng.choice(alike)
        if rng.random() < 0.4:
            shape = kind.shape if op == "ReluGrad" or rng.random() < 0.5 else ()
            second = add("Const", attrs=ConstAttrs(dtype, shape, literal(shape)))
        if op == "Select":
            flag = add(rng.choice(("Less", "Equal")), first, second)
            second = second if kinds[second] == kind else first
            add(op, flag, rng.choice(alike), second)
        elif ELEMENTWISE[op] == 1:
            add(op, first)
        else:
            # A constant scalar on either side; of ReluGrad there is none.
            inputs = [first, second]
            rng.shuffle(inputs)
            add(op, *inputs)
    graph = Graph("main", tuple(nodes))
    return LitmusTest("generated", tuple(variables), (graph,)), nodes[-1].name


def reads_of(test: LitmusTest) -> dict[str, Variable]:
    """Each read with what it reads."""
    named = {v.name: v for v in test.variables}
    return {n.name: named[n.resources[0]] for n in test.graph.nodes if n.resources}


def valued(test: LitmusTest) -> dict[str, Array]:
    """All values of a graph that only reads, by the reference arithmetic."""
    shown = tuple(n.name for n in test.graph.nodes)
    (outcome,) = allowed_outcomes(replace(test, observe=shown), RFC).witnesses
    values = {}
    for name in shown:
        kind = test.types[name]
        assert kind
        flat = np.array(outcome.plain[name]).reshape(-1)
        rows = flat.reshape(
            kind.shape if test.whole else kind.shape[:1] + (1,) * len(kind.shape[1:])
        )
        values[name] = np.broadcast_to(rows, kind.shape)
    return values


@cache
def with_gradients(seed: int) -> tuple[LitmusTest, str, dict[str, Array], dict[str, Array]]:
    """A generated graph, its last value, all values, and its gradients by the pass."""
    test, target = generated(seed)
    wrt = reads_of(test)
    added, found = gradients(test.graph.nodes, test.types, target, wrt, FreshNames(test.types).like)
    whole = replace(test, graphs=(Graph("main", (*test.graph.nodes, *added)),))
    values = valued(whole)
    for name, gradient in found.items():
        assert whole.types[gradient] == whole.types[name]
    return test, target, values, {name: values[gradient] for name, gradient in found.items()}


def evaluated(
    test: LitmusTest,
    leaves: Mapping[str, Any],
    op: Callable[..., Any],
    constant: Callable[..., Any],
) -> dict[str, Any]:
    """All values of a graph, by the ops of another framework."""
    values = dict(leaves)
    for node in test.graph.nodes:
        if isinstance(node.attrs, ConstAttrs):
            kind = test.types[node.name]
            assert kind
            values[node.name] = constant(numbers(test, node), kind.dtype)
        elif not node.resources:
            values[node.name] = op(node, [values[name] for name in node.inputs])
    return values


def numbers(test: LitmusTest, of: Node | Variable) -> Array:
    """A constant's or a variable's first elements."""
    flat = np.array(test.constant(of) if isinstance(of, Node) else test.initial(of))
    shape = of.shape if isinstance(of, Variable) else test.types[of.name].shape  # type: ignore[union-attr]
    rows = flat.reshape(shape if test.whole else shape[:1] + (1,) * len(shape[1:]))
    return np.broadcast_to(rows, shape)


def by_tensorflow(test: LitmusTest, target: str) -> dict[str, Array | None]:
    """The gradients that `tf.gradients` adds; None where it finds no path."""

    def op(node: Node, inputs: list[Any]) -> Any:
        roles = {
            "Identity": ("input",),
            "Relu": ("features",),
            "Select": ("condition", "x", "y"),
        }
        names = roles.get(node.op, node.definition.operands)
        return getattr(tf.raw_ops, node.op)(**dict(zip(names, inputs, strict=True)))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        leaves = {
            name: tf.compat.v1.placeholder_with_default(numbers(test, v).astype(v.dtype), v.shape)
            for name, v in reads_of(test).items()
        }
        values = evaluated(test, leaves, op, lambda value, dtype: tf.constant(value, dtype))
        found = tf.gradients(values[target], list(leaves.values()))
        shown = session.run([each for each in found if each is not None])
    rest = iter(shown)
    return {
        name: None if each is None else next(rest) for name, each in zip(leaves, found, strict=True)
    }


_JAX: dict[str, Callable[..., Any]] = {
    "Identity": lambda x: x,
    "Neg": jnp.negative,
    "Relu": jax.nn.relu,
    "AddV2": jnp.add,
    "Sub": jnp.subtract,
    "Mul": jnp.multiply,
    "Maximum": jnp.maximum,
    "Minimum": jnp.minimum,
    "Less": jnp.less,
    "Equal": jnp.equal,
    "Select": jnp.where,
    "ReluGrad": lambda gradient, features: jnp.where(features > 0, gradient, 0),
    "MatMul": jnp.matmul,
}


def by_jax(test: LitmusTest, target: str) -> dict[str, Array]:
    """The gradients that `jax.grad` gives of the elements' sum."""
    leaves = {
        name: jnp.asarray(numbers(test, v).astype(v.dtype)) for name, v in reads_of(test).items()
    }

    def total(leaves: dict[str, Any]) -> Any:
        def op(node: Node, inputs: list[Any]) -> Any:
            return _JAX[node.op](*inputs)

        values = evaluated(test, leaves, op, jnp.asarray)
        return values[target].sum()

    return {name: np.asarray(each) for name, each in jax.grad(total)(leaves).items()}


def has_ties(test: LitmusTest, values: Mapping[str, Array]) -> bool:
    """Whether some Maximum or Minimum has two operands that are equal somewhere."""
    pairs = [n.inputs for n in test.graph.nodes if n.op in ("Maximum", "Minimum")]
    return any(bool((values[x] == values[y]).any()) for x, y in pairs)


# --- beside TensorFlow and JAX -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_gradients_are_tensorflows_bit_for_bit(seed: int) -> None:
    """Ties included."""
    test, target, _, ours = with_gradients(seed)
    for name, theirs in by_tensorflow(test, target).items():
        if theirs is None:
            assert name not in ours
        elif name not in ours:
            assert not theirs.any()
        else:
            assert np.array_equal(theirs, ours[name].astype(theirs.dtype)), name


@pytest.mark.parametrize("first", range(5))
def test_gradients_are_jaxs_bit_for_bit_but_at_ties(first: int) -> None:
    compared = 0
    for seed in range(first, GRAPHS, 5):
        test, target, values, ours = with_gradients(seed)
        if has_ties(test, values):
            continue
        for name, theirs in by_jax(test, target).items():
            if name in ours:
                assert np.array_equal(theirs, ours[name].astype(theirs.dtype)), (seed, name)
            else:
                assert not theirs.any(), (seed, name)
        compared += 1
    assert compared >= GRAPHS / 5 / 4


def test_the_graphs_have_every_op_ties_and_gradients() -> None:
    ops: set[str] = set()
    ties = nonzero = 0
    for seed in range(GRAPHS):
        test, _, values, ours = with_gradients(seed)
        ops |= {node.op for node in test.graph.nodes}
        ties += has_ties(test, values)
        nonzero += any(each.any() for each in ours.values())
    assert ops >= DIFFERENTIABLE
    assert GRAPHS / 20 <= ties <= GRAPHS / 2
    assert nonzero >= GRAPHS / 2


# --- what is refused, and what has no gradient -------------------------------------------


def found_in(test: LitmusTest, target: str) -> dict[str, str]:
    """Names of the gradients by all reads."""
    nodes = test.graph.nodes
    wrt = [node.name for node in nodes if node.resources]
    return gradients(nodes, test.types, target, wrt, FreshNames(test.types).like)[1]


def const(name: str, value: int, dtype: str = "float32", shape: tuple[int, ...] = ()) -> Node:
    return Node(name, "Const", attrs=ConstAttrs(dtype, shape, value))


def straight(*nodes: Node, shape: tuple[int, ...] = (), init: Any = 0) -> LitmusTest:
    """A graph that reads X as r first."""
    read = Node("r", "ReadVariableOp", resources=("X",))
    x = Variable("X", "float32", shape, init)
    return LitmusTest("test", (x,), (Graph("main", (read, *nodes)),))


def test_a_scalar_that_is_broadcast_is_refused_by_name() -> None:
    test = straight(const("c", 1, shape=(2,)), Node("t", "Mul", ("c", "r")))
    with pytest.raises(NotDifferentiable, match=r"t \(Mul\), r: the gradient of a scalar that is"):
        found_in(test, "t")
    # Not, where only the other operand's gradient is wanted.
    test = straight(const("c", 3), Node("t", "Mul", ("r", "c")), shape=(2,))
    assert found_in(test, "t").keys() == {"r"}


def test_a_product_with_ones_broadcasts_and_its_gradient_is_the_sum() -> None:
    """A row, 2 and 5, for each of two examples: errors 2-1, 5-1 and 2-3, 5-3."""
    nodes = (
        Node("ones", "Const", attrs=ConstAttrs("float32", (2, 1), 1)),
        Node("y", "Const", attrs=ConstAttrs("float32", (2, 2), ((1, 1), (3, 3)))),
        Node("z", "MatMul", ("ones", "r")),
        Node("error", "Sub", ("z", "y")),
        Node("e", "Mul", ("error", "error")),
    )
    test = straight(*nodes, shape=(1, 2), init=((2, 5),))
    (outcome,) = allowed_outcomes(with_training_step(test, "e"), RFC).witnesses
    assert outcome.plain == {"X": [2 - 2 * (1 - 1), 5 - 2 * (4 + 2)]}


def test_a_gradient_through_a_loop_is_refused_by_name() -> None:
    body = (const("one", 1, "int32"), Node("up", "AddV2", ("i", "one")))
    condition = (const("limit", 2, "int32"), Node("more", "Less", ("i", "limit")))
    loop = Node(
        "loop",
        "While",
        ("zero", "r"),
        attrs=LoopAttrs(("i", "v"), (), Body(condition, ("more",)), Body(body, ("up", "v"))),
    )
    test = straight(const("zero", 0, "int32"), loop, Node("t", "Neg", ("loop.v",)))
    with pytest.raises(NotDifferentiable, match=r"loop \(While\): no gradient passes through it"):
        found_in(test, "t")
    # What does not go through it is none of its business.
    test = straight(const("zero", 0, "int32"), loop, Node("t", "Neg", ("r",)))
    assert found_in(test, "t").keys() == {"r"}


def test_a_gradient_through_a_conditional_is_refused_by_name() -> None:
    branch = BranchAttrs((("a", "r"),), Body((), ("a",)), Body((), ("a",)), ("out",))
    flag = const("flag", 1, BOOL)
    test = straight(
        flag, Node("pick", "If", ("flag",), attrs=branch), Node("t", "Neg", ("pick.out",))
    )
    with pytest.raises(NotDifferentiable, match=r"pick \(If\): no gradient passes through it"):
        found_in(test, "t")


def test_a_gradient_through_a_transfer_is_refused_by_name() -> None:
    sent = Node("s", "Send", ("r",), device="cpu:0")
    test = straight(sent, Node("q", "Recv", ("s",), device="cpu:1"), Node("t", "Neg", ("q",)))
    with pytest.raises(NotDifferentiable, match=r"q \(Recv\): no gradient passes through it"):
        found_in(test, "t")


def test_conditions_and_features_pass_no_gradient() -> None:
    test = straight(
        const("c", 1),
        Node("less", "Less", ("r", "c")),
        Node("t", "Select", ("less", "c", "c")),
        Node("u", "ReluGrad", ("c", "r")),
    )
    assert found_in(test, "t") == found_in(test, "u") == {}
    with pytest.raises(NotDifferentiable, match="less is no number"):
        found_in(test, "less")


def test_a_missing_loss_and_an_unknown_step_are_refused() -> None:
    test = straight(Node("t", "Neg", ("r",)))
    with pytest.raises(NotDifferentiable, match="no node 'loss'"):
        with_training_step(test, "loss")
    with pytest.raises(ValueError, match="op must be one of AssignSub"):
        Step("ResourceScatterMul")


# --- steps -------------------------------------------------------------------------------


def neuron(dtype: str = "float32") -> LitmusTest:
    """DEVICES' neuron, z = relu(w*x + b), e = (z - y)^2; x = 2, y = 4, w = b = 1."""
    nodes = (
        *(const("x", 2, dtype), const("y", 4, dtype)),
        Node("wr", "ReadVariableOp", resources=("w",)),
        Node("br", "ReadVariableOp", resources=("b",)),
        Node("wx", "Mul", ("wr", "x")),
        Node("l", "AddV2", ("wx", "br")),
        Node("z", "Relu", ("l",)),
        Node("error", "Sub", ("z", "y")),
        Node("e", "Mul", ("error", "error")),
    )
    variables = (Variable("w", dtype, (), 1), Variable("b", dtype, (), 1))
    return LitmusTest("neuron", variables, (Graph("main", nodes),), ("z",))


@pytest.mark.parametrize("rate", [1, 2])
@pytest.mark.parametrize("op", RULES)
def test_the_neuron_of_devices_takes_a_step(op: str, rate: int) -> None:
    """l = 3, de/dz = 2(z-y) = -2, de/db = -2, de/dw = -4; all by data: one outcome."""
    test = with_training_step(neuron(), "e", Step(op, rate))
    (outcome,) = allowed_outcomes(test, RFC).witnesses
    assert outcome.plain == {"z": 3, "w": 1 + 4 * rate, "b": 1 + 2 * rate}
    assert [n.op for n in test.graph.nodes if n.definition.kind.writes] == [op, op]


def test_a_step_of_an_unsupported_dtype_is_refused() -> None:
    with pytest.raises(MalformedTest, match="takes float32 or float64"):
        with_training_step(neuron("int32"), "e", Step("ResourceApplyGradientDescent"))


def test_two_reads_of_a_variable_give_one_update() -> None:
    """w = 3 read twice, e = w*w: de/dw = 3 + 3."""
    again = Node("s", "ReadVariableOp", resources=("X",))
    test = with_training_step(straight(again, Node("e", "Mul", ("r", "s")), init=3), "e")
    (outcome,) = allowed_outcomes(test, RFC).witnesses
    assert outcome.plain == {"X": -3}


@pytest.mark.parametrize("nd", [False, True])
def test_a_gather_is_updated_by_a_scatter(nd: bool) -> None:  # noqa: FBT001
    """Rows 1, 0, 1 of [5, 7], squared: each is changed by 2 of itself, once for each time."""
    name = "ResourceGatherNd" if nd else "ResourceGather"
    nodes = (
        Node("g", name, resources=("X",), attrs=RowsAttrs((1, 0, 1))),
        Node("e", "Mul", ("g", "g")),
    )
    test = LitmusTest("t", (Variable("X", "int32", (2,), (5, 7)),), (Graph("main", nodes),))
    for op, how in (("AssignSubVariableOp", "Sub"), ("AssignAddVariableOp", "Add")):
        whole = with_training_step(test, "e", Step(op))
        (outcome,) = allowed_outcomes(whole, RFC).witnesses
        assert outcome.plain == {"X": [-5, -21]}
        (update,) = (n for n in whole.graph.nodes if n.definition.kind.writes)
        assert update.op == name.replace("Gather", "Scatter") + how


def looped(steps: int) -> LitmusTest:
    """e = (w - 5)^2 in a loop that shows the last w that was read."""
    condition = (const("limit", steps, "int32"), Node("more", "Less", ("i", "limit")))
    body = (
        const("one", 1, "int32"),
        Node("next", "AddV2", ("i", "one")),
        const("y", 5),
        Node("read", "ReadVariableOp", resources=("w",)),
        Node("error", "Sub", ("read", "y")),
        Node("e", "Mul", ("error", "error")),
    )
    attrs = LoopAttrs(("i", "last"), (), Body(condition, ("more",)), Body(body, ("next", "read")))
    nodes = (
        const("zero", 0, "int32"),
        const("none", 0),
        Node("loop", "While", ("zero", "none"), attrs=attrs),
    )
    return LitmusTest(
        "loop", (Variable("w", "float32", (), 7),), (Graph("main", nodes),), ("loop.last",)
    )


def test_a_control_edge_to_the_next_read_orders_the_iterations_of_training() -> None:
    """w goes from 7 to 7-4 = 3 and to 3+4 = 7; unordered, both may see 7: -1 or, of one lost, 3."""
    (outcome,) = allowed_outcomes(with_training_step(looped(2), "e"), RFC).witnesses
    assert outcome.plain == {"loop.last": 3, "w": 7}
    racing = with_training_step(looped(2), "e", ordered=False)
    shown = {(o.plain["loop.last"], o.plain["w"]) for o in allowed_outcomes(racing, RFC).witnesses}
    # The second may read first, and be done first: then the last read sees 7, the first 3.
    assert shown == {(3, 7), (7, 7), (7, -1), (7, 3)}
    shown = {
        (o.plain["loop.last"], o.plain["w"]) for o in allowed_outcomes(racing, EXECUTOR).witnesses
    }
    assert shown == {(3, 7), (7, 7), (7, -1)}


def test_a_step_inside_a_branch_stays_there() -> None:
    inner = (
        Node("read", "ReadVariableOp", resources=("X",)),
        Node("e", "Mul", ("read", "read")),
    )
    branch = BranchAttrs((), Body(inner, ("e",)), Body((const("no", 0),), ("no",)), ("out",))
    for flag, left in ((1, -3), (0, 3)):
        pick = Node("pick", "If", ("flag",), attrs=branch)
        test = straight(const("flag", flag, BOOL), pick, init=3)
        (outcome,) = allowed_outcomes(with_training_step(test, "e"), RFC).witnesses
        assert outcome.plain == {"X": left}


def test_names_in_use_are_not_reused() -> None:
    test = straight(Node("d_r", "Neg", ("r",)), Node("d_r_2", "Mul", ("d_r", "r")))
    names = [node.name for node in with_training_step(test, "d_r_2").graph.nodes]
    assert len(set(names)) == len(names)
