"""Each mutant of the executor jax is killed by one shape, and survives another.

By running: those whose defect is in the clustering are convicted without a run in
``test_clustering_mutants.py``, by the same graphs. Under the controlled engine a seed
decides everything, so that these tests give the same each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from jax_clustered.helpers_jax import CONFIGS, CONTROLLED
from kills.test_clustering_mutants import KILLS as CLUSTERERS
from kills.test_clustering_mutants import graph

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import executor_class, names
from litmusfuzz.fuzz.mutants import jax as mutants
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome

COUNT = 2000
MP = "X=1; Y=2 || cluster {r0=Y; r1=X}"


@dataclass(frozen=True)
class Kill:
    """What kills a mutant, and what does not."""

    mutant: type[JaxClusteredExecutor]
    killed_by: LitmusTest
    survived_by: LitmusTest

    def __str__(self) -> str:
        return self.mutant.name.removeprefix("mutant/")


KILLS = [
    *(
        Kill(executor_class(f"mutant/{k.mutant}"), graph(k.killed_by), graph(k.survived_by))
        for k in CLUSTERERS
    ),
    # What it reads first is X, for r2; in MP it is Y, as in the order of the members.
    Kill(mutants.SplitSnapshot, litmus("X=1; Y=2 || cluster {r2=X; r0=Y; r1=X}"), litmus(MP)),
    # X is written back first: with 3, before Y has its 2.
    Kill(
        mutants.SplitWriteBack,
        litmus("cluster {X=1; Y=2; X=3} || r0=X; r1=Y"),
        litmus("cluster {X=1; Y=2} || r0=Y; r1=X"),
    ),
    # X changes in place after the snapshot, Y does not.
    Kill(
        mutants.AliasedSnapshot,
        litmus("Y=2; X+=1 || cluster {r0=X; r1=Y; Z=1}"),
        litmus("Y=2; X=1 || cluster {r0=X; r1=Y; Z=1}"),
    ),
    Kill(
        mutants.EarlySnapshot,
        litmus("X=1; cluster {r0=Y; Z=r0} || Y=1; r1=X"),
        litmus("cluster {r0=Y; Z=r0} || Y=1; r1=X"),
    ),
]


def forbidden(executor: type[JaxClusteredExecutor], test: LitmusTest, config: str) -> list[Outcome]:
    """What it shows that is not allowed."""
    prepared = executor().prepare(test, CONFIGS[config])
    seen = prepared.run(COUNT, Noise(), seed=1)
    prepared.close()
    judge = Explorer(test, RFC)
    verdicts = {outcome: judge.judge(outcome) for outcome in seen}
    assert set(verdicts.values()) <= {Verdict.ALLOWED, Verdict.FORBIDDEN}
    return [outcome for outcome, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN]


@pytest.mark.parametrize("config", CONTROLLED)
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_its_shape_kills_it(kill: Kill, config: str) -> None:
    """Whichever back end compiles the clusters."""
    assert forbidden(kill.mutant, kill.killed_by, config)


@pytest.mark.parametrize("config", CONTROLLED)
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_it_survives_another(kill: Kill, config: str) -> None:
    assert not forbidden(kill.mutant, kill.survived_by, config)


@pytest.mark.parametrize("config", CONTROLLED)
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_the_executor_survives_both(kill: Kill, config: str) -> None:
    """The executor itself, and the mutant's control."""
    sound = executor_class(kill.mutant.name.replace("mutant/", "control/"))
    for executor in (JaxClusteredExecutor, sound):
        assert not forbidden(executor, kill.killed_by, config)
        assert not forbidden(executor, kill.survived_by, config)


def test_every_mutant_has_a_kill() -> None:
    here = {kill.mutant.name for kill in KILLS}
    assert here == {n for n in names() if executor_class(n).__module__ == mutants.__name__}
