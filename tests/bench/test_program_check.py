"""The programs that `bench check` measures."""

from __future__ import annotations

from litmusfuzz.fuzz.bench.program_check import program_of
from litmusfuzz.fuzz.programs.checking import check


def test_a_program_has_the_size_that_was_asked_for() -> None:
    program = program_of(400, 20, 3)
    report, _ = check(program, [("run", "run")])
    (run,) = report.runs
    assert run.accesses == 20
    assert run.variables == 3
    assert report.exit_code == 1  # beside itself it races
