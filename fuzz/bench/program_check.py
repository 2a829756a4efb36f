"""Benchmark of `check`: seconds and memory by the size of a program.

The seconds are of processor time, in which `check` computes from begin to end: other work on the
machine changes them little. Each program has a process of its own, whose memory is measured.
"""

from __future__ import annotations

import random
from multiprocessing import get_context
from time import process_time
from typing import TYPE_CHECKING, Final

from litmusfuzz.fuzz.bench.large import resident
from litmusfuzz.fuzz.programs.checking import check
from litmusfuzz.fuzz.programs.program import Entry, Function, Operation, Program
from litmusfuzz.reports.bench import BenchReport, Figure

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES: Final = (
    (1_000, 50, 10),
    (10_000, 500, 100),
    (100_000, 5_000, 1_000),
    (100_000, 5_000, 20),
)
"""Nodes, accesses and variables of each program."""
LIMIT_S: Final = 60.0


def program_of(nodes: int, accesses: int, variables: int) -> Program:
    """A random graph: reads and writes between pure ops; each write has a control edge to the next.

    Parameters
    ----------
    nodes, accesses, variables : int
        About so many; every second access reads.
    """
    rng = random.Random(nodes + variables)
    operations = [Operation(f"h{n}", "VarHandleOp", stateful=True) for n in range(variables)]
    values: list[str] = []
    last: dict[int, tuple[str, ...]] = {}
    every = nodes // accesses
    writes = []
    for number in range(nodes):
        name = f"n{number}"
        if number % every == 0:
            variable = rng.randrange(variables)
            handle, after = (f"h{variable}", 0), last.get(variable, ())
            if number % (2 * every):
                inputs = (handle, (values[-1], 0))
                operations.append(Operation(name, "AssignVariableOp", inputs, after, stateful=True))
                last[variable] = (name,)
                writes.append(name)
            else:
                operations.append(
                    Operation(name, "ReadVariableOp", (handle,), after, stateful=True)
                )
                values.append(name)
        else:
            near = values[rng.randrange(max(0, len(values) - 50), len(values))]
            operations.append(Operation(name, "AddV2", ((values[-1], 0), (near, 0))))
            values.append(name)
    entry = Entry("run", "", tuple(writes))
    return Program("random", Function("", tuple(operations)), {}, (entry,))


def measured(nodes: int, accesses: int, variables: int, *, beside: bool) -> tuple[float, float]:
    """Seconds of processor time for `check`, and MiB that this process had at most."""
    program = program_of(nodes, accesses, variables)
    start = process_time()
    check(program, [("run", "run")] if beside else [])
    taken = process_time() - start
    # Not `ru_maxrss`: that counts what the process had that started this one.
    return taken, (resident("VmHWM") or 0) / (1 << 20)


def report(progress: Callable[[str], None]) -> BenchReport:
    """Check programs of growing size, each alone and beside itself."""
    figures = []
    for size in SIZES:
        nodes, accesses, variables = size
        title = f"{nodes:,} nodes, {accesses:,} accesses, {variables:,} variables"
        for beside in (False, True):
            progress(title)
            with get_context("spawn").Pool(1) as pool:
                taken, memory = pool.apply(measured, size, {"beside": beside})
            how = "beside itself" if beside else "alone"
            figures.append(Figure(f"{title}, {how}", taken, "s", most=LIMIT_S))
            figures.append(Figure(f"{title}, {how}: memory of the process, MiB", memory))
    return BenchReport(
        tuple(figures), ("Random graphs; nothing is executed. Seconds of processor time.",)
    )
