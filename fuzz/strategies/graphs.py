"""Hypothesis strategies over the same families that campaigns draw from.

>>> from hypothesis import given
>>> @given(resource_graphs())
... def test_my_pass_keeps_the_semantics(test):
...     ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from fuzz.strategies import FAMILIES

if TYPE_CHECKING:
    from corpus.graph import LitmusTest


def resource_graphs(family: str = "dag") -> st.SearchStrategy[LitmusTest]:
    """Random litmus tests that race.

    Parameters
    ----------
    family : str
        One of `fuzz.strategies.FAMILIES`.

    Notes
    -----
    Shrinks by Hypothesis's own choices. For executors that are not
    deterministic, where Hypothesis would call a test flaky, there is our own
    reducer: `fuzz.campaign.reducer`.
    """
    # Its draws are Hypothesis choices, so that they are replayed and shrunk.
    return st.randoms(use_true_random=False).map(FAMILIES[family])
