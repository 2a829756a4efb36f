"""Hypothesis strategies over the families that campaigns generate from.

>>> from hypothesis import given
>>> @given(resource_graphs())
... def test_my_pass_keeps_the_semantics(test):
...     ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.vendor.pretty import for_type_by_name

from litmusfuzz.corpus.model import LitmusTest
from litmusfuzz.corpus.notation import spelled
from litmusfuzz.corpus.ops import MalformedTest
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.generators import FAMILIES, NotGenerated, families_for
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from hypothesis.vendor.pretty import RepresentationPrinter

    from litmusfuzz.fuzz.generators import Family

_SEEDS: Final = st.integers(0, 2**32 - 1)
_KEPT: Final = st.integers(0, 63)
"""0 drops an op: what Hypothesis tries first when it shrinks."""


def _show(test: LitmusTest, printer: RepresentationPrinter, _cycle: object) -> None:
    """Print a test of a failing example as code that makes it, not as a page of dataclasses."""
    printer.text(spelled(test))


for_type_by_name(LitmusTest.__module__, LitmusTest.__qualname__, _show)


class Supporting(Protocol):
    """A value with a support: an executor or its class."""

    @property
    def support(self) -> Support:
        """The litmus tests that it takes."""


def resource_graphs(
    family: str = "dag", support: Support | Supporting | type[Supporting] = EVERYTHING
) -> st.SearchStrategy[LitmusTest]:
    """Random litmus tests that race.

    Parameters
    ----------
    family : str
        One of `litmusfuzz.fuzz.generators.FAMILIES`.
    support : Support, or an executor or its class
        Tests lie within it.

    Raises
    ------
    ValueError
        Naming the family that does not exist, or that generates no test within the support.

    Notes
    -----
    Hypothesis chooses a seed, and then for each op whether it stays. It could choose for
    the family as well and shrink these choices, but it generates and mutates them with
    little regard for shapes: hardly any graph of `cycles` would then be a cycle.

    Hypothesis calls a test flaky that fails only now and then. For executors that
    are not deterministic there is our own reducer: `litmusfuzz.fuzz.finding.reducer`.
    """
    within = support if isinstance(support, Support) else support.support
    assert isinstance(within, Support)
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r}; there are {', '.join(FAMILIES)}")
    if family not in families_for(within):
        beyond = ", ".join(FAMILIES[family].beyond(within))
        lacks = f": it lacks {beyond}" if beyond else ""
        raise ValueError(f"family {family} generates no test within the support{lacks}")
    return _tests(FAMILIES[family], within)


@st.composite
def _tests(draw: st.DrawFn, family: Family, support: Support) -> LitmusTest:
    try:
        test = family.test(draw(_SEEDS), support)
    except NotGenerated:
        reject()
    for node in test.effects:
        if not draw(_KEPT):
            smaller = _without(test, node.name)
            test = test if support.lacking(smaller) else smaller
    return test


def _without(test: LitmusTest, name: str) -> LitmusTest:
    """The test without an op; the test itself where that is no test, or empty."""
    try:
        smaller = Rewriter.of(test).without({name}, test.types).tidy().build()
    except MalformedTest:
        return test
    return smaller if smaller.effects else test
