"""Normalizes a reduced test: canonical order and names, as far as its finding still shows.

Names and the order of nodes are part of what showed a finding: a compiler may sort by name. So the
normalized test is a candidate like those of the reducer, which the caller runs. Usually it shows
the finding at once. If not, the description, the order, and each name are normalized on their own,
and what the finding needs stays as it was run.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.finding.canonical import ordered
from litmusfuzz.fuzz.finding.renaming import canonical_names, normalized, ranked_names

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.oracles.model import Model

NAME = "finding"


@dataclass(frozen=True, slots=True)
class Normalized:
    """A test, and what it needs: names of nodes and resources, and the order of its nodes."""

    test: LitmusTest
    names: tuple[str, ...] = ()
    order: bool = False


Normalization = Generator["LitmusTest", bool, Normalized]
"""Yields candidates, and receives True for each that still shows the finding."""


def normalize(test: LitmusTest, model: Model) -> Normalization:
    """Normalize `test` as long as a candidate is accepted; see `canonical.form` for `model`."""
    whole = in_whole(test, model)
    if (yield whole):
        return Normalized(whole)
    if not (yield test):  # it shows too seldom at the moment to say what it needs
        return Normalized(test)
    current = test
    plain = test.titled(NAME, "").asked(None)
    if plain != test and (yield plain):
        current = plain
    in_order, needs_order = ordered(current, model), False
    if in_order != current:
        needs_order = not (yield in_order)
        current = current if needs_order else in_order
    current, needed = yield from _names(current)
    return Normalized(current, needed, needs_order)


def in_whole(test: LitmusTest, model: Model) -> LitmusTest:
    """The test in canonical order, under canonical names."""
    return normalized(ordered(test, model), NAME)


def _names(test: LitmusTest) -> Generator[LitmusTest, bool, tuple[LitmusTest, tuple[str, ...]]]:
    """Give as many nodes and resources as possible their canonical names; the names that stay.

    All nodes at first, then all resources, then one at a time. If the nodes need their names, names
    in the same order are tried before, because few findings need more than the order, and two that
    need the same order then end in the same names.
    """
    resources = {each.name for each in test.resources}

    def nodes(of: LitmusTest) -> list[str]:
        return [name for node in of.nodes for name in (node.name, *node.arguments)]

    current, kept = test, {*nodes(test), *resources}

    def without(names: set[str]) -> LitmusTest:
        return current.renamed(canonical_names(current, kept - names))

    if (yield (candidate := without(set(nodes(test))))):
        current, kept = candidate, resources
    else:
        candidate = current.renamed(ranked_names(current))
        if candidate == current or (yield candidate):
            current, kept = candidate, {*nodes(candidate), *resources}
        if (yield (candidate := without(resources))):
            current, kept = candidate, kept - resources
    needed = []
    for name in [*nodes(current), *(each.name for each in current.resources)]:
        if name not in kept:
            continue
        candidate = without({name})
        if candidate == current or (yield candidate):
            current, kept = candidate, kept - {name}
        else:
            needed.append(name)
    return current, tuple(sorted(needed))
