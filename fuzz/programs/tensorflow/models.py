"""The entry points of a Keras model, each as a traced function."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from litmusfuzz.fuzz.programs.program import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ENTRY_POINTS = ("train", "eval", "predict", "save", "reset_metrics")


def entry_points(model: Any, specs: Sequence[Any]) -> dict[str, Any]:
    """Concrete functions of a model's entry points, by name.

    Parameters
    ----------
    model : keras.Model
        Built; train and eval need a compiled one.
    specs : sequence of tf.TensorSpec
        The inputs, and the targets after them; from the model where they are not given.

    Raises
    ------
    ProgramError
        If an input is not known.
    """
    import tensorflow as tf

    if not model.built:
        raise ProgramError("the model is not built: call it once, or give --input and build it")
    inputs, targets = _types(tf, model, specs)
    found: dict[str, Any] = {}
    compiled = getattr(model, "compiled", False) and model.optimizer is not None
    if compiled:
        # What compiles lazily would make variables inside of the traced function.
        model.optimizer.build(model.trainable_variables)
        _build_metrics(tf, model, inputs, targets)
        data = (inputs, targets)
        found["train"] = _traced(tf, "train_step", model.train_step, data)
        found["eval"] = _traced(tf, "test_step", model.test_step, data)
    found["predict"] = _traced(tf, "predict_step", model.predict_step, (inputs,))

    def save() -> list[Any]:
        return [tf.identity(_value(each)) for each in _variables(model)]

    found["save"] = tf.function(save).get_concrete_function()
    if compiled and any(metric.variables for metric in model.metrics):
        found["reset_metrics"] = tf.function(_reset(model)).get_concrete_function()
    return found


def paths(held: Iterable[Any]) -> dict[int, str]:
    """What Keras calls the variables of its layers, optimizers and metrics, by their handles.

    TensorFlow's own names leave out the layer or the metric where Keras makes it late: "total" for
    "accuracy/total".

    Parameters
    ----------
    held : iterable
        Values of any kind, such as those of a module; lists, tuples and dictionaries are searched.
    """
    keras = sys.modules.get("keras")
    found: dict[int, str] = {}
    todo = list(held) if keras is not None else []
    done: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) in done:
            continue
        done.add(id(each))
        if isinstance(each, (list, tuple)):
            todo += each
        elif isinstance(each, dict):
            todo += each.values()
        elif keras is not None and isinstance(
            each, (keras.Layer, keras.optimizers.Optimizer, keras.metrics.Metric)
        ):
            variables = list(each.variables)
            if isinstance(each, keras.Model):
                variables += [variable for metric in each.metrics for variable in metric.variables]
                todo.append(getattr(each, "optimizer", None))
            for variable in variables:
                handle = getattr(variable, "handle", None)
                if handle is not None:
                    found[id(handle)] = variable.path
    return found


def _reset(model: Any) -> Callable[[], None]:
    def reset_metrics() -> None:
        for metric in model.metrics:
            metric.reset_state()

    return reset_metrics


def _types(tf: Any, model: Any, specs: Sequence[Any]) -> tuple[Any, Any]:
    given = list(specs)
    inputs = []
    for each in getattr(model, "inputs", None) or ():
        shape = [8 if n is None else n for n in each.shape]
        inputs.append(given.pop(0) if given else tf.TensorSpec(shape, each.dtype))
    if not inputs:
        if not given:
            raise ProgramError(
                "the model does not say what its inputs are: give --input float32[8,4]"
            )
        inputs = [given.pop(0)]
    targets = given
    if not targets:
        for each in getattr(model, "outputs", None) or ():
            shape = [8 if n is None else n for n in each.shape]
            loss = str(getattr(model, "loss", "")).lower()
            if "sparse" in loss:
                targets.append(tf.TensorSpec(shape[:-1], tf.int32))
            else:
                targets.append(tf.TensorSpec(shape, each.dtype))
    if not targets:
        raise ProgramError(
            "the targets are not known: give them after the inputs, --input float32[8,1]"
        )
    return _joined(inputs), _joined(targets)


def _joined(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _build_metrics(tf: Any, model: Any, inputs: Any, targets: Any) -> None:
    """Let the model make the variables of its metrics, on zeros."""

    def zeros(spec: Any) -> Any:
        return tf.zeros(spec.shape, spec.dtype)

    x = tf.nest.map_structure(zeros, inputs)
    y = tf.nest.map_structure(zeros, targets)
    try:
        model._symbolic_build(data_batch=(x, y))
    except Exception as error:  # noqa: BLE001 - the user's model, which may raise anything
        raise _not_traced("its loss", error) from None


def _traced(tf: Any, name: str, step: Any, data: Any) -> Any:
    try:
        return tf.function(lambda batch: step(batch)).get_concrete_function(data)
    except Exception as error:  # noqa: BLE001 - the user's model, which may raise anything
        raise _not_traced(name, error) from None


def _not_traced(name: str, error: Exception) -> ProgramError:
    text = (str(error).splitlines() or [""])[0]
    return ProgramError(f"{name} cannot be traced: {type(error).__name__}: {text}")


def _variables(model: Any) -> list[Any]:
    found = list(model.variables)
    if getattr(model, "optimizer", None) is not None:
        found += model.optimizer.variables
    return list({id(each): each for each in found}.values())


def _value(variable: Any) -> Any:
    """The variable's value, of Keras or of TensorFlow."""
    value = variable.value
    return value() if callable(value) else value
