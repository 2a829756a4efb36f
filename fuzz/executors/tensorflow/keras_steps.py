"""Threads whose training steps are Keras's own: ``optimizer.apply`` in place of a call.

A call whose body `corpus.optimizers` recognizes is a *step*. It becomes a `tf.function` that
applies a real optimizer to the gradient that the call captures. Keras makes the variables that the
optimizer works on: the trained one, the momentum, the learning rate, the counter of steps, the
moving average. Their handles replace those of the test's variables of these names, so that the
test's other ops access them, too. All else is `eager_parts.MixedProgram`: eager threads, functions
and functions that XLA compiles read and evaluate beside the steps.

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

from litmusfuzz.corpus.optimizers import gradient_of, steps_of
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


def refuse_unless_keras_steps(test: LitmusTest) -> None:
    """Refuse a test without steps, or with a variable in two roles.

    An optimizer makes its own variables: none of them can be another optimizer's too, or a trained
    one.

    Raises
    ------
    Refused
        If the test has no step, or names the variable with two roles.
    """
    steps = set(steps_of(test).values())
    if not steps:
        raise Refused("no step of a Keras optimizer")
    trained = {step.variable for step in steps}
    owners: dict[str, Step] = {}
    for step in steps:
        for name in step.variables:
            if name in trained or owners.setdefault(name, step) is not step:
                raise Refused(f"two roles of {name} in steps of Keras optimizers")


def optimizer_of(step: Step) -> Any:
    """A new optimizer of Keras with the settings of a step."""
    keras = _keras()
    shared: dict[str, Any] = {"learning_rate": float(step.learning_rate)}
    if step.clip:
        shared["clipvalue"] = float(step.clip)
    if step.average:
        shared |= {"use_ema": True, "ema_momentum": float(step.average_momentum)}
    if step.kind == "Lion":
        # With a `beta_1` of 1 the sign is that of the momentum alone (`corpus.optimizers`).
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
            self._apply[step] = self._applier(step, trained[step.variable])

    def _trained(self, variable: Variable) -> Any:
        """Make a variable of Keras with the initial value of one of the test, and replace that."""
        initial = literal(variable.init or 0, variable.shape, variable.dtype, whole=self.test.whole)
        of_keras = _keras().Variable(initial, dtype=variable.dtype)
        self._replace(variable.name, of_keras)
        return of_keras

    def _replace(self, name: str, variable: Any) -> None:
        """Replace the test's variable of that name by one of Keras: all ops take its handle."""
        tf.raw_ops.DestroyResourceOp(resource=self.handles[name])
        self.handles[name] = variable.value.handle

    def _applier(self, step: Step, variable: Any) -> Callable[[Any], None]:
        """A function that applies the optimizer of a step to a gradient.

        The variables that the optimizer makes replace the test's.
        """
        with _default_float(variable.dtype):
            optimizer = optimizer_of(step)
        optimizer.build([variable])
        if step.slot:
            slots = "_momentums" if step.kind == "Lion" else "momentums"
            self._replace(step.slot, getattr(optimizer, slots)[0])
        if step.rate:
            self._replace(step.rate, optimizer._learning_rate)
        if step.iterations:
            self._replace(step.iterations, optimizer._iterations)
        if step.average:
            self._replace(step.average, optimizer._model_variables_moving_average[0])

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
        # One function for all runs: traced inside of another, it still captures the variables.
        made = self._functions.get((node.name, 0))
        if made is None:

            def function(gradient: Any) -> Any:
                apply(gradient)
                return tf.constant(value=False)  # comes after all effects

            made = self._functions[node.name, 0] = tf.function(function, autograph=False)
        values[f"^{node.name}"] = [tf.identity(made(values[gradient_of(node)]))]


class PreparedKeras(PreparedEager):
    """A test as Python threads with steps of Keras's optimizers."""

    def __init__(self, test: LitmusTest, config: Config, clock: Clock) -> None:
        super().__init__(test, config, clock)
        refuse_unless_keras_steps(test)
        compiled = bool(Settings.of(config).compiled)
        self.new_program = partial(KerasProgram, compiled=compiled)


@contextmanager
def _default_float(dtype: str) -> Iterator[None]:
    """Set Keras's default dtype of floats: its optimizers make their learning rate of it."""
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
