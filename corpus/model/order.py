"""Program order of a graph, critical sections and clusters included.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model.graph import Graph
from litmusfuzz.corpus.model.names import head
from litmusfuzz.corpus.ops import MalformedTest, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model.graph import Cluster, Node


MAX_SECTIONS: Final = 40
"""Critical sections inside each other: as deep as a drawing and a script can nest them."""

Step = tuple[str, str]
"""One step of a graph: ("node", n), ("acquire", s), ("release", s) or ("cluster", c)."""


def steps_before(graph: Graph, clusters: Iterable[Cluster] = ()) -> dict[Step, set[Step]]:
    """Direct predecessors of each step of a graph (see `steps`)."""
    sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
    within = {name: cluster for cluster in clusters for name in cluster.members}
    is_section = {n.name for n in sections}
    # The step after which each node is done.
    done: dict[str, Step] = {n.name: ("node", n.name) for n in graph.nodes}
    done |= {name: ("release", name) for name in is_section}
    done |= {name: ("cluster", within[name].name) for name in within if name in done}

    before: dict[Step, set[Step]] = {}
    for node in graph.nodes:
        # A source that is not among the nodes is a value from outside the body.
        waits = {done[name] for name in node.sources if name in done}
        if node.name in is_section:
            before[("acquire", node.name)] = waits
            before.setdefault(("release", node.name), set()).add(("acquire", node.name))
        else:
            own = done[node.name]
            waits.discard(own)
            before.setdefault(own, set()).update(waits)
    for section in sections:
        acquire, release = ("acquire", section.name), ("release", section.name)
        for name in section.members:
            if name not in done:  # a pruned member (`pruned`)
                continue
            before[done[name]].add(acquire)
            before[release].add(done[name])
    for name, outer in nesting(sections)[1].items():
        before[("acquire", name)].add(("acquire", outer))
        before[("release", outer)].add(("release", name))
    return before


def steps(
    graph: Graph, clusters: Iterable[Cluster] = (), where: tuple[str | int, ...] = ()
) -> list[tuple[str, Node | Cluster]]:
    """Steps of a graph in an order that its edges, sections and clusters allow.

    Parameters
    ----------
    clusters : iterable of Cluster
        Those of this graph.

    Returns
    -------
    list of (str, Node or Cluster)
        ("node", n) for each node that is no section and in no cluster,
        ("acquire", s) and ("release", s) for each section, ("cluster", c);
        all that must come before stands before.

    Raises
    ------
    MalformedTest
        If a cycle goes through a section or a cluster.
    """
    within = {name: cluster for cluster in clusters for name in cluster.members}
    is_section = {n.name for n in graph.nodes if isinstance(n.attrs, SectionAttrs)}
    if not is_section and not within:
        return [("node", n) for n in graph.nodes]
    nodes = {n.name: n for n in graph.nodes}
    before = steps_before(graph, within.values())
    named = {cluster.name: cluster for cluster in within.values()}
    ordered: list[Step] = []
    missing = {step: len(waits) for step, waits in before.items()}
    places = {step: place for place, step in enumerate(before)}
    following: dict[Step, list[Step]] = {}
    for step, waits in before.items():
        for earlier in waits:
            following.setdefault(earlier, []).append(step)
    ready = [step for step, count in missing.items() if not count]
    while ready:
        ordered += ready
        freed: list[Step] = []
        for step in ready:
            for later in following.get(step, ()):
                missing[later] -= 1
                if not missing[later]:
                    freed.append(later)
        ready = sorted(freed, key=places.__getitem__)
    if len(ordered) < len(before):
        stuck = sorted({name for _, name in before.keys() - set(ordered)})
        for name in stuck:
            if name in named:
                message = f"cycle through a cluster: {', '.join(stuck)}"
                raise MalformedTest(message, ("clusters", name))
        path = (*where, next(n for n in stuck if n in is_section))
        raise MalformedTest(f"cycle through a section: {', '.join(stuck)}", path)
    return [(kind, named[name] if kind == "cluster" else nodes[name]) for kind, name in ordered]


def pruned(graph: Graph, wanted: Iterable[str]) -> Graph:
    """Return the part of a graph, or of a body, that is executed for the sake of `wanted`.

    That is what these need through data and control edges, transitively. A node with bodies
    stays whole. A section stays if it is needed itself, then with all of its members, or if a
    member of it is needed. Its list of members stays as it is, since that says which sections lie
    inside each other: it may name members that are not there.

    References
    ----------
    semantics.md, section 1, "Run".
    """
    nodes = {node.name: node for node in graph.nodes}
    around: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if type(node.attrs) is SectionAttrs:
            for member in node.attrs.members:
                around.setdefault(member, []).append(node)
    needed: set[str] = set()
    entered: set[str] = set()
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name in needed:
            continue
        found = nodes.get(name)
        if found is None:
            if "." in name:  # a result
                stack.append(head(name))
            continue  # or a value from outside the body
        needed.add(name)
        stack += found.references
        if type(found.attrs) is SectionAttrs:
            stack += found.attrs.members
        for section in around.get(name, ()):
            entered.add(section.name)
            stack += section.references
    kept = needed | entered
    return Graph(graph.name, tuple(node for node in graph.nodes if node.name in kept))


def nesting(sections: Iterable[Node]) -> tuple[dict[str, str], dict[str, str]]:
    """Innermost section of each member, and the section directly around each inner section.

    Raises
    ------
    MalformedTest
        If two overlap and neither lies inside the other, or too many lie inside each other; the
        path is the later one's name.
    """
    innermost: dict[str, str] = {}
    around: dict[str, str] = {}
    depth: dict[str, int] = {}
    listed = list(sections)
    size = {section.name: len(section.members) for section in listed}
    # Larger ones first: where all is well, a section then lies inside one section, or in none.
    for section in sorted(listed, key=lambda each: -size[each.name]):
        found = {innermost.get(name, "") for name in section.members}
        if len(found) > 1 or any(size.get(name) == size[section.name] for name in found):
            other = min(filter(None, found), key=size.__getitem__)
            first, second = (n.name for n in listed if n.name in (section.name, other))
            message = f"overlaps {first!r}, and neither lies inside the other"
            raise MalformedTest(message, (second,))
        (outer,) = found
        depth[section.name] = depth.get(outer, 0) + 1
        if depth[section.name] > MAX_SECTIONS:
            message = f"more than {MAX_SECTIONS} sections inside each other"
            raise MalformedTest(message, (section.name,))
        if outer:
            around[section.name] = outer
        innermost |= dict.fromkeys(section.members, section.name)
    return innermost, around


def nested_pairs(sections: Sequence[Node]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By section: those that it lies inside, and those that lie inside it.

    Raises
    ------
    MalformedTest
        As `nesting`.
    """
    around: dict[str, list[str]] = {}
    within: dict[str, list[str]] = {}
    parents = nesting(sections)[1] if sections else {}
    for section in sections:
        outer = parents.get(section.name)
        while outer is not None:
            around.setdefault(section.name, []).append(outer)
            within.setdefault(outer, []).append(section.name)
            outer = parents.get(outer)
    return around, within


def enclosing(section: Node, sections: Iterable[Node]) -> list[Node]:
    """Sections that this section lies inside: their members include all of its own."""
    assert isinstance(section.attrs, SectionAttrs)
    mine = frozenset(section.attrs.members)
    return [
        other
        for other in sections
        if isinstance(other.attrs, SectionAttrs) and mine < frozenset(other.attrs.members)
    ]


def predecessors(graph: Graph) -> Iterator[tuple[Node, frozenset[str]]]:
    """Each node, in the order of the graph, with the names of all nodes that precede it."""
    known: dict[str, frozenset[str]] = {}
    places: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        above: set[str] = set()
        if edges := node.edges:
            direct = {name for name in map(head, edges) if name in known}
            # The last first: an edge that others imply adds nothing, and there may be many.
            for name in sorted(direct, key=places.__getitem__, reverse=True):
                if name not in above:
                    above |= known[name]
                    above.add(name)
        known[node.name] = frozenset(above)
        places[node.name] = place
        yield node, known[node.name]


def path_between(graph: Graph, source: str, target: str) -> list[str]:
    """Names on one path of edges from `target` to `source`, or none."""
    inputs = {n.name: n.edges for n in graph.nodes}
    came: dict[str, str] = {source: ""}
    stack = [source]
    while stack:
        name = stack.pop()
        if name == target:
            path = []
            while name:
                path.append(name)
                name = came[name]
            return path
        for each in inputs.get(name, ()):
            if each not in came:
                came[each] = name
                stack.append(each)
    return []


def topological_order(waits: Mapping[str, Collection[str]], rank: Mapping[str, float]) -> list[str]:
    """The names in a topological order; of several that could be next, the one of least rank.

    Parameters
    ----------
    waits : mapping of str to collection of str
        For each name, those that come before it, each once. Others than the keys do not matter.
    rank : mapping of str to float

    Raises
    ------
    ValueError
        If there is none: the names form a cycle.
    """
    then: dict[str, list[str]] = {name: [] for name in waits}
    missing: dict[str, int] = {}
    for name, names in waits.items():
        before = [each for each in names if each in then]
        missing[name] = len(before)
        for each in before:
            then[each].append(name)
    ready = [(rank[name], name) for name, count in missing.items() if not count]
    heapq.heapify(ready)
    ordered: list[str] = []
    while ready:
        _, first = heapq.heappop(ready)
        ordered.append(first)
        for name in then[first]:
            missing[name] -= 1
            if not missing[name]:
                heapq.heappush(ready, (rank[name], name))
    if len(ordered) < len(waits):
        raise ValueError(f"a cycle among {', '.join(sorted(waits.keys() - set(ordered)))}")
    return ordered
