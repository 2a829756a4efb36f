"""Attacks on what is typed: arguments, wildcards, names of folders, settings of a project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.attacks.attack import ROOT, Place, attack

PYTHON = Path(sys.executable)
SB = ROOT / "corpus/litmus/SB.yaml"
FINDING = ROOT / "corpus/findings/scatter-beside-scatter.yaml"
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly")


def _library(place: Place) -> Path:
    """A shared library that leaves a mark when it is loaded."""
    hit = place.folder / "hit"
    source = place.write(
        "evil.c",
        "#include <stdio.h>\n__attribute__((constructor)) static void hit(void)"
        f' {{ fclose(fopen("{hit}", "w")); }}\n',
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "g++"))), "cc")
    library = place.folder / "evil.so"
    made = [compiler, "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(made, check=True, capture_output=True)
    return hit


def finding_on(configuration: str) -> str:
    """A finding of the native executor, in that configuration."""
    lines = FINDING.read_text().replace("executor: tf\n", "executor: native\n").splitlines()
    lines = ["  settings: {}" if line.startswith("  settings:") else line for line in lines]
    text = "\n".join(lines) + "\n"
    return text.replace("configuration: plain", f"configuration: {configuration}")


@attack("to have his library loaded by a file with the name of an option")
def a_file_named_trust_and_a_wildcard(place: Place) -> str:
    hit = _library(place)
    place.write("x.yaml", finding_on(f"engine={place.folder}/evil.so"))
    place.write("--trust", "")
    (place.folder / "evil.c").unlink()
    ended = place.run("replay", *sorted(os.listdir(place.folder)), "--time", "2s")
    assert not hit.exists()
    alone = place.run("replay", "x.yaml", *sorted(place.folder.glob("--*"), key=str), codes=(2,))
    assert not hit.exists()
    ended = place.run("replay", "x.yaml", "--trust", codes=(2,))
    assert not hit.exists()
    return f"{alone.error[:60]}; {ended.error[:120]}"


@attack("to have his library loaded by a file whose name is an option with its value")
def a_file_named_as_an_engine_and_a_wildcard(place: Place) -> str:
    hit = _library(place)
    shutil.copyfile(SB, place.folder / "SB.yaml")
    place.write("--engine=evil.so", "")
    ended = place.run("replay", "--engine=evil.so", "SB.yaml", "--executors", "native")
    assert ended.code == 2
    assert not hit.exists()
    return ended.error


@attack("to have a project's setting taken for what the user typed: a folder has its name")
def a_folder_named_as_an_engine(place: Place) -> str:
    hit = _library(place)
    place.write("pytest.ini", "[pytest]\nlitmus_executors = native:engine=./evil.so\n")
    folder = place.folder / "engine=." / "evil.so"
    folder.mkdir(parents=True)
    shutil.copyfile(SB, folder / "SB.yaml")
    ended = place.run(*PYTEST, "engine=./evil.so", program=PYTHON, codes=(4,))
    assert not hit.exists()
    assert "want to run the shared library ./evil.so" in ended.err
    return (ended.out + ended.err).strip().splitlines()[-1]


@attack("to give a command to a CI system by an error of collection")
def a_name_of_an_op_that_azure_obeys(place: Place) -> str:
    command = "##vso[task.setvariable variable=PATH]evil"
    place.write("test_a.yaml", SB.read_text().replace("AssignVariableOp", f"'{command}'", 1))
    ended = place.run(
        *(*PYTEST, "--continue-on-collection-errors", "--litmus-executors=native", "test_a.yaml"),
        program=PYTHON,
        codes=(1,),
    )
    assert "task.setvariable" in ended.out
    assert "##vso[" not in ended.out + ended.err
    return "the sign is taken apart"


@attack("to give a command to a CI system by an error in the known-findings file")
def a_key_that_azure_obeys(place: Place) -> str:
    key = "##vso[task.setvariable variable=PATH]evil"
    place.write("known.yaml", f"litmusfuzz_known: 3\nfindings:\n  - key: '{key}'\n    why: x\n")
    ended = place.run(
        *(*PYTEST, "--litmus-executors=native", "--litmus-known=known.yaml", "."),
        program=PYTHON,
        codes=(4,),
    )
    assert "task.setvariable" in ended.out + ended.err
    assert "##vso[" not in ended.out + ended.err
    return "the sign is taken apart"


@attack("to hang: an expression that tries all ways to share out blanks")
def blanks_between_the_elements_of_an_outcome(place: Place) -> str:
    ended = place.run("oracle", "SB", "--outcome", f"X=[{'[1]  ' * 60}!", within_s=8)
    assert ended.code == 2
    return ended.error


@attack("to get a traceback: numbers of more than 64 bits")
def numbers_beyond_64_bits(place: Place) -> str:
    huge = str(10**30)
    for arguments in (
        ("oracle", "SB", "--budget", huge),
        ("herd", "log", "SB", "--budget", huge),
        ("replay", "SB", "--executors", "native", "--count", huge),
        ("run", "--executors", "native", "--tests", huge),
        ("run", "--executors", "native", "--count", huge),
        ("force", "SB", "--events", huge),
        ("force", "SB", "--outcomes", huge),
    ):
        ended = place.run(*arguments)
        assert ended.code == 2, arguments
    return ended.error


@attack("to get a traceback: the largest numbers that are taken")
def the_largest_numbers(place: Place) -> str:
    most = str(10**15)
    place.run("oracle", "SB", "--budget", most, codes=(0,))
    place.run("validate", "SB", "--budget", most, codes=(0,))
    seed = str((1 << 63) - 1)
    options = ("--executors", "native", "--seed", seed, "--count", "20000")
    ended = place.run("replay", "SB", *options, codes=(0,))
    return ended.out.strip().splitlines()[-1]


@attack("to get a line without end: a name as long as arguments may be")
def a_name_of_100000_letters(place: Place) -> str:
    ended = place.run("oracle", "a" * 100_000)
    assert ended.code == 2
    return f"{len(ended.error)} characters"


@attack("to have his modules imported in place of the libraries")
def modules_in_the_working_folder(place: Place) -> str:
    for name in ("numpy", "yaml", "msgspec", "click", "json", "litmusfuzz", "sitecustomize"):
        place.write(f"{name}.py", "open('hit', 'w')\nraise SystemExit(9)\n")
    place.run("replay", "SB", "--executors", "native", "--count", "64", codes=(0,))
    place.run("force", "SB", "--executors", "native", codes=(0,))
    place.run("validate", "SB", codes=(0,))
    assert not (place.folder / "hit").exists()
    return "none is imported"


@attack("to have his module imported: an empty entry of PYTHONPATH stands for his folder")
def an_empty_entry_of_the_import_path(place: Place) -> str:
    for name in ("numpy", "yaml", "msgspec", "click", "psutil"):
        place.write(f"{name}.py", "open('hit', 'w')\nraise SystemExit(9)\n")
    for path in (":", ":/nowhere", "/nowhere:", "/nowhere::/nowhere"):
        env = {"PYTHONPATH": path}
        place.run("oracle", "SB", env=env, codes=(0,))
    place.run("replay", "SB", "--executors", "native", "--count", "64", env=env, codes=(0,))
    assert not (place.folder / "hit").exists()
    return "none is imported"


@attack("to hang: a notation that is tried with each way to share out its blanks")
def blanks_in_the_short_notation(place: Place) -> str:
    for notation in ("loop 3 while{}b\\nc {{X=1}}", "X={}1\\n1", "Q!{}1\\n1"):
        text = notation.format(" " * 40_000)
        code = f"from litmusfuzz import litmus\ntry: litmus('{text}', queues={{'Q': 1}})\n"
        code += "except ValueError as error: print(error)"
        ended = place.run("-c", code, program=PYTHON, within_s=8, codes=(0,))
        assert "not a statement" in ended.out or "a loop is as in" in ended.out
    return ended.out.strip().splitlines()[-1][:80]


@attack("to have his library loaded by the completion of a shell")
def completion_of_an_engine_of_his(place: Place) -> str:
    hit = _library(place)
    words = "litmusfuzz replay --executors native:engine=./evil.so --configuration e"
    env = {"_LITMUSFUZZ_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "5"}
    place.run(env=env, codes=(0,))
    words = "litmusfuzz replay --engine ./evil.so --executors na"
    ended = place.run(env=env | {"COMP_WORDS": words}, codes=(0,))
    assert "native" in ended.out
    assert not hit.exists()
    return ended.out.splitlines()[0]


@attack("to get a traceback: settings of the interpreter, the terminal and the locale")
def odd_variables_of_the_environment(place: Place) -> str:
    text = SB.read_text().splitlines(keepends=True)
    begin = next(n for n, line in enumerate(text) if line.startswith("description"))
    text[begin + 1] = "  日本語 \N{REPLACEMENT CHARACTER} ελληνικά\n"
    path = place.write("a.yaml", "".join(text))
    for name, value in (
        *(("PYTHONIOENCODING", each) for each in ("latin-1", "ascii", "cp1252", "koi8-r")),
        *(("COLUMNS", each) for each in ("0", "-1", "99999999999999999999", "x")),
        *(("TZ", each) for each in ("../../x", ":/etc/passwd", "X" * 5000)),
        *(("PYTHONOPTIMIZE", "2"), ("PYTHONWARNINGS", "error"), ("TMPDIR", "/nowhere")),
    ):
        place.run("show", path, env={name: value}, codes=(0,))
    ended = place.run("list", "executors", env={"PYTHONOPTIMIZE": "2"}, codes=(0,))
    return f"{len(ended.out.splitlines())} lines"
