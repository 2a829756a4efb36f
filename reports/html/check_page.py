"""The HTML page of `litmusfuzz check`: each anomaly, and a drawing of its neighbourhood."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from litmusfuzz.reports.html.layout import Box, Line, place, svg
from litmusfuzz.reports.html.page import HERE, MAX_BYTES, environment
from litmusfuzz.reports.html.picture import MOST_CHARACTERS
from litmusfuzz.reports.tables import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litmusfuzz.reports.checked import CheckReport, Neighbour, ReportedAnomaly

LEGEND: Final = {
    "racing": "accesses of the example",
    "data": "a value goes there",
    "control": "the edges order them",
    "cycle": "the order in which it happens",
}
MOST_OPEN: Final = 10


def check_page(report: CheckReport, command: str) -> str:
    """The whole page; drawings beyond `MAX_BYTES` are left out."""
    left = MAX_BYTES
    cards = []
    for anomaly in report.anomalies:
        graph = neighbourhood(anomaly)
        left -= len(graph.encode())
        cards.append((anomaly, graph if left > 0 else ""))
    style = (HERE / "style.css").read_text(encoding="utf-8")
    template = environment().get_template("check.html")
    return printable(
        template.render(
            report=report,
            command=command,
            style=style,
            cards=cards,
            legend=LEGEND,
            most_open=MOST_OPEN,
        )
    )


def neighbourhood(anomaly: ReportedAnomaly) -> str:
    """What is around an anomaly, as SVG; "" if there is nothing to draw.

    A run is a box, and a column in it accesses that edges order. Arrows with numbers follow the
    first of the two orders.
    """
    around = anomaly.neighbourhood
    if around is None:
        return ""
    several = len(anomaly.runs) > 1
    columns: list[list[Box]] = []
    for side, run in enumerate(anomaly.runs):
        inside = _chains(
            [(n, each) for n, each in enumerate(around.accesses) if each.side == side],
            {(first, second) for first, second, _ in around.edges},
        )
        if several:
            inside.name, inside.title, inside.kind = f"run {side}", (run,), "graph"
            columns.append([inside])
        else:
            columns = inside.columns
            top = inside
    if several:
        top = Box("", (), "", columns)
    lines = {
        (first, second): Line(f"a{first}", f"a{second}", kind)
        for first, second, kind in around.edges
    }
    numbered = {each.number: n for n, each in enumerate(around.accesses) if each.number}
    order = [numbered[position + 1] for position in anomaly.orders[0]]
    for step, pair in enumerate(pairwise(order), 1):
        line = lines.get(pair)
        if line is None:
            line = lines[pair] = Line(f"a{pair[0]}", f"a{pair[1]}", "values", sideways=True)
        line.kind += " cycle"
        line.number = str(step)
    place(top)
    # Marked lines come last, so that they cover others.
    ordered = sorted(lines.values(), key=lambda line: " " in line.kind)
    return svg(top, ordered, f"accesses around the {anomaly.title}")


def _chains(accesses: Sequence[tuple[int, Neighbour]], edges: set[tuple[int, int]]) -> Box:
    """A box with the accesses of a run, in columns that edges order."""
    before: dict[int, set[int]] = {}
    columns: list[list[int]] = []
    for number, _ in accesses:
        near = {first for first, second in edges if second == number}
        before[number] = near.union(*(before.get(each, set()) for each in near))
        column = next((c for c in columns if c[-1] in before[number]), None)
        if column is None:
            columns.append([number])
        else:
            column.append(number)
    boxes = {number: _box(number, each) for number, each in accesses}
    return Box(
        "",
        (),
        "",
        [[boxes[number] for number in column] for column in columns],
        {f"a{number}": {f"a{each}" for each in earlier} for number, earlier in before.items()},
    )


def _box(number: int, neighbour: Neighbour) -> Box:
    access = neighbour.access
    label = f"{neighbour.number}  " if neighbour.number else ""
    text = textwrap.wrap(f"{label}{access.access} {access.variable}", MOST_CHARACTERS)
    where = f"{access.op}  {access.where}"
    kind = "op race" if neighbour.number else "op"
    return Box(f"a{number}", tuple(text), kind, note=where[-60:])
