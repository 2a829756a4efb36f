"""The third oracle: an outcome's verdict as a constraint problem.

What the other two walk through, this one states: which events are done, where
each stands in the total order, which write each read saw, which enqueue each
dequeue took; and that all of it fits. An answer is a total order, or the proof
that there is none.

Two ways lead to it. Where every read that matters has one possible source
(written values differ, as generators see to), orders are all that is left, and
`oracles.saturation` decides. Else the question goes to z3, as text, under a
budget of z3's own steps: the same question has the same answer on every
machine, and what is over budget is `unknown`.

With the other oracles it shares what may happen (`oracles.events`), nothing
else. Since it can answer *why not* (`oracles.reason`), questions may also add
orders of their own, and name some values only.

References
----------
semantics.md, sections 2 to 4. Alglave, Maranget, Tautschnig, "Herding Cats",
TOPLAS 2014 (reads-from, write order, from-read). Gibbons and Korach, "Testing
Shared Memories", SIAM J. Comput. 1997. De Moura, Bjorner, "Z3", TACAS 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from corpus.ops import RowsAttrs
from corpus.outcome import Status, Verdict
from oracles.events import (
    Access,
    Event,
    Gathered,
    Held,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Settled,
    Stack,
    Stored,
    parts_of,
    strictnesses,
    unfold,
)
from oracles.model import Axiom
from oracles.saturation import Choice, OverBudget, find_order
from oracles.terms import Arithmetic, Script, touched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from corpus.graph import LitmusTest, Node, Queue
    from corpus.outcome import Outcome, Value
    from oracles.allowed import Witness
    from oracles.events import Token, Unfolding
    from oracles.model import Model
    from oracles.terms import Bool, Int, Ints


@dataclass(frozen=True, slots=True)
class Budget:
    """What a question may use before its answer is "unknown".

    Parameters
    ----------
    events : int
        Of the test; more are not looked at, since the text grows with the cube
        of the events on one resource.
    tries : int
        Alternatives that the pass without a solver tries; past them z3 is asked.
    steps : int
        z3's own count (its ``rlimit``): no clock, so that an answer repeats.
    saturate, solve : bool
        Whether to try the pass without a solver, and z3: for tests, which hold
        one against the other.
    """

    events: int = 400
    tries: int = 500
    steps: int = 20_000_000
    saturate: bool = True
    solve: bool = True


DEFAULT_BUDGET: Final = Budget()
"""Some seconds of work."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which outcomes are asked for: all that fit.

    Parameters
    ----------
    values : mapping of str to Value
        By name; a name that is missing may be anything.
    status : Status
    absent : frozenset of str
        Names that have no value: of what is observed, where its run did not end.
    """

    values: Mapping[str, Value]
    status: Status = Status.COMPLETED
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(cls, test: LitmusTest, outcome: Outcome) -> Question:
        """Exactly that outcome; a value None is one not seen, and may be anything.

        Raises
        ------
        ValueError
            If it is an outcome of another test.
        """
        given = dict(outcome.values)
        complete = outcome.status is Status.COMPLETED
        if not given.keys() <= set(test.names) or (complete and len(given) < len(test.names)):
            raise ValueError("another test's outcome")
        values = {name: value for name, value in given.items() if value is not None}
        # Of a failed order nothing is shown, whether a run had ended or not.
        failed = outcome.status is Status.FAILED
        absent = frozenset() if failed else frozenset(test.names) - given.keys()
        return cls(values, outcome.status, absent)


Before = tuple[int, int]
"""Two events, by index: if both are done, the first is earlier."""


def judge(
    test: LitmusTest, model: Model, outcome: Outcome, budget: Budget = DEFAULT_BUDGET
) -> Verdict:
    """The verdict on one outcome; see `Axiomatic.judge`."""
    return Axiomatic(test, model, budget).judge(outcome)


class Axiomatic:
    """A test under a model, ready for questions.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    budget : Budget
        For each question, under each choice of strictness.
    """

    def __init__(self, test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> None:
        self.test = test
        self.model = model
        self.budget = budget
        self._loosest = unfold(test, model)
        self._can_block = bool({"queues", "critical sections"} & test.features)

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome.

        References
        ----------
        semantics.md, sections 1 (`torn` is in no allowed set) and 4.
        """
        if outcome.torn:
            return Verdict.FORBIDDEN
        question = Question.of(self.test, outcome)
        verdict = self.possible(question)
        if verdict is Verdict.ALLOWED and outcome.status is Status.FAILED:
            return Verdict.UNSPECIFIED
        return verdict

    def possible(self, question: Question) -> Verdict:
        """Whether some total order yields what is asked for."""
        verdict = Verdict.FORBIDDEN
        for case in self.cases(question):
            answer = case.solve()
            if answer is None:
                verdict = Verdict.UNKNOWN
            elif answer.order is not None:
                return Verdict.ALLOWED
        return verdict

    def witness(self, outcome: Outcome) -> Witness | None:
        """A total order that yields the outcome; None if none was found."""
        for case in self.cases(Question.of(self.test, outcome)):
            answer = case.solve()
            if answer is not None and answer.order is not None:
                return tuple(case.events[i] for i in answer.order)
        return None

    def cases(self, question: Question) -> Iterator[Case]:
        """The question under each choice of strictness that it may depend on."""
        status = question.status
        if status is Status.COMPLETED:
            yield Case(self.test, self._loosest, question, self.budget)
        elif not self._can_block or (status is Status.FAILED and question.values):
            return
        elif status is Status.FAILED:
            yield Case(self.test, self._loosest, question, self.budget)
        else:
            for strictness in strictnesses(self.test, self.model):
                unfolding = unfold(self.test, self.model, strictness)
                yield Case(self.test, unfolding, question, self.budget)


@dataclass(frozen=True, slots=True)
class Answer:
    """A total order of what is done, as indices of events, or None: there is none."""

    order: tuple[int, ...] | None


_NONE: Final = Answer(None)
_INITIAL: Final = -1
"""Stands for the write of a variable's initial contents."""


@dataclass(frozen=True, slots=True)
class _Time:
    """When a token became ready: after those events, and those unknown positions."""

    events: int = 0  # a bit set
    others: frozenset[str] = frozenset()

    def __or__(self, other: _Time) -> _Time:
        return _Time(self.events | other.events, self.others | other.others)


@dataclass(frozen=True, slots=True)
class _Source:
    """A write that a read may have seen, and whether it then returns what it did."""

    write: int
    fits: Bool


class Case:
    """One question about one unfolding, as constraints.

    Everything is computed in index order, in which events and tokens stand on
    earlier ones only: first what surely comes before what (`above`), then
    terms for what is done, ready, read and stored. Unknowns are made only
    where something needs them.

    Parameters
    ----------
    test, unfolding, question, budget
    held_up : int, optional
        An event that need not happen, though it could: of blocked outcomes.
    """

    def __init__(
        self,
        test: LitmusTest,
        unfolding: Unfolding,
        question: Question,
        budget: Budget,
        held_up: int | None = None,
    ) -> None:
        self.test = test
        self.held_up = held_up
        self.unfolding = unfolding
        self.question = question
        self.budget = budget
        self.events = unfolding.events
        self.tokens = unfolding.tokens
        self.too_large = len(self.events) > budget.events
        if self.too_large:
            return
        self.script = Script()
        for index in range(len(self.events)):
            self.script.declare_integer(_position(index))
        self.math = Arithmetic(self.script)
        self.initial: dict[str, Ints] = {v.name: test.initial(v) for v in test.variables}
        self.row = {
            v.name: len(self.initial[v.name]) // v.shape[0] if v.shape else 1
            for v in test.variables
        }
        self.touching: dict[str, list[int]] = {}
        for index, event in enumerate(self.events):
            for name in event.variables:
                self.touching.setdefault(name, []).append(index)
        self._find_above()
        self._find_needed()
        self._tell()
        self.value: list[Ints | None] = []
        self.ready: list[Bool] = []
        self.time: list[_Time] = []
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

    # --- what surely comes before what ------------------------------------------------------

    def _find_above(self) -> None:
        """For each event, a bit set of those that are done before it whenever it is done."""
        self.above: list[int] = []
        self.surely: list[int] = []  # tokens: those that are done when it is ready
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
            elif isinstance(token, (Result, Seen, Stack, Settled)):
                for event in _events(token):
                    # What is dead need not be done for it to have settled.
                    if not (isinstance(token, Settled) and self.events[event].guards):
                        found |= self.above[event] | 1 << event
            else:
                for part in parts_of(token):
                    found |= self.surely[part]
            self.surely.append(found)

    # --- what is needed, and what is told ---------------------------------------------------

    def _find_needed(self) -> None:
        """Reads, tokens and resources whose values the question depends on."""
        self.needed: set[int] = set()  # tokens
        self.reads: set[int] = set()
        self.contents = {name for name in self.touching if name in self.question.values}
        tokens = [t for name, t, _ in self.unfolding.observed if name in self.question.values]
        tokens += [token for event in self.events for token, _ in event.guards]
        tokens += [token.predicate for token in self.tokens if isinstance(token, Pick)]
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
                events = [] if isinstance(token, Settled) else [*_events(token)]
            for event in events:
                self.reads.add(event)
                for name in self.events[event].variables:
                    if name not in self.contents:
                        self.contents.add(name)
                        names.append(name)

    def _made_of(self, name: str) -> tuple[list[int], list[int]]:
        """What a resource's contents depend on: tokens, and reads."""
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

    def _tell(self) -> None:
        """Note what the outcome says that reads and dequeues returned."""
        self.told: dict[tuple[int, int], dict[int, int]] = {}
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
                    self.told[event, 0] = {0: each}
            elif isinstance(token, (Result, Seen)):
                if isinstance(token, Result):
                    gathers = self.events[token.event].node
                places: Sequence[int] = range(len(wanted))
                if gathers is not None and isinstance(gathers.attrs, RowsAttrs):
                    places = touched(gathers, self.row[gathers.resources[0]])
                place = token.place if isinstance(token, Seen) else 0
                self.told[token.event, place] = dict(zip(places, wanted, strict=False))

    def _unknown(self, index: int, place: int, size: int) -> Ints:
        """What an event saw of the resource at `place`: as told, else anything."""
        told = self.told.get((index, place), {})
        return tuple(told[i] if i in told else self.script.integer() for i in range(size))

    # --- terms ------------------------------------------------------------------------------

    def _resolve(self, limit: int) -> None:
        """Add terms for the tokens up to there."""
        for index in range(len(self.value), limit):
            token = self.tokens[index]
            self.value.append(self._value(token) if index in self.needed else None)
            ready, time = self._readiness(token)
            self.ready.append(ready)
            self.time.append(time)

    def _known(self, token: int) -> Ints:
        value = self.value[token]
        assert value is not None, self.tokens[token]
        return value

    def _holds(self, token: int) -> Bool:
        """Whether a predicate is true."""
        return self.script.neg(self.script.equal(self._known(token)[0], 0))

    def _as_wanted(self, token: int, *, wanted: bool) -> Bool:
        holds = self._holds(token)
        return holds if wanted else self.script.neg(holds)

    def _value(self, token: Token) -> Ints | None:
        """A token's value, of the values that it is made of."""
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
        if isinstance(token, Pure) and token.node.op == "Const":
            return self.test.constant(token.node)
        if isinstance(token, Pure) and token.node.op != "NoOp":
            shapes = [self.test.type_of(name).shape for name in token.node.inputs]
            return self.math.pure(token.node, [self._known(t) for t in token.inputs], shapes)
        return None

    def _returned(self, index: int) -> Ints | None:
        """What an event returned, of what it saw."""
        seen, event = self.seen[index], self.events[index]
        if seen is None or event.access not in (Access.READ, Access.DEQUEUE, Access.SIZE):
            return None
        return self._gathered(event.node, seen[0])

    def _gathered(self, node: Node, value: Ints) -> Ints:
        """What a read or dequeue returns of what it saw."""
        if not isinstance(node.attrs, RowsAttrs):
            return value
        return tuple(value[place] for place in touched(node, self.row[node.resources[0]]))

    def _made(self, node: Node, saw: Sequence[Ints], operands: Iterable[int]) -> tuple[Ints, ...]:
        """What a write or update leaves in each of its resources."""
        values = [self._known(token) for token in operands]
        return self.math.stored(node, saw, values, self.row[node.resources[0]])

    def _readiness(self, token: Token) -> tuple[Bool, _Time]:
        """Whether a token is ready in the end, and since when."""
        s = self.script
        if isinstance(token, (Result, Seen, Stack)):
            events = _events(token)
            return s.conj(self.done[e] for e in events), _Time(sum(1 << e for e in set(events)))
        if isinstance(token, Settled):
            return self._settled(token.events)
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

    def _settled(self, events: tuple[int, ...]) -> tuple[Bool, _Time]:
        """Each is done, or dead: since the predicate that killed it was there."""
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
        """Whether `time` is no later than `position`."""
        s = self.script
        return s.conj(
            s.neg(s.less(position, other))
            for other in (*map(_position, self._last(time.events)), *sorted(time.others))
        )

    def _last(self, events: int) -> list[int]:
        """Of a set of events, those that no other one of it surely follows."""
        covered = 0
        for event in _bits(events):
            covered |= self.above[event]
        return list(_bits(events & ~covered))

    def _add_event(self, index: int, event: Event) -> None:
        """Add terms for an event: whether it is done, what it saw and stored."""
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
        """What a read saw of each of its variables."""
        if event.access is Access.SIZE:
            return [self._unknown(index, 0, 1)]
        if event.access is Access.DEQUEUE:
            kind = self.test.type_of(event.variables[0])
            return [self._unknown(index, 0, self.test.size_of(kind.shape))]
        if event.access not in _READS:
            return None
        saw: list[Ints] = []
        for place, name in enumerate(event.variables):
            size = len(self.initial[name])
            sources = self._writes_before(index, name)
            (only,) = sources if len(sources) == 1 else (index,)
            # Nothing need be solved for where one write alone can have been
            # seen; of a later chain's write the value is not made yet.
            if only < index and len(self.told.get((index, place), ())) != size:
                saw.append(self.initial[name] if only == _INITIAL else self.stored[only][name])
            else:
                saw.append(self._unknown(index, place, size))
        return saw

    def _stores(self, index: int, event: Event) -> dict[str, Ints]:
        """What an event makes of a variable, or adds to a queue."""
        names = [name for name in event.variables if name in self.contents]
        if not names:
            return {}
        if event.access is Access.ENQUEUE:
            element = self._known(event.operands[0])
            if "Many" in event.node.op:
                element = element[event.part : event.part + 1]
            return {names[0]: element}
        if event.access is Access.WRITE_BACK:
            return {name: self._known(_written(event, name)[0]) for name in names}
        if event.access not in _WRITES:
            return {}
        readers = (index,) if event.access is Access.UPDATE else event.after
        saw = [each for reader in readers for each in self.seen[reader] or ()]
        made = zip(event.node.resources, self._made(event.node, saw, event.operands), strict=True)
        return {name: value for name, value in made if name in names}

    # --- the outcome ------------------------------------------------------------------------

    def _show(self) -> None:
        """Demand the values and the status asked for, as far as no order matters."""
        s = self.script
        for name, token, ended in self.unfolding.observed:
            if name in self.question.values:
                s.require(self.ready[ended])
                wanted: Any = self.question.values[name]
                s.require(_is_value(wanted) and s.same(self._known(token), wanted))
            elif name in self.question.absent:
                s.require(s.neg(self.ready[ended]))
        # Contents are there however an order ends.
        contents = {*self.initial, *(queue.name for queue in self.test.queues)}
        s.require(not contents & self.question.absent)
        for name, value in self.initial.items():
            wanted = self.question.values.get(name)
            fits = wanted is None or (_is_value(wanted) and len(wanted) == len(value))
            s.require(fits)

    # --- reads-from -------------------------------------------------------------------------

    def _writers(self, name: str) -> list[int]:
        """Events that may write a variable."""
        return [i for i in self.touching.get(name, ()) if self.events[i].access in _WRITES]

    def _writes(self, index: int, name: str) -> Bool:
        """Whether a write is done, and writes that variable on the path taken."""
        event = self.events[index]
        if event.access is not Access.WRITE_BACK:
            return self.done[index]
        return self.script.conj((self.done[index], self._holds(_written(event, name)[1])))

    def _writes_before(self, read: int | None, name: str) -> list[int]:
        """Writes that may be the last before a read, or (None) the last of all.

        Only by what is surely ordered, so that it can be told early.
        """
        writers = [w for w in self._writers(name) if w != read]
        above = self.above[read] if read is not None else -1
        sure = [w for w in writers if above >> w & 1 and self._surely_writes(w, name, read)]
        hidden = 0
        for write in sure:
            hidden |= self.above[write]
        found = [] if sure else [_INITIAL]
        for write in writers:
            later = read is not None and self.above[write] >> read & 1
            if not later and not hidden >> write & 1:
                found.append(write)
        return found

    def _surely_writes(self, write: int, name: str, read: int | None) -> bool:
        """Whether a write that surely comes before a read, if it does at all, does and is one."""
        event = self.events[write]
        if read is None and (self.question.status is not Status.COMPLETED or event.guards):
            return False
        if event.access is Access.WRITE_BACK:
            return self._holds(_written(event, name)[1]) is True
        return True

    def _sources(self, read: int | None, name: str, value: Ints) -> list[_Source]:
        """Writes that a read may have seen, and their values fit."""
        found = []
        for write in self._writes_before(read, name):
            stored = self.initial[name] if write == _INITIAL else self.stored[write][name]
            done = True if write == _INITIAL else self._writes(write, name)
            fits = self.script.conj((done, self.script.same(stored, value)))
            if fits is not False:
                found.append(_Source(write, fits))
        return found

    def _readings(self) -> Iterator[tuple[int | None, str, list[_Source]]]:
        """Each read that matters, and the end, with what it may have seen."""
        for index in sorted(self.reads):
            event, seen = self.events[index], self.seen[index]
            if event.access in _READS and self.done[index] is not False:
                assert seen is not None
                for name, value in zip(event.variables, seen, strict=True):
                    yield index, name, self._sources(index, name, value)
        for variable in self.test.variables:
            final: Any = self.question.values.get(variable.name)
            if final is not None:
                yield None, variable.name, self._sources(None, variable.name, final)

    # --- the answer -------------------------------------------------------------------------

    def solve(self, orders: Sequence[Before] = ()) -> Answer | None:
        """A total order that yields what is asked for, and keeps `orders`; None: unknown.

        Events of `orders` that are not done are not ordered.
        """
        if self.too_large:
            return None
        if self.script.impossible:
            return _NONE
        if self.budget.saturate:
            answer = self._saturate(orders)
            if answer is not None:
                return answer
        if not self.budget.solve:
            return None
        return self._ask(orders)

    def _saturate(self, orders: Sequence[Before]) -> Answer | None:
        """The answer without a solver; None where there is more than orders to find."""
        if self._choices is None:
            return None
        done = sum(1 << i for i, done in enumerate(self.done) if done)
        known = [(a, b) for b in _bits(done) for a in _bits(self._waits(b).events & done)]
        known += [pair for pair in orders if done >> pair[0] & 1 and done >> pair[1] & 1]
        try:
            order = find_order(len(self.events), known, self._choices, self.budget.tries)
        except OverBudget:
            return None
        return _NONE if order is None else Answer(tuple(i for i in order if done >> i & 1))

    @cached_property
    def _choices(self) -> list[Choice] | None:
        """Of any two orders one, where that is all that is open; else None."""
        if self.question.status is not Status.COMPLETED or not self.script.empty:
            return None
        if self.test.queues and any(q.name in self.touching for q in self.test.queues):
            return None
        if not all(isinstance(done, bool) for done in self.done):
            return None
        live = [i for i, done in enumerate(self.done) if done]
        if any(self._waits(i).others for i in live):
            return None
        for name in self.contents & self.initial.keys():
            if not all(isinstance(self._writes(w, name), bool) for w in self._writers(name)):
                return None
        choices: list[Choice] = []
        for read, name, sources in self._readings():
            if not sources:
                return [Choice((0, 0), (0, 0))]  # which nothing keeps
            if len(sources) > 1 or sources[0].fits is not True:
                return None
            choices += self._unbroken(read, name, sources[0].write)
        for first, second in self._contenders():
            choices.append(Choice((first[1], second[0]), (second[1], first[0])))
        return choices

    def _unbroken(self, read: int | None, name: str, source: int) -> Iterator[Choice]:
        """A read, or the end, sees a write: no other one of that variable falls between."""
        if source != _INITIAL and read is not None:
            yield Choice((source, read), (source, read))
        for write in self._writers(name):
            if write in (read, source) or self._writes(write, name) is False:
                continue
            # Of the initial write, and of the end, one alternative is left.
            earlier = (write, write if source == _INITIAL else source)
            yield Choice(earlier, (write if read is None else read, write))

    def _waits(self, index: int) -> _Time:
        """What an event comes after."""
        event = self.events[index]
        time = _Time(sum(1 << other for other in event.after))
        for token in self._awaited(event):
            time |= self.time[token]
        return time

    def _ask(self, orders: Sequence[Before]) -> Answer | None:
        """The answer by z3."""
        import z3

        solver = self._solver
        if self.script.impossible:
            return _NONE
        solver.push()
        for pair in orders:
            dones = [self.done[i] for i in pair]
            if False not in dones:
                first, second = (z3.Int(_position(i), solver.ctx) for i in pair)
                undone = [z3.Not(z3.Bool(d, solver.ctx)) for d in dones if isinstance(d, str)]
                solver.add(z3.Or(first < second, *undone))
        result = solver.check()
        answer = None if result == z3.unknown else _NONE
        if result == z3.sat:
            answer = Answer(self._order_in(solver.model()))
        solver.pop()
        return answer

    @cached_property
    def _solver(self) -> Any:
        """z3 with all constraints; loaded when first needed, as that takes a while."""
        import z3

        for index in range(len(self.events)):
            self._place(index)
        for read, name, sources in self._readings():
            self._read_from(read, name, sources)
        self._exclude()
        for queue in self.test.queues:
            if queue.name in self.touching:
                self._queue(queue)
        self._end()
        # A context of its own: names and ids of other questions change nothing.
        context = z3.Context()
        solver = z3.SimpleSolver(ctx=context)
        solver.set("rlimit", self.budget.steps)
        solver.set("random_seed", 0)
        solver.from_string(self.script.text)
        return solver

    def _order_in(self, model: Any) -> tuple[int, ...]:
        """The total order of a solution."""
        import z3

        context = model.ctx
        placed = []
        for index, done in enumerate(self.done):
            if done is True or (done and z3.is_true(model[z3.Bool(done, context)])):
                position = model.eval(z3.Int(_position(index), context), model_completion=True)
                # Of two events at one position none waits for the other; a
                # read there came before a write (`_read_from`).
                reads = self.events[index].access in (Access.READ, Access.SNAPSHOT)
                placed.append((position.as_long(), not reads, index))
        return tuple(index for _, _, index in sorted(placed))

    # --- constraints for z3 -----------------------------------------------------------------

    def _earlier(self, a: int, b: int) -> Bool:
        """Whether `a` came before `b`; it means nothing unless both are done."""
        if a == b or self.above[a] >> b & 1:
            return False
        return bool(self.above[b] >> a & 1) or self.script.less(_position(a), _position(b))

    def _place(self, index: int) -> None:
        """An event that is done comes after what it waits for."""
        if self.done[index] is not False:
            time = self._waits(index)
            s = self.script
            after = [s.less(_position(i), _position(index)) for i in self._last(time.events)]
            after += [s.less(other, _position(index)) for other in sorted(time.others)]
            s.require(s.implies(self.done[index], s.conj(after)))

    def _read_from(self, read: int | None, name: str, sources: Sequence[_Source]) -> None:
        """A read, or the end, sees one of the sources: no other write falls between.

        Strictly before the source or strictly after the read: so that a write
        at the source's own position, or at the read's, is neither.
        """
        s = self.script
        choices: list[Bool] = []
        for source in sources:
            seen = True if len(sources) == 1 else s.boolean()
            choices.append(seen)
            demands = [source.fits]
            if source.write != _INITIAL and read is not None:
                demands.append(self._earlier(source.write, read))
            for write in self._writers(name):
                if write in (read, source.write):
                    continue
                apart: list[Bool] = [s.neg(self._writes(write, name))]
                if source.write != _INITIAL:
                    apart.append(self._earlier(write, source.write))
                if read is not None:
                    apart.append(self._earlier(read, write))
                demands.append(s.disj(apart))
            happens = seen if read is None else s.conj((seen, self.done[read]))
            s.require(s.implies(happens, s.conj(demands)))
        s.require(s.implies(True if read is None else self.done[read], s.disj(choices)))

    def _locks(self) -> list[tuple[int, int]]:
        """Each acquire with its release."""
        releases = {
            (e.run, e.frame, e.node.name): i
            for i, e in enumerate(self.events)
            if e.access is Access.RELEASE
        }
        return [
            (i, releases[e.run, e.frame, e.node.name])
            for i, e in enumerate(self.events)
            if e.access is Access.ACQUIRE
        ]

    def _contenders(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Any two instances of sections on one mutex: acquire and release of each."""
        for one, other in combinations(self._locks(), 2):
            same = self.events[one[0]].variables == self.events[other[0]].variables
            if same and self.done[one[0]] is not False and self.done[other[0]] is not False:
                yield one, other

    def _exclude(self) -> None:
        """RFC, rule 2: of two sections on one mutex, one is over before the other begins."""
        s = self.script
        for one, other in self._contenders():
            over = [
                s.conj((self.done[first[1]], self._earlier(first[1], second[0])))
                for first, second in ((one, other), (other, one))
            ]
            both = s.conj((self.done[one[0]], self.done[other[0]]))
            s.require(s.implies(both, s.disj(over)))

    def _queue(self, queue: Queue) -> None:
        """RFC, rule 4: each dequeue takes the oldest element, there is room for each enqueue."""
        _Queue(self, queue).constrain()

    def _end(self) -> None:
        """How the order ends, if it is not complete."""
        s = self.script
        if self.question.status is Status.BLOCKED:
            for index in range(len(self.events)):
                if index != self.held_up:
                    s.require(s.disj((self.done[index], s.neg(self._enabled(index)))))
            over = (s.disj((done, self.dead[i])) for i, done in enumerate(self.done))
            s.require(s.neg(s.conj(over)))
        elif self.question.status is Status.FAILED:
            fails = (
                s.conj((s.neg(self.done[i]), self._could(i), self._chosen(i), self._fails(i)))
                for i in range(len(self.events))
            )
            s.require(s.disj(fails))

    def _could(self, index: int) -> Bool:
        """Whether, in the end, all that an event waits for is there."""
        event = self.events[index]
        return self.script.conj(
            (
                *(self.ready[token] for token in self._awaited(event)),
                *(self.done[other] for other in event.after),
                self.script.neg(self.dead[index]),
            )
        )

    def _chosen(self, index: int) -> Bool:
        """Whether, in the end, the predicates of an event are there."""
        return self.script.conj(self.ready[token] for token, _ in self.events[index].guards)

    def _enabled(self, index: int) -> Bool:
        """Whether, in the end, an event that is not done could come next."""
        event = self.events[index]
        s = self.script
        possible: Bool = True
        if event.access is Access.ACQUIRE:
            possible = s.conj(
                s.implies(self.done[acquire], self.done[release])
                for acquire, release in self._locks()
                if self.events[acquire].variables == event.variables
            )
        elif event.access in (Access.ENQUEUE, Access.DEQUEUE):
            name = event.variables[0]
            queue = _Queue(self, next(q for q in self.test.queues if q.name == name))
            room = queue.room() if event.access is Access.ENQUEUE else queue.some()
            possible = s.disj((queue.closed(), room))
        return s.conj((self._could(index), possible))

    def _fails(self, index: int) -> Bool:
        """Whether, in the end, an event that comes next ends in an error."""
        event = self.events[index]
        if event.access not in (Access.ENQUEUE, Access.DEQUEUE):
            return False
        queue = _Queue(self, next(q for q in self.test.queues if q.name == event.variables[0]))
        if event.access is Access.ENQUEUE:
            return queue.closed()
        return self.script.conj((queue.closed(), self.script.neg(queue.some())))


class _Queue:
    """One queue's constraints: which dequeue took which element.

    Elements are numbered as events are: by the enqueue that put them, and
    below 0 those that were there at first, so that of these the smaller is the
    older.
    """

    def __init__(self, case: Case, queue: Queue) -> None:
        self.case = case
        self.script = case.script
        self.queue = queue
        by = {access: [] for access in Access}  # type: dict[Access, list[int]]
        for index in case.touching.get(queue.name, ()):
            if case.done[index] is not False:
                by[case.events[index].access].append(index)
        self.puts, self.takes = by[Access.ENQUEUE], by[Access.DEQUEUE]
        self.sizes, self.closes = by[Access.SIZE], by[Access.CLOSE]
        self.first = case.test.initial_elements(queue)
        self.elements = [*range(-len(self.first), 0), *self.puts]

    def done(self, element: int) -> Bool:
        """Whether it was put, or was there."""
        return True if element < 0 else self.case.done[element]

    def earlier(self, a: int, b: int) -> Bool:
        """Whether one element, or event, came before another."""
        return a < b if a < 0 or b < 0 else self.case._earlier(a, b)

    def closed(self) -> Bool:
        """Whether, in the end, it is closed."""
        return self.script.disj(self.case.done[close] for close in self.closes)

    def _at_most(self, limit: int, at: int | None) -> Bool:
        """Whether it has at most that many elements, just before an event or (None) in the end.

        Those that were put, and those that were *not* taken, are counted: no
        more than `limit`, and the number of dequeues.
        """
        s = self.script

        def before(index: int) -> Bool:
            return s.conj((self.done(index), True if at is None else self.earlier(index, at)))

        present = [before(element) for element in self.elements if element != at]
        kept = [s.neg(before(take)) for take in self.takes if take != at]
        return s.at_most((*present, *kept), limit + len(kept))

    def room(self, at: int | None = None) -> Bool:
        """Whether one more element fits in."""
        bounded = Axiom.CAPACITY in self.case.unfolding.axioms
        return not bounded or self._at_most(self.queue.capacity - 1, at)

    def some(self) -> Bool:
        """Whether, in the end, it has an element."""
        return self.script.neg(self._at_most(0, None))

    def constrain(self) -> None:
        """Demand all that the queue demands."""
        self._separate()
        self._match()
        if Axiom.FIFO in self.case.unfolding.axioms:
            self._oldest_first()
        s = self.script
        for put in self.puts:
            s.require(s.implies(self.done(put), self.room(put)))
            for close in self.closes:
                both = s.conj((self.done(put), self.done(close)))
                s.require(s.implies(both, self.earlier(put, close)))
        for size in self.sizes:
            self._size(size)
        self._contents()

    def _separate(self) -> None:
        """No two events are at one position, so that counts mean something."""
        s = self.script
        for a, b in combinations((*self.puts, *self.takes, *self.sizes, *self.closes), 2):
            apart = s.disj((self.earlier(a, b), self.earlier(b, a)))
            s.require(s.implies(s.conj((self.done(a), self.done(b))), apart))

    def _match(self) -> None:
        """Each dequeue takes an element that is there, each another one."""
        s, case = self.script, self.case
        self.took: dict[tuple[int, int], Bool] = {}
        for element in self.elements:
            for take in self.takes:
                fits: Bool = s.conj(
                    (self.done(element), self.done(take), self.earlier(element, take))
                )
                seen = case.seen[take]
                if seen is not None:
                    fits = s.conj((fits, s.same(self._value(element), seen[0])))
                took = fits is not False and s.boolean()
                s.require(s.implies(took, fits))
                self.took[element, take] = took
        for take in self.takes:
            taken = [self.took[element, take] for element in self.elements]
            s.exclusive(taken)
            s.require(s.implies(self.done(take), s.disj(taken)))
        for element in self.elements:
            s.exclusive([self.took[element, take] for take in self.takes])

    def _oldest_first(self) -> None:
        """What is older than an element that is taken was taken before it."""
        s = self.script
        for (element, take), took in self.took.items():
            for other in self.elements:
                if took is not False and other != element:
                    older = s.conj((self.done(other), self.earlier(other, element)))
                    s.require(s.implies(s.conj((took, older)), self._gone(other, take)))

    def _value(self, element: int) -> Ints:
        if element < 0:
            return self.first[element]
        return self.case.stored[element][self.queue.name]

    def _gone(self, element: int, at: int | None) -> Bool:
        """Whether it was taken before an event, or (None) ever."""
        s = self.script
        return s.disj(
            s.conj((self.took[element, take], True if at is None else self.earlier(take, at)))
            for take in self.takes
            if take != at
        )

    def _size(self, size: int) -> None:
        """Size counts what was put, less what was taken."""
        s = self.script
        seen = self.case.seen[size]
        if seen is None:
            return
        count: Int = 0
        for element in self.elements:
            was = s.conj((self.done(element), self.earlier(element, size)))
            count = s.add(count, s.flag(was))
        for take in self.takes:
            count = s.sub(count, s.flag(s.conj((self.done(take), self.earlier(take, size)))))
        s.require(s.implies(self.done(size), s.equal(count, seen[0][0])))

    def _contents(self) -> None:
        """What is left in the end is what the outcome says, in order."""
        s = self.script
        wanted: Any = self.case.question.values.get(self.queue.name)
        if wanted is None:
            return
        stands: dict[tuple[int, int], Bool] = {}
        left = {e: s.conj((self.done(e), s.neg(self._gone(e, None)))) for e in self.elements}
        for element in self.elements:
            for place, each in enumerate(wanted):
                fits = _is_value(each) and s.same(self._value(element), each)
                stands[element, place] = fits is not False and s.boolean()
                s.require(s.implies(stands[element, place], s.conj((fits, left[element]))))
            places = [stands[element, place] for place in range(len(wanted))]
            s.exclusive(places)
            s.require(s.implies(left[element], s.disj(places)))
        for place in range(len(wanted)):
            here = [stands[element, place] for element in self.elements]
            s.exclusive(here)
            s.require(s.disj(here))
        for (a, place), here_a in stands.items():
            for b in self.elements:
                if a != b and place + 1 < len(wanted):
                    both = s.conj((here_a, stands[b, place + 1]))
                    s.require(s.implies(both, self.earlier(a, b)))


_READS: Final = (Access.READ, Access.UPDATE, Access.SNAPSHOT)
_WRITES: Final = (Access.WRITE, Access.UPDATE, Access.WRITE_BACK)


def _written(event: Event, name: str) -> tuple[int, ...]:
    """Of a write-back: tokens of a variable's value, and of whether it is written."""
    place = 2 * event.variables.index(name)
    return event.operands[place : place + 2]


def _position(index: int) -> str:
    return f"p{index}"


def _events(token: Token) -> tuple[int, ...]:
    """Events that a token stands for."""
    if isinstance(token, (Result, Seen)):
        return (token.event,)
    return token.events if isinstance(token, (Stack, Settled)) else ()


def _operands(token: Token) -> tuple[int, ...]:
    """Tokens whose values may make the value of this one."""
    if isinstance(token, Pure):
        return token.inputs
    if isinstance(token, Held):
        return (token.token,)
    return parts_of(token) if isinstance(token, (Pick, Gathered, Stored)) else ()


def _is_value(value: object) -> bool:
    """Whether it is one value, not a queue's contents."""
    return isinstance(value, tuple) and all(isinstance(each, int) for each in value)


def _bits(events: int) -> Iterator[int]:
    """Members of a bit set, the smallest first."""
    while events:
        lowest = events & -events
        yield lowest.bit_length() - 1
        events ^= lowest
