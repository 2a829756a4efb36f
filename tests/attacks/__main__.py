"""Carry out all attacks, and say of each the command and what happened.

``python -m tests.attacks`` prints one row an attack, in Markdown, and exits with 1 if one
succeeded. ``--only WORD`` takes those with a word in their name. ``make nightly`` runs all; each
of them starts processes, which takes too long for each submission.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks.attack import ATTACKS, carry_out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--list", action="store_true", help="names and aims only")
    asked = parser.parse_args()
    for path in sorted(Path(__file__).parent.glob("on_*.py")):
        importlib.import_module(f"tests.attacks.{path.stem}")
    chosen = [each for each in ATTACKS if asked.only in each.name]
    if asked.list:
        print(*(f"{each.name}: {each.aim}" for each in chosen), sep="\n")
        return 0
    print("| attack | commands | what happened | s |\n|---|---|---|--:|", flush=True)
    succeeded = 0
    for each in chosen:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            try:
                place, happened = carry_out(each, Path(folder).resolve())
                commands = "<br>".join(f"`{command}`" for command in place.commands)
            except Exception as error:  # noqa: BLE001 - an attack that fails to run has shown nothing
                succeeded += 1
                commands, happened = "", f"**SUCCEEDED** {type(error).__name__}: {error}"
        cells = (f"{each.name} ({each.aim})", commands, happened)
        row = " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        print(f"| {row} | {time.monotonic() - start:.1f} |", flush=True)
    print(f"\n{len(chosen)} attacks, {succeeded} succeeded")
    return 1 if succeeded or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
