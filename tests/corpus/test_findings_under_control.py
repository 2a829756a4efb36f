"""Findings of `corpus/findings` under control: a few of each kind; see `findings_under_control`."""

from __future__ import annotations

import findings_under_control
import pytest
from findings_under_control import LEVELS, names, row

# By ops, by locks, by pages, by touches; in a cluster; in a function; beyond control.
QUICK = {
    "first-assignment-writes-twice": "locks",
    "slice-assign-beside-read": "pages",
    "slice-assign-beside-add": "touches",
    "cluster-spans-two-reads": "ops",
    "call-overtakes-its-argument": "ops",
    "single-threaded-executor-waits": "",
}


@pytest.mark.parametrize(("name", "level"), QUICK.items())
def test_a_finding_is_shown_from_every_seed_and_followed(
    name: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings_under_control, "FOLLOWED", 50)
    monkeypatch.setattr(findings_under_control, "SEEDS", findings_under_control.SEEDS[:3])
    found = row(name)
    assert found.level == level
    assert not found.wrong, str(found)
    assert found.beyond == (not level)
    assert bool(found.reason) == (not level)
    if level:
        assert max(found.schedules) <= findings_under_control.SAMPLED
        assert found.followed == 50


def test_every_finding_of_tensorflow_is_taken() -> None:
    assert set(QUICK) <= set(names())
    assert set(QUICK.values()) - {""} == set(LEVELS)
