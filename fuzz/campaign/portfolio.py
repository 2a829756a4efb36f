"""What is tried, and in which order, on an executor that may have any defect.

Two tests of the corpus, then a graph of some family, by weight, and so on. Of the corpus
comes first what shows most that was not shown before: features; how two ops of some
kinds stand to each other, on one resource, in program order or across a cluster's border;
of which sort variables, queues, runs, loops and branches are. When nothing is left that
is new, all counts as new again. So a few dozen small tests hold some of everything, and no
test is there for a defect. What comes first comes again soonest, since much needs luck.

References
----------
Rothermel, Untch, Chu, Harrold, "Prioritizing test cases for regression testing",
IEEE TSE 2001, section 2.2: additional coverage first, and then again from none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import count, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import BranchAttrs, LoopAttrs
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.fuzz.campaign.family_weights import Weights, pairs
from litmusfuzz.fuzz.campaign.reducer import widened
from litmusfuzz.fuzz.campaign.relations import NodeRelations
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.generators import FAMILIES, families_for, generate
from litmusfuzz.fuzz.generators.mutations import names, parent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.support import Support

CORPUS: Final = "corpus"
"""What the tests that were not generated are counted under, beside the families."""
_CORPUS_TO_DRAWN: Final = 2
_FIRST: Final = 128
"""Tests of the corpus in the first round; twice as many in the next, and so on."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run each test: a configuration, the noise, executions.

    Without a configuration it is the executor's first. `wide` runs the test with the
    widest lanes that the reducer tries, so that what tears shows; others are left out.
    """

    strategy: str
    config: str
    noise: Noise
    count: int
    wide: bool = False

    def form(self, test: LitmusTest) -> LitmusTest | None:
        """The test as it is run; None if it is not."""
        return next(widened(test), None) if self.wide else test


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
        # To build 8 copies takes 10 ms, 32 take three times as long; an execution that
        # blocks takes 4 ms. What tears needs luck, and has more executions.
        "tf": (
            Way("sessions", "", Noise(copies=8, steps=16), 128),
            Way("sessions, wide", "", Noise(copies=8, steps=32), 256, wide=True),
        ),
    }
)
"""By the executor that a mutant was made from: strategies of the controlled engine, and
threads. What no configuration of the mutant has is left out."""


class Portfolio:
    """Tests within a support, in order; generated when first wanted.

    Parameters
    ----------
    support : Support
    seed : int
        Of what is generated.
    sparse : bool
        Whether tests with sparse writes are in it. TensorFlow tears these
        (docs/tensorflow-findings.md): what shows on them says nothing about a mutant.
    """

    def __init__(self, support: Support, seed: int, *, sparse: bool = True) -> None:
        self._support = support
        self._sparse = sparse
        self._rounds = self._again_and_again()
        self._drawn = self._draws(seed)
        self._tests: list[tuple[str, LitmusTest]] = []

    def __getitem__(self, index: int) -> tuple[str, LitmusTest]:
        """Number `index`, and the family that it is of."""
        while index >= len(self._tests):
            generated = len(self._tests) % (_CORPUS_TO_DRAWN + 1) == _CORPUS_TO_DRAWN
            self._tests.append(next(self._drawn if generated else self._rounds))
        return self._tests[index]

    def _again_and_again(self) -> Iterator[tuple[str, LitmusTest]]:
        ordered = tuple(prioritized(test for test in corpus_tests() if self._takes(test)))
        most = _FIRST
        while True:
            yield from ((CORPUS, test) for test in ordered[:most])
            most *= 2

    def _draws(self, seed: int) -> Iterator[tuple[str, LitmusTest]]:
        families = tuple(name for name in families_for(self._support) if FAMILIES[name].weight)
        weights = Weights({name: FAMILIES[name].weight for name in families}, learning=False)
        for index in count():
            family = weights.choose(0, families)
            test = generate(family, seed, index, self._support)
            if self._takes(test):
                yield family, test

    def _takes(self, test: LitmusTest) -> bool:
        sparse = any(n.definition.sparse and n.definition.kind.writes for n in test.effects)
        return not self._support.lacking(test) and (self._sparse or not sparse)


@cache
def corpus_tests() -> tuple[LitmusTest, ...]:
    """The corpus, and its tests with clusters once more without."""
    whole = [parent(name) for name in names()]
    return (*whole, *(replace(test, clusters=()) for test in whole if test.clusters))


def prioritized(tests: Iterable[LitmusTest]) -> Iterator[LitmusTest]:
    """Those first that show most that is new; of equals the smallest."""
    left = dict(enumerate(sorted(tests, key=size)))
    has = {number: traits(test) for number, test in left.items()}
    seen: set[Hashable] = set()
    while left:
        best = max(left, key=lambda number: len(has[number] - seen))  # the first of equals
        if seen and not has[best] - seen:
            seen = set()  # all counts as new again
            continue
        seen |= has[best]
        yield left.pop(best)


@cache
def traits(test: LitmusTest) -> frozenset[Hashable]:
    """What a test has some of, whatever its names and values are."""
    found: set[Hashable] = set(test.features)
    found |= {(OPS[one].kind, OPS[other].kind, how) for one, other, how in pairs(test)}
    relations = NodeRelations(test)
    above = relations.above
    for one, other in permutations([node for node in test.effects if node.resources], 2):
        apart = not set(one.resources) & set(other.resources)
        if apart and one.name in above.get(other.name, ()):
            found.add((one.definition.kind, other.definition.kind, "then"))
    inside = {name for cluster in test.clusters for name in cluster.members}
    for one, other in permutations(test.effects, 2):
        if one.name in inside and other.name not in inside and _race(one, other, relations):
            found.add((one.definition.kind, other.definition.kind, "of a cluster"))
    found |= {("variable", bool(each.shape)) for each in test.variables}
    found |= {("queue", min(each.capacity, 2)) for each in test.queues}
    found |= {("run", min(len(run.after), 2)) for run in test.runs}
    for node in test.nodes:
        attrs = node.attrs
        if isinstance(attrs, LoopAttrs):
            several, in_turn = len(attrs.carried) > 1, attrs.parallel_iterations == 1
            found.add(("loop", several, in_turn, bool(attrs.captures)))
        elif isinstance(attrs, BranchAttrs):
            branches = bool(attrs.then.nodes), bool(attrs.orelse.nodes)
            found.add(("branch", *branches, bool(attrs.results)))
    return frozenset(found)


def _race(one: Node, other: Node, relations: NodeRelations) -> bool:
    shared = set(one.resources) & set(other.resources)
    return bool(shared) and relations.relation(one, other) == "unordered"


def size(test: LitmusTest) -> int:
    """Nodes, those in bodies included."""
    return len(test.nodes)
