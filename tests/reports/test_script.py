"""Scripts of findings: unsupported tests, and the output of scripts without LitmusFuzz."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from helpers import ALIASES, LITMUS, nightly, shows_it

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import FEATURES as FEATURE_NAMES
from litmusfuzz.corpus.model import Graph, LitmusTest, Node, Variable
from litmusfuzz.corpus.ops import (
    DTYPES,
    EFFECT_OPS,
    OPS,
    Attrs,
    ConstAttrs,
    Kind,
    MomentumAttrs,
    RowsAttrs,
    SliceAttrs,
)
from litmusfuzz.corpus.outcome import STATUS_KEY, Outcome, Status, Verdict
from litmusfuzz.corpus.outcome import TORN as TORN_VALUE
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, Script, load, loads, outcome_from_plain, save
from litmusfuzz.fuzz.campaign.scripts import script_of
from litmusfuzz.fuzz.cli.main import main
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import Settings
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.mutants.tensorflow import StaleGradient, TooFewGradients, ZeroForNoValue
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC
from litmusfuzz.oracles.reference import allowed_outcomes
from litmusfuzz.reports import script_text
from litmusfuzz.reports.raw_ops import literal
from litmusfuzz.reports.script import LAST_LINE, NoScript, script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {"inter_op_threads": 4, "executor_type": "", "rewrites": ""}
FINDING = Finding(
    executor="tf",
    configuration="plain",
    model="rfc",
    forbidden=(),
    executions=1,
    noise={"copies": 4, "steps": 4, "padding": 256},
    settings=SETTINGS,
    versions={"tensorflow": "2.21.0"},
    seed=0,
    index=0,
    family="dag",
    minimized=True,
    confirmed=True,
)


def found(test: LitmusTest, **changed: object) -> Entry:
    """The test with a finding on it: all values torn, which none of these shows."""
    torn = Outcome.of(test, dict.fromkeys(test.names, TORN_VALUE))
    return Entry(test, {}, replace(FINDING, **{"forbidden": ((torn, 1),), **changed}))


# A test for each feature, and where features meet.
FEATURES = (
    "h-if-control-edges",
    "h-branch-in-a-loop",
    "h-loop-in-a-branch",
    "h-condition-tail-and-body",
    "h-nested-frames",
    "h-section-around-a-loop",
    "h-section-in-a-loop",
    "h-trips-by-carried-read",
    "h-zero-trips",
    "devices-window",
    "fifo-two-consumers",
    "dequeue-many-two-consumers",
    "close-then-rest",
    "iriw-four-runs",
    "less-equal-of-two-reads",
    "backpressure-blocked",
    "indexed-gather",
    "several-results",
    "call-around-a-loop",
    "call-control-edges",
    "fetches-loop-whole",
    "fetches-nested-left-out",
    "fetches-put-and-take",
    "fetches-section-released",
    "fetches-section-needed-whole",
    "placeholders-predicate",
    "placeholders-rows",
    "placeholders-two-runs",
    "handle-carried",
    "handle-chosen-by-a-race",
    "handle-into-a-call",
    "accumulator-race",
    "accumulator-fails",
    "accumulator-two-takes",
    "sync-training",  # a queue and an accumulator
    "uninitialized-race",
    "state-guards-a-read",
    "list-in-a-loop",
)
PYTHON = ("function", "function_kernels", "function_autocluster", "function_compiled")
PYTHON += ("python_v1", "python_v2", "eager_threads", "eager_functions", "eager_compiled")
"""The configurations of Python's front ends."""
IN_PYTHON = ("h-branch-in-a-loop", "h-zero-trips", "call-nested", "handle-into-a-call")
IN_PYTHON += ("iriw-four-runs", "placeholders-two-runs", "fetches-loop-whole", "several-results")
IN_PYTHON += ("state-guards-a-read", "list-in-a-loop", "indexed-gather", "runs-diamond")
IN_PYTHON += ("lookup-of-distinct-rows",)
"""A test for each feature that these take."""


def every_op(dtype: str) -> LitmusTest:
    """All ops on variables, one after the other, with lanes; what is read is observed."""
    nodes = [
        Node("one", "Const", attrs=ConstAttrs(dtype, (), 1)),
        Node("all", "Const", attrs=ConstAttrs(dtype, (3, 2), (1, 2, 3))),
        Node("two", "Const", attrs=ConstAttrs(dtype, (2, 2), (5, 2))),
    ]
    given = {"value": "all", "updates": "two", "delta": "all", "grad": "all"}
    observe = []
    for op in (OPS[name] for name in EFFECT_OPS if dtype in OPS[name].dtypes):
        attrs: Attrs | None = None
        inputs = [given.get(operand, "one") for operand in op.operands]
        if op.attrs is RowsAttrs:
            attrs = RowsAttrs((2, 0))
        elif op.attrs is SliceAttrs:
            attrs, inputs = SliceAttrs(0, 3, 2), ["two"]
        elif op.attrs is MomentumAttrs:
            attrs = MomentumAttrs(use_nesterov=True)
        after = (nodes[-1].name,) if len(nodes) > 3 else ()
        resources = ("X", "class")[: len(op.roles)]
        nodes.append(Node(f"n{len(nodes)}", op.name, tuple(inputs), resources, after, attrs))
        observe += [nodes[-1].name] if op.kind is Kind.READ else []
    variables = tuple(Variable(name, dtype, (3, 2), (4, 5, 6)) for name in ("X", "class"))
    return LitmusTest(
        f"every-op-{dtype}", variables, (Graph("main", tuple(nodes)),), tuple(observe)
    )


RUNNER = """
import contextlib, io, json, runpy, sys
seconds, *paths = sys.argv[1:]
for path in paths:
    sys.argv[:] = [path, seconds]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            code = end.code
    print(json.dumps([path, code, shown.getvalue()]), flush=True)
assert "litmusfuzz" not in sys.modules
"""


def run(tmp_path: Path, entries: list[Entry], seconds: float) -> list[tuple[int, str]]:
    """Exit code and output of each entry's script, in one process that does not import us."""
    paths = []
    for number, entry in enumerate(entries):
        paths.append(tmp_path / f"{number}.py")
        paths[-1].write_text(script_of(entry, ""), encoding="utf-8")
    command = [sys.executable, "-I", "-c", RUNNER, str(seconds), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == list(map(str, paths))
    return [(code, shown) for _, code, shown in rows]


def outcomes(test: LitmusTest, shown: str) -> Iterator[tuple[Outcome, int, str]]:
    """What a script printed: each outcome that is wholly known, how often, and its verdict."""
    first, _, rest = shown.partition("TensorFlow ")
    _, *lines, last = rest.splitlines()
    assert LAST_LINE.fullmatch(last), shown
    early = [line.partition(" ")[2].strip() for line in first.splitlines()]
    wrong = [line.partition("FORBIDDEN")[2].strip() for line in lines if "FORBIDDEN" in line]
    assert sorted(early) == sorted(wrong)
    for line in lines:
        count, verdict, values = re.split(r"  +", line.strip(), maxsplit=2)
        if "=?" in values:
            continue
        plain: dict[str, Any] = {}
        for pair in values.split():
            name, _, value = pair.partition("=")
            if name == "ended":
                plain |= {} if value == "completed" else {STATUS_KEY: value}
            else:
                read = value if value == "torn" else ast.literal_eval(value)
                plain[name] = list(read) if isinstance(read, tuple) else read
        yield outcome_from_plain(test, plain), int(count), verdict


def test_a_script_of_what_was_shown_under_control_has_the_noise_that_chance_needs() -> None:
    alone = {"copies": 1, "steps": 1, "padding": 0}
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    texts = {
        level: script_of(found(test, noise=alone, settings={"control": level}), "")
        for level in ("", "locks")
    }
    assert "COPIES, STEPS, SECONDS = 1, 1, 60" in texts[""]
    assert "COPIES, STEPS, SECONDS = 32, 96, 60\nPADDING = 1024" in texts["locks"]


def assert_allowed(oracle: Explorer, seen: list[tuple[Outcome, int, str]]) -> None:
    """All that can be said of an outcome that failed is that it did."""
    for outcome, _, _ in seen:
        fails = outcome.status is Status.FAILED
        assert oracle.judge(outcome) is (Verdict.UNSPECIFIED if fails else Verdict.ALLOWED), seen


def test_of_sound_tests_of_every_feature_a_script_shows_allowed_outcomes_only(
    tmp_path: Path,
) -> None:
    """A process for all; the oracle judges what they print, not the scripts."""
    tests = [load(path).test for path in LITMUS if path.stem in FEATURES]
    assert len(tests) == len(FEATURES)
    features = frozenset().union(*(test.features for test in tests))
    # Refused by name: `script` has none of these.
    without = {"clusters", "gradients"}
    assert features == FEATURE_NAMES - without
    tests += map(every_op, DTYPES)
    tests += [generate("pure", 9, index) for index in range(6)]
    # To look into a full queue takes an element: a waiting enqueue would then add another.
    tests.append(litmus("Q!1; Q!2; P!3; P!4; r0=Q?", queues={"Q": 2, "P": 1}))
    tests.append(litmus("Q!1; Q!2; r0=Q? || P!3; P!4; r1=P?", queues={"Q": 1, "P": 1}))
    shown = run(tmp_path, [found(test, model="executor") for test in tests], 0.1)
    for test, (code, text) in zip(tests, shown, strict=True):
        oracle = Explorer(test, EXECUTOR)
        seen = list(outcomes(test, text))
        assert_allowed(oracle, seen)
        assert (code, {verdict for _, _, verdict in seen}) == (0, {"not listed"}), text


@pytest.mark.parametrize("config", PYTHON)
def test_of_sound_tests_in_a_front_end_of_python_a_script_shows_allowed_outcomes_only(
    tmp_path: Path, config: str
) -> None:
    """The oracle judges by what the front end guarantees."""
    made = configuration("tf", config)
    settings = Settings.of(made)
    refused = settings.refuses | ({"handles"} if settings.compiled else set())
    tests = [load(path).test for path in LITMUS if path.stem in IN_PYTHON]
    compiled = settings.compiled == "whole"
    if compiled:  # XLA does not compile it, or it is no cluster: see `function_compiled`
        left_out = {"h-zero-trips", "indexed-gather", "list-in-a-loop"}
        left_out.add("lookup-of-distinct-rows")
        tests = [test for test in tests if test.name not in left_out]
    tests = [test for test in tests if not refused & test.features]
    assert len(tests) > 3
    settled = {"model": made.guarantees, "configuration": config, "settings": dict(made.settings)}
    shown = run(tmp_path, [found(test, **settled) for test in tests], 0.1)
    for test, (code, text) in zip(tests, shown, strict=True):
        oracle = Explorer(test, GUARANTEES[made.guarantees])
        seen = list(outcomes(test, text))
        assert_allowed(oracle, seen)
        assert (code, {verdict for _, _, verdict in seen}) == (0, {"not listed"}), text


def test_in_a_script_a_function_has_the_identities_of_the_handle_that_it_gets(
    tmp_path: Path,
) -> None:
    """As several arguments they would be several handles, which nothing orders."""
    made = configuration("tf", "eager_functions")
    test = loads(ALIASES).test
    settled = {"model": made.guarantees, "configuration": made.name}
    script = tmp_path / "script.py"
    entry = found(test, **settled, settings=dict(made.settings))
    script.write_text(script_of(entry, ""), encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-I", "-c", ALIASED, str(script)],
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr[-4000:]
    assert json.loads(shown.stdout.splitlines()[-1]) == [["h1", "h2", "r0"], ["h2", "h1"]]


ALIASED = """
import json, sys
text = open(sys.argv[1]).read().rstrip()
assert text.endswith("main()")
exec(text.removesuffix("main()"), script := {})
*_, read = script["PROGRAMS"]["main"]
nodes = script["with_aliases"]([read], "main")
kinds = {key: node.alias for node in script["PROGRAMS"]["main"] for key in node.makes}
print(json.dumps([[node.makes[0] for node in nodes], [k for k in ("h2", "h0", "h1") if kinds[k]]]))
"""


def mutated(original: LitmusTest, changed: LitmusTest, model: str, **settled: Any) -> Entry:
    """The finding that an executor shows which executes `changed` for `original`."""
    allowed = frozenset(allowed_outcomes(original, GUARANTEES[model]).witnesses)
    entry = found(changed, model=model, **settled)
    return replace(entry, allowed={model: allowed})


@pytest.mark.parametrize("config", PYTHON)
def test_of_a_mutant_in_a_front_end_of_python_a_script_shows_it(
    tmp_path: Path, config: str
) -> None:
    """The read comes before the write, in every execution; and that of the original shows none."""
    original, changed = litmus("X=1; r0=X"), litmus("r0=X; X=1")
    made = configuration("tf", config)
    settled = {"configuration": config, "settings": dict(made.settings)}
    entries = [mutated(original, each, made.guarantees, **settled) for each in (original, changed)]
    (sound, text), (shows, wrong) = run(tmp_path, entries, 0.1)
    assert (sound, shows) == (0, 1), (text, wrong)
    assert "allowed     r0=1 X=1" in text
    assert "FORBIDDEN   r0=0 X=1" in wrong


def test_of_mutants_on_accumulators_and_on_variables_without_a_value_scripts_show_them(
    tmp_path: Path,
) -> None:
    """Each in its first execution; of the original, nothing forbidden."""
    by_name = {path.stem: path for path in LITMUS}
    enough = load(by_name["rule-enough-1"]).test
    late = {"r0": ("w0",), "w1": ("r0",)}  # the take waits for ever
    given = sorted(enough.graph.nodes, key=lambda node: node.name == "w1")
    nodes = tuple(replace(node, after=late.get(node.name, ())) for node in given)
    pairs = [
        (StaleGradient, load(by_name["accumulator-step"]).test),
        (TooFewGradients, replace(enough, graphs=(Graph("main", nodes),))),
        (ZeroForNoValue, load(by_name["uninitialized-always-fails"]).test),
    ]
    entries = []
    for mutant, original in pairs:
        changed = mutant.changed(original)
        names = original.names
        assert changed.names[: len(names)] == names
        for each in (original, replace(changed, name=original.name)):
            entries.append(mutated(original, each, "executor"))
    codes = [code for code, _ in run(tmp_path, entries, 0.1)]
    assert codes == [0, 1] * len(pairs)


# The torn scatter of docs/tensorflow-findings.md, with what is allowed listed, and a race that
# no order forbids, with half of what is allowed: to see how a script ends.
TORN = litmus("X[0]+=1 || r0=X", shape=(1, 4096), dtype="float32")


@nightly
def test_of_the_torn_scatter_a_script_shows_it(tmp_path: Path) -> None:
    """Within a session of 3,072 executions on idle cores; one in a minute is enough."""
    allowed = {RFC.name: frozenset(allowed_outcomes(TORN, RFC).witnesses)}
    torn = Outcome.of(TORN, {"r0": TORN_VALUE, "X": (1,)})
    noise = {"copies": 32, "steps": 96, "padding": 1024}
    entry = replace(found(TORN, forbidden=((torn, 1),), noise=noise), allowed=allowed)
    path = tmp_path / "torn.py"
    path.write_text(script_of(entry, ""), encoding="utf-8")
    assert shows_it(path, seconds=60)


def test_of_clusters_in_an_inlined_call_a_script_shows_it(tmp_path: Path) -> None:
    """It blocks in every execution, if TensorFlow inlines the call and its ops share a handle."""
    entry = load(LITMUS[0].parents[1] / "findings/cluster-in-a-call-spans-two-sections.yaml")
    path = tmp_path / "call.py"
    path.write_text(script_of(entry, ""), encoding="utf-8")
    assert shows_it(path, seconds=30)


def test_a_file_keeps_what_became_of_the_script(tmp_path: Path) -> None:
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    for became in (None, *Script):
        entry = found(sb, script=became)
        save(entry, tmp_path / "sb.yaml")
        assert load(tmp_path / "sb.yaml") == entry


# --- what is refused -------------------------------------------------------------------


def test_a_script_is_of_a_finding_on_tensorflow_only() -> None:
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    with pytest.raises(NoScript, match="no finding"):
        script(Entry(sb))
    for changed, why in (
        ({"executor": "native"}, "found on native, not on TensorFlow"),
        ({"model": "acd"}, "cannot have the edges that the model acd adds"),
    ):
        with pytest.raises(NoScript, match=why):
            script(found(sb, **changed))
    plain = litmus("r0=X", dtype="float32")
    (x,) = plain.variables
    with pytest.raises(NoScript, match="a script cannot have gradients"):
        script(found(replace(plain, variables=(replace(x, gradient=True),))))


def test_a_script_says_which_parts_of_a_configuration_it_lacks() -> None:
    """The test's own edges forbid the outcome: a script that shows it needs no more."""
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    for settings in ({"workers": 2}, {"compiled": "region"}, {"front_end": "functional"}):
        ((name, value),) = settings.items()
        text = script(found(sb, settings=settings))
        compile(text, "script", "exec")
        assert f"Found with {name}={value}, which this script does without" in text
        assert "jit" not in text
    assert "does without" not in script(found(sb, settings={"compiled": "clusters"}))


@pytest.mark.parametrize("config", ["plain", "function", "eager_threads"])
def test_two_results_of_one_op_are_one_op_in_a_script(config: str) -> None:
    test = next(load(path).test for path in LITMUS if path.stem == "lookup-of-distinct-rows")
    made = configuration("tf", config)
    settled = {"model": made.guarantees, "configuration": config, "settings": dict(made.settings)}
    text = script_of(found(test, **settled), "")
    if config == "plain":
        assert text.count("raw.Unique(") == 1
        assert "places = rows_all[1]" in text
    else:
        assert 'v["rows"] = results(v, "rows", lambda: raw.Unique(' in text
        assert 'v["places"] = results(v, "rows", lambda: raw.Unique(' in text


def test_names_that_python_has_taken_and_settings_are_written() -> None:
    """`class` is a variable's name and `raw` a node's; each script compiles."""
    sb = litmus("X=1; raw=Y || Y=1; r1=X")
    plain = {"pool": "second", "inter_op_threads": 4, "rewrites": "remapping=ON,disable_x=false"}
    clusters = {"compiled": "clusters", "rewrites": "all", "executor_type": "E"}
    environment = {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2", "OURS": "1"}
    for settings in (plain, clusters, {"pool": "run_handler"}):
        text = script(found(sb, settings=settings), environment, "r0: because")
        compile(text, "script", "exec")
        assert "raw_ = raw.ReadVariableOp" in text
        assert "os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=2'" in text
        assert "OURS" not in text


def test_threads_spin_in_a_script_as_they_did_when_it_was_found() -> None:
    """A finding from before there was the setting was found with TensorFlow's default."""
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    sleeps = "made.experimental.disable_thread_spinning = True"
    for settings, expected in (
        ({}, False),
        ({"spinning": True}, False),
        ({"spinning": False}, True),
    ):
        text = script(found(sb, settings=settings))
        compile(text, "script", "exec")
        assert (sleeps in text) == expected
        assert "does without" not in text


def test_a_script_has_as_many_iterations_of_grappler_as_the_finding() -> None:
    """Two are TensorFlow's default; a finding from before the setting was run with one."""
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    option = "rewrites.meta_optimizer_iterations"
    for settings, expected in (
        ({"rewrites": "all"}, f"{option} = 1\n"),
        ({"rewrites": "all", "rewrite_iterations": 1}, f"{option} = 1\n"),
        ({"rewrites": "all", "rewrite_iterations": 2}, ""),
        ({"rewrites": "all", "rewrite_iterations": 3}, f"{option} = 3\n"),
        ({"rewrites": "", "rewrite_iterations": 2}, ""),
    ):
        text = script(found(sb, settings=settings))
        compile(text, "script", "exec")
        assert text.count(option) == bool(expected)
        assert expected in text


def test_show_prints_the_script_or_refuses_in_one_line(tmp_path: Path) -> None:
    sb = litmus("X=1; r0=Y || Y=1; r1=X")
    zero = Outcome.of(sb, {"r0": (0,), "r1": (0,), "X": (1,), "Y": (1,)})
    entry = replace(found(sb, forbidden=((zero, 1),)), allowed={})
    save(entry, tmp_path / "sb.yaml")
    command = ["show", "--format", "script"]
    shown = CliRunner().invoke(main, [*command, str(tmp_path / "sb.yaml")])
    assert shown.exit_code == 0
    compile(shown.output, "sb.py", "exec")
    assert "Forbidden  r" in shown.output  # the cycle, in words
    for path in (str(LITMUS[0]), "nothing.yaml"):
        refused = CliRunner().invoke(main, [*command, path])
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1


def test_copies_of_two_resources_have_different_names() -> None:
    """Copy 11 of V, and copy 1 of V1, were one variable: TensorFlow was blamed for it."""
    text = script_text.RESOURCE_VARIABLE + script_text.RESOURCE_QUEUE + script_text.RESOURCE_MUTEX
    for shared in re.findall(r'shared_name=f"(.*?)"', text):
        pattern = shared.replace("{self.number}", "{number}")
        made = [pattern.format(name=name, number=n) for name in ("V", "V1") for n in range(64)]
        assert len(set(made)) == len(made)


def test_a_row_of_a_whole_literal_may_be_one_number() -> None:
    assert literal(((0, 1), (1, 0), 2), (3, 2), "int32", whole=True) == "[[0, 1], [1, 0], [2, 2]]"
    assert literal((1, 0), (2, 2), "bool", whole=True) == "[[True, True], [False, False]]"
    assert literal((1, 2), (2, 1), "int32", whole=True) == "[[1], [2]]"
    assert literal((1, 2), (2, 3), "int32", whole=False) == "rows([1, 2], [2, 3])"
    assert literal((1, 2), (2,), "int32", whole=False) == "[1, 2]"
    assert literal(3, (2, 2), "int32", whole=True) == "3"
