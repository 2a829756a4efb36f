"""Attacks by a campaign's folder: its store, shard logs, locks, and the folders beside it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.library import paths
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Finding, dumps, load, outcome_from_plain
from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignEnded,
    CampaignStarted,
    CanaryRun,
    ConfigurationUnavailable,
    Configured,
    Executed,
    FindingAdded,
    FindingKind,
    Generated,
    Kill,
    MutantRun,
    NotRun,
    Problem,
    Progress,
    ReductionStarted,
    ShardEnded,
    ShardPlanned,
    ShardStarted,
    Unconfirmed,
    WorkerDied,
    encode,
)
from tests.attacks.attack import Place, attack
from tests.campaign.looped import tree_of_one_page

if TYPE_CHECKING:
    from litmusfuzz.reports.events import AnyEvent

STARTED = 1_800_000_000.0
STALE = "mutant/stale-reads"
CONTROLLED = Configured("native", "controlled", "rfc", "rfc", "native/rfc")
ON_MUTANT = Configured(STALE, "plain", "executor", "executor", f"{STALE}/executor")
PLANNED = ShardPlanned(at=STARTED, configurations={"native": ("controlled",)})
FORBIDDEN = {"r0": 0, "r1": 0, "X": 1, "Y": 1}
"""Of SB."""
KEY = "v3-0000000000000001"
NOTES = ("findings/notes.md", "findings/.plan.txt.3.tmp", "crashed/core", "unreduced/a.yaml.orig")
"""Files that no campaign writes."""
BASH = Path("/bin/bash")
PYTHON = Path(sys.executable)


def started(*configurations: Configured, **changes: Any) -> CampaignStarted:
    """The settings of a campaign."""
    usual = {"command": "run", "seed": 7, "asked_s": 3.0, "families": {"dag": 1.0}}
    return CampaignStarted(
        **{"at": STARTED, **usual, "configurations": configurations or (CONTROLLED,), **changes}
    )


def executed(index: int, **changes: Any) -> Executed:
    """A test that ran."""
    usual: dict[str, Any] = {
        "at": STARTED + index,
        "index": index,
        "family": "dag",
        "executor": "native",
        "configuration": "controlled",
        "model": "rfc",
        "run_seed": 1,
        "count": 64,
        "sha256": "0" * 64,
        "verdicts": {"allowed": 64},
    }
    return Executed(**usual | changes)


def finding(executor: str, configuration: str, name: str = "SB") -> str:
    """A file of a finding that claims to be of a configuration."""
    entry = load(paths()["SB"])
    outcome = outcome_from_plain(entry.test, FORBIDDEN)
    found = Finding(
        *(executor, configuration, "rfc", ((outcome, 3),), 64, {}, {}, {}, 7, 1, "dag"),
        minimized=True,
        confirmed=True,
    )
    return dumps(replace(entry, test=replace(entry.test, name=name), finding=found))


def row(event: AnyEvent | bytes) -> str:
    return (event if isinstance(event, bytes) else encode(event)).decode()


def store(place: Place, *events: tuple[int, AnyEvent | bytes], folder: str = "c") -> Path:
    """The store of a stranger's campaign, with these events of shards."""
    path = place.folder / folder
    Store(path, write=True).close()
    with closing(sqlite3.connect(path / DATABASE)) as db, db:
        for number, (shard, event) in enumerate(events, 1):
            place_of = number if shard else -1000 + number
            db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?)", (number, shard, place_of, row(event))
            )
    return path


def engine_library(place: Place) -> Path:
    """A shared library that leaves a mark as soon as it is loaded."""
    source = place.write(
        "engine.c",
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) "
        f'{{ FILE *f = fopen("{place.folder}/was-run", "w"); if (f) fclose(f); }}\n',
    )
    library = place.folder / "engine.so"
    subprocess.run(["/usr/bin/cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def was_run(place: Place) -> bool:
    return (place.folder / "was-run").exists()


# --- to break in -----------------------------------------------------------------------


@attack("to run a library that only a test in unreduced/ and its event name")
def a_pending_test_in_the_configuration_of_a_library(place: Place) -> str:
    theirs = f"engine={engine_library(place)};threads=1"
    shown = executed(
        1, configuration=theirs, verdicts={"forbidden": 3}, unreduced="unreduced/1.yaml"
    )
    folder = store(place, (0, started()), (1, PLANNED), (1, shown))
    place.write("c/unreduced/1.yaml", finding("native", theirs))
    ended = place.run("run", "--resume", folder, "--time", "4s")
    assert not was_run(place)
    return ended.error.replace(str(place.folder), ".")[:200] or "it was not loaded"


@attack("to import a Python module that only a test in unconfirmed/ names")
def an_unconfirmed_test_on_an_engine_in_python(place: Place) -> str:
    place.write("lib/stealing.py", f"open({str(place.folder / 'was-run')!r}, 'w').close()\n")
    theirs = "engine=stealing:Engine;threads=1"
    shown = executed(
        1, configuration=theirs, verdicts={"forbidden": 3}, unreduced="unreduced/1.yaml"
    )
    where: dict[str, Any] = {"at": STARTED + 9, "executor": "native", "configuration": theirs}
    tried = Unconfirmed(**where, index=1, file="unconfirmed/1.yaml", executions=9)
    ended_shard = ShardEnded(at=STARTED + 10, seconds=1.0)
    generated = Generated(at=STARTED + 1, index=1, family="dag", executor="native", ops={})
    events = [(0, started(tests=9)), (1, PLANNED), (1, generated), (1, shown), (1, tried)]
    folder = store(place, *events, (1, ended_shard))
    place.write("c/unconfirmed/1.yaml", finding("native", theirs))
    path = {"PYTHONPATH": str(place.folder / "lib")}
    ended = place.run("run", "--resume", folder, "--time", "9s", "--tests", "2", env=path)
    assert not was_run(place)
    return ended.error[:200] or "it was not imported"


@attack("to run a library that only the file of a finding in the store names")
def a_finding_whose_entry_is_of_another_configuration(place: Place) -> str:
    """Its event names an honest one; a test that looks like it is compared in the finding's."""
    theirs = f"engine={engine_library(place)};threads=1"
    shown = executed(1, verdicts={"forbidden": 3}, unreduced="unreduced/1.yaml")
    again = executed(2, verdicts={"forbidden": 3}, unreduced="unreduced/2.yaml")
    added = FindingAdded(
        at=STARTED + 5,
        index=1,
        executor="native",
        configuration="controlled",
        key=KEY,
        file="findings/SB.yaml",
        entry=finding("native", theirs),
        executor_class="native/rfc",
        model="rfc",
        cause="wrong + read",
    )
    folder = store(place, (0, started()), (1, PLANNED), (1, shown), (1, again), (1, added))
    place.write("c/findings/SB.yaml", finding("native", theirs))
    place.write("c/unreduced/2.yaml", finding("native", "controlled", "unreduced-2"))
    ended = place.run("run", "--resume", folder, "--time", "4s")
    assert not was_run(place)
    return ended.error.replace(str(place.folder), ".")[:200] or "it was not loaded"


@attack("to change the database of another program")
def a_folder_that_holds_a_database_of_that_name(place: Place) -> str:
    path = place.outside / DATABASE
    # The user names the folder by mistake, or the attacker has made a link that is no symbolic one.
    made = place.folder / "c" / DATABASE
    made.parent.mkdir()
    with closing(sqlite3.connect(made)) as db, db:
        db.execute("CREATE TABLE letters (text)")
        db.execute("INSERT INTO letters VALUES ('dear')")
    before = made.read_bytes()
    ended = place.run("run", "--executors", "native", "--time", "1s", "--out", "c")
    assert ended.code == 2
    assert made.read_bytes() == before, "its journal_mode was changed"
    assert {each.name for each in made.parent.iterdir()} <= {DATABASE, "lock"}
    assert not path.exists()
    return ended.error


@attack("to change a database outside by a hard link in a campaign's place")
def a_store_that_is_a_hard_link(place: Place) -> str:
    theirs = store(place, (0, started()), (1, PLANNED), folder="theirs") / DATABASE
    (place.folder / "c").mkdir()
    (place.folder / "c" / DATABASE).hardlink_to(theirs)
    before = theirs.read_bytes()
    ended = place.run("run", "--resume", "c", "--tests", "0")
    assert theirs.read_bytes() == before
    assert ended.code == 2
    return ended.error


@attack("to have files deleted that are none of a campaign's")
def a_new_campaign_in_a_folder_with_data(place: Place) -> str:
    """`--out` names a folder that the user has: data sets have shards, too."""
    kept = [place.write("data/shards/0001/part.bin", "x"), place.write("data/shards/index", "y")]
    kept += [place.write("data/.mine.tmp", "z"), place.write("data/findings/mine.yaml", "w")]
    kept += [place.write("data/shards/7/notes", "v"), place.write("data/.stats.mine.tmp", "u")]
    ended = place.run("run", "--executors", "native", "--time", "1s", "--out", "data")
    gone = [str(each.relative_to(place.folder)) for each in kept if not each.exists()]
    assert not gone, f"deleted: {gone}"
    return f"exit {ended.code}; all {len(kept)} files are there"


@attack("to have somebody's notes deleted when a killed campaign is continued")
def notes_beside_the_findings_of_a_killed_campaign(place: Place) -> str:
    planned = ShardPlanned(at=1.0, configurations={"native": ("controlled",)})
    folder = store(place, (0, started(at=1.0)), (1, planned))  # its shard has not ended
    kept = [place.write(f"{folder.name}/{name}", "mine") for name in NOTES]
    gone = place.write(f"{folder.name}/unreduced/7.yaml", "not recorded")
    place.run("run", "--resume", folder, "--tests", "0", "--time", "1s")
    assert not gone.exists()
    assert all(each.exists() for each in kept)
    return f"{len(kept)} files of the user's are there"


_HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "ab")
fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""
_RESUMED = """
import sys
from pathlib import Path
from litmusfuzz.fuzz.nightly import pools
from litmusfuzz.fuzz.nightly import many
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.fuzz.store.folder import StoreError
many.ORPHAN_GRACE_S = 0.2  # a minute, for who has the time
try:
    with Store(Path(sys.argv[1]), write=True) as store, pools.open(1) as pool:
        many.Nightly(store, KnownFindings(), lambda _: None, pool, local=True)._recover()
except (StoreError, OSError) as error:
    sys.exit(f"litmusfuzz: {error}")
"""


@attack("to have a process of the user's killed that holds a lock of its own")
def the_lock_of_a_shard_is_a_hard_link_to_that_of_another_program(place: Place) -> str:
    theirs = place.write("theirs/lock", "")
    folder = store(place, (0, started(unattended=True)), (1, PLANNED))
    (folder / "shards" / "1").mkdir(parents=True)
    (folder / "shards" / "1" / "lock").hardlink_to(theirs)
    command = [PYTHON, "-c", _HOLDER, theirs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        ended = place.run("-c", _RESUMED, folder, program=PYTHON)
        spared = holder.poll() is None
        holder.communicate(b"")
    assert spared, "it was killed"
    return ended.error.replace(str(place.folder), ".")


# --- to hang or to exhaust -------------------------------------------------------------


@attack("to make a command wait for ever")
def a_pipe_in_place_of_a_rolled_back_transaction(place: Place) -> str:
    import os

    folder = store(place, (0, started()), (1, PLANNED), (1, executed(1)))
    os.mkfifo(folder / f"{DATABASE}-journal")
    codes = [
        place.run(*command, within_s=10, codes=(2,)).error
        for command in (("reproduce", "c"), ("run", "--resume", "c"))
    ]
    return codes[0]


@attack("to make a command wait for ever")
def a_pipe_in_place_of_the_store_or_its_log(place: Place) -> str:
    import os

    said = []
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", "lock"):
        folder = store(place, (0, started()), (1, PLANNED), (1, executed(1)), folder=name[-3:])
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        for command in (("reproduce",), ("run", "--resume"), ("nightly", "--resume")):
            ended = place.run(*command, folder.name, within_s=10)
            if command != ("reproduce",) or name != "lock":
                assert ended.code == 2, (name, command, ended.code)
                said.append(ended.error)
    return said[0]


@attack("to exhaust the memory by a shard log that fills no disk")
def a_shard_log_of_one_endless_line(place: Place) -> str:
    folder = store(place, (0, started()), (1, PLANNED))
    log = place.write("c/shards/1/events.jsonl", "")
    with log.open("r+b") as file:
        file.truncate(1 << 42)  # four terabytes of nothing: a kilobyte in an archive
    limited = 'ulimit -v 3000000; exec litmusfuzz run --resume "$0" --tests 0'
    env = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin"}
    ended = place.run("-c", limited, folder, program=BASH, env=env, within_s=15)
    assert ended.code == 2
    return ended.error.replace(str(place.folder), ".")


@attack("to exhaust the memory by one event")
def a_store_with_an_event_of_a_gigabyte(place: Place) -> str:
    folder = store(place, (0, started()), (1, PLANNED), (1, executed(1)))
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        # Its pages hold zeros: an archive makes nothing of them.
        db.execute("INSERT INTO events VALUES (9, 1, 9, CAST(zeroblob(900000000) AS TEXT))")
    limited = 'ulimit -v 1500000; exec litmusfuzz reproduce "$0"'
    env = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin"}
    ended = place.run("-c", limited, folder, program=BASH, env=env, within_s=8)
    assert ended.code == 2
    return ended.error.replace(str(place.folder), ".")


@attack("to make a command run for ever by a file of a few kilobytes")
def a_store_whose_tree_repeats_a_page(place: Place) -> str:
    events = [(0, started()), (1, PLANNED), (1, executed(1)), (1, ShardEnded(at=STARTED + 9))]
    said = []
    for name, key, root in (
        ("below", b"\xff" * 9, 0),  # -1
        ("above", b"\x7f", 0),
        ("schema", b"\x7f", 1),
    ):
        folder = store(place, *events, folder=name)
        tree_of_one_page(folder / DATABASE, 8, key, root=root)
        for command in (("reproduce",), ("run", "--tests", "0", "--resume")):
            said.append(place.run(*command, name, within_s=10))
    return f"exit codes {[each.code for each in said]}: {said[-1].error}"


@attack("to keep a reader busy for hours by a store of some megabytes")
def a_store_whose_events_end_what_others_began(place: Place) -> str:
    """Thousands of reductions that never end, of shards that do, and of looks at the progress."""
    number = 20_000
    where: dict[str, Any] = {"executor": "native", "configuration": "controlled"}
    events: list[tuple[int, AnyEvent]] = [(0, started()), (1, PLANNED)]
    for n in range(number):
        shard = n + 2
        events += [
            (1, ReductionStarted(at=STARTED + n, index=n, **where)),
            (shard, ShardPlanned(at=STARTED, configurations={})),
            (shard, ShardEnded(at=STARTED)),
            (shard, executed(n, configuration=f"c{n}")),
            (0, Progress(at=STARTED + n, spent_s=float(n))),
        ]
    folder = store(place, *events)
    size = (folder / DATABASE).stat().st_size / (1 << 20)
    ended = place.run("reproduce", folder, within_s=2 * size)
    return f"exit {ended.code} after {ended.seconds:.1f} s for {size:.0f} MiB"


@attack("to keep a report from being written by names that are all different")
def a_report_with_a_row_for_each_graph(place: Place) -> str:
    """Configurations, families, and the ops of workers' deaths."""
    died: dict[str, Any] = {"kind": FindingKind.CRASHED, "executor": "native"}
    died |= {"configuration": "controlled", "executor_class": "x", "message": "signal 11"}
    died |= {"entry": dumps(replace(load(paths()["SB"]), finding=None))}
    events: list[tuple[int, AnyEvent]] = [(0, started()), (1, PLANNED)]
    events += [(1, executed(n, configuration=f"c{n}", family=f"f{n}")) for n in range(3_000)]
    for n in range(1_000):
        file, ops = f"crashed/{n}.yaml", (f"op{n}", f"op{n + 1}")
        events.append((1, WorkerDied(at=STARTED + n, file=file, ops=ops, **died)))
    folder = store(place, *events)
    ended = place.run("run", "--resume", folder, "--tests", "0", "--time", "1s", within_s=25)
    assert (folder / "report.html").exists()
    return f"exit {ended.code} after {ended.seconds:.1f} s"


@attack("to start thousands of processes")
def a_campaign_that_asks_for_all_workers_that_there_can_be(place: Place) -> str:
    folder = store(place, (0, started(workers=4096, asked_s=1.0)))
    ended = place.run("run", "--resume", folder, "--time", "1s", within_s=25)
    assert ended.code == 2, f"it ran: exit {ended.code}"
    return ended.error.replace(str(place.folder), ".")


@attack("to have each later report grow for ever")
def a_neighbour_that_claims_a_million_earlier_runs(place: Place) -> str:
    line = {"started": 1, "graphs": 1, "outcomes": 1, "findings": 0, "new": 0}
    line |= {"mutation_score": None, "mutants": 0}
    many = [{**line, "campaign": f"{n}", "name": "x" * 200} for n in range(60_000)]
    made = {"started": 1, "ended": 2, "graphs": 1, "outcomes": 1, "new": [], "findings": []}
    made |= {"mutation_score": None, "kills": [], "unattended": True, "earlier": many}
    place.write("runs/0/report.json", json.dumps(made))
    ended = place.run("nightly", "--executors", "native", "--time", "1s", "--out", "runs/1")
    size = (place.folder / "runs/1/report.json").stat().st_size
    assert size < 4 << 20, f"report.json has {size:,} bytes"
    return f"exit {ended.code}, report.json has {size:,} bytes: {ended.error}"


@attack("to be listed with a million lines, or to crash who lists them")
def a_stats_file_full_of_numbers_that_are_none(place: Place) -> str:
    values = ["nan", "inf", "-inf", "1e999", "9" * 5000, "-1", "1e17", "0x10", "1_0", "٣"]
    said = []
    for value in values:
        keys = ("start_time", "last_update", "run_time", "graphs", "graphs_per_s", "disk_bytes")
        keys += ("configurations", "not_reached", "new_findings", "mutants", "mutation_score")
        keys += ("undecided", "lost_shards", "outcomes", "cannot_run_here", "new_1", "findings")
        text = "state : runs\n" + "".join(f"{key} : {value}\n" for key in keys)
        place.write("c/stats", text)
        said.append(place.run("status", "c", "c").code)
    return f"exit codes {said}"


# --- to mislead, or to end in a traceback ----------------------------------------------


@attack("a traceback")
def a_shard_of_configurations_that_nobody_asked_for(place: Place) -> str:
    said = []
    for number, configurations in enumerate(({"native": ("none",)}, {"native": ()}, {"x": ("y",)})):
        planned = ShardPlanned(at=STARTED, configurations=configurations)
        events = [(0, started(unattended=True, asked_s=20.0)), (1, planned)]
        store(place, *events, (1, ShardEnded(at=STARTED + 1, seconds=1.0)), folder=f"c{number}")
        ended = place.run("nightly", "--resume", f"c{number}", "--time", "5s")
        said.append(ended.error or f"exit {ended.code}")
    return said[0]


@attack("a traceback")
def a_test_that_was_not_run_and_never_generated(place: Place) -> str:
    missed = NotRun(at=STARTED + 5, index=5, executor="native", configuration="controlled")
    ended_shard = ShardEnded(at=STARTED + 9, seconds=1.0)
    events = [(0, started(tests=9)), (1, PLANNED), (1, missed), (1, ended_shard)]
    folder = store(place, *events)
    ended = place.run("run", "--resume", folder, "--tests", "1")
    return ended.error.replace(str(place.folder), ".") or f"exit {ended.code}"


def honest(place: Place, name: str) -> Path:
    """A campaign that really ran."""
    given = ("--executors", "native", "--families", "dag", "--tests", "6", "--seed", "3")
    place.run("run", *given, "--out", name)
    return place.folder / name


def edit(folder: Path, change: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        db.execute(change, values)


@attack("to have `reproduce` say that all is the same, when one test differs")
def an_event_that_only_some_readers_see(place: Place) -> str:
    """The same JSON with its fields in another order."""
    folder = honest(place, "c")
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        query = 'SELECT number, data FROM events WHERE data LIKE \'{"event":"Executed"%\''
        number, data = db.execute(query).fetchone()
        event = json.loads(data) | {"sha256": "0" * 64}
        kind = event.pop("event")
        changed = json.dumps({**event, "event": kind})
        db.execute("UPDATE events SET data = ? WHERE number = ?", (changed, number))
    ended = place.run("reproduce", "c")
    assert ended.code == 2, ended.out
    return ended.error or ended.out.splitlines()[0]


@attack("to show tests to one reader and to hide them from the other")
def events_that_are_numbered_below_the_first(place: Place) -> str:
    """The report counts those above 0; `reproduce` takes all."""
    folder = honest(place, "c")
    edit(folder, 'UPDATE events SET number = -number WHERE data LIKE \'{"event":"Executed"%\'')
    ended = place.run("reproduce", "c")
    assert ended.code == 2, ended.out
    return ended.error


@attack("to have a mutant count as reported that was not")
def a_second_result_of_a_mutant(place: Place) -> str:
    selftest = ShardPlanned(at=STARTED, configurations={"selftest": ()})
    missed = Kill("mutant/torn-write", "native", None, 99)
    killed = replace(missed, seconds=0.1, family="dag", setup="controlled")
    events: list[tuple[int, AnyEvent]] = [
        (0, started(unattended=True, selftest_s=1.0)),
        (1, selftest),
        (1, MutantRun(at=STARTED + 1, kill=missed)),
        (1, MutantRun(at=STARTED + 2, kill=killed)),
        (1, ShardEnded(at=STARTED + 3, seconds=2.0)),
        (2, PLANNED),
        (2, executed(1)),
        (2, CanaryRun(at=STARTED + 1, reported=True)),
        (2, ShardEnded(at=STARTED + 3, seconds=2.0)),
        (0, CampaignEnded(at=STARTED + 4, spent_s=3.0)),
    ]
    folder = store(place, *events)
    ended = place.run("nightly", "--resume", folder)
    assert ended.code == 2, f"exit {ended.code}: {ended.out[-200:]}"
    return ended.error.replace(str(place.folder), ".")


@attack("to have a configuration of a stranger's called tested, when it never ran")
def a_campaign_without_configurations(place: Place) -> str:
    ended_one = CampaignEnded(at=STARTED + 9, spent_s=3.0)
    canary = CanaryRun(at=STARTED + 1, reported=True)
    done = ShardEnded(at=STARTED + 3, seconds=2.0)
    planned = ShardPlanned(at=STARTED, configurations={})
    nothing = CampaignStarted(command="run", seed=1, asked_s=1.0, configurations=(), min_graphs=0)
    events: list[tuple[int, AnyEvent]] = [(0, nothing), (1, planned), (1, canary), (1, done)]
    store(place, *events, (0, ended_one))
    said = [place.run("run", "--resume", "c", *more).code for more in ((), ("--tests", "0"))]
    assert 0 not in said, said
    return f"exit codes {said}"


@attack("to have a finding's only file pruned")
def a_neighbour_that_claims_to_have_seen_a_finding_first(place: Place) -> str:
    """A pruned run keeps the files of what no run before it had; that run has no file of it."""
    seed = ("--seed", "1", "--executors", STALE, "--count", "64", "--families", "dag")
    place.run("nightly", *seed, "--time", "6s", "--out", "runs/1", codes=(1,))
    files = {each.name for each in (place.folder / "runs/1/findings").glob("*.yaml")}
    report = json.loads((place.folder / "runs/1/report.json").read_text())
    keys = [each["key"] for each in report["findings"] if each["kind"] == "forbidden"]
    assert files, "nothing was found"
    seen = {"in_this_run": 1, "first_seen": 1, "file": "findings/none.yaml"}
    made = {"started": 1, "ended": 2, "graphs": 1, "outcomes": 1, "new": keys, "number": 0}
    made |= {"mutation_score": None, "kills": [], "campaign": "0-0.0"}
    made |= {"findings": [{"key": key, **seen} for key in keys]}
    place.write("runs/0/report.json", json.dumps(made))
    place.run(
        *("nightly", "--executors", "native", "--time", "1s", "--keep", "1", "--out", "runs/2")
    )
    left = {each.name for each in (place.folder / "runs").glob("*/findings/*.yaml")}
    files = {each.replace("-shard2", "") for each in files}  # one finding of two shards
    assert files <= {each.replace("-shard2", "") for each in left}, f"lost {sorted(files - left)}"
    return f"{len(files)} files of findings are kept"


HOSTILE = "x\x1b[2J\u202e<script>alert(1)</script>](http://x)\n::error::`$(touch was-run)`\ud7ff"


@attack("to reach a terminal, a page or a parser by the texts of events")
def events_whose_texts_are_commands(place: Place) -> str:
    text = HOSTILE
    died = WorkerDied(
        at=STARTED + 4,
        kind=FindingKind.CRASHED,
        executor="native",
        configuration="controlled",
        executor_class=text,
        message=text,
        file="crashed/1.yaml",
        entry=dumps(replace(load(paths()["SB"]), finding=None)),
        ops=(text,),
    )
    where = {"executor": "native", "configuration": "controlled"}
    host = ShardStarted(at=STARTED, host=text, pid=1, versions={text: {text: text}})
    missing = ConfigurationUnavailable(at=STARTED + 1, **where, why=text)
    events: list[tuple[int, AnyEvent]] = [
        (0, started(command=text)),
        (1, PLANNED),
        (1, host),
        (1, missing),
        (1, executed(1, counters={text: 1.0}, end=f"refused: {text}", parent=text)),
        (1, died),
        (1, ShardEnded(at=STARTED + 9, seconds=1.0, problem=text)),
        (0, Problem(at=STARTED + 9, message=text)),
    ]
    folder = store(place, *events)
    ended = place.run("run", "--resume", folder, "--tests", "0", "--time", "1s")
    place.run("status", folder)
    if ended.code == 2 and not (folder / "report.html").exists():
        return ended.error[:200]
    for name in ("report.html", "summary.md", "stats", "junit.xml"):
        made = (folder / name).read_text()
        assert "\x1b" not in made, name
        assert "\u202e" not in made, name
        assert name in ("stats", "junit.xml") or "<script>alert" not in made, name
    ET.parse(folder / "junit.xml")  # noqa: S314 - our own
    assert not was_run(place)
    return f"exit {ended.code}: {ended.error[:100]!r}"


@attack("to run a command by the name of a campaign's folder")
def a_folder_whose_name_is_a_command(place: Place) -> str:
    name = "c'; touch was-run; #\x1b[2J"
    given = ("--executors", STALE, "--tests", "30", "--seed", "1", "--families", "dag")
    ended = place.run("run", *given, "--out", name)
    report = json.loads((place.folder / name / "report.json").read_text())
    commands = [each["replay"] for each in report["findings"]]
    assert commands
    for command in commands[:1]:
        inner = subprocess.run(
            [BASH, "-c", command.replace("litmusfuzz", ":", 1)], cwd=place.folder, check=False
        )
        assert inner.returncode == 0, command
    place.run("status", name)
    assert not was_run(place)
    return f"exit {ended.code}, {len(commands)} replay commands are quoted"


@attack("to have a report lost by a folder in the place of a file")
def folders_in_the_place_of_reports(place: Place) -> str:
    for name in ("report.json", "stats", "junit.xml", "report.html/x"):
        (place.folder / "c" / name).mkdir(parents=True)
    ended = place.run("run", "--executors", "native", "--time", "1s", "--out", "c")
    assert ended.code == 2
    assert (place.folder / "c" / "summary.md").is_file()
    return ended.error


@attack("a campaign that seems to have run, but whose store could not grow")
def a_limit_on_the_size_of_files(place: Place) -> str:
    limited = "ulimit -f 200; exec litmusfuzz run --executors native --time 8s --seed 1 --out c"
    env = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin"}
    ended = place.run("-c", limited, program=BASH, env=env)
    assert ended.code == 2, f"exit {ended.code}: {ended.out[-300:]}"
    return ended.error


@attack("a campaign that hangs or leaves processes when it may open few files")
def a_limit_on_open_files(place: Place) -> str:
    said = []
    env = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin"}
    for number in (12, 20, 28):
        limited = (
            f"ulimit -n {number}; exec litmusfuzz run --executors native --time 1s --out c{number}"
        )
        said.append(place.run("-c", limited, program=BASH, env=env, within_s=20))
    assert all(each.code for each in said if "graphs" not in each.out), said
    return "; ".join(f"exit {each.code}: {each.error[:80]}" for each in said)
