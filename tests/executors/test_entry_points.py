"""Executors of others: the one that the guide shows, and what may be wrong with one."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from docs.pages import blocks
from guide import DOCS, example, installed, with_guide
from helpers import LITMUS, nightly
from hypothesis import given, settings

from litmusfuzz.fuzz.executors.entries import wrong_setting
from litmusfuzz.fuzz.executors.table import (
    SELFTEST,
    UnknownExecutor,
    executor_class,
    is_ours,
    names,
)
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.testing import Refused, check, resource_graphs

ROOT = Path(__file__).parents[2]
PLAIN = [str(path) for path in LITMUS if path.stem in ("SB", "MP", "LB", "S", "R", "lost-update")]


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the guide's executor is installed."""
    return with_guide(tmp_path_factory.mktemp("guide"))


def litmusfuzz(environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@nightly
def test_the_guides_commands_do_what_they_say(guide, tmp_path: Path) -> None:
    """From the folder that the reader is in; the last runs the tests that ours must pass."""
    block = next(each for each in blocks(DOCS / "executors.md") if each.language == "sh")
    run, *others = (command.text for command in block.commands())
    assert "--time 10s" in run
    for command in (f"{run.replace('10s', '3s')} --out {tmp_path}", *others):
        name, *arguments = shlex.split(command, comments=True)
        done = subprocess.run(
            [f"{Path(sys.executable).parent}/{name}", *arguments],
            cwd=ROOT,
            env=guide,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_guides_executor_is_clean_and_shows_all_that_is_allowed(guide) -> None:
    """2,000 random interleavings of at most 8 ops: misses one with (1 - 1/2^8)^2000."""
    options = ("--executors", "interleaver", "--count", "2000", "--model", "executor", "--json")
    done = litmusfuzz(guide, "replay", *PLAIN, *options)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert len(reports) == len(PLAIN) >= 6
    assert not any(report["allowed_not_seen"] for report in reports)


def test_the_readme_s_executor_is_convicted(tmp_path: Path) -> None:
    """By the class, the entry point and the command that stand there."""
    (module,) = (each for each in blocks(ROOT / "README.md") if each.words == ("splitting.py",))
    (project,) = (each for each in blocks(ROOT / "README.md") if each.language == "toml")
    points = tomllib.loads(project.text)["project"]["entry-points"]["litmusfuzz.executors"]
    (shown,) = (
        command
        for block in blocks(ROOT / "README.md")
        if block.language == "console"
        for command in block.commands()
        if "--executors" in command.text
    )
    name, *arguments = shlex.split(shown.text, comments=True)
    environment = installed(tmp_path / "mine", {"splitting": module.text}, points)
    done = litmusfuzz(environment, *arguments)
    assert (name, done.returncode) == ("litmusfuzz", 1), done.stderr
    assert shown.prints is not None
    assert done.stdout.splitlines()[:3] == [*shown.prints[:3]]
    assert done.stdout.splitlines()[-1] == [each for each in shown.prints if each][-1]


def test_one_line_changed_is_caught(guide) -> None:
    """SB: both reads overtake the writes that they wait for in one order of four or so."""
    sb = next(path for path in PLAIN if path.endswith("/SB.yaml"))
    done = litmusfuzz(guide, "replay", sb, "--executors", "careless", "--count", "500", "--json")
    assert done.returncode == 1
    seen = {
        (row["outcome"]["r0"], row["outcome"]["r1"]) for row in json.loads(done.stdout)["observed"]
    }
    assert (0, 0) in seen


def test_most_graphs_that_are_generated_for_the_guides_executor_run_on_it(
    guide, tmp_path: Path
) -> None:
    """In a campaign; all of them, but for those that no family can place."""
    command = ("run", "--executors", "interleaver", "--tests", "40", "--count", "20", "--seed", "5")
    done = litmusfuzz(guide, *command, "--time", "10m", "--out", str(tmp_path / "out"), "--json")
    assert done.returncode == 0, done.stderr
    (interleaver,) = json.loads(done.stdout)["by_config"]
    assert interleaver["graphs"] + interleaver["refused"] == 40
    assert interleaver["graphs"] >= 20


def test_most_graphs_of_hypothesis_run_on_the_guides_executor(tmp_path: Path) -> None:
    module = tmp_path / "interleaver.py"
    module.write_text(example())
    executor = runpy.run_path(str(module))["Interleaver"]
    refused: list[bool] = []

    @settings(max_examples=50, deadline=None, derandomize=True, database=None)
    @given(resource_graphs(support=executor))
    def property_(graph) -> None:
        try:
            executor().prepare(graph, executor.configurations()[0])
        except Refused:
            refused.append(True)
        else:
            refused.append(False)
        check(graph, executor, count=20)

    property_()
    assert len(refused) >= 50
    assert refused.count(False) >= len(refused) / 2


WRONG = {
    "tf": ("good:Interleaver", "several executors are called 'tf': "),
    "absent": ("nowhere:Executor", "No module named 'nowhere'"),
    "broken": ("broken:Executor", "ZeroDivisionError: division by zero"),
    "empty": ("good:PURE", "it has no configurations, name, prepare, support, versions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_defective_entry_point_is_reported_in_one_line(tmp_path: Path, name: str) -> None:
    points = {each: target for each, (target, _) in WRONG.items()}
    modules = {"good": example(), "broken": "1 / 0\n"}
    environment = installed(tmp_path / "wrong", modules, points)
    done = litmusfuzz(environment, "replay", PLAIN[0], "--executors", name)
    assert done.returncode == 2
    assert WRONG[name][1] in done.stderr
    assert "(of wrong)" in done.stderr
    assert done.stderr.count("\n") == 1
    # Others are none the worse for it.
    other = litmusfuzz(environment, "replay", PLAIN[0], "--executors", "native", "--count", "10")
    assert other.returncode == 0


CONFIGS = "    @classmethod\n    def configurations(cls):\n        return {}\n"
DEFECTIVE = {
    "end at import": ("import sys\nsys.exit(0)", "SystemExit: 0"),
    "end": (CONFIGS.format("exit(0)"), "SystemExit: 0"),
    "no sequence": (CONFIGS.format("5"), "TypeError: 'int' object is not iterable"),
    "no Config": (
        CONFIGS.format("['plain']"),
        "have 'plain', which is no Config",
    ),
    "no text": (CONFIGS.format("[Config(5, 'rfc')]"), "Expected `str`, got `int` - at `$.name`"),
    "no settings": (CONFIGS.format("[Config('a', 'rfc', 5)]"), "Expected `array`, got `int`"),
    "twice": (
        CONFIGS.format("[Config('a', 'rfc')] * 2"),
        "have one name",
    ),
    **{
        f"name {name[:9]!r}": (
            CONFIGS.format(f"[Config({name!r}, 'rfc')]"),
            "is no name for a configuration",
        )
        for name in ("", "a\nb", "\x1b[2J", "\ud800", "a,b", "a:b", "*", "x/plain", 257 * "x")
    },
    "fork_after": ("    fork_after = 'theirs'\n", "its fork_after is no ForkAfter"),
    "modules": ("    fork_after = ForkAfter((5,))\n", "Expected `str`, got `int` - at `$.modules"),
    "damaging_ops": ("    damaging_ops = 7\n", "its damaging_ops are no frozenset of names"),
    "space": ("    space = 'large'\n", "its space is no ConfigurationSpace"),
}


@pytest.mark.parametrize("what", DEFECTIVE)
def test_what_is_wrong_with_a_member_is_said_when_it_is_loaded(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not by a traceback, a configuration of somebody else's, or a good end of the program."""
    body, why = DEFECTIVE[what]
    name = f"theirs_{len(what)}_{sum(what.encode())}"
    head = (
        "from litmusfuzz import Config\nfrom litmusfuzz.fuzz.executors.protocol import ForkAfter\n"
    )
    head += "from litmusfuzz.fuzz.mutants.canary import Canary\nclass Theirs(Canary):\n"
    source = head + body if body.startswith(" ") else body
    with_it = installed(tmp_path / "theirs", {name: source}, {name: f"{name}:Theirs"})
    monkeypatch.syspath_prepend(with_it["PYTHONPATH"].partition(os.pathsep)[0])
    with pytest.raises(UnknownExecutor) as caught:
        executor_class(name)
    assert f"executor {name!r}, {name}:Theirs (of theirs), cannot be used: " in str(caught.value)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_that_stands_for_something_else_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shards of an executor with that name would be taken for the self-test."""
    installed(tmp_path / "theirs", {}, {SELFTEST: "litmusfuzz.fuzz.mutants.canary:Canary"})
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    with pytest.raises(UnknownExecutor, match="'selftest' is no name for an executor"):
        executor_class(SELFTEST)


def test_a_file_that_names_a_control_that_does_not_exist_can_be_read() -> None:
    """The canary has none: who runs the finding says so."""
    assert wrong_setting("control/canary", {"anything": 1}) is None


def test_an_entry_point_may_have_the_name_of_a_mutant_after_its_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not ours: a file that names it neither has it imported nor its configuration run."""
    name = "stale-reads"
    modules = {"theirs_too": "raise AssertionError('imported')\n"}
    installed(tmp_path / "theirs", modules, {name: "theirs_too:Executor"})
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    assert name in names()
    assert not is_ours(name)
    assert "'x=1' of executor 'stale-reads'" in outside_code(name, "x=1")
    assert wrong_setting(name, {"anything": 1}) is None  # not imported
    assert [is_ours(prefix + name) for prefix in ("mutant/", "control/")] == [True, True]
