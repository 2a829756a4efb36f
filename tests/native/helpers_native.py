"""Helpers for tests of the native executor: its two models, and an oracle's orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers import corpus_entry

from litmusfuzz.fuzz.commands.replay import event_keys
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.native.lowering import Strictness
from litmusfuzz.oracles import events
from litmusfuzz.oracles.model import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Config, EventKey
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.model import Model

CONFIGS = {config.name: config for config in NativeExecutor.configurations()}
CONTROLLED = {
    MODELS[config.guarantees]: config
    for config in NativeExecutor.configurations()
    if dict(config.settings).get("scheduler") == "random"
}
"""By model: the controlled configuration with a random walk that guarantees it."""


def is_supported(path: Path) -> bool:
    """True if the native executor takes a test of the corpus, but for its clusters."""
    return not {*NativeExecutor.support.lacking(corpus_entry(path).test)} - {"clusters"}


def prepared(
    test: LitmusTest,
    model: Model,
    chosen: Mapping[str, events.Strictness] | None = None,
    config: Config | None = None,
) -> PreparedTest:
    """Prepare the test for the controlled engine, with an oracle's choice of strictness.

    There are no devices, unless a `config` that guarantees `model` has some.
    """
    strictness = {
        name: Strictness(each.parallel, each.gathers, each.late)
        for name, each in (chosen or {}).items()
    }
    return PreparedTest(test, config or CONTROLLED[model], strictness)


def as_strict_as_allowed(
    test: LitmusTest, model: Model, config: Config | None = None
) -> Iterator[PreparedTest]:
    """Prepare with each choice of strictness, loosest first; only the loosest without blocking."""
    for number, chosen in enumerate(events.strictnesses(test, model)):
        if number and not {"queues", "critical sections"} & test.features:
            return
        yield prepared(test, model, chosen, config)


def all_outcomes(
    test: LitmusTest, model: Model, limit: int, config: Config | None = None
) -> tuple[set[Outcome], int] | None:
    """Return the outcomes of all executions under any strictness, and the number of traces.

    None if that takes more than `limit` executions.
    """
    outcomes: set[Outcome] = set()
    traces = 0
    for each in as_strict_as_allowed(test, model, config):
        found = each.exhaust(limit)
        if not found.complete:
            return None
        outcomes |= set(found.histogram)
        traces += found.traces
    return outcomes, traces


def keys(order: Witness) -> list[EventKey]:
    """Convert an oracle's total order for the executor."""
    return list(event_keys(order))
