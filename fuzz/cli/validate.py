"""`litmusfuzz validate`: soundness of clusters, decided without running anything."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from litmusfuzz.corpus.model import MalformedTest, check_clusterable
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.commands.cluster_sources import ExecutorClusters
    from litmusfuzz.oracles.explorer import Budget
    from litmusfuzz.oracles.translation import Translation
    from litmusfuzz.reports.translation import TranslationReport

from litmusfuzz.fuzz.cli.common import (
    CLEAN,
    FORBIDDEN,
    UNKNOWN,
    budget_option,
    fail,
    json_option,
    load_tests,
    print_json,
    print_text,
    tests_argument,
)
from litmusfuzz.fuzz.cli.oracle import refuted


@click.command(epilog="Example: litmusfuzz validate lost-update --clusters tf")
@tests_argument
@click.option(
    "--clusters",
    "source",
    default=None,
    help="Where the clusters come from: file, ours, tf, tf-unchecked (TensorFlow without its "
    "safety checks), or a clustering mutant; without this option the file, or ours if the file "
    "has none.",
)
@budget_option
@json_option
def validate(files: tuple[str, ...], source: str | None, budget: int | None, as_json: bool) -> None:
    """Decide whether clusters are sound, without running anything.

    Clusters are sound if every outcome that the clustered graph allows is one that the
    graph without clusters allows, both under rfc. TensorFlow's clusters are read from
    the graph that it would run, and compared with ours; an order that this graph has lost
    is unsound as well. Exits 1 if some clusters are unsound, 3 if some are undecided.
    """
    from litmusfuzz.fuzz.commands.cluster_sources import (
        CLUSTERINGS,
        EXECUTOR_SOURCES,
        ExecutorClusters,
    )

    if source is not None and source in EXECUTOR_SOURCES:
        with closing(ExecutorClusters(source)) as ask:
            reports = [_by_executor(*each, source, ask, budget) for each in _loaded(files)]
    elif source is None or source in CLUSTERINGS:
        reports = [_by_function(*each, source, budget) for each in _loaded(files)]
    else:
        there = ", ".join((*CLUSTERINGS, *EXECUTOR_SOURCES))
        fail(f"--clusters: no source {source!r}; there are {there}")
    if as_json:
        print_json([report.as_json() for report in reports])
    else:
        print_text("\n\n".join(report.text() for report in reports))
    verdicts = {report.verdict for report in reports}
    if "unsound" in verdicts:
        sys.exit(FORBIDDEN)
    sys.exit(UNKNOWN if "unknown" in verdicts else CLEAN)


def _loaded(files: tuple[str, ...]) -> list[tuple[str, LitmusTest]]:
    """The tests; fails unless each may have clusters, which are then sound or not."""
    tests = [(file, entry.test) for file, entry in load_tests(files)]
    for file, test in tests:
        try:
            check_clusterable(test.runs, test.variables)
        except MalformedTest as error:
            fail(f"{file}: {error}")
    return tests


def _by_executor(
    file: str, test: LitmusTest, source: str, ask: ExecutorClusters, budget: int | None
) -> TranslationReport:
    from litmusfuzz.fuzz.campaign.cluster_validation import judge_clusters
    from litmusfuzz.fuzz.commands.cluster_sources import NoClusters, pairs_kept_apart
    from litmusfuzz.oracles.errors import NoAllowedSet
    from litmusfuzz.reports.translation import TranslationReport

    try:
        found = judge_clusters(test, ask.chosen(test), _budget(budget))
    except NoClusters as error:
        return TranslationReport(file, test.name, source, (), "unknown", problem=str(error))
    except NoAllowedSet as error:
        fail(f"{file}: {error}")
    lost, undecided = (
        tuple(f"{a} before {b}" for a, b in pairs) for pairs in (found.lost, found.undecided)
    )
    if found.translation is None:
        verdict = "unsound" if lost else "unknown"
        problem = f"not validated: {found.problem}"
        report = TranslationReport(file, test.name, source, (), verdict, problem=problem)
        return replace(report, lost=lost, undecided=undecided)
    report = _report(file, found.test, source, found.translation)
    apart = tuple(f"{a} and {b}" for a, b in pairs_kept_apart(found.test))
    verdict = str(found.verdict)
    return replace(report, verdict=verdict, lost=lost, undecided=undecided, apart=apart)


def _by_function(
    file: str, test: LitmusTest, source: str | None, budget: int | None
) -> TranslationReport:
    from litmusfuzz.fuzz.commands.cluster_sources import CLUSTERINGS
    from litmusfuzz.fuzz.passes.clustering import RegionRefused
    from litmusfuzz.oracles.errors import NoAllowedSet
    from litmusfuzz.oracles.translation import validate as soundness
    from litmusfuzz.reports.translation import TranslationReport

    name = source or ("file" if test.clusters else "ours")
    try:
        clustered = CLUSTERINGS[name](test)
    except MalformedTest as error:
        return TranslationReport(file, test.name, name, (), "unsound", problem=str(error))
    except RegionRefused as error:
        fail(f"{file}: {error}")
    try:
        found = soundness(clustered, _budget(budget))
    except NoAllowedSet as error:
        fail(f"{file}: {error}")
    return _report(file, clustered, name, found)


def _budget(states: int | None) -> Budget:
    from litmusfuzz.oracles.explorer import DEFAULT_BUDGET

    return DEFAULT_BUDGET if states is None else replace(DEFAULT_BUDGET, states=states)


def _report(file: str, clustered: LitmusTest, source: str, found: Translation) -> TranslationReport:
    from litmusfuzz.fuzz.passes.clustering import Rule, violations
    from litmusfuzz.oracles.model import RFC
    from litmusfuzz.reports.allowed import Witnessed
    from litmusfuzz.reports.translation import TranslationReport

    breaches = violations(clustered)
    report = TranslationReport(
        file,
        clustered.name,
        source,
        clustered.clusters,
        str(found.verdict),
        found.outcomes,
        broken=tuple(map(str, breaches)),
        pairwise=all(each.rule is not Rule.UNSAFE_PAIR for each in breaches),
    )
    if found.added is None:
        return report
    original = replace(clustered, clusters=())
    return replace(
        report,
        witness=Witnessed(RFC.name, found.added, tuple(map(str, found.witness))),
        reason=refuted(original, RFC, found.added),
    )
