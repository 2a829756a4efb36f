"""What is the same in scripts of Python's front ends: Python text, put together by `script`.

It executes, traces or builds the functions that `litmusfuzz.reports.python_code` writes, as
`litmusfuzz.fuzz.executors.tensorflow.program`, `traced`, `python_graphs`, `eager_program` and
`eager_parts` do.
"""

from __future__ import annotations

from typing import Final

IMPORTS: Final = "from tensorflow.python.ops import handle_data_util"

VALUES: Final = '''
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
'''

SEVERAL: Final = '''
def results(v, name, make):
    """The results of an op, of which several nodes are one: the op is executed once."""
    if f"*{name}" not in v:
        v[f"*{name}"] = make()
    return v[f"*{name}"]
'''

CONDITIONAL: Final = '''
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
'''

LOOP: Final = '''
def loop(v, name, after, captures, first, condition, body, parallel_iterations, results):
    """Python's, or a tf.while_loop."""
    values = [v[outer] for outer in first.values()]

    def inside(given):
        made = v.inside(captures)
        made.update(zip(first, given))
        return made

    def iteration(part, given):
        # An op that needs no carried value would not wait for the first one.
        with tf.control_dependencies(given[:1]):
            return run(part, inside(given))

    if tf.executing_eagerly():
        while bool(lane(run(condition, inside(values))[0])):
            values = run(body, inside(values))
    else:
        with turn(v, after):
            values = [tf.identity(each) for each in values]  # wait for the edges into the loop
            values = listed(
                tf.while_loop(
                    lambda *given: lane(iteration(condition, given)[0]),
                    lambda *given: iteration(body, given),
                    values,
                    parallel_iterations=parallel_iterations,
                )
            )
    v.update(zip(results, values))
    v[f"^{name}"] = values
'''

CALL: Final = '''
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
'''

TRACED: Final = '''
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
'''
TRACED_IMPORT: Final = "from tensorflow.core.framework.attr_value_pb2 import AttrValue"

BUILT: Final = '''
class Fresh:
    """Handles of variables, a new one each time, made outside of all loops and conditionals."""

    def __init__(self, copy, begin):
        self.copy, self.begin, self.padding = copy, begin, copy.padding

    def __call__(self, name):
        with self.begin.graph.as_default(), tf.control_dependencies(None):
            return typed(self.copy.handle(name, self.begin), name)


def write(name, copy, begin):
    """Build a graph of the test: what is shown, and what else is to be done."""
    v = Values(Fresh(copy, begin))
    v.update((each, copy.placeholder(each, *kind)) for each, kind in FED[name].items())
    with tf.control_dependencies([begin]):
        for node in PROGRAMS[name]:
            node.execute(v)
    rest = [each for node in PROGRAMS[name] for each in v.ended(named(node.execute))]
    return [v[each] for each in SHOWN[name]], rest
'''

CLEAR_TRACES: Final = """
    TRACES.clear()
"""
KERNELS: Final = """
    for function in nodes.library.function:  # calls, While and If by their kernels
        function.attr["_noinline"].b = True
        for node in function.node_def:
            for name in ("_lower_using_switch_merge", "_lower_as_multi_device_function"):
                if name in node.attr:
                    node.attr[name].b = False
"""
NOT_COMPILED_OUTSIDE: Final = """
    for node in nodes.node:
        if not node.name.startswith("c"):  # in no copy: "c0/..."
            node.attr["_XlaCompile"].b = False
"""

EAGER: Final = '''
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
'''

EAGER_RUN: Final = '''
def program(name):
    """What a run executes: its nodes, one by one."""
    return [node.execute for node in PROGRAMS[name]]
'''
MIXED_RUN: Final = '''
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
'''
EAGER_EXECUTE: Final = '''
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
'''
