"""Programs from a user's module: a `tf.function`, a Keras model, or a `tf.Graph`.

The module is imported, and so executed; a `tf.function` is traced. Nothing is run here beyond
that. A Keras model may also come from a file, which is read as data.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.program import (
    Entry,
    Function,
    Location,
    Program,
    ProgramError,
    Resource,
)
from litmusfuzz.fuzz.programs.tensorflow import models, reading
from litmusfuzz.fuzz.programs.tensorflow.keras_files import read_keras

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litmusfuzz.fuzz.programs.program import ResourceKind

MODULE: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w.]*)")
_INPUT: Final = re.compile(r"(?P<dtype>[a-z]+\d*)(\[(?P<shape>[\d?,\s]*)\])?")


@dataclass(frozen=True, slots=True)
class Live:
    """A program, and what it was made from.

    Parameters
    ----------
    program : Program
    functions : mapping
        By run: the concrete function; none for a run of a `tf.Graph`.
    graph : tf.Graph or None
    file : str
        Of a program that was read as data; else "".
    """

    program: Program
    functions: Mapping[str, Any]
    graph: Any = None
    file: str = ""


def read_modules(
    targets: Sequence[str], inputs: Sequence[str], runs: Mapping[str, Sequence[str]]
) -> Live:
    """A program from attributes of modules, each ``module:name``.

    Parameters
    ----------
    targets : sequence of str
        Several have to be functions; each is a run.
    inputs : sequence of str
        Types of the example inputs, as in ``float32[8,4]``.
    runs : mapping
        Fetches by run, for a `tf.Graph`.

    Raises
    ------
    ProgramError
        If there is no such attribute, or it is nothing that can be checked.
    """
    import tensorflow as tf

    found = [(target, _attribute(target)) for target in targets]
    specs = [_spec(tf, each) for each in inputs]
    modules = list(dict.fromkeys(target.partition(":")[0] for target in targets))
    note = f"imported {', '.join(modules)}, which executes it"
    name = " ".join(targets)
    if len(found) == 1:
        value = found[0][1]
        if isinstance(value, tf.Graph):
            return _graph(name, value, runs, note)
        if isinstance(value, tf.keras.Model):
            return _model(name, value, specs, runs, note)
    if runs:
        raise ProgramError("--run: is for graphs; a function is a run by itself")
    functions = {}
    for target, value in found:
        short = target.partition(":")[2]
        if short in functions:
            short = target
        functions[short] = _concrete(tf, target, value, specs)
    names = list(functions)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    held = [value for module in modules for value in vars(sys.modules[module]).values()]
    return _functions(name, functions, pairs, note, models.paths(held))


def read_keras_file(path: str, inputs: Sequence[str], runs: Mapping[str, Sequence[str]]) -> Live:
    """The entry points of the Keras model in a file.

    Raises
    ------
    ProgramError
        If it is no such file, or not data alone.
    """
    import tensorflow as tf

    model = read_keras(path)
    specs = [_spec(tf, each) for each in inputs]
    note = f"built the model of {path} from its configuration; its weights are not read"
    return _model(path, model, specs, runs, note)


def _model(
    name: str, model: Any, specs: Sequence[Any], runs: Mapping[str, Sequence[str]], note: str
) -> Live:
    """The entry points of a Keras model, each beside itself and beside the others."""
    if runs:
        raise ProgramError("--run: is for graphs; a Keras model has its entry points")
    functions = models.entry_points(model, specs)
    both = [(a, b) for i, a in enumerate(functions) for b in list(functions)[i:]]
    return _functions(name, functions, both, note, models.paths([model]))


def _attribute(target: str) -> Any:
    match = MODULE.fullmatch(target)
    assert match is not None, target
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = importlib.import_module(match["module"])
    except ImportError as error:
        if error.name and match["module"].startswith(error.name):
            raise ProgramError(f"{target}: no module {error.name} here or on the path") from None
        raise ProgramError(f"{target}: cannot import {match['module']}: {error}") from None
    except Exception as error:  # noqa: BLE001 - the user's module, which may raise anything
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ProgramError(f"{target}: importing {match['module']} failed: {text}") from None
    for part in match["name"].split("."):
        if not hasattr(value, part):
            raise ProgramError(f"{target}: {match['module']} has no {match['name']}")
        value = getattr(value, part)
    return value


def _spec(tf: Any, text: str) -> Any:
    match = _INPUT.fullmatch(text.strip())
    if match is None or not hasattr(tf, match["dtype"]):
        raise ProgramError(f"--input: cannot read {text!r:.80}; write float32[8,4] or int32")
    shape = [
        None if n.strip() == "?" else int(n) for n in (match["shape"] or "").split(",") if n.strip()
    ]
    return tf.TensorSpec(shape, getattr(tf, match["dtype"]))


def _concrete(tf: Any, target: str, value: Any, specs: Sequence[Any]) -> Any:
    """The concrete function of a `tf.function` for inputs of these types."""
    if hasattr(value, "function_def") and hasattr(value, "captured_inputs"):
        return value
    if not hasattr(value, "get_concrete_function"):
        if isinstance(value, (tf.Graph, tf.keras.Model)):
            raise ProgramError(f"{target}: check it alone; several targets have to be functions")
        kind = type(value).__name__
        raise ProgramError(f"{target}: is {kind}, and no tf.function, tf.Graph or Keras model")
    wants = getattr(value, "input_signature", None)
    given = () if wants is not None else _fitting(value, specs)
    try:
        return value.get_concrete_function(*given)
    except TypeError as error:
        text = str(error).splitlines()[0]
        raise ProgramError(
            f"{target}: needs example inputs, --input float32[8,4]: {text}"
        ) from None
    except Exception as error:  # noqa: BLE001 - the user's function, which may raise anything
        text = (str(error).splitlines() or [""])[0]
        raise ProgramError(f"{target}: tracing failed: {type(error).__name__}: {text}") from None


def _fitting(value: Any, specs: Sequence[Any]) -> Sequence[Any]:
    """As many of the example inputs as the function takes."""
    import inspect

    try:
        parameters = inspect.signature(value.python_function).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return specs
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return specs
    return specs[: len(parameters)]


def _graph(name: str, graph: Any, runs: Mapping[str, Sequence[str]], note: str) -> Live:
    program = reading.graph_program(name, graph.as_graph_def(), runs)
    sources: dict[tuple[str, str], Location] = {}
    _locate(graph, "", sources)
    return Live(replace(program, sources=sources, notes=(note,)), {}, graph)


def _functions(
    name: str,
    concrete: Mapping[str, Any],
    pairs: Sequence[tuple[str, str]],
    note: str,
    paths: Mapping[int, str],
) -> Live:
    """A program whose runs are concrete functions; `paths` names variables, by their handles."""
    functions: dict[str, Function] = {}
    sources: dict[tuple[str, str], Location] = {}
    entries = []
    names: dict[object, Resource] = {}
    for run, function in concrete.items():
        definition = function.function_def
        own = definition.signature.name
        functions[own] = replace(reading.from_function_def(definition), automatic=True)
        library = function.graph.as_graph_def().library
        for each in library.function:
            if each.signature.name not in functions:
                functions[each.signature.name] = reading.from_function_def(each)
        _locate(function.graph, own, sources)
        entries.append(Entry(run, own, (), _resources(function, names, paths)))
    return Live(
        Program(name, Function("", ()), functions, tuple(entries), sources, tuple(pairs), (note,)),
        dict(concrete),
    )


def _resources(
    function: Any, names: dict[object, Resource], paths: Mapping[int, str]
) -> dict[str, Resource]:
    """The resource of each captured handle, and of each argument that is a handle.

    A handle that two functions capture is one resource, and so is one that a function captures
    twice.
    """
    variables = {id(each.handle): each for each in function.graph.variables}
    arguments = [each.name for each in function.function_def.signature.input_arg]
    types = [each.type for each in function.function_def.signature.input_arg]
    captured = function.captured_inputs
    found: dict[str, Resource] = {}
    taken = {each.name for each in names.values()}
    first = len(arguments) - len(captured)
    for place, argument in enumerate(arguments):
        if types[place] != reading.RESOURCE:
            continue
        if place < first:
            found[argument] = Resource(f"argument {argument}")
            continue
        handle = captured[place - first]
        key = _identity(handle)
        if key not in names:
            variable = variables.get(id(handle))
            resource = Resource(_handle_name(handle, argument), _kind(handle))
            if variable is not None:
                shape = variable.shape
                known = tuple(shape.as_list()) if shape.is_fully_defined() else None
                label = paths.get(id(handle)) or variable.name.removesuffix(":0")
                resource = Resource(label, "variable", dtype=variable.dtype.name, shape=known)
            number, plain = 1, resource.name
            while resource.name in taken:
                number += 1
                resource = replace(resource, name=f"{plain}#{number}")
            taken.add(resource.name)
            names[key] = resource
        found[argument] = names[key]
    return found


_KINDS: Final[Mapping[str, ResourceKind]] = {
    "Lookup": "table",
    "Iterator": "iterator",
    "Mutex": "mutex",
    "Queue": "queue",
}
"""Kinds of resources by a word in the text of their handles; others are variables."""
_HANDLE: Final = re.compile(r'ResourceHandle\(name="([^"]*)", device="[^"]*", container="([^"]*)"')


def _identity(handle: Any) -> object:
    """Identity of the resource behind an eager handle: its container and name.

    The name may be empty: all sections made without `shared_name` take one mutex.
    """
    match = _HANDLE.search(str(handle))
    return match.groups() if match else id(handle)


def _handle_name(handle: Any, argument: str) -> str:
    """The resource's name, as the handle has it; the argument's if there is none."""
    match = _HANDLE.search(str(handle))
    return re.sub(r"[/_]\d+$", "", match[1]) if match and match[1] else argument


def _kind(handle: Any) -> ResourceKind:
    text = str(handle)
    for word, kind in _KINDS.items():
        if word in text:
            return kind
    return "variable"


_LIBRARIES: Final = re.compile(r"[/\\](site|dist)-packages[/\\]")


def _locate(graph: Any, name: str, sources: dict[tuple[str, str], Location]) -> None:
    """Note where the user's source made each operation of a graph and of its functions."""
    here = os.getcwd() + os.sep
    todo = [(name, graph)]
    done = {name}
    while todo:
        owner, each = todo.pop()
        for operation in each.get_operations():
            location = None
            for frame in operation.traceback or ():
                if not _LIBRARIES.search(frame.filename) and frame.filename.startswith(here):
                    location = Location(frame.filename.removeprefix(here), frame.lineno)
            if location is not None:
                sources[owner, operation.name] = location
        for inner, function in getattr(each, "_functions", {}).items():
            own = inner.decode() if isinstance(inner, bytes) else inner
            if own not in done and getattr(function, "graph", None) is not None:
                done.add(own)
                todo.append((own, function.graph))
