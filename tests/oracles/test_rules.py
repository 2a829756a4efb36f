"""For each axiom, outcomes that only it forbids: without it each oracle allows them.

The files `rule-*.yaml`, their sets and these outcomes were derived by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.corpus.textfile import outcome_from_plain
from litmusfuzz.oracles import axiomatic, explorer, reference
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, Axiom, Model, unsplit

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome

FILES = {path.stem: path for path in LITMUS}
RULES = (
    ("rule-dependencies-1", "rfc", "dependencies", {"r0": 1, "r1": 0, "X": 1, "Y": 1}),
    ("rule-dependencies-2", "rfc", "dependencies", {"r0": 0, "ry": 1, "X": 1, "Y": 1}),
    ("rule-sections-1", "rfc", "critical sections", {"r0": 0, "r1": 0, "X": 1}),
    ("rule-sections-2", "rfc", "critical sections", {"r0": 0, "r1": 0, "X": 1}),
    ("rule-runs-1", "rfc", "runs", {"b.r0": 0, "X": 1}),
    ("rule-runs-2", "rfc", "runs", {"b.r0": 0, "X": 1}),
    ("rule-fetches-1", "rfc", "fetches", {"r": 1, "X": 1}),
    ("rule-fetches-2", "rfc", "fetches", {"_status": "blocked", "X": 1, "Q": []}),
    ("rule-fifo-1", "rfc", "first in, first out", {"t": 2, "Q": [1]}),
    ("rule-fifo-2", "rfc", "first in, first out", {"_status": "blocked", "X": 2, "Q": []}),
    ("rule-capacity-1", "rfc", "capacity", {"r": 1, "t": 1, "X": 1, "Q": [2]}),
    ("rule-capacity-2", "rfc", "capacity", {"s": 2, "Q": []}),
    ("rule-predicates-1", "rfc", "predicates", {"r": 1, "X": 1}),
    ("rule-predicates-2", "rfc", "predicates", {"r0": 1, "r1": 1, "X": 1, "Y": 1}),
    ("rule-predicates-3", "rfc", "predicates", {"loop.i": 1, "X": 1}),
    ("rule-iterations-1", "rfc", "iterations", {"loop.i": 0, "X": 1}),
    ("rule-iterations-2", "rfc", "iterations", {"r": 1, "Y": 1, "X": 0}),
    ("rule-calls-1", "rfc", "calls", {"r": 0, "X": 1}),
    ("rule-clusters-1", "rfc", "clusters", {"r0": 0, "r1": 1, "X": 1, "Y": 1}),
    ("rule-clusters-2", "rfc", "clusters", {"X": 1, "Y": 2}),
    ("rule-dense-1", "executor", "dense updates indivisible", {"X": 1}),
    ("rule-dense-2", "executor", "dense updates indivisible", {"rx": -6, "ra": 2, "X": -6, "A": 7}),
    ("rule-parallel-1", "executor", "parallel iterations", {"X": 1}),
    ("rule-parallel-2", "executor", "parallel iterations", {"X": 1}),
    ("rule-parallel-3", "executor", "parallel iterations", {"X": 1}),
    ("rule-fifo-3", "rfc", "first in, first out", {"t": 2, "Q": [1]}),
    ("scatter-disjoint-rows", "unsplit", "updates indivisible", {"X": [10, 0, 0]}),
    ("SB", "acd", "program order per resource", {"r0": 1, "r1": 0, "X": 1, "Y": 1}),
    (
        "rule-dependencies-1",
        "acd",
        "program order per resource",
        {"r0": 0, "r1": 1, "X": 1, "Y": 1},
    ),
    (
        "rule-results-1",
        "acd",
        "results after effects",
        {"reader.r0": 1, "reader.r1": 0, "X": 1, "Y": 1},
    ),
    ("rule-results-2", "acd", "results after effects", {"loop.i": 2, "X": 0}),
    ("SB", "one_cluster", "one cluster", {"r0": 1, "r1": 1, "X": 1, "Y": 1}),
    ("SB", "program", "program order", {"r0": 1, "r1": 0, "X": 1, "Y": 1}),
    ("call-needs-only", "program", "program order", {"ra": 0, "sx": 0, "A": 0, "X": 1, "Z": 0}),
    (
        "call-nested",
        "sequential",
        "one thing at a time",
        {"r": 1, "outer.y": 0, "X": 1, "Y": 1},
    ),
    (
        "rule-stale-1",
        "rfc",
        "stale gradients are dropped",
        {"r0": 11, "A.sum": 0, "A.count": 0},
    ),
    ("rule-enough-1", "rfc", "enough gradients", {"r0": 5, "A.sum": 0, "A.count": 0}),
    ("rule-predicates-4", "rfc", "predicates", {"r": 1, "pick.got": 1, "F": 1, "X": 1}),
)


def _reference(test: LitmusTest, model: Model, outcome: Outcome) -> Verdict:
    return reference.allowed_outcomes(test, model).judge(outcome)


def _explorer(test: LitmusTest, model: Model, outcome: Outcome) -> Verdict:
    return explorer.Explorer(test, model).judge(outcome)


def _whole_set(test: LitmusTest, model: Model, outcome: Outcome) -> Verdict:
    return explorer.allowed_outcomes(test, model).judge(outcome)


ORACLES = {
    "reference": _reference,
    "explorer": _explorer,
    "explorer's set": _whole_set,
    "axiomatic": axiomatic.judge,
}


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("file", "model", "rule", "outcome"), RULES, ids=lambda v: str(v)[:40])
def test_a_rule_alone_forbids(
    file: str, model: str, rule: str, outcome: dict[str, object], oracle: str
) -> None:
    test = corpus_entry(FILES[file]).test
    wanted = outcome_from_plain(test, outcome)
    whole = unsplit(EXECUTOR) if model == "unsplit" else GUARANTEES[model]
    without = Model(f"{model} without {rule}", whole.axioms - {Axiom(rule)})
    assert ORACLES[oracle](test, whole, wanted) is Verdict.FORBIDDEN
    assert ORACLES[oracle](test, without, wanted) is Verdict.ALLOWED


def test_every_rule_has_such_a_test() -> None:
    assert {rule for _, _, rule, _ in RULES} == set(map(str, Axiom))
