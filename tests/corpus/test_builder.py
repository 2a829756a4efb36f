"""The short notation: each row of its table, and invalid texts."""

from __future__ import annotations

import time

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MAX_NESTING, MalformedTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, RowsAttrs
from litmusfuzz.corpus.textfile import Entry, dumps, loads
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


@pytest.mark.parametrize(
    ("text", "statement", "message"),
    [
        ("X=1; foo", "foo", "not a statement: "),
        ("X=", "X=", "not a statement: "),
        ("_X=1", "_X=1", "not a statement: "),
        ("É=1", "É=1", "not a statement: "),
        ("X[]=1", "X[]=1", "not a statement: "),
        ("X=1\n+2", "X=1\n+2", "not a statement: "),
        ("X%=2", "X%=2", "not a statement: "),
        ("X/=2", "X/=2", "/= needs rows: "),
        ("X==1", "X==1", "not an expression: "),
        ("X=1+", "X=1+", "not an expression: "),
        ("X=1/2", "X=1/2", "not an expression: "),
        ("X=--1", "X=--1", "not an expression: "),
        ("X=\u0661", "X=\u0661", "not an expression: "),
        ("X[ ]=1", "X[ ]=1", "not a list of rows: "),
        ("X[0,]=1", "X[0,]=1", "not a list of rows: "),
        ("X[0 1]=1", "X[0 1]=1", "not a list of rows: "),
        ("r0=X[,]", "r0=X[,]", "not a list of rows: "),
        ("X*=2", "X*=2", "*= needs rows: "),
        ("X max=2", "X max=2", "max= needs rows: "),
        ("r0+=X", "r0+=X", "a register is only assigned: "),
        ("r0[1]=X", "r0[1]=X", "a register is only assigned: "),
        ("r0=X; r0=Y", "r0=Y", "register r0 is assigned twice: "),
        ("r0=X || r0=X", "r0=X", "register r0 is assigned twice: "),
        ("X=r0", "X=r0", "no register r0 in this chain: "),
        ("r0=X || Y=r0", "Y=r0", "no register r0 in this chain: "),
        ("r0=X; r1=r0+X", "r1=r0+X", "no register X in this chain: "),
        ("X=Y", "X=Y", "no register Y in this chain: "),
        ("r0=r0", "r0=r0", "no register r0 in this chain: "),
        ("r0=X; Y=r0[0]", "Y=r0[0]", "no register r0[0] in this chain: "),
        (
            "X=1; X=1234567890123456789",
            "X=1234567890123456789",
            "a number of more than 18 digits: ",
        ),
    ],
)
def test_an_error_names_the_statement(text: str, statement: str, message: str) -> None:
    with pytest.raises(MalformedTest) as caught:
        litmus(text)
    assert str(caught.value) == f"{message}{statement!r}"


@pytest.mark.parametrize(
    ("text", "statement", "message"),
    [
        ("X=1; X[0]=1", "X[0]=1", "graphs.main.w1.resources.0: ResourceScatterUpdate needs rows"),
        (
            "X=16777216",
            "X=16777216",
            "graphs.main.c16777216_0.value: magnitude must be below",
        ),
        ("main=X; X[0]=1", "X[0]=1", "graphs.main.w0.resources.0: ResourceScatterUpdate needs"),
    ],
)
def test_a_rule_of_the_format_names_the_statement_too(
    text: str, statement: str, message: str
) -> None:
    with pytest.raises(MalformedTest) as caught:
        litmus(text)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(f": {statement!r}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X[0,3]=1", "graphs.main.w0.indices.1: row 3 of 3: 'X[0,3]=1'"),
        ("X[0,0]=1", "graphs.main.w0.indices.1: row 0 twice in an update: 'X[0,0]=1'"),
        (
            "r0=X[0,1]; X=r0",
            "graphs.main.w0.inputs.0: value must be int32[3], got int32[2]: 'X=r0'",
        ),
    ],
)
def test_a_statement_on_rows_is_named(text: str, message: str) -> None:
    with pytest.raises(MalformedTest) as caught:
        litmus(text, shape=(3,))
    assert str(caught.value) == message


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


@pytest.mark.parametrize("head", ["if r0==0 {", "loop 1 {", "cluster {", "{"])
def test_a_deeply_nested_text_is_refused_at_once(head: str) -> None:
    """It ended in a RecursionError, after seconds."""
    with pytest.raises(MalformedTest, match="braces are nested too deeply"):
        litmus(nested(head, 5000))


def test_texts_without_variables_and_wrong_initial_values_are_refused() -> None:
    for text in ("", " ; || ; ", "r0=5"):
        with pytest.raises(MalformedTest, match="variables: a test has at least one resource"):
            litmus(text)
    with pytest.raises(MalformedTest, match="no variable Y, Z in 'X=1'"):
        litmus("X=1", init={"Y": 1, "X": 0, "Z": 2})
    with pytest.raises(MalformedTest, match=r"variables\.X\.init: magnitude"):
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
        ("r0=X; if r0=1 { X=1 }", "a test is as in"),
        ("r0=X; if X==1 { X=1 }", "no register X"),
        ("r0=X; if r0==1 { X=1", "a brace is not closed"),
        ("r0=X; X=1 }", "a brace too many"),
        ("r0=X; if r0==1 { X=1 } else X=2", "not a statement"),
        ("r0=X; if r0==1 { X=1 } { X=2 }", "not a statement"),
        ("r0=X; if r0==1 { X=1 } else { X=2 } else { X=3 }", "not a statement"),
        ("loop { X=1 }", "a loop is as in"),
        ("loop X { X=1 }", "a loop is as in"),
        ("loop 99 { X=1 }", "more than 64 iterations"),
        ("loop[0] 2 { X=1 }", "must be 1 to 64"),
        ("while 2 { X=1 }", "not a statement"),
        ("loop 2 { lock M; X=1 }", "lock M without unlock"),
        ("lock M; loop 2 { unlock M }; unlock M", "not the one locked last"),
        ("loop 2 { r0=X }; X=r0", "no register r0"),
        ("cluster { lock M; X=1; unlock M; r0=X }", "cycle through a cluster"),
        ("cluster { Q!1 }", "cannot be compiled"),
        ("cluster { }", "at least one member"),
        ("Q!1,r0", "several elements are numbers"),
        ("close P", "no queue P"),
        ("r0=size P", "no queue P"),
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
