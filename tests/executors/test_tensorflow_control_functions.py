"""TensorFlow under control: clusters that XLA compiles, and functions that kernels call.

A process reads XLA's flags once, so that clusters run in workers.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.schedule import BEGIN, kernel_of, need, node_of
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.commands.exploration import explore
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.fuzz.finding.chosen_clusters import with_chosen
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import GUARANTEES, RFC
from litmusfuzz.reports.schedule import schedule_table

if TYPE_CHECKING:
    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.commands.exploration import Exploration
    from litmusfuzz.fuzz.executors.protocol import Config

FINDINGS = LITMUS[0].parents[1] / "findings"
CLUSTERS = configuration("tf", "compiled=clusters;control=ops")
LIMIT = 20_000
PATIENCE_S = 300.0


def entry(stem: str) -> LitmusTest:
    return corpus_entry(next(path for path in LITMUS if path.stem == stem)).test


def explored(
    worker: Worker, test: LitmusTest, config: Config, switches: int | None = None
) -> Exploration:
    found = explore(test, worker, config, LIMIT, switches)
    assert not found.problem
    assert not found.stopped
    return found


def allowed_with_clusters(worker: Worker, test: LitmusTest) -> set[Outcome]:
    """What the semantics allows of the clusters that TensorFlow makes."""
    request = messages.Request(test=plain_of(test), task="clusters", config=CLUSTERS.name)
    reply = worker.ask(request, PATIENCE_S, test)
    assert isinstance(reply, messages.Reply)
    (chosen,) = messages.chosen_clusters(reply)
    assert chosen.clusters
    return set(Explorer(with_chosen(test, chosen), RFC).allowed_outcomes().witnesses)


def test_clusters_show_exactly_what_their_snapshots_and_writes_allow() -> None:
    """Sound clusters, and those of the finding, which show a write too late."""
    late = corpus_entry(FINDINGS / "cluster-writes-late.yaml").test
    tests = (
        late,
        litmus("X=1; r0=Y || Y=1; r1=X"),
        litmus("X=1; Y=2 || r0=Y; r1=X"),
        litmus("X+=1 || X+=2"),
    )
    with closing(Worker("tf")) as worker:
        for test in tests:
            found = explored(worker, test, CLUSTERS)
            assert set(found.found) == allowed_with_clusters(worker, test), str(test)
        assert len(found.found) > 1  # an update in a cluster is lost beside another
        shown = explored(worker, late, CLUSTERS).found
    (forbidden,) = set(shown) - set(Explorer(late, RFC).allowed_outcomes().witnesses)
    events = shown[forbidden].events
    kernels = [kernel_of(event) for event in events]
    assert {"_XlaCompile", "_XlaRun"} <= set(kernels)
    assert all(node_of(late, event) for event in events)
    assert any("_XlaRun" in line for line in schedule_table(late, events).lines())
    assert need(late, events) == "needs no switch: ops in this order"
    # Another process has other names of clusters.
    with closing(Worker("tf")) as worker:
        explored(worker, tests[1], CLUSTERS)
        request = messages.Request(
            test=plain_of(late), task="follow", config=CLUSTERS.name, schedule=list(events)
        )
        reply = worker.ask(request, PATIENCE_S, late)
    assert isinstance(reply, messages.Reply)
    assert set(messages.histogram(late, reply)) == {forbidden}


def test_a_cluster_that_waits_for_two_sections_blocks_whatever_the_schedule() -> None:
    test = corpus_entry(FINDINGS / "cluster-computes-from-two-sections.yaml").test
    with closing(Worker("tf")) as worker:
        found = explored(worker, test, CLUSTERS)
    assert {outcome.status for outcome in found.found} == {Status.BLOCKED}


def test_a_snapshot_is_torn_by_a_switch_between_two_pages_of_a_scatter() -> None:
    entry_ = corpus_entry(FINDINGS / "cluster-of-two-reads-beside-scatter-nd.yaml")
    config = configuration("tf", "compiled=clusters;min_cluster_size=2;control=pages")
    with closing(Worker("tf")) as worker:
        found = explored(worker, entry_.test, config, 1)
    assert found.last is not None
    assert {str(each) for each in found.found} == {"r0=0 X=1", "r0=1 X=1", "r0=torn X=1"}
    torn = next(each for each in found.found if each.torn)
    assert found.found[torn].preemptions == 1


def test_it_is_decided_when_a_cluster_is_compiled_in_the_background() -> None:
    """Before, its ops run one by one: what two clusters never show is shown then, and only then."""
    test = litmus("X=1; X=2 || r0=X; r1=X")
    with closing(Worker("tf")) as worker:
        at_once = explored(worker, test, CLUSTERS)
        late = explored(
            worker,
            test,
            configuration("tf", "compiled=clusters;lazy=true;in_background=true;control=ops"),
        )
    assert set(at_once.found) < set(late.found)
    new = next(iter(set(late.found) - set(at_once.found)))
    kernels = {event.node.partition("/")[0] for event in late.found[new].events}
    assert {".compiled", ".ops"} <= kernels
    assert set(late.found) <= set(Explorer(test, RFC).allowed_outcomes().witnesses)


@pytest.mark.parametrize(
    ("stem", "config", "outcomes"),
    [
        # Nothing orders the store of Y after the inner call, but automatic control dependencies.
        ("call-nested", "front_end=functional_kernels;control=ops", 2),
        # The kernel's iterations come one after another: the write comes before, between or after.
        ("h-loop-increments", "front_end=functional_kernels;control=ops", 4),
        ("call-nested", "front_end=function;control=ops", 1),
        # A tf.CriticalSection's lock is in a function of its own.
        ("section-full-queue", "front_end=critical_section;control=ops", 2),
        ("section-full-queue", "front_end=critical_section;control=locks", 2),
    ],
)
def test_the_ops_in_functions_decide(stem: str, config: str, outcomes: int) -> None:
    test = entry(stem)
    with closing(TensorFlowExecutor().prepare(test, configuration("tf", config))) as executor:
        found = executor.explore(LIMIT)
        assert found.complete
        assert len(found.histogram) == outcomes
        for outcome, schedule in found.schedules.items():
            assert executor.follow(schedule) == outcome
            assert all(node_of(test, event) for event in schedule)


@pytest.mark.parametrize(
    ("stem", "config"),
    [
        ("cl-2-2w", "compiled=region;control=ops"),
        ("cl-2-2w", "compiled=region;control=locks"),
        ("cl-2-2w", "compiled=region;rewrites=all;control=ops"),
        ("call-seen-by-another-run", "compiled=whole;front_end=function;control=ops"),
        ("call-seen-by-another-run", "compiled=whole;front_end=function;control=locks"),
    ],
)
def test_two_functions_that_xla_compiles_come_in_both_orders(stem: str, config: str) -> None:
    """Each is one event; where locks decide, it stops at those of its variables."""
    test, chosen = entry(stem), configuration("tf", config)
    with closing(TensorFlowExecutor().prepare(test, chosen)) as executor:
        found = executor.explore(LIMIT)
        assert found.complete
        allowed = Explorer(test, GUARANTEES[chosen.guarantees]).allowed_outcomes()
        assert set(found.histogram) == set(allowed.witnesses)
        assert len(found.histogram) == 2
        for outcome, schedule in found.schedules.items():
            assert executor.follow(schedule) == outcome
            assert {kernel_of(event) for event in schedule} == {"XlaLaunch"}
            assert all(node_of(test, event) for event in schedule)
            begun = [event for event in schedule if event.point == BEGIN]
            assert len(begun) == 2
            inside = [event.point for event in schedule if event.point != BEGIN]
            assert bool(inside) == config.endswith("locks")
            assert all(" of " in point for point in inside)  # XLA's own locks are no events


def test_a_region_is_one_event_beside_ops() -> None:
    """Three ops, of which XLA compiles one; all outcomes are allowed, and seen."""
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    config = configuration("tf", "compiled=region;control=ops")
    with closing(TensorFlowExecutor().prepare(test, config)) as executor:
        found = executor.explore(LIMIT)
    assert found.complete
    assert set(found.histogram) == set(Explorer(test, RFC).allowed_outcomes().witnesses)
    for schedule in found.schedules.values():
        assert [str(event) for event in schedule].count(".launch/r0") == 1


def test_what_xla_does_not_compile_is_refused_under_control() -> None:
    """It says so when the function first runs, which is inside the loop in C++."""
    test = entry("h-zero-trips")
    config = configuration("tf", "compiled=whole;front_end=function;control=ops")
    with (
        closing(TensorFlowExecutor().prepare(test, config)) as executor,
        pytest.raises(Refused, match="XLA does not compile it"),
    ):
        executor.explore(LIMIT)
