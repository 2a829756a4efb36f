"""The graphs of a test as Python code in parts, ops or functions: front end ``eager_functions``.

A run is divided into *parts*: a part is some consecutive nodes, either executed op by op or as one
`tf.function`. A function takes each handle as an argument or captures it, at random, and some
functions are traced twice. `litmusfuzz.fuzz.executors.tensorflow.eager` executes such programs, a
thread for each run.

References
----------
https://www.tensorflow.org/guide/function, "Rules of tracing".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import tensorflow as tf

from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.corpus.ops import HandleAttrs
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.executors.tensorflow.eager_program import EagerProgram, observed_values
from litmusfuzz.fuzz.executors.tensorflow.emission import variables_of
from litmusfuzz.fuzz.executors.tensorflow.traced import set_handle_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node, Run
    from litmusfuzz.fuzz.executors.tensorflow.program import Values

_REWRITTEN: Final = 256
"""Executions after which a program is divided into other parts."""
_WHOLE: Final = 0.4
"""Chance that a run is one part."""
_OP_BY_OP: Final = 0.25
"""Chance that a part is executed op by op."""
_PASSED: Final = 0.5
"""Chance that a function takes a handle as an argument; else it captures the handle."""
_RETRACED: Final = 0.5
"""Chance that a function is traced twice."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive nodes of a run.

    Parameters
    ----------
    nodes : tuple of Node
    function : tf.function, or None
        Executes the nodes; None if they are executed op by op, and the other fields are empty.
    handles : tuple of str
        Handles that the function takes as arguments: names of variables, and ``node/argument``
        for the handle that a node (`HandleAttrs`) provides of a variable.
    inputs : tuple of str
        Values from before the part, or fed, that the function takes as arguments.
    results : tuple of str
        Values that the function returns: those that are needed after the part, or observed.
    retracing_arguments : tuple of tensor
        The function's first argument is one of these, at random. It is not used, but their shapes
        differ, so that TensorFlow traces the function once for each.
    """

    nodes: tuple[Node, ...]
    function: Any = None
    handles: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    retracing_arguments: tuple[Any, ...] = ()


class MixedProgram(EagerProgram):
    """The graphs of one test as Python code in which `tf.function`s execute some parts of a run.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    compiled : bool
        True if each run is one function, which XLA compiles.
    """

    def __init__(self, test: LitmusTest, seed: int = 0, *, compiled: bool = False) -> None:
        super().__init__(test, seed)
        self.compiled = compiled
        self._resets = 0
        self._parts: dict[str, tuple[Part, ...]] = {}
        """The parts of each run, by the run's name."""
        self._handle_nodes = {
            f"{node.name}/argument": node.attrs.variable
            for node in test.nodes
            if isinstance(node.attrs, HandleAttrs)
        }
        """For each handle that a node provides, by its name in `Part.handles`: its variable."""

    def reset(self) -> None:
        """Give all variables their initial values; now and then, divide the runs anew."""
        super().reset()
        # A compiled program stays as it is: there is one way to divide it, and XLA takes seconds.
        if self._resets % _REWRITTEN == 0 and not (self.compiled and self._parts):
            self._parts = {run.name: tuple(self._divided(run)) for run in self.test.runs}
        self._resets += 1

    def execute_run(self, run: Run) -> Values:
        """Execute the parts of a run in program order; the values that are observed."""
        values = self.started(run)
        for part in self._parts[run.name]:
            if part.function is None:
                self.execute(part.nodes, values, self.handles)
                continue
            self.pause(part.nodes[0])
            handles = [self.handles[self._variable_of(name)] for name in part.handles]
            retracing = self.rng.choice(part.retracing_arguments)
            returned = part.function(retracing, *handles, *self.arguments(part, values))
            values |= dict(zip(part.results, returned, strict=True))
        return values

    def arguments(self, part: Part, values: Values) -> list[Any]:
        """The inputs of a part that is a function, from the values of its run."""
        return [values[name] for name in part.inputs]

    def _variable_of(self, handle: str) -> str:
        """The variable of a handle that is an argument."""
        return self._handle_nodes.get(handle, handle)

    def _divided(self, run: Run) -> Iterator[Part]:
        """Divide the nodes of a run into parts."""
        later = self.nodes_of(run)
        whole = self.compiled or self.rng.random() < _WHOLE
        while later:
            length = len(later) if whole else self.rng.randint(1, len(later))
            nodes, later = later[:length], later[length:]
            if not self.compiled and self.rng.random() < _OP_BY_OP:
                yield Part(nodes)
            else:
                yield self._function_part(run, nodes, later)

    def _function_part(self, run: Run, nodes: tuple[Node, ...], later: tuple[Node, ...]) -> Part:
        """A part that is a function; `later` are the nodes of the run after it."""
        nodes = self._with_identities(run, nodes)
        keys = _keys(nodes)
        # Control edges from before the part go: it starts when all that has ended.
        nodes = tuple(
            replace(node, after=tuple(name for name in node.after if name in keys))
            for node in nodes
        )
        # XLA refuses two handles of one variable, one passed and one captured.
        handles = () if self.compiled else self._passed_handles(nodes)
        inputs = self._inputs_of(nodes)
        results = self._results_of(run, nodes, later)

        def traced(retracing: Any, *arguments: Any) -> list[Any]:
            del retracing
            passed = dict(zip(handles, arguments[: len(handles)], strict=True))
            for name, handle in passed.items():
                set_handle_data(handle, self._variables[self._variable_of(name)])
            values = dict(zip(inputs, arguments[len(handles) :], strict=True))
            self.execute(nodes, values, self.handles | passed)
            return [tf.identity(values[name]) for name in results]

        # None is the default. False would set an attribute that users' functions do not have.
        jit_compile = True if self.compiled else None
        function = tf.function(traced, autograph=False, jit_compile=jit_compile)
        shapes = (1, 2) if self.rng.random() < _RETRACED else (1,)
        return Part(nodes, function, handles, inputs, results, tuple(tf.zeros([n]) for n in shapes))

    def _passed_handles(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """Handles of some nodes that a function takes as arguments; it captures the others."""
        variables = dict.fromkeys(name for n in all_nodes(nodes) for name in variables_of(n))
        handle_nodes = [
            f"{node.name}/argument" for node in nodes if isinstance(node.attrs, HandleAttrs)
        ]
        return tuple(name for name in (*variables, *handle_nodes) if self.rng.random() < _PASSED)

    def _inputs_of(self, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        """The values from before some nodes that they need, and the values fed to them."""
        keys = _keys(nodes)
        names: dict[str, None] = {}
        for node in nodes:
            names |= dict.fromkeys(name for name in node.references if name not in keys)
            if node.definition.fed:
                names[node.name] = None
        return tuple(name for name in names if self.test.types.get(name) is not None)

    def _results_of(
        self, run: Run, nodes: tuple[Node, ...], later: tuple[Node, ...]
    ) -> tuple[str, ...]:
        """The values of some nodes of a run that later nodes need, or that are observed."""
        needed = set(observed_values(self.test, run).values())
        # A later function repeats Identities of handles, so it needs what these take.
        for node in self._with_identities(run, later):
            needed.update(node.references)
        return tuple(
            key
            for node in nodes
            for key in node.keys
            if key in needed and self.test.types.get(key) is not None
        )

    def _with_identities(self, run: Run, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Some nodes, after the earlier Identities of handles that they take.

        Automatic control dependencies see that an Identity of a handle is the same resource only if
        the Identity is in the function, not an argument of it: so the function repeats it.
        """
        taken = {name for node in nodes for name in node.references} - _keys(nodes)
        identities = tuple(
            node
            for node in self.nodes_of(run)
            if node.op == "Identity" and node.name in taken and self._is_handle(node.name)
        )
        return self._with_identities(run, identities + nodes) if identities else nodes

    def _is_handle(self, name: str) -> bool:
        kind = self.test.types[name]
        return kind is not None and kind.is_handle


def _keys(nodes: Sequence[Node]) -> set[str]:
    """Names of the values of some nodes."""
    return {key for node in nodes for key in node.keys}
