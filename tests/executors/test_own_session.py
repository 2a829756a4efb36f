"""`litmusfuzz.explore`: graphs of a user's own in every schedule, on real TensorFlow."""

from __future__ import annotations

import pytest

from litmusfuzz import Refused, explore
from litmusfuzz.corpus.schedule import switches
from litmusfuzz.fuzz.executors.protocol import Diverged

tf = pytest.importorskip("tensorflow")


def store_buffering():
    x, y = tf.Variable(0), tf.Variable(0)

    @tf.function
    def left():
        x.assign(1)
        return y.read_value()

    @tf.function
    def right():
        y.assign(1)
        return x.read_value()

    return left(), right()


def lost_update():
    count = tf.Variable([0.0, 0.0])

    @tf.function
    def step():
        count.assign(count + 1.0)

    step()
    step()
    return {"count": count}


def test_all_outcomes_of_functions_that_run_concurrently() -> None:
    with explore(store_buffering) as found:
        assert found.complete
        values = {seen.value for seen in found.outcomes}
        assert values == {(0, 0), (0, 1), (1, 0), (1, 1)}
        assert found.schedules == found.executions == 4
        for seen in found.outcomes:
            for _ in range(5):
                assert found.follow(seen.schedule).value == seen.value


def test_a_variable_is_observed_after_the_run_and_the_structure_is_the_users() -> None:
    with explore(lost_update) as found:
        assert found.complete
        assert sorted((seen.value["count"], seen.schedules) for seen in found.outcomes) == [
            ((1.0, 1.0), 2),
            ((2.0, 2.0), 2),
        ]


def test_an_effect_that_nobody_observes_runs() -> None:
    def build():
        x = tf.Variable(1)
        x.assign_add(2)
        return x.read_value(), x

    with explore(build) as found:
        assert {seen.value for seen in found.outcomes} == {(1, 3), (3, 3)}


def test_an_op_that_fails_is_an_outcome() -> None:
    def build():
        rows, index = tf.Variable([1, 2]), tf.Variable(0)
        index.assign(7)
        return tf.compat.v1.gather(rows, index.read_value())

    with explore(build) as found:
        assert {(seen.value, seen.error) for seen in found.outcomes} == {
            (1, ""),
            (None, "InvalidArgumentError"),
        }


def test_loops_and_functions_of_kernels_are_executed() -> None:
    """What a kernel executes is one event at most: no hang, and an outcome that is possible."""

    def build():
        total = tf.Variable(0)

        @tf.function(experimental_attributes={"_noinline": True})
        def apart():
            total.assign_add(10)

        @tf.function
        def loop():
            for _ in tf.range(2):
                total.assign_add(1)

        apart()
        loop()
        return total

    with explore(build) as found:
        assert found.complete
        assert [seen.value for seen in found.outcomes] == [12]


def test_a_level_with_locks_has_switches_inside_and_a_bound() -> None:
    with explore(lost_update, level="locks", preemptions=0) as none:
        assert all(not switches(seen.schedule) for seen in none.outcomes)
        points = {event.point for seen in none.outcomes for event in seen.schedule}
    assert any(point.endswith("lock") or "lock of" in point for point in points)
    with explore(lost_update, level="locks", limit=3) as cut:
        assert cut.executions == 3
        assert not cut.complete


def test_a_read_beside_a_scatter_is_torn_between_two_pages() -> None:
    size = 2048  # two pages

    def build():
        x = tf.Variable(tf.zeros([size]))
        x.scatter_update(tf.IndexedSlices(tf.ones([2]), tf.constant([0, size - 1])))
        return tf.raw_ops.ResourceGather(
            resource=x.handle, indices=tf.constant([0, size - 1]), dtype=tf.float32
        )

    with explore(build, level="locks") as by_locks:
        assert by_locks.complete
        assert {seen.value for seen in by_locks.outcomes} == {(0.0, 0.0), (1.0, 1.0)}
    with explore(build, level="pages", preemptions=1) as by_pages:
        assert by_pages.complete
        assert len(by_pages.outcomes) == 4
        (torn,) = (seen for seen in by_pages.outcomes if seen.value == (1.0, 0.0))
        assert len(switches(torn.schedule)) == 1
        assert any("page" in event.point for event in torn.schedule)
        assert by_pages.follow(torn.schedule).value == (1.0, 0.0)


def test_an_element_is_read_between_two_updates_of_it() -> None:
    def build():
        x = tf.Variable([0, 0])
        x.scatter_add(tf.IndexedSlices(tf.ones([2], tf.int32), tf.constant([1, 1])))
        return tf.raw_ops.ResourceGather(
            resource=x.handle, indices=tf.constant([1]), dtype=tf.int32
        )

    with explore(build, level="pages") as by_pages:
        assert by_pages.complete
        assert {seen.value for seen in by_pages.outcomes} == {(0,), (2,)}
    with explore(build, level="touches", preemptions=1) as by_touches:
        assert by_touches.complete
        (half,) = (seen for seen in by_touches.outcomes if seen.value == (1,))
        assert len(switches(half.schedule)) == 1
        assert by_touches.follow(half.schedule).value == (1,)


def test_where_an_execution_leaves_a_schedule_is_named() -> None:
    with explore(store_buffering) as found:
        schedule = found.outcomes[0].schedule
        with pytest.raises(Diverged, match=r"^after all 3 events of the schedule, there are more"):
            found.follow(schedule[:3])
        with pytest.raises(Diverged, match=r"^event 5|^the execution ends before event 5"):
            found.follow((*schedule, schedule[0]))


@pytest.mark.parametrize(
    ("build", "options", "error", "message"),
    [
        (
            store_buffering,
            {"level": "bytes"},
            ValueError,
            "level must be one of ops, locks, pa",
        ),
        (store_buffering, {"limit": 0}, ValueError, "limit must be at least 1, got 0"),
        (store_buffering, {"preemptions": -1}, ValueError, "preemptions must be at least 0"),
        (lambda: 7, {}, ValueError, "build returns tensors and variables, not int"),
        (tuple, {}, ValueError, "build returns nothing to observe"),
        (lambda: tf.Variable(0), {}, ValueError, "build makes no op that runs"),
        (
            lambda: tf.queue.FIFOQueue(1, [tf.int32], [()]).dequeue(),
            {},
            Refused,
            "QueueDequeueV2 in a graph of one's own: it may wait for ever",
        ),
    ],
)
def test_a_mistake_is_said_in_a_line(build, options, error, message: str) -> None:
    with pytest.raises(error) as raised:
        explore(build, **options)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
