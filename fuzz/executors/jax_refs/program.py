"""A test as functions over references, transformed as the settings say.

The *program* takes references and constants and executes all runs of the test, in the order of the
file; its results are the observed values. Around it come batching, then compilation.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from litmusfuzz.fuzz.executors.jax_refs.derivatives import DERIVATIVES
from litmusfuzz.fuzz.executors.jax_refs.space import COPIES, PIECE
from litmusfuzz.fuzz.executors.traced.inputs import (
    array_of,
    constants_of,
    contents_of,
    fed_to,
    key_of,
    observed_of,
)
from litmusfuzz.fuzz.executors.traced.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from litmusfuzz.corpus.model import LitmusTest, Node
    from litmusfuzz.fuzz.executors.jax_refs.lowering import Lowering
    from litmusfuzz.fuzz.executors.jax_refs.space import Settings

Array = Any
Ref = Any
Arrays = dict[str, Array]
Refs = dict[str, Ref]
_EXPORTED = {"cpu": "cpu", "gpu": "cuda"}
"""What `jax.export` calls a platform."""
_ROWS: Any = P("d")  # type: ignore[no-untyped-call]
_WHOLE: Any = P()  # type: ignore[no-untyped-call]


class Program:
    """One test as a function that takes arrays and returns the values of an outcome.

    Parameters
    ----------
    test : LitmusTest
    settings : Settings
    lowering : Lowering
    """

    def __init__(self, test: LitmusTest, settings: Settings, lowering: Lowering) -> None:
        self.test = test
        self.settings = settings
        self.lowering = lowering
        self.contents: Arrays = dict(contents_of(test))
        self.given: dict[str, Arrays] = {run.name: dict(fed_to(test, run)) for run in test.runs}
        self.given[""] = dict(constants_of(test))
        self._by = [v.name for v in test.variables if v.gradient]
        self.lowering.differentiated = bool(self._by)
        self._jitted: dict[str, Callable[..., Any]] = {}
        self._refs: Refs = {}

    # --- one execution ----------------------------------------------------------------------

    def execute(self, place: int) -> Arrays:
        """Execute the program once; the values of an outcome, by key.

        Parameters
        ----------
        place : int
            Of the copy that has the test's own contents, of the copies of a batch (modulo their
            number).
        """
        place %= COPIES
        contents, given = self.contents, self.given
        if self.settings.batch:
            contents = self._copies(contents, place)
        if self.settings.batch == "vmap_all":
            given = jax.tree.map(lambda each: np.stack([each] * COPIES), given)
        # `jnp.asarray` compiles a copy for each shape. What is put may have the memory of NumPy's
        # array, in which JAX computes nothing: a donated array needs its own.
        put = jnp.asarray if self.settings.donate else jax.device_put
        given = jax.device_put(given)
        arrays = {name: self._placed(put(each)) for name, each in contents.items()}
        if self._apart:
            observed, final = self._whole
            values = observed(arrays, given) | final(arrays, given)
        elif self._inside:
            values = self._whole(arrays, given)
        else:
            refs = self._references(arrays)
            values = dict(self._whole(*self._packed(refs), given))
            values |= {name: self._final(ref) for name, ref in refs.items()}
        found = {name: np.asarray(value) for name, value in values.items()}
        if self.settings.batch:
            found = {name: np.take(v, place, self._axis) for name, v in found.items()}
        return found

    def _placed(self, array: Array) -> Array:
        """An array on the devices of the settings."""
        count = self.settings.devices
        if count == 1:
            return array
        spec = _ROWS if array.ndim and array.shape[0] % count == 0 else _WHOLE
        return jax.device_put(array, NamedSharding(_mesh(count), spec))

    def _references(self, contents: Arrays) -> Refs:
        """References with these contents; those that the program closes over stay the same."""
        if self.settings.references == "closure" and self._refs:
            for name, ref in self._refs.items():
                ref[...] = contents[name]
        else:
            self._refs = {name: jax.new_ref(each) for name, each in contents.items()}
        return self._refs

    def _final(self, ref: Ref) -> Array:
        if self.settings.forbidden == "freeze":
            jax.ref.freeze(ref)
        if self.settings.final == "freeze" and self.settings.references != "closure":
            return jax.ref.freeze(ref)
        return ref[...]

    @property
    def _inside(self) -> bool:
        """True if the program takes arrays and creates the references."""
        return self.settings.references == "inside" or bool(self._by)

    @property
    def _apart(self) -> bool:
        """True if one program has the observed values, and another one the final contents."""
        return self.settings.final == "apart" and not self._by

    @property
    def _how(self) -> str:
        """How functions get references."""
        how = self.settings.references
        return "argument" if how == "closure" and self._by else how

    # --- gradients --------------------------------------------------------------------------

    def _differentiated(self, function: Callable[..., Arrays]) -> Callable[..., Any]:
        """A function of contents, with the gradients that the test has among its values."""
        weights = {
            key: array_of(each, self.test.type_of(key)) for key, each in self.test.weights.items()
        }
        derivative = DERIVATIVES[self.settings.derivative]
        keys = {variable.name: variable.gradient_key for variable in self.test.variables}

        def differentiated(contents: Arrays, given: dict[str, Arrays]) -> Arrays:
            others = {name: value for name, value in contents.items() if name not in self._by}

            def floats(by: Arrays) -> tuple[Arrays, Arrays]:
                values = function({name: (others | by)[name] for name in contents}, given)
                return {key: values[key] for key in weights}, values

            gradients, values = derivative(floats, {n: contents[n] for n in self._by}, weights)
            return values | {keys[name]: each for name, each in gradients.items()}

        return differentiated

    # --- batches ----------------------------------------------------------------------------

    @property
    def _axis(self) -> int:
        return -1 if self.settings.batch == "vmap_last" else 0

    def _copies(self, contents: Mapping[str, Any], place: int) -> dict[str, Any]:
        """The contents of all copies: the test's own at that place, others elsewhere."""
        return {
            name: np.stack(
                [each + np.array((n - place) % COPIES, each.dtype) for n in range(COPIES)],
                self._axis,
            )
            for name, each in contents.items()
        }

    def _batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function over all copies. What it is given is theirs in common, or one for each."""
        if not self.settings.batch:
            return function
        references = 1 if self._inside else len(self._packed(self.contents))
        given = 0 if self.settings.batch == "vmap_all" else None
        axes = (*([self._axis] * references), given)
        made: Callable[..., Any]
        if self.settings.batch == "shard_map":
            made = jax.shard_map(
                lambda a, c: jax.tree.map(lambda x: x[None], function(_first(a), c)),
                mesh=_mesh(COPIES),
                in_specs=(_ROWS, _WHOLE),
                out_specs=_ROWS,
                check_vma=False,
            )
        else:
            made = jax.vmap(function, in_axes=axes, out_axes=self._axis)
        return made

    # --- the program ------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> Any:
        """The program, with all transformations around it; or both, that of final contents last."""
        made = self._function()
        if not self._apart:
            return self._compiled(self._batched(made))

        def part(*, final: bool) -> Callable[..., Any]:
            def chosen(*arguments: Any) -> Arrays:
                found = made(*arguments)
                return {k: each for k, each in found.items() if (k in self.contents) is final}

            return self._compiled(self._batched(chosen))

        return part(final=False), part(final=True)

    def _function(self) -> Callable[..., Any]:
        """The program as a function of references or contents, and of what it is given."""
        if not self._inside:
            return lambda *arguments: self._runs(*self._unpacked(arguments))

        def inside(contents: Arrays, given: dict[str, Arrays]) -> Arrays:
            refs = {name: jax.new_ref(value) for name, value in contents.items()}
            values = self._runs(refs, given)
            return values | {name: self._final(ref) for name, ref in refs.items()}

        if self.settings.checkpoint:
            policy = getattr(jax.checkpoint_policies, f"{self.settings.checkpoint}_saveable")
            inside = jax.checkpoint(inside, policy=policy)
        return self._differentiated(inside) if self._by else inside

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        how = self.settings.compiled
        if not how:
            return function
        jitted: Any = jax.jit(function, donate_argnums=(0,) if self.settings.donate else ())
        if how == "jit":
            return lambda *arguments: jitted(*arguments)
        made: list[Callable[..., Any]] = []

        def called(*arguments: Any) -> Any:
            if not made and how == "aot":
                made.append(jitted.lower(*arguments).compile())
            elif not made:
                platforms = [_EXPORTED[self.settings.platform]]
                exported = export.export(jitted, platforms=platforms)(*arguments)
                serialized = exported.serialize()
                made.append(export.deserialize(serialized).call)
            return made[0](*arguments)

        return called

    def _packed(self, refs: Mapping[str, Ref]) -> tuple[Any, ...]:
        """References, or contents, as the first arguments of a function."""
        how = self._how
        if how == "closure":
            return ()
        # Not in the order of `refs`: a trace sorts dictionaries.
        return tuple(refs[name] for name in self.contents) if how == "argument" else (dict(refs),)

    def _unpacked(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """References by name, then the other arguments, of those that `_packed` made."""
        how = self._how
        if how == "closure":
            return self._refs, *arguments
        if how == "argument":
            count = len(self.contents)
            refs = dict(zip(self.contents, arguments[:count], strict=True))
            return refs, *arguments[count:]
        return tuple(arguments)

    def _runs(self, refs: Refs, given: dict[str, Arrays]) -> Arrays:
        """Execute all runs; the observed values by key."""
        found: Arrays = {}
        for run in self.test.runs:
            nodes = self.test.graph_of(run).nodes
            fed, observed = given[run.name], observed_of(self.test, run)
            values: Arrays = dict(fed)
            for number, piece in enumerate(self._pieces(nodes)):
                later = {name for each in nodes[piece.stop :] for name in each.references}
                wanted = [
                    key for n in nodes[piece] for key in n.keys if key in later or key in observed
                ]
                values |= self._part(
                    f"{run.name} {number}", nodes[piece], wanted, refs, given[""], values
                )
            found |= {key_of(self.test, run, name): values[name] for name in observed}
        return found

    def _pieces(self, nodes: Sequence[Node]) -> Iterator[slice]:
        """Parts of a run that are executed as one."""
        length = PIECE if self.settings.parts == "pieces" else max(1, len(nodes))
        for start in range(0, len(nodes), length):
            yield slice(start, min(start + length, len(nodes)))

    def _part(
        self,
        name: str,
        nodes: Sequence[Node],
        wanted: Sequence[str],
        refs: Refs,
        constants: Arrays,
        values: Arrays,
    ) -> Arrays:
        """Execute nodes of a run; the values that others want."""

        def function(*arguments: Any) -> Arrays:
            own, constants, values = self._unpacked(arguments)
            walk = Walk(self.test, self.lowering, constants)
            made = walk.nodes(nodes, dict(values), dict(own))
            return {name: made[name] for name in wanted if name in made}

        packed = self._packed(refs)
        if not self.settings.parts:
            return function(*packed, constants, values)
        if name not in self._jitted:
            jitted = jax.jit(function)
            nested = self.settings.parts == "nested"
            self._jitted[name] = jax.jit(lambda *all_: jitted(*all_)) if nested else jitted
        made: Arrays = self._jitted[name](*packed, constants, values)
        return made


def _mesh(count: int) -> Mesh:
    """The first CPU devices, in a row."""
    return Mesh(np.array(jax.devices("cpu")[:count]), ("d",))


def _first(arrays: Any) -> Any:
    """What a device has of arrays that are sharded one by one."""
    return jax.tree.map(lambda x: x[0], arrays)
