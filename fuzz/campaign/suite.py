"""The prioritized list of tests that the self-test runs on an executor with an unknown defect.

Two tests of the corpus alternate with a generated test, whose family is chosen by weight. The
first test of the corpus is the one that covers most: features; how two ops of some kinds on one
resource are ordered, also across the border of a cluster; the sorts of variables, queues, runs,
loops and branches. The next is the one that covers most of the rest. When nothing new is left,
counting starts again. So the first few dozen small tests cover everything once, and no test is
there for a particular defect. The list then starts again from its head, each time twice as far,
since many outcomes need luck.

References
----------
Rothermel, Untch, Chu, Harrold, "Prioritizing test cases for regression testing", IEEE TSE 2001,
section 2.2: additional coverage first, and then again from none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs, head
from litmusfuzz.corpus.ops import OPS
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.family_weights import FamilyWeights
from litmusfuzz.fuzz.campaign.variation import with_lanes
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.finding.reducer import widened
from litmusfuzz.fuzz.finding.relations import NodeRelations, pairs
from litmusfuzz.fuzz.finding.renaming import permuted
from litmusfuzz.fuzz.generators import FAMILIES, families_for, generate
from litmusfuzz.fuzz.generators.gradients import differentiated, in_floats
from litmusfuzz.fuzz.generators.mutations import names, parent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.support import Support

CORPUS: Final = "corpus"
"""Name under which tests of the corpus are counted, beside the families."""
_CORPUS_PER_GENERATED: Final = 2
_FIRST_ROUND: Final = 128
"""Tests of the corpus in the first round; each further round has twice as many."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """How a test is run: a configuration, the noise, and a number of executions.

    An empty configuration is the executor's first. With `wide`, the test runs with the widest
    lanes that the reducer tries, so that torn values show; with `lanes` it runs with so many, as
    large tensors may be copied by other code; with `names` it runs under permuted names; with
    `gradients` over floats, with the gradients of all variables. Tests
    without such a form are left out. One test of `every` runs in this setup. With `settings` the
    configurations are generated in the executor's space, another one every so many tests; a mutant
    that has one configuration is left out.
    """

    name: str
    config: str
    noise: Noise
    count: int
    wide: bool = False
    lanes: int = 1
    names: bool = False
    every: int = 1
    settings: int = 0
    gradients: bool = False

    def form(self, test: LitmusTest, number: int) -> LitmusTest | None:
        """The test with this number as it is run; None if it is not run."""
        if number % self.every:
            return None
        if self.gradients:
            floats = in_floats(test)
            return differentiated(floats, [v.name for v in floats.variables])
        if self.names:
            return permuted(test, number)
        if self.lanes > 1:
            return with_lanes(test, self.lanes)
        return next(widened(test), None) if self.wide else test


RUN_SETUPS: Final = MappingProxyType(
    {
        "native": (
            *(
                RunSetup(name, name, Noise(), 200)
                for name in ("controlled", "pct", "pos", "urw", "surw", "inline")
            ),
            RunSetup("controlled, names", "controlled", Noise(), 200, names=True),
            RunSetup("controlled, large", "controlled", Noise(), 4, lanes=1 << 19, every=4),
            RunSetup("pool", "plain", Noise(copies=64), 1024),
            # Lanes, so that a torn value shows.
            RunSetup("pool, wide", "plain", Noise(copies=32, lanes=2048), 512),
            RunSetup("two devices", "two_devices", Noise(copies=64), 512),
            # Of the mutants of OpenCL devices, which have no other.
            RunSetup("OpenCL, gated", "opencl_gated", Noise(copies=4), 64),
            # Each copy's chains on threads of their own, begun within nanoseconds.
            RunSetup("gang", "gang", Noise(1024, shuffle=False, together=True, pinned=True), 4096),
        ),
        "jax": (RunSetup("controlled", "controlled", Noise(), 500),),
        # An execution is the same each time; the second shows what the first has left.
        "jax_refs": (
            *(
                RunSetup(f"references, {name}", name, Noise(), 2)
                for name in ("scan", "swap", "addupdate", "inside", "vmap")
            ),
            RunSetup("references, eager", "eager", Noise(), 2, every=2),
            RunSetup("references, gradients", "gradient", Noise(), 1, gradients=True),
        ),
        # To build 8 copies takes 10 ms, 32 take three times as long; an execution that
        # blocks takes 4 ms. What tears needs luck, and has more executions.
        "tf": (
            RunSetup("sessions", "", Noise(copies=8, steps=16), 128),
            RunSetup("sessions, wide", "", Noise(copies=8, steps=32), 256, wide=True),
            RunSetup("sessions, settings", "", Noise(copies=8, steps=8), 64, settings=2),
        ),
    }
)
"""By the executor that a mutant was made from: schedulers of the controlled engine, and threads. A
setup is left out where the mutant lacks its configuration."""


class Suite:
    """Tests for executors with these features, in order; made when first used.

    Parameters
    ----------
    features : frozenset of str
    seed : int
        Of the generated tests.
    sparse : bool
        Include tests with sparse writes. TensorFlow tears these writes
        (docs/tensorflow-findings.md), so that such a test says nothing about a mutant.
    """

    def __init__(self, support: Support, seed: int, *, sparse: bool = True) -> None:
        self._support = support
        self._sparse = sparse
        self._rounds = self._corpus_rounds()
        self._generated = self._generated_tests(seed)
        self._tests: list[tuple[str, LitmusTest]] = []

    def __getitem__(self, index: int) -> tuple[str, LitmusTest]:
        """Number `index`, and the family that it is of."""
        while index >= len(self._tests):
            is_generated = len(self._tests) % (_CORPUS_PER_GENERATED + 1) == _CORPUS_PER_GENERATED
            self._tests.append(next(self._generated if is_generated else self._rounds))
        return self._tests[index]

    def _corpus_rounds(self) -> Iterator[tuple[str, LitmusTest]]:
        ordered = tuple(prioritized(test for test in corpus_tests() if self._supports(test)))
        most = _FIRST_ROUND
        while True:
            yield from ((CORPUS, test) for test in ordered[:most])
            most *= 2

    def _generated_tests(self, seed: int) -> Iterator[tuple[str, LitmusTest]]:
        families = tuple(name for name in families_for(self._support) if FAMILIES[name].weight)
        weights = FamilyWeights({name: FAMILIES[name].weight for name in families}, learning=False)
        for index in count():
            family = weights.choose(0, families)
            test = generate(family, seed, index, self._support)
            if self._supports(test):
                yield family, test

    def _supports(self, test: LitmusTest) -> bool:
        sparse = any(n.definition.sparse and n.definition.kind.writes for n in test.effects)
        return not self._support.lacking(test) and (self._sparse or not sparse)


@cache
def corpus_tests() -> tuple[LitmusTest, ...]:
    """The tests of the corpus, and those with clusters once more without."""
    whole = [parent(name) for name in names()]
    return (*whole, *(replace(test, clusters=()) for test in whole if test.clusters))


def prioritized(tests: Iterable[LitmusTest]) -> Iterator[LitmusTest]:
    """The tests ordered by additional coverage; of equals the smallest first."""
    left = dict(enumerate(sorted(tests, key=size)))
    has = {number: traits(test) for number, test in left.items()}
    seen: set[Hashable] = set()
    while left:
        best = max(left, key=lambda number: len(has[number] - seen))  # the first of equals
        if seen and not has[best] - seen:
            seen = set()  # start counting again
            continue
        seen |= has[best]
        yield left.pop(best)


@cache
def traits(test: LitmusTest) -> frozenset[Hashable]:
    """Traits of a test that do not depend on its names and values."""
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
    kinds = {node.name: node.definition.kind for node in test.nodes}
    for run in test.runs:
        found |= {("fetches", kinds[head(name)]) for name in run.wanted}
        found |= {("feeds", len({run.feeds for run in test.runs}) > 1)} if run.feeds else set()
    for node in test.nodes:
        attrs = node.attrs
        if isinstance(attrs, LoopAttrs):
            several, in_turn = len(attrs.carried) > 1, attrs.parallel_iterations == 1
            found.add(("loop", several, in_turn, bool(attrs.captures)))
        elif isinstance(attrs, BranchAttrs):
            branches = bool(attrs.then.nodes), bool(attrs.orelse.nodes)
            found.add(("branch", *branches, bool(attrs.results)))
        elif isinstance(attrs, CallAttrs):
            found.add(("call", bool(attrs.captures), bool(attrs.results)))
    return frozenset(found)


def _race(one: Node, other: Node, relations: NodeRelations) -> bool:
    shared = set(one.resources) & set(other.resources)
    return bool(shared) and relations.relation(one, other) == "unordered"


def size(test: LitmusTest) -> int:
    """Number of nodes, bodies included."""
    return len(test.nodes)
