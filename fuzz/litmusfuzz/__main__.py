"""Entry point of the console script and of ``python -m litmusfuzz``."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType


def run_command() -> NoReturn:
    """Run the command line, which imports nothing from the working directory.

    Ctrl-C and SIGTERM while modules are still being imported exit with 3.
    """
    ignore_empty_entries()
    try:
        end_on_sigterm()
        from litmusfuzz.fuzz.cli.main import run_command
        from litmusfuzz.fuzz.executors.interpreter import safe_path

        # Nor do the interpreters that this one starts, as `multiprocessing` does with `python -c`.
        os.environ.update(safe_path(os.environ.get("PYTHONPATH", "")))
        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("litmusfuzz: interrupted\n")
        sys.exit(3)


def end_on_sigterm() -> None:
    """Let SIGTERM do in every command what Ctrl-C does: it ends with a line, and exit code 3.

    A campaign handles both itself.
    """

    def as_ctrl_c(_: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)  # of asyncio, for example
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:  # a shell's background jobs ignore Ctrl-C
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, as_ctrl_c)


def ignore_empty_entries() -> None:
    """Import nothing from the working directory by an empty entry of ``PYTHONPATH``.

    ``PYTHONPATH=$PYTHONPATH:more`` leaves one. An entry that names the working directory counts.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if len(entries) < 2 or "" not in entries:
        return
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    if here not in map(os.path.abspath, filter(None, entries)):
        sys.path[:] = [path for path in sys.path if path not in ("", here)]


def ignore_working_directory() -> None:
    """Import nothing from the working directory, which ``python -m`` puts first.

    A user's own ``msgspec.py`` there would shadow the library that we need.
    """
    if not sys.flags.safe_path:
        del sys.path[0]


if __name__ == "__main__":
    ignore_working_directory()
    run_command()
