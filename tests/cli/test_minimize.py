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


def test_a_test_is_made_smaller_and_still_shows_it(litmusfuzz, tmp_path: Path) -> None:
    """Under the controlled engine a seed decides."""
    arguments = ("--executors", "mutant/early-sink:controlled", "--out", "found", "--json")
    done = litmusfuzz("minimize", str(CORPUS / "runs-diamond.yaml"), *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)["finding"]
    (file,) = (tmp_path / "found").iterdir()  # nothing else is left there
    assert tmp_path / found["file"] == file
    entry = load(file)
    assert entry.finding is not None
    assert entry.finding.minimized
    assert entry.finding.confirmed
    assert (entry.finding.executor, entry.finding.model) == ("mutant/early-sink", "rfc")
    assert len(entry.test.effects) == 2
    assert litmusfuzz("replay", str(file)).returncode == 1


def test_a_finding_is_run_as_it_was_found(litmusfuzz, tmp_path: Path) -> None:
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "6", "--seed", "1", "--time", "60s", "--out", "out")
    raw = sorted((tmp_path / "out" / "unreduced").iterdir())[0]
    done = litmusfuzz("minimize", str(raw), "--out", "small", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    before, after = load(raw), load(tmp_path / json.loads(done.stdout)["finding"]["file"])
    assert before.finding is not None
    assert after.finding is not None
    assert (after.finding.seed, after.finding.index) == (1, before.finding.index)
    assert len(after.test.effects) < len(before.test.effects)


def test_what_a_campaign_left_is_finished_as_it_would_have_been(litmusfuzz, tmp_path: Path) -> None:
    """Under the controlled engine a seed decides; what was cut short is made by hand."""
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "12", "--seed", "1", "--time", "60s", "--out", "whole")
    whole = json.loads((tmp_path / "whole" / "record-1.json").read_text())
    assert whole["left"] == []
    assert len(whole["findings"]) >= 2
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    first, *others = whole["findings"]
    # One was minimized in part: it is as it was drawn. The others were not begun.
    raw = sorted((tmp_path / "cut" / "unreduced").iterdir())
    name = "wrong-in-part"
    (drawn,) = (each for each in map(load, raw) if each.finding.index == first["index"])
    part = replace(drawn, test=replace(drawn.test, name=name))
    save(part, tmp_path / "cut" / f"{name}.yaml")
    for each in whole["findings"]:
        (tmp_path / "cut" / Path(each["file"]).name).unlink()
    graphs = first["more_graphs"]
    in_part = first | {"file": f"whole/{name}.yaml", "name": name, "more_graphs": 0}
    data = whole | {
        "findings": [in_part | {"minimized": False, "confirmed": False}],
        "left": [each.name for each in raw if load(each) != drawn],
    }
    (tmp_path / "cut" / "record-1.json").write_text(json.dumps(data))

    done = litmusfuzz("minimize", "cut/record-1.json", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["taken"], told["left"], told["unconfirmed"]) == (len(raw), 0, 0)
    after = json.loads((tmp_path / "cut" / "record-1.json").read_text())
    assert (after["left"], after["not_minimized"]) == ([], 0)
    assert [each["name"] for each in after["findings"]] == [e["name"] for e in told["findings"]]

    def shown(record: dict[str, Any]) -> dict[str, int]:
        return {each["name"]: each["more_graphs"] for each in record["findings"]}

    assert shown(after) == shown(whole)
    assert after["families"] == whole["families"]
    assert graphs + sum(1 + each["more_graphs"] for each in others) == len(raw) - 1
    files = {file.name for file in (tmp_path / "cut").glob("*.yaml")}
    assert files == {Path(each["file"]).name for each in whole["findings"]}
    assert litmusfuzz("minimize", "cut/record-1.json").stdout.endswith(": nothing is left\n")
    assert after["not_minimized"] == 0
    assert after["finished_s"] > 0


def test_a_record_that_cannot_go_on_is_one_line(litmusfuzz, tmp_path: Path) -> None:
    arguments = ("--executors", "mutant/two-holders:controlled", "--families", "sections")
    litmusfuzz("run", *arguments, "--tests", "1", "--seed", "1", "--time", "60s", "--out", "out")
    path = tmp_path / "out" / "record-1.json"
    good = json.loads(path.read_text())
    elsewhere = [state | {"name": "elsewhere"} for state in good["executors"]]
    for data, told in (
        ([], "is no record of a campaign: "),
        ({}, "is no record of a campaign: no 'findings'"),
        (good | {"left": ["unreduced-1-7.yaml"]}, "unreduced/unreduced-1-7.yaml"),
        (good | {"executors": elsewhere}, "executors: "),
        (good | {"out": 5}, "is no record of a campaign: "),
        (good | {"unconfirmed": None}, "is no record of a campaign: "),
    ):
        path.write_text(json.dumps(data))
        done = litmusfuzz("minimize", "out/record-1.json")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("litmusfuzz: out/")
        assert told in done.stderr
        assert len(done.stderr.splitlines()) == 1
    path.write_text("{")
    assert litmusfuzz("minimize", "out/record-1.json").returncode == 2
    assert "continues a nightly run" in litmusfuzz("minimize", "nightly.json").stderr
    done = litmusfuzz("minimize", "out/record-1.json", "--out", "there")
    assert "only --time and --json" in done.stderr


def test_what_shows_nothing_is_said_in_one_line(litmusfuzz) -> None:
    done = litmusfuzz("minimize", str(CORPUS / "SB.yaml"), "--executors", "native:controlled")
    assert done.returncode == 3
    assert "shows nothing that rfc forbids in " in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_bad_file_is_one_line(litmusfuzz, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("litmusfuzz: 2\nname: 3\n")
    done = litmusfuzz("minimize", "bad.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("litmusfuzz: bad.yaml")
    assert len(done.stderr.splitlines()) == 1


def test_few_tests_show_what_many_do(litmusfuzz, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("SB", "MP", "runs-diamond", "loop-sum-carried", "loop-in-turn"):
        shutil.copy(CORPUS / f"{name}.yaml", folder)
    entry = load(CORPUS / "SB.yaml")
    save(replace(entry, test=replace(entry.test, name="SB-again")), folder / "SB-again.yaml")
    done = litmusfuzz("cmin", "many", "--out", "few", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    kept = sorted(file.name for file in (tmp_path / "few").iterdir())
    assert kept == sorted(told["kept"])
    assert told["proved"]
    assert told["tests"] == 6
    assert "kills mutant/old-frame" in told["kept"]["loop-sum-carried.yaml"]
    assert not {"SB.yaml", "SB-again.yaml"} <= set(kept)
    for name in kept:
        assert (tmp_path / "few" / name).read_bytes() == (folder / name).read_bytes()
    again = litmusfuzz("cmin", "many", "--out", "few")
    assert (again.returncode, again.stderr) == (2, "litmusfuzz: --out: few is not empty\n")
    assert litmusfuzz("cmin", "nowhere", "--out", "x").returncode == 2


def test_the_doctor_says_what_works_here(litmusfuzz) -> None:
    done = litmusfuzz("doctor", "--json", timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    told = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("Python", "oracle (C++)", "executor native", "tf/plain"):
        assert told[name]["good"]
        assert told[name]["basic"]
    assert "--tf_xla_cpu_global_jit" in told["tf/autocluster"]["says"]
    assert all(check["get"] for check in told.values() if not check["good"])


def test_the_doctor_says_how_to_get_what_is_missing() -> None:
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
