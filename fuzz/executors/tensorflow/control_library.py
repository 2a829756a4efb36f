"""The library that puts TensorFlow under control: compiled where TensorFlow is, at first use.

Its source is a part of this package (``fuzz/native/control``), and is compiled against the headers
of the TensorFlow that is installed: a library in C++ fits one release only. It is kept in the
user's cache, under a name that has the release, the compiler, and a digest of what it was made of.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tensorflow as tf

from litmusfuzz.fuzz.executors.protocol import Diverged, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt
    from tensorflow.core.protobuf import config_pb2

    from litmusfuzz.corpus.schedule import Decision

EXECUTOR_TYPE: Final = "LITMUSFUZZ_CONTROLLED"
"""What a session's configuration names; the library registers it."""
SOURCES: Final = Path(__file__).resolve().parents[2] / "native" / "control"
"""Beside this module, which is a link in the worker of another environment."""
_SOURCES: Final = ("tensorflow.cc", "engine.cc", "locks.cc", "pages.cpp", "program.cc")
FILES: Final = (*_SOURCES, "hooks.h", "engine_hooks.h", "locks.h", "pages.h")
"""What the library is made of."""
OF_OTHER: Final = " of other"
"""In the name of a lock that belongs to no variable."""
_PAGES: Final = {"pages": 1, "touches": 2}
"""For `litmusfuzz_decide_pages`, by level."""
COMPILER: Final = "compiler"
"""The resource of the events that a cluster is compiled, and that it is asked whether it is."""
_MOST_DIMENSIONS: Final = 254
"""Of a tensor of TensorFlow."""
_COMPILERS: Final = ("c++", "g++", "clang++")
_FLAGS: Final = ("-O2", "-fPIC", "-shared", "-DNDEBUG", "-fvisibility=hidden", "-w")


def cache_folder() -> Path:
    """The folder for what is compiled: ``litmusfuzz`` in the user's cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given else Path.home() / ".cache") / "litmusfuzz"


@cache
def load() -> ctypes.CDLL:
    """The library, in this process; compiled if it has not been.

    Raises
    ------
    Unavailable
        With the reason: no compiler, a header or symbol that this TensorFlow has not, or a cache
        that cannot be written.
    """
    path = built()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"control of TensorFlow {tf.__version__} ({_line(str(error))})") from None
    library.litmusfuzz_attach.argtypes = [ctypes.c_void_p]
    library.litmusfuzz_attach.restype = ctypes.c_int
    library.litmusfuzz_decide_locks.argtypes = [ctypes.c_int]
    library.litmusfuzz_decide_locks.restype = ctypes.c_char_p
    library.litmusfuzz_decide_pages.argtypes = [ctypes.c_int]
    library.litmusfuzz_decide_pages.restype = None
    library.litmusfuzz_sees_touches.restype = ctypes.c_int
    library.litmusfuzz_decide_parts.argtypes = [ctypes.c_int]
    library.litmusfuzz_decide_parts.restype = ctypes.c_char_p
    library.litmusfuzz_decide_compilation.argtypes = [ctypes.c_int]
    library.litmusfuzz_decide_compilation.restype = None
    library.litmusfuzz_executors_made.restype = ctypes.c_uint32
    library.litmusfuzz_drive.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.litmusfuzz_drive.restype = ctypes.c_int
    library.litmusfuzz_target.restype = ctypes.c_char_p
    library.litmusfuzz_program.restype = ctypes.c_void_p
    library.litmusfuzz_program_delete.argtypes = [ctypes.c_void_p]
    library.litmusfuzz_program_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.litmusfuzz_program_warm_up.argtypes = [ctypes.c_void_p]
    library.litmusfuzz_program_warm_up.restype = ctypes.c_int
    library.litmusfuzz_program_calls.argtypes = [ctypes.c_void_p]
    library.litmusfuzz_program_calls.restype = ctypes.c_void_p
    library.litmusfuzz_program_failure.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    library.litmusfuzz_program_fetched.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.litmusfuzz_program_fetched.restype = ctypes.c_uint32
    library.litmusfuzz_program_tensor.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_int),
        ctypes.POINTER(ctypes.c_uint32),
        ctypes.POINTER(ctypes.c_int64),
    ]
    library.litmusfuzz_program_tensor.restype = ctypes.c_void_p
    return library


def built() -> Path:
    """The compiled library; see `load`."""
    compiler = _compiler()
    flags = (*_FLAGS, *_flags_of_tensorflow())
    folder = cache_folder()
    name = f"control-tensorflow-{tf.__version__}-{_key(compiler, flags)}"
    path = folder / f"{name}.so"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one builds, and all others wait for it
            if not path.exists():
                _build(compiler, flags, path)
    except OSError as error:
        raise Unavailable(f"control of TensorFlow: {folder} ({error.strerror})") from None
    return path


def _build(compiler: str, flags: Sequence[str], path: Path) -> None:
    print(  # noqa: T201 - the worker's error output: it takes a while, and once only
        f"litmusfuzz: compiling the library that controls TensorFlow {tf.__version__} ({path})",
        file=sys.stderr,
        flush=True,
    )
    made = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
    command = [compiler, *(str(SOURCES / each) for each in _SOURCES), "-o", str(made), *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = next((x for x in done.stderr.splitlines() if "error" in x), done.stderr)
            raise Unavailable(f"control of TensorFlow {tf.__version__} ({_line(said)})")
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def _compiler() -> str:
    wanted = os.environ.get("CXX", "").split()[:1] or _COMPILERS
    for each in wanted:
        if found := shutil.which(each):
            return found
    raise Unavailable(f"control of TensorFlow: no C++ compiler ({' or '.join(wanted)})")


def _flags_of_tensorflow() -> tuple[str, ...]:
    includes = [f.replace("-I", "-isystem", 1) for f in tf.sysconfig.get_compile_flags()]
    return (*includes, *tf.sysconfig.get_link_flags(), "-Wl,--no-undefined")


def _key(compiler: str, flags: Sequence[str]) -> str:
    version = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, check=False
    ).stdout
    parts = [tf.__version__, tf.version.GIT_VERSION, platform.machine(), compiler, version, *flags]
    digest = hashlib.sha256("\0".join(parts).encode())
    for name in FILES:
        digest.update(b"\0" + (SOURCES / name).read_bytes())
    return digest.hexdigest()[:16]


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


class Steering:
    """The controller of one session, and the library that asks it.

    Parameters
    ----------
    resources : sequence of str
        Names of the resources whose ops are events; all are if there are none.
    execute : callable
        Executes once. It calls `begin`, then starts runs and calls `proceed`, then `end`.
    level : str
        The events: ``ops`` for ops that begin, ``locks`` also for their locks, ``pages`` also for
        their first touches of a variable's pages, ``touches`` for each touch of a small one.
    compilation : bool
        True if XLA compiles in the background: that a cluster is compiled is an event, too.
    intra_op_threads : int
        Threads that share the work of ops, if there are more than 1: each part of an op is a task
        of its own. Not of level ``ops``.

    Raises
    ------
    Unavailable
        If this TensorFlow has other locks, or this processor is none of whose each touch is seen.
    """

    def __init__(
        self,
        resources: Sequence[str],
        execute: Callable[[], None],
        *,
        level: str = "ops",
        compilation: bool = False,
        intra_op_threads: int = 1,
    ) -> None:
        # Not at the top: it may be compiled for another Python than a worker's.
        from litmusfuzz.fuzz.executors.tensorflow._control import Controller

        self.library = load()
        self.controller = Controller()
        self._execute = execute
        self._locks, self._pages = level != "ops", _PAGES.get(level, 0)
        self._compilation = compilation
        self._threads = intra_op_threads
        if level == "touches" and not self.library.litmusfuzz_sees_touches():
            raise Unavailable(f"control of each touch on {platform.machine()} (x86-64 only)")
        if self._locks:
            self._decide_locks(decide=True)
            self._decide_parts(self._threads)
            self._decide_parts(1)
            self._decide_locks(decide=False)
        self.controller.watch([*resources, *([COMPILER] if compilation and resources else ())])

    def __enter__(self) -> Steering:
        if not self.library.litmusfuzz_attach(self.controller.hooks):
            raise RuntimeError("the library in TensorFlow is of another version")
        self._decide_locks(decide=self._locks)
        if self._pages:
            self.library.litmusfuzz_decide_pages(self._pages)
        if self._compilation:
            self.library.litmusfuzz_decide_compilation(1)
        self._decide_parts(self._threads)
        self.controller.set_inside(self._locks, self._threads)
        self.controller.set_execution(self._execute)
        return self

    def __exit__(self, *_: object) -> None:
        self.library.litmusfuzz_attach(None)
        self._decide_parts(1)
        self._decide_locks(decide=False)
        if self._pages:
            self.library.litmusfuzz_decide_pages(0)
        if self._compilation:
            self.library.litmusfuzz_decide_compilation(0)
        self.controller.clear_execution()

    def _decide_locks(self, *, decide: bool) -> None:
        if why := self.library.litmusfuzz_decide_locks(decide):
            raise Unavailable(f"control of locks of TensorFlow {tf.__version__} ({why.decode()})")

    def _decide_parts(self, threads: int) -> None:
        if why := self.library.litmusfuzz_decide_parts(threads):
            raise Unavailable(
                f"control of threads in ops of TensorFlow {tf.__version__} ({why.decode()})"
            )

    def executors_made(self) -> int:
        """Number of executors that the library has made in this process."""
        return int(self.library.litmusfuzz_executors_made())

    def target(self) -> str:
        """What a session is asked for as that a `Program` can be made for."""
        return str(self.library.litmusfuzz_target().decode())


def must_have_followed(
    schedule: Sequence[Decision], made: int, left_at: Sequence[Decision] | None
) -> None:
    """Check that an execution has made all choices of a schedule, and no other.

    Parameters
    ----------
    made : int
        Number of choices that it has made.
    left_at : sequence of Decision, optional
        What was enabled where the schedule had no choice that was; None if it always had one.

    Raises
    ------
    Diverged
    """
    if left_at is not None:
        there = ", ".join(map(str, left_at))
        if made == len(schedule):
            raise Diverged(f"after all {made} events of the schedule, there are more: {there}")
        event = f"event {made + 1} of the schedule, {schedule[made]}"
        raise Diverged(f"{event}, is not enabled; these are: {there}")
    if made < len(schedule):
        raise Diverged(f"the execution ends before event {made + 1}, {schedule[made]}")


class Program:
    """The runs of one execution, to be called from C++: one initializes, one races, one reads.

    Parameters
    ----------
    library : CDLL
        From `load`.
    callables : sequence of CallableOptions
        Of these three, without feeds, for the session that was made last under `Steering.target`.

    Raises
    ------
    tensorflow.errors.OpError
        If TensorFlow refuses one.
    """

    def __init__(
        self, library: ctypes.CDLL, callables: Sequence[config_pb2.CallableOptions]
    ) -> None:
        self._library = library
        self._program = library.litmusfuzz_program()
        #: Number of executors of each.
        self.executors: list[int] = []
        for options in callables:
            before = library.litmusfuzz_executors_made()
            written = options.SerializeToString()
            if not library.litmusfuzz_program_add(self._program, written, len(written)):
                failure = self.failure()
                self.close()
                raise failure
            self.executors.append(library.litmusfuzz_executors_made() - before)

    def warm_up(self) -> None:
        """Execute once without control, so that nothing is done for the first time under control.

        Raises
        ------
        tensorflow.errors.OpError
        """
        if not self._library.litmusfuzz_program_warm_up(self._program):
            raise self.failure()

    @property
    def calls(self) -> int:
        """Address of its functions, for a `Loop`."""
        return int(self._library.litmusfuzz_program_calls(self._program))

    def failure(self) -> tf.errors.OpError:
        """The error that has ended a call."""
        message, length = ctypes.c_void_p(), ctypes.c_size_t()
        code = self._library.litmusfuzz_program_failure(self._program, message, length)
        text = ctypes.string_at(message, length.value).decode(errors="replace")
        return tf.compat.v1.errors.exception_type_from_error_code(code)(None, None, text)

    def fetched(self, outcome: int) -> list[npt.NDArray[Any]]:
        """What the race, and then the reading run, have returned in executions with an outcome."""
        arrays = []
        size, dtype, rank = ctypes.c_size_t(), ctypes.c_int(), ctypes.c_uint32()
        shape = (ctypes.c_int64 * _MOST_DIMENSIONS)()
        for place in range(self._library.litmusfuzz_program_fetched(self._program, outcome)):
            data = self._library.litmusfuzz_program_tensor(
                self._program, outcome, place, size, dtype, rank, shape
            )
            kind = tf.as_dtype(dtype.value).as_numpy_dtype
            array = np.frombuffer(ctypes.string_at(data, size.value), kind)
            arrays.append(array.reshape(tuple(shape[: rank.value])))
        return arrays

    def close(self) -> None:
        """Forget the outcomes; before the session is closed."""
        self._library.litmusfuzz_program_delete(self._program)
        self._program = None
