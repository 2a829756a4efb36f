"""The network of `two_workers`: its servers let anybody in, so that nobody may reach them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from litmusfuzz.corpus.builder import litmus
from litmusfuzz.corpus.textfile import plain_of
from litmusfuzz.fuzz.executors import messages, network
from litmusfuzz.fuzz.executors.protocol import Noise, Unavailable
from litmusfuzz.fuzz.executors.table import configuration
from litmusfuzz.fuzz.executors.tensorflow.configurations import CONFIGURATIONS, Settings
from litmusfuzz.fuzz.executors.tensorflow.grpc_servers import GrpcServers
from litmusfuzz.fuzz.executors.worker import Worker
from litmusfuzz.oracles.model import GUARANTEES
from litmusfuzz.oracles.reference import allowed_outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator

SB = litmus("X=1; r0=Y || Y=1; r1=X")
REQUEST = messages.Request(
    test=plain_of(SB),
    config="two_workers",
    count=64,
    noise=asdict(Noise(copies=8, steps=16)),
    seed=1,
)
NO_NETWORKS = """
    echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"
"""
"""Forbids network namespaces in a user namespace, and so to nobody else."""


def sockets(*pids: int) -> set[str]:
    """Inodes of the sockets that these processes hold."""
    links = (link for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir())
    targets = (os.readlink(link) for link in links)
    return {target[8:-1] for target in targets if target.startswith("socket:[")}


def listening(process: str) -> dict[str, int]:
    """Ports that anybody listens on in the network of a process, by the socket's inode."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


@pytest.fixture(scope="module", params=[False, True], ids=["forked", "spawned"])
def running(request: pytest.FixtureRequest) -> Iterator[tuple[list[int], messages.Reply]]:
    """A worker and its servers, and its reply."""
    with closing(Worker("tf", spawn=request.param)) as worker:
        reply = worker.ask(REQUEST, 120)
        assert isinstance(reply, messages.Reply), reply
        if reply.unavailable:
            pytest.skip(reply.unavailable)
        assert worker.pid is not None
        children = psutil.Process(worker.pid).children(recursive=True)
        yield [worker.pid, *(child.pid for child in children)], reply


def test_nothing_listens_outside(running: tuple[list[int], messages.Reply]) -> None:
    """Its servers do listen, on all interfaces; of a network that has no way in or out."""
    (worker, *servers), _ = running
    assert len(servers) == 2
    held = sockets(worker, *servers)
    inside = {port for inode, port in listening(str(worker)).items() if inode in held}
    assert len(inside) == 2
    assert not held & listening("self").keys()
    for pid in (worker, *servers):
        assert os.stat(f"/proc/{pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino
    addresses = [
        each.address
        for name, listed in psutil.net_if_addrs().items()
        for each in listed
        if each.family is socket.AF_INET
    ]
    for address in ("127.0.0.1", *addresses):
        for port in inside - set(listening("self").values()):
            with pytest.raises(ConnectionRefusedError), socket.create_connection((address, port)):
                pass


def test_the_outcomes_are_those_that_are_allowed(
    running: tuple[list[int], messages.Reply],
) -> None:
    _, reply = running
    seen = messages.histogram(SB, reply)
    assert sum(seen.values()) >= REQUEST.count
    model = GUARANTEES[configuration("tf", "two_workers").guarantees]
    assert seen.keys() <= allowed_outcomes(SB, model).witnesses.keys()


def test_every_configuration_with_servers_has_a_network_of_its_own() -> None:
    networked = [each for each in CONFIGURATIONS if network.OWN in each.environment]
    assert [each.name for each in networked] == ["two_workers"]
    assert networked == [each for each in CONFIGURATIONS if Settings.of(each).workers]


def test_no_server_starts_in_the_network_of_others() -> None:
    """In a process of a program that uses the executor itself, for example."""
    with pytest.raises(Unavailable, match="needs a network of its own"):
        GrpcServers(2, 1)


def test_where_namespaces_are_forbidden_the_configuration_is_left_out(tmp_path: Path) -> None:
    """The campaign ends with the reason; beside other configurations, it goes on with these."""
    without = ["unshare", "--user", "--map-root-user", "sh", "-c", NO_NETWORKS, "sh"]
    tried = subprocess.run([*without, "true"], capture_output=True, check=False)
    if shutil.which("unshare") is None or tried.returncode:
        pytest.skip("no user namespace to forbid it in")
    done = subprocess.run(
        [
            *(*without, sys.executable, "-P", "-m", "litmusfuzz", "run", "--tests", "1"),
            *("--executors", "tf:two_workers", "--out", str(tmp_path / "out")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    said = (
        "tf: needs a network of its own, since its servers let anybody in: this system allows "
        "no network namespace (No space left on device)"
    )
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
