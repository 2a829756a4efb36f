"""Drawings: exact text for a few shapes, and DOT that no name breaks out of."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    Cluster,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
    Variable,
    bodies,
    captures_of,
)
from litmusfuzz.corpus.ops import ConstAttrs, MomentumAttrs, SliceAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.reports.drawing import dot, text
from litmusfuzz.reports.structure import Structure

FOLDER = Path(corpus.__file__).parent / "litmus"


def lines_of(test: LitmusTest) -> list[str]:
    """The lines of the drawing, without name and description."""
    lines = text(test).splitlines()
    return lines[1 + len(test.description.splitlines()) :]


def test_sb_in_columns() -> None:
    """SB: X=1; r0=Y || Y=1; r1=X, a column for each chain."""
    test = litmus("X=1; r0=Y || Y=1; r1=X", name="SB", description="store\nbuffering")
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
    assert lines_of(made) == [
        "  X: int32[3, 4] = [1, 2, 3]",
        "",
        "  | chain 0         | chain 1",
        "  | w0: X[0,2] = 1  | w1: X[1] += -2",
        "                    | r0 = X[0,2]",
        "",
        "  observed: reads r0 and the final value of every variable",
    ]


def test_momentum_names_its_operands() -> None:
    assert lines_of(corpus_entry(FOLDER / "momentum-observed-between.yaml").test) == [
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
    assert lines_of(corpus_entry(FOLDER / "less-equal-of-two-reads.yaml").test) == [
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


def test_an_edge_between_chains_is_shown_once() -> None:
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
    assert lines_of(made) == [
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


def test_a_graph_without_effects_has_a_drawing() -> None:
    nodes = (Node("k", "Const", attrs=ConstAttrs("int32", (2,), (7, -1))),)
    made = LitmusTest("t", (Variable("X", "int32", ()),), (Graph("main", nodes),), ("k",))
    assert lines_of(made)[-5:] == [
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
    assert Structure(made).statement(node) == shown


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
    assert Structure(made).statement(made.graph.effects[0]) == f"w0: X[0,2] {sign} 1"


def test_an_expression_keeps_its_grouping() -> None:
    made = litmus("r0=X; r1=r0+2*r0; r2=r1; Y=r2-r1")
    assert Structure(made).expression("r1") == "((r0 + 2) * r0)"
    assert Structure(made).expression("r1", top=True) == "(r0 + 2) * r0"
    assert Structure(made).expression("r2", top=True) == "Identity(((r0 + 2) * r0))"
    assert (
        Structure(made).statement(made.graph.effects[-1])
        == "w0: Y = (((r0 + 2) * r0) - ((r0 + 2) * r0))"
    )


def test_a_value_that_doubles_again_and_again_is_cut_off() -> None:
    """Written out, the last would have 2**60 terms."""
    text_ = "r0=X; " + "; ".join(f"r{i + 1}=r{i}+r{i}" for i in range(60))
    assert len(Structure(litmus(text_)).expression("r60")) < 4_000


# --- bodies, sections, clusters, several graphs ------------------------------------------


def chains_of(file: str) -> list[str]:
    """The lines with the chains of a corpus file."""
    return [
        line[2:]
        for line in lines_of(corpus_entry(FOLDER / f"{file}.yaml").test)
        if line[2:3] == "|"
    ]


def test_bodies_stand_below_their_loop_and_conditional() -> None:
    assert chains_of("h-section-in-a-branch-in-a-loop") == [
        "| chain 0                          | chain 1                     | chain 2",
        "| loop: for i = 0                  | sec0: lock M                | bare: X += 100",
        "|   while i < 2                    |   read0 = X",
        "|   do                             |   store0: X = (read0 + 10)",
        "|     pick: if i == 1",
        "|       then",
        "|         sec: lock M",
        "|           read = X",
        "|           store: X = (read + 1)",
        "|         taken = 1",
        "|       else",
        "|         taken = 1",
        "|     next i = i + 1",
    ]


def test_a_condition_with_effects_shows_them() -> None:
    assert chains_of("h-condition-dequeues") == [
        "| chain 0",
        "| loop: for i = 0",
        "|   while",
        "|     got = Q.Dequeue()",
        "|     Select((i < 3), (got == 1), 0)",
        "|   do",
        "|     next i = i + 1",
    ]


def test_chains_of_a_body_and_what_a_result_waits_for() -> None:
    """The counter waits for the mark, not for the dequeue."""
    assert chains_of("h-how-many-at-once")[1:] == [
        "| loop: for i = 0   (parallel_iterations 2)  | put2: Q.Enqueue(loop.i)   (after loop)"
        "  | put3: Q.Enqueue(loop.i)   (after loop)",
        "|   while i < 3",
        "|   do",
        "|     mark: X = (i + 1)",
        "|     ||",
        "|     got = Q.Dequeue()",
        "|     next i = i + 1   (after mark)",
        "| put1: Q.Enqueue(loop.i)",
    ]


def test_waiting_for_one_result_is_not_waiting_for_the_loop() -> None:
    lines = chains_of("h-swap-leaves")
    assert "storeb: X = 6   (after loop.b)" in lines[1]
    assert lines[-1] == "| storea: X = 5   (after loop.a)"


def test_a_carried_value_that_is_waited_for_is_named() -> None:
    assert "|     readc = X   (after chain)" in chains_of("h-chain-broken-in-the-middle")


def test_sections_nest() -> None:
    assert chains_of("nested-three-deep") == [
        "| chain 0",
        "| s1: lock C",
        "|   s2: lock B",
        "|     s3: lock A",
        "|       u: X += 1",
        "|       ||",
        "|       v: Z += 1",
        "|     t = Q.Dequeue()",
        "|   e: Q.Enqueue(t)",
        "| chain 0",
        "| s: lock A",
        "|   r0 = X",
        "|   ||",
        "|   r1 = Z",
    ]


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        # An edge between members orders no section: they stand apart.
        (
            "section-data-edge-between",
            [
                "| chain 0     | chain 1",
                "| s0: lock M  | s1: lock M",
                "|   r0 = X    |   w: Z = r0   (after r0)",
            ],
        ),
        # What waits for a member does not wait for the release; what waits for the section does.
        (
            "section-edge-out-values",
            [
                "| chain 0      | chain 1",
                "| sec: lock M  | r0 = X   (after m1)",
                "|   m1: X = 1",
                "|   m2: X = 2",
                "| r1 = X",
            ],
        ),
        # A node between two members, itself no member.
        (
            "section-not-between",
            [
                "| chain 0                   | chain 1",
                "| s0: lock M                | mid: Z = 1   (after r0)",
                "|   r0 = X",
                "|   w: X = 5   (after mid)",
                "| chain 0",
                "| s1: lock M",
                "|   r1 = Z",
                "|   ||",
                "|   r2 = X",
            ],
        ),
    ],
)
def test_a_section_claims_no_more_than_its_edges(file: str, lines: list[str]) -> None:
    assert chains_of(file) == lines


def test_several_graphs_and_the_client() -> None:
    lines = lines_of(corpus_entry(FOLDER / "sgd-synchronous.yaml").test)
    assert "  graph chief:" in lines
    assert lines[lines.index("  the client runs:") + 1 :] == [
        "    a: graph worker",
        "    b: graph worker",
        "    chief0: graph chief",
        "    a2: graph worker2   after a",
        "    b2: graph worker2   after b",
        "",
        "  s = g0 + g1",
        "",
        "  observed: reads chief0.s, a2.r2, b2.r2 and the final value of every variable and queue",
    ]


def clustered() -> LitmusTest:
    """A cluster in a section; one whose members are in no order; one outside waits for it."""
    plain = litmus("lock M; r0=X; X=r0; r1=Y; unlock M || a=X || Y=1; r2=Y", name="clustered")
    first = next(n.name for n in plain.graph.nodes if n.resources == ("X",) and "Assign" in n.op)
    (last,) = [n.name for n in plain.graph.nodes if n.resources == ("Y",) and "Assign" in n.op]
    clusters = (Cluster("C", ("r0", first)), Cluster("D", (last, "a")))
    return replace(plain, clusters=clusters)


def test_clusters_stand_above_their_members() -> None:
    lines = lines_of(clustered())
    assert lines[3:] == [
        "",
        "  | chain 0         | chain 1",
        "  | s0: lock M      | D: cluster",
        "  |   C: cluster    |   a = X",
        "  |     r0 = X      |   ||",
        "  |     w0: X = r0  |   w1: Y = 1",
        "  |   r1 = Y        | r2 = Y",
        "  cluster C: r0, w0   (one node, in this order)",
        "  cluster D: w1, a   (one node, in this order)",
        "",
        "  observed: reads r0, r1, a, r2 and the final value of every variable",
    ]


# --- DOT -------------------------------------------------------------------------------

STRING = r'"(?:[^"\\\n]|\\[\\"n])*"'
ATTRIBUTE = rf"[a-z]+=(?:{STRING}|[a-z]+)"
LINES = re.compile(
    rf" +(?:(?:{STRING}(?: -> {STRING})?|graph|node)(?: \[{ATTRIBUTE}(?:, {ATTRIBUTE})*\])?;"
    rf"|subgraph {STRING} {{|label={STRING};|}})"
)


def read_dot(source: str) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Nodes, each with the box around it, and edges.

    Fails if a line is more or less than one statement of the language.
    """
    first, *middle, last = source.split("\n")
    assert re.fullmatch(rf"digraph {STRING} {{", first), first
    assert last == "}"
    nodes: dict[str, str] = {}
    edges: set[tuple[str, str]] = set()
    boxes = [""]
    known: set[str] = set()
    for line in middle:
        assert LINES.fullmatch(line), line
        edge = re.match(rf" +({STRING}) -> ({STRING})", line)
        node = re.match(rf" +({STRING}) \[", line)
        box = re.match(rf" +subgraph ({STRING})", line)
        if box:
            assert box[1] not in known, line
            known.add(box[1])
            boxes.append(box[1][len('"cluster ') : -1])
        elif line.strip() == "}":
            boxes.pop()
        elif edge:
            edges.add((edge[1], edge[2]))
        elif node:
            assert node[1] not in nodes, line
            nodes[node[1]] = boxes[-1]
    assert boxes == [""]
    # Graphviz makes a node of whatever stands at an edge's end.
    assert {end for edge in edges for end in edge} <= nodes.keys()
    return nodes, edges


@for_each("path", LITMUS)
def test_dot_has_each_node_and_edge_of_a_corpus_file(path: Path) -> None:
    """Those of bodies too: a result's edge is its node's, that of a taken value its source's."""
    test = corpus_entry(path).test
    nodes, edges = read_dot(dot(test))
    inside = list(test.nodes)
    loops = [n for n in inside if isinstance(n.attrs, LoopAttrs)]
    names = [f"var {r.name}" for r in test.resources]
    names += [n.name for n in inside]
    names += [name for n in loops if isinstance(n.attrs, LoopAttrs) for name in n.attrs.carried]
    several = len(test.graphs) > 1 or bool(test.client)
    names += [f"run {run.name}" for run in test.runs] if several else []
    assert sorted(nodes) == sorted(f'"{name}"' for name in names)
    outer = {a: b for n in inside for a, b in captures_of(n)}

    def base(name: str) -> str:
        while name in outer:
            name = outer[name]
        return name.partition(".")[0]

    wanted = {
        (base(source), n.name)
        for n in inside
        for source in (*n.inputs, n.handle, *n.after, *(f"var {r}" for r in n.resources))
        if source
    }
    for n in inside:
        if isinstance(n.attrs, LoopAttrs):
            wanted |= {(n.name, name) for name in n.attrs.carried}
            wanted |= {(base(name), n.name) for name in n.attrs.condition.results}
            wanted |= {
                (base(name), to)
                for name, to in zip(n.attrs.body.results, n.attrs.carried, strict=True)
            }
        else:
            for _, body in bodies(n):
                wanted |= {(base(name), n.name) for name in body.results}
    if several:
        wanted |= {(f"run {a}", f"run {run.name}") for run in test.runs for a in run.after}
    assert edges == {(f'"{a}"', f'"{b}"') for a, b in wanted}


@for_each("path", LITMUS)
def test_each_effect_of_a_corpus_file_stands_once(path: Path) -> None:
    """In bodies and sections too; a cluster above its members."""
    test = corpus_entry(path).test
    shown = "\n".join(lines_of(test))
    results = {name for n in test.nodes if not isinstance(n.attrs, LoopAttrs) for name in n.results}
    effects = [n.name for n in test.nodes if n.definition.has_effect]
    effects += [cluster.name for cluster in test.clusters]
    found = re.findall(r"\| +(?!chain |next )(\w+)(?::| =)", shown)
    assert sorted(name for name in found if name not in results) == sorted(effects)


def test_dot_draws_boxes_around_what_belongs_together() -> None:
    nodes, _ = read_dot(dot(clustered()))
    assert nodes['"r0"'] == nodes['"w0"'] == "group C"
    assert nodes['"r1"'] == nodes['"s0"'] == "group s0"
    assert nodes['"a"'] == nodes['"w1"'] == "group D"
    assert nodes['"r2"'] == nodes['"var X"'] == ""
    nodes, edges = read_dot(dot(corpus_entry(FOLDER / "h-section-in-a-branch-in-a-loop.yaml").test))
    assert nodes['"loop"'] == nodes['"i"'] == "node loop"
    assert nodes['"more"'] == "condition loop"
    assert nodes['"next"'] == "body loop"
    assert nodes['"pick"'] == "node pick"
    assert nodes['"read"'] == "group sec"
    assert nodes['"sum"'] == "then pick"
    assert nodes['"pad"'] == "else pick"
    assert ('"one"', '"sum"') in edges  # taken through two walls
    nodes, edges = read_dot(dot(corpus_entry(FOLDER / "sgd-synchronous.yaml").test))
    assert nodes['"u"'] == "graph chief"
    assert nodes['"run a2"'] == "client"
    assert ('"run a"', '"run a2"') in edges


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
    variable = replace(test.variables[0], name=name)
    graph = Graph("main", (replace(test.graph.nodes[0], name=name, resources=(name,)),))
    unchecked = {
        "name": name,
        "variables": (variable,),
        "graphs": (graph,),
        "nodes": graph.nodes,
        "effects": graph.nodes,
        "parts": {"main": graph},
        "types": {name: variable.type},
    }
    for field, value in unchecked.items():
        object.__setattr__(test, field, value)
    nodes, edges = read_dot(dot(test))
    assert len(nodes) == 2
    assert edges == {(f'"var {quoted}"', f'"{quoted}"')}


def test_a_transfer_is_seen_through_in_text_and_stands_in_the_graph() -> None:
    test = corpus_entry(FOLDER / "devices-neuron-two-workers.yaml").test
    assert "  f = Relu(((wr * 2) + br))" in lines_of(test)
    assert '"sm" [label="Send on cpu:0"];' in dot(test)
    assert '"sm" -> "rm";' in dot(test)


def test_a_drawing_of_a_long_chain_takes_a_second() -> None:
    """Of the processor's time; it took minutes, and takes a second."""
    test = litmus("; ".join(["X=1"] * 1900))
    start = time.process_time()
    assert text(test).count("w1899") == 1
    assert time.process_time() - start < 20
