"""Shard processes, as any `concurrent.futures.Executor`: this machine's, or a Dask cluster's.

A shard process may be killed at any moment. Only its work is lost then: the future
of its shard ends with an error that `is_worker_lost` knows, and the pool goes on. Whoever submitted
the shard runs it again. A Dask scheduler runs it again by itself, in another process, and gives
up only on a shard that has cost it several (`distributed.scheduler.allowed-failures`).
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, resource_tracker
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from litmusfuzz.fuzz.executors.process_log import in_a_line
from litmusfuzz.fuzz.executors.process_tree import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
T = TypeVar("T")
CONNECT_S: Final = 30.0
_DISCONNECTED: Final = ("closing", "closed")
"""States of a Dask client that has given up its scheduler."""


class PoolError(ValueError):
    """There are no such shard processes; the message says why in one line."""


class Pool(Executor):
    """A pool that knows how many shards run at once, and outlives its processes."""

    @property
    def workers(self) -> int:
        """Shards that can run at once now; at least 1."""
        raise NotImplementedError

    def close(self) -> None:
        """End the pool; what waits is given up."""
        raise NotImplementedError


@contextmanager
def open(workers: int, dask: str | None = None) -> Iterator[Pool]:  # noqa: A001 - pools.open
    """A pool of shard processes, ended with the context.

    What waits then is given up. What runs is waited for on this machine, and given up on
    a cluster, which has others.

    Parameters
    ----------
    workers : int
        Processes on this machine. Of a cluster: shards at once at least, though it may have
        fewer processes now, so that one that grows with its load does.
    dask : str, optional
        Address of a Dask scheduler, ``tcp://host:8786``.

    Raises
    ------
    PoolError
        If there is no such scheduler, or Dask is not installed; of the pool, when its
        scheduler is gone.
    """
    pool = _Local(workers) if dask is None else _Cluster(dask, workers)
    try:
        yield pool
    finally:
        pool.close()


def is_worker_lost(error: BaseException) -> bool:
    """True if a future's error means that its process was lost, not that the shard failed."""
    # By name, as Dask need not be installed.
    return isinstance(error, BrokenExecutor | CancelledError) or (
        type(error).__name__ == "KilledWorker"
    )


# --- this machine ----------------------------------------------------------------------


_FROM_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGHUP})
"""Signals that a terminal sends to all processes of a command."""


def _initialize_worker(parent: int) -> None:
    """In a shard process: the parent alone decides what Ctrl-C means, and a closed terminal."""
    for each in _FROM_TERMINAL:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FROM_TERMINAL)
    die_with_parent(parent)


def _start_tracker() -> None:
    """Start Python's process that removes the semaphores of a process that was ended at once.

    It would print a warning about them, in the middle of what the command says.
    """
    before = os.environ.get("PYTHONWARNINGS")
    quiet = "ignore::UserWarning:multiprocessing.resource_tracker"
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, quiet)))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


class _Worker:
    """One process, replaced when it was killed.

    It is a `ProcessPoolExecutor` of its own, because one with several processes gives up all their
    work when one of them dies.
    """

    def __init__(self) -> None:
        self.pool = self._new()
        self.futures: list[Future[Any]] = []

    @staticmethod
    def _new() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1,
            mp_context=get_context("spawn"),
            initializer=_initialize_worker,
            initargs=(os.getpid(),),
        )

    @property
    def pending(self) -> int:
        """Number of shards that it still has to do."""
        self.futures = [each for each in self.futures if not each.done()]
        return len(self.futures)

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Submit to this process, or to a new one in its place."""
        # A process that is started here has them blocked until it ignores them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _FROM_TERMINAL)
        try:
            try:
                future = self.pool.submit(task)
            except BrokenExecutor:
                self.pool.shutdown(wait=False)
                self.pool = self._new()
                future = self.pool.submit(task)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.futures.append(future)
        return future


class _Local(Pool):
    """Processes on this machine. One thread submits."""

    def __init__(self, workers: int) -> None:
        _start_tracker()
        self._workers = [_Worker() for _ in range(workers)]

    @property
    def workers(self) -> int:
        return len(self._workers)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit to the process with the least work."""
        worker = min(self._workers, key=lambda each: each.pending)
        return worker.submit(partial(fn, *args, **kwargs))

    def close(self) -> None:
        for worker in self._workers:
            for future in worker.futures:
                future.cancel()
        for worker in self._workers:
            worker.pool.shutdown()


# --- a cluster -------------------------------------------------------------------------


class _Cluster(Pool):
    """Workers of a Dask scheduler; each of their threads counts as one."""

    def __init__(self, address: str, workers: int) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise PoolError("Dask is not installed: pip install 'litmusfuzz[dask]'") from None
        client = self._client = Client.__new__(Client)
        try:
            Client.__init__(client, address, timeout=CONNECT_S, set_as_default=False)
        except Exception as error:  # an address may fail in many ways  # noqa: BLE001
            client.status = "closed"  # else its `__del__` waits for a connection that never was
            why = in_a_line(str(error))
            raise PoolError(f"no Dask scheduler at {address}: {why}") from None
        self._executor = self._client.get_executor(pure=False)
        self._address = address
        self._least = workers

    @property
    def workers(self) -> int:
        self._check()
        try:
            threads: dict[str, int] = self._client.nthreads()
        except (OSError, RuntimeError) as error:  # the latter while the client gives it up
            raise PoolError(f"{self._gone}: {in_a_line(str(error))}") from error
        return max(self._least, sum(threads.values()))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit to a worker that the scheduler chooses."""
        try:
            future: Future[T] = self._executor.submit(partial(fn, *args, **kwargs))
        except OSError as error:  # of the connection, before the client gives it up
            raise PoolError(f"{self._gone}: {in_a_line(str(error))}") from error
        except Exception:
            self._check()
            raise
        self._check()
        return future

    def close(self) -> None:
        if self._client.status not in _DISCONNECTED:
            self._executor.shutdown(wait=False)
        self._client.close()

    def _check(self) -> None:
        """Raise if the scheduler is gone: the client has tried long enough."""
        if self._client.status in _DISCONNECTED:
            raise PoolError(self._gone)

    @property
    def _gone(self) -> str:
        return f"the Dask scheduler at {self._address} is gone"
