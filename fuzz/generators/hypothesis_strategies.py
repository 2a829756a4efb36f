"""Hypothesis strategies over the same families that campaigns draw from.

>>> from hypothesis import given
>>> @given(resource_graphs())
... def test_my_pass_keeps_the_semantics(test):
...     ...
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.generators import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Collection

    from litmusfuzz.corpus.model import LitmusTest

_SEEDS: Final = st.integers(0, 2**32 - 1)
_KEPT: Final = st.integers(0, 63)
"""Whether an op stays: 0 drops it, and is what Hypothesis tries first when it shrinks."""


@st.composite
def resource_graphs(
    draw: st.DrawFn, family: str = "dag", ops: Collection[str] | None = None
) -> LitmusTest:
    """Random litmus tests that race.

    Parameters
    ----------
    family : str
        One of `fuzz.generators.FAMILIES`.
    ops : collection of str, optional
        Reads and updates of other sorts are left out, where that leaves a test; for an
        executor that has few. Pure ops stay.

    Notes
    -----
    What is drawn is a seed, and then for each op whether it stays. Choices of the
    family itself would be shrunk as well, but are drawn, and mutated, with little
    regard for shapes: of `cycles` hardly any graph is then one.

    Hypothesis calls a test flaky that fails only now and then. For executors that
    are not deterministic there is our own reducer: `fuzz.campaign.reducer`.
    """
    test = FAMILIES[family](random.Random(draw(_SEEDS)))
    for node in test.effects:
        kept = draw(_KEPT)
        if not kept or (ops is not None and node.op not in ops):
            test = _without(test, node.name)
    return test


def _without(test: LitmusTest, name: str) -> LitmusTest:
    """The test without an op; as it is, where that is no test or empty."""
    try:
        smaller = Rewriter.of(test).without({name}, test.types).tidy().build()
    except MalformedTest:
        return test
    return smaller if smaller.effects else test
