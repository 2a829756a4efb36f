"""Record of a campaign: its counts so far, which can be shown at any moment."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, fields, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.reports.differential import DifferentialTotals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry, Script
    from litmusfuzz.reports.differential import DifferentialComparison


RECORD_VERSION: Final = 2
"""Of the JSON file of a campaign's record."""


@dataclass(slots=True)
class ExecutorState:
    """Counts of one executor in one configuration, so far.

    Each of its `graphs` counts in `tests`, which it ran, in `refused_graphs`, or in
    `not_run`: the time was up, or its queue was full. The graphs are all of the
    campaign; if the executor is `spread` over several configurations, a share of them.
    """

    name: str
    configuration: str
    guarantees: str = "rfc"
    model: str = "rfc"
    """Memory model that judges it."""
    spread: bool = False
    unavailable: str = ""
    """Reason why it cannot run here."""
    state: str = "starting"
    graphs: int = 0
    families: Counter[str] = field(default_factory=Counter)
    """Graphs that it ran, by family."""
    tests: int = 0
    outcomes: int = 0
    minimizing_outcomes: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused graphs by missing feature; a graph counts for each of its features."""
    refused_graphs: int = 0
    not_run: int = 0
    crashed: int = 0
    timed_out: int = 0
    restarts: int = 0
    busy_s: float = 0.0
    fuzzing_s: float = 0.0
    """Part of `busy_s` spent on generated graphs; the rest is minimizing and starting."""
    forbidden_graphs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    """Verdicts on executions of generated graphs."""
    reached: dict[str, list[float]] = field(default_factory=dict)
    """By family, the share of allowed outcomes seen, of each graph with few and known ones."""
    counters: dict[str, float] = field(default_factory=dict)
    """Counters of the executor; see `fuzz.executors.protocol.Counts`."""
    clusterings: Counter[str] = field(default_factory=Counter)
    """Verdicts of translation validation on graphs that it clustered."""
    racing: int = 0
    """Graphs of `clusterings` with a racing cluster of two or more resource ops."""

    @property
    def title(self) -> str:
        """Name and configuration."""
        return f"{self.name}/{self.configuration}"

    def refuse(self, features: Collection[str]) -> None:
        """Count a graph that it cannot run for lack of these features."""
        self.refused_graphs += 1
        self.refused.update(features)

    def reach(self, family: str, share: float) -> None:
        """Count a graph with the share of its allowed outcomes that were seen."""
        # A blocked outcome that was seen in part may count for a complete one.
        self.reached.setdefault(family, []).append(min(1.0, share))

    def count(self, counters: Mapping[str, float]) -> None:
        """Add to its counters."""
        for name, number in counters.items():
            self.counters[name] = self.counters.get(name, 0) + number

    @property
    def canary(self) -> bool:
        """True for the canary, which runs only to be reported."""
        return self.name == "mutant/canary"

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["reached"] = reached_json(self.reached)
        return {name: dict(v) if isinstance(v, dict) else v for name, v in plain.items()}


def reached_json(reached: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Shares of allowed outcomes seen: number of graphs, median, and distribution."""
    return {
        "graphs": sum(map(len, reached.values())),
        "median": median_of(share for shares in reached.values() for share in shares),
        "families": {
            family: {
                "graphs": len(shares),
                "median": median_of(shares),
                # Rounded to percent, so that several campaigns can be added up.
                "shares": dict(sorted(Counter(round(share, 2) for share in shares).items())),
            }
            for family, shares in sorted(reached.items())
        },
    }


def median_of(shares: Iterable[float]) -> float | None:
    """The median with four digits; None without values."""
    known = list(shares)
    return round(median(known), 4) if known else None


@dataclass(slots=True)
class ReportedFinding:
    """A finding, its file, and the number of graphs that showed the same shape.

    Findings with the same `cause` are likely one defect; `reason` says why the most
    frequent outcome is forbidden, "" if the search took too long. `configs` has the
    configurations of its executor that showed it, with the number of graphs;
    `allowed_by` names models, weaker than the guaranteed one, that allow it; `python` is
    the interpreter of another environment that ran it.
    """

    entry: Entry
    path: str
    cause: str
    reason: str = ""
    more: int = 0
    configs: Counter[str] = field(default_factory=Counter)
    allowed_by: tuple[str, ...] = ()
    python: str | None = None

    def __post_init__(self) -> None:
        assert self.entry.finding is not None
        self.configs[self.entry.finding.configuration] += 1

    def again(self, config: str) -> None:
        """Count one more graph that showed it."""
        self.more += 1
        self.configs[config] += 1

    def set_script(self, script: Script) -> None:
        """Set the result of its script."""
        assert self.entry.finding is not None
        self.entry = replace(self.entry, finding=replace(self.entry.finding, script=script))


@dataclass(slots=True)
class FamilyTotals:
    """Costs and results of a family of graphs.

    `graphs` counts the generated ones, `seconds` the time to generate, run and judge them,
    over all executors, without minimizing. `forbidden_graphs` showed a forbidden outcome,
    `unknown_graphs` went over the oracle's budget. `findings` counts those that were kept.
    """

    graphs: int = 0
    seconds: float = 0.0
    forbidden_graphs: int = 0
    findings: int = 0
    unknown_graphs: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}


@dataclass(slots=True)
class Unsound:
    """Clusters of an executor that add an outcome, and the file of their graph."""

    path: str
    test: LitmusTest
    executor: str
    added: Outcome
    more: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "file": self.path,
            "name": self.test.name,
            "clusters": [list(each.members) for each in self.test.clusters],
            "executor": self.executor,
            "added": self.added.plain,
            "more_graphs": self.more,
        }


@dataclass(slots=True)
class Death:
    """A worker that crashed or hung: the file of its test, and the message."""

    path: str
    message: str
    timed_out: bool


@dataclass(slots=True)
class RunRecord:
    """A campaign, so far.

    `families` has costs and results by family, `ops` the generated resource ops by kind;
    `forbidden_graphs` counts the graphs that showed a forbidden outcome. `unreduced` names the
    files of findings that were not minimized, `unconfirmed` counts minimized findings
    that did not show again in a fresh process. `clusterings` has the verdicts on clusters
    that tests came with, `racing` the graphs with a racing cluster of two or more resource
    ops, `unsound` clusters that executors chose. `differential` sums up the graphs that
    several executors ran, of which `latest` is the last; the first `kept` of them are in
    the file `kept_in`, a line each.
    """

    seed: int
    out: str
    executors: list[ExecutorState] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    graphs: int = 0
    families: dict[str, FamilyTotals] = field(default_factory=lambda: defaultdict(FamilyTotals))
    ops: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    unknown_graphs: int = 0
    forbidden_graphs: int = 0
    unreduced: list[str] = field(default_factory=list)
    unconfirmed: int = 0
    findings: list[ReportedFinding] = field(default_factory=list)
    clusterings: Counter[str] = field(default_factory=Counter)
    racing: int = 0
    unsound: list[Unsound] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    canary_runs: int = 0
    canary_reported: int = 0
    compared: int = 0
    differential: dict[str, DifferentialTotals] = field(default_factory=dict)
    latest: DifferentialComparison | None = None
    kept_in: str = ""
    kept: int = 0
    minimizing: str = ""
    command: str = ""
    noise: str = ""
    """In the notation of ``--noise``."""
    python: str | None = None
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    """Versions of the tested software, by executor."""
    elapsed_s: float = 0.0
    generating_s: float = 0.0
    judging_s: float = 0.0
    validating_s: float = 0.0
    interrupted: bool = False
    problem: str = ""

    def compare(self, comparison: DifferentialComparison) -> None:
        """Count a graph that several executors ran."""
        self.compared += 1
        self.latest = comparison
        for result in comparison.results:
            totals = self.differential.setdefault(result.title, DifferentialTotals(result.model))
            totals.add(result, comparison)

    @property
    def path(self) -> str:
        """Path of its file."""
        return f"{self.out}/record-{self.seed}.json"

    def exit_code(self) -> int:
        """0 clean, 1 a forbidden outcome, 2 broken, 3 only undecided results."""
        if self.problem:
            return 2
        if self.findings or self.unreduced or self.unsound:
            return 1
        if not sum(self.verdicts.values()):
            return 3  # nothing was judged
        if (
            self.unknown_graphs
            or self.unconfirmed
            or any(e.timed_out or e.crashed for e in self.executors)
        ):
            return 3
        return 0

    def as_json(self) -> dict[str, Any]:
        """Plain data with everything that `summary` has."""
        return {
            "litmusfuzz_record": RECORD_VERSION,
            "seed": self.seed,
            "out": self.out,
            "command": self.command,
            "noise": self.noise,
            "python": self.python,
            "versions": self.versions,
            "elapsed_s": round(self.elapsed_s, 3),
            "generating_s": round(self.generating_s, 3),
            "judging_s": round(self.judging_s, 3),
            "validating_s": round(self.validating_s, 3),
            "graphs": self.graphs,
            "families": {name: each.as_json() for name, each in sorted(self.families.items())},
            "ops": dict(sorted(self.ops.items())),
            "verdicts": dict(sorted(self.verdicts.items())),
            "unknown_graphs": self.unknown_graphs,
            "forbidden_graphs": self.forbidden_graphs,
            "not_minimized": len(self.unreduced),
            "unreduced": self.unreduced,
            "unconfirmed": self.unconfirmed,
            "executors": [each.as_json() for each in self.executors],
            "clusterings": dict(sorted(self.clusterings.items())),
            "racing": self.racing,
            "unsound": [each.as_json() for each in self.unsound],
            "differential": {
                "graphs": self.compared,
                "file": self.kept_in,
                "kept": self.kept,
                "executors": {title: each.as_json() for title, each in self.differential.items()},
            },
            "deaths": [asdict(each) for each in self.deaths],
            "canary": {"runs": self.canary_runs, "reported": self.canary_reported},
            "findings": [finding_json(each) for each in self.findings],
            "interrupted": self.interrupted,
            "problem": self.problem,
            "exit_code": self.exit_code(),
        }


def finding_json(reported: ReportedFinding) -> dict[str, Any]:
    """One finding as plain data."""
    finding = reported.entry.finding
    assert finding is not None
    return {
        "file": reported.path,
        "name": reported.entry.test.name,
        "effects": [n.op for n in reported.entry.test.effects],
        "cause": reported.cause,
        "reason": reported.reason,
        "executor": finding.executor,
        "configuration": finding.configuration,
        "model": finding.model,
        "minimized": finding.minimized,
        "confirmed": finding.confirmed,
        "script": finding.script,
        "executions": finding.executions,
        "forbidden": [{"outcome": o.plain, "count": c} for o, c in finding.forbidden],
        "schedule": len(finding.schedule.choices) if finding.schedule else 0,
        "more_graphs": reported.more,
        "configurations": dict(reported.configs),
        "allowed_by": list(reported.allowed_by),
        "python": reported.python,
        "seed": finding.seed,
        "index": finding.index,
    }
