"""A deterministic mutant without a framework: every read returns the initial contents."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter, Refused
from litmusfuzz.fuzz.support import Support
from litmusfuzz.oracles.arithmetic import evaluated, gathered, written

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise
    from litmusfuzz.oracles.arithmetic import Ints


@dataclass(frozen=True, slots=True)
class _Prepared:
    test: LitmusTest
    stale: bool

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        test = self.test
        initial: dict[str, Ints] = {v.name: test.initial(v) for v in test.variables}
        memory = dict(initial)
        rows = {v.name: len(initial[v.name]) // (v.shape or (1,))[0] for v in test.variables}
        values: dict[str, Ints] = {}
        for node in test.graph.nodes:
            kind = node.definition.kind
            operands = [values[name] for name in node.inputs]
            if node.definition.constant:
                values[node.name] = test.constant(node)
            elif kind is Kind.READ:
                variable = node.resources[0]
                values[node.name] = gathered(
                    node, (initial if self.stale else memory)[variable], rows[variable]
                )
            elif kind.writes:
                seen = [memory[name] for name in node.resources]
                stored = written(node, seen, operands, rows[node.resources[0]])
                memory.update(zip(node.resources, stored, strict=True))
            elif node.definition.has_value:
                values[node.name] = evaluated(test, node, operands)
        return {Outcome.of(test, values | memory): count}

    def close(self) -> None:
        pass


class StaleReads:
    """Mutant: every read sees memory as it was before the graph started.

    Killed by SB. Survives MP: two early reads give (0, 0), which is allowed.

    References
    ----------
    RFC, "Load/Store Reordering": breaks the order from a store to a load.
    """

    name: ClassVar[str] = "mutant/stale-reads"
    support: ClassVar[Support] = Support(features=frozenset())
    fork_after: ClassVar[ForkAfter] = ForkAfter(("litmusfuzz.fuzz.mutants.stale_reads",))
    stale: ClassVar[bool] = True

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One configuration; the mutant breaks its guarantee."""
        return (Config("plain", "executor"),)

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Version of Python."""
        return {"python": sys.version.split()[0]}

    def prepare(self, test: LitmusTest, config: Config) -> _Prepared:
        """Accept tests of one graph that uses only variables."""
        for feature in sorted(test.features):
            raise Refused(feature)
        return _Prepared(test, self.stale)

    @classmethod
    def control(cls) -> type[StaleReads]:
        """The same executor whose reads see the current contents."""
        return _FreshReads


class _FreshReads(StaleReads):
    name: ClassVar[str] = "control"
    stale: ClassVar[bool] = False
