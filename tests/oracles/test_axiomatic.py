"""The axiomatic oracle against the other two, and saturation against z3."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import permutations

import pytest
from helpers import LITMUS, corpus_entry, for_each
from test_explorer import (
    BRANCH,
    CONSTANTS,
    HEAD,
    LOOP,
    blocking,
    chains,
    nearby,
    replays,
)

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Cluster, Graph, LitmusTest, MalformedTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs, PureAttrs
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.oracles import reference
from litmusfuzz.oracles.axiomatic import Axiomatic, Budget, Question, judge
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC, Model
from litmusfuzz.oracles.saturation import Choice, OverBudget, find_order

SATURATION = Budget(solve=False)
Z3 = Budget(saturate=False)
MOST_ORDERS = 1_500


def check(test: LitmusTest, model: Model, allowed, rng: random.Random, most: int = 3) -> int:
    """Compare saturation and z3 with the reference; count the answers of saturation."""
    outcomes = sorted(allowed.witnesses, key=str)
    asked = set()
    for outcome in rng.sample(outcomes, min(len(outcomes), most)):
        asked |= {outcome, *nearby(outcome, outcomes, rng)[1:3]}
    answered = 0
    for budget in (SATURATION, Z3):
        judge = Axiomatic(test, model, budget)
        for outcome in sorted(asked, key=str):
            verdict = judge.judge(outcome)
            if budget is SATURATION and verdict is Verdict.UNKNOWN:
                continue
            answered += budget is SATURATION
            assert verdict is allowed.judge(outcome), (str(outcome), model.name)
            if verdict is Verdict.ALLOWED and model in MODELS.values():
                witness = judge.witness(outcome)
                assert witness is not None
                assert replays(test, model, witness, outcome)
    return answered


def complete(test: LitmusTest, model: Model):
    """Return the reference's allowed set; None if it takes too long."""
    allowed = reference.allowed_outcomes(test, model, MOST_ORDERS)
    return allowed if allowed.complete else None


# --- the corpus ------------------------------------------------------------------------


@for_each("path", LITMUS, every=4)
def test_agrees_with_the_corpus(path) -> None:
    """The explorer gives the expected sets, blocked outcomes included."""
    test = corpus_entry(path).test
    rng = random.Random(path.stem)
    for model in MODELS.values():
        check(
            test,
            model,
            Explorer(test, model).allowed_outcomes(),
            rng,
            most=1,
        )


# --- random tests ----------------------------------------------------------------------


def test_agrees_on_generated_graphs() -> None:
    answered = 0
    for index in range(16):
        test = generate("dag", 7, index)
        rng = random.Random(index)
        for model in MODELS.values():
            allowed = complete(test, model)
            if allowed is not None:
                answered += check(test, model, allowed, rng)
    assert answered > 15  # questions that need no solver


@pytest.mark.parametrize("values", [0, 1, 3])
def test_agrees_on_plain_reads_and_writes(values: int) -> None:
    """Where all written values differ (0), no question needs the solver."""
    for seed in range(20):
        test = chains(seed, values=values)
        allowed = complete(test, RFC)
        if allowed is not None:
            answered = check(test, RFC, allowed, random.Random(seed))
            assert answered or values


def test_agrees_on_blocked_and_failed_outcomes() -> None:
    """The last assertion makes sure that every status occurs."""
    seen: dict[Status, int] = dict.fromkeys(Status, 0)
    for seed in range(32):
        test = blocking(seed)
        for model in MODELS.values() if test else ():
            allowed = complete(test, model)
            if allowed is not None:
                check(test, model, allowed, random.Random(seed))
                for outcome in allowed.witnesses:
                    seen[outcome.status] += 1
    assert min(seen.values()) >= 5, seen


def weaker(model: Model, rng: random.Random) -> Model:
    """Return the model without some of its axioms."""
    left_out = rng.sample(sorted(model.axioms), rng.randint(1, 3))
    return replace(model, name="weaker", axioms=model.axioms - set(left_out))


def test_agrees_without_some_rules() -> None:
    for seed in range(25):
        rng = random.Random(seed)
        test = blocking(seed) if seed % 2 else generate("dag", 8, seed)
        for model in (weaker(RFC, rng), weaker(EXECUTOR, rng)):
            allowed = complete(test, model) if test else None
            if allowed is not None:
                check(test, model, allowed, rng)


def clustered(test: LitmusTest, rng: random.Random) -> LitmusTest | None:
    """Return the test with a random cluster, in a random SSA order; None without luck."""
    nodes = [n.name for n in rng.choice(test.graphs).nodes]
    for _ in range(20):
        chosen = rng.sample(nodes, min(len(nodes), rng.randint(2, 5)))
        chosen.sort(key=nodes.index)
        if len(chosen) < 4 and rng.random() < 0.5:
            chosen = list(rng.choice(list(permutations(chosen))))
        try:
            return replace(test, clusters=(Cluster("k", tuple(chosen)),))
        except MalformedTest:
            continue
    return None


def test_agrees_on_clusters() -> None:
    for seed in range(25):
        rng = random.Random(seed)
        test = clustered(generate("dag", 9, seed), rng)
        for model in (RFC, EXECUTOR, weaker(RFC, rng)):
            allowed = complete(test, model) if test else None
            if allowed is not None:
                check(test, model, allowed, rng, most=2)


BODIES = {
    "loop": LOOP.replace("PARALLEL", "10")
    + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}\nobserve: [loop.last]\n",
    "loop one at a time": LOOP.replace("PARALLEL", "1")
    + "    w: {op: AssignVariableOp, resources: [X], inputs: [one]}\nobserve: [loop.i]\n",
    "conditional": BRANCH
    + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}\n"
    + "    late: {op: ReadVariableOp, resources: [X], after: [cond]}\nobserve: [read, late]\n",
}


@pytest.mark.parametrize("body", sorted(BODIES))
@pytest.mark.parametrize("as_cluster", [False, True])
def test_agrees_on_bodies_with_and_without_each_rule(body: str, as_cluster) -> None:
    test = loads(HEAD + CONSTANTS + BODIES[body]).test
    if as_cluster:
        test = replace(test, clusters=(Cluster("k", ("loop" if "loop" in body else "cond",)),))
    for axiom in (None, *sorted(EXECUTOR.axioms)):
        model = replace(EXECUTOR, axioms=EXECUTOR.axioms - {axiom}) if axiom else RFC
        allowed = complete(test, model)
        if allowed is not None:
            check(test, model, allowed, random.Random(1))


# --- questions with some open values ------------------------------------------------------


def test_a_value_that_is_not_named_may_be_anything() -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    oracle = Axiomatic(test, RFC)
    assert oracle.possible(Question({"r0": (0,)})) is Verdict.ALLOWED
    assert oracle.possible(Question({"r0": (0,), "r1": (0,)})) is Verdict.FORBIDDEN
    assert oracle.possible(Question({"X": (0,)})) is Verdict.FORBIDDEN
    assert oracle.possible(Question({})) is Verdict.ALLOWED
    assert oracle.possible(Question({}, Status.BLOCKED)) is Verdict.FORBIDDEN


def test_ordering_constraints_of_a_question_hold() -> None:
    test = litmus("X=1 || r0=X")
    for budget in (SATURATION, Z3):
        (case,) = Axiomatic(test, RFC, budget).cases(Question({"r0": (1,)}))
        for pair, found in (((0, 1), (0, 1)), ((1, 0), None)):
            answer = case.solve([pair])
            assert answer is not None
            assert answer.order == found
        again = case.solve()
        assert again is not None
        assert again.order == (0, 1)


# --- special verdicts --------------------------------------------------------------------


def test_torn_is_forbidden_and_another_tests_outcome_is_refused() -> None:
    test = litmus("X=1 || r0=X")
    assert judge(test, RFC, Outcome((("r0", TORN), ("X", (1,))))) is Verdict.FORBIDDEN
    with pytest.raises(ValueError, match="another test"):
        judge(test, RFC, Outcome((("X", (1,)),)))
    with pytest.raises(ValueError, match="another test"):
        judge(test, RFC, Outcome((("r0", (1,)), ("Y", (1,)))))


def test_a_variable_that_no_event_touches_keeps_its_value() -> None:
    test = litmus("X=1 || r0=X", init={"X": 5}, queues={"Q": 1})
    test = replace(test, queues=(replace(test.queues[0], init=(7,)),))
    for budget in (SATURATION, Z3):
        for held, verdict in ((((7,),), Verdict.ALLOWED), ((), Verdict.FORBIDDEN)):
            outcome = Outcome.of(test, {"r0": (1,), "X": (1,), "Q": held})
            assert judge(test, RFC, outcome, budget) is verdict


def test_a_test_without_events_ends_as_it_begins() -> None:
    """A mutation of the corpus made one: its loop is never entered."""
    test = replace(litmus("X=1", init={"X": 5}), graphs=(Graph("main", ()),), observe=())
    for value, wanted in ((5, Verdict.ALLOWED), (6, Verdict.FORBIDDEN)):
        assert judge(test, RFC, Outcome.of(test, {"X": (value,)})) is wanted


def test_over_budget_nothing_is_allowed_or_forbidden() -> None:
    test = litmus(" || ".join(f"X+={1 << i}" for i in range(4)))
    for value in (9, 16):
        outcome = Outcome.of(test, {"X": (value,)})
        limits = (Budget(steps=10, histories=0), Budget(events=7), Budget(clauses=20, histories=9))
        for budget in limits:
            assert judge(test, RFC, outcome, budget) is Verdict.UNKNOWN
    for value, verdict in ((9, Verdict.ALLOWED), (15, Verdict.ALLOWED), (16, Verdict.FORBIDDEN)):
        assert judge(test, RFC, Outcome.of(test, {"X": (value,)})) is verdict


def test_the_same_question_takes_the_same_steps() -> None:
    """The smallest sufficient budget does not depend on earlier questions."""
    test = litmus(" || ".join(f"X+={1 << i}" for i in range(4)))
    outcome = Outcome.of(test, {"X": (16,)})

    def least() -> int:
        steps = 1
        while judge(test, RFC, outcome, Budget(steps=steps, histories=0)) is Verdict.UNKNOWN:
            steps += 5_000
        return steps

    assert 1 < least() == least()


def test_long_chains_need_no_deep_recursion() -> None:
    pure = "r0=X" + "".join(f"; r{i}=r{i - 1}+0" for i in range(1, 900))
    test = litmus(pure)
    (outcome,) = Explorer(test, RFC).allowed_outcomes().witnesses
    assert judge(test, RFC, outcome) is Verdict.ALLOWED
    adds = litmus("; ".join(["X+=1"] * 180))
    assert judge(adds, RFC, Outcome.of(adds, {"X": (180,)})) is Verdict.ALLOWED
    assert judge(adds, RFC, Outcome.of(adds, {"X": (179,)})) is Verdict.FORBIDDEN


def test_the_solver_is_loaded_on_first_use() -> None:
    code = (
        "import sys\n"
        "from litmusfuzz.corpus.builder import litmus\n"
        "from litmusfuzz.corpus.outcome import Outcome\n"
        "from litmusfuzz.oracles.axiomatic import judge\n"
        "from litmusfuzz.oracles.model import RFC\n"
        "test = litmus('X=1; Y=1 || r0=Y; r1=X')\n"
        "values = {'r0': (1,), 'r1': (0,), 'X': (1,), 'Y': (1,)}\n"
        "assert str(judge(test, RFC, Outcome.of(test, values))) == 'forbidden'\n"
        "assert 'z3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- saturation alone --------------------------------------------------------------------


def test_choices_are_forced_and_tried() -> None:
    first = Choice((0, 1), (2, 3))
    assert find_order(4, [(1, 0)], [first], 0) is not None  # forced: needs no try
    order = find_order(4, [], [first, Choice((1, 0), (3, 2))], 4)
    assert order is not None
    with pytest.raises(OverBudget):
        find_order(4, [], [first, Choice((1, 0), (3, 2))], 0)
    assert find_order(2, [(0, 1), (1, 0)], [], 0) is None
    # Each alternative of the first choice contradicts the others.
    none = [Choice((0, 1), (1, 0)), Choice((0, 0), (1, 0)), Choice((1, 1), (0, 1))]
    assert find_order(2, [], none, 4) is None
    stuck = [Choice((0, 1), (2, 3)), Choice((1, 0), (3, 2)), Choice((1, 0), (2, 3))]
    order = find_order(4, [], stuck, 9)
    assert order is not None
    assert order.index(1) < order.index(0)
    assert order.index(2) < order.index(3)


def test_the_shape_of_a_value_is_known_though_the_value_is_not() -> None:
    """The shape of the unique elements rests on it: no other shape of the value may be tried."""
    shape = PureAttrs((("out_type", "int32"),))
    unique = PureAttrs((("result", "y"), ("out_idx", "int32")))
    nodes = (
        Node("r", "ReadVariableOp", (), ("X",)),
        Node("rows", "Const", attrs=ConstAttrs("int32", (2,), (3, 3))),
        Node("x", "BroadcastTo", ("r", "rows")),
        Node("s", "Shape", ("x",), attrs=shape),
        Node("axis", "Const", attrs=ConstAttrs("int32", (1,), (0,))),
        Node("u", "UniqueV2", ("s", "axis"), attrs=unique),
        Node("five", "Const", attrs=ConstAttrs("int32", (1,), 5)),
        Node("w", "AssignVariableOp", ("five",), ("X",)),
    )
    test = LitmusTest("t", (Variable("X", "int32", (1,), 3),), (Graph("main", nodes),), ("u",))
    assert test.type_of("u").shape == (1,)
    for value in (2, 3, 4):
        outcome = Outcome((("u", (value,)), ("X", (5,))), Status.COMPLETED)
        assert judge(test, RFC, outcome) == (Verdict.ALLOWED if value == 3 else Verdict.FORBIDDEN)
