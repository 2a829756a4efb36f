"""wrong value: 2 AssignVariableOp + ReadVariableOp + Call, only with all optimizers, in a
tf.function.

TensorFlow 2.21.0 shows what its memory model forbids.

The memory model (RFC 20190610, resource variables): a graph's operations behave as if
executed one by one, in some order that its edges allow; reads and writes of a whole
variable are atomic. Beyond it, TensorFlow's executor on the CPU locks a variable during a
dense update (AssignAdd, AssignSub, ResourceApply*), which is thus one operation. In a
tf.function, automatic control dependencies order ops on one handle as the code has them,
two reads excepted, and what a function, branch or iteration returns comes after all its
effects.

The test; ops in different columns have no edge between them unless it is said:

  A write in a function's body comes before a read that the call is given and does not use.
  X: int32[] = 0

  | chain 0    | chain 1  | chain 2
  | w0: X = 1  | r0 = X   | call0: call(a0 = r0)
                          |   does
                          |     w1: X = 2

  observed: reads r0 and the final value of every variable

Seen       r0=2 X=2, in 761 of 1024 executions

Allowed    r0=1 X=2 is the nearest

Forbidden  rule: program order per resource

Needs TensorFlow and NumPy only. Racing ops have to meet, so that chance has a part: on busy
cores it takes longer. Ends when a forbidden outcome has shown (exit code 1), or after a
minute, or as many seconds as the first argument says (exit code 0).
"""


import random
import sys
import time
from collections import Counter, namedtuple
from contextlib import nullcontext
from functools import partial

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.ops import handle_data_util


raw = tf.raw_ops
COPIES, STEPS, SECONDS = 32, 96, 60
PADDING = 1024  # elements, at most, of work before an op

# Type, shape and what it holds at first.
VARIABLES = {'X': (tf.int32, [], 0)}

NAMES = ['r0', 'X']
ALLOWED = {(1, 2)}


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


Node = namedtuple("Node", "execute makes takes uses further alias")


class Values(dict):
    """Values by name, what a node with bodies returned by ^NAME, handles of variables by &NAME."""

    def __init__(self, handle, held=()):
        super().__init__(held)
        self.handle = handle

    def __missing__(self, key):
        return self.handle(key.removeprefix("&"))

    def inside(self, captures):
        """What a body has."""
        return Values(self.handle, {inner: self[outer] for inner, outer in captures.items()})

    def ended(self, name):
        """What to wait for, to come after a node."""
        found = self.get(f"^{name}", [self.get(name)])
        return [each for each in found if each is not None]


class Given:
    """The handles that a function gets or captures, by the names of what it calls them."""

    def __init__(self, handles, padding=0):
        self.handles, self.padding = handles, padding

    def __call__(self, name):
        return self.handles[name]

    def values(self):
        """Where the nodes of the function put their values."""
        return Values(self, {k: each for k, each in self.handles.items() if k[0] == "&"})


def named(function):
    """The name of a node, by its function."""
    return RENAMED.get(function.__name__, function.__name__)


def typed(handle, name):
    """A handle of a variable, with what shape inference needs to know."""
    dtype, shape, _ = VARIABLES[name]
    known = handle_data_util.create_handle_data(tf.TensorShape(shape), dtype)
    handle_data_util.set_handle_data(handle, known)
    return handle


def turn(v, after, takes=None):
    """The edges into a node. Some work before it, or another thread's turn, lets ops race."""
    if tf.executing_eagerly():
        if takes is not None and random.random() < 0.3:
            time.sleep(0)
        return nullcontext()
    waits = [each for name in after for each in v.ended(name)]
    if takes is not None and v.handle.padding and random.random() < 0.5:
        size = int(v.handle.padding ** random.random())
        with tf.control_dependencies([v[name] for name in takes]):
            waits.append(raw.Digamma(x=tf.constant(1.5, shape=[size])))
    return tf.control_dependencies(waits)


def keep(value):
    """A function leaves out a read that nothing takes a value from."""
    if not tf.executing_eagerly():
        tf.identity(value)
    return value


def run(body, v):
    """Execute the nodes of a body, or add them to what is built: what it returns."""
    nodes, results = body
    for node in nodes:
        node(v)
    if tf.executing_eagerly():
        return [v[name] for name in results]
    done = [each for node in nodes for each in v.ended(named(node))]
    with tf.control_dependencies(done if WAITS else []):
        found = [tf.identity(v[name]) for name in results]
    for name, value in zip(results, found):
        if name in SHAPES:
            value.set_shape(SHAPES[name])
    return found


def listed(returned):
    """What tf.cond and tf.while_loop return, which unpack a list of one."""
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def lane(value):
    """A predicate: the first lane of a value."""
    return tf.reshape(value, [-1])[0] if value.shape.rank else value


CALLED = {}  # functions that are called eagerly


def call(v, name, after, captures, body, results):
    """A call of a tf.function. An edge from it follows stateful ops: a token waits for all."""

    def function(*given):
        inside = Values(v.handle, dict(zip(captures, given)))
        found = run(body, inside)
        with tf.control_dependencies(
            [each for node in body[0] for each in inside.ended(named(node))]
        ):
            return [*found, tf.constant(False)]

    made = tf.function(function, autograph=False)
    if tf.executing_eagerly():
        made = CALLED.setdefault(name, made)
    with turn(v, after):
        *found, token = made(*(v[outer] for outer in captures.values()))
        v.update(zip(results, found))
        v[f"^{name}"] = [tf.identity(token), *found]


def c0(v):
    v["c0"] = tf.constant(1, tf.int32, [])


def w0(v):
    with turn(v, [], ['c0']):
        v["w0"] = raw.AssignVariableOp(resource=v["&X"], value=v["c0"])


def r0(v):
    with turn(v, [], []):
        v["r0"] = keep(raw.ReadVariableOp(resource=v["&X"], dtype=tf.int32))


def c1(v):
    v["c1"] = tf.constant(2, tf.int32, [])


def w1(v):
    with turn(v, [], ['c1']):
        v["w1"] = raw.AssignVariableOp(resource=v["&X"], value=v["c1"])


def call0(v):
    call(v, "call0", [], {'a0': 'r0'}, ([c1, w1], []), [])


# Of each graph its nodes: what they make, which values they take, which variables
# they use, the variable of a further handle, and whether it is an Identity of one.
PROGRAMS = {
    'main': [
        Node(c0, ['c0'], [], [], None, False),
        Node(w0, [], ['c0'], ['X'], None, False),
        Node(r0, ['r0'], [], ['X'], None, False),
        Node(call0, [], ['r0'], ['X'], None, False),
    ],
}
RENAMED = {}
FED = {'main': {}}
SHOWN = {'main': ['r0']}
SHAPES = {}
WAITS = False  # TensorFlow leaves out what no result of a body waits for
JIT_COMPILE = None
LOWERED = True  # inlined, and not executed by its kernel
ONE_HANDLE = False


TRACES = {}  # of the graph that is built, by the name of the test's graph


def trace(name):
    """A graph of the test as a tf.function; which variables its first arguments are."""
    nodes, fed, shown = PROGRAMS[name], FED[name], SHOWN[name]
    handles = {each: each for node in nodes for each in node.uses}
    for node in nodes:  # a further handle is an argument, or an Identity of the first
        if node.further and not ONE_HANDLE and random.random() < 0.5:
            handles[f"&{node.makes[0]}"] = node.further

    def function(*given):
        handed = {key: typed(*each) for key, *each in zip(handles, given, handles.values())}
        padding = 0 if JIT_COMPILE else PADDING * (len(TRACES[name]) % 2)
        v = Given(handed, padding).values()
        v.update(zip(fed, given[len(handles) :]))
        for node in nodes:
            node.execute(v)
        return [tf.identity(v[each]) for each in shown]

    specs = [tf.TensorSpec([], tf.resource)] * len(handles)
    specs += [tf.TensorSpec(shape, dtype) for dtype, shape in fed.values()]
    made = tf.function(function, autograph=False, jit_compile=JIT_COMPILE)
    return made.get_concrete_function(*specs), list(handles.values())


def write(name, copy, begin):
    """Call a graph's function: what is shown, and what else is to be done."""
    made = TRACES.setdefault(name, [])
    if len(made) < (1 if JIT_COMPILE else 3):
        made.append(trace(name))
    function, variables = random.choice(made)
    given = [copy.handle(each, begin) for each in variables]
    given += [copy.placeholder(each, *kind) for each, kind in FED[name].items()]
    with tf.control_dependencies([begin]):
        found = function(*given)
    ops = begin.graph.get_operations()
    called = next(op for op in reversed(ops) if op.type.endswith("PartitionedCall"))
    called._set_attr("_lower_as_multi_device_function", AttrValue(b=LOWERED))
    called._set_attr("config_proto", AttrValue(s=b""))
    return list(found or []), [called]


GRAPHS = {name: partial(write, name) for name in PROGRAMS}


def build():
    """A graph of all copies, one after the other; the names of what is run and shown."""
    TRACES.clear()
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
    made.experimental.disable_thread_spinning = True
    made.session_inter_op_thread_pool.add(num_threads=4)
    rewrites = made.graph_options.rewrite_options
    rewrites.min_graph_nodes = -1
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
