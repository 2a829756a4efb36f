"""Values and readiness of an unfolding as symbolic terms, given an outcome.

This is the part of the axiomatic oracle that needs no search.
`litmusfuzz.oracles.constraints` adds the constraints on the order.

References
----------
semantics.md, sections 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import BOOL, Kind, RowsAttrs
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.pure.definition import Fails, Undefined, shape_value
from litmusfuzz.oracles.events import (
    Access,
    Event,
    Finished,
    Gathered,
    Held,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Stack,
    Stored,
    parts_of,
)
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.oracles.terms import Arithmetic, Script, touched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.corpus.pure.definition import Call
    from litmusfuzz.oracles.events import Token, Unfolding
    from litmusfuzz.oracles.question import Question
    from litmusfuzz.oracles.terms import Bool, Ints

INITIAL: Final = -1
"""Index of the imaginary write of a variable's initial contents."""
READS: Final = (Access.READ, Access.UPDATE, Access.SNAPSHOT, Access.TAKE)
_WRITES: Final = (Access.WRITE, Access.UPDATE, Access.WRITE_BACK, Access.TAKE)


_RETURNING: Final = (Access.READ, Access.DEQUEUE, Access.SIZE, Access.TAKE)


class Undecided(Exception):
    """The oracle has no terms for a value of the test."""


@dataclass(frozen=True, slots=True)
class Application:
    """A pure op applied to operands that are not all known; an uninterpreted function.

    Parameters
    ----------
    call : Call
    operands : tuple of tuple of int or str
        Terms; each str is the name of an unknown.
    result : tuple of str
        Names of unknowns.
    fails : str
        Name of the unknown that is true if the op fails.
    """

    call: Call
    operands: tuple[Ints, ...]
    result: tuple[str, ...]
    fails: str


@dataclass(frozen=True, slots=True)
class _Time:
    """Earliest position of a token: after those events and those unknown positions."""

    events: int = 0  # a bit set
    others: frozenset[str] = frozenset()

    def __or__(self, other: _Time) -> _Time:
        return _Time(self.events | other.events, self.others | other.others)


class Statement:
    """One question about one unfolding, as far as it does not depend on the order.

    The constructor works in index order, since events and tokens depend on earlier ones
    only: first the orders that always hold (`above`), then terms for done, ready, read
    and stored. It declares unknowns only where some term needs them.

    Parameters
    ----------
    test, unfolding, question

    Attributes
    ----------
    script : Script
        The assertions so far.
    above : list of int
        For each event, a bit set of the events that come before it in every total
        order that contains it.
    done, dead : list of Bool
        State of each event in the end.
    ready : list of Bool
        State of each token in the end.
    value : list of Ints or None
        Value of each token; None if it has no relevant value.
    seen : list of list of Ints, or None
        For each event that reads: the value of each of its resources.
    stored : list of dict of str to Ints
        For each event that writes: the value it stores in a variable, if it does, or
        adds to a queue.
    applications : dict
        Calls of pure ops without terms, whose results are unknowns.

    Raises
    ------
    Undecided
        If a value whose shape depends on unknowns matters.
    """

    def __init__(self, test: LitmusTest, unfolding: Unfolding, question: Question) -> None:
        self.test = test
        self.unfolding = unfolding
        self.question = question
        self.events = unfolding.events
        self.tokens = unfolding.tokens
        self.script = Script()
        for index in range(len(self.events)):
            self.script.declare_integer(place_of(index))
        self.math = Arithmetic(self.script)
        self.applications: dict[tuple[Call, tuple[Ints, ...]], Application] = {}
        self.fails: dict[int, Bool] = {}  # by token of a pure op: whether it has no value
        steps = (each.step for each in test.accumulators)
        cells = (*test.variables, *test.cells, *steps)
        self.initial: dict[str, Ints] = {v.name: test.initial(v) for v in cells}
        self.size = {v.name: test.size_of(v.shape) for v in cells}
        self.row = {v.name: self.size[v.name] // v.shape[0] if v.shape else 1 for v in cells}
        self.empty = {v.name for v in test.variables if v.init is None}
        """Variables that have no value until they are written."""
        self.touching: dict[str, list[int]] = {}
        for index, event in enumerate(self.events):
            for name in event.variables:
                self.touching.setdefault(name, []).append(index)
        self._find_above()
        self._find_needed()
        self._note_given_values()
        self.value: list[Ints | None] = []
        self.ready: list[Bool] = []
        self.time: list[_Time] = []
        self.last_count = {
            each.count.name: self._last_count(each.count.name) for each in test.accumulators
        }
        """The final count of each accumulator, where the question depends on it."""
        self.done: list[Bool] = []
        self.dead: list[Bool] = []
        self.seen: list[list[Ints] | None] = []
        self.stored: list[dict[str, Ints]] = []
        for index, event in enumerate(self.events):
            used = (*event.needs, *event.operands, *(token for token, _ in event.guards))
            self._resolve(1 + max(used, default=-1))
            self._add_event(index, event)
        self._resolve(len(self.tokens))
        self._show()

    # --- orders that always hold --------------------------------------------------------------

    def _find_above(self) -> None:
        """Compute for each event the bit set of events that always come before it."""
        self.above: list[int] = []
        self.surely: list[int] = []  # by token: events that are done when it is ready
        for event in self.events:
            self._find_surely(1 + max(self._awaited(event), default=-1))
            above = 0
            for token in self._awaited(event):
                above |= self.surely[token]
            for other in event.after:
                above |= self.above[other] | 1 << other
            self.above.append(above)
        self._find_surely(len(self.tokens))

    def _awaited(self, event: Event) -> list[int]:
        """Tokens that must be ready before an event."""
        early = Axiom.PREDICATES not in self.unfolding.axioms
        return [*event.needs, *(() if early else (token for token, _ in event.guards))]

    def _find_surely(self, limit: int) -> None:
        for token in self.tokens[len(self.surely) : limit]:
            found = 0
            if isinstance(token, Pick):
                found = self.surely[token.then] & self.surely[token.other]
                found |= self.surely[token.predicate]
            elif isinstance(token, (Result, Seen, Stack, Finished)):
                for event in _events(token):
                    # The token does not wait for dead events.
                    if not (isinstance(token, Finished) and self.events[event].guards):
                        found |= self.above[event] | 1 << event
            else:
                for part in parts_of(token):
                    found |= self.surely[part]
            self.surely.append(found)

    # --- relevant values, and values given by the outcome -------------------------------------

    def _find_needed(self) -> None:
        """Compute the reads, tokens and resources whose values the question depends on."""
        self.needed: set[int] = set()  # tokens
        self.reads: set[int] = set()
        self.contents = {name for name in self.touching if name in self.question.values}
        tokens = [t for name, t, _ in self.unfolding.observed if name in self.question.values]
        tokens += [token for event in self.events for token, _ in event.guards]
        tokens += [token.predicate for token in self.tokens if isinstance(token, Pick)]
        tokens += [check.token for check in self.unfolding.checks]
        # Whether such a read fails depends on the writes before it, even if nobody needs its value.
        for number, each in enumerate(self.events):
            if each.access in (Access.JOIN, Access.TAKE):  # the count lets a take go on
                tokens += each.operands
            if each.access is Access.TAKE or (
                each.access in READS and not self.empty.isdisjoint(each.variables)
            ):
                self.reads.add(number)
                self.contents.update(each.variables)
        names = list(self.contents)
        while tokens or names:
            if names:
                found, events = self._made_of(names.pop())
                tokens += found
            else:
                index = tokens.pop()
                if index in self.needed:
                    continue
                self.needed.add(index)
                token = self.tokens[index]
                tokens += _operands(token)
                events = [] if isinstance(token, Finished) else [*_events(token)]
            for event in events:
                self.reads.add(event)
                for name in self.events[event].variables:
                    if name not in self.contents:
                        self.contents.add(name)
                        names.append(name)

    def _made_of(self, name: str) -> tuple[list[int], list[int]]:
        """Return the tokens and reads that a resource's contents depend on."""
        tokens: list[int] = []
        reads: list[int] = []
        for index in self.touching.get(name, ()):
            event = self.events[index]
            if event.access is Access.WRITE_BACK:
                tokens += _written(event, name)
            elif event.access in (Access.WRITE, Access.UPDATE, Access.ENQUEUE):
                tokens += event.operands
                reads += event.after if event.access is Access.WRITE else ()
                reads += [index] if event.access is Access.UPDATE else ()
        return tokens, reads

    def _note_given_values(self) -> None:
        """Record the results of reads and dequeues that the outcome gives."""
        self.given: dict[tuple[int, int], dict[int, int]] = {}
        for name, index, _ in self.unfolding.observed:
            wanted: Any = self.question.values.get(name)
            if wanted is None:
                continue
            token = self.tokens[index]
            gathers: Node | None = None
            while isinstance(token, (Held, Gathered)) or (
                isinstance(token, Pure) and token.node.op == "Identity"
            ):
                gathers = token.node if isinstance(token, Gathered) else gathers
                token = self.tokens[_operands(token)[0]]
            if isinstance(token, Stack):
                for event, each in zip(token.events, wanted, strict=False):
                    self.given[event, 0] = {0: each}
            elif isinstance(token, (Result, Seen)):
                if isinstance(token, Result):
                    gathers = self.events[token.event].node
                places: Sequence[int] = range(len(wanted))
                if gathers is not None and isinstance(gathers.attrs, RowsAttrs):
                    places = touched(gathers, self.row[gathers.resources[0]])
                place = token.place if isinstance(token, Seen) else 0
                self.given[token.event, place] = dict(zip(places, wanted, strict=False))

    def _last_count(self, name: str) -> Ints | None:
        given: Any = self.question.values.get(name)
        if is_value(given):
            return tuple(given)
        if self.question.status is not Status.BLOCKED:
            return None
        # Whether a take that waits could go on depends on it.
        return (self.script.integer(),) if name in self.contents else None

    def _unknown(self, index: int, place: int, size: int) -> Ints:
        """Return the value that an event saw at `place`: given by the outcome, or unknowns."""
        given = self.given.get((index, place), {})
        return tuple(given[i] if i in given else self.script.integer() for i in range(size))

    # --- terms ------------------------------------------------------------------------------

    def _resolve(self, limit: int) -> None:
        """Add terms for the tokens below `limit`."""
        for index in range(len(self.value), limit):
            token = self.tokens[index]
            self.value.append(self._value(index, token) if index in self.needed else None)
            ready, time = self._readiness(token)
            self.ready.append(ready)
            self.time.append(time)

    def _known(self, token: int) -> Ints:
        value = self.value[token]
        assert value is not None, self.tokens[token]
        return value

    def _holds(self, token: int) -> Bool:
        """Return the condition that a predicate is true."""
        return self.script.neg(self.script.equal(self._known(token)[0], 0))

    def _as_wanted(self, token: int, *, wanted: bool) -> Bool:
        holds = self._holds(token)
        return holds if wanted else self.script.neg(holds)

    def _value(self, index: int, token: Token) -> Ints | None:
        """Return a token's value as a term over the values of its parts."""
        if isinstance(token, Result):
            return self._returned(token.event)
        if isinstance(token, Known):
            return token.value
        if isinstance(token, Seen):
            seen = self.seen[token.event]
            assert seen is not None
            return seen[token.place]
        if isinstance(token, Gathered):
            return self._gathered(token.node, self._known(token.token))
        if isinstance(token, Stored):
            saw = [self._known(part) for part in token.seen]
            return self._made(token.node, saw, token.operands)[token.place]
        if isinstance(token, Stack):
            return tuple(each for event in token.events for each in self._returned(event) or ())
        if isinstance(token, Held):
            return self.value[token.token]
        if isinstance(token, Pick):
            then, other = self.value[token.then], self.value[token.other]
            holds = self._holds(token.predicate)
            if then is None or other is None or isinstance(holds, bool):
                return then if holds is True else other
            return tuple(self.script.choose(holds, a, b) for a, b in zip(then, other, strict=True))
        if isinstance(token, Pure) and token.node.definition.constant:
            return self.test.constant(token.node)
        if isinstance(token, Pure) and token.node.definition.meaning is not None:
            return self._applied(index, token.node, tuple(map(self._known, token.inputs)))
        if isinstance(token, Pure) and token.node.definition.has_value:
            shapes = [self.test.type_of(name).shape for name in token.node.inputs]
            return self.math.pure(token.node, [self._known(t) for t in token.inputs], shapes)
        return None

    def _applied(self, index: int, node: Node, operands: tuple[Ints, ...]) -> Ints:
        """Return the result of a pure op that the op table defines: its value, or unknowns.

        Notes whether the op of the token `index` fails.
        """
        call = self.test.call(node)
        # Known whatever the operand is, and the shapes of other results may rest on it.
        fixed = shape_value(node.op, call.inputs[0]) if call.inputs else None
        if fixed is not None:
            return fixed
        given = [tuple(v for v in each if isinstance(v, int)) for each in operands]
        if list(map(len, given)) == list(map(len, operands)):
            try:
                return call.evaluate(tuple(given))
            except Fails:
                self.fails[index] = True
                if call.result is not None and not call.result.dynamic:
                    return tuple(self.script.integer() for _ in range(call.result.size))
            except Undefined:
                pass  # no order computes it (see `Arithmetic`): it stands in a branch not taken
        kinds = (*call.inputs, call.result)
        if any(kind is None or kind.dynamic for kind in kinds):
            raise Undecided
        assert call.result is not None
        s = self.script
        named = tuple(tuple(s.name_of(v) for v in each) for each in operands)
        found = self.applications.get((call, named))
        if found is None:
            most = 1 if call.result.dtype == BOOL else None
            result = tuple(s.integer(most) for _ in range(call.result.size))
            found = Application(call, named, result, s.boolean())
            self.applications[call, named] = found
        self.fails[index] = found.fails
        return found.result

    def failures(self, *, needed: bool) -> list[Bool]:
        """Return the conditions that pure ops fail: all that may, or only those needed."""
        return [
            self.script.conj(
                (
                    self.ready[check.token],
                    self.fails.get(check.token, False),
                    *(self._as_wanted(t, wanted=wanted) for t, wanted in check.guards),
                    *(self.ready[t] for t, _ in check.guards),
                )
            )
            for check in self.unfolding.checks
            if check.needed or not needed
        ]

    def _returned(self, index: int) -> Ints | None:
        """Return the result of an event, from the values that it saw."""
        seen, event = self.seen[index], self.events[index]
        if seen is None or event.access not in _RETURNING:
            return None
        if event.node.definition.kind is Kind.STATE:
            return seen[0]
        return self._gathered(event.node, seen[0])

    def _gathered(self, node: Node, value: Ints) -> Ints:
        """Return the result of a read or dequeue that saw `value`."""
        if not isinstance(node.attrs, RowsAttrs):
            return value
        return tuple(value[place] for place in touched(node, self.row[node.resources[0]]))

    def _made(self, node: Node, saw: Sequence[Ints], operands: Iterable[int]) -> tuple[Ints, ...]:
        """Return the values that a write or update stores in its resources."""
        values = [self._known(token) for token in operands]
        if node.definition.computed:  # an indivisible one; the check says whether it fails
            return (self._applied(-1, node, (*saw, *values)),)
        return self.math.stored(node, saw, values, self.row[node.resources[0]])

    def _readiness(self, token: Token) -> tuple[Bool, _Time]:
        """Return the condition that a token is ready in the end, and its earliest position."""
        s = self.script
        if isinstance(token, (Result, Seen, Stack)):
            events = _events(token)
            return s.conj(self.done[e] for e in events), _Time(sum(1 << e for e in set(events)))
        if isinstance(token, Finished):
            return self._finished(token.events)
        if isinstance(token, Pick):
            holds = self._holds(token.predicate)
            if isinstance(holds, bool):
                return self._all((token.predicate, token.then if holds else token.other))
            other = s.neg(holds)
            ready = s.conj(
                (
                    self.ready[token.predicate],
                    s.implies(holds, self.ready[token.then]),
                    s.implies(other, self.ready[token.other]),
                )
            )
            position = s.integer()
            s.require(self._reached(position, self.time[token.predicate]))
            s.require(s.implies(holds, self._reached(position, self.time[token.then])))
            s.require(s.implies(other, self._reached(position, self.time[token.other])))
            return ready, _Time(0, frozenset({position}))
        return self._all(parts_of(token))

    def _all(self, tokens: Iterable[int]) -> tuple[Bool, _Time]:
        time = _Time()
        for token in tokens:
            time |= self.time[token]
        return self.script.conj(self.ready[token] for token in tokens), time

    def _finished(self, events: tuple[int, ...]) -> tuple[Bool, _Time]:
        """Return the condition that each event is done or dead, and its earliest position."""
        s = self.script
        time = _Time()
        position = ""
        for event in events:
            if self.done[event] is True:
                time |= _Time(1 << event)
                continue
            if not self.events[event].guards:
                time |= _Time(1 << event)
                continue
            killers = [
                (s.conj((self.ready[t], self._as_wanted(t, wanted=not w))), self.time[t])
                for t, w in self.events[event].guards
            ]
            killers = [(kills, since) for kills, since in killers if kills is not False]
            if self.done[event] is False and len(killers) == 1:
                time |= killers[0][1]
                continue
            position = position or s.integer()
            s.require(s.implies(self.done[event], self._reached(position, _Time(1 << event))))
            s.require(
                s.disj(
                    (
                        self.done[event],
                        s.neg(self.dead[event]),
                        *(
                            s.conj((kills, self._reached(position, since)))
                            for kills, since in killers
                        ),
                    )
                )
            )
        ready = s.conj(s.disj((self.done[e], self.dead[e])) for e in events)
        return ready, time | _Time(0, frozenset({position} if position else ()))

    def _reached(self, position: str, time: _Time) -> Bool:
        """Return the condition that `time` is no later than `position`."""
        s = self.script
        return s.conj(
            s.neg(s.less(position, other))
            for other in (*map(place_of, self._last(time.events)), *sorted(time.others))
        )

    def _last(self, events: int) -> list[int]:
        """Return the events of a set that no other event of the set always follows."""
        covered = 0
        for event in bits(events):
            covered |= self.above[event]
        return list(bits(events & ~covered))

    def _add_event(self, index: int, event: Event) -> None:
        """Add terms for an event: done, dead, values seen and stored."""
        s = self.script
        guards = [(t, self._as_wanted(t, wanted=wanted)) for t, wanted in event.guards]
        live = s.conj(holds for _, holds in guards)
        dead = s.disj(s.conj((self.ready[t], s.neg(holds))) for t, holds in guards)
        done: Bool = live
        complete = self.question.status is Status.COMPLETED
        if isinstance(live, str) or (live and not complete):
            done = s.boolean()
            s.require(s.implies(done, live))
        if complete:
            s.require(s.implies(live, done))
            s.require(s.disj((done, dead)))
        self.done.append(done)
        self.dead.append(dead)
        before = [*event.needs, *(token for token, _ in event.guards)]
        s.require(s.implies(done, s.conj(self.ready[token] for token in before)))
        s.require(s.implies(done, s.conj(self.done[other] for other in event.after)))
        self.seen.append(self._saw(index, event) if index in self.reads else None)
        self.stored.append(self._stores(index, event))

    def _saw(self, index: int, event: Event) -> list[Ints] | None:
        """Return the values that a read saw of its variables."""
        if event.access is Access.SIZE:
            return [self._unknown(index, 0, 1)]
        if event.access is Access.DEQUEUE:
            kind = self.test.type_of(event.variables[0])
            return [self._unknown(index, 0, self.test.size_of(kind.shape))]
        if event.access not in READS:
            return None
        saw: list[Ints] = []
        for place, name in enumerate(self.cells_of(event)):
            size = 1 if event.node.definition.kind is Kind.STATE else self.size[name]
            sources = self._writes_before(index, name)
            (only,) = sources if len(sources) == 1 else (index,)
            # With a single possible source no unknown is needed; the value of a
            # write with a larger index does not exist yet.
            if only < index and len(self.given.get((index, place), ())) != size:
                shown = self._shown(only, name, index)
                saw.append(shown if shown else self._unknown(index, place, size))
            else:
                saw.append(self._unknown(index, place, size))
        return saw

    def cells_of(self, event: Event) -> tuple[str, ...]:
        """Return what an event reads or writes that has a value: all but the line of takes."""
        return event.variables[:3] if event.access is Access.TAKE else event.variables

    def _shown(self, write: int, name: str, read: int | None) -> Ints:
        """Return what a read, or (None) the outcome, shows of a variable after a write.

        Nothing where a read fails, since the variable has no value.
        """
        if read is not None and self.events[read].node.definition.kind is Kind.STATE:
            return (int(write != INITIAL or name not in self.empty),)
        return self.initial[name] if write == INITIAL else self.stored[write][name]

    def _stores(self, index: int, event: Event) -> dict[str, Ints]:
        """Return the values that an event stores in variables or adds to a queue."""
        names = [name for name in event.variables if name in self.contents]
        if not names:
            return {}
        if event.access is Access.ENQUEUE:
            element = self._known(event.operands[0])
            if event.node.definition.several:
                element = element[event.part : event.part + 1]
            return {names[0]: element}
        if event.access is Access.WRITE_BACK:
            return {name: self._known(_written(event, name)[0]) for name in names}
        if event.access not in _WRITES:
            return {}
        if event.access is Access.TAKE:
            seen = self.seen[index]
            assert seen is not None
            total, count, step, *_ = event.variables
            more = self.script.add(seen[2][0], 1)
            return {total: (0,) * self.size[total], count: (0,), step: (more,)}
        readers = (index,) if event.access is Access.UPDATE else event.after
        saw = [each for reader in readers for each in self.seen[reader] or ()]
        made = zip(event.node.resources, self._made(event.node, saw, event.operands), strict=True)
        return {name: value for name, value in made if name in names}

    # --- the outcome ------------------------------------------------------------------------

    def _show(self) -> None:
        """Require the values and the status of the question, apart from the order."""
        s = self.script
        if self.question.status is not Status.FAILED:
            for fails in self.failures(needed=True):
                s.require(s.neg(fails))
        for name, token, ended in self.unfolding.observed:
            if name in self.question.values:
                s.require(self.ready[ended])
                wanted: Any = self.question.values[name]
                s.require(is_value(wanted) and s.same(self._known(token), wanted))
            elif name in self.question.absent:
                s.require(s.neg(self.ready[ended]))
        # Resources have contents however an order ends.
        contents = {*self.initial, *(queue.name for queue in self.test.queues)}
        s.require(not contents & self.question.absent)
        for name, value in self.initial.items():
            wanted = self.question.values.get(name)
            sizes = (len(value), self.size[name])
            fits = wanted is None or (is_value(wanted) and len(wanted) in sizes)
            s.require(fits)
        for queue in self.test.queues:
            wanted = self.question.values.get(queue.name)
            if wanted is not None and queue.name not in self.touching:
                s.require(wanted == self.test.initial_elements(queue))

    # --- reads-from -------------------------------------------------------------------------

    def _writers(self, name: str) -> list[int]:
        """Return the events that may write a variable."""
        return [i for i in self.touching.get(name, ()) if self.events[i].access in _WRITES]

    def _writes(self, index: int, name: str) -> Bool:
        """Return the condition that a write is done and writes the variable on its path."""
        event = self.events[index]
        if event.access is not Access.WRITE_BACK:
            return self.done[index]
        return self.script.conj((self.done[index], self._holds(_written(event, name)[1])))

    def _writes_before(self, read: int | None, name: str) -> list[int]:
        """Return the writes that may be the last before a read, or (None) the last of all.

        Uses only orders that always hold, which are known early.
        """
        writers = [w for w in self._writers(name) if w != read]
        above = self.above[read] if read is not None else -1
        sure = [w for w in writers if above >> w & 1 and self._surely_writes(w, name, read)]
        hidden = 0
        for write in sure:
            hidden |= self.above[write]
        found = [] if sure else [INITIAL]
        for write in writers:
            later = read is not None and self.above[write] >> read & 1
            if not later and not hidden >> write & 1:
                found.append(write)
        return found

    def _surely_writes(self, write: int, name: str, read: int | None) -> bool:
        """Return True if a write that precedes a read always happens and always writes."""
        event = self.events[write]
        if read is None and (self.question.status is not Status.COMPLETED or event.guards):
            return False
        if event.access is Access.WRITE_BACK:
            return self._holds(_written(event, name)[1]) is True
        return True

    def _waits(self, index: int) -> _Time:
        """Return the earliest position of an event: after all its dependencies."""
        event = self.events[index]
        time = _Time(sum(1 << other for other in event.after))
        for token in self._awaited(event):
            time |= self.time[token]
        return time


def _written(event: Event, name: str) -> tuple[int, ...]:
    """Return a write-back's tokens for one variable: its value, and written or not."""
    place = 2 * event.variables.index(name)
    return event.operands[place : place + 2]


def place_of(index: int) -> str:
    """Return the name of the unknown for an event's position."""
    return f"p{index}"


def _events(token: Token) -> tuple[int, ...]:
    """Return the events whose results a token holds."""
    if isinstance(token, (Result, Seen)):
        return (token.event,)
    return token.events if isinstance(token, (Stack, Finished)) else ()


def _operands(token: Token) -> tuple[int, ...]:
    """Return the tokens whose values may determine the value of this one."""
    if isinstance(token, Pure):
        return token.inputs
    if isinstance(token, Held):
        return (token.token,)
    return parts_of(token) if isinstance(token, (Pick, Gathered, Stored)) else ()


def is_value(value: object) -> bool:
    """Return True for a single value, False for a queue's contents."""
    return isinstance(value, tuple) and all(isinstance(each, int) for each in value)


def bits(events: int) -> Iterator[int]:
    """Yield the members of a bit set, smallest first."""
    while events:
        lowest = events & -events
        yield lowest.bit_length() - 1
        events ^= lowest
