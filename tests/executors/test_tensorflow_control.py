"""TensorFlow under control: every schedule of ops, which is found, named, and repeated."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import closing
from functools import partial

import pytest
from helpers import LITMUS, LOCKED_OUT, corpus_entry, share_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.schedule import node_of, switches
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import loads, plain_of
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Diverged, Explorable, Noise, Refused, Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR, unsplit

CONTROLLED = configuration("tf", "controlled")
LOCKS = configuration("tf", "controlled_locks")
FINDINGS = LITMUS[0].parents[1] / "findings"
UNSPLIT = unsplit(EXECUTOR)
"""Under control op by op, an update happens at once."""
LIMIT = 20_000
SB = litmus("X=1; r0=Y || Y=1; r1=X")
DEADLOCK = corpus_entry(next(path for path in LITMUS if path.stem == "nested-three-ring")).test

WINDOW = "devices-window"
"""TensorFlow keeps the window of `parallel_iterations` on each device by itself."""
PARTS = 2
"""Parts of the corpus, so that several processes share it."""


def prepared(test, config=CONTROLLED):
    return closing(TensorFlowExecutor().prepare(test, config))


def allowed(test):
    return set(Explorer(test, UNSPLIT, loosest=True).allowed_outcomes().witnesses)


def at_once(test) -> bool:
    """True if TensorFlow does nothing at once that takes several events in the model."""
    return not any("Many" in node.op or "UpTo" in node.op for node in test.nodes)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_schedules_show_exactly_the_outcomes_that_need_no_split(part: int) -> None:
    """And few executions repeat a schedule."""
    traces = executions = equal = 0
    for path in share_of(LITMUS, 5)[part::PARTS]:
        test = corpus_entry(path).test
        try:
            executor = TensorFlowExecutor().prepare(test, CONTROLLED)
        except Refused:
            assert test.clusters, path.stem
            continue
        with closing(executor):
            found = executor.explore(LIMIT)
        assert found.complete, path.stem
        traces += sum(found.histogram.values())
        executions += found.executions
        if at_once(test) and path.stem != WINDOW:
            assert set(found.histogram) == allowed(test), path.stem
            equal += 1
        else:
            assert set(found.histogram) <= allowed(test), path.stem
    assert equal > 30
    assert executions <= 1.5 * traces


def test_an_op_that_is_locked_out_for_ever_races_all_the_same() -> None:
    """Where the search abandons an execution, too: two outcomes came in none that it tried."""
    test = loads(LOCKED_OUT).test
    with prepared(test) as executor:
        found = executor.explore(LIMIT)
    assert found.complete
    assert set(found.histogram) == allowed(test)


def test_a_schedule_is_followed_by_another_session() -> None:
    with prepared(SB) as executor:
        found = executor.explore(LIMIT)
    assert len(found.schedules) == 3
    with prepared(SB) as executor:
        for outcome, schedule in found.schedules.items():
            assert len(schedule) == 4
            for _ in range(25):
                assert executor.follow(schedule) == outcome


def test_the_place_where_an_execution_leaves_a_schedule_is_named() -> None:
    with prepared(SB) as executor:
        (schedule, *_) = executor.explore(1).schedules.values()
        late = (schedule[3], *schedule[:3])  # a read comes after a write
        with pytest.raises(Diverged) as error:
            executor.follow(late)
        assert str(error.value).startswith(
            f"event 1 of the schedule, {schedule[3]}, is not enabled; these are: "
        )
        with pytest.raises(Diverged, match=r"^after all 3 events of the schedule, there are"):
            executor.follow(schedule[:3])
        with pytest.raises(Diverged, match=r"^the execution ends before event 5, extra$"):
            executor.follow((*schedule, replace(schedule[0], node="extra")))


def test_a_test_with_loops_and_sections_is_repeated_by_name() -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "call-in-a-loop")).test
    with prepared(test) as executor:
        found = executor.explore(LIMIT)
    with prepared(test) as executor:
        for outcome, schedule in found.schedules.items():
            assert executor.follow(schedule) == outcome


def test_blocked_is_known_without_a_look_at_threads(monkeypatch) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import session

    def look() -> bool:
        raise AssertionError("a look at threads")

    monkeypatch.setattr(session, "stays_quiescent", look)
    monkeypatch.setattr(session, "other_threads_s", look)
    with prepared(DEADLOCK) as executor:
        found = executor.explore(LIMIT)
    assert found.complete
    statuses = {outcome.status for outcome in found.histogram}
    assert statuses == {Status.COMPLETED, Status.BLOCKED}


def test_an_op_that_fails_hides_no_other_order() -> None:
    test = corpus_entry(next(p for p in LITMUS if p.stem == "uninitialized-race")).test
    with prepared(test) as executor:
        found = executor.explore(LIMIT)
    assert set(found.histogram) == allowed(test)
    assert Status.FAILED in {outcome.status for outcome in found.histogram}


def test_a_run_that_fails_and_waits_for_a_lock_has_failed() -> None:
    """TensorFlow never ends it: without control such an execution is dropped."""
    test = corpus_entry(FINDINGS / "cluster-holds-up-a-failing-read.yaml").test
    with prepared(test) as executor:
        found = executor.explore(LIMIT)
    assert found.complete
    assert set(found.histogram) == allowed(test)


@pytest.mark.parametrize("looped", [True, False])
def test_a_system_that_does_not_repeat_is_said(monkeypatch, *, looped: bool) -> None:
    """The scheduler's error passes by TensorFlow, in whose thread it arises.

    No run of that execution is left: it would be one of the next execution's, without control.
    """
    from litmusfuzz.fuzz.executors.tensorflow import controlled, session

    names = ["c0/X", "c0/Y"]
    races, steer = [], session._Race.steer

    def noted(race, *given) -> None:
        races.append(race)
        steer(race, *given)

    monkeypatch.setattr(session._Race, "steer", noted)
    test = SB if looped else litmus("X=1; r0=Y || Y=1; r1=X || Q!1", queues={"Q": 1})
    with prepared(test) as executor:
        allowed_ = len(executor.explore(LIMIT).histogram)
        made = controlled.PreparedControlled._schedule

        def changing(self, chosen):
            self._steering.controller.watch(names[:1])
            return made(self, chosen)

        monkeypatch.setattr(controlled, "_EXPLORED", 1)
        monkeypatch.setattr(controlled.PreparedControlled, "_schedule", changing)
        with pytest.raises(Diverged, match=r"^in execution 2: other events are enabled"):
            executor.explore(LIMIT)
        assert all(race.wait(0) for race in races)
        assert bool(races) is not looped
        monkeypatch.undo()
        executor._steering.controller.watch([*names, "c0/Q"])
        assert len(executor.explore(LIMIT).histogram) == allowed_  # it can be used again


def test_a_run_that_says_late_that_it_has_returned_is_none_of_the_next_execution(
    monkeypatch,
) -> None:
    """A thread may pass on the result of a run, and come to the run's callback much later."""
    from litmusfuzz.fuzz.executors.tensorflow import controlled

    late, heard = [], []
    add = Future.add_done_callback
    test = litmus("X=1; r0=Y || Y=1; r1=X || Q!1", queues={"Q": 1})

    class Hearing:
        """The controller; what was held back comes as soon as an execution has begun."""

        def __init__(self, controller) -> None:
            self._controller = controller

        def __getattr__(self, name: str) -> object:
            return getattr(self._controller, name)

        def begin(self) -> None:
            self._controller.begin()
            heard.clear()
            while late:
                late.pop()()
            assert not heard

        def returned(self, run: int) -> None:
            heard.append(run)
            self._controller.returned(run)

    def hold(future, call) -> None:
        add(future, lambda done: late.append(partial(call, done)))

    with prepared(test) as executor:
        executor.sample("pos", 1, 0)
        steering = executor._steering
        controller = steering.controller
        steering.controller = Hearing(controller)
        with monkeypatch.context() as held:
            held.setattr(Future, "add_done_callback", hold)
            with steering:
                controller.run(controlled.scheduler("random", 0, controller, 1))
        expected = executor.schedule()
        assert late
        with steering:
            controller.run(controlled.scheduler("random", 0, controller, 1))
        assert executor.schedule() == expected
    assert not late


def test_an_outcome_that_cannot_be_read_is_not_passed_over(monkeypatch) -> None:
    from litmusfuzz.fuzz.executors.tensorflow.controlled import PreparedControlled

    monkeypatch.setattr(PreparedControlled, "_outcomes", lambda _: iter(()))
    with prepared(litmus("Q!1; r0=Q?", queues={"Q": 1})) as executor:
        found = executor.explore(LIMIT)
    assert not found.complete
    assert not found.histogram


def test_all_schedulers_stay_within_the_allowed_set_and_repeat_by_their_seed() -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "IRIW")).test
    with prepared(test) as executor:
        first = executor.run(320, Noise(), 7)
        again = executor.run(320, Noise(), 7)
        other = executor.run(320, Noise(), 8)
    assert first == again
    assert first != other
    assert sum(first.values()) == 320
    assert set(first) <= allowed(test)
    assert len(first) > 10


def test_a_sampled_schedule_leads_to_the_same_outcome_in_another_session() -> None:
    seen: Counter = Counter()
    with prepared(SB) as executor:
        assert isinstance(executor, Explorable)
        samples = [executor.sample(each, 4, 3) for each in TensorFlowExecutor.schedulers]
        assert samples[2] == executor.sample(TensorFlowExecutor.schedulers[2], 4, 3)
    with prepared(SB) as executor:
        for sample in samples:
            assert sample.executions == sum(sample.histogram.values()) == 4
            assert not sample.whole
            for outcome, schedule in sample.schedules.items():
                assert executor.follow(schedule) == outcome
                seen[outcome] += 1
    assert len(seen) > 1


def test_a_search_goes_on_where_it_has_stopped() -> None:
    test = corpus_entry(next(path for path in LITMUS if path.stem == "IRIW")).test
    with prepared(test) as executor:
        whole = executor.explore(LIMIT)
        search = executor.search()
        counts = [search.go_on(4).executions for _ in range(3)]
        assert counts == [4, 8, 12]
        assert not search.go_on(0).complete
        assert search.go_on(LIMIT) == whole


def test_the_first_schedules_have_the_fewest_preemptions() -> None:
    test = corpus_entry(FINDINGS / "first-assignment-writes-twice.yaml").test
    wrong = corpus_entry(FINDINGS / "first-assignment-writes-twice.yaml").finding.forbidden[0][0]
    with prepared(test, LOCKS) as executor:
        none, one, two = (executor.explore(LIMIT, bound) for bound in range(3))
    assert none.complete
    assert not none.whole
    assert wrong not in none.histogram
    assert len(switches(one.schedules[wrong])) == 1
    assert set(one.histogram) <= set(two.histogram)


def test_names_of_events_lead_to_the_events() -> None:
    """Whatever is around a node: a function, a loop, a section."""
    for stem in ("call-nested", "call-in-a-section", "h-section-in-a-loop"):
        test = corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
        with prepared(test) as executor:
            ((outcome, schedule),) = executor.sample("random", 1, 1).schedules.items()
            assert all(node_of(test, each) for each in schedule), stem
            assert not any("c0" in each.node.split("/") for each in schedule), stem
            assert executor.follow(schedule) == outcome


def test_a_worker_runs_under_control_and_others_have_nothing_of_it() -> None:
    """The worker is forked; another configuration gets a process of its own."""
    plain = configuration("tf", "plain")
    assert dict(plain.environment) != dict(CONTROLLED.environment)
    with closing(Worker("tf")) as worker:
        request = messages.Request(
            test=plain_of(SB), config="controlled", count=320, seed=1, noise={}
        )
        reply = worker.ask(request, 60.0, SB)
    assert len(reply.rows) == 3


def test_a_session_without_control_makes_no_executors_of_ours() -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    library = control_library.load()
    before = library.litmusfuzz_executors_made()
    with closing(TensorFlowExecutor().prepare(SB, configuration("tf", "plain"))) as executor:
        executor.run(8, Noise(copies=2, steps=2), 1)
    assert library.litmusfuzz_executors_made() == before
    with prepared(SB) as executor:
        executor.run(8, Noise(), 1)
    assert library.litmusfuzz_executors_made() > before


# --- locks -----------------------------------------------------------------------------


def test_a_switch_between_two_locks_shows_what_no_order_of_ops_does() -> None:
    """TensorFlow's first assignment writes twice (docs/tensorflow-findings.md)."""
    test = corpus_entry(FINDINGS / "first-assignment-writes-twice.yaml").test
    with prepared(test) as executor:
        by_ops = executor.explore(LIMIT)
    with prepared(test, LOCKS) as executor:
        by_locks = executor.explore(LIMIT)
    assert by_ops.complete
    assert by_locks.complete
    assert set(by_ops.histogram) <= allowed(test)
    (wrong,) = set(by_locks.histogram) - set(Explorer(test, EXECUTOR).allowed_outcomes().witnesses)
    with prepared(test, LOCKS) as executor:
        for _ in range(25):
            assert executor.follow(by_locks.schedules[wrong]) == wrong
    points = [each.point for each in by_locks.schedules[wrong]]
    assert {point.partition(" of ")[0] for point in points} == {"begin", "lock", "shared lock"}


def test_locks_change_no_outcome_of_whole_ops() -> None:
    for name in ("SB", "MP", "CoRR", "lost-update"):
        test = corpus_entry(next(path for path in LITMUS if path.stem == name)).test
        with prepared(test, LOCKS) as executor:
            found = executor.explore(LIMIT)
        assert found.complete, name
        assert set(found.histogram) == allowed(test), name


def test_locks_that_an_op_takes_only_when_it_first_runs_are_no_events() -> None:
    test = corpus_entry(FINDINGS / "cluster-optimizer-beside-scatter-nd.yaml").test
    with prepared(test, LOCKS) as executor:
        assert executor.explore(LIMIT).complete


INSIDE = ("controlled_locks", "controlled_pages", "controlled_touches")
"""Levels at which ops stop inside."""
WAITING = (
    *("fifo-two-producers", "full-queue-either-waiter", "section-increments"),
    *("accumulator-race", "accumulator-two-takes", "section-held-by-blocked"),
)
"""Tests whose queues, accumulators and mutexes ops wait for."""


@pytest.mark.parametrize("level", INSIDE)
@pytest.mark.parametrize("stem", WAITING)
def test_ops_that_may_wait_are_whole_at_each_level(stem: str, level: str) -> None:
    """So schedules without preemptions show what schedules of ops do."""
    test = corpus_entry(next(path for path in LITMUS if path.stem == stem)).test
    with prepared(test, configuration("tf", level)) as executor:
        found = executor.explore(LIMIT, preemptions=0)
        assert found.complete
        assert set(found.histogram) == allowed(test)
        on_variables = {each.name for each in test.nodes if "Variable" in each.op}
        for outcome, schedule in found.schedules.items():
            inside = {each.node for each in schedule if each.point != "begin"}
            assert inside <= on_variables
            assert executor.follow(schedule) == outcome


def test_a_race_beside_a_queue_is_searched_lock_by_lock() -> None:
    """It shows with the queue what it shows without (docs/tensorflow-findings.md)."""
    alone = corpus_entry(FINDINGS / "first-assignment-writes-twice.yaml").test
    beside = loads("""\
litmusfuzz: 2
name: first-assignment-beside-a-queue
variables:
  X: {dtype: float64, shape: [], initialized: false}
queues:
  Q: {dtype: float64, shape: [], capacity: 1}
graphs:
  main:
    c0: {op: Const, dtype: float64, shape: [], value: 1}
    w0: {op: AssignAddVariableOp, resources: [X], inputs: [c0]}
    c1: {op: Const, dtype: float64, shape: [], value: 1}
    w1: {op: AssignVariableOp, resources: [X], inputs: [c1]}
    t0: {op: QueueDequeueV2, resources: [Q]}
    p0: {op: QueueEnqueueV2, resources: [Q], inputs: [c0]}
""").test
    shown = []
    for test in (alone, beside):
        with prepared(test, LOCKS) as executor:
            found = executor.explore(LIMIT)
        assert found.complete
        shown.append({(each.status, dict(each.values).get("X")) for each in found.histogram})
        events = next(iter(found.schedules.values()))
        assert {e.point for e in events if e.node in ("t0", "p0")} <= {"begin"}
    assert shown[0] == shown[1]
    assert len(shown[0]) == 3


@pytest.mark.parametrize("level", INSIDE)
def test_blocked_is_known_where_ops_stop_inside(monkeypatch, level: str) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import session

    def look() -> bool:
        raise AssertionError("a look at threads")

    test = litmus("X+=1; Q!1; Q!2 || X+=2 || r0=X", queues={"Q": 1})
    with prepared(test, configuration("tf", level)) as executor:
        executor.sample("pos", 1, 0)  # executes without control first
        monkeypatch.setattr(session, "stays_quiescent", look)
        monkeypatch.setattr(session, "other_threads_s", look)
        found = executor.explore(LIMIT, preemptions=1)
    assert found.complete
    assert {outcome.status for outcome in found.histogram} == {Status.BLOCKED}
    assert found.executions > 1


def test_locks_that_are_not_found_make_the_configuration_unavailable(monkeypatch) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    class Other:
        """The library, in a TensorFlow with other locks."""

        def litmusfuzz_decide_locks(self, decide: int) -> bytes:
            return b"no absl::Mutex of the form 5Mutex4lockEv" if decide else b""

    monkeypatch.setattr(control_library, "load", Other)
    with pytest.raises(Unavailable, match=r"^control of locks of TensorFlow .*5Mutex4lockEv"):
        TensorFlowExecutor().prepare(SB, LOCKS)


# --- the library -----------------------------------------------------------------------


def test_no_compiler_makes_the_configuration_unavailable(monkeypatch, tmp_path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Unavailable, match=r"no C\+\+ compiler \(no-such-compiler\)"):
        control_library.built()


def test_another_tensorflow_makes_the_configuration_unavailable(monkeypatch, tmp_path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in control_library.FILES:
        (sources / name).write_text("")
    (sources / "tensorflow.cc").write_text('#include "tensorflow/core/no_such_header.h"\n')
    monkeypatch.setattr(control_library, "SOURCES", sources)
    with pytest.raises(Unavailable, match=r"no_such_header\.h: No such file"):
        control_library.built()
    assert not list((tmp_path / "litmusfuzz").glob("*.so*"))


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match=r"file/litmusfuzz \(Not a directory\)"):
        control_library.built()


def test_one_process_compiles_and_the_others_wait(monkeypatch, tmp_path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = []
    others = threading.Barrier(3)

    def build(compiler: str, flags: tuple[str, ...], path) -> None:
        compiled.append(path)
        path.write_bytes(b"")

    def ask() -> None:
        others.wait()
        control_library.built()

    monkeypatch.setattr(control_library, "_build", build)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(compiled) == 1


def test_the_key_has_the_source_and_the_compiler(monkeypatch, tmp_path) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import control_library

    def name() -> str:
        return control_library._key(control_library._compiler(), ("-O2",))

    first = name()
    assert name() == first
    for each in control_library.FILES:
        (tmp_path / each).write_bytes((control_library.SOURCES / each).read_bytes())
    monkeypatch.setattr(control_library, "SOURCES", tmp_path)
    assert name() == first
    (tmp_path / "hooks.h").write_text("// changed\n")
    assert name() != first
