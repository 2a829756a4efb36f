"""`litmusfuzz minimize`, `cmin` and `doctor`."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from helpers import LITMUS

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load, save
from litmusfuzz.reports.doctor import Check, DoctorReport

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = LITMUS[0].parent


def test_a_test_is_minimized_and_still_shows_its_outcome(litmusfuzz_here, tmp_path: Path) -> None:
    """The controlled engine is deterministic by seed."""
    arguments = ("--executors", "mutant/early-sink:controlled", "--out", "found", "--json")
    arguments = (*arguments, "--time", "10m")
    done = litmusfuzz_here("minimize", str(CORPUS / "runs-diamond.yaml"), *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)["finding"]
    (file,) = (tmp_path / "found").iterdir()  # and no other file
    assert tmp_path / found["file"] == file
    entry = load(file)
    assert entry.finding is not None
    assert entry.finding.minimized
    assert entry.finding.confirmed
    assert (entry.finding.executor, entry.finding.model) == ("mutant/early-sink", "executor")
    assert len(entry.test.effects) == 2
    assert litmusfuzz_here("replay", str(file)).returncode == 1


def test_a_finding_is_minimized_with_the_settings_of_its_file(
    litmusfuzz_here, tmp_path: Path
) -> None:
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz_here(
        "run", *arguments, "--tests", "6", "--seed", "1", "--time", "10m", "--out", "out"
    )
    unreduced = sorted((tmp_path / "out" / "unreduced").iterdir())[0]
    done = litmusfuzz_here("minimize", str(unreduced), "--out", "small", "--time", "10m", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    before, after = load(unreduced), load(tmp_path / json.loads(done.stdout)["finding"]["file"])
    assert before.finding is not None
    assert after.finding is not None
    assert (after.finding.seed, after.finding.index) == (1, before.finding.index)
    assert len(after.test.effects) < len(before.test.effects)


def test_what_is_no_test_is_refused_with_the_command_that_resumes(
    litmusfuzz_here, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    for what in ("out", "out/record-1.json", "report.json"):
        done = litmusfuzz_here("minimize", what)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"litmusfuzz: {what}: is no test; `litmusfuzz run --resume FOLDER --tests 0` minimizes"
            " what a campaign left\n"
        )


def test_a_test_without_forbidden_outcome_is_reported_in_a_line(litmusfuzz) -> None:
    """In a process of its own: no page runs the command."""
    done = litmusfuzz("minimize", str(CORPUS / "SB.yaml"), "--executors", "native:controlled")
    assert done.returncode == 3
    judged_by, problem = done.stdout.splitlines()
    assert judged_by == "judged by the model executor, which native/controlled guarantees"
    assert "shows nothing that executor forbids in " in problem


def test_a_bad_file_is_reported_in_one_line(litmusfuzz_here, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("litmusfuzz: 2\nname: 3\n")
    done = litmusfuzz_here("minimize", "bad.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: bad.yaml")
    assert len(done.stderr.splitlines()) == 1


def test_few_tests_cover_what_many_do(litmusfuzz, litmusfuzz_here, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("SB", "MP", "runs-diamond", "loop-sum-carried", "loop-in-turn"):
        shutil.copy(CORPUS / f"{name}.yaml", folder)
    entry = load(CORPUS / "SB.yaml")
    save(replace(entry, test=replace(entry.test, name="SB-again")), folder / "SB-again.yaml")
    done = litmusfuzz("cmin", "many", "--out", "few", "--json")  # no page runs it
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    kept = sorted(file.name for file in (tmp_path / "few").iterdir())
    assert kept == sorted(report["kept"])
    assert report["proved"]
    assert report["tests"] == 6
    assert "kills mutant/old-frame" in report["kept"]["loop-sum-carried.yaml"]
    assert not {"SB.yaml", "SB-again.yaml"} <= set(kept)
    for name in kept:
        assert (tmp_path / "few" / name).read_bytes() == (folder / name).read_bytes()
    again = litmusfuzz_here("cmin", "many", "--out", "few")
    assert (again.returncode, again.stderr) == (2, "litmusfuzz: --out: few is not empty\n")
    assert litmusfuzz_here("cmin", "nowhere", "--out", "x").returncode == 2


def test_doctor_lists_what_works_here(litmusfuzz_here) -> None:
    done = litmusfuzz_here("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("Python", "oracle (C++)", "executor native", "tf/plain"):
        assert report[name]["good"]
        assert report[name]["basic"]
    assert "--tf_xla_cpu_global_jit" in report["tf/autocluster"]["says"]
    assert all(check["get"] for check in report.values() if not check["good"])


def test_doctor_says_how_to_install_what_is_missing() -> None:
    fine = Check("Python", "3.12.1", basic=True)
    lacking = Check("graphviz", "missing", "apt install graphviz", good=False)
    broken = Check("tf/plain", "signal 4", "pip install tensorflow-cpu", good=False, basic=True)
    report = DoctorReport((fine, lacking))
    assert report.works
    assert report.text().splitlines() == [
        "Python    ok       3.12.1",
        "graphviz  missing  missing",
        "graphviz: apt install graphviz",
        "the basics work; 1 thing missing",
    ]
    report = DoctorReport((fine, broken))
    assert not report.works
    assert report.text().splitlines()[-1] == "the basics do not work; 1 thing missing"
