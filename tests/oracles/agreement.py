"""Differential test of the oracles: they must agree on random tests of every family.

``python -m tests.oracles.agreement --tests 10000 --workers 2 --seed 1`` generates the
tests, asks every oracle, and prints the number of tests with each feature, the number with
each op, and the verdicts of each oracle. It exits with 1 on any disagreement, and writes the
smallest test that shows it as a corpus file; with 1 also if a test could not be checked; with 2 if
a feature or an op is in too few tests, or too many answers are `unknown`. ``make nightly`` runs
many tests, ``make test`` a few hundred.

``--model acd --model program`` asks about these models alone, and `mixture` is a family of tests
that mix all features, sections among them, which the enumerator of `independent` reaches, too.

Properties checked for each test:

- reference and explorer have the same allowed sets, in every model, and in
  ``rfc`` less one axiom; so has the explorer where it drops values that no outcome depends on;
- every oracle gives the reference's verdict on outcomes of the set, and on changed
  outcomes, most of which are not in the set;
- so has the enumerator that was written from semantics.md alone, where it takes the test and has
  few states, and the interpreter of programs of one thread, of a test whose client orders all runs;
- both hold again when other nodes are observed, constants included;
- ``rfc`` allows every outcome that ``executor`` allows, and every weaker model allows
  every outcome that ``rfc`` allows, unless more happens in it;
- an added edge for which no run executes more nodes never adds an outcome that completes; an
  implied edge changes nothing;
- other names, another topological order, and another device change nothing.

An oracle may answer `unknown`, which is counted; it must not answer wrongly.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.model import (
    Body,
    BranchAttrs,
    CallAttrs,
    Cluster,
    Graph,
    LitmusTest,
    LoopAttrs,
    MalformedTest,
    Node,
    all_nodes,
    bodies,
    captures_of,
    enclosing,
)
from litmusfuzz.corpus.ops import COMPUTED, DEFINED_OPS, OPS, HandleAttrs, Kind, SectionAttrs
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps
from litmusfuzz.fuzz.generators import FAMILIES, generate
from litmusfuzz.fuzz.passes.placement import place
from litmusfuzz.oracles import explorer, reference, sequential
from litmusfuzz.oracles.errors import NoAllowedSet, NoProgramOrder, NotOneCluster, OpFails
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES, MODELS, RFC, Axiom, Model

sys.path.insert(0, str(Path(__file__).parent))
import independent
from every_op import every_op, placed
from independent import SUPPORTED
from mixtures import mixture

if TYPE_CHECKING:
    from litmusfuzz.oracles.allowed import AllowedSet

BUDGET_ORDERS: Final = 20_000
"""Budget of the reference: four times the generators' limit under ``rfc``."""
SOME_ORDERS: Final = 2_000
"""The same where only some models are asked for."""
WEAKER_ORDERS: Final = 1_000
"""Budget without an axiom. There are more orders then; a few complete sets suffice."""
MAX_JUDGED: Final = 4
"""Allowed outcomes to judge in each model, and as many changed ones."""
TRIES: Final = 6
NEXT_TRY: Final = 1 << 32
"""Distance between the indices of one test's tries."""
EVERY_OP: Final = "every op"
PLACED: Final = "placed"
MIXTURE: Final = "mixture"
SCHEDULE: Final = (
    *(*FAMILIES, *("mixed",) * 3),
    *("calls", "clusters", "fetches", "computed", "handles", "uninitialized", "accumulators") * 2,
    *(*(PLACED,) * 3, *(EVERY_OP,) * 11, *(MIXTURE,) * 4),
)
"""Cycle of families, and of the tests of `every_op`; what few tests have occurs more often."""
FEATURES: Final = (
    *("critical sections", "queues", "conditionals", "loops", "clusters", "several runs"),
    # Edition 2 of the semantics.
    *("calls", "handles", "fetches", "placeholders", "uninitialized variables", "accumulators"),
    *("computed indices", "pure ops", "whole values", "transfers"),
    *("model: acd", "model: program", "model: sequential", "model: one_cluster"),
)
WANTED: Final = 0.05
"""Least share of the tests with each feature."""
OPS_WANTED: Final = 0.005
"""Least share of the tests with each op, and with each of `COMPUTED` with computed places."""
MANY: Final = 10_000
"""Tests from which on that share means anything."""
UNKNOWN_MAX: Final = 0.01
"""Largest share of `unknown` answers."""

LIVE: Final = explorer.Budget(plain=0)
STATES: Final = 500
"""Budget of the independent enumerator in one model, over all choices of strictness."""

Judge = Callable[[Outcome], Verdict]


def _axiomatic(test: LitmusTest, model: Model) -> Judge:
    module: Any = importlib.import_module("litmusfuzz.oracles.axiomatic")
    judge: Judge = module.Axiomatic(test, model).judge
    return judge


def _explorer(test: LitmusTest, model: Model) -> Judge:
    return Explorer(test, model).judge


def _live(test: LitmusTest, model: Model) -> Judge:
    """The explorer, which drops values that no outcome depends on from the first state on."""
    return Explorer(test, model, LIVE).judge


def membership_oracles() -> dict[str, Callable[[LitmusTest, Model], Judge]]:
    """Return the oracles that judge single outcomes, by name, without the reference."""
    found = {"explorer": _explorer, "live values": _live}
    if importlib.util.find_spec("litmusfuzz.oracles.axiomatic") is not None:
        found["axiomatic"] = _axiomatic
    return found


class Disagreement(AssertionError):
    """Two answers that cannot both be right."""

    def __init__(self, rule: str, test: LitmusTest, detail: str, who: str = "") -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.who = who  # the oracle and its answer, kept while the test is reduced
        self.test = test
        self.detail = detail


@dataclass
class Tally:
    """Counts of one run.

    `verdicts` counts answers by (oracle, verdict); `seconds` is the CPU time of each
    oracle.
    """

    tests: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    disagreements: list[tuple[str, str, str]] = field(default_factory=list)
    """(rule, detail, the test as a corpus file)."""

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for name in ("tests", "features", "ops", "verdicts", "rules", "seconds"):
            getattr(self, name).update(getattr(other, name))
        self.disagreements += other.disagreements

    def timed(self, oracle: str, ask: Callable[[], Any]) -> Any:
        """Return the result of `ask`; add its CPU time to the oracle's."""
        began = time.process_time()
        try:
            return ask()
        finally:
            self.seconds[oracle] += time.process_time() - began


# --- the properties ----------------------------------------------------------------------


def check(
    test: LitmusTest, rng: random.Random, tally: Tally, only: Collection[str] = GUARANTEES
) -> None:
    """Check all properties of one test, or those of some models alone.

    Raises
    ------
    Disagreement
        At the first one.
    """
    sets = {}
    models = [GUARANTEES[name] for name in only if says_something(GUARANTEES[name], test)]
    for model in models:
        sets[model.name] = same_sets(test, model, budget_of(only), tally)
        same_verdicts(test, model, sets[model.name], rng, tally)
        with_the_independent(test, model, sets[model.name], tally)
        if sets[model.name].complete:
            tally.rules[f"complete sets: {model.name}"] += 1
            if test.mutexes:
                tally.rules[f"complete sets: {model.name}, sections"] += 1
    if "sequential" in sets:
        with_the_interpreter(test, tally)
    if set(only) != set(GUARANTEES):
        tally.features.update(test.features)
        return
    looked = otherwise_observed(test, rng)
    model = rng.choice(models)
    same_verdicts(looked, model, same_sets(looked, model, BUDGET_ORDERS, tally), rng, tally)
    if sets["executor"].complete and sets["rfc"].complete:
        tally.rules["executor within rfc"] += 1
        within("executor within rfc", test, sets["executor"].witnesses, sets["rfc"].witnesses)
    for name, looser in (
        ("acd", "executor"),
        ("program", "executor"),
        ("sequential", "program"),
    ):
        if name in sets and sets[name].complete and sets[looser].complete:
            # More order may block where less does not.
            rule = f"{name} within {looser}"
            tally.rules[rule] += 1
            within(rule, test, completed(sets[name].witnesses), sets[looser].witnesses)
    weaker(test, sets["rfc"], rng, tally)
    for model in MODELS.values():
        if sets[model.name].complete:
            changed_tests(test, model, set(sets[model.name].witnesses), rng, tally)
    tally.features.update(set(features(test, sets)))
    tally.ops.update({op_of(node) for node in test.nodes})


def budget_of(only: Collection[str]) -> int:
    """The budget of the reference: less for some models alone, whose sets others check as well."""
    return BUDGET_ORDERS if set(only) == set(GUARANTEES) else SOME_ORDERS


def with_the_independent(test: LitmusTest, model: Model, allowed: AllowedSet, tally: Tally) -> None:
    """Check that the enumerator written from semantics.md alone gives the same set."""
    if not allowed.complete or test.clusters or not {n.op for n in test.nodes} <= SUPPORTED:
        return
    if test.whole and any(len(variable.shape) > 1 for variable in test.variables):
        return  # its rows have one lane
    try:
        found = tally.timed(
            "independent", lambda: independent.allowed_outcomes(test, model.name, STATES)
        )
    except independent.TooManyStates:
        return
    tally.rules[f"independent: {model.name}"] += 1
    own = set(allowed.witnesses)
    if own != found:
        detail = f"{model.name}: {listed(own - found)} not there, there alone {listed(found - own)}"
        raise Disagreement("the independent enumerator", test, detail)


def with_the_interpreter(test: LitmusTest, tally: Tally) -> None:
    """Check that the test whose client orders all runs has the interpreter's outcome alone."""
    names = [run.name for run in test.runs]
    client = (replace(run, after=tuple(names[:at])) for at, run in enumerate(test.runs))
    try:
        ordered = replace(test, client=tuple(client))
        wanted = sequential.outcome(ordered)
    except (sequential.NotSequential, MalformedTest):  # queues; a close before an enqueue
        return
    found = explorer.allowed_outcomes(ordered, GUARANTEES["sequential"])
    if found.complete:
        tally.rules["interpreter: sequential"] += 1
        if set(found.witnesses) != {wanted}:
            detail = f"{wanted}, and not {listed(found.witnesses)}"
            raise Disagreement("the interpreter", ordered, detail)


def says_something(model: Model, test: LitmusTest) -> bool:
    """Return True if the model applies to the test."""
    try:
        unfold(test, model)
    except (NoProgramOrder, NotOneCluster):
        return False
    except OpFails:  # in the one cluster
        if Axiom.ONE_CLUSTER not in model.axioms:
            raise
        return False
    return True


def otherwise_observed(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """Return the test with one, some, or all nodes with a result observed.

    Generated tests observe reads only. An observed constant shows that its run has
    ended.
    """
    types = {key: test.types[node] for key, node in test.nodes_by_key().items()}
    keys = [
        key
        for key, kind in types.items()
        if kind and not (kind.dynamic or kind.is_handle or kind.is_list)
    ]
    count = rng.choice((1, rng.randint(0, len(keys)), len(keys)))
    return replace(test, observe=tuple(rng.sample(keys, min(count, len(keys)))))


def same_sets(test: LitmusTest, model: Model, budget_orders: int, tally: Tally) -> AllowedSet:
    """Return the allowed set; check that reference and explorer agree on it."""
    wanted: AllowedSet = tally.timed(
        "reference", lambda: reference.allowed_outcomes(test, model, budget_orders)
    )
    if not wanted.complete and budget_orders == WEAKER_ORDERS:
        return wanted
    found: AllowedSet = tally.timed("explorer", lambda: explorer.allowed_outcomes(test, model))
    live: AllowedSet = tally.timed("live values", Explorer(test, model, LIVE).allowed_outcomes)
    tally.rules["equal sets"] += 1
    for name, each in (("reference", wanted), ("explorer", found), ("live values", live)):
        if not each.complete:
            tally.verdicts[(name, "set unknown")] += 1
    for (one, own), (other, their) in (
        (("reference", wanted), ("explorer", found)),
        (("explorer", found), ("live values", live)),
    ):
        here, there = set(own.witnesses), set(their.witnesses)
        if (their.complete and here - there) or (own.complete and there - here):
            detail = f"{model.name}: " + "; ".join(
                f"{oracle} alone has {listed(extra)}"
                for oracle, extra in ((one, here - there), (other, there - here))
                if extra
            )
            raise Disagreement("equal sets", test, detail)
    return wanted if wanted.complete else found


def same_verdicts(
    test: LitmusTest, model: Model, allowed: AllowedSet, rng: random.Random, tally: Tally
) -> None:
    """Check every oracle's verdicts on some outcomes against the complete set."""
    outcomes = sorted(allowed.witnesses, key=str)
    asked = rng.sample(outcomes, min(MAX_JUDGED, len(outcomes)))
    changed = [each for outcome in asked for each in nearby(test, outcome, outcomes, rng)]
    asked += rng.sample(changed, min(MAX_JUDGED, len(changed)))
    verdicts = {outcome: allowed.judge(outcome) for outcome in asked}
    tally.verdicts.update(("reference", str(verdict)) for verdict in verdicts.values())
    for name, prepare in membership_oracles().items():
        judge = tally.timed(name, lambda prepare=prepare: prepare(test, model))
        for outcome, wanted in verdicts.items():
            verdict = tally.timed(name, lambda judge=judge, outcome=outcome: judge(outcome))
            tally.verdicts[(name, str(verdict))] += 1
            if Verdict.UNKNOWN not in (verdict, wanted) and verdict is not wanted:
                who = f"{model.name}: {name} says {verdict}, the set {wanted}"
                raise Disagreement("equal verdicts", test, f"{who}, of {outcome}", who)
    tally.rules["equal verdicts"] += 1


def nearby(
    test: LitmusTest, outcome: Outcome, outcomes: Sequence[Outcome], rng: random.Random
) -> list[Outcome]:
    """Return outcomes that differ slightly: in one to three values, or in their status."""
    made = []
    for count in (1, 1, 2, 3):
        values = dict(outcome.values)
        for name in rng.sample(sorted(values), min(count, len(values))):
            values[name] = _other_value(
                values[name], [dict(o.values).get(name) for o in outcomes], rng
            )
        made.append(Outcome.of(test, values, outcome.status))
    finals = {v.name for v in test.variables} | {q.name for q in test.queues}
    values = dict(outcome.values)
    if outcome.status is Status.COMPLETED:
        made.append(Outcome.of(test, values, Status.BLOCKED))
        kept = {name: value for name, value in values.items() if name in finals}
        made.append(Outcome.of(test, kept, Status.BLOCKED))
    else:
        known = [dict(o.values) for o in outcomes if o.status is Status.COMPLETED]
        filled = rng.choice(known) | values if known else values
        if set(filled) >= set(test.names):
            made.append(Outcome.of(test, filled))
    made.append(Outcome.of(test, {}, Status.FAILED))
    return [each for each in made if each != outcome]


def _other_value(own: Any, seen: Sequence[Any], rng: random.Random) -> Any:
    """Return the value of another outcome, or a nearby value."""
    choices = [value for value in seen if value is not None]
    if own and isinstance(own[0], int):
        choices.append(tuple(v + rng.randint(-1, 1) for v in own))
        choices.append(tuple(rng.randint(0, 40) for _ in own))
    else:  # a queue's elements
        choices += [(), own[1:], own[::-1], (*own, *own[:1])]
    return rng.choice(choices)


def within(
    rule: str, test: LitmusTest, smaller: Iterable[Outcome], larger: Iterable[Outcome]
) -> None:
    """Raise `Disagreement` if the smaller set has an outcome that the larger lacks."""
    extra = set(smaller) - set(larger)
    if extra:
        raise Disagreement(rule, test, listed(extra))


def completed(outcomes: Iterable[Outcome]) -> set[Outcome]:
    """Return the outcomes with status completed."""
    return {outcome for outcome in outcomes if outcome.status is Status.COMPLETED}


def weaker(test: LitmusTest, allowed: AllowedSet, rng: random.Random, tally: Tally) -> None:
    """Check ``rfc`` less one axiom: equal sets, and no completed outcome is lost."""
    axiom = rng.choice(sorted(RFC.axioms))
    model = Model(f"rfc less {axiom}", RFC.axioms - {axiom})
    found = same_sets(test, model, WEAKER_ORDERS, tally) if allowed.complete else allowed
    if not found.complete:
        tally.rules["weaker model: too many orders"] += 1
        return
    tally.rules[f"weaker model: {axiom}"] += 1
    # Without these more happens, or more gradients are added, which changes other values.
    if axiom not in (Axiom.FETCHES, Axiom.STALE):
        within(model.name, test, completed(allowed.witnesses), found.witnesses)


# --- changed tests -----------------------------------------------------------------------


def changed_tests(
    test: LitmusTest, model: Model, allowed: set[Outcome], rng: random.Random, tally: Tally
) -> None:
    """Check the effect of equivalent and of stricter variants of the test on its set."""
    may_fail = any(outcome.status is Status.FAILED for outcome in allowed)

    def outcomes(changed: LitmusTest) -> set[Outcome] | None:
        try:
            found = tally.timed("explorer", lambda: explorer.allowed_outcomes(changed, model))
        except NoAllowedSet as error:
            # Of two pure ops, the first in the file may fail, and then the other is not computed.
            if not may_fail:
                raise Disagreement("a variant is refused", test, str(error)) from None
            tally.rules["ill-formed variant"] += 1
            return None
        return set(found.witnesses) if found.complete else None

    def same(rule: str, changed: LitmusTest, wanted: set[Outcome]) -> None:
        found = outcomes(changed)
        if found is None:
            return
        tally.rules[rule] += 1
        if found != wanted:
            detail = f"{model.name}: lost {listed(wanted - found)}, new {listed(found - wanted)}"
            raise Disagreement(rule, test, f"{detail}, in\n{dumps(Entry(changed))}")

    ordered = with_edge(test, rng)
    if ordered is not None:
        found = outcomes(ordered)
        if found is not None:
            rule = "an edge adds no outcome"
            tally.rules[rule] += 1
            extra = {o for o in found - allowed if o.status is not Status.BLOCKED}
            if extra:
                detail = f"{model.name}: {listed(extra)}, in\n{dumps(Entry(ordered))}"
                raise Disagreement(rule, test, detail)
    implied = with_implied_edge(test, rng)
    if implied is not None:
        same("an implied edge changes nothing", implied, allowed)
    same("another topological order", reordered(test, rng), allowed)
    changed, outcome_of = renamed(test, rng)
    same("other names", changed, {outcome_of(outcome) for outcome in allowed})
    if model == RFC and test.variables and "transfers" not in test.features:
        # Not in `executor`, which counts iterations separately on each device.
        devices = [f"cpu:{number}" for number in rng.sample(range(4), 3)]
        on_one = tuple(replace(v, device=devices[0]) for v in test.variables)
        # Clusters are chosen after placement.
        stays = test.clusters or "handles" in test.features
        moved = replace(test, variables=on_one) if stays else place(test, devices)
        same("other devices", moved, allowed)


def levels(nodes: tuple[Node, ...], scope: tuple[str, ...] = ()) -> Iterator[_Level]:
    """Yield the nodes of a graph, and of each body in it, with the captured names."""
    yield nodes, scope
    for node in nodes:
        carried = node.attrs.carried if isinstance(node.attrs, LoopAttrs) else ()
        inside = (*carried, *(inner for inner, _ in captures_of(node)))
        for _, body in bodies(node):
            yield from levels(body.nodes, inside)


_Level = tuple[tuple[Node, ...], tuple[str, ...]]


def all_levels(test: LitmusTest) -> list[_Level]:
    """Return the levels of all graphs."""
    return [level for graph in test.graphs for level in levels(graph.nodes)]


def rebuilt(test: LitmusTest, change: Callable[[tuple[Node, ...]], Sequence[Node]]) -> LitmusTest:
    """Return the test with the nodes of each graph and body changed, innermost first."""

    def inside(body: Body) -> Body:
        return replace(body, nodes=all_of(body.nodes))

    def all_of(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        made = []
        for node in nodes:
            attrs = node.attrs
            if isinstance(attrs, BranchAttrs):
                attrs = replace(attrs, then=inside(attrs.then), orelse=inside(attrs.orelse))
            elif isinstance(attrs, LoopAttrs):
                attrs = replace(attrs, condition=inside(attrs.condition), body=inside(attrs.body))
            elif isinstance(attrs, CallAttrs):
                attrs = replace(attrs, body=inside(attrs.body))
            made.append(replace(node, attrs=attrs))
        return tuple(change(tuple(made)))

    graphs = tuple(Graph(graph.name, all_of(graph.nodes)) for graph in test.graphs)
    return replace(test, graphs=graphs)


def waiting(test: LitmusTest, name: str, source: str) -> LitmusTest | None:
    """Return the test with one more control edge; None if that makes it malformed."""

    def change(nodes: tuple[Node, ...]) -> list[Node]:
        return [replace(n, after=(*n.after, source)) if n.name == name else n for n in nodes]

    try:
        return rebuilt(test, change)
    except MalformedTest:  # a cycle through a section or a cluster
        return None


def executed(test: LitmusTest) -> list[set[str]]:
    """Return the names of the nodes that each run executes; bodies are executed whole."""
    return [{node.name for node in test.graph_of(run).nodes} for run in test.runs]


def with_edge(test: LitmusTest, rng: random.Random) -> LitmusTest | None:
    """Add a control edge between two nodes of one level, or from a captured value.

    Runs execute the same nodes as before: what more a run with fetches then needed would change
    other values.
    """
    for _ in range(6):
        nodes, scope = rng.choice(all_levels(test))
        names = [node.name for node in nodes]
        if not names:
            continue
        target = rng.randrange(len(nodes))
        sources = [n for n in (*scope, *names[:target]) if n not in nodes[target].after]
        if sources:
            changed = waiting(test, names[target], rng.choice(sources))
            if changed is not None and executed(changed) == executed(test):
                return changed
    return None


def with_implied_edge(test: LitmusTest, rng: random.Random) -> LitmusTest | None:
    """Add a control edge that a path already implies; None if there is no such place.

    An edge for one value into or out of a loop or conditional orders less than an edge
    to or from the whole node, so paths through such a node do not count.
    """
    found = []
    for nodes, scope in all_levels(test):
        whole = {node.name for node in nodes if bodies(node)}
        above: dict[str, set[str]] = {name: set() for name in scope}
        for node in nodes:
            direct = set(node.after)
            if node.name not in whole:
                direct |= {name for name in node.inputs if name.partition(".")[0] not in whole}
            direct = {name for name in direct if name in above}
            above[node.name] = direct.union(*(above[name] for name in direct))
            found += [(node.name, name) for name in sorted(above[node.name] - set(node.after))]
    return waiting(test, *rng.choice(found)) if found else None


def reordered(test: LitmusTest, rng: random.Random) -> LitmusTest:
    """Put the nodes of each level in another topological order.

    The bodies of a cluster's members keep their order: it is the SSA order, and another
    one may allow other outcomes (semantics.md, 5).
    """
    members = {name for cluster in test.clusters for name in cluster.members}
    compiled = {
        inner.name
        for nodes, _ in all_levels(test)
        for node in nodes
        if node.name in members
        for _, body in bodies(node)
        for inner in all_nodes(body.nodes)
    }

    def change(nodes: tuple[Node, ...]) -> list[Node]:
        if any(node.name in compiled for node in nodes):
            return list(nodes)
        left = {node.name: node for node in nodes}
        made = []
        while left:
            ready = [
                node
                for node in left.values()
                if not {
                    name.partition(".")[0]
                    for name in (
                        *node.edges,
                        *(outer for _, outer in captures_of(node)),
                    )
                }
                & left.keys()
            ]
            made.append(left.pop(rng.choice(ready).name))
        return made

    return rebuilt(test, change)


def renamed(
    test: LitmusTest, rng: random.Random
) -> tuple[LitmusTest, Callable[[Outcome], Outcome]]:
    """Rename everything and shuffle the resources; also return the map of outcomes."""
    old = [resource.name for resource in test.resources]
    for node in test.nodes:
        old.append(node.name)
        old += [inner for inner, _ in captures_of(node)]
        if isinstance(node.attrs, LoopAttrs):
            old += node.attrs.carried
        elif isinstance(node.attrs, (BranchAttrs, CallAttrs)):
            old += node.attrs.results
    old += [cluster.name for cluster in test.clusters]
    old = list(dict.fromkeys(old))
    numbers = rng.sample(range(10 * len(old)), len(old))
    new = {name: f"{rng.choice('AbCdzZ')}{n}" for name, n in zip(old, numbers, strict=True)}
    runs = {run.name: f"{rng.choice('uVw')}_{run.name}" for run in test.runs}
    graphs = {graph.name: runs.get(graph.name, f"G_{graph.name}") for graph in test.graphs}

    cells = {cell.name for cell in test.cells}

    def one(name: str) -> str:
        if name in cells:  # of an accumulator
            resource, _, part = name.partition(".")
            return f"{new[resource]}.{part}"
        return ".".join(new[part] for part in name.split("."))

    def some(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(one, names))

    def key(name: str) -> str:
        if len(test.runs) == 1 or name in new or name in cells:
            return one(name)
        run, _, rest = name.partition(".")
        return f"{runs[run]}.{one(rest)}"

    def body(each: Body) -> Body:
        return Body(tuple(map(node, each.nodes)), some(each.results))

    def node(each: Node) -> Node:
        attrs = each.attrs
        if isinstance(attrs, SectionAttrs):
            attrs = SectionAttrs(some(attrs.members))
        elif isinstance(attrs, HandleAttrs):
            attrs = HandleAttrs(one(attrs.variable))
        elif isinstance(attrs, BranchAttrs):
            captures = tuple((one(a), one(b)) for a, b in attrs.captures)
            attrs = BranchAttrs(captures, body(attrs.then), body(attrs.orelse), some(attrs.results))
        elif isinstance(attrs, LoopAttrs):
            attrs = LoopAttrs(
                some(attrs.carried),
                tuple((one(a), one(b)) for a, b in attrs.captures),
                body(attrs.condition),
                body(attrs.body),
                attrs.parallel_iterations,
            )
        elif isinstance(attrs, CallAttrs):
            captures = tuple((one(a), one(b)) for a, b in attrs.captures)
            attrs = CallAttrs(captures, body(attrs.body), some(attrs.results))
        return Node(
            one(each.name),
            each.op,
            some(each.inputs),
            some(each.resources),
            some(each.after),
            attrs,
            each.device,
            each.handle and one(each.handle),
        )

    def shuffled(resources: Iterable[Any]) -> tuple[Any, ...]:
        listed = [replace(each, name=new[each.name]) for each in resources]
        rng.shuffle(listed)
        return tuple(listed)

    changed = LitmusTest(
        test.name,
        shuffled(test.variables),
        tuple(Graph(graphs[g.name], tuple(map(node, g.nodes))) for g in test.graphs),
        tuple(key(name) for name in test.observe),
        mutexes=shuffled(test.mutexes),
        queues=shuffled(test.queues),
        accumulators=shuffled(test.accumulators),
        client=tuple(
            replace(
                run,
                name=runs[run.name],
                graph=graphs[run.graph],
                after=tuple(runs[name] for name in run.after),
                fetches=some(run.fetches),
                targets=some(run.targets),
                feeds=tuple((one(name), value) for name, value in run.feeds),
            )
            for run in test.client
        ),
        clusters=tuple(Cluster(new[c.name], some(c.members)) for c in test.clusters),
    )

    def outcome_of(outcome: Outcome) -> Outcome:
        values = {key(name): value for name, value in outcome.values}
        return Outcome.of(changed, values, outcome.status)

    return changed, outcome_of


# --- features of a test ------------------------------------------------------------------


def features(test: LitmusTest, sets: dict[str, AllowedSet]) -> Iterator[str]:
    """Yield names of features: of `LitmusTest.features`, of the nodes, of the sets."""
    yield from test.features
    yield from _details(test)
    if any(node.op in DEFINED_OPS for node in test.nodes):
        yield "pure ops"
    if test.whole:
        yield "whole values"
    yield from (f"model: {name}" for name in sets)
    everything = list(test.nodes)
    clustered = {name for cluster in test.clusters for name in cluster.members}
    for kind in (Kind.READ, Kind.WRITE, Kind.UPDATE):
        if any(node.definition.kind is kind for node in everything):
            yield f"ops: {kind.value}"
    for op in {node.op for node in everything if OPS[node.op].kind is Kind.QUEUE}:
        yield f"ops: {op}"
    if any(node.definition.sparse for node in everything):
        yield "ops: on rows"
    if any(node.definition.dense for node in everything):
        yield "ops: dense update"
    if any(variable.shape for variable in test.variables):
        yield "shapes: rows"
    if any(len(variable.shape) > 1 for variable in test.variables):
        yield "shapes: lanes"
    yield f"dtypes: {(*test.variables, *test.queues)[0].dtype}" if test.variables else "dtypes: -"
    if len(clustered) > len(test.clusters):
        yield "clusters: of several nodes"
    if len(test.clusters) > 1:
        yield "clusters: several"
    for model, allowed in sets.items():
        statuses = {outcome.status for outcome in allowed.witnesses}
        if model == "rfc":
            for status in statuses - {Status.COMPLETED}:
                yield f"outcomes: may be {status}"
            if statuses == {Status.BLOCKED}:
                yield "outcomes: always blocked"
            if len(allowed.witnesses) > 1:
                yield "outcomes: several"
    if set(sets["executor"].witnesses) != set(sets["rfc"].witnesses):
        yield "outcomes: executor has fewer"


def op_of(node: Node) -> str:
    """Return the name of a node's op, and whether its places in a variable are computed."""
    return f"{node.op}, computed" if node.definition.computed else node.op


ALL_OPS: Final = (
    *(name for name, op in OPS.items() if not op.computed),
    *(f"{name}, computed" for name in COMPUTED),
)


def _details(test: LitmusTest) -> Iterator[str]:
    """Yield combinations and details of features."""
    for graph in test.graphs:
        yield from _inside(graph.nodes, ())
    ordered = [run for run in test.runs if run.after]
    if len(test.runs) > 1:
        yield "runs: ordered" if ordered else "runs: all concurrent"
        if ordered and len(ordered) + 1 < len(test.runs):
            yield "runs: ordered and concurrent"
        if len({run.graph for run in test.runs}) < len(test.runs):
            yield "runs: one graph twice"
    if len(test.mutexes) > 1:
        yield "sections: two mutexes"
    if any(queue.init for queue in test.queues):
        yield "queues: filled at first"
    members = {name for cluster in test.clusters for name in cluster.members}
    top = {node.name for graph in test.graphs for node in graph.nodes}
    if members - top:
        yield "clusters: in a body"
    for node in test.nodes:
        if node.name in members and bodies(node):
            yield "clusters: with a loop or conditional"


def _inside(nodes: tuple[Node, ...], around: tuple[str, ...]) -> Iterator[str]:
    """Yield details of one level; `around` names the enclosing bodies, outermost first."""
    sections = [node for node in nodes if isinstance(node.attrs, SectionAttrs)]
    whole = {node.name for node in nodes if bodies(node)}
    for node in nodes:
        kind = node.definition.kind
        within = {"body": "loop", "then": "conditional", "does": "call"}
        if kind in (Kind.SECTION, Kind.QUEUE, Kind.LOOP, Kind.BRANCH, Kind.CALL):
            name = {Kind.BRANCH: "conditional", Kind.SECTION: "section"}.get(kind, kind.value)
            for outer in dict.fromkeys(within.get(each, each) for each in around):
                yield f"{name} in a {outer}"
        if kind in (Kind.READ, Kind.WRITE, Kind.UPDATE) and "condition" in around[-1:]:
            yield "loops: ops in the condition"
        if isinstance(node.attrs, SectionAttrs):
            if enclosing(node, sections):
                yield "sections: nested"
            if node.after:
                yield "sections: an edge into one"
            if whole & set(node.attrs.members):
                yield "sections: round a loop or conditional"
            if any(n.definition.kind is Kind.QUEUE for n in nodes if n.name in node.attrs.members):
                yield "sections: round a queue op"
        if any(name in {s.name for s in sections} for name in node.after):
            yield "sections: an edge out of one"
        if isinstance(node.attrs, LoopAttrs):
            condition = {n.name: n for n in node.attrs.condition.nodes}
            last = condition.get(node.attrs.condition.results[0])
            if last is not None and last.op == "Select":
                yield "loops: data-dependent trips"
            if node.attrs.parallel_iterations <= 2:
                yield "loops: few at once"
            if len(node.attrs.carried) > 1:
                yield "loops: carried values"
        for field_name, body in bodies(node):
            inner = "then" if field_name in ("then", "else") else field_name
            inner = "does" if kind is Kind.CALL else inner
            yield from _inside(body.nodes, (*around, inner))


# --- smaller tests -----------------------------------------------------------------------


def smaller(test: LitmusTest) -> Iterator[LitmusTest]:
    """Yield well-formed tests with one part less."""

    def valid(make: Callable[[], LitmusTest]) -> Iterator[LitmusTest]:
        try:
            made = make()
        except MalformedTest:
            return
        if made != test:
            yield made

    for run in test.client:
        yield from valid(lambda gone=run.name: _less_a_run(test, gone))
    for level, _ in all_levels(test):
        for node in level:
            yield from valid(lambda node=node: _without(test, node.name))
    for level, _ in all_levels(test):
        for node in level:
            for name in node.after:
                yield from valid(lambda node=node, name=name: _less_edge(test, node.name, name))
    for name in test.observe:
        kept_names = tuple(n for n in test.observe if n != name)
        yield from valid(lambda kept_names=kept_names: replace(test, observe=kept_names))
    for position in range(len(test.clusters)):
        rest = (*test.clusters[:position], *test.clusters[position + 1 :])
        yield from valid(lambda rest=rest: replace(test, clusters=rest))
    used = {name for node in test.nodes for name in node.resources}
    for kind in ("variables", "mutexes", "queues"):
        left = tuple(each for each in getattr(test, kind) if each.name in used)
        yield from valid(lambda kind=kind, left=left: replace(test, **{kind: left}))


def _less_a_run(test: LitmusTest, gone: str) -> LitmusTest:
    """Remove one run of the client, and a graph that is then never run."""
    client = tuple(
        replace(run, after=tuple(n for n in run.after if n != gone))
        for run in test.client
        if run.name != gone
    )
    graphs = tuple(g for g in test.graphs if g.name in {run.graph for run in client})
    observe = tuple(n for n in test.observe if n.partition(".")[0] != gone)
    if len(client) == 1:
        observe = tuple(n.partition(".")[2] for n in observe)
    return replace(test, client=client, graphs=graphs, observe=observe)


def _without(test: LitmusTest, gone: str) -> LitmusTest:
    """Remove a node that no node uses, and the control edges from it."""

    def change(nodes: tuple[Node, ...]) -> list[Node]:
        made = []
        for node in nodes:
            attrs = node.attrs
            if isinstance(attrs, SectionAttrs):
                attrs = SectionAttrs(tuple(n for n in attrs.members if n != gone))
            after = tuple(n for n in node.after if n != gone)
            made += [replace(node, attrs=attrs, after=after)] if node.name != gone else []
        return made

    clusters = (replace(c, members=tuple(n for n in c.members if n != gone)) for c in test.clusters)
    kept = tuple(cluster for cluster in clusters if cluster.members)
    several = len(test.runs) > 1
    observe = tuple(n for n in test.observe if n.split(".")[several] != gone)
    bare = rebuilt(replace(test, observe=(), clusters=()), change)
    return replace(bare, observe=observe, clusters=kept)


def _less_edge(test: LitmusTest, name: str, source: str) -> LitmusTest:
    def change(nodes: tuple[Node, ...]) -> list[Node]:
        return [
            replace(n, after=tuple(s for s in n.after if s != source)) if n.name == name else n
            for n in nodes
        ]

    return rebuilt(test, change)


def shrunk(
    found: Disagreement, seed: str, only: Collection[str] = GUARANTEES, limit_s: float = 60.0
) -> Disagreement:
    """Reduce the test of a disagreement for `limit_s` seconds at most."""
    end = time.monotonic() + limit_s
    progress = True
    while progress:
        progress = False
        for candidate in smaller(found.test):
            if time.monotonic() > end:
                return found
            for attempt in range(3):
                try:
                    check(candidate, random.Random(f"{seed}/{attempt}"), Tally(), only)
                except Disagreement as again:
                    if (again.rule, again.who) == (found.rule, found.who):
                        found, progress = again, True
                        break
            if progress:
                break
    return found


# --- many tests --------------------------------------------------------------------------


def made(family: str, seed: int, index: int) -> LitmusTest:
    """Generate a test of a family, or one of those that are no campaign's (`EXTRA`)."""
    return EXTRA[family](seed, index) if family in EXTRA else generate(family, seed, index)


def _mixed(seed: int, index: int) -> LitmusTest:
    """A mixture; one in four has accumulators."""
    sums = (("A",), ("A", "B"))[index // 4 % 2] if index % 4 == 3 else ()
    return mixture(random.Random(f"{seed}/{index}"), accumulators=sums)


EXTRA: Final = {EVERY_OP: every_op, PLACED: placed, MIXTURE: _mixed}


def small(family: str, seed: int, index: int, orders: int | None) -> LitmusTest:
    """Generate a test with at most `orders` total orders under ``rfc``, in a few tries."""
    test = made(family, seed, index)
    for again in range(1, TRIES if orders else 1):
        if reference.allowed_outcomes(test, RFC, orders or 0).complete:
            break
        test = made(family, seed, index + again * NEXT_TRY)
    return test


def place_of(families: Sequence[str], index: int) -> tuple[str, int]:
    """Return the family of a test, and how many tests of that family come before it."""
    rounds, at = divmod(index, len(families))
    family = families[at]
    return family, rounds * families.count(family) + families[:at].count(family)


def run(
    families: Sequence[str],
    seed: int,
    indices: Iterable[int],
    *,
    shrink: bool,
    orders: int | None = None,
    only: Collection[str] = GUARANTEES,
) -> Tally:
    """Check the tests with those indices; index n has family ``n % len(families)``."""
    tally = Tally()
    for index in indices:
        family, number = place_of(families, index)
        which = number if family in EXTRA else index
        try:
            test: LitmusTest = tally.timed("generator", partial(small, family, seed, which, orders))
            # What some order computes may have no value in the model.
            for name in only if set(only) != set(GUARANTEES) else ("rfc",):
                if says_something(GUARANTEES[name], test):
                    reference.allowed_outcomes(test, GUARANTEES[name], budget_of(only))
        except NoAllowedSet:  # some order computes what the model does not have
            tally.rules["ill-formed test"] += 1
            continue
        tally.tests[family] += 1
        key = f"{seed}/{family}/{index}/agreement"
        try:
            check(test, random.Random(key), tally, only)
        except Disagreement as found:
            if shrink:
                found = shrunk(found, key, only)
            about = f"{family}, seed {seed}, number {index}. {found.rule}: {found.detail}"
            file = dumps(Entry(replace(found.test, description=about[:4000])))
            tally.disagreements.append((found.rule, found.detail, file))
        except Exception as error:
            error.add_note(f"{family}, seed {seed}, number {index}")
            raise
    return tally


def parts(
    families: Sequence[str],
    seed: int,
    chunks: Sequence[range],
    workers: int,
    orders: int | None = None,
    only: Collection[str] = GUARANTEES,
) -> Iterator[Tally | Exception]:
    """Yield the tallies of the chunks as they finish; one worker is this process.

    Of a chunk that cannot be checked, why: that loses nothing of the others.
    """
    if workers == 1:
        for chunk in chunks:
            try:
                yield run(families, seed, chunk, shrink=True, orders=orders, only=only)
            except Exception as error:  # noqa: BLE001 - reported with the tally
                yield error
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        left = {
            pool.submit(run, families, seed, chunk, shrink=True, orders=orders, only=only)
            for chunk in chunks
        }
        try:
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for each in done:
                    error = each.exception()
                    if error is None:
                        yield each.result()
                    elif isinstance(error, Exception):
                        yield error
                    else:
                        raise error
        finally:  # interrupted: wait for running chunks, cancel the rest
            pool.shutdown(cancel_futures=True)


def report(tally: Tally, seconds: float) -> str:
    """Return the tally as tables."""
    tests = sum(tally.tests.values())
    lines = [f"{tests} tests in {seconds:.0f} s: " + joined(tally.tests)]
    lines += ["", "feature                                   tests"]
    order = sorted(tally.features, key=lambda name: (":" in name or " in a " in name, name))
    lines += [f"{name:40} {tally.features[name]:6}" for name in order]
    lines += ["", "op                                        tests"]
    lines += [f"{name:40} {tally.ops[name]:6}" for name in sorted(ALL_OPS)]
    lines += ["", "oracle       allowed forbidden unspecified unknown  sets unknown  ms a test"]
    for oracle in ("reference", *membership_oracles(), "independent"):
        counts = {v: tally.verdicts[(oracle, v)] for v in _VERDICTS}
        per_test = 1e3 * tally.seconds[oracle] / max(1, tests)
        lines.append(
            f"{oracle:12}"
            + "".join(f"{counts[v]:{w}}" for v, w in _VERDICTS.items())
            + f"{per_test:11.1f}"
        )
    lines += ["", "rule                                      times"]
    lines += [f"{name:40} {count:6}" for name, count in sorted(tally.rules.items())]
    lines += ["", f"{len(tally.disagreements)} disagreements"]
    lines += [f"- {rule}: {detail}" for rule, detail, _ in tally.disagreements]
    return "\n".join(lines)


_VERDICTS: Final = {
    "allowed": 8,
    "forbidden": 10,
    "unspecified": 12,
    "unknown": 8,
    "set unknown": 14,
}


def joined(counts: Counter[str]) -> str:
    """``a 3, b 4``."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def listed(outcomes: Iterable[Outcome]) -> str:
    """Return a few outcomes as text, sorted."""
    texts = sorted(map(str, outcomes))
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return " | ".join(texts[:3]) + more if texts else "nothing"


def unknown_share(tally: Tally) -> float:
    """Return the share of `unknown` answers of all oracles."""
    unknown = sum(n for (_, verdict), n in tally.verdicts.items() if "unknown" in verdict)
    return unknown / max(1, sum(tally.verdicts.values()))


def save(file: str, folder: Path, seed: int, number: int) -> None:
    """Write the test of a disagreement to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"agreement-{seed}-{number}.yaml"
    path.write_text(file, encoding="utf-8")
    sys.stderr.write(f"\n{path}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if oracles disagree or fail, 2 if coverage is too low."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--orders", type=int, help="largest number of total orders of a test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", action="append", choices=sorted({*FAMILIES, *EXTRA}))
    parser.add_argument("--model", action="append", choices=[*GUARANTEES], help="these alone")
    parser.add_argument("--json", action="store_true", help="the tally as JSON, to stdout")
    parser.add_argument("--out", type=Path, default=Path("disagreements"))
    options = parser.parse_args(arguments)
    families = options.family or SCHEDULE
    began = time.monotonic()
    tally = Tally()
    errors: list[Exception] = []
    chunk = 20
    chunks = [
        range(first, min(first + chunk, options.tests)) for first in range(0, options.tests, chunk)
    ]
    # An interrupted run reports its results so far.
    with suppress(KeyboardInterrupt):
        only = tuple(options.model or GUARANTEES)
        for part in parts(families, options.seed, chunks, options.workers, options.orders, only):
            if isinstance(part, Exception):
                errors.append(part)
                sys.stderr.write("\n" + "".join(traceback.format_exception(part)))
                continue
            for number, (_, _, file) in enumerate(part.disagreements, len(tally.disagreements)):
                save(file, options.out, options.seed, number)
            tally.add(part)
            sys.stderr.write(
                f"\r{sum(tally.tests.values())}/{options.tests} tests, "
                f"{len(tally.disagreements)} disagreements, {time.monotonic() - began:.0f} s "
            )
            sys.stderr.flush()
    sys.stderr.write("\n")
    seconds = time.monotonic() - began
    if options.json:
        plain = {
            "seconds": seconds,
            "tests": tally.tests,
            "features": tally.features,
            "ops": {name: tally.ops[name] for name in ALL_OPS},
            "verdicts": {
                f"{oracle} {verdict}": n for (oracle, verdict), n in tally.verdicts.items()
            },
            "rules": tally.rules,
            "oracle_seconds": tally.seconds,
            "disagreements": [(rule, detail) for rule, detail, _ in tally.disagreements],
        }
        sys.stdout.write(json.dumps(plain, indent=1, sort_keys=True) + "\n")
    else:
        sys.stdout.write(report(tally, seconds) + "\n")
    if errors:
        sys.stderr.write(f"{len(errors)} parts of {chunk} tests each could not be checked\n")
    if tally.disagreements or errors:
        return 1
    asked = sum(tally.tests.values())
    if asked < options.tests:
        sys.stderr.write(f"interrupted after {asked} tests\n")
        return 2
    if options.family or options.model or asked < 1000:
        return 0  # too few for shares to mean anything
    short = [name for name in FEATURES if tally.features[name] < WANTED * asked]
    if short:
        sys.stderr.write(f"in fewer than {WANTED:.0%} of the tests: {', '.join(short)}\n")
    least = OPS_WANTED * asked if asked >= MANY else 1
    rare = [f"{name} {tally.ops[name]}" for name in ALL_OPS if tally.ops[name] < least]
    if rare:
        sys.stderr.write(f"ops in fewer than {least:.0f} tests: {', '.join(rare)}\n")
    if unknown_share(tally) >= UNKNOWN_MAX:
        sys.stderr.write(f"{unknown_share(tally):.2%} of the answers are unknown\n")
    return 2 if short or rare or unknown_share(tally) >= UNKNOWN_MAX else 0


if __name__ == "__main__":
    # Otherwise SIGTERM would leave the workers running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
