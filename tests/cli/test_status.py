"""`litmusfuzz status` on killed nightly runs and on other files; `litmusfuzz reproduce`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from litmusfuzz.fuzz.store.folder import DATABASE
from litmusfuzz.fuzz.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

STATS = "state : runs\nstart_time : 1800000000\nlast_update : 1\ngraphs : 7\n"


def test_an_old_run_without_a_writer_is_silent(
    litmusfuzz: Command, litmusfuzz_here: Command, tmp_path: Path
) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/stats").write_text(STATS)
    assert "silent" in litmusfuzz_here("status", "n").stdout
    with Store(tmp_path / "n", write=True):
        assert "silent" not in litmusfuzz("status", "n").stdout  # the writer is another process
    assert "silent" in litmusfuzz_here("status", "n").stdout
    # It was killed, and then the clock was set back.
    (tmp_path / "n/stats").write_text(STATS.replace("last_update : 1", "last_update : 9e9"))
    assert "silent" in litmusfuzz_here("status", "n").stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [("1800000000", "1e300"), ("1800000000", "nan"), ("7", "inf"), ("7", "-1"), ("7", "x")],
)
def test_numbers_that_are_none_are_no_traceback(
    litmusfuzz_here: Command, tmp_path: Path, before: str, after: str
) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/stats").write_text(STATS.replace(before, after))
    assert litmusfuzz_here("status", "n").returncode == 0


@pytest.mark.parametrize("text", ["", "garbage", "a : b"])
def test_a_file_that_is_not_stats_is_refused(
    litmusfuzz_here: Command, tmp_path: Path, text: str
) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/stats").write_text(text)
    done = litmusfuzz_here("status", "n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "litmusfuzz: n/stats: is not the stats file of a campaign\n"


def test_a_damaged_folder_hides_no_other(litmusfuzz_here: Command, tmp_path: Path) -> None:
    for name, content in (("bad", b"\xff"), ("good", STATS.encode())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stats").write_bytes(content)
    done = litmusfuzz_here("status", "bad", "good", "gone")
    assert done.returncode == 2
    assert done.stdout.splitlines()[1].startswith("good  silent ")
    assert done.stderr.splitlines() == [
        "litmusfuzz: bad/stats:1: is not UTF-8",
        "litmusfuzz: gone/stats: No such file or directory",
    ]


def test_reproduce_refuses_a_run_without_tests(litmusfuzz_here: Command, tmp_path: Path) -> None:
    Store(tmp_path / "n", write=True).close()
    done = litmusfuzz_here("reproduce", "n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "litmusfuzz: n: holds no tests\n"
    with Store(tmp_path / "n", write=True) as store:
        store.db.execute("DROP TABLE events")
    done = litmusfuzz_here("reproduce", "n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"litmusfuzz: n/{DATABASE}: no such table: events\n"


def test_without_workers_no_run_is_started(
    litmusfuzz_here: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens there: its folder is free for the next try."""
    monkeypatch.setattr("litmusfuzz.fuzz.nightly.pools.CONNECT_S", 0.5)
    asked = ("nightly", "--executors", "native", "--out", "n", "--dask", "tcp://127.0.0.1:9")
    done = litmusfuzz_here(*asked)
    assert (done.returncode, done.stdout) == (2, "")
    message = "litmusfuzz: --dask: no Dask scheduler at tcp://127.0.0.1:9: "
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "n").exists()
