"""Fragments of standalone scripts: Python text that `litmusfuzz.reports.script` puts together.

A fragment is a whole function, class or method, or fills a *slot* of another fragment:
``<<name>>`` (`filled`). The docstring of each constant says which slot it fills, and when. Scripts
of Python's front ends have most of their functions from `litmusfuzz.reports.python_text`.

The text uses these globals of a script, which `litmusfuzz.reports.script` writes:

======================  =============================================================
``raw``                 ``tf.raw_ops``
``config``              function: the session's configuration
``COPIES``              copies of the test in one graph
``STEPS``               executions of one graph
``SECONDS``             time that the script runs, by default
``BLOCKED_S``           time after which a run that has not ended is blocked
``PADDING``             most elements of work before an op
``VARIABLES``           by name: dtype, shape, and initial value or None
``QUEUES``              by name: dtype, shape, capacity, and initial elements
``ACCUMULATORS``        by name: dtype and shape of a gradient
``KNOWN``               accumulators whose sum is known even if a run is blocked
``UNEVEN``              by accumulator: fewest and most gradients that its takes require
``DEVICES``             by resource: device
``BACK``                by Merge of a loop: the node that leads back to it
``GRAPHS``              by name: function that builds the graph for one copy
``COMPILED``            nodes that XLA may take into clusters
``RUNS``                by name: graph, earlier runs, and values that are fed
``OBSERVED``            run and position of each observed value
``OPTIONS``             options of a run
``NAMES``               names of an outcome's values
``ALLOWED``             allowed outcomes
``FORBIDDEN``           forbidden outcomes, if the allowed ones are too many to list
======================  =============================================================

``build`` (`BUILD`) returns a graph, and the dict ``run`` of what a session fetches and feeds in it,
by name; N is the name of a graph, an accumulator or a queue:

======================  =============================================================
``start``               op that sets all resources to their initial contents
``final``               list, all but the last stacked over the copies: the contents of
                        each variable, then whether each has a value (`FINALS_THERE`),
                        then the gradients in each accumulator (`FINALS_COUNTS`); last an
                        op without a value
``graph N``             list: the observed values of the graph, stacked over the copies;
                        last the op with which all copies have ended
``feeds N``             list: the placeholders of the graph, copy after copy
``sum N``               of the accumulator: take of its sum, op that adds a gradient of
                        zeros, number of gradients
``queue N``             of the queue: its size, so many elements of it, the placeholder of
                        how many, op that closes it
======================  =============================================================

``build`` collects the ``feeds N`` in ``fed``; it empties ``BACK`` and ``fed`` for each graph (slot
`clear` of `BUILD`).

`litmusfuzz.reports.raw_ops` writes the functions that build a graph, or a body of a node:
``results, tails = body(copy, begin, *values)``. ``begin`` is an op or value that comes before all
nodes of the body, ``values`` are those that come in, and ``tails`` are the ops and values for which
nothing in the body waits. Where a function here takes ``after``, it is the list of the ops and
values that come before the node.

In a test with lanes a value has one number for each *row*, an index of its first axis. All elements
of a row, its *lanes*, have that number, so that a value is torn if they differ.
"""

from __future__ import annotations

from typing import Final


def filled(text: str, **parts: str) -> str:
    """A fragment with parts in its slots, by their names; the fragment has each of them.

    A slot that has a line of its own takes any number of lines; another takes part of a line.
    """
    for slot, part in parts.items():
        name = f"<<{slot}>>"
        assert name in text, (slot, text)
        if f"\n{name}\n" in text:
            text = text.replace(f"{name}\n", part.lstrip("\n"))
        else:
            text = text.replace(name, part)
    return text


ROWS: Final = '''
def rows(values, shape):
    """One value for each row, the same in all its lanes."""
    return np.broadcast_to(np.reshape(values, (-1, *(1,) * (len(shape) - 1))), shape)
'''
"""Function of scripts that have a value with rows and lanes."""

COPY: Final = '''
class Copy:
    """One copy of the test: resources of its own, and its own timing."""

    def __init__(self, number):
        self.number = number
        self.handles = {}
<<placeholders>>
        # Without padding, ops collide; with it, they spread out, which gives rare orders.
        self.padding = random.choice((0, PADDING))

    def resource(self, name):
<<resource>>

    def start(self):
        """Set everything to what it holds at first."""
        done = []
        for name, (dtype, shape, value) in VARIABLES.items():
<<unset>>
            value = tf.constant(value, dtype, shape)
            if random.random() < 0.5:  # a buffer of the variable's own, not the constant's
                value = raw.Maximum(x=value, y=value)
            done.append(raw.AssignVariableOp(resource=self.resource(name), value=value))
<<start>>
        return tf.group(*done)

<<final>>
'''
"""Class of all copies. `script` appends its methods for handles, mutexes and placeholders."""
PLACEHOLDERS: Final = """
        self.placeholders = []
"""
"""Slot `placeholders` of `COPY`, if runs feed values."""
UNSET_DESTROYS: Final = """
            if value is None:
                handle = self.resource(name)
                done.append(raw.DestroyResourceOp(resource=handle, ignore_lookup_error=True))
                continue
"""
"""Slot `unset` of `COPY`, if some variable has no initial value."""
FINAL_READS: Final = '''
    def final(self, name):
        """What a variable holds in the end."""
        return raw.ReadVariableOp(resource=self.resource(name), dtype=VARIABLES[name][0])
'''
"""Slot `final` of `COPY`, if every variable has an initial value."""
FINAL_READS_OR_UNSET: Final = '''
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
"""Slot `final` of `COPY`, if some variable has no initial value."""
RESOURCE_ACCUMULATOR: Final = """
        if name in ACCUMULATORS:
            dtype, shape = ACCUMULATORS[name]
            return raw.ResourceConditionalAccumulator(
                dtype=dtype, shape=shape, shared_name=f"{name}.{self.number}", reduction_type="SUM"
            )
"""
"""Slot `resource` of `COPY`, if there are accumulators."""
START_ACCUMULATORS: Final = """
        for name in ACCUMULATORS:  # zeros that are never stale: a take needs a gradient
            handle = self.resource(name)
            with tf.control_dependencies([self.zero(name)]):
                taken = self.sum(name)
            with tf.control_dependencies([taken]):
                step = tf.constant(0, tf.int64)
                done.append(
                    raw.ResourceAccumulatorSetGlobalStep(handle=handle, new_global_step=step)
                )
"""
"""Slot `start` of `COPY`, if there are accumulators."""
FINAL_SUMS: Final = '''

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
"""Slot `final` of `COPY`, after the reads, if there are accumulators: methods for their sums."""
RESOURCE_VARIABLE: Final = """
        if name in VARIABLES:
            dtype, shape, _ = VARIABLES[name]
            return raw.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"{name}.{self.number}")
"""
"""Slot `resource` of `COPY`, if there are variables."""
RESOURCE_QUEUE: Final = """
        if name in QUEUES:
            dtype, shape, capacity, _ = QUEUES[name]
            return raw.FIFOQueueV2(
                component_types=[dtype],
                shapes=[shape],
                capacity=capacity,
                shared_name=f"{name}.{self.number}",
            )
"""
"""Slot `resource` of `COPY`, if there are queues."""
RESOURCE_MUTEX: Final = """
        return raw.MutexV2(shared_name=f"{name}.{self.number}")
"""
"""Slot `resource` of `COPY`, after the others, if there are mutexes: other names are mutexes'."""
START_QUEUES: Final = """
        for name, (dtype, _, _, elements) in QUEUES.items():
            if elements:
                held = tf.constant(np.stack(elements), dtype)
                done.append(raw.QueueEnqueueManyV2(handle=self.resource(name), components=[held]))
"""
"""Slot `start` of `COPY`, if there are queues."""

HANDLE_OF_ITS_OWN: Final = '''
    def handle(self, name, begin, *before):
        """A handle for one op, there early or late, so that ops race on several threads."""
        gate = [begin, *(before if random.random() < 0.5 else ())]
        if self.padding and random.random() < 0.5:
            with tf.control_dependencies(gate):
                size = int(self.padding ** random.random())
                gate = [raw.Digamma(x=tf.constant(1.5, shape=[size]))]
        with tf.control_dependencies(gate):
            return self.resource(name)
'''
"""Method that is appended to `COPY`, unless XLA compiles clusters."""
HANDLE_SHARED: Final = '''
    def handle(self, name, begin, *before):
        """One handle for all ops on a variable: XLA takes no variable twice."""
        key = name, begin.graph, begin.name
        if key not in self.handles:
            with tf.control_dependencies([begin]):
                self.handles[key] = self.resource(name)
        return self.handles[key]
'''
"""Method that is appended to `COPY`, if XLA compiles clusters."""
ACQUIRE: Final = '''
    def acquire(self, name, begin, *before):
        """Lock a mutex; it is free again when the last reference to the result is gone."""
        mutex = self.handle(name, begin, *before)
        with tf.control_dependencies([begin, *before]):
            return raw.MutexLock(mutex=mutex)
'''
"""Method that is appended to `COPY`, if there are mutexes."""

PLACEHOLDER: Final = '''
    def placeholder(self, name, dtype, shape):
        """A value that each run feeds."""
        made = tf.compat.v1.placeholder(dtype, shape, name)
        self.placeholders.append(made.name)
        return made
'''
"""Method that is appended to `COPY`, if runs feed values."""

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
"""Function that the graphs of tests with loops call."""

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
"""Function that the graphs of tests with conditionals call."""

CALL_IMPORTS: Final = """\
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework.function import Defun"""
"""Imports of `CALL`."""
CALL: Final = '''
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
"""Function that the graphs of tests with function calls call."""
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
"""Function in place of `CALL`, if a loop is inside: `BACK` has nodes of the graph only."""

BUILD: Final = '''
def build():
    """A graph of all copies, one after the other; the names of what is run and shown."""
<<clear>>
    with tf.Graph().as_default() as graph:
        starts, finals = [], []
        seen, done = {name: [] for name in GRAPHS}, {name: [] for name in GRAPHS}
        for number in range(COPIES):
            copy = Copy(number)
            starts.append(copy.start())
            finals.append([copy.final(name) for name in VARIABLES])
<<finals>>
            for name, write in GRAPHS.items():
                with tf.control_dependencies(done[name]):
                    begin = tf.no_op()
                with tf.name_scope(f"c{number}/"):
                    values, rest = write(copy, begin)
                seen[name].append(values)
<<feeds>>
                done[name] = [begin, *rest]
        run = {
            "start": tf.group(*starts).name,
            "final": [*(tf.stack(each).name for each in zip(*finals)), tf.no_op().name],
        }
        for name in GRAPHS:
            values = [tf.stack(each).name for each in zip(*seen[name])]
            run[f"graph {name}"] = [*values, tf.group(*done[name]).name]
<<runs>>
    nodes = graph.as_graph_def()
<<edits>>
    # The order of nodes has a part in the order in which what is ready is taken.
    mixed = random.sample(list(nodes.node), len(nodes.node))
    with tf.Graph().as_default() as graph:
        parts = {"versions": nodes.versions, "library": nodes.library}
        nodes = tf.compat.v1.GraphDef(node=mixed, **parts)
        tf.import_graph_def(nodes, name="")
    return graph, run
'''
"""Function that builds the graph of all copies."""
CLEAR_BACK: Final = "    BACK.clear()\n"
"""Slot `clear` of `BUILD`, if there are loops."""
CLEAR_FED: Final = "    fed = {}\n"
"""Slot `clear` of `BUILD`, after the others, if runs feed values."""
FINALS_THERE: Final = """
            finals[-1] += [copy.there(name) for name in VARIABLES]
"""
"""Slot `finals` of `BUILD`, if some variable has no initial value."""
FINALS_COUNTS: Final = """
            finals[-1] += [copy.count(name) for name in ACCUMULATORS]
"""
"""Slot `finals` of `BUILD`, after the other, if there are accumulators."""
RUN_SUMS: Final = """
        for name in ACCUMULATORS:
            ops = copy.sum(name), copy.zero(name), copy.count(name)
            run[f"sum {name}"] = [each.name for each in ops]
"""
"""Slot `runs` of `BUILD`, if there are accumulators."""
RUN_QUEUES: Final = """
        for name, (dtype, *_) in QUEUES.items():
            queue, count = copy.resource(name), tf.compat.v1.placeholder(tf.int32, [])
            (held,) = raw.QueueDequeueManyV2(handle=queue, n=count, component_types=[dtype])
            size = raw.QueueSizeV2(handle=queue)
            halt = raw.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)
            run[f"queue {name}"] = size.name, held.name, count.name, halt.name
"""
"""Slot `runs` of `BUILD`, if there are queues."""
RUN_FED: Final = """
        run |= fed
"""
"""Slot `runs` of `BUILD`, after the others, if runs feed values."""
FEEDS_OF_COPY: Final = """
                fed.setdefault(f"feeds {name}", []).extend(copy.placeholders)
                copy.placeholders = []
"""
"""Slot `feeds` of `BUILD`, if runs feed values."""
EDITS_OF_LOOPS: Final = """
    for node in nodes.node:
        if node.name in BACK:
            node.input[1] = BACK[node.name]
"""
"""Slot `edits` of `BUILD`, if there are loops: gives each Merge its way back."""
EDITS_NOT_COMPILED: Final = """
    for node in nodes.node:
        if not COMPILED.intersection(node.name.split("/")[1:2]):
            node.attr["_XlaCompile"].b = False  # helpers stay out of clusters
"""
"""Slot `edits` of `BUILD`, if XLA compiles clusters."""
EDITS_NOT_COMPILED_INSIDE: Final = """
    for function in nodes.library.function:
        for node in function.node_def:
            if node.name not in COMPILED:
                node.attr["_XlaCompile"].b = False
"""
"""Slot `edits` of `BUILD`, if XLA compiles clusters in function calls."""

_COLUMNS: Final = '''
def columns(array):
    """Of each copy: its value, if <<condition>>; else it is torn."""
    array = np.asarray(array, np.float64)
    lanes = array.reshape(len(array), <<lanes>>)
    whole = (lanes == lanes[..., :1]) & (np.abs(lanes) < 2**62) & (lanes == np.trunc(lanes))
    torn = ~whole.all((1, 2))
    values = np.where(torn[:, None], 0, lanes[..., 0]).astype(np.int64).tolist()
    values = [value[0] if len(value) == 1 else tuple(value) for value in values]
    return ["torn" if bad else value for bad, value in zip(torn, values)]
'''
"""Function that takes the values of an array apart, copy by copy."""
COLUMNS_OF_LANES: Final = filled(
    _COLUMNS, condition="all lanes are alike", lanes="array.shape[1] if array.ndim > 1 else 1, -1"
)
"""`_COLUMNS` of a test with lanes: a value has a number for each row."""
COLUMNS_WHOLE: Final = filled(_COLUMNS, condition="it is made of integers", lanes="-1, 1")
"""`_COLUMNS` of a test without lanes: a value has a number for each element."""

CALLS: Final = """
    calls = {name: session.make_callable(run[f"graph {name}"]) for name in GRAPHS}
"""
"""Slot `calls` of `EXECUTE` and its like, if runs have no options and feed nothing."""
CALLS_WITH_OPTIONS: Final = """
    calls = {
        name: lambda name=name: session.run(run[f"graph {name}"], options=OPTIONS)
        for name in GRAPHS
    }
"""
"""Slot `calls`, if runs have options: `make_callable`, which is faster, takes none."""
CALLS_FED: Final = """
    calls = {
        name: lambda *values, name=name: session.run(
            run[f"graph {name}"], dict(zip(run[f"feeds {name}"], values))<<options>>
        )
        for name in GRAPHS
    }
"""
"""Slot `calls`, if runs feed values; its slot `options` is empty or gives options."""


NOT_FED: Final = {"values": "", "arguments": "", "row_values": ""}
"""Slots of `EXECUTE_RUNS` and `EXECUTE_ALONE`, if runs feed nothing."""
FED: Final = {
    "values": "values, ",
    "arguments": "*values * COPIES",
    "row_values": ", values",
}
"""The same slots, if runs feed values: all copies get the same."""
EXECUTE: Final = '''
def execute(session, run, end):
    """Execute all copies, again and again: their outcomes."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
<<calls>>
    (race,) = calls.values()
    for _ in range(STEPS):
        start()
        arrays = [*race()[:-1], *final()[:-1]]
        yield from zip(*map(columns, arrays))
        if time.monotonic() > end:
            return
'''
"""Function that executes a single run. `[:-1]` leaves out the None of the op that ends it."""
_CALL: Final = """
    def call(graph, <<values>>earlier):
        for each in earlier:
            each.result()
        return calls[graph](<<arguments>>)
"""
"""Slot `call` of `EXECUTE_RUNS` and `EXECUTE_ALONE`: executes a run, after earlier runs."""
_SUBMIT: Final = """
            runs = {}
            for name, (graph, after<<row_values>>) in RUNS.items():
                runs[name] = pool.submit(call, graph, <<values>>[runs[each] for each in after])
"""
"""Slot `submit` of both: begins all runs, as futures by the names of the runs."""
EXECUTE_RUNS: Final = filled(
    '''
def execute(session, run, end):
    """Execute all copies, each run on a thread of its own: their outcomes."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
<<calls>>

<<call>>

    with ThreadPoolExecutor(len(RUNS)) as pool:
        for _ in range(STEPS):
            start()
<<submit>>
            ended = {name: each.result() for name, each in runs.items()}
            arrays = [*(ended[name][i] for name, i in OBSERVED), *final()[:-1]]
            yield from zip(*map(columns, arrays))
            if time.monotonic() > end:
                return
''',
    call=_CALL,
    submit=_SUBMIT,
)
"""Function that executes several runs; `NOT_FED` and `FED` have its slots for fed values."""
EXECUTE_ALONE: Final = filled(
    '''
def execute(session, run, end):
    """Execute the test, each run on a thread of its own, until one is blocked."""
    start, final = map(session.make_callable, (run["start"], run["final"]))
<<calls>>

<<call>>

    # To close the session cancels what is blocked.
    with ThreadPoolExecutor(len(RUNS)) as pool, closing(session):
        for _ in range(STEPS):
            start()
<<submit>>
            done, waiting = wait(runs.values(), BLOCKED_S)
            if any(each.exception() for each in done):
                yield ("failed", *(None for _ in NAMES[1:]))
<<failed>>
            values = []
            for name, i in OBSERVED:
                values += [None] if runs[name] in waiting else columns(runs[name].result()[i])
            # What there is in the end is read before anything is cancelled.
<<contents>>
<<elements>>
            yield ("blocked" if waiting else "completed", *values)
<<finish>>
''',
    call=_CALL,
    submit=_SUBMIT,
)
"""Function that executes one copy of a test of which runs may block or fail.

What fills the slots shares local variables, in this order:

1. `calls` defines ``calls``, by graph, and ``queues`` if there are any.
2. `submit` defines ``runs``. The text after it defines ``waiting``: the futures of ``runs`` that
   are blocked.
3. `failed` follows an execution that failed.
4. The text after it begins ``values``, the outcome's values, with those that are observed.
5. `contents` appends the contents of variables. ``held`` is what ``final`` holds beyond them:
   `CONTENTS_UNSET` takes whether variables have values off it, and `CONTENTS_COUNTS` makes
   ``gradients``, by accumulator, of the rest. ``place`` is where sums belong in ``values``.
6. `elements` appends the elements of queues, and then inserts sums and counts at ``place``.
7. `finish` ends the function, or goes on.
"""
CONTENTS: Final = """
            values += [columns(array)[0] for array in final()[:-1]]
"""
"""Slot `contents` of `EXECUTE_ALONE`, if only the contents of variables are read."""
CONTENTS_AND_MORE: Final = """
            held = [columns(array)[0] for array in final()[:-1]]
            values += held[: len(VARIABLES)]
            held = held[len(VARIABLES) :]
"""
"""Slot `contents` of `EXECUTE_ALONE`, if `FINALS_THERE` or `FINALS_COUNTS` adds to it."""
CONTENTS_UNSET: Final = """
            # A variable without a value holds ().
            pairs = list(zip(values[-len(VARIABLES) :], held))
            values[-len(VARIABLES) :] = [value if there else () for value, there in pairs]
            held = held[len(VARIABLES) :]
"""
"""Slot `contents`, after `CONTENTS_AND_MORE`, if some variable has no initial value."""
CONTENTS_COUNTS: Final = """
            gradients, place = dict(zip(ACCUMULATORS, held)), len(values)
"""
"""Slot `contents`, after `CONTENTS_AND_MORE`, if there are accumulators."""
ELEMENTS_SUMS: Final = """
            # Takes that wait end when their runs are cancelled; then the rest can be taken.
<<feed>>
            if waiting:
                wait(waiting, 3 * BLOCKED_S)
            cells = []
            for name, count in gradients.items():
                total = 0
                if count and (name in KNOWN or not waiting):
                    total = columns(session.run(run[f"sum {name}"][0])[None])[0]
                elif count:
                    total = "?"
                cells += [total, count]
            values[place:place] = cells
"""
"""Slot `elements` of `EXECUTE_ALONE`, after `ELEMENTS_QUEUES`, if there are accumulators."""
FEED_UNEVEN: Final = """
            # To cancel a take deadlocks if there are enough gradients for the next take of its
            # run. So zeros are added until no take waits.
            for name, (least, most) in UNEVEN.items() if waiting else ():
                _, zero, count = run[f"sum {name}"]
                while least <= session.run(count) < most:
                    session.run(zero)
                    time.sleep(0.1)
"""
"""Slot `feed` of `ELEMENTS_SUMS`, if takes of one accumulator require different numbers."""
CALLS_OF_QUEUES: Final = """
    queues = [
        (session.make_callable(size), session.make_callable(held, [count]), halt, capacity)
        for (size, held, count, halt), (_, _, capacity, _) in (
            (run[f"queue {name}"], QUEUES[name]) for name in QUEUES
        )
    ]
"""
"""Slot `calls` of `EXECUTE_ALONE`, after the others, if there are queues."""
ELEMENTS_QUEUES: Final = """
            # To dequeue from a full queue lets a waiting enqueue go on, and what comes after it.
            # So full queues are read last; if there are several, waiting enqueues are cancelled.
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
"""Slot `elements` of `EXECUTE_ALONE`, if there are queues."""
FAILED_GOES_ON: Final = """
                if waiting or time.monotonic() > end:
                    return
                continue
"""
"""Slot `failed` of `EXECUTE_ALONE`, unless an op closes a queue."""
FAILED_ENDS: Final = """
                return
"""
"""Slot `failed` of `EXECUTE_ALONE`, if an op closes a queue."""
FINISH_IF_BLOCKED: Final = """
            if waiting or time.monotonic() > end:
                return
"""
"""Slot `finish` of `EXECUTE_ALONE`, unless an op closes a queue."""
FINISH_AT_ONCE: Final = """
            return  # with the session goes the queue that is closed now
"""
"""Slot `finish` of `EXECUTE_ALONE`, if an op closes a queue."""

FORBIDDEN_UNLESS: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it."""
    return outcome not in ALLOWED
'''
"""Function that judges, if the script lists the allowed outcomes."""
FORBIDDEN_UNLESS_UNKNOWN: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it; of "?" it is not known what it is."""
    return not any(all(a in (b, "?") for a, b in zip(outcome, each)) for each in ALLOWED)
'''
"""Function that judges, if a blocked run may leave the sum of an accumulator unknown."""
FORBIDDEN_IF: Final = '''
def forbidden(outcome):
    """Whether no order of the ops gives it, as far as it is known here."""
    return outcome in FORBIDDEN or "torn" in outcome
'''
"""Function that judges, if the script lists only the forbidden outcomes that showed."""
OUTCOMES: Final = '''
def outcomes(end):
    """Outcomes of the copies of a new graph in a new session."""
    graph, run = build()
    with tf.compat.v1.Session(graph=graph, config=config()) as session:
        yield from execute(session, run, end)
'''
"""Function that builds a graph and executes it."""
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
        verdict = "FORBIDDEN" if forbidden(outcome) else "<<verdict_else>>"
        print(f"{count:8}  {verdict:10}  {text(outcome)}")
    bad = sum(count for outcome, count in counts.items() if forbidden(outcome))
    print(f"forbidden outcomes in {bad} of {counts.total()} executions; none is allowed")
    sys.exit(1 if bad else 0)


main()
'''
"""Functions that run the script. Slot `verdict_else`: the verdict if not forbidden."""
