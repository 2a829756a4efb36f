"""Where tests come from: families of random litmus tests.

A family is one function, from a source of choices to a test
(`litmusfuzz.fuzz.generators.dag`). The campaign gives it a seeded `random.Random`, fast
and repeatable; Hypothesis gives it one of its own, whose choices it shrinks
(`litmusfuzz.fuzz.generators.hypothesis_strategies`). Both draw from the same families.

`dag` draws graphs over variables, which is what every executor runs, `dense` those of
them that use whole variables; `sparse` such as use a variable densely and sparsely,
`clusterable` those that a clusterer likes. `cycles` draws the classic shapes, written in many
ways, `mutations` edits tests of the corpus. The others draw what semantics.md has
beside that, each one feature, `mixed` several, `training` what people use them for;
their tests are small enough for the reference oracle, which looks at every order.

A family draws shapes that race. It knows no oracle's verdict and no executor's
defects: no template holds a bug.
"""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.generators import (
    clusterable,
    clusters,
    conditionals,
    cycles,
    dag,
    dense,
    loops,
    mixed,
    mutations,
    queues,
    runs,
    sections,
    sparse,
    training,
)

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

FAMILIES: Final = MappingProxyType(
    {
        "dag": dag.generate,
        "sections": sections.generate,
        "queues": queues.generate,
        "conditionals": conditionals.generate,
        "loops": loops.generate,
        "runs": runs.generate,
        "clusters": clusters.generate,
        "mixed": mixed.generate,
        "clusterable": clusterable.generate,
        "cycles": cycles.generate,
        "sparse": sparse.generate,
        "mutations": mutations.generate,
        "dense": dense.generate,
        "training": training.generate,
    }
)
"""Name to function. To add one: a module, and a last line here and below."""

FEATURES: Final = MappingProxyType(
    {
        "dag": frozenset[str](),
        "sections": frozenset({"critical sections"}),
        "queues": frozenset({"queues"}),
        "conditionals": frozenset({"conditionals"}),
        "loops": frozenset({"loops"}),
        "runs": frozenset({"several runs"}),
        "clusters": frozenset({"clusters"}),
        "mixed": frozenset({"critical sections", "queues", "conditionals", "loops"}),
        "clusterable": frozenset[str](),
        "cycles": frozenset[str](),
        "sparse": frozenset[str](),
        "mutations": frozenset[str](),
        "dense": frozenset[str](),
        "training": frozenset({"several runs", "queues", "loops"}),
    }
)
"""What each family is about, of `LitmusTest.features`. Some of its tests have more."""

WEIGHTS: Final = MappingProxyType(
    dict.fromkeys(FAMILIES, 1.0) | {"dag": 2.0, "cycles": 2.0, "mutations": 2.0, "dense": 0.0}
)
"""How often a campaign draws each, beside the others, until it finds something
(`fuzz.campaign.family_weights`). Twice what holds ops or shapes of all kinds; 0 is drawn
only where it is named, as another family draws all that it has."""


def families_for(features: frozenset[str]) -> tuple[str, ...]:
    """Families that are worth drawing for an executor that runs these features."""
    return tuple(name for name, needed in FEATURES.items() if needed <= features)


def generate(family: str, seed: int, index: int) -> LitmusTest:
    """Test number `index` of a family, in the campaign with that seed.

    The same three give the same test, whatever was drawn before.
    """
    # A str seeds through SHA-512: the same on every machine and version.
    return FAMILIES[family](random.Random(f"{seed}/{family}/{index}"))
