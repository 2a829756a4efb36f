"""Another environment's interpreter, for workers with another TensorFlow or JAX.

Our package need not be installed there. What a worker needs of it is put first on
its path: our modules alone, as links, so that nothing else of this environment,
above all no framework, hides what is installed there.
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
    """The interpreter's full path, once it is known to be able to run workers.

    Raises
    ------
    Unavailable
        Saying what is missing, in one line.
    """
    found = shutil.which(path)
    if found is None:
        raise Unavailable(f"{path}: there is no program there")
    # Not resolved: a virtual environment's interpreter is a link out of it.
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
        raise Unavailable(f"{path}: does not answer as a Python interpreter does")
    if version < OLDEST:
        raise Unavailable(f"{path}: is Python {'.'.join(said[1:3])}; workers need 3.11 or later")
    if said[3:]:
        raise Unavailable(f"{path}: has no {', '.join(said[3:])}, which workers need")
    return full


def environment() -> dict[str, str]:
    """Variables with which another interpreter, and what it starts, finds our modules."""
    path = filter(None, (_links(), os.environ.get("PYTHONPATH")))
    # Safe: the folder that we are run in, perhaps a checkout, does not come first.
    return {"PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}


@cache
def _links() -> str:
    """A folder with a link to each of our modules; goes when this process ends.

    The compiled ones, which an editable installation keeps elsewhere, are for our
    version of Python: another does not see them.
    """
    folder = Path(tempfile.mkdtemp(prefix="litmusfuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    modules: dict[str, Path] = {}
    for package in ("", *_PACKAGES):
        spec = find_spec(f"litmusfuzz.{package}".rstrip("."))
        assert spec is not None
        assert spec.origin is not None
        top = Path(spec.origin).parent
        # Where the package is installed, its folder holds the others.
        found = top.rglob("*.py") if package else top.glob("*.py")
        modules |= {str("litmusfuzz" / Path(package) / m.relative_to(top)): m for m in found}
    installed = files("litmusfuzz") or ()
    modules |= {str(m): Path(str(m.locate())) for m in installed if m.suffix == ".so"}
    for name, module in modules.items():
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(module.absolute())
    return str(folder)
