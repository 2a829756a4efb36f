"""Comparison of two logs: common tests only, forbidden outcomes first."""

from __future__ import annotations

import pytest

from litmusfuzz.corpus.herd import LoggedTest, State, read_log
from litmusfuzz.reports.comparison import MAX_SHOWN, Comparison, Incomparable, Log, compare


def log(file: str, **tests: str) -> Log:
    """States of each test, one a line; a count before ``:>``."""
    found: dict[str, LoggedTest] = {}
    for name, states in tests.items():
        (read,) = read_log(f"Test {name}\nHistogram\n{states}\nOk\n")
        found[name] = read
    return Log(file, found)


def verdicts(**known: str) -> object:
    """A judge: of each test, what it says of states in which x is not 0."""

    def judge(name: str, state: State) -> str | None:
        if name not in known:
            return None
        return known[name] if dict(state).get("x") else "allowed"

    return judge


def compared(left: Log, right: Log, **known: str) -> Comparison:
    judge = verdicts(**known) if known else None
    return compare(left, right, judge, "rfc", "as --model asks")  # type: ignore[arg-type]


def test_counts_do_not_make_a_difference() -> None:
    found = compared(log("a", t="7:>x=0;\n1:>x=1;"), log("b", t="x=1;\nx=0;"))
    assert (found.same, found.exit_code) == (True, 0)
    assert found.text() == "1 test in both: all the same"


def test_forbidden_outcomes_come_first() -> None:
    left = log("a", t="9:>x=0; y=0;\n2:>x=1; y=0;")
    found = compared(left, log("b", t="x=0; y=3;"), t="forbidden")
    assert (found.forbidden, found.exit_code) == (1, 1)
    assert found.text().splitlines() == [
        "t: 0 outcomes in both",
        "  only in a:",
        "    outcome    count",
        "    x=1; y=0;  2      FORBIDDEN",
        "    x=0; y=0;  9      allowed",
        "  only in b:",
        "    outcome    count",
        "    x=0; y=3;  1      allowed",
        "",
        "judged by rfc, as --model asks",
        "1 test in both: 1 test differs",
        "only in a: 2 outcomes, 1 forbidden under rfc",
        "only in b: 1 outcome, 0 forbidden under rfc",
    ]


def test_outcomes_are_compared_by_the_locations_that_both_show() -> None:
    """A state stands for all that it was made of: it is as bad as the worst."""
    left = log("a", t="3:>y=0; x=0;\n4:>y=0; x=1;\n1:>y=1; x=0;")
    found = compared(left, log("b", t="y=1; z=5;"), t="forbidden")
    (only,) = found.tests[0].only
    assert (only.state, only.count, only.verdict) == ((("y", 0),), 7, "forbidden")
    assert "not compared, since only a has them: x" in found.text()
    assert "not compared, since only b has them: z" in found.text()


def test_the_status_of_outcomes_is_compared() -> None:
    """`completed` is what a log without the location says."""
    left = log("a", t="x=0; outcome.status=completed;\nx=1; outcome.status=blocked;")
    assert compared(left, log("b", t="x=0;\nx=1; outcome.status=blocked;")).same
    assert not compared(left, log("b", t="x=0;\nx=1;")).same


def test_a_blocked_outcome_may_show_less() -> None:
    states = "x=0; r=1;\nx=1; outcome.status=blocked;"
    found = compared(log("a", t=states), log("b", t="x=0; r=1;"))
    assert [only.state for only in found.tests[0].only] == [
        (("outcome.status", "blocked"), ("x", 1))
    ]


def test_tests_that_one_log_lacks_are_a_line_each() -> None:
    left = log("a", t="x=0;", u="x=0;\nx=1;", v="x=0;")
    found = compared(left, log("b", t="x=0;"))
    assert found.exit_code == 3
    assert found.text().splitlines()[:2] == [
        "u: not in b, 2 outcomes elsewhere",
        "v: not in b, 1 outcome elsewhere",
    ]
    assert "only in a: 3 outcomes; 2 tests" in found.text()
    judged = compared(left, log("b", t="x=0;"), u="forbidden")
    assert judged.exit_code == 1
    assert "    x=1;     1      FORBIDDEN" in judged.text()
    assert "only in a: 3 outcomes, 1 forbidden under rfc, 1 not judged; 2 tests" in judged.text()


def test_unknown_is_counted_and_no_forbidden_outcome() -> None:
    found = compared(log("a", t="x=1;"), log("b", t="x=0;"), t="unknown")
    assert found.exit_code == 3
    assert "only in a: 1 outcome, 0 forbidden under rfc, 1 unknown" in found.text()


def test_a_long_list_is_cut_on_the_screen_only() -> None:
    left = log("a", t="\n".join(f"x={n};" for n in range(MAX_SHOWN + 5)))
    found = compared(left, log("b", t="x=-1;"))
    assert "    and 5 more; --json has all" in found.text()
    assert len(found.as_json()["tests"][0]["only"]) == MAX_SHOWN + 6


def test_logs_with_nothing_in_common_are_not_compared() -> None:
    with pytest.raises(Incomparable, match="a and b have no test in common"):
        compared(log("a", t="x=0;"), log("b", u="x=0;"))
    with pytest.raises(Incomparable, match="t: a and b have no location in common"):
        compared(log("a", t="x=0;"), log("b", t="y=0;"))
