"""Adds gradients to a generated test of any family, for executors of programs of one thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.ops import FLOATS
from litmusfuzz.oracles import sequential
from litmusfuzz.oracles.errors import NoAllowedSet

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.support import Support

SHARE: Final = 0.5
"""How often a test that can have gradients has some."""
_NO_PROGRAM: Final = frozenset({"queues", "critical sections"})


def add(test: LitmusTest, support: Support, rng: random.Random) -> LitmusTest:
    """The test, or the test with gradients of some of its variables.

    Parameters
    ----------
    support : Support
        Gradients are added only if it has them, and nothing that no program of one thread has.
    """
    if "gradients" not in support.features or support.features & _NO_PROGRAM:
        return test
    floats = [v.name for v in test.variables if v.dtype in FLOATS and v.init is not None]
    if not floats or rng.random() >= SHARE:
        return test
    chosen = rng.sample(floats, rng.randint(1, len(floats)))
    variables = tuple(replace(v, gradient=v.name in chosen) for v in test.variables)
    try:
        made = replace(test, variables=variables)
        sequential.gradients(made)
    except (MalformedTest, NoAllowedSet):  # lanes, a maximum of equals, large values
        return test
    return made
