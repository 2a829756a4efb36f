"""Loops of TensorFlow 1 (Enter, Merge, Switch, NextIteration, Exit), unrolled.

A frame becomes some copies of its operations, one for each iteration: `ITERATIONS` bodies, and the
condition once more. Of a frame without accesses only the results remain, with all that they depend
on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from litmusfuzz.corpus.struct import replace
from litmusfuzz.fuzz.programs.program import Operation, ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from litmusfuzz.fuzz.programs.program import Output

Frame = tuple[str, ...]
"""Names of frames, outermost first."""

ITERATIONS: Final = 3
"""Bodies of each loop: an order between iterations i and i+1, and between i and i+2, may differ."""
SUFFIX: Final = "\0"
"""Between an operation's name and its iterations."""


def plain(name: str) -> str:
    """The name of an operation without its iterations."""
    return name.partition(SUFFIX)[0]


def iterations(name: str) -> tuple[int, ...]:
    """The iterations, outermost first, of an unrolled operation."""
    text = name.partition(SUFFIX)[2]
    return tuple(map(int, text.split("."))) if text else ()


def _numbered(name: str, copies: tuple[int, ...]) -> str:
    return f"{name}{SUFFIX}{'.'.join(map(str, copies))}" if copies else name


def _bare(name: str) -> str:
    return name.removeprefix("Ref")


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Operations without cycles.

    `loop_switches` are those of loops: they choose nothing but whether a loop goes on.
    """

    operations: tuple[Operation, ...]
    loop_switches: frozenset[str]


def unrolled(
    operations: Sequence[Operation],
    touches: Callable[[Operation], bool],
) -> Unrolled:
    """The operations with their frames unrolled.

    Parameters
    ----------
    operations : sequence of Operation
        Of one graph or function, in any order.
    touches : callable
        True of an operation that touches a resource, or calls one that may.

    Raises
    ------
    ProgramError
        If the frames are not those of loops.
    """
    if not any(_bare(each.op) == "Enter" for each in operations):
        return Unrolled(tuple(operations), frozenset())
    by_name = {each.name: each for each in operations}
    frames = frames_of(operations, by_name)
    busy = {
        frame[: depth + 1]
        for each in operations
        if touches(each)
        for frame in [frames.get(each.name, ())]
        for depth in range(len(frame))
    }
    return _Unroller(by_name, frames, busy).all()  # no more copies than operations times 4^depth


def _sources(each: Operation) -> Iterable[str]:
    yield from (name for name, _ in each.inputs)
    yield from each.after


def frames_of(
    operations: Sequence[Operation], by_name: dict[str, Operation]
) -> dict[str, tuple[str, ...]]:
    """The frames around each operation, outermost first."""
    users: dict[str, list[Operation]] = defaultdict(list)
    waiting = {}
    for each in operations:
        sources = [
            name
            for name in _sources(each)
            if name in by_name and _bare(by_name[name].op) != "NextIteration"
        ]
        waiting[each.name] = len(sources)
        for name in sources:
            users[name].append(each)
    found: dict[str, tuple[str, ...]] = {}
    todo = [each for each in operations if not waiting[each.name]]
    while todo:
        each = todo.pop()
        around: tuple[str, ...] = ()
        for name in _sources(each):
            around = max(around, found.get(name, ()), key=len)
        kind = _bare(each.op)
        if kind == "Enter":
            around = (*around, each.frame)
        elif kind == "Exit":
            around = around[:-1]
        found[each.name] = around
        for user in users[each.name]:
            waiting[user.name] -= 1
            if not waiting[user.name]:
                todo.append(user)
    if len(found) != len(operations):
        name = next(each.name for each in operations if each.name not in found)
        raise ProgramError(f"{name}: is in a cycle without NextIteration")
    return found


class _Unroller:
    """Makes the copies.

    Parameters
    ----------
    by_name : dict
    frames : dict
        The frames around each operation, outermost first.
    busy : set
        Frames with an access in them.
    """

    def __init__(
        self,
        by_name: dict[str, Operation],
        frames: dict[str, tuple[str, ...]],
        busy: set[Frame],
    ) -> None:
        self.by_name = by_name
        self.frames = frames
        self.busy = busy
        self.switches: set[str] = set()
        self.result: list[Operation] = []
        self.users: dict[str, list[Operation]] = defaultdict(list)
        for each in by_name.values():
            for name in _sources(each):
                self.users[name].append(each)
        self.bodies = {frame: self.body(frame) for frame in busy}

    def all(self) -> Unrolled:
        """All operations."""
        for each in self.by_name.values():
            self.operation(each)
        self.windows()
        return Unrolled(tuple(self.result), frozenset(self.switches))

    def body(self, frame: Frame) -> set[str]:
        """Names of the operations that a loop runs only if its condition is true."""
        found: set[str] = set()
        todo = [
            each.name
            for each in self.by_name.values()
            if self.frames[each.name] == frame and self.is_loop_switch(each)
        ]
        while todo:
            for user in self.users[todo.pop()]:
                own = self.frames[user.name]
                back = own == frame and self.is_loop_merge(user)
                if user.name not in found and own[: len(frame)] == frame and not back:
                    found.add(user.name)
                    todo.append(user.name)
        return found

    def operation(self, each: Operation) -> None:
        """Add the copies of an operation."""
        frame = self.frames[each.name]
        if frame and frame not in self.busy:
            return
        depths = [self.bodies[frame[: depth + 1]] for depth in range(len(frame))]
        for copies in product(*[range(ITERATIONS + 1)] * len(frame)):
            last = (number == ITERATIONS for number in copies)
            if not any(ends and each.name in body for ends, body in zip(last, depths, strict=True)):
                self.copy(each, frame, copies)

    def copy(self, each: Operation, frame: Frame, copies: tuple[int, ...]) -> None:
        """Add the copy of an operation in one iteration of each loop around it."""
        kind = _bare(each.op)
        name = _numbered(each.name, copies)
        if kind == "Enter":
            if copies[-1] == 0:  # it runs once; constant ones are seen by all iterations
                self.add(each, name, each.inputs, each.after, copies[:-1])
        elif kind == "Exit" and self.frames[each.inputs[0][0]] not in self.busy:
            self.add(replace(each, op="Loop"), name, self.dependencies(each), (), copies)
        elif kind == "Exit":
            self.add(replace(each, op="Identity"), name, each.inputs, (), (*copies, ITERATIONS))
        elif kind == "Merge" and self.is_loop_merge(each):
            back = [self.is_back(source) for source, _ in each.inputs].index(True)
            if copies[-1]:
                before = (*copies[:-1], copies[-1] - 1)
                self.add(replace(each, op="Identity"), name, (each.inputs[back],), (), before)
            else:
                enter = each.inputs[1 - back]
                self.add(replace(each, op="Identity"), name, (enter,), (), copies)
        else:
            if self.is_loop_switch(each):
                self.switches.add(name)
            self.add(each, name, each.inputs, each.after, copies)

    def add(
        self,
        each: Operation,
        name: str,
        inputs: tuple[Output, ...],
        after: tuple[str, ...],
        copies: tuple[int, ...],
    ) -> None:
        """Add a copy that sees its sources from those iterations."""
        self.result.append(
            replace(
                each,
                name=name,
                inputs=tuple((self.seen(source, copies), number) for source, number in inputs),
                after=tuple(self.seen(source, copies) for source in after),
            )
        )

    def seen(self, source: str, copies: tuple[int, ...]) -> str:
        """Name of the copy of an operation that one in those iterations sees."""
        own = copies[: len(self.frames.get(source, ()))]
        if own and _bare(self.by_name[source].op) == "Enter":
            own = (*own[:-1], 0)
        return _numbered(source, own)

    def dependencies(self, exits: Operation) -> tuple[Output, ...]:
        """All that the result of a loop without accesses depends on, from outside of it."""
        frame = self.frames[exits.inputs[0][0]]
        found: dict[Output, None] = {}
        seen = {exits.name}
        todo = [exits.inputs[0][0]]
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            each = self.by_name[name]
            if _bare(each.op) == "Enter" and self.frames[name] == frame:
                found |= dict.fromkeys([*each.inputs, *((after, 0) for after in each.after)])
            else:
                todo += _sources(each)
        return tuple(found)

    def is_back(self, name: str) -> bool:
        """True for what a loop hands on to its next iteration."""
        return name in self.by_name and _bare(self.by_name[name].op) == "NextIteration"

    def is_loop_merge(self, each: Operation) -> bool:
        """True for the Merge of a carried value."""
        return _bare(each.op) == "Merge" and any(self.is_back(name) for name, _ in each.inputs)

    def is_loop_switch(self, each: Operation) -> bool:
        """True for the Switch of a carried value."""
        if _bare(each.op) != "Switch":
            return False
        predicate = self.by_name.get(each.inputs[1][0])
        while predicate is not None and predicate.op == "Identity":
            predicate = self.by_name.get(predicate.inputs[0][0])
        return predicate is not None and predicate.op == "LoopCond"

    def windows(self) -> None:
        """Order iterations i and i+k where only k may run at once (semantics.md, section 3)."""
        limits = {
            self.frames[each.name]: each.parallel_iterations
            for each in self.by_name.values()
            if _bare(each.op) == "Enter" and self.frames[each.name] in self.busy
        }
        for frame, limit in limits.items():
            if limit > ITERATIONS:
                continue
            groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
            for place, each in enumerate(self.result):
                own = self.frames.get(plain(each.name), ())
                if own[: len(frame)] == frame and _bare(each.op) != "Enter":
                    groups[iterations(each.name)[: len(frame)]].append(place)
            for copies, places in sorted(groups.items()):
                later = (*copies[:-1], copies[-1] + limit)
                end = f"{frame[-1]}/end{SUFFIX}{'.'.join(map(str, copies))}"
                if later in groups:
                    names = tuple(self.result[place].name for place in places)
                    self.result.append(Operation(end, "NoOp", after=names))
                    for place in groups[later]:
                        one = self.result[place]
                        self.result[place] = replace(one, after=(*one.after, end))
