"""Graphs and functions of TensorFlow, from its protocol buffers.

Nothing is executed: a file is parsed, and its nodes are copied.

References
----------
tensorflow/core/framework/graph.proto, function.proto; tensorflow/core/protobuf/saved_model.proto.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from litmusfuzz.fuzz.programs.effects import HANDLES
from litmusfuzz.fuzz.programs.expansion import output_of
from litmusfuzz.fuzz.programs.program import (
    Entry,
    Function,
    Operation,
    Output,
    Program,
    ProgramError,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_FILE_BYTES: Final = 2 << 30
_FUNCTIONS: Final = ("then_branch", "else_branch", "cond", "body", "f", "branches")


def read_file(path: str, runs: Mapping[str, Sequence[str]]) -> Program:
    """A program from a file: a GraphDef, a FunctionDef, or a SavedModel's folder.

    Parameters
    ----------
    path : str
    runs : mapping
        Fetches by run; a function of the library may stand for them. Of a SavedModel all
        signatures, if empty.

    Raises
    ------
    ProgramError
        If it is none of them, or a run is missing.
    """
    folder = Path(path)
    if folder.is_dir():
        return _saved_model(folder, runs)
    if folder.stat().st_size > MAX_FILE_BYTES:
        raise ProgramError(f"{path}: larger than {MAX_FILE_BYTES >> 30} GiB")
    data = folder.read_bytes()
    if folder.name == "saved_model.pb":
        return _saved_model(folder.parent, runs)
    from tensorflow.core.framework import function_pb2, graph_pb2

    graph = _parsed(data, graph_pb2.GraphDef)
    if graph is not None and (graph.node or graph.library.function):
        return graph_program(path, graph, runs)
    function = _parsed(data, function_pb2.FunctionDef)
    if function is not None and function.signature.name:
        graph = graph_pb2.GraphDef()
        graph.library.function.append(function)
        return graph_program(path, graph, runs or {"run": [function.signature.name]})
    raise ProgramError(
        f"{path}: is no GraphDef, FunctionDef or SavedModel, neither binary nor text"
    )


def graph_of(path: str) -> Any:
    """The GraphDef of a file that `read_file` reads; of a SavedModel its folder, as a Path."""
    from tensorflow.core.framework import graph_pb2

    file = Path(path)
    if file.is_dir():
        return file
    if file.name == "saved_model.pb":
        return file.parent
    return _parsed(file.read_bytes(), graph_pb2.GraphDef) or graph_pb2.GraphDef()


def _parsed(data: bytes, kind: Any) -> Any:
    """The message in binary or text; None if it is not one."""
    message = kind()
    try:
        text = data.decode("utf-8")
        text_format.Parse(text, message)
    except (UnicodeDecodeError, text_format.ParseError):
        message = kind()
        try:
            message.ParseFromString(data)
        except DecodeError:
            return None
    return message


def graph_program(path: str, graph: Any, runs: Mapping[str, Sequence[str]]) -> Program:
    """A program from a GraphDef."""
    main, functions = from_graph_def(graph)
    if not runs:
        raise ProgramError(f"{path}: which runs? --run NAME=FETCH,... names what a client fetches")
    operations = {each.name for each in main.operations}
    entries = []
    for name, fetches in runs.items():
        alone = fetches[0] if len(fetches) == 1 else ""
        if alone in functions and output_of(alone)[0] not in operations:
            entries.append(function_entry(name, functions[alone], graph))
        else:
            entries.append(Entry(name, "", tuple(fetches)))
    names = [each.name for each in entries]
    pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    return Program(path, main, functions, tuple(entries), concurrent=pairs)


def function_entry(name: str, function: Function, graph: Any) -> Entry:
    """A run of a function from a file: each handle that it takes is a resource of its own."""
    definition = next(f for f in graph.library.function if f.signature.name == function.name)
    resources = {
        argument.name: Resource(argument.name)
        for argument in definition.signature.input_arg
        if argument.type == RESOURCE
    }
    return Entry(name, function.name, (), resources)


RESOURCE: Final = 20
"""DT_RESOURCE in tensorflow/core/framework/types.proto."""


def _saved_model(folder: Path, runs: Mapping[str, Sequence[str]]) -> Program:
    from tensorflow.core.protobuf import saved_model_pb2

    path = next(
        (folder / n for n in ("saved_model.pb", "saved_model.pbtxt") if (folder / n).exists()), None
    )
    if path is None:
        raise ProgramError(f"{folder}: no saved_model.pb in it")
    model = _parsed(path.read_bytes(), saved_model_pb2.SavedModel)
    if model is None or not model.meta_graphs:
        raise ProgramError(f"{path}: is no SavedModel")
    meta = model.meta_graphs[0]
    main, functions = from_graph_def(meta.graph_def)
    entries = []
    for name, signature in sorted(meta.signature_def.items()):
        fetches = [each.name for each in signature.outputs.values() if each.name]
        known = {each.name for each in main.operations}
        fetches = [each for each in fetches if output_of(each)[0] in known]
        if fetches and not name.startswith("__saved_model"):
            entries.append(Entry(name, "", tuple(dict.fromkeys(fetches))))
    entries += (Entry(name, "", tuple(fetches)) for name, fetches in runs.items())
    if not entries:
        raise ProgramError(f"{folder}: has no signature; --run NAME=FETCH,... names what is run")
    names = [each.name for each in entries]
    pairs = tuple((a, b) for i, a in enumerate(names) for b in names[i:])
    return Program(str(folder), main, functions, tuple(entries), concurrent=pairs)


def from_graph_def(graph: Any) -> tuple[Function, dict[str, Function]]:
    """The main graph and the functions of a GraphDef."""
    main = Function("", tuple(operation_of(node) for node in graph.node))
    return main, {f.signature.name: from_function_def(f) for f in graph.library.function}


def from_function_def(definition: Any) -> Function:
    """A function of a library."""
    signature = definition.signature
    arguments = tuple(each.name for each in signature.input_arg)
    results = tuple(
        _function_output(definition.ret[each.name])
        for each in signature.output_arg
        if each.name in definition.ret
    )
    operations = tuple(operation_of(node, in_function=True) for node in definition.node_def)
    return Function(
        signature.name,
        operations,
        arguments,
        results,
        automatic=bool(definition.control_ret),
        compiled=_true(definition.attr, "_XlaMustCompile"),
    )


_LAST_NUMBER: Final = re.compile(r"^(.*?)(?::([A-Za-z_]\w*))?(?::(\d+))?$")
_SIDES: Final = {"output_true": 1, "value_index": 1}


def _function_output(text: str) -> Output:
    """``node:output:0`` as functions have it."""
    match = _LAST_NUMBER.match(text)
    assert match is not None
    return match[1], int(match[3] or 0) + _SIDES.get(match[2] or "", 0)


def operation_of(node: Any, *, in_function: bool = False) -> Operation:
    """A node of a graph or function."""
    inputs: list[Output] = []
    after: list[str] = []
    for text in node.input:
        if text.startswith("^"):
            after.append(text[1:])
        else:
            inputs.append(_function_output(text) if in_function else output_of(text))
    attr = node.attr
    dtype, shape = "", None
    if node.op in HANDLES:
        dtype, shape = _type(attr)
    return Operation(
        node.name,
        node.op,
        tuple(inputs),
        tuple(after),
        tuple(each.name for each in bodies_of(node)),
        _text(attr, "shared_name"),
        _is_stateful(node.op),
        _digest(attr) if node.op == "Const" else b"",
        _text(attr, "frame_name"),
        attr["parallel_iterations"].i if "parallel_iterations" in attr else 10,
        _true(attr, "_XlaMustCompile"),
        dtype,
        shape,
    )


def bodies_of(node: Any) -> list[Any]:
    """The functions that a node calls, as messages inside of it, in the order of `Operation`."""
    attr = node.attr
    if node.op in ("While", "StatelessWhile"):
        return [attr["cond"].func, attr["body"].func]
    if node.op in ("If", "StatelessIf"):
        return [attr["then_branch"].func, attr["else_branch"].func]
    found: list[Any] = []
    for name in _FUNCTIONS:
        if name in attr:
            value = attr[name]
            listed = value.list.func if value.HasField("list") else [value.func]
            found += (each for each in listed if each.name)
    return found


def _text(attr: Any, name: str) -> str:
    return attr[name].s.decode("utf-8", "replace") if name in attr else ""


def _true(attr: Any, name: str) -> bool:
    return name in attr and bool(attr[name].b)


def _digest(attr: Any) -> bytes:
    """A digest of a constant's type and value."""
    return sha256(attr["value"].tensor.SerializeToString(deterministic=True)).digest()[:8]


def _type(attr: Any) -> tuple[str, tuple[int, ...] | None]:
    from tensorflow.core.framework import types_pb2

    dtype = types_pb2.DataType.Name(attr["dtype"].type)[3:].lower() if "dtype" in attr else ""
    if "shape" not in attr or attr["shape"].shape.unknown_rank:
        return dtype, None
    return dtype, tuple(each.size for each in attr["shape"].shape.dim)


@lru_cache(1 << 12)
def _is_stateful(op: str) -> bool | None:
    """TensorFlow's registry on an op; None if it has no such op."""
    from tensorflow.python.framework import op_def_registry

    found = op_def_registry.get(op)
    return None if found is None else bool(found.is_stateful)
