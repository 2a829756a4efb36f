"""Order constraints of one question, and their solution by saturation or z3.

References
----------
semantics.md, section 3. See `litmusfuzz.oracles.axiomatic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.ops import MAX_MAGNITUDE, Kind
from litmusfuzz.corpus.outcome import Status
from litmusfuzz.corpus.pure.definition import Fails, Undefined
from litmusfuzz.oracles.events import Access
from litmusfuzz.oracles.histories import unreachable
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.oracles.saturation import Choice, OverBudget, find_order
from litmusfuzz.oracles.statement import (
    INITIAL,
    READS,
    Application,
    Statement,
    Undecided,
    bits,
    is_value,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Queue
    from litmusfuzz.oracles.events import Unfolding
    from litmusfuzz.oracles.question import Budget, Question
    from litmusfuzz.oracles.terms import Bool, Int, Ints

Before = tuple[int, int]
"""Two events, by index: if both are done, the first comes before the second."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A total order of the events done, by index; None if there is no such order."""

    order: tuple[int, ...] | None


_NONE: Final = Answer(None)


@dataclass(frozen=True, slots=True)
class _Source:
    """A write that a read may have seen, with the condition that their values agree."""

    write: int
    fits: Bool


class Case(Statement):
    """One question about one unfolding, with its constraints.

    Parameters
    ----------
    test, unfolding, question
    budget : Budget
    held_up : int, optional
        For a blocked outcome: an enabled event that an executor may hold up.
    """

    def __init__(
        self,
        test: LitmusTest,
        unfolding: Unfolding,
        question: Question,
        budget: Budget,
        held_up: int | None = None,
    ) -> None:
        self.budget = budget
        self.held_up = held_up
        self.too_large = len(unfolding.events) > budget.events
        self._lemmas: list[Any] = []
        if not self.too_large:
            try:
                super().__init__(test, unfolding, question)
            except Undecided:
                self.too_large = True

    def _sources(self, read: int | None, name: str, value: Ints) -> list[_Source]:
        """Return the writes that a read may have seen, with values that agree."""
        found = []
        for write in self._writes_before(read, name):
            stored = self._shown(write, name, read)
            if read is not None and not stored:
                continue  # the read fails
            done = True if write == INITIAL else self._writes(write, name)
            fits = self.script.conj((done, self.script.same(stored, value)))
            if fits is not False:
                found.append(_Source(write, fits))
        return found

    def _readings(self) -> Iterator[tuple[int | None, str, list[_Source]]]:
        """Yield each relevant read, and the final state, with its possible sources."""
        for index in sorted(self.reads):
            event, seen = self.events[index], self.seen[index]
            if event.access in READS and self.done[index] is not False:
                assert seen is not None
                for name, value in zip(self.cells_of(event), seen, strict=True):
                    yield index, name, self._sources(index, name, value)
        for variable in (*self.test.variables, *self.test.cells):
            final: Any = self.question.values.get(variable.name)
            if final is None:
                final = self.last_count.get(variable.name)
            if final is not None:
                yield None, variable.name, self._sources(None, variable.name, final)

    # --- the answer -------------------------------------------------------------------------

    def solve(self, orders: Sequence[Before] = ()) -> Answer | None:
        """Return a total order that answers the question and satisfies `orders`.

        None means unknown. `orders` does not apply to events that are not done.
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
        answer = self._ask(orders)
        return _NONE if answer is None and unreachable(self, self.budget.histories) else answer

    def _saturate(self, orders: Sequence[Before]) -> Answer | None:
        """Return the answer without a solver; None where more than the order is open."""
        if self._choices is None:
            return None
        done = sum(1 << i for i, done in enumerate(self.done) if done)
        known = [(a, b) for b in bits(done) for a in bits(self._waits(b).events & done)]
        known += [pair for pair in orders if done >> pair[0] & 1 and done >> pair[1] & 1]
        try:
            order = find_order(len(self.events), known, self._choices, self.budget.tries)
        except OverBudget:
            return None
        return _NONE if order is None else Answer(tuple(i for i in order if done >> i & 1))

    @cached_property
    def _choices(self) -> list[Choice] | None:
        """Binary choices of orders, if nothing else is open; else None."""
        if self.question.status is not Status.COMPLETED or not self.script.empty:
            return None
        if self.test.queues and any(q.name in self.touching for q in self.test.queues):
            return None
        if any(event.access is Access.TAKE for event in self.events):
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
                return [Choice((0, 0), (0, 0))]  # unsatisfiable
            if len(sources) > 1 or sources[0].fits is not True:
                return None
            choices += self._unbroken(read, name, sources[0].write)
        for first, second in self._contenders():
            choices.append(Choice((first[1], second[0]), (second[1], first[0])))
        return choices

    def _unbroken(self, read: int | None, name: str, source: int) -> Iterator[Choice]:
        """Yield choices so that no other write falls between a write and its reader."""
        if source != INITIAL and read is not None:
            yield Choice((source, read), (source, read))
        for write in self._writers(name):
            if write in (read, source) or self._writes(write, name) is False:
                continue
            # The initial write and the final state leave one alternative.
            earlier = (write, write if source == INITIAL else source)
            yield Choice(earlier, (write if read is None else read, write))

    def _ask(self, orders: Sequence[Before]) -> Answer | None:
        """Return z3's answer."""
        import z3

        solver = self._solver
        if solver is None or self.script.impossible:
            return None if solver is None else _NONE
        solver.push()
        for pair in orders:
            dones = [self.done[i] for i in pair]
            if False not in dones:
                first, second = (z3.Int(place_of(i), solver.ctx) for i in pair)
                undone = [z3.Not(z3.Bool(d, solver.ctx)) for d in dones if isinstance(d, str)]
                solver.add(z3.Or(first < second, *undone))
        answer = self._refined(solver)
        solver.pop()
        for lemma in self._lemmas:  # they hold for other questions as well
            solver.add(lemma)
        self._lemmas.clear()
        return answer

    def _refined(self, solver: Any) -> Answer | None:
        """Return the answer for ops as they are, not only as some functions.

        Each solution is checked: where it gives an application another result than the op, the
        op's own result is added for these operands.
        """
        import z3

        for _ in range(self.budget.lemmas):
            result = solver.check()
            if result != z3.sat:
                return None if result == z3.unknown else _NONE
            model = solver.model()
            wrong = [
                lemma
                for each in self.applications.values()
                if (lemma := self._lemma(each, model)) is not None
            ]
            if not wrong:
                return Answer(self._order_in(model))
            for lemma in wrong:
                solver.add(lemma)
            self._lemmas += wrong
        return None

    def _lemma(self, application: Application, model: Any) -> Any:
        """Return the op's result for the operands in a solution; None if the solution has it."""
        import z3

        context = model.ctx

        def value(term: Int) -> int:
            if isinstance(term, int):
                return term
            found: int = model.eval(z3.Int(term, context), model_completion=True).as_long()
            return found

        operands = tuple(tuple(map(value, each)) for each in application.operands)
        if any(abs(v) >= MAX_MAGNITUDE for each in operands for v in each):
            return None  # as below
        fails = z3.Bool(application.fails, context)
        failed = z3.is_true(model.eval(fails, model_completion=True))
        made = []
        try:
            result = application.call.evaluate(operands)
        except Fails:
            if failed:
                return None
            made = [fails]
        except Undefined:
            return None  # no order computes it, or one that the test must not have
        else:
            if not failed and tuple(map(value, application.result)) == result:
                return None
            made = [z3.Not(fails)] + [
                z3.Int(term, context) == known
                for term, known in zip(application.result, result, strict=True)
            ]
        given = [
            z3.Int(term, context) == known
            for terms, values in zip(application.operands, operands, strict=True)
            for term, known in zip(terms, values, strict=True)
            if isinstance(term, str)
        ]
        return z3.Implies(z3.And(given), z3.And(made))

    @cached_property
    def _solver(self) -> Any:
        """z3 solver with all constraints, loaded on first use; None if there are too many."""
        import z3

        readings = list(self._readings())
        if self._clauses(readings) > self.budget.clauses:
            return None
        for index in range(len(self.events)):
            self._place(index)
        for read, name, sources in readings:
            self._read_from(read, name, sources)
        self._exclude()
        for queue in self.test.queues:
            if queue.name in self.touching:
                self._queue(queue)
        for index, event in enumerate(self.events):
            if event.access is Access.TAKE and self.done[index] is not False:
                self._take(index)
        self._stand_in_line()
        self._end()
        # A separate context, so that other questions cannot change the answer.
        context = z3.Context()
        solver = z3.SimpleSolver(ctx=context)
        solver.set("rlimit", self.budget.steps)
        solver.set("random_seed", 0)
        solver.from_string(self.script.text)
        return solver

    def _clauses(self, readings: Sequence[tuple[int | None, str, list[_Source]]]) -> int:
        """Estimate the number of clauses for reads and queues."""
        count = sum(len(sources) * len(self._writers(name)) for _, name, sources in readings)
        for queue in self.test.queues:
            kinds = [self.events[i].access for i in self.touching.get(queue.name, ())]
            puts = len(queue.init) + kinds.count(Access.ENQUEUE)
            count += puts**2 * kinds.count(Access.DEQUEUE)
        return count

    def _order_in(self, model: Any) -> tuple[int, ...]:
        """Return the total order of a solution."""
        import z3

        context = model.ctx
        placed = []
        for index, done in enumerate(self.done):
            if done is True or (done and z3.is_true(model[z3.Bool(done, context)])):
                position = model.eval(z3.Int(place_of(index), context), model_completion=True)
                # Two events at one position are independent; a read there comes
                # before a write (`_read_from`).
                reads = self.events[index].access in (Access.READ, Access.SNAPSHOT)
                placed.append((position.as_long(), not reads, index))
        return tuple(index for _, _, index in sorted(placed))

    # --- constraints for z3 -----------------------------------------------------------------

    def _earlier(self, a: int, b: int) -> Bool:
        """Return the condition that `a` comes before `b`, valid if both are done."""
        if a == b or self.above[a] >> b & 1:
            return False
        return bool(self.above[b] >> a & 1) or self.script.less(place_of(a), place_of(b))

    def _place(self, index: int) -> None:
        """Require that an event that is done comes after its dependencies."""
        if self.done[index] is not False:
            time = self._waits(index)
            s = self.script
            after = [s.less(place_of(i), place_of(index)) for i in self._last(time.events)]
            after += [s.less(other, place_of(index)) for other in sorted(time.others)]
            s.require(s.implies(self.done[index], s.conj(after)))

    def _read_from(self, read: int | None, name: str, sources: Sequence[_Source]) -> None:
        """Require that a read, or the final state, sees one of its sources.

        Any other write comes strictly before the source or strictly after the read.
        A write at the position of the source or of the read satisfies neither.
        """
        s = self.script
        choices: list[Bool] = []
        for source in sources:
            seen = True if len(sources) == 1 else s.boolean()
            choices.append(seen)
            demands = [source.fits]
            if source.write != INITIAL and read is not None:
                demands.append(self._earlier(source.write, read))
            for write in self._writers(name):
                if write in (read, source.write):
                    continue
                apart: list[Bool] = [s.neg(self._writes(write, name))]
                if source.write != INITIAL:
                    apart.append(self._earlier(write, source.write))
                if read is not None:
                    apart.append(self._earlier(read, write))
                demands.append(s.disj(apart))
            happens = seen if read is None else s.conj((seen, self.done[read]))
            s.require(s.implies(happens, s.conj(demands)))
        s.require(s.implies(True if read is None else self.done[read], s.disj(choices)))

    def _locks(self) -> list[tuple[int, int]]:
        """Return each acquire with its release."""
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
        """Yield every two section instances on one mutex: acquire and release of each."""
        for one, other in combinations(self._locks(), 2):
            same = self.events[one[0]].variables == self.events[other[0]].variables
            if same and self.done[one[0]] is not False and self.done[other[0]] is not False:
                yield one, other

    def _exclude(self) -> None:
        """RFC, rule 2: one of two sections on a mutex is released before the other acquires."""
        s = self.script
        for one, other in self._contenders():
            over = [
                s.conj((self.done[first[1]], self._earlier(first[1], second[0])))
                for first, second in ((one, other), (other, one))
            ]
            both = s.conj((self.done[one[0]], self.done[other[0]]))
            s.require(s.implies(both, s.disj(over)))

    def _queue(self, queue: Queue) -> None:
        """RFC, rule 4: a dequeue takes the oldest element; no enqueue exceeds the capacity."""
        _Queue(self, queue).constrain()

    def _required(self, index: int) -> Int:
        """Return how many gradients a take requires."""
        event = self.events[index]
        return self._known(event.operands[0])[0] if event.operands else 1

    def _take(self, index: int) -> None:
        """Require that a take finds as many gradients as it requires."""
        s, seen = self.script, self.seen[index]
        assert seen is not None
        s.require(s.implies(self.done[index], s.neg(s.less(seen[1][0], self._required(index)))))

    def _takes(self) -> list[tuple[int, int]]:
        """Return each take with its event of joining the line: the join, then the take."""
        return [
            (event.after[0], index)
            for index, event in enumerate(self.events)
            if event.access is Access.TAKE
        ]

    def _stand_in_line(self) -> None:
        """Require that takes leave the line in the order in which they have joined it."""
        s = self.script
        for join, _ in self._takes():
            s.require(s.implies(self.done[join], s.neg(self._fails(join))))
        for (join, take), (other, later) in combinations(self._takes(), 2):
            names = self.events[take].variables, self.events[later].variables
            if names[0] != names[1]:
                continue
            both = s.conj((self.done[join], self.done[other]))
            apart = (self._earlier(join, other), self._earlier(other, join))
            s.require(s.implies(both, s.disj(apart)))
            for (a, ahead), (b, behind) in (
                ((join, take), (other, later)),
                ((other, later), (join, take)),
            ):
                holds_up = s.conj((self.done[behind], self.done[a], self._earlier(a, b)))
                gone = s.conj((self.done[ahead], self._earlier(ahead, behind)))
                s.require(s.implies(holds_up, gone))

    def _could_take(self, index: int) -> Bool:
        """Return the condition that a take at the head of the line finds enough in the end."""
        s, event = self.script, self.events[index]
        (count,) = self.last_count[event.variables[1]] or (0,)
        ahead = [
            s.conj((self.done[join], s.neg(self.done[take]), self._earlier(join, event.after[0])))
            for join, take in self._takes()
            if take != index and self.events[take].variables == event.variables
        ]
        return s.conj((s.neg(s.disj(ahead)), s.neg(s.less(count, self._required(index)))))

    def _end(self) -> None:
        """Require that an incomplete order ends blocked or failed, as the question says."""
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
            s.require(s.disj((*fails, *self.failures(needed=False))))

    def _could(self, index: int) -> Bool:
        """Return the condition that all dependencies of an event are done in the end."""
        event = self.events[index]
        return self.script.conj(
            (
                *(self.ready[token] for token in self._awaited(event)),
                *(self.done[other] for other in event.after),
                self.script.neg(self.dead[index]),
            )
        )

    def _chosen(self, index: int) -> Bool:
        """Return the condition that the predicates of an event are ready in the end."""
        return self.script.conj(self.ready[token] for token, _ in self.events[index].guards)

    def _enabled(self, index: int) -> Bool:
        """Return the condition that an event that is not done is enabled in the end."""
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
            possible_now = (
                queue.has_space() if event.access is Access.ENQUEUE else queue.has_element()
            )
            possible = s.disj((queue.closed(), possible_now))
        elif event.access is Access.TAKE:
            possible = self._could_take(index)
        return s.conj((self._could(index), possible))

    def _fails(self, index: int) -> Bool:
        """Return the condition that an event would fail if it came next."""
        event = self.events[index]
        if event.access in READS and event.node.definition.kind is not Kind.STATE:
            return self.script.disj(
                self.script.conj(
                    self.script.neg(self._writes(write, name)) for write in self._writers(name)
                )
                for name in event.variables
                if name in self.empty
            )
        if event.access is Access.JOIN:
            return self.script.less(self._known(event.operands[0])[0], 1)
        if event.access not in (Access.ENQUEUE, Access.DEQUEUE):
            return False
        queue = _Queue(self, next(q for q in self.test.queues if q.name == event.variables[0]))
        if event.access is Access.ENQUEUE:
            return queue.closed()
        return self.script.conj((queue.closed(), self.script.neg(queue.has_element())))


class _Queue:
    """Constraints of one queue: which dequeue took which element.

    The number of an element is the index of its enqueue event. Initial elements have
    negative numbers, the oldest the smallest.
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
        """Return the condition that an element was enqueued or was there initially."""
        return True if element < 0 else self.case.done[element]

    def earlier(self, a: int, b: int) -> Bool:
        """Return the condition that one element, or event, came before another."""
        return a < b if a < 0 or b < 0 else self.case._earlier(a, b)

    def closed(self) -> Bool:
        """Return the condition that the queue is closed in the end."""
        return self.script.disj(self.case.done[close] for close in self.closes)

    def _at_most(self, limit: int, at: int | None) -> Bool:
        """Return the condition that the queue has at most `limit` elements.

        The condition holds just before event `at`, or in the end for None. It counts
        enqueued elements and dequeues *not* done: at most `limit` plus the number of
        dequeues.
        """
        s = self.script

        def before(index: int) -> Bool:
            return s.conj((self.done(index), True if at is None else self.earlier(index, at)))

        present = [before(element) for element in self.elements if element != at]
        kept = [s.neg(before(take)) for take in self.takes if take != at]
        return s.at_most((*present, *kept), limit + len(kept))

    def has_space(self, at: int | None = None) -> Bool:
        """Return the condition that the queue is not full."""
        bounded = Axiom.CAPACITY in self.case.unfolding.axioms
        return not bounded or self._at_most(self.queue.capacity - 1, at)

    def has_element(self) -> Bool:
        """Return the condition that the queue is not empty in the end."""
        return self.script.neg(self._at_most(0, None))

    def constrain(self) -> None:
        """Add all constraints of the queue."""
        self._separate()
        self._match()
        if Axiom.FIFO in self.case.unfolding.axioms:
            self._oldest_first()
        s = self.script
        for put in self.puts:
            s.require(s.implies(self.done(put), self.has_space(put)))
            for close in self.closes:
                both = s.conj((self.done(put), self.done(close)))
                s.require(s.implies(both, self.earlier(put, close)))
        for size in self.sizes:
            self._size(size)
        self._contents()

    def _separate(self) -> None:
        """Require distinct positions of all events on the queue, so that counts are exact."""
        s = self.script
        for a, b in combinations((*self.puts, *self.takes, *self.sizes, *self.closes), 2):
            apart = s.disj((self.earlier(a, b), self.earlier(b, a)))
            s.require(s.implies(s.conj((self.done(a), self.done(b))), apart))

    def _match(self) -> None:
        """Require that each dequeue takes an element of its own that was enqueued before."""
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
        """Require that all older elements were taken before a taken element."""
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
        """Return the condition that an element was taken before event `at`, or (None) ever."""
        s = self.script
        return s.disj(
            s.conj((self.took[element, take], True if at is None else self.earlier(take, at)))
            for take in self.takes
            if take != at
        )

    def _size(self, size: int) -> None:
        """Require that a size equals the number of enqueues less the number of dequeues."""
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
        """Require that the final contents are those of the outcome, in order."""
        s = self.script
        wanted: Any = self.case.question.values.get(self.queue.name)
        if wanted is None:
            return
        stands: dict[tuple[int, int], Bool] = {}
        left = {e: s.conj((self.done(e), s.neg(self._gone(e, None)))) for e in self.elements}
        for element in self.elements:
            for place, each in enumerate(wanted):
                fits = is_value(each) and s.same(self._value(element), each)
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
