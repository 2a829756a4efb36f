"""Types of the native executor's C++ core compiled with defects; otherwise as `_executor`."""

from litmusfuzz.fuzz.executors.native import lowering
from litmusfuzz.fuzz.executors.native._executor import Program, PythonBackend, Threads

__all__ = ["Program", "PythonBackend", "Threads", "load"]

def load(
    program: lowering.Program, defect: str, backends: list[PythonBackend] = ...
) -> Program: ...
