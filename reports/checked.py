"""Report of `litmusfuzz check`: the anomalies of a program, or the edges that exclude them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from litmusfuzz.reports.tables import counted, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RULES: Final = {
    "lost update": "What one access writes can be lost, because another writes back an older value",
    "torn snapshot": "Values that are used together can belong to different states",
    "stale read": "A read may come before or after a write",
    "order only": "The order of two accesses is open, and changes a result",
    "undecided": "An op of which nothing is known may touch the same resource",
}
_EVIDENCE: Final = 12
"""Lines of evidence in the text; JSON has all."""
_NAMES: Final = 6


def _listed(names: Sequence[str]) -> str:
    """Some names, and the number of the others."""
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class ReportedAccess:
    """An access of a race: the run, what it does, its op, its operation, and its source."""

    run: str
    access: str
    op: str
    operation: str
    variable: str
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """File and line, or the operation."""
        return f"{self.file}:{self.line}" if self.file else self.operation

    def text(self, *, several: bool) -> str:
        """The access in one line."""
        run = f"{self.run}: " if several else ""
        source = f"  ({self.file}:{self.line})" if self.file else ""
        variable = "any resource" if self.variable == "*" else self.variable
        return f"{run}{self.access} {variable}  {self.op} {self.operation}{source}"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An access of an anomaly's example, or near it.

    Parameters
    ----------
    side : int
        Place of its run among the anomaly's.
    access : ReportedAccess
    number : int
        In the example, from 1; 0 if it is beside the example.
    """

    side: int
    access: ReportedAccess
    number: int = 0


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What is around an anomaly's example, for a drawing.

    Parameters
    ----------
    accesses : tuple of Neighbour
        Those of one run in an order that edges permit.
    edges : tuple of (int, int, str)
        Positions of accesses that edges order, with nothing of the drawing between them: "data"
        if a value goes from the one to the other, else "control".
    left_out : int
        Accesses that are as near, and not in `accesses`.
    """

    accesses: tuple[Neighbour, ...]
    edges: tuple[tuple[int, int, str], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ReportedShowing:
    """The two orders of an anomaly, as TensorFlow executed them.

    Parameters
    ----------
    results : tuple of mapping
        For each order: the results and final values that differ, as text; none if it was not shown.
    inputs : mapping
        Inputs of the runs, as text.
    exact : bool
        True if all accesses of the runs were forced into a total order; False if some were free,
        and may give other values the next time.
    why_not : str
        Why it was not shown.
    """

    results: tuple[Mapping[str, str], ...]
    inputs: Mapping[str, str]
    exact: bool = False
    why_not: str = ""

    def lines(self, orders: tuple[tuple[int, ...], ...]) -> list[str]:
        """It as text."""
        if self.why_not:
            return [f"not shown: {self.why_not}"]
        lines = []
        for order, found in zip(orders, self.results, strict=True):
            numbers = ", ".join(str(n + 1) for n in order)
            values = [f"{name} {value}" for name, value in found.items()]
            more = len(values) - _NAMES
            rest = [f"and {counted(more, 'more value')}"] if more > 0 else []
            lines.append(f"on TensorFlow, order {numbers}: {', '.join(values[:_NAMES] + rest)}")
        given = ", ".join(f"{name} = {value}" for name, value in self.inputs.items())
        if given:
            lines.append(f"with {given}")
        if not self.exact:
            lines.append("not all accesses of these runs were ordered")
        return lines


@dataclass(frozen=True, slots=True)
class ReportedAnomaly:
    """One anomaly.

    Parameters
    ----------
    kind : str
    runs : tuple of str
        One run, or two that are concurrent.
    variables : tuple of str
    accesses : tuple of ReportedAccess
        Those of one race, as an example.
    orders : tuple of tuple of int
        Two orders of `accesses`, by position, that edges permit.
    outcomes : tuple of mapping
        Who reads what in each order, as the oracle decides it; none if it is open.
    pairs : int
    conditions : tuple of str
    repairs : tuple of str
    note : str
    showing : ReportedShowing or None
        Results of the two orders on TensorFlow; None if it was not asked for.
    neighbourhood : Neighbourhood or None
        Contents of the drawing around `accesses`.
    """

    kind: str
    runs: tuple[str, ...]
    variables: tuple[str, ...]
    accesses: tuple[ReportedAccess, ...]
    orders: tuple[tuple[int, ...], ...]
    pairs: int
    conditions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    note: str = ""
    outcomes: tuple[Mapping[str, Any], ...] = ()
    showing: ReportedShowing | None = None
    neighbourhood: Neighbourhood | None = None

    @property
    def title(self) -> str:
        """The kind, the variables and the runs, in one line."""
        names = _listed(self.variables)
        if len(self.runs) == 1:
            return f"{self.kind} of {names} in {self.runs[0]}"
        first, second = self.runs
        beside = "beside itself" if first == second else f"beside {second}"
        return f"{self.kind} of {names}: {first} {beside}"

    def _differences(self, place: int) -> list[str]:
        """What one order yields, where another yields something else."""
        if place >= len(self.outcomes):
            return []
        torn = self.kind == "torn snapshot"  # which is about the reads together
        return [
            f"{name} {value}"
            for name, value in self.outcomes[place].items()
            if torn or any(other.get(name) != value for other in self.outcomes)
        ]

    def lines(self) -> list[str]:
        """The anomaly as text."""
        several = len(self.runs) > 1
        lines = [self.title]
        for number, access in enumerate(self.accesses, 1):
            lines.append(f"  {number}  {access.text(several=several)}")
        for place, order in enumerate(self.orders):
            text = ", ".join(str(n + 1) for n in order)
            result = ", ".join(self._differences(place)) or "by order alone"
            lines.append(f"  order {text}: {result}")
        if self.showing is not None:
            lines += (f"  {each}" for each in self.showing.lines(self.orders))
        if self.conditions:
            lines.append(f"  if {' and '.join(self.conditions)}")
        if self.note:
            lines.append(f"  note: {self.note}")
        lines += (f"  repair: {each}" for each in self.repairs)
        if self.pairs > 1:
            lines.append(f"  {counted(self.pairs, 'pair')} of accesses in all")
        return lines


@dataclass(frozen=True, slots=True)
class ReportedBenign:
    """Pairs of accesses that nothing orders, and why that changes nothing."""

    runs: tuple[str, ...]
    variable: str
    why: str
    pairs: int


@dataclass(frozen=True, slots=True)
class ReportedPath:
    """Edges that order two accesses of a run, which would race without them."""

    run: str
    variable: str
    first: str
    second: str
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run: nodes once expanded, accesses, variables."""

    name: str
    nodes: int
    accesses: int
    variables: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `litmusfuzz check` found in a program.

    Parameters
    ----------
    program : str
    runs : tuple of ReportedRun
    concurrent : tuple of (str, str)
    anomalies : tuple of ReportedAnomaly
    benign : tuple of ReportedBenign
    evidence : tuple of ReportedPath
        Of the runs without an anomaly inside.
    unknown : tuple of str
        Ops of which nothing is known.
    notes : tuple of str
    clustered : tuple of ReportedBenign
        Of `benign`, those that are a lost update if XLA's auto-clustering compiles an update.
    interrupted : str
        How far showing them came; "" if it was not interrupted.
    """

    program: str
    runs: tuple[ReportedRun, ...]
    concurrent: tuple[tuple[str, str], ...]
    anomalies: tuple[ReportedAnomaly, ...]
    benign: tuple[ReportedBenign, ...]
    evidence: tuple[ReportedPath, ...]
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    clustered: tuple[ReportedBenign, ...] = ()
    interrupted: str = ""

    @property
    def exit_code(self) -> int:
        """1 with an anomaly, 3 if something is undecided, else 0."""
        if any(each.kind != "undecided" for each in self.anomalies):
            return 1
        return 3 if self.anomalies or self.interrupted else 0

    def text(self) -> str:
        """All of it, as text."""
        lines = [f"note: {each}" for each in self.notes]
        for run in self.runs:
            lines.append(
                f"{run.name}: {counted(run.accesses, 'access').replace('accesss', 'accesses')} "
                f"to {counted(run.variables, 'resource')}, {counted(run.nodes, 'node')}"
            )
        if self.unknown:
            names = ", ".join(self.unknown)
            lines.append(f"unknown ops: {names}; see --unknown-ops")
        for each in self.anomalies:
            lines += ["", *each.lines()]
        lines += ["", *self.rests()]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """The number of anomalies, in words."""
        if not self.anomalies:
            return "no race"
        decided = [each for each in self.anomalies if each.kind != "undecided"]
        open_ = len(self.anomalies) - len(decided)
        text = counted(len(decided), "anomaly").replace("anomalys", "anomalies")
        return f"{text}, {open_} undecided" if open_ else text

    def _scope(self) -> str:
        """What was compared with what."""
        alone = ", ".join(run.name for run in self.runs)
        pairs = ", ".join(f"{a} beside {'itself' if a == b else b}" for a, b in self.concurrent)
        return f"in {alone}" + (f"; {pairs}" if pairs else "")

    def rests(self) -> list[str]:
        """What was compared, what is benign, and the edges that the rest depends on."""
        lines = [f"{self.summary}: {self._scope()}"]
        reasons: dict[tuple[str, str], int] = {}
        for each in self.benign:
            key = each.why, " beside ".join(each.runs)
            reasons[key] = reasons.get(key, 0) + each.pairs
        for (why, runs), pairs in reasons.items():
            lines.append(f"benign: {counted(pairs, 'pair')} in {runs}: {why}")
        compiled: dict[tuple[str, str], list[str]] = {}
        for each in self.clustered:
            key = each.why, " beside ".join(each.runs)
            compiled.setdefault(key, []).append(each.variable)
        for (why, runs), variables in compiled.items():
            lines.append(
                f"with XLA's auto-clustering: lost update of {_listed(variables)} in {runs}: {why}"
            )
        if self.evidence:
            lines.append("ordered by these edges (-> data, => control):")
            for path in self.evidence[:_EVIDENCE]:
                lines.append(f"  {path.run}: {path.variable}: {' '.join(path.edges)}")
            more = len(self.evidence) - _EVIDENCE
            if more > 0:
                lines.append(f"  and {counted(more, 'more path')}; --json has all")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `text` has, and all evidence."""
        return {"exit_code": self.exit_code, **asdict(self)}

    def sarif(self, command: str) -> dict[str, Any]:
        """A SARIF 2.1.0 log, for code scanning and editors."""
        kinds = list(_RULES)
        rules = [
            {"id": kind.replace(" ", "-"), "shortDescription": {"text": f"{words}."}}
            for kind, words in _RULES.items()
        ]
        driver = {"name": "LitmusFuzz", "version": version("litmusfuzz"), "rules": rules}
        invocation = {
            "commandLine": command,
            "exitCode": self.exit_code,
            "executionSuccessful": not self.interrupted,
        }
        results = []
        for each in self.anomalies:
            places = [_place(access) for access in each.accesses]
            results.append(
                {
                    "ruleId": each.kind.replace(" ", "-"),
                    "ruleIndex": kinds.index(each.kind),
                    "level": "warning" if each.kind == "undecided" else "error",
                    "message": {"text": printable("\n".join(each.lines()))},
                    "locations": places[:1],
                    "relatedLocations": places[1:],
                }
            )
        return {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
        }


def _place(access: ReportedAccess) -> dict[str, Any]:
    place: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": f"{access.run}/{access.operation}"}],
        "message": {"text": printable(f"{access.access} {access.variable}")},
    }
    if access.file:
        place["physicalLocation"] = {
            "artifactLocation": {"uri": quote(access.file)},
            "region": {"startLine": access.line},
        }
    return place
