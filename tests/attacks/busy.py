"""Run a command beside busy processes: ``python -m tests.attacks.busy 12 make test``.

A busy process computes for ever, as one of another user's would. It ends with this one, however
that ends. Exits as the command does, and says how long that took and how many processes were busy
until its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

BUSY = """
import os
parent = {parent}
while os.getppid() == parent:
    for number in range(1 << 16):
        number * number
"""


def main(arguments: list[str]) -> int:
    """Run it; the exit code."""
    if len(arguments) < 2 or not arguments[0].isdecimal():
        sys.stderr.write("usage: python -m tests.attacks.busy NUMBER COMMAND...\n")
        return 2
    number, *command = arguments
    program = [sys.executable, "-I", "-S", "-c", BUSY.format(parent=os.getpid())]
    busy = [subprocess.Popen(program, stdin=subprocess.DEVNULL) for _ in range(int(number))]
    try:
        start = time.monotonic()
        code = subprocess.run(command, check=False).returncode
        took_s = time.monotonic() - start
        left = sum(each.poll() is None for each in busy)
    finally:
        for each in busy:
            each.kill()
        for each in busy:
            each.wait()
    sys.stderr.write(f"exit {code} after {took_s:.0f} s, beside {left} busy processes\n")
    return code if left == len(busy) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
