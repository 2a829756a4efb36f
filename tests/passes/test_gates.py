"""Gates delay ops and have no other effect: checked with the oracle, without an execution."""

from __future__ import annotations

import pytest
from helpers import LITMUS, corpus_entry, for_each

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.model import MalformedTest
from litmusfuzz.corpus.outcome import Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.passes.gates import with_gates
from litmusfuzz.oracles.events import unfold
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, unsplit

UNSPLIT = unsplit(EXECUTOR)
HALVES = ("", "lock", "unlock")
EVENTS = 4
"""Each order leaves a different done queue, so that allowed sets grow quickly."""
LARGER = ("h-if-in-a-condition", "h-loop-in-a-branch")
"""Where a choice that is known beforehand lies behind one that data decides."""
SMALL = [
    path
    for path in LITMUS
    if path.stem != "h-outer-window-holds-inner"  # as long as all others together
    and not (test := corpus_entry(path).test).clusters
    and (path.stem in LARGER or len(unfold(test, UNSPLIT).events) <= EVENTS)
]


def allowed(test):
    return Explorer(test, UNSPLIT).allowed_outcomes().witnesses


def filled(made, gates):
    """The test with an initial element in each of these gates."""
    names = {gate.queue for gate in gates}
    queues = (replace(q, init=(0,)) if q.name in names else q for q in made.test.queues)
    return replace(made.test, queues=tuple(queues))


def original(test, made, outcome) -> Outcome:
    values = dict(outcome.values)
    names = zip(test.names, (*made.test.observe, *test.names[len(test.observe) :]), strict=True)
    return Outcome.of(test, {a: values[b] for a, b in names if b in values}, outcome.status)


@for_each("path", SMALL, every=3)
def test_open_gates_keep_the_allowed_set(path) -> None:
    test = corpus_entry(path).test
    made = with_gates(test)
    seen = {original(test, made, o) for o in allowed(filled(made, made.gates.values()))}
    assert seen == set(allowed(test))


def test_an_op_behind_a_closed_gate_does_not_run() -> None:
    test = litmus("X=1; r0=Y || Y=1")
    made = with_gates(test)
    for closed in made.gates:
        gates = [gate for instance, gate in made.gates.items() if instance != closed]
        for outcome in allowed(filled(made, gates)):
            done = {number for (number,) in dict(outcome.values)[made.gates[closed].done]}
            assert made.gates[closed].number not in done
            assert str(outcome.status) == "blocked"


def test_each_instance_has_a_gate_and_runs_of_one_graph_have_their_own() -> None:
    test = litmus("loop 2 { X+=1 }; lock M; r0=X; unlock M")
    instances = {(frame, half) for _, frame, _, half in with_gates(test).gates}
    assert len(with_gates(test).gates) == 5
    assert instances == {*((f"loop0[{i}]/", "") for i in (0, 1)), *(("", h) for h in HALVES)}
    path = next(path for path in LITMUS if path.stem == "runs-ordered")
    made = with_gates(corpus_entry(path).test)
    assert {run for run, *_ in made.gates} == {"a", "b"}
    assert len({gate.queue for gate in made.gates.values()}) == len(made.gates)
    assert len({run.graph for run in made.test.runs}) == 2


def test_each_device_has_a_done_queue() -> None:
    path = next(path for path in LITMUS if path.stem == "devices-window")
    made = with_gates(corpus_entry(path).test)
    device = {queue.name: queue.device for queue in made.test.queues}
    assert {device[gate.done] for gate in made.gates.values()} == {"cpu:0", "cpu:1"}
    for gate in made.gates.values():
        assert device[gate.queue] == device[gate.done]


def test_too_many_instances_are_refused() -> None:
    with pytest.raises(MalformedTest, match="more than 64"):
        with_gates(litmus("; ".join(["X=1"] * 64)))
