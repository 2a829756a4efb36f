"""OpenCL in a process of its own, for commands: a driver may crash, or never answer.

``python -m litmusfuzz.fuzz.executors.native.driver_process`` reads one request from standard input
and writes answers to standard output, each a line of JSON. Workers need none of this: they are
processes of their own already.
"""

from __future__ import annotations

import contextlib
import json
import resource
import select
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, Final

from litmusfuzz.fuzz.executors.native.accelerators import opencl_devices
from litmusfuzz.fuzz.executors.native.work_items import INSTANCES, race
from litmusfuzz.fuzz.executors.process_log import cause_of_death
from litmusfuzz.fuzz.executors.protocol import Unavailable

SILENCE_S: Final = 120.0
"""A driver that answers nothing for so long has stopped."""
_END_S: Final = 5.0
"""For a process that has answered all to end."""
_CHUNK: Final = 64 * INSTANCES
"""Executions for each answer of a race."""


def devices_apart(silence_s: float = SILENCE_S) -> list[str]:
    """Describe the OpenCL devices of this machine, by number; loads their drivers elsewhere.

    Raises
    ------
    Unavailable
        With one line: there is no OpenCL, or a driver crashed or stopped.
    """
    (found,) = _answers({"ask": "devices"}, silence_s)
    return [str(line) for line in found]


def race_apart(
    request: dict[str, Any], silence_s: float = SILENCE_S
) -> list[tuple[list[int], int]]:
    """Race work-items, as `litmusfuzz.fuzz.executors.native.work_items.race` does, elsewhere.

    Raises
    ------
    Unavailable
        With one line: the device or its atomics are missing, or its driver crashed or stopped.
    """
    counts: dict[tuple[int, ...], int] = {}
    for rows in _answers({"ask": "race", **request}, silence_s):
        for values, count in rows:
            counts[tuple(values)] = counts.get(tuple(values), 0) + count
    return [(list(values), count) for values, count in counts.items()]


def _answers(request: dict[str, Any], silence_s: float) -> list[Any]:
    command = [sys.executable, "-P", "-m", "litmusfuzz.fuzz.executors.native.driver_process"]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
            lines = _lines(process.stdout, silence_s)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        finally:
            process.kill()
        log.seek(0)
        said = log.read().decode(errors="replace")
    answers = [json.loads(line) for line in lines]
    if answers and "unavailable" in answers[-1]:
        raise Unavailable(answers[-1]["unavailable"])
    if not answers or "end" not in answers[-1]:
        why = cause_of_death(process.returncode, said)
        raise Unavailable(f"its driver ended the process: {why}")
    return [each["answer"] for each in answers[:-1]]


def _lines(answers: IO[bytes], silence_s: float) -> list[bytes]:
    """Whole lines, until the end; raises Unavailable after a silence."""
    received = b""
    heard = time.monotonic()
    while True:
        ready, _, _ = select.select(
            [answers], [], [], max(0.0, heard + silence_s - time.monotonic())
        )
        if not ready:
            raise Unavailable(f"its driver has not answered for {silence_s:g} s")
        part = answers.read1()  # type: ignore[attr-defined]  # it is buffered
        if not part:
            return received.split(b"\n")[:-1]
        received += part
        heard = time.monotonic()


def main() -> None:
    """Answer the request."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = json.load(sys.stdin)
    ask = request.pop("ask")
    try:
        if ask == "devices":
            _say({"answer": opencl_devices()})
        else:
            left, seed = request.pop("count"), request.pop("seed")
            while left > 0:
                step = min(left, _CHUNK)
                _say({"answer": race(**request, count=step, seed=seed)})
                left, seed = left - step, seed + 1
    except (RuntimeError, Unavailable) as error:
        _say({"unavailable": " ".join(str(error).split())})
    else:
        _say({"end": True})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
