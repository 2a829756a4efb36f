"""The fast oracle: allowed sets and verdicts by search over states.

Two prefixes of total orders with the same events done, the same memory, and the same
values still in use have the same futures, so the search continues from one of them
only. The verdict on a single outcome is faster still: the search abandons every path
on which a read returns another value than the outcome has.

The search and the arithmetic are C++ (``oracles/native``), written independently of
the reference oracle. Both share only the unfolding (`litmusfuzz.oracles.events`).

References
----------
semantics.md, sections 2 to 4. Gibbons and Korach, "Testing Shared Memories",
SIAM J. Comput. 1997: the verdict on one outcome is NP-complete, and easy where
the value of each read identifies the write that it saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Never

from litmusfuzz.corpus.ops import AccumulatorUse, Kind, MomentumAttrs, RowsAttrs, SliceAttrs
from litmusfuzz.corpus.outcome import Outcome, Status, Verdict
from litmusfuzz.corpus.pure.definition import Fails, Undefined
from litmusfuzz.oracles import _explorer, sequential
from litmusfuzz.oracles.allowed import AllowedSet
from litmusfuzz.oracles.arithmetic import no_value
from litmusfuzz.oracles.bounds import has_small_values
from litmusfuzz.oracles.errors import TestTooLarge, ValueTooLarge
from litmusfuzz.oracles.events import (
    Access,
    Finished,
    Gathered,
    Held,
    Join,
    Known,
    Pick,
    Pure,
    Result,
    Seen,
    Stack,
    Stored,
    has_value,
    strictnesses,
    unfold,
)
from litmusfuzz.oracles.model import Axiom
from litmusfuzz.oracles.question import Sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.oracles.allowed import Witness
    from litmusfuzz.oracles.errors import NoAllowedSet
    from litmusfuzz.oracles.events import Check, Event, Strictness, Token, Unfolding
    from litmusfuzz.oracles.model import Model


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search; past them the answer is "unknown".

    Parameters
    ----------
    states : int
        Largest number of stored states; for an allowed set also of outcomes.
    memory_bytes : int
        Approximate memory for states and outcomes.
    plain : int
        States after which the search drops values that no outcome depends on, and takes
        interchangeable threads in one order, where it can (``live.cpp`` and ``symmetry.cpp`` in
        ``oracles/native/core``): to find out takes as long as some thousand states. Tests
        compare 0, from the start, with `NEVER`.
    """

    states: int = 1_000_000
    memory_bytes: int = 1 << 30
    plain: int = 20_000


NEVER: Final = 1 << 62
"""More states than any budget has."""


DEFAULT_BUDGET: Final = Budget()
"""A few seconds of work."""
_NO_LIMIT: Final = Budget(NEVER, NEVER)

# Numbers of the C++ core, in the order of its enums.
_FORBIDDEN, _ALLOWED, _UNKNOWN = range(3)
_STATUSES: Final = (Status.COMPLETED, Status.BLOCKED, Status.FAILED)
_ACCESSES: Final = {
    access: number
    for number, access in enumerate(
        (
            *(Access.READ, Access.WRITE, Access.UPDATE, Access.ACQUIRE, Access.RELEASE),
            *(Access.ENQUEUE, Access.DEQUEUE, Access.SIZE, Access.CLOSE),
            *(Access.SNAPSHOT, Access.WRITE_BACK),
        )
    )
}
_CHECK: Final = len(_ACCESSES)
_STATE: Final = _CHECK + 1
"""Number of the access of `Kind.STATE`."""
_LINE: Final = {Access.JOIN: _STATE + 1, Access.TAKE: _STATE + 2}
"""Numbers of the accesses to the line of an accumulator."""
_OPTIONAL: Final = -2
_NO_VALUE: Final = (Kind.READ, Kind.STATE, Kind.QUEUE, Kind.SECTION, Kind.CLUSTER)
"""Kinds of op that need no arithmetic."""
_ACCUMULATOR_OPS: Final = {
    AccumulatorUse.APPLY: "ResourceAccumulatorApplyGradient",
    AccumulatorUse.TAKE: "NoOp",
    AccumulatorUse.COUNT: "NoOp",
    AccumulatorUse.STEP: "AssignVariableOp",
}
"""Arithmetic of an op on an accumulator's cells."""
_NO_CAPACITY: Final = 1 << 30
_CONST, _RESULT, _PURE, _PICK, _FINISHED, _HELD, _STACK, _SEEN, _STORED = range(9)


def allowed_outcomes(test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> AllowedSet:
    """Outcomes of every total order that `model` allows.

    Returns
    -------
    AllowedSet
        Witnesses and outcomes are computed on access; their number is known at once.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in a visited order: the test is ill-formed.
    """
    return Explorer(test, model, budget).allowed_outcomes()


class Explorer:
    """The explorer of one test under one model; it answers many questions.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    budget : Budget
        Limit for each question.
    loosest : bool
        Leave out outcomes that block only if an executor is stricter with a loop or
        conditional than the model requires (semantics.md, 3, "Blocked").

    Raises
    ------
    ValueTooLarge
        If a constant expression reaches 2**24.
    """

    def __init__(
        self,
        test: LitmusTest,
        model: Model,
        budget: Budget = DEFAULT_BUDGET,
        *,
        loosest: bool = False,
    ) -> None:
        # The only gradients that are allowed, by key.
        test, self.gradients = sequential.gradients_apart(test, model)
        self.test = test
        self.model = model
        self.budget = budget
        self._names = test.names
        self._sizes = Sizes(test)
        self._cores: list[_Core] = []
        self._too_large = False
        # A stricter executor yields no other outcomes, unless some op can block.
        self._strict = strictnesses(test, model) if test.blocks and not loosest else iter([{}])
        try:
            self._core(0)
        except TestTooLarge:
            self._too_large = True

    @property
    def unfolding(self) -> Unfolding | None:
        """The unfolding under the loosest choice of strictness; None if it is too large."""
        return None if self._too_large else self._cores[0].unfolding

    def _core(self, number: int) -> _Core | None:
        """Return the test under one choice of strictness, loosest first; None past the last.

        Each is loaded on first use: only a blocked outcome needs more than the loosest.
        """
        while len(self._cores) <= number:
            strictness = next(self._strict, None)
            if strictness is None:
                return None
            encoder = _Encoder(self.test, self.model, strictness)
            # Loading a choice takes as long as some states: it counts, but for the loosest.
            parts = encoder.unfolding.parts if self._cores else 0
            loosest = self._cores[0] if self._cores else None
            slowness = loosest.slowness if loosest else encoder.slowness()
            try:
                oracle = encoder.load()
            except _explorer.TooLarge as error:
                _refuse(error, encoder.nodes, encoder.errors)
            made = (encoder.unfolding, encoder.nodes, encoder.errors)
            core = _Core(oracle, *made, parts, slowness)
            self._cores.append(core)
        return self._cores[number]

    def _searches(self, outcome: Outcome, budget: Budget) -> Iterator[_Search]:
        """Search for the outcome under each choice that may yield it, within one budget."""
        if not self._sizes.fit(outcome):
            return
        values, status = self._coded(outcome)
        left = budget.states
        for number in range(1 if outcome.status is not Status.BLOCKED else 1 << 30):
            if self._too_large or left <= 0:
                yield _Search(_UNKNOWN, (), None)
                return
            core = self._core(number)
            if core is None:
                return
            left -= core.parts
            try:
                answer, states, order = core.oracle.witness(
                    values, status, max(0, left) // core.slowness, budget.memory_bytes, budget.plain
                )
            except _explorer.TooLarge as error:
                core.refuse(error)
            left -= states * core.slowness
            yield _Search(answer, order, core)

    def judge(self, outcome: Outcome) -> Verdict:
        """Return the verdict on one outcome.

        Raises
        ------
        ValueTooLarge
            If a value reaches 2**24 in a visited order. The search visits few orders:
            the caller must know that the test is well-formed.
        """
        verdict = Verdict.FORBIDDEN
        plain = sequential.with_those_gradients(outcome, self.gradients)
        if plain is None:
            return verdict
        outcome = plain
        for search in self._searches(outcome, self.budget):
            if search.answer == _ALLOWED:
                failed = outcome.status is Status.FAILED
                return Verdict.UNSPECIFIED if failed else Verdict.ALLOWED
            if search.answer == _UNKNOWN:
                verdict = Verdict.UNKNOWN
        return verdict

    def _coded(self, outcome: Outcome) -> tuple[_explorer._Pairs, int]:
        """Return the outcome's values by name, and its status, encoded for the core."""
        if outcome.status is Status.COMPLETED:
            return outcome.values, 0
        values = dict(outcome.values)
        pairs = tuple((name, values.get(name, False)) for name in self._names)
        return pairs, _STATUSES.index(outcome.status)

    def witness(self, outcome: Outcome) -> Witness | None:
        """Return a total order that yields the outcome, or None if none was found."""
        plain = sequential.with_those_gradients(outcome, self.gradients)
        return None if plain is None else self._witness(plain, self.budget)

    def _witness(self, outcome: Outcome, budget: Budget) -> Witness | None:
        for search in self._searches(outcome, budget):
            if search.answer == _ALLOWED and search.core is not None:
                events = search.core.unfolding.events
                return tuple(events[i] for i in search.order if i < len(events))
        return None

    def allowed_outcomes(
        self, budget: Budget | None = None, progress: Callable[[int], object] | None = None
    ) -> AllowedSet:
        """Return the allowed set; see the function of the same name.

        Parameters
        ----------
        budget : Budget, optional
            Limit for this question; that of the explorer by default.
        progress : callable, optional
            Called with the number of states so far, some hundred times a second at most.
        """
        budget = budget or self.budget
        sets: list[_explorer.OutcomeSet] = []
        states, left = 0, 0 if self._too_large else budget.states
        while left > 0 and (core := self._core(len(sets))) is not None:
            left -= core.parts
            try:
                few = max(0, left) // core.slowness
                sets.append(self._all(core, few, budget, progress))
            except _explorer.TooLarge as error:
                core.refuse(error)
            left -= sets[-1].states * core.slowness
            states += sets[-1].states
        most = min(budget.states, budget.memory_bytes // self._outcome_bytes())
        witnesses: Mapping[Outcome, Witness] = _Witnesses(self, sets, most)
        complete = bool(sets) and all(found.complete for found in sets)
        complete = complete and self._core(len(sets)) is None
        # The outcomes of independent components multiply.
        complete = complete and max(map(len, sets)) <= most
        if self.gradients:  # there is one outcome
            witnesses = {
                sequential.differentiated(outcome, self.gradients): witness
                for outcome, witness in witnesses.items()
            }
        return AllowedSet(self.model.name, witnesses, 0, complete, max(1, states))

    def _all(
        self,
        core: _Core,
        states: int,
        budget: Budget,
        progress: Callable[[int], object] | None,
    ) -> _explorer.OutcomeSet:
        """Return the outcomes under one choice of strictness.

        A value that no outcome depends on may be too large: only where none is, the search
        may drop such values.
        """
        few = min(states, budget.plain)
        heard = () if progress is None else (progress,)
        found = core.oracle.all(few, budget.memory_bytes, NEVER, *heard)
        if found.complete or few == states:
            return found
        small = has_small_values(self.test, self.model, core.unfolding)
        plain = budget.plain if small else NEVER
        return core.oracle.all(states, budget.memory_bytes, plain, *heard)

    def _outcome_bytes(self) -> int:
        """Memory for one outcome as an object, about."""
        return 200 + 112 * len(self._names) + 8 * self._sizes.ints


class _Search(NamedTuple):
    """Answer of one search; if it is allowed, the events of a witness."""

    answer: int
    order: Sequence[int]
    core: _Core | None


@dataclass(frozen=True, slots=True)
class _Core:
    """A test loaded under one choice of strictness.

    `parts` is what loading it costs, and `slowness` what one of its states costs, in states of
    a small test.
    """

    oracle: _explorer.Oracle
    unfolding: Unfolding
    nodes: list[Node]
    errors: Mapping[str, NoAllowedSet]
    parts: int
    slowness: int

    def refuse(self, error: _explorer.TooLarge) -> Never:
        """Raise `ValueTooLarge` or `OpFails` with the name of the node."""
        _refuse(error, self.nodes, self.errors)


def _refuse(
    error: _explorer.TooLarge, nodes: Sequence[Node], errors: Mapping[str, NoAllowedSet]
) -> Never:
    """Raise `ValueTooLarge` or `OpFails` as the other oracles do."""
    number, value = error.args
    stored = errors.get(nodes[number].name)
    if stored is not None:
        # A new one: through its traceback the stored one would keep what holds it.
        raise type(stored)(*stored.args) from None
    raise ValueTooLarge(
        f"{nodes[number].name} ({nodes[number].op}) computes {value} in some total order; "
        "every magnitude must stay below 2**24"
    ) from None


class _Witnesses(Mapping[Outcome, "Witness"]):
    """Outcomes found, each with a total order that is searched on access."""

    def __init__(self, explorer: Explorer, sets: Sequence[_explorer.OutcomeSet], most: int) -> None:
        self.explorer = explorer
        self.sets = sets
        self.most = most
        self.outcomes: dict[Outcome, None] | None = None

    def __len__(self) -> int:
        if len(self.sets) == 1:
            return min(len(self.sets[0]), self.most)
        return len(self.made())

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.made())

    def __contains__(self, outcome: object) -> bool:
        return outcome in self.made()

    def __getitem__(self, outcome: Outcome) -> Witness:
        if outcome not in self.made():
            raise KeyError(outcome)
        # Visits fewer states than the search for the whole set.
        witness = self.explorer._witness(outcome, _NO_LIMIT)
        assert witness is not None, outcome
        return witness

    def made(self) -> dict[Outcome, None]:
        """Return the outcomes; computed on first use, since most callers only count."""
        if self.outcomes is None:
            names = self.explorer._names
            self.outcomes = {}
            for found in self.sets:
                for i in range(min(len(found), self.most)):
                    status, values = found.outcome(i, names)
                    self.outcomes[Outcome(values, _STATUSES[status])] = None
        return self.outcomes


class _Encoder:
    """Encoder of an unfolding for the core: numbers in place of names."""

    def __init__(
        self, test: LitmusTest, model: Model, strictness: Mapping[str, Strictness]
    ) -> None:
        self.test = test
        self.unfolding = unfold(test, model, strictness)
        self.events: tuple[Event, ...] = self.unfolding.events
        names = [v.name for v in (*test.variables, *test.cells)]
        names += [queue.name for queue in test.queues]
        names += [mutex.name for mutex in test.mutexes]
        names += [name for each in test.accumulators for name in (each.step.name, each.line)]
        self.places = {name: place for place, name in enumerate(names)}
        self.initial = [test.initial(v) for v in (*test.variables, *test.cells)]
        self.nodes: list[Node] = []  # by number of the op
        self.ops: list[_explorer._Op] = []
        self.errors: dict[str, NoAllowedSet] = {}  # by node: why it has no value in some order
        # By a node's id, which is quicker than its hash.
        self.numbers: dict[int, int] = {}
        self.pure: dict[int, tuple[int, int, tuple[int, ...]]] = {}  # what `coded` returns

    def load(self) -> _explorer.Oracle:
        events = [self.event(number, event) for number, event in enumerate(self.events)]
        events += [self.check(check) for check in self.unfolding.checks]
        tokens = [self.token(token) for token in self.unfolding.tokens]
        axioms = self.unfolding.axioms
        queues = [
            (
                q.capacity if Axiom.CAPACITY in axioms else _NO_CAPACITY,
                self.test.initial_elements(q),
            )
            for q in self.test.queues
        ]
        observed = [token for _, token, _ in self.unfolding.observed]
        ended = [token for _, _, token in self.unfolding.observed]
        # As a mutex, the step and the line of an accumulator are 0 at first, and not shown.
        hidden = len(self.test.mutexes) + 2 * len(self.test.accumulators)
        return _explorer.load(
            *(self.initial, queues, hidden, self.ops, events, tokens, observed, ended),
            Axiom.FIFO in axioms,
            Axiom.PREDICATES not in axioms,
        )

    def slowness(self) -> int:
        """Work for one state, in that for a state of a small test.

        In each state the core looks at each event's set of earlier events, and computes tokens:
        all of them where data decides what happens.
        """
        count, parts, ints = len(self.events), self.unfolding.parts, self.unfolding.ints
        if not any(event.guards for event in self.events):
            parts, ints = parts // max(1, count), ints // max(1, count)
        return 1 + count * (count // 64) // 1024 + (parts + ints) // 16384

    def event(self, number: int, event: Event) -> _explorer._Event:
        access = _LINE.get(event.access) or _ACCESSES[event.access]
        if event.node.definition.kind is Kind.STATE:
            access = _STATE
        part = event.part if event.node.definition.several else -1
        if event.access in _LINE:  # the number of the join, from 1
            part = 1 + (event.after[0] if event.access is Access.TAKE else number)
        return (
            access,
            self.op(event.node),
            [self.places[name] for name in event.variables],
            [self.places[name] for name in event.node.resources],
            event.needs,
            event.after,
            event.operands,
            list(event.guards),
            part,
        )

    def check(self, check: Check) -> _explorer._Event:
        """An event of the core alone, which no witness shows."""
        token = self.unfolding.tokens[check.token]
        assert isinstance(token, Pure)
        operands, part = (check.token,), -1 if check.needed else _OPTIONAL
        op = self.op(token.node)
        return (_CHECK, op, (), (), operands, (), operands, list(check.guards), part)

    def token(self, token: Token) -> _explorer._Token:
        if type(token) is Pure:
            code, op, value = self.pure.get(id(token.node)) or self.coded(token.node)
            return (code, op, -1, value, token.inputs, token.waits, ())
        if type(token) is Result:
            return (_RESULT, -1, token.event, (), (), (), ())
        if type(token) is Join:
            return (_PURE, -1, -1, (), token.tokens, (), ())
        if type(token) is Stack:
            return (_STACK, -1, -1, (), (), (), token.events)
        if type(token) is Pick:
            return (_PICK, -1, -1, (), (token.predicate, token.then, token.other), (), ())
        if type(token) is Held:
            return (_HELD, -1, -1, (), (token.token,), token.waits, ())
        if type(token) is Finished:
            return (_FINISHED, -1, -1, (), (), (), token.events)
        if type(token) is Known:
            return (_CONST, -1, -1, token.value, (), (), ())
        if type(token) is Seen:
            read = self.events[token.event].variables
            sizes = [self.test.size_of(self.test.type_of(name).shape) for name in read]
            part = (sum(sizes[: token.place]), sizes[token.place])
            return (_SEEN, -1, token.event, part, (), (), ())
        if type(token) is Gathered:
            return (_PURE, self.op(token.node), -1, (), (token.token,), (), ())
        if type(token) is Stored:
            part = (token.place, len(token.seen))
            inputs = token.seen + token.operands
            return (_STORED, self.op(token.node), -1, part, inputs, (), ())
        raise AssertionError(token)

    def coded(self, node: Node) -> tuple[int, int, tuple[int, ...]]:
        """What the tokens of a pure node have in common."""
        found: tuple[int, int, tuple[int, ...]] = (_PURE, -1, ())
        if node.definition.constant:
            found = (_CONST, -1, self.test.constant(node))
        elif has_value(node):
            found = (_PURE, self.op(node), ())
        self.pure[id(node)] = found
        return found

    def op(self, node: Node) -> int:
        number = self.numbers.get(id(node))
        if number is None:
            number = self.numbers[id(node)] = len(self.ops)
            self.nodes.append(node)
            self.ops.append(self.make(node))
        return number

    def make(self, node: Node) -> _explorer._Op:
        rows: Sequence[int] = ()
        sizes = (0, 0, 0)
        attrs = node.attrs
        if isinstance(attrs, RowsAttrs):
            rows = attrs.indices
        elif isinstance(attrs, SliceAttrs):
            rows = list(attrs.rows)
        elif node.op == "MatMul":
            (n, k), (_, m) = (self.test.type_of(name).shape for name in node.inputs)
            sizes = (n, k, m)
        nesterov = isinstance(attrs, MomentumAttrs) and attrs.use_nesterov
        nothing = node.definition.kind in _NO_VALUE  # unless a function is given
        name = "NoOp" if nothing else node.op
        if node.definition.accumulator is not None:
            name = _ACCUMULATOR_OPS[node.definition.accumulator]
        function = None
        if node.definition.meaning is not None:
            function = self.function(node)
        return (name, nesterov, tuple(rows), self.row_size(node), sizes, function)

    def function(self, node: Node) -> _explorer._Function:
        """An op that the core lacks: its result, or the node's name if it has none."""
        call, errors = self.test.call(node), self.errors

        def evaluate(operands: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | str | None:
            try:
                return call.evaluate(operands)
            except Fails:
                return None
            except Undefined as error:
                errors[node.name] = no_value(node, error)
            return node.name

        return evaluate

    def row_size(self, node: Node) -> int:
        """Ints in one row of the node's variables."""
        if not node.resources:
            return 1
        place = self.places[node.resources[0]]
        if place >= len(self.test.variables):
            return 1
        shape = self.test.variables[place].shape
        return self.test.size_of(shape) // shape[0] if shape else 1
