"""Sections, queues, runs, conditionals and loops: exact sets worked out by hand."""

from __future__ import annotations

import pytest
from helpers import allowed_values

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.oracles.events import strictnesses, unfold
from litmusfuzz.oracles.model import EXECUTOR, RFC, Axiom
from litmusfuzz.oracles.reference import allowed_outcomes, orders_of


def outcomes(test, model=RFC) -> set[str]:
    allowed = allowed_outcomes(test, model)
    assert allowed.complete
    return set(map(str, allowed.witnesses))


# --- critical sections -----------------------------------------------------------------

SECTIONS = "lock M; r0=X; X=r0+1; unlock M || lock M; r1=X; X=r1+1; unlock M"


def test_rfc_the_illegal_order_of_a_section_is_not_there_and_the_legal_one_is() -> None:
    """RFC, rule 2: n0 f0, n0 f1, n1 f0, n1 f1 is illegal; n0 f0, n1 f0, n0 f1, n1 f1 fine."""
    orders = {
        tuple(e.node.name for e in order if e.access.value in "RW")
        for _, order in orders_of(litmus(SECTIONS), RFC)
    }
    assert orders == {("r0", "w0", "r1", "w1"), ("r1", "w1", "r0", "w0")}


def test_without_the_rule_the_sections_interleave() -> None:
    loose = replace(RFC, axioms=RFC.axioms - {Axiom.CRITICAL_SECTIONS})
    assert allowed_values(litmus(SECTIONS), RFC, "X") == {(2,)}
    assert allowed_values(litmus(SECTIONS), loose, "X") == {(1,), (2,)}


def test_other_ops_may_fall_in_between_and_other_mutexes_exclude_nobody() -> None:
    assert outcomes(litmus("lock M; r0=X; r1=X; unlock M || X=1")) == {
        "r0=0 r1=0 X=1",
        "r0=0 r1=1 X=1",
        "r0=1 r1=1 X=1",
    }
    other = SECTIONS.replace("|| lock M", "|| lock N").replace(
        "X=r1+1; unlock M", "X=r1+1; unlock N"
    )
    assert allowed_values(litmus(other), RFC, "X") == {(1,), (2,)}


def test_edges_of_a_member_neither_delay_the_acquire_nor_wait_for_the_release() -> None:
    """`after` of a member waits inside; a node after a member need not wait for the release."""
    text = """
litmusfuzz: 2
name: member-edges
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
mutexes:
  M: {}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    before: {op: AssignVariableOp, resources: [Y], inputs: [one]}
    member: {op: AssignVariableOp, resources: [X], inputs: [one], after: [before]}
    section: {op: CriticalSection, resources: [M], members: [member]}
    behind: {op: ReadVariableOp, resources: [X], after: [member]}
    whole: {op: ReadVariableOp, resources: [X], after: [section]}
"""
    test = loads(text).test
    orders = [[str(e) for e in order] for _, order in orders_of(test, RFC)]
    # The lock may be taken before what its member waits for,
    assert any(o.index("lock(M) section") < o.index("W(Y) before") for o in orders)
    # what waits for the member may run before the unlock,
    assert any(o.index("R(X) behind") < o.index("unlock(M) section") for o in orders)
    # and what waits for the section may not.
    assert all(o.index("R(X) whole") > o.index("unlock(M) section") for o in orders)


def test_two_locks_taken_in_opposite_orders_may_block() -> None:
    test = litmus(
        "lock M; r0=X; lock N; X=1; unlock N; unlock M || "
        "lock N; r1=X; lock M; X=2; unlock M; unlock N"
    )
    assert outcomes(test) == {
        "_status=blocked X=0",
        "r0=0 r1=1 X=2",
        "r0=2 r1=0 X=1",
    }


def test_a_lock_is_not_reentrant() -> None:
    test = litmus("lock M; r0=X; lock M; X=1; unlock M; unlock M")
    assert outcomes(test) == {"_status=blocked X=0"}


# --- queues ----------------------------------------------------------------------------


def test_elements_leave_in_the_order_of_their_enqueues() -> None:
    test = litmus("X=1; Q!1; Q!2 || r0=Q?; r1=Q?", queues={"Q": 2})
    assert outcomes(test) == {"r0=1 r1=2 X=1 Q=[]"}
    two = litmus("X=1; Q!1 || Q!2 || r0=Q?; r1=Q?", queues={"Q": 2})
    assert allowed_values(two, RFC, "r0", "r1") == {(1, 2), (2, 1)}


def test_a_dequeue_that_nothing_feeds_blocks_and_leaves_what_it_took() -> None:
    test = litmus("X=3; Q!1 || r0=Q?; r1=Q?", queues={"Q": 1})
    assert outcomes(test) == {"_status=blocked X=3 Q=[]"}


def test_a_full_queue_holds_its_producer() -> None:
    """With capacity 1, X=5 comes after the first dequeue; with capacity 2 it need not."""
    text = "Q!1; Q!2; X=5 || r0=X; r1=Q?"
    assert outcomes(litmus(text, queues={"Q": 1})) == {"r0=0 r1=1 X=5 Q=[2]"}
    assert outcomes(litmus(text, queues={"Q": 2})) == {
        "r0=0 r1=1 X=5 Q=[2]",
        "r0=5 r1=1 X=5 Q=[2]",
    }


def test_message_passing_through_a_queue() -> None:
    test = litmus("X=1; Q!7 || r0=Q?; r1=X", queues={"Q": 1})
    assert outcomes(test) == {"r0=7 r1=1 X=1 Q=[]"}


CLOSE = """
litmusfuzz: 2
name: closed
variables:
  X: {dtype: int32, shape: [], init: 0}
queues:
  Q: {dtype: int32, shape: [], capacity: 2, init: [4]}
graphs:
  main:
    close: {op: QueueCloseV2, resources: [Q]}
    first: {op: QueueDequeueV2, resources: [Q], after: [close]}
    size: {op: QueueSizeV2, resources: [Q], after: [first]}
    second: {op: QueueDequeueV2, resources: [Q], after: [SECOND]}
observe: [first, size]
"""


def test_dequeue_of_more_than_a_closed_queue_holds_fails_and_is_unspecified() -> None:
    test = loads(CLOSE.replace("SECOND", "size")).test
    allowed = allowed_outcomes(test, RFC)
    failed = Outcome((), Status.FAILED)
    assert set(allowed.witnesses) == {failed}
    assert allowed.judge(failed) is Verdict.UNSPECIFIED
    fine = loads(
        CLOSE.replace("    second: {op: QueueDequeueV2, resources: [Q], after: [SECOND]}\n", "")
    )
    assert outcomes(fine.test) == {"first=4 size=0 X=0 Q=[]"}
    assert allowed_outcomes(fine.test, RFC).judge(failed) is Verdict.FORBIDDEN


# --- runs ------------------------------------------------------------------------------


def test_runs_that_the_client_orders_are_ordered_and_others_not() -> None:
    from litmusfuzz.corpus.model import Run

    test = litmus("X=1 ||| r0=X")
    assert outcomes(test) == {"g1.r0=0 X=1", "g1.r0=1 X=1"}
    ordered = replace(test, client=(Run("a", "g0"), Run("b", "g1", ("a",))), observe=("b.r0",))
    assert outcomes(ordered) == {"b.r0=1 X=1"}


def test_a_run_after_a_blocked_run_never_starts() -> None:
    from litmusfuzz.corpus.model import Run

    test = litmus("r0=Q? ||| X=1; r1=X ||| r2=X", queues={"Q": 1})
    client = (Run("a", "g0"), Run("b", "g1", ("a",)), Run("c", "g2"))
    later = replace(test, client=client, observe=("a.r0", "b.r1", "c.r2"))
    assert outcomes(later) == {"_status=blocked c.r2=0 X=0 Q=[]"}


# --- conditionals and loops ------------------------------------------------------------

LOOP = """
litmusfuzz: 2
name: loop
variables:
  X: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    two: {op: Const, dtype: int32, shape: [], value: 2}
    one: {op: Const, dtype: int32, shape: [], value: 1}
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
          add: {op: AssignAddVariableOp, resources: [X], inputs: [step]AFTER}
          next: {op: AddV2, inputs: [i, step]}
          seen: {op: ReadVariableOp, resources: [X], after: [add]}
        results: [next, seen]
observe: [loop.last]
"""


def loop(parallel: int = 10, after: str = ""):
    return loads(LOOP.replace("PARALLEL", str(parallel)).replace("AFTER", after)).test


def test_devices_the_read_of_the_next_iteration_sees_the_add_of_this_one() -> None:
    """DEVICES: an edge from AssignAdd to the next iteration's Read, by a carried value."""
    ordered = loop(after=", after: [last]")
    assert outcomes(ordered) == {"loop.last=2 X=2"}


def test_iterations_are_ordered_only_through_carried_values() -> None:
    """Without that edge both updates may read before either writes."""
    assert outcomes(loop()) == {"loop.last=1 X=1", "loop.last=1 X=2", "loop.last=2 X=2"}
    assert outcomes(loop(), EXECUTOR) == {"loop.last=1 X=2", "loop.last=2 X=2"}


def test_parallel_iterations_order_the_executor_and_not_the_rfc() -> None:
    assert outcomes(loop(parallel=1), EXECUTOR) == {"loop.last=2 X=2"}
    assert outcomes(loop(parallel=1)) == outcomes(loop())


def test_a_carried_value_leaves_by_itself_and_the_run_waits_for_the_body() -> None:
    """The counter leaves when the condition is false; the updates may still run."""
    text = LOOP.replace("PARALLEL", "10").replace("AFTER", "")
    text = text.replace(
        "observe:", "    r0: {op: ReadVariableOp, resources: [X], after: [free]}\nobserve:"
    )
    text = text.replace(
        "    r0: {op", "    free: {op: Identity, inputs: [loop.i]}\n    r0: {op"
    ).replace("observe: [loop.last]", "observe: [free, r0]")
    seen = allowed_values(loads(text).test, EXECUTOR, "free", "r0", "X")
    assert seen == {(2, 0, 2), (2, 1, 2), (2, 2, 2)}


COND = """
litmusfuzz: 2
name: cond
variables:
  X: {dtype: int32, shape: [], init: 0}
  Y: {dtype: int32, shape: [], init: 0}
graphs:
  main:
    one: {op: Const, dtype: int32, shape: [], value: 1}
    write: {op: AssignVariableOp, resources: [X], inputs: [one]}
    flag: {op: ReadVariableOp, resources: [X]}
    high: {op: Equal, inputs: [flag, one]}
    pick:
      op: If
      inputs: [high]
      captures: {value: one}
      results: [taken]
      then:
        nodes:
          store: {op: AssignVariableOp, resources: [Y], inputs: [value]}
        results: [value]
      else:
        nodes:
          seen: {op: ReadVariableOp, resources: [X]}
        results: [seen]
    r0: {op: ReadVariableOp, resources: [Y], after: [pick]}
observe: [pick.taken, r0]
"""


def test_dead_instances_have_no_events_and_results_follow_the_predicate() -> None:
    test = loads(COND).test
    assert outcomes(test) == {
        # then: the result is there with the predicate, the store may come later
        "pick.taken=1 r0=0 X=1 Y=1",
        "pick.taken=1 r0=1 X=1 Y=1",
        # else: flag read 0; its own read may see the write or not
        "pick.taken=0 r0=0 X=1 Y=0",
        "pick.taken=1 r0=0 X=1 Y=0",
    }


@pytest.mark.parametrize("model", [RFC, EXECUTOR])
def test_a_stricter_executor_completes_nothing_new(model) -> None:
    """semantics.md, 3: only a blocked state can depend on strictness."""
    for test in (loop(), loop(parallel=2), loads(COND).test):
        loosest = set(map(str, allowed_outcomes(test, model).witnesses))
        choices = list(strictnesses(test, model, every=True))
        assert len(choices) > 3
        for strictness in choices:
            from litmusfuzz.oracles.reference import _Walk

            walk = _Walk(test, model, strictness)
            seen = {str(outcome) for outcome in walk.outcomes()}
            assert seen
            assert seen <= loosest


def test_strictness_alone_may_block() -> None:
    """The first iteration takes what the second puts: only one of both at a time blocks."""
    text = """
litmusfuzz: 2
name: strict
variables:
  X: {dtype: int32, shape: [], init: 0}
queues:
  Q: {dtype: int32, shape: [], capacity: 2, init: []}
graphs:
  main:
    zero: {op: Const, dtype: int32, shape: [], value: 0}
    two: {op: Const, dtype: int32, shape: [], value: 2}
    one: {op: Const, dtype: int32, shape: [], value: 1}
    loop:
      op: While
      inputs: [zero]
      carried: [i]
      captures: {limit: two, step: one}
      parallel_iterations: 10
      condition:
        nodes:
          more: {op: Less, inputs: [i, limit]}
        results: [more]
      body:
        nodes:
          first: {op: Equal, inputs: [i, limit]}
          other: {op: Sub, inputs: [step, i]}
          gate: {op: Less, inputs: [i, step]}
          pick:
            op: If
            inputs: [gate]
            captures: {value: step}
            results: [out]
            then:
              nodes:
                take: {op: QueueDequeueV2, resources: [Q]}
              results: [take]
            else:
              nodes:
                put: {op: QueueEnqueueV2, resources: [Q], inputs: [value]}
              results: [value]
          next: {op: AddV2, inputs: [i, step]}
        results: [next]
observe: [loop.i]
"""
    test = loads(text).test
    assert outcomes(test) == {"loop.i=2 X=0 Q=[]", "_status=blocked X=0 Q=[]"}
    # A model with the loosest loops would not block:
    assert {str(outcome) for outcome, _ in orders_of(test, RFC)} == {"loop.i=2 X=0 Q=[]"}


def test_unfolding_says_where_an_instance_is() -> None:
    events = [str(event) for event in unfold(loop(), EXECUTOR).events]
    assert events == [
        "U(X) loop[0]/add",
        "R(X) loop[0]/seen",
        "U(X) loop[1]/add",
        "R(X) loop[1]/seen",
    ]
