"""Benchmark of JAX's references: its report. No test checks a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.bench import references

if TYPE_CHECKING:
    import pytest


def test_every_preset_has_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TESTS", 1)
    progress: list[str] = []
    found = references.report(progress.append)
    assert progress == ["generation", "eager", "under jit", "gradients under jit"]
    speeds = [each for each in found.figures if each.name.startswith("programs")]
    assert [each.least for each in speeds] == [8, 4, 2]
    assert all(each.value is None or each.value > 0 for each in speeds)
    shares = {each.name: each for each in found.figures if each.unit == "%"}
    assert list(shares) == [
        "generating and judging, of eager time",
        "in JAX, of eager time",
    ]
    assert shares["in JAX, of eager time"].least == 0.9
    # The first executions have been measured before the second ones, in which nothing compiles.
    values = [each.value for each in shares.values()]
    assert all(each is not None and 0 < each < 1 for each in values)
