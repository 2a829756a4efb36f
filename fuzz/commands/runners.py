"""Runs tests for `litmusfuzz.fuzz.testing`: in this process, or in an executor's own.

An executor that is given as an object or a class runs here. One that is named runs in a worker's
process, which the tests of this process share: it imports the framework, and may crash.
"""

from __future__ import annotations

import atexit
import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol

from litmusfuzz.fuzz.campaign.job import Job
from litmusfuzz.fuzz.campaign.tuning import JOB_TIMEOUT_S
from litmusfuzz.fuzz.commands.exploration import SearchOnWorker, WorkerDied
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.messages import NO_SCHEDULES
from litmusfuzz.fuzz.executors.protocol import Explorable, Refused, Unavailable
from litmusfuzz.fuzz.executors.table import configuration, executor_class
from litmusfuzz.fuzz.executors.worker import Died, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from litmusfuzz.corpus.model import LitmusTest
    from litmusfuzz.fuzz.executors.protocol import Config, Executor, Histogram, Noise, Search


class Runner(Protocol):
    """An executor in one configuration."""

    config: Config
    named: bool
    """True if the user has named the configuration."""

    @property
    def executor(self) -> Executor | type[Executor]:
        """The executor."""

    def run(self, test: LitmusTest, count: int, noise: Noise, seed: int) -> Histogram:
        """What the test shows.

        Raises
        ------
        Refused, Unavailable, WorkerDied
        """

    def searching(
        self, test: LitmusTest, config: Config
    ) -> AbstractContextManager[Callable[[int | None], Search]]:
        """What begins a search of the test with a bound on preemptions, in a configuration.

        Raises
        ------
        Refused, Unavailable
        """


class Here:
    """Runs tests in this process."""

    def __init__(self, executor: Executor, config: Config | None) -> None:
        self.executor = executor
        self.config = config or executor.configurations()[0]
        self.named = config is not None

    def run(self, test: LitmusTest, count: int, noise: Noise, seed: int) -> Histogram:
        """See `Runner`."""
        with closing(self.executor.prepare(test, self.config)) as prepared:
            return prepared.run(count, noise, seed)

    @contextmanager
    def searching(
        self, test: LitmusTest, config: Config
    ) -> Iterator[Callable[[int | None], Search]]:
        """See `Runner`."""
        with closing(self.executor.prepare(test, config)) as prepared:
            if not isinstance(prepared, Explorable):
                raise Refused(NO_SCHEDULES)
            yield prepared.search


class OnWorker:
    """Runs tests in a worker's process.

    Parameters
    ----------
    name : str
        Of an executor, or EXECUTOR:CONFIGURATION.
    config : Config, optional

    Raises
    ------
    UnknownExecutor
    """

    def __init__(self, name: str, config: Config | None) -> None:
        self._name, _, wanted = name.partition(":")
        self.executor = executor_class(self._name)
        self.config = config or configuration(self._name, wanted or None)
        self.named = bool(wanted or config)

    def run(self, test: LitmusTest, count: int, noise: Noise, seed: int) -> Histogram:
        """See `Runner`."""
        request = Job(test, count, noise, seed).request(self.config)
        reply = _worker(self._name, self.config).ask(request, JOB_TIMEOUT_S, test)
        if isinstance(reply, Died):
            raise WorkerDied(reply)
        if reply.refused:
            raise Refused(reply.refused)
        if reply.unavailable:
            raise Unavailable(reply.unavailable)
        return messages.histogram(test, reply)

    @contextmanager
    def searching(
        self, test: LitmusTest, config: Config
    ) -> Iterator[Callable[[int | None], Search]]:
        """See `Runner`."""
        worker = _worker(self._name, config)
        yield lambda bound: SearchOnWorker(test, worker, config, bound)


_WORKERS: dict[tuple[int, str, Config], Worker] = {}
"""By process, executor and configuration: a forked process cannot share those of its parent."""


def _worker(name: str, config: Config) -> Worker:
    """The worker of this process that runs an executor in a configuration."""
    place = os.getpid(), name, config
    if place not in _WORKERS:
        _WORKERS[place] = Worker(name)
        atexit.register(_WORKERS[place].close)
    return _WORKERS[place]
