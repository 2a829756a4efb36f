"""Telling findings apart: which minimized shape explains what another graph showed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

from corpus.graph import predecessors
from corpus.ops import Kind
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


def likely_cause(test: LitmusTest, outcome: Outcome) -> str:
    """A key for findings that probably share a cause: what was seen, kernels."""
    what = "torn" if outcome.torn else "wrong"
    return " + ".join([what, *sorted(op_class(n) for n in test.graph.effects)])


def explains(small: LitmusTest, large: LitmusTest, *, exact: bool) -> bool:
    """Whether the minimized test `small` sits inside `large`.

    That is: its effects can be found there as ops of the same name (`exact`)
    or class, on one variable where it has one variable, unordered where it
    has them unordered. A guess that saves a minimization, never one that
    hides a finding: the graph is counted, and kept.
    """
    parts, whole = small.graph.effects, large.graph.effects
    if len(parts) > len(whole) or not parts:
        return False
    label = (lambda n: n.op) if exact else op_class
    labels = [label(n) for n in whole]
    for needed in {label(n) for n in parts}:
        if needed not in labels:
            return False
    small_order = {n.name: above for n, above in predecessors(small.graph)}
    large_order = {n.name: above for n, above in predecessors(large.graph)}

    def unordered(order: dict[str, frozenset[str]], a: Node, b: Node) -> bool:
        return a.name not in order[b.name] and b.name not in order[a.name]

    def fits(chosen: tuple[Node, ...]) -> bool:
        for i, a in enumerate(parts):
            if label(a) != label(chosen[i]):
                return False
            for j in range(i):
                b = parts[j]
                if set(a.resources) & set(b.resources) and not (
                    set(chosen[i].resources) & set(chosen[j].resources)
                ):
                    return False
                if unordered(small_order, a, b) and not unordered(
                    large_order, chosen[i], chosen[j]
                ):
                    return False
        return True

    return any(fits(chosen) for chosen in permutations(whole, len(parts)))


def finding_name(test: LitmusTest, outcome: Outcome) -> str:
    """What a finding and its file are called: what was seen, the ops, a digest.

    The digest is of the test alone, so that the same minimized test found
    again is the same file.
    """
    ops = "+".join(sorted(n.op.removeprefix("Resource") for n in test.graph.effects))
    text = dumps(Entry(replace(test, name="x", about="")))
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    what = "torn" if outcome.torn else "wrong"
    return f"{what}-{ops[:80]}-{short}"
