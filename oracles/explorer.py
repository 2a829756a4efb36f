"""The fast oracle: the reference's sets and verdicts, by search over states.

Two total orders that have done the same events, left the same memory, and read
the same values, as far as something still needs them, have the same futures:
the search goes on from one of them only. The verdict on a single outcome is
faster still, since the search leaves every path on which a read returns
another value than the outcome says.

The search and the arithmetic are C++ (``oracles/native``), written from the
semantics, not from the reference: with it they share what happens when
(`oracles.events`), nothing else.

References
----------
semantics.md, sections 2 to 4. Gibbons and Korach, "Testing Shared Memories",
SIAM J. Comput. 1997: the verdict on one outcome is NP-complete, and easy where
each read tells which write it saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Never

from corpus.ops import Kind, MomentumAttrs, RowsAttrs, SliceAttrs
from corpus.outcome import Outcome, Status, Verdict
from oracles import _explorer
from oracles.allowed import AllowedSet, ValueTooLarge
from oracles.events import Access, Join, Pure, Result, Stack, unfold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus.graph import LitmusTest, Node
    from oracles.allowed import Witness
    from oracles.events import Event, Token
    from oracles.model import Model


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may use before its answer is "unknown".

    Parameters
    ----------
    states : int
        States remembered; for a whole set also outcomes.
    memory_bytes : int
        For states and outcomes, roughly: looked at now and then.
    """

    states: int = 1_000_000
    memory_bytes: int = 1 << 30


DEFAULT_BUDGET: Final = Budget()
"""Some seconds of work."""
_NO_LIMIT: Final = Budget(1 << 62, 1 << 62)

_VERDICTS: Final = (Verdict.FORBIDDEN, Verdict.ALLOWED, Verdict.UNKNOWN)
# The core's numbers, in the order of its enums.
_STATUSES: Final = (Status.COMPLETED, Status.BLOCKED, Status.FAILED)
_ACCESSES: Final = {
    access: number
    for number, access in enumerate(
        (
            *(Access.READ, Access.WRITE, Access.UPDATE, Access.ACQUIRE, Access.RELEASE),
            *(Access.ENQUEUE, Access.DEQUEUE, Access.SIZE, Access.CLOSE),
        )
    )
}
_NO_VALUE: Final = (Kind.READ, Kind.QUEUE, Kind.SECTION)
"""Kinds of which the core needs no arithmetic."""
_CONST, _RESULT, _PURE, _STACK = 0, 1, 2, 5


def allowed_outcomes(test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> AllowedSet:
    """Outcomes of every total order that `model` allows.

    Returns
    -------
    AllowedSet
        Its witnesses are found when they are asked for, its outcomes made when
        they are looked at; their number is there at once.

    Raises
    ------
    ValueTooLarge
        If a value reaches 2**24 in an order looked at: the test is ill-formed.
    """
    return Explorer(test, model, budget).allowed_outcomes()


class Explorer:
    """A test under a model, ready for many questions.

    Parameters
    ----------
    test : LitmusTest
    model : Model
    budget : Budget
        For each question.

    Raises
    ------
    ValueTooLarge
        If a constant expression reaches 2**24.
    """

    def __init__(self, test: LitmusTest, model: Model, budget: Budget = DEFAULT_BUDGET) -> None:
        self.test = test
        self.model = model
        self.budget = budget
        self._names = test.names
        encoder = _Encoder(test, model)
        self.events = encoder.events
        self._nodes = encoder.nodes
        try:
            self._core = encoder.load()
        except _explorer.TooLarge as error:
            self._refuse(error)

    def judge(self, outcome: Outcome) -> Verdict:
        """The verdict on one outcome, by membership.

        Raises
        ------
        ValueTooLarge
            If a value reaches 2**24 in an order looked at. Few are looked at:
            that a test is well-formed the caller must know.
        """
        budget = self.budget
        try:
            answer = self._core.judge(*self._coded(outcome), budget.states, budget.memory_bytes)
        except _explorer.TooLarge as error:
            self._refuse(error)
        if answer == 1 and outcome.status is Status.FAILED:
            return Verdict.UNSPECIFIED
        return _VERDICTS[answer]

    def _coded(self, outcome: Outcome) -> tuple[_explorer._Pairs, int]:
        """The outcome's values, each name's, and its status, as the core takes them."""
        if outcome.status is Status.COMPLETED:
            return outcome.values, 0
        values = dict(outcome.values)
        pairs = tuple((name, values.get(name, False)) for name in self._names)
        return pairs, _STATUSES.index(outcome.status)

    def witness(self, outcome: Outcome) -> Witness | None:
        """A total order that yields the outcome; None if none was found."""
        return self._witness(outcome, self.budget)

    def _witness(self, outcome: Outcome, budget: Budget) -> Witness | None:
        try:
            answer, _, order = self._core.witness(
                *self._coded(outcome), budget.states, budget.memory_bytes
            )
        except _explorer.TooLarge as error:
            self._refuse(error)
        if _VERDICTS[answer] is not Verdict.ALLOWED:
            return None
        return tuple(self.events[i] for i in order)

    def allowed_outcomes(self) -> AllowedSet:
        """The whole set; see the function of the same name."""
        budget = self.budget
        try:
            found = self._core.all(budget.states, budget.memory_bytes)
        except _explorer.TooLarge as error:
            self._refuse(error)
        # Outcomes of parts that never meet multiply.
        count = min(len(found), budget.states)
        complete = found.complete and count == len(found)
        witnesses = _Witnesses(self, found, count)
        return AllowedSet(self.model.name, witnesses, 0, complete, found.states + 1)

    def _refuse(self, error: _explorer.TooLarge) -> Never:
        number, value = error.args
        node = self._nodes[number]
        raise ValueTooLarge(
            f"{node.name} ({node.op}) computes {value} in some total order; "
            "every magnitude must stay below 2**24"
        ) from None


class _Witnesses(Mapping[Outcome, "Witness"]):
    """Outcomes found, each with a total order that is searched when asked for."""

    def __init__(self, explorer: Explorer, found: _explorer.OutcomeSet, count: int) -> None:
        self.explorer = explorer
        self.found = found
        self.count = count
        self.outcomes: dict[Outcome, None] | None = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.made())

    def __contains__(self, outcome: object) -> bool:
        return outcome in self.made()

    def __getitem__(self, outcome: Outcome) -> Witness:
        if outcome not in self.made():
            raise KeyError(outcome)
        # Looks at fewer states than the search for the whole set did.
        witness = self.explorer._witness(outcome, _NO_LIMIT)
        assert witness is not None, outcome
        return witness

    def made(self) -> dict[Outcome, None]:
        """The outcomes themselves; made once, since most callers only count."""
        if self.outcomes is None:
            names = self.explorer._names
            self.outcomes = {}
            for i in range(self.count):
                status, values = self.found.outcome(i, names)
                self.outcomes[Outcome(values, _STATUSES[status])] = None
        return self.outcomes


class _Encoder:
    """An unfolding as the core takes it: numbers in place of names."""

    def __init__(self, test: LitmusTest, model: Model) -> None:
        self.test = test
        self.unfolding = unfold(test, model)
        self.events: tuple[Event, ...] = self.unfolding.events
        names = [v.name for v in test.variables]
        names += [queue.name for queue in test.queues]
        names += [mutex.name for mutex in test.mutexes]
        self.places = {name: place for place, name in enumerate(names)}
        self.initial = [test.initial(v) for v in test.variables]
        self.nodes: list[Node] = []  # by number of the op
        self.ops: list[_explorer._Op] = []
        self.numbers: dict[int, int] = {}  # a node's id, which is quicker than its hash

    def load(self) -> _explorer.Oracle:
        events = [self.event(event) for event in self.events]
        tokens = [self.token(token) for token in self.unfolding.tokens]
        queues = [(q.capacity, self.test.initial_elements(q)) for q in self.test.queues]
        observed = [token for _, token, _ in self.unfolding.observed]
        ended = [token for _, _, token in self.unfolding.observed]
        mutexes = len(self.test.mutexes)
        return _explorer.load(
            self.initial, queues, mutexes, self.ops, events, tokens, observed, ended
        )

    def event(self, event: Event) -> _explorer._Event:
        return (
            _ACCESSES[event.access],
            self.op(event.node),
            [self.places[name] for name in event.variables],
            [self.places[name] for name in event.node.resources],
            event.needs,
            event.after,
            event.operands,
            list(event.guards),
            event.part if "Many" in event.node.op else -1,
        )

    def token(self, token: Token) -> _explorer._Token:
        if isinstance(token, Result):
            return (_RESULT, -1, token.event, (), (), (), ())
        if isinstance(token, Join):
            return (_PURE, -1, -1, (), token.tokens, (), ())
        if isinstance(token, Stack):
            return (_STACK, -1, -1, (), (), (), token.events)
        assert isinstance(token, Pure)
        node = token.node
        if node.op == "NoOp":
            return (_PURE, -1, -1, (), token.inputs, token.waits, ())
        if node.op != "Const":
            return (_PURE, self.op(node), -1, (), token.inputs, token.waits, ())
        return (_CONST, -1, -1, self.test.constant(node), (), token.waits, ())

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
        name = "NoOp" if node.definition.kind in _NO_VALUE else node.op
        return (name, nesterov, tuple(rows), self.row_size(node), sizes)

    def row_size(self, node: Node) -> int:
        """Ints in one row of the node's variables."""
        if not node.resources:
            return 1
        place = self.places[node.resources[0]]
        if place >= len(self.initial):
            return 1
        shape = self.test.variables[place].shape
        return len(self.initial[place]) // shape[0] if shape else 1
