"""Each pure op that JAX has, against our definition, exactly; and all others are refused.

As `tests/pure` compares TensorFlow's kernels: operands are random, over all dtypes that an op takes
and several shapes, and some have edge values. They are known where JAX wants constants, and else
not. 12 calls of each op miss one that is wrong for one call in two with (1/2)**12 < 0.03 %; the
nightly run's 150 miss one that is wrong for one in ten with (9/10)**150 < 0.0002 %.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from helpers import LITMUS, WHOLE, corpus_entry

from litmusfuzz.corpus.model import Node
from litmusfuzz.corpus.ops import FLOATS, OPS, PureAttrs, result_type
from litmusfuzz.corpus.pure.definition import Call, Inexact, PureOp, computed
from litmusfuzz.corpus.tensors import MalformedTest
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering
from litmusfuzz.fuzz.executors.jax_refs.pure_ops import TABLE, lowered
from litmusfuzz.fuzz.executors.jax_refs.space import Settings
from litmusfuzz.fuzz.executors.jax_refs.written_values import MODULES, Text
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.pure_uses import Lacking, PureUse
from litmusfuzz.fuzz.generators import families_for, generate
from litmusfuzz.fuzz.generators.sampling import PURE_OPS, sample
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.sequential import LINEAR

if TYPE_CHECKING:
    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.sampling import Sample

EXECUTOR = JaxRefsExecutor()
FINDINGS = LITMUS[0].parents[1] / "findings" / "jax"
CALLS = 150 if os.environ.get(WHOLE) else 12
EAGER = 40 if os.environ.get(WHOLE) else 2
"""Eager calls: JAX compiles each of its ops for each shape."""
GRADIENTS = 40 if os.environ.get(WHOLE) else 2
EDGES = (0, 1, -1, 2**12, -(2**12), 2**24 - 1, 1 - 2**24)
HAVE = [op for op in PURE_OPS if op.name in TABLE]
_Arrays = list["npt.NDArray[np.int64]"]


def values_of(sampled: Sample) -> _Arrays:
    """The operands of a call."""
    return [np.array(o.values, np.int64).reshape(o.type.shape) for o in sampled.operands]


def with_edges(rng: random.Random, sampled: Sample, arrays: _Arrays) -> _Arrays:
    """The operands with edge values in one of those that may have any."""
    free = [n for n, each in enumerate(sampled.operands) if each.replaceable]
    if not free or rng.random() < 0.5:
        return arrays
    place = rng.choice(free)
    array = arrays[place].copy()
    edges = (0, 1) if sampled.operands[place].type.dtype == "bool" else EDGES
    for _ in range(rng.randint(1, 2)):
        array.ravel()[rng.randrange(array.size)] = rng.choice(edges)
    return [*arrays[:place], array, *arrays[place + 1 :]]


def called(rng: random.Random, op: PureOp) -> tuple[PureUse, _Arrays, Any] | None:
    """A call that JAX has, its operands, and its value; None if there is none."""
    sampled = sample(rng, op)
    assert sampled is not None
    types = tuple(each.type for each in sampled.operands)
    for arrays in (with_edges(rng, sampled, values_of(sampled)), values_of(sampled)):
        try:
            expected = computed(Call(op, sampled.attrs, types), arrays)
            break
        except (Inexact, ValueError):
            continue
    else:
        return None
    known = tuple(tuple(map(int, array.ravel())) for array in arrays)
    try:
        result = result_type(OPS[op.name], sampled.attrs, types, (), whole=True, known=known)
    except MalformedTest:  # a result without elements
        return None
    assert result is not None
    node = Node("t", op.name, tuple(f"x{n}" for n in range(len(types))), attrs=sampled.attrs)
    # Data is what was read, and so are indices where JAX takes them.
    data = [each.replaceable for each in sampled.operands]
    free = [each.replaceable or bool(each.limit) for each in sampled.operands]
    for unknown in (free, data):
        some = (None if each else k for each, k in zip(unknown, known, strict=True))
        use = PureUse(node, types, result, tuple(some))
        try:
            lowered(MODULES, use, [Text("x")] * len(types))
        except Lacking:
            continue
        return use, arrays, expected
    return None


@pytest.mark.parametrize("op", HAVE, ids=lambda op: op.name)
def test_op_against_its_definition(op: PureOp) -> None:
    """All calls under one `jit`, there also as a script has them; and the first ones eagerly."""
    rng = random.Random(op.name)
    calls = [call for _ in range(CALLS) if (call := called(rng, op)) is not None]
    assert len(calls) > CALLS // 3
    given = [
        [jax.device_put(a.astype(k.dtype)) for a, k in zip(arrays, use.inputs, strict=True)]
        for use, arrays, _ in calls
    ]
    written = [
        str(lowered(MODULES, use, [Text(f"x[{n}]") for n in range(len(use.inputs))]))
        for use, *_ in calls
    ]
    lowering, modules = Lowering(Settings()), {"jax": jax, "jnp": jax.numpy}

    def executed(given: list[list[Any]]) -> list[Any]:
        return [lowering.pure(use, x) for (use, *_), x in zip(calls, given, strict=False)]

    def as_written(given: list[list[Any]]) -> list[Any]:
        pairs = zip(written, given, strict=True)
        return [eval(text, modules, {"x": x}) for text, x in pairs]  # noqa: S307

    together = jax.jit(lambda given: (executed(given), as_written(given)))(given)
    for found in (*together, executed(given[:EAGER])):
        for (use, arrays, expected), text, value in zip(calls, written, found, strict=False):
            case = (use, [each.tolist() for each in arrays], text)
            assert (value.dtype.name, value.shape) == (use.result.dtype, use.result.shape), case
            assert (np.asarray(value) == expected).all(), (case, expected, value)  # -0.0 == 0.0


@pytest.mark.parametrize("op", [op for op in HAVE if op.name in LINEAR], ids=lambda op: op.name)
def test_a_linear_op_is_its_own_derivative(op: PureOp) -> None:
    """As the oracle of gradients has it: in forward mode; and reverse mode is its transpose."""
    rng, random_ints = random.Random(op.name), np.random.default_rng(1)
    calls = [call for _ in range(CALLS) if (call := called(rng, op)) is not None]
    tried: list[Any] = []
    for use, arrays, _ in calls:
        floats = [n for n, kind in enumerate(use.inputs) if kind.dtype in FLOATS]
        tangents = list(arrays)
        for n in floats:
            tangents[n] = random_ints.integers(-3, 4, arrays[n].shape)
        if not floats or use.result.dtype not in FLOATS or len(tried) == GRADIENTS:
            continue
        attrs = use.node.attrs
        assert attrs is None or isinstance(attrs, PureAttrs)
        assert op.name == use.node.op
        with suppress(Inexact):  # two tangents for one element
            expected = computed(Call(op, attrs, use.inputs), tangents)
            weights = random_ints.integers(-3, 4, expected.shape)
            tried.append((use, arrays, tangents, floats, weights, expected))
    lowering = Lowering(Settings())

    def derivatives() -> list[Any]:
        found = []
        for use, arrays, tangents, floats, weights, _ in tried:
            whole = [a.astype(k.dtype) for a, k in zip(arrays, use.inputs, strict=True)]

            def function(
                *own: Any, use: Any = use, whole: Any = whole, floats: Any = floats
            ) -> Any:
                given = dict(zip(floats, own, strict=True))
                return lowering.pure(use, [given.get(n, each) for n, each in enumerate(whole)])

            own = [jax.numpy.asarray(whole[n]) for n in floats]
            along = [tangents[n].astype(whole[n].dtype) for n in floats]
            _, tangent = jax.jvp(function, tuple(own), tuple(along))
            gradients = jax.vjp(function, *own)[1](jax.numpy.asarray(weights, tangent.dtype))
            found.append((tangent, gradients))
        return found

    for (use, _, tangents, floats, weights, expected), (tangent, gradients) in zip(
        tried, jax.jit(derivatives)(), strict=True
    ):
        assert (np.asarray(tangent) == expected).all(), use
        products = (
            np.sum(np.asarray(gradient) * tangents[n])
            for n, gradient in zip(floats, gradients, strict=True)
        )
        assert sum(products) == np.sum(weights * expected), use
    assert tried


UNSUPPORTED = {
    # Their shape depends on values.
    *("Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "ListDiff"),
    *("DynamicPartition", "RaggedRange", "BroadcastGradientArgs"),
    *("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3"),
    "NonMaxSuppressionWithOverlaps",
}
"""With others; see docs/jax-references.md."""


def test_every_other_op_is_refused() -> None:
    """By the support of the executor, before anything is traced."""
    ops = EXECUTOR.support.ops
    assert {op.name for op in HAVE} <= ops
    assert not ops & {op.name for op in PURE_OPS if op.name not in TABLE}
    assert not ops & UNSUPPORTED
    assert not {name for name in TABLE if name not in OPS}


def between(*nodes: str, observe: str = "out") -> LitmusTest:
    """A test that reads a vector of int32, and then has these nodes."""
    listed = "\n    ".join(nodes)
    return loads(
        f"""\
litmusfuzz: 2
name: between
variables:
  X: {{dtype: int32, shape: [4], init: [3, 1, 2, 0]}}
graphs:
  main:
    r: {{op: ReadVariableOp, resources: [X]}}
    four: {{op: Const, dtype: int32, shape: [], value: 4}}
    {listed}
observe: [{observe}]
"""
    ).test


GATHER = "out: {op: Gather, inputs: [r, at]}"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            ("out: {op: Unique, inputs: [r], result: idx}",),
            "Unique",
        ),
        (
            ("s: {op: Slice, inputs: [r, r, r]}", "out: {op: ToBool, inputs: [s]}"),
            "unsupported: Slice with a result whose shape depends on values; tf can run it",
        ),
        (
            (
                "zero: {op: Const, dtype: int32, shape: [], value: 0}",
                "axes: {op: Mul, inputs: [r, zero]}",
                "axis: {op: Gather, inputs: [axes, zero]}",
                "out: {op: Cumsum, inputs: [r, axis]}",
            ),
            "unsupported: Cumsum whose axis is no constant; tf can run it",
        ),
        (
            ("out: {op: FloorDiv, inputs: [four, r]}",),
            "out: FloorDiv fails for some values of y, and JAX never does",
        ),
    ],
)
def test_what_jax_has_no_equivalent_of_is_refused_in_a_line(
    nodes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Refused) as refused:
        EXECUTOR.prepare(between(*nodes), configuration("jax_refs"))
    assert str(refused.value) == message


def test_an_index_that_a_modulus_keeps_in_range_is_taken() -> None:
    """And one that may leave the range is refused."""
    test = between("at: {op: FloorMod, inputs: [r, four]}", GATHER)
    for config in ("eager", "jit", "apart"):
        found = EXECUTOR.prepare(test, configuration("jax_refs", config)).run(2, Noise(), 0)
        assert set(found) == {sequential.outcome(test)}
    with pytest.raises(Refused, match=r"^out: Gather fails for some values of indices"):
        EXECUTOR.prepare(between("at: {op: Abs, inputs: [r]}", GATHER), configuration("jax_refs"))


def test_generated_tests_with_pure_ops_are_programs() -> None:
    """Nine of ten at least; of the family `constants` most are none, and it generates none."""
    families = families_for(EXECUTOR.support)
    assert "pure" in families
    assert "constants" not in families
    taken = 0
    for index in range(40):
        test = generate("pure", 3, index, EXECUTOR.support)
        with suppress(Refused):
            EXECUTOR.prepare(test, configuration("jax_refs"))
            taken += 1
    assert taken >= 36


def test_rows_that_move_by_a_slice() -> None:
    """A known finding: where nothing but a reshape of what is read is a result of the function."""
    test = corpus_entry(FINDINGS / "shifted-slice.yaml").test
    ends = {}
    for config in ("eager", "jit", "inside", "apart"):
        found = EXECUTOR.prepare(test, configuration("jax_refs", config)).run(2, Noise(), 0)
        ends[config] = [dict(outcome.values)["t0"] for outcome in found]
    right = [(0, 0, 1, 2)]
    assert ends == {"eager": right, "jit": right, "inside": right, "apart": [(0, 0, 0, 0)]}
