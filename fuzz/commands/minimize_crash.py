"""Minimizes a test that ends its process, for `litmusfuzz minimize`.

Campaigns minimize exceptions alone: where memory is damaged, chance decides whether a process ends,
and on which test. What ends each of `PROCESSES` fresh processes in the same way can be minimized,
as a failed check in an optimizer or a compiler (`fuzz.campaign.crash_reducer`). A candidate counts
if it ends one process in that way, or raises the exception that does.
"""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litmusfuzz.corpus.textfile import save, write_text
from litmusfuzz.fuzz.campaign import clock
from litmusfuzz.fuzz.campaign.crash_reducer import (
    Crash,
    SmallestCrash,
    crash_entry,
    smaller_crashes,
)
from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.scripts import crash_script
from litmusfuzz.fuzz.campaign.settings import shallow
from litmusfuzz.fuzz.campaign.tuning import CONFIGURATION_SHARE, JOB_TIMEOUT_S
from litmusfuzz.fuzz.executors.messages import Reply
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.fuzz.finding.configuration_reducer import PutBack, needs_in_words
from litmusfuzz.fuzz.finding.driver import drive_now
from litmusfuzz.fuzz.finding.worker_deaths import exception_of, message_pattern
from litmusfuzz.reports.script import NoScript

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.corpus.textfile import Entry
    from litmusfuzz.fuzz.executors.protocol import Config

PROCESSES: Final = 3
"""Fresh processes that a test must end, before it is minimized and after."""
SEED: Final = 0
"""Of every run."""


@dataclass(frozen=True, slots=True)
class MinimizedCrash:
    """The smallest test found that ends its process.

    Parameters
    ----------
    file : str
        Its file, in the folder that was asked for.
    test : LitmusTest
    executor : str
    config : Config
        With the fewest settings found.
    needs : str
        These settings, in words.
    message : str
        The last message of the process.
    complete : bool
        False if the time was up before all was tried.
    script : str
        The script that fails alike without LitmusFuzz; "" if there is none.
    """

    file: str
    test: LitmusTest
    executor: str
    config: Config
    needs: str
    message: str
    complete: bool
    script: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "file": self.file,
            "executor": self.executor,
            "configuration": self.config.name,
            "needs": self.needs,
            "message": self.message,
            "complete": self.complete,
            "script": self.script,
        }

    def lines(self, folder: str) -> Iterator[str]:
        """What a person reads."""
        path = Path(folder) / self.file
        ops = ", ".join(node.op for node in self.test.effects)
        where = f"{self.executor}/{self.config.name}"
        yield f"{path}: ends the process on {where}{self.needs and f', {self.needs}'}"
        yield f"  message  {self.message}"
        yield f"  ops      {ops}{'' if self.complete else '; not fully minimized: the time was up'}"
        if self.script:
            yield f"  script   {Path(folder) / self.script}"
        on = shlex.quote(f"{self.executor}:{self.config.name}")
        yield f"  replay   litmusfuzz replay {shlex.quote(str(path))} --executors {on}"


def minimize_crash(
    test: LitmusTest, executor: str, config: Config, out: Path, *, time_s: float
) -> MinimizedCrash | str:
    """Minimize a test that ends its process; the result is a file in `out`.

    Returns
    -------
    MinimizedCrash or str
        Why there is none, in one line.
    """
    crash, start = _Crash(executor), clock.now()
    messages = [crash.message(test, config) for _ in range(PROCESSES)]
    left_s = time_s - 3 * (clock.now() - start)  # to confirm takes as long, or less
    crash.pattern = next(filter(None, messages), "")
    ended = sum(each == crash.pattern for each in messages) if crash.pattern else 0
    if ended < PROCESSES:
        return (
            f"ends {ended} of {PROCESSES} fresh processes in one way; only what ends each"
            " is minimized"
        )
    smallest = SmallestCrash(Crash(test, config))
    crash.end = start + left_s
    settings_end = start + CONFIGURATION_SHARE * left_s
    crash.reduce(smaller_crashes(executor, smallest, PutBack(), settings_end))
    test, config = smallest.crash
    if not all(crash.ends(test, config) for _ in range(PROCESSES)):
        return f"its smallest test does not end each of {PROCESSES} fresh processes"
    entry = crash_entry(executor, smallest.crash, crash.last)
    file = out / f"{entry.test.name}.yaml"
    save(entry, file)
    smallest.place = SEED if crash.ends(test, config, count=1) else None
    needs = needs_in_words(executor, config, reduced=smallest.settings_tried)
    script = _write_script(entry, executor, smallest, crash.last, needs, file.with_suffix(".py"))
    return MinimizedCrash(
        file.name,
        entry.test,
        executor,
        config,
        needs,
        crash.last,
        smallest.complete,
        script=script,
    )


def _write_script(
    entry: Entry, executor: str, smallest: SmallestCrash, message: str, needs: str, path: Path
) -> str:
    """Write the script that fails alike, on JAX's references; its name, or ""."""
    version = executor_class(executor).versions().get("jax", "")
    shown = smallest.crash.config, version, smallest.place, exception_of(message), needs
    try:
        write_text(crash_script(entry.test, executor, *shown), path)
    except NoScript:
        return ""
    return path.name


class _Crash:
    """The end of a process that candidates must show, and the time until which they are tried."""

    def __init__(self, executor: str) -> None:
        self.executor = executor
        self.end = 0.0
        self.pattern = ""
        self.last = ""
        """The last message with that pattern."""

    def message(self, test: LitmusTest, config: Config, count: int | None = None) -> str:
        """The pattern of the last message of a fresh process that ran a test; "" if it lives.

        A test is executed as often as a campaign does at first, or `count` times.
        """
        first, noise = shallow(Noise())
        with closing(Worker(self.executor)) as worker:
            job = Job(test, count or first, noise, SEED)
            reply = worker.ask(job.request(config), JOB_TIMEOUT_S, test)
        if not isinstance(reply, Died) or reply.timed_out:
            return ""
        pattern = message_pattern(reply.message)
        if pattern == (self.pattern or pattern):
            self.last = reply.message
        return pattern

    def ends(self, test: LitmusTest, config: Config, count: int | None = None) -> bool:
        """True if a test ends a fresh process in that way."""
        return self.message(test, config, count) == self.pattern

    def fails(self, worker: Worker, test: LitmusTest, config: Config) -> bool:
        """True if a test raises that exception; its process goes on, which takes far less time."""
        first, noise = shallow(Noise())
        job = Job(test, first, noise, SEED, survives=True)
        reply = worker.ask(job.request(config), JOB_TIMEOUT_S, test)
        failed = reply.failed if isinstance(reply, Reply) else ""
        return bool(failed) and failed == exception_of(self.last)

    def reduce(self, candidates: Generator[Crash, bool, None]) -> None:
        """Try candidates until there is none, or the time is up."""
        exception = exception_of(self.pattern)
        with closing(Worker(self.executor)) as worker:

            def shows(crash: Crash) -> bool:
                return self.fails(worker, *crash) if exception else self.ends(*crash)

            drive_now(candidates, shows, lambda: clock.now() < self.end)
