"""Placement: only transfers cross devices, once for each value; allowed sets do not change."""

from __future__ import annotations

import random

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import (
    Body,
    LitmusTest,
    Node,
    all_nodes,
    bodies,
    captures_of,
    map_nodes,
)
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads
from litmusfuzz.fuzz.passes.placement import CannotPlace, devices_of, place
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.model import RFC

TWO = ("cpu:0", "cpu:1")


def check_only_transfers_cross(nodes: tuple[Node, ...], inside: dict[str, str]) -> None:
    """`inside` are the devices of what comes from outside of a body."""
    on = dict(inside)
    sent = set()
    for node in nodes:
        for name in (*node.after, *(outer for _, outer in captures_of(node))):
            assert on[name] == node.device, (node.name, name)
        for name in node.inputs:
            assert (on[name] == node.device) == (node.op != "Recv"), (node.name, name)
        if node.op == "Recv":
            (send,) = (each for each in nodes if each.name == node.inputs[0])
            assert (send.inputs[0], node.device) not in sent
            sent.add((send.inputs[0], node.device))
        on[node.name] = node.device
        carried = getattr(node.attrs, "carried", ())
        results = carried or getattr(node.attrs, "results", ())
        on |= {f"{node.name}.{name}": node.device for name in results}
        arguments = (*carried, *(inner for inner, _ in captures_of(node)))
        for _, body in bodies(node):
            check_only_transfers_cross(body.nodes, dict.fromkeys(arguments, node.device))
            check_results(body, dict.fromkeys(arguments, node.device), node.device)


def check_results(body: Body, inside: dict[str, str], device: str) -> None:
    on = inside | {node.name: node.device for node in body.nodes}
    for node in body.nodes:
        results = getattr(node.attrs, "carried", ()) or getattr(node.attrs, "results", ())
        on |= {f"{node.name}.{name}": node.device for name in results}
    assert all(on[name] == device for name in body.results)


def somehow(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """On three devices, nodes without a resource anywhere."""
    devices = ["cpu:0", "cpu:1", "cpu:2"]

    def moved(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        found = []
        for node in nodes:
            attrs = node.attrs
            for name, body in bodies(node):
                field_name = {"else": "orelse"}.get(name, name)
                attrs = replace(attrs, **{field_name: replace(body, nodes=moved(body.nodes))})
            device = "" if node.resources else rng.choice(devices)
            found.append(replace(node, attrs=attrs, device=device))
        return tuple(found)

    graphs = tuple(replace(graph, nodes=moved(graph.nodes)) for graph in test.graphs)
    rng.shuffle(devices)
    return place(replace(test, graphs=graphs), devices)


@for_each("path", LITMUS, every=3)
def test_placement_changes_no_allowed_set(path) -> None:
    test = corpus_entry(path).test
    allowed = explorer.allowed_outcomes(test, RFC)
    assert allowed.complete
    anywhere = random.Random(path.stem)
    # Handles are refused on several devices.
    devices = TWO[:1] if "handles" in test.features else TWO
    placements = [place(test, devices)]
    # These say themselves where everything is, and clusters what belongs together.
    if not {"transfers", "clusters", "handles"} & test.features:
        placements.append(somehow(test, anywhere))
    for placed in placements:
        for graph in placed.graphs:
            check_only_transfers_cross(graph.nodes, {})
        assert place(placed, devices) == placed
        assert loads(dumps(Entry(placed))).test == placed
        found = explorer.allowed_outcomes(placed, RFC)
        assert found.complete
        assert set(found.witnesses) == set(allowed.witnesses)


def test_handles_on_several_devices_are_refused() -> None:
    test = corpus_entry(next(p for p in LITMUS if p.stem == "handle-chosen-by-a-race")).test
    assert len(test.variables) > 1
    with pytest.raises(CannotPlace, match="handles on several devices"):
        place(test, TWO)


def test_a_value_is_sent_once_to_a_device_and_control_edges_share_the_transfer() -> None:
    placed = place(litmus("r0=X; Y=r0"), TWO)
    transfers = [(n.op, n.inputs) for n in placed.graph.nodes if n.op in ("Send", "Recv")]
    assert transfers == [("Send", ("r0",)), ("Recv", ("send_r0_cpu1",))]


def test_a_control_edge_from_a_node_without_a_value_is_sent_as_a_constant() -> None:
    placed = place(litmus("X=1; Y=2"), TWO)
    (send,) = (n for n in placed.graph.nodes if n.op == "Send")
    (nothing,) = (n for n in placed.graph.nodes if n.name == send.inputs[0])
    assert (nothing.op, nothing.after, nothing.device) == ("Const", ("w0",), "cpu:0")
    (write,) = (n for n in placed.graph.nodes if n.resources == ("Y",))
    assert write.after == ("recv_w0_cpu1",)


def test_a_control_edge_from_a_send_is_sent_as_a_constant() -> None:
    """Only its Recv takes what a Send sends, so another Send cannot."""
    test = corpus_entry(next(p for p in LITMUS if p.stem == "devices-carried-edges")).test
    graphs = map_nodes(
        test.graphs, lambda node: replace(node, after=("s0",)) if node.name == "r0" else node
    )
    edited = replace(test, graphs=graphs)
    placed = place(edited)
    nodes = {node.name: node for node in placed.nodes}
    (recv,) = nodes["r0"].after
    (send,) = nodes[recv].inputs
    (done,) = nodes[send].inputs
    assert (nodes[done].op, nodes[done].after) == ("Const", ("s0",))
    assert place(placed) == placed
    allowed, before = (
        explorer.allowed_outcomes(each, RFC).witnesses.keys() for each in (placed, edited)
    )
    assert allowed == before


def test_a_test_on_one_device_needs_no_transfer() -> None:
    for path in LITMUS[::7]:
        test = corpus_entry(path).test
        if not test.clusters and "transfers" not in test.features:
            placed = place(test)
            assert devices_of(placed) == ("cpu:0",)
            assert "transfers" not in placed.features


def test_resources_of_one_op_get_the_same_device() -> None:
    text = """\
litmusfuzz: 2
name: momentum
variables:
  V: {dtype: float32, shape: [], init: 0}
  W: {dtype: float32, shape: [], init: 0}
  A: {dtype: float32, shape: [], init: 0}
graphs:
  main:
    c: {op: Const, dtype: float32, shape: [], value: 1}
    m: {op: ResourceApplyMomentum, resources: [V, A], inputs: [c, c, c]}
"""
    placed = place(loads(text).test, TWO)
    assert [(v.name, v.device) for v in placed.variables] == [
        ("V", "cpu:0"),
        ("W", "cpu:1"),
        ("A", "cpu:0"),
    ]


def test_transfers_get_names_that_are_not_in_use() -> None:
    test = litmus("r0=X; Y=r0")
    (graph,) = test.graphs
    nodes = tuple(
        replace(node, name="send_r0_cpu1") if node.name == "w0" else node for node in graph.nodes
    )
    placed = place(replace(test, graphs=(replace(graph, nodes=nodes),)), TWO)
    assert "send_r0_cpu1_2" in {node.name for node in all_nodes(placed.graph.nodes)}


def test_a_resource_with_two_devices_is_refused() -> None:
    test = litmus("r0=X || r1=X")
    (graph,) = test.graphs
    on = {"r0": "cpu:0", "r1": "cpu:1"}
    nodes = tuple(replace(node, device=on.get(node.name, "")) for node in graph.nodes)
    with pytest.raises(CannotPlace, match="'X' on several devices: cpu:0, cpu:1"):
        place(replace(test, graphs=(replace(graph, nodes=nodes),)))


def test_a_cluster_and_its_resources_are_on_one_device() -> None:
    placed = place(litmus("cluster {r0=X; r1=Y; Z=r1} || W=1"), TWO)
    lives = {variable.name: variable.device for variable in placed.variables}
    assert lives == {"X": "cpu:0", "Y": "cpu:0", "Z": "cpu:0", "W": "cpu:1"}
    members = placed.clusters[0].members
    assert {n.device for n in placed.graph.nodes if n.name in members} == {"cpu:0"}


def test_a_cluster_with_variables_on_two_devices_is_refused() -> None:
    test = litmus("cluster {r0=X; Y=r0}")
    apart = tuple(replace(v, device=d) for v, d in zip(test.variables, TWO, strict=True))
    with pytest.raises(CannotPlace, match="'X' on several devices: cpu:0, cpu:1"):
        place(replace(test, variables=apart))
