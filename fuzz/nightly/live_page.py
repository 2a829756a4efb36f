"""The HTML page of a campaign that runs: written whole, now and then, and it reloads itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.textfile import write_into
from litmusfuzz.reports.html import page
from litmusfuzz.reports.outputs import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from litmusfuzz.reports.report import Report

EVERY_S: Final = 10.0
"""Seconds, at least, between two pages: as often as a page reloads itself."""
SHARE: Final = 0.02
"""Share of the time, at most, in which pages are made: a large one is made less often."""


class LivePage:
    """Writes the page of a report if it is time to.

    Parameters
    ----------
    folder : Path or int
        Of the campaign, or a descriptor of it (`corpus.textfile.write_into`).
    clock : callable
        Seconds since some moment.
    """

    def __init__(self, folder: Path | int, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.clock = clock
        self.next = clock()

    def __call__(self, report: Report) -> None:
        """Write the page, unless it is too early: a reader sees this page or the one before."""
        start = self.clock()
        if start < self.next:
            return
        write_into(self.folder, PAGE, page(report))
        self.next = start + max(EVERY_S, (self.clock() - start) / SHARE)
