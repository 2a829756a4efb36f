"""What is the same in every script: Python text, put together by `litmusfuzz.reports.script`.

A line of a word in braces is replaced there.
"""

from __future__ import annotations

from typing import Final

ROWS: Final = '''
def rows(values, shape):
    """One value for each row, the same in all its lanes."""
    return np.broadcast_to(np.reshape(values, (-1, *(1,) * (len(shape) - 1))), shape)
'''

COPY: Final = '''
class Copy:
    """One copy of the test: resources of its own, and its own timing."""

    def __init__(self, number):
        self.number = number
        self.handles = {}
{placeholders}
        # None lets ops collide; some spreads them out, which gives rare orders.
        self.padding = random.choice((0, PADDING))

    def resource(self, name):
{resource}

    def start(self):
        """Set everything to what it holds at first."""
        done = []
        for name, (dtype, shape, value) in VARIABLES.items():
{unset}
            value = tf.constant(value, dtype, shape)
            if random.random() < 0.5:  # a buffer of the variable's own, not the constant's
                value = raw.Maximum(x=value, y=value)
            done.append(raw.AssignVariableOp(resource=self.resource(name), value=value))
{start}
        return tf.group(*done)

{final}
'''
UNSET: Final = """
            if value is None:
                handle = self.resource(name)
                done.append(raw.DestroyResourceOp(resource=handle, ignore_lookup_error=True))
                continue
"""
FINAL: Final = '''
    def final(self, name):
        """What a variable holds in the end."""
        return raw.ReadVariableOp(resource=self.resource(name), dtype=VARIABLES[name][0])
'''
FINAL_OR_UNSET: Final = '''
    def final(self, name):
        """What a variable holds in the end; zeros if it has no value."""
        (dtype, shape, _), handle = VARIABLES[name], self.resource(name)
        there = raw.VarIsInitializedOp(resource=handle)
        handle = raw.Switch(data=handle, pred=there).output_true
        nothing = raw.Switch(data=tf.zeros(shape, dtype), pred=there).output_false
        value = raw.ReadVariableOp(resource=handle, dtype=dtype)
        return raw.Merge(inputs=[value, nothing]).output

    def there(self, name):
        """Whether a variable has a value in the end."""
        return raw.VarIsInitializedOp(resource=self.resource(name))
'''
ACCUMULATOR: Final = """
        if name in ACCUMULATORS:
            dtype, shape = ACCUMULATORS[name]
            return raw.ResourceConditionalAccumulator(
                dtype=dtype, shape=shape, shared_name=f"{name}.{self.number}", reduction_type="SUM"
            )
"""
ACCUMULATOR_START: Final = """
        for name in ACCUMULATORS:  # a zero that is never stale, so that there is one to take
            handle = self.resource(name)
            with tf.control_dependencies([self.zero(name)]):
                taken = self.sum(name)
            with tf.control_dependencies([taken]):
                step = tf.constant(0, tf.int64)
                done.append(
                    raw.ResourceAccumulatorSetGlobalStep(handle=handle, new_global_step=step)
                )
"""
ACCUMULATOR_METHODS: Final = '''

    def zero(self, name):
        """Add a gradient of zeros to an accumulator."""
        dtype, shape = ACCUMULATORS[name]
        return raw.ResourceAccumulatorApplyGradient(
            handle=self.resource(name),
            local_step=tf.constant(2**63 - 1, tf.int64),
            gradient=tf.zeros(shape, dtype),
        )

    def sum(self, name):
        """Take the sum of an accumulator's gradients."""
        return raw.ResourceAccumulatorTakeGradient(
            handle=self.resource(name), num_required=1, dtype=ACCUMULATORS[name][0]
        )

    def count(self, name):
        """How many gradients an accumulator has."""
        return raw.ResourceAccumulatorNumAccumulated(handle=self.resource(name))
'''
VARIABLE: Final = """
        if name in VARIABLES:
            dtype, shape, _ = VARIABLES[name]
            return raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"{name}.{self.number}")
"""
QUEUE: Final = """
        if name in QUEUES:
            dtype, shape, capacity, _ = QUEUES[name]
            return raw.FIFOQueueV2(
                component_types=[dtype],
                shapes=[shape],
                capacity=capacity,
                shared_name=f"{name}.{self.number}",
            )
"""
MUTEX: Final = """
        return raw.MutexV2(shared_name=f"{name}.{self.number}")
"""
QUEUE_START: Final = """
        for name, (dtype, _, _, elements) in QUEUES.items():
            if elements:
                held = tf.constant(np.stack(elements), dtype)
                done.append(raw.QueueEnqueueManyV2(handle=self.resource(name), components=[held]))
"""

HANDLE: Final = '''
    def handle(self, name, begin, *before):
        """An op's own handle, there early or late: so ops come to race on several threads."""
        gate = [begin, *(before if random.random() < 0.5 else ())]
        if self.padding and random.random() < 0.5:
            with tf.control_dependencies(gate):
                size = int(self.padding ** random.random())
                gate = [raw.Digamma(x=tf.constant(1.5, shape=[size]))]
        with tf.control_dependencies(gate):
            return self.resource(name)
'''
SHARED_HANDLE: Final = '''
    def handle(self, name, begin, *before):
        """One handle for all ops on a variable: XLA takes no variable twice."""
        key = name, begin.graph, begin.name
        if key not in self.handles:
            with tf.control_dependencies([begin]):
                self.handles[key] = self.resource(name)
        return self.handles[key]
'''
ACQUIRE: Final = '''
    def acquire(self, name, begin, *before):
        """Lock a mutex; it is free again when the last reference to the result is gone."""
        mutex = self.handle(name, begin, *before)
        with tf.control_dependencies([begin, *before]):
            return raw.MutexLock(mutex=mutex)
'''

PLACEHOLDER: Final = '''
    def placeholder(self, name, dtype, shape):
        """A value that each run feeds."""
        made = tf.compat.v1.placeholder(dtype, shape, name)
        self.placeholders.append(made.name)
        return made
'''

LOOP: Final = '''
def loop(copy, name, after, first, captures, condition, body, parallel_iterations):
    """A loop in raw ops. Each carried value leaves by itself; the last says that all is done."""
    frame = {"frame_name": f"{name}.{copy.number}", "parallel_iterations": parallel_iterations}
    with tf.control_dependencies(after):
        first = [tf.identity(value) for value in first]
    with tf.control_dependencies(None):
        enters = [raw.Enter(data=value, **frame) for value in (*first, first[0])]
        merges = [raw.Merge(inputs=[enter, enter]).output for enter in enters]
        outside = [raw.Enter(data=value, is_constant=True, **frame) for value in captures]
        *carried, rest = merges
        (more,), tails = condition(copy, carried[0], *carried, *outside)
        with tf.control_dependencies(tails):
            rest = tf.identity(rest)
        more = raw.LoopCond(input=more)
        switches = [raw.Switch(data=value, pred=more) for value in (*carried, rest)]
        *carried, rest = [tf.identity(switch.output_true) for switch in switches]
        following, tails = body(copy, carried[0], *carried, *outside)
        with tf.control_dependencies(tails):
            rest = tf.identity(rest)
        with tf.control_dependencies([carried[0]]):  # a constant too belongs to its iteration
            following = [tf.identity(value) for value in following]
        for merge, value in zip(merges, (*following, rest)):
            BACK[merge.op.name] = raw.NextIteration(data=value).op.name
        return [raw.Exit(data=switch.output_false) for switch in switches]
'''

CONDITIONAL: Final = '''
def conditional(copy, after, predicate, captures, then, orelse):
    """A conditional in raw ops; the last result says that all of the branch is done."""
    with tf.control_dependencies(after):
        predicate = tf.identity(predicate)
    with tf.control_dependencies(None):
        branches = []
        for way, branch in (("output_true", then), ("output_false", orelse)):
            begin, *taken = [
                tf.identity(getattr(raw.Switch(data=value, pred=predicate), way))
                for value in (predicate, *captures)
            ]
            results, tails = branch(copy, begin, *taken)
            with tf.control_dependencies(tails):
                branches.append([*results, tf.identity(begin)])
        return [raw.Merge(inputs=list(both)).output for both in zip(*branches)]
'''

FUNCTION_IMPORT: Final = """\
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework.function import Defun"""
FUNCTION: Final = '''
def call(copy, after, arguments, body, variables=()):
    """A function call, inlined by TensorFlow; the last result says that all of the body is done.

    XLA takes no variable twice: of these, the body has the handles of the graph around it.
    """
    with tf.control_dependencies(after):
        begin = tf.constant(True)
    handles = [copy.handle(name, after[0]) for name in variables]

    def inside(begin, *given):
        given, handles = given[: len(arguments)], given[len(arguments) :]
        for name, handle in zip(variables, handles):
            copy.handles[name, begin.graph, begin.name] = handle
        results, tails = body(copy, begin, *given)
        with tf.control_dependencies(tails):
            return [*results, tf.identity(begin)]

    given = [begin, *arguments, *handles]
    function = Defun(*(value.dtype for value in given))(inside)
    types = [each.type for each in function.definition.signature.output_arg]
    *results, done = raw.StatefulPartitionedCall(args=given, Tout=types, f=function)
    done.op._set_attr("_lower_as_multi_device_function", AttrValue(b=True))
    return [*results, tf.identity(done)]
'''
INLINED: Final = '''
def inlined(copy, after, arguments, body, variables=()):
    """A function call, inlined here; else as `call`."""
    with tf.control_dependencies(after):
        begin, *given = [tf.identity(value) for value in (tf.constant(True), *arguments)]
    for name in variables:
        copy.handles[name, begin.graph, begin.name] = copy.handle(name, after[0])
    results, tails = body(copy, begin, *given)
    with tf.control_dependencies(tails):
        return [*results, tf.identity(begin)]
'''

BUILD: Final = '''
def build():
    """A graph of all copies, one after the other; the names of what is run and shown."""
{clear}
    with tf.Graph().as_default() as graph:
        starts, finals = [], []
        seen, done = {name: [] for name in GRAPHS}, {name: [] for name in GRAPHS}
        for number in range(COPIES):
            copy = Copy(number)
            starts.append(copy.start())
            finals.append([copy.final(name) for name in VARIABLES])
{finals}
            for name, write in GRAPHS.items():
                with tf.control_dependencies(done[name]):
                    begin = tf.no_op()
                with tf.name_scope(f"c{number}/"):
                    values, rest = write(copy, begin)
                seen[name].append(values)
{feeds}
                done[name] = [begin, *rest]
        run = {
            "start": tf.group(*starts).name,
            "final": [*(tf.stack(each).name for each in zip(*finals)), tf.no_op().name],
        }
        for name in GRAPHS:
            values = [tf.stack(each).name for each in zip(*seen[name])]
            run[f"graph {name}"] = [*values, tf.group(*done[name]).name]
{queues}
    nodes = graph.as_graph_def()
{edits}
    # The order of nodes has a part in the order in which what is ready is taken.
    mixed = random.sample(list(nodes.node), len(nodes.node))
    with tf.Graph().as_default() as graph:
        parts = {"versions": nodes.versions, "library": nodes.library}
        nodes = tf.compat.v1.GraphDef(node=mixed, **parts)
        tf.import_graph_def(nodes, name="")
    return graph, run
'''
FINALS_THERE: Final = """
            finals[-1] += [copy.there(name) for name in VARIABLES]
"""
FINALS_COUNTS: Final = """
            finals[-1] += [copy.count(name) for name in ACCUMULATORS]
"""
BUILD_SUMS: Final = """
        for name in ACCUMULATORS:
            ops = copy.sum(name), copy.zero(name), copy.count(name)
            run[f"sum {name}"] = [each.name for each in ops]
"""
BUILD_QUEUES: Final = """
        for name, (dtype, *_) in QUEUES.items():
            queue, count = copy.resource(name), tf.compat.v1.placeholder(tf.int32, [])
            (held,) = raw.QueueDequeueManyV2(handle=queue, n=count, component_types=[dtype])
            size = raw.QueueSizeV2(handle=queue)
            halt = raw.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)
            run[f"queue {name}"] = size.name, held.name, count.name, halt.name
"""
FED: Final = """
        run |= fed
"""
BUILD_FEEDS: Final = """
                fed.setdefault(f"feeds {name}", []).extend(copy.placeholders)
                copy.placeholders = []
"""
BACK: Final = """
    for node in nodes.node:
        if node.name in BACK:
            node.input[1] = BACK[node.name]
"""
NOT_COMPILED: Final = """
    for node in nodes.node:
        if not COMPILED.intersection(node.name.split("/")[1:2]):
            node.attr["_XlaCompile"].b = False  # helpers stay out of clusters
"""
NOT_COMPILED_INSIDE: Final = """
    for function in nodes.library.function:
        for node in function.node_def:
            if node.name not in COMPILED:
                node.attr["_XlaCompile"].b = False
"""

COLUMNS: Final = '''
def columns(array):
    """Of each copy: its value, if all lanes are alike; else it is torn."""
    array = np.asarray(array, np.float64)
    lanes = array.reshape(len(array), array.shape[1] if array.ndim > 1 else 1, -1)
    whole = (lanes == lanes[..., :1]) & (np.abs(lanes) < 2**62) & (lanes == np.trunc(lanes))
    torn = ~whole.all((1, 2))
    values = np.where(torn[:, None], 0, lanes[..., 0]).astype(np.int64).tolist()
    values = [value[0] if len(value) == 1 else tuple(value) for value in values]
    return ["torn" if bad else value for bad, value in zip(torn, values)]
'''
COLUMNS_WHOLE: Final = COLUMNS.replace(
    "array.shape[1] if array.ndim > 1 else 1, -1", "-1, 1"
).replace("if all lanes are alike; else it is torn", "if it is made of integers; else it is torn")

CALL: Final = """
    calls = {name: session.make_callable(run[f"graph {name}"]) for name in GRAPHS}
"""
# With options of its own a run takes longer: `make_callable` has none.
CALL_OPTIONS: Final = """
    calls = {
        name: lambda name=name: session.run(run[f"graph {name}"], options=OPTIONS)
        for name in GRAPHS
    }
"""
CALL_FED: Final = """
    calls = {
        name: lambda *values, name=name: session.run(
            run[f"graph {name}"], dict(zip(run[f"feeds {name}"], values)){options}
        )
        for name in GRAPHS
    }
"""


def with_feeds(text: str) -> str:
    """A function that executes runs, for runs that feed values, the same to each copy."""
    for old, new in (
        ("def call(graph, earlier):", "def call(graph, values, earlier):"),
        ("return calls[graph]()", "return calls[graph](*values * COPIES)"),
        ("for name, (graph, after) in", "for name, (graph, after, values) in"),
        ("submit(call, graph, [", "submit(call, graph, values, ["),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


EXECUTE: Final = '''
def execute(session, run, end):
    """Execute all copies, again and again: their outcomes."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
{calls}
    (race,) = calls.values()
    for _ in range(STEPS):
        start()
        arrays = [*race()[:-1], *final()[:-1]]
        yield from zip(*map(columns, arrays))
        if time.monotonic() > end:
            return
'''
EXECUTE_RUNS: Final = '''
def execute(session, run, end):
    """Execute all copies, each run on a thread of its own: their outcomes."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
{calls}

    def call(graph, earlier):
        for each in earlier:
            each.result()
        return calls[graph]()

    with ThreadPoolExecutor(len(RUNS)) as pool:
        for _ in range(STEPS):
            start()
            runs = {}
            for name, (graph, after) in RUNS.items():
                runs[name] = pool.submit(call, graph, [runs[each] for each in after])
            ended = {name: each.result() for name, each in runs.items()}
            arrays = [*(ended[name][i] for name, i in OBSERVED), *final()[:-1]]
            yield from zip(*map(columns, arrays))
            if time.monotonic() > end:
                return
'''
EXECUTE_ALONE: Final = '''
def execute(session, run, end):
    """Execute the test, each run on a thread of its own, until one is blocked."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
{calls}

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
{failed}
            values = []
            for name, i in OBSERVED:
                values += [None] if runs[name] in waiting else columns(runs[name].result()[i])
            # What there is in the end is read before anything is cancelled.
{contents}
{elements}
            yield ("blocked" if waiting else "completed", *values)
{end}
'''
CONTENTS: Final = """
            values += [columns(array)[0] for array in final()[:-1]]
"""
CONTENTS_MORE: Final = """
            held = [columns(array)[0] for array in final()[:-1]]
            values += held[: len(VARIABLES)]
            held = held[len(VARIABLES) :]
"""
CONTENTS_UNSET: Final = """
            # A variable without a value holds ().
            pairs = list(zip(values[-len(VARIABLES) :], held))
            values[-len(VARIABLES) :] = [value if there else () for value, there in pairs]
            held = held[len(VARIABLES) :]
"""
CONTENTS_COUNTS: Final = """
            counts, place = dict(zip(ACCUMULATORS, held)), len(values)
"""
SUMS: Final = """
            # Takes that wait end when their runs are cancelled; then the rest can be taken.
{feed}
            if waiting:
                wait(waiting, 3 * BLOCKED_S)
            cells = []
            for name, count in counts.items():
                total = 0
                if count and (name in KNOWN or not waiting):
                    total = columns(session.run(run[f"sum {name}"][0])[None])[0]
                elif count:
                    total = "?"
                cells += [total, count]
            values[place:place] = cells
"""
FEED: Final = """
            # A take that is cancelled waits for itself if there are enough gradients for the one
            # behind it (of the same run). So zeros are added until no take can wait.
            for name, (least, most) in UNEVEN.items() if waiting else ():
                _, zero, count = run[f"sum {name}"]
                while least <= session.run(count) < most:
                    session.run(zero)
                    time.sleep(0.1)
"""
QUEUE_CALLS: Final = """
    queues = [
        (session.make_callable(size), session.make_callable(held, [count]), halt, capacity)
        for (size, held, count, halt), (_, _, capacity, _) in (
            (run[f"queue {name}"], QUEUES[name]) for name in QUEUES
        )
    ]
"""
QUEUE_VALUES: Final = """
            # To take lets an op go on that waits to put something, and what comes after it. So
            # what is full comes last; if several are, such ops are ended before.
            counts = [int(size()) for size, *_ in queues]
            full = [count == capacity for count, (*_, capacity) in zip(counts, queues)]
            if waiting and sum(full) > 1:
                for i in range(len(queues)):
                    session.run([queues[i][2]] * full[i])
            held = {}
            for i in sorted(range(len(queues)), key=full.__getitem__):
                held[i] = tuple(columns(queues[i][1](counts[i]))) if counts[i] else ()
            values += [held[i] for i in range(len(queues))]
"""
FAILED: Final = """
                if waiting or time.monotonic() > end:
                    return
                continue
"""
FAILED_ONCE: Final = """
                return
"""
UNTIL_BLOCKED: Final = """
            if waiting or time.monotonic() > end:
                return
"""
ONCE: Final = """
            return  # with the session goes the queue that is closed now
"""

FORBIDDEN_UNLESS: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it."""
    return outcome not in ALLOWED
'''
FORBIDDEN_UNLESS_UNKNOWN: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it; of "?" it is not known what it is."""
    return not any(all(a in (b, "?") for a, b in zip(outcome, each)) for each in ALLOWED)
'''
FORBIDDEN_IF: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it, as far as it is known here."""
    return outcome in FORBIDDEN or "torn" in outcome
'''
OUTCOMES: Final = '''
def outcomes(end):
    """Outcomes of the copies of a new graph in a new session."""
    graph, run = build()
    with tf.compat.v1.Session(graph=graph, config=config()) as session:
        yield from execute(session, run, end)
'''
MAIN: Final = '''
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
        verdict = "FORBIDDEN" if forbidden(outcome) else "{known}"
        print(f"{count:8}  {verdict:10}  {text(outcome)}")
    bad = sum(count for outcome, count in counts.items() if forbidden(outcome))
    print(f"forbidden outcomes in {bad} of {counts.total()} executions; none is allowed")
    sys.exit(1 if bad else 0)


main()
'''
