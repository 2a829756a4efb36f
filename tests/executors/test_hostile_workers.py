"""Workers of a stranger's executor: a bad reply costs one request, and no process stays behind."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pytest
from campaign.campaigns import Run
from campaign.doubles import installed
from executors.hostile import LOGGED_BYTES, SEVENTH, Countless, Garbled, Hostile, HostileServer
from helpers import PATIENCE_S
from helpers_settings import settings_of

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import load, plain_of
from litmusfuzz.fuzz.executors import fork_server, messages, reply_check
from litmusfuzz.fuzz.executors.fork_server import ForkedProcess, close_all
from litmusfuzz.fuzz.executors.memory import of_worker
from litmusfuzz.fuzz.executors.process_log import HEAD_BYTES, KEPT_BYTES
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.worker import Died, Worker
from litmusfuzz.reports.events import Executed, WorkerDied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SB = litmus("X=1; r0=Y || Y=1; r1=X")
QUEUES = litmus("Q!1; r0=Q?", queues={"Q": 2})


@pytest.fixture(scope="module", autouse=True)
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    hostile = [Hostile, HostileServer, Garbled, Countless]
    folder = installed(tmp_path_factory.mktemp("doubles"), hostile)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        tests = Path(__file__).parent.parent
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, str(tests)]))
        yield
        close_all()


@pytest.fixture(params=[False, True], ids=["forked", "spawned"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with closing(Worker(Hostile.name, spawn=request.param)) as made:
        assert isinstance(made.ask(ask(), 60), messages.Reply)
        yield made


def ask(config: str = "plain") -> messages.Request:
    return messages.Request(config=config)


def children(worker: Worker, config: str) -> list[psutil.Process]:
    """The processes that it starts there."""
    reply = worker.ask(ask(config), 60)
    assert isinstance(reply, messages.Reply), reply
    found = [psutil.Process(int(pid)) for pid in reply.versions["children"].split()]
    assert all(each.is_running() for each in found)
    return found


def gone(processes: list[psutil.Process]) -> bool:
    """True as soon as all have ended; the machine's first process may reap them later."""
    end = time.monotonic() + PATIENCE_S
    while any(runs(process) for process in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# --- replies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("garbage", "a bad reply: its length is 4,292,354,167 bytes, of at most 16,777,216"),
        ("huge", "a bad reply: its length is 1,073,741,824 bytes, of at most 16,777,216"),
        ("half", "a bad reply: it ends after 5 bytes \\(exit 0\\)"),
        # Where the reading stops depends on when the bytes come.
        ("flood", "a bad reply: (more bytes follow it|Input data was truncated)"),
        ("twice", "a bad reply: (more bytes follow it|it has number 0, and the request 2)"),
    ],
)
def test_a_bad_reply_costs_one_request(worker: Worker, config: str, why: str) -> None:
    died = worker.ask(ask(config), 60)
    assert isinstance(died, Died)
    assert re.fullmatch(why, died.message)
    assert not died.timed_out
    assert isinstance(worker.ask(ask(), 60), messages.Reply)
    assert worker.starts == 2


def test_the_deadline_is_that_of_the_whole_reply(worker: Worker) -> None:
    """Each byte comes in time, but the last one never does."""
    started = time.monotonic()
    died = worker.ask(ask("slow"), 0.5)
    assert isinstance(died, Died)
    assert (died.message, died.timed_out) == ("no answer in 0.5 s", True)
    assert time.monotonic() - started < 30
    assert isinstance(worker.ask(ask(), 60), messages.Reply)


def test_a_campaign_goes_on_after_bad_replies(tmp_path: Path) -> None:
    """Each costs the one test, which is kept with the line that says why."""
    config = configuration(Garbled.name)
    settings = settings_of(
        1, tmp_path, ((Garbled.name, config),), time_s=300, tests=20, families=("dag",), count=4
    )
    run = Run(settings).run()
    died = [each for each in run.events if isinstance(each, WorkerDied)]
    assert len(died) == 20 // SEVENTH
    for each in died:
        assert each.message.startswith("a bad reply: its length is 4,292,354,167 bytes")
        assert load(tmp_path / each.file).test.nodes
    ended = Counter(each.end for each in run.events if isinstance(each, Executed))
    assert ended == {"judged": 20 - len(died), "crashed": len(died)}


ROW: dict[str, Any] = {"values": {"r0": [0], "r1": [1], "X": [1], "Y": [1]}, "count": 3}
RUN = messages.Request(test=plain_of(SB), config="plain", count=3, noise=asdict(Noise(copies=2)))
RECORD = msgspec.structs.replace(
    RUN, task="record", wanted=[messages.Row({"r0": [0], "r1": [1], "X": [1], "Y": [1]}, 1)]
)
QUEUED = msgspec.structs.replace(RUN, test=plain_of(QUEUES))
PACK = msgspec.structs.replace(
    RUN, test={}, pack=[messages.Packed(plain_of(each), 1) for each in (SB, QUEUES)]
)
QUEUES_ROW = {"values": {"r0": [1], "Q": []}, "count": 1}
CLUSTERS = msgspec.structs.replace(RUN, task="clusters")


def row(**changed: object) -> dict[str, object]:
    values = {**ROW["values"], **{n: v for n, v in changed.items() if n in ROW["values"]}}
    return {**ROW, **changed, "values": values} if "values" not in changed else ROW | changed


def received(reply: dict[str, object] | bytes, request: messages.Request) -> messages.Reply:
    """A reply as a worker takes it."""
    body = reply if isinstance(reply, bytes) else msgspec.json.encode(reply)
    found = messages.take_reply(bytearray(len(body).to_bytes(4, "big") + body))
    assert found is not None
    reply_check.check(request, None, found)
    return found


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (RUN, {"rows": [ROW]}),
        (RUN, {"rows": [row(count=1), row(count=3, r0=None)]}),
        (RUN, {"rows": [{"values": {}, "count": 1, "status": "failed"}]}),
        (RUN, {"rows": [{"values": {"X": [1], "Y": [0]}, "count": 1, "status": "blocked"}]}),
        (RUN, {"refused": "loops"}),
        (RECORD, {}),
        (RECORD, {"rows": [row(count=1)], "choices": [[0, 2, (1 << 64) - 1]]}),
        (QUEUED, {"rows": [{"values": {"r0": [1], "Q": []}, "count": 1}]}),
        (QUEUED, {"rows": [{"values": {"r0": [1], "Q": [[1], [2], [3]]}, "count": 1}]}),
        (PACK, {"packed": [[ROW], [QUEUES_ROW]]}),
        (PACK, {"refused": "packs"}),
        (CLUSTERS, {"clusterings": [{"clusters": [["r0"], ["r1"]]}]}),
        (CLUSTERS, {"clusterings": [{"clusters": [["r0"]], "lost": [["r0", "r1"]]}]}),
        (RUN, {"rows": [ROW], "clusterings": [{"clusters": [["r0"]]}, {"problem": "no graph"}]}),
        (ask(), {"versions": {"python": "3"}, "counters": {"found": 0.5}}),
    ],
)
def test_a_good_reply_is_taken(request_: messages.Request, reply: dict[str, object]) -> None:
    assert received(reply, request_)


@pytest.mark.parametrize(
    ("request_", "reply", "why"),
    [
        (PACK, {"packed": [[ROW]]}, "it has 1 tests, of 2 asked"),
        (PACK, {"packed": [[QUEUES_ROW], [ROW]]}, "the test has no 'Q'"),
        (PACK, {"packed": [[ROW], []]}, "its outcomes count 0 executions, of 3 asked"),
        (PACK, {"packed": [[ROW], [row(count=5)]]}, "the test has no"),
        (PACK, {"rows": [ROW]}, "it has rows, which nobody asked for"),
        (PACK, {"packed": [[ROW], [QUEUES_ROW]], "refused": "x"}, "it has packed beside refused"),
        (RUN, {"rows": [ROW], "packed": [[ROW]]}, "it has packed, which nobody asked for"),
        (RUN, b"", "Input data was truncated"),
        (RUN, b"\xff\xfe", "JSON is malformed"),
        (RUN, b"[" * 100_000, ""),
        (RUN, b'{"rows": [' + b"9" * 100_000 + b"]}", ""),
        (RUN, {"rows": 1}, "Expected `array`, got `int`"),
        (RUN, {"rows": [row(count="3")]}, "Expected `int`, got `str`"),
        (RUN, {"rows": [row(count=True)]}, "Expected `int`, got `bool`"),
        (RUN, {"rows": [row(count=0)]}, "Expected `int` >= 1"),
        (RUN, {"rows": [row(count=-3)]}, "Expected `int` >= 1"),
        (RUN, {"rows": [row(count=1 << 63)]}, "Expected `int`"),
        (RUN, {"rows": [row(X=[1 << 63])]}, "Expected `int`"),
        (RUN, {"rows": [row(X=[-(1 << 63) - 1])]}, "Expected `int`"),
        (RUN, {"rows": [row(X=[1.5])]}, "Expected `int | array`, got `float`"),
        (RUN, {"rows": [row(status="done")]}, "Invalid enum value 'done'"),
        (RUN, {"rows": [row(status="x" * 1000)]}, "Invalid enum value"),
        (RUN, {"seconds": "long"}, "Expected `float`, got `str`"),
        (RUN, b'{"seconds": 1e999}', ""),
        (RUN, {"rows": [ROW], "seconds": -1.0}, "its time is negative: -1.0 s"),
        (RUN, {"rows": [ROW], "number": 7}, "it has number 7, and the request 0"),
        (RUN, {}, "its outcomes count 0 executions, of 3 asked"),
        (RUN, {"rows": [row(count=5)]}, "its outcomes count 5 executions, of 3 asked"),
        (RUN, {"rows": [row(count=(1 << 63) - 1)] * 2}, "its outcomes count 18,"),
        (RUN, {"rows": [row(values={"r0": [0]})]}, "it has no value for 'X' in a completed"),
        (RUN, {"rows": [row(values={**ROW["values"], "Z": [1]})]}, "the test has no 'Z'"),
        (RUN, {"rows": [row(X=[])]}, "the value of 'X' has 0 numbers, not 1"),
        (RUN, {"rows": [row(X=[1, 1])]}, "the value of 'X' has 2 numbers, not 1"),
        (RUN, {"rows": [row(X=[[1]])]}, "the value of 'X' has another form"),
        (RUN, {"rows": [row(status="failed")]}, "a failed outcome has no values"),
        (RUN, {"rows": [row(values={"X": [1]}, status="blocked")]}, "it has no value for 'Y'"),
        (QUEUED, {"rows": [{"values": {"r0": [1], "Q": [1]}, "count": 1}]}, "the value of 'Q'"),
        (QUEUED, {"rows": [{"values": {"r0": [1], "Q": [[]]}, "count": 1}]}, "the value of 'Q'"),
        (
            QUEUED,
            {"rows": [{"values": {"r0": [1], "Q": [[1]] * 5000}, "count": 1}]},
            "queue 'Q' has 5,000 elements",
        ),
        (RUN, {"rows": [ROW], "refused": "no"}, "it has rows beside refused"),
        (RUN, {"refused": "no", "unavailable": "no"}, "it has unavailable beside refused"),
        (RUN, {"refused": "a\nb"}, "Expected `str` matching regex"),
        (RUN, {"refused": "\x1b[2J"}, "Expected `str` matching regex"),
        (RUN, {"refused": "x" * 70_000}, "Expected `str` of length <= 65536"),
        (
            RECORD,
            {"rows": [row(count=1)], "choices": [[0, 2, 1]], "clusterings": [{}]},
            "it has clusterings, which nobody",
        ),
        (RUN, {"refused": "no", "clusterings": [{}]}, "it has clusterings beside refused"),
        (RUN, {"rows": [ROW], "clusterings": [{"clusters": [["Z"]]}]}, "the test has no node 'Z'"),
        (RUN, {"rows": [ROW], "clusterings": [{"clusters": [["X"]]}]}, "the test has no node 'X'"),
        (RUN, {"rows": [ROW], "clusterings": [{"clusters": [[]]}]}, "a cluster is empty"),
        (RUN, {"rows": [ROW], "clusterings": [{}] * 4097}, "Expected `array` of length <= 4096"),
        (
            RUN,
            {"rows": [ROW], "clusterings": [{"lost": [["r0", "Z"]]}]},
            "the test has no node 'Z'",
        ),
        (
            RUN,
            {"rows": [ROW], "clusterings": [{"lost": [["r0"]]}]},
            "Expected `array` of length 2",
        ),
        (
            RUN,
            {"rows": [ROW], "clusterings": [{"clusters": [["r0"]], "problem": "no graph"}]},
            "it has clusters, and says that it does not know them",
        ),
        (CLUSTERS, {}, "it has 0 clusterings, and not one"),
        (RUN, {"rows": [ROW], "choices": [[0, 1, 2]]}, "it has choices, which nobody"),
        (ask(), {"rows": [ROW]}, "it has rows, which nobody asked for"),
        (RECORD, {"rows": [ROW]}, "its outcomes count 3 executions, of one"),
        (RECORD, {"rows": [row(count=1, r0=[1])]}, "its outcome is none of those"),
        (RECORD, {"choices": [[0, 2, 1]]}, "its outcomes count 0 executions, of one"),
        (RECORD, {"rows": [row(count=1)], "choices": [[2, 2, 1]]}, "a choice is out of range"),
        (RECORD, {"rows": [row(count=1)], "choices": [[0, 2, 1 << 64]]}, "a choice is out of"),
        (RECORD, {"rows": [row(count=1)], "choices": [[-1, 2, 1]]}, "Expected `int` >= 0"),
        (CLUSTERS, {"clusterings": [{"clusters": [["Z"]]}]}, "the test has no node 'Z'"),
        (
            CLUSTERS,
            {"clusterings": [{"clusters": [["r0"], ["r0"]]}]},
            "a node is in two clusters",
        ),
        (ask(), {"counters": {"found": 1e300}}, "Expected `float` <= 1e+18"),
        (ask(), {"counters": {f"c{i}": 1 for i in range(101)}}, "Expected `object` of length <="),
        (ask(), {"versions": {f"v{i}": "1" for i in range(101)}}, "Expected `object` of length <="),
        (ask(), {"counters": {257 * "c": 1}}, "Expected `str` of length <= 256"),
        (ask(), {"versions": {257 * "v": "1"}}, "Expected `str` of length <= 256"),
        (ask(), {"versions": {"python": 257 * "3"}}, "Expected `str` of length <= 256"),
        (ask(), {"versions": {"python": 3}}, "Expected `str`, got `int`"),
    ],
)
def test_a_bad_reply_is_not(
    request_: messages.Request, reply: dict[str, object] | bytes, why: str
) -> None:
    with pytest.raises(messages.BadReply) as caught:
        received(reply, request_)
    assert str(caught.value).startswith(why)


def test_a_server_that_says_nonsense_is_replaced() -> None:
    """A module that a fork server imports can write wherever the server can."""
    with closing(Worker(HostileServer.name)) as made:
        for _ in range(fork_server.MAX_FAILED_STARTS):
            died = made.ask(ask(), 60)
            assert isinstance(died, Died)
            assert died.message == "the fork server says what it never says: 'pid none'"
        reply = made.ask(ask(), 60)
        assert isinstance(reply, messages.Reply)
        assert made.start_method.startswith("spawned: the fork server was killed")


def test_no_reply_is_believed_after_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it was looked whether the process has ended before the server said any."""
    monkeypatch.setattr(ForkedProcess, "has_ended", lambda _: False)
    monkeypatch.setenv("PYTHONHASHSEED", "1")  # a server of its own
    with closing(Worker(HostileServer.name)) as made:
        died = made.ask(ask(), 60)
    assert isinstance(died, Died)
    assert died.message == "the fork server says what it never says: 'pid none'"


def test_counters_have_few_names_in_all(tmp_path: Path) -> None:
    """Each reply has few, but a campaign has millions of replies."""
    config = configuration(Countless.name)
    settings = settings_of(
        1, tmp_path, ((Countless.name, config),), time_s=300, tests=40, families=("dag",), count=4
    )
    run = Run(settings).run()
    (share,) = run.report.by_config
    assert share.graphs == 40
    assert len(share.counters) == messages.MAX_NAMED + 1
    # The others are those of one time less: when it is asked whether it can run, they are not read.
    assert sum(share.counters.values()) == 2 * share.counters["in all"] - 10 >= 2 * 10 * 40 - 10


# --- logs ------------------------------------------------------------------------------


def test_a_log_without_end_is_kept_in_part(worker: Worker) -> None:
    """Nothing of it is on a disk, and it says how much is not kept."""
    assert isinstance(worker.ask(ask("logs"), 60), messages.Reply)
    died = worker.ask(ask("logs_and_crash"), 60)
    assert isinstance(died, Died)
    assert died.message == "signal 11: the last line"
    assert len(died.log) < HEAD_BYTES + KEPT_BYTES + 100
    assert died.log.startswith("the first line\n")
    (note,) = (line for line in died.log.splitlines() if line.startswith("["))
    dropped = int(note[1:].partition(" ")[0].replace(",", ""))
    assert 0 <= 2 * LOGGED_BYTES - dropped - len(died.log) < 5000


# --- children --------------------------------------------------------------------------


def test_the_memory_of_a_daemon_counts(worker: Worker) -> None:
    """It is no descendant of its worker any more."""
    (daemon,) = children(worker, "daemon")
    with closing(Worker(Hostile.name, spawn=worker.spawn)) as other:
        assert isinstance(other.ask(ask(), 60), messages.Reply)
        assert worker.pid
        assert other.pid
        assert daemon.pid in of_worker(worker.pid)
        assert daemon.pid not in of_worker(other.pid)


@pytest.mark.parametrize("end", ["close", "crash", "kill", "timeout"])
def test_the_children_of_a_worker_end_with_it(worker: Worker, end: str) -> None:
    """In its session or their own, daemons, and copies that run no other program."""
    process = psutil.Process(worker.pid)
    found = children(worker, "family")
    assert len(found) == 5
    ends: dict[str, Callable[[], object]] = {
        "close": worker.close,
        "crash": lambda: worker.ask(ask("crash"), 60),
        "kill": process.kill,
        "timeout": lambda: worker.ask(ask("hang"), 0.1),
    }
    ends[end]()
    assert gone([process, *found])


def test_the_children_of_a_worker_end_with_its_server(worker: Worker) -> None:
    """The next request finds out that it was killed."""
    process = psutil.Process(worker.pid)
    found = children(worker, "family")
    server = process.parent()
    assert server is not None
    server.kill()
    assert gone([server, process])
    assert isinstance(worker.ask(ask(), 60), Died)
    assert gone(found)


def test_the_children_of_a_worker_end_with_the_program(worker: Worker) -> None:
    found = children(worker, "family")
    close_all()
    assert gone(found)


def test_a_daemon_of_another_worker_is_spared(worker: Worker) -> None:
    with closing(Worker(Hostile.name, spawn=worker.spawn)) as other:
        (daemon,) = children(other, "daemon")
        found = children(worker, "family")
        worker.close()
        assert gone(found)
        assert daemon.is_running()
    assert gone([daemon])


def test_only_a_variable_that_may_have_no_value_may_have_none_in_a_reply() -> None:
    absent = replace(SB, variables=tuple(replace(each, init=None) for each in SB.variables))
    request = msgspec.structs.replace(RUN, test=plain_of(absent), count=1)
    row = messages.Row({"r0": [0], "r1": [0], "X": [], "Y": [1]}, 1)
    reply = messages.Reply(rows=[row])
    reply_check.check(request, absent, reply)
    with pytest.raises(messages.BadReply, match="the value of 'X' has 0 numbers, not 1"):
        reply_check.check(msgspec.structs.replace(RUN, count=1), SB, reply)
