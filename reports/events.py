"""Events of a campaign: all that is kept of it.

A campaign is a stream of events, in shards. The store keeps them (`fuzz.store.store`), and
every report is a fold over them (`litmusfuzz.reports.fold`). An event is written when what it says
has happened, and a file that it names exists before.

Times are seconds since 1970, UTC, as the process that wrote the event had them (`now`): between
processes, clocks may differ by days. Durations are seconds. A configuration is named by its
executor and its own name. A test is named by its `index`, which is unique in a campaign; with the
campaign's seed and the family it generates the test again. What one configuration showed on a
test is named by index, executor and configuration.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from litmusfuzz.corpus.textfile import Setting  # noqa: TC001 - msgspec reads the annotations
from litmusfuzz.reports.tables import counted

VERSION: Final = 5
"""Of the event stream, in the first event of a campaign and of each shard."""
Long = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
"""Of tests, say: more than any campaign has. The sum of a few is a `Long`."""
Positive = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
Workers = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86400)]
ShardDuration = Annotated[float, msgspec.Meta(gt=0, le=10 * 365 * 86400)]
Weight = Annotated[float, msgspec.Meta(gt=0, lt=1000)]

DOES_NOT_START: Final = "does not start"
"""Beginning of the reason why a configuration is unavailable, if its worker died at its start."""


class FindingKind(StrEnum):
    """Kind of a finding."""

    FORBIDDEN = "forbidden"
    """An outcome outside the allowed set, confirmed in a fresh process."""
    UNSOUND = "unsound"
    """Clusters that add an outcome, by translation validation, without an execution."""
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


class _Clock:
    """Microseconds since 1970, by the clock as it was when the process started."""

    def __init__(self) -> None:
        self._started_us = round(1e6 * (time.time() - time.monotonic()))
        self._last_us = 0
        self._lock = threading.Lock()

    def read_us(self) -> int:
        """The time, later than at every call before."""
        with self._lock:
            now_us = self._started_us + round(1e6 * time.monotonic())
            self._last_us = max(now_us, self._last_us + 1)
            return self._last_us


_CLOCK: Final = _Clock()


def now() -> float:
    """Seconds since 1970, by the clock as it was when the process started.

    Never jumps, whatever is done to the clock: differences between times of one process are
    durations. No two calls return the same time, so that it tells apart events that nothing else
    does.
    """
    return _CLOCK.read_us() / 1e6


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="event",
    tag=True,
):
    """Any event; `at` is when it happened."""

    at: float = msgspec.field(default_factory=now)


Run = tuple[int, str, str]
"""Index of a test, and the executor and configuration that ran it."""


class EventOfRun(Event, frozen=True, kw_only=True):
    """Any event about a test in one configuration."""

    index: int
    executor: str
    configuration: str

    @property
    def run(self) -> Run:
        """The test and its configuration."""
        return self.index, self.executor, self.configuration


# --- the campaign ----------------------------------------------------------------------


class Configured(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A configuration that a campaign fuzzes, what it guarantees, and the model that judges it.

    `executor_class` tells configurations apart whose findings are distinguished
    (`fuzz.finding.canonical.executor_class`). A test runs in some of the configurations with the
    same `group`. `point` has its settings in the executor's `Space`; it is empty without one. The
    name ``product`` stands for all configurations that are generated in the space.
    """

    executor: str
    name: str
    guarantees: str
    model: str
    executor_class: str
    group: int = 0
    point: Mapping[str, Setting] = {}

    @property
    def title(self) -> str:
        """Executor and configuration."""
        return f"{self.executor}/{self.name}"


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration space of an executor (`fuzz.executors.configuration_space`).

    `values` has the values of each setting, the plain one first; `impossible` the pairs of settings
    with values that no configuration has: setting, value, setting, value. `ops` are the resource
    ops that the executor takes. Values of `seldom` settings are in few configurations, and in no
    pairs.
    """

    values: Mapping[str, tuple[Setting, ...]]
    impossible: tuple[tuple[str, Setting, str, Setting], ...]
    ops: tuple[str, ...] = ()
    seldom: tuple[str, ...] = ()


class Options(Event, frozen=True, kw_only=True):
    """What a campaign is asked for: the options of `litmusfuzz run` and `litmusfuzz nightly`.

    The command line fills them (`fuzz.cli.options`), the first event of a campaign has them, and
    each shard gets them (`fuzz.campaign.settings`). The limits in their types hold for the command
    line as well as for the store.

    Attributes
    ----------
    seed : int
    asked_s : float
        Time to fuzz for.
    tests : int, optional
        The campaign ends after `asked_s` or after so many tests, whichever is first.
    workers : int
        Processes for each executor; in a nightly run, shards at a time.
    families : mapping of str to float
        Families to generate, each with its weight; if empty, all that have a weight by default and
        that an executor supports.
    seeds : mapping of str to str
        Tests as texts of litmus files, by name: the family `mutations` makes others of them.
    count : int, optional
        Executions of each test by each executor; None for few at first, and more where they are
        earned (`fuzz.campaign.depth`).
    noise : str
        In the notation of ``--noise``.
    as_generated : bool
        True if tests are run as they are generated: no names, order or lanes are varied
        (`fuzz.campaign.variation`).
    judge_by : str
        Names the model that judges all outcomes; "" for the one that each configuration guarantees.
    deadly_ops : tuple of str
        Ops that are known to end their process: few tests are generated with them
        (`fuzz.campaign.campaign_executor.support_of`).
    known : str, optional
        Path of the user's known-findings file.
    shipped_known : bool
        True if those that come with LitmusFuzz are known as well.
    python : str, optional
        Another environment's interpreter for the executors' workers
        (`fuzz.executors.interpreter`). The canary's worker does not use it: the canary tests
        LitmusFuzz itself.
    spawn : bool
        True if each worker is a new interpreter instead of a fork of a server.
    min_graphs : int
        Graphs that each configuration has to run.
    unattended : bool
        True for a nightly run; the options below are of such runs.
    shard_s : float, optional
        Length of a shard.
    selftest_s : float
        Limit on the self-test with mutants; 0 for none.
    disk_bytes : int
        Limit on the size of the folder; 0 for none.
    """

    seed: Long
    asked_s: Duration
    tests: Number | None = None
    workers: Workers = 1
    families: Mapping[str, Weight] = {}
    seeds: Mapping[str, str] = {}
    count: Positive | None = None
    noise: str = "default"
    as_generated: bool = False
    judge_by: str = ""
    deadly_ops: tuple[str, ...] = ()
    known: str | None = None
    shipped_known: bool = False
    python: str | None = None
    spawn: bool = False
    min_graphs: Number = 1
    unattended: bool = False
    shard_s: ShardDuration | None = None
    selftest_s: Duration = 0.0
    disk_bytes: Long = 0


class CampaignStarted(Options, frozen=True, kw_only=True):
    """The first event: the options, and the configurations that they name.

    `spaces` has the configuration spaces of those executors that run in several configurations.
    `number` gives the order of campaigns in folders beside each other: a clock may be set back.
    """

    version: int = VERSION
    command: str
    configurations: tuple[Configured, ...]
    spaces: Mapping[str, Space] = {}
    number: int = 0


class CampaignResumed(Event, frozen=True, kw_only=True):
    """The campaign continues in another process, until `asked_s` seconds in all are spent."""

    asked_s: Duration
    tests: Long | None = None
    workers: Workers = 1


class Progress(Event, frozen=True, kw_only=True):
    """Time spent so far, and the size of the folder; written every few seconds or more."""

    spent_s: float
    disk_bytes: int = 0


class Problem(Event, frozen=True, kw_only=True):
    """A reason not to trust the campaign, or to end it."""

    message: str


class CampaignEnded(Event, frozen=True, kw_only=True):
    """The process that ran the campaign has ended it, by itself or because it was interrupted."""

    spent_s: float
    interrupted: bool = False


# --- shards ----------------------------------------------------------------------------


class ShardPlanned(Event, frozen=True, kw_only=True):
    """A shard starts: configurations by executor, and the unreduced findings that it minimizes.

    The self-test is a shard of the executor ``selftest`` without configurations.
    """

    configurations: Mapping[str, tuple[str, ...]]
    minimizes: tuple[str, ...] = ()
    """Files of unreduced findings."""
    workers: int = 1
    """For each executor."""


class ShardStarted(Event, frozen=True, kw_only=True):
    """The shard's process has started its workers."""

    version: int = VERSION
    host: str
    pid: int
    versions: Mapping[str, Mapping[str, str]]
    """Versions of the frameworks by executor."""


class ShardEnded(Event, frozen=True, kw_only=True):
    """The shard has ended; `lost` if its process was."""

    seconds: float = 0.0
    lost: bool = False
    problem: str = ""
    drivers: Mapping[str, Mapping[str, str]] = {}
    """By executor, the devices on which tests ran, with their drivers."""


class ConfigurationGenerated(Event, frozen=True, kw_only=True):
    """A configuration was generated, in the space of its executor; tests will run in it."""

    configuration: Configured


class ConfigurationUnavailable(Event, frozen=True, kw_only=True):
    """A configuration cannot run here."""

    executor: str
    configuration: str
    why: str


# --- tests -----------------------------------------------------------------------------


class Generated(Event, frozen=True, kw_only=True):
    """A test was generated, within the support of an executor.

    `ops` counts its resource ops by kind. `lacking` has the features that an executor, by its
    configuration's title, lacks for it; `not_run` has titles of configurations that were too busy
    to take it, and `given` of those that are to run it. `clusters` is the verdict on clusters that
    it was generated with, `racing` says whether one of these has several resource ops and races.
    """

    index: int
    family: str
    executor: str
    ops: Mapping[str, int]
    lacking: Mapping[str, tuple[str, ...]] = {}
    not_run: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    clusters: str = ""
    racing: bool = False
    generating_s: float = 0.0
    judging_s: float = 0.0
    validating_s: float = 0.0


class Executions(EventOfRun, frozen=True, kw_only=True):
    """What executions of a test in one configuration showed.

    `noise`, `run_seed` and `count` are of its run. `allowed` is the number of allowed outcomes,
    None if they are many or not counted, and `reached` how many of these were seen so far. `end` is
    "judged", "crashed", "timed out", or "refused: FEATURE", which is "time" if it is slow. If an
    outcome is forbidden, `unreduced` names the file of the test, and `key` the known finding that
    explains it, if one does; `symptoms` says how the outcomes are wrong, and `looks_like` is the
    key of what is known that the test contains, if there is such. `counters` are the executor's,
    since its last event, and its slow jobs (`fuzz.campaign.slots`).
    """

    family: str
    model: str
    noise: str = "default"
    run_seed: int
    count: int
    verdicts: Mapping[str, int] = {}
    reached: int | None = None
    allowed: int | None = None
    seconds: float = 0.0
    judging_s: float = 0.0
    end: str = "judged"
    unreduced: str | None = None
    key: str | None = None
    symptoms: tuple[str, ...] = ()
    looks_like: str = ""
    counters: Mapping[str, float] = {}


class Searched(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The search of the schedules of a test in a configuration under control.

    Parameters
    ----------
    schedules : int
        Different schedules that the search has executed.
    executions : int
        Executions that it has begun: also those that were abandoned because they would have
        repeated a schedule, and those of narrower bounds on preemptions.
    whole : bool
        True if there are no other schedules.
    sampled : int
        Executions by schedulers after a search that was not.
    first : mapping of str to int
        How many outcomes the search has shown first, or each scheduler.
    """

    schedules: Number
    executions: Number
    whole: bool
    sampled: Number = 0
    first: Mapping[str, Number] = {}

    @property
    def extent(self) -> str:
        """How many schedules were executed, and whether these are all."""
        if self.whole:
            return f"all {counted(self.schedules, 'schedule')}"
        return f"{counted(self.schedules, 'schedule')} of more, and {self.sampled:,} samples"


class Executed(Executions, frozen=True, kw_only=True):
    """An executor has run a test, refused it, or died on it.

    `variation` says how the generated test was changed before it was run, "" if it was not
    (`litmusfuzz.fuzz.campaign.variation`), and `sha256` is the digest of the test, in JSON, as it
    was run. `parent` is the corpus test that it is a mutation of, or the seed, as ``seeds/NAME``.
    `searched` is of a configuration under control; `noise` has no effect there.
    """

    parent: str = ""
    variation: str = ""
    sha256: str
    searched: Searched | None = None


class Continued(Executions, frozen=True, kw_only=True):
    """A test that a configuration has run was executed more often: one round of executions.

    Rounds are numbered from 1 (`fuzz.campaign.depth`). `reached` is the number of allowed outcomes
    seen after the round, and `reached_before` that before; both are None where `allowed` is.
    """

    round: int
    reached_before: int | None = None


class NotRun(EventOfRun, frozen=True, kw_only=True):
    """A generated test was not run in a configuration: the time was up, or it is unavailable.

    A campaign that is resumed may run it later. A process that was killed writes no such events.
    """


@dataclass(frozen=True, slots=True)
class ExecutorTotals:
    """One executor's part in comparisons; each outcome counts once for each graph.

    `alone` counts outcomes that no other executor showed; `missed` those that another executor
    showed and this one's model allows.
    """

    model: str
    executions: int
    outcomes: int
    alone: int
    missed: int
    forbidden: int
    graphs: int = 1

    def __add__(self, other: ExecutorTotals) -> ExecutorTotals:
        """The totals of more graphs."""
        mine, others = astuple(self)[1:], astuple(other)[1:]
        return ExecutorTotals(self.model, *map(operator.add, mine, others))


class Compared(Event, frozen=True, kw_only=True):
    """Several executors have run a test; totals by the title of their configuration.

    `outcomes` lists each outcome with its counts and verdicts
    (`litmusfuzz.reports.differential.DifferentialComparison.as_json`), while the campaign has kept
    less than some megabytes of these.
    """

    index: int
    family: str
    totals: Mapping[str, ExecutorTotals]
    outcomes: tuple[Mapping[str, Any], ...] = ()


class ClustersChosen(EventOfRun, frozen=True, kw_only=True):
    """Verdicts of translation validation on clusters that an executor chose for a test.

    Parameters
    ----------
    verdicts : mapping of str to int
        Number of clusterings by verdict: an executor may cluster each copy of a test in another
        way. "not validated" is followed by the reason.
    racing : int
        Clusterings in which a cluster of several resource ops races.
    """

    verdicts: Mapping[str, int]
    racing: int = 0
    seconds: float = 0.0


# --- findings --------------------------------------------------------------------------


class SeenAgain(Event, frozen=True, kw_only=True):
    """A test shows a known finding; `index` is None where no execution showed it."""

    index: int | None
    executor: str
    configuration: str
    key: str


class ReductionStarted(EventOfRun, frozen=True, kw_only=True):
    """An unreduced finding is being minimized."""


class ReductionEnded(EventOfRun, frozen=True, kw_only=True):
    """It is no longer being minimized.

    `key` is that of the finding that it shows, "" if it is not minimized. `known` is True if that
    was known before.
    """

    key: str = ""
    known: bool = False
    executions: int = 0
    seconds: float = 0.0
    counters: Mapping[str, float] = {}


class FindingAdded(EventOfRun, frozen=True, kw_only=True):
    """A test shows a new finding.

    Parameters
    ----------
    key : str
        `fuzz.finding.canonical.key`.
    file : str
        Relative to the campaign's folder.
    entry : str
        The file's text.
    reason : tuple of str
        Sentences that say why the most frequent outcome is forbidden.
    is_cycle, arcs, edges, rules
        Of the reason; see `litmusfuzz.reports.report.ReportedFinding`.
    histogram : tuple of (outcome as plain data, count, verdict)
    needs : str
        The settings that it needs, in words: "only with the loop optimizer, in one thread". The
        entry has them as data; `configuration` is the one in which it was first seen.
    allowed_by : tuple of str
        Models, weaker than the judging one, that allow all of it.
    """

    key: str
    file: str
    entry: str
    kind: FindingKind = FindingKind.FORBIDDEN
    executor_class: str
    model: str = ""
    needs: str = ""
    cause: str
    reason: tuple[str, ...] = ()
    is_cycle: bool = False
    arcs: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    rules: tuple[str, ...] = ()
    histogram: tuple[tuple[Any, int, str], ...] = ()
    allowed_by: tuple[str, ...] = ()


class CauseCompared(EventOfRun, frozen=True, kw_only=True):
    """Experiments have decided whether a known cause explains what a test shows.

    Parameters
    ----------
    finding : str
        Key of the minimized finding; "" for a test that is not minimized.
    cause : str
        Key of the known cause, or of a finding of this campaign.
    verdict, why : str
        Of `fuzz.finding.experiments.Comparison`.
    experiments : tuple
        Of each the reason, the test, the configuration, the symptoms, the executions and how many
        of them showed it (`fuzz.finding.experiments.Experiment.as_json`).
    seconds : float
        Of the experiments on a test that is not minimized; others are part of a reduction.
    """

    finding: str = ""
    cause: str
    verdict: str
    why: str = ""
    experiments: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0


class CauseChecked(Event, frozen=True, kw_only=True):
    """A known cause was run, to see whether it still shows.

    `shows` is None if that is undecided: none of `executions` has shown it so far, and these are
    too few.
    """

    cause: str
    executor: str
    configuration: str
    executions: int
    seen: int
    shows: bool | None
    seconds: float = 0.0


class ScriptRun(Event, frozen=True, kw_only=True):
    """The standalone script of a finding, a file beside its own, was written, and run.

    One that a resumed campaign has written for a killed process was not run, and shows nothing yet.
    """

    key: str
    file: str
    """Of the finding."""
    shows_it: bool


class Confirmed(EventOfRun, frozen=True, kw_only=True):
    """A fresh process shows again what a test showed.

    Whatever came before: its process may have crashed, or another one not shown it.
    """


class Unconfirmed(EventOfRun, frozen=True, kw_only=True):
    """A fresh process did not show a test's forbidden outcome again, in so many executions.

    The test ran as it had when it showed it; the file has it. Each attempt is an event.
    """

    file: str
    executions: int = 0


class WorkerDied(Event, frozen=True, kw_only=True):
    """A worker crashed, hung, or had too much memory.

    `entry` is the text of the test that it ran, `ops` has the classes of its kernels. `suspects`
    are tests, each with its configuration, that showed a forbidden outcome in this process before:
    they are believed only after `Confirmed`. `traceback` is that of the exception that ended it, ""
    if none did; `log` is the file of what its process has written, "" if that is nothing.
    """

    kind: FindingKind
    executor: str
    configuration: str
    executor_class: str
    message: str
    file: str
    entry: str
    ops: tuple[str, ...]
    minimizing: bool = False
    suspects: tuple[tuple[int, str], ...] = ()
    traceback: str = ""
    log: str = ""


class CrashReduced(Event, frozen=True, kw_only=True):
    """A test on which an exception ended a worker was reduced; its script was run.

    Parameters
    ----------
    died_on : str
        File of the test as it was run (`WorkerDied.file`).
    raised : str
        Type and place of the exception (`fuzz.finding.worker_deaths.exception_of`).
    file, entry : str
        The file of the reduced test, and its text.
    executor, configuration : str
        With the fewest settings found.
    needs : str
        These settings, in words.
    complete : bool
        False if the time was up before all was tried.
    script_shows_it : bool or None
        None without a script.
    seconds : float
    """

    died_on: str
    raised: str
    file: str
    entry: str
    executor: str
    configuration: str
    needs: str
    complete: bool
    script_shows_it: bool | None
    seconds: float = 0.0


# --- checks of LitmusFuzz itself -------------------------------------------------------


class CanaryRun(Event, frozen=True, kw_only=True):
    """The canary ran."""

    reported: bool


@dataclass(frozen=True, slots=True)
class Kill:
    """One mutant in the self-test of a run.

    `seconds` are those until the first report, None if it was not reported, over `graphs` tests;
    `family` and `setup` name the family of the test that killed it, and how the test was run;
    `test` is its name.
    """

    mutant: str
    executor: str
    seconds: float | None
    graphs: int
    family: str = ""
    setup: str = ""
    test: str = ""


class MutantRun(Event, frozen=True, kw_only=True):
    """The self-test's result for one mutant."""

    kill: Kill


AnyEvent = (
    CampaignStarted
    | CampaignResumed
    | Progress
    | Problem
    | CampaignEnded
    | ShardPlanned
    | ShardStarted
    | ShardEnded
    | ConfigurationGenerated
    | ConfigurationUnavailable
    | Generated
    | Executed
    | Continued
    | NotRun
    | Compared
    | ClustersChosen
    | SeenAgain
    | ReductionStarted
    | ReductionEnded
    | FindingAdded
    | CauseCompared
    | CauseChecked
    | ScriptRun
    | Confirmed
    | Unconfirmed
    | WorkerDied
    | CrashReduced
    | CanaryRun
    | MutantRun
)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(AnyEvent)


def encode(event: Event) -> bytes:
    """One line of JSON, without its end."""
    return _ENCODER.encode(event)


def decode(line: bytes | str) -> AnyEvent:
    """An event from its line.

    Raises
    ------
    msgspec.MsgspecError
        Naming the field that is missing, unknown or of the wrong type.
    """
    try:
        event: AnyEvent = _DECODER.decode(line)
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from None
    return event
