"""What a campaign has time for is by one clock, which tests turn."""

from __future__ import annotations

import ast
from pathlib import Path

from campaign.counted import LOOK_S, counted_clock

from litmusfuzz.fuzz import campaign, commands, finding, nightly, store
from litmusfuzz.fuzz.campaign import clock

ON_THE_MACHINES_CLOCK = {
    *("clock", "coordinator", "exploration", "force_all", "live_page", "many", "replay"),
    *("script_runner", "shard", "single"),
}
"""They wait for other processes, or show people how far it is."""


def test_only_one_module_reads_the_time_of_a_campaign() -> None:
    reading = set()
    packages = (finding, store, campaign, nightly, commands)
    for path in (file for each in packages for file in Path(each.__path__[0]).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
        named = {alias.name for each in imports for alias in each.names}
        named |= {each.module for each in imports if isinstance(each, ast.ImportFrom)}
        if "time" in named:
            reading.add(path.stem)
    assert "clock" in reading
    assert reading <= ON_THE_MACHINES_CLOCK


def test_no_time_that_passes_turns_the_counted_clock() -> None:
    with counted_clock():
        looks = [clock.now() for _ in range(1000)]
    assert looks == sorted(set(looks))
    assert looks[-1] <= 1001 * LOOK_S
