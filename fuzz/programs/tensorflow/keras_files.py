"""Keras models from `.keras` files, which are read as data.

A `.keras` file is a zip archive: a configuration in JSON, and weights. Keras's own loader with
`safe_mode` refuses Python code inside of the file. It still looks up whatever class of Keras the
file names, some of which read other files when they are made (`TFSMLayer`, vocabularies). So the
configuration is checked first: each object in it has to be a class or function that Keras exports
for models, and none of those that run code or read files. Only then is it given to Keras.

The weights are not read: who races with whom does not depend on them.
"""

from __future__ import annotations

import json
import zipfile
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.fuzz.programs.program import ProgramError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONFIG: Final = "config.json"
_MAX_BYTES: Final = 64 << 20
"""Of the configuration; those of the largest models of `keras.applications` have 2 MiB."""
_MAX_DEPTH: Final = 100
_PUBLIC: Final = (
    *("activations", "constraints", "dtype_policies", "initializers", "layers", "losses"),
    *("metrics", "optimizers", "optimizers.schedules", "regularizers"),
)
"""Modules of `keras` whose classes and functions a model may name."""
_MODELS: Final = {
    ("keras", "Sequential"),
    ("keras", "Functional"),
    ("keras.models", "Sequential"),
    ("keras.models", "Functional"),
    ("keras.src.models.sequential", "Sequential"),
    ("keras.src.models.functional", "Functional"),
}
_POLICY: Final = ("keras", "DTypePolicy")
_REFUSED: Final = {
    "Lambda": "runs Python code",
    "TFSMLayer": "loads another file",
    "TorchModuleWrapper": "runs Python code",
    "JaxLayer": "runs Python code",
    "FlaxLayer": "runs Python code",
}
_DATA: Final = {"__keras_tensor__", "__tensor__", "__numpy__", "__bytes__", "__ellipsis__"}
"""Objects that are values; `__slice__` holds such objects."""
_FILES: Final = ("vocabulary", "idf_weights")
"""Fields that may name a file, which a layer then reads."""


def is_keras_file(path: str) -> bool:
    """True for the name of a Keras model's file."""
    return path.endswith(".keras")


def read_keras(path: str) -> Any:
    """The model in a file, compiled if it was, with its initial weights.

    Raises
    ------
    ProgramError
        If it is no such file, or names what Keras does not have, or what runs code.
    """
    config = _config(path)
    problem = _problem(config, 0)
    if problem:
        raise ProgramError(f"{path}: {problem}")
    keras: Any = import_module("keras")
    if keras.backend.backend() != "tensorflow":
        raise ProgramError(f"{path}: Keras runs on {keras.backend.backend()}, not on TensorFlow")
    try:
        # Nobody's registered classes take the place of those that were checked.
        with keras.saving.custom_object_scope({}):
            model = keras.saving.deserialize_keras_object(config, safe_mode=True)
    except Exception as error:  # noqa: BLE001 - Keras raises anything on a strange configuration
        text = " ".join(str(error).split())
        raise ProgramError(f"{path}: Keras cannot make it: {text:.200}") from None
    if not isinstance(model, keras.Model):
        raise ProgramError(f"{path}: is no model")
    return model


def _config(path: str) -> Mapping[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_CONFIG).file_size > _MAX_BYTES:
                raise ProgramError(f"{path}: its configuration has more than 64 MiB")
            with archive.open(_CONFIG) as file:
                # A size that a file claims for itself may be wrong.
                text = file.read(_MAX_BYTES + 1)
        config = json.loads(text)
    except OSError as error:
        raise ProgramError(f"{path}: {error.strerror or error}") from None
    except KeyError:
        raise ProgramError(f"{path}: has no {_CONFIG}, and so is no Keras model") from None
    except RecursionError:
        raise ProgramError(f"{path}: its configuration is too deep") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ProgramError(f"{path}: is no Keras model: {error}") from None
    except ValueError as error:
        raise ProgramError(f"{path}: its configuration is no JSON: {error}") from None
    if not isinstance(config, dict) or "class_name" not in config:
        raise ProgramError(f"{path}: its configuration is of no model")
    if (config.get("module"), config["class_name"]) not in _MODELS:
        raise ProgramError(
            f"{path}: is of the class {config['class_name']!r:.80}; only Sequential and Functional "
            "models are read as data, for others name MODULE:NAME"
        )
    return config


def _problem(value: Any, depth: int) -> str:
    """Why a part of a configuration is not given to Keras; "" if it may be."""
    if depth > _MAX_DEPTH:
        return "its configuration is too deep"
    if isinstance(value, list):
        return next(filter(None, (_problem(each, depth + 1) for each in value)), "")
    if not isinstance(value, dict):
        return ""
    if "class_name" in value:
        problem = _problem_of_object(value)
        if problem:
            return problem
    for name in _FILES:
        if isinstance(value.get(name), str):
            return f"a layer reads its {name} from a file"
    return next(filter(None, (_problem(each, depth + 1) for each in value.values())), "")


def _problem_of_object(value: Mapping[str, Any]) -> str:
    """Why an object is not given to Keras; "" if Keras exports its class or function."""
    name, module, config = value["class_name"], value.get("module"), value.get("config")
    registered = value.get("registered_name")
    if not isinstance(name, str):
        return "its configuration has an object without a name"
    if name == "__lambda__":
        return "has a Python lambda, which is code"
    if name in _DATA or name == "__slice__":
        return ""
    if name == "function":
        name = config if isinstance(config, str) else ""
        registered = None if registered in (None, "function", name) else registered
        if module == "builtins" and not registered and _exported(name, functions=True):
            return ""
    if name in _REFUSED:
        return f"has the layer {name}, which {_REFUSED[name]}"
    ours = registered in (None, name) and isinstance(module, str)
    if ours and (module, name) in {*_MODELS, _POLICY}:
        return ""
    short = str(module).removeprefix("keras.")
    public = ours and module == f"keras.{short}" and short in _PUBLIC
    if public and _exported(name, functions=value["class_name"] == "function", module=short):
        return ""
    return f"has {registered or name!r:.80} of {module!r:.80}, which is not built into Keras"


def _exported(name: str, *, functions: bool, module: str = "") -> bool:
    """True if Keras exports a class, or a function, of that name."""
    keras: Any = import_module("keras")
    for each in (module,) if module else _PUBLIC:
        where: Any = keras
        for part in each.split("."):
            where = getattr(where, part)
        found = vars(where).get(name)
        if found is not None and not name.startswith("_") and isinstance(found, type) != functions:
            return callable(found)
    return False
