"""Fork servers: the processes that they fork, and what the end of any process leaves behind."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from helpers import PATIENCE_S

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.executors import messages, worker
from litmusfuzz.fuzz.executors.fork_server import close_all, servers
from litmusfuzz.fuzz.executors.memory import MemoryCap, available_bytes, private_bytes, watch
from litmusfuzz.fuzz.executors.process_tree import MARK, children
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.worker import Died, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROBE = """
    import base64, json, os, signal, sys
    from resource import RLIMIT_CORE, RLIMIT_DATA, getrlimit
    from litmusfuzz.fuzz.executors.protocol import Config, ForkAfter
    from litmusfuzz.fuzz.mutants.canary import Canary

    EARLY = os.environ.get("PROBE_EARLY_X", "")

    class Probe(Canary):
        name = "probe"
        fork_after = ForkAfter(("probe",), ("PROBE_EARLY_*",))

        @classmethod
        def configurations(cls):
            names = ("plain", "crash", "hang", "eat 50", "eat 100")
            red = Config("red", "executor", (), (("PROBE_COLOUR", "red"),))
            return (*(Config(name, "executor") for name in names), red)

        @classmethod
        def configured(cls, name):
            raise ValueError(name)

        def check(self, config):
            if config.name == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if config.name.startswith("eat"):
                self.eaten = os.urandom(1 << 20) * int(config.name.split()[1])
            if config.name != "plain" and not config.environment:
                signal.pause()

        @classmethod
        def versions(cls):
            state = {
                "leads its session": os.getsid(0) == os.getpid(),
                "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)],
                "blocked": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
                "limits": [getrlimit(each) for each in (RLIMIT_DATA, RLIMIT_CORE)],
                "folder": os.getcwd(),
                "descriptors": len(os.listdir("/proc/self/fd")),
                "colour": os.environ.get("PROBE_COLOUR", ""),
                "early": EARLY,
                "environment": dict(os.environ),
            }
            text = base64.b64encode(json.dumps(state).encode()).decode()
            parts = {f"state {n:05}": text[n : n + 256] for n in range(0, len(text), 256)}
            return {**parts, "threads": str(len(os.listdir("/proc/self/task")))}
"""
THREADED = """
    import threading
    from litmusfuzz.fuzz.executors.protocol import ForkAfter
    from litmusfuzz.fuzz.mutants.canary import Canary

    threading.Thread(target=threading.Event().wait, daemon=True).start()

    class Threaded(Canary):
        name = "threaded"
        fork_after = ForkAfter(("threaded",))

    class Absent(Canary):
        name = "absent-module"
        fork_after = ForkAfter(("no_such_module",))

    class Stranger:
        name = "stranger"
        support = Canary.support
        configurations = Canary.configurations
        versions = Canary.versions
        prepare = Canary.prepare
"""


@pytest.fixture(scope="module", autouse=True)
def probes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Executors of this test, found by entry point in this process and in workers."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "probe.py").write_text(textwrap.dedent(PROBE))
    (folder / "threaded.py").write_text(textwrap.dedent(THREADED))
    info = folder / "probes-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: probes\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[litmusfuzz.executors]\nprobe = probe:Probe\nthreaded = threaded:Threaded\n"
        "absent-module = threaded:Absent\nstranger = threaded:Stranger\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", str(folder))
        yield
        close_all()


@pytest.fixture
def probe() -> Iterator[Worker]:
    with closing(Worker("probe")) as made:
        assert isinstance(made.ask(ask(), 60), messages.Reply)
        yield made


def ask(config: str = "plain") -> messages.Request:
    return messages.Request(config=config)


def state(worker: Worker, config: str = "plain") -> dict[str, Any]:
    """What the probe sees of its own process."""
    reply = worker.ask(ask(config), 60)
    assert isinstance(reply, messages.Reply), reply
    parts = [part for name, part in sorted(reply.versions.items()) if name.startswith("state")]
    found: dict[str, Any] = json.loads(base64.b64decode("".join(parts)))
    return found


def server_of(worker: Worker) -> psutil.Process:
    parent = psutil.Process(worker.pid).parent()
    assert parent is not None
    assert parent.pid in {server.pid for server in servers()}
    return parent


def gone(processes: list[psutil.Process]) -> bool:
    """True as soon as all have ended; the machine's first process may reap them later."""
    end = time.monotonic() + PATIENCE_S
    while not all(_ended(process) for process in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# --- what is forked --------------------------------------------------------------------


def test_a_forked_worker_starts_like_a_spawned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the present folder, which need not be that of the server."""
    with closing(Worker("probe")) as started:
        state(started)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOT_TEXT", os.fsdecode(b"\xff=\n"))
    found = []
    for spawn in (False, True):
        with closing(Worker("probe", memory_bytes=1 << 30, spawn=spawn)) as made:
            found.append(state(made))
            assert found[-1]["environment"].pop(MARK).endswith(f"/{made.pid}")
            assert made.start_method == ("spawned: as requested" if spawn else "forked")
    forked, spawned = found
    assert forked == spawned
    assert forked["leads its session"]
    assert forked["signals"] == [str(signal.SIG_IGN)] * 2
    assert forked["limits"] == [[1 << 30, 1 << 30], [0, 0]]
    assert forked["folder"] == str(tmp_path)


def test_a_forked_worker_has_one_thread_and_its_server_too(probe: Worker) -> None:
    reply = probe.ask(ask(), 60)
    assert isinstance(reply, messages.Reply)
    assert reply.versions["threads"] == "1"
    assert server_of(probe).num_threads() == 1


def test_environment_variables_are_heeded(probe: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a configuration, in another process; those read at import, from another server."""
    first, server = probe.pid, server_of(probe)
    assert state(probe, "red")["colour"] == "red"
    assert probe.pid != first
    assert server_of(probe) == server
    assert state(probe)["colour"] == ""
    monkeypatch.setenv("PROBE_LATE", "1")
    monkeypatch.setenv("PROBE_EARLY_X", "x")
    with closing(Worker("probe")) as other:
        assert state(other)["early"] == "x"
        assert server_of(other) != server
    monkeypatch.delenv("PROBE_EARLY_X")
    with closing(Worker("probe")) as other:
        found = state(other)
        assert (found["early"], found["environment"]["PROBE_LATE"]) == ("", "1")
        assert server_of(other) == server


@pytest.mark.parametrize(
    ("executor", "why"),
    [
        ("threaded", r"the imported modules start threads: 2 run \(.+, .+\)"),
        ("absent-module", "importing no_such_module: ModuleNotFoundError: .*"),
        ("stranger", "the executor has no `fork_after`"),
    ],
)
def test_where_forking_is_not_safe_workers_are_spawned(executor: str, why: str) -> None:
    """The request is answered all the same, and the next worker does not try it again."""
    for _ in range(2):
        with closing(Worker(executor)) as made:
            assert isinstance(made.ask(ask(), 60), messages.Reply)
            assert re.fullmatch(f"spawned: {why}", made.start_method)
            assert made.starts == 1
            parent = psutil.Process(made.pid).parent()
            assert parent is not None
            assert parent.cmdline()[-1] == str(os.getpid())  # a server without modules


def test_no_descriptor_is_left_of_many_workers(probe: Worker) -> None:
    server = server_of(probe)

    def descriptors() -> tuple[int, int]:
        return psutil.Process().num_fds(), server.num_fds()

    before = descriptors()
    for _ in range(20):
        with closing(Worker("probe")) as other:
            assert isinstance(other.ask(ask(), 60), messages.Reply)
            ended = psutil.Process(other.pid)
        ended.wait(PATIENCE_S)  # until the server has reaped it
    assert isinstance(probe.ask(ask(), 60), messages.Reply)
    # It closes those of a process after it has reaped it. What is left stays for ever.
    end = time.monotonic() + PATIENCE_S
    while descriptors() != before and time.monotonic() < end:
        time.sleep(0.01)
    assert descriptors() == before


# --- ends ------------------------------------------------------------------------------


def test_a_crash_costs_one_request_and_is_reported(probe: Worker) -> None:
    died = probe.ask(ask("crash"), 60)
    assert isinstance(died, Died)
    assert (died.message, died.timed_out) == ("signal 11", False)
    assert isinstance(probe.ask(ask(), 60), messages.Reply)
    assert (probe.starts, probe.start_method) == (2, "forked")


def test_a_killed_server_takes_its_workers_along(probe: Worker) -> None:
    """Between two requests: the next reports it, and that after it has a new server."""
    process, server = psutil.Process(probe.pid), server_of(probe)
    server.kill()
    assert gone([process, server])
    died = probe.ask(ask(), 60)
    assert isinstance(died, Died)
    assert died.message == "the fork server was killed: signal 9"
    assert isinstance(probe.ask(ask(), 60), messages.Reply)
    assert probe.start_method == "forked"
    assert server_of(probe) != server


def test_a_server_that_is_killed_during_a_request(probe: Worker) -> None:
    process, server = psutil.Process(probe.pid), server_of(probe)
    probe.send(ask("hang"), 60)
    server.kill()
    died = probe.receive()
    assert isinstance(died, Died)
    assert died.message == "the fork server was killed: signal 9"
    assert gone([process, server])


def test_a_server_that_is_killed_with_a_fork_request_before_it(probe: Worker) -> None:
    server = server_of(probe)
    server.suspend()
    with closing(Worker("probe")) as other:
        other.send(ask(), 60)
        server.kill()
        died = other.receive()
        assert isinstance(died, Died)
        assert died.message == "the fork server was killed: signal 9"
        assert isinstance(other.ask(ask(), 60), messages.Reply)


def test_a_fork_request_to_a_dead_server_goes_to_a_new_one(probe: Worker) -> None:
    server = server_of(probe)
    server.kill()
    with closing(Worker("probe")) as other:
        reply = other.ask(ask(), 60)
        if isinstance(reply, Died):  # killed, but not yet dead when it was asked
            assert reply.message == "the fork server was killed: signal 9"
            reply = other.ask(ask(), 60)
        assert isinstance(reply, messages.Reply)
        assert server_of(other) != server


def test_a_server_that_is_killed_while_it_starts_is_started_again() -> None:
    close_all()
    with closing(Worker("probe")) as made:
        made.send(ask(), 60)
        (server,) = servers()
        os.kill(server.pid, signal.SIGKILL)
        died = made.receive()
        assert isinstance(died, Died)
        assert died.message == "the fork server was killed: signal 9"
        assert isinstance(made.ask(ask(), 60), messages.Reply)
        assert made.start_method == "forked"


def test_a_server_that_never_starts_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two failed starts are reported; then workers are spawned."""
    monkeypatch.setenv("PROBE_EARLY_X", "a server of its own")
    with closing(Worker("probe")) as made:
        for _ in range(2):
            before = {server.pid for server in servers()}
            made.send(ask(), 60)
            (new,) = {server.pid for server in servers()} - before
            os.kill(new, signal.SIGKILL)
            assert isinstance(made.receive(), Died)
        assert isinstance(made.ask(ask(), 60), messages.Reply)
        assert made.start_method == "spawned: the fork server was killed: signal 9"


def test_a_server_that_hangs_is_killed(probe: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_of(probe)
    server.suspend()
    monkeypatch.setattr(worker, "START_TIMEOUT_S", 0.2)
    with closing(Worker("probe")) as other:
        died = other.ask(ask(), 0.1)
        assert isinstance(died, Died)
        assert died.timed_out
        assert gone([server])
        monkeypatch.undo()
        assert isinstance(other.ask(ask(), 60), messages.Reply)


OWNER = """
    import os, sys
    from litmusfuzz.fuzz.executors import messages
    from litmusfuzz.fuzz.executors.worker import Worker

    workers = [Worker("probe") for _ in range(3)]
    for worker in workers:
        assert isinstance(worker.ask(messages.Request(config="plain"), 60), messages.Reply)
    if not os.fork():  # a copy of this process leaves the servers alone, also when it exits
        sys.exit()
    os.wait()
    workers.append(Worker("probe"))
    reply = workers[-1].ask(messages.Request(config="plain"), 60)
    assert isinstance(reply, messages.Reply)
    workers[0].send(messages.Request(config="hang"), 60)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_process_that_ends_leaves_no_servers_and_no_workers(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(OWNER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        found = psutil.Process(owner.pid).children(recursive=True)
        assert len(found) == 5  # a server and four workers
        if how == "kill":
            owner.kill()
        else:
            owner.stdin.close()
        assert owner.wait(PATIENCE_S) == (-signal.SIGKILL if how == "kill" else 0)
    assert gone(found)


# --- TensorFlow's own processes --------------------------------------------------------


@pytest.mark.parametrize("killed", ["worker", "server"])
def test_grpc_servers_are_forked_and_end_with_their_worker(killed: str) -> None:
    request = messages.Request(
        test=plain_of(litmus("X=1; r0=Y || Y=1; r1=X")),
        config="two_workers",
        count=8,
        noise=asdict(Noise(copies=2, steps=4)),
    )
    with closing(Worker("tf")) as made:
        for _ in range(2):  # the second on the same gRPC servers
            reply = made.ask(request, 60)
            assert isinstance(reply, messages.Reply)
            assert reply.rows
        server, process = server_of(made), psutil.Process(made.pid)
        below = process.children(recursive=True)
        assert [each.cmdline() for each in below] == [server.cmdline()] * 2
        (process if killed == "worker" else server).kill()
        assert gone([process, *below])
        assert isinstance(made.ask(request, 60), Died)


# --- memory ----------------------------------------------------------------------------


def test_the_cap_on_all_workers_kills_the_largest() -> None:
    """And only when they are over it together."""
    with closing(Worker("probe")) as small, closing(Worker("probe")) as large:
        both = [(small, 50), (large, 100)]
        for each, megabytes in both:
            each.send(ask(f"eat {megabytes}"), 60)
        end = time.monotonic() + 60
        while any(not each.pid or private_bytes(each.pid) < mb << 20 for each, mb in both):
            assert time.monotonic() < end
        workers = (small, large)
        MemoryCap(1 << 30).enforce(workers)
        MemoryCap(140 << 20).enforce(workers)
        died = large.receive()
        assert isinstance(died, Died)
        assert re.match(
            r"out of memory: all workers together use 0\.[12] GiB of 0\.1 GiB", died.message
        )
        assert not died.timed_out
        assert psutil.Process(small.pid).is_running()
        MemoryCap(140 << 20).enforce(workers)
        assert psutil.Process(small.pid).is_running()


def test_the_limit_is_the_machines_or_that_of_a_cgroup(tmp_path: Path) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("proc/meminfo", "MemTotal:       16384 kB\nMemFree:           1 kB\n")
    write("proc/self/cgroup", "0::/a/b\n")
    assert available_bytes(tmp_path) == 16 << 20
    write("sys/fs/cgroup/a/b/memory.max", "max\n")
    assert available_bytes(tmp_path) == 16 << 20
    write("sys/fs/cgroup/a/memory.max", f"{4 << 20}\n")
    assert available_bytes(tmp_path) == 4 << 20
    write("proc/self/cgroup", "3:cpu:/a/b\n7:cpuset,memory:/not/mounted\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2 << 20}\n")
    assert available_bytes(tmp_path) == 2 << 20
    assert 0 < available_bytes() <= psutil.virtual_memory().total


def test_the_children_of_a_process_that_has_ended_are_none() -> None:
    """It may end between two looks at it: the watch over the memory looks all the time."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    assert not children(ended.pid)
    ended.wait()
    assert not children(ended.pid)


# --- asyncio ---------------------------------------------------------------------------


async def both(first: Worker, second: Worker) -> tuple[object, list[object]]:
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(lambda: (first, second), MemoryCap(), 0.01))
        hangs = tasks.create_task(first.run(ask("hang"), 60))
        # Else the other may have answered, without a wait, before this one is asked.
        while first.pid is None:
            await asyncio.sleep(0.01)
        answers: list[object] = [await second.run(ask(), 60) for _ in range(3)]
        assert not hangs.done()
        first.kill("enough")
        died = await hangs
        watching.cancel()
    return died, answers


def test_workers_of_one_event_loop_run_at_the_same_time() -> None:
    """A worker that hangs keeps no other from answering."""
    with closing(Worker("probe")) as first, closing(Worker("probe")) as second:
        died, answers = asyncio.run(both(first, second))
        assert isinstance(died, Died)
        assert died.message == "enough"
        assert all(isinstance(answer, messages.Reply) for answer in answers)
        assert second.starts == 1


def test_a_run_that_is_overdue_is_killed_and_one_that_is_cancelled_closes_its_worker(
    probe: Worker,
) -> None:
    async def cancelled() -> None:
        run = asyncio.create_task(probe.run(ask("hang"), 60))
        await asyncio.sleep(0)  # it has sent its request
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    process = psutil.Process(probe.pid)
    died = asyncio.run(probe.run(ask("hang"), 0.1))
    assert isinstance(died, Died)
    assert died.timed_out
    assert gone([process])
    assert isinstance(asyncio.run(probe.run(ask(), 60)), messages.Reply)
    process = psutil.Process(probe.pid)
    asyncio.run(cancelled())
    assert probe.pid is None
    assert gone([process])


@pytest.mark.parametrize("spawn", [False, True])
def test_a_crash_in_an_event_loop_is_reported(*, spawn: bool) -> None:
    with closing(Worker("probe", spawn=spawn)) as made:
        died = asyncio.run(made.run(ask("crash"), 60))
        assert isinstance(died, Died)
        assert died.message == "signal 11"
        assert isinstance(asyncio.run(made.run(ask(), 60)), messages.Reply)


@pytest.mark.parametrize("executor", ["threaded", "absent-module"])
def test_where_forking_is_not_safe_an_event_loop_gets_its_reply_too(executor: str) -> None:
    close_all()
    with closing(Worker(executor)) as made:
        assert isinstance(asyncio.run(made.run(ask(), 60)), messages.Reply)
        assert made.start_method.startswith("spawned: ")


def test_a_request_larger_than_a_pipe_does_not_block_the_event_loop() -> None:
    test = litmus("; ".join(f"X={i % 5}" for i in range(2000)))
    request = messages.Request(test=plain_of(test), config="plain", count=1, noise={})
    assert len(messages.encoded(request)) > 1 << 16
    with closing(Worker("probe")) as made:
        reply = asyncio.run(made.run(request, 60))
    assert isinstance(reply, messages.Reply)
    assert len(reply.rows) == 1


def test_too_many_open_files_are_an_error_of_this_process() -> None:
    """The server goes on, and forks again once there are some."""
    with closing(Worker("native")) as first:
        assert not isinstance(first.ask(messages.Request(), timeout_s=60), Died)
        server = servers()[0]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        for more in range(8):  # a worker takes eight here, for a moment
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, limits[1]))
            try:
                with pytest.raises(OSError, match="Too many open files"):
                    server.fork()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert server.alive
        server.fork().close()
