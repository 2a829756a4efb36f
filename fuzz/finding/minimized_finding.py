"""A minimized finding or known cause, and where a campaign has seen it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from litmusfuzz.fuzz.finding.causes import symptoms_of
from litmusfuzz.fuzz.finding.versions import EVERYWHERE, Versions

if TYPE_CHECKING:
    from litmusfuzz.corpus.textfile import Entry, Finding


@dataclass(slots=True, eq=False)
class MinimizedFinding:
    """A minimized finding, and the configurations of its executor that have shown it.

    `file` is relative to the campaign's folder. `reason` says why its outcome is forbidden; "" if
    that is not known, or another shard found it. `cause` is its name in the known-findings file;
    "" for a finding of this campaign. `unchecked` is True as long as nothing has shown whether such
    a cause still shows; `unseen` executions have not. `hidden_in` has configurations that did not
    show it when asked. `versions` are those that a cause holds for.
    """

    entry: Entry
    key: str
    configurations: set[str] = field(default_factory=set)
    file: str = ""
    reason: str = ""
    cause: str = ""
    unchecked: bool = False
    unseen: int = 0
    hidden_in: set[str] = field(default_factory=set)
    versions: Versions = EVERYWHERE

    @property
    def symptoms(self) -> tuple[str, ...]:
        """Symptoms of its outcomes."""
        return symptoms_of(self.finding)

    @property
    def finding(self) -> Finding:
        """How to reproduce it."""
        assert self.entry.finding is not None
        return self.entry.finding
