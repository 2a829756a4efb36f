"""Each mutant on real TensorFlow is killed by one shape, and survives another.

What it survives shows that it is one defect, and not a lowering that does nothing
right; and TensorFlow as it is survives both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from helpers import LITMUS, corpus_entry, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class, names
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    configuration as tensorflow_configuration,
)
from litmusfuzz.fuzz.mutants import tensorflow as mutants
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.model import Model

SB = "X=1; r0=Y || Y=1; r1=X"
MP = "X=1; Y=2 || r0=Y; r1=X"
WIDE: dict[str, Any] = {"shape": (1, 4096)}
ROWS: dict[str, Any] = {"shape": (3,), "init": {"X": (0, 7, 9)}}
QUEUE: dict[str, Any] = {"queues": {"Q": 1}}
ACCUMULATOR: dict[str, Any] = {"dtype": "float32", "accumulators": "A"}
ONE: dict[str, Any] = {"client": "a:main fetch r0"}
SECTIONS = "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M"
NOISE = Noise(copies=32, steps=8)
COUNT = 256
ROUNDS = 60
"""Sessions, at most, until one shows the forbidden outcome, where control does not reach."""
SCHEDULES = 2000


@dataclass(frozen=True)
class Shape:
    """A program in the short notation, and what the notation leaves to arguments."""

    program: str
    given: dict[str, Any] = field(default_factory=dict)

    def test(self) -> LitmusTest:
        """The program as a test."""
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
    """What kills a mutant, and what does not.

    The schedules at the level `control` are executed, with so many preemptions; "" where control
    does not reach.
    """

    mutant: type[TensorFlowExecutor]
    killed_by: Shape | CorpusTest
    survived_by: Shape | CorpusTest
    control: str = "ops"
    preemptions: int | None = None

    def __str__(self) -> str:
        return self.mutant.name.removeprefix("mutant/")


KILLS = [
    Kill(mutants.DroppedControlEdge, Shape("X=1; r0=X"), Shape("r0=X; Y=r0+1 || X=1")),
    Kill(mutants.StoreBuffers, Shape(SB), Shape(MP)),
    Kill(mutants.StaleCache, Shape("r0=X; X+=1; r1=X"), Shape(SB)),
    Kill(
        mutants.EarlySink,
        Shape("X=1; Y=1 ||| r0=Y", {"client": "a:g0; b:g1 after a"}),
        Shape(SB),
    ),
    Kill(
        mutants.OneRunWaitedFor,
        Shape("X=1 ||| loop 8 { Y+=1 } ||| r0=Y", {"client": "a:g0; b:g1; c:g2 after a b"}),
        Shape("X=1 ||| Y=1 ||| r0=X; r1=Y", {"client": "a:g0; b:g1 after a; c:g2 after b"}),
    ),
    Kill(mutants.EarlyTransfer, Shape(MP), Shape("X=1; r0=X")),
    Kill(mutants.CopiedVariables, Shape("X=1; r0=X"), Shape("X=1; Y=2; X=3")),
    Kill(mutants.SplitUpdates, Shape("X+=1 || X+=2"), Shape("X+=1; X+=2")),
    Kill(mutants.TornWrite, Shape("X=1 || X=2 || r0=X", WIDE), Shape(SB), "pages", 1),
    Kill(mutants.TwoHolders, Shape(SECTIONS), Shape("lock M; r0=X; X=r0+1; unlock M || X=5")),
    Kill(mutants.EarlyRelease, Shape(SECTIONS), Shape("lock M; X=1; unlock M || r0=X")),
    Kill(
        mutants.OverCapacity,
        Shape("Q!1; Q!2; X=1 || r0=X; r1=Q?; r2=Q?", QUEUE),
        Shape("Q!1; X=1 || r0=Q?", QUEUE),
    ),
    Kill(
        mutants.OutOfOrder,
        Shape("Q!1; Q!2; r0=Q?", {"queues": {"Q": 2}}),
        Shape("Q!1; r0=Q?", QUEUE),
    ),
    Kill(
        mutants.StaleGradient,
        Shape("A<<1; r0=A>>1; A<<2; r1=count A", ACCUMULATOR),
        Shape("A<<1; r0=A>>1; A<<2 at 1; r1=count A", ACCUMULATOR),
    ),
    Kill(
        mutants.TooFewGradients,
        Shape("A<<1; A<<2 || r0=A>>2", ACCUMULATOR),
        Shape("A<<1; A<<2 || r0=A>>1", ACCUMULATOR),
    ),
    Kill(
        mutants.MeanOfGradients,
        Shape("A<<1; A<<3; r0=A>>2", ACCUMULATOR),
        Shape("A<<1; r0=A>>1", ACCUMULATOR),
    ),
    Kill(
        mutants.StepNotReset,
        Shape("A<<1; r0=count A", ACCUMULATOR),
        Shape("step A 3; A<<1 at 3; r0=count A", ACCUMULATOR),
    ),
    Kill(
        mutants.EarlyReturn,
        Shape("call { r0=X; X=1; X=2 }; r1=X"),
        Shape("X=1; call { r0=X }; r1=X || X=2"),
    ),
    Kill(mutants.MissedAlias, CorpusTest("handle-through-identity"), Shape(SB)),
    Kill(
        mutants.FirstHandle,
        CorpusTest("handle-chosen-by-a-race"),
        Shape("r0=X; if r0==1 { r1=2 } else { r1=3 } || X=1"),
    ),
    Kill(
        mutants.EarlyIndex,
        Shape("X[0]=1; r0=X[0]; r1=X[r0]", ROWS),
        Shape("r0=X[0]; r1=X[r0] || Y=1", ROWS),
    ),
    Kill(
        mutants.ClippedIndex,
        Shape("X[0]=5; r0=X[0]; r1=X[r0]", ROWS),
        Shape("X[0]=1; r0=X[0]; r1=X[r0]", ROWS),
    ),
    Kill(mutants.PrunedCall, Shape("call { X=1 }; r0=X"), Shape("call { r0=X; X=1 }; r1=X")),
    Kill(mutants.NoWindow, Shape("loop[1] 3 free { r0=X; X=r0+1 }"), Shape("loop[1] 3 { X+=1 }")),
    Kill(
        mutants.UnorderedIterations,
        Shape("loop 3 { r0=X; X=r0+1 }"),
        Shape("r0=X; loop 3 { r0=r0+1 }"),
    ),
    Kill(mutants.OldFrame, Shape("r0=X; loop 3 { r0=r0+1; Y=r0 }"), Shape("loop 3 { X+=1 }")),
    Kill(
        mutants.EarlyBody, Shape("loop 2 while X==0 { X=1; Y+=1 }"), Shape("loop 2 { r0=1 }; X=1")
    ),
    Kill(
        mutants.EarlyBranch,
        Shape("r0=X; if r0==1 { Y=1 }"),
        Shape("r0=X; if r0==1 { r1=2 } else { r1=3 } || X=1"),
    ),
    Kill(
        mutants.OwnVariables,
        Shape("X=1 ||| r0=X", {"client": "a:g0; b:g1 after a"}),
        Shape("X=1; r0=X"),
        control="",
    ),
    Kill(
        mutants.SharedFrame,
        Shape("r0=X; X=r0+1", {"client": "a:main; b:main after a"}),
        Shape("r0=X; X=r0+1"),
        control="",
    ),
    Kill(mutants.LastOpFirst, Shape(SB), Shape("X=1; r0=X"), control=""),
    Kill(
        mutants.LostFunctionEdge,
        Shape("call { X=1 }; Y=1 ||| r0=Y; r1=X"),
        Shape("call { X=1 }; X=2; r0=X"),
    ),
    Kill(mutants.FunctionWithoutOrder, Shape(SB), Shape("r0=X; Y=r0+1; r1=Y")),
    Kill(mutants.ClusterInParts, Shape(SB), Shape("r0=X; Y=r0+1; r1=Y")),
    Kill(
        mutants.StaleTrace,
        Shape("r0=X; Y=r0+1; Z=r0+2 ||| X=1"),
        Shape("r0=X; Y=r0+1; Z=r0+2"),
        control="",
    ),
    Kill(
        mutants.AlwaysInitialized,
        CorpusTest("state-before-the-write"),
        CorpusTest("state-of-an-initial-value"),
    ),
    Kill(
        mutants.ZeroForNoValue,
        CorpusTest("uninitialized-always-fails"),
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


def under_control(kill: Kill, test: LitmusTest) -> set[Outcome]:
    """Outcomes of all schedules."""
    (plain, *_) = kill.mutant.configurations()
    point = {**dict(plain.settings), "control": kill.control}
    config = tensorflow_configuration("controlled", **point)
    prepared = kill.mutant().prepare(test, config)
    assert isinstance(prepared, mutants.ControlledMutant)
    try:
        explored = prepared.explore(SCHEDULES, kill.preemptions)
        assert explored.whole or kill.preemptions is not None
        return set(explored.histogram)
    finally:
        prepared.close()


def execute(executor: type[TensorFlowExecutor], test: LitmusTest, seed: int) -> set[Outcome]:
    """Outcomes of one session."""
    (config, *_) = executor.configurations()
    prepared = executor().prepare(test, config)
    try:
        return set(prepared.run(COUNT, NOISE, seed))
    finally:
        prepared.close()


def forbidden(test: LitmusTest, model: Model, seen: set[Outcome]) -> list[Outcome]:
    judge = Explorer(test, model)
    verdicts = {outcome: judge.judge(outcome) for outcome in seen}
    assert Verdict.UNKNOWN not in verdicts.values()
    return [outcome for outcome, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN]


def model_of(mutant: type[TensorFlowExecutor]) -> Model:
    """The model that the mutant's configuration guarantees without the defect."""
    return GUARANTEES[mutant.configurations()[0].guarantees]


@pytest.mark.parametrize("kill", [kill for kill in KILLS if kill.control], ids=str)
def test_its_shape_kills_it_and_it_survives_another_in_every_schedule(kill: Kill) -> None:
    killed, survived = kill.killed_by.test(), kill.survived_by.test()
    model = model_of(kill.mutant)
    assert forbidden(killed, model, under_control(kill, killed))
    assert not forbidden(survived, model, under_control(kill, survived))


@pytest.mark.parametrize("kill", [kill for kill in KILLS if not kill.control], ids=str)
def test_its_shape_kills_it_and_it_survives_another(kill: Kill) -> None:
    killed, survived = kill.killed_by.test(), kill.survived_by.test()
    model = model_of(kill.mutant)
    sessions = (execute(kill.mutant, killed, seed) for seed in range(ROUNDS))
    assert any(forbidden(killed, model, seen) for seen in sessions)
    assert not forbidden(survived, model, execute(kill.mutant, survived, 0))


@pytest.mark.parametrize("kill", share_of(KILLS, 3), ids=str)
def test_tensorflow_survives_both(kill: Kill) -> None:
    """The executor itself, and the mutant's control."""
    sound = executor_class(kill.mutant.name.replace("mutant/", "control/"))
    for test in (kill.killed_by.test(), kill.survived_by.test()):
        assert not forbidden(test, EXECUTOR, execute(TensorFlowExecutor, test, 0))
        assert not forbidden(test, model_of(sound), execute(sound, test, 0))


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ("loop_optimizer=true;inter_op_threads=1", True),
        ("loop_optimizer=true;inter_op_threads=1;model_code=true", True),
        ("loop_optimizer=true", False),
        ("inter_op_threads=1", False),
        ("plain", False),
    ],
)
def test_a_defect_of_two_settings_shows_with_both_alone(settings: str, *, wrong: bool) -> None:
    """As the copied variables, it shows in every execution."""
    test = Shape("X=1; r0=X").test()
    name = mutants.OnePairOfSettings.name
    config = configuration(name, settings)
    for executor, shown in ((name, wrong), (f"control/{name.partition('/')[2]}", False)):
        seen = executor_class(executor)().prepare(test, config).run(64, Noise(copies=8), 0)
        assert bool(forbidden(test, EXECUTOR, set(seen))) is shown


def test_mutants_that_break_only_the_executor_model_are_silent_under_rfc() -> None:
    for mutant in (mutants.SplitUpdates, mutants.NoWindow):
        test = next(kill for kill in KILLS if kill.mutant is mutant).killed_by.test()
        assert not forbidden(test, RFC, execute(mutant, test, 0))


def test_every_mutant_has_a_kill() -> None:
    others = {mutants.UncheckedClusters.name, mutants.OnePairOfSettings.name}
    here = {kill.mutant.name for kill in KILLS} | others
    assert here == {n for n in names() if executor_class(n).__module__ == mutants.__name__}
