"""Main program of a worker process.

``python -m litmusfuzz.fuzz.executors.worker_main EXECUTOR MEMORY_BYTES`` is the program of a
spawned worker; a worker that has the modules of its fork server calls `serve` alone.

It reads requests from standard input and writes replies to standard output, until the
input ends. A refusal is a reply. Any other exception ends the process with a traceback,
which the parent records as a crash, so that no defect passes for a result.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Final

import msgspec

from litmusfuzz.corpus.textfile import read_plain
from litmusfuzz.fuzz.executors import messages, network, single_execution
from litmusfuzz.fuzz.executors.memory import COLLECTED_EVERY
from litmusfuzz.fuzz.executors.process_log import printable
from litmusfuzz.fuzz.executors.protocol import (
    Checkable,
    Clustered,
    Counts,
    Diverged,
    Drives,
    Explorable,
    Forceable,
    Packing,
    Refused,
    Schedulable,
    TooLarge,
    Unavailable,
    noise_from,
)
from litmusfuzz.fuzz.executors.table import UnknownExecutor, configuration, executor_class
from litmusfuzz.fuzz.executors.traced.failures import SystemFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import IO

    from litmusfuzz.fuzz.executors.protocol import Executor, Explored, Prepared, Search

_MAX_REASON: Final = 2000
"""Characters of a reason, at most."""


class _Server:
    """Answers requests. It keeps the last test prepared, as a reducer repeats tests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.executors: dict[str, Executor] = {name: executor_class(name)()}
        self.key: tuple[str, dict[str, Any], str] | None = None
        self.prepared: Prepared | None = None
        self.search: Search | None = None
        """Of that test, and how many executions it has begun."""
        self.begun = 0

    def answer(self, request: messages.Request) -> messages.Reply:
        name = request.executor or self.name
        if name not in self.executors:
            self.executors[name] = executor_class(name)()
        executor = self.executors[name]
        reply = self.outcome(executor, name, request)
        if isinstance(executor, Counts):
            counters = dict(executor.counters())
            reply = msgspec.structs.replace(reply, counters=counters)
        return reply

    def outcome(self, executor: Executor, name: str, request: messages.Request) -> messages.Reply:
        try:
            if request.pack:
                return _packed(executor, name, request)
            if not request.test:
                if request.config and isinstance(executor, Checkable):
                    executor.check(configuration(name, request.config))
                return messages.Reply(versions=_short(executor.versions()))
            start = time.perf_counter()
            prepared = self.prepare(executor, name, request)
            if request.task == "clusters":
                return _clustered(prepared)
            drivers = _drivers(prepared)
            if request.task == "explore":
                return self.explored(prepared, request)
            if request.task != "run":
                return msgspec.structs.replace(_scheduled(prepared, request), drivers=drivers)
            found = prepared.run(request.count, noise_from(request.noise), request.seed)
        except (Diverged, TimeoutError) as error:
            return messages.Reply(diverged=_line(error))
        except SystemFailed as failure:
            if not request.survives:
                raise
            self.prepared = None
            return messages.Reply(failed=_line(failure))
        except Refused as refusal:
            return messages.Reply(refused=_line(refusal), last=isinstance(refusal, TooLarge))
        except Unavailable as missing:
            return messages.Reply(unavailable=_line(missing))
        chosen = prepared.clusters_run() if isinstance(prepared, Clustered) else ()
        return messages.Reply(
            rows=messages.rows(found),
            clusterings=messages.clusterings(chosen),
            drivers=drivers,
            seconds=time.perf_counter() - start,
        )

    def explored(self, prepared: Prepared, request: messages.Request) -> messages.Reply:
        """Go on with a search, or begin another one.

        Raises
        ------
        Diverged
            If it has not begun as many executions in this process as the request says.
        """
        if not isinstance(prepared, Explorable):
            raise Refused(messages.NO_SCHEDULES)
        if not request.done:
            self.search = prepared.search(request.preemptions)
            self.begun = 0
        if self.search is None or self.begun != request.done:
            raise Diverged("the search has begun in another process")
        found = self.search.go_on(request.count)
        self.begun = found.executions
        return _searched(prepared, found)

    def prepare(self, executor: Executor, name: str, request: messages.Request) -> Prepared:
        key = (name, request.test, request.config)
        if self.prepared is None or self.key != key:
            if self.prepared is not None:
                self.prepared.close()
                self.prepared = self.search = None
            test = read_plain(request.test)
            self.prepared = executor.prepare(test, configuration(name, request.config))
            self.key = key
        return self.prepared


def _line(reason: Exception) -> str:
    """Why an executor does not run something, in one line; never "", which would be no reason."""
    return printable(" ".join(str(reason).split()), _MAX_REASON) or type(reason).__name__


def _drivers(prepared: Prepared) -> dict[str, str]:
    return _short(prepared.drivers()) if isinstance(prepared, Drives) else {}


def _short(named: Mapping[str, str]) -> dict[str, str]:
    return {name: printable(each, messages.MAX_NAME) for name, each in named.items()}


def _packed(executor: Executor, name: str, request: messages.Request) -> messages.Reply:
    start = time.perf_counter()
    if not isinstance(executor, Packing):
        raise Refused(messages.NO_PACKS)
    tests = [read_plain(each.test) for each in request.pack]
    prepared = executor.prepare_pack(tests, configuration(name, request.config))
    seeds = [each.seed for each in request.pack]
    found = prepared.run(request.count, noise_from(request.noise), seeds)
    return messages.Reply(
        packed=[messages.rows(each) for each in found], seconds=time.perf_counter() - start
    )


def _clustered(prepared: Prepared) -> messages.Reply:
    if not isinstance(prepared, Clustered):
        raise Refused(messages.NO_CLUSTERS)
    return messages.Reply(clusterings=messages.clusterings(prepared.clusters()))


def _searched(prepared: Explorable, found: Explored) -> messages.Reply:
    chosen = prepared.clusters_run() if isinstance(prepared, Clustered) else ()
    return messages.Reply(
        rows=messages.rows(found.histogram),
        explored=messages.exploration(found),
        clusterings=messages.clusterings(chosen),
    )


def _scheduled(prepared: Prepared, request: messages.Request) -> messages.Reply:
    """The reply to a task for what runs under control: all tasks but run and clusters."""
    if request.task == "follow" and isinstance(prepared, Explorable):
        outcome = prepared.follow(request.schedule)
    elif request.task == "force" and isinstance(prepared, Forceable):
        outcome = prepared.force(request.order, request.timeout_s)
    elif request.task == "sample" and isinstance(prepared, Explorable):
        found = prepared.sample(request.scheduler, request.count, request.seed)
        return _searched(prepared, found)
    elif request.task == "record" and isinstance(prepared, Schedulable):
        return _recorded(prepared, request)
    elif not isinstance(prepared, Schedulable) or request.task in ("follow", "sample"):
        raise Refused(messages.NO_SCHEDULES)
    else:
        outcome = prepared.replay(request.choices)
    return messages.Reply(rows=messages.rows({outcome: 1}))


def _recorded(prepared: Schedulable, request: messages.Request) -> messages.Reply:
    """The first execution with a wanted outcome; an empty reply if none came in time.

    The time is that of this process: beside other work, as many executions are tried.
    """
    wanted = [(row.values, row.status) for row in request.wanted]
    end = time.process_time() + request.timeout_s
    for number in range(request.count):
        outcome, choices = prepared.record(request.seed + number)
        (row,) = messages.rows({outcome: 1})
        if (row.values, row.status) in wanted:
            return messages.Reply(rows=[row], choices=list(choices))
        if time.process_time() >= end:
            break
    return messages.Reply()


def main() -> None:
    """Answer requests until the input ends."""
    serve(sys.argv[1], int(sys.argv[2]), sys.stdin.buffer)


def serve(name: str, memory_bytes: int, requests: IO[bytes]) -> None:
    """Answer requests until they end; of a spawned and of a forked worker.

    Parameters
    ----------
    name : str
        Name of the executor.
    memory_bytes : int
        Limit on the private memory of this process.
    requests : file
        Replies go to standard output.
    """
    network.enter_if_asked()  # before the first thread
    gc.set_threshold(COLLECTED_EVERY)
    # Sent to the whole process group; the parent decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # DATA, not AS: frameworks reserve far more address space than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # A crash is a result here, and a framework's core has gigabytes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Frameworks print to standard output; replies need a channel of their own.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer: Callable[[messages.Request], messages.Reply]
    try:
        answer = _Server(name).answer
    except (ImportError, UnknownExecutor) as error:
        answer = _absent(error)
    while (request := messages.read_request(requests)) is not None:
        try:
            reply = msgspec.structs.replace(answer(request), number=request.number)
        except Exception as error:  # noqa: BLE001 - it ends the process, and its log says why
            traceback.print_exception(type(error), error, _of_theirs(error.__traceback__))
            sys.stderr.flush()
            os._exit(1)
        messages.write(channel, reply)


def _of_theirs(frames: TracebackType | None) -> TracebackType | None:
    """A traceback from where our code has called that of the executor's author; else all of it."""
    ours, theirs = (__file__, single_execution.__file__), frames
    below = frames
    while below is not None:
        if below.tb_frame.f_code.co_filename in ours:
            theirs = below.tb_next
        below = below.tb_next
    return theirs or frames


def _absent(error: Exception) -> Callable[[messages.Request], messages.Reply]:
    """Answers every request with the reason why this environment has no such executor."""
    why, _, _ = str(error).partition(" (")  # without the path of the module
    if isinstance(error, ImportError) and (error.name or "").startswith("litmusfuzz."):
        why += "; our compiled modules are for one version of Python"
    where = f"{sys.executable}, Python {sys.version.split()[0]}, cannot load it: {why}"
    return lambda _: messages.Reply(unavailable=where)


if __name__ == "__main__":
    main()
