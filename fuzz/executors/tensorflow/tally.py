"""Arrays of many copies -> histogram of outcomes.

Works on all copies at once. Python runs once for each distinct outcome of a
batch, not for each execution.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from corpus.outcome import TORN, Outcome, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from corpus.graph import LitmusTest

_BATCH: Final = 1 << 21
"""Ints that are held before they are counted: 16 MiB."""

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
    bits = values
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a signaling NaN
            values = values + 0.0  # -0.0 + 0.0 is 0.0
        bits = values.view(f"i{values.dtype.itemsize}")
    torn: npt.NDArray[np.bool_] = (bits != bits[:, :, :1]).any(axis=(1, 2))
    first = values[:, :, 0]
    if values.dtype.kind == "f":
        # Comparisons with NaN are false, and trunc(inf) is inf.
        sound = (np.abs(first) < _INT64_SAFE) & (np.trunc(first) == first)
        torn |= ~sound.all(axis=1)
        first = np.where(sound, first, 0)
    lane = first.astype(np.int64)
    lane[torn] = 0
    return lane, torn


class Tally:
    """Counts outcomes of one test."""

    def __init__(self, test: LitmusTest) -> None:
        self._test = test
        self._widths = [test.size_of(test.type_of(name).shape) for name in test.names]
        self._row = len(test.names) + sum(self._widths)
        self._pending: list[npt.NDArray[np.int64]] = []
        self._pending_rows = 0
        self._counts: Counter[bytes] = Counter()
        self.count = 0

    def add(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Count one step.

        Parameters
        ----------
        values : mapping of str to (copies, *shape) array
            For each name of `LitmusTest.names`, its value in each copy. Not
            kept: the arrays may lie in a framework's memory.
        """
        whole = self._test.whole
        columns = [one_lane(values[name], whole=whole) for name in self._test.names]
        torn = np.stack([torn for _, torn in columns], axis=1).astype(np.int64)
        rows = np.concatenate([torn, *(lane for lane, _ in columns)], axis=1)
        self._pending.append(rows)
        self._pending_rows += len(rows)
        self.count += len(rows)
        if self._pending_rows * self._row >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            rows = np.concatenate(self._pending)
            # One opaque item a row; the loop over them is Counter's, in C.
            self._counts.update(rows.view(f"V{rows.itemsize * self._row}").ravel().tolist())
            self._pending, self._pending_rows = [], 0

    def histogram(self) -> dict[Outcome, int]:
        """How often each outcome was added, the most frequent first."""
        self._flush()
        return {self._outcome(row): count for row, count in self._counts.most_common()}

    def _outcome(self, row: bytes) -> Outcome:
        names = self._test.names
        numbers = np.frombuffer(row, np.int64).tolist()
        torn, rest = numbers[: len(names)], numbers[len(names) :]
        values: dict[str, Value] = {}
        for name, width, is_torn in zip(names, self._widths, torn, strict=True):
            values[name] = TORN if is_torn else tuple(rest[:width])
            rest = rest[width:]
        return Outcome.of(self._test, values)
