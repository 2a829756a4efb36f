"""Report of `litmusfuzz device`: outcomes of a test inside a device, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.reports.tables import counted, outcome_table

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome

_CONSISTENT: Final = {Verdict.ALLOWED.value: "yes", Verdict.FORBIDDEN.value: "no"}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """An outcome, the number of executions that showed it, and its verdict under `executor`."""

    outcome: Outcome
    count: int
    verdict: str


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What a device showed.

    Parameters
    ----------
    test : LitmusTest
    device : str
        Its name, platform and driver version.
    order : str
        Memory order of the accesses.
    kernels : int
    guaranteed : bool
        True if OpenCL guarantees sequential consistency, so that other outcomes are forbidden.
    rows : tuple of DeviceRow
        The most frequent first.
    """

    test: LitmusTest
    device: str
    order: str
    kernels: int
    guaranteed: bool
    rows: tuple[DeviceRow, ...]

    @property
    def beyond(self) -> int:
        """Number of executions that are not sequentially consistent."""
        return sum(row.count for row in self.rows if row.verdict == Verdict.FORBIDDEN.value)

    def text(self) -> str:
        """The report for a terminal."""
        shown = outcome_table(
            self.test.names,
            ["executions", "sequentially consistent"],
            [
                (row.outcome, [str(row.count), _CONSISTENT.get(row.verdict, "?")])
                for row in self.rows
            ],
        )
        executions = counted(sum(row.count for row in self.rows), "execution")
        where = "one kernel" if self.kernels == 1 else "two kernels"
        last = f"{executions} in {where}, order {self.order}, on {self.device}"
        judged = "forbidden" if self.guaranteed else "not judged: OpenCL guarantees less here"
        if self.beyond or not self.guaranteed:
            last += f"\n{self.beyond} not sequentially consistent ({judged})"
        return f"{shown}\n\n{last}"

    def as_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "test": self.test.name,
            "device": self.device,
            "order": self.order,
            "kernels": self.kernels,
            "guaranteed": self.guaranteed,
            "beyond": self.beyond,
            "outcomes": [
                {"values": row.outcome.plain, "count": row.count, "verdict": row.verdict}
                for row in self.rows
            ],
        }
