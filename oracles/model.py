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

    RUNS = "runs"
    """RFC, rule 3: runs that the client orders come one after another."""

    FIFO = "first in, first out"
    """RFC, rule 4: elements leave a queue in the order of their enqueue events.
    Without it a dequeue takes any element that is there."""

    CAPACITY = "capacity"
    """RFC, rule 4: an enqueue on a full queue comes after a dequeue that made
    room. Without it queues have no bound."""

    PREDICATES = "predicates"
    """semantics.md, 3, "Loops": instances of a branch or body come after the
    predicate that chose it. Without it they may come early, if it then does."""

    ITERATIONS = "iterations"
    """semantics.md, 3, "Loops": an iteration's condition comes after its first
    carried value."""

    CLUSTERS = "clusters"
    """semantics.md, 5: a cluster's snapshot is one event, and its write-back.
    Without it each variable is read, and written, by an event of its own."""

    DENSE_UPDATES_INDIVISIBLE = "dense updates indivisible"
    """RFC, the same section: the executor locks the variable for all of a dense
    update, so nothing falls between its read and its write."""

    UPDATES_INDIVISIBLE = "updates indivisible"
    """Stronger than any promise: nothing falls between the read and the write of
    any update, sparse ones included (`unsplit`)."""

    PARALLEL_ITERATIONS = "parallel iterations"
    """semantics.md, 3, "Loops": with ``parallel_iterations = k`` nothing of
    iteration i+k comes before anything of iteration i."""

    PROGRAM_ORDER = "program order per resource"
    """Automatic control dependencies of `tf.function`: ops on one variable or queue
    come in the order of the file, reads of a variable among themselves in any. Not of
    semantics.md: a front end adds it. Between iterations of a loop it orders nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """A name and the axioms that hold."""

    name: str
    axioms: frozenset[Axiom]


ACD: Final = Model("acd", frozenset(Axiom) - {Axiom.UPDATES_INDIVISIBLE})
EXECUTOR: Final = Model("executor", ACD.axioms - {Axiom.PROGRAM_ORDER})
RFC: Final = Model(
    "rfc", EXECUTOR.axioms - {Axiom.DENSE_UPDATES_INDIVISIBLE, Axiom.PARALLEL_ITERATIONS}
)
MODELS: Final = MappingProxyType({model.name: model for model in (RFC, EXECUTOR)})
"""Those of semantics.md, the loosest first: a file of the corpus has a set for each."""

GUARANTEES: Final = MappingProxyType({**MODELS, ACD.name: ACD})
"""All that an executor may promise."""


def unsplit(model: Model) -> Model:
    """What `model` allows without splitting an update in two.

    Nobody promises it, and nobody is judged by it: it has those orders of `model` that
    can be forced from outside.
    """
    return Model(f"{model.name}, unsplit", model.axioms | {Axiom.UPDATES_INDIVISIBLE})
