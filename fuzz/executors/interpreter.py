"""Python interpreters of other environments, for workers with another TensorFlow or JAX.

LitmusFuzz need not be installed in the other environment. Its modules, and nothing else of
this environment, are put first on the worker's import path as links, so that they hide
nothing that is installed there, above all no framework.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

OLDEST: Final = (3, 11)
_NEEDED: Final = ("msgspec", "numpy", "yaml")
_PACKAGES: Final = ("corpus", "oracles", "fuzz", "reports")
_PROBE: Final = (
    "import sys; from importlib.util import find_spec as f; "
    "print('python', *sys.version_info[:2], *(n for n in sys.argv[1:] if f(n) is None))"
)
_PROBE_S: Final = 60.0


def interpreter(path: str) -> str:
    """Full path of an interpreter that can run workers.

    Raises
    ------
    Unavailable
        Naming what is missing, in one line.
    """
    found = shutil.which(path)
    if found is None:
        raise Unavailable(f"{path}: no such program")
    # Not resolved: the interpreter of a virtual environment is a link to one outside.
    full = str(Path(found).absolute())
    try:
        done = subprocess.run(
            [full, "-c", _PROBE, *_NEEDED],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_S,
            env=os.environ | {"PYTHONSAFEPATH": "1"},
            check=False,
        )
        said = done.stdout.split()
        version = tuple(map(int, said[1:3]))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        said, version = [], ()
    if said[:1] != ["python"] or done.returncode:
        raise Unavailable(f"{path}: is not a Python interpreter")
    if version < OLDEST:
        raise Unavailable(f"{path}: is Python {'.'.join(said[1:3])}; workers need 3.11 or later")
    if said[3:]:
        raise Unavailable(f"{path}: has no {', '.join(said[3:])}, which workers need")
    return full


def environment() -> dict[str, str]:
    """Environment variables with which another interpreter finds our modules."""
    path = filter(None, (_links(), os.environ.get("PYTHONPATH")))
    return {"PYTHONPATH": os.pathsep.join(path)}


def safe_path(pythonpath: str) -> dict[str, str]:
    """Environment variables that keep the working directory off a process's import path.

    They hold for the processes that it starts as well. An empty entry of ``PYTHONPATH``,
    which ``PYTHONPATH=$PYTHONPATH:more`` easily leaves, stands for the working directory.
    """
    kept = os.pathsep.join(filter(None, pythonpath.split(os.pathsep)))
    return {"PYTHONSAFEPATH": "1"} | ({"PYTHONPATH": kept} if pythonpath else {})


@cache
def _links() -> str:
    """A folder with a link to each of our modules, removed when this process ends.

    Compiled modules, which an editable installation keeps elsewhere, are for our version of
    Python only; another version ignores them.
    """
    folder = Path(tempfile.mkdtemp(prefix="litmusfuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    modules: dict[str, Path] = {}
    for package in ("", *_PACKAGES):
        spec = find_spec(f"litmusfuzz.{package}".rstrip("."))
        assert spec is not None
        assert spec.origin is not None
        top = Path(spec.origin).parent
        # In an installed package, the top folder contains the others.
        found = top.rglob("*.py") if package else top.glob("*.py")
        modules |= {str("litmusfuzz" / Path(package) / m.relative_to(top)): m for m in found}
    installed = files("litmusfuzz") or ()
    modules |= {str(m): Path(str(m.locate())) for m in installed if m.suffix == ".so"}
    for name, module in modules.items():
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(module.absolute())
    return str(folder)
