"""Threads whose training steps are Keras's own: ``optimizer.apply`` in place of a call.

A call whose body `corpus.optimizers` recognizes is a `tf.function` that applies a real optimizer
to the gradient that the call captures. The variables of the test that the step works on are those
of Keras: the trained one, the momentum, the learning rate, the counter of steps, the moving
average. All else is `eager_parts.MixedProgram`, so that eager threads, functions and functions that
XLA compiles read and evaluate beside the steps.

The step adds no order to that of its body, besides automatic control dependencies: the model is
`acd`, or `one_cluster` for ``compiled=whole``. Keras guarantees nothing about threads: this is
what TensorFlow guarantees of the ops that ``apply`` executes.

References
----------
Keras 3, ``keras/src/optimizers/base_optimizer.py``, ``apply``; TensorFlow,
``tensorflow/python/framework/auto_control_deps.py``.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from litmusfuzz.corpus.optimizers import steps_of
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.executors.tensorflow.eager import PreparedEager
from litmusfuzz.fuzz.executors.tensorflow.eager_parts import MixedProgram
from litmusfuzz.fuzz.executors.tensorflow.node_defs import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from litmusfuzz.corpus.model import CallAttrs, LitmusTest, Node, Variable
    from litmusfuzz.corpus.optimizers import Step
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.executors.tensorflow.clock import Clock
    from litmusfuzz.fuzz.executors.tensorflow.program import Values


def refuse_others(test: LitmusTest) -> None:
    """Refuse a test without a step, or one whose optimizers share their own variables.

    Raises
    ------
    Refused
        Saying which.
    """
    steps = set(steps_of(test).values())
    if not steps:
        raise Refused("no step of a Keras optimizer")
    trained = {step.variable for step in steps}
    owner: dict[str, Step] = {}
    for step in steps:
        for name in step.variables:
            if name in trained or owner.setdefault(name, step) is not step:
                raise Refused(f"two roles of {name} in steps of Keras optimizers")


def optimizer_of(step: Step) -> Any:
    """The optimizer of a step."""
    keras = _keras()
    shared: dict[str, Any] = {"learning_rate": float(step.learning_rate)}
    if step.clip:
        shared["clipvalue"] = float(step.clip)
    if step.average:
        shared |= {"use_ema": True, "ema_momentum": float(step.average_momentum)}
    if step.kind == "Lion":
        return keras.optimizers.Lion(beta_1=1.0, beta_2=float(step.momentum), **shared)
    return keras.optimizers.SGD(momentum=float(step.momentum), nesterov=step.nesterov, **shared)


class KerasProgram(MixedProgram):
    """The graphs of one test as Python code, with the steps of real optimizers.

    Parameters
    ----------
    test : LitmusTest
    seed : int
    compiled : bool
        True if each run is one function, which XLA compiles.
    """

    def __init__(self, test: LitmusTest, seed: int = 0, *, compiled: bool = False) -> None:
        super().__init__(test, seed, compiled=compiled)
        self._steps = steps_of(test)
        self._apply: dict[Step, Callable[[Any], None]] = {}
        trained: dict[str, Any] = {}
        kinds = {variable.name: variable for variable in test.variables}
        for step in dict.fromkeys(self._steps.values()):
            if step.variable not in trained:
                trained[step.variable] = self._trained(kinds[step.variable])
            self._apply[step] = self._applied(step, trained[step.variable])

    def _trained(self, variable: Variable) -> Any:
        """A variable of Keras in place of one of the test."""
        first = literal(variable.init or 0, variable.shape, variable.dtype, whole=self.test.whole)
        made = _keras().Variable(first, dtype=variable.dtype)
        self._take_over(variable.name, made)
        return made

    def _take_over(self, name: str, variable: Any) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.handles[name])
        self.handles[name] = variable.value.handle

    def _applied(self, step: Step, variable: Any) -> Callable[[Any], None]:
        """Apply the optimizer of a step, whose variables are those of the test."""
        with _default_float(variable.dtype):
            optimizer = optimizer_of(step)
        optimizer.build([variable])
        if step.slot:
            slots = "_momentums" if step.kind == "Lion" else "momentums"
            self._take_over(step.slot, getattr(optimizer, slots)[0])
        if step.rate:
            self._take_over(step.rate, optimizer._learning_rate)
        if step.iterations:
            self._take_over(step.iterations, optimizer._iterations)
        if step.average:
            self._take_over(step.average, optimizer._model_variables_moving_average[0])

        def apply(gradient: Any) -> None:
            optimizer.apply([gradient], [variable])

        return apply

    def _call(
        self, node: Node, attrs: CallAttrs, values: Values, handles: Mapping[str, Any]
    ) -> None:
        """Call a step as a function that applies its optimizer; other calls as they are."""
        step = self._steps.get(node.name)
        if step is None:
            super()._call(node, attrs, values, handles)
            return
        apply = self._apply[step]
        # A function captures the variables of the optimizer, whatever it is traced in.
        made = self._functions.get((node.name, 0))
        if made is None:

            def function(gradient: Any) -> Any:
                apply(gradient)
                return tf.constant(value=False)  # comes after all effects

            made = self._functions[node.name, 0] = tf.function(function, autograph=False)
        (_, outer), *_ = attrs.captures
        values[f"^{node.name}"] = [tf.identity(made(values[outer]))]


class PreparedKeras(PreparedEager):
    """A test as Python threads with steps of Keras's optimizers."""

    def __init__(self, test: LitmusTest, config: Config, clock: Clock) -> None:
        super().__init__(test, config, clock)
        refuse_others(test)
        compiled = bool(Settings.of(config).compiled)
        self.new_program = partial(KerasProgram, compiled=compiled)


@contextmanager
def _default_float(dtype: str) -> Iterator[None]:
    """Make that the dtype of learning rates: Keras has one for all optimizers that it makes."""
    config = _keras().config
    before = config.floatx()
    config.set_floatx(dtype)
    try:
        yield
    finally:
        config.set_floatx(before)


def _keras() -> Any:
    import keras  # takes seconds: not where no step is taken

    return keras
