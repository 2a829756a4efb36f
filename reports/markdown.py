"""A night as Markdown: the summary on a CI job's page, or the text of an issue.

GitHub takes 1 MiB at most: findings stand first, new ones in full, and what does not
fit is counted. Everything that comes from files is escaped.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports import drawing
from litmusfuzz.reports.text import counted, printable
from litmusfuzz.reports.times import lasted, moment, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.reports.nightly_report import Kill, NightlyFinding, NightlyReport, Share

MAX_BYTES: Final = 1_000_000
"""GitHub's limit is 1 MiB: 1,048,576."""
MAX_DRAWN: Final = 60
"""Longer drawings, in lines, are left to the page."""


def markdown(night: NightlyReport, max_bytes: int = MAX_BYTES) -> str:
    """The whole summary, `max_bytes` of UTF-8 at most."""
    ended = lasted(night.spent_s)
    head = [
        f"# LitmusFuzz: {_inline(night.verdict)}",
        f"{moment(night.started)} UTC, {ended}, seed {night.seed}:"
        f" {short(night.graphs)} graphs, {short(night.outcomes)} outcomes;"
        f" {counted(len(night.findings), 'finding')}, {len(night.new)} of them new.",
    ]
    if night.not_minimized:
        graphs = counted(night.not_minimized, "graph")
        told = f"**{graphs} that showed something forbidden: not minimized, no time left.**"
        known = night.not_minimized - night.undecided
        told += f" Of these, a known cause may explain {known}." if known else ""
        head.append(told)
    tail = [*_known(night), *_selftest(night), *_costs(night), *_versions(night)]
    left = max_bytes - sum(_size(part) for part in (*head, *tail)) - 200
    parts = list(head)
    for number, finding in enumerate(night.new):
        part = _finding(finding)
        left -= _size(part)
        if left < 0:
            more = counted(len(night.new) - number, "more new finding")
            parts.append(f"**And {more}, which this page has no room for: see `report.html`.**")
            break
        parts.append(part)
    for part in tail:
        if left < 0 and _size(part) > 20_000:
            part = f"{part.partition(chr(10))[0]}\n\nToo long for here: see `report.html`."
        parts.append(part)
    return printable("\n\n".join(parts)) + "\n"


def _size(part: str) -> int:
    return len(part.encode()) + 2


def _finding(finding: NightlyFinding) -> str:
    configs = sorted(finding.configs.items(), key=lambda each: -each[1])
    shown = ", ".join(f"{_code(name)} ({n})" for name, n in configs)
    lines = [
        f"## {_inline(finding.title)}",
        "",
        f"- {_inline(finding.sort)} on {_code(finding.where)}"
        + (f", judged by {_code(finding.model)}" if finding.model else ""),
        f"- seen: {_code(finding.seen)}",
    ]
    if finding.nearest is not None:
        lines.append(f"- nearest allowed: {_code(str(finding.nearest))}")
    lines += [f"- because: {_inline('; '.join(finding.reason))}"] if finding.reason else []
    lines += [f"- broken: {_inline(', '.join(finding.rules))}"] if finding.rules else []
    lines.append(
        f"- {counted(finding.count, 'graph')}, {finding.tonight} tonight;"
        f" first {moment(finding.first_seen)}, last {moment(finding.last_seen)}"
        + (f"; {shown}" if shown else "")
    )
    if finding.script:
        shows = "shows it" if finding.script_shows_it else "has not shown it"
        lines.append(f"- without LitmusFuzz: {_code(f'python {finding.script}')}, which {shows}")
    lines += ["", _fenced(finding.replay, "sh")]
    drawn = drawing.text(finding.entry.test).splitlines()
    if len(drawn) > MAX_DRAWN:
        drawn = [*drawn[:MAX_DRAWN], f"and {len(drawn) - MAX_DRAWN} more lines"]
    lines += ["", "<details><summary>The test</summary>", "", _fenced("\n".join(drawn), "text")]
    return "\n".join([*lines, "", "</details>"])


def _known(night: NightlyReport) -> list[str]:
    parts = []
    seen = [each for each in night.findings if each.known]
    if seen:
        rows = [(_inline(e.title), _inline(e.known), str(e.tonight)) for e in seen]
        parts.append(f"## Known, seen again\n\n{_table(('finding', 'why', 'graphs'), rows)}")
    if night.stale:
        unseen = [(_code(each.key), _inline(each.why)) for each in night.stale]
        parts.append(f"## Known, not seen tonight\n\n{_table(('key', 'why'), unseen)}")
    return parts


def _selftest(night: NightlyReport) -> list[str]:
    if night.mutation_score is None:
        return []
    killed = sum(each.seconds is not None for each in night.kills)
    head = f"## Self-test\n\n{killed} of {counted(len(night.kills), 'mutant')} reported"
    slow = sorted(night.kills, key=lambda each: -(each.seconds or float("inf")))[:5]

    def row(kill: Kill) -> tuple[str, ...]:
        took = "**not reported**" if kill.seconds is None else lasted(kill.seconds)
        return _code(kill.mutant), took, str(kill.graphs), _inline(kill.by)

    table = _table(("slowest", "after", "graphs", "family"), map(row, slow))
    return [f"{head}.\n\n{table}"]


def _costs(night: NightlyReport) -> list[str]:
    header = ("", "graphs", "outcomes", "seconds", "reached", "findings", "unknown", "refused")

    def row(share: Share) -> tuple[str, ...]:
        reached = "" if share.reached is None else f"{share.reached:.0%}"
        return (
            *(_code(share.name), f"{share.graphs:,}", f"{share.outcomes:,}"),
            *(f"{share.seconds:,.0f}", reached, str(share.findings)),
            *(f"{sum(share.unknown.values()):,}", f"{share.refused:,}"),
        )

    table = _table(header, map(row, night.by_config))
    absent = [f"- {_code(n)} could not run: {_inline(w)}" for n, w in night.unavailable.items()]
    return ["\n\n".join(["## Configurations", table, *(["\n".join(absent)] if absent else [])])]


def _versions(night: NightlyReport) -> list[str]:
    told = sorted({f"{n} {v}" for each in night.versions.values() for n, v in each.items()})
    return [f"{_code(night.command)} · {_inline(', '.join(told))}"]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inline(text: str) -> str:
    """One line of text, nothing in it markup."""
    escaped = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|~#@])", r"\\\1", escaped)


def _code(text: str) -> str:
    """Text as code, in one line, also in a table's cell: only HTML escapes pipes there."""
    escaped = html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")
    # Inside an HTML element Markdown still works: its signs become entities as well.
    escaped = re.sub(r"[\\`*_\[\]~@]", lambda sign: f"&#{ord(sign[0])};", escaped)
    return f"<code>{escaped}</code>"


def _fenced(text: str, language: str) -> str:
    """A block of text, by a fence longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
