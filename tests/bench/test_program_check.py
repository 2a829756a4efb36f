"""The programs that `bench check` measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.bench import program_check
from litmusfuzz.fuzz.bench.program_check import program_of, report
from litmusfuzz.fuzz.programs.checking import check

if TYPE_CHECKING:
    import pytest


def test_a_program_has_the_size_that_was_asked_for() -> None:
    program = program_of(400, 20, 3)
    found, _ = check(program, [("run", "run")])
    (run,) = found.runs
    assert run.accesses == 20
    assert run.variables == 3
    assert found.exit_code == 1  # beside itself it races


def test_time_and_memory_are_measured_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_check, "SIZES", ((400, 20, 3),))
    titles: list[str] = []
    figures = report(titles.append).figures
    assert titles == ["400 nodes, 20 accesses, 3 variables"] * 2
    times, memory = figures[::2], figures[1::2]
    assert [each.unit for each in times] == ["s", "s"]
    assert all(0 < each.value < program_check.LIMIT_S for each in times)
    assert all(10 < each.value < 1000 for each in memory)
