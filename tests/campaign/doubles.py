"""Test doubles of executors for the tests of campaigns.

A defect in conditionals, of which there is no mutant, and an executor that runs
one feature only.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from litmusfuzz.corpus.model import BranchAttrs, LitmusTest
from litmusfuzz.corpus.rewriter import Rewriter
from litmusfuzz.fuzz.executors.native.executor import NativeExecutor, PreparedTest
from litmusfuzz.fuzz.executors.protocol import Refused, Unavailable
from litmusfuzz.fuzz.mutants.stale_reads import StaleReads
from litmusfuzz.fuzz.passes.clustering import Clustering, Rule, cluster
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from litmusfuzz.fuzz.executors.protocol import Config, Executor, Prepared


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


DOUBLES = (
    *(Profiled, OtherBranch, RunsOnly, Clusterer, UnsafeClusterer, Counting, TakesClusters),
    *(Crashing, Damaged, Damaging, Raising),
)


def installed(folder: Path, doubles: Sequence[type[Executor]] = DOUBLES) -> str:
    """A folder that makes doubles executors, for whoever has it on its path."""
    made = folder / "doubles-1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: doubles\nVersion: 1\n")
    lines = [f"{e.name} = {e.__module__}:{e.__name__}" for e in doubles]
    (made / "entry_points.txt").write_text("\n".join(["[litmusfuzz.executors]", *lines, ""]))
    return str(folder)
