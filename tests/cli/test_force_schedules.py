"""`litmusfuzz force` under control: every schedule of a test on real TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

from litmusfuzz import corpus

WRITES_TWICE = str(Path(corpus.__file__).parent / "findings" / "first-assignment-writes-twice.yaml")
SB = "X=1; r0=Y || Y=1; r1=X"


def test_all_schedules_of_tests_are_executed_and_counted(litmusfuzz_here) -> None:
    result = litmusfuzz_here(
        *("force", SB, "lost-update", "--executors", "tf:controlled", "--model", "rfc", "--json")
    )
    sb, lost = json.loads(result.stdout)
    assert result.returncode == 0
    assert sb["all"]
    assert sb["schedules"] == sb["executions"] == 3
    assert [each["schedules"] for each in sb["reached"]] == [1, 1, 1]
    assert {each["verdict"] for each in sb["reached"]} == {"allowed"}
    assert {each["schedule"]["needs"] for each in sb["reached"]} == {
        "needs no switch: ops in this order"
    }
    assert sb["not_reached"] == []
    assert lost["all"]
    reason = "needs an update split in two"
    assert lost["not_reached"] == [{"outcome": {"X": 1}, "reason": reason}]


def test_a_forbidden_outcome_is_shown_with_the_fewest_preemptions_and_replayed(
    litmusfuzz_here, tmp_path
) -> None:
    result = litmusfuzz_here(
        *("force", WRITES_TWICE, "--executors", "tf:controlled_locks", "--out", str(tmp_path))
    )
    assert result.returncode == 1
    assert ": all 19 schedules, in 19 executions on tf/controlled_locks: " in result.stdout
    assert "FORBIDDEN on tf/controlled_locks: X=1" in result.stdout
    assert "  needs a switch inside AssignVariableOp, between two locks" in result.stdout
    assert result.stdout.count("<- switch inside") == 1
    (file,) = tmp_path.iterdir()
    again = litmusfuzz_here("replay", str(file), "--schedule")
    assert again.returncode == 1
    assert "replayed by its schedule: same outcome" in again.stdout
    assert again.stdout.count("<- switch inside") == 1
    text = file.read_text()
    file.write_text(text.replace("again: 1", "again: 5"))
    left = litmusfuzz_here("replay", str(file), "--schedule")
    assert left.returncode == 3
    assert "event 7 of the schedule, w1/lock (6), is not enabled; these are: w1/lock" in left.stdout


def test_a_search_that_is_cut_off_or_bounded_does_not_say_all(litmusfuzz_here) -> None:
    result = litmusfuzz_here("force", SB, "--executors", "tf:controlled", "--limit", "2")
    assert result.returncode == 3
    assert "in 2 executions: cut off (2) on tf/controlled" in result.stdout
    assert "all " not in result.stdout.replace("allowed", "")
    bounded = litmusfuzz_here(
        *("force", WRITES_TWICE, "--executors", "tf:controlled_locks", "--preemptions", "0")
    )
    assert bounded.returncode == 0
    assert "all 2 schedules with at most 0 preemptions, in 2 executions" in bounded.stdout


def test_options_of_schedules_and_of_orders_do_not_mix(litmusfuzz_here) -> None:
    for command, message in (
        (("--executors", "native", "--limit", "3"), "--limit: needs an executor under control"),
        (("--executors", "native", "--out", "x"), "--out: needs an executor under control"),
        (("--executors", "tf:controlled,native"), "--executors: those under control execute"),
        (("--executors", "tf:controlled", "--outcome", "r0=0"), "--outcome: not under control"),
        (("--executors", "tf:controlled", "--preemptions", "-1"), "Invalid value"),
    ):
        result = litmusfuzz_here("force", "SB", *command)
        assert result.returncode == 2, command
        assert message in result.stderr, command


def test_a_test_that_the_executor_refuses_is_a_mistake(litmusfuzz_here) -> None:
    config = "front_end=function;control=locks"
    result = litmusfuzz_here("force", "nested-three-ring", "--executors", f"tf:{config}")
    assert result.returncode == 2
    assert f"critical sections in configuration {config}" in result.stderr


def test_a_folder_that_cannot_be_made_is_one_line(litmusfuzz_here, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file")
    result = litmusfuzz_here("force", SB, "--executors", "tf:controlled", "--out", out)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert out in result.stderr
