"""TensorFlow executor: the clusters read from TensorFlow's dumps are those that it runs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, SliceAttrs
from litmusfuzz.corpus.outcome import Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads, plain_of
from litmusfuzz.fuzz.campaign.cluster_validation import judge_clusters
from litmusfuzz.fuzz.commands.cluster_sources import ExecutorClusters, pairs_kept_apart
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    configuration as tensorflow_configuration,
)
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.chosen_clusters import with_chosen
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles.explorer import DEFAULT_BUDGET, Explorer
from litmusfuzz.oracles.model import RFC
from litmusfuzz.oracles.translation import Soundness, validate

TESTS = {path.stem: replace(corpus_entry(path).test, clusters=()) for path in LITMUS}
AXIS = "cumsum-along-a-read-axis"
# The graph whose clusters are read, and runs of just that one.
QUIET = Noise(copies=1, steps=8, shuffle=False, padding=0)


@pytest.fixture(scope="module")
def checked():
    with closing(ExecutorClusters("tf")) as ask:
        yield ask


def runs_without_noise(worker: Worker, test: LitmusTest):
    request = messages.Request(
        test=plain_of(test), config="autocluster", count=8, noise=asdict(QUIET)
    )
    reply = worker.ask(request, 60)
    assert isinstance(reply, messages.Reply), reply
    return messages.histogram(test, reply)


def clustered(ask: ExecutorClusters, test: LitmusTest) -> LitmusTest:
    chosen = ask.chosen(test)
    assert not chosen.lost
    return with_chosen(test, chosen)


def members(ask: ExecutorClusters, test: LitmusTest) -> list[tuple[str, ...]]:
    return [each.members for each in clustered(ask, test).clusters]


def test_outcomes_are_allowed_by_the_clusters_read_from_the_dump() -> None:
    """Members, what waits for what, and the order in which XLA takes them.

    Without the safety checks, where clusters are large: a graph that is one cluster
    has one outcome, and what a wrong SSA order allows is another. Dense ops only:
    others tear outside clusters.
    """
    tests = [test for name, test in TESTS.items() if name.startswith("cl-")]
    tests += [generate("dag", 1, index) for index in range(30)]
    large = 0
    with closing(ExecutorClusters("tf-unchecked")) as ask:
        for test in tests:
            if test.features or any(n.definition.sparse for n in test.graph.effects):
                continue
            made = clustered(ask, test)
            explorer = Explorer(made, RFC)
            for outcome in runs_without_noise(ask.worker, test):
                assert explorer.judge(outcome) is Verdict.ALLOWED, (made.clusters, outcome)
            large += any(len(each.members) > 2 for each in made.clusters)
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
    assert members(checked, test) == [tuple(sorted(("one", write, read, "d"), key="oneabd".find))]
    (outcome,) = runs_without_noise(checked.worker, test)
    assert outcome.plain == {read: int(write == "a"), "X": 1, "Y": int(write == "a")}


def test_a_cloned_constant_is_a_member_only_if_all_its_consumers_are(checked) -> None:
    """The two writes of IRIW use one constant, and do not wait for each other."""
    assert members(checked, TESTS["IRIW"]) == [("w0",), ("r0", "r1"), ("w1",), ("r2", "r3")]


def test_a_constant_is_cloned_where_its_cluster_would_wait_for_itself(checked) -> None:
    """A clone of lr2 is in the cluster that lr2 waits for."""
    made = clustered(checked, TESTS["momentum-nesterov-values"])
    assert "lr2_2" in {name for each in made.clusters for name in each.members}
    assert validate(made).verdict is Soundness.SOUND


def test_ops_that_xla_cannot_compile_are_in_no_cluster(checked) -> None:
    """Slices with strides: TensorFlow would cluster them and fail to compile them."""
    rows = Node("rows", "Const", attrs=ConstAttrs("int32", (1, 2), 1))
    for strides, expected in ((1, [("rows", "s")]), (2, [])):
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
        assert members(checked, test) == expected
        assert runs_without_noise(checked.worker, test)


def test_an_operand_that_xla_wants_as_a_constant_may_be_read(checked) -> None:
    """XLA compiles the cluster anew for each axis: the read stays outside of it."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == AXIS)).test
    assert not test.failing
    assert members(checked, test) == [
        ("three", "a"),
        ("matrix", "two", "axis", "sums", "y"),
    ]
    assert {dict(outcome.values)["r"] for outcome in runs_without_noise(checked.worker, test)} <= {
        (0,),
        (3,),
    }


@pytest.mark.parametrize("name", ["function_compiled", "eager_compiled", "jit_compile"])
def test_what_is_compiled_may_read_such_an_operand(name: str) -> None:
    """Whether the axis is assigned in the function as well, or read alone."""
    from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor

    assigned = corpus_entry(next(path for path in LITMUS if path.stem == AXIS)).test
    nodes = tuple(node for node in assigned.graph.nodes if node.name not in ("three", "a"))
    for test in (assigned, replace(assigned, graphs=(Graph("main", nodes),))):
        with closing(TensorFlowExecutor().prepare(test, configuration("tf", name))) as prepared:
            seen = prepared.run(16, Noise(copies=4), 1)
        assert seen
        assert judge(Explorer(test, RFC), seen).forbidden_count == 0


def test_a_configuration_without_clusters_refuses_and_another_environment_starts_anew() -> None:
    with closing(Worker("tf")) as worker:
        plain = plain_of(TESTS["SB"])
        for config, starts in (("plain", 1), ("autocluster", 2)):
            reply = worker.ask(messages.Request(test=plain, task="clusters", config=config), 120)
            assert isinstance(reply, messages.Reply), reply
            assert bool(reply.clusterings) is (config == "autocluster")
            assert reply.refused == ("" if reply.clusterings else messages.NO_CLUSTERS)
            assert worker.starts == starts


def test_an_executor_that_makes_no_clusters_refuses_by_name() -> None:
    with closing(Worker("mutant/canary")) as worker:
        request = messages.Request(test=plain_of(TESTS["SB"]), task="clusters", config="plain")
        reply = worker.ask(request, 60)
    assert isinstance(reply, messages.Reply)
    assert reply.refused == messages.NO_CLUSTERS


def test_a_pair_that_litmusfuzz_joins_and_tensorflow_keeps_apart(checked) -> None:
    """Two writes share a constant, which TensorFlow clones before it clusters."""
    two = corpus_entry(next(path for path in LITMUS if path.stem == "CoWW")).test
    assert pairs_kept_apart(clustered(checked, two)) == []
    assert pairs_kept_apart(clustered(checked, TESTS["IRIW"])) == [("w0", "w1")]


MESSAGE = corpus_entry(LITMUS[0].parents[1] / "findings" / "cluster-around-a-message.yaml").test
FEATURES = {
    "loop": (
        litmus("loop 2 { r0=Y; X=r0 } || Y=1"),
        [("t0",), ("c1_0", "r0in0", "w0", "loop0_next0"), ("c1_1", "w1")],
    ),
    "conditional": (
        litmus("r2=Z; if r2==0 { r0=Y; X=r0 } else { X=2 } || Y=1; Z=1"),
        [("c0_0", "r2", "t0"), ("r0in0", "w0"), ("c2_0", "w1"), ("c1_0", "w2", "w3")],
    ),
    "section": (
        litmus("lock M; r0=Y; X=r0; unlock M; Y=1"),
        [("r0", "w0"), ("c1_0", "w1")],
    ),
    "queue": (
        litmus("r0=Y; Q!r0; X=1 || r1=Q?; Y=r1", queues={"Q": 1}),
        [("r0",), ("c1_0", "w1"), ("w2",)],
    ),
    "two graphs": (litmus("r0=Y; X=r0 ||| Y=1; r1=X"), [("r0", "w0"), ("c1_0", "w1"), ("r1",)]),
    "two runs of a graph": (
        litmus("r0=Y; X=r0 || Y=1", client="a:main; b:main"),
        [("r0", "w0"), ("c1_0", "w1")],
    ),
}


@for_each("name", list(FEATURES))
def test_clusters_are_read_with_every_feature(checked, name: str) -> None:
    test, expected = FEATURES[name]
    assert members(checked, test) == expected
    found = judge_clusters(test, checked.chosen(test), DEFAULT_BUDGET)
    assert found.verdict is Soundness.SOUND


@pytest.mark.parametrize("name", ["loop", "conditional"])
def test_clusters_of_lowered_bodies_are_read(checked, name: str) -> None:
    """Nodes of an inlined function have long names; the clusters of ops are those of v1."""
    test, expected = FEATURES[name]
    config = "compiled=clusters;front_end=functional"
    request = messages.Request(test=plain_of(test), task="clusters", config=config)
    reply = checked.worker.ask(request, 120)
    assert isinstance(reply, messages.Reply), reply
    (found,) = messages.chosen_clusters(reply)
    assert (found.lost, found.problem) == ((), "")
    ops = {node.name for node in test.nodes if node.resources}
    read = {frozenset(ops.intersection(each)) for each in found.clusters}
    assert read - {frozenset()} == {frozenset(ops.intersection(each)) for each in expected} - {
        frozenset()
    }


def test_a_cluster_around_a_message_blocks(checked) -> None:
    """A defect of TensorFlow 2.21: docs/tensorflow-findings.md. The dequeue needs the cluster."""
    found = judge_clusters(MESSAGE, checked.chosen(MESSAGE), DEFAULT_BUDGET)
    assert found.verdict is Soundness.UNSOUND
    assert found.added is not None
    assert found.added.status is Status.BLOCKED
    (outcome,) = runs_without_noise(checked.worker, MESSAGE)
    assert outcome == found.added


WAITING_BRANCH = """\
litmusfuzz: 2
name: branch
variables:
  X: {dtype: float64, shape: [1], init: 1}
queues:
  Q: {dtype: float64, shape: [1], capacity: 1, init: []}
graphs:
  main:
    zero: {op: Const, dtype: float64, shape: [], value: 0}
    one: {op: Const, dtype: float64, shape: [1], value: 1}
    less: {op: Less, inputs: [one, zero]}
    branch:
      op: If
      inputs: [less]
      captures: {k: one}
      results: [y]
      then:
        nodes: {}
        results: [k]
      else:
        nodes:
          q: {op: QueueDequeueV2, resources: [Q]}
          w: {op: ResourceScatterNdAdd, resources: [X], inputs: [k], indices: [0]}
        results: [q]
observe: [branch.y]
"""


WAITING_LOOP = """\
litmusfuzz: 2
name: loop
variables:
  X: {dtype: float64, shape: [1], init: 1}
queues:
  Q: {dtype: float64, shape: [1], capacity: 1, init: []}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    one: {op: Const, dtype: float64, shape: [1], value: 1}
    q: {op: QueueDequeueV2, resources: [Q]}
    w: {op: ResourceScatterNdAdd, resources: [X], inputs: [one], indices: [0]}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      after: [q, w]
      parallel_iterations: 1
      condition:
        nodes:
          end: {op: Const, dtype: int32, shape: [], value: 1}
          less: {op: Less, inputs: [i, end]}
        results: [less]
      body:
        nodes:
          step: {op: Const, dtype: int32, shape: [], value: 1}
          next: {op: AddV2, inputs: [i, step]}
        results: [next]
observe: [loop.i]
"""

WAITING_PREDICATE = """\
litmusfuzz: 2
name: predicate
variables:
  X: {dtype: float64, shape: [1], init: 1}
queues:
  Q: {dtype: float64, shape: [1], capacity: 1, init: []}
graphs:
  main:
    zero: {op: Const, dtype: float64, shape: [], value: 0}
    one: {op: Const, dtype: float64, shape: [1], value: 1}
    less: {op: Less, inputs: [one, zero]}
    q: {op: QueueDequeueV2, resources: [Q]}
    w: {op: ResourceScatterNdAdd, resources: [X], inputs: [one], indices: [0]}
    branch:
      op: If
      inputs: [less]
      captures: {k: one}
      results: [y]
      after: [q, w]
      then:
        nodes: {}
        results: [k]
      else:
        nodes: {}
        results: [k]
observe: [branch.y]
"""


@pytest.mark.parametrize("front_end", ["graph", "functional"])
@pytest.mark.parametrize(
    "text", [WAITING_BRANCH, WAITING_LOOP, WAITING_PREDICATE], ids=["end", "start", "predicate"]
)
def test_what_waits_for_several_ops_is_in_no_cluster(text: str, front_end: str) -> None:
    """Grappler replaces such an Identity of ours by a constant, which XLA may cluster.

    It waits for a branch to end, or is what a loop starts with, or the predicate of a branch. The
    update would then wait for the dequeue beside it, which waits for ever.
    """
    test = loads(text).test
    config = f"constant_folding_optimizer=true;compiled=clusters;front_end={front_end}"
    with closing(Worker("tf")) as worker:
        reply = read_in(worker, test, config, 16)
    assert any("w" in each for each in messages.chosen_clusters(reply)[0].clusters)
    (outcome,) = messages.histogram(test, reply)
    assert Explorer(test, RFC).judge(outcome) is Verdict.ALLOWED, outcome


def test_a_run_has_the_clusters_of_its_copies(checked) -> None:
    test = TESTS["SB"]
    noise = Noise(copies=3, steps=1)
    request = messages.Request(
        test=plain_of(test), config="autocluster", count=3, noise=asdict(noise)
    )
    reply = checked.worker.ask(request, 60)
    assert isinstance(reply, messages.Reply), reply
    assert messages.chosen_clusters(reply) == (checked.chosen(test),)


def test_what_tensorflow_dumps_is_not_on_the_disk(tmp_path, monkeypatch) -> None:
    """A folder's time changes with each file that is made or deleted in it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = tmp_path.stat().st_mtime_ns
    with closing(ExecutorClusters("tf")) as ask:
        assert members(ask, TESTS["SB"])
    assert tmp_path.stat().st_mtime_ns == before


# --- calls, fetches and placeholders; graphs that Python code or a tf.function builds ------------

BEYOND = ("call-control-edges", "call-nested", "call-results-leave-early", "fetches-intermediate")
BEYOND += ("rule-fetches-2", "placeholders-predicate", "placeholders-rows", "handle-carried")
NOT_DESCRIBED = {"handle-carried", "call-nested"}
"""Clusters with an op through a handle, and with nodes of several bodies."""
FLAT = ("SB", "MP", "IRIW", "lost-update", "blog-problem", "runs-diamond", "sb-two-graphs")


def read_in(worker: Worker, test: LitmusTest, config: str, count: int) -> messages.Reply:
    """What a run shows, and the clusters that were read from its graphs."""
    noise = asdict(Noise(copies=2, steps=8))
    request = messages.Request(test=plain_of(test), config=config, count=count, noise=noise)
    reply = worker.ask(request, 240)
    assert isinstance(reply, messages.Reply), reply
    assert not reply.refused
    return reply


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ("autocluster", BEYOND),
        ("function_autocluster", FLAT),
        ("compiled=clusters;front_end=python_v1", FLAT),
        ("compiled=clusters;front_end=python_v2", FLAT),
    ],
)
def test_clusters_that_are_read_are_sound_and_allow_what_is_seen(
    config: str, names: tuple[str, ...]
) -> None:
    """With the edges of the front end."""
    resources, described = 0, 0
    with closing(Worker("tf")) as worker:
        for test in (TESTS[name] for name in names):
            reply = read_in(worker, test, config, 16)
            seen = messages.histogram(test, reply)
            clusterings = messages.chosen_clusters(reply)
            assert clusterings
            made = []
            for chosen in clusterings:
                assert (chosen.problem, chosen.lost) == ("", ())
                judged = judge_clusters(test, chosen, DEFAULT_BUDGET)
                if judged.problem:
                    assert test.name in NOT_DESCRIBED, judged.problem
                    continue
                assert judged.verdict == Soundness.SOUND, judged.reason
                made.append(Explorer(judged.test, RFC))
                by_name = {node.name: node for node in judged.test.nodes}
                members = [by_name[name] for each in chosen.clusters for name in each]
                resources += sum(bool(node.resources) for node in members)
            described += bool(made)
            if made and test.features.isdisjoint({"queues", "fetches"}):
                for outcome in seen:
                    assert any(each.judge(outcome) is Verdict.ALLOWED for each in made), outcome
    assert resources >= 10
    assert described >= len(set(names) - NOT_DESCRIBED)


UNCHECKED = """
import sys
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor
from litmusfuzz.fuzz.executors.tensorflow.configurations import configuration
test = loads(sys.stdin.read()).test
for front_end in ("function", "python_v2"):
    config = configuration("unchecked", compiled="clusters", front_end=front_end)
    (chosen,) = TensorFlowExecutor().prepare(test, config).clusters()
    print(front_end, chosen.problem, chosen.clusters, chosen.lost, chosen.in_functions, sep="|")
"""


def test_clusters_without_the_safety_analysis_are_judged_with_the_edges_of_the_front_end() -> None:
    """Without TensorFlow's safety analysis. A function is one cluster here, in program order."""
    test = TESTS["blog-problem"]
    flag = "--tf_xla_disable_resource_variable_safety_checks_for_debugging"
    environment = dict(tensorflow_configuration("c", flag, compiled="clusters").environment)
    shown = subprocess.run(
        [sys.executable, "-c", UNCHECKED],
        input=dumps(Entry(test)),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in shown.splitlines():
        front_end, problem, clusters, lost, in_functions = line.split("|")
        assert (problem, lost) == ("", "()")
        chosen = ChosenClusters(ast.literal_eval(clusters), (), "", in_functions == "True")
        verdict = judge_clusters(test, chosen, DEFAULT_BUDGET).verdict
        wanted = Soundness.UNSOUND if front_end == "python_v2" else Soundness.SOUND
        assert verdict == wanted, (front_end, clusters)


def test_regions_that_litmusfuzz_compiles_are_validated() -> None:
    with closing(Worker("tf")) as worker:
        reply = read_in(worker, TESTS["SB"], "jit_compile", 16)
        for chosen in messages.chosen_clusters(reply):
            assert judge_clusters(TESTS["SB"], chosen, DEFAULT_BUDGET).verdict == Soundness.SOUND
        assert messages.chosen_clusters(reply)


@pytest.mark.parametrize(
    ("name", "config", "problem"),
    [
        ("uninitialized-race", "autocluster", "variables without a value"),
        ("fetches-put-and-take", "autocluster", "runs that execute different parts"),
        ("h-zero-trips", "function_autocluster", "a body in a graph that Python code"),
        ("call-nested", "function_autocluster", "a body in a graph that Python code"),
    ],
)
def test_what_is_not_read_is_counted_with_its_reason(name: str, config: str, problem: str) -> None:
    with closing(Worker("tf")) as worker:
        (chosen,) = messages.chosen_clusters(read_in(worker, TESTS[name], config, 2))
    assert chosen.problem.startswith(problem)
    judged = judge_clusters(TESTS[name], chosen, DEFAULT_BUDGET)
    assert judged.verdict == f"not validated: {chosen.problem}"
