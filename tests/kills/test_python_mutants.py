"""Mutants that need no framework: what kills each, and what it survives."""

from __future__ import annotations

from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.campaign.judge import judge
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class, names
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.reference import allowed_outcomes


def forbidden(executor: str, test) -> int:
    prepared = executor_class(executor)().prepare(test, configuration(executor))
    return judge(allowed_outcomes(test, RFC), prepared.run(5, Noise(), 0)).forbidden_count


# A queue's contents have no fixed size: the canary refuses them, as it says.
WITHOUT_QUEUES = [path for path in LITMUS if not corpus_entry(path).test.queues]


@for_each("path", WITHOUT_QUEUES)
def test_the_canary_is_killed_by_every_test(path) -> None:
    assert forbidden("mutant/canary", corpus_entry(path).test) == 5


def test_stale_reads_is_killed_by_sb_and_survives_mp() -> None:
    assert forbidden("mutant/stale-reads", litmus("X=1; r0=Y || Y=1; r1=X")) == 5
    assert forbidden("mutant/stale-reads", litmus("X=1; Y=2 || r0=Y; r1=X")) == 0
    assert forbidden("control/stale-reads", litmus("X=1; r0=Y || Y=1; r1=X")) == 0


def test_every_mutant_belongs_to_a_module_that_is_tested_here() -> None:
    """Their own tests check that each mutant has a kill."""
    modules = {executor_class(n).__module__ for n in names() if n.startswith("mutant/")}
    about = ("canary", "stale_reads", "native", "jax", "tensorflow")
    assert modules == {f"litmusfuzz.fuzz.mutants.{name}" for name in about}
