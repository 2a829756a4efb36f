"""Campaigns reduce the exceptions that end workers, each once; other crashes stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from campaign.campaigns import Run
from helpers_settings import settings_of

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding.known_findings import KnownFinding, KnownFindings, Pattern
from litmusfuzz.fuzz.finding.worker_deaths import exception_of, message_pattern
from litmusfuzz.reports.events import CrashReduced, Executed, WorkerDied

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("doubles")

ALL = "cache=large;threads=1;checked=true"
RAISED = "ValueError at system/core.py:bind"
"""What the double raises on an addition."""


def campaign(out: Path, executor: str = "double/raises") -> Run:
    config = configuration(executor, ALL)
    asked = {"families": ("sparse",), "tests": 3, "count": 8, "time_s": 600}
    return Run(settings_of(54, out, ((executor, config),), **asked))


def test_an_exception_is_reduced_once_with_its_settings(tmp_path: Path) -> None:
    run = campaign(tmp_path)
    run.campaign.parts.crashes.known = _known("core.py:other")
    run.run()
    (reduced,) = run.of(CrashReduced)
    assert reduced.raised == RAISED
    assert (reduced.executor, reduced.configuration) == ("double/raises", "cache=large;threads=1")
    assert reduced.needs == "only with a large cache, in one thread"
    assert reduced.complete
    assert reduced.script_shows_it is None  # there are scripts on JAX alone
    test = load(run.path(reduced.file)).test
    assert [node.op for node in test.effects] == ["AssignAddVariableOp"]
    # What its candidates do is no crash of its own.
    died = run.of(WorkerDied)
    assert len(died) == sum(each.end == "crashed" for each in run.of(Executed)) > 1
    assert reduced.died_on == died[0].file


@pytest.mark.parametrize("known", [True, False])
def test_what_is_known_or_reduced_is_not_reduced(tmp_path: Path, *, known: bool) -> None:
    run = campaign(tmp_path)
    run.campaign.parts.crashes.known = _known("core.py:bind" if known else "core.py:other")
    if not known:  # an earlier shard has reduced it
        run.campaign.parts.crashes.exceptions.add(("double/raises", RAISED))
    run.run()
    assert run.of(WorkerDied)
    assert not run.of(CrashReduced)


def _known(message: str) -> KnownFindings:
    of = ("double/raises/rfc", "double/raises/executor")
    ops = ("AssignAddVariableOp", "AssignVariableOp", "read")
    pattern = Pattern(("crashed",), ops, of, None, message)
    return KnownFindings((KnownFinding("of this test", pattern=pattern),))


def test_what_is_no_exception_is_not_reduced(tmp_path: Path) -> None:
    run = campaign(tmp_path, "double/ends-its-process").run()
    assert run.of(WorkerDied)
    assert not run.of(CrashReduced)


def test_an_exception_is_recognized_by_its_type_and_place() -> None:
    """Whatever the exit code of its process: one that lingers has none yet."""
    said = "litmusfuzz.fuzz.executors.traced.failures.SystemFailed: KeyError at jax/core.py:read"
    one, other = (f"exit {code}: {said}" for code in (0, 1))
    assert exception_of(one) == exception_of(other) == "KeyError at jax/core.py:read"
    assert message_pattern(one) == message_pattern(other)
    assert exception_of("exit 1: KeyError: 'x'") == exception_of("signal 6") == ""
