"""The litmus test as a value: each rule that it keeps, with the field at fault."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    MAX_NODES,
    MAX_VARIABLES,
    Graph,
    LitmusTest,
    MalformedTest,
    Mutex,
    Node,
    TensorType,
    Variable,
    predecessors,
)
from litmusfuzz.corpus.ops import (
    DEFINED_OPS,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MomentumAttrs,
    Nested,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs

if TYPE_CHECKING:
    from collections.abc import Callable

Fields = tuple[str | int, ...]
X = Variable("X", "int32", (3,))
S = Variable("S", "int32", ())
F = Variable("F", "float32", (3,))
G = Variable("G", "float32", (3,))
L = Variable("L", "float64", (3,))
M = Variable("M", "float32", (2, 3))
ALL = (X, S, F, G, L, M)
# One of each type, so that a rule is broken by the node under test alone.
GIVEN = (
    Node("i", "Const", attrs=ConstAttrs("int32", (), 1)),
    Node("i3", "Const", attrs=ConstAttrs("int32", (3,), 1)),
    Node("i2", "Const", attrs=ConstAttrs("int32", (2,), 1)),
    Node("f", "Const", attrs=ConstAttrs("float32", (), 1)),
    Node("f3", "Const", attrs=ConstAttrs("float32", (3,), 1)),
    Node("b", "Const", attrs=ConstAttrs("bool", (), 1)),
    Node("b3", "Const", attrs=ConstAttrs("bool", (3,), (1, 0, 1))),
    Node("m23", "Const", attrs=ConstAttrs("float32", (2, 3), 1)),
    Node("m32", "Const", attrs=ConstAttrs("float32", (3, 2), 1)),
    Node("d23", "Const", attrs=ConstAttrs("float64", (2, 3), 1)),
    Node("none", "NoOp"),
)


def made_of(
    *nodes: Node, variables: tuple[Variable, ...] = ALL, observe: tuple[str, ...] = ()
) -> LitmusTest:
    return LitmusTest("t", variables, (Graph("main", (*GIVEN, *nodes)),), observe)


def node(
    op: str, inputs: str = "", resources: str = "", attrs: Attrs | None = None, after: str = ""
) -> Node:
    names = (tuple(each.split()) for each in (inputs, resources, after))
    return Node("n", op, *names, attrs)


def sections(depth: int) -> LitmusTest:
    """Critical sections inside each other."""
    names = [f"r{n}" for n in range(depth)]
    nodes = [Node(name, "ReadVariableOp", (), ("X",)) for name in names]
    for n in range(depth):
        attrs = SectionAttrs(tuple(names[: n + 1]))
        nodes.append(Node(f"s{n}", "CriticalSection", (), ("M",), (), attrs))
    return LitmusTest("t", (X,), (Graph("g", tuple(nodes)),), mutexes=(Mutex("M"),))


def refused(make: Callable[[], object]) -> tuple[Fields, str]:
    with pytest.raises(MalformedTest) as caught:
        make()
    return caught.value.path, caught.value.message


# --- the test as a whole ---------------------------------------------------------------


def with_name(name: str) -> LitmusTest:
    return replace(litmus("r0=X"), name=name)


def many_nodes(count: int) -> LitmusTest:
    nodes = tuple(Node(f"n{i}", "NoOp") for i in range(count))
    return LitmusTest("t", (X,), (Graph("main", nodes),))


def many_variables(count: int) -> LitmusTest:
    variables = tuple(replace(X, name=f"X{i}") for i in range(count))
    return LitmusTest("t", variables, (Graph("main", ()),))


WHOLE: list[tuple[Callable[[], object], Fields, str]] = [
    (lambda: with_name(""), ("name",), "not a test's name: ''"),
    (lambda: with_name("-x"), ("name",), "not a test's name: '-x'"),
    (lambda: with_name("a/b"), ("name",), "not a test's name: 'a/b'"),
    (lambda: with_name("a\n"), ("name",), "not a test's name: 'a\\n'"),
    (lambda: with_name('a"b'), ("name",), "not a test's name: 'a\"b'"),
    (lambda: with_name("é"), ("name",), "not a test's name: 'é'"),
    (
        lambda: replace(litmus("X=1"), description="\x1b[2J"),
        ("description",),
        "control characters are not part of the format",
    ),
    (
        lambda: LitmusTest("t", (), (Graph("main", ()),)),
        ("variables",),
        "a test has at least one resource",
    ),
    (lambda: many_variables(MAX_VARIABLES + 1), ("variables",), "more than 64: 65"),
    (lambda: LitmusTest("t", (X,), ()), ("graphs",), "a test has at least one graph"),
    (
        lambda: LitmusTest("t", (X,), (Graph("a", ()), Graph("a", ()))),
        ("graphs", "a"),
        "stands twice",
    ),
    (
        lambda: LitmusTest(
            "t", (X,), (Graph("a", (Node("i", "NoOp"),)), Graph("b", (Node("i", "NoOp"),)))
        ),
        ("graphs", "b", "i"),
        "is a node of another graph as well",
    ),
    (
        lambda: LitmusTest("t", (X,), (Graph("a.b", ()),)),
        ("graphs", "a.b"),
        "a name is a letter, then letters, digits or _, at most 64; got 'a.b'",
    ),
    (lambda: many_nodes(MAX_NODES + 1), ("graphs", "main"), "more than 2048 nodes: 2049"),
    (
        lambda: LitmusTest(
            "t", (X,), (*many_nodes(MAX_NODES).graphs, Graph("b", (Node("z", "NoOp"),)))
        ),
        ("graphs", "b"),
        "more than 2048 nodes: 2049",
    ),
    (
        lambda: LitmusTest("t", (X,), tuple(Graph(f"g{n}", ()) for n in range(65))),
        ("graphs",),
        "more than 64 graphs: 65",
    ),
    (
        lambda: sections(41),
        ("graphs", "g", "s0", "members"),
        "more than 40 sections inside each other",
    ),
    (lambda: made_of(observe=("z",)), ("observe", 0), "'z' is no node of a graph"),
    (lambda: made_of(observe=("i", "X")), ("observe", 1), "'X' is no node of a graph"),
    (lambda: made_of(observe=("none",)), ("observe", 0), "'none' has no result"),
    (lambda: made_of(observe=("i", "f", "i")), ("observe", 2), "'i' stands twice"),
]


@pytest.mark.parametrize(
    ("make", "path", "message"), WHOLE, ids=[f"{m[:40]!a}" for _, _, m in WHOLE]
)
def test_a_test_is_refused(make: Callable[[], object], path: Fields, message: str) -> None:
    assert refused(make) == (path, message)


def test_limits_are_reached_but_not_passed() -> None:
    assert len(many_nodes(MAX_NODES).graph.nodes) == 2048
    assert len(many_variables(MAX_VARIABLES).variables) == 64
    assert len(sections(40).mutexes) == 1
    assert with_name("n" * 100).name == "n" * 100


# --- variables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "path", "message"),
    [
        (Variable("1", "int32", ()), (), "a name is a letter, then letters, digits or _, at most"),
        (Variable("X" * 65, "int32", ()), (), "at most 64"),
        (Variable("X", "bool", ()), ("dtype",), "dtype must be int32, int64, float32, float64; "),
        (Variable("X", "int32", (2, 0)), ("shape", 1), "a dimension must be >= 1, got 0"),
        (Variable("X", "int32", (2.0,)), ("shape", 0), "a dimension is an int, got 2.0"),  # type: ignore[arg-type]
        (Variable("X", "int32", (True,)), ("shape", 0), "a dimension is an int, got True"),
        (Variable("X", "int32", [2]), ("shape",), "a shape is a tuple, got [2]"),  # type: ignore[arg-type]
        (Variable("X", "int32", (1025,)), ("shape", 0), "more than 1024 rows: 1025"),
        (Variable("X", "int32", (2, 1 << 20)), ("shape", 1), "more than 1048576 elements"),
        (Variable("X", "int32", (1,) * 9), ("shape",), "more than 8 dimensions: 9"),
        (Variable("X", "int32", (), 1 << 24), ("init",), "magnitude must be below 2**24, got 167"),
        (Variable("X", "int32", (), (1,)), ("init",), "must be one int, got 1 rows"),
        (Variable("X", "int32", (2,), (1, 2, 3)), ("init",), "must be 2 rows or one int, got 3"),
        (Variable("X", "int32", (2, 2), ((1, 2), 3)), ("init", 0), "a row is one int (lanes are"),
        (Variable("X", "int32", (2,), (1, -(1 << 24))), ("init", 1), "magnitude must be below"),
        (
            Variable("X", "int32", (), 0, "cpu"),
            ("device",),
            "a device is cpu:N, gpu:N or opencl:N, got 'cpu'",
        ),
        (Variable("X", "int32", (), 0, "cpu:0 "), ("device",), "got 'cpu:0 '"),
    ],
    ids=str,
)
def test_a_variable_is_refused(variable: Variable, path: Fields, message: str) -> None:
    where, why = refused(lambda: LitmusTest("t", (variable,), (Graph("main", ()),)))
    assert where == ("variables", variable.name, *path)
    assert message in why


def test_a_variable_stands_once() -> None:
    where = refused(lambda: LitmusTest("t", (X, S, X), (Graph("main", ()),)))
    assert where == (("variables", "X"), "stands twice")


def test_values_and_shapes_up_to_the_limit_are_taken() -> None:
    """semantics.md, 1: none reaches 2**24 in magnitude."""
    largest = (1 << 24) - 1
    for variable in (
        Variable("X", "float32", (1024, 1024), largest),
        Variable("X", "int64", (1,) * 8, -largest, "gpu:999"),
        Variable("X", "int32", (2, 5), (largest, -largest)),
    ):
        LitmusTest("t", (variable,), (Graph("main", ()),))


# --- nodes -----------------------------------------------------------------------------

ROWS = RowsAttrs((0, 2))
NODES: list[tuple[Node, Fields, str]] = [
    (Node("n.1", "NoOp"), (), "a name is a letter, then letters, digits or _, at most 64; got "),
    (Node("i", "NoOp"), (), "stands twice"),
    (Node("X", "NoOp"), (), "is also the name of a resource; an outcome needs both"),
    (node("VariableV2"), ("op",), "unknown op 'VariableV2'"),
    (node("Identity", "zz"), ("inputs", 0), "no node 'zz'"),
    (node("AddV2", "i n"), ("inputs", 1), "cycle: n -> n"),
    (node("NoOp", after="i zz"), ("after", 1), "no node 'zz'"),
    (node("NoOp", after="n"), ("after", 0), "cycle: n -> n"),
    (node("NoOp", after="last"), ("after", 0), "'last' stands below; nodes stand in topological"),
    (node("NoOp", after="i i"), ("after",), "names a node twice"),
    (node("NoOp", "i"), ("inputs",), "NoOp takes 0, got 1"),
    (node("AddV2", "i"), ("inputs",), "AddV2 takes 2 (x, y), got 1"),
    (node("ReadVariableOp"), ("resources",), "ReadVariableOp takes 1 (var), got 0"),
    (node("NoOp", "", "X"), ("resources",), "NoOp takes 0, got 1"),
    (node("Identity", "none"), ("inputs", 0), "'none' has no result"),
    (node("ReadVariableOp", "", "Z"), ("resources", 0), "no variable 'Z'"),
    (
        node("ResourceApplyMomentum", "f f3 f", "F F", MomentumAttrs(use_nesterov=False)),
        ("resources", 1),
        "'F' stands twice",
    ),
    (node("ResourceGather", "", "X"), ("inputs",), "ResourceGather takes 1 (indices), got 0"),
    (node("ResourceGather", "f", "X"), ("inputs", 0), "indices must be int32 or int64, got float"),
    (node("ResourceGather", "i", "S"), ("resources", 0), "takes no scalar"),
    (node("ResourceScatterAdd", "i2 i3", "X"), ("inputs", 1), "has shape [2] or [], got [3]"),
    (node("ReadVariableOp", "", "X", ROWS), (), "ReadVariableOp has other attributes"),
    (node("Const", attrs=ROWS), (), "Const has other attributes"),
    # constants
    (node("Const", attrs=ConstAttrs("half", (), 0)), ("dtype",), "dtype must be bool, int32"),
    (node("Const", attrs=ConstAttrs("int32", (0,), 0)), ("shape", 0), "must be >= 1, got 0"),
    (node("Const", attrs=ConstAttrs("int32", (2,), (0,))), ("value",), "must be 2 rows or one"),
    (node("Const", attrs=ConstAttrs("int32", (), 1 << 24)), ("value",), "must be below 2**24"),
    (node("Const", attrs=ConstAttrs("bool", (2,), (0, 2))), ("value",), "a bool is 0 or 1"),
    (node("Const", attrs=ConstAttrs("bool", (), -1)), ("value",), "a bool is 0 or 1"),
    # pure ops
    (node("Select", "i i3 i3"), ("inputs", 0), "the condition is bool, got int32[]"),
    (node("Select", "b i3 f3"), ("inputs", 2), "both choices have one type, got int32[3], float"),
    (node("Select", "b i i3"), ("inputs", 2), "both choices have one type, got int32[], int32[3]"),
    (node("Select", "b3 i i"), ("inputs", 0), "is a scalar or has the choices' shape, got bool[3]"),
    (node("Neg", "b"), ("inputs", 0), "Neg takes numbers, got bool[]"),
    (node("Equal", "i b"), ("inputs", 1), "Equal takes numbers, got bool[]"),
    (node("ReluGrad", "f f3"), ("inputs", 1), "both have one type, got float32[], float32[3]"),
    (node("Mul", "i f"), ("inputs", 1), "operands have one dtype, got int32[], float32[]"),
    (node("Sub", "i3 i2"), ("inputs", 1), "operands have one shape or are scalars, got int32[3]"),
    (node("MatMul", "f m32"), ("inputs", 0), "MatMul takes matrices, got float32[]"),
    (node("MatMul", "m23 f3"), ("inputs", 1), "MatMul takes matrices, got float32[3]"),
    (node("MatMul", "m23 m23"), ("inputs", 1), "cannot multiply float32[2, 3] by float32[2, 3]"),
    (node("MatMul", "m32 d23"), ("inputs", 1), "cannot multiply float32[3, 2] by float64[2, 3]"),
    # effects
    (node("AssignVariableOp", "i", "X"), ("inputs", 0), "value must be int32[3], got int32[]"),
    (node("AssignAddVariableOp", "f3", "X"), ("inputs", 0), "value must be int32[3], got float32"),
    (
        node("ResourceApplyGradientDescent", "i i3", "X"),
        ("resources", 0),
        "ResourceApplyGradientDescent takes float32 or float64, got int32[3]",
    ),
    (node("ResourceApplyGradientDescent", "f3 f3", "F"), ("inputs", 0), "alpha must be float32[],"),
    (node("ResourceApplyGradientDescent", "f f", "F"), ("inputs", 1), "delta must be float32[3],"),
    (
        node("ResourceApplyKerasMomentum", "f f3 f", "F L", MomentumAttrs(use_nesterov=True)),
        ("resources", 1),
        "its variables have one type, got float32[3], float64[3]",
    ),
    (node("ResourceGather", "", "S", ROWS), ("resources", 0), "needs rows, got int32[]"),
    (node("ResourceGather", "", "X", RowsAttrs(())), ("indices",), "names no row"),
    (node("ResourceGather", "", "X", RowsAttrs((0, 3))), ("indices", 1), "row 3 of 3"),
    (node("ResourceGatherNd", "", "X", RowsAttrs((-1,))), ("indices", 0), "row -1 of 3"),
    (node("ResourceGather", "", "X", RowsAttrs((0,) * 1025)), ("indices",), "1024 rows: 1025"),
    (
        node("ResourceScatterUpdate", "i", "X", RowsAttrs((1, 0, 1))),
        ("indices", 2),
        "row 1 twice in an update",
    ),
    (
        node("ResourceScatterNdUpdate", "i2", "X", RowsAttrs((2, 2))),
        ("indices", 1),
        "row 2 twice in an update",
    ),
    (
        node("ResourceScatterAdd", "i3", "X", ROWS),
        ("inputs", 0),
        "updates must be int32[2] or int32[], got int32[3]",
    ),
    (
        node("ResourceScatterNdAdd", "i", "X", ROWS),
        ("inputs", 0),
        "updates must be int32[2], got int32[]",
    ),
    (
        node("ResourceStridedSliceAssign", "i", "X", SliceAttrs(0, 3, 2)),
        ("inputs", 0),
        "value must be int32[2], got int32[]",
    ),
    (
        node("ResourceStridedSliceAssign", "i2", "X", SliceAttrs(0, 3, 0)),
        ("strides",),
        "strides must be >= 1, got 0",
    ),
    (
        node("ResourceStridedSliceAssign", "i2", "X", SliceAttrs(2, 4, 1)),
        ("begin",),
        "need 0 <= begin < end <= 3, got 2:4",
    ),
    (
        node("ResourceStridedSliceAssign", "i2", "X", SliceAttrs(-1, 1, 1)),
        ("begin",),
        "need 0 <= begin < end <= 3, got -1:1",
    ),
]


@pytest.mark.parametrize(
    ("broken", "path", "message"), NODES, ids=[f"{n.op}-{m[:30]!a}" for n, _, m in NODES]
)
def test_a_node_is_refused(broken: Node, path: Fields, message: str) -> None:
    where, why = refused(lambda: made_of(broken, Node("last", "NoOp")))
    assert where == ("graphs", "main", broken.name, *path)
    assert message in why


def test_a_cycle_is_named_node_by_node() -> None:
    """The path is one that exists: each node is an operand of the one behind it."""
    nodes = (
        node("NoOp", after="a"),
        Node("a", "Identity", ("b1",)),
        Node("b1", "Neg", ("c",)),
    )
    last = Node("c", "ReadVariableOp", (), ("S",), ("n",))
    where, why = refused(lambda: made_of(*nodes, last))
    assert where == ("graphs", "main", "n", "after", 0)
    assert why == "cycle: n -> c -> b1 -> a -> n"


# --- absurd results of modest operands -------------------------------------------------


def test_a_gather_that_repeats_a_large_row_is_refused() -> None:
    wide = Variable("W", "int32", (1, 1 << 20))
    repeated = node("ResourceGather", "", "W", RowsAttrs((0, 0)))
    where = refused(lambda: made_of(repeated, variables=(*ALL, wide)))
    assert where == (("graphs", "main", "n", "indices"), "more than 1048576 elements: 2097152")


def test_a_product_larger_than_its_factors_is_refused() -> None:
    a = Node("a", "Const", attrs=ConstAttrs("float32", (1024, 1), 1))
    c = Node("c", "Const", attrs=ConstAttrs("float32", (1, 1025), 1))
    where = refused(lambda: made_of(a, c, node("MatMul", "a c")))
    assert where == (("graphs", "main", "n", "inputs"), "more than 1048576 elements: 1049600")


# --- what is well-formed, and its type -------------------------------------------------

I3, F3 = TensorType("int32", (3,)), TensorType("float32", (3,))
TYPED: list[tuple[Node, TensorType | None]] = [
    (node("Const", attrs=ConstAttrs("bool", (2,), (0, 1))), TensorType("bool", (2,))),
    (node("NoOp"), None),
    (node("VarIsInitializedOp", "", "X"), TensorType("bool", ())),
    (node("Identity", "b3"), TensorType("bool", (3,))),
    *((node(op, "f3"), F3) for op in ("Neg", "Relu")),
    *((node(op, "i3 i3"), I3) for op in ("AddV2", "Sub", "Mul", "Maximum", "Minimum")),
    (node("AddV2", "i i3"), I3),
    (node("AddV2", "i3 i"), I3),
    (node("AddV2", "i i"), TensorType("int32", ())),
    *((node(op, "i i3"), TensorType("bool", (3,))) for op in ("Less", "Equal")),
    (node("Select", "b i3 i3"), I3),
    (node("Select", "b3 i3 i3"), I3),
    (node("Select", "b b3 b3"), TensorType("bool", (3,))),
    (node("ReluGrad", "f3 f3"), F3),
    (node("MatMul", "m23 m32"), TensorType("float32", (2, 2))),
    (node("MatMul", "m32 m23"), TensorType("float32", (3, 3))),
    (node("ReadVariableOp", "", "X"), I3),
    (node("ResourceGather", "", "X", RowsAttrs((2, 2, 2, 0))), TensorType("int32", (4,))),
    (node("ResourceGatherNd", "", "M", RowsAttrs((1,))), TensorType("float32", (1, 3))),
    *(
        (node(op, "i3", "X"), None)
        for op in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
    ),
    (node("ResourceApplyGradientDescent", "f f3", "F"), None),
    *(
        (node(f"ResourceScatter{op}", updates, "X", ROWS), None)
        for op in ("Update", "Add", "Sub", "Mul", "Min", "Max")
        for updates in ("i", "i2")
    ),
    *((node(f"ResourceScatterNd{op}", "i2", "X", ROWS), None) for op in ("Update", "Add", "Sub")),
    (node("ResourceScatterAdd", "i2", "X", RowsAttrs((1, 1))), None),
    (node("ResourceStridedSliceAssign", "i2", "X", SliceAttrs(0, 3, 2)), None),
    *(
        (node(op, "f f3 f", "F G", MomentumAttrs(use_nesterov=True)), None)
        for op in ("ResourceApplyMomentum", "ResourceApplyKerasMomentum")
    ),
]


@pytest.mark.parametrize(("good", "kind"), TYPED, ids=[f"{n.op}-{n.inputs}" for n, _ in TYPED])
def test_a_nodes_type(good: Node, kind: TensorType | None) -> None:
    assert made_of(good).types["n"] == kind


def test_every_op_has_its_type_tested() -> None:
    others = {  # test_features.py
        name
        for name, op in OPS.items()
        if (op.kind is not Kind.PURE and op.on != "variable") or op.fed
    }
    assert {n.op for n, _ in TYPED} == set(OPS) - others - DEFINED_OPS  # tests/pure


def test_an_op_without_resources_is_on_nothing() -> None:
    assert {op.on == "nothing" for op in OPS.values() if op.roles} == {False}
    assert {op.on for op in OPS.values() if not op.roles} == {"nothing"}


def test_an_update_that_changes_has_no_result() -> None:
    assert all(not op.kind.writes or op.has_effect for op in OPS.values())
    written = {n.op for n, kind in TYPED if kind is None} - {"NoOp"}
    changing = {name for name, op in OPS.items() if op.kind.writes}
    assert written == changing - DEFINED_OPS  # tests/pure


# --- lanes, and matrices ---------------------------------------------------------------

MATMUL = (node("MatMul", "m23 m32"),)


@pytest.mark.parametrize(
    ("nodes", "init", "model"),
    [
        ((), 7, (7, 7)),
        ((), (1, 2), (1, 2)),
        (MATMUL, 7, (7,) * 6),
        (MATMUL, (1, 2), (1, 1, 1, 2, 2, 2)),
        (MATMUL, ((1, 2, 3), (4, 5, 6)), (1, 2, 3, 4, 5, 6)),
        (MATMUL, ((1, 2, 3), 4), (1, 2, 3, 4, 4, 4)),
    ],
)
def test_a_test_with_matmul_has_no_lanes(
    nodes: tuple[Node, ...], init: Nested, model: tuple[int, ...]
) -> None:
    """semantics.md, 1: with MatMul values are whole matrices; else one lane's rows."""
    variable = replace(M, init=init)
    made = made_of(*nodes, variables=(*ALL[:-1], variable))
    assert made.whole == bool(nodes)
    assert made.initial(variable) == model
    assert made.size_of((2, 3)) == len(model)
    constant = replace(GIVEN[0], name="n0", attrs=ConstAttrs("float32", (2, 3), init))
    assert made_of(constant, *nodes).constant(constant) == model


@pytest.mark.parametrize(
    ("init", "path"),
    [(((1, 2), (3, 4)), ("init", 0)), (((1, 2, 3), (4, 5, 1 << 24)), ("init", 1, 2))],
)
def test_a_matrix_is_refused_by_its_row(init: Nested, path: Fields) -> None:
    variable = replace(M, init=init)
    where, _ = refused(lambda: made_of(*MATMUL, variables=(*ALL[:-1], variable)))
    assert where == ("variables", "M", *path)


# --- what a test tells of itself -------------------------------------------------------


def test_the_names_of_an_outcome_are_what_is_observed_then_variables() -> None:
    made = litmus("X=1; r0=Y || Y=1; r1=X", shape=(2, 4))
    assert made.names == ("r0", "r1", "X", "Y")
    assert made.type_of("r0") == made.type_of("X") == TensorType("int32", (2, 4))
    assert made.graph is made.graphs[0]
    assert [n.name for n in made.graph.effects] == ["w0", "r0", "w1", "r1"]


def test_a_test_is_frozen() -> None:
    made = litmus("X=1")
    with pytest.raises(FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.types["n"] = None  # type: ignore[index]
    assert made == litmus("X=1")
    assert hash(made) == hash(litmus("X=1"))
    assert made != litmus("X=2")


def test_predecessors_are_transitive() -> None:
    nodes = (
        Node("a", "ReadVariableOp", (), ("S",)),
        Node("b", "NoOp", (), (), ("a",)),
        Node("c", "ReadVariableOp", (), ("S",), ("b",)),
        Node("d", "AddV2", ("a", "c")),
        Node("e", "NoOp"),
    )
    made = LitmusTest("t", (S,), (Graph("main", nodes),))
    assert {n.name: set(above) for n, above in predecessors(made.graph)} == {
        "a": set(),
        "b": {"a"},
        "c": {"a", "b"},
        "d": {"a", "b", "c"},
        "e": set(),
    }


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(resource_graphs())
def test_a_generated_test_comes_back_from_its_file(test: LitmusTest) -> None:
    entry = Entry(test)
    text = dumps(entry)
    assert loads(text) == entry
    assert dumps(loads(text)) == text


def test_edges_that_others_imply_cost_nothing() -> None:
    """Each node comes after all before it: to join all their predecessors is cubic."""
    nodes = [Node(f"n{n}", "NoOp", (), (), tuple(f"n{k}" for k in range(n))) for n in range(900)]
    start = time.process_time()
    found = {node.name: above for node, above in predecessors(Graph("g", tuple(nodes)))}
    assert time.process_time() - start < 1.5
    assert found["n7"] == {f"n{k}" for k in range(7)}
    assert len(found["n899"]) == 899
