"""A module of a stranger's executor that does something whenever its fork server forks."""

import os

from executors.hostile import write_to_sockets

os.register_at_fork(after_in_child=write_to_sockets)
