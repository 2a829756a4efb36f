"""Boxes in columns and rows, lines between them, as SVG.

A box holds lines of text, or columns of boxes. In a column boxes stand one below
another; a box's row lies below the rows of all that come before it, so that time runs
downwards. Lines go around boxes, through the gaps between columns and rows.

References
----------
Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System
Structures", IEEE Trans. SMC 11(2), 1981: rows by longest path. We do not move boxes to
save crossings: a column is a thread of the test, and stays together.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

Point = tuple[float, float]

CHARACTER: Final = 7.3
"""Width of a character of the monospaced font, at 12 px."""
SMALL_CHARACTER: Final = 6.1
LINE: Final = 16
PAD: Final = 9
COLUMN_GAP: Final = 54
ROW_GAP: Final = 30
CORNER: Final = 8
SMALLEST: Final = 0.75
"""A drawing is shrunk so far to fit; one still wider is scrolled."""


@dataclass(slots=True)
class Box:
    """A box; `place` gives it its place.

    Parameters
    ----------
    name : str
        Unique in a drawing: lines refer to it.
    title : tuple of str
        Its text; of a box with boxes inside, what stands above them.
    kind : str
        Classes, for the style sheet.
    columns : list of list of Box
        What is inside.
    before : mapping of str to set of str
        Of what is directly inside, by name: what comes before it, transitively.
    foot : tuple of str
        Text below what is inside.
    note : str
        A small line below the title.
    """

    name: str
    title: tuple[str, ...]
    kind: str
    columns: list[list[Box]] = field(default_factory=list)
    before: Mapping[str, Collection[str]] = field(default_factory=dict)
    foot: tuple[str, ...] = ()
    note: str = ""
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    column: int = 0
    row: int = 0
    column_spans: list[tuple[float, float]] = field(default_factory=list)
    row_spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height

    @property
    def center(self) -> Point:
        """Its center."""
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def inside(self) -> list[Box]:
        """The boxes directly inside."""
        return [box for column in self.columns for box in column]

    def all(self) -> Iterator[Box]:
        """It, and all inside, outer ones first."""
        yield self
        for box in self.inside:
            yield from box.all()


@dataclass(slots=True)
class Line:
    """An arrow from a box to another; `number` stands on it in a circle."""

    source: str
    target: str
    kind: str
    number: str = ""
    sideways: bool = False
    """True if it leaves and arrives at the left or right edge: it is no edge of the graph."""


def place(box: Box, x: float = 0, y: float = 0) -> None:
    """Give a box and all inside their sizes and places, from its upper left corner."""
    _size(box)
    _move(box, x, y)


def _size(box: Box) -> None:
    """Sizes, and places relative to the corner of the box around."""
    longest = max((len(line) for line in (*box.title, *box.foot)), default=0)
    text = max(longest * CHARACTER, len(box.note) * SMALL_CHARACTER) + 2 * PAD
    above = (len(box.title) + bool(box.note)) * LINE + (PAD if box.title else 0)
    below = len(box.foot) * LINE + PAD
    if not box.columns:
        box.width, box.height = text, above + below
        return
    for inner in box.inside:
        _size(inner)
    for number, column in enumerate(box.columns):
        for inner in column:
            inner.column = number
    rows: dict[str, int] = {}
    waiting = box.inside
    while waiting:
        ready = [
            b for b in waiting if not any(w.name in box.before.get(b.name, ()) for w in waiting)
        ]
        for inner in ready:
            earlier = box.before.get(inner.name, ())
            rows[inner.name] = 1 + max((rows[n] for n in earlier if n in rows), default=-1)
            inner.row = rows[inner.name]
        waiting = [b for b in waiting if b not in ready]
    y: float = above + PAD
    for row in range(max(rows.values()) + 1):
        height = max((b.height for b in box.inside if b.row == row), default=0)
        box.row_spans.append((y, y + height))
        y += height + ROW_GAP
    x: float = 2 * PAD
    for column in box.columns:
        width = max(b.width for b in column)
        box.column_spans.append((x, x + width))
        for inner in column:
            inner.x = x + (width - inner.width) / 2
            inner.y = box.row_spans[inner.row][0]
        x += width + COLUMN_GAP
    # Space at the left and right for lines that go around.
    box.width = max(x - COLUMN_GAP + 2 * PAD, text)
    box.height = y - ROW_GAP + below


def _move(box: Box, x: float, y: float) -> None:
    box.x += x
    box.y += y
    box.column_spans = [(a + box.x, b + box.x) for a, b in box.column_spans]
    box.row_spans = [(a + box.y, b + box.y) for a, b in box.row_spans]
    for inner in box.inside:
        _move(inner, box.x, box.y)


def svg(top: Box, lines: Sequence[Line], label: str) -> str:
    """A placed box with lines between the boxes in it, as an SVG element."""
    paths = _Paths(top)
    parts = []
    boxes = [box for box in top.all() if box is not top]
    parts += [_box(box) for box in boxes if box.columns]
    badges = []
    for number, line in enumerate(lines):
        points = paths.of(line, number)
        parts.append(f'<path class="{line.kind}" d="{_curve(points)}"/>')
        if line.number:
            x, y = _along(points, 0.22 if line.sideways else 0.5)
            badges.append(
                f'<g class="no"><circle cx="{x:.0f}" cy="{y:.0f}" r="8"/>'
                f'<text x="{x:.0f}" y="{y + 3.5:.0f}">{html.escape(line.number)}</text></g>'
            )
    parts += [_box(box) for box in boxes if not box.columns]
    left = min([0.0, *(x - CORNER for x, _ in paths.seen)])
    right = max([top.right, *(x + CORNER for x, _ in paths.seen)])
    width, height = right - left, top.height
    corners = f"{left:.0f} {top.y:.0f} {width:.0f} {height:.0f}"
    size = f'width="{width:.0f}" height="{height:.0f}" style="min-width:{SMALLEST * width:.0f}px"'
    return (
        f'<svg class="graph" role="img" aria-label="{html.escape(label)}" viewBox="{corners}"'
        f" {size}>{''.join(parts)}{''.join(badges)}</svg>"
    )


def _box(box: Box) -> str:
    def text(line: str, y: float, attributes: str = "") -> str:
        return f'<text x="{box.x + PAD:.0f}" y="{y:.0f}"{attributes}>{html.escape(line)}</text>'

    texts = [text(line, box.y + LINE * (n + 1)) for n, line in enumerate(box.title)]
    if box.note:
        texts.append(text(box.note, box.y + LINE * (len(box.title) + 1), ' class="s"'))
    first = box.bottom - PAD - LINE * (len(box.foot) - 1)
    texts += [text(line, first + LINE * n) for n, line in enumerate(box.foot)]
    return (
        f'<g class="{box.kind}"><rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}"'
        f' height="{box.height:.0f}" rx="4"/>{"".join(texts)}</g>'
    )


class _Paths:
    """The ways of lines: points, with right angles between that are then rounded."""

    def __init__(self, top: Box) -> None:
        self.around: dict[str, list[Box]] = {}
        self.boxes: dict[str, Box] = {}
        self.seen: list[Point] = []
        self._enter(top, [])

    def _enter(self, box: Box, around: list[Box]) -> None:
        self.around[box.name] = around
        self.boxes[box.name] = box
        for inner in box.inside:
            self._enter(inner, [*around, box])

    def of(self, line: Line, number: int) -> list[Point]:
        """The points of a line; the `number` keeps lines in one gap apart."""
        source, target = self.boxes[line.source], self.boxes[line.target]
        ours = [*self.around[line.source], source]
        theirs = [*self.around[line.target], target]
        apart = (number % 5 - 2) * 5
        points = self._direct(source, target)  # if one holds the other
        for a, b in zip(ours, theirs, strict=False):
            if a is not b:
                # Between the boxes of one level; then on to those inside them.
                points = self._in_grid(a, b, line, apart, source, target)
                break
        self.seen += points
        return points

    def _in_grid(
        self, a: Box, b: Box, line: Line, apart: float, source: Box, target: Box
    ) -> list[Point]:
        grid = self.around[a.name][-1]
        if not line.sideways and b.row > a.row:
            start, end = (source.center[0], source.bottom), (target.center[0], target.y)
            between = [c for c in grid.columns[a.column] if a.row < c.row < b.row]
            if a.column == b.column and not between:
                return [start, end] if start[0] == end[0] else self._stair(start, end)
            if b.row == a.row + 1:
                return self._stair(start, (end[0] + apart, end[1]))
            x = self._gap(grid, b.column, left=a.column < b.column) + apart
            y, z = grid.row_spans[a.row][1] + 10 + apart, grid.row_spans[b.row][0] - 10 - apart
            start, end = (start[0] + apart, start[1]), (end[0] + apart, end[1])
            return [start, (start[0], y), (x, y), (x, z), (end[0], z), end]
        if a.column == b.column:
            x = self._gap(grid, a.column, left=False) + apart
            y, z = source.center[1] + 5, target.center[1] - 5
            return [(source.right, y), (x, y), (x, z), (target.right, z)]
        rightward = a.column < b.column
        start = (source.right if rightward else source.x, source.center[1] + 5)
        end = (target.x if rightward else target.right, target.center[1] - 5)
        if abs(a.column - b.column) == 1:
            top, bottom = max(source.y, target.y), min(source.bottom, target.bottom)
            if bottom - top > LINE:
                # Neighbours: the lines in both directions are apart.
                y = (top + bottom) / 2 + (-8 if rightward else 8)
                return [(start[0], y), (end[0], y)]
            return [start, end]
        x = self._gap(grid, a.column, left=not rightward) + apart
        w = self._gap(grid, b.column, left=rightward) + apart
        if b.row >= a.row:
            y = grid.row_spans[a.row][1] + ROW_GAP / 2 + apart
        else:
            y = grid.row_spans[a.row][0] - ROW_GAP / 2 + apart
        return [start, (x, start[1]), (x, y), (w, y), (w, end[1]), end]

    @staticmethod
    def _stair(start: Point, end: Point) -> list[Point]:
        middle = (start[1] + end[1]) / 2
        return [start, (start[0], middle), (end[0], middle), end]

    @staticmethod
    def _gap(grid: Box, column: int, *, left: bool) -> float:
        """The middle of the gap beside a column."""
        a, b = grid.column_spans[column]
        return a - COLUMN_GAP / 2 if left else b + COLUMN_GAP / 2

    @staticmethod
    def _direct(source: Box, target: Box) -> list[Point]:
        """Between a box and one inside it: along the left side."""
        x = min(source.x, target.x) - 6
        y, z = source.center[1], target.center[1]
        return [(source.x, y), (x, y), (x, z), (target.x, z)]


def _curve(points: Sequence[Point]) -> str:
    """A path: two points straight or as an S, several with round corners."""
    if len(points) == 2:
        (x, y), (v, w) = points
        if abs(x - v) < 1 or abs(y - w) < 1:
            return f"M{x:.0f} {y:.0f}L{v:.0f} {w:.0f}"
        bend = (x + v) / 2
        return f"M{x:.0f} {y:.0f}C{bend:.0f} {y:.0f} {bend:.0f} {w:.0f} {v:.0f} {w:.0f}"
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = _towards(corner, before), _towards(corner, after)
        path += f"L{a[0]:.0f} {a[1]:.0f}Q{corner[0]:.0f} {corner[1]:.0f} {b[0]:.0f} {b[1]:.0f}"
    return f"{path}L{points[-1][0]:.0f} {points[-1][1]:.0f}"


def _towards(corner: Point, other: Point) -> Point:
    """Where a round corner begins."""
    far = hypot(other[0] - corner[0], other[1] - corner[1])
    share = min(CORNER, far / 2) / far if far else 0
    return (
        corner[0] + (other[0] - corner[0]) * share,
        corner[1] + (other[1] - corner[1]) * share,
    )


def _along(points: Sequence[Point], share: float) -> Point:
    """The point at a share of the way; of an S that is near enough on it."""
    if len(points) == 2 and abs(points[0][0] - points[1][0]) > 1:
        (x, y), (v, w) = points
        bend = (x + v) / 2
        t, u = share, 1 - share
        ways = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
        return (
            sum(a * b for a, b in zip(ways, (x, bend, bend, v), strict=True)),
            sum(a * b for a, b in zip(ways, (y, y, w, w), strict=True)),
        )
    lengths = [hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)]
    left = share * sum(lengths)
    for (a, b), length in zip(pairwise(points), lengths, strict=True):
        if left <= length and length:
            return (
                a[0] + (b[0] - a[0]) * left / length,
                a[1] + (b[1] - a[1]) * left / length,
            )
        left -= length
    return points[-1]
