"""What the tests of the native executor need: both promises, and oracles' orders by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.fuzz.campaign.replay import event_keys
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.native.lowering import Strictness
from litmusfuzz.oracles import events
from litmusfuzz.oracles.model import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
"""The controlled configuration that promises a model, with a random walk."""


def prepared(
    test: LitmusTest,
    model: Model,
    chosen: Mapping[str, events.Strictness] | None = None,
    config: Config | None = None,
) -> PreparedTest:
    """The test under the controlled engine, as strict as an oracle says.

    On no device in particular, unless a `config` of that promise says otherwise.
    """
    strictness = {
        name: Strictness(each.parallel, each.gathers, each.late)
        for name, each in (chosen or {}).items()
    }
    return PreparedTest(test, config or CONTROLLED[model], strictness)


def as_strict_as_allowed(
    test: LitmusTest, model: Model, config: Config | None = None
) -> Iterator[PreparedTest]:
    """With each choice of strictness; the loosest first, alone where nothing blocks."""
    for number, chosen in enumerate(events.strictnesses(test, model)):
        if number and not {"queues", "critical sections"} & test.features:
            return
        yield prepared(test, model, chosen, config)


def all_outcomes(
    test: LitmusTest, model: Model, limit: int, config: Config | None = None
) -> tuple[set[Outcome], int] | None:
    """What the executor can show under any strictness, and in how many traces.

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
    """An oracle's total order as the executor takes it."""
    return list(event_keys(order))
