"""Arrays of many copies -> histogram of outcomes.

Works on all copies at once. Python runs once for each distinct outcome of a
batch, not for each execution.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.corpus.outcome import TORN, Outcome, Status, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest

_BATCH: Final = 1 << 21
"""Ints that are held before they are counted: 16 MiB."""
_HELD_BYTES: Final = 1 << 20
"""Of values that are held before they are made rows: what a core's cache takes."""

_INT64_SAFE: Final = float(1 << 62)


def one_lane(
    array: npt.NDArray[Any], *, whole: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Lane 0 of each value, and which values are torn.

    A value is torn if some lane differs from lane 0, bit by bit (-0.0 being
    0.0). A float that is no integer below 2**62 counts as torn as well: NaN,
    an infinity, a fraction. All values of a test are integers below 2**24 in
    every total order (semantics.md, section 1), so that no total order gives
    such a one, which is what torn says of a value.

    Parameters
    ----------
    array : (n, rows, *lanes) or (n,)
        n values of one type.
    whole : bool
        Whether values are whole matrices, without lanes.

    Returns
    -------
    lane : (n, k) int64
        k is the size of a model value; zero where torn. A copy: it shares no
        memory with `array`.
    torn : (n,) bool
    """
    count = len(array)
    rows = int(np.prod(array.shape[1:] if whole else array.shape[1:2]))
    values = array.reshape(count, rows, -1)
    bits = values.view(f"i{values.dtype.itemsize}")
    torn: npt.NDArray[np.bool_] = (bits != bits[:, :, :1]).any(axis=(1, 2))
    if values.dtype.kind == "f" and torn.any():
        with np.errstate(invalid="ignore"):  # a signaling NaN
            seen = values[torn] + 0.0  # -0.0 + 0.0 is 0.0
        bits = seen.view(f"i{values.dtype.itemsize}")
        torn[torn] = (bits != bits[:, :, :1]).any(axis=(1, 2))
    first = values[:, :, 0]
    if values.dtype.kind == "f":
        # Comparisons with NaN are false, and trunc(inf) is inf.
        sound = (np.abs(first) < _INT64_SAFE) & (np.trunc(first) == first)
        torn |= ~sound.all(axis=1)
        first = np.where(sound, first, 0)
    lane = first.astype(np.int64)
    lane[torn] = 0
    return lane, torn


@dataclass(frozen=True, slots=True)
class Batch:
    """What several executions of one test showed.

    Parameters
    ----------
    values : mapping of str to (n, *shape) array
        Each observed node, and each variable. The arrays may lie in a framework's
        memory.
    contents : mapping of str to ((n,) array, (total, *shape) array)
        Each queue: how many elements it holds in each execution, and all of them,
        one execution after the other.
    status : (n,) int array, or None
        Index in `STATUSES` of how each ended, or `DROPPED`; if None all are complete.
    absent : mapping of str to (n,) bool array
        Where a value is not there, since its run did not end.
    """

    values: Mapping[str, npt.NDArray[Any]]
    contents: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=dict)
    status: npt.NDArray[np.int64] | None = None
    absent: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


STATUSES: Final = (Status.COMPLETED, Status.BLOCKED, Status.FAILED)
DROPPED: Final = -1
"""An execution that had not begun in all of its runs: nothing is known of it."""
HELD_UP: Final = "several full queues beside sections of several runs, where it blocks"
"""Why nothing at all may be known of a test: all executions are dropped."""
_TORN, _ABSENT = 1, 2


class HistogramBuilder:
    """Counts outcomes of one test.

    An execution is a row of ints: its status; for each name whether it is torn or
    absent, and how many elements it has; then all elements, a queue's padded to its
    capacity.
    """

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        self._room = {queue.name: queue.capacity for queue in test.queues}
        self._widths = [
            test.size_of(test.type_of(name).shape) * self._room.get(name, 1) for name in test.names
        ]
        self._row = 1 + 2 * len(test.names) + sum(self._widths)
        self._held: dict[str, npt.NDArray[Any]] = {}
        self._room_held = self._filled = 0  # in executions
        self._pending: list[npt.NDArray[np.int64]] = []
        self._pending_rows = 0
        self._counts: Counter[bytes] = Counter()
        self.count = 0

    def add(self, batch: Batch) -> None:
        """Count some executions. Nothing of the batch is kept but copies."""
        if batch.status is not None or batch.absent or batch.contents:
            self.count += self._count(batch)
            return
        # A step is few executions, and NumPy's calls cost more than their work: what
        # several steps showed is looked at together.
        count = len(next(iter(batch.values.values())))
        self.count += count
        if not self._held:
            each = max(1, sum(array.nbytes for array in batch.values.values()) // count)
            self._room_held = _HELD_BYTES // each
            if self._room_held >= 2 * count:
                self._held = {
                    name: np.empty((self._room_held, *array.shape[1:]), array.dtype)
                    for name, array in batch.values.items()
                }
        if count > self._room_held // 2:
            self._count(batch)
            return
        if self._filled + count > self._room_held:
            self._release()
        for name, array in batch.values.items():
            self._held[name][self._filled : self._filled + count] = array
        self._filled += count

    def _release(self) -> None:
        """Count what is held."""
        if self._filled:
            self._count(Batch({name: array[: self._filled] for name, array in self._held.items()}))
            self._filled = 0

    def _count(self, batch: Batch) -> int:
        """Make rows of a batch; how many."""
        whole, names = self._test.whole, self._test.names
        flags, lengths, columns = [], [], []
        for name in names:
            if name in self._room:
                flag, length, column = self._queue(name, *batch.contents[name])
            else:
                column, torn = one_lane(batch.values[name], whole=whole)
                flag = torn.astype(np.int64)
                length = np.ones_like(flag)
            absent = batch.absent.get(name)
            if absent is not None:
                flag[absent] = _ABSENT
                column[absent] = 0
            flags.append(flag)
            lengths.append(length)
            columns.append(column)
        status = batch.status
        if status is None:
            status = np.zeros_like(flags[0])
        rows = np.concatenate(
            [status[:, None], np.stack(flags, axis=1), np.stack(lengths, axis=1), *columns], axis=1
        )
        failed = status == STATUSES.index(Status.FAILED)
        rows[failed, 1:] = 0  # nothing of it is compared
        rows = np.ascontiguousarray(rows[status != DROPPED])
        self._pending.append(rows)
        self._pending_rows += len(rows)
        if self._pending_rows * self._row >= _BATCH:
            self._flush()
        return len(rows)

    def _queue(
        self, name: str, sizes: npt.NDArray[Any], elements: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Whether contents are torn, how many elements, and these, padded."""
        size = self._test.size_of(self._test.type_of(name).shape)
        lane, torn = np.zeros((0, size), np.int64), np.zeros(0, bool)
        if len(elements):
            lane, torn = one_lane(elements, whole=self._test.whole)
        lengths = sizes.astype(np.int64)
        owner = np.repeat(np.arange(len(sizes)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        column = np.zeros((len(sizes), self._room[name], size), np.int64)
        column[owner, place] = lane
        flag = np.zeros(len(sizes), np.int64)
        flag[owner[torn]] = _TORN
        column[flag == _TORN] = 0
        lengths[flag == _TORN] = 0
        return flag, lengths, column.reshape(len(sizes), -1)

    def _flush(self) -> None:
        if self._pending:
            rows = np.concatenate(self._pending)
            # One opaque item a row; the loop over them is Counter's, in C.
            self._counts.update(rows.view(f"V{rows.itemsize * self._row}").ravel().tolist())
            self._pending, self._pending_rows = [], 0

    def histogram(self) -> dict[Outcome, int]:
        """How often each outcome was added, the most frequent first."""
        self._release()
        self._flush()
        return {self._outcome(row): count for row, count in self._counts.most_common()}

    def _outcome(self, row: bytes) -> Outcome:
        names = self._test.names
        code, *numbers = np.frombuffer(row, np.int64).tolist()
        status = STATUSES[code]
        if status is Status.FAILED:
            return Outcome.of(self._test, {}, status)
        flags, lengths = numbers[: len(names)], numbers[len(names) : 2 * len(names)]
        rest = numbers[2 * len(names) :]
        values: dict[str, Value] = {}
        for name, width, flag, length in zip(names, self._widths, flags, lengths, strict=True):
            if flag == _TORN:
                values[name] = TORN
            elif flag != _ABSENT:
                size = width // self._room.get(name, 1)
                parts = [tuple(rest[i * size : (i + 1) * size]) for i in range(length)]
                values[name] = tuple(parts) if name in self._room else parts[0]
            rest = rest[width:]
        return Outcome.of(self._test, values, status)
