"""The wheel beside a project that has folders and modules of our names, and of a dependency's."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

import pytest
from helpers import WHOLE, nightly

ROOT: Final = Path(__file__).parents[2]

CONTROL: Final = {
    f"litmusfuzz/fuzz/native/control/{name}"
    for name in (
        "engine.cc",
        "engine_hooks.h",
        "hooks.h",
        "locks.cc",
        "locks.h",
        "pages.cpp",
        "pages.h",
        "program.cc",
        "tensorflow.cc",
    )
}
"""What is compiled at first use, against the TensorFlow that is there."""

PROJECT: Final = {
    "fuzz.py": "OWN = 'fuzz'\n",
    "helpers.py": "OWN = 'helpers'\n",
    "corpus/__init__.py": "OWN = 'corpus'\n",
    "oracles/__init__.py": "OWN = 'oracles'\n",
    "reports/__init__.py": "OWN = 'reports'\n",
    "test_project.py": """
import corpus, fuzz, helpers, oracles, reports
from hypothesis import given, settings
from litmusfuzz import check, resource_graphs
from own_executor import First


def test_the_project_imports_its_own_modules():
    modules = (corpus, fuzz, helpers, oracles, reports)
    assert [m.OWN for m in modules] == ["corpus", "fuzz", "helpers", "oracles", "reports"]


@settings(max_examples=5, deadline=None)
@given(resource_graphs())
def test_random_graphs(graph):
    check(graph, First(), count=1)
""",
    # An executor of the project's: it runs a test by one of the oracle's witnesses.
    "own_executor.py": """
from litmusfuzz import RFC, Config, allowed_outcomes


class First:
    name = "first"
    features = frozenset()

    @classmethod
    def configurations(cls):
        return (Config("plain", "rfc"),)

    @classmethod
    def versions(cls):
        return {}

    def prepare(self, test, config):
        return Prepared(test)


class Prepared:
    def __init__(self, test):
        self.test = test

    def run(self, count, noise, seed):
        return {next(iter(allowed_outcomes(self.test, RFC).witnesses)): count}

    def close(self):
        pass
""",
}
PUBLIC_API_USER: Final = """
from collections.abc import Mapping

from hypothesis import given

import litmusfuzz
from litmusfuzz import (
    EXECUTOR,
    RFC,
    Config,
    Entry,
    Executor,
    Histogram,
    LitmusTest,
    Noise,
    Outcome,
    Prepared,
    Refused,
    allowed_outcomes,
    check,
    litmus,
    load,
    resource_graphs,
    save,
)


def forbidden(test: LitmusTest, outcome: Outcome) -> bool:
    return outcome not in allowed_outcomes(test, EXECUTOR).witnesses


def copied(source: str, target: str) -> Mapping[str, object]:
    entry = load(source)
    save(Entry(entry.test, entry.allowed), target)
    return entry.allowed


class Once:
    def __init__(self, test: LitmusTest) -> None:
        self.test = test

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        witnesses = allowed_outcomes(self.test, RFC).witnesses
        return {outcome: count for outcome in list(witnesses)[:1]}

    def close(self) -> None:
        pass


def prepared(test: LitmusTest) -> Prepared:
    if test.clusters:
        raise Refused("clusters")
    return Once(test)


def judged(executor: Executor, config: Config) -> Histogram:
    return check(litmus("X=1 || r0=X"), executor, config=config, model=RFC)


@given(resource_graphs())
def test_runs(graph: LitmusTest) -> None:
    prepared(graph).close()


version: str = litmusfuzz.__version__
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The wheel, built from this checkout: once, as all processes of a run build in one folder."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found := [*folder.glob("litmusfuzz-*.whl")]):
            subprocess.run(
                [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                 "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)],
                check=True, capture_output=True,
            )  # fmt: skip
            found = [*folder.glob("litmusfuzz-*.whl")]
    (built,) = found
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with the wheel; its interpreter's folder.

    Its dependencies are those of this environment, by path: to install them again takes
    minutes. A path file below a path file is not read, so that this environment's own,
    editable, litmusfuzz is not there.
    """
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet",
         "--no-deps", "--no-index", str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with folders and modules named like ours."""
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(project: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command, in the project's folder."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_wheel_has_one_top_level_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
        lines = archive.read(record).decode().splitlines()
    top = {line.partition("/")[0] for line in lines}
    assert top == {"litmusfuzz", record.partition("/")[0]}
    files = {line.partition(",")[0] for line in lines}
    assert {
        "litmusfuzz/py.typed",
        "litmusfuzz/corpus/litmus/SB.yaml",
        "litmusfuzz/corpus/findings/scatter-beside-read.yaml",
        "litmusfuzz/corpus/findings/scatter-beside-read.py",
        "litmusfuzz/corpus/findings/jax/stale-condition.py",
        "litmusfuzz/corpus/findings/jax/stale-condition.yaml",
        "litmusfuzz/corpus/known.yaml",
    } <= files
    assert {name for name in files if "/native/control/" in name} == CONTROL
    others = files - CONTROL
    assert not [name for name in others if name.endswith((".cpp", ".cu")) or "/tests/" in name]


def test_what_is_imported_is_the_wheel(environment: Path, project: Path) -> None:
    code = "import litmusfuzz.corpus.builder as m, litmusfuzz; print(m.__file__, litmusfuzz.litmus)"
    done = run(project, environment / "python", "-c", code)
    assert done.stdout.startswith(str(environment.parent / "lib")), done.stderr


@pytest.mark.parametrize("module", [False, True], ids=["script", "python-m"])
def test_commands_and_workers_run_beside_the_project(
    environment: Path, project: Path, *, module: bool
) -> None:
    """With an own ``msgspec.py`` as well: commands and workers import nothing from here."""
    (project / "msgspec.py").write_text("raise RuntimeError('the project has its own')\n")
    command = (
        [environment / "python", "-m", "litmusfuzz"] if module else [environment / "litmusfuzz"]
    )
    fuzzed = run(
        project, *command, "run", "--executors", "native", "--tests", "5", "--seed", "1",
        "--time", "10m", "--out", "out", "--json",
    )  # fmt: skip
    assert fuzzed.returncode == 0, fuzzed.stderr
    assert '"tests": 5' in fuzzed.stdout
    listed = run(project, *command, "list", "findings")
    assert "tensorflow 2.21" in listed.stdout, listed.stderr
    assert str(environment.parent / "lib") in listed.stdout  # files of the wheel
    shown = run(project, *command, "show", "scatter-rows-beside-read", "--format", "script")
    assert compile(shown.stdout, "script", "exec") is not None, shown.stderr
    assert "import tensorflow as tf" in shown.stdout
    replayed = run(project, *command, "replay", "SB", "--executors", "native,mutant/stale-reads")
    assert replayed.returncode == 1, replayed.stderr
    assert "FORBIDDEN" in replayed.stdout
    if not module and os.environ.get(WHOLE):  # it starts all frameworks, which takes a while
        examined = run(project, *command, "doctor")
        assert examined.returncode == 0, examined.stdout + examined.stderr
        assert str(environment.parent) in examined.stdout


def test_tensorflow_runs_beside_the_project(environment: Path, project: Path) -> None:
    command = ("replay", "SB", "--executors", "tf", "--count", "100")
    done = run(project, environment / "litmusfuzz", *command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pytest_with_the_plugin_beside_the_project(environment: Path, project: Path) -> None:
    made = run(project, environment / "litmusfuzz", "oracle", "SB", "--json")
    assert made.returncode == 0, made.stderr
    source = ROOT / "corpus/litmus/SB.yaml"
    (project / "SB.yaml").write_bytes(source.read_bytes())
    arguments = ("-m", "pytest", "-q", "-n", "2", "--litmus-executors", "native,mutant/stale-reads")
    done = run(project, environment / "python", *arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    # Two tests of the project's and SB on `native` pass; SB on the mutant fails, as it must.
    assert "1 failed, 3 passed" in done.stdout


@nightly
def test_mypy_strict_accepts_a_user_of_the_public_api(environment: Path, project: Path) -> None:
    (project / "user.py").write_text(PUBLIC_API_USER)
    done = run(
        project, sys.executable, "-P", "-m", "mypy", "--strict", "--python-executable",
        environment / "python", "--cache-dir", project / ".cache", "user.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
