"""The family `loops`: loops with ops in condition and body, beside ops that race.

A counter bounds each; often what a racing read saw ends it earlier. Few
iterations may run at once, or as many as like. Values are carried from reads,
and order what waits for them. Some bodies hold a loop or a conditional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.generators.structured import Mix, Scene, Stage, one_graph, resources, small

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest

_MIX = Mix(branch=1, loop=1, plain=9)
_NESTED = Mix(plain=1, first="loop")


def draw(rng: random.Random) -> LitmusTest:
    """One random test; all choices come from `rng`."""
    # Chosen once, for all tries: a loop in a loop is often too large.
    nested = rng.random() < 0.25
    return small(rng, partial(_sketch, nested=nested), rng.randint(7, 12))


def _sketch(rng: random.Random, most: int, arithmetic: bool, *, nested: bool) -> LitmusTest:  # noqa: FBT001
    mix = _NESTED if nested else _MIX
    scene = Scene(Stage(resources(rng, arithmetic=arithmetic), mix, most))
    others = rng.choices(("plain", "loop"), (6, 0 if nested else 1), k=rng.randint(2, 5))
    plan = ["loop", "plain", *others] if rng.random() < 0.7 else ["plain", "loop", *others]
    scene.play(plan, rng.choice((2, 2, 3)))
    return one_graph("loops", scene)
