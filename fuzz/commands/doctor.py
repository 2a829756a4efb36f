"""Checks of `litmusfuzz doctor`: working parts of this installation, and fixes for the others."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.installed import FRAMEWORKS, installed
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.table import EXECUTORS, configuration, executor_class, names
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.doctor import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TIMEOUT_S: Final = 10.0
"""Timeout of a worker's answer, not counting the start of its framework."""
_PACKAGES: Final = (
    *("tensorflow-cpu", "jax", "numpy", "hypothesis", "msgspec"),
    *("pyyaml", "click", "rich", "z3-solver", "psutil", "tbb"),
)
_OTHER_NAMES: Final = {"tensorflow-cpu": ("tensorflow_cpu", "tensorflow", "tf-nightly")}
"""Names under which a required package may be installed, if not its own."""
_TOOLS: Final = (
    ("herd7", ("herd7",), "sets of other models: `herd`", "opam install herdtools7"),
    ("graphviz", ("dot",), "DOT as a picture: `show --format dot`", "apt install graphviz"),
    (
        "Chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "the tests that look at reports",
        "apt install chromium",
    ),
    ("C++ compiler", ("c++", "g++", "clang++"), "building, `make sanitize`", "apt install g++"),
    ("NVIDIA driver", ("nvidia-smi",), "configurations `gpu`", "a GPU, and its driver"),
)
_SB: Final = "X=1; r0=Y || Y=1; r1=X"
_FREE_DISK: Final = 1 << 30
_FREE_MEMORY: Final = 2 << 30
_CLUSTERED: Final = ("autocluster", "autocluster_lazy")
"""Configurations that together set all XLA flags in use, except cluster sizes and the flags that
sometimes end the process (docs/tensorflow-findings.md)."""

_CONTROLLED: Final = (
    "controlled",
    "controlled_locks",
    "controlled_pages",
    "controlled_touches",
)
"""Configurations that need a compiler, unless what they need has been compiled; the locks of a
TensorFlow that we know; and a processor that can stop behind each touch."""
_NETWORKED: Final = "two_workers"
"""A configuration whose processes need a network of their own."""
_OF_TENSORFLOW: Final = (*((each,) for each in (*_CLUSTERED, _NETWORKED)), _CONTROLLED)
"""Those of one environment together."""


def examine(progress: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Run all checks, the slow ones in parallel."""
    probes: list[Callable[[], list[Check]]] = [
        partial(_runs, "tf", ["plain"], basic=True),  # the slowest first
        *(partial(_runs, "tf", configs) for configs in _OF_TENSORFLOW),
        partial(_runs, "jax", ["plain"]),
        partial(_engines, "jax"),
        partial(_engines, "native"),
        _oracle,
    ]
    return _probed([*_machine(), *_packages(), *_tools(), *_others()], probes, progress)


def examine_there(python: str, progress: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Run the checks of executors in another environment.

    Parameters
    ----------
    python : str
        Its interpreter (`litmusfuzz.fuzz.executors.interpreter`).
    """
    there = installed(python)
    found = [Check("Python", python)]
    for name in FRAMEWORKS:
        get = f"pip install {'tensorflow-cpu' if name == 'tensorflow' else name}"
        found.append(Check(name, there.get(name, "missing"), get, good=name in there))
    probes = []
    if "tensorflow" in there:
        probes += [partial(_runs, "tf", ["plain"], python, basic=True)]
        probes += [partial(_runs, "tf", configs, python) for configs in _OF_TENSORFLOW]
    if "jax" in there:
        probes += [partial(_runs, "jax", ["plain"], python)]
        probes += [partial(_runs, "jax_refs", ["eager"], python)]
    return _probed(found, [*probes, partial(_runs, "native", ["plain"], python)], progress)


def _probed(
    found: list[Check],
    probes: Sequence[Callable[[], list[Check]]],
    progress: Callable[[str], None],
) -> list[Check]:
    """What was found, and then what the probes find."""
    with ThreadPoolExecutor(max(2, (os.cpu_count() or 2))) as pool:
        for made in [pool.submit(probe) for probe in probes]:
            found += made.result()
            progress(found[-1].what)
    return found


def _machine() -> Iterator[Check]:
    good = (3, 11) <= sys.version_info[:2] < (3, 14)
    yield Check("Python", platform.python_version(), "Python 3.11 to 3.13", good=good, basic=True)
    yield Check("litmusfuzz", f"{version('litmusfuzz')} in {Path(__file__).parents[2]}")
    cores = len(os.sched_getaffinity(0))
    busy = f"load {os.getloadavg()[0]:.1f}"
    yield Check("CPU", f"{cores} cores, {platform.machine()}, {platform.system()}, {busy}")
    memory = psutil.virtual_memory().available
    enough = f"{_FREE_MEMORY >> 30} GiB: end what is not needed"
    yield Check("memory", f"{memory / 2**30:.1f} GiB free", enough, good=memory >= _FREE_MEMORY)
    disk = shutil.disk_usage(Path.cwd()).free
    says = f"{disk / 2**30:.1f} GiB free in {Path.cwd()}"
    yield Check("disk", says, "1 GiB for findings and records", good=disk >= _FREE_DISK)
    for flags in ("XLA_FLAGS", "TF_XLA_FLAGS"):
        if flags in os.environ:
            yield Check(flags, f"{os.environ[flags]} (from the environment)")


def _packages() -> Iterator[Check]:
    for wanted in _PACKAGES:
        known_as = _OTHER_NAMES.get(wanted, (wanted,))
        there = ", ".join(f"{name} {found}" for name in known_as if (found := _version(name)))
        yield Check(wanted, there or "missing", f"pip install {wanted}", good=bool(there))
    there = _version("distributed")
    says = there or "for campaigns on several machines"
    yield Check("distributed", says, "pip install 'litmusfuzz[dask]'", good=bool(there))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _tools() -> Iterator[Check]:
    for what, commands, purpose, get in _TOOLS:
        path = next((found for each in commands if (found := shutil.which(each))), None)
        yield Check(what, path or f"for {purpose}", get, good=path is not None)


def _others() -> Iterator[Check]:
    """Executors of other packages, found by entry point."""
    for name in names():
        if name in EXECUTORS:
            continue
        try:
            configs = executor_class(name).configurations()
        except Exception as error:  # noqa: BLE001 - third-party code: its errors are reported, not raised
            yield Check(f"executor {name}", f"does not load: {error}", good=False)
            continue
        with closing(Worker(name)) as worker:
            worker.ask(messages.Request(), _TIMEOUT_S)
        listed = ", ".join(each.name for each in configs)
        yield Check(f"executor {name}", f"{listed}; workers are {worker.start_method}")


def _oracle() -> list[Check]:
    """Run the C++ explorer in a separate process."""
    code = "from litmusfuzz.corpus.builder import litmus\n"
    code += "from litmusfuzz.oracles.explorer import Explorer\n"
    code += "from litmusfuzz.oracles.model import RFC\n"
    code += f"explorer = Explorer(litmus({_SB!r}), RFC)\n"
    code += "print(len(explorer.allowed_outcomes().witnesses))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    says = "decides SB" if done.stdout == "3\n" else (done.stderr or done.stdout).strip()[-200:]
    return [Check("oracle (C++)", says, "make setup", good=done.stdout == "3\n", basic=True)]


def _engines(executor: str) -> list[Check]:
    """Ask an executor for each configuration whether it can run here."""
    works, found = [], []
    with closing(Worker(executor)) as worker:
        for config in executor_class(executor).configurations():
            reply = worker.ask(messages.Request(config=config.name), _TIMEOUT_S)
            why = reply.message if isinstance(reply, Died) else reply.unavailable
            if not why:
                works.append(config.name)
                continue
            what = f"{executor}/{config.name}"
            found.append(Check(what, why, _how_to_get(executor, config.name), good=False))
    if executor == "native":
        found += _opencl()
    basic = executor == "native"
    says = f"{len(works)} configurations: {', '.join(works)}; workers are {worker.start_method}"
    return [
        Check(f"executor {executor}", says, "make setup", good=bool(works), basic=basic),
        *found,
    ]


_GET_OPENCL: Final = (
    "apt install pocl-opencl-icd ocl-icd-opencl-dev opencl-headers, then make setup; "
    "for a GPU, the OpenCL driver (ICD) of its vendor"
)


def _opencl() -> Iterator[Check]:
    """List the OpenCL devices."""
    # Here, since a build without the core must get its other lines.
    from litmusfuzz.fuzz.executors.native.driver_process import devices_apart

    try:
        devices, why = devices_apart(), ""
    except Unavailable as error:
        devices, why = [], str(error)
    for number, device in enumerate(devices):
        yield Check(f"opencl:{number}", device)
    if not devices:
        says = why or "no OpenCL device"
        yield Check("OpenCL", f"{says}: for configurations `opencl`", _GET_OPENCL, good=False)


def _how_to_get(executor: str, config: str) -> str:
    if "opencl" in config:
        return _GET_OPENCL
    if "gpu" in config:
        gpu = "an NVIDIA GPU"
        return f"{gpu}, and pip install 'jax[cuda12]'" if executor == "jax" else gpu
    if "tbb" in config:
        return "pip install tbb; building it needs tbb-devel (make setup)"
    return "apt install g++, then make setup" if "openmp" in config else "make setup"


def _runs(
    executor: str, configs: Sequence[str], python: str | None = None, *, basic: bool = False
) -> list[Check]:
    """Run a test in a new worker, or in several if the configurations need that."""
    job = Job(litmus(_SB), 8, Noise(copies=2, steps=4))
    checks = []
    with closing(Worker(executor, python=python)) as worker:
        for config in configs:
            made = configuration(executor, config)
            reply = worker.ask(job.request(made), _TIMEOUT_S)
            flags = [v for name, v in made.environment if name.endswith("XLA_FLAGS")]
            if isinstance(reply, Died):
                ran, says = False, reply.message
            else:
                ran, says = bool(reply.rows), reply.refused or reply.unavailable or "runs SB"
            says = "; ".join([says, *(f"flags {each}" for each in flags)])
            if basic:
                says += f"; {len(executor_class(executor).configurations())} configurations"
                says += f"; workers are {worker.start_method}"
            get = f"pip install {'tensorflow-cpu' if executor == 'tf' else executor}"
            if config == _NETWORKED:
                get = "allow user namespaces (in a container: run it with CAP_SYS_ADMIN)"
            if config in _CONTROLLED:
                get = "apt install g++; docs/control.md says which releases of TensorFlow"
            checks.append(Check(f"{executor}/{config}", says, get, good=ran, basic=basic))
    return checks
