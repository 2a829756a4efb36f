"""The explorer against the reference, which shares neither search nor arithmetic.

The tests here must catch the defects of `tests/kills/oracle_defects.py`.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry, for_each, is_small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import Graph, LitmusTest, MalformedTest, Node, Variable
from litmusfuzz.corpus.ops import ConstAttrs
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Digest, loads
from litmusfuzz.fuzz.generators import generate
from litmusfuzz.fuzz.generators.hypothesis_strategies import resource_graphs
from litmusfuzz.oracles import explorer, reference
from litmusfuzz.oracles.axiomatic import Axiomatic
from litmusfuzz.oracles.errors import ValueTooLarge
from litmusfuzz.oracles.events import strictnesses, unfold
from litmusfuzz.oracles.explorer import Budget, Explorer
from litmusfuzz.oracles.model import EXECUTOR, MODELS, RFC, Axiom, Model

if TYPE_CHECKING:
    from litmusfuzz.oracles.allowed import AllowedSet
    from litmusfuzz.oracles.events import Event

quiet = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
LIVE = Budget(plain=0)
"""The search drops values that no outcome depends on, from the first state on."""
BARE = Model("bare", frozenset())
"""No axioms: only data edges order events, so that the code takes other paths."""


class _Replay(reference._Walk):
    """Executes one given order with the reference's semantics."""

    def follow(self, order: tuple[Event, ...]) -> Outcome:
        indices = {id(event): i for i, event in enumerate(self.events)}
        equal = {id(e): [i for i, own in enumerate(self.events) if own == e] for e in order}
        for event in order:
            left = [i for i in equal[id(event)] if i not in self.done]
            index = indices.get(id(event), left[0] if left else -1)
            if (index, 0) not in self.enabled():
                raise _NotLegal(str(event))
            self.done.add(index)
            if self.fails(event):
                return Outcome.of(self.test, {}, Status.FAILED)
            self.step(index, 0)
        if self.failing(needed=True):
            return Outcome.of(self.test, {}, Status.FAILED)
        if self.enabled():
            raise _NotLegal("it goes on")
        return self.outcome()


def replays(test: LitmusTest, model: Model, order: tuple[Event, ...], outcome: Outcome) -> bool:
    """Return True if the order is legal and yields the outcome for some strictness."""
    for strictness in strictnesses(test, model):
        try:
            return _Replay(test, model, strictness).follow(order) == outcome
        except _NotLegal:
            if outcome.status is not Status.BLOCKED:
                return False
    return False


class _NotLegal(AssertionError):
    pass


def check(
    test: LitmusTest, model: Model, rng: random.Random, wanted: AllowedSet | None = None
) -> None:
    """Compare sets, verdicts on allowed and nearby outcomes, and check witnesses.

    `wanted` is the exact set, if it is known already.
    """
    wanted = wanted or reference.allowed_outcomes(test, model)
    assert wanted.complete
    outcomes = sorted(wanted.witnesses, key=str)
    asked = rng.sample(outcomes, min(len(outcomes), 12))
    questions = {outcome: nearby(outcome, outcomes, rng) for outcome in asked}
    for budget in (Budget(), LIVE):
        judge = Explorer(test, model, budget)
        found = judge.allowed_outcomes()
        assert found.complete
        assert len(found.witnesses) == len(set(found.witnesses))
        assert set(found.witnesses) == set(wanted.witnesses)
        for outcome, others in questions.items():
            assert judge.judge(outcome) is wanted.judge(outcome) is found.judge(outcome)
            witness = judge.witness(outcome)
            assert witness is not None
            assert replays(test, model, witness, outcome)
            for changed in others:
                assert judge.judge(changed) is wanted.judge(changed), str(changed)
                assert (judge.witness(changed) is None) is (changed not in wanted.witnesses)


def nearby(outcome: Outcome, outcomes: list[Outcome], rng: random.Random) -> list[Outcome]:
    """Return outcomes with one to three values changed, some to values of others."""
    values = dict(outcome.values)
    made = []
    for count in (1, 1, 2, 3):
        changed = dict(values)
        for name in rng.sample(sorted(values), min(count, len(values))):
            seen = [dict(o.values)[name] for o in outcomes if name in dict(o.values)]
            own = values[name]
            if own and isinstance(own[0], int):
                seen.append(tuple(v + rng.randint(-1, 1) for v in own))
            else:
                seen += [(), ((1,),)]
            changed[name] = rng.choice(seen)
        made.append(Outcome(tuple(changed.items()), outcome.status))
    return made


@for_each("path", LITMUS)
def test_every_corpus_test_has_exactly_its_allowed_set(path) -> None:
    """The same set as the reference has (`test_reference.py`), which takes long to compute."""
    entry = corpus_entry(path)
    for name, model in MODELS.items():
        expected = entry.allowed.get(name, entry.allowed["rfc"])
        found = explorer.allowed_outcomes(entry.test, model)
        assert found.complete
        if isinstance(expected, Digest):
            assert expected.matches(found.witnesses)
        else:
            assert set(found.witnesses) == expected
        check(entry.test, model, random.Random(1), found)


@given(resource_graphs().filter(is_small), st.randoms(use_true_random=False))
@settings(quiet, max_examples=150)
def test_agrees_with_the_reference(test, rng) -> None:
    for model in (RFC, EXECUTOR):
        check(test, model, rng)


@given(resource_graphs().filter(is_small), st.randoms(use_true_random=False))
@settings(quiet, max_examples=40)
def test_agrees_where_reads_are_not_observed(test, rng) -> None:
    kept = tuple(name for name in test.observe if rng.random() < 0.4)
    for model in (RFC, EXECUTOR):
        check(replace(test, observe=kept), model, rng)


@given(resource_graphs().filter(is_small), st.randoms(use_true_random=False))
@settings(quiet, max_examples=40)
def test_agrees_under_other_axioms(test, rng) -> None:
    for model in (BARE, Model("dense", frozenset({Axiom.DENSE_UPDATES_INDIVISIBLE}))):
        wanted = reference.allowed_outcomes(test, model, 1_000)
        if wanted.complete:  # with fewer edges, too
            check(test, model, rng, wanted)


def chains(seed: int, *, values: int = 0) -> LitmusTest:
    """Generate plain reads and writes, where saturation is most effective."""
    rng = random.Random(seed)
    parts, number = [], 0
    for _ in range(rng.randint(2, 4)):
        part = []
        for _ in range(rng.randint(1, 4)):
            number += 1
            name = rng.choice("XY")
            write = rng.random() < 0.5
            value = rng.randint(1, values) if values else number
            part.append(f"{name}={value}" if write else f"r{number}={name}")
        parts.append("; ".join(part))
    return litmus(" || ".join(parts))


@pytest.mark.parametrize("values", [0, 1, 2, 3])
def test_agrees_on_plain_reads_and_writes(values: int) -> None:
    for seed in range(80):
        test = chains(seed, values=values)
        if is_small(test):
            check(test, RFC, random.Random(seed))


# --- blocking ops ------------------------------------------------------------------------


def blocking(seed: int) -> LitmusTest | None:
    """Generate a test with queues, locks and concurrent runs; None if it is malformed."""
    rng = random.Random(seed)
    number = 0
    parts = []
    for _ in range(rng.randint(2, 3)):
        part = []
        for _ in range(rng.randint(1, 3)):
            number += 1
            part.append(
                rng.choice(
                    (
                        f"{rng.choice('QP')}!{rng.randint(1, 3)}",
                        f"r{number}={rng.choice('QP')}?",
                        f"X={rng.randint(1, 3)}",
                        "X+=1",
                        f"r{number}=X",
                    )
                )
            )
        if rng.random() < 0.5:
            begin = rng.randrange(len(part))
            end = rng.randint(begin + 1, len(part))
            mutex = rng.choice("MN")
            part[begin:end] = [f"lock {mutex}", *part[begin:end], f"unlock {mutex}"]
        parts.append("; ".join(part))
    text = parts[0] + "".join(rng.choice((" || ", " ||| ")) + part for part in parts[1:])
    queues = {name: rng.randint(1, 2) for name in "QP" if name in text}
    try:
        return with_size_and_close(litmus(text, queues=queues), rng)
    except MalformedTest:
        return None


def with_size_and_close(test: LitmusTest, rng: random.Random) -> LitmusTest:
    if not test.queues or rng.random() < 0.4:
        return test
    graph, queue = test.graphs[0], test.queues[0].name
    size = Node("size", "QueueSizeV2", (), (queue,))
    key = "size" if len(test.graphs) == 1 else f"{graph.name}.size"
    filled = Graph(graph.name, (*graph.nodes, size))
    test = replace(test, graphs=(filled, *test.graphs[1:]), observe=(*test.observe, key))
    before = tuple(n.name for n in graph.nodes if n.op == "QueueEnqueueV2")
    close = Node("close", "QueueCloseV2", (), (queue,), before)
    if rng.random() < 0.5:
        closed = Graph(graph.name, (*filled.nodes, close))
        try:
            return replace(test, graphs=(closed, *test.graphs[1:]))
        except MalformedTest:
            pass  # an enqueue elsewhere that is not before it
    return test


def test_agrees_on_blocked_and_failed_outcomes() -> None:
    """The last assertion makes sure that every status occurs."""
    seen: dict[Status, int] = dict.fromkeys(Status, 0)
    for seed in range(130):
        test = blocking(seed)
        if test is None:
            continue
        for model in (RFC, EXECUTOR):
            # Most of the time goes into tests with more orders, which are then left out.
            allowed = reference.allowed_outcomes(test, model, 1_000)
            if not allowed.complete:
                continue
            check(test, model, random.Random(seed), allowed)
            for outcome in allowed.witnesses:
                seen[outcome.status] += 1
    assert min(seen.values()) >= 10, seen


def test_two_sections_taken_in_opposite_orders_may_block() -> None:
    test = litmus(
        "lock M; r0=X; lock N; X=1; unlock N; unlock M || "
        "lock N; r1=X; lock M; X=2; unlock M; unlock N"
    )
    found = explorer.allowed_outcomes(test, RFC)
    assert Status.BLOCKED in {outcome.status for outcome in found.witnesses}
    check(test, RFC, random.Random(0))


# --- conditionals and loops --------------------------------------------------------------

HEAD = """
litmusfuzz: 2
name: bodies
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
"""
CONSTANTS = """
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    two: {op: Const, dtype: int32, shape: [], value: 2}
"""
LOOP = """
    loop:
      op: While
      inputs: [zero, zero]
      carried: [i, last]
      captures: {limit: two, step: one}
      parallel_iterations: PARALLEL
      condition:
        nodes:
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          add: {op: AssignAddVariableOp, resources: [X], inputs: [step]}
          next: {op: AddV2, inputs: [i, step]}
          seen: {op: ReadVariableOp, resources: [Y]}
        results: [next, seen]
"""
BRANCH = """
    read: {op: ReadVariableOp, resources: [Y]}
    flag: {op: Less, inputs: [zero, read]}
    cond:
      op: If
      inputs: [flag]
      captures: {a: one, b: two}
      then:
        nodes:
          set: {op: AssignVariableOp, resources: [X], inputs: [a]}
          r: {op: ReadVariableOp, resources: [X]}
        results: [r]
      else:
        nodes:
          u: {op: AssignAddVariableOp, resources: [X], inputs: [b]}
          q: {op: ReadVariableOp, resources: [Y], after: [u]}
        results: [q]
      results: [out]
"""


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
@pytest.mark.parametrize(
    "text",
    [
        LOOP.replace("PARALLEL", "10")
        + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}"
        "\nobserve: [loop.last]",
        LOOP.replace("PARALLEL", "1")
        + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}"
        "\nobserve: [loop.last]",
        LOOP.replace("PARALLEL", "1")
        + "    w: {op: AssignVariableOp, resources: [X], inputs: [one]}"
        "\nobserve: [loop.i]",
        BRANCH + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}"
        "\nobserve: [cond.out]",
        BRANCH + "    w: {op: AssignVariableOp, resources: [Y], inputs: [one]}\n"
        "    v: {op: AssignVariableOp, resources: [X], inputs: [two]}\n"
        "    late: {op: ReadVariableOp, resources: [X], after: [cond]}\n"
        "observe: [read, late]",
    ],
)
def test_agrees_on_bodies(text: str, model: Model) -> None:
    check(loads(HEAD + CONSTANTS + text + "\n").test, model, random.Random(0))


# --- size ------------------------------------------------------------------------------


def test_six_disjoint_shapes_multiply() -> None:
    sb = "X{0}=1; r{0}a=Y{0} || Y{0}=1; r{0}b=X{0}"
    test = litmus(" || ".join(sb.format(i) for i in range(6)))
    found = explorer.allowed_outcomes(test, RFC)
    assert len(found.witnesses) == 3**6
    assert found.complete
    assert found.states < 100
    judge = Explorer(test, RFC)
    for outcome in list(found.witnesses)[::50]:
        assert judge.judge(outcome) is Verdict.ALLOWED
        witness = judge.witness(outcome)
        assert witness is not None
        assert replays(test, RFC, witness, outcome)
        wrong = dict(outcome.values) | {"r3a": (0,), "r3b": (0,)}
        assert judge.judge(Outcome.of(test, wrong)) is Verdict.FORBIDDEN


def test_a_value_joins_components_without_a_common_variable() -> None:
    """r0 and r1 come from two components; their sum, observed, makes them one."""
    kind = ConstAttrs("int32", (), 1)
    nodes = (
        Node("c", "Const", attrs=kind),
        *(Node(f"w{v}", "AssignVariableOp", ("c",), (v,)) for v in "XY"),
        *(Node(f"r{v}", "ReadVariableOp", (), (v,)) for v in "XY"),
        Node("sum", "AddV2", ("rX", "rY")),
    )
    variables = tuple(Variable(v, "int32", ()) for v in "XY")
    test = LitmusTest("sum", variables, (Graph("main", nodes),), ("rX", "sum"))
    check(test, RFC, random.Random(0))


@pytest.mark.parametrize("length", [31, 32, 33, 63, 64, 65, 127, 128, 129, 200])
def test_sets_of_many_events(length: int) -> None:
    """A read concurrent with a chain of `length` writes sees any of them, or 0."""
    text = "; ".join(f"X={i + 1}" for i in range(length))
    test = litmus(f"{text} || r0=X")
    found = explorer.allowed_outcomes(test, RFC)
    seen = sorted(outcome.plain["r0"] for outcome in found.witnesses)
    assert seen == list(range(length + 1))
    judge = Explorer(test, RFC)
    for value in (0, 1, length // 2, length - 1, length):
        outcome = Outcome.of(test, {"r0": (value,), "X": (length,)})
        assert judge.judge(outcome) is Verdict.ALLOWED
        witness = judge.witness(outcome)
        assert witness is not None
        assert replays(test, RFC, witness, outcome)
    late = Outcome.of(test, {"r0": (length + 1,), "X": (length,)})
    assert judge.judge(late) is Verdict.FORBIDDEN
    lost = Outcome.of(test, {"r0": (0,), "X": (length - 1,)})
    assert judge.judge(lost) is Verdict.FORBIDDEN


@pytest.mark.parametrize("count", [33, 65])
def test_message_passing_across_words(count: int) -> None:
    """MP whose flag lies far from its data: (1, 0) stays forbidden."""
    pad = "; ".join(f"Z={i % 5}" for i in range(count))
    test = litmus(f"X=1; {pad}; Y=1 || r0=Y; r1=X")
    found = explorer.allowed_outcomes(test, RFC)
    pairs = {(o.plain["r0"], o.plain["r1"]) for o in found.witnesses}
    assert pairs == {(0, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize("count", [30, 62, 63, 64, 65, 130])
def test_a_read_waits_for_events_of_several_words(count: int) -> None:
    """The read comes after the first event and after a late one: it never sees 0."""
    constant = Node("one", "Const", attrs=ConstAttrs("int32", (), 1))
    chain = [Node("z0", "AssignVariableOp", ("one",), ("Z",))]
    for i in range(1, count):
        chain.append(Node(f"z{i}", "AssignVariableOp", ("one",), ("Z",), (f"z{i - 1}",)))
    two = Node("two", "Const", attrs=ConstAttrs("int32", (), 2))
    other = Node("other", "AssignVariableOp", ("two",), ("X",))  # or nothing is left to chance
    late = Node("late", "AssignVariableOp", ("one",), ("X",))
    read = Node("r0", "ReadVariableOp", (), ("X",), ("z0", "late"))
    graph = Graph("main", (constant, two, *chain, other, late, read))
    variables = tuple(Variable(v, "int32", ()) for v in "XZ")
    test = LitmusTest("words", variables, (graph,), ("r0",))
    found = explorer.allowed_outcomes(test, RFC)
    assert {outcome.plain["r0"] for outcome in found.witnesses} == {1, 2}
    early = Outcome.of(test, {"r0": (0,), "X": (1,), "Z": (1,)})
    assert Explorer(test, RFC).judge(early) is Verdict.FORBIDDEN


def test_a_long_chain_needs_no_deep_recursion() -> None:
    text = "; ".join(f"X={i % 7}" for i in range(1000))
    pure = "r0=X" + "".join(f"; r{i}=r{i - 1}+0" for i in range(1, 900))
    for test in (litmus(text), litmus(pure)):
        found = explorer.allowed_outcomes(test, RFC)
        assert len(found.witnesses) == 1
        (outcome,) = found.witnesses
        assert Explorer(test, RFC).judge(outcome) is Verdict.ALLOWED


def test_symmetric_increments() -> None:
    """n split increments give any of 1..n; few orders give n."""
    for count in range(1, 9):
        test = litmus(" || ".join(["X+=1"] * count))
        values = {o.plain["X"] for o in explorer.allowed_outcomes(test, RFC).witnesses}
        assert values == set(range(1, count + 1))
    for text in ("X+=1 || X+=1 || X+=1", "X+=1 || X+=1 || X+=2 || r0=X", "X+=1; X+=1 || X+=1"):
        check(litmus(text), RFC, random.Random(0))


# --- budget, errors --------------------------------------------------------------------


def test_over_budget_nothing_is_wrongly_allowed_or_forbidden() -> None:
    test = litmus("X=1; Y=1 || X=2; r0=Y || r1=X; r2=Y; r3=X || Y=2; X=3")
    whole = explorer.allowed_outcomes(test, RFC)
    for states in (1, 2, 5, 20, 100):
        judge = Explorer(test, RFC, Budget(states=states))
        part = judge.allowed_outcomes()
        assert not part.complete
        assert set(part.witnesses) < set(whole.witnesses)
        for outcome in whole.witnesses:
            assert part.judge(outcome) is not Verdict.FORBIDDEN
            assert judge.judge(outcome) in (Verdict.ALLOWED, Verdict.UNKNOWN)
            torn = dict(outcome.values) | {"r0": TORN}
            assert part.judge(Outcome.of(test, torn)) is Verdict.FORBIDDEN
            assert judge.judge(Outcome.of(test, torn)) is Verdict.FORBIDDEN
    exact = explorer.allowed_outcomes(test, RFC, Budget(states=whole.states))
    assert exact.complete


def test_some_verdict_is_unknown_when_the_budget_is_tiny() -> None:
    test = litmus(" || ".join(f"X+={1 << i}" for i in range(6)))
    judge = Explorer(test, RFC, Budget(states=3))
    outcome = Outcome.of(test, {"X": (33,)})
    assert judge.judge(outcome) is Verdict.UNKNOWN
    assert judge.witness(outcome) is None
    assert Explorer(test, RFC).judge(outcome) is Verdict.ALLOWED


def test_a_budget_of_memory_is_kept() -> None:
    test = litmus(" || ".join(f"X+={1 << i}" for i in range(8)))
    found = explorer.allowed_outcomes(test, RFC, Budget(memory_bytes=1 << 16))
    assert not found.complete
    assert found.states < 5_000


def test_more_outcomes_than_the_budget_has_states() -> None:
    sb = "X{0}=1; r{0}a=Y{0} || Y{0}=1; r{0}b=X{0}"
    test = litmus(" || ".join(sb.format(i) for i in range(12)))
    found = explorer.allowed_outcomes(test, RFC, Budget(states=1000))
    assert not found.complete
    assert len(found.witnesses) == 1000


def test_a_value_of_2_to_24_is_refused_as_the_reference_refuses_it() -> None:
    for text in (
        "X=16777215; X+=1",
        "X=16777215 || X+=1",
        "X=4096; r0=X; Y=r0*r0",
        "X=4096 || r0=X; r1=r0*r0*r0",
        "X=-16777215; X-=1",
    ):
        test = litmus(text)
        with pytest.raises(ValueTooLarge) as slow:
            reference.allowed_outcomes(test, RFC)
        with pytest.raises(ValueTooLarge) as fast:
            explorer.allowed_outcomes(test, RFC)
        assert str(fast.value).split()[:2] == str(slow.value).split()[:2]
    # A product too large that nothing uses is never computed; 2**24 - 1 fits.
    for text in ("X=16777214; X+=1", "X=16777215 || r0=X"):
        check(litmus(text), RFC, random.Random(0))


def test_an_outcome_with_absurd_values_is_forbidden() -> None:
    test = litmus("X=1 || r0=X; Y=r0*r0")
    judge = Explorer(test, RFC)
    for value in (1 << 23, 1 << 24, 1 << 62, 1 << 80, -(1 << 80)):
        outcome = Outcome.of(test, {"r0": (value,), "X": (1,), "Y": (1,)})
        assert judge.judge(outcome) is Verdict.FORBIDDEN
    short = Outcome.of(test, {"r0": (1, 1), "X": (1,), "Y": (1,)})
    assert judge.judge(short) is Verdict.FORBIDDEN


def test_an_outcome_with_a_value_of_another_size_is_forbidden() -> None:
    """Every oracle says so, also where an op takes the value (pure seed 3)."""
    asked = 0
    for index in (*range(8), 22, 29):
        test = generate("pure", 3, index)
        allowed = reference.allowed_outcomes(test, RFC, 300)
        outcome = next(iter(allowed.witnesses))
        judges = [allowed.judge, Explorer(test, RFC).judge, Axiomatic(test, RFC).judge]
        for name, value in outcome.values:
            for other in ((*value, *value[:1]), value[:-1]):
                values = tuple((n, other if n == name else v) for n, v in outcome.values)
                wrong = replace(outcome, values=values)
                assert [judge(wrong) for judge in judges] == [Verdict.FORBIDDEN] * 3, wrong
                assert Explorer(test, RFC).witness(wrong) is None
                asked += 1
    assert asked >= 50


def test_contents_that_are_no_elements_are_forbidden() -> None:
    """A queue holds tuples of ints, of the size of an element; a variable holds ints."""
    test = litmus("Q!1 || r0=X", queues={"Q": 2})
    made = next(iter(explorer.allowed_outcomes(test, RFC).witnesses))
    for name, value in (("Q", (1,)), ("Q", ((1, 1),)), ("Q", ((),)), ("X", ((0,),))):
        values = tuple((n, value if n == name else v) for n, v in made.values)
        assert Explorer(test, RFC).judge(replace(made, values=values)) is Verdict.FORBIDDEN


def test_an_outcome_of_another_test_is_refused() -> None:
    with pytest.raises(ValueError, match="another test"):
        Explorer(litmus("X=1"), RFC).judge(Outcome((("X", (1,)), ("Y", (1,)))))


def test_no_outcome_is_blocked_without_blocking_ops() -> None:
    test = litmus("X=1 || r0=X")
    judge = Explorer(test, RFC)
    for status in (Status.BLOCKED, Status.FAILED):
        assert judge.judge(Outcome((("X", (1,)),), status)) is Verdict.FORBIDDEN


def test_witnesses_are_in_the_unfoldings_own_events() -> None:
    test = litmus("X+=1 || X+=1 || r0=X")
    found = explorer.allowed_outcomes(test, RFC)
    events = unfold(test, RFC).events
    for a, b in combinations(found.witnesses, 2):
        assert a != b
    for witness in found.witnesses.values():
        assert sorted(map(str, witness)) == sorted(map(str, events))


def test_a_test_without_live_events_is_not_blocked() -> None:
    """There are no events, or all are dead from the start."""
    head = "litmusfuzz: 2\nname: nothing\nqueues:\n  Q: {dtype: int32, shape: [], capacity: 1}\n"
    dead = """graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {n: zero}
      condition:
        nodes:
          more: {op: Less, inputs: [i, n]}
        results: [more]
      body:
        nodes:
          one: {op: Const, dtype: int32, shape: [], value: 1}
          take: {op: QueueDequeueV2, resources: [Q]}
          next: {op: AddV2, inputs: [i, one]}
        results: [next]
"""
    for text in (head + "graphs:\n  main: {}\n", head + dead):
        test = loads(text).test
        for status, verdict in (
            (Status.COMPLETED, Verdict.ALLOWED),
            (Status.BLOCKED, Verdict.FORBIDDEN),
        ):
            assert Explorer(test, RFC).judge(Outcome((("Q", ()),), status)) is verdict
        (outcome,) = explorer.allowed_outcomes(test, RFC).witnesses
        assert outcome.status is Status.COMPLETED


def test_one_question_has_a_budget_of_its_own() -> None:
    """The explorer's own budget holds for all others."""
    test = litmus("X=1; r0=X || X=2; r1=X || X=3; r2=X")
    made = Explorer(test, RFC)
    whole = made.allowed_outcomes()
    part = made.allowed_outcomes(Budget(states=5))
    assert (whole.complete, part.complete) == (True, False)
    assert made.allowed_outcomes().witnesses.keys() == whole.witnesses.keys()
    least = next(iter(whole.witnesses))
    assert made.judge(least) is Verdict.ALLOWED
