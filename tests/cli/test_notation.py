"""Tests in the short notation on the command line, their conditions, limits and Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from test_names import COMMANDS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, load, loads, save
from litmusfuzz.fuzz.cli.common import MODEL, is_notation
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import RFC

ROOT = Path(__file__).parents[2]
SB = "X=1; r0=Y || Y=1; r1=X"
NATIVE = ("--executors", "native:controlled", "--count", "20")
# Six chains of three ops, as a user typed them: 97,104 outcomes.
SIX = " || ".join(
    f"{a}={n}; r{2 * i}={b}; r{2 * i + 1}={c}"
    for i, (a, b, c, n) in enumerate(
        (*each, n) for n in (1, 2) for each in (("X", "Y", "Z"), ("Y", "Z", "X"), ("Z", "X", "Y"))
    )
)


@pytest.mark.parametrize(
    ("command", "prints"),
    [
        (("oracle", SB), "3 outcomes allowed under rfc"),
        (("show", SB), "| w0: X = 1"),
        (("replay", SB, *NATIVE), "0 forbidden under"),
        (("force", SB, "--executors", "native"), "3"),
        (("validate", SB), "sound"),
        (("herd", "export", SB), "C notation"),
        (("herd", "log", SB), "Test notation Required"),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, tuple) else "",
)
def test_every_test_argument_takes_the_notation(
    litmusfuzz_here, command: tuple[str, ...], prints: str
) -> None:
    done = litmusfuzz_here(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert prints in done.stdout


def test_the_notation_is_the_same_test_as_its_file(litmusfuzz_here, tmp_path: Path) -> None:
    save(Entry(litmus(SB, name="notation")), tmp_path / "SB.yaml")
    one, other = (litmusfuzz_here("oracle", each, "--json").stdout for each in (SB, "SB.yaml"))
    assert one == other


def test_several_notations_have_names_of_their_own(litmusfuzz_here) -> None:
    done = litmusfuzz_here("oracle", "X=1", "SB", "X=2", "--json")
    assert [each["test"] for each in json.loads(done.stdout)] == ["notation-1", "SB", "notation-3"]
    done = litmusfuzz_here("oracle", "X=1", "X=2", "--model", "rfc")
    assert re.findall(r"(?m)^notation.*", done.stdout) == ["notation-1: X=1", "notation-2: X=2"]


@pytest.mark.parametrize(
    "command", [("oracle",), ("show",), ("validate",), ("replay",), ("force",), ("minimize",)]
)
def test_a_mistake_has_a_caret_under_its_place(litmusfuzz_here, command: tuple[str, ...]) -> None:
    done = litmusfuzz_here(*command, "X=1; r0=Y || Y=!; r1=X")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "litmusfuzz: notation, column 16: expected a number or a register, got '!'\n"
        "  X=1; r0=Y || Y=!; r1=X\n"
        "                 ^\n"
    )


def test_control_characters_of_a_notation_reach_no_terminal(litmusfuzz_here) -> None:
    done = litmusfuzz_here("oracle", "X=1; \x1b[31m\t|| Y=2")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stderr.splitlines()[2] == " " * 7 + "^"


def test_a_file_of_that_name_wins_and_a_path_is_a_path(litmusfuzz_here, tmp_path: Path) -> None:
    save(Entry(litmus("Y=5", name="other")), tmp_path / "X=1")
    assert json.loads(litmusfuzz_here("oracle", "X=1", "--json").stdout)["test"] == "other"
    assert "No such file" in litmusfuzz_here("oracle", "a=b/SB.yaml").stderr
    assert "No such file" in litmusfuzz_here("oracle", "a=b/SB").stderr
    assert is_notation("X[0]/=2")
    assert is_notation("X=1 exists (X=1 /\\ X=1)")
    assert not is_notation("lost-updat")


@pytest.mark.parametrize("command", [("promote",), ("promote", "--write")])
def test_promote_takes_files_only(litmusfuzz_here, command: tuple[str, ...]) -> None:
    done = litmusfuzz_here(*command, SB)
    assert done.returncode == 2
    assert "is a test without a file" in done.stderr


def test_a_dash_is_standard_input(litmusfuzz_here, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        done: subprocess.CompletedProcess[str] = litmusfuzz_here(*arguments)
        return done

    text = given("X=1\nr0=Y\n||\nY=1\nr1=X\n", "show", "-", "--json").stdout
    assert json.loads(text)["file"]["name"] == "notation"
    file = given("", "herd", "export", SB).stdout
    assert file.startswith("C notation")
    yaml = "litmusfuzz: 2\nname: x\ngraphs: {}\n"
    assert given(yaml, "oracle", "-").stderr.startswith("litmusfuzz: <stdin>")
    done = given("X=1\nr0=X; r0=Y\n", "oracle", "-")
    assert done.stderr.startswith("litmusfuzz: <stdin>, line 2, column 7: register r0 is assigned")
    assert "standard input holds one test" in given("X=1", "oracle", "-", "-").stderr


def test_herds_files_are_tests_too(litmusfuzz_here, tmp_path: Path) -> None:
    text = "C one\n{}\nP0 (int* x) {\n  *x = 1;\n}\nexists (x=1)\n"
    (tmp_path / "one.litmus").write_text(text)
    done = litmusfuzz_here("oracle", "one.litmus", "--model", "rfc")
    assert done.returncode == 0
    assert "exists (x=1): yes under rfc" in done.stdout
    assert done.stderr == (
        "litmusfuzz: one.litmus: Strengthened to sequential consistency: plain accesses (line 4).\n"
    )
    done = litmusfuzz_here("herd", "import", "one.litmus", "--out", "in", "--json")
    (row,) = json.loads(done.stdout)
    assert row["changes"] == ["Strengthened to sequential consistency: plain accesses (line 4)."]
    assert load(tmp_path / "in" / "one.yaml").test.description == row["changes"][0]


# --- conditions --------------------------------------------------------------------------

TWO = "X+=1 || X+=1"


@pytest.mark.parametrize(
    ("condition", "options", "code", "line"),
    [
        ("exists (X=1)", (), 0, "exists (X=1): yes under rfc, never under executor"),
        ("exists (X=1)", ("--model", "executor"), 1, "exists (X=1): never under executor"),
        ("~exists (X=1)", (), 1, "~exists (X=1): does not hold under rfc, holds under executor"),
        ("forall (X=2)", (), 1, "forall (X=2): does not hold under rfc, holds under executor"),
        ("forall (X=2)", ("--model", "executor"), 0, "forall (X=2): holds under executor"),
        ("forall (X=1 \\/ X=2)", (), 0, "forall (X=1 \\/ X=2): holds under rfc and executor"),
        ("exists (X=9)", ("--budget", "1"), 3, "exists (X=9): unknown under rfc"),
    ],
)
def test_oracle_answers_the_condition(
    litmusfuzz_here, condition: str, options: tuple[str, ...], code: int, line: str
) -> None:
    done = litmusfuzz_here("oracle", f"{TWO} {condition}", *options)
    assert (done.returncode, done.stderr) == (code, "")
    assert line in done.stdout
    data = json.loads(litmusfuzz_here("oracle", f"{TWO} {condition}", *options, "--json").stdout)
    assert data["condition"]["met"] is {0: True, 1: False, 3: None}[code]


def test_the_answer_has_the_order_of_a_witness(litmusfuzz_here) -> None:
    done = litmusfuzz_here("oracle", f"{TWO} forall (X=2)")
    assert done.stdout.endswith(
        "counterexample, a total order under rfc:\n"
        "  1  R(X) w0\n  2  R(X) w1\n  3  W(X) w0\n  4  W(X) w1\nwhich yields  X=1\n"
    )
    done = litmusfuzz_here("oracle", f"{TWO} exists (X=2)")
    assert "witness, a total order under executor, and hence under rfc:" in done.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{SB} exists (r0=0 /\\ r1=0)", " (dependencies):\n  r0 waits for w0\n"),
        (f"{SB} ~exists (r1=0 /\\ (X=1 /\\ r0=0))", " (dependencies):\n  r0 waits for w0\n"),
        (f"{TWO} exists (X=3)", ":\n  no order at all yields X=3\n"),
        ("X=1 exists (_status=blocked)", ":\n"),
        ("{type int32[2]} X=1 exists (X=[1,2])", ":\n  no order at all yields X=[1,2]\n"),
    ],
)
def test_a_condition_that_no_order_meets_has_the_reason(
    litmusfuzz_here, text: str, reason: str
) -> None:
    """The one that `--outcome` gives for the same values."""
    done = litmusfuzz_here("oracle", text)
    data = json.loads(litmusfuzz_here("oracle", text, "--json").stdout)["condition"]
    assert f"\n\nreason under rfc, and hence under executor{reason}" in done.stdout
    test, _, asked = text.partition("exists ")
    values = re.sub("[()]", "", asked)
    judged = litmusfuzz_here("oracle", test.rstrip("~ "), "--outcome", values)
    assert judged.returncode == 1
    assert done.stdout.split("reason under")[1] == judged.stdout.split("reason under")[1]
    assert [each["model"] for each in data["reasons"]] == ["rfc"]


def test_only_the_models_that_forbid_it_have_a_reason(litmusfuzz_here) -> None:
    done = litmusfuzz_here("oracle", f"{TWO} exists (X=1)")
    assert "witness, a total order under rfc:\n" in done.stdout
    assert done.stdout.count("reason under") == 1
    assert "\n\nreason under executor (dense updates indivisible" in done.stdout


def test_no_reason_where_values_do_not_hold_together(litmusfuzz_here) -> None:
    for condition in ("exists (X=3 \\/ X=4)", "exists (~(X>X))", "forall (X=1 \\/ X=2)"):
        assert "reason" not in litmusfuzz_here("oracle", f"{TWO} {condition}").stdout
    # Nor where the search was cut short: perhaps some order meets it.
    cut = ("--model", "rfc", "--budget", "1")
    assert "reason" not in litmusfuzz_here("oracle", f"{TWO} exists (X=9)", *cut).stdout


def test_an_outcome_is_written_as_in_a_condition(litmusfuzz_here) -> None:
    for written in ("r0=0,r1=1", "r0=0 r1=1", "r0=0 /\\ r1=1", "(r0=0/\\r1=1)", "r0=0 && r1=1"):
        done = litmusfuzz_here("oracle", SB, "--outcome", written)
        assert done.stdout.startswith("r0=0 r1=1: allowed under rfc and executor\n"), written
    done = litmusfuzz_here("oracle", SB, "--outcome", "r0=0 \\/ r1=1")
    assert done.returncode == 2
    assert "cannot read '\\/ r1=1'; write" in done.stderr


def test_replay_says_what_showed_of_the_condition(litmusfuzz_here) -> None:
    """A condition changes no verdict: the model allows the outcome, or it does not."""
    test = f"{SB} exists (r0=0 /\\ r1=0)"
    done = litmusfuzz_here("replay", test, *NATIVE)
    assert done.returncode == 0
    assert re.search(r"exists .*: never observed in \d+ executions\n", done.stdout)
    stale = ("--executors", "mutant/stale-reads", "--count", "10")
    done = litmusfuzz_here("replay", test, *stale)
    assert done.returncode == 1
    line = "exists (r0=0 /\\ r1=0): observed 10 times, as r0=0 r1=0 X=1 Y=1"
    assert f"{line} (forbidden under the model executor)" in done.stdout
    data = json.loads(litmusfuzz_here("replay", test, *stale, "--json").stdout)
    (seen,) = data["condition"]["deciding"]
    assert seen == {"outcome": {"r0": 0, "r1": 0, "X": 1, "Y": 1}, "count": 10}


# --- many outcomes -----------------------------------------------------------------------


def test_the_first_outcomes_are_listed_and_all_are_counted(litmusfuzz_here) -> None:
    text = " || ".join(f"X={n}; r{n}=X" for n in range(1, 6))
    every = json.loads(litmusfuzz_here("oracle", text, "--limit", "all", "--json").stdout)
    assert (every["truncated"], len(every["allowed"])) == (False, every["total"])
    assert every["total"] > 200
    some = json.loads(litmusfuzz_here("oracle", text, "--json").stdout)
    assert (some["truncated"], some["total"]) == (True, every["total"])
    assert some["allowed"] == every["allowed"][:200]
    done = litmusfuzz_here("oracle", text, "--limit", "3", "--model", "rfc")
    lines = done.stdout.splitlines()
    assert lines[4] == f"... the first 3 of {every['total']:,} outcomes; --limit all lists them"
    assert len(lines) == 7
    assert litmusfuzz_here("oracle", text, "--limit", "0").returncode == 2


def test_the_search_tells_its_states_and_heeds_an_interrupt() -> None:
    """Inside the search: a signal that comes while it runs ends it, from whatever it has seen."""
    seen: list[int] = []
    explorer = Explorer(litmus(SIX), RFC, Budget(plain=1 << 40))
    explorer.allowed_outcomes(progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 2

    def interrupt(states: int) -> None:
        seen.append(states)
        signal.raise_signal(signal.SIGINT)

    seen.clear()
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:  # a shell starts what runs in the background with interrupts ignored
        with pytest.raises(KeyboardInterrupt):
            explorer.allowed_outcomes(progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, heeded)
    assert len(seen) == 1


# --- completion and help -----------------------------------------------------------------


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_completes_words_with_colons(tmp_path: Path) -> None:
    """The script runs in bash, which replaces only what follows the last colon."""
    lines = [
        "litmusfuzz replay SB --executors native:fif",
        "litmusfuzz replay SB --executors tf,native:fif",
        "litmusfuzz replay SB --executors=native:fif",
        "litmusfuzz oracle lost-up",
    ]
    program = "from litmusfuzz.fuzz.cli.main import run_command\nrun_command()\n"
    (tmp_path / "litmusfuzz").write_text(f"#!{sys.executable}\n{program}")
    (tmp_path / "litmusfuzz").chmod(0o755)
    script = "source <(_LITMUSFUZZ_COMPLETE=bash_source litmusfuzz)\n" + "".join(
        f"COMPREPLY=(); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}\n"
        '_litmusfuzz_completion litmusfuzz 2> /dev/null; echo "${COMPREPLY[*]}"\n'
        for line in lines
    )
    done = subprocess.run(
        [str(BASH), "--norc", "-c", script],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines() == ["fifo fifo_split"] * 3 + ["lost-update"]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_has_control_or_replacement_characters(name: str) -> None:
    text = COMMANDS[name].get_help(click.Context(COMMANDS[name], info_name=name))
    assert re.findall(r"[^\n -~]", text) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("replay", "Executions of each test, at least"),  # in whole batches
        ("list", "`known list`"),
        ("known list", "`litmusfuzz list findings`"),
        ("oracle", "the reason why there is none"),
    ],
)
def test_the_help_says_what_a_newcomer_asks(name: str, says: str) -> None:
    command = COMMANDS[f"litmusfuzz {name}"]
    text = command.get_help(click.Context(command, info_name=name))
    assert says in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("repaly", "SB"), "no command 'repaly'; is it 'replay'?"),
        (("oracle", "SB", "--model", "rcf"), "no model 'rcf'; is it 'rfc'?"),
        (("replay", "SB", "--executors", "nativ"), "no executor 'nativ'; is it 'native'?"),
        (("replay", "SB", "--executors", "native:fifi"), "is it 'native:fifo'"),
        (("run", "--executors", "native:pol*"), "native has no configuration 'pol*'; is it"),
        (("run", "--families", "sparze"), "no family 'sparze'; is it 'sparse'"),
        (("oracle", "lost-updat"), "is it 'lost-update'"),
        (("oracel", "SB"), "no command 'oracel'; is it 'oracle'?"),
        (("oracle", "IRWI"), "is it 'IRIW' or 'IRWIW'? `litmusfuzz list tests`"),
    ],
)
def test_a_misspelt_name_has_a_hint_and_no_list(
    litmusfuzz_here, arguments: tuple[str, ...], hint: str
) -> None:
    done = litmusfuzz_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr
    assert len(done.stderr) < 300
    assert done.stderr.count("\n") == 1


def test_the_list_of_models_says_what_each_is_in_a_sentence(litmusfuzz_here) -> None:
    rows = json.loads(litmusfuzz_here("list", "models", "--json").stdout)
    assert [each["name"] for each in rows] == list(MODEL.choices)
    for each in rows:
        assert re.fullmatch(r"[^;\n]{40,160}\.", each["description"]), each
        assert each["axioms"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"under {['no', 'one', 'two', 'three', 'four', 'five', 'six'][len(rows)]} memory" in text


def test_the_condition_of_a_notation_stays_in_its_file(litmusfuzz_here, tmp_path: Path) -> None:
    data = json.loads(litmusfuzz_here("show", f"{SB} exists (r0=0)", "--json").stdout)
    assert data["file"]["condition"] == "exists (r0=0)"
    assert "asked: exists (r0=0)" in data["text"]
    assert loads(json.dumps(data["file"], indent=1)).test.condition is not None
