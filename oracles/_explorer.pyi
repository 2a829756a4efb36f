"""Types of the explorer's C++ core, and of the count of orders.

Only `litmusfuzz.oracles.explorer` and `litmusfuzz.oracles.bounds` use them.
"""

from collections.abc import Callable

_Ints = list[int] | tuple[int, ...]
_Function = Callable[[tuple[tuple[int, ...], ...]], tuple[int, ...] | str | None] | None
_Op = tuple[str, bool, _Ints, int, tuple[int, int, int], _Function]
_Event = tuple[int, int, _Ints, _Ints, _Ints, _Ints, _Ints, list[tuple[int, bool]], int]
_Token = tuple[int, int, int, _Ints, _Ints, _Ints, _Ints]
_Pairs = tuple[tuple[str, object], ...]

class TooLarge(ArithmeticError): ...

class OutcomeSet:
    @property
    def states(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    def __len__(self) -> int: ...
    def outcome(
        self, number: int, names: tuple[str, ...]
    ) -> tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]: ...

class Oracle:
    def all(
        self,
        states: int,
        memory_bytes: int,
        plain: int,
        progress: Callable[[int], object] | None = None,
    ) -> OutcomeSet: ...
    def witness(
        self, outcome: _Pairs, status: int, states: int, memory_bytes: int, plain: int
    ) -> tuple[int, int, list[int]]: ...

def load(
    variables: list[tuple[int, ...]],
    queues: list[tuple[int, tuple[tuple[int, ...], ...]]],
    hidden: int,
    ops: list[_Op],
    events: list[_Event],
    tokens: list[_Token],
    observed: list[int],
    ended: list[int],
    fifo: bool,
    speculates: bool,
) -> Oracle: ...

_Gate = tuple[int, bool, int, int, bytes, bytes, bytes]

def count_orders(events: int, above: bytes, gates: list[_Gate], limit: int) -> int: ...
