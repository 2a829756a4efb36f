"""Each pure op against TensorFlow's own kernel, exactly: the only guard of these ops.

Eagerly, operands stay. In a graph, a kernel may take the buffer of an operand that nothing else
needs for its result: there, each operand has such a buffer.

The same for ops on variables whose indices are operands: a variable gets its value, the op is
run, and its result, or else the variable, is compared.

Operands are random, over all dtypes that an op takes and several shapes. In one call of three
a number in one operand is changed, so that the op may fail: TensorFlow must then fail too, and
only then. `make test` has 60 calls of each op: it misses an op that is wrong for one call in
ten with (9/10)**60 < 0.2 %. The nightly run has 4,000, and misses one that is wrong for one in
400 with less than 0.005 %.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers import WHOLE

from litmusfuzz.corpus.ops import COMPUTED
from litmusfuzz.corpus.pure import RESOURCE_ROWS
from litmusfuzz.corpus.pure.definition import (
    Call,
    Fails,
    Inexact,
    PureAttrs,
    PureOp,
    call_of,
    computed,
    inferred,
)
from litmusfuzz.corpus.tensors import BOOL, MalformedTest, TensorType
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators.sampling import PURE_OPS, Sample, sample
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    import numpy.typing as npt

DIVIDED = """\
litmusfuzz: 2
name: divided
variables:
  X: {dtype: float32, shape: [1], init: 6}
graphs:
  main:
    i: {op: Const, dtype: int32, shape: [1], value: [0]}
    c: {op: Const, dtype: float32, shape: [1], value: [3]}
    w: {op: ResourceScatterDiv, resources: [X], inputs: [i, c]}
"""
CALLS = 4000 if os.environ.get(WHOLE) else 60
_Operands = list[tuple[str, TensorType, "npt.NDArray[np.int64]"]]


def operands_of(sampled: Sample) -> _Operands:
    return [
        (each.role, each.type, np.array(each.values, np.int64).reshape(each.type.shape))
        for each in sampled.operands
    ]


def changed(rng: random.Random, operands: _Operands) -> tuple[str, _Operands]:
    """The operands with another number in one of them, and which one."""
    place = rng.randrange(len(operands))
    role, kind, array = operands[place]
    if not array.size:
        return role, operands
    array = array.copy()
    other = (0, 1) if kind.stacked.dtype == BOOL else (-100, -2, -1, 0, 1, 2, 3, 7, 100)
    array.ravel()[rng.randrange(array.size)] = rng.choice(other)
    return role, [*operands[:place], (role, kind, array), *operands[place + 1 :]]


def eager(op: PureOp, attrs: PureAttrs | None, operands: _Operands) -> npt.NDArray[Any]:
    """The result of TensorFlow's kernel, with the attributes that the executor `tf` writes."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    from tensorflow.python.framework import op_def_registry

    from litmusfuzz.fuzz.executors.tensorflow.node_defs import registered

    written = registered(
        op.name,
        {role: kind.dtype for role, kind, _ in operands},
        [role for role, _, _ in operands],
        attrs,
    )
    flat: list[object] = []
    for each in op_def_registry.get(op.name).attr:
        value = written.attr[each.name]
        flat += [
            each.name,
            {
                "type": value.type,
                "int": value.i,
                "bool": value.b,
                "float": value.f,
                "string": value.s,
                "shape": tf.TensorShape(value.shape),
                "list(int)": list(value.list.i),
                "list(float)": list(value.list.f),
            }[each.type],
        ]
    inputs = [given(kind, tf.constant(values(kind, array))) for _, kind, array in operands]
    running = context.context()
    running.ensure_initialized()
    if op.name in COMPUTED:
        return on_variable(op, inputs, tuple(flat), running)
    number, count = op.outputs(attrs, len(operands))
    results = execute.quick_execute(op.name, count, inputs, tuple(flat), running)
    found: npt.NDArray[Any] = as_tensor(results[number], operands, written).numpy()
    return found


def in_graph(op: PureOp, calls: list[tuple[PureAttrs | None, _Operands]]) -> list[Any]:
    """The results of calls in one graph, in which each operand has a buffer that is free then."""
    import tensorflow as tf
    from tensorflow.core.framework.graph_pb2 import GraphDef

    from litmusfuzz.fuzz.executors.tensorflow.node_defs import registered

    results = []
    with tf.Graph().as_default() as graph:
        for attrs, operands in calls:
            roles = [role for role, _, _ in operands]
            dtypes = {role: kind.dtype for role, kind, _ in operands}
            node = registered(op.name, dtypes, roles, attrs)
            node.name = "call"
            node.input[:] = [f"operand{place}" for place in range(len(operands))]
            inputs = {
                f"{name}:0": given(kind, tf.raw_ops.DeepCopy(x=values(kind, array)))
                for name, (_, kind, array) in zip(node.input, operands, strict=True)
            }
            number, _ = op.outputs(attrs, len(operands))
            (result,) = tf.import_graph_def(GraphDef(node=[node]), inputs, [f"call:{number}"])
            results.append(as_tensor(result, operands, node))
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1  # which computes with constants, too
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        return session.run(results)


def values(kind: TensorType, array: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The numbers of an operand, of its dtype."""
    return array.astype(kind.stacked.dtype)


def given(kind: TensorType, tensor: Any) -> Any:
    """An operand: a tensor, or the list of its rows."""
    import tensorflow as tf

    if not kind.is_list:
        return tensor
    shape = tf.constant(tensor.shape[1:].as_list(), tf.int32)
    return tf.raw_ops.TensorListFromTensor(tensor=tensor, element_shape=shape)


def as_tensor(result: Any, operands: _Operands, written: Any) -> Any:
    """A result as a tensor, of a list too."""
    import tensorflow as tf

    if result.dtype != tf.variant:
        return result
    lists = [kind.stacked.dtype for _, kind, _ in operands if kind.is_list]
    return stacked(result, lists[0] if lists else written.attr["element_dtype"].type)


def stacked(result: Any, dtype: str) -> Any:
    """A list of tensors of that dtype as one tensor."""
    import tensorflow as tf

    shape = tf.raw_ops.TensorListElementShape(input_handle=result, shape_type=tf.int32)
    return tf.raw_ops.TensorListStack(
        input_handle=result, element_shape=shape, element_dtype=dtype, num_elements=-1
    )


def on_variable(op: PureOp, inputs: list[Any], attrs: tuple[Any, ...], running: Any) -> Any:
    """The result of an op on a variable, or what it leaves in it."""
    import tensorflow as tf
    from tensorflow.python.eager import execute

    variable = tf.Variable(inputs[0])
    outputs = int(COMPUTED[op.name].has_value)
    given = [variable.handle, *inputs[1:]]
    returned = execute.quick_execute(op.name, outputs, given, attrs, running)
    return returned[0].numpy() if outputs else variable.numpy()


@pytest.mark.parametrize("op", [*PURE_OPS, *RESOURCE_ROWS], ids=lambda op: op.name)
def test_op_against_the_kernel(op: PureOp) -> None:
    import tensorflow as tf

    rng = random.Random(op.name)
    seen: Counter[str] = Counter()
    dtypes: set[str] = set()
    role = ""
    for number in range(CALLS):
        sampled = sample(rng, op)
        assert sampled is not None
        operands = operands_of(sampled)
        if number % 3 == 2:
            role, operands = changed(rng, operands)
        types = tuple(kind for _, kind, _ in operands)
        arrays = [array for _, _, array in operands]
        case = (op.name, sampled.attrs, [(role, a.tolist(), k.dtype) for role, k, a in operands])
        try:
            mine = computed(Call(op, sampled.attrs, types), arrays)
        except Inexact:
            assert number % 3 == 2, case  # a sample is a call that has a value
            seen["inexact"] += 1
            continue
        except Fails:
            assert number % 3 == 2, case
            assert role in op.fails_by, (role, case)
            seen["fails"] += 1
            failed = False
            try:
                eager(op, sampled.attrs, operands)
            except (tf.errors.OpError, ValueError):
                failed = True
            assert failed, case
            continue
        theirs = eager(op, sampled.attrs, operands)
        seen["values"] += 1
        dtypes.add(theirs.dtype.name)
        assert mine.shape == theirs.shape, case
        assert (mine == theirs).all(), (case, mine.tolist(), theirs.tolist())  # -0.0 == 0.0
        check_types(op, sampled.attrs, types, arrays, theirs)
    assert seen["values"] >= CALLS // 2, seen
    results = [kind.strip("[]") for _, kind in op.results] or [op.result.strip("[]")]
    wanted = {each for kind in results for each in op.permitted(kind.partition("=")[2] or kind)}
    assert dtypes == wanted, dtypes


CLEARS_ITS_GRADIENT = {"MaxPoolGradGrad", "MaxPoolGradGradV2"}
"""What has the shape of the gradient is zero: docs/tensorflow-findings.md."""


@pytest.mark.parametrize("op", PURE_OPS, ids=lambda op: op.name)
def test_op_against_the_kernel_where_it_may_reuse_its_operands(op: PureOp) -> None:
    rng = random.Random(op.name)
    calls, expected = [], []
    while len(calls) < CALLS // 4:
        sampled = sample(rng, op)
        assert sampled is not None
        operands = operands_of(sampled)
        types = tuple(kind for _, kind, _ in operands)
        try:
            mine = computed(Call(op, sampled.attrs, types), [array for _, _, array in operands])
        except Inexact:  # one product in some hundred is too large
            continue
        calls.append((sampled.attrs, operands))
        expected.append(mine)
    wrong = 0
    for (attrs, operands), mine, theirs in zip(calls, expected, in_graph(op, calls), strict=True):
        case = (op.name, attrs, [(role, a.tolist(), k.dtype) for role, k, a in operands])
        assert mine.shape == theirs.shape, case
        if op.name in CLEARS_ITS_GRADIENT and mine.shape == operands[2][2].shape:
            assert not theirs.any(), case
            wrong += bool(mine.any())
        else:
            assert (mine == theirs).all(), (case, mine.tolist(), theirs.tolist())
    assert bool(wrong) is (op.name in CLEARS_ITS_GRADIENT)


def result_of(op: PureOp, attrs: PureAttrs | None) -> str:
    """The dtype of a result as the signature has it."""
    return dict(op.results)[attrs["result"]] if op.results and attrs else op.result


def check_types(
    op: PureOp,
    attrs: PureAttrs | None,
    types: tuple[TensorType, ...],
    arrays: list[npt.NDArray[np.int64]],
    theirs: npt.NDArray[Any],
) -> None:
    """The inferred type is the result's, however much of the operands is known."""
    values = [tuple(map(int, array.ravel())) for array in arrays]
    exact = TensorType(theirs.dtype.name, theirs.shape)
    if result_of(op, attrs).startswith("["):
        exact = exact.listed
    if 0 not in theirs.shape:
        assert inferred(op, attrs, types, values) == exact
    unknown: list[None] = [None] * len(values)
    dynamic = tuple(TensorType(k.dtype, (-1,) * len(k.shape)) for k in types)
    for kinds, held in ((types, values), (dynamic, [shape_and(a) for a in arrays])):
        try:
            kind = inferred(op, attrs, kinds, unknown)
        except MalformedTest:
            continue  # the op takes static shapes only, or constants
        assert kind.dtype == exact.dtype
        assert kind.shape in (exact.shape, (-1,) * len(exact.shape)), (op.name, kind, exact)
        # A value of unknown shape begins with its dimensions.
        given = tuple(
            value if k.dynamic else flat for value, flat, k in zip(held, values, kinds, strict=True)
        )
        result = call_of(op, attrs, kinds, kind).evaluate(given)
        wanted = tuple(map(int, theirs.ravel()))
        assert result == ((*exact.shape, *wanted) if kind.dynamic else wanted)


def shape_and(array: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return (*array.shape, *map(int, array.ravel()))


def test_a_division_by_constants_is_not_refused_for_the_quotients_of_ones() -> None:
    """What a variable holds is not known, and may be a multiple of every divisor."""
    test = loads(DIVIDED).test
    (outcome,) = allowed_outcomes(test, RFC).witnesses
    assert dict(outcome.values)["X"] == (2,)


@pytest.mark.parametrize("dense_shape", [(4,), (4, 1)])
def test_a_negative_value_of_a_sparse_bincount(dense_shape: tuple[int, ...]) -> None:
    """The kernel refuses it for one dimension, and ignores it for two: only a test refuses both."""
    (op,) = (each for each in PURE_OPS if each.name == "SparseBincount")
    arrays = [np.array(each, np.int64) for each in ([[1, 0]], [-1], dense_shape, 3, [5])]
    arrays[0] = arrays[0][:, : len(dense_shape)]
    dtypes = ("int64", "int32", "int64", "int32", "int32")
    types = tuple(TensorType(d, a.shape) for d, a in zip(dtypes, arrays, strict=True))
    call = Call(op, PureAttrs((("binary_output", False),)), types)
    with pytest.raises(Fails if len(dense_shape) == 1 else Inexact, match="negative"):
        computed(call, arrays)
    operands = list(zip(op.operands, types, arrays, strict=True))
    if len(dense_shape) == 2:
        assert not eager(op, call.attrs, operands).any()
