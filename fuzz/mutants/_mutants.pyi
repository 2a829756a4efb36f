"""Types of the native executor's C++ core compiled with defects; otherwise as `_executor`."""

from collections.abc import Sequence

from litmusfuzz.fuzz.executors.native import lowering
from litmusfuzz.fuzz.executors.native._executor import Backend, Program, PythonBackend, Threads

__all__ = ["Backend", "Program", "PythonBackend", "Threads", "load"]

def load(
    program: lowering.Program, defect: str, backends: Sequence[Backend | None] = ...
) -> Program: ...
