"""The graphs of a test as Python code that is executed op by op: the front end ``eager``.

`litmusfuzz.fuzz.executors.tensorflow.eager` executes such programs, a thread for each run.
"""

from __future__ import annotations

import random
import time
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.fuzz.executors.tensorflow.node_defs import literal
from litmusfuzz.fuzz.executors.tensorflow.program import Program, Values
from litmusfuzz.fuzz.executors.tensorflow.traced import set_handle_data

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest, Node, Run, Variable
    from litmusfuzz.corpus.ops import Nested, TensorType

_YIELDS: Final = 0.3
"""Chance that a thread lets others go first before an op on a variable."""
_PROGRAM_NUMBERS: Final = count()
"""Programs have variables of their own: their names contain the program's number."""


class EagerProgram(Program):
    """The graphs of one test as Python code over one set of variables.

    An execution of the test is a call of `reset`, then of `execute_run` once for each run, each in
    a thread of its own, then of `final`.

    Subclasses override methods: `eager_parts.MixedProgram` to execute runs in parts, `keras_steps`
    to take the steps of optimizers, and `litmusfuzz.fuzz.mutants.tensorflow` to break a program on
    purpose. For mutants, `nodes_of`, `values_of` and `MixedProgram.arguments` are methods.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    """

    def __init__(self, test: LitmusTest, seed: int = 0) -> None:
        super().__init__(test, random.Random(seed))
        self._nodes = {run.name: test.graph_of(run).nodes for run in test.runs}
        self._variables = {variable.name: variable for variable in test.variables}
        number = next(_PROGRAM_NUMBERS)
        self.handles = {
            name: _handle(variable, f"eager{number}/{name}")
            for name, variable in self._variables.items()
        }
        self._initial = {
            name: self._constant(variable.init, variable)
            for name, variable in self._variables.items()
            if variable.init is not None
        }
        self._fed = {
            (run.name, name): self._constant(value, test.type_of(name))
            for run in test.runs
            for name, value in run.feeds
        }

    def _constant(self, value: Nested, kind: Variable | TensorType) -> Any:
        """A literal of the test as a tensor."""
        array = literal(value, kind.shape, kind.dtype, whole=self.test.whole)
        return tf.constant(np.array(array), kind.dtype)

    def reset(self) -> None:
        """Give all variables their initial values, or none."""
        for name, handle in self.handles.items():
            if name in self._initial:
                tf.raw_ops.AssignVariableOp(resource=handle, value=self._initial[name])
            else:
                tf.raw_ops.DestroyResourceOp(resource=handle)

    def final(self) -> Values:
        """The contents of all variables that have a value."""
        return {
            # A copy: the array may share memory with the variable.
            v.name: np.array(
                tf.raw_ops.ReadVariableOp(resource=self.handles[v.name], dtype=v.dtype)
            )
            for v in self.test.variables
            if v.init is not None
            or bool(tf.raw_ops.VarIsInitializedOp(resource=self.handles[v.name]))
        }

    def close(self) -> None:
        """Release the variables."""
        for handle in self.handles.values():
            tf.raw_ops.DestroyResourceOp(resource=handle)

    def execute_run(self, run: Run) -> Values:
        """Execute the ops of a run in program order; all values."""
        values = self.started(run)
        self.execute(self.nodes_of(run), values, self.handles)
        return values

    def started(self, run: Run) -> Values:
        """The values of a run before its first op: those that the client feeds."""
        values = self.values_of(run)
        fed = (node.name for node in self.nodes_of(run) if node.definition.fed)
        values |= {name: self._fed[run.name, name] for name in fed}
        return values

    def nodes_of(self, run: Run) -> tuple[Node, ...]:
        """The nodes that a run needs, in the order of their execution."""
        return self._nodes[run.name]

    def values_of(self, run: Run) -> Values:
        """Where a run puts its values: a new dict for each run."""
        del run
        return {}

    def pause(self, node: Node) -> None:
        """Let other threads go first, now and then: `execute` calls this before each eager op."""
        if node.resources and self.rng.random() < _YIELDS:
            time.sleep(0)


def _handle(variable: Variable, shared_name: str) -> Any:
    """A handle of a variable that is shared by this name."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=variable.dtype, shape=variable.shape, shared_name=shared_name
    )
    set_handle_data(handle, variable)
    return handle


def observed_values(test: LitmusTest, run: Run) -> dict[str, str]:
    """For each key of an outcome that is a value of a run: the value's name in the graph."""
    if len(test.runs) == 1:
        return {key: key for key in test.observe}
    prefix = f"{run.name}."
    return {key: key.removeprefix(prefix) for key in test.observe if key.startswith(prefix)}
