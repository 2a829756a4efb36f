"""The live view of a campaign: rich on a terminal, plain lines elsewhere, or lines of JSON."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

from litmusfuzz.reports.seen import SeenTest
from litmusfuzz.reports.tables import counted, printable
from litmusfuzz.reports.text import finding

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from litmusfuzz.reports.report import Report, ReportedFinding, Share
    from litmusfuzz.reports.seen import Said

_UPDATE_S: Final = 0.25
_LINE_S: Final = 10.0
_MOST_ROWS: Final = 10
"""More configurations are added up by executor."""
_MOST_FINDINGS: Final = 8


class LiveView:
    """A function of the report that updates the view at its own pace.

    Parameters
    ----------
    out : text stream
        If it is not a terminal, it gets a line now and then, and each finding at once.
    as_json : bool
        True: each line is a JSON object, also on a terminal.
    """

    def __init__(self, out: TextIO, *, as_json: bool = False) -> None:
        self.out = out
        self.as_json = as_json
        self.printed = 0
        """Tests with a forbidden outcome that were printed."""
        self.live: Any = None
        self.next = 0.0
        self.shown = set[str]()
        """Keys of findings."""

    def __enter__(self) -> Self:
        if self.out.isatty() and not self.as_json:
            from rich.console import Console
            from rich.live import Live

            # Its own text is escaped below, and its colours are not to be.
            console = Console(file=getattr(self.out, "unescaped", self.out))
            self.live = Live(console=console, auto_refresh=False, transient=True)
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

    def say(self, said: Said) -> None:
        """Print a forbidden outcome that was judged, or what became of it, at once."""
        self.printed += isinstance(said, SeenTest)
        if self.as_json:
            self._print_json(said.as_json())
            return
        text = said.text()
        if self.live is None:
            print(printable(text), file=self.out, flush=True)
            return
        from rich.text import Text

        shown = Text(printable(text))
        shown.highlight_words(["FORBIDDEN"], "bold red")
        self.live.console.print(shown, soft_wrap=True)  # a command is copied in one piece

    def __call__(self, report: Report) -> None:
        """Update the view, or print new findings and a line of progress."""
        new = [each for each in report.new if each.key not in self.shown]
        self.shown.update(each.key for each in new)
        now = time.monotonic()
        if self.live is None:
            for each in new:
                if self.as_json:
                    self._print_json(_finding(each))
                else:
                    print(_headline(each), file=self.out, flush=True)
            if now >= self.next and report.spent_s:
                self.next = now + _LINE_S
                if self.as_json:
                    self._print_json(_progress(report, self._more(report)))
                    return
                line = status_line(report) + self._counted(report) + _doing(report)
                print(line, file=self.out, flush=True)
        elif now >= self.next or new:
            self.next = now + _UPDATE_S
            self.live.update(_panel(report, self._counted(report)), refresh=True)

    def _counted(self, report: Report) -> str:
        """How many forbidden tests were not printed, but counted, in words."""
        more = self._more(report)
        return f", {counted(more, 'more forbidden test')} not printed" if more else ""

    def _more(self, report: Report) -> int:
        """How many forbidden tests were not printed, but counted."""
        return max(0, sum(each.forbidden_graphs for each in report.by_config) - self.printed)

    def _print_json(self, data: dict[str, Any]) -> None:
        print(printable(json.dumps(data)), file=self.out, flush=True)


def status_line(report: Report) -> str:
    """One line: progress, speed, findings."""
    elapsed = max(report.spent_s, 1e-9)
    outcomes = _outcomes(report)
    graphs = counted(report.graphs, "graph")
    findings = counted(len(report.findings), "finding")
    return (
        f"{report.spent_s:6.1f} s  {graphs} ({report.graphs / elapsed:.1f}/s)  "
        f"{counted(outcomes, 'outcome')} ({outcomes / elapsed:,.0f}/s)  "
        f"{counted(report.forbidden_graphs, 'graph')} forbidden, "
        f"{findings} ({len(report.new)} new), {report.unknown_graphs} unknown"
    )


def _outcomes(report: Report) -> int:
    return sum(each.outcomes + each.minimizing_outcomes for each in report.by_config)


def _progress(report: Report, more: int) -> dict[str, Any]:
    """The line of progress as plain data; `more` forbidden tests were not printed."""
    return {
        "event": "progress",
        "spent_s": report.spent_s,
        "asked_s": report.asked_s,
        "graphs": report.graphs,
        "outcomes": _outcomes(report),
        "forbidden": report.forbidden_graphs,
        "findings": len(report.findings),
        "new": len(report.new),
        "unknown": report.unknown_graphs,
        "not_printed": more,
        "minimizing": list(report.minimizing),
    }


def _finding(reported: ReportedFinding) -> dict[str, Any]:
    """A new finding as plain data."""
    return {
        "event": "finding",
        "key": reported.key,
        "kind": str(reported.kind),
        "headline": reported.headline,
        "on": reported.where,
        "seen": reported.seen,
        "because": list(reported.reason),
        "file": reported.file,
        "replay": reported.replay,
    }


def _doing(report: Report) -> str:
    """The current slow step, if there is one."""
    finishing = ", time is up" if report.spent_s > report.asked_s else ""
    minimizing = ", ".join(report.minimizing)
    return printable(finishing + (f", minimizing {minimizing}" if minimizing else ""))


def _headline(reported: ReportedFinding) -> str:
    """The headline, and the line that says what was seen."""
    _, seen, *_ = finding(reported).splitlines()
    return printable(f"finding: {reported.headline}\n{seen}")


def _panel(report: Report, more: str) -> Any:
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, pad_edge=False)
    for title in ("configuration", "graphs", "outcomes", "crashed", "timed out"):
        rows.add_column(title, justify="left" if title == "configuration" else "right")
    for name, shares in _rows(report.by_config):
        outcomes = sum(each.outcomes + each.minimizing_outcomes for each in shares)
        numbers = (
            sum(each.graphs for each in shares),
            outcomes,
            sum(each.crashed for each in shares),
            sum(each.timed_out for each in shares),
        )
        rows.add_row(Text(printable(name)), *(f"{each:,}" for each in numbers))
    runs, reported = report.canary
    rows.add_row("mutant/canary", f"{reported}/{runs}")
    # Text, unlike a string, has no markup: what comes from files is shown as it is.
    lines = [f"minimizing {each}" for each in report.minimizing]
    if report.compared:
        forbidden = sum(each.forbidden for each in report.differential.values())
        alone = sum(each.alone for each in report.differential.values())
        lines.append(
            f"{counted(report.compared, 'graph')} on several executors: {forbidden} forbidden"
            f" outcomes, {alone} seen on one executor only"
        )
    lines += [_headline(each) for each in report.new[-_MOST_FINDINGS:]]
    left_s = round(report.asked_s - report.spent_s)
    left = f"{left_s} s left" if left_s >= 0 else "time is up, completing findings"
    title = f"litmusfuzz, seed {report.seed}, {left}"
    shown = (Text(printable(each)) for each in lines)
    return Panel(Group(status_line(report) + more, rows, *shown), title=title, title_align="left")


def _rows(shares: tuple[Share, ...]) -> Iterable[tuple[str, list[Share]]]:
    """A row for each configuration, or for each executor if they are many."""
    if len(shares) <= _MOST_ROWS:
        return [(each.name, [each]) for each in shares]
    by_executor: dict[str, list[Share]] = {}
    for each in shares:
        by_executor.setdefault(each.executor, []).append(each)
    return [
        (f"{name}, {counted(len(each), 'configuration')}", each)
        for name, each in by_executor.items()
    ]
