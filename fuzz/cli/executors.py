"""Executors, configurations and families as command lines name them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.near import did_you_mean
from litmusfuzz.fuzz.cli.common import complain, fail

if TYPE_CHECKING:
    from litmusfuzz.fuzz.executors.protocol import Config


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
