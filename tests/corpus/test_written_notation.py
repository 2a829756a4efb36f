"""A test in the short notation, where that can say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import splitting
from helpers import LITMUS, corpus_entry
from hypothesis import given, settings
from hypothesis import strategies as st

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.notation import notation, spelled
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.fuzz.support import Support
from litmusfuzz.oracles.errors import NoAllowedSet
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import MODELS

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("X=1; r0=Y || Y=1; r1=X", {}),
        ("X+=1 || X-=2 || r0=X; r1=r0*2-1", {"dtype": "int64"}),
        ("r0=X; Y=r0+3", {"init": {"X": -7}}),
        ("X[0]=5 || r0=X[0,1]; X[1]+=2", {"shape": (2,), "name": "rows"}),
        ("Q!1; Q!2; close Q || r0=Q?; r1=size Q", {"queues": {"Q": 2}}),
    ],
)
def test_what_the_notation_says_is_said_as_it_was(text: str, options) -> None:
    test = litmus(text, **options)
    assert notation(test) == text
    again = eval(spelled(test), {"litmus": litmus})  # noqa: S307 - ours
    assert again == test


@pytest.mark.parametrize(
    "text",
    ["if r0==1 {X=1}", "loop 2 {X+=1}", "lock M; X=1; unlock M", "call {X=1}", "X=1 ||| r1=X"],
)
def test_what_it_does_not_say_is_a_file(text: str) -> None:
    test = litmus(f"r0=Y; {text}")
    assert notation(test) is None
    again = eval(spelled(test), {"loads": loads})  # noqa: S307 - ours
    assert again == test


def sets(test: LitmusTest) -> list[frozenset[frozenset[tuple[str, object]]]]:
    """The allowed set under each model, whatever the order of names."""
    found = []
    for model in MODELS.values():
        witnesses = Explorer(test, model, DEFAULT_BUDGET).allowed_outcomes().witnesses
        found.append(frozenset(frozenset(outcome.values) for outcome in witnesses))
    return found


def check(test: LitmusTest) -> bool:
    """True if the notation says the test; it has then the same outcomes."""
    if notation(test) is None:
        return False
    again = eval(spelled(test), {"litmus": litmus})  # noqa: S307 - ours
    assert sets(again) == sets(test)
    return True


def test_a_test_in_notation_allows_what_it_did() -> None:
    """Of the corpus, and of three families, in which edges are not those of chains as well."""
    small = [e.test for e in map(corpus_entry, LITMUS) if not e.test.features - {"queues"}]
    generated = [
        generate(family, 5, number, Support.scalars())
        for family in ("dag", "dense", "cycles")
        for number in range(25)
    ]
    said = 0
    for test in (*small, *generated):
        try:
            if len(test.effects) <= 6:
                said += check(test)
        except NoAllowedSet:
            continue
    assert said >= 25


def test_a_failing_example_of_hypothesis_is_shown_in_notation() -> None:
    @settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @given(resource_graphs("dag", support=splitting.Splitting), st.booleans())
    def property_(graph, other) -> None:
        assert len(graph.effects) < 2

    with pytest.raises(AssertionError) as caught:
        property_()
    shown = "\n".join(getattr(caught.value, "__notes__", ()))
    assert "graph=litmus(" in shown
    assert "other=False" in shown
    assert "Node(" not in shown
