"""Versions of the installed frameworks, from their metadata: no framework is imported.

A worker that runs tests reports the versions that it has imported; these are for commands that
start none, or not yet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMEWORKS: Final = ("tensorflow", "jax")
_PROBE: Final = """\
import json, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

found = {}
for name in sys.argv[1:]:
    if find_spec(name) is None:
        continue
    try:
        found[name] = version(name)
    except PackageNotFoundError:  # tensorflow-cpu, tf-nightly, ...
        for other in packages_distributions().get(name, ()):
            found[name] = version(other)
print(json.dumps(found))
"""
_PROBE_S: Final = 60.0


def installed(python: str | None = None) -> Mapping[str, str]:
    """Versions of those of `FRAMEWORKS` that an environment has.

    Parameters
    ----------
    python : str, optional
        Interpreter of another environment (`litmusfuzz.fuzz.executors.interpreter`).
    """
    try:
        done = subprocess.run(
            [python or sys.executable, "-c", _PROBE, *FRAMEWORKS],
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            env=os.environ | {"PYTHONSAFEPATH": "1"},
            check=True,
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
