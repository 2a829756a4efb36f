"""What LitmusFuzz says of an executor that raises, leaves a register out, or never returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import broken
import click
import pytest
from click.testing import CliRunner
from guide import installed

from litmusfuzz.corpus.library import paths
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.commands import replay as replaying
from litmusfuzz.fuzz.commands.replay import GRACE_S, ReplayOptions, replay_entry
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.worker import Died
from litmusfuzz.fuzz.finding.judge import explorer_or_none
from litmusfuzz.fuzz.testing import check
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("raises", "lacks", "hangs")
MISSING = "an outcome without a value of 'r1': it has r0, X, Y"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which they are installed; this process is one."""
    source = Path(broken.__file__).read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("theirs") / "theirs"
    points = {name: f"broken:{name.capitalize()}" for name in NAMES}
    environment = installed(folder, {"broken": source}, points)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        yield environment


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command, in this process."""
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, click.unstyle(result.stdout)


def is_traceback(lines: list[str]) -> bool:
    """True for that of `raises`, from the first frame that is its author's."""
    names = [line.split()[-1] for line in lines if line.lstrip().startswith("File ")]
    begin, end = lines[0].strip(), lines[-1].strip()
    return (begin, names, end) == (
        "Traceback (most recent call last):",
        ["raises", "divided"],
        "ZeroDivisionError: division by zero",
    )


def test_replay_shows_the_traceback(theirs) -> None:
    asked = ("replay", "SB", "--executors", "raises", "--count", "3")
    code, output = command(*asked)
    lines = output.splitlines()
    assert code == 3
    assert "the worker died: exit 1: ZeroDivisionError: division by zero (3 times)" in lines
    begin = lines.index("  Traceback (most recent call last):")
    end = lines.index("  ZeroDivisionError: division by zero")
    assert is_traceback(lines[begin : end + 1])
    code, output = command(*asked, "--json")
    (traceback,) = json.loads(output)["tracebacks"]
    assert is_traceback(traceback.splitlines())


def test_a_campaign_shows_the_traceback_and_keeps_the_log(theirs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("run", "--executors", "raises", "--families", "dag", "--tests", "1", "--seed", "1")
    code, output = command(*asked, "--time", "1h", "--out", str(out))
    assert code == 1
    assert "Traceback (most recent call last):" in output
    report = json.loads((out / "report.json").read_text())
    (crash,) = report["findings"]
    assert crash["kind"] == "crashed"
    assert is_traceback(crash["traceback"].splitlines())
    log = out / crash["log"]
    assert log.parent.name == "crashed"
    assert log.with_suffix(".yaml").exists()
    assert crash["traceback"] in log.read_text()
    for name in ("summary.md", "report.html", "junit.xml"):
        assert "ZeroDivisionError: division by zero" in (out / name).read_text()
    (result,) = json.loads((out / "findings.sarif").read_text())["runs"][0]["results"]
    assert is_traceback(result["properties"]["traceback"].splitlines())
    assert result["properties"]["log"] == crash["log"]


def test_an_outcome_without_a_register_says_which(theirs) -> None:
    code, output = command("replay", "SB", "--executors", "lacks", "--count", "3")
    assert code == 3
    assert f"the worker died: exit 1: ValueError: {MISSING} (3 times)" in output.splitlines()
    with pytest.raises(ValueError, match=MISSING):
        check(load(paths()["SB"]).test, broken.Lacks)
    with pytest.raises(TypeError, match="the value of 'r1' is an int, got NoneType: None"):
        check(load(paths()["SB"]).test, broken.LeavesNone)


def test_pytest_shows_the_traceback(theirs, tmp_path: Path) -> None:
    """The real command, on two executors."""
    asked = ("-p", "no:cacheprovider", "-n0", "-o", "addopts=", "--rootdir", str(tmp_path))
    on = ("--litmus-executors", "raises,lacks", str(paths()["SB"]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *asked, *on],
        cwd=tmp_path,
        env=os.environ | theirs,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert "2 failed" in lines[-1]
    begin = lines.index("Traceback (most recent call last):")
    assert is_traceback(lines[begin : lines.index("ZeroDivisionError: division by zero") + 1])
    assert f"ValueError: {MISSING}" in lines


class Clock:
    """A clock that a test turns, in place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


class Silent:
    """A worker that starts in a minute, answers some requests in four seconds, then never again."""

    executor = "silent"

    def __init__(self, clock: Clock, answers: int) -> None:
        self.clock = clock
        self.answers = answers
        self.limits: list[float] = []

    def close(self) -> None:
        """End the process."""

    def ask(self, request: messages.Request, timeout_s: float, test: Any = None) -> Any:
        """Take the time, and answer if it should."""
        if not request.test:
            self.clock.now += 60
            return messages.Reply()
        self.limits.append(timeout_s)
        if self.answers:
            self.answers -= 1
            self.clock.now += 4
            values = {"r0": [1], "r1": [1], "X": [1], "Y": [1]}
            return messages.Reply(rows=[messages.Row(values, request.count)])
        self.clock.now += timeout_s
        return Died(f"no answer in {timeout_s:g} s", "", timed_out=True)


@pytest.mark.parametrize(
    ("answers", "limits", "seconds", "within"),
    [(0, [15], 15, "10"), (1, [15, 11], 15, "6"), (2, [15, 11, 7], 15, "2")],
)
def test_a_hang_costs_the_time_that_was_given_and_a_grace(
    answers: int, limits: list[float], seconds: float, within: str, monkeypatch
) -> None:
    """Whenever it begins; the start of the process does not count."""
    clock, entry = Clock(), load(paths()["SB"])
    monkeypatch.setattr(replaying, "time", clock)
    worker = Silent(clock, answers)
    oracle = explorer_or_none(entry.test, EXECUTOR, DEFAULT_BUDGET)
    assert oracle is not None
    (config,) = broken.Broken.configurations()
    result = replay_entry(entry, oracle, worker, config, ReplayOptions(10.0))  # type: ignore[arg-type]
    assert worker.limits == limits
    assert (result.seconds, clock.now - 1_000) == (seconds, seconds + 60)
    assert result.died == [f"silent/plain did not answer within {within} s and a grace of 5 s"]
    assert result.hangs
    assert result.judgement is not None
    assert result.judgement.executions == answers * 4096
    assert GRACE_S == 5


def test_replay_and_force_say_that_an_executor_hangs(theirs, monkeypatch) -> None:
    """A real process, which never answers; of the grace, little."""
    monkeypatch.setattr(replaying, "GRACE_S", 0.2)
    code, output = command("replay", "SB", "--executors", "hangs", "--time", "100ms")
    lines = output.splitlines()
    assert code == 3
    assert "hangs/plain did not answer within 0.1 s and a grace of 0.2 s" in lines
    code, output = command("replay", "SB", "MP", "--executors", "hangs", "--time", "100ms")
    assert code == 3
    assert output.count("hangs/plain did not answer within 0.1 s and a grace of 0.2 s") == 2
