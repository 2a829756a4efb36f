"""Findings of three recorded campaigns on TensorFlow, names and order of nodes as they were.

They wait to be classified by cause; then this fixture goes. `old_findings.jsonl.xz` has one
line of JSON for each file: its path, ``CAMPAIGN/NAME.yaml``, and its text.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path, PurePath

import pytest

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import GUARANTEES

FIXTURE = Path(__file__).with_name("old_findings.jsonl.xz")
ROWS: dict[str, str] = {
    row["file"]: row["text"]
    for row in map(json.loads, lzma.decompress(FIXTURE.read_bytes()).decode().splitlines())
}
# Files in `crashed` are tests on which a worker process died; they have no finding.
FINDINGS = [name for name in ROWS if PurePath(name).parent.name != "crashed"]
BUDGET = Budget(states=200_000)


@cache
def entry(name: str) -> Entry:
    return loads(ROWS[name], name)


def test_no_file_is_lost() -> None:
    assert Counter(str(PurePath(name).parent) for name in ROWS) == {
        "2026-11-22": 57,
        "2026-11-22-2703": 32,
        "2026-11-22-2705": 42,
        "2026-11-22-2705/unconfirmed": 8,
        "2026-11-22-2705/crashed": 223,
    }


def test_each_file_is_valid_and_saved_to_the_same_bytes() -> None:
    for name, text in ROWS.items():
        assert dumps(entry(name)) == text
        assert entry(name).test.name == PurePath(name).stem or "crashed" in name


def test_findings_have_a_finding_and_crashes_a_signal() -> None:
    for name in ROWS:
        finding, description = entry(name).finding, entry(name).test.description
        if name in FINDINGS:
            assert finding is not None
            assert finding.executor == "tf"
            # The last finding of the first campaign was cut off; no other is in part.
            cut_off = (finding.minimized, finding.confirmed) == (False, False)
            assert finding.confirmed or cut_off or "unconfirmed" in name
        else:
            assert finding is None
            assert ": signal " in description


@pytest.mark.parametrize("name", FINDINGS)
def test_the_outcomes_of_a_finding_are_forbidden(name: str) -> None:
    finding = entry(name).finding
    assert finding is not None
    explorer = Explorer(entry(name).test, GUARANTEES[finding.model], BUDGET)
    verdicts = {explorer.judge(outcome) for outcome, _ in finding.forbidden}
    assert verdicts == {Verdict.FORBIDDEN}
