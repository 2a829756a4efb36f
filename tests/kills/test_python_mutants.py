"""Mutants that need no framework: what kills each, and what it survives."""

from __future__ import annotations

from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class, names
from litmusfuzz.fuzz.finding.causes import symptom
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes


def forbidden(executor: str, test) -> int:
    prepared = executor_class(executor)().prepare(test, configuration(executor))
    return judge(allowed_outcomes(test, RFC), prepared.run(5, Noise(), 0)).forbidden_count


# A queue's contents have no fixed size: the canary refuses them, as it says.
WITHOUT_QUEUES = [path for path in LITMUS if not corpus_entry(path).test.queues]


@for_each("path", WITHOUT_QUEUES, every=3)
def test_the_canary_is_killed_by_every_test(path) -> None:
    assert forbidden("mutant/canary", corpus_entry(path).test) == 5


def test_stale_reads_is_killed_by_sb_and_survives_mp() -> None:
    assert forbidden("mutant/stale-reads", litmus("X=1; r0=Y || Y=1; r1=X")) == 5
    assert forbidden("mutant/stale-reads", litmus("X=1; Y=2 || r0=Y; r1=X")) == 0
    assert forbidden("control/stale-reads", litmus("X=1; r0=Y || Y=1; r1=X")) == 0


def seen(executor: str, notation: str, lanes: int, config: str = "plain") -> set[str]:
    """Symptoms in 200 executions; the seed is fixed, so that chance cannot fail a test."""
    test = litmus(notation, shape=(1, lanes))
    prepared = executor_class(executor)().prepare(test, configuration(executor, config))
    judged = judge(allowed_outcomes(test, RFC), prepared.run(200, Noise(), 0))
    return {symptom(outcome) for outcome, _ in judged.forbidden}


BESIDE, AFTER = "X[0]=1 || r0=X", "X[0]=1; r0=X"


def test_torn_scatter_is_killed_by_a_read_beside_and_survives_one_after() -> None:
    assert seen("mutant/torn-scatter", BESIDE, 2) == {"torn"}
    assert not seen("mutant/torn-scatter", AFTER, 2)
    assert not seen("control/torn-scatter", BESIDE, 2)


def test_early_scatter_is_killed_by_a_read_after_in_one_configuration() -> None:
    assert seen("mutant/early-scatter", AFTER, 2, "early") == {"torn"}
    assert not seen("mutant/early-scatter", AFTER, 2)
    assert not seen("control/early-scatter", AFTER, 2, "early")
    assert seen("control/early-scatter", BESIDE, 2, "early") == {"torn"}


def test_forgotten_scatter_is_killed_by_a_read_after_and_survives_lanes() -> None:
    assert seen("mutant/forgotten-scatter", AFTER, 1) == {"wrong"}
    assert not seen("mutant/forgotten-scatter", AFTER, 2)
    assert not seen("control/forgotten-scatter", AFTER, 1)
    assert seen("control/forgotten-scatter", BESIDE, 2) == {"torn"}


def test_every_mutant_belongs_to_a_module_that_is_tested_here() -> None:
    """Their own tests check that each mutant has a kill."""
    modules = {executor_class(n).__module__ for n in names() if n.startswith("mutant/")}
    about = (
        *("canary", "stale_reads", "scatter", "native", "opencl", "jax", "jax_refs"),
        "tensorflow",
    )
    assert modules == {f"litmusfuzz.fuzz.mutants.{name}" for name in about}
