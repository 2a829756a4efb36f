"""`check --show`: both orders of a race, forced in TensorFlow on the user's own graph."""

from __future__ import annotations

import itertools
import json
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_planted import FOLDER, FUNCTIONS, GRAPHS

from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.programs.anomalies import Scenario, Site, analyzed
from litmusfuzz.fuzz.programs.checking import check, concurrent_runs
from litmusfuzz.fuzz.programs.program import ProgramError
from litmusfuzz.fuzz.programs.tensorflow import time_limit
from litmusfuzz.fuzz.programs.tensorflow.gates import Gate, NoEndError, NotShown, way_to
from litmusfuzz.fuzz.programs.tensorflow.hosts import host_of, with_showings
from litmusfuzz.fuzz.programs.tensorflow.modules import read_modules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from litmusfuzz.fuzz.programs.tensorflow.modules import Live
    from litmusfuzz.reports.checked import ReportedShowing

PLANTED = {
    name: ([f"sessions:{name}_racy"], {"step": what.split()}) for name, (what, _) in GRAPHS.items()
}
for name in ("two_runs", "normalized"):
    PLANTED[name] = ([f"sessions:{name}_racy"], {"train": ["train"], "copy": ["copy"]})
PLANTED |= {
    name: ([f"side_by_side:{first}", f"side_by_side:{second}"], {})
    for name, (first, second, _) in FUNCTIONS.items()
}
NOT_SHOWN = {
    "compiled": "XLA compiles the function around it, and no gate can be inside",
    "embedding": "the other access would have to come inside of one kernel",
}
FREE = {"hoisted", "iterations", "functional_loop", "one section", "two sections", "loop"}
"""Races beside which not all accesses are ordered: some are in loops or sections."""
RESULTS = {
    "two_assigns": ({"x ends as": "3."}, {"x ends as": "2."}),
    "loss": ({"loss is": "2."}, {"loss is": "1."}),
    "average": ({"average ends as": "1."}, {"average ends as": "0.95"}),
    "metric": ({"mean is": "0.5"}, {"mean is": "1."}),
    "swap": ({"a ends as": "2.", "b ends as": "2."}, {"a ends as": "1.", "b ends as": "1."}),
    "reference": ({"twice is": "2."}, {"twice is": "4."}),
    "crossed": ({"both is": "[1., 2.]"}, {"both is": "[2., 2.]"}),
    "branch": ({"seen is": "1."}, {"seen is": "5."}),
    "functional_branch": ({"seen is": "1."}, {"seen is": "5."}),
    "calls": ({"x ends as": "3."}, {"x ends as": "9."}),
    "hoisted": ({"seen is": "1."}, {"seen is": "2."}),
    "functional_loop": ({"seen is": "1."}, {"seen is": "0.5"}),
    "iterations": (
        {"step is": "4.", "x ends as": "4."},
        {"step is": "8.", "x ends as": "8."},
    ),
    "normalized": ({"copy of copy is": "[1., 2.]"}, {"copy of copy is": "[1., 1.]"}),
    "doubled": ({"x ends as": "2."}, {"x ends as": "4."}),
    "two_runs": ({"copy of copy is": "[1., 2.]"}, {"copy of copy is": "[1., 1.]"}),
    "count": ({"counter ends as": "2."}, {"counter ends as": "3."}),
    "nested": ({"shared ends as": "4."}, {"shared ends as": "8."}),
    "words": ({"result of look_up_racy is": "[-1, -1]"}, {"result of look_up_racy is": "[39, 39]"}),
}
"""Derived by hand from the orders that `check` names."""
NUMBERS = count()
"""For queues of the tests' own."""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.chdir(FOLDER)


def shown(targets: list[str], runs: dict[str, list[str]]) -> list[ReportedShowing]:
    """What is shown of each anomaly; one target given twice runs beside itself."""
    live = read_modules(list(dict.fromkeys(targets)), [], runs)
    names = {each.name: each for each in live.program.entries}
    own = [] if runs else [",".join(target.partition(":")[2] for target in targets)]
    report, found = check(live.program, concurrent_runs(live.program, own, names))
    showings = [each.showing for each in with_showings(report, found, live).anomalies]
    return [each for each in showings if each is not None]


@pytest.mark.parametrize("name", [each for each in PLANTED if each not in NOT_SHOWN])
def test_both_results_of_a_planted_race_are_shown(name: str) -> None:
    (each,) = shown(*PLANTED[name])
    assert not each.why_not
    first, second = each.results
    assert first.keys() == second.keys()
    assert all(first[what] != second[what] for what in first)
    assert each.exact == (name not in FREE)
    assert name not in RESULTS or (first, second) == RESULTS[name]


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_race_that_no_gate_can_force_says_why(name: str) -> None:
    (each,) = shown(*PLANTED[name])
    assert each.why_not == NOT_SHOWN[name]
    assert not each.results


def test_the_variables_are_as_they_were() -> None:
    shown(["side_by_side:count_racy", "side_by_side:count_racy"], {})
    import side_by_side

    assert float(side_by_side.counter) == 1.0


def test_what_a_section_leaves_out_is_shown_beside_another_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The writes come after their section; it has to be over before the other one is entered."""
    monkeypatch.syspath_prepend(str(FOLDER.parent / "real"))
    monkeypatch.chdir(FOLDER.parent / "real")
    live = read_modules(
        ["function_critical_section:swap", "function_critical_section:both"], [], {}
    )
    report, found = check(live.program, [("swap", "both")])
    (showing,) = (each.showing for each in with_showings(report, found, live).anomalies)
    assert showing is not None
    first, second = ({*each.values()} for each in showing.results)
    assert (first, second) == ({"1."}, {"2."}), showing


def with_values(values: dict[str, str]) -> ReportedShowing:
    """The race of two functions, with values that the user gives."""
    live = read_modules(["side_by_side:record_racy", "side_by_side:mean_racy"], [], {})
    report, found = check(live.program, [("record_racy", "mean_racy")])
    (showing,) = (each.showing for each in with_showings(report, found, live, values).anomalies)
    assert showing is not None
    return showing


@pytest.mark.parametrize("name", ["loss", "record_racy.loss"])
@pytest.mark.parametrize("text", ["40", "loss.npy"])
def test_a_race_is_shown_with_the_values_of_the_user(tmp_path: Path, name: str, text: str) -> None:
    np.save(tmp_path / "loss.npy", np.float32(40.0))
    showing = with_values({name: text.replace("loss", str(tmp_path / "loss"))})
    assert showing.inputs == {"record_racy loss": "40."}
    results = {value for each in showing.results for value in each.values()}
    # Both variables are 1 at first: one read before, the other after; or both before.
    assert results in ({"0.5", "1."}, {"41.", "1."})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lost": "1"}, "--value: no input is named lost; there are record_racy.loss"),
        ({"loss": "1,2"}, "--value: loss has 2 values, and the input is float32[]"),
        ({"loss": "much"}, "--value: loss: 'much' is not of type float32[]"),
        ({"loss": "nowhere.npy"}, "--value: loss: nowhere.npy: No such file or directory"),
        ({"loss": "pickled.npy"}, "--value: loss: pickled.npy: "),
        ({"loss": "double.npy"}, "--value: loss is float64[], and the input is float32[]"),
    ],
)
def test_a_value_that_does_not_fit_is_one_line(
    tmp_path: Path, values: dict[str, str], message: str
) -> None:
    """A file with a pickle in it is not read: that would execute it."""
    np.save(tmp_path / "pickled.npy", np.array([{}], object))
    np.save(tmp_path / "double.npy", 1.0)
    there = {
        name: str(tmp_path / text) if text.endswith("d.npy") or text == "double.npy" else text
        for name, text in values.items()
    }
    with pytest.raises(ProgramError) as caught:
        with_values(there)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--value", "loss=1"], "--value: is for --show"),
        (["--show", "--value", "loss"], "--value: cannot read 'loss'"),
        (["--show", "--value", "loss=1", "--value", "loss=2"], "--value: loss stands twice"),
    ],
)
def test_an_option_that_gives_no_value_is_one_line(options: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["check", "side_by_side:record_racy", *options])
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert message in result.output


# --- gates ---------------------------------------------------------------------------------


def forced(live: Live, runs: Sequence[str], names: Sequence[tuple[int, str]]) -> Any:
    """An execution in which accesses happen in an order: each its run's place, and its name."""
    found = analyzed(live.program)
    scenario = Scenario(tuple(found[run] for run in runs))
    gates = []
    tag = f"test_{next(NUMBERS)}"
    for place, (side, name) in enumerate(names):
        accesses = [access.name for access in scenario.sides[side].run.accesses]
        own, following = f"{tag}_{place}", f"{tag}_{place + 1}" if place + 1 < len(names) else ""
        gate = Gate(place, f"{tag}_log", own if place else "", following)
        gates.append((Site(side, accesses.index(name)), gate))
    prepared = host_of(live).prepared(scenario, ["x", "y"], gates)
    return prepared.run({each: each.dtype.type(1) for each in prepared.inputs})


@pytest.mark.parametrize(("outer", "inner"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_gate_is_in_one_iteration_of_functional_loops(outer: int, inner: int) -> None:
    """The read comes after one of the eight increments, and before the next one."""
    live = read_modules(["nested:deep", "nested:seen"], [], {})
    (access,) = {
        each.name
        for each in analyzed(live.program)["deep"].run.accesses
        if f"body[{outer}]" in each.name.partition("cond/then")[0]
        and f"body[{inner}]" in each.name.partition("cond/then")[2]
    }
    (read,) = [each.name for each in analyzed(live.program)["seen"].run.accesses]
    order = [(0, access), (1, read)]
    observed = forced(live, ["deep", "seen"], order)
    assert observed.log == (0, 1)
    assert observed.values["result of seen", "is"] >= 2.0 + 2 * outer + inner
    observed = forced(live, ["deep", "seen"], order[::-1])
    assert observed.log == (0, 1)
    assert observed.values["result of seen", "is"] <= 1.0 + 2 * outer + inner
    assert observed.values["x", "ends as"] == 9.0


@pytest.mark.parametrize(("outer", "inner"), [(0, 0), (1, 1), (2, 0), (2, 1)])
def test_a_gate_is_in_one_iteration_of_loops_of_tensorflow_1(outer: int, inner: int) -> None:
    """Increments are 10**outer, so that the sum tells which have happened."""
    live = read_modules(["nested:loops"], [], {"step": ["step", "seen"]})
    access = f"outer/inner/AssignAddVariableOp[{outer}][{inner}]"
    names = [each.name for each in analyzed(live.program)["step"].run.accesses]
    (read,) = [each for each in names if "Read" in each]
    before = 1.0 + sum(2 * 10.0**i for i in range(outer)) + inner * 10.0**outer
    observed = forced(live, ["step"], [(0, read), (0, access)])
    assert observed.log == (0, 1)
    assert observed.values["seen", "is"] <= before
    observed = forced(live, ["step"], [(0, access), (0, read)])
    assert observed.log == (0, 1)
    assert observed.values["seen", "is"] >= before + 10.0**outer
    assert observed.values["y", "ends as"] == 223.0


def test_an_order_that_edges_forbid_comes_to_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(time_limit, "WINDOW_S", 0.05)
    live = read_modules(["sessions:loss_repaired"], [], {"step": ["step", "loss"]})
    with pytest.raises(NoEndError, match=r"did not come to an end within \d+ s"):
        forced(live, ["step"], [(0, "step"), (0, "ReadVariableOp")])
    live = read_modules(["nested:deep", "nested:seen"], [], {})
    names = [each.name for each in analyzed(live.program)["deep"].run.accesses]
    with pytest.raises(NoEndError):
        forced(live, ["deep", "seen"], [(0, names[1]), (0, names[0])])
    monkeypatch.undo()  # what comes to its end may take longer on busy cores
    assert forced(live, ["deep", "seen"], [(0, names[0]), (0, names[1])]).log == (0, 1)


def test_what_still_computes_has_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's time goes on at each look, and after the fourth what is waited for ends."""
    looks, ended = itertools.count(1), threading.Event()

    def process_time() -> float:
        look = next(looks)
        if look == 4:
            ended.set()
        return float(look)

    monkeypatch.setattr(time_limit, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(time_limit, "WINDOW_S", 0.1)
    monkeypatch.setattr(time_limit.time, "process_time", process_time)
    assert time_limit.within_time(lambda: ended.wait() and "done", ended.set) == "done"
    assert next(looks) > 4


def test_an_access_that_does_not_run_is_not_shown() -> None:
    (each,) = shown(["nested:rare", "nested:seen"], {})
    assert each.why_not.startswith("with rare value = ")
    assert each.why_not.endswith(", 2 does not run")


def test_random_numbers_are_no_difference() -> None:
    """Random ops without seeds, in calls and in initial values, get seeds."""
    (each,) = shown(["nested:noisy", "nested:halve"], {})
    assert each.results == ({"result 2 of noisy is": "1."}, {"result 2 of noisy is": "0.5"})
    (each,) = shown(["nested:noise"], {"step": ["step", "seen"]})
    first, second = each.results
    assert first.keys() == second.keys() == {"seen is"}
    one, two = (each["seen is"].partition(",")[2] for each in (first, second))
    assert one == two


def test_results_of_functions_may_be_texts() -> None:
    """TensorFlow gives a single text as bytes, and several as an array."""
    (each,) = shown(["texts:rename", "texts:current"], {})
    assert each.results == ({"result of current is": "'old'"}, {"result of current is": "'new'"})


def test_texts_that_differ_by_a_zero_byte_at_the_end_differ() -> None:
    """NumPy's own type of bytes drops it."""
    (each,) = shown(["texts:end_with_zero_byte", "texts:current"], {})
    assert each.results == (
        {"result of current is": "'old'"},
        {"result of current is": "'old\\x00'"},
    )


def test_sections_without_a_shared_name_are_one_mutex() -> None:
    """TensorFlow gives them one handle; one with a shared name is another mutex."""
    step = "side_by_side:record_repaired"
    assert shown([step, "side_by_side:mean_in_nameless_section"], {}) == []
    (each,) = shown([step, "side_by_side:mean_in_named_section"], {})
    assert each.results


# --- the command ---------------------------------------------------------------------------


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *arguments, "--show"])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GraphDef without collections, a SavedModel whose variable is 7, and a function of it."""
    import tensorflow as tf

    made = tmp_path_factory.mktemp("shown")
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.get_variable("x", initializer=2.0, use_resource=True)
        tf.group(x.assign_add(1.0, read_value=False), name="step")
        tf.identity(x.read_value(), name="seen")
    tf.io.write_graph(graph.as_graph_def(), str(made), "graph.pb", as_text=False)

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable(1.0, name="total")

        @tf.function(input_signature=[])
        def double(self) -> Any:
            self.total.assign(self.total * 2.0)
            return self.total.read_value()

        @tf.function(input_signature=[])
        def get(self) -> Any:
            return self.total.read_value()

    model = Model()
    model.total.assign(7.0)
    tf.saved_model.save(model, str(made / "saved"), {"double": model.double, "get": model.get})
    definition = model.double.get_concrete_function().function_def
    (made / "function.pb").write_bytes(definition.SerializeToString())
    return made


def test_a_graph_of_a_file_is_run_from_its_initial_values(files: Path) -> None:
    code, output = run(str(files / "graph.pb"), "--run", "a=step", "--run", "b=seen")
    assert code == 1
    assert "  on TensorFlow, order 1, 2: seen of b is 2.\n" in output
    assert "  on TensorFlow, order 2, 1: seen of b is 3.\n" in output


def test_a_saved_model_is_run_from_its_saved_values(files: Path) -> None:
    code, output = run(str(files / "saved"), "--json")
    assert code == 1
    kinds = {each["kind"]: each["showing"] for each in json.loads(output)["anomalies"]}
    first, second = ({*each.values()} for each in kinds["stale read"]["results"])
    assert (first, second) == ({"7."}, {"14."})
    first, second = (each["total ends as"] for each in kinds["lost update"]["results"])
    assert (first, second) == ("14.", "28.")


def test_a_function_of_a_file_is_not_shown(files: Path) -> None:
    code, output = run(str(files / "function.pb"), "--concurrent", "run")
    assert code == 1
    assert "  not shown: a function of a file has no variables of its own\n" in output


def test_a_name_of_no_operation() -> None:
    program = read_modules(["nested:seen"], [], {}).program
    with pytest.raises(NotShown, match="nowhere is not the name of one operation"):
        way_to(program.functions[program.entries[0].function], program.functions, "nowhere")
