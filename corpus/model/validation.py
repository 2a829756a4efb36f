"""Rules of the format: what makes a test well-formed.

Every check raises `MalformedTest` with the path to the field at fault.

References
----------
semantics.md, sections 1 to 3 and 5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Final, NoReturn

from litmusfuzz.corpus.condition import MAX_DEPTH, QUANTIFIERS, Name, status_values
from litmusfuzz.corpus.model.done import done_before
from litmusfuzz.corpus.model.graph import (
    Body,
    BranchAttrs,
    CallAttrs,
    Graph,
    LoopAttrs,
    captures_of,
)
from litmusfuzz.corpus.model.names import CONTROL, after_dot, check_name, head
from litmusfuzz.corpus.model.order import nesting, path_between, pruned, steps
from litmusfuzz.corpus.model.resources import Accumulator, Mutex, Queue, Variable
from litmusfuzz.corpus.model.traversal import all_nodes, handles_of, levels
from litmusfuzz.corpus.ops import (
    BOOL,
    FLOATS,
    MAX_ROWS,
    OPS,
    ConstAttrs,
    HandleAttrs,
    Kind,
    MalformedTest,
    PureAttrs,
    SectionAttrs,
    TensorType,
    check_literal,
    check_shape,
    check_value,
    expand,
    model_size,
    result_type,
)
from litmusfuzz.corpus.outcome import STATUS_KEY
from litmusfuzz.corpus.pure.definition import may_fail, names_no_element, shape_value
from litmusfuzz.corpus.pure.ranges import range_of
from litmusfuzz.corpus.tensors import TENSORS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.condition import Atom, Cell, Condition
    from litmusfuzz.corpus.model.client import Run
    from litmusfuzz.corpus.model.graph import Cluster, Node
    from litmusfuzz.corpus.model.resources import Resource
    from litmusfuzz.corpus.ops import OpDef
    from litmusfuzz.corpus.pure.ranges import Range

MAX_NODES: Final = 2048
"""Nodes of all graphs together, bodies included."""
MAX_VARIABLES: Final = 64
MAX_RUNS: Final = 64
MAX_CAPACITY: Final = 1024
MAX_ITERATIONS: Final = 64
MAX_NESTING: Final = 8
"""Bodies inside each other. A file with more could not be read again: its maps are nested too."""
_HOLDING: Final = (Kind.BRANCH, Kind.LOOP, Kind.CALL)
"""Kinds of nodes that hold bodies."""
_WITH_OTHERS: Final = (Kind.SECTION, Kind.TRANSFER)
"""Kinds of nodes that are well-formed only together with others of their level."""
_ON: Final[Mapping[type, str]] = MappingProxyType(
    {each: each.__name__.lower() for each in (Variable, Mutex, Queue, Accumulator)}
)
"""What an op is on (`OpDef.on`), by the type of its resource."""
_NOT_CLUSTERED: Final = (
    *(Kind.QUEUE, Kind.ACCUMULATOR, Kind.SECTION, Kind.TRANSFER, Kind.HANDLE, Kind.STATE),
)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Checks the nodes of one graph, bodies included, and records their types.

    `earlier` has the types in other graphs. The argument `constants` maps the names of values
    that are one known int to that int; such values bound loops.
    """

    whole: bool
    earlier: Mapping[str, TensorType | None]
    types: dict[str, TensorType | None]
    bounds: dict[str, int]
    resources: Mapping[str, Resource]
    contents: Mapping[str, TensorType]
    """Types of what resources other than mutexes hold."""
    lives: Mapping[str, str]
    """Device of each resource that names one."""
    handles: Mapping[str, frozenset[str]]
    defined: dict[str, Node] = field(default_factory=dict)
    """Nodes so far."""
    outside: dict[str, str] = field(default_factory=dict)
    """Name outside of each captured value."""
    ranges: dict[str, Range | None] = field(default_factory=dict)
    """Bounds on the elements of values, as far as they were asked for."""
    failing: set[str] = field(default_factory=set)
    """Nodes that may fail by their operands."""
    beyond: set[str] = field(default_factory=set)
    """Those of them that fail always: a constant index is out of range."""

    def nodes(
        self,
        graph: Graph,
        path: tuple[str | int, ...],
        scope: Mapping[str, TensorType | None],
        constants: dict[str, int],
    ) -> dict[str, TensorType | None]:
        """Check all nodes of a graph or body; return the types of all values in scope."""
        here = dict(scope)
        if len(path) > 2 + 3 * MAX_NESTING:  # graphs, G, and for each body NODE, then, nodes
            raise MalformedTest(f"more than {MAX_NESTING} bodies inside each other", path[:-1])
        together = False
        for node in graph.nodes:
            try:
                self.types[node.name] = here[node.name] = self.node(graph, node, here)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*path, node.name, *error.path)) from None
            self.defined[node.name] = node
            definition = node.definition
            kind = definition.kind
            if kind is Kind.PURE and not definition.fed:
                if type(node.attrs) is ConstAttrs and isinstance(node.attrs.value, int):
                    constants[node.name] = node.attrs.value
            elif definition.fed and (len(path) > 2 or node.after):
                message = (
                    "a placeholder is fed before its run: it stands outside bodies, after nothing"
                )
                raise MalformedTest(message, (*path, node.name))
            elif kind in _HOLDING:
                results = self.results(node, kind, (*path, node.name), here, constants)
                for name, result in results.items():
                    self.types[f"{node.name}.{name}"] = here[f"{node.name}.{name}"] = result
            elif kind in _WITH_OTHERS:
                together = True
                if kind is Kind.TRANSFER and node.inputs[0] in constants:
                    constants[node.name] = constants[node.inputs[0]]
        if together:
            check_sections(graph, path)
            check_transfers(graph, path)
        return here

    def results(
        self,
        node: Node,
        kind: Kind,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a node that holds bodies; return the types of its results."""
        if kind is Kind.BRANCH:
            return self.branch(node, where, here, constants)
        if kind is Kind.LOOP:
            return self.loop(node, where, here, constants)
        return self.call(node, where, here, constants)

    def new_name(self, name: str) -> None:
        """Refuse an ill-formed name, or one that is in use."""
        check_name(name, ())
        if name in self.types or name in self.earlier:
            raise MalformedTest("stands twice")
        if name in self.resources:
            raise MalformedTest("is also the name of a resource; an outcome needs both")

    def taken(
        self,
        captures: tuple[tuple[str, str], ...],
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> tuple[dict[str, TensorType | None], dict[str, int]]:
        """Check captured values; return their types and known ints by their names inside."""
        scope: dict[str, TensorType | None] = {}
        known: dict[str, int] = {}
        for inner, outer in captures:
            path = (*where, "captures", inner)
            try:
                self.new_name(inner)
            except MalformedTest as error:
                raise MalformedTest(error.message, path) from None
            kind = here.get(outer)
            if kind is None:
                raise MalformedTest(f"no value {outer!r} above", path)
            self.types[inner] = scope[inner] = kind
            self.outside[inner] = outer
            if outer in constants:
                known[inner] = constants[outer]
        return scope, known

    def body(
        self,
        body: Body,
        where: tuple[str | int, ...],
        scope: Mapping[str, TensorType | None],
        known: dict[str, int],
    ) -> tuple[TensorType, ...]:
        """Check a body; return the types of its results."""
        graph = Graph("body", body.nodes)
        inside = self.nodes(graph, (*where, "nodes"), scope, known)
        types = []
        for position, name in enumerate(body.results):
            kind = inside.get(name)
            if kind is None:
                raise MalformedTest(f"no value {name!r} in the body", (*where, "results", position))
            _check_static(kind, (*where, "results", position))
            types.append(kind)
        return tuple(types)

    def predicate(self, kind: TensorType | None, path: tuple[str | int, ...]) -> None:
        """Refuse a predicate that is not one bool (semantics.md, section 1)."""
        if kind is None or kind.dtype != BOOL or model_size(kind.shape, whole=self.whole) != 1:
            raise MalformedTest(f"a predicate is one bool, got {kind}", path)

    def branch(
        self,
        node: Node,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a conditional; return the types of its results."""
        attrs = node.attrs
        if not isinstance(attrs, BranchAttrs):
            raise MalformedTest(f"{node.op} has other attributes", where)
        self.predicate(here[node.inputs[0]], (*where, "inputs", 0))
        if not attrs.results:
            raise MalformedTest("a conditional has at least one result", (*where, "results"))
        scope, known = self.taken(attrs.captures, where, here, constants)
        _check_results(attrs.results, where)
        then = self.body(attrs.then, (*where, "then"), scope, dict(known))
        orelse = self.body(attrs.orelse, (*where, "else"), scope, dict(known))
        for field_name, types in (("then", then), ("else", orelse)):
            if len(types) != len(attrs.results):
                message = f"returns {len(types)} values, not {len(attrs.results)}"
                raise MalformedTest(message, (*where, field_name, "results"))
        for position, (left, right) in enumerate(zip(then, orelse, strict=True)):
            if left != right:
                message = f"both branches return one type, got {left}, {right}"
                raise MalformedTest(message, (*where, "else", "results", position))
        return dict(zip(attrs.results, then, strict=True))

    def call(
        self,
        node: Node,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a call; return the types of its results."""
        attrs = node.attrs
        if not isinstance(attrs, CallAttrs):
            raise MalformedTest(f"{node.op} has other attributes", where)
        scope, known = self.taken(attrs.captures, where, here, constants)
        _check_results(attrs.results, where)
        types = self.body(attrs.body, (*where, "body"), scope, known)
        if len(types) != len(attrs.results):
            message = f"returns {len(types)} values, not {len(attrs.results)}"
            raise MalformedTest(message, (*where, "body", "results"))
        return dict(zip(attrs.results, types, strict=True))

    def loop(
        self,
        node: Node,
        where: tuple[str | int, ...],
        here: Mapping[str, TensorType | None],
        constants: Mapping[str, int],
    ) -> dict[str, TensorType]:
        """Check a loop; return the types of its results."""
        attrs = node.attrs
        if not isinstance(attrs, LoopAttrs):
            raise MalformedTest(f"{node.op} has other attributes", where)
        if node.resources:
            raise MalformedTest("a loop works on no resource itself", (*where, "resources"))
        if not attrs.carried or len(attrs.carried) != len(node.inputs):
            message = f"{len(node.inputs)} inputs for {len(attrs.carried)} carried values"
            raise MalformedTest(message, (*where, "inputs"))
        if not 1 <= attrs.parallel_iterations <= MAX_ITERATIONS:
            message = f"must be 1 to {MAX_ITERATIONS}, got {attrs.parallel_iterations}"
            raise MalformedTest(message, (*where, "parallel_iterations"))
        scope, known = self.taken(attrs.captures, where, here, constants)
        first: list[TensorType] = []
        for position, (name, source) in enumerate(zip(attrs.carried, node.inputs, strict=True)):
            kind = here[source]
            if kind is None:
                raise MalformedTest(f"{source!r} has no result", (*where, "inputs", position))
            _check_static(kind, (*where, "inputs", position))
            try:
                self.new_name(name)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*where, "carried", position)) from None
            self.types[name] = scope[name] = kind
            first.append(kind)
        inside = dict(known)
        (*conditions,) = self.body(attrs.condition, (*where, "condition"), scope, inside)
        if len(conditions) != 1:
            message = f"returns one value, not {len(conditions)}"
            raise MalformedTest(message, (*where, "condition", "results"))
        self.predicate(conditions[0], (*where, "condition", "results", 0))
        following = self.body(attrs.body, (*where, "body"), scope, inside)
        if tuple(first) != following:
            wanted, got = (", ".join(map(str, each)) for each in (first, following))
            message = f"must be the carried values' types {wanted}; got {got}"
            raise MalformedTest(message, (*where, "body", "results"))
        start = constants.get(node.inputs[0])
        self.bounds[node.name] = loop_bound(attrs, start, inside, where)
        return dict(zip(attrs.carried, first, strict=True))

    def node(
        self, graph: Graph, node: Node, earlier: Mapping[str, TensorType | None]
    ) -> TensorType | None:
        """Check one node; return the type of its result.

        `earlier` has what it may refer to.
        """
        self.new_name(node.name)
        resources = self.resources
        if node.op not in OPS:
            raise MalformedTest(f"unknown op {node.op!r}", ("op",))
        op = node.definition
        for source in node.inputs + node.after if node.after else node.inputs:
            if source not in earlier:
                field_name = "inputs" if source in node.inputs else "after"
                position = getattr(node, field_name).index(source)
                why = _why_not_earlier(graph, node.name, source)
                raise MalformedTest(why, (field_name, position))
        if len(node.after) > 1 and len(set(node.after)) != len(node.after):
            raise MalformedTest("names a node twice", ("after",))
        if node.device:
            _check_device(node.device)
        if self.lives:
            self.colocated(node)
        if op.kind is Kind.LOOP:
            return None
        if node.handle:
            self.handle(node, op, earlier)
        if len(node.inputs) != len(op.operands):
            _check_number(node, op, "inputs", op.operands, node.inputs)
        if len(node.resources) != len(op.roles) and not node.handle:
            _check_number(node, op, "resources", op.roles, node.resources)
        inputs: list[TensorType] = []
        for position, source in enumerate(node.inputs):
            kind = earlier[source]
            if kind is None:
                raise MalformedTest(f"{source!r} has no result", ("inputs", position))
            if kind.dtype in TENSORS:  # `is_tensor`, without a call
                pass
            elif kind.is_handle and node.op != "Identity":
                raise MalformedTest(f"{node.op} takes no handle", ("inputs", position))
            elif kind.is_list and op.meaning is None and not (op.pure and op.copies):
                raise MalformedTest(f"{node.op} takes no list", ("inputs", position))
            inputs.append(kind)
        types: list[TensorType] = []
        for position, name in enumerate(node.resources):
            resource = resources.get(name)
            if _ON.get(type(resource)) != op.on:
                raise MalformedTest(f"no {op.on} {name!r}", ("resources", position))
            if name in node.resources[:position]:
                raise MalformedTest(f"{name!r} stands twice", ("resources", position))
            if name in self.contents:
                types.append(self.contents[name])
        if node.handle:
            types = types[:1]  # all are of one type
        if op.kind is not Kind.PURE and op.kind in _HOLDING:  # most are pure, and `in` is slow
            return None
        attrs = node.attrs
        if type(attrs) is not (op.attrs or NoneType):
            raise MalformedTest(f"{node.op} has other attributes", ())
        if type(attrs) is HandleAttrs:
            variable = resources.get(attrs.variable)
            if not isinstance(variable, Variable):
                raise MalformedTest(f"no variable {attrs.variable!r}", ("variable",))
            return variable.type.handle
        known: tuple[tuple[int, ...] | None, ...] = ()
        if op.meaning is not None:
            known = tuple(map(self.known, node.inputs))
            # Of any number of lanes; an op on a variable has its value as first operand.
            kinds, values = tuple(inputs), known
            if op.computed:
                kinds, values = (*types, *inputs), (None, *known)
            if names_no_element(op.meaning, attrs, kinds, values):
                self.beyond.add(node.name)
                # Typed as where the index is computed.
                roles = op.meaning.roles(len(kinds)) or ()
                free = tuple(role in op.meaning.index for role in roles)
                values = tuple(None if f else v for f, v in zip(free, values, strict=True))
                known = values[len(values) - len(known) :]
            ranges: tuple[Range | None, ...] = ()
            if op.meaning.fails_by and None in values:
                ranges = tuple(map(self.range, node.inputs))
                ranges = (None, *ranges) if op.computed else ranges
            own = attrs if isinstance(attrs, PureAttrs) else None
            if may_fail(op.meaning, own, kinds, values, ranges):
                self.failing.add(node.name)
        return result_type(op, attrs, tuple(inputs), tuple(types), whole=self.whole, known=known)

    def known(self, name: str) -> tuple[int, ...] | None:
        """The value of a constant, or of the shape of a value of static shape; else None."""
        while name in self.outside:
            name = self.outside[name]
        node = self.defined.get(name)
        if node is None:
            return None
        if isinstance(node.attrs, ConstAttrs):
            if model_size(node.attrs.shape, whole=self.whole) > MAX_ROWS:
                return None
            return expand(node.attrs.value, node.attrs.shape, whole=self.whole)
        if node.definition.pure and node.definition.copies:
            return self.known(node.inputs[0])
        kind = self.types.get(node.inputs[0]) if node.inputs else None
        return None if kind is None else shape_value(node.op, kind)

    def range(self, name: str) -> Range | None:
        """Bounds on the elements of a value; None if there are none."""
        while name in self.outside:
            name = self.outside[name]
        if name not in self.ranges:
            value, kind = self.known(name), self.types.get(name)
            node = self.defined.get(name)
            if value:
                self.ranges[name] = min(value), max(value)
            elif kind is not None and kind.dtype == BOOL:
                self.ranges[name] = 0, 1
            elif node is not None and node.definition.pure:
                self.ranges[name] = range_of(node.op, tuple(map(self.range, node.inputs)))
            else:
                self.ranges[name] = None
        return self.ranges[name]

    def handle(self, node: Node, op: OpDef, earlier: Mapping[str, TensorType | None]) -> None:
        """Refuse a handle that is none, or that stands for other variables."""
        if op.on != "variable" or len(op.roles) != 1:
            raise MalformedTest(f"{node.op} takes no handle", ("handle",))
        kind = earlier.get(node.handle)
        if kind is None or not kind.is_handle:
            raise MalformedTest(f"no handle {node.handle!r} above", ("handle",))
        wanted = [name for name in self.resources if name in self.handles[node.handle]]
        if sorted(node.resources) != sorted(wanted):
            message = f"{node.handle!r} stands for {', '.join(wanted)}, which are to be listed"
            raise MalformedTest(message, ("resources",))

    def colocated(self, node: Node) -> None:
        """Refuse an op that names one device, and its resources another.

        References
        ----------
        DEVICES, "Heterogenous execution": variable edges never cross devices.
        """
        device = node.device
        for position, name in enumerate(node.resources):
            where = self.lives.get(name, "")
            if where and device and where != device:
                message = f"{name!r} lives on {where}, and is worked on from {device}"
                raise MalformedTest(message, ("resources", position))
            device = device or where


def _check_number(
    node: Node, op: OpDef, field_name: str, wanted: Sequence[str], got: Sequence[str]
) -> None:
    """Refuse another number of operands or resources than an op takes."""
    repeats = op.meaning is not None and wanted and op.pure
    if repeats and op.meaning is not None and op.meaning.roles(len(got)) is not None:
        return  # an operand may be given several times
    roles = f" ({', '.join(wanted)})" if wanted else ""
    message = f"{node.op} takes {len(wanted)}{roles}, got {len(got)}"
    raise MalformedTest(message, (field_name,))


def _check_results(results: tuple[str, ...], where: tuple[str | int, ...]) -> None:
    """Refuse malformed names of results."""
    seen: set[str] = set()
    for position, name in enumerate(results):
        check_name(name, (*where, "results", position))
        if name in seen:
            raise MalformedTest(f"{name!r} stands twice", (*where, "results", position))
        seen.add(name)


def _check_static(kind: TensorType, path: tuple[str | int, ...]) -> None:
    """Refuse a value whose shape may differ between orders."""
    if kind.dynamic:
        raise MalformedTest(f"has one shape in all orders, got {kind}; see EnsureShape", path)


def loop_bound(
    attrs: LoopAttrs,
    start: int | None,
    known: Mapping[str, int],
    where: tuple[str | int, ...] = (),
) -> int:
    """Upper bound on the iterations of a loop.

    The first carried value is a counter: it starts at a constant, the body
    adds a positive constant, and the condition is ``Less(counter, limit)``, or
    ``Select(Less(counter, limit), anything, false)`` where data decides too.

    Raises
    ------
    MalformedTest
        If that is not so, or the bound is above `MAX_ITERATIONS`.

    References
    ----------
    semantics.md, section 3, "Loops".
    """
    counter = attrs.carried[0]
    nodes = {n.name: n for body in (attrs.condition, attrs.body) for n in body.nodes}

    def origin(name: str) -> str:
        """The node that makes a value, through transfers between devices."""
        while name in nodes and nodes[name].definition.kind is Kind.TRANSFER:
            (name,) = nodes[name].inputs
        return name

    step_node = nodes.get(origin(attrs.body.results[0]))
    test_node = nodes.get(origin(attrs.condition.results[0]))
    if test_node is not None and test_node.op == "Select":
        never = known.get(test_node.inputs[2])
        test_node = nodes.get(origin(test_node.inputs[0])) if never == 0 else None
    limit = step = None
    if test_node is not None and test_node.op == "Less" and origin(test_node.inputs[0]) == counter:
        limit = known.get(test_node.inputs[1])
    if step_node is not None and step_node.op == "AddV2" and origin(step_node.inputs[0]) == counter:
        step = known.get(step_node.inputs[1])
    if start is None or limit is None or step is None or step < 1:
        raise MalformedTest(
            "the first carried value must be a counter: a constant start, AddV2 of a positive "
            "constant in the body, Less than a constant in the condition",
            where,
        )
    bound = max(0, -((start - limit) // step))
    if bound > MAX_ITERATIONS:
        raise MalformedTest(f"more than {MAX_ITERATIONS} iterations: {bound}", where)
    return bound


def _why_not_earlier(graph: Graph, node: str, source: str) -> str:
    if source not in {each.name for each in graph.nodes}:
        return f"no node {source!r}"
    cycle = path_between(graph, source, node)
    if cycle:
        return "cycle: " + " -> ".join([*cycle, node])
    return f"{source!r} stands below; nodes stand in topological order"


def check_transfers(graph: Graph, where: tuple[str | int, ...]) -> None:
    """Refuse a Send without exactly one Recv in the same level, and a Recv without a Send.

    References
    ----------
    DEVICES, "Heterogenous execution".
    """
    takers = {node.name: 0 for node in graph.nodes if node.op == "Send"}
    if not takers and all(node.op != "Recv" for node in graph.nodes):
        return
    for node in graph.nodes:
        for position, name in enumerate(node.inputs):
            path = (*where, node.name, "inputs", position)
            if (name in takers) != (node.op == "Recv"):
                sent = f"{name!r} sends to another device: a Recv takes it"
                raise MalformedTest(sent if name in takers else f"{name!r} is no Send beside", path)
            if name in takers:
                takers[name] += 1
    for name, count in takers.items():
        if count != 1:
            message = f"one Recv takes what a Send sends, not {count}"
            raise MalformedTest(message, (*where, name))


def check_sections(graph: Graph, where: tuple[str | int, ...]) -> None:
    """Refuse sections that overlap, and a cycle that goes through one.

    References
    ----------
    semantics.md, section 3, rule 2.
    """
    sections = [n for n in graph.nodes if isinstance(n.attrs, SectionAttrs)]
    if not sections:
        return
    names = {n.name: n for n in graph.nodes}
    for node in sections:
        path = (*where, node.name, "members")
        if not node.members:
            raise MalformedTest("a section has at least one member", path)
        seen: set[str] = set()
        for position, name in enumerate(node.members):
            if name not in names or isinstance(names[name].attrs, SectionAttrs):
                raise MalformedTest(f"no node {name!r} that can be a member", (*path, position))
            if name in seen:
                raise MalformedTest(f"{name!r} stands twice", (*path, position))
            if names[name].definition.fed:
                message = f"{name!r} is fed before the run, not in the section"
                raise MalformedTest(message, (*path, position))
            seen.add(name)
    try:
        nesting(sections)
    except MalformedTest as error:
        raise MalformedTest(error.message, (*where, *error.path, "members")) from None
    steps(graph, (), where)


def _check_members(
    cluster: Cluster,
    level: Mapping[str, Node],
    elsewhere: set[str],
    path: tuple[str | int, ...],
) -> None:
    """Refuse members outside one level, blocking ops, and members out of order.

    Members may be in different critical sections: their cluster comes after each acquire and
    before each release. That is seldom sound, and our clusterer never does it, but another may.

    References
    ----------
    semantics.md, section 5, "SSA order".
    """
    earlier: set[str] = set()
    mine = set(cluster.members)
    for position, name in enumerate(cluster.members):
        where = (*path, position)
        node = level.get(name)
        if node is None:
            message = f"{name!r} is no node beside {cluster.members[0]!r} in one graph or body"
            raise MalformedTest(message, where)
        if name in earlier:
            raise MalformedTest(f"{name!r} stands twice", where)
        if name in elsewhere:
            raise MalformedTest(f"{name!r} is in another cluster as well", where)
        for inner in all_nodes([node]):
            kind = inner.definition.kind
            if kind in _NOT_CLUSTERED or inner.definition.fed or inner.handle:
                raise MalformedTest(f"{inner.op} ({inner.name}) cannot be compiled", where)
        for source in map(head, node.edges):
            if source in mine and source not in earlier:
                message = f"{name!r} stands before {source!r}, which it waits for"
                raise MalformedTest(message, where)
        for _, outer in captures_of(node):
            if head(outer) in mine and head(outer) not in earlier:
                message = f"{name!r} stands before {outer!r}, which it takes"
                raise MalformedTest(message, where)
        earlier.add(name)


def _check_device(device: str) -> None:
    if device and not re.fullmatch(r"(cpu|gpu|opencl):(0|[1-9][0-9]{0,2})", device):
        message = f"a device is cpu:N, gpu:N or opencl:N, got {device[:80]!r}"
        raise MalformedTest(message, ("device",))


def check_texts(name: str, description: str) -> None:
    """Refuse a name of a test that is no file name, and control characters."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}", name):
        raise MalformedTest(f"not a test's name: {name[:80]!r}", ("name",))
    if CONTROL.search(description):
        raise MalformedTest("control characters are not part of the format", ("description",))


def check_resources(
    variables: tuple[Variable, ...],
    mutexes: tuple[Mutex, ...],
    queues: tuple[Queue, ...],
    accumulators: tuple[Accumulator, ...] = (),
    *,
    whole: bool,
) -> dict[str, Resource]:
    """Refuse malformed resources; return the resources by name."""
    if not (variables or mutexes or queues or accumulators):
        raise MalformedTest("a test has at least one resource", ("variables",))
    resources: dict[str, Resource] = {}
    listed: tuple[Resource, ...]
    for kind, listed in (
        ("variables", variables),
        ("mutexes", mutexes),
        ("queues", queues),
        ("accumulators", accumulators),
    ):
        if len(listed) > MAX_VARIABLES:
            raise MalformedTest(f"more than {MAX_VARIABLES}: {len(listed)}", (kind,))
        for each in listed:
            path = (kind, each.name)
            check_name(each.name, path)
            if each.name in resources:
                raise MalformedTest("stands twice", path)
            try:
                _check_device(each.device)
                if isinstance(each, Variable):
                    check_shape(each.shape, each.dtype)
                    if each.init is not None:
                        check_literal(each.init, each.shape, "init", whole=whole)
                    if each.gradient and (each.init is None or each.dtype not in FLOATS):
                        message = "only an initial value of floats has a gradient"
                        raise MalformedTest(message, ("gradient",))
                elif isinstance(each, Queue):
                    _check_queue(each, whole=whole)
                elif isinstance(each, Accumulator):
                    check_shape(each.shape, each.dtype, FLOATS)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*path, *error.path)) from None
            resources[each.name] = each
    return resources


def check_gradients(
    variables: tuple[Variable, ...], types: Mapping[str, TensorType | None], *, whole: bool
) -> None:
    """Refuse gradients in a test with lanes: that of a scalar would add up all lanes."""
    differentiated = [each for each in variables if each.gradient]
    if whole or not differentiated:
        return
    shapes = [kind.shape for kind in types.values() if kind] + [each.shape for each in variables]
    for each in differentiated:
        if any(len(shape) > 1 for shape in shapes):
            message = "a test with lanes has no gradients"
            raise MalformedTest(message, ("variables", each.name, "gradient"))


def _check_queue(queue: Queue, *, whole: bool) -> None:
    check_shape(queue.shape, queue.dtype)
    if not 1 <= queue.capacity <= MAX_CAPACITY:
        message = f"must be 1 to {MAX_CAPACITY}, got {queue.capacity}"
        raise MalformedTest(message, ("capacity",))
    if len(queue.init) > queue.capacity:
        message = f"{len(queue.init)} elements, capacity {queue.capacity}"
        raise MalformedTest(message, ("init",))
    for element in queue.init:
        check_literal(element, queue.shape, "init", whole=whole)


def check_graphs(
    graphs: tuple[Graph, ...],
    nodes: Sequence[Sequence[Node]],
    resources: Mapping[str, Resource],
    *,
    whole: bool,
) -> tuple[dict[str, TensorType | None], dict[str, int], frozenset[str], frozenset[str]]:
    """Refuse malformed graphs.

    Parameters
    ----------
    graphs : tuple of Graph
    nodes : sequence of sequence of Node
        Of each graph, bodies included.
    resources : mapping of str to Resource
    whole : bool
        True if values are whole tensors.

    Returns
    -------
    types : dict of str to TensorType or None
        Result type of each node and of each value inside a body.
    bounds : dict of str to int
        Upper bound on the iterations of each loop.
    failing, beyond : frozenset of str
        Nodes that may fail by their operands, and those that always do: a constant index is out
        of range.
    """
    failing: set[str] = set()
    beyond: set[str] = set()
    if not graphs:
        raise MalformedTest("a test has at least one graph", ("graphs",))
    if len(graphs) > MAX_RUNS:  # without a client, each runs once
        raise MalformedTest(f"more than {MAX_RUNS} graphs: {len(graphs)}", ("graphs",))
    count = 0
    handles: Mapping[str, frozenset[str]] = {}
    if any(HandleAttrs in {type(node.attrs) for node in listed} for listed in nodes):
        handles = handles_of(graphs)
    contents = {name: each.type for name, each in resources.items() if not isinstance(each, Mutex)}
    lives = {name: each.device for name, each in resources.items() if each.device}
    types: dict[str, TensorType | None] = {}
    bounds: dict[str, int] = {}
    seen: set[str] = set()
    for graph, listed in zip(graphs, nodes, strict=True):
        path = ("graphs", graph.name)
        check_name(graph.name, path)
        if graph.name in seen:
            raise MalformedTest("stands twice", path)
        seen.add(graph.name)
        count += len(listed)
        if count > MAX_NODES:
            raise MalformedTest(f"more than {MAX_NODES} nodes: {count}", path)
        for node in listed if types else ():
            if node.name in types:
                raise MalformedTest("is a node of another graph as well", (*path, node.name))
        own: dict[str, TensorType | None] = {}
        checker = _Checker(whole, types, own, bounds, resources, contents, lives, handles)
        checker.nodes(graph, path, {}, {})
        types |= own
        failing |= checker.failing
        beyond |= checker.beyond
    return types, bounds, frozenset(failing), frozenset(beyond)


def check_client(client: tuple[Run, ...], graphs: tuple[Graph, ...]) -> None:
    """Refuse runs of no graph, and runs after no earlier run."""
    known = {graph.name for graph in graphs}
    earlier: set[str] = set()
    if len(client) > MAX_RUNS:
        raise MalformedTest(f"more than {MAX_RUNS} runs: {len(client)}", ("client",))
    for run in client:
        path = ("client", run.name)
        check_name(run.name, path)
        if run.name in earlier:
            raise MalformedTest("stands twice", path)
        if run.graph not in known:
            raise MalformedTest(f"no graph {run.graph!r}", (*path, "graph"))
        for position, name in enumerate(run.after):
            if name not in earlier:
                message = f"no run {name!r} above; runs stand in topological order"
                raise MalformedTest(message, (*path, "after", position))
            if name in run.after[:position]:
                raise MalformedTest(f"{name!r} stands twice", (*path, "after", position))
        earlier.add(run.name)


def check_wanted(
    runs: tuple[Run, ...], graphs: tuple[Graph, ...], types: Mapping[str, TensorType | None]
) -> dict[str, Graph]:
    """Refuse fetches and targets that do not exist.

    Returns
    -------
    dict of str to Graph
        By run: the part of its graph that it executes.
    """
    by_name = {graph.name: graph for graph in graphs}
    parts: dict[str, Graph] = {}
    for run in runs:
        graph = parts[run.name] = by_name[run.graph]
        if not run.wanted:
            continue
        nodes = {node.name: node for node in graph.nodes}
        keys = {key for node in graph.nodes for key in node.keys}
        for field_name, names, known in (
            ("fetches", run.fetches, keys),
            ("targets", run.targets, nodes.keys()),
        ):
            for position, name in enumerate(names):
                path = ("client", run.name, field_name, position)
                if name not in known:
                    inside = " outside bodies" if name in types else ""
                    raise MalformedTest(f"{name!r} is no node of graph {run.graph!r}{inside}", path)
                if name in names[:position] or (names is run.targets and name in run.fetches):
                    raise MalformedTest(f"{name!r} stands twice", path)
                if names is run.fetches and types[name] is None:
                    raise MalformedTest(f"{name!r} has no value: it can be a target", path)
                if nodes[head(name)].definition.fed:
                    message = f"{name!r} is fed: TensorFlow refuses to run it as well"
                    raise MalformedTest(message, path)
                if nodes[head(name)].op == "Send":
                    raise MalformedTest(f"{name!r} sends to another device: name its Recv", path)
        parts[run.name] = pruned(graph, run.wanted)
    return parts


def check_feeds(
    runs: tuple[Run, ...],
    parts: Mapping[str, Graph],
    types: Mapping[str, TensorType | None],
    *,
    whole: bool,
) -> None:
    """Refuse a run that does not feed exactly the placeholders that it executes."""
    for run in runs:
        path = ("client", run.name, "feeds")
        fed = {node.name for node in parts[run.name].nodes if node.definition.fed}
        seen: set[str] = set()
        for name, value in run.feeds:
            if name not in fed:
                message = f"the run executes no placeholder {name!r}"
                raise MalformedTest(message, (*path, name))
            if name in seen:
                raise MalformedTest("stands twice", (*path, name))
            seen.add(name)
            kind = types[name]
            assert kind is not None
            try:
                check_value(value, kind, name, whole=whole)
            except MalformedTest as error:
                raise MalformedTest(error.message, (*path, *error.path)) from None
        for name in sorted(fed - seen):
            raise MalformedTest(f"run {run.name!r} feeds no value to placeholder {name!r}", path)


def check_clusterable(runs: tuple[Run, ...], variables: tuple[Variable, ...]) -> None:
    """Check that a test may have clusters: no run fetches, and each variable has a value.

    Which members of a cluster are executed is not defined, nor when its snapshot fails.

    Raises
    ------
    MalformedTest
        Naming the run, or the variable.
    """
    for variable in variables:
        if variable.init is None:
            message = "in a test with clusters each variable has an initial value"
            raise MalformedTest(message, ("variables", variable.name, "initialized"))
    for run in runs:
        if run.wanted:
            field_name = "fetches" if run.fetches else "targets"
            message = "in a test with clusters each run executes its whole graph"
            raise MalformedTest(message, ("client", run.name, field_name))


def check_clusters(
    clusters: tuple[Cluster, ...], graphs: tuple[Graph, ...], names: Iterable[str]
) -> None:
    """Refuse clusters that cannot run as one node with two events (semantics.md, section 5).

    `names` are those of all nodes, values and resources.
    """
    taken = set(names)
    found = [level for graph in graphs for level in levels(graph)]
    home: dict[str, int] = {}  # number of each node's level
    by_level: list[dict[str, Node]] = []
    for number, level in enumerate(found):
        nodes = {node.name: node for node in level.nodes}
        by_level.append(nodes)
        home |= dict.fromkeys(nodes, number)
    here: dict[int, list[Cluster]] = {}
    clustered: set[str] = set()
    for cluster in clusters:
        path = ("clusters", cluster.name)
        check_name(cluster.name, path)
        if cluster.name in taken:
            raise MalformedTest("is also the name of something else", path)
        taken.add(cluster.name)
        if not cluster.members:
            raise MalformedTest("a cluster has at least one member", path)
        if cluster.members[0] not in home:
            raise MalformedTest(f"no node {cluster.members[0]!r}", (*path, 0))
        number = home[cluster.members[0]]
        _check_members(cluster, by_level[number], clustered, path)
        clustered.update(cluster.members)
        here.setdefault(number, []).append(cluster)
    for number in sorted(here):
        level = found[number]
        if clustered.intersection(level.around):
            message = "lies inside a member of another cluster"
            raise MalformedTest(message, ("clusters", here[number][0].name))
        steps(Graph("", level.nodes), here[number], level.path)


def check_closes(graphs: tuple[Graph, ...], runs: tuple[Run, ...]) -> None:
    """Refuse an enqueue that does not come before the Close of its queue.

    References
    ----------
    semantics.md, section 3.
    """
    closes: list[tuple[Graph, Node]] = []
    puts: dict[str, list[tuple[Graph, Node, str]]] = {}
    """By queue: each node that puts an element, with its graph and the node that holds it."""
    for graph in graphs:
        for node in graph.nodes:
            for inner in all_nodes([node]):
                if inner.definition.puts:
                    entry = (graph, inner, node.name)
                    puts.setdefault(inner.resources[0], []).append(entry)
                if not inner.definition.closes:
                    continue
                if inner is not node:
                    path = ("graphs", graph.name, inner.name)
                    raise MalformedTest("a queue is closed outside bodies", path)
                closes.append((graph, node))
    if not closes:
        return
    runs_of: dict[str, list[Run]] = {}
    for run in runs:
        runs_of.setdefault(run.graph, []).append(run)
    closed: set[str] = set()
    for graph, node in closes:
        own = runs_of.get(graph.name, ())
        if node.resources[0] in closed or len(own) != 1:
            path = ("graphs", graph.name, node.name)
            raise MalformedTest("a queue is closed once, by a graph that runs once", path)
        closed.add(node.resources[0])
    for graph, node in closes:
        earlier = _runs_before(runs_of[graph.name][0], runs)
        entries = puts.get(node.resources[0], ())
        before = done_before(graph, [put.name for other, put, _ in entries if other is graph])
        for other, put, holder in entries:
            if other is graph and put.name in before[node.name]:
                continue
            if any(run.name not in earlier for run in runs_of.get(other.name, ())):
                path = ("graphs", graph.name, node.name)
                raise MalformedTest(f"{holder!r} is not ordered before it", path)


def _runs_before(run: Run, runs: tuple[Run, ...]) -> set[str]:
    by_name = {each.name: each for each in runs} if run.after else {}
    names: set[str] = set()
    stack = list(run.after)
    while stack:
        name = stack.pop()
        if name not in names:
            names.add(name)
            stack += by_name[name].after
    return names


def check_condition(
    condition: Condition,
    sizes: Mapping[str, int],
    queues: Container[str],
    without_value: Container[str],
) -> None:
    """Check that a condition is about the keys of an outcome, and values that these may have.

    Parameters
    ----------
    condition : Condition
    sizes : mapping of str to int
        Ints of a value, by key; for a queue, of one element.
    queues, without_value : container of str
        Queues, and variables that have no value at first.
    """

    def refuse(atom: Atom, message: str) -> NoReturn:
        raise MalformedTest(f"{atom}: {message}", ("condition",))

    if condition.quantifier not in QUANTIFIERS:
        message = f"is exists, ~exists or forall, not {condition.quantifier[:40]!r}"
        raise MalformedTest(message, ("condition",))
    if condition.depth > MAX_DEPTH:
        raise MalformedTest("is nested too deeply", ("condition",))
    for atom in condition.atoms:
        named = [atom.left, *([atom.right.text] if isinstance(atom.right, Name) else [])]
        for name in named:
            if name not in sizes and name != STATUS_KEY:
                refuse(atom, f"no {name[:80]} among {', '.join([*sizes, STATUS_KEY])}")
        if isinstance(atom.right, Name):
            left, right = (_kind_of(name, sizes, queues) for name in named)
            if left != right:
                refuse(atom, f"{atom.left} is {left}, {atom.right} {right}")
            continue
        if atom.left == STATUS_KEY:
            if atom.right not in status_values():
                refuse(atom, f"{STATUS_KEY} is {', '.join(status_values())}")
        elif atom.left in queues:
            if not isinstance(atom.right, tuple):
                refuse(atom, f"the contents of {atom.left} are a list, as in {atom.left}=[1,2]")
            if not all(_is_value(each, sizes[atom.left]) for each in atom.right):
                refuse(atom, f"each element of {atom.left} has {sizes[atom.left]} ints")
        elif not _is_value(atom.right, sizes[atom.left]) and not (
            atom.right == () and atom.left in without_value
        ):
            refuse(atom, f"{atom.left} is {_kind_of(atom.left, sizes, queues)}")


def _kind_of(name: str, sizes: Mapping[str, int], queues: Container[str]) -> str:
    """The values of a key of an outcome, in words."""
    if name == STATUS_KEY:
        return f"one of {', '.join(status_values())}"
    value = "an int" if sizes[name] == 1 else f"a list of {sizes[name]} ints"
    return f"a list of elements, each {value}" if name in queues else value


def _is_value(cell: Cell, size: int) -> bool:
    """True for an int, if a value has one, or else for so many in a list."""
    if isinstance(cell, tuple):
        return size > 1 and len(cell) == size and all(isinstance(each, int) for each in cell)
    return size == 1 and isinstance(cell, int)


def check_observe(
    observe: tuple[str, ...],
    graphs: tuple[Graph, ...],
    types: Mapping[str, TensorType | None],
    runs: tuple[Run, ...],
    parts: Mapping[str, Graph],
) -> dict[str, TensorType]:
    """Refuse to observe nodes without a value, or in a run that does not fetch them.

    Returns
    -------
    dict of str to TensorType
        Type of each value by its key.
    """
    outside = {graph.name: {node.name for node in graph.nodes} for graph in graphs}
    graph_of = {run.name: run.graph for run in runs}
    fetching = {run.name: run for run in runs if run.wanted}
    found: dict[str, TensorType] = {}
    for position, key in enumerate(observe):
        run, name = (runs[0].name, key) if len(runs) == 1 else (head(key), after_dot(key))
        if run not in graph_of or name not in types or head(name) not in outside[graph_of[run]]:
            hint = "" if len(runs) == 1 else " (run.node, with several runs)"
            raise MalformedTest(f"{key!r} is no node of a graph{hint}", ("observe", position))
        if run in fetching and name not in fetching[run].fetches:
            executed = any(node.name == head(name) for node in parts[run].nodes)
            why = "" if executed else ", nor anything that needs it"
            message = f"run {run!r} does not fetch {name!r}{why}"
            raise MalformedTest(message, ("observe", position))
        kind = types[name]
        if kind is None:
            raise MalformedTest(f"{key!r} has no result", ("observe", position))
        _check_static(kind, ("observe", position))
        if not kind.is_tensor:
            what = "a handle" if kind.is_handle else "a list; see TensorListStack"
            raise MalformedTest(f"{key!r} is {what}", ("observe", position))
        if key in found:
            raise MalformedTest(f"{key!r} stands twice", ("observe", position))
        found[key] = kind
    return found
