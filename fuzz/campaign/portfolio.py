"""What is tried, and in which order, on an executor that may have any defect.

First the tests of the corpus, then graphs of all families, by weight. Of the corpus
comes first what shows most that was not shown before, for its size: features, and
how two ops of some kinds on one resource stand to each other; when nothing is left
that is new, all counts as new again. So a few dozen small tests hold some of
everything, and no test is there for a defect.

References
----------
Rothermel, Untch, Chu, Harrold, "Prioritizing test cases for regression testing",
IEEE TSE 2001, section 2.2: additional coverage first, and then again from none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from corpus.graph import all_nodes
from corpus.ops import OPS
from fuzz.campaign.weights import Weights, pairs
from fuzz.executors.protocol import Noise
from fuzz.strategies import WEIGHTS, draw, families_for
from fuzz.strategies.mutations import names, parent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from corpus.graph import LitmusTest

CORPUS: Final = "corpus"
"""What the tests that were not drawn are counted under, beside the families."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run each test: a configuration, the noise, executions.

    Without a configuration it is the executor's first.
    """

    strategy: str
    config: str
    noise: Noise
    count: int


WAYS: Final = MappingProxyType(
    {
        "native": (
            *(
                Way(name, name, Noise(), 200)
                for name in ("controlled", "pct", "pos", "urw", "surw", "inline")
            ),
            Way("pool", "plain", Noise(copies=64), 1024),
            # Lanes, so that a torn value shows.
            Way("pool, wide", "plain", Noise(copies=32, lanes=2048), 512),
            Way("two devices", "two_devices", Noise(copies=64), 512),
            # Each copy's chains on threads of their own, begun within nanoseconds.
            Way("gang", "gang", Noise(1024, shuffle=False, together=True, pinned=True), 4096),
        ),
        "jax": (Way("controlled", "controlled", Noise(), 500),),
        # Of 256 executions 32 race at a time: 0.1 s, of which half goes into the graph.
        "tf": (Way("sessions", "", Noise(copies=32, steps=8), 256),),
    }
)
"""By the executor that a mutant was made from: strategies of the controlled engine, and
threads. What no configuration of the mutant has is left out."""


class Portfolio:
    """Tests for executors that run these features, in order; drawn when first wanted.

    Parameters
    ----------
    features : frozenset of str
    seed : int
        Of what is drawn.
    sparse : bool
        Whether tests with sparse writes are in it. TensorFlow tears these
        (docs/tensorflow-findings.md): what shows on them says nothing about a mutant.
    """

    def __init__(self, features: frozenset[str], seed: int, *, sparse: bool = True) -> None:
        self._features = features
        self._sparse = sparse
        self._tests: list[tuple[str, LitmusTest]] = []
        self._rest = self._drawn(seed)

    def __getitem__(self, index: int) -> tuple[str, LitmusTest]:
        """Number `index`, and the family that it is of."""
        while index >= len(self._tests):
            self._tests.append(next(self._rest))
        return self._tests[index]

    def _drawn(self, seed: int) -> Iterator[tuple[str, LitmusTest]]:
        yield from ((CORPUS, test) for test in in_order() if self._takes(test))
        families = tuple(name for name in families_for(self._features) if WEIGHTS[name])
        weights = Weights({name: WEIGHTS[name] for name in families}, learning=False)
        for index in count():
            family = weights.choose(0, families)
            test = draw(family, seed, index)
            if self._takes(test):
                yield family, test

    def _takes(self, test: LitmusTest) -> bool:
        sparse = any(
            node.definition.sparse and node.definition.kind.writes for node in test.effects
        )
        return test.features <= self._features and (self._sparse or not sparse)


@cache
def in_order() -> tuple[LitmusTest, ...]:
    """The corpus, and its tests with clusters once more without."""
    whole = [parent(name) for name in names()]
    bare = [replace(test, clusters=()) for test in whole if test.clusters]
    return tuple(prioritized([*whole, *bare]))


def prioritized(tests: Iterable[LitmusTest]) -> Iterator[LitmusTest]:
    """Those first that show most that is new, for their size; of equals the first."""
    left = {number: (test, shown(test)) for number, test in enumerate(tests)}
    sizes = {number: size(test) for number, (test, _) in left.items()}
    seen: set[Hashable] = set()
    fresh = True
    while left:
        gain = {number: len(what - seen) / sizes[number] for number, (_, what) in left.items()}
        best = max(gain, key=lambda number: gain[number])
        if not gain[best] and not fresh:
            seen, fresh = set(), True  # all counts as new again
            continue
        test, what = left.pop(best)
        seen |= what
        fresh = False
        yield test


def shown(test: LitmusTest) -> frozenset[Hashable]:
    """The features of a test, and how its ops on one resource stand to each other, by kind."""
    by_kind = {(OPS[one].kind, OPS[other].kind, how) for one, other, how in pairs(test)}
    return test.features | by_kind


def size(test: LitmusTest) -> int:
    """Nodes, those in bodies included."""
    return sum(1 for graph in test.graphs for _ in all_nodes(graph.nodes))
