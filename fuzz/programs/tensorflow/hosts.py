"""Hosts that run a program with gates in it: functions as calls, graphs in sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.effects import HANDLES
from litmusfuzz.fuzz.programs.expansion import output_of
from litmusfuzz.fuzz.programs.tensorflow import reading
from litmusfuzz.fuzz.programs.tensorflow.gates import NotShown, Step, Surgeon, seed, way_to
from litmusfuzz.fuzz.programs.tensorflow.run_inputs import RunInput, UserValues
from litmusfuzz.fuzz.programs.tensorflow.showing import (
    Host,
    Label,
    Observed,
    Prepared,
    shown,
    side_names,
)
from litmusfuzz.fuzz.programs.tensorflow.tensor_values import as_array
from litmusfuzz.fuzz.programs.tensorflow.time_limit import failure, within_time
from litmusfuzz.reports.checked import ReportedShowing
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from litmusfuzz.fuzz.programs.anomalies import Scenario, Site
    from litmusfuzz.fuzz.programs.checking import CheckedAnomaly
    from litmusfuzz.fuzz.programs.program import Entry, Program, Resource
    from litmusfuzz.fuzz.programs.tensorflow.gates import Gate
    from litmusfuzz.fuzz.programs.tensorflow.modules import Live
    from litmusfuzz.reports.checked import CheckReport, ReportedAnomaly

Gates = Sequence[tuple["Site", "Gate"]]
_OPAQUE: Final = (20, 21)
"""DT_RESOURCE and DT_VARIANT: they have no value to print."""


def with_showings(
    report: CheckReport,
    found: Sequence[CheckedAnomaly],
    live: Live,
    values: Mapping[str, str] = MappingProxyType({}),
) -> CheckReport:
    """A report with the two orders of each anomaly shown, or why they are not: Ctrl-C, for example.

    Parameters
    ----------
    report : CheckReport
    found : sequence of CheckedAnomaly
        The report's, in the same order.
    live : Live
        What the report is about. It is executed.
    values : mapping of str to str
        The user's values of inputs (`UserValues`).

    Raises
    ------
    ProgramError
        If such a value fits no input.
    """
    host = host_of(live)
    user_values = UserValues(values)
    anomalies: list[ReportedAnomaly] = []
    interrupted = ""
    for each, source in zip(report.anomalies, found, strict=True):
        showing = ReportedShowing((), {}, why_not="interrupted")
        if not interrupted:
            try:
                showing = shown(host, source, user_values)
            except KeyboardInterrupt:
                number = counted(len(found), "anomaly").replace("anomalys", "anomalies")
                interrupted = f"interrupted after showing {len(anomalies)} of {number}"
        anomalies.append(replace(each, showing=showing))
    if not interrupted:
        user_values.check()
    return replace(report, anomalies=tuple(anomalies), interrupted=interrupted)


def host_of(live: Live) -> Host:
    """A host for a program."""
    if live.functions:
        return FunctionHost(live)
    if live.file:
        return GraphHost(live.program, reading.graph_of(live.file))
    return GraphHost(live.program, live.graph.as_graph_def())


def _seeded(definition: Any) -> Any:
    """A GraphDef with seeds for all random ops, those that set variables included."""
    made = type(definition)()
    made.CopyFrom(definition)
    numbers = count(1)
    for each in (made.node, *(function.node_def for function in made.library.function)):
        for node in each:
            seed(node, numbers)
    return made


def _way(program: Program, scenario: Scenario, site: Site) -> tuple[Entry, tuple[Step, ...]]:
    """The run of a site, and the way to its access."""
    name = scenario.sides[site.side].run.name
    entry = next(each for each in program.entries if each.name == name)
    function = program.functions[entry.function] if entry.function else program.graph
    return entry, way_to(function, program.functions, scenario.access(site).name)


# --- functions -----------------------------------------------------------------------------


class FunctionHost:
    """Runs the functions of a module, on their own variables.

    Parameters
    ----------
    live : Live
        Of functions.
    """

    def __init__(self, live: Live) -> None:
        self.live = live
        self.entries = {each.name: each for each in live.program.entries}
        self.libraries = {
            run: {each.signature.name: each for each in _definitions(function)}
            for run, function in live.functions.items()
        }

    def prepared(self, scenario: Scenario, variables: Sequence[str], gates: Gates) -> Prepared:
        """See `Host`."""
        from tensorflow.core.framework import function_pb2

        name = f"{gates[0][1].log}_run"
        top = function_pb2.FunctionDef()
        top.signature.name = name
        top.signature.is_stateful = True
        library: dict[str, Any] = {}
        inputs: list[RunInput | Any] = []
        results: list[Label] = []
        labels = side_names(scenario)
        for side, run in enumerate(scenario.runs):
            function = self.live.functions[run]
            definition = function.function_def
            library |= self.libraries[run]
            inputs += self.side(top, side, function)
            shown = [
                number
                for number, each in enumerate(definition.signature.output_arg)
                if each.type not in _OPAQUE
            ]
            for number in shown:
                result = f"r{side}_{number}"
                kind = definition.signature.output_arg[number].type
                top.signature.output_arg.add(name=result, type=kind)
                top.ret[result] = f"run{side}:output:{number}"
                which = f"result {number}" if len(shown) > 1 else "result"
                results.append((f"{which} of {labels[side]}", "is"))
        surgeon = Surgeon(top, library, gates[0][1].log)
        for site, gate in gates:
            _, way = _way(self.live.program, scenario, site)
            surgeon.put((Step(f"run{site.side}", 0), *way), gate)
        surgeon.seed()
        ends = {name: self.handle(scenario, name) for name in variables}
        return _PreparedFunctions(
            name,
            (*surgeon.copies.values(), top),
            inputs,
            results,
            gates,
            ends,
            self.states(scenario),
        )

    def side(self, top: Any, side: int, function: Any) -> Iterator[RunInput | Any]:
        """Add the call of a run, and yield the inputs of the function."""
        definition = function.function_def
        node = top.node_def.add(name=f"run{side}", op="StatefulPartitionedCall")
        top.control_ret[node.name] = node.name
        top.signature.control_output.append(node.name)
        node.attr["f"].func.name = definition.signature.name
        node.attr["Tin"].list.SetInParent()
        node.attr["Tout"].list.SetInParent()
        captured = list(function.captured_inputs)
        arguments = definition.signature.input_arg
        first = len(arguments) - len(captured)
        for number, each in enumerate(arguments):
            name = f"s{side}_{number}"
            top.signature.input_arg.add(name=name, type=each.type)
            node.input.append(name)
            node.attr["Tin"].list.type.append(each.type)
            if number >= first:
                yield captured[number - first]
                continue
            if each.type in _OPAQUE:
                raise NotShown(f"argument {each.name} is a handle")
            tensor = function.inputs[number]
            yield RunInput(side, each.name, _numpy_type(tensor.dtype), _shape(tensor.shape))
        node.attr["Tout"].list.type.extend(each.type for each in definition.signature.output_arg)

    def handles(self, scenario: Scenario) -> Iterator[tuple[Resource, Any]]:
        """Each captured handle, once, with its resource."""
        seen = set()
        for run in dict.fromkeys(scenario.runs):
            function = self.live.functions[run]
            captured = list(function.captured_inputs)
            arguments = [each.name for each in function.function_def.signature.input_arg]
            for name, handle in zip(
                arguments[len(arguments) - len(captured) :], captured, strict=True
            ):
                resource = self.entries[run].resources.get(name)
                if resource is not None and resource.name not in seen:
                    seen.add(resource.name)
                    yield resource, handle

    def handle(self, scenario: Scenario, name: str) -> tuple[Any, Any]:
        """The handle and the type of a variable; None for other resources."""
        for resource, handle in self.handles(scenario):
            if resource.name == name and resource.kind == "variable":
                return handle, _variable_type(resource, handle)
        return None, None

    def states(self, scenario: Scenario) -> list[Callable[[], None]]:
        """For each resource of the runs: how to set it back to what it is now."""
        import tensorflow as tf

        back: list[Callable[[], None]] = []
        for resource, handle in self.handles(scenario):
            if resource.kind == "variable":
                kind = _variable_type(resource, handle)
                if not bool(tf.raw_ops.VarIsInitializedOp(resource=handle)):
                    raise NotShown(f"{resource.name} has no value")
                # A copy: an update in place may otherwise change what was read.
                value = tf.constant(tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind).numpy())
                back.append(_assigning(handle, value))
            elif resource.kind == "table":
                back.append(self.table(scenario, resource.name, handle))
            elif resource.kind not in ("mutex", "queue"):
                raise NotShown(f"{resource.name} cannot be set back")
        return back

    def table(self, scenario: Scenario, name: str, handle: Any) -> Callable[[], None]:
        """How to set a table back to its contents of now."""
        import tensorflow as tf

        for side in scenario.sides:
            for access in side.run.accesses:
                if access.resource.name == name and access.op.startswith("LookupTable"):
                    node = self.node(side.run.name, access.name)
                    if "Tin" in node.attr and "Tout" in node.attr:
                        keys, values = tf.raw_ops.LookupTableExportV2(
                            table_handle=handle,
                            Tkeys=tf.as_dtype(node.attr["Tin"].type),
                            Tvalues=tf.as_dtype(node.attr["Tout"].type),
                        )
                        return _importing(handle, keys, values)
        raise NotShown(f"{name} cannot be set back")

    def node(self, run: str, name: str) -> Any:
        """The node of an access."""
        library = self.libraries[run]
        program = self.live.program
        own = self.entries[run].function
        level = library[own]
        for step in way_to(program.functions[own], program.functions, name):
            node = next(each for each in level.node_def if each.name == step.operation)
            if step.body >= 0:
                level = library[reading.bodies_of(node)[step.body].name]
        return node


def _definitions(function: Any) -> Iterator[Any]:
    """The FunctionDefs of a function and of all that it may call."""
    yield function.function_def
    yield from function.graph.as_graph_def().library.function


def _assigning(handle: Any, value: Any) -> Callable[[], None]:
    import tensorflow as tf

    return lambda: tf.raw_ops.AssignVariableOp(resource=handle, value=value)


def _importing(handle: Any, keys: Any, values: Any) -> Callable[[], None]:
    import tensorflow as tf

    return lambda: tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=keys, values=values)


def _variable_type(resource: Resource, handle: Any) -> Any:
    """The type of a variable's value."""
    import tensorflow as tf

    if resource.dtype:
        return tf.as_dtype(resource.dtype)
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or not data.shape_and_type:
        raise NotShown(f"{resource.name} cannot be set back")
    return tf.as_dtype(data.shape_and_type[0].dtype)


@dataclass(frozen=True, slots=True)
class _PreparedFunctions:
    """A function that calls the runs, with gates in copies of them."""

    name: str
    functions: Sequence[Any]
    arguments: Sequence[RunInput | Any]
    results: Sequence[Label]
    gates: Gates
    ends: Mapping[str, tuple[Any, Any]]
    back: Sequence[Callable[[], None]]

    @property
    def inputs(self) -> list[RunInput]:
        """See `Prepared`."""
        return [each for each in self.arguments if isinstance(each, RunInput)]

    def run(self, values: Mapping[RunInput, Any]) -> Observed:
        """See `Prepared`."""
        import tensorflow as tf
        from tensorflow.python.eager import context

        eager = context.context()
        eager.ensure_initialized()
        for function in self.functions:
            name = function.signature.name
            if not eager.has_function(name):
                eager.add_function_def(function)
        arguments = [
            tf.constant(values[each]) if isinstance(each, RunInput) else each
            for each in self.arguments
        ]
        queues = [_eager_queue(gate.own) for _, gate in self.gates if gate.own]
        log = _eager_queue(self.gates[0][1].log)

        def stop() -> None:
            for queue in queues:
                tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)

        def call() -> list[Any]:
            results = eager.call_function(self.name.encode(), arguments, len(self.results))
            # The call returns None if there are no results.
            return [as_array(each.numpy()) for each in results or ()]

        try:
            with _without_rewriting():
                results = within_time(call, stop)
            found = dict(zip(self.results, results, strict=True))
            for name, (handle, kind) in self.ends.items():
                if handle is not None:
                    end = tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind)
                    found[name, "ends as"] = as_array(end.numpy())
        finally:
            for each in self.back:
                each()
        many = int(tf.raw_ops.QueueSizeV2(handle=log))
        (numbers,) = tf.raw_ops.QueueDequeueManyV2(handle=log, n=many, component_types=[tf.int32])
        return Observed(found, tuple(numbers.numpy().tolist()))


def _eager_queue(name: str) -> Any:
    """The queue of numbers of a name."""
    import tensorflow as tf

    return tf.raw_ops.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], shared_name=name)


@contextmanager
def _without_rewriting() -> Iterator[None]:
    """Graphs are run as they are: Grappler rewrites none."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        was = {"disable_meta_optimizer": bool(before.get("disable_meta_optimizer"))}
        tf.config.optimizer.set_experimental_options(was)


# --- graphs --------------------------------------------------------------------------------


class GraphHost:
    """Runs parts of a graph in sessions.

    Parameters
    ----------
    program : Program
    source : GraphDef or Path
        A Path is the folder of a SavedModel, which is loaded with all that this executes.
    """

    def __init__(self, program: Program, source: Any) -> None:
        self.program = program
        self.source = source if isinstance(source, Path) else _seeded(source)

    def prepared(self, scenario: Scenario, variables: Sequence[str], gates: Gates) -> Prepared:
        """See `Host`."""
        import tensorflow as tf

        name = gates[0][1].log
        graph, start = self.loaded()
        definition = graph.as_graph_def()
        library = {each.signature.name: each for each in definition.library.function}
        added = type(definition)()
        added.versions.CopyFrom(definition.versions)
        names = side_names(scenario)
        fetches: dict[Label, str] = {}
        targets: list[str] = []
        inputs: dict[RunInput, str] = {}
        for side, run in enumerate(scenario.runs):
            entry = next(each for each in self.program.entries if each.name == run)
            if entry.function:
                raise NotShown("a function of a file has no variables of its own")
            prefix = f"run{side}/"
            for node in _copied(definition, entry, prefix):
                if node.op in ("Placeholder", "PlaceholderV2"):
                    shape = (
                        tf.TensorShape(node.attr["shape"].shape) if "shape" in node.attr else None
                    )
                    kind = _numpy_type(tf.as_dtype(node.attr["dtype"].type))
                    own = node.name.removeprefix(prefix)
                    inputs[RunInput(side, own, kind, _shape(shape))] = f"{node.name}:0"
                added.node.append(node)
            for fetch in entry.fetches:
                operation = graph.get_operation_by_name(output_of(fetch)[0])
                if ":" not in fetch and not operation.outputs:
                    targets.append(prefix + fetch)
                elif operation.outputs[output_of(fetch)[1]].dtype.as_datatype_enum not in _OPAQUE:
                    what, number = output_of(fetch)
                    label = f"{fetch} of {names[side]}" if len(names) > 1 else fetch
                    fetches[label, "is"] = f"{prefix}{what}:{number}"
                else:
                    targets.append(prefix + output_of(fetch)[0])
        surgeon = Surgeon(added, library, name)
        for site, gate in gates:
            _, way = _way(self.program, scenario, site)
            first = way[0]
            surgeon.put((_renamed(first, f"run{site.side}/{first.operation}"), *way[1:]), gate)
        surgeon.seed()
        added.library.function.extend(surgeon.copies.values())
        with graph.as_default():
            try:
                tf.graph_util.import_graph_def(added, name="")
            except ValueError as problem:
                raise failure(problem) from None
            ends = self.ends(definition, variables)
            queues = {each: _closing(each) for _, gate in gates for each in [gate.own] if each}
            read_log = _emptying(name)
        return _PreparedGraph(
            graph, start, tuple(inputs.items()), fetches, [*targets, *surgeon.targets], ends,
            list(queues.values()), read_log,
        )  # fmt: skip

    def ends(self, definition: Any, variables: Sequence[str]) -> dict[str, Any]:
        """Tensors that read the variables, in the default graph."""
        import tensorflow as tf

        graph = tf.compat.v1.get_default_graph()
        found: dict[str, Any] = {}
        for node in definition.node:
            name = _resource_name(node)
            if name not in variables or name in found or HANDLES.get(node.op) != "variable":
                continue
            handle = graph.get_tensor_by_name(f"{node.name}:0")
            if node.op == "VarHandleOp":
                kind = tf.as_dtype(node.attr["dtype"].type)
                found[name] = tf.raw_ops.ReadVariableOp(resource=handle, dtype=kind)
            else:
                found[name] = tf.identity(handle)
        return found

    def loaded(self) -> tuple[Any, Callable[[Any], None]]:
        """A new graph with the program in it, and what sets its variables in a session."""
        import tensorflow as tf

        graph = tf.Graph()
        if isinstance(self.source, Path):
            from tensorflow.python.saved_model.loader_impl import SavedModelLoader

            loader = SavedModelLoader(str(self.source))
            tags = [*loader.saved_model.meta_graphs[0].meta_info_def.tags]
            saver, _ = loader.load_graph(graph, tags)

            def restore(session: Any) -> None:
                loader.restore_variables(session, saver)
                loader.run_init_ops(session, tags)

            return graph, restore
        with graph.as_default():
            tf.graph_util.import_graph_def(self.source, name="")
            initial = _initializers(self.program, self.source)
        return graph, initial


def _copied(definition: Any, entry: Entry, prefix: str) -> Iterator[Any]:
    """Copies of the nodes that a run executes, under a prefix; they share resources."""
    from tensorflow.python.framework import op_def_registry

    by_name = {node.name: node for node in definition.node}
    todo = [output_of(fetch)[0] for fetch in entry.fetches]
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += (output_of(text.removeprefix("^"))[0] for text in by_name[name].input)
    for node in definition.node:
        if node.name not in needed:
            continue
        made = type(node)()
        made.CopyFrom(node)
        made.name = prefix + node.name
        del made.input[:]
        for text in node.input:
            made.input.append(f"^{prefix}{text[1:]}" if text.startswith("^") else prefix + text)
        made.attr.pop("_class", None)
        if node.op in ("Enter", "RefEnter"):
            made.attr["frame_name"].s = (prefix + node.attr["frame_name"].s.decode()).encode()
        known = op_def_registry.get(node.op)
        if known is not None and known.is_stateful:
            names = {each.name for each in known.attr}
            if "shared_name" in names and not node.attr["shared_name"].s:
                made.attr["shared_name"].s = node.name.encode()
        yield made


def _renamed(step: Step, name: str) -> Step:
    return Step(name, step.body, step.iteration, step.frames)


def _resource_name(node: Any) -> str:
    shared = node.attr["shared_name"].s.decode() if "shared_name" in node.attr else ""
    return shared or str(node.name)


def _initializers(program: Program, definition: Any) -> Callable[[Any], None]:
    """What sets the variables of a graph: its own ops, and zeros where it has none.

    Of a variable ``x`` the op is ``x/Assign``, or else one that no run executes.
    """
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    executed = {
        node.name.removeprefix("/")
        for entry in program.entries
        if not entry.function
        for node in _copied(definition, entry, "/")
    }
    own: dict[str, list[str]] = {}
    tables = []
    handles = {node.name: node for node in definition.node if node.op in HANDLES}
    for node in definition.node:
        if node.name in executed:
            continue
        if node.op in ("AssignVariableOp", "Assign") and node.input[0] in handles:
            own.setdefault(_resource_name(handles[node.input[0]]), []).append(node.name)
        elif node.op.startswith("InitializeTable"):
            tables.append(node.name)
    first = list(tables)
    zeros: dict[str, Any] = {}
    for name, node in handles.items():
        resource = _resource_name(node)
        if HANDLES[node.op] != "variable" or resource in zeros:
            continue
        assigns = own.get(resource, [])
        if assigns:
            usual = f"{name}/Assign"
            first.append(usual if usual in assigns else assigns[0])
        elif node.op == "VarHandleOp" and name in executed:
            kind = tf.as_dtype(node.attr["dtype"].type)
            shape = _shape(tf.TensorShape(node.attr["shape"].shape))
            zeros[resource] = tf.raw_ops.AssignVariableOp(
                resource=graph.get_tensor_by_name(f"{name}:0"), value=tf.zeros(shape, kind)
            )

    def start(session: Any) -> None:
        session.run(list(zeros.values()))
        left = list(dict.fromkeys(first))
        while left:
            failed = []
            for each in left:
                try:
                    session.run(graph.get_operation_by_name(each))
                except tf.errors.FailedPreconditionError:
                    failed.append(each)  # its value depends on another variable's
            if len(failed) == len(left):
                raise NotShown(f"{failed[0]} cannot set its variable")
            left = failed

    return start


def _closing(name: str) -> Any:
    """An op of the default graph that closes a queue."""
    import tensorflow as tf

    queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], shared_name=name)
    return tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)


def _emptying(name: str) -> Any:
    """A tensor of the default graph with all that is in a queue."""
    import tensorflow as tf

    queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], shared_name=name)
    many = tf.raw_ops.QueueSizeV2(handle=queue)
    return tf.raw_ops.QueueDequeueManyV2(handle=queue, n=many, component_types=[tf.int32])[0]


@dataclass(frozen=True, slots=True)
class _PreparedGraph:
    """A graph with the runs' nodes and gates in it."""

    graph: Any
    start: Callable[[Any], None]
    feeds: Sequence[tuple[RunInput, str]]
    fetches: Mapping[Label, str]
    targets: Sequence[str]
    ends: Mapping[str, Any]
    closing: Sequence[Any]
    log: Any

    @property
    def inputs(self) -> list[RunInput]:
        """See `Prepared`."""
        return [each for each, _ in self.feeds]

    def run(self, values: Mapping[RunInput, Any]) -> Observed:
        """See `Prepared`."""
        import tensorflow as tf

        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
        options = config.graph_options
        options.rewrite_options.disable_meta_optimizer = True
        options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
        feeds = {name: values[each] for each, name in self.feeds}
        targets = [self.graph.get_operation_by_name(each) for each in self.targets]
        with tf.compat.v1.Session(graph=self.graph, config=config) as session:
            try:
                self.start(session)
            except (tf.errors.OpError, ValueError) as problem:
                raise failure(problem) from None
            results, _ = within_time(
                lambda: session.run((list(self.fetches.values()), targets), feeds),
                lambda: session.run(self.closing),
            )
            found = dict(zip(self.fetches, map(as_array, results), strict=True))
            ends = session.run(dict(self.ends))
            found |= {(name, "ends as"): as_array(value) for name, value in ends.items()}
            return Observed(found, tuple(session.run(self.log).tolist()))


# --- types -----------------------------------------------------------------------------------


def _shape(shape: Any) -> tuple[int, ...]:
    """A shape, with 2 for each length that is not known."""
    if shape is None or shape.rank is None:
        return ()
    return tuple(2 if length is None else length for length in shape.as_list())


def _numpy_type(dtype: Any) -> Any:
    kind = np.dtype(dtype.as_numpy_dtype)
    return np.dtype(np.object_) if dtype.name == "string" else kind
