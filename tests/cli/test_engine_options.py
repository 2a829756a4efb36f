"""`--engine` and `--threads`: their effect, their record, and invalid values."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.executors.protocol import Noise

if TYPE_CHECKING:
    from pathlib import Path

SB = str(next(path for path in LITMUS if path.stem == "SB"))


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (["--engine", "gang", "--threads", "3"], "engine=gang;threads=3"),
        (["--threads", "4"], "engine=pool;threads=4"),
        (["--configuration", "fifo_split", "--threads", "1"], "engine=fifo;threads=1;split"),
        (["--engine", "inline"], "engine=inline;threads=1"),
        (
            ["--engine", "concurrent.futures:ThreadPoolExecutor"],
            "engine=concurrent.futures:ThreadPoolExecutor;threads=2",
        ),
        (["--configuration", "engine=stealing;threads=2"], "engine=stealing;threads=2"),
    ],
)
def test_replay_runs_on_the_engine_that_was_asked_for(
    litmusfuzz_here, options: list[str], config: str
) -> None:
    done = litmusfuzz_here(
        "replay", SB, "--executors", "native", "--count", "500", "--json", *options
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["configuration"] == config


def test_a_run_records_the_engine_and_the_noise(litmusfuzz_here, tmp_path: Path) -> None:
    done = litmusfuzz_here(
        *("run", "--executors", "native:split", "--engine", "stealing", "--threads", "2"),
        *("--tests", "3", "--count", "64", "--seed", "1", "--json", "--out", str(tmp_path)),
        *("--noise", "copies=8,barrier,yield_percent=10,shuffle=false"),
    )
    assert done.returncode == 0, done.stderr
    assert "engine=stealing;threads=2;split" in done.stdout


def test_a_finding_records_its_noise(litmusfuzz_here, tmp_path: Path) -> None:
    """The mutant has no chance in it: this seed shows several."""
    done = litmusfuzz_here(
        *("run", "--executors", "mutant/stale-reads", "--tests", "40", "--seed", "1"),
        *("--time", "10m"),
        *("--noise", "copies=8,yield_percent=10,shuffle=false", "--out", str(tmp_path)),
    )
    assert done.returncode == 1, done.stderr
    paths = list((tmp_path / "findings").glob("*.yaml"))
    assert paths
    for path in paths:
        finding = load(path).finding
        assert finding is not None
        assert finding.noise == asdict(Noise(8, shuffle=False, yield_percent=10))


NATIVE = ("--executors", "native")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replay", SB, *NATIVE, "--engine", "nobody"], "no engine 'nobody'; there are pool"),
        (["replay", SB, *NATIVE, "--engine", "./none.so"], "no engine './none.so': there is no"),
        (["replay", SB, *NATIVE, "--engine", SB], "is no engine|file too short|invalid ELF"),
        (["replay", SB, *NATIVE, "--engine", "inline", "--threads", "2"], "one thread, not 2"),
        (["replay", SB, *NATIVE, "--engine", "nowhere:engine"], "No module named 'nowhere'"),
        (
            ["replay", SB, *NATIVE, "--configuration", "engine=;"],
            "is not engine=NAME;threads=N;split",
        ),
        (["replay", SB, "--executors", "jax_refs", "--engine", "pool"], "jax_refs has no engines"),
        (["replay", SB, "--executors", "tf", "--engine", "nobody"], "no engine 'nobody'"),
        (["replay", SB, "--executors", "tf:controlled", "--engine", "pool"], "one or the other"),
        (["run", "--executors", "native", "--engine", "nowhere:engine"], "No module named"),
        (["run", "--executors", "native,tf", "--threads", "2"], "only an engine has it"),
        (["run", "--executors", "native", "--engine", "a;b"], "has no ';'"),
        (["run", "--noise", "wind"], "no noise 'wind'; there are copies, steps"),
        (["run", "--noise", "lanes=many"], "noise lanes is a number, true or false, not 'many'"),
        (["run", "--noise", "copies=0"], "noise.copies must be 1 to 4096, got 0"),
        (["run", "--noise", "copies"], "Expected `int`, got `bool` - at `\\$.copies`"),
    ],
)
def test_invalid_options_are_refused_in_one_line(
    litmusfuzz_here, arguments: list[str], message: str, tmp_path: Path
) -> None:
    options = ["--out", str(tmp_path)] if arguments[0] == "run" else []
    done = litmusfuzz_here(*arguments, *options)
    assert done.returncode == 2
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("litmusfuzz: ")]
    assert re.search(message, line)
    assert "Traceback" not in done.stderr
