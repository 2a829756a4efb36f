"""`litmusfuzz run`: one campaign of random graphs on chosen executors."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from litmusfuzz.corpus.near import did_you_mean
from litmusfuzz.fuzz.cli.campaigns import (
    as_generated_option,
    begin,
    check_resume,
    check_trusted,
    command_line,
    configured,
    deadly_ops,
    finish,
    given,
    known_findings,
    known_of,
    known_option,
    min_graphs_option,
    new_folder,
    new_store,
    reopened,
    resume_option,
    seeds_from,
    seeds_option,
    spawn_option,
    started_in,
)
from litmusfuzz.fuzz.cli.common import (
    EXECUTORS,
    FAMILIES,
    MAX_NUMBER,
    MAX_SEED,
    MODEL,
    Duration,
    NamedChoice,
    complain,
    engine_option,
    fail,
    json_option,
    model_of,
    noise_option,
    python_option,
    python_or_fail,
    threads_option,
    trust_option,
)

if TYPE_CHECKING:
    from litmusfuzz.fuzz.cli.campaigns import KnownOption
    from litmusfuzz.fuzz.executors.protocol import Config
    from litmusfuzz.fuzz.store.store import Store
    from litmusfuzz.reports.events import CampaignStarted
    from litmusfuzz.reports.report import Report

DEFAULT_S = 60.0
MIN_LEFT_S = 1.0
"""A campaign with less time left is over."""


@click.command(epilog="Example: litmusfuzz run --executors tf,native --time 10m --seed 1")
@click.option(
    "--time",
    "time_s",
    type=Duration(),
    default=f"{DEFAULT_S:.0f}s",
    help="Time to fuzz for; findings are then completed, in at most a fifth of it.",
)
@click.option(
    "--tests",
    type=click.IntRange(0, MAX_NUMBER),
    default=None,
    help="Limit on the number of graphs; with --resume, on that of new ones: 0 only completes what "
    "is left.",
)
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="Random if not given.")
@click.option(
    "--executors",
    type=EXECUTORS,
    default="tf",
    help="Executors, separated by commas; NAME, NAME:CONFIGURATION, or a quoted pattern of "
    "configurations, 'tf:*' or 'tf:grappler*', which share the time, each graph in one of them. "
    "tf:product generates configurations; 'tf:*' does so besides running the named ones.",
)
@click.option(
    "--families",
    type=FAMILIES,
    default=None,
    help="Families of graphs, separated by commas, each with a weight if wanted: dag=3,cycles; "
    "without this option all that an executor can run. A family that still finds something is "
    "generated more often.",
)
@seeds_option
@click.option(
    "--model",
    "model_name",
    type=NamedChoice([*MODEL.choices, "guaranteed"], "models"),
    default="guaranteed",
    help="Memory model that judges all outcomes; `guaranteed`, the default, is the one that each "
    "configuration guarantees.",
)
@engine_option
@threads_option
@python_option
@trust_option
@noise_option
@as_generated_option
@spawn_option
@click.option(
    "--out",
    type=click.Path(),
    default=None,
    help="Folder for the findings and reports; a new folder findings/run-SEED if not given.",
)
@resume_option
@known_option
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Processes per executor.")
@click.option(
    "--count",
    type=click.IntRange(1, MAX_NUMBER),
    default=None,
    help="Executions per graph, instead of few at first.",
)
@min_graphs_option
@json_option
def run(
    time_s: float,
    tests: int | None,
    seed: int | None,
    executors: str,
    families: str | None,
    seed_paths: tuple[str, ...],
    model_name: str,
    engine: str | None,
    threads: int | None,
    python: str | None,
    trust: bool,
    noise: str | None,
    as_generated: bool,
    spawn: bool,
    out: str | None,
    resume: str | None,
    known_given: KnownOption,
    workers: int,
    count: int | None,
    min_graphs: int,
    as_json: bool,
) -> None:
    """Run random graphs and judge their outcomes.

    Several executors run the same graphs, and their outcomes are compared. Findings and
    reports are written to --out. SIGTERM and Ctrl-C end the run with all that was found, a
    second one at once; --resume continues it: for the time left, or for --time more. Exits 1
    if there is a finding that --known does not name, crashes included; 2 if the canary went
    unreported; 3 if there is none, but it was interrupted, something was left undecided, or a
    configuration did not run --min-graphs graphs.
    """
    from random import SystemRandom

    from litmusfuzz.fuzz.campaign.configured import spaces
    from litmusfuzz.fuzz.nightly.single import SingleShard
    from litmusfuzz.fuzz.store.folder import StoreError
    from litmusfuzz.reports.events import CampaignStarted
    from litmusfuzz.reports.terminal import LiveView

    command = command_line()
    if resume is not None:
        check_resume(resume, ("time_s", "tests", "workers", "python", "engine", "trust"))
        started, report = started_in(resume, unattended=False)
        if not trust:
            check_trusted(resume, started, python, engine)
        known = known_of(resume, started, known_given)
        store, time_s, tests = _resumed(resume, started, report, time_s, tests, workers)
    else:
        if tests == 0:
            fail("--tests 0: only with --resume")
        chosen = systems_of(executors, engine, threads)
        weights = families_of(families, [name for name, *_ in chosen])
        known = known_findings(known_given, {name for name, *_ in chosen})
        model = None if model_name == "guaranteed" else model_of(model_name)
        configurations = configured(chosen, model)
        started = CampaignStarted(
            command=command,
            seed=SystemRandom().randrange(1 << 31) if seed is None else seed,
            asked_s=time_s,
            tests=tests,
            workers=workers,
            configurations=configurations,
            spaces=spaces(configurations),
            families=weights,
            seeds=seeds_from(seed_paths, [name for name, *_ in chosen], weights),
            count=count,
            noise=_noise(noise),
            judge_by=model.name if model else "",
            python=python_or_fail(python),
            as_generated=as_generated,
            spawn=spawn,
            deadly_ops=deadly_ops(known, python),
            known=None if known_given.file is None else str(Path(known_given.file).absolute()),
            shipped_known=known_given.shipped,
            min_graphs=min_graphs,
        )
        folder = new_folder(Path("findings"), f"run-{started.seed}") if out is None else out
        store = new_store(str(folder))
        begin(store, started)
    try:
        with store, LiveView(sys.stderr if as_json else sys.stdout, as_json=as_json) as view:
            report = SingleShard(store, known, view, time_s=time_s, tests=tests, say=view.say).run()
    except StoreError as error:  # of a damaged campaign that is resumed
        fail(str(error))
    finish(report, as_json=as_json)


def _resumed(
    resume: str,
    started: CampaignStarted,
    report: Report,
    time_s: float,
    tests: int | None,
    workers: int,
) -> tuple[Store, float, int | None]:
    """The store of a run to continue, and for how long and how many tests."""
    from litmusfuzz.reports.events import CampaignResumed

    asked_s = report.spent_s + time_s if given("time_s") else report.asked_s
    left_s = asked_s - report.spent_s
    if given("time_s") or left_s >= MIN_LEFT_S:
        time_s = left_s
    elif tests is None:
        tests = 0  # findings and reports are completed
    if tests is None and started.tests is not None:
        assert report.tests is not None
        tests = max(0, report.tests - report.generated)
    store = reopened(resume, started)
    begin(
        store,
        CampaignResumed(
            asked_s=round(asked_s, 3),
            tests=None if tests is None else report.generated + tests,
            workers=workers if given("workers") else started.workers,
        ),
    )
    return store, time_s, tests


def executors_of(
    named: str, only_config: str | None, engine: str | None, threads: int | None
) -> list[tuple[str, Config]]:
    """The named executors, each in one configuration."""
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
    from litmusfuzz.fuzz.finding.judging_model import UnknownGuarantee, guaranteed

    chosen: list[tuple[str, Config]] = []
    parts = named.split(",")
    if only_config and len(parts) > 1:
        fail("--configuration: is of one executor; for several write NAME:CONFIGURATION")
    for part in parts:
        name, _, config = part.strip().partition(":")
        try:
            made = configuration(name, only_config or config or None)
            guaranteed(name, made)
        except (UnknownExecutor, UnknownGuarantee) as error:
            fail(f"--executors: {error}")
        if not (only_config or config):
            _say_others(name, made)
        made = _on_engine(name, made, engine, threads)
        if (name, made) in chosen:
            fail(f"--executors: {name}/{made.name} is named twice")
        chosen.append((name, made))
    return chosen


@cache
def _say_others(name: str, config: Config) -> None:
    """Say, once, which configurations of somebody's executor are left out where none is named."""
    from litmusfuzz.fuzz.executors.table import executor_class, is_ours

    count = len(executor_class(name).configurations())
    if count > 1 and not is_ours(name):
        line = f"{name} runs in {config.name}, the first of its {count} configurations"
        complain(f"{line}: `litmusfuzz list configurations --executors {name}`")


def systems_of(
    named: str, engine: str | None, threads: int | None
) -> list[tuple[str, *tuple[Config, ...]]]:
    """The named executors, each with the configurations that a pattern selects."""
    from fnmatch import fnmatchcase

    from litmusfuzz.fuzz.executors.configuration_generator import PRODUCT, has_product, listed
    from litmusfuzz.fuzz.executors.table import (
        CANARY,
        UnknownExecutor,
        executor_class,
        no_configuration,
    )
    from litmusfuzz.fuzz.finding.judging_model import UnknownGuarantee, guaranteed

    systems: list[tuple[str, *tuple[Config, ...]]] = []
    for part in named.split(","):
        name, _, pattern = part.strip().partition(":")
        if pattern != PRODUCT and not set("*?[") & set(pattern):
            systems += executors_of(part, None, engine, threads)
            continue
        try:
            known = [*executor_class(name).configurations()]
            for each in known:
                guaranteed(name, each)
            if pattern == PRODUCT or has_product(name):
                known.append(listed(name, PRODUCT))
        except (UnknownExecutor, UnknownGuarantee) as error:
            fail(f"--executors: {error}")
        if engine or threads:
            fail(f"--engine, --threads: of one configuration, not of {part.strip()}")
        chosen = [config for config in known if fnmatchcase(config.name, pattern)]
        if not chosen:
            there = [config.name for config in known]
            fail(f"--executors: {no_configuration(name, pattern, there)}")
        systems.append((name, *chosen))
    all_named = [(name, config.name) for name, *configs in systems for config in configs]
    if any(name == CANARY for name, _ in all_named):
        fail(f"--executors: {CANARY} runs in every campaign and need not be named")
    for number, (name, config) in enumerate(all_named):
        if (name, config) in all_named[:number]:
            fail(f"--executors: {name}/{config} is named twice")
    return systems


def families_of(wanted: str | None, executors: list[str]) -> dict[str, float]:
    """The named families with their weights; each executor can run at least one of them."""
    from litmusfuzz.fuzz.executors.table import executor_class
    from litmusfuzz.fuzz.generators import FAMILIES, families_for

    weights: dict[str, float] = {}
    for part in wanted.split(",") if wanted is not None else ():
        name, _, weight = (each.strip() for each in part.partition("="))
        if name not in FAMILIES:
            fail(f"--families: no family {name!r}; {did_you_mean(name, FAMILIES, 'families')}")
        if "=" in part and not re.fullmatch(r"\d{1,3}(\.\d{1,3})?", weight, re.ASCII):
            fail(f"--families: a weight is as in {name}=3 or {name}=0.5, got {part.strip()!r}")
        weights[name] = float(weight or 1)
        if not weights[name]:
            fail(f"--families: a weight is above 0, got {part.strip()!r}")
    for executor in executors:
        support = executor_class(executor).support
        fitting = families_for(support)
        if not fitting:
            fail(f"--executors: no family generates tests within the support of {executor}")
        if weights and not set(weights) & set(fitting):
            beyond = sorted({each for name in weights for each in FAMILIES[name].beyond(support)})
            lacks = f": it does not take {', '.join(beyond)}" if beyond else ""
            fail(f"--families: none of them generates tests for {executor}{lacks}")
    return weights


def _noise(noise: str | None) -> str:
    """The noise that was asked for, as events name it."""
    from litmusfuzz.fuzz.executors.protocol import Noise, noise_named, noise_text

    try:
        return noise_text(Noise() if noise is None else noise_named(noise, Noise()))
    except ValueError as error:
        fail(f"--noise: {error}")


def _on_engine(name: str, config: Config, engine: str | None, threads: int | None) -> Config:
    """The configuration, with another engine or number of threads if that is asked for."""
    from litmusfuzz.fuzz.engines.settings import EngineSettings, UnknownEngine
    from litmusfuzz.fuzz.executors.table import configuration

    if engine is None and threads is None:
        return config
    settings: dict[str, Any] = dict(config.settings)
    if "engine" not in settings:
        fail(f"--engine, --threads: executor {name} has no engines; native and tf have")
    if "split_updates" not in settings:
        return _on_engine_of_space(name, config, engine, threads)
    try:
        chosen = EngineSettings.chosen(
            engine or settings["engine"],
            threads,
            split=settings["split_updates"],
            scheduler="" if engine else settings.get("scheduler", ""),
            depth=0 if engine else settings.get("depth", 0),
        )
    except UnknownEngine as error:
        fail(f"--engine, --threads: {error}")
    return configuration(name, chosen.name)


def _on_engine_of_space(
    name: str, config: Config, engine: str | None, threads: int | None
) -> Config:
    """The same, for an executor whose configurations are points of a space."""
    from litmusfuzz.fuzz.executors.configuration_space import HasConfigurationSpace
    from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class

    executor = executor_class(name)
    if not isinstance(executor, HasConfigurationSpace):  # a mutant of one
        fail(f"--engine, --threads: executor {name} has no engines; native and tf have")
    point = executor.point_of(config)
    # One with somebody's engine is no point, and named by its settings.
    named = config.name if point is None else executor.space.name(point)
    parts = dict(part.partition("=")[::2] for part in named.split(";") if part)
    parts |= {"engine": engine} if engine else {}
    parts |= {"threads": str(threads)} if threads else {}
    try:
        return configuration(name, ";".join(f"{key}={value}" for key, value in parts.items()))
    except UnknownExecutor as error:
        fail(f"--engine, --threads: {error}")
