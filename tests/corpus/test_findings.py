"""`corpus/findings`: one minimized finding for each cause, with its script; they still show."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from datetime import date
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, nightly

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import dumps, load
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.finding import known_file
from litmusfuzz.fuzz.finding.canonical import executor_class
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES
from tests.corpus.apart import APART

if TYPE_CHECKING:
    from conftest import Command

FOLDER = LITMUS[0].parents[1] / "findings"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
CRASHES = {
    "async-compilation-close",
    "gather-nd-without-value",
    "memory-optimizer-and-nested-loop",
    "slice-assign-writes-freed-memory",
    "step-without-value",
}
"""A crash has no outcome, so its file has no finding: the description has the signal."""
CLOSING = {"async-compilation-close"}
"""Ends the processes of scripts alone: the executor avoids it."""
WITHOUT_OUTCOME = {
    "arithmetic-optimizer-loses-a-branch",
    "failed-step-never-ends",
    "identity-conjugate-transpose",
    "lowered-while-exchanges-handles",
}
"""Tests without a forbidden outcome, which the scripts show: their files have no findings."""

# Replay stops at the first forbidden outcome, so a limit bounds the odds of a miss. On two cores
# that ran four other processes, each test showed in at least 1 of 4,096 executions, of which some
# 100,000 fit into two minutes: a test misses with (1 - 1/4096)**100_000 < 1e-10.
SHOWS_QUICKLY = {
    "call-overtakes-a-read-through-a-branch",
    "call-overtakes-a-value-that-it-returns",
    "call-overtakes-an-unused-argument",
    "call-overtakes-its-argument",
    "call-overtakes-one-of-two-reads",
    "cluster-of-two-reads-beside-scatter-nd",
    "cluster-spans-read-and-write",
    "cluster-spans-two-sections",
    "cluster-waits-for-a-blocked-enqueue",
    "cluster-writes-late",
    "eager-call-overtakes-a-read-through-a-branch",
    "lookup-loses-its-edges",
    "max-pool-grad-grad-clears-a-constant",
    "max-pool-grad-grad-clears-its-input",
    "scatter-beside-read",
    "scatter-beside-scatter",
    "scatter-rows-beside-read",
    "scatter-rows-beside-scatter",
    "slice-assign-beside-add",
    "slice-assign-beside-optimizer",
    "slice-assign-beside-read",
    "slice-assign-beside-sub",
}
LIMIT = "120s"
RARE = "shows in less than 1 of 5,000 executions on busy cores"
HEAP = "the process mostly ends of a corrupted heap first"
LEFT_TO_THE_NIGHTLY_RUN = {
    "cluster-around-a-message": "tests/executors/test_tensorflow_clusters.py runs it",
    "cluster-holds-up-a-failing-read": "blocks as cluster-spans-two-sections does",
    "cluster-optimizer-beside-scatter": RARE,
    "cluster-optimizer-beside-scatter-nd": RARE,
    "cluster-reads-beside-scatter": "showed in 3 of 32,768 executions, and then in 0 of 65,536",
    "cluster-reads-beside-scatter-nd": RARE,
    "cluster-in-a-call-spans-two-sections": "blocks as cluster-spans-two-sections does",
    "cluster-in-two-calls-spans-two-sections": "blocks as cluster-spans-two-sections does",
    "cluster-computes-from-two-sections": "blocks as cluster-spans-two-sections does",
    "cluster-spans-two-reads": "blocks as cluster-spans-two-sections does",
    "cluster-spans-two-writes": "blocks as cluster-spans-two-sections does",
    "cluster-spans-update-and-write": "blocks as cluster-spans-read-and-write does",
    "cluster-scatter-beside-scatter-nd": RARE,
    "cluster-update-beside-computed-scatter-nd": RARE,
    "cluster-update-beside-scatter": RARE,
    "cluster-update-beside-scatter-nd": RARE,
    "cluster-waits-for-a-section": "blocks as cluster-spans-two-sections does",
    "cluster-waits-for-a-writing-section": "blocks as cluster-spans-two-sections does",
    "cluster-waits-for-an-earlier-iteration": "blocks as cluster-spans-two-sections does",
    "first-assignment-overwrites-another": RARE,
    "first-assignment-writes-twice": RARE,
    "slice-assign-beside-assign": HEAP,
    "slice-assign-beside-scatter": RARE,
    "slice-assign-beside-scatter-nd": RARE,
    "slice-assign-writes-freed-memory": "some processes survive for minutes",
}
SHOWN_BY_ITS_SCRIPT = {
    "arithmetic-optimizer-loses-a-branch": "an error, which has no outcome to replay",
    "async-compilation-close": "the executor waits for the compiler before it closes a session",
    "failed-step-never-ends": "what follows a failure is not specified",
    "gather-nd-without-value": "a crash, which has no outcome to replay",
    "identity-conjugate-transpose": "an error, which has no outcome to replay",
    "lowered-while-exchanges-handles": "the configuration refuses such loops",
    "memory-optimizer-and-nested-loop": "a crash, which has no outcome to replay",
    "single-threaded-executor-waits": "the configuration refuses queues",
    "step-without-value": "a crash, which has no outcome to replay",
}


def run_script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a finding's script."""
    return subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", *arguments],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )


needs_tensorflow = pytest.mark.skipif(not find_spec("tensorflow"), reason="needs TensorFlow")


def test_each_finding_is_replayed_or_left_out_for_a_reason() -> None:
    parts = [SHOWS_QUICKLY, set(LEFT_TO_THE_NIGHTLY_RUN), set(SHOWN_BY_ITS_SCRIPT)]
    assert sorted(name for part in parts for name in part) == sorted(FILES)


WRITTEN = {
    "call-overtakes-a-read-through-a-branch",  # front end eager_functions
    "call-overtakes-a-value-that-it-returns",  # python_v1
    "call-overtakes-an-unused-argument",  # function
    "cluster-spans-two-sections",  # graph, with clusters
    "eager-call-overtakes-a-read-through-a-branch",  # eager
    "scatter-beside-scatter",  # graph
}
"""Scripts that `litmusfuzz show` has written; of the other ones that are files, people have."""


def script_that_is_shown(name: str, litmusfuzz_here: Command) -> str:
    """The script of a finding that a user gets by its name."""
    done = litmusfuzz_here("show", name, "--format", "script")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_script_is_written_from_its_finding(name: str, litmusfuzz_here: Command) -> None:
    """One for each front end: what changes scripts is read as a diff of these files."""
    kept = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert script_that_is_shown(name, litmusfuzz_here) == kept


@pytest.mark.parametrize("name", FILES)
def test_a_finding_bears_its_causes_name_and_has_a_script(
    name: str, litmusfuzz_here: Command
) -> None:
    entry = load(FILES[name])
    assert entry.test.name == name
    assert dumps(entry) == FILES[name].read_text(encoding="utf-8")
    kept = FOLDER / f"{name}.py"
    script = (
        kept.read_text(encoding="utf-8")
        if kept.exists()
        else script_that_is_shown(name, litmusfuzz_here)
    )
    assert compile(script, name, "exec")
    if name in CRASHES | WITHOUT_OUTCOME:
        assert entry.finding is None
        assert (": signal 6: " in entry.test.description) is (name in CRASHES)
    else:
        assert entry.finding is not None
        assert entry.finding.cause == name
        assert entry.finding.minimized


ERRORS = {"arithmetic-optimizer-loses-a-branch", "identity-conjugate-transpose"}


@pytest.mark.parametrize("name", sorted(CRASHES - CLOSING | ERRORS))
def test_the_known_file_knows_what_ends_a_process(name: str) -> None:
    """By the message in its description, in the configuration that showed it."""
    test = load(FILES[name]).test
    title, _, message = test.description.partition("\n")[0].partition(": ")
    shown_in = configuration(*title.split("/", 1))
    of = executor_class("tf", dict(shown_in.settings), shown_in.guarantees)
    known = known_file.load(FOLDER.parent / "known.yaml")
    entry = known.match("", test, "crashed", of, date(2026, 11, 29), message)
    assert entry is not None
    assert entry.name == name


@pytest.mark.parametrize("name", sorted(FILES.keys() - CRASHES - WITHOUT_OUTCOME))
def test_the_outcomes_of_a_finding_are_forbidden(name: str) -> None:
    entry = load(FILES[name])
    assert entry.finding is not None
    explorer = Explorer(entry.test, GUARANTEES[entry.finding.model])
    assert explorer.allowed_outcomes().witnesses.keys() == entry.allowed[entry.finding.model]
    verdicts = {explorer.judge(outcome) for outcome, _ in entry.finding.forbidden}
    assert verdicts == {Verdict.FORBIDDEN}


def test_the_page_has_a_section_for_each_cause() -> None:
    page = Path(__file__).parents[2] / "docs" / "tensorflow-findings.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in FILES if f"\n`{name}`" not in text] == []


@needs_tensorflow
@pytest.mark.timeout(900)
def test_findings_still_show_on_tensorflow() -> None:
    """One command for all, which imports TensorFlow once; the limit is that of each."""
    files = [str(FILES[name]) for name in sorted(SHOWS_QUICKLY)]
    command = [sys.executable, "-m", "litmusfuzz", "replay", *files, "--time", LIMIT, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    shown = {each["test"] for each in json.loads(done.stdout) if each["forbidden"]}
    assert shown == SHOWS_QUICKLY


@needs_tensorflow
def test_a_gradient_penalty_through_max_pooling_still_has_no_gradient() -> None:
    """No chance in it."""
    done = run_script("max-pool-grad-grad-clears-its-input")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("FORBIDDEN") == 2


OPERANDS = """\
    t1: {op: MaxPoolGradGrad, inputs: [c1, c2, t0], ksize: [1, 1, 1, 1], strides: [1, 1, 1, 1], \
padding: SAME}
"""
AS_OPERANDS = """\
    c5: {op: Const, dtype: int32, shape: [4], value: [1, 1, 1, 1]}
    t1: {op: MaxPoolGradGradV2, inputs: [c1, c2, t0, c5, c5], padding: SAME}
"""


@needs_tensorflow
@pytest.mark.timeout(900)
def test_an_op_with_the_same_wrong_kernel_is_the_same_cause(tmp_path: Path) -> None:
    """Nothing races, and each execution shows it: the experiments leave nothing to chance."""
    known = FILES["max-pool-grad-grad-clears-its-input"]
    text = known.read_text(encoding="utf-8")
    assert OPERANDS in text
    other = tmp_path / "other.yaml"
    other.write_text(text.replace(OPERANDS, AS_OPERANDS), encoding="utf-8")
    command = [sys.executable, "-m", "litmusfuzz", "known", "compare", known, other, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (pair,) = json.loads(done.stdout)
    assert pair["verdict"] == "one cause"
    for each in pair["comparisons"]:
        control, trigger = each["experiments"]
        assert control["seen"] == control["executions"] > 0
        assert trigger["seen"] == 0 < trigger["executions"]


@needs_tensorflow
@nightly
def test_closing_a_session_while_xla_compiles_still_crashes() -> None:
    """Each of five processes ended with a signal when it was recorded; one of five is enough."""
    crashed = [f"[-{each:d}]" for each in (signal.SIGABRT, signal.SIGSEGV)]
    printed = []
    for _ in range(5):
        done = run_script("async-compilation-close", "1")
        printed.append(done.stdout.rpartition(": ")[2].strip())
        if printed[-1] in crashed:
            break
    assert printed[-1] in crashed, printed


@needs_tensorflow
@nightly
def test_the_memory_optimizer_still_crashes() -> None:
    """No chance in it: the optimizer runs before the graph does."""
    done = run_script("memory-optimizer-and-nested-loop")
    assert done.returncode == 1, done.stdout + done.stderr
    codes = [line.split(" (")[0] for line in done.stdout.splitlines()]
    assert codes == [
        "NO_MEM_OPT: exit code 0",
        "DEFAULT_MEM_OPT: exit code 0",
        f"HEURISTICS: exit code {-signal.SIGABRT}",
    ]


@needs_tensorflow
@nightly
def test_a_lowered_while_still_takes_handles_for_constants() -> None:
    """No chance in it."""
    done = run_script("lowered-while-exchanges-handles")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[1:] == ["by the kernel of While: (1, 1)", "lowered: (2, 0)"]


@needs_tensorflow
@nightly
def test_gather_nd_still_crashes() -> None:
    """Within seconds when it was recorded, on busy cores; three times half a minute are enough."""
    for _ in range(3):
        done = run_script("gather-nd-without-value")
        if done.returncode == 1:
            break
    read, gather = done.stdout.splitlines()
    assert read.startswith("ReadVariableOp: exit code 0"), done.stdout
    assert gather.startswith(f"ResourceGatherNd: exit code {-signal.SIGABRT}"), done.stdout


@needs_tensorflow
@nightly
def test_a_step_of_a_variable_without_a_value_still_crashes() -> None:
    """Within seconds when it was recorded, on busy cores; three minutes are enough."""
    for _ in range(3):
        done = run_script("step-without-value")
        if done.returncode == 1:
            break
    assert done.stdout.startswith(f"exit code {-signal.SIGABRT}"), done.stdout


@needs_tensorflow
@nightly
def test_a_failed_step_still_never_ends() -> None:
    """Seconds between what has to come one after another."""
    done = run_script("failed-step-never-ends")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[:2] == [
        "A waits first: A FailedPreconditionError, B completed",
        "B waits first: no run has ended after 10 s",
    ]


@needs_tensorflow
@nightly
def test_a_cancelled_enqueue_still_waits_for_itself() -> None:
    """Seconds between what has to come one after another."""
    done = run_script("cancelled-enqueue-waits-for-itself")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[:2] == [
        "without a close: DeadlineExceededError",
        "with a close: the step has not ended after 10 s",
    ]


@needs_tensorflow
@nightly
def test_grappler_still_makes_conj_of_real_numbers() -> None:
    """No chance in it."""
    done = run_script("identity-conjugate-transpose")
    assert done.returncode == 1, done.stdout + done.stderr
    plain, optimized = done.stdout.splitlines()
    assert plain.endswith(": 2.0")
    assert "Value for attr 'T' of double is not in the list" in optimized


@needs_tensorflow
@nightly
def test_the_arithmetic_optimizer_still_loses_a_branch() -> None:
    """No chance in it."""
    done = run_script("arithmetic-optimizer-loses-a-branch")
    assert done.returncode == 1, done.stdout + done.stderr
    plain, optimized = done.stdout.splitlines()
    assert plain.endswith(": 2.0")
    assert optimized.endswith(": Retval[0] does not have value")


@needs_tensorflow
@nightly
def test_the_single_threaded_executor_still_waits() -> None:
    """No chance in it: the executor starts the dequeue first."""
    done = run_script("single-threaded-executor-waits")
    assert done.returncode == 1, done.stdout + done.stderr


def test_an_experiment_sets_each_two_findings_apart() -> None:
    """`tests.corpus.apart` wrote it; a new finding has to be compared with all others."""
    with APART.open() as file:
        pairs = [frozenset((row["finding"], row["other"])) for row in csv.DictReader(file)]
    assert len(pairs) == len(set(pairs))
    compared = FILES.keys() - CRASHES - WITHOUT_OUTCOME
    assert set(pairs) == {frozenset(pair) for pair in combinations(compared, 2)}
