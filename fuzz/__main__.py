"""The command line: the only place that parses flags, prints, and sets an exit code.

Exit codes: 0 clean, 1 a forbidden outcome, 2 usage or harness error, 3 only
unknown or timed out. Of `compare`: 0 the logs say the same, 1 they differ in a
forbidden outcome, 3 they differ in others, or it is not known in which.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import signal
import sys
import tempfile
import traceback
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

import corpus
from corpus.graph import MalformedTest
from corpus.outcome import STATUS_KEY, TORN, Outcome, Status, Verdict
from corpus.textfile import Digest, Entry, FileError, dumps, load, read_text, value_from_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from corpus.graph import LitmusTest
    from corpus.herd import Condition, State
    from corpus.outcome import Plain, Value
    from fuzz.campaign.cover import Limits
    from fuzz.campaign.replay import Replay
    from fuzz.executors.process import Worker
    from fuzz.executors.protocol import Config, Noise
    from fuzz.lifting import Lifter
    from oracles.allowed import AllowedSet, Witness
    from oracles.explorer import Explorer
    from oracles.model import Model
    from reports.allowed import Refuted, Witnessed
    from reports.bench import BenchReport
    from reports.clusters import ClustersReport
    from reports.comparison import Log
    from reports.cover import CoverReport
    from reports.kills import Row
    from reports.promises import PromisesReport
    from reports.replays import Replays
    from reports.speed import SpeedReport
    from reports.text import ReplayReport
    from reports.translation import TranslationReport

CLEAN, FORBIDDEN, USAGE, UNKNOWN = 0, 1, 2, 3
MAX_SEED = (1 << 63) - 1  # what a file holds
MAX_LOG_BYTES = 1 << 28
SUFFIXES = (".yaml", ".litmus")


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", str(value))
        if not match:
            self.fail(f"{value!r} is no duration; write 60s, 5m or 2h", param, ctx)
        seconds = float(match[1]) * {"ms": 0.001, "m": 60.0, "h": 3600.0}.get(match[2], 1.0)
        if not 0 < seconds <= 30 * 86400:
            self.fail(f"{value!r} is not between 0 and 30 days", param, ctx)
        return seconds


def _fail(message: str) -> NoReturn:
    """One line on standard error, exit 2."""
    click.echo(f"litmusfuzz: {message}", err=True)
    sys.exit(USAGE)


def _load(path: str) -> Entry:
    try:
        return load(path)
    except FileError as error:
        _fail(str(error))


def _model(name: str) -> Model:
    from oracles.model import PROMISES

    return PROMISES[name]


def _explored(
    path: str, test: LitmusTest, model: Model, budget: int | None
) -> tuple[Explorer, AllowedSet]:
    from oracles.allowed import ValueTooLarge

    explorer = _explorer(path, test, model, budget)
    try:
        return explorer, explorer.allowed_outcomes()
    except ValueTooLarge as error:
        _fail(f"{path}: {error}")


def _explorer(path: str, test: LitmusTest, model: Model, budget: int | None) -> Explorer:
    from oracles.allowed import ValueTooLarge
    from oracles.explorer import DEFAULT_BUDGET, Explorer

    chosen = DEFAULT_BUDGET if budget is None else replace(DEFAULT_BUDGET, states=budget)
    try:
        return Explorer(test, model, chosen)
    except ValueTooLarge as error:
        _fail(f"{path}: {error}")


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2))


_file = click.argument("file", type=click.Path())
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
_model_option = click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd"]),
    default=None,
    help="Memory model; rfc if not given.",
)
_one_model = click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd"]),
    default=None,
    help="Only that memory model; all if not given.",
)
_engine = click.option(
    "--engine",
    default=None,
    help="Of executor native: a name, a shared library's path, or module:object in Python.",
)
_threads = click.option(
    "--threads", type=click.IntRange(1, 256), default=None, help="Of that engine: a hard limit."
)
_noise = click.option(
    "--noise",
    default=None,
    help="What is varied between executions, as copies=64,pinned,delay_us_max=20; or adapt: each "
    "configuration finds out which settings reach most rare outcomes.",
)
_budget = click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=None,
    help="States to look at before an answer is 'unknown'.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="litmusfuzz")
def main() -> None:
    """Litmus tests for the concurrency semantics of dataflow graphs.

    Draws random resource graphs, computes what TensorFlow's memory model
    allows, runs them on real executors, and reports every outcome outside.
    """


# --- oracle ----------------------------------------------------------------------------


@main.command()
@_file
@click.option(
    "--outcome",
    "--explain",
    "wanted",
    default=None,
    help="Judge one: r0=2,r1=0 or X=[1,2] or Q=[[1,2],[3,4]] or _status=blocked.",
)
@_one_model
@_budget
@_json
def oracle(
    file: str, wanted: str | None, model_name: str | None, budget: int | None, as_json: bool
) -> None:
    """Print the outcomes that each memory model allows for FILE.

    With --explain, judge one, with a witness or the reason; what it does not
    name may have any value. Exits 1 if every model asked forbids it.
    """
    from reports.allowed import ModelSet, SetsReport

    test = _load(file).test
    if wanted is not None:
        _judge_one(file, test, wanted, _models(model_name), budget, as_json=as_json)
    sets = []
    for model in _models(model_name):
        _, allowed = _explored(file, test, model, budget)
        sets.append(
            ModelSet(model.name, frozenset(allowed.witnesses), allowed.complete, allowed.states)
        )
    report = SetsReport(test, tuple(sets))
    if as_json:
        _print_json(report.as_json())
    else:
        click.echo(report.text())
    sys.exit(CLEAN if report.complete else UNKNOWN)


def _models(name: str | None) -> tuple[Model, ...]:
    """That model, or all of semantics.md, the loosest first."""
    from oracles.model import MODELS

    return tuple(MODELS.values()) if name is None else (_model(name),)


_VALUE = re.compile(
    r"\s*(?P<name>[\w.]+)\s*=\s*"
    r"(?P<value>-?\d{1,18}|[a-z]+|\[[-\d,\s]*\]|\[(?:\s*\[[-\d,\s]*\]\s*,?)*\s*\])"
    r"\s*(?:,\s*|\s|$)",
    re.ASCII,
)


def _parse_outcome(test: LitmusTest, text: str) -> tuple[dict[str, Value], Status | None]:
    """``r0=2,X=[1,2],_status=blocked`` as values by name, and how it ended if that is said."""
    values: dict[str, Value] = {}
    status: Status | None = None
    position = 0
    while position < len(text):
        match = _VALUE.match(text, position)
        if not match:
            _fail(f"--outcome: cannot read {text[position:]!r:.80}; write r0=2,r1=0 or X=[1,2]")
        name, raw = match["name"], match["value"]
        position = match.end()
        if name in values or (name == STATUS_KEY and status):
            _fail(f"--outcome: {name!r} stands twice")
        if name == STATUS_KEY:
            if raw not in list(Status):
                _fail(f"--outcome: {name} is completed, blocked or failed, not {raw}")
            status = Status(raw)
            continue
        if name not in test.names:
            _fail(f"--outcome: {name!r} is not one of {', '.join([*test.names, STATUS_KEY])}")
        try:
            plain: Plain = raw if raw[0].isalpha() else json.loads(raw)
            values[name] = value_from_plain(test, name, plain)
        except ValueError as error:  # MalformedTest is one
            if isinstance(error, MalformedTest):
                _fail(f"--outcome: {error}")
            _fail(f"--outcome: cannot read {raw!r:.80}; write r0=2,r1=0 or X=[1,2]")
    if not values and status is None:
        _fail("--outcome: names no value")
    if values and status is Status.FAILED:
        _fail("--outcome: a failed outcome has no values")
    return values, status


def _judge_one(
    file: str,
    test: LitmusTest,
    text: str,
    models: tuple[Model, ...],
    budget: int | None,
    *,
    as_json: bool,
) -> NoReturn:
    from oracles.allowed import ValueTooLarge
    from reports.allowed import VerdictReport

    values, status = _parse_outcome(test, text)
    verdicts: dict[Model, Verdict] = {}
    witnesses: dict[Model, Witnessed] = {}
    try:
        for model in models:
            explorer = _explorer(file, test, model, budget)
            verdicts[model], found = _membership(explorer, values, status)
            if found is not None:
                witnesses[model] = _witnessed(explorer, found)
    except ValueTooLarge as error:
        _fail(f"{file}: {error}")
    forbidding = [model for model, verdict in verdicts.items() if verdict is Verdict.FORBIDDEN]
    # A stricter model's order is one of a looser, whose reason holds there as well.
    strictest = [m for m in witnesses if not any(m.axioms < o.axioms for o in witnesses)]
    loosest = [m for m in forbidding if not any(o.axioms < m.axioms for o in forbidding)]
    report = VerdictReport(
        test,
        ({} if status is None else {STATUS_KEY: str(status)}) | _plain(test, values),
        {model.name: str(verdict) for model, verdict in verdicts.items()},
        tuple(witnesses[model] for model in strictest),
        tuple(_refuted(test, model, values, status) for model in loosest),
    )
    if as_json:
        _print_json(report.as_json())
    else:
        click.echo(report.text())
    found_verdicts = set(verdicts.values())
    if found_verdicts & {Verdict.ALLOWED, Verdict.UNSPECIFIED}:
        sys.exit(CLEAN)
    sys.exit(UNKNOWN if Verdict.UNKNOWN in found_verdicts else FORBIDDEN)


def _plain(test: LitmusTest, values: Mapping[str, Value]) -> dict[str, Plain]:
    return Outcome(tuple((name, values[name]) for name in test.names if name in values)).plain


def _membership(
    explorer: Explorer, values: Mapping[str, Value], status: Status | None
) -> tuple[Verdict, Outcome | None]:
    """The verdict on every outcome with those values, and what to ask a witness for.

    What is not named may be anything, and (`status`) how it ended as well.
    """
    if TORN in values.values():
        return Verdict.FORBIDDEN, None
    test = explorer.test
    statuses = [Status.COMPLETED] if status is None else [status]
    if status is None and {"queues", "critical sections"} & test.features:
        statuses.append(Status.BLOCKED)
    verdict = Verdict.FORBIDDEN
    for each in statuses:
        # For the core None is a value that was not seen, and matches any.
        pairs = () if each is Status.FAILED else ((n, values.get(n)) for n in test.names)
        asked = Outcome(cast("tuple[tuple[str, Value], ...]", tuple(pairs)), each)
        found = explorer.judge(asked)
        if found in (Verdict.ALLOWED, Verdict.UNSPECIFIED):
            return found, asked
        if found is Verdict.UNKNOWN:
            verdict = found
    return verdict, None


def _witnessed(explorer: Explorer, asked: Outcome) -> Witnessed:
    from oracles.reference import outcome_of
    from reports.allowed import Witnessed

    order = explorer.witness(asked)
    assert order is not None, "allowed, but by no order"
    outcome = outcome_of(explorer.test, explorer.model, order)
    return Witnessed(explorer.model.name, outcome, tuple(map(str, order)))


def _refuted(
    test: LitmusTest,
    model: Model,
    wanted: Mapping[str, Value] | Outcome,
    status: Status | None = None,
) -> Refuted:
    from oracles.reason import explain
    from reports.allowed import Refuted

    reason = explain(test, model, wanted, status=status)
    if reason is None:
        return Refuted(model.name)
    return Refuted(
        model.name,
        reason.steps,
        bool(reason.cycle),
        tuple(map(str, reason.edges)),
        reason.broken,
    )


# --- validate --------------------------------------------------------------------------


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--clusters",
    "source",
    default=None,
    help="Whose: file, ours, tf, tf-unchecked (TensorFlow without its safety checks), or a "
    "mutant's; if not given, the file's, or ours if it has none.",
)
@_budget
@_json
def validate(files: tuple[str, ...], source: str | None, budget: int | None, as_json: bool) -> None:
    """Decide whether clusters are sound, without running anything.

    They are if each outcome that the clustered graph allows is one that the
    graph without them allows, both under rfc. TensorFlow's are read from what it
    dumps, and compared with ours. Exits 1 if some are not, 3 if that is not
    known of some.
    """
    from fuzz.clusterings import CLUSTERINGS
    from fuzz.lifting import SOURCES, Lifter

    if source is not None and source in SOURCES:
        with closing(Lifter(source)) as lift:
            reports = [_lifted(file, _load(file).test, source, lift, budget) for file in files]
    elif source is None or source in CLUSTERINGS:
        reports = [_validated(file, _load(file).test, source, budget) for file in files]
    else:
        _fail(f"--clusters: no {source!r}; there are {', '.join((*CLUSTERINGS, *SOURCES))}")
    if as_json:
        _print_json([report.as_json() for report in reports])
    else:
        click.echo("\n\n".join(report.text() for report in reports))
    verdicts = {report.verdict for report in reports}
    if "unsound" in verdicts:
        sys.exit(FORBIDDEN)
    sys.exit(UNKNOWN if "unknown" in verdicts else CLEAN)


def _lifted(
    file: str, test: LitmusTest, source: str, lift: Lifter, budget: int | None
) -> TranslationReport:
    from fuzz.lifting import NotLifted, kept_apart
    from reports.translation import TranslationReport

    try:
        clustered = lift(test)
    except NotLifted as error:
        return TranslationReport(file, test.name, source, (), "unknown", problem=str(error))
    report = _judged(file, clustered, source, budget)
    return replace(report, apart=tuple(f"{a} and {b}" for a, b in kept_apart(clustered)))


def _validated(
    file: str, test: LitmusTest, source: str | None, budget: int | None
) -> TranslationReport:
    from fuzz.clusterings import CLUSTERINGS
    from fuzz.passes.clustering import RegionRefused
    from reports.translation import TranslationReport

    name = source or ("file" if test.clusters else "ours")
    try:
        clustered = CLUSTERINGS[name](test)
    except MalformedTest as error:
        return TranslationReport(file, test.name, name, (), "unsound", problem=str(error))
    except RegionRefused as error:
        _fail(f"{file}: {error}")
    return _judged(file, clustered, name, budget)


def _judged(file: str, clustered: LitmusTest, source: str, budget: int | None) -> TranslationReport:
    from fuzz.passes.clustering import Rule, broken
    from oracles.allowed import ValueTooLarge
    from oracles.explorer import DEFAULT_BUDGET
    from oracles.model import RFC
    from oracles.translation import validate
    from reports.allowed import Witnessed
    from reports.translation import TranslationReport

    states = DEFAULT_BUDGET.states if budget is None else budget
    try:
        found = validate(clustered, replace(DEFAULT_BUDGET, states=states))
    except ValueTooLarge as error:
        _fail(f"{file}: {error}")
    breaches = broken(clustered)
    report = TranslationReport(
        file,
        clustered.name,
        source,
        clustered.clusters,
        str(found.verdict),
        found.outcomes,
        broken=tuple(map(str, breaches)),
        pairwise=all(each.rule is not Rule.UNSAFE_PAIR for each in breaches),
    )
    if found.added is None:
        return report
    original = replace(clustered, clusters=())
    return replace(
        report,
        witness=Witnessed(RFC.name, found.added, tuple(map(str, found.witness))),
        reason=_refuted(original, RFC, found.added),
    )


# --- show ------------------------------------------------------------------------------


@main.command()
@_file
@click.option("--dot", is_flag=True, help="Print the graph in Graphviz's language only.")
@_json
def show(file: str, dot: bool, as_json: bool) -> None:
    """Draw the graph in FILE, as text and as DOT."""
    from reports import drawing

    entry = _load(file)
    if as_json:
        import yaml

        text = dumps(entry)
        _print_json(
            {
                "file": yaml.load(text, Loader=yaml.CSafeLoader),
                "text": drawing.text(entry.test),
                "dot": drawing.dot(entry.test),
            }
        )
        return
    if not dot:
        click.echo(drawing.text(entry.test))
        click.echo()
    click.echo(drawing.dot(entry.test))


# --- script ----------------------------------------------------------------------------


@main.command()
@_file
@click.option("--out", "-o", type=click.Path(), default=None, help="Write it there instead.")
@_json
def script(file: str, out: str | None, as_json: bool) -> None:
    """Print the finding in FILE as a Python script that needs TensorFlow only."""
    from fuzz.campaign.scripts import script_of
    from oracles.reason import explain
    from reports.script import NoScript

    entry = _load(file)
    found = entry.finding
    try:
        reason = ""
        if found is not None and not found.forbidden[0][0].torn:
            reason = str(explain(entry.test, _model(found.model), found.forbidden[0][0]) or "")
        text = script_of(entry, reason)
    except NoScript as error:
        _fail(f"{file}: {error}")
    if out is not None:
        try:
            Path(out).write_text(text, encoding="utf-8")
        except OSError as error:
            _fail(f"{out}: {error.strerror}")
    if as_json:
        _print_json({"file": out, "script": text})
    else:
        click.echo(out if out is not None else text, nl=out is not None)


# --- run -------------------------------------------------------------------------------


@main.command()
@click.option("--time", "time_s", type=_Duration(), default="60s", help="How long to fuzz.")
@click.option("--tests", type=click.IntRange(min=1), default=None, help="At most so many graphs.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="Random if not given.")
@click.option(
    "--executors",
    default="tf",
    help="Names, with commas; NAME, NAME:CONFIG, or several configurations that share its time, "
    "each graph in one of them: 'tf:*', 'tf:grappler*' (in quotes, for the shell).",
)
@click.option(
    "--families",
    default=None,
    help="Names, with commas, each with a weight if wanted, as in dag=3,cycles; else all that "
    "one of them can run. What still finds something is drawn more often.",
)
@click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd", "promised"]),
    default=None,
    help="Memory model; promised is what each executor promises in its configuration, and "
    "taken for several executors or configurations. For one: rfc.",
)
@_engine
@_threads
@_noise
@click.option("--out", type=click.Path(), default="findings", help="Where findings are written.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Processes per executor.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions per graph.")
@_json
def run(
    time_s: float,
    tests: int | None,
    seed: int | None,
    executors: str,
    families: str | None,
    model_name: str | None,
    engine: str | None,
    threads: int | None,
    noise: str | None,
    out: str,
    workers: int,
    count: int | None,
    as_json: bool,
) -> None:
    """Fuzz: random graphs, judged, until the time is up.

    Several executors run the same graphs, and are set side by side. Exits 1 if
    a forbidden outcome was seen; findings lie in --out.
    """
    import random

    from fuzz.campaign.loop import Campaign
    from fuzz.campaign.settings import Settings
    from fuzz.campaign.tuning import CANDIDATES
    from fuzz.executors.protocol import Noise
    from fuzz.executors.table import CANARY
    from reports.summary import summary
    from reports.terminal import LiveView

    if noise == "adapt" and tests is not None:
        _fail("--noise adapt: goes by the clock; with --tests, which repeats, name the settings")
    chosen = _systems(executors, engine, threads)
    if any(name == CANARY for name, *_ in chosen):
        _fail(f"--executors: {CANARY} comes on top of those named, in every run")
    drawn = _families(families, [name for name, *_ in chosen])
    alone = sum(len(configs) for _, *configs in chosen) == 1
    judge_by = model_name or ("rfc" if alone else "promised")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        _fail(f"--out: {out}: {error.strerror}")
    settings = Settings(
        seed=random.SystemRandom().randrange(1 << 31) if seed is None else seed,
        out=folder,
        executors=tuple(chosen),
        time_s=time_s,
        tests=tests,
        workers=workers,
        families=tuple(drawn),
        weights=drawn,
        model=None if judge_by == "promised" else _model(judge_by),
        noises=CANDIDATES if noise == "adapt" else (_noisy(noise, Noise()),),
        command=shlex.join(["litmusfuzz", *sys.argv[1:]]),
    )
    if count is not None:
        settings = replace(settings, count=count)
    stream = sys.stderr if as_json else sys.stdout
    # What a job scheduler sends ends the run like Ctrl-C: with all that was found.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with LiveView(stream, time_s) as view:
        record = Campaign(settings, view).run()
    if as_json:
        _print_json(record.as_json())
    else:
        click.echo(summary(record))
    if record.problem:
        click.echo(f"litmusfuzz: {record.problem}", err=True)
    sys.exit(record.exit_code())


def _executors(
    named: str, only_config: str | None, engine: str | None, threads: int | None
) -> list[tuple[str, Config]]:
    """The executors asked for, each in a configuration of its own; or one, in that."""
    from fuzz.executors.table import UnknownExecutor, configuration

    chosen: list[tuple[str, Config]] = []
    parts = named.split(",")
    if only_config and len(parts) > 1:
        _fail("--config: is of one executor; for several write NAME:CONFIG")
    for part in parts:
        name, _, config = part.strip().partition(":")
        try:
            made = configuration(name, only_config or config or None)
        except UnknownExecutor as error:
            _fail(f"--executors: {error}")
        made = _on_engine(name, made, engine, threads)
        if (name, made) in chosen:
            _fail(f"--executors: {name}/{made.name} stands twice")
        chosen.append((name, made))
    return chosen


def _systems(
    named: str, engine: str | None, threads: int | None
) -> list[tuple[str, *tuple[Config, ...]]]:
    """The executors asked for, each with the configurations that a pattern names."""
    from fnmatch import fnmatchcase

    from fuzz.executors.table import UnknownExecutor, executor_class

    systems: list[tuple[str, *tuple[Config, ...]]] = []
    for part in named.split(","):
        name, _, pattern = part.strip().partition(":")
        if not set("*?[") & set(pattern):
            systems += _executors(part, None, engine, threads)
            continue
        try:
            known = executor_class(name).configurations()
        except UnknownExecutor as error:
            _fail(f"--executors: {error}")
        if engine or threads:
            _fail(f"--engine, --threads: of one configuration, not of {part.strip()}")
        chosen = [config for config in known if fnmatchcase(config.name, pattern)]
        if not chosen:
            there = ", ".join(config.name for config in known)
            _fail(f"--executors: {name} has no configuration {pattern!r}; there are {there}")
        systems.append((name, *chosen))
    all_named = [(name, config.name) for name, *configs in systems for config in configs]
    for number, (name, config) in enumerate(all_named):
        if (name, config) in all_named[:number]:
            _fail(f"--executors: {name}/{config} stands twice")
    return systems


def _families(wanted: str | None, executors: list[str]) -> dict[str, float]:
    """The families asked for, with their weights; each executor can run one of them."""
    from fuzz.executors.table import executor_class
    from fuzz.strategies import FAMILIES, FEATURES, families_for

    weights: dict[str, float] = {}
    for part in wanted.split(",") if wanted else ():
        name, _, weight = (each.strip() for each in part.partition("="))
        if name not in FAMILIES:
            _fail(f"--families: no family {name!r}; there are {', '.join(FAMILIES)}")
        if "=" in part and not re.fullmatch(r"\d{1,3}(\.\d{1,3})?", weight, re.ASCII):
            _fail(f"--families: a weight is as in {name}=3 or {name}=0.5, got {part.strip()!r}")
        weights[name] = float(weight or 1)
        if not weights[name]:
            _fail(f"--families: a weight is above 0, got {part.strip()!r}")
    for executor in executors:
        features = executor_class(executor).features
        if weights and not set(weights) & set(families_for(features)):
            lacks = sorted(set().union(*(FEATURES[name] for name in weights)) - features)
            _fail(f"--families: {executor} runs none of them: it refuses {', '.join(lacks)}")
    return weights


def _noisy(noise: str | None, base: Noise) -> Noise:
    from fuzz.executors.protocol import noise_named

    try:
        return base if noise is None else noise_named(noise, base)
    except ValueError as error:
        _fail(f"--noise: {error}")


def _on_engine(name: str, config: Config, engine: str | None, threads: int | None) -> Config:
    """The configuration with the engine and the threads that were asked for."""
    from fuzz.engines.settings import EngineSettings, UnknownEngine
    from fuzz.executors.table import configuration

    if engine is None and threads is None:
        return config
    settings: dict[str, Any] = dict(config.settings)
    if "engine" not in settings:
        _fail(f"--engine, --threads: executor {name} has no engines; native has")
    try:
        chosen = EngineSettings.chosen(
            engine or settings["engine"],
            threads,
            split=settings["split_updates"],
            strategy="" if engine else settings.get("strategy", ""),
            depth=0 if engine else settings.get("depth", 0),
        )
    except UnknownEngine as error:
        _fail(f"--engine, --threads: {error}")
    return configuration(name, chosen.name)


# --- replay ----------------------------------------------------------------------------


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    *("--executors", "--executor", "executors"),
    default=None,
    help="Others than the finding's; names, with commas; NAME or NAME:CONFIG.",
)
@click.option("--config", "config_name", default=None, help="Another configuration, of one.")
@_engine
@_threads
@click.option("--time", "time_s", type=_Duration(), default="50s", help="For each file, at most.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions of each.")
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=None, help="A finding's own if not given."
)
@click.option(
    "--schedule/--no-schedule",
    "schedule",
    default=None,
    help="Follow only a finding's recorded execution, or never; else that first, then runs.",
)
@click.option(
    "--log", "log_file", type=click.Path(), default=None, help="Write what was observed there too."
)
@click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor", "acd"]),
    default=None,
    help="Memory model; else the finding's or rfc, for several executors what each promises.",
)
@_budget
@_json
def replay(
    files: tuple[str, ...],
    executors: str | None,
    config_name: str | None,
    engine: str | None,
    threads: int | None,
    time_s: float,
    count: int | None,
    seed: int | None,
    schedule: bool | None,
    log_file: str | None,
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Run the tests in FILES again and print observed against allowed.

    A finding is run as it was found, in a new process: its recorded execution,
    if it has one, then others until its forbidden outcome shows or the time is
    up. Several executors do as many executions each, and are set side by side.
    Several files: one line each. --log writes histograms as litmus7 does, for
    `compare` and mcompare7. Exits 1 if a forbidden outcome was seen.
    """
    from fuzz.campaign.replay import DEFAULT_COUNT, Replay

    entries = [(file, _load(file)) for file in files]  # all mistakes before any work
    chosen = [
        _executors(*_found_on(entry, executors, config_name), engine, threads)
        for _, entry in entries
    ]
    several = len(chosen[0]) > 1
    if log_file is not None:
        if several:
            _fail("--log: holds what one executor showed")
        _unique_names(((file, entry.test) for file, entry in entries), "--log")
        # Now, so that a place where nothing can be written is known before the work.
        Path(log_file).write_text("", encoding="utf-8")
    if several and count is None and not schedule:
        count = DEFAULT_COUNT
    how = Replay(time_s, count, seed, schedule)
    workers: dict[str, Worker] = {}
    done: list[Replays] = []
    try:
        for (file, entry), on in zip(entries, chosen, strict=True):
            one = _Replaying(file, entry, how, budget, workers)
            for name, config in on:
                one.run(name, config, model_name or (config.promises if several else None))
            done.append(one.replays())
            if log_file is not None:
                _write_log(entry.test, done[-1].reports[0].histogram, log_file)
            if not as_json:
                click.echo(done[-1].text() if len(files) == 1 else done[-1].lines())
    except KeyboardInterrupt:
        click.echo("litmusfuzz: interrupted", err=True)
    finally:
        for worker in workers.values():
            worker.close()
    if as_json:
        data = [each.as_json() for each in done]
        _print_json(data[0] if len(files) == 1 and data else data)
    codes = {each.exit_code for each in done}
    if len(done) < len(files):
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def _found_on(entry: Entry, executors: str | None, config: str | None) -> tuple[str, str | None]:
    """Executors and configuration that were asked for; else those of the finding."""
    found = entry.finding
    named = executors or (found.executor if found else "tf")
    return named, config or (found.config if found and found.executor == named else None)


class _Replaying:
    """One file, on one executor after another."""

    def __init__(
        self,
        file: str,
        entry: Entry,
        how: Replay,
        budget: int | None,
        workers: dict[str, Worker],
    ) -> None:
        self.file = file
        self.entry = entry
        self.how = how
        self.budget = budget
        self.workers = workers
        self.reports: list[ReplayReport] = []
        self.not_run: dict[str, str] = {}
        self.explored: dict[str, tuple[Explorer, AllowedSet]] = {}

    def run(self, name: str, config: Config, model_name: str | None) -> None:
        """On one executor; it may refuse."""
        from fuzz.campaign.replay import replay_entry
        from fuzz.executors.process import Worker
        from reports.text import ReplayReport

        found = self.entry.finding
        model = _model(model_name or (found.model if found else "rfc"))
        if model.name not in self.explored:
            explored = _explored(self.file, self.entry.test, model, self.budget)
            self.explored[model.name] = explored
        explorer, allowed = self.explored[model.name]
        worker = self.workers.setdefault(name, Worker(name))
        # Another executor's record is followed only when that is asked for.
        same = found is not None and (name, config.name) == (found.executor, found.config)
        how = self.how if same else replace(self.how, schedule=bool(self.how.schedule))
        result = replay_entry(self.entry, explorer, worker, config, how)
        if result.problem:
            self.not_run[f"{name}/{config.name}"] = result.problem
            return
        assert result.judgement is not None
        report = ReplayReport(
            entry=self.entry,
            file=self.file,
            executor=name,
            config=config.name,
            model=model.name,
            histogram=result.judgement.histogram,
            verdicts={o: str(explorer.judge(o)) for o in result.judgement.histogram},
            allowed=tuple(allowed.witnesses),
            complete=allowed.complete,
            died=tuple(result.died),
            seconds=result.seconds,
            schedule=result.schedule,
        )
        self.reports.append(report)

    def replays(self) -> Replays:
        """What came of them all."""
        from reports.replays import Replays
        from reports.sides import Side, Sides

        if not self.reports:
            _fail(f"{self.file}: {next(iter(self.not_run.values()))}")
        sides = tuple(Side(r.executor, r.config, r.model, r.histogram) for r in self.reports)
        shown = {outcome for side in sides for outcome in side.histogram}
        allowed = {outcome for report in self.reports for outcome in report.allowed}
        verdicts = {
            model: {outcome: str(explorer.judge(outcome)) for outcome in shown | allowed}
            for model, (explorer, _) in self.explored.items()
            if any(side.model == model for side in sides)
        }
        unseen = tuple(allowed - shown)
        together = Sides(self.entry.test, sides, verdicts, unseen=unseen)
        return Replays(tuple(self.reports), self.not_run, together)


def _write_log(test: LitmusTest, histogram: Mapping[Outcome, int], path: str) -> None:
    """Append what one test showed, as litmus7 does."""
    from corpus.herd import condition_of, log

    with open(path, "a", encoding="utf-8") as file:
        file.write(log(test, histogram, condition_of(test), histogram=True))


def _unique_names(tests: Iterable[tuple[str, LitmusTest]], what: str) -> None:
    """Refuse two files with tests of one name, which could not be told apart."""
    files: dict[str, str] = {}
    for file, test in tests:
        if test.name in files:
            _fail(f"{what}: {files[test.name]} and {file} both have the name {test.name}")
        files[test.name] = file


# --- force -----------------------------------------------------------------------------


@main.command()
@_file
@click.option(
    "--outcome",
    "wanted",
    required=True,
    help="An allowed one, as of `oracle`: r0=2,r1=0 or X=[1,2] or _status=blocked.",
)
@click.option("--executor", "executor_name", default="native", help="One that can be forced.")
@click.option(
    "--config", "config_name", default=None, help="Else one that promises just the model."
)
@click.option("--time", "time_s", type=_Duration(), default="60s", help="At most.")
@click.option(
    "--log", "log_file", type=click.Path(), default=None, help="Write what was observed there too."
)
@_model_option
@_budget
@_json
def force(
    file: str,
    wanted: str,
    executor_name: str,
    config_name: str | None,
    time_s: float,
    log_file: str | None,
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Make an executor follow one total order of FILE, and print what that yields.

    The order is the oracle's witness of --outcome, as `oracle --explain` prints
    it. Exits 1 if it yields another outcome, 3 if the executor cannot follow it.
    """
    from fuzz.campaign import replay as campaign
    from fuzz.executors.process import Worker
    from fuzz.executors.table import UnknownExecutor, configuration
    from reports.allowed import Witnessed
    from reports.forced import ForcedReport

    test = _load(file).test
    model = _model(model_name or "rfc")
    try:
        config = configuration(executor_name, config_name, model.name)
    except UnknownExecutor as error:
        _fail(str(error))
    order, outcome = _order(file, test, wanted, model, budget)
    if log_file is not None:
        # Now, so that a place where nothing can be written is known before the work.
        Path(log_file).write_text("", encoding="utf-8")
    worker = Worker(executor_name)
    try:
        forced = campaign.force(test, worker, config, order, time_s)
    finally:
        worker.close()
    if forced.problem:
        _fail(f"{file}: {forced.problem}")
    witness = Witnessed(model.name, outcome, tuple(map(str, order)))
    report = ForcedReport(
        test, executor_name, config.name, witness, forced.outcome, forced.diverged
    )
    if log_file is not None and report.seen is not None:
        _write_log(test, {report.seen: 1}, log_file)
    if as_json:
        _print_json(report.as_json())
    else:
        click.echo(report.text())
    sys.exit(report.exit_code)


def _order(
    file: str, test: LitmusTest, wanted: str, model: Model, budget: int | None
) -> tuple[Witness, Outcome]:
    """A total order with that outcome, and all of the outcome."""
    from oracles.allowed import ValueTooLarge
    from oracles.reference import outcome_of
    from reports.allowed import shown

    values, status = _parse_outcome(test, wanted)
    explorer = _explorer(file, test, model, budget)
    try:
        verdict, asked = _membership(explorer, values, status)
    except ValueTooLarge as error:
        _fail(f"{file}: {error}")
    told = shown(({} if status is None else {STATUS_KEY: str(status)}) | _plain(test, values))
    if verdict is Verdict.UNKNOWN:
        _fail(f"{file}: {told}: over budget under {model.name}; see --budget")
    if asked is None:
        _fail(f"{file}: {told}: forbidden under {model.name}, there is no order")
    order = explorer.witness(asked)
    assert order is not None, "allowed, but by no order"
    return order, outcome_of(test, model, order)


# --- cover -----------------------------------------------------------------------------


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--executors", default="tf", help="Names, with commas; NAME or NAME:CONFIG.")
@click.option("--events", type=click.IntRange(min=1), default=40, help="Of a test, at most.")
@click.option("--outcomes", type=click.IntRange(min=1), default=10_000, help="The same.")
@click.option("--time", "time_s", type=_Duration(), default="60s", help="For each order, at most.")
@_json
def cover(
    files: tuple[str, ...],
    executors: str,
    events: int,
    outcomes: int,
    time_s: float,
    as_json: bool,
) -> None:
    """Make an executor show each allowed outcome of FILES that needs no split update.

    Forces the oracle's witness of each, and counts what is reached. Outcomes for which
    an executor would have to do apart what it does as one are listed apart. Exits 1 if
    an order was followed and another outcome seen, 3 if one was not followed or a test
    is left out.
    """
    from fuzz.campaign.cover import Limits
    from fuzz.executors.process import Worker
    from fuzz.executors.table import configuration
    from reports.cover import cover_text

    entries = [(file, _load(file).test) for file in files]  # all mistakes before any work
    # Unless another is asked for, a configuration that does one event at a time anyway.
    chosen = [
        (name, config if f"{name}:" in executors else configuration(name, None, "executor"))
        for name, config in _executors(executors, None, None, None)
    ]
    limits = Limits(events, outcomes, time_s)
    reports: list[CoverReport] = []
    try:
        for name, config in chosen:
            with closing(Worker(name)) as worker, _parts_told() as progress:
                for file, test in entries:
                    reports.append(_covered(file, test, worker, config, limits, progress))
    except KeyboardInterrupt:
        click.echo("litmusfuzz: interrupted", err=True)
    if as_json:
        _print_json([report.as_json() for report in reports])
    else:
        click.echo(reports[0].text() if len(reports) == 1 else cover_text(reports))
    codes = {report.exit_code for report in reports}
    if len(reports) < len(files) * len(chosen):
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


def _covered(
    file: str,
    test: LitmusTest,
    worker: Worker,
    config: Config,
    limits: Limits,
    progress: Callable[[str], None],
) -> CoverReport:
    """One test on one executor, with the clusters that this runs it with."""
    from fuzz.campaign.cover import cover as force_all
    from fuzz.executors.protocol import Clusters
    from fuzz.executors.table import executor_class
    from reports.cover import CoverReport

    made = executor_class(worker.executor)
    if issubclass(made, Clusters):
        test = made.clustered(test, config)
    told = f"{worker.executor}/{config.name}: {test.name}"
    found = force_all(test, worker, config, limits, lambda part: progress(f"{told}, {part}"))
    return CoverReport(
        test=test,
        file=file,
        executor=worker.executor,
        config=config.name,
        left_out=found.left_out,
        reached=tuple(found.reached),
        wrong=tuple((o, tuple(map(str, order)), seen) for o, order, seen in found.wrong),
        not_followed=tuple(found.not_followed),
        apart=found.apart,
        seconds=found.seconds,
    )


# --- herd ------------------------------------------------------------------------------


@main.group()
def herd() -> None:
    """Interchange with herd7 and litmus7: tests in C, and logs.

    One atomic access a statement, no branches, no pointer values. Every access
    counts as sequentially consistent, whatever order it names.
    """


_files = click.argument("files", nargs=-1, required=True, type=click.Path())
_out = click.option(
    "--out", "folder", type=click.Path(), default=None, help="Folder to write to; else printed."
)


@herd.command("import")
@_files
@_out
@_json
def herd_import(files: tuple[str, ...], folder: str | None, as_json: bool) -> None:
    """Turn herd's .litmus FILES into ours, NAME.yaml."""
    tests = [(file, _load_herd(file)[0]) for file in files]  # all mistakes before any work
    _unique_names(tests, "import")
    if folder is None and len(tests) > 1 and not as_json:
        _fail("several files: say with --out where to put them")
    rows = []
    for file, test in tests:
        to = _place(folder, f"{test.name}.yaml", dumps(Entry(test)), as_json=as_json)
        rows.append({"file": file, "test": test.name, "to": to, "text": dumps(Entry(test))})
    if as_json:
        _print_json(rows)
    elif folder is not None:
        click.echo(f"{_count(len(rows), 'test')} written to {folder}")


@herd.command("export")
@_files
@_out
@click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor"]),
    default="rfc",
    help="Whose allowed set herd is to find: in rfc an update is a load and a store.",
)
@_json
def herd_export(files: tuple[str, ...], folder: str | None, model_name: str, as_json: bool) -> None:
    """Turn our FILES into herd's, NAME.litmus.

    A test that does not fit is refused with what does not, the others are
    written; exits 2 if any was refused. The sets agree under herd's sc.cat.
    """
    from corpus.herd import DoesNotFit
    from corpus.herd import dumps as herd_text

    tests = [(file, _load(file).test) for file in files]  # all mistakes before any work
    _unique_names(tests, "export")
    rows: list[dict[str, Any]] = []
    for file, test in tests:
        row: dict[str, Any] = {"file": file, "test": test.name, "to": None, "refused": None}
        try:
            row["text"] = herd_text(test, model_name)
        except DoesNotFit as error:
            row["refused"] = str(error)
            click.echo(f"litmusfuzz: {file}: does not fit herd's C: {error}", err=True)
        rows.append(row)
    fitting = [row for row in rows if row["refused"] is None]
    if folder is None and len(fitting) > 1 and not as_json:
        _fail("several files: say with --out where to put them")
    for row in fitting:
        row["to"] = _place(folder, f"{row['test']}.litmus", row["text"], as_json=as_json)
    refused = len(rows) - len(fitting)
    if as_json:
        _print_json(rows)
    elif folder is not None:
        more = f", {refused} refused" if refused else ""
        click.echo(f"{_count(len(fitting), 'test')} written to {folder}{more}")
    sys.exit(USAGE if refused else CLEAN)


@herd.command("log")
@_files
@_model_option
@_budget
@_json
def herd_log(
    files: tuple[str, ...], model_name: str | None, budget: int | None, as_json: bool
) -> None:
    """Print the allowed sets of FILES, ours or herd's, as herd prints what it finds.

    Of herd's own tests only what they list is shown, as herd does. A set over
    budget is left out, and said: exit 3.
    """
    from corpus.herd import condition_of, log

    tests: list[tuple[str, LitmusTest, Condition | None, tuple[str, ...]]] = []
    for file in files:  # all mistakes before any work
        if file.endswith(".litmus"):
            tests.append((file, *_load_herd(file)))
        else:
            test = _load(file).test
            tests.append((file, test, condition_of(test), ()))
    _unique_names(((file, test) for file, test, *_ in tests), "log")
    model = _model(model_name or "rfc")
    rows = []
    for file, test, condition, locations in tests:
        _, allowed = _explored(file, test, model, budget)
        text = None
        if allowed.complete:
            sets = dict.fromkeys(allowed.witnesses, 1)
            text = log(test, sets, condition, locations=locations)
        else:
            click.echo(
                f"litmusfuzz: {file}: over budget under {model.name}; see --budget", err=True
            )
        rows.append({"file": file, "test": test.name, "model": model.name, "log": text})
        if text and not as_json:
            click.echo(text, nl=False)
    if as_json:
        _print_json(rows)
    sys.exit(UNKNOWN if any(row["log"] is None for row in rows) else CLEAN)


def _load_herd(path: str) -> tuple[LitmusTest, Condition | None, tuple[str, ...]]:
    """A test of herd's, its condition, and the locations that it lists."""
    from corpus.herd import parse

    try:
        imported = parse(read_text(path), path)
    except FileError as error:
        _fail(str(error))
    return imported.test, imported.condition, imported.locations


def _place(folder: str | None, name: str, text: str, *, as_json: bool) -> str | None:
    """Write to the folder, or print; where it was written.

    Another file of that name is not overwritten: somebody may have worked on it.
    """
    if folder is None:
        if not as_json:
            click.echo(text, nl=False)
        return None
    target = Path(folder) / name
    if target.exists() and target.read_bytes() != text.encode():
        _fail(f"{target}: is there already, and differs: move it away first")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return str(target)


def _count(number: int, noun: str) -> str:
    from reports.text import counted

    return counted(number, noun)


# --- compare ---------------------------------------------------------------------------


@main.command()
@click.argument("left", metavar="A", type=click.Path())
@click.argument("right", metavar="B", type=click.Path())
@click.option(
    "--tests",
    "places",
    multiple=True,
    type=click.Path(),
    help="Test file, ours or herd's, or a folder of them; may stand several times.",
)
@_model_option
@_budget
@_json
def compare(
    left: str,
    right: str,
    places: tuple[str, ...],
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Compare two logs: what only A or only B has.

    A and B are of `herd log`, of `replay --log`, of herd7 or of litmus7. With
    --tests the oracle says of each such outcome whether it is forbidden. Exits
    0 if they say the same, 1 if they differ in a forbidden outcome, 3 if they
    differ otherwise.
    """
    from reports.comparison import Incomparable
    from reports.comparison import compare as compared

    logs = (_load_log(left), _load_log(right))
    names = {name for log in logs for name in log.tests}
    model = _model(model_name or "rfc")
    judge = _LogJudge(_named(places, names), logs, model, budget) if places else None
    try:
        report = compared(*logs, judge, model.name)
    except Incomparable as error:
        _fail(str(error))
    if as_json:
        _print_json(report.as_json())
    else:
        click.echo(report.text())
    sys.exit(report.exit_code)


def _load_log(path: str) -> Log:
    from corpus.herd import read_log
    from reports.comparison import Log

    file = Path(path)
    if file.stat().st_size > MAX_LOG_BYTES:
        _fail(f"{path}: is larger than {MAX_LOG_BYTES} bytes")
    try:
        text = file.read_bytes().decode()
        return Log(path, {each.name: each for each in read_log(text, path)})
    except UnicodeDecodeError:
        _fail(f"{path}: is not UTF-8")
    except FileError as error:
        _fail(str(error))


def _named(places: tuple[str, ...], names: set[str]) -> dict[str, tuple[str, LitmusTest]]:
    """The tests of those names in files and folders, each with its file."""
    found: dict[str, tuple[str, LitmusTest]] = {}
    for place in places:
        files = [Path(place)]
        if files[0].is_dir():
            # A test's file has its name; a folder may hold hundreds of others.
            files = sorted(
                f for f in files[0].iterdir() if f.suffix in SUFFIXES and f.stem in names
            )
        for file in files:
            path = str(file)
            test = _load_herd(path)[0] if file.suffix == ".litmus" else _load(path).test
            other = found.setdefault(test.name, (path, test))
            if other[1] != test:
                _fail(f"--tests: {other[0]} and {path} are two tests named {test.name}")
    return found


class _LogJudge:
    """The oracle's verdict on the states of a log."""

    def __init__(
        self,
        tests: Mapping[str, tuple[str, LitmusTest]],
        logs: Iterable[Log],
        model: Model,
        budget: int | None,
    ) -> None:
        self.tests = tests
        self.logs = tuple(logs)
        self.model = model
        self.budget = budget
        self.name = ""
        self.explorer: Explorer | None = None

    def __call__(self, name: str, state: State) -> str | None:
        """The verdict; None if no test of that name was given."""
        if name not in self.tests:
            return None
        from oracles.allowed import ValueTooLarge

        path, test = self.tests[name]
        if name != self.name:  # one after the other: each is loaded once
            from corpus.herd import layout

            self.name, self.names = name, layout(test).names
            self.explorer = _explorer(path, test, self.model, self.budget)
        assert self.explorer is not None
        values, status = self.read(test, state)
        try:
            return str(_membership(self.explorer, values, status)[0])
        except ValueTooLarge as error:
            _fail(f"{path}: {error}")

    def read(self, test: LitmusTest, state: State) -> tuple[dict[str, Value], Status]:
        """A state's values by our names, and how it ended."""
        from corpus.herd.log import STATUS

        values: dict[str, Value] = {}
        status = Status.COMPLETED
        for place, cell in state:
            if place == STATUS and cell in list(Status):
                status = Status(str(cell))
                continue
            if place not in self.names:
                known = ", ".join(self.names)
                self.fail(test, state, f"{place} is not a location of the test: {known}")
            name = self.names[place]
            plain: Plain = list(cell) if isinstance(cell, tuple) else cell
            queue = next((q for q in test.queues if q.name == name), None)
            try:
                if queue is not None and isinstance(cell, tuple):
                    size = test.size_of(queue.shape)
                    parts: list[int | list[int]] = []
                    parts += [list(cell[i : i + size]) for i in range(0, len(cell), size)]
                    plain = parts
                values[name] = value_from_plain(test, name, plain)
            except MalformedTest as error:
                self.fail(test, state, str(error))
        return values, status

    def fail(self, test: LitmusTest, state: State, message: str) -> NoReturn:
        file, logged = next(
            (log.file, log.tests[test.name])
            for log in self.logs
            if test.name in log.tests and state in log.tests[test.name].states
        )
        _fail(f"{file}:{logged.line}: {test.name}: {message}")


# --- promote ---------------------------------------------------------------------------


@main.command()
@_file
@click.option("--write", is_flag=True, help="Write it; without this only the diff is shown.")
@click.option("--to", "folder", type=click.Path(), default=None, help="Folder to put it in.")
@_budget
@_json
def promote(file: str, write: bool, folder: str | None, budget: int | None, as_json: bool) -> None:
    """Take a finding into the corpus, or set a test's allowed sets anew.

    Shows the change as a diff, which a person reads; writes it with --write.
    """
    from corpus.textfile import save
    from oracles.model import MODELS

    entry = _load(file)
    target = Path(file)
    if entry.finding is not None:
        if not (entry.finding.minimized and entry.finding.confirmed):
            click.echo(
                f"litmusfuzz: {file}: not minimized to the end, or not seen again in a fresh "
                "process: think twice",
                err=True,
            )
        home = Path(folder) if folder else Path(corpus.__file__).parent / "findings"
        target = home / f"{entry.test.name}.yaml"
    elif folder:
        target = Path(folder) / f"{entry.test.name}.yaml"
    sets: dict[str, frozenset[Outcome] | Digest] = {}
    for model in MODELS.values():
        _, allowed = _explored(file, entry.test, model, budget)
        if not allowed.complete:
            _fail(f"{file}: over budget under {model.name}; see --budget")
        outcomes = frozenset(allowed.witnesses)
        # `executor` is a subset of `rfc`; where equal it is not repeated.
        if outcomes != sets.get("rfc"):
            sets[model.name] = outcomes
    new = dumps(replace(entry, allowed=sets))
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    diff = list(
        difflib.unified_diff(
            old.splitlines(),
            new.splitlines(),
            f"{target} (now)",
            f"{target} (promoted)",
            "",
            "",
            3,
            "",
        )
    )
    if write and diff:
        save(replace(entry, allowed=sets), target)
    if as_json:
        _print_json({"file": str(target), "diff": diff, "written": write and bool(diff)})
        return
    for line in diff:
        click.echo(line)
    if not diff:
        click.echo(f"{target}: nothing to change")
    elif not write:
        click.echo(f"\n{target} is not written; --write does")


# --- selftest --------------------------------------------------------------------------


@main.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, help="Of which the median counts.")
@click.option("--tests", type=click.IntRange(1, 10_000), default=60, help="Graphs for each seed.")
@_json
def selftest(names: tuple[str, ...], seeds: int, tests: int, as_json: bool) -> None:
    """Kill every mutant by the generator's random graphs.

    Prints after how many runs each strategy kills each mutant (`-` for never);
    the executor that they were made from stands first, and must survive. Takes
    some minutes. Exits 0 only if all mutants are killed, else 1.
    """
    from fuzz.campaign.selftest import HUNTS, SOUND, hunts, mutants
    from reports.kills import kill_table, score

    known = mutants()
    chosen = tuple(f"mutant/{name.removeprefix('mutant/')}" for name in names)
    for name in chosen:
        if name not in known:
            known_names = ", ".join(each.removeprefix("mutant/") for each in known)
            _fail(f"no mutant {name.removeprefix('mutant/')!r}; there are {known_names}")

    def told(executor: str, strategy: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{executor}: {strategy} ...", err=True, nl=False)

    rows: list[Row] = []
    wanted = (SOUND, *(chosen or known))
    try:
        for row in hunts(wanted, seeds, tests, told):
            rows.append(row)
    finally:  # of what was interrupted there is what there is
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
        complete = len(rows) == len(wanted) and all(row.killed == row.mutant for row in rows)
        if as_json:
            _print_json({"rows": [asdict(row) for row in rows], "complete": complete})
        else:
            click.echo(kill_table(rows, list(HUNTS)))
            click.echo(score(rows))
    sys.exit(0 if complete else 1)


# --- page ----------------------------------------------------------------------------


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path())
@click.option("--title", default="What campaigns found", help="Of the page.")
@_json
def page(folders: tuple[str, ...], title: str, as_json: bool) -> None:
    """Print a page of what the campaigns in FOLDERS found and cost, as Markdown.

    FOLDERS are what `run --out` names; each may hold the records of several campaigns,
    also of one that still runs.
    """
    from reports.page import Collected
    from reports.page import page as page_of

    def script_of(path: str) -> str:
        script = Path(path).with_suffix(".py")
        return str(script) if script.exists() else ""

    collected = Collected()
    for folder in folders:
        records = sorted(Path(folder).glob("record-*.json"))
        if not records:
            _fail(f"{folder}: holds no record of a campaign (record-SEED.json)")
        for path in records:
            try:
                collected.add(json.loads(path.read_text(encoding="utf-8")), script_of)
            except (ValueError, KeyError, TypeError) as error:
                _fail(f"{path}: no record of a campaign of this version: {error}")
    if as_json:
        _print_json(collected.as_json())
    else:
        click.echo(page_of(collected, title), nl=False)


# --- bench -----------------------------------------------------------------------------


@main.group()
def bench() -> None:
    """Measure ourselves, with ratios to something slower."""


@bench.command("oracle")
@click.option("--compare/--no-compare", default=True, help="Run the reference beside it.")
@_json
def bench_oracle(compare: bool, as_json: bool) -> None:
    """How fast the explorer finds sets and verdicts, and how that grows.

    Takes about two minutes, half of it the reference.
    """
    from fuzz.bench.oracle import report

    with _parts_told() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("native")
@click.option("--compare/--no-compare", default=True, help="Run TensorFlow beside it.")
@_json
def bench_native(compare: bool, as_json: bool) -> None:
    """How fast the native executor is, by engine and strategy, beside TensorFlow's.

    Takes half a minute on free cores.
    """
    from fuzz.bench.native import report

    with _parts_told() as progress:
        measured = report(progress, compare=compare)
    _show_bench(measured, as_json)


@bench.command("clusters")
@_json
def bench_clusters(as_json: bool) -> None:
    """How fast clusters are chosen, validated and executed.

    Takes some seconds.
    """
    from fuzz.bench.clusters import report

    with _parts_told() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


@bench.command("tensorflow")
@_json
def bench_tensorflow(as_json: bool) -> None:
    """How fast campaigns on TensorFlow are, and how much they reach.

    Takes about two minutes.
    """
    from fuzz.bench.tensorflow import report

    with _parts_told() as progress:
        measured = report(progress)
    _show_bench(measured, as_json)


@contextmanager
def _parts_told() -> Iterator[Callable[[str], None]]:
    """What is being measured, on a terminal."""
    terminal = sys.stderr.isatty()

    def progress(part: str) -> None:
        if terminal:
            click.echo(f"\r\x1b[K{part} ...", err=True, nl=False)

    try:
        yield progress
    finally:
        if terminal:
            click.echo("\r\x1b[K", err=True, nl=False)


def _show_bench(
    measured: BenchReport | ClustersReport | PromisesReport | SpeedReport, as_json: bool
) -> None:
    if as_json:
        _print_json(measured.as_json())
    else:
        click.echo(measured.text())


def run_command() -> NoReturn:
    """The console script: whatever happens ends in one of our exit codes."""
    try:
        code = main.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("litmusfuzz: interrupted", err=True)
        code = UNKNOWN
    except OSError as error:
        click.echo(f"litmusfuzz: {error.filename or ''}: {error.strerror}", err=True)
        code = USAGE
    except Exception:  # noqa: BLE001 - our own defect; Python's exit code 1 means a finding here
        traceback.print_exc()
        code = USAGE
    sys.exit(code if isinstance(code, int) else CLEAN)


if __name__ == "__main__":
    run_command()
