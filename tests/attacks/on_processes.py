"""Attacks by an executor that a user has installed, by its processes, and by the environment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.attacks.attack import MARK, Place, attack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.attacks.attack import Ended

MODULE = """
import os, signal, subprocess, sys, time
from litmusfuzz import Config, Outcome, Refused, Support, Unavailable
from litmusfuzz.fuzz.executors.protocol import ForkAfter, Noise
from litmusfuzz.fuzz.mutants.stale_reads import _FreshReads

class Theirs(_FreshReads):
    name = "theirs"
    fork_after = ForkAfter(("theirs",))
    configs = ("plain",)

    @classmethod
    def configurations(cls):
        return tuple(Config(each, "rfc") for each in cls.configs)
"""
PYTHON = Path(sys.executable)


def installed(place: Place, body: str, **names: str) -> Mapping[str, str]:
    """Install executors; `body` changes `Theirs`, and `names` adds entry points of others.

    Returns the environment in which they are there.
    """
    place.write("site/theirs.py", MODULE + body)
    made = {"theirs": "theirs:Theirs", **names}
    lines = [f"{name} = {value}" for name, value in made.items()]
    place.write(
        "site/theirs-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: theirs\nVersion: 1\n"
    )
    entry_points = "\n".join(["[litmusfuzz.executors]", *lines, ""])
    place.write("site/theirs-1.dist-info/entry_points.txt", entry_points)
    return {"PYTHONPATH": str(place.folder / "site")}


def campaign(
    place: Place,
    env: Mapping[str, str],
    *more: str,
    executors: str = "theirs",
    within_s: float = 30,
) -> Ended:
    """A small run on them."""
    given = ("--executors", executors, "--families", "dag", "--seed", "1", "--out", "c", *more)
    return place.run("run", *given, env=env, within_s=within_s)


def report(place: Place) -> dict[str, object]:
    made: dict[str, object] = json.loads((place.folder / "c" / "report.json").read_text())
    return made


# --- to exhaust ------------------------------------------------------------------------


@attack("to fill the disk and the memory by counters")
def counters_with_other_names_each_time(place: Place) -> str:
    env = installed(
        place,
        """
    def counters(self):
        self.n = getattr(self, "n", 0) + 1
        return {f"{self.n}-{i}" + "x" * 20_000: 1.0 for i in range(100)}
""",
    )
    ended = campaign(place, env, "--tests", "30", "--count", "4")
    size = sum(each.stat().st_size for each in (place.folder / "c").rglob("*") if each.is_file())
    assert size < 20 << 20, f"{size:,} bytes for 30 tests"
    return f"exit {ended.code}, {size:,} bytes"


@attack("to fill the memory by counters, slowly")
def counters_that_each_test_adds_to(place: Place) -> str:
    """Each reply has few, with short names; a long campaign has millions of replies."""
    env = installed(
        place,
        """
    def counters(self):
        self.n = getattr(self, "n", 0) + 1
        return {f"counter {self.n}-{i}": 1.0 for i in range(10)}
""",
    )
    ended = campaign(place, env, "--tests", "60", "--count", "4")
    shares = report(place)["by_config"]
    assert isinstance(shares, list)
    (share,) = shares
    assert share["graphs"] == 60
    assert len(share["counters"]) <= 101, len(share["counters"])
    return f"exit {ended.code}, {len(share['counters'])} counters in the report"


@attack("to have a campaign fail as a whole by one crash")
def versions_of_a_megabyte_and_a_crash(place: Place) -> str:
    env = installed(
        place,
        """
    @classmethod
    def versions(cls):
        return {f"v{n}": "y" * 60_000 for n in range(99)}

    def prepare(self, test, config):
        if len(test.graph.nodes) % 3 == 0:
            os.abort()
        return super().prepare(test, config)
""",
    )
    ended = campaign(place, env, "--tests", "12", "--count", "4")
    assert ended.code == 1, f"exit {ended.code}: {ended.error[:300]}"
    size = (place.folder / "c" / "report.json").stat().st_size
    assert size < 4 << 20, f"report.json has {size:,} bytes"
    return f"exit {ended.code}: crashes are findings, report.json has {size:,} bytes"


@attack("to write a report that nobody can read, by thousands of reasons")
def refusals_that_each_name_another_feature(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        raise Refused(os.urandom(140).hex())
""",
    )
    ended = campaign(place, env, "--tests", "400", "--count", "1")
    assert ended.code == 3, ended.code
    longest = max(map(len, ended.out.splitlines()))
    assert longest < 2_000, f"a line of {longest:,} characters"
    summary = (place.folder / "c" / "summary.md").read_text()
    assert max(map(len, summary.splitlines())) < 20_000
    return f"exit 3, longest line {longest}"


@attack("to exhaust the memory by processes that are no descendants of the worker any more")
def a_daemon_that_takes_memory(place: Place) -> str:
    env = installed(place, "")
    code = """
import asyncio, os, subprocess, sys, time
from litmusfuzz.fuzz.executors import messages
from litmusfuzz.fuzz.executors.memory import MemoryCap
from litmusfuzz.fuzz.executors.worker import Died, Worker
worker = Worker("theirs")
reply = worker.ask(messages.Request(config="plain"), 60)
assert isinstance(reply, messages.Reply), reply
excess = None
end = time.monotonic() + 8
while excess is None and time.monotonic() < end:
    excess = MemoryCap(150 << 20).excess([worker.pid])
    time.sleep(0.1)
worker.close()
print(excess.message if excess else "NOT SEEN")
"""
    env = installed(
        place,
        """
    def check(self, config):
        big = "x = b'x' * (200 << 20); import time; time.sleep(1000)"
        subprocess.run(["/bin/sh", "-c", f'setsid {sys.executable} -c "{big}" >&2 &'], check=True)
""",
    )
    ended = place.run("-P", "-c", code, program=PYTHON, env=env)
    assert "out of memory" in ended.out, ended.out + ended.err[-300:]
    return ended.out.strip()


@attack("to starve the campaign by output without end")
def a_worker_that_writes_without_end(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        import threading
        if not getattr(Theirs, "writing", False):
            Theirs.writing = True
            def write():
                while True:
                    os.write(2, b"x" * (1 << 16))
            for _ in range(4):
                threading.Thread(target=write, daemon=True).start()
        return super().prepare(test, config)
""",
    )
    ended = campaign(place, env, "--tests", "20", "--count", "4", within_s=25)
    assert report(place)["graphs"] == 20
    return f"exit {ended.code}, 20 graphs in {ended.seconds:.0f} s"


# --- processes -------------------------------------------------------------------------


@attack("to leave a process that nobody finds")
def a_daemon_that_forks_and_ends_all_the_time(place: Place) -> str:
    """Each of its processes lives a moment only, in a session of its own, with no environment."""
    env = installed(
        place,
        """
HOPS = '''
import os, time
os.environ.clear()
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
'''
""".replace("\nHOPS", "\n\nHOPS")
        + """

def _check(self, config):
    subprocess.run(["/bin/sh", "-c", f"setsid env -i {sys.executable} -S -E -c '{HOPS}' >&2 &"])

Theirs.check = _check
""",
    )
    ended = campaign(place, env, "--tests", "3", "--count", "1")
    time.sleep(0.3)
    hopping = [p for p in psutil.process_iter() if _hops(p)]
    for each in hopping:
        each.kill()
    assert not hopping, "it hops on"
    return f"exit {ended.code}, and none is left"


def _hops(process: psutil.Process) -> bool:
    try:
        return "os.environ.clear()" in " ".join(process.cmdline())
    except psutil.Error:
        return False


@attack("to go on after its channel is closed, and to ignore every signal that can be ignored")
def a_worker_that_closes_its_channel_and_stays(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        os.closerange(0, 1)
        os.closerange(3, 64)
        while True:
            time.sleep(100)
""",
    )
    ended = campaign(place, env, "--tests", "2", "--count", "1", within_s=20)
    assert ended.code == 1
    return f"exit {ended.code}: " + ended.out.splitlines()[0]


@attack("to have a shard's process killed again and again, and nobody say so")
def an_executor_that_kills_the_process_of_its_shard(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        server = os.getppid()
        with open(f"/proc/{server}/stat") as file:
            shard = int(file.read().rpartition(")")[2].split()[1])
        os.kill(shard, signal.SIGKILL)
        time.sleep(5)
""",
    )
    given = ("--executors", "theirs", "--families", "dag", "--seed", "1", "--out", "c")
    ended = place.run("nightly", *given, "--time", "8s", "--shard-time", "2s", env=env)
    assert ended.code in (2, 3), f"exit {ended.code}"
    assert report(place)["graphs"] == 0
    return f"exit {ended.code}: {ended.error}"


@attack("to kill a fork server, and with it nothing else than its own work")
def an_executor_that_kills_its_fork_server(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        subprocess.Popen(["setsid", "sleep", "1000"], stdin=subprocess.DEVNULL, stdout=2)
        if len(test.graph.nodes) % 2:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(9)
        return super().prepare(test, config)
""",
    )
    ended = campaign(place, env, "--tests", "8", "--count", "1", within_s=28)
    assert ended.code in (1, 2), ended.code
    return f"exit {ended.code}, and no process is left"


# --- to mislead ------------------------------------------------------------------------


@attack("an exit code of 0 where nothing ran")
def a_module_that_ends_the_program_when_it_is_imported(place: Place) -> str:
    env = installed(place, "\nsys.exit(0)\n")
    said = [
        place.run(*command, env=env)
        for command in (
            ("run", "--executors", "theirs", "--time", "1s"),
            ("nightly", "--executors", "theirs", "--time", "1s"),
            ("replay", "SB", "--executors", "theirs"),
            ("bench", "--executors", "theirs"),
        )[:3]
    ]
    assert [each.code for each in said] == [2, 2, 2], [each.code for each in said]
    return said[0].error


@attack("an exit code of 0 where nothing ran")
def an_executor_that_ends_the_program_when_it_is_asked(place: Place) -> str:
    env = installed(
        place,
        """
    @classmethod
    def configurations(cls):
        raise SystemExit(0)
""",
    )
    ended = place.run("run", "--executors", "theirs", "--time", "1s", env=env)
    assert ended.code == 2, ended.code
    return ended.error


@attack("an exit code of 0 where nothing ran")
def a_worker_that_exits_as_if_all_were_well(place: Place) -> str:
    env = installed(
        place,
        """
    def prepare(self, test, config):
        sys.exit(0)
""",
    )
    ended = campaign(place, env, "--tests", "3", "--count", "1")
    assert ended.code == 1, ended.code
    assert "SystemExit: 0" in ended.out
    return f"exit {ended.code}: " + ended.out.splitlines()[0]


@attack("to have its shards taken for the self-test, so that it never runs")
def an_executor_that_is_called_like_the_self_test(place: Place) -> str:
    env = installed(place, "", selftest="theirs:Theirs")
    given = ("--executors", "selftest", "--time", "8s", "--shard-time", "3s", "--out", "c")
    ended = place.run("nightly", *given, env=env)
    if ended.code == 2 and not (place.folder / "c" / "report.json").exists():
        return ended.error
    assert report(place)["graphs"], f"exit {ended.code}, no graph"
    return f"exit {ended.code}, {report(place)['graphs']} graphs"


@attack("a traceback, or a configuration that stands for all")
def a_configuration_that_is_called_product(place: Place) -> str:
    env = installed(place, "    configs = ('product',)\n")
    ended = campaign(place, env, "--tests", "3", "--count", "1")
    return f"exit {ended.code}: {ended.error}"


@attack("to have graphs counted for a configuration of somebody else")
def two_configurations_with_one_title(place: Place) -> str:
    """`theirs` in `x/plain` and `theirs/x` in `plain`: the second refuses all."""
    env = installed(
        place,
        """
    configs = ("x/plain",)

class Other(Theirs):
    name = "theirs/x"
    configs = ("plain",)

    def prepare(self, test, config):
        raise Refused("everything")
""",
        **{"theirs/x": "theirs:Other"},
    )
    ended = campaign(place, env, "--tests", "6", "--count", "1", executors="theirs,theirs/x")
    if ended.code == 2:
        return ended.error
    shares = report(place)["by_config"]
    assert isinstance(shares, list)
    names = [each["name"] for each in shares]
    assert len(set(names)) == len(names) == 2, names
    return f"exit {ended.code}: {names}"


@attack("a traceback, a hang, or a report of another form by names")
def configurations_with_names_that_are_none(place: Place) -> str:
    said = []
    for number, name in enumerate(
        ("a\nb", "a,b", "", "\x1b[2J", "x" * 100_000, "a:b", "*", "\ud800")
    ):
        env = installed(place, f"    configs = ({name!r}, 'plain')\n")
        given = ("--executors", "theirs:*", "--tests", "2", "--count", "1", "--out", f"c{number}")
        ended = place.run("run", *given, env=env)
        said.append(f"{ended.code} {ended.error[:100]}")
    return "; ".join(said)


@attack("a traceback by members of other types")
def an_executor_whose_members_are_of_other_types(place: Place) -> str:
    said = []
    for number, body in enumerate(
        (
            "    fork_after = 'theirs'\n",
            "    fork_after = ForkAfter((5,))\n",
            "    damaging_ops = 7\n",
            "    configs = (5,)\n",
            "    space = 'large'\n",
            "    @classmethod\n    def configurations(cls):\n        return 5\n",
            "    @classmethod\n    def configurations(cls):\n        return ('plain',)\n",
        )
    ):
        env = installed(place, body)
        given = ("--executors", "theirs", "--tests", "2", "--count", "1", "--out", f"c{number}")
        try:
            ended = place.run("run", *given, env=env)
        except AssertionError as error:
            raise AssertionError(f"{body.strip()}: {str(error)[-700:]}") from None
        said.append(f"{ended.code} {ended.error[:110]}")
    return "; ".join(said)


@attack("to have clean exits by counts of executions that never were")
def a_worker_that_shows_one_execution_of_all(place: Place) -> str:
    """It claims as many as it likes, and each outcome as often as it likes."""
    env = installed(
        place,
        """
    def prepare(self, test, config):
        made = super().prepare(test, config)
        class Claims:
            def run(self, count, noise, seed):
                ((outcome, _),) = made.run(1, noise, seed).items()
                return {outcome: count * 1000}
            def close(self):
                pass
        return Claims()
""",
    )
    ended = campaign(place, env, "--tests", "3", "--count", "5")
    assert ended.code == 1, ended.code
    assert "a bad reply" in ended.out
    return f"exit {ended.code}: " + ended.out.splitlines()[1]


# --- the environment -------------------------------------------------------------------


@attack("checks that vanish when assertions are off")
def a_program_without_assertions(place: Place) -> str:
    env = {"PYTHONOPTIMIZE": "2"}
    given = ("--families", "dag", "--seed", "1", "--tests", "30", "--count", "64", "--out", "c")
    ended = place.run("run", "--executors", "mutant/stale-reads", *given, env=env)
    assert ended.code == 1, ended.error
    again = place.run("reproduce", "c", env=env)
    assert again.code == 0, again.error
    return f"exit {ended.code}; {again.out.strip()}"


@attack("other tests, or another order of anything, by other hashes")
def another_hash_seed(place: Place) -> str:
    seen = []
    for seed in ("0", "4242"):
        given = ("--families", "dag,cycles", "--seed", "1", "--tests", "30", "--count", "64")
        folder = f"c{seed}"
        place.run(
            *("run", "--executors", "mutant/stale-reads", *given, "--out", folder),
            env={"PYTHONHASHSEED": seed},
        )
        made = json.loads((place.folder / folder / "report.json").read_text())
        seen.append([[each["key"], each["entry"]] for each in made["findings"]])
        other = {"PYTHONHASHSEED": "77"}
        assert place.run("reproduce", folder, env=other).code == 0
    assert seen[0] == seen[1]
    return f"{len(seen[0])} findings, the same"


@attack("a traceback by a warning")
def warnings_that_are_errors(place: Place) -> str:
    env = {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}
    given = ("--families", "dag", "--seed", "1", "--tests", "10", "--count", "64", "--out", "c")
    ended = place.run("run", "--executors", "mutant/stale-reads,native", *given, env=env)
    assert ended.code == 1, ended.error
    return f"exit {ended.code}"


@attack("a program of the attacker's by a module in the folder of temporary files")
def a_temporary_folder_with_modules(place: Place) -> str:
    for name in ("msgspec", "numpy", "random", "re", "litmusfuzz"):
        place.write(f"tmp/{name}.py", f"open({str(place.folder / 'was-run')!r}, 'w')\n")
    env = {"TMPDIR": str(place.folder / "tmp"), "PYTHONSAFEPATH": ""}
    given = ("--tests", "3", "--count", "4", "--out", "../c", "--spawn")
    place.commands.append("cd tmp")
    inner = Place(place.folder / "tmp", place.outside, place.commands)
    code = inner.run(
        "run", "--executors", "native", *given, env={**env, MARK: str(place.folder)}
    ).code
    assert not (place.folder / "was-run").exists()
    left = [each.name for each in (place.folder / "tmp").iterdir() if not each.name.endswith(".py")]
    assert not left, left
    return f"exit {code}; none was imported, and nothing is left there"


@attack("to leave processes, or a campaign that says all is well, by signals at any moment")
def signals_in_bursts(place: Place) -> str:
    command = [str(PYTHON.parent / "litmusfuzz"), "nightly", "--executors", "native"]
    said = []
    for number, pause_s in enumerate((0.02, 0.3, 0.8, 1.5, 2.5)):
        process = subprocess.Popen(
            [*command, "--time", "20s", "--out", f"c{number}"],
            cwd=place.folder,
            env=os.environ | {MARK: str(place.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        time.sleep(pause_s)
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            process.send_signal(each)
        _, err = process.communicate(timeout=25)
        assert process.returncode != 0
        assert b"Traceback" not in err, err.decode()[-600:]
        said.append(process.returncode)
    ended = place.run("status", *(each.name for each in place.folder.glob("c?")))
    return f"exit codes {said}; status {ended.code}"


@attack("a traceback, other text, or the text of a file, by what a terminal and a locale say")
def a_terminal_of_no_size(place: Place) -> str:
    env = {
        "COLUMNS": "0",
        "LINES": "-1",
        "TERM": "dumb\x1b[2J",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": ":/etc/passwd",
    }
    given = ("--families", "dag", "--seed", "1", "--tests", "10", "--count", "64", "--out", "c")
    ended = place.run("run", "--executors", "mutant/stale-reads", *given, env=env)
    assert ended.code == 1
    assert not re.search(r"root:", ended.out)
    return f"exit {ended.code}"
