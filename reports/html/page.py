"""Fills the template of a night's page."""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from litmusfuzz.corpus.outcome import Outcome, Status
from litmusfuzz.reports import drawing, times
from litmusfuzz.reports.html.charts import Chart, over_the_night
from litmusfuzz.reports.html.picture import LEGEND, picture
from litmusfuzz.reports.nightly_report import Earlier
from litmusfuzz.reports.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.reports.nightly_report import NightlyFinding, NightlyReport

HERE: Final = Path(__file__).parent
MAX_BYTES: Final = 950_000
"""Of the whole page. Findings that do not fit are told in the index only."""
MOST_OPEN: Final = 10
"""New findings beyond are collapsed, like known ones."""
MOST_ROWS: Final = 14
MOST_LINES: Final = 120


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a histogram.

    `cells` are values, each with whether it differs between what was seen and the nearest
    allowed outcome.
    """

    cells: tuple[tuple[str, bool], ...]
    count: int
    width: int
    verdict: str
    nearest: bool


@dataclass(frozen=True, slots=True)
class Histogram:
    """What was observed beside what is allowed.

    `same` are values that all rows share, which do not stand in them; `more` rows were
    left out.
    """

    rows: tuple[Row, ...]
    same: str
    more: int


def page(night: NightlyReport) -> str:
    """The whole page."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "moment": times.moment,
        "stamp": times.stamp,
        "lasted": times.lasted,
        "short": times.short,
        "counted": counted,
    }
    card = environment.get_template("finding.html")
    # Ids of our own: a key comes from a file.
    ids = {finding.key: f"f{number}" for number, finding in enumerate(in_order(night), 1)}
    cards: list[str] = []
    whole = environment.get_template("page.html")
    rest = whole.render(**_whole(night), ids=ids, cards=cards)
    left = MAX_BYTES - len(rest.encode())
    for number, finding in enumerate(in_order(night)):
        text = card.render(
            f=finding,
            id=ids[finding.key],
            opened=not finding.known and number < MOST_OPEN,
            histogram=histogram(finding),
            drawn=picture(finding.entry.test, finding.edges, finding.arcs),
            text=_drawn_as_text(finding),
            resources=drawing.declarations(finding.entry.test),
            legend=LEGEND,
        )
        left -= len(text.encode())
        if left < 0:
            break
        cards.append(text)
    return printable(whole.render(**_whole(night), ids=ids, cards=cards))


def in_order(night: NightlyReport) -> list[NightlyFinding]:
    """New findings first; each by how many graphs of tonight showed it."""
    return sorted(night.findings, key=lambda f: (bool(f.known), -f.tonight, f.key))


def _whole(night: NightlyReport) -> dict[str, object]:
    """What the page is filled with, findings aside."""
    return {
        "night": night,
        "findings": in_order(night),
        "style": (HERE / "style.css").read_text(encoding="utf-8"),
        "charts": over_the_night(night.moments),
        "trends": trends(night),
        "coverage": coverage(night),
        "slowest": max((kill.seconds or 0 for kill in night.kills), default=0),
    }


def histogram(finding: NightlyFinding) -> Histogram:
    """What is forbidden first, then the nearest allowed, the frequent, and what did not show."""
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
        told = tuple(
            (f"{name}={value}" if name else value, name in differ and outcome in (worst, near))
            for name, value in cells[outcome].items()
            if name not in same
        )
        rows.append(Row(told, count, _width(count, largest), verdict, outcome == near))
    first = cells[listed[0]] if listed else {}
    shared = " ".join(f"{name}={first[name]}" for name in names if name in same and name in first)
    return Histogram(tuple(rows), shared, len(listed) - len(rows))


def _cells(outcome: Outcome, names: Sequence[str]) -> dict[str, str]:
    """Values by name; under "" how it ended, if it did not complete."""
    plain = outcome.plain
    told = {name: str(plain[name]).replace(" ", "") for name in names if name in plain}
    return told if outcome.status is Status.COMPLETED else {"": str(outcome.status)} | told


def _width(count: int, largest: int) -> int:
    """Of a bar, in percent: by logarithm, so that one in a million can be seen."""
    return round(100 * log1p(count) / log1p(largest))


def _drawn_as_text(finding: NightlyFinding) -> str:
    lines = drawing.text(finding.entry.test).splitlines()
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"and {more} more lines"] if more > 0 else [])])


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of allowed outcomes reached, by family and executor; None where nothing ran."""

    executors: tuple[str, ...]
    families: tuple[str, ...]
    reached: dict[tuple[str, str], float | None]
    graphs: dict[tuple[str, str], int]


def coverage(night: NightlyReport) -> Coverage:
    """From what is named ``executor/family``."""
    reached: dict[tuple[str, str], float | None] = {}
    graphs: dict[tuple[str, str], int] = {}
    for share in night.by_family:
        executor, _, family = share.name.rpartition("/")
        reached[family, executor] = share.reached
        graphs[family, executor] = share.graphs
    executors = tuple(dict.fromkeys(executor for _, executor in reached))
    return Coverage(executors, tuple(sorted({f for f, _ in reached})), reached, graphs)


def trends(night: NightlyReport) -> list[Chart]:
    """Lines over earlier nights and this one; nothing if it is the first."""
    if not night.earlier:
        return []
    nights = [*night.earlier, _as_earlier(night)]
    places = tuple(float(number) for number in range(len(nights)))
    scored = [n for n, each in enumerate(nights) if each.mutation_score is not None]
    score = Chart(
        "mutation score, %",
        tuple(100 * (nights[n].mutation_score or 0) for n in scored),
        tuple(float(n) for n in scored),
    )
    return [
        Chart("graphs", tuple(float(each.graphs) for each in nights), places),
        Chart("outcomes", tuple(float(each.outcomes) for each in nights), places),
        Chart("findings", tuple(float(each.findings) for each in nights), places),
        Chart("new findings", tuple(float(each.new) for each in nights), places),
        *([score] if len(scored) > 1 else []),
    ]


def _as_earlier(night: NightlyReport) -> Earlier:
    return Earlier(
        started=night.started,
        graphs=night.graphs,
        outcomes=night.outcomes,
        findings=len(night.findings),
        new=len(night.new),
        mutation_score=night.mutation_score,
    )
