"""`litmusfuzz known compare`: which findings are one cause, on a mutant with two defects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, Finding, dumps, load, outcome_from_plain, save
from litmusfuzz.fuzz.commands.known_cause import known_cause
from litmusfuzz.fuzz.finding import known_file
from litmusfuzz.reports.events import FindingAdded

if TYPE_CHECKING:
    from pathlib import Path

MUTANT = "mutant/early-scatter"
FINDINGS = {
    "scatter": ("X[0]=1 || r0=X", "plain", {"r0": "torn", "X": 1}),
    "add": ("X[0]+=1 || r0=X[0]", "plain", {"r0": "torn", "X": 1}),
    "after": ("X[0]=1; r0=X", "early", {"r0": "torn", "X": 1}),
}
"""Two of one defect, and one of another, which needs a setting."""


@pytest.fixture
def findings(tmp_path: Path) -> dict[str, str]:
    """The findings' files, by name."""
    for name, (notation, configuration, shown) in FINDINGS.items():
        test = litmus(notation, shape=(1, 2), name=name)
        found = Finding(
            *(MUTANT, configuration, "executor", ((outcome_from_plain(test, shown), 1),), 64),
            *({}, {}, {}, 1, 0, "dag"),
            minimized=True,
            confirmed=True,
        )
        save(Entry(test, finding=found), tmp_path / f"{name}.yaml")
    return {name: f"{name}.yaml" for name in FINDINGS}


def test_a_minimized_finding_that_is_known_says_so(
    litmusfuzz_here, tmp_path: Path, findings: dict[str, str]
) -> None:
    """By experiments, and once its own key is known by that; new if neither explains it."""
    (tmp_path / "known.yaml").write_text(
        "litmusfuzz_known: 3\nfindings:\n"
        "  - {finding: after.yaml, name: what-is-later, why: another}\n"
        "  - {finding: add.yaml, name: what-adds, why: ours}\n"
    )
    minimize = ("minimize", findings["scatter"], "--time", "10m", "--out", "found")
    done = litmusfuzz_here(*minimize, "--known", "known.yaml")
    assert done.returncode == 1, done.stderr
    *_, known, replay = done.stdout.splitlines()
    assert known == "  known     what-adds: ours"
    assert replay.startswith("  replay    litmusfuzz replay found/")
    file = replay.split()[-1]
    litmusfuzz_here("known", "add", "keys.yaml", file, "--why", "by its key")
    data = json.loads(litmusfuzz_here(*minimize, "--known", "keys.yaml", "--json").stdout)
    assert data["known"] == {"title": data["finding"]["key"], "why": "by its key"}
    new = litmusfuzz_here(*minimize, "--json")
    assert new.returncode == 1
    data = json.loads(new.stdout)
    assert (data["known"], data["known_undecided"]) == (None, [])


def test_what_no_time_is_left_to_decide_is_undecided(
    tmp_path: Path, findings: dict[str, str]
) -> None:
    (tmp_path / "known.yaml").write_text(
        "litmusfuzz_known: 3\nfindings:\n  - {finding: add.yaml, name: what-adds, why: ours}\n"
    )
    entry = load(tmp_path / findings["scatter"])
    found = FindingAdded(
        index=0,
        executor=MUTANT,
        configuration="plain",
        key="none",
        file="scatter.yaml",
        entry=dumps(entry),
        executor_class=f"{MUTANT}/executor",
        cause="",
    )
    said = known_cause(found, known_file.load(tmp_path / "known.yaml"), time_s=0.0)
    assert list(said.lines()) == ["  known     undecided whether it is what-adds"]
    assert said.as_json() == {"known": None, "known_undecided": ["what-adds"]}


def test_each_two_findings_are_compared(litmusfuzz_here, findings: dict[str, str]) -> None:
    done = litmusfuzz_here("known", "compare", *findings.values())
    assert done.returncode == 0, done.stderr
    pairs = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert pairs == [
        "scatter.yaml and add.yaml: one cause",
        "scatter.yaml and after.yaml: two causes",
        "add.yaml and after.yaml: two causes",
    ]
    assert done.stdout.count("\n    control: ") == 6  # each comparison says how often it shows
    rows = json.loads(litmusfuzz_here("known", "compare", *findings.values(), "--json").stdout)
    assert [row["verdict"] for row in rows] == ["one cause", "two causes", "two causes"]
    by_finding = {
        (each["finding"], each["cause"]): each for row in rows for each in row["comparisons"]
    }
    assert len(by_finding) == 6
    explained = by_finding["add.yaml", "scatter.yaml"]
    assert (explained["verdict"], explained["why"]) == ("explained", "")
    trigger = explained["experiments"][-1]
    assert (trigger["reason"], trigger["seen"], trigger["shows"]) == ("trigger", 0, False)
    new = by_finding["after.yaml", "scatter.yaml"]
    assert (new["verdict"], new["why"]) == ("new", "shows without the ops of the cause")


def test_what_cannot_be_compared_is_refused_in_one_line(
    litmusfuzz_here, findings: dict[str, str], tmp_path: Path
) -> None:
    text = (tmp_path / "add.yaml").read_text().replace(f"executor: {MUTANT}", "executor: native")
    (tmp_path / "native.yaml").write_text(text)
    save(Entry(litmus("X=1")), tmp_path / "none.yaml")
    for files, said in {
        ("add.yaml",): "name at least two findings",
        ("add.yaml", "after.yaml", "add.yaml"): "a file is named twice",
        ("add.yaml", "none.yaml"): "none.yaml: has no finding with a forbidden outcome",
        ("add.yaml", "native.yaml"): "native.yaml of native",
    }.items():
        done = litmusfuzz_here("known", "compare", *files)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert said in done.stderr
