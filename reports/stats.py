"""File `stats` of a campaign, and a table of several campaigns.

Each line is ``name : value``: for people, `grep`, and plotting tools. The file is updated
while the run goes on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports.tables import counted, printable, table
from litmusfuzz.reports.times import lasted, moment, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.reports.report import Moment, Report

RECENT_S: Final = 300
MOST_NEW: Final = 10
_MOST: Final = 1e18
"""A greater number is not valid."""
LAST: Final = 2e11
"""A time in the year 8307; a later one is not valid."""
Stats = dict[str, str]


def plain(report: Report) -> Stats:
    """The numbers of a run by name."""
    took = max(1.0, report.spent_s)
    recent = _recent(report.moments)
    score = report.mutation_score
    stats = {
        "folder": report.folder,
        "state": _state(report),
        "seed": str(report.seed),
        "start_time": str(report.started),
        "last_update": str(report.until),
        "run_time": f"{report.spent_s:.0f}",
        "asked_time": f"{report.asked_s:.0f}",
        "configurations": str(len(report.by_config)),
        "not_reached": str(report.not_reached),
        "cannot_run_here": str(sum(len(each.unavailable) for each in report.ran)),
        "graphs": str(report.graphs),
        "graphs_per_s": f"{report.graphs / took:.2f}",
        "graphs_per_s_now": f"{recent:.2f}",
        "outcomes": str(report.outcomes),
        "forbidden": str(report.forbidden_graphs),
        "findings": str(len(report.findings)),
        "new_findings": str(len(report.new)),
        "known_not_seen": str(len(report.stale)),
        "unconfirmed": str(len(report.unconfirmed)),
        "not_minimized": str(len(report.pending)),
        "undecided": str(report.undecided),
        "open": str(len(report.open_tests)),
        "unknown": str(sum(sum(each.unknown.values()) for each in report.by_config)),
        "refused": str(sum(each.refused for each in report.by_config)),
        "crashed": str(sum(each.crashed for each in report.by_config)),
        "timed_out": str(sum(each.timed_out for each in report.by_config)),
        "workers": str(len(report.workers)),
        "shards": str(sum(each.shards for each in report.workers)),
        "lost_shards": str(sum(each.lost for each in report.workers)),
        "disk_bytes": str(report.moments[-1].disk_bytes if report.moments else 0),
        "canary": f"{report.canary[1]}/{report.canary[0]}",
        "mutation_score": "-" if score is None else f"{score:.3f}",
        "mutants": str(len(report.kills)),
        "exit_code": str(report.exit_code()),
        "complaint": report.complaint or "-",
        "interruption": report.interruption or "-",
    }
    for number, each in enumerate(report.new[:MOST_NEW], 1):
        stats[f"new_{number}"] = (
            f"{each.headline} on {each.where}, {counted(each.count, 'graph')}, {each.file}"
        )
    for number, test in enumerate(report.open_tests[:MOST_NEW], 1):
        stats[f"open_{number}"] = (
            f"{test.headline}, {test.seen} of {test.executions} executions, {test.file}"
        )
    return stats


def text(report: Report) -> str:
    """Content of the file."""
    stats = plain(report)
    width = max(map(len, stats))
    # Names and messages come from outside: none may begin a new line.
    return printable("".join(f"{k:{width}} : {' '.join(v.split())}\n" for k, v in stats.items()))


def read(text: str) -> Stats:
    """The numbers in a file that `text` wrote; of another file, nothing."""
    pairs = (line.split(" : ", 1) for line in text.splitlines() if " : " in line)
    return {name.strip(): value for name, value in pairs}


def together(runs: Mapping[str, Stats]) -> str:
    """A table with a line for each folder, their sums, and new findings."""
    header = ["", "state", "since", "for", "ran", "graphs", "a second", "outcomes"]
    header += ["findings", "new", "unknown", "lost", "disk", "mutants"]
    rows = []
    for name, stats in runs.items():
        of = partial(number, stats)
        rows.append(
            [
                name,
                stats.get("state", "?"),
                moment(int(min(of("start_time"), LAST))),
                lasted(of("run_time")),
                _ran(stats),
                short(of("graphs")),
                f"{of('graphs_per_s'):.1f}",
                short(of("outcomes")),
                *(stats.get(key, "?") for key in ("findings", "new_findings", "unknown")),
                stats.get("lost_shards", "?"),
                f"{short(of('disk_bytes'))}B",
                _killed(stats),
            ]
        )
    if len(runs) > 1:

        def total(key: str) -> float:
            return sum(number(stats, key) for stats in runs.values())

        sums = [short(total("graphs")), f"{total('graphs_per_s'):.1f}", short(total("outcomes"))]
        ends = ("findings", "new_findings", "unknown", "lost_shards")
        sums += [f"{total(key):.0f}" for key in ends]
        rows.append(["total", "", "", "", "", *sums, f"{short(total('disk_bytes'))}B", ""])
    lines = [table(header, rows)]
    for name, stats in runs.items():
        news: list[str] = []
        for what, counted_as in (("new", "new_findings"), ("open", "open")):
            news += [stats[key] for n in range(1, MOST_NEW + 1) if (key := f"{what}_{n}") in stats]
            more = int(number(stats, counted_as)) - MOST_NEW
            news += [f"and {more} more"] if more > 0 else []
        wrong = [stats.get(key, "-") for key in ("complaint", "interruption")]
        news += [each for each in wrong if each != "-"]
        if news:
            lines += ["", f"{name}:", *(f"  {each}" for each in news)]
    return "\n".join(lines)


def _ran(stats: Stats) -> str:
    """Configurations that ran, of those that were asked for."""
    all_named = number(stats, "configurations")
    left = all_named - number(stats, "not_reached") - number(stats, "cannot_run_here")
    return f"{left:.0f}/{all_named:.0f}" if all_named else "-"


def _killed(stats: Stats) -> str:
    """Mutants that were reported, of those that ran."""
    mutants = number(stats, "mutants")
    return f"{number(stats, 'mutation_score') * mutants:.0f}/{mutants:.0f}" if mutants else "-"


def _state(report: Report) -> str:
    if report.complaint:
        return "broken"
    if report.interrupted:
        return "interrupted"
    return "runs" if report.ended is None else "ended"


def _recent(moments: tuple[Moment, ...]) -> float:
    """Graphs a second over the last minutes."""
    if not moments:
        return 0.0
    last = moments[-1]
    first = next(each for each in moments if each.spent_s >= last.spent_s - RECENT_S)
    return (last.graphs - first.graphs) / max(1, last.spent_s - first.spent_s)


def number(stats: Stats, key: str) -> float:
    """One number; 0 if it is missing or not valid."""
    try:
        value = float(stats.get(key, "0"))
    except ValueError:
        return 0.0
    return value if 0 <= value < _MOST else 0.0
