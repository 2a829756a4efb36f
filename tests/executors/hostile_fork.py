"""A module of a stranger's executor that does something whenever its fork server forks."""

import os

from executors.hostile import write_to_sockets

os.register_at_fork(before=write_to_sockets)  # before the server says that it has
