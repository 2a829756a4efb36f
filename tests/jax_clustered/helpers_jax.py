"""Helpers of the tests of the executor jax: one compiler, and any strictness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.jax_clustered.executor import JaxClusteredExecutor, PreparedJaxTest
from litmusfuzz.fuzz.executors.jax_clustered.functions import Compiler
from litmusfuzz.fuzz.executors.native.lowering import Strictness
from litmusfuzz.oracles import events
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome

CONFIGS: Final = {config.name: config for config in JaxClusteredExecutor.configurations()}
COMPILER: Final = Compiler()
"""Compiler for all tests of a process, so that each structure is compiled once."""


CONTROLLED: Final = ("controlled", "references_controlled")
"""Configurations of the controlled engine, one for each back end of the clusters."""


def prepared(test: LitmusTest, config: str = "controlled") -> Iterator[PreparedJaxTest]:
    """Under the controlled engine with each choice of strictness; the loosest first.

    It alone where nothing blocks.
    """
    for number, chosen in enumerate(events.strictnesses(test, RFC)):
        if number and not {"queues", "critical sections"} & test.features:
            return
        strictness = {
            name: Strictness(each.parallel, each.gathers, each.late)
            for name, each in chosen.items()
        }
        yield PreparedJaxTest(test, CONFIGS[config], COMPILER, strictness)


def all_outcomes(test: LitmusTest, limit: int, config: str = "controlled") -> set[Outcome] | None:
    """What the executor can show; None if that takes more than `limit` executions."""
    outcomes: set[Outcome] = set()
    for each in prepared(test, config):
        found = each.exhaust(limit)
        if not found.complete:
            return None
        outcomes |= set(found.histogram)
    return outcomes
