"""Necessary condition for a final value: some history of writes leaves it in its variable.

A history is a chain of writes of one variable, each but the first of which saw the one before
it. Where each write depends on one read of the variable at most, there are few histories that
differ in their writes, their last write and their value, though there are many orders: z3 would
refute these one by one. So the axiomatic oracle asks for histories where z3 gives up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.pure.definition import Fails, Undefined
from litmusfuzz.oracles.events import Access, Held, Pure, Result
from litmusfuzz.oracles.statement import INITIAL, Statement, is_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from litmusfuzz.oracles.terms import Ints


class _NotSimple(Exception):
    """A write is conditional, or depends on more than one read, or there are too many histories."""


def unreachable(case: Statement, most: int) -> bool:
    """True if no history leaves the question's final value in some variable.

    A variable with more than `most` histories is passed over.

    In every order in which all events are done, the final value of a variable is that of such a
    history: follow the reads from the last write to those that they saw. That goes back in
    the order, so no write occurs twice, and none that always comes after a read is before it.
    """
    if case.question.status is not Status.COMPLETED:
        return False
    for name in case.contents & case.initial.keys():
        wanted: Any = case.question.values.get(name)
        if wanted is None or not is_value(wanted) or name in case.empty:
            continue
        try:
            found = _histories(case, name, most)
        except _NotSimple:
            continue
        last = case._writes_before(None, name)  # those that may be the last
        if not any(value == wanted and write in last for value, write, _ in found):
            return True
    return False


_History = tuple[tuple[int, ...], int, int]
"""The value, the last write, and the set of all of them."""


def _histories(case: Statement, name: str, most: int) -> set[_History]:
    """All histories of a variable, and more: the order is looked at only where it always holds."""
    found: set[_History] = {(_known(case.initial[name]), INITIAL, 0)}
    steps: list[tuple[int, int, set[int], int, Callable[[Ints], Ints]]] = []
    for write in case._writers(name):
        reader, store = _dependence(case, write, name)
        if reader is None:
            found.add((_known(store(())), write, 1 << write))
            continue
        late = sum(1 << other for other, above in enumerate(case.above) if above >> reader & 1)
        sources = set(case._writes_before(reader, name))
        steps.append((write, 1 << write | late, sources, 1 << write, store))
    open_ended = list(found)
    while open_ended:
        value, last, writes = open_ended.pop()
        for write, excluded, sources, bit, store in steps:
            if last in sources and not writes & excluded:
                more = (_known(store(value)), write, writes | bit)
                if more not in found:
                    found.add(more)
                    open_ended.append(more)
        if len(found) > most:
            raise _NotSimple
    return found


def _dependence(
    case: Statement, write: int, name: str
) -> tuple[int | None, Callable[[Ints], Ints]]:
    """The read of the variable that a write depends on, if any, and what it stores then."""
    event = case.events[write]
    if (
        case.done[write] is not True
        or event.access not in (Access.WRITE, Access.UPDATE)
        or event.node.resources != (name,)
    ):
        raise _NotSimple
    saw = (write,) if event.access is Access.UPDATE else event.after
    unknown = {each for each in saw if not _is_known(case.seen[each])}
    open_ended, made_of = list(event.operands), set[int]()
    while open_ended:
        index = open_ended.pop()
        token, value = case.tokens[index], case.value[index]
        if index in made_of or (value is not None and _is_known([value])):
            continue
        made_of.add(index)
        if isinstance(token, Result):
            unknown.add(token.event)
        elif isinstance(token, Held):
            open_ended.append(token.token)
        elif isinstance(token, Pure) and token.node.definition.has_value:
            open_ended += token.inputs
        else:
            raise _NotSimple
    if len(unknown) > 1 or any(
        case.events[each].variables != (name,)
        or case.events[each].access not in (Access.READ, Access.UPDATE)
        or case.done[each] is not True
        for each in unknown
    ):
        raise _NotSimple
    reader = next(iter(unknown), None)

    def store(value: Ints) -> Ints:
        seen = [value if each == reader else (case.seen[each] or [()])[0] for each in saw]
        values = {index: case.value[index] or () for index in event.operands}
        for index in sorted(made_of):  # each after what it is made of
            values[index] = _made(case, index, values, value)
        operands = [values[index] for index in event.operands]
        return case.math.stored(event.node, seen, operands, case.row[name])[0]

    return reader, store


def _made(case: Statement, index: int, values: Mapping[int, Ints], value: Ints) -> Ints:
    """The value of a token, from those of other tokens and what the read saw."""
    token = case.tokens[index]
    if isinstance(token, Result):
        return case._gathered(case.events[token.event].node, value)
    if isinstance(token, Held):
        return values.get(token.token) or case.value[token.token] or ()
    assert isinstance(token, Pure)
    node = token.node
    inputs = [values.get(each) or case.value[each] or () for each in token.inputs]
    if node.definition.meaning is None:
        return case.math.pure(node, inputs, [case.test.type_of(n).shape for n in node.inputs])
    try:
        return case.test.call(node).evaluate(tuple(map(_known, inputs)))
    except (Fails, Undefined):
        raise _NotSimple from None


def _is_known(seen: list[Ints] | None) -> bool:
    return seen is not None and all(isinstance(each, int) for part in seen for each in part)


def _known(value: Ints) -> tuple[int, ...]:
    """The value, if it has no unknowns."""
    found = tuple(each for each in value if isinstance(each, int))
    if len(found) < len(value):
        raise _NotSimple
    return found
