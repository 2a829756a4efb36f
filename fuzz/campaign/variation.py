"""Variation of a test before it is run: other names, another order, large tensors.

An executor sees the names of nodes and their order in the file: XLA orders nodes by name. It also
sees sizes: large tensors are copied by other code than small ones. So a campaign runs a share of
its tests under permuted names, a share in another order, and a small share with up to 2**20 lanes.
None of it changes the allowed outcomes, apart from their keys.

The seed of a run decides. The event of the run records the variation, from which the same test can
be made again byte for byte, and the file of a finding has the test as it was run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.shapes import contents, elements, refitted
from litmusfuzz.fuzz.campaign.tuning import LANES_SHARE, NAMES_SHARE, ORDER_SHARE
from litmusfuzz.fuzz.finding.canonical import reordered
from litmusfuzz.fuzz.finding.judge import Judgement
from litmusfuzz.fuzz.finding.renaming import permuted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.ops import TensorType
    from litmusfuzz.corpus.outcome import Verdict
    from litmusfuzz.fuzz.finding.judge import Oracle
    from litmusfuzz.fuzz.support import Support
    from litmusfuzz.oracles.model import Model

MIN_LANES: Final = 1 << 13
"""Generators make 4,096 lanes at most."""
MAX_LANES: Final = 1 << 20
MAX_LARGE_ELEMENTS: Final = 1 << 24
"""Elements of all values of a large test together: 64 MiB in four-byte lanes."""
LARGE_ELEMENTS_EXECUTED: Final = 1 << 26
"""Elements of all executions of a large test together."""
MIN_LARGE_EXECUTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Variation:
    """How a test is changed before it is run.

    Parameters
    ----------
    names : bool
        Nodes have each other's names; so have resources of one kind.
    order : bool
        Nodes stand in another order in the file.
    lanes : int
        Number of lanes in each row; 0 if the lanes stay.
    """

    names: bool = False
    order: bool = False
    lanes: int = 0

    def __str__(self) -> str:
        """The notation of events: ``names,order,lanes=524288``; "" for none."""
        flags = [name for name in ("names", "order") if getattr(self, name)]
        return ",".join([*flags, *([f"lanes={self.lanes}"] if self.lanes else [])])

    @classmethod
    def parse(cls, text: str) -> Variation:
        """The variation in the notation of events.

        Raises
        ------
        ValueError
            With a message of one line.
        """
        parts = text.split(",") if text else []
        lanes = 0
        for part in parts:
            name, _, value = part.partition("=")
            if name == "lanes" and value.isascii() and value.isdigit() and len(value) < 8:
                lanes = int(value)
            elif part not in ("names", "order"):
                raise ValueError(f"no variation {part!r}; there are names, order and lanes=NUMBER")
        if lanes and not MIN_LANES <= lanes <= MAX_LANES:
            raise ValueError(f"lanes must be {MIN_LANES} to {MAX_LANES}, got {lanes}")
        return cls("names" in parts, "order" in parts, lanes)

    @classmethod
    def choose(cls, test: LitmusTest, seed: int, support: Support) -> Variation:
        """The variation of a run with that seed, on an executor that takes the test as it is."""
        rng = random.Random(f"variation/{seed}")
        names, order = rng.random() < NAMES_SHARE, rng.random() < ORDER_SHARE
        large = rng.random() < LANES_SHARE
        # What shows above some size shows in the largest tensors. Smaller ones take less time.
        exponents = range(MIN_LANES.bit_length() - 1, MAX_LANES.bit_length())
        lanes = 1 << rng.choice((exponents[-1], rng.choice(exponents)))
        if not (large and copies_rows(test)):
            return cls(names, order)
        while lanes >= MIN_LANES:
            wide = with_lanes(test, lanes)
            if wide and elements(wide) <= MAX_LARGE_ELEMENTS and not support.lacking(wide):
                return cls(names, order, lanes)
            lanes //= 2
        return cls(names, order)


@dataclass(frozen=True, slots=True)
class VariedTest:
    """A test as it is run.

    Parameters
    ----------
    generated : LitmusTest
    test : LitmusTest
        The same test, varied.
    keys : mapping of str to str
        For each key in outcomes of `generated`, that in outcomes of `test`.
    lanes : int
        Of the variation.
    """

    generated: LitmusTest
    test: LitmusTest
    keys: Mapping[str, str]
    lanes: int = 0

    def count(self, count: int) -> int:
        """Executions, at most `count`: fewer of a large test."""
        if not self.lanes or elements(self.test) == elements(self.generated):
            return count
        affordable = LARGE_ELEMENTS_EXECUTED // elements(self.test)
        return min(count, max(MIN_LARGE_EXECUTIONS, affordable))

    def as_generated(self, histogram: Mapping[Outcome, int]) -> Mapping[Outcome, int]:
        """Outcomes of `test` as those of `generated`."""
        if self.test is self.generated:
            return histogram
        back = {new: old for old, new in self.keys.items()}
        return {_under(back, each, self.generated): n for each, n in histogram.items()}

    def as_run(self, judgement: Judgement) -> Judgement:
        """A judgement of `generated` as one of `test`."""
        if self.test is self.generated:
            return judgement

        def under(outcome: Outcome) -> Outcome:
            return _under(self.keys, outcome, self.test)

        return Judgement(
            _VariedOracle(self, judgement.oracle),
            {under(outcome): n for outcome, n in judgement.histogram.items()},
            judgement.verdicts,
            tuple((under(outcome), n) for outcome, n in judgement.forbidden),
        )


@dataclass(frozen=True, slots=True)
class _VariedOracle:
    """The oracle of a generated test, for outcomes of the test as it is run."""

    varied: VariedTest
    oracle: Oracle

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome."""
        (generated,) = self.varied.as_generated({outcome: 1})
        return self.oracle.judge(generated)


def varied(test: LitmusTest, variation: Variation, seed: int, model: Model) -> VariedTest:
    """Make a variation of a test.

    Parameters
    ----------
    test : LitmusTest
    variation : Variation
        Chosen for this test.
    seed : int
        Of the run.
    model : Model
        Judges the outcomes: under *program order per resource*, part of the order stays.

    Raises
    ------
    ValueError
        If the test cannot have that many lanes.
    """
    made = test
    if variation.lanes:
        wide = with_lanes(test, variation.lanes)
        if wide is None:
            raise ValueError(f"{test.name} has no rows for {variation.lanes} lanes")
        made = wide
    if variation.order:
        made = reordered(made, model, seed)
    if variation.names:
        made = permuted(made, seed)
    keys = dict(zip(test.names, made.names, strict=True))
    return VariedTest(test, made, keys, variation.lanes)


def _under(keys: Mapping[str, str], outcome: Outcome, of: LitmusTest) -> Outcome:
    return Outcome.of(of, {keys[key]: value for key, value in outcome.values}, outcome.status)


# --- lanes -----------------------------------------------------------------------------


def copies_rows(test: LitmusTest) -> bool:
    """True if an op writes a variable with rows: a kernel or a cluster then copies tensors."""
    shapes = {each.name: each.shape for each in test.variables}
    return any(
        node.definition.kind.writes and any(shapes.get(name) for name in node.resources)
        for node in test.effects
    )


def with_lanes(test: LitmusTest, lanes: int) -> LitmusTest | None:
    """The test with so many lanes in each row; None if a tensor were too large for a test file.

    None also for a test without rows, and for one with queues, which hold many tensors.
    """
    if test.whole or test.queues or not any(kind.shape for kind in contents(test).values()):
        return None

    def of(kind: TensorType) -> tuple[int, ...]:
        return (kind.shape[0], lanes) if kind.shape else ()

    try:
        return refitted(test, of).build()
    except MalformedTest:
        return None
