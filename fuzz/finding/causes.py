"""Guesses at the causes of findings, from symptoms and kernels.

The *symptom* of a forbidden outcome is one word for what is wrong with it. The guesses differ in
what they compare:

- `may_show`: the symptoms of a known cause, and those that a test shows;
- `may_keep_cause`: the symptom of a test, and an outcome of a smaller version of it;
- `may_share_cause`: two tests, neither of which is minimized;
- `likely_cause`: nothing; it is text, equal for minimized tests that probably show one defect;
- `explains`: a minimized test, and a larger one that may contain it.

`experiments` decides by running tests where these only guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.fuzz.finding.matching import matches
from litmusfuzz.fuzz.finding.race_shapes import computes_as, races_of
from litmusfuzz.fuzz.finding.relations import NodeRelations
from litmusfuzz.fuzz.finding.resource_passes import LANES, width

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
    """Symptoms of all forbidden outcomes of a finding, without repetition, its own first."""
    return tuple(dict.fromkeys(symptom(outcome) for outcome, _ in found.forbidden))


def may_show(cause: Collection[str], shown: Iterable[str]) -> bool:
    """True if a cause with the symptoms `cause` may be behind all symptoms in `shown`.

    A torn value of a variable with a single lane looks like a wrong one.
    """
    return {*cause, *(("wrong",) if "torn" in cause else ())}.issuperset(shown)


def may_keep_cause(before: str, after: Outcome) -> bool:
    """True if `after`, an outcome of a smaller test, may have the cause of the symptom `before`.

    The symptom must stay the same, except that "torn" may become "wrong": a torn value of a
    variable with a single lane looks like a wrong one. No other change is accepted, since
    minimizing could then replace a rare defect by a common one.
    """
    now = symptom(after)
    return now == before or (before, now) == ("torn", "wrong")


def may_share_cause(
    one: LitmusTest,
    shown: Iterable[Outcome],
    other: LitmusTest,
    other_shown: Iterable[Outcome],
) -> bool:
    """True if the forbidden outcomes of two tests may well have one cause.

    They then share a symptom; and they share a kernel that writes rows, or neither test has one.

    Parameters
    ----------
    one, other : LitmusTest
    shown, other_shown : iterable of Outcome
        Their forbidden outcomes.
    """
    if {symptom(each) for each in shown}.isdisjoint(symptom(each) for each in other_shown):
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
    """The symptom and the kernels of a minimized test as text; equal for probably one defect.

    A test that needs its names, the order of its nodes, or more than `LANES` lanes has another
    cause than a test of the same kernels that does not.

    Parameters
    ----------
    test : LitmusTest
    outcome : Outcome
    names : collection of str
        Names without which the test does not show the outcome.
    order : bool
        True if it does not show the outcome with its nodes in another order.
    """
    needs = [f"the name {name}" for name in sorted(names)]
    needs += ["its order of nodes"] if order else []
    needs += [f"{width(test)} lanes"] if width(test) > LANES else []
    kernels = sorted(n.definition.kernel_class for n in test.named_nodes)
    cause = " + ".join([symptom(outcome), *kernels])
    return f"{cause}, only with {' and '.join(needs)}" if needs else cause


def explains(small: LitmusTest, large: LitmusTest, *, exact: bool) -> bool:
    """True if `large` contains the ops of the minimized test `small` in the same relations.

    Every effect of `small` is matched with another effect of `large`: one of the same op if
    `exact`, else one of the same kernel class. Two effects that share a resource are matched with
    two that share one. Two effects that are unordered, or one of which lies inside the other, are
    matched with two in the same relation; ordered effects with two in any relation.

    False also if `large` lacks a feature of `small`; if `small` needs more than `LANES` lanes, and
    `large` has fewer than it; and if `small` has no effects. Unless `exact`, a `small` without
    races is contained only where its last pure ops are, too.

    This is a guess, and may save a minimization: with the same ops, `large` may still show another
    defect.
    """
    parts, whole = small.effects, large.effects
    if len(parts) > len(whole) or not parts or not small.features <= large.features:
        return False
    if width(small) > max(LANES, width(large)):
        return False
    # Pure ops do not matter where tests are compared by op names: that is for clusters alone.
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
