"""Conversion of the core's rows of ints to outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.outcome import TORN, Status, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from litmusfuzz.corpus.model import LitmusTest

_STATUSES: Final = (Status.COMPLETED, Status.BLOCKED, Status.FAILED)
_UNSEEN, _VALUE, _TORN, _EMPTY = range(4)


class Rows:
    """Reader of the rows of one test, whose format is in ``fuzz/native/core/outcome.h``.

    Parameters
    ----------
    test : LitmusTest
    observed : sequence of str
        Observed nodes that the core knows.
    """

    def __init__(self, test: LitmusTest, observed: Sequence[str]) -> None:
        self._queues = frozenset(queue.name for queue in test.queues)
        names = (
            *observed,
            *(v.name for v in (*test.variables, *test.cells)),
            *(q.name for q in test.queues),
        )
        self._sizes = {name: test.size_of(test.type_of(name).shape) for name in names}

    def read(self, row: Iterable[int]) -> tuple[Status, dict[str, Value]]:
        """Return the status, and the values that the row has."""
        numbers = iter(row)
        status = _STATUSES[next(numbers)]
        values: dict[str, Value] = {}
        for name, size in self._sizes.items():
            if status is Status.FAILED:
                break
            sort = next(numbers)
            if sort == _TORN:
                values[name] = TORN
            elif sort == _EMPTY:
                values[name] = ()
            elif sort == _VALUE and name in self._queues:
                values[name] = tuple(
                    tuple(next(numbers) for _ in range(size)) for _ in range(next(numbers))
                )
            elif sort == _VALUE:
                values[name] = tuple(next(numbers) for _ in range(size))
        return status, values
