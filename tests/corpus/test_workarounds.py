"""What is said of each known cause: its effect, the settings that it needs, and a workaround.

Those that are run by a script are shown in tests/corpus/test_findings.py and tests/jax_refs.
"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import nightly

from litmusfuzz import corpus
from litmusfuzz.corpus.document import FileError
from litmusfuzz.fuzz.campaign.trial_runner import TrialBudget
from litmusfuzz.fuzz.executors import installed
from litmusfuzz.fuzz.executors.entries import load
from litmusfuzz.fuzz.finding.defect import EFFECTS, NONE_KNOWN
from litmusfuzz.fuzz.finding.known_file import loads, shipped
from tests.corpus import workarounds

if TYPE_CHECKING:
    from conftest import Command

FOLDER = Path(corpus.__file__).parent / "findings"
PAGE = (Path(__file__).parents[2] / "docs" / "tensorflow-findings.md").read_text(encoding="utf-8")
NAMES = [
    *(path.stem for path in FOLDER.glob("*.yaml")),
    "cancelled-enqueue-waits-for-itself",  # a script alone
    *(f"jax-{path.stem}" for path in (FOLDER / "jax").glob("*.yaml")),
]
needs_tensorflow = pytest.mark.skipif(not find_spec("tensorflow"), reason="needs TensorFlow")
QUICK = ("cluster-spans-two-sections", "call-overtakes-one-of-two-reads")
"""Show in nearly all executions, also beside other work."""


def test_each_cause_of_the_corpus_says_what_it_does_and_what_helps() -> None:
    described = {each.name: each.defect for each in shipped().entries if each.defect}
    assert sorted(described) == sorted(NAMES)
    for name, defect in described.items():
        files = [each for each in (defect.test, defect.script) if each]
        assert files, name
        assert defect.script or f"script: `litmusfuzz show {name} --format script`" in PAGE, name
        assert all((FOLDER.parent / each).is_file() for each in files), name
        assert defect.effect in EFFECTS
        # Read alone: lists are narrowed and sorted.
        assert not re.match(r"(The|All the) same|It\b", defect.what), name
        assert (defect.run is None) is (defect.workaround == NONE_KNOWN), name
        if defect.run and defect.run[0] == "script":
            script = "findings/jax/" if name.startswith("jax-") else "findings/"
            assert script + defect.run[1] == defect.script
    # What the unsound clusters of a campaign do is said of the findings that they cause.
    others = [each.name for each in shipped().entries if not each.defect]
    assert all(name.startswith("unsound-") for name in others)


def test_the_effects_are_those_that_the_findings_show() -> None:
    for each in shipped().entries:
        if each.cause and each.defect:
            shown = each.cause.case.symptoms if each.cause.case else ()
            blocks = "blocked" in shown
            assert (each.defect.effect == "hang") is blocks, each.name
            assert each.defect.effect in ("silently wrong", "hang"), each.name
        elif each.pattern and each.defect:
            assert each.defect.effect in ("crash", "error"), each.name


def test_a_wrong_description_is_reported_in_one_line() -> None:
    right = "what: w, effect: crash, needs: n, workaround: none known"
    for wrong, message in (
        (right.replace("crash", "bad"), "effect: is one of silently wrong, crash, error, hang"),
        (right.replace("what: w", "what: ''"), "defect.what: is one line, got ''"),
        (f"{right}, run: {{section: plain}}", "run: says how a workaround was run, and 'none kn"),
        (right.replace("none known", "this"), "run: says how a workaround was run"),
        (f"{right}, script: nope.py", "script: nope.py: no such file"),
        (f"{right}, cause: x", "defect.cause: unknown field"),
    ):
        text = f"litmusfuzz_known: 3\nfindings:\n  - {{name: a, why: w, defect: {{{wrong}}}}}\n"
        with pytest.raises(FileError) as error:
            loads(text, "k")
        assert str(error.value).startswith("k:3: findings.0.defect."), error.value
        assert message in str(error.value)
    text = f"litmusfuzz_known: 3\nfindings:\n  - {{name: a, why: w, defect: {{{right}}}}}\n"
    (entry,) = loads(text + text.splitlines()[-1].replace("a,", "b,") + "\n").entries[:1]
    assert entry.title == "a"
    with pytest.raises(FileError, match="stands twice"):
        loads(text + text.splitlines()[-1] + "\n")


def test_the_list_of_findings_is_that_of_the_installed_versions(
    litmusfuzz_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"tensorflow": "2.21.3", "jax": "0.10.3"}
    monkeypatch.setattr(installed, "installed", lambda _: there)
    done = litmusfuzz_here("list", "findings", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["versions"] == there
    assert {each["versions"] for each in data["findings"]} == {"tensorflow 2.21"}
    (read,) = (each for each in data["findings"] if each["name"] == "scatter-beside-read")
    assert load(read["file"]).test.name == "scatter-beside-read"
    assert (Path(read["script"]).is_file(), read["script_command"]) == (True, "")
    name = "scatter-rows-beside-read"
    (rows,) = (each for each in data["findings"] if each["name"] == name)
    command = f"litmusfuzz show {name} --format script >{name}.py"
    assert (rows["script"], rows["script_command"]) == ("", command)
    text = litmusfuzz_here("list", "findings").stdout
    assert f"tensorflow 2.21.3: {len(data['findings'])} known findings: " in text
    assert "jax 0.10.3: 0 known findings; those that are known are of jax 0.10.2\n" in text
    for each in data["findings"]:
        for field in ("name", "effect", "description", "needs", "workaround", "file", "script"):
            assert each[field] in text
        assert f"    script      {each['script'] or each['script_command']}\n" in text
    there.clear()
    assert "tensorflow: not installed" in litmusfuzz_here("list", "findings").stdout


@needs_tensorflow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", QUICK)
def test_a_workaround_works(name: str) -> None:
    """A share that is quick, and shows in four of five executions: 64 without it are no chance."""
    case, run = workarounds.causes()[name]
    ran = workarounds.ran(name, case, run, TrialBudget(seconds=300, executions=64))
    assert 2 * ran.without.seen > ran.without.executions, ran
    assert ran.using.executions >= 64, ran
    assert not ran.using.seen, ran


@needs_tensorflow
@nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", sorted(workarounds.causes().keys() - set(QUICK)))
def test_each_workaround_works(name: str) -> None:
    """Where the finding is rare, or other work hides it, the question is left open."""
    case, run = workarounds.causes()[name]
    ran = workarounds.ran(name, case, run)
    assert ran.works is not False, ran
    assert ran.using.executions, ran
    if ran.works is None:
        pytest.skip(f"undecided: {ran}")
