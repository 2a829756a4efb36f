"""A mutant's `reaches`: what kills it reaches it, and what does not cannot kill it.

The self-test relies on both. Of the mutants of TensorFlow that change the test, the second needs no
test: what they leave as it is runs as it is. The others are run here on what does not reach
them, under the controlled engine, or in programs, which both show the same each time.
"""

from __future__ import annotations

from functools import cache

import pytest
from kills import (
    test_jax_mutants,
    test_jax_refs_mutants,
    test_native_mutants,
    test_tensorflow_mutants,
)

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.campaign.mutant_candidates import mutants
from litmusfuzz.fuzz.campaign.suite import Suite
from litmusfuzz.fuzz.executors.protocol import KnowsReach, Noise, Refused
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.mutants.tensorflow import OnePairOfSettings
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

TESTS = 100
"""Of the suite, from its head; each mutant is run on a few of them that do not reach it."""
ORIGINS = {"native": 6, "jax": 2, "jax_refs": 2}
"""How many these are, by the package of the mutant; a program is traced and compiled for each."""
KNOWING = [name for name in mutants() if isinstance(executor_class(name), KnowsReach)]


def origin(name: str) -> str:
    """The module that a mutant is in."""
    return executor_class(name).__module__.rpartition(".")[2]


def configuration_of(mutant: type, name: str):
    """The configuration of that name."""
    return next(each for each in mutant.configurations() if each.name == name)


@cache
def suite(support) -> list:
    """The tests at the head of the suite."""
    tests = Suite(support, 0)
    return [tests[number][1] for number in range(TESTS)]


def killing() -> list:
    """Each mutant, with the shape that kills it and the configuration."""
    found = [
        (kill.mutant, kill.killed_by.test(), kill.config)
        for kill in (*test_native_mutants.KILLS, *test_native_mutants.RACES)
    ]
    found += [(k.mutant, k.killed_by, k.config) for k in test_jax_refs_mutants.KILLS]
    found += [(k.mutant, k.killed_by, "controlled") for k in test_jax_mutants.KILLS]
    found += [
        (kill.mutant, kill.killed_by.test(), kill.mutant.configurations()[0].name)
        for kill in test_tensorflow_mutants.KILLS
    ]
    return [each for each in found if isinstance(each[0], KnowsReach)]


def test_what_kills_a_mutant_reaches_it() -> None:
    for mutant, test, config in killing():
        assert mutant.reaches(test, configuration_of(mutant, config)), mutant.name


def test_most_mutants_know() -> None:
    assert len(KNOWING) > 90


def test_a_defect_of_two_settings_is_reached_with_both() -> None:
    kill = next(
        k for k in test_tensorflow_mutants.KILLS if k.mutant.name == "mutant/tf-copied-variables"
    )
    test = kill.killed_by.test()
    for name, reached in (("loop_optimizer=true;inter_op_threads=1", True), ("plain", False)):
        config = (
            OnePairOfSettings.configured(name)
            if reached
            else configuration_of(OnePairOfSettings, name)
        )
        assert OnePairOfSettings.reaches(test, config) is reached


@pytest.mark.parametrize("name", [n for n in KNOWING if origin(n) in ORIGINS])
def test_what_does_not_reach_a_defect_shows_nothing_forbidden(name: str) -> None:
    mutant = executor_class(name)
    kill = next((k for k in test_jax_refs_mutants.KILLS if k.mutant is mutant), None)
    config = configuration_of(mutant, kill.config if kill else "controlled")
    ran = 0
    for test in suite(mutant.support):
        if ran == ORIGINS[origin(name)]:
            break
        if mutant.reaches(test, config):
            continue
        try:
            prepared = mutant().prepare(test, config)
            seen = prepared.run(50 if kill is None else 2, Noise(), 1)
        except (Refused, SystemFailed):  # gradients have known findings
            continue
        prepared.close()
        oracle = Explorer(test, GUARANTEES[config.guarantees])
        assert Verdict.FORBIDDEN not in map(oracle.judge, seen), test.name
        ran += 1
    reaching = [each for each in suite(mutant.support) if mutant.reaches(each, config)]
    assert ran or len(reaching) == TESTS
