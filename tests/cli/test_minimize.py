"""`litmusfuzz minimize`, `cmin` and `doctor`."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers import LITMUS

from litmusfuzz.corpus.textfile import load, save
from litmusfuzz.reports.doctor import Check, doctor_text, works

CORPUS = LITMUS[0].parent


def test_a_test_is_minimized_and_still_shows_its_outcome(litmusfuzz, tmp_path: Path) -> None:
    """The controlled engine is deterministic by seed."""
    arguments = ("--executors", "mutant/early-sink:controlled", "--out", "found", "--json")
    done = litmusfuzz("minimize", str(CORPUS / "runs-diamond.yaml"), *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)["finding"]
    (file,) = (tmp_path / "found").iterdir()  # and no other file
    assert tmp_path / found["file"] == file
    entry = load(file)
    assert entry.finding is not None
    assert entry.finding.minimized
    assert entry.finding.confirmed
    assert (entry.finding.executor, entry.finding.model) == ("mutant/early-sink", "rfc")
    assert len(entry.test.effects) == 2
    assert litmusfuzz("replay", str(file)).returncode == 1


def test_a_finding_is_minimized_with_the_settings_of_its_file(litmusfuzz, tmp_path: Path) -> None:
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "6", "--seed", "1", "--time", "60s", "--out", "out")
    unreduced = sorted((tmp_path / "out" / "unreduced").iterdir())[0]
    done = litmusfuzz("minimize", str(unreduced), "--out", "small", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    before, after = load(unreduced), load(tmp_path / json.loads(done.stdout)["finding"]["file"])
    assert before.finding is not None
    assert after.finding is not None
    assert (after.finding.seed, after.finding.index) == (1, before.finding.index)
    assert len(after.test.effects) < len(before.test.effects)


def test_deferred_findings_are_minimized_as_the_campaign_would_have(
    litmusfuzz, tmp_path: Path
) -> None:
    """The controlled engine is deterministic by seed; the unfinished record is made by hand."""
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "12", "--seed", "1", "--time", "60s", "--out", "whole")
    whole = json.loads((tmp_path / "whole" / "record-1.json").read_text())
    assert whole["unreduced"] == []
    assert len(whole["findings"]) >= 2
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    first, *others = whole["findings"]
    # One finding is minimized in part and the others not at all.
    unreduced = sorted((tmp_path / "cut" / "unreduced").iterdir())
    name = "wrong-in-part"
    (partial,) = (each for each in map(load, unreduced) if each.finding.index == first["index"])
    part = replace(partial, test=replace(partial.test, name=name))
    save(part, tmp_path / "cut" / f"{name}.yaml")
    for each in whole["findings"]:
        (tmp_path / "cut" / Path(each["file"]).name).unlink()
    graphs = first["more_graphs"]
    in_part = first | {"file": f"whole/{name}.yaml", "name": name, "more_graphs": 0}
    data = whole | {
        "findings": [in_part | {"minimized": False, "confirmed": False}],
        "unreduced": [each.name for each in unreduced if load(each) != partial],
    }
    (tmp_path / "cut" / "record-1.json").write_text(json.dumps(data))

    done = litmusfuzz("minimize", "cut/record-1.json", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["attempted"], report["remaining"], report["unconfirmed"]) == (
        len(unreduced),
        0,
        0,
    )
    after = json.loads((tmp_path / "cut" / "record-1.json").read_text())
    assert (after["unreduced"], after["not_minimized"]) == ([], 0)
    assert [each["name"] for each in after["findings"]] == [e["name"] for e in report["findings"]]

    def shown(record: dict[str, Any]) -> dict[str, int]:
        return {each["name"]: each["more_graphs"] for each in record["findings"]}

    assert shown(after) == shown(whole)
    assert after["families"] == whole["families"]
    assert graphs + sum(1 + each["more_graphs"] for each in others) == len(unreduced) - 1
    files = {file.name for file in (tmp_path / "cut").glob("*.yaml")}
    assert files == {Path(each["file"]).name for each in whole["findings"]}
    assert litmusfuzz("minimize", "cut/record-1.json").stdout.endswith(": nothing is left\n")
    assert after["not_minimized"] == 0
    assert after["finished_s"] > 0


def test_an_unusable_record_is_reported_in_one_line(litmusfuzz, tmp_path: Path) -> None:
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "1", "--seed", "1", "--time", "60s", "--out", "out")
    path = tmp_path / "out" / "record-1.json"
    good = json.loads(path.read_text())
    elsewhere = [state | {"name": "elsewhere"} for state in good["executors"]]
    for data, report in (
        ([], "is no record of a campaign: "),
        ({}, "litmusfuzz_record: is version 1 of a record, this program reads version 2: "),
        (good | {"litmusfuzz_record": 1}, "is version 1 of a record, this program reads version 2"),
        ({"litmusfuzz_record": 2}, "is no record of a campaign: no 'findings'"),
        (good | {"unreduced": ["unreduced-1-7.yaml"]}, "unreduced/unreduced-1-7.yaml"),
        (good | {"executors": elsewhere}, "executors: "),
        (good | {"out": 5}, "is no record of a campaign: "),
        (good | {"unconfirmed": None}, "is no record of a campaign: "),
    ):
        path.write_text(json.dumps(data))
        done = litmusfuzz("minimize", "out/record-1.json")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("litmusfuzz: out/")
        assert report in done.stderr
        assert len(done.stderr.splitlines()) == 1
    path.write_text("{")
    assert litmusfuzz("minimize", "out/record-1.json").returncode == 2
    assert "continues a nightly run" in litmusfuzz("minimize", "nightly.json").stderr
    done = litmusfuzz("minimize", "out/record-1.json", "--out", "there")
    assert "only --time and --json" in done.stderr


def test_a_test_without_forbidden_outcome_is_reported_in_one_line(litmusfuzz) -> None:
    done = litmusfuzz("minimize", str(CORPUS / "SB.yaml"), "--executors", "native:controlled")
    assert done.returncode == 3
    assert "shows nothing that rfc forbids in " in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_bad_file_is_reported_in_one_line(litmusfuzz, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("litmusfuzz: 2\nname: 3\n")
    done = litmusfuzz("minimize", "bad.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: bad.yaml")
    assert len(done.stderr.splitlines()) == 1


def test_few_tests_cover_what_many_do(litmusfuzz, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("SB", "MP", "runs-diamond", "loop-sum-carried", "loop-in-turn"):
        shutil.copy(CORPUS / f"{name}.yaml", folder)
    entry = load(CORPUS / "SB.yaml")
    save(replace(entry, test=replace(entry.test, name="SB-again")), folder / "SB-again.yaml")
    done = litmusfuzz("cmin", "many", "--out", "few", "--json")
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
    again = litmusfuzz("cmin", "many", "--out", "few")
    assert (again.returncode, again.stderr) == (2, "litmusfuzz: --out: few is not empty\n")
    assert litmusfuzz("cmin", "nowhere", "--out", "x").returncode == 2


def test_doctor_lists_what_works_here(litmusfuzz) -> None:
    done = litmusfuzz("doctor", "--json", timeout_s=300)
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
    assert works([fine, lacking])
    assert doctor_text([fine, lacking]).splitlines() == [
        "Python    ok       3.12.1",
        "graphviz  missing  missing",
        "graphviz: apt install graphviz",
        "the basics work; 1 thing missing",
    ]
    assert not works([fine, broken])
    assert doctor_text([fine, broken]).splitlines()[-1] == "the basics do not work; 1 thing missing"
