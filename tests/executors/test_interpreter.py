"""Workers in another environment: a second venv, in which our package is not installed."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import venv
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, nightly

from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.fork_server import close_all
from litmusfuzz.fuzz.executors.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SB = str(next(path for path in LITMUS if path.stem == "SB"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing in it."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with what is installed here, but for us: an editable package is a hook, not a folder."""
    folder = tmp_path_factory.mktemp("other")
    venv.create(folder, with_pip=False, symlinks=True)
    hooks(folder, "ours", sysconfig.get_path("purelib"))
    return folder


def python(folder: Path) -> str:
    return str(folder / "bin" / "python")


def hooks(folder: Path, name: str, line: str) -> Path:
    """A line that the environment's interpreter takes when it starts."""
    (site,) = folder.glob("lib/python*/site-packages")
    (site / f"{name}.pth").write_text(line + "\n")
    return site / f"{name}.pth"


@contextmanager
def lacking(folder: Path, *modules: str) -> Iterator[None]:
    """The environment without some modules; servers of before and after have others."""
    close_all()
    line = f"import sys; sys.modules.update(dict.fromkeys({modules!r}))"
    hook = hooks(folder, "without", line)
    try:
        yield
    finally:
        hook.unlink()
        close_all()


def test_an_executor_runs_in_another_environment(litmusfuzz_here, other: Path) -> None:
    done = litmusfuzz_here(
        *("replay", SB, "--executors", "native:controlled,mutant/canary", "--count", "300"),
        *("--python", python(other), "--json"),
    )
    assert done.returncode == 1, done.stderr  # the canary
    native, canary = json.loads(done.stdout)["replays"]
    assert (native["forbidden"], canary["forbidden"]) == (0, canary["executions"])


@pytest.mark.parametrize("spawn", [False, True], ids=["forked", "spawned"])
def test_workers_of_another_environment_are_forked_there(other: Path, *, spawn: bool) -> None:
    """Two from one server, whose interpreter is theirs."""
    for _ in range(2):
        with closing(Worker("native", python=python(other), spawn=spawn)) as worker:
            assert isinstance(worker.ask(messages.Request(), 60.0), messages.Reply)
            assert worker.start_method == ("spawned: as requested" if spawn else "forked")
            with open(f"/proc/{worker.pid}/cmdline", "rb") as file:
                assert file.read().partition(b"\0")[0].decode() == python(other)


def test_jax_refs_runs_in_another_environment(litmusfuzz_here, other: Path) -> None:
    """What is found is of the JAX there: the stale condition of a compiled loop."""
    tests = [str(path) for path in LITMUS if path.stem in ("MP", "h-condition-sees-its-own-body")]
    done = litmusfuzz_here(
        *("replay", *tests, "--executors", "jax_refs:eager,jax_refs:jit", "--count", "1"),
        *("--python", python(other), "--json"),
    )
    assert done.returncode == 1, done.stderr
    replays = [each for report in json.loads(done.stdout) for each in report["replays"]]
    assert len(replays) == 4
    shown = [(each["test"], each["configuration"]) for each in replays if each["forbidden"]]
    assert shown == [("h-condition-sees-its-own-body", "jit")]


def test_force_runs_in_another_environment(litmusfuzz_here, other: Path) -> None:
    done = litmusfuzz_here("force", SB, "--executors", "native", "--python", python(other))
    assert done.returncode == 0, done.stderr
    assert "3 of 3" in done.stdout


@nightly  # it imports TensorFlow anew
def test_control_works_in_another_environment(litmusfuzz_here, other: Path) -> None:
    """The library's source is found where our modules are links."""
    done = litmusfuzz_here(
        *("force", SB, "--executors", "tf:controlled", "--python", python(other), "--json")
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert report["all"]
    assert report["schedules"] == len(report["reached"]) == 3


def test_doctor_says_what_works_in_another_environment(litmusfuzz_here, other: Path) -> None:
    with lacking(other, "tensorflow", "jax"):
        done = litmusfuzz_here("doctor", "--python", python(other), "--json")
    assert done.returncode == 0, done.stderr
    checks = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    assert {what for what, each in checks.items() if each["good"]} == {"Python", "native/plain"}
    assert checks["tensorflow"]["get"] == "pip install tensorflow-cpu"


def test_a_relative_path_and_a_campaign(litmusfuzz_here, other: Path, tmp_path: Path) -> None:
    """Findings say how to replay them there, and what was installed there."""
    there = os.path.relpath(python(other), tmp_path)
    done = litmusfuzz_here(
        *("run", "--executors", "mutant/stale-reads", "--tests", "24", "--families", "dag"),
        *("--seed", "1", "--time", "10m", "--python", there, "--json"),
    )
    assert done.returncode == 1, done.stderr
    record = json.loads(done.stdout)
    assert record["versions"]["mutant/stale-reads"] == {"python": sys.version.split()[0]}
    assert record["findings"]
    assert os.path.normpath(record["python"]) == python(other)
    file = f"{record['folder']}/{record['findings'][0]['file']}"
    again = litmusfuzz_here("replay", file, "--python", there)
    assert again.returncode == 1


def one_line(done, *parts: str) -> None:
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in parts), done.stderr


@pytest.mark.parametrize(
    "command",
    [["replay", SB], ["force", SB], ["run", "--time", "2s"]],
    ids=["replay", "force", "run"],
)
def test_a_program_that_cannot_run_workers_is_reported_in_one_line(
    litmusfuzz_here, bare: Path, tmp_path: Path, command: list[str]
) -> None:
    on = (*command, "--executors", "native", "--python")
    one_line(litmusfuzz_here(*on, str(tmp_path / "nothing")), "--python: ", "no such program")
    one_line(litmusfuzz_here(*on, "true"), "--python: true: is not a Python")
    one_line(litmusfuzz_here(*on, python(bare)), "has no msgspec, numpy, yaml, which workers need")


@pytest.mark.parametrize(
    ("executor", "module"),
    [("native", "litmusfuzz.fuzz.executors.native._executor"), ("tf", "tensorflow")],
)
def test_what_an_executor_lacks_there_is_reported_in_one_line(
    litmusfuzz_here, other: Path, executor: str, module: str
) -> None:
    """As in another Python, for which our compiled modules are not; and without a framework."""
    with lacking(other, module):
        for command in (["replay", SB], ["run", "--time", "2s"]):
            done = litmusfuzz_here(*command, "--executors", executor, "--python", python(other))
            one_line(done, f"{executor}: ", module)


def test_nothing_of_ours_stays_behind(litmusfuzz, other: Path, tmp_path: Path) -> None:
    """The folder of links goes with the process that made it."""
    links = tmp_path / "links"
    links.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(links))
        done = litmusfuzz(
            *("replay", SB, "--executors", "native", "--count", "10", "--python", python(other))
        )
    assert done.returncode == 0, done.stderr
    assert not list(links.iterdir())
