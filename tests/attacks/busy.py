"""Run a command beside busy processes: ``python -m tests.attacks.busy 12 make test``.

A busy process computes for ever, as one of another user's would: all are in a session of their own.
They end with this one, however that ends. Exits as the command does, and says how long that took
and how many processes were busy until its end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil

BUSY = """
import os
parent = {parent}
for _ in range({number} - 1):
    me = os.getpid()
    if os.fork() == 0:
        parent = me
        break
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
    program = BUSY.format(parent=os.getpid(), number=int(number))
    leader = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        start = time.monotonic()
        code = subprocess.run(command, check=False).returncode
        took_s = time.monotonic() - start
        all_of_them = psutil.Process(leader.pid)
        left = all_of_them.is_running() + len(all_of_them.children())
    finally:
        leader.kill()  # the others look for it
        leader.wait()
    sys.stderr.write(f"exit {code} after {took_s:.0f} s, beside {left} busy processes\n")
    return code if left == int(number) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
