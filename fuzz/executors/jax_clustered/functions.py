"""Compiles ops and clusters to JAX functions, with a cache by structure.

The *structure* of a function consists of its ops, their connections, and the dtypes and
shapes of its arguments, without names and numbers. Constants, and the rows that a sparse
op uses, are additional arguments that are *bound* to each call. Tests that differ only
in names and numbers thus share one compiled function.

A cluster is compiled from its SSA form, or from a function over JAX's references
(`references`), whose structure is what JAX makes of it: the text of the lowered function.
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

from litmusfuzz.corpus.model import LoopAttrs, all_nodes
from litmusfuzz.corpus.ops import ConstAttrs, Kind, MomentumAttrs, TensorType
from litmusfuzz.fuzz.executors.jax_clustered.arrays import constant, default_device, shape_of
from litmusfuzz.fuzz.executors.jax_clustered.ops import rows_of, value_or_contents
from litmusfuzz.fuzz.executors.jax_clustered.references import over_references
from litmusfuzz.fuzz.passes.ssa import NO, YES, Block, Function, Statement, convert, single

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node

_Shape: Any = jax.ShapeDtypeStruct  # its annotations are incomplete
_Values = dict[str, jax.Array]
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
            return Call(_same, tuple(_bound(test, [(node.name, node)], lanes, device).values()))
        if node.op in ("Identity", "ReadVariableOp"):
            return Call(_same)  # arrays are immutable and may be shared
        contents = () if kind is Kind.WRITE else node.resources
        given = [_type(test, name) for name in (*contents, *node.inputs)]
        return self._call(test, block, given, lanes, device, alone=not kind.writes)

    def cluster_call(
        self,
        test: LitmusTest,
        cluster: Cluster,
        lanes: int,
        device: jax.Device | None = None,
        *,
        lowering: str = "ssa",
    ) -> tuple[Function, Call]:
        """The call of a cluster.

        It takes the contents of `Function.initial`, then `Function.arguments`, and returns
        the results of `Function.block` as a tuple.

        Parameters
        ----------
        lowering : str
            What it is compiled from: ``ssa``, its SSA form, or ``references``, a function over
            references.
        """
        function = convert(test, cluster)
        given = [_type(test, name) for name in (*function.initial, *function.arguments)]
        if lowering == "ssa":
            return function, self._call(test, function.block, given, lanes, device, alone=False)
        device = device or default_device()
        members = [node for node in test.nodes if node.name in cluster.members]
        named = ((node.name, node) for node in all_nodes(members))
        bound = _bound(test, named, lanes, device)
        made = over_references(test, cluster, function, lanes, tuple(bound))
        start = time.perf_counter()
        shapes = _shapes(test, given, bound, lanes, device)
        lowered = jax.jit(made).lower(*shapes)
        # The text lacks arguments that nothing uses.
        key = (device, _types(shapes), lowered.as_text())
        return function, self._cached(key, lambda: lowered, bound, start)

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
        named = ((each.results[0], each.node) for each in _all_statements(block))
        bound = _bound(test, named, lanes, device)
        shapes = _shapes(test, given, bound, lanes, device)
        return self._cached(
            (device, alone, _types(shapes), structure(block)),
            lambda: _jitted(block, tuple(bound), alone=alone).lower(*shapes),
            bound,
            time.perf_counter(),
        )

    def _cached(
        self, key: Hashable, lower: Callable[[], Any], bound: _Values, start: float
    ) -> Call:
        """The function of a structure, compiled if it is new; it took JAX since `start`."""
        function = self._functions.get(key)
        if function is None:
            # Ahead-of-time compilation: `jit` saves half a microsecond a call, but keeps
            # intermediate forms, which take seven times the memory.
            function = lower().compile(self.options)
            self._functions[key] = function
            if len(self._functions) > self.limit:
                self._functions.popitem(last=False)
            self.statistics.compiled += 1
            self.statistics.seconds += time.perf_counter() - start
        else:
            self._functions.move_to_end(key)
            self.statistics.found += 1
        return Call(function, tuple(bound.values()))


def _shapes(
    test: LitmusTest,
    given: Iterable[TensorType],
    bound: _Values,
    lanes: int,
    device: jax.Device,
) -> list[Any]:
    """The arguments of a function, for JAX: operands of these types, and what is bound."""
    place = SingleDeviceSharding(device)
    arguments = [(each.dtype, shape_of(test, each, lanes)) for each in given]
    arguments += [(str(each.dtype), each.shape) for each in bound.values()]
    return [_Shape(shape, dtype, sharding=place) for dtype, shape in arguments]


def _types(shapes: Iterable[Any]) -> Hashable:
    return tuple((str(each.dtype), each.shape) for each in shapes)


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
    test: LitmusTest, named: Iterable[tuple[str, Node]], lanes: int, device: jax.Device | None
) -> _Values:
    """Bound constants and rows, by the names that come with their nodes."""
    found: _Values = {}
    for name, node in named:
        rows = rows_of(node)
        if isinstance(node.attrs, ConstAttrs):
            given = TensorType(node.attrs.dtype, node.attrs.shape)
            found[name] = constant(test, test.constant(node), given, lanes, device)
        elif rows is not None:
            found[name] = jax.device_put(np.array(rows, np.int32), device or default_device())
    return found


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
        elif isinstance(statement.node.attrs, ConstAttrs):
            results = (bound[statement.results[0]],)
        else:
            rows = bound.get(statement.results[0])
            results = value_or_contents(statement.node, operands, rows)
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
