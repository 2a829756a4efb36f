"""The order in which tests are tried on an executor with an unknown defect."""

from __future__ import annotations

from itertools import islice

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.fuzz.campaign.suite import (
    CORPUS,
    RUN_SETUPS,
    Suite,
    corpus_tests,
    prioritized,
    size,
    traits,
)
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.support import EVERYTHING, Support


def test_new_traits_come_first_then_all_count_again() -> None:
    small = litmus("X=1 || X=2")
    again = litmus("X=1 || X=2 || X=3")
    more = litmus("X=1; r0=Y || Y=1; r1=X")
    other = litmus("Q!1", queues={"Q": 1})
    assert traits(small) == traits(again)
    # Most first; `again` has nothing new before all counts again, and is then behind the
    # one that is smaller and has as much: there is none left.
    assert list(prioritized([again, small, other, more])) == [more, other, small, again]


def test_a_few_dozen_tests_hold_some_of_everything() -> None:
    tests = corpus_tests()
    first = list(islice(prioritized(tests), 60))
    assert frozenset().union(*map(traits, first)) == frozenset().union(*map(traits, tests))
    assert sum(map(size, first)) / len(first) < 16


def test_a_suite_is_the_same_each_time_and_never_ends() -> None:
    one, two = (Suite(Support(features=FEATURES - {"clusters"}), 3) for _ in range(2))
    assert [one[index] for index in range(60)] == [two[index] for index in range(60)]
    generated = [one[index][0] for index in range(2, 300, 3)]
    assert CORPUS not in generated
    assert len(set(generated)) > 8
    assert "clusters" not in {feature for i in range(300) for feature in one[i][1].features}
    whole = {test for test in corpus_tests() if "clusters" not in test.features}
    # Each round is twice as long: those before the first whole one have less than 2 * len(whole)
    # tests together. Of three tests one is generated.
    most = 3 * (2 + 1) * len(whole) // 2
    corpus = [test for family, test in (one[index] for index in range(most)) if family == CORPUS]
    assert corpus[:128] == corpus[128:256]  # what comes first comes again soonest
    assert whole <= set(corpus)


def test_sparse_writes_can_be_left_out() -> None:
    suite = Suite(EVERYTHING, 0, sparse=False)
    for index in range(200):
        _, test = suite[index]
        assert not any(n.definition.sparse and n.definition.kind.writes for n in test.effects)


def test_every_way_is_a_configuration_of_the_executor_that_it_is_for() -> None:
    for executor, setups in RUN_SETUPS.items():
        configs = {config.name for config in executor_class(executor).configurations()}
        assert {setup.config for setup in setups} <= configs | {""}
