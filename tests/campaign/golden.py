"""The whole event log of a seeded campaign: ``python -m tests.campaign.golden --out FILE``.

For changes that must not change what a campaign does: write it before and after, and compare the
two files. One deterministic executor with one worker, on a clock that its executions turn, one
thing after another, so that the events and their order are the same each time. Events of the canary
and of the process that began it are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign.campaigns import Run, without_times
from helpers_settings import settings_of

from litmusfuzz.fuzz.executors.table import CANARY, configuration
from litmusfuzz.fuzz.generators import FAMILIES
from litmusfuzz.reports.events import CanaryRun, ShardStarted, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

EXECUTORS = (
    ("native", "controlled"),
    ("native", "controlled_split"),
    ("mutant/stale-reads", "plain"),
)
"""Each deterministic. The last one refuses some tests, and shows findings."""


def event_log(executor: str, config: str, tests: int, seed: int, out: Path) -> list[str]:
    """Events of a campaign, one a line, without times."""
    settings = settings_of(
        seed=seed,
        out=out,
        executors=((executor, configuration(executor, config)),),
        time_s=3_600,
        tests=tests,
        families=tuple(FAMILIES),
        workers=1,
    )
    events = Run(settings).run(one_at_a_time=True).events
    return [
        encode(without_times(event)).decode()
        for event in events
        if not isinstance(event, CanaryRun | ShardStarted)
        and getattr(event, "executor", "") != CANARY
    ]


def main(arguments: Sequence[str]) -> int:
    """Write the log; 0."""
    parser = argparse.ArgumentParser(description="The event log of a seeded campaign.")
    parser.add_argument("--tests", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    with asked.out.open("w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        for number, (executor, config) in enumerate(EXECUTORS):
            of = Path(folder) / str(number)
            file.writelines(
                f"{executor}/{config} {line}\n"
                for line in event_log(executor, config, asked.tests, asked.seed, of)
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
