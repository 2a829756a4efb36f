"""A schedule as a table: a row for each event, a column for each chain of the test's picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import bodies
from litmusfuzz.corpus.schedule import BEGIN, kernel_of, need, node_of, part_of, switches
from litmusfuzz.reports.structure import Structure
from litmusfuzz.reports.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.reports.structure import Level


OF_NO_CHAIN: Final = -1
"""In place of a chain: an op that an optimizer has added in the place of pure ops, which no chain
has."""


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """One event.

    Parameters
    ----------
    event : Decision
    column : int
    text : str
        The statement of the op that begins, or the point that it passes.
    switch : str
        The op that another one interrupts after this event; "" if none does.
    """

    event: Decision
    column: int
    text: str
    switch: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleTable:
    """A schedule for people.

    Parameters
    ----------
    need : str
        What the outcome needs, in a line: which switch, or none.
    columns : tuple of str
        Titles: the chains as the picture of the test has them, with their runs if there are
        several.
    rows : tuple of ScheduleRow
    """

    need: str
    columns: tuple[str, ...]
    rows: tuple[ScheduleRow, ...]

    def cells(self) -> list[list[str]]:
        """The rows as texts: number, one cell for each column, the switch."""
        return [
            [
                str(number),
                *(row.text if column == row.column else "" for column in range(len(self.columns))),
                row.switch and f"<- switch inside {row.switch}",
            ]
            for number, row in enumerate(self.rows, 1)
        ]

    @property
    def titles(self) -> list[str]:
        """Titles of `cells`."""
        return ["", *self.columns, ""]

    def lines(self) -> list[str]:
        """The table as lines of text."""
        return table(self.titles, self.cells()).splitlines()

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `lines` has."""
        events = [
            {
                "run": row.event.run,
                "node": row.event.node,
                "instance": row.event.instance,
                "point": row.event.point,
                "again": row.event.again,
                "column": row.column,
                "text": row.text,
                "switch": bool(row.switch),
            }
            for row in self.rows
        ]
        return {"needs": self.need, "columns": list(self.columns), "events": events}


def schedule_table(test: LitmusTest, events: Sequence[Decision]) -> ScheduleTable:
    """The table of a schedule, which has the events of nodes of the test."""
    structure = Structure(test)
    chains = {graph.name: _chains(structure, graph.nodes) for graph in test.graphs}
    graphs = {run.name: run.graph for run in test.runs}
    only = test.runs[0].name
    several = len(test.runs) > 1
    places = []
    for event in events:
        run = event.run or only
        places.append((run, chains[graphs[run]].get(node_of(test, event), OF_NO_CHAIN)))
    runs = list(graphs)
    used = sorted(set(places), key=lambda each: (runs.index(each[0]), each[1]))
    titles = [f"{run}: {_title(chain)}" if several else _title(chain) for run, chain in used]
    inside = switches(events)
    rows = []
    for position, (event, place) in enumerate(zip(events, places, strict=True)):
        node = structure.nodes[node_of(test, event)]
        kernel = kernel_of(event)
        part = part_of(event)
        called = f"{kernel} of the cluster of {node.name}" if kernel else node.name
        if part:
            called += f", {part}"
        if place[1] == OF_NO_CHAIN:
            called = event.node.rpartition("/")[2]
        begins = event.point == BEGIN and not kernel and not part and place[1] != OF_NO_CHAIN
        text = structure.statement(node) if begins else called
        if event.point != BEGIN or part:
            text += f": {event.point}"
        if event.instance:
            text += f"   [{event.instance.rpartition('.')[2]}]"
        switch = (kernel or node.op) if position in inside else ""
        rows.append(ScheduleRow(event, used.index(place), text, switch))
    return ScheduleTable(need(test, events), tuple(titles), tuple(rows))


def schedule_of(entry: Entry) -> ScheduleTable | None:
    """The schedule in a finding's file; None if it has none, or not by names."""
    recorded = entry.finding.schedule if entry.finding is not None else None
    if recorded is None or not recorded.events:
        return None
    return schedule_table(entry.test, recorded.events)


def _title(chain: int) -> str:
    return "added by an optimizer" if chain == OF_NO_CHAIN else f"chain {chain}"


def _chains(structure: Structure, nodes: tuple[Node, ...]) -> dict[str, int]:
    """For each node of a graph, those in bodies included, its chain in the picture."""
    level = structure.level(nodes)
    found = {}
    for number, chain in enumerate(level.chains("")):
        for unit in chain:
            for name in _members(level, unit):
                found.update(dict.fromkeys(_names(level.nodes[name]), number))
    return found


def _members(level: Level, unit: str) -> set[str]:
    """An effect; or a section or cluster with all that is inside."""
    if unit not in level.groups:
        return {unit}
    inner = set[str]().union(*(_members(level, each) for each in level.groups[unit]))
    return inner | ({unit} & level.nodes.keys())


def _names(node: Node) -> Iterator[str]:
    """A node, and those in its bodies."""
    yield node.name
    for _, body in bodies(node):
        for each in body.nodes:
            yield from _names(each)
