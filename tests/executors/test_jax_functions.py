"""Executor jax: compiled ops and clusters, bitwise as the reference arithmetic, and their cache."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from helpers import LITMUS, corpus_entry, for_each
from helpers_ssa import PreparedFunction, random_state, results_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster, Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import (
    DEFINED_OPS,
    DTYPES,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
    TensorType,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_clustered.arrays import (
    constant,
    element,
    shape_of,
    stacked,
    to_numpy,
    truth,
)
from litmusfuzz.fuzz.executors.jax_clustered.functions import QUICK, Compiler
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.passes.ssa import convert
from litmusfuzz.oracles.errors import ValueTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = tuple[int, ...]
CLUSTERED = [test for path in LITMUS if (test := corpus_entry(path).test).clusters]


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    """One compiler for all tests, so that each structure is compiled once."""
    return Compiler(options=QUICK)


@pytest.fixture(scope="module")
def default() -> Compiler:
    """A compiler with XLA's default options."""
    return Compiler()


def check(got: jax.Array, wanted: Ints, test: LitmusTest, given: TensorType, lanes: int) -> None:
    """Bitwise, in all lanes; -0.0 is 0.0 (semantics.md, section 1)."""
    right = to_numpy(constant(test, wanted, given, lanes))
    found = to_numpy(got)
    assert found.dtype == right.dtype
    assert found.shape == right.shape == shape_of(test, given, lanes)
    np.testing.assert_array_equal(found, right)


# --- ops ---------------------------------------------------------------------------------

ROWS = 4
VARIABLES = ("X", "Y")


def an_op(
    op: str, dtype: str, shape: tuple[int, ...], attrs: Attrs | None, scalars: tuple[int, ...] = ()
) -> LitmusTest:
    """A test of one op, ``it``, on two variables, and constants of which it has none.

    `scalars` are the positions of operands that are scalars, whatever the shape.
    """
    definition = OPS[op]
    nodes = []
    for position, role in enumerate(definition.operands):
        kind, extent = dtype, shape
        if role in ("alpha", "lr", "momentum") or position in scalars:
            extent = ()
        elif isinstance(attrs, RowsAttrs):
            extent = (len(attrs.indices), *shape[1:])
        elif isinstance(attrs, SliceAttrs):
            extent = (len(attrs.rows), *shape[1:])
        if role == "condition":
            kind = "bool"
        nodes.append(Node(f"c{position}", "Const", attrs=ConstAttrs(kind, extent, 1)))
    inputs = tuple(node.name for node in nodes)
    resources = VARIABLES[: len(definition.roles)]
    it = Node("it", op, inputs, resources, attrs=attrs)
    variables = tuple(Variable(name, dtype, shape) for name in VARIABLES)
    return LitmusTest(op, variables, (Graph("main", (*nodes, it)),))


def variants(op: str) -> Iterator[tuple[tuple[int, ...], Attrs | None, tuple[int, ...]]]:
    """Shapes, attributes, and which operands are scalars."""
    definition = OPS[op]
    if definition.attrs is RowsAttrs:
        indices = (2, 0) if op.endswith("Update") else (3, 1, 3)
        yield (ROWS,), RowsAttrs(indices), ()
        if op.startswith("ResourceScatter") and "Nd" not in op:
            yield (ROWS,), RowsAttrs(indices), (0,)
    elif definition.attrs is SliceAttrs:
        yield (ROWS,), SliceAttrs(0, 4, 3), ()
    elif definition.attrs is MomentumAttrs:
        for nesterov in (False, True):
            yield (ROWS,), MomentumAttrs(nesterov), ()
    elif op == "MatMul":
        yield (2, 2), None, ()
    else:
        yield (ROWS,), None, ()
        yield (), None, ()
        if definition.kind is Kind.PURE and len(definition.operands) > 1 and op != "ReluGrad":
            yield (ROWS,), None, (0,)


COMPUTING = [
    op.name
    for op in OPS.values()
    if op.kind in (Kind.PURE, Kind.READ, Kind.WRITE, Kind.UPDATE)
    and op.name not in {"NoOp", "Const", "Placeholder", *DEFINED_OPS}
]


@pytest.mark.parametrize("op", COMPUTING)
def test_an_op_agrees_with_the_reference_arithmetic(op: str, compiler: Compiler) -> None:
    rng = random.Random(op)
    for dtype in OPS[op].dtypes:
        for shape, attrs, scalars in variants(op):
            test = an_op(op, dtype, shape, attrs, scalars)
            # All dtypes with lanes; without them the code is the same.
            for lanes in (1, 8) if dtype in ("int64", "float32") else (8,):
                for _ in range(3):
                    check_op(rng, test, lanes, compiler)


def check_op(rng: random.Random, test: LitmusTest, lanes: int, compiler: Compiler) -> None:
    def value(name: str) -> Ints:
        given = test.type_of(name)
        low, high = (0, 1) if given.dtype == "bool" else (-9, 9)
        return tuple(rng.randint(low, high) for _ in range(test.size_of(given.shape)))

    it = test.graph.nodes[-1]
    memory = {variable.name: value(variable.name) for variable in test.variables}
    operands = {name: value(name) for name in it.inputs}
    played = PreparedFunction(test, memory, operands)
    played.run([it])
    reads = () if it.definition.kind is Kind.WRITE else it.resources
    given = [
        constant(test, ints, test.type_of(name), lanes)
        for name, ints in [*((name, memory[name]) for name in reads), *operands.items()]
    ]
    call = compiler.op_call(test, it, lanes)
    results = call.function(*given, *call.bound)
    if it.definition.kind.writes:
        for name, found in zip(it.resources, results, strict=True):
            check(found, played.memory[name], test, test.type_of(name), lanes)
    else:
        check(results, played.values["it"], test, test.type_of("it"), lanes)


@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
def test_a_constant_is_its_value(dtype: str, compiler: Compiler) -> None:
    for shape, value, lanes in (((), 1, 8), ((3,), (1, 0, 1), 8), ((3, 2), (1, 0, 1), 1)):
        node = Node("it", "Const", attrs=ConstAttrs(dtype, shape, value))
        variable = Variable("X", "int32", shape[:2])
        test = LitmusTest("constant", (variable,), (Graph("main", (node,)),))
        call = compiler.op_call(test, node, lanes)
        check(
            call.function(*call.bound), test.constant(node), test, TensorType(dtype, shape), lanes
        )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap_around(dtype: str, compiler: Compiler) -> None:
    most = np.iinfo(dtype).max
    for op, left, right in (("AddV2", most, 1), ("Sub", -most, 2), ("Mul", most, 2)):
        test = an_op(op, dtype, (), None)
        call = compiler.op_call(test, test.graph.nodes[-1], 8)
        operands = [np.full(8, each, dtype) for each in (left, right)]
        with np.errstate(over="ignore"):
            wanted = {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](*operands)
        np.testing.assert_array_equal(call.function(*map(jax.device_put, operands)), wanted)


def test_lanes_are_added_to_values_without_lanes() -> None:
    rows, scalar = TensorType("int32", (3,)), TensorType("int32", ())
    with_rows = litmus("X[0]=1", shape=(3,))
    assert shape_of(with_rows, rows, 8) == (3, 8)
    assert shape_of(with_rows, scalar, 8) == ()  # it stands for each row
    scalars = litmus("X=1")
    assert shape_of(scalars, scalar, 8) == (8,)
    assert shape_of(scalars, rows, 8) == (3, 8)
    own = litmus("X[0]=1", shape=(3, 2))
    assert shape_of(own, TensorType("int32", (3, 2)), 8) == (3, 2)
    assert shape_of(litmus("X=1 || Q!1", queues={"Q": 1}), scalar, 8) == ()


def test_a_scalar_with_lanes_meets_rows_with_lanes(compiler: Compiler) -> None:
    """Where no variable has rows, a scalar has lanes; a constant may have rows all the same."""
    rows = Node("c", "Const", attrs=ConstAttrs("int32", (3,), (1, 2, 3)))
    five = Node("five", "Const", attrs=ConstAttrs("int32", (), 5))
    add = Node("it", "AddV2", ("five", "c"))
    graph = Graph("main", (rows, five, add))
    check_op(
        random.Random(1), LitmusTest("rows", (Variable("X", "int32", ()),), (graph,)), 8, compiler
    )


def test_elements_stacks_and_truth() -> None:
    test = litmus("X=1")
    three = constant(test, (4, 5, 6), TensorType("float64", (3,)), 1)
    parts = [element(three, number) for number in range(3)]
    assert [part.item() for part in parts] == [4, 5, 6]
    np.testing.assert_array_equal(stacked(*parts), three)
    assert stacked(*parts).dtype == np.float64
    for value in (0, 1):
        for lanes in (1, 8):
            assert truth(constant(test, (value,), TensorType("bool", ()), lanes)) is bool(value)


# --- clusters ----------------------------------------------------------------------------


BACK_ENDS = pytest.mark.parametrize("lowering", ["ssa", "references"])


def check_clusters(
    rng: random.Random,
    test: LitmusTest,
    lanes: int,
    compiler: Compiler,
    lowering: str,
    states: int = 2,
) -> int:
    """How many executions were compared."""
    compared = 0
    for cluster in test.clusters:
        function, call = compiler.cluster_call(test, cluster, lanes, lowering=lowering)
        assert function == convert(test, cluster)
        for _ in range(states):
            memory, arguments = random_state(rng, test, function)
            try:
                played = PreparedFunction(test, memory, arguments).cluster(cluster)
            except ValueTooLarge:
                continue
            values = {name: memory[name] for name in function.initial} | arguments
            given = [constant(test, v, test.type_of(n), lanes) for n, v in values.items()]
            results = call.function(*given, *call.bound)
            names = (*function.outputs, *(each.variable for each in function.finals))
            types = [test.type_of(name) for name in names]
            wanted = results_of(function, played)
            for found, right, given_type in zip(results, wanted, types, strict=False):
                if right:
                    check(found, right, test, given_type, lanes)
            flags = zip(results[len(types) :], wanted[len(types) :], strict=True)
            assert all((truth(flag),) == right for flag, right in flags)
            compared += 1
    return compared


@BACK_ENDS
def test_random_clusters_equal_their_members_in_order(compiler: Compiler, lowering: str) -> None:
    rng = random.Random(3)
    compared = [
        check_clusters(
            rng,
            generate("clusters", 11, index),
            rng.choice((1, 8)),
            compiler,
            lowering,
        )
        for index in range(110)
    ]
    assert sum(compared) > 150


@BACK_ENDS
@for_each("test", CLUSTERED)
def test_clusters_of_the_corpus_equal_their_members_in_order(
    test: LitmusTest, default: Compiler, lowering: str
) -> None:
    check_clusters(random.Random(4), test, 8, default, lowering)


@BACK_ENDS
def test_a_condition_may_write(compiler: Compiler, lowering: str) -> None:
    """The condition of a litmus test may write, unlike that of XLA's loop."""
    test = litmus("cluster { loop 3 while X==0 { Y+=1 } }")
    (loop,) = (node for node in test.graph.nodes if node.op == "While")
    attrs: Any = loop.attrs
    one = Node("asked_one", "Const", attrs=ConstAttrs("int32", (), 1))
    count = Node("asked", "AssignAddVariableOp", ("asked_one",), ("Y",))
    condition = replace(attrs.condition, nodes=(*attrs.condition.nodes, one, count))
    changed = replace(loop, attrs=replace(attrs, condition=condition))
    nodes = tuple(changed if node is loop else node for node in test.graph.nodes)
    asked = replace(test, graphs=(replace(test.graph, nodes=nodes),))
    assert check_clusters(random.Random(5), asked, 8, compiler, lowering, states=5) == 5


def test_a_cluster_without_values_returns_nothing(compiler: Compiler) -> None:
    test = replace(
        litmus("X=1"),
        clusters=(Cluster("k", ("nothing",)),),
        graphs=(Graph("main", (Node("nothing", "NoOp"),)),),
    )
    function, call = compiler.cluster_call(test, test.clusters[0], 8)
    assert function.block.parameters == call.bound == call.function() == ()


# --- the cache ---------------------------------------------------------------------------

COUNT = "cluster { r0=X; r1=r0+1; Y=r1 } || r2=Y"


@BACK_ENDS
def test_a_structure_excludes_names_and_constants(lowering: str) -> None:
    compiler = Compiler(options=QUICK)
    for text in (COUNT, "r5=V || cluster { r3=U; r4=r3+7; V=r4 }"):
        test = litmus(text)
        function, _ = compiler.cluster_call(test, test.clusters[0], 8, lowering=lowering)
        assert function.outputs == (("r0", "r1") if text == COUNT else ("r3", "r4"))
    assert (compiler.statistics.compiled, compiler.statistics.found) == (1, 1)
    assert compiler.statistics.seconds > 0


def test_a_structure_excludes_rows_and_includes_their_number() -> None:
    compiler = Compiler(options=QUICK)
    shape = (4,)
    for rows, compiled in (("0,1", 1), ("3,2", 1), ("1", 2)):
        test = litmus(f"X[{rows}]+=1", shape=shape)
        test = replace(test, clusters=(Cluster("k", tuple(n.name for n in test.graph.effects)),))
        compiler.cluster_call(test, test.clusters[0], 8)
        assert compiler.statistics.compiled == compiled


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("cluster { r0=X; r1=r0-1; Y=r1 } || r2=Y", {}),  # another op
        ("cluster { r0=X; r1=r0+r0; Y=r1 } || r2=Y", {}),  # another wiring
        ("cluster { r0=X; r1=r0+1; Y=r0 } || r2=Y", {}),  # another final value
        (COUNT, {"dtype": "float32"}),
        (COUNT, {"shape": (2,)}),
    ],
)
def test_structures_that_differ_are_compiled_anew(text: str, options: dict[str, Any]) -> None:
    compiler = Compiler(options=QUICK)
    for test in (litmus(COUNT), litmus(text, **options)):
        compiler.cluster_call(test, test.clusters[0], 8)
    assert compiler.statistics.compiled == 2


@BACK_ENDS
def test_the_bodies_of_a_loop_are_part_of_its_structure(lowering: str) -> None:
    compiler = Compiler(options=QUICK)
    for text in ("cluster { loop 2 { X+=1 } }", "cluster { loop 2 { X-=1 } }"):
        test = litmus(text)
        compiler.cluster_call(test, test.clusters[0], 8, lowering=lowering)
    assert compiler.statistics.compiled == 2


def test_a_cluster_of_one_op_returns_a_tuple_all_the_same() -> None:
    compiler = Compiler(options=QUICK)
    test = an_op("AddV2", "int32", (), None)
    clustered = replace(test, clusters=(Cluster("k", ("it",)),), observe=("it",))
    one, two = (constant(test, (i,), TensorType("int32", ()), 1) for i in (1, 2))
    assert compiler.op_call(test, test.graph.nodes[-1], 1).function(one, two) == 3
    _, call = compiler.cluster_call(clustered, clustered.clusters[0], 1)
    assert call.function(one, two) == (3,)


def test_the_least_recently_used_structure_is_dropped() -> None:
    compiler = Compiler(limit=2, options=QUICK)
    one, two, three = (an_op(op, "int32", (), None) for op in ("Neg", "Relu", "AddV2"))
    for test in (one, two, one, three, one, two):
        compiler.op_call(test, test.graph.nodes[-1], 1)
    assert compiler.statistics.compiled == 4  # `two` twice
    assert compiler.statistics.found == 2
