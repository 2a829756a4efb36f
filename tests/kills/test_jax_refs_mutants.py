"""Each mutant of the executor jax_refs is killed by one shape, and survives another.

A program has a single outcome in each configuration, so that these tests give the same each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, differentiated

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class, names
from litmusfuzz.fuzz.mutants import jax_refs as mutants
from litmusfuzz.oracles import sequential

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor


def named(name: str) -> LitmusTest:
    """A test of the corpus."""
    return corpus_entry(next(path for path in LITMUS if path.stem == name)).test


def floats(text: str, **init: int) -> LitmusTest:
    """A test over floats with gradients."""
    return differentiated(litmus(text, dtype="float32", init=init))


@dataclass(frozen=True)
class Kill:
    """What kills a mutant in a configuration, and what does not."""

    mutant: type[JaxRefsExecutor]
    config: str
    killed_by: LitmusTest
    survived_by: LitmusTest

    def __str__(self) -> str:
        return self.mutant.name.removeprefix("mutant/")


BRANCH = litmus("r0=F; if r0==0 { X=1 } else { Y=1 }")
NOT_TAKEN = litmus("r0=F; if r0==1 { X=1 } else { Y=1 }")
SB = litmus("X=1; r0=Y || Y=1; r1=X")
ROWS = named("gather-mp")
LOOP = named("loop-in-turn")

KILLS = [
    Kill(mutants.DroppedBranchWrite, "switch", BRANCH, NOT_TAKEN),
    Kill(mutants.BothBranches, "switch", BRANCH, litmus("r0=F; if r0==0 { X=1 } else { X=2 }")),
    Kill(mutants.HoistedRead, "jit", litmus("X=1; r0=X"), litmus("X=1; r0=Y; r1=X")),
    Kill(mutants.LateIteration, "scan", LOOP, SB),
    Kill(mutants.LostIteration, "scan", LOOP, SB),
    Kill(mutants.SwapReturnsNew, "swap", litmus("X=1; X+=2"), litmus("X+=2")),
    Kill(mutants.AddUpdateOverwrites, "addupdate", litmus("X=1; X+=2"), litmus("X+=2")),
    Kill(mutants.NegativeTakesFirst, "addupdate", ROWS, SB),
    Kill(
        mutants.OverwrittenGradient, "gradient", floats("r0=X; X=7", X=3), floats("r0=X; r1=X", X=3)
    ),
    Kill(mutants.LostGradient, "gradient", floats("r0=X; Y+=r0", X=3), floats("r0=X; Y=r0", X=3)),
    # Under vmap copies differ in what they hold at first; what they write is the same.
    Kill(mutants.WrongLane, "vmap", litmus("X+=2"), litmus("X=1; r0=X")),
    Kill(mutants.StaleFreeze, "inside", litmus("X=1"), litmus("r0=X")),
    Kill(mutants.KeptContents, "jit", litmus("X+=1"), litmus("X=1; r0=X")),
    Kill(mutants.SharedBuffer, "eager", litmus("X=1; r0=Y"), litmus("X=1; r0=X; Y=1")),
]


def is_wrong(executor: type[JaxRefsExecutor], config: str, test: LitmusTest) -> bool:
    """True if an execution does not show the single outcome."""
    prepared = executor().prepare(test, configuration("jax_refs", config))
    return set(prepared.run(2, Noise(), seed=1)) != {sequential.outcome(test)}


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_its_shape_kills_it_and_it_survives_another(kill: Kill) -> None:
    assert is_wrong(kill.mutant, kill.config, kill.killed_by)
    assert not is_wrong(kill.mutant, kill.config, kill.survived_by)


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_the_executor_survives_both(kill: Kill) -> None:
    """The mutant's control, which is the executor itself."""
    control = executor_class(kill.mutant.name.replace("mutant/", "control/"))
    assert not is_wrong(control, kill.config, kill.killed_by)
    assert not is_wrong(control, kill.config, kill.survived_by)


def test_every_mutant_has_a_kill() -> None:
    here = {kill.mutant.name for kill in KILLS}
    assert here == {n for n in names() if executor_class(n).__module__ == mutants.__name__}
