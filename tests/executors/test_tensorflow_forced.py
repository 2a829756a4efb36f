"""Forced total orders on TensorFlow: every allowed order is followed, and no other."""

from __future__ import annotations

from contextlib import closing
from itertools import count

import pytest
from helpers import LITMUS, corpus_entry, share_of
from native.helpers_native import keys

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.commands.force_all import Limits, cover
from litmusfuzz.fuzz.executors.protocol import Diverged, EventKey, Refused
from litmusfuzz.fuzz.executors.table import configuration, unsupported
from litmusfuzz.fuzz.executors.tensorflow import forced
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.passes.gates import with_gates
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, RFC, unsplit

UNSPLIT = unsplit(EXECUTOR)
PLAIN = configuration("tf")
SLOW_S = 60.0
PARTS = 2
"""Parts of the corpus, so that several processes share it."""


def prepared(test):
    return closing(TensorFlowExecutor().prepare(test, PLAIN))


def orders(test, model=UNSPLIT):
    """The oracle's witnesses, by outcome."""
    witnesses = Explorer(test, model, loosest=True).allowed_outcomes().witnesses
    return {outcome: keys(order) for outcome, order in witnesses.items()}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_allowed_outcome_that_needs_no_split_is_reached(part: int) -> None:
    """Every test of the corpus within the executor's support."""
    forced_in: dict[str, int] = {}
    with closing(Worker("tf")) as worker:
        for path in share_of(LITMUS, 5)[part::PARTS]:
            test = corpus_entry(path).test
            found = cover(test, worker, PLAIN, Limits(timeout_s=SLOW_S))
            if lacking := TensorFlowExecutor.support.lacking(test):
                assert found.left_out == f"tf: {unsupported('tf', test, lacking)}"
                continue
            assert found.complete, path.stem
            kinds = set(test.features)
            if any(outcome.status is Status.BLOCKED for outcome in found.reached):
                kinds.add("blocked")
            for kind in kinds:
                forced_in[kind] = forced_in.get(kind, 0) + bool(found.reached)
    for kind in ("loops", "critical sections", "queues", "several runs", "blocked", "conditionals"):
        assert forced_in[kind], kind


def test_an_order_that_is_not_allowed_is_not_followed() -> None:
    test = litmus("X=1; r0=X || r1=X")
    ((first, second, third),) = [
        order for outcome, order in orders(test).items() if outcome.plain["r1"] == 1
    ][:1]
    with prepared(test) as executor:
        late = next(key for key in (first, second, third) if key.node == "r0")
        others = [key for key in (first, second, third) if key.node != "r0"]
        with pytest.raises(Diverged, match="after 0 of 3 ops: r0 cannot come now"):
            executor.force([late, *others], SLOW_S)
        with pytest.raises(Diverged, match="after all 2 ops: more can come"):
            executor.force(others, SLOW_S)
        # Afterwards it is as good as new.
        assert executor.force([others[0], late, *others[1:]], SLOW_S).plain["X"] == 1


def test_a_blocked_order_is_followed_and_the_remaining_ops_do_nothing() -> None:
    test = litmus("X=3; r0=Q? || Y=1", queues={"Q": 1})
    (order,) = orders(test).values()
    with prepared(test) as executor:
        for _ in range(3):  # each ends a session
            assert str(executor.force(order, SLOW_S)) == "_status=blocked X=3 Y=1 Q=[]"
        with pytest.raises(Diverged, match="after all 1 ops: more can come"):
            executor.force(order[:1], SLOW_S)


def test_orders_that_split_an_update_are_refused() -> None:
    test = litmus("X+=1 || X+=1")
    lost = next(order for o, order in orders(test, RFC).items() if o.plain == {"X": 1})
    with prepared(test) as executor:
        with pytest.raises(Diverged, match=r"the order splits update w\d"):
            executor.force(lost, SLOW_S)
        (whole,) = orders(test).values()
        assert executor.force(whole, SLOW_S).plain == {"X": 2}


def test_orders_that_separate_elements_of_a_many_op_are_refused() -> None:
    test = litmus("Q!1,2 || Q!9", queues={"Q": 4})
    by_contents = {str(outcome): order for outcome, order in orders(test).items()}
    with prepared(test) as executor:
        with pytest.raises(Diverged, match="at once elements that the order separates"):
            executor.force(by_contents["Q=[1,9,2]"], SLOW_S)
        assert str(executor.force(by_contents["Q=[9,1,2]"], SLOW_S)) == "Q=[9,1,2]"


def test_a_thread_that_sleeps_in_a_contended_mutex_is_not_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It looks quiescent, and nothing more is done than before; then its timer wakes it up."""
    really, before = forced._GatedSession.done, 0
    reads = count()

    def done(live: forced._GatedSession) -> int:
        nonlocal before
        if next(reads) % 2:
            before = really(live)
        return before

    monkeypatch.setattr(forced, "is_quiescent", lambda: True)
    monkeypatch.setattr(forced, "_POLLS", 0)
    monkeypatch.setattr(forced._GatedSession, "done", done)
    test = litmus("Q!1; Q!2 || r0=Q?; r1=Q?", queues={"Q": 1})
    with prepared(test) as executor:
        for outcome, order in orders(test).items():
            assert executor.force(order, SLOW_S) == outcome


def test_a_timeout_is_reported() -> None:
    test = litmus("X=1; r0=X")
    (order,) = orders(test).values()
    with prepared(test) as executor:
        with pytest.raises(TimeoutError, match="after 0 of 2 ops: not finished within 1e-09 s"):
            executor.force(order, 1e-9)
        assert executor.force(order, SLOW_S).plain == {"r0": 1, "X": 1}


def test_only_configurations_whose_ops_can_wait_are_forced() -> None:
    test = litmus("X=1")
    executor = TensorFlowExecutor().prepare(test, configuration("tf", "single_threaded"))
    with closing(executor), pytest.raises(Refused, match="in configuration single_threaded"):
        executor.force([EventKey("", "", "w0", "W", "X")], SLOW_S)


def test_more_instances_than_there_can_be_gates_are_refused() -> None:
    test = litmus("; ".join(["X=1"] * 70))
    with prepared(test) as executor, pytest.raises(Refused, match="a gate for each op instance"):
        executor.force([], SLOW_S)


# --- what if the gates were wrong -------------------------------------------------------


def test_exchanged_gates_of_two_ops_are_noticed(monkeypatch) -> None:
    """Opening one gate lets the other op run."""

    def confused(test):
        made = with_gates(test)
        (one, left), (two, right) = list(made.gates.items())[:2]
        gates = {**made.gates, one: replace(left, queue=right.queue)}
        return replace(made, gates={**gates, two: replace(right, queue=left.queue)})

    monkeypatch.setattr(forced, "with_gates", confused)
    test = litmus("X=1 || X=2")
    for order in orders(test).values():
        with prepared(test) as executor, pytest.raises(Diverged, match="was not the next"):
            executor.force(order, SLOW_S)


def test_a_gate_without_effect_is_noticed(monkeypatch) -> None:
    """The read begins with the run, the write when the client has asked for it.

    That takes some hundred microseconds; were the read later in every second try, all 20
    would miss it with 2**-20 < 1e-6.
    """

    def leaky(test):
        made = with_gates(test)
        (graph,) = made.test.graphs
        nodes = tuple(replace(n, after=()) if n.name == "r0" else n for n in graph.nodes)
        return replace(made, test=replace(made.test, graphs=(replace(graph, nodes=nodes),)))

    monkeypatch.setattr(forced, "with_gates", leaky)
    test = litmus("X=1 || r0=X")
    order = next(order for o, order in orders(test).items() if o.plain["r0"] == 1)
    noticed = 0
    with prepared(test) as executor:
        for _ in range(20):
            try:
                executor.force(order, SLOW_S)
            except Diverged:
                noticed += 1
    assert noticed > 0
