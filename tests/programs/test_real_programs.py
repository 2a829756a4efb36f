"""What `check` says of programs that people wrote is what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers import WHOLE
from real_programs import PAGE, header, programs, said

SAMPLE = (
    "function_actor_critic",
    "function_critical_section",
    "function_ema",
    "function_section_repaired",
    "session_batch_norm",
    "session_moving_target",
    "session_rnn",
    "session_towers",
)
"""Programs that a plain run of the tests checks: of each kind, and quick."""

TIMEOUT_S = 1800
"""For all programs on a busy machine; they take about two minutes of one core."""


def test_each_program_is_on_the_page() -> None:
    assert [*said()] == programs()
    assert len(programs()) > 50
    for name in programs():
        _, source, arguments = header(name)
        assert source
        assert arguments[0].startswith(f"{name}:")


def test_each_report_has_a_verdict() -> None:
    """One row for each report; those of Keras models that are alike share one."""
    page = said()
    read = PAGE.read_text(encoding="utf-8").partition("## What we read\n")[2]
    rows = [line.strip("| ").split(" | ") for line in read.splitlines() if " | " in line]
    verdicts = Counter(row[0] for row in rows if row[0] in page)
    for name, text in page.items():
        if not name.startswith("keras_"):
            assert verdicts[name] == text.count("("), name
    kinds = {
        f"{kind}: {where}"
        for name, text in page.items()
        if name.startswith("keras_") and text != "no race"
        for part in text.split("; ")
        for kind, _, all_where in [part.partition(": ")]
        for where in re.sub(r" \(\d+\)", "", all_where).split(", ")
    }
    assert kinds == {row[1] for row in rows if row[0].isdecimal()}
    found = Counter(row[2] for row in rows if row[0] in page or row[0].isdecimal())
    assert set(found) <= {"true", "of no use", "undecided"}  # and none that is false
    assert found["of no use"] < 0.1 * len(rows)


@pytest.mark.timeout(2 * TIMEOUT_S)
def test_check_says_what_the_page_says() -> None:
    """All programs with LITMUSFUZZ_WHOLE=1; else a few."""
    names = programs() if os.environ.get(WHOLE) else SAMPLE
    result = subprocess.run(
        [sys.executable, "-m", "tests.programs.real_programs", *names],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    page = said()
    assert json.loads(result.stdout) == {name: page[name] for name in names}
