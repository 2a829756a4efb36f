"""Report of forced outcomes."""

from __future__ import annotations

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.reports.cover import CoverReport, cover_text

SB = litmus("X=1; r0=Y || Y=1; r1=X", name="SB")
JUDGED_BY = "judged by the model executor, which e/c guarantees"
STUCK = litmus("r0=Q?", queues={"Q": 1}, name="stuck")


def sb(r0: int, r1: int) -> Outcome:
    return Outcome.of(SB, {"r0": (r0,), "r1": (r1,), "X": (1,), "Y": (1,)})


def report(test=SB, **fields) -> CoverReport:
    given = {"left_out": "", "reached": (), "wrong": (), "not_followed": (), "apart": {}} | fields
    given |= {"judged_by": JUDGED_BY, "seconds": 0.5}
    return CoverReport(test=test, file="f.yaml", executor="e", config="c", **given)


def test_reached_and_unforced_outcomes() -> None:
    good = report(reached=(sb(0, 1), sb(1, 1)), apart={sb(1, 0): "needs a wonder"})
    assert good.text() == "\n".join(
        [
            JUDGED_BY,
            "SB: 2 of 2 on e/c; 1 apart: needs a wonder",
            "  reached  r0=0 r1=1 X=1 Y=1",
            "  reached  r0=1 r1=1 X=1 Y=1",
            "  apart    r0=1 r1=0 X=1 Y=1  (needs a wonder)",
        ]
    )
    assert good.exit_code == 0
    data = good.as_json()
    assert data["apart"] == [{"outcome": sb(1, 0).plain, "reason": "needs a wonder"}]
    assert data["reached"] == [sb(0, 1).plain, sb(1, 1).plain]


def test_another_outcome_of_an_order_is_forbidden_and_an_order_not_followed_undecided() -> None:
    bad = report(wrong=((sb(0, 1), ("W(X) w0", "R(Y) r0"), sb(0, 0)),))
    assert bad.text().splitlines() == [
        JUDGED_BY,
        "SB: 0 of 1 on e/c",
        "SB: FORBIDDEN on e/c: this order",
        "  1  W(X) w0",
        "  2  R(Y) r0",
        "yields  r0=0 r1=1 X=1 Y=1",
        "but showed  r0=0 r1=0 X=1 Y=1",
    ]
    assert bad.exit_code == bad.as_json()["exit_code"] == 1
    lost = report(reached=(sb(1, 1),), not_followed=((sb(0, 1), "after 0 of 4 ops: no"),))
    assert "SB: 1 of 2 on e/c" in lost.text()
    assert lost.troubles() == [
        "SB: not reached on e/c: r0=0 r1=1 X=1 Y=1",
        "  after 0 of 4 ops: no",
    ]
    assert lost.exit_code == 3


def test_several_tests_are_counted_by_feature_and_those_left_out_listed() -> None:
    blocked = Outcome.of(STUCK, {"Q": ()}, Status.BLOCKED)
    reports = (
        report(reached=(sb(0, 1), sb(1, 1)), apart={sb(1, 0): "needs a wonder"}),
        report(STUCK, reached=(blocked,)),
        report(left_out="e: no"),
    )
    assert cover_text(reports) == "\n".join(
        [
            JUDGED_BY,
            "",
            "on e/c           tests  reached  allowed  apart",
            "blocked          1      1        1        0",
            "queues           1      1        1        0",
            "straight graphs  1      2        2        1",
            "all              2      3        3        1",
            "",
            "apart: 1 outcome: needs a wonder",
            "left out: 1 test: e: no: SB",
        ]
    )
    assert reports[2].exit_code == 3
