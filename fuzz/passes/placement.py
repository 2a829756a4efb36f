"""Placement: assigns each node and resource to a device, and adds Send and Recv between devices.

Under the model `rfc` placement does not change the allowed set.

References
----------
DEVICES, "Heterogenous execution"; semantics.md, section 6.
docs/decisions/0005-devices.md explains the rules.
"""

from __future__ import annotations

from itertools import count
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

    from litmusfuzz.corpus.model import Resource

DEFAULT: Final = "cpu:0"
_NOTHING: Final = ConstAttrs("int32", (), 0)
"""The value that a transfer carries for a control edge."""


class CannotPlace(ValueError):
    """A test that cannot be put on devices; the message says why."""


def place(test: LitmusTest, devices: Sequence[str] = (DEFAULT,)) -> LitmusTest:
    """The test with everything on a device, and transfers between them.

    A resource or node that has a device keeps it. Other resources are assigned to
    `devices` round-robin; resources of one op get the same device. A node runs on the
    device of its resources; without resources, on the device of its first operand;
    without operands, on the device of the resource that its value is first used with;
    else on the first of `devices`. Arguments and results of a body are on the device of
    the node that contains it.

    For each value and each device that needs it there is one Send and one Recv. For a
    control edge from a node without a value, or from a Send, whose value only its Recv takes, a
    constant after that node is sent.

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
        is on several devices, since TensorFlow sends no handle to another device.
    MalformedTest
        If there are too many nodes with the transfers.
    """
    lives = _homes(test, devices)
    if "handles" in test.features:
        placed = {*lives.values(), *(node.device for node in test.nodes if node.device)}
        if len(placed) > 1:
            raise CannotPlace("handles on several devices")
        devices = tuple(placed)
    placing = _Placing(test, lives, devices[0], _of_clusters(test, lives, devices[0]))
    return replace(
        test,
        variables=tuple(replace(each, device=lives[each.name]) for each in test.variables),
        mutexes=tuple(replace(each, device=lives[each.name]) for each in test.mutexes),
        queues=tuple(replace(each, device=lives[each.name]) for each in test.queues),
        accumulators=tuple(replace(each, device=lives[each.name]) for each in test.accumulators),
        graphs=tuple(Graph(g.name, placing.body(g.nodes, {}, (), "")[0]) for g in test.graphs),
    )


def devices_of(test: LitmusTest) -> tuple[str, ...]:
    """The devices of a placed test, in the order of their names."""
    placed: list[Resource | Node] = [*test.resources]
    placed += test.nodes

    def order(device: str) -> tuple[str, int]:
        sort, _, number = device.partition(":")
        return sort, int(number)

    return tuple(sorted({each.device for each in placed}, key=order))


def _homes(test: LitmusTest, devices: Sequence[str]) -> dict[str, str]:
    """The device of each resource."""
    resources: list[Resource] = [
        *test.variables,
        *test.queues,
        *test.mutexes,
        *test.accumulators,
    ]
    together = {each.name: {each.name} for each in resources}
    for node in test.nodes:
        _join(node.resources, together)
    for members in _members(test):
        _join([name for node in members for name in node.resources], together)
    given = {each.name: {each.device} - {""} for each in resources}
    for node in test.nodes:
        for name in node.resources:
            given[name] |= {node.device} - {""}
    lives: dict[str, str] = {}
    position = count()
    for each in resources:
        if each.name not in lives:
            known = set[str]().union(*(given[name] for name in together[each.name]))
            if len(known) > 1:
                raise CannotPlace(f"{each.name!r} on several devices: {', '.join(sorted(known))}")
            chosen = known.pop() if known else devices[next(position) % len(devices)]
            lives.update(dict.fromkeys(together[each.name], chosen))
    return lives


def _join(names: Iterable[str], together: dict[str, set[str]]) -> None:
    joined = set[str]().union(*(together[name] for name in names))
    together.update(dict.fromkeys(joined, joined))


def _members(test: LitmusTest) -> Iterator[list[Node]]:
    """The members of each cluster, with the nodes of their bodies."""
    nodes = {node.name: node for node in test.nodes}
    for cluster in test.clusters:
        yield list(all_nodes(nodes[name] for name in cluster.members))


def _of_clusters(test: LitmusTest, lives: Mapping[str, str], default: str) -> dict[str, str]:
    """The device of each node in a cluster."""
    found: dict[str, str] = {}
    for cluster, members in zip(test.clusters, _members(test), strict=True):
        given = {node.device for node in members if node.device}
        given |= {lives[name] for node in members for name in node.resources}
        if len(given) > 1:
            raise CannotPlace(f"{cluster.name!r} on several devices: {', '.join(sorted(given))}")
        found.update(dict.fromkeys((node.name for node in members), (*given, default)[0]))
    return found


class _Placing:
    def __init__(
        self,
        test: LitmusTest,
        lives: Mapping[str, str],
        default: str,
        clustered: Mapping[str, str],
    ) -> None:
        self.test = test
        self.lives = lives
        self.default = default
        self.clustered = clustered
        self.names = FreshNames((*test.types, *lives))
        self.sends = frozenset(node.name for node in test.nodes if node.op == "Send")

    def name(self, prefix: str, value: str, device: str) -> str:
        """A new one, which says what is sent where."""
        wanted = f"{prefix}_{value.replace('.', '_')}"[:50] + f"_{device.replace(':', '')}"
        return self.names.like(wanted)

    def body(
        self,
        nodes: Iterable[Node],
        arguments: Mapping[str, str],
        results: Sequence[str],
        wanted_on: str,
    ) -> tuple[tuple[Node, ...], tuple[str, ...]]:
        """The placed nodes of a body, and the names of its results on the device `wanted_on`.

        `arguments` maps each argument to its device.
        """
        nodes = tuple(nodes)
        made = dict(arguments)  # name: the device of its value
        used: dict[str, str] = {}  # value: the device of the first resource it is used with
        for node in nodes:
            for name in node.inputs if node.resources else ():
                used.setdefault(name, self.lives[node.resources[0]])
        sent: dict[tuple[str, str], str] = {}  # value and device: the Recv on that device
        placed: list[Node] = []

        def add(node: Node) -> str:
            placed.append(node)
            made[node.name] = node.device
            return node.name

        def on(device: str, name: str) -> str:
            """Name that a value, or the end of a node, has on a device; adds the transfer."""
            source = made[name]
            if source == device:
                return name
            if (name, device) not in sent:
                value = name
                if self.test.types[name] is None or name in self.sends:
                    done = self.name("done", name, device)
                    value = add(Node(done, "Const", (), (), (name,), _NOTHING, source))
                send = add(Node(self.name("send", name, device), "Send", (value,), device=source))
                recv = add(Node(self.name("recv", name, device), "Recv", (send,), device=device))
                sent[name, device] = recv
            return sent[name, device]

        for node in nodes:
            device = node.device or used.get(node.name, self.default)
            if node.name in self.clustered:
                device = self.clustered[node.name]
            elif node.resources:
                device = self.lives[node.resources[0]]
            elif node.inputs and not node.device:
                device = made[node.inputs[0]]
            inputs = node.inputs  # the input of a Recv is a Send on another device
            if node.op != "Recv":
                inputs = tuple(on(device, name) for name in node.inputs)
            after = tuple(on(device, name) for name in node.after)
            captures = tuple((inner, on(device, name)) for inner, name in captures_of(node))
            attrs = node.attrs
            outside = dict.fromkeys((inner for inner, _ in captures), device)
            results_outside: tuple[str, ...] = ()
            if isinstance(attrs, BranchAttrs):
                results_outside = attrs.results
                attrs = replace(
                    attrs,
                    captures=captures,
                    then=self.inner(attrs.then, outside, device),
                    orelse=self.inner(attrs.orelse, outside, device),
                )
            elif isinstance(attrs, LoopAttrs):
                results_outside = attrs.carried
                outside |= dict.fromkeys(attrs.carried, device)
                attrs = replace(
                    attrs,
                    captures=captures,
                    condition=self.inner(attrs.condition, outside, device),
                    body=self.inner(attrs.body, outside, device),
                )
            elif isinstance(attrs, CallAttrs):
                results_outside = attrs.results
                body = self.inner(attrs.body, outside, device)
                attrs = replace(attrs, captures=captures, body=body)
            add(replace(node, inputs=inputs, after=after, attrs=attrs, device=device))
            made |= dict.fromkeys((f"{node.name}.{name}" for name in results_outside), device)
        returned = tuple(on(wanted_on, name) for name in results)
        return tuple(placed), returned

    def inner(self, body: Body, arguments: Mapping[str, str], device: str) -> Body:
        """The placed body of a node on `device`."""
        return Body(*self.body(body.nodes, arguments, body.results, device))
