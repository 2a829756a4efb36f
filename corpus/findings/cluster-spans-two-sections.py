"""blocked: 2 AssignVariableOp + 2 CriticalSection + ReadVariableOp, only with auto-clustering.

TensorFlow 2.21.0 shows what its memory model forbids.

The memory model (RFC 20190610, resource variables): a graph's operations behave as if
executed one by one, in some order that its edges allow; reads and writes of a whole
variable are atomic.

The test; ops in different columns have no edge between them unless it is said:

  A cluster takes members of two critical sections and waits for both locks, one of which is
  released only after the cluster.
  X: int32[] = 0
  M: mutex

  | chain 0      | chain 1     | chain 2
  | s0: lock M   | s1: lock M  | w1: X = r0   (after r0, w0)
  |   w0: X = 1  |   r0 = X

  observed: the final value of every variable

Seen       _status=blocked X=0, in 106 of 121 executions

Allowed    X=0 is the nearest

Forbidden  the lock of s0 would still happen: nobody holds M; w0 would still happen: all
           that it waits for is done; r0 would still happen: all that it waits for is done;
           the unlock of s0 would still happen: all that it waits for is done; the unlock of
           s1 would still happen: all that it waits for is done

Needs TensorFlow and NumPy only. Racing ops have to meet, so that chance has a part: on busy
cores it takes longer. Ends when a forbidden outcome has shown (exit code 1), or after a
minute, or as many seconds as the first argument says (exit code 0).
"""


import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import numpy as np

os.environ['TF_XLA_FLAGS'] = '--tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1 --tf_xla_enable_lazy_compilation=false'
import tensorflow as tf


raw = tf.raw_ops
COPIES, STEPS, SECONDS = 1, 384, 60
PADDING = 1024  # elements, at most, of work before an op
BLOCKED_S = 2  # what is not done by then waits for ever

# Type, shape and what it holds at first.
VARIABLES = {'X': (tf.int32, [], 0)}

NAMES = ['ended', 'X']
ALLOWED = {('completed', 0), ('completed', 1)}


class Copy:
    """One copy of the test: resources of its own, and its own timing."""

    def __init__(self, number):
        self.number = number
        self.handles = {}
        # Without padding, ops collide; with it, they spread out, which gives rare orders.
        self.padding = random.choice((0, PADDING))

    def resource(self, name):
        if name in VARIABLES:
            dtype, shape, _ = VARIABLES[name]
            return raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"{name}.{self.number}")

        return raw.MutexV2(shared_name=f"{name}.{self.number}")

    def start(self):
        """Set everything to what it holds at first."""
        done = []
        for name, (dtype, shape, value) in VARIABLES.items():
            value = tf.constant(value, dtype, shape)
            if random.random() < 0.5:  # a buffer of the variable's own, not the constant's
                value = raw.Maximum(x=value, y=value)
            done.append(raw.AssignVariableOp(resource=self.resource(name), value=value))
        return tf.group(*done)

    def final(self, name):
        """What a variable holds in the end."""
        return raw.ReadVariableOp(resource=self.resource(name), dtype=VARIABLES[name][0])

    def handle(self, name, begin, *before):
        """One handle for all ops on a variable: XLA takes no variable twice."""
        key = name, begin.graph, begin.name
        if key not in self.handles:
            with tf.control_dependencies([begin]):
                self.handles[key] = self.resource(name)
        return self.handles[key]

    def acquire(self, name, begin, *before):
        """Lock a mutex; it is free again when the last reference to the result is gone."""
        mutex = self.handle(name, begin, *before)
        with tf.control_dependencies([begin, *before]):
            return raw.MutexLock(mutex=mutex)


def main_graph(copy, begin):
    """Graph main of a copy: what is observed, and what else is to be done."""
    c0 = tf.constant(1, tf.int32, [], name="c0")
    s0_lock = copy.acquire("M", begin)
    s1_lock = copy.acquire("M", begin)
    h0 = copy.handle("X", begin, c0, s0_lock)
    with tf.control_dependencies([s0_lock]):
        w0 = raw.AssignVariableOp(resource=h0, value=c0, name="w0")
    h0 = copy.handle("X", begin, s1_lock)
    with tf.control_dependencies([s1_lock]):
        r0 = raw.ReadVariableOp(resource=h0, dtype=tf.int32, name="r0")
    with tf.control_dependencies([w0]):
        s0 = raw.ConsumeMutexLock(mutex_lock=s0_lock, name="s0")
    with tf.control_dependencies([r0]):
        s1 = raw.ConsumeMutexLock(mutex_lock=s1_lock, name="s1")
    h0 = copy.handle("X", begin, r0, w0)
    with tf.control_dependencies([w0]):
        w1 = raw.AssignVariableOp(resource=h0, value=r0, name="w1")
    return [], [s0, s1, w1]


GRAPHS = {'main': main_graph}
# Nodes that XLA may take into clusters.
COMPILED = {'c0', 'w0', 's0', 's1', 'r0', 'w1'}
# Of which graph, and after which runs.
RUNS = {'main': ('main', [])}
# Of which run, and which value of its graph.
OBSERVED = []


def build():
    """A graph of all copies, one after the other; the names of what is run and shown."""
    with tf.Graph().as_default() as graph:
        starts, finals = [], []
        seen, done = {name: [] for name in GRAPHS}, {name: [] for name in GRAPHS}
        for number in range(COPIES):
            copy = Copy(number)
            starts.append(copy.start())
            finals.append([copy.final(name) for name in VARIABLES])
            for name, write in GRAPHS.items():
                with tf.control_dependencies(done[name]):
                    begin = tf.no_op()
                with tf.name_scope(f"c{number}/"):
                    values, rest = write(copy, begin)
                seen[name].append(values)
                done[name] = [begin, *rest]
        run = {
            "start": tf.group(*starts).name,
            "final": [*(tf.stack(each).name for each in zip(*finals)), tf.no_op().name],
        }
        for name in GRAPHS:
            values = [tf.stack(each).name for each in zip(*seen[name])]
            run[f"graph {name}"] = [*values, tf.group(*done[name]).name]
    nodes = graph.as_graph_def()
    for node in nodes.node:
        if not COMPILED.intersection(node.name.split("/")[1:2]):
            node.attr["_XlaCompile"].b = False  # helpers stay out of clusters
    # The order of nodes has a part in the order in which what is ready is taken.
    mixed = random.sample(list(nodes.node), len(nodes.node))
    with tf.Graph().as_default() as graph:
        parts = {"versions": nodes.versions, "library": nodes.library}
        nodes = tf.compat.v1.GraphDef(node=mixed, **parts)
        tf.import_graph_def(nodes, name="")
    return graph, run


def config():
    """Of a session."""
    made = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
    made.device_count["CPU"], made.device_count["GPU"] = 1, 0
    made.session_inter_op_thread_pool.add(num_threads=4)
    rewrites = made.graph_options.rewrite_options
    rewrites.disable_meta_optimizer = True
    made.graph_options.optimizer_options.opt_level = -1
    made.graph_options.optimizer_options.global_jit_level = 2
    return made


def columns(array):
    """Of each copy: its value, if all lanes are alike; else it is torn."""
    array = np.asarray(array, np.float64)
    lanes = array.reshape(len(array), array.shape[1] if array.ndim > 1 else 1, -1)
    whole = (lanes == lanes[..., :1]) & (np.abs(lanes) < 2**62) & (lanes == np.trunc(lanes))
    torn = ~whole.all((1, 2))
    values = np.where(torn[:, None], 0, lanes[..., 0]).astype(np.int64).tolist()
    values = [value[0] if len(value) == 1 else tuple(value) for value in values]
    return ["torn" if bad else value for bad, value in zip(torn, values)]


def execute(session, run, end):
    """Execute the test, each run on a thread of its own, until one is blocked."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
    calls = {name: session.make_callable(run[f"graph {name}"]) for name in GRAPHS}

    def call(graph, earlier):
        for each in earlier:
            each.result()
        return calls[graph]()

    # To close the session cancels what is blocked.
    with ThreadPoolExecutor(len(RUNS)) as pool, closing(session):
        for _ in range(STEPS):
            start()
            runs = {}
            for name, (graph, after) in RUNS.items():
                runs[name] = pool.submit(call, graph, [runs[each] for each in after])
            done, waiting = wait(runs.values(), BLOCKED_S)
            if any(each.exception() for each in done):
                yield ("failed", *(None for _ in NAMES[1:]))
                if waiting or time.monotonic() > end:
                    return
                continue
            values = []
            for name, i in OBSERVED:
                values += [None] if runs[name] in waiting else columns(runs[name].result()[i])
            # What there is in the end is read before anything is cancelled.
            values += [columns(array)[0] for array in final()[:-1]]
            yield ("blocked" if waiting else "completed", *values)
            if waiting or time.monotonic() > end:
                return


def outcomes(end):
    """Outcomes of the copies of a new graph in a new session."""
    graph, run = build()
    with tf.compat.v1.Session(graph=graph, config=config()) as session:
        yield from execute(session, run, end)


def forbidden(outcome):
    """Whether no order of the ops gives it."""
    return outcome not in ALLOWED


def text(outcome):
    """An outcome, for people."""
    shown = zip(NAMES, outcome)
    return " ".join(f"{n}={str(v).replace(' ', '')}" for n, v in shown if v is not None)


def main():
    """Run until a forbidden outcome has shown, or the time is up; then tell."""
    end = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
    counts = Counter()
    while not counts or (time.monotonic() < end and not any(map(forbidden, counts))):
        for outcome in outcomes(end):
            if forbidden(outcome) and outcome not in counts:
                print(f"FORBIDDEN  {text(outcome)}", flush=True)  # an op may yet crash Python
            counts[outcome] += 1
    print(f"TensorFlow {tf.__version__}")
    for outcome, count in counts.most_common():
        verdict = "FORBIDDEN" if forbidden(outcome) else "allowed"
        print(f"{count:8}  {verdict:10}  {text(outcome)}")
    bad = sum(count for outcome, count in counts.items() if forbidden(outcome))
    print(f"forbidden outcomes in {bad} of {counts.total()} executions; none is allowed")
    sys.exit(1 if bad else 0)


main()
