"""Old nightly runs are removed, and no finding, trend or other file with them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import WHOLE
from helpers_events import PLAIN, STARTED, added, executed, shown, started

from litmusfuzz.corpus.textfile import load
from litmusfuzz.fuzz.cli.campaigns import begin
from litmusfuzz.fuzz.finding.known_findings import KnownFindings
from litmusfuzz.fuzz.store import history
from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.fuzz.store.pruning import prune
from litmusfuzz.fuzz.store.report_builder import ReportBuilder
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import CampaignEnded, CanaryRun, ShardEnded, ShardPlanned
from litmusfuzz.reports.html.page import trends
from litmusfuzz.reports.outputs import FILES, JSON, STATS, as_json
from litmusfuzz.reports.stats import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command

    from litmusfuzz.reports.report import Pruned, Report

KEY, OTHER = "v3-0000000000000001", "v3-0000000000000002"
DAY_S = 86_400.0
KEEP = 3


def nightly_run(
    folder: Path,
    keep: int = KEEP,
    *,
    at: float = STARTED,
    seed: int = 1,
    graphs: int = 1,
    keys: tuple[str, ...] = (KEY,),
    ended: bool = True,
    interrupted: bool = False,
) -> tuple[Report, Pruned]:
    """A nightly run that finds these; its report, and what it pruned."""
    with Store(folder, write=True) as store:
        begin(store, started(PLAIN, at=at, seed=seed, unattended=True))
        store.append(1, ShardPlanned(at=at, configurations={"native": ("plain",)}))
        for index, key in enumerate(keys, 1):
            test = shown(index, at + 1 - STARTED)
            named = f"findings/{key}.yaml"
            event = added(test, key, named, at=at + 2, executor_class="native/rfc")
            for file in (str(test.unreduced), named):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_text(event.entry)
            store.append(1, test, event)
        for index in range(100, 100 + graphs):
            store.append(1, executed(index, at - STARTED))
        store.append(1, CanaryRun(at=at, reported=True), ShardEnded(at=at, seconds=1.0))
        if ended:
            store.append(0, CampaignEnded(at=at + 9, spent_s=9.0, interrupted=interrupted))
        builder = ReportBuilder(store, KnownFindings())
        report = builder.build()
        if ended:  # what `write_all` writes, but for what takes long to make
            made = dict.fromkeys(FILES, "x") | {STATS: text(report)}
            made[JSON] = json.dumps(as_json(report))
            for name, content in made.items():
                (folder / name).write_text(content)
        return report, prune(builder.history, keep)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def disk_bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, if there is one: a year of runs takes thousands of writes."""
    shared = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder)


def test_a_year_of_runs_stays_within_its_bound(memory: Path) -> None:
    """A finding that every run sees, and one that is new in every thirtieth.

    In ``make test`` a year has 130 days: a day takes longer the more are before it.
    """
    year = 365 if os.environ.get(WHOLE) else 130
    new_on = range(10, year, 30)
    sizes = []
    for day in range(year):
        keys = (KEY, f"v3-{day:016x}") if day % 30 == 10 else (KEY,)
        report, pruned = nightly_run(
            memory / f"{day:03}", at=STARTED + DAY_S * day, seed=day, graphs=day % 3, keys=keys
        )
        assert pruned.folders == ((f"{day - KEEP:03}",) if day >= KEEP else ())
        assert not pruned.left
        sizes.append(disk_bytes(memory / f"{day:03}"))
    assert [path.parent.name for path in sorted(memory.glob(f"*/{DATABASE}"))] == [
        f"{day:03}" for day in range(year - KEEP, year)
    ]
    # Of a pruned run: its folder and `stats`, and the finding that was new in it.
    stub = 3 * 4096
    new = disk_bytes(memory / "010") - disk_bytes(memory / "011")
    assert disk_bytes(memory) <= KEEP * max(sizes) + year * stub + (1 + len(new_on)) * new
    # Trends and sightings are those of all runs.
    assert [each.number for each in report.earlier] == [*range(1, year)]
    assert [each.started for each in report.earlier] == [
        int(STARTED + DAY_S * day) for day in range(year - 1)
    ]
    (graphs, *_, news) = trends(report)
    assert graphs.values == tuple(day % 3 + 1 + (day % 30 == 10) for day in range(year))
    assert sum(news.values) == year + len(new_on)
    (found,) = report.findings
    assert (found.count, found.first_seen) == (year, int(STARTED) + 2)
    # Each finding is left once, where it was new, and can still be loaded.
    left = sorted(str(path.relative_to(memory)) for path in memory.glob("*/findings/*"))
    first = [f"{day:03}/findings/v3-{day:016x}.yaml" for day in new_on]
    kept = [f"{day:03}/findings/{KEY}.yaml" for day in (0, *range(year - KEEP, year))]
    assert left == sorted([*first, *kept])
    assert load(memory / left[0]).finding is not None
    assert files(memory / "011") == {STATS}


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path) -> None:
    """The second of four runs is a day before the first, by its clock."""
    for number, days in enumerate((0, -1, 2, 1)):
        keys = (KEY,) if number else (KEY, OTHER)
        report, pruned = nightly_run(
            tmp_path / f"{9 - number}", 3, at=STARTED + DAY_S * days, graphs=number, keys=keys
        )
    assert pruned.folders == ("9",)
    assert [(each.name, each.number) for each in report.earlier] == [("9", 1), ("8", 2), ("7", 3)]
    assert [each.graphs for each in report.earlier] == [2, 2, 3]
    (found,) = report.findings
    assert (found.count, found.first_seen) == (4, int(STARTED) + 2)
    assert found.last_seen == int(STARTED + DAY_S) + 2
    assert "findings/v3-0000000000000002.yaml" in files(tmp_path / "9")


def _link(folder: Path) -> None:
    folder.rename(folder.parent.parent / "elsewhere")
    folder.symlink_to(folder.parent.parent / "elsewhere")


def _link_inside(folder: Path) -> None:
    shutil.rmtree(folder / "unreduced")
    (folder / "unreduced").symlink_to(folder.parent.parent)


def _foreign(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def _foreign_test(folder: Path) -> None:
    shutil.copy(folder / f"findings/{KEY}.yaml", folder / "unreduced/mine.yaml")


def _foreign_folder(folder: Path) -> None:
    (folder / "findings/mine").mkdir()


def _log(folder: Path) -> None:
    (folder / "shards/3").mkdir(parents=True)


def _other_store(folder: Path) -> None:
    nightly_run(folder.parent.parent / "other", seed=77)
    shutil.copy(folder.parent.parent / "other" / DATABASE, folder / DATABASE)


def _no_store(folder: Path) -> None:
    (folder / DATABASE).unlink()


def _of_run(folder: Path) -> None:
    data = json.loads((folder / JSON).read_text())
    (folder / JSON).write_text(json.dumps(data | {"unattended": False}))


def _damaged(folder: Path) -> None:
    nightly_run(folder.parent / "0", 0, seed=9)
    (folder / JSON).write_text("{")


LEFT: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "link": (_link, "is a link"),
    "link inside": (_link_inside, "holds 'unreduced', which no campaign has written"),
    "foreign file": (_foreign, "holds 'notes.txt', which no campaign has written"),
    "foreign test": (_foreign_test, "holds 'unreduced/mine.yaml', which no campaign has written"),
    "foreign folder": (_foreign_folder, "holds 'findings/mine', which no campaign has written"),
    "shard log": (_log, "holds 'shards/3', which no campaign has written"),
    "another store": (_other_store, "its report is of another run, or was changed"),
    "no store": (_no_store, f"has no {DATABASE}"),
    "campaign of run": (_of_run, None),
    "damaged report": (_damaged, None),
}


@pytest.mark.parametrize("what", LEFT)
def test_a_folder_that_may_be_needed_is_left_as_it_is(tmp_path: Path, what: str) -> None:
    change, why = LEFT[what]
    beside = tmp_path / "runs"
    nightly_run(beside / "1", seed=1)
    change(beside / "1")
    before = files(tmp_path)
    _, pruned = nightly_run(beside / "2", 1, seed=2)
    assert not pruned.folders
    assert dict(pruned.left) == ({} if why is None else {"1": why})
    assert files(tmp_path) - {f"runs/2/{name}" for name in files(beside / "2")} == before


def test_a_run_that_was_interrupted_or_is_written_is_left(tmp_path: Path) -> None:
    nightly_run(tmp_path / "1", seed=1, interrupted=True)
    nightly_run(tmp_path / "2", seed=2, ended=False)
    nightly_run(tmp_path / "3", seed=3)
    before = files(tmp_path)
    with (tmp_path / "3" / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _, pruned = nightly_run(tmp_path / "4", 1, seed=4)
    assert dict(pruned.left) == {
        "1": "was interrupted; --resume ends it",
        "3": "another process writes this campaign",
    }
    assert before <= files(tmp_path)
    assert pruned.lines == ("2 not pruned: 1: was interrupted; --resume ends it; and 1 more",)
    _, pruned = nightly_run(tmp_path / "5", 0, seed=5)
    assert not pruned.lines


def _killing(folder: Path, steps: int) -> Callable[..., None]:
    """`Path.unlink` in a process that is killed when it has removed so many files of a folder."""
    left, unlink = count(steps, -1), Path.unlink

    def kill(path: Path, **given: Any) -> None:
        if path.is_relative_to(folder) and next(left) == 0:
            raise KeyboardInterrupt
        unlink(path, **given)

    return kill


def test_a_run_that_is_partly_removed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the process has removed before it was killed."""
    whole = {"findings/v3-0000000000000001.yaml", STATS}
    for steps in range(12):
        beside = tmp_path / str(steps)
        nightly_run(beside / "1", seed=1)
        monkeypatch.setattr(Path, "unlink", _killing(beside / "1", steps))
        try:
            nightly_run(beside / "2", 1, seed=2)
        except KeyboardInterrupt:
            assert whole < files(beside / "1")
        monkeypatch.undo()
        report, pruned = nightly_run(beside / "3", 1, seed=3)
        assert not pruned.left
        assert files(beside / "1") == whole
        assert [each.number for each in report.earlier] == [1, 2]


def test_a_nightly_run_prunes_when_it_has_ended(
    litmusfuzz: Command, litmusfuzz_here: Command, tmp_path: Path
) -> None:
    nightly_run(tmp_path / "runs/1")
    given = ("--time", "1s", "--executors", "native", "--keep", "1", "--out", "runs/2")
    done = litmusfuzz("nightly", *given)
    assert "old runs: 1 pruned (1), 0.1 MB freed" in done.stdout
    assert files(tmp_path / "runs/1") == {STATS, f"findings/{KEY}.yaml"}
    folder = tmp_path / "runs/2"
    assert {*FILES, DATABASE} <= files(folder)
    report = json.loads((folder / JSON).read_text())
    assert report["pruned"]["folders"] == ["1"]
    assert [each["name"] for each in report["earlier"]] == ["1"]
    assert "1 pruned (1)" in (folder / "summary.md").read_text()
    shown = litmusfuzz_here("status", "runs/1", "runs/2")
    assert (shown.returncode, "runs/1" in shown.stdout) == (0, True)


def made_up(folder: Path, **changes: Any) -> None:
    """The report of a run that never was."""
    data = {"started": 1, "ended": 2, "graphs": 1, "outcomes": 1, "new": [], "findings": []}
    data |= {"mutation_score": None, "kills": [], "unattended": True, "campaign": "made up"}
    folder.mkdir()
    (folder / JSON).write_text(json.dumps(data | changes))


@pytest.mark.parametrize("later", [1, 2])
def test_the_only_file_of_a_finding_stays_whoever_claims_to_have_seen_it(
    tmp_path: Path, later: int
) -> None:
    """A run before claims it that has no file, or was deleted; it is pruned at once, or before."""
    made_up(tmp_path / "0", findings=[{"key": KEY, "in_this_run": 1, "first_seen": 1, "file": "x"}])
    for number in range(1, 2 + later):
        nightly_run(tmp_path / str(number), later, at=STARTED + DAY_S * number, seed=number)
    (tmp_path / "0" / JSON).unlink(missing_ok=True)
    for number in range(2 + later, 6):
        nightly_run(tmp_path / str(number), 1, at=STARTED + DAY_S * number, seed=number)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/findings/*"))
    assert left == [f"{number}/findings/{KEY}.yaml" for number in (1, 5)]


def test_reports_list_a_bounded_number_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {"started": 1, "graphs": 1, "outcomes": 1, "findings": 0, "new": 0, "mutants": 0}
    line |= {"mutation_score": None}
    for name, many in (("a", history.MAX_RUNS), ("b", history.MAX_RUNS), ("c", 5)):
        earlier = [{**line, "campaign": f"{name}{n}", "number": n} for n in range(many)]
        made_up(tmp_path / name, earlier=earlier, campaign=name, number=9_000)
    too_many = [{**line, "campaign": str(n)} for n in range(history.MAX_RUNS + 1)]
    for name, change in (
        ("d", {"earlier": too_many}),
        ("e", {"earlier": [{**line, "name": 256 * "x"}]}),
        ("f", {"campaign": 511 * "x"}),
    ):
        made_up(tmp_path / name, **change)
        (tmp_path / name / DATABASE).touch()
    monkeypatch.setattr(history, "MAX_SEEN", 7)
    with Store(tmp_path / "own", write=True) as store:
        begin(store, started(PLAIN, unattended=True))
        report = store.fold.report("own")
        made = history.History(tmp_path / "own", report)
        assert len(made.damaged) == 3
        assert len(made.earlier) == history.MAX_RUNS
        assert made.earlier[-1].campaign == "c"
    seen = [{"key": str(n), "in_this_run": 1, "first_seen": 1} for n in range(3)]
    for number in range(5):
        made_up(
            tmp_path / f"s{number}", findings=seen, campaign=f"s{number}", number=8_000 + number
        )
    made = history.History(tmp_path / "own", report)
    assert [each.campaign for each in made.earlier] == ["s3", "s4", "a", "b", "c"]
