"""Finds a smallest subset of the corpus with the same coverage as the whole.

A test covers, beside its features and the relations of its ops on one resource
(`litmusfuzz.fuzz.finding.relations.pairs`):

- *outcomes*: for each allowed outcome, the order that the oracle's witness gives to every two ops
  on one resource. An outcome has one witness, so two orders count only if their outcomes differ;
- the final status of its outcomes, and the pairs of models that allow different outcomes;
- *kills*: mutants of the native executor that show a forbidden outcome of the test under the
  controlled engine, which is deterministic by seed; and the cause of the test's own finding.

The subset is a set cover. It is proved minimal in one of two ways: there are as many items of which
no test covers two, or z3 finds no smaller cover. z3 is limited by its own count of steps, not by a
clock, so that the answer is repeatable.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Final

import z3

from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.settings import CAMPAIGN_BUDGET
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.table import EXECUTORS, configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.causes import likely_cause
from litmusfuzz.fuzz.finding.judge import explorer_or_none, judge
from litmusfuzz.fuzz.finding.judging_model import guaranteed
from litmusfuzz.fuzz.finding.relations import NodeRelations, pairs
from litmusfuzz.fuzz.mutants.native import NativeMutant
from litmusfuzz.oracles.model import MODELS
from litmusfuzz.reports.cmin import Cover

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.oracles.allowed import AllowedSet

Shown = frozenset[str]
"""Items that a test covers, as texts."""

_CONFIG: Final = "controlled"
_COUNT: Final = 200
_TIMEOUT_S: Final = 30.0
_MOST_ORDERS: Final = 20_000_000
"""Pairs of nodes in witnesses that a test is looked at for: some seconds."""
_MOST_PAIRS: Final = 500_000
_STEPS: Final = 20_000_000
"""Steps of z3 for each question: some seconds."""


def shown(entry: Entry) -> Shown:
    """Items that a test covers, except kills; without outcomes under models with too many."""
    test = entry.test
    found = set(test.features) | {f"{one}, {other}: {how}" for one, other, how in pairs(test)}
    if entry.finding is not None:
        for outcome, _ in entry.finding.forbidden:
            found.add(f"finding on {entry.finding.executor}: {likely_cause(test, outcome)}")
    allowed = {}
    for model in MODELS.values():
        oracle = explorer_or_none(test, model, CAMPAIGN_BUDGET)
        made = oracle.allowed_outcomes() if oracle else None
        if made is not None and made.complete:
            allowed[model.name] = made
            found |= _orders(entry, made)
    for (one, left), (other, right) in combinations(allowed.items(), 2):
        if left.witnesses.keys() != right.witnesses.keys():
            found.add(f"{one} and {other} allow different outcomes")
    return frozenset(found)


def _orders(entry: Entry, allowed: AllowedSet) -> set[str]:
    """The status of each outcome, and the order of unordered ops on one resource in its witness.

    Without orders if they are too many.
    """
    found = {f"ends {outcome.status}" for outcome in allowed.witnesses}
    unordered = _unordered(entry.test)
    if len(unordered) * len(allowed.witnesses) > _MOST_ORDERS:
        return found
    for witness in allowed.witnesses.values():
        first: dict[tuple[str, str], int] = {}  # by node and resource, the place of its first event
        last: dict[tuple[str, str], int] = {}
        # Events on an accumulator are on its cells, ``A.sum`` and so on.
        cells: defaultdict[str, set[str]] = defaultdict(set)
        for place, event in enumerate(witness):
            for resource in event.variables:
                first.setdefault((event.node.name, resource), place)
                last[event.node.name, resource] = place
                cells[resource.partition(".")[0]].add(resource)
        for one, other, resource in unordered:
            for cell, (a, b) in product(cells[resource], ((one, other), (other, one))):
                begin = first.get((a.name, cell))
                if begin is not None and begin < last.get((b.name, cell), -1):
                    found.add(f"{a.op} before {b.op}")
    return found


def _unordered(test: LitmusTest) -> list[tuple[Node, Node, str]]:
    """Pairs of unordered nodes on one resource, with that; at most `_MOST_PAIRS` are looked at."""
    by_resource: dict[str, list[Node]] = {}
    for node in test.nodes:
        for resource in node.resources:
            by_resource.setdefault(resource, []).append(node)
    relations = NodeRelations(test)
    pairs = (
        (one, other, resource)
        for resource, nodes in by_resource.items()
        for one, other in combinations(nodes, 2)
    )
    return [
        (one, other, resource)
        for one, other, resource in islice(pairs, _MOST_PAIRS)
        if relations.relation(one, other) == "unordered"
    ]


def kills(entries: Sequence[Entry], progress: Callable[[str], None]) -> list[set[str]]:
    """For each test, the mutants of the native executor that it kills."""
    names = [
        name
        for name, target in EXECUTORS.items()
        if target.startswith(NativeMutant.__module__)
        and _CONFIG in {config.name for config in executor_class(name).configurations()}
    ]
    found = []
    with closing(Worker(names[0])) as worker:
        for number, entry in enumerate(entries):
            progress(f"{number} of {len(entries)}: {entry.test.name}")
            found.append({f"kills {n}" for n in names if _killed(worker, n, entry)})
    return found


def _killed(worker: Worker, name: str, entry: Entry) -> bool:
    if executor_class(name).support.lacking(entry.test):
        return False
    config = configuration(name, _CONFIG)
    job = Job(entry.test, _COUNT, executor=name)
    reply = worker.ask(job.request(config), _TIMEOUT_S, entry.test)
    if isinstance(reply, Died):
        return True  # a kill without an outcome
    oracle = explorer_or_none(entry.test, guaranteed(name, config), CAMPAIGN_BUDGET)
    seen = messages.histogram(entry.test, reply)
    return oracle is not None and bool(judge(oracle, seen).forbidden)


def minimum(sets: Mapping[str, Shown]) -> Cover:
    """A small cover of all items, and a lower bound of the size of any cover."""
    chosen = _greedy(sets)
    least = len(_apart(sets))
    while least < len(chosen):
        better = _within(sets, least)
        if better is None:  # z3 does not know
            break
        if better:
            chosen = better
            break
        least += 1
    alone = {
        name: sets[name] - frozenset().union(*(sets[other] for other in chosen if other != name))
        for name in chosen
    }
    total = len(frozenset().union(*sets.values()))
    kept = {name: tuple(sorted(alone[name])) for name in sorted(chosen)}
    return Cover(kept, least, total, len(sets))


def _greedy(sets: Mapping[str, Shown]) -> list[str]:
    """A cover: add the test with most missing items until complete, then remove redundant ones."""
    missing = set().union(*sets.values())
    chosen: list[str] = []
    while missing:
        best = max(sorted(sets), key=lambda name: len(sets[name] & missing))
        chosen.append(best)
        missing -= sets[best]
    for name in list(reversed(chosen)):
        others = [sets[other] for other in chosen if other != name]
        if sets[name] <= frozenset().union(*others):
            chosen.remove(name)
    return chosen


def _apart(sets: Mapping[str, Shown]) -> list[str]:
    """Items of which no test covers two: each needs a test of its own."""
    showing: dict[str, set[str]] = {}
    for name in sorted(sets):
        for thing in sets[name]:
            showing.setdefault(thing, set()).add(name)
    found: list[str] = []
    taken: set[str] = set()
    for thing in sorted(showing, key=lambda each: (len(showing[each]), each)):
        if not showing[thing] & taken:
            found.append(thing)
            taken |= showing[thing]
    return found


def _within(sets: Mapping[str, Shown], most: int) -> list[str] | None:
    """A cover of at most `most` tests; empty if there is none, None if z3 reaches its limit."""
    names = sorted(sets)
    taken = {name: z3.Bool(name) for name in names}
    solver = z3.SolverFor("QF_FD")
    solver.set("rlimit", _STEPS)
    rows = {tuple(name for name in names if thing in sets[name]) for thing in _all(sets)}
    for row in sorted(rows):
        solver.add(z3.Or([taken[name] for name in row]))
    solver.add(z3.PbLe([(taken[name], 1) for name in names], most))
    answer = solver.check()
    if answer == z3.unsat:
        return []
    if answer != z3.sat:
        return None
    model = solver.model()
    return [name for name in names if z3.is_true(model[taken[name]])]


def _all(sets: Mapping[str, Shown]) -> list[str]:
    return sorted(frozenset().union(*sets.values()))
