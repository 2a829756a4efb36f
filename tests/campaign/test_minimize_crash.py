"""`litmusfuzz minimize` on a test that ends its process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, load, save
from litmusfuzz.fuzz.commands.minimize_crash import MinimizedCrash, minimize_crash
from litmusfuzz.fuzz.executors.table import configuration

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("doubles")

TEST = litmus("X+=1; r0=X; Y=2 || Y=1; r1=Y")
EXECUTOR = "double/ends-its-process"
ALL = "cache=large;threads=1;process=two;checked=true"


def test_settings_and_test_are_minimized(litmusfuzz_here, tmp_path: Path) -> None:
    save(Entry(TEST), tmp_path / "t.yaml")
    command = ("minimize", "t.yaml", "--executors", f"{EXECUTOR}:{ALL}", "--out", "small")
    command = (*command, "--time", "10m")  # each candidate starts a process
    done = litmusfuzz_here(*command, "--json")
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert (data["finding"], data["problem"]) == (None, "")
    crash = data["crash"]
    assert crash["configuration"] == "cache=large;threads=1"
    assert crash["needs"] == "only with a large cache, in one thread"
    assert crash["complete"]
    assert crash["message"].startswith("signal 6")
    (file,) = (tmp_path / "small").iterdir()
    assert tmp_path / crash["file"] == file
    entry = load(file)
    assert [node.op for node in entry.test.effects] == ["AssignAddVariableOp"]
    assert entry.finding is None
    assert entry.test.description.startswith(f"{EXECUTOR}/cache=large;threads=1: signal 6")
    # For people: what ended, where, why, and the command that shows it, which works.
    judged, first, *rest = litmusfuzz_here(*command).stdout.splitlines()
    assert judged.startswith("judged by the model executor, which double/ends-its-process/")
    where = f"on {EXECUTOR}/cache=large;threads=1, only with a large cache, in one thread"
    assert first == f"{crash['file']}: ends the process {where}"
    assert [line.split()[0] for line in rest] == ["message", "ops", "replay"]
    again = litmusfuzz_here(*rest[-1].replace("'", "").split()[2:])
    assert "the worker died: signal 6" in again.stdout


def test_what_ends_a_process_by_chance_is_not(litmusfuzz_here, tmp_path: Path) -> None:
    """Long runs end the process of this executor, and the first executions are few."""
    save(Entry(TEST), tmp_path / "t.yaml")
    options = ("--executors", "double/crashes-in-long-runs", "--out", "small")
    done = litmusfuzz_here("minimize", "t.yaml", *options)
    assert done.returncode == 3, done.stderr
    _, line = done.stdout.splitlines()  # the model comes first
    assert line.endswith("ends 0 of 3 fresh processes in one way; only what ends each is minimized")
    assert not list((tmp_path / "small").iterdir())


def test_without_time_it_says_so(tmp_path: Path) -> None:
    made = minimize_crash(TEST, EXECUTOR, configuration(EXECUTOR, ALL), tmp_path, time_s=0.0)
    assert isinstance(made, MinimizedCrash)
    assert (made.config.name, made.complete) == (configuration(EXECUTOR, ALL).name, False)
    assert made.needs.startswith("seen with a large cache, in one thread")
    assert len(made.test.effects) == len(TEST.effects)
    assert "the time was up" in "\n".join(made.lines(""))
