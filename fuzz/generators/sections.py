"""The family `sections`: critical sections beside each other and inside each other.

One mutex or two. Edges lead to a section as a whole or to a member, and away
from either; ops that no section holds race with those inside. Two sections
that take two mutexes in opposite orders may block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.generators.structured import Mix, Scene, Stage, one_graph, resources, small

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest

_MIX = Mix(section=2)


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    return small(rng, _sketch, rng.randint(14, 20))


def _sketch(rng: random.Random, most: int, arithmetic: bool) -> LitmusTest:  # noqa: FBT001
    draft = resources(rng, mutexes=rng.choice((1, 1, 2, 2)), arithmetic=arithmetic)
    scene = Scene(Stage(draft, _MIX, most))
    plan = ["section", "section", *rng.choices(("section", "plain"), (1, 3), k=rng.randint(1, 5))]
    scene.play(plan, rng.choice((2, 2, 3)))
    return one_graph("sections", scene)
