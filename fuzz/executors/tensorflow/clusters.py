"""Clusters that TensorFlow made for XLA, read from the graphs that it dumps.

With ``TF_CPP_VMODULE=encapsulate_subgraphs_pass=1`` TensorFlow writes each graph after it has
put clusters into functions (``encapsulate_subgraphs_after*``). That is the graph that runs: a
cluster is one node in it, and the function that the node calls holds the members. TensorFlow
does so when a callable of the session is made, before any run. A dump needs no parsing of text
(``TF_DUMP_GRAPH_FMT=BIN``).

Each copy of the test has clusters of its own, and is read for itself:

- *Members* are the nodes of the test in the function. TensorFlow clones a constant
  (``NODE/clone_N``) so that each consumer has its own. Such a constant is a member only if all
  its consumers are in the cluster: other consumers do not wait for the cluster. TensorFlow merges
  equal nodes: one that is gone belongs to the cluster in which it is computed. Helper nodes,
  such as arguments and index constants, are dropped: they touch no resource.
  A cluster may hold ops of several copies. The ops of one copy are then a cluster of the test:
  copies share no variables. Only where a test may block can one copy hold up another.
- *SSA order* is the order in which XLA's compiler translates the function (`translation_order`).
- Functions of loops and conditionals that TensorFlow has *lowered* are inlined: the names of
  their nodes then begin with those of the calls.
- *Order between clusters and other nodes*: what the graph given to TensorFlow orders must be
  ordered in the graph that runs. A pair that is not is *lost*.
"""

from __future__ import annotations

import heapq
import itertools
import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tensorflow.core.framework import graph_pb2
from tensorflow.io import gfile

from litmusfuzz.corpus.model import all_nodes, bodies, captures_of, head
from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.protocol import ChosenClusters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    from tensorflow.core.framework import function_pb2, node_def_pb2

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
    from litmusfuzz.fuzz.executors.tensorflow.lowering import Built, Template, Unit

_FORMAT: Final = {"TF_DUMP_GRAPH_FMT": "BIN"}
_NUMBERS: Final = itertools.count()
"""Of folders with dumps."""
_LOCKS: Final = frozenset({"MutexLock", "ConsumeMutexLock"})
"""Ops of helpers whose order counts as that of the test's ops does: they say who holds a mutex."""
_LOOPS: Final = frozenset({"LoopCond", "NextIteration", "Exit"})
"""Their order counts where an op of the test comes after them, perhaps in the next iteration: they
decide which instances there are."""
_FUNCTIONAL: Final = frozenset({"If", "While"})
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BODIES: Final = frozenset({"calls", "conditionals", "loops"})
_OF_A_COPY: Final = re.compile(r"c\d+/")
_INLINED: Final = re.compile(r".*/_\d+/(c\d+/.*)|(c\d+/).*/(?P<again>\2.*)")
"""A node of a body, or of a call, whose names begin with their copy as well."""
_BUILT: Final = re.compile(r"(c\d+/(?:run\.\w+/)?)\.\w+\.(?:call|built)/(\w+)")
_UNNAMED: Final = re.compile(
    r"(Const|Digamma|Identity|NoOp|VarHandleOp|given)(_\d+)?", re.IGNORECASE
)
"""What TensorFlow calls nodes that Python code gives no name, and a function's arguments."""
MAX_LOST: Final = 16
"""Pairs whose order is lost that are reported, of each copy."""

NO_OP: Final = "a write of the test, or an op on a queue or mutex, is not in the graph that runs"
NO_GRAPH: Final = "TensorFlow dumped no graph of a run"
BODY: Final = "a body that runs as a function"
BUILT: Final = "a body in a graph that Python code or a tf.function builds"
UNNAMED: Final = "a node that is called as TensorFlow calls nodes without a name"
NO_VALUE: Final = "variables without a value"
ALIKE: Final = "nodes of a graph built in Python whose names differ in upper and lower case alone"
PARTS: Final = "runs that execute different parts of one graph"
SEVERAL_COPIES: Final = "a cluster of several copies of a test that may block"
SEVERAL_RUNS: Final = "different clusters in the runs of one graph"


def not_read(test: LitmusTest, settings: Settings) -> str:
    """Why the clusters of a test are not read, as one of a few sentences; "" if they are."""
    if "uninitialized variables" in test.features:
        return NO_VALUE
    for graph in test.graphs:
        if len({run.wanted for run in test.runs if run.graph == graph.name}) > 1:
            return PARTS
    if is_built(settings):
        if _BODIES & test.features:
            return BUILT
        if any(_UNNAMED.fullmatch(node.name) for node in test.nodes):
            return UNNAMED
        if len({node.name.lower() for node in test.nodes}) < len(test.nodes):
            return ALIKE
    return ""


def is_built(settings: Settings) -> bool:
    """True if Python code or a `tf.function` builds the graph."""
    return settings.traced or settings.front_end.startswith("python")


@contextmanager
def dumping() -> Iterator[str]:
    """Context manager: a folder into which TensorFlow dumps graphs.

    It is in the memory of the process, in TensorFlow's file system for that. On a disk, to write
    and delete some 16 files takes a twentieth of the time of a test, and a process that is killed
    would leave them behind.

    It must be entered while no thread of TensorFlow works: TensorFlow reads the folder from the
    environment of the process.
    """
    folder = f"ram://{next(_NUMBERS)}.clusters"  # no name begins with another one
    set_here = {**_FORMAT, "TF_DUMP_GRAPH_PREFIX": folder}
    os.environ.update(set_here)
    try:
        yield folder
    finally:
        for name in set_here:
            del os.environ[name]
        if gfile.exists(folder):
            gfile.rmtree(folder)


def read(
    template: Template,
    built: Built,
    folder: str,
    copies: int,
    names: Set[str],
    settings: Settings,
) -> list[ChosenClusters]:
    """The distinct clusterings of the copies of a test; the most frequent first.

    Parameters
    ----------
    template : Template
    built : Built
        The graph that was given to TensorFlow.
    folder : str
        Contains the dumps of a session over that graph.
    copies : int
        Number of copies in `built`.
    names : set of str
        Nodes of the test as it was given to the executor, which may have added transfers.
    settings : Settings
        Whether lost orders are looked for depends on the front end: in a graph that Python code
        builds, the test's ops stand between others, whose edges are not looked at.
    """
    graphs = _dumped(folder)
    found: Counter[ChosenClusters] = Counter()
    given = _Graph() if is_built(settings) else _Graph.of(Flattening(built.graph_def).nodes())
    units = [_ReadUnit.of(template, unit, given, graphs) for unit in built.units]
    for copy in range(copies):
        read_of_copy = _joined([unit.copy(f"c{copy}/", names) for unit in units])
        found[replace(read_of_copy, in_functions=settings.traced)] += 1
    return [chosen for chosen, _ in found.most_common()]


def translation_order(nodes: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Nodes of a cluster in the order in which XLA's compiler translates them.

    It is the reverse post-order of a depth-first search from the source node; the
    successors of a node are visited by name, last to first (``GraphCompiler::Compile``:
    "XLA requires determinism, generate a stable ordering from DFS"). This function is
    our own implementation; `tests/executors/test_tensorflow_clusters.py` compares it
    with the graphs that XLA dumps, and with the values that TensorFlow's clusters compute.

    Parameters
    ----------
    nodes : iterable of (str, iterable of str)
        Names, each with its inputs as in a GraphDef.
    """
    source = ""
    followers: dict[str, set[str]] = {}
    for node, edges in nodes:
        for each in {_tail(edge) for edge in edges} or {source}:
            followers.setdefault(each, set()).add(node)
    left: list[str] = []
    seen: set[str] = set()
    stack = [(source, False)]
    while stack:
        name, leave = stack.pop()
        if leave:
            left.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack += ((follower, False) for follower in sorted(followers.get(name, ())))
    return left[-2::-1]  # without the source


def of_function(function: function_pb2.FunctionDef) -> Iterator[tuple[str, list[str]]]:
    """Nodes of a cluster's function with their inputs, its arguments and results included."""
    for argument in function.signature.input_arg:
        yield argument.name, []
    for node in function.node_def:
        yield node.name, list(node.input)
    for result in function.signature.output_arg:
        yield result.name, [function.ret[result.name]]


@dataclass(slots=True)
class _Graph:
    """Ops and inputs of the nodes of a graph, by name."""

    ops: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    """Without those that come from the iteration before."""
    repeated: dict[str, list[str]] = field(default_factory=dict)
    """The others, of Merge nodes."""

    @classmethod
    def of(cls, nodes: Iterable[tuple[str, str, Iterable[str]]]) -> _Graph:
        """The graph of these nodes, each with its inputs."""
        made = cls()
        for name, op, sources in nodes:
            made.ops[name] = op
            made.inputs[name] = list(sources)
        for name, op in made.ops.items():
            if op == "Merge":
                given = made.inputs[name]
                made.repeated[name] = [e for e in given if made.ops.get(e) == "NextIteration"]
                made.inputs[name] = [e for e in given if e not in made.repeated[name]]
        return made

    def leading_to(self, names: Iterable[str]) -> set[str]:
        """The nodes with a path to one of these, through later iterations as well."""
        left = list(names)
        found = set(left)
        for name in left:  # grows
            new = {*self.inputs.get(name, ()), *self.repeated.get(name, ())} - found
            found |= new
            left += new
        return found

    def before(self, marked: Mapping[str, int]) -> dict[str, int]:
        """For each node, the set of marked nodes with a path to it, as a mask of their bits."""
        missing: dict[str, int] = {}
        followers: dict[str, list[str]] = {}
        masks = dict.fromkeys(self.inputs, 0)
        for name, edges in self.inputs.items():
            there = [each for each in edges if each in masks]
            missing[name] = len(there)
            for each in there:
                followers.setdefault(each, []).append(name)
        ready = [name for name, count in missing.items() if not count]
        for name in ready:  # grows
            mask = masks[name] | marked.get(name, 0)
            for each in followers.get(name, ()):
                masks[each] |= mask
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)
        return masks


_Edges = Mapping[str, str]
"""By the name of a body's argument, what it stands for."""


@dataclass(frozen=True, slots=True)
class Flattening:
    """A graph in which bodies that are functions stand in place of their While and If nodes.

    It has the order that TensorFlow's lowering keeps: a body's node waits for those arguments that
    it takes, and for the predicate; each result leaves by itself.
    """

    graph: graph_pb2.GraphDef

    def nodes(self) -> Iterator[tuple[str, str, list[str]]]:
        """Name, op and inputs of each node; an output of a While or If is a node of its own."""
        yield from self._level(self.graph.node, "", {})

    def _level(
        self, nodes: Iterable[node_def_pb2.NodeDef], function: str, arguments: _Edges
    ) -> Iterator[tuple[str, str, list[str]]]:
        ops = {node.name: node.op for node in nodes}
        for node in nodes:
            sources = [self._source(edge, ops, function, arguments) for edge in node.input]
            if node.op in _FUNCTIONAL:
                made = self._loop if node.op == "While" else self._branch
                yield from made(node, sources)
            elif node.op in _CALLS:
                yield from self._called(node, sources)
            else:
                yield _inside(function, node.name), node.op, sources

    def _source(self, edge: str, ops: _Edges, function: str, arguments: _Edges) -> str:
        """The node that an edge comes from."""
        name, *output = edge.lstrip("^").split(":")
        if name in arguments:
            return arguments[name]
        if ops.get(name) in _FUNCTIONAL | _CALLS and edge[0] != "^":
            return f"{name}:{output[-1] if output else 0}"
        return _inside(function, name)

    def _body(
        self, name: str, arguments: Sequence[str], results: list[str]
    ) -> Iterator[tuple[str, str, list[str]]]:
        """The nodes of a body; its results are appended to `results`."""
        function = next(f for f in self.graph.library.function if f.signature.name == name)
        given = dict(zip((a.name for a in function.signature.input_arg), arguments, strict=True))
        yield from self._level(function.node_def, name, given)
        ops = {node.name: node.op for node in function.node_def}
        edges = (function.ret[each.name] for each in function.signature.output_arg)
        results += (self._source(edge, ops, name, given) for edge in edges)

    def _called(
        self, node: node_def_pb2.NodeDef, sources: list[str]
    ) -> Iterator[tuple[str, str, list[str]]]:
        """A call; what follows it by a control edge waits for the function's control outputs.

        It waits for no argument that the body does not need, nor for what only the call waits for.
        """
        name = node.attr["f"].func.name
        data = [each for edge, each in zip(node.input, sources, strict=True) if edge[0] != "^"]
        results: list[str] = []
        yield from self._body(name, data, results)
        for place, result in enumerate(results):
            yield f"{node.name}:{place}", "Identity", [result]
        function = next(f for f in self.graph.library.function if f.signature.name == name)
        ends = [_inside(name, each) for each in function.control_ret.values()]
        yield node.name, node.op, ends

    def _loop(
        self, node: node_def_pb2.NodeDef, sources: list[str]
    ) -> Iterator[tuple[str, str, list[str]]]:
        again = [f"{node.name}/again/{place}" for place, _ in enumerate(sources)]
        for name, source in zip(again, sources, strict=True):
            yield name, "Merge", [source]
        goes_on: list[str] = []
        yield from self._body(node.attr["cond"].func.name, again, goes_on)
        into = [f"{node.name}/into/{place}" for place, _ in enumerate(sources)]
        outputs = [f"{node.name}:{place}" for place, _ in enumerate(sources)]
        for carried, inner, output in zip(again, into, outputs, strict=True):
            yield inner, "Switch", [carried, *goes_on]
            yield output, "Exit", [carried, *goes_on]
        yield from self._body(node.attr["body"].func.name, into, [])
        yield node.name, node.op, outputs

    def _branch(
        self, node: node_def_pb2.NodeDef, sources: list[str]
    ) -> Iterator[tuple[str, str, list[str]]]:
        predicate, *values = sources
        into = [f"{node.name}/into/{place}" for place, _ in enumerate(values)]
        for name, source in zip(into, values, strict=True):
            yield name, "Switch", [source, predicate]
        then: list[str] = []
        other: list[str] = []
        yield from self._body(node.attr["then_branch"].func.name, into, then)
        yield from self._body(node.attr["else_branch"].func.name, into, other)
        outputs = [f"{node.name}:{place}" for place, _ in enumerate(then)]
        for output, results in zip(outputs, zip(then, other, strict=True), strict=True):
            yield output, "Merge", list(results)
        yield node.name, node.op, outputs


@dataclass(slots=True)
class _Read:
    """Clusters of one copy of one graph."""

    clusters: list[tuple[str, ...]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _ReadUnit:
    """One graph of the test, in all copies, as it was given to TensorFlow and as it runs.

    `home` is the cluster of each node that is in one, `order` the place of each in it; `mixed`
    are the clusters with ops on resources of several copies. `given` and `runs` are masks of the
    nodes of `bits` before each node; in the graph that runs, a cluster stands for its members.
    """

    unit: Unit
    prefix: str
    nodes: Mapping[str, Node]
    level: Sequence[Node] = ()
    """What the runs execute of the graph itself, without bodies."""
    may_block: bool = False
    problem: str = ""
    graph: _Graph = field(default_factory=_Graph)
    home: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, int] = field(default_factory=dict)
    cloned: frozenset[str] = frozenset()
    mixed: frozenset[str] = frozenset()
    bits: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, template: Template, unit: Unit, given: _Graph, graphs: Iterable[graph_pb2.GraphDef]
    ) -> _ReadUnit:
        test = template.test
        prefix = f"run.{unit.runs[0]}/" if template.may_block and len(test.runs) > 1 else ""
        run = next(each for each in test.runs if each.name == unit.runs[0])
        level = test.graph_of(run).nodes
        nodes = {node.name: node for node in all_nodes(level)}
        asked = {*unit.targets, *(each.partition(":")[0] for each in unit.fetched)}
        dumped = next((g for g in graphs if asked & _names(g)), None)
        calls = {node.op: node.name for node in dumped.node} if dumped else {}
        if dumped is None:
            return cls(unit, prefix, nodes, level, problem=NO_GRAPH)
        inside = (
            n.op for f in dumped.library.function for n in f.node_def if f.signature.name in calls
        )
        if not _FUNCTIONAL.isdisjoint((*calls, *inside)):
            return cls(unit, prefix, nodes, level, problem=BODY)
        home: dict[str, str] = {}
        order: dict[str, int] = {}
        cloned: set[str] = set()
        copies: dict[str, set[str]] = {}
        for function in dumped.library.function:
            call = calls.get(function.signature.name)
            if call is None:
                continue
            for place, name in enumerate(translation_order(of_function(function))):
                order[_as_given(name)] = place
            for proto in function.node_def:
                name, clone, _ = _as_given(proto.name).partition("/clone_")
                home[name] = call
                cloned.update([name] if clone else [])
                copy, _, rest = name.partition("/")
                node = nodes.get(rest.removeprefix(prefix))
                if node is not None and node.resources:
                    copies.setdefault(call, set()).add(copy)
        names = [_as_given(node.name) for node in dumped.node]
        cloned.update(name.partition("/clone_")[0] for name in names if "/clone_" in name)
        graph = _Graph.of(
            (name, node.op, (_as_given(_tail(edge)) for edge in node.input))
            for name, node in zip(names, dumped.node, strict=True)
        )
        present = [name for name in given.ops if name in graph.ops or name in home]
        counted = [
            name for name in present if given.ops[name] in _LOCKS or _is_op(nodes, prefix, name)
        ]
        before_ops = graph.leading_to(home.get(name, name) for name in counted)
        counted += [
            name
            for name in present
            if given.ops[name] in _LOOPS and home.get(name, name) in before_ops
        ]
        bits = {name: 1 << place for place, name in enumerate(counted)}
        marked: dict[str, int] = {}
        for name, bit in bits.items():
            marked[home.get(name, name)] = marked.get(home.get(name, name), 0) | bit
        return cls(
            unit=unit,
            prefix=prefix,
            nodes=nodes,
            level=level,
            may_block=template.may_block,
            graph=graph,
            home=home,
            order=order,
            cloned=frozenset(cloned),
            mixed=frozenset(call for call, those in copies.items() if len(those) > 1),
            bits=bits,
            given=given.before(bits),
            runs=graph.before(marked),
        )

    def copy(self, copy: str, known: Set[str]) -> _Read:
        """The clusters of one copy, of the known nodes."""
        if self.problem:
            return _Read(problem=self.problem)
        full = {name: f"{copy}{self.prefix}{name}" for name in self.nodes}
        for node in self.level:  # TensorFlow drops what stands in a body that never runs
            there = full[node.name] in self.graph.ops or full[node.name] in self.home
            if node.resources and not there and node.definition.kind is not Kind.READ:
                return _Read(problem=NO_OP)
        home = {
            name: self.home[full[name]]
            for name, node in self.nodes.items()
            if full[name] in self.home and not (node.members or bodies(node))
        }
        if self.may_block and self.mixed.intersection(home.values()):
            return _Read(problem=SEVERAL_COPIES)
        consumers = _consumers(self.level)
        members: dict[str, list[str]] = {}
        self._place_constants(home, full, consumers)
        self._place_merged(home, full, consumers)
        for name in self.nodes:
            if name in home:
                members.setdefault(home[name], []).append(name)
        rank = {name: self.order[at] for name, at in full.items() if at in self.order}
        found = _Read()
        for names in members.values():
            order = _in_order([self.nodes[name] for name in names], rank)
            cluster = tuple(name for name in order if name in known)
            found.clusters += [cluster] if cluster else []
        at_home = {at: name for name, at in full.items()}
        found.lost += (
            pair for pair in self._lost(copy + self.prefix, at_home) if known >= set(pair)
        )
        return found

    def _place_constants(
        self, home: dict[str, str], full: Mapping[str, str], consumers: Mapping[str, set[str]]
    ) -> None:
        """Take a constant out of its cluster if one of its consumers does not wait for that.

        Such a consumer has a clone of the constant or, if the constant was merged with equal
        ones, or the consumer was simplified, no need of it.
        """
        for name in [each for each, node in self.nodes.items() if node.op == "Const"]:
            above = home.get(name, "")
            homes = {home.get(each, "") for each in consumers.get(name, ())}
            if full[name] in self.cloned:
                if len(homes) == 1 and "" not in homes:
                    home[name] = homes.pop()
                else:
                    home.pop(name, None)
            elif not all(
                self._waits(full[each], above)
                for each in consumers.get(name, ())
                if each and not bodies(self.nodes[each])
            ):
                home.pop(name, None)

    def _waits(self, name: str, cluster: str) -> bool:
        """True if a node is in a cluster, or takes something from it."""
        at = self.home.get(name, name)
        return at == cluster or cluster in self.graph.inputs.get(at, ())

    def _place_merged(
        self, home: dict[str, str], full: Mapping[str, str], consumers: Mapping[str, set[str]]
    ) -> None:
        """Find clusters for nodes that TensorFlow has merged with equal ones, folded, or dropped.

        These are pure nodes, and reads whose values nobody needs. Such a node is computed with a
        cluster that computes what it needs and what needs it. Else it is in none: then it waits
        for no cluster that its operands do not wait for.
        """
        gone = {
            name
            for name, at in full.items()
            if at not in self.graph.ops
            and at not in self.home
            and at not in self.cloned
            and not (self.nodes[name].members or bodies(self.nodes[name]))
        }
        for name in (each for each in self.nodes if each in gone):
            above = {home[source] for source in self.nodes[name].sources if source in home}
            below: set[str] = set()
            seen: set[str] = set()
            left = [name] if above else []
            while left:
                for each in consumers.get(left.pop(), set()) - seen:
                    seen.add(each)
                    below.add(home.get(each, ""))
                    left += [each] if each in gone else []
            if both := above & below:
                home[name] = min(both)

    def _lost(self, prefix: str, names: Mapping[str, str]) -> list[tuple[str, str]]:
        """Pairs of nodes of a copy that are ordered in the graph given, but not as it runs."""
        lost: list[tuple[str, str]] = []
        here = {name: bit for name, bit in self.bits.items() if name.startswith(prefix)}
        for later in here:
            at = self.home.get(later, later)
            missing = self.given[later] & ~self.runs[at]
            for earlier, bit in here.items() if missing else ():
                if missing & bit and not self._kept_inside(earlier, later, names):
                    pair = (_shown(earlier, prefix, names), _shown(later, prefix, names))
                    lost.append(pair)
                    if len(lost) == MAX_LOST:
                        return lost
        return lost

    def _kept_inside(self, earlier: str, later: str, names: Mapping[str, str]) -> bool:
        """True for two members of one cluster that it keeps in order, or two that only read."""
        at = self.home.get(later)
        if at is None or self.home.get(earlier) != at:
            return False
        kinds = [self.nodes[names[each]].definition.kind for each in (earlier, later)]
        return kinds == [Kind.READ, Kind.READ] or self.order[earlier] < self.order[later]


def _dumped(folder: str) -> list[graph_pb2.GraphDef]:
    """All dumped graphs in which clusters are functions."""
    graphs = []
    for path in sorted(gfile.glob(f"{folder}/encapsulate_subgraphs_after*.pb")):
        with gfile.GFile(path, "rb") as file:
            graphs.append(graph_pb2.GraphDef.FromString(file.read()))
    return graphs


def _joined(units: Sequence[_Read]) -> ChosenClusters:
    """The clusters of one copy of a test, from those of its graphs.

    Where each run has a graph of its own, the runs of one graph of the test must have the same
    clusters: a test has no others.
    """
    problem = next((unit.problem for unit in units if unit.problem), "")
    clusters: list[tuple[str, ...]] = []
    for unit in units:
        taken = {name for each in clusters for name in each}
        for each in unit.clusters:
            if each not in clusters:
                clusters.append(each)
                if taken.intersection(each):
                    problem = problem or SEVERAL_RUNS
    if problem:
        return ChosenClusters((), (), problem)
    lost = dict.fromkeys(pair for unit in units for pair in unit.lost)
    return ChosenClusters(tuple(clusters), tuple(lost)[:MAX_LOST])


def _is_op(nodes: Mapping[str, Node], prefix: str, name: str) -> bool:
    """True if a name is that of an op of the test on a resource, in some copy."""
    _, _, rest = name.partition("/")
    node = nodes.get(rest.removeprefix(prefix))
    return node is not None and bool(node.resources)


def _shown(name: str, prefix: str, names: Mapping[str, str]) -> str:
    """The node of the test that a node of TensorFlow's graph belongs to."""
    if name in names:
        return names[name]
    parts = name.removeprefix(prefix).split("/")
    return parts[0].partition(".")[0]


def _consumers(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """The nodes that use each value; a body that has it as a result counts as one, named ""."""
    found: dict[str, set[str]] = {}
    for node in all_nodes(nodes):
        outer = (outside for _, outside in captures_of(node))
        for name in (*node.edges, *outer):
            found.setdefault(head(name), set()).add(node.name)
        for name in (each for _, body in bodies(node) for each in body.results):
            found.setdefault(head(name), set()).add("")
    return found


def _inside(function: str, name: str) -> str:
    """Name of a function's node in a flat graph; nodes of the test have one name anywhere."""
    return f"{function}/{name}" if function and not _OF_A_COPY.match(name) else name


def _as_given(name: str) -> str:
    """Name of a node before TensorFlow inlined the function that it stands in.

    Of a graph that Python code has built, the name that the node has in the graph of the test.
    """
    if built := _BUILT.fullmatch(name.partition("/clone_")[0]):
        return f"{built[1]}{built[2]}{''.join(name.partition('/clone_')[1:])}"
    found = _INLINED.fullmatch(name)
    return (found["again"] or found[1]) if found else name


def _names(graph: graph_pb2.GraphDef) -> set[str]:
    """Names of the nodes of a graph, and of those in its clusters."""
    names = {node.name for node in graph.node}
    calls = {node.op for node in graph.node}
    return names.union(
        _as_given(node.name)
        for function in graph.library.function
        if function.signature.name in calls
        for node in function.node_def
    )


def _tail(edge: str) -> str:
    """The node that an input of a NodeDef comes from."""
    return edge.lstrip("^").partition(":")[0]


def _in_order(members: list[Node], rank: Mapping[str, int]) -> tuple[str, ...]:
    """A topological order of the members; the lower rank goes first among ready nodes.

    A member without a rank is a cloned constant, and goes as early as possible.
    """
    names = {node.name for node in members}
    waits = {node.name: names.intersection(node.edges) for node in members}
    ready = [(rank.get(name, -1), name) for name, above in waits.items() if not above]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, done = heapq.heappop(ready)
        order.append(done)
        for name, above in waits.items():
            if done in above:
                above.remove(done)
                if not above:
                    heapq.heappush(ready, (rank.get(name, -1), name))
    return tuple(order)
