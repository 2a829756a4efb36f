"""Executors that run another test than they are given: one defect each, by no luck.

The native executor on the controlled engine, so that what they show follows from
the seed. Each breaks one feature of the format; a campaign has to find it, keep
it while it minimizes, and store what replays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from corpus.graph import BranchAttrs, LitmusTest, LoopAttrs
from corpus.ops import SectionAttrs
from fuzz.campaign.passes import Counters
from fuzz.campaign.sketch import Sketch
from fuzz.executors.native.executor import NativeExecutor, PreparedTest
from fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.executors.protocol import Config


class _Double(NativeExecutor):
    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        return tuple(c for c in super().configurations() if c.name == "controlled")

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        return PreparedTest(self._broken(test).build(), config)

    def _broken(self, test: LitmusTest) -> Sketch:
        raise NotImplementedError


class NoSections(_Double):
    """Sections hold nothing."""

    name: ClassVar[str] = "double/no-sections"

    def _broken(self, test: LitmusTest) -> Sketch:
        sketch = Sketch.of(test)
        gone = [node.name for node in sketch.nodes() if isinstance(node.attrs, SectionAttrs)]
        return sketch.without(gone, test.types)


class RoomyQueues(_Double):
    """Every queue holds one element more."""

    name: ClassVar[str] = "double/roomy-queues"

    def _broken(self, test: LitmusTest) -> Sketch:
        sketch = Sketch.of(test)
        queues = tuple(replace(q, capacity=q.capacity + 1) for q in sketch.queues)
        return replace(sketch, queues=queues)


class RunsAtOnce(_Double):
    """No run waits for another."""

    name: ClassVar[str] = "double/runs-at-once"

    def _broken(self, test: LitmusTest) -> Sketch:
        sketch = Sketch.of(test)
        return replace(sketch, client=tuple(replace(run, after=()) for run in sketch.client))


class OneMore(_Double):
    """A loop goes on once more."""

    name: ClassVar[str] = "double/one-more"

    def _broken(self, test: LitmusTest) -> Sketch:
        sketch = Sketch.of(test)
        counters = Counters(test)
        for node in list(sketch.nodes()):
            if isinstance(node.attrs, LoopAttrs):
                _, limit, step = counters.of(node)
                more = limit.attrs.value + step.attrs.value
                sketch = sketch.with_node(replace(limit, attrs=replace(limit.attrs, value=more)))
        return sketch


class OtherBranch(_Double):
    """The wrong body of a conditional runs."""

    name: ClassVar[str] = "double/other-branch"

    def _broken(self, test: LitmusTest) -> Sketch:
        def swapped(node):
            attrs = node.attrs
            if isinstance(attrs, BranchAttrs):
                attrs = replace(attrs, then=attrs.orelse, orelse=attrs.then)
            return replace(node, attrs=attrs)

        return Sketch.of(test).each_node(swapped)


class RunsOnly(NativeExecutor):
    """Sound; takes variables and several runs."""

    name: ClassVar[str] = "double/runs-only"
    features: ClassVar[frozenset[str]] = frozenset({"several runs"})

    def prepare(self, test: LitmusTest, config: Config) -> PreparedTest:
        """Refuses every other feature."""
        for feature in sorted(test.features - self.features):
            raise Refused(feature)
        return PreparedTest(test, config)


DOUBLES = (NoSections, RoomyQueues, RunsAtOnce, OneMore, OtherBranch)


def installed(folder: Path) -> str:
    """A folder that makes them executors, for whoever has it on its path."""
    made = folder / "doubles-1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: doubles\nVersion: 1\n")
    lines = [f"{each.name} = {__name__}:{each.__name__}" for each in (*DOUBLES, RunsOnly)]
    (made / "entry_points.txt").write_text("\n".join(["[litmusfuzz.executors]", *lines, ""]))
    return str(folder)
