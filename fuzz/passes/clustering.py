"""The clusterer: nodes joined along edges into clusters, as far as its rules permit.

What the rules permit is sound, in the sense of translation validation
(`litmusfuzz.oracles.translation`): docs/clusters.md says why, rule by rule. Rules can be
left out, by data, and the analysis made to look away: for measurements, and for
mutants (`litmusfuzz.fuzz.mutants.clustering`).

References
----------
semantics.md, section 5; BLOG, "The Solution". TensorFlow's own clusterer is
``mark_for_compilation_pass.cc``: it contracts edges as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Cluster,
    FreshNames,
    Graph,
    LitmusTest,
    Node,
    all_nodes,
    bodies,
    clusters_of,
    levels,
    steps,
    steps_before,
)
from litmusfuzz.corpus.ops import Kind, SectionAttrs
from litmusfuzz.fuzz.passes.safety import SOUND, Analysis, access, ones, unsafe_pairs
from litmusfuzz.fuzz.passes.waits import waits

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set


class Rule(StrEnum):
    """Why nodes may not be in one cluster."""

    NOT_COMPILABLE = "not compilable"
    """A queue op, a section, a transfer; a loop or conditional that works on
    resources inside."""

    FRAME = "frame or branch boundary"
    """They are of different graphs or bodies."""

    SECTION = "section boundary"
    """One is inside a critical section, and the other is not."""

    DEVICE = "device mismatch"
    """They are on different devices."""

    WAITS_ALIKE = "waits for what may never come"
    """One waits for an element, a mutex, or a result behind these, for which
    another does not wait: in a cluster both would, and block together."""

    UNSAFE_PAIR = "unsafe pair"
    """One writes, and another, which is ordered after it, reads."""

    CYCLE = "cycle"
    """A path leads out of the cluster, and back into it."""

    SIZE = "size"
    """They are too many."""

    READS_FIRST = "reads first"
    """Of the SSA order: what waits for no write of the cluster stands before
    all its writes. Else it sees what others do not see yet."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """What is to be clustered, and how.

    Parameters
    ----------
    least, most : int
        Members of a cluster; of None there is no limit.
    regions : tuple of tuple of str
        Nodes that must be compiled together: each region is one cluster, of
        any size from one, and nothing is added to it.
    without : frozenset of Rule
        Rules that are not looked at.
    analysis : Analysis
        How unsafe pairs are found.
    """

    least: int = 2
    most: int | None = None
    regions: tuple[tuple[str, ...], ...] = ()
    without: frozenset[Rule] = frozenset()
    analysis: Analysis = SOUND

    def __post_init__(self) -> None:
        named = [name for region in self.regions for name in region]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"regions: {twice!r} stands twice")
        if not all(self.regions):
            raise ValueError("regions: one is empty")


DEFAULT: Final = Clustering()
_ON_PAIRS: Final = (
    *(Rule.NOT_COMPILABLE, Rule.SECTION, Rule.DEVICE, Rule.WAITS_ALIKE, Rule.UNSAFE_PAIR),
)
_WRITES: Final = (Kind.WRITE, Kind.UPDATE)
_NEVER: Final = (Kind.QUEUE, Kind.SECTION, Kind.TRANSFER)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Two nodes that may not be in one cluster, and the rule that says so.

    The same node twice, where it may be in none.
    """

    first: str
    second: str
    rule: Rule

    def __str__(self) -> str:
        which = f"{self.first} and {self.second}" if self.first != self.second else self.first
        return f"{which}: {self.rule}"


class RegionRefused(ValueError):
    """A region that cannot be one cluster; `refusal` says why."""

    def __init__(self, region: Sequence[str], refusal: Refusal) -> None:
        super().__init__(f"region {', '.join(region)}: {refusal}")
        self.refusal = refusal


def cluster(
    test: LitmusTest, options: Clustering = DEFAULT, rng: random.Random | None = None
) -> LitmusTest:
    """The test with clusters ``c0``, ``c1``, ... chosen.

    Edges are contracted one after another, in the order of the nodes, until no
    edge is left that may be. In bodies too: a cluster lies in one of them.

    Parameters
    ----------
    test : LitmusTest
        Without clusters.
    options : Clustering
    rng : random.Random, optional
        If given, edges are tried in random order.

    Raises
    ------
    RegionRefused
        If a region breaks a rule.
    MalformedTest
        If a rule is left out whose breach is no litmus test: a cycle through a
        cluster, a queue op in it.
    """
    assert not test.clusters, "is clustered already"
    return replace(test, clusters=chosen(test, options, rng))


def chosen(
    test: LitmusTest, options: Clustering = DEFAULT, rng: random.Random | None = None
) -> tuple[Cluster, ...]:
    """The clusters alone, whether a litmus test can have them or not.

    Raises
    ------
    RegionRefused
        If a region breaks a rule.
    """
    home = {n.name: level for g in test.graphs for level in levels(g) for n in level.nodes}
    for region in options.regions:
        for name in region:
            if name not in home:
                raise ValueError(f"region {', '.join(region)}: no node {name!r}")
            if home[name] is not home[region[0]]:
                raise RegionRefused(region, Refusal(region[0], name, Rule.FRAME))
    known = waits(test)
    names = FreshNames((*test.types, *(each.name for each in test.resources)))
    clusters: list[Cluster] = []
    members: set[str] = set()
    for graph in test.graphs:
        for level in levels(graph):
            if members.intersection(level.around):  # compiled with the member
                continue
            groups = _Level(test, level.nodes, options, known)
            groups.contract(rng)
            for group in groups.clusters():
                members.update(group)
                clusters.append(Cluster(names.numbered("c"), group))
    return tuple(clusters)


def refused(test: LitmusTest, options: Clustering = DEFAULT) -> list[Refusal]:
    """Pairs of nodes that work on variables, and that no cluster may hold both.

    A cluster that holds both holds what lies on paths between them, or there is
    a cycle: where one of these may not be in it, the rule is `Rule.CYCLE`.
    """
    known = waits(test)
    found: list[Refusal] = []
    for graph in test.graphs:
        working = [
            (level, node)
            for level in (_Level(test, each.nodes, options, known) for each in levels(graph))
            for node in level.nodes
            if access(node) is not None
        ]
        for (level, first), (other, second) in combinations(working, 2):
            rule = Rule.FRAME if level is not other else level.why_apart(first, second)
            found += [Refusal(first.name, second.name, rule)] if rule else []
    return found


def broken(test: LitmusTest) -> list[Refusal]:
    """What in a test's own clusters, whoever chose them, our rules do not permit."""
    plain = replace(test, clusters=())
    known = waits(plain)
    found: list[Refusal] = []
    for graph in test.graphs:
        for nodes, _, _ in levels(graph):
            level = _Level(plain, nodes, DEFAULT, known)
            here = {node.name: node for node in nodes}
            for each in clusters_of(nodes, test.clusters):
                members = [here[name] for name in each.members]
                for a, b in combinations_with_replacement(members, 2):
                    rule = level.apart(a, b)
                    # What can be in no cluster is said of it alone.
                    if rule is not None and (a is b or rule is not Rule.NOT_COMPILABLE):
                        found.append(Refusal(a.name, b.name, rule))
                found += _out_of_order(nodes, members)
    return found


def _out_of_order(nodes: Sequence[Node], members: Sequence[Node]) -> Iterator[Refusal]:
    """Reads in a cluster that could stand before all its writes, and do not."""
    late = _late(nodes, {node.name for node in members})
    written = ""
    for node in members:
        if access(node) in _WRITES:
            written = written or node.name
        elif written and access(node) is Kind.READ and node.name not in late:
            yield Refusal(written, node.name, Rule.READS_FIRST)


def ssa_order(nodes: Sequence[Node], members: Iterable[str]) -> tuple[str, ...]:
    """Members of a cluster in the order in which they are made a pure function.

    First those that wait for no write or update in the cluster, then the rest,
    each in the order of `nodes`. So no read sees what the cluster has not yet
    written back, unless it must.

    References
    ----------
    semantics.md, section 5, "SSA order"; docs/clusters.md.
    """
    mine = set(members)
    late = _late(nodes, mine)
    ordered = [node.name for node in nodes if node.name in mine]
    return (*(n for n in ordered if n not in late), *(n for n in ordered if n in late))


def _late(nodes: Sequence[Node], members: Set[str]) -> set[str]:
    """Members that write, or wait for one that does."""
    late: set[str] = set()
    for node in nodes:
        waits_for = node.sources & late
        if node.name in members and (waits_for or access(node) in _WRITES):
            late.add(node.name)
    return late


class _Level:
    """One graph or body, and the groups that its nodes have been joined to.

    A set of its steps (nodes, acquires, releases) is a bit mask, by their numbers.
    """

    def __init__(
        self, test: LitmusTest, nodes: Sequence[Node], options: Clustering, known: Mapping[str, int]
    ) -> None:
        graph = Graph("", tuple(nodes))
        self.nodes = graph.nodes
        self.options = options
        self.known = known
        self.unsafe = unsafe_pairs(nodes, options.analysis)
        self.devices = {node.name: _devices(test, node) for node in nodes}
        self.sections: dict[str, set[str]] = {node.name: set() for node in nodes}
        for node in nodes:
            if isinstance(node.attrs, SectionAttrs):
                for name in node.attrs.members:
                    self.sections[name].add(node.name)
        self.steps = steps(graph)
        numbers = {(kind, step.name): i for i, (kind, step) in enumerate(self.steps)}
        self.following = [0] * len(self.steps)  # what comes directly after each step
        for step, earlier in steps_before(graph).items():
            for each in earlier:
                self.following[numbers[each]] |= 1 << numbers[step]
        self.numbers = {name: i for (kind, name), i in numbers.items() if kind == "node"}
        self.group = [1 << i for i in range(len(self.steps))]
        self.closed = 0  # what is in regions
        here = {node.name: node for node in nodes}
        for region in options.regions:
            if region[0] in here:
                self.close([here[name] for name in region])

    # --- rules -----------------------------------------------------------------------

    def apart(self, a: Node, b: Node) -> Rule | None:
        """The first rule on pairs that keeps two nodes apart; with itself, out of clusters."""
        for rule in _ON_PAIRS:
            if rule not in self.options.without and self.breaks(rule, a, b):
                return rule
        return None

    def breaks(self, rule: Rule, a: Node, b: Node) -> bool:
        """Whether two nodes in one cluster break a rule on pairs."""
        if rule is Rule.NOT_COMPILABLE:
            return not (compilable(a) and compilable(b))
        if rule is Rule.SECTION:
            return self.sections[a.name] != self.sections[b.name]
        if rule is Rule.DEVICE:
            return len(self.devices[a.name] | self.devices[b.name]) > 1
        if rule is Rule.WAITS_ALIKE:
            return self.known[a.name] != self.known[b.name]
        return bool({(a.name, b.name), (b.name, a.name)} & self.unsafe)

    def too_many(self, mask: int) -> bool:
        """Whether they break `Rule.SIZE`."""
        most = self.options.most
        return most is not None and mask.bit_count() > most and self.keeps(Rule.SIZE)

    def keeps(self, rule: Rule) -> bool:
        """Whether a rule is not left out."""
        return rule not in self.options.without

    def cyclic(self, mask: int) -> bool:
        """Whether a path leaves these groups, and comes back; groups are one node each."""
        seen = mask
        front = self.after(mask) & ~seen
        while front and self.keeps(Rule.CYCLE):
            for i in ones(front):
                front |= self.group[i]
            if self.after(front) & mask:
                return True
            seen |= front
            front = self.after(front) & ~seen
        return False

    def after(self, mask: int) -> int:
        """All that comes directly after some of these."""
        union = 0
        for i in ones(mask):
            union |= self.following[i]
        return union

    # --- groups ----------------------------------------------------------------------

    def close(self, region: Sequence[Node]) -> None:
        """Make a region a group, to which nothing is added."""
        names = tuple(node.name for node in region)
        for a, b in combinations_with_replacement(region, 2):
            rule = self.apart(a, b)
            if rule is not None:
                raise RegionRefused(names, Refusal(a.name, b.name, rule))
        mask = sum({1 << self.numbers[name] for name in names})
        for rule, broken in ((Rule.SIZE, self.too_many(mask)), (Rule.CYCLE, self.cyclic(mask))):
            if broken:
                raise RegionRefused(names, Refusal(names[0], names[-1], rule))
        self.join(mask)
        self.closed |= mask

    def contract(self, rng: random.Random | None) -> None:
        """Join groups along edges until no two can be joined."""
        numbers = set(self.numbers.values())
        edges = [
            (i, j) for i, mask in enumerate(self.following) for j in ones(mask) if {i, j} <= numbers
        ]
        if rng is not None:
            rng.shuffle(edges)
        joined = True
        while joined:
            joined = False
            for i, j in edges:
                if self.group[i] != self.group[j] and self.joinable(self.group[i], self.group[j]):
                    self.join(self.group[i] | self.group[j])
                    joined = True

    def joinable(self, a: int, b: int) -> bool:
        """Whether no rule keeps two groups apart."""
        if (a | b) & self.closed or self.too_many(a | b):
            return False
        pairs = ((self.at(i), self.at(j)) for i in ones(a) for j in ones(b))
        return all(self.apart(*pair) is None for pair in pairs) and not self.cyclic(a | b)

    def at(self, number: int) -> Node:
        """The node whose step has that number."""
        node = self.steps[number][1]
        assert isinstance(node, Node)
        return node

    def join(self, mask: int) -> None:
        """Make one group of these."""
        for i in ones(mask):
            self.group[i] = mask

    def clusters(self) -> list[tuple[str, ...]]:
        """Members of each group that is large enough, or a region, in SSA order."""
        found = []
        for mask in dict.fromkeys(self.group[i] for i in sorted(self.numbers.values())):
            nodes = [self.at(i) for i in ones(mask)]
            enough = len(nodes) >= self.options.least and not self.apart(nodes[0], nodes[0])
            if mask & self.closed or enough:
                found.append(ssa_order(self.nodes, [node.name for node in nodes]))
        return found

    # --- explanations ----------------------------------------------------------------

    def why_apart(self, first: Node, second: Node) -> Rule | None:
        """The rule that keeps both out of any one cluster; `first` stands earlier."""
        rule = self.apart(first, second)
        if rule is not None or not self.keeps(Rule.CYCLE):
            return rule
        i, j = self.numbers[first.name], self.numbers[second.name]
        between = sum(1 << k for k in ones(self.reached(i)) if self.reached(k) >> j & 1)
        kinds = {self.steps[k][0] for k in ones(between)}
        mask = between | 1 << i | 1 << j
        nodes = [self.at(k) for k in ones(mask)]
        if kinds - {"node"} or any(self.apart(a, b) for a, b in combinations(nodes, 2)):
            return Rule.CYCLE
        return Rule.SIZE if self.too_many(mask) else None

    def reached(self, number: int) -> int:
        """All that a path leads to."""
        found = front = self.following[number]
        while front:
            front = self.after(front) & ~found
            found |= front
        return found


def compilable(node: Node) -> bool:
    """Whether a node may be in a cluster at all."""
    inner = list(all_nodes([node]))
    if any(each.definition.kind in _NEVER for each in inner):
        return False
    return not bodies(node) or not any(each.resources for each in inner)


def _devices(test: LitmusTest, node: Node) -> set[str]:
    """Where a node runs, with all inside it; nowhere if it may run anywhere."""
    lives = {each.name: each.device for each in test.resources}
    inner = list(all_nodes([node]))
    found = {each.device for each in inner if each.device}
    # "" is a device as well, of what lives on the default one.
    return found | {lives[n] for each in inner if not each.device for n in each.resources}
