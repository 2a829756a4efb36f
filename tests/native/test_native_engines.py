"""Engine conformance, tested by a C++ program without graphs; engines of users."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import compiled

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.outcome import Verdict
from litmusfuzz.fuzz.engines import python
from litmusfuzz.fuzz.engines.settings import (
    OVER_RUNTIMES,
    EngineSettings,
    MissingEngine,
    Sort,
    UnknownEngine,
)
from litmusfuzz.fuzz.executors.native.executor import PreparedTest, engine_config
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration
from litmusfuzz.oracles.explorer import Explorer
from litmusfuzz.oracles.model import EXECUTOR

ROOT = Path(__file__).parents[2]
SB = litmus("X=1; r0=Y || Y=1; r1=X")


CONFORM = """
import ctypes, sys
from litmusfuzz.fuzz.engines.settings import EngineSettings
from litmusfuzz.fuzz.executors.native.running_engine import RunningEngine
library, name, *threads = sys.argv[1:]
conform = ctypes.CDLL(library).litmusfuzz_conform
conform.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_bool]
for count in map(int, threads):
    for _ in range(3):
        engine = RunningEngine(EngineSettings(name, count))
        conform(engine.core.address, count, name == "gang")
        engine.close()
print("ok")
"""


def built() -> list[str]:
    """Return our engines whose runtimes are installed."""
    return [engine for engine in OVER_RUNTIMES if not missing(engine)]


def missing(engine: str) -> str:
    try:
        assert EngineSettings(engine, 1).library.is_file()
    except MissingEngine as error:
        return str(error)
    return ""


# One test, so that one worker builds the libraries once.
def test_every_engine_conforms(tmp_path: Path) -> None:
    source = ROOT / "tests/native/engine_conformance.cpp"
    library = compiled(tmp_path / "conform.so", "-shared", "-fPIC", "-DLITMUSFUZZ_LIBRARY", source)
    example = ROOT / "tests/native/example_engine.cpp"
    newest = str(compiled(tmp_path / "newest.so", "-shared", "-fPIC", example))
    futures = "concurrent.futures:ThreadPoolExecutor"
    for engine in ("inline", newest, "pool", "fifo", "stealing", "gang", futures, *built()):
        threads = ("1",) if engine in ("inline", newest) else ("1", "2", "4")
        done = subprocess.run(
            [sys.executable, "-c", CONFORM, library, engine, *threads],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert (done.returncode, done.stdout) == (0, "ok\n"), (engine, done.stderr)
    for engine in (newest, futures, *built()):
        runs_inside_the_set(engine, 1)


@pytest.mark.parametrize("engine", OVER_RUNTIMES)
def test_our_engines_over_runtimes_are_here(engine: str) -> None:
    """The build requirements bring the runtimes; elsewhere the skip names the missing one."""
    if missing(engine):
        pytest.skip(missing(engine))
    runs_inside_the_set(engine, 2)


def runs_inside_the_set(engine: str, threads: int) -> None:
    config = engine_config("theirs", engine, threads, split_updates=False)
    prepared = PreparedTest(SB, config)
    seen = prepared.run(1000, Noise(), 0)
    prepared.close()
    assert sum(seen.values()) == 1024
    judge = Explorer(SB, EXECUTOR)
    assert all(judge.judge(outcome) is Verdict.ALLOWED for outcome in seen)


def test_a_library_without_this_engine_interface_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    code = tmp_path / "old.cpp"
    code.write_text('extern "C" unsigned litmusfuzz_engine_interface() { return 99; }\n')
    old = compiled(tmp_path / "old.so", "-shared", "-fPIC", code)
    code.write_text("int nothing;\n")
    other = compiled(tmp_path / "other.so", "-shared", "-fPIC", code)
    made = {}
    for name, makes in (("null", "nullptr"), ("throws", 'throw std::runtime_error("not today")')):
        code.write_text(
            "#include <litmusfuzz/engine.h>\n#include <stdexcept>\n"
            "std::unique_ptr<litmusfuzz::Engine> make(litmusfuzz::EngineOptions) "
            f"{{ {'return ' * (name == 'null')}{makes}; }}\nLITMUSFUZZ_ENGINE(make)\n"
        )
        made[name] = str(compiled(tmp_path / f"{name}.so", "-shared", "-fPIC", code))
    code.write_text("no library")
    for engine, message in (
        (str(old), r"old\.so was built with engine interface 99; this is 2$"),
        (str(other), r"other\.so is no engine: it has no litmusfuzz_engine_interface$"),
        (made["null"], r"null\.so made no engine$"),
        (made["throws"], "throws.so': not today$"),
        (str(code), "old.cpp: "),
        (str(tmp_path / "none.so"), r"none\.so': there is no such file$"),
        ("nobody", "^no engine 'nobody'; there are pool, fifo, stealing, gang, inline"),
        ("concurrent.futures:Nobody", "^engine 'concurrent.futures:Nobody': AttributeError"),
        ("nobody.at.all:engine", "ModuleNotFoundError: No module named 'nobody'$"),
        ("math:pi", "^engine 'math:pi': TypeError: "),
        ("builtins:dict", "^engine 'builtins:dict' has no method 'submit'$"),
    ):
        config = engine_config("theirs", engine, 1, split_updates=False)
        with pytest.raises(Unavailable, match=message) as refusal:
            PreparedTest(SB, config).run(1, Noise(), 0)
        assert "\n" not in str(refusal.value)


def test_an_engine_that_was_not_built_says_what_was_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for engine, runtime in OVER_RUNTIMES.items():
        config = engine_config("", engine, 1, split_updates=False)
        with pytest.raises(Unavailable) as missing:
            PreparedTest(SB, config).run(1, Noise(), 0)
        assert str(missing.value) == f"engine '{engine}' was not built here: there was no {runtime}"


class Refusing:
    """Accepts a few closures, then raises, like a pool after its shutdown."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)
        self.left = 50

    def submit(self, function, /) -> object:
        """One call fewer is left."""
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("enough")
        return self.pool.submit(function)


refusing = Refusing()


def test_an_exception_of_an_engine_ends_the_run_and_the_next_run_is_complete() -> None:
    """The exception comes from a call of the caller or of a closure: 64 roots, and successors."""
    name = f"{__name__}:refusing"
    for calls in (50, 100):
        refusing.left = calls
        prepared = PreparedTest(SB, engine_config("", name, 2, split_updates=False))
        with pytest.raises(RuntimeError, match=r"the engine's submit: RuntimeError: enough$"):
            prepared.run(32, Noise(), 0)
        assert sum(prepared.run(32, Noise(), 0).values()) == 32


def test_settings_have_one_name_which_gives_them_back() -> None:
    for settings in (
        EngineSettings("tbb", 4, split=True),
        EngineSettings(__file__, 1),
        EngineSettings("a.b:c.d", 256),
        EngineSettings("controlled", 1, scheduler="pct", depth=5, split=True),
        EngineSettings("controlled", 1, scheduler="uniform"),
    ):
        assert EngineSettings.from_name(settings.name) == settings
    assert EngineSettings("a.b:c.d", 1).sort is Sort.PYTHON
    config = configuration("native", "engine=pool;threads=7;split")
    assert config.guarantees == "rfc"
    assert dict(config.settings) == {"engine": "pool", "threads": 7, "split_updates": True}
    config = configuration("native", "engine=controlled;scheduler=pct;depth=5")
    assert config.guarantees == "executor"
    assert dict(config.settings) == {
        "engine": "controlled",
        "threads": 1,
        "split_updates": False,
        "scheduler": "pct",
        "depth": 5,
    }


@pytest.mark.parametrize(
    "name",
    [
        "engine=pool;threads=0",
        "engine=pool;threads=257",
        "engine=pool;threads=x",
        "engine=pool;threads=",
        "engine=pool;engine=fifo",
        "engine=pool;split=1",
        "engine=pool;copies=1",
        "engine=",
        "threads=2",
        "engine=inline;threads=2",
        "engine=no such;threads=2",
        "engine=./nowhere.so",
        "engine=a\nb:c",
        "engine=pool;scheduler=pct;depth=5",
        "engine=controlled;scheduler=best",
        "engine=controlled;scheduler=pct",
        "engine=controlled;scheduler=pct;depth=65",
        "engine=controlled;scheduler=pct;depth=x",
        "engine=controlled;scheduler=pos;depth=1",
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(UnknownEngine) as refusal:
        EngineSettings.from_name(name)
    assert "\n" not in str(refusal.value)
    with pytest.raises(UnknownExecutor):
        configuration("native", name)


def test_an_executor_of_futures_is_made_with_its_number_of_threads() -> None:
    made = python.load("concurrent.futures:ThreadPoolExecutor", 3)
    assert isinstance(made, ThreadPoolExecutor)
    assert made._max_workers == 3
    python.end(made)
