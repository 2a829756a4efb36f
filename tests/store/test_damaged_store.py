"""Damaged stores, and those that another program has written: one clear line, no traceback."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from campaign.shards import begun, run_until, shard
from helpers_events import (
    PLAIN,
    STARTED,
    RandomCampaign,
    added,
    died,
    finding_text,
    shown,
    started,
)
from msgspec.structs import replace

from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store.folder import DATABASE, StoreError
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.shard_log import EVENTS
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import (
    Confirmed,
    Executed,
    FindingAdded,
    Generated,
    ScriptRun,
    SeenAgain,
    ShardPlanned,
    Unconfirmed,
    encode,
)
from litmusfuzz.reports.outputs import as_json, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conftest import Command

    from litmusfuzz.reports.events import AnyEvent, Event

Lines = list[tuple[int, dict[str, Any]]]
KEY = "v3-0000000000000001"
WHERE: dict[str, Any] = {"at": STARTED + 9, "executor": "native", "configuration": "plain"}
BEGUN: tuple[tuple[int, AnyEvent], ...] = (
    (0, started(PLAIN)),
    (1, ShardPlanned(at=STARTED, configurations={"native": ("plain",)})),
)
FIRST = shown(1, 1.0)
FOUND = added(FIRST, KEY, "findings/a.yaml", at=STARTED + 2)
VARIANTS = 30
"""Of each of two campaigns; a thousand of each were looked at once."""


def written(folder: Path, lines: Sequence[tuple[int, bytes]]) -> Path:
    """A store with these events, whatever they say."""
    with Store(folder, write=True) as store:
        for number, (shard, line) in enumerate(lines, 1):
            store.db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?)", (number, shard, number, line.decode())
            )
    return folder


def encoded(events: Sequence[tuple[int, AnyEvent]]) -> list[tuple[int, bytes]]:
    return [(shard, encode(event)) for shard, event in events]


IMPOSSIBLE: dict[str, AnyEvent] = {
    "seen again without a test": SeenAgain(**WHERE, index=5, key=KEY),
    "confirmed without a test": Confirmed(**WHERE, index=5),
    "unconfirmed without a test": Unconfirmed(**WHERE, index=5, file="unconfirmed/5.yaml"),
    "finding without a test": FOUND,
    "script without a finding": ScriptRun(key=KEY, file="findings/a.yaml", shows_it=True),
    "suspect without a test": died(5.0, 5),
    "unknown file": ShardPlanned(configurations={"native": ("plain",)}, minimizes=("a.yaml",)),
    "unknown title": Generated(
        index=5, family="dag", executor="native", ops={}, lacking={"native/none": ("loops",)}
    ),
    "unknown title, not run": Generated(
        index=5, family="dag", executor="native", ops={}, not_run=("native/none",)
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_event_that_cannot_follow_is_named(tmp_path: Path, what: str) -> None:
    shard = 2 if isinstance(IMPOSSIBLE[what], ShardPlanned) else 1
    folder = written(tmp_path / "n", encoded([*BEGUN, (shard, IMPOSSIBLE[what])]))
    named = f"n/{DATABASE}: event 3: {type(IMPOSSIBLE[what]).__name__} contradicts"
    for write in (False, True):
        with pytest.raises(StoreError, match=named) as raised:
            Store(folder, write=write)
        assert "\n" not in str(raised.value)


def test_an_event_of_a_shard_that_belongs_to_none_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "n", encoded([*BEGUN, (0, FIRST)]))
    with pytest.raises(StoreError, match="event 3: Executed contradicts"):
        Store(folder, write=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": "no: test\n"},
        {"entry": ""},
        {"histogram": [[{"r9": 1}, 4, "forbidden"]]},
        {"histogram": [[7, 4, "forbidden"]]},
    ],
)
def test_a_finding_that_cannot_be_read_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    """When the store is opened, not when the report is made."""
    line = json.dumps(json.loads(encode(FOUND)) | changes).encode()
    folder = written(tmp_path / "n", [*encoded([*BEGUN, (1, FIRST)]), (1, line)])
    with pytest.raises(
        StoreError, match=r"event 4: (FindingAdded |findings/a\.yaml:1: )"
    ) as raised:
        Store(folder, write=False)
    assert "\n" not in str(raised.value)


def test_a_worker_death_whose_test_cannot_be_read_is_named_by_its_file(tmp_path: Path) -> None:
    folder = written(tmp_path / "n", encoded([*BEGUN, (1, died(5.0, entry="no: test\n"))]))
    with Store(folder, write=False) as store:
        builder = ReportBuilder(store, KnownFindings())
        with pytest.raises(StoreError, match=f"n/{DATABASE}: crashed/1.yaml:.*") as raised:
            builder.build()
    assert "\n" not in str(raised.value)


def test_commands_end_with_that_line(litmusfuzz_here: Command, tmp_path: Path) -> None:
    written(tmp_path / "n", encoded([*BEGUN, (1, IMPOSSIBLE["seen again without a test"])]))
    for command in (("run", "--resume", "n"), ("reproduce", "n")):
        done = litmusfuzz_here(*command)
        assert done.returncode == 2
        assert "event 3: SeenAgain contradicts" in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1


# --- copies ----------------------------------------------------------------------------


def test_a_second_run_of_a_test_is_refused(litmusfuzz: Command, tmp_path: Path) -> None:
    """It would count twice. Nothing is lost: without it the campaign is as it was."""
    lines = encoded([*BEGUN, (1, FIRST), (1, FOUND)])
    for second in (FIRST, replace(FIRST, at=STARTED + 9, sha256="1")):
        folder = written(tmp_path / "n", [*lines, (1, encode(second))])
        for command in (("run", "--resume", "n"), ("reproduce", "n")):
            done = litmusfuzz(*command)
            assert done.returncode == 2
            assert "event 5: Executed contradicts" in done.stderr
            assert "native/plain has run test 1 already" in done.stderr
            assert len(done.stderr.splitlines()) == 1
        with sqlite3.connect(folder / DATABASE) as db:
            assert db.execute("SELECT count(*) FROM events").fetchone() == (5,)
            db.execute("DELETE FROM events WHERE number = 5")
        db.close()
        with Store(folder, write=False) as store:
            assert store.fold.report("").graphs == 1
        shutil.rmtree(folder)


def test_a_copied_line_of_a_shard_log_is_refused(tmp_path: Path) -> None:
    """The log stays as it is, and so does the store."""
    with Store(tmp_path / "n", write=True) as store:
        for number, event in BEGUN:
            store.append(number, event)
        log = store.log_folder(1)
        log.mkdir(parents=True)
        (log / EVENTS).write_bytes((encode(FIRST) + b"\n") * 2)
        with pytest.raises(StoreError, match="event 4: Executed contradicts"):
            store.finish_shard(1)
        assert (log / EVENTS).read_bytes() == (encode(FIRST) + b"\n") * 2
        assert store.fold.report("").graphs == 0


def test_a_copy_of_any_event_of_a_campaign_is_refused(
    real: tuple[Path, Lines], tmp_path: Path
) -> None:
    _, lines = real
    of_each_kind = {event["event"]: (number, event) for number, event in lines}
    assert len(of_each_kind) > 6
    data = [(number, json.dumps(event).encode()) for number, event in lines]
    for kind, (number, event) in of_each_kind.items():
        folder = written(tmp_path / kind, [*data, (number, json.dumps(event).encode())])
        with pytest.raises(StoreError, match=f"event {len(lines) + 1}: {kind} contradicts"):
            Store(folder, write=False)


# --- any damage ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"executor": "mutant/none"}, "no executor 'mutant/none'"),
        ({"name": "none"}, "native has no configuration 'none'"),
        ({"judge_by": "none"}, "no memory model 'none'"),
        ({"noise": "none=1"}, "no noise 'none'"),
    ],
)
@pytest.mark.parametrize("command", ["run", "nightly"])
def test_a_campaign_with_settings_that_are_unknown_here_is_not_resumed(
    litmusfuzz_here: Command, tmp_path: Path, changes: dict[str, str], why: str, command: str
) -> None:
    settings = json.loads(encode(started(PLAIN, unattended=command == "nightly")))
    (configured,) = settings["configurations"]
    for name, value in changes.items():
        (configured if name in configured else settings)[name] = value
    data = json.dumps(settings, separators=(",", ":")).encode()
    written(tmp_path / "n", [(0, data)])
    done = litmusfuzz_here(command, "--resume", "n", "--time", "1s")
    line = f"litmusfuzz: n/{DATABASE}: settings: {why}"
    assert (done.returncode, done.stderr[: len(line)]) == (2, line)
    assert done.stderr.count("\n") == 1


def drop(lines: Lines, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 4)):
        del lines[rng.randrange(len(lines))]


def duplicate(lines: Lines, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 4)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))


def permute(lines: Lines, rng: random.Random) -> None:
    start = rng.randrange(len(lines) - 1)
    part = lines[start : start + rng.randrange(2, 12)]
    rng.shuffle(part)
    lines[start : start + len(part)] = part


def change_a_shard(lines: Lines, rng: random.Random) -> None:
    place = rng.randrange(len(lines))
    lines[place] = rng.randrange(4), lines[place][1]


def change_a_field(lines: Lines, rng: random.Random) -> None:
    """To the value that another event has, or one that nothing has."""
    place = rng.randrange(len(lines))
    shard, event = lines[place]
    name = rng.choice([name for name in event if name != "event"])
    others = [other[name] for _, other in lines if name in other]
    odd: dict[type, list[Any]] = {
        int: [0, -1, 1 << 62],
        float: [0.0, -1e9, 1e308],
        str: ["", "x", "../../x", "a\nb", "\0", "native"],
        dict: [{}, {"x": 1}, {"x": ["y"]}],
        list: [[], ["x"], [[1, "x"]]],
    }
    value = rng.choice([*others[:20], *odd.get(type(event[name]), []), None])
    lines[place] = shard, {**event, name: value}


DAMAGES: tuple[Callable[[Lines, random.Random], None], ...] = (
    drop,
    duplicate,
    permute,
    change_a_shard,
    change_a_field,
    change_a_field,
    change_a_field,
)


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lines]:
    """The folder of a small campaign with every kind of event, and its events."""
    folder = tmp_path_factory.mktemp("campaign")
    stream = RandomCampaign(11).run(80)
    for _, event in stream:
        file = getattr(event, "unreduced", None) or getattr(event, "file", None)
        if file:
            text = getattr(event, "entry", "")
            if isinstance(event, Executed):
                of = (event.executor, event.configuration, event.family, event.index)
                text = finding_text("MP", *of, "u.yaml")
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return folder, [(shard, json.loads(encode(event))) for shard, event in stream]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lines]:
    """The folder of a campaign that a mutant has run in, and its events."""
    folder = tmp_path_factory.mktemp("campaign")

    def enough(events: Sequence[Event]) -> bool:
        return {FindingAdded, SeenAgain} <= {type(event) for event in events}

    run_until(shard(folder), enough)
    with begun(folder) as store:
        store.finish_shard(1)
        lines = [(number, json.loads(encode(event))) for number, event in store.events()]
    (folder / DATABASE).unlink()
    return folder, lines


@pytest.mark.parametrize("which", ["every_kind", "real"])
def test_any_damage_is_reported_in_one_line_or_harms_no_report(
    which: str, request: pytest.FixtureRequest
) -> None:
    """Each variant opens and gives a report, or one error that names the database."""
    campaign: tuple[Path, Lines] = request.getfixturevalue(which)
    folder, original = campaign
    assert len(original) > 20
    refused = []
    for seed in range(VARIANTS):
        rng = random.Random(seed)
        lines = list(original)
        for _ in range(rng.randrange(1, 5)):
            rng.choice(DAMAGES)(lines, rng)
        variant = folder / str(seed)
        variant.mkdir()
        written(variant, [(shard, json.dumps(event).encode()) for shard, event in lines])
        for name in ("findings", "unreduced", "unconfirmed", "crashed"):
            (variant / name).symlink_to(folder / name)
        try:
            with Store(variant, write=False) as store:
                report = ReportBuilder(store, KnownFindings()).build()
        except StoreError as error:
            refused.append(str(error))
            continue
        as_json(report)
        if seed % 10 == 0:
            write_all(report, variant)
    for each in refused:
        assert re.match(rf"{re.escape(str(folder))}/\d+/{DATABASE}: ", each), each
        assert "\n" not in each
    if which == "every_kind":  # the real campaign is as long as the machine is fast
        # Both ends are common, so that the test says something about both.
        assert VARIANTS / 10 < len(refused) < 9 * VARIANTS / 10
