"""Herd's logs: written in herd's format, read back, and rejected with their line."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.herd import State, layout, log, parse, read_log
from litmusfuzz.corpus.herd.log import STATUS, state_of
from litmusfuzz.corpus.model import Accumulator, LitmusTest, Variable
from litmusfuzz.corpus.outcome import TORN, Outcome, Status
from litmusfuzz.corpus.textfile import Digest, FileError, load
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from litmusfuzz.corpus.condition import Condition

SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
# As herd7 prints it: hexadecimal where a variant asks for it, old and new brackets.
HERD = """Warning: something else
Test SB Allowed
States 3
0:r0=0; 1:r1=0x1; [X]=1; Y=1;
0:r0=1; 1:r1=0; [X]=1; Y=1;
0:r0=1; 1:r1=1; [X]=1; Y=1;
No
Witnesses
Positive: 0 Negative: 3
Flag something
Condition exists (0:r0=0 /\\ 1:r1=0)
Observation SB Never 0 3
Time SB 0.01
Hash=c1b6f0ad6ffd6fcd5ff0de1d3ed4e0f1

Test empty Required
States 1

Ok
Witnesses
Positive: 1 Negative: 0
Condition forall (true)
Observation empty Always 1 0
Hash=c1b6f0ad6ffd6fcd5ff0de1d3ed4e0f1

"""
LITMUS7 = """Test MP Allowed\r
Histogram (3 states)\r
1000001:>1:r0=0; 1:r1=0;\r
7     *>1:r0=1; 1:r1=0;\r
999992:>1:r0=1; 1:r1=-1; # a comment\r
Ok\r
\r
Witnesses\r
Positive: 7, Negative: 1999993\r
Condition exists (1:r0=1 /\\ 1:r1=0) is validated\r
"""


def allowed(test: LitmusTest) -> dict[Outcome, int]:
    found = allowed_outcomes(test, RFC)
    assert found.complete
    return dict.fromkeys(found.witnesses, 1)


def refusal(text: str) -> str:
    """Why a log is not read; "" if it is."""
    try:
        read_log(text, "f")
    except FileError as error:
        return str(error)
    return ""


def condition(test: LitmusTest, text: str) -> Condition:
    """A condition on `SB`, read in a test in C that has its locations."""
    source = "C t\n{}\nP0 (int *X, int *Y) { *X = 1; int r0 = *Y; }\n"
    source += "P1 (int *X, int *Y) { *Y = 1; int r1 = *X; }\n"
    found = parse(source + text).condition
    assert found is not None
    assert set(found.names) <= set(layout(test).names)
    return found


def test_a_log_is_what_herd_prints() -> None:
    text = log(SB, allowed(SB), condition(SB, "exists (0:r0=0 /\\ 1:r1=0)"))
    assert text.splitlines()[:-2] == [
        "Test SB Allowed",
        "States 3",
        "0:r0=0; 1:r1=1; [X]=1; [Y]=1;",
        "0:r0=1; 1:r1=0; [X]=1; [Y]=1;",
        "0:r0=1; 1:r1=1; [X]=1; [Y]=1;",
        "No",
        "Witnesses",
        "Positive: 0 Negative: 3",
        "Condition exists (0:r0=0 /\\ 1:r1=0)",
        "Observation SB Never 0 3",
    ]
    assert text.splitlines()[-2].startswith("Hash=")
    assert text.endswith("\n\n")


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("exists (0:r0=1)", ("Allowed", "Ok", "Positive: 2 Negative: 1", "Sometimes 2 1")),
        # Of ~exists what refutes is positive, yet an observation is of the proposition.
        ("~exists (0:r0=1)", ("Forbidden", "No", "Positive: 1 Negative: 2", "Sometimes 2 1")),
        ("~exists (X=0)", ("Forbidden", "Ok", "Positive: 3 Negative: 0", "Never 0 3")),
        ("forall (X=1)", ("Required", "Ok", "Positive: 3 Negative: 0", "Always 3 0")),
        ("forall (0:r0=1)", ("Required", "No", "Positive: 2 Negative: 1", "Sometimes 2 1")),
    ],
)
def test_conditions_are_counted(asked: str, lines: tuple[str, str, str, str]) -> None:
    text = log(SB, allowed(SB), condition(SB, asked))
    kind, valid, counts, observed = lines
    assert f"Test SB {kind}\n" in text
    assert f"\n{valid}\nWitnesses\n{counts}\n" in text
    assert f"\nObservation SB {observed}\n" in text


def test_a_histogram_has_the_counts() -> None:
    counts = {outcome: 10**n for n, outcome in enumerate(sorted(allowed(SB), key=str))}
    text = log(SB, counts, condition(SB, "exists (0:r0=1)"), histogram=True)
    assert text.splitlines()[1:3] == [
        "Histogram (3 states)",
        "1       :>0:r0=0; 1:r1=1; [X]=1; [Y]=1;",
    ]
    assert "10      *>0:r0=1; 1:r1=0;" in text
    (read,) = read_log(text)
    assert read.states == {state_of(SB, outcome): count for outcome, count in counts.items()}


def test_every_test_of_the_corpus_has_a_log_that_is_read_back() -> None:
    """Arrays, matrices, queues, what is no thread, what blocks or fails."""
    texts, wanted = [], {}
    for path in LITMUS:
        entry = load(path)
        test, kept = entry.test, entry.allowed["rfc"]
        if isinstance(kept, Digest):
            continue
        ended = all(outcome.status is Status.COMPLETED for outcome in kept)
        states = {state_of(test, outcome) for outcome in kept}
        assert len(states) == len(kept)
        if not ended:  # then all states tell how they ended
            states = {s if STATUS in dict(s) else with_status(s) for s in states}
        wanted[test.name] = dict.fromkeys(states, 1)
        texts.append(log(test, dict.fromkeys(kept, 1)))
    assert len(wanted) > 300
    assert {each.name: each.states for each in read_log("\n".join(texts))} == wanted


def with_status(state: State) -> State:
    return tuple(sorted((*state, (STATUS, "completed"))))


def test_cells_of_accumulators_and_gradients_have_locations() -> None:
    """Of a name without dots and parentheses, which is no other resource's."""
    variables = (Variable("X", "float32", (), 1, gradient=True), Variable("A_sum", "float32", ()))
    nodes = litmus("r0=X", dtype="float32").graphs
    test = LitmusTest(
        "t", variables, nodes, ("r0",), accumulators=(Accumulator("A", "float32", ()),)
    )
    assert set(layout(test).places) == set(test.names)
    values = {"r0": (1,), "X": (2,), "A_sum": (3,), "A.sum": (4,), "A.count": (5,), "grad(X)": (6,)}
    assert state_of(test, Outcome.of(test, values)) == (
        ("0:r0", 1),
        ("A_count", 5),
        ("A_sum", 3),
        ("A_sum_2", 4),
        ("X", 2),
        ("grad_X", 6),
    )


def test_a_result_of_a_loop_keeps_its_dot() -> None:
    """Logs that name it were written before accumulators had cells."""
    test = load(next(path for path in LITMUS if path.stem == "h-zero-trips")).test
    results = [name for name in test.observe if "." in name]
    assert results
    assert [layout(test).places[name] for name in results] == [f"0:{name}" for name in results]


def test_logs_of_herd7_are_read() -> None:
    sb, empty = read_log(HERD)
    assert sb.states == {state_of(SB, outcome): 1 for outcome in allowed(SB)}
    assert sb.locations == {"0:r0", "1:r1", "X", "Y"}
    assert (sb.line, sb.condition) == (2, "exists (0:r0=0 /\\ 1:r1=0)")
    assert empty.states == {(): 1}


def test_logs_of_litmus7_are_read() -> None:
    (mp,) = read_log(LITMUS7)
    assert sorted(mp.states.items()) == [
        ((("1:r0", 0), ("1:r1", 0)), 1000001),
        ((("1:r0", 1), ("1:r1", -1)), 999992),
        ((("1:r0", 1), ("1:r1", 0)), 7),
    ]


def test_values_that_are_no_numbers_are_kept() -> None:
    (read,) = read_log("Test a\nStates 1\n0:r0=x; y={1,-2,0x3}; z[1]=2;\nOk\n")
    assert list(read.states) == [(("0:r0", "x"), ("y", (1, -2, 3)), ("z[1]", 2))]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (HERD, "", "f:1: no test in this log"),
        (HERD, "nothing\nof use\n", "f:1: no test in this log"),
        ("States 3", "States 4", "f:7: SB: 4 states stated, 3 listed"),
        ("States 3\n", "", "f:15: SB: a test without its states"),
        ("Test empty", "Test SB", "f:16: test SB stands twice; also in line 2"),
        ("1:r1=0;", "1:r1=;", "f:5: SB: not a state: '1:r1=; [X]=1; Y=1;'"),
        ("0:r0=1; 1:r1=0;", "0:r0=1; 0:r0=0;", "f:5: SB: 0:r0 stands twice"),
        ("1:r1=0;", "1:r1=1;", "f:6: SB: a state stands twice"),
        ("1:r1=0;", f"1:r1={'9' * 30};", "f:5: SB: not a number of 64 bits: '999"),
        ("1:r1=0;", "1:r1={1-2};", "f:5: SB: not a number of 64 bits: '1-2'"),
        (HERD[HERD.index("No\n") :], "", "f:7: SB: ends among its states"),
    ],
)
def test_bad_logs_name_the_line(old: str, new: str, message: str) -> None:
    assert old in HERD
    with pytest.raises(FileError) as caught:
        read_log(HERD.replace(old, new, 1), "f")
    assert str(caught.value).startswith(message)


def test_damaged_logs_are_read_or_refused_in_one_line() -> None:
    """Seeded: what fails here fails again."""
    rng = random.Random(12)
    words = ("Test ", "States ", "\n", ";", "=", "{", "-", "9" * 5000, "0x", ":>", "Ok", "\0", "²")
    read = 0
    for _ in range(600):
        text = rng.choice((HERD, LITMUS7))
        for _ in range(rng.choice((1, 1, 2, 4))):
            begin = rng.randrange(len(text))
            end = begin + rng.choice((0, 1, 3, 30))
            text = text[:begin] + rng.choice((*words, "")) + text[end:]
        message = refusal(text)
        assert message.isprintable()
        read += not message
    assert 50 < read < 550  # both happen; the seed is fixed


def test_torn_values_and_blocked_outcomes_are_words() -> None:
    """As mcompare7 reads them: `tools/lexLog_tools.mll`, rule pline."""
    one = litmus("r0=X", name="one")
    counts = {
        Outcome.of(one, {"X": (0,)}, Status.BLOCKED): 2,
        Outcome.of(one, {}, Status.FAILED): 1,
        Outcome.of(one, {"X": (0,), "r0": TORN}): 4,
    }
    text = log(one, counts, histogram=True)
    assert text.splitlines()[1:5] == [
        "Histogram (3 states)",
        "4       *>0:r0=torn; [X]=0; [outcome.status]=completed;",
        "2       *>[X]=0; [outcome.status]=blocked;",
        "1       *>[outcome.status]=failed;",
    ]
    assert sum(read_log(text)[0].states.values()) == 7


def test_arrays_in_a_queue_stand_one_after_another() -> None:
    """Of a fixed size, so that nothing is lost; an empty queue is no number."""
    test = litmus("Q!1", name="q", shape=(2,), queues={"Q": 3})
    for held, cell in (((), ()), (((1, 2), (3, 4)), (1, 2, 3, 4))):
        assert state_of(test, Outcome.of(test, {"Q": held})) == (("Q", cell),)
    one = litmus("Q!1", name="q", queues={"Q": 3})
    assert state_of(one, Outcome.of(one, {"Q": ((5,),)})) == (("Q", (5,)),)


def test_a_condition_on_what_a_blocked_run_does_not_show_is_not_met() -> None:
    blocked = {Outcome.of(SB, {"X": (1,), "Y": (1,)}, Status.BLOCKED): 1}
    text = log(SB, allowed(SB) | blocked, condition(SB, "forall (X=1 /\\ ~(0:r0=7))"))
    assert "\nNo\nWitnesses\nPositive: 3 Negative: 1\n" in text


def test_only_the_locations_asked_for_are_shown() -> None:
    """As herd does with what a test lists; states that are then the same are one."""
    counts = dict.fromkeys(allowed(SB), 10)
    lines = log(SB, counts, histogram=True, locations=("0:r0",)).splitlines()
    assert lines[1:4] == ["Histogram (2 states)", "10      *>0:r0=0;", "20      *>0:r0=1;"]
    assert log(SB, allowed(SB), locations=("0:r0",)).splitlines()[1] == "States 2"
    assert "Positive: 2 Negative: 0" in log(SB, allowed(SB), locations=("0:r0",))


@pytest.mark.parametrize("name", ["Okay", "No", "Ok ", "Undef", "Ok[0]", "Failed"])
def test_a_variable_named_like_a_verdict_ends_no_states(name: str) -> None:
    text = f"Test a Allowed\nStates\n{name}=1;\n0:r0=2;\nOk\nWitnesses\n"
    (test,) = read_log(text)
    assert len(test.states) == 2
    for verdict in ("Ok", "No", "Loop Ok", "Undef", "??", "Ok (as expected)"):
        (test,) = read_log(text.replace("\nOk\n", f"\n{verdict}\n"))
        assert len(test.states) == 2
