"""The command line: the only place that parses flags, prints, and sets an exit code.

Exit codes: 0 clean, 1 a forbidden outcome, 2 usage or harness error, 3 only
unknown or timed out.
"""

from __future__ import annotations

import difflib
import json
import re
import signal
import sys
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import corpus
from corpus.graph import MalformedTest
from corpus.outcome import Verdict
from corpus.textfile import (
    Digest,
    Entry,
    FileError,
    dumps,
    load,
    outcome_order,
    value_from_plain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpus.graph import LitmusTest
    from corpus.outcome import Outcome, Value
    from oracles.allowed import AllowedSet
    from oracles.explorer import Explorer
    from oracles.model import Model

CLEAN, FORBIDDEN, USAGE, UNKNOWN = 0, 1, 2, 3
MAX_SEED = (1 << 63) - 1  # what a file holds


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
    from oracles.model import MODELS

    return MODELS[name]


def _explored(
    path: str, test: LitmusTest, model: Model, budget: int | None
) -> tuple[Explorer, AllowedSet]:
    from oracles.allowed import ValueTooLarge
    from oracles.explorer import DEFAULT_BUDGET, Explorer

    chosen = DEFAULT_BUDGET if budget is None else replace(DEFAULT_BUDGET, states=budget)
    try:
        explorer = Explorer(test, model, chosen)
        return explorer, explorer.allowed_outcomes()
    except ValueTooLarge as error:
        _fail(f"{path}: {error}")


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2))


_file = click.argument("file", type=click.Path())
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
_model_option = click.option(
    "--model",
    "model_name",
    type=click.Choice(["rfc", "executor"]),
    default=None,
    help="Memory model; rfc if not given.",
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
    "--outcome", "--explain", "wanted", default=None, help="Judge one: r0=2,r1=0 or X=[1,2]."
)
@_model_option
@_budget
@_json
def oracle(
    file: str, wanted: str | None, model_name: str | None, budget: int | None, as_json: bool
) -> None:
    """Print the outcomes that a memory model allows for FILE.

    With --outcome, judge one, with a witness or the reason; what it does not
    name may have any value.
    """
    test = _load(file).test
    values = _parse_outcome(test, wanted) if wanted is not None else None
    explorer, allowed = _explored(file, test, _model(model_name or "rfc"), budget)
    if values is not None:
        _judge_one(explorer, allowed, values, as_json=as_json)
    outcomes = sorted(allowed.witnesses, key=outcome_order)
    if as_json:
        _print_json(
            {
                "test": test.name,
                "model": allowed.model,
                "complete": allowed.complete,
                "states": allowed.states,
                "allowed": [o.plain for o in outcomes],
            }
        )
    else:
        from reports.text import outcome_table

        click.echo(outcome_table(test.names, [(o, ()) for o in outcomes]))
        more = "" if allowed.complete else ", and perhaps more: over budget"
        click.echo(
            f"\n{len(outcomes)} outcomes are allowed under {allowed.model} "
            f"({allowed.looked_at}){more}"
        )
    sys.exit(CLEAN if allowed.complete else UNKNOWN)


def _parse_outcome(test: LitmusTest, text: str) -> dict[str, Value]:
    """``r0=2,X=[1,2]`` as values by name."""
    values: dict[str, Value] = {}
    pattern = re.compile(
        r"\s*([\w.]+)\s*=\s*(-?\d+|torn|\[\s*-?\d+(?:\s*,\s*-?\d+)*\s*\])\s*(?:,|$)"
    )
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if not match:
            _fail(f"--outcome: cannot read {text[position:]!r}; write r0=2,r1=0 or X=[1,2]")
        name, raw = match[1], match[2]
        if name in values:
            _fail(f"--outcome: {name!r} stands twice")
        if name not in test.names:
            _fail(f"--outcome: {name!r} is not one of {', '.join(test.names)}")
        plain: int | list[int] | str = raw if raw == "torn" else json.loads(raw)
        try:
            values[name] = value_from_plain(test, name, plain)
        except MalformedTest as error:
            _fail(f"--outcome: {error}")
        position = match.end()
    if not values:
        _fail("--outcome: names no value")
    return values


def _judge_one(
    explorer: Explorer, allowed: AllowedSet, values: Mapping[str, Value], *, as_json: bool
) -> NoReturn:
    from corpus.outcome import TORN, Outcome
    from oracles.reason import explain, matches

    matching = [outcome for outcome in allowed.witnesses if matches(outcome, values)]
    witness = None
    if matching:
        verdict = Verdict.ALLOWED
        witness = [str(event) for event in allowed.witnesses[matching[0]]]
    elif allowed.complete or TORN in values.values():
        verdict = Verdict.FORBIDDEN
    elif len(values) == len(explorer.test.names):
        # The whole set is over budget; one outcome seldom is.
        verdict = explorer.judge(Outcome.of(explorer.test, values))
    else:
        verdict = Verdict.UNKNOWN
    reason = None
    if verdict is Verdict.FORBIDDEN:
        reason = explain(explorer.test, explorer.model, values)
    if as_json:
        data: dict[str, Any] = {
            "model": allowed.model,
            "verdict": str(verdict),
            "outcome": matching[0].plain if matching else None,
            "witness": witness,
            "reason": None,
        }
        if reason is not None:
            data["reason"] = {
                "edges": [str(edge) for edge in reason.edges],
                "rules": list(reason.rules),
                "cycle": list(reason.cycle),
            }
        _print_json(data)
    else:
        click.echo(f"{verdict} under {allowed.model}")
        if witness is not None:
            click.echo(f"outcome: {matching[0]}")
            click.echo("witness: " + "; ".join(witness))
        elif reason is not None:
            for step in reason.cycle or (str(reason),):
                click.echo(f"  {step}")
            if reason.cycle:
                click.echo("which is a cycle: no total order has all of it")
        elif verdict is Verdict.FORBIDDEN:
            click.echo(f"no total order yields it ({allowed.looked_at})")
        else:
            click.echo(f"not seen in {allowed.looked_at}, and there are more")
    codes = {Verdict.ALLOWED: CLEAN, Verdict.FORBIDDEN: FORBIDDEN, Verdict.UNKNOWN: UNKNOWN}
    sys.exit(codes[verdict])


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


# --- run -------------------------------------------------------------------------------


@main.command()
@click.option("--time", "time_s", type=_Duration(), default="60s", help="How long to fuzz.")
@click.option("--tests", type=click.IntRange(min=1), default=None, help="At most so many graphs.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="Random if not given.")
@click.option("--executors", default="tf", help="Names, with commas; NAME or NAME:CONFIG.")
@click.option("--out", type=click.Path(), default="findings", help="Where findings are written.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Processes per executor.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions per graph.")
@_json
def run(
    time_s: float,
    tests: int | None,
    seed: int | None,
    executors: str,
    out: str,
    workers: int,
    count: int | None,
    as_json: bool,
) -> None:
    """Fuzz: random graphs, judged, until the time is up.

    Exits 1 if a forbidden outcome was seen; findings lie in --out.
    """
    import random

    from fuzz.campaign.loop import Campaign, Settings
    from fuzz.executors.table import UnknownExecutor, configuration
    from reports.terminal import LiveView
    from reports.text import summary

    chosen = []
    for part in executors.split(","):
        name, _, config = part.strip().partition(":")
        try:
            chosen.append((name, configuration(name, config or None)))
        except UnknownExecutor as error:
            _fail(f"--executors: {error}")
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


# --- replay ----------------------------------------------------------------------------


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--executor", "executor_name", default=None, help="Another than the finding's.")
@click.option("--config", "config_name", default=None, help="Another configuration.")
@click.option("--time", "time_s", type=_Duration(), default="50s", help="For each file, at most.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="Executions of each.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=0)
@_model_option
@_budget
@_json
def replay(
    files: tuple[str, ...],
    executor_name: str | None,
    config_name: str | None,
    time_s: float,
    count: int | None,
    seed: int,
    model_name: str | None,
    budget: int | None,
    as_json: bool,
) -> None:
    """Run the tests in FILES again and print observed against allowed.

    A finding is run as it was found, in a new process, until its forbidden
    outcome shows or the time is up. Several files: one line each. Exits 1 if a
    forbidden outcome was seen.
    """
    from fuzz.campaign.replay import replay_entry
    from fuzz.executors.process import Worker
    from fuzz.executors.table import UnknownExecutor, configuration
    from reports.text import ReplayReport, replay_line, replay_text

    entries = [(file, _load(file)) for file in files]  # all mistakes before any work
    workers: dict[str, Worker] = {}
    reports: list[ReplayReport] = []
    try:
        for file, entry in entries:
            found = entry.finding
            name = executor_name or (found.executor if found else "tf")
            same = found is not None and name == found.executor
            chosen = config_name or (found.config if found is not None and same else None)
            try:
                config = configuration(name, chosen)
            except UnknownExecutor as error:
                _fail(str(error))
            model = _model(model_name or (found.model if found else "rfc"))
            explorer, allowed = _explored(file, entry.test, model, budget)
            worker = workers.setdefault(name, Worker(name))
            result = replay_entry(
                entry, explorer, worker, config, time_s=time_s, count=count, seed=seed
            )
            if result.problem:
                _fail(f"{file}: {result.problem}")
            assert result.judgement is not None
            report = ReplayReport(
                entry=entry,
                file=file,
                executor=name,
                config=config.name,
                model=model.name,
                histogram=result.judgement.histogram,
                verdicts={o: str(explorer.judge(o)) for o in result.judgement.histogram},
                allowed=tuple(allowed.witnesses),
                complete=allowed.complete,
                died=tuple(result.died),
                seconds=result.seconds,
            )
            reports.append(report)
            if not as_json:
                click.echo(replay_text(report) if len(files) == 1 else replay_line(report))
    except KeyboardInterrupt:
        click.echo("litmusfuzz: interrupted", err=True)
    finally:
        for worker in workers.values():
            worker.close()
    if as_json:
        data = [report.as_json() for report in reports]
        _print_json(data[0] if len(files) == 1 and data else data)
    codes = {report.exit_code for report in reports}
    if len(reports) < len(files):
        codes.add(UNKNOWN)
    sys.exit(next((code for code in (FORBIDDEN, UNKNOWN) if code in codes), CLEAN))


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


# --- bench -----------------------------------------------------------------------------


@main.group()
def bench() -> None:
    """Measure ourselves: CPU times, with ratios to something slower."""


@bench.command("oracle")
@click.option("--compare/--no-compare", default=True, help="Run the reference beside it.")
@_json
def bench_oracle(compare: bool, as_json: bool) -> None:
    """How fast the explorer finds sets and verdicts."""
    from dataclasses import asdict

    from fuzz.bench.oracle import figures

    measured = figures(compare=compare)
    if as_json:
        _print_json([asdict(figure) | {"met": figure.met} for figure in measured])
        return
    for figure in measured:
        line = (
            f"{figure.name:26} {figure.seconds * 1e3:9.4f} ms of {figure.limit_s * 1e3:g}"
            f"  load {figure.load_s * 1e3:.3f} ms  {figure.count} found"
            f"  unknown {figure.unknown:.0%}"
        )
        if figure.made_s is not None:
            line += f"  as objects {figure.made_s * 1e3:.1f} ms"
        if figure.ratio is not None:
            line += f"  {figure.ratio:,.0f} times faster than the reference"
        click.echo(line + ("" if figure.met else "  MISSED"))


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
