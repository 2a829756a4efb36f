"""`litmusfuzz selftest`: the kill table, and its exit status."""

from __future__ import annotations

import json

import pytest

from fuzz.campaign.selftest import median
from reports.kills import Row, kill_table, score


def test_a_mutant_is_killed_and_the_executor_is_sound(litmusfuzz) -> None:
    """Under the controlled engine a seed decides: this one kills within 8 tests."""
    done = litmusfuzz("selftest", "dropped-control-edge", "--seeds", "1", "--tests", "8", "--json")
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout)
    sound, mutant = told["rows"]
    assert told["complete"]
    assert (sound["name"], sound["killed"]) == ("native", False)
    assert mutant["killed"]
    assert mutant["runs"]["controlled"] == 200


def test_a_mutant_that_survives_is_said_to_and_the_exit_says_so(litmusfuzz) -> None:
    """The first test drawn is of family `dag`, which has no loops."""
    done = litmusfuzz("selftest", "old-frame", "--seeds", "1", "--tests", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2].endswith("SURVIVED")
    assert done.stdout.splitlines()[-1] == "0 of 1 mutant killed"


def test_an_unknown_mutant_is_refused_in_one_line(litmusfuzz) -> None:
    done = litmusfuzz("selftest", "nobody")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: no mutant 'nobody'; there are canary, ")
    assert len(done.stderr.splitlines()) == 1


def test_a_sound_executor_that_is_reported_stands_in_the_last_line() -> None:
    rows = [Row("native", {"pool": 64}, killed=True), Row("mutant/x", {"pool": None}, killed=False)]
    assert kill_table(rows, ["pool"]).splitlines()[1:] == [
        "native                  64    REPORTED",
        "x                       -     SURVIVED",
    ]
    assert score(rows) == "0 of 1 mutant killed; reported though sound: native"


@pytest.mark.parametrize(
    ("runs", "middle"),
    [([3, 1, 2], 2), ([200, None, 400], 400), ([200, None, None], None), ([8, None], None)],
)
def test_the_median_takes_seeds_that_did_not_kill_for_infinite(
    runs: list[int | None], middle: int | None
) -> None:
    assert median(runs) == middle
