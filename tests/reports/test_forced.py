"""Report of an executor that followed a total order, or did not."""

from __future__ import annotations

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.reports.allowed import Witnessed
from litmusfuzz.reports.forced import ForcedReport

SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
JUDGED_BY = "judged by rfc, as --model asks; e/c guarantees executor"
ORDER = ("W(X) w0", "R(Y) r0", "W(Y) w1", "R(X) r1")


def sb(r0: int, r1: int) -> Outcome:
    return Outcome.of(SB, {"r0": (r0,), "r1": (r1,), "X": (1,), "Y": (1,)})


def report(seen: Outcome | None, problem: str = "") -> ForcedReport:
    witness = Witnessed("rfc", sb(0, 1), ORDER)
    return ForcedReport(SB, "e", "c", JUDGED_BY, witness, seen, problem)


def test_the_order_then_what_it_yields() -> None:
    good = report(sb(0, 1))
    assert good.text() == "\n".join(
        [
            JUDGED_BY,
            "forced on e/c, a total order under rfc:",
            "  1  W(X) w0",
            "  2  R(Y) r0",
            "  3  W(Y) w1",
            "  4  R(X) r1",
            "which yields  r0=0 r1=1 X=1 Y=1",
        ]
    )
    assert good.exit_code == 0
    assert good.as_json()["events"] == list(ORDER)


def test_another_outcome_of_the_same_order_is_forbidden() -> None:
    bad = report(sb(0, 0))
    assert bad.text().splitlines()[-2:] == [
        "which yields  r0=0 r1=0 X=1 Y=1",
        "FORBIDDEN: this order yields  r0=0 r1=1 X=1 Y=1",
    ]
    assert bad.exit_code == bad.as_json()["exit_code"] == 1
    stuck = report(Outcome.of(SB, {"X": (1,), "Y": (0,)}, Status.BLOCKED))
    assert "which yields  blocked, X=1 Y=0" in stuck.text()
    assert stuck.exit_code == 1


def test_an_executor_that_cannot_follow_says_where() -> None:
    lost = report(None, "after 1 of 4 events: R(Y) r0 cannot come now")
    assert lost.text().splitlines()[-2:] == [
        "which should yield  r0=0 r1=1 X=1 Y=1",
        "e/c does not follow it: after 1 of 4 events: R(Y) r0 cannot come now",
    ]
    assert lost.exit_code == 3
    assert lost.as_json()["outcome"] is None
