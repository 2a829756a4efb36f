"""Memory models as data: short lists of named axioms.

A model is what an executor promises. Another one is another list.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Axiom(StrEnum):
    """One rule that a total order of events must keep."""

    DEPENDENCIES = "dependencies"
    """RFC, rule 1: events of an edge's source come before its target's. Without
    it only data edges order events, since no value can be used before it is
    there."""

    CRITICAL_SECTIONS = "critical sections"
    """RFC, rule 2: between a section's acquire and its release no other instance
    of a section on that mutex has an event."""

    DENSE_UPDATES_INDIVISIBLE = "dense updates indivisible"
    """RFC, the same section: the executor locks the variable for all of a dense
    update, so nothing falls between its read and its write."""

    PARALLEL_ITERATIONS = "parallel iterations"
    """semantics.md, 3, "Loops": with ``parallel_iterations = k`` nothing of
    iteration i+k comes before anything of iteration i."""


@dataclass(frozen=True, slots=True)
class Model:
    """A name and the axioms that hold."""

    name: str
    axioms: frozenset[Axiom]


RFC: Final = Model("rfc", frozenset({Axiom.DEPENDENCIES, Axiom.CRITICAL_SECTIONS}))
EXECUTOR: Final = Model(
    "executor", RFC.axioms | {Axiom.DENSE_UPDATES_INDIVISIBLE, Axiom.PARALLEL_ITERATIONS}
)
MODELS: Final = MappingProxyType({model.name: model for model in (RFC, EXECUTOR)})
