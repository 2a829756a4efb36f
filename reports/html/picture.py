"""A litmus test, drawn: what it does to its resources, and why an outcome is forbidden.

As in `litmusfuzz.reports.drawing`, only effects are drawn: constants and pure nodes stand in the
statements that use them. A column is a chain of effects.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    LoopAttrs,
    all_nodes,
    bodies,
    clusters_of,
)
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.reports.drawing import Drawing, Level
from litmusfuzz.reports.html.layout import Box, Line, place, svg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Run

MOST_EFFECTS: Final = 48
"""Larger tests are told as text: nobody follows so many lines."""
MOST_CHARACTERS: Final = 40
LEGEND: Final = {
    "racing": "races: unordered, on one resource, one of them changes it",
    "data": "data edge",
    "control": "control edge",
    "values": "order that the values seen demand",
    "cycle": "the cycle: no total order has all of its steps",
    "blamed": "edge that the reason stands on",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, and which kinds of lines and boxes are in it (keys of `LEGEND`)."""

    svg: str
    kinds: tuple[str, ...]


def picture(
    test: LitmusTest,
    edges: Iterable[tuple[str, str]] = (),
    arcs: Sequence[tuple[str, str]] = (),
) -> Picture | None:
    """The drawing; None if the test is too large for one.

    Parameters
    ----------
    edges : iterable of (str, str)
        Those that a reason stands on: marked.
    arcs : sequence of (str, str)
        The steps of a cycle: marked, and numbered from 1.
    """
    if len(test.effects) > MOST_EFFECTS:
        return None
    return _Picture(test).drawn(list(edges), arcs)


def boxes(test: LitmusTest) -> Box:
    """Its boxes alone, of whatever size, not yet placed."""
    return _Picture(test).top()


class _Picture:
    """Boxes and lines of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.drawing = Drawing(test)
        self.levels: dict[str, tuple[Level, str]] = {}
        """Of each effect, the level that it is in, and the graph or body that this is."""
        self.home: dict[str, str] = {}
        """Of each graph and body, the node around it; "" of a graph."""
        self.racing = set(self._racing())

    # --- boxes ----------------------------------------------------------------------------

    def top(self) -> Box:
        """Everything."""
        several = len(self.test.graphs) > 1 or bool(self.test.client)
        if not several:
            (graph,) = self.test.graphs
            return self._level("", (), "", graph.nodes)
        columns = []
        for graph in self.test.graphs:
            runs = [run.name for run in self.test.runs if run.graph == graph.name]
            told = f"graph {graph.name}"
            if runs != [graph.name]:
                told += f", run as {', '.join(runs)}" if runs else ", never run"
            columns.append([self._level(f"graph {graph.name}", (told,), "graph", graph.nodes)])
        if any(run.after for run in self.test.client):
            columns.append([self._client(self.test.client)])
        return Box("", (), "", columns)

    def _client(self, runs: Sequence[Run]) -> Box:
        """The runs, and which come after which."""
        before: dict[str, set[str]] = {}
        columns: list[list[Box]] = []
        for run in runs:
            name = f"run {run.name}"
            before[name] = {f"run {other}" for other in run.after}
            before[name] |= {each for other in before[name] for each in before[other]}
            box = Box(name, (f"{run.name}: {run.graph}",), "run")
            column = next((c for c in columns if c[-1].name in before[name]), None)
            if column is None:
                columns.append([box])
            else:
                column.append(box)
        return Box("client", ("client",), "client", columns, before)

    def _level(self, name: str, title: tuple[str, ...], kind: str, nodes: tuple[Node, ...]) -> Box:
        """A graph or body, with all inside."""
        level = Level(nodes, clusters_of(nodes, self.test.clusters))
        columns = self._columns(level, "")
        return Box(name, title, kind, columns, level.before, self._shown(nodes))

    def _shown(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """Of a graph: what is observed and is no effect."""
        observed = {key.rpartition(".")[2] for key in self.test.observe}
        return tuple(
            line
            for node in nodes
            if node.name in observed and not node.definition.has_effect
            for line in _wrapped(f"{node.name} = {self.drawing.expression(node.name, top=True)}")
        )

    def _columns(self, level: Level, group: str) -> list[list[Box]]:
        return [[self._unit(level, unit) for unit in chain] for chain in level.chains(group)]

    def _unit(self, level: Level, unit: str) -> Box:
        node = level.nodes.get(unit)
        if unit in level.groups:
            what = f"lock {node.resources[0]}" if node else "cluster"
            kind = "section" if node else "cluster"
            columns = self._columns(level, unit)
            if not columns:  # of pure nodes only
                what += f" around {', '.join(sorted(level.groups[unit]))}"
            return Box(unit, tuple(_wrapped(f"{unit}: {what}")), kind, columns, level.before)
        assert node is not None
        statement = tuple(_wrapped(self.drawing.statement(node)))
        if bodies(node):
            return Box(unit, statement, "nest", self._bodies(node), self._in_turn(node))
        race = " race" if unit in self.racing else ""
        return Box(unit, statement, f"op{race}", note=node.op)

    def _bodies(self, node: Node) -> list[list[Box]]:
        """Branches side by side; a loop's body below its condition."""
        attrs = node.attrs
        boxes: list[Box] = []
        for field_name, body in bodies(node):
            name = f"{node.name}/{field_name}"
            title = {"condition": "while", "body": "do"}.get(field_name, field_name)
            results: tuple[str, ...] = ()
            if isinstance(attrs, BranchAttrs):
                results = attrs.results
            elif isinstance(attrs, LoopAttrs) and field_name == "body":
                results = tuple(f"next {each}" for each in attrs.carried)
            else:
                title += f" {self.drawing.expression(body.results[0], top=True)}"
            box = self._level(name, tuple(_wrapped(title)), "body", body.nodes)
            box.foot = (*box.foot, *(self._results(results, body) if results else ()))
            boxes.append(box)
        return [[box] for box in boxes] if isinstance(attrs, BranchAttrs) else [boxes]

    @staticmethod
    def _in_turn(node: Node) -> dict[str, set[str]]:
        """Which body stands above which."""
        if isinstance(node.attrs, BranchAttrs):
            return {}
        return {f"{node.name}/body": {f"{node.name}/condition"}}

    def _results(self, names: tuple[str, ...], body: Body) -> Iterator[str]:
        for name, value in zip(names, body.results, strict=True):
            yield from _wrapped(f"{name} = {self.drawing.expression(value, top=True)}")

    # --- lines ----------------------------------------------------------------------------

    def _lines(self, boxes: set[str]) -> list[Line]:
        """Data edges, and of the control edges those that no others imply."""
        kinds: dict[tuple[str, str], str] = {}
        for node in self.test.nodes:
            if node.name not in boxes:
                continue
            for name, kind in self._sources(node):
                if name in boxes and name != node.name:
                    # Where both lead, the data edge is the one to draw: "data" > "control".
                    kinds[name, node.name] = max(kind, kinds.get((name, node.name), kind))
        into: dict[str, set[str]] = {}
        for source, target in kinds:
            into.setdefault(target, set()).add(source)

        def above(name: str, found: set[str]) -> set[str]:
            for other in into.get(name, set()) - found:
                found.add(other)
                above(other, found)
            return found

        lines = []
        for (source, target), kind in kinds.items():
            others = into[target] - {source}
            if kind == "data" or not any(source in above(other, set()) for other in others):
                lines.append(Line(source, target, kind))
        for run in self.test.client:
            lines += [Line(f"run {a}", f"run {run.name}", "control") for a in run.after]
        return lines

    def _sources(self, node: Node) -> Iterator[tuple[str, str]]:
        """What a node waits for: effects, each with the kind of the edges on the way."""
        seen: set[tuple[str, str]] = set()
        stack = [(name, "data") for name in node.inputs]
        stack += [(name, "control") for name in node.after]
        while stack:
            reference, kind = stack.pop()
            name = self.drawing.source(reference).partition(".")[0]
            above = self.drawing.nodes.get(name)
            if above is None or (name, kind) in seen:
                continue
            seen.add((name, kind))
            if above.definition.has_effect:
                yield name, kind
                continue
            stack += [(each, kind) for each in above.inputs]
            stack += [(each, "control") for each in above.after]

    # --- races ----------------------------------------------------------------------------

    def _racing(self) -> Iterator[str]:
        """Effects that another, unordered, meets in a resource which one of them changes."""
        for graph in self.test.graphs:
            self._enter(f"graph {graph.name}", "", graph.nodes)
        touching = [n for n in self.test.effects if n.definition.kind is not Kind.SECTION]
        for a, b in combinations(touching, 2):
            changes = _changes(a) or _changes(b)
            if changes and set(a.resources) & set(b.resources) and not self._ordered(a, b):
                yield from (a.name, b.name)
        for graph in self.test.graphs:
            runs = [run for run in self.test.runs if run.graph == graph.name]
            if any(not self._in_order(a, b) for a, b in combinations(runs, 2)):
                # Each run races with the other.
                inside = [n for n in all_nodes(graph.nodes) if n in touching]
                changed = {name for n in inside if _changes(n) for name in n.resources}
                yield from (n.name for n in inside if changed.intersection(n.resources))

    def _enter(self, here: str, around: str, nodes: tuple[Node, ...]) -> None:
        level = Level(nodes, clusters_of(nodes, self.test.clusters))
        self.home[here] = around
        for node in nodes:
            self.levels[node.name] = level, here
            for field_name, body in bodies(node):
                self._enter(f"{node.name}/{field_name}", node.name, body.nodes)

    def _way(self, name: str) -> list[tuple[str, str]]:
        """Each graph or body around a node, outermost first, and where in it the node is."""
        way: list[tuple[str, str]] = []
        while name:
            _, here = self.levels[name]
            way.insert(0, (here, name))
            name = self.home[here]
        return way

    def _ordered(self, a: Node, b: Node) -> bool:
        """Whether edges, or the client, put one before the other, or only one of them runs."""
        for (here, ours), (there, theirs) in zip(
            self._way(a.name), self._way(b.name), strict=False
        ):
            if here != there:
                if not self.home[here]:  # two graphs
                    return all(
                        self._in_order(r, s)
                        for r in self.test.runs
                        for s in self.test.runs
                        if f"graph {r.graph}" == here and f"graph {s.graph}" == there
                    )
                return here.endswith(("/then", "/else"))
            if ours != theirs:
                before = self.levels[ours][0].before
                return ours in before[theirs] or theirs in before[ours]
        return True

    def _in_order(self, a: Run, b: Run) -> bool:
        """Whether one run comes after the other."""
        runs = {run.name: run for run in self.test.runs}

        def after(late: Run, early: Run) -> bool:
            return early.name in late.after or any(after(runs[n], early) for n in late.after)

        return after(a, b) or after(b, a)

    # --- all of it ------------------------------------------------------------------------

    def drawn(self, edges: list[tuple[str, str]], arcs: Sequence[tuple[str, str]]) -> Picture:
        """The picture with a reason in it."""
        top = self.top()
        place(top)
        boxes = {box.name for box in top.all()} - {""}
        lines = {(line.source, line.target): line for line in self._lines(boxes)}
        steps: dict[tuple[str, str], list[str]] = {}
        for number, (source, target) in enumerate(arcs, 1):
            if source != target and {source, target} <= boxes:
                steps.setdefault((source, target), []).append(str(number))
        for pair, numbers in steps.items():
            line = lines.get(pair)
            if line is None:
                kind = "control" if pair in edges else "values"
                line = lines[pair] = Line(*pair, kind, sideways=kind == "values")
            line.kind += " cycle"
            line.number = ",".join(numbers)
        for pair in edges:
            ends = (pair[0].partition(".")[0], pair[1])
            if not set(ends) <= boxes:
                ends = (f"run {pair[0]}", f"run {pair[1]}")
            if not set(ends) <= boxes:
                continue
            line = lines.setdefault(ends, Line(*ends, "control"))
            if "cycle" not in line.kind:
                line.kind += " blamed"
        # Marked lines last, so that they lie above others.
        ordered = sorted(lines.values(), key=lambda line: " " in line.kind)
        said = " ".join(line.kind for line in ordered).split()
        kinds = tuple(k for k in LEGEND if k in said or (k == "racing" and self.racing))
        label = f"{self.test.name}, drawn: {len(self.test.effects)} effects"
        return Picture(svg(top, ordered, label), kinds)


def _changes(node: Node) -> bool:
    """Whether it changes what it works on; every queue op but Size does."""
    on_queue = node.definition.on == "queue" and node.op != "QueueSizeV2"
    return on_queue or node.definition.kind.writes


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, MOST_CHARACTERS, subsequent_indent="  ") or [""]
