"""Defects that show only under one name, or only in large tensors: found as causes of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from campaign.test_loop import campaign

from litmusfuzz.fuzz.campaign.canonical import key_of
from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.campaign.reduction_passes import width
from litmusfuzz.fuzz.campaign.renaming import normalized
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.mutants.native import LargeTornWrite, NamedNode
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.reports.text import remarks

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest


def forbidden(executor: str, config: str, test: LitmusTest, noise: Noise) -> bool:
    prepared = executor_class(executor)().prepare(test, configuration(executor, config))
    try:
        return bool(judge(Explorer(test, RFC), prepared.run(200, noise, 1)).forbidden)
    finally:
        prepared.close()


def test_a_defect_that_needs_one_name_is_found_and_keeps_it(tmp_path: Path) -> None:
    """Deterministic: the controlled engine depends on the seed alone."""
    name = NamedNode.name
    executors = ((name, configuration(name, "controlled")),)
    run = campaign(tmp_path, name, executors=executors, tests=60, families=("dag",)).run()
    report = run.report
    assert report.findings
    assert not report.unconfirmed
    causes = {each.cause for each in report.findings}
    assert all(each.endswith(", only with some names") for each in causes)
    for each in report.findings:
        found = each.entry.finding
        assert found is not None
        assert found.needs_names == (NamedNode.node,)
        assert found.minimized
        assert found.confirmed
        assert f"only with this name: {NamedNode.node}" in remarks(each)
        others = {node.name for node in each.entry.test.nodes} - {NamedNode.node}
        assert not any(node[0] == "n" for node in others)
        plain = normalized(each.entry.test, each.entry.test.name)
        assert forbidden(name, "controlled", each.entry.test, Noise())
        assert not forbidden(name, "controlled", plain, Noise())
        elsewhere = replace(each.entry, finding=replace(found, needs_names=()))
        assert each.key == key_of(each.entry) != key_of(elsewhere)


def test_a_defect_of_large_tensors_is_found_and_reduced_to_the_lanes_that_it_needs(
    tmp_path: Path,
) -> None:
    """The seed decides which tests are large; each large race shows in most executions.

    Copying 2**19 lanes takes a tenth of a millisecond, in which the other core reads. In a
    thousand executions, as a confirmation has, a race that shows in one of ten is missed with
    0.9**1000 < 1e-45.
    """
    name = LargeTornWrite.name
    executors = ((name, configuration(name, "plain")),)
    run = campaign(
        tmp_path, name, executors=executors, tests=1200, families=("dag",), count=64
    ).run()
    report = run.report
    minimized = [each for each in report.findings if each.entry.finding.minimized]
    assert minimized
    for each in minimized:
        assert width(each.entry.test) == 2 * LargeTornWrite.lanes
        assert len(each.entry.test.effects) <= 3
        assert each.cause.endswith(", only with large tensors")
