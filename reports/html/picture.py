"""Drawing of a litmus test as SVG, with its races and the reason of a forbidden outcome.

As in `litmusfuzz.reports.drawing`, a box is an effect, and a column a chain of effects:
constants and pure nodes appear in the statements that use them.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import LoopAttrs, all_nodes
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.reports.html.layout import Box, Line, place, svg
from litmusfuzz.reports.structure import Structure, asked_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node, Run
    from litmusfuzz.reports.structure import Level, NestedBody

MOST_EFFECTS: Final = 48
"""A larger test is reported as text: nobody follows so many lines."""
MOST_CHARACTERS: Final = 40
LEGEND: Final = {
    "racing": "races: unordered, on one resource, one of them changes it",
    "data": "data edge",
    "control": "control edge",
    "values": "order that the observed values imply",
    "cycle": "the cycle: no total order has all of its steps",
    "blamed": "edge that the reason uses",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, and the kinds of lines and boxes in it (keys of `LEGEND`)."""

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
        Edges of the graph that the reason uses, which are marked.
    arcs : sequence of (str, str)
        Steps of the reason's cycle, which are marked and numbered from 1.
    """
    if len(test.effects) > MOST_EFFECTS:
        return None
    return _Picture(test).rendered(list(edges), arcs)


def boxes(test: LitmusTest) -> Box:
    """The boxes of a test of any size, not yet placed."""
    return _Picture(test).top()


class _Picture:
    """Boxes and lines of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.structure = Structure(test)
        self.levels: dict[str, tuple[Level, str]] = {}
        """For each effect its level, and the name of that graph or body."""
        self.home: dict[str, str] = {}
        """For each body the node around it; "" for a graph."""
        self.earlier: dict[str, set[str]] = {}
        """For each run those that end before it."""
        for run in test.runs:
            self.earlier[run.name] = set(run.after).union(*(self.earlier[n] for n in run.after))
        self.racing = set(self._racing())

    # --- boxes ----------------------------------------------------------------------------

    def top(self) -> Box:
        """The box around all others."""
        if not self.structure.has_client:
            (graph,) = self.test.graphs
            return self._level("", (), "", graph.nodes)
        columns = []
        for graph in self.test.graphs:
            runs = [run.name for run in self.test.runs if run.graph == graph.name]
            title = f"graph {graph.name}"
            if runs != [graph.name]:
                title += f", run as {', '.join(runs)}" if runs else ", never run"
            columns.append([self._level(f"graph {graph.name}", (title,), "graph", graph.nodes)])
        if any(run.after or asked_of(run) for run in self.test.client):
            columns.append([self._client(self.test.client)])
        return Box("", (), "", columns)

    def _client(self, runs: Sequence[Run]) -> Box:
        """The client's runs and their order."""
        before = {f"run {run}": {f"run {n}" for n in names} for run, names in self.earlier.items()}
        columns: list[list[Box]] = []
        for run in runs:
            text = (f"{run.name}: {run.graph}", *asked_of(run))
            box = Box(f"run {run.name}", text, "run")
            column = next((c for c in columns if c[-1].name in before[box.name]), None)
            if column is None:
                columns.append([box])
            else:
                column.append(box)
        return Box("client", ("client",), "client", columns, before)

    def _level(self, name: str, title: tuple[str, ...], kind: str, nodes: tuple[Node, ...]) -> Box:
        """A graph or body, with its contents."""
        level = self.structure.level(nodes)
        values = self.structure.observed_values(nodes)
        foot = tuple(line for value in values for line in _wrapped(value))
        return Box(name, title, kind, self._columns(level, ""), level.before, foot)

    def _columns(self, level: Level, group: str) -> list[list[Box]]:
        return [[self._unit(level, unit) for unit in chain] for chain in level.chains(group)]

    def _unit(self, level: Level, unit: str) -> Box:
        if unit in level.groups:
            kind = "section" if unit in level.nodes else "cluster"
            title = tuple(_wrapped(level.label(unit) + level.pure_members(unit)))
            return Box(unit, title, kind, self._columns(level, unit), level.before)
        node = level.nodes[unit]
        statement = tuple(_wrapped(self.structure.statement(node)))
        if nested := self.structure.bodies(node):
            return Box(unit, statement, "nest", self._bodies(node, nested), _order(node))
        race = " race" if unit in self.racing else ""
        return Box(unit, statement, f"op{race}", note=node.op)

    def _bodies(self, node: Node, nested: list[NestedBody]) -> list[list[Box]]:
        """Branches beside each other; a loop's body below its condition."""
        boxes: list[Box] = []
        for each in nested:
            title = each.keyword
            if each.field == "condition":
                title += f" {self.structure.expression(each.body.results[0], top=True)}"
            name = f"{node.name}/{each.field}"
            box = self._level(name, tuple(_wrapped(title)), "body", each.body.nodes)
            box.foot = (*box.foot, *self._results(each))
            boxes.append(box)
        return [boxes] if isinstance(node.attrs, LoopAttrs) else [[box] for box in boxes]

    def _results(self, nested: NestedBody) -> Iterator[str]:
        for name, value in zip(nested.results, nested.body.results, strict=False):
            yield from _wrapped(f"{name} = {self.structure.expression(value, top=True)}")

    # --- lines ----------------------------------------------------------------------------

    def _lines(self, boxes: set[str]) -> list[Line]:
        """The data edges, and the control edges that no other edges imply."""
        kinds: dict[tuple[str, str], str] = {}
        for node in self.test.nodes:
            if node.name not in boxes:
                continue
            for name, kind in self._sources(node):
                if name in boxes and name != node.name:
                    # Of two edges the data edge is kept: "data" > "control".
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
        """Effects that a node waits for, each with the kind of the edges on the path."""
        seen: set[tuple[str, str]] = set()
        stack = [(name, "data") for name in node.inputs]
        stack += [(name, "control") for name in node.after]
        while stack:
            reference, kind = stack.pop()
            name = self.structure.node_of(reference)
            above = self.structure.nodes.get(name)
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
        """Effects that race: two unordered ones on a resource that one of them changes."""
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
        level = self.structure.level(nodes)
        self.home[here] = around
        for node in nodes:
            self.levels[node.name] = level, here
            for nested in self.structure.bodies(node):
                self._enter(f"{node.name}/{nested.field}", node.name, nested.body.nodes)

    def _path(self, name: str) -> list[tuple[str, str]]:
        """Each graph or body around a node, outermost first, and the node in it."""
        path: list[tuple[str, str]] = []
        while name:
            _, here = self.levels[name]
            path.insert(0, (here, name))
            name = self.home[here]
        return path

    def _ordered(self, a: Node, b: Node) -> bool:
        """True if edges or the client order the two, or only one of them runs."""
        for (here, ours), (there, theirs) in zip(
            self._path(a.name), self._path(b.name), strict=False
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
        """True if the client orders the two runs."""
        return a.name in self.earlier[b.name] or b.name in self.earlier[a.name]

    # --- the whole ------------------------------------------------------------------------

    def rendered(self, edges: list[tuple[str, str]], arcs: Sequence[tuple[str, str]]) -> Picture:
        """The picture, with the reason marked in it."""
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
        # Marked lines come last, so that they cover others.
        ordered = sorted(lines.values(), key=lambda line: " " in line.kind)
        used = " ".join(line.kind for line in ordered).split()
        kinds = tuple(k for k in LEGEND if k in used or (k == "racing" and self.racing))
        label = f"graph of {self.test.name}: {len(self.test.effects)} effects"
        return Picture(svg(top, ordered, label), kinds)


def _order(node: Node) -> dict[str, set[str]]:
    """The order of a node's bodies: of a loop the condition before the body."""
    if not isinstance(node.attrs, LoopAttrs):
        return {}
    return {f"{node.name}/body": {f"{node.name}/condition"}}


def _changes(node: Node) -> bool:
    """True if a node changes its resource; every queue op but Size does."""
    on_queue = node.definition.on == "queue" and not node.definition.sizes
    return on_queue or node.definition.kind.writes


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, MOST_CHARACTERS, subsequent_indent="  ") or [""]
