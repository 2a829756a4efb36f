"""Programs from files, and `litmusfuzz check` over them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from litmusfuzz.fuzz.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

STEP = "step=step"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of one racy program: a GraphDef, a FunctionDef, a SavedModel, and others."""
    import tensorflow as tf

    made = tmp_path_factory.mktemp("programs")
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.get_variable("x", initializer=1.0, use_resource=True)
        tf.group(x.assign_add(1.0, read_value=False), name="step")
        tf.identity(x.read_value(), name="seen")
        tf.numpy_function(lambda: 1.0, [], tf.float32, name="python")
        with tf.control_dependencies([x.assign(4.0, read_value=False)]):
            tf.identity(x.read_value(), name="after")
    definition = graph.as_graph_def()
    tf.io.write_graph(definition, str(made), "binary.pb", as_text=False)
    tf.io.write_graph(definition, str(made), "text.pbtxt", as_text=True)

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable(1.0, name="total")

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def add(self, x: Any) -> Any:
            self.total.assign(self.total + x)
            return self.total.read_value()

        @tf.function(input_signature=[])
        def get(self) -> Any:
            return self.total.read_value()

    model = Model()
    tf.saved_model.save(model, str(made / "saved"), {"add": model.add, "get": model.get})
    concrete = model.add.get_concrete_function()
    (made / "function.pb").write_bytes(concrete.function_def.SerializeToString())
    (made / "no.pb").write_bytes(b"\xff\xfe no graph")
    (made / "racy_code.py").write_text(
        "import tensorflow as tf\nnumber = 3\nraise_ = tf.Variable\n"
    )
    return made


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *arguments])
    return result.exit_code, result.output


def found(output: str) -> set[tuple[str, str]]:
    return {(each["kind"], ",".join(each["variables"])) for each in json.loads(output)["anomalies"]}


@pytest.mark.parametrize("file", ["binary.pb", "text.pbtxt"])
def test_a_graph_of_a_file_races(folder: Path, file: str) -> None:
    code, output = run(str(folder / file), "--run", "step=step,seen", "--json")
    assert code == 1
    assert found(output) == {("stale read", "x")}


def test_a_run_executes_what_its_fetches_need(folder: Path) -> None:
    code, output = run(str(folder / "binary.pb"), "--run", "after=after", "--json")
    assert code == 0
    (path,) = json.loads(output)["evidence"]
    assert path["edges"] == ["AssignVariableOp", "=> Read_1/ReadVariableOp"]


def test_two_runs_are_concurrent_unless_it_is_said(folder: Path) -> None:
    both = [str(folder / "binary.pb"), "--run", "a=step", "--run", "b=seen", "--json"]
    assert found(run(*both)[1]) == {("stale read", "x")}
    assert run(*both, "--concurrent", "none")[0] == 0
    assert run(*both, "--concurrent", "a,b")[0] == 1
    assert run(*both, "--concurrent", "a")[0] == 0  # two additions commute


def test_an_op_of_which_nothing_is_known(folder: Path) -> None:
    given = [str(folder / "binary.pb"), "--run", "step=step,python"]
    code, output = run(*given)
    assert code == 3
    assert "unknown ops: PyFunc" in output
    assert run(*given, "--unknown-ops", "nothing")[0] == 0
    assert run(*given, "--unknown-ops", "everything")[0] == 1


def test_signatures_of_a_saved_model(folder: Path) -> None:
    code, output = run(str(folder / "saved"), "--json")
    report = json.loads(output)
    assert code == 1
    assert report["concurrent"] == [["add", "add"], ["add", "get"], ["get", "get"]]
    seen = {(each["kind"], *each["runs"]) for each in report["anomalies"]}
    assert seen == {("lost update", "add", "add"), ("stale read", "add", "get")}


def test_a_function_of_a_file(folder: Path) -> None:
    code, output = run(str(folder / "function.pb"), "--concurrent", "run", "--json")
    assert code == 1
    assert {kind for kind, _ in found(output)} == {"lost update"}


def test_a_sarif_log(folder: Path) -> None:
    log = folder / "log.sarif"
    run(str(folder / "binary.pb"), "--run", "step=step,seen", "--sarif", str(log))
    (one,) = json.loads(log.read_text("utf-8"))["runs"]
    assert [each["ruleId"] for each in one["results"]] == ["stale-read"]
    assert one["invocations"][0]["exitCode"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.pb", "--run", STEP], "is no GraphDef, FunctionDef or SavedModel"),
        (["binary.pb"], "--run NAME=FETCH"),
        (["binary.pb", "--run", "step"], "cannot read 'step'"),
        (["binary.pb", "--run", "step=stop"], "no operation 'stop'; is it 'step'?"),
        (["binary.pb", "--run", STEP, "--concurrent", "other"], "no run 'other'"),
        (["nothing.pb"], "no such file"),
        (["racy_code:number"], "is int, and no tf.function"),
        (["racy_code:missing"], "racy_code has no missing"),
        (["nowhere:step"], "no module nowhere"),
    ],
)
def test_a_mistake_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(folder)
    code, output = run(*arguments)
    assert code == 2
    assert message in output
    assert output.count("\n") == 1
