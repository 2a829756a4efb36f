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

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.eager import context, execute

from litmusfuzz.corpus.model import BranchAttrs, CallAttrs, LoopAttrs, first_results
from litmusfuzz.corpus.ops import ConstAttrs, HandleAttrs
from litmusfuzz.fuzz.executors.tensorflow import node_defs

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from litmusfuzz.corpus.model import Body, LitmusTest, Node
    from litmusfuzz.fuzz.executors.tensorflow.node_defs import Line

Values = dict[str, Any]
"""Tensors by the names of the values in a graph or body, and ops by ``^`` and the name.

The outputs of an op with several results stand under ``*`` and the name of the first node that is
one of them (`first_results`).
"""


class Program:
    """Executes the nodes of a test, or adds them to the function or graph that is built.

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

    def execute(self, nodes: Sequence[Node], values: Values, handles: Mapping[str, Any]) -> None:
        """Execute nodes one by one, or add them to what is built, with the test's own edges."""
        for node in nodes:
            if context.executing_eagerly():
                self.pause(node)
                self._node(node, values, handles)
                continue
            with tf.control_dependencies([e for n in node.after for e in ended(values, n)]):
                self._node(node, values, handles)

    def pause(self, node: Node) -> None:
        """Called before a node is executed eagerly."""

    def _node(self, node: Node, values: Values, handles: Mapping[str, Any]) -> None:
        attrs = node.attrs
        if isinstance(attrs, BranchAttrs):
            self._branch(node, attrs, values, handles)
        elif isinstance(attrs, LoopAttrs):
            self._loop(node, attrs, values, handles)
        elif isinstance(attrs, CallAttrs):
            self._call(node, attrs, values, handles)
        elif isinstance(attrs, HandleAttrs):
            # A captured handle and an argument, if the caller has passed one.
            other = handles.get(f"{node.name}/argument")
            values[node.name] = tf.identity(handles[attrs.variable]) if other is None else other
        elif not node.definition.fed:  # else the caller has put it into `values`
            self._op(node, values, handles)

    def _op(self, node: Node, values: Values, handles: Mapping[str, Any]) -> None:
        """Execute one op, or add it to what is built."""
        if node.name not in self._lines:  # in one step: another thread may look
            line = node_defs.line(self.test, node)
            self._lines[node.name] = line, _plain(line.proto)
        line, attrs = self._lines[node.name]
        if isinstance(node.attrs, ConstAttrs):
            values[node.name] = tf.constant(tf.make_ndarray(line.proto.attr["value"].tensor))
            return
        # Where a part of a program begins anew (`eager_parts`), so does the op.
        if line.outputs and (made := values.get(f"*{self._firsts[node.name]}")):
            if not context.executing_eagerly():
                values[f"^{node.name}"] = [made[0].op]
            values[node.name] = made[line.output]
            return
        inputs = [values[name] for name in node.inputs]
        given = [values[node.handle]] if node.handle else [handles[r] for r in node.resources]
        given += [tf.constant(tf.make_ndarray(c.attr["value"].tensor)) for c in line.constants]
        given += inputs
        outputs = line.outputs or int(node.definition.has_value)
        if context.executing_eagerly():
            made = execute.execute(line.proto.op, outputs, given, attrs, context.context())
            self._put(node, line, made, values)
            return
        graph: Any = tf.compat.v1.get_default_graph()
        with tf.control_dependencies(self._work(node, inputs)):
            op = graph._create_op_internal(
                line.proto.op, given, name=node.name, attrs=dict(line.proto.attr)
            )
        values[f"^{node.name}"] = [op]
        self._put(node, line, op.outputs, values)
        if outputs and node.resources:
            # A function executes no read that nothing takes a value from, and orders nothing by it.
            tf.identity(op.outputs[0])

    def _put(self, node: Node, line: Line, outputs: Sequence[Any], values: Values) -> None:
        """Put the value of a node, one of the outputs of its op, where the others find it."""
        if line.outputs:
            values[f"*{self._firsts[node.name]}"] = list(outputs)
        values[node.name] = outputs[line.output] if outputs else None

    def _work(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        """Pure work of random (log-uniform) length, which an op on a resource waits for."""
        if not (node.resources and self.padding) or self.rng.random() < 0.5:
            return []
        elements = int(self.padding ** self.rng.random())
        with tf.control_dependencies(inputs):
            return [tf.raw_ops.Digamma(x=tf.constant(1.5, tf.float32, [elements]))]

    def _branch(
        self, node: Node, attrs: BranchAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        taken = _lane(values[node.inputs[0]])
        inside = {inner: values[outer] for inner, outer in attrs.captures}
        if context.executing_eagerly():
            returned = self._body(attrs.then if bool(taken) else attrs.orelse, inside, handles)
        else:
            taken = tf.identity(taken)  # waits for the control edges into the conditional
            sides = [
                lambda body=body: self._returned(body, inside, handles)
                for body in (attrs.then, attrs.orelse)
            ]
            returned = _listed(tf.cond(taken, *sides))
        values |= _results(node, returned)
        values[f"^{node.name}"] = returned

    def _loop(
        self, node: Node, attrs: LoopAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        captured = {inner: values[outer] for inner, outer in attrs.captures}
        carried = [values[name] for name in node.inputs]

        def inside(given: Sequence[Any]) -> Values:
            return captured | dict(zip(attrs.carried, given, strict=True))

        def iteration(body: Body, given: Sequence[Any]) -> list[Any]:
            # An op that needs no carried value would not wait for the first one.
            with tf.control_dependencies(given[:1]):
                return self._returned(body, inside(given), handles)

        if context.executing_eagerly():
            while bool(_lane(self._body(attrs.condition, inside(carried), handles)[0])):
                carried = self._body(attrs.body, inside(carried), handles)
        else:
            carried = [tf.identity(each) for each in carried]  # wait for the edges into the loop
            carried = _listed(
                tf.while_loop(
                    lambda *given: _lane(iteration(attrs.condition, given)[0]),
                    lambda *given: iteration(attrs.body, given),
                    carried,
                    parallel_iterations=attrs.parallel_iterations,
                )
            )
        values |= _results(node, carried)
        values[f"^{node.name}"] = carried

    def _body(self, body: Body, inside: Values, handles: Mapping[str, Any]) -> list[Any]:
        values = dict(inside)
        self.execute(body.nodes, values, handles)
        return [values[name] for name in body.results]

    def _returned(
        self, body: Body, inside: Values, handles: Mapping[str, Any], *, token: bool = False
    ) -> list[Any]:
        """Add a body to what is built; its results, of the static types that the test names.

        Parameters
        ----------
        token : bool
            True for one result more, which comes after all ops of the body.
        """
        values = dict(inside)
        self.execute(body.nodes, values, handles)
        done = [each for node in body.nodes for each in ended(values, node.name)]
        with tf.control_dependencies(done if self.waits else []):
            found = [self._typed(name, tf.identity(values[name])) for name in body.results]
        if token:
            with tf.control_dependencies(done):
                found.append(tf.constant(value=False))
        return found

    def _typed(self, name: str, value: Any) -> Any:
        """A tensor with its static shape, which TensorFlow does not always infer."""
        kind = self.test.types[name]
        if kind is not None and kind.is_tensor:
            value.set_shape(kind.shape)
        return value

    def _call(
        self, node: Node, attrs: CallAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        """Call a `tf.function`, traced when it is called first; inside another, while that is."""
        given = [values[outer] for _, outer in attrs.captures]
        # A function captures the handles of what it was traced in.
        key = node.name, id(handles)
        made = self._functions.get(key)
        if made is None:

            def function(*arguments: Any) -> list[Any]:
                inside = {n: v for (n, _), v in zip(attrs.captures, arguments, strict=True)}
                return self._returned(attrs.body, inside, handles, token=True)

            made = self._functions[key] = tf.function(function, autograph=False)
        *returned, token = made(*given)
        values |= _results(node, returned)
        # Control edges from a call follow its stateful ops only: those of the test leave from here.
        values[f"^{node.name}"] = [tf.identity(token), *returned]


def ended(values: Mapping[str, Any], name: str) -> list[Any]:
    """The ops or values that a control edge from a node, or from a value from outside, leaves."""
    made = values.get(f"^{name}")
    return [values[name]] if made is None else list(made)


def _listed(returned: Any) -> list[Any]:
    """Results of `tf.cond` and `tf.while_loop`, which unpack a list of one."""
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _results(node: Node, returned: Sequence[Any]) -> Values:
    return {f"{node.name}.{n}": v for n, v in zip(node.results, returned, strict=True)}


def _lane(value: Any) -> Any:
    """A predicate: lane 0 of a value."""
    return value if value.shape.rank == 0 else tf.reshape(value, [-1])[0]  # None: not inferred


def _plain(proto: Any) -> tuple[Any, ...]:
    """The attributes of a NodeDef, as eager execution takes them."""
    found: list[Any] = []
    for name, value in proto.attr.items():
        if name.startswith("_"):
            continue
        found += [name, _attribute(value)]
    return tuple(found)


def _attribute(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "shape":
        return tf.TensorShape(value.shape)
    if kind == "list":
        held = (value.list.type, value.list.i, value.list.f)
        return next((list(each) for each in held if each), [])
    return getattr(value, kind)
