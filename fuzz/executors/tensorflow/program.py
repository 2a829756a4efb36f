"""The graphs of a test as Python code over TensorFlow: what a user writes.

The same code is executed op by op, traced by `tf.function`, or builds a graph of TensorFlow 1. A
conditional and a loop are Python's where ops are executed eagerly; else they are `tf.cond` and
`tf.while_loop`, which is what AutoGraph writes for ``if`` and ``while``. A call is a `tf.function`.

What is added to the order of the test's edges:

- In a `tf.function`, automatic control dependencies: ops on one handle come in the order of the
  file, reads among themselves excepted; what a function, branch or iteration returns comes after
  all its effects; and an iteration of a loop comes after all effects of the one before. That is
  the model `acd`.
- In a graph without a function nothing. The results of a body wait for all its ops here, since
  TensorFlow leaves out what no result needs: semantics.md, section 3, lets an executor run one
  iteration at a time, and return results last.

References
----------
TensorFlow, ``tensorflow/python/framework/auto_control_deps.py``, and
https://www.tensorflow.org/api_docs/python/tf/control_dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager import execute as eager_execution

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs, first_results
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs
from litmusfuzz.fuzz.executors.tensorflow import node_defs

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.fuzz.executors.tensorflow.node_defs import Line

Values = dict[str, Any]
"""Tensors by the names of the values in a graph or body, and ops by ``^`` and the name.

The outputs of an op with several results stand under ``*`` and the name of the first node that is
one of them (`first_results`).
"""
Handles = Mapping[str, Any]
"""Handles of resources by the resources' names.

A handle that the caller passes to a function beside the one that it captures stands under
``NODE/argument``, NODE being the name of the handle's node: that node's value is the argument.
"""


class Program:
    """Executes the nodes of a test, or adds them to the function or graph that is built.

    It executes them if TensorFlow executes eagerly where `execute` is called, else it adds them.
    Ops are executed, and added, as NodeDefs with all their attributes: no public function of
    TensorFlow takes a NodeDef, so private ones are called.

    Of one program, several threads may call `execute` at once, each with `values` of its own. What
    they share is only added to: if two make the same entry, either does.

    Parameters
    ----------
    test : LitmusTest
    rng : random.Random
        Source of all random choices.
    padding : int
        Elements, at most, of pure work before an op on a resource; for built graphs.
    waits : bool
        True if the results of a body wait for all its ops: in graphs without automatic control
        dependencies.
    """

    def __init__(
        self, test: LitmusTest, rng: random.Random, *, padding: int = 0, waits: bool = False
    ) -> None:
        self.test = test
        self.rng = rng
        self.padding = padding
        self.waits = waits
        self._lines: dict[str, tuple[Line, tuple[Any, ...]]] = {}
        self._functions: dict[tuple[str, int], Any] = {}
        self._firsts = first_results(test.graphs)

    def execute(self, nodes: Sequence[Node], values: Values, handles: Handles) -> None:
        """Execute nodes one by one, or add them to what is built, with the test's own edges.

        Parameters
        ----------
        nodes : sequence of Node
        values : dict
            The values from outside that the nodes take, and those that the client feeds; each
            node adds its own.
        handles : mapping
        """
        for node in nodes:
            if context.executing_eagerly():  # in the order of the file, which keeps every edge
                self.pause(node)
                self._node(node, values, handles)
                continue
            with tf.control_dependencies([e for n in node.after for e in ended(values, n)]):
                self._node(node, values, handles)

    def pause(self, node: Node) -> None:
        """Called before a node is executed eagerly; does nothing here.

        `EagerProgram` waits for a random time, so that other threads go first.
        """

    def _node(self, node: Node, values: Values, handles: Handles) -> None:
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            self._branch(node, attrs, values, handles)
        elif isinstance(attrs, LoopAttrs):
            self._loop(node, attrs, values, handles)
        elif isinstance(attrs, CallAttrs):
            self._call(node, attrs, values, handles)
        elif isinstance(attrs, HandleAttrs):
            argument = handles.get(f"{node.name}/argument")
            if argument is None:
                argument = tf.identity(handles[attrs.variable])
            values[node.name] = argument
        elif not node.definition.fed:  # else the caller has put it into `values`
            self._op(node, values, handles)

    def _op(self, node: Node, values: Values, handles: Handles) -> None:
        """Execute one op, or add it to what is built."""
        if node.name not in self._lines:  # in one step: another thread may look
            line = node_defs.line(self.test, node)
            self._lines[node.name] = line, _eager_attributes(line.proto)
        line, attributes = self._lines[node.name]
        if isinstance(node.attrs, ConstAttrs):
            values[node.name] = _constant(line.proto)
            return
        # Where a part of a program begins anew (`eager_parts`), so does the op.
        if line.outputs and (outputs := values.get(f"*{self._firsts[node.name]}")):
            if not context.executing_eagerly():
                values[f"^{node.name}"] = [outputs[0].op]
            values[node.name] = outputs[line.output]
            return
        # TensorFlow's order: the resources, then what are attributes in a test, then the inputs.
        operands = [values[node.handle]] if node.handle else [handles[r] for r in node.resources]
        operands += [_constant(proto) for proto in line.constants]
        operands += [values[name] for name in node.inputs]
        if context.executing_eagerly():
            count = line.outputs or int(node.definition.has_value)
            outputs = eager_execution.execute(
                line.proto.op, count, operands, attributes, context.context()
            )
            self._put(node, line, outputs, values)
        else:
            self._add_op(node, line, operands, values)

    def _add_op(self, node: Node, line: Line, operands: Sequence[Any], values: Values) -> None:
        """Add an op to what is built."""
        graph: Any = tf.compat.v1.get_default_graph()
        inputs = [values[name] for name in node.inputs]
        with tf.control_dependencies(self._padding(node, inputs)):
            op = graph._create_op_internal(
                line.proto.op, operands, name=node.name, attrs=dict(line.proto.attr)
            )
        values[f"^{node.name}"] = [op]
        self._put(node, line, op.outputs, values)
        if node.resources and (line.outputs or node.definition.has_value):
            # A function leaves out a read without consumers, and orders nothing by it. This is one.
            tf.identity(op.outputs[0])

    def _put(self, node: Node, line: Line, outputs: Sequence[Any], values: Values) -> None:
        """Put the value of a node, one of the outputs of its op, where the others find it."""
        if line.outputs:
            values[f"*{self._firsts[node.name]}"] = list(outputs)
        values[node.name] = outputs[line.output] if outputs else None

    def _padding(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        """Pure work of random (log-uniform) length, which an op on a resource waits for."""
        if not (node.resources and self.padding) or self.rng.random() < 0.5:
            return []
        elements = int(self.padding ** self.rng.random())
        with tf.control_dependencies(inputs):
            return [tf.raw_ops.Digamma(x=tf.constant(1.5, tf.float32, [elements]))]

    def _branch(self, node: Node, attrs: BranchAttrs, values: Values, handles: Handles) -> None:
        taken = _predicate(values[node.inputs[0]])
        inside = {inner: values[outer] for inner, outer in attrs.captures}
        if context.executing_eagerly():
            returned = self._run_body(attrs.then if bool(taken) else attrs.orelse, inside, handles)
        else:
            # It waits for the control edges into the conditional, and so does either branch.
            taken = tf.identity(taken)
            branches = [
                partial(self._add_body, body, inside, handles)
                for body in (attrs.then, attrs.orelse)
            ]
            returned = _listed(tf.cond(taken, *branches))
        values |= _results(node, returned)
        values[f"^{node.name}"] = returned

    def _loop(self, node: Node, attrs: LoopAttrs, values: Values, handles: Handles) -> None:
        captured = {inner: values[outer] for inner, outer in attrs.captures}
        carried = [values[name] for name in node.inputs]

        def inside(carried: Sequence[Any]) -> Values:
            return captured | dict(zip(attrs.carried, carried, strict=True))

        def add(body: Body, carried: Sequence[Any]) -> list[Any]:
            # An op that takes no carried value would not wait for the iteration to begin: it waits
            # for the first carried value, which there is only then.
            with tf.control_dependencies(carried[:1]):
                return self._add_body(body, inside(carried), handles)

        def condition(*carried: Any) -> Any:
            return _predicate(add(attrs.condition, carried)[0])

        def iteration(*carried: Any) -> list[Any]:
            return add(attrs.body, carried)

        if context.executing_eagerly():
            while bool(_predicate(self._run_body(attrs.condition, inside(carried), handles)[0])):
                carried = self._run_body(attrs.body, inside(carried), handles)
        else:
            carried = [tf.identity(value) for value in carried]  # wait for the edges into the loop
            carried = _listed(
                tf.while_loop(
                    condition, iteration, carried, parallel_iterations=attrs.parallel_iterations
                )
            )
        values |= _results(node, carried)
        values[f"^{node.name}"] = carried

    def _run_body(self, body: Body, inside: Values, handles: Handles) -> list[Any]:
        """Execute a body eagerly; its results."""
        values = dict(inside)
        self.execute(body.nodes, values, handles)
        return [values[name] for name in body.results]

    def _add_body(
        self, body: Body, inside: Values, handles: Handles, *, token: bool = False
    ) -> list[Any]:
        """Add a body to what is built; its results, of the static types that the test names.

        Parameters
        ----------
        token : bool
            True for one result more, which comes after all ops of the body.
        """
        values = dict(inside)
        self.execute(body.nodes, values, handles)
        ops = [op for node in body.nodes for op in ended(values, node.name)]
        with tf.control_dependencies(ops if self.waits else []):
            results = [self._typed(name, tf.identity(values[name])) for name in body.results]
        if token:
            with tf.control_dependencies(ops):
                results.append(tf.constant(value=False))
        return results

    def _typed(self, name: str, value: Any) -> Any:
        """A tensor with its static shape, which TensorFlow does not always infer."""
        kind = self.test.types[name]
        if kind is not None and kind.is_tensor:
            value.set_shape(kind.shape)
        return value

    def _call(self, node: Node, attrs: CallAttrs, values: Values, handles: Handles) -> None:
        """Call a `tf.function`, traced when it is called first; inside another, while that is."""
        arguments = [values[outer] for _, outer in attrs.captures]
        # A function captures the handles of what it was traced in. It keeps them, so that no other
        # handles have their id.
        key = node.name, id(handles)
        traced = self._functions.get(key)
        if traced is None:

            def function(*arguments: Any) -> list[Any]:
                inside = {n: v for (n, _), v in zip(attrs.captures, arguments, strict=True)}
                return self._add_body(attrs.body, inside, handles, token=True)

            traced = self._functions[key] = tf.function(function, autograph=False)
        *returned, token = traced(*arguments)
        values |= _results(node, returned)
        # Control edges from a call follow its stateful ops only: those of the test leave from here.
        values[f"^{node.name}"] = [tf.identity(token), *returned]


def ended(values: Mapping[str, Any], name: str) -> list[Any]:
    """The ops or values that a control edge from a node, or from a value from outside, leaves."""
    ops = values.get(f"^{name}")
    return [values[name]] if ops is None else list(ops)


def _listed(returned: Any) -> list[Any]:
    """Results of `tf.cond` and `tf.while_loop`, which unpack a list of one."""
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _results(node: Node, returned: Sequence[Any]) -> Values:
    """The results of a loop, conditional or call by their names."""
    return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}


def _predicate(value: Any) -> Any:
    """Lane 0 of a bool, as a scalar. A rank of None is one that TensorFlow has not inferred."""
    return value if value.shape.rank == 0 else tf.reshape(value, [-1])[0]


def _constant(proto: Any) -> Any:
    """The value of a NodeDef of a Const."""
    return tf.constant(tf.make_ndarray(proto.attr["value"].tensor))


def _eager_attributes(proto: Any) -> tuple[Any, ...]:
    """The attributes of a NodeDef as eager execution takes them, each after its name.

    Those whose names begin with ``_`` are hints for graphs, which eager execution does not know.
    """
    attributes: list[Any] = []
    for name, value in proto.attr.items():
        if not name.startswith("_"):
            attributes += [name, _attribute(value)]
    return tuple(attributes)


def _attribute(value: Any) -> Any:
    """An attribute as eager execution takes it; a list is one of types or of numbers."""
    kind = value.WhichOneof("value")
    if kind == "shape":
        return tf.TensorShape(value.shape)
    if kind == "list":
        lists = (value.list.type, value.list.i, value.list.f)
        return next((list(elements) for elements in lists if elements), [])
    return getattr(value, kind)
