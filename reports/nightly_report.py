"""A night, as reports tell it: plain data, made from the store by `fuzz.campaign.nightly`.

All outputs (the page, JUnit, Markdown, SARIF, the line of `status`) are drawn from
one `NightlyReport`. Times are seconds since 1970, UTC, as whole numbers; durations are seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from litmusfuzz.reports.text import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.textfile import Entry


class Sort(StrEnum):
    """What kind of finding it is."""

    FORBIDDEN = "forbidden"
    """An outcome outside the allowed set, minimized and seen again in a fresh process."""
    UNSOUND = "unsound"
    """Clusters that add an outcome, by translation validation: nothing was run."""
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True, slots=True)
class NightlyFinding:
    """One finding, however often it was seen.

    Parameters
    ----------
    key : str
        `fuzz.campaign.canonical.key`: the same finding has the same in every night.
    sort : Sort
    entry : Entry
        The minimized test, its allowed sets, and the finding itself. Of a worker that
        ended, the test that it ran, without finding.
    file : str
        Relative to the night's folder.
    executor, config_class, model : str
    cause : str
        Findings with the same are likely one defect (`fuzz.campaign.causes`).
    reason : tuple of str
        In words, a sentence each: why the most frequent outcome is forbidden; or how the
        worker ended. Empty if that was not found out in time.
    is_cycle : bool
        Whether `reason` is a cycle.
    arcs : tuple of (str, str)
        Of a cycle, for each sentence of `reason` the node that comes first and the one
        after it (`oracles.reason.Reason.arcs`).
    edges : tuple of (str, str)
        Names of nodes, the control or data edges that the reason stands on.
    rules : tuple of str
        Names of the axioms that are broken.
    count : int
        Graphs that showed it, over all nights.
    tonight : int
        Of these, in this one.
    first_seen, last_seen : int
    configs : mapping of str to int
        By configuration, graphs of this night.
    histogram : mapping of Outcome to (int, str)
        What the minimized test showed: executions, and the verdict in a word.
    allowed : tuple of Outcome
        The allowed outcomes; empty where they are too many.
    nearest : Outcome or None
        Of these, the one that differs in fewest values from what was seen.
    replay : str
        The command that shows it again.
    script : str
        A script that shows it without us, relative; "" if there is none.
    script_shows_it : bool
    known : str
        The reason or link in the known-findings file; "" if it is new.
    also : tuple of str
        Other keys: of a crash, which is known by all kernels of its test, those of the
        crashes that look like it.
    """

    key: str
    sort: Sort
    entry: Entry
    file: str
    executor: str
    config_class: str
    model: str
    cause: str
    reason: tuple[str, ...]
    is_cycle: bool
    edges: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]
    count: int
    tonight: int
    first_seen: int
    last_seen: int
    configs: Mapping[str, int]
    histogram: Mapping[Outcome, tuple[int, str]]
    allowed: tuple[Outcome, ...]
    nearest: Outcome | None
    replay: str
    script: str = ""
    script_shows_it: bool = False
    known: str = ""
    also: tuple[str, ...] = ()
    arcs: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Its name and its ops, each once."""
        ops = Counter(node.op for node in self.entry.test.effects)
        told = (op if n == 1 else f"{n} {op}" for op, n in ops.items())
        return f"{self.entry.test.name}: {' + '.join(told)}"

    @property
    def where(self) -> str:
        """The executor, and the class of its configurations."""
        if self.config_class.startswith(f"{self.executor}/"):
            return self.config_class
        return f"{self.executor}/{self.config_class}"

    @property
    def observed(self) -> Mapping[Outcome, tuple[int, str]]:
        """The histogram; if there is none, what the finding's file has of it."""
        if self.histogram or self.entry.finding is None:
            return self.histogram
        return {o: (count, "forbidden") for o, count in self.entry.finding.forbidden}

    @property
    def forbidden(self) -> tuple[Outcome, ...]:
        """The forbidden outcomes seen, the most frequent first."""
        shown = [o for o, (_, verdict) in self.observed.items() if verdict == "forbidden"]
        return tuple(sorted(shown, key=lambda o: (-self.observed[o][0], str(o))))

    @property
    def executions(self) -> int:
        """How many there were of the minimized test."""
        if not self.histogram and self.entry.finding is not None:
            return self.entry.finding.executions
        return sum(count for count, _ in self.histogram.values())

    @property
    def seen(self) -> str:
        """What was seen, in a line."""
        if not self.forbidden:
            return str(self.sort)
        outcome = self.forbidden[0]
        return f"{outcome}, {self.observed[outcome][0]:,} times in {self.executions:,} executions"


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of the known-findings file, and whether this night saw it."""

    key: str
    why: str
    seen: bool


@dataclass(frozen=True, slots=True)
class Share:
    """What one executor's configuration, or one family on one executor, cost and found.

    `reached` is the share of allowed outcomes seen on the median graph, None if unknown;
    `unknown` says why graphs were not decided, with how many; `refused_for` what refused
    graphs have that it does not take: a graph may have several such features.
    """

    name: str
    graphs: int
    outcomes: int
    seconds: float
    findings: int
    forbidden_graphs: int
    reached: float | None
    refused: int = 0
    crashed: int = 0
    timed_out: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    refused_for: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moment:
    """How far it was at one moment, for throughput over time."""

    at: int
    graphs: int
    outcomes: int
    findings: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A worker of the night: turns that it did, ends that it came to."""

    name: str
    host: str
    turns: int
    lost: int
    busy_s: float
    crashed: int
    timed_out: int


@dataclass(frozen=True, slots=True)
class Kill:
    """One mutant in the self-test of this night.

    `seconds` until the first report, None if it was not reported; `by` the family.
    """

    mutant: str
    executor: str
    seconds: float | None
    graphs: int
    by: str = ""
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A line of an earlier night, for trends."""

    started: int
    graphs: int
    outcomes: int
    findings: int
    new: int
    mutation_score: float | None


@dataclass(frozen=True, slots=True)
class NightlyReport:
    """One night, whole; while it goes on, so far."""

    folder: str
    command: str
    seed: int
    started: int
    ended: int | None
    spent_s: float
    """That it ran: an interrupted night rests until it is resumed."""
    asked_s: float
    findings: tuple[NightlyFinding, ...]
    known: tuple[Known, ...]
    by_config: tuple[Share, ...]
    by_family: tuple[Share, ...]
    """Named ``executor/family``."""
    moments: tuple[Moment, ...]
    workers: tuple[WorkerHealth, ...]
    kills: tuple[Kill, ...]
    canary: tuple[int, int]
    """Runs, and how many of them were reported."""
    unconfirmed: int
    not_minimized: int
    """Graphs that showed something forbidden, and for which there was no time."""
    versions: Mapping[str, Mapping[str, str]]
    earlier: tuple[Earlier, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Configurations that cannot run here, and why."""
    problem: str = ""
    interrupted: bool = False
    undecided: int = 0
    """Of `not_minimized`, those that no entry of the known-findings file can explain."""

    @property
    def new(self) -> tuple[NightlyFinding, ...]:
        """Findings that no entry of the known-findings file names."""
        return tuple(each for each in self.findings if not each.known)

    @property
    def stale(self) -> tuple[Known, ...]:
        """Entries of the known-findings file that this night did not see."""
        return tuple(each for each in self.known if not each.seen)

    @property
    def until(self) -> int:
        """When it ended; of one that goes on, the last moment that is known of it."""
        return self.ended or max((each.at for each in self.moments), default=self.started)

    @property
    def graphs(self) -> int:
        """Generated and run."""
        return self.moments[-1].graphs if self.moments else 0

    @property
    def outcomes(self) -> int:
        """Executions that were judged."""
        return self.moments[-1].outcomes if self.moments else 0

    @property
    def verdict(self) -> str:
        """How it stands, in a line."""
        if self.exit_code() == 2:
            return f"broken: {self.complaint}"
        so_far = " so far" if self.ended is None else ""
        told = [counted(len(self.new), "new finding")] if self.new else []
        if self.undecided:
            told.append(f"{counted(self.undecided, 'graph')} not minimized that may be new")
        return f"{' and '.join(told) or 'nothing new'}{so_far}"

    @property
    def complaint(self) -> str:
        """Why nobody should trust it; "" if there is no reason not to."""
        runs, reported = self.canary
        unreported = [each.mutant for each in self.kills if each.seconds is None]
        told = [self.problem] if self.problem else []
        if reported < runs or (self.ended is not None and not runs):
            told.append(f"the canary was reported in {reported} of {counted(runs, 'run')}")
        if unreported:
            told.append(f"not reported: {', '.join(unreported)}")
        return "; ".join(told)

    @property
    def mutation_score(self) -> float | None:
        """Share of mutants reported; None if there was no self-test."""
        if not self.kills:
            return None
        return sum(each.seconds is not None for each in self.kills) / len(self.kills)

    def exit_code(self) -> int:
        """0 nothing new, 1 something new, 2 broken: canary or a mutant unreported, or worse.

        What is not minimized is something new, unless a known cause may explain it.
        """
        if self.complaint:
            return 2
        return 1 if self.new or self.undecided else 0
