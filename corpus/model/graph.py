"""Nodes of a test: graphs, the bodies inside nodes, and clusters of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model.names import head
from litmusfuzz.corpus.ops import (
    CLUSTER,
    COMPUTED,
    OPS,
    Attrs,
    OpDef,
    RowsAttrs,
    SectionAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.struct import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable


_DEFINITIONS: Final = {**OPS, CLUSTER.name: CLUSTER}
_ROWS: Final = (RowsAttrs, SliceAttrs)


class Cluster(Struct, frozen=True):
    """Nodes of one graph or body that run as one: a snapshot, then a write-back.

    `members` are in SSA order, the order in which a pure function computes them. The nodes
    stay where they are: a test without its clusters is the test before clustering.

    References
    ----------
    semantics.md, section 5; BLOG, "Auto-clustering".
    """

    name: str
    members: tuple[str, ...]


class Node(Struct, frozen=True):
    """One op of a graph.

    `inputs` are data edges and `after` control edges, both by the name of a
    node that stands earlier; `resources` are what it works on, in the roles'
    order (`OpDef.roles`). A critical section is a node as well: edges to and
    from it are edges of the section as a whole. `device` is where it runs, ""
    for wherever what it works on lives. `handle` is the value that says which of
    `resources` it works on, "" for the one resource of each role itself.
    """

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    attrs: Attrs | NestAttrs | None = None
    device: str = ""
    handle: str = ""

    @property
    def definition(self) -> OpDef:
        """Row of the op table."""
        found = _DEFINITIONS[self.op]
        if found.sparse and type(self.attrs) not in _ROWS:
            return COMPUTED[self.op]
        return found

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the nodes that a critical section holds together."""
        return self.attrs.members if type(self.attrs) is SectionAttrs else ()

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the results of a node with bodies; outside they are ``node.result``."""
        attrs = self.attrs
        if type(attrs) is BranchAttrs or type(attrs) is CallAttrs:
            return attrs.results
        return attrs.carried if type(attrs) is LoopAttrs else ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of its values outside: its own, and ``node.result`` for each result."""
        name, results = self.name, self.results
        return (name, *[f"{name}.{result}" for result in results]) if results else (name,)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names, inside its bodies, of the values that come into them."""
        carried = self.attrs.carried if isinstance(self.attrs, LoopAttrs) else ()
        return (*carried, *(inner for inner, _ in captures_of(self)))

    @property
    def edges(self) -> tuple[str, ...]:
        """References that are its own: data inputs, handle, control edges."""
        if self.handle:
            return (*self.inputs, self.handle, *self.after)
        return self.inputs + self.after

    @property
    def references(self) -> tuple[str, ...]:
        """All references to its own graph or body: inputs, handle, control edges, captures."""
        captures = captures_of(self)
        return (*self.edges, *(outer for _, outer in captures)) if captures else self.edges

    @property
    def sources(self) -> frozenset[str]:
        """Names of the nodes and values in its own graph or body that it waits for."""
        return frozenset([head(name) if "." in name else name for name in self.references])


class Body(Struct, frozen=True):
    """A graph inside a node: its nodes, and the values that it returns.

    Only captures and results cross its boundary.
    """

    nodes: tuple[Node, ...]
    results: tuple[str, ...]


class BranchAttrs(Struct, frozen=True):
    """A conditional: one of two bodies, by a predicate, its only input.

    `captures` are values from outside, as (name inside, name outside); `results`
    name what both bodies return, as ``node.result`` outside.
    """

    captures: tuple[tuple[str, str], ...]
    then: Body
    orelse: Body
    results: tuple[str, ...]


class LoopAttrs(Struct, frozen=True):
    """A loop: carried values, a condition on them, and a body that returns their next values.

    The node's inputs are the first carried values; the results are the
    carried values, under their names, as they are when the condition is false.
    The first one is a counter that bounds the loop (`loop_bound`).
    """

    carried: tuple[str, ...]
    captures: tuple[tuple[str, str], ...]
    condition: Body
    body: Body
    parallel_iterations: int = 10


class CallAttrs(Struct, frozen=True):
    """A function call: its body is a graph, each of whose instances waits for what it needs.

    `captures` are the arguments, as (name inside, name outside); `results` name what the body
    returns, as ``node.result`` outside. A call may have no result. Since the body stands inside
    its call, no recursion can be written down.

    References
    ----------
    semantics.md, section 1, "Call".
    """

    captures: tuple[tuple[str, str], ...]
    body: Body
    results: tuple[str, ...]


NestAttrs = BranchAttrs | LoopAttrs | CallAttrs
"""Attributes of the nodes that hold bodies."""


class Graph(Struct, frozen=True):
    """A directed acyclic graph of nodes.

    Invariant, checked by `LitmusTest`: an edge leads from a node to one that
    stands later. The order of `nodes` is thus a linear extension, and no cycle
    can be written down.
    """

    name: str
    nodes: tuple[Node, ...]

    @property
    def effects(self) -> tuple[Node, ...]:
        """Nodes that touch a resource or hold others, in order."""
        return tuple(n for n in self.nodes if n.definition.has_effect)


def bodies(node: Node) -> tuple[tuple[str, Body], ...]:
    """The bodies of a node, each with the name of its field."""
    attrs = node.attrs
    # This is asked often: `isinstance` takes five times as long where the answer is no.
    if type(attrs) is BranchAttrs:
        return ("then", attrs.then), ("else", attrs.orelse)
    if type(attrs) is LoopAttrs:
        return ("condition", attrs.condition), ("body", attrs.body)
    if type(attrs) is CallAttrs:
        return (("body", attrs.body),)
    return ()


def captures_of(node: Node) -> tuple[tuple[str, str], ...]:
    """What a node's bodies take from around it, as (name inside, name outside)."""
    attrs = node.attrs
    if type(attrs) is BranchAttrs or type(attrs) is LoopAttrs or type(attrs) is CallAttrs:
        return attrs.captures
    return ()


def clusters_of(nodes: Iterable[Node], clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """Clusters whose members are among these nodes, which are all nodes of one level."""
    names = {node.name for node in nodes}
    return tuple(cluster for cluster in clusters if cluster.members[0] in names)
