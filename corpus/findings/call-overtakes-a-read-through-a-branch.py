"""wrong value: If + ReadVariableOp + Call + AssignVariableOp, only in Python threads that call
tf.functions.

TensorFlow 2.21.0 shows what its memory model forbids.

The memory model (RFC 20190610, resource variables): a graph's operations behave as if
executed one by one, in some order that its edges allow; reads and writes of a whole
variable are atomic. Beyond it, TensorFlow's executor on the CPU locks a variable during a
dense update (AssignAdd, AssignSub, ResourceApply*), which is thus one operation. In a
tf.function, automatic control dependencies order ops on one handle as the code has them,
two reads excepted, and what a function, branch or iteration returns comes after all its
effects.

The test; ops in different columns have no edge between them unless it is said:

  A read through a handle that a branch returns comes after a call that is given it, and assigns the variable.
  X: int32[] = 0
  Y: int32[] = 0

  | chain 0
  | branch0: if 1
  |   then
  |     y0 = &Y
  |   else
  |     y0 = &X
  | r0 = X|Y(*branch0.y0)
  | call0: call(a2 = r0)
  |   does
  |     w0: Y = 1
  |     y0 = r0

  observed: reads r0 and the final value of every variable

Seen       r0=1 X=0 Y=1, in 93 of 1024 executions

Allowed    r0=0 X=0 Y=1 is the nearest

Forbidden  call0 waits for r0

Needs TensorFlow and NumPy only. Racing ops have to meet, so that chance has a part: on busy
cores it takes longer. Ends when a forbidden outcome has shown (exit code 1), or after a
minute, or as many seconds as the first argument says (exit code 0).
"""


import random
import sys
import threading
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import handle_data_util


raw = tf.raw_ops
STEPS, SECONDS = 64, 60

# Type, shape and what it holds at first.
VARIABLES = {'X': (tf.int32, [], 0), 'Y': (tf.int32, [], 0)}

NAMES = ['r0', 'X', 'Y']
ALLOWED = {(0, 0, 1)}


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


def conditional(v, name, after, captures, predicate, then, orelse, results):
    """Python's, or a tf.cond."""
    taken = lane(v[predicate])
    if tf.executing_eagerly():
        found = run(then if bool(taken) else orelse, v.inside(captures))
    else:
        with turn(v, after):
            taken = tf.identity(taken)  # waits for the edges into the conditional
            sides = [lambda each=each: run(each, v.inside(captures)) for each in (then, orelse)]
            found = listed(tf.cond(taken, *sides))
    v.update(zip(results, found))
    v[f"^{name}"] = found


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
    v["c0"] = tf.constant(True, tf.bool, [])


def h0_(v):
    v["h0"] = v["&h0"] if "&h0" in v else tf.identity(v["&X"])


def h1_(v):
    v["h1"] = v["&h1"] if "&h1" in v else tf.identity(v["&Y"])


def branch0(v):
    conditional(
        v, "branch0", [], {'a0': 'h0', 'a1': 'h1'},
        "c0",
        ([], ['a1']),
        ([], ['a0']),
        ['branch0.y0'],
    )


def r0(v):
    with turn(v, [], []):
        v["r0"] = keep(raw.ReadVariableOp(resource=v["branch0.y0"], dtype=tf.int32))


def c1(v):
    v["c1"] = tf.constant(1, tf.int32, [])


def w0(v):
    with turn(v, [], ['c1']):
        v["w0"] = raw.AssignVariableOp(resource=v["&Y"], value=v["c1"])


def call0(v):
    call(v, "call0", ['r0'], {'a2': 'r0'}, ([c1, w0], ['a2']), ['call0.y0'])


# Of each graph its nodes: what they make, which values they take, which variables
# they use, the variable of a further handle, and whether it is an Identity of one.
PROGRAMS = {
    'main': [
        Node(c0, ['c0'], [], [], None, False),
        Node(h0_, ['h0'], [], ['X'], 'X', False),
        Node(h1_, ['h1'], [], ['Y'], 'Y', False),
        Node(branch0, ['branch0.y0'], ['c0', 'h0', 'h1'], [], None, False),
        Node(r0, ['r0'], ['branch0.y0'], ['X', 'Y'], None, False),
        Node(call0, ['call0.y0'], ['r0'], ['Y'], None, False),
    ],
}
RENAMED = {'h0_': 'h0', 'h1_': 'h1'}
FED = {'main': {}}
SHOWN = {'main': ['r0']}
SHAPES = {'a2': []}
WAITS = False  # TensorFlow leaves out what no result of a body waits for
JIT_COMPILE = None
# Of which graph, after which runs, and what is fed.
RUNS = {'main': ('main', [], {})}
# Of which run, and which value.
OBSERVED = [('main', 'r0')]
MAY_FAIL = False


def columns(array):
    """Of each copy: its value, if all lanes are alike; else it is torn."""
    array = np.asarray(array, np.float64)
    lanes = array.reshape(len(array), array.shape[1] if array.ndim > 1 else 1, -1)
    whole = (lanes == lanes[..., :1]) & (np.abs(lanes) < 2**62) & (lanes == np.trunc(lanes))
    torn = ~whole.all((1, 2))
    values = np.where(torn[:, None], 0, lanes[..., 0]).astype(np.int64).tolist()
    values = [value[0] if len(value) == 1 else tuple(value) for value in values]
    return ["torn" if bad else value for bad, value in zip(torn, values)]


class Variables:
    """The variables, by their handles."""

    padding = 0

    def __init__(self):
        self.handles = {}
        for name, (dtype, shape, _) in VARIABLES.items():
            handle = raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
            self.handles[name] = typed(handle, name)

    def __call__(self, name):
        return self.handles[name]

    def start(self):
        """Give each its first value, or none."""
        for name, (dtype, shape, value) in VARIABLES.items():
            if value is None:
                raw.DestroyResourceOp(resource=self(name), ignore_lookup_error=True)
            else:
                raw.AssignVariableOp(
                    resource=self(name), value=tf.constant(value, dtype, shape)
                )

    def final(self):
        """What they hold in the end; () without a value."""
        for name, (dtype, _, _) in VARIABLES.items():
            if bool(raw.VarIsInitializedOp(resource=self(name))):
                yield columns(raw.ReadVariableOp(resource=self(name), dtype=dtype)[None])[0]
            else:
                yield ()


variables = Variables()


def program(name):
    """What a run executes, written anew from time to time: single nodes, and tf.functions."""
    left, parts = list(PROGRAMS[name]), []
    whole = JIT_COMPILE or random.random() < 0.4
    while left:
        length = len(left) if whole else random.randint(1, len(left))
        part, left = left[:length], left[length:]
        if not JIT_COMPILE and random.random() < 0.25:
            parts += [node.execute for node in part]
        else:
            now, later = with_aliases(part, name), with_aliases(left, name)
            parts.append(function_of(now, later, SHOWN[name]))
    return parts


def with_aliases(nodes, name):
    """The nodes, after those Identities of handles that they take from before.

    Of two arguments TensorFlow does not know that they are one handle.
    """
    made = {key for node in nodes for key in node.makes}
    taken = {key for node in nodes for key in node.takes} - made
    again = [node for node in PROGRAMS[name] if node.alias and node.makes[0] in taken]
    return with_aliases(again + nodes, name) if again else nodes


def function_of(nodes, later, shown):
    """Some nodes as a tf.function, which captures handles or gets them."""
    made = {key for node in nodes for key in node.makes}
    given = dict.fromkeys(key for node in nodes for key in node.takes if key not in made)
    needed = {*shown, *(key for node in later for key in node.takes)}
    results = [key for node in nodes for key in node.makes if key in needed]
    # XLA takes no two handles of one variable.
    own = {name: name for node in nodes for name in node.uses}
    own |= {f"&{node.makes[0]}": node.further for node in nodes if node.further}
    own = {k: name for k, name in own.items() if not JIT_COMPILE and random.random() < 0.5}
    shapes = [tf.zeros([n]) for n in ((1, 2) if random.random() < 0.5 else (1,))]

    @tf.function(autograph=False, jit_compile=JIT_COMPILE)
    def function(shape, *values):
        handed = {key: typed(*each) for key, *each in zip(own, values, own.values())}
        v = Given(variables.handles | handed).values()
        v.update(zip(given, values[len(own) :]))
        for node in nodes:
            node.execute(v)
        return [tf.identity(v[key]) for key in results]

    def execute(v):
        values = [variables(name) for name in own.values()] + [v[key] for key in given]
        v.update(zip(results, function(random.choice(shapes), *values)))

    return execute


def execute(end):
    """Execute the test, each run on a thread of its own: outcomes."""
    programs = {name: program(name) for name in PROGRAMS}
    first = threading.Barrier(sum(not after for _, after, _ in RUNS.values()))

    def call(graph, after, fed, earlier):
        for each in earlier:
            each.result()
        if not after:
            first.wait()
        v = Values(variables, fed)
        for step in programs[graph]:
            step(v)
        return v

    with ThreadPoolExecutor(len(RUNS)) as pool:
        for _ in range(STEPS):
            variables.start()
            runs = {}
            for name, (graph, after, fed) in RUNS.items():
                earlier = [runs[each] for each in after]
                runs[name] = pool.submit(call, graph, after, fed, earlier)
            wait(runs.values())
            if MAY_FAIL and any(each.exception() for each in runs.values()):
                yield ("failed", *(None for _ in NAMES[1:]))
            else:
                values = [columns(runs[name].result()[key][None])[0] for name, key in OBSERVED]
                yield (*("completed",) * MAY_FAIL, *values, *variables.final())
            if time.monotonic() > end:
                return


def outcomes(end):
    """Outcomes of the threads' programs, which are written anew."""
    yield from execute(end)


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
