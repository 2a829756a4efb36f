"""Whole campaigns in processes of their own: ended, killed and resumed ones.

They run a mutant that needs no framework. Tests wait for a state of the store, never for a time.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from campaign.running import Running
from campaign.shards import STALE, begun
from helpers import LITMUS, share_of
from helpers_figures import Figures

from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import dumps, load, loads, save
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.nightly.shard_settings import TESTS_PER_FAMILY
from litmusfuzz.fuzz.nightly.single import SingleShard
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    CampaignEnded,
    CampaignResumed,
    CampaignStarted,
    Configured,
    Executed,
    FindingAdded,
    FindingKind,
    Generated,
    Progress,
    ScriptRun,
    ShardPlanned,
    ShardStarted,
    WorkerDied,
)
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Command

COMMON = ("--executors", STALE, "--families", "dag", "--count", "64", "--seed", "7")
LONG = ("--time", "20m")
"""Far longer than a campaign of a few tests needs beside other work."""


def check(folder: Path) -> None:
    """Nothing is lost, nothing is double."""
    with Store(folder, write=False) as store:
        executed = list(store.events_of(Executed))
        generated = {event.index: shard for shard, event in store.events_of(Generated)}
        report = store.fold.report(str(folder))
        added = [event for _, event in store.events_of(FindingAdded)]
        files = [
            (shard, file)
            for shard, event in store.events()
            if (file := getattr(event, "file", None) or getattr(event, "unreduced", None))
        ]
    indices = [event.index for _, event in executed]
    assert len(set(indices)) == len(indices)
    assert set(indices) <= set(generated)
    assert sum(share.graphs for share in report.by_config) == len(executed)
    assert report.generated == len(generated)
    forbidden = [event for _, event in executed if event.verdicts.get("forbidden")]
    assert all(event.unreduced for event in forbidden)
    for event in forbidden:
        assert (folder / str(event.unreduced)).is_file()
    # Each test that showed a forbidden outcome is explained, unconfirmed, or waits.
    explained = sum(each.in_this_run for each in report.findings)
    assert explained + len(report.unconfirmed) + len(report.pending) == len(forbidden)
    # Each file is named once, by the shard that wrote it.
    named = {file: shard for shard, file in files}
    assert len(named) == len(files)
    assert {file: shard_in(file) for file in named} == named
    assert all((folder / file).is_file() for file in named)
    # Shards that run at the same time may add the same finding: the report shows the first.
    first = {event.key: event.file for event in reversed(added)}
    assert {each.key: each.file for each in report.findings} == first
    # Numbers have no gaps, from that on with which a shard starts, or a run of so many tests.
    starts = {index // 32 // TESTS_PER_FAMILY * TESTS_PER_FAMILY for index in generated}
    for start in starts:
        numbers = {i // 32 for i in generated if start <= i // 32 < start + TESTS_PER_FAMILY}
        assert numbers == set(range(start, start + len(numbers)))


def shard_in(file: str) -> int:
    """The shard that a file's name tells."""
    found = re.search(r"-shard(\d+)$", Path(file).stem)
    return int(found[1]) if found else 1


def busy(store: Store) -> int | None:
    """The last shard that has tested something and goes on."""
    shards = store.fold.report(".").shards
    return max((s.number for s in shards if s.state == "running" and s.graphs > 2), default=None)


def with_finding(store: Store) -> bool:
    """Some shard runs, and there is a finding."""
    return bool(busy(store) and any(store.events_of(FindingAdded)))


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run ended by SIGTERM, resumed, robbed of a worker, killed, resumed, ended by Ctrl-C."""
    folder = tmp_path_factory.mktemp("runs") / "nightly"
    first = Running(
        folder,
        "nightly",
        *COMMON,
        *("--time", "20m", "--shard-time", "10m", "--workers", "2", "--out", str(folder)),
    )
    first.wait(with_finding)
    code, out, _ = first.end(signal.SIGTERM)
    assert code == 1
    assert re.search(r"\(interrupted after \d+ of 1,200 s\)", out)
    again = ("nightly", "--resume", str(folder), "--workers", "2")
    second = Running(folder, *again)
    second.wait(busy)
    with Store(folder, write=False) as store:
        number = busy(store)
        assert number is not None
        (victim,) = (e.pid for shard, e in store.events_of(ShardStarted) if shard == number)
    os.kill(victim, signal.SIGKILL)
    second.wait(lambda store: number not in store.running)
    second.wait(lambda store: (busy(store) or 0) > number)
    assert second.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with Store(folder, write=False) as store:
        last = store.next_shard - 1
    third = Running(folder, *again, "--time", "20m")
    third.wait(lambda store: (busy(store) or 0) > last)
    assert third.end(signal.SIGINT)[0] == 1
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run ended by SIGTERM, resumed, killed, resumed, ended by Ctrl-C."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    first = Running(folder, "run", *COMMON, "--time", "20m", "--out", str(folder))
    first.wait(with_finding)
    code, out, _ = first.end(signal.SIGTERM)
    assert code == 1
    assert re.search(r"\(interrupted after \d+ of 1,200 s\)", out)
    again = ("run", "--resume", str(folder))
    second = Running(folder, *again)
    second.wait(lambda store: busy(store) == 2)
    assert second.end(signal.SIGKILL)[0] == -signal.SIGKILL
    third = Running(folder, *again, "--time", "20m")
    third.wait(lambda store: busy(store) == 3)
    assert third.end(signal.SIGINT)[0] == 1
    return folder


@pytest.mark.parametrize("command", ["nightly", "run"])
def test_no_finding_is_lost_or_doubled_and_no_process_left(
    command: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(command)
    check(folder)
    with Store(folder, write=False) as store:
        assert not store.running
        ended = list(store.events_of(CampaignEnded))
        for_the_time_left, for_more = store.events_of(CampaignResumed)
        report = ReportBuilder(store, KnownFindings()).build()
    assert not list((folder / "shards").glob("*"))
    assert "lost" in {shard.state for shard in report.shards}
    assert [event.interrupted for _, event in ended] == [True, True]
    assert for_the_time_left[1].asked_s == pytest.approx(1200)
    assert for_more[1].asked_s > 1200
    assert report.interrupted
    assert not report.problem
    assert report.canary[0] == report.canary[1] > 0
    assert json.loads((folder / "report.json").read_text())["new"] == [e.key for e in report.new]
    for each in report.findings:
        assert Path(each.file).name in (folder / "summary.md").read_text()


@pytest.mark.parametrize("command", ["nightly", "run"])
def test_every_figure_of_its_report_a_second_way(
    command: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(command)
    with Store(folder, write=False) as store:
        figures = Figures(list(store.events()), str(folder))
        report = store.fold.report(str(folder))
    for each in fields(report):
        assert getattr(report, each.name) == figures.of(each.name), each.name


def test_the_time_of_a_run_stands_still_until_its_shard_has_started(run: Path) -> None:
    """Starting the frameworks does not count; so what was spent never decreases."""
    with Store(run, write=False) as store:
        stream = [event for _, event in store.events()]
    spent, started, waiting = 0.0, 0, True
    for event in stream:
        if isinstance(event, CampaignStarted | CampaignResumed):
            waiting = True
        elif isinstance(event, ShardStarted):
            waiting, started = False, started + 1
        elif isinstance(event, Progress | CampaignEnded):
            assert event.spent_s == spent if waiting else event.spent_s >= spent
            spent = event.spent_s
    assert started == 3


def ended_twice(folder: Path, command: str, *asked: str, wait: Callable[[Store], Any]) -> str:
    """A campaign that a second signal ended: its verdict, which all that it left agrees on.

    Both signals come while it is stopped, so that it has not ended when it sees the second.
    """
    running = Running(folder, command, *asked, "--time", "20m", "--out", str(folder))
    running.wait(wait)
    code, _, err = running.end(signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT)
    report = json.loads((folder / "report.json").read_text())
    verdict: str = report["verdict"]
    again = f"`litmusfuzz {command} --resume {folder}` continues"
    assert err == f"litmusfuzz: interrupted twice: {verdict}; {again}\n"
    assert code == report["exit_code"]
    assert report["interrupted"]
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert "refresh" not in page  # it does not go on reloading itself
    assert verdict in html.unescape(page)
    with Store(folder, write=True) as store:  # no other process writes
        assert store.running  # test_no_finding_is_lost... resumes such a campaign
        ((_, ended),) = store.events_of(CampaignEnded)
        assert ended.interrupted
        assert [each["key"] for each in report["findings"]] == [
            each.key for each in store.fold.report(str(folder)).findings
        ]
    return verdict


@pytest.mark.parametrize("command", share_of(["run", "nightly"], 2))
def test_a_second_signal_ends_it_at_once_with_what_was_found(tmp_path: Path, command: str) -> None:
    verdict = ended_twice(tmp_path / "campaign", command, *COMMON, wait=with_finding)
    assert re.fullmatch(
        r"\d+ new findings?( and .*)?; interrupted after [\d.]+ of 1,200 s", verdict
    )
    with Store(tmp_path / "campaign", write=False) as store:
        assert store.fold.report(str(tmp_path)).exit_code() == 1


@pytest.mark.parametrize("command", share_of(["nightly", "run"], 2))
def test_a_second_signal_ends_with_3_what_has_found_nothing(tmp_path: Path, command: str) -> None:
    asked = ("--executors", "native:plain", "--families", "dag", "--count", "64")
    verdict = ended_twice(tmp_path / "campaign", command, *asked, wait=busy)
    assert re.fullmatch(r"interrupted after [\d.]+ of 1,200 s: nothing new so far", verdict)
    with Store(tmp_path / "campaign", write=False) as store:
        assert store.fold.report(str(tmp_path)).exit_code() == 3


def test_the_page_of_a_campaign_whose_store_cannot_be_read_ends_as_well(tmp_path: Path) -> None:
    """A death whose test is none: the report of all the rest says what is wrong."""
    wrong = WorkerDied(
        kind=FindingKind.CRASHED,
        executor=STALE,
        configuration="plain",
        executor_class=STALE,
        message="signal 6",
        file="crashed/7.yaml",
        entry="no test",
        ops=(),
    )
    with begun(tmp_path) as store:
        store.append(1, ShardStarted(host="here", pid=7, versions={}), wrong)
        campaign = Idle(store, KnownFindings(), lambda _: None, time_s=1.0)
        report = campaign.run()
    assert report.exit_code() == 2
    assert "crashed/7.yaml" in report.problem
    page = (tmp_path / "report.html").read_text()
    assert "refresh" not in page
    assert html.escape(report.verdict, quote=False) in page
    assert json.loads((tmp_path / "report.json").read_text())["exit_code"] == 2


@pytest.mark.parametrize("command", share_of(["nightly", "run"], 2))
def test_a_campaign_that_is_interrupted_before_its_first_test_says_that_nothing_ran(
    tmp_path: Path, command: str
) -> None:
    """While it imports TensorFlow, which takes seconds."""
    folder = tmp_path / "campaign"
    running = Running(folder, command, "--executors", "tf", "--time", "20m", "--out", str(folder))
    running.wait(lambda store: any(store.events_of(ShardPlanned)))
    code, out, _ = running.end(signal.SIGINT)
    assert code == 3
    *_, asked, left_out, judged, verdict = out.splitlines()
    assert judged.startswith("judged by the model executor")
    assert asked.startswith("    asked for: 1,200 s; ")
    assert left_out == "    tf: 1 of 1 not reached (the campaign was interrupted): plain"
    assert re.fullmatch(r"interrupted after [\d.]+ of 1,200 s: nothing ran", verdict)
    assert json.loads((folder / "report.json").read_text())["exit_code"] == 3


def test_a_run_with_fewer_graphs_than_configurations_is_not_clean(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    asked = ("run", "--executors", "native:p*", "--families", "dag", "--count", "64", "--seed", "7")
    asked = (*asked, *LONG)
    done = litmusfuzz_here(*asked, "--tests", "1", "--out", "few")
    assert done.returncode == 3, done.stderr
    verdict = "nothing new, but 4 of 5 configurations were not reached"
    assert done.stdout.splitlines()[-1] == verdict
    assert "native: 4 of 5 not reached (no more than 1 graph asked for): " in done.stdout
    assert (
        litmusfuzz_here(*asked, "--tests", "1", "--out", "any", "--min-graphs", "0").returncode == 0
    )


def _change_one(folder: Path, changes: dict[str, str]) -> dict[str, Any]:
    """Change the first event of a run test; the event."""
    with Store(folder, write=True) as store:
        ((text, number),) = store.db.rows(
            "SELECT data, number FROM events"
            " WHERE json_extract(data, '$.event') = 'Executed' LIMIT 1"
        )
        event = json.loads(text) | changes
        data = json.dumps(event, separators=(",", ":"))
        store.db.execute("UPDATE events SET data = ? WHERE number = ?", (data, number))
    return event


@pytest.mark.parametrize("command", ["nightly", "run"])
def test_its_tests_are_reproduced_byte_for_byte(
    litmusfuzz_here: Command, tmp_path: Path, command: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(command)
    done = litmusfuzz_here("reproduce", str(folder), "--tests", "64", "--workers", "3", "--json")
    assert done.returncode == 0, done.stderr
    with Store(folder, write=False) as store:
        tests = len(list(store.events_of(Executed)))
        interruption = store.fold.report(str(folder)).interruption
    number = min(64, tests)
    assert json.loads(done.stdout) == {
        "tests": number,
        "equal": number,
        "different": [],
        "interruption": interruption,
    }
    assert interruption.startswith("interrupted after ")
    wrong = shutil.copytree(folder, tmp_path / "wrong")
    event = _change_one(wrong, {"sha256": "x"})
    done = litmusfuzz_here("reproduce", str(wrong), "--tests", "100000")
    assert done.returncode == 2
    assert f"differs: dag {event['index']}\n" in done.stdout
    assert re.fullmatch(rf"litmusfuzz: {wrong}: 1 of \d+ tests differ\n", done.stderr)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"variation": "lane"}, "no variation 'lane'"),
        ({"model": "x"}, "no model 'x'"),
        ({"variation": "lanes=9"}, "lanes must be 8192 to 1048576, got 9"),
    ],
)
def test_a_variation_that_is_not_one_is_refused_in_a_line(
    litmusfuzz_here: Command, tmp_path: Path, run: Path, wrong: dict[str, str], why: str
) -> None:
    _change_one(shutil.copytree(run, tmp_path / "wrong"), wrong)
    done = litmusfuzz_here("reproduce", "wrong", "--tests", "100000")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert why in done.stderr


def test_only_what_a_killed_process_may_have_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "findings"
    (folder / "of-mine").mkdir(parents=True)
    for name, at in (("mine.yaml", 999), ("left-by-it.yaml", 1001)):
        (folder / name).touch()
        os.utime(folder / name, (at, at))
    with Store(tmp_path, write=True) as store:
        store.append(1, ShardPlanned(at=1000.0, configurations={}))
        killed_since = store.unfinished_since
        store.finish_shard(1)
        store.remove_stale(store.unfinished_since)
        assert (folder / "left-by-it.yaml").exists()  # nothing runs now
        store.remove_stale(killed_since)
    assert {path.name for path in folder.iterdir()} == {"mine.yaml", "of-mine"}


class Idle(SingleShard):
    """Runs nothing."""

    def _run_shards(self) -> None:
        pass


def test_a_script_that_a_killed_process_has_not_written_is_there_after_a_resumption(
    tmp_path: Path,
) -> None:
    entry = load(LITMUS[0].parents[1] / "findings" / "scatter-beside-read.yaml")
    assert entry.finding is not None
    entry = replace(entry, finding=replace(entry.finding, script=None))
    path = tmp_path / "findings" / "a.yaml"
    save(entry, path)
    configured = Configured("tf", "plain", "rfc", "rfc", "tf/executor")
    same: dict[str, Any] = {"index": 64, "executor": "tf", "configuration": "plain"}
    shown = Executed(
        family="dag", model="rfc", run_seed=1, count=9, sha256="", verdicts={"forbidden": 9}, **same
    )
    found = FindingAdded(
        key="k", file="findings/a.yaml", entry=dumps(entry), executor_class="tf", cause="c", **same
    )
    with Store(tmp_path, write=True) as store:
        started = CampaignStarted(
            command="run", seed=1, asked_s=9.0, configurations=(configured,), tests=0
        )
        store.append(0, started)
        store.append(1, ShardPlanned(configurations={"tf": ("plain",)}), shown, found)
        for _ in range(2):  # the second writes nothing more
            store.append(0, CampaignResumed(asked_s=9.0, tests=0))
            report = Idle(store, KnownFindings(), lambda _: None, time_s=1.0).run()
            (each,) = report.findings
            assert (each.script, each.script_shows_it) == ("findings/a.py", False)
            compile((tmp_path / each.script).read_text(), each.script, "exec")
            assert load(path) == each.entry
            assert len(list(store.events_of(ScriptRun))) == 1


def test_a_run_continues_for_longer_or_only_minimizes(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    asked = (*COMMON, *LONG, "--tests", "12", "--out", "out")
    assert litmusfuzz_here("run", *asked).returncode == 1
    own = folder / "findings" / "notes.txt"
    own.write_text("keep this")
    (folder / "unreduced" / "looked-at").mkdir()
    again = litmusfuzz_here("run", "--resume", "out")  # for the time that is left
    assert again.returncode == 1, again.stderr
    assert own.exists()
    more = litmusfuzz_here("run", "--resume", "out", *LONG, "--tests", "6", "--json")
    assert more.returncode == 1, more.stderr
    report = json.loads(more.stdout)
    assert report == json.loads((folder / "report.json").read_text())
    assert report["generated"] == 18
    done = litmusfuzz_here("run", "--resume", "out", "--tests", "0", "--json")
    assert done.returncode == 1, done.stderr
    last = json.loads(done.stdout)
    assert (last["generated"], last["pending"], last["undecided"]) == (18, [], 0)
    assert [shard["state"] for shard in last["shards"]] == ["done"] * 4
    check(folder)


def test_a_campaign_continues_with_its_known_findings(
    litmusfuzz_here: Command, tmp_path: Path
) -> None:
    known = tmp_path / "known.yaml"
    assert litmusfuzz_here("run", *COMMON, *LONG, "--tests", "12", "--out", "first").returncode == 1
    added = litmusfuzz_here("known", "add", known.name, "--why", "a mutant", "first")
    assert added.returncode == 0, added.stderr
    # Only the tests after the first one show it.
    asked = (*COMMON, *LONG, "--tests", "1", "--known", known.name, "--out", "out")
    done = litmusfuzz_here("run", *asked, "--json")
    assert json.loads(done.stdout)["findings"] == []
    done = litmusfuzz_here("run", "--resume", "out", "--tests", "11", "--json")
    assert done.returncode == 0, done.stderr
    assert {each["known"] for each in json.loads(done.stdout)["findings"]} == {"a mutant"}
    elsewhere = known.rename(tmp_path / "elsewhere.yaml")
    done = litmusfuzz_here("run", "--resume", "out", "--tests", "0")
    assert done.returncode == 2
    assert done.stderr == (
        f"litmusfuzz: --resume: out: its known findings: {known}: No such file or directory; "
        "--known names another file\n"
    )
    done = litmusfuzz_here("run", "--resume", "out", "--tests", "0", "--known", elsewhere.name)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", share_of(["nightly", "run"], 2))
def test_a_campaign_whose_folder_is_removed_ends_with_its_report(
    tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "campaign"
    running = Running(folder, command, *COMMON, "--time", "20m", "--out", str(folder))
    running.wait(with_finding)
    folder.rename(tmp_path / "away")  # at once: shards would write into it meanwhile
    shutil.rmtree(tmp_path / "away", ignore_errors=True)
    code, out, err = running.end()
    assert code == 2
    (line,) = err.splitlines()
    problem = f"{folder}: was removed or renamed while the campaign ran"
    assert line.startswith(f"litmusfuzz: {problem}")
    report = json.loads((folder / "report.json").read_text())
    assert (report["exit_code"], report["ended"] is None) == (2, False)
    assert report["problem"].startswith(problem)
    assert report["findings"]
    for each in report["findings"]:
        assert load(folder / each["file"]) == loads(each["entry"])
    assert report["verdict"] in out
    with Store(folder, write=True) as store:  # the store is there again
        again = store.fold.report(str(folder))
    assert (again.graphs, again.ended) == (report["graphs"], report["ended"])
    assert {shard.state for shard in again.shards} <= {"done", "lost"}


def test_another_campaign_that_took_the_folder_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    begun(other).close()
    before = {path.name: path.read_bytes() for path in other.iterdir()}
    folder = tmp_path / "campaign"
    running = Running(folder, "run", *COMMON, "--time", "20m", "--out", str(folder))
    running.wait(busy)
    folder.rename(tmp_path / "away")
    other.rename(folder)
    code, out, _ = running.end()
    assert code == 2
    assert f"{folder}: was removed or renamed while the campaign ran" in out
    assert {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("command", "limit"), share_of([("run", 1 << 21), ("nightly", 1 << 19)], 2)
)
def test_a_full_disk_is_reported_in_one_line_with_all_that_was_stored(
    tmp_path: Path, command: str, limit: int
) -> None:
    """No file may be larger than the limit: soon the store's log of changes would be."""
    limited = (
        "import os, resource, sys;"
        f" resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    folder = tmp_path / "campaign"
    asked = (command, *COMMON, "--time", "20m", "--out", str(folder))
    done = subprocess.run(
        [sys.executable, "-c", limited, "-P", "-m", "litmusfuzz", *asked],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"litmusfuzz: {folder}/campaign.sqlite: disk I/O error")
    with Store(folder, write=False) as store:
        stored = store.fold.report(str(folder))
    assert stored.graphs > 0
    assert f": {counted(stored.generated, 'graph')} generated in " in done.stdout
    for each in stored.findings:
        assert each.entry.test.name in done.stdout
    report = json.loads((folder / "report.json").read_text())
    assert (report["exit_code"], f"litmusfuzz: {report['problem']}") == (2, line)
    # Resumed with more space, it has lost nothing.
    running = Running(folder, command, "--resume", str(folder))
    running.wait(lambda store: any(store.events_of(CampaignResumed)) and busy(store) is not None)
    running.end(signal.SIGTERM)
    check(folder)
