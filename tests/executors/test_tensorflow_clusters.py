"""TensorFlow executor: the clusters read from TensorFlow's dumps are those that it runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, SliceAttrs
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.campaign.cluster_sources import ExecutorClusters, NoClusters, pairs_kept_apart
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC

TESTS = {path.stem: replace(corpus_entry(path).test, clusters=()) for path in LITMUS}
# The graph that is lifted, and runs of just that one.
QUIET = Noise(copies=1, steps=8, shuffle=False, padding=0)


@pytest.fixture(scope="module")
def checked():
    with closing(ExecutorClusters("tf")) as lifter:
        yield lifter


def runs_without_noise(worker: Worker, test: LitmusTest):
    request = messages.Request(
        test=dumps(Entry(test)), config="autocluster", count=8, noise=asdict(QUIET)
    )
    reply = worker.ask(request, 60)
    assert isinstance(reply, messages.Reply), reply
    return messages.histogram(test, reply)


def members(test: LitmusTest) -> list[tuple[str, ...]]:
    return [each.members for each in test.clusters]


def test_outcomes_are_allowed_by_the_clusters_read_from_the_dump() -> None:
    """Members, what waits for what, and the order in which XLA takes them.

    Without the safety checks, where clusters are large: a graph that is one cluster
    has one outcome, and what a wrong SSA order allows is another. Dense ops only:
    others tear outside clusters.
    """
    tests = [test for name, test in TESTS.items() if name.startswith("cl-")]
    tests += [generate("dag", 1, index) for index in range(30)]
    large = 0
    with closing(ExecutorClusters("tf-unchecked")) as lift:
        for test in tests:
            if test.features or any(n.definition.sparse for n in test.graph.effects):
                continue
            clustered = lift(test)
            explorer = Explorer(clustered, RFC)
            for outcome in runs_without_noise(lift.worker, test):
                assert explorer.judge(outcome) is Verdict.ALLOWED, (clustered.clusters, outcome)
            large += any(len(each.members) > 2 for each in clustered.clusters)
    assert large >= 20


@pytest.mark.parametrize(("write", "read"), [("a", "b"), ("b", "a")])
def test_the_order_in_a_cluster_follows_names(checked, write: str, read: str) -> None:
    """X=1 and r=X, then Y=r after both: one cluster, with one outcome."""
    one = Node("one", "Const", attrs=ConstAttrs("int32", (), 1))
    both = (
        Node(write, "AssignVariableOp", inputs=("one",), resources=("X",)),
        Node(read, "ReadVariableOp", resources=("X",)),
        Node("d", "AssignVariableOp", inputs=(read,), resources=("Y",), after=(write,)),
    )
    variables = (Variable("X", "int32", ()), Variable("Y", "int32", ()))
    test = LitmusTest("names", variables, (Graph("main", (one, *both)),), (read,))
    assert members(checked(test)) == [tuple(sorted(("one", write, read, "d"), key="oneabd".find))]
    (outcome,) = runs_without_noise(checked.worker, test)
    assert outcome.plain == {read: int(write == "a"), "X": 1, "Y": int(write == "a")}


def test_a_cloned_constant_is_a_member_only_if_all_its_consumers_are(checked) -> None:
    """The two writes of IRIW use one constant, and do not wait for each other."""
    assert members(checked(TESTS["IRIW"])) == [("w0",), ("r0", "r1"), ("w1",), ("r2", "r3")]


def test_clusters_that_the_format_cannot_express_are_refused_in_one_line(checked) -> None:
    """A clone of lr2 is in the cluster that lr2 waits for."""
    with pytest.raises(NoClusters, match=r"^not valid clusters: .*cycle.*lr2$"):
        checked(TESTS["momentum-nesterov-values"])


def test_ops_that_xla_cannot_compile_are_in_no_cluster(checked) -> None:
    """Slices with strides: TensorFlow would cluster them and fail to compile them."""
    rows = Node("rows", "Const", attrs=ConstAttrs("int32", (1, 2), 1))
    for strides, clustered in ((1, [("rows", "s")]), (2, [])):
        end = 1 if strides == 1 else 2
        test = LitmusTest(
            "slices",
            (Variable("X", "int32", (3, 2)),),
            (
                Graph(
                    "main",
                    (
                        rows,
                        Node(
                            "s",
                            "ResourceStridedSliceAssign",
                            inputs=("rows",),
                            resources=("X",),
                            attrs=SliceAttrs(0, end, strides),
                        ),
                    ),
                ),
            ),
        )
        assert members(checked(test)) == clustered
        assert runs_without_noise(checked.worker, test)


def test_a_configuration_without_clusters_refuses_and_another_environment_starts_anew() -> None:
    with closing(Worker("tf")) as worker:
        text = dumps(Entry(TESTS["SB"]))
        for config, starts in (("plain", 1), ("autocluster", 2)):
            reply = worker.ask(messages.Request(test=text, task="clusters", config=config), 120)
            assert isinstance(reply, messages.Reply), reply
            assert bool(reply.clusters) is (config == "autocluster")
            assert reply.refused == ("" if reply.clusters else messages.NO_CLUSTERS)
            assert worker.starts == starts


def test_an_executor_that_makes_no_clusters_refuses_by_name() -> None:
    with closing(Worker("mutant/canary")) as worker:
        request = messages.Request(test=dumps(Entry(TESTS["SB"])), task="clusters", config="plain")
        reply = worker.ask(request, 60)
    assert isinstance(reply, messages.Reply)
    assert reply.refused == messages.NO_CLUSTERS


def test_a_pair_that_litmusfuzz_joins_and_tensorflow_keeps_apart(checked) -> None:
    """Two writes share a constant, which TensorFlow clones before it clusters."""
    two = corpus_entry(next(path for path in LITMUS if path.stem == "CoWW")).test
    assert pairs_kept_apart(checked(two)) == []
    assert pairs_kept_apart(checked(TESTS["IRIW"])) == [("w0", "w1")]


def test_a_feature_is_refused_in_one_line(checked) -> None:
    with pytest.raises(NoClusters, match=r"^tf: several runs$"):
        checked(TESTS["runs-ordered"])
