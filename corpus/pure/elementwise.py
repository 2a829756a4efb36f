"""Ops that compute each element from the elements at the same place of their operands.

Operands broadcast as NumPy's do; in a test with lanes they have one shape or are scalars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.pure.arrays import np
from litmusfuzz.corpus.pure.definition import (
    INTS,
    Call,
    Fails,
    Field,
    Inexact,
    PureOp,
    bounded,
    expect,
    largest_of,
    one,
    passes,
)
from litmusfuzz.corpus.tensors import FLOATS, MAX_MAGNITUDE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from litmusfuzz.corpus.pure.arrays import Array


def _widest(call: Call) -> int:
    return max(len(each.shape) for each in call.inputs)


def _together(*arrays: Array) -> None:
    """Refuse shapes that do not broadcast."""
    try:
        np.broadcast_shapes(*(each.shape for each in arrays))
    except ValueError:
        shapes = " and ".join(str(list(each.shape)) for each in arrays)
        raise Fails(f"shapes {shapes} do not broadcast") from None


def _alike(*arrays: Array) -> None:
    """Refuse operands of different shapes."""
    for each in arrays[1:]:
        if each.shape != arrays[0].shape:
            shapes = f"{list(arrays[0].shape)} and {list(each.shape)}"
            raise Fails(f"operands have one shape, got {shapes}")


def _map(
    name: str,
    f: Callable[[Array], Any],
    kind: str = "T",
    result: str = "",
    largest: Callable[[Call, Sequence[int]], int] = passes,
    operand: str = "x",
) -> PureOp:
    """The row of an op with one operand."""
    signature = f"{operand}:{kind} -> {result or kind}"
    return PureOp(name, signature, lambda _, x: f(x), largest, lanes=True, rank=_widest)


def _zip(
    name: str,
    f: Callable[[Array, Array], Any],
    kind: str = "T",
    result: str = "",
    largest: Callable[[Call, Sequence[int]], int] = passes,
    operands: str = "x y",
    *,
    broadcasts: bool = True,
) -> PureOp:
    """The row of an op with two operands."""
    first, second = operands.split()
    signature = f"{first}:{kind} {second}:{kind} -> {result or kind}"

    def compute(_: Call, x: Array, y: Array) -> Any:
        (_together if broadcasts else _alike)(x, y)
        return f(x, y)

    return PureOp(name, signature, compute, largest, lanes=True, rank=_widest)


def _nonzero(y: Array) -> None:
    expect(not (np.size(y) and (y == 0).any()), "divides by zero", "y")


def _rounded_down(x: Array, y: Array) -> Any:
    _nonzero(y)
    return x // y


def _remainder(x: Array, y: Array) -> Any:
    _nonzero(y)
    return x % y


def _truncate_div(x: Array, y: Array) -> Any:
    _nonzero(y)
    return np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


def _truncate_mod(x: Array, y: Array) -> Any:
    _nonzero(y)
    return np.fmod(x, y)


def _no_zero(divide: Callable[[Array, Array], Any]) -> Callable[[Call, Array, Array], Any]:
    """Division as a float kernel does it: by zero it does not fail, but has no exact result."""

    def compute(call: Call, x: Array, y: Array) -> Any:
        _together(x, y)
        if call.inputs[0].dtype in FLOATS and np.size(y) and (y == 0).any():
            raise Inexact("divides a float by zero")
        return divide(x, y)

    return compute


def _divide(name: str, f: Callable[[Array, Array], Any], dtypes: tuple[str, ...] = ()) -> PureOp:
    return PureOp(
        name,
        "x:T y:T -> T",
        _no_zero(f),
        passes,
        lanes=True,
        rank=_widest,
        dtypes=dtypes,
        divisors=("y",),
    )


def _pow(call: Call, x: Array, y: Array) -> Any:
    _together(x, y)
    x, y = np.broadcast_arrays(x, y)
    if call.inputs[0].dtype in INTS:
        expect(not (y.size and (y < 0).any()), "an integer to a negative power", "y")
    elif ((y < 0) & (np.abs(x) != 1)).any():
        raise Inexact("a negative power is no integer")
    # The square root of the limit to the 64th is far above it; the sign depends on the parity.
    small = np.where(np.abs(x) <= 1, y % 2 + 2 * (y > 0), np.minimum(y, 64))
    values = [int(b) ** int(e) for b, e in zip(x.ravel(), small.ravel(), strict=True)]
    if any(abs(each) >= MAX_MAGNITUDE for each in values):
        raise Inexact("a power of 2**24 or more")
    return np.array(values, np.int64).reshape(x.shape)


def _largest_power(_: Call, bounds: Sequence[int]) -> int:
    power: int = max(bounds[0], 1) ** min(bounds[1], 64)
    return min(power, MAX_MAGNITUDE << 1)


def _shift(f: Callable[[Array, Array], Any]) -> Callable[[Call, Array, Array], Any]:
    def compute(call: Call, x: Array, y: Array) -> Any:
        _together(x, y)
        bits = 32 if call.inputs[0].dtype == "int32" else 64
        if ((y < 0) | (y >= bits)).any():
            raise Inexact(f"shifts {bits} bits by another number of bits than 0 to {bits - 1}")
        return f(x, np.minimum(y, 31))  # values have 25 bits

    return compute


def _no_overflow(x: Array) -> Array:
    """A product of three factors, each multiplied in any order."""
    bounded(np.abs(x), "a product")
    return x


def _three(a: Array, b: Array, c: Array) -> Array:
    """The product of three, of which no two have one of 2**24 or more."""
    bounded(np.abs(a * b), "a product")
    bounded(np.abs(b * c), "a product")
    bounded(np.abs(a * c), "a product")
    return _no_overflow(a * b * c)


def _tanh_grad(y: Array, dy: Array) -> Array:
    bounded(y * y + 1, "a sum of magnitudes")
    return dy * (1 - y * y)


def _relu6_grad(gradients: Array, features: Array) -> Any:
    return np.where((features > 0) & (features < 6), gradients, 0)


def _elu_grad(gradients: Array, outputs: Array) -> Any:
    bounded(np.abs(outputs) + 1)
    return np.where(outputs < 0, (outputs + 1) * gradients, gradients)


def _leaky(call: Call, features: Array) -> Any:
    scaled = call["alpha"] * features
    bounded(np.abs(scaled), "a product")
    return np.where(features > 0, features, scaled)


def _leaky_grad(call: Call, gradients: Array, features: Array) -> Any:
    _alike(gradients, features)
    scaled = call["alpha"] * gradients
    bounded(np.abs(scaled), "a product")
    return np.where(features > 0, gradients, scaled)


def _clip(_: Call, t: Array, low: Array, high: Array) -> Any:
    for operand, each in (("clip_value_min", low), ("clip_value_max", high)):
        expect(each.shape in ((), t.shape), "has the shape of t or is a scalar", operand)
    if (low > high).any():
        raise Inexact("clips to a range that holds no value")
    return np.maximum(np.minimum(t, high), low)


def _add_n(_: Call, inputs: list[Array]) -> Any:
    _alike(*inputs)
    bounded(sum(np.abs(each) for each in inputs))
    return sum(inputs)


def _select(_: Call, condition: Array, t: Array, e: Array) -> Any:
    _together(condition, t, e)
    return np.where(condition != 0, t, e)


def _bucketize(call: Call, x: Array) -> Any:
    limits = call["boundaries"]
    expect(list(limits) == sorted(limits), "boundaries must be sorted")
    return np.searchsorted(np.array(limits, np.int64), x, side="right")


def _cast(call: Call, x: Array) -> Any:
    return (x != 0).astype(np.int64) if call["DstT"] == "bool" else x


def _alpha_times(call: Call, bounds: Sequence[int]) -> int:
    alpha: int = call["alpha"]
    return max(1, abs(alpha)) * max(1, bounds[0])


def _sum(_: Call, bounds: Sequence[int]) -> int:
    return sum(bounds)


_ALPHA: Final = (Field("alpha", "int"),)
_COMPARISONS: Final[dict[str, Callable[[Array, Array], Any]]] = {
    "LessEqual": lambda x, y: x <= y,
    "Greater": lambda x, y: x > y,
    "GreaterEqual": lambda x, y: x >= y,
}
ROWS: Final = (
    _map("Abs", lambda x: np.abs(x)),
    _map("Sign", lambda x: np.sign(x)),
    _map("Square", lambda x: x * x, largest=lambda _, b: b[0] * b[0]),
    *(_map(n, lambda x: x, "F") for n in ("Floor", "Ceil", "Rint", "Round")),
    _map("Relu6", lambda x: np.clip(x, 0, 6), operand="features"),
    _map("OnesLike", lambda x: np.ones_like(x), "A", largest=one),
    _map("ZerosLike", lambda x: np.zeros_like(x), "A", largest=one),
    _map("Invert", lambda x: ~x, "I", largest=lambda _, b: b[0] + 1),
    _map("LogicalNot", lambda x: 1 - x, "bool", largest=one),
    *(_map(n, lambda x: np.zeros_like(x), "F", "bool", one) for n in ("IsNan", "IsInf")),
    _map("IsFinite", lambda x: np.ones_like(x), "F", "bool", one),
    *(
        _map(n, lambda x: x, "A", operand="input")
        for n in ("StopGradient", "PreventGradient", "Snapshot", "DebugGradientIdentity")
    ),
    PureOp(
        "CheckNumerics",
        "tensor:F -> F",
        lambda _, x: x,
        passes,
        (Field("message", ("",), ""),),
        lanes=True,
        rank=_widest,
    ),
    PureOp("LeakyRelu", "features:F -> F", _leaky, _alpha_times, _ALPHA, lanes=True, rank=_widest),
    PureOp(
        "LeakyReluGrad",
        "gradients:F features:F -> F",
        _leaky_grad,
        _alpha_times,
        _ALPHA,
        lanes=True,
        rank=_widest,
    ),
    PureOp(
        "Cast",
        "x:A -> @DstT=A",
        _cast,
        passes,
        (Field("DstT", "dtype"),),
        lanes=True,
        rank=_widest,
    ),
    PureOp(
        "Bucketize",
        "input:T -> int32",
        _bucketize,
        lambda call, _: max(1, len(call["boundaries"])),
        (Field("boundaries", "ints"),),
        lanes=True,
        rank=_widest,
    ),
    _zip("Add", lambda x, y: x + y, largest=_sum),
    _zip("MulNoNan", lambda x, y: x * y, "F", largest=lambda _, b: b[0] * b[1]),
    _divide("FloorDiv", _rounded_down),
    _divide("FloorMod", _remainder),
    _divide("TruncateDiv", _truncate_div, INTS),
    _divide("Div", _truncate_div, INTS),
    _divide("TruncateMod", _truncate_mod),
    _divide("Mod", _truncate_mod),
    _zip(
        "SquaredDifference",
        lambda x, y: (x - y) ** 2,
        largest=lambda _, b: (b[0] + b[1]) ** 2,
    ),
    PureOp(
        "Pow",
        "x:T y:T -> T",
        _pow,
        _largest_power,
        lanes=True,
        rank=_widest,
        divisors=("y",),
        dtypes=(*INTS, "float64"),  # 3**4 is 81.00001 in float32
    ),
    _zip("ApproximateEqual", lambda x, y: x == y, "F", "bool", one, broadcasts=False),
    _zip("BitwiseAnd", lambda x, y: x & y, "I", largest=lambda _, b: 2 * max(1, *b)),
    _zip("BitwiseOr", lambda x, y: x | y, "I", largest=lambda _, b: 2 * max(1, *b)),
    _zip("BitwiseXor", lambda x, y: x ^ y, "I", largest=lambda _, b: 2 * max(1, *b)),
    PureOp(
        "LeftShift",
        "x:I y:I -> I",
        _shift(lambda x, y: x << y),
        lambda _, b: max(1, b[0]) << min(b[1], 25),
        lanes=True,
        rank=_widest,
    ),
    PureOp(
        "RightShift", "x:I y:I -> I", _shift(lambda x, y: x >> y), passes, lanes=True, rank=_widest
    ),
    _zip("LogicalAnd", lambda x, y: x & y, "bool", largest=one),
    _zip("LogicalOr", lambda x, y: x | y, "bool", largest=one),
    *(_zip(name, f, "T", "bool", one) for name, f in _COMPARISONS.items()),
    _zip("NotEqual", lambda x, y: x != y, "A", "bool", one),
    PureOp(
        "ClipByValue",
        "t:T clip_value_min:T clip_value_max:T -> T",
        _clip,
        passes,
        lanes=True,
        rank=_widest,
    ),
    PureOp("AddN", "inputs*:T -> T", _add_n, _sum, lanes=True, rank=_widest),
    PureOp(
        "SelectV2",
        "condition:bool t:A e:A -> A",
        _select,
        largest_of("t", "e"),
        lanes=True,
        rank=_widest,
    ),
    _zip("Relu6Grad", _relu6_grad, operands="gradients features", broadcasts=False),
    _zip(
        "TanhGrad",
        _tanh_grad,
        "F",
        operands="y dy",
        broadcasts=False,
        largest=lambda _, b: max(1, b[1]) * (b[0] * b[0] + 1),
    ),
    _zip(
        "SigmoidGrad",
        lambda y, dy: _three(dy, y, 1 - y),
        "F",
        operands="y dy",
        broadcasts=False,
        largest=lambda _, b: max(1, b[0]) * max(1, b[1]) * (b[0] + 1),
    ),
    *(
        _zip(
            name,
            lambda y, dy: -_three(dy, y, y),
            "F",
            operands="y dy",
            broadcasts=False,
            largest=lambda _, b: max(1, b[0]) ** 2 * max(1, b[1]),
        )
        for name in ("ReciprocalGrad", "InvGrad")
    ),
    _zip(
        "EluGrad",
        _elu_grad,
        "F",
        operands="gradients outputs",
        broadcasts=False,
        largest=lambda _, b: max(1, b[0]) * (b[1] + 1),
    ),
)
"""Rows of this family."""
