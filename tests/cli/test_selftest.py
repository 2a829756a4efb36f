"""`litmusfuzz selftest`: killed mutants, controls without findings, and exit codes."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.mutant_candidates import controls, mutants
from litmusfuzz.fuzz.campaign.selftest import selftest
from litmusfuzz.fuzz.executors.protocol import Mutant
from litmusfuzz.fuzz.executors.table import CANARY, executor_class
from litmusfuzz.reports.events import Kill
from litmusfuzz.reports.kills import Effort, Selftest, kill_table, score_line

if TYPE_CHECKING:
    import pytest


def test_mutants_of_every_executor_are_killed(litmusfuzz_here) -> None:
    """None of these needs luck.

    Under the controlled engine a seed decides, and what reads of a copy show on TensorFlow
    is wrong in each execution. It ends when all are killed.
    """
    names = ("canary", "stale-reads", "dropped-control-edge", "tf-copied-variables")
    done = litmusfuzz_here("selftest", *names, "early-snapshot", "--time", "1h", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["killed"], report["score"]) == (5, 1.0)
    assert {kill["executor"] for kill in report["kills"]} == {"native", "tf", "jax"}
    for kill in report["kills"]:
        assert kill["seconds"] >= 0
        assert report["setups"][kill["setup"]]["kills"]
        assert report["families"][kill["family"]]["kills"]


def test_a_kill_is_written_and_shows_again(litmusfuzz_here, tmp_path) -> None:
    out = tmp_path / "kills"
    done = litmusfuzz_here("selftest", "stale-reads", "--time", "1h", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(each for each in done.stdout.splitlines() if each.startswith("to see it again: "))
    (file,) = out.iterdir()
    assert line == f"to see it again: litmusfuzz replay {file}"
    again = litmusfuzz_here("replay", str(file))
    assert again.returncode == 1, again.stdout + again.stderr
    assert "mutant/stale-reads" in again.stdout


def test_no_control_is_reported() -> None:
    """However long it takes: nothing that these show is forbidden."""
    names = ("stale-reads", "dropped-control-edge", "two-holders", "split-updates")

    def interrupt(found: Selftest) -> None:
        if all(kill.graphs > 3 for kill in found.kills):
            raise KeyboardInterrupt

    found = selftest(tuple(f"control/{name}" for name in names), time_s=3600, show=interrupt)
    assert found.interrupted
    assert found.killed == 0


def test_a_test_that_does_not_reach_a_defect_is_not_run() -> None:
    """Most tests have no accumulator; under the controlled engine a seed decides."""
    found = selftest(("mutant/old-step",), workers=1, time_s=3600)
    (kill,) = found.kills
    assert found.killed == 1
    assert kill.test
    assert sum(each.runs for each in found.setups.values()) < kill.graphs * len(found.setups) / 3


def test_mutants_of_a_missing_device_are_left_out(litmusfuzz_here, monkeypatch) -> None:
    """Without drivers OpenCL finds no device; and without a plug-in there is none either."""
    monkeypatch.setenv("OCL_ICD_VENDORS", "/dev/null")
    done = litmusfuzz_here("selftest", "dropped-control-edge", "opencl-contraction")
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("1 of 1 mutant killed in ")
    assert "; 1 left out: device opencl:0 (" in last
    done = litmusfuzz_here("selftest", "opencl-contraction")
    assert done.returncode == 2, done.stdout + done.stderr


def test_controls_are_run_instead_of_mutants(litmusfuzz_here) -> None:
    done = litmusfuzz_here("selftest", "stale-reads", "--control", "--time", "2s", "--json")
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["killed"] == 0
    assert [kill["mutant"] for kill in report["kills"]] == ["control/stale-reads"]


def test_an_interrupt_ends_it_with_the_results_so_far(request: pytest.FixtureRequest) -> None:
    # Processes of pytest-xdist ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def interrupt(found: Selftest) -> None:
        if found.killed:
            signal.raise_signal(signal.SIGINT)

    found = selftest(("mutant/canary", "mutant/old-frame"), workers=1, time_s=3600, show=interrupt)
    assert found.interrupted
    canary, other = found.kills
    assert canary.seconds is not None
    assert other.seconds is None


def test_a_mutant_that_survives_is_said_to_and_the_exit_says_so(litmusfuzz) -> None:
    """In a process of its own: no page runs the command."""
    done = litmusfuzz("selftest", "old-frame", "--time", "1ms")
    assert done.returncode == 2
    last = done.stdout.splitlines()[-1]
    assert last == "0 of 1 mutant killed in 0 of 0 s; not killed: mutant/old-frame"


def test_an_unknown_mutant_is_refused_in_one_line(litmusfuzz_here) -> None:
    done = litmusfuzz_here("selftest", "nobody")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: no mutant 'nobody'; there are canary, ")
    assert len(done.stderr.splitlines()) == 1


def test_every_mutant_but_the_canary_can_be_had_without_its_defect() -> None:
    assert len(controls()) == len(mutants()) - 1
    for name in mutants():
        made = executor_class(name)
        assert isinstance(made, Mutant) is (name != CANARY)
    for name in controls():
        control, mutant = executor_class(name), executor_class(name.replace("control/", "mutant/"))
        assert control is not mutant
        assert control.support == mutant.support
        environments = {config.name: config.environment for config in control.configurations()}
        for config in mutant.configurations():
            if "unchecked" not in name and "split-updates" not in name:  # the defect is there
                assert environments[config.name] == config.environment


def test_the_table_has_survivors_first_and_what_killed_the_others() -> None:
    found = Selftest(
        kills=(
            Kill("mutant/a", "native", 0.5, 3, "corpus", "pool", "SB"),
            Kill("mutant/b", "tf", None, 40),
            Kill("mutant/c", "jax", None, 0),
        ),
        setups={"pool": Effort(7, 1.5, 1)},
        families={"corpus": Effort(7, 1.5, 1)},
        seconds=2.0,
        asked_s=300.0,
        seed=0,
        unavailable={"mutant/c": "no jax"},
    )
    assert kill_table(found).splitlines() == [
        "mutant    executor  killed in  tests  killed by  family  run setup",
        "mutant/b  tf        -          40",
        "mutant/c  jax       no jax     0",
        "mutant/a  native    0.50 s     3      SB         corpus  pool",
        "",
        "run setup  kills  runs  time",
        "pool       1      7     1.5 s",
        "",
        "family  kills  runs  time",
        "corpus  1      7     1.5 s",
    ]
    line = "1 of 3 mutants killed in 2 of 300 s; not killed: mutant/b, mutant/c"
    assert score_line(found, control=False) == line
    assert score_line(found, control=True) == "1 of 3 controls reported in 2 of 300 s: mutant/a"
