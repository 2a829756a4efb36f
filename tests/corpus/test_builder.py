"""The short notation: each row of its table, and invalid texts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MAX_NESTING, MalformedTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, RowsAttrs
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.corpus.words import NotationError
from litmusfuzz.oracles.model import EXECUTOR, RFC
from litmusfuzz.oracles.reference import allowed_outcomes


def const(name: str, value: int, shape: tuple[int, ...] = ()) -> Node:
    return Node(name, "Const", attrs=ConstAttrs("int32", shape, value))


def write(
    name: str, op: str, value: str, after: str = "", rows: tuple[int, ...] | None = None
) -> Node:
    attrs = None if rows is None else RowsAttrs(rows)
    return Node(name, op, (value,), ("X",), (after,) if after else (), attrs)


def read(name: str, variable: str = "X", after: str = "") -> Node:
    return Node(name, "ReadVariableOp", (), (variable,), (after,) if after else ())


SCALARS: list[tuple[str, list[Node], tuple[str, ...]]] = [
    ("X=1", [const("c1_0", 1), write("w0", "AssignVariableOp", "c1_0")], ()),
    ("X=-1", [const("cm1_0", -1), write("w0", "AssignVariableOp", "cm1_0")], ()),
    ("X+=1", [const("c1_0", 1), write("w0", "AssignAddVariableOp", "c1_0")], ()),
    ("X-=1", [const("c1_0", 1), write("w0", "AssignSubVariableOp", "c1_0")], ()),
    ("r0=X", [read("r0")], ("r0",)),
    ("r0=X; X=r0", [read("r0"), write("w0", "AssignVariableOp", "r0", "r0")], ("r0",)),
    ("r0=X; X-=r0", [read("r0"), write("w0", "AssignSubVariableOp", "r0", "r0")], ("r0",)),
    *(
        (
            f"r0=X; X=r0{sign}3",
            [
                read("r0"),
                const("c3_0", 3),
                Node("t0", op, ("r0", "c3_0")),
                write("w0", "AssignVariableOp", "t0", "r0"),
            ],
            ("r0",),
        )
        for sign, op in (("+", "AddV2"), ("-", "Sub"), ("*", "Mul"))
    ),
    (
        "r0=X; r1=r0*2",
        [read("r0"), const("c2_0", 2), Node("r1", "Mul", ("r0", "c2_0"))],
        ("r0", "r1"),
    ),
    ("r0=X; r1=r0", [read("r0"), Node("r1", "Identity", ("r0",))], ("r0", "r1")),
    (
        "r0=X; r1=5",
        [read("r0"), const("c5_0", 5), Node("r1", "Identity", ("c5_0",))],
        ("r0", "r1"),
    ),
    # Terms are joined from left to right, whatever the operators.
    (
        "r0=X; r1=r0+2*r0",
        [
            read("r0"),
            const("c2_0", 2),
            Node("t0", "AddV2", ("r0", "c2_0")),
            Node("r1", "Mul", ("t0", "r0")),
        ],
        ("r0", "r1"),
    ),
    # One constant serves the whole test.
    (
        "X=1; X=1 || X=1",
        [
            const("c1_0", 1),
            write("w0", "AssignVariableOp", "c1_0"),
            write("w1", "AssignVariableOp", "c1_0", "w0"),
            write("w2", "AssignVariableOp", "c1_0"),
        ],
        (),
    ),
    # Only effects order a chain: `r1` is pure, and nothing waits for it.
    (
        "r0=X; r1=r0; r2=X",
        [read("r0"), Node("r1", "Identity", ("r0",)), read("r2", "X", "r0")],
        ("r0", "r1", "r2"),
    ),
    # The chains of SB have no edge between them.
    (
        "X=1; r0=Y || r1=X",
        [
            const("c1_0", 1),
            write("w0", "AssignVariableOp", "c1_0"),
            read("r0", "Y", "w0"),
            read("r1"),
        ],
        ("r0", "r1"),
    ),
    # Registers may be called as nodes that we name ourselves.
    (
        "X=1; w0=X; c1_0=X",
        [
            const("c1_1", 1),
            write("w1", "AssignVariableOp", "c1_1"),
            read("w0", "X", "w1"),
            read("c1_0", "X", "w0"),
        ],
        ("w0", "c1_0"),
    ),
    ("  X = 1 ;; \n ; || ", [const("c1_0", 1), write("w0", "AssignVariableOp", "c1_0")], ()),
]


@pytest.mark.parametrize(("text", "nodes", "observe"), SCALARS, ids=[t for t, _, _ in SCALARS])
def test_a_statement_gives_exactly_its_nodes(
    text: str, nodes: list[Node], observe: tuple[str, ...]
) -> None:
    test = litmus(text)
    assert list(test.graph.nodes) == nodes
    assert test.observe == observe


ROWS: list[tuple[str, list[Node]]] = [
    ("r0=X[0,2]", [Node("r0", "ResourceGather", (), ("X",), (), RowsAttrs((0, 2)))]),
    ("r0=X[ 2 , 2 ]", [Node("r0", "ResourceGather", (), ("X",), (), RowsAttrs((2, 2)))]),
    *(
        (
            f"X[0,2]{sign}1",
            [const("c1_0", 1, (2, 5)), write("w0", f"ResourceScatter{op}", "c1_0", "", (0, 2))],
        )
        for sign, op in (
            *(("=", "Update"), ("+=", "Add"), ("-=", "Sub")),
            *(("*=", "Mul"), ("min=", "Min"), ("max=", "Max"), (" max= ", "Max")),
        )
    ),
    (
        "r0=X[1]; X[0]+=r0",
        [
            Node("r0", "ResourceGather", (), ("X",), (), RowsAttrs((1,))),
            write("w0", "ResourceScatterAdd", "r0", "r0", (0,)),
        ],
    ),
    # A constant is as large as what it is written to.
    (
        "X=1; X[0]=1",
        [
            const("c1_0", 1, (3, 5)),
            write("w0", "AssignVariableOp", "c1_0"),
            const("c1_1", 1, (1, 5)),
            write("w1", "ResourceScatterUpdate", "c1_1", "w0", (0,)),
        ],
    ),
]


@pytest.mark.parametrize(("text", "nodes"), ROWS, ids=[t for t, _ in ROWS])
def test_a_statement_on_rows_gives_exactly_its_nodes(text: str, nodes: list[Node]) -> None:
    assert list(litmus(text, shape=(3, 5)).graph.nodes) == nodes


def test_variables_stand_in_the_order_of_their_first_use() -> None:
    test = litmus("r0=Yy; X=1 || r1=Z_1", dtype="int64", shape=(2,), init={"X": (1, 2)})
    assert test.variables == (
        Variable("Yy", "int64", (2,)),
        Variable("X", "int64", (2,), (1, 2)),
        Variable("Z_1", "int64", (2,)),
    )
    assert test.graph.name == "main"
    assert test.name == "litmus"
    assert litmus("X=1", name="n", description="a").description == "a"


def mistake(text: str, **options: Any) -> NotationError:
    with pytest.raises(NotationError) as caught:
        litmus(text, **options)
    assert str(caught.value).count("\n") == 0
    return caught.value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("X=1; foo", 9, "expected '=', the text ends"),
        ("X=", 3, "expected a number or a register, the text ends"),
        ("_X=1", 1, "expected a statement, as in X=1 or r0=X, got '_X'"),
        ("É=1", 1, "expected a statement, as in X=1 or r0=X, got 'É'"),
        ("X[]=1", 3, "expected a row, as in X[0,2], got ']'"),
        ("X%=2", 2, "expected '=', or '+=' or '-=', got '%'"),
        ("X/=2", 2, "/= needs rows, as in X[0]/=2"),
        ("X==1", 2, "expected '=', or '+=' or '-=', got '=='"),
        ("X=1+", 5, "expected a number or a register, the text ends"),
        ("X=1/2", 4, "expected an operator (+ - *), ';', '||', 'exists' or the end, got '/'"),
        ("call {X=1/2}", 10, "expected an operator (+ - *), ';' or '}', got '/'"),
        ("X=1 || r0=X exits (r0=1)", 13, "no statement begins with 'exits'; is it 'exists'?"),
        ("X=1; Forall (X=1)", 6, "no statement begins with 'Forall'; is it 'forall'?"),
        ("X=1 exist ~(X=1)", 5, "no statement begins with 'exist'; is it 'exists'?"),
        ("X=1 exist X=1", 5, "no statement begins with 'exist'; is it 'exists'?"),
        ("X=1 wxyz (X=1)", 5, "expected an operator (+ - *), ';', '||', 'exists' or the end, got"),
        ("x=1 || y=1 || r0=x", 1, "x is a register here, which no other chain reads: a variable "),
        ("r0=x || x=-1 || x=1", 17, "x is a register here"),
        ("r0=x || r1=X exists (x=1)", 4, "no register x in this chain"),
        ("r1=r0; r0=5; X=1", 4, "no register r0 in this chain"),
        ("{x=1} || r0=x", 2, "expected a variable"),
        ("X=--1", 4, "expected a number or a register, got '-'"),
        ("X=\u0661", 3, "expected a number or a register, got '\u0661'"),
        ("X[0,]=1", 5, "expected a row, as in X[0,2], got ']'"),
        ("X[0 1]=1", 5, "expected ']', got '1'"),
        ("r0=X[,]", 6, "expected a row, as in X[0,2], got ','"),
        ("X*=2", 2, "*= needs rows, as in X[0]*=2"),
        ("X max=2", 3, "max= needs rows, as in X[0]max=2"),
        ("X=1; X++", 7, "there is no ++: write X+=1"),
        ("X=1 | Y=2", 5, "chains are separated by '||'"),
        ("r0+=X", 3, "a register is only assigned, as in r0=X"),
        ("x+=1", 2, "a variable begins with a capital letter, as in X+=1"),
        ("r0[1]=X", 3, "a register is only assigned, as in r0=X"),
        ("r0=X; r0=Y", 7, "register r0 is assigned twice in this chain: write r1 here"),
        ("r0=X; r1=X || r0=X", 15, "register r0 is assigned in two chains, which share the names"),
        ("r0=X; r1=X || r0=X", 15, "registers: write r2 here"),
        ("a=X ||| a=X exists (a0=1)", 9, "assigned in two chains, which share the names of "),
        ("a=X ||| a=X exists (a0=1)", 9, "registers: write a1 here"),
        ("X=r0", 3, "no register r0 in this chain"),
        ("r0=X || Y=r0", 11, "no register r0 in this chain"),
        ("r0=X; r1=r0+X", 13, "expected a number or a register, but X is a variable"),
        ("X=Y", 3, "expected a number or a register, but Y is a variable"),
        ("r0=X+1", 4, "X is a variable: read it into a register first, as in r0=X; r1=r0+1"),
        ("r0=r0", 4, "no register r0 in this chain"),
        ("r0=X; Y=r0[0]", 11, "expected an operator (+ - *), ';', '||', 'exists' or the end, got"),
        ("X=1; X=1234567890123456789", 8, "a number of more than 18 digits"),
        ("x=1", 1, "a test has at least one resource: X=1 writes a variable"),
        ("X=1; X[0]=1", 6, "ResourceScatterUpdate needs rows, got int32[]"),
        ("X=16777216", 1, "magnitude must be below 2**24"),
        ("main=X; X[0]=1", 9, "ResourceScatterUpdate needs rows"),
        ("lock M; X=1; unlock N", 21, "N is not the one locked last"),
        ("X=1; lock M; X=2", 6, "lock M without unlock"),
        ("X=1; lock X", 11, "X is no mutex"),
        ("lock M; M=1; unlock M", 9, "M is a mutex"),
        ("{type float31} X=1", 7, "no dtype 'float31'; there are int32, int64,"),
        ("{type int32[x]} X=1", 13, "expected a dimension, got 'x'"),
        ("{type int32[-1]} X=1", 2, ""),
        ("{X=5; X=6} X=1", 7, "X is declared twice"),
        ("{X=5 Y=6} X=1", 6, "expected ';' or '}', got 'Y'"),
        ("{Y=5} X=1", 2, "no variable Y in the test"),
        ("{x=5} X=1", 2, "expected a variable, as in X=5, or type, queue, accumulator or run"),
        ("{X=16777216} X=1", 2, "magnitude must be below 2**24"),
        ("{queue Q 0} Q!1", 8, ""),
        ("{queue q 1} X=1", 8, "expected a resource, which begins with a capital letter"),
        ("{run a:g9} X=1", 2, ""),
        ("{X=1", 1, "a brace is not closed"),
        ("X=1 exists (r9=1)", 13, "no r9 in an outcome of this test"),
        ("X=1 exists (X=1", 16, "expected ')', the text ends"),
        ("X=1 exists (X)", 14, "expected '=' or '!=', got ')'"),
        ("X=1 exists (X=[1,2])", 5, "X=[1,2]: X is an int"),
        ("X=1 exists (X=1) Y=2", 18, "expected the end, got 'Y'"),
        ("X=1 exists (_status=ended)", 5, "_status is completed, blocked, failed"),
    ],
)
def test_a_mistake_has_its_column(text: str, column: int, message: str) -> None:
    error = mistake(text)
    assert (error.line, error.column) == (1, column)
    assert message in error.message
    line, caret = error.picture
    assert (line, caret) == (text, " " * (column - 1) + "^")


def test_a_mistake_in_a_text_of_several_lines_has_its_line() -> None:
    error = mistake("X=1\nr0=Y\n  Y=?; r1=X\n")
    assert str(error).startswith("line 3, column 5: expected a number or a register, got '?'")
    assert error.picture == ("  Y=?; r1=X", "    ^")


def test_of_a_long_line_the_part_with_the_mistake_is_shown() -> None:
    text = "; ".join(["X=1"] * 200) + "; Y=!" + "; X=2" * 200
    line, caret = mistake(text).picture
    assert len(line) <= 100
    assert line[caret.index("^")] == "!"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("X[0,99999999]=1", 1, "magnitude must be below 2**24, got 99999999"),
        ("X[0,0]=1", 1, "row 0 twice in an update"),
        ("r0=X[0,1]; X=r0", 12, "value must be int32[3], got int32[2]"),
    ],
)
def test_a_rule_that_a_statement_breaks_has_its_column(
    text: str, column: int, message: str
) -> None:
    error = mistake(text, shape=(3,))
    assert (error.column, error.message) == (column, message)


def test_what_a_newcomer_types_is_the_same_test() -> None:
    """Blanks and line breaks are free; parentheses may stand around a comparison."""
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    for text in (
        " X = 1 ;r0 = Y||Y=1;r1=X ;",
        "X = 1\nr0 = Y\n||\nY = 1\nr1 = X\n",
        "{X=0; Y=0} X=1; r0=Y || Y=1; r1=X",
        "{}\nX=1; r0=Y || Y=1; r1=X",
    ):
        assert litmus(text) == sb
    assert litmus("r0=X; if (r0 == 1) {Y=1}") == litmus("r0=X; if r0==1 { Y=1 }")
    # A statement ends with its line, unless an operator is still to come.
    assert litmus("r0=X\nX=r0 +\n1") == litmus("r0=X; X=r0+1")
    assert mistake("r0=X\nX=r0\n+1").line == 3


def test_braces_before_the_test_declare_what_arguments_do() -> None:
    declared = litmus("{type int64[2]; X=[1,2]; queue Q 2} X=1; Q!1 || r0=Q?; r1=X")
    assert declared == litmus(
        "X=1; Q!1 || r0=Q?; r1=X", dtype="int64", shape=(2,), init={"X": (1, 2)}, queues={"Q": 2}
    )
    declared = litmus("{type float32; accumulator A} A<<1 || r0=A>>1")
    assert declared == litmus("A<<1 || r0=A>>1", dtype="float32", accumulators=["A"])
    declared = litmus("{run a:g0; run b:g0; run c:g1 after a b} X+=1 ||| r0=X")
    assert declared == litmus("X+=1 ||| r0=X", client="a:g0; b:g0; c:g1 after a b")


@pytest.mark.parametrize(
    ("written", "condition"),
    [
        (r"exists (r0=0 /\ r1=0)", r"exists (r0=0 /\ r1=0)"),
        (r"exists r0=0 && r1=0", r"exists (r0=0 /\ r1=0)"),
        (r"exists (0:r0=0 /\ 1:r1=0)", r"exists (r0=0 /\ r1=0)"),
        (r"forall (r0=1 || not r1=0)", r"forall (r0=1 \/ ~(r1=0))"),
        (r"~exists (X!=Y \/ [X]=[Y])", r"~exists (X!=Y \/ X=Y)"),
        (r"forall (r0=0 => r1=1)", r"forall (r0=0 => r1=1)"),
        (r"exists (_status=blocked)", r"exists (_status=blocked)"),
    ],
)
def test_a_condition_stands_at_the_end(written: str, condition: str) -> None:
    text = "X=1; r0=Y || Y=1; r1=X"
    test = litmus(f"{text}\n{written}")
    assert str(test.condition) == condition
    assert test.asked(None) == litmus(text)
    assert loads(dumps(Entry(test))).test == test


def test_a_condition_takes_a_register_that_braces_assign() -> None:
    test = litmus("r0=X; if r0==1 { r1=2 } else { r1=3 } || X=1 exists (r1=2)")
    assert str(test.condition) == "exists (if0.r1=2)"
    test = litmus("X+=1 ||| r0=X exists (g1.r0=1)")
    assert str(test.condition) == "exists (g1.r0=1)"


@pytest.mark.parametrize("digits", [19, 5000])
def test_a_long_number_is_refused_before_it_is_converted(digits: int) -> None:
    """Python refuses to convert more than 4300 digits, with another exception."""
    for text in (f"X={'9' * digits}", f"r0=X[{'9' * digits}]"):
        with pytest.raises(MalformedTest) as caught:
            litmus(text, shape=(3,))
        assert len(str(caught.value)) < 200


def nested(head: str, depth: int) -> str:
    return f"r0=X; {head * depth} X=1 {'}' * depth}"


@pytest.mark.parametrize("head", ["if r0==0 {", "loop 1 {"])
def test_a_test_that_is_nested_can_be_written_and_read(head: str) -> None:
    deepest = litmus(nested(head, MAX_NESTING), shape=(1,) * 8)
    assert loads(dumps(Entry(deepest))).test == deepest
    with pytest.raises(MalformedTest, match="more than 8 bodies inside each other"):
        litmus(nested(head, MAX_NESTING + 1))


@pytest.mark.parametrize("head", ["if r0==0 {", "loop 1 {", "cluster {", "call {"])
def test_a_deeply_nested_text_is_refused_at_once(head: str) -> None:
    """It ended in a RecursionError, after seconds."""
    with pytest.raises(NotationError, match="braces are nested too deeply"):
        litmus(nested(head, 5000))


def test_texts_without_variables_and_wrong_initial_values_are_refused() -> None:
    for text in ("", " ; || ; ", "r0=5"):
        with pytest.raises(NotationError, match=r"column [12]: a test has at least one resource"):
            litmus(text)
    with pytest.raises(MalformedTest, match="no variable Y, Z in the test"):
        litmus("X=1", init={"Y": 1, "X": 0, "Z": 2})
    with pytest.raises(NotationError, match="column 1: magnitude"):
        litmus("X=1", init={"X": 1 << 24})


# --- blocks, clients, queues ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "rfc", "executor"),
    [
        (
            "X=1; Y=1 || r0=X; if r0==1 { r1=Y } else { r1=r0-1 }",
            {},
            {"r0=0 if0.r1=-1 X=1 Y=1", "r0=1 if0.r1=0 X=1 Y=1", "r0=1 if0.r1=1 X=1 Y=1"},
            None,
        ),
        (
            "r0=X; if r0<1 { X=2; Y=3 }; r1=Y || X=5",  # what follows waits for all of it
            {},
            {"r0=0 r1=3 X=2 Y=3", "r0=0 r1=3 X=5 Y=3", "r0=5 r1=0 X=5 Y=0"},
            None,
        ),
        ("loop 3 { X+=1 }; r0=X", {}, {"r0=3 X=3"}, None),
        (
            "r0=0; loop 2 { r0=X; X=r0+1 } || X=10",
            {},
            {
                *("r0=0 loop0.r0_0=1 X=2", "r0=0 loop0.r0_0=1 X=10"),
                *("r0=0 loop0.r0_0=10 X=11", "r0=0 loop0.r0_0=11 X=12"),
            },
            None,
        ),
        ("loop 2 while X==0 { Y+=1 } || X=1", {}, {"X=1 Y=0", "X=1 Y=1", "X=1 Y=2"}, None),
        ("loop[1] 2 free { X+=1; Y=1 }", {}, {"X=1 Y=1", "X=2 Y=1"}, {"X=2 Y=1"}),
        ("loop 2 { loop 2 { X+=1 } }", {}, {"X=4"}, None),
        (
            "loop 2 free { lock M; r0=X; X=r0+1; unlock M } || lock M; X=10; unlock M",
            {},
            {"X=10", "X=11", "X=12"},
            None,
        ),
        ("Q!1,2 || r0=Q?2; r1=size Q", {"queues": {"Q": 2}}, {"r0=[1,2] r1=0 Q=[]"}, None),
        ("Q!1; close Q; r0=Q?", {"queues": {"Q": 2}}, {"r0=1 Q=[]"}, None),
        # A register may have the name of an op: what stands on the next line is no operand.
        ("size=X; r0=size\nQ!1", {"queues": {"Q": 2}}, {"size=0 r0=0 X=0 Q=[1]"}, None),
        ("count=X; r0=count\ncall { r1=count; X=1 }", {}, {"count=0 r0=0 call0.r1=0 X=1"}, None),
        ("size=X; r0=size exists (r0=0)", {}, {"size=0 r0=0 X=0"}, None),
        (
            "r0=Y; if r0==0 { Q!1 } || Y=1; r1=Q?",
            {"queues": {"Q": 2}},
            {"_status=blocked Y=1 Q=[]", "r0=0 r1=1 Y=1 Q=[]"},
            None,
        ),
        (
            "cluster { X=1; r0=X; Y=r0 } || r1=Y",
            {},
            {"r0=1 r1=0 X=1 Y=1", "r0=1 r1=1 X=1 Y=1"},
            None,
        ),
        (
            "X+=1 ||| r0=X",
            {"client": "a:g0; b:g0; c:g1 after a b"},
            {"c.r0=1 X=1", "c.r0=2 X=2"},
            {"c.r0=2 X=2"},
        ),
    ],
)
def test_blocks_clients_and_queues(text, options, rfc, executor) -> None:
    test = litmus(text, **options)
    assert loads(dumps(Entry(test))).test == test
    for model, wanted in ((RFC, rfc), (EXECUTOR, executor or rfc)):
        assert set(map(str, allowed_outcomes(test, model).witnesses)) == wanted


def test_a_register_keeps_its_value_until_a_block_gives_it_another() -> None:
    """In the loop, r0 is what the iteration before left; in a branch, what was before."""
    test = litmus("r0=X; loop 2 { if r0==0 { Y+=1 } else { Y+=10 } ; r0=X } || X=1")
    found = {str(o) for o in allowed_outcomes(test, RFC).witnesses}
    assert found == {
        "r0=0 loop0.r0_0=0 X=1 Y=2",
        "r0=0 loop0.r0_0=1 X=1 Y=2",
        "r0=0 loop0.r0_0=1 X=1 Y=11",
        "r0=1 loop0.r0_0=1 X=1 Y=20",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if r0==1 { X=1 }", "no register r0 in this chain"),
        ("r0=X; if r0=1 { X=1 }", "expected '==' or '<', as in r0==1, got '='"),
        ("r0=X; if X==1 { X=1 }", "but X is a variable"),
        ("r0=X; if r0==1 { X=1", "a brace is not closed"),
        ("r0=X; X=1 }", "a brace too many"),
        ("r0=X; if r0==1 { X=1 } else X=2", "expected '{', got 'X'"),
        ("r0=X; if r0==1 { X=1 } { X=2 }", "or the end after the braces, got '{'"),
        ("r0=X; if r0==1 { X=1 } else { X=2 } else { X=3 }", "after the braces, got 'else'"),
        ("loop { X=1 }", "expected a number of iterations, as in loop 3 {...}, got '{'"),
        ("loop X { X=1 }", "expected a number of iterations"),
        ("loop 99 { X=1 }", "more than 64 iterations"),
        ("loop[0] 2 { X=1 }", "must be 1 to 64"),
        ("while 2 { X=1 }", "expected '=', got '2'"),
        ("loop 2 { lock M; X=1 }", "lock M without unlock"),
        ("lock M; loop 2 { unlock M }; unlock M", "not the one locked last"),
        ("loop 2 { r0=X }; X=r0", "no register r0"),
        ("cluster { lock M; X=1; unlock M; r0=X }", "cycle through a cluster"),
        ("cluster { Q!1 }", "cannot be compiled"),
        ("cluster { }", "at least one member"),
        ("Q!1,r0", "several elements are numbers"),
        ("r0=X; if r0==1 { X=1 || Y=1 }", "'||' inside braces: they hold one chain"),
        ("close P", "no queue P"),
        ("r0=size P", "no queue P"),
        ("r0=size q", "no queue q"),
        ("r0=size\nQ", "no register size in this chain"),
        ("r0=P?2", "no queue P"),
    ],
)
def test_a_block_that_is_none_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(MalformedTest) as caught:
        litmus(text, queues={"Q": 2})
    assert message in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("client", ["a", "a:g0 b:g0", "a:g9", "a:g0; b:g1 after c", "a:g0; a:g1"])
def test_a_client_that_is_none_is_refused(client: str) -> None:
    with pytest.raises(MalformedTest):
        litmus("X=1 ||| r0=X", client=client)


def test_a_notation_has_a_limit_and_its_message_too() -> None:
    with pytest.raises(MalformedTest, match="of 70,000 characters, of at most 65,536: save a file"):
        litmus("X=1; ".ljust(70_000))
    with pytest.raises(MalformedTest) as caught:
        litmus(f"r0={'M' * 60_000}1")
    assert len(str(caught.value)) < 3_000


@pytest.mark.parametrize("notation", ["loop 3 while{}b\nc {{X=1}}", "X={}1\n1", "Q!{}1\n1"])
def test_a_run_of_blanks_is_one_blank(notation: str) -> None:
    """Each way to share it out was tried: minutes."""
    start = time.process_time()
    with pytest.raises(MalformedTest):
        litmus(notation.format(" " * 40_000), queues={"Q": 1})
    assert time.process_time() - start < 2


def test_a_local_step_stands_on_the_line_of_its_gradient() -> None:
    """A line break ends a statement: the step of the next one is its own."""
    head = "{accumulator A; type float32}\nstep A 1\n"
    lines = litmus(f"{head}A<<5\nA<<6 at 2")
    assert lines == litmus(f"{head}A<<5; A<<6 at 2")
    assert lines != litmus(f"{head}A<<5 at 2; A<<6 at 2")


def test_a_register_that_is_assigned_again_means_its_last_value_in_a_condition() -> None:
    for name in ("r0", "0:r0"):
        test = litmus(f"r0=0; loop 3 {{r0=r0+1; X=r0}} exists ({name}=3)")
        assert "loop0.r0_0=3" in str(test.condition)
