"""Family `mutations`: tests of the corpus with one to three random edits.

The corpus holds tests that somebody thought of: classic shapes, examples of rules, reduced
findings. Their neighbours are as interesting, and random generation rarely reaches them. The
description of a test names its parent and the edits. A campaign may give more parents, its seeds
(`litmusfuzz.fuzz.generators.seeds`): every second test is then one of theirs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litmusfuzz import corpus
from litmusfuzz.corpus.ops import ABSTRACT_OPS, MalformedTest
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.generators import dag
from litmusfuzz.fuzz.generators.edits import EDITS
from litmusfuzz.fuzz.generators.seeds import SIZES, fitted, window
from litmusfuzz.fuzz.generators.structured import MAX_ORDERS, MAX_ORDERS_OF_BODIES, TRIES
from litmusfuzz.fuzz.passes.opaque import without_opaque
from litmusfuzz.oracles.bounds import count_all, has_small_values

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.seeds import Seeds
    from litmusfuzz.fuzz.support import Support

FOLDER: Final = Path(corpus.__file__).parent / "litmus"
_STEPS: Final = 12
"""Edits tried on one test; many do not fit it."""
_SEEDED: Final = 0.5
"""Share of the tests whose parent is a seed, if there are seeds."""


def generate(rng: random.Random, support: Support, seeds: Seeds | None = None) -> LitmusTest:
    """Generate a test of the family within a support; all choices come from `rng`.

    The result is SB itself if no test of the corpus, or no small mutation, is within it.

    Parameters
    ----------
    rng : random.Random
    support : Support
    seeds : Seeds, optional
        Further parents; None for those of the corpus alone.
    """
    given = {} if seeds is None else seeds.supported(support)
    if given and rng.random() < _SEEDED:
        made = _from_seed(rng, support, given)
        if made is not None:
            return made
    parents = supported(support)
    for _ in range(TRIES if parents else 0):
        name = rng.choice(tuple(parents))
        test, descriptions = _edited(rng, support, parents[name])
        # Edits may undo each other.
        if test != parents[name] and _is_small(test):
            return test.titled(description=f"mutation of {name}: {'; '.join(descriptions)}")
    return parent("SB").titled(description="mutation of SB: no attempt is small")


def _from_seed(
    rng: random.Random, support: Support, seeds: Mapping[str, LitmusTest]
) -> LitmusTest | None:
    """A mutation of a seed, or of a window of it; None if no attempt is small."""
    abstract = replace(support, ops=support.ops | ABSTRACT_OPS)
    name = rng.choice(tuple(seeds))
    size = rng.choice(SIZES)
    for _ in range(TRIES):
        test, descriptions = _edited(rng, abstract, window(rng, seeds[name], size))
        if test is not seeds[name]:
            test = without_opaque(test)
            if not support.lacking(test) and _is_small(test, dag.MAX_ORDERS):
                how = "; ".join(descriptions) or "a part of it"
                return test.titled(description=f"mutation of seeds/{name}: {how}"[:500])
        size = max(size - 1, 3)
    return None


@cache
def names() -> tuple[str, ...]:
    """Names of the tests of the corpus, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


@cache
def supported(support: Support) -> dict[str, LitmusTest]:
    """Tests of the corpus within a support, by name; unsupported dtypes are replaced."""
    found = {}
    for name in names():
        test = fitted(parent(name), support)
        if test is not None and not support.lacking(test):
            found[name] = test
    return found


@cache
def parent(name: str) -> LitmusTest:
    """A test of the corpus, renamed after the family."""
    return replace(load(FOLDER / f"{name}.yaml").test, name="mutations")


def _edited(rng: random.Random, support: Support, test: LitmusTest) -> tuple[LitmusTest, list[str]]:
    """A test after one to three edits, and their descriptions."""
    descriptions: list[str] = []
    count = rng.choice((1, 1, 2, 2, 3))
    if test.clusters and rng.random() < 0.5:
        # Few executors take tests with clusters.
        test = replace(test, clusters=())
        descriptions.append("no clusters")
    for _ in range(_STEPS):
        if len(descriptions) >= count:
            break
        edited = rng.choice(EDITS)(rng, test)
        if edited is None:
            continue
        description, rewriter = edited
        try:
            changed = rewriter.build()
        except MalformedTest:
            continue
        # What always fails says nothing.
        if changed != test and not changed.beyond and not support.lacking(changed):
            test = changed
            descriptions.append(description)
    return test, descriptions


def _is_small(test: LitmusTest, most: int = MAX_ORDERS) -> bool:
    """True if the reference oracle can decide the test and no value grows too large."""
    bodies = {"loops", "conditionals", "calls"} & test.features
    limit = MAX_ORDERS_OF_BODIES if bodies else most
    return count_all(test, limit) < limit and has_small_values(test)
