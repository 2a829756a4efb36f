"""A network for one worker process: a loopback interface that nothing else can reach.

TensorFlow's gRPC servers listen on all interfaces, and let whoever connects run any op, file writes
included. A configuration whose environment has `OWN` gets a network namespace: its
worker enters it before it has a second thread or a framework, and all that it starts is in it as
well. Where the system forbids that, `require` says why, and nothing may listen.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from litmusfuzz.fuzz.executors.protocol import Unavailable

VARIABLE: Final = "LITMUSFUZZ_NETWORK"
OWN: Final = (VARIABLE, "own")
"""A variable of a configuration (`Config.environment`): its worker has a network of its own."""

_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1
_INTERFACE_FLAGS: Final = struct.Struct("16sh14x")

_entered = False
_problem = ""


def enter_if_asked() -> None:
    """Enter a network namespace if the environment asks for it; in a process with one thread.

    A failure is no error yet: `require` reports it.
    """
    global _entered, _problem
    if os.environ.get(VARIABLE) != OWN[1] or _entered:
        return
    try:
        _unshare()
        _set_loopback_up()
    except OSError as error:
        _problem = f"this system allows no network namespace ({error.strerror})"
    else:
        _entered, _problem = True, ""


def require() -> None:
    """Check that this process has a network of its own, so that it may listen.

    Raises
    ------
    Unavailable
        If not, with the reason.
    """
    if not _entered:
        why = _problem or "this process was started without"
        message = f"needs a network of its own, since its servers let anybody in: {why}"
        raise Unavailable(message)


def _unshare() -> None:
    """Leave the network of all others; without the privilege, as root of a new user namespace."""
    user, group = os.geteuid(), os.getegid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare  # `os.unshare` is of Python 3.12
    if not unshare(_CLONE_NEWNET):
        return
    if ctypes.get_errno() == errno.EPERM and not unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        # The same IDs as before. Without, files seem to be nobody's, but can be used all the same.
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        return
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))


def _set_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, _INTERFACE_FLAGS.pack(b"lo", _IFF_UP))
