"""Likely causes of findings: symptoms, kernels, and which finding explains another test."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.finding.matching import matches
from litmusfuzz.fuzz.finding.race_shapes import computes_as, races_of
from litmusfuzz.fuzz.finding.relations import NodeRelations
from litmusfuzz.fuzz.finding.resource_passes import LANES, width
from litmusfuzz.reports.headline import in_a_name, symptom_in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Finding


def symptom(outcome: Outcome) -> str:
    """One word for what is wrong with a forbidden outcome."""
    if outcome.torn:
        return "torn"
    return "wrong" if outcome.status is Status.COMPLETED else str(outcome.status)


def symptoms_of(found: Finding) -> tuple[str, ...]:
    """Symptoms of all forbidden outcomes of a finding, each once, its own first."""
    return tuple(dict.fromkeys(symptom(outcome) for outcome, _ in found.forbidden))


def may_show(cause: Collection[str], shown: Iterable[str]) -> bool:
    """True if a cause with some symptoms may be all that a test shows.

    In a test with a single lane, a torn value shows as a wrong one.
    """
    return {*cause, *(("wrong",) if "torn" in cause else ())}.issuperset(shown)


def same_cause(before: str, after: Outcome) -> bool:
    """Return True if a smaller test's outcome may have the cause of the symptom `before`.

    The symptom must stay the same, except that "torn" may become "wrong": in a test with a single
    lane, a torn value shows as a wrong one. No other change is accepted, since minimizing could
    then replace a rare defect by a common one.
    """
    now = symptom(after)
    return now == before or (before, now) == ("torn", "wrong")


def may_share_cause(
    one: LitmusTest, shown: Iterable[Outcome], other: LitmusTest, also: Iterable[Outcome]
) -> bool:
    """True if the forbidden outcomes of two tests may well have one cause.

    They have a symptom in common, and a kernel that writes rows, or neither has one. This is a
    guess that lets one of them wait until the other is minimized.
    """
    if {symptom(each) for each in shown}.isdisjoint(symptom(each) for each in also):
        return False
    first, second = (
        {
            node.definition.kernel_class
            for node in test.effects
            if node.definition.sparse and node.definition.kind.writes
        }
        for test in (one, other)
    )
    return not first.isdisjoint(second) or not (first or second)


def likely_cause(
    test: LitmusTest, outcome: Outcome, *, names: Collection[str] = (), order: bool = False
) -> str:
    """The symptom and the kernels as text; findings that share it are probably one defect.

    A minimized test that needs its names, its order or many lanes has another cause than one of the
    same kernels that does not.

    Parameters
    ----------
    test : LitmusTest
    outcome : Outcome
    names : collection of str
        Names that the test needs.
    order : bool
        True if it needs the order of its nodes.
    """
    needs = [f"the name {name}" for name in sorted(names)]
    needs += ["its order of nodes"] if order else []
    needs += [f"{width(test)} lanes"] if width(test) > LANES else []
    kernels = sorted(n.definition.kernel_class for n in test.named_nodes)
    cause = " + ".join([symptom(outcome), *kernels])
    return f"{cause}, only with {' and '.join(needs)}" if needs else cause


def explains(small: LitmusTest, large: LitmusTest, *, exact: bool) -> bool:
    """Return True if `large` contains the ops of the minimized test `small` in the same relation.

    Each effect of `small` is matched with an effect of `large`, by op name if `exact`, else by
    kernel class. Two effects on one resource must match two that share a resource. Two effects
    that are unordered, or one of which lies inside the other, must match two in the same
    relation; ordered effects may match two in any relation. A test that needs many lanes matches
    only tests with as many, one without races only tests with its pure ops. This is a guess that
    saves a minimization. It never hides a finding: the test is counted and its file is kept.
    """
    parts, whole = small.effects, large.effects
    if len(parts) > len(whole) or not parts or not small.features <= large.features:
        return False
    if width(small) > max(LANES, width(large)):
        return False  # it needs more lanes than `large` has
    # Of clusters that are compared by op name, it is no matter what they compute.
    if not (exact or races_of(small).any or computes_as(small, large)):
        return False

    def alike(part: Node, node: Node) -> bool:
        if exact:
            return part.op == node.op
        return part.definition.kernel_class == node.definition.kernel_class

    inside, around = NodeRelations(small), NodeRelations(large)

    def related(a: Node, b: Node, like_a: Node, like_b: Node) -> bool:
        if set(a.resources) & set(b.resources) and not set(like_a.resources) & set(
            like_b.resources
        ):
            return False
        return inside.relation(a, b) in ("ordered", around.relation(like_a, like_b))

    return matches(parts, whole, alike, related)


def finding_name(test: LitmusTest, outcome: Outcome) -> str:
    """Name of a finding and its file: the symptom as its headline has it, ops, digest."""
    return name_for(in_a_name(symptom_in_words(outcome)), test)


def name_for(what: str, test: LitmusTest) -> str:
    """A name with the ops and a digest of the test alone: equal tests have equal names."""
    ops = "+".join(sorted(n.definition.short_name for n in test.named_nodes))
    text = dumps(Entry(test.titled("x", "").asked(None)))
    short = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{what}-{ops[:72]}-{short}"
