"""Report of `litmusfuzz validate`: verdict of translation validation on clusters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from litmusfuzz.reports.allowed import ended_as, numbered
from litmusfuzz.reports.tables import counted

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import Cluster
    from litmusfuzz.reports.allowed import Refuted, Witnessed


@dataclass(frozen=True, slots=True)
class TranslationReport:
    """Verdict on the clusters of one test.

    Parameters
    ----------
    file, test : str
    source : str
        Origin of the clusters.
    clusters : tuple of Cluster
    verdict : str
        "sound", "unsound" or "unknown".
    outcomes : int
        Number of outcomes allowed with clusters.
    witness : Witnessed, optional
        Of an unsound clustering, what it adds, and an order that yields it.
    reason : Refuted, optional
        Why the graph without clusters forbids that.
    broken : tuple of str
        What in the clusters the rules do not permit.
    pairwise : bool
        Whether the pairwise analysis alone permits them: there is no unsafe pair.
    apart : tuple of str
        Pairs that our clusterer joins, and that one does not.
    problem : str
        Why what was chosen is no litmus test at all.
    lost : tuple of str
        Orders of the test that the clustered graph does not have.
    undecided : tuple of str
        Paths that it does not have either, which may be orders of the test.
    """

    file: str
    test: str
    source: str
    clusters: tuple[Cluster, ...]
    verdict: str
    outcomes: int = 0
    witness: Witnessed | None = None
    reason: Refuted | None = None
    broken: tuple[str, ...] = ()
    pairwise: bool = True
    apart: tuple[str, ...] = ()
    problem: str = ""
    lost: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    def text(self) -> str:
        """The verdict, the clusters, an added outcome, and the reason why it is forbidden."""
        lines = [f"{self.test}: {self.verdict}{self._looked_at()}"]
        lines += [f"  lost by {self.source}: {each}" for each in self.lost]
        lines += [f"  perhaps lost by {self.source}: {each}" for each in self.undecided]
        if self.problem:
            return "\n".join((*lines, f"  {self.problem}"))
        lines.append(f"clusters, by {self.source}:" if self.clusters else "no clusters")
        width = max((len(each.name) for each in self.clusters), default=0)
        lines += [f"  {each.name:{width}}  {' '.join(each.members)}" for each in self.clusters]
        if self.witness is not None:
            lines += ["", f"added by the clusters  {ended_as(self.witness.outcome)}"]
            lines += ["witness, a total order of the clustered graph:"]
            lines += numbered(self.witness.events) or ["  of no event at all"]
        if self.reason is not None:
            lines += ["", *self.reason.lines("forbidden without them")]
        if self.witness is not None and self.pairwise:
            lines += ["", "the pairwise analysis permits them"]
        if self.broken:
            lines += ["", "the rules do not permit:"]
        lines += [f"  {each}" for each in self.broken]
        if self.apart:
            lines += ["", f"we join, and {self.source} keeps apart:"]
            lines += [f"  {each}" for each in self.apart]
        if self.verdict == "unknown" and self.undecided:
            lines += [
                "",
                "unknown: the oracle cannot say whether the test orders these; see --budget",
            ]
        elif self.verdict == "unknown":
            lines += ["", "unknown: the search ran out of its budget; see --budget"]
        return "\n".join(lines)

    def _looked_at(self) -> str:
        if self.problem or self.verdict == "unsound":
            return ""
        return f", {counted(self.outcomes, 'outcome')} with clusters"

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has."""
        plain: dict[str, Any] = {
            "file": self.file,
            "test": self.test,
            "source": self.source,
            "verdict": self.verdict,
            "clusters": {each.name: list(each.members) for each in self.clusters},
            "outcomes": self.outcomes,
            "broken": list(self.broken),
            "pairwise_permits": self.pairwise,
            "apart": list(self.apart),
        }
        if self.problem:
            plain["problem"] = self.problem
        if self.lost:
            plain["lost"] = list(self.lost)
        if self.undecided:
            plain["undecided"] = list(self.undecided)
        if self.witness is not None:
            plain["added"] = self.witness.outcome.plain
            plain["witness"] = list(self.witness.events)
        if self.reason is not None:
            plain["reason"] = asdict(self.reason)
        return plain
