"""Gates around accesses: edits of a user's graph that force one order, and record it.

A *gate* in front of an access takes a token from a queue, and the access waits for it by a control
edge. After the access its number goes into a log, and then a token into the queue of the next one.
So the accesses happen in the order of the gates, each after the one before it has finished, or the
run waits forever; the log says which of them happened, and how often. The kernels are TensorFlow's
own, and no edge of the user's is changed.

An access inside of functions is gated in copies of these functions, made for the one call that
leads to it. In a loop, a counter that the loop carries tells the iteration: the number of tokens
that a gate takes is 1 in the access's own iteration and 0 elsewhere, where it does not wait.

Random ops without seeds get seeds. Otherwise two orders would differ by random numbers, too.

References
----------
tensorflow/core/kernels/fifo_queue.cc: TryDequeueMany, TryEnqueueMany.
tensorflow/core/util/guarded_philox_random.cc: Init: seeds that are both 0 become random.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.programs.effects import CONDITIONALS, HANDLES, LOOPS
from litmusfuzz.fuzz.programs.frames import frames_of
from litmusfuzz.fuzz.programs.tensorflow import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from litmusfuzz.fuzz.programs.program import Function, Operation

_INT32: Final = 3  # DT_INT32
_BOOL: Final = 10  # DT_BOOL
_OUTPUTS: Final = {
    "AddV2": "z",
    "Cast": "y",
    "Const": "output",
    "Enter": "output",
    "Equal": "z",
    "ExpandDims": "output",
    "FIFOQueueV2": "handle",
    "Fill": "output",
    "Merge": "output",
    "Mul": "z",
    "NextIteration": "output",
    "Switch": "output_true",
}
"""Names of the outputs that functions refer to."""


class NotShown(Exception):
    """A race that cannot be shown; the message says why, in words that follow "not shown: "."""


class NoEndError(NotShown):
    """An order in which TensorFlow did not come to an end."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the way to an access: an operation of a graph or function.

    Parameters
    ----------
    operation : str
    body : int
        Number of the function in which the way goes on; -1 for the access itself.
    iteration : int
        Of a functional loop, or -1.
    frames : tuple of int
        Iterations of the loops of TensorFlow 1 around the operation, outermost first.
    """

    operation: str
    body: int = -1
    iteration: int = -1
    frames: tuple[int, ...] = ()


def way_to(function: Function, functions: Mapping[str, Function], name: str) -> tuple[Step, ...]:
    """The steps to the access that an expanded run calls by this name.

    Raises
    ------
    NotShown
        If the name has two meanings.
    """
    found = list(_ways(function, functions, name))
    if len(found) != 1:
        raise NotShown(f"{name:.80} is not the name of one operation")
    return found[0]


def _ways(
    function: Function, functions: Mapping[str, Function], name: str
) -> Iterator[tuple[Step, ...]]:
    for each in function.operations:
        if not name.startswith(each.name):
            continue
        rest, copies = name[len(each.name) :], []
        while rest.startswith("["):
            number, _, rest = rest[1:].partition("]")
            copies.append(int(number))
        frames = tuple(copies)
        if not rest:
            yield (Step(each.name, frames=frames),)
            continue
        for body, inner in enumerate(each.bodies):
            for prefix, iteration in _prefixes(each, body, rest):
                if inner in functions:
                    for more in _ways(functions[inner], functions, rest[len(prefix) :]):
                        yield (Step(each.name, body, iteration, frames), *more)


def _prefixes(each: Operation, body: int, rest: str) -> Iterator[tuple[str, int]]:
    """How the expansion calls a body, if the rest of a name begins with it."""
    if each.op in LOOPS:
        what = "/body[" if body else "/cond["
        number, bracket, _ = rest.removeprefix(what).partition("]/")
        if rest.startswith(what) and bracket and number.isdigit():
            yield f"{what}{number}]/", int(number)
        return
    prefix = "/"
    if each.op in CONDITIONALS:
        prefix = ("/then/", "/else/")[body] if each.op.endswith("If") else f"/branch{body}/"
    if rest.startswith(prefix):
        yield prefix, -1


class Level:
    """Nodes of a graph or of one function, to which more are added.

    Parameters
    ----------
    message : GraphDef or FunctionDef
    """

    def __init__(self, message: Any) -> None:
        self.message = message
        self.is_function = hasattr(message, "node_def")
        self.list = message.node_def if self.is_function else message.node
        self.nodes = {node.name: node for node in self.list}

    def add(
        self,
        op: str,
        name: str,
        inputs: Sequence[str] = (),
        after: Sequence[str] = (),
        **attrs: Any,
    ) -> str:
        """Add a node, and return its name, which begins with the given one."""
        number, own = 0, name
        while own in self.nodes:
            number += 1
            own = f"{name}_{number}"
        node = self.list.add(name=own, op=op)
        node.input.extend([*inputs, *(f"^{each}" for each in after)])
        for key, value in attrs.items():
            _set(node.attr[key], value)
        self.nodes[own] = node
        return own

    def output(self, name: str, number: int = 0) -> str:
        """The text that refers to an output of an added node."""
        if not self.is_function:
            return f"{name}:{number}"
        op = self.nodes[name].op
        return f"{name}:{_OUTPUTS[op]}:0"

    def constant(self, value: int, after: Sequence[str] = ()) -> str:
        """A number as a tensor; the reference to it."""
        name = self.add("Const", "gate/number", (), after, dtype=("type", _INT32))
        tensor = self.nodes[name].attr["value"].tensor
        tensor.dtype = _INT32
        tensor.tensor_shape.SetInParent()
        tensor.int_val.append(value)
        return self.output(name)

    def keep(self, name: str) -> None:
        """Let a function run a node that none of its results needs."""
        if self.is_function and name not in self.message.control_ret.values():
            key = name.replace("/", "_")
            while key in self.message.control_ret:
                key += "_"
            self.message.control_ret[key] = name
            self.message.signature.control_output.append(key)


def _set(attr: Any, value: Any) -> None:
    kind, what = value
    if kind == "type":
        attr.type = what
    elif kind == "types":
        attr.list.type.extend(what)
    elif kind == "text":
        attr.s = what.encode()
    elif kind == "int":
        attr.i = what
    elif kind == "bool":
        attr.b = what
    else:
        assert kind == "scalars", kind
        attr.list.shape.add().SetInParent()


def add_queue(level: Level, shared_name: str, after: Sequence[str] = ()) -> str:
    """Add a handle of a queue of numbers, by its name; the reference to it."""
    name = level.add(
        "FIFOQueueV2",
        "gate/queue",
        (),
        after,
        component_types=("types", [_INT32]),
        shapes=("scalars", None),
        shared_name=("text", shared_name),
    )
    return level.output(name)


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate around one access.

    Parameters
    ----------
    number : int
        For the log.
    log : str
        Queue for the numbers of accesses that happened.
    own : str
        Queue that the access waits for; "" if it does not wait.
    following : str
        Queue that the next access waits for; "" if there is none.
    """

    number: int
    log: str
    own: str = ""
    following: str = ""


class Surgeon:
    """Puts gates into a graph.

    Parameters
    ----------
    graph : GraphDef or FunctionDef
        Changed in place.
    library : mapping
        FunctionDefs by name; none of them is changed.
    suffix : str
        For the names of copies.

    Attributes
    ----------
    copies : dict
        FunctionDefs that were made, by name.
    targets : list of str
        Nodes that a client has to run beside its fetches.
    """

    def __init__(self, graph: Any, library: Mapping[str, Any], suffix: str) -> None:
        self.top = Level(graph)
        self.library = library
        self.suffix = suffix
        self.copies: dict[str, Any] = {}
        self.targets: list[str] = []
        self.unseeded: dict[str, bool] = {}

    def put(self, way: Sequence[Step], gate: Gate) -> None:
        """Put a gate around the access at the end of a way.

        Raises
        ------
        NotShown
            If the access is where no gate can be.
        """
        last = self._put(self.top, way, gate, "")
        if not self.top.is_function:
            self.targets.append(last)

    def _put(self, level: Level, way: Sequence[Step], gate: Gate, active: str) -> str:
        """Put a gate; the node of this level that ends after it.

        `active` refers to the number of tokens that are taken and given; "" stands for 1.
        """
        if level.is_function and any(node.op == "Switch" for node in level.list):
            raise NotShown("it is beside a loop or conditional of TensorFlow 1 in a function")
        step = way[0]
        active, pivot = self._in_frames(level, step, active)
        if not active:
            active = level.constant(1, pivot)
        if step.body < 0:
            last = self._around(level, step.operation, gate, active, pivot)
        else:
            last = step.operation
            self._into(level, way, gate, active)
        level.keep(last)
        return last

    def _around(
        self, level: Level, operation: str, gate: Gate, active: str, pivot: Sequence[str]
    ) -> str:
        """Add the nodes of a gate around an operation."""
        node = level.nodes[operation]
        if gate.own:
            queue = add_queue(level, gate.own, pivot)
            take = level.add(
                "QueueDequeueManyV2",
                "gate/take",
                (queue, active),
                component_types=("types", [_INT32]),
            )
            node.input.append(f"^{take}")
        last = operation
        for name, number in ((gate.log, gate.number), (gate.following, 1)):
            if name:
                values = level.add(
                    "Fill",
                    "gate/values",
                    (self._vector(level, active, pivot), level.constant(number, pivot)),
                    T=("type", _INT32),
                    index_type=("type", _INT32),
                )
                last = level.add(
                    "QueueEnqueueManyV2",
                    "gate/give",
                    (add_queue(level, name, pivot), level.output(values)),
                    (last,),
                    Tcomponents=("types", [_INT32]),
                )
        return last

    def _vector(self, level: Level, active: str, pivot: Sequence[str]) -> str:
        """The shape that has so many elements."""
        axis = level.constant(0, pivot)
        name = level.add(
            "ExpandDims", "gate/shape", (active, axis), T=("type", _INT32), Tdim=("type", _INT32)
        )
        return level.output(name)

    # --- random ops ----------------------------------------------------------------------

    def seed(self) -> None:
        """Give each random op without seeds its own, once all gates are put.

        They are the same for every order of the same gates.
        """
        self._seed(self.top.list, count(1))

    def _seed(self, nodes: Iterable[Any], numbers: Iterator[int]) -> None:
        for node in nodes:
            seed(node, numbers)
            for body in reading.bodies_of(node):
                if body.name not in self.copies and self._has_unseeded(body.name):
                    body.name = self._copied(body.name).signature.name
                if body.name in self.copies:
                    self._seed(self.copies[body.name].node_def, numbers)

    def _has_unseeded(self, name: str) -> bool:
        """True if a function has random ops without seeds, also in functions that it calls."""
        if name not in self.unseeded:
            nodes = self.library[name].node_def if name in self.library else ()
            self.unseeded[name] = any(
                _is_unseeded(node)
                or any(self._has_unseeded(each.name) for each in reading.bodies_of(node))
                for node in nodes
            )
        return self.unseeded[name]

    # --- loops of TensorFlow 1 -----------------------------------------------------------

    def _in_frames(self, level: Level, step: Step, active: str) -> tuple[str, tuple[str, ...]]:
        """The number of tokens inside the frames around an operation, and a node of the frame."""
        pivot: tuple[str, ...] = ()
        if not step.frames:
            return active, pivot
        operations = [reading.operation_of(node) for node in level.list]
        frames = frames_of(operations, {each.name: each for each in operations})
        own = frames[step.operation]
        if len(own) != len(step.frames):
            raise NotShown(f"the loops around {step.operation:.80} are not known")
        for depth, iteration in enumerate(step.frames):
            frame = own[: depth + 1]
            enter = next(
                level.nodes[each.name]
                for each in operations
                if each.op == "Enter" and frames[each.name] == frame
            )
            condition = next(
                each.name
                for each in operations
                if each.op == "LoopCond" and frames[each.name] == frame
            )
            counter = self._counter(level, enter, condition, pivot)
            if not active:
                active = level.constant(1, pivot)
            inside = level.output(_enter(level, active, enter, constant=True))
            pivot = (counter,)
            active = _while_equal(level, inside, level.output(counter), iteration, pivot)
        return active, pivot

    def _counter(self, level: Level, enter: Any, condition: str, outside: Sequence[str]) -> str:
        """Let a frame carry the number of its iteration; the node that has it."""
        first = _enter(level, level.constant(0, outside), enter, constant=False)
        merge = level.add("Merge", "gate/counter", (level.output(first),), T=_T, N=("int", 2))
        going_on = (level.output(merge), f"{condition}:0")
        switch = level.add("Switch", "gate/goes_on", going_on, T=_T)
        carried = level.output(switch, 1)
        one = level.constant(1, (merge,))
        more = level.add("AddV2", "gate/more", (carried, one), T=_T)
        back = level.add("NextIteration", "gate/back", (level.output(more),), T=_T)
        level.nodes[merge].input.append(level.output(back))
        return merge

    # --- functions -----------------------------------------------------------------------

    def _into(self, level: Level, way: Sequence[Step], gate: Gate, active: str) -> None:
        """Go on in a copy of a function that an operation calls."""
        step = way[0]
        node = level.nodes[step.operation]
        node.op = {"PartitionedCall": "StatefulPartitionedCall"}.get(
            node.op, node.op.removeprefix("Stateless")
        )
        bodies = reading.bodies_of(node)
        copies = [self._copied(body.name) for body in bodies]
        for body, made in zip(bodies, copies, strict=True):
            body.name = made.signature.name
        carries = 2 if node.op in LOOPS else 1
        operands = [active] if carries == 1 else [active, level.constant(0)]
        if carries == 2 and step.frames:
            raise NotShown("it is in a loop inside of a loop of TensorFlow 1")
        _insert(node, operands)
        added = [
            [_argument(made, f"gate_{number}") for number in range(carries)] for made in copies
        ]
        inner = Level(copies[step.body])
        inside = added[step.body][0]
        if carries == 2:
            node.attr["T"].list.type.extend([_INT32] * 2)
            if "output_shapes" in node.attr and node.attr["output_shapes"].list.shape:
                for _ in range(2):
                    node.attr["output_shapes"].list.shape.add().SetInParent()
            body_level = inner if step.body == 1 else Level(copies[1])
            same, counter = added[1]
            one = body_level.constant(1)
            more = body_level.add("AddV2", "gate/more", (counter, one), T=_T)
            _result(copies[1], same)
            _result(copies[1], body_level.output(more))
            inside = _while_equal(inner, inside, added[step.body][1], step.iteration, ())
        else:
            node.attr["Tin"].list.type.append(_INT32)
        self._put(inner, way[1:], gate, inside)

    def _copied(self, name: str) -> Any:
        """A copy of a function, under a name of its own."""
        original = self.copies.get(name) or self.library.get(name)
        if original is None:
            raise NotShown(f"the function {name:.80} is missing")
        copied = type(original)()
        copied.CopyFrom(original)
        copied.signature.name = f"{name}_{self.suffix}_{len(self.copies)}"
        copied.signature.is_stateful = True
        self.copies[copied.signature.name] = copied
        return copied


_T: Final = ("type", _INT32)


def seed(node: Any, numbers: Iterator[int]) -> None:
    """Give a random op seeds, if it has none; those of a resource depend on its name alone."""
    if _is_unseeded(node):
        name = node.attr["shared_name"].s if "shared_name" in node.attr else b""
        number = next(numbers)
        if node.op in HANDLES:  # all handles of one queue have to agree
            number = zlib.crc32(name or node.name.encode()) + 1
        node.attr["seed"].i = number


def _is_unseeded(node: Any) -> bool:
    from tensorflow.python.framework import op_def_registry

    known = op_def_registry.get(node.op)
    if known is None or not known.is_stateful:
        return False
    if not {"seed", "seed2"} <= {each.name for each in known.attr}:
        return False
    return not any(name in node.attr and node.attr[name].i for name in ("seed", "seed2"))


def _enter(level: Level, value: str, like: Any, *, constant: bool) -> str:
    return level.add(
        "Enter",
        "gate/enter",
        (value,),
        T=_T,
        frame_name=("text", like.attr["frame_name"].s.decode()),
        is_constant=("bool", constant),
        parallel_iterations=("int", like.attr["parallel_iterations"].i or 10),
    )


def _while_equal(
    level: Level, active: str, counter: str, iteration: int, pivot: Sequence[str]
) -> str:
    """The number of tokens in one iteration, and 0 in others."""
    wanted = level.constant(iteration, pivot)
    equal = level.add("Equal", "gate/is_it", (counter, wanted), T=_T)
    number = level.add(
        "Cast", "gate/cast", (level.output(equal),), SrcT=("type", _BOOL), DstT=("type", _INT32)
    )
    return level.output(level.add("Mul", "gate/active", (level.output(number), active), T=_T))


def _insert(node: Any, operands: Sequence[str]) -> None:
    """Add inputs behind the others, before the control edges."""
    inputs = list(node.input)
    place = next((i for i, text in enumerate(inputs) if text.startswith("^")), len(inputs))
    inputs[place:place] = operands
    del node.input[:]
    node.input.extend(inputs)


def _argument(function: Any, name: str) -> str:
    """Add an argument to a function; its name."""
    taken = {each.name for each in function.signature.input_arg}
    taken |= {node.name for node in function.node_def}
    while name in taken:
        name += "_"
    function.signature.input_arg.add(name=name, type=_INT32)
    return name


def _result(function: Any, value: str) -> None:
    """Add a result to a function."""
    name = "gate_result"
    while name in function.ret:
        name += "_"
    function.signature.output_arg.add(name=name, type=_INT32)
    function.ret[name] = value
