"""Standalone Python script of a test over JAX's references, which needs JAX and NumPy only.

The walk that makes a program of a test makes the script too, over a system whose values are
expressions and whose ops are lines of Python: those that `Lowering` and `Program` execute. The
script prints what program order gives and what it observes, and exits 1 if these differ. One that
shows an exception observes that, and ends in its traceback.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from keyword import iskeyword
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from litmusfuzz.corpus.ops import MomentumAttrs
from litmusfuzz.corpus.outcome import TORN
from litmusfuzz.fuzz.executors.jax_refs.inlining import inlined
from litmusfuzz.fuzz.executors.jax_refs.pure_ops import lowered
from litmusfuzz.fuzz.executors.jax_refs.space import ALIASES, COPIES, PIECE
from litmusfuzz.fuzz.executors.jax_refs.written import (
    AROUND,
    COMBINE,
    FORWARD,
    derivative,
)
from litmusfuzz.fuzz.executors.jax_refs.written_values import MODULES, Text
from litmusfuzz.fuzz.executors.traced.inputs import (
    array_of,
    constants_of,
    contents_of,
    distinct,
    fed_to,
    key_of,
    observed_of,
    rows_of,
    slice_of,
)
from litmusfuzz.fuzz.executors.traced.walk import Aliases, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from litmusfuzz.corpus.model import LitmusTest, Node, Run
    from litmusfuzz.corpus.outcome import Outcome
    from litmusfuzz.fuzz.executors.jax_refs.space import Settings
    from litmusfuzz.fuzz.executors.traced.pure_uses import PureUse
    from litmusfuzz.fuzz.executors.traced.walk import BodyCode, LoopCode

Shape = tuple[int, ...]

_TAKEN: Final = ("a", "c", "f", "g", "i", "k", "n", "v", "jax", "jnp", "np", "sys", "export")
_TAKEN_TOO: Final = ("expected", "observed", "found", "refs", "by", "weights", "gradients")
_DEVICES: Final = ("P", "Mesh", "NamedSharding", "mesh", "mapped", "placed")
_BUILTINS: Final = ("isinstance", "print", "range", "sum", "SystemExit")
_EAGER, _MAYBE, _TRACED = range(3)
"""Whether Python code can look at a value: always; unless it is traced; never."""
_HOOK: Final = (
    "sys.excepthook = lambda kind, *e:"
    " (print('observed', kind.__name__), sys.__excepthook__(kind, *e))"
)
"""Prints what exception is observed, and its traceback."""
END: Final = re.compile(r"^expected (.*)\nobserved (.*)\Z", re.MULTILINE)
"""How a script ends."""


def script(
    test: LitmusTest,
    settings: Settings,
    expected: Outcome,
    title: str,
    *,
    dtypes: bool = False,
    place: int | None = None,
    fails: bool = False,
) -> str:
    """The text of a script.

    Parameters
    ----------
    test : LitmusTest
    settings : Settings
    expected : Outcome
        The single outcome of the test.
    title : str
        The first line of its docstring.
    dtypes : bool
        Show the values' dtypes too: a value of another dtype is torn.
    place : int, optional
        Execute the program once, with the test's own contents in this copy of a batch. By default
        it is executed until it shows another outcome, in every copy, or else twice.
    fails : bool
        It shows an exception, whatever the outcome is where JAX raises none.

    Raises
    ------
    Refused
        If the test is no program of one thread.
    """
    return _Script(test, settings, place, fails=fails).text(expected, title, dtypes=dtypes)


class _Lines:
    """Lines of Python, with names that are each used once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self._names = Counter((*_TAKEN, *_TAKEN_TOO, *_DEVICES, *_BUILTINS))
        self.shapes: dict[str, Shape] = {}
        """Of references and values, by the expressions for them."""

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def shape(self, expression: str) -> Shape:
        """The shape of a value or reference. A handle, which is None, counts as a scalar."""
        return () if expression is None else self.shapes[expression]

    def name(self, like: str, shape: Shape = ()) -> str:
        """A name that nothing else has."""
        name = re.sub(r"\W", "_", like)
        if not name.isidentifier() or iskeyword(name):
            name = f"x_{name}"
        while self._names[name]:
            self._names[name] += 1
            name += f"_{self._names[name] - 1}"
        self._names[name] += 1
        self.shapes[name] = shape
        return name

    def let(self, like: str, expression: str, shape: Shape) -> str:
        """A name for the value of an expression."""
        name = self.name(like, shape)
        self.line(f"{name} = {expression}")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1


class _System(_Lines):
    """Python's text as a traced system (`traced.walk.System`); see `Lowering` for each method."""

    def __init__(self, test: LitmusTest, settings: Settings) -> None:
        super().__init__()
        self.test, self.settings = test, settings
        self.sight = _EAGER
        self.traced = set[str]()
        """References and values that are traced in any case."""

    def shape_of(self, name: str) -> Shape:
        return tuple(self.test.type_of(name).shape)

    # --- ops -----------------------------------------------------------------------------

    def pure(self, use: PureUse, operands: Sequence[str]) -> str:
        node = use.node
        if node.op == "Identity":
            return operands[0]
        text = str(lowered(MODULES, use, [Text(each) for each in operands]))
        name = self.let(node.name, text, self.shape_of(node.name))
        self.traced.update([name] if not self.traced.isdisjoint(operands) else ())
        return name

    def read(self, node: Node, reference: str, rows: str | None) -> str:
        shape = self.shape(reference)
        how = self.settings.reads
        if rows is not None:
            text = self.rows(node, reference, rows)
        elif how == "get":
            text = f"jax.ref.get({reference})"
        elif how == "pieces" and shape and shape[0] > 1:
            text = f"jnp.concatenate([{reference}[:1], {reference}[1:]])"
        else:
            text = f"{reference}.at[...][...]" if shape and how == "view" else f"{reference}[...]"
        name = self.let(node.name, text, self.shape_of(node.name))
        self.traced.update([name] if reference in self.traced else ())
        return name

    def rows(self, node: Node, reference: str, rows: str) -> str:
        numbers, (axes, shape) = rows_of(node), self.places(node, rows)
        sizes, lanes = self.shape(reference)[: len(axes)], self.shape(reference)[len(axes) :]
        how = self.settings.indices
        own = len(shape) == 1 or not (shape or how == "beyond")
        flat = axes if own else [f"{each}.reshape(-1)" for each in axes]
        if how == "scalar" and shape:
            each = _as_index([f"{axis}[i]" for axis in flat])
            text = f"jnp.stack([{reference}[{each}] for i in range({prod(shape)})])"
        elif how == "slice" and numbers and (found := slice_of(numbers)):
            text = f"{reference}[{_colons(found)}]"
        else:
            text = f"{reference}[{self.indices(numbers, flat, sizes, read=True)}]"
        return text if own else f"{text}.reshape({(*shape, *lanes)})"

    def places(self, node: Node, rows: str) -> tuple[Sequence[str], Shape]:
        """The places that an op names, by axis, and their shape."""
        if (numbers := rows_of(node)) is not None:
            return (rows,), (len(numbers),)
        shape = self.shape(rows)
        if not node.definition.nd:
            return (rows,), shape
        before = "" if len(shape) == 1 else "..., "
        return [f"{rows}[{before}{axis}]" for axis in range(shape[-1])], shape[:-1]

    def indices(
        self, numbers: Sequence[int] | None, axes: Sequence[str], sizes: Shape, *, read: bool
    ) -> str:
        return _as_index(self.by_axis(numbers, axes, sizes, read=read))

    def by_axis(
        self, numbers: Sequence[int] | None, axes: Sequence[str], sizes: Shape, *, read: bool
    ) -> list[str]:
        """The index of `index` for each axis that an op names places of."""
        return [
            self.index(numbers, rows, size, read=read)
            for rows, size in zip(axes, sizes, strict=True)
        ]

    def index(self, numbers: Sequence[int] | None, rows: str, size: int, *, read: bool) -> str:
        how = self.settings.indices
        if how == "static" and numbers:
            return f"np.array({list(numbers)}, np.int32)"
        if how == "negative":
            return f"{rows} - {size}"
        if how == "beyond" and read and "gradients" not in self.test.features:
            return f"jnp.where({rows} == {size - 1}, {rows} + 2, {rows})"
        return rows

    def write(self, node: Node, reference: str, value: str) -> None:
        del node
        shape = self.shape(reference)
        if self.settings.writes == "pieces" and shape and shape[0] > 1:
            value = self.let("w", value, shape)
            self.line(f"{reference}[1:] = {value}[1:]")
            self.line(f"{reference}[:1] = {value}[:1]")
        else:
            self._stored(reference, "...", value)

    def _stored(self, reference: str, index: str, value: str) -> None:
        how = self.settings.writes
        if how == "linked":
            value = f"{value} + 0 * {reference}[{index}]"
        if how in ("set", "swap"):
            self.line(f"jax.ref.{how}({reference}, {_argument(index)}, {value})")
        else:
            self.line(f"{reference}[{index}] = {value}")

    def update(
        self, node: Node, references: Sequence[str], operands: Sequence[str], rows: str | None
    ) -> None:
        if isinstance(node.attrs, MomentumAttrs):
            self._momentum(node, node.attrs, references, operands)
            return
        (reference,) = references
        shape = self.shape(reference)
        if rows is not None:
            self.scatter(node, reference, operands[0], rows)
        elif node.op == "AssignAddVariableOp":
            self.add(reference, "...", shape, operands[0], self.shape(operands[0]))
        elif node.op == "AssignSubVariableOp":
            self.add(reference, "...", shape, f"-{operands[0]}", self.shape(operands[0]))
        else:
            alpha, delta = operands
            self.add(reference, "...", shape, f"-({alpha} * {delta})", self.shape(delta))

    def _momentum(
        self, node: Node, attrs: MomentumAttrs, references: Sequence[str], operands: Sequence[str]
    ) -> None:
        shape = self.shape(references[0])
        var, accum = (self.let("w", f"{each}[...]", shape) for each in references)
        rate, grad, momentum = operands
        if node.op == "ResourceApplyKerasMomentum":
            accum = self.let("w", f"{accum} * {momentum} - {rate} * {grad}", shape)
            more = f"({accum} * {momentum} - {rate} * {grad})" if attrs.use_nesterov else accum
            var = self.let("w", f"{var} + {more}", shape)
        else:
            accum = self.let("w", f"{accum} * {momentum} + {grad}", shape)
            nesterov = f"({grad} * {rate} + {accum} * {momentum} * {rate})"
            more = nesterov if attrs.use_nesterov else f"{accum} * {rate}"
            var = self.let("w", f"{var} - {more}", shape)
        for reference, value in zip(references, (var, accum), strict=True):
            self.write(node, reference, value)

    def add(self, reference: str, index: str, part: Shape, value: str, shape: Shape) -> None:
        how = self.settings.updates
        if how == "addupdate":
            value = _broadcast(value, shape, part)
            self.line(f"jax.ref.addupdate({reference}, {_argument(index)}, {value})")
        elif how == "swap":
            zeros = f"jnp.zeros({part}, ({value}).dtype)"
            was = self.let("w", f"jax.ref.swap({reference}, {_argument(index)}, {zeros})", part)
            self.line(f"{reference}[{index}] = {was} + {value}")
        else:
            self.line(f"{reference}[{index}] = {reference}[{index}] + {value}")

    def scatter(self, node: Node, reference: str, updates: str, rows: str) -> None:
        numbers, (axes, places) = rows_of(node), self.places(node, rows)
        sizes, lanes = self.shape(reference)[: len(axes)], self.shape(reference)[len(axes) :]
        shape, count = self.shape(updates), prod(places)
        how = self.settings.indices
        kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
        only = () if places or how == "beyond" else axes
        if len(places) != 1:
            axes = [f"{each}.reshape(-1)" for each in axes]
            if shape:
                shape = (count, *lanes)
                updates = f"{updates}.reshape({shape})"
        apart = how == "scalar" or numbers is None
        for which in distinct(numbers or range(count), one_by_one=apart):
            whole = len(which) == count
            few = numbers and numbers[which.start : which.stop]
            bounds = "" if whole else f"[{which.start}:{which.stop}]"
            given, known = (
                (f"{updates}{bounds}", (len(which), *shape[1:]))
                if shape
                else (
                    updates,
                    (),
                )
            )
            part: Shape = (len(which), *lanes)
            if how == "scalar" or only:
                place = only or [f"{each}[{which.start}]" for each in axes]
                index = self.indices(None, place, sizes, read=False)
                given, known = (f"{given}[0]", known[1:]) if shape else (given, known)
                part = tuple(lanes)
            elif how == "slice" and few and (found := slice_of(few)):
                index = _colons(found)
            else:
                some = self.by_axis(few, [f"{each}{bounds}" for each in axes], sizes, read=False)
                index = _as_index(some)
                if how == "beyond":
                    given = self.let("w", _broadcast(given, known, part), part)
                    some = [self.let("w", each, (len(which),)) for each in some]
                    past = [f"{some[0]}[:1] + {sizes[0]}", *(f"{each}[:1]" for each in some[1:])]
                    together = zip(some, past, strict=True)
                    index = _as_index([f"jnp.concatenate([{a}, {b}])" for a, b in together])
                    given = f"jnp.concatenate([{given}, {given}[:1] + 1])"
                    known = part = (len(which) + 1, *lanes)
            if kind in ("Update", node.op):
                self.store(reference, index, part, given, known)
            elif kind in ("Add", "Sub"):
                self.add(reference, index, part, given if kind == "Add" else f"-{given}", known)
            else:
                combined = COMBINE[kind].format(f"{reference}[{index}]", given)
                self.store(reference, index, part, combined, part)

    def store(self, reference: str, index: str, part: Shape, value: str, shape: Shape) -> None:
        self._stored(reference, index, _broadcast(value, shape, part))

    # --- control flow -----------------------------------------------------------------------

    @contextmanager
    def seen(self, sight: int) -> Iterator[None]:
        """Code of which Python sees the values so, or less."""
        before, self.sight = self.sight, max(self.sight, sight)
        yield
        self.sight = before

    def function(
        self,
        like: str,
        given: Sequence[str],
        body: Callable[[list[str]], Sequence[str]],
        sight: int,
        *,
        packed: bool = False,
    ) -> str:
        """Define a function of values like these; its name.

        Parameters
        ----------
        like : str
        given : sequence of str
            What it is like each parameter.
        body : callable
            Writes the body, from the names of the parameters; returns its results.
        sight : int
        packed : bool
            It takes a bundle, and returns one: a value, or a tuple of another number of them.
        """
        name = self.name(like)
        own = [self.name("x", self.shape(each)) for each in given]
        head = ", ".join(own)
        unpacked = packed and len(own) != 1
        if unpacked:
            head = self.name("s")
        with self.seen(sight), self.block(f"def {name}({head}):"):
            if unpacked and own:
                self.line(f"{_bundle(own)} = {head}")
            if (results := body(own)) or packed:
                self.line(f"return {_bundle(results)}")
        return name

    def _called(
        self, like: str, code: BodyCode, given: Sequence[str], refs: Mapping[str, str], sight: int
    ) -> str:
        """A body as a function of values, then of references."""
        forbidden = self.settings.forbidden

        def body(own: list[str]) -> Sequence[str]:
            taken = own[len(given) :]
            inner = {**code.references, **dict(zip(refs, taken, strict=False))}
            if refs and forbidden == "twice":
                inner = Aliases(inner, dict(zip(refs, taken[len(refs) :], strict=True)))
            elif refs and forbidden == "closure":
                inner = Aliases(inner, refs)
            return code.run(own[: len(given)], inner)

        return self.function(like, (*given, *self.passed(refs)), body, sight)

    def passed(self, refs: Mapping[str, str]) -> tuple[str, ...]:
        """References as arguments of a body."""
        return tuple(refs.values()) * (2 if self.settings.forbidden == "twice" else 1)

    @property
    def arguments(self) -> bool:
        """True if bodies get references as arguments."""
        return self.settings.bodies == "argument" or self.settings.forbidden in ALIASES

    def _results(self, like: Sequence[str], shapes: Sequence[Shape], text: str) -> tuple[str, ...]:
        names = tuple(self.name(each, shape) for each, shape in zip(like, shapes, strict=True))
        self.line(f"{_bundle(names)} = {text}" if names else text)
        return names

    def first_lane(self, value: str) -> str:
        return f"{value}.reshape(-1)[0]" if self.shape(value) else value

    def branch(
        self, predicate: str, then: BodyCode, orelse: BodyCode, captured: Sequence[str]
    ) -> tuple[str, ...]:
        known = self.settings.conditionals == "python"
        if known and self.sight == _EAGER:
            return self._if(self.first_lane(predicate), then, orelse, captured)
        sight = _TRACED if predicate in self.traced or not known else self.sight
        shared = {**then.references, **orelse.references}
        taken_refs = shared if self.arguments else {}
        shapes: list[Shape] = []

        def noting(code: BodyCode) -> BodyCode:
            def run(values: Sequence[str], own: Mapping[str, str]) -> tuple[str, ...]:
                found = code.run(values, own)
                shapes[:] = [self.shape(each) for each in found]
                return found

            return type(code)(run, code.references, writes=code.writes)

        taken, other = (
            self._called(like, noting(code), captured, taken_refs, sight)
            for like, code in (("then", then), ("orelse", orelse))
        )
        operands = "".join(f", {each}" for each in (*captured, *self.passed(taken_refs)))
        chosen = self.first_lane(predicate)
        text = self._chosen(chosen, taken, other, operands)
        if known and sight == _MAYBE:
            here = ", ".join(map(str, (*captured, *self.passed(taken_refs))))
            text = f"{text} if {_traced(chosen)} else ({taken} if {chosen} else {other})({here})"
        return self._results(["y"] * len(shapes), shapes, text)

    def _chosen(self, predicate: str, then: str, orelse: str, operands: str = "") -> str:
        if self.settings.conditionals == "switch":
            number = f"{predicate}.astype(jnp.int32)"
            return f"jax.lax.switch({number}, [{orelse}, {then}]{operands})"
        return f"jax.lax.cond({predicate}, {then}, {orelse}{operands})"

    def _if(
        self, predicate: str, then: BodyCode, orelse: BodyCode, captured: Sequence[str]
    ) -> tuple[str, ...]:
        names: tuple[str, ...] = ()
        for head, code in ((f"if {predicate}:", then), ("else:", orelse)):
            with self.block(head):
                found = code.run(captured, code.references)
                names = names or tuple(self.name("y", self.shape(each)) for each in found)
                if names:
                    self.line(f"{_bundle(names)} = {_bundle(found)}")
        return names

    def loop(
        self, code: LoopCode, carried: Sequence[str], captured: Sequence[str]
    ) -> tuple[str, ...]:
        how = self.settings.loops
        shapes = [self.shape(each) for each in carried]
        if how == "python" and self.sight == _EAGER:
            return self._eager_loop(code, carried, captured)
        sight = self.sight if how == "python" else _TRACED

        def step(own: list[str]) -> Sequence[str]:
            return code.body.run((*own, *captured), code.body.references)

        def test(own: Sequence[str]) -> str:
            (more,) = code.condition.run((*own, *captured), code.condition.references)
            return self.first_lane(more)

        first = _bundle(carried)
        rest = "1" if len(carried) == 1 else "1:"
        like = ["y"] * len(carried)
        if how == "while" and not code.condition.writes:
            more = self.function("test", carried, lambda x: [test(x)], sight, packed=True)
            body = self.function("body", carried, step, sight, packed=True)
            return self._results(like, shapes, f"jax.lax.while_loop({more}, {body}, {first})")
        body = self.function("body", carried, step, sight, packed=True)
        if code.always and how != "while":
            return self._results(like, shapes, self._counted(code, body, first))
        tested = self.function(
            "tested", carried, lambda x: [f"({', '.join((test(x), *x))},)"], sight, packed=True
        )
        if how == "while":
            begin = f"jax.lax.while_loop(lambda g: g[0], lambda g: {tested}({body}(g[{rest}]))"
            text = f"{begin}, {tested}({first}))[{rest}]"
            return self._results(like, shapes, text)
        step_ = self.name("iteration")
        with self.block(f"def {step_}(g):"):
            happens, else_ = f"lambda: {tested}({body}(g[{rest}]))", "lambda: g"
            chosen = self._chosen("g[0]", happens, else_)
            if how == "python" and self.sight == _MAYBE:
                known = f"({tested}({body}(g[{rest}])) if g[0] else g)"
                chosen = f"{chosen} if {_traced('g[0]')} else {known}"
            self.line(f"return {chosen}")
        text = self._counted(code, step_, f"{tested}({first})")
        return self._results(like, shapes, f"{text}[{rest}]")

    def _counted(self, code: LoopCode, step: str, first: str) -> str:
        """As many iterations as there can be."""
        how, unroll = self.settings.loops, self.settings.unroll
        if how == "python":
            going = self.let("going", first, ())
            with self.block(f"for _ in range({code.bound}):"):
                self.line(f"{going} = {step}({going})")
            return going
        if how == "fori":
            more = f", unroll={unroll}" if unroll > 1 else ""
            return f"jax.lax.fori_loop(0, {code.bound}, lambda _, g: {step}(g), {first}{more})"
        more = ", reverse=True" if self.settings.reverse else ""
        more += f", unroll={unroll}" if unroll > 1 else ""
        count = f"jnp.arange({code.bound})"
        return f"jax.lax.scan(lambda g, _: ({step}(g), None), {first}, {count}{more})[0]"

    def _eager_loop(
        self, code: LoopCode, carried: Sequence[str], captured: Sequence[str]
    ) -> tuple[str, ...]:
        going = tuple(self.name("going", self.shape(each)) for each in carried)
        if going:
            self.line(f"{_bundle(going)} = {_bundle(carried)}")
        with self.block(f"for _ in range({code.bound}):" if code.always else "while True:"):
            if not code.always:
                (more,) = code.condition.run((*going, *captured), code.condition.references)
                with self.block(f"if not {self.first_lane(more)}:"):
                    self.line("break")
            following = code.body.run((*going, *captured), code.body.references)
            if going:
                self.line(f"{_bundle(going)} = {_bundle(following)}")
        return going

    def call(self, node: Node, code: BodyCode, given: Sequence[str]) -> tuple[str, ...]:
        how = self.settings.calls
        impure = code.references and self.settings.forbidden != "checkpoint"
        if how == "inline" or (how != "jit" and impure):
            return code.run(given, code.references)
        shapes: list[Shape] = []

        def run(values: Sequence[str], own: Mapping[str, str]) -> tuple[str, ...]:
            found = code.run(values, own)
            shapes[:] = [self.shape(each) for each in found]
            return found

        noted = type(code)(run, code.references, writes=code.writes)
        refs = dict(code.references) if self.arguments else {}
        sight = _TRACED if how == "jit" else _MAYBE
        name = self._called(node.name, noted, given, refs, sight)
        around = self.name(name)
        for line in AROUND[how]:
            self.line(line.format(name, around))
        operands = ", ".join(map(str, (*given, *self.passed(refs))))
        return self._results(["y"] * len(shapes), shapes, f"{around}({operands})")


class _Script(_System):
    """One script while it is written; see `Program` for what it does."""

    def __init__(
        self, test: LitmusTest, settings: Settings, place: int | None, *, fails: bool
    ) -> None:
        super().__init__(test, settings)
        self.place, self.fails = place, fails
        self.by = [v.name for v in test.variables if v.gradient]
        self.inside = settings.references == "inside" or bool(self.by)
        how = settings.references
        self.how = "argument" if how == "closure" and self.by else how
        self.refs = {v.name: self.name(v.name, tuple(v.type.shape)) for v in test.variables}
        self.axis = -1 if settings.batch == "vmap_last" else 0
        traced = settings.compiled or settings.parts
        some = settings.batch or self.by or settings.checkpoint
        self.first_sight = _TRACED if traced else _MAYBE if some else _EAGER
        self.literal = self.first_sight == _EAGER
        if self.inside and (settings.checkpoint or settings.batch):
            self.traced.update(self.refs.values())
        elif self.inside:
            self.traced.update(self.refs[name] for name in self.by)
        given = dict(constants_of(test))
        for run in test.runs:
            given |= {_fed(run, name): each for name, each in fed_to(test, run).items()}
        self.given = given
        first: dict[tuple[str, str], str] = {}
        self.same = {
            k: first.setdefault((x.dtype.name, str(x.tolist())), k) for k, x in given.items()
        }
        """By name of what the program is given, the first that is equal."""
        for name, each in given.items():
            self.shapes[self.constant(name)] = each.shape
        self.others = False
        """True if some of what the program returns has no weight."""
        self.constants_name = ""
        self.parts: list[str] = []
        """Lines of functions before the program's."""

    def constant(self, name: str) -> str:
        """The expression for what the program is given."""
        return _literal(self.given[name]) if self.literal else f"c[{self.same[name]!r}]"

    @property
    def numpy(self) -> bool:
        """True if the weights of the floats have to be NumPy's arrays."""
        way = self.settings.derivative
        return way not in FORWARD and (
            way not in ("vjp", "accumulated") or bool(self.settings.compiled)
        )

    @property
    def apart(self) -> bool:
        """True if one program has the observed values, and another one the final contents."""
        return self.settings.final == "apart" and not self.by

    @property
    def closed(self) -> bool:
        """True if the program closes over the references."""
        return not self.inside and self.how == "closure"

    def constants(self) -> dict[str, str]:
        """The expressions for the constants of the test."""
        return {name: self.constant(name) for name in constants_of(self.test)}

    def packed(self, names: Sequence[str], of: str) -> str:
        """References, or contents, as the first arguments of a function, each with a comma."""
        if self.how == "closure":
            return ""
        return "".join(f"{each}, " for each in names) if self.how == "argument" else f"{of}, "

    def text(self, expected: Outcome, title: str, *, dtypes: bool) -> str:
        """The whole script."""
        self.program()
        program = [*self.parts, *self.lines]
        shown = {}
        for name, value in expected.values:
            assert value is not TORN
            array = array_of(value, self.test.type_of(name))  # type: ignore[arg-type]
            shown[name] = f"{array.dtype} {array.tolist()}" if dtypes else array.tolist()
        # A script has those constants that its program uses.
        used = "\n".join(program)
        self.given = {k: each for k, each in self.given.items() if f"c[{k!r}]" in used}
        self.lines = []
        if self.by:
            self.differentiated()
        self.devices()
        self.observing(shown, dtypes=dtypes)
        body = inlined("\n".join((*program, *self.lines)))
        head = [*["import sys"] * self.fails, "import jax", "import jax.numpy as jnp"]
        head += ["import numpy as np"] * ("np." in body.replace("jnp.", ""))
        head += ["from jax import export"] * (self.settings.compiled == "export")
        if "mesh" in body:
            head += ["from jax.sharding import Mesh, NamedSharding, PartitionSpec as P"]
            head += ['jax.config.update("jax_num_cpu_devices", 4)']
        if self.settings.platform == "gpu":
            head += ['jax.config.update("jax_platforms", "cuda")']
        types = (*(v.type for v in self.test.variables), *filter(None, self.test.types.values()))
        if self.settings.x64 and any(kind.dtype.endswith("64") for kind in types):
            head += ['jax.config.update("jax_enable_x64", True)']
        return "\n".join([f'"""{title}"""', *head, body])

    # --- the program ------------------------------------------------------------------------

    def program(self) -> None:
        """The program as a function `f`, without transformations."""
        refs = self.refs
        head = "a, " if self.inside else self.packed(list(refs.values()), "refs")
        head = head.removesuffix(", ") if self.literal else f"{head}c"
        with self.seen(self.first_sight), self.block(f"def f({head}):"):
            if self.inside:
                for name, each in refs.items():
                    self.line(f"{each} = jax.new_ref(a[{name!r}])")
            elif self.how == "pytree":
                for name, each in refs.items():
                    self.line(f"{each} = refs[{name!r}]")
            found: dict[str, str] = {}
            for run in self.test.runs:
                found |= self.run(run)
            final = {name: self.final(each) for name, each in refs.items()}
            if self.apart:
                self.line(f"return {_dict(found)}, {_dict(final)}")
                return
            found |= final if self.inside else {}
            self.others = not found.keys() <= self.test.weights.keys()
            self.line(f"return {_dict(found)}")

    def final(self, reference: str) -> str:
        if self.settings.forbidden == "freeze":
            return f"(jax.ref.freeze({reference}), {reference}[...])[1]"
        if self.settings.final == "freeze" and self.settings.references != "closure":
            return f"jax.ref.freeze({reference})"
        return f"{reference}[...]"

    def run(self, run: Run) -> dict[str, str]:
        """Execute a run; its observed values by key."""
        test = self.test
        nodes, observed = test.graph_of(run).nodes, observed_of(test, run)
        fed = {name: self.constant(_fed(run, name)) for name in fed_to(test, run)}
        if not self.settings.parts:
            made = Walk(test, self, self.constants()).nodes(nodes, dict(fed), dict(self.refs))
            return {key_of(test, run, name): made[name] for name in observed}
        length = PIECE if self.settings.parts == "pieces" else max(1, len(nodes))
        refs = self.packed(list(self.refs.values()), _dict(self.refs))
        if 0 < len(nodes) <= length:
            wanted = [key for n in nodes for key in n.keys if key in observed]
            name = self.part(nodes, wanted, whole=True)
            values = self.let("v", f"{name}({refs}c, {_dict(fed)})", ())
            return {key_of(test, run, name): f"{values}[{name!r}]" for name in observed}
        values = self.let("v", _dict(fed), ())
        for start in range(0, len(nodes), length):
            piece = nodes[start : start + length]
            later = {name for each in nodes[start + length :] for name in each.references}
            wanted = [key for n in piece for key in n.keys if key in later or key in observed]
            name = self.part(piece, wanted)
            self.line(f"{values} |= {name}({refs}c, {values})")
        return {key_of(test, run, name): f"{values}[{name!r}]" for name in observed}

    def part(self, nodes: Sequence[Node], wanted: Sequence[str], *, whole: bool = False) -> str:
        """Define a part of a run, or the whole, in a `jit` of its own."""
        before, self.lines, depth, self.depth = self.lines, [], self.depth, 0
        own = dict(self.refs)
        if self.how != "closure":
            own = {name: self.name(each, self.shape(each)) for name, each in own.items()}
        name = self.name("part")
        for _ in range(2 if self.settings.parts == "nested" else 1):
            self.line("@jax.jit")
        with self.block(f"def {name}({self.packed(list(own.values()), 'refs')}c, v):"):
            if self.how not in ("closure", "argument"):
                for key, each in own.items():
                    self.line(f"{each} = refs[{key!r}]")
            made = Walk(self.test, self, self.constants()).nodes(nodes, _Values(self), own)
            found = {key: made[key] for key in wanted if key in made}
            if found or not whole:
                self.line(f"return {_dict(found)}")
        self.parts += self.lines
        self.lines, self.depth = before, depth
        return name

    # --- around it --------------------------------------------------------------------------

    def differentiated(self) -> None:
        """A function `g` of the values of `f`, and of the gradients of its weighted floats."""
        test = self.test
        settings = self.settings
        weights = {}
        for key, each in test.weights.items():
            array = array_of(each, test.type_of(key))
            # In reverse mode, a trace makes something else of NumPy's arrays than of JAX's.
            numpy = f"np.array({_as_ints(array.tolist())}, np.{array.dtype.name})"
            weights[key] = numpy if self.numpy else _literal(array)
        function = "f"
        if settings.checkpoint:
            policy = f"jax.checkpoint_policies.{settings.checkpoint}_saveable"
            function = f"jax.checkpoint(f, policy={policy})"
        c = "" if self.literal else ", c"
        some = len(self.by) < len(test.variables)
        with self.block(f"def g(a{c}):"):
            one = len(self.by) == 1 and not self.shape(self.refs[self.by[0]])
            if self.others or len(weights) > 1 or not (one and settings.derivative in FORWARD):
                self.line(f"weights = {_dict(weights)}")
            called = f"{function}({'a | x' if some else 'x'}{c})"
            if self.others:  # integers have no gradients
                with self.block("def floats(x):"):
                    self.line(f"values = {called}")
                    self.line("return {k: values[k] for k in weights}, values")
            else:
                self.line(f"floats = lambda x: ({called},) * 2")
            if some:
                self.line("by = " + _dict({k: f"a[{k!r}]" for k in self.by}))
            by = "by" if some else "a"
            how = {"one": one, "numpy": self.numpy}
            for line in derivative(settings.derivative, by, self.by, weights, **how):
                self.line(line)

    def devices(self) -> None:
        """The devices of a program on several, and what puts arrays there."""
        mapped = self.settings.batch == "shard_map"
        count = COPIES if mapped else self.settings.devices
        if count == 1:
            return
        self.line(f"mesh = Mesh(np.array(jax.devices('cpu')[:{count}]), ('d',))")
        if mapped:
            with self.block("def mapped(a, c):"):
                function = "g" if self.by else "f"
                self.line(f"found = {function}({{k: x[0] for k, x in a.items()}}, c)")
                self.line("return {k: x[None] for k, x in found.items()}")
        else:
            with self.block("def placed(x):"):
                self.line(f"even = x.ndim and x.shape[0] % {count} == 0")
                sharding = "NamedSharding(mesh, P('d') if even else P())"
                self.line(f"return jax.device_put(x, {sharding})")

    def put(self, array: str) -> str:
        """The expression for an array on the devices of the settings."""
        return array if self.settings.devices == 1 else f"placed({array})"

    def transformed(self, made: str) -> str:
        """The expression for a function with all transformations around it."""
        settings = self.settings
        if settings.checkpoint and not self.by:
            policy = f"jax.checkpoint_policies.{settings.checkpoint}_saveable"
            made = f"jax.checkpoint({made}, policy={policy})"
        if settings.batch == "shard_map":
            specs = "in_specs=(P('d'), P()), out_specs=P('d')"
            made = f"jax.shard_map(mapped, mesh=mesh, {specs}, check_vma=False)"
        elif settings.batch:
            count = (
                1 if self.inside else {"closure": 0, "argument": len(self.refs)}.get(self.how, 1)
            )
            axes = (*[self.axis] * count, 0 if settings.batch == "vmap_all" else None)
            others = "" if not any(axes) and None not in axes else f", in_axes={axes}"
            others += f", out_axes={self.axis}" if self.axis else ""
            made = f"jax.vmap({made}{others})"
        if settings.compiled:
            more = ", donate_argnums=(0,)" if settings.donate else ""
            made = f"jax.jit({made}{more})"
        return made

    def observing(self, expected: Mapping[str, object], *, dtypes: bool) -> None:
        """What is expected, and what executions of the program show."""
        self.line(f"print('expected', expected := {expected})")
        if self.fails:
            self.line(_HOOK)
        if self.apart:
            parts = [self.transformed(f"lambda *x: f(*x)[{part}]") for part in (0, 1)]
            one, other = (self.let("run", f"({part})", ()) for part in parts)
            run = f"(lambda *x: {one}(*x) | {other}(*x))"
        else:
            run = self.transformed("g" if self.by else "f")
        if run not in ("f", "g"):
            run = self.let("run", run, ())
        if not self.literal:
            given = _dict({name: self.copied(x) for name, x in self.given.items()})
            self.constants_name = self.let("constants", given, ())
        if self.place is not None:
            contents = contents_of(self.test)
            arrays = {n: self.put(self.copied(x, self.place)) for n, x in contents.items()}
            if self.closed:
                self.create(arrays)
            self.execution(run, arrays, str(self.place), dtypes=dtypes, again=False)
        else:
            self.several(run, dtypes=dtypes)
            self.line("print('observed', observed)")
        if not self.fails:
            self.line("raise SystemExit(observed != expected)")

    def several(self, run: str, *, dtypes: bool) -> None:
        """Executions until one shows another outcome than the single one."""
        contents = {name: _literal(each) for name, each in contents_of(self.test).items()}
        arrays = {name: self.put(each) for name, each in contents.items()}
        if self.closed:
            self.create(arrays)
        with self.block(f"for n in range({COPIES if self.settings.batch else 2}):"):
            if self.settings.batch:
                own = f"x + jnp.array((i - n) % {COPIES}, x.dtype) for i in range({COPIES})"
                own = f"jnp.stack([{own}], {self.axis})"
                self.line(f"a = {_dict(contents)}")
                self.line(f"a = {{k: {own} for k, x in a.items()}}")
                arrays = {name: self.put(f"a[{name!r}]") for name in contents}
            self.execution(run, arrays, "n", dtypes=dtypes, again=True)
            with self.block("if observed != expected:"):
                self.line("break")

    def create(self, arrays: Mapping[str, str]) -> None:
        """Create the references, each under its name."""
        for name, each in self.refs.items():
            self.line(f"{each} = jax.new_ref({arrays[name]})")

    def execution(
        self, run: str, arrays: Mapping[str, str], place: str, *, dtypes: bool, again: bool
    ) -> None:
        """One execution, with these contents, and what it shows.

        Parameters
        ----------
        run : str
        arrays : mapping of str to str
            Initial contents by variable.
        place : str
            Of the copy that is looked at.
        dtypes : bool
        again : bool
            This is the body of a loop over `n`.
        """
        settings = self.settings
        arguments: tuple[str, ...] = ()
        if self.inside:
            arguments = (self.let("contents", _dict(arrays), ()),)
        elif self.closed:
            if again:
                for name, each in self.refs.items():
                    self.line(f"{each}[...] = {arrays[name]}")
        elif self.how == "argument":
            self.create(arrays)
            arguments = tuple(self.refs.values())
        else:
            made = _dict({name: f"jax.new_ref({each})" for name, each in arrays.items()})
            self.line(f"refs = {made}")
            arguments = ("refs",)
        given = ", ".join((*arguments, *([] if self.literal else [self.constants_name])))
        if settings.compiled in ("aot", "export"):
            text = {
                "aot": f"{run}.lower({given}).compile()",
                "export": f"export.deserialize(export.export({run})({given}).serialize()).call",
            }[settings.compiled]
            run = self.name("compiled")
            self.line(f"{run} = {f'{run} if n else {text}' if again else text}")
        call = f"{run}({given})"
        if not self.inside:
            named = self.how in ("argument", "closure")
            refs = self.refs if named else {n: f"refs[{n!r}]" for n in self.refs}
            call = f"{call} | {_dict({n: self.final(each) for n, each in refs.items()})}"
        once = self.fails and not again
        value = "x" if once else "found[k]"
        if settings.batch:
            value += f"[..., {place}]" if self.axis else f"[{place}]"
        shown = f"{value}.tolist()"
        if dtypes:
            shown = f"f'{{{value}.dtype}} {{{shown}}}'"
        if once:  # what is observed is an exception
            found = call if self.inside else f"({call})"
            self.line(f"print('observed', {{k: {shown} for k, x in {found}.items()}})")
            return
        self.line(f"found = {call}")
        observed = f"{{k: {shown} for k in expected}}"
        self.line(
            f"observed = {observed}" if again else f"print('observed', observed := {observed})"
        )

    def copied(self, array: npt.NDArray[np.generic], place: int | None = None) -> str:
        """An array for all copies: other contents but at that place, or the same for all."""
        batch = self.settings.batch
        if place is None:
            return _literal(np.stack([array] * COPIES) if batch == "vmap_all" else array)
        if not batch:
            return _literal(array)
        copies = [array + np.array((n - place) % COPIES, array.dtype) for n in range(COPIES)]
        return _literal(np.stack(copies, self.axis))


class _Values(dict[str, str]):
    """Values by name, of which those not computed here come in `v`."""

    def __init__(self, system: _System) -> None:
        super().__init__()
        self._system = system

    def __missing__(self, name: str) -> str:
        expression = f"v[{name!r}]"
        self._system.shapes[expression] = self._system.shape_of(name)
        return expression


def _fed(run: Run, name: str) -> str:
    """The name of what a run feeds, among all that the program is given."""
    return f"{run.name} {name}"


def _bundle(names: Sequence[str]) -> str:
    """A value, or a tuple of another number of them."""
    listed = ", ".join(map(str, names))
    return listed if len(names) == 1 else f"({listed})"


def _dict(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {each}" for name, each in items.items()) + "}"


def _traced(value: str) -> str:
    return f"isinstance({value}, jax.core.Tracer)"


def _colons(part: slice) -> str:
    step = "" if part.step is None else f":{part.step}"
    return f"{part.start}:{part.stop}{step}"


def _as_index(axes: Sequence[str]) -> str:
    """An index, from those for each axis."""
    return axes[0] if len(axes) == 1 else f"({', '.join(axes)})"


def _argument(index: str) -> str:
    """An index as an argument of a function."""
    if not re.fullmatch(r"\d+:\d+(:\d+)?", index):
        return index
    return f"np.s_[{index}]"


def _broadcast(value: str, shape: Shape, part: Shape) -> str:
    return value if shape == part else f"jnp.broadcast_to({value}, {part})"


def _literal(array: npt.NDArray[np.generic]) -> str:
    """An expression for an array."""
    dtype = f"jnp.{'bool_' if array.dtype == np.bool_ else array.dtype.name}"
    values = array.tolist()
    if array.dtype.kind == "f":
        values = _as_ints(values)
    if not array.shape:
        return f"{dtype}({values})"
    if array.size > 1 and (array == array.flat[0]).all():
        each = values
        while isinstance(each, list):
            each = each[0]
        return f"jnp.full({array.shape}, {each}, {dtype})"
    return f"jnp.array({values}, {dtype})"


def _as_ints(values: object) -> object:
    """Integers as they are written; a float of a test is one."""
    return list(map(_as_ints, values)) if isinstance(values, list) else int(values)  # type: ignore[call-overload]
