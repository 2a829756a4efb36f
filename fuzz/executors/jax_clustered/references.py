"""A cluster as a function over JAX's references, of which JAX makes a pure one.

The members work on references, in the order of the cluster; a reference beside each records
whether its variable was written. Our own SSA conversion (`litmusfuzz.fuzz.passes.ssa`) has no
part in it but the lists of operands and results: JAX *discharges* the references itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jax
import jax.numpy as jnp

from litmusfuzz.corpus.model import all_nodes
from litmusfuzz.fuzz.executors.jax_clustered.arrays import shape_of
from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering
from litmusfuzz.fuzz.executors.jax_refs.space import Settings
from litmusfuzz.fuzz.executors.traced.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from litmusfuzz.corpus.model import Cluster, LitmusTest, Node
    from litmusfuzz.fuzz.executors.traced.walk import References, Values
    from litmusfuzz.fuzz.passes.ssa import Function

_SETTINGS: Final = Settings(loops="scan", conditionals="cond")
"""The condition of a compiled `lax.while_loop` does not see what the body wrote
(docs/jax-findings.md)."""


class _NotingWrites(Walk):
    """A walk that notes which variables are written.

    Parameters
    ----------
    flags : mapping of str to reference
        A scalar bool for each variable.
    """

    def __init__(self, test: LitmusTest, constants: Values, flags: References) -> None:
        super().__init__(test, Lowering(_SETTINGS), constants)
        self._flags = flags

    def node(self, node: Node, values: Values, references: References) -> Values:
        """Execute one node; its values."""
        made = super().node(node, values, references)
        if node.definition.kind.writes:
            for variable in self.variables(node):
                self._flags[variable][...] = jnp.bool_(1)
        return made


def over_references(
    test: LitmusTest, cluster: Cluster, function: Function, lanes: int, bound: tuple[str, ...]
) -> Callable[..., tuple[jax.Array, ...]]:
    """The cluster as a function over references.

    Parameters
    ----------
    test : LitmusTest
    cluster : Cluster
    function : Function
        Its SSA form, of which only the names of operands and results are used.
    lanes : int
        Lanes of values that have none.
    bound : tuple of str
        The constants and sparse ops in it; their values follow the operands.
    """
    everything = {node.name: node for node in test.nodes}
    members = [everything[name] for name in cluster.members]
    inside = list(all_nodes(members))
    used = dict.fromkeys(name for node in inside for name in node.resources)
    operands = (*function.initial, *function.arguments)

    def run(*arguments: Any) -> tuple[jax.Array, ...]:
        values = dict(zip(operands, arguments[: len(operands)], strict=True))
        constants = dict(zip(bound, arguments[len(operands) :], strict=True))
        contents = {v: jax.new_ref(_contents(test, v, values, lanes)) for v in used}
        flags = {v: jax.new_ref(jnp.bool_(0)) for v in used}
        walk = _NotingWrites(test, constants, flags)
        values = walk.nodes(members, {n: values[n] for n in function.arguments}, contents)
        outputs = [values[name] for name in function.outputs]
        finals = [contents[each.variable][...] for each in function.finals]
        return (*outputs, *finals, *(flags[f.variable][...] for f in function.finals if f.written))

    return run


def _contents(test: LitmusTest, variable: str, snapshot: Values, lanes: int) -> Any:
    """What a variable holds in the snapshot; zeros if no member reads it."""
    if variable in snapshot:
        return snapshot[variable]
    kind = test.type_of(variable)
    return jnp.zeros(shape_of(test, kind, lanes), kind.dtype)
