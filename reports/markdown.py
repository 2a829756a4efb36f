"""Report of a campaign in Markdown: the summary of a CI job, or the text of an issue.

GitHub takes 1 MiB at most: findings come first, new ones in full, and those that do not
fit are counted. All text from files is escaped.
"""

from __future__ import annotations

import html
import re
import shlex
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports import denials, drawing
from litmusfuzz.reports.denials import no_findings
from litmusfuzz.reports.open_tests import MOST_IN_FULL
from litmusfuzz.reports.sections import how_much_ran, sections
from litmusfuzz.reports.tables import counted, printable
from litmusfuzz.reports.text import remarks
from litmusfuzz.reports.times import lasted, moment, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.reports.events import Kill
    from litmusfuzz.reports.open_tests import OpenTest
    from litmusfuzz.reports.report import Report, ReportedFinding
    from litmusfuzz.reports.sections import Section

MAX_BYTES: Final = 1_000_000
"""GitHub's limit is 1 MiB: 1,048,576."""
MAX_DRAWING_LINES: Final = 60
"""A longer drawing is cut; the HTML page has all of it."""


def markdown(report: Report, max_bytes: int = MAX_BYTES) -> str:
    """The whole summary, `max_bytes` of UTF-8 at most."""
    ended = lasted(report.spent_s)
    head = [
        f"# LitmusFuzz: {_inline(report.verdict)}",
        f"{moment(report.started)} UTC, {ended}, seed {report.seed}:"
        f" {short(report.graphs)} graphs, {short(report.outcomes)} outcomes;"
        f" {counted(len(report.findings), 'finding')}, {len(report.new)} of them new.",
    ]
    if nothing := no_findings(report):
        head.append(f"Findings: {_inline(nothing)}.")
    if report.judged_by:
        head.append(f"{_inline(report.judged_by.capitalize())}.")
    head.append(_section(how_much_ran(report)))
    tail = [
        *_known(report),
        *_selftest(report),
        *map(_section, sections(report)),
        _versions(report),
    ]
    left = max_bytes - sum(_size(part) for part in (*head, *tail)) - 200
    parts = list(head)
    for number, finding in enumerate(report.new):
        part = _finding(finding)
        left -= _size(part)
        if left < 0:
            more = counted(len(report.new) - number, "more new finding")
            parts.append(f"**And {more}, which do not fit here: see `report.html`.**")
            break
        parts.append(part)
    opened, left = _open_tests(report, left)
    parts += opened
    for part in tail:
        if left < 0 and _size(part) > 20_000:
            part = f"{part.partition(chr(10))[0]}\n\nToo long for here: see `report.html`."
        parts.append(part)
    return printable("\n\n".join(parts)) + "\n"


def _size(part: str) -> int:
    return len(part.encode()) + 2


def _finding(finding: ReportedFinding) -> str:
    configs = sorted(finding.configs.items(), key=lambda each: -each[1])
    shown = ", ".join(f"{_code(name)} ({n})" for name, n in configs)
    lines = [
        f"## {_inline(finding.headline)}",
        "",
        f"- {_inline(finding.kind)} on {_code(finding.shown_on)}"
        + (f", judged by {_code(finding.model)}" if finding.model else ""),
        *(f"- {_inline(what)}: {_inline(text)}" for what, text in finding.evidence.items()),
    ]
    lines += [f"- {_inline(each)}" for each in remarks(finding)]
    lines.append(
        f"- {counted(finding.count, 'graph')}, {finding.in_this_run} in this run;"
        f" first {moment(finding.first_seen)}, last {moment(finding.last_seen)}"
        + (f"; {shown}" if shown else "")
    )
    if finding.script:
        shows = "shows it" if finding.script_shows_it else "has not shown it"
        command = shlex.join(["python", finding.script])
        lines.append(f"- without LitmusFuzz: {_code(command)}, which {shows}")
    lines += [f"- what its process wrote: {_code(finding.log)}"] if finding.log else []
    lines += ["", _fenced(finding.traceback, "text")] if finding.traceback else []
    lines += ["", _fenced(finding.replay, "sh")]
    if (made := finding.schedule) is not None:
        lines += ["", f"The schedule {_inline(made.need)}:", ""]
        lines += [_fenced("\n".join(made.lines()[:MAX_DRAWING_LINES]), "text")]
    graph = drawing.shortened(finding.entry.test, MAX_DRAWING_LINES)
    lines += ["", "<details><summary>The test</summary>", "", _fenced(graph, "text")]
    return "\n".join([*lines, "", "</details>"])


def _open_tests(report: Report, left: int) -> tuple[list[str], int]:
    """Tests with a forbidden outcome and no finding, in `left` bytes; and the bytes left then.

    The first are in full; the files of the others are listed.
    """
    tests = report.open_tests
    if not tests:
        return [], left
    graphs = counted(len(tests), "graph")
    parts = [f"## Forbidden outcomes without a finding: {graphs}"]
    shown = 0
    for test in tests[:MOST_IN_FULL]:
        part = _open_test(test)
        if left < 2 * _size(part):  # the others are to be named as well
            break
        left -= _size(part)
        parts.append(part)
        shown += 1
    if others := tests[shown:]:
        lines = [f"- {_code(each.file)}: {_inline(each.headline)}" for each in others]
        listed = "\n".join(lines)
        if _size(listed) > max(left, 20_000):
            listed = f"**And {counted(len(others), 'more graph')}: see `report.html`.**"
        left -= _size(listed)
        parts.append(listed)
    return parts, left


def _open_test(test: OpenTest) -> str:
    lines = [f"### {_inline(test.headline)}", ""]
    lines += [f"- {_inline(what)}: {_inline(text)}" for what, text in test.facts.items()]
    lines += ["", _fenced(test.replay, "sh")]
    if test.entry is None:
        return "\n".join(lines)
    graph = drawing.shortened(test.entry.test, MAX_DRAWING_LINES)
    lines += ["", "<details><summary>The test</summary>", "", _fenced(graph, "text")]
    return "\n".join([*lines, "", "</details>"])


def _known(report: Report) -> list[str]:
    parts = []
    if report.shown:
        rows = [(_code(e.label), _inline(e.sightings), _inline(e.why)) for e in report.shown]
        parts.append(f"## Known causes that showed\n\n{_table(('cause', 'seen in', 'why'), rows)}")
    if title := denials.NOT_SEEN.of(report):
        unseen = [(_code(each.key), _inline(each.why)) for each in report.stale]
        parts.append(f"## {title.capitalize()}\n\n{_table(('key', 'why'), unseen)}")
    return parts


def _selftest(report: Report) -> list[str]:
    if report.mutation_score is None:
        return []
    killed = sum(each.seconds is not None for each in report.kills)
    head = f"## Self-test\n\n{killed} of {counted(len(report.kills), 'mutant')} reported"
    slow = sorted(report.kills, key=lambda each: -(each.seconds or float("inf")))[:5]

    def row(kill: Kill) -> tuple[str, ...]:
        took = "**not reported**" if kill.seconds is None else lasted(kill.seconds)
        return _code(kill.mutant), took, str(kill.graphs), _inline(kill.family)

    table = _table(("slowest", "after", "graphs", "family"), map(row, slow))
    return [f"{head}.\n\n{table}"]


def _section(section: Section) -> str:
    parts = [f"## {_inline(section.title)}"]
    if section.rows:
        cells = [(_code(name), *map(_inline, rest)) for name, *rest in section.rows]
        parts.append(_table(section.header, cells))
    notes = [f"- {_inline(subject)}: {_inline(note)}" for subject, note in section.notes]
    parts += ["\n".join(notes)] if notes else []
    return "\n\n".join([*parts, *([_fenced(section.command, "sh")] if section.command else [])])


def _versions(report: Report) -> str:
    versions = sorted({f"{n} {v}" for each in report.versions.values() for n, v in each.items()})
    return " · ".join(
        [_code(report.command), *([_inline(", ".join(versions))] if versions else [])]
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inline(text: str) -> str:
    """One line of text without markup."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return _unlinked(re.sub(r"([\\`*_\[\]|~#@$])", r"\\\1", escaped))


def _code(text: str) -> str:
    """Text as code, in one line, also in a table's cell: only HTML escapes pipes there."""
    escaped = html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")
    # Inside an HTML element Markdown still works: its signs become entities as well.
    escaped = re.sub(r"[\\`*_\[\]~@$]", lambda sign: f"&#{ord(sign[0])};", escaped)
    return f"<code>{_unlinked(escaped)}</code>"


def _unlinked(text: str) -> str:
    """Escaped text in which GitHub finds no address to make a link of."""
    text = re.sub(r"(?i)\b(https?|ftp|mailto|xmpp):", r"\1&#58;", text)
    return re.sub(r"(?i)\bwww\.", "www&#46;", text)


def _fenced(text: str, language: str) -> str:
    """A block of text, with a fence longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
