"""A defect of a framework as users meet it: what it does to them, and how they avoid it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

EFFECTS: Final = ("silently wrong", "crash", "error", "hang")
"""A wrong value without a word, the end of the process, an exception, no end."""
NONE_KNOWN: Final = "none known"
"""In place of a workaround."""
AT_DEFAULTS: Final = "nothing: default settings"
"""What it needs if it shows without any setting."""
RUNS: Final = ("configuration", "section", "initialized", "script")
"""How a workaround was run (`tests/corpus/workarounds.py`)."""


@dataclass(frozen=True, slots=True)
class Defect:
    """What a known cause means for a user.

    Parameters
    ----------
    what : str
        The cause in a sentence.
    effect : str
        One of `EFFECTS`.
    needs : str
        The settings in which it shows.
    workaround : str
        What avoids it, and was run, or `NONE_KNOWN`.
    run : tuple of (str, str) or None
        One of `RUNS`, with its value; None without a workaround.
    test : str
        File of a litmus test, as the known-findings file names it; "" if it is no such test.
    script : str
        File of a program that shows it without LitmusFuzz; "" if `litmusfuzz show` writes it.
    """

    what: str
    effect: str
    needs: str
    workaround: str
    run: tuple[str, str] | None
    test: str
    script: str


class Raw(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A defect as it stands in a known-findings file."""

    what: str
    effect: str
    needs: str
    workaround: str
    run: dict[str, str] = {}
    test: str = ""
    script: str = ""


def checked(raw: Raw, folder: Path, test: str) -> Defect:
    """The defect, if it says what it has to.

    Parameters
    ----------
    raw : Raw
    folder : Path
        The files of tests and scripts are relative to it.
    test : str
        File of the cause; "" for a pattern.

    Raises
    ------
    ValueError
        Naming the field, in one line.
    """
    for name in ("what", "needs", "workaround"):
        text: str = getattr(raw, name)
        if not text.strip() or not text.isprintable():
            raise ValueError(f"{name}: is one line, got {text[:80]!r}")
    if raw.effect not in EFFECTS:
        raise ValueError(f"effect: is one of {', '.join(EFFECTS)}; got {raw.effect[:80]!r}")
    if len(raw.run) > 1 or not set(raw.run) <= set(RUNS):
        raise ValueError(f"run: is one of {', '.join(RUNS)}; got {', '.join(raw.run)[:80]!r}")
    if bool(raw.run) is (raw.workaround == NONE_KNOWN):
        raise ValueError(f"run: says how a workaround was run, and {NONE_KNOWN!r} was not")
    for name in ("test", "script"):
        file: str = getattr(raw, name)
        if file and not (folder / file).is_file():
            raise ValueError(f"{name}: {file[:80]}: no such file")
    run = next(iter(raw.run.items()), None)
    return Defect(
        raw.what, raw.effect, raw.needs, raw.workaround, run, raw.test or test, raw.script
    )
