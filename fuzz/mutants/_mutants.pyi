"""Types of the native executor's core with one defect; otherwise as `_executor`."""

from fuzz.executors.native import lowering
from fuzz.executors.native._executor import Program, Threads

__all__ = ["Program", "Threads", "load"]

def load(program: lowering.Program, defect: str) -> Program: ...
