"""Data for the template of a campaign's HTML page."""

from __future__ import annotations

import shlex
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import log1p
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.reports import denials, drawing, times
from litmusfuzz.reports.html.charts import Chart, over_time
from litmusfuzz.reports.html.picture import LEGEND, picture
from litmusfuzz.reports.open_tests import MOST_IN_FULL
from litmusfuzz.reports.report import Earlier
from litmusfuzz.reports.sections import coverage, how_much_ran, sections
from litmusfuzz.reports.tables import counted, printable
from litmusfuzz.reports.text import remarks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.reports.report import Report, ReportedFinding, Share

HERE: Final = Path(__file__).parent
MAX_BYTES: Final = 950_000
"""Limit on the whole page. Findings beyond it are in the table only."""
MOST_OPEN: Final = 10
"""New findings that are open at first; others are collapsed, like known ones."""
MOST_ROWS: Final = 14
MOST_LINES: Final = 120


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a histogram.

    `cells` are values, each with True if it differs between the most frequent forbidden
    outcome and the nearest allowed one.
    """

    cells: tuple[tuple[str, bool], ...]
    count: int
    width: int
    verdict: str
    nearest: bool


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observed and allowed outcomes.

    `same` are values that all rows share, which the rows leave out; `more` rows were
    left out.
    """

    rows: tuple[Row, ...]
    same: str
    more: int


@cache  # the page of a campaign that runs is made every few seconds
def environment() -> Environment:
    """What renders the templates of this folder."""
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": times.moment,
        "stamp": times.stamp,
        "lasted": times.lasted,
        "short": times.short,
        "counted": counted,
        "shell": shlex.join,
        "coverage": coverage,
        "sighting": denials.sighting_of,
    }
    return made


def page(report: Report) -> str:
    """The whole page."""
    templates = environment()
    card = templates.get_template("finding.html")
    # Ids of our own: a key comes from a file.
    ids = {finding.key: f"f{number}" for number, finding in enumerate(in_order(report), 1)}
    cards: list[str] = []
    open_cards: list[str] = []
    values = _whole(report)
    whole = templates.get_template("page.html")
    rest = whole.render(**values, ids=ids, cards=cards, open_cards=open_cards)
    left = MAX_BYTES - len(rest.encode())
    for number, finding in enumerate(in_order(report)):
        text = card.render(
            f=finding,
            id=ids[finding.key],
            opened=not finding.known and number < MOST_OPEN,
            histogram=histogram(finding),
            graph=picture(finding.entry.test, finding.edges, finding.arcs),
            text=drawing.shortened(finding.entry.test, MOST_LINES),
            resources=drawing.declarations(finding.entry.test),
            legend=LEGEND,
            remarks=remarks(finding),
        )
        left -= len(text.encode())
        if left < 0:
            break
        cards.append(text)
    open_card = templates.get_template("open.html")
    for number, test in enumerate(report.open_tests[:MOST_IN_FULL], 1):
        shown = test.entry.test if test.entry is not None else None
        text = open_card.render(
            t=test,
            id=f"o{number}",
            opened=test.exit_code == 1 and number <= MOST_OPEN - len(report.new),
            graph=picture(shown) if shown is not None else None,
            text=drawing.shortened(shown, MOST_LINES) if shown is not None else "",
            resources=drawing.declarations(shown) if shown is not None else (),
            legend=LEGEND,
        )
        left -= len(text.encode())
        if left < 0:
            break
        open_cards.append(text)
    return printable(whole.render(**values, ids=ids, cards=cards, open_cards=open_cards))


def in_order(report: Report) -> list[ReportedFinding]:
    """New findings first, then by the number of graphs in this run that showed them."""
    return sorted(report.findings, key=lambda f: (bool(f.known), -f.in_this_run, f.key))


def _whole(report: Report) -> dict[str, object]:
    """Values for the page's template, without the findings."""
    charts, reached = over_time(report.moments), _coverage(report)
    script = (HERE / "reload.js").read_text(encoding="utf-8")
    ran, made = how_much_ran(report), list(sections(report))
    # A single process that lost nothing has no numbers of its own.
    workers = report.workers if sum(each.lost + 1 for each in report.workers) > 1 else ()
    links: dict[str, tuple[str, object]] = {
        ran.name: (ran.title, True),
        "findings": ("Findings", True),
        "open": ("Not minimized", report.open_tests),
        **{each.name: (each.name.capitalize(), True) for each in made},
        "coverage": ("Coverage", reached),
        "throughput": ("Throughput", charts or workers),
        "selftest": ("Self-test", report.kills),
        "known": ("Known", report.known),
        "trends": ("Trends", report.earlier),
        "versions": ("Versions", True),
    }
    return {
        "report": report,
        "findings": in_order(report),
        "no_findings": denials.no_findings(report),
        "not_seen": denials.NOT_SEEN.of(report),
        "open_tests": report.open_tests,
        "style": (HERE / "style.css").read_text(encoding="utf-8"),
        "reload": script if report.ended is None else "",
        "reload_hash": f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'",
        "ran": ran,
        "sections": made,
        "links": {name: title for name, (title, shown) in links.items() if shown},
        "charts": charts,
        "workers": workers,
        "trends": trends(report),
        "coverage": reached,
        "executors": list(dict.fromkeys(executor for executor, _ in reached)),
        "families": sorted({family for _, family in reached}),
        "slowest": max((kill.seconds or 0 for kill in report.kills), default=0),
    }


def histogram(finding: ReportedFinding) -> Histogram:
    """Forbidden outcomes first, then the nearest allowed, the frequent, and the unseen."""
    shown = finding.observed
    forbidden = finding.forbidden
    near = finding.nearest
    seen = sorted(shown, key=lambda o: (o not in forbidden, o != near, -shown[o][0], str(o)))
    unseen = sorted(
        (o for o in finding.allowed if o not in shown and o != near),
        key=str,
    )
    listed: list[Outcome] = [*seen, *unseen]
    if near is not None and near not in shown:
        listed.insert(len(forbidden), near)
    names = finding.entry.test.names
    cells = {outcome: _cells(outcome, names) for outcome in listed}
    same = {name for name in names if len({cells[o].get(name) for o in listed}) == 1}
    if len(same) == len(names):  # of a single row
        same = set()
    worst = forbidden[0] if forbidden else None
    differ: set[str] = set()
    if worst is not None and near is not None:
        keys = cells[worst].keys() | cells[near].keys()
        differ = {name for name in keys if cells[worst].get(name) != cells[near].get(name)}
    largest = max((count for count, _ in shown.values()), default=1)
    rows = []
    for outcome in listed[:MOST_ROWS]:
        count, verdict = shown.get(outcome, (0, "allowed"))
        parts = tuple(
            (f"{name}={value}" if name else value, name in differ and outcome in (worst, near))
            for name, value in cells[outcome].items()
            if name not in same
        )
        rows.append(Row(parts, count, _width(count, largest), verdict, outcome == near))
    first = cells[listed[0]] if listed else {}
    shared = " ".join(f"{name}={first[name]}" for name in names if name in same and name in first)
    return Histogram(tuple(rows), shared, len(listed) - len(rows))


def _cells(outcome: Outcome, names: Sequence[str]) -> dict[str, str]:
    """Values by name; under "" the status, if it did not complete."""
    plain = outcome.plain
    values = {name: str(plain[name]).replace(" ", "") for name in names if name in plain}
    return values if outcome.status is Status.COMPLETED else {"": str(outcome.status)} | values


def _width(count: int, largest: int) -> int:
    """Width of a bar in percent, on a logarithmic scale: one in a million is visible."""
    return round(100 * log1p(count) / log1p(largest))


def _coverage(report: Report) -> dict[tuple[str, str], Share]:
    """Totals by executor and family, where the share of allowed outcomes reached is known."""
    known = {}
    for each in report.by_family:
        if each.reached is not None:
            executor, _, family = each.name.rpartition("/")
            known[executor, family] = each
    return known


def trends(report: Report) -> list[Chart]:
    """Charts over earlier runs and this one; none for the first."""
    if not report.earlier:
        return []
    runs = [*report.earlier, _as_earlier(report)]
    places = tuple(float(number) for number in range(len(runs)))
    scored = [n for n, each in enumerate(runs) if each.mutation_score is not None]
    score = Chart(
        f"mutants reported, % of {runs[scored[-1]].mutants if scored else 0}",
        tuple(100 * (runs[n].mutation_score or 0) for n in scored),
        tuple(float(n) for n in scored),
    )
    return [
        Chart("graphs", tuple(float(each.graphs) for each in runs), places),
        Chart("outcomes", tuple(float(each.outcomes) for each in runs), places),
        Chart("findings", tuple(float(each.findings) for each in runs), places),
        Chart("new findings", tuple(float(each.new) for each in runs), places),
        *([score] if len(scored) > 1 else []),
    ]


def _as_earlier(report: Report) -> Earlier:
    return Earlier(
        started=report.started,
        graphs=report.graphs,
        outcomes=report.outcomes,
        findings=len(report.findings),
        new=len(report.new),
        mutation_score=report.mutation_score,
        mutants=len(report.kills),
    )
