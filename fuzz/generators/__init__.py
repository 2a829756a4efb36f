"""Generators of random litmus tests, one for each family.

A *generator* makes a test from a source of random choices; a *family* is a named
generator (`FAMILIES`). Campaigns give it a seeded `random.Random`, which is fast and
repeatable; `litmusfuzz.fuzz.generators.hypothesis_strategies` wraps the same families as
Hypothesis strategies.

A generator makes tests within a *support*: the ops, dtypes, shapes and features that an
executor takes (`litmusfuzz.fuzz.support`).

Generators aim at races. They know no oracle's verdict and no executor's defects: no
template holds a bug. The tests of families with structure (sections, queues, loops, ...)
are small enough for the reference oracle, which looks at every order.
"""

from __future__ import annotations

import random
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.model import FEATURES
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.generators import (
    accumulators,
    calls,
    clusterable,
    clusters,
    computed,
    conditionals,
    constants,
    cycles,
    dag,
    dense,
    fetches,
    gradients,
    handles,
    keras,
    lookups,
    loops,
    mixed,
    mutations,
    programs,
    pure,
    queues,
    runs,
    sections,
    sparse,
    training,
    uninitialized,
)
from litmusfuzz.fuzz.generators.family import Family, NotGenerated
from litmusfuzz.fuzz.support import EVERYTHING, Support

if TYPE_CHECKING:
    from collections.abc import Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.generators.seeds import Seeds

__all__ = ["FAMILIES", "Family", "NotGenerated", "families_for", "generate"]

_QUEUE_OPS: Final = frozenset({"QueueEnqueueV2", "QueueDequeueV2"})
_BRANCH_OPS: Final = frozenset({"If", "Less", "ReadVariableOp"})
_LOOP_OPS: Final = frozenset({"While", "Less", "AddV2"})
_TABLE: Final = (
    Family(
        "dag",
        dag.generate,
        "graphs over a few variables, with every op on variables; for every executor",
        weight=2.0,
    ),
    Family(
        "sections",
        sections.generate,
        "critical sections beside each other and inside each other",
        features=frozenset({"critical sections"}),
        ops=frozenset({"CriticalSection"}),
    ),
    Family(
        "queues",
        queues.generate,
        "puts and takes that race, of one element or of several",
        features=frozenset({"queues"}),
        ops=_QUEUE_OPS,
    ),
    Family(
        "conditionals",
        conditionals.generate,
        "branches chosen by the value that a racing read returned",
        features=frozenset({"conditionals"}),
        ops=_BRANCH_OPS,
    ),
    Family(
        "loops",
        loops.generate,
        "loops whose conditions and bodies race with ops beside them",
        features=frozenset({"loops"}),
        ops=_LOOP_OPS,
    ),
    Family(
        "runs",
        runs.generate,
        "several graphs, run by a client in an order or concurrently",
        features=frozenset({"several runs"}),
    ),
    Family(
        "clusters",
        clusters.generate,
        "clusters chosen by the test, racing with the rest of the graph",
        features=frozenset({"clusters"}),
    ),
    Family(
        "mixed",
        mixed.generate,
        "two or more of sections, queues, conditionals, loops and runs in one test",
        features=frozenset({"critical sections", "queues", "conditionals", "loops"}),
        ops=_QUEUE_OPS | _BRANCH_OPS | _LOOP_OPS | {"CriticalSection"},
    ),
    Family(
        "clusterable",
        clusterable.generate,
        "chains that a clustering compiler takes whole, and that race",
    ),
    Family(
        "cycles",
        cycles.generate,
        "critical cycles (MP, SB, IRIW, ...), each written in one of many ways",
        weight=2.0,
        ops=frozenset({"Const", "ReadVariableOp", "AssignVariableOp"}),
    ),
    Family(
        "sparse",
        sparse.generate,
        "variables that one test uses densely and sparsely",
        rank=1,
    ),
    Family(
        "mutations",
        mutations.generate,
        "tests of the corpus, with one to three random edits",
        weight=2.0,
    ),
    Family(
        "dense",
        dense.generate,
        "as dag, with ops on whole variables only, six at most",
        weight=0.0,
    ),
    Family(
        "training",
        training.generate,
        "training steps of a small model, by workers that race",
        features=frozenset({"several runs", "queues", "loops"}),
        ops=_QUEUE_OPS | _LOOP_OPS,
    ),
    Family(
        "calls",
        calls.generate,
        "function calls, nested and beside sections, queues, conditionals and loops",
        features=frozenset({"calls"}),
        ops=frozenset({"Call"}),
    ),
    Family(
        "fetches",
        fetches.generate,
        "runs that fetch parts of their graphs, and feed placeholders",
        features=frozenset({"several runs", "fetches", "placeholders"}),
        ops=frozenset({"Placeholder"}),
    ),
    Family(
        "pure",
        pure.generate,
        "pure ops of all kinds, on what racing chains read and write",
        ops=pure.NEEDED,
        rank=1,
    ),
    Family(
        "handles",
        handles.generate,
        "several handles of one variable, passed on, chosen and exchanged",
        features=frozenset({"handles", "calls", "conditionals", "loops"}),
        ops=frozenset({"VarHandleOp"}),
    ),
    Family(
        "uninitialized",
        uninitialized.generate,
        "variables that have no value until they are first written",
        features=frozenset({"several runs", "uninitialized variables"}),
        ops=frozenset({"AssignVariableOp", "VarIsInitializedOp"}),
    ),
    Family(
        "computed",
        computed.generate,
        "gathers, scatters and slices of variables at computed places",
        features=frozenset({"computed indices"}),
        ops=computed.NEEDED,
        rank=1,
    ),
    Family(
        "accumulators",
        accumulators.generate,
        "gradients, takes and steps on accumulators; synchronous training with tokens in a queue",
        features=frozenset({"accumulators"}),
        ops=accumulators.NEEDED,
    ),
    Family(
        "programs",
        programs.generate,
        "programs of one thread: nested control flow and calls, views; for traced systems",
        weight=2.0,
        # Nothing races: for executors of programs, which have gradients.
        features=frozenset({"calls", "conditionals", "loops", "gradients"}),
        ops=programs.NEEDED,
    ),
    Family(
        "keras",
        keras.generate,
        "steps of Keras's optimizers, racing with each other and with evaluation",
        features=frozenset({"calls", "several runs"}),
        ops=keras.NEEDED,
    ),
    Family(
        "lookups",
        lookups.generate,
        "rows of a table by distinct ids, as an embedding is looked up, while both change",
        ops=lookups.NEEDED,
        rank=1,
    ),
    Family(
        "constants",
        constants.generate,
        "axes, shapes and places that XLA wants as constants, computed from what is read",
        ops=constants.NEEDED,
        rank=1,
    ),
)
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({each.name: each for each in _TABLE})
"""By name. To add one: a module, and a last row in the table above."""


@cache
def families_for(support: Support) -> tuple[str, ...]:
    """Names of the families that generate tests within a support."""
    return tuple(name for name, family in FAMILIES.items() if _generates(family, support))


def _generates(family: Family, support: Support) -> bool:
    """Return True if a family fits a support, as a test that it generates shows."""
    if family.beyond(support):
        return False
    if replace(support, features=FEATURES) == EVERYTHING:
        return True
    try:
        family.test("trial", support)
    except NotGenerated:
        return False
    return True


def generate(
    family: str,
    seed: int,
    index: int,
    support: Support = EVERYTHING,
    seeds: Seeds | None = None,
) -> LitmusTest:
    """Test number `index` of a family, in the campaign with that seed.

    The same arguments give the same test, whatever was generated before. Of `seeds`, which are
    tests, the family `mutations` makes others.

    Raises
    ------
    NotGenerated
        If the family makes no test within `support`.
    """
    chosen = FAMILIES[family]
    if seeds is not None and chosen.generate is mutations.generate:
        chosen = replace(chosen, generate=partial(mutations.generate, seeds=seeds))
    test = chosen.test(f"{seed}/{family}/{index}", support)
    return gradients.add(test, support, random.Random(f"{seed}/{family}/{index}/gradients"))
