"""Litmus ops, loops, conditionals and calls as JAX code over references.

Values of the model are JAX arrays, variables are references, bodies are Python functions. Integers
wrap around; floats hold integers below 2**24, so that the order of additions does not matter.

References
----------
docs/jax-references.md; semantics.md, section 2.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import jax.ops
import numpy as np
from jax import lax

import litmusfuzz.fuzz.executors.jax_refs.configured  # noqa: F401
from litmusfuzz.corpus.ops import MomentumAttrs
from litmusfuzz.fuzz.executors.jax_refs.pure_ops import lowered
from litmusfuzz.fuzz.executors.jax_refs.space import ALIASES
from litmusfuzz.fuzz.executors.traced.inputs import distinct, rows_of, slice_of
from litmusfuzz.fuzz.executors.traced.walk import Aliases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from litmusfuzz.corpus.model import Node
    from litmusfuzz.fuzz.executors.jax_refs.space import Settings
    from litmusfuzz.fuzz.executors.traced.pure_uses import PureUse
    from litmusfuzz.fuzz.executors.traced.walk import BodyCode, LoopCode

Array = Any
Ref = Any
_MODULES = SimpleNamespace(jnp=jnp, lax=lax, ops=jax.ops)

_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "Add": jnp.add,
    "Sub": jnp.subtract,
    "Mul": jnp.multiply,
    "Min": jnp.minimum,
    "Max": jnp.maximum,
}


def places(node: Node, rows: Array) -> tuple[Array, ...]:
    """The places that an op names, by axis; an op for cells has each in a vector of numbers."""
    if not (node.definition.computed and node.definition.nd):
        return (rows,)
    return tuple(rows[..., axis] for axis in range(rows.shape[-1]))


def _spread(condition: Array, like: Array) -> Array:
    """A scalar condition, or one with rows, for values that may have lanes."""
    return condition if condition.ndim in (0, like.ndim) else condition[..., None]


class Lowering:
    """JAX as a traced system (`traced.walk.System`), as the settings have programs written.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.differentiated = False
        """True in a program with gradients: those of a read past the end are left open."""

    # --- ops -----------------------------------------------------------------------------

    def pure(self, use: PureUse, operands: Sequence[Array]) -> Array:
        """The result of a pure node with operands."""
        if use.node.op == "Select":
            condition, *choices = operands
            operands = (_spread(condition, choices[0]), *choices)
        return lowered(_MODULES, use, operands)

    def read(self, node: Node, reference: Ref, rows: Array | None) -> Array:
        """Read a reference: whole, or rows of it."""
        if rows is not None:
            return self.rows(node, reference, rows)
        how = self.settings.reads
        if how == "get":
            return jax.ref.get(reference)
        if how == "pieces" and reference.ndim and reference.shape[0] > 1:
            return jnp.concatenate([reference[:1], reference[1:]])
        if reference.ndim and how == "view":
            return reference.at[...][...]
        return reference[...]

    def rows(self, node: Node, reference: Ref, rows: Array) -> Array:
        """Rows or cells of a reference, as the settings name them; itself for a scalar index."""
        numbers, axes = rows_of(node), places(node, rows)
        sizes, lanes = reference.shape[: len(axes)], reference.shape[len(axes) :]
        shape, how = axes[0].shape, self.settings.indices
        # JAX refuses a scalar index if it knows that it lies beyond the end.
        own = len(shape) == 1 or not (shape or how == "beyond")
        flat = axes if own else tuple(each.reshape(-1) for each in axes)
        if how == "scalar" and shape:
            each = [_as_index([axis[i] for axis in flat]) for i in range(len(flat[0]))]
            read = jnp.stack([reference[index] for index in each])
        elif how == "slice" and numbers and (found := slice_of(numbers)):
            read = reference[found]
        else:
            read = reference[self.indices(numbers, flat, sizes, read=True)]
        return read if own else read.reshape(*shape, *lanes)

    def indices(
        self,
        numbers: Sequence[int] | None,
        axes: Sequence[Array],
        sizes: Sequence[int],
        *,
        read: bool,
    ) -> Any:
        """The index of `index` for each axis that an op names places of."""
        return _as_index(
            [
                self.index(numbers, rows, size, read=read)
                for rows, size in zip(axes, sizes, strict=True)
            ]
        )

    def index(self, numbers: Sequence[int] | None, rows: Array, size: int, *, read: bool) -> Any:
        """An index for rows: an array of the traced values, or one that JAX knows.

        Parameters
        ----------
        numbers : sequence of int
            The rows, as the file has them; None if they are computed.
        rows : array of int
            The same, as a value: a vector, or a scalar.
        size : int
            Rows of the reference.
        read : bool
        """
        how = self.settings.indices
        if how == "static" and numbers:
            return np.array(numbers, np.int32)
        if how == "negative":
            return rows - size
        if how == "beyond" and read and not self.differentiated:
            # A read takes the last row for those beyond it.
            return jnp.where(rows == size - 1, rows + 2, rows)
        return rows

    def write(self, node: Node, reference: Ref, value: Array) -> None:
        """Write the whole of a reference."""
        del node
        how = self.settings.writes
        if how == "linked":
            value = value + 0 * reference[...]
        if how == "set":
            jax.ref.set(reference, ..., value)
        elif how == "swap":
            jax.ref.swap(reference, ..., value)
        elif how == "pieces" and reference.ndim and reference.shape[0] > 1:
            reference[1:] = value[1:]
            reference[:1] = value[:1]
        else:
            reference[...] = value

    def update(
        self, node: Node, references: Sequence[Ref], operands: Sequence[Array], rows: Array | None
    ) -> None:
        """Change references: read them and write what they then hold."""
        if isinstance(node.attrs, MomentumAttrs):
            changed = _momentum(node, *references, *operands)
            for reference, value in zip(references, changed, strict=True):
                self.write(node, reference, value)
            return
        (reference,) = references
        if rows is not None:
            self.scatter(node, reference, operands[0], rows)
        elif node.op == "AssignAddVariableOp":
            self.add(reference, ..., operands[0])
        elif node.op == "AssignSubVariableOp":
            self.add(reference, ..., -operands[0])
        else:
            assert node.op == "ResourceApplyGradientDescent", node.op
            alpha, delta = operands
            self.add(reference, ..., -(alpha * delta))

    def add(self, reference: Ref, index: Any, value: Array) -> None:
        """Add to a part of a reference, whose rows are distinct."""
        how = self.settings.updates
        if how == "addupdate":
            jax.ref.addupdate(reference, index, jnp.broadcast_to(value, _shape(reference, index)))
        elif how == "swap":
            was = jax.ref.swap(reference, index, jnp.zeros(_shape(reference, index), value.dtype))
            reference[index] = was + value
        else:
            reference[index] = reference[index] + value

    def scatter(self, node: Node, reference: Ref, updates: Array, rows: Array) -> None:
        """Update rows or cells of a reference, one after another where a row repeats.

        Which of two values for one row stays, and whether two additions to one row in one op both
        count, the page does not say. Of computed rows any may repeat.
        """
        numbers, axes = rows_of(node), places(node, rows)
        sizes, lanes = reference.shape[: len(axes)], reference.shape[len(axes) :]
        only = None
        if numbers is None:
            if not axes[0].ndim and self.settings.indices != "beyond":
                only = axes
            axes = tuple(each.reshape(-1) for each in axes)
            updates = updates.reshape(len(axes[0]), *lanes) if updates.ndim else updates
        count = len(axes[0])
        one_by_one = self.settings.indices == "scalar" or only is not None
        kind = node.op.removeprefix("ResourceScatter").removeprefix("Nd")
        apart = one_by_one or numbers is None
        for which in distinct(numbers or range(count), one_by_one=apart):
            part: Any = slice(which.start, which.stop)
            whole = len(which) == count
            known = numbers and numbers[part]
            given = updates if whole or not updates.ndim else updates[part]
            if one_by_one:
                place = [each[which.start] for each in axes] if only is None else only
                index: Any = self.indices(None, place, sizes, read=False)
                given = given[0] if updates.ndim else given
            elif self.settings.indices == "slice" and known and (found := slice_of(known)):
                index = found
            else:
                some = axes if whole else [each[part] for each in axes]
                index = self.indices(known, some, sizes, read=False)
                if self.settings.indices == "beyond":
                    # A write beyond the end is dropped.
                    given = jnp.broadcast_to(given, (len(which), *lanes))
                    past = [sizes[0], *[0] * (len(sizes) - 1)]
                    index = _as_index(
                        [
                            jnp.concatenate([rows, rows[:1] + more])
                            for rows, more in zip(_by_axis(index), past, strict=True)
                        ]
                    )
                    given = jnp.concatenate([given, given[:1] + 1])
            if kind in ("Update", node.op):
                self.store(reference, index, given)
            elif kind in ("Add", "Sub"):
                self.add(reference, index, given if kind == "Add" else -given)
            else:
                self.store(reference, index, _COMBINE[kind](reference[index], given))

    def store(self, reference: Ref, index: Any, value: Array) -> None:
        """Write a part of a reference."""
        value = jnp.broadcast_to(value, _shape(reference, index))
        how = self.settings.writes
        if how == "linked":
            value = value + 0 * reference[index]
        if how == "set":
            jax.ref.set(reference, index, value)
        elif how == "swap":
            jax.ref.swap(reference, index, value)
        else:
            reference[index] = value

    # --- control flow -----------------------------------------------------------------------

    def _called(
        self, code: BodyCode, passed: Mapping[str, Ref]
    ) -> tuple[Callable[..., Any], tuple[Ref, ...]]:
        """A body as a function, and the references that are its last arguments.

        Parameters
        ----------
        code : BodyCode
        passed : mapping of str to reference
            The references that it takes as arguments, if it takes any so.
        """
        forbidden = self.settings.forbidden
        if not passed or (self.settings.bodies == "closure" and forbidden not in ALIASES):
            return (lambda *given: code.run(given, code.references)), ()
        names = tuple(passed)
        operands = tuple(passed.values()) * (2 if forbidden == "twice" else 1)

        def function(*given: Any) -> Any:
            values, taken = _divided(given, len(operands))
            own = dict(zip(names, taken, strict=False))
            if forbidden == "twice":
                own = Aliases(own, dict(zip(names, taken[len(names) :], strict=True)))
            elif forbidden == "closure":
                own = Aliases(own, passed)
            return code.run(values, own)

        return function, operands

    def branch(
        self, predicate: Array, then: BodyCode, orelse: BodyCode, captured: Sequence[Array]
    ) -> tuple[Array, ...]:
        """A conditional in the form of the settings."""
        if self.settings.conditionals == "python" and _is_known(predicate):
            code = then if np.asarray(predicate).flat[0] else orelse
            return code.run(captured, code.references)
        # Both take the references of both.
        shared = {**then.references, **orelse.references}
        taken, _ = self._called(then, shared)
        other, references = self._called(orelse, shared)
        operands = (*captured, *references)
        chosen = _first_lane(predicate)
        results: tuple[Array, ...]
        if self.settings.conditionals == "switch":
            results = lax.switch(chosen.astype(jnp.int32), [other, taken], *operands)
        else:
            results = lax.cond(chosen, taken, other, *operands)
        return results

    def loop(
        self, code: LoopCode, carried: Sequence[Array], captured: Sequence[Array]
    ) -> tuple[Array, ...]:
        """A loop in the form of the settings."""
        how = self.settings.loops
        if how == "while":
            return self._while(code, tuple(carried), captured)
        if how == "python":
            return self._python(code, tuple(carried), captured)
        return self._counted(code, tuple(carried), captured)

    def _tests(self, code: LoopCode, carried: Sequence[Array], captured: Sequence[Array]) -> Array:
        (more,) = code.condition.run((*carried, *captured), code.condition.references)
        return _first_lane(more)

    def _while(
        self, code: LoopCode, carried: tuple[Array, ...], captured: Sequence[Array]
    ) -> tuple[Array, ...]:
        """`lax.while_loop`.

        A condition that writes is computed before the loop and at the end of each iteration:
        that of a `lax.while_loop` is a function without effects.
        """
        step = self._step(code, captured)
        if not code.condition.writes:
            return lax.while_loop(lambda going: self._tests(code, going, captured), step, carried)

        def tested(going: tuple[Array, ...]) -> tuple[Array, ...]:
            return (self._tests(code, going, captured), *going)

        found = lax.while_loop(
            lambda going: going[0], lambda going: tested(step(going[1:])), tested(carried)
        )
        return found[1:]

    def _counted(
        self, code: LoopCode, carried: tuple[Array, ...], captured: Sequence[Array]
    ) -> tuple[Array, ...]:
        """`lax.fori_loop` or `lax.scan`, over as many iterations as there can be.

        Where data decides how many there are, an iteration happens if the condition is true.
        """
        guarded = not code.always
        step = self._guarded(code, captured) if guarded else self._step(code, captured)
        first = (self._tests(code, carried, captured), *carried) if guarded else carried
        if self.settings.loops == "fori":
            unroll = self.settings.unroll if self.settings.unroll > 1 else None
            last = lax.fori_loop(0, code.bound, lambda _, each: step(each), first, unroll=unroll)
        else:
            last, _ = lax.scan(
                lambda each, _: (step(each), None),
                first,
                jnp.arange(code.bound),
                reverse=self.settings.reverse,
                unroll=self.settings.unroll,
            )
        return tuple(last[1:] if guarded else last)

    def _step(
        self, code: LoopCode, captured: Sequence[Array]
    ) -> Callable[[tuple[Array, ...]], tuple[Array, ...]]:
        return lambda carried: code.body.run((*carried, *captured), code.body.references)

    def _guarded(
        self, code: LoopCode, captured: Sequence[Array]
    ) -> Callable[[tuple[Array, ...]], tuple[Array, ...]]:
        """An iteration that happens if the condition was true, and then tests it again."""

        def happens(carried: tuple[Array, ...]) -> tuple[Array, ...]:
            following = self._step(code, captured)(carried)
            return (self._tests(code, following, captured), *following)

        def iteration(going: tuple[Array, ...]) -> tuple[Array, ...]:
            more, *carried = going
            then, orelse = (lambda: happens(tuple(carried))), (lambda: going)
            following: tuple[Array, ...]
            if self.settings.conditionals == "switch":
                following = lax.switch(more.astype(jnp.int32), [orelse, then])
            else:
                following = lax.cond(more, then, orelse)
            return following

        return iteration

    def _python(
        self, code: LoopCode, carried: tuple[Array, ...], captured: Sequence[Array]
    ) -> tuple[Array, ...]:
        """A loop of Python's; under a trace it is unrolled."""
        step, guarded = self._step(code, captured), self._guarded(code, captured)
        if code.always:
            for _ in range(code.bound):
                carried = step(carried)
            return carried
        going = (self._tests(code, carried, captured), *carried)
        for _ in range(code.bound):
            if _is_known(going[0]):
                if not bool(going[0]):
                    break
                following = step(going[1:])
                going = (self._tests(code, following, captured), *following)
            else:
                going = guarded(going)
        return going[1:]

    def call(self, node: Node, code: BodyCode, given: Sequence[Array]) -> tuple[Array, ...]:
        """Call a function: inlined, in a `jit`, or with a transformation around it."""
        del node
        how = self.settings.calls
        function, references = self._called(code, code.references)
        pure = not code.references or self.settings.forbidden == "checkpoint"
        if how != "inline" and (how == "jit" or pure):
            function = _AROUND[how](function)
        results: tuple[Array, ...] = function(*given, *references)
        return results


def _custom_jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a rule of its own for its derivative, which is that of the function."""
    made = jax.custom_jvp(function)

    @made.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return jax.jvp(function, primals, tangents)

    return made


def _custom_vjp(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a rule of its own for its gradient, which is that of the function."""
    made = jax.custom_vjp(function)
    made.defvjp(
        lambda *given: (function(*given), given),
        lambda given, seen: jax.vjp(function, *given)[1](seen),
    )
    return made


_AROUND: Mapping[str, Callable[..., Callable[..., Any]]] = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}


def _divided(given: tuple[Any, ...], count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """All but the last `count` of them, and these."""
    return given[: len(given) - count], given[len(given) - count :]


def _is_known(predicate: Array) -> bool:
    """True for a value that Python code can look at: not under a trace."""
    return not isinstance(predicate, jax.core.Tracer)


def _first_lane(predicate: Array) -> Array:
    return predicate.reshape(-1)[0] if predicate.ndim else predicate


def _as_index(axes: Sequence[Any]) -> Any:
    """An index, from those for each axis."""
    return axes[0] if len(axes) == 1 else tuple(axes)


def _by_axis(index: Any) -> tuple[Any, ...]:
    """What each axis has of an index."""
    return index if isinstance(index, tuple) else (index,)


def _shape(reference: Ref, index: Any) -> tuple[int, ...]:
    """The shape of a part of a reference."""
    if index is ...:
        return tuple(reference.shape)
    if isinstance(index, slice):
        return (len(range(*index.indices(reference.shape[0]))), *reference.shape[1:])
    axes = _by_axis(index)
    return (*np.shape(axes[0]), *reference.shape[len(axes) :])


def _momentum(
    node: Node, var_ref: Ref, accum_ref: Ref, lr: Array, grad: Array, momentum: Array
) -> tuple[Array, Array]:
    assert isinstance(node.attrs, MomentumAttrs)
    nesterov = node.attrs.use_nesterov
    var, accum = var_ref[...], accum_ref[...]
    if node.op == "ResourceApplyKerasMomentum":
        accum = accum * momentum - lr * grad
        return var + (accum * momentum - lr * grad if nesterov else accum), accum
    accum = accum * momentum + grad
    return var - (grad * lr + accum * momentum * lr if nesterov else accum * lr), accum
