"""Statements, units and chains of a test's graphs: the analysis that all drawings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LoopAttrs,
    bodies,
    captures_of,
    clusters_of,
    head,
    predecessors,
)
from litmusfuzz.corpus.ops import (
    ConstAttrs,
    CountAttrs,
    HandleAttrs,
    Kind,
    MomentumAttrs,
    PureAttrs,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import Body, LitmusTest, Node, Resource, Run
    from litmusfuzz.corpus.ops import Nested

DEFAULT_PARALLEL: Final = 10
"""Value of `parallel_iterations` that a statement leaves out."""

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


def literal(value: Nested | str) -> str:
    """Nested tuples as lists."""
    return str(value).replace("(", "[").replace(")", "]").replace(",]", "]")


def on_device(placed: Resource | Node) -> str:
    """`` on DEVICE``, or nothing where no device is named."""
    return f" on {placed.device}" if placed.device else ""


def _rows(node: Node) -> str:
    if isinstance(node.attrs, RowsAttrs):
        return f"[{','.join(map(str, node.attrs.indices))}]"
    if isinstance(node.attrs, SliceAttrs):
        return f"[{node.attrs.begin}:{node.attrs.end}:{node.attrs.strides}]"
    return ""


@dataclass(frozen=True, slots=True)
class NestedBody:
    """A body of a loop, conditional or call.

    Parameters
    ----------
    field : str
        Its name in the node: ``condition``, ``body``, ``then`` or ``else``.
    keyword : str
        ``while``, ``do``, ``then``, ``else`` or ``does``.
    body : Body
    results : tuple of str
        Names for the values of `body.results`; () of a condition.
    """

    field: str
    keyword: str
    body: Body
    results: tuple[str, ...]


def asked_of(run: Run) -> list[str]:
    """What a run fetches, targets and feeds; a phrase for each."""
    phrases = []
    if run.fetches:
        phrases.append(f"fetches {', '.join(run.fetches)}")
    if run.targets:
        phrases.append(f"targets {', '.join(run.targets)}")
    if run.feeds:
        fed = ", ".join(f"{name} = {literal(value)}" for name, value in run.feeds)
        phrases.append(f"feeds {fed}")
    return phrases


class Structure:
    """Values, statements, bodies and levels of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self.test = test
        self.nodes = {n.name: n for n in test.nodes}
        # Names inside bodies for values from outside.
        self.outer = {inner: outer for n in test.nodes for inner, outer in captures_of(n)}

    @property
    def has_client(self) -> bool:
        """True if the test has several graphs or runs, which a drawing then names."""
        return len(self.test.graphs) > 1 or bool(self.test.client)

    def observed_values(self, nodes: tuple[Node, ...]) -> list[str]:
        """Each observed node without an effect, as ``name = value``."""
        observed = {key.rpartition(".")[2] for key in self.test.observe}
        return [
            f"{node.name} = {self.expression(node.name, top=True)}"
            for node in nodes
            if node.name in observed and not node.definition.has_effect
        ]

    def level(self, nodes: tuple[Node, ...]) -> Level:
        """The units of one graph or body."""
        return Level(nodes, clusters_of(nodes, self.test.clusters))

    def bodies(self, node: Node) -> list[NestedBody]:
        """The bodies of a node, in order."""
        names: dict[str, tuple[str, tuple[str, ...]]] = {}
        if isinstance(node.attrs, BranchAttrs):
            names = {each: (each, node.attrs.results) for each in ("then", "else")}
        elif isinstance(node.attrs, LoopAttrs):
            following = tuple(f"next {name}" for name in node.attrs.carried)
            names = {"condition": ("while", ()), "body": ("do", following)}
        elif isinstance(node.attrs, CallAttrs):
            names = {"body": ("does", node.attrs.results)}
        return [
            NestedBody(name, names[name][0], body, names[name][1]) for name, body in bodies(node)
        ]

    def node_of(self, reference: str) -> str:
        """Name of the node that a reference leads to, for a result the node that has it."""
        return head(self.source(reference))

    def source(self, name: str) -> str:
        """The value that a name stands for outside of the bodies that capture it."""
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
            return literal(node.attrs.value)
        if node.definition.has_effect or node.definition.fed or depth > 6:
            return node.name
        if node.definition.kind is Kind.TRANSFER:
            return self.expression(node.inputs[0], top=top, depth=depth)
        values = [self.expression(i, depth=depth + 1) for i in node.inputs]
        if isinstance(node.attrs, HandleAttrs):
            return f"&{node.attrs.variable}"
        if node.op == "Identity" and not top:
            return values[0]
        sign = _SIGNS.get(node.op)
        if sign:
            joined = f" {sign} ".join(values)
            return joined if top else f"({joined})"
        if isinstance(node.attrs, PureAttrs):
            values += [f"{name}={literal(value)}" for name, value in node.attrs.values]
        return f"{node.op}({', '.join(values)})"

    def target(self, node: Node) -> str:
        """The resource that a node works on; through a handle, ``*HANDLE`` as well."""
        if not node.handle:
            return node.resources[0]
        return f"{'|'.join(node.resources)}(*{self.expression(node.handle, top=True)})"

    def statement(self, node: Node) -> str:
        """One effect, as a statement; of a node with bodies, its first line."""
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
        if isinstance(node.attrs, CallAttrs):
            taken = (f"{name} = {self.expression(outer)}" for name, outer in node.attrs.captures)
            return f"{node.name}: call({', '.join(taken)})"
        if isinstance(node.attrs, SectionAttrs):
            members = ", ".join(node.attrs.members)
            return f"{node.name}: lock {node.resources[0]} around {members}"
        target = self.target(node) + _rows(node)
        result = self.test.types[node.name] is not None
        if node.definition.on == "accumulator":
            op = node.op.removeprefix("ResourceAccumulator")
            given = [self.expression(name) for name in node.inputs]
            return f"{node.name}{' = ' if result else ': '}{target}.{op}({', '.join(given)})"
        if node.definition.on == "queue":
            op = node.op.removeprefix("Queue").removesuffix("V2")
            given = [self.expression(name) for name in node.inputs]
            given += [str(node.attrs.count)] if isinstance(node.attrs, CountAttrs) else []
            return f"{node.name}{' = ' if result else ': '}{target}.{op}({', '.join(given)})"
        if result:
            nd = " (Nd)" if node.definition.nd else ""
            return f"{node.name} = {target}{nd}"
        values = [self.expression(name) for name in node.inputs]
        sign = _SIGNS.get(node.op.replace("ScatterNd", "Scatter"))
        if sign:
            nd = " (Nd)" if node.definition.nd else ""
            return f"{node.name}: {target} {sign} {values[0]}{nd}"
        if node.op == "ResourceApplyGradientDescent":
            return f"{node.name}: {target} -= {values[0]} * {values[1]}"
        named = [f"{r}={v}" for r, v in zip(node.definition.operands, values, strict=True)]
        if isinstance(node.attrs, MomentumAttrs) and node.attrs.use_nesterov:
            named.append("nesterov")
        op = node.definition.short_name
        targets = [target] if node.handle else node.resources
        return f"{node.name}: {op}({', '.join([*targets, *named])})"


class Level:
    """The *units* of one graph or body: effects, sections, clusters.

    Sections and clusters are *groups*: two groups share no member, or one lies inside the
    other. `groups` has the members of each, `group_order` outer groups before those inside;
    `inmost` the smallest group around each member; `home` the smallest group around each
    unit, "" for none; `before` everything that comes before a node or group.
    """

    def __init__(self, nodes: tuple[Node, ...], clusters: tuple[Cluster, ...]) -> None:
        self.nodes: Mapping[str, Node] = {n.name: n for n in nodes}
        sections = [n for n in nodes if isinstance(n.attrs, SectionAttrs)]
        self.groups = {n.name: frozenset(n.members) for n in sections}
        self.groups |= {c.name: frozenset(c.members) for c in clusters}
        self.before = _ordered(
            {n.name: above for n, above in predecessors(Graph("", nodes))}, self.groups
        )
        effects = [n.name for n in nodes if n.definition.has_effect]
        # The smallest group around a unit; of two with the same members, which
        # are a section and a cluster, the cluster lies inside.
        order = sorted(self.groups, key=lambda g: (-len(self.groups[g]), g not in self.nodes))
        inmost = {name: group for group in order for name in self.groups[group]}
        self.inmost: Mapping[str, str] = inmost
        self.group_order = order
        self.home = {name: inmost.get(name, "") for name in effects if name not in self.groups}
        for i, group in enumerate(order):
            around = [o for o in order[:i] if self.groups[group] <= self.groups[o]]
            self.home[group] = around[-1] if around else ""
        position = {name: i for i, name in enumerate(self.nodes)}
        for group, members in self.groups.items():
            position[group] = min(position[name] for name in members)
        self.units = sorted(self.home, key=lambda unit: position[unit])

    def chains(self, group: str) -> list[list[str]]:
        """The units directly in a group, as columns: each below one that comes before it."""
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
        """Units that a unit waits for and that its column does not imply."""
        around = self.home[unit]
        before: set[str] = set()
        for each in reversed(column):
            if each not in before:  # else all before it is there as well
                before |= self.before[each]
        known = before.union(column, *map(self.inner, column))
        while around:
            known |= self.before[around]
            around = self.home[around]
        return self.reduced(set(self.before[unit]) - known)

    def implied(self, node: str, shown: frozenset[str]) -> list[str]:
        """Units that a value waits for and that its expression does not name."""
        known = set(shown).union(*(self.before.get(name, frozenset()) for name in shown))
        return self.reduced(set(self.before.get(node, frozenset())) - known)

    def reduced(self, names: set[str]) -> list[str]:
        """The fewest of the units that imply the others."""
        extra = names & self.home.keys()
        # A group's name stands for all members.
        extra -= {name for group in extra & self.groups.keys() for name in self.inner(group)}
        # Only what nothing else implies.
        return sorted(e for e in extra if not any(e in self.before[other] for other in extra))

    def inner(self, group: str) -> set[str]:
        """All units in a group; none of an effect."""
        if group not in self.groups:
            return set()
        mine = {unit for unit, home in self.home.items() if home == group}
        return mine.union(*(self.inner(unit) for unit in mine & self.groups.keys()))

    def label(self, group: str) -> str:
        """Name and kind of a group."""
        section = self.nodes.get(group)
        return f"{group}: {f'lock {section.resources[0]}' if section else 'cluster'}"

    def pure_members(self, group: str) -> str:
        """`` around MEMBERS`` for a group of pure nodes only, which has no unit; else nothing."""
        if self.inner(group):
            return ""
        return f" around {', '.join(sorted(self.groups[group]))}"


def _ordered(
    above: Mapping[str, frozenset[str]], groups: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Everything that comes before each node and group, groups included.

    A section begins after the nodes that its node waits for, a cluster after those that
    any member waits for. A node that waits for a section, or for a member of a cluster,
    waits for all members.
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
