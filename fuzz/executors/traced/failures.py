"""Tells refusals of a traced system from its failures.

A system may refuse a program: it says that it does not implement something, or names a rule of its
documentation. What else it raises about a program that its documentation allows is a failure of
its own: an internal error. Such an error ends the worker; its message has the type of the
exception and the place in the system that raised it, by which campaigns group crashes.
"""

from __future__ import annotations

import re
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.executors.protocol import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ASKED: Final = ("__getattr__", "__array__", "__array_ufunc__")
"""Methods by which a value says that it lacks something."""


class SystemFailed(RuntimeError):
    """A traced system raised an internal error on a program that its documentation allows."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message with which a system refuses a program, reviewed by a person.

    Parameters
    ----------
    message : str
        A regular expression that the message contains.
    why : str
        The rule of the system's documentation, or what it says that it does not implement.
    """

    message: str
    why: str


@contextmanager
def sorted_failures(package: str, refusals: Sequence[Refusal]) -> Iterator[None]:
    """Turn the exceptions of a system into `Refused` or `SystemFailed`.

    Parameters
    ----------
    package : str
        The system's package. An exception that nothing in it raised is ours, and passes.
    refusals : sequence of Refusal
    """
    try:
        yield
    except Exception as error:
        place = _place(error, package)
        if isinstance(error, Refused) or place is None:
            raise
        text = " ".join(str(error).split())
        if isinstance(error, NotImplementedError):
            raise Refused(f"not implemented, {place}: {text[:200]}") from None
        for each in refusals:
            if re.search(each.message, text):
                raise Refused(f"{each.why}: {text[:200]}") from None
        # The numbers and names of one program would divide what is one defect.
        raise SystemFailed(f"{type(error).__name__} at {place}") from error


def _place(error: Exception, package: str) -> str | None:
    """The innermost function of the package, as ``file.py:function``; None if there is none.

    Whoever asks a value for what it lacks is the place, not the value's own method (`_ASKED`):
    under a trace, values are of another type.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        parts = PurePath(frame.filename).parts
        if package in parts and frame.name not in _ASKED:
            path = "/".join(parts[len(parts) - parts[::-1].index(package) :])
            return f"{package}/{path}:{frame.name}"
    return None
