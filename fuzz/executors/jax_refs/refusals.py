"""The messages with which JAX refuses a program over references, reviewed.

Each is a rule of its documentation, or says that something is not implemented. Any other exception
from inside JAX is a failure of its own.
"""

from __future__ import annotations

from typing import Final

from litmusfuzz.fuzz.executors.traced.failures import Refusal

REFUSALS: Final = (
    Refusal(
        r"Reverse-mode differentiation does not work for lax\.while_loop",
        "lax.while_loop has no reverse mode",
    ),
    Refusal(
        r"can't apply forward-mode differentiation \(jvp\) to a custom_vjp function",
        "a function with jax.custom_vjp has no forward mode",
    ),
    Refusal(
        r"only one reference to a mutable array may be passed .* when tracing while ",
        "two functions of an eager lax.while_loop close over one reference",
    ),
    # `vmap` turns such a conditional into a selection. It says that it does not if a branch has an
    # effect, but the reads of a reference whose values nobody uses are gone after differentiation.
    Refusal(
        r"only one reference to a mutable array may be passed .* when tracing select_n "
        r"|Attempting to pass a Ref .* to a primitive: select_n ",
        "not implemented: vmap over the predicate of a conditional that takes references",
    ),
    Refusal(r"slice must have a step >= 1", "a reference takes no negative step"),
    Refusal(r"Out of bound (indexer|slice)", "an index beyond the end that is known while tracing"),
)
