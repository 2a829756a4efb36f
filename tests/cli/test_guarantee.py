"""A configuration is judged by the model that it guarantees, in every command, without an option.

`splitting` splits its updates and says that it does not; `honest` does the same and guarantees no
more than the RFC.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import splitting
from click.testing import CliRunner
from guide import installed
from hypothesis import given, settings

from litmusfuzz import Config
from litmusfuzz.corpus.library import paths
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.cli import executors
from litmusfuzz.fuzz.cli.campaigns import configured
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.testing import ForbiddenOutcome, check, resource_graphs
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC

if TYPE_CHECKING:
    from collections.abc import Iterator

POINTS = {"splitting": "splitting:Splitting", "honest": "splitting:Honest"}
BY = {
    "splitting": "judged by the model executor, which splitting/plain guarantees",
    "honest": "judged by rfc, which honest/plain guarantees",
}
LAST = {
    "splitting": "rule of the model executor: dense updates indivisible; rfc allows it",
    "honest": "no forbidden outcome was seen, which does not prove that none is possible: a larger"
    " --count may show one",
}
"""The last line of a replay of two updates."""
ASKED = {
    ("splitting", "rfc"): "judged by rfc, as --model asks; splitting/plain guarantees executor",
    (
        "honest",
        "executor",
    ): "judged by the model executor, as --model asks; honest/plain guarantees rfc",
}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which both are installed; this process is one."""
    source = Path(splitting.__file__).read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("theirs") / "theirs"
    environment = installed(folder, {"splitting": source}, POINTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        yield environment


def command(*arguments: str) -> tuple[int, str]:
    """Exit code of a command in this process, and what it prints, or else complains."""
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, click.unstyle(result.stdout or result.stderr)


def judged(*arguments: str) -> tuple[int, Any]:
    """Exit code and data of a command with ``--json``."""
    code, output = command(*arguments, "--json")
    return code, json.loads(output)


@pytest.mark.parametrize(("name", "code"), [("splitting", 1), ("honest", 0)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_replay(theirs, name: str, code: int, form: str) -> None:
    """Two updates: of 2,000 executions, the chance that none splits one is below (2/3)**2000."""
    asked = ("replay", "lost-update", "--executors", name, "--count", "2000")
    if form == "text":
        found, output = command(*asked)
        lines = output.splitlines()
        assert lines[0] == BY[name]
        assert lines[-1] == LAST[name]
    else:
        found, data = judged(*asked)
        assert data["judged_by"] == BY[name]
        assert {tuple(row["outcome"].values()) for row in data["observed"]} == {(1,), (2,)}
    assert found == code


def test_configurations_that_are_left_out_are_said(theirs, monkeypatch) -> None:
    """Of one's own executor; a name without a configuration stands for the first one."""
    both = (Config("right", guarantees="rfc"), Config("losing", guarantees="rfc"))
    monkeypatch.setattr(splitting.Honest, "configurations", classmethod(lambda _: both))
    line = "litmusfuzz: honest runs in right, the first of its 2 configurations: "
    said = []
    for named in ("honest", "honest:right"):
        executors._say_others.cache_clear()
        result = CliRunner().invoke(main, ("replay", "SB", "--count", "1", "--executors", named))
        said.append(line in result.stderr)
    assert said == [True, False]
    code, output = command("list", "configurations", "--executors", "honest")
    assert code == 0
    assert [row.rpartition("; ")[2] for row in output.splitlines()] == [
        "runs where none is named",
        "no settings",
    ]


@pytest.mark.parametrize(
    ("name", "model", "code"), [("splitting", "rfc", 0), ("honest", "executor", 1)]
)
def test_the_option_alone_weakens_or_strengthens_it(theirs, name, model, code) -> None:
    """And is said."""
    asked = ("replay", "lost-update", "--executors", name, "--model", model, "--count", "2000")
    found, output = command(*asked)
    assert (found, output.splitlines()[0]) == (code, ASKED[name, model])
    systems = ((name, *executor_class(name).configurations()),)
    (configuration,) = configured(systems, GUARANTEES[model])
    assert configuration.model == model
    (configuration,) = configured(systems, None)
    assert configuration.model == configuration.guarantees != model


def test_of_several_tests_the_model_is_said_where_it_changes(theirs) -> None:
    on = ("--executors", "splitting,honest", "--count", "500")
    code, output = command("replay", "lost-update", "SB", *on)
    lines = output.splitlines()
    assert (code, lines[:2]) == (1, [BY["splitting"], BY["honest"]])
    assert [line.partition(":")[0] for line in lines[2:]] == 2 * ["splitting/plain", "honest/plain"]
    _, both = judged("replay", "lost-update", *on)
    assert [each["judged_by"] for each in both["replays"]] == [BY["splitting"], BY["honest"]]
    assert [each["exit_code"] for each in both["replays"]] == [1, 0]


@pytest.mark.parametrize(("name", "code"), [("splitting", 1), ("honest", 0)])
def test_run_and_its_findings_file(theirs, name: str, code: int, tmp_path: Path) -> None:
    """The finding's file names the model, and is replayed and minimized by it."""
    out = tmp_path / "out"
    asked = ("run", "--executors", name, "--families", "dense", "--seed", "1", "--count", "200")
    found, output = command(*asked, "--tests", "6", "--time", "1h", "--out", str(out))
    assert found == code
    assert output.splitlines()[-2:] == [BY[name], "1 new finding" if code else "nothing new"]
    report = json.loads((out / "report.json").read_text())
    assert report["judged_by"] == BY[name]
    assert BY[name] in (out / "report.html").read_text()
    files = [*(out / "findings").glob("*.yaml")]
    assert len(files) == code
    for file in files:
        finding = load(file).finding
        assert finding is not None
        assert finding.model == "executor"
        found, data = judged("replay", str(file))
        named = "judged by the model executor, which the finding's file names"
        assert (found, data["judged_by"]) == (1, named)
        found, data = judged("replay", str(file), "--executors", "honest", "--count", "500")
        assert (found, data["judged_by"]) == (3, BY["honest"])
        found, data = judged("minimize", str(file), "--time", "5s", "--out", str(tmp_path))
        assert (found, data["judged_by"]) == (1, named)


@pytest.mark.parametrize(("name", "code"), [("splitting", 1), ("honest", 3)])
def test_minimize(theirs, name: str, code: int, tmp_path: Path) -> None:
    asked = ("minimize", "lost-update", "--executors", name, "--time", "5s")
    found, output = command(*asked, "--out", str(tmp_path))
    assert (found, output.splitlines()[0]) == (code, BY[name])


@pytest.mark.parametrize(("name", "code"), [("splitting", 1), ("honest", 0)])
def test_force(theirs, name: str, code: int) -> None:
    found, output = command("force", "lost-update", "--executors", name)
    assert (found, output.splitlines()[0]) == (code, BY[name])
    found, (data,) = judged("force", "lost-update", "--executors", name)
    assert (found, data["judged_by"]) == (code, BY[name])
    assert len(data["wrong"]) == code
    one = ("force", "lost-update", "--executors", name, "--outcome", "X=2")
    found, output = command(*one)
    assert (found, output.splitlines()[0]) == (code, BY[name])
    # What only `rfc` allows has an order only where that is guaranteed.
    found, output = command("force", "lost-update", "--executors", name, "--outcome", "X=1")
    if name == "splitting":
        assert found == 2
        assert "forbidden under the model executor, which splitting/plain guarantees" in output
    else:
        assert (found, output.splitlines()[0]) == (0, BY[name])


def test_pytest(theirs, tmp_path: Path) -> None:
    """The real command: one item is convicted, the other is not; a report says by which model."""
    asked = ("-p", "no:cacheprovider", "-n0", "--junit-xml", "junit.xml", "-o", "addopts=")
    on = ("--litmus-executors", "splitting,honest", "--rootdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *asked, *on, str(paths()["lost-update"])],
        cwd=tmp_path,
        env=os.environ | theirs,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    block = done.stdout[done.stdout.index("lost-update: ") :].splitlines()
    assert block[1].strip() == BY["splitting"]
    junit = (tmp_path / "junit.xml").read_text()
    assert all(line in junit for line in BY.values())


def convicted(executor: type[splitting.Splitting], **options: Any) -> str:
    """What `check` says in a test of Hypothesis; "" if nothing is wrong."""

    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(resource_graphs("dense", support=executor))
    def property_(graph) -> None:
        check(graph, executor, count=30, **options)

    try:
        property_()
    except ForbiddenOutcome as error:
        return str(error).splitlines()[1].strip()
    return ""


def test_hypothesis() -> None:
    assert convicted(splitting.Splitting) == BY["splitting"]
    assert not convicted(splitting.Honest)
    assert not convicted(splitting.Splitting, model=RFC)
    asked = (
        "judged by the model executor, as the argument `model` asks; honest/plain guarantees rfc"
    )
    assert convicted(splitting.Honest, model=EXECUTOR) == asked


def test_a_guarantee_that_is_no_model_is_a_line(theirs, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("splitting.Splitting.guarantees", "executr")
    for asked in (
        ("replay", "SB", "--executors", "splitting"),
        ("run", "--executors", "splitting:*", "--out", str(tmp_path / "out")),
    ):
        code, output = command(*asked)
        assert code == 2
        said = "--executors: splitting/plain guarantees 'executr', which is no memory model"
        assert output.startswith(f"litmusfuzz: {said}")
