"""Names on the command line: tests of the corpus, `litmusfuzz list`, completion, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from litmusfuzz.corpus.library import FOLDERS, paths
from litmusfuzz.fuzz.cli.common import load_or_fail
from litmusfuzz.fuzz.cli.main import GROUPS, main
from litmusfuzz.fuzz.executors import installed
from litmusfuzz.fuzz.executors.table import names
from litmusfuzz.fuzz.finding.known_file import shipped
from litmusfuzz.fuzz.generators import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from leaves(each, f"{name} {each.name}")
    yield name, command


COMMANDS = dict(leaves(main, "litmusfuzz"))


# --- tests by name -----------------------------------------------------------------------


def test_oracle_takes_names_and_files(litmusfuzz_here, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(paths()["MP"].read_text("utf-8"), encoding="utf-8")
    result = litmusfuzz_here("oracle", "SB", "mine.yaml", "--model", "rfc")
    assert (result.returncode, result.stderr) == (0, "")
    first, second = result.stdout.split("\n\nMP\n")
    assert first.startswith("SB\nr0  r1  X  Y\n")
    assert "outcomes allowed under rfc" in second
    data = json.loads(litmusfuzz_here("oracle", "SB", "MP", "--json").stdout)
    assert [each["test"] for each in data] == ["SB", "MP"]


def test_an_existing_path_wins_over_a_name(litmusfuzz_here, tmp_path: Path) -> None:
    (tmp_path / "SB").write_text(paths()["MP"].read_text("utf-8"), encoding="utf-8")
    assert json.loads(litmusfuzz_here("oracle", "SB", "--json").stdout)["test"] == "MP"


def test_the_exit_code_of_several_tests_is_the_worst(litmusfuzz_here) -> None:
    allowed = litmusfuzz_here("oracle", "SB", "LB", "--outcome", "r0=1,r1=0")
    assert allowed.returncode == 0
    assert litmusfuzz_here("oracle", "SB", "LB", "--outcome", "r0=0,r1=0").returncode == 1
    assert litmusfuzz_here("oracle", "SB", "LB", "--budget", "1").returncode == 3


@pytest.mark.parametrize(
    "command",
    [
        ("oracle",),
        ("show",),
        ("show", "--format", "script"),
        ("validate",),
        ("replay",),
        ("force",),
        ("minimize",),
        ("promote",),
        ("herd", "export"),
        ("herd", "log"),
    ],
    ids=" ".join,
)
def test_an_unknown_name_is_one_line_with_near_matches(
    litmusfuzz_here, tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = litmusfuzz_here(*command, "lost-updat")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("litmusfuzz: lost-updat: no such file, and no test of")
    assert "is it 'lost-update'" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_every_known_finding_that_is_listed_has_a_test_or_a_script(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the name that `list findings` prints."""
    listed = [each.name for each in shipped().entries if each.defect is not None]
    without = []
    for name in listed:
        try:
            load_or_fail(name)
        except SystemExit:
            without.append(name)
            script = FOLDERS[1] / f"{name}.py"
            assert capsys.readouterr().err == (
                f"litmusfuzz: {name}: is a known finding without a test: its script shows it:"
                f" python {script}\n"
            )
            assert script.is_file()
    assert 1 <= len(without) < len(listed) / 10


def test_promote_by_name_takes_the_file_of_the_corpus(litmusfuzz_here) -> None:
    result = litmusfuzz_here("promote", "SB")
    assert (result.returncode, result.stdout) == (0, f"{paths()['SB']}: nothing to change\n")


# --- list --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tests", set(paths())),
        ("executors", {name for name in names() if not name.startswith("mutant/")}),
        ("mutants", {name for name in names() if name.startswith("mutant/")}),
        ("families", set(FAMILIES)),
        ("models", {"rfc", "executor", "acd", "program", "sequential", "one_cluster"}),
    ],
)
def test_list_has_every_name_with_a_description(
    litmusfuzz_here, kind: str, expected: set[str]
) -> None:
    rows = json.loads(litmusfuzz_here("list", kind, "--json").stdout)
    assert {row["name"] for row in rows} == expected
    assert all(row["description"] for row in rows)
    lines = litmusfuzz_here("list", kind).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [row["name"] for row in rows]


def test_list_names_configurations_as_other_commands_take_them(litmusfuzz_here) -> None:
    result = litmusfuzz_here("list", "configurations", "--executors", "native,tf", "--json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["native:split"]["guarantees"] == "rfc"
    assert rows["native:split"]["description"] == "guarantees rfc; split_updates=True"
    assert rows["tf:plain"]["description"] == "guarantees executor; runs where none is named"
    assert {row["executor"] for row in rows.values()} == {"native", "tf"}


def in_process(*arguments: str) -> tuple[int, str]:
    """Exit code of a command in this process, and what it prints or complains."""
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout or " ".join(result.stderr.split())


def test_the_findings_of_one_name_or_framework_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"tensorflow": "2.21.3", "jax": "0.10.2"}
    monkeypatch.setattr(installed, "installed", lambda _: there)

    def listed(*names: str) -> list[str]:
        code, output = in_process("list", "findings", *names, "--json")
        assert code == 0
        return [each["name"] for each in json.loads(output)["findings"]]

    jax = listed("jax")
    assert jax
    assert all(name.startswith("jax-") for name in jax)
    assert sorted(jax + listed("tensorflow")) == sorted(listed())
    assert listed("scatter-beside-read", "jax-jacfwd") == ["scatter-beside-read", "jax-jacfwd"]
    code, output = in_process("list", "findings", "jax-jacfwd")
    assert (code, output.splitlines()[:3]) == (
        0,
        ["jax 0.10.2: 1 known finding", "", "jax-jacfwd: error"],
    )
    code, output = in_process("list", "findings", "jax")
    effects = [
        each.defect.effect for each in shipped().of({"jax": "0.10.2"}).entries if each.defect
    ]
    wrong, fails = effects.count("silently wrong"), effects.count("error")
    assert output.splitlines()[0] == (
        f"jax 0.10.2: {len(jax)} known findings: {wrong} silently wrong, {fails} error;"
        " 0 of them at default settings"
    )
    code, output = in_process("list", "findings", "scatter-beside-rea")
    assert code == 2
    assert "no finding 'scatter-beside-rea'; is it 'scatter-beside-read'" in output
    assert in_process("list", "tests", "SB")[0] == 2
    code, output = in_process("list", "findings", "--short", "jax-jacfwd", "scatter-beside-read")
    assert [line.split()[:1] for line in output.splitlines() if line] == [
        *(["tensorflow"], ["name"], ["scatter-beside-read"]),
        *(["jax"], ["name"], ["jax-jacfwd"]),
    ]
    assert in_process("list", "tests", "--short")[0] == 2


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("scatter-beside-read", "by the memory model"),
        ("slice-assign-beside-sub", "by the memory model, in part"),
        (
            "slice-assign-beside-add",
            "by the model executor, which its configuration guarantees; the memory model allows it",
        ),
        ("jax-stale-condition", "by the order of the program"),
        ("step-without-value", ""),  # a crash
    ],
)
def test_a_finding_is_listed_with_what_forbids_it(name: str, by: str) -> None:
    _, output = in_process("list", "findings", name)
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    assert [line[1] for line in lines if line[:1] == ["forbidden"]] == [by][: bool(by)]


def test_mutants_are_listed_with_the_executor_that_they_are_of() -> None:
    code, output = in_process("list", "mutants")
    assert code == 0
    rows = {line.split()[0]: line.split()[1] for line in output.splitlines()}
    assert rows["mutant/store-buffers"] == "native"
    assert rows["mutant/tf-early-index"] == "tf"
    assert rows["mutant/refs-wrong-lane"] == "jax_refs"
    assert rows["mutant/no-cycle-check"] == "jax"


def test_how_to_run_an_executor_of_one_s_own_is_said_where_a_newcomer_looks() -> None:
    """And that `replay` runs mutants."""
    listed = CliRunner().invoke(main, ["list", "executors"])
    for said in (listed.stderr, in_process("replay", "SB", "--executors", "mine:Mine")[1]):
        assert "entry point in the group litmusfuzz.executors" in said
        assert "docs/executors.md" in said
    assert "Executors or mutants" in in_process("replay", "--help")[1]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("list", "finding"), "nothing to list is called 'finding'; is it 'findings'"),
        (("replay", "SB", "--executors", ""), "--executors: no executor ''"),
        *(
            ((*asked, "--model", "executer"), "no model 'executer'; is it 'executor'")
            for asked in (
                ("oracle", "SB"),
                ("replay", "SB"),
                ("minimize", "SB"),
                ("force", "SB"),
                ("run",),
                ("herd", "export", "SB"),
            )
        ),
    ],
)
def test_a_misspelt_name_is_named_with_those_like_it(
    command: tuple[str, ...], message: str
) -> None:
    code, output = in_process(*command)
    assert code == 2
    assert message in output


# --- help and completion -----------------------------------------------------------------


def test_every_command_is_in_one_group_of_the_help() -> None:
    grouped = [command for commands in GROUPS.values() for command in commands]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == set(main.commands.values())
    text = main.get_help(click.Context(main, info_name="litmusfuzz"))
    for title in GROUPS:
        assert f"{title}:\n" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    epilog = COMMANDS[name].epilog or ""
    example = epilog.partition("Example: ")[2]
    assert example.startswith(name)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["oracle"], ("lost-upd", {"lost-update"})),
        (["force"], ("lost-upd", {"lost-update"})),
        (["list"], ("mod", {"models"})),
        (["run", "--executors"], ("tf,nat", {"tf,native"})),
        (["run", "--families"], ("queues,cond", {"queues,conditionals"})),
        (["replay", "--executors", "native", "--configuration"], ("fifo", {"fifo", "fifo_split"})),
        (["oracle", "--model"], ("exe", {"executor"})),
        (["selftest"], ("mutant/stale-r", {"mutant/stale-reads"})),
    ],
)
def test_the_shell_completes_names(line: list[str], expected: tuple[str, set[str]]) -> None:
    incomplete, completions = expected
    found = ShellComplete(main, {}, "litmusfuzz", "_LITMUSFUZZ_COMPLETE").get_completions(
        line, incomplete
    )
    assert {item.value for item in found if item.type == "plain"} >= completions
    assert all(item.value.startswith(incomplete) for item in found)


# --- terminals and pipes -----------------------------------------------------------------


def test_a_broken_pipe_is_no_error(tmp_path: Path) -> None:
    """The reader is gone before the first byte: no traceback, and the same exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    for arguments, code in (
        (("list", "tests"), 0),
        (("oracle", "SB", "--outcome", "r0=0,r1=0"), 1),
        (("oracle", "SB", "--json"), 0),
    ):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, "")
    os.close(writing)


def on_terminal(tmp_path: Path, environment: dict[str, str]) -> str:
    """What `replay` of a mutant's finding prints where standard output is a terminal."""
    ours, theirs = os.openpty()
    arguments = ("replay", "SB", "--executors", "mutant/stale-reads", "--count", "10")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
        cwd=tmp_path,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
    ) as process:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 1 << 16):
                printed += part
        except OSError:  # Linux reports the end of a terminal so
            pass
        assert process.wait() == 1
    os.close(ours)
    return printed.decode()


def test_forbidden_is_red_on_a_terminal_only(litmusfuzz_here, tmp_path: Path) -> None:
    red = "\x1b[31m\x1b[1mFORBIDDEN\x1b[0m"
    assert red in on_terminal(tmp_path, {"NO_COLOR": ""})
    plain = on_terminal(tmp_path, {"NO_COLOR": "1"})
    assert "FORBIDDEN" in plain
    assert "\x1b" not in plain
    piped = litmusfuzz_here("replay", "SB", "--executors", "mutant/stale-reads", "--count", "10")
    assert "FORBIDDEN" in piped.stdout
    assert "\x1b" not in piped.stdout
