"""TensorFlow under control: the parts into which ops divide their work, where they have threads."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import tensorflow as tf

from litmusfuzz import explore
from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.schedule import AFTER_PARTS, need, part_of
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.campaign.preemption_bounds import at_levels, coarser
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.protocol import Diverged, Noise
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from litmusfuzz.fuzz.executors.worker import Worker
from tests.executors.control_tests import GATHER_IN_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.corpus.schedule import Decision
    from litmusfuzz.fuzz.executors.protocol import Explored

LIMIT = 20_000
PARTS = {"part 1", "part 1.1", "part 2"}
"""Of four blocks the op gives away the second half, which is divided again, and then the second."""


def parts(schedule: Iterable[Decision]) -> set[str]:
    return {part_of(event) for event in schedule} - {""}


# --- an update in parts ------------------------------------------------------------------

ROWS, COLUMNS = 4, 24_000


def updated() -> tf.Tensor:
    """An assignment of all rows, beside a read of one element of each, the last row first."""
    x = tf.Variable(tf.zeros([ROWS, COLUMNS]))
    read = tf.raw_ops.ResourceGatherNd(
        resource=x.handle, indices=[[row, 0] for row in reversed(range(ROWS))], dtype=tf.float32
    )
    tf.raw_ops.ResourceStridedSliceAssign(
        ref=x.handle, begin=[0], end=[ROWS], strides=[1], value=tf.ones([ROWS, COLUMNS])
    )
    return read


def seen(level: Any, threads: int, preemptions: int | None) -> set[str]:
    """What the read returns; each schedule of an outcome is followed once more."""
    with explore(
        updated, level=level, preemptions=preemptions, limit=LIMIT, intra_op_threads=threads
    ) as found:
        assert found.complete
        for each in found.outcomes:
            assert parts(each.schedule) == (PARTS if threads > 1 else set())
            assert found.follow(each.schedule).value == each.value
        return {"".join(str(int(row)) for row in each.value) for each in found.outcomes}


IN_ORDER = {"0000", "0001", "0011", "0111", "1111"}
IN_PARTS = {"0000", "0001", "0011", "0101", "0111", "1101", "1111"}
"""Where nothing interrupts the op before it has done its own block, which is the first row."""


def test_one_thread_updates_the_pages_in_their_order() -> None:
    """A read that begins with the last page sees no row that is newer than an earlier one."""
    assert seen("pages", 1, preemptions=1) == IN_ORDER
    assert seen("locks", 1, preemptions=None) == {"0000", "1111"}


IN_A_PROCESS_WITH_THREADS = """\
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(4)
tf.zeros([1])  # makes the pool of the process, which all its sessions have
from tests.executors.test_tensorflow_control_parts import seen
print(*sorted(seen("pages", 1, preemptions=1)))
"""


def test_the_threads_of_the_process_do_no_part() -> None:
    """They would touch pages where nobody decides, and a search would be complete without that."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_WITH_THREADS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == sorted(IN_ORDER), done.stderr


def test_a_later_part_is_seen_before_an_earlier_one() -> None:
    assert seen("locks", 4, preemptions=None) == IN_PARTS
    assert seen("pages", 4, preemptions=0) == IN_PARTS


# --- a read in parts ---------------------------------------------------------------------


def prepared(test: LitmusTest, level: str, threads: int = 4):
    config = configuration("tf", f"control={level};intra_op_threads={threads}")
    return closing(TensorFlowExecutor().prepare(test, config))


def explored(level: str, threads: int, preemptions: int | None) -> Explored:
    with prepared(GATHER_IN_PARTS, level, threads) as executor:
        found = executor.explore(LIMIT, preemptions=preemptions)
    assert found.complete
    return found


def blocks(outcome: Outcome) -> str:
    """What the blocks of the read have seen."""
    read = dict(outcome.values)["r0"]
    assert isinstance(read, tuple)
    rows = "".join(map(str, read))
    assert all(len(set(rows[at : at + 13])) == 1 for at in range(0, 52, 13))
    return rows[::13]


def test_parts_of_a_read_see_different_values() -> None:
    assert set(map(blocks, explored("locks", 1, None).histogram)) == {"0000", "1111"}
    # A part that was given away by another one begins after it.
    by_locks = set(map(blocks, explored("locks", 4, None).histogram))
    assert by_locks == {"0000", "0001", "0011", "0100", "0101", "0111", "1111"}
    by_pages = explored("pages", 4, 1)
    assert set(map(blocks, by_pages.histogram)) == {
        *("0000", "0001", "0010", "0011", "0100", "0101", "0110", "0111"),
        *("1000", "1001", "1011", "1100", "1101", "1111"),
    }
    with prepared(GATHER_IN_PARTS, "pages") as executor:  # another session
        for outcome, schedule in by_pages.schedules.items():
            assert parts(schedule) == PARTS
            assert executor.follow(schedule) == outcome


def test_a_schedule_names_the_parts() -> None:
    found = explored("pages", 4, 1)
    schedule = next(s for s in found.schedules.values() if s[-1].point == AFTER_PARTS)
    assert need(GATHER_IN_PARTS, schedule).startswith("needs ")
    inside = [str(each) for each in schedule if part_of(each) or each.point == AFTER_PARTS]
    assert sorted(inside) == [
        "r0/after parts",
        "r0/part 1",
        "r0/part 1/part 1",
        "r0/part 1/part 1/read of page 0 of X",
        "r0/part 1/read of page 0 of X",
        "r0/part 2",
        "r0/part 2/read of page 0 of X",
    ]
    assert inside[-1] == "r0/after parts"
    assert inside.index("r0/part 1") < inside.index("r0/part 1/part 1")
    with prepared(GATHER_IN_PARTS, "pages") as executor:
        early = [each for each in schedule if each.point != AFTER_PARTS]
        place = next(i for i, each in enumerate(early) if part_of(each))
        with pytest.raises(Diverged, match="r0/after parts, is not enabled"):
            executor.follow([*early[:place], schedule[-1], *early[place:]])


def test_schedulers_sample_parts() -> None:
    with prepared(GATHER_IN_PARTS, "pages") as executor:
        found = executor.run(320, Noise(copies=1, shuffle=False, padding=0), 1)
    assert len({blocks(outcome) for outcome in found}) > 4


def test_a_worker_runs_parts() -> None:
    with closing(Worker("tf")) as worker:
        request = messages.Request(
            test=plain_of(GATHER_IN_PARTS),
            config="control=locks;intra_op_threads=4",
            count=64,
            seed=1,
            noise={},
        )
        reply = worker.ask(request, 600.0, GATHER_IN_PARTS)  # for a hang alone
    assert isinstance(reply, messages.Reply)
    assert len(reply.rows) > 2


# --- what has no parts -------------------------------------------------------------------


def test_small_ops_have_no_parts() -> None:
    test = litmus("X=1; r0=Y || Y=1; r1=X")
    found = []
    for threads in (1, 4):
        with prepared(test, "locks", threads) as executor:
            found.append(executor.explore(LIMIT))
    assert found[0] == found[1]


def test_an_op_that_is_one_event_has_no_parts() -> None:
    with pytest.raises(UnknownExecutor, match="an op is one event, with all its parts"):
        configuration("tf", "control=ops;intra_op_threads=4")
    found = coarser("tf", configuration("tf", "control=pages;intra_op_threads=4"))
    names = ["controlled", "intra_op_threads=4;control=locks"]
    assert [each.name for each in found] == names
    with pytest.raises(ValueError, match="level ops has no parts of ops, got intra_op_threads=2"):
        explore(updated, intra_op_threads=2)
    with pytest.raises(ValueError, match="intra_op_threads must be at least 1, got 0"):
        explore(updated, level="locks", intra_op_threads=0)


def test_threads_exclude_control_unless_they_are_put_back_to_plain() -> None:
    """Who names a configuration for its executor or threads is not given another one."""
    for name in ("executor_type=SINGLE_THREADED_EXECUTOR", "engine=pool", "inter_op_threads=16"):
        config = configuration("tf", name)
        with pytest.raises(ValueError, match="control"):
            TensorFlowExecutor.controlled(config, "ops")
        plain = TensorFlowExecutor.controlled(config, "ops", plain_threads=True)
        assert plain == configuration("tf", "controlled")
        assert at_levels("tf", config)["ops"] == plain
    assert not at_levels("tf", configuration("tf", "eager_threads"))
