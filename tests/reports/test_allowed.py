"""Report of the oracle: allowed sets, verdicts, and searches that were cut short."""

from __future__ import annotations

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.reports.allowed import ModelSet, Refuted, SetsReport, VerdictReport, Witnessed

TEST = litmus("X+=1 || X+=1", name="lost")
ONE, TWO = (Outcome.of(TEST, {"X": (n,)}) for n in (1, 2))
STUCK = Outcome.of(TEST, {"X": (0,)}, Status.BLOCKED)


def test_a_search_that_was_cut_short_says_what_it_does_not_know() -> None:
    rfc = ModelSet("rfc", frozenset({ONE, TWO}), complete=True, states=3)
    report = SetsReport(TEST, (rfc, ModelSet("executor", frozenset({TWO}), False, 1)))  # noqa: FBT003
    assert report.text().splitlines() == [
        "X  rfc  executor",
        "1  yes  ?",
        "2  yes  yes",
        "",
        "2 outcomes allowed under rfc (3 search states)",
        "1 outcome allowed under executor (1 search state), and perhaps more: over budget",
    ]
    assert not report.complete
    rows = report.as_json()["allowed"]
    assert rows[0] == {"outcome": {"X": 1}, "models": ["rfc"], "unknown": ["executor"]}
    assert rows[1] == {"outcome": {"X": 2}, "models": ["rfc", "executor"]}


def test_equal_sets_are_said_to_be_equal() -> None:
    sets = [ModelSet(name, frozenset({TWO, STUCK}), complete=True, states=2) for name in "ab"]
    assert SetsReport(TEST, tuple(sets)).text().splitlines() == [
        "X  ended      a    b",
        "2  completed  yes  yes",
        "0  blocked    yes  yes",
        "",
        "2 outcomes allowed under a (2 search states)",
        "2 outcomes allowed under b (2 search states); the same as under a",
    ]


def test_a_verdict_with_everything() -> None:
    report = VerdictReport(
        TEST,
        {"X": 0, "Q": [[1, 2], [3, 4]]},
        {"rfc": "allowed", "executor": "forbidden", "third": "unknown"},
        (Witnessed("rfc", STUCK, tuple("abcdefghij")),),
        (Refuted("executor", ("a", "b"), cycle=True, edges=("e",), rules=("r",)),),
    )
    lines = report.text().splitlines()
    assert lines[0] == (
        "X=0 Q=[[1,2],[3,4]]: allowed under rfc, forbidden under executor, unknown under third"
    )
    assert lines[2:5] == ["witness, a total order under rfc:", "   1  a", "   2  b"]
    assert lines[12] == "  10  j"
    assert "which yields  blocked, X=0" in lines
    assert lines[-4:] == [
        "  b",
        "which is a cycle: no total order has all of it",
        "",
        "unknown: the search ran out of its budget; see --budget",
    ]
    assert report.as_json()["reasons"] == [
        {"model": "executor", "steps": ("a", "b"), "cycle": True, "edges": ("e",), "rules": ("r",)}
    ]
