"""Counts outcomes: builds a histogram from NumPy arrays of many executions.

It works on all copies at once, without TensorFlow. Python code runs once for each
distinct outcome of a batch, not for each execution.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litmusfuzz.corpus.ops import CountAttrs
from litmusfuzz.corpus.outcome import TORN, Outcome, Status, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest

_PENDING_INTS: Final = 1 << 21
"""Ints of pending rows before they are counted: 16 MiB."""
_BUFFER_BYTES: Final = 1 << 20
"""Bytes of buffered values before they are encoded as rows; fits a core's cache."""

_INT64_SAFE: Final = float(1 << 62)


def one_lane(
    array: npt.NDArray[Any], *, whole: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Lane 0 of each value, and which values are torn.

    A value is torn if some lane differs from lane 0, bit by bit (-0.0 being
    0.0). A float that is not an integer below 2**62 counts as torn as well: NaN, an
    infinity, a fraction. In every total order all values of a test are integers below
    2**24 (semantics.md, section 1), so that such a float is never allowed either.

    Parameters
    ----------
    array : (n, rows, *lanes) or (n,)
        n values of one type.
    whole : bool
        True if values are whole matrices, without lanes.

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
    torn: npt.NDArray[np.bool_] = np.zeros(count, bool)
    if bits.shape[2] > 1:
        # All lanes are alike if neighbours are; nearly always none differ.
        differ = bits[:, :, 1:] != bits[:, :, :-1]
        if differ.any():
            torn = differ.any(axis=(1, 2))
    if values.dtype.kind == "f" and torn.any():
        with np.errstate(invalid="ignore"):  # a signaling NaN
            seen = values[torn] + 0.0  # -0.0 + 0.0 is 0.0
        bits = seen.view(f"i{values.dtype.itemsize}")
        torn[torn] = (bits != bits[:, :, :1]).any(axis=(1, 2))
    first = values[:, :, 0]
    if values.dtype.kind == "f":
        # Comparisons with NaN are false, and trunc(inf) is inf.
        exact = (np.abs(first) < _INT64_SAFE) & (np.trunc(first) == first)
        torn |= ~exact.all(axis=1)
        first = np.where(exact, first, 0)
    lane = first.astype(np.int64)
    lane[torn] = 0
    return lane, torn


@dataclass(frozen=True, slots=True)
class Batch:
    """Values of several executions of one test.

    Parameters
    ----------
    values : mapping of str to (n, *shape) array
        Values of each observed node and each variable. The arrays may share memory with
        a framework.
    contents : mapping of str to ((n,) array, (total, *shape) array)
        For each queue: its number of elements in each execution, and the elements of
        all executions, concatenated.
    status : (n,) int array, or None
        Index in `STATUSES` for each execution, or `DROPPED`; if None all completed.
    absent : mapping of str to (n,) bool array
        True where a value is missing because its run did not end.
    empty : mapping of str to (n,) bool array
        True where a variable has no value.
    """

    values: Mapping[str, npt.NDArray[Any]]
    contents: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=dict)
    status: npt.NDArray[np.int64] | None = None
    absent: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    empty: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of executions."""
        if self.status is not None:
            return len(self.status)
        arrays = (*self.values.values(), *(sizes for sizes, _ in self.contents.values()))
        return len(arrays[0])

    @property
    def statuses(self) -> npt.NDArray[np.int64]:
        """The status of each execution."""
        return np.zeros(self.size, np.int64) if self.status is None else self.status

    @property
    def kinds(self) -> dict[str, tuple[Any, ...]]:
        """Dtypes and shapes of the values; batches in which they are equal can be joined."""
        found: dict[str, tuple[Any, ...]] = {
            name: (array.dtype, array.shape[1:]) for name, array in self.values.items()
        }
        for name, (_, elements) in self.contents.items():
            found[name] = (elements.dtype, elements.shape[1:])
        return found

    def copied(self) -> Batch:
        """A batch with arrays of its own."""
        return Batch(
            {name: array.copy() for name, array in self.values.items()},
            {name: (sizes.copy(), all_.copy()) for name, (sizes, all_) in self.contents.items()},
            None if self.status is None else self.status.copy(),
            {name: where.copy() for name, where in self.absent.items()},
            {name: where.copy() for name, where in self.empty.items()},
        )


def _joined(batches: Sequence[Batch]) -> Batch:
    """Batches of one test, one after another."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]

    def marks(of: str) -> dict[str, npt.NDArray[np.bool_]]:
        """Where values are missing; a batch that does not say so misses none."""
        named = {name: None for each in batches for name in getattr(each, of)}
        return {
            name: np.concatenate(
                [getattr(b, of).get(name, np.zeros(b.size, np.bool_)) for b in batches]
            )
            for name in named
        }

    return Batch(
        {name: np.concatenate([each.values[name] for each in batches]) for name in first.values},
        {
            name: (
                np.concatenate([each.contents[name][0] for each in batches]),
                np.concatenate([each.contents[name][1] for each in batches]),
            )
            for name in first.contents
        },
        np.concatenate([each.statuses for each in batches]),
        marks("absent"),
        marks("empty"),
    )


STATUSES: Final = (Status.COMPLETED, Status.BLOCKED, Status.FAILED)
DROPPED: Final = -1
"""Status of an execution that is not counted: some run that could begin had not."""
ALL_DROPPED: Final = (
    "several full queues and critical sections in several runs, or takes of gradients, that block"
)
"""Reason to refuse a test of which all executions are dropped."""
_TORN, _ABSENT, _EMPTY = 1, 2, 3


class HistogramBuilder:
    """Counts the outcomes of one test.

    Each execution is encoded as a row of ints: the status; for each name a flag (torn,
    absent, empty) and its number of elements; then all elements, a queue's padded to what it
    can hold.

    Parameters
    ----------
    test : LitmusTest

    Attributes
    ----------
    count : int
        Executions counted so far.
    """

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        # A dequeue of many that fails puts back what it has taken, above the capacity.
        self._padded_to = {queue.name: queue.capacity for queue in test.queues}
        for node in test.effects:
            if isinstance(node.attrs, CountAttrs) and node.resources[0] in self._padded_to:
                self._padded_to[node.resources[0]] += node.attrs.count
        self._widths = [
            test.size_of(test.type_of(name).shape) * self._padded_to.get(name, 1)
            for name in test.names
        ]
        self._row = 1 + 2 * len(test.names) + sum(self._widths)
        self._kept: list[Batch] = []
        self._kept_size = self._most_kept = 0  # in executions
        self._pending: list[npt.NDArray[np.int64]] = []
        self._pending_rows = 0
        self._counts: Counter[bytes] = Counter()
        self.count = 0

    def add(self, batch: Batch) -> None:
        """Count a batch of executions. The batch's arrays may be reused afterwards."""
        # A step has few executions, and a NumPy call costs more than its work: the batches of
        # several steps are encoded together.
        size = batch.size
        self.count += size if batch.status is None else int((batch.status != DROPPED).sum())
        if not self._kept:
            each = sum(array.nbytes for array in batch.values.values()) // max(1, size)
            self._most_kept = _BUFFER_BYTES // max(1, each)
        if 2 * size > self._most_kept:
            self._encode(batch)
            return
        if self._kept and (
            self._kept_size + size > self._most_kept or batch.kinds != self._kept[0].kinds
        ):
            self._encode_kept()
        self._kept.append(batch.copied())
        self._kept_size += size

    def _encode_kept(self) -> None:
        """Encode the batches that were kept."""
        if self._kept:
            self._encode(_joined(self._kept))
            self._kept, self._kept_size = [], 0

    def _encode(self, batch: Batch) -> None:
        """Encode a batch as rows."""
        whole, names = self._test.whole, self._test.names
        status = batch.statuses
        failed = status == STATUSES.index(Status.FAILED)
        # A failure cancels ops: of what failed or is dropped, queues may hold anything.
        compared = ~failed & (status != DROPPED)
        flags, lengths, columns = [], [], []
        for name in names:
            if name in self._padded_to:
                flag, length, column = self._queue(name, *batch.contents[name], compared)
            else:
                column, torn = one_lane(batch.values[name], whole=whole)
                flag = torn.astype(np.int64)
                length = np.ones_like(flag)
            for missing, mark in ((batch.absent, _ABSENT), (batch.empty, _EMPTY)):
                if (where := missing.get(name)) is not None:
                    flag[where] = mark
                    column[where] = 0
            flags.append(flag)
            lengths.append(length)
            columns.append(column)
        rows = np.concatenate(
            [status[:, None], np.stack(flags, axis=1), np.stack(lengths, axis=1), *columns], axis=1
        )
        rows[failed, 1:] = 0  # values of a failed execution are not compared
        rows = np.ascontiguousarray(rows[status != DROPPED])
        self._pending.append(rows)
        self._pending_rows += len(rows)
        if self._pending_rows * self._row >= _PENDING_INTS:
            self._flush()

    def _queue(
        self,
        name: str,
        sizes: npt.NDArray[Any],
        elements: npt.NDArray[Any],
        compared: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Flags (torn), numbers of elements, and padded elements, of executions that are compared.

        The others count as empty.
        """
        size = self._test.size_of(self._test.type_of(name).shape)
        lane, torn = np.zeros((0, size), np.int64), np.zeros(0, bool)
        if len(elements):
            lane, torn = one_lane(elements, whole=self._test.whole)
        lengths = sizes.astype(np.int64)
        owner = np.repeat(np.arange(len(sizes)), lengths)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        kept = compared[owner]
        owner, place, lane, torn = owner[kept], place[kept], lane[kept], torn[kept]
        lengths[~compared] = 0
        most = self._padded_to[name]
        if lengths.max(initial=0) > most:
            raise RuntimeError(f"queue {name} holds {lengths.max()} elements, more than {most}")
        column = np.zeros((len(sizes), most, size), np.int64)
        column[owner, place] = lane
        flag = np.zeros(len(sizes), np.int64)
        flag[owner[torn]] = _TORN
        column[flag == _TORN] = 0
        lengths[flag == _TORN] = 0
        return flag, lengths, column.reshape(len(sizes), -1)

    def _flush(self) -> None:
        if self._pending:
            rows = np.concatenate(self._pending)
            # One opaque item for each row, so that Counter loops over them in C.
            self._counts.update(rows.view(f"V{rows.itemsize * self._row}").ravel().tolist())
            self._pending, self._pending_rows = [], 0

    def histogram(self) -> dict[Outcome, int]:
        """Counts of the outcomes, the most frequent first."""
        self._encode_kept()
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
            elif flag == _EMPTY:
                values[name] = ()
            elif flag != _ABSENT:
                size = width // self._padded_to.get(name, 1)
                parts = [tuple(rest[i * size : (i + 1) * size]) for i in range(length)]
                values[name] = tuple(parts) if name in self._padded_to else parts[0]
            rest = rest[width:]
        return Outcome.of(self._test, values, status)
