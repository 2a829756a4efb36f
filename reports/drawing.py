"""A litmus test, drawn: as columns of text, and as DOT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    Cluster,
    Graph,
    LoopAttrs,
    Mutex,
    Queue,
    all_nodes,
    bodies,
    captures_of,
    clusters_of,
    predecessors,
)
from litmusfuzz.corpus.ops import (
    ConstAttrs,
    CountAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.reports.text import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Resource
    from litmusfuzz.corpus.ops import Nested

DEFAULT_PARALLEL: Final = 10

_SIGNS = {
    "AssignVariableOp": "=",
    "AssignAddVariableOp": "+=",
    "AssignSubVariableOp": "-=",
    "ResourceScatterUpdate": "=",
    "ResourceScatterAdd": "+=",
    "ResourceScatterSub": "-=",
    "ResourceScatterMul": "*=",
    "ResourceScatterMin": "min=",
    "ResourceScatterMax": "max=",
    "ResourceStridedSliceAssign": "=",
    "AddV2": "+",
    "Sub": "-",
    "Mul": "*",
    "Less": "<",
    "Equal": "==",
}


def text(test: LitmusTest) -> str:
    """The test as people write it: resources, then a column for each chain.

    A chain is a path of effects, each ordered before the next. What else an
    effect waits for stands behind it as ``after``. What stands below a loop or
    conditional comes after what it takes of it: instances inside may still be
    running. Bodies stand below their
    loop or conditional, chains in them one below another, with ``||`` between;
    members of a critical section or cluster likewise below its name.
    """
    lines = [test.name]
    lines += [f"  {line}" for line in test.description.splitlines()]
    lines += [f"  {line}" for line in declarations(test)]
    several = len(test.graphs) > 1 or bool(test.client)
    drawing = Drawing(test)
    for graph in test.graphs:
        columns = [[f"| {line}" for line in chain] for chain in drawing.chains(graph.nodes)]
        height = max((len(c) for c in columns), default=0)
        rows = [[c[i] if i < len(c) else "" for c in columns] for i in range(height)]
        lines.append("")
        if several:
            lines.append(f"  graph {graph.name}:")
        lines += [f"  {line}" for line in table(_headers(columns), rows).splitlines()]
        if not columns:
            lines.append(f"  {graph.name} touches no resource")
        for cluster in clusters_of(all_nodes(graph.nodes), test.clusters):
            members = ", ".join(cluster.members)
            lines.append(f"  cluster {cluster.name}: {members}   (made one node in this order)")
    if several:
        lines += ["", "  the client runs:"]
    for run in test.runs if several else ():
        # Runs without a path between them are concurrent.
        after = f"   after {', '.join(run.after)}" if run.after else ""
        of = f": graph {run.graph}" if run.name != run.graph else ""
        lines.append(f"    {run.name}{of}{after}")
    named = {key.rpartition(".")[2] for key in test.observe}
    others = [
        n
        for graph in test.graphs
        for n in graph.nodes
        if n.name in named and not n.definition.has_effect
    ]
    lines += [""] if several and others else []
    lines += [f"  {n.name} = {expression(test, n.name, top=True)}" for n in others]
    observed = f"reads {', '.join(test.observe)} and " if test.observe else ""
    queues = " and queue" if test.queues else ""
    lines += ["", f"  observed: {observed}the final value of every variable{queues}"]
    return "\n".join(lines)


def declarations(test: LitmusTest) -> list[str]:
    """A line for each resource: its type, and what it holds at first."""
    lines = [
        f"{variable.name}: {variable.type} = {_literal(variable.init)}{_on(variable)}"
        for variable in test.variables
    ]
    lines += [f"{mutex.name}: mutex{_on(mutex)}" for mutex in test.mutexes]
    for queue in test.queues:
        held = ", ".join(_literal(each) for each in queue.init)
        lines.append(f"{queue.name}: queue of {queue.capacity} {queue.type} = [{held}]{_on(queue)}")
    return lines


def _headers(columns: list[list[str]]) -> list[str]:
    return [f"| chain {i}" for i in range(len(columns))]


def statement(test: LitmusTest, node: Node) -> str:
    """One effect, as a statement; of a loop or conditional, its first line."""
    return Drawing(test).statement(node)


def expression(test: LitmusTest, name: str, *, top: bool = False) -> str:
    """A node's value in terms of reads and constants."""
    return Drawing(test).expression(name, top=top)


def _literal(value: Nested) -> str:
    return str(value).replace("(", "[").replace(")", "]").replace(",]", "]")


def _on(placed: Resource | Node) -> str:
    return f" on {placed.device}" if placed.device else ""


def _rows(node: Node) -> str:
    if isinstance(node.attrs, RowsAttrs):
        return f"[{','.join(map(str, node.attrs.indices))}]"
    if isinstance(node.attrs, SliceAttrs):
        return f"[{node.attrs.begin}:{node.attrs.end}:{node.attrs.strides}]"
    return ""


class Drawing:
    """Draws the parts of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        everything = list(test.nodes)
        self.nodes = {n.name: n for n in everything}
        # Names inside bodies for values from outside.
        self.outer = {inner: outer for n in everything for inner, outer in captures_of(n)}

    def source(self, name: str) -> str:
        """What a name stands for outside of the bodies that only take it."""
        while name in self.outer:
            name = self.outer[name]
        return name

    def expression(self, name: str, *, top: bool = False, depth: int = 0) -> str:
        """A value in terms of reads, carried values and constants."""
        name = self.source(name)
        node = self.nodes.get(name)
        if node is None:  # a carried value, or a result
            return name
        if isinstance(node.attrs, ConstAttrs):
            return _literal(node.attrs.value)
        if node.definition.has_effect or depth > 6:
            return node.name
        if node.definition.kind is Kind.TRANSFER:
            return self.expression(node.inputs[0], top=top, depth=depth)
        values = [self.expression(i, depth=depth + 1) for i in node.inputs]
        if node.op == "Identity" and not top:
            return values[0]
        sign = _SIGNS.get(node.op)
        if sign:
            joined = f" {sign} ".join(values)
            return joined if top else f"({joined})"
        return f"{node.op}({', '.join(values)})"

    def statement(self, node: Node) -> str:
        """One effect, as a statement; of a loop or conditional, its first line."""
        if isinstance(node.attrs, BranchAttrs):
            return f"{node.name}: if {self.expression(node.inputs[0], top=True)}"
        if isinstance(node.attrs, LoopAttrs):
            carried = ", ".join(
                f"{name} = {self.expression(source)}"
                for name, source in zip(node.attrs.carried, node.inputs, strict=True)
            )
            most = node.attrs.parallel_iterations
            few = "" if most == DEFAULT_PARALLEL else f"   (parallel_iterations {most})"
            return f"{node.name}: for {carried}{few}"
        if isinstance(node.attrs, SectionAttrs):
            members = ", ".join(node.attrs.members)
            return f"{node.name}: lock {node.resources[0]} around {members}"
        target = node.resources[0] + _rows(node)
        result = self.test.types[node.name] is not None
        if node.definition.on == "queue":
            op = node.op.removeprefix("Queue").removesuffix("V2")
            given = [self.expression(name) for name in node.inputs]
            given += [str(node.attrs.count)] if isinstance(node.attrs, CountAttrs) else []
            return f"{node.name}{' = ' if result else ': '}{target}.{op}({', '.join(given)})"
        if result:
            nd = " (Nd)" if node.op == "ResourceGatherNd" else ""
            return f"{node.name} = {target}{nd}"
        values = [self.expression(name) for name in node.inputs]
        sign = _SIGNS.get(node.op.replace("ScatterNd", "Scatter"))
        if sign:
            nd = " (Nd)" if "ScatterNd" in node.op else ""
            return f"{node.name}: {target} {sign} {values[0]}{nd}"
        if node.op == "ResourceApplyGradientDescent":
            return f"{node.name}: {target} -= {values[0]} * {values[1]}"
        named = [f"{r}={v}" for r, v in zip(node.definition.operands, values, strict=True)]
        if isinstance(node.attrs, MomentumAttrs) and node.attrs.use_nesterov:
            named.append("nesterov")
        op = node.op.removeprefix("Resource")
        return f"{node.name}: {op}({', '.join([*node.resources, *named])})"

    def inside(self, node: Node) -> list[str]:
        """The lines below a loop's or conditional's first."""
        lines: list[str] = []
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            for word, (_, body) in zip(("then", "else"), bodies(node), strict=True):
                lines += [f"  {word}", *self.body(body, attrs.results)]
        elif isinstance(attrs, LoopAttrs):
            (condition,) = attrs.condition.results
            tested = self.expression(condition, top=True)
            tests = self.stacked(attrs.condition.nodes)
            lines += ["  while", *tests, f"    {tested}"] if tests else [f"  while {tested}"]
            following = tuple(f"next {name}" for name in attrs.carried)
            lines += ["  do", *self.body(attrs.body, following)]
        return lines

    def body(self, body: Body, results: tuple[str, ...]) -> list[str]:
        """Its effects, and what it returns under which names."""
        level = Level(body.nodes, clusters_of(body.nodes, self.test.clusters))
        lines = self.stacked(body.nodes)
        for name, value in zip(results, body.results, strict=True):
            shown = self.expression(value, top=True)
            waits = level.implied(value.partition(".")[0], frozenset(re.findall(r"\w+", shown)))
            lines.append(f"    {name} = {shown}{_after(waits)}")
        return lines

    def stacked(self, nodes: tuple[Node, ...]) -> list[str]:
        """Chains one below another."""
        lines: list[str] = []
        for chain in self.chains(nodes):
            lines += ["    ||"] if lines else []
            lines += [f"    {line}" for line in chain]
        return lines

    def chains(self, nodes: tuple[Node, ...]) -> list[list[str]]:
        """Lines for each chain of the effects of one graph or body."""
        return self.level(Level(nodes, clusters_of(nodes, self.test.clusters)), "")

    def level(self, level: Level, group: str) -> list[list[str]]:
        """Lines for each chain directly in a group; "" for none."""
        found: list[list[str]] = []
        for chain in level.chains(group):
            lines: list[str] = []
            for position, unit in enumerate(chain):
                first, *more = self.unit(level, unit)
                waits = self.named(level, unit, level.waits(unit, chain[:position]))
                lines += [first + _after(waits), *more]
            found.append(lines)
        return found

    def named(self, level: Level, unit: str, waits: list[str]) -> list[str]:
        """What it waits for, with what is no node beside it: results, carried and taken values."""
        node = level.nodes.get(unit)
        if node is None:
            return waits
        given = [self.source(name) for name in node.after if name not in level.nodes]
        results = {name.partition(".")[0] for name in given if "." in name} - set(node.after)
        # A result leaves by itself: to wait for it is not to wait for all of its node.
        kept = [name for name in waits if name not in results]
        return [*kept, *(name for name in given if self.waited(name))]

    def waited(self, name: str) -> bool:
        """Whether waiting for it means something: it is no constant."""
        node = self.nodes.get(name)
        return node is None or not isinstance(node.attrs, ConstAttrs)

    def unit(self, level: Level, unit: str) -> list[str]:
        """An effect, or a section or cluster with its members below."""
        if unit not in level.groups:
            node = level.nodes[unit]
            return [self.statement(node), *self.inside(node)]
        section = level.nodes.get(unit)
        what = f"lock {section.resources[0]}" if section else "cluster"
        lines: list[str] = []
        for chain in self.level(level, unit):
            lines += ["  ||"] if lines else []
            lines += [f"  {line}" for line in chain]
        if not lines:  # of pure nodes only
            what += f" around {', '.join(sorted(level.groups[unit]))}"
        return [f"{unit}: {what}", *lines]


class Level:
    """The *units* of one graph or body: effects, sections, clusters.

    Sections and clusters are *groups*: two of them share no member, or one lies
    inside the other.
    """

    def __init__(self, nodes: tuple[Node, ...], clusters: tuple[Cluster, ...]) -> None:
        self.nodes: Mapping[str, Node] = {n.name: n for n in nodes}
        sections = [n for n in nodes if isinstance(n.attrs, SectionAttrs)]
        self.groups = {
            n.name: frozenset(n.attrs.members)
            for n in sections
            if isinstance(n.attrs, SectionAttrs)
        } | {c.name: frozenset(c.members) for c in clusters}
        self.before = _ordered(
            {n.name: above for n, above in predecessors(Graph("", nodes))}, self.groups
        )
        effects = [n.name for n in nodes if n.definition.has_effect]
        # The smallest group around a unit; of two with the same members, which
        # are a section and a cluster, the cluster lies inside.
        order = sorted(self.groups, key=lambda g: (-len(self.groups[g]), g not in self.nodes))
        inmost = {name: group for group in order for name in self.groups[group]}
        self.home = {name: inmost.get(name, "") for name in effects if name not in self.groups}
        for i, group in enumerate(order):
            around = [o for o in order[:i] if self.groups[group] <= self.groups[o]]
            self.home[group] = around[-1] if around else ""
        position = {name: i for i, name in enumerate(self.nodes)}
        for group, members in self.groups.items():
            position[group] = min(position[name] for name in members)
        self.units = sorted(self.home, key=lambda unit: position[unit])

    def chains(self, group: str) -> list[list[str]]:
        """The units directly in a group, each below one that comes before it if it can be."""
        left = [unit for unit in self.units if self.home[unit] == group]
        found: list[list[str]] = []
        while left:
            # A section may stand above what it waits for.
            unit = next(u for u in left if self.before[u].isdisjoint(left))
            left.remove(unit)
            chain = next((c for c in found if c[-1] in self.before[unit]), None)
            if chain is None:
                chain = []
                found.append(chain)
            chain.append(unit)
        return found

    def waits(self, unit: str, column: list[str]) -> list[str]:
        """What it waits for that its column does not tell."""
        around = self.home[unit]
        known = set(column)
        for each in column:
            known |= self.before[each] | self.inner(each)
        while around:
            known |= self.before[around]
            around = self.home[around]
        return self.reduced(set(self.before[unit]) - known)

    def implied(self, node: str, shown: frozenset[str]) -> list[str]:
        """What a value waits for that is not among the names in it."""
        told = set(shown).union(*(self.before.get(name, frozenset()) for name in shown))
        return self.reduced(set(self.before.get(node, frozenset())) - told)

    def reduced(self, names: set[str]) -> list[str]:
        """The units among them that say it all."""
        extra = names & self.home.keys()
        # A group's name says it of all members.
        extra -= {name for group in extra & self.groups.keys() for name in self.inner(group)}
        # Only what nothing else implies.
        return sorted(e for e in extra if not any(e in self.before[other] for other in extra))

    def inner(self, group: str) -> set[str]:
        """All units in a group; of an effect none."""
        mine = {unit for unit, home in self.home.items() if home == group}
        return mine.union(*(self.inner(unit) for unit in mine & self.groups.keys()))


def _after(names: list[str]) -> str:
    return f"   (after {', '.join(names)})" if names else ""


def _ordered(
    above: Mapping[str, frozenset[str]], groups: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """All that comes before each node and group, groups among them.

    A group begins after what it waits for: a section as a node, a cluster what
    any member does; whoever waits for a section, or for a member of a cluster,
    waits for all its members.
    """
    before = {name: set(up) for name, up in above.items()}
    clusters = {name: members for name, members in groups.items() if name not in above}
    for name, members in clusters.items():
        before[name] = set().union(*(above[m] for m in members)) - members
    changed = bool(groups)
    while changed:
        changed = False
        for name, up in before.items():
            size = len(up)
            for cluster, members in clusters.items():
                if up & members and name not in members and name != cluster:
                    up.add(cluster)
            for group in groups:
                if group in up:
                    up |= groups[group]
                if name in groups[group]:
                    up |= before[group]
            for other in list(up):
                up |= before[other]
            if name in clusters:
                up -= clusters[name]
            changed |= len(up) != size
    return {name: frozenset(up) for name, up in before.items()}


# --- DOT -------------------------------------------------------------------------------


def dot(test: LitmusTest) -> str:
    """The graph in Graphviz's language: data edges solid, control edges dashed.

    Bodies, sections, XLA's clusters, graphs and the client are boxes around what
    they hold; a dotted arrow back is what a body returns.
    """
    return "\n".join(
        [
            f"digraph {_quoted(test.name)} {{",
            '  graph [rankdir="TB", fontname="sans-serif"];',
            '  node [shape=box, fontname="sans-serif"];',
            *(f"  {line}" for line in _Dot(test).lines()),
            "}",
        ]
    )


class _Dot:
    """The statements of a test's drawing in DOT."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.drawing = Drawing(test)

    def lines(self) -> list[str]:
        test = self.test
        lines = []
        for variable in test.variables:
            label = f"{variable.name}: {variable.type} = {_literal(variable.init)}"
            lines.append(_node(f"var {variable.name}", label, "cylinder"))
        held: tuple[Mutex | Queue, ...] = (*test.mutexes, *test.queues)
        for resource in held:
            kind = "mutex"
            if isinstance(resource, Queue):
                elements = ", ".join(_literal(each) for each in resource.init)
                kind = f"queue of {resource.capacity} {resource.type} = [{elements}]"
            lines.append(_node(f"var {resource.name}", f"{resource.name}: {kind}", "cylinder"))
        several = len(test.graphs) > 1 or bool(test.client)
        for graph in test.graphs:
            inside = self.level(graph.nodes)
            lines += (
                _box(f"graph {graph.name}", f"graph {graph.name}", inside) if several else inside
            )
        if several:
            client = [_node(f"run {r.name}", f"{r.name}: {r.graph}", "oval") for r in test.runs]
            client += [_edge(f"run {a}", f"run {r.name}") for r in test.runs for a in r.after]
            lines += _box("client", "client", client)
        edges = [edge for graph in test.graphs for edge in self.edges(graph.nodes)]
        return [*lines, *dict.fromkeys(edges)]

    def level(self, nodes: tuple[Node, ...]) -> list[str]:
        """The nodes of one graph or body, with the boxes in it."""
        groups: dict[str, tuple[str, ...]] = {
            n.name: n.attrs.members for n in nodes if isinstance(n.attrs, SectionAttrs)
        }
        groups |= {c.name: c.members for c in clusters_of(nodes, self.test.clusters)}
        # The smallest group around a node, or around a smaller group, holds it;
        # of two with the same members the later one lies inside.
        order = sorted(groups, key=lambda g: -len(groups[g]))
        home: dict[str, str] = {}
        for group in order:
            for name in groups[group]:
                home[name] = group
        parent = {
            group: next(
                (o for o in reversed(order[:i]) if set(groups[group]) <= set(groups[o])), ""
            )
            for i, group in enumerate(order)
        }

        def within(group: str) -> list[str]:
            lines: list[str] = []
            for node in nodes:
                is_group = node.name in groups
                if (node.name if is_group else home.get(node.name, "")) == group:
                    lines += self.node(node)
            for other in order:
                if parent[other] == group:
                    section = next((n for n in nodes if n.name == other), None)
                    what = f"lock {section.resources[0]}" if section else "cluster"
                    lines += _box(f"group {other}", f"{other}: {what}", within(other))
            return lines

        return within("")

    def node(self, node: Node) -> list[str]:
        """A node, with its bodies around it."""
        label = node.op
        if node.definition.has_effect:
            label = self.drawing.statement(node) + "\n" + node.op
        elif isinstance(node.attrs, ConstAttrs):
            label = self.drawing.expression(node.name)
        elif node.definition.kind is Kind.TRANSFER:
            label += _on(node)
        fill = ", style=filled, fillcolor=coral" if node.definition.has_effect else ""
        lines = [f"{_quoted(node.name)} [label={_quoted(label)}{fill}];"]
        if isinstance(node.attrs, LoopAttrs):
            lines += [_node(name, f"{name} (carried)", "ellipse") for name in node.attrs.carried]
        words = {"condition": "while", "body": "do"}
        for name, body in bodies(node):
            word = words.get(name, name)
            lines += _box(f"{name} {node.name}", f"{node.name}: {word}", self.level(body.nodes))
        return _box(f"node {node.name}", node.name, lines) if bodies(node) else lines

    def edges(self, nodes: tuple[Node, ...]) -> Iterator[str]:
        """The edges between nodes, of bodies too."""
        for node in nodes:
            for name in dict.fromkeys(self.base(i) for i in node.inputs):
                yield _edge(name, node.name)
            for name in dict.fromkeys(self.base(a) for a in node.after):
                yield _edge(name, node.name, "style=dashed")
            for name in node.resources:
                yield _edge(f"var {name}", node.name, "style=dotted, arrowhead=none")
            if isinstance(node.attrs, LoopAttrs):
                for name in node.attrs.carried:
                    yield _edge(node.name, name)
            for field_name, body in bodies(node):
                yield from self.edges(body.nodes)
                targets: tuple[str, ...] = (node.name,) * len(body.results)
                if isinstance(node.attrs, LoopAttrs) and field_name == "body":
                    targets = node.attrs.carried
                for name, target in zip(body.results, targets, strict=True):
                    # Against the grain: not part of the layout.
                    yield _edge(self.base(name), target, "style=dotted, constraint=false")

    def base(self, reference: str) -> str:
        """The node that a reference goes to: of a result its node, of what is taken its source."""
        return self.drawing.source(reference).partition(".")[0]


def _node(name: str, label: str, shape: str) -> str:
    return f"{_quoted(name)} [label={_quoted(label)}, shape={shape}];"


def _edge(source: str, target: str, attributes: str = "") -> str:
    behind = f" [{attributes}]" if attributes else ""
    return f"{_quoted(source)} -> {_quoted(target)}{behind};"


def _box(name: str, label: str, inside: list[str]) -> list[str]:
    """A subgraph that Graphviz draws a box around: that is what the word cluster asks for."""
    return [
        f"subgraph {_quoted('cluster ' + name)} {{",
        f"  label={_quoted(label)};",
        *(f"  {line}" for line in inside),
        "}",
    ]


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
