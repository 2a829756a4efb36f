"""Memory models as data: each model is a short list of named axioms.

A model states what an executor guarantees. To define another model, list other axioms.

References
----------
semantics.md, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Axiom(StrEnum):
    """One rule that a total order of events must satisfy."""

    DEPENDENCIES = "dependencies"
    """RFC, rule 1: events of an edge's source come before events of its target.
    Without it only data edges order events, since no op can use a value before
    the value exists."""

    CRITICAL_SECTIONS = "critical sections"
    """RFC, rule 2: between a section's acquire and its release no other instance
    of a section on that mutex has an event."""

    RUNS = "runs"
    """RFC, rule 3: runs that the client orders come one after another."""

    FETCHES = "fetches"
    """semantics.md, 1, "Run": of the graph of a run that fetches or targets, only what these
    need happens. Without it everything does."""

    FIFO = "first in, first out"
    """RFC, rule 4: elements leave a queue in the order of their enqueue events.
    Without it a dequeue takes any element in the queue."""

    CAPACITY = "capacity"
    """RFC, rule 4: an enqueue on a full queue comes after a dequeue that freed a
    slot. Without it queues are unbounded."""

    STALE = "stale gradients are dropped"
    """semantics.md, 2, "Accumulators": a gradient whose local step is below the accumulator's
    step is dropped. Without it every gradient is added and counted."""

    ENOUGH = "enough gradients"
    """semantics.md, 2, "Accumulators": a take waits until the count is what it requires.
    Without it a take waits for one gradient."""

    PREDICATES = "predicates"
    """semantics.md, 3, "Loops": instances of a branch or body come after the
    predicate that chooses it. Without it they may come before the predicate, if
    the predicate then chooses them."""

    ITERATIONS = "iterations"
    """semantics.md, 3, "Loops": an iteration's condition comes after its first
    carried value."""

    CALLS = "calls"
    """semantics.md, 1, "Call": control edges out of a call follow all of its instances.
    Without it they follow its results only, as those of a conditional."""

    CLUSTERS = "clusters"
    """semantics.md, 5: a cluster's snapshot is one event, and its write-back is one
    event. Without it a cluster reads and writes each variable in a separate event."""

    DENSE_UPDATES_INDIVISIBLE = "dense updates indivisible"
    """RFC, "Resource Update Operations": the executor locks the variable for the
    whole dense update, so no other event falls between its read and its write."""

    UPDATES_INDIVISIBLE = "updates indivisible"
    """Stronger than any executor's guarantee: no other event falls between the read
    and the write of any update, sparse updates included (`unsplit`)."""

    PARALLEL_ITERATIONS = "parallel iterations"
    """semantics.md, 3, "Loops": with ``parallel_iterations = k`` nothing of
    iteration i+k comes before anything of iteration i."""

    PROGRAM_ORDER = "program order per resource"
    """Automatic control dependencies of `tf.function`: ops of one body through one handle
    come in the order of the file; reads through one handle are unordered among themselves.
    Ops without a handle of their own share one. Two handles of one variable are ordered by
    nothing. A front end adds this order to the graph."""

    EFFECTS_FIRST = "results after effects"
    """Automatic control dependencies of `tf.function`: what a function or a branch returns
    comes after all events of its body, what an iteration hands on after all of its condition
    and body, and what a loop returns after all of the last condition, too. So everything of an
    iteration comes before the next."""

    ONE_CLUSTER = "one cluster"
    """`tf.function` with ``jit_compile``: each run's whole graph is one cluster, its members
    in the order of the file. It is no order between events: with it the test is another."""

    IN_TURN = "program order"
    """Eager execution, which is synchronous: the nodes of a run's graph come in the order of
    the file, each wholly done before the next. A section's acquire stands just before its first
    member, its release just after its last. Inside of a node with a body it orders nothing."""

    SEQUENCE = "one thing at a time"
    """A thread for each run: the nodes of every graph and body come in the order of the file,
    each wholly done before the next, and iterations one after another. So a run has a single
    outcome, and so has a test whose client orders all runs; others run side by side."""


@dataclass(frozen=True, slots=True)
class Model:
    """A named set of axioms; `about` says in a sentence what is special about it."""

    name: str
    axioms: frozenset[Axiom]
    about: str = field(default="", compare=False)


FRONT_ENDS: Final = frozenset(
    {
        *(Axiom.PROGRAM_ORDER, Axiom.EFFECTS_FIRST, Axiom.IN_TURN, Axiom.SEQUENCE),
        Axiom.ONE_CLUSTER,
    }
)
"""Axioms of front ends, which add order to a graph, or compile it."""
EXECUTOR: Final = Model(
    "executor",
    frozenset(Axiom) - {Axiom.UPDATES_INDIVISIBLE} - FRONT_ENDS,
    "What TensorFlow's executor guarantees: rfc, an update of a whole variable is one step, and "
    "loops keep parallel_iterations.",
)
ACD: Final = Model(
    "acd",
    EXECUTOR.axioms | {Axiom.PROGRAM_ORDER, Axiom.EFFECTS_FIRST},
    "tf.function with automatic control dependencies: executor, and ops on one resource come in "
    "the order of the program.",
)
PROGRAM: Final = Model(
    "program",
    EXECUTOR.axioms | {Axiom.IN_TURN},
    "Eager execution: executor, and all ops of a run come in the order of the program.",
)
SEQUENTIAL: Final = Model(
    "sequential",
    PROGRAM.axioms | {Axiom.SEQUENCE},
    "A thread for each run: program, and also inside of loops, branches and calls one op comes "
    "after another.",
)
RFC: Final = Model(
    "rfc",
    EXECUTOR.axioms - {Axiom.DENSE_UPDATES_INDIVISIBLE, Axiom.PARALLEL_ITERATIONS},
    "The RFC of 2019: ops happen in some order that the edges allow, and others may come between "
    "the read and the write of an update.",
)
ONE_CLUSTER: Final = Model(
    "one_cluster",
    RFC.axioms | {Axiom.ONE_CLUSTER},
    "tf.function with jit_compile: rfc, and the whole graph of each run is one cluster of XLA.",
)
MODELS: Final = MappingProxyType({model.name: model for model in (RFC, EXECUTOR)})
"""The models of semantics.md, weakest first: a corpus file has an allowed set for each."""

GUARANTEES: Final = MappingProxyType(
    {**MODELS, **{model.name: model for model in (ACD, PROGRAM, SEQUENTIAL, ONE_CLUSTER)}}
)
"""Every model that an executor can guarantee."""


def unsplit(model: Model) -> Model:
    """`model` with every update as one indivisible event.

    No executor guarantees this model and no verdict uses it. Its total orders are the
    orders of `model` that a test harness can force on an executor.
    """
    return Model(f"{model.name}, unsplit", model.axioms | {Axiom.UPDATES_INDIVISIBLE})
