"""Workers: what they answer, and what their end costs."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
import psutil
import pytest
from helpers import PATIENCE_S

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.ops import MAX_MAGNITUDE
from litmusfuzz.corpus.outcome import TORN, Outcome
from litmusfuzz.corpus.struct import replace
from litmusfuzz.corpus.textfile import Entry, dumps, loads, plain_of
from litmusfuzz.fuzz.executors import messages, worker_main
from litmusfuzz.fuzz.executors.process_log import (
    HEAD_BYTES,
    KEPT_BYTES,
    ProcessLog,
    cause_of_death,
    in_a_line,
)
from litmusfuzz.fuzz.executors.protocol import Noise
from litmusfuzz.fuzz.executors.table import (
    CANARY,
    UnknownExecutor,
    configuration,
    executor_class,
    names,
)
from litmusfuzz.fuzz.executors.worker import Died, Worker

TEST = litmus("X=1; r0=Y || Y=1; r1=X")


def request(count: int = 3) -> messages.Request:
    return messages.Request(
        test=plain_of(TEST), config="plain", count=count, noise=asdict(Noise()), seed=1
    )


def rows(reply: messages.Reply | Died) -> int:
    """Executions that a reply tells of."""
    assert isinstance(reply, messages.Reply), reply
    return sum(row.count for row in reply.rows)


@pytest.fixture
def worker():
    started = Worker(CANARY)
    yield started
    started.close()


def test_an_answer_is_a_histogram_of_outcomes(worker: Worker) -> None:
    reply = worker.ask(request(), 60)
    assert isinstance(reply, messages.Reply)
    wrong = Outcome.of(TEST, dict.fromkeys(TEST.names, (MAX_MAGNITUDE,)))
    assert messages.histogram(TEST, reply) == {wrong: 3}


def test_torn_travels() -> None:
    outcome = Outcome.of(TEST, {"r0": TORN, "r1": (1,), "X": (1,), "Y": TORN})
    reply = messages.Reply(rows=messages.rows({outcome: 5}))
    assert messages.histogram(TEST, reply) == {outcome: 5}


@pytest.mark.parametrize("pythonpath", ["", f"{os.pathsep}/nowhere", f"/nowhere{os.pathsep}"])
def test_a_worker_imports_nothing_from_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pythonpath: str
) -> None:
    """Neither do its children; an empty entry of PYTHONPATH is the working directory."""
    (tmp_path / "msgspec.py").write_text("raise RuntimeError('the project has its own')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", pythonpath)
    with closing(Worker(CANARY)) as worker:
        assert isinstance(worker.ask(request(), 60), messages.Reply)
        variables = psutil.Process(worker.pid).environ()
    assert variables["PYTHONSAFEPATH"] == "1"
    assert variables["PYTHONPATH"] == pythonpath.strip(os.pathsep)


def test_a_command_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    """The console script and the workers that it starts."""
    (tmp_path / "msgspec.py").write_text("raise RuntimeError('the project has its own')\n")
    script = Path(sys.executable).parent / "litmusfuzz"
    done = subprocess.run(
        [script, "run", "--executors", "native", "--tests", "2", "--count", "8"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_versions_are_reported(worker: Worker) -> None:
    reply = worker.ask(messages.Request(), 60)
    assert isinstance(reply, messages.Reply)
    assert reply.versions["python"] == sys.version.split()[0]


def test_a_killed_worker_costs_one_request(worker: Worker) -> None:
    assert isinstance(worker.ask(request(), 60), messages.Reply)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    died = worker.ask(request(), 60)
    assert isinstance(died, Died)
    assert not died.timed_out
    assert died.message == "signal 9"
    assert isinstance(worker.ask(request(), 60), messages.Reply)
    assert worker.starts == 2


def test_a_queued_request_is_answered_once(worker: Worker) -> None:
    """A second answer to it would be a bad reply to the next request."""
    first, second = request(3), request(5)
    worker.send(first, 60)
    worker.queue(second)
    counts = [
        rows(worker.receive()),
        rows(worker.ask(second, 60)),
        rows(worker.ask(request(7), 60)),
    ]
    assert counts == [3, 5, 7]
    assert worker.starts == 1


def test_a_queued_request_is_sent_again_to_another_process(worker: Worker) -> None:
    first, second = request(3), request(5)
    worker.send(first, 60)
    worker.queue(second)
    worker.close()
    assert rows(worker.ask(second, 60)) == 5
    assert worker.starts == 2


def test_another_request_does_not_get_the_answer_to_a_queued_one(worker: Worker) -> None:
    worker.send(request(3), 60)
    worker.queue(request(5))
    assert rows(worker.receive()) == 3
    assert rows(worker.ask(request(7), 60)) == 7
    assert worker.starts == 2


def test_a_process_that_dies_costs_the_queued_request_too(worker: Worker) -> None:
    first, second = request(3), request(5)
    assert rows(worker.ask(first, 60)) == 3
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGSTOP)  # it answers nothing more
    worker.send(first, 60)
    worker.queue(second)
    worker.kill("a test")
    died = worker.receive()
    assert isinstance(died, Died)
    assert rows(worker.ask(second, 60)) == 5


def test_a_process_whose_memory_is_used_up_answers_no_other_request() -> None:
    """A queued one neither: what another test has left there must not make it fail."""
    wide, one = asdict(Noise(copies=1024, lanes=1 << 16)), asdict(Noise(copies=1))
    large = msgspec.structs.replace(request(1024), noise=wide)
    small = msgspec.structs.replace(request(5), noise=one)
    with closing(Worker("native", memory_bytes=200 << 20)) as native:  # of 256 MiB a variable
        native.send(large, 60)
        native.queue(small)
        refused = native.receive()
        assert isinstance(refused, messages.Reply)
        assert refused.refused.startswith("so much memory (")
        assert native.pid is None
        assert rows(native.ask(small, 60)) == 5
        assert native.starts == 2


def test_two_replies_that_arrive_together() -> None:
    one, other = messages.Reply(number=1), messages.Reply(number=2)
    channel = io.BytesIO()
    messages.write(channel, one)
    messages.write(channel, other)
    received = bytearray(channel.getvalue())
    with pytest.raises(messages.BadReply, match="more bytes follow it"):
        messages.take_reply(bytearray(received))
    assert messages.take_reply(received, another=True) == one
    assert messages.take_reply(received) == other
    assert messages.take_reply(received) is None


def test_a_hanging_worker_is_killed_and_reported_as_timed_out(worker: Worker) -> None:
    assert isinstance(worker.ask(request(), 60), messages.Reply)
    process = psutil.Process(worker.pid)
    process.suspend()  # cannot answer, however fast the machine
    died = worker.ask(request(), 0.2)
    assert isinstance(died, Died)
    assert died.timed_out
    assert "0.2 s" in died.message
    process.wait(PATIENCE_S)
    assert isinstance(worker.ask(request(), 60), messages.Reply)


def test_an_exception_in_a_worker_is_a_crash_with_its_last_line(worker: Worker) -> None:
    died = worker.ask(messages.Request(test={"nonsense": 1}, config="plain"), 60)
    assert isinstance(died, Died)
    assert died.message.startswith("exit 1: ")
    assert "no field 'litmusfuzz'" in died.message
    assert "Traceback" in died.log


def test_last_words_have_nothing_that_a_litmus_file_cannot_hold() -> None:
    """Colours, and whatever damaged memory prints: the test is kept with these words."""
    words = cause_of_death(-11, "first\n\x1b[31mAbort:\x1b[0m at \x00\x07\u2028 0x7f\x9b\r\n\n")
    assert words == "signal 11: Abort: at     0x7f"
    test = replace(litmus("X=1"), description=words)
    assert loads(dumps(Entry(test))).test == test


def logged_by(written: bytes) -> ProcessLog:
    """The log of a process that has written this."""
    with TemporaryFile() as file:
        file.write(written)
        file.seek(0)
        log = ProcessLog(os.dup(file.fileno()))
    while not log.ended:
        log.drain()
    log.close()
    return log


@pytest.mark.parametrize("said", ["free(): invalid pointer\n", ""])
def test_what_a_framework_logs_is_nobodys_last_word(said: str) -> None:
    """Nor the end of a line of its, where the log is cut: a crash would have many names."""
    logged = (
        "2026-11-22 10:00:00.1: I cpu_feature_guard.cc:227] This binary is optimized.\n"
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild it.\n"
    )
    line = "I0000 00:00:1795356762.509035   20244 port.cc:153] said again and again\n"
    for cut in range(len(line)):
        log = logged_by(("." * cut + "\n" + 200 * line + said + logged).encode())
        words = cause_of_death(-6, log.text())
        assert words == ": ".join(("signal 6", *said.splitlines()))


TRACEBACK = """Traceback (most recent call last):
  File "x.py", line 1, in run
    step()
    ^^^^^^
ValueError: 2 problems:
  - the first
  - {0}
"""


@pytest.mark.parametrize(
    ("code", "log", "words"),
    [
        (1, TRACEBACK.format("no second"), "exit 1: ValueError: 2 problems: ... - no second"),
        (1, TRACEBACK.split("\n", 4)[4], "exit 1: ValueError: 2 problems: ... - {0}"),
        (1, "KeyError: 3\n" + TRACEBACK, "exit 1: ValueError: 2 problems: ... - {0}"),
        (-6, TRACEBACK + "free(): invalid pointer\n", "signal 6: free(): invalid pointer"),
        (
            -6,
            "F0000 00:00:1795356762.509035   20244 port.cc:153] Check failed: a == b (1 vs. 2)\n"
            "*** Check failure stack trace: ***\n    @     0x7f1202  abort\n    @ 0x1  main\n",
            "signal 6: port.cc:153] Check failed: a == b (1 vs. 2)",
        ),
        (
            -6,
            "2026-11-22 10:00:00.1: F array.cc:7] Check failed\nmore on it\nin core\n",
            "signal 6: array.cc:7] Check failed ... in core",
        ),
    ],
)
def test_an_exception_of_several_lines_is_shown_by_its_first_and_last(
    code: int, log: str, words: str
) -> None:
    assert cause_of_death(code, log) == words


def test_a_message_of_one_line_stays_as_it_is() -> None:
    assert [in_a_line(text) for text in ("", "\n \n", " one\n", "one\n---\n")] == [
        "",
        "",
        "one",
        "one",
    ]


def test_a_last_word_that_is_very_long_is_kept_in_part() -> None:
    log = logged_by(b"x" * 20_000 + b"\n")
    assert cause_of_death(1, log.text()) == "exit 1: " + "x" * 300


def test_of_a_log_its_beginning_and_end_are_kept_and_the_rest_is_counted() -> None:
    lines = [f"line {number}" for number in range(100_000)]
    log = logged_by("\n".join(lines).encode())
    text = log.text()
    assert len(text) < HEAD_BYTES + KEPT_BYTES + 100
    head, _, rest = text.partition("\n[")
    note, _, tail = rest.partition("]\n")
    assert lines[: head.count("\n") + 1] == head.splitlines()
    assert lines[-tail.count("\n") - 1 :] == tail.splitlines()
    kept = len(head) + len(tail) + 2
    assert note == f"{len(chr(10).join(lines)) - kept:,} bytes of the log are left out"


def test_a_worker_over_its_memory_cap_dies_alone() -> None:
    """The cap is on the process: 40 MB is too little to decode a long answer."""
    small = Worker(CANARY, memory_bytes=24 << 20)
    died = small.ask(messages.Request(test={"name": "x" * (48 << 20)}, config="plain"), 60)
    small.close()
    assert isinstance(died, Died)
    assert not died.timed_out


def test_large_messages_pass(worker: Worker) -> None:
    """More than a pipe holds, in both directions of its first use."""
    big = litmus("; ".join(f"X={i % 5}" for i in range(1500)))
    asked = messages.Request(test=plain_of(big), config="plain", count=1, noise={})
    assert len(messages.encoded(asked)) > 1 << 16
    reply = worker.ask(asked, 60)
    assert isinstance(reply, messages.Reply)
    assert len(messages.histogram(big, reply)) == 1


def test_closing_leaves_no_process(worker: Worker) -> None:
    assert isinstance(worker.ask(request(), 60), messages.Reply)
    process = psutil.Process(worker.pid)
    worker.close()
    process.wait(PATIENCE_S)
    worker.close()  # again is no error


def test_the_table_knows_its_names() -> None:
    assert {"tf", CANARY} <= set(names())
    for name in names():
        config = configuration(name)
        assert config == executor_class(name).configurations()[0]
        assert configuration(name, config.name) == config
        with pytest.raises(UnknownExecutor, match="no configuration 'absent'"):
            configuration(name, "absent")
    with pytest.raises(UnknownExecutor, match="`litmusfuzz list executors` prints all"):
        executor_class("absent")


class _Rare:
    """The hundredth execution shows what is wanted; each waits for a second."""

    def __init__(self, wanted: Outcome, other: Outcome) -> None:
        self.wanted, self.other = wanted, other
        self.now = 0.0

    def record(self, seed: int) -> tuple[Outcome, tuple[int, ...]]:
        self.now += 1.0
        return (self.wanted if seed == 100 else self.other), (seed,)


def test_a_record_is_looked_for_as_long_beside_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, other = (
        Outcome.of(TEST, {"r0": (value,), "r1": (1,), "X": (1,), "Y": (1,)}) for value in (0, 1)
    )
    rare = _Rare(wanted, other)
    monkeypatch.setattr(worker_main.time, "monotonic", lambda: rare.now)
    asked = messages.Request(
        task="record", count=1000, seed=1, wanted=messages.rows({wanted: 1}), timeout_s=2.0
    )
    reply = worker_main._recorded(rare, asked)
    assert reply.choices == [100]
