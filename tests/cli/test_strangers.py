"""Files, folders and arguments of strangers: nothing is read, written, run or said for them.

`tests/attacks` does the same to whole commands; here is the least that fails without a repair.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.textfile import FileError, loads
from litmusfuzz.fuzz.campaign.known_findings import loads as loads_known
from litmusfuzz.fuzz.cli.common import MAX_COMPLAINT, MAX_NUMBER
from litmusfuzz.fuzz.cli.promote import difference
from litmusfuzz.fuzz.executors.entries import loads as loads_checked
from litmusfuzz.fuzz.pytest_plugin import named_executors

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

FINDING = LITMUS[0].parents[1] / "findings/scatter-beside-scatter.yaml"
TEXT = FINDING.read_text()
ALLOWED = TEXT.replace("outcome: {X: torn}", "outcome: {X: 1}")


def refused(done: object, message: str) -> None:
    """Exit 2 with one line that has this message."""
    assert getattr(done, "returncode", None) == 2, done
    error = str(getattr(done, "stderr", ""))
    assert error.count("\n") == 1
    assert message in error


def obstacle(path: Path, kind: str, tmp_path: Path) -> None:
    """A link to a private file, a link to nothing, or a pipe."""
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
        return
    target = tmp_path / kind
    if kind == "private":
        target.write_text("battery staple\n")
    path.symlink_to(target)


@pytest.mark.parametrize("kind", ["private", "nothing", "pipe"])
def test_promote_neither_shows_nor_replaces_what_is_no_test(
    kind: str, tmp_path: Path, litmusfuzz: Command
) -> None:
    obstacle(tmp_path / "out" / FINDING.name, kind, tmp_path)
    done = litmusfuzz("promote", str(FINDING), "--out", "out", "--write", timeout_s=20)
    refused(done, "exists already, and is no test")
    assert "battery" not in done.stdout + done.stderr
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("kind", ["private", "nothing", "pipe"])
def test_herd_writes_through_no_link_and_waits_for_no_pipe(
    kind: str, tmp_path: Path, litmusfuzz: Command
) -> None:
    obstacle(tmp_path / "out/SB.litmus", kind, tmp_path)
    done = litmusfuzz("herd", "export", "SB", "--out", "out", timeout_s=20)
    refused(done, "exists already, and differs")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    "command", [("promote",), ("show", "--format", "script"), ("known", "add", "k.yaml", "--why=x")]
)
def test_a_finding_that_its_model_allows_is_none(
    command: tuple[str, ...], tmp_path: Path, litmusfuzz_here: Command
) -> None:
    (tmp_path / "x.yaml").write_text(ALLOWED)
    refused(litmusfuzz_here(*command, "x.yaml"), "x.yaml: is no finding: executor allows X=1")


def test_a_script_has_the_oracles_allowed_set(tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / "x.yaml").write_text(TEXT.replace("  - {X: 1}\n", ""))
    done = litmusfuzz_here("show", "--format", "script", "x.yaml")
    refused(done, "allowed.executor: is not what the oracle finds")


def test_a_key_of_a_report_is_that_of_its_finding(tmp_path: Path, litmusfuzz_here: Command) -> None:
    row = {"known": "", "entry": TEXT, "kind": "forbidden", "file": "f", "key": f"v3-{'0' * 16}"}
    (tmp_path / "report.json").write_text(json.dumps({"findings": [row]}))
    done = litmusfuzz_here("known", "add", "k.yaml", "report.json", "--why", "x")
    refused(done, "scatter-beside-scatter has not the key 'v3-0000000000000000'")
    refused(litmusfuzz_here("known", "list", "k.yaml"), "No such file")


def test_names_and_versions_are_one_line() -> None:
    entry = "  - {key: v3-0000000000000000, why: x, name: %s}\n"
    head = "litmusfuzz_known: 3\nfindings:\n"
    assert loads_known(head + entry % "a b").entries
    with pytest.raises(FileError, match="name: must be one line"):
        loads_known(head + entry % '"a\\nb"')
    for place, wrong in (("2.21.0", '"2\\nb"'), ("numpy:", '"a\\nb":')):
        with pytest.raises(FileError, match="must be one line"):
            loads(TEXT.replace(place, wrong, 1))


def test_settings_of_a_finding_are_those_of_its_configuration() -> None:
    assert loads_checked(TEXT).finding is not None
    with pytest.raises(FileError, match=r"settings\.compiled: the configuration has ''"):
        loads_checked(TEXT.replace("compiled: ''", "compiled: clusters"))


def test_a_diff_takes_no_quadratic_time() -> None:
    """`difflib` takes a quarter of an hour."""
    new = [f"line {n}" for n in range(60_000)]
    old = [each for n, line in enumerate(new) for each in (line, f"other {n}")]
    start = time.monotonic()
    rows = list(difference("\n".join(["same", *old]), "\n".join(["same", *new]), "x"))
    assert time.monotonic() - start < 10
    assert rows[2] == "@@ -3,119999 +3,59999 @@"
    assert "-same" not in rows
    assert rows.count("-other 7") == 1
    short = list(difference("a\nb\n", "a\nc\n", "x"))
    assert short == ["--- x (now)", "+++ x (promoted)", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    same = "\n".join(old)
    assert not list(difference(same, same, "x"))


def test_blanks_in_an_outcome_take_no_exponential_time(litmusfuzz: Command) -> None:
    done = litmusfuzz("oracle", "SB", "--outcome", f"X=[{'[1]  ' * 60}!", timeout_s=20)
    refused(done, "--outcome: cannot read")


@pytest.mark.parametrize("argument", ["--trust", "--engine=evil.so", "--json", "-x"])
def test_a_file_is_no_option(argument: str, tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / argument).touch()
    done = litmusfuzz_here("replay", argument, "SB")
    refused(done, f"{argument}: is an option, and a file here: write ./{argument} for the file")


def test_numbers_have_a_limit_and_lines_as_well(litmusfuzz_here: Command) -> None:
    assert litmusfuzz_here("oracle", "SB", "--budget", str(MAX_NUMBER)).returncode == 0
    for command in (("oracle", "SB", "--budget"), ("run", "--tests"), ("run", "--count")):
        refused(litmusfuzz_here(*command, str(10**30)), "is not in the range")
    done = litmusfuzz_here("oracle", "a" * 100_000)
    assert len(done.stderr) < MAX_COMPLAINT + 100


def test_cmin_reads_a_folder_of_any_depth(tmp_path: Path, litmusfuzz_here: Command) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for name in ("deep", *["d"] * 1_200):
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    try:
        done = litmusfuzz_here("cmin", "deep", "--out", "kept", "--no-kills")
        refused(done, "deep: has no test (*.yaml)")
    finally:  # `shutil.rmtree` recurses as well
        for _ in range(1_200):
            above = os.open("..", os.O_RDONLY, dir_fd=here)
            os.rmdir("d", dir_fd=above)
            os.close(here)
            here = above
        os.close(here)


def test_minimize_replaces_no_file(tmp_path: Path, litmusfuzz_here: Command) -> None:
    command = ("minimize", "SB", "--executors", "mutant/canary", "--time", "6s", "--out", "out")
    assert litmusfuzz_here(*command).returncode == 1
    (first,) = (tmp_path / "out").glob("*.yaml")
    first.write_text("mine")
    assert litmusfuzz_here(*command).returncode == 1
    assert first.read_text() == "mine"
    assert (tmp_path / "out" / f"{first.stem}-2.yaml").is_file()


def test_only_an_option_names_executors() -> None:
    """Not a folder of that name, nor a word in another option."""
    engine = "native:engine=./evil.so"
    assert named_executors(["engine=./evil.so", "-k", engine]) == frozenset()
    for arguments in (
        ["--litmus-executors", f"tf, {engine}"],
        [f"--litmus-executors={engine}", "x"],
        ["-o", f"litmus_executors={engine}"],
        [f"--override-ini=litmus_executors={engine}"],
    ):
        assert engine in named_executors(arguments)


def test_errors_of_collection_give_no_commands(tmp_path: Path) -> None:
    bad = (LITMUS[0].parent / "SB.yaml").read_text().replace("ReadVariableOp", "'##vso[x]y'", 1)
    (tmp_path / "test_a.yaml").write_text(bad)
    known = "litmusfuzz_known: 3\nfindings:\n  - {key: '##vso[x]y', why: x}\n"
    (tmp_path / "known.yaml").write_text(known)
    for more in ((), ("--litmus-known=known.yaml",)):
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *more)
        done = subprocess.run(
            [*command, "--litmus-executors=native", "test_a.yaml"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        assert "## vso[x]y" in text or "## [x]y" in text
        assert "##vso" not in text
