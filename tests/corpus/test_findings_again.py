"""Each finding of `corpus/findings`, as if it had just been seen: through the whole pipeline.

It is confirmed as it is in its file, names included, reduced, normalized, confirmed again, and its
script is run. Run one with ``pytest tests/corpus/test_findings_again.py -k NAME``, and all of them
with ``make nightly``.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers import LITMUS

from litmusfuzz.corpus.textfile import Script, load
from litmusfuzz.fuzz.campaign.canonical import key_of
from litmusfuzz.fuzz.campaign.causes import explains, same_cause, symptom
from litmusfuzz.fuzz.campaign.settings import Settings
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.reports.events import FindingAdded, ScriptRun, Unconfirmed

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = LITMUS[0].parents[1] / "findings"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
WITHOUT_OUTCOME = {
    "async-compilation-close": "a crash, which the executor avoids: it waits for the compiler",
    "single-threaded-executor-waits": "the configuration refuses queues: its script shows it",
    "slice-assign-writes-freed-memory": "a crash, which has no outcome to reduce",
}
# What takes seconds. `scatter-beside-read` showed in half of its executions: a confirmation, of a
# thousand, misses it with 0.5**1000, and each probe of a smaller test, of 256, with 0.5**256.
QUICK = {"scatter-beside-read"}
ALONE = "a process for each run, as the op may damage memory"
COMPILED = "XLA compiles each smaller test"
RARE = "showed in less than 1 of 50 executions"
LEFT_TO_THE_NIGHTLY_RUN = {
    "cluster-optimizer-beside-scatter-nd": COMPILED,
    "cluster-reads-beside-scatter": "showed in 3 of 32,768 executions, and then in 0 of 65,536",
    "cluster-spans-two-sections": "each execution blocks, which takes a session",
    "cluster-update-beside-scatter": f"{COMPILED}; {RARE}",
    "cluster-writes-late": f"{COMPILED}; {RARE}",
    "scatter-beside-scatter": "as scatter-beside-read",
    "slice-assign-beside-add": f"{ALONE}; {RARE}",
    "slice-assign-beside-optimizer": f"{ALONE}; {RARE}",
    "slice-assign-beside-read": ALONE,
    "slice-assign-beside-scatter": ALONE,
}
LIMIT_S = 600.0


def test_each_finding_goes_through_the_pipeline_or_is_left_out_for_a_reason() -> None:
    parts = [QUICK, set(LEFT_TO_THE_NIGHTLY_RUN), set(WITHOUT_OUTCOME)]
    assert sorted(name for part in parts for name in part) == list(FILES)


def seen_again(name: str, folder: Path) -> Run:
    """A campaign that generates nothing, and is given one finding as it is in its file."""
    entry = load(FILES[name])
    found = entry.finding
    assert found is not None
    settings = Settings(
        seed=1,
        out=folder,
        executors=(("tf", configuration("tf", found.configuration)),),
        time_s=LIMIT_S,
        reduction_s=LIMIT_S,
        tests=0,
        model=MODELS[found.model],
    )
    unreduced = replace(found, minimized=False, confirmed=False, cause=None, script=None)
    return Run(settings, pending=[replace(entry, finding=unreduced)]).run()


@pytest.mark.skipif(not find_spec("tensorflow"), reason="needs TensorFlow")
@pytest.mark.timeout(3 * LIMIT_S)
@pytest.mark.parametrize("name", sorted(FILES.keys() - WITHOUT_OUTCOME.keys()))
def test_a_finding_comes_back(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    asked_for = os.environ.get("LITMUSFUZZ_NIGHTLY") or name in request.config.option.keyword
    if name not in QUICK and not asked_for:
        pytest.skip(LEFT_TO_THE_NIGHTLY_RUN[name])
    old = load(FILES[name])
    assert old.finding is not None
    run = seen_again(name, tmp_path / "out")
    assert not run.of(Unconfirmed)
    (added,) = run.of(FindingAdded)
    entry = load(run.path(added.file))
    found = entry.finding
    assert found is not None
    assert found.confirmed
    assert found.minimized
    assert found.configuration == old.finding.configuration
    before = symptom(old.finding.forbidden[0][0])
    assert all(same_cause(before, outcome) for outcome, _ in found.forbidden)
    # The same test, or a smaller one.
    assert explains(entry.test, old.test, exact=False)
    assert len(entry.test.nodes) <= len(old.test.nodes)
    assert added.key == key_of(entry)
    if name in QUICK:
        assert not found.needs_names
        assert not found.needs_order
        assert added.key == key_of(old)
        (script,) = run.of(ScriptRun)
        assert script.shows_it
        assert found.script is Script.SHOWS_IT
