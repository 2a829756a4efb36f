"""Pools: a worker is killed in the middle of a shard, and no shard is lost or done twice.

Connections order the events, not clocks: each shard announces its first results, and waits for a
message before it continues.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import active_children
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import pytest
from helpers_settings import settings_of

from litmusfuzz.fuzz.campaign.engine import Engine
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.nightly import pools
from litmusfuzz.fuzz.store.folder import StoreError
from litmusfuzz.fuzz.store.store import Store
from litmusfuzz.reports.events import Executed, ShardEnded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from conftest import Command

    from litmusfuzz.reports.events import Event

STALE = "mutant/stale-reads"
KEY = b"these shards"
SHARDS = 3
SCHEDULER = """
import asyncio
from distributed import Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
WORKER = """
import asyncio, sys
from distributed import Worker
async def main():
    place = {"host": "127.0.0.1", "local_directory": sys.argv[2]}
    async with Worker(sys.argv[1], nthreads=1, memory_limit=0, **place) as worker:
        print("ready", flush=True)
        await worker.finished()
asyncio.run(main())
"""


def shard(address: tuple[str, int], number: int) -> tuple[int, int]:
    """Run a separate campaign; return its number, and its number of forbidden graphs."""
    with tempfile.TemporaryDirectory() as folder, Client(address, authkey=KEY) as writer:
        announced = False
        forbidden = set[int]()

        def write(events: Sequence[Event]) -> None:
            nonlocal announced
            executed = [event for event in events if isinstance(event, Executed)]
            forbidden.update(e.index for e in executed if e.verdicts.get("forbidden"))
            if executed and not announced:
                announced = True
                writer.send((number, os.getpid()))
                writer.recv()

        settings = settings_of(
            seed=number,
            out=Path(folder),
            executors=((STALE, configuration(STALE)),),
            tests=4,
            families=("dag",),
            count=64,
        )
        asyncio.run(Engine(settings, write).run())
        assert announced
        return number, len(forbidden)


def say_what_failed(address: tuple[str, int], future: Future[tuple[int, int]]) -> None:
    """Announce the error of a shard: whoever waits for its announcement would wait for ever."""
    error = None if future.cancelled() else future.exception()
    if error is not None and not pools.is_worker_lost(error):
        with Client(address, authkey=KEY) as writer:
            writer.send(repr(error))


def run_all_shards(pool: pools.Pool) -> tuple[list[tuple[int, int]], Counter[int], set[int]]:
    """Run all shards, and kill the worker of one of the first two while both are running.

    Returns
    -------
    Results in the order of their arrival, the number of starts of each shard, and the process ids
    of the workers.
    """
    begun: Counter[int] = Counter()
    processes: set[int] = set()
    results = []
    with ExitStack() as stack:
        listener = stack.enter_context(Listener(("127.0.0.1", 0), authkey=KEY))

        def begin(number: int) -> Future[tuple[int, int]]:
            future = pool.submit(shard, listener.address, number)
            future.add_done_callback(partial(say_what_failed, listener.address))
            return future

        running = {begin(number): number for number in range(SHARDS)}
        first, second = (stack.enter_context(listener.accept()) for _ in range(2))
        for each in (first, second):
            said = each.recv()
            assert not isinstance(said, str), said
            number, process = said
            begun[number] += 1
            processes.add(process)
        os.kill(process, signal.SIGKILL)
        first.send("go on")

        def let_all() -> None:
            while True:
                other = stack.enter_context(listener.accept())
                said = other.recv()
                if said is None or isinstance(said, str):
                    return
                begun[said[0]] += 1
                processes.add(said[1])
                other.send("go on")

        others = threading.Thread(target=let_all)
        others.start()
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(future)
                error = future.exception()
                if error is None:
                    results.append(future.result())
                else:
                    assert pools.is_worker_lost(error), error
                    running[begin(number)] = number
        with Client(listener.address, authkey=KEY) as end:
            end.send(None)
        others.join()
    return results, begun, processes


@pytest.fixture(scope="module")
def alone() -> list[tuple[int, int]]:
    """Results of the shards when no worker is killed."""
    with pools.open(2) as pool, Listener(("127.0.0.1", 0), authkey=KEY) as listener:
        running = [pool.submit(shard, listener.address, number) for number in range(SHARDS)]
        for _ in running:
            with listener.accept() as each:
                each.recv()
                each.send("go on")
        return [future.result() for future in running]


def test_a_worker_of_this_machine_is_killed(alone: list[tuple[int, int]]) -> None:
    with pools.open(2) as pool:
        assert pool.workers == 2
        results, begun, processes = run_all_shards(pool)
    assert sorted(results) == alone
    assert sorted(begun.values()) == [1, 1, 2]
    assert len(processes) == 3
    assert processes.isdisjoint(each.pid for each in active_children())


def test_a_worker_of_a_cluster_is_killed_and_then_the_scheduler(
    alone: list[tuple[int, int]],
    tmp_path: Path,
    litmusfuzz_here: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Start a Dask scheduler and two workers as processes on the loopback interface."""
    with cluster(tmp_path) as (address, (scheduler, *workers)), pools.open(1, address) as pool:
        assert pool.workers == 2
        results, begun, processes = run_all_shards(pool)
        assert sorted(results) == alone
        assert sorted(begun.values()) == [1, 1, 2]
        assert processes == {each.pid for each in workers}
        assert sorted(each.poll() is None for each in workers) == [False, True]
        # Then the scheduler: what is under way is lost, and there is nobody to do it again.
        impatient(pool)
        out = tmp_path / "nightly"
        check_nightly_run_that_loses(scheduler, address, out, litmusfuzz_here, monkeypatch)
        with pytest.raises(pools.PoolError, match="is gone"):
            lose_turns(pool)


def impatient(pool: pools.Pool) -> None:
    """Have it give up a scheduler that is gone at once."""
    pool._client._timeout = 0.1  # type: ignore[attr-defined] # how long it would try again


def check_nightly_run_that_loses(
    scheduler: subprocess.Popen[str],
    address: str,
    folder: Path,
    litmusfuzz: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its report has what the first shard found, and says what happened."""
    connect = pools._Cluster.__init__

    def connect_impatiently(pool: pools._Cluster, *arguments: Any) -> None:
        connect(pool, *arguments)
        impatient(pool)

    monkeypatch.setattr(pools._Cluster, "__init__", connect_impatiently)

    over = threading.Event()

    def kill() -> None:
        while not (over.is_set() or shards_ended(folder)):
            time.sleep(0.05)
        scheduler.kill()
        scheduler.wait()

    killing = threading.Thread(target=kill)
    killing.start()
    asked = ("--executors", STALE, "--families", "dag", "--count", "64", "--shard-time", "3s")
    done = litmusfuzz("nightly", *asked, "--time", "20m", "--dask", address, "--out", str(folder))
    over.set()
    killing.join()
    assert done.returncode == 2
    problem = f"the Dask scheduler at {address} is gone"
    assert f"litmusfuzz: {problem}" in done.stderr
    assert "Traceback" not in done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert report["problem"].startswith(problem)
    assert done.stdout.splitlines()[-1].startswith(f"broken: {problem}")
    assert report["graphs"] > 0
    assert {shard["state"] for shard in report["shards"]} == {"done", "lost"}
    assert json.loads((folder / "findings.sarif").read_text())


def shards_ended(folder: Path) -> bool:
    """True if a shard has that tested something: a short one may not, beside other work."""
    try:
        with Store(folder, write=False) as store:
            return any(store.events_of(ShardEnded)) and any(store.events_of(Executed))
    except (StoreError, sqlite3.Error):
        return False  # it is being made


def lose_turns(pool: pools.Pool) -> NoReturn:
    """Submit shards that are all lost, until Dask gives up."""
    while True:
        with pytest.raises(CancelledError) as error:
            pool.submit(os.getpid).result()
        assert pools.is_worker_lost(error.value)


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Address of a scheduler; its process, and those of its two workers."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[str, subprocess.Popen[str]]:
        """A process, and the line that it says when it is ready."""
        log = stack.enter_context((folder / f"log-{len(started)}").open("w"))
        process = subprocess.Popen(
            [sys.executable, "-c", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment,
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, (folder / f"log-{len(started) - 1}").read_text()
        return line, process

    with ExitStack() as stack:
        try:
            address, _ = start(SCHEDULER)
            for _ in range(2):
                start(WORKER, address, str(folder))
            yield address, started
        finally:
            for process in reversed(started):
                process.kill()
                process.communicate()


def test_an_exception_in_a_shard_is_no_loss() -> None:
    with pools.open(1) as pool:
        error = pool.submit(int, "x").exception()
    assert isinstance(error, ValueError)
    assert not pools.is_worker_lost(error)


def test_an_idle_worker_that_is_killed_is_replaced() -> None:
    with pools.open(1) as pool:
        first = pool.submit(os.getpid).result()
        process = psutil.Process(first)
        process.kill()
        process.wait()
        future = pool.submit(os.getpid)
        if future.exception() is not None:  # given to it before its end was noticed
            future = pool.submit(os.getpid)
        assert future.result() != first


def test_ctrl_c_does_not_reach_the_workers() -> None:
    with pools.open(1) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert (
            signal.SIGINT not in pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
        )


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler at tcp://127.0.0.1:1: "),
        ("odd://x", "no Dask"),
        ("evil", "no Dask scheduler at evil: missing port number in address 'evil'"),
        ("ucx://x:1", "no Dask scheduler at ucx://x:1: "),
    ],
)
def test_a_missing_cluster_is_reported_in_one_line(
    address: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "CONNECT_S", 0.5)
    with pytest.raises(pools.PoolError) as error, pools.open(1, address):
        pass
    assert str(error.value).startswith(why)
    assert "\n" not in str(error.value)


def test_a_client_that_never_was_connected_does_not_wait_for_its_end() -> None:
    code = (
        "from litmusfuzz.fuzz.nightly import pools\n"
        "pools.CONNECT_S = 0.5\n"
        "with pools.open(1, 'evil'): pass"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "PoolError: no Dask scheduler at evil" in done.stderr
    assert "Exception ignored" not in done.stderr
