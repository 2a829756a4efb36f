"""`run` and `nightly` leave the same record: the same events give the same report either way."""

from __future__ import annotations

import json
import re
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from campaign.running import Running
from campaign.shards import STALE

from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.shard_log import ShardLog
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import ShardPlanned
from litmusfuzz.reports.outputs import as_json

if TYPE_CHECKING:
    from pathlib import Path

    from litmusfuzz.reports.events import Event

COMMON = (
    *("--executors", f"native:plain,{STALE}", "--families", "dag,sections"),
    *("--seed", "3", "--count", "64", "--time", "20m"),
)
FOLDERS = ("findings", "unreduced", "unconfirmed", "crashed", "timed-out")


@pytest.fixture(scope="module", params=["run", "nightly"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small campaign of either command: of so many tests, or ended when it has found enough."""
    folder = tmp_path_factory.mktemp(request.param) / "first"
    counted = ("--tests", "24") if request.param == "run" else ()
    running = Running(folder, request.param, *COMMON, *counted, "--out", "first", cwd=folder.parent)
    if not counted:
        running.wait(is_enough)
    code, _, errors = running.end(*([] if counted else [signal.SIGTERM]))
    assert code == 1, errors
    return folder


def is_enough(store: Store) -> bool:
    """True if it has a finding with a cycle, and events to spare."""
    if len(list(store.events())) < 100:
        return False
    found = ReportBuilder(store, KnownFindings()).build().findings
    return any(each.is_cycle for each in found)


def report(folder: Path) -> str:
    """The report, but for the name of its folder."""
    with Store(folder, write=False) as store:
        built = as_json(ReportBuilder(store, KnownFindings()).build())
    return json.dumps(built, indent=1).replace(str(folder), "FOLDER")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in FOLDERS
        for path in (folder / name).glob("*")
    }


def events_in(folder: Path) -> list[tuple[int, Event]]:
    with Store(folder, write=False) as store:
        return list(store.events())


def copy_files(source: Path, target: Path) -> None:
    """Write the files that events name."""
    for name in FOLDERS:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)


def append(events: list[tuple[int, Event]], source: Path, target: Path) -> None:
    """Write events as `run` does: each when it happens, from this process."""
    copy_files(source, target)
    with Store(target, write=True) as store:
        for shard, event in events:
            store.append(shard, event)
        for number in {shard for shard, _ in events if shard}:
            store.finish_shard(number)
        store.remove_stale()  # each file is named


def ingest(events: list[tuple[int, Event]], source: Path, target: Path) -> None:
    """Write events as `nightly` does: those of shards to their logs, ingested now and then."""
    copy_files(source, target)
    with Store(target, write=True) as store:
        logs: dict[int, ShardLog] = {}
        last = 0
        for shard, event in events:
            if shard != last and last in logs:
                store.ingest(last)  # so that the order of the events stays
            last = shard
            if not shard or isinstance(event, ShardPlanned):
                store.append(shard, event)
                continue
            if shard not in logs:
                logs[shard] = ShardLog(store.log_folder(shard))
            logs[shard].write((event,))
        for shard, log in logs.items():
            log.__exit__()
            store.finish_shard(shard)
        store.remove_stale()


def test_the_picture_has_the_cycle_that_forbids_the_outcome(folder: Path) -> None:
    data = json.loads((folder / "report.json").read_text())
    cards = (folder / "report.html").read_text().split('<details class="finding')[1:]
    cycles = [each for each in data["findings"] if each["is_cycle"]]
    assert cycles
    for each in cycles:
        assert len(each["arcs"]) == len(each["reason"]) > 1
        (card,) = (card for card in cards if f"<code>{each['key']}</code>" in card)
        numbers = ",".join(re.findall(r'<g class="no">.*?>([\d,]+)</text>', card)).split(",")
        assert sorted(map(int, numbers)) == list(range(1, len(each["arcs"]) + 1))
        assert card.count(' cycle" d="M') == len({tuple(arc) for arc in each["arcs"]})


@pytest.mark.parametrize("way", [append, ingest])
def test_the_same_events_give_the_same_report(folder: Path, tmp_path: Path, way: Any) -> None:
    events = events_in(folder)
    assert len(events) > 50
    second = tmp_path / "elsewhere" / "second"  # not beside it: reports count earlier campaigns
    way(events, folder, second)
    assert report(second) == report(folder)
    assert files(second) == files(folder)
    assert sorted(events_in(second), key=str) == sorted(events, key=str)
    written = json.loads((folder / "report.json").read_text())
    assert written["folder"] == "first"
    # Commands to replay name the folder.
    elsewhere = {"folder": "", "findings": [], "open_tests": []}
    assert written | elsewhere == json.loads(report(folder)) | elsewhere
