"""Each mutant of OpenCL devices is killed by one shape, and survives another configuration.

Gates are opened in an order that the seed decides, so a missing wait shows in the same executions
each time; only which of two threads asks for a value first is left to chance. A command that should
wait comes too early with a probability of at least 1/4 in each of 256 executions: a miss has
(3/4)**256 < 1e-31.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.native.accelerators import Accelerators
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.table import executor_class, names
from litmusfuzz.fuzz.mutants import opencl as mutants
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC

CONFIGS = {config.name: config for config in NativeExecutor.configurations()}
SUMS = "r0=X; Y=r0+1; r1=Y; Z=r1+1; r2=Z || X=1; X=2"


@pytest.fixture(autouse=True)
def opencl() -> None:
    """Skips where there is no OpenCL device."""
    if why := Accelerators().lacks("opencl:0"):
        pytest.skip(why)


@dataclass(frozen=True)
class Kill:
    """A mutant, the shape that kills it with gates, and a configuration that it survives."""

    mutant: type[NativeExecutor]
    killed_by: str = SUMS
    survives: str = "opencl"

    def __str__(self) -> str:
        return self.mutant.name.removeprefix("mutant/")


KILLS = [
    Kill(mutants.UnawaitedOperand),
    Kill(mutants.EventOfWrongQueue),
    Kill(mutants.EarlyReuse),
    Kill(mutants.UnawaitedUpload),
    Kill(mutants.StaleMap),
]
BY_CHECK = [mutants.Contraction, mutants.UnawaitedDownload]


def forbidden(executor: type[NativeExecutor], shape: str, config: str) -> int:
    """Return the number of executions with a forbidden outcome."""
    test = litmus(shape)
    prepared = executor().prepare(test, CONFIGS[config])
    seen = prepared.run(256, Noise(copies=4), seed=1)
    prepared.close()
    judge = Explorer(test, RFC)
    return sum(n for outcome, n in seen.items() if judge.judge(outcome) is Verdict.FORBIDDEN)


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_shape_kills_it_and_not_the_executor(kill: Kill) -> None:
    assert forbidden(kill.mutant, kill.killed_by, "opencl_gated")
    for sound in (NativeExecutor, kill.mutant.control()):
        assert not forbidden(sound, kill.killed_by, "opencl_gated")


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_it_survives_another_configuration(kill: Kill) -> None:
    assert not forbidden(kill.mutant, kill.killed_by, kill.survives)


@pytest.mark.parametrize("mutant", BY_CHECK, ids=lambda each: each.name)
def test_the_comparison_of_kernels_kills_it(mutant: type[NativeExecutor]) -> None:
    with pytest.raises(Unavailable, match=r"^device opencl:0 \(its kernels differ from the host's"):
        mutant().check(CONFIGS["opencl_gated"])
    mutant.control()().check(CONFIGS["opencl_gated"])


def test_every_mutant_has_a_kill() -> None:
    here = {each.mutant.name for each in KILLS} | {each.name for each in BY_CHECK}
    assert here == {n for n in names() if executor_class(n).__module__ == mutants.__name__}
