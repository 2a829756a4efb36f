"""Computes the canonical form of a test, and from it the key of a finding.

Two tests have the same canonical form if and only if they differ at most in

- names;
- the order of unordered parts: nodes, resources, graphs, runs, clusters, control edges, members of
  a section, carried values after the counter, results, captures of a body, observed values;
- values of which only the equality matters.

The algorithm is graph canonization. A test is converted to a graph with coloured vertices and
labelled edges, so that two tests differ as above if and only if their graphs are isomorphic.
Colours are refined until vertices of one colour have the same neighbours. While several vertices
share a colour, each of them is individualized in turn, and the least of the resulting labellings is
the canonical one. Two labellings with the same edges give an automorphism, which prunes equivalent
branches of the search.

The form keeps redundant control edges, equal constants and the order of a sum's operands, because
executors may treat them differently even where the model does not.

References
----------
McKay and Piperno, "Practical graph isomorphism, II", J. Symb. Comput. 2014, section 2: refine,
individualize, prune by automorphisms.
"""

from __future__ import annotations

import hashlib
import json
import random
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from litmusfuzz.corpus.model import (
    Reordering,
)
from litmusfuzz.corpus.textfile import Entry, dumps, plain_of
from litmusfuzz.fuzz.finding.coloured_graph import ColouredGraph, kept_below
from litmusfuzz.fuzz.finding.configuration_reducer import needed_settings
from litmusfuzz.fuzz.finding.labelling import Labelling
from litmusfuzz.fuzz.finding.rewritten_test import RewrittenTest
from litmusfuzz.oracles.model import GUARANTEES, RFC
from litmusfuzz.oracles.reason import explain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.oracles.model import Model


VERSION: Final = "v3"
"""Version of keys. It changes whenever any finding gets another key: keys stand in files."""


def form(
    test: LitmusTest, model: Model = RFC, names: Collection[str] = (), *, order: bool = False
) -> LitmusTest:
    """The canonical form: one test for all tests that are equal in the sense of this module.

    Parameters
    ----------
    test : LitmusTest
    model : Model
        Judges it. Under *program order per resource*, the order of the nodes in the file is kept
        as far as that rule requires.
    names : collection of str
        Names of nodes and resources without which the test does not show its finding. They are
        kept: such a test has another form than one that shows under any names.
    order : bool
        True if the test does not show its finding with its nodes in another order, which is kept.
    """
    graph_of_test = ColouredGraph(test, model, names, order=order)
    made = RewrittenTest(graph_of_test, Labelling(graph_of_test).ranks).test(names)
    if not (names or order):
        return made
    needs = ", ".join([*sorted(names), *(["this order"] if order else [])])
    return made.titled(description=f"only with {needs}")


def ordered(test: LitmusTest, model: Model = RFC) -> LitmusTest:
    """The test with its nodes in the order of the canonical form; names and values stay."""
    graph_of_test = ColouredGraph(test, model)
    return RewrittenTest(graph_of_test, Labelling(graph_of_test).ranks).in_order().build()


def reordered(test: LitmusTest, model: Model, seed: int) -> LitmusTest:
    """The test with the unordered parts of its graphs in a random order.

    Names and values stay. Nodes still come after those that they need. Each linear extension has a
    chance, though not the same one.
    """
    rng = random.Random(f"order/{seed}")
    rank = {name: rng.random() for name in test.types}
    return test.reordered(Reordering(rank, kept_below(test, model)))


def key(
    test: LitmusTest,
    *,
    kind: str,
    rules: Iterable[str],
    executor_class: str,
    model: Model = RFC,
    names: Collection[str] = (),
    order: bool = False,
    settings: Mapping[str, int | str | bool] = MappingProxyType({}),
) -> str:
    """The key of a finding: a short digest, equal in every nightly run.

    Parameters
    ----------
    test : LitmusTest
        The minimized test, under any names apart from those that it needs.
    kind : str
        The kind of finding, `reports.events.FindingKind`.
    rules : iterable of str
        The broken rules, `oracles.reason.Reason.broken`; none for a finding that breaks no rule.
    executor_class : str
        See `executor_class`.
    model : Model
        Judges the outcomes.
    names, order
        What the test needs; see `form`.
    settings : mapping
        Those that it needs (`configuration_reducer.needed_settings`).
    """
    needed = sorted(settings.items())
    canonical = dumps(Entry(form(test, model, names, order=order)))
    parts = (kind, "; ".join(sorted(rules)), executor_class, needed, canonical)
    return f"{VERSION}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def key_of(entry: Entry) -> str:
    """The key of a minimized finding, from its file alone.

    Its rules are those that the most frequent outcome breaks.
    """
    finding = entry.finding
    assert finding is not None
    model = GUARANTEES[finding.model]
    return key(
        entry.test,
        kind="forbidden",
        rules=_broken_rules(entry.test, model, finding.forbidden[0][0]),
        executor_class=executor_class(finding.executor, finding.settings, finding.model),
        model=model,
        names=finding.needs_names,
        order=finding.needs_order,
        settings=needed_settings(finding.executor, finding.settings),
    )


@lru_cache(1 << 8)  # known findings are read again and again
def _broken_rules(test: LitmusTest, model: Model, outcome: Outcome) -> tuple[str, ...]:
    reason = explain(test, model, outcome)
    return reason.broken if reason else ()


def digest(test: LitmusTest) -> str:
    """SHA-256 of a test as JSON: equal if the test is generated again."""
    return hashlib.sha256(msgspec.json.encode(plain_of(test))).hexdigest()


def executor_class(executor: str, settings: Mapping[str, int | str | bool], model: str) -> str:
    """Configurations that likely share their defects: ``tf/xla``, ``tf/function``, ``native/rfc``.

    The class depends on the settings, not on the name: a compiler, else another front end, else
    the guaranteed model. Pools, threads, rewrites and engines do not matter: a race in a kernel
    shows in all of them.
    """
    if settings.get("compiled"):
        part = "xla"
    elif settings.get("front_end", "graph") != "graph":
        part = str(settings["front_end"])
    else:
        part = model
    return f"{executor}/{part}"


# --- values ----------------------------------------------------------------------------
# --- the order of the file -------------------------------------------------------------
# --- the graph of a test ---------------------------------------------------------------
# --- the labelling ---------------------------------------------------------------------
# --- writing it down -------------------------------------------------------------------
