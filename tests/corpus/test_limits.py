"""A file within its size limit is read or refused in time and memory linear in its size."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from litmusfuzz.corpus.document import MAX_BYTES, MAX_VALUES
from litmusfuzz.corpus.herd import read_log
from litmusfuzz.corpus.textfile import FileError, loads
from litmusfuzz.fuzz.finding import known_file
from litmusfuzz.fuzz.finding.canonical import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SIZE: Final = 300_000
"""Bytes of a file, about. Quadratic time is then four times over the limit."""
SECONDS_EACH_MIB: Final = 5.0
MEMORY_BYTES: Final = 256 << 20
READ: Final = "{op: ReadVariableOp, resources: [X]}"


def a_test(nodes: Iterable[str], *more: str) -> str:
    head = "litmusfuzz: 2\nname: t\nvariables:\n  X: {dtype: int32, shape: []}\n"
    rest = "".join(f"{part}\n" for part in more)
    return f"{head}graphs:\n  main:\n{''.join(f'    {node}{chr(10)}' for node in nodes)}{rest}"


def with_finding(*rows: str) -> str:
    fields = (
        "executor: e\n  configuration: c\n  model: rfc\n  executions: 100000000\n  noise: {}\n"
        "  settings: {}\n  versions: {}\n  seed: 5\n  index: 17\n  family: dag\n  minimized: true\n"
        "  confirmed: false\n  forbidden:\n"
    )
    return f"finding:\n  {fields}{''.join(f'  - {row}{chr(10)}' for row in rows)}"


def forbidden(size: int) -> str:
    rows = (f"{{count: 1, outcome: {{r: {i}, X: {i}}}}}" for i in range(size // 45))
    return a_test([f"r: {READ}"], "observe: [r]", with_finding(*rows))


def long_outcomes(size: int) -> str:
    names = [f"n{i}" for i in range(1000)]
    shown = ", ".join(f"{name}: 0" for name in names)
    rows = (f"{{count: 1, outcome: {{X: {i}, {shown}}}}}" for i in range(size // 8000))
    nodes = (f"{name}: {READ}" for name in names)
    return a_test(nodes, f"observe: [{', '.join(names)}]", with_finding(*rows))


def short_outcomes_of_many_names(size: int) -> str:
    names = [f"n{i}" for i in range(2000)]
    half = size // 2
    runs = "".join(f"  R{k}: {{graph: main}}\n" for k in range(64))
    keys = [f"R{k}.{name}" for k in range(64) for name in names][: half // 10]
    rows = (f"{{count: 1, outcome: {{_status: blocked, X: {i}}}}}" for i in range(half // 55))
    nodes = (f"{name}: {READ}" for name in names)
    return a_test(nodes, f"client:\n{runs}observe: [{', '.join(keys)}]", with_finding(*rows))


def edges(size: int) -> str:
    far = size // (1800 * 7)
    return a_test(
        f"n{i}: {{op: ReadVariableOp, resources: [X], after:"
        f" [{', '.join(f'n{j}' for j in range(max(0, i - far), i))}]}}"
        for i in range(1800)
    )


def graphs(size: int) -> str:
    some = "".join(f"  g{i}:\n    n{i}: {READ}\n" for i in range(size // 60))
    return a_test([f"r: {READ}"]) + some


def closed_queues(size: int) -> str:
    queues = "".join(f"  Q{i}: {{dtype: int32, capacity: 1}}\n" for i in range(64))
    closes = (f"c{i}: {{op: QueueCloseV2, resources: [Q{i}]}}" for i in range(64))
    return (
        graphs(size).replace("graphs:", f"queues:\n{queues}graphs:")
        + "  z:\n"
        + "".join(f"    {close}\n" for close in closes)
    )


def sections(size: int) -> str:
    """Each lies inside the next one."""
    depth = int((size / 3.5) ** 0.5)
    members = [f"m{i}" for i in range(depth)]
    nodes = [f"{name}: {READ}" for name in members]
    nodes += [
        f"s{i}: {{op: CriticalSection, resources: [M], members: [{', '.join(members[: i + 1])}]}}"
        for i in range(depth)
    ]
    return a_test(nodes, "mutexes:\n  M: {}")


def clusters(size: int) -> str:
    some = "".join(f"  c{i}: [n{i}]\n" for i in range(size // 80))
    return graphs(size) + f"clusters:\n{some}"


def chained_clusters(_: int) -> str:
    nodes = (
        f"n{i}: {{op: ReadVariableOp, resources: [X], after: [{f'n{i - 1}' if i else ''}]}}"
        for i in range(2000)
    )
    some = "".join(f"  c{i}: [n{i}]\n" for i in range(2000))
    return a_test(nodes, f"clusters:\n{some}")


def observed(size: int) -> str:
    names = [f"n{i}" for i in range(2000)]
    runs = "".join(f"  R{k}: {{graph: main}}\n" for k in range(64))
    keys = [f"R{k}.{name}" for k in range(64) for name in names][: size // 10]
    nodes = (f"{name}: {READ}" for name in names)
    return a_test(nodes, f"client:\n{runs}observe: [{', '.join(keys)}]")


def results(size: int) -> str:
    names = [f"r{i}" for i in range(size // 12)]
    same = ", ".join(["c"] * len(names))
    return a_test(
        [
            "p: {op: Const, dtype: bool, value: 1}",
            f"b: {{op: If, inputs: [p], captures: {{c: p}}, then: {{results: [{same}]}},"
            f" else: {{results: [{same}]}}, results: [{', '.join(names)}]}}",
        ]
    )


def directives(size: int) -> str:
    return "".join(f"%TAG !a{i}! tag:{i}\n" for i in range(size // 20)) + "--- 1\n"


def lists(size: int) -> str:
    return a_test([f"r: {READ}"], f"observe: [{'[1],' * (size // 4)}]")


FILES = (
    *(forbidden, long_outcomes, short_outcomes_of_many_names, edges, graphs, closed_queues),
    *(sections, clusters, chained_clusters, observed, results, directives, lists),
)
"""Without the measures against it each took a time quadratic in its size."""


def in_time(read: Callable[[str], object], text: str) -> None:
    """Fail if reading takes too long: the processor's time, the less of two measurements."""
    limit_s, spent = SECONDS_EACH_MIB * max(len(text), SIZE) / (1 << 20), []
    for _ in range(2):
        start = time.process_time()
        with contextlib.suppress(FileError):
            read(text)
        spent.append(time.process_time() - start)
        if spent[-1] < limit_s:
            return
    raise AssertionError(f"{min(spent):.2f} s for {len(text)} bytes, at most {limit_s:.2f} s")


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_a_file_is_read_in_time(make: Callable[[int], str]) -> None:
    in_time(loads, make(SIZE))


def test_known_findings_are_read_in_time() -> None:
    rows = (f"  - key: {VERSION}-{i:016x}\n    why: w\n" for i in range(SIZE // 40))
    in_time(known_file.loads, known_file.HEADER + "".join(rows))


@pytest.mark.parametrize("line", ["0:r{}=1;", "x{}={{1,2}}; "])
def test_a_log_with_a_long_line_is_read_in_time(line: str) -> None:
    state = "".join(map(line.format, range(SIZE // len(line))))
    in_time(read_log, f"Test a Allowed\nStates 1\n{state}\nOk\n")


def test_a_file_takes_bounded_memory() -> None:
    """The reading process has little more address space than before."""
    code = f"""
import resource
from litmusfuzz.corpus.textfile import FileError, loads
from tests.corpus.test_limits import lists
text = lists({MAX_BYTES} - 500)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY_BYTES},) * 2)
try:
    loads(text)
except FileError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"a file has at most {MAX_VALUES} values" in done.stdout
