"""Values that TensorFlow returns: as arrays, compared, and as text."""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

_SMALL: Final = 8
"""Elements of a value that is printed as a whole."""
_LONG: Final = 60
"""Bytes of a text that is printed as a whole."""


def as_array(value: Any) -> Any:
    """A value that TensorFlow returns, as an array of its own; of texts, an array of objects.

    A single text is bytes to TensorFlow; NumPy's type of bytes would drop zero bytes at its end.
    """
    return np.array(value, np.object_ if isinstance(value, bytes) else None)


def equal(one: Any, two: Any) -> bool:
    """True if two arrays are equal; NaN equals itself."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype == np.object_:
        return bool(np.array_equal(one, two))
    return bool(one.tobytes() == two.tobytes())


def first_difference(one: Any, two: Any) -> tuple[tuple[int, ...], str]:
    """Index of the first element in which large arrays differ, and its text.

    The text is "" for arrays that are small, or have different shapes: these are printed whole.
    """
    if one.size <= _SMALL or one.shape != two.shape:
        return (), ""
    for index in np.ndindex(one.shape):
        if not equal(as_array(one[index]), as_array(two[index])):
            return index, f"[{', '.join(map(str, index))}]"
    raise AssertionError("they are equal")


def text_of(value: Any) -> str:
    """A value for the reader.

    Of a large array the type and the shape, of a long text the length and a checksum.
    """
    array = as_array(value)
    if array.dtype == np.object_ and not array.shape:
        text = array.item()
        if len(text) > _LONG:
            return f"{len(text)} bytes with the CRC-32 {zlib.crc32(text):08x}"
        return repr(_decoded(text))
    if array.size > _SMALL:
        return f"{array.dtype} {list(array.shape)}"
    if array.dtype == np.object_:
        return str(np.vectorize(_decoded, otypes=[object])(array).tolist())
    return np.array2string(array, separator=", ").replace("\n", "")


def _decoded(text: bytes) -> str | bytes:
    """The characters of a text; the bytes if they are no UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text
