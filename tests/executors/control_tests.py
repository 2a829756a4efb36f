"""Small tests for schedules of pages and touches, and what is forbidden of what they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.library import FOLDERS
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.protocol import Explored

TWO_UPDATES = loads("""\
litmusfuzz: 2
name: two-updates-of-an-element
variables:
  X: {dtype: int32, shape: [3], init: 0}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [2], value: 1}
    w0: {op: ResourceScatterAdd, resources: [X], inputs: [one], indices: [1, 1]}
    r0: {op: ResourceGather, resources: [X], indices: [1]}
observe: [r0]
""").test
"""Read between the two, an element has a value that no order of the ops gives."""


GATHER_IN_PARTS = loads(f"""\
litmusfuzz: 2
name: gather-in-parts
variables:
  X: {{dtype: int32, shape: [2, 1024], init: 0}}
graphs:
  main:
    ones: {{op: Const, dtype: int32, shape: [2, 1024], value: 1}}
    w0: {{op: ResourceScatterUpdate, resources: [X], inputs: [ones], indices: [0, 1]}}
    r0: {{op: ResourceGather, resources: [X], indices: {[0] * 52}}}
observe: [r0]
""").test
"""Four threads read one row in four blocks of 13 times each, three of which are parts."""


def two_pages(name: str) -> LitmusTest:
    """The test of a finding, whose variables have two pages each."""
    text = (FOLDERS[1] / f"{name}.yaml").read_text(encoding="utf-8").partition("\nfinding:")[0]
    return loads(text.replace("[1, 4096]", "[1, 2048]") + "\n").test


def forbidden(test: LitmusTest, found: Explored) -> set[Outcome]:
    """The outcomes of a search that no order of whole ops gives."""
    return set(found.histogram) - set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses)
