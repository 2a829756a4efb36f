"""The live view without a terminal: plain lines."""

from __future__ import annotations

import io

import pytest

from litmusfuzz.reports.records import RunRecord
from litmusfuzz.reports.terminal import LiveView


@pytest.mark.parametrize(
    ("elapsed_s", "minimizing", "said"),
    [
        (12.0, "", " unknown"),
        (12.0, "graph 7 of tf/plain", " unknown, minimizing graph 7 of tf/plain"),
        (61.0, "graph 7 of tf/plain", " unknown, time is up, minimizing graph 7 of tf/plain"),
    ],
)
def test_a_line_says_what_takes_long(elapsed_s: float, minimizing: str, said: str) -> None:
    record = RunRecord(1, "out", command="litmusfuzz run")
    record.elapsed_s, record.minimizing = elapsed_s, minimizing
    out = io.StringIO()
    with LiveView(out, 60.0) as view:
        view(record)
    (line,) = out.getvalue().splitlines()
    assert line.startswith(f"{elapsed_s:6.1f} s  0 tests")
    assert line.endswith(said)
