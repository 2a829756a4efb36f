"""Control of TensorFlow that is wrong on purpose, each way killed by one shape, and not by another.

The controller asks and is asked through a table of functions (``fuzz/native/control/hooks.h``). A
mutant puts another function into it, or leaves out a step of the executor; TensorFlow, the library
inside it and the search are the real ones. A page that stays open after a switch is killed by
``tests/native/pages_under_sanitizers.cpp`` (`windows`, `switches`), and so is a processor that
stops behind no touch, or behind one too many (`every_touch`, `interrupted_touches`).
"""

from __future__ import annotations

import ctypes
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers import LITMUS, compiled, corpus_entry

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import loads
from litmusfuzz.fuzz.executors.protocol import Diverged
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.executor import TensorFlowExecutor
from tests.executors.control_tests import GATHER_IN_PARTS, TWO_UPDATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from litmusfuzz.corpus.model import LitmusTest

OPS, LOCKS, PAGES, TOUCHES = (
    configuration("tf", f"controlled{level}") for level in ("", "_locks", "_pages", "_touches")
)
PARTS = configuration("tf", "control=locks;intra_op_threads=4")
STAYS_OPEN = Path(__file__).parents[1] / "native" / "stays_open.cpp"
"""In C++: where an op waits, another one goes on, which functions of Python do not bear."""
FINDINGS = LITMUS[0].parents[1] / "findings"
LIMIT = 20_000
SB = litmus("X=1; r0=Y || Y=1; r1=X")
ALONE = litmus("X=1; r0=X")


class Event(ctypes.Structure):
    """``LitmusFuzzEvent``."""

    _fields_ = (
        ("step_id", ctypes.c_int64),
        ("node", ctypes.c_char_p),
        ("frame", ctypes.c_uint64),
        ("iteration", ctypes.c_int64),
        ("point", ctypes.c_char_p),
        ("resources", ctypes.c_void_p),
        ("resource_count", ctypes.c_uint32),
        ("reads_only", ctypes.c_int),
    )


DECIDE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Event), ctypes.c_void_p, ctypes.c_void_p
)
STOP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Event))


class Hooks(ctypes.Structure):
    """``LitmusFuzzHooks``."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("controller", ctypes.c_void_p),
        ("arrive", ctypes.c_void_p),
        ("begun", ctypes.c_void_p),
        ("ended", ctypes.c_void_p),
        ("post", ctypes.c_void_p),
        ("decide", DECIDE),
        ("stop", STOP),
        ("acquire", ctypes.c_void_p),
        ("released", ctypes.c_void_p),
        ("outside", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("share", DECIDE),
    )


@contextmanager
def changed(
    executor,
    decide: Callable | None = None,
    stop: Callable | None = None,
    share: Callable | None = None,
) -> Iterator[None]:
    """Puts functions in the place of others, which they get as their first argument."""
    hooks = Hooks.from_address(executor._steering.controller.hooks)
    before = {name: ctypes.cast(getattr(hooks, name), ctypes.c_void_p).value for name in HOOKED}
    kept = []
    for name, function in (("decide", decide), ("stop", stop), ("share", share)):
        if function is None:
            continue
        kind = HOOKED[name]
        real = kind(before[name])
        kept.append(kind(lambda *given, real=real, function=function: function(real, *given)))
        setattr(hooks, name, kept[-1])
    try:
        yield
    finally:
        for name, kind in HOOKED.items():
            setattr(hooks, name, kind(before[name]))


HOOKED = {"decide": DECIDE, "stop": STOP, "share": DECIDE}


def outcomes(test: LitmusTest, config, **functions: Callable) -> set:
    """All outcomes, with these functions in place of the controller's."""
    with (
        closing(TensorFlowExecutor().prepare(test, config)) as executor,
        changed(executor, **functions),
    ):
        found = executor.explore(LIMIT)
        assert found.complete
        return set(found.histogram)


def never(real, controller, event) -> int:
    """Locks and pages are passed at once."""
    return 0


def itself(real, controller, event, call, data) -> int:
    """The op does its parts itself, one after the other."""
    return 0


def reading(real, controller, event, call, data) -> int:
    """All ops are taken for ones that only read, so that no two of them depend on each other."""
    event.contents.reads_only = 1
    return real(controller, event, call, data)


def at_once(real, controller, event, call, data) -> int:
    """An op runs as soon as it is ready, beside whatever is at work."""
    return real(controller, event, call, data) if event.contents.node.endswith(b"r0") else 0


def test_a_lock_that_is_no_decision() -> None:
    killing = corpus_entry(FINDINGS / "first-assignment-writes-twice.yaml").test
    assert outcomes(killing, LOCKS, stop=never) < outcomes(killing, LOCKS)
    assert outcomes(SB, LOCKS, stop=never) == outcomes(SB, LOCKS)


def test_a_page_that_is_no_decision() -> None:
    text = (FINDINGS / "scatter-beside-read.yaml").read_text(encoding="utf-8")
    smaller = text.partition("\nfinding:")[0].replace("[1, 4096]", "[1, 2048]")
    killing = loads(f"{smaller}\n").test
    assert outcomes(killing, PAGES, stop=never) < outcomes(killing, PAGES)
    atomic = litmus("r0=X || X=1", shape=(1, 2048))
    assert outcomes(atomic, PAGES, stop=never) == outcomes(atomic, PAGES)


def test_a_page_that_stays_open_after_its_first_touch(tmp_path: Path) -> None:
    """An element is updated twice, and read beside that."""
    killing = TWO_UPDATES
    mutant = ctypes.CDLL(str(compiled(tmp_path / "open.so", "-shared", "-fPIC", STAYS_OPEN)))

    def shown(test: LitmusTest, *, open_for_long: bool) -> set:
        with closing(TensorFlowExecutor().prepare(test, TOUCHES)) as executor:
            if open_for_long:
                assert mutant.stay_open(ctypes.c_void_p(executor._steering.controller.hooks))
            found = executor.explore(LIMIT, preemptions=1)
        assert found.complete
        return set(found.histogram)

    once_each = litmus("r0=X || X=1")
    assert shown(killing, open_for_long=True) < shown(killing, open_for_long=False)
    assert shown(once_each, open_for_long=True) == shown(once_each, open_for_long=False)


def test_writes_that_are_taken_for_independent() -> None:
    assert outcomes(SB, OPS, decide=reading) < outcomes(SB, OPS)
    assert outcomes(ALONE, OPS, decide=reading) == outcomes(ALONE, OPS)


def test_an_op_that_runs_beside_another() -> None:
    assert outcomes(SB, OPS, decide=at_once) < outcomes(SB, OPS)
    assert outcomes(ALONE, OPS, decide=at_once) == outcomes(ALONE, OPS)


def test_a_part_that_is_no_task() -> None:
    assert outcomes(GATHER_IN_PARTS, PARTS, share=itself) < outcomes(GATHER_IN_PARTS, PARTS)
    assert outcomes(SB, PARTS, share=itself) == outcomes(SB, PARTS)


@pytest.mark.parametrize("left_out", range(4))
def test_a_replay_that_ignores_a_choice(monkeypatch, left_out: int) -> None:
    from litmusfuzz.fuzz.executors.tensorflow import controlled

    def forced(numbers: list[int]):
        return real(numbers[:left_out] + numbers[left_out + 1 :])

    real = controlled.Forced
    with closing(TensorFlowExecutor().prepare(SB, OPS)) as executor:
        (schedule, *_) = executor.explore(1).schedules.values()
        outcome = executor.follow(schedule)
        monkeypatch.setattr(controlled, "Forced", forced)
        with pytest.raises(Diverged):
            executor.follow(schedule)
        monkeypatch.undo()
        assert executor.follow(schedule) == outcome
