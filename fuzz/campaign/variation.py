"""Noise that changes the test itself before an executor sees it: other names, and large tensors.

An executor sees names, as XLA does, which orders nodes by them; and large tensors are copied by
other code than small ones. So a campaign runs half of its tests under permuted names, and a small
share with many lanes. The test that was run goes into the files of its findings as it was, so that
nothing has to be varied again to show them. The event of the run says which noise it was; with the
seed of the run it gives the same test again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.shapes import contents, elements, refitted
from litmusfuzz.fuzz.campaign.judge import Judgement
from litmusfuzz.fuzz.campaign.reduction_passes import width
from litmusfuzz.fuzz.campaign.renaming import permuted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.ops import TensorType
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.campaign.judge import Oracle
    from litmusfuzz.fuzz.executors.protocol import Noise
    from litmusfuzz.fuzz.support import Support

RENAMED_SHARE: Final = 0.5
"""Share of runs under permuted names: most defects do not depend on names."""
WIDE_SHARE: Final = 1 / 64
"""Share of runs with many lanes, each of which takes as long as several others."""
LEAST_LANES: Final = 1 << 13
MOST_LANES: Final = 1 << 20
"""Generators make 4,096 lanes at most. A kernel takes a millisecond for 2**20."""
MOST_ELEMENTS: Final = 1 << 23
"""Elements of all values of a wide test together: 32 MiB in four-byte lanes, for each copy."""
WIDE_EXECUTIONS: Final = 1 << 26
"""Elements of all executions of a wide test: about a second."""
LEAST_EXECUTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class Variation:
    """A test as it is run.

    Parameters
    ----------
    test : LitmusTest
    noise : Noise
        What is left for the executor.
    count : int
        Executions: fewer of a large test.
    told : Noise
        All of the noise, for the event of the run.
    """

    test: LitmusTest
    noise: Noise
    count: int
    told: Noise


def varied(test: LitmusTest, noise: Noise, count: int, seed: int, support: Support) -> Variation:
    """The test under permuted names, or with many lanes, where the seed of the run says so.

    Parameters
    ----------
    test : LitmusTest
    noise : Noise
        Of the campaign; with `rename`, names are always permuted.
    count : int
        Executions that are asked for.
    seed : int
        Of the run.
    support : Support
        Of the executor, which takes the test as it is.
    """
    rng = random.Random(f"variation/{seed}")
    rename = noise.rename or rng.random() < RENAMED_SHARE
    is_wide = noise.lanes == 1 and rng.random() < WIDE_SHARE
    lanes = 1 << rng.randint(LEAST_LANES.bit_length() - 1, MOST_LANES.bit_length() - 1)
    told = replace(noise, rename=rename)
    if rename:
        test = permuted(test, seed)
    wide = with_lanes(test, lanes, support) if is_wide else None
    if wide is not None:
        test, told = wide, replace(told, lanes=width(wide))
        count = min(count, max(LEAST_EXECUTIONS, WIDE_EXECUTIONS // elements(test)))
    return Variation(test, replace(noise, rename=False), count, told)


def with_lanes(test: LitmusTest, lanes: int, support: Support) -> LitmusTest | None:
    """The test whose rows have so many lanes, or fewer if it were too large; None without rows.

    A test with queues stays as it is: a queue holds many tensors.
    """
    if test.whole or test.queues or not any(kind.shape for kind in contents(test).values()):
        return None
    while lanes >= LEAST_LANES:

        def of(kind: TensorType, lanes: int = lanes) -> tuple[int, ...]:
            return (kind.shape[0], lanes) if kind.shape else ()

        try:
            wide = refitted(test, of).build()
        except MalformedTest:
            return None
        if elements(wide) <= MOST_ELEMENTS and not support.lacking(wide):
            return wide
        lanes //= 2
    return None


# --- outcomes --------------------------------------------------------------------------


def names_between(test: LitmusTest, other: LitmusTest) -> dict[str, str]:
    """For each name in outcomes of a test, that in outcomes of the same test under other names."""
    return dict(zip(test.names, other.names, strict=True))


def renamed(histogram: Mapping[Outcome, int], names: Mapping[str, str]) -> dict[Outcome, int]:
    """A histogram whose outcomes have their values under other names."""
    return {_renamed(outcome, names): count for outcome, count in histogram.items()}


def _renamed(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    return replace(outcome, values=tuple((names[name], value) for name, value in outcome.values))


def as_run(judgement: Judgement, names: Mapping[str, str], oracle: Oracle) -> Judgement:
    """A judgement of a generated test as one of the test that was run, under its names."""
    return Judgement(
        oracle,
        renamed(judgement.histogram, names),
        judgement.verdicts,
        tuple((_renamed(outcome, names), count) for outcome, count in judgement.forbidden),
    )
