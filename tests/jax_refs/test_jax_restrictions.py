"""What JAX's page on references forbids: JAX refuses it, or gives the values of program order.

Each is plain JAX; the page's rule is in the name.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import pytest
from helpers import differentiated
from jax import lax

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.executors.configuration_generator import points
from litmusfuzz.fuzz.executors.jax_refs.executor import JaxRefsExecutor
from litmusfuzz.fuzz.executors.jax_refs.space import ALIASES, FORBIDDEN, SPACE
from litmusfuzz.fuzz.executors.protocol import Noise, Refused
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.oracles import sequential

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = jnp.int32(1)
WITH_BODIES = (
    litmus("r0=X; if r0==0 { X=1; r1=X } else { X=2 }"),
    litmus("X=1; call { X+=2; X+=3 }"),
)


def returns_a_reference() -> object:
    ref = jax.new_ref(ONE)
    return jax.jit(lambda r: r)(ref)


def returns_a_reference_from_a_branch() -> object:
    ref = jax.new_ref(ONE)
    return jax.jit(lambda p: lax.cond(p > 0, lambda: ref, lambda: ref)[...])(ONE)


def one_reference_as_two_arguments() -> object:
    ref = jax.new_ref(ONE)
    return jax.jit(lambda a, b: a[...] + b[...])(ref, ref)


def one_reference_as_argument_and_by_closure() -> object:
    ref = jax.new_ref(ONE)
    return jax.jit(lambda a: a[...] + ref[...])(ref)


def freezes_outside_of_the_creating_scope() -> object:
    ref = jax.new_ref(ONE)
    return jax.jit(jax.ref.freeze)(ref)


def reads_after_freeze() -> object:
    def f(x: jax.Array) -> jax.Array:
        ref = jax.new_ref(x)
        jax.ref.freeze(ref)
        return ref[...]

    return jax.jit(f)(ONE)


def a_reference_to_a_reference() -> object:
    return jax.new_ref(jax.new_ref(ONE))


def vmap_closes_over_a_reference() -> object:
    ref = jax.new_ref(jnp.int32(0))

    def f(x: jax.Array) -> None:
        ref[...] = x

    jax.vmap(f)(jnp.arange(3))
    return ref[...]


def checkpoint_of_an_impure_function() -> object:
    ref = jax.new_ref(jnp.float32(2))

    def f(x: jax.Array) -> jax.Array:
        ref[...] = ref[...] + 1
        return x * ref[...]

    return jax.grad(jax.checkpoint(f))(1.0)


def writes_a_differentiated_value_to_a_plumbing_reference() -> object:
    ref = jax.new_ref(jnp.float32(0))

    def f(x: jax.Array, plumbing: object) -> jax.Array:
        plumbing[...] += x + x
        return x

    return jax.grad(f)(1.0, ref)


def arithmetic_with_a_reference() -> object:
    return jnp.sin(jax.new_ref(jnp.float32(1)))


REFUSED = {
    returns_a_reference: ValueError,
    returns_a_reference_from_a_branch: ValueError,
    one_reference_as_two_arguments: ValueError,
    one_reference_as_argument_and_by_closure: ValueError,
    # By an internal error, which is no finding: the program is forbidden.
    freezes_outside_of_the_creating_scope: IndexError,
    a_reference_to_a_reference: AssertionError,
    vmap_closes_over_a_reference: Exception,
    writes_a_differentiated_value_to_a_plumbing_reference: Exception,
    arithmetic_with_a_reference: TypeError,
}
"""Programs that the page forbids and JAX 0.10.2 refuses, each with the type of its exception."""


@pytest.mark.parametrize("program", REFUSED, ids=lambda each: each.__name__)
def test_jax_refuses(program: Callable[[], object]) -> None:
    with pytest.raises(REFUSED[program]):
        program()


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_a_configuration_does_what_is_forbidden(kind: str) -> None:
    """JAX refuses it by whatever exception, or gives the values of program order.

    A test without conditionals and calls does nothing that is forbidden but a read after freeze.
    """
    config = configuration("jax_refs", f"forbidden_{kind}")
    for test in WITH_BODIES:
        prepared = JaxRefsExecutor().prepare(test, config)
        if kind in ALIASES:
            with pytest.raises(Refused, match=FORBIDDEN[kind]):
                prepared.run(1, Noise(), 0)
        else:
            assert set(prepared.run(1, Noise(), 0)) == {sequential.outcome(test)}
    plain = litmus("X=1; X+=2; r0=X")
    found = JaxRefsExecutor().prepare(plain, config).run(2, Noise(), 0)
    assert set(found) == {sequential.outcome(plain)}


def test_few_generated_configurations_do_what_is_forbidden() -> None:
    """About one in ten, each of the four kinds among them; pairs of values do not count them."""
    made = list(islice(points(SPACE, "seed"), 400))
    found = Counter(str(point["forbidden"]) for point in made)
    assert set(found) == {"", *FORBIDDEN}
    assert 20 < 400 - found[""] < 60
    assert not any("forbidden" in dict(pair) for pair in SPACE.pairs)
    assert not any(map(SPACE.problem, made))


def test_a_checkpoint_of_an_impure_function_has_a_wrong_gradient() -> None:
    """Accepted, though the page forbids it: what the function writes does not end the gradient."""
    test = differentiated(litmus("call { X=1 }", dtype="float32"))
    found = JaxRefsExecutor().prepare(test, configuration("jax_refs", "forbidden_checkpoint"))
    (outcome,) = found.run(1, Noise(), 0)
    assert outcome.plain == {"X": 1, "grad(X)": 1}
    assert sequential.outcome(test).plain == {"X": 1, "grad(X)": 0}


def test_a_read_after_freeze_under_jit_gives_the_frozen_value() -> None:
    """Accepted, though the page forbids it, and right."""
    assert reads_after_freeze() == 1


def test_a_checkpoint_of_an_impure_function_happens_twice() -> None:
    """Accepted, though the page forbids it, and wrong: a finding under that rule.

    In program order the reference holds 3 when x is multiplied with it, which is the gradient.
    """
    assert checkpoint_of_an_impure_function() == 4
