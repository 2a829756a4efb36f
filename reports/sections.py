"""Sections that the summary, the Markdown and the HTML page share: tables, and remarks on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports.commands import resumption
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.tables import counted
from litmusfuzz.reports.text import by_cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from litmusfuzz.reports.report import Report, SettingCoverage, Share

_NOTHING: Final = ("", "-", "0")
_MOST_NAMED: Final = 8
_MOST_LISTED: Final = 20
"""Configurations that were left out for one reason, or pairs of values, that are named."""


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Parameters
    ----------
    name : str
        Its id on the page.
    title : str
    header : tuple of str
    rows : tuple of tuple of str
        The first cell of each is a name.
    notes : tuple of (str, str)
        Subjects and remarks.
    command : str
        The command that continues; "" if there is none.
    """

    name: str
    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    command: str = ""

    @cached_property  # a template asks for each cell
    def numeric(self) -> tuple[bool, ...]:
        """For each column, True if it has numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(all(cell[:1].isdigit() or cell == "-" for cell in each) for each in columns)


def sections(report: Report) -> Iterator[Section]:
    """Those sections that have something to show, after `how_much_ran`."""
    if report.by_config or report.unavailable:
        yield _configurations(report)
    for each in report.settings:
        yield _settings(each)
    if report.families:
        yield _families(report)
    if any(each.name for each in report.known) or report.findings:
        yield _causes(report)
    if report.compared:
        yield _comparison(report)
    yield _tests(report)


def _section(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, str]],
    optional: Sequence[str] = (),
    notes: Sequence[tuple[str, str]] = (),
) -> Section:
    """A section with a table, without `optional` columns that have only zeros."""
    header = [
        each
        for each in (rows[0] if rows else ())
        if each not in optional or any(row[each] not in _NOTHING for row in rows)
    ]
    cells = tuple(tuple(row[each] for each in header) for row in rows)
    return Section(name, title, tuple(header), cells, tuple(notes))


def how_much_ran(report: Report) -> Section:
    """How much ran of what was asked for: of each executor, and which configurations did not."""
    rows = [
        {
            "executor": each.executor,
            "configurations": f"{each.reached} of {each.configurations}",
            "not reached": f"{len(each.not_reached)}",
            "cannot run here": f"{len(each.unavailable)}",
            "graphs": f"{each.graphs:,} of {each.generated:,}",
            "outcomes": f"{each.outcomes:,}",
        }
        for each in report.ran
    ]
    if report.tests is None:
        asked = f"{report.asked_s:,.0f} s; {report.spent_s:,.1f} s spent"
    else:
        asked = f"{counted(report.tests, 'graph')}; {report.generated:,} generated"
    notes = [("asked for", asked)]
    notes += [("left out of trends and counts", each) for each in report.damaged]
    notes += [("old runs", each) for each in report.pruned.lines]
    for each in report.ran:
        notes += _left_out(each.executor, "not reached", each.configurations, each.not_reached)
        notes += _left_out(each.executor, "cannot run here", each.configurations, each.unavailable)
    return _section("ran", "What ran", rows, ("not reached", "cannot run here"), notes)


def _causes(report: Report) -> Section:
    """Known causes and new findings: the settings they need, where they showed, what they cost."""
    rows = [
        {
            "cause": each.name,
            "needs": each.needs or "-",
            "graphs": f"{each.graphs:,}",
            "configurations": f"{len(each.configurations):,}",
            "checked": f"{each.checked:,}",
            "seconds": f"{each.seconds:,.1f}",
            "state": each.state,
        }
        for each in report.known
        if each.name
    ]
    rows += [
        {
            "cause": each.entry.test.name,
            "needs": each.needs or "-",
            "graphs": f"{each.in_this_run:,}",
            "configurations": f"{len(each.configs):,}",
            "checked": "-",
            "seconds": f"{each.seconds:,.1f}",
            "state": "known" if each.known else "undecided" if each.undecided else "new",
        }
        for each in report.findings
        if each.kind is FindingKind.FORBIDDEN
    ]
    notes = [("time on what is known", f"{report.known_s:,.1f} s, {report.known_share:.1%}")]
    notes += [
        (each.entry.test.name, f"may be explained by {', '.join(each.undecided)}; both are kept")
        for each in report.findings
        if each.undecided
    ]
    notes += [
        (each.name, f"{counted(each.undecided, 'graph')} may show something else as well")
        for each in report.known
        if each.undecided
    ]
    notes += [(each.name, each.state) for each in report.gone]
    return _section("causes", "Causes", rows, ("checked",), notes)


def _left_out(
    executor: str, what: str, number: int, reasons: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Configurations of an executor that did not run, those with the same reason together."""
    names: dict[str, list[str]] = {}
    for configuration, why in reasons.items():
        names.setdefault(why, []).append(configuration)
    for why, some in names.items():
        listed = ", ".join(some[:_MOST_NAMED])
        more = f" and {len(some) - _MOST_NAMED} more" if len(some) > _MOST_NAMED else ""
        yield executor, f"{len(some)} of {number} {what} ({why}): {listed}{more}"


def _configurations(report: Report) -> Section:
    """Costs and results by configuration, and the tests that it did not run, with the reasons."""
    rows = [
        {
            "configuration": each.name,
            "judged by": each.model,
            "graphs": f"{each.graphs:,}",
            "further rounds": f"{each.rounds:,}",
            "outcomes": f"{each.outcomes:,}",
            "seconds": f"{each.seconds:,.1f}",
            "coverage": coverage(each),
            "forbidden": f"{each.forbidden_graphs:,}",
            "findings": f"{each.findings:,}",
            "unknown": f"{sum(each.unknown.values()):,}",
            "refused": f"{each.refused:,}",
            "not run": f"{each.not_run:,}",
            "crashed": f"{each.crashed:,}",
            "timed out": f"{each.timed_out:,}",
            "while minimizing": f"{each.minimizing_outcomes:,}",
        }
        for each in report.by_config
    ]
    made = [(each.name, "; ".join(_notes(each))) for each in report.by_config]
    notes = [(name, note) for name, note in made if note]
    # `how_much_ran` has the reasons of those that did not run at all.
    ran = {each.name for each in report.by_config if each.graphs}
    notes += [(name, why) for name, why in report.unavailable.items() if name in ran]
    notes += [
        (each.name, f"not run, for lack of time: {counted(each.not_run, 'graph')}")
        for each in report.by_config
        if each.not_run and each.name not in report.unavailable
    ]
    optional = [list(rows[0])[3], *list(rows[0])[6:]] if rows else ()
    return _section("configurations", "Configurations", rows, optional, notes)


def coverage(share: Share) -> str:
    """The share of allowed outcomes that the median graph showed, and of how many graphs."""
    return "-" if share.reached is None else f"{share.reached:.0%}, n={share.reached_graphs:,}"


def _notes(share: Share) -> Iterator[str]:
    """Remarks on one configuration."""
    if share.unknown:
        yield f"unknown: {_listed(share.unknown)}"
    if share.refused_for:
        yield f"refused for lack of: {_listed(share.refused_for, _MOST_LISTED)}"
    if share.searched or share.cut_off:
        yield (
            f"{share.searched:,} in all their schedules, {share.cut_off:,} in some:"
            f" {share.schedules:,} schedules, {share.sampled:,} samples"
        )
    if share.first:
        yield f"outcomes first shown by {_listed(share.first)}"
    if share.clusterings:
        yield (
            f"clustered {_listed(share.clusterings)}, in {share.racing} a cluster of several"
            " resource ops races"
        )
    counters = dict(share.counters)
    if "compiled" in counters:
        new, cached, seconds = (counters.pop(n, 0) for n in ("compiled", "found", "seconds"))
        yield f"compiled {new:.0f} structures in {seconds:.1f} s, {cached:.0f} were cached"
    if counters:
        listed = [f"{name.replace('_', ' ')} {n:.10g}" for name, n in counters.items()]
        yield ", ".join(_first(listed))
    if share.model != share.guarantees:
        yield f"judged by {share.model}, guarantees {share.guarantees} (see --model)"


def _settings(coverage: SettingCoverage) -> Section:
    """Costs by value of each setting, and the pairs of values that no graph ran in."""
    rows = [
        {
            "setting": f"{each.setting}={each.value or 'none'}",
            "graphs": f"{each.graphs:,}",
            "seconds": f"{each.seconds:,.1f}",
        }
        for each in coverage.values
    ]
    pairs = f"{coverage.reached:,} of {coverage.possible:,} reached"
    if coverage.rarest is not None:
        graphs = counted(coverage.rarest_graphs, "graph")
        pairs += f"; the rarest of them, {_pair(coverage.rarest)}, in {graphs}"
    notes = [("pairs of values", pairs)]
    for name, each in (
        ("resource ops", coverage.ops),
        ("pairs of ops in one graph", coverage.op_pairs),
        ("pairs of an op and a value", coverage.op_values),
    ):
        if each.possible:
            notes.append((name, f"{each.reached:,} of {each.possible:,} reached"))
    if missing := coverage.not_reached:
        listed = ", ".join(map(_pair, missing[:_MOST_NAMED]))
        more = f" and {len(missing) - _MOST_NAMED:,} more" if len(missing) > _MOST_NAMED else ""
        notes.append(("pairs not reached", f"{listed}{more}"))
    name = f"settings-{coverage.executor.replace('/', '-')}"
    return _section(name, f"Settings of {coverage.executor}", rows, notes=notes)


def _pair(values: tuple[str, str]) -> str:
    """A pair of values in words; an empty value is "none", as in the table."""
    return " with ".join(f"{each}none" if each.endswith("=") else each for each in values)


def _families(report: Report) -> Section:
    """Costs and results by family, the most expensive first."""
    ordered = sorted(report.families.items(), key=lambda each: (-each[1].seconds, each[0]))
    rows = [
        {
            "family": name,
            "graphs": f"{each.graphs:,}",
            "seconds": f"{each.seconds:,.1f}",
            "forbidden": f"{each.forbidden_graphs:,}",
            "findings": f"{each.findings:,}",
            "unknown": f"{each.unknown_graphs:,}",
        }
        for name, each in ordered
    ]
    return _section("families", "Families", rows)


def _comparison(report: Report) -> Section:
    """Totals of each executor over the graphs that several executors ran."""
    rows = [
        {
            "configuration": title,
            "judged by": each.model,
            "graphs": f"{each.graphs:,}",
            "executions": f"{each.executions:,}",
            "outcomes seen": f"{each.outcomes:,}",
            "by no other": f"{each.alone:,}",
            "missed, seen by another": f"{each.missed:,}",
            "forbidden": f"{each.forbidden:,}",
        }
        for title, each in report.differential.items()
    ]
    title = f"Differential comparison on {counted(report.compared, 'graph')}"
    return _section("comparison", title, rows)


def _tests(report: Report) -> Section:
    """Generated tests and their verdicts, and what was left undecided."""
    forbidden = [each for each in report.findings if each.kind is FindingKind.FORBIDDEN]
    notes = {
        "generated": f"{counted(report.generated, 'graph')}: {_listed(report.ops)}",
        "outcomes judged": _listed(report.verdicts),
        "forbidden outcomes": f"in {counted(report.forbidden_graphs, 'graph')}:"
        f" {counted(len(forbidden), 'finding')}"
        f" of {counted(len(by_cause(forbidden)), 'likely cause')}, in {report.folder}",
    }
    if report.unknown_graphs:
        notes["over the oracle's budget"] = counted(report.unknown_graphs, "graph")
    if report.clusterings:
        racing = f"in {report.racing} one of several resource ops races"
        notes["clusters of generated tests"] = f"{_listed(report.clusterings)}; {racing}"
    if left := Counter(each.state for each in report.open_tests):
        notes["forbidden, without a finding"] = _listed(
            {str(state): n for state, n in left.items()}
        )
    runs, reported = report.canary
    notes["mutant/canary"] = f"always wrong: reported in {reported} of {counted(runs, 'run')}"
    if report.kills:
        killed = sum(each.seconds is not None for each in report.kills)
        notes["self-test"] = f"{killed} of {counted(len(report.kills), 'mutant')} reported"
    costs = {
        "generating": report.generating_s,
        "judging": report.judging_s,
        "validating clusters": report.validating_s,
    }
    if any(costs.values()):
        text = ", ".join(f"{what} {seconds:,.1f} s" for what, seconds in costs.items())
        notes["time beside executions"] = text
    command = ""
    if report.pending or report.unconfirmed:
        command = resumption(report.folder, unattended=report.unattended)
    return Section("tests", "Tests and verdicts", notes=tuple(notes.items()), command=command)


def _listed(counts: Mapping[str, int], most: int | None = None) -> str:
    """Names with their counts, the largest first, and how many more than `most` there are."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    listed = [f"{name} {count:,}" for name, count in ordered]
    return ", ".join(_first(listed, most)) or "none"


def _first(texts: Sequence[str], most: int | None = _MOST_LISTED) -> list[str]:
    """The first texts, and how many more there are."""
    more = len(texts) - len(texts[:most])
    return [*texts[:most], *([f"and {more:,} more"] if more else [])]
