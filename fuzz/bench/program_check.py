"""Benchmark of `check`: seconds and memory by the size of a program."""

from __future__ import annotations

import random
import resource
from time import perf_counter
from typing import TYPE_CHECKING, Final

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


def report(progress: Callable[[str], None]) -> BenchReport:
    """Check programs of growing size, each alone and beside itself."""
    figures = []
    for nodes, accesses, variables in SIZES:
        title = f"{nodes:,} nodes, {accesses:,} accesses, {variables:,} variables"
        for concurrent in ((), (("run", "run"),)):
            progress(title)
            program = program_of(nodes, accesses, variables)
            start = perf_counter()
            check(program, concurrent)
            taken = perf_counter() - start
            how = "beside itself" if concurrent else "alone"
            figures.append(Figure(f"{title}, {how}", taken, "s", most=LIMIT_S))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    figures.append(Figure("memory of the process at most, MiB", float(most)))
    return BenchReport(tuple(figures), ("Random graphs; nothing is executed.",))
