"""Indices that are operands: programs that have some, their gradients, and what is refused."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from math import prod
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, differentiated

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, RowsAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.script import script
from litmusfuzz.fuzz.executors.jax_refs.space import Settings
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.executors.traced.indices import check_indices
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.generators.gradients import in_floats
from litmusfuzz.oracles import sequential

if TYPE_CHECKING:
    from litmusfuzz.corpus.outcome import Outcome

EXECUTOR = JaxRefsExecutor()
WAYS = ("array", "static", "negative", "beyond", "scalar", "slice")
SPARSE = "r0=X[2,0]; X[1,0]+=4; X[1,2]=r0; X[0]-=3; r1=X[1,1]"


def with_operands(test: LitmusTest) -> LitmusTest:
    """The test with the rows of its ops as operands: constants."""
    nodes = []
    for node in test.graph.nodes:
        if isinstance(node.attrs, RowsAttrs):
            rows = node.attrs.indices
            shape = (len(rows), 1) if node.definition.nd else (len(rows),)
            index = Node(f"{node.name}_rows", "Const", attrs=ConstAttrs("int32", shape, rows))
            node = replace(node, inputs=(index.name, *node.inputs), attrs=None)
            nodes.append(index)
        nodes.append(node)
    return replace(test, graphs=(replace(test.graph, nodes=tuple(nodes)),))


def test_constant_operands_are_the_rows_of_the_file() -> None:
    fixed = litmus(SPARSE, dtype="float32", shape=(3,), init={"X": [5, 6, 7]})
    for test in (fixed, differentiated(fixed)):
        outcome = sequential.outcome(test)
        assert sequential.outcome(with_operands(test)) == outcome
        for way in WAYS:
            config = f"writes=linked;indices={way}" if way != "array" else "writes=linked"
            if way == "beyond" and test is not fixed:
                continue  # a finding: see DROPPED
            made = EXECUTOR.prepare(with_operands(test), configuration("jax_refs", config))
            assert set(made.run(1, Noise(), 0)) == {outcome}, way


DROPPED = litmus("r0=X[0]; X[1]=r0", dtype="float32", shape=(2,), init={"X": [3, 4]})


def test_reverse_mode_gives_a_dropped_write_a_gradient() -> None:
    """What is written past the end is dropped; in reverse mode it counts as the last row's."""
    test = differentiated(DROPPED)
    right, wrong = (
        EXECUTOR.prepare(test, configuration("jax_refs", name)).run(1, Noise(), 0)
        for name in ("indices=beyond;derivative=jvp", "indices=beyond")
    )
    assert set(right) == {sequential.outcome(test)}
    (outcome,) = wrong
    assert outcome.plain["grad(X)"] != sequential.outcome(test).plain["grad(X)"]


def test_programs_have_rows_that_a_read_chose() -> None:
    """Each gives its single outcome, whichever way rows are named."""
    shown = 0
    for index in range(40):
        test = generate("programs", 3, index, EXECUTOR.support)
        if not any(node.definition.computed for node in test.nodes):
            continue
        way = WAYS[index % len(WAYS)]
        name = f"compiled=jit;loops=scan;indices={way}" if way != "array" else "compiled=jit"
        try:
            found = EXECUTOR.prepare(test, configuration("jax_refs", name)).run(1, Noise(), 0)
        except (Refused, SystemFailed):  # of a gradient, in reverse mode
            assert "gradients" in test.features
            continue
        assert set(found) == {sequential.outcome(test)}, index
        shown += 1
    assert shown > 5


def test_programs_have_cells_that_a_read_chose() -> None:
    """Each gives its single outcome."""
    shown = 0
    for index in range(600):
        test = generate("programs", 1, index, EXECUTOR.support)
        if "gradients" in test.features or not any(
            node.definition.nd and node.definition.computed for node in test.nodes if test.whole
        ):
            continue
        found = EXECUTOR.prepare(test, configuration("jax_refs")).run(1, Noise(), 0)
        assert set(found) == {sequential.outcome(test)}, index
        shown += 1
        if shown == 4:
            break
    assert shown == 4


def test_indices_stay_integers_where_a_test_gets_floats() -> None:
    fixed = litmus(SPARSE, shape=(3,))
    assert in_floats(with_operands(fixed)) == with_operands(in_floats(fixed))
    for index in range(30):
        test = generate("programs", 4, index, EXECUTOR.support)
        assert all(variable.dtype.startswith("float") for variable in in_floats(test).variables)


def with_shape(test: LitmusTest, shape: tuple[int, ...], *, nd: bool = False) -> LitmusTest:
    """The test, whose ops touch one row each, with indices of that shape as operands."""
    nodes = []
    for node in test.graph.nodes:
        if isinstance(node.attrs, ConstAttrs):
            node = replace(node, attrs=replace(node.attrs, shape=shape))
        elif isinstance(node.attrs, RowsAttrs):
            (row,) = node.attrs.indices
            value = row
            for _ in (*shape, *[0] * nd):
                value = (value,)
            const = ConstAttrs("int32", (*shape, *[1] * nd), value)
            nodes.append(Node(f"{node.name}_rows", "Const", attrs=const))
            op = node.op.replace("Gather", "GatherNd").replace("Scatter", "ScatterNd")
            inputs = (f"{node.name}_rows", *node.inputs)
            node = replace(node, op=op if nd else node.op, inputs=inputs, attrs=None)
        nodes.append(node)
    return replace(test, graphs=(replace(test.graph, nodes=tuple(nodes)),))


def shows_in_every_way(test: LitmusTest, outcome: Outcome, *, gradients: bool) -> None:
    """Assert that the executor and scripts have the outcome, however indices are passed."""
    for way in WAYS:
        if way == "beyond" and gradients:
            continue  # a finding: see DROPPED
        indices = f";indices={way}" if way != "array" else ""
        config = configuration("jax_refs", f"writes=linked;updates=addupdate{indices}")
        assert set(EXECUTOR.prepare(test, config).run(1, Noise(), 0)) == {outcome}, way
        with redirect_stdout(StringIO()) as said, pytest.raises(SystemExit) as ended:
            exec(script(test, Settings.of(config), outcome, "A script.", place=0), {})  # noqa: S102
        assert not ended.value.code, said.getvalue()


@pytest.mark.parametrize("nd", [False, True])
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_indices_are_scalars_or_have_any_shape(shape: tuple[int, ...], *, nd: bool) -> None:
    """In the executor and in scripts; and so have their gradients."""
    text = "r0=X[2]; X[1]+=4; X[0]=r0; X[0]-=3; r1=X[1]"
    fixed = litmus(text, dtype="float32", shape=(3,), init={"X": [5, 6, 7]})
    for plain in (fixed, differentiated(fixed)):
        test = with_shape(plain, shape, nd=nd)
        outcome = sequential.outcome(plain)
        assert sequential.outcome(test) == outcome
        shows_in_every_way(test, outcome, gradients=plain is not fixed)


def with_cells(shape: tuple[int, ...]) -> LitmusTest:
    """A test that reads and changes cells of a matrix, some of them twice in one op."""
    cells = {"i": ((1, 2), (0, 1)), "j": ((0, 1), (0, 1)), "k": ((0, 2), (1, 0))}
    nodes = []
    for name, pairs in cells.items():
        value: object = pairs[: prod(shape)]
        for _ in shape[1:]:
            value = (value,)
        value = value if shape else pairs[0]
        attrs = ConstAttrs("int32", (*shape, 2), value)
        nodes.append(Node(name, "Const", attrs=attrs))
    changes = (("Add", "j"), ("Update", "k"), ("Sub", "i"))
    nodes.append(Node("r0", "ResourceGatherNd", ("i",), ("X",)))
    for op, index in changes:
        nodes.append(Node(op, f"ResourceScatterNd{op}", (index, "r0"), ("X",)))
    nodes.append(Node("r1", "ResourceGatherNd", ("j",), ("X",)))
    matrix = Variable("X", "float32", (2, 3), ((1, 2, 3), (4, 5, 6)))
    return LitmusTest("cells", (matrix,), (Graph("main", tuple(nodes)),), ("r0", "r1"))


@pytest.mark.parametrize("shape", [(), (2,), (1, 2)])
def test_cells_are_read_and_changed_where_operands_say(shape: tuple[int, ...]) -> None:
    """In the executor and in scripts; and so have their gradients."""
    fixed = with_cells(shape)
    for test in (fixed, differentiated(fixed)):
        outcome = sequential.outcome(test)
        assert outcome.plain["r0"] == ([6, 2] if shape else 6)
        shows_in_every_way(test, outcome, gradients=test is not fixed)


def at_cells(cells: tuple[tuple[int, int], ...]) -> LitmusTest:
    """A gather of a matrix's cells, whose coordinates are written to a variable and read."""
    shape = (len(cells), 2)
    made = litmus("I=0", shape=shape, init={"I": 0})
    nodes = (
        Node("new", "Const", attrs=ConstAttrs("int32", shape, cells)),
        Node("w", "AssignVariableOp", ("new",), ("I",)),
        Node("read", "ReadVariableOp", (), ("I",)),
        Node("g", "ResourceGatherNd", ("read",), ("X",)),
    )
    matrix = Variable("X", "int32", (2, 3), ((1, 2, 3), (4, 5, 6)))
    graphs = (replace(made.graph, nodes=nodes),)
    return replace(made, variables=(*made.variables, matrix), graphs=graphs, observe=("g",))


@pytest.mark.parametrize("cells", [((1, 2),), ((0, 2), (1, 0))])
def test_each_coordinate_of_a_cell_has_a_range_of_its_own(
    cells: tuple[tuple[int, int], ...],
) -> None:
    """What was read: what the variable had, or what a write put there."""
    test = at_cells(cells)
    found = EXECUTOR.prepare(test, configuration("jax_refs", "jit")).run(1, Noise(), 0)
    assert set(found) == {sequential.outcome(test)}


def test_a_cell_beyond_one_axis_is_refused() -> None:
    with pytest.raises(Refused, match=r"^g, which fails if an index leaves its range$"):
        check_indices(at_cells(((2, 0),)))


@pytest.mark.parametrize("config", ["eager", "compiled=jit;batch=vmap;indices=negative"])
def test_a_cell_that_was_read_is_taken(config: str) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "indexed-nd-cells")).test
    found = EXECUTOR.prepare(test, configuration("jax_refs", config)).run(2, Noise(), 0)
    assert set(found) == {sequential.outcome(test)}


def gathering(index: str) -> LitmusTest:
    """A gather at a value: what was read, or what was read, clamped."""
    read = Node("i", "ReadVariableOp", (), ("X",))
    low = Node("low", "Const", attrs=ConstAttrs("int32", (), 0))
    high = Node("high", "Const", attrs=ConstAttrs("int32", (), 2))
    at_least = Node("at_least", "Maximum", ("i", "low"))
    at_most = Node("at_most", "Minimum", ("at_least", "high"))
    gather = Node("g", "ResourceGather", (index,), ("X",))
    nodes = (read, low, high, at_least, at_most, gather)
    test = litmus("X=1", shape=(3,), init={"X": [9, -9, 1]})
    return replace(test, graphs=(replace(test.graph, nodes=nodes),), observe=("g",))


def test_a_row_that_was_read_is_refused_if_it_may_leave_its_range() -> None:
    with pytest.raises(Refused, match=r"^g, which fails if an index leaves its range$"):
        EXECUTOR.prepare(gathering("i"), configuration("jax_refs", "jit"))


def test_a_row_that_was_read_and_clamped_is_taken() -> None:
    test = gathering("at_most")
    found = EXECUTOR.prepare(test, configuration("jax_refs", "jit")).run(1, Noise(), 0)
    assert set(found) == {sequential.outcome(test)}
    assert sequential.outcome(test).plain["g"] == [1, 9, -9]


def test_a_row_that_was_read_is_taken_if_it_stays_in_range() -> None:
    """Whatever order the ops have: by what is written there, and by how a loop counts."""
    for name in ("indexed-gather", "indexed-in-a-loop"):
        test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
        for config in ("eager", "compiled=jit;loops=scan;indices=negative", "indices=beyond"):
            prepared = EXECUTOR.prepare(test, configuration("jax_refs", config))
            assert set(prepared.run(1, Noise(), 0)) == {sequential.outcome(test)}, (name, config)


@pytest.mark.parametrize("writes", ["I=3", "I+=1", "I[1]=3", "I=r0", "I=-1"])
def test_a_row_that_was_read_is_refused_beside_what_may_be_out_of_range(writes: str) -> None:
    """Before it or after it: no order may fail."""
    made = litmus(f"r0=X; {writes}", shape=(3,), init={"X": [9, 8, 7], "I": [0, 1, 2]})
    read = Node("i", "ReadVariableOp", (), ("I",))
    gather = Node("g", "ResourceGather", ("i",), ("X",))
    graphs = (replace(made.graph, nodes=(read, gather, *made.graph.nodes)),)
    test = replace(made, graphs=graphs, observe=("g",))
    with pytest.raises(Refused, match="leaves its range"):
        check_indices(test)
    kept = tuple(each for each in test.graph.nodes if not each.definition.kind.writes)
    check_indices(replace(test, graphs=(replace(test.graph, nodes=kept),)))
