"""Translates a litmus test to a TensorFlow ``GraphDef``: renamed copies with noise.

Each node and edge of the test becomes one node and one edge of TensorFlow. *Helpers*
surround them: handles and index constants, which TensorFlow needs, and padding. A
helper must not order two nodes that the test leaves unordered. One rule ensures this:

    A helper has edges only to its own node and to other helpers of that node. It has
    edges only from its copy's start, from other helpers of its node, and from
    predecessors of its node in the test.

Every path between two nodes of one copy that goes through a helper is thus a path of
the test already. A copy's *start* is a NoOp that precedes its helpers, as the source of
a run precedes all its op instances. It comes after the copy before: copies run one
after the other, and no edge leads back.

Bodies
------
Loops and conditionals use TensorFlow's own control flow (Enter, Merge, Switch,
NextIteration, Exit); a critical section is a MutexLock and a ConsumeMutexLock. In a
body the *pivot* takes the place of the copy's start. It is the first carried value of
the iteration in a condition, the same value once the condition holds in a loop's body,
and the predicate in a branch. Every node of a body comes after its pivot (semantics.md,
section 3, "Loops"), so that TensorFlow executes it in that iteration.

TensorFlow would drop a node that no result of the body depends on. A loop or
conditional therefore returns a *token*, which waits for such nodes. Only the end of the
run, or of an enclosing critical section, waits for the token. No node of the test
follows a token, so that tokens add no order.

A test that may block
---------------------
Its variables also hold what its blocked runs would have returned (`_State.keep`). One more helper
of each run ends it when it is blocked (`_State.abortable`): it fails, which cancels the other ops.
It has edges from nodes that end the run only, and none to a node of the test.

Sources of different outcomes
-----------------------------
- *Sequential copies.* A thread of TensorFlow's pool takes the newest of its own closures
  and steals the oldest of others. With many concurrent copies each thread works on a
  copy of its own, and ops of one copy seldom race. With one copy at a time all threads
  compete for its ops, and rare outcomes show far more often.
- *A handle for each op, early or late.* TensorFlow treats handle ops as expensive: each
  goes to the pool as a closure of its own, and its op runs on the thread that finishes
  last. A handle that waits only for the start (early) may finish long after its op's
  predecessors, and ops of other chains can run in between. A handle that waits for those
  predecessors (late) lets the op run at once. A handle shared by several ops would run
  them one after the other. With XLA clusters ops share handles nevertheless, because XLA
  rejects two handles of one variable.
- *Padding in about half of the copies.* Padding spreads ops out, which shows rare
  orders. Without it ops collide, which shows torn values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, types_pb2

from litmusfuzz.corpus.model import (
    BranchAttrs,
    CallAttrs,
    LoopAttrs,
    NestAttrs,
    Queue,
    all_nodes,
    bodies,
    captures_of,
    first_results,
    head,
    levels,
)
from litmusfuzz.corpus.ops import BOOL, Kind, TensorType
from litmusfuzz.corpus.takes import required, steady, uneven
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow import node_defs
from litmusfuzz.fuzz.executors.tensorflow.emission import Copy, Frame
from litmusfuzz.fuzz.executors.tensorflow.functional import FunctionalCopy
from litmusfuzz.fuzz.executors.tensorflow.node_defs import Emitter, const, literal, typed
from litmusfuzz.fuzz.executors.tensorflow.python_graphs import PythonCopy, PythonGraphs
from litmusfuzz.fuzz.executors.tensorflow.traced import TracedCopy, Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from tensorflow.core.framework import node_def_pb2

    from litmusfuzz.corpus.model import Accumulator, Graph, LitmusTest, Node, Run, Variable
    from litmusfuzz.fuzz.executors.protocol import Noise

INIT: Final = "init"
RACE: Final = "race"
HOLD: Final = "hold"
ABORT: Final = "abort"
FLAG: Final = TensorType(BOOL, ())
_LAST_STEP: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Shown:
    """A tensor that a run fetches: values of one type, stacked along axis 0.

    `names` are in stacking order. Row ``i * copies + c`` is ``names[i]`` of copy c.
    """

    tensor: str
    type: TensorType
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A graph, in all its copies, of which one `Session.run` executes all or a part.

    `runs` are the test's runs of this graph, or of this part of it. Each runs `targets` and fetches
    `fetched`, then the stacks `observed`: if it names what it fetches, these tensors, copy by copy,
    and no stacks. `feeds` has for each run the arrays of the tensors `fed`.
    """

    targets: tuple[str, ...]
    graph: Graph
    runs: tuple[str, ...]
    observed: tuple[Shown, ...]
    fetched: tuple[str, ...]
    fed: tuple[str, ...]
    feeds: Mapping[str, tuple[npt.NDArray[Any], ...]]

    @property
    def target(self) -> str:
        """The only target of a run that executes its whole graph."""
        (target,) = self.targets
        return target


@dataclass(frozen=True, slots=True)
class Contents:
    """Tensors with a queue's final contents: its size in each copy, and all elements."""

    queue: Queue
    sizes: str
    elements: str


@dataclass(frozen=True, slots=True)
class Built:
    """A GraphDef, and the targets and tensors of its runs.

    A step consists of a run of target `INIT`; for each run of the test, a run of its unit; then
    runs that fetch `final` and `contents`. If ops are blocked, a run of target `HOLD` comes before
    `contents`, and one of target `ABORT` ends the step.

    If a test may block, its units may never end, and nothing is fetched from them.
    `final` then contains the observed values as well, and for each copy two flags for
    each run: whether the run has begun and whether it is done (`begun_key`, `done_key`).
    """

    graph_def: graph_pb2.GraphDef
    units: tuple[Unit, ...]
    final: tuple[Shown, ...]
    contents: tuple[Contents, ...]
    left: tuple[Shown, ...]
    """The sums of accumulators after blocked runs have been cancelled."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Where a test is added to a graph of other tests.

    `place` is the prefix of all its names, those of resources included.
    """

    graph_def: graph_pb2.GraphDef
    place: str


@dataclass(frozen=True, slots=True)
class Template:
    """A test, lowered except for names, order of creation and noise.

    `may_block` is true if the test has ops that can block, or fail; `devices` counts its CPUs.
    `uneven` holds the accumulators whose takes require different numbers of gradients, with the
    least and the most: see `LiveSession`, "Cancelled takes".
    """

    test: LitmusTest
    frame: Frame
    may_block: bool
    devices: int
    uneven: Mapping[str, tuple[int, int]]


def sum_key(run: str, take: str, accumulator: str) -> str:
    """Name among the final values of what a take has returned; with ``/kept``, whether it has."""
    return f"{run}/{take}/sum/{accumulator}"


def fed_name(copy: str, accumulator: str) -> str:
    """Name of the op that adds a zero to an accumulator of `Template.uneven`."""
    return f"{copy}/{accumulator}/fed"


def begun_key(run: str) -> str:
    """Name of the flag "this run has begun" among the final values.

    The slash keeps it apart from names of the test.
    """
    return f"{run}/begun"


def state_key(variable: str) -> str:
    """Name of the flag "this variable has a value" among the final values."""
    return f"{variable}/state"


def done_key(run: str) -> str:
    """Name of the flag "this run is done" among the final values."""
    return f"{run}/done"


def lower(test: LitmusTest) -> Template:
    """Lower the parts that all copies of a test share.

    Raises
    ------
    Refused
        If an op, device or feature is not supported; the message names it.
    """
    if test.clusters:
        raise Refused("clusters")
    if "gradients" in test.features:
        raise Refused("gradients")
    nodes = list(test.nodes)
    devices = 1
    for what, each in (
        *(("resource", resource) for resource in test.resources),
        *(("node", node) for node in nodes),
    ):
        kind, _, number = each.device.partition(":")
        if kind not in ("", "cpu"):
            raise Refused(f"device {each.device} ({what} {each.name}); only CPUs")
        devices = max(devices, 1 + int(number or 0))
    _refuse_handles(test)
    whole = (Kind.SECTION, Kind.BRANCH, Kind.LOOP, Kind.CALL, Kind.HANDLE)
    frame = Frame(
        test,
        {n.name: node_defs.line(test, n) for n in nodes if n.definition.kind not in whole},
        {resource.name: node_defs.handle(resource) for resource in test.resources},
        {resource.name: resource.device for resource in test.resources},
        first_results(test.graphs),
    )
    may_block = test.blocks or any(v.init is None for v in test.variables)
    return Template(test, frame, may_block, devices, uneven(test))


def refuse_takes(test: LitmusTest) -> None:
    """Refuse a test whose takes could not be cancelled: see `LiveSession`, "Cancelled takes".

    Raises
    ------
    Refused
        Naming the accumulator.
    """
    for name, wanted in required(test).items():
        if len(wanted) > 1 and None in wanted:
            raise Refused(f"several takes of {name}, of which one may fail or computes its number")
    puts = {node.resources[0] for node in test.nodes if node.definition.puts}
    for name in uneven(test):
        if len(puts) > 1 or not steady(test):
            raise Refused(f"takes of {name} of different numbers beside ops that free others")


_VALUES: Final = frozenset({Kind.PURE, Kind.READ, Kind.STATE, Kind.HANDLE, Kind.TRANSFER})
"""Of ops that do nothing but have a value."""


def refuse_unread(test: LitmusTest) -> None:
    """Refuse a read that may fail, and whose value nothing takes.

    Grappler's dependency optimizer leaves it out, as an op without an effect, and then nothing
    fails (docs/tensorflow.md, "What a configuration refuses").

    Raises
    ------
    Refused
        Naming the node.
    """
    empty = {each.name for each in test.variables if each.init is None}
    reads = [
        node
        for node in test.nodes
        if node.definition.kind is Kind.READ
        and (node.definition.computed or node.name in test.failing or empty & {*node.resources})
    ]
    if not reads:
        return
    keys = test.nodes_by_key()
    taken = {keys[key] for key in test.observe}
    taken.update(name for run in test.runs for name in run.fetches)
    while True:
        more = set(_taken(test, taken))
        if more <= taken:
            break
        taken |= more
    for node in reads:
        if node.name not in taken:
            raise Refused(f"a read that may fail, whose value nothing takes ({node.name})")


def _taken(test: LitmusTest, taken: set[str]) -> Iterator[str]:
    """Values that a node takes which has an effect, or a value that is `taken`.

    A branch or call takes what it returns as a taken value; a loop, all that its bodies return.
    """
    needed = set(map(head, taken))
    for node in test.nodes:
        attrs = node.attrs
        if node.name in needed or node.definition.kind not in _VALUES:
            yield from node.inputs
            yield node.handle
            yield from (outer for _, outer in captures_of(node))
        for _, body in bodies(node):
            if isinstance(attrs, BranchAttrs | CallAttrs):
                for name, result in zip(attrs.results, body.results, strict=True):
                    if f"{node.name}.{name}" in taken:
                        yield result
            else:
                yield from body.results


def _refuse_handles(test: LitmusTest) -> None:
    """Refuse an op whose shape TensorFlow cannot infer.

    Only a handle and its Identities have a shape; a Merge, and a function's argument, have none.
    """
    for graph in test.graphs:
        for level in levels(graph):
            nodes = {node.name: node for node in level.nodes}
            for node in level.nodes:
                root = nodes.get(node.handle)
                while root is not None and root.op == "Identity":
                    root = nodes.get(root.inputs[0])
                if node.handle and node.definition.nd and root is None:
                    raise Refused(f"{node.op} through a handle that is passed on ({node.name})")


def changes_handles(test: LitmusTest) -> str:
    """Name of a loop that carries other handles on than it got; "" if there is none."""
    kinds = test.types
    for node in test.nodes:
        if not isinstance(node.attrs, LoopAttrs):
            continue
        passed = {n.name: n.inputs[0] for n in node.attrs.body.nodes if n.op == "Identity"}
        for name, result in zip(node.attrs.carried, node.attrs.body.results, strict=True):
            kind = kinds[name]
            while result in passed:
                result = passed[result]
            if kind is not None and kind.is_handle and result != name:
                return node.name
    return ""


def waits_inside(test: LitmusTest) -> str:
    """Name of a loop with an op that may wait, in whatever body inside it; "" if there is none."""
    for node in test.nodes:
        inside = all_nodes([node]) if isinstance(node.attrs, LoopAttrs) else ()
        if any(each.definition.blocks for each in inside):
            return node.name
    return ""


def build(
    template: Template,
    noise: Noise,
    rng: np.random.Generator,
    *,
    share_handles: bool = False,
    sequential: bool = True,
    front_end: str = "graph",
    compiled: bool = False,
    beside: Beside | None = None,
) -> Built:
    """One graph of `noise.copies` copies, with random order of creation and padding.

    Parameters
    ----------
    template : Template
    noise : Noise
    rng : numpy.random.Generator
        Source of all random choices.
    share_handles : bool
        True if all ops of a copy that use a variable share one handle. XLA rejects a
        cluster with two ("Duplicate variable passed to XLA cluster").
    sequential : bool
        True if each copy waits for the copy before; false if most copies block.
    front_end : str
        As in `Settings`; decides how graphs and bodies are written.
    compiled : bool
        True if XLA compiles each graph as a whole; with the front end `function`.
    beside : Beside, optional
        Adds the test to a graph of other tests, in place of a graph of its own.
    """
    beside = beside or Beside(_empty(), "")
    assert not (beside.place and (template.may_block or len(template.test.runs) > 1))
    graph_def, place = beside.graph_def, beside.place
    emit = Emitter(graph_def, clustered=not place)
    test = template.test
    copies = [f"{place}c{copy}" for copy in range(noise.copies)]
    lowered = not front_end.endswith("_kernels")
    make: Callable[..., Copy] = FunctionalCopy if front_end.startswith("functional") else Copy
    if front_end in ("function", "function_kernels"):
        traces = Traces(
            test,
            graph_def.library,
            noise.padding,
            int(rng.integers(1 << 32)),
            compiled=compiled,
            lowered=lowered,
            one_handle=share_handles,
        )
        make = partial(TracedCopy, traces=traces)
    elif front_end in ("python_v1", "python_v2"):
        graphs = PythonGraphs(
            test,
            graph_def.library,
            noise.padding,
            int(rng.integers(1 << 32)),
            v2=front_end == "python_v2",
            share_handles=share_handles,
        )
        make = partial(PythonCopy, graphs=graphs)
    state = _State(emit, template, copies, rng, place)
    made_units = []
    late = _late(test)
    for name, graph, runs, prefix in units(template):
        first = next(run for run in test.runs if run.name == runs[0])
        part = test.graph_of(first) if first.wanted else None
        shown = _observed(test, runs)
        before: list[str] = []
        ends: list[str] = []
        fetched: list[str] = []  # in the order of the copies, then of the fetches
        targets: list[str] = []
        for copy in copies:
            # No name of a test begins with a dot.
            start = f"{copy}/{prefix}.{name}.start"
            emit.helper(start, node_defs.proto("NoOp"), before)
            last = make(
                emit,
                template.frame,
                f"{copy}/{prefix}",
                f"{copy}/",
                rng,
                padding=noise.padding if rng.random() < 0.5 else 0,
                shuffle=noise.shuffle,
                share_handles=share_handles,
                library=graph_def.library,
                lowered=lowered,
                part=part,
                late=late,
            ).graph(graph.nodes, f"^{start}")
            if part:
                asked = _asked(emit, f"{copy}/{prefix}", first, part, test)
                last = [f"^{each}" for each in asked]
                fetched += asked[: len(first.fetches)]
                targets += asked[len(first.fetches) :]
            if template.may_block:
                takes = [n for n in (part or graph).nodes if n.definition.takes_sum]
                last += state.keep_sums(copy, prefix, runs[0], takes)
                last = state.keep(copy, prefix, runs[0], shown, f"^{start}", last)
            before = last if sequential else []
            ends += last
        if template.may_block:
            ends += state.abortable(name, ends)
        if not part or template.may_block:
            # Every node runs: the target needs all nodes without successors, hence all nodes. Of a
            # part of a graph, it needs what the run fetches and targets.
            target = f"{place}{RACE}" if len(test.runs) == 1 else f"{RACE}/{name}"
            emit.helper(target, node_defs.proto("NoOp"), ends)
            targets = [target]
        stacks: tuple[Shown, ...] = ()
        if not part and not template.may_block:
            stacks = state.show(f"{place}observed/{name}/", shown, prefix)
        fed = [node for node in (part or graph).nodes if node.definition.fed]
        made_units.append(
            Unit(
                tuple(targets),
                graph,
                runs,
                stacks,
                tuple(f"{each}:0" for each in fetched),
                tuple(f"{copy}/{prefix}{node.name}:0" for node in fed for copy in copies),
                {
                    run.name: _feeds(test, run, fed, len(copies))
                    for run in test.runs
                    if run.name in runs
                },
            )
        )
    state.end()
    return Built(graph_def, tuple(made_units), state.final(), state.contents(), state.left())


def pack(
    templates: Sequence[Template], noise: Noise, rngs: Sequence[np.random.Generator]
) -> tuple[Built, ...]:
    """Several tests in one graph, without an edge from one to another.

    Each one's part of the graph is what `build` makes of it alone, with a prefix before all names.
    The target of its initialization is `initial_target`. XLA has nothing to do with it, and what
    each call needs says so: else TensorFlow looks at its graph for clusters, although it makes
    none, which takes a tenth of the time of making a call.
    """
    graph_def = _empty()
    built = tuple(
        build(template, noise, rng, beside=Beside(graph_def, _place(number)))
        for number, (template, rng) in enumerate(zip(templates, rngs, strict=True))
    )
    for node in graph_def.node:
        if node.op in ("NoOp", "Pack"):  # the target of a call, or what it fetches
            node.attr["_XlaAlreadyClustered"].b = True
    return built


def initial_target(number: int) -> str:
    """The target that initializes the resources of one test of a pack."""
    return f"{_place(number)}{INIT}"


def _place(number: int) -> str:
    return f"t{number}/"


def _empty() -> graph_pb2.GraphDef:
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    return graph_def


def on_workers(built: Built) -> Built:
    """The same graph with each CPU device replaced by the CPU of one gRPC worker."""
    bodies = (node for body in built.graph_def.library.function for node in body.node_def)
    for node in (*built.graph_def.node, *bodies):
        number = node.device.rpartition(":")[2] or "0"
        node.device = f"/job:worker/task:{number}/device:CPU:0"
    return built


def unobserved_copies(template: Template, copies: int) -> graph_pb2.GraphDef:
    """Concurrent copies of a test without noise or fetches, for benchmarks of TensorFlow.

    Copies do not wait for each other, and each variable has one handle. Target `INIT`
    sets the variables, `RACE` executes all copies. It takes tests of one graph without
    bodies.
    """
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION
    emit = Emitter(graph_def)
    test, frame = template.test, template.frame
    nodes = test.graph.nodes
    followed = {source for node in nodes for source in (*node.inputs, *node.after)}
    names = [f"c{copy}" for copy in range(copies)]
    for copy in names:
        for variable in test.variables:
            name = f"{copy}/{variable.name}"
            handle = emit.handle(f"{name}/handle", frame.handles[variable.name], name)
            assert variable.init is not None, variable.name
            content = literal(variable.init, variable.shape, variable.dtype, whole=test.whole)
            value = emit.node(f"{name}/init", const(content))
            emit.node(f"{name}/set", typed("AssignVariableOp", variable.dtype), (handle, value))
        for node in nodes:
            line = frame.lines[node.name]
            name = f"{copy}/{node.name}"
            inputs = [f"{copy}/{resource}/handle" for resource in node.resources]
            for position, constant in enumerate(line.constants):
                inputs.append(emit.node(f"{name}/constant{position}", constant))
            inputs += (f"{copy}/{source}" for source in node.inputs)
            inputs += (f"^{copy}/{source}" for source in node.after)
            emit.line(name, line, inputs)
    sinks = [f"^{c}/{n.name}" for c in names for n in nodes if n.name not in followed]
    emit.node(RACE, node_defs.proto("NoOp"), sinks)
    sets = [f"^{c}/{v.name}/set" for c in names for v in test.variables]
    emit.node(INIT, node_defs.proto("NoOp"), sets)
    return graph_def


def units(template: Template) -> Iterator[tuple[str, Graph, tuple[str, ...], str]]:
    """Name, graph, runs and prefix of the nodes of each unit.

    Runs that fetch and target the same nodes of a graph share a unit.

    If the test may block, each run is a unit of its own: otherwise it is unknown, after
    a step, which of two runs of one graph is done.
    """
    test = template.test
    graphs = {graph.name: graph for graph in test.graphs}
    if template.may_block:
        several = len(test.runs) > 1
        for run in test.runs:
            prefix = f"run.{run.name}/" if several else ""
            yield run.name, graphs[run.graph], (run.name,), prefix
        return
    for graph in test.graphs:
        parts: dict[tuple[str, ...], list[str]] = {}
        for run in test.runs:
            if run.graph == graph.name:
                parts.setdefault(run.wanted, []).append(run.name)
        for runs in parts.values():
            if len(parts) == 1:
                yield graph.name, graph, tuple(runs), ""
            else:
                yield runs[0], graph, tuple(runs), f"run.{runs[0]}/"


def _late(test: LitmusTest) -> frozenset[str]:
    """Loops, conditionals and calls whose results wait for all instances, in all runs alike.

    Those of a graph of which a run fetches: a node that is needed is needed whole, and TensorFlow
    leaves out what no fetched value waits for (semantics.md, 1, "Run"; 3, "Loops").
    """
    asked = {run.graph for run in test.runs if run.wanted}
    return frozenset(
        node.name
        for graph in test.graphs
        if graph.name in asked
        for node in graph.nodes
        if isinstance(node.attrs, NestAttrs)
    )


def _asked(emit: Emitter, prefix: str, run: Run, part: Graph, test: LitmusTest) -> list[str]:
    """Names of the nodes that a run fetches and targets, in one copy.

    These are nodes of the test. Where the run enters a section, the first of them waits for all
    releases, as what `tf.CriticalSection.execute` returns does (``critical_section_ops.py``):
    nothing else needs the releases.
    """
    asked = []
    for name in run.wanted:
        if name in run.fetches or test.types[name] is not None:
            asked.append(f"{prefix}{name}")
            continue
        node = next(node for node in part.nodes if node.name == name)
        whole = isinstance(node.attrs, (BranchAttrs, LoopAttrs))
        # The results of a loop or conditional all wait for all of its instances.
        asked.append(f"{prefix}{node.keys[1] if whole else name}")
    releases = [f"^{prefix}{node.name}" for node in part.nodes if node.members]
    if releases:
        kind = test.types[run.wanted[0]]
        if run.fetches:
            assert kind is not None
            copied = typed("Identity", kind.dtype)
            asked[0] = emit.helper(f"{prefix}.asked", copied, [asked[0], *releases])
        else:
            waits = [f"^{asked[0]}", *releases]
            asked[0] = emit.helper(f"{prefix}.asked", node_defs.proto("NoOp"), waits)
    return asked


def _feeds(
    test: LitmusTest, run: Run, fed: Iterable[Node], copies: int
) -> tuple[npt.NDArray[Any], ...]:
    """The values that a run feeds to placeholders, for each of them once for each copy."""
    values = dict(run.feeds)
    arrays = []
    for node in fed:
        kind = test.type_of(node.name)
        value = literal(values[node.name], kind.shape, kind.dtype, whole=test.whole)
        arrays += [np.ascontiguousarray(value).reshape(kind.shape)] * copies
    return tuple(arrays)


def observed_key(test: LitmusTest, run: str, node: str) -> str:
    """Name of a node in an outcome."""
    return node if len(test.runs) == 1 else f"{run}.{node}"


def _observed(test: LitmusTest, runs: Iterable[str]) -> tuple[tuple[TensorType, list[str]], ...]:
    """Observed nodes of a unit, grouped by type."""
    nodes = test.nodes_by_key()
    keys = {observed_key(test, run, node): node for run in runs for node in nodes.values()}
    groups: dict[TensorType, list[str]] = {}
    for node in dict.fromkeys(keys[key] for key in test.observe if key in keys):
        kind = test.types[node]
        assert kind is not None
        groups.setdefault(kind, []).append(node)
    return tuple(groups.items())


class _State:
    """Emits the nodes that set all resources before the race and read them after it."""

    def __init__(
        self,
        emit: Emitter,
        template: Template,
        copies: Sequence[str],
        rng: np.random.Generator,
        place: str,
    ) -> None:
        self.emit = emit
        self.place = place
        self.test = template.test
        self.frame = template.frame
        self.copies = copies
        self.rng = rng
        self.kept: dict[TensorType, list[str]] = {}
        self.sets: list[str] = []
        self.holds: list[str] = []
        self.aborts: list[str] = []
        self.rest: list[str] = []
        self.may_block = template.may_block
        # The test may close a queue, or `HOLD` one of several that it puts into.
        nodes = list(self.test.nodes)
        closes = any(node.definition.closes for node in nodes)
        self.puts = {node.resources[0] for node in nodes if node.definition.puts}
        self.takes = {node.resources[0] for node in nodes if node.definition.takes_sum}
        self.uneven = template.uneven
        self.renews_queues = template.may_block and (closes or len(self.puts) > 1)
        self._constants: set[str] = set()
        for variable in self.test.variables:
            self.kept.setdefault(variable.type, []).append(variable.name)
            if variable.init is None:
                self.kept.setdefault(FLAG, []).append(state_key(variable.name))
        for cell in self.test.cells:
            self.kept.setdefault(cell.type, []).append(cell.name)
        for copy in copies:
            for variable in self.test.variables:
                if variable.init is None:
                    self._uninitialized(f"{copy}/{variable.name}", variable)
                    continue
                value = literal(
                    variable.init, variable.shape, variable.dtype, whole=self.test.whole
                )
                self._variable(
                    f"{copy}/{variable.name}",
                    self.frame.handles[variable.name],
                    variable.type,
                    self._constant(f"init/{variable.name}", value),
                    variable.device,
                )
            for queue in self.test.queues:
                self._queue(copy, queue)
            for accumulator in self.test.accumulators:
                self._accumulator(copy, accumulator)

    def keep(
        self,
        copy: str,
        prefix: str,
        run: str,
        shown: Iterable[tuple[TensorType, Sequence[str]]],
        start: str,
        ends: Iterable[str],
    ) -> list[str]:
        """Store in helper variables that a run has begun, its observed values, and its end.

        Each helper variable is assigned once. It shares memory at most with the value
        assigned, as a fetched value does.
        """
        begun = self._flag(copy, begun_key(run), [start])
        waits = [begun, *ends]
        for kind, nodes in shown:
            for node in nodes:
                empty = np.broadcast_to(np.zeros((), kind.dtype), kind.shape)
                key = observed_key(self.test, run, node)
                waits.append(
                    self._assigned(f"{copy}/{key}", key, kind, empty, f"{copy}/{prefix}{node}", [])
                )
        return [self._flag(copy, done_key(run), waits)]

    def keep_sums(self, copy: str, prefix: str, run: str, takes: Iterable[Node]) -> Iterator[str]:
        """Store what takes return, of accumulators that may be fed (`LiveSession`)."""
        for node in takes:
            if (name := node.resources[0]) in self.uneven:
                kind = self.test.type_of(node.name)
                empty = np.broadcast_to(np.zeros((), kind.dtype), kind.shape)
                key = sum_key(run, node.name, name)
                value = f"{copy}/{prefix}{node.name}"
                put = self._assigned(f"{copy}/{key}", key, kind, empty, value, [])
                yield self._flag(copy, f"{key}/kept", [put])

    def abortable(self, unit: str, ends: Sequence[str]) -> list[str]:
        """Emit an op that fails if `ABORT` runs before `ends`; control inputs that wait for it.

        A run with an op that has failed cancels its other ops, blocked ones included. This op
        waits for a number: the one that the run sends after its other ends, or a NaN. It holds no
        thread while it waits, and nothing but the end of the run waits for it.
        """
        emit, name = self.emit, f"{ABORT}/{unit}"
        number = TensorType("float32", ())
        queue = node_defs.handle(Queue(f".{name}", number.dtype, number.shape, 2))
        handle = emit.handle(f"{name}/handle", queue, name)
        take = typed("QueueDequeueV2", number.dtype)
        checked = typed("CheckNumerics", number.dtype)
        checked.attr["message"].s = name.encode()
        check = emit.helper(f"{name}/check", checked, [emit.helper(f"{name}/wait", take, [handle])])
        put = typed("QueueEnqueueV2", number.dtype)
        zero = self._constant(f"{ABORT}/zero", np.array(0, number.dtype))
        ended = emit.helper(f"{name}/ended", put, [handle, zero, *ends])
        nan = self._constant(f"{ABORT}/nan", np.array(np.nan, number.dtype))
        self.aborts.append(f"^{emit.helper(f'{name}/put', put, [handle, nan])}")
        self.sets.append(f"^{self._emptied(name, handle, number.dtype)}")
        return [f"^{check}", f"^{ended}"]

    def _emptied(self, name: str, handle: str, dtype: str) -> str:
        """Emit the nodes that take all elements of a queue; the last of them."""
        old = self.emit.helper(f"{name}/old", typed("QueueSizeV2", dtype), [handle])
        take = typed("QueueDequeueManyV2", dtype)
        return self.emit.helper(f"{name}/emptied", take, [handle, old])

    def _flag(self, copy: str, key: str, waits: Sequence[str]) -> str:
        yes = self._constant("init/0/yes", np.array(1, bool))
        return self._assigned(f"{copy}/{key}", key, FLAG, np.array(0, bool), yes, waits)

    def _assigned(
        self,
        name: str,
        key: str,
        kind: TensorType,
        first: npt.NDArray[Any],
        value: str,
        waits: Sequence[str],
    ) -> str:
        """Emit a helper variable and assign `value` to it; a control input for that."""
        names = self.kept.setdefault(kind, [])
        if key not in names:
            names.append(key)
        template = typed("VarHandleOp", kind.dtype)
        shape = template.attr["shape"].shape
        shape.SetInParent()
        for extent in kind.shape:
            shape.dim.add().size = extent
        empty = self._constant(f"init/0/{kind.dtype}{'x'.join(map(str, kind.shape))}", first)
        self._variable(name, template, kind, empty, "")
        handle = self.emit.handle(f"{name}/at", template, name)
        put = typed("AssignVariableOp", kind.dtype)
        return f"^{self.emit.helper(f'{name}/put', put, [handle, value, *waits])}"

    def _variable(
        self, name: str, template: node_def_pb2.NodeDef, kind: TensorType, value: str, device: str
    ) -> None:
        emit = self.emit
        handle = emit.handle(f"{name}/handle", template, name, (), device)
        if kind.dtype != BOOL and self.rng.random() < 0.5:
            # A variable adopts the buffer of the value assigned. A constant keeps its
            # own reference, so that the first update must copy; the buffer of a
            # computed value has no other reference, so that updates work in place.
            value = emit.helper(f"{name}/owned", typed("Maximum", kind.dtype), (value, value))
        put = emit.helper(f"{name}/set", typed("AssignVariableOp", kind.dtype), (handle, value))
        emit.helper(f"{name}/get", typed("ReadVariableOp", kind.dtype), (handle,))
        self.sets.append(f"^{put}")

    def _uninitialized(self, name: str, variable: Variable) -> None:
        """Emit the nodes that destroy a variable, and that read it if it has a value."""
        emit, kind, device = self.emit, variable.type, variable.device
        template = self.frame.handles[variable.name]
        handle = emit.handle(f"{name}/handle", template, name, (), device)
        destroy = node_defs.proto("DestroyResourceOp")
        destroy.attr["ignore_lookup_error"].b = True
        self.sets.append(f"^{emit.helper(f'{name}/destroyed', destroy, (handle,))}")
        there = emit.helper(
            f"{state_key(name)}/get", node_defs.proto("VarIsInitializedOp"), (handle,)
        )
        switch = node_defs.proto("Switch")
        switch.attr["T"].type = types_pb2.DT_RESOURCE
        chosen = emit.helper(f"{name}/if_there", switch, [handle, there], device)
        read = typed("ReadVariableOp", kind.dtype)
        value = emit.helper(f"{name}/value", read, [f"{chosen}:1"])
        nothing = self._nothing(kind)
        other = typed("Switch", kind.dtype)
        nothing = emit.helper(f"{name}/if_not_there", other, [nothing, there])
        merge = typed("Merge", kind.dtype)
        merge.attr["N"].i = 2
        emit.helper(f"{name}/get", merge, [value, nothing])

    def _accumulator(self, copy: str, accumulator: Accumulator) -> None:
        """Emit the nodes that empty an accumulator, and that count and take its gradients.

        `LiveSession` says why not every copy's sum is taken.
        """
        emit, name, device = self.emit, f"{copy}/{accumulator.name}", accumulator.device
        template = self.frame.handles[accumulator.name]
        handle = emit.handle(f"{name}/handle", template, name, (), device)
        kind = accumulator.type
        apply = typed("ResourceAccumulatorApplyGradient", kind.dtype)
        take = typed("ResourceAccumulatorTakeGradient", kind.dtype)
        set_step = node_defs.proto("ResourceAccumulatorSetGlobalStep")
        nothing = self._nothing(kind)
        # A gradient that is never stale, so that there is one to take.
        latest = self._constant("accumulators/latest", np.array(_LAST_STEP, np.int64))
        first = self._constant("accumulators/first", np.array(0, np.int64))
        one = self._constant("accumulators/one", np.array(1, np.int32))
        none = self._constant("none", np.array(0, np.int32))
        if accumulator.name in self.uneven:
            emit.helper(fed_name(copy, accumulator.name), apply, [handle, latest, nothing])
        last = emit.helper(f"{name}/added", apply, [handle, latest, nothing])
        last = emit.helper(f"{name}/emptied", take, [handle, one, f"^{last}"])
        last = emit.helper(f"{name}/set", set_step, [handle, first, f"^{last}"])
        self.sets.append(f"^{last}")
        number = node_defs.proto("ResourceAccumulatorNumAccumulated")
        count = emit.helper(f"{copy}/{accumulator.count.name}/get", number, [handle])
        there = some = emit.helper(f"{name}/some", typed("Less", "int32"), [none, count])
        if accumulator.name in self.takes:
            for run in self.test.runs:
                both = [there, f"{copy}/{done_key(run.name)}/get"]
                both_true = node_defs.proto("LogicalAnd")
                there = emit.helper(f"{name}/free/{run.name}", both_true, both)
        self._taken(f"{copy}/{accumulator.sum.name}/get", accumulator, handle, there)
        if accumulator.name in self.takes:
            left = f"{copy}/{accumulator.sum.name}/left"
            self._taken(left, accumulator, handle, some)

    def _taken(self, name: str, accumulator: Accumulator, handle: str, there: str) -> None:
        """Emit a take of all gradients if the predicate `there` holds; else the sum is 0."""
        emit, kind = self.emit, accumulator.type
        switch = node_defs.proto("Switch")
        switch.attr["T"].type = types_pb2.DT_RESOURCE
        chosen = emit.helper(f"{name}/if", switch, [handle, there], accumulator.device)
        take = typed("ResourceAccumulatorTakeGradient", kind.dtype)
        one = self._constant("accumulators/one", np.array(1, np.int32))
        taken = emit.helper(f"{name}/taken", take, [f"{chosen}:1", one])
        nothing = self._nothing(kind)
        other = emit.helper(f"{name}/if_not", typed("Switch", kind.dtype), [nothing, there])
        merge = typed("Merge", kind.dtype)
        merge.attr["N"].i = 2
        emit.helper(name, merge, [taken, other])

    def _nothing(self, kind: TensorType) -> str:
        return self._constant(
            f"nothing/{kind.dtype}{'x'.join(map(str, kind.shape))}",
            np.broadcast_to(np.zeros((), kind.dtype), kind.shape),
        )

    def _queue(self, copy: str, queue: Queue) -> None:
        """Emit the nodes that empty and fill a queue, count its elements, and take them."""
        emit, name = self.emit, f"{copy}/{queue.name}"
        handle = emit.handle(
            f"{name}/handle", self.frame.handles[queue.name], name, (), queue.device
        )
        take = typed("QueueDequeueManyV2", queue.dtype)
        filled = handle
        if self.renews_queues:
            filled = last = self._renewed(name, queue)
        else:
            last = self._emptied(name, handle, queue.dtype)
        if queue.init:
            elements = [
                literal(each, queue.shape, queue.dtype, whole=self.test.whole)
                for each in queue.init
            ]
            value = self._constant(f"init/{queue.name}", np.stack(elements))
            put = typed("QueueEnqueueManyV2", queue.dtype)
            last = emit.helper(f"{name}/set", put, [filled, value, f"^{last}"])
        elif self.renews_queues:  # fails, as the enqueue does, if the new queue is not there
            last = emit.helper(f"{name}/there", typed("QueueSizeV2", queue.dtype), [filled])
        self.sets.append(f"^{last}")
        size = emit.helper(f"{name}/size", typed("QueueSizeV2", queue.dtype), [handle])
        if not self.may_block:
            emit.helper(f"{name}/elements", take, [handle, size])
            return
        if queue.name not in self.puts:  # no enqueue waits for it, whether it is full or not
            taken = emit.helper(f"{name}/elements", take, [handle, size, "^contents/counted"])
            self.rest.append(f"^{taken}")
            return
        # One of the two counts is 0. Full queues are read after all others.
        capacity = self._constant(f"capacity/{queue.capacity}", np.array(queue.capacity, np.int32))
        none = self._constant("none", np.array(0, np.int32))
        full = emit.helper(f"{name}/full", typed("Equal", "int32"), [size, capacity])
        parts = []
        for part, counts, after in (
            ("rest", (none, size), "counted"),
            ("whole", (size, none), "rest"),
        ):
            count = emit.helper(f"{name}/{part}/count", typed("Select", "int32"), [full, *counts])
            inputs = [handle, count, f"^contents/{after}"]
            parts.append(emit.helper(f"{name}/{part}", take, inputs))
        self.rest.append(f"^{name}/rest")
        self._joined(f"{name}/elements", queue, parts)
        self._held(name, queue, handle, full)

    def _renewed(self, name: str, queue: Queue) -> str:
        """Emit the nodes that replace a queue, which may be closed; the new one's handle.

        A queue stays closed as long as it exists. All its other handles find the new one.
        """
        template = self.frame.handles[queue.name]
        old = self.emit.handle(f"{name}/old", template, name, (), queue.device)
        destroy = node_defs.proto("DestroyResourceOp")
        gate = [f"^{self.emit.helper(f'{name}/destroyed', destroy, [old])}"]
        return self.emit.handle(f"{name}/new", template, name, gate, queue.device)

    def _joined(self, name: str, queue: Queue, parts: Sequence[str]) -> str:
        """Emit the concatenation of a queue's elements."""
        joined = typed("ConcatV2", queue.dtype)
        joined.attr["N"].i = len(parts)
        joined.attr["Tidx"].type = node_defs.DATA_TYPES["int32"]
        axis = self._constant("contents/axis", np.array(0, np.int32))
        return self.emit.helper(name, joined, [*parts, axis])

    def _held(self, name: str, queue: Queue, handle: str, full: str) -> None:
        """Emit a close of the queue if it is full: only then can an enqueue be blocked."""
        switch = node_defs.proto("Switch")
        switch.attr["T"].type = types_pb2.DT_RESOURCE
        chosen = self.emit.helper(f"{name}/if_full", switch, [handle, full], queue.device)
        close = node_defs.proto("QueueCloseV2")
        close.attr["cancel_pending_enqueues"].b = True
        self.holds.append(f"^{self.emit.helper(f'{name}/held', close, [f'{chosen}:1'])}")

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        name = f"{self.place}{name}"
        if name not in self._constants:
            self._constants.add(name)
            self.emit.helper(name, const(value))
        return name

    def end(self) -> None:
        """Emit the targets: `INIT` sets all resources, `HOLD` ends blocked enqueues."""
        self.emit.helper(f"{self.place}{INIT}", node_defs.proto("NoOp"), self.sets)
        if self.holds:
            self.emit.helper(HOLD, node_defs.proto("NoOp"), self.holds)
        if self.aborts:
            self.emit.helper(ABORT, node_defs.proto("NoOp"), self.aborts)

    def final(self) -> tuple[Shown, ...]:
        """Emit the stacks of all variables, helper variables included."""
        stacks = []
        for position, (kind, names) in enumerate(self.kept.items()):
            tensor = self._stack(f"{self.place}final{position}", kind, [f"{n}/get" for n in names])
            stacks.append(Shown(f"{tensor}:0", kind, tuple(names)))
        return tuple(stacks)

    def left(self) -> tuple[Shown, ...]:
        """Emit the stacks of what cancelled takes leave in their accumulators."""
        stacks = []
        for each in self.test.accumulators:
            if each.name in self.takes:
                cell = each.sum
                tensor = self._stack(f"left/{each.name}", cell.type, [f"{cell.name}/left"])
                stacks.append(Shown(f"{tensor}:0", cell.type, (cell.name,)))
        return tuple(stacks)

    def show(
        self, name: str, groups: Iterable[tuple[TensorType, list[str]]], prefix: str
    ) -> tuple[Shown, ...]:
        """Emit the stacks of the observed values."""
        stacks = []
        for position, (kind, names) in enumerate(groups):
            tensor = self._stack(f"{name}{position}", kind, [f"{prefix}{n}" for n in names])
            stacks.append(Shown(f"{tensor}:0", kind, tuple(names)))
        return tuple(stacks)

    def _stack(self, name: str, kind: TensorType, values: Sequence[str]) -> str:
        template = typed("Pack", kind.dtype)
        template.attr["N"].i = len(values) * len(self.copies)
        inputs = (f"{copy}/{value}" for value in values for copy in self.copies)
        return self.emit.helper(name, template, inputs)

    def contents(self) -> tuple[Contents, ...]:
        """Emit the contents of all queues; those of one queue are concatenated copy by copy."""
        if not self.test.queues:
            return ()
        found = []
        count = TensorType("int32", ())
        # If ops may be blocked, variables are read and all queues counted before one is emptied.
        before = [f"^{self.place}final{position}" for position, _ in enumerate(self.kept)]
        before += (
            f"^{copy}/{queue.name}/size" for copy in self.copies for queue in self.test.queues
        )
        self.emit.helper("contents/counted", node_defs.proto("NoOp"), before)
        if self.may_block:
            self.emit.helper("contents/rest", node_defs.proto("NoOp"), self.rest)
        for queue in self.test.queues:
            counts = self._stack(f"contents/{queue.name}/sizes", count, [f"{queue.name}/size"])
            elements = f"{self.copies[0]}/{queue.name}/elements"
            if len(self.copies) > 1:
                parts = [f"{copy}/{queue.name}/elements" for copy in self.copies]
                elements = self._joined(f"contents/{queue.name}/elements", queue, parts)
            found.append(Contents(queue, f"{counts}:0", f"{elements}:0"))
        return tuple(found)
