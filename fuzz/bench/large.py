"""One large membership test in a process of its own.

Run as ``python -m litmusfuzz.fuzz.bench.large NUMBER``.

Prints one line of JSON; `fuzz.bench.oracle.large` starts it and reads it.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from litmusfuzz.fuzz.bench.oracle import LARGE, LARGE_BUDGET, answers
from litmusfuzz.fuzz.bench.programs import looped


def resident(field: str) -> int | None:
    """Memory of the process in bytes: ``VmRSS`` now, ``VmHWM`` at most; None if not told.

    Not `getrusage`: what a parent used at most is counted there as well.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(match[1]) << 10 if match else None


def main() -> None:
    """Measure one test and print it."""
    rng = random.Random(int(sys.argv[1]))
    test = looped(rng, *LARGE)
    before = resident("VmRSS")
    load_s, found = answers(test, rng, LARGE_BUDGET)
    after = resident("VmHWM")
    peak = after - before if before is not None and after is not None else None
    told = {"load_s": load_s, "answers": found, "peak_bytes": peak}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
