"""Placement: assigns each node and resource to a device, and adds Send and Recv between devices.

Executors that run a test on several devices call `place` when they prepare the test. Under the
model `rfc` placement does not change the allowed set.

References
----------
DEVICES, "Heterogenous execution", one of the sources that docs/semantics.md names; semantics.md,
section 6. docs/decisions/0005-devices.md explains the rules.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
    all_nodes,
    captures_of,
)
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.struct import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import NestAttrs, Resource
    from litmusfuzz.corpus.ops import Attrs

DEFAULT: Final = "cpu:0"
"""The device of all nodes and resources, unless the caller or the test names others."""
_NOTHING: Final = ConstAttrs("int32", (), 0)
"""The value that a transfer carries for a control edge."""


class CannotPlace(ValueError):
    """A test that cannot be put on devices; the message says why."""


def place(test: LitmusTest, devices: Sequence[str] = (DEFAULT,)) -> LitmusTest:
    """The test with every resource and node on a device, and transfers between devices.

    Resources that one op or cluster uses are on one device: the device that one of them, or a
    node that uses one of them, already has; else the next one of `devices`, in rotation.

    A node is on the first of these devices that there is:

    1. the device that it already has;
    2. that of its cluster: the device of the members and of their resources, else the default;
    3. that of its resources;
    4. that of its first operand;
    5. that of the resource of the first op in the same graph or body that uses both a resource and
       the value of the node;
    6. the default, which is the first of `devices`; in a test with handles, the one device that is
       in use.

    Arguments and results of a body are on the device of the node that contains the body.

    A value is sent once to each other device that needs it, by one Send and one Recv. Where a
    control edge leads to another device, its source's value is sent; if the source has no value, or
    is a Send, whose value only its Recv takes, a constant that comes after the source is sent.

    Parameters
    ----------
    test : LitmusTest
    devices : sequence of str
        At least one.

    Returns
    -------
    LitmusTest
        Only the edges from a Send to its Recv lead from one device to another. A placed
        test is returned unchanged.

    Raises
    ------
    CannotPlace
        If nodes of one resource, or of one cluster, have different devices; if a test with handles
        would be on several devices, since TensorFlow sends no handle to another device.
    MalformedTest
        If there are too many nodes with the transfers.
    """
    resource_device = _resource_devices(test, devices)
    default = devices[0]
    if "handles" in test.features:
        in_use = {*resource_device.values(), *(node.device for node in test.nodes if node.device)}
        if len(in_use) > 1:
            raise CannotPlace("handles on several devices")
        (default,) = in_use  # a handle has a variable, so something is placed
    placer = _Placer(
        test, resource_device, _cluster_devices(test, resource_device, default), default
    )
    return replace(
        test,
        variables=tuple(
            replace(each, device=resource_device[each.name]) for each in test.variables
        ),
        mutexes=tuple(replace(each, device=resource_device[each.name]) for each in test.mutexes),
        queues=tuple(replace(each, device=resource_device[each.name]) for each in test.queues),
        accumulators=tuple(
            replace(each, device=resource_device[each.name]) for each in test.accumulators
        ),
        graphs=tuple(map(placer.graph, test.graphs)),
    )


def devices_of(test: LitmusTest) -> tuple[str, ...]:
    """The devices of a placed test, by kind and then by number."""
    devices = {each.device for each in test.resources} | {node.device for node in test.nodes}

    def kind_and_number(device: str) -> tuple[str, int]:
        kind, _, number = device.partition(":")
        return kind, int(number)

    return tuple(sorted(devices, key=kind_and_number))


def _resource_devices(test: LitmusTest, devices: Sequence[str]) -> dict[str, str]:
    """The device of each resource, by its name."""
    # Not the order of `test.resources`: the rotation, and so placed tests in files, depend on it.
    resources: list[Resource] = [
        *test.variables,
        *test.queues,
        *test.mutexes,
        *test.accumulators,
    ]
    together = {each.name: {each.name} for each in resources}
    for node in test.nodes:
        _join(node.resources, together)
    for members in _cluster_members(test):
        _join([name for node in members for name in node.resources], together)
    asked = {each.name: {each.device} - {""} for each in resources}
    for node in test.nodes:
        for name in node.resources:
            asked[name] |= {node.device} - {""}
    resource_device: dict[str, str] = {}
    rotation = cycle(devices)
    for each in resources:
        if each.name not in resource_device:
            names = together[each.name]
            choices = set[str]().union(*(asked[name] for name in names))
            if len(choices) > 1:
                raise CannotPlace(f"{each.name!r} on several devices: {', '.join(sorted(choices))}")
            device = choices.pop() if choices else next(rotation)
            resource_device.update(dict.fromkeys(names, device))
    return resource_device


def _join(names: Iterable[str], together: dict[str, set[str]]) -> None:
    """Make one set of the sets of resources that these names are in."""
    joined = set[str]().union(*(together[name] for name in names))
    together.update(dict.fromkeys(joined, joined))


def _cluster_members(test: LitmusTest) -> Iterator[list[Node]]:
    """The members of each cluster, with the nodes of their bodies."""
    nodes = {node.name: node for node in test.nodes}
    for cluster in test.clusters:
        yield list(all_nodes(nodes[name] for name in cluster.members))


def _cluster_devices(
    test: LitmusTest, resource_device: Mapping[str, str], default: str
) -> dict[str, str]:
    """The device of each node in a cluster; `resource_device` has those of the resources."""
    cluster_node_device: dict[str, str] = {}
    for cluster, members in zip(test.clusters, _cluster_members(test), strict=True):
        choices = {node.device for node in members if node.device}
        choices |= {resource_device[name] for node in members for name in node.resources}
        if len(choices) > 1:
            raise CannotPlace(f"{cluster.name!r} on several devices: {', '.join(sorted(choices))}")
        device = choices.pop() if choices else default
        cluster_node_device.update((node.name, device) for node in members)
    return cluster_node_device


class _Placer:
    """Places the nodes of a test, whose resources and clusters have devices.

    Parameters
    ----------
    test : LitmusTest
    resource_device : mapping of str to str
        The device of each resource.
    cluster_node_device : mapping of str to str
        The device of each node in a cluster.
    default : str
    """

    def __init__(
        self,
        test: LitmusTest,
        resource_device: Mapping[str, str],
        cluster_node_device: Mapping[str, str],
        default: str,
    ) -> None:
        self.test = test
        self.resource_device = resource_device
        self.cluster_node_device = cluster_node_device
        self.default = default
        self.names = FreshNames((*test.types, *resource_device))
        self.sends = frozenset(node.name for node in test.nodes if node.op == "Send")

    def graph(self, graph: Graph) -> Graph:
        """A graph, placed."""
        level = _LevelPlacer(self, {})
        level.place(graph.nodes)
        return Graph(graph.name, tuple(level.placed))

    def body(self, body: Body, arguments: Iterable[str], device: str) -> Body:
        """A body of a node on `device`, placed."""
        level = _LevelPlacer(self, dict.fromkeys(arguments, device))
        level.place(body.nodes)
        results = tuple(level.brought_to(device, name) for name in body.results)
        return Body(tuple(level.placed), results)

    def new_name(self, prefix: str, value: str, device: str) -> str:
        """A new name, which says what is sent where."""
        # A name has 64 characters at most: the device and a number follow.
        wanted = f"{prefix}_{value.replace('.', '_')}"[:50] + f"_{device.replace(':', '')}"
        return self.names.like(wanted)


class _LevelPlacer:
    """Places the nodes of one graph or body.

    A *source* is what an edge comes from, by its name: a value, or the end of a node, for which a
    control edge waits.

    Parameters
    ----------
    placer : _Placer
    arguments : mapping of str to str
        For each value that comes into the body: its device.

    Attributes
    ----------
    placed : list of Node
        The nodes that are placed, and their transfers.
    """

    def __init__(self, placer: _Placer, arguments: Mapping[str, str]) -> None:
        self.placer = placer
        self.placed: list[Node] = []
        self._source_device = dict(arguments)
        """The device of each source so far."""
        self._used_on: dict[str, str] = {}
        """For each value that ops with resources take: the device of the first such op."""
        self._received: dict[tuple[str, str], str] = {}
        """For each source that is sent, and each device: the Recv there."""

    def place(self, nodes: Sequence[Node]) -> None:
        """Place all nodes in their order, in which sources stand before their users."""
        for node in nodes:
            for name in node.inputs if node.resources else ():
                self._used_on.setdefault(name, self.placer.resource_device[node.resources[0]])
        for node in nodes:
            self._place_node(node)

    def brought_to(self, device: str, name: str) -> str:
        """Bring a source to a device, by a transfer if it is on another; its name there."""
        origin = self._source_device[name]
        if origin == device:
            return name
        if (name, device) not in self._received:
            new_name = self.placer.new_name
            value = name
            if self.placer.test.types[name] is None or name in self.placer.sends:
                done = new_name("done", name, device)
                value = self._add(Node(done, "Const", after=(name,), attrs=_NOTHING, device=origin))
            send = self._add(Node(new_name("send", name, device), "Send", (value,), device=origin))
            recv = self._add(Node(new_name("recv", name, device), "Recv", (send,), device=device))
            self._received[name, device] = recv
        return self._received[name, device]

    def _add(self, node: Node) -> str:
        """Add a placed node; its name."""
        self.placed.append(node)
        self._source_device |= dict.fromkeys(node.keys, node.device)
        return node.name

    def _place_node(self, node: Node) -> None:
        """Add a node on its device, after the transfers that it needs."""
        device = self._device(node)
        inputs = node.inputs
        if node.op != "Recv":  # the input of a Recv is a Send on another device
            inputs = tuple(self.brought_to(device, name) for name in inputs)
        after = tuple(self.brought_to(device, name) for name in node.after)
        captures = tuple(
            (inner, self.brought_to(device, outer)) for inner, outer in captures_of(node)
        )
        attrs = self._attrs(node, captures, device)
        self._add(replace(node, inputs=inputs, after=after, attrs=attrs, device=device))

    def _device(self, node: Node) -> str:
        """The device of a node, by the rules of `place`, in their order."""
        if node.device:
            return node.device
        if node.name in self.placer.cluster_node_device:
            return self.placer.cluster_node_device[node.name]
        if node.resources:
            return self.placer.resource_device[node.resources[0]]
        if node.inputs:
            return self._source_device[node.inputs[0]]
        return self._used_on.get(node.name, self.placer.default)

    def _attrs(
        self, node: Node, captures: tuple[tuple[str, str], ...], device: str
    ) -> Attrs | NestAttrs | None:
        """The attributes of a node on a device, with these captures and placed bodies."""

        def placed(body: Body) -> Body:
            return self.placer.body(body, node.arguments, device)

        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            then, orelse = placed(attrs.then), placed(attrs.orelse)
            return replace(attrs, captures=captures, then=then, orelse=orelse)
        if isinstance(attrs, LoopAttrs):
            condition, body = placed(attrs.condition), placed(attrs.body)
            return replace(attrs, captures=captures, condition=condition, body=body)
        if isinstance(attrs, CallAttrs):
            return replace(attrs, captures=captures, body=placed(attrs.body))
        return attrs
