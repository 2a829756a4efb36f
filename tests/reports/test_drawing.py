"""A test, drawn: exact text for a few shapes, and DOT that no name breaks out of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import LITMUS

import corpus
from corpus.builder import litmus
from corpus.graph import Graph, LitmusTest, Node, Variable
from corpus.ops import ConstAttrs, MomentumAttrs, SliceAttrs
from corpus.textfile import load
from reports.drawing import dot, expression, statement, text

FOLDER = Path(corpus.__file__).parent / "litmus"


def drawn(test: LitmusTest) -> list[str]:
    """The lines, without those on what the test is."""
    lines = text(test).splitlines()
    return lines[1 + len(test.about.splitlines()) :]


def test_sb_in_columns() -> None:
    """SB: X=1; r0=Y || Y=1; r1=X, a column for each chain."""
    test = litmus("X=1; r0=Y || Y=1; r1=X", name="SB", about="store\nbuffering")
    assert text(test) == "\n".join(
        [
            "SB",
            "  store",
            "  buffering",
            "  X: int32[] = 0",
            "  Y: int32[] = 0",
            "",
            "  | chain 0    | chain 1",
            "  | w0: X = 1  | w1: Y = 1",
            "  | r0 = Y     | r1 = X",
            "",
            "  observed: reads r0, r1 and the final value of every variable",
        ]
    )


def test_sb_in_dot() -> None:
    assert dot(litmus("X=1; r0=Y || Y=1", name="SB", shape=(2,), init={"X": (3, 4)})) == "\n".join(
        [
            'digraph "SB" {',
            '  graph [rankdir="TB", fontname="sans-serif"];',
            '  node [shape=box, fontname="sans-serif"];',
            '  "var X" [label="X: int32[2] = [3, 4]", shape=cylinder];',
            '  "var Y" [label="Y: int32[2] = 0", shape=cylinder];',
            '  "c1_0" [label="1"];',
            '  "w0" [label="w0: X = 1\\nAssignVariableOp", style=filled, fillcolor=coral];',
            '  "r0" [label="r0 = Y\\nReadVariableOp", style=filled, fillcolor=coral];',
            '  "w1" [label="w1: Y = 1\\nAssignVariableOp", style=filled, fillcolor=coral];',
            '  "c1_0" -> "w0";',
            '  "var X" -> "w0" [style=dotted, arrowhead=none];',
            '  "w0" -> "r0" [style=dashed];',
            '  "var Y" -> "r0" [style=dotted, arrowhead=none];',
            '  "c1_0" -> "w1";',
            '  "var Y" -> "w1" [style=dotted, arrowhead=none];',
            "}",
        ]
    )


def test_a_pair_of_scatters() -> None:
    made = litmus("X[0,2]=1 || X[1]+=-2; r0=X[0,2]", shape=(3, 4), init={"X": (1, 2, 3)})
    assert drawn(made) == [
        "  X: int32[3, 4] = [1, 2, 3]",
        "",
        "  | chain 0         | chain 1",
        "  | w0: X[0,2] = 1  | w1: X[1] += -2",
        "                    | r0 = X[0,2]",
        "",
        "  observed: reads r0 and the final value of every variable",
    ]


def test_momentum_names_its_operands() -> None:
    assert drawn(load(FOLDER / "momentum-observed-between.yaml").test) == [
        "  X: float32[1] = 5",
        "  A: float32[1] = 3",
        "",
        "  | chain 0                                             | chain 1",
        "  | u: ApplyMomentum(X, A, lr=2, grad=[4], momentum=3)  | r0 = X",
        "                                                        | r1 = A",
        "",
        "  observed: reads r0, r1 and the final value of every variable",
    ]


def test_an_observed_bool_stands_below_the_columns() -> None:
    assert drawn(load(FOLDER / "less-equal-of-two-reads.yaml").test) == [
        "  X: int32[2] = [1, 5]",
        "",
        "  | chain 0  | chain 1",
        "  | r0 = X   | w: X = [3, 2]",
        "  | r1 = X",
        "  p = r0 < r1",
        "  q = r0 == r1",
        "  s = r0 == r0",
        "",
        "  observed: reads p, q, s and the final value of every variable",
    ]


def test_an_edge_between_chains_is_told_once() -> None:
    """Only what the column's own order, and other edges, do not imply."""
    nodes = (
        Node("a", "ReadVariableOp", (), ("X",)),
        Node("b", "ReadVariableOp", (), ("X",), ("a",)),
        Node("c", "ReadVariableOp", (), ("X",)),
        Node("none", "NoOp", (), (), ("a", "b")),
        Node("d", "ReadVariableOp", (), ("X",), ("c", "none")),
        Node("e", "ReadVariableOp", (), ("X",), ("d",)),
        Node("f", "ReadVariableOp", (), ("X",), ("c", "a", "b")),
    )
    made = LitmusTest("t", (Variable("X", "int32", (), 0, "cpu:1"),), (Graph("main", nodes),))
    assert drawn(made) == [
        "  X: int32[] = 0 on cpu:1",
        "",
        "  | chain 0            | chain 1",
        "  | a = X              | c = X",
        "  | b = X              | f = X   (after b)",
        "  | d = X   (after c)",
        "  | e = X",
        "",
        "  observed: the final value of every variable",
    ]


def test_a_graph_without_effects_is_drawn() -> None:
    nodes = (Node("k", "Const", attrs=ConstAttrs("int32", (2,), (7, -1))),)
    made = LitmusTest("t", (Variable("X", "int32", ()),), (Graph("main", nodes),), ("k",))
    assert drawn(made)[-5:] == [
        "",
        "  main touches no resource",
        "  k = [7, -1]",
        "",
        "  observed: reads k and the final value of every variable",
    ]


# --- each kind of statement ------------------------------------------------------------

F = Variable("F", "float32", (3,))
G = Variable("G", "float32", (3,))
CONSTANTS = (
    Node("s", "Const", attrs=ConstAttrs("float32", (), 2)),
    Node("v", "Const", attrs=ConstAttrs("float32", (3,), 4)),
    Node("p", "Const", attrs=ConstAttrs("float32", (2,), (5, 6))),
)


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (Node("n", "AssignSubVariableOp", ("v",), ("F",)), "n: F -= 4"),
        (Node("n", "ResourceApplyGradientDescent", ("s", "v"), ("F",)), "n: F -= 2 * 4"),
        (
            Node(
                "n",
                "ResourceApplyKerasMomentum",
                ("s", "v", "s"),
                ("G", "F"),
                (),
                MomentumAttrs(use_nesterov=True),
            ),
            "n: ApplyKerasMomentum(G, F, lr=2, grad=4, momentum=2, nesterov)",
        ),
        (
            Node("n", "ResourceStridedSliceAssign", ("p",), ("F",), (), SliceAttrs(0, 3, 2)),
            "n: F[0:3:2] = [5, 6]",
        ),
    ],
)
def test_a_statement(node: Node, shown: str) -> None:
    made = LitmusTest("t", (F, G), (Graph("main", (*CONSTANTS, node)),))
    assert statement(made, node) == shown


@pytest.mark.parametrize(
    ("op", "sign"),
    [
        ("Update", "="),
        ("Add", "+="),
        ("Sub", "-="),
        ("Mul", "*="),
        ("Min", "min="),
        ("Max", "max="),
    ],
)
def test_a_scatter_reads_as_the_notation_does(op: str, sign: str) -> None:
    made = litmus(f"X[0,2]{sign}1", shape=(3,))
    assert made.graph.effects[0].op == f"ResourceScatter{op}"
    assert statement(made, made.graph.effects[0]) == f"w0: X[0,2] {sign} 1"


def test_an_expression_keeps_its_grouping() -> None:
    made = litmus("r0=X; r1=r0+2*r0; r2=r1; Y=r2-r1")
    assert expression(made, "r1") == "((r0 + 2) * r0)"
    assert expression(made, "r1", top=True) == "(r0 + 2) * r0"
    assert expression(made, "r2", top=True) == "Identity(((r0 + 2) * r0))"
    assert statement(made, made.graph.effects[-1]) == "w0: Y = (((r0 + 2) * r0) - ((r0 + 2) * r0))"


def test_a_value_that_doubles_again_and_again_is_cut_off() -> None:
    """Written out, the last would have 2**60 terms."""
    text_ = "r0=X; " + "; ".join(f"r{i + 1}=r{i}+r{i}" for i in range(60))
    assert len(expression(litmus(text_), "r60")) < 4_000


# --- DOT -------------------------------------------------------------------------------

STRING = r'"(?:[^"\\\n]|\\[\\"n])*"'
ATTRIBUTE = rf"[a-z]+=(?:{STRING}|[a-z]+)"
LINES = re.compile(
    rf"  (?:{STRING}(?: -> {STRING})?|graph|node)(?: \[{ATTRIBUTE}(?:, {ATTRIBUTE})*\])?;"
)


def read_dot(source: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Nodes and edges; fails if a line is more or less than one statement of the language."""
    first, *middle, last = source.split("\n")
    assert re.fullmatch(rf"digraph {STRING} {{", first), first
    assert last == "}"
    nodes: set[str] = set()
    edges: set[tuple[str, str]] = set()
    for line in middle:
        assert LINES.fullmatch(line), line
        edge = re.match(rf"  ({STRING}) -> ({STRING})", line)
        node = re.match(rf"  ({STRING}) \[", line)
        if edge:
            edges.add((edge[1], edge[2]))
        elif node:
            assert node[1] not in nodes, line
            nodes.add(node[1])
    return nodes, edges


@pytest.mark.parametrize("path", LITMUS, ids=lambda p: p.stem)
def test_dot_has_each_node_and_edge_of_a_corpus_file(path: Path) -> None:
    test = load(path).test
    nodes, edges = read_dot(dot(test))
    resources = (*test.variables, *test.mutexes, *test.queues)
    all_nodes = [n for graph in test.graphs for n in graph.nodes]
    assert nodes == {f'"var {r.name}"' for r in resources} | {f'"{n.name}"' for n in all_nodes}
    assert edges == {
        (f'"{source.partition(".")[0]}"', f'"{n.name}"')  # a result's edge is its node's
        for n in all_nodes
        for source in (*n.inputs, *n.after, *(f"var {r}" for r in n.resources))
    }


@pytest.mark.parametrize("path", LITMUS, ids=lambda p: p.stem)
def test_each_effect_of_a_corpus_file_has_one_cell(path: Path) -> None:
    test = load(path).test
    cells = re.findall(r"\| (?!chain )(\w+)(?::| =)", "\n".join(drawn(test)))
    assert sorted(cells) == sorted(n.name for graph in test.graphs for n in graph.effects)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ('"]; evil', '\\"]; evil'),
        ('\\"]; evil', '\\\\\\"]; evil'),
        ("a\nevil", "a\\nevil"),
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("a\\nb", "a\\\\nb"),
        ("<b> -> {a|b}", "<b> -> {a|b}"),
    ],
)
def test_no_name_breaks_out_of_the_quotes(name: str, quoted: str) -> None:
    """Names are checked when a test is made; the quoting does not rely on that."""
    test = litmus("r0=X")
    (variable,), (read,) = test.variables, test.graph.nodes
    for part, change in (
        (test, {"name": name, "types": {name: variable.type}}),
        (variable, {"name": name}),
        (read, {"name": name, "resources": (name,)}),
    ):
        for field, value in change.items():
            object.__setattr__(part, field, value)
    nodes, edges = read_dot(dot(test))
    assert len(nodes) == 2
    assert edges == {(f'"var {quoted}"', f'"{quoted}"')}
