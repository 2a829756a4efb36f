"""What earlier shards of a campaign have left for a further one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.finding.known_findings import NOTHING, KnownFindings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.finding.minimized_finding import MinimizedFinding


@dataclass(frozen=True, slots=True)
class Earlier:
    """Findings, candidates and tests of earlier shards, and what else is known.

    Parameters
    ----------
    known : sequence of MinimizedFinding
        Minimized findings: what they explain is not minimized again.
    pending : sequence of Entry
        Candidates that wait to be minimized.
    suspects : sequence of Entry
        Further ones, whose processes crashed later.
    unconfirmed : sequence of Entry
        Tests that fresh processes did not show again: tried when there is time.
    tests : mapping of int to set of str
        As `earlier` of `fuzz.campaign.dispatcher.Dispatcher`.
    deaths : KnownFindings
        Patterns of the known-findings file: a crash that one of them explains is not reduced.
    reduced : collection of (str, str)
        Executors, and exceptions (`fuzz.finding.worker_deaths.exception_of`), of crashes that were
        reduced.
    """

    known: Sequence[MinimizedFinding] = ()
    pending: Sequence[Entry] = ()
    suspects: Sequence[Entry] = ()
    unconfirmed: Sequence[Entry] = ()
    tests: Mapping[int, Collection[str]] = field(default_factory=dict)
    deaths: KnownFindings = NOTHING
    reduced: Collection[tuple[str, str]] = ()
