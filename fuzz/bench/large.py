"""Measures one large membership test of the benchmark `oracle` in a process of its own.

Run as ``python -m litmusfuzz.fuzz.bench.large NUMBER``.

It prints one line of JSON, which `fuzz.bench.oracle.large` reads.
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
    """Memory of the process in bytes: ``VmRSS`` current, ``VmHWM`` peak; None if unknown.

    `getrusage` does not serve: its peak includes that of the parent process.
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
    result = {"load_s": load_s, "answers": found, "peak_bytes": peak}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
