"""Commands `herd import`, `herd export`, `herd log` and `compare`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.herd import read_log
from litmusfuzz.corpus.textfile import Entry, load, save

LITMUS = Path(corpus.__file__).parent / "litmus"
HERD7 = shutil.which("herd7")
MCOMPARE7 = shutil.which("mcompare7")
SB = """C SB
{}
P0 (atomic_int* x, atomic_int* y) { atomic_store(x, 1); int r0 = atomic_load(y); }
P1 (atomic_int* x, atomic_int* y) { atomic_store(y, 1); int r0 = atomic_load(x); }
exists (0:r0=0 /\\ 1:r0=0)
"""


def files(*names: str) -> list[str]:
    return [str(LITMUS / f"{name}.yaml") for name in names]


@pytest.fixture
def sb(tmp_path: Path) -> str:
    (tmp_path / "SB.litmus").write_text(SB, encoding="utf-8")
    return "SB.litmus"


# --- import and export -----------------------------------------------------------------


def test_import_prints_or_writes_our_file(litmusfuzz_here, sb: str, tmp_path: Path) -> None:
    printed = litmusfuzz_here("herd", "import", sb)
    assert printed.returncode == 0
    written = litmusfuzz_here("herd", "import", sb, "--out", "in")
    assert written.stdout == "1 test written to in\n"
    assert (tmp_path / "in" / "SB.yaml").read_text(encoding="utf-8") == printed.stdout
    assert load(tmp_path / "in" / "SB.yaml").test.observe == ("P0_r0", "P1_r0")
    # Once more changes nothing; what somebody has worked on is not overwritten.
    assert litmusfuzz_here("herd", "import", sb, "--out", "in").returncode == 0
    (tmp_path / "in" / "SB.yaml").write_text("mine", encoding="utf-8")
    refused = litmusfuzz_here("herd", "import", sb, "--out", "in")
    assert refused.returncode == 2
    assert (
        refused.stderr
        == "litmusfuzz: in/SB.yaml: exists already, and differs: move it away first\n"
    )
    assert (tmp_path / "in" / "SB.yaml").read_text(encoding="utf-8") == "mine"


def test_an_imported_test_is_exported_with_the_same_log(litmusfuzz_here, sb: str) -> None:
    litmusfuzz_here("herd", "import", sb, "--out", "in")
    exported = litmusfuzz_here("herd", "export", "in/SB.yaml", "--out", "out")
    assert (exported.returncode, exported.stdout) == (0, "1 test written to out\n")
    logs = [
        read_log(litmusfuzz_here("herd", "log", f).stdout) for f in ("in/SB.yaml", "out/SB.litmus")
    ]
    assert logs[0][0].states == logs[1][0].states
    assert logs[0][0].condition == "exists (0:r0=0 /\\ 1:r0=0)"


def test_export_writes_what_fits_and_names_what_does_not(litmusfuzz_here, tmp_path: Path) -> None:
    chosen = files("MP", "lost-update", "fifo-two-producers", "section-increments", "swap")
    result = litmusfuzz_here("herd", "export", *chosen, "--out", "out")
    assert result.returncode == 2
    assert result.stdout == "3 tests written to out, 2 refused\n"
    assert result.stderr.splitlines() == [
        f"litmusfuzz: {chosen[2]}: does not fit herd's C: queues are not herd's",
        f"litmusfuzz: {chosen[3]}: does not fit herd's C: critical sections are not herd's",
    ]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"MP.litmus", "lost-update.litmus", "swap.litmus"}
    rows = json.loads(litmusfuzz_here("herd", "export", *chosen, "--json").stdout)
    assert [row["refused"] is None for row in rows] == [True, True, False, False, True]
    assert rows[0]["text"] == (tmp_path / "out" / "MP.litmus").read_text(encoding="utf-8")


def test_export_under_executor_has_fetch_and_adds(litmusfuzz_here) -> None:
    (file,) = files("lost-update")
    assert "fetch_add" not in litmusfuzz_here("herd", "export", file).stdout
    assert "fetch_add" in litmusfuzz_here("herd", "export", file, "--model", "executor").stdout


def test_mistakes_are_one_line_and_write_nothing(litmusfuzz_here, sb: str, tmp_path: Path) -> None:
    (tmp_path / "bad.litmus").write_text(SB.replace("int r0", "if (1) int r0", 1), encoding="utf-8")
    (tmp_path / "again.litmus").write_text(SB, encoding="utf-8")
    (tmp_path / "empty.log").write_text("nothing\n", encoding="utf-8")
    good = files("SB")[0]
    before = sorted(tmp_path.iterdir())
    for arguments, message in (
        (("import", "absent.litmus"), "absent.litmus: No such file or directory"),
        (("import", "bad.litmus", "--out", "o"), "bad.litmus:3: P0: if: branches are not read"),
        (("import", sb, "bad.litmus", "--out", "o"), "bad.litmus:3: P0: if"),
        (("import", sb, "again.litmus", "--out", "o"), "both have the name SB"),
        (("import", good), "SB.yaml:1: a test for"),
        (("import", sb, str(tmp_path / "absent")), "absent: No such file"),
        (("export", "none.litmus"), "none.litmus: No such file"),
        (("export", *files("SB", "MP")), "--out names the folder"),
        (("export", good, good, "--out", "o"), "both have the name SB"),
        (("log", "bad.litmus"), "bad.litmus:3"),
        (("log", "absent.yaml"), "absent.yaml: No such file"),
        (("log", good, sb), "both have the name SB"),
    ):
        result = litmusfuzz_here("herd", *arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("litmusfuzz: ")
    for arguments, message in (
        (("empty.log", "empty.log"), "empty.log:1: no test in this log"),
        (("absent.log", "empty.log"), "absent.log: No such file"),
        ((good, good), "no test in this log"),
    ):
        result = litmusfuzz_here("herd", "compare", *arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


# --- logs ------------------------------------------------------------------------------


def test_the_log_of_a_test_of_herd_s_shows_what_herd_shows(litmusfuzz_here, sb: str) -> None:
    """Only what it lists, or asks for."""
    result = litmusfuzz_here("herd", "log", sb)
    assert result.returncode == 0
    assert result.stdout.splitlines()[:10] == [
        "Test SB Allowed",
        "States 3",
        "0:r0=0; 1:r0=1;",
        "0:r0=1; 1:r0=0;",
        "0:r0=1; 1:r0=1;",
        "No",
        "Witnesses",
        "Positive: 0 Negative: 3",
        "Condition exists (0:r0=0 /\\ 1:r0=0)",
        "Observation SB Never 0 3",
    ]


def test_a_log_of_several_tests_under_a_model(litmusfuzz_here) -> None:
    chosen = files("lost-update", "backpressure-blocked", "MP")
    for model, states in (("rfc", 2), ("executor", 1)):
        result = litmusfuzz_here("herd", "log", *chosen, "--model", model)
        read = read_log(result.stdout)
        assert [each.name for each in read] == ["lost-update", "backpressure-blocked", "MP"]
        assert [len(each.states) for each in read] == [states, 1, 3]
    rows = json.loads(
        litmusfuzz_here("herd", "log", *chosen, "--model", "executor", "--json").stdout
    )
    assert "".join(row["log"] for row in rows) == result.stdout


def test_a_set_over_budget_is_no_log(litmusfuzz_here) -> None:
    result = litmusfuzz_here("herd", "log", *files("MP", "lost-update"), "--budget", "1")
    assert result.returncode == 3
    assert result.stdout == ""
    assert "MP.yaml: over budget under rfc" in result.stderr


# --- compare ---------------------------------------------------------------------------


@pytest.fixture
def logs(litmusfuzz_here, tmp_path: Path) -> None:
    """What a mutant shows of SB and MP, and what is allowed."""
    seen = litmusfuzz_here(
        *("replay", *files("SB", "MP"), "--executors", "mutant/stale-reads"),
        *("--count", "20", "--log", "seen.log"),
    )
    assert seen.returncode == 1
    allowed = litmusfuzz_here("herd", "log", *files("MP", "SB")).stdout
    (tmp_path / "allowed.log").write_text(allowed, encoding="utf-8")


def test_replay_writes_what_compare_reads(litmusfuzz_here, logs: None, tmp_path: Path) -> None:
    sb, mp = read_log((tmp_path / "seen.log").read_text(encoding="utf-8"))
    assert dict(sb.states) == {(("0:r0", 0), ("1:r1", 0), ("X", 1), ("Y", 1)): 20}
    assert list(mp.states.values()) == [20]
    result = litmusfuzz_here("herd", "compare", "seen.log", "allowed.log", "--tests", str(LITMUS))
    assert result.returncode == 1
    assert "    0:r0=0; 1:r1=0; X=1; Y=1;  20     FORBIDDEN\n" in result.stdout
    assert result.stdout.splitlines()[-3:] == [
        "2 tests in both: 2 tests differ",
        "only in seen.log: 1 outcome, 1 forbidden under rfc",
        "only in allowed.log: 5 outcomes, 0 forbidden under rfc",
    ]
    data = json.loads(
        litmusfuzz_here(
            "herd", "compare", "seen.log", "allowed.log", "--tests", str(LITMUS), "--json"
        ).stdout
    )
    assert (data["same"], data["forbidden"], data["exit_code"]) == (False, 1, 1)
    forbidden = [o for t in data["tests"] for o in t["only"] if o["verdict"] == "forbidden"]
    assert forbidden == [
        {
            "in": "seen.log",
            "state": {"0:r0": 0, "1:r1": 0, "X": 1, "Y": 1},
            "count": 20,
            "verdict": "forbidden",
        }
    ]


def test_without_tests_it_is_not_known_what_is_forbidden(litmusfuzz_here, logs: None) -> None:
    result = litmusfuzz_here("herd", "compare", "seen.log", "allowed.log")
    assert result.returncode == 3
    assert "FORBIDDEN" not in result.stdout
    assert "what of it is forbidden is not known: give the tests with --tests" in result.stdout


def test_equal_logs_are_the_same(litmusfuzz, litmusfuzz_here, logs: None) -> None:
    result = litmusfuzz("herd", "compare", "allowed.log", "allowed.log")  # no page runs it
    assert (result.returncode, result.stdout) == (0, "2 tests in both: all the same\n")
    # A forbidden outcome that both have is reported, and no difference.
    result = litmusfuzz_here("herd", "compare", "seen.log", "seen.log", "--tests", str(LITMUS))
    assert result.returncode == 0
    assert "1 outcome forbidden under rfc in both" in result.stdout


def test_the_model_decides_what_is_forbidden(litmusfuzz_here, tmp_path: Path) -> None:
    (file,) = files("lost-update")
    for model in ("rfc", "executor"):
        text = litmusfuzz_here("herd", "log", file, "--model", model).stdout
        (tmp_path / f"{model}.log").write_text(text, encoding="utf-8")
    logs = ("rfc.log", "executor.log", "--tests", file)
    assert litmusfuzz_here("herd", "compare", *logs).returncode == 3
    strict = litmusfuzz_here("herd", "compare", *logs, "--model", "executor")
    assert strict.returncode == 1
    assert "only in rfc.log: 1 outcome, 1 forbidden under the model executor" in strict.stdout


def test_blocked_torn_and_queues_are_judged(litmusfuzz_here, tmp_path: Path) -> None:
    chosen = files("backpressure-blocked", "queue-rows-left")
    right = litmusfuzz_here("herd", "log", *chosen).stdout
    (tmp_path / "right.log").write_text(right, encoding="utf-8")
    wrong = right.replace("=blocked;", "=completed;").replace("X]={5,6}", "X]=torn", 1)
    wrong = wrong.replace("Q]={1,2,5,6}", "Q]={5,6,5,6}", 1)
    (tmp_path / "wrong.log").write_text(wrong, encoding="utf-8")
    result = litmusfuzz_here(
        "herd", "compare", "right.log", "wrong.log", "--tests", str(LITMUS), "--json"
    )
    data = json.loads(result.stdout)
    found = {
        (t["test"], o["in"]): sorted(x["verdict"] for x in t["only"] if x["in"] == o["in"])
        for t in data["tests"]
        for o in t["only"]
    }
    assert found[("backpressure-blocked", "right.log")] == ["allowed"]
    assert found[("backpressure-blocked", "wrong.log")] == ["forbidden"]
    assert set(found[("queue-rows-left", "right.log")]) == {"allowed"}
    assert set(found[("queue-rows-left", "wrong.log")]) == {"forbidden"}


def test_a_log_of_another_test_is_a_mistake(litmusfuzz_here, sb: str, tmp_path: Path) -> None:
    """One that has the name only: its locations are not the test's."""
    (tmp_path / "a.log").write_text(litmusfuzz_here("herd", "log", sb).stdout, encoding="utf-8")
    result = litmusfuzz_here("herd", "compare", "a.log", "a.log", "--tests", *files("SB"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "litmusfuzz: a.log:1: SB: 1:r0 is not a location of the test: 0:r0, 1:r1, X, Y\n"
    )
    both = litmusfuzz_here(
        "herd", "compare", "a.log", "a.log", "--tests", *files("SB"), "--tests", sb
    )
    assert "are two tests named SB" in both.stderr
    (tmp_path / "b.log").write_text("Test other\nStates 1\nx=1;\nOk\n", encoding="utf-8")
    apart = litmusfuzz_here("herd", "compare", "a.log", "b.log")
    assert apart.returncode == 2
    assert apart.stderr == "litmusfuzz: a.log and b.log have no test in common\n"


def test_replay_refuses_a_log_that_cannot_be_written(litmusfuzz_here, tmp_path: Path) -> None:
    save(Entry(litmus("r0=X", name="SB")), tmp_path / "other.yaml")
    for arguments, message in (
        ((*files("SB"), "--log", "absent/x.log"), "absent/x.log: No such file"),
        ((*files("SB"), "other.yaml", "--log", "x.log"), "both have the name SB"),
    ):
        result = litmusfuzz_here("replay", *arguments, "--executors", "mutant/stale-reads")
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr


# --- beside herd's own tools -----------------------------------------------------------


@pytest.mark.skipif(HERD7 is None, reason="herd7 of herdtools7 is not installed")
def test_compare_finds_no_difference_to_herd7(litmusfuzz_here, sb: str, tmp_path: Path) -> None:
    litmusfuzz_here("herd", "export", *files("MP", "IRIW", "lost-update"), "--out", "out")
    sources = [sb, *(f"out/{name}.litmus" for name in ("MP", "IRIW", "lost-update"))]
    assert HERD7 is not None
    theirs = subprocess.run(
        [HERD7, "-model", "sc.cat", *sources],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "herd.log").write_text(theirs.stdout, encoding="utf-8")
    (tmp_path / "ours.log").write_text(
        litmusfuzz_here("herd", "log", *sources).stdout, encoding="utf-8"
    )
    result = litmusfuzz_here("herd", "compare", "herd.log", "ours.log")
    assert (result.returncode, result.stdout) == (0, "4 tests in both: all the same\n")


@pytest.mark.skipif(MCOMPARE7 is None, reason="mcompare7 of herdtools7 is not installed")
def test_mcompare7_reads_our_logs(litmusfuzz_here, tmp_path: Path) -> None:
    """Blocked outcomes, queues and arrays among them."""
    chosen = files("MP", "backpressure-blocked", "queue-rows-left", "swap")
    text = litmusfuzz_here("herd", "log", *chosen).stdout
    (tmp_path / "ours.log").write_text(text, encoding="utf-8")
    assert MCOMPARE7 is not None
    done = subprocess.run(
        [MCOMPARE7, "ours.log", "ours.log"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout for name in ("MP", "backpressure-blocked", "swap"))
