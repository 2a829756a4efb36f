"""Compiles ops and clusters to JAX functions, with a cache by structure.

The *structure* of a function consists of its ops, their connections, and the dtypes and
shapes of its arguments, without names and numbers. Constants, and the rows that a sparse
op uses, are additional arguments that are *bound* to each call. Tests that differ only
in names and numbers thus share one compiled function.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import SingleDeviceSharding

from litmusfuzz.corpus.model import LoopAttrs
from litmusfuzz.corpus.ops import ConstAttrs, Kind, MomentumAttrs, TensorType
from litmusfuzz.fuzz.executors.jax_clustered.arrays import constant, default_device, shape_of
from litmusfuzz.fuzz.executors.jax_clustered.ops import apply, indices_of
from litmusfuzz.fuzz.passes.ssa import NO, YES, Block, Function, Statement, convert, single

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node

_Shape: Any = jax.ShapeDtypeStruct  # its annotations are incomplete
LIMIT: Final = 2048
"""Largest number of cached structures."""
QUICK: Final[Mapping[str, str | bool | int]] = MappingProxyType(
    {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}
)
"""XLA options that make compilation three to four times faster, and calls no slower."""


@dataclass(frozen=True, slots=True)
class Call:
    """A compiled function and its bound arguments: call ``function(*operands, *bound)``.

    `Compiler.op_call` and `Compiler.cluster_call` define operands and results.
    """

    function: Callable[..., Any]
    bound: tuple[jax.Array, ...] = ()


@dataclass(slots=True)
class Statistics:
    """Counts of requested structures: compiled, and found in the cache."""

    compiled: int = 0
    found: int = 0
    seconds: float = 0.0
    """Seconds of compiling, tracing included."""


class Compiler:
    """Cache of compiled functions by structure. Not thread-safe.

    Parameters
    ----------
    limit : int
        Largest number of functions; the least recently used is dropped. A function takes
        about 0.3 MiB.
    options : mapping, optional
        Options of XLA, by their names in ``XLA_FLAGS``.
    """

    def __init__(
        self, limit: int = LIMIT, options: Mapping[str, str | bool | int] | None = None
    ) -> None:
        self.limit = limit
        self.options = dict(options or {})
        self.statistics = Statistics()
        self._functions: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()

    def op_call(
        self, test: LitmusTest, node: Node, lanes: int, device: jax.Device | None = None
    ) -> Call:
        """The call of a pure op, a read, a write or an update.

        It takes the contents of the node's variables, if the node reads them, and its
        operands. A pure op and a read return an array; a write and an update return a
        tuple of the new contents of each variable.
        """
        kind = node.definition.kind
        block = single(test, node)
        if kind is Kind.PURE and isinstance(node.attrs, ConstAttrs):
            return Call(_same, tuple(_bound(test, block, lanes, device).values()))
        if node.op in ("Identity", "ReadVariableOp"):
            return Call(_same)  # arrays are immutable and may be shared
        contents = () if kind is Kind.WRITE else node.resources
        given = [_type(test, name) for name in (*contents, *node.inputs)]
        return self._call(test, block, given, lanes, device, alone=not kind.writes)

    def cluster_call(
        self, test: LitmusTest, cluster: Cluster, lanes: int, device: jax.Device | None = None
    ) -> tuple[Function, Call]:
        """The call of a cluster.

        It takes the contents of `Function.initial`, then `Function.arguments`, and returns
        the results of `Function.block` as a tuple.
        """
        function = convert(test, cluster)
        given = [_type(test, name) for name in (*function.initial, *function.arguments)]
        return function, self._call(test, function.block, given, lanes, device, alone=False)

    def _call(
        self,
        test: LitmusTest,
        block: Block,
        given: list[TensorType],
        lanes: int,
        device: jax.Device | None,
        *,
        alone: bool,
    ) -> Call:
        device = device or default_device()
        bound = _bound(test, block, lanes, device)
        arguments = [(each.dtype, shape_of(test, each, lanes)) for each in given]
        arguments += [(str(each.dtype), each.shape) for each in bound.values()]
        key = (device, alone, tuple(arguments), structure(block))
        function = self._functions.get(key)
        if function is None:
            start = time.perf_counter()
            place = SingleDeviceSharding(device)
            shapes = [_Shape(s, d, sharding=place) for d, s in arguments]
            # Ahead-of-time compilation: `jit` saves half a microsecond a call, but keeps
            # intermediate forms, which take seven times the memory.
            lowered = _jitted(block, tuple(bound), alone=alone).lower(*shapes)
            function = lowered.compile(self.options)
            self._functions[key] = function
            if len(self._functions) > self.limit:
                self._functions.popitem(last=False)
            self.statistics.compiled += 1
            self.statistics.seconds += time.perf_counter() - start
        else:
            self._functions.move_to_end(key)
            self.statistics.found += 1
        return Call(function, tuple(bound.values()))


def _type(test: LitmusTest, name: str) -> TensorType:
    """Type of a value, or of a variable's contents."""
    return test.types.get(name) or test.type_of(name)


def _same(value: jax.Array) -> jax.Array:
    return value


def structure(block: Block) -> Hashable:
    """The structure of a block: the block without names and numbers."""
    return _structure(block, {NO: -2, YES: -1}, count())


def _structure(block: Block, numbers: dict[str, int], fresh: Iterator[int]) -> Hashable:
    def define(names: tuple[str, ...]) -> None:
        numbers.update(zip(names, fresh, strict=False))

    define(block.parameters)
    statements = []
    for statement in block.statements:
        attrs = statement.node.attrs
        statements.append(
            (
                statement.node.op,
                attrs.use_nesterov if isinstance(attrs, MomentumAttrs) else None,
                tuple(numbers[name] for name in statement.operands),
                tuple(_structure(inner, numbers, fresh) for inner in statement.blocks),
            )
        )
        define(statement.results)
    return len(block.parameters), *statements, tuple(numbers[name] for name in block.results)


def _all_statements(block: Block) -> Iterator[Statement]:
    for statement in block.statements:
        yield statement
        for inner in statement.blocks:
            yield from _all_statements(inner)


def _bound(
    test: LitmusTest, block: Block, lanes: int, device: jax.Device | None
) -> dict[str, jax.Array]:
    """Bound constants and rows, by the first result of their statement."""
    found: dict[str, jax.Array] = {}
    for statement in _all_statements(block):
        node = statement.node
        rows = indices_of(node)
        if isinstance(node.attrs, ConstAttrs):
            given = TensorType(node.attrs.dtype, node.attrs.shape)
            found[statement.results[0]] = constant(test, test.constant(node), given, lanes, device)
        elif rows is not None:
            found[statement.results[0]] = jax.device_put(
                np.array(rows, np.int32), device or default_device()
            )
    return found


_Values = dict[str, jax.Array]


def _jitted(block: Block, bound: tuple[str, ...], *, alone: bool) -> Any:
    """The block as a function of its parameters, then its bound arguments."""

    def function(*arguments: jax.Array) -> Any:
        given = len(block.parameters)
        values = {NO: jnp.bool_(0), YES: jnp.bool_(1)}
        values |= zip(block.parameters, arguments[:given], strict=True)
        constants = dict(zip(bound, arguments[given:], strict=True))
        results = _evaluate(block, values, constants)
        return results[0] if alone else results

    return jax.jit(function)


def _evaluate(block: Block, values: _Values, bound: _Values) -> tuple[jax.Array, ...]:
    """The results of a block; `values` holds the earlier values."""
    values = dict(values)
    for statement in block.statements:
        operands = [values[name] for name in statement.operands]
        if isinstance(statement.node.attrs, LoopAttrs):
            results = _loop(statement, operands, values, bound)
        elif statement.blocks:
            results = _branch(statement, operands[0], values, bound)
        else:
            results = apply(statement.node, operands, bound.get(statement.results[0]))
        values |= zip(statement.results, results, strict=True)
    return tuple(values[name] for name in block.results)


def _branch(
    statement: Statement, predicate: jax.Array, values: _Values, bound: _Values
) -> tuple[jax.Array, ...]:
    then, orelse = statement.blocks
    results: tuple[jax.Array, ...] = lax.cond(
        _first_lane(predicate),
        lambda: _evaluate(then, values, bound),
        lambda: _evaluate(orelse, values, bound),
    )
    return results


def _loop(
    statement: Statement, first: list[jax.Array], values: _Values, bound: _Values
) -> tuple[jax.Array, ...]:
    """The loop, with its condition evaluated before it and at the end of each iteration.

    The condition of `lax.while_loop` cannot change state; a test's condition may write.
    """
    assert isinstance(statement.node.attrs, LoopAttrs)
    condition, body = statement.blocks
    carried = len(statement.node.attrs.carried)
    Round = tuple[jax.Array, ...]  # noqa: N806

    def tested(going: Round) -> Round:
        inside = values | dict(zip(condition.parameters, going, strict=True))
        predicate, *state = _evaluate(condition, inside, bound)
        return _first_lane(predicate), *going[:carried], *state

    def step(going: Round) -> Round:
        inside = values | dict(zip(body.parameters, going[1:], strict=True))
        return tested(_evaluate(body, inside, bound))

    going: Round = lax.while_loop(lambda each: each[0], step, tested(tuple(first)))
    return going[1:]


def _first_lane(predicate: jax.Array) -> jax.Array:
    return predicate.reshape(-1)[0]
