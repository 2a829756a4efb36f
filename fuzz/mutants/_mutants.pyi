"""Types of the native executor's core with one defect; otherwise as `_executor`."""

from fuzz.executors.native import lowering
from fuzz.executors.native._executor import Program, PythonBackend, Threads

__all__ = ["Program", "PythonBackend", "Threads", "load"]

def load(
    program: lowering.Program, defect: str, backends: list[PythonBackend] = ...
) -> Program: ...
