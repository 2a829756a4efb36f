"""Test doubles of executors for the tests of campaigns.

A defect in conditionals, of which there is no mutant, and an executor that runs
one feature only.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.model import BranchAttrs, LitmusTest
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.campaign.settings import SHALLOW_COUNT
from litmusfuzz.fuzz.executors.configuration_space import ConfigurationSpace, Exclusion
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import ChosenClusters, Config, Refused, Unavailable
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed
from litmusfuzz.fuzz.mutants.stale_reads import StaleReads
from litmusfuzz.fuzz.passes.clustering import Clustering, Rule, cluster
from litmusfuzz.fuzz.support import EVERYTHING, Support
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import RFC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.corpus.textfile import Setting
    from litmusfuzz.fuzz.executors.configuration_space import Point
    from litmusfuzz.fuzz.executors.protocol import (
        Executor,
        Histogram,
        Noise,
        Prepared,
        PreparedPack,
    )


class OtherBranch(NativeExecutor):
    """The wrong body of a conditional runs."""

    name: ClassVar[str] = "double/other-branch"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Swaps the bodies."""

        def swapped(node):
            attrs = node.attrs
            if isinstance(attrs, BranchAttrs):
                attrs = replace(attrs, then=attrs.orelse, orelse=attrs.then)
            return replace(node, attrs=attrs)

        return PreparedTest(Rewriter.of(test).each_node(swapped).build(), config)


class RunsOnly(NativeExecutor):
    """Sound; refuses every feature but several runs, and does not declare that it does."""

    name: ClassVar[str] = "double/runs-only"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Refuses every other feature."""
        for feature in sorted(test.features - {"several runs"}):
            raise Refused(feature)
        return PreparedTest(test, config)


class Clusterer(NativeExecutor):
    """Sound; says that it runs the clusters that our clusterer chooses."""

    name: ClassVar[str] = "double/clusterer"
    options: ClassVar[Clustering] = Clustering()

    @classmethod
    def clustered(cls, test: LitmusTest, config: Config) -> LitmusTest:
        """By the rules that it keeps."""
        return test if test.clusters else cluster(test, cls.options)


class UnsafeClusterer(Clusterer):
    """It puts unsafe pairs into one cluster."""

    name: ClassVar[str] = "double/unsafe-clusterer"
    options: ClassVar[Clustering] = Clustering(without=frozenset({Rule.UNSAFE_PAIR}))


class Compiled(PreparedTest):
    """A test with the clusters of a compiler: shows any outcome that they allow."""

    def __init__(self, test: LitmusTest, config: Config) -> None:
        super().__init__(test, config)
        made = cluster(test, UnsafeClusterer.options)
        self.test = test
        self._chosen = ChosenClusters(tuple(each.members for each in made.clusters))
        self._allowed = sorted(Explorer(made, RFC).allowed_outcomes().witnesses, key=str)

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Draws outcomes."""
        return Counter(random.Random(seed).choices(self._allowed, k=count))

    def clusters(self) -> Sequence[ChosenClusters]:
        """Of a test that is not run."""
        return (self._chosen,)

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """Of the last run."""
        return (self._chosen,)


class UnsafeCompiler(NativeExecutor):
    """It puts unsafe pairs into one cluster, and says so only when it has run a test."""

    name: ClassVar[str] = "double/unsafe-compiler"
    support: ClassVar[Support] = Support(features=frozenset())

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Compiles."""
        return Compiled(test, config)


class _Unread(Compiled):
    """Its clusters are not read while it has a variable with a value other than 0.

    They depend on the order of its nodes: in the order of the test there are none, nor in the
    order of every third run.
    """

    def __init__(self, test: LitmusTest, config: Config) -> None:
        super().__init__(test, config)
        self._found, self._joined = self._chosen, False
        self._none = ChosenClusters(())
        if any(each.init for each in test.variables):
            self._found = self._none = ChosenClusters((), problem="variables with a value")

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Draws outcomes."""
        self._joined = seed % 3 > 0
        return (
            super().run(count, noise, seed)
            if self._joined
            else PreparedTest.run(self, count, noise, seed)
        )

    def clusters(self) -> Sequence[ChosenClusters]:
        """Of a test that is not run."""
        return (self._none,)

    def clusters_run(self) -> Sequence[ChosenClusters]:
        """Of the last run."""
        return (self._found if self._joined else self._none,)


class _ShownAnyway(_Unread):
    """Shows what its clusters allow in orders in which it has none, too: those of short runs."""

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Draws outcomes."""
        self._joined = count > SHALLOW_COUNT or seed % 3 > 0
        return Compiled.run(self, count, noise, seed)


class UnreadCompiler(UnsafeCompiler):
    """It puts unsafe pairs into one cluster, and says so of a few tests.

    Only in configurations that guarantee `rfc`: a cluster reads and writes apart.
    """

    name: ClassVar[str] = "double/unread-compiler"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Compiles."""
        of = _Unread if config.guarantees == "rfc" else PreparedTest
        return of(test, config)


class AnyOrder(UnreadCompiler):
    """As unread-compiler, and what its clusters allow shows in graphs without clusters."""

    name: ClassVar[str] = "double/any-order"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Compiles."""
        of = _ShownAnyway if config.guarantees == "rfc" else PreparedTest
        return of(test, config)


class _Uncompiled(PreparedTest):
    """Shows what clusters allow, and has none."""

    def __init__(self, test: LitmusTest, config: Config) -> None:
        super().__init__(test, config)
        self._compiled = Compiled(test, config)

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Draws outcomes."""
        return self._compiled.run(count, noise, seed)


class WrongAnyway(UnreadCompiler):
    """As unread-compiler, and what its clusters allow shows in configurations without clusters."""

    name: ClassVar[str] = "double/wrong-anyway"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Compiles, or not."""
        return (_Unread if config.guarantees == "rfc" else _Uncompiled)(test, config)


WRITES = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


class _TornToo(Compiled):
    """Shows a torn variable beside what the clusters allow."""

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Both, in one run."""
        seen = Counter(super().run(count, noise, seed))
        values = dict(next(iter(seen)).values)
        written = next(node.resources[0] for node in self.test.effects if node.op in WRITES)
        return seen + Counter([Outcome.of(self.test, values | {written: TORN})])


class TornCompiler(UnsafeCompiler):
    """It puts unsafe pairs into one cluster, and beside that its writes are torn."""

    name: ClassVar[str] = "double/torn-compiler"

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Compiles."""
        return _TornToo(test, config)


class Counting(NativeExecutor):
    """Counts as a compiler does: each test is compiled once, in half a second."""

    name: ClassVar[str] = "double/counting"

    def __init__(self) -> None:
        super().__init__()
        self.tests = 0

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Counts."""
        self.tests += 1
        return super().prepare(test, config)

    def counters(self) -> Mapping[str, float]:
        """Of each test."""
        return {"compiled": self.tests, "found": 3 * self.tests, "seconds": 0.5 * self.tests}


class TakesClusters(Clusterer):
    """Takes tests with clusters, and runs them without; it may show what no cluster does."""

    name: ClassVar[str] = "double/takes-clusters"
    support: ClassVar[Support] = EVERYTHING

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Drops them."""
        return super().prepare(replace(test, clusters=()), config)


class Profiled(NativeExecutor):
    """Has configurations of all sorts, and looks whether its environment is theirs."""

    name: ClassVar[str] = "double/profiled"
    support: ClassVar[Support] = Support(features=frozenset())

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """Sound ones, unsound ones, and those that cannot run."""
        native = {config.name: config for config in NativeExecutor.configurations()}
        controlled, split = native["controlled"], native["controlled_split"]
        one, two = (("PROFILED", "one"),), (("PROFILED", "two"),)
        return (
            replace(controlled, name="missing"),
            replace(controlled, name="sound"),
            replace(controlled, name="stale"),
            replace(split, name="split", guarantees="executor"),
            replace(split, name="weak", environment=one),
            replace(controlled, name="stale_too", environment=one),
            replace(controlled, name="dies", environment=two),
        )

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Ends the process where it says so."""
        if os.environ.get("PROFILED") == "two":
            os._exit(3)
        return NativeExecutor.versions()

    def check(self, config: Config) -> None:
        """One is not there."""
        if config.name == "missing":
            raise Unavailable("no such device")

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Two are a mutant."""
        assert dict(config.environment).get("PROFILED") == os.environ.get("PROFILED")
        if config.name.startswith("stale"):
            return StaleReads().prepare(test, config)
        return super().prepare(test, config)


@dataclass(frozen=True, slots=True)
class _Deep:
    one: Prepared
    many: Prepared

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Many copies show what one does not."""
        return (self.many if noise.copies > 1 else self.one).run(count, noise, seed)

    def close(self) -> None:
        """Nothing to do."""


class DeepStale(StaleReads):
    """A mutant that shows its stale reads only where many copies race."""

    name: ClassVar[str] = "double/deep-stale"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Both, and chooses by the noise."""
        stale = super().prepare(test, config)
        return _Deep(replace(stale, stale=False), stale)


class AloneStale(StaleReads):
    """A mutant that shows its stale reads in one copy, or in any number of a small test."""

    name: ClassVar[str] = "double/alone-stale"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Both, and chooses by the noise."""
        stale = super().prepare(test, config)
        sound = replace(stale, stale=False)
        return stale if len(test.nodes) <= 3 else _Deep(stale, sound)


class Crashing(StaleReads):
    """A mutant whose process crashes on every twelfth test."""

    name: ClassVar[str] = "double/crashing"
    tests_until_crash: ClassVar[int] = 12

    def __init__(self) -> None:
        self.tests: set[LitmusTest] = set()

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Crashes where it says so."""
        self.tests.add(test)
        if len(self.tests) == self.tests_until_crash:
            os.abort()
        return super().prepare(test, config)


class CrashingCompiler(UnsafeCompiler):
    """It puts unsafe pairs into one cluster, and its process crashes on every twelfth test."""

    name: ClassVar[str] = "double/crashing-compiler"

    def __init__(self) -> None:
        super().__init__()
        self.tests: set[LitmusTest] = set()

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Crashes, or compiles."""
        self.tests.add(test)
        if len(self.tests) == Crashing.tests_until_crash:
            os.abort()
        return super().prepare(test, config)


class Damaged(Crashing):
    """Sound, but its third test damages the process: from then on it shows stale reads.

    A process that runs few tests is sound to its end.
    """

    name: ClassVar[str] = "double/damaged"
    stale: ClassVar[bool] = False
    tests_until_damage: ClassVar[int] = 3

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Damages the process, and crashes."""
        prepared = super().prepare(test, config)
        damaged = len(self.tests) >= self.tests_until_damage
        return replace(prepared, stale=damaged)


class Raising(StaleReads):
    """Sound; raises an exception of several lines on every third test."""

    name: ClassVar[str] = "double/raising"
    stale: ClassVar[bool] = False
    said: ClassVar[str] = "2 problems:\n  - the first\n  - and the <second>"

    def __init__(self) -> None:
        self.tests: set[LitmusTest] = set()

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Raises it where it says so."""
        self.tests.add(test)
        if len(self.tests) % 3 == 0:
            raise ValueError(self.said)
        return super().prepare(test, config)


class Damaging(StaleReads):
    """Sound; counts its process by its ID, and says that an op may damage it."""

    name: ClassVar[str] = "double/damaging"
    stale: ClassVar[bool] = False
    damaging_ops: ClassVar[frozenset[str]] = frozenset({"AssignAddVariableOp"})

    def counters(self) -> Mapping[str, float]:
        """The process."""
        return {"pid": os.getpid()}


class Spaced(StaleReads):
    """Reads are stale under one pair of settings only; `process` is read when a worker starts."""

    name: ClassVar[str] = "double/spaced"
    space: ClassVar[ConfigurationSpace] = ConfigurationSpace(
        values={
            "cache": ("off", "small", "large"),
            "threads": (4, 1, 16),
            "process": ("one", "two", "three"),
            "traced": (False, True),
            "checked": (False, True),
        },
        exclusions=(Exclusion(("traced", (True,)), ("process", ("three",)), "three has no trace"),),
        words={("cache", "large"): "with a large cache", ("threads", 1): "in one thread"},
        plain_words="in a plain process",
    )
    shows: ClassVar[Mapping[str, Setting]] = {"cache": "large", "threads": 1}
    """Settings that are needed, and that suffice."""

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """The presets."""
        plain = cls.space.plain
        return (
            cls._named("plain", plain),
            cls._named("large", {**plain, "cache": "large"}),
            cls._named("two", {**plain, "process": "two"}),
        )

    @classmethod
    def _named(cls, name: str, point: Mapping[str, Setting]) -> Config:
        return Config(name, "executor", tuple(point.items()), (("SPACED", str(point["process"])),))

    @classmethod
    def configuration_at(cls, point: Mapping[str, Setting]) -> Config:
        """A preset, or one that its settings name."""
        presets = (each for each in cls.configurations() if dict(each.settings) == point)
        return next(presets, None) or cls._named(cls.space.name(point), point)

    @classmethod
    def point_of(cls, config: Config) -> Point | None:
        """Its settings."""
        return dict(config.settings)

    @classmethod
    def configured(cls, name: str) -> Config:
        """As it is parsed."""
        return cls.configuration_at(cls.space.parsed(name))

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Stale where its settings say so."""
        settings = dict(config.settings)
        assert settings["process"] == os.environ["SPACED"]
        prepared = super().prepare(test, config)
        return replace(prepared, stale=self.shows.items() <= settings.items())


class EndsItsProcess(Spaced):
    """An addition ends the process under one pair of settings; else it is sound."""

    name: ClassVar[str] = "double/ends-its-process"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Ends the process where settings and test say so."""
        adds = any(node.op == "AssignAddVariableOp" for node in test.effects)
        if adds and self.shows.items() <= dict(config.settings).items():
            os.abort()
        return replace(super().prepare(test, config), stale=False)


class Raises(Spaced):
    """An addition raises an exception in the system under one pair of settings."""

    name: ClassVar[str] = "double/raises"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Raises where settings and test say so."""
        adds = any(node.op == "AssignAddVariableOp" for node in test.effects)
        if adds and self.shows.items() <= dict(config.settings).items():
            raise SystemFailed("ValueError at system/core.py:bind")
        return replace(super().prepare(test, config), stale=False)


class EitherSetting(Spaced):
    """Two defects that show the same: each needs a setting of its own."""

    name: ClassVar[str] = "double/either-setting"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Stale where one of its settings says so."""
        settings = dict(config.settings)
        prepared = super().prepare(test, config)
        return replace(prepared, stale=settings["cache"] == "large" or settings["traced"])


class RarelyPlain(Spaced):
    """Reads are stale in every execution with a large cache, and elsewhere in one of 1,024."""

    name: ClassVar[str] = "double/rarely-plain"
    often: ClassVar[Mapping[str, Setting]] = {"cache": "large"}

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Stale in some executions, always the same number."""
        stale = replace(super().prepare(test, config), stale=True)
        if self.often.items() <= dict(config.settings).items():
            return stale
        return _InOneOf(1024, stale)


@dataclass(frozen=True)
class _InOneOf:
    """A prepared mutant that is wrong in one of so many executions."""

    number: int
    stale: Prepared

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Both sorts of executions; only one if both show the same."""
        wrong = count // self.number
        ((right, _),) = replace(self.stale, stale=False).run(1, noise, seed).items()
        ((stale, _),) = self.stale.run(1, noise, seed).items()
        seen = Counter({right: count - wrong}) + Counter({stale: wrong})
        return dict(seen)

    def close(self) -> None:
        """Nothing is held."""


class CrashesInLongRuns(StaleReads):
    """A mutant whose process crashes in a run of more than 100 executions."""

    name: ClassVar[str] = "double/crashes-in-long-runs"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Stale reads, in runs that are short enough."""
        return _NotForLong(super().prepare(test, config))


@dataclass(frozen=True)
class _NotForLong:
    """A prepared test of it."""

    stale: Prepared

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """Nothing is left of a long run."""
        if count > 100:
            os.abort()
        return self.stale.run(count, noise, seed)

    def close(self) -> None:
        """Nothing is held."""


class WeakerGuarantee(Spaced):
    """Updates are in two parts; only with a large cache it guarantees that they are not."""

    name: ClassVar[str] = "double/weaker-guarantee"

    @classmethod
    def _named(cls, name: str, point: Mapping[str, Setting]) -> Config:
        guarantees = "executor" if point["cache"] == "large" else "rfc"
        return replace(super()._named(name, point), guarantees=guarantees)

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """As the native executor with split updates does, whatever the settings."""
        native = {each.name: each for each in NativeExecutor.configurations()}
        return NativeExecutor().prepare(test, native["controlled_split"])


class Packs(StaleReads):
    """A mutant that runs packs; counts the tests of its packs."""

    name: ClassVar[str] = "double/packs"
    size: ClassVar[int] = 3
    ends: ClassVar[frozenset[str]] = frozenset()
    """Ops that end its process, wherever they are."""
    ends_packs: ClassVar[frozenset[str]] = frozenset()
    """Ops that end its process in a pack."""

    def __init__(self) -> None:
        self.packed = 0

    @classmethod
    def pack_size(cls, config: Config, noise: Noise) -> int:
        """The same for all."""
        return cls.size

    @classmethod
    def may_pack(cls, test: LitmusTest, config: Config) -> bool:
        """Not every test."""
        return len(test.nodes) % 4 > 0

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Crashes where it says so."""
        if any(node.op in self.ends for node in test.effects):
            os.abort()
        return super().prepare(test, config)

    def prepare_pack(self, tests: Sequence[LitmusTest], config: Config) -> PreparedPack:
        """Crashes where it says so."""
        assert 1 < len(tests) <= self.size
        assert all(self.may_pack(test, config) for test in tests)
        if any(node.op in self.ends_packs for test in tests for node in test.effects):
            os.abort()
        self.packed += len(tests)
        return Pack([self.prepare(test, config) for test in tests])

    def counters(self) -> Mapping[str, float]:
        """Tests that ran in packs."""
        return {"packed": self.packed}


class Pack:
    """Runs its tests one after the other."""

    def __init__(self, tests: Sequence[Prepared]) -> None:
        self.tests = tests

    def run(self, count: int, noise: Noise, seeds: Sequence[int]) -> list[Histogram]:
        """Each as it is run alone."""
        return [e.run(count, noise, seed) for e, seed in zip(self.tests, seeds, strict=True)]


class PacksOfOne(Packs):
    """The same without packs."""

    name: ClassVar[str] = "double/packs-of-one"
    size: ClassVar[int] = 1


class PacksThatCrash(Packs):
    """An op ends its process."""

    name: ClassVar[str] = "double/packs-that-crash"
    ends: ClassVar[frozenset[str]] = frozenset({"AssignSubVariableOp"})


class CrashesInPacks(Packs):
    """An op ends its process, but only in packs."""

    name: ClassVar[str] = "double/crashes-in-packs"
    ends_packs: ClassVar[frozenset[str]] = frozenset({"AssignSubVariableOp"})


class Tearing(NativeExecutor):
    """Variables that are written are torn, whatever the ops; it runs tests without other keys."""

    name: ClassVar[str] = "double/tearing"

    def prepare(self, test: LitmusTest, config: Config) -> Prepared:
        """Runs nothing."""
        return _Torn(test)


@dataclass(frozen=True)
class _Torn:
    """A prepared test whose written variables are torn."""

    test: LitmusTest

    def run(self, count: int, noise: Noise, seed: int) -> Histogram:
        """One outcome."""
        written = {v for n in self.test.effects if n.definition.kind.writes for v in n.resources}
        held = {v.name: self.test.initial(v) for v in self.test.variables}
        values = {name: TORN if name in written else held[name] for name in self.test.names}
        return {Outcome.of(self.test, values): count}

    def close(self) -> None:
        """Nothing is held."""


DOUBLES = (
    *(Packs, PacksOfOne, PacksThatCrash, CrashesInPacks),
    *(Profiled, OtherBranch, RunsOnly, Clusterer, UnsafeClusterer, UnsafeCompiler),
    *(TornCompiler, UnreadCompiler, AnyOrder, WrongAnyway, CrashingCompiler),
    *(Counting, TakesClusters),
    *(AloneStale, Crashing, Damaged, Damaging, DeepStale, Raising),
    *(
        CrashesInLongRuns,
        EndsItsProcess,
        Raises,
        Spaced,
        EitherSetting,
        RarelyPlain,
        WeakerGuarantee,
        Tearing,
    ),
)


def installed(folder: Path, doubles: Sequence[type[Executor]] = DOUBLES) -> str:
    """A folder that makes doubles executors, for whoever has it on its path."""
    made = folder / "doubles-1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: doubles\nVersion: 1\n")
    lines = [f"{e.name} = {e.__module__}:{e.__name__}" for e in doubles]
    (made / "entry_points.txt").write_text("\n".join(["[litmusfuzz.executors]", *lines, ""]))
    return str(folder)
