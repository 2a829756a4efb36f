"""The live view of a run: rich on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self, TextIO

from litmusfuzz.reports.summary import unsound_headline
from litmusfuzz.reports.text import finding, headline

if TYPE_CHECKING:
    from types import TracebackType

    from litmusfuzz.reports.records import ExecutorState, ReportedFinding, RunRecord

_UPDATE_S = 0.25
_LINE_S = 10.0
_MAX_ROWS = 8


class LiveView:
    """A function of the record that updates the view at its own pace.

    Parameters
    ----------
    out : text stream
        If it is not a terminal, it gets a line now and then, and each finding at once.
    time_s : float
        Intended length of the campaign.
    """

    def __init__(self, out: TextIO, time_s: float) -> None:
        self.out = out
        self.time_s = time_s
        self.live: Any = None
        self.next = 0.0
        self.shown = 0
        self.shown_unsound = 0
        self.table = False

    def __enter__(self) -> Self:
        if self.out.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(console=Console(file=self.out), auto_refresh=False, transient=True)
            self.live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.live is not None:
            self.live.__exit__(kind, error, traceback)

    def __call__(self, record: RunRecord) -> None:
        """Update the view, or print new findings and a line of progress."""
        new = record.findings[self.shown :]
        self.shown = len(record.findings)
        unsound = record.unsound[self.shown_unsound :]
        self.shown_unsound = len(record.unsound)
        now = time.monotonic()
        if self.live is None:
            for each in new:
                print(self._headline(each), file=self.out, flush=True)
            for found in unsound:
                print(f"finding: {unsound_headline(found)}", file=self.out, flush=True)
            if now >= self.next and record.elapsed_s:
                self.next = now + _LINE_S
                print(status_line(record) + self._doing(record), file=self.out, flush=True)
        elif now >= self.next or new or (record.latest is not None and not self.table):
            # The first comparison of executors appears at once.
            self.table = record.latest is not None
            self.next = now + _UPDATE_S
            self.live.update(self._panel(record), refresh=True)

    def _doing(self, record: RunRecord) -> str:
        """The current slow step, if there is one."""
        finishing = ", time is up" if record.elapsed_s > self.time_s else ""
        return finishing + (f", minimizing {record.minimizing}" if record.minimizing else "")

    @staticmethod
    def _headline(reported: ReportedFinding) -> str:
        _, seen, *_ = finding(reported).splitlines()
        return f"finding: {headline(reported)}\n{seen}"

    def _panel(self, record: RunRecord) -> Any:
        from rich.console import Group
        from rich.markup import escape
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        rows = Table(box=None, pad_edge=False)
        for title in ("executor", "state", "tests", "outcomes", "crashed", "timed out"):
            rows.add_column(title, justify="left" if title in ("executor", "state") else "right")
        for each in _rows(record.executors):
            tests = f"{each.tests}"
            if each.canary:
                tests = f"{record.canary_reported}/{record.canary_runs}"
            rows.add_row(
                each.title,
                each.state,
                tests,
                f"{each.outcomes:,}",
                str(each.crashed),
                str(each.timed_out),
            )
        parts: list[Any] = [status_line(record), rows]
        if record.minimizing:
            parts.append(f"minimizing {record.minimizing}")
        if record.latest is not None:
            parts.append(f"graph {record.latest.index} ({record.latest.family}):")
            parts.append(Text(record.latest.table(_MAX_ROWS), no_wrap=True, overflow="ellipsis"))
        parts += [escape(f"finding: {unsound_headline(each)}") for each in record.unsound[-2:]]
        for reported in record.findings[-8:]:
            parts.append(escape(self._headline(reported)))
        left_s = round(self.time_s - record.elapsed_s)
        left = f"{left_s} s left" if left_s >= 0 else "time is up, completing findings"
        title = f"litmusfuzz, seed {record.seed}, {left}"
        return Panel(Group(*parts), title=title, title_align="left")


def _rows(states: list[ExecutorState]) -> list[ExecutorState]:
    """States to show: of an executor that goes through configurations, the current ones."""
    busy = ("fuzzing", "minimizing", "starting")
    return [each for each in states if not each.spread or each.state in busy]


def status_line(record: RunRecord) -> str:
    """One line: progress, speed, findings."""
    elapsed = max(record.elapsed_s, 1e-9)
    outcomes = sum(e.outcomes for e in record.executors if not e.canary)
    tests = sum(e.tests for e in record.executors)
    return (
        f"{record.elapsed_s:6.1f} s  {tests} tests ({tests / elapsed:.1f}/s)  "
        f"{outcomes} outcomes ({outcomes / elapsed:,.0f}/s)  "
        f"{record.forbidden_graphs} graphs forbidden, "
        f"{len(record.findings) + len(record.unsound)} findings, "
        f"{record.unknown_graphs} unknown"
    )
