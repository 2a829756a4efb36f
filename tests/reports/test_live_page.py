"""The page of a campaign that runs: whole, every ten seconds at most, and cheap."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from example_reports import short_run

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.nightly import live_page
from litmusfuzz.fuzz.nightly.live_page import EVERY_S, SHARE, LivePage
from litmusfuzz.reports.html import page
from litmusfuzz.reports.outputs import write_all

if TYPE_CHECKING:
    import pytest

    from litmusfuzz.reports.report import Report

RUNS = replace(short_run(1), ended=None)


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def written(live: LivePage, report: Report) -> bool:
    """True if it writes the page now, in place of the one that is there."""
    assert isinstance(live.folder, Path)
    path = live.folder / "report.html"
    before = path.stat().st_ino if path.exists() else None
    live(report)
    return path.stat().st_ino != before


def test_it_is_written_at_once_and_then_every_ten_seconds_at_most(tmp_path: Path) -> None:
    clock = Clock()
    live = LivePage(tmp_path, clock)
    assert written(live, RUNS)
    for turned, expected in ((0.0, False), (9.9, False), (0.2, True), (9.9, False), (60.0, True)):
        clock.now += turned
        assert written(live, RUNS) is expected


def test_a_page_that_takes_long_is_made_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of two seconds every hundred: the share of the time that pages may take."""
    clock = Clock()

    def slow(report: Report) -> str:
        clock.now += 2.0
        return page(report)

    monkeypatch.setattr(live_page, "page", slow)
    live = LivePage(tmp_path, clock)
    assert written(live, RUNS)
    began = clock.now - 2.0
    clock.now = began + 2.0 / SHARE - 0.1
    assert clock.now - began > EVERY_S
    assert not written(live, RUNS)
    clock.now += 0.2
    assert written(live, RUNS)


def test_a_reader_sees_a_whole_page(tmp_path: Path) -> None:
    """The page that somebody has open stays whole, and no other file is left."""
    clock = Clock()
    live = LivePage(tmp_path, clock)
    live(RUNS)
    with open(tmp_path / "report.html", encoding="utf-8") as reader:
        begin = reader.read(100)
        clock.now += 60
        live(replace(RUNS, spent_s=70.0))
        assert (begin + reader.read()).rstrip().endswith("</html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_it_reloads_itself_until_the_campaign_has_ended(tmp_path: Path) -> None:
    """Its script alone may run, by its digest; without scripts the browser reloads it."""
    LivePage(tmp_path, Clock())(RUNS)
    made = (tmp_path / "report.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", made, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in made
    assert "location.reload()" in script
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in made
    write_all(short_run(1), tmp_path)
    ended = (tmp_path / "report.html").read_text(encoding="utf-8")
    for word in ("<script", "script-src", "refresh"):
        assert word not in ended
