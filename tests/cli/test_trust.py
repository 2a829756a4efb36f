"""A file alone never chooses what runs: no library, Python object, interpreter or other file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from helpers import LITMUS
from helpers_events import PLAIN, STARTED, added, executed, shown, started

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, Finding, load, save
from litmusfuzz.fuzz.executors.trust import outside_code
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store.folder import DATABASE, StoreError, has_writer
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.shard_log import EVENTS, is_writing
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import Configured, Generated, ScriptRun, ShardPlanned, encode
from litmusfuzz.reports.outputs import JSON, MAX_JSON_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

    from litmusfuzz.reports.events import Event

POOL = "concurrent.futures:ThreadPoolExecutor"
SB = load(LITMUS[0].parent / "SB.yaml")
"""Of the same shape as a finding: no executor shows what it says."""


def found_with(configuration: str, executor: str = "native") -> Entry:
    """A finding, of an outcome that no executor shows."""
    outcome = next(iter(sorted(SB.allowed["rfc"], key=str)))
    wrong = replace(outcome, values=tuple((name, (9,)) for name, _ in outcome.values))
    finding = Finding(
        executor=executor,
        configuration=configuration,
        model="rfc",
        forbidden=((wrong, 1),),
        executions=1,
        noise={},
        settings={},
        versions={},
        seed=0,
        index=0,
        family="dag",
        minimized=True,
        confirmed=True,
    )
    return replace(SB, finding=finding)


def one_line(done: Any, *parts: str) -> None:
    """Exit 2 with one line that has these parts."""
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in parts), done.stderr


@pytest.mark.parametrize("command", ["replay", "minimize"])
@pytest.mark.parametrize(
    "executor", ["native", "jax", "tf", "mutant/torn-write", "control/torn-write"]
)
def test_the_engine_of_a_finding_is_loaded_only_if_the_user_names_it(
    command: str, executor: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    library = tmp_path / "it's.so"
    library.write_text("no library")
    save(found_with(f"engine={library};threads=2", executor), tmp_path / "x.yaml")
    save(found_with(f"engine={POOL};threads=2", executor), tmp_path / "y.yaml")
    wants = f"x.yaml: wants to run the shared library {library}; if you trust it, add --engine '"
    one_line(litmusfuzz_here(command, "x.yaml"), wants, ", or --trust")
    one_line(litmusfuzz_here(command, "x.yaml", "--executors", executor), wants)
    one_line(litmusfuzz_here(command, "y.yaml"), f"wants to run the Python object {POOL};")


def test_a_named_or_trusted_engine_runs(tmp_path: Path, litmusfuzz_here: Command) -> None:
    configuration = f"engine={POOL};threads=2"
    save(found_with(configuration), tmp_path / "y.yaml")
    short = ("replay", "y.yaml", "--count", "64")
    named: tuple[tuple[str, ...], ...] = (
        ("--trust",),
        ("--engine", POOL),
        ("--engine", "inline"),
        ("--configuration", configuration),
        ("--executors", f"native:{configuration}"),
    )
    for option in named:
        done = litmusfuzz_here(*short, *option)
        assert done.returncode == 3, done  # it ran, and the finding did not show
        assert "executions on native/" in done.stdout


def test_names_that_load_nothing_from_outside() -> None:
    for name in ("plain", "engine=pool;threads=2", "engine=tbb", "engine=controlled;scheduler=pos"):
        assert not outside_code("native", name)
    assert "shared library ./x" in outside_code("native", "engine=./x")
    assert "shared library x.so" in outside_code("jax", "engine=x.so;threads=1;split")
    assert "Python object a.b:c.d" in outside_code("native", "engine=a.b:c.d")
    assert "'x=1' of executor 'theirs'" in outside_code("theirs", "x=1")
    assert not outside_code("theirs", "plain")


def campaign(folder: Path, *events: Event, **settings: Any) -> None:
    """A campaign's folder, as a stranger sends it: with any events."""
    first = started(*settings.pop("configurations", (PLAIN,)), **settings)
    with Store(folder, write=True) as store:
        store.append(0, first)
        store.append(1, ShardPlanned(at=STARTED, configurations={"native": ("plain",)}))
        for number, event in enumerate(events, 10):
            row = (number, 1, number, encode(event).decode())
            store.db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)


@pytest.mark.parametrize("command", ["run", "nightly"])
def test_the_interpreter_of_a_campaign_runs_only_if_the_user_names_it(
    command: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hit'\n")
    python.chmod(0o755)
    campaign(tmp_path / "c", python=str(python), unattended=command == "nightly")
    resume = (command, "--resume", "c", "--time", "1s")
    one_line(
        litmusfuzz_here(*resume),
        f"c: wants to run the interpreter {python}; if you trust it, add --python {python}, or ",
    )
    there = litmusfuzz_here(*resume, "--python", sys.executable)
    one_line(there, f"--python: c: continues with the interpreter {python}, not with ")
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("command", ["run", "nightly"])
def test_the_engine_of_a_campaign_is_loaded_only_if_the_user_names_it(
    command: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    library = tmp_path / "x.so"
    library.write_text("no library")
    made = Configured("native", f"engine={library}", "executor", "executor", "native/executor")
    campaign(tmp_path / "c", configurations=(made,), unattended=command == "nightly")
    resume = (command, "--resume", "c", "--time", "1s")
    one_line(litmusfuzz_here(*resume), f"c: wants to run the shared library {library}; ", "--trust")
    if command == "run":
        one_line(litmusfuzz_here(*resume, "--engine", "pool"), "wants to run the shared library")


def test_a_campaign_continues_with_what_the_user_names(
    tmp_path: Path, litmusfuzz_here: Command
) -> None:
    """Without tests nothing runs, so that this is the check alone."""
    made = Configured("native", f"engine={POOL}", "executor", "executor", "native/executor")
    campaign(tmp_path / "c", configurations=(made,), python=sys.executable)
    resume = ("run", "--resume", "c", "--tests", "0")
    one_line(litmusfuzz_here(*resume, "--python", sys.executable), "the Python object")
    one_line(litmusfuzz_here(*resume, "--engine", POOL), "the interpreter")
    done = litmusfuzz_here(*resume, "--python", sys.executable, "--engine", POOL)
    assert "wants to run" not in done.stderr
    assert "wants to run" not in litmusfuzz_here(*resume, "--trust").stderr


OUTSIDE = (
    "../../x.yaml",
    "/etc/x.yaml",
    "findings/../../x.yaml",
    "findings/.x.yaml",
    "x.sh",
    "a\nb.yaml",
)
"""Files of no campaign."""


@pytest.mark.parametrize("file", OUTSIDE)
def test_a_file_outside_of_the_folder_is_never_named(file: str, tmp_path: Path) -> None:
    """It would be read, written, and as a script run."""
    first = shown(1, STARTED + 1)
    found = added(first, "v3-0000000000000001", "findings/a.yaml", at=STARTED + 2)
    for event in (
        msgspec.structs.replace(found, file=file),
        executed(2, STARTED + 3, unreduced=file),
        ScriptRun(key="v3-0000000000000001", file=file, shows_it=True),
        ShardPlanned(configurations={}, minimizes=(file,)),
    ):
        folder = tmp_path / type(event).__name__
        campaign(folder, first, event)
        with pytest.raises(StoreError, match=f"{type(event).__name__} names the file") as error:
            Store(folder, write=False)
        assert str(error.value).isprintable()
    with (
        Store(tmp_path / "c", write=True) as store,
        pytest.raises(StoreError, match="sends a file"),
    ):
        store.add_files(1, {"findings/a.yaml": "text", file: "text", EVENTS: "text"})
    assert not (tmp_path / "c" / "findings").exists()
    assert not (tmp_path / "c" / "shards").exists()


@pytest.mark.parametrize("name", ["lock", "findings", "unreduced", "shards", f"{DATABASE}-wal"])
def test_a_link_in_a_campaigns_folder_is_not_followed(name: str, tmp_path: Path) -> None:
    """It would be truncated, or what it leads to deleted."""
    precious = tmp_path / "precious"
    if name in ("lock", f"{DATABASE}-wal"):
        precious.write_text("kept")
    else:
        precious.mkdir()
    folder = tmp_path / "c"
    campaign(folder)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(precious)
    with pytest.raises(StoreError, match=f"{name}: is a link"):
        Store(folder, write=True)
    assert precious.is_dir() or precious.read_text() == "kept"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT * FROM"
        " n",
        "CREATE TABLE other (x)",
    ],
)
def test_a_database_with_anything_but_events_is_refused(sql: str, tmp_path: Path) -> None:
    campaign(tmp_path)
    db = sqlite3.connect(tmp_path / DATABASE)
    db.execute(sql)
    db.commit()
    db.close()
    for write in (False, True):
        with pytest.raises(StoreError, match="has another table than events"):
            Store(tmp_path, write=write)


def test_the_replay_command_of_a_report_names_the_engine(tmp_path: Path) -> None:
    first = shown(1, STARTED + 1)
    key = "v3-0000000000000001"
    found = added(first, key, "findings/a.yaml", at=STARTED + 2)
    save(found_with(f"engine={POOL}"), tmp_path / "a.yaml")
    text = (tmp_path / "a.yaml").read_text()
    engine = msgspec.structs.replace(PLAIN, name=f"engine={POOL}")
    found = msgspec.structs.replace(found, entry=text, histogram=())
    campaign(tmp_path / "c", first, found, configurations=(PLAIN, engine))
    with Store(tmp_path / "c", write=False) as store:
        (reported,) = store.fold.report("c").findings
    assert reported.replay.endswith(f" --executors native:engine={POOL}")


def test_a_campaign_starts_once(tmp_path: Path) -> None:
    """Else a second start, however it is written, would replace the settings that were checked."""
    campaign(tmp_path)
    second = encode(started(PLAIN, python="/evil")).decode()
    for text in (second, second.replace('{"event"', '{ "event"')):
        with sqlite3.connect(tmp_path / DATABASE) as db:
            db.execute("INSERT OR REPLACE INTO events VALUES (99, 0, 99, ?)", (text,))
        with pytest.raises(StoreError, match=r"event 99: CampaignStarted .*starts once"):
            Store(tmp_path, write=False)
        db.close()


NUMBERS: dict[str, object] = {
    "workers": 10**9,
    "seed": -1,
    "count": 0,
    "shard_s": -1.0,
    "asked_s": 1e308,
    "tests": -5,
    "disk_bytes": -1,
    "selftest_s": 1e300,
}


@pytest.mark.parametrize("command", ["run", "nightly"])
@pytest.mark.parametrize("name", [*NUMBERS, "families"])
def test_a_number_that_no_option_takes_is_refused(
    command: str, name: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    """A billion workers would be a billion processes."""
    value = {"nobody": 1.0} if name == "families" else NUMBERS[name]
    campaign(tmp_path / "c", **{name: value}, unattended=command == "nightly")
    damaged = ("c/campaign.sqlite: event 1: Expected `", f" - at `$.{name}`")
    shown = ("settings: no family 'nobody'",) if name == "families" else damaged
    one_line(litmusfuzz_here(command, "--resume", "c", "--time", "1s"), *shown)


def test_a_pending_test_of_another_configuration_is_not_run(
    tmp_path: Path, litmusfuzz_here: Command
) -> None:
    """It is named, and the report is written."""
    campaign(tmp_path / "c", shown(2, STARTED + 3))
    save(found_with(f"engine={tmp_path}/x.so"), tmp_path / "c" / "unreduced" / "2.yaml")
    done = litmusfuzz_here("run", "--resume", "c", "--tests", "0", "--time", "1s")
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert "unreduced/2.yaml: is a finding of native/engine=" in done.stderr
    assert (tmp_path / "c" / "report.html").is_file()


def test_a_pipe_that_nobody_writes_to_is_empty(tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / "d").mkdir()
    for name in ("x.yaml", "d/x.yaml"):
        os.mkfifo(tmp_path / name)
    one_line(litmusfuzz_here("show", "x.yaml"), "x.yaml:1: is empty")
    one_line(litmusfuzz_here("cmin", "d", "--out", "o"), "d: has no test (*.yaml)")
    os.mkfifo(tmp_path / "d/stats")
    one_line(litmusfuzz_here("status", "d"), "d/stats: is not the stats file of a campaign")
    compared = litmusfuzz_here("herd", "compare", "x.yaml", "x.yaml")
    one_line(compared, "x.yaml:1: no test in this log")


def test_pipes_in_a_campaigns_folder_are_not_waited_for(
    tmp_path: Path, litmusfuzz_here: Command
) -> None:
    campaign(tmp_path / "c")
    log = tmp_path / "c" / "shards" / "1"
    log.mkdir(parents=True)
    with Store(tmp_path / "c", write=True) as store:
        for each in (log / "lock", log / "events.jsonl"):
            os.mkfifo(each)
        assert not is_writing(log)
        with pytest.raises(OSError, match="not seekable"):
            store.ingest(1)
    with pytest.raises(StoreError, match="is not a file"):
        Store(tmp_path / "c", write=True)
    shutil.rmtree(log)
    (tmp_path / "c/lock").unlink()
    os.mkfifo(tmp_path / "c/lock")
    assert not has_writer(tmp_path / "c")
    refused = litmusfuzz_here("run", "--resume", "c", "--tests", "0")
    one_line(refused, "c/lock: is not a file")


def test_files_without_end_are_refused(tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/stats").symlink_to("/dev/zero")
    one_line(litmusfuzz_here("status", "c"), "c/stats: is larger than")
    one_line(litmusfuzz_here("herd", "compare", "/dev/zero", "/dev/zero"), "is larger than")
    (tmp_path / "n").mkdir()
    with (tmp_path / "n" / JSON).open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)  # which takes no place on the disk
    (tmp_path / "n" / DATABASE).touch()  # otherwise it is another program's file
    campaign(tmp_path / "m")
    with Store(tmp_path / "m", write=True) as store:
        (problem,) = ReportBuilder(store, KnownFindings()).build().damaged
    assert problem == f"{tmp_path / 'n' / JSON}: is larger than {MAX_JSON_BYTES} bytes"
    one_line(litmusfuzz_here("known", "add", "k.yaml", "n", "--why", "x"), "is larger than")


@pytest.mark.parametrize(
    ("generated", "family", "why"),
    [
        ({"index": 1, "executor": "os:system"}, "dag", "test 1: no executor 'os:system'"),
        ({"index": 1, "executor": "native"}, "../x", "test 1: no family '../x'"),
        ({"index": 2, "executor": "native"}, "dag", "test 1: it was never generated"),
    ],
)
def test_a_test_that_cannot_be_generated_is_named(
    generated: dict[str, Any], family: str, why: str, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    made = Generated(at=STARTED, family=family, ops={}, given=("native/plain",), **generated)
    campaign(tmp_path / "c", made, executed(1, STARTED + 1, family=family))
    one_line(litmusfuzz_here("reproduce", "c"), why)


def test_a_report_of_brackets_is_refused(tmp_path: Path, litmusfuzz_here: Command) -> None:
    for begin in ("", '{"x": ', '{"findings": '):
        (tmp_path / "r.json").write_text(begin + "[" * 100_000)
        added = litmusfuzz_here("known", "add", "k.yaml", "r.json", "--why", "x")
        one_line(added, "is not the report.json of a campaign")


@pytest.mark.parametrize("there", [False, True])
def test_a_link_to_anything_else_is_no_file_of_known_findings(
    *, there: bool, tmp_path: Path, litmusfuzz_here: Command
) -> None:
    """A project that was cloned may have any link."""
    save(found_with("plain"), tmp_path / "x.yaml")
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.touch()
    (tmp_path / "k.yaml").symlink_to(elsewhere)
    command = ("known", "add", "k.yaml", "x.yaml", "--why", "x")
    one_line(litmusfuzz_here(*command), "k.yaml: is a link to no known-findings file")
    assert (elsewhere.read_text() == "") if there else not elsewhere.exists()


def test_numbers_in_stats_have_bounds(tmp_path: Path, litmusfuzz_here: Command) -> None:
    (tmp_path / "stats").write_text("state : runs\nnew_findings : 1e300\nrun_time : nan\n")
    done = litmusfuzz_here("status", ".")
    assert done.returncode == 0
    assert len(done.stdout) < 500
