"""Entry point of the console script and of ``python -m litmusfuzz``."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def run_command() -> NoReturn:
    """Run the command line, which imports nothing from the working directory.

    Ctrl-C while modules are still being imported exits with 3.
    """
    ignore_empty_entries()
    try:
        from litmusfuzz.fuzz.cli.main import run_command
        from litmusfuzz.fuzz.executors.interpreter import safe_path

        # Nor do the interpreters that this one starts, as `multiprocessing` does with `python -c`.
        os.environ.update(safe_path(os.environ.get("PYTHONPATH", "")))
        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("litmusfuzz: interrupted\n")
        sys.exit(3)


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
