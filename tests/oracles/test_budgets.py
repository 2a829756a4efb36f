"""What the budgets of the oracles bound: everything, and past it the answer is "unknown"."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.textfile import load, loads
from litmusfuzz.oracles import events, explorer, reference
from litmusfuzz.oracles.axiomatic import Axiomatic
from litmusfuzz.oracles.errors import NoProgramOrder, TestTooLarge
from litmusfuzz.oracles.events import MAX_PARTS, strictnesses, unfold
from litmusfuzz.oracles.explorer import NEVER, Budget, Explorer, _Encoder
from litmusfuzz.oracles.model import EXECUTOR, GUARANTEES, RFC, Axiom, Model
from litmusfuzz.oracles.question import Budget as QuestionBudget
from litmusfuzz.oracles.reason import explain

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest

LIMIT_S = 60.0
"""Of the processor's time; each of these takes a second or two, and took minutes or for ever."""
QUEUE = "queues:\n  Q: {dtype: int32, capacity: 1}\n"


def a_test(nodes: str, more: str = QUEUE, variable: str = "{dtype: int32}") -> LitmusTest:
    return loads(
        f"litmusfuzz: 2\nname: t\nvariables:\n  X: {variable}\n{more}graphs:\n  main:\n{nodes}"
    ).test


def loop(number: int, carried: str, inside: str = "", bound: int = 3) -> str:
    """A loop that carries a counter and `carried`, and adds to X."""
    n = number
    add = f"u{n}: {{op: AssignAddVariableOp, resources: [X], inputs: [o{n}]}}"
    return (
        f"    i{n}: {{op: Const, dtype: int32, value: 0}}\n"
        f"    w{n}: {{op: While, inputs: [i{n}, {carried}], carried: [c{n}, v{n}], condition:"
        f" {{nodes: {{l{n}: {{op: Const, dtype: int32, value: {bound}}},"
        f" t{n}: {{op: Less, inputs: [c{n}, l{n}]}}}}, results: [t{n}]}},"
        f" body: {{nodes: {{o{n}: {{op: Const, dtype: int32, value: 1}},"
        f" a{n}: {{op: AddV2, inputs: [c{n}, o{n}]}}, {add}{inside}}},"
        f" results: [a{n}, v{n}]}}}}\n"
    )


TAKE = "    d: {op: QueueDequeueV2, resources: [Q]}\n"
ZERO = "    z: {op: Const, dtype: int32, value: 0}\n"


def chained(count: int, first: str, bound: int = 3) -> LitmusTest:
    names = [first, *(f"w{n}.v{n}" for n in range(count))]
    return a_test(ZERO + TAKE + "".join(loop(n, names[n], bound=bound) for n in range(count)))


def nested(depth: int) -> LitmusTest:
    inside = ""
    for n in range(depth):
        text = loop(n, f"y{n}", inside, bound=64).replace("\n    w", ", w").strip()
        inside = f", y{n}: {{op: Const, dtype: int32, value: 0}}, {text}"
    body = inside.removeprefix(", ")
    return loads(
        "litmusfuzz: 2\nname: t\nvariables: {X: {dtype: int32}}\n"
        f"queues: {{Q: {{dtype: int32, capacity: 1}}}}\ngraphs: {{main: {{{body}}}}}\n"
    ).test


def matrices(count: int) -> LitmusTest:
    nodes = ["    m0: {op: ReadVariableOp, resources: [X]}\n"]
    nodes += [f"    m{i}: {{op: MatMul, inputs: [m{i - 1}, m{i - 1}]}}\n" for i in range(1, count)]
    return a_test("".join(nodes), variable="{dtype: float32, shape: [1024, 1024]}")


def blocked(test: LitmusTest) -> Outcome:
    values = {v.name: test.initial(v) for v in test.variables}
    return Outcome.of(test, values | {q.name: () for q in test.queues}, Status.BLOCKED)


def all_choices(test: LitmusTest, model) -> set[Outcome]:
    """The allowed set, from every choice of strictness."""
    found: set[Outcome] = set()
    for strictness in strictnesses(test, model, every=True):
        part = _Encoder(test, model, strictness).load().all(1_000_000, 1 << 30, NEVER)
        assert part.complete
        for number in range(len(part)):
            status, values = part.outcome(number, test.names)
            found.add(Outcome(values, explorer._STATUSES[status]))
    return found


def choices(test: LitmusTest, *, every: bool) -> int:
    return sum(1 for _ in strictnesses(test, EXECUTOR, every=every))


def test_a_dequeue_beside_loops_takes_no_time() -> None:
    """It took 20 s and 1.4 GB: the product of the choices of four loops."""
    test = chained(4, "z")
    assert choices(test, every=False) == 1
    assert choices(test, every=True) == 16**4
    found = explorer.allowed_outcomes(test, EXECUTOR)
    assert found.complete
    assert found.states < 1_000
    assert {str(outcome) for outcome in found.witnesses} == {"_status=blocked X=12 Q=[]"}


SMALL = (
    ZERO + TAKE + loop(0, "z") + loop(1, "w0.v0", bound=1),
    ZERO + TAKE + loop(0, "d", bound=2),
    ZERO
    + TAKE
    + loop(0, "z", bound=2).replace("    i0:", "    e: {op: Identity, inputs: [d]}\n    i0:"),
    ZERO + loop(0, "z", ", p0: {op: QueueEnqueueV2, resources: [Q], inputs: [o0]}", bound=2),
    ZERO
    + loop(0, "z", ", p0: {op: QueueDequeueV2, resources: [Q]}", bound=1)
    + "    e: {op: QueueEnqueueV2, resources: [Q], inputs: [w0.v0]}\n",
    ZERO + TAKE + "    p: {op: Const, dtype: bool, value: 1}\n"
    "    b: {op: If, inputs: [p], captures: {k: d, y: z}, then: {nodes: {a:"
    " {op: AssignAddVariableOp, resources: [X], inputs: [y]}}, results: [k]}, else:"
    " {results: [k]}, results: [o]}\n" + loop(1, "b.o", bound=1),
)


@pytest.mark.parametrize("nodes", SMALL, ids=range(len(SMALL)))
def test_choices_that_are_left_out_do_not_matter(nodes: str) -> None:
    test = a_test(nodes)
    for model in (RFC, EXECUTOR):
        found = explorer.allowed_outcomes(test, model)
        assert found.complete
        assert set(found.witnesses) == all_choices(test, model)


def test_choices_that_are_left_out_do_not_matter_in_the_corpus() -> None:
    tried = fewer = 0
    for path in LITMUS:
        test = load(path).test
        if not {"loops", "conditionals"} & test.features or not (
            {"queues", "critical sections"} & test.features
        ):
            continue
        every = choices(test, every=True)
        if every > 64:
            continue
        tried += 1
        fewer += choices(test, every=False) < every
        assert set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses) == all_choices(
            test, EXECUTOR
        ), path
    assert tried > 20
    assert fewer


def test_choices_count_against_the_budget() -> None:
    test = chained(4, "d")
    assert choices(test, every=False) > 1_000
    start = time.process_time()
    found = explorer.allowed_outcomes(test, EXECUTOR, Budget(states=20_000))
    assert not found.complete
    judge = Explorer(test, EXECUTOR, Budget(states=20_000))
    forbidden = Outcome.of(test, {"X": (100,), "Q": ()}, Status.BLOCKED)
    assert judge.judge(forbidden) is Verdict.UNKNOWN
    assert Axiomatic(test, EXECUTOR, QuestionBudget(cases=2)).judge(forbidden) is Verdict.UNKNOWN
    assert len(judge._cores) < 500  # each takes memory
    assert time.process_time() - start < LIMIT_S


@pytest.mark.parametrize("test", [nested(6), matrices(400)], ids=["loops", "matrices"])
def test_a_test_that_unfolds_too_far_is_unknown(
    test: LitmusTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_PARTS", MAX_PARTS // 10)  # seconds each time
    start = time.process_time()
    for model in (RFC, EXECUTOR):
        judge = Explorer(test, model)
        found = judge.allowed_outcomes()
        assert not found.complete
        assert not found.witnesses
        assert judge.judge(blocked(test)) is Verdict.UNKNOWN
        assert judge.witness(blocked(test)) is None
        assert Axiomatic(test, model).judge(blocked(test)) is Verdict.UNKNOWN
        assert not reference.allowed_outcomes(test, model).complete
        assert explain(test, model, blocked(test)) is None
    assert time.process_time() - start < LIMIT_S


def test_an_unfolding_knows_its_size() -> None:
    small = unfold(litmus("X=1; Y=2 || r0=Y; r1=X"), RFC)
    assert len(small.events) + len(small.tokens) < small.parts < 200
    assert unfold(chained(2, "z"), RFC).parts < MAX_PARTS // 1_000


def test_a_large_state_counts_for_several() -> None:
    """Hundreds of events, or large matrices, make a state slow."""
    assert Explorer(litmus("X=1; Y=2 || r0=Y; r1=X"), RFC)._cores[0].slowness == 1
    assert Explorer(matrices(3), RFC)._cores[0].slowness > 1_000
    many = "".join(f"    r{i}: {{op: ReadVariableOp, resources: [X]}}\n" for i in range(1_000))
    assert Explorer(a_test(many), RFC)._cores[0].slowness > 5


def test_a_set_of_large_outcomes_counts_its_memory() -> None:
    """Outcomes of 1,000 rows take eight kilobytes each."""
    writes = "".join(
        f"    c{i}: {{op: Const, dtype: int32, shape: [1000], value: {i}}}\n"
        f"    w{i}: {{op: AssignVariableOp, resources: [X], inputs: [c{i}]}}\n"
        for i in range(8)
    )
    test = a_test(writes, "", "{dtype: int32, shape: [1000]}")
    assert explorer.allowed_outcomes(test, RFC).complete
    found = explorer.allowed_outcomes(test, RFC, Budget(memory_bytes=30_000))
    assert not found.complete
    assert len(found.witnesses) < 8


def test_a_reason_asks_a_limited_number_of_questions() -> None:
    """It took minutes: a question for each of 1,000 writes."""
    writes = "".join(
        f"    c{i}: {{op: Const, dtype: int32, value: {i}}}\n"
        f"    w{i}: {{op: AssignVariableOp, resources: [X], inputs: [c{i}]}}\n"
        for i in range(100)
    )
    test = a_test(writes)
    start = time.process_time()
    limited = explain(test, EXECUTOR, blocked(test), QuestionBudget(asked=1_500))
    assert limited is None or len(limited.goes_on) < 20
    assert explain(test, EXECUTOR, blocked(test), QuestionBudget(asked=50)) is None
    assert time.process_time() - start < LIMIT_S


def test_a_test_of_too_many_events_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core keeps the earlier events of each: 8 GB for 128,000."""
    names = "".join(f"    r{n}: {{op: ReadVariableOp, resources: [X]}}\n" for n in range(300))
    runs = "".join(f"  a{n}: {{graph: g}}\n" for n in range(60))
    head = "litmusfuzz: 2\nname: t\nvariables:\n  X: {dtype: int32}\n"
    test = loads(f"{head}graphs:\n  g:\n{names}client:\n{runs}").test
    start = time.process_time()
    assert not Explorer(test, RFC).allowed_outcomes().complete
    assert time.process_time() - start < LIMIT_S
    monkeypatch.setattr(events, "MAX_EVENTS", 18_000)
    assert len(unfold(test, RFC).events) == 18_000
    monkeypatch.setattr(events, "MAX_EVENTS", 17_999)
    with pytest.raises(TestTooLarge, match="more than 17999 events"):
        unfold(test, RFC)


CYCLE = """\
litmusfuzz: 2
name: cycle
variables:
  X: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
graphs:
  main:
    c: {op: Const, dtype: int32, shape: [], value: 1}
    r: {op: ReadVariableOp, resources: [X]}
    u: {op: AssignAddVariableOp, resources: [X], inputs: [c]}
    w: {op: AssignVariableOp, resources: [X], inputs: [r]}
    s: {op: CriticalSection, resources: [M], members: [r, w], after: [u]}
client:
  a: {graph: main, targets: [u]}
"""


def test_nodes_that_no_run_executes_close_no_cycle() -> None:
    """The section waits for an update behind its first member; the run leaves the section out."""
    test = loads(CYCLE).test
    model = GUARANTEES["sequential"]
    with pytest.raises(NoProgramOrder, match="cycle through a section"):
        unfold(test, Model("all nodes", model.axioms - {Axiom.FETCHES}))
    assert next(strictnesses(test, model)) == {}
    assert all(unfold(test, model, each).events for each in strictnesses(test, model))
