"""Files, folders and arguments of strangers: nothing is read, written, run or said for them.

`tests/attacks` does the same to whole commands; here is the least that fails without a repair.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.textfile import FileError, loads
from litmusfuzz.fuzz.cli.common import MAX_COMPLAINT, MAX_NUMBER
from litmusfuzz.fuzz.cli.promote import difference
from litmusfuzz.fuzz.executors.entries import loads as loads_checked
from litmusfuzz.fuzz.finding.canonical import key, key_of
from litmusfuzz.fuzz.finding.known_file import loads as loads_known
from litmusfuzz.fuzz.finding.worker_deaths import key_from_parts
from litmusfuzz.fuzz.pytest_plugin import named_executors

if TYPE_CHECKING:
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
    done = litmusfuzz("promote", str(FINDING), "--out", "out", "--write")
    refused(done, "exists already, and is no test")
    assert "battery" not in done.stdout + done.stderr
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("kind", ["private", "nothing", "pipe"])
def test_herd_writes_through_no_link_and_waits_for_no_pipe(
    kind: str, tmp_path: Path, litmusfuzz: Command
) -> None:
    obstacle(tmp_path / "out/SB.litmus", kind, tmp_path)
    done = litmusfuzz("herd", "export", "SB", "--out", "out")
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
    done = litmusfuzz("oracle", "SB", "--outcome", f"X=[{'[1]  ' * 60}!")
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
    command = ("minimize", "SB", "--executors", "mutant/canary", "--time", "10m", "--out", "out")
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


def reported(**fields: object) -> str:
    """A campaign's report of one finding."""
    key = key_of(loads_checked(TEXT))
    found = {"known": "", "entry": TEXT, "kind": "forbidden", "file": "f", "key": key}
    return json.dumps({"findings": [found | {"cause": "x"} | fields]})


def test_a_report_adds_no_other_keys(tmp_path: Path, litmusfuzz_here: Command) -> None:
    add = ("known", "add", "k.yaml", "report.json", "--why", "x")
    of = {"config_class": "tf/executor", "reason": ["signal 6"]}
    kernels = {node.definition.kernel_class for node in loads_checked(TEXT).test.effects}
    op = min(kernels - {"read"})
    all_ops = (kernels, ("assign", op), ("gather", op))
    keys = [key_from_parts("crashed", "tf/executor", "signal 6", ops) for ops in all_ops]
    cause = f"signal 6 + {op}"
    crash = {"kind": "crashed", "cause": cause, "key": keys[0], **of}
    crashes = (
        {"also_on": [["assign"]]},
        {"also_on": [[op], []]},
        {"reason": ["signal 7"]},
        {"reason": []},
        {"cause": "signal 6 + read"},
        {"cause": "signal 6"},
    )
    for wrong, message in (
        ({"also_on": [["A"]]}, "'x' is no crash, so it has no ops of others"),
        ({"also_on": [0]}, "Expected `array`, got `int`"),
        ({"also_on": ["A" * (4 << 20)]}, "has a list of more than 4194304 bytes"),
        ({"kind": "unsound", **of}, "unsound clusters has not the key 'v3-"),
        ({"kind": "crashed", **of}, "'x' is not what its tests have in common"),
        ({"kind": "crashed", "cause": cause, **of}, f"{cause} has not the key 'v3-"),
        *((crash | wrong, "' is not what its tests have in common") for wrong in crashes),
        ({"kind": "forged"}, "Invalid enum value 'forged'"),
        ({"reason": 1}, "Expected `array`, got `int`"),
    ):
        (tmp_path / "report.json").write_text(reported(**wrong))
        refused(litmusfuzz_here(*add), message)
    (tmp_path / "report.json").write_text(
        reported(**crash, also_on=[["assign", op], ["gather", op]])
    )
    assert litmusfuzz_here(*add).returncode == 0
    unsound = key(loads_checked(TEXT).test, kind="unsound", rules=(), executor_class="tf/xla")
    fields = {"kind": "unsound", "key": unsound, "config_class": "tf/xla"}
    (tmp_path / "report.json").write_text(reported(**fields))
    assert litmusfuzz_here(*add).returncode == 0
    added = loads_known((tmp_path / "k.yaml").read_text()).entries
    assert [each.key for each in added] == [*keys, unsound]
    assert [each.name for each in added] == [*[cause] * 3, "unsound clusters"]


def test_a_list_says_what_a_pattern_takes_beside(tmp_path: Path, litmusfuzz_here: Command) -> None:
    pattern = "symptoms: [crashed], kernels: [AssignVariableOp], classes: [tf/executor]"
    for beside, said in (
        ("", "beside any ops"),
        (", beside: [read]", "beside read"),
        (", beside: []", "beside no other op"),
    ):
        entry = f"  - {{pattern: {{{pattern}{beside}}}, why: x, name: a}}\n"
        (tmp_path / "k.yaml").write_text(f"litmusfuzz_known: 3\nfindings:\n{entry}")
        assert said in litmusfuzz_here("known", "list", "k.yaml").stdout


def test_a_folder_has_tests_in_files_only(tmp_path: Path, litmusfuzz: Command) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/forged\nline.yaml").write_text(TEXT)
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    for name in ("SB", "x"):
        (tmp_path / f"a/{name}.yaml").symlink_to(tmp_path / "pipe")
    for name, state in (("a", 0), ("b", 1)):
        text = f"Test SB Allowed\nStates 1\n0:r0={state};\nOk\nWitnesses\n"
        (tmp_path / f"{name}.log").write_text(text)
    try:
        done = litmusfuzz("cmin", "a", "--out", "kept", "--no-kills")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("forged line.yaml: ")
        done = litmusfuzz("known", "add", "k.yaml", "a", "--why", "x")
        assert done.returncode == 0, done.stderr
        done = litmusfuzz("herd", "compare", "a.log", "b.log", "--tests", "a")
        assert "1 not judged" in done.stdout
    finally:
        os.close(held)


def test_promote_makes_no_two_tests_of_a_name(tmp_path: Path, litmusfuzz_here: Command) -> None:
    text = TEXT.replace("name: scatter-beside-scatter", "name: SB")
    (tmp_path / "a.yaml").write_text(text)
    refused(litmusfuzz_here("promote", "a.yaml"), "litmus/SB.yaml has that name")
    assert litmusfuzz_here("promote", "a.yaml", "--out", "out").returncode == 0
    assert litmusfuzz_here("promote", str(FINDING)).returncode == 0


def test_a_name_of_two_lines_is_one_in_a_diff(tmp_path: Path, litmusfuzz_here: Command) -> None:
    name = "x\n+++ forged\n.yaml"
    text = (LITMUS[0].parent / "SB.yaml").read_text()
    (tmp_path / name).write_text(text.replace("allowed:", "# a remark\nallowed:"))
    done = litmusfuzz_here("promote", name)
    assert "+++ x +++ forged .yaml (promoted)" in done.stdout.splitlines()
    assert "+++ forged" not in done.stdout.splitlines()


def test_a_replay_that_ran_nothing_is_undecided(litmusfuzz: Command) -> None:
    done = litmusfuzz("replay", "SB", "--executors", "native", "--time", "0.000001ms")
    assert done.returncode == 3
    assert "nothing ran in the time" in done.stdout


def test_a_log_replaces_logs_only(tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / "f.yaml").write_text(TEXT)
    (tmp_path / "empty").touch()
    for command in (("replay", "SB", "--count", "9"), ("force", "SB", "--outcome", "r0=0,r1=1")):
        on = (*command, "--executors", "native", "--log")
        refused(litmusfuzz_here(*on, "f.yaml"), "--log: f.yaml: exists already, and is no log")
        for name in ("new", "new", "empty", "/dev/null"):
            assert litmusfuzz_here(*on, name).returncode == 0
    assert (tmp_path / "f.yaml").read_text() == TEXT


@pytest.mark.parametrize("path", [":", ":/nowhere", "/nowhere::/nowhere"])
def test_an_empty_entry_of_the_import_path_is_not_the_working_folder(
    path: str, tmp_path: Path
) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit(9)")
    program = Path(sys.executable).with_name("litmusfuzz")
    for entries, code in ((path, 0), (f"{path}:{tmp_path}", 9)):
        done = subprocess.run(
            [program, "oracle", "SB"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": entries},
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, done.stderr


def test_an_encoding_that_lacks_a_character(tmp_path: Path) -> None:
    text = (
        (LITMUS[0].parent / "SB.yaml").read_text().replace("store buff", "\u65e5 \xe4 store buff")
    )
    (tmp_path / "a.yaml").write_text(text)
    for encoding in ("cp037", "latin-1", "koi8-r"):
        done = subprocess.run(
            [Path(sys.executable).with_name("litmusfuzz"), "show", "a.yaml"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        letter = "?" if encoding == "koi8-r" else "\xe4"
        assert f"? {letter} store buffering" in done.stdout.decode(encoding)


def test_a_test_of_too_many_events_is_left_out(tmp_path: Path, litmusfuzz_here: Command) -> None:
    names = "".join(f"    r{n}: {{op: ReadVariableOp, resources: [X]}}\n" for n in range(300))
    runs = "".join(f"  a{n}: {{graph: g}}\n" for n in range(60))
    head = "litmusfuzz: 2\nname: t\nvariables:\n  X: {dtype: int32}\n"
    (tmp_path / "t.yaml").write_text(f"{head}graphs:\n  g:\n{names}client:\n{runs}")
    done = litmusfuzz_here("force", "t.yaml")
    assert done.returncode == 3
    assert "left out on native/controlled: unfolds into more than 16384 events" in done.stdout
    assert litmusfuzz_here("oracle", "t.yaml").returncode == 3
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--litmus-executors=native",
    )
    done = subprocess.run(
        [*command, "--litmus-executors=native", "t.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 skipped" in done.stdout
