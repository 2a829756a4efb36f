"""Configurations of TensorFlow have the effect they are named after: graphs, logs, threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.textfile import Entry, dumps, loads, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import (
    CONFIGURATIONS,
    OPTIMIZERS,
    PROCESS,
    QUIET,
    Settings,
)
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.judge import judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES

BY_NAME = {config.name: config for config in CONFIGURATIONS}
NOISE = Noise(copies=8, steps=4)
RACY = litmus("X=1; r2=Y; Y=r2+0; X=r2+1+2 || r0=Y; r1=X; Y=r1*2+r1*2", dtype="float32")
"""A test on which most optimizers have an effect."""

SHAPES = [
    corpus_entry(next(path for path in LITMUS if path.stem == name)).test
    for name in ("SB", "MP", "IRIW", "lost-update")
]


def test_names_are_unique_and_plain_is_the_first() -> None:
    assert len(BY_NAME) == len(CONFIGURATIONS)
    assert CONFIGURATIONS[0].name == "plain"
    assert Settings.of(CONFIGURATIONS[0]) == Settings()


def test_settings_of_the_process_have_a_worker_process_of_their_own() -> None:
    """Otherwise the first configuration of a worker would decide for all later ones."""
    by_environment: dict[object, set[str]] = {}
    for config in CONFIGURATIONS:
        by_environment.setdefault(config.environment, set()).add(Settings.of(config).of_the_process)
    assert all(len(fixed) == 1 for fixed in by_environment.values())
    assert dict(BY_NAME["global_pool_16"].environment)[PROCESS] == "global=16"


@pytest.fixture(scope="module")
def worker():
    started = Worker("tf")
    yield started
    started.close()


def execute(worker: Worker, test, name: str, count: int = 64):
    request = messages.Request(
        test=plain_of(test), config=name, count=count, noise=asdict(NOISE), seed=1
    )
    reply = worker.ask(request, 120)
    assert isinstance(reply, messages.Reply), reply
    assert not reply.refused
    return messages.histogram(test, reply)


def of_one_process() -> list[str]:
    """All configurations of the environment of `plain`, and one of each other environment."""
    shared = [config.name for config in CONFIGURATIONS if config.environment == QUIET]
    return [*shared, "autocluster_lazy", "intra_op_8", "global_pool_16", "run_handler_pool"]


@pytest.mark.parametrize("name", of_one_process())
def test_each_configuration_keeps_its_guarantee(worker: Worker, name: str) -> None:
    """On dense ops: sparse ops tear in each configuration (semantics.md, 7)."""
    model = GUARANTEES[configuration("tf", name).guarantees]
    for test in SHAPES[:2] if Settings.of(BY_NAME[name]).compiled else SHAPES:
        seen = execute(worker, test, name)
        assert not judge(Explorer(test, model), seen).forbidden


def test_a_function_orders_ops_on_one_variable(worker: Worker) -> None:
    """X=1; r0=Y; Y=1; r1=X: with the edges that tracing adds there is one outcome."""
    sb = SHAPES[0]
    (outcome,) = execute(worker, sb, "function", 512)
    assert outcome.plain == {"r0": 0, "r1": 1, "X": 1, "Y": 1}


@pytest.mark.parametrize(
    "stem", ["cl-sb", "cl-iriw", "cl-blog-legal", "cl-ssa-read-first", "cl-ssa-write-first"]
)
def test_a_compiled_function_is_the_cluster(worker: Worker, stem: str) -> None:
    """Other ops see only its snapshot and write-back, in the SSA order of the file."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
    seen = execute(worker, test, "jit_compile", 256)
    assert not judge(Explorer(test, GUARANTEES["rfc"]), seen).forbidden


def test_ops_that_xla_does_not_compile_are_refused_by_name(worker: Worker) -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "cl-rows-slice")).test
    request = messages.Request(
        test=plain_of(test), config="jit_compile", count=1, noise=asdict(NOISE)
    )
    reply = worker.ask(request, 120)
    assert isinstance(reply, messages.Reply)
    assert "ResourceStridedSliceAssign in a cluster" in reply.refused


SCRIPT = """
import sys
import numpy as np
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.tensorflow import lowering, session
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, QUIET, Settings
test = loads(sys.stdin.read()).test
for config in CONFIGURATIONS:
    settings = Settings.of(config)
    if config.name.startswith(("plain", "grappler")):
        print("===", config.name, file=sys.stderr, flush=True)
        noise = Noise(copies=2, shuffle=False)
        template = lowering.lower(test)
        built = lowering.build(template, noise, np.random.default_rng(0))
        live = session.LiveSession(template, built, settings, 2)
        live.step()
        live.close()
"""


def test_each_optimizer_runs_alone() -> None:
    """TensorFlow logs each optimizer that it runs."""
    logged = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=dumps(Entry(RACY)),
        env=os.environ | {"TF_CPP_VMODULE": "meta_optimizer=1", "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    ran: dict[str, set[str]] = {}
    for line in logged.splitlines():
        if line.startswith("=== "):
            found = ran.setdefault(line[4:], set())
        elif match := re.search(r"\] (\w+): Graph size after", line):
            found.add(match[1])
    assert ran["plain"] == set()
    alone = {name: ran[f"grappler_{name}"] for name in OPTIMIZERS}
    assert alone == {
        "pruning": {"model_pruner"},
        "constant_folding": {"constant_folding"},
        "arithmetic": {"arithmetic_optimizer"},
        "elimination": {"common_subgraph_elimination", "arithmetic_optimizer"},
        "remapping": {"remapper"},
        "loop": {"loop_optimizer"},
        "dependency": {"dependency_optimizer"},
        "memory": {"memory_optimizer"},
    }
    assert set().union(*alone.values()) <= ran["grappler"]
    assert set().union(*alone.values()) <= ran["grappler_aggressive"]


def test_all_optimizers_are_those_of_a_users_session() -> None:
    """In each configuration with all optimizers no option of the graph differs from the default."""
    from tensorflow.core.protobuf import config_pb2

    from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config

    having_all = [each for each in CONFIGURATIONS if Settings.of(each).rewrites == "all"]
    assert len(having_all) == 6
    for config in having_all:
        settings = Settings.of(config)
        expected = config_pb2.ConfigProto().graph_options
        expected.rewrite_options.min_graph_nodes = -1  # graphs of any size
        if settings.compiled == "clusters":
            expected.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.ON_2
        assert session_config(settings).graph_options == expected


ITERATIONS = """
import sys
import tensorflow as tf
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config
with tf.Graph().as_default() as graph:
    fed = value = tf.compat.v1.placeholder(tf.float32, [])
    for _ in range(8):
        value = tf.sin(value) * fed
for name in sys.argv[1:]:
    config = session_config(Settings.of(configuration("tf", name))) if name else None
    print("===", name, file=sys.stderr, flush=True)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(value, {fed: 1.0})
"""


def test_grappler_runs_as_often_as_the_configuration_says() -> None:
    """TensorFlow logs each optimizer that it runs. A session without options has the default."""
    once = {"rewrites=all;rewrite_iterations=1": 1, "rewrites=all;rewrite_iterations=3": 3}
    names = ["", "grappler", "grappler_aggressive", "grappler_arithmetic", "plain", *once]
    logged = subprocess.run(
        [sys.executable, "-c", ITERATIONS, *names],
        env=os.environ | {"TF_CPP_VMODULE": "meta_optimizer=1", "TF_CPP_MIN_LOG_LEVEL": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    ran: dict[str, Counter[str]] = {}
    for line in logged.splitlines():
        if line.startswith("=== "):
            name = line[4:]
            ran[name] = Counter()
        elif match := re.search(r"\] +(\w+)(: Graph size after| did nothing)", line):
            ran[name][match[1]] += 1
    assert ran["grappler"] == ran[""]
    iterations = {name: found["arithmetic_optimizer"] for name, found in ran.items()}
    default = Settings().rewrite_iterations
    assert iterations == {**dict.fromkeys(names, default), "plain": 0, **once}


LOOKUP = """
litmusfuzz: 2
name: lookup
variables:
  X: {dtype: float32, shape: [1], init: 0}
  Y: {dtype: int32, shape: [1], init: 0}
graphs:
  main:
    one: {op: Const, dtype: float32, shape: [1], value: 1}
    w: {op: AssignVariableOp, resources: [X], inputs: [one]}
    zero: {op: Const, dtype: int32, shape: [1], value: 0}
    rows: {op: ReadVariableOp, resources: [Y]}
    number: {op: Unique, inputs: [rows], result: idx, out_idx: int32}
    distinct: {op: Unique, inputs: [rows], result: y, out_idx: int32}
    gathered: {op: ResourceGather, resources: [X], inputs: [distinct], after: [w]}
    same: {op: AddV2, inputs: [number, zero]}
    sum: {op: SparseSegmentSum, inputs: [gathered, same, zero], sparse_gradient: false}
    r: {op: EnsureShape, inputs: [sum], shape: [1]}
observe: [r]
"""
"""The cause lookup-loses-its-edges, but that the numbers of the rows have 0 added to them."""


def test_a_second_iteration_loses_what_the_first_keeps(worker: Worker) -> None:
    """The first takes the addition away, so that the pattern of a lookup matches in the second.

    No race is in it: the assignment is executed in a copy, or not, by how its graph is built.
    """
    test = loads(LOOKUP, "lookup").test
    explorer = Explorer(test, GUARANTEES["executor"])
    assert len(explorer.allowed_outcomes().witnesses) == 1
    lost = {}
    for name in ("plain", "rewrites=all;rewrite_iterations=1", "grappler"):
        forbidden = judge(explorer, execute(worker, test, name)).forbidden
        lost[name] = {tuple(sorted(outcome.plain.items())) for outcome, _ in forbidden}
    assert lost == {
        "plain": set(),
        "rewrites=all;rewrite_iterations=1": set(),
        "grappler": {(("X", 0.0), ("Y", 0), ("r", 0.0))},
    }


REWRITTEN = """
litmusfuzz: 2
name: lookup
variables:
  X: {{dtype: int32, shape: [2], init: 0}}
  Y: {{dtype: int32, shape: [2], init: 0}}
graphs:
  main:
    one: {{op: Const, dtype: int32, shape: [2], value: 1}}
    zero: {{op: Const, dtype: int32, shape: [], value: 0}}
    ids: {{op: Const, dtype: int32, shape: [3], value: 1}}
    segments: {{op: Const, dtype: int32, shape: [3], value: 1}}
    {first}
    number: {{op: Unique, inputs: [ids]{before_unique}, result: idx, out_idx: int32}}
    distinct: {{op: Unique, inputs: [ids]{before_unique}, result: y, out_idx: int32}}
    table: {{op: ReadVariableOp, resources: [X]}}
    gathered: {{{gather}{before_gather}}}
    {last}
    same: {{op: Maximum, inputs: [{same}, zero]}}
    sum: {{op: SparseSegmentSum, inputs: [gathered, {sums}], sparse_gradient: false}}
    r: {{op: EnsureShape, inputs: [sum], shape: [2]}}
observe: [r]
"""
"""A lookup with a control edge from or to a write, and a Maximum that changes no value."""
FROM_VARIABLE = "op: ResourceGather, resources: [X], inputs: [distinct]"
FROM_VALUE = "op: GatherV2, inputs: [table, distinct, zero], batch_dims: 0"


@pytest.mark.parametrize(
    ("gather", "writes", "edge"),
    [
        (FROM_VARIABLE, "AssignVariableOp", "before_gather"),
        (FROM_VALUE, "AssignVariableOp", "before_gather"),
        (FROM_VARIABLE, "AssignVariableOp", "before_unique"),
        (FROM_VARIABLE, "AssignVariableOp", "after_gather"),
        (FROM_VARIABLE, "AssignSubVariableOp", "after_gather"),
    ],
)
def test_all_edges_of_a_lookup_are_lost_by_one_rewriting(
    worker: Worker, gather: str, writes: str, edge: str
) -> None:
    """With an op between Unique and the sum the pattern does not match, and no edge is lost.

    The same op on the sum's segments leaves the pattern alone. Where the edge leaves the gather,
    the forbidden outcome needs an order that about a third of the executions have: 64 miss it with
    (2/3)**64 < 1e-11.
    """
    places = dict.fromkeys(("before_unique", "before_gather", "first", "last"), "")
    if edge == "after_gather":
        places["last"] = f"w: {{op: {writes}, resources: [X], inputs: [one], after: [gathered]}}"
    else:
        places["first"] = f"w: {{op: {writes}, resources: [Y], inputs: [one]}}"
        places[edge] = ", after: [w]"
    lost = {}
    for hidden, same, sums in (
        (False, "segments", "number, same"),
        (True, "number", "same, segments"),
    ):
        text = REWRITTEN.format(gather=gather, same=same, sums=sums, **places)
        test = loads(text, "lookup").test
        explorer = Explorer(test, GUARANTEES["executor"])
        reply = execute(worker, test, "arithmetic_optimizer=true;control=ops")
        judged = judge(explorer, reply)
        assert judged.executions >= 64
        lost[hidden] = judged.forbidden_count > 0
    assert lost == {False: True, True: False}


def test_optimizers_fuse_the_model_code_and_leave_the_test_alone() -> None:
    """Each layer of the model code becomes one op; all ops of the test remain."""
    from tensorflow.core.protobuf import config_pb2

    from litmusfuzz.fuzz.executors.tensorflow import lowering, model_code, session

    ops = {}
    for name in ("model_code", "model_code_grappler"):
        rng = np.random.default_rng(0)
        template = lowering.lower(RACY)
        built = model_code.surrounded(lowering.build(template, NOISE, rng), RACY, rng)
        live = session.LiveSession(template, built, Settings.of(BY_NAME[name]), NOISE.copies)
        live.initialize()
        # Optimizers remove nodes that no fetch needs, reads included.
        fetched = [shown.tensor for shown in built.units[0].observed]
        options = config_pb2.RunOptions(output_partition_graphs=True)
        metadata = config_pb2.RunMetadata()
        run = session.callable_of(live.session, fetched, "race", options=options)
        run(run_metadata=metadata)
        del run  # before its session
        live.close()
        ops[name] = Counter(node.op for node in metadata.partition_graphs[0].node)
    assert ops["model_code"]["BiasAdd"] > 0
    assert ops["model_code_grappler"]["BiasAdd"] == 0
    assert any("FusedMatMul" in op for op in ops["model_code_grappler"])
    for op in ("ReadVariableOp", "AssignVariableOp"):
        assert ops["model_code_grappler"][op] == ops["model_code"][op]


def pools() -> Counter[str]:
    """Number of threads of each name in this process."""
    return Counter(
        (task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()
    )


@pytest.mark.parametrize(
    ("name", "pool", "threads"),
    [
        ("plain", "tf_Compute0", 4),
        ("inter_op_1", "tf_Compute0", 1),
        ("inter_op_16", "tf_Compute0", 16),
        ("per_session_threads", "tf_Compute", 4),
        ("second_pool", "tf_Compute1", 4),
        # Python's own thread; the session's pool is idle.
        ("caller_thread", "python", 0),
        ("single_threaded", "python", 0),
    ],
)
def test_ops_run_on_the_threads_that_the_configuration_names(
    name: str, pool: str, threads: int
) -> None:
    """A Python op reports its thread."""
    import tensorflow as tf

    from litmusfuzz.fuzz.executors.tensorflow.session import callable_of
    from litmusfuzz.fuzz.executors.tensorflow.session_options import run_options, session_config

    def thread() -> np.int64:
        return np.int64(threading.get_native_id())

    settings = Settings.of(BY_NAME[name])
    graph = tf.Graph()
    with graph.as_default():
        ops = [tf.numpy_function(thread, [], tf.int64) for _ in range(8)]
    # A process's first session starts threads that no pool has.
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(ops)
    before = pools()
    with tf.compat.v1.Session(graph=graph, config=session_config(settings)) as session:
        run = callable_of(session, [op.name for op in ops], options=run_options(settings))
        ran_on = {Path(f"/proc/self/task/{each}/comm").read_text().strip() for each in run()}
        del run
        assert (pools() - before)[pool] == threads
    assert ran_on == {pool}


def test_threads_spin_where_the_configuration_says_so() -> None:
    """What the first session fixes for its process keeps the two apart."""
    from litmusfuzz.fuzz.executors.tensorflow.session_options import session_config

    for name in ("", "pool=global;", "intra_op_threads=4;", "pool=second;"):
        sleeping = configuration("tf", name.rstrip(";") or None)
        spinning = configuration("tf", f"{name}spinning=true")
        for config, sleeps in ((sleeping, True), (spinning, False)):
            made = session_config(Settings.of(config))
            assert made.experimental.disable_thread_spinning == sleeps
        apart = name in ("pool=global;", "intra_op_threads=4;")
        assert (sleeping.environment != spinning.environment) == apart


UNREAD = """
litmusfuzz: 2
name: unread
variables: {X: {dtype: int32, initialized: false}}
graphs:
  main:
    zero: {op: Const, dtype: int32, value: 0}
    loop:
      op: While
      inputs: [zero, zero]
      carried: [i, v]
      condition:
        nodes:
          limit: {op: Const, dtype: int32, value: 1}
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          r: {op: ReadVariableOp, resources: [X]}
          step: {op: Const, dtype: int32, value: 1}
          next: {op: AddV2, inputs: [i, step], after: [r]}
        results: [next, RESULT]
observe: [loop.v]
"""


RETURNED = """
litmusfuzz: 2
name: returned
variables: {X: {dtype: int32, initialized: false}}
graphs:
  main:
    never: {op: Const, dtype: bool, value: 0}
    branch:
      op: If
      inputs: [never]
      results: [y]
      then:
        nodes:
          one: {op: Const, dtype: int32, value: 1}
        results: [one]
      else:
        nodes:
          r: {op: ReadVariableOp, resources: [X]}
        results: [r]
observe: []
"""


def test_an_optimizer_leaves_out_a_failing_read_that_nothing_takes() -> None:
    """It has no effect for Grappler: such a test has other outcomes there. Any other read fails."""
    import tensorflow as tf

    from litmusfuzz.fuzz.executors.tensorflow import TensorFlowExecutor

    test = loads(UNREAD.replace("RESULT", "v"), "unread").test
    for name in ("grappler_dependency", "grappler", "function_grappler"):
        refused = rf"value nothing takes \(r\) in configuration {name}$"
        with pytest.raises(Refused, match=refused):
            TensorFlowExecutor().prepare(test, configuration("tf", name))
        returned = loads(RETURNED, "returned").test  # what nothing takes from the branch
        with pytest.raises(Refused, match=refused):
            TensorFlowExecutor().prepare(returned, configuration("tf", name))
    observed = loads(RETURNED.replace("observe: []", "observe: [branch.y]"), "observed").test
    taken = loads(UNREAD.replace("RESULT", "r"), "unread").test
    for each, name in (
        (observed, "grappler"),
        (observed, "function_grappler"),
        (test, "plain"),
        (test, "grappler_arithmetic"),
        (taken, "grappler_dependency"),
    ):
        with closing(TensorFlowExecutor().prepare(each, configuration("tf", name))) as prepared:
            (outcome,) = prepared.run(4, NOISE, 1)
        assert outcome.status is Status.FAILED
    with tf.Graph().as_default() as graph:
        handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[])
        with tf.control_dependencies([tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)]):
            end = tf.no_op()
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(end)  # does not fail
