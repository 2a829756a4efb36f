"""Commands that reports name: what shows a test again, and what goes on with a campaign."""

from __future__ import annotations

import shlex
from pathlib import PurePath

from litmusfuzz.reports.events import FindingKind


def replay_command(
    kind: str, file: str, folder: str, python: str | None, executor: str = ""
) -> str:
    """The command that shows a test or finding again.

    Parameters
    ----------
    kind, file : str
        Of the finding; the file is relative to `folder`.
    folder : str
    python : str or None
        Interpreter of another environment, which ran it.
    executor : str
        Executor and configuration, if the command is to name them; "" for those in the file.
    """
    what = "validate" if kind == FindingKind.UNSOUND else "replay"
    there = ["--python", python] if python and what == "replay" else []
    there += ["--executors", executor] if executor and what == "replay" else []
    return shlex.join(["litmusfuzz", what, str(PurePath(folder) / file), *there])


def resumption(folder: str, *, unattended: bool) -> str:
    """The command that minimizes what is left."""
    folder = shlex.quote(folder)
    if unattended:
        return f"litmusfuzz nightly --resume {folder} --time 5m"
    return f"litmusfuzz run --resume {folder} --tests 0 --time 5m"
