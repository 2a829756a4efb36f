"""Herd's C: imported tests keep their meaning, and exported tests are read back."""

from __future__ import annotations

import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, allowed_values, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.herd import (
    DoesNotFit,
    condition_of,
    dumps,
    layout,
    loads,
    log,
    parse,
    read_log,
)
from litmusfuzz.corpus.model import Cluster, Graph, LitmusTest, Node, Run, Variable
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import FileError
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.oracles.model import Model

HERD7 = shutil.which("herd7")
# Those of the corpus that herd's C can say; a lower number means that something broke.
FITTING_MIN = 111

C11_SB = """C SB
"PodWR Fre PodWR Fre"
Cycle=Fre PodWR Fre PodWR
{ [x] = 0; [y] = 0; }

P0 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(x, 1, memory_order_seq_cst);
  int r0 = atomic_load_explicit(y, memory_order_seq_cst);
}

P1 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(y, 1, memory_order_relaxed);
  int r0 = atomic_load_explicit(x, memory_order_acquire);
}

exists (0:r0=0 /\\ 1:r0=0)
"""
LKMM_MP = """C MP+onces

(*
 * Result: Sometimes
 *
 * Without barriers (see { and } of the threads) the flag tells nothing.
 *)

{}

P0(int *x, int *y)
{
\tWRITE_ONCE(*x, 1);
\tWRITE_ONCE(*y, 1);
}

P1(int *x, int *y)
{
\tint r0;
\tint r1;

\tr0 = READ_ONCE(*y);
\tr1 = READ_ONCE(*x); // the data
}

exists (1:r0=1 /\\ 1:r1=0)
"""
LKMM_LB = """C LB+poacquireonce+pooncerelease
{}
P0(int *x, int *y)
{
\tint r0;
\tr0 = READ_ONCE(*x);
\tsmp_store_release(y, 1);
}
P1(int *x, int *y)
{
\tint r0;
\tr0 = smp_load_acquire(y);
\tWRITE_ONCE(*x, 1);
}
exists (0:r0=1 /\\ 1:r0=1)
"""
LKMM_R = """C R+mbonceonces
{ x = 0; y = 0 }
P0(int *x, int *y)
{
\tWRITE_ONCE(*x, 1);
\tsmp_mb();
\tWRITE_ONCE(*y, 1);
}
P1(int *x, int *y)
{
\tint r0;
\tWRITE_ONCE(*y, 2);
\tsmp_mb();
\tr0 = READ_ONCE(*x);
}
exists (y=2 /\\ 1:r0=0)
"""
IRIW = """C IRIW
{ int x = 0; int y = 0; }
P0(atomic_int *x) { atomic_store(x, 1); }
P1(atomic_int *x, atomic_int *y) { int r0 = atomic_load(x); int r1 = atomic_load(y); }
P2(atomic_int *y) { atomic_store(y, 1); }
P3(atomic_int *x, atomic_int *y) { int r0 = atomic_load(y); int r1 = atomic_load(x); }
~exists (1:r0=1 /\\ 1:r1=0 /\\ 3:r0=1 /\\ 3:r1=0)
"""
TWO_PLUS_TWO_W = """C 2+2W
{}
P0 (volatile int* x, volatile int* y) { *x = 2; *y = 1; }
P1 (volatile int* x, volatile int* y) { *y = 2; *x = 1; }
locations [x; y;]
exists (x=2 /\\ y=2)
"""
S_DATA = """C S+data
{ atomic_int x = 0; atomic_int *y; }
P0 (atomic_int *x, atomic_int *y) {
  atomic_store_explicit(x, 2, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  atomic_store_explicit(y, 1, memory_order_relaxed);
}
P1 (atomic_int *x, atomic_int *y) {
  int r0 = atomic_load_explicit(y, memory_order_relaxed);
  atomic_store_explicit(x, r0 + 0, memory_order_relaxed); /* a data dependency */
}
exists ([x]=2 /\\ 1:r0=1)
"""
WRC = """C WRC+copy
{ x = 0; [y] = 0; }
P0 (int *x) { *x = 1; }
P1 (int *x, int *y) { int r0 = *x; *y = r0; }
P2 (int *x, int *y) { int r0 = *y; int r1 = *x; }
forall (2:r0=0 \\/ 2:r1=1)
"""
COUNTER = """C counter
{ atomic_t x = ATOMIC_INIT(5); }
P0 (atomic_int *x) { atomic_fetch_add_explicit(x, 1, memory_order_relaxed); }
P1 (atomic_int *x) { atomic_fetch_sub(x, 2); }
forall (x = 4)
"""
KERNEL_COUNTER = """C inc+dec
{ atomic_t x = ATOMIC_INIT(0x10); }
P0(atomic_t *x) { atomic_inc(x); int r0 = atomic_read(x); }
P1(atomic_t *x) { atomic_add(3, x); atomic_dec(x); }
exists (x=19 /\\ 0:r0=17)
"""
RFI = """C SB+rfi-pos
{}
P0(int *x, int *y)
{
\tint r1;
\tint r2;
\tWRITE_ONCE(*x, 1);
\tr1 = READ_ONCE(*x);
\tr2 = READ_ONCE(*y);
}
P1(int *x, int *y)
{
\tint r3;
\tint r4;
\tWRITE_ONCE(*y, 1);
\tr3 = READ_ONCE(*y);
\tr4 = READ_ONCE(*x);
}
locations [0:r1; 1:r3; x; y] (* what the condition does not name *)
exists (0:r2=0 /\\ 1:r4=0)
"""
TEXTS = (
    *(C11_SB, LKMM_MP, LKMM_LB, LKMM_R, IRIW, TWO_PLUS_TWO_W, S_DATA, WRC, COUNTER),
    *(KERNEL_COUNTER, RFI),
)


def states(test: LitmusTest, model: Model, places: tuple[str, ...]) -> set[tuple[object, ...]]:
    """The allowed set by herd's locations."""
    names = layout(test).names
    return allowed_values(test, model, *(names[place] for place in places))


def refusal(text: str) -> str:
    """Why a text is not read; "" if it is."""
    try:
        loads(text, "f")
    except FileError as error:
        return str(error)
    return ""


def verdict(text: str, model: Model = RFC) -> bool:
    """Whether the condition is validated under sequential consistency."""
    imported = parse(text)
    assert imported.condition is not None
    places = tuple(layout(imported.test).names)
    found = states(imported.test, model, places)
    return imported.condition.validated([dict(zip(places, row, strict=True)) for row in found])  # type: ignore[arg-type]


# --- what is read ----------------------------------------------------------------------


def test_sb_of_c11_has_the_three_outcomes_of_interleaving() -> None:
    """Whatever the memory orders say: they count as seq_cst."""
    test = loads(C11_SB)
    assert test.names == ("P0_r0", "P1_r0", "x", "y")
    assert allowed_values(test, RFC) == {(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 1, 1)}
    assert str(test.condition) == "exists (P0_r0=0 /\\ P1_r0=0)"
    assert test.description == (
        "PodWR Fre PodWR Fre\nStrengthened to sequential consistency: memory_order_relaxed"
        " (line 12); memory_order_acquire (line 13)."
    )
    assert not verdict(C11_SB)


def test_mp_of_the_kernel() -> None:
    test = loads(LKMM_MP)
    assert test.name == "MP+onces"
    assert allowed_values(test, RFC, "P1_r0", "P1_r1") == {(0, 0), (0, 1), (1, 1)}
    assert not verdict(LKMM_MP)


def test_lb_of_the_kernel() -> None:
    assert states(loads(LKMM_LB), RFC, ("0:r0", "1:r0")) == {(0, 0), (0, 1), (1, 0)}
    assert not verdict(LKMM_LB)


def test_r_of_the_kernel_with_full_barriers() -> None:
    assert states(loads(LKMM_R), RFC, ("1:r0", "y")) == {(0, 1), (1, 1), (1, 2)}
    assert not verdict(LKMM_R)


def test_iriw_forbids_that_readers_disagree() -> None:
    every = {(a, b, c, d) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)}
    places = ("1:r0", "1:r1", "3:r0", "3:r1")
    assert states(loads(IRIW), RFC, places) == every - {(1, 0, 1, 0)}
    assert verdict(IRIW)


def test_2_plus_2w_forbids_that_both_first_writes_last() -> None:
    assert states(loads(TWO_PLUS_TWO_W), RFC, ("x", "y")) == {(1, 1), (1, 2), (2, 1)}
    assert parse(TWO_PLUS_TWO_W).locations == ("x", "y")
    assert not verdict(TWO_PLUS_TWO_W)


def test_s_with_a_data_dependency() -> None:
    assert states(loads(S_DATA), RFC, ("1:r0", "x")) == {(0, 0), (0, 2), (1, 1)}
    assert not verdict(S_DATA)


def test_wrc_through_a_copy() -> None:
    rows = {(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (1, 1, 1)}
    assert states(loads(WRC), RFC, ("1:r0", "2:r0", "2:r1")) == rows
    assert verdict(WRC)


def test_a_fetch_and_add_is_indivisible_under_executor_only() -> None:
    assert states(loads(COUNTER), EXECUTOR, ("x",)) == {(4,)}
    assert states(loads(COUNTER), RFC, ("x",)) == {(3,), (4,), (6,)}
    assert verdict(COUNTER, EXECUTOR)
    assert not verdict(COUNTER, RFC)


def test_the_kernel_s_counters_and_a_hexadecimal_number() -> None:
    rows = {(17, 19), (19, 19), (20, 19)}
    assert states(loads(KERNEL_COUNTER), EXECUTOR, ("0:r0", "x")) == rows
    assert verdict(KERNEL_COUNTER, EXECUTOR)


def test_a_thread_reads_its_own_write() -> None:
    imported = parse(RFI)
    places = ("0:r1", "1:r3", "x", "y", "0:r2", "1:r4")
    assert imported.locations == places
    assert states(imported.test, RFC, ("0:r2", "1:r4")) == {(0, 1), (1, 0), (1, 1)}


def test_a_register_assigned_twice_shows_its_last_value() -> None:
    text = "C twice\n{ x=7; 0:r2=3 }\nP0 (int *x) {\n int r0 = *x; r0 = r0 + r2 - 1;\n"
    text += " int r1 = r0; r2 = 2 * (r1 - -4); *x = r0; }\nforall (0:r0=0:r1 /\\ true)"
    assert states(loads(text), RFC, ("0:r0", "0:r1", "0:r2", "x")) == {(9, 9, 26, 9)}
    assert verdict(text)


def test_names_that_are_not_ours_are_changed() -> None:
    test = loads("C a/b[c]\n{ _x = 2 }\nP0 (int *_x, int64_t *y) { *y = 3; int _r = *_x; }")
    assert test.name == "a_b_c_"
    assert test.names == ("P0__r", "v_x", "y")
    assert [v.dtype for v in test.variables] == ["int32", "int64"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("forall (0:r0=1 => x=1)", True),
        # `=>` binds closer than `/\`, so that the second part is false.
        ("forall (0:r0=1 => x=1 /\\ x=2)", False),
        ("forall (0:r0=2 => x=9 \\/ false)", True),
        ("~exists (x!=1)", True),
        ("exists (~(x=1))", False),
        ("exists (not x==1 \\/ [x]=0x1)", True),
        ("forall ((0:r0=0 \\/ 0:r0=1) /\\ true)", True),
        ("forall (0:r0=[x])", False),
        ("(x=1)", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:  # noqa: FBT001
    test = "C c\n{}\nP0 (int *x) { int r0 = *x; }\nP1 (int *x) { *x = 1; }\n"
    assert verdict(test + text) is holds


def test_a_condition_is_printed_so_that_it_is_read_again() -> None:
    test = "C c\n{}\nP0 (int *x) { int r0 = *x; }\n"
    prop = "(~(x=1) \\/ 0:r0!=2) /\\ (x=1 => 0:r0=x0) /\\ false"
    condition = parse(test + f"~exists ({prop.replace('x0', '[x]')})").condition
    again = parse(test + str(condition).replace("0:r0=x)", "0:r0=[x])")).condition
    assert condition == again


# --- what is refused -------------------------------------------------------------------

P0 = "C t\n{ x=0; y=0 }\nP0 (atomic_int *x, atomic_int *y) {\n  "
REFUSED = [
    ("", "f:1: a test begins with C and its name"),
    ("X86 SB\n{}\n", "f:1: a test for X86; only C is read"),
    ("AArch64 MP\n", "f:1: a test for AArch64; only C is read"),
    ("LISA MP\n{}", "f:1: a test for LISA; only C is read"),
    ("C t\nno block", "f:2: expected '{' before the initial values, the text ends"),
    ("C t\n{}\n", "f:3: expected a thread P0, the text ends"),
    ("C t\n{ int x[2] = {1,2}; }", "f:2: init: x: an array; only scalars are read"),
    ("C t\n{\n x=1;\n y=x }", "f:4: init: a pointer as a value is not read"),
    ("C t\n{ int *y = &x; }", "f:2: init: a pointer as a value is not read"),
    ("C t\n{ x=1; x=1 }", "f:2: init: x stands twice"),
    ("C t\n{ uint32_t x; }", "f:2: init: type uint32_t: only int, int64_t, long and their"),
    ("C t\n{ x=017 }", "f:2: init: a number that is octal: '017'"),
    ("C t\n{ x=16777216 }\nP0(int *x) { *x = 1; }", "f:2: init: magnitude must be below"),
    (f"C t\n{{{''.join(f'int x{n};' for n in range(65))}}}\n", "f:2: init: more than 64 variables"),
    (
        f"C t\n{{}}\nP0({', '.join(f'int *x{n}' for n in range(65))}) {{ *x0 = 1; }}",
        "f:3: P0: more than 64 variables",
    ),
    (
        "C t\n{}\n" + "".join(f"P{n}(int *x) {{ *x = 1; }}\n" for n in range(2049)),
        "f:2051: more than 2048 threads",
    ),
    ("C t\n{}\nP1(int *x) { *x = 1; }", "f:3: threads are P0, P1, ... in order: expected P0"),
    ("C t\n{}\nP0(int *x) { int r0 = 1; }", "f:3: P0: a thread without an access"),
    ("C t\n{}\nP0(int x) { }", "f:3: P0: a parameter is a pointer to a variable"),
    ("C t\n{}\nP0(int **x) { }", "f:3: P0: a pointer as a value is not read"),
    ("C t\n{}\nP0(int *x) { *x=1; }\nP1(long *x) {}", "f:4: P1: x is int32 elsewhere"),
    ("C t\n{}\nP0(int *x, long *y) {\n int r0 = *x;\n *y=r0; }", "f:5: P0: y is int64, the value"),
    (P0 + "if (1) *x = 1; }", "f:4: P0: if: branches are not read"),
    (P0 + "*x = 1;\n while (1) {} }", "f:5: P0: while: loops are not read"),
    (P0 + "{ *x = 1; } }", "f:4: P0: a block inside a thread is not read"),
    (P0 + "int *r0 = *x; }", "f:4: P0: a pointer in a register is not read"),
    (P0 + "*x = y; }", "f:4: P0: y: a pointer as a value is not read"),
    (P0 + "*x = &y; }", "f:4: P0: a pointer as a value is not read"),
    (P0 + "*x = *y; }", "f:4: P0: more than one access in a statement"),
    # Two loads in one statement have no order in C.
    (P0 + "int r0 = *x + *y; }", "f:4: P0: more than one access in a statement"),
    (P0 + "x = 1; }", "f:4: P0: x is a pointer to a variable, not a register"),
    (P0 + "*z = 1; }", "f:4: P0: z is no parameter of this thread"),
    (P0 + "*x = r0; }", "f:4: P0: register r0 has no value yet"),
    (P0 + "int r0 = *x; *y = r0 ^ r0; }", "f:4: P0: operator ^: only + - * are read"),
    (P0 + "int r0 = (*x == 1); }", "f:4: P0: operator ==: only + - * are read"),
    (P0 + "*x = (int) 1; }", "f:4: P0: a cast is not read"),
    (P0 + "spin_lock(x); }", "f:4: P0: spin_lock is not read"),
    (P0 + "synchronize_rcu(); }", "f:4: P0: synchronize_rcu is not read"),
    (P0 + "atomic_load(x); }", "f:4: P0: atomic_load: its value is dropped"),
    (
        P0 + "int r0 = atomic_fetch_add_explicit(x, 1, memory_order_relaxed); }",
        "f:4: P0: atomic_fetch_add_explicit: a read-modify-write whose value is used is not read",
    ),
    (P0 + "int r0 = xchg(x, 1); }", "f:4: P0: xchg: a read-modify-write whose value is used"),
    (P0 + "atomic_exchange(x, 1); }", "f:4: P0: atomic_exchange is not read"),
    (P0 + "atomic_store_explicit(x, 1); }", "f:4: P0: expected ',', got ')'"),
    (P0 + "atomic_store_explicit(x, 1, strong); }", "f:4: P0: expected a memory order, got"),
    (P0 + "atomic_store(*x, 1); }", "f:4: P0: expected a variable, got '*'"),
    (P0 + "WRITE_ONCE(x, 1); }", "f:4: P0: expected '*', got 'x'"),
    (P0 + "*x = 1 /* \n }", "f:4: P0: a comment without its end"),
    (P0 + "*x = " + "(" * 50 + "1", "f:4: P0: is nested too deeply"),
    (P0 + "*x = " + "9*" * 9 + "9; }", "f:4: P0: magnitude must be below 2**24, got 43046721"),
    (P0 + "*x = \xb2; }", "f:4: P0: expected a value, got '\xb2'"),
    (P0 + "*x = 1;\n", "f:5: P0: expected a statement, the text ends"),
    (P0 + "*x = 1; }\nexists (0:r0=1)", "f:5: condition: no 0:r0 in the test"),
    (P0 + "*x = 1; }\n\nexists (x=y)", "f:6: condition: a value is a number or a location"),
    (P0 + "*x = 1; }\nexists (x=1", "f:5: condition: expected ')', the text ends"),
    (P0 + "*x = 1; }\nexists " + "~" * 99 + "x=1", "f:5: condition: is nested too deeply"),
    (P0 + "*x = 1; }\nfilter (x=1)\nexists (x=1)", "f:5: expected a thread, 'locations' or"),
    (P0 + "*x = 1; }\nlocations [z;]\n", "f:5: locations: no z in the test"),
    (P0 + "*x = 1; }\nexists (x=1) x", "f:5: condition: expected the end, got 'x'"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals_name_the_line_and_the_cause(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        loads(text, "f")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_damaged_texts_are_read_or_refused_in_one_line() -> None:
    """Seeded: what fails here fails again."""
    rng = random.Random(11)
    words = [
        *("(", ")", "{", "}", ";", "*", "=", "~", "/\\", "[", "]", "-", "9" * 5000, "0x", "P0"),
        *(
            "exists",
            "int",
            "if",
            "\0",
            "\x1b[2J",
            "(*",
            "*)",
            "/*",
            '"',
            "\u2028",
            "x",
            "=>",
            "010",
        ),
    ]
    read = 0
    for _ in range(800):
        text = rng.choice(TEXTS)
        for _ in range(rng.choice((1, 1, 2, 4))):
            begin = rng.randrange(len(text))
            end = min(len(text), begin + rng.choice((0, 0, 1, 3, 12)))
            new = rng.choice([*words, "", text[end : end + 40]])
            text = text[:begin] + new + text[end:]
        message = refusal(text)
        assert message.isprintable()
        if not message:
            read += 1
            again = loads(dumps(loads(text), "executor"))
            assert layout(again).places
    assert 20 < read < 700  # both happen; the seed is fixed


@pytest.mark.parametrize("text", ["~" * 100_000, "(" * 100_000, "x=1 /\\ " * 20_000 + "x=1"])
def test_absurd_conditions_do_not_exhaust_the_stack(text: str) -> None:
    message = refusal(f"C t\n{{}}\nP0 (int *x) {{ *x = 1; }}\nexists ({text})")
    assert ("nested too deeply", "more than 2000 comparisons")[text[0] == "x"] in message


def test_a_condition_of_many_comparisons_is_read() -> None:
    """No more, as each final state is compared with all: time is their product."""
    text = "x=1 \\/ " * 1_999
    assert not refusal(f"C t\n{{}}\nP0 (int *x) {{ *x = 1; }}\nexists ({text}x=1)")


def test_absurd_expressions_do_not_exhaust_the_stack() -> None:
    text = "C t\n{}\nP0 (int *x) { int r0 = *x; *x = r0" + " + r0" * 50_000 + "; }"
    with pytest.raises(FileError, match="too many parts"):
        loads(text)


# --- what is written -------------------------------------------------------------------


def test_a_description_ends_no_string_comment_or_word_of_what_litmus7_makes() -> None:
    wrong = "it's\\\" */ `x` $(y) %s #z \\"
    made = dumps(litmus("X=1; r0=Y || Y=1; r1=X", name="SB", description=wrong))
    line = made.splitlines()[1]
    assert line.split() == ["\"it's", "x", "(y)", "s", "z", '"']


def test_sb_is_written_as_herd_has_it() -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X", name="SB", description="store buffering")
    assert dumps(test) == (
        'C SB\n"store buffering"\n{\n[X] = 0;\n[Y] = 0;\n}\n\n'
        "P0 (atomic_int* X, atomic_int* Y) {\n"
        "  atomic_store_explicit(X, 1, memory_order_seq_cst);\n"
        "  int r0 = atomic_load_explicit(Y, memory_order_seq_cst);\n}\n\n"
        "P1 (atomic_int* X, atomic_int* Y) {\n"
        "  atomic_store_explicit(Y, 1, memory_order_seq_cst);\n"
        "  int r1 = atomic_load_explicit(X, memory_order_seq_cst);\n}\n\n"
        "locations [0:r0; 1:r1; X; Y;]\nforall (true)\n"
    )


def test_an_update_is_a_load_and_a_store_under_rfc() -> None:
    test = litmus("X-=2", name="sub")
    assert "int w0 = atomic_load_explicit(X, memory_order_seq_cst);" in dumps(test)
    assert "atomic_store_explicit(X, w0 - 2, memory_order_seq_cst);" in dumps(test)
    assert "atomic_fetch_add_explicit(X, 0 - 2, memory_order_seq_cst);" in dumps(test, "executor")


def test_the_corpus_round_trips_with_the_same_allowed_sets() -> None:
    """Export, import: equal on all that the first shows, under both models."""
    fitting = 0
    for path in LITMUS:
        test = corpus_entry(path).test
        try:
            texts = {model: dumps(test, model) for model in MODELS}
        except DoesNotFit:
            continue
        fitting += 1
        for model, text in texts.items():
            again = loads(text, path.name)
            places = tuple(layout(test).names)
            assert states(test, MODELS[model], places) == states(again, MODELS[model], places)
    assert fitting >= FITTING_MIN


@pytest.mark.parametrize("text", TEXTS)
def test_an_imported_test_is_exported_with_the_same_locations(text: str) -> None:
    imported = parse(text)
    again = parse(dumps(imported.test, "executor"))
    places = tuple(layout(imported.test).names)
    assert tuple(layout(again.test).names) == places
    assert again.condition == imported.condition == condition_of(imported.test)
    assert states(again.test, EXECUTOR, places) == states(imported.test, EXECUTOR, places)


def test_words_that_herd_knows_are_no_names() -> None:
    nodes = (
        Node("exists", "ReadVariableOp", (), ("int",)),
        Node("P1", "AddV2", ("exists", "exists")),
        Node("w", "AssignVariableOp", ("P1",), ("L0",)),
    )
    variables = (Variable("int", "int64", ()), Variable("L0", "int64", ()))
    test = LitmusTest("t", variables, (Graph("main", nodes),), ("exists", "P1"))
    places = layout(test).places
    assert list(places.values()) == ["0:v_exists", "0:v_P1", "v_int", "v_L0"]
    again = loads(dumps(test))
    assert states(again, RFC, tuple(places.values())) == states(test, RFC, tuple(places.values()))
    assert {v.dtype for v in again.variables} == {"int64"}


def test_concurrent_runs_are_threads_too() -> None:
    test = litmus("X=1; r0=Y ||| Y=1; r1=X || r2=X")
    assert list(layout(test).places.values()) == ["0:r0", "1:r1", "2:r2", "X", "Y"]
    places = tuple(layout(test).names)
    assert states(loads(dumps(test)), RFC, places) == states(test, RFC, places)


def test_shared_values_do_not_explode() -> None:
    """Nothing between the read and the write is observed, so that all of it is one expression."""
    nodes = [Node("t0", "ReadVariableOp", (), ("X",))]
    nodes += [Node(f"t{i + 1}", "AddV2", (f"t{i}", f"t{i}")) for i in range(40)]
    nodes.append(Node("w", "AssignVariableOp", ("t40",), ("X",)))
    test = LitmusTest("d", (Variable("X", "int32", ()),), (Graph("main", tuple(nodes)),))
    with pytest.raises(DoesNotFit, match="more than 1000 characters"):
        dumps(test)


def test_what_does_not_fit_is_named() -> None:
    def two(*runs: Run) -> LitmusTest:
        const = Node("c", "Const", attrs=ConstAttrs("int32", (), 1))
        graph = Graph("main", (const, Node("w", "AssignVariableOp", ("c",), ("X",))))
        return LitmusTest("t", (Variable("X", "int32", ()),), (graph,), client=runs)

    by_name = {path.stem: path for path in LITMUS}
    for test, message in (
        (corpus_entry(by_name["n-shape"]).test, "c waits for a and b, which are in no order"),
        (corpus_entry(by_name["fork-join"]).test, "u and v are in no order, but not apart"),
        (corpus_entry(by_name["max-by-hand"]).test, "p: Maximum"),
        (litmus("X=1", dtype="float32"), r"X is float32\[\]; only scalar int32 and int64"),
        (litmus("X=1", shape=(2,)), r"X is int32\[2\]; only scalar"),
        (litmus("lock M; X=1; unlock M"), "critical sections are not herd's"),
        (litmus("X=1; Q!1", queues={"Q": 1}), "queues are not herd's"),
        (replace(litmus("r0=X"), clusters=(Cluster("C", ("r0",)),)), "clusters are not herd's"),
        (two(Run("a", "main"), Run("b", "main", ("a",))), "run b comes after a"),
    ):
        with pytest.raises(DoesNotFit, match=message):
            dumps(test)


# --- against herd itself ---------------------------------------------------------------


@pytest.mark.skipif(HERD7 is None, reason="herd7 of herdtools7 is not installed")
def test_herd7_finds_the_sets_of_the_reference_oracle(tmp_path: Path) -> None:
    """With sc.cat: every total order of the accesses, as our models have it."""
    files, ours = [], []
    for path in LITMUS:
        test = corpus_entry(path).test
        try:
            text = dumps(test)
        except DoesNotFit:
            continue
        files.append(tmp_path / f"{test.name}.litmus")
        files[-1].write_text(text, encoding="utf-8")
        allowed = allowed_outcomes(test, RFC)
        ours.append(log(test, dict.fromkeys(allowed.witnesses, 1)))
    assert HERD7 is not None
    done = subprocess.run(
        [HERD7, "-model", "sc.cat", *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = {each.name: each.states for each in read_log(done.stdout)}
    assert theirs == {each.name: each.states for each in read_log("".join(ours))}
