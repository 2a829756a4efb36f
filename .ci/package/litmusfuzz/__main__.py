"""The console script, and `python -m litmusfuzz`."""

from __future__ import annotations

import sys
from typing import NoReturn


def run_command() -> NoReturn:
    """Run the command line; Ctrl-C while its modules are still imported ends it like later."""
    try:
        from litmusfuzz.fuzz.cli.main import run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("litmusfuzz: interrupted\n")
        sys.exit(3)


if __name__ == "__main__":
    run_command()
