"""Defects that show only under one name, or only in large tensors: found as causes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign.test_loop import campaign

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps
from litmusfuzz.fuzz.campaign import variation
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.finding.canonical import key_of
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.finding.renaming import normalized
from litmusfuzz.fuzz.finding.resource_passes import width
from litmusfuzz.fuzz.mutants.native import LargeEarlyRead, NamedNode
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.events import Executed
from litmusfuzz.reports.text import remarks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from litmusfuzz.corpus.model import LitmusTest


def shows(executor: str, test: LitmusTest, count: int) -> bool:
    """True if an executor shows something forbidden."""
    prepared = executor_class(executor)().prepare(test, configuration(executor, "controlled"))
    try:
        return bool(judge(Explorer(test, RFC), prepared.run(count, Noise(), 1)).forbidden)
    finally:
        prepared.close()


def test_a_defect_that_needs_one_name_is_found_and_keeps_it(tmp_path: Path) -> None:
    """Deterministic: the controlled engine depends on the seed alone.

    No generated test gives that name to an op on a resource: nothing is found without
    permuted names.
    """
    name = NamedNode.name
    executors = ((name, configuration(name, "controlled")),)
    run = campaign(tmp_path, name, executors=executors, tests=TESTS).run()
    report = run.report
    assert report.findings
    assert not report.unconfirmed
    for event in run.of(Executed):
        assert not event.unreduced or "names" in event.variation
    for each in report.findings:
        found, test = each.entry.finding, each.entry.test
        assert found is not None
        assert found.minimized
        assert found.confirmed
        assert found.needs_names == (NamedNode.node,)
        assert each.cause.endswith(f", only with the name {NamedNode.node}")
        assert f"only with this name: {NamedNode.node}" in remarks(each)
        assert NamedNode.node in {node.name for node in test.nodes}
        plain = normalized(test, test.name)
        assert shows(name, test, 200)
        assert not shows(name, plain, 200)
        assert not shows("control/named-node", test, 200)
        elsewhere = replace(each.entry, finding=replace(found, needs_names=()))
        assert each.key == key_of(each.entry) != key_of(elsewhere)


def test_without_its_name_the_defect_is_not_reported(tmp_path: Path) -> None:
    name = NamedNode.name
    executors = ((name, configuration(name, "controlled")),)
    run = campaign(tmp_path, name, executors=executors, tests=TESTS, as_generated=True).run()
    assert not run.report.forbidden_graphs


def test_a_defect_of_large_tensors_is_found_and_reduced_to_the_lanes_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deterministic: the seed decides which tests are large.

    Half of the tests are large if they can be; a campaign finds the defect with 128 times as many
    tests, in an hour about nine times.
    """
    monkeypatch.setattr(variation, "LANES_SHARE", 0.5)
    name = LargeEarlyRead.name
    executors = ((name, configuration(name, "controlled")),)
    run = campaign(tmp_path, name, executors=executors, tests=LARGE_TESTS).run()
    report = run.report
    for event in run.of(Executed):
        assert not event.unreduced or "lanes" in event.variation
    minimized = [each for each in report.findings if each.entry.finding.minimized]
    assert minimized
    for each in minimized:
        test = each.entry.test
        assert width(test) == 2 * LargeEarlyRead.lanes
        assert not each.entry.finding.needs_names
        assert len(test.effects) <= 3
        assert each.cause.endswith(f", only with {2 * LargeEarlyRead.lanes} lanes")
        assert len(dumps(each.entry)) < 5000
        assert each.key == key_of(each.entry)
        narrow = variation.with_lanes(test, LargeEarlyRead.lanes)
        assert narrow is not None
        assert not shows(name, narrow, 64)
        assert not shows("control/large-early-read", test, 64)
        assert key_of(replace(each.entry, test=narrow)) != each.key


TESTS = 60
LARGE_TESTS = 80
