"""The command line: output, exit codes, and errors for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litmusfuzz import corpus
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import Entry, save
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor
from litmusfuzz.fuzz.generators import FAMILIES, families_for

SB = str(Path(corpus.__file__).parent / "litmus" / "SB.yaml")


LITMUS = Path(corpus.__file__).parent / "litmus"
LOST = str(LITMUS / "lost-update.yaml")


def test_oracle_prints_the_sets_of_all_models(litmusfuzz_here) -> None:
    result = litmusfuzz_here("oracle", LOST)
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "X  rfc  executor",
        "1  yes  no",
        "2  yes  yes",
        "",
        "2 outcomes allowed under rfc (3 search states)",
        "1 outcome allowed under executor (1 search state); 1 more needs rfc",
    ]


def test_oracle_with_a_model_prints_its_set_alone(litmusfuzz_here) -> None:
    result = litmusfuzz_here("oracle", SB, "--model", "rfc")
    assert result.returncode == 0
    assert result.stdout.splitlines()[:4] == [
        "r0  r1  X  Y",
        "0   1   1  1",
        "1   0   1  1",
        "1   1   1  1",
    ]
    assert "3 outcomes allowed under rfc" in result.stdout
    assert "executor" not in result.stdout


def test_oracle_json_has_the_same(litmusfuzz_here) -> None:
    data = json.loads(litmusfuzz_here("oracle", LOST, "--json").stdout)
    assert data == {
        "test": "lost-update",
        "complete": True,
        "total": 2,
        "truncated": False,
        "models": {
            "rfc": {"outcomes": 2, "complete": True, "states": 3},
            "executor": {"outcomes": 1, "complete": True, "states": 1},
        },
        "allowed": [
            {"outcome": {"X": 1}, "models": ["rfc"]},
            {"outcome": {"X": 2}, "models": ["rfc", "executor"]},
        ],
    }


def test_oracle_gives_a_witness_one_event_a_line(litmusfuzz_here) -> None:
    allowed = litmusfuzz_here("oracle", SB, "--outcome", "r0=0,r1=1")
    assert allowed.returncode == 0
    assert allowed.stdout.splitlines() == [
        "r0=0 r1=1: allowed under rfc and executor",
        "",
        "witness, a total order under executor, and hence under rfc:",
        "  1  W(X) w0",
        "  2  R(Y) r0",
        "  3  W(Y) w1",
        "  4  R(X) r1",
        "which yields  r0=0 r1=1 X=1 Y=1",
    ]


def test_oracle_judges_an_outcome_that_needs_rfc(litmusfuzz_here) -> None:
    """Lost update: a witness under the one model, a reason under the other."""
    result = litmusfuzz_here("oracle", LOST, "--outcome", "X=1")
    assert result.returncode == 0
    assert result.stdout.startswith("X=1: allowed under rfc, forbidden under executor\n")
    assert "witness, a total order under rfc:" in result.stdout
    assert "reason under executor (dense updates indivisible):\n" in result.stdout
    assert "an update is one step" in result.stdout
    assert (
        litmusfuzz_here("oracle", LOST, "--outcome", "X=1", "--model", "executor").returncode == 1
    )
    data = json.loads(litmusfuzz_here("oracle", LOST, "--outcome", "X=1", "--json").stdout)
    assert data["verdicts"] == {"rfc": "allowed", "executor": "forbidden"}
    (witness,), (reason,) = data["witnesses"], data["reasons"]
    assert (witness["model"], witness["outcome"]) == ("rfc", {"X": 1})
    assert sorted(witness["events"]) == ["R(X) w0", "R(X) w1", "W(X) w0", "W(X) w1"]
    assert (reason["model"], reason["rules"]) == ("executor", ["dense updates indivisible"])


def test_oracle_gives_the_reason_of_a_forbidden_outcome(litmusfuzz_here) -> None:
    # What a finding's report says can be pasted: blanks do as well as commas.
    forbidden = litmusfuzz_here("oracle", SB, "--outcome", "r0=0 r1=0")
    assert forbidden.returncode == 1
    assert forbidden.stdout.startswith("r0=0 r1=0: forbidden under rfc and executor\n")
    assert "r0 read 0 of Y, so it came before w1" in forbidden.stdout
    torn = litmusfuzz_here("oracle", SB, "--outcome", "r0=torn", "--json")
    assert torn.returncode == 1
    assert set(json.loads(torn.stdout)["verdicts"].values()) == {"forbidden"}


@pytest.mark.parametrize(
    ("file", "asked", "code", "printed"),
    [
        ("backpressure-blocked", "_status=blocked", 0, "which yields  blocked, X=1 Q=[1]"),
        ("backpressure-blocked", "_status=blocked,X=1", 0, "_status=blocked X=1: allowed"),
        ("backpressure-blocked", "X=1", 0, "which yields  blocked, X=1 Q=[1]"),
        ("backpressure-blocked", "_status=completed", 1, "rule: capacity"),
        ("backpressure-blocked", "Q=[]", 1, "Q=[]: forbidden"),
        ("queue-rows-left", "Q=[[1,2],[5,6]]", 0, "Q=[[1,2],[5,6]]: allowed"),
        ("queue-rows-left", "Q=[[1, 2]], X=[5, 6]", 1, "X=[5,6] Q=[[1,2]]: forbidden"),
        ("close-one-too-many", "_status=failed", 0, "which yields  failed"),
    ],
)
def test_oracle_judges_queues_and_how_a_run_ended(
    litmusfuzz_here, file: str, asked: str, code: int, printed: str
) -> None:
    result = litmusfuzz_here("oracle", str(LITMUS / f"{file}.yaml"), "--outcome", asked)
    assert (result.returncode, result.stderr) == (code, "")
    assert printed in result.stdout


def test_oracle_over_budget_is_unknown(litmusfuzz_here, tmp_path: Path) -> None:
    result = litmusfuzz_here("oracle", SB, "--budget", "1")
    assert result.returncode == 3
    assert "and perhaps more: over budget" in result.stdout
    data = json.loads(litmusfuzz_here("oracle", SB, "--budget", "1", "--json").stdout)
    assert not data["complete"]
    assert not data["models"]["rfc"]["complete"]
    # Membership needs fewer states: only what has equal values everywhere needs many.
    text = " || ".join([f"X=1; X=2; r{i}=X; Y=1; s{i}=Y" for i in range(4)])
    save(Entry(litmus(text, name="many")), tmp_path / "many.yaml")
    asked = "X=2,Y=1,r0=1,r1=1,r2=1,r3=1"
    result = litmusfuzz_here("oracle", "many.yaml", "--budget", "1", "--outcome", asked)
    assert result.returncode == 3
    assert "unknown: the search ran out of its budget" in result.stdout


def test_show_draws_text_and_dot(litmusfuzz_here) -> None:
    result = litmusfuzz_here("show", SB)
    assert result.returncode == 0
    assert "| w0: X = 1" in result.stdout
    assert "digraph" not in result.stdout
    dot = litmusfuzz_here("show", SB, "--format", "dot").stdout
    assert dot.startswith("digraph")
    data = json.loads(litmusfuzz_here("show", SB, "--json").stdout)
    assert data["dot"] + "\n" == dot
    assert data["file"]["name"] == "SB"


def bad_file(tmp_path: Path, old: str, new: str) -> str:
    text = Path(SB).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "bad.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(path)


def test_bad_files_give_one_line_and_exit_2(litmusfuzz_here, tmp_path: Path) -> None:
    """Missing file, malformed YAML, cycle, wrong dtype, absurd size, unknown op, version."""
    cases = [
        (str(tmp_path / "absent.yaml"), "absent.yaml: No such file"),
        (bad_file(tmp_path, "main:", "main: ["), ""),
    ]
    edits = [
        ("inputs: [c1_0]}", "inputs: [c1_0], after: [r0]}", "cycle: w0 -> r0 -> w0"),
        ("dtype: int32", "dtype: int31", "variables.X.dtype"),
        ("shape: []", "shape: [99999999]", "variables.X.shape.0"),
        ("op: Const", "op: Cnst", "unknown op 'Cnst'"),
        ("litmusfuzz: 2", "litmusfuzz: 9", "unknown version 9"),
    ]
    for number, (old, new, message) in enumerate(edits):
        path = Path(bad_file(tmp_path, old, new))
        kept = path.rename(tmp_path / f"bad{number}.yaml")
        cases.append((str(kept), message))
    before = sorted(tmp_path.iterdir())
    for path, message in cases:
        for command in ("oracle", "show", "replay", "promote"):
            result = litmusfuzz_here(command, path)
            assert result.returncode == 2
            assert result.stdout == ""
            assert result.stderr.startswith(f"litmusfuzz: {path}")
            assert message in result.stderr
            assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before  # nothing written


def test_usage_errors_exit_2(litmusfuzz_here) -> None:
    for arguments, message in (
        (("run", "--time", "soon"), "is no duration"),
        (("run", "--executors", "absent"), "no executor 'absent'"),
        (("run", "--executors", "tf:absent"), "no configuration 'absent'"),
        (("oracle", SB, "--outcome", "q=1"), "'q' is not one of r0, r1, X, Y, _status"),
        (("oracle", SB, "--outcome", "r0=x"), "an int, a list or torn; got 'x'"),
        (("oracle", SB, "--outcome", "r0"), "cannot read 'r0'"),
        (("oracle", SB, "--outcome", "r0=1;r1=2"), "cannot read 'r0=1;r1=2'"),
        (("oracle", SB, "--outcome", "r0=[1,,2]"), "cannot read '[1,,2]'"),
        (("oracle", SB, "--outcome", "r0=[1,2]"), "must have 1 ints"),
        (("oracle", SB, "--outcome", "r0=[[1],[2]]"), "r0"),
        (("oracle", SB, "--outcome", "r0=1,r0=1"), "'r0' stands twice"),
        (("oracle", SB, "--outcome", ""), "names no value"),
        (("oracle", SB, "--outcome", "_status=stuck"), "completed, blocked or failed, not stuck"),
        (("oracle", SB, "--outcome", "_status=failed,X=1"), "a failed outcome has no values"),
        (("oracle", SB, "--budget", "0"), "budget"),
        (("run", "--families", "dog"), "no family 'dog'; is it 'dag'? `litmusfuzz list families`"),
        (("run", "--families", ""), "no family ''; `litmusfuzz list families`"),
        (("run", "--out", ""), "--out: names no folder"),
        (("run", "--tests", "0"), "--tests 0: only with --resume"),
        (("run", "--resume", "nowhere"), "nowhere: is no folder of a campaign: has no"),
        (("run", "--resume", "x", "--seed", "1"), "its own options, without --seed"),
        (("nightly", "--resume", "x", "--disk", "1GB"), "its own options, without --disk"),
        (("nightly", "--selftest", "5m", "--time", "1m"), "--selftest: longer than --time"),
        (("run", "--known", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "--families", "dag=many"), "a weight is as in dag=3 or dag=0.5, got 'dag=many'"),
        (("run", "--families", "loops,dag=0"), "a weight is above 0, got 'dag=0'"),
        (
            ("run", "--executors", "mutant/stale-reads", "--families", "queues,loops"),
            "generates tests for mutant/stale-reads: it does not take loops, queues",
        ),
        (
            ("force", SB, "--outcome", "r0=0 r1=0"),
            "r0=0 r1=0: forbidden under the model executor, which",
        ),
        (("force", SB, "--outcome", "r0=0", "--executors", "mutant/canary"), "cannot be made to"),
        (
            ("force", SB, "--outcome", "r0=0", "--configuration", "absent"),
            "no configuration 'absent'",
        ),
        (("force", SB, "--model", "rfc"), "--model: needs --outcome"),
        (("force", SB, LOST, "--outcome", "X=1"), "--outcome: is of one test, on one executor"),
        (("list", "tests", "--executors", "tf"), "is of `list configurations`"),
        (("list", "configurations", "--executors", "absent"), "no executor 'absent'"),
        (("replay", SB, "--executors", "native", "--schedule"), "has no schedule to follow"),
        (("nonsense",), "no command 'nonsense'; `litmusfuzz --help`"),
    ):
        result = litmusfuzz_here(*arguments)
        assert result.returncode == 2, arguments
        assert message in result.stderr
        assert result.stderr.startswith("litmusfuzz: ")
        assert result.stderr.count("\n") == 1


def test_a_full_disk_is_said_in_one_line(litmusfuzz_here) -> None:
    """``/dev/full`` takes no byte; the system does not say of which file it speaks."""
    result = litmusfuzz_here(
        "replay", SB, "--executors", "native", "--count", "9", "--log", "/dev/full"
    )
    assert result.returncode == 2
    assert result.stderr == "litmusfuzz: No space left on device\n"


def test_a_value_too_large_is_an_ill_formed_test(litmusfuzz_here, tmp_path: Path) -> None:
    save(Entry(litmus("X=16777215; X+=1")), tmp_path / "large.yaml")
    result = litmusfuzz_here("oracle", "large.yaml")
    assert result.returncode == 2
    assert "below 2**24" in result.stderr


def test_run_replay_and_promote_on_a_deterministic_mutant(litmusfuzz_here, tmp_path: Path) -> None:
    common = ("--executors", "mutant/stale-reads", "--tests", "40", "--count", "64")
    common = (*common, "--time", "10m")
    result = litmusfuzz_here("run", *common, "--seed", "1", "--out", "found", "--json")
    assert result.returncode == 1, result.stderr
    data = json.loads(result.stdout)
    assert data["exit_code"] == 1
    assert data == json.loads((tmp_path / "found" / "report.json").read_text())
    assert data["canary"][0] == data["canary"][1] > 0
    file = f"found/{data['findings'][0]['file']}"
    assert Path(tmp_path / file).exists()
    text = litmusfuzz_here("replay", file)
    assert text.returncode == 1
    assert "FORBIDDEN" in text.stdout
    replayed = json.loads(litmusfuzz_here("replay", file, "--json").stdout)
    assert replayed["exit_code"] == 1
    assert any(row["verdict"] == "forbidden" for row in replayed["observed"])
    # Promotion shows a diff, and writes only with --write.
    shown = litmusfuzz_here("promote", file, "--out", "kept")
    assert shown.returncode == 0
    assert "+litmusfuzz: 2" in shown.stdout
    assert not (tmp_path / "kept").exists()
    assert litmusfuzz_here("promote", file, "--out", "kept", "--write").returncode == 0
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert "nothing to change" in litmusfuzz_here("promote", file, "--out", "kept").stdout


def test_force_runs_the_witness_of_an_outcome(litmusfuzz_here, tmp_path: Path) -> None:
    result = litmusfuzz_here("force", SB, "--outcome", "r0=0 r1=1", "--log", "sb.log")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "judged by the model executor, which native/controlled guarantees",
        "forced on native/controlled, a total order under executor:",
        "  1  W(X) w0",
        "  2  R(Y) r0",
        "  3  W(Y) w1",
        "  4  R(X) r1",
        "which yields  r0=0 r1=1 X=1 Y=1",
    ]
    assert "*>0:r0=0; 1:r1=1; [X]=1; [Y]=1;" in (tmp_path / "sb.log").read_text()
    asked = ("force", str(LITMUS / "backpressure-blocked.yaml"), "--outcome", "_status=blocked")
    data = json.loads(litmusfuzz_here(*asked, "--model", "rfc", "--json").stdout)
    assert data["configuration"] == "controlled_split"
    assert data["outcome"] == data["expected"] == {"_status": "blocked", "X": 1, "Q": [1]}
    assert len(data["events"]) == 2


def test_force_says_where_an_executor_is_stricter_and_when_time_is_up(litmusfuzz_here) -> None:
    """An order that splits updates, on a configuration that does not."""
    asked = ("force", LOST, "--outcome", "X=1", "--model", "rfc")
    result = litmusfuzz_here(*asked, "--configuration", "controlled")
    assert result.returncode == 3
    assert result.stdout.splitlines()[-1] == (
        "native/controlled does not follow it: after 2 of 4 events: W(X) w0 cannot come now"
    )
    late = litmusfuzz_here(*asked, "--time", "0.000001ms")
    assert late.returncode == 3
    assert "after 0 of 4 events 1e-09 s were over" in late.stdout


def test_native_runs_every_family_and_counts_the_graphs_of_each(litmusfuzz_here) -> None:
    """Each as often as its weight says: nothing is found that could change that."""
    weights = {name: FAMILIES[name].weight for name in families_for(NativeExecutor.support)}
    once = {name for name, weight in weights.items() if weight == 1} - {"clusters"}
    twice = {name for name, weight in weights.items() if weight == 2}
    number = 2 * len(once) + 4 * len(twice)
    asked = ("run", "--executors", "native:controlled", "--tests", str(number), "--count", "32")
    data = json.loads(
        litmusfuzz_here(
            *asked, "--seed", "3", "--time", "10m", "--model", "guaranteed", "--json"
        ).stdout
    )
    (native,) = data["by_config"]
    assert {name: each["graphs"] for name, each in data["families"].items()} == {
        **dict.fromkeys(once, 2),
        **dict.fromkeys(twice, 4),
    }
    assert all(each["seconds"] > 0 for each in data["families"].values())
    # A mutation may have what its parent has.
    assert set(native["refused_for"]) <= {"clusters", "transfers"}
    by_family = sum(each["graphs"] for each in data["by_family"])
    assert native["graphs"] == by_family == number - native["refused"]
    assert (native["model"], native["guarantees"]) == ("executor", "executor")
    assert data["canary"][0] == data["canary"][1] > 0
    assert data["exit_code"] == 0
    asked = ("run", "--executors", "native", "--families", "queues=3,cycles", "--tests", "8")
    shown = litmusfuzz_here(*asked)
    assert "queues       6" in shown.stdout
    assert "cycles       2" in shown.stdout


def test_a_clean_run_exits_0_and_says_what_it_did(litmusfuzz_here, tmp_path: Path) -> None:
    """MP is survived by the mutant; so is any graph without a store before a load."""
    save(Entry(litmus("X=1; Y=2 || r0=Y; r1=X", name="MP")), tmp_path / "MP.yaml")
    result = litmusfuzz_here(
        "replay", "MP.yaml", "--executors", "mutant/stale-reads", "--count", "10"
    )
    assert result.returncode == 0
    assert "10 executions on mutant/stale-reads/plain" in result.stdout
    assert "0 forbidden under the model executor" in result.stdout


def test_promote_shows_how_an_allowed_set_would_change(litmusfuzz_here, tmp_path: Path) -> None:
    path = bad_file(tmp_path, "  - {r0: 0, r1: 1, X: 1, Y: 1}\n", "")
    before = Path(path).read_text(encoding="utf-8")
    result = litmusfuzz_here("promote", path)
    assert "+  - {r0: 0, r1: 1, X: 1, Y: 1}" in result.stdout
    assert Path(path).read_text(encoding="utf-8") == before
    assert litmusfuzz_here("promote", path, "--write").returncode == 0
    assert "r0: 0, r1: 1" in Path(path).read_text(encoding="utf-8")


def test_help_names_every_command(litmusfuzz_here) -> None:
    text = litmusfuzz_here("--help").stdout
    for command in (
        "run",
        "replay",
        "force",
        "oracle",
        "show",
        "promote",
        "herd",
        "list",
        "bench",
    ):
        assert command in text
