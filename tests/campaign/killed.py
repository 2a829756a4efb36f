"""Campaigns that are killed: what the terminal had printed is in the report when they are resumed.

``python -m tests.campaign.killed --kills 50`` kills so many, each at a random moment, which is a
number of printed lines: with the same seed, each is killed after the same line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import Executions, FindingAdded, SeenAgain, Unconfirmed
from litmusfuzz.reports.stats import number, read

if TYPE_CHECKING:
    from litmusfuzz.reports.events import Run

SEEN: Final = re.compile(r"FORBIDDEN: graph (\d+) on (\S+)/(\w+), ")
MOST_LINES: Final = 60
"""A campaign prints more until it ends; at a random one of these lines it is killed."""
GIVEN: Final = ("--executors", "mutant/stale-reads", "--families", "dag", "--count", "64")


@dataclass(frozen=True)
class Killed:
    """A campaign that was killed: the lines that it had printed, and the tests that they name."""

    lines: list[str]
    seen: set[Run]
    files: list[str]


def kill(folder: Path, command: str, seed: int, after: int) -> Killed:
    """Start a campaign, and kill its process when it has printed so many lines."""
    limit = ("--tests", "400") if command == "run" else ("--workers", "1")
    arguments = (
        command,
        *GIVEN,
        *limit,
        "--seed",
        str(seed),
        "--time",
        "20m",
        "--out",
        str(folder),
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "litmusfuzz", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder.parent,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if len(lines) == after:
            os.kill(process.pid, signal.SIGKILL)  # what is in the pipe was printed too
    process.wait()
    process.stdout.close()
    found = {(int(m[1]), m[2], m[3]) for line in lines if (m := SEEN.match(line))}
    files = [line.split(maxsplit=1)[1] for line in lines if line.startswith("  file  ")]
    return Killed(lines, found, files)


def check(folder: Path, command: str, killed: Killed) -> str:
    """Check that nothing that was printed is lost; what is in the report, in a few words.

    Raises
    ------
    AssertionError
        Naming what was lost.
    """
    for file in killed.files:
        assert Path(file).is_file(), f"{file} was printed, and is not there"
    if killed.seen:
        stats = read((folder / "stats").read_text(encoding="utf-8"))
        assert number(stats, "forbidden") >= len(killed.seen), "stats lack what was printed"
    # One more test, which the canary runs as well: it may have been killed before that.
    more = ("--tests", "1", "--time", "5s") if command == "run" else ("--time", "5s")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "litmusfuzz", command, "--resume", str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
    )
    assert done.returncode in ((1,) if killed.seen else (0, 1, 3)), done.stderr or done.stdout
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    left = {
        (each["index"], each["executor"], each["configuration"])
        for each in (*report["pending"], *report["unconfirmed"])
    }
    keys = {each["key"] for each in report["findings"]}
    with Store(folder, write=False) as store:
        stored = [event for _, event in store.events()]
    executed = {e.run for e in stored if isinstance(e, Executions) and e.unreduced}
    found = {
        (e.index, e.executor, e.configuration): e.key
        for e in stored
        if isinstance(e, FindingAdded | SeenAgain)
    }
    refuted = {e.run for e in stored if isinstance(e, Unconfirmed)}
    for run in killed.seen:
        assert run in executed, f"{run} was printed, and no event has it"
        there = run in left or found.get(run) in keys
        assert there, f"{run} was printed, and is not in the report"
    return (
        f"{len(killed.lines)} lines, {len(killed.seen)} forbidden: "
        f"{len(killed.seen & found.keys())} with a finding, "
        f"{len(killed.seen & left)} left, {len(killed.seen & refuted)} not shown again"
    )


def kill_and_check(folder: Path, number_of: int, seed: int) -> str:
    """Kill one campaign at a random moment, resume it, and check its report."""
    rng = random.Random(f"{seed}/{number_of}")
    command = "nightly" if number_of % 5 == 4 else "run"
    after = rng.randint(1, MOST_LINES)
    killed = kill(folder, command, rng.randrange(1 << 30), after)
    return f"{command} killed after {check(folder, command, killed)}"


def main() -> int:
    """Kill many, and say how each ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    lost = 0
    for each in range(asked.kills):
        with tempfile.TemporaryDirectory(prefix="killed-") as place:
            (Path(place) / "alone").mkdir()
            try:
                said = kill_and_check(Path(place) / "alone" / "c", each, asked.seed)
            except AssertionError as error:
                lost += 1
                said = f"LOST: {error}"
        print(f"{each + 1}: {said}", flush=True)
    print(f"{asked.kills} kills, {lost} lost something")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
