"""What edition 3 of the semantics says more exactly: sets by hand, by all oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.textfile import FileError, loads
from litmusfuzz.oracles import axiomatic, explorer, reference, sequential
from litmusfuzz.oracles.errors import NoProgramOrder, NotOneCluster
from litmusfuzz.oracles.model import GUARANTEES, Axiom, Model

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


def shown(test: LitmusTest, model: Model) -> set[str]:
    """The allowed set as text: that of the reference, with which the others agree."""
    found = set(reference.allowed_outcomes(test, model).witnesses)
    assert set(explorer.allowed_outcomes(test, model).witnesses) == found
    for outcome in found:
        failed = outcome.status is Status.FAILED
        wanted = Verdict.UNSPECIFIED if failed else Verdict.ALLOWED
        assert axiomatic.judge(test, model, outcome) is wanted
        assert explorer.Explorer(test, model).judge(outcome) is wanted
    return set(map(str, found))


ONE = "variables: {X: {dtype: int32}}"
BOTH = "variables: {X: {dtype: int32}, Y: {dtype: int32}}"


def file_of(resources: str, nodes: str) -> str:
    """A file with a graph, and what comes behind it."""
    return f"litmusfuzz: 2\nname: t\n{resources}\ngraphs:\n  main:\n{nodes}"


CONDITION = file_of(
    ONE,
    """\
    zero: {op: Const, dtype: int32, value: 0}
    five: {op: Const, dtype: int32, value: 5}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {v: five, most: zero}
      condition:
        nodes:
          w: {op: AssignVariableOp, resources: [X], inputs: [v]}
          again: {op: Less, inputs: [i, most]}
        results: [again]
      body:
        nodes:
          one: {op: Const, dtype: int32, value: 1}
          next: {op: AddV2, inputs: [i, one]}
        results: [next]
    r: {op: ReadVariableOp, resources: [X]}
observe: [r]
""",
)
"""Its condition assigns 5 to X, beside its comparison, which is false at once."""
ITERATIONS = (
    CONDITION.replace("v: five, most: zero", "most: five")
    .replace("int32, value: 5", "int32, value: 1")
    .replace("inputs: [v]", "inputs: [i]")
)
"""The first condition writes 0, the second 1."""


@pytest.mark.parametrize(
    ("text", "model", "wanted"),
    [
        (CONDITION, "rfc", {"r=0 X=5", "r=5 X=5"}),
        (CONDITION, "executor", {"r=0 X=5", "r=5 X=5"}),
        (CONDITION, "acd", {"r=5 X=5"}),
        (CONDITION, "program", {"r=5 X=5"}),
        (CONDITION, "sequential", {"r=5 X=5"}),
        (CONDITION, "one_cluster", {"r=5 X=5"}),
        (ITERATIONS, "executor", {"r=0 X=0", "r=0 X=1", "r=1 X=0", "r=1 X=1"}),
        (ITERATIONS, "acd", {"r=1 X=1"}),
        # The whole loop comes before the read; inside of it nothing is added.
        (ITERATIONS, "program", {"r=0 X=0", "r=1 X=1"}),
        (ITERATIONS, "sequential", {"r=1 X=1"}),
        (ITERATIONS, "one_cluster", {"r=1 X=1"}),
    ],
)
def test_effects_of_a_condition(text: str, model: str, wanted: set[str]) -> None:
    assert shown(loads(text).test, GUARANTEES[model]) == wanted


def test_results_after_effects_alone_forbid_what_a_condition_overtakes() -> None:
    test = loads(CONDITION).test
    early = Outcome.of(test, {"r": (0,), "X": (5,)})
    acd = GUARANTEES["acd"]
    without = Model("acd without it", acd.axioms - {Axiom.EFFECTS_FIRST})
    for model, verdict in ((acd, Verdict.FORBIDDEN), (without, Verdict.ALLOWED)):
        assert reference.allowed_outcomes(test, model).judge(outcome=early) is verdict
        assert explorer.Explorer(test, model).judge(early) is verdict
        assert axiomatic.judge(test, model, early) is verdict


# --- critical sections in program order --------------------------------------------------

TWO_THREADS = file_of(
    BOTH + "\nmutexes: {M: {}}",
    """\
    one: {op: Const, dtype: int32, value: 1}
    a0: {op: AssignVariableOp, resources: [X], inputs: [one]}
    a1: {op: AssignVariableOp, resources: [Y], inputs: [one]}
    a2: {op: ReadVariableOp, resources: [X]}
    s: {op: CriticalSection, resources: [M], members: [a0, a2]}
  other:
    b0: {op: ReadVariableOp, resources: [X]}
    b1: {op: ReadVariableOp, resources: [Y]}
    t: {op: CriticalSection, resources: [M], members: [b0MORE]}
observe: [other.b0, other.b1]
""",
)
"""The write of Y stands between two members of a section, and is none itself."""
NESTED = file_of(
    ONE + "\nmutexes: {M: {}, N: {}}",
    """\
    one: {op: Const, dtype: int32, value: 1}
    w: {op: AssignVariableOp, resources: [X], inputs: [one]}
    r: {op: ReadVariableOp, resources: [X]}
    s: {op: CriticalSection, resources: [M], members: [w, r]}
    t: {op: CriticalSection, resources: [N], members: [r]}
observe: [r]
""",
)


@pytest.mark.parametrize("model", ["program", "sequential"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # Both reads are members: before the first thread's section, or after it.
        (
            TWO_THREADS.replace("MORE", ", b1"),
            {"other.b0=0 other.b1=0 X=1 Y=1", "other.b0=1 other.b1=1 X=1 Y=1"},
        ),
        # The read of Y is none: it may see what is written inside the other section.
        (
            TWO_THREADS.replace("MORE", ""),
            {
                "other.b0=0 other.b1=0 X=1 Y=1",
                "other.b0=0 other.b1=1 X=1 Y=1",
                "other.b0=1 other.b1=1 X=1 Y=1",
            },
        ),
        (NESTED, {"r=1 X=1"}),
        # Locks are not re-entrant: the inner section waits for the outer one.
        (NESTED.replace("[N]", "[M]"), {"_status=blocked X=1"}),
    ],
    ids=["members", "between", "nested", "re-entrant"],
)
def test_sections_in_program_order(text: str, wanted: set[str], model: str) -> None:
    test = loads(text).test
    assert shown(test, GUARANTEES[model]) == wanted
    assert str(sequential.outcome(test)) in wanted


def test_where_a_section_stands_in_the_file_does_not_matter() -> None:
    """Its lock is taken before its first member: the read before it is not held up."""
    text = file_of(
        ONE + "\nmutexes: {M: {}}\nqueues: {Q: {dtype: int32, capacity: 1}}",
        """\
    one: {op: Const, dtype: int32, value: 1}
    r: {op: ReadVariableOp, resources: [X]}
    w: {op: AssignVariableOp, resources: [X], inputs: [one]}
    last: {op: ReadVariableOp, resources: [X]}
    s: {op: CriticalSection, resources: [M], members: [w, last]}
    q: {op: QueueDequeueV2, resources: [Q]}
    t: {op: CriticalSection, resources: [M], members: [q]}
observe: []
""",
    )
    for model in ("program", "sequential"):
        assert shown(loads(text).test, GUARANTEES[model]) == {"_status=blocked X=1 Q=[]"}


@pytest.mark.parametrize("model", ["program", "sequential"])
def test_an_edge_against_program_order_is_refused(model: str) -> None:
    """The section waits for a write that stands behind its first member."""
    text = NESTED.replace("members: [w, r]}", "members: [w, r], after: [x]}")
    text = text.replace(
        "    r: {", "    x: {op: AssignVariableOp, resources: [X], inputs: [one]}\n    r: {"
    )
    with pytest.raises(NoProgramOrder, match=r"cycle through a section: .*, by program order"):
        shown(loads(text).test, GUARANTEES[model])


def test_one_cluster_has_no_section() -> None:
    with pytest.raises(NotOneCluster, match=r"CriticalSection \(s\) cannot be compiled"):
        shown(loads(NESTED).test, GUARANTEES["one_cluster"])


def test_what_is_fed_does_not_cut_program_order() -> None:
    text = file_of(
        ONE,
        """\
    one: {op: Const, dtype: int32, value: 1}
    w: {op: AssignVariableOp, resources: [X], inputs: [one]}
    p: {op: Placeholder, dtype: int32}
    r: {op: ReadVariableOp, resources: [X]}
client:
  main: {graph: main, feeds: {p: 7}}
observe: [r]
""",
    )
    for model in ("program", "sequential"):
        assert shown(loads(text).test, GUARANTEES[model]) == {"r=1 X=1"}


def test_a_run_has_one_outcome_and_runs_race() -> None:
    """`sequential`: only what the client orders is ordered among runs."""
    text = file_of(
        ONE,
        """\
    one: {op: Const, dtype: int32, value: 1}
    w: {op: AssignVariableOp, resources: [X], inputs: [one]}
  b:
    r: {op: ReadVariableOp, resources: [X]}
client:
  main: {graph: main}
  b: {graph: b}
observe: [b.r]
""",
    )
    model = GUARANTEES["sequential"]
    assert shown(loads(text).test, model) == {"b.r=0 X=1", "b.r=1 X=1"}
    ordered = loads(text.replace("{graph: b}", "{graph: b, after: [main]}")).test
    assert shown(ordered, model) == {"b.r=1 X=1"} == {str(sequential.outcome(ordered))}


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        # Each has its snapshot before the other's write-back, or one comes after the other.
        ("", {"0 0", "0 1", "1 0"}),
        (", after: [main]", {"0 1"}),
    ],
)
def test_each_run_is_one_cluster(after: str, wanted: set[str]) -> None:
    text = file_of(
        BOTH,
        f"""\
    one: {{op: Const, dtype: int32, value: 1}}
    w: {{op: AssignVariableOp, resources: [X], inputs: [one]}}
    r: {{op: ReadVariableOp, resources: [Y]}}
  b:
    two: {{op: Const, dtype: int32, value: 1}}
    v: {{op: AssignVariableOp, resources: [Y], inputs: [two]}}
    s: {{op: ReadVariableOp, resources: [X]}}
client:
  main: {{graph: main}}
  b: {{graph: b{after}}}
observe: [main.r, b.s]
""",
    )
    expected = {f"main.r={pair[0]} b.s={pair[2]} X=1 Y=1" for pair in wanted}
    assert shown(loads(text).test, GUARANTEES["one_cluster"]) == expected


# --- what an edge waits for ------------------------------------------------------------------

WAITS = file_of(
    BOTH,
    """\
    one: {op: Const, dtype: int32, value: 1}
    a: {op: ReadVariableOp, resources: [X]}
    f:
      op: Call
      captures: {unused: a, v: one}
      results: [y]
      body:
        nodes: {w: {op: AssignVariableOp, resources: [Y], inputs: [v]}}
        results: [v]
    same: {op: Identity, inputs: [f.y]}
    b: {op: AssignVariableOp, resources: [X], inputs: [one], after: [f]}
    r: {op: ReadVariableOp, resources: [Y], after: [EDGE]}
observe: [a, r]
""",
)
"""The call does not use what `a` reads, and its result does not wait for its write."""


@pytest.mark.parametrize(
    ("edge", "reads"),
    [
        # An edge from the call as a whole waits for the write inside, not for its argument.
        ("f", {"1"}),
        # One that names the result waits for that alone.
        ("same", {"0", "1"}),
    ],
)
def test_what_an_edge_out_of_a_call_waits_for(edge: str, reads: set[str]) -> None:
    wanted = {f"a={a} r={r} X=1 Y=1" for a in "01" for r in reads}
    test = loads(WAITS.replace("EDGE", edge)).test
    assert shown(test, GUARANTEES["rfc"]) == wanted
    assert shown(test, GUARANTEES["executor"]) == wanted


CLOSE = """\
litmusfuzz: 2
name: close
queues: {Q: {dtype: int32, capacity: 2}}
graphs:
  main:
    c: {op: Const, dtype: int32, value: 1}
    zero: {op: Const, dtype: int32, value: 0}
    yes: {op: Const, dtype: bool, value: 1}
NODE
    same: {op: Identity, inputs: [node.y]}
    shut: {op: QueueCloseV2, resources: [Q], after: [EDGE]}
"""
HOLDERS = {
    "Call": """\
    node:
      op: Call
      captures: {a: c}
      results: [x, y]
      body:""",
    "If": """\
    node:
      op: If
      inputs: [yes]
      captures: {a: c}
      results: [x, y]
      else: {results: [a, a]}
      then:""",
}
INSIDE = """
        nodes:
          put: {op: QueueEnqueueV2, resources: [Q], inputs: [a]}
          late: {op: Identity, inputs: [a], after: [put]}
        results: [FIRST, SECOND]"""
LOOP = """\
    node:
      op: While
      inputs: [zero, c]
      carried: [i, y]
      captures: {most: c}
      condition:
        nodes: {again: {op: Less, inputs: [i, most]}}
        results: [again]
      body:
        nodes:
          put: {op: QueueEnqueueV2, resources: [Q], inputs: [CHAIN]}
          one: {op: Const, dtype: int32, value: 1}
          next: {op: AddV2, inputs: [i, one]}
          late: {op: Identity, inputs: [CHAIN], after: [put]}
        results: [next, SECOND]"""


@pytest.mark.parametrize(
    ("node", "edge", "good"),
    [
        *(
            (f"{text}{INSIDE}".replace("FIRST", first).replace("SECOND", second), edge, good)
            for text in HOLDERS.values()
            for first, second, edge, good in (
                ("a", "late", "same", True),
                ("late", "a", "same", False),  # the other result is named
                ("late", "a", "node", True),  # one of those that the edge waits for
            )
        ),
        (HOLDERS["Call"] + INSIDE.replace("FIRST", "a").replace("SECOND", "a"), "node", True),
        (HOLDERS["If"] + INSIDE.replace("FIRST", "a").replace("SECOND", "a"), "node", False),
        (LOOP.replace("CHAIN", "y").replace("SECOND", "late"), "same", True),
        # The last value waits for the last enqueue only.
        (LOOP.replace("CHAIN", "most").replace("SECOND", "late"), "same", False),
        (LOOP.replace("CHAIN", "y").replace("SECOND", "y"), "same", False),
        # An argument that the body does not use; the enqueue comes before it.
        (
            "    put: {op: QueueEnqueueV2, resources: [Q], inputs: [c]}\n"
            "    past: {op: Identity, inputs: [c], after: [put]}\n"
            "    node:\n      op: Call\n      captures: {a: past, b: c}\n      results: [y]\n"
            "      body: {results: [b]}",
            "node",
            False,
        ),
    ],
)
def test_a_close_waits_for_every_enqueue(node: str, edge: str, *, good: bool) -> None:
    text = CLOSE.replace("NODE", node).replace("EDGE", edge)
    if good:
        failed = Outcome((), Status.FAILED)
        assert (
            failed not in reference.allowed_outcomes(loads(text).test, GUARANTEES["rfc"]).witnesses
        )
    else:
        with pytest.raises(FileError, match="is not ordered before it"):
            loads(text)


# --- what is no read, and what fails ---------------------------------------------------------

SIZES = file_of(
    "queues: {Q: {dtype: int32, capacity: 1}}",
    """\
    s0: {op: QueueSizeV2, resources: [Q]}
    s1: {op: QueueSizeV2, resources: [Q]}
  other:
    c: {op: Const, dtype: int32, value: 1}
    put: {op: QueueEnqueueV2, resources: [Q], inputs: [c]}
observe: [main.s0, main.s1]
""",
)
COUNTS = (
    SIZES.replace("queues: {Q: {dtype: int32, capacity: 1}}", "accumulators: {Q: {dtype: float32}}")
    .replace("QueueSizeV2", "ResourceAccumulatorNumAccumulated")
    .replace("    c: {", "    step: {op: Const, dtype: int64, value: 0}\n    c: {")
    .replace("dtype: int32, value: 1", "dtype: float32, value: 1")
    .replace("QueueEnqueueV2", "ResourceAccumulatorApplyGradient")
    .replace("inputs: [c]", "inputs: [step, c]")
)


@pytest.mark.parametrize(
    ("text", "left"), [(SIZES, "Q=[1]"), (COUNTS, "Q.sum=1 Q.count=1")], ids=["size", "count"]
)
def test_acd_orders_what_tells_a_number(text: str, left: str) -> None:
    test = loads(text).test
    both = {f"main.s0={a} main.s1={b} {left}" for a, b in ((0, 0), (0, 1), (1, 1))}
    assert shown(test, GUARANTEES["acd"]) == both
    assert shown(test, GUARANTEES["executor"]) == both | {f"main.s0=1 main.s1=0 {left}"}


@pytest.mark.parametrize("number", [0, -1])
def test_a_take_of_nothing_fails_when_it_joins(number: int) -> None:
    """Behind another take, which waits for ever: it need not come to the head of the line."""
    text = file_of(
        "accumulators: {A: {dtype: float32}}",
        f"""\
    one: {{op: Const, dtype: int32, value: 1}}
    none: {{op: Const, dtype: int32, value: {number}}}
    first: {{op: ResourceAccumulatorTakeGradient, resources: [A], inputs: [one]}}
    second: {{op: ResourceAccumulatorTakeGradient, resources: [A], inputs: [none]}}
observe: []
""",
    )
    test = loads(text).test
    for name in ("rfc", "executor"):
        assert shown(test, GUARANTEES[name]) == {"_status=failed"}


# --- ops on variables and queues -------------------------------------------------------------


def test_whether_there_is_a_value_through_a_chosen_handle() -> None:
    text = file_of(
        BOTH.replace("int32", "int32, initialized: false"),
        """\
    hx: {op: VarHandleOp, variable: X}
    hy: {op: VarHandleOp, variable: Y}
    c: {op: Const, dtype: int32, value: 1}
    b: {op: VarIsInitializedOp, resources: [Y], handle: hy}
    pick:
      op: If
      inputs: [b]
      captures: {p: hx, q: hy}
      results: [h]
      then: {results: [q]}
      else: {results: [p]}
    s: {op: VarIsInitializedOp, resources: [X, Y], handle: pick.h}
    w: {op: AssignVariableOp, resources: [Y], inputs: [c]}
observe: [b, s]
""",
    )
    test = loads(text).test
    # Before the write of Y, X is asked for, which has none ever; after it, Y.
    both = {"b=0 s=0 X=[] Y=1", "b=1 s=1 X=[] Y=1"}
    for name, wanted in (("rfc", both), ("acd", both), ("program", {"b=0 s=0 X=[] Y=1"})):
        assert shown(test, GUARANTEES[name]) == wanted


def test_several_elements_beside_an_op_that_mixes_lanes() -> None:
    text = file_of(
        "variables: {X: {dtype: int32, shape: [3], init: [1, 2, 3]}}\n"
        "queues: {Q: {dtype: int32, capacity: 2}}",
        """\
    r: {op: ReadVariableOp, resources: [X]}
    axis: {op: Const, dtype: int32, shape: [1], value: [0]}
    back: {op: ReverseV2, inputs: [r, axis]}
    put: {op: QueueEnqueueManyV2, resources: [Q], inputs: [back]}
    seven: {op: Const, dtype: int32, value: 7}
    single: {op: QueueEnqueueV2, resources: [Q], inputs: [seven]}
    take: {op: QueueDequeueManyV2, resources: [Q], count: 2}
    sum: {op: Sum, inputs: [take, axis]}
observe: [take, sum]
""",
    )
    # 3, 2, 1 with 7 at one of four places; the second take of an element frees the last place.
    wanted = {
        "take=[7,3] sum=10 X=[1,2,3] Q=[2,1]",
        "take=[3,7] sum=10 X=[1,2,3] Q=[2,1]",
        "take=[3,2] sum=5 X=[1,2,3] Q=[7,1]",
        "take=[3,2] sum=5 X=[1,2,3] Q=[1,7]",
    }
    test = loads(text).test
    assert shown(test, GUARANTEES["rfc"]) == shown(test, GUARANTEES["executor"]) == wanted
    # One after another: the third element finds no place, and the take never comes.
    for name in ("acd", "program"):
        assert shown(test, GUARANTEES[name]) == {"_status=blocked X=[1,2,3] Q=[3,2]"}
    with pytest.raises(FileError, match=r"takes a queue of scalars, got int32\[2\]"):
        loads(text.replace("queues: {Q: {dtype: int32,", "queues: {Q: {dtype: int32, shape: [2],"))
