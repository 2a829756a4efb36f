"""An attack: a hostile file, folder, process or message, and what our commands make of it.

An attack is a function with the decorator `attack`. It prepares what an attacker would, runs
commands with `Place.run`, says what happened, and fails by an assertion if the attacker got what
he wanted. The following holds for all commands of all attacks and is checked here:

- Each ends within its time, with an exit code of a documented meaning, and by no signal.
- No traceback appears, and an error (exit code 2) has a line of readable length on standard error.
- Nothing that is written to a terminal holds a control character or one that reverses direction.
- No process is left, and the decoy, a process of the same session that is none of ours, lives on.
- The files beside the attack's folder (`Place.outside`) are as they were, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = Path(sys.executable).parent / "litmusfuzz"
MARK: Final = "LITMUSFUZZ_ATTACK"
"""In the environment of every process of an attack, by which those that are left are found."""
HARMFUL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\ufeff]"
)
MAX_LINE: Final = 4_000
"""Characters of an error's last line."""
LEFT_S: Final = 5.0
"""Seconds in which the processes of a command that ended must be gone."""


@dataclass(frozen=True)
class Ended:
    """A command that ended: its exit code, its two outputs, and its seconds."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def error(self) -> str:
        """The last line on standard error."""
        return (self.err.strip().splitlines() or [""])[-1]


@dataclass
class Place:
    """Where an attack happens: a folder for its files, and what it must not reach."""

    folder: Path
    outside: Path
    """A folder beside it, with a file that no command has business with."""
    commands: list[str] = field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the attacker's."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(
        self,
        *arguments: str | Path,
        within_s: float = 30.0,
        codes: tuple[int, ...] = (0, 1, 2, 3),
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        program: Path = PROGRAM,
    ) -> Ended:
        """Run a command of ours in the folder; check what holds for each.

        Raises
        ------
        AssertionError
            If it does not hold.
        """
        command = [str(program), *map(str, arguments)]
        shown = shlex.join([program.name, *map(str, arguments)])
        shown = shown.replace(str(self.folder), ".")
        self.commands.append(shown if len(shown) < 300 else shown[:300] + "...")
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | {MARK: str(self.folder)} | dict(env or {}),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            out, err = process.communicate(stdin, timeout=within_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # with faulthandler: where it hangs
            process.kill()
            process.communicate()
            raise AssertionError(f"not over after {within_s:.0f} s: {shown}") from None
        ended = Ended(
            process.returncode,
            out.decode(errors="surrogateescape"),
            err.decode(errors="surrogateescape"),
            time.monotonic() - start,
        )
        both = ended.out + ended.err
        assert ended.code in codes, f"exit code {ended.code}: {ended.error or ended.out[-300:]!r}"
        assert "Traceback (most recent call last)" not in both, both[-2000:]
        assert not HARMFUL.search(both), f"printed {HARMFUL.search(both)!r}"
        assert ended.code != 2 or 0 < len(ended.error) < MAX_LINE, f"error: {ended.err[:500]!r}"
        return ended

    def left(self) -> list[psutil.Process]:
        """Processes of the attack that still run."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == str(self.folder):
                    found.append(process)
            except psutil.Error:
                continue
        return [each for each in found if each.is_running() and each.status() != "zombie"]


@dataclass(frozen=True)
class Attack:
    """One attack of the list."""

    name: str
    aim: str
    """What the attacker wants."""
    function: Callable[[Place], str]


ATTACKS: Final[list[Attack]] = []


def attack(aim: str) -> Callable[[Callable[[Place], str]], Callable[[Place], str]]:
    """Add a function to the list of attacks; it returns what happened, in a few words.

    Parameters
    ----------
    aim
        What the attacker wants: "to run a program of his", "to make the report say nothing is new".
    """

    def added(function: Callable[[Place], str]) -> Callable[[Place], str]:
        name = function.__name__.replace("_", " ")
        assert all(each.name != name for each in ATTACKS), name
        ATTACKS.append(Attack(name, aim, function))
        return function

    return added


def _state(folder: Path) -> dict[str, tuple[int, str]]:
    """Each file below a folder: its mode, and the digest of what it holds."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def carry_out(each: Attack, folder: Path) -> tuple[Place, str]:
    """Carry out an attack below a folder of its own; return its commands, and what happened.

    Raises
    ------
    AssertionError
        If the attacker got what he wanted, or anything that holds for all commands does not hold.
    """
    place = Place(folder / "attacked", folder / "outside")
    place.folder.mkdir(parents=True)
    place.outside.mkdir()
    (place.outside / "precious").write_text("as it was\n")
    before = _state(place.outside)
    decoy = psutil.Popen(["sleep", "1000"])
    try:
        happened = each.function(place)
        deadline = time.monotonic() + LEFT_S
        while (left := place.left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, f"left running: {[process.cmdline()[:4] for process in left]}"
        assert decoy.poll() is None, "a process that is none of ours was killed"
        assert _state(place.outside) == before, "a file outside of the folder was changed"
    finally:
        decoy.kill()
        decoy.wait()
        for process in place.left():
            process.kill()
    assert place.commands, "no command was run"
    assert happened, "nothing happened"
    return place, happened
