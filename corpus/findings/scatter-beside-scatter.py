"""torn: ResourceScatterSub + ResourceScatterUpdate, in plain TensorFlow.

TensorFlow 2.21.0 shows what its memory model forbids.

The memory model (RFC 20190610, resource variables): a graph's operations behave as if
executed one by one, in some order that its edges allow; reads and writes of a whole
variable are atomic. Beyond it, TensorFlow's executor on the CPU locks a variable during a
dense update (AssignAdd, AssignSub, ResourceApply*), which is thus one operation.

The test; ops in different columns have no edge between them unless it is said:

  Two sparse updates of the same rows: the final value is a mixture of both orders.
  X: int32[1, 4096] = 0

  | chain 0        | chain 1
  | w0: X[0] -= 1  | w1: X[0] = 1

  observed: the final value of every variable

Seen       X=torn, in 195 of 1024 executions

Allowed    X=-1 is the nearest

Forbidden  torn: "The writes and reads themselves are atomic" (RFC)

Needs TensorFlow and NumPy only. Racing ops have to meet, so that chance has a part: on busy
cores it takes longer. Ends when a forbidden outcome has shown (exit code 1), or after a
minute, or as many seconds as the first argument says (exit code 0).
"""


import random
import sys
import time
from collections import Counter

import numpy as np
import tensorflow as tf


raw = tf.raw_ops
COPIES, STEPS, SECONDS = 32, 96, 60
PADDING = 1024  # elements, at most, of work before an op

# Type, shape and what it holds at first.
VARIABLES = {'X': (tf.int32, [1, 4096], 0)}

NAMES = ['X']
ALLOWED = {(-1,), (0,), (1,)}


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
        """A handle for one op, there early or late, so that ops race on several threads."""
        gate = [begin, *(before if random.random() < 0.5 else ())]
        if self.padding and random.random() < 0.5:
            with tf.control_dependencies(gate):
                size = int(self.padding ** random.random())
                gate = [raw.Digamma(x=tf.constant(1.5, shape=[size]))]
        with tf.control_dependencies(gate):
            return self.resource(name)


def main_graph(copy, begin):
    """Graph main of a copy: what is observed, and what else is to be done."""
    c0 = tf.constant(1, tf.int32, [1, 4096], name="c0")
    c1 = tf.constant(1, tf.int32, [1, 4096], name="c1")
    w0 = raw.ResourceScatterSub(
        resource=copy.handle("X", begin, c0), indices=[0], updates=c0, name="w0"
    )
    w1 = raw.ResourceScatterUpdate(
        resource=copy.handle("X", begin, c1), indices=[0], updates=c1, name="w1"
    )
    return [], [w0, w1]


GRAPHS = {'main': main_graph}


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
    """Execute all copies, again and again: their outcomes."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
    calls = {name: session.make_callable(run[f"graph {name}"]) for name in GRAPHS}
    (race,) = calls.values()
    for _ in range(STEPS):
        start()
        arrays = [*race()[:-1], *final()[:-1]]
        yield from zip(*map(columns, arrays))
        if time.monotonic() > end:
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
