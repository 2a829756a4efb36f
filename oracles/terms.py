"""Symbolic terms for the axiomatic oracle, and the arithmetic of ops on them.

A term is a Python value if it is known, else SMT-LIB text. The outcome fixes most
values of a question, so that only a small rest goes to the solver.

References
----------
Barrett, Fontaine, Tinelli, "The SMT-LIB Standard", version 2.6: the text.
semantics.md, section 2; TensorFlow 2.21's documentation of each op: the
arithmetic. It shares no code with `litmusfuzz.oracles.arithmetic`, against which it is
tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litmusfuzz.corpus.ops import AccumulatorUse, MomentumAttrs, RowsAttrs, SliceAttrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from litmusfuzz.corpus.model import Node

Bool = bool | str
Int = int | str
Ints = tuple[Int, ...]
Shape = tuple[int, ...]


class Script:
    """SMT-LIB script: declarations, definitions and assertions.

    Equal terms share one name, so that the length of a script is linear in the number
    of distinct terms. The script is deterministic: the same question gives the same
    text.

    Attributes
    ----------
    impossible : bool
        True if an assertion is known to be false.
    """

    def __init__(self) -> None:
        self.impossible = False
        self._lines: list[str] = []
        self._required: set[str] = set()
        self._names: dict[str, str] = {}
        self._flags: dict[str, Bool] = {}  # ints that are 1 or 0: whether it is 1
        self._count = 0
        self._unknowns: set[str] = set()
        self._equals: dict[str, str] = {}  # unknowns that stand for terms

    @property
    def text(self) -> str:
        """The script as SMT-LIB text."""
        return "\n".join(self._lines)

    @property
    def empty(self) -> bool:
        """True if every assertion is known to be true."""
        return not self._required and not self.impossible

    def boolean(self) -> str:
        """Declare a new Boolean unknown."""
        return self._declare("b", "Bool")

    def integer(self, most: int | None = None) -> str:
        """Declare a new integer unknown; of 0 to `most`, if that is given."""
        name = self._declare("i", "Int")
        if most is not None:
            self._lines.append(f"(assert (and (<= 0 {name}) (<= {name} {most})))")
        return name

    def declare_integer(self, name: str) -> None:
        """Declare an integer unknown with a given name, distinct from generated names."""
        self._lines.append(f"(declare-const {name} Int)")

    def name_of(self, term: Int) -> Int:
        """A known int, or an unknown that equals the term."""
        if isinstance(term, int) or term in self._unknowns:
            return term
        name = self._equals.get(term)
        if name is None:
            name = self._equals[term] = self.integer()
            # A definition, not a demand: it holds for some value in every solution.
            self._lines.append(f"(assert (= {name} {term}))")
        return name

    def _declare(self, letter: str, sort: str) -> str:
        self._count += 1
        name = f"{letter}{self._count}"
        self._lines.append(f"(declare-const {name} {sort})")
        self._unknowns.add(name)
        return name

    def _named(self, letter: str, sort: str, text: str) -> str:
        name = self._names.get(text)
        if name is None:
            self._count += 1
            name = self._names[text] = f"{letter}{self._count}"
            self._lines.append(f"(define-fun {name} () {sort} {text})")
        return name

    def require(self, term: Bool) -> None:
        """Assert that `term` is true."""
        if isinstance(term, bool):
            self.impossible |= not term
        elif term not in self._required:
            self._required.add(term)
            self._lines.append(f"(assert {term})")

    def neg(self, term: Bool) -> Bool:
        """Not."""
        if isinstance(term, bool):
            return not term
        return term[5:-1] if term.startswith("(not ") else f"(not {term})"

    def conj(self, terms: Iterable[Bool]) -> Bool:
        """All of them."""
        left: dict[str, None] = {}
        for term in terms:
            if term is False:
                return False
            if isinstance(term, str):
                left[term] = None
        if len(left) < 2:
            return next(iter(left), True)
        return self._named("c", "Bool", f"(and {' '.join(left)})")

    def disj(self, terms: Iterable[Bool]) -> Bool:
        """At least one of them."""
        return self.neg(self.conj(self.neg(term) for term in terms))

    def implies(self, condition: Bool, term: Bool) -> Bool:
        """`term`, if `condition`."""
        return self.disj((self.neg(condition), term))

    def at_most(self, terms: Iterable[Bool], limit: int) -> Bool:
        """No more than `limit` of them."""
        left: list[str] = []
        for term in terms:
            if isinstance(term, str):
                left.append(term)
            else:
                limit -= term
        if limit < 0 or len(left) <= limit:
            return limit >= 0
        if limit == 0:
            return self.conj(self.neg(term) for term in left)
        return self._named("c", "Bool", f"((_ at-most {limit}) {' '.join(left)})")

    def exclusive(self, terms: Sequence[Bool]) -> None:
        """Assert that at most one of them is true."""
        self.require(self.at_most(terms, 1))

    def less(self, a: Int, b: Int) -> Bool:
        """a < b."""
        if isinstance(a, int) and isinstance(b, int):
            return a < b
        return self._named("c", "Bool", f"(< {_shown(a)} {_shown(b)})")

    def equal(self, a: Int, b: Int) -> Bool:
        """a = b."""
        if a == b:
            return True
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return False
        if isinstance(b, int) and a in self._flags:
            return {0: self.neg(self._flags[a]), 1: self._flags[a]}.get(b, False)
        return self._named("c", "Bool", f"(= {a} {_shown(b)})")

    def same(self, a: Sequence[Int], b: Sequence[Int]) -> Bool:
        """Element-wise equality of two values."""
        if len(a) != len(b):
            return False
        return self.conj(self.equal(x, y) for x, y in zip(a, b, strict=True))

    def choose(self, condition: Bool, then: Int, other: Int) -> Int:
        """`then` if `condition`, else `other`."""
        if isinstance(condition, bool):
            return then if condition else other
        if then == other:
            return then
        name = self._named("v", "Int", f"(ite {condition} {_shown(then)} {_shown(other)})")
        if (then, other) == (1, 0):
            self._flags[name] = condition
        return name

    def add(self, a: Int, b: Int) -> Int:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if 0 in (a, b):
            return b if a == 0 else a
        return self._named("v", "Int", f"(+ {_shown(a)} {_shown(b)})")

    def sub(self, a: Int, b: Int) -> Int:
        """a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if b == 0:
            return a
        return self._named("v", "Int", f"(- {_shown(a)} {_shown(b)})")

    def mul(self, a: Int, b: Int) -> Int:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if 0 in (a, b):
            return 0
        if 1 in (a, b):
            return b if a == 1 else a
        return self._named("v", "Int", f"(* {_shown(a)} {_shown(b)})")

    def larger(self, a: Int, b: Int) -> Int:
        """The larger one."""
        return self.choose(self.less(a, b), b, a)

    def smaller(self, a: Int, b: Int) -> Int:
        """The smaller one."""
        return self.choose(self.less(a, b), a, b)

    def flag(self, term: Bool) -> Int:
        """1 if it is true, else 0."""
        return self.choose(term, 1, 0)


def _shown(term: Int) -> str:
    """SMT-LIB has no negative literals."""
    return f"(- {-term})" if isinstance(term, int) and term < 0 else str(term)


class Arithmetic:
    """Arithmetic of ops on terms.

    It does not check magnitudes: the caller must know that no order makes a value of
    2**24, as for any question about a single outcome.
    """

    def __init__(self, script: Script) -> None:
        s = self.script = script
        self.binary: dict[str, Callable[[Int, Int], Int]] = {
            "AddV2": s.add,
            "Sub": s.sub,
            "Mul": s.mul,
            "Maximum": s.larger,
            "Minimum": s.smaller,
            "Less": lambda a, b: s.flag(s.less(a, b)),
            "Equal": lambda a, b: s.flag(s.equal(a, b)),
            "ReluGrad": lambda gradient, x: s.choose(s.less(0, x), gradient, 0),
        }
        self.scatters: dict[str, Callable[[Int, Int], Int]] = {
            "Update": lambda _, new: new,
            "Add": s.add,
            "Sub": s.sub,
            "Mul": s.mul,
            "Min": s.smaller,
            "Max": s.larger,
        }

    def pure(self, node: Node, inputs: Sequence[Ints], shapes: Sequence[Shape]) -> Ints:
        """Result of a pure node with operands.

        Parameters
        ----------
        inputs
            Values of its data inputs.
        shapes
            Their shapes; only MatMul needs them.
        """
        s = self.script
        if node.op == "Identity":
            return inputs[0]
        if node.op == "Neg":
            return tuple(s.sub(0, x) for x in inputs[0])
        if node.op == "Relu":
            return tuple(s.larger(x, 0) for x in inputs[0])
        if node.op == "Select":
            which, then, other = inputs
            chosen = [s.neg(s.equal(c, 0)) for c in _spread(which, len(then))]
            return tuple(map(s.choose, chosen, then, other))
        if node.op == "MatMul":
            a, b = inputs
            return self._product(a, b, shapes[0], shapes[1])
        return self._each(node.op, *inputs)

    def _each(self, op: str, a: Ints, b: Ints) -> Ints:
        length = max(len(a), len(b))
        return tuple(map(self.binary[op], _spread(a, length), _spread(b, length)))

    def _product(self, a: Ints, b: Ints, left: Shape, right: Shape) -> Ints:
        inner, columns = right
        made: list[Int] = []
        for row in range(left[0]):
            for column in range(columns):
                total: Int = 0
                for k in range(inner):
                    term = self.script.mul(a[row * inner + k], b[k * columns + column])
                    total = self.script.add(total, term)
                made.append(total)
        return tuple(made)

    def stored(
        self, node: Node, saw: Sequence[Ints], operands: Sequence[Ints], row: int
    ) -> tuple[Ints, ...]:
        """Return the values that a write or update stores in its variables.

        Parameters
        ----------
        saw
            Values that the update's reads saw, one for each variable.
        operands
            Values of its data inputs.
        row : int
            Ints in one row of a variable.
        """
        if isinstance(node.attrs, MomentumAttrs):
            return self._momentum(node, saw, operands, ahead=node.attrs.use_nesterov)
        if isinstance(node.attrs, (RowsAttrs, SliceAttrs)):
            return (self._scattered(node, saw[0], operands[0], row),)
        if node.op == "AssignVariableOp" or node.definition.accumulator is AccumulatorUse.STEP:
            return (operands[0],)
        if node.definition.accumulator is AccumulatorUse.APPLY:
            return self._accumulated(saw, operands)
        if node.op == "ResourceApplyGradientDescent":
            rate, gradient = operands
            return (self._each("Sub", saw[0], self._each("Mul", rate, gradient)),)
        change = {"AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub"}[node.op]
        return (self._each(change, saw[0], operands[0]),)

    def _accumulated(self, saw: Sequence[Ints], operands: Sequence[Ints]) -> tuple[Ints, ...]:
        """A gradient is added and counted, unless its local step is less than the step."""
        s = self.script
        total, (count,), (step,) = saw
        *local, gradient = operands
        stale = bool(local) and s.less(local[0][0], step)
        added = self._each("AddV2", total, gradient)
        return (
            tuple(s.choose(stale, old, new) for old, new in zip(total, added, strict=True)),
            (s.choose(stale, count, s.add(count, 1)),),
            (step,),
        )

    def _momentum(
        self, node: Node, saw: Sequence[Ints], operands: Sequence[Ints], *, ahead: bool
    ) -> tuple[Ints, ...]:
        """Momentum accumulates gradients and steps by rate times the sum; Keras sums steps."""
        (variable, sum_), (rate, gradient, decay) = saw, operands
        step = self._each("Mul", rate, gradient)
        sum_ = self._each("Mul", sum_, decay)
        if node.op == "ResourceApplyKerasMomentum":
            sum_ = self._each("Sub", sum_, step)
            moved = self._each("Sub", self._each("Mul", sum_, decay), step) if ahead else sum_
            return self._each("AddV2", variable, moved), sum_
        sum_ = self._each("AddV2", sum_, gradient)
        moved = self._each("Mul", sum_, rate)
        if ahead:
            moved = self._each("AddV2", self._each("Mul", moved, decay), step)
        return self._each("Sub", variable, moved), sum_

    def _scattered(self, node: Node, saw: Ints, updates: Ints, row: int) -> Ints:
        """Scatter row by row, in the order of the indices: duplicate rows accumulate."""
        kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
        change = self.scatters["Update" if isinstance(node.attrs, SliceAttrs) else kind]
        made = list(saw)
        places = touched(node, row)
        for place, update in zip(places, _spread(updates, len(places)), strict=True):
            made[place] = change(made[place], update)
        return tuple(made)


def touched(node: Node, row: int) -> list[int]:
    """Return the positions in a variable's value that a gather reads or a scatter writes."""
    rows: Iterable[int] = ()
    if isinstance(node.attrs, RowsAttrs):
        rows = node.attrs.indices
    elif isinstance(node.attrs, SliceAttrs):
        rows = node.attrs.rows
    return [each * row + lane for each in rows for lane in range(row)]


def _spread(value: Ints, length: int) -> Ints:
    """Broadcast a scalar."""
    return value * length if len(value) == 1 else value
