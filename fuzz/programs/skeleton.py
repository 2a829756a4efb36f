"""Skeletons: the accesses of a program as a litmus test, with each pure part one op, Opaque.

Accesses of other variables, pure ops, calls, branches and loops are contracted: what remains are
the accesses that were chosen, the order that edges impose on them, transitively, and for each
written value the reads that it depends on. So values say who read what.

References
----------
semantics.md, section 2. `litmusfuzz.corpus.pure.opaque`: equal parts of equal inputs are equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import Graph, LitmusTest, MalformedTest, Node, Run, Variable
from litmusfuzz.corpus.ops import ConstAttrs, Kind, PureAttrs
from litmusfuzz.corpus.pure.opaque import term
from litmusfuzz.fuzz.programs.anomalies import Site
from litmusfuzz.fuzz.programs.effects import Access
from litmusfuzz.fuzz.programs.order import bits, exclusive, ranked
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.model import EXECUTOR
from litmusfuzz.oracles.reference import outcome_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.programs.anomalies import Analyzed, Anomaly, Scenario
    from litmusfuzz.fuzz.programs.expansion import Instance

MAX_ACCESSES: Final = 40
"""Accesses of a skeleton that is made for a report."""
_MOST_ADDED: Final = 12
"""Updates of one variable that stay AssignAdd: sums of terms must stay below 2**24."""
_DTYPE: Final = "int32"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A litmus test, and what its parts stand for.

    Parameters
    ----------
    test : LitmusTest
    nodes : mapping
        For each access the nodes that stand for it, in order: an update that TensorFlow makes in
        one step, and that litmus tests do not have, is a read and a write.
    variables : mapping
        Names in the program by names in the test.
    exact : bool
        True if no update is split that TensorFlow makes in one step.
    """

    test: LitmusTest
    nodes: Mapping[Site, tuple[str, ...]]
    variables: Mapping[str, str]
    exact: bool


def skeleton(
    sides: Sequence[Analyzed], sites: Collection[Site], name: str = "skeleton", salt: int = 0
) -> Skeleton:
    """The skeleton of some accesses of concurrent runs.

    Parameters
    ----------
    sides : sequence of Analyzed
        The runs; two of one program may be the same.
    sites : collection of Site
        The accesses that remain. No two of one run exclude each other.
    name : str
        Of the test.
    salt : int
        Chooses the numbers of terms, should two collide.

    Raises
    ------
    MalformedTest
        If the test would be too large.
    """
    return _Maker(sides, sorted(sites), salt).made(name)


class _Maker:
    def __init__(self, sides: Sequence[Analyzed], sites: Sequence[Site], salt: int) -> None:
        self.sides = sides
        self.sites = sites
        self.salt = salt
        resources = dict.fromkeys(self.access(site).resource.name for site in sites)
        self.variables = {resource: f"v{n}" for n, resource in enumerate(resources)}
        added: dict[str, int] = dict.fromkeys(resources, 0)
        for site in sites:
            added[self.access(site).resource.name] += self.access(site).effect.group == "add"
        self.many = {resource for resource, count in added.items() if count > _MOST_ADDED}
        self.labels: dict[str, int] = {}
        self.nodes: dict[Site, tuple[str, ...]] = {}
        self.observed: list[str] = []
        self.exact = True

    def access(self, site: Site) -> Instance:
        return self.sides[site.side].run.accesses[site.number]

    def made(self, name: str) -> Skeleton:
        graphs = []
        several = len(self.sides) > 1
        for number in range(len(self.sides)):
            nodes = self.side(number)
            graphs.append(Graph(f"g{number}", tuple(nodes)))
        runs = tuple(Run(f"run{n}", f"g{n}") for n in range(len(graphs))) if several else ()
        variables = tuple(
            Variable(short, _DTYPE, (), term(-1 - place, self.salt, ()))
            for place, short in enumerate(self.variables.values())
        )
        test = LitmusTest(
            name,
            variables,
            tuple(graphs),
            tuple(f"run{each[1]}.{each}" if several else each for each in self.observed),
            f"Accesses of {', '.join(dict.fromkeys(side.run.name for side in self.sides))}"[:200],
            client=runs,
        )
        back = {short: resource for resource, short in self.variables.items()}
        return Skeleton(test, self.nodes, back, self.exact)

    def side(self, side: int) -> list[Node]:
        """The nodes of one run."""
        analyzed = self.sides[side]
        mine = [site for site in self.sites if site.side == side]
        chosen = sum(1 << site.number for site in mine)
        nodes: list[Node] = []
        last: dict[int, str] = {}  # by access: its last node
        read: dict[int, str] = {}
        for site in mine:
            number, access = site.number, self.access(site)
            before = analyzed.order.before[number] & chosen
            near = before
            for other in reversed(list(bits(before))):
                if near >> other & 1:
                    near &= ~analyzed.order.before[other]
            after = tuple(last[other] for other in bits(near))
            inputs = [
                read[other]
                for other in bits(analyzed.order.values[number] & chosen)
                if other in read
            ]
            made = self.nodes_of(f"{side}_{number}", access, inputs, after)
            nodes += made
            effects = [node.name for node in made if node.resources]
            self.nodes[site] = tuple(effects)
            last[number] = effects[-1]
            if access.effect.shows:
                read[number] = effects[0]
                self.observed.append(effects[0])
        return nodes

    def nodes_of(
        self, name: str, access: Instance, inputs: Sequence[str], after: tuple[str, ...]
    ) -> list[Node]:
        """The nodes of one access."""
        variable = (self.variables[access.resource.name],)
        kind = access.effect.access
        if kind is Access.READ:
            return [Node(f"r{name}", "ReadVariableOp", (), variable, after)]
        if kind is Access.WRITE:
            value = self.value(f"t{name}", access, inputs)
            write = Node(f"w{name}", "AssignVariableOp", (value.name,), variable, after)
            return [value, write]
        adds = access.effect.group == "add" and access.resource.name not in self.many
        if adds and not access.effect.split and not access.effect.shows:
            value = self.value(f"t{name}", access, inputs)
            return [value, Node(f"w{name}", "AssignAddVariableOp", (value.name,), variable, after)]
        self.exact = self.exact and access.effect.split
        old = Node(f"r{name}", "ReadVariableOp", (), variable, after)
        value = self.value(f"t{name}", access, [old.name, *inputs])
        write = Node(f"w{name}", "AssignVariableOp", (value.name,), variable, (old.name,))
        return [old, value, write]

    def value(self, name: str, access: Instance, inputs: Sequence[str]) -> Node:
        """The pure part that computes an access's operand."""
        plain = re.sub(r"\[\d+\]", "", access.name)
        key = access.constant.hex() if access.constant and not inputs else plain
        label = self.labels.setdefault(key, len(self.labels))
        if not inputs:
            return Node(name, "Const", attrs=ConstAttrs(_DTYPE, (), term(label, self.salt, ())))
        attrs = PureAttrs((("label", label), ("salt", self.salt)))
        return Node(name, "Opaque", tuple(inputs), attrs=attrs)


def chosen_sites(scenario: Scenario, anomaly: Anomaly) -> list[Site]:
    """The accesses of an anomaly's variables that can happen together with its example.

    If they are too many, those of the example only.
    """
    guards = [(site.side, scenario.access(site).guards) for site in anomaly.sites]
    names = {scenario.access(site).resource.name for site in anomaly.sites}
    found = {
        Site(side, number): access
        for side, each in enumerate(scenario.sides)
        for number, access in enumerate(each.run.accesses)
        if access.resource.name in names and access.effect.known
    }
    kept = [
        site
        for site, access in found.items()
        if not any(side == site.side and exclusive(g, access.guards) for side, g in guards)
    ]
    for place, site in enumerate(kept):  # of others that exclude each other, the first
        access = found[site]
        if any(
            other.side == site.side and exclusive(found[other].guards, access.guards)
            for other in kept[:place]
        ):
            return list(anomaly.sites)
    return kept if len(kept) <= MAX_ACCESSES else list(anomaly.sites)


@dataclass(frozen=True, slots=True)
class Followed:
    """One order of an anomaly's example: its outcome in the skeleton, and who read what.

    Parameters
    ----------
    outcome : Outcome
    seen : mapping
        For each read of the example, by its number there, and each final value: what it is.
    origins : mapping
        The same; of a value of another access also which accesses of the example it comes from.
    """

    outcome: Outcome
    seen: Mapping[str, str]
    origins: Mapping[str, str]


def followed(made: Skeleton, anomaly: Anomaly, order: Sequence[int]) -> Followed | None:
    """The outcome of a total order in which the example's accesses come in that order.

    None if there is no such total order.
    """
    wanted = [anomaly.sites[place] for place in order]
    sites = _extension(made, wanted)
    if sites is None:
        return None
    several = len(made.test.graphs) > 1
    events = {(event.run, event.node.name): event for event in unfold(made.test, EXECUTOR).events}
    places = tuple(
        events[f"run{site.side}" if several else "", node]
        for site in sites
        for node in made.nodes[site]
    )
    outcome = outcome_of(made.test, EXECUTOR, places)
    return Followed(outcome, *_seen(made, anomaly, sites))


def _extension(made: Skeleton, wanted: Sequence[Site]) -> list[Site] | None:
    """A total order of all accesses that has some in a given order, without delay."""
    owner = {node: site for site, nodes in made.nodes.items() for node in nodes}
    waits: dict[Site, set[Site]] = {site: set() for site in made.nodes}
    for graph in made.test.graphs:
        by_name = {node.name: node for node in graph.nodes}
        for node in graph.nodes:
            if node.name not in owner:
                continue
            todo = [*node.inputs, *node.after]
            while todo:
                name = todo.pop()
                if name in owner:
                    waits[owner[node.name]].add(owner[name])
                else:
                    todo += (*by_name[name].inputs, *by_name[name].after)
    for first, second in pairwise(wanted):
        waits[second].add(first)
    for site, others in waits.items():
        others.discard(site)
    # Accesses of the example as early as possible, so that others do not come between them.
    return ranked(waits, {site: place for place, site in enumerate(wanted)})


def _seen(
    made: Skeleton, anomaly: Anomaly, order: Sequence[Site]
) -> tuple[dict[str, str], dict[str, str]]:
    """Who read what in a total order, in words; and the same with the origins of other values."""
    numbers = {site: place + 1 for place, site in enumerate(anomaly.sites)}
    nodes = {node.name: node for graph in made.test.graphs for node in graph.nodes}
    holds: dict[str, str] = {}
    origins: dict[str, frozenset[int]] = {}  # of what a variable holds, or a node reads
    last_of_example: dict[str, str] = {}
    found: dict[str, str] = {}
    for site in order:
        names = made.nodes[site]
        variable = nodes[names[0]].resources[0]
        if site in numbers and nodes[names[0]].definition.whole_read and len(names) == 1:
            found[f"{numbers[site]} reads"] = holds.get(variable, "the initial value")
        own = origins.get(variable, frozenset())
        if nodes[names[0]].definition.whole_read:
            origins[names[0]] = own
        last = nodes[names[-1]]
        if last.definition.kind.writes:
            who = f"the value of {numbers[site]}" if site in numbers else "another value"
            holds[variable] = who
            flows = [origins[name] for name in _reads_into(last, nodes)]
            flows += [own] if last.definition.kind is Kind.UPDATE else []
            flows += [frozenset({numbers[site]})] if site in numbers else []
            origins[variable] = frozenset().union(*flows)
            if site in numbers:
                last_of_example[variable] = who
    deeper = dict(found)
    for site in numbers:
        variable = nodes[made.nodes[site][0]].resources[0]
        if variable in last_of_example:
            name = f"{made.variables[variable]} ends as"
            found[name] = deeper[name] = holds[variable]
            if holds[variable] == "another value":
                deeper[name] += f", {_from(origins[variable])}"
    return found, deeper


def _reads_into(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """The reads whose values a node is given, through pure ops."""
    found, todo = [], list(node.inputs)
    while todo:
        source = nodes[todo.pop()]
        if source.resources:
            found.append(source.name)
        else:
            todo += source.inputs
    return found


def _from(numbers: frozenset[int]) -> str:
    if not numbers:
        return "which comes from none of them"
    return f"which comes from {' and '.join(map(str, sorted(numbers)))}"


def decided(scenario: Scenario, anomaly: Anomaly) -> tuple[Skeleton, list[Followed]] | None:
    """The skeleton of an anomaly, and the outcomes of its two orders.

    None where a litmus test cannot have it: nothing then is decided but the order.
    """
    if any(not scenario.access(site).effect.known for site in anomaly.sites):
        return None
    if any(scenario.access(site).resource.kind != "variable" for site in anomaly.sites):
        return None
    try:
        made = skeleton(scenario.sides, chosen_sites(scenario, anomaly))
    except MalformedTest:
        return None
    both = [followed(made, anomaly, order) for order in anomaly.orders]
    if any(each is None for each in both):
        return None
    return made, [each for each in both if each is not None]
