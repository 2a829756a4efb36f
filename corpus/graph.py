"""The litmus test: one frozen value that goes through the whole program.

Every rule of the format is checked when a value is made, so that code which
holds one need not check again. Nothing here is mutable.

References
----------
semantics.md, sections 1 and 2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from corpus.ops import (
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MalformedTest,
    Nested,
    OpDef,
    TensorType,
    check_literal,
    check_shape,
    expand,
    model_size,
    result_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_NODES: Final = 2048
MAX_VARIABLES: Final = 64
CONTROL: Final = re.compile("[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\U0010ffff]")
"""What no text may hold: it moves a terminal's cursor, or is no character at all."""
# `fullmatch`, and ASCII only: these become TensorFlow node names.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def check_name(name: str, path: tuple[str | int, ...]) -> None:
    """Refuse what TensorFlow, a shell or a reader could take for another thing."""
    if not _NAME.fullmatch(name):
        raise MalformedTest(
            f"a name is a letter, then letters, digits or _, at most 64; got {name[:80]!r}", path
        )


@dataclass(frozen=True, slots=True)
class Variable:
    """A resource variable: a named cell that holds one tensor.

    `shape` is ``(rows, *lanes)`` or ``()``; `init` one int for all elements
    or one for each row. `device` is where it lives, "" for the default.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    init: Nested = 0
    device: str = ""

    @property
    def type(self) -> TensorType:
        """dtype and shape."""
        return TensorType(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Node:
    """One op of a graph.

    `inputs` are data edges and `after` control edges, both by the name of a
    node that stands earlier; `resources` are the variables it works on, in
    the roles' order (`OpDef.roles`).
    """

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    attrs: Attrs | None = None

    @property
    def definition(self) -> OpDef:
        """Its row of the op table."""
        return OPS[self.op]


@dataclass(frozen=True, slots=True)
class Graph:
    """A directed acyclic graph of nodes.

    Invariant, checked by `LitmusTest`: an edge leads from a node to one that
    stands later. The order of `nodes` is thus a linear extension, and no cycle
    can be written down.
    """

    name: str
    nodes: tuple[Node, ...]

    @property
    def effects(self) -> tuple[Node, ...]:
        """The nodes that touch a resource, in their order."""
        return tuple(n for n in self.nodes if n.definition.has_effect)


@dataclass(frozen=True, slots=True)
class LitmusTest:
    """Resources, a graph over them, and what is observed.

    Parameters
    ----------
    name : str
        Also its file's name.
    variables : tuple of Variable
    graphs : tuple of Graph
        One, so far: several, with the client program that orders their runs,
        are in the format already (docs/decisions/0002).
    observe : tuple of str
        Names of nodes whose value is part of an outcome.
    about : str
        For people.

    Raises
    ------
    MalformedTest
        Naming the field.
    """

    name: str
    variables: tuple[Variable, ...]
    graphs: tuple[Graph, ...]
    observe: tuple[str, ...] = ()
    about: str = ""
    types: Mapping[str, TensorType | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Result type of each node, by name; None where there is none."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}", self.name):
            raise MalformedTest(f"not a test's name: {self.name[:80]!r}", ("name",))
        if CONTROL.search(self.about):
            raise MalformedTest("control characters are not part of the format", ("about",))
        if not self.variables:
            raise MalformedTest("a test has at least one variable", ("variables",))
        if len(self.variables) > MAX_VARIABLES:
            raise MalformedTest(f"more than {MAX_VARIABLES}: {len(self.variables)}", ("variables",))
        if len(self.graphs) != 1:
            raise MalformedTest(
                f"one graph a test is supported so far, got {len(self.graphs)}", ("graphs",)
            )
        variables: dict[str, Variable] = {}
        for variable in self.variables:
            self._check_variable(variable, variables)
            variables[variable.name] = variable
        types: dict[str, TensorType | None] = {}
        graph = self.graph
        check_name(graph.name, ("graphs", graph.name))
        if len(graph.nodes) > MAX_NODES:
            path = ("graphs", graph.name)
            raise MalformedTest(f"more than {MAX_NODES} nodes: {len(graph.nodes)}", path)
        later = {node.name for node in graph.nodes}
        for node in graph.nodes:
            try:
                types[node.name] = self._check_node(node, types, variables, later)
            except MalformedTest as error:
                where = ("graphs", graph.name, node.name, *error.path)
                raise MalformedTest(error.message, where) from None
        for position, name in enumerate(self.observe):
            if types.get(name) is None:
                what = "has no result" if name in types else "is no node of the graph"
                raise MalformedTest(f"{name!r} {what}", ("observe", position))
            if name in self.observe[:position]:
                raise MalformedTest(f"{name!r} stands twice", ("observe", position))
        object.__setattr__(self, "types", MappingProxyType(types))

    def _check_variable(self, variable: Variable, earlier: Mapping[str, Variable]) -> None:
        path = ("variables", variable.name)
        check_name(variable.name, path)
        if variable.name in earlier:
            raise MalformedTest("stands twice", path)
        if variable.device:
            _check_device(variable.device, (*path, "device"))
        try:
            check_shape(variable.shape, variable.dtype)
            check_literal(variable.init, variable.shape, "init", whole=self.whole)
        except MalformedTest as error:
            raise MalformedTest(error.message, (*path, *error.path)) from None

    def _check_node(
        self,
        node: Node,
        earlier: Mapping[str, TensorType | None],
        variables: Mapping[str, Variable],
        nodes: set[str],
    ) -> TensorType | None:
        check_name(node.name, ())
        if node.name in earlier:
            raise MalformedTest("stands twice")
        if node.name in variables:
            raise MalformedTest("is also the name of a variable; an outcome needs both")
        op = OPS.get(node.op)
        if op is None:
            raise MalformedTest(f"unknown op {node.op!r}", ("op",))
        for field_name, edges in (("inputs", node.inputs), ("after", node.after)):
            for position, source in enumerate(edges):
                if source not in earlier:
                    raise MalformedTest(
                        self._why_not_earlier(node.name, source, nodes), (field_name, position)
                    )
        if len(set(node.after)) != len(node.after):
            raise MalformedTest("names a node twice", ("after",))
        for wanted, got, field_name in (
            (op.operands, node.inputs, "inputs"),
            (op.roles, node.resources, "resources"),
        ):
            if len(wanted) != len(got):
                roles = f" ({', '.join(wanted)})" if wanted else ""
                raise MalformedTest(
                    f"{node.op} takes {len(wanted)}{roles}, got {len(got)}", (field_name,)
                )
        inputs: list[TensorType] = []
        for position, source in enumerate(node.inputs):
            kind = earlier[source]
            if kind is None:
                raise MalformedTest(f"{source!r} has no result", ("inputs", position))
            inputs.append(kind)
        for position, name in enumerate(node.resources):
            if name not in variables:
                raise MalformedTest(f"no variable {name!r}", ("resources", position))
            if name in node.resources[:position]:
                raise MalformedTest(f"{name!r} stands twice", ("resources", position))
        if not isinstance(node.attrs, op.attrs or type(None)):
            raise MalformedTest(f"{node.op} has other attributes", ())
        types = tuple(variables[name].type for name in node.resources)
        return result_type(op, node.attrs, tuple(inputs), types, whole=self.whole)

    def _why_not_earlier(self, node: str, source: str, nodes: set[str]) -> str:
        if source not in nodes:
            return f"no node {source!r}"
        cycle = _path(self.graph, source, node)
        if cycle:
            return "cycle: " + " -> ".join([*cycle, node])
        return f"{source!r} stands below; nodes stand in topological order"

    @property
    def graph(self) -> Graph:
        """The only graph."""
        return self.graphs[0]

    @property
    def whole(self) -> bool:
        """Whether values are whole matrices: the test has a MatMul, hence no lanes."""
        return any(n.op == "MatMul" for g in self.graphs for n in g.nodes)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of an outcome, in order: what is observed, then variables."""
        return (*self.observe, *(v.name for v in self.variables))

    def type_of(self, name: str) -> TensorType:
        """Type of what `name` (of `names`) stands for."""
        for variable in self.variables:
            if variable.name == name:
                return variable.type
        kind = self.types[name]
        assert kind is not None, name
        return kind

    def size_of(self, shape: tuple[int, ...]) -> int:
        """Ints in a model value of that shape (`model_size`)."""
        return model_size(shape, whole=self.whole)

    def initial(self, variable: Variable) -> tuple[int, ...]:
        """The variable's initial contents as a model value."""
        return expand(variable.init, variable.shape, whole=self.whole)

    def constant(self, node: Node) -> tuple[int, ...]:
        """A Const node's model value."""
        assert isinstance(node.attrs, ConstAttrs)
        return expand(node.attrs.value, node.attrs.shape, whole=self.whole)


def _check_device(device: str, path: tuple[str | int, ...]) -> None:
    if not re.fullmatch(r"(cpu|gpu):[0-9]{1,3}", device):
        raise MalformedTest(f"a device is cpu:N or gpu:N, got {device[:80]!r}", path)


def _path(graph: Graph, source: str, target: str) -> list[str]:
    """Nodes on one path that follows edges from `source`'s operands to `target`."""
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


def predecessors(graph: Graph) -> Iterator[tuple[Node, frozenset[str]]]:
    """Each node with all nodes that have a path to it, in the graph's order."""
    known: dict[str, frozenset[str]] = {}
    for node in graph.nodes:
        direct = (*node.inputs, *node.after)
        above = frozenset(direct).union(*(known[d] for d in direct))
        known[node.name] = above
        yield node, above


__all__ = [
    "CONTROL",
    "MAX_NODES",
    "Graph",
    "Kind",
    "LitmusTest",
    "MalformedTest",
    "Node",
    "TensorType",
    "Variable",
    "check_name",
    "predecessors",
]
