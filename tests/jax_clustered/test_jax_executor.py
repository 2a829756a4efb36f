"""Executor jax: the outcomes it can show equal the allowed set, on each test of the corpus."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, for_each
from jax_clustered.helpers_jax import COMPILER, CONFIGS, CONTROLLED, all_outcomes, prepared
from native.helpers_native import keys

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest, Node
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.jax_clustered.backend import JaxBackend
from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise, Refused, Unavailable
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.mutants.clustering import CLUSTERING_MUTANTS
from litmusfuzz.fuzz.passes.clustering import RegionRefused, cluster
from litmusfuzz.oracles import explorer
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.translation import Soundness, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest

TRACES = 10_000
"""No test of the corpus needs more."""
CLUSTERED = [path for path in LITMUS if corpus_entry(path).test.clusters]
SUPPORT = JaxClusteredExecutor.support
TAKEN = [path for path in LITMUS if not SUPPORT.lacking(corpus_entry(path).test)]
BEYOND = [path for path in LITMUS if path not in TAKEN]


@for_each("path", BEYOND)
def test_a_test_beyond_the_support_is_refused_by_name(path) -> None:
    """It is not clustered either: tests with some of these features may have no clusters."""
    test = corpus_entry(path).test
    if test.features - SUPPORT.features:
        assert JaxClusteredExecutor.clustered(test, CONFIGS["plain"]) is test
    with pytest.raises(Refused) as refused:
        JaxClusteredExecutor().prepare(test, CONFIGS["plain"])
    assert any(each in str(refused.value) for each in SUPPORT.lacking(test))


@for_each("path", TAKEN, every=3)
def test_all_executions_show_exactly_the_allowed_set_of_the_clustered(path) -> None:
    """With the test's own clusters, or else with clusters that the clusterer chooses.

    In both back ends, where there are clusters.
    """
    test = JaxClusteredExecutor.clustered(corpus_entry(path).test, CONFIGS["controlled"])
    allowed = explorer.allowed_outcomes(test, RFC)
    assert allowed.complete
    for config in CONTROLLED if test.clusters else ("controlled",):
        found = all_outcomes(test, TRACES, config)
        assert found is not None, f"more than {TRACES} executions"
        assert found == set(allowed.witnesses), config


def clusterings(test: LitmusTest, rng: Random) -> Iterator[LitmusTest]:
    """The test as it is clustered by the rules, and by each clusterer that lacks one."""
    yield cluster(test)
    for mutant in CLUSTERING_MUTANTS.values():
        with suppress(MalformedTest, RegionRefused):
            yield mutant.cluster(test, rng)


def test_what_is_unsound_in_one_back_end_is_so_in_the_other() -> None:
    """Random tests: the two show the same, which is new exactly if validation says so."""
    verdicts: Counter[Soundness] = Counter()
    for index in range(30):
        test = replace(generate("cycles", 9, index, SUPPORT), clusters=())
        allowed = set(explorer.allowed_outcomes(test, RFC).witnesses)
        for clustered in dict.fromkeys(clusterings(test, Random(index))):
            if not clustered.clusters:
                continue
            one, other = (all_outcomes(clustered, TRACES, config) for config in CONTROLLED)
            assert one is not None
            assert one == other, index
            verdict = validate(clustered).verdict
            assert bool(one - allowed) == (verdict is Soundness.UNSOUND), index
            verdicts[verdict] += 1
    assert min(verdicts[Soundness.SOUND], verdicts[Soundness.UNSOUND]) > 9, verdicts


@for_each("path", CLUSTERED)
def test_a_witness_can_be_forced_and_gives_its_outcome(path) -> None:
    test = corpus_entry(path).test
    for outcome, order in explorer.allowed_outcomes(test, RFC).witnesses.items():
        assert any(follows(each, order, outcome) for each in prepared(test))


def follows(executor, order, outcome) -> bool:
    try:
        return executor.force(keys(order)) == outcome
    except Diverged:
        return False


def check_on_threads(config: str, paths) -> None:
    """Clustered by us where a test is not; 64 executions each."""
    for path in paths:
        test = corpus_entry(path).test
        executor = PreparedJaxTest(
            JaxClusteredExecutor.clustered(test, CONFIGS[config]), CONFIGS[config], COMPILER
        )
        seen = executor.run(64, Noise(copies=8), seed=1)
        executor.close()
        oracle = Explorer(test, RFC)
        for outcome in seen:
            assert oracle.judge(outcome) in (Verdict.ALLOWED, Verdict.UNSPECIFIED), path.stem


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ("plain", TAKEN),
        *((config, CLUSTERED) for config in ("stealing", "inline", "two_devices", "references")),
    ],
)
def test_threads_show_only_allowed_outcomes(config: str, paths) -> None:
    check_on_threads(config, paths)


@pytest.mark.parametrize("config", ["gpu", "cpu_and_gpu"])
def test_a_gpu_shows_only_allowed_outcomes(config: str) -> None:
    try:
        JaxClusteredExecutor().check(CONFIGS[config])
    except Unavailable as missing:
        pytest.skip(str(missing))
    check_on_threads(config, TAKEN)


@pytest.mark.parametrize("name", ["SB", "IRIW"])
def test_unclustered_shapes_show_every_allowed_outcome_on_threads(name: str) -> None:
    """The rarest of IRIW's fifteen showed in 1 of 270 copies, in 1 of 290 at worst.

    There are 20,000 of them: it is missed with probability below exp(-68).
    """
    (path,) = (path for path in LITMUS if path.stem == name)
    test = corpus_entry(path).test
    executor = PreparedJaxTest(test, CONFIGS["unclustered"], COMPILER)
    seen = executor.run(20_000, Noise(), seed=1)
    executor.close()
    assert set(seen) == set(explorer.allowed_outcomes(test, RFC).witnesses)


def test_a_constant_alone_may_have_rows_and_lanes_are_added_to_it() -> None:
    """A scalar then stands for each of its rows, in `native` as well."""
    rows = litmus("r0=X || X=1")
    three = Node("three", "Const", attrs=ConstAttrs("int32", (3,), 5))
    total = Node("total", "AddV2", ("r0", "three"))
    nodes = (*rows.graph.nodes, three, total)
    test = replace(rows, graphs=(replace(rows.graph, nodes=nodes),), observe=("total",))
    for executor in (
        PreparedJaxTest(test, CONFIGS["plain"], COMPILER),
        PreparedTest(test, NativeExecutor.configurations()[0]),
    ):
        seen = executor.run(100, Noise(copies=4, lanes=8), seed=1)
        executor.close()
        assert set(seen) <= set(explorer.allowed_outcomes(test, RFC).witnesses)


def test_lanes_are_added_to_a_test_without_lanes() -> None:
    test = litmus("cluster {r0=X; Y=r0} || X=1 || r1=Y", shape=(2,))
    executor = PreparedJaxTest(test, CONFIGS["plain"], COMPILER)
    seen = executor.run(200, Noise(copies=8, lanes=16), seed=1)
    executor.close()
    assert set(seen) <= set(explorer.allowed_outcomes(test, RFC).witnesses)


def test_a_missing_device_is_refused_by_name() -> None:
    test = litmus("X=1")
    elsewhere = replace(test, variables=(replace(test.variables[0], device="cpu:9"),))
    with pytest.raises(Refused, match=r"device cpu:9 \(JAX has 4 of them\)"):
        PreparedJaxTest(elsewhere, CONFIGS["plain"], COMPILER)


class Failing(PreparedJaxTest):
    """A test whose computations all raise."""

    def load(self, program):
        """With other functions."""
        jax_backend = JaxBackend(program, COMPILER)
        jax_backend.calls = [(self.fail, (), ())] * len(jax_backend.calls)
        backend = self.module.PythonBackend(jax_backend.calls, jax_backend)
        return self.module.load(jax_backend.program, [backend])

    @staticmethod
    def fail(*_):
        """What they all are."""
        raise ValueError("out of luck")


@pytest.mark.parametrize("config", ["plain", "controlled"])
def test_an_exception_in_a_computation_ends_the_run_and_is_reported(config: str) -> None:
    executor = Failing(litmus("r0=X; Y=r0+1 || X+=2"), CONFIGS[config], COMPILER)
    for _ in range(3):
        with pytest.raises(ValueError, match="out of luck"):
            executor.run(64, Noise(), seed=1)
    executor.close()
