"""The same seed gives the same tests and verdicts, whatever runs them and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers import BY_FEATURE
from helpers_settings import settings_of

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.reports.events import Continued, Executed

if TYPE_CHECKING:
    from pathlib import Path

TESTS = 60
EXECUTORS = (("native", "controlled"), ("mutant/stale-reads", "plain"))
"""Both deterministic; the second one runs few of the tests, and shows findings."""


def campaign(out: Path, *, workers: int, spawn: bool) -> Run:
    settings = settings_of(
        seed=7,
        out=out,
        executors=tuple((name, configuration(name, config)) for name, config in EXECUTORS),
        time_s=600,
        tests=TESTS,
        families=BY_FEATURE,
        workers=workers,
        spawn=spawn,
    )
    return Run(settings).run()


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Run:
    """One worker for each executor, forked."""
    return campaign(tmp_path_factory.mktemp("reference"), workers=1, spawn=False)


def test_the_reference_has_all_tests_and_forbidden_outcomes(reference: Run) -> None:
    """So that the comparisons below compare something."""
    report = reference.report
    native, stale = report.by_config
    assert report.generated == native.graphs == TESTS
    assert 0 < stale.graphs < TESTS
    assert stale.forbidden_graphs > 5
    assert report.findings
    rounds = len(reference.of(Continued))
    assert rounds > 20
    assert len(reference.repeatable) == TESTS + native.graphs + stale.graphs + rounds
    shown = {each.unreduced for each in reference.of(Executed) if each.unreduced}
    assert len(shown) == stale.forbidden_graphs


@pytest.mark.parametrize(("workers", "spawn"), [(2, False), (3, False), (2, True)])
def test_tests_and_verdicts_do_not_depend_on_workers(
    reference: Run, tmp_path: Path, workers: int, *, spawn: bool
) -> None:
    again = campaign(tmp_path, workers=workers, spawn=spawn)
    assert again.repeatable == reference.repeatable
    for slot in again.campaign.slots:
        assert slot.worker.start_method.startswith("spawned") is spawn
    assert not again.report.pending
    # Two workers may minimize the same at the same time; it is one finding.
    found = [each.entry.test for each in again.report.findings]
    assert len({replace(test, name="x") for test in found}) == len(found) > 0
    assert sum(each.count for each in again.report.findings) == again.report.forbidden_graphs
