"""The `stats` file of a night, and several of them on one screen.

A line for each number, ``name : value``: for people, `grep`, and whatever draws graphs
of it. It is written again and again while the night runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports.text import counted, table
from litmusfuzz.reports.times import lasted, moment, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.reports.nightly_report import Moment, NightlyReport

RECENT_S: Final = 300
MOST_NEW: Final = 10
LAST: Final = 2e11
"""A time in the year 8307: what is later is none."""
Stats = dict[str, str]


def plain(night: NightlyReport) -> Stats:
    """The numbers by name."""
    took = max(1.0, night.spent_s)
    recent = _recent(night.moments)
    score = night.mutation_score
    stats = {
        "folder": night.folder,
        "state": _state(night),
        "seed": str(night.seed),
        "start_time": str(night.started),
        "last_update": str(night.until),
        "run_time": f"{night.spent_s:.0f}",
        "asked_time": f"{night.asked_s:.0f}",
        "graphs": str(night.graphs),
        "graphs_per_s": f"{night.graphs / took:.2f}",
        "graphs_per_s_now": f"{recent:.2f}",
        "outcomes": str(night.outcomes),
        "findings": str(len(night.findings)),
        "new_findings": str(len(night.new)),
        "known_not_seen": str(len(night.stale)),
        "unconfirmed": str(night.unconfirmed),
        "not_minimized": str(night.not_minimized),
        "undecided": str(night.undecided),
        "unknown": str(sum(sum(each.unknown.values()) for each in night.by_config)),
        "refused": str(sum(each.refused for each in night.by_config)),
        "crashed": str(sum(each.crashed for each in night.by_config)),
        "timed_out": str(sum(each.timed_out for each in night.by_config)),
        "workers": str(len(night.workers)),
        "turns": str(sum(each.turns for each in night.workers)),
        "lost_turns": str(sum(each.lost for each in night.workers)),
        "disk_bytes": str(night.moments[-1].disk_bytes if night.moments else 0),
        "canary": f"{night.canary[1]}/{night.canary[0]}",
        "mutation_score": "-" if score is None else f"{score:.3f}",
        "exit_code": str(night.exit_code()),
        "complaint": night.complaint or "-",
    }
    for number, each in enumerate(night.new[:MOST_NEW], 1):
        stats[f"new_{number}"] = f"{each.title} on {each.where}, {counted(each.count, 'graph')}"
    return stats


def text(night: NightlyReport) -> str:
    """The file."""
    stats = plain(night)
    width = max(map(len, stats))
    # Names and messages come from outside: none begins a line of its own.
    return "".join(f"{k:{width}} : {' '.join(v.split())}\n" for k, v in stats.items())


def read(text: str) -> Stats:
    """What `text` wrote; of a file that is none, nothing."""
    pairs = (line.split(" : ", 1) for line in text.splitlines() if " : " in line)
    return {name.strip(): value for name, value in pairs}


def together(nights: Mapping[str, Stats]) -> str:
    """Several on one screen: a line for each folder, their sums, what is new."""
    header = ["", "state", "since", "for", "graphs", "a second", "outcomes"]
    header += ["findings", "new", "unknown", "lost", "disk", "mutants"]
    rows = []
    for name, stats in nights.items():

        def of(key: str, stats: Stats = stats) -> float:
            return number(stats, key)

        rows.append(
            [
                name,
                stats.get("state", "?"),
                moment(int(min(of("start_time"), LAST))),
                lasted(of("run_time")),
                short(of("graphs")),
                f"{of('graphs_per_s'):.1f}",
                short(of("outcomes")),
                *(stats.get(key, "?") for key in ("findings", "new_findings", "unknown")),
                stats.get("lost_turns", "?"),
                f"{short(of('disk_bytes'))}B",
                stats.get("mutation_score", "-"),
            ]
        )
    if len(nights) > 1:

        def total(key: str) -> float:
            return sum(number(stats, key) for stats in nights.values())

        sums = [short(total("graphs")), f"{total('graphs_per_s'):.1f}", short(total("outcomes"))]
        ends = ("findings", "new_findings", "unknown", "lost_turns")
        sums += [f"{total(key):.0f}" for key in ends]
        rows.append(["together", "", "", "", *sums, f"{short(total('disk_bytes'))}B", ""])
    lines = [table(header, rows)]
    for name, stats in nights.items():
        told = [stats[key] for n in range(1, MOST_NEW + 1) if (key := f"new_{n}") in stats]
        complaint = stats.get("complaint", "-")
        if undecided := number(stats, "undecided"):
            told.append(f"{counted(int(undecided), 'graph')} not minimized that may be new")
        told += [complaint] if complaint != "-" else []
        if told:
            lines += ["", f"{name}:", *(f"  {each}" for each in told)]
        more = int(number(stats, "new_findings")) - MOST_NEW
        lines += [f"  and {more} more"] if more > 0 else []
    return "\n".join(lines)


def _state(night: NightlyReport) -> str:
    if night.complaint:
        return "broken"
    if night.interrupted:
        return "interrupted"
    return "runs" if night.ended is None else "ended"


def _recent(moments: tuple[Moment, ...]) -> float:
    """Graphs a second over the last minutes."""
    if not moments:
        return 0.0
    last = moments[-1]
    first = next(each for each in moments if each.at >= last.at - RECENT_S)
    return (last.graphs - first.graphs) / max(1, last.at - first.at)


def number(stats: Stats, key: str) -> float:
    """One of them; 0 if it is none."""
    try:
        value = float(stats.get(key, "0"))
    except ValueError:
        return 0.0
    return value if 0 <= value < math.inf else 0.0
