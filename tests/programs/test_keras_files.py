"""Models from `.keras` files: read as data, and refused where data alone does not make them."""

from __future__ import annotations

import json
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from litmusfuzz.fuzz.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


LOST = (
    *(("train", "train"), ("train", "eval"), ("train", "reset_metrics")),
    *(("eval", "eval"), ("eval", "reset_metrics")),
)
"""Runs whose metrics are read and written back; of training also the weights."""


def config_of(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        found: dict[str, Any] = json.loads(archive.read("config.json"))
    return found


def write(file: Path, config: object) -> str:
    """A `.keras` file with a configuration, and no weights."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
    return str(file)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as Keras saves it, and the same one in a module."""
    import tensorflow as tf

    keras = tf.keras
    folder = tmp_path_factory.mktemp("keras")
    source = (
        "import tensorflow as tf\n"
        "keras = tf.keras\n"
        "x = keras.Input((4,))\n"
        "y = keras.layers.Dense(3, activation='relu')(x)\n"
        "y = keras.layers.BatchNormalization()(y)\n"
        "model = keras.Model(x, keras.layers.Dense(2)(y))\n"
        "rate = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)\n"
        "model.compile(keras.optimizers.Adam(rate), 'mse', metrics=['mae'])\n"
    )
    (folder / "written.py").write_text(source, encoding="utf-8")
    space: dict[str, Any] = {}
    exec(source, space)  # noqa: S102 - our own text, above
    layer = keras.layers.Lambda(lambda x: x + 1, output_shape=(4,))
    with warnings.catch_warnings():  # h5py and NumPy disagree about a name
        warnings.simplefilter("ignore", DeprecationWarning)
        space["model"].save(folder / "model.keras")
        keras.Sequential([keras.Input((4,)), layer]).save(folder / "code.keras")
    return folder


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def anomalies(output: str) -> set[tuple[str, tuple[str, ...], int]]:
    """Kinds, runs and numbers of variables."""
    found = json.loads(output[output.index("{") :])["anomalies"]
    return {(each["kind"], tuple(each["runs"]), len(each["variables"])) for each in found}


def test_a_file_has_the_anomalies_of_the_model_that_was_saved(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)
    code, output = run("model.keras", "--json")
    assert code == 1
    found = anomalies(output)
    assert {(kind, runs) for kind, runs, _ in found} == {
        *(("lost update", runs) for runs in LOST),
        *(("torn snapshot", ("train", other)) for other in ("train", "eval", "predict", "save")),
    }
    assert found == anomalies(run("written:model", "--json")[1])
    assert "its weights are not read" in output
    assert '"mean_absolute_error/total"' in output  # TensorFlow's own name is "total"


def test_weights_are_not_needed(saved: Path, tmp_path: Path) -> None:
    """And what is not compiled has two entry points."""
    config = config_of(saved / "model.keras")
    config["compile_config"] = None
    code, output = run(write(tmp_path / "bare.keras", config))
    assert code == 0, output
    assert "no race: in predict, save;" in output


def _layer(config: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in config["config"]["layers"] if each["class_name"] == name
    )
    return found


def change(**fields: Any) -> Callable[[dict[str, Any]], None]:
    """Another class, module or registered name for the Dense layer."""

    def apply(config: dict[str, Any]) -> None:
        _layer(config, "Dense").update(fields)

    return apply


def _vocabulary(config: dict[str, Any]) -> None:
    layer = _layer(config, "Dense")
    layer |= {"class_name": "StringLookup"}
    layer["config"] = {"vocabulary": "/etc/passwd"}


def _hidden(config: dict[str, Any]) -> None:
    lambda_ = {"class_name": "__lambda__", "config": {"value": "code"}}
    _layer(config, "Dense")["config"]["activation"] = [[{"deep": lambda_}]]


def _deep(config: dict[str, Any]) -> None:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    config["config"]["name"] = value


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change(class_name="TFSMLayer"), "has the layer TFSMLayer, which loads another file"),
        (change(class_name="Lambda"), "has the layer Lambda, which runs Python code"),
        (change(module="os", class_name="system"), "has 'system' of 'os', which is not built"),
        (change(module="antigravity"), "has 'Dense' of 'antigravity', which is not built"),
        (change(module="keras.src.utils.file_utils"), "which is not built into Keras"),
        (change(module="keras.utils", class_name="get_file"), "which is not built into Keras"),
        (change(registered_name="mine>Dense"), "has 'mine>Dense' of 'keras.layers'"),
        (change(class_name="deserialize"), "has 'deserialize' of 'keras.layers'"),
        (change(module=None), "has 'Dense' of None"),
        (_vocabulary, "a layer reads its vocabulary from a file"),
        (_hidden, "has a Python lambda, which is code"),
        (_deep, "its configuration is too deep"),
        (lambda config: config.update(class_name="Model"), "only Sequential and Functional"),
        (lambda config: config["compile_config"].update(loss_weights=["mae"]), "cannot be traced"),
        (
            lambda config: _layer(config, "Dense")["config"].update(units=-1),
            "Keras cannot make it: ",
        ),
    ],
)
def test_what_is_not_built_in_is_one_line(
    saved: Path, tmp_path: Path, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    config = config_of(saved / "model.keras")
    edit(config)
    code, output = run(write(tmp_path / "m.keras", config))
    assert (code, output.count("\n")) == (2, 1), output
    assert message in output


def test_a_lambda_layer_of_keras_is_refused(saved: Path) -> None:
    code, output = run(str(saved / "code.keras"))
    assert (code, output.count("\n")) == (2, 1)
    assert "code.keras: has " in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "its configuration is no JSON"),
        ("[" * 100_000, "its configuration is too deep"),
        ("[]", "its configuration is of no model"),
        ('{"class_name": 3}', "is of the class 3"),
    ],
)
def test_a_strange_configuration_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    code, output = run(write(tmp_path / "m.keras", text))
    assert (code, output.count("\n")) == (2, 1), output
    assert message in output


def test_what_is_no_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "no.keras").write_bytes(b"PK no archive")
    code, output = run(str(tmp_path / "no.keras"))
    assert (code, output.count("\n")) == (2, 1)
    assert "is no Keras model" in output
    with zipfile.ZipFile(tmp_path / "other.keras", "w") as archive:
        archive.writestr("other", "")
    assert "has no config.json" in run(str(tmp_path / "other.keras"))[1]
