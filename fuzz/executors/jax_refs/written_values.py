"""Values as Python text: what a function would compute with JAX, it writes down instead.

The lowering of a pure op (`jax_refs.pure_ops`) is a function over JAX's modules and arrays. Over
`MODULES` and `Text` it gives the expression that computes the same, for a script.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable


def _binary(sign: str) -> Callable[[Text, object], Text]:
    return lambda self, other: Text(f"({self} {sign} {written(other)})")


def _reflected(sign: str) -> Callable[[Text, object], Text]:
    return lambda self, other: Text(f"({written(other)} {sign} {self})")


class Text:
    """The text of an expression; what is done with it is another expression.

    Parameters
    ----------
    expression : str
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def __str__(self) -> str:
        return self._expression

    def __bool__(self) -> bool:
        raise TypeError(f"nobody knows yet what {self} is")

    def __getattr__(self, name: str) -> Text:
        if name.startswith("__"):  # Python asks for what a value may have
            raise AttributeError(name)
        return Text(f"{self}.{name}")

    def __call__(self, *operands: object, **named: object) -> Text:
        """The call of a function with operands, and with those that are named."""
        listed = [written(each) for each in operands]
        listed += [f"{name}={written(each)}" for name, each in named.items()]
        return Text(f"{self}({', '.join(listed)})")

    def __getitem__(self, index: object) -> Text:
        parts = index if isinstance(index, tuple) else (index,)
        return Text(f"{self}[{', '.join(map(_place, parts)) or '()'}]")

    def __neg__(self) -> Text:
        return Text(f"(-{self})")

    def __invert__(self) -> Text:
        return Text(f"(~{self})")

    __add__, __radd__ = _binary("+"), _reflected("+")
    __sub__, __rsub__ = _binary("-"), _reflected("-")
    __mul__, __rmul__ = _binary("*"), _reflected("*")
    __and__, __or__, __xor__ = _binary("&"), _binary("|"), _binary("^")
    __lshift__, __rshift__ = _binary("<<"), _binary(">>")
    __lt__, __le__, __gt__, __ge__ = _binary("<"), _binary("<="), _binary(">"), _binary(">=")
    __eq__, __ne__ = _binary("=="), _binary("!=")  # type: ignore[assignment]


def written(value: object) -> str:
    """The text of a value: of an expression, or of one that is known."""
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return str(value) if isinstance(value, Text) else repr(value)


def _place(part: object) -> str:
    """A part of an index."""
    if part is ...:
        return "..."
    if not isinstance(part, slice):
        return written(part)
    ends = [part.start, part.stop, *([] if part.step is None else [part.step])]
    return ":".join("" if each is None else written(each) for each in ends)


MODULES: Final[Any] = SimpleNamespace(jnp=Text("jnp"), lax=Text("jax.lax"), ops=Text("jax.ops"))
"""JAX's modules, as a script names them."""
