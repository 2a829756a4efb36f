"""The family `mutations`: tests of the corpus, each with one to three random edits.

The corpus holds what somebody thought of: a shape, a rule, an op's mistake, something
that was found. What lies one edit away is as well worth a look, and random drawing would
hardly get there. What was edited, and how, stands in a test's `description`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz import corpus
from litmusfuzz.corpus.ops import MAX_MAGNITUDE, MalformedTest
from litmusfuzz.corpus.shapes import with_dtype
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.generators.edits import EDITS
from litmusfuzz.fuzz.generators.structured import MAX_ORDERS, MAX_ORDERS_OF_BODIES, TRIES
from litmusfuzz.oracles.bounds import count_all, largest_magnitude

if TYPE_CHECKING:
    import random

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.support import Support

FOLDER: Final = Path(corpus.__file__).parent / "litmus"
_STEPS: Final = 12
"""Edits tried on one test, of which many do not fit it."""


def generate(rng: random.Random, support: Support) -> LitmusTest:
    """One random test; all choices come from `rng`.

    `parent("SB")` where no parent is supported.
    """
    parents = supported(support)
    for _ in range(TRIES if parents else 0):
        name = rng.choice(tuple(parents))
        test, said = _edited(rng, support, parents[name])
        # One edit may undo another.
        if test != parents[name] and _is_small(test):
            return replace(test, description=f"mutation of {name}: {'; '.join(said)}")
    return replace(parent("SB"), description="mutation of SB: none of those tried is small")


@cache
def names() -> tuple[str, ...]:
    """The tests of the corpus, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


@cache
def supported(support: Support) -> dict[str, LitmusTest]:
    """Tests of the corpus within a support, by name; with another dtype if that is all."""
    found = {}
    for name in names():
        test = parent(name)
        dtypes = {each.dtype for each in test.variables} | {each.dtype for each in test.queues}
        for dtype in sorted(dtypes - support.dtypes):
            try:
                test = with_dtype(test, dtype, max(support.dtypes)).build()
            except MalformedTest:
                break
        if not support.lacking(test):
            found[name] = test
    return found


@cache
def parent(name: str) -> LitmusTest:
    """One of them, by the name of the family."""
    return replace(load(FOLDER / f"{name}.yaml").test, name="mutations")


def _edited(rng: random.Random, support: Support, test: LitmusTest) -> tuple[LitmusTest, list[str]]:
    """The test after a few edits, and what they were."""
    said: list[str] = []
    count = rng.choice((1, 1, 2, 2, 3))
    if test.clusters and rng.random() < 0.5:
        # Most executors run no test that has some.
        test = replace(test, clusters=())
        said.append("no clusters")
    for _ in range(_STEPS):
        if len(said) >= count:
            break
        done = rng.choice(EDITS)(rng, test)
        if done is None:
            continue
        words, rewriter = done
        try:
            changed = rewriter.build()
        except MalformedTest:
            continue
        if changed != test and not support.lacking(changed):
            test = changed
            said.append(words)
    return test, said


def _is_small(test: LitmusTest) -> bool:
    """Whether the reference oracle gets through, and no value grows too large."""
    bodies = {"loops", "conditionals"} & test.features
    limit = MAX_ORDERS_OF_BODIES if bodies else MAX_ORDERS
    return count_all(test, limit) < limit and largest_magnitude(test) < MAX_MAGNITUDE
