"""What static inference refutes is refused when a file is read: with file, line and field."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.textfile import FileError, loads

HEAD = """\
litmusfuzz: 2
name: bad
variables: {X: {dtype: int32, shape: [3]}, S: {dtype: int32}, Y: {dtype: float32}}
graphs:
  main:
    zero: {op: Const, dtype: int32, value: 0}
    nine: {op: Const, dtype: int32, value: 9}
    yes: {op: Const, dtype: bool, value: 1}
    hs: {op: VarHandleOp, variable: S}
    hy: {op: VarHandleOp, variable: Y}
    s: {op: ReadVariableOp, resources: [S]}
    x: {op: ReadVariableOp, resources: [X]}
"""
CASES = {
    # An operand or a shape.
    "    n: {op: FloorDiv, inputs: [s, zero]}": "13: graphs.main.n.inputs.1: FloorDiv: divides by",
    "    n: {op: Split, inputs: [zero, x], num_split: 2}": "13: graphs.main.n.inputs.0: Split: 3 ",
    "    n: {op: Split, inputs: [s, s], num_split: 2}": "13: graphs.main.n.inputs.1: Split: takes",
    "    n: {op: Split, inputs: [s, x], num_split: 3, result: 3}": "13: graphs.main.n.result: ",
    "    n: {op: Unpack, inputs: [x], num: 3, result: -1}": "13: graphs.main.n.result: Unpack has",
    "    n: {op: Unpack, inputs: [x], num: 2}": "13: graphs.main.n.inputs.0: Unpack: has 3 parts",
    "    n: {op: Unique, inputs: [x], result: count}": "13: graphs.main.n.result: must be 'y' or",
    "    n: {op: TopKV2, inputs: [x, nine]}": "13: graphs.main.n.inputs.1: TopKV2: k 9 of 3",
    "    n: {op: Where, inputs: [x]}\nobserve: [n]": "14: observe.0: has one shape in all orders",
    # A handle of another dtype.
    "    n: {op: ReadVariableOp, resources: [S], handle: hy}": "13: graphs.main.n.resources: 'hy' ",
    "    n: {op: AssignVariableOp, resources: [Y], handle: hy, inputs: [nine]}": "value must be fl",
    "    n: {op: If, inputs: [yes], captures: {a: hs, b: hy}, results: [h],\n"
    "      then: {results: [a]}, else: {results: [b]}}": "graphs.main.n.else.results.0: both bran",
    # A recursive call: a body stands inside its call, so that it can only try to name itself.
    "    n: {op: Call, body: n}": "13: graphs.main.n.body: expected a mapping, got a string",
    "    n: {op: Call, body: {nodes: {n: {op: Call, body: {results: []}}}, results: []}}": (
        "graphs.main.n.body.nodes.n: stands twice"
    ),
    # A fetch that does not exist, or has no value.
    "client: {a: {graph: main, fetches: [z]}}": "13: client.a.fetches.0: 'z' is no node of graph",
    "client: {a: {graph: main, fetches: [x.y]}}": "13: client.a.fetches.0: 'x.y' is no node of",
    "client: {a: {graph: main, targets: [X]}}": "13: client.a.targets.0: 'X' is no node of graph",
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: text.strip()[:40])
def test_it_is_refused_with_its_line_and_field(text: str) -> None:
    with pytest.raises(FileError) as error:
        loads(f"{HEAD}{text}\n", "bad.yaml")
    assert str(error.value).startswith("bad.yaml:")
    assert CASES[text] in str(error.value)


def test_the_head_alone_is_a_test() -> None:
    assert loads(HEAD).test.name == "bad"
