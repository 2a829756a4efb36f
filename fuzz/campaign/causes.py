"""Telling findings apart: which minimized shape explains what another graph showed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from corpus.graph import Body, Graph, bodies, predecessors
from corpus.ops import Kind, SectionAttrs
from corpus.outcome import Status
from corpus.textfile import Entry, dumps

if TYPE_CHECKING:
    from corpus.graph import LitmusTest, Node
    from corpus.outcome import Outcome


def op_class(node: Node) -> str:
    """Ops that share a kernel in TensorFlow, hence likely a cause."""
    if node.definition.kind is Kind.READ:
        return "read"
    for prefix in ("ResourceScatterNd", "ResourceScatter", "ResourceApply"):
        if node.op.startswith(prefix):
            return prefix
    return node.op


def symptom(outcome: Outcome) -> str:
    """What is wrong with a forbidden outcome, in a word."""
    if outcome.torn:
        return "torn"
    return "wrong" if outcome.status is Status.COMPLETED else str(outcome.status)


def same_cause(before: str, after: Outcome) -> bool:
    """Whether a smaller test's outcome may well have the cause that one `before` had.

    What tears shows in a single lane as a wrong value. The other way round a
    rare finding would be traded for a common one; so would a wrong value for a
    blocked run.
    """
    now = symptom(after)
    return now == before or (before, now) == ("torn", "wrong")


def likely_cause(test: LitmusTest, outcome: Outcome) -> str:
    """A key for findings that probably share a cause: what was seen, kernels."""
    return " + ".join([symptom(outcome), *sorted(op_class(n) for n in test.effects)])


def explains(small: LitmusTest, large: LitmusTest, *, exact: bool) -> bool:
    """Whether the minimized test `small` sits inside `large`.

    That is: its effects can be found there as ops of the same name (`exact`)
    or class; on one resource, in one section or inside one another where it has
    them so; unordered where it has them unordered. A guess that saves a
    minimization, never one that hides a finding: the graph is counted, and kept.
    """
    parts, whole = small.effects, large.effects
    if len(parts) > len(whole) or not parts or not small.features <= large.features:
        return False
    label = (lambda n: n.op) if exact else op_class
    inside, around = _Layout(small), _Layout(large)

    def fits(a: Node, b: Node, like_a: Node, like_b: Node) -> bool:
        if set(a.resources) & set(b.resources) and not set(like_a.resources) & set(
            like_b.resources
        ):
            return False
        return inside.relation(a, b) in ("ordered", around.relation(like_a, like_b))

    def place(chosen: list[Node]) -> bool:
        if len(chosen) == len(parts):
            return True
        part = parts[len(chosen)]
        for node in whole:
            if label(node) == label(part) and node not in chosen:
                pairs = zip(parts, chosen, strict=False)
                if all(fits(a, part, like, node) for a, like in pairs) and place([*chosen, node]):
                    return True
        return False

    return place([])


class _Layout:
    """How any two nodes of a test stand to each other."""

    def __init__(self, test: LitmusTest) -> None:
        self.paths: dict[str, tuple[str, ...]] = {}  # the graph, the nodes around it, itself
        self.above: dict[str, frozenset[str]] = {}
        self.members: dict[str, tuple[str, ...]] = {}
        for graph in test.graphs:
            self._level(Body(graph.nodes, ()), (graph.name,))
        earlier: dict[str, frozenset[str]] = {}
        for run in test.runs:
            earlier[run.name] = frozenset(run.after).union(*(earlier[a] for a in run.after))
        self.runs = [
            (one.graph, other.graph, one.name in earlier[other.name])
            for one in test.runs
            for other in test.runs
        ]

    def _level(self, body: Body, path: tuple[str, ...]) -> None:
        for node, above in predecessors(Graph("body", body.nodes)):
            self.paths[node.name] = (*path, node.name)
            self.above[node.name] = above
            if isinstance(node.attrs, SectionAttrs):
                self.members[node.name] = node.attrs.members
            for _, inner in bodies(node):
                self._level(inner, (*path, node.name))

    def relation(self, a: Node, b: Node) -> str:
        """One of: a inside b, b inside a, ordered, unordered."""
        left, right = self.paths[a.name], self.paths[b.name]
        if right[: len(left)] == left or set(right) & set(self.members.get(a.name, ())):
            return "b inside a"
        if left[: len(right)] == right or set(left) & set(self.members.get(b.name, ())):
            return "a inside b"
        if left[0] != right[0]:
            between = [
                before
                for one, other, before in self.runs
                if (one, other) in ((left[0], right[0]), (right[0], left[0]))
            ]
            # Each pair of runs stands there twice, of which one may be in order.
            return "ordered" if 2 * sum(between) == len(between) else "unordered"
        one, other = next((x, y) for x, y in zip(left, right, strict=False) if x != y)
        ordered = one in self.above[other] or other in self.above[one]
        return "ordered" if ordered else "unordered"


def finding_name(test: LitmusTest, outcome: Outcome) -> str:
    """What a finding and its file are called: what was seen, the ops, a digest.

    The digest is of the test alone, so that the same minimized test found
    again is the same file.
    """
    ops = "+".join(sorted(n.op.removeprefix("Resource") for n in test.effects))
    text = dumps(Entry(replace(test, name="x", about="")))
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{symptom(outcome)}-{ops[:72]}-{short}"
