"""Requirements on every executor; TensorFlow keeps its guarantee on dense ops."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import pytest
from helpers import LITMUS, corpus_entry, differentiated, for_each, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import FEATURES, Cluster
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration, executor_class, names
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.passes.placement import place
from litmusfuzz.oracles.model import GUARANTEES, RFC, SEQUENTIAL
from litmusfuzz.oracles.reference import allowed_outcomes

SB, MP, IRIW = (
    corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    for name in ("SB", "MP", "IRIW")
)
# What the executor cannot run yet it refuses by name; that is tested below.
# semantics.md, section 7: sparse ops tear there, and that is reported, not expected away.
DENSE = [
    path
    for path in LITMUS
    if not corpus_entry(path).test.features
    and not any(n.definition.sparse for n in corpus_entry(path).test.graph.effects)
]


@pytest.fixture(scope="module")
def tensorflow():
    """One process for all tests of this file."""
    with closing(Worker("tf")) as worker:
        yield worker


def execute(worker: Worker, test, count: int, config: str | None = None, seed: int = 0):
    request = messages.Request(
        test=plain_of(test),
        config=configuration(worker.executor, config).name,
        count=count,
        noise=asdict(Noise()),
        seed=seed,
    )
    reply = worker.ask(request, 120)
    assert isinstance(reply, messages.Reply), reply
    assert not reply.refused
    return messages.histogram(test, reply)


MUTANTS = [name for name in names() if name.startswith("mutant/")]
SOUND = [name for name in names() if name not in MUTANTS]
MUTANTS.remove("mutant/opencl-contraction")  # refused by the check of its kernels


@pytest.mark.parametrize("name", [*SOUND, *share_of(MUTANTS, 3)])
def test_an_executor_meets_all_requirements(name: str) -> None:
    """All of it in one test, as a framework takes seconds to start, and half a gigabyte."""
    with closing(Worker(name)) as worker:
        if name in MUTANTS and (why := unavailable(worker, name)):
            pytest.skip(why)  # of a device that this machine, or this build, does not have
        versions_and_configurations_are_reported(worker, name)
        if configuration(name).guarantees == SEQUENTIAL.name:
            it_executes_a_program_at_least_once(worker, name)
        else:
            for count in (1, 33, 500):
                it_executes_count_times_and_at_most_one_step_more(worker, count)
        a_test_with_a_single_outcome_always_shows_it(worker, name)
        it_runs_the_features_of_its_support_and_refuses_the_others_by_name(worker, name)


def unavailable(worker: Worker, name: str) -> str:
    """Why an executor cannot run here; "" if it can."""
    reply = worker.ask(messages.Request(config=configuration(name).name), 120)
    assert isinstance(reply, messages.Reply), reply
    return reply.unavailable


def versions_and_configurations_are_reported(worker: Worker, name: str) -> None:
    reply = worker.ask(messages.Request(), 120)
    assert isinstance(reply, messages.Reply)
    assert reply.versions["python"]
    assert configuration(name).guarantees in GUARANTEES


def it_executes_a_program_at_least_once(worker: Worker, name: str) -> None:
    """It has a single outcome, however often it is executed; of a mutant, another now and then."""
    seen = execute(worker, SB, 500)
    assert 1 <= sum(seen.values()) <= 500
    assert len(seen) == 1 or name in MUTANTS


def it_executes_count_times_and_at_most_one_step_more(worker: Worker, count: int) -> None:
    seen = execute(worker, SB, count)
    assert count <= sum(seen.values()) < count + Noise().copies
    for outcome in seen:
        assert tuple(key for key, _ in outcome.values) == SB.names


def a_test_with_a_single_outcome_always_shows_it(worker: Worker, name: str) -> None:
    """Unless it is a mutant that this shape kills."""
    chain = litmus("X=3; r0=X; Y=r0+4; r1=Y; X=r1*2", dtype="float32")
    seen = execute(worker, chain, 200)
    if not name.startswith("mutant/"):
        (outcome,) = seen
        assert outcome.plain == {"r0": 3, "r1": 7, "X": 14, "Y": 7}


@for_each("path", DENSE, every=5)
@pytest.mark.parametrize("config", ["plain", "grappler", "single_threaded"])
def test_tensorflow_keeps_its_guarantee_on_dense_ops(tensorflow, path, config: str) -> None:
    """Every outcome is allowed under `executor`, which the graph executor guarantees."""
    entry = corpus_entry(path)
    model = GUARANTEES[configuration("tf", config).guarantees]
    seen = execute(tensorflow, entry.test, 200, config)
    judgement = judge(allowed_outcomes(entry.test, model), seen)
    assert not judgement.forbidden


@pytest.mark.parametrize("test", [SB, MP, IRIW], ids=lambda test: test.name)
def test_tensorflow_shows_everything_that_is_allowed(tensorflow, test) -> None:
    """A run that is sequential proves nothing.

    The rarest outcome of IRIW shows in 1 of 100 executions, of which there are
    20,000 in seven sessions; it was never below 1 in 1,000 in any of them, so
    that all are missed with probability below exp(-20).
    """
    allowed = allowed_outcomes(test, RFC)
    seen = execute(tensorflow, test, 20_000)
    assert set(seen) == set(allowed.witnesses)


WITH = {
    "critical sections": litmus("lock M; X=1; unlock M"),
    "queues": litmus("Q!1; X=1 || r0=Q?", queues={"Q": 1}),
    "clusters": replace(litmus("X=1"), clusters=(Cluster("k", ("w0",)),)),
    "transfers": place(litmus("X=1; r0=Y"), ("cpu:0", "cpu:1")),
    "fetches": litmus("X=1 || r0=X", client="a:main fetch r0"),
    "gradients": differentiated(litmus("r0=X; X=r0*2", dtype="float32")),
} | {
    feature: corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
    for feature, stem in (
        ("several runs", "runs-ordered"),
        ("conditionals", "h-if-predicate-race"),
        ("loops", "h-loop-increments"),
        ("calls", "call-control-edges"),
        ("placeholders", "placeholders-rows"),
        ("handles", "handle-two-of-one-variable"),
        ("uninitialized variables", "state-beside-a-write"),
        ("computed indices", "indexed-gather"),
        ("accumulators", "accumulator-race"),
    )
}


def it_runs_the_features_of_its_support_and_refuses_the_others_by_name(
    worker: Worker, name: str
) -> None:
    declared = executor_class(name).support.features
    for feature in FEATURES:
        assert WITH[feature].features == {feature}
        request = messages.Request(
            test=plain_of(WITH[feature]),
            config=configuration(name).name,
            count=1,
            noise=asdict(Noise()),
        )
        reply = worker.ask(request, 120)
        assert isinstance(reply, messages.Reply), reply
        if feature in declared:
            assert reply.rows
        else:
            assert reply.refused == feature
