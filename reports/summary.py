"""Summary of a campaign on the terminal, as text: findings, and the sections of all reports."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from litmusfuzz.reports import denials
from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.open_tests import MOST_IN_FULL
from litmusfuzz.reports.sections import how_much_ran, sections
from litmusfuzz.reports.tables import counted, printable, table
from litmusfuzz.reports.text import by_cause, finding, open_test

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.reports.report import Report, ReportedFinding
    from litmusfuzz.reports.sections import Section

_MOST_LISTED = 4
"""Known findings, and worker deaths of one kind, that are named; others are counted."""
_MOST_PICTURES = 3
"""Open tests that are shown with their picture; `MOST_IN_FULL` are named, others counted."""
_MOST_PICTURE_LINES = 30
_SHOWN_IN_FULL = (FindingKind.FORBIDDEN, FindingKind.UNSOUND)


def summary(report: Report) -> str:
    """The whole summary: new findings, open tests, then all counts, how much ran and the verdict.

    The end is what a terminal shows.
    """
    in_full = [each for each in report.new if each.kind in _SHOWN_IN_FULL]
    parts = [_group(group, report) for group in by_cause(in_full)]
    parts += _open_tests(report)
    took = f"{counted(report.generated, 'graph')} generated in {report.spent_s:,.1f} s"
    interrupted = f" ({report.interruption})" if report.interrupted else ""
    lines = [f"seed {report.seed}: {took}{interrupted}"]
    for each in sections(report):
        lines += _section(each)
    lines += _deaths(report)
    shown = [(each.label, f"{each.sightings}; {each.why}") for each in report.shown]
    lines += _listed("known causes that showed", shown)
    lines += _listed(denials.NOT_SEEN.of(report), [(each.key, each.why) for each in report.stale])
    lines += [*_section(how_much_ran(report)), *filter(None, [report.judged_by]), report.verdict]
    return printable("\n\n".join([*parts, "\n".join(lines)]))


def _group(group: list[ReportedFinding], report: Report) -> str:
    """One finding in full, and the names of others that likely have the same cause."""
    first, *others = group
    lines = [finding(first, report.folder, report.python)]
    if others:
        lines.append(f"  likely the same cause in {counted(len(others), 'more finding')}:")
        lines += [f"    {each.headline}   {each.file}" for each in others]
    return "\n".join(lines)


def _open_tests(report: Report) -> Iterator[str]:
    """Tests with a forbidden outcome and no finding: the first in full, others in a line each."""
    tests = report.open_tests
    yield from (open_test(each, _MOST_PICTURE_LINES) for each in tests[:_MOST_PICTURES])
    if others := tests[_MOST_PICTURES:MOST_IN_FULL]:
        counts = [f"{each.seen:,} of {each.executions:,}" for each in others]
        rows = [
            (each.headline, count, each.file) for each, count in zip(others, counts, strict=True)
        ]
        shown = table(("also forbidden, without a finding", "executions", "file"), rows)
        more = len(tests) - MOST_IN_FULL
        listed = f"\nand {counted(more, 'more graph')}, which report.html and report.json name"
        yield shown + (listed if more > 0 else "")


def _section(section: Section) -> Iterator[str]:
    """A section: its table, then its remarks."""
    yield f"  {section.title[0].lower()}{section.title[1:]}:"
    if section.rows:
        shown = table(section.header, section.rows, section.numeric)
        yield textwrap.indent(shown, "    ")
    for subject, note in section.notes:
        yield _wrapped(f"{subject}: {note}")
    if section.command:
        yield f"    continue  {section.command}"


def _wrapped(text: str) -> str:
    """A long line as several."""
    return textwrap.fill(
        text,
        96,
        initial_indent=" " * 4,
        subsequent_indent=" " * 6,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _deaths(report: Report) -> Iterator[str]:
    """Workers that crashed or hung, with the test of each."""
    for kind in FindingKind:
        found = [each for each in report.new if each.kind is kind]
        if kind in _SHOWN_IN_FULL or not found:
            continue
        yield f"  the process {kind} on generated tests, or while minimizing:"
        for each in found[:_MOST_LISTED]:
            often = counted(each.in_this_run, "time")
            yield f"    {each.headline}   {each.file}"
            yield textwrap.indent(_wrapped(f"{often}: {'; '.join(each.reason)}"), "  ")
            yield from (f"      {line}" for line in each.traceback.splitlines())
        if len(found) > _MOST_LISTED:
            yield f"    and {len(found) - _MOST_LISTED} more"
        yield f"    replay    {found[0].replay}"


def _listed(title: str, entries: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The first of some known findings."""
    if entries:
        yield f"  {title} ({len(entries)}):"
        yield from (_wrapped(f"{name}: {why}") for name, why in entries[:_MOST_LISTED])
        if len(entries) > _MOST_LISTED:
            yield f"    and {len(entries) - _MOST_LISTED} more"
