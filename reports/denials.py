"""Sentences of a report that deny something: nothing new, none forbidden, not seen.

A denial that is wrong is the worst that a report can say. So each is here, with the condition under
which it is true, and no output words one of its own (`tests/store/test_denials.py`).
"""

# ruff: noqa: D102 - Report, Known and ReportedFinding document what the protocols name.
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from litmusfuzz.reports.events import FindingKind
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.reports.open_tests import OpenTest


class KnownEntry(Protocol):
    """An entry of the known-findings file; see `litmusfuzz.reports.report.Known`."""

    @property
    def seen(self) -> bool: ...
    @property
    def graphs(self) -> int: ...
    @property
    def shows(self) -> bool | None: ...
    @property
    def executions(self) -> int: ...
    @property
    def may_explain(self) -> int: ...
    @property
    def is_unseen(self) -> bool: ...
    @property
    def gone(self) -> bool: ...


class FindingSeen(Protocol):
    """A finding; see `litmusfuzz.reports.report.ReportedFinding`."""

    @property
    def kind(self) -> FindingKind: ...
    @property
    def observed(self) -> Mapping[Outcome, tuple[int, str]]: ...


class Campaign(Protocol):
    """A campaign; see `litmusfuzz.reports.report.Report`."""

    @property
    def ended(self) -> int | None: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def findings(self) -> Sequence[FindingSeen]: ...
    @property
    def new(self) -> Sequence[FindingSeen]: ...
    @property
    def open_tests(self) -> Sequence[OpenTest]: ...
    @property
    def known(self) -> Sequence[KnownEntry]: ...
    @property
    def stale(self) -> Sequence[KnownEntry]: ...
    @property
    def gone(self) -> Sequence[KnownEntry]: ...
    @property
    def graphs(self) -> int: ...
    @property
    def outcomes(self) -> int: ...
    @property
    def verdicts(self) -> Mapping[str, int]: ...
    @property
    def unknown_graphs(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Denial:
    """A sentence, or the beginning of one, that denies something about a campaign.

    Parameters
    ----------
    words : callable
        The sentence, of a report of which it is true.
    is_true : callable
    """

    words: Callable[[Campaign], str]
    is_true: Callable[[Campaign], bool]

    def of(self, report: Campaign) -> str:
        """The sentence, without its end; "" if it is not true of the report."""
        return self.words(report) if self.is_true(report) else ""


def _so_far(report: Campaign) -> str:
    return " so far" if report.ended is None or report.interrupted else ""


def _shows_nothing(report: Campaign) -> bool:
    """True if there is no finding, and no test that showed a forbidden outcome is left."""
    return not (report.findings or report.open_tests)


def _verdicts(report: Campaign) -> set[str]:
    """Verdicts that some outcome has."""
    return {verdict for verdict, number in report.verdicts.items() if number}


NOTHING_NEW: Final = Denial(
    lambda report: f"nothing new{_so_far(report)}",
    lambda report: not (report.new or report.open_tests),
)
NOTHING_RAN: Final = Denial(
    lambda _: "nothing ran",
    lambda report: not (report.graphs or report.outcomes),
)
NOTHING_JUDGED: Final = Denial(
    lambda _: "no outcome was judged",
    lambda report: bool(report.graphs) and not report.outcomes,
)
ALL_ALLOWED: Final = Denial(
    lambda report: f"None{_so_far(report)}: the memory model allows every observed outcome",
    lambda report: _shows_nothing(report) and _verdicts(report) == {"allowed"},
)
ALL_DECIDED_ALLOWED: Final = Denial(
    lambda report: (
        f"None{_so_far(report)}: the memory model allows every outcome that was decided;"
        f" {counted(report.unknown_graphs, 'graph')} went over the oracle's budget"
    ),
    lambda report: (
        _shows_nothing(report)
        and "unknown" in _verdicts(report)
        and "forbidden" not in _verdicts(report)
    ),
)
ALL_KNOWN: Final = Denial(
    lambda report: f"None{_so_far(report)}: known causes explain every forbidden outcome",
    lambda report: (
        _shows_nothing(report)
        and "forbidden" in _verdicts(report)
        and any(each.graphs for each in report.known)
    ),
)
NOTHING_OBSERVED: Final = Denial(
    lambda report: f"None{_so_far(report)}: no outcome was judged",
    lambda report: _shows_nothing(report) and not _verdicts(report),
)
NOT_SEEN: Final = Denial(
    lambda report: f"known, not seen{_so_far(report)}",
    lambda report: bool(report.stale),
)
GONE: Final = Denial(
    lambda report: f"{counted(len(report.gone), 'known cause')} no longer shown",
    lambda report: bool(report.gone),
)
DENIALS: Final = {
    "nothing new": NOTHING_NEW,
    "nothing ran": NOTHING_RAN,
    "nothing judged": NOTHING_JUDGED,
    "all allowed": ALL_ALLOWED,
    "all decided allowed": ALL_DECIDED_ALLOWED,
    "all known": ALL_KNOWN,
    "nothing observed": NOTHING_OBSERVED,
    "not seen": NOT_SEEN,
    "gone": GONE,
}


def no_findings(report: Campaign) -> str:
    """What the section of the findings says if there are none; "" if there are."""
    if report.findings:
        return ""
    if left := len(report.open_tests):
        graphs = f"{counted(left, 'graph')} showed a forbidden outcome"
        return f"None is minimized{_so_far(report)}, but {graphs} (below)"
    denied = (ALL_ALLOWED, ALL_DECIDED_ALLOWED, ALL_KNOWN, NOTHING_OBSERVED)
    return next(filter(None, (each.of(report) for each in denied)), "")


def state_of(known: KnownEntry) -> str:
    """Whether a known cause still shows."""
    executions = f"{known.executions:,} executions"
    if not known.executions:
        return "not run by itself"
    if known.shows:
        return "still shows"
    if known.gone:
        return f"no longer shows in {executions}"
    if known.is_unseen:
        return f"not seen in {executions}"
    graphs = counted(known.graphs or known.may_explain, "graph")
    return f"its own test did not show it in {executions}; {graphs} here may have"


def sighting_of(known: KnownEntry) -> str:
    """Whether a campaign has seen an entry of the known-findings file."""
    if known.seen:
        return "seen"
    if known.is_unseen:
        return "not seen"
    return f"may be in {counted(known.may_explain, 'graph')}"


def no_outcome(found: FindingSeen) -> str:
    """Why a finding has no observed outcome; "" if it has some."""
    if found.observed:
        return ""
    if found.kind is FindingKind.UNSOUND:
        return "no outcome: clusters are validated without an execution"
    if found.kind is FindingKind.TIMED_OUT:
        return "no outcome: the worker reported none in time"
    return "no outcome: the worker ended before it reported one"
