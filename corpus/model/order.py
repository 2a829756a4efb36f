"""Program order of a graph, critical sections and clusters included.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.model.names import head
from litmusfuzz.corpus.ops import MalformedTest, SectionAttrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from litmusfuzz.corpus.model.graph import Cluster, Graph, Node


Step = tuple[str, str]
"""One step of a graph: ("node", n), ("acquire", s), ("release", s) or ("cluster", c)."""


def steps_before(graph: Graph, clusters: Iterable[Cluster] = ()) -> dict[Step, set[Step]]:
    """Direct predecessors of each step of a graph (see `steps`)."""
    sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
    within = {name: cluster for cluster in clusters for name in cluster.members}
    is_section = {n.name for n in sections}
    nodes = {n.name: n for n in graph.nodes}

    def done(name: str) -> Step:
        """The step after which a node is done."""
        if name in within:
            return ("cluster", within[name].name)
        return ("release" if name in is_section else "node", name)

    before: dict[Step, set[Step]] = {}
    for node in graph.nodes:
        # A source that is not among the nodes is a value from outside the body.
        waits = {done(name) for name in node.sources if name in nodes}
        if node.name in is_section:
            before[("acquire", node.name)] = waits
            before.setdefault(("release", node.name), set()).add(("acquire", node.name))
        else:
            before.setdefault(done(node.name), set()).update(waits - {done(node.name)})
    for section in sections:
        assert isinstance(section.attrs, SectionAttrs)
        for name in section.attrs.members:
            before[done(name)].add(("acquire", section.name))
            before[("release", section.name)].add(done(name))
        for outer in enclosing(section, sections):
            before[("acquire", section.name)].add(("acquire", outer.name))
            before[("release", outer.name)].add(("release", section.name))
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
    ordered: list[tuple[str, Node | Cluster]] = []
    placed: set[Step] = set()
    while len(placed) < len(before):
        ready = [key for key, waits in before.items() if key not in placed and waits <= placed]
        if not ready:
            stuck = sorted({name for key, name in before.keys() - placed})
            for name in stuck:
                if name in named:
                    message = f"cycle through a cluster: {', '.join(stuck)}"
                    raise MalformedTest(message, ("clusters", name))
            path = (*where, next(n for n in stuck if n in is_section))
            raise MalformedTest(f"cycle through a section: {', '.join(stuck)}", path)
        placed.update(ready)
        ordered += [
            (kind, named[name] if kind == "cluster" else nodes[name]) for kind, name in ready
        ]
    return ordered


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
    for node in graph.nodes:
        direct = [name for name in map(head, (*node.inputs, *node.after)) if name in known]
        above = frozenset(direct).union(*(known[d] for d in direct))
        known[node.name] = above
        yield node, above


def path_between(graph: Graph, source: str, target: str) -> list[str]:
    """Names on one path of edges from `target` to `source`, or none."""
    inputs = {n.name: (*n.inputs, *n.after) for n in graph.nodes}
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
