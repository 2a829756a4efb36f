"""Mutants whose sparse updates tear, two of which have another defect on the same ops.

The tear is what TensorFlow's sparse updates do (docs/tensorflow-findings.md, "Sparse updates are
not atomic"), so that every campaign sees it in half of its sparse tests. The other defects hide
behind it: they show in the same tests, and their minimized tests have the same ops. Their control
is the executor with the tear alone.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.ops import Kind
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace
from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter, Refused
from litmusfuzz.fuzz.executors.setting_types import Flag
from litmusfuzz.fuzz.support import Support
from litmusfuzz.oracles.arithmetic import evaluated, gathered, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import Point
    from litmusfuzz.fuzz.executors.protocol import Histogram, Noise
    from litmusfuzz.fuzz.executors.setting_types import SettingType
    from litmusfuzz.oracles.arithmetic import Ints

Halves = tuple["Ints", "Ints"]
"""A value in the first and in the second half of its lanes."""


@dataclass(frozen=True, slots=True)
class Defects:
    """What is wrong with sparse updates.

    Parameters
    ----------
    torn : bool
        One is two steps: it writes the first half of the lanes, later the second half.
    early : bool
        It counts as done after its first step.
    forgotten : bool
        A read that comes after one may still return the contents before it.
    """

    torn: bool = True
    early: bool = False
    forgotten: bool = False


class _Execution:
    """One execution of a test, in random order."""

    def __init__(self, test: LitmusTest, defects: Defects, rng: random.Random) -> None:
        self.test, self.defects, self.rng = test, defects, rng
        self.memory: dict[str, Halves] = {v.name: (test.initial(v),) * 2 for v in test.variables}
        self.rows = {v.name: len(test.initial(v)) // (v.shape or (1,))[0] for v in test.variables}
        self.wide = {v.name: bool(v.shape) and v.type.size > v.shape[0] for v in test.variables}
        self.values: dict[str, Halves] = {}
        self.before: dict[str, Halves] = {}
        """Contents of variables before their last sparse update."""

    def outcome(self) -> Outcome:
        """Run the graph; its nodes are few."""
        left = {node.name: node for node in self.test.graph.nodes}
        halfway: dict[str, dict[str, Halves]] = {}
        while left:
            ready = [
                node
                for node in left.values()
                if all(
                    name not in left or (self.defects.early and name in halfway)
                    for name in (*node.inputs, *node.after)
                )
            ]
            node = self.rng.choice(ready)
            splits = self.defects.torn and node.definition.sparse and node.definition.kind.writes
            if splits and node.name not in halfway:
                halfway[node.name] = self._begin(node)
                continue
            if splits:
                self._store(halfway[node.name], (0, 1))
            else:
                self._run(node)
            del left[node.name]
        found = {**self.values, **self.memory}
        return Outcome.of(self.test, {n: a if a == b else TORN for n, (a, b) in found.items()})

    def _begin(self, node: Node) -> dict[str, Halves]:
        """The first step of a sparse update; what it stores."""
        stored = self._stored(node)
        for name in stored:
            self.before[name] = self.memory[name]
        self._store({name: new for name, new in stored.items() if self.wide[name]}, (0,))
        return stored

    def _store(self, stored: Mapping[str, Halves], halves: Iterable[int]) -> None:
        for name, new in stored.items():
            pair = list(self.memory[name])
            for half in halves:
                pair[half] = new[half]
            self.memory[name] = (pair[0], pair[1])

    def _stored(self, node: Node) -> dict[str, Halves]:
        """What a write or update stores, by variable."""
        size = self.rows[node.resources[0]]
        parts = [
            written(
                node,
                [self.memory[name][half] for name in node.resources],
                [self.values[name][half] for name in node.inputs],
                size,
            )
            for half in (0, 1)
        ]
        return dict(zip(node.resources, zip(*parts, strict=True), strict=True))

    def _run(self, node: Node) -> None:
        """A node that is one step."""
        kind = node.definition.kind
        if node.definition.constant:
            self.values[node.name] = (self.test.constant(node),) * 2
        elif kind is Kind.READ:
            self._read(node)
        elif kind.writes:
            self._store(self._stored(node), (0, 1))
        elif node.definition.has_value:
            first, second = (
                evaluated(self.test, node, [self.values[name][half] for name in node.inputs])
                for half in (0, 1)
            )
            self.values[node.name] = (first, second)

    def _read(self, node: Node) -> None:
        variable = node.resources[0]
        seen = self.memory[variable]
        old = self.before.get(variable)
        forgets = self.defects.forgotten and not self.wide[variable]
        if forgets and old is not None and self.rng.random() < 0.5:
            seen = old
        first, second = (gathered(node, half, self.rows[variable]) for half in seen)
        self.values[node.name] = (first, second)


@dataclass(frozen=True, slots=True)
class _Prepared:
    test: LitmusTest
    defects: Defects

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        rng = random.Random(seed)
        return Counter(_Execution(self.test, self.defects, rng).outcome() for _ in range(count))

    def close(self) -> None:
        pass


class TornScatter:
    """Mutant: a sparse update writes the first half of the lanes, later the second half.

    Killed by a sparse update beside a read. Survives where the two are ordered.
    """

    name: ClassVar[str] = "mutant/torn-scatter"
    support: ClassVar[Support] = Support(features=frozenset())
    fork_after: ClassVar[ForkAfter] = ForkAfter(("litmusfuzz.fuzz.mutants.scatter",))
    setting_types: ClassVar[Mapping[str, SettingType]] = {"early": Flag()}

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One configuration; the mutant breaks its guarantee."""
        return (Config("plain", "executor", (("early", False),)),)

    @classmethod
    def versions(cls) -> dict[str, str]:
        """Version of Python."""
        return {"python": sys.version.split()[0]}

    @classmethod
    def defects(cls, config: Config) -> Defects:
        """What is wrong in a configuration."""
        return Defects()

    @classmethod
    def control(cls) -> type[TornScatter]:
        """The same executor with atomic updates."""
        return _Sound

    def prepare(self, test: LitmusTest, config: Config) -> _Prepared:
        """Accept tests of one graph that uses only variables."""
        for feature in sorted(test.features):
            raise Refused(feature)
        return _Prepared(test, self.defects(config))


class _Sound(TornScatter):
    name: ClassVar[str] = "control"

    @classmethod
    def defects(cls, config: Config) -> Defects:
        return Defects(torn=False)


class EarlyScatter(TornScatter):
    """Mutant: a torn sparse update that, with the setting ``early``, is done after its first half.

    With the setting, killed by a read after a sparse update, which may be torn. Survives the same
    test without it, and, as far as its control tells, a read beside the update.
    """

    name: ClassVar[str] = "mutant/early-scatter"
    space: ClassVar[ConfigurationSpace] = ConfigurationSpace({"early": (False, True)})

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Without the setting, and with it."""
        names = (("plain", False), ("early", True))
        return tuple(Config(name, "executor", (("early", early),)) for name, early in names)

    @classmethod
    def configured(cls, name: str) -> Config:
        """The configuration that settings name."""
        return cls.configuration_at(cls.space.parsed(name))

    @classmethod
    def configuration_at(cls, point: Mapping[str, Setting]) -> Config:
        """Each point has a name."""
        plain, early = cls.configurations()
        return early if point["early"] else plain

    @classmethod
    def point_of(cls, config: Config) -> Point:
        """Its settings."""
        return dict(config.settings)

    @classmethod
    def defects(cls, config: Config) -> Defects:
        """The tear, and early completion with the setting."""
        return Defects(early=bool(dict(config.settings)["early"]))

    @classmethod
    def control(cls) -> type[TornScatter]:
        """The tear alone, in both configurations."""
        return _TornTwice


class _TornTwice(EarlyScatter):
    name: ClassVar[str] = "control"

    @classmethod
    def defects(cls, config: Config) -> Defects:
        return Defects()


class ForgottenScatter(TornScatter):
    """Mutant: a torn sparse update, and reads without lanes that may miss one that came before.

    Killed by a read after a sparse update. Survives the same test with lanes, which the tear does
    not show either, and, as far as its control tells, a read beside the update.
    """

    name: ClassVar[str] = "mutant/forgotten-scatter"

    @classmethod
    def defects(cls, config: Config) -> Defects:
        """The tear, and forgotten updates."""
        return Defects(forgotten=True)

    @classmethod
    def control(cls) -> type[TornScatter]:
        """The tear alone."""
        return _TornOnly


class _TornOnly(TornScatter):
    name: ClassVar[str] = "control"
