"""Inputs of runs, and the values that a user names for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from litmusfuzz.fuzz.programs.program import ProgramError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RunInput:
    """An argument or placeholder of a run.

    Parameters
    ----------
    side : int
        Place of the run among the concurrent ones.
    name : str
    dtype : numpy.dtype
        `object` for texts.
    shape : tuple of int
    """

    side: int
    name: str
    dtype: Any
    shape: tuple[int, ...]


class UserValues:
    """The user's values, by the input's name or RUN.NAME.

    Parameters
    ----------
    texts : mapping of str to str
        Elements with commas between them, one element for all, or the name of a .npy file.

    Raises
    ------
    ProgramError
        If a file cannot be read.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.unused = {*texts}
        """Names of which no input was asked for yet."""
        self.known_inputs: dict[str, None] = {}
        """Names of inputs that runs have, as RUN.NAME."""
        self.files = {
            name: _array(name, text) for name, text in texts.items() if text.endswith(".npy")
        }

    def of(self, run: str, each: RunInput) -> Any | None:
        """The value of an input of the run with that name; None if the user has none for it.

        Raises
        ------
        ProgramError
            If it does not fit.
        """
        self.known_inputs[f"{run}.{each.name}"] = None
        name = next((n for n in (f"{run}.{each.name}", each.name) if n in self.texts), None)
        if name is None:
            return None
        self.unused.discard(name)
        kind = f"{np.dtype(each.dtype).name}{list(each.shape)}"
        if name in self.files:
            array = self.files[name]
            if array.shape != each.shape or array.dtype != each.dtype:
                own = f"{array.dtype.name}{list(array.shape)}"
                raise ProgramError(f"--value: {name} is {own}, and the input is {kind}")
            return array
        parts: list[Any] = self.texts[name].split(",")
        size = int(np.prod(each.shape))
        if len(parts) not in (1, size):
            raise ProgramError(f"--value: {name} has {len(parts)} values, and the input is {kind}")
        try:
            if each.dtype == np.object_:
                parts = [part.encode() for part in parts]
            elif each.dtype == np.bool_:
                parts = [{"true": True, "false": False}[part.strip().lower()] for part in parts]
            array = np.array(parts, each.dtype)
        except (KeyError, ValueError, OverflowError):
            text = self.texts[name]
            raise ProgramError(f"--value: {name}: {text!r:.60} is not of type {kind}") from None
        filled = np.full(each.shape, array[0], each.dtype)
        return filled if len(parts) == 1 else array.reshape(each.shape)

    def check(self) -> None:
        """Refuse names that are of no input; to be asked once all inputs have their values.

        Raises
        ------
        ProgramError
            Naming the inputs that there are.
        """
        for name in sorted(self.unused):
            there = ", ".join(self.known_inputs) or "none"
            raise ProgramError(f"--value: no input is named {name}; there are {there:.400}")


def _array(name: str, file: str) -> Any:
    """The array in a .npy file; one of Python objects is refused, as reading it executes code."""
    try:
        return np.load(file, allow_pickle=False)
    except OSError as error:
        raise ProgramError(f"--value: {name}: {file}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ProgramError(f"--value: {name}: {file}: {error}") from None
