"""The benchmark of engines in TensorFlow measures what it says, on few and small graphs."""

from __future__ import annotations

from litmusfuzz.fuzz.bench.engines import ENGINES, POOLS, report


def test_each_contender_has_a_figure() -> None:
    parts: list[str] = []
    made = report(parts.append, laps=1, ops=20, sizes=(10,), sessions=(1, 2))
    assert parts == ["starting engines", "10 ops, 1 session", "10 ops, 2 sessions"]
    measured = {figure.name: figure for figure in made.figures if figure.value}
    missing = {figure.name for figure in made.figures} - measured.keys()
    assert missing <= {"tbb", "openmp"}  # where their runtimes are not
    for name in (*(name for name, _ in POOLS), *(name for name in ENGINES if name not in missing)):
        for part in parts[1:]:
            figure = measured[f"{part}: {name}"]
            assert figure.value > 0
            assert figure.threads == (1 if name == "inline" else 2)
            assert "times TensorFlow's pool" in figure.note
