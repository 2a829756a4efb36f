"""Placement: every node on one device, and a Send and a Recv where an edge crosses.

Under the model `rfc` it changes no allowed set.

References
----------
DEVICES, "Heterogenous execution"; semantics.md, section 6.
docs/decisions/0005-devices.md has the rules, and why.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    FreshNames,
    Graph,
    LitmusTest,
    LoopAttrs,
    Node,
    all_nodes,
    captures_of,
)
from litmusfuzz.corpus.ops import ConstAttrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import Resource

DEFAULT: Final = "cpu:0"
_NOTHING: Final = ConstAttrs("int32", (), 0)
"""What is sent for a control edge."""


class CannotPlace(ValueError):
    """A test that cannot be put on devices; the message says why."""


def place(test: LitmusTest, devices: Sequence[str] = (DEFAULT,)) -> LitmusTest:
    """The test with everything on a device, and transfers between them.

    A resource or node that has a device keeps it. Other resources are dealt to
    `devices` in turn, those that one op works on together. A node runs where
    its resources live; if it has none, where its first operand is made; if it
    has no operands, where the resource lives that its value is first used on;
    else on the first of `devices`. What a body is given and returns is on the
    device of the node around it.

    For each value, and each device on which it is wanted, there is one Send
    and one Recv. A control edge from what has no value is carried by a
    constant that comes after it.

    Parameters
    ----------
    test : LitmusTest
    devices : sequence of str
        At least one.

    Returns
    -------
    LitmusTest
        Where only the edge from a Send to its Recv leads from one device to
        another. Itself, if it is placed already.

    Raises
    ------
    CannotPlace
        If what works on one resource is told to be on several devices, or a
        cluster would be.
    MalformedTest
        If there are too many nodes with the transfers.
    """
    lives = _homes(test, devices)
    placing = _Placing(test, lives, devices[0], _of_clusters(test, lives, devices[0]))
    return replace(
        test,
        variables=tuple(replace(each, device=lives[each.name]) for each in test.variables),
        mutexes=tuple(replace(each, device=lives[each.name]) for each in test.mutexes),
        queues=tuple(replace(each, device=lives[each.name]) for each in test.queues),
        graphs=tuple(Graph(g.name, placing.body(g.nodes, {}, (), "")[0]) for g in test.graphs),
    )


def devices_of(test: LitmusTest) -> tuple[str, ...]:
    """The devices that a placed test is on, in the order of their names."""
    placed: list[Resource | Node] = [*test.variables, *test.mutexes, *test.queues]
    placed += test.nodes
    return tuple(sorted({each.device for each in placed}, key=lambda d: (d[:4], int(d[4:]))))


def _homes(test: LitmusTest, devices: Sequence[str]) -> dict[str, str]:
    """Where each resource lives."""
    resources: list[Resource] = [*test.variables, *test.queues, *test.mutexes]
    together = {each.name: {each.name} for each in resources}
    for node in test.nodes:
        _join(node.resources, together)
    for members in _members(test):
        _join([name for node in members for name in node.resources], together)
    told = {each.name: {each.device} - {""} for each in resources}
    for node in test.nodes:
        for name in node.resources:
            told[name] |= {node.device} - {""}
    lives: dict[str, str] = {}
    turn = count()
    for each in resources:
        if each.name not in lives:
            known = set[str]().union(*(told[name] for name in together[each.name]))
            if len(known) > 1:
                raise CannotPlace(f"{each.name!r} on several devices: {', '.join(sorted(known))}")
            chosen = known.pop() if known else devices[next(turn) % len(devices)]
            lives.update(dict.fromkeys(together[each.name], chosen))
    return lives


def _join(names: Iterable[str], together: dict[str, set[str]]) -> None:
    joined = set[str]().union(*(together[name] for name in names))
    together.update(dict.fromkeys(joined, joined))


def _members(test: LitmusTest) -> Iterator[list[Node]]:
    """Of each cluster the nodes in it, and those inside them."""
    nodes = {node.name: node for node in test.nodes}
    for cluster in test.clusters:
        yield list(all_nodes(nodes[name] for name in cluster.members))


def _of_clusters(test: LitmusTest, lives: Mapping[str, str], default: str) -> dict[str, str]:
    """The devices of clusters' nodes."""
    found: dict[str, str] = {}
    for cluster, members in zip(test.clusters, _members(test), strict=True):
        told = {node.device for node in members if node.device}
        told |= {lives[name] for node in members for name in node.resources}
        if len(told) > 1:
            raise CannotPlace(f"{cluster.name!r} on several devices: {', '.join(sorted(told))}")
        found.update(dict.fromkeys((node.name for node in members), (*told, default)[0]))
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
        """A body's nodes, and its results as they are on the device `wanted_on`.

        `arguments` are on the devices given.
        """
        nodes = tuple(nodes)
        made = dict(arguments)  # names: the devices that their values are made on
        used: dict[str, str] = {}  # values: the device of the first resource they are used on
        for node in nodes:
            for name in node.inputs if node.resources else ():
                used.setdefault(name, self.lives[node.resources[0]])
        sent: dict[tuple[str, str], str] = {}  # values and devices: the Recv there
        placed: list[Node] = []

        def add(node: Node) -> str:
            placed.append(node)
            made[node.name] = node.device
            return node.name

        def on(device: str, name: str) -> str:
            """What stands for a value, or for the end of a node, on a device."""
            source = made[name]
            if source == device:
                return name
            if (name, device) not in sent:
                value = name
                if self.test.types[name] is None:
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
            inputs = node.inputs  # of a Recv the Send, on another device
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
            add(replace(node, inputs=inputs, after=after, attrs=attrs, device=device))
            made |= dict.fromkeys((f"{node.name}.{name}" for name in results_outside), device)
        returned = tuple(on(wanted_on, name) for name in results)
        return tuple(placed), returned

    def inner(self, body: Body, arguments: Mapping[str, str], device: str) -> Body:
        """A body of a node on `device`."""
        return Body(*self.body(body.nodes, arguments, body.results, device))
