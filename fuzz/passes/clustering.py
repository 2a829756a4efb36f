"""The clusterer: joins nodes along edges into clusters, as far as its rules permit.

A cluster is a set of nodes that XLA compiles as one function. Every cluster that the
rules permit is sound: it allows no outcome that the test without it forbids
(`litmusfuzz.oracles.translation` checks this; docs/clusters.md proves it rule by rule).
Options can leave rules out or weaken the safety analysis, for measurements and for
mutants (`litmusfuzz.fuzz.mutants.clustering`).

References
----------
semantics.md, section 5; BLOG, "The Solution". TensorFlow's own clusterer is
``mark_for_compilation_pass.cc``; it contracts edges, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Cluster,
    FreshNames,
    Graph,
    LitmusTest,
    MalformedTest,
    Node,
    all_nodes,
    bodies,
    check_clusterable,
    clusters_of,
    levels,
    steps,
    steps_before,
)
from litmusfuzz.corpus.ops import Kind, SectionAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.passes.contraction import Contraction
from litmusfuzz.fuzz.passes.safety import SOUND, Analysis, access, ones, writers_before
from litmusfuzz.fuzz.passes.waits import waits

if TYPE_CHECKING:
    import random
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence


class Rule(StrEnum):
    """Reasons why nodes must not be in one cluster."""

    NOT_COMPILABLE = "not compilable"
    """A queue op, a section or a transfer; a loop or conditional whose bodies use
    resources; an op that may fail; any node of a test that can have no clusters
    (`may_have_clusters`)."""

    FRAME = "frame or branch boundary"
    """The nodes are in different graphs or bodies."""

    SECTION = "section boundary"
    """One node is inside a critical section, and the other is not."""

    DEVICE = "device mismatch"
    """The nodes are on different devices."""

    DIFFERENT_WAITS = "different blocking inputs"
    """One node waits for an op that may block forever (`waits`), and the other does not:
    in a cluster both would wait, and block together."""

    UNSAFE_PAIR = "unsafe pair"
    """One node writes, and another node after it reads (`safety`)."""

    CYCLE = "cycle"
    """A path leads out of the cluster and back into it."""

    SIZE = "size"
    """The cluster has too many members."""

    READS_FIRST = "reads first"
    """In SSA order, a read that waits for no write of the cluster comes before all its
    writes. Otherwise it sees contents before they are written back."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Options of the clusterer.

    Parameters
    ----------
    least : int
        Smallest number of members of a cluster.
    most : int or None
        Largest number of members; None for no limit.
    regions : tuple of tuple of str
        Sets of nodes that must be compiled together. Each is one cluster of any size,
        to which no node is added.
    without : frozenset of Rule
        Rules that are ignored.
    analysis : Analysis
        The safety analysis, which finds unsafe pairs.
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
            raise ValueError(f"regions: {twice!r} is named twice")
        if not all(self.regions):
            raise ValueError("regions: a region is empty")


DEFAULT: Final = Clustering()
_ON_PAIRS: Final = (
    *(Rule.NOT_COMPILABLE, Rule.SECTION, Rule.DEVICE, Rule.DIFFERENT_WAITS, Rule.UNSAFE_PAIR),
)
_WRITES: Final = (Kind.WRITE, Kind.UPDATE)
_NEVER: Final = (
    *(Kind.QUEUE, Kind.ACCUMULATOR, Kind.SECTION, Kind.TRANSFER, Kind.HANDLE, Kind.STATE),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Two nodes that must not be in one cluster, and the rule that forbids it.

    `first` equals `second` if the node must not be in any cluster.
    """

    first: str
    second: str
    rule: Rule

    def __str__(self) -> str:
        which = f"{self.first} and {self.second}" if self.first != self.second else self.first
        return f"{which}: {self.rule}"


class RegionRefused(ValueError):
    """A region that cannot be a cluster; `refusal` has the reason."""

    def __init__(self, region: Sequence[str], refusal: Refusal) -> None:
        super().__init__(f"region {', '.join(region)}: {refusal}")
        self.refusal = refusal


def cluster(
    test: LitmusTest, options: Clustering = DEFAULT, rng: random.Random | None = None
) -> LitmusTest:
    """The test with clusters, named ``c0``, ``c1``, ...

    The clusterer contracts edges in the order of the nodes until the rules permit no
    further contraction. It does so in graphs and in bodies; a cluster lies in one graph
    or body.

    Parameters
    ----------
    test : LitmusTest
        A test without clusters.
    options : Clustering
    rng : random.Random, optional
        If given, the clusterer tries edges in random order.

    Raises
    ------
    RegionRefused
        If a region breaks a rule.
    MalformedTest
        If a rule is left out and the result is not a valid test: a cycle leads through a
        cluster, or a cluster contains a queue op.
    """
    assert not test.clusters, "the test has clusters already"
    return replace(test, clusters=choose_clusters(test, options, rng))


def choose_clusters(
    test: LitmusTest, options: Clustering = DEFAULT, rng: random.Random | None = None
) -> tuple[Cluster, ...]:
    """The clusters that the clusterer chooses, even if they make no valid test.

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


def refusals(test: LitmusTest, options: Clustering = DEFAULT) -> list[Refusal]:
    """All pairs of ops on variables that no permitted cluster contains.

    A cluster with both nodes must also contain every node on a path between them, or
    there is a cycle. If one of those nodes must not be in the cluster, the rule is
    `Rule.CYCLE`.
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


def violations(test: LitmusTest) -> list[Refusal]:
    """Violations of the rules in the clusters that a test already has."""
    plain = replace(test, clusters=())
    known = waits(plain)
    found: list[Refusal] = []
    for graph in test.graphs:
        for nodes, _, _ in levels(graph):
            level = _Level(plain, nodes, DEFAULT, known)
            here = {node.name: node for node in nodes}
            for each in clusters_of(nodes, test.clusters):
                members = [here[name] for name in each.members]
                for a, b in level.perhaps_apart(members):
                    rule = level.apart(a, b)
                    # A node that must be in no cluster is reported alone.
                    if rule is not None and (a is b or rule is not Rule.NOT_COMPILABLE):
                        found.append(Refusal(a.name, b.name, rule))
                found += _out_of_order(level.in_order(members), members)
    return found


def _out_of_order(ordered: Sequence[Node], members: Sequence[Node]) -> Iterator[Refusal]:
    """Violations of `Rule.READS_FIRST` in one cluster."""
    late = _late(ordered)
    written = ""
    for node in members:
        if access(node) in _WRITES:
            written = written or node.name
        elif written and access(node) is Kind.READ and node.name not in late:
            yield Refusal(written, node.name, Rule.READS_FIRST)


def ssa_order(nodes: Sequence[Node], members: Iterable[str]) -> tuple[str, ...]:
    """Members of a cluster in SSA order: the order of conversion to a pure function.

    Members that wait for no write or update of the cluster come first, then the others,
    each group in the order of `nodes`. Thus a read sees contents before they are written
    back only if program order demands it.

    References
    ----------
    semantics.md, section 5, "SSA order"; docs/clusters.md.
    """
    mine = set(members)
    return _in_ssa_order([node for node in nodes if node.name in mine])


def _in_ssa_order(members: Sequence[Node]) -> tuple[str, ...]:
    """Members of a cluster, which are in the order of the nodes, in SSA order."""
    late = _late(members)
    ordered = [node.name for node in members]
    return (*(n for n in ordered if n not in late), *(n for n in ordered if n in late))


def _late(members: Iterable[Node]) -> set[str]:
    """Members that write, or wait for a member that writes; they are in the order of the nodes."""
    late: set[str] = set()
    for node in members:
        if access(node) in _WRITES or not late.isdisjoint(node.sources):
            late.add(node.name)
    return late


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes that are joined, as the rules on pairs see them.

    Nodes are bits at their places in the graph or body. `unsafe` has the writers that some node
    reads after. All nodes have the same `sections` and `waits`.
    """

    nodes: int
    compilable: bool
    devices: frozenset[str]
    sections: frozenset[str]
    waits: int
    unsafe: int

    @property
    def is_apart(self) -> bool:
        """True if it must not be in any cluster."""
        return not self.compilable or len(self.devices) > 1

    def keeps_apart(self, other: _Group) -> bool:
        """True if a rule keeps a node of one group and a node of the other apart."""
        return (
            self.sections != other.sections
            or self.waits != other.waits
            or not (self.compilable and other.compilable)
            or len(self.devices | other.devices) > 1
            or bool(self.nodes & other.unsafe or other.nodes & self.unsafe)
        )

    def joined(self, other: _Group) -> _Group:
        """Both as one."""
        return replace(
            self,
            nodes=self.nodes | other.nodes,
            compilable=self.compilable and other.compilable,
            devices=self.devices | other.devices,
            unsafe=self.unsafe | other.unsafe,
        )


class _Level:
    """One graph or body, and the groups of nodes joined so far.

    Sets are bit masks: of its steps (nodes, acquires, releases) by their numbers, of its nodes by
    their places.
    """

    def __init__(
        self, test: LitmusTest, nodes: Sequence[Node], options: Clustering, known: Mapping[str, int]
    ) -> None:
        graph = Graph("", tuple(nodes))
        self.nodes = graph.nodes
        self.may_have_clusters = may_have_clusters(test)
        self.failing = test.failing
        self.options = options
        self.known = known
        lives = {each.name: each.device for each in test.resources}
        self.devices = {node.name: _devices(lives, node) for node in nodes}
        self.sections: dict[str, set[str]] = {node.name: set() for node in nodes}
        for node in nodes:
            if isinstance(node.attrs, SectionAttrs):
                for name in node.attrs.members:
                    self.sections[name].add(node.name)
        self.steps = steps(graph)
        numbers = {(kind, step.name): i for i, (kind, step) in enumerate(self.steps)}
        self.following = [0] * len(self.steps)  # direct successors of each step
        for step, earlier in steps_before(graph).items():
            for each in earlier:
                self.following[numbers[each]] |= 1 << numbers[step]
        self.numbers = {name: i for (kind, name), i in numbers.items() if kind == "node"}
        self.places = {node.name: place for place, node in enumerate(nodes)}
        self.unsafe = writers_before(nodes, self.places, options.analysis)
        self.single = {node.name: self._single(node) for node in nodes}
        self.contraction = Contraction(self.following)
        self.groups = {i: self.single[name] for name, i in self.numbers.items()}
        self.closed = 0  # nodes in regions
        here = {node.name: node for node in nodes}
        for region in options.regions:
            if region[0] in here:
                self.close([here[name] for name in region])

    def _single(self, node: Node) -> _Group:
        """A node as a group; a rule that is left out finds nothing."""
        name, keeps = node.name, self.keeps
        return _Group(
            nodes=1 << self.places[name],
            compilable=self.compilable(node) or not keeps(Rule.NOT_COMPILABLE),
            devices=frozenset(self.devices[name] if keeps(Rule.DEVICE) else ()),
            sections=frozenset(self.sections[name] if keeps(Rule.SECTION) else ()),
            waits=self.known[name] if keeps(Rule.DIFFERENT_WAITS) else 0,
            unsafe=self.unsafe.get(name, 0) if keeps(Rule.UNSAFE_PAIR) else 0,
        )

    # --- rules -----------------------------------------------------------------------

    def apart(self, a: Node, b: Node) -> Rule | None:
        """The first rule that keeps two nodes apart; if `a` is `b`, out of all clusters."""
        for rule in _ON_PAIRS:
            if rule not in self.options.without and self.breaks(rule, a, b):
                return rule
        return None

    def perhaps_apart(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, Node]]:
        """All pairs of nodes that rules keep apart, and few others; a large cluster has many pairs.

        A node that must not be in any cluster is a pair with itself.
        """
        groups = [self.single[node.name] for node in nodes]
        here = sum(group.nodes for group in groups)
        at = {self.places[node.name]: i for i, node in enumerate(nodes)}
        alike: dict[Hashable, int] = {}
        later = [0] * len(nodes)  # unsafe together with a node
        for i, group in enumerate(groups):
            kind = group.sections, group.waits, group.devices
            if not group.is_apart:
                alike[kind] = alike.get(kind, 0) | 1 << i
            for place in ones(group.unsafe & here):
                first, second = sorted((i, at[place]))
                later[first] |= 1 << second
        everything = (1 << len(nodes)) - 1
        for i, group in enumerate(groups):
            kind = group.sections, group.waits, group.devices
            others = everything if group.is_apart else everything & ~alike[kind]
            for j in ones((others | later[i]) >> i << i):
                yield nodes[i], nodes[j]

    def breaks(self, rule: Rule, a: Node, b: Node) -> bool:
        """True if two nodes in one cluster would break the rule."""
        if rule is Rule.NOT_COMPILABLE:
            return not (self.compilable(a) and self.compilable(b))
        if rule is Rule.SECTION:
            return self.sections[a.name] != self.sections[b.name]
        if rule is Rule.DEVICE:
            return len(self.devices[a.name] | self.devices[b.name]) > 1
        if rule is Rule.DIFFERENT_WAITS:
            return self.known[a.name] != self.known[b.name]
        pairs = ((a, b), (b, a))
        return any(self.unsafe.get(x.name, 0) >> self.places[y.name] & 1 for x, y in pairs)

    def compilable(self, node: Node) -> bool:
        """True if a node may be in a cluster of this test.

        A compiler does not report an op that fails.
        """
        fails = self.failing and any(each.name in self.failing for each in all_nodes([node]))
        return self.may_have_clusters and not fails and compilable(node)

    def too_many(self, mask: int) -> bool:
        """True if a cluster of so many nodes would break `Rule.SIZE`."""
        most = self.options.most
        return most is not None and mask.bit_count() > most and self.keeps(Rule.SIZE)

    def keeps(self, rule: Rule) -> bool:
        """True if the rule is not left out."""
        return rule not in self.options.without

    def after(self, mask: int) -> int:
        """Direct successors of these steps."""
        union = 0
        for i in ones(mask):
            union |= self.following[i]
        return union

    # --- groups ----------------------------------------------------------------------

    def close(self, region: Sequence[Node]) -> None:
        """Make a region a group to which no node is added."""
        names = tuple(node.name for node in region)
        for a, b in self.perhaps_apart(region):
            rule = self.apart(a, b)
            if rule is not None:
                raise RegionRefused(names, Refusal(a.name, b.name, rule))
        roots = [self.numbers[name] for name in names]
        mask = sum(1 << root for root in roots)
        cyclic = self.keeps(Rule.CYCLE) and self.contraction.is_cyclic(roots)
        for rule, broken in ((Rule.SIZE, self.too_many(mask)), (Rule.CYCLE, cyclic)):
            if broken:
                raise RegionRefused(names, Refusal(names[0], names[-1], rule))
        self.join(roots)
        self.closed |= self.groups[roots[-1]].nodes

    def contract(self, rng: random.Random | None) -> None:
        """Join groups along edges until no two can be joined."""
        edges = [
            (i, j)
            for i, mask in enumerate(self.following)
            for j in ones(mask)
            if i in self.groups and j in self.groups
        ]
        if rng is not None:
            rng.shuffle(edges)
        joined = True
        while joined:
            joined, left = False, []
            for i, j in edges:
                a, b = self.contraction.root(i), self.contraction.root(j)
                if a == b or self.never_joined(a, b):
                    continue
                if self.keeps(Rule.CYCLE) and self.contraction.has_other_path(a, b):
                    left.append((i, j))  # until the path is joined, too
                else:
                    self.join((a, b))
                    joined = True
            edges = left

    def never_joined(self, a: int, b: int) -> bool:
        """True if a rule keeps two groups apart, however they grow."""
        first, second = self.groups[a], self.groups[b]
        both = first.nodes | second.nodes
        return bool(both & self.closed) or self.too_many(both) or first.keeps_apart(second)

    def at(self, number: int) -> Node:
        """The node of the step with that number."""
        node = self.steps[number][1]
        assert isinstance(node, Node)
        return node

    def join(self, roots: Sequence[int]) -> None:
        """Make groups one group."""
        root = self.contraction.join(roots)
        self.groups[root] = reduce(_Group.joined, (self.groups[each] for each in roots))

    def clusters(self) -> list[tuple[str, ...]]:
        """Members, in SSA order, of each group that is a region or large enough."""
        found = []
        for root in dict.fromkeys(map(self.contraction.root, sorted(self.groups))):
            group = self.groups[root]
            nodes = [self.nodes[place] for place in ones(group.nodes)]
            enough = len(nodes) >= self.options.least and not group.is_apart
            if group.nodes & self.closed or enough:
                found.append(_in_ssa_order(nodes))
        return found

    def in_order(self, members: Iterable[Node]) -> list[Node]:
        """Nodes in the order in which they stand."""
        return sorted(members, key=lambda node: self.places[node.name])

    # --- explanations ----------------------------------------------------------------

    def why_apart(self, first: Node, second: Node) -> Rule | None:
        """The rule that forbids every cluster with both nodes; `first` precedes `second`."""
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
        """Steps that a path leads to."""
        found = front = self.following[number]
        while front:
            front = self.after(front) & ~found
            found |= front
        return found


def may_have_clusters(test: LitmusTest) -> bool:
    """True if `check_clusterable` takes the test's runs and variables."""
    try:
        check_clusterable(test.runs, test.variables)
    except MalformedTest:
        return False
    return True


def compilable(node: Node) -> bool:
    """True if a node may be in a cluster."""
    inner = list(all_nodes([node]))
    kinds = (each.definition.kind in _NEVER or each.definition.fed or each.handle for each in inner)
    if any(kinds):
        return False
    return not bodies(node) or not any(each.resources for each in inner)


def _devices(lives: Mapping[str, str], node: Node) -> set[str]:
    """Devices of a node and of the nodes in its bodies; empty if it may run anywhere.

    `lives` has the devices of resources.
    """
    inner = list(all_nodes([node]))
    found = {each.device for each in inner if each.device}
    # "" counts as a device: the default one.
    return found | {lives[n] for each in inner if not each.device for n in each.resources}
