"""Telling findings apart: which minimized shape explains what another graph showed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.campaign.relations import NodeRelations

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.outcome import Outcome


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
    return " + ".join([symptom(outcome), *sorted(n.definition.kernel_class for n in test.effects)])


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

    def label(node: Node) -> str:
        return node.op if exact else node.definition.kernel_class

    inside, around = NodeRelations(small), NodeRelations(large)

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


def finding_name(test: LitmusTest, outcome: Outcome) -> str:
    """What a finding and its file are called: what was seen, the ops, a digest."""
    return name_for(symptom(outcome), test)


def name_for(what: str, test: LitmusTest) -> str:
    """A name with the ops, and a digest of the test alone: the same test, the same name."""
    ops = "+".join(sorted(n.definition.short_name for n in test.effects))
    text = dumps(Entry(replace(test, name="x", description="")))
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{what}-{ops[:72]}-{short}"
