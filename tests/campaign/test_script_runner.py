"""Scripts of findings run in processes without LitmusFuzz, forked where that is the same."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from helpers import shows_it

from litmusfuzz.fuzz.campaign import script_runner
from litmusfuzz.fuzz.campaign.script_runner import TENSORFLOW, ScriptRunner
from litmusfuzz.reports.script import FIRST_SEEN

IMPORT = "import tensorflow as tf"
SHOWN = "print('forbidden outcomes in 3 of 9 executions; none is allowed'); sys.exit(1)"


def written(path: Path, code: str) -> Path:
    """A script with that code."""
    path.write_text(f"import os\nimport sys\n{code}\n", encoding="utf-8")
    return path


def has_ended(pid: int) -> bool:
    """True if a process has ended, or does so within a minute: it closes its files before."""
    for _ in range(6000):
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):
            return True
        if re.search("^State:\t[ZX]", status, re.MULTILINE):  # nobody asked yet how it ended
            return True
        time.sleep(0.01)
    return False


async def pid_in(path: Path) -> int:
    """The number that a script has written to a file."""
    while not (path.exists() and path.read_text().endswith("\n")):
        await asyncio.sleep(0.01)
    return int(path.read_text())


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (SHOWN, True),
        ("print('forbidden outcomes in 0 of 9 executions; none is allowed'); sys.exit(1)", False),
        ("print('forbidden outcomes in 3 of 9 executions; none is allowed')", False),
        ("sys.exit(1)", False),
        ("import corpus", False),
    ],
)
def test_a_script_counts_only_if_it_says_so_to_the_end(
    tmp_path: Path, code: str, *, shown: bool
) -> None:
    """One that dies, or gets no further than its imports, proves nothing."""
    assert shows_it(written(tmp_path / "script.py", code)) is shown


def test_what_a_script_saw_before_it_crashed_counts(tmp_path: Path) -> None:
    code = f"print({FIRST_SEEN + 'X=torn'!r}, flush=True)\nos.abort()\n"
    assert shows_it(written(tmp_path / "script.py", code))


def test_a_script_that_crashes_is_run_again(tmp_path: Path) -> None:
    """An op that corrupts memory may end it before it says what it saw."""
    crashed = str(tmp_path / "crashed")
    code = f"if not os.path.exists({crashed!r}):\n    open({crashed!r}, 'w')\n    os.abort()"
    assert shows_it(written(tmp_path / "script.py", f"{code}\n{SHOWN}"))


@pytest.mark.parametrize("imported", [(), ("json",)])
def test_a_script_ends_with_its_campaign(tmp_path: Path, imported: tuple[str, ...]) -> None:
    """Cancelled: it has closed its files, so that it has ended, or is about to."""
    kept = tmp_path / "pid"
    code = f"import time\nprint(os.getpid(), file=open({str(kept)!r}, 'w'))\ntime.sleep(600)"
    script = written(tmp_path / "script.py", f"{code}\n{IMPORT}")

    async def cancelled() -> int:
        running = asyncio.create_task(ScriptRunner(imported=imported).shows_it(script))
        pid = await pid_in(kept)
        os.kill(pid, 0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return pid

    assert has_ended(asyncio.run(cancelled()))


def test_scripts_are_forked_from_an_interpreter_that_knows_tensorflow_alone(
    tmp_path: Path,
) -> None:
    """One with environment variables starts anew: TensorFlow reads some when it is imported."""
    kept = tmp_path / "kept.json"
    code = (
        "known = sorted(each for each in sys.modules if each in ('tensorflow', 'litmusfuzz'))\n"
        f"before = [*known, os.getppid(), os.environ.get('TF_X')]\n{IMPORT}\n"
        f"import json; json.dump([*before, tf.__name__], open({str(kept)!r}, 'w'))\n{SHOWN}"
    )
    script = written(tmp_path / "script.py", code)
    other = written(tmp_path / "other.py", f"os.environ['TF_X'] = 'a'\n{code}")

    async def run() -> list[list[object]]:
        runner, seen = ScriptRunner(), []
        for path in (script, other, script):
            assert await runner.shows_it(path)
            seen.append(json.loads(kept.read_text()))
        await runner.close()
        return seen

    first, second, third = asyncio.run(run())
    assert first == third == [TENSORFLOW, first[1], None, TENSORFLOW]
    assert second == [second[0], "a", TENSORFLOW]
    assert second[0] != first[1]
    parent = first[1]
    assert isinstance(parent, int)
    assert has_ended(parent)


def test_a_script_that_crashes_or_hangs_is_not_the_end_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs takes the interpreter with it, and the next one starts another."""
    kept = tmp_path / "pid"
    parent = f"print(os.getppid(), file=open({str(kept)!r}, 'w'))"
    shows = written(tmp_path / "shows.py", f"{parent}\n{SHOWN}\n{IMPORT}")
    crashes = written(tmp_path / "crashes.py", f"os.abort()\n{IMPORT}")
    hangs = written(tmp_path / "hangs.py", f"import time; time.sleep(600)\n{IMPORT}")

    async def run() -> list[int]:
        runner, parents = ScriptRunner(imported=("json",)), []
        for path in (None, crashes, hangs):
            with monkeypatch.context() as patch:
                if path == hangs:
                    patch.setattr(script_runner, "JOB_TIMEOUT_S", 1.0)
                assert path is None or not await runner.shows_it(path, 0.0)
            assert await runner.shows_it(shows)
            parents.append(int(kept.read_text()))
        await runner.close()
        return parents

    first, crashed, hung = asyncio.run(run())
    assert first == crashed != hung
    assert has_ended(first)
    assert has_ended(hung)


def test_an_interpreter_that_was_killed_is_started_again(tmp_path: Path) -> None:
    kept = tmp_path / "pid"
    parent = f"print(os.getppid(), file=open({str(kept)!r}, 'w'))"
    shows = written(tmp_path / "shows.py", f"{parent}\n{SHOWN}\n{IMPORT}")

    async def run() -> None:
        runner = ScriptRunner(imported=("json",))
        assert await runner.shows_it(shows)
        os.kill(int(kept.read_text()), signal.SIGKILL)
        while runner._waiting.returncode is None:
            await asyncio.sleep(0.01)
        assert await runner.shows_it(shows)
        await runner.close()

    asyncio.run(run())


def test_what_cannot_be_imported_before_a_script_is_left_to_it(tmp_path: Path) -> None:
    async def run() -> bool:
        runner = ScriptRunner(imported=("no_such_module",))
        return await runner.shows_it(written(tmp_path / "shows.py", f"{SHOWN}\n{IMPORT}"))

    assert asyncio.run(run())


def test_an_interpreter_that_no_script_needs_for_a_while_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "pid"
    parent = f"print(os.getppid(), file=open({str(kept)!r}, 'w'))"
    shows = written(tmp_path / "shows.py", f"{parent}\n{SHOWN}\n{IMPORT}")

    async def run() -> tuple[bool, bool]:
        runner = ScriptRunner(imported=("json",))
        assert await runner.shows_it(shows)
        await runner.rest()
        there = os.path.exists(f"/proc/{kept.read_text().strip()}")
        monkeypatch.setattr(script_runner, "JOB_TIMEOUT_S", 0.0)
        await runner.rest()
        return there, has_ended(int(kept.read_text()))

    assert asyncio.run(run()) == (True, True)
