"""Attacks on what is written and said: scripts, logs, exit codes, which tests are run."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import yaml

from tests.attacks.attack import ROOT, Place, attack

PYTHON = Path(sys.executable)
SB = ROOT / "corpus/litmus/SB.yaml"
FINDING = ROOT / "corpus/findings/scatter-beside-scatter.yaml"


@attack("to have a correct TensorFlow blamed: copies of two variables are one variable in a script")
def a_script_whose_copies_share_a_variable(place: Place) -> str:
    text = re.sub(r"\bX\b", "V1", FINDING.read_text())
    text = text.replace("variables:\n", "variables:\n  V: {dtype: float32, shape: [2, 1]}\n", 1)
    text = text.replace("{V1: torn}", "{V: [0, 0], V1: torn}")
    text = re.sub(r"(?ms)^allowed:.*?(?=^finding)", "", text)
    ended = place.run("show", "--format", "script", place.write("a.yaml", text), codes=(0,))
    (shared,) = set(re.findall(r'shared_name=f"(.*?)"', ended.out))
    names = re.findall(r"'(V1?)': \(tf\.", ended.out)
    assert sorted(set(names)) == ["V", "V1"]
    pattern = shared.replace("{self.number}", "{number}")
    made = [pattern.format(name=name, number=n) for name in set(names) for n in range(64)]
    assert len(set(made)) == len(made), "two resources have one name"
    return f"names like {made[0]}"


@attack("to have a replay that ran nothing taken for a clean one")
def a_replay_without_time(place: Place) -> str:
    ended = place.run("replay", SB, "--executors", "native", "--time", "0.000001ms")
    assert ended.code == 3
    several = ("--executors", "native,native:fifo", "--time", "0.000001ms")
    assert place.run("replay", SB, *several).code == 3
    return ended.out.strip().splitlines()[-1]


@attack("to have a finding destroyed: it is named as a log")
def a_log_over_a_finding(place: Place) -> str:
    shutil.copyfile(FINDING, place.folder / "f.yaml")
    before = (place.folder / "f.yaml").read_bytes()
    options = ("--executors", "native", "--log", "f.yaml")
    ended = place.run("replay", SB, *options, "--count", "10", codes=(2,))
    place.run("force", SB, *options, "--outcome", "r0=0,r1=1", codes=(2,))
    assert (place.folder / "f.yaml").read_bytes() == before
    for _ in range(2):  # an older log is replaced
        place.run(
            "replay", SB, "--executors", "native", "--log", "a.log", "--count", "9", codes=(0,)
        )
    return ended.error


@attack("to keep a test from pytest: it is written in braces, or indented")
def a_test_that_pytest_does_not_see(place: Place) -> str:
    data = yaml.safe_load(SB.read_text())
    place.write("braces.yaml", json.dumps(data))
    place.write("indented.yaml", "".join(f"  {line}\n" for line in SB.read_text().splitlines()))
    place.write("workflow.yaml", "jobs:\n  a: {run: pip install litmusfuzz}\n")
    place.write("broken.yaml", "jobs: {litmusfuzz: [\n")
    place.run("oracle", "braces.yaml", "indented.yaml", codes=(0,))
    options = ("-p", "no:cacheprovider", "--litmus-executors=native", "--litmus-count=64", "-v")
    ended = place.run("-m", "pytest", *options, ".", program=PYTHON, codes=(0,))
    assert "2 passed" in ended.out, ended.out[-500:]
    return ended.out.strip().splitlines()[-1]
