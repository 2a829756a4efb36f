"""Each mutant of the native executor is killed by one shape, and survives another.

The second shape shows that the mutant has one specific defect; the correct executor
survives both shapes.

The controlled engine is deterministic for a seed. Tests of defects that need threads
state the probability of a miss.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import executor_class, names
from litmusfuzz.fuzz.mutants import native as mutants
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.model import Model

SB = "X=1; r0=Y || Y=1; r1=X"
MP = "X=1; Y=2 || r0=Y; r1=X"
WIDE: dict[str, Any] = {"shape": (1, 4096)}
QUEUE: dict[str, Any] = {"queues": {"Q": 1}}
ACCUMULATOR: dict[str, Any] = {"dtype": "float32", "accumulators": "A"}
ONE: dict[str, Any] = {"client": "a:main fetch r0"}
SECTIONS = "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M"


@dataclass(frozen=True)
class Shape:
    """A program in the short notation, with the arguments of `litmus`."""

    program: str
    given: dict[str, Any] = field(default_factory=dict)

    def test(self) -> LitmusTest:
        """Build the litmus test."""
        return litmus(self.program, **self.given)


@dataclass(frozen=True)
class CorpusTest:
    """A test of the corpus, for what the short notation lacks."""

    name: str

    def test(self) -> LitmusTest:
        """Load it."""
        return corpus_entry(next(path for path in LITMUS if path.stem == self.name)).test


@dataclass(frozen=True)
class Kill:
    """A mutant's killing shape, the shape it survives, and the settings of both runs."""

    mutant: type[NativeExecutor]
    killed_by: Shape | CorpusTest
    survived_by: Shape | CorpusTest
    config: str = "controlled"
    count: int = 1000
    noise: Noise = field(default=Noise())

    def __str__(self) -> str:
        return self.mutant.name.removeprefix("mutant/")


KILLS = [
    Kill(mutants.StaleCache, Shape("r0=X; X+=1; r1=X"), Shape(SB)),
    Kill(mutants.InPlaceUpdate, Shape("r0=X; X+=1", WIDE), Shape("r0=X; X+=1")),
    Kill(mutants.DroppedControlEdge, Shape(MP), Shape("r0=X; Y=r0+1 || X=1")),
    Kill(
        mutants.EarlySink,
        Shape("X=1; Y=1 ||| r0=Y", {"client": "a:g0; b:g1 after a"}),
        Shape(SB),
    ),
    Kill(
        mutants.OneRunWaitedFor,
        Shape("X=1 ||| Y=1 ||| r0=X; r1=Y", {"client": "a:g0; b:g1; c:g2 after a b"}),
        Shape("X=1 ||| Y=1 ||| r0=X; r1=Y", {"client": "a:g0; b:g1 after a; c:g2 after b"}),
    ),
    Kill(mutants.SplitUpdates, Shape("X+=1 || X+=2"), Shape("X+=1; X+=2")),
    Kill(mutants.TwoHolders, Shape(SECTIONS), Shape("lock M; r0=X; X=r0+1; unlock M || X=5")),
    Kill(mutants.EarlyRelease, Shape(SECTIONS), Shape("lock M; X=1; unlock M || r0=X")),
    Kill(
        mutants.LastInFirstOut,
        Shape("Q!1; Q!2; r0=Q?", {"queues": {"Q": 2}}),
        Shape("Q!1; r0=Q?; Q!2; r1=Q?", QUEUE),
    ),
    Kill(
        mutants.StaleGradient,
        Shape("A<<1; r0=A>>1; A<<2; r1=count A", ACCUMULATOR),
        Shape("A<<1; r0=A>>1; A<<2 at 1; r1=count A", ACCUMULATOR),
    ),
    Kill(
        mutants.GradientTwice,
        Shape("A<<1; r0=A>>1", ACCUMULATOR),
        Shape("A<<0; r0=count A", ACCUMULATOR),
    ),
    Kill(
        mutants.TooFewGradients,
        Shape("A<<1; A<<2 || r0=A>>2", ACCUMULATOR),
        Shape("A<<1; A<<2 || r0=A>>1", ACCUMULATOR),
    ),
    Kill(
        mutants.KeptSum,
        Shape("A<<1; r0=A>>1", ACCUMULATOR),
        Shape("A<<1; r0=count A", ACCUMULATOR),
    ),
    Kill(
        mutants.OldStep,
        Shape("A<<1; r0=A>>1; A<<2; r1=count A", ACCUMULATOR),
        Shape("A<<1; A<<2; r0=A>>2", ACCUMULATOR),
    ),
    Kill(
        mutants.OverCapacity,
        Shape("Q!1; Q!2; X=1 || r0=X; r1=Q?; r2=Q?", QUEUE),
        Shape("Q!1; X=1 || r0=Q?", QUEUE),
    ),
    # `inline` is first in, first out: both dequeues wait before the first enqueue. It has
    # one thread, so that this is deterministic.
    Kill(
        mutants.LostWakeUp,
        Shape("r0=Q? || r1=Q? || Q!1; Q!2", {"queues": {"Q": 2}}),
        Shape("r0=Q? || Q!1", QUEUE),
        "inline",
    ),
    Kill(
        mutants.OldFrame,
        Shape("r0=X; loop 3 { r0=r0+1; Y=r0 }"),
        Shape("loop 3 { X+=1 }"),
    ),
    Kill(
        mutants.EarlyBody, Shape("loop 2 while X==0 { X=1; Y+=1 }"), Shape("loop 2 { r0=1 }; X=1")
    ),
    Kill(
        mutants.EarlyReturn,
        Shape("call { r0=X; X=1; X=2 }; r1=X"),
        Shape("X=1; call { r0=X }; r1=X || X=2"),
    ),
    Kill(mutants.MissedAlias, CorpusTest("handle-through-identity"), Shape(SB)),
    Kill(mutants.PrunedCall, Shape("call { X=1 }; r0=X"), Shape("call { r0=X; X=1 }; r1=X")),
    Kill(mutants.NoWindow, Shape("loop[1] 3 free { r0=X; X=r0+1 }"), Shape("loop[1] 3 { X+=1 }")),
    Kill(
        mutants.LargeEarlyRead,
        Shape(MP, {"shape": (1, 1 << 19)}),
        Shape(MP, {"shape": (1, 1 << 18)}),
        count=40,  # a millisecond each; one of 5 shows it, and the seed is fixed
    ),
    Kill(mutants.NamedNode, Shape("X=1; Y=2 || r0=Y; c1=X"), Shape(MP)),
    Kill(
        mutants.AlwaysInitialized,
        CorpusTest("state-before-the-write"),
        CorpusTest("state-of-an-initial-value"),
    ),
    Kill(
        mutants.ZeroForNoValue,
        CorpusTest("uninitialized-race"),
        CorpusTest("uninitialized-ordered"),
    ),
    Kill(mutants.Unpruned, Shape("X=1 || r0=X", ONE), Shape(SB)),
    Kill(mutants.DataOnlyNeeds, Shape("X=1; r0=X", ONE), Shape("r0=X; Y=r0", ONE)),
    Kill(mutants.SectionNotEntered, CorpusTest("fetches-section-increments"), Shape(SECTIONS)),
    Kill(mutants.BodyWithoutEffects, CorpusTest("fetches-loop-whole"), Shape("loop 2 { X=1 }")),
    Kill(
        mutants.SwappedFeeds, CorpusTest("placeholders-predicate"), CorpusTest("placeholders-rows")
    ),
]

# Real threads, whose chains begin within nanoseconds of each other.
RACE = Noise(copies=2048, shuffle=False, together=True, pinned=True)
RACES = [
    # SB is killed in one execution of four, the others in one of fifty; with three busy
    # processes on two cores in one of ten, or of a thousand. 2,000,000 executions then miss
    # with exp(-2000). Pinned, since the kernel often wakes a thread on the core of its
    # waker; many copies, since a start takes longer than one copy.
    Kill(mutants.RelaxedAtomics, Shape(SB), Shape(MP), "gang", 40_000, RACE),
    Kill(mutants.StoreBuffers, Shape(SB), Shape(MP), "gang", 40_000, RACE),
    Kill(mutants.TornWrite, Shape("X=1 || X=2 || r0=X", WIDE), Shape(SB), "plain", 20_000),
    Kill(mutants.EarlyTransfer, Shape(MP), Shape("X=1; r0=X"), "two_devices", 40_000),
    # Deterministic: the read is on the other device.
    Kill(mutants.CopiedVariables, Shape("X=1; r0=X || Y=1"), Shape("X=1; r0=X"), "two_devices"),
]
ROUNDS = 50


def execute(
    executor: type[NativeExecutor], test: LitmusTest, kill: Kill, seed: int = 1
) -> tuple[Outcome, ...]:
    """Return the outcomes of as many executions as the kill needs."""
    config = next(c for c in executor.configurations() if c.name == kill.config)
    prepared = executor().prepare(test, config)
    try:
        return tuple(prepared.run(kill.count, kill.noise, seed))
    finally:
        prepared.close()


def forbidden(test: LitmusTest, model: Model, seen: tuple[Outcome, ...]) -> list[Outcome]:
    judge = Explorer(test, model)
    verdicts = {outcome: judge.judge(outcome) for outcome in seen}
    assert Verdict.UNKNOWN not in verdicts.values()
    return [outcome for outcome, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN]


def model_of(kill: Kill) -> Model:
    config = next(c for c in kill.mutant.configurations() if c.name == kill.config)
    return MODELS[config.guarantees]


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_its_shape_kills_it(kill: Kill) -> None:
    test = kill.killed_by.test()
    assert forbidden(test, model_of(kill), execute(kill.mutant, test, kill))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("kill", RACES, ids=str)
def test_a_race_kills_it(kill: Kill) -> None:
    test = kill.killed_by.test()
    rounds = (execute(kill.mutant, test, kill, seed) for seed in range(ROUNDS))
    assert any(forbidden(test, model_of(kill), seen) for seen in rounds)


def test_every_mutant_has_a_kill() -> None:
    here = {kill.mutant.name for kill in (*KILLS, *RACES)}
    assert here == {n for n in names() if executor_class(n).__module__ == mutants.__name__}


@pytest.mark.parametrize("kill", [*KILLS, *RACES], ids=str)
def test_it_survives_another(kill: Kill) -> None:
    test = kill.survived_by.test()
    assert not forbidden(test, model_of(kill), execute(kill.mutant, test, kill))


@pytest.mark.parametrize("kill", [*KILLS, *RACES], ids=str)
def test_the_executor_survives_both(kill: Kill) -> None:
    """The executor itself, and the mutant's control."""
    config = next(c for c in NativeExecutor.configurations() if c.name == kill.config)
    sound = executor_class(kill.mutant.name.replace("mutant/", "control/"))
    for shape in (kill.killed_by, kill.survived_by):
        test = shape.test()
        for executor in (NativeExecutor, sound):
            seen = execute(executor, test, kill)
            assert not forbidden(test, MODELS[config.guarantees], seen)


def test_split_updates_are_silent_under_rfc() -> None:
    kill = next(k for k in KILLS if k.mutant is mutants.SplitUpdates)
    test = kill.killed_by.test()
    seen = execute(kill.mutant, test, kill)
    assert not forbidden(test, RFC, seen)
    assert forbidden(test, EXECUTOR, seen)
