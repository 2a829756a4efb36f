"""Conditions of tests: what they mean, in files and in herd's format, and who keeps them."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus import herd
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.condition import MAX_DEPTH, Atom, Condition, Name, Not, Prop
from litmusfuzz.corpus.model import MalformedTest, Naming
from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, FileError, dumps, loads
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

SB = "X=1; r0=Y || Y=1; r1=X"
FILE = dumps(Entry(litmus(f"{SB} exists (r0=0)", name="SB")))


@pytest.mark.parametrize(
    ("condition", "deciding"),
    [
        ("exists (r0=0)", {"r0=0 r1=1 X=1 Y=1"}),
        ("exists (r0=0 /\\ r1=0)", set()),
        ("exists (r0=r1)", {"r0=1 r1=1 X=1 Y=1"}),
        ("~exists (r0!=r1)", {"r0=0 r1=1 X=1 Y=1", "r0=1 r1=0 X=1 Y=1"}),
        ("forall (r0=1 \\/ r1=1)", set()),
        ("forall (r0=0 => r1=0)", {"r0=0 r1=1 X=1 Y=1"}),
        # => binds closest, then /\; without that it would hold in all.
        ("forall (r0=1 /\\ r0=0 => r1=1)", {"r0=0 r1=1 X=1 Y=1"}),
        ("forall (true)", set()),
        ("exists (~(r0=1))", {"r0=0 r1=1 X=1 Y=1"}),
    ],
)
def test_the_outcomes_that_decide_a_condition(condition: str, deciding: set[str]) -> None:
    test = litmus(f"{SB} {condition}")
    assert test.condition is not None
    found = {str(o) for o in allowed_outcomes(test, RFC).witnesses if test.condition.decides(o)}
    assert found == deciding


def test_an_outcome_without_a_value_that_is_named_does_not_satisfy_the_condition() -> None:
    """Under exists it is no witness, whatever the sign; under forall it is a counterexample."""
    text = "{queue Q 1} r0=Q? || X=1"
    blocked = Outcome((("X", (1,)), ("Q", ())), Status.BLOCKED)
    for written, decides in (
        ("exists (r0=0)", False),
        ("exists (r0!=0)", False),
        ("forall (r0!=5)", True),
        ("exists (_status=blocked /\\ X=1 /\\ Q=[])", True),
        ("exists (_status=completed)", False),
    ):
        condition = litmus(f"{text} {written}").condition
        assert condition is not None
        assert condition.decides(blocked) is decides, written


@pytest.mark.parametrize(
    ("prop", "holds"),
    [
        ("_status=completed => r0=1", True),
        ("_status=blocked => r0=1", None),
        ("r0=1 => _status=blocked", True),
        ("r0=1 => X=2", None),
        ("r0=1 => r0=1", None),  # each comparison by itself
        ("r0=1 /\\ X=2", False),
        ("r0=1 /\\ X=1", None),
        ("r0=1 \\/ X=1", True),
        ("r0=1 \\/ X=2", None),
        ("~(r0=1)", None),
        ("~(r0=1 /\\ X=2)", True),
        ("X=r0", None),
        ("r0!=X", None),
        ("true", True),
        ("r0=1 /\\ false", False),
    ],
)
def test_a_value_that_is_missing_decides_only_what_needs_it(
    prop: str,
    holds: bool | None,  # noqa: FBT001 - what is expected
) -> None:
    """True and false of a proposition are those that hold whatever the missing value is."""
    test = litmus("{queue Q 1} r0=Q? || X=1")
    blocked = Outcome((("X", (1,)), ("Q", ())), Status.BLOCKED)
    said, denied, every = (
        litmus(f"{{queue Q 1}} r0=Q? || X=1 {written}").condition
        for written in (f"exists ({prop})", f"exists (~({prop}))", f"forall ({prop})")
    )
    assert said is not None
    assert denied is not None
    assert every is not None
    assert said.holds_in(blocked) is (holds is True)
    assert denied.holds_in(blocked) is (holds is False)
    assert every.decides(blocked) is (holds is not True)
    assert set(allowed_outcomes(test, RFC).witnesses) == {blocked}


@pytest.mark.parametrize(
    "prop",
    [
        "~" * 40 + "r0=1",
        "r0=1 => " * 40 + "r0=1",
        "(" * 40 + "r0=1" + " => r1=1)" * 40,
        "(r0=1 /\\ ~(r1=1 \\/ ~" * 10 + "r0=0" + "))" * 10,
        "(" * 60 + "r0=1" + ")" * 60,
    ],
)
def test_whatever_can_be_read_can_be_saved_and_read_again(prop: str) -> None:
    test = litmus(f"{SB} exists ({prop})", name="SB")
    assert loads(dumps(Entry(test))).test == test
    again = litmus(f"{SB} {test.condition}", name="SB")
    assert again == test


def test_what_is_nested_too_deeply_is_refused_wherever_it_comes_from() -> None:
    prop: Prop = Atom("r0", 1)
    for _ in range(MAX_DEPTH):
        prop = Not(prop)
    test = litmus(SB, name="SB").asked(Condition("exists", prop))
    assert loads(dumps(Entry(test))).test == test
    for more in (1, 10_000):  # so many are more than Python can recurse
        deeper = prop
        for _ in range(more):
            deeper = Not(deeper)
        with pytest.raises(MalformedTest, match="condition: is nested too deeply"):
            litmus(SB).asked(Condition("exists", deeper))


def test_a_torn_value_equals_no_number() -> None:
    condition = litmus("{type int32[1,2]} X=1 || r0=X exists (r0=0)").condition
    assert condition is not None
    assert not condition.holds_in(Outcome((("r0", TORN), ("X", (1,)))))


def test_a_file_keeps_its_condition_byte_for_byte() -> None:
    assert "\ncondition: exists (r0=0)\n" in FILE
    assert dumps(loads(FILE)) == FILE
    assert loads(FILE).test.condition == litmus(f"{SB} exists (r0=0)").condition


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("exist (r0=0)", "column 1: expected exists, ~exists or forall, got 'exist'"),
        ("exists (r0=0", "column 13: expected ')', the text ends"),
        ("exists (r0=0) r1=0", "column 15: expected the end, got 'r1'"),
        ("exists (r9=0)", "column 9: no r9 in an outcome of this test"),
        ("exists (r0=[1,2])", "r0=[1,2]: r0 is an int"),
        ("exists (_status=late)", "_status is completed, blocked, failed"),
        ("exists " + "~" * 99 + "r0=0", "is nested too deeply"),
        ("[exists, r0]", "expected a string or nothing, got a list"),
    ],
)
def test_a_mistake_in_a_file_has_line_and_field(written: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        loads(FILE.replace("exists (r0=0)", written), "SB.yaml")
    assert str(caught.value).startswith("SB.yaml:14: condition: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("r0", "Q", "r0 is an int, Q a list of elements, each an int"),
        ("Q", "X", "Q is a list of elements, each an int, X an int"),
        ("r1", "r0", "r1 is a list of 2 ints, r0 an int"),
        ("r0", "_status", "r0 is an int, _status one of completed, blocked, failed"),
    ],
)
def test_values_that_are_compared_are_of_one_kind(left: str, right: str, message: str) -> None:
    test = litmus("Q!1; X=1 || r0=X; r1=Q?2", queues={"Q": 2})
    with pytest.raises(MalformedTest) as caught:
        test.asked(Condition("exists", Atom(left, Name(right))))
    assert str(caught.value) == f"condition: {left}={right}: {message}"
    for each in ("r0", "r1", "X", "Q"):
        test.asked(Condition("exists", Atom(each, Name(each))))


def test_a_condition_must_be_about_the_test() -> None:
    other = litmus("Z=1 exists (Z=1)").condition
    with pytest.raises(MalformedTest, match="condition: Z=1: no Z among r0, r1, X, Y, _status"):
        litmus(SB).asked(other)
    with pytest.raises(MalformedTest, match="condition: Z=1: no Z"):
        replace(litmus(SB), condition=other)


def test_renaming_renames_the_condition_and_editing_drops_it() -> None:
    test = litmus(f"{SB} exists (r0=0 /\\ X=Y)")
    renamed = test.renamed(Naming(nodes={"r0": "a"}, resources={"X": "V"}))
    assert str(renamed.condition) == "exists (a=0 /\\ V=Y)"
    assert loads(dumps(Entry(renamed))).test == renamed
    assert test.titled("other").condition == test.condition
    assert Rewriter.of(test).build() == test.asked(None)
    assert normalized(test, "small").condition is None


def test_renaming_keeps_the_runs_results_and_cells_of_a_condition() -> None:
    text = (
        "{run a:main; run b:main} r0=X; if r0==1 { r1=2 } else { r1=3 }"
        " exists (a.if0.r1=2 /\\ b.r0=0)"
    )
    renamed = litmus(text).renamed(Naming(nodes={"r0": "z", "if0": "c"}, runs={"a": "one"}))
    assert str(renamed.condition) == "exists (one.c.r1=2 /\\ b.z=0)"
    text = "{type float32; accumulator A} A<<1 exists (A.count=1 /\\ A.sum=1)"
    renamed = litmus(text).renamed(Naming(resources={"A": "B"}))
    assert str(renamed.condition) == "exists (B.count=1 /\\ B.sum=1)"


@pytest.mark.parametrize(
    "condition", ["exists (r0=0 /\\ r1=0)", "~exists (X!=Y)", "forall (r0=r1 \\/ ~(X=0))"]
)
def test_a_condition_goes_to_herd_and_back(condition: str) -> None:
    text = herd.dumps(litmus(f"{SB} {condition}", name="SB"))
    again = herd.loads(text)
    naming = {"P0_r0": "r0", "P1_r1": "r1"}
    assert again.condition is not None
    assert str(again.condition.renamed(naming)) == condition
    assert herd.dumps(again) == text


WEAK = """C weak
{ x = 0; y = 0; 0:r9 = 4; }
P0 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(x, 1, memory_order_relaxed);
  atomic_store_explicit(y, 1, memory_order_seq_cst);
}
P1 (int* x, atomic_int* y) {
  int r0 = atomic_load(y);
  int r1 = *x;
  atomic_fetch_add_explicit(y, 1, memory_order_relaxed);
}
exists (1:r0=1 /\\ 1:r1=0 /\\ 0:r9=4)
"""


def test_an_import_says_what_it_strengthened() -> None:
    imported = herd.parse(WEAK)
    assert imported.changes == (
        "Strengthened to sequential consistency: memory_order_relaxed (lines 4 and 10);"
        " plain accesses (line 9).",
        "Fetch-and-add (line 10): indivisible under the model executor, not under rfc.",
    )
    assert imported.test.description == "\n".join(imported.changes)
    # A register that its thread never assigns has no name here: it keeps its initial value.
    assert str(imported.test.condition) == "exists (P1_r0=1 /\\ P1_r1=0 /\\ true)"
    assert herd.parse(WEAK.replace("relaxed", "seq_cst").replace("*x;", "atomic_load(x);")).changes[
        :1
    ] == ("Fetch-and-add (line 10): indivisible under the model executor, not under rfc.",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("exists (X=1)", {"X": 1}),
        ("exists ((X=1 /\\ r0=2) /\\ X=1)", {"X": 1, "r0": 2}),
        ("~exists (_status=blocked /\\ r0=-2)", {"_status": "blocked", "r0": -2}),
        ("exists (X=1 /\\ X=2)", None),
        ("exists (X=1 \\/ r0=2)", None),
        ("exists (r0=1 => X=1)", None),
        ("exists (X!=1)", None),
        ("exists (X=r0)", None),
        ("exists (~(X=1))", None),
        ("exists (true)", None),
    ],
)
def test_values_that_a_condition_asks_for_together(
    text: str, values: dict[str, object] | None
) -> None:
    condition = litmus(f"X=1; r0=X {text}").condition
    assert condition is not None
    assert condition.values == values
