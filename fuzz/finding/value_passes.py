"""Passes that make the values and edges of a test fewer, and its ops plainer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from litmusfuzz.corpus.model import (
    Body,
    LitmusTest,
    Node,
    bodies,
    captures_of,
    map_bodies,
    redirected,
)
from litmusfuzz.corpus.ops import OPS, Kind
from litmusfuzz.corpus.rewriter import Rewriter, constant
from litmusfuzz.corpus.shapes import contents
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.finding.reduction_parts import groups, nodes_of, only_computes, spliced

if TYPE_CHECKING:
    from collections.abc import Iterator


def drop_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a node without an effect by a constant, and remove a constant that nothing uses."""
    used = {name for node in nodes_of(test) for name in node.references}
    used.update(name for n in nodes_of(test) for _, body in bodies(n) for name in body.results)
    used.update(name for run in test.runs for name in run.wanted)
    for node in nodes_of(test):
        if only_computes(node) and not (node.definition.constant and node.name in used):
            yield Rewriter.of(test).without({node.name}, test.types)


def bypass_pure(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a node without an effect by one of its inputs."""
    for node in nodes_of(test):
        if not only_computes(node) or node.after:
            continue
        for name in dict.fromkeys(node.inputs):
            if test.types[name] == test.types[node.name]:
                yield Rewriter.of(test).instead(node.name, {node.name: name})


def drop_handles(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace a handle by one of the variables that it stands for."""
    for node in nodes_of(test):
        for name in node.resources if node.handle else ():
            yield Rewriter.of(test).with_node(replace(node, handle="", resources=(name,)))


def cut_data(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace one use of a value by a constant, without a control edge in its place."""
    constants = {node.name for node in nodes_of(test) if node.definition.constant}
    for node in nodes_of(test):
        refs = (*node.inputs, *(outer for _, outer in captures_of(node)))
        for which, ref in enumerate(dict.fromkeys(refs)):
            kind = test.types[ref]
            if ref in constants or kind is None or not kind.is_tensor:
                continue
            new = constant(f"{node.name}k{which}", kind)
            cut = _using(node, {ref: new.name})
            yield Rewriter.of(test).each_level(partial(_put, (new, cut)))
    yield from _cut_results(test, constants)


def _using(node: Node, refs: dict[str, str]) -> Node:
    """The node with other inputs and captures, and the same control edges."""
    after = node.after
    swapped = redirected(replace(node, after=()), lambda ref: refs.get(ref, ref))
    return replace(swapped, after=after)


def _cut_results(test: LitmusTest, constants: set[str]) -> Iterator[Rewriter]:
    """Replace a result of a body by a constant."""
    for node in nodes_of(test):
        for which, (_, body) in enumerate(bodies(node)):
            for place, ref in enumerate(body.results):
                kind = test.types[ref]
                if ref in constants or kind is None or not kind.is_tensor:
                    continue
                new = constant(f"{node.name}k{which}r{place}", kind)
                changed = Body((*body.nodes, new), spliced(body.results, place, new.name))
                cut = map_bodies(node, partial(_instead, body, changed))
                yield Rewriter.of(test).with_node(cut)


def _instead(old: Body, new: Body, body: Body) -> Body:
    # By identity: two bodies of a node may be equal.
    return new if body is old else body


def drop_edges(test: LitmusTest) -> Iterator[Rewriter]:
    """Remove a control edge, or an edge between two runs."""
    for node in nodes_of(test):
        for edge in range(len(node.after)):
            fewer = replace(node, after=spliced(node.after, edge))
            yield Rewriter.of(test).with_node(fewer)
    rewriter = Rewriter.of(test)
    for place, run in enumerate(rewriter.client):
        for edge in range(len(run.after)):
            freer = replace(run, after=spliced(run.after, edge))
            yield replace(rewriter, client=spliced(rewriter.client, place, freer))


def observe_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Observe fewer values."""
    rewriter = Rewriter.of(test)
    for group in groups(test.observe):
        kept = (
            each
            for key, each in zip(test.observe, rewriter.observe, strict=True)
            if key not in group
        )
        yield replace(rewriter, observe=tuple(kept))


def differentiate_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Leave out gradients."""
    rewriter = Rewriter.of(test)
    for group in groups([each.name for each in test.variables if each.gradient]):
        kept = (replace(v, gradient=v.gradient and v.name not in group) for v in test.variables)
        yield replace(rewriter, variables=tuple(kept))


def ask_less(test: LitmusTest) -> Iterator[Rewriter]:
    """Let a run execute its whole graph, or fetch and target fewer nodes, or feed zeros."""
    rewriter = Rewriter.of(test)
    observed = set(rewriter.observe)
    for place, run in enumerate(rewriter.client):
        changed = []
        if run.wanted:
            changed.append(replace(run, fetches=(), targets=()))
        for group in groups([name for name in run.wanted if (run.name, name) not in observed]):
            fewer = replace(
                run,
                fetches=tuple(name for name in run.fetches if name not in group),
                targets=tuple(name for name in run.targets if name not in group),
            )
            changed += [fewer] if fewer.wanted else []
        for fed, (name, value) in enumerate(run.feeds):
            if value != 0:
                changed.append(replace(run, feeds=spliced(run.feeds, fed, (name, 0))))
        for each in changed:
            yield replace(rewriter, client=spliced(rewriter.client, place, each))


def plainer_ops(test: LitmusTest) -> Iterator[Rewriter]:
    """Replace an op by the simplest one of its kind, and an update also by a write."""
    for node in nodes_of(test):
        kind = node.definition.kind
        if kind is Kind.READ and not node.definition.whole_read:
            yield _with_op(test, node, "ReadVariableOp")
        elif kind is Kind.UPDATE:
            # In two steps: a sparse update has a kernel of its own, so the first mostly fails.
            plainest = node.op == "AssignAddVariableOp"
            yield _with_op(test, node, "AssignVariableOp" if plainest else "AssignAddVariableOp")
        elif node.definition.several and node.definition.puts:
            yield _with_op(test, node, "QueueEnqueueV2")
        elif node.definition.several:
            yield _with_op(test, node, "QueueDequeueV2")


def _with_op(test: LitmusTest, node: Node, op: str) -> Rewriter:
    """Replace a node's op; it uses the first resource, and an input of its type if it takes one."""
    kind = contents(test)[node.resources[0]]
    fitting = [name for name in node.inputs if test.types[name] == kind]
    before = [] if fitting or not OPS[op].operands else [constant(f"{node.name}v", kind)]
    inputs = [*fitting[-1:], *(each.name for each in before)] if OPS[op].operands else []
    changed = replace(node, op=op, inputs=tuple(inputs), resources=node.resources[:1], attrs=None)
    return Rewriter.of(test).each_level(partial(_put, (*before, changed)))


def _put(nodes: tuple[Node, ...], body: Body) -> Body:
    """Replace the node that has the name of the last of `nodes` by `nodes`."""
    found = (nodes if n.name == nodes[-1].name else (n,) for n in body.nodes)
    return replace(body, nodes=tuple(node for each in found for node in each))
